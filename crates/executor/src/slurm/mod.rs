//! Slurm: allocations for workers, and the steps in one that execute a call on several tasks.
//!
//! A worker is one task of a job array, whose name is a token. The token finds the jobs even if `sbatch` fails, so none is
//! submitted twice.
//!
//! [`SlurmSettings`] are the user's settings `compeval.slurm.*`. `client` asks Slurm by its programs. `sbatch_and_squeue`
//! writes their input, and reads their output. `allocation` describes the allocation of a worker.

mod allocation;
mod client;
mod sbatch_and_squeue;

use std::time::Duration;

use crate::scheduler::{
    MINUTE, Setting, SettingProblem, SettingsError, WorkerSettings, YEAR, in_minutes,
    read_duration, read_settings, wrong_setting,
};

pub use self::allocation::Allocation;
pub(super) use self::allocation::{StatusFiles, hidden, is_of_allocation};
pub use self::client::{Slurm, SlurmError, SlurmScheduler};
pub use self::sbatch_and_squeue::{HANDOVER, RunJob};

/// The settings for submitting workers. The cluster decides about fields that are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmSettings {
    /// The settings that all schedulers have.
    pub common: WorkerSettings,
    /// The partition, or several with commas.
    pub partition: Option<String>,
    /// The account that pays.
    pub account: Option<String>,
    /// The quality of service.
    pub qos: Option<String>,
    /// The features that nodes must have.
    pub constraint: Option<String>,
    /// Further options of sbatch, each `--NAME` or `--NAME=VALUE`.
    pub options: Vec<String>,
    /// The time limit of a run that is a job itself.
    pub run_walltime: Duration,
}

impl Default for SlurmSettings {
    fn default() -> Self {
        Self {
            common: WorkerSettings::default(),
            partition: None,
            account: None,
            qos: None,
            constraint: None,
            options: Vec::new(),
            run_walltime: 24 * 60 * MINUTE,
        }
    }
}

/// The names of settings that Slurm alone has.
const KEYS: [&str; 6] = ["partition", "account", "qos", "constraint", "options", "run-walltime"];

/// Options of sbatch that CompEval gives itself, and what to use instead.
const OWN_OPTIONS: [(&[&str], &str); 7] = [
    (&["partition"], "compeval.slurm.partition"),
    (&["account"], "compeval.slurm.account"),
    (&["qos"], "compeval.slurm.qos"),
    (&["constraint"], "compeval.slurm.constraint"),
    (&["time"], "compeval.slurm.walltime"),
    (
        &["cpus-per-task", "mem", "gpus", "nodes", "ntasks", "exclusive"],
        "files resources: they say what calls ask for",
    ),
    (
        &[
            "array",
            "chdir",
            "comment",
            "error",
            "help",
            "hold",
            "input",
            "job-name",
            "no-requeue",
            "output",
            "parsable",
            "quiet",
            "requeue",
            "signal",
            "test-only",
            "usage",
            "verbose",
            "version",
            "wait",
            "wrap",
        ],
        "nothing: workers need it as it is",
    ),
];

impl SlurmSettings {
    /// Reads settings in the order of their places. The later of two texts counts; options and prologue are lists, which an
    /// empty text empties.
    ///
    /// # Errors
    ///
    /// Fails with all settings that are wrong.
    pub fn new<'a>(settings: impl IntoIterator<Item = Setting<'a>>) -> Result<Self, SettingsError> {
        let mut read = Self::default();
        read_settings("slurm", settings, |key, value| read.set(key, value))?;
        Ok(read)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SettingProblem> {
        match key {
            "partition" => self.partition = read_name(value, "compute")?,
            "account" => self.account = read_name(value, "physics")?,
            "qos" => self.qos = read_name(value, "normal")?,
            "constraint" => self.constraint = read_name(value, "skylake|icelake")?,
            "options" if value.is_empty() => self.options.clear(),
            "options" => self.options.push(read_option(value)?),
            "run-walltime" => self.run_walltime = read_duration(value, MINUTE, YEAR, "48h")?,
            _ => self.common.set(key, value, &KEYS)?,
        }
        Ok(())
    }

    /// The time limit of a run that is a job itself, in whole minutes.
    pub fn run_walltime(&self) -> Duration {
        in_minutes(self.run_walltime)
    }
}

