//! Reads a computation in the text of a workflow.
//!
//! ```text
//! computation = head block
//! head        = name ":" blank { word } "->" word { word } end of line
//! ```
//!
//! The block is the lines below that are indented, or empty.

use super::grammar::{BareName, INPUTS, begins_level, is_reference};
use super::lexer::Lexer;
use super::mistake::{Fault, Wrong};
use crate::declaration::{self, Declaration, DeclarationError, WrittenName};
use crate::name::{ComputationName, variables};
use crate::task::{ARROW, TextComputation};
use crate::text_file::MAX_FILE;

/// White space that indents a block.
const BLANKS: [char; 2] = [' ', '\t'];

/// A line that looks like the head of a computation.
enum HeadLine {
    /// It has a name, a colon, and the arrow.
    Head,
    /// It has no arrow.
    NoArrow,
    /// It has an arrow, and no colon behind the name.
    NoColon,
}

impl Lexer<'_> {
    /// Reads a computation, if one begins here, in a line of this number. A definition may begin here, too.
    pub(super) fn computation(
        &mut self,
        head_line: usize,
    ) -> Result<Option<TextComputation>, Wrong> {
        let at = self.at;
        match self.head_line() {
            None => return Ok(None),
            Some(_) if self.rest().starts_with(INPUTS) => return Err((at, Fault::LateInputs)),
            Some(HeadLine::Head) if self.stands_at_line_begin() => {}
            Some(HeadLine::Head) => return Err((at, Fault::IndentedHead)),
            Some(_) if !self.stands_at_line_begin() => return Ok(None),
            Some(HeadLine::NoArrow) => return Err((at, Fault::NoArrow)),
            Some(HeadLine::NoColon) => return Err((at, Fault::NoColon)),
        }
        let name = self.take(is_reference);
        let name = name.strip_suffix(':').unwrap_or(name);
        let name: ComputationName = name.parse().map_err(|error| (at, Fault::Name(error)))?;
        let [inputs, outputs] = self.head_names()?;
        if outputs.is_empty() {
            return Err((at, Fault::NoOutputs(name.to_string())));
        }
        let (block, skipped) = self.block()?;
        if block.is_empty() {
            return Err((at, Fault::NoBlock(name.to_string())));
        }
        let block_line = head_line + 1 + skipped;
        let computation = TextComputation { name, inputs, outputs, block, head_line, block_line };
        match mistake_in(&computation) {
            None => Ok(Some(computation)),
            Some((line, fault)) => {
                let mut lines = self.source.split_inclusive('\n');
                let before: usize = lines.by_ref().take(line - 1).map(str::len).sum();
                let blanks = lines.next().unwrap_or_default().find(|c| !BLANKS.contains(&c));
                Err((before + blanks.unwrap_or_default(), fault))
            }
        }
    }

    /// Whether the head of a computation stands here.
    pub(super) fn stands_at_computation(&self) -> bool {
        self.stands_at_line_begin() && matches!(self.head_line(), Some(HeadLine::Head))
    }

    fn stands_at_line_begin(&self) -> bool {
        let before = &self.source[..self.at];
        matches!(before, "" | "\u{feff}") || before.ends_with('\n')
    }

    /// Looks whether the rest of the line is meant as the head of a computation. Nothing else that is right looks so.
    fn head_line(&self) -> Option<HeadLine> {
        let all = self.rest();
        let (name, rest) = all.split_at(all.find(|c| !is_reference(c)).unwrap_or(all.len()));
        let behind = rest.trim_start_matches(|c: char| c.is_whitespace() && c != '\n');
        let is_word = !name.is_empty() && !name.starts_with(':');
        let is_joined = behind.len() == rest.len() && !rest.is_empty() && !rest.starts_with('\n');
        // Behind a name, these are a definition, or a slice.
        if !is_word || is_joined || behind.starts_with(['=', '[']) {
            return None;
        }
        let (behind, below) = behind.split_once('\n').unwrap_or((behind, ""));
        let names = names_in_head(behind);
        let has_arrow = match &names {
            Ok(names) => names.iter().any(|(_, it)| is_arrow(*it)),
            Err(_) => behind.split_whitespace().any(|word| word == ARROW),
        };
        let has_names = names.is_err() || names.is_ok_and(|names| !names.is_empty());
        match name.len() > 1 && name.ends_with(':') {
            true if has_arrow => Some(HeadLine::Head),
            true if has_names || begins_block(below) => Some(HeadLine::NoArrow),
            false if has_arrow && !begins_level(name) => Some(HeadLine::NoColon),
            _ => None,
        }
    }

    /// Reads the inputs and outputs in a head, up to the end of the line.
    fn head_names(&mut self) -> Result<[Vec<Box<str>>; 2], Wrong> {
        let begin = self.at;
        let line = self.take(|c| c != '\n');
        self.eat("\n");
        let names = names_in_head(line);
        let names = names.map_err(|(at, error)| (begin + at, Fault::Declaration(error)))?;
        let arrows: Vec<usize> = (0..names.len()).filter(|at| is_arrow(names[*at].1)).collect();
        if let Some(second) = arrows.get(1) {
            return Err((begin + names[*second].0, Fault::TwoArrows));
        }
        let (inputs, outputs) = names.split_at(arrows.first().copied().unwrap_or(names.len()));
        let parts = [inputs, outputs.get(1..).unwrap_or_default()];
        for part in parts {
            let names: Vec<&str> = part.iter().map(|(_, it)| it.name).collect();
            if let Some(shared) = variables(&names).iter().position(Option::is_none) {
                let (at, written) = part[shared];
                return Err((begin + at, Fault::SameVariable(written.name.to_owned())));
            }
        }
        Ok(parts.map(|names| names.iter().map(|(_, it)| it.name.into()).collect()))
    }

    /// Reads the lines of a block, without the empty ones at both ends, and the number of those before it.
    fn block(&mut self) -> Result<(Vec<Box<str>>, usize), Wrong> {
        let mut lines: Vec<Box<str>> = Vec::new();
        let mut indent = None;
        loop {
            let at = self.at;
            let line = self.rest().split_inclusive('\n').next().unwrap_or_default();
            let text = line.strip_suffix('\n').unwrap_or(line);
            let text = text.strip_suffix('\r').unwrap_or(text);
            let code = text.trim_start_matches(BLANKS);
            if line.is_empty() || !code.is_empty() && code.len() == text.len() {
                break;
            }
            self.at += line.len();
            if code.is_empty() {
                lines.push(Box::default());
                continue;
            }
            if let Some(control) = code.find(|c: char| c.is_control() && c != '\t') {
                let fault = code[control..].chars().next().map(Fault::ControlInBlock);
                return Err((
                    at + text.len() - code.len() + control,
                    fault.unwrap_or(Fault::Indent),
                ));
            }
            let indent = *indent.get_or_insert(&text[..text.len() - code.len()]);
            lines.push(text.strip_prefix(indent).ok_or((at, Fault::Indent))?.into());
        }
        let skipped = lines.iter().take_while(|line| line.is_empty()).count();
        let end = lines.iter().rposition(|line| !line.is_empty()).map_or(skipped, |at| at + 1);
        lines.truncate(end);
        Ok((lines.split_off(skipped), skipped))
    }
}

