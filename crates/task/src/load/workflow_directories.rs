//! Reading the directories below `workflow/` into the graph of a workflow.
//!
//! The walk keeps its own stack, so the tree may have any depth. A directory is identified by
//! device and inode: it is not read again when a link leads to it.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use ce_model::expression::{DEFINITION, NodeKind, label_of};
use ce_model::name::InputName;
use ce_model::slice::{MAX_ARITY, Slice, WrittenSlice};
use ce_model::sweep::{ScopeId, Sweep};
use ce_model::task::{Argument, Node, NodeId, TaskResources, Workflow};

use super::computations::{RESOURCES_FILE, read_resources};
use super::nodes::{
    Branch, Computations, NodeEntries, NodeOperation, NodeReader, OpenNode, list_numbered,
};
use super::problems::LoadFault;
use super::source::{Identity, Located, TaskSource, parse_lines};

/// The loading of one workflow.
pub(super) struct WorkflowWalk<'a, 'b, S: TaskSource> {
    nodes: NodeReader<'a, 'b, S>,
    /// The nodes that directories are in a scope; `None` for those that have a problem.
    visited: HashMap<(Identity, ScopeId), Option<NodeId>>,
    /// The names that definitions give to directories, in the order in which they were read, and the files that have them.
    defined: Vec<(Identity, PathBuf, Vec<Box<str>>)>,
    /// The directories above the current one, with their index in the stack.
    open: HashMap<Identity, u32>,
    /// The nodes above the current directory.
    stack: Vec<OpenNode<S::Dir>>,
}

/// A loaded expression, and what its nodes refer to.
pub(super) struct LoadedWorkflow {
    pub(super) workflow: Workflow,
    pub(super) bound: Vec<InputName>,
    pub(super) sweeps: Vec<Sweep>,
    pub(super) resources: TaskResources,
    /// The names that definitions give to nodes.
    pub(super) definitions: BTreeMap<NodeId, Vec<Box<str>>>,
}

/// The names of nodes, of which directories have some. A directory is a node in each scope in which it was read.
fn named(
    defined: &[(Identity, PathBuf, Vec<Box<str>>)],
    visited: HashMap<(Identity, ScopeId), Option<NodeId>>,
) -> BTreeMap<NodeId, Vec<Box<str>>> {
    let mut nodes: HashMap<&Identity, Vec<NodeId>> =
        defined.iter().map(|(id, ..)| (id, Vec::new())).collect();
    for ((id, _), node) in visited {
        if let (Some(of), Some(node)) = (nodes.get_mut(&id), node) {
            of.push(node);
        }
    }
    let mut named = BTreeMap::<NodeId, Vec<Box<str>>>::new();
    for (id, _, names) in defined {
        for node in nodes.get(id).into_iter().flatten() {
            let known = named.entry(*node).or_default();
            for name in names {
                if !known.contains(name) {
                    known.push(name.clone());
                }
            }
        }
    }
    named
}

/// What a directory says of its node, unless it is wrong.
enum OwnPart {
    /// It reads no other node.
    Leaf(Option<NodeId>),
    /// It reads others.
    Operation(Option<NodeOperation>),
}

/// The result of entering a directory.
enum Visited<D> {
    Node(Option<NodeId>),
    OpenNode(Box<OpenNode<D>>),
}

impl<'a, 'b, S: TaskSource> WorkflowWalk<'a, 'b, S> {
    pub(super) fn new(nodes: NodeReader<'a, 'b, S>) -> Self {
        Self {
            nodes,
            visited: HashMap::new(),
            defined: Vec::new(),
            open: HashMap::new(),
            stack: Vec::new(),
        }
    }

    /// Reads the whole workflow. Returns the expression unless there are problems.
    pub(super) fn load(mut self) -> Option<LoadedWorkflow> {
        let task = self.nodes.findings.note(Path::new(""), self.nodes.library.source.task())?;
        let mut entered = self.enter(&task, self.nodes.library.source.root(), ScopeId::default());
        loop {
            let node = match entered {
                Visited::OpenNode(frame) => {
                    self.stack.push(*frame);
                    None
                }
                Visited::Node(node) => Some(node),
            };
            let Some(frame) = self.stack.last_mut() else {
                let root = node.flatten()?;
                let workflow = self.nodes.builder.finish(root);
                let NodeReader { scopes, sweeps, resources, findings, .. } = self.nodes;
                let bound = scopes.into_bound();
                for (_, path, names) in &self.defined {
                    let lines = (1..).zip(names);
                    for (line, name) in
                        lines.filter(|(_, name)| bound.iter().any(|it| it.as_str() == &***name))
                    {
                        let fault = LoadFault::DefinedName(name.to_string(), "bound by a sweep");
                        findings.problem_in_line(path, line, fault);
                    }
                }
                let definitions = named(&self.defined, self.visited);
                return Some(LoadedWorkflow { workflow, bound, sweeps, resources, definitions });
            };
            frame.nodes.extend(node);
            let scope = if frame.nodes.is_empty() { frame.first_scope } else { frame.scope };
            entered = match (frame.branches.get(frame.nodes.len()), &frame.inputs) {
                (Some(branch), Some(inputs)) => {
                    let (inputs, name) = (inputs.clone(), branch.name.clone());
                    self.enter(&inputs, &name, scope)
                }
                _ => {
                    let frame = self.stack.pop();
                    Visited::Node(frame.and_then(|frame| self.finish(&frame)))
                }
            };
        }
    }

