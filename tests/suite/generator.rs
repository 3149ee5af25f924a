//! Workflows made up from a seed.

use std::fmt::Write;
use std::fs;
use std::ops::Range;

use crate::lab::Lab;
use crate::lisp::Expression;

/// SplitMix64: small, and good enough to make up workflows.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// One of these.
    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// So many seeds, `CE_TIMES` as many, or `CE_SEED` alone.
pub(crate) fn seeds(count: u64) -> Range<u64> {
    let variable = |name| std::env::var(name).ok();
    let number = |name| variable(name).map(|text| text.parse::<u64>().unwrap());
    let count = count * number("CE_TIMES").unwrap_or(1);
    number("CE_SEED").map_or(0..count, |seed| seed..seed + 1)
}

/// How many inputs and outputs the computations of the library have, each called `c` and a number.
const LIBRARY: [(usize, usize); 6] = [(1, 1), (2, 1), (2, 2), (3, 4), (5, 2), (0, 1)];

const INPUTS: [&str; 3] = ["x", "y", "stop words"];

pub(crate) const LITERALS: [&str; 2] = ["tinputs/00/0000000000", "by hand/one"];

/// A laboratory with the library, the inputs and the literals, and no workflow yet.
pub(crate) fn lab() -> Lab {
    let mut lab = Lab::empty();
    for (number, (inputs, outputs)) in LIBRARY.into_iter().enumerate() {
        let names = |count| (0..count).map(|n| format!("name-{n} ")).collect::<String>();
        lab = lab.computation(&format!("c{number}"), &names(inputs), &names(outputs), "exit 1");
    }
    for name in INPUTS {
        lab = lab.data(name, name);
        lab.inputs.push(name.to_owned());
    }
    lab.commit()
}

/// A workflow that grows until its budget is spent.
struct Generator<'a> {
    random: &'a mut Random,
    budget: usize,
    named: usize,
    /// What may occur again: a number, and how many files it passes up.
    known: Vec<(usize, usize)>,
}

/// A workflow of some forty computations at most.
pub(crate) fn workflow(random: &mut Random) -> Expression {
    let budget = 1 + random.below(40);
    let mut generator = Generator { random, budget, named: 0, known: Vec::new() };
    generator.call(4)
}

impl Generator<'_> {
    /// An expression that passes up so many files at most, and how many it does.
    fn expression(&mut self, most: usize) -> (Expression, usize) {
        let again: Vec<_> =
            self.known.iter().copied().filter(|(_, width)| *width <= most).collect();
        match self.random.below(8) {
            0 | 1 if !again.is_empty() => {
                let (number, width) = again[self.random.below(again.len())];
                (Expression::Again(number), width)
            }
            _ if self.budget == 0 => (self.leaf(), 1),
            2 => (self.leaf(), 1),
            _ => {
                let call = self.call(most);
                let Expression::Call(_, _, outputs) = &call else {
                    return (call, 1);
                };
                let width = outputs.as_ref().map_or(1, Vec::len);
                if self.random.below(3) > 0 {
                    return (call, width);
                }
                self.named += 1;
                self.known.push((self.named, width));
                (Expression::Named(self.named, Box::new(call)), width)
            }
        }
    }

    fn leaf(&mut self) -> Expression {
        match self.random.below(5) {
            0 => {
                let name = LITERALS[self.random.below(LITERALS.len())];
                Expression::Leaf("literal", name.to_owned())
            }
            at => Expression::Leaf("input", INPUTS[at % INPUTS.len()].to_owned()),
        }
    }

    fn call(&mut self, most: usize) -> Expression {
        self.budget = self.budget.saturating_sub(1);
        let at = self.random.below(LIBRARY.len());
        let (inputs, outputs) = LIBRARY[at];
        let (mut arguments, mut filled) = (Vec::new(), 0);
        while filled < inputs {
            let (argument, width) = self.expression((inputs - filled).min(3));
            arguments.push(argument);
            filled += width;
        }
        let slice = self.slice(outputs, most);
        Expression::Call(format!("c{at}"), arguments, slice)
    }

    /// A choice among outputs, in any order and with repetitions; none sometimes, if there is one.
    fn slice(&mut self, outputs: usize, most: usize) -> Option<Vec<String>> {
        if outputs == 1 && self.random.below(4) == 0 {
            return None;
        }
        let count = 1 + self.random.below(most.min(4));
        let number = |_| {
            let (number, digits) = (self.random.below(outputs), 1 + self.random.below(2));
            format!("{number:0digits$}")
        };
        Some((0..count).map(number).collect())
    }
}

/// Gives other labels to leaves and links: they are for humans only.
pub(crate) fn relabel(lab: &Lab, random: &mut Random) {
    let entries = walkdir::WalkDir::new(lab.path("task/workflow")).contents_first(true);
    for entry in entries.into_iter().map(Result::unwrap) {
        let kind = fs::read_to_string(entry.path().join("kind")).unwrap_or_default();
        if entry.path_is_symlink() || kind == "input\n" || kind == "literal\n" {
            let name = entry.file_name().to_str().unwrap();
            let place = name.split('-').next().unwrap();
            let label = ["", "a b", "-", "\"quoted\"", "ünïcode"][random.below(5)];
            fs::rename(entry.path(), entry.path().with_file_name(format!("{place}-{label}")))
                .unwrap();
        }
    }
}

/// The expression without names: each that occurs again is written again.
pub(crate) fn expanded(
    expression: &Expression,
    named: &mut Vec<(usize, Expression)>,
) -> Expression {
    match expression {
        Expression::Call(name, inputs, outputs) => {
            let inputs = inputs.iter().map(|input| expanded(input, named)).collect();
            Expression::Call(
                name.clone(),
                inputs,
                outputs.clone().or_else(|| Some(vec!["00".to_owned()])),
            )
        }
        Expression::Named(number, inner) => {
            let inner = expanded(inner, named);
            named.push((*number, inner.clone()));
            inner
        }
        Expression::Again(number) => {
            named.iter().rfind(|(known, _)| known == number).unwrap().1.clone()
        }
        leaf => leaf.clone(),
    }
}

/// The expression in one line, as `ce-sym` would print it if it did not break lines.
pub(crate) fn line(expression: &Expression) -> String {
    let mut text = String::new();
    match expression {
        Expression::Call(name, inputs, outputs) => {
            write!(text, "({name}").unwrap();
            inputs.iter().for_each(|input| write!(text, " {}", line(input)).unwrap());
            write!(text, ")").unwrap();
            outputs.iter().for_each(|outputs| write!(text, "[{}]", outputs.join(", ")).unwrap());
        }
        Expression::Leaf("input", name) => write!(text, "INPUT('{name}')").unwrap(),
        Expression::Leaf(_, name) => write!(text, "FILE('{name}')").unwrap(),
        Expression::Named(number, inner) => write!(text, "#{number}={}", line(inner)).unwrap(),
        Expression::Again(number) => write!(text, "#{number}#").unwrap(),
    }
    text
}
