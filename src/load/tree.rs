//! The directories below `workflow/`, read into expressions.
//!
//! The walk keeps its own stack, so that no depth of the tree is too great. A directory is known
//! by device and inode: one that is met again through a link is not read again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::branch::{self, Branch};
use super::library::Library;
use super::nearest;
use super::own_files::OwnFiles;
use super::problems::{LoadFault, Problems, WarningKind};
use super::source::{Identity, Located, TaskSource};
use super::text;
use crate::task::name::InputName;
use crate::task::slice::{MAX_ARITY, Slice};
use crate::task::workflow::{Argument, Builder, ComputationId, InputId, Node, NodeId, Workflow};

/// The loading of one workflow.
pub(super) struct WorkflowWalk<'a, 'b, S: TaskSource> {
    inputs: Option<&'a [InputName]>,
    files: &'a mut OwnFiles,
    library: &'a mut Library<'b, S>,
    findings: &'a mut Problems,
    builder: Builder,
    visited: HashMap<Identity, Visit>,
    /// The computations around where the walk is.
    stack: Vec<OpenNode<S::Dir>>,
}

/// What is known of a directory.
#[derive(Clone, Copy)]
enum Visit {
    /// It is being read, and has this place in the stack.
    Open(u32),
    /// It was read, and is this node unless something is wrong with it.
    Done(Option<NodeId>),
}

/// A computation of which the inputs are being read.
struct OpenNode<D> {
    dir: D,
    /// What holds the branches.
    inputs: Option<D>,
    id: Identity,
    computation: Option<ComputationId>,
    slice: Option<Slice>,
    branches: Vec<Branch>,
    nodes: Vec<Option<NodeId>>,
}

/// What entering a directory led to.
enum Visited<D> {
    Node(Option<NodeId>),
    OpenNode(OpenNode<D>),
}

impl<'a, 'b, S: TaskSource> WorkflowWalk<'a, 'b, S> {
    pub(super) fn new(
        inputs: Option<&'a [InputName]>,
        files: &'a mut OwnFiles,
        library: &'a mut Library<'b, S>,
        findings: &'a mut Problems,
    ) -> Self {
        let (visited, stack) = (HashMap::new(), Vec::new());
        Self { inputs, files, library, findings, builder: Builder::default(), visited, stack }
    }

    /// Reads everything; returns the expression unless something is wrong.
    pub(super) fn load(mut self) -> Option<Workflow> {
        let task = self.library.source.task();
        let task = self.findings.note(Path::new(""), task)?;
        let mut entered = self.enter(&task, "workflow");
        loop {
            let node = match entered {
                Visited::OpenNode(frame) => {
                    self.stack.push(frame);
                    None
                }
                Visited::Node(node) => Some(node),
            };
            let Some(frame) = self.stack.last_mut() else {
                return node.flatten().map(|root| self.builder.finish(root));
            };
            frame.nodes.extend(node);
            entered = match (frame.branches.get(frame.nodes.len()), &frame.inputs) {
                (Some(branch), Some(inputs)) => {
                    let (inputs, name) = (inputs.clone(), branch.name.clone());
                    self.enter(&inputs, &name)
                }
                _ => {
                    let frame = self.stack.pop();
                    Visited::Node(frame.and_then(|frame| self.finish(&frame)))
                }
            };
        }
    }

    /// Where something in a directory is, relative to the task.
    fn path(&self, dir: &S::Dir, name: &str) -> PathBuf {
        let place = self.library.source.place(dir);
        if name.is_empty() { place } else { place.join(name) }
    }

    fn problem(&mut self, dir: &S::Dir, name: &str, fault: LoadFault) {
        let path = self.path(dir, name);
        self.findings.problem(&path, fault);
    }

    fn warning(&mut self, dir: &S::Dir, name: &str, oddity: WarningKind) {
        let path = self.path(dir, name);
        self.findings.warning(&path, oddity);
    }

    /// Returns what something in a directory says, or notes what is wrong with it.
    fn note<T>(&mut self, dir: &S::Dir, name: &str, result: Result<T, LoadFault>) -> Option<T> {
        result.map_err(|fault| self.problem(dir, name, fault)).ok()
    }