    /// Begins to read a directory, unless it was read before.
    fn enter(&mut self, around: &S::Dir, name: &str, scope: ScopeId) -> Visited<S::Dir> {
        let Some((dir, id)) = self.locate(around, name) else {
            return Visited::Node(None);
        };
        if let Some(at) = self.open.get(&id) {
            let above = self.nodes.library.source.place(&self.stack[*at as usize].dir);
            self.nodes.problem(around, name, LoadFault::Cycle(above));
            return Visited::Node(None);
        }
        let key = (id, scope);
        if let Some(node) = self.visited.get(&key) {
            return Visited::Node(*node);
        }
        let Some(entries) = self.nodes.entries(&dir) else {
            return Visited::Node(None);
        };
        let kind = match self.nodes.single(&dir, "kind", entries.has("kind")) {
            None => None,
            Some(text) => {
                let kind = NodeKind::of_file(&text).ok_or(LoadFault::Kind(text));
                self.nodes.note(&dir, "kind", kind)
            }
        };
        self.nodes.warn_of_unread(&dir, &entries, kind);
        self.note_definitions(&dir, &entries, &key.0);
        let value = match kind {
            // It is any text, and read whole; or there is none.
            Some(NodeKind::Text | NodeKind::All) => Some(String::new()),
            // A label may be left out.
            Some(NodeKind::Sweep | NodeKind::Points) if !entries.has("value") => {
                Some(String::new())
            }
            _ => self.nodes.single(&dir, "value", entries.has("value")),
        };
        let (kind, value) = match (kind, value) {
            (Some(kind), Some(value)) => (kind, value),
            // There may be problems below it, too.
            (kind, _) if kind.is_none_or(NodeKind::has_inputs) && entries.has("inputs") => {
                return self.frame(dir, key, &entries, None);
            }
            _ => return self.done(key, None),
        };
        match self.own_part(&dir, scope, &entries, kind, &value) {
            OwnPart::Leaf(node) => self.done(key, node),
            OwnPart::Operation(operation) => self.frame(dir, key, &entries, operation),
        }
    }

    /// Reads what a directory says of its node, without the nodes that this one reads.
    fn own_part(
        &mut self,
        dir: &S::Dir,
        scope: ScopeId,
        entries: &NodeEntries,
        kind: NodeKind,
        value: &str,
    ) -> OwnPart {
        let nodes = &mut self.nodes;
        let leaf = match kind {
            NodeKind::Computation => {
                let computations = nodes.computations(dir, scope, value);
                let computations = nodes.note(dir, "value", computations).flatten();
                return OwnPart::Operation(computations.map(NodeOperation::Computation));
            }
            NodeKind::Tree => {
                let name = nodes.template(dir, scope, value);
                let name = nodes.note(dir, "value", name).flatten();
                return OwnPart::Operation(name.map(NodeOperation::Tree));
            }
            NodeKind::Member => {
                let path = nodes.template(dir, scope, value);
                let path = nodes.note(dir, "value", path).flatten();
                return OwnPart::Operation(path.map(NodeOperation::Member));
            }
            NodeKind::All => return OwnPart::Operation(Some(NodeOperation::All)),
            NodeKind::Sweep => {
                let files = nodes.sweep_files(dir, entries, value);
                return OwnPart::Operation(Some(NodeOperation::Sweep(Box::new(files))));
            }
            NodeKind::Input => nodes.input(scope, value),
            NodeKind::File => nodes.file(dir, scope, value),
            NodeKind::Text => nodes.text(dir, scope),
            NodeKind::Points => Ok(nodes.points(dir, entries, value)),
            NodeKind::Literal => {
                nodes.template(dir, scope, value).map(|name| name.map(Node::Literal))
            }
        };
        let leaf = nodes.note(dir, "value", leaf).flatten();
        OwnPart::Leaf(leaf.map(|node| nodes.intern(node)))
    }

