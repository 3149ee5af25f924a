//! The user's settings `compeval.slurm.*`.

use std::num::NonZeroU32;
use std::time::Duration;

use ce_model::exit::Explain;
use ce_model::humanize;
use ce_model::resources::Resources;

/// Slurm's unit of time limits, and the shortest one.
const MINUTE: Duration = Duration::from_secs(60);
/// The time of a worker beside its calls: until it has started, and to end.
const RESERVE: Duration = Duration::from_secs(5 * 60);
/// The longest time limit.
const YEAR: Duration = Duration::from_secs(365 * 86400);
/// The most workers in one job array: the limit of a Slurm that nobody has configured.
const MOST_PENDING: u32 = 1000;

/// A setting as it is written.
#[derive(Clone, Copy, Debug)]
pub struct SlurmSetting<'a> {
    /// The name after `compeval.slurm.`; upper case counts as lower case.
    pub key: &'a str,
    /// The text.
    pub value: &'a str,
    /// Where it is written.
    pub place: &'a str,
}

/// A setting that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("compeval.slurm.{key} in {place} is {value:?}, {problem}")]
pub struct SlurmSettingError {
    /// The name after `compeval.slurm.`.
    pub key: String,
    /// The text.
    pub value: String,
    /// Where it is written.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to try.
    pub advice: String,
}

/// All settings that are wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct SlurmSettingsError(pub Vec<SlurmSettingError>);

impl Explain for SlurmSettingsError {
    fn hint(&self) -> Option<String> {
        self.0.first().map(|error| error.advice.clone())
    }
}

/// How workers are submitted. What is `None` is left to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmSettings {
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
    /// Lines of shell before the worker.
    pub prologue: Vec<String>,
    /// The most workers at once.
    pub workers: NonZeroU32,
    /// The time limit of a worker.
    pub walltime: Duration,
    /// The time limit of a run that is a job itself.
    pub run_walltime: Duration,
    /// The most workers at once that have not said hello yet.
    pub pending: NonZeroU32,
    /// The least time between two questions to Slurm.
    pub interval: Duration,
}

impl Default for SlurmSettings {
    fn default() -> Self {
        Self {
            partition: None,
            account: None,
            qos: None,
            constraint: None,
            options: Vec::new(),
            prologue: Vec::new(),
            workers: NonZeroU32::MIN.saturating_add(99),
            walltime: 60 * MINUTE,
            run_walltime: 24 * 60 * MINUTE,
            pending: NonZeroU32::MIN.saturating_add(3),
            interval: Self::SHORTEST_INTERVAL,
        }
    }
}

/// All names of settings.
const KEYS: [&str; 11] = [
    "partition",
    "account",
    "qos",
    "constraint",
    "options",
    "prologue",
    "workers",
    "walltime",
    "run-walltime",
    "pending",
    "interval",
];

