//! Completions: a shell asks a program for the ways to complete the word that is being typed.
//!
//! The scripts that `ce completions` prints start the program with a hidden first argument. It prints an [`Answer`], which
//! is empty after an error. Paths are left to the shell, which knows its user's habits. The line is split as a shell does
//! it; a [`Cursor`] says which argument the word gives.
//!
//! Values of arguments are revisions, inputs and computations of the task, and what clap knows.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use super::options::task_around;
use ce_files::cache::Cache;
use ce_git::{Config, references};
use ce_model::name::ComputationName;
use ce_model::plan::{call_names, factor_texts};
use ce_model::task::Task;
use ce_queries::table::all_sweeps;
use ce_storage::{Maintenance, NameKind, Storage};
use ce_task::load::{self, Uncommitted, computation_places, input_names};
use clap::builder::StyledStr;
use clap::{Arg, Command, ValueHint};
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
        Shell::Bash => include_str!("complete/bash.sh"),
        Shell::Zsh => include_str!("complete/zsh.sh"),
        Shell::Fish => include_str!("complete/fish.fish"),
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
/// replaced; others the words after the program's name; the last one is being typed.
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
        (Some("zsh"), words) => answer_lines(&answer(&command, words)),
        (Some("fish"), [.., last]) => {
            *last = unquoted(last.as_bytes());
            answer_lines(&answer(&command, &arguments))
        }
        _ => String::new(),
    };
    // The shell may have stopped reading.
    drop(io::stdout().write_all(text.as_bytes()));
    Some(ExitCode::SUCCESS)
}

/// A line for the paths, one for the text before them, and one for each candidate.
fn answer_lines(Answer { lead, candidates, paths }: &Answer) -> String {
    let candidates =
        candidates.iter().map(|(text, description)| format!("{lead}{text}\t{description}\n"));
    format!("{paths}\n{lead}\n") + &candidates.collect::<String>()
}

