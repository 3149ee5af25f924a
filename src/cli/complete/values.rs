//! The values of arguments: revisions, inputs and computations of the task, and what clap knows.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::builder::StyledStr;
use clap::{Arg, Command, ValueHint};

use super::{Answer, Cursor};
use crate::cli::options::task_around;
use ce_files::cache::Cache;
use ce_git::{Config, references};
use ce_model::name::ComputationName;
use ce_model::plan::{call_names, factor_texts};
use ce_model::task::Task;
use ce_queries::table::all_sweeps;
use ce_storage::{Maintenance, NameKind, Storage};
use ce_task::load::{self, Uncommitted, computation_places, input_names};

/// The greatest number of texts that a shell is offered.
const MOST: usize = 1000;

/// Returns the candidates for the last one of the words after the name of a program.
pub(super) fn answer(command: &Command, words: &[OsString]) -> Answer {
    let Some(cursor) = Cursor::find(command, words) else { return Answer::default() };
    if cursor.is_option() {
        return Answer { candidates: options(cursor.command), ..Answer::default() };
    }
    if cursor.is_subcommand() {
        return Answer { candidates: subcommands(cursor.command), ..Answer::default() };
    }
    let Some(argument) = cursor.argument else { return Answer::default() };
    let mut answer = cursor.values(argument);
    answer.lead.insert_str(0, cursor.lead);
    answer
}

impl Cursor<'_> {
    /// Returns the values of an argument. Arguments are known by their identifiers, which are the same in all programs.
    fn values(&self, argument: &Arg) -> Answer {
        let takes = |id| self.command.get_arguments().any(|it| it.get_id() == id);
        match argument.get_id().as_str() {
            "at" => Answer { candidates: revisions(&self.task()), ..Answer::default() },
            "good" | "bad" => {
                let within = self.given("within").unwrap_or_default();
                Answer { candidates: revisions(&self.task().join(within)), ..Answer::default() }
            }
            "versions" => self.versions(&self.task()),
            "range" => self.versions(&self.dir("repository")),
            "storage" if takes("inputs") => self.storage(),
            "inputs" => self.inputs(),
            "params" | "each" => Answer { lead: String::new(), paths: "", ..self.inputs() },
            "only" => self.loaded(|task| described(call_names(task), "call")),
            "sweep" => self.loaded(|task| {
                let names = all_sweeps(task).into_iter().flat_map(|sweep| sweep.names(task));
                described(names, "sweep")
            }),
            "wanted" => self.points(),
            "computation" => {
                let names = self.computations().into_iter().map(|(name, _)| name.to_string());
                Answer { candidates: described(names, "computation"), ..Answer::default() }
            }
            // Those that `ce cancel` takes are suspended.
            "calls" if argument.is_positional() && !takes("sample") => self.suspended(),
            "calls" if argument.is_positional() => self.results(NameKind::Call),
            "force" => {
                let mut answer = self.results(NameKind::Call);
                let names = self.computations().into_iter().map(|(name, _)| name.to_string());
                answer.candidates.extend(described(names, "computation"));
                answer
            }
            "call" | "revoke" => self.results(NameKind::Call),
            "job" => self.results(NameKind::Job),
            "file" | "files" if takes("storage") => self.results(NameKind::Output),
            "results" => {
                let mut answer = self.results(NameKind::Call);
                answer.candidates.extend(self.results(NameKind::Job).candidates);
                answer
            }
            "within" => {
                let places = self.computations().into_iter();
                let places = places.map(|(_, place)| place.display().to_string());
                let candidates = described(places, "computation");
                Answer { candidates, paths: "directories", ..Answer::default() }
            }
            _ => known(argument, self.text),
        }
    }

    /// The first argument after options and revisions. It may also be an input, or the second revision.
    fn storage(&self) -> Answer {
        let mut answer = self.inputs();
        let configured = Config::of(&self.task()).and_then(|config| config.storage());
        if answer.lead.is_empty() && !matches!(configured, Ok(Some(_))) {
            answer.paths = "directories";
        }
        if self.given("versions").is_some_and(|it| !it.as_bytes().windows(2).any(|it| it == b".."))
        {
            answer.candidates.extend(revisions(&self.task()));
        }
        answer
    }

    /// One revision, or the second one of two.
    fn versions(&self, dir: &Path) -> Answer {
        let lead =
            self.text.split_once("..").map_or("", |(first, _)| &self.text[..first.len() + 2]);
        Answer { lead: lead.to_owned(), candidates: revisions(dir), paths: "" }
    }

    /// The inputs of the task that are not given by name yet, or the file of one of them.
    fn inputs(&self) -> Answer {
        let at = self.given("at").and_then(OsStr::to_str);
        let names = input_names(&self.task(), at);
        let names: Vec<String> = names.iter().map(|name| format!("{name}=")).collect();
        if let Some(name) = names.iter().find(|name| self.text.starts_with(*name)) {
            return Answer { lead: name.clone(), candidates: Vec::new(), paths: "files" };
        }
        let names = names.into_iter().filter(|name| !self.gives(name) && !name.starts_with('-'));
        let candidates = names.map(|name| (name, "input".to_owned())).collect();
        Answer { lead: String::new(), candidates, paths: "files" }
    }

    /// Whether an input is given by name: by `NAME=`.
    fn gives(&self, name: &str) -> bool {
        self.given.iter().any(|(id, value)| {
            ["storage", "inputs", "params", "each"].contains(id)
                && value.as_bytes().starts_with(name.as_bytes())
        })
    }

    /// The names of factors, or the texts of one of them that are not given yet.
    fn points(&self) -> Answer {
        let Some((name, typed)) = self.text.split_once('=') else {
            return self.loaded(|task| {
                let names = factor_texts(task).into_keys().map(|name| name + "=");
                described(names, "name of points")
            });
        };
        let (given, begun) = typed.split_at(typed.rfind(',').map_or(0, |comma| comma + 1));
        // A text with a comma cannot be typed, and one with a tab or a line end not be shown.
        let can_follow = |text: &String| {
            let is_plain = !text.contains(|c: char| c == ',' || c.is_control());
            is_plain && text.starts_with(begun) && !given.split(',').any(|it| it == text)
        };
        let answer = self.loaded(|task| {
            let texts = factor_texts(task).remove(name).unwrap_or_default().into_iter();
            let texts = texts.map(|text| text.to_string()).filter(can_follow).take(MOST);
            described(texts, "points")
        });
        Answer { lead: format!("{name}={given}"), ..answer }
    }

    /// Answers with candidates from the task, as it is checked out or at the revision that is given.
    fn loaded(&self, candidates: impl FnOnce(&Task) -> Vec<(String, String)>) -> Answer {
        let cache = Cache::of_user();
        let loaded = match self.given("at") {
            Some(rev) => load::task_at(&self.task(), &rev.to_string_lossy(), cache.as_ref()),
            None => load::task(&self.task(), Uncommitted::Ignore, cache.as_ref()),
        };
        let candidates = loaded.map(|loaded| candidates(&loaded.task)).unwrap_or_default();
        Answer { candidates, ..Answer::default() }
    }

    /// The names of results in the storage, or a path to one of their files.
    fn results(&self, kind: NameKind) -> Answer {
        let description = match kind {
            NameKind::Call => "call",
            NameKind::Job => "job",
            NameKind::Output => "output",
        };
        let names = self
            .opened()
            .and_then(|storage| Maintenance::new(&storage).names_from(self.text, kind).ok());
        let names = names.unwrap_or_default().into_iter();
        let candidates = names.map(|name| (name, description.to_owned())).collect();
        Answer { lead: String::new(), candidates, paths: "files" }
    }

    /// The calls of the storage that are suspended.
    fn suspended(&self) -> Answer {
        let calls = self.opened().and_then(|storage| storage.suspensions().all().ok());
        let calls = calls.unwrap_or_default().into_iter();
        let candidates = calls.map(|call| (call.name.short(), "suspended".to_owned())).collect();
        Answer { lead: String::new(), candidates, paths: "files" }
    }

    /// The storage that is given, or else that of Git's configuration.
    fn opened(&self) -> Option<Storage> {
        let path = match self.given("storage") {
            Some(_) => self.dir("storage"),
            None => Config::of(&self.task()).ok()?.storage().ok()??,
        };
        Storage::existing(&path).ok()
    }

    fn computations(&self) -> Vec<(ComputationName, PathBuf)> {
        computation_places(&self.task())
    }

    /// The directory of the task, as the program will find it.
    fn task(&self) -> PathBuf {
        match self.given("task") {
            // `ce init` makes a task in its directory.
            None if self.given("dir").is_some() => self.dir("dir"),
            _ => task_around(self.dir("task")),
        }
    }

    /// The directory that an argument has given, or the current one.
    fn dir(&self, id: &str) -> PathBuf {
        let dir = Path::new(self.given(id).unwrap_or(OsStr::new(".")));
        match dir.strip_prefix("~") {
            Ok(inside) => std::env::home_dir().unwrap_or_default().join(inside),
            Err(_) => dir.into(),
        }
    }
}

