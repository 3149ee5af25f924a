//! Any scheduler, by three commands of the user: one starts a worker and prints its id, one says which jobs wait or run,
//! and one cancels a job. They are given to a shell, after names in braces were replaced: `{script}` is the file that is to
//! be executed, in a directory of the user alone. It is the standard input of the start, too.
//!
//! A job that is not named is unknown, and may still wait or run. A job whose start has failed may run, too: its worker
//! finds some work or none, and ends.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::command_runner::{Client, CommandFailure, excerpt, last_lines};
use super::worker_jobs::word;
use super::{
    ArrayTask, BatchScheduler, CancelScope, JobState, JobToken, ScheduledJob, SchedulerError,
    SchedulerKind, Setting, SettingProblem, SettingsError, Submission, SubmitFailure,
    WorkerSettings, memory_of_worker, read_line, read_settings, wrong_setting,
};
use crate::executor::Reach;
use ce_files::state::{StateError, keep, own_directory, remove_left};
use ce_files::umask;
use ce_model::exit::Explain;
use ce_model::template::Template;

/// The names of the commands, as settings have them.
const COMMANDS: [&str; 3] = [START, POLL, CANCEL];
const START: &str = "start";
const POLL: &str = "poll";
const CANCEL: &str = "cancel";

/// The private directory of the scripts.
const SCRIPTS: &str = "workers";

/// The unit of `{memory}`.
const MEBIBYTE: u64 = 1 << 20;
/// The most characters of the id of a job.
const MAX_ID: usize = 256;
/// With this exit status, a start says that nothing was submitted, and that it is to be tried again: `EX_TEMPFAIL`.
const BUSY: i32 = 75;
/// The exit statuses of a shell for a missing command.
const NO_COMMAND: [i32; 2] = [126, 127];

/// The user's settings `compeval.scheduler.*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSettings {
    common: WorkerSettings,
    start: CommandTemplate,
    poll: CommandTemplate,
    cancel: CommandTemplate,
}

/// The reason why there are no commands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum CommandSettingsError {
    /// A setting is wrong.
    #[error(transparent)]
    #[hint(_0.hint())]
    Wrong(#[from] SettingsError),
    /// One of the commands is not there.
    #[error("compeval.scheduler.{0} is not set, and --on scheduler needs it")]
    #[hint(
        "git config --global compeval.scheduler.{_0} COMMAND, as doc/clusters.md has it for several schedulers"
    )]
    Missing(&'static str),
}

impl CommandSettings {
    /// Reads settings in the order of their places. The later of two texts counts; the prologue is a list, which an empty
    /// text empties.
    ///
    /// # Errors
    ///
    /// Fails with all settings that are wrong, or if a command is missing.
    pub fn new<'a>(
        settings: impl IntoIterator<Item = Setting<'a>>,
    ) -> Result<Self, CommandSettingsError> {
        let mut common = WorkerSettings::default();
        let mut commands: BTreeMap<&str, CommandTemplate> = BTreeMap::new();
        read_settings(CommandScheduler::KIND.word, settings, |key, value| {
            match COMMANDS.into_iter().find(|command| *command == key) {
                Some(command) => {
                    commands.insert(command, CommandTemplate::new(command, &read_line(value)?)?);
                }
                None => common.set(key, value, &COMMANDS)?,
            }
            Ok(())
        })?;
        let mut take = |name| commands.remove(name).ok_or(CommandSettingsError::Missing(name));
        Ok(Self { start: take(START)?, poll: take(POLL)?, cancel: take(CANCEL)?, common })
    }
}

/// A command of the user, with names in braces.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CommandTemplate {
    text: Template<String>,
    /// The names in the braces of the text, each with the word that stands for it where nothing is known.
    names: Vec<(&'static str, Option<String>)>,
}

