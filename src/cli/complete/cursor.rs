//! The place of a word in a command line: which argument it gives, and what the others have given.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

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
        let repeats = |it: &&Arg| it.get_num_args().is_some_and(|number| number.max_values() > 1);
        let at = others.get(self.positions).copied();
        at.or_else(|| others.last().copied().filter(repeats))
    }
}
