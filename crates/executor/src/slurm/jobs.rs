//! Jobs: their names, their options and scripts as sbatch takes them, and their states as squeue and sacct print them. Starts no
//! process.
//!
//! A job array of workers, or a run that is a job itself. Before the time of a run is over, Slurm sends it [`HANDOVER`], and nobody
//! else does: it submits itself again under the same name, and ends. A job that is cancelled gets SIGTERM, and does not. All jobs of
//! the run have one name, and only one of them runs at a time.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::settings::SlurmSettings;
use ce_model::resources::Resources;

/// What a token begins with, so that people see in a queue whose job it is.
const PREFIX: &str = "ce-";
/// The number of random bytes.
const RANDOM: usize = 8;

/// The name of a job array, which no other one has. It identifies the jobs, because Slurm may assign the number of a job
/// again after its controller has crashed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobToken(String);

impl JobToken {
    /// Makes a token from random bytes of the kernel.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; RANDOM];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(format!("{PREFIX}{:016x}", u64::from_le_bytes(bytes))))
    }

    /// The token as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for JobToken {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        let digits = text.strip_prefix(PREFIX).ok_or(NoToken)?;
        let is_token = digits.len() == 2 * RANDOM
            && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_token { Ok(Self(text.to_owned())) } else { Err(NoToken) }
    }
}

/// A text that is not a [`JobToken`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not the name of a job of CompEval: \"ce-\" and 16 hexadecimal digits")]
pub struct NoToken;

/// One worker: a task of a job array.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrayTask {
    /// The name of the array.
    pub token: JobToken,
    /// The index of the task, counted from one.
    pub index: u32,
}

impl ArrayTask {
    /// Returns the task that this process is, from the variables that Slurm sets for it, or `None` outside of one.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let token = variable("SLURM_JOB_NAME")?.parse().ok()?;
        let index = variable("SLURM_ARRAY_TASK_ID")?.parse().ok().filter(|index| *index > 0)?;
        Some(Self { token, index })
    }

    /// Returns what programs of Slurm call its job: `12_3`. The number of one task of an array is that of the array, too.
    pub fn job_id(&self, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
        Some(format!("{}_{}", variable("SLURM_ARRAY_JOB_ID")?, self.index))
    }
}

impl fmt::Display for ArrayTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.token, self.index)
    }
}

impl FromStr for ArrayTask {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        let (token, index) = text.rsplit_once('_').ok_or(NoToken)?;
        let index = index.parse().ok().filter(|index| *index > 0).ok_or(NoToken)?;
        Ok(Self { token: token.parse()?, index })
    }
}

/// The fields of a line of squeue: job, name, state, nodes, reason. Only the last one may hold any text.
pub(super) const FORMAT: &str = "%i|%j|%T|%N|%r";

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It waits.
    Pending,
    /// It runs, or is being started or ended.
    Running,
    /// It is over.
    Ended,
    /// This version of CompEval does not know the word.
    Unknown,
}

impl JobState {
    /// The state with a name of Slurm's.
    fn of_word(word: &str) -> Self {
        match word {
            "PENDING" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "RESV_DEL_HOLD"
            | "SPECIAL_EXIT" => Self::Pending,
            "RUNNING" | "CONFIGURING" | "COMPLETING" | "RESIZING" | "SIGNALING" | "STAGE_OUT"
            | "STOPPED" | "SUSPENDED" => Self::Running,
            "BOOT_FAIL" | "CANCELLED" | "COMPLETED" | "DEADLINE" | "FAILED" | "NODE_FAIL"
            | "OUT_OF_MEMORY" | "PREEMPTED" | "REVOKED" | "TIMEOUT" => Self::Ended,
            _ => Self::Unknown,
        }
    }
}

/// A line of squeue's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmJob {
    /// The number of the job, with that of the task: `12_3`.
    pub id: String,
    /// The name of its array.
    pub token: JobToken,
    /// The task, or `None` for all tasks of the array that have no line of their own. Slurm prints one line for those that
    /// were cancelled before they started.
    pub index: Option<u32>,
    /// Where it is.
    pub state: JobState,
    /// Slurm's name of that.
    pub word: String,
    /// The node, if it is on one.
    pub node: Option<String>,
    /// Why it waits or ended; `None` is a word, too.
    pub reason: String,
}