impl CommandTemplate {
    fn new(command: &str, text: &str) -> Result<Self, SettingProblem> {
        let (known, required): (&[&'static str], _) = match command {
            START => {
                let of_call = ["cpus", "memory", "gpus", "minutes", "seconds"];
                (&[&["script", "name", "log"][..], &of_call].concat(), Some("script"))
            }
            POLL => (&["ids"], None),
            _ => (&["id"], Some("id")),
        };
        let mut names = Vec::new();
        let number = |braces: &str| {
            let (name, default) =
                braces.split_once('=').map_or((braces, None), |(name, it)| (name, Some(it)));
            let name = *known.iter().find(|known| **known == name)?;
            names.push((name, default.map(word)));
            Some(names.len() - 1)
        };
        let template = Template::new(text.to_owned(), number, Path::new(""));
        let advice = || {
            let names = known.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>();
            format!("{}; other braces have a blank: {{ print }}", names.join(", "))
        };
        // `{}` and `${a}` are for the shell.
        let is_mistyped = |name: &&str| {
            let is_name = !name.is_empty() && name.bytes().all(|it| it.is_ascii_lowercase());
            is_name && !text.contains(&format!("${{{name}}}"))
        };
        if let Some(unknown) = template.unknown().find(is_mistyped) {
            return Err(wrong_setting(
                &format!("in which {{{unknown}}} stands for nothing"),
                advice(),
            ));
        }
        if let Some(name) = required.filter(|it| names.iter().all(|(name, _)| name != it)) {
            return Err(wrong_setting(&format!("which has no {{{name}}}"), advice()));
        }
        if names.contains(&("memory", None)) {
            let problem = "which does not say how much memory a call has that asks for none";
            return Err(wrong_setting(problem, "{memory=2048}, in MiB"));
        }
        Ok(Self { text: template, names })
    }

    /// The command with these texts for its names. Each text is one word of the shell.
    fn fill(&self, text: impl Fn(&str) -> Option<String>) -> String {
        let texts: Vec<String> = (self.names.iter())
            .map(|(name, default)| text(name).or_else(|| default.clone()).unwrap_or_default())
            .collect();
        let filled = self.text.bind(|number| texts.get(number).map(String::as_str));
        filled.map_or_else(|never| match never {}, |text| text.written().clone())
    }
}

/// The reason why a command gave no answer.
#[derive(Debug, thiserror::Error, Explain)]
#[hint("this command in a shell, with a script and ids of your own")]
enum CommandError {
    /// It could not be started, or not be waited for.
    #[error("compeval.scheduler.{name} cannot be executed: {cause}; it is: {text}")]
    Executed {
        name: &'static str,
        /// It, as it is written.
        text: String,
        cause: io::Error,
    },
    /// It did not end in time.
    #[error("compeval.scheduler.{name} did not end within {} s; it is: {text}", limit.as_secs_f64())]
    TimedOut {
        name: &'static str,
        /// It, as it is written.
        text: String,
        /// The time that it had.
        limit: Duration,
    },
    /// It printed too much.
    #[error("compeval.scheduler.{name} printed more than 1 MiB, and was ended; it is: {text}")]
    TooMuchOutput {
        name: &'static str,
        /// It, as it is written.
        text: String,
    },
    /// The user did not want to wait any longer.
    #[error("{name} was interrupted")]
    #[hint(None)]
    Interrupted { name: &'static str },
    /// It ended without success.
    #[error("compeval.scheduler.{name} failed ({status}){said}; it is: {text}")]
    Failed {
        name: &'static str,
        /// It, as it is written.
        text: String,
        /// The status with which it ended.
        status: ExitStatus,
        /// The last lines of its error output, after a colon.
        said: String,
    },
    /// A start printed something else.
    #[error(
        "compeval.scheduler.{name} printed {printed:?}, and not the id of a job, one word{said}; it is: {text}"
    )]
    NoId {
        name: &'static str,
        /// It, as it is written.
        text: String,
        /// Its output.
        printed: String,
        /// The last lines of its error output, after a colon.
        said: String,
    },
}

impl From<CommandError> for SchedulerError {
    fn from(error: CommandError) -> Self {
        let failure = match &error {
            CommandError::Interrupted { .. } => SubmitFailure::Busy,
            CommandError::Failed { status, .. } => match status.code() {
                Some(BUSY) => SubmitFailure::Busy,
                Some(code) if NO_COMMAND.contains(&code) => SubmitFailure::Final,
                _ => SubmitFailure::Unclear,
            },
            _ => SubmitFailure::Unclear,
        };
        Self { text: error.to_string(), advice: error.hint(), failure }
    }
}

/// A scheduler that is asked by commands.
#[derive(Debug)]
pub struct CommandScheduler {
    settings: CommandSettings,
    client: Client,
    /// The ids of the jobs that were started, by their names.
    ids: Mutex<BTreeMap<JobToken, String>>,
    /// The private directory of the scripts of this run.
    scripts: OnceLock<PathBuf>,
}

impl CommandScheduler {
    /// The properties of this kind of scheduler. It has no job arrays: each scheduler has others.
    pub const KIND: SchedulerKind = SchedulerKind {
        word: "scheduler",
        name: "the scheduler",
        most_at_once: 1,
        reach: Reach::Process,
    };

    /// The scheduler with these commands.
    pub fn new(settings: CommandSettings) -> Self {
        let (client, ids, scripts) = Default::default();
        Self { settings, client, ids, scripts }
    }

    fn ids(&self) -> MutexGuard<'_, BTreeMap<JobToken, String>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the directory of the scripts, which is made if it is not there.
    fn scripts(&self, token: &JobToken) -> Result<&Path, StateError> {
        let dir = match self.scripts.get() {
            Some(dir) => dir,
            None => {
                let all = own_directory(SCRIPTS)?;
                remove_left(&all, |_| None);
                self.scripts.get_or_init(|| all.join(token.to_string()))
            }
        };
        let made = umask::create_private_dirs(dir);
        made.map(|()| &**dir).map_err(|source| StateError::Io { path: dir.to_owned(), source })
    }

