//! Reading the directories below `workflow/` into an expression.
//!
//! The walk keeps its own stack, so the tree may have any depth. A directory is identified by
//! device and inode: it is not read again when a link leads to it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::branch::{self, Branch};
use super::library::Library;
use super::maker::Maker;
use super::nearest;
use super::own_files::OwnFiles;
use super::problems::{LoadFault, Problems};
use super::source::{Identity, Located, TaskSource};
use super::task_trees::TaskTrees;
use super::text;
use super::warnings::WarningKind;
use crate::task::expression::NodeKind;
use crate::task::name::{InputName, NameError};
use crate::task::slice::{MAX_ARITY, Slice};
use crate::task::template::Template;
use crate::task::workflow::{Argument, Builder, InputId, Node, NodeId, Workflow};

/// The loading of one workflow.
pub(super) struct WorkflowWalk<'a, 'b, S: TaskSource> {
    inputs: Option<&'a [InputName]>,
    files: &'a mut OwnFiles,
    trees: &'a mut TaskTrees,
    library: &'a mut Library<'b, S>,
    findings: &'a mut Problems,
    builder: Builder,
    visited: HashMap<Identity, Visit>,
    /// The nodes above the current directory.
    stack: Vec<OpenNode<S::Dir>>,
}

/// The state of a directory.
#[derive(Clone, Copy)]
enum Visit {
    /// It is being read, and has this index in the stack.
    Open(u32),
    /// It was read, and is this node unless it has a problem.
    Done(Option<NodeId>),
}

/// A node whose inputs are being read.
struct OpenNode<D> {
    dir: D,
    /// The directory of the branches.
    inputs: Option<D>,
    id: Identity,
    maker: Option<Maker>,
    slice: Option<Slice>,
    branches: Vec<Branch>,
    nodes: Vec<Option<NodeId>>,
}

/// The result of entering a directory.
enum Visited<D> {
    Node(Option<NodeId>),
    OpenNode(OpenNode<D>),
}

impl<'a, 'b, S: TaskSource> WorkflowWalk<'a, 'b, S> {
    pub(super) fn new(
        inputs: Option<&'a [InputName]>,
        (files, trees): (&'a mut OwnFiles, &'a mut TaskTrees),
        library: &'a mut Library<'b, S>,
        findings: &'a mut Problems,
    ) -> Self {
        Self {
            inputs,
            files,
            trees,
            library,
            findings,
            builder: Builder::default(),
            visited: HashMap::new(),
            stack: Vec::new(),
        }
    }

