//! The symptoms of a failed execution, gathered before its directories are emptied. Reads a bounded part of each.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use super::{Scene, log};
use crate::CallError;
use ce_executor::{
    ExecuteError, HEAD, Status, TAIL, head, installation, interpreter, is_shown, links, tail,
};
use ce_model::access::Rule;
use ce_model::declaration;
use ce_model::name::is_directory;
use ce_model::task::{Computation, WORKFLOW_TEXT};
use ce_storage::{PublishError, Stage};

/// The number of lines at the end of a log that are searched: as many as are shown.
const LINES: usize = 12;

/// The signal that cannot be caught.
const KILL: i32 = 9;

/// The least peak, in bytes, of a program that memory may have been too short for: the kernel chooses a large one.
const LARGE: u64 = 128 << 20;

/// The number of bytes of a script that are looked at.
const SCRIPT: u64 = 64 << 10;

/// The largest number of files of a directory that are looked at.
const FILES: usize = 1000;

/// The way in which an execution failed.
#[derive(Debug, Default)]
pub(super) enum Ending {
    /// A file that is needed to start `exec` is missing.
    NotStarted,
    /// `exec` ended by itself, with a status other than zero.
    #[default]
    Exited,
    /// `exec` ended with status zero, and an output is missing.
    NoOutput(MissingOutput),
    /// `exec` ended with status zero, and made a directory that should be a file: the output of this name.
    DirectoryMade(String),
    /// A signal that cannot be caught has killed `exec`, which had used so many bytes of memory: at least [`LARGE`].
    Killed(u64),
    /// In another way.
    Other,
}

/// An output that is missing.
#[derive(Debug, Default)]
pub(super) struct MissingOutput {
    pub(super) number: usize,
    /// Its symbolic name.
    pub(super) name: String,
    /// The number of the argument of `exec` that is its path, from 1.
    pub(super) argument: usize,
    /// The ending that a file beside it has after its name: `.npy`.
    pub(super) suffix: Option<String>,
    /// No other output is there.
    pub(super) is_alone: bool,
}

/// A program that is not in the `PATH` of an execution.
#[derive(Debug)]
pub(super) struct MissingProgram {
    pub(super) name: String,
    /// Its file in the `PATH` of this process.
    pub(super) found: Option<PathBuf>,
    /// The path that has to be granted for it, if it is not visible.
    pub(super) grant: Option<PathBuf>,
}

/// Everything that hints depend on.
#[derive(Debug, Default)]
pub(super) struct Symptoms {
    pub(super) ending: Ending,
    pub(super) isolated: bool,
    /// The name of the input that is its root.
    pub(super) root: Option<String>,
    /// `access` grants the network.
    pub(super) network: bool,
    /// The computation's directory in the task, or its file.
    pub(super) directory: String,
    /// The sign before `CE` in its declaration, if it is one file.
    pub(super) sign: Option<&'static str>,
    /// The rules that `access` may lack, as the executor says.
    pub(super) lacking: Vec<Rule>,
    /// The first line of `exec`, or the beginning of that.
    pub(super) first_line: String,
    /// The interpreter that it names, and the targets of the links that begin there.
    pub(super) interpreter: Vec<PathBuf>,
    /// The last of these does not exist on this host, or in the root.
    pub(super) no_interpreter: bool,
    /// The last lines that were printed.
    pub(super) log: String,
    /// The number of bytes that were printed.
    pub(super) printed: u64,
    /// A link that leads out of the computation and that the log mentions, and its target.
    pub(super) link: Option<(PathBuf, PathBuf)>,
    /// A program that the log says is missing.
    pub(super) program: Option<MissingProgram>,
    /// The Python environment that is active where this process was started.
    pub(super) environment: Option<PathBuf>,
    /// The files in the working directory, sorted.
    pub(super) left: Vec<String>,
    /// An output directory that exists already, according to the log: its number and name.
    pub(super) existing: Option<(usize, String)>,
    /// A file of the task that the log says is missing: its path.
    pub(super) task_file: Option<String>,
    /// A file of the task that is the Python module which the log says is missing.
    pub(super) task_module: Option<String>,
    /// A read-only file in the working directory that the log says may not be written.
    pub(super) read_only: Option<String>,
    /// An argument of the script whose number has two digits and no braces: `$10`.
    pub(super) two_digits: Option<String>,
    /// A shell has ended without a word, and nothing is known of how the call goes on.
    pub(super) is_silent: bool,
}