    /// Notes the names that definitions give to a directory.
    fn note_definitions(&mut self, dir: &S::Dir, entries: &NodeEntries, id: &Identity) {
        if entries.has(DEFINITION) {
            let names = self.nodes.definitions(dir);
            self.defined.push((id.clone(), self.nodes.path(dir, DEFINITION), names));
        }
    }

    fn done(&mut self, key: (Identity, ScopeId), node: Option<NodeId>) -> Visited<S::Dir> {
        self.visited.insert(key, node);
        Visited::Node(node)
    }

    /// Returns a directory and its identity.
    fn locate(&mut self, around: &S::Dir, name: &str) -> Option<(S::Dir, Identity)> {
        let found = self.nodes.library.source.find(around, name);
        match self.nodes.note(around, name, found)? {
            Located::Directory { dir, identity } => Some((dir, identity)),
            Located::File { .. } => {
                self.nodes.problem(around, name, LoadFault::NotADirectory);
                None
            }
        }
    }

    /// Begins to read a node with inputs, of which the maker may be unknown.
    fn frame(
        &mut self,
        dir: S::Dir,
        (id, scope): (Identity, ScopeId),
        entries: &NodeEntries,
        maker: Option<NodeOperation>,
    ) -> Visited<S::Dir> {
        let is_whole = matches!(maker, Some(NodeOperation::Member(_) | NodeOperation::All));
        let has_slice = !is_whole && entries.has("outputs");
        let slice = self.slice(&dir, has_slice, maker.as_ref());

        let mut inputs = None;
        let mut branches = Vec::new();
        if entries.has("inputs") {
            let entered = self.nodes.library.source.enter(&dir, "inputs");
            inputs = self.nodes.note(&dir, "inputs", entered);
        }
        let mut labels = None;
        if let Some(inputs) = &inputs {
            labels = self.nodes.library.source.arguments(inputs);
            branches = match &labels {
                Some(labels) => (0..labels.len()).map(Branch::in_order).collect(),
                None => list_numbered(self.nodes.library.source, inputs, self.nodes.findings),
            };
        }
        let first_scope = match &maker {
            Some(NodeOperation::Sweep(files)) => {
                let is_computed = branches.len() > 1;
                match self.nodes.body_scope(&dir, scope, files, is_computed) {
                    Some(scope) => scope,
                    None => return self.done((id, scope), None),
                }
            }
            _ => scope,
        };
        let resources = match &maker {
            Some(NodeOperation::Computation(_)) if entries.has(RESOURCES_FILE) => {
                read_resources(self.nodes.library.source, &dir, self.nodes.findings)
            }
            _ => Vec::new(),
        };
        self.open.insert(id.clone(), self.stack.len() as u32);
        let nodes = Vec::with_capacity(branches.len());
        Visited::OpenNode(Box::new(OpenNode {
            dir,
            inputs,
            id,
            scope,
            first_scope,
            maker,
            slice,
            resources,
            branches,
            labels,
            nodes,
        }))
    }

    fn slice(&mut self, dir: &S::Dir, there: bool, maker: Option<&NodeOperation>) -> Option<Slice> {
        if !there {
            return maker.map(|maker| maker.slice(self.nodes.library));
        }
        let path = &self.nodes.path(dir, "outputs");
        let lines = parse_lines(self.nodes.library.source.read(dir, "outputs"));
        let lines = self.nodes.findings.note_lines(path, lines)?;
        if lines.is_empty() {
            self.nodes.findings.problem(path, LoadFault::NoOutput);
        } else if lines.len() > MAX_ARITY {
            self.nodes.findings.problem(path, LoadFault::TooMany(lines.len()));
        }
        let written = WrittenSlice::parse(lines.iter().map(String::as_str));
        let names = maker.map(|maker| maker.outputs(self.nodes.library));
        let (slice, wrong) = match &names {
            Some(names) => written.resolve(names),
            None => (Slice::all(lines.len()), written.wrong().collect()),
        };
        for (at, error) in wrong {
            self.nodes.findings.problem_in_line(path, at + 1, LoadFault::Slice(error));
        }
        let (maker, count) = (maker?, names?.len());
        for (at, number) in slice.numbers().map(usize::from).enumerate() {
            if (count..MAX_ARITY).contains(&number) {
                let computation = maker.title(self.nodes.library);
                let fault = LoadFault::OutOfSlice { computation, count, number };
                self.nodes.findings.problem_in_line(path, at + 1, fault);
            }
        }
        Some(slice)
    }

    /// Makes a node of a computation after its inputs were read.
    fn finish(&mut self, frame: &OpenNode<S::Dir>) -> Option<NodeId> {
        let node = self.node(frame);
        self.open.remove(&frame.id);
        self.visited.insert((frame.id.clone(), frame.scope), node);
        node
    }