impl SlurmJob {
    /// Reads a line.
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.splitn(5, '|').map(str::trim);
        let (id, token) = (fields.next()?, fields.next()?.parse().ok()?);
        let (word, nodes, reason) = (fields.next()?, fields.next()?, fields.next()?);
        let index = id.split_once('_').map_or("", |(_, index)| index);
        let is_one = !nodes.is_empty() && !nodes.contains(['[', ',', '(']);
        Some(Self {
            id: id.to_owned(),
            token,
            index: index.parse().ok(),
            state: JobState::of_word(word),
            word: word.to_owned(),
            node: is_one.then(|| nodes.to_owned()),
            reason: reason.to_owned(),
        })
    }

    /// Reads the whole answer. Returns the first line that is not understood otherwise: then nothing is known.
    pub(super) fn read_all(text: &str) -> Result<Vec<Self>, &str> {
        // With several clusters there are titles between the lines.
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("CLUSTER:"));
        lines.map(|line| Self::read(line).ok_or(line)).collect()
    }

    /// How it ended, or where it is, in Slurm's words: `FAILED (NonZeroExitCode)`.
    pub fn description(&self) -> String {
        let is_said = !matches!(&*self.reason, "" | "None" | "N/A");
        let reason = if is_said { format!(" ({})", self.reason) } else { String::new() };
        format!("{}{reason}", self.word)
    }
}

/// An answer, by array and task.
pub(super) struct JobAnswer<'a>(BTreeMap<(&'a JobToken, Option<u32>), &'a SlurmJob>);

impl<'a> JobAnswer<'a> {
    pub(super) fn new(jobs: &'a [SlurmJob]) -> Self {
        Self(jobs.iter().map(|job| ((&job.token, job.index), job)).collect())
    }

    /// The line that is about a task.
    pub(super) fn of(&self, token: &'a JobToken, index: u32) -> Option<&'a SlurmJob> {
        self.0.get(&(token, Some(index))).or_else(|| self.0.get(&(token, None))).copied()
    }
}

/// Reads how a task ended from lines `JOB_TASK|STATE|...` of sacct.
pub(super) fn read_accounting(text: &str, task: &ArrayTask) -> Option<String> {
    let end = format!("_{}", task.index);
    let word = text.lines().find_map(|line| {
        let mut fields = line.split('|');
        fields.next().filter(|id| id.ends_with(&end)).and(fields.next())
    })?;
    // `CANCELLED by 1000`
    let word = word.split(' ').next()?;
    (JobState::of_word(word) == JobState::Ended).then(|| word.to_owned())
}

/// What a state means for a worker that had it, and what to try.
pub(super) fn meaning(word: &str) -> Option<&'static str> {
    Some(match word {
        "OUT_OF_MEMORY" => "it took more memory than it had; ask for more `memory`",
        "TIMEOUT" => "its time was over; ask for more `time`",
        "NODE_FAIL" | "BOOT_FAIL" => "its node failed",
        "PREEMPTED" => "a more important job took its place",
        "CANCELLED" | "REVOKED" => "somebody cancelled it",
        "DEADLINE" => "it could not end before its deadline",
        _ => return None,
    })
}

/// A worker ends its calls this long before Slurm kills it, or a quarter of its time limit. In the middle of that time, give or
/// take a minute, Slurm asks it to end.
const WARNING: Duration = Duration::from_secs(60);
/// The unit of sbatch's `--mem`.
const MEBIBYTE: u64 = 1 << 20;

/// So many workers, to be submitted under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerRequest {
    /// The name. It is used once, and must be written down before the submission begins.
    pub token: JobToken,
    /// The resources that each worker gets.
    pub resources: Resources,
    /// The number of workers, at least one.
    pub workers: u32,
    /// The nodes where they must not be started.
    pub exclude: Vec<String>,
}