/// The first mistake of the block of a computation, with its line in the text.
fn mistake_in(computation: &TextComputation) -> Option<(usize, Fault)> {
    let file = computation.file();
    if file.contents.len() > MAX_FILE {
        return Some((computation.head_line, Fault::LargeBlock(computation.name.to_string())));
    }
    if !computation.has_hash_comments() {
        let (program, file) = (computation.program().into(), computation.file_name());
        return Some((computation.block_line, Fault::NoHashComments { program, file }));
    }
    let comments = (computation.block_line..)
        .zip(&computation.block)
        .take_while(|(_, line)| line.is_empty() || line.trim_start().starts_with('#'));
    let mut late = comments.skip(1).filter(|(_, line)| line.starts_with("#!"));
    if let Some((line, _)) = late.next() {
        return Some((line, Fault::LateInterpreter));
    }
    let (at, error) = match Declaration::parse(file.contents.as_bytes()) {
        Ok(declaration) => {
            let own = ["inputs", "outputs"].iter().filter_map(|word| declaration.file(word));
            let mut own = own.flatten().map(|(at, _)| file.lines[at - 1]);
            if let Some(line) = own.find(|line| *line != computation.head_line) {
                return Some((line, Fault::NamesInBlock));
            }
            return undeclared_line(computation).map(|line| (line, Fault::LateDeclaration));
        }
        Err(errors) => errors.into_iter().next()?,
    };
    let line = at.checked_sub(1).map_or(computation.head_line, |at| file.lines[at]);
    Some((
        line,
        match error {
            DeclarationError::Late(_) => Fault::LateDeclaration,
            error => Fault::Declaration(error),
        },
    ))
}