/// Reads a name of the cluster's; an empty one leaves the choice to the cluster.
fn read_name(text: &str, example: &str) -> Result<Option<String>, SettingProblem> {
    let is_name = text.chars().all(|c| c.is_ascii_graphic()) && !text.starts_with('-');
    match text {
        "" => Ok(None),
        _ if is_name => Ok(Some(text.to_owned())),
        _ => Err(wrong_setting(
            "which is not a name: one word of ASCII",
            format!("a word such as {example}"),
        )),
    }
}

/// Reads an option of sbatch.
fn read_option(text: &str) -> Result<String, SettingProblem> {
    let name = text.strip_prefix("--").map(|rest| rest.split('=').next().unwrap_or_default());
    let Some(name) = name.filter(|name| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            && !text.contains(['\n', '\0'])
    }) else {
        let advice = "--NAME or --NAME=VALUE, one setting for each option";
        return Err(wrong_setting("which is not a long option of sbatch", advice));
    };
    // sbatch accepts the beginning of a name for the name.
    let own = OWN_OPTIONS.iter().find(|(names, _)| names.iter().any(|own| own.starts_with(name)));
    match own {
        Some((_, instead)) => {
            Err(wrong_setting("an option that CompEval gives to sbatch itself", *instead))
        }
        None => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, &str)]) -> Result<SlurmSettings, SettingsError> {
        let settings = settings.iter();
        SlurmSettings::new(settings.map(|(key, value)| Setting { key, value, place: "here" }))
    }

    #[test]
    fn the_last_value_of_a_setting_counts_and_lists_grow() {
        assert_eq!(read(&[]), Ok(SlurmSettings::default()));
        let settings = read(&[
            ("partition", "slow"),
            ("PARTITION", "fast,slow"),
            ("account", "physics"),
            ("account", ""),
            ("options", "--gone"),
            ("options", ""),
            ("options", "--mail-type=END"),
            ("options", "--licenses=a:1,b c"),
            ("prologue", "module load gcc"),
            ("workers", "3"),
            ("pending", "1000"),
            ("walltime", "1h 30min"),
            ("run-walltime", "48h"),
            ("interval", "120s"),
        ]);
        let settings = settings.unwrap();
        assert_eq!(settings.partition.as_deref(), Some("fast,slow"));
        assert_eq!(settings.account, None);
        assert_eq!(settings.options, ["--mail-type=END", "--licenses=a:1,b c"]);
        let common = &settings.common;
        assert_eq!(common.prologue, ["module load gcc"]);
        assert_eq!((common.workers.get(), common.pending.get()), (3, 1000));
        let times = [common.walltime, settings.run_walltime, common.interval];
        assert_eq!(times.map(|time| time.as_secs()), [5400, 2 * 86400, 120]);
    }

    #[test]
    fn every_wrong_setting_is_reported() {
        let wrong = [
            ("partition", "two words"),
            ("qos", "--hold"),
            ("options", "-p debug"),
            ("options", "--job-name=mine"),
            ("options", "--job-n=mine"),
            ("options", "--Mail"),
            ("prologue", "one\ntwo"),
            ("workers", "0"),
            ("workers", "many"),
            ("pending", "1001"),
            ("walltime", "2"),
            ("walltime", "30s"),
            ("walltime", "9000h"),
            ("interval", "1s"),
            ("partiton", "fast"),
        ];
        let errors = read(&wrong).unwrap_err();
        let told: Vec<_> = errors.0.iter().map(|error| (&*error.key, &*error.value)).collect();
        assert_eq!(told, wrong);
        let texts: Vec<_> = errors.0.iter().map(|it| format!("{it}; try: {}", it.advice)).collect();
        for (at, text) in [
            (
                3,
                "compeval.slurm.options in here is \"--job-name=mine\", an option that CompEval gives to",
            ),
            (
                9,
                "compeval.slurm.pending in here is \"1001\", which is not such a number; try: 1 to 1000",
            ),
            (10, "which is not a time; try: a time with its unit, such as 2h"),
            (13, "which is too short; try: a time with its unit, such as 30s, at least 2.0 s"),
            (14, "but there is no such setting; try: partition, account, "),
        ] {
            assert!(texts[at].contains(text), "{}", texts[at]);
        }
    }
}