/// A request, with all that the cluster has to know.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// The workers.
    pub request: &'a WorkerRequest,
    /// The user's settings.
    pub settings: &'a SlurmSettings,
    /// Where workers are started. It must exist on the nodes, too: Slurm tells nobody if it does not.
    pub directory: &'a Path,
    /// A directory for the logs of the workers. It must exist on the nodes, too.
    pub logs: &'a Path,
    /// The program that is a worker, and its arguments.
    pub command: &'a [OsString],
}

impl Submission<'_> {
    /// The arguments of sbatch.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let Self { request, settings, .. } = self;
        let token = &request.token;
        let limit = settings.walltime_for(&request.resources);
        let warning = WARNING.min(limit / 4).as_secs() / 2;
        let mut options = vec![
            "--parsable".to_owned(),
            // A worker that is lost is replaced by another one, under another name.
            "--no-requeue".to_owned(),
            format!("--job-name={token}"),
            format!("--comment={token}"),
            format!("--array=1-{}", request.workers),
            format!("--signal=B:TERM@{warning}"),
            format!("--time={}", limit.as_secs() / 60),
        ];
        options.extend(resource_options(&request.resources));
        options.extend(name_options(settings));
        let (mut exclude, mut further) = (Vec::new(), Vec::new());
        for option in &settings.options {
            match option.strip_prefix("--exclude=") {
                Some(nodes) => exclude.push(nodes),
                None => further.push(option.clone()),
            }
        }
        exclude.extend(request.exclude.iter().map(String::as_str));
        if !exclude.is_empty() {
            options.push(format!("--exclude={}", exclude.join(",")));
        }
        let paths = [
            option("--chdir=", self.directory.as_os_str()),
            option("--output=", log_pattern(self.logs, token).as_os_str()),
        ];
        options.into_iter().chain(further).map(OsString::from).chain(paths).collect()
    }

    /// The script of each worker. The worker takes the place of the shell, so that it gets Slurm's signals.
    ///
    /// `COMPEVAL_DEADLINE` is when the worker must end, in seconds since 1970. A prologue is read by a login shell, which knows
    /// `module`; if a line of it fails, no worker is started.
    pub(super) fn script(&self) -> Vec<u8> {
        let limit = self.settings.walltime_for(&self.request.resources);
        let limit = (limit - WARNING.min(limit / 4)).as_secs();
        let deadline = format!("export COMPEVAL_DEADLINE=$(($(date +%s) + {limit}))\n");
        script(&self.settings.prologue, &deadline, self.command)
    }

    /// The log of a worker.
    pub fn log(logs: &Path, task: &ArrayTask) -> PathBuf {
        logs.join(format!("{task}.log"))
    }
}

/// The options that ask for resources. What is `None` is left to the cluster.
fn resource_options(resources: &Resources) -> Vec<String> {
    let Resources { cpus, memory, gpus, nodes, tasks, exclusive, launcher: _, time: _ } = resources;
    let numbers = [("nodes", nodes), ("ntasks", tasks), ("cpus-per-task", cpus), ("gpus", gpus)];
    let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, (*number)?)));
    let mut options: Vec<_> = numbers.map(|(name, number)| format!("--{name}={number}")).collect();
    match memory {
        Some(bytes) => options.push(format!("--mem={}M", bytes.div_ceil(MEBIBYTE))),
        // Who has a host alone may use its memory: 0 is all of it.
        None if *exclusive => options.push("--mem=0".to_owned()),
        None => {}
    }
    if *exclusive {
        options.push("--exclusive".to_owned());
    }
    options
}

/// The options that say where and for whom jobs run. What is `None` is left to the cluster.
fn name_options(settings: &SlurmSettings) -> Vec<String> {
    let names = [
        ("partition", &settings.partition),
        ("account", &settings.account),
        ("qos", &settings.qos),
        ("constraint", &settings.constraint),
    ];
    let names = names.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    names.map(|(name, value)| format!("--{name}={value}")).collect()
}

pub(super) fn option(name: &str, value: &OsStr) -> OsString {
    let mut option = OsString::from(name);
    option.push(value);
    option
}

