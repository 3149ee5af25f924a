//! Completions: a shell asks a program what the word that is being typed may become.
//!
//! The scripts that `ce completions` prints start the program with a hidden first argument. It prints an
//! [`Answer`]; what goes wrong is an empty one. Paths are left to the shell, which knows its user's habits.
//! The line is split as a shell does it; a [`Cursor`] says which argument the word gives.

mod values;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;

use clap::{Arg, Command};
use clap_complete::Shell;

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
            *last = unquoted(last.as_bytes());
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
    let (mut typed, quote) = split(line.as_bytes());
    typed.remove(0);
    let Answer { lead, candidates, paths } = values::answer(command, &typed);
    let Some(word) = typed.last().and_then(|word| word.to_str()) else { return String::new() };
    let part = match quote {
        Some(_) => part.to_owned(),
        None => unquoted(part.as_bytes()),
    };
    let kept = part.to_str().and_then(|part| word.strip_suffix(part)).unwrap_or_default();
    let open = quote.map(|quote| char::from(quote).to_string()).unwrap_or_default();
    let candidates = candidates.into_iter().map(|(text, _)| format!("{lead}{text}"));
    let candidates = candidates
        .filter(|text| text.starts_with(word))
        .filter_map(|text| Some(within(quote, text.strip_prefix(kept)?) + "\n"));
    let path = word.strip_prefix(&lead).unwrap_or_default();
    let head = [paths, &lead, kept, path, &open, ""].join("\n");
    head + &candidates.collect::<String>()
}

/// Splits the beginning of a command line into words, without their quotes. The last word is the one that is
/// being typed, and may be empty. Returns the quote that is open at its end, too.
pub(super) fn split(line: &[u8]) -> (Vec<OsString>, Option<u8>) {
    let (mut words, mut word, mut begun, mut quote) = (Vec::new(), Vec::new(), false, None);
    let mut rest = line.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (Some(b'"'), b'\\') => {
                word.push(rest.next_if(|it| b"\"\\$`".contains(it)).unwrap_or(b'\\'));
            }
            (None, b'\\') => word.extend(rest.next()),
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b' ' | b'\t' | b'\n') => {
                if begun {
                    words.push(OsString::from_vec(std::mem::take(&mut word)));
                }
                begun = false;
                continue;
            }
            _ => word.push(byte),
        }
        begun = true;
    }
    words.push(OsString::from_vec(word));
    (words, quote)
}

/// Removes the quotes of a word.
fn unquoted(word: &[u8]) -> OsString {
    split(word).0.pop().unwrap_or_default()
}

/// Quotes a text that goes on after an open quote, which the shell closes.
pub(super) fn within(quote: Option<u8>, text: &str) -> String {
    match quote {
        Some(b'\'') => text.replace('\'', r"'\''"),
        Some(_) => {
            let mut quoted = String::with_capacity(text.len());
            for c in text.chars() {
                if r#""\$`"#.contains(c) {
                    quoted.push('\\');
                }
                quoted.push(c);
            }
            quoted
        }
        None => text.to_owned(),
    }
}

/// A word that is being typed, after others.
pub(super) struct Cursor<'a> {
    /// The program, or its subcommand.
    pub(super) command: &'a Command,
    /// The identifier and the value of each argument that was given before.
    pub(super) given: Vec<(&'a str, &'a OsStr)>,
    /// The argument whose value is being typed; none within the name of an option, or if there is none.
    pub(super) argument: Option<&'a Arg>,
    /// The beginning of the word up to that value: `--task=`.
    pub(super) lead: &'a str,
    /// The beginning of the value, or the name of an option.
    pub(super) text: &'a str,
    /// The number of positional arguments before it.
    positions: usize,
    /// All that follows `--` is positional.
    escaped: bool,
}

/// An option in a word.
struct OptionWord<'a> {
    /// The option, if it takes a value.
    argument: Option<&'a Arg>,
    /// The start of its value, if that is in the same word.
    value: Option<usize>,
}

impl<'a> Cursor<'a> {
    /// Finds the place of the last one of the words after the name of a program. That must be UTF-8.
    pub(super) fn find(command: &'a Command, words: &'a [OsString]) -> Option<Self> {
        let (last, before) = words.split_last()?;
        let (given, text) = (Vec::new(), last.to_str()?);
        let mut cursor =
            Self { command, given, argument: None, lead: "", text, positions: 0, escaped: false };
        for word in before {
            cursor.pass(word);
        }
        match cursor.option(last) {
            _ if cursor.argument.is_some() => {}
            Some(OptionWord { argument: Some(argument), value: Some(start) }) => {
                cursor.argument = Some(argument);
                (cursor.lead, cursor.text) = text.split_at(start);
            }
            None if text != "-" || cursor.escaped => cursor.argument = cursor.positional(),
            _ => {}
        }
        Some(cursor)
    }

