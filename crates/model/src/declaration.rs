//! The declaration of a computation in one file: comments such as `#CE inputs a b` before the first line of its code. They
//! have the meaning of the files beside the `exec` of a directory.

use std::str;

use crate::exit::Explain;
use crate::suggest::{self, meant_or};

/// The declaration of a computation that is one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// The lines of each file that it stands for, with their line in this one: names of inputs and outputs one a line.
    lines: Vec<(Word, usize, String)>,
}

/// The subject of a line of a declaration: the file of the same name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Inputs,
    Outputs,
    Access,
    Resources,
    Nondeterministic,
}

/// The reason why a line of a declaration is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum DeclarationError {
    /// There is no such line.
    #[error("declares neither inputs nor outputs")]
    #[hint(
        "write lines such as #CE inputs NAMES and #CE outputs NAMES above the code, with the comment sign of its \
         language and no space before CE"
    )]
    Nothing,
    /// It begins with another word.
    #[error("{word:?} cannot be declared")]
    #[hint(Some(meant_or(
        nearest.as_deref(),
        format!("write one of the words {}", Word::ALL.map(Word::text).join(", "))
    )))]
    Word {
        word: String,
        /// The most similar word.
        nearest: Option<String>,
    },
    /// It begins with the name of a file that only a directory can have.
    #[error("a computation with the file {0} is a directory")]
    #[hint("make it a directory with the files inputs, outputs, exec and {_0}")]
    NeedsDirectory(String),
    /// A quoted name has no end.
    #[error("the quote before {0:?} does not end")]
    #[hint("write 'a b' for a name with a space")]
    Quote(String),
    /// Something other than white space follows a quoted name.
    #[error("{0:?} follows the end of a quote")]
    #[hint("write a space between names")]
    AfterQuote(String),
    /// A quoted name is empty.
    #[error("the name in quotes is empty")]
    #[hint("write a name, or nothing")]
    EmptyName,
    /// A name has a comma.
    #[error("there is a comma in {0:?}")]
    #[hint("separate names by spaces; write 'a,b' for a name with a comma")]
    Comma(String),
    /// It is not UTF-8.
    #[error("the line is not UTF-8 text")]
    #[hint("save the file as UTF-8")]
    NotText,
    /// It comes too late.
    #[error("the declaration ends before this line, at line {0}, which is not a comment")]
    #[hint("move it above line {_0}")]
    Late(usize),
}

/// The beginnings of lines that are comments.
const COMMENTS: [&str; 6] = ["#", "//", "--", "%", ";", "/*"];

/// The signs before `CE`.
const SIGNS: [&str; 6] = ["#", "//", "--", "%", ";", "\""];

impl Word {
    const ALL: [Self; 5] =
        [Self::Inputs, Self::Outputs, Self::Access, Self::Resources, Self::Nondeterministic];

    const fn text(self) -> &'static str {
        match self {
            Self::Inputs => "inputs",
            Self::Outputs => "outputs",
            Self::Access => "access",
            Self::Resources => "resources",
            Self::Nondeterministic => "nondeterministic",
        }
    }

    fn parse(text: &str) -> Result<Self, DeclarationError> {
        match Self::ALL.into_iter().find(|word| word.text() == text) {
            Some(word) => Ok(word),
            None if matches!(text, "status" | "cancel") => {
                Err(DeclarationError::NeedsDirectory(text.to_owned()))
            }
            None => {
                let words = Self::ALL.map(|word| word.text().to_owned());
                let nearest = suggest::nearest(text, &words);
                Err(DeclarationError::Word { word: text.to_owned(), nearest })
            }
        }
    }
}

