//! Completions: a shell asks a program what the word that is being typed may become.
//!
//! The scripts that `ce completions` prints start the program with a hidden first argument. It prints an
//! [`Answer`]; what goes wrong is an empty one. Paths are left to the shell, which knows its user's habits.

mod cursor;
mod values;
mod words;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

use self::cursor::Cursor;

/// The hidden first argument.
const COMPLETE: &str = "--complete-word";

/// The words that a word may become.
#[derive(Default)]
struct Answer {
    /// The beginning of the word that none of the following includes: `--task=`.
    lead: String,
    /// Texts, each with a short description.
    candidates: Vec<(String, String)>,
    /// The paths that it may become, too: `files` of any kind, or `directories`.
    paths: &'static str,
}

/// Returns the script that makes a shell ask a program. For shells that cannot it has only the options.
pub(super) fn script(shell: Shell, mut command: Command) -> Vec<u8> {
    let script = match shell {
        Shell::Bash => include_str!("bash.sh"),
        Shell::Zsh => include_str!("zsh.sh"),
        Shell::Fish => include_str!("fish.fish"),
        _ => {
            let (name, mut text) = (command.get_name().to_owned(), Vec::new());
            clap_complete::generate(shell, &mut command, name, &mut text);
            return text;
        }
    };
    let name = command.get_name();
    let script = script.replace("FUNCTION", &format!("_{}", name.replace('-', "_")));
    script.replace("PROGRAM", name).replace("COMPLETE", COMPLETE).into()
}

/// Answers a shell, if the first argument is the hidden one.
///
/// The next one is the name of the shell. Bash adds the line up to the cursor, and the part of it that is
/// replaced; others the words after the program's name, of which the last one is being typed.
pub(super) fn hidden(
    command: &dyn Fn() -> Command,
    mut arguments: impl Iterator<Item = OsString>,
) -> Option<ExitCode> {
    if arguments.next()? != COMPLETE {
        return None;
    }
    let mut command = command();
    command.build();
    let (shell, mut arguments) = (arguments.next(), arguments.collect::<Vec<_>>());
    let text = match (shell.as_deref().and_then(OsStr::to_str), &mut arguments[..]) {
        (Some("bash"), [line, part]) => for_bash(&command, line, part),
        (Some("zsh"), words) => lines(&values::answer(&command, words)),
        (Some("fish"), [.., last]) => {
            *last = words::unquoted(last.as_bytes());
            lines(&values::answer(&command, &arguments))
        }
        _ => String::new(),
    };
    // The shell may have stopped reading.
    drop(io::stdout().write_all(text.as_bytes()));
    Some(ExitCode::SUCCESS)
}

/// A line for the paths, one for what comes before them, and one for each candidate.
fn lines(Answer { lead, candidates, paths }: &Answer) -> String {
    let candidates =
        candidates.iter().map(|(text, description)| format!("{lead}{text}\t{description}\n"));
    format!("{paths}\n{lead}\n") + &candidates.collect::<String>()
}

/// The same for Bash, which takes `=` and `:` for the ends of words and replaces only the rest: of the candidates
/// the rest, and before them a line each for what is not replaced, the beginning of a path, and the open quote.
fn for_bash(command: &Command, line: &OsStr, part: &OsStr) -> String {
    let (mut typed, quote) = words::split(line.as_bytes());
    typed.remove(0);
    let Answer { lead, candidates, paths } = values::answer(command, &typed);
    let Some(word) = typed.last().and_then(|word| word.to_str()) else { return String::new() };
    let part = match quote {
        Some(_) => part.to_owned(),
        None => words::unquoted(part.as_bytes()),
    };
    let kept = part.to_str().and_then(|part| word.strip_suffix(part)).unwrap_or_default();
    let open = quote.map(|quote| char::from(quote).to_string()).unwrap_or_default();
    let candidates = candidates.into_iter().map(|(text, _)| format!("{lead}{text}"));
    let candidates = candidates
        .filter(|text| text.starts_with(word))
        .filter_map(|text| Some(words::within(quote, text.strip_prefix(kept)?) + "\n"));
    let path = word.strip_prefix(&lead).unwrap_or_default();
    let head = [paths, &lead, kept, path, &open, ""].join("\n");
    head + &candidates.collect::<String>()
}
