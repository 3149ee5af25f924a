//! Sweeps made up from a seed.

use compeval::expression::{Expression, ExpressionInput, ExpressionNode, NodeKind, RuleFile, Text};
use compeval::slice::WrittenSlice;
use compeval::task::NodeId;

use super::ALL;
use crate::generator::Random;
use crate::lab::Lab;
use crate::lisp::shown;

/// Texts that are awkward in some way, and may be a line of a list.
const LINES: [&str; 12] = [
    "1",
    "a b",
    "it's",
    "dogs' tails",
    "')",
    "|\\",
    "; c",
    "#1#",
    ":names",
    "ü\u{a0}ü",
    "\u{feff}mark",
    "a\"b",
];

/// Those that only a cell may be.
const CELLS: [&str; 4] = ["", " ", " 1 ", "\u{a0}"];

const LABELS: [&str; 7] = ["body", "points", "names", "allow-failed", "", "a b", "it's"];

/// Makes up sweeps in each other. Their names differ.
struct Generator<'a> {
    random: &'a mut Random,
    expression: Expression,
    names: usize,
}

impl Generator<'_> {
    fn push(&mut self, kind: NodeKind, value: &str, inputs: &[NodeId]) -> NodeId {
        let label = |node: &NodeId| (Some(self.random.one_of(&LABELS).into()), *node);
        let inputs = inputs.iter().map(label).map(|(label, node)| ExpressionInput { label, node });
        let (value, inputs, files) = (value.into(), inputs.collect(), Vec::new());
        let outputs = (kind == NodeKind::Computation).then(|| WrittenSlice::all(1));
        self.expression.push(ExpressionNode { kind, value, files, inputs, outputs })
    }

    fn name(&mut self) -> String {
        self.names += 1;
        // A byte order mark begins no name of a task's input.
        format!("{}{}", self.random.one_of(&["a b", "it's", "x|", "(", "ü"]), self.names)
    }

    /// A line that no other one of a list is.
    fn line(&mut self, at: usize) -> Box<str> {
        format!("{}{at}", self.random.one_of(&LINES)).into()
    }

    /// Makes a file with some rows, which differ, of cells with these names.
    fn sheet(&mut self, name: &str, columns: &[String]) -> RuleFile {
        let mut rows = vec![columns.iter().map(|name| name.as_str().into()).collect::<Vec<_>>()];
        for at in 0..1 + self.random.below(4) {
            let mut row = vec![self.line(at)];
            for _ in 1..columns.len() {
                row.push(match self.random.below(2) {
                    0 => self.random.one_of(&CELLS).into(),
                    _ => self.random.one_of(&LINES).into(),
                });
            }
            rows.push(row);
        }
        RuleFile { name: name.into(), rows }
    }

    /// Makes factors, and perhaps an exclusion and replicates. Returns the names that must be read.
    fn factors(&mut self) -> (Vec<RuleFile>, Vec<String>) {
        let (mut files, mut names, mut exclude) = (Vec::new(), Vec::new(), None);
        for number in 0..1 + self.random.below(3) {
            let name = self.name();
            let file = match self.random.below(2) {
                0 => {
                    let columns: Vec<String> =
                        [name.clone()].into_iter().chain((0..2).map(|_| self.name())).collect();
                    self.sheet(&format!("factors/{number:02}-{name}.tsv"), &columns)
                }
                _ => {
                    let count = 1 + self.random.below(40);
                    let rows = (0..count).map(|at| vec![self.line(at)]).collect();
                    RuleFile { name: format!("factors/{number:02}-{name}").into(), rows }
                }
            };
            let level = file.rows.last().unwrap()[0].clone();
            exclude.get_or_insert((name.clone(), level));
            names.push(name);
            files.push(file);
        }
        if let (Some((name, level)), 0) = (exclude, self.random.below(2)) {
            let rows = vec![vec![name.into()], vec![level]];
            files.push(RuleFile { name: "exclude.tsv".into(), rows });
        }
        if self.random.below(2) == 0 {
            // It holds at any points.
            let texts = ["1 < 2", "'a' == \"a\"", "!(2 in (1, 3)) && -1 % 2 == -1"];
            let rows = vec![vec![self.random.one_of(&texts).into()]];
            files.push(RuleFile { name: "where".into(), rows });
        }
        if self.random.below(2) == 0 {
            let most = 6 + self.random.below(9);
            let until = self.random.one_of(&["", " until hash ±5%", " until a  b ±0.25%"]);
            let line =
                if until.is_empty() { most.to_string() } else { format!("6..{most}{until}") };
            let rows = vec![vec![line.into()]];
            files.push(RuleFile { name: "replicates".into(), rows });
        }
        (files, names)
    }

    fn points(&mut self) -> NodeId {
        let (files, _) = self.factors();
        let points = self.push(NodeKind::Points, "", &[]);
        let node = &mut self.expression.nodes_mut()[points.index()];
        node.files = files;
        // Points have no results, by which replicates could end.
        node.files.iter_mut().filter(|file| &*file.name == "replicates").for_each(|file| {
            let line = file.rows[0][0].split("..").next().unwrap_or_default().into();
            file.rows = vec![vec![line]];
        });
        node.value = self.random.one_of(&["", "grid", "'a)'"]).into();
        points
    }

    /// A call that reads these names, each on its own.
    fn body(&mut self, names: &[String], inner: Option<NodeId>) -> NodeId {
        let first = inner.unwrap_or_else(|| self.push(NodeKind::Input, "x", &[]));
        names.iter().fold(first, |body, name| {
            let read = match self.random.below(3) {
                0 => self.push(NodeKind::Literal, &format!("by hand/{{{name}}}"), &[]),
                _ => self.push(NodeKind::Input, name, &[]),
            };
            self.push(NodeKind::Computation, "c1", &[body, read])
        })
    }

    /// A sweep with up to `depth` more in its body.
    fn sweep(&mut self, depth: usize) -> NodeId {
        let has_factors = self.random.below(3) == 0;
        let (mut files, mut names, mut points) = (Vec::new(), Vec::new(), None);
        if has_factors {
            (files, names) = self.factors();
        } else {
            let made = self.points();
            points = Some(match self.random.below(2) {
                0 => made,
                _ => self.push(NodeKind::Computation, "c1", &[made, made]),
            });
            names.extend([self.name(), self.name()]);
            let rows = names.iter().map(|name| vec![name.as_str().into()]).collect();
            files.push(RuleFile { name: "names".into(), rows });
        }
        if files.iter().any(|file| &*file.name == "replicates") {
            // It is bound once.
            files.retain(|file| depth == 0 || &*file.name != "replicates");
            names.extend((depth == 0).then(|| "replicate".to_owned()));
        }
        let inner = (depth > 0).then(|| self.sweep(depth - 1));
        let body = self.body(&names, inner);
        let until = files.iter().filter(|file| &*file.name == "replicates");
        let until = until.map(|file| file.rows[0][0].clone()).find(|line| line.contains("until"));
        let column = match until {
            // By this column replicates end.
            Some(line) if line.contains("hash") => Some("hash"),
            Some(_) => Some("a  b"),
            None if self.random.below(2) == 0 => {
                Some(self.random.one_of(&["seconds", "*", "**", "a  b"]))
            }
            None => None,
        };
        if let Some(column) = column {
            let rows = vec![vec![format!("00 {column}").into()]];
            files.push(RuleFile { name: "columns".into(), rows });
        }
        if self.random.below(2) == 0 {
            files.push(RuleFile { name: "allow-failed".into(), rows: Vec::new() });
        }
        let inputs: Vec<NodeId> = [body].into_iter().chain(points).collect();
        let sweep = self.push(NodeKind::Sweep, "", &inputs);
        let node = &mut self.expression.nodes_mut()[sweep.index()];
        node.files = files;
        node.value = self.random.one_of(&["", "scaling", "it's (a) |sweep|"]).into();
        node.outputs = Some(WrittenSlice::all(1));
        sweep
    }
}

/// The text of made-up sweeps.
pub(super) fn generated(lab: &Lab, seed: u64) -> String {
    let mut random = Random::new(seed);
    let depth = random.below(3);
    let expression = Expression::default();
    let mut generator = Generator { random: &mut random, expression, names: 0 };
    generator.sweep(depth);
    let inputs = lab.inputs.iter().map(|name| name.parse().unwrap()).collect();
    shown(&Text { inputs: Some(inputs), expression: generator.expression, ..Text::default() }, ALL)
}
