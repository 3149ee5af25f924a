//! The meaning of the end of a log, as interpreters, shells and libraries word it.

/// Languages with packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    R,
    Perl,
}

/// The words of programs that cannot look up a host, or reach it.
const UNREACHABLE: [&str; 7] = [
    "Temporary failure in name resolution",
    "Temporary failure resolving",
    "Name or service not known",
    "Could not resolve host",
    "could not resolve host",
    "unable to resolve host address",
    "Network is unreachable",
];

/// Words of complaints: a log that has one is not the output of a program.
const COMPLAINTS: [&str; 11] = [
    "error",
    "warning",
    "fail",
    "not found",
    "no such",
    "cannot",
    "can't",
    "denied",
    "invalid",
    "usage:",
    "traceback",
];

/// Returns the package that an interpreter could not find, and its language.
pub(super) fn missing_package(log: &str) -> Option<(Language, String)> {
    log.lines().rev().find_map(|line| {
        if let Some(name) = python_module(line) {
            return Some((Language::Python, unquoted(name)?));
        }
        if let Some((_, name)) = line.split_once("there is no package called ") {
            return Some((Language::R, unquoted(name)?));
        }
        let (name, _) = line.strip_prefix("Can't locate ")?.split_once(".pm in @INC")?;
        Some((Language::Perl, name.replace('/', "::")))
    })
}

/// Returns the end of a line that names a missing Python module, from that name on.
fn python_module(line: &str) -> Option<&str> {
    let (begin, name) = line.split_once(": No module named ")?;
    let program = begin.rsplit('/').next().unwrap_or(begin);
    let known = ["ModuleNotFoundError", "ImportError"].contains(&begin);
    (known || program.starts_with("python")).then_some(name)
}

/// Returns the word that a text begins with, without its quotes.
fn unquoted(text: &str) -> Option<String> {
    let text = text.trim_start_matches(['\'', '"', '‘', '`']);
    let name = text.split(|c: char| c.is_whitespace() || "'\"’`;,".contains(c)).next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Returns the program that `env` or a shell could not find in `PATH`.
pub(super) fn missing_program(log: &str) -> Option<&str> {
    let name =
        log.lines().rev().find_map(|line| program_of_env(line).or(program_of_shell(line)))?;
    (!name.contains('/') && !name.contains(char::is_whitespace)).then_some(name)
}

/// `env: ‘NAME’: No such file or directory`, also after `/usr/bin/`.
fn program_of_env(line: &str) -> Option<&str> {
    let (begin, rest) = line.split_once(": ")?;
    let name = rest.strip_suffix(": No such file or directory")?;
    (begin.rsplit('/').next() == Some("env")).then(|| name.trim_matches(['\'', '‘', '’']))
}

/// `SCRIPT: 3: NAME: not found` or `SCRIPT: line 3: NAME: command not found`.
fn program_of_shell(line: &str) -> Option<&str> {
    let line = line.strip_suffix(": command not found").or(line.strip_suffix(": not found"))?;
    let (begin, name) = line.rsplit_once(": ")?;
    let number = begin.rsplit(": ").next()?;
    let number = number.strip_prefix("line ").unwrap_or(number);
    (!number.is_empty() && number.bytes().all(|c| c.is_ascii_digit())).then_some(name)
}

/// The words of programs that cannot open a file.
const ABSENT: &str = "No such file or directory";
const DENIED: &str = "Permission denied";

/// Returns the last file that a program could not find.
pub(super) fn missing_file(log: &str) -> Option<&str> {
    log.lines().rev().find_map(|line| file_of(line, ABSENT))
}

/// Returns the last file that a program may not write, or read.
pub(super) fn denied_file(log: &str) -> Option<&str> {
    log.lines().rev().find_map(|line| file_of(line, DENIED))
}

/// The file that a line blames with these words, before or after them: `cat: x: WORDS`, `WORDS: 'x'`.
fn file_of<'a>(line: &'a str, words: &str) -> Option<&'a str> {
    let (before, behind) = line.split_once(words)?;
    let quotes = ['\'', '"', '‘', '’', '`'];
    let behind = behind.trim_start_matches(':').trim().trim_matches(quotes);
    let before = before.trim_end().trim_end_matches(':');
    let before = before.rsplit(": ").next().unwrap_or(before);
    let before = before.trim();
    let before = match before.strip_suffix(['\'', '’']) {
        Some(quoted) => quoted.rsplit(['‘', '\'']).next().unwrap_or(quoted),
        None => before,
    };
    [behind, before.trim_matches(quotes)].into_iter().find(|name| !name.is_empty())
}