/// An indented line of a declaration among the comments at the beginning of a block that says nothing, since a line that is added stands
/// above it.
fn undeclared_line(computation: &TextComputation) -> Option<usize> {
    if computation.block[0].starts_with("#!") {
        return None;
    }
    let lines = (computation.block_line..).zip(&computation.block);
    let rest = lines.skip_while(|(_, line)| declaration::is_line(line));
    let mut comments =
        rest.take_while(|(_, line)| line.is_empty() || line.trim_start().starts_with('#'));
    comments.find(|(_, line)| declaration::is_line(line)).map(|(number, _)| number)
}

/// The names and the arrow in a head, up to a comment, each with its byte.
fn names_in_head(line: &str) -> Result<Vec<(usize, WrittenName<'_>)>, (usize, DeclarationError)> {
    let (mut names, mut at) = (Vec::new(), 0);
    loop {
        let mut lexer = Lexer { source: line, at, code_in_comment: None };
        lexer.skip_in_line();
        if lexer.is_at_line_end() {
            return Ok(names);
        }
        at = lexer.at;
        let (name, rest) = declaration::next_name(lexer.rest()).map_err(|error| (at, error))?;
        names.push((at, name));
        at = line.len() - rest.len();
    }
}

fn is_arrow(written: WrittenName<'_>) -> bool {
    !written.is_quoted && written.name == ARROW
}

/// Whether these lines begin with the lines of a block, rather than with the slice of an expression.
fn begins_block(lines: &str) -> bool {
    let first = lines.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    first.starts_with(BLANKS) && !first.trim_start().starts_with(['[', '=', '#', ';'])
}

/// A call of a computation, with the names of its inputs in their places.
pub(super) fn call_of(computation: &TextComputation) -> String {
    let inputs = computation.inputs.iter().map(|name| format!(" {}", BareName(name)));
    format!("({}{})", computation.name, inputs.collect::<String>())
}

