//! A computation that stands in the text of a workflow, and the file that it is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::declaration;
use crate::name::ComputationName;

/// The word between the inputs and the outputs in a head.
pub const ARROW: &str = "->";

/// The first line of a file whose block does not say what executes it.
const BASH: &str = "#!/bin/bash";

/// What follows the declaration in such a file: a command that fails ends it, also at the beginning of a pipe.
const STRICT: &str = "set -euo pipefail";

/// A computation in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextComputation {
    pub name: ComputationName,
    /// The names in its head.
    pub inputs: Vec<Box<str>>,
    pub outputs: Vec<Box<str>>,
    /// The lines of its block, without their indentation. There is a first and a last one, and neither is empty.
    pub block: Vec<Box<str>>,
    /// The numbers of the lines of the text, counted from one, where its head and its block begin.
    pub head_line: usize,
    pub block_line: usize,
}

/// The file that a computation in a text is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComputationFile {
    /// Its text. The id of its Git blob is the version of the computation, so it never changes for a given head and block.
    pub contents: String,
    /// For each of its lines, the number of the line of the workflow's text that it comes from. What no line of the block says
    /// comes from the head.
    pub lines: Vec<usize>,
}

impl TextComputation {
    /// The file that it is: what executes it, its declaration, and the rest of its block.
    pub fn file(&self) -> ComputationFile {
        let mut file = ComputationFile::default();
        let mut block = (self.block_line..).zip(&self.block).peekable();
        let own = block.next_if(|(_, line)| line.starts_with("#!"));
        match own {
            Some((number, line)) => file.push(number, line),
            None => file.push(self.head_line, BASH),
        }
        for (word, names) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            if !names.is_empty() {
                file.push(self.head_line, &format!("#CE {word}{}", written(names, |_| false)));
            }
        }
        while let Some((number, line)) = block.next_if(|(_, line)| declaration::is_line(line)) {
            file.push(number, line);
        }
        if own.is_none() {
            file.push(self.head_line, STRICT);
        }
        block.for_each(|(number, line)| file.push(number, line));
        file
    }

    /// Whether its language has comments that begin with `#`, in which a declaration can stand.
    pub fn has_hash_comments(&self) -> bool {
        self.language().is_none_or(|language| language.has_hash_comments)
    }

    /// The name of the program that executes it.
    pub fn program(&self) -> &str {
        interpreter(&self.block[0]).unwrap_or("bash")
    }

    fn language(&self) -> Option<&'static BlockLanguage> {
        LANGUAGES.iter().find(|it| it.programs.contains(&self.program()))
    }

    /// The name that a file in the library with these contents gets.
    pub fn file_name(&self) -> String {
        format!("{}.{}", self.name, self.language().map_or("sh", |it| it.suffix))
    }
}

impl ComputationFile {
    /// The line of the workflow's text that the last words of a program's log name, as Bash, other shells, Python and Perl name a line of
    /// the file that they execute.
    pub fn line_named_in(&self, log: &str) -> Option<usize> {
        let numbers = log.match_indices("/exec").filter_map(|(at, exec)| {
            let rest = log[at + exec.len()..].trim_start_matches(['"', '\'', ',', ':', ' ']);
            let rest = rest.strip_prefix("line ").unwrap_or(rest);
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..digits].parse::<usize>().ok()
        });
        self.lines.get(numbers.last()?.checked_sub(1)?).copied()
    }

    fn push(&mut self, number: usize, line: &str) {
        self.contents.extend([line, "\n"]);
        self.lines.push(number);
    }
}

impl fmt::Display for TextComputation {
    /// Writes it as it may stand in a text, its block indented by four spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // There, they would be something else.
        let is_odd = |name: &str| name == ARROW || name.starts_with(['#', ';', '=', '[']);
        let [inputs, outputs] = [&self.inputs, &self.outputs].map(|names| written(names, is_odd));
        writeln!(f, "{}:{inputs} {ARROW}{outputs}", self.name)?;
        for line in &self.block {
            let indent = if line.is_empty() { "" } else { "    " };
            writeln!(f, "{indent}{line}")?;
        }
        Ok(())
    }
}

