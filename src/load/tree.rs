//! The directories below `workflow/`, read into expressions.
//!
//! The walk keeps its own stack, so that no depth of the tree is too great. A directory is known
//! by device and inode: one that is met again through a link is not read again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::branch::{self, Branch};
use super::library::Library;
use super::nearest;
use super::problem::{Fault, Findings, Oddity};
use super::source::{Found, Identity};
use super::text;
use crate::name::InputName;
use crate::slice::Slice;
use crate::workflow::{Argument, Builder, ComputationId, InputId, MOST, Node, NodeId, Workflow};

/// The loading of one workflow.
pub(super) struct Tree<'a, 'b> {
    inputs: Option<&'a [InputName]>,
    library: &'a mut Library<'b>,
    findings: &'a mut Findings,
    builder: Builder,
    visited: HashMap<Identity, Visit>,
}

/// What is known of a directory.
enum Visit {
    /// It is being read, at this path.
    Open(PathBuf),
    /// It was read, and is this node unless something is wrong with it.
    Done(Option<NodeId>),
}

/// A computation of which the inputs are being read.
struct Frame {
    dir: PathBuf,
    id: Identity,
    computation: Option<ComputationId>,
    slice: Option<Slice>,
    branches: Vec<Branch>,
    nodes: Vec<Option<NodeId>>,
}

/// What entering a directory led to.
enum Entered {
    Node(Option<NodeId>),
    Frame(Frame),
}

impl<'a, 'b> Tree<'a, 'b> {
    pub(super) fn new(
        inputs: Option<&'a [InputName]>,
        library: &'a mut Library<'b>,
        findings: &'a mut Findings,
    ) -> Self {
        Self { inputs, library, findings, builder: Builder::default(), visited: HashMap::new() }
    }

    /// Reads everything; returns the expression unless something is wrong.
    pub(super) fn load(mut self) -> Option<Workflow> {
        let mut stack = Vec::new();
        let mut entered = self.enter(Path::new("workflow"));
        loop {
            let node = match entered {
                Entered::Frame(frame) => {
                    stack.push(frame);
                    None
                }
                Entered::Node(node) => Some(node),
            };
            let Some(frame) = stack.last_mut() else {
                return node.flatten().map(|root| self.builder.finish(root));
            };
            frame.nodes.extend(node);
            entered = match frame.branches.get(frame.nodes.len()) {
                Some(branch) => {
                    let path = frame.dir.join("inputs").join(&branch.name);
                    self.enter(&path)
                }
                None => {
                    let frame = stack.pop();
                    Entered::Node(frame.and_then(|frame| self.finish(&frame)))
                }
            };
        }
    }

    /// Begins to read a directory, unless it is known.
    fn enter(&mut self, path: &Path) -> Entered {
        let Some((dir, id)) = self.locate(path) else {
            return Entered::Node(None);
        };
        match self.visited.get(&id) {
            Some(Visit::Done(node)) => return Entered::Node(*node),
            Some(Visit::Open(above)) => {
                let fault = Fault::Cycle(above.clone());
                self.findings.problem(path, fault);
                return Entered::Node(None);
            }
            None => {}
        }
        let Some(found) = self.entries(&dir) else {
            return Entered::Node(None);
        };
        let kind = self.single(&dir.join("kind"), found.kind);
        let value = self.single(&dir.join("value"), found.value);
        let (kind, value) = match (kind, value) {
            (Some(kind), Some(value)) => (kind, value),
            (Some(kind), None) if kind == "computation" => {
                return self.frame(dir, id, &found, None);
            }
            _ => return self.done(id, None),
        };
        match kind.as_str() {
            "computation" => self.frame(dir, id, &found, Some(&value)),
            "input" | "literal" => {
                for (name, there) in [("inputs", found.inputs), ("outputs", found.outputs)] {
                    if there {
                        self.findings.warning(&dir.join(name), Oddity::Unread);
                    }
                }
                let node = if kind == "input" { self.input(&value) } else { literal(&value) };
                let node = self.findings.note(&dir.join("value"), node).flatten();
                let node = node.map(|node| self.builder.intern(node));
                self.done(id, node)
            }
            _ => {
                self.findings.problem(&dir.join("kind"), Fault::Kind(kind));
                // What is below it may be wrong, too.
                if found.inputs { self.frame(dir, id, &found, None) } else { self.done(id, None) }
            }
        }
    }

    fn done(&mut self, id: Identity, node: Option<NodeId>) -> Entered {
        self.visited.insert(id, Visit::Done(node));
        Entered::Node(node)
    }

    /// Returns the real place of a directory, relative to the task, and its identity.
    fn locate(&mut self, path: &Path) -> Option<(PathBuf, Identity)> {
        let found = self.library.source.find(path);
        match self.findings.note(path, found)? {
            Found::Directory { place, outside: true, .. } => {
                self.findings.problem(path, Fault::Outside(place));
                None
            }
            Found::Directory { place, identity, .. } => Some((place, identity)),
            Found::File { .. } => {
                self.findings.problem(path, Fault::NotADirectory);
                None
            }
        }
    }

