//! Jobs: their options and scripts as sbatch takes them, and their states as squeue and sacct print them. Starts no process.
//!
//! A job array of workers, or a run that is a job itself. Before the time of a run is over, Slurm, and only Slurm,
//! sends it [`HANDOVER`]: it submits itself again under the same name, and ends. A job that is cancelled gets SIGTERM,
//! and does not. All jobs of the run have one name, and only one of them runs at a time.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

use super::SlurmSettings;
use crate::scheduler::{
    ArrayTask, JobState, JobToken, ScheduledJob, Submission, WARNING, memory_of_worker, script,
};
use ce_model::resources::Resources;

/// The fields of a line of squeue: job, name, state, nodes, reason. Only the last one may hold any text.
pub(super) const FORMAT: &str = "%i|%j|%T|%N|%r";

/// The state with a name of Slurm's.
fn state_of(word: &str) -> JobState {
    match word {
        "PENDING" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "RESV_DEL_HOLD"
        | "SPECIAL_EXIT" => JobState::Pending,
        "RUNNING" | "CONFIGURING" | "COMPLETING" | "RESIZING" | "SIGNALING" | "STAGE_OUT"
        | "STOPPED" | "SUSPENDED" => JobState::Running,
        "BOOT_FAIL" | "CANCELLED" | "COMPLETED" | "DEADLINE" | "FAILED" | "NODE_FAIL"
        | "OUT_OF_MEMORY" | "PREEMPTED" | "REVOKED" | "TIMEOUT" => JobState::Ended,
        _ => JobState::Unknown,
    }
}

/// Reads a line of squeue's answer.
fn read_job(line: &str) -> Option<ScheduledJob> {
    let mut fields = line.splitn(5, '|').map(str::trim);
    let (id, token) = (fields.next()?, fields.next()?.parse().ok()?);
    let (word, nodes, reason) = (fields.next()?, fields.next()?, fields.next()?);
    let index = id.split_once('_').map_or("", |(_, index)| index);
    let is_one = !nodes.is_empty() && !nodes.contains(['[', ',', '(']);
    Some(ScheduledJob {
        id: id.to_owned(),
        token,
        index: index.parse().ok(),
        state: state_of(word),
        word: word.to_owned(),
        node: is_one.then(|| nodes.to_owned()),
        reason: reason.to_owned(),
    })
}

/// Reads the whole answer. Returns the first line that is not understood otherwise: then nothing is known.
pub(super) fn read_jobs(text: &str) -> Result<Vec<ScheduledJob>, &str> {
    // With several clusters there are titles between the lines.
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("CLUSTER:"));
    lines.map(|line| read_job(line).ok_or(line)).collect()
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
    (state_of(word) == JobState::Ended).then(|| word.to_owned())
}

/// The unit of sbatch's `--mem`.
const MEBIBYTE: u64 = 1 << 20;

/// The arguments of sbatch for workers. Slurm asks them to end halfway between the end of their calls and the end of
/// the job, give or take a minute.
pub(super) fn arguments(submission: &Submission<'_>, settings: &SlurmSettings) -> Vec<OsString> {
    let Submission { request, directory, logs, .. } = submission;
    let token = &request.token;
    let limit = settings.common.walltime_for(&request.resources);
    let warning = WARNING.min(limit / 4).as_secs() / 2;
    let mut options = vec![
        "--parsable".to_owned(),
        // A lost worker is replaced by another one under another name.
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
        option("--chdir=", directory.as_os_str()),
        option("--output=", log_pattern(logs, token).as_os_str()),
    ];
    options.into_iter().chain(further).map(OsString::from).chain(paths).collect()
}

/// The options that ask for resources. The cluster decides about fields that are `None`; it has no options for the others.
fn resource_options(resources: &Resources) -> Vec<String> {
    let Resources { cpus, gpus, nodes, tasks, exclusive, .. } = resources;
    let numbers = [("nodes", nodes), ("ntasks", tasks), ("cpus-per-task", cpus), ("gpus", gpus)];
    let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, (*number)?)));
    let mut options: Vec<_> = numbers.map(|(name, number)| format!("--{name}={number}")).collect();
    match memory_of_worker(resources) {
        Some(bytes) => options.push(format!("--mem={}M", bytes.div_ceil(MEBIBYTE))),
        // A job that has a host alone may use its memory: 0 is all of it.
        None if *exclusive => options.push("--mem=0".to_owned()),
        None => {}
    }
    if *exclusive {
        options.push("--exclusive".to_owned());
    }
    options
}