/// Whether a script was run whose first line ends in a carriage return.
pub(super) fn names_carriage_return(log: &str) -> bool {
    let names = ["^M: bad interpreter", "\\r': No such file", "\\r’: No such file"];
    names.iter().any(|name| log.contains(name))
}

/// Whether a host could not be looked up or reached.
pub(super) fn is_unreachable(log: &str) -> bool {
    UNREACHABLE.iter().any(|words| log.contains(words))
}

/// Whether anything is complained of.
pub(super) fn complains(log: &str) -> bool {
    let log = log.to_lowercase();
    COMPLAINTS.iter().any(|word| log.contains(word))
}

/// Whether a word is a name, or part of a path, with or without the end of that after a dot.
pub(super) fn mentions(log: &str, name: &str) -> bool {
    let stem = name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(name);
    let parts = log.split(|c: char| !c.is_alphanumeric() && !"_-.".contains(c));
    parts.map(|part| part.trim_matches('.')).any(|part| part == name || part == stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_packages_are_found_in_messages_of_interpreters() {
        for (line, language, name) in [
            (
                "ModuleNotFoundError: No module named 'numpy.linalg'",
                Language::Python,
                "numpy.linalg",
            ),
            ("ImportError: No module named yaml", Language::Python, "yaml"),
            ("/usr/bin/python3: No module named pytest", Language::Python, "pytest"),
            ("Error in library(x) : there is no package called ‘ggplot2’", Language::R, "ggplot2"),
            (
                "Can't locate JSON/XS.pm in @INC (you may need to install the JSON::XS module)",
                Language::Perl,
                "JSON::XS",
            ),
        ] {
            let log = format!("before\n{line}\nafter");
            assert_eq!(missing_package(&log), Some((language, name.to_owned())), "{line}");
        }
        for line in ["using the fallback: No module named x", "Can't locate x", "no package"] {
            assert_eq!(missing_package(line), None, "{line}");
        }
    }

    #[test]
    fn files_are_found_in_messages_of_programs() {
        for (line, file) in [
            ("cat: data/x: No such file or directory", "data/x"),
            ("/computation/exec: line 5: data/a b: No such file or directory", "data/a b"),
            ("FileNotFoundError: [Errno 2] No such file or directory: 'data/x'", "data/x"),
            ("sed: can't read data/x: No such file or directory", "can't read data/x"),
            ("ls: cannot access 'data/x': No such file or directory", "data/x"),
        ] {
            assert_eq!(missing_file(&format!("before\n{line}\nafter\n")), Some(file), "{line}");
        }
        let denied = "PermissionError: [Errno 13] Permission denied: 'copy/x'";
        assert_eq!(denied_file(denied), Some("copy/x"));
        assert_eq!(missing_file("nothing"), None);
    }

    #[test]
    fn missing_programs_are_found_in_messages_of_env_and_shells() {
        for line in [
            "env: 'tool': No such file or directory",
            "/usr/bin/env: ‘tool’: No such file or directory",
            "/computation/exec: 3: tool: not found",
            "/computation/exec: line 3: tool: command not found",
        ] {
            assert_eq!(missing_program(line), Some("tool"), "{line}");
        }
        for line in [
            "cat: tool: No such file or directory",
            "key: tool: not found",
            "exec: 3: /opt/tool: not found",
            "tool: not found",
        ] {
            assert_eq!(missing_program(line), None, "{line}");
        }
    }

    #[test]
    fn a_log_mentions_a_name_only_as_a_whole_word() {
        for log in
            ["open '/computation/data/x'", "no module 'data'", "cat: data.csv: No such file."]
        {
            assert!(mentions(log, "data.csv") || mentions(log, "data"), "{log}");
        }
        assert!(mentions("No module named 'helper'", "helper.py"));
        assert!(!mentions("metadata of my-data", "data"));
    }
}