/// Says of a mistake in the line that ends the block of a computation, without an empty line between, that the line may belong to the block,
/// which ends at this byte.
pub(super) fn unindented(
    source: &str,
    computation: &TextComputation,
    end: usize,
    (at, fault): Wrong,
) -> Wrong {
    let is_syntax = matches!(
        fault,
        Fault::Expected { .. }
            | Fault::BehindWorkflow { .. }
            | Fault::Word { .. }
            | Fault::Open(_)
            | Fault::Control(_)
            | Fault::Escape
            | Fault::Quote(_)
            | Fault::Comma
            | Fault::Slice(_)
            | Fault::Unquoted(_)
            | Fault::Unclosed(_)
            | Fault::UnclosedBefore { .. }
    );
    let line = source[end..].split('\n').next().unwrap_or_default();
    let is_in_line = (end..=end + line.len()).contains(&at);
    let is_behind_name =
        matches!(fault, Fault::BehindWorkflow { .. }) && line.trim().chars().all(is_reference);
    let is_below = source[..end].lines().last().is_some_and(|it| !it.trim().is_empty());
    if is_syntax && is_below && (is_in_line || is_behind_name) {
        return (end, Fault::Unindented(computation.name.to_string()));
    }
    (at, fault)
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::exit::Explain;
    use crate::task::ComputationFile;

    /// The files of the computations in a text.
    fn files(source: &str) -> Vec<ComputationFile> {
        let parsed = parse(source).unwrap_or_else(|mistake| panic!("{source}: {mistake}"));
        parsed.text.computations.iter().map(TextComputation::file).collect()
    }

    fn contents(source: &str) -> String {
        files(source).remove(0).contents
    }

    fn mistake(source: &str) -> String {
        match parse(source) {
            Ok(parsed) => panic!("{source} is {:?}", parsed.text),
            Err(mistake) => mistake.to_string(),
        }
    }

    #[test]
    fn a_block_becomes_a_file_with_its_declaration() {
        let text = "Inputs: text\n\nsplit: text -> words # why\n\n    tr -cs 'A-Za-z' '\\n'\n\n      sort\n   \t \n\n(split text)\n";
        let [file] = &files(text)[..] else { panic!() };
        assert_eq!(
            file.contents,
            "#!/bin/bash\n#CE inputs text\n#CE outputs words\nset -euo pipefail\ntr -cs 'A-Za-z' '\\n'\n\n  sort\n"
        );
        assert_eq!(file.lines, [3, 3, 3, 3, 5, 6, 7]);
        let own = "a: 'x y' b,c' -> 'd,e' 'o'/\n\t#!/usr/bin/env python3\n\t#CE access network\n\t#CE resources cpus 4\n\timport os\n(a)";
        assert_eq!(mistake(own), "1:10: there is a comma in \"b,c'\"");
        let own = own.replace("b,c'", "it's").replace("'o'/", "o/");
        assert_eq!(
            contents(&own),
            "#!/usr/bin/env python3\n#CE inputs 'x y' it's\n#CE outputs 'd,e' o/\n#CE access network\n\
             #CE resources cpus 4\nimport os\n"
        );
        let none = "a: -> b\n  #CE nondeterministic\n  date > $out_b\n(a)";
        assert_eq!(
            contents(none),
            "#!/bin/bash\n#CE outputs b\n#CE nondeterministic\nset -euo pipefail\ndate > $out_b\n"
        );
        assert_eq!(contents("a: -> b\n #!/bin/cat\n(a)"), "#!/bin/cat\n#CE outputs b\n");
    }

    #[test]
    fn line_ends_of_other_systems_make_the_same_file() {
        let text = "a: x -> b\n    one\n\n    two\nc: -> d\n    three\n\n(a (c))\n";
        assert_eq!(files(text), files(&text.replace('\n', "\r\n")));
        assert_eq!(files(text), files(&format!("\u{feff}{text}")));
    }

    #[test]
    fn what_is_printed_is_read_back_as_the_same_computation() {
        let text = "Inputs: x\n|x y| = (a x)\na: 'p q' it's '#x' -> b.tsv '->' # why\n\t#CE access network\n\n\t\tone\n\ttwo\nc: -> d\n  three\n(a |x y| (c) x)\n";
        let parsed = parse(text).unwrap();
        let printed = parsed.text.workflow();
        let again = parse(&printed).unwrap_or_else(|mistake| panic!("{printed}: {mistake}"));
        assert_eq!(again.text.workflow(), printed);
        assert_eq!(files(text).len(), 2);
        for (one, other) in files(text).iter().zip(files(&printed)) {
            assert_eq!(one.contents, other.contents);
        }
    }

    #[test]
    fn names_with_a_colon_and_arrows_are_still_names() {
        for text in [
            "Inputs: split:, ->\n(f split: ->)",
            "title='speed: fast'\n(f title)",
            "a='x -> y'\n(f a)",
            "a= TEXT('x -> y')\n(f a)",
            "a=b:\n  (f a)",
            "x = (f)\nx[ -> ]",
            "x = (f)\nx[a: ]",
            "x = (f)\nx # see a -> b",
            "split: = (f)\n(g split: ->)",
            "a = (f\nsplit: x -> y\n)\n(g a)",
            "split:",
            "split:\n  [00]",
        ] {
            let text = text.replace("split:\n  [00]", "split: = (f)\nsplit:\n  [00]");
            let parsed = parse(&text).unwrap_or_else(|mistake| panic!("{text}: {mistake}"));
            assert!(parsed.text.computations.is_empty(), "{text}");
        }
    }

    #[test]
    fn a_file_of_the_library_has_the_suffix_of_its_language() {
        let name = |first: &str| {
            let text = format!("a: -> b\n    {first}\n    x\n(a)");
            parse(&text).unwrap().text.computations[0].file_name()
        };
        for (first, expected) in [
            ("x", "a.sh"),
            ("#!/bin/sh", "a.sh"),
            ("#!/usr/bin/python3", "a.py"),
            ("#!/usr/bin/env -S python3.12 -u", "a.py"),
            ("#!/usr/bin/env Rscript", "a.R"),
            ("#! /usr/bin/perl -w", "a.pl"),
            ("#!/opt/odd", "a.sh"),
        ] {
            assert_eq!(name(first), expected, "{first}");
        }
    }

    /// Beside these, `tests/golden/text/computations.txt` has the mistakes of beginners, in whole messages.
    #[test]
    fn each_mistake_in_a_computation_has_its_place() {
        let indented = "3:1: this line does not begin with the white space";
        let ends = "3:1: this line ends the block of \"a\"";
        for (source, expected) in [
            ("a: x -> 'b'c\n  x", "1:9: \"c\" follows the end of a quote"),
            ("a: x -> ''\n  x", "1:9: the name in quotes is empty"),
            ("a: x.1 x-1 -> b\n  x", "1:4: \"x.1\" and another name in this head are one variable"),
            ("a: -> b b/\n  x", "1:7: \"b\" and another name in this head are one variable"),
            ("a: x -> b\n   \n\t\n", "1:1: no indented line follows"),
            ("a: x -> b\n    one\n\ttwo", indented),
            ("a: x -> b\n\tone\n        two", indented),
            ("a: x -> b\n    if true; then\necho \"x\"", ends),
            ("a: x -> b\n    for i in 1; do\ndone", ends),
            (
                "a: x -> b\n    one\rtwo",
                "2:8: the control character '\\r' cannot stand in the block",
            ),
            ("a: x -> b\n    #!/usr/bin/lua5.4\n    x", "2:5: lua does not know comments with #"),
            ("a: x -> b\n    #CE access network\n    #!/bin/sh", "3:5: #! stands below the first"),
            ("a: x -> b\n    #CE outputs y\n    x", "2:5: the head of the computation names"),
            (
                "a: x -> b\n    # why\n    #CE access network\n    x",
                "3:5: this line declares nothing",
            ),
        ] {
            let whole = format!("{source}\n\n(a)\n");
            let found = mistake(&whole);
            assert!(found.starts_with(expected), "{source}: {found}");
            assert!(parse(&whole).unwrap_err().fault.hint().is_some(), "{source}");
        }
        let large = format!("a: -> b\n    {}\n(a)", "x".repeat(MAX_FILE));
        assert_eq!(mistake(&large), "1:1: the computation \"a\" has more than 1 MiB");
    }

    #[test]
    fn no_part_of_a_text_with_computations_is_too_odd_to_be_parsed() {
        let text = "Inputs: x\na: 'p q' -> b # c\n\n    #!/bin/sh\r\n\t#CE access network\n    ü -> y\nb: -> c:\n\t|x\n(a (b))";
        for from in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            for to in (from..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                drop(parse(&text[from..to]));
            }
        }
    }
}