    /// Reads the whole workflow. Returns the expression unless there are problems.
    pub(super) fn load(mut self) -> Option<Workflow> {
        let task = self.findings.note(Path::new(""), self.library.source.task())?;
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

    /// The path of an entry in a directory, relative to the task.
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

    /// Returns the value of a result, or adds its problem.
    fn note<T>(&mut self, dir: &S::Dir, name: &str, result: Result<T, LoadFault>) -> Option<T> {
        result.map_err(|fault| self.problem(dir, name, fault)).ok()
    }

    /// Begins to read a directory, unless it was read before.
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
            (Some(kind), None) if NodeKind::of_file(&kind).is_some_and(NodeKind::has_inputs) => {
                return self.frame(dir, id, &found, None);
            }
            _ => return self.done(id, None),
        };
        match NodeKind::of_file(&kind) {
            Some(NodeKind::Computation) => {
                let computation = self.library.find(&value, self.findings);
                let computation = self.note(&dir, "value", computation).flatten();
                self.frame(dir, id, &found, computation.map(Maker::Computation))
            }
            Some(NodeKind::Tree) => {
                let name = self.template(&dir, &value);
                let name = self.note(&dir, "value", name).flatten();
                self.frame(dir, id, &found, name.map(Maker::Tree))
            }
            Some(NodeKind::Member) => {
                if found.outputs {
                    self.warning(&dir, "outputs", WarningKind::Unread);
                }
                let path = self.template(&dir, &value);
                let path = self.note(&dir, "value", path).flatten();
                let found = NodeEntries { outputs: false, ..found };
                self.frame(dir, id, &found, path.map(Maker::Member))
            }
            Some(leaf @ (NodeKind::Input | NodeKind::Literal | NodeKind::File)) => {
                for (name, there) in [("inputs", found.inputs), ("outputs", found.outputs)] {
                    if there {
                        self.warning(&dir, name, WarningKind::Unread);
                    }
                }
                let node = match leaf {
                    NodeKind::Input => self.input(&value),
                    NodeKind::File => self.file(&dir, &value),
                    _ => self.template(&dir, &value).map(|name| name.map(Node::Literal)),
                };
                let node = self.note(&dir, "value", node).flatten();
                let node = node.map(|node| self.builder.intern(node));
                self.done(id, node)
            }
            None => {
                self.problem(&dir, "kind", LoadFault::Kind(kind));
                // There may be problems below it, too.
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

    fn file(&mut self, dir: &S::Dir, path: &str) -> Result<Option<Node>, LoadFault> {
        let Some(path) = self.template(dir, path)? else { return Ok(None) };
        let file = self.files.find(self.library.source, path, self.findings)?;
        Ok(file.map(Node::File))
    }

    /// Parses a value in which names of inputs stand for their texts. Returns `None` if it may have some,
    /// and the task's inputs are not known.
    fn template<T>(&self, dir: &S::Dir, value: &str) -> Result<Option<Template<T>>, LoadFault>
    where
        T: AsRef<str> + FromStr<Err = NameError>,
    {
        let written: T = value.parse().map_err(LoadFault::Name)?;
        if self.inputs.is_none() && value.contains('{') {
            return Ok(None);
        }
        let place = self.library.source.place(dir);
        Ok(Some(Template::new(written, self.inputs.unwrap_or_default(), &place)))
    }

    /// Begins to read a node with inputs, of which the maker may be unknown.
    fn frame(
        &mut self,
        dir: S::Dir,
        id: Identity,
        found: &NodeEntries,
        maker: Option<Maker>,
    ) -> Visited<S::Dir> {
        let slice = self.slice(&dir, found.outputs, maker.as_ref());
        let mut inputs = None;
        let mut branches = Vec::new();
        if found.inputs {
            let entered = self.library.source.enter(&dir, "inputs");
            inputs = self.note(&dir, "inputs", entered);
        }
        if let Some(inputs) = &inputs {
            branches = branch::list(self.library.source, inputs, self.findings);
        }
        self.visited.insert(id.clone(), Visit::Open(self.stack.len() as u32));
        let nodes = Vec::with_capacity(branches.len());
        Visited::OpenNode(OpenNode { dir, inputs, id, maker, slice, branches, nodes })
    }

    fn slice(&mut self, dir: &S::Dir, there: bool, maker: Option<&Maker>) -> Option<Slice> {
        if !there {
            return maker.map(|maker| maker.slice(self.library));
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
        let maker = maker?;
        let count = maker.outputs(self.library);
        for (at, line) in lines.iter().enumerate() {
            let number = line.parse::<usize>().unwrap_or_default();
            if (count..MAX_ARITY).contains(&number) {
                let computation = maker.title(self.library);
                let fault = LoadFault::OutOfSlice { computation, count, number };
                self.findings.problem_in_line(path, at + 1, fault);
            }
        }
        Some(slice)
    }

    /// Makes a node of a computation after its inputs were read.
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
        let maker = frame.maker.as_ref()?;
        let given = frame.branches.iter().map(Branch::places).sum();
        let takes = maker.takes(self.library, given);
        if given != takes {
            let fault = LoadFault::Arity { computation: maker.title(self.library), takes, given };
            self.problem(&frame.dir, "inputs", fault);
        }
        let complete = arguments.len() == frame.branches.len();
        let outputs = frame.slice.clone().filter(|_| complete)?;
        let inputs = arguments.into();
        let node = match maker {
            Maker::Computation(id) => Node::Computation { computation: *id, inputs, outputs },
            Maker::Tree(name) => {
                let source = &mut *self.library.source;
                let tree = self.trees.find(source, name.clone(), given == 0, self.findings);
                let tree = self.note(&frame.dir, "value", tree).flatten()?;
                Node::Tree { tree, inputs, outputs }
            }
            Maker::Member(path) => Node::Member { path: path.clone(), inputs },
        };
        Some(self.builder.intern(node))
    }
}

/// The entries of a workflow directory.
#[derive(Default)]
struct NodeEntries {
    kind: bool,
    value: bool,
    inputs: bool,
    outputs: bool,
}
