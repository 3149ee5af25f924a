//! Writes a task's `inputs` and `workflow/` from the language that `ce-sym` prints.
//!
//! The inverse of the exporter: `#1#` becomes a symbolic link to the directory of `#1=(...)`. An
//! expression without `[...]` gets no file `outputs`, and fills one input of its reader.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    /// A computation, its inputs, and the lines of its slice.
    Call(String, Vec<Self>, Option<Vec<String>>),
    /// A kind, `input` or `literal`, and a name.
    Leaf(&'static str, String),
    Named(usize, Box<Self>),
    Again(usize),
}

/// Reads what `ce-sym` prints: the names of the inputs, and an expression.
pub(crate) fn parse(text: &str) -> (Vec<String>, Expression) {
    let (first, mut rest) = text.split_once('\n').unwrap();
    let names = first.strip_prefix("Inputs:").unwrap().trim();
    let names = names.trim_matches('\'').split("', '").map(str::to_owned);
    let names = names.filter(|name| !name.is_empty()).collect();
    (names, expression(&mut rest))
}

fn expression(rest: &mut &str) -> Expression {
    *rest = rest.trim_start();
    if eat(rest, "INPUT('") {
        return Expression::Leaf("input", until(rest, "')"));
    } else if eat(rest, "FILE('") {
        return Expression::Leaf("literal", until(rest, "')"));
    } else if eat(rest, "#") {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap();
        let number = rest[..digits].parse().unwrap();
        *rest = &rest[digits..];
        return match eat(rest, "=") {
            true => Expression::Named(number, Box::new(expression(rest))),
            false => (Expression::Again(number), eat(rest, "#")).0,
        };
    }
    assert!(eat(rest, "("), "an expression, not {rest}");
    let (name, inputs) = rest.split_at(rest.find([' ', '\n', ')']).unwrap());
    *rest = inputs.trim_start();
    let mut inputs = Vec::new();
    while !eat(rest, ")") {
        inputs.push(expression(rest));
        *rest = rest.trim_start();
    }
    let slice = eat(rest, "[").then(|| until(rest, "]"));
    let slice = slice.map(|slice| slice.split(", ").map(str::to_owned).collect());
    Expression::Call(name.to_owned(), inputs, slice)
}

fn eat(rest: &mut &str, prefix: &str) -> bool {
    let after = rest.strip_prefix(prefix);
    after.map(|after| *rest = after).is_some()
}

fn until(rest: &mut &str, end: &str) -> String {
    let (before, after) = rest.split_once(end).unwrap();
    *rest = after;
    before.to_owned()
}

pub(crate) fn write(task: &Path, inputs: &[String], workflow: &Expression) {
    fs::write(task.join("inputs"), lines(inputs)).unwrap();
    workflow.write(task, "workflow", &mut HashMap::new());
}

fn lines(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Where named expressions stand, and how many files they pass up.
type Places = HashMap<usize, (String, usize)>;

impl Expression {
    /// Writes a directory of the task.
    fn write(&self, task: &Path, dir: &str, places: &mut Places) {
        let file = |name: &str, text: &str| fs::write(task.join(dir).join(name), text).unwrap();
        let (kind, name) = match self {
            Self::Again(number) => {
                let target = "../".repeat(dir.matches('/').count()) + &places[number].0;
                return symlink(target, task.join(dir)).unwrap();
            }
            Self::Named(number, inner) => {
                inner.write(task, dir, places);
                places.insert(*number, (dir.to_owned(), inner.width(places)));
                return;
            }
            Self::Leaf(kind, name) => (*kind, name),
            Self::Call(name, ..) => ("computation", name),
        };
        fs::create_dir_all(task.join(dir)).unwrap();
        file("kind", &format!("{kind}\n"));
        file("value", &format!("{name}\n"));
        let Self::Call(_, inputs, slice) = self else {
            return;
        };
        slice.iter().for_each(|slice| file("outputs", &lines(slice)));
        let mut next = 0;
        for input in inputs {
            fs::create_dir_all(task.join(dir).join("inputs")).unwrap();
            let (first, width) = (next, input.width(places));
            next += width;
            let range = match width {
                1 => format!("{first:02}"),
                _ => format!("{first:02}_{:02}", next - 1),
            };
            let inner = format!("{dir}/inputs/{range}-{}", input.label());
            input.write(task, &inner, places);
        }
    }

    fn width(&self, places: &Places) -> usize {
        match self {
            Self::Call(_, _, slice) => slice.as_ref().map_or(1, Vec::len),
            Self::Leaf(..) => 1,
            Self::Named(_, inner) => inner.width(places),
            Self::Again(number) => places[number].1,
        }
    }

    fn label(&self) -> &str {
        match self {
            Self::Call(name, ..) | Self::Leaf("input", name) => name,
            Self::Leaf(..) => "file",
            Self::Named(_, inner) => inner.label(),
            Self::Again(_) => "again",
        }
    }
}