    /// Whether the name of an option is being typed.
    pub(super) fn is_option(&self) -> bool {
        self.argument.is_none() && !self.escaped && self.text.starts_with('-')
    }

    /// Whether the name of a subcommand may be typed.
    pub(super) fn is_subcommand(&self) -> bool {
        self.argument.is_none() && self.positions == 0 && !self.is_option()
    }

    /// Returns the value of an argument that was given before.
    pub(super) fn given(&self, id: &str) -> Option<&'a OsStr> {
        self.given.iter().find(|(it, _)| *it == id).map(|(_, value)| *value)
    }

    fn pass(&mut self, word: &'a OsStr) {
        if let Some(argument) = self.argument.take() {
            self.given.push((argument.get_id().as_str(), word));
        } else if word == "--" && !self.escaped {
            self.escaped = true;
        } else if let Some(OptionWord { argument, value }) = self.option(word) {
            match (argument, value.and_then(|start| word.to_str()?.get(start..))) {
                (Some(argument), Some(value)) => {
                    self.given.push((argument.get_id().as_str(), value.as_ref()));
                }
                (argument, _) => self.argument = argument,
            }
        } else if self.positions == 0
            && let Some(command) = self.command.find_subcommand(word)
        {
            self.command = command;
        } else if let Some(argument) = self.positional() {
            self.given.push((argument.get_id().as_str(), word));
            self.positions += 1;
        }
    }

    /// The option in a word, if there is one.
    fn option(&self, word: &OsStr) -> Option<OptionWord<'a>> {
        let word = word.to_str().filter(|word| !self.escaped && word.len() > 1)?;
        let find = |is: &dyn Fn(&&Arg) -> bool| {
            self.command.get_arguments().find(is).filter(|it| it.get_action().takes_values())
        };
        if let Some(long) = word.strip_prefix("--") {
            let name = long.split('=').next();
            let argument = find(&|it| it.get_long() == name);
            return Some(OptionWord { argument, value: word.find('=').map(|at| at + 1) });
        }
        let letters = word.strip_prefix('-')?;
        let with_value = letters.char_indices().find_map(|(at, letter)| {
            Some((find(&|it| it.get_short() == Some(letter))?, 1 + at + letter.len_utf8()))
        });
        let Some((argument, end)) = with_value else {
            return Some(OptionWord { argument: None, value: None });
        };
        let end = if word[end..].starts_with('=') { end + 1 } else { end };
        let value = Some(end).filter(|end| *end < word.len());
        Some(OptionWord { argument: Some(argument), value })
    }

    /// The positional argument that comes next.
    fn positional(&self) -> Option<&'a Arg> {
        let (last, mut others): (Vec<&Arg>, Vec<&Arg>) =
            self.command.get_positionals().partition(|it| it.is_last_set());
        if self.escaped && !last.is_empty() {
            others = last;
        }
        if let Some(at) = others.get(self.positions) {
            return Some(at);
        }
        // The last one may be given several times.
        let last = others.last().copied();
        last.filter(|it| it.get_num_args().is_some_and(|number| number.max_values() > 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_a_shell_does() {
        for (line, words, quote) in [
            ("", vec![""], None),
            ("a  b", vec!["a", "b"], None),
            ("a ", vec!["a", ""], None),
            (r"a\ b 'c d' '' e", vec!["a b", "c d", "", "e"], None),
            (r#"x="a \"b\$ \c"#, vec![r#"x=a "b$ \c"#], Some(b'"')),
            (r"'it\s", vec![r"it\s"], Some(b'\'')),
            (r"a\", vec!["a"], None),
        ] {
            assert_eq!(
                split(line.as_bytes()),
                (words.into_iter().map(Into::into).collect(), quote)
            );
        }
        assert_eq!(unquoted(br"my\ file"), "my file");
        assert_eq!(within(Some(b'"'), "a$b'"), r"a\$b'");
        assert_eq!(within(Some(b'\''), "a$b'"), r"a$b'\''");
    }
}