    fn entries(&mut self, dir: &Path) -> Option<Entries> {
        let listed = self.library.source.list(dir);
        let mut found = Entries::default();
        for entry in self.findings.note(dir, listed)? {
            match entry.as_encoded_bytes() {
                b"kind" => found.kind = true,
                b"value" => found.value = true,
                b"inputs" => found.inputs = true,
                b"outputs" => found.outputs = true,
                [b'.', ..] => {}
                _ => self.findings.warning(&dir.join(&entry), Oddity::Unread),
            }
        }
        Some(found)
    }

    fn single(&mut self, path: &Path, there: bool) -> Option<String> {
        if !there {
            self.findings.problem(path, Fault::Missing);
            return None;
        }
        let (line, more) = self.findings.note(path, text::line(self.library.source.read(path)))?;
        if more {
            self.findings.warning(path, Oddity::MoreLines);
        }
        Some(line)
    }

    fn input(&self, name: &str) -> Result<Option<Node>, Fault> {
        let Some(inputs) = self.inputs else {
            return Ok(None);
        };
        if let Some(at) = inputs.iter().position(|input| input.as_str() == name) {
            return Ok(Some(Node::Input(InputId::at(at))));
        }
        let names: Vec<String> = inputs.iter().map(ToString::to_string).collect();
        Err(Fault::NoInput { name: name.to_owned(), nearest: nearest(name, &names) })
    }

    /// Begins to read a computation, of which the name may be missing.
    fn frame(
        &mut self,
        dir: PathBuf,
        id: Identity,
        found: &Entries,
        name: Option<&str>,
    ) -> Entered {
        let computation = name.and_then(|name| {
            let computation = self.library.find(name, self.findings);
            self.findings.note(&dir.join("value"), computation).flatten()
        });
        let slice = self.slice(&dir.join("outputs"), found.outputs, computation);
        let branches = if found.inputs {
            branch::list(self.library.source, &dir.join("inputs"), self.findings)
        } else {
            Vec::new()
        };
        self.visited.insert(id.clone(), Visit::Open(dir.clone()));
        let nodes = Vec::with_capacity(branches.len());
        Entered::Frame(Frame { dir, id, computation, slice, branches, nodes })
    }

    fn slice(
        &mut self,
        path: &Path,
        there: bool,
        computation: Option<ComputationId>,
    ) -> Option<Slice> {
        if !there {
            let all = |id| Slice::all(self.library.get(id).outputs.len());
            return computation.map(all);
        }
        let lines = self.findings.note_lines(path, text::lines(self.library.source.read(path)))?;
        if lines.is_empty() {
            self.findings.problem(path, Fault::NoOutput);
        } else if lines.len() > MOST {
            self.findings.problem(path, Fault::TooMany(lines.len()));
        }
        let (slice, wrong) = Slice::parse(lines.iter().map(String::as_str));
        for (at, error) in wrong {
            self.findings.problem_in_line(path, at + 1, Fault::Slice(error));
        }
        let computation = computation.map(|id| self.library.get(id));
        let (name, count) = computation.map(|it| (it.name.to_string(), it.outputs.len()))?;
        for (at, line) in lines.iter().enumerate() {
            let number = line.parse::<usize>().unwrap_or_default();
            if (count..MOST).contains(&number) {
                let fault = Fault::OutOfSlice { computation: name.clone(), count, number };
                self.findings.problem_in_line(path, at + 1, fault);
            }
        }
        Some(slice)
    }

    /// Makes a node of a computation whose inputs were all read.
    fn finish(&mut self, frame: &Frame) -> Option<NodeId> {
        let node = self.node(frame);
        self.visited.insert(frame.id.clone(), Visit::Done(node));
        node
    }

    fn node(&mut self, frame: &Frame) -> Option<NodeId> {
        let inputs = frame.dir.join("inputs");
        let mut arguments = Vec::with_capacity(frame.branches.len());
        for (branch, node) in frame.branches.iter().zip(&frame.nodes) {
            let Some(node) = *node else { continue };
            let (width, places) = (self.builder[node].width(), branch.places());
            if width != places {
                self.findings.problem(&inputs.join(&branch.name), Fault::Width { width, places });
            }
            let Branch { first, last, ref label, .. } = *branch;
            arguments.push(Argument { label: label.as_str().into(), first, last, node });
        }
        let computation = frame.computation?;
        let known = self.library.get(computation);
        let given = frame.branches.iter().map(Branch::places).sum();
        if given != known.inputs.len() {
            let takes = known.inputs.len();
            let fault = Fault::Arity { computation: known.name.to_string(), takes, given };
            self.findings.problem(&inputs, fault);
        }
        let complete = arguments.len() == frame.branches.len();
        let outputs = frame.slice.clone().filter(|_| complete)?;
        let inputs = arguments.into();
        Some(self.builder.intern(Node::Computation { computation, inputs, outputs }))
    }
}

fn literal(name: &str) -> Result<Option<Node>, Fault> {
    name.parse().map(|name| Some(Node::Literal(name))).map_err(Fault::Name)
}

/// What a workflow directory holds.
#[derive(Default)]
struct Entries {
    kind: bool,
    value: bool,
    inputs: bool,
    outputs: bool,
}
