//! A workflow as somebody wrote it, in either form: its expression, and the places of its parts.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;

use ce_git::TreePath;
use ce_model::expression::{Expression, NodeKind, Parsed};
use ce_model::sweep::SweepRules;
use ce_model::task::{NodeId, TextComputation, WORKFLOW_TEXT};

use super::problems::{LoadFault, Problem, Problems, WarningKind};
use super::source::TaskSource;
use super::text_workflow::line_place;
use super::written_directories::{Branch, WrittenDirectories};

/// A workflow as somebody wrote it.
#[derive(Clone, Copy)]
pub(super) enum WrittenWorkflow<'a> {
    /// One text.
    Text(&'a Parsed<'a>),
    /// Directories below `workflow/`.
    Directories(&'a WrittenDirectories),
}

/// The place of a node.
#[derive(Clone)]
pub(super) enum NodePlace<'a> {
    /// It stands in a text.
    Text { parsed: &'a Parsed<'a>, node: NodeId },
    /// It has a directory.
    Directory {
        written: &'a WrittenDirectories,
        node: NodeId,
        dir: TreePath,
        /// The node was read from an equal directory, which has the places of the nodes that it reads.
        is_copy: bool,
    },
}

impl<'a> WrittenWorkflow<'a> {
    pub(super) const fn expression(self) -> &'a Expression {
        match self {
            Self::Text(parsed) => &parsed.text.expression,
            Self::Directories(written) => &written.text.expression,
        }
    }

    /// The computations that stand in the text.
    pub(super) fn text_computations(self) -> &'a [TextComputation] {
        match self {
            Self::Text(parsed) => &parsed.text.computations,
            Self::Directories(_) => &[],
        }
    }

    /// The root and its place, unless there is no root.
    pub(super) fn root(self) -> Option<(NodeId, NodePlace<'a>)> {
        let root = self.expression().root()?;
        let place = match self {
            Self::Text(parsed) => NodePlace::Text { parsed, node: root },
            Self::Directories(written) => {
                let dir = written.folders[root.index()].dir.clone();
                NodePlace::Directory { written, node: root, dir, is_copy: false }
            }
        };
        Some((root, place))
    }

    /// Whether all of a node could be read. If not, that was reported, and only its inputs are known.
    pub(super) fn is_readable(self, node: NodeId) -> bool {
        match self {
            Self::Text(_) => true,
            Self::Directories(written) => !written.unreadable.contains(&node),
        }
    }

    /// The numbered directories of the inputs of a node. A text has no numbers: there, inputs are filled in their order.
    pub(super) fn branches(self, node: NodeId) -> Option<impl Iterator<Item = &'a Branch>> {
        match self {
            Self::Text(_) => None,
            Self::Directories(written) => {
                Some(written.folders[node.index()].branches.iter().map(|read| &read.branch))
            }
        }
    }

    /// The names that definitions give to nodes.
    pub(super) fn names(self) -> HashMap<NodeId, Vec<Box<str>>> {
        let mut names: HashMap<NodeId, Vec<Box<str>>> = HashMap::new();
        match self {
            Self::Text(parsed) => {
                for definition in &parsed.text.definitions {
                    for node in &definition.nodes {
                        names.entry(*node).or_default().push(definition.name.clone());
                    }
                }
            }
            Self::Directories(written) => {
                let folders = written.folders.iter().enumerate();
                let named = folders.filter(|(_, folder)| !folder.names.is_empty());
                names.extend(named.map(|(at, folder)| (NodeId::at(at), folder.names.clone())));
            }
        }
        names
    }

    /// The nodes that are named with a slice of a definition. In directories, only other nodes with its name tell that.
    pub(super) fn parts(self) -> HashSet<NodeId> {
        match self {
            Self::Text(parsed) => {
                parsed.text.definitions.iter().flat_map(|it| it.parts.iter().copied()).collect()
            }
            Self::Directories(_) => HashSet::new(),
        }
    }

    /// The names that stand for expressions wherever they are written.
    pub(super) fn defined(self) -> Vec<String> {
        match self {
            Self::Text(parsed) => {
                parsed.text.definitions.iter().map(|it| it.name.to_string()).collect()
            }
            Self::Directories(_) => Vec::new(),
        }
    }

    /// The rules of a sweep, or of points. `None` if something is wrong with them, which is reported.
    pub(super) fn rules(self, node: NodeId, findings: &mut Problems) -> Option<Rc<SweepRules>> {
        let parsed = match self {
            Self::Text(parsed) => parsed,
            Self::Directories(written) => return written.folders[node.index()].rules.clone(),
        };
        let mut rules = parsed.rules(node).map_err(|mistakes| findings.mistakes(mistakes)).ok()?;
        // In a text, a sweep over computed points binds the names that it lists.
        let written = &parsed.text.expression[node];
        if written.kind == NodeKind::Sweep && written.inputs.len() > 1 {
            rules.names.get_or_insert_default();
        }
        Some(Rc::new(rules))
    }
}