impl Symptoms {
    pub(super) fn gather(stage: &Stage<'_>, scene: &Scene<'_>, error: &CallError) -> Self {
        let Scene { computation, tree, isolated, .. } = *scene;
        let log = last_lines(&stage.log());
        let ending = ending(stage, computation, error);
        let script = head(&tree.join("exec"), SCRIPT).unwrap_or_default();
        let begin = &script[..script.len().min(HEAD as usize)];
        let is_file = !tree.join("outputs").exists();
        let mut directory = computation.place().display().to_string();
        if is_file && computation.file.is_none() {
            // A worker does not know the suffix.
            directory.push_str(".*");
        }
        if let Some(text) = computation.file_name().filter(|name| *name == WORKFLOW_TEXT) {
            directory = format!("the block of {} in {}", computation.name, text.display());
        }
        let is_own_end = matches!(ending, Ending::Exited | Ending::NoOutput(_));
        let task = scene.task.filter(|_| is_own_end);
        let is_shell = interpreter(begin).is_some_and(|path| is_shell(&path));
        let printed = stage.log().symlink_metadata().map_or(0, |log| log.len());
        let arguments = computation.inputs.len() + computation.outputs.len();
        let first = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let (interpreter, no_interpreter) = interpreters(begin, scene.root.as_deref());
        let link = match ending {
            Ending::Exited | Ending::NoOutput(_) => outward(scene, &log),
            Ending::NotStarted | Ending::DirectoryMade(_) | Ending::Killed(_) | Ending::Other => {
                None
            }
        };
        let left = match ending {
            Ending::NoOutput(_) => names_in(&stage.work()),
            _ => Vec::new(),
        };
        let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().find_map(env::var_os);
        Self {
            isolated,
            root: scene.root.as_ref().and(computation.access.root()).map(|it| it.name.clone()),
            network: computation.access.network(),
            directory,
            sign: declaration::sign(begin).filter(|_| is_file),
            lacking: lacking(error),
            first_line: String::from_utf8_lossy(first).into_owned(),
            no_interpreter,
            interpreter,
            printed,
            link,
            program: log::missing_program(&log).map(|name| program(name, computation)),
            environment: active.map(PathBuf::from).filter(|path| path.join("bin/python").exists()),
            left,
            existing: existing(stage, computation, &log),
            task_file: task.and_then(|task| task_file(task, &log)),
            task_module: task.and_then(|task| task_module(task, &log)),
            read_only: read_only(&stage.work(), &log).filter(|_| is_own_end),
            two_digits: two_digits(&script).filter(|_| is_own_end && is_shell && arguments > 9),
            is_silent: is_shell
                && printed == 0
                && matches!(ending, Ending::Exited)
                && !computation.access.suspends(),
            ending,
            log,
        }
    }
}

/// Returns the interpreter that a script names and where its links lead to, and whether the last of these
/// does not exist. In a root of its own, links are not followed one by one.
fn interpreters(script: &[u8], root: Option<&Path>) -> (Vec<PathBuf>, bool) {
    let named = interpreter(script);
    let found = match root {
        None => named.map(|path| links(&path)).unwrap_or_default(),
        Some(_) => Vec::from_iter(named),
    };
    let is_missing = found.last().is_some_and(|path| match root {
        None => !path.exists(),
        Some(root) => !root.join(path.strip_prefix("/").unwrap_or(path)).exists(),
    });
    (found, is_missing)
}

/// Whether a program is a shell.
fn is_shell(interpreter: &Path) -> bool {
    let name = interpreter.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    ["sh", "bash", "dash", "ksh", "zsh"].contains(&name)
}

/// The first argument of a script whose number has two digits and no braces.
fn two_digits(script: &[u8]) -> Option<String> {
    let script = String::from_utf8_lossy(script);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut places = script.match_indices('$').map(|(at, _)| &script[at..]);
    let found = places.find(|text| digits(&text[1..]) > 1)?;
    Some(found[..=digits(&found[1..])].to_owned())
}