impl Declaration {
    /// Reads the declaration of an executable text.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or a line is wrong: each error with the number of its line counted from one, zero for the
    /// file as a whole.
    pub fn parse(contents: &[u8]) -> Result<Self, Vec<(usize, DeclarationError)>> {
        let contents = contents.strip_prefix("\u{feff}".as_bytes()).unwrap_or(contents);
        let mut declaration = Self::default();
        let (mut errors, mut end) = (Vec::new(), None);
        for (number, line) in (1..).zip(contents.split(|byte| *byte == b'\n')) {
            let is_indented = line.first().is_some_and(u8::is_ascii_whitespace);
            let line = line.trim_ascii();
            let Some((_, text)) = declared(line) else {
                let is_comment = COMMENTS.iter().any(|sign| line.starts_with(sign.as_bytes()));
                end = end.or((!line.is_empty() && !is_comment).then_some(number));
                continue;
            };
            let added = match (end, str::from_utf8(text)) {
                (None, Ok(text)) => declaration.add(number, text.trim()),
                (None, Err(_)) => Err(DeclarationError::NotText),
                // A line after the code belongs to the code, unless it would be a valid line of the declaration above it.
                (Some(end), Ok(text))
                    if !is_indented && Self::default().add(number, text.trim()).is_ok() =>
                {
                    Err(DeclarationError::Late(end))
                }
                (Some(_), _) => Ok(()),
            };
            errors.extend(added.err().map(|error| (number, error)));
        }
        if errors.is_empty() && !declaration.says(Word::Inputs) && !declaration.says(Word::Outputs)
        {
            errors.push((0, DeclarationError::Nothing));
        }
        if errors.is_empty() { Ok(declaration) } else { Err(errors) }
    }

    /// The same with other numbers of its lines.
    #[must_use]
    pub fn with_lines(mut self, number: impl Fn(usize) -> usize) -> Self {
        self.lines.iter_mut().for_each(|(_, line, _)| *line = number(*line));
        self
    }

    /// The lines of a file that a directory would have, with their numbers here. `None` if it would have no such file.
    pub fn file(&self, name: &str) -> Option<Vec<(usize, String)>> {
        let lines = self.lines.iter().filter(|(word, ..)| word.text() == name);
        let is_list = [Word::Inputs, Word::Outputs].iter().any(|word| word.text() == name);
        let lines: Vec<_> = lines.map(|(_, number, text)| (*number, text.clone())).collect();
        (is_list || !lines.is_empty()).then_some(lines)
    }

    /// The lines of such a file.
    pub fn names(&self, file: &str) -> Option<Vec<String>> {
        Some(self.file(file)?.into_iter().map(|(_, name)| name).collect())
    }

    /// Adds the declaration that a line has behind `CE`.
    fn add(&mut self, number: usize, text: &str) -> Result<(), DeclarationError> {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let (word, rest) = (Word::parse(word)?, rest.trim());
        let lines = match word {
            Word::Inputs | Word::Outputs => names(rest)?,
            Word::Access | Word::Resources | Word::Nondeterministic => vec![rest.to_owned()],
        };
        self.lines.extend(lines.into_iter().map(|line| (word, number, line)));
        Ok(())
    }

    fn says(&self, word: Word) -> bool {
        self.lines.iter().any(|(known, ..)| *known == word)
    }
}

/// The sign before `CE` in the first line of a declaration.
pub fn sign(contents: &[u8]) -> Option<&'static str> {
    let lines = contents.split(|byte| *byte == b'\n');
    lines.map(<[u8]>::trim_ascii).find_map(declared).map(|(sign, _)| sign)
}

/// Whether a line of a text whose comments begin with `#` belongs to a declaration.
pub(crate) fn is_line(line: &str) -> bool {
    declared(line.trim_ascii().as_bytes()).is_some_and(|(sign, _)| sign == "#")
}

/// The sign before `CE` and the text behind it, if a line belongs to a declaration.
fn declared(line: &[u8]) -> Option<(&'static str, &[u8])> {
    SIGNS.into_iter().find_map(|sign| {
        let text = line.strip_prefix(sign.as_bytes())?.strip_prefix(b"CE")?;
        text.first().is_none_or(u8::is_ascii_whitespace).then_some((sign, text))
    })
}

/// A name in a line of names: one that has a space or a comma itself is in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrittenName<'a> {
    pub(crate) name: &'a str,
    pub(crate) is_quoted: bool,
}

/// Reads the name at the beginning of a text, and returns what follows it.
pub(crate) fn next_name(text: &str) -> Result<(WrittenName<'_>, &str), DeclarationError> {
    let Some(quoted) = text.strip_prefix('\'') else {
        let (name, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
        return match name.contains(',') {
            true => Err(DeclarationError::Comma(name.to_owned())),
            false => Ok((WrittenName { name, is_quoted: false }, rest)),
        };
    };
    let end = quoted.split_once('\'').ok_or_else(|| DeclarationError::Quote(quoted.to_owned()));
    let (name, rest) = end?;
    if name.trim().is_empty() {
        return Err(DeclarationError::EmptyName);
    }
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return Err(DeclarationError::AfterQuote(rest.to_owned()));
    }
    Ok((WrittenName { name: name.trim(), is_quoted: true }, rest))
}