    /// Begins to read a directory, unless it is known.
    fn enter(&mut self, around: &S::Dir, name: &str) -> Visited<S::Dir> {
        let Some((dir, id)) = self.locate(around, name) else {
            return Visited::Node(None);
        };
        match self.visited.get(&id) {
            Some(Visit::Done(node)) => return Visited::Node(*node),
            Some(Visit::Open(at)) => {
                let above = self.library.source.place(&self.stack[*at as usize].dir);
                self.problem(around, name, LoadFault::Cycle(above));
                return Visited::Node(None);
            }
            None => {}
        }
        let Some(found) = self.entries(&dir) else {
            return Visited::Node(None);
        };
        let kind = self.single(&dir, "kind", found.kind);
        let value = self.single(&dir, "value", found.value);
        let (kind, value) = match (kind, value) {
            (Some(kind), Some(value)) => (kind, value),
            (Some(kind), None) if kind == "computation" => {
                return self.frame(dir, id, &found, None);
            }
            _ => return self.done(id, None),
        };
        match kind.as_str() {
            "computation" => self.frame(dir, id, &found, Some(&value)),
            "input" | "literal" | "file" => {
                for (name, there) in [("inputs", found.inputs), ("outputs", found.outputs)] {
                    if there {
                        self.warning(&dir, name, WarningKind::Unread);
                    }
                }
                let node = match kind.as_str() {
                    "input" => self.input(&value),
                    "file" => {
                        let file = self.files.find(self.library.source, &value, self.findings);
                        file.map(|file| file.map(Node::File))
                    }
                    _ => literal(&value),
                };
                let node = self.note(&dir, "value", node).flatten();
                let node = node.map(|node| self.builder.intern(node));
                self.done(id, node)
            }
            _ => {
                self.problem(&dir, "kind", LoadFault::Kind(kind));
                // What is below it may be wrong, too.
                if found.inputs { self.frame(dir, id, &found, None) } else { self.done(id, None) }
            }
        }
    }

    fn done(&mut self, id: Identity, node: Option<NodeId>) -> Visited<S::Dir> {
        self.visited.insert(id, Visit::Done(node));
        Visited::Node(node)
    }

    /// Returns a directory and its identity.
    fn locate(&mut self, around: &S::Dir, name: &str) -> Option<(S::Dir, Identity)> {
        let found = self.library.source.find(around, name);
        match self.note(around, name, found)? {
            Located::Directory { dir, outside: true, .. } => {
                let place = self.library.source.place(&dir);
                self.problem(around, name, LoadFault::Outside(place));
                None
            }
            Located::Directory { dir, identity, .. } => Some((dir, identity)),
            Located::File { .. } => {
                self.problem(around, name, LoadFault::NotADirectory);
                None
            }
        }
    }

    fn entries(&mut self, dir: &S::Dir) -> Option<NodeEntries> {
        let listed = self.library.source.list(dir);
        let mut found = NodeEntries::default();
        for entry in self.note(dir, "", listed)? {
            match entry.as_encoded_bytes() {
                b"kind" => found.kind = true,
                b"value" => found.value = true,
                b"inputs" => found.inputs = true,
                b"outputs" => found.outputs = true,
                [b'.', ..] => {}
                _ => {
                    let path = self.library.source.place(dir).join(&entry);
                    self.findings.warning(&path, WarningKind::Unread);
                }
            }
        }
        Some(found)
    }

    fn single(&mut self, dir: &S::Dir, name: &str, there: bool) -> Option<String> {
        if !there {
            self.problem(dir, name, LoadFault::Missing);
            return None;
        }
        let line = text::line(self.library.source.read(dir, name));
        let (line, more) = self.note(dir, name, line)?;
        if more {
            self.warning(dir, name, WarningKind::MoreLines);
        }
        Some(line)
    }

    fn input(&self, name: &str) -> Result<Option<Node>, LoadFault> {
        let Some(inputs) = self.inputs else {
            return Ok(None);
        };
        if let Some(at) = inputs.iter().position(|input| input.as_str() == name) {
            return Ok(Some(Node::Input(InputId::at(at))));
        }
        let names: Vec<String> = inputs.iter().map(ToString::to_string).collect();
        Err(LoadFault::NoInput { name: name.to_owned(), nearest: nearest(name, &names) })
    }