impl<'a> NodePlace<'a> {
    /// The place of an input of the node, by its number.
    pub(super) fn of_input(&self, source: &mut impl TaskSource, number: usize) -> Self {
        let (written, node, dir, is_copy) = match self {
            Self::Text { parsed, node } => {
                let node = parsed.text.expression[*node].inputs[number].node;
                return Self::Text { parsed, node };
            }
            Self::Directory { written, node, dir, is_copy } => (*written, *node, dir, *is_copy),
        };
        let read = &written.folders[node.index()].branches[number];
        let here = if is_copy {
            let inputs = source.enter(dir, "inputs");
            inputs.and_then(|inputs| source.enter(&inputs, &read.branch.name)).ok()
        } else {
            None
        };
        let dir = here.or_else(|| read.dir.clone()).unwrap_or_else(|| dir.clone());
        let node = written.text.expression[node].inputs[number].node;
        Self::Directory { written, node, dir, is_copy: is_copy || read.is_copy }
    }

    /// The path of its directory, or its line and column in the text.
    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::Text { parsed, node } => {
                format!("{WORKFLOW_TEXT}:{}", parsed.position(*node)).into()
            }
            Self::Directory { dir, .. } => dir.place(),
        }
    }

    /// The path of its directory, or its line in the text, as a message names it when the task has been loaded.
    pub(super) fn shown(&self) -> PathBuf {
        match self {
            Self::Text { parsed, node } => line_place(parsed.line_of_file(*node, "", 0)),
            Self::Directory { dir, .. } => dir.place(),
        }
    }

    /// The path of a file of the node, relative to the task, and the number of a line in it. Line zero is the whole file.
    /// An empty name is the node itself.
    pub(super) fn line(&self, file: &str, line: usize) -> (PathBuf, usize) {
        match self {
            Self::Text { parsed, node } => {
                (WORKFLOW_TEXT.into(), parsed.line_of_file(*node, file, line))
            }
            Self::Directory { dir, .. } if file.is_empty() => (dir.place(), line),
            Self::Directory { dir, .. } => (dir.place().join(file), line),
        }
    }

    /// The problem of a line of a file of the node. In a text, a fault of rules has the words of the text.
    pub(super) fn problem(&self, file: &str, line: usize, fault: LoadFault) -> Problem {
        let (path, number) = self.line(file, line);
        let line_number = (number > 0).then_some(number);
        let Self::Text { parsed, node } = self else {
            return Problem { path, line: line_number, excerpt: None, fault };
        };
        let fault = match fault {
            LoadFault::Sweep(fault) => {
                LoadFault::Mistake(Box::new(parsed.fault_of_rules(*node, file, line, *fault)))
            }
            other => other,
        };
        let excerpt = Some(Box::new(parsed.excerpt(*node, file, line)));
        Problem { path, line: line_number, excerpt, fault }
    }

    /// Warns of a file of the node.
    pub(super) fn warn(&self, file: &str, oddity: WarningKind, findings: &mut Problems) {
        let path = match (self, self.line(file, 0)) {
            (Self::Text { .. }, (_, line)) => line_place(line),
            (Self::Directory { .. }, (path, _)) => path,
        };
        findings.warning(&path, oddity);
    }
}