    /// Returns the arguments of a node. The numbers of the branches say which inputs they fill.
    fn numbered(&mut self, frame: &OpenNode<S::Dir>) -> Vec<Argument> {
        let mut arguments = Vec::with_capacity(frame.branches.len());
        for (branch, node) in frame.branches.iter().zip(&frame.nodes) {
            let Some(node) = *node else { continue };
            let (width, places) = (self.nodes.builder[node].width(), branch.places());
            if width != places
                && !matches!(frame.maker, Some(NodeOperation::Sweep(_)))
                && let Some(inputs) = &frame.inputs
            {
                self.nodes.problem(inputs, &branch.name, LoadFault::Width { width, places });
            }
            let Branch { first, last, ref label, .. } = *branch;
            arguments.push(Argument { label: label.as_str().into(), first, last, node });
        }
        arguments
    }

    /// Returns the arguments of a node. Their order says which inputs they fill: each as many as it passes up. Labels that are not
    /// written are the names of these inputs. `None` if an input has a problem, or there are too many.
    fn in_order(
        &mut self,
        frame: &OpenNode<S::Dir>,
        labels: &[Option<String>],
    ) -> Option<Vec<Argument>> {
        let maker = frame.maker.as_ref()?;
        let names = maker.inputs(self.nodes.library);
        let (mut arguments, mut filled) = (Vec::with_capacity(labels.len()), 0);
        for (node, label) in frame.nodes.iter().zip(labels) {
            let node = (*node)?;
            let width = match maker {
                NodeOperation::Sweep(_) => 1,
                _ => self.nodes.builder[node].width(),
            };
            let places = filled..filled + width;
            filled = places.end;
            if filled > MAX_ARITY {
                self.nodes.problem(&frame.dir, "", LoadFault::TooMany(filled));
                return None;
            }
            let place = match maker {
                NodeOperation::All => label_of(&self.nodes.passed_names(node)),
                _ => label_of(names.get(places.clone()).unwrap_or_default()),
            };
            if let Some(label) = label
                && *label != place
                && names.contains(label)
            {
                let (label, place) = (label.clone(), place.clone());
                self.nodes.problem(&frame.dir, "", LoadFault::LabelPlace { label, place });
            }
            let label = label.clone().unwrap_or(place).into();
            let (first, last) = (places.start as u8, (filled - 1) as u8);
            arguments.push(Argument { label, first, last, node });
        }
        Some(arguments)
    }

    fn node(&mut self, frame: &OpenNode<S::Dir>) -> Option<NodeId> {
        let (arguments, given) = match &frame.labels {
            Some(labels) => {
                let arguments = self.in_order(frame, labels)?;
                let given = arguments.last().map_or(0, |it| usize::from(it.last) + 1);
                (arguments, given)
            }
            None => (self.numbered(frame), frame.branches.iter().map(Branch::places).sum()),
        };
        let maker = frame.maker.as_ref()?;
        let takes = maker.takes(self.nodes.library, given);
        if let NodeOperation::Sweep(files) = maker {
            let outputs = frame.slice.clone()?;
            return self
                .nodes
                .sweep(frame, files, arguments.into())
                .map(|(sweep, inputs)| self.nodes.intern(Node::Sweep { sweep, inputs, outputs }));
        }
        if given != takes {
            let fault =
                LoadFault::Arity { computation: maker.title(self.nodes.library), takes, given };
            self.nodes.problem(&frame.dir, "inputs", fault);
        }
        let complete = arguments.len() == frame.branches.len();
        let outputs = frame.slice.clone().filter(|_| complete)?;
        let inputs = arguments.into();
        let node = match maker {
            NodeOperation::Computation(Computations { named, ids }) => {
                let node = Node::Computation { computation: named.clone(), inputs, outputs };
                let node = self.nodes.intern(node);
                let place = (&frame.dir, frame.scope);
                ids.iter().for_each(|id| self.nodes.request((node, *id), place, &frame.resources));
                return Some(node);
            }
            NodeOperation::Tree(name) => {
                let source = &mut *self.nodes.library.source;
                let tree =
                    self.nodes.trees.find(source, name.clone(), given == 0, self.nodes.findings);
                let tree = self.nodes.note(&frame.dir, "value", tree).flatten()?;
                Node::Tree { tree, inputs, outputs }
            }
            NodeOperation::Member(path) => Node::Member { path: path.clone(), inputs },
            NodeOperation::All => Node::All { inputs },
            NodeOperation::Sweep(_) => return None,
        };
        Some(self.nodes.intern(node))
    }
}