    /// Begins to read a computation, of which the name may be missing.
    fn frame(
        &mut self,
        dir: S::Dir,
        id: Identity,
        found: &NodeEntries,
        name: Option<&str>,
    ) -> Visited<S::Dir> {
        let computation = name.and_then(|name| {
            let computation = self.library.find(name, self.findings);
            self.note(&dir, "value", computation).flatten()
        });
        let slice = self.slice(&dir, found.outputs, computation);
        let inputs = found.inputs.then(|| self.library.source.enter(&dir, "inputs"));
        let inputs = inputs.and_then(|inputs| self.note(&dir, "inputs", inputs));
        let branches = match &inputs {
            Some(inputs) => branch::list(self.library.source, inputs, self.findings),
            None => Vec::new(),
        };
        self.visited.insert(id.clone(), Visit::Open(self.stack.len() as u32));
        let nodes = Vec::with_capacity(branches.len());
        Visited::OpenNode(OpenNode { dir, inputs, id, computation, slice, branches, nodes })
    }

    fn slice(
        &mut self,
        dir: &S::Dir,
        there: bool,
        computation: Option<ComputationId>,
    ) -> Option<Slice> {
        if !there {
            let all = |id| Slice::all(self.library.get(id).outputs.len());
            return computation.map(all);
        }
        let path = &self.path(dir, "outputs");
        let lines = text::lines(self.library.source.read(dir, "outputs"));
        let lines = self.findings.note_lines(path, lines)?;
        if lines.is_empty() {
            self.findings.problem(path, LoadFault::NoOutput);
        } else if lines.len() > MAX_ARITY {
            self.findings.problem(path, LoadFault::TooMany(lines.len()));
        }
        let (slice, wrong) = Slice::parse(lines.iter().map(String::as_str));
        for (at, error) in wrong {
            self.findings.problem_in_line(path, at + 1, LoadFault::Slice(error));
        }
        let computation = computation.map(|id| self.library.get(id));
        let (name, count) = computation.map(|it| (it.name.to_string(), it.outputs.len()))?;
        for (at, line) in lines.iter().enumerate() {
            let number = line.parse::<usize>().unwrap_or_default();
            if (count..MAX_ARITY).contains(&number) {
                let fault = LoadFault::OutOfSlice { computation: name.clone(), count, number };
                self.findings.problem_in_line(path, at + 1, fault);
            }
        }
        Some(slice)
    }

    /// Makes a node of a computation whose inputs were all read.
    fn finish(&mut self, frame: &OpenNode<S::Dir>) -> Option<NodeId> {
        let node = self.node(frame);
        self.visited.insert(frame.id.clone(), Visit::Done(node));
        node
    }

    fn node(&mut self, frame: &OpenNode<S::Dir>) -> Option<NodeId> {
        let mut arguments = Vec::with_capacity(frame.branches.len());
        for (branch, node) in frame.branches.iter().zip(&frame.nodes) {
            let Some(node) = *node else { continue };
            let (width, places) = (self.builder[node].width(), branch.places());
            if width != places
                && let Some(inputs) = &frame.inputs
            {
                self.problem(inputs, &branch.name, LoadFault::Width { width, places });
            }
            let Branch { first, last, ref label, .. } = *branch;
            arguments.push(Argument { label: label.as_str().into(), first, last, node });
        }
        let computation = frame.computation?;
        let known = self.library.get(computation);
        let given = frame.branches.iter().map(Branch::places).sum();
        if given != known.inputs.len() {
            let takes = known.inputs.len();
            let fault = LoadFault::Arity { computation: known.name.to_string(), takes, given };
            self.problem(&frame.dir, "inputs", fault);
        }
        let complete = arguments.len() == frame.branches.len();
        let outputs = frame.slice.clone().filter(|_| complete)?;
        let inputs = arguments.into();
        Some(self.builder.intern(Node::Computation { computation, inputs, outputs }))
    }
}

fn literal(name: &str) -> Result<Option<Node>, LoadFault> {
    name.parse().map(|name| Some(Node::Literal(name))).map_err(LoadFault::Name)
}

/// What a workflow directory holds.
#[derive(Default)]
struct NodeEntries {
    kind: bool,
    value: bool,
    inputs: bool,
    outputs: bool,
}
