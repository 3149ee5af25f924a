//! The line of a workflow's text with the inputs of the task: their names, defaults and choices.

use std::collections::HashSet;

use super::InputDefault;
use super::lexer::Lexer;
use super::mistake::{Fault, Wrong};
use super::sweeps::is_kept_level;
use crate::name::{InputName, TaskPath};
use crate::sweep::read_list;

/// The inputs of the task, and where they are written.
#[derive(Default)]
pub(super) struct WrittenInputs {
    pub(super) names: Vec<InputName>,
    pub(super) defaults: Vec<Option<InputDefault>>,
    pub(super) places: Vec<usize>,
}

/// Reads the names of the task's inputs, up to the end of the line.
pub(super) fn inputs(lexer: &mut Lexer<'_>) -> Result<WrittenInputs, Wrong> {
    let (mut inputs, mut known) = (WrittenInputs::default(), HashSet::new());
    lexer.skip_in_line();
    if lexer.is_at_line_end() {
        return Ok(inputs);
    }
    loop {
        let at = lexer.at;
        let text = match lexer.rest().starts_with('\'') {
            true => lexer.string()?,
            false => match lexer.reference()? {
                Some(name) => name,
                None => return Err(lexer.expected("the name of an input")),
            },
        };
        let name: InputName = text.parse().map_err(|error| (at, Fault::Name(error)))?;
        if !known.insert(text.clone()) {
            return Err((at, Fault::Duplicate(text)));
        }
        lexer.skip_in_line();
        let default = if lexer.eat("=") { Some(default(lexer, &text)?) } else { None };
        inputs.names.push(name);
        inputs.defaults.push(default);
        inputs.places.push(at);
        lexer.skip_in_line();
        if lexer.is_at_line_end() {
            return Ok(inputs);
        }
        if !lexer.eat(",") {
            return Err(lexer.expected("`,` or the end of the line"));
        }
        lexer.skip();
    }
}

/// Goes over the word between two choices, if it stands here.
fn skips_to_or(lexer: &mut Lexer<'_>) -> bool {
    lexer.skip_in_line();
    let is_here = lexer.rest().strip_prefix("or").is_some_and(|rest| {
        rest.starts_with(['\'', '|', ';']) || rest.starts_with(char::is_whitespace)
    });
    if is_here {
        lexer.eat("or");
        lexer.skip();
    }
    is_here
}

/// Reads the default of an input: a text, several to choose from, or a file of the task.
fn default(lexer: &mut Lexer<'_>, input: &str) -> Result<InputDefault, Wrong> {
    lexer.skip_in_line();
    if !lexer.eat("OWN(") {
        if !lexer.rest().starts_with(['\'', '|']) {
            return Err(lexer.expected("a text in quotes, or OWN('PATH')"));
        }
        let (mut places, mut texts) = (vec![lexer.at], vec![lexer.string()?]);
        while skips_to_or(lexer) {
            places.push(lexer.at);
            texts.push(lexer.string()?);
        }
        if let [only] = &texts[..] {
            return Ok(InputDefault::Text(format!("{only}\n").into()));
        }
        let mut seen = HashSet::new();
        for (at, text) in places.iter().zip(&texts) {
            if !seen.insert(text) {
                return Err((*at, Fault::SameChoice(text.clone())));
            }
            if !is_kept_level(text) {
                return Err((*at, Fault::Choice(text.clone())));
            }
        }
        let lines: Vec<&str> = texts.iter().map(String::as_str).collect();
        return read_list(input, &lines).map(InputDefault::Choices).map_err(|problems| {
            let line = problems.first().and_then(|it| it.line).unwrap_or(1);
            (places[line - 1], Fault::Choice(texts[line - 1].clone()))
        });
    }
    lexer.skip();
    let at = lexer.at;
    let path: TaskPath = lexer.string()?.parse().map_err(|error| (at, Fault::Name(error)))?;
    lexer.skip();
    if !lexer.eat(")") {
        return Err(lexer.expected("`)`"));
    }
    Ok(InputDefault::File(path))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn mistake(source: &str) -> String {
        parse(source).unwrap_err().to_string()
    }

    #[test]
    fn inputs_have_defaults_and_end_with_their_line() {
        let parsed =
            parse("Inputs: samples, 'a b' = '20',\n  data = OWN('data/x') # here\n(f a)").unwrap();
        let names = parsed.text.inputs.unwrap();
        assert_eq!(
            names.iter().map(InputName::as_str).collect::<Vec<_>>(),
            ["samples", "a b", "data"]
        );
        let file = InputDefault::File("data/x".parse().unwrap());
        assert_eq!(
            parsed.text.defaults,
            [None, Some(InputDefault::Text("20\n".into())), Some(file)]
        );
        assert_eq!(
            [0, 1, 2].map(|number| parse("Inputs: a,\nb,\nc\nx").unwrap().line_of_input(number)),
            [1, 2, 3]
        );
        assert_eq!(parse("Inputs:\n(f)").unwrap().text.inputs, Some(Vec::new()));
        assert_eq!(parse("(f)").unwrap().text.inputs, None);
        assert_eq!(
            mistake("Inputs: a b\nx"),
            "1:11: expected `,` or the end of the line, found \"b\""
        );
    }

    #[test]
    fn choices_are_different_texts_that_a_line_can_have() {
        let parsed = parse("Inputs: a = 'x' or 'y z' or\n  |b'c|, b = '1'\n(f a)").unwrap();
        let Some(InputDefault::Choices(choices)) = &parsed.text.defaults[0] else { panic!() };
        assert_eq!(
            choices.levels(0).iter().map(|it| &**it).collect::<Vec<_>>(),
            ["x", "y z", "b'c"]
        );
        for (source, expected) in [
            ("Inputs: a = 'x' or 'x'\n(f a)", "1:20: the choice \"x\" is written twice"),
            (
                "Inputs: a = 'x' or b\n(f a)",
                "1:20: expected a name in quotes, as in 'x', found \"b\"",
            ),
            (
                "Inputs: a = 'x' orb\n(f a)",
                "1:17: expected `,` or the end of the line, found \"orb\"",
            ),
            (
                "Inputs: a = 'x' or |y\\x01;|\n(f a)",
                "1:20: the choice \"y\\u{1}\" is not a line of a file",
            ),
            (
                "Inputs: a = OWN('x') or 'y'\n(f a)",
                "1:22: expected `,` or the end of the line, found \"or\"",
            ),
        ] {
            assert_eq!(mistake(source), expected, "{source}");
        }
    }
}