/// A file of the task that a program has looked for in its working directory.
fn task_file(task: &Path, log: &str) -> Option<String> {
    let name = log::missing_file(log)?;
    // Some programs write a word before the name.
    let names = [name, name.rsplit(' ').next().unwrap_or(name)];
    let mut there = names.into_iter().filter(|name| is_inside(name) && task.join(name).exists());
    there.next().map(str::to_owned)
}

/// Whether a path leads from a directory to what is below it, judged by names.
fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

/// The file of the task that is a missing module of Python.
fn task_module(task: &Path, log: &str) -> Option<String> {
    let (language, name) = log::missing_package(log)?;
    let name = name.split('.').next().filter(|_| language == log::Language::Python)?;
    let files = ["", "computations/", "src/"].map(|dir| format!("{dir}{name}.py"));
    let packages = ["", "src/"].map(|dir| format!("{dir}{name}/__init__.py"));
    files.into_iter().chain(packages).find(|file| task.join(file).is_file())
}

/// A read-only file in a working directory that a program wants to write.
fn read_only(work: &Path, log: &str) -> Option<String> {
    let name = log::denied_file(log)?;
    let inside = name.strip_prefix("/tmp/").unwrap_or(name).trim_start_matches("./");
    let about = work.join(inside).symlink_metadata().ok().filter(|_| is_inside(inside))?;
    let is_closed = !about.is_symlink() && about.permissions().mode() & 0o200 == 0;
    is_closed.then(|| inside.to_owned())
}

fn ending(stage: &Stage<'_>, computation: &Computation, error: &CallError) -> Ending {
    match error {
        CallError::Ended(failed) if matches!(failed.status, Status::Exited(_)) => Ending::Exited,
        CallError::Ended(failed)
            if failed.status == Status::Killed(KILL) && failed.usage.peak >= LARGE =>
        {
            Ending::Killed(failed.usage.peak)
        }
        CallError::Execute(ExecuteError::Start { source, .. })
            if source.kind() == io::ErrorKind::NotFound =>
        {
            Ending::NotStarted
        }
        CallError::Publish(PublishError::NoOutput { number, output }) => {
            let (number, name) = (*number, output.clone());
            let places = stage.all_made(&computation.outputs);
            Ending::NoOutput(MissingOutput {
                number,
                name,
                argument: computation.inputs.len() + number + 1,
                suffix: stage.outputs().nth(number).and_then(|path| suffix(stage, number, &path)),
                is_alone: places.iter().all(|path| path.symlink_metadata().is_err()),
            })
        }
        CallError::Publish(PublishError::NotAFile { number, output }) => {
            let place = stage.all_made(&computation.outputs).into_iter().nth(*number);
            match place.is_some_and(|it| it.symlink_metadata().is_ok_and(|it| it.is_dir())) {
                true => Ending::DirectoryMade(output.clone()),
                false => Ending::Other,
            }
        }
        _ => Ending::Other,
    }
}

/// The first output directory that exists already, according to the log.
fn existing(stage: &Stage<'_>, computation: &Computation, log: &str) -> Option<(usize, String)> {
    if !log.contains("File exists") && !log.contains("already exists") {
        return None;
    }
    let mut outputs = computation.outputs.iter().enumerate();
    let (number, name) = outputs.find(|(number, name)| {
        let (inside, outside) = (format!("/outputs/{number:02}"), stage.made(*number, name, false));
        let outside = outside.to_string_lossy();
        is_directory(name) && (log.contains(&inside) || log.contains(&*outside))
    })?;
    Some((number, name.clone()))
}

/// Returns the ending that a file has after the name of an output, where that belongs or where a sandbox shows it.
fn suffix(stage: &Stage<'_>, number: usize, output: &Path) -> Option<String> {
    let outside = (stage.directory(), output.file_name()?.to_string_lossy().into_owned());
    let inside = (stage.outbox(), format!("{number:02}"));
    [outside, inside].into_iter().find_map(|(dir, name)| {
        let begin = format!("{name}.");
        let names = names_in(&dir);
        let longer = names.iter().find(|it| it.starts_with(&begin))?;
        Some(longer[name.len()..].to_owned())
    })
}