/// The options that say where and for whom jobs run. The cluster decides about fields that are `None`.
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

/// Returns the file to which Slurm writes the output of each worker: [`Submission::log`], as a pattern of Slurm's.
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

/// The signal that asks a job to submit itself again: SIGUSR1.
pub const HANDOVER: u8 = 10;

/// The time before its limit at which a job is asked to submit itself again, or half of the limit.
const NOTICE: Duration = Duration::from_secs(120);

/// A run, with all that the cluster has to know.
#[derive(Clone, Copy, Debug)]
pub struct RunJob<'a> {
    /// The name of all its jobs.
    pub token: &'a JobToken,
    /// The user's settings.
    pub settings: &'a SlurmSettings,
    /// The directory in which it is started. It must exist on the nodes, too.
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
            // If its node goes down, it continues where it was.
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
        script(&self.settings.common.prologue, "", self.command)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::scheduler::{JobAnswer, WorkerRequest, WorkerSettings};

    const ANSWER: &str = "CLUSTER: here\n\
        3_1|ce-0000000000000003|RUNNING|n1|None\n\
        3_2|ce-0000000000000003|FAILED|n2|JobLaunchFailure\n\
        3|ce-0000000000000003|CANCELLED||Resources\n\
        4_[1-7]|ce-0000000000000004|PENDING|n[1-2]|(a | b)\n\
        5_1|ce-0000000000000005|LATER||None\n";

    #[test]
    fn an_answer_is_read_line_by_line() {
        let jobs = read_jobs(ANSWER).unwrap();
        let states: Vec<_> = jobs.iter().map(|job| (job.index, job.state)).collect();
        let ended = JobState::Ended;
        let first = [(Some(1), JobState::Running), (Some(2), ended), (None, ended)];
        assert_eq!(states[..3], first);
        assert_eq!(states[3..], [(None, JobState::Pending), (Some(1), JobState::Unknown)]);
        assert_eq!(jobs[1].node.as_deref(), Some("n2"));
        assert_eq!(jobs[1].description(), "FAILED (JobLaunchFailure)");
        assert_eq!((&*jobs[3].reason, &jobs[3].node), ("(a | b)", &None));
        let answer = JobAnswer::new(&jobs);
        let id = |index| answer.find_job(&jobs[0].token, index).map(|job| job.id.as_str());
        assert_eq!([id(1), id(2), id(3)], [Some("3_1"), Some("3_2"), Some("3")]);
        assert!(answer.find_job(&"ce-00000000000000ff".parse().unwrap(), 1).is_none());
    }

    #[test]
    fn an_answer_that_cannot_be_parsed_is_an_error() {
        assert_eq!(read_jobs("").unwrap(), []);
        for wrong in
            ["slurm_load_jobs error", "1_1|bash|RUNNING|n1|None", "1_1|ce-0000000000000001"]
        {
            assert_eq!(read_jobs(wrong), Err(wrong));
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

    fn options_of(request: &WorkerRequest, settings: &SlurmSettings) -> Vec<OsString> {
        let (directory, logs) = (Path::new("/a b"), Path::new("/100%/logs"));
        arguments(&Submission { request, directory, logs, command: &[] }, settings)
    }

    #[test]
    fn sbatch_options_have_all_settings_and_resources() {
        let settings = SlurmSettings {
            partition: Some("fast".to_owned()),
            options: ["--exclude=n1", "--mail-type=END"].map(str::to_owned).into(),
            ..SlurmSettings::default()
        };
        let plain = request(Resources::default());
        let options = options_of(&plain, &settings);
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
            exclusive: true,
            ..Resources::default()
        };
        let asked = resource_options(&all).join(" ");
        assert_eq!(asked, "--nodes=4 --ntasks=4 --cpus-per-task=4 --gpus=4 --mem=2M --exclusive");
        let limited =
            Resources { memory: Some(MEBIBYTE), last_memory: Some(MEBIBYTE), ..<_>::default() };
        assert_eq!(resource_options(&limited), ["--mem=129M"]);
        let options = options_of(&request(all), &settings);
        assert!(options.contains(&"--time=125".into()), "{options:?}");
        let alone = Resources { exclusive: true, ..Resources::default() };
        assert_eq!(resource_options(&alone), ["--mem=0", "--exclusive"]);
    }

    #[test]
    fn the_run_replaces_its_job_script_and_gets_a_signal_in_time() {
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
            common: WorkerSettings {
                prologue: vec!["module load git".to_owned()],
                ..WorkerSettings::default()
            },
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