/// Reads names with white space between them.
fn names(mut text: &str) -> Result<Vec<String>, DeclarationError> {
    let mut names = Vec::new();
    while !text.is_empty() {
        let (written, rest) = next_name(text)?;
        names.push(written.name.to_owned());
        text = rest.trim_start();
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str, name: &str) -> Option<Vec<(usize, String)>> {
        Declaration::parse(text.as_bytes()).unwrap().file(name)
    }

    fn errors(text: &str) -> Vec<(usize, DeclarationError)> {
        Declaration::parse(text.as_bytes()).unwrap_err()
    }

    fn lines(lines: &[(usize, &str)]) -> Option<Vec<(usize, String)>> {
        Some(lines.iter().map(|(number, line)| (*number, (*line).to_owned())).collect())
    }

    #[test]
    fn a_declaration_stands_for_the_files_of_a_directory() {
        let text = "#!/usr/bin/env python3\n\n# counts\n#CE inputs words stop\n#CE inputs 'a b' it's 'c,d'\r\n\
                    #CE outputs total kinds/\n#CE access network\n#CE access env  HOME\n#CE nondeterministic\nimport sys\n";
        let inputs = [(4, "words"), (4, "stop"), (5, "a b"), (5, "it's"), (5, "c,d")];
        assert_eq!(file(text, "inputs"), lines(&inputs));
        assert_eq!(file(text, "outputs"), lines(&[(6, "total"), (6, "kinds/")]));
        assert_eq!(file(text, "access"), lines(&[(7, "network"), (8, "env  HOME")]));
        assert_eq!(file(text, "nondeterministic"), lines(&[(9, "")]));
        assert_eq!(file(text, "resources"), None);
        assert_eq!(file("#CE outputs a", "inputs"), lines(&[]), "it has none");
    }

    #[test]
    fn each_language_has_its_own_comments() {
        for sign in ["#", "//", "--", "%", ";", "\""] {
            let text = format!("#!/bin/sh\n{sign}CE\toutputs a\ncode\n");
            assert_eq!(file(&text, "outputs"), lines(&[(2, "a")]), "{sign}");
            assert_eq!(super::sign(text.as_bytes()), Some(sign));
        }
        for comment in ["#", "//", "--", "%", ";", "/* c */"] {
            let text = format!("\u{feff}{comment}\n//CE outputs a\n");
            assert_eq!(file(&text, "outputs"), lines(&[(2, "a")]), "{comment}");
        }
        for none in ["# CE outputs a", "#CEoutputs a", "#ce outputs a", "code", "", "\x7fELF\0"] {
            assert_eq!(errors(none), [(0, DeclarationError::Nothing)], "{none}");
        }
        let only_comments_are_utf_8 = b"#CE outputs a\n# \xff\nprint \xff\n";
        assert!(Declaration::parse(only_comments_are_utf_8).is_ok());
    }

    #[test]
    fn a_mistake_has_its_line() {
        let wrong = |text: &str| match &errors(&format!("#CE outputs a\n{text}\n"))[..] {
            [(2, error)] => error.to_string(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(wrong("#CE input b"), "\"input\" cannot be declared");
        assert_eq!(wrong("#CE"), "\"\" cannot be declared");
        assert_eq!(wrong("#CE status"), "a computation with the file status is a directory");
        assert_eq!(wrong("#CE inputs 'a b"), "the quote before \"a b\" does not end");
        assert_eq!(wrong("#CE inputs 'a'b"), "\"b\" follows the end of a quote");
        assert_eq!(wrong("#CE inputs ' '"), "the name in quotes is empty");
        assert_eq!(wrong("#CE inputs b, 'c'"), "there is a comma in \"b,\"");
        assert_eq!(wrong("#CE inputs b ,c"), "there is a comma in \",c\"");
        let bytes = Declaration::parse(b"#CE inputs \xff\n").unwrap_err();
        assert_eq!(bytes, [(1, DeclarationError::NotText)]);
        let hint = errors("#CE input b")[0].1.hint().unwrap();
        assert_eq!(hint, "did you mean \"inputs\"?");
    }

    #[test]
    fn declarations_below_the_code_are_refused() {
        let late = "#CE outputs a\ncode\n#CE access network\n#CE is a word\n";
        assert_eq!(errors(late), [(3, DeclarationError::Late(2))]);
        let own = "#CE outputs a\ncode\n#CE is a word\n  #CE access network\n";
        assert!(Declaration::parse(own.as_bytes()).is_ok());
    }
}