/// The same for Bash, which takes `=` and `:` for the ends of words and replaces only the rest: the rest of each candidate,
/// and before them a line each for the text that is not replaced, the beginning of a path, and the open quote.
fn for_bash(command: &Command, line: &OsStr, part: &OsStr) -> String {
    let (mut typed, quote) = split_words(line.as_bytes());
    typed.remove(0);
    let Answer { lead, candidates, paths } = answer(command, &typed);
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
fn split_words(line: &[u8]) -> (Vec<OsString>, Option<u8>) {
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
    split_words(word).0.pop().unwrap_or_default()
}

/// Quotes a text that goes on after an open quote, which the shell closes.
fn within(quote: Option<u8>, text: &str) -> String {
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
struct Cursor<'a> {
    /// The program, or its subcommand.
    command: &'a Command,
    /// The identifier and the value of each argument that was given before.
    given: Vec<(&'a str, &'a OsStr)>,
    /// The argument whose value is being typed; none within the name of an option, or if there is none.
    argument: Option<&'a Arg>,
    /// The beginning of the word up to that value: `--task=`.
    lead: &'a str,
    /// The beginning of the value, or the name of an option.
    text: &'a str,
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
    fn find(command: &'a Command, words: &'a [OsString]) -> Option<Self> {
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
    fn is_option(&self) -> bool {
        self.argument.is_none() && !self.escaped && self.text.starts_with('-')
    }

    /// Whether the name of a subcommand may be typed.
    fn is_subcommand(&self) -> bool {
        self.argument.is_none() && self.positions == 0 && !self.is_option()
    }

    /// Returns the value of an argument that was given before.
    fn given(&self, id: &str) -> Option<&'a OsStr> {
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

/// The greatest number of texts that a shell is offered.
const MOST_OFFERED: usize = 1000;

/// Returns the candidates for the last one of the words after the name of a program.
fn answer(command: &Command, words: &[OsString]) -> Answer {
    let Some(cursor) = Cursor::find(command, words) else { return Answer::default() };
    if cursor.is_option() {
        return Answer { candidates: option_candidates(cursor.command), ..Answer::default() };
    }
    if cursor.is_subcommand() {
        return Answer { candidates: subcommand_candidates(cursor.command), ..Answer::default() };
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
            "params" | "each" => self.texts_of_inputs(argument.get_id() == "each"),
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
            "results" | "paths" => {
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
            _ => values_of(argument, self.text),
        }
    }

    /// The first argument after options and revisions. It may also be an input, or the second revision.
    fn storage(&self) -> Answer {
        let mut answer = self.inputs();
        let configured = Config::read(&self.task()).and_then(|config| config.storage());
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
        let texts = |task: &Task| factor_texts(task).remove(name).unwrap_or_default();
        self.list(name, typed, "points", |task| texts(task).into_iter().collect())
    }

    /// The names of inputs, or the choices of one of them: one, or those that are not given yet.
    fn texts_of_inputs(&self, is_list: bool) -> Answer {
        let Some((name, typed)) = self.text.split_once('=') else {
            return Answer { paths: "", ..self.inputs() };
        };
        let choices = |task: &Task| {
            let input = task.inputs.iter().position(|input| input.as_str() == name);
            let choices = input.and_then(|input| task.choices[input].as_ref());
            choices.map(|choices| choices.levels(0).to_vec()).unwrap_or_default()
        };
        let answer = if is_list {
            self.list(name, typed, "choice", choices)
        } else {
            let all =
                |task: &Task| choices(task).iter().map(ToString::to_string).collect::<Vec<_>>();
            let answer = self.loaded(|task| described(all(task), "choice"));
            Answer { lead: format!("{name}="), ..answer }
        };
        if answer.candidates.is_empty() { Answer::default() } else { answer }
    }

    /// The texts of a name that are not in the list that is being typed.
    fn list(
        &self,
        name: &str,
        typed: &str,
        description: &str,
        texts: impl FnOnce(&Task) -> Vec<Arc<str>>,
    ) -> Answer {
        let (given, begun) = typed.split_at(typed.rfind(',').map_or(0, |comma| comma + 1));
        // A text with a comma cannot be typed, and one with a tab or a line end not be shown.
        let can_follow = |text: &String| {
            let is_plain = !text.contains(|c: char| c == ',' || c.is_control());
            is_plain && text.starts_with(begun) && !given.split(',').any(|it| it == text)
        };
        let answer = self.loaded(|task| {
            let texts = texts(task).into_iter().map(|text| text.to_string());
            described(texts.filter(can_follow).take(MOST_OFFERED), description)
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

    /// The storage that is given, or else the one in Git's configuration.
    fn opened(&self) -> Option<Storage> {
        let path = match ["storage", "paths"].into_iter().find(|id| self.given(id).is_some()) {
            Some(id) => self.dir(id),
            None => Config::read(&self.task()).ok()?.storage().ok()??,
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

/// The values of an argument, as far as clap knows them. For an argument such as SOURCE=REPO, the completed part is the
/// end.
fn values_of(argument: &Arg, text: &str) -> Answer {
    let is_named = argument.get_value_names().into_iter().flatten().any(|it| it.contains('='));
    let lead = match text.split_once('=') {
        _ if !is_named => String::new(),
        Some((name, _)) => format!("{name}="),
        None => return Answer::default(),
    };
    let possible = argument.get_value_parser().possible_values();
    let candidates = possible
        .into_iter()
        .flatten()
        .map(|it| (it.get_name().to_owned(), first_line(it.get_help())));
    let paths = match argument.get_value_hint() {
        ValueHint::DirPath => "directories",
        ValueHint::FilePath | ValueHint::AnyPath => "files",
        // A command.
        _ if argument.is_last_set() => "files",
        _ => "",
    };
    Answer { lead, candidates: candidates.collect(), paths }
}

/// The long options of a command, and then the short ones, with the first line of their help.
fn option_candidates(command: &Command) -> Vec<(String, String)> {
    let (mut long, mut short) = (Vec::new(), Vec::new());
    for argument in command.get_arguments().filter(|it| !it.is_hide_set()) {
        let help = first_line(argument.get_help());
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

/// The subcommands of a command, with the first line of their help.
fn subcommand_candidates(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    shown.map(|it| (it.get_name().to_owned(), first_line(it.get_about()))).collect()
}

/// The first line of a help text.
fn first_line(help: Option<&StyledStr>) -> String {
    let help = help.map(ToString::to_string).unwrap_or_default();
    help.lines().next().unwrap_or_default().to_owned()
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
                split_words(line.as_bytes()),
                (words.into_iter().map(Into::into).collect(), quote)
            );
        }
        assert_eq!(unquoted(br"my\ file"), "my file");
        assert_eq!(within(Some(b'"'), "a$b'"), r"a\$b'");
        assert_eq!(within(Some(b'\''), "a$b'"), r"a$b'\''");
    }
}
