//! Workflows made up from a seed.

use std::fs;
use std::ops::Range;

use compeval::expression::{
    Expression, ExpressionInput, ExpressionNode, Labels, NodeKind, Sharing, Style, Text,
};
use compeval::slice::WrittenSlice;
use compeval::task::NodeId;

use crate::lab::Lab;
use crate::lisp::shown;

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

/// The numbers of inputs and outputs of the computations of the library, each called `c` and a number.
const LIBRARY: [(usize, usize); 6] = [(1, 1), (2, 1), (2, 2), (3, 4), (5, 2), (0, 1)];

const INPUTS: [&str; 3] = ["x", "y", "stop words"];

pub(crate) const LITERALS: [&str; 2] = ["tinputs/00/0000000000", "by hand/one"];

/// The name of an output, by its number.
pub(crate) fn output_name(number: usize) -> String {
    format!("name-{number}")
}

/// A laboratory with the library, the inputs and the literals, and no workflow yet.
pub(crate) fn lab() -> Lab {
    let mut lab = Lab::empty();
    for (number, (inputs, outputs)) in LIBRARY.into_iter().enumerate() {
        let names = |count| (0..count).map(output_name).collect::<Vec<String>>().join(" ");
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
    expression: Expression,
    /// The nodes that may occur again, each with the number of files that it passes up.
    known: Vec<(NodeId, usize)>,
}

/// A workflow of some forty computations at most, without labels.
pub(crate) fn workflow(random: &mut Random) -> Expression {
    let budget = 1 + random.below(40);
    let expression = Expression::default();
    let mut generator = Generator { random, budget, expression, known: Vec::new() };
    generator.call(4);
    generator.expression
}

impl Generator<'_> {
    /// An expression that passes up at most this number of files, and how many it does.
    fn expression(&mut self, most: usize) -> (NodeId, usize) {
        let again: Vec<_> =
            self.known.iter().copied().filter(|(_, width)| *width <= most).collect();
        match self.random.below(9) {
            0 | 1 if !again.is_empty() => again[self.random.below(again.len())],
            _ if self.budget == 0 => (self.leaf(), 1),
            2 => (self.leaf(), 1),
            3 if most > 1 => self.all(most),
            _ => {
                let call = self.call(most);
                if self.random.below(3) == 0 {
                    self.known.push(call);
                }
                call
            }
        }
    }

    /// Several expressions, which together pass up at most this number of files.
    fn all(&mut self, most: usize) -> (NodeId, usize) {
        let (mut inputs, mut width) = (Vec::new(), 0);
        while inputs.is_empty() || width < most && self.random.below(3) > 0 {
            let (node, more) = self.expression(most - width);
            inputs.push(ExpressionInput { label: None, node });
            width += more;
        }
        let node = ExpressionNode {
            kind: NodeKind::All,
            value: "".into(),
            files: Vec::new(),
            inputs,
            outputs: None,
        };
        (self.expression.push(node), width)
    }

    fn leaf(&mut self) -> NodeId {
        let (kind, value) = match self.random.below(5) {
            0 => (NodeKind::Literal, LITERALS[self.random.below(LITERALS.len())]),
            at => (NodeKind::Input, INPUTS[at % INPUTS.len()]),
        };
        self.expression.push(ExpressionNode {
            kind,
            value: value.into(),
            files: Vec::new(),
            inputs: Vec::new(),
            outputs: None,
        })
    }

    fn call(&mut self, most: usize) -> (NodeId, usize) {
        self.budget = self.budget.saturating_sub(1);
        let at = self.random.below(LIBRARY.len());
        let (takes, makes) = LIBRARY[at];
        let (mut inputs, mut filled) = (Vec::new(), 0);
        while filled < takes {
            let (node, width) = self.expression((takes - filled).min(3));
            inputs.push(ExpressionInput { label: None, node });
            filled += width;
        }
        let outputs = self.slice(makes, most);
        let width = outputs.as_ref().map_or(1, WrittenSlice::len);
        let value = format!("c{at}").into();
        (
            self.expression.push(ExpressionNode {
                kind: NodeKind::Computation,
                value,
                files: Vec::new(),
                inputs,
                outputs,
            }),
            width,
        )
    }

    /// A choice among outputs, in any order and with repetitions; none sometimes, if there is one.
    fn slice(&mut self, outputs: usize, most: usize) -> Option<WrittenSlice> {
        if outputs == 1 && self.random.below(4) == 0 {
            return None;
        }
        let count = 1 + self.random.below(most.min(4));
        let output = |_| match (self.random.below(outputs), self.random.below(3)) {
            (number, 0) => output_name(number),
            (number, digits) => format!("{number:0digits$}"),
        };
        let outputs: Vec<String> = (0..count).map(output).collect();
        Some(WrittenSlice::parse(outputs.iter().map(String::as_str)))
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

/// The expression with all slices, as `ce-sym` prints it.
pub(crate) fn printed(expression: &Expression, sharing: Sharing) -> String {
    let mut expression = expression.clone();
    for node in expression.nodes_mut().iter_mut().filter(|node| node.kind == NodeKind::Computation)
    {
        node.outputs.get_or_insert_with(|| WrittenSlice::all(1));
    }
    let inputs = Some(INPUTS.iter().map(|name| name.parse().unwrap()).collect());
    shown(&Text { inputs, expression, ..Text::default() }, Style { sharing, labels: Labels::Hide })
}