    /// Executes a command with these texts for its names. Returns its standard output.
    fn run(
        &self,
        name: &'static str,
        input: &[u8],
        texts: impl Fn(&str) -> Option<String>,
    ) -> Result<String, CommandError> {
        let CommandSettings { start, poll, cancel, .. } = &self.settings;
        let template = match name {
            START => start,
            POLL => poll,
            _ => cancel,
        };
        // The command as it is written, so that the same failure has the same text for all jobs.
        let text = template.text.as_str().to_owned();
        let mut command = Command::new("sh");
        command.args(["-c", &template.fill(texts)]);
        let end = match self.client.run(&mut command, input) {
            Ok(end) => end,
            Err(CommandFailure::NotStarted(cause) | CommandFailure::Lost(cause)) => {
                return Err(CommandError::Executed { name, text, cause });
            }
            Err(CommandFailure::TimedOut) => {
                return Err(CommandError::TimedOut { name, text, limit: self.client.limit });
            }
            Err(CommandFailure::TooMuchOutput) => {
                return Err(CommandError::TooMuchOutput { name, text });
            }
            Err(CommandFailure::Stopped) => return Err(CommandError::Interrupted { name }),
        };
        let said = last_lines(end.stderr.lines().map(str::trim));
        let said = if said.is_empty() { said } else { format!(": {said}") };
        if !end.status.success() {
            return Err(CommandError::Failed { name, text, status: end.status, said });
        }
        if name == START && !is_id(end.stdout.trim()) {
            let printed = excerpt(&end.stdout);
            return Err(CommandError::NoId { name, text, printed, said });
        }
        Ok(end.stdout)
    }

    /// Returns which of these jobs wait or run.
    fn poll(&self, ids: &[String]) -> Result<HashSet<String>, CommandError> {
        let words: Vec<String> = ids.iter().map(|id| word(id)).collect();
        let printed = self.run(POLL, b"", |_| Some(words.join(" ")))?;
        let lines = printed.lines().filter_map(|line| line.split_whitespace().next());
        Ok(lines.map(str::to_owned).collect())
    }
}

impl BatchScheduler for CommandScheduler {
    fn kind(&self) -> SchedulerKind {
        Self::KIND
    }

    fn settings(&self) -> &WorkerSettings {
        &self.settings.common
    }

    fn submit(&self, submission: &Submission<'_>) -> Result<(), SchedulerError> {
        let Submission { request, logs, .. } = submission;
        let (token, resources) = (&request.token, &request.resources);
        let task = ArrayTask { token: token.clone(), index: 1 };
        let dir = self.scripts(token).map_err(|error| SchedulerError {
            text: error.to_string(),
            advice: error.hint(),
            failure: SubmitFailure::Final,
        })?;
        let script = dir.join(format!("{task}.sh"));
        let refused = |cause: &str| SchedulerError {
            text: format!("the script {} cannot be given to a command: {cause}", script.display()),
            advice: Some("set XDG_STATE_HOME to a directory of yours on another disk".to_owned()),
            failure: SubmitFailure::Final,
        };
        let path = script.to_str().ok_or_else(|| refused("its name is not UTF-8"))?;
        let text = submission.script(&self.settings.common);
        // In the storage, any user with write permission could replace it before it is executed.
        let file = File::options().write(true).create_new(true).mode(0o700).open(&script);
        let written = file.and_then(|mut file| file.write_all(&text));
        written.map_err(|cause| refused(&cause.to_string()))?;
        let limit = self.settings.common.walltime_for(resources).as_secs();
        let log = Submission::log(logs, &task);
        let printed = self.run(START, &text, |name| match name {
            "script" => Some(word(path)),
            "name" => Some(token.to_string()),
            "log" => log.to_str().map(word),
            "cpus" => Some(resources.cpus.map_or(1, Into::into).to_string()),
            "memory" => {
                memory_of_worker(resources).map(|bytes| bytes.div_ceil(MEBIBYTE).to_string())
            }
            "gpus" => Some(resources.gpus.map_or(0, Into::into).to_string()),
            "minutes" => Some((limit / 60).to_string()),
            "seconds" => Some(limit.to_string()),
            _ => None,
        })?;
        self.ids().insert(token.clone(), printed.trim().to_owned());
        Ok(())
    }