/// Options of sbatch that CompEval gives itself, and what to use instead.
const OWN: [(&[&str], &str); 7] = [
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

type SettingProblem = (String, String);

impl SlurmSettings {
    /// The least time between two questions to Slurm that a user may set.
    pub const SHORTEST_INTERVAL: Duration = Duration::from_secs(2);

    /// Reads settings in the order of their places. Of two texts the later one counts; options and prologue are lists,
    /// which an empty text empties.
    ///
    /// # Errors
    ///
    /// Fails with all settings that are wrong.
    pub fn new<'a>(
        settings: impl IntoIterator<Item = SlurmSetting<'a>>,
    ) -> Result<Self, SlurmSettingsError> {
        let (mut read, mut errors) = (Self::default(), Vec::new());
        for SlurmSetting { key, value, place } in settings {
            let key = key.to_ascii_lowercase();
            if let Err((problem, advice)) = read.set(&key, value) {
                let (value, place) = (value.to_owned(), place.to_owned());
                errors.push(SlurmSettingError { key, value, place, problem, advice });
            }
        }
        if errors.is_empty() { Ok(read) } else { Err(SlurmSettingsError(errors)) }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SettingProblem> {
        match key {
            "partition" => self.partition = name(value, "compute")?,
            "account" => self.account = name(value, "physics")?,
            "qos" => self.qos = name(value, "normal")?,
            "constraint" => self.constraint = name(value, "skylake|icelake")?,
            "options" if value.is_empty() => self.options.clear(),
            "options" => self.options.push(option(value)?),
            "prologue" if value.is_empty() => self.prologue.clear(),
            "prologue" => self.prologue.push(line(value)?),
            "workers" => self.workers = number(value, u32::MAX)?,
            "pending" => self.pending = number(value, MOST_PENDING)?,
            "walltime" => self.walltime = duration(value, MINUTE, YEAR, "2h")?,
            "run-walltime" => self.run_walltime = duration(value, MINUTE, YEAR, "48h")?,
            "interval" => {
                self.interval = duration(value, Self::SHORTEST_INTERVAL, 60 * MINUTE, "30s")?;
            }
            _ => return Err(wrong("but there is no such setting", KEYS.join(", "))),
        }
        Ok(())
    }

    /// The time limit of workers for calls with these resources, in whole minutes: that of the settings, or enough for the time
    /// that a call asks for.
    pub fn walltime_for(&self, resources: &Resources) -> Duration {
        let asked = resources.time.map(|time| time.saturating_add(RESERVE));
        let least = asked.unwrap_or_default().max(self.walltime).min(YEAR);
        in_minutes(least)
    }

    /// The time limit of a run that is a job itself, in whole minutes.
    pub fn run_walltime(&self) -> Duration {
        in_minutes(self.run_walltime)
    }
}

/// The next whole number of minutes.
fn in_minutes(time: Duration) -> Duration {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    Duration::from_secs(seconds.next_multiple_of(MINUTE.as_secs()))
}

fn wrong(problem: &str, advice: impl Into<String>) -> SettingProblem {
    (problem.to_owned(), advice.into())
}

/// Reads a name of the cluster's; an empty one leaves the choice to the cluster.
fn name(text: &str, example: &str) -> Result<Option<String>, SettingProblem> {
    let is_name = text.chars().all(|c| c.is_ascii_graphic()) && !text.starts_with('-');
    match text {
        "" => Ok(None),
        _ if is_name => Ok(Some(text.to_owned())),
        _ => Err(wrong("which is no name: one word of ASCII", format!("a word such as {example}"))),
    }
}

/// Reads a line of shell.
fn line(text: &str) -> Result<String, SettingProblem> {
    if text.contains(['\n', '\0']) {
        return Err(wrong("which is not one line", "one setting for each line"));
    }
    Ok(text.to_owned())
}

/// Reads an option of sbatch.
fn option(text: &str) -> Result<String, SettingProblem> {
    let name = text.strip_prefix("--").map(|rest| rest.split('=').next().unwrap_or_default());
    let Some(name) = name.filter(|name| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            && !text.contains(['\n', '\0'])
    }) else {
        let advice = "--NAME or --NAME=VALUE, one setting for each option";
        return Err(wrong("which is no long option of sbatch", advice));
    };
    // sbatch accepts the beginning of a name for the name.
    let own = OWN.iter().find(|(names, _)| names.iter().any(|own| own.starts_with(name)));
    match own {
        Some((_, instead)) => {
            Err(wrong("an option that CompEval gives to sbatch itself", *instead))
        }
        None => Ok(text.to_owned()),
    }
}

fn number(text: &str, most: u32) -> Result<NonZeroU32, SettingProblem> {
    let number = text.parse::<NonZeroU32>().ok().filter(|number| number.get() <= most);
    let range = if most == u32::MAX { "1 or more".to_owned() } else { format!("1 to {most}") };
    number.ok_or_else(|| wrong("which is no such number", range))
}

fn duration(
    text: &str,
    least: Duration,
    most: Duration,
    example: &str,
) -> Result<Duration, SettingProblem> {
    let advice = format!("a time with its unit, such as {example}");
    let Ok(time) = humanize::parse_duration(text) else {
        return Err(wrong("which is no time", advice));
    };
    if time < least {
        let least = humanize::duration(least.as_secs_f64());
        return Err(wrong("which is too short", format!("{advice}, at least {least}")));
    }
    if time > most {
        let most = humanize::duration(most.as_secs_f64());
        return Err(wrong("which is too long", format!("{advice}, at most {most}")));
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, &str)]) -> Result<SlurmSettings, SlurmSettingsError> {
        let settings = settings.iter();
        SlurmSettings::new(settings.map(|(key, value)| SlurmSetting { key, value, place: "here" }))
    }

    #[test]
    fn the_last_text_counts_and_lists_grow() {
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
        assert_eq!(settings.prologue, ["module load gcc"]);
        assert_eq!((settings.workers.get(), settings.pending.get()), (3, 1000));
        let times = [settings.walltime, settings.run_walltime, settings.interval];
        assert_eq!(times.map(|time| time.as_secs()), [5400, 2 * 86400, 120]);
    }

    #[test]
    fn every_wrong_setting_is_told() {
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
                "compeval.slurm.pending in here is \"1001\", which is no such number; try: 1 to 1000",
            ),
            (10, "which is no time; try: a time with its unit, such as 2h"),
            (13, "which is too short; try: a time with its unit, such as 30s, at least 2.0 s"),
            (14, "but there is no such setting; try: partition, account, "),
        ] {
            assert!(texts[at].contains(text), "{}", texts[at]);
        }
    }

    #[test]
    fn the_time_limit_is_enough_for_a_call() {
        let settings = SlurmSettings { walltime: Duration::from_secs(90), ..<_>::default() };
        let minutes = |time| {
            let resources = Resources { time, ..Resources::default() };
            settings.walltime_for(&resources).as_secs() as f64 / 60.0
        };
        assert_eq!(minutes(None), 2.0);
        assert_eq!(minutes(Some(Duration::from_millis(1))), 6.0);
        assert_eq!(minutes(Some(Duration::from_secs(7200))), 125.0);
        assert_eq!(minutes(Some(Duration::MAX)), 365.0 * 1440.0);
    }
}