fn lacking(error: &CallError) -> Vec<Rule> {
    match error {
        CallError::Ended(failed) => failed.lacking.clone(),
        CallError::Execute(ExecuteError::Start { lacking, .. }) => lacking.clone(),
        _ => Vec::new(),
    }
}

fn last_lines(log: &Path) -> String {
    let end = tail(log, TAIL).unwrap_or_default();
    let end = String::from_utf8_lossy(&end);
    let lines: Vec<&str> = end.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// The names of files in a directory, sorted.
fn names_in(dir: &Path) -> Vec<String> {
    if !dir.symlink_metadata().is_ok_and(|it| it.is_dir()) {
        return Vec::new();
    }
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(FILES);
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut names: Vec<String> =
        files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Looks for a program in the directories where a shell of the user would.
fn program(name: &str, computation: &Computation) -> MissingProgram {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|dir| dir.join(name));
    let found = found.filter(|path| path.is_absolute()).find(|path| path.is_file());
    let grant = found.as_deref().map(installation);
    let grant = grant.filter(|path| !is_shown(&computation.access, path)).map(Path::to_owned);
    MissingProgram { name: name.to_owned(), found, grant }
}

/// The first link in a computation's directory that leads out of it to nothing that `exec` sees, and that
/// the log mentions; with its target.
fn outward(scene: &Scene<'_>, log: &str) -> Option<(PathBuf, PathBuf)> {
    let Scene { computation, tree, isolated, .. } = *scene;
    let mut rooms = vec![PathBuf::new()];
    let mut seen = 0;
    while let Some(room) = rooms.pop() {
        for entry in fs::read_dir(tree.join(&room)).into_iter().flatten().flatten() {
            seen += 1;
            if seen > FILES {
                return None;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let path = room.join(entry.file_name());
            if kind.is_dir() {
                rooms.push(path);
            } else if kind.is_symlink()
                && log::mentions(log, &entry.file_name().to_string_lossy())
                && let Ok(target) = fs::read_link(entry.path())
            {
                let seen = match isolated {
                    true => target.is_absolute() && is_shown(&computation.access, &target),
                    false => entry.path().exists(),
                };
                if !seen && leads_out(&room, &target) {
                    return Some((path, target));
                }
            }
        }
    }
    None
}

/// Whether a link in a directory of a tree leads out of the tree, judged by names.
fn leads_out(room: &Path, target: &Path) -> bool {
    let mut depth = room.components().count();
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_of_two_digits_has_braces() {
        let found = |script: &str| two_digits(script.as_bytes());
        assert_eq!(found("cat \"$1\" $10 > $x"), Some("$10".to_owned()));
        assert_eq!(found("cat $11"), Some("$11".to_owned()));
        assert_eq!(found("cat ${10} $1 $$ $"), None);
    }

    #[test]
    fn files_of_the_task_are_found_by_their_paths() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("data")).unwrap();
        fs::write(dir.path().join("data/x"), "").unwrap();
        fs::write(dir.path().join("helpers.py"), "").unwrap();
        let found = |log: &str| task_file(dir.path(), log);
        let absent = ": No such file or directory";
        assert_eq!(found(&format!("cat: data/x{absent}")), Some("data/x".to_owned()));
        assert_eq!(found(&format!("sed: can't read data/x{absent}")), Some("data/x".to_owned()));
        for name in ["data/y", "../x", "/etc/passwd"] {
            assert_eq!(found(&format!("cat: {name}{absent}")), None, "{name}");
        }
        let module = |name: &str| {
            task_module(dir.path(), &format!("ModuleNotFoundError: No module named '{name}'"))
        };
        assert_eq!(module("helpers.deep"), Some("helpers.py".to_owned()));
        assert_eq!(module("numpy"), None);
    }

    #[test]
    fn an_absolute_link_or_one_above_the_top_leads_out() {
        let leads = |room: &str, target: &str| leads_out(Path::new(room), Path::new(target));
        assert!(leads("", "../common") && leads("a", "../../x") && leads("a/b", "/data"));
        assert!(!leads("", "a/../b") && !leads("a", "../x") && !leads("", "./x"));
    }
}