    fn jobs(&self, tokens: &[JobToken]) -> Result<Vec<ScheduledJob>, SchedulerError> {
        let ids: Vec<(JobToken, String)> = {
            let known = self.ids();
            let ids = tokens.iter().filter_map(|it| known.get_key_value(it));
            ids.map(|(token, id)| (token.clone(), id.clone())).collect()
        };
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.scripts.get().into_iter().for_each(|dir| keep(dir));
        let asked: Vec<String> = ids.iter().map(|(_, id)| id.clone()).collect();
        let there = self.poll(&asked)?;
        let there = ids.into_iter().filter(|(_, id)| there.contains(id));
        let jobs = there.map(|(token, id)| ScheduledJob {
            id,
            token,
            index: Some(1),
            state: JobState::Pending,
            word: String::new(),
            node: None,
            reason: String::new(),
        });
        Ok(jobs.collect())
    }

    fn cancel(&self, token: &JobToken, _: CancelScope) -> Result<(), SchedulerError> {
        // A start without an id may have succeeded nevertheless: its worker ends by itself.
        let Some(id) = self.ids().get(token).cloned() else { return Ok(()) };
        let Err(error) = self.run(CANCEL, b"", |_| Some(word(&id))) else { return Ok(()) };
        // It may have been over.
        match self.poll(std::slice::from_ref(&id)) {
            Ok(there) if !there.contains(&id) => Ok(()),
            _ => Err(SchedulerError { advice: self.cancel_by_hand(&[token]), ..error.into() }),
        }
    }

    fn cancel_by_hand(&self, tokens: &[&JobToken]) -> Option<String> {
        let ids = self.ids();
        let ids = tokens.iter().filter_map(|token| ids.get(*token));
        let commands: Vec<String> =
            ids.map(|id| self.settings.cancel.fill(|_| Some(word(id)))).collect();
        (!commands.is_empty()).then(|| commands.join("; "))
    }

    fn interrupt(&self) {
        self.client.interrupt();
    }
}

impl Drop for CommandScheduler {
    /// Removes the scripts: a worker that comes later has no run any more.
    fn drop(&mut self) {
        self.scripts.get().into_iter().for_each(|dir| drop(fs::remove_dir_all(dir)));
    }
}

/// Whether a text may be the id of a job: one word of limited length that does not look like an option.
fn is_id(text: &str) -> bool {
    (1..=MAX_ID).contains(&text.len())
        && !text.starts_with('-')
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, &str)]) -> Result<CommandSettings, CommandSettingsError> {
        let settings = settings.iter();
        CommandSettings::new(settings.map(|(key, value)| Setting { key, value, place: "here" }))
    }

    #[test]
    fn each_missing_command_is_an_error() {
        let all = [("start", "x {script}"), ("poll", "y"), ("cancel", "z {id}"), ("workers", "3")];
        assert_eq!(read(&all).unwrap().common.workers.get(), 3);
        for missing in 0..3 {
            let mut some = all.to_vec();
            let (name, _) = some.remove(missing);
            let error = read(&some).unwrap_err();
            let text = format!("compeval.scheduler.{name} is not set, and --on scheduler needs it");
            assert_eq!(error.to_string(), text);
        }
        for (key, value, problem) in [
            ("start", "x", "which has no {script}"),
            ("start", "x {script} {ids}", "in which {ids} stands for nothing"),
            ("start", "{script} {memory}", "which does not say how much memory a call has"),
            ("poll", "y {id}", "in which {id} stands for nothing"),
            ("cancel", "z", "which has no {id}"),
            ("cancel", "z\n{id}", "which is not one line"),
            ("options", "x", "but there is no such setting"),
        ] {
            let error = read(&[(key, value)]).unwrap_err();
            let text = format!("compeval.scheduler.{key} in here is {value:?}, {problem}");
            assert!(error.to_string().starts_with(&text), "{error}");
            assert!(error.hint().is_some());
        }
        let braces = "y | awk '{ print $1 }' ${a}b {} {A,B}";
        CommandTemplate::new(POLL, braces).unwrap();
    }

    #[test]
    fn each_inserted_text_is_one_word_of_the_shell() {
        let template = CommandTemplate::new(
            START,
            "printf '%s|' {script} {memory=2048}M {gpus=none} $(({cpus} * 2)) { }",
        );
        let command = template.unwrap().fill(|name| match name {
            "script" => Some(word("/a b/it's $HOME")),
            "cpus" => Some("4".to_owned()),
            _ => None,
        });
        let output = Command::new("sh").args(["-c", &command]).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed, "/a b/it's $HOME|2048M|none|8|{|}|");
    }

    #[test]
    fn an_id_is_one_word() {
        for id in ["12", "12.server", "node:4711", "12[].pbs"] {
            assert!(is_id(id), "{id}");
        }
        let long = "1".repeat(MAX_ID + 1);
        for text in ["", "job 12", "-9", "1\n2", "zw\u{f6}lf", &long] {
            assert!(!is_id(text), "{text}");
        }
    }
}