/// Where Slurm writes the output of each worker: [`Submission::log`], as a pattern of Slurm's.
fn log_pattern(logs: &Path, token: &JobToken) -> OsString {
    let mut pattern = verbatim(logs.as_os_str());
    pattern.push(format!("/{token}_%a.log"));
    pattern
}

/// A pattern of Slurm's that is this path.
fn verbatim(path: &OsStr) -> OsString {
    let mut pattern = Vec::new();
    for byte in path.as_bytes() {
        pattern.extend(if *byte == b'%' { &b"%%"[..] } else { std::slice::from_ref(byte) });
    }
    OsString::from_vec(pattern)
}

/// Quotes a word for a shell.
fn quoted(word: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in word {
        quoted.extend(if *byte == b'\'' { &b"'\\''"[..] } else { std::slice::from_ref(byte) });
    }
    quoted.push(b'\'');
    quoted
}

/// The signal that asks a job to submit itself again: SIGUSR1.
pub const HANDOVER: u8 = 10;

/// How long before its time is over a job is asked, or half of its time.
const NOTICE: Duration = Duration::from_secs(120);

/// A run, with all that the cluster has to know.
#[derive(Clone, Copy, Debug)]
pub struct RunJob<'a> {
    /// The name of all its jobs.
    pub token: &'a JobToken,
    /// The user's settings.
    pub settings: &'a SlurmSettings,
    /// Where it is started. It must exist on the nodes, too.
    pub directory: &'a Path,
    /// The file that all its jobs print to.
    pub log: &'a Path,
    /// The program that is the run, and its arguments.
    pub command: &'a [OsString],
}

impl RunJob<'_> {
    /// The arguments of sbatch.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let Self { token, settings, .. } = self;
        let limit = settings.run_walltime();
        let notice = NOTICE.min(limit / 2).as_secs();
        let mut options = vec![
            "--parsable".to_owned(),
            // It goes on where it was, if its node goes down.
            "--requeue".to_owned(),
            format!("--job-name={token}"),
            format!("--comment={token}"),
            "--dependency=singleton".to_owned(),
            "--ntasks=1".to_owned(),
            "--cpus-per-task=1".to_owned(),
            "--open-mode=append".to_owned(),
            format!("--signal=B:USR1@{notice}"),
            format!("--time={}", limit.as_secs() / 60),
        ];
        options.extend(name_options(settings));
        let paths = [
            option("--chdir=", self.directory.as_os_str()),
            option("--output=", verbatim(self.log.as_os_str()).as_os_str()),
        ];
        let further = settings.options.iter().cloned();
        options.into_iter().chain(further).map(OsString::from).chain(paths).collect()
    }

    /// The script. The run takes the place of the shell, so that it gets Slurm's signals.
    pub(super) fn script(&self) -> Vec<u8> {
        script(&self.settings.prologue, "", self.command)
    }
}