/// Candidates that have the same description.
fn described(names: impl IntoIterator<Item = String>, description: &str) -> Vec<(String, String)> {
    names.into_iter().map(|name| (name, description.to_owned())).collect()
}

/// The revisions that have names, in the repository that a directory is in.
fn revisions(dir: &Path) -> Vec<(String, String)> {
    let names = references(dir).unwrap_or_default();
    names.into_iter().map(|(name, kind)| (name, kind.to_owned())).collect()
}

/// Returns the facts that clap knows of the values of an argument. Of one such as SOURCE=REPO, it knows the end.
fn known(argument: &Arg, text: &str) -> Answer {
    let is_named = argument.get_value_names().into_iter().flatten().any(|it| it.contains('='));
    let lead = match text.split_once('=') {
        _ if !is_named => String::new(),
        Some((name, _)) => format!("{name}="),
        None => return Answer::default(),
    };
    let possible = argument.get_value_parser().possible_values();
    let candidates =
        possible.into_iter().flatten().map(|it| (it.get_name().to_owned(), line(it.get_help())));
    let paths = match argument.get_value_hint() {
        ValueHint::DirPath => "directories",
        ValueHint::FilePath | ValueHint::AnyPath => "files",
        // A command.
        _ if argument.is_last_set() => "files",
        _ => "",
    };
    Answer { lead, candidates: candidates.collect(), paths }
}

fn options(command: &Command) -> Vec<(String, String)> {
    let (mut long, mut short) = (Vec::new(), Vec::new());
    for argument in command.get_arguments().filter(|it| !it.is_hide_set()) {
        let help = line(argument.get_help());
        if let Some(name) = argument.get_long() {
            long.push((format!("--{name}"), help.clone()));
        }
        if let Some(letter) = argument.get_short() {
            short.push((format!("-{letter}"), help));
        }
    }
    long.extend(short);
    long
}

fn subcommands(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    shown.map(|it| (it.get_name().to_owned(), line(it.get_about()))).collect()
}

/// The first line of a help text.
fn line(help: Option<&StyledStr>) -> String {
    let help = help.map(ToString::to_string).unwrap_or_default();
    help.lines().next().unwrap_or_default().to_owned()
}
