//! Jobs as options of sbatch and as scripts: job arrays of workers, and runs that are jobs themselves. Starts no process.
//!
//! Before the time of a run is over, Slurm sends it [`HANDOVER`], and nobody else does: it submits itself again under the same name,
//! and ends. A job that is cancelled gets SIGTERM, and does not. All jobs of the run have one name, and only one of them runs at a time.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::jobs::{ArrayTask, JobToken};
use super::settings::SlurmSettings;
use ce_model::resources::Resources;

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
        let prologue = &self.settings.prologue;
        let shell = if prologue.is_empty() { "#!/bin/sh" } else { "#!/bin/bash -l" };
        let limit = self.settings.walltime_for(&self.request.resources);
        let limit = (limit - WARNING.min(limit / 4)).as_secs();
        let deadline = format!("export COMPEVAL_DEADLINE=$(($(date +%s) + {limit}))");
        let mut script = format!("{shell}\n{deadline}\n").into_bytes();
        if !prologue.is_empty() {
            script.extend(format!("set -e\n{}\n", prologue.join("\n")).bytes());
        }
        script.extend(b"exec");
        for word in self.command {
            script.push(b' ');
            script.extend(quoted(word.as_bytes()));
        }
        script.push(b'\n');
        script
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
        let prologue = &self.settings.prologue;
        let shell = if prologue.is_empty() { "#!/bin/sh" } else { "#!/bin/bash -l" };
        let mut script = format!("{shell}\n").into_bytes();
        if !prologue.is_empty() {
            script.extend(format!("set -e\n{}\n", prologue.join("\n")).bytes());
        }
        script.extend(b"exec");
        for word in self.command {
            script.push(b' ');
            script.extend(quoted(word.as_bytes()));
        }
        script.push(b'\n');
        script
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

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