/// A script that executes a command in the place of its shell, after some lines of its own and the prologue.
fn script(prologue: &[String], first: &str, command: &[OsString]) -> Vec<u8> {
    let shell = if prologue.is_empty() { "#!/bin/sh" } else { "#!/bin/bash -l" };
    let mut script = format!("{shell}\n{first}").into_bytes();
    if !prologue.is_empty() {
        script.extend(format!("set -e\n{}\n", prologue.join("\n")).bytes());
    }
    script.extend(b"exec");
    for word in command {
        script.push(b' ');
        script.extend(quoted(word.as_bytes()));
    }
    script.push(b'\n');
    script
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn tokens_are_different_and_read_again() {
        let [one, two] = [(); 2].map(|()| JobToken::random().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.as_str().parse(), Ok(one.clone()));
        for wrong in
            ["", "ce-", "ce-00000000000000zz", "xx-0000000000000000", "ce-0000000000000000,ce"]
        {
            assert_eq!(wrong.parse::<JobToken>(), Err(NoToken), "{wrong}");
        }
    }

    fn task(name: &str, index: &str) -> Option<ArrayTask> {
        ArrayTask::from_environment(|variable| match variable {
            "SLURM_JOB_NAME" => Some(name.to_owned()),
            "SLURM_ARRAY_TASK_ID" => Some(index.to_owned()),
            _ => None,
        })
    }

    #[test]
    fn a_worker_knows_which_task_it_is() {
        let known = task("ce-0123456789abcdef", "12").map(|task| task.to_string());
        assert_eq!(known.as_deref(), Some("ce-0123456789abcdef_12"));
        let task_of_ours = task("ce-0123456789abcdef", "12").unwrap();
        let id = task_of_ours
            .job_id(|variable| (variable == "SLURM_ARRAY_JOB_ID").then(|| "71".to_owned()));
        assert_eq!(id.as_deref(), Some("71_12"));
        assert_eq!(task("bash", "12"), None, "somebody else's job");
        assert_eq!(task("ce-0123456789abcdef", "0"), None);
        assert_eq!(ArrayTask::from_environment(|_| None), None);
    }

    const ANSWER: &str = "CLUSTER: here\n\
        3_1|ce-0000000000000003|RUNNING|n1|None\n\
        3_2|ce-0000000000000003|FAILED|n2|JobLaunchFailure\n\
        3|ce-0000000000000003|CANCELLED||Resources\n\
        4_[1-7]|ce-0000000000000004|PENDING|n[1-2]|(a | b)\n\
        5_1|ce-0000000000000005|LATER||None\n";

    #[test]
    fn an_answer_is_read_line_by_line() {
        let jobs = SlurmJob::read_all(ANSWER).unwrap();
        let states: Vec<_> = jobs.iter().map(|job| (job.index, job.state)).collect();
        let ended = JobState::Ended;
        let first = [(Some(1), JobState::Running), (Some(2), ended), (None, ended)];
        assert_eq!(states[..3], first);
        assert_eq!(states[3..], [(None, JobState::Pending), (Some(1), JobState::Unknown)]);
        assert_eq!(jobs[1].node.as_deref(), Some("n2"));
        assert_eq!(jobs[1].description(), "FAILED (JobLaunchFailure)");
        assert_eq!((&*jobs[3].reason, &jobs[3].node), ("(a | b)", &None));
        let answer = JobAnswer::new(&jobs);
        let id = |index| answer.of(&jobs[0].token, index).map(|job| job.id.as_str());
        assert_eq!([id(1), id(2), id(3)], [Some("3_1"), Some("3_2"), Some("3")]);
        assert!(answer.of(&"ce-00000000000000ff".parse().unwrap(), 1).is_none());
    }

    #[test]
    fn an_answer_that_is_not_understood_says_nothing() {
        assert_eq!(SlurmJob::read_all("").unwrap(), []);
        for wrong in
            ["slurm_load_jobs error", "1_1|bash|RUNNING|n1|None", "1_1|ce-0000000000000001"]
        {
            assert_eq!(SlurmJob::read_all(wrong), Err(wrong));
        }
    }

    #[test]
    fn accounting_tells_how_a_task_ended() {
        let token: JobToken = "ce-0000000000000003".parse().unwrap();
        let end = |index| {
            let text = "3_1|OUT_OF_MEMORY|0:125\n3_11|RUNNING|0:0\n3_2|CANCELLED by 0|0:0\n";
            read_accounting(text, &ArrayTask { token: token.clone(), index })
        };
        assert_eq!([end(1), end(2)].map(Option::unwrap), ["OUT_OF_MEMORY", "CANCELLED"]);
        assert_eq!([end(11), end(4)], [None, None]);
    }

    fn request(resources: Resources) -> WorkerRequest {
        let token = "ce-0123456789abcdef".parse().unwrap();
        WorkerRequest { token, resources, workers: 3, exclude: vec!["n7".to_owned()] }
    }

    fn submission<'a>(
        request: &'a WorkerRequest,
        settings: &'a SlurmSettings,
        command: &'a [OsString],
    ) -> Submission<'a> {
        let (directory, logs) = (Path::new("/a b"), Path::new("/100%/logs"));
        Submission { request, settings, directory, logs, command }
    }

    #[test]
    fn options_say_all_that_is_known_and_nothing_else() {
        let settings = SlurmSettings {
            partition: Some("fast".to_owned()),
            options: ["--exclude=n1", "--mail-type=END"].map(str::to_owned).into(),
            ..SlurmSettings::default()
        };
        let plain = request(Resources::default());
        let options = submission(&plain, &settings, &[]).arguments();
        assert_eq!(
            options.join(OsStr::new(" ")),
            "--parsable --no-requeue --job-name=ce-0123456789abcdef --comment=ce-0123456789abcdef \
             --array=1-3 --signal=B:TERM@30 --time=60 --partition=fast --exclude=n1,n7 --mail-type=END \
             --chdir=/a b --output=/100%%/logs/ce-0123456789abcdef_%a.log"
        );
        let number = NonZeroU32::new(4);
        let all = Resources {
            cpus: number,
            memory: Some(MEBIBYTE + 1),
            time: Some(Duration::from_secs(7200)),
            gpus: number,
            nodes: number,
            tasks: number,
            launcher: None,
            exclusive: true,
        };
        let asked = resource_options(&all).join(" ");
        assert_eq!(asked, "--nodes=4 --ntasks=4 --cpus-per-task=4 --gpus=4 --mem=2M --exclusive");
        let options = submission(&request(all), &settings, &[]).arguments();
        assert!(options.contains(&"--time=125".into()), "{options:?}");
        let alone = Resources { exclusive: true, ..Resources::default() };
        assert_eq!(resource_options(&alone), ["--mem=0", "--exclusive"]);
    }

    #[test]
    fn the_worker_takes_the_place_of_the_script() {
        let request = request(Resources::default());
        let mut settings = SlurmSettings::default();
        let command = ["/it's/ce", "worker"].map(OsString::from);
        let script = |settings: &SlurmSettings| {
            String::from_utf8(submission(&request, settings, &command).script()).unwrap()
        };
        let deadline = "export COMPEVAL_DEADLINE=$(($(date +%s) + 3540))\n";
        let worker = "exec '/it'\\''s/ce' 'worker'\n";
        assert_eq!(script(&settings), format!("#!/bin/sh\n{deadline}{worker}"));
        settings.prologue = vec!["module load gcc".to_owned()];
        let prologue = "set -e\nmodule load gcc\n";
        assert_eq!(script(&settings), format!("#!/bin/bash -l\n{deadline}{prologue}{worker}"));
    }

    #[test]
    fn the_run_takes_the_place_of_a_small_script_that_is_told_before_its_time_is_over() {
        let token = &"ce-0123456789abcdef".parse().unwrap();
        let command = &["/it's/ce", "run", "--at", "1"].map(OsString::from)[..];
        let job = |settings: &SlurmSettings| {
            let (directory, log) = (Path::new("/a b"), Path::new("/100%/log"));
            let job = RunJob { token, settings, directory, log, command };
            let script = String::from_utf8(job.script()).unwrap();
            (job.arguments().join(OsStr::new(" ")).into_string().unwrap(), script)
        };
        let (options, script) = job(&SlurmSettings::default());
        assert_eq!(
            options,
            "--parsable --requeue --job-name=ce-0123456789abcdef --comment=ce-0123456789abcdef \
             --dependency=singleton --ntasks=1 --cpus-per-task=1 --open-mode=append \
             --signal=B:USR1@120 --time=1440 --chdir=/a b --output=/100%%/log"
        );
        assert_eq!(script, "#!/bin/sh\nexec '/it'\\''s/ce' 'run' '--at' '1'\n");
        let (options, script) = job(&SlurmSettings {
            run_walltime: Duration::from_secs(61),
            partition: Some("long".to_owned()),
            options: vec!["--mail-type=END".to_owned()],
            prologue: vec!["module load git".to_owned()],
            ..SlurmSettings::default()
        });
        let end = "--signal=B:USR1@60 --time=2 --partition=long --mail-type=END --chdir=/a b \
                   --output=/100%%/log";
        assert!(options.ends_with(end), "{options}");
        let end = "'1'\n";
        assert!(script.starts_with("#!/bin/bash -l\nset -e\nmodule load git\nexec '/it"));
        assert!(script.ends_with(end), "{script}");
    }
}
