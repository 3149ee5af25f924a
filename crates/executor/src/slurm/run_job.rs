//! A run that is a job itself, as options of sbatch and as a script. Starts no process.
//!
//! Before its time is over, Slurm sends it [`HANDOVER`], and nobody else does: it submits itself again under the same name, and
//! ends. A job that is cancelled gets SIGTERM, and does not. All jobs of the run have one name, and only one of them runs at a time.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use super::settings::SlurmSettings;
use super::submission::{name_options, option, quoted, verbatim};
use super::token::JobToken;

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
    use std::ffi::OsStr;

    use super::*;

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