/// Names as a declaration or a head has them, each behind a space: in quotes only if they would not be read back otherwise, or are odd.
fn written(names: &[Box<str>], is_odd: impl Fn(&str) -> bool) -> String {
    let write = |name: &str| {
        let needs_quotes = name.contains(|c: char| c == ',' || c.is_whitespace()) || is_odd(name);
        if needs_quotes { format!(" '{name}'") } else { format!(" {name}") }
    };
    names.iter().map(|name| write(name)).collect()
}

/// A language of blocks.
struct BlockLanguage {
    /// The names of the programs that execute it, without a version behind.
    programs: &'static [&'static str],
    suffix: &'static str,
    /// Whether `#` begins a comment. Otherwise no block may be in it.
    has_hash_comments: bool,
}

const fn language(
    programs: &'static [&'static str],
    suffix: &'static str,
    has_hash_comments: bool,
) -> BlockLanguage {
    BlockLanguage { programs, suffix, has_hash_comments }
}

/// The languages that are known. One that is not counts as having comments with `#`.
const LANGUAGES: [BlockLanguage; 25] = [
    language(&["python", "pypy"], "py", true),
    language(&["Rscript", "R", "littler"], "R", true),
    language(&["perl"], "pl", true),
    language(&["ruby"], "rb", true),
    language(&["julia"], "jl", true),
    language(&["awk", "gawk", "mawk"], "awk", true),
    language(&["sed"], "sed", true),
    language(&["gnuplot"], "gp", true),
    language(&["octave"], "m", true),
    language(&["tclsh"], "tcl", true),
    language(&["php"], "php", true),
    language(&["fish"], "fish", true),
    language(&["make"], "mk", true),
    language(&["jq"], "jq", true),
    language(&["lua", "luajit"], "lua", false),
    language(&["node", "nodejs", "bun"], "js", false),
    language(&["deno", "ts-node", "tsx"], "ts", false),
    language(&["guile"], "scm", false),
    language(&["racket"], "rkt", false),
    language(&["sbcl", "clisp"], "lisp", false),
    language(&["runghc", "runhaskell", "ghc"], "hs", false),
    language(&["ocaml"], "ml", false),
    language(&["escript"], "erl", false),
    language(&["swipl"], "pl", false),
    language(&["rust-script", "tcc", "java"], "src", false),
];

/// The name of the program that executes a file with this first line, without its version; `None` if the line does not say it.
pub fn interpreter(line: &str) -> Option<&str> {
    let words = line.strip_prefix("#!")?.split_whitespace();
    // Behind `env` may stand options and variables.
    let words = words.filter(|word| !word.starts_with('-') && !word.contains('='));
    let mut names = words.map(|word| word.rsplit('/').next().unwrap_or(word));
    let program = names.find(|name| *name != "env")?;
    let is_version = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
    Some(program.trim_end_matches(is_version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_names_a_line_of_the_block() {
        let computation = TextComputation {
            name: "a".parse().unwrap(),
            inputs: Vec::new(),
            outputs: vec!["b".into()],
            block: ["one", "two"].map(Into::into).into(),
            head_line: 7,
            block_line: 9,
        };
        let file = computation.file();
        for (log, line) in [
            ("/computation/exec: line 4: one: command not found", Some(9)),
            ("/computation/exec: 5: two: not found\n", Some(10)),
            ("  File \"/computation/exec\", line 5, in <module>\n    two\n", Some(10)),
            ("x at /st/tmp/1/a/exec line 4.\nx at /st/tmp/1/a/exec line 5.\n", Some(10)),
            ("/computation/exec: line 1: x", Some(7)),
            ("/computation/exec: line 99: x", None),
            ("/computation/exec: line 0: x", None),
            ("/computation/execute: line 4: x", None),
            ("tr: invalid option", None),
        ] {
            assert_eq!(file.line_named_in(log), line, "{log}");
        }
    }
}
