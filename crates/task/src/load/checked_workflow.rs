//! Checks a workflow as it is written, and makes its graph: each node once in each scope that it stands in.
//!
//! The walk keeps its own stack, so a workflow may have any depth.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use ce_model::expression::{DEFINITION, ExpressionNode, NodeKind, RESOURCES, label_of};
use ce_model::name::InputName;
use ce_model::slice::{MAX_ARITY, Slice};
use ce_model::sweep::{ScopeId, Sweep, SweepRules};
use ce_model::task::{Argument, Node, NodeId, ROOT_LABEL, TaskResources, VALUE, Workflow};

use super::nodes::{Computations, NodeMaker, NodeOperation, OpenNode};
use super::problems::LoadFault;
use super::source::TaskSource;
use super::written::NodePlace;

/// The check of one workflow.
pub(super) struct WorkflowCheck<'a, 'b, S: TaskSource> {
    nodes: NodeMaker<'a, 'b, S>,
    /// The checked nodes of the written ones in a scope; `None` for a node with a problem.
    visited: HashMap<(NodeId, ScopeId), Option<NodeId>>,
    /// The names that definitions give to written nodes that were not visited yet.
    names: HashMap<NodeId, Vec<Box<str>>>,
    /// The visited ones with such names, in the order of the visits.
    named: Vec<NamedNode<'a>>,
    /// The rules of sweeps; `None` for a sweep with a problem.
    rules: HashMap<NodeId, Option<Rc<SweepRules>>>,
    /// The nodes above the current one.
    stack: Vec<OpenNode<'a>>,
}

/// A loaded expression, and what its nodes refer to.
pub(super) struct LoadedWorkflow {
    pub(super) workflow: Workflow,
    pub(super) bound: Vec<InputName>,
    pub(super) sweeps: Vec<Sweep>,
    pub(super) resources: TaskResources,
    /// The names that definitions give to nodes.
    pub(super) definitions: BTreeMap<NodeId, Vec<Box<str>>>,
    /// The nodes that are named with a slice of a definition.
    pub(super) parts: BTreeSet<NodeId>,
}

/// A written node to which definitions give names.
struct NamedNode<'a> {
    id: NodeId,
    place: NodePlace<'a>,
    names: Vec<Box<str>>,
}

/// The source of a node alone, unless it is wrong.
enum OwnPart {
    /// It reads no other node.
    Leaf(Option<NodeId>),
    /// It reads others.
    Operation(Option<NodeOperation>),
}

/// The result of entering a node.
enum Visited<'a> {
    Node(Option<NodeId>),
    OpenNode(Box<OpenNode<'a>>),
}

impl<'a, 'b, S: TaskSource> WorkflowCheck<'a, 'b, S> {
    pub(super) fn new(nodes: NodeMaker<'a, 'b, S>) -> Self {
        let names = nodes.written.names();
        Self {
            nodes,
            visited: HashMap::new(),
            names,
            named: Vec::new(),
            rules: HashMap::new(),
            stack: Vec::new(),
        }
    }

    /// Checks the whole workflow. Returns the expression unless there are problems.
    pub(super) fn load(mut self) -> Option<LoadedWorkflow> {
        let written = self.nodes.written;
        let (root, place) = written.root()?;
        let mut entered = self.enter(root, place, ScopeId::default());
        loop {
            let node = match entered {
                Visited::OpenNode(open) => {
                    self.stack.push(*open);
                    None
                }
                Visited::Node(node) => Some(node),
            };
            let Some(open) = self.stack.last_mut() else { return self.end(node.flatten()?) };
            open.nodes.extend(node);
            let number = open.nodes.len();
            let scope = if number == 0 { open.first_scope } else { open.scope };
            entered = match written.expression()[open.id].inputs.get(number) {
                Some(input) => {
                    let source = &mut *self.nodes.library.source;
                    let place = open.place.of_input(source, number);
                    self.enter(input.node, place, scope)
                }
                None => {
                    let open = self.stack.pop();
                    Visited::Node(open.and_then(|open| self.finish(&open)))
                }
            };
        }
    }

    fn end(self, root: NodeId) -> Option<LoadedWorkflow> {
        let workflow = self.nodes.builder.finish(root);
        let NodeMaker { scopes, sweeps, resources, findings, .. } = self.nodes;
        let bound = scopes.into_bound();
        let mut nodes: HashMap<NodeId, Vec<NodeId>> =
            self.named.iter().map(|named| (named.id, Vec::new())).collect();
        for ((id, _), node) in self.visited {
            if let (Some(of), Some(node)) = (nodes.get_mut(&id), node) {
                of.push(node);
            }
        }
        let (mut definitions, mut parts) = (BTreeMap::<_, Vec<Box<str>>>::new(), BTreeSet::new());
        let written_parts = self.nodes.written.parts();
        for NamedNode { id, place, names } in &self.named {
            for (line, name) in (1..).zip(names) {
                if bound.iter().any(|it| it.as_str() == &**name) {
                    let fault = LoadFault::DefinedName(name.to_string(), "bound by a sweep");
                    findings.add(place.problem(DEFINITION, line, fault));
                }
            }
            for node in &nodes[id] {
                parts.extend(written_parts.contains(id).then_some(*node));
                let known = definitions.entry(*node).or_default();
                let new: Vec<_> = names.iter().filter(|name| !known.contains(name)).collect();
                known.extend(new.into_iter().cloned());
            }
        }
        Some(LoadedWorkflow { workflow, bound, sweeps, resources, definitions, parts })
    }

    /// Begins to check a node, unless it was checked before.
    fn enter(&mut self, id: NodeId, place: NodePlace<'a>, scope: ScopeId) -> Visited<'a> {
        if let Some(node) = self.visited.get(&(id, scope)) {
            return Visited::Node(*node);
        }
        self.check_names(id, &place);
        let written = self.nodes.written;
        let node = &written.expression()[id];
        let own = if written.is_readable(id) {
            self.own_part(id, node, &place, scope)
        } else {
            // There may be problems in the nodes that it reads, too.
            OwnPart::Operation(None)
        };
        match own {
            OwnPart::Leaf(node) => {
                self.visited.insert((id, scope), node);
                Visited::Node(node)
            }
            OwnPart::Operation(operation) => self.open(id, place, scope, operation),
        }
    }

    /// Checks the source of a node, without the nodes that it reads.
    fn own_part(
        &mut self,
        id: NodeId,
        written: &ExpressionNode,
        place: &NodePlace<'a>,
        scope: ScopeId,
    ) -> OwnPart {
        let value = &*written.value;
        let nodes = &mut self.nodes;
        let leaf = match written.kind {
            NodeKind::Computation => {
                let computations = nodes.computations(place, scope, value);
                let computations = nodes.note(place, "value", computations).flatten();
                return OwnPart::Operation(computations.map(NodeOperation::Computation));
            }
            NodeKind::Tree => {
                let name = nodes.template(place, scope, value);
                let name = nodes.note(place, "value", name).flatten();
                return OwnPart::Operation(name.map(NodeOperation::Tree));
            }
            NodeKind::Member => {
                let path = nodes.template(place, scope, value);
                let path = nodes.note(place, "value", path).flatten();
                return OwnPart::Operation(path.map(NodeOperation::Member));
            }
            NodeKind::All => return OwnPart::Operation(Some(NodeOperation::All)),
            NodeKind::Sweep => {
                let label = written.value.clone();
                let Some(rules) = self.rules(id, place) else {
                    // Without its rules, the names in its body are not known.
                    let rules = Rc::default();
                    self.slice(written, place, &NodeOperation::Sweep { label, rules });
                    return OwnPart::Leaf(None);
                };
                return OwnPart::Operation(Some(NodeOperation::Sweep { label, rules }));
            }
            NodeKind::Points => {
                let rules = self.rules(id, place);
                let nodes = &mut self.nodes;
                let points = rules.and_then(|rules| nodes.points(place, value, &rules));
                return OwnPart::Leaf(points.map(|points| nodes.intern(points)));
            }
            NodeKind::Input => nodes.input(scope, value),
            NodeKind::File => nodes.file(place, scope, value),
            NodeKind::Text => nodes.template(place, scope, value).map(|text| text.map(Node::Text)),
            NodeKind::Literal => {
                nodes.template(place, scope, value).map(|name| name.map(Node::Literal))
            }
        };
        let leaf = nodes.note(place, "value", leaf).flatten();
        OwnPart::Leaf(leaf.map(|node| nodes.intern(node)))
    }

    /// The rules of a sweep, or of points. `None` if something is wrong with them, which is reported once.
    fn rules(&mut self, id: NodeId, place: &NodePlace<'a>) -> Option<Rc<SweepRules>> {
        if let Some(known) = self.rules.get(&id) {
            return known.clone();
        }
        let rules = self.nodes.written.rules(id, self.nodes.findings);
        let rules = rules.and_then(|rules| self.nodes.read_inputs(id, place, rules));
        if let Some(rules) = &rules {
            self.nodes.warn_of_levels(place, &rules.product);
        }
        self.rules.insert(id, rules.clone());
        rules
    }

    /// Checks the names that definitions give to a node: an input of the task, or the root, has its name already.
    fn check_names(&mut self, id: NodeId, place: &NodePlace<'a>) {
        let Some(names) = self.names.remove(&id) else { return };
        let inputs = self.nodes.inputs.unwrap_or_default();
        for (line, name) in (1..).zip(&names) {
            let fault = if name.is_empty() || &**name == ROOT_LABEL {
                LoadFault::DefinitionName(name.to_string())
            } else if inputs.iter().any(|input| input.as_str() == &**name) {
                LoadFault::DefinedName(name.to_string(), "an input of the task")
            } else {
                continue;
            };
            self.nodes.findings.add(place.problem(DEFINITION, line, fault));
        }
        self.named.push(NamedNode { id, place: place.clone(), names });
    }

    /// Begins to check a node with inputs, whose operation may be unknown.
    fn open(
        &mut self,
        id: NodeId,
        place: NodePlace<'a>,
        scope: ScopeId,
        operation: Option<NodeOperation>,
    ) -> Visited<'a> {
        let written = &self.nodes.written.expression()[id];
        let slice = operation.as_ref().map(|operation| self.slice(written, &place, operation));
        let mut first_scope = scope;
        if let Some(NodeOperation::Sweep { rules, .. }) = &operation {
            match self.nodes.body_scope(&place, scope, rules, written.inputs.len() > 1) {
                Some(scope) => first_scope = scope,
                None => {
                    self.visited.insert((id, scope), None);
                    return Visited::Node(None);
                }
            }
        }
        let resources = match &operation {
            Some(NodeOperation::Computation(_)) => {
                let file = written.files.iter().find(|file| *file.name == *RESOURCES);
                file.map(|file| self.nodes.read_resources(&place, &file.rows)).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let nodes = Vec::with_capacity(written.inputs.len());
        Visited::OpenNode(Box::new(OpenNode {
            id,
            place,
            scope,
            first_scope,
            operation,
            slice,
            resources,
            nodes,
        }))
    }

    /// Returns the outputs that a node passes up.
    fn slice(
        &mut self,
        written: &ExpressionNode,
        place: &NodePlace<'a>,
        operation: &NodeOperation,
    ) -> Slice {
        let Some(outputs) = &written.outputs else { return operation.slice(self.nodes.library) };
        let names = operation.outputs(self.nodes.library);
        let (slice, wrong) = outputs.resolve(&names);
        // Text that is neither a number nor a name was reported when it was read.
        let reported: Vec<usize> = outputs.wrong().map(|(at, _)| at).collect();
        for (at, error) in wrong.into_iter().filter(|(at, _)| !reported.contains(at)) {
            self.nodes.problem(place, "outputs", at + 1, LoadFault::Slice(error));
        }
        for (at, number) in slice.numbers().map(usize::from).enumerate() {
            if (names.len()..MAX_ARITY).contains(&number) {
                let computation = operation.title(self.nodes.library);
                let fault = LoadFault::OutOfSlice { computation, count: names.len(), number };
                self.nodes.problem(place, "outputs", at + 1, fault);
            }
        }
        slice
    }

    /// Makes a node after its inputs were checked.
    fn finish(&mut self, open: &OpenNode<'a>) -> Option<NodeId> {
        let node = self.node(open);
        self.visited.insert((open.id, open.scope), node);
        node
    }

    /// Returns the arguments of a node, and the number of inputs that they fill: the numbers of their directories say which, or, in a text,
    /// their order. `None` if an input of a text has a problem, or there are too many.
    fn arguments(&mut self, open: &OpenNode<'a>) -> Option<(Vec<Argument>, usize)> {
        let Some(branches) = self.nodes.written.branches(open.id) else {
            let arguments = self.in_order(open)?;
            let given = arguments.last().map_or(0, |it| usize::from(it.last) + 1);
            return Some((arguments, given));
        };
        let (mut arguments, mut given) = (Vec::with_capacity(open.nodes.len()), 0);
        for (branch, node) in branches.zip(&open.nodes) {
            let places = branch.places();
            given += places;
            let Some(node) = *node else { continue };
            let width = self.nodes.builder[node].width();
            if width != places && !matches!(open.operation, Some(NodeOperation::Sweep { .. })) {
                let file = format!("inputs/{}", branch.name);
                self.nodes.problem(&open.place, &file, 0, LoadFault::Width { width, places });
            }
            let label = branch.label.as_str().into();
            arguments.push(Argument { label, first: branch.first, last: branch.last, node });
        }
        Some((arguments, given))
    }

    /// Returns the arguments of a node of a text: each fills as many inputs as it passes up values. Labels that are not written are the
    /// names of these inputs. `None` if an input has a problem, or there are too many.
    fn in_order(&mut self, open: &OpenNode<'a>) -> Option<Vec<Argument>> {
        let operation = open.operation.as_ref()?;
        let names = operation.inputs(self.nodes.library);
        let inputs = &self.nodes.written.expression()[open.id].inputs;
        let (mut arguments, mut filled) = (Vec::with_capacity(inputs.len()), 0);
        for (node, input) in open.nodes.iter().zip(inputs) {
            let node = (*node)?;
            let width = match operation {
                NodeOperation::Sweep { .. } => 1,
                NodeOperation::Computation(_)
                | NodeOperation::Tree(_)
                | NodeOperation::Member(_)
                | NodeOperation::All => self.nodes.builder[node].width(),
            };
            let places = filled..filled + width;
            filled = places.end;
            if filled > MAX_ARITY {
                self.nodes.problem(&open.place, "", 0, LoadFault::TooMany);
                return None;
            }
            let place = match operation {
                NodeOperation::All => label_of(&self.nodes.passed_names(node)),
                NodeOperation::Computation(_)
                | NodeOperation::Tree(_)
                | NodeOperation::Member(_)
                | NodeOperation::Sweep { .. } => {
                    label_of(names.get(places.clone()).unwrap_or_default())
                }
            };
            if let Some(label) = input.label.as_deref()
                && label != place
                && names.iter().any(|name| name == label)
            {
                let fault = LoadFault::LabelPlace { label: label.to_owned(), place: place.clone() };
                self.nodes.problem(&open.place, "", 0, fault);
            }
            let label = input.label.clone().unwrap_or_else(|| place.into());
            let (first, last) = (places.start as u8, (filled - 1) as u8);
            arguments.push(Argument { label, first, last, node });
        }
        Some(arguments)
    }

    fn node(&mut self, open: &OpenNode<'a>) -> Option<NodeId> {
        let (arguments, given) = self.arguments(open)?;
        let operation = open.operation.as_ref()?;
        let takes = operation.takes(self.nodes.library, given);
        if let NodeOperation::Sweep { label, rules } = operation {
            let outputs = open.slice.clone()?;
            let (sweep, inputs) = self.nodes.sweep(open, label, rules, arguments.into())?;
            return Some(self.nodes.intern(Node::Sweep { sweep, inputs, outputs }));
        }
        if given != takes {
            let computation = operation.title(self.nodes.library);
            let mut names = operation.inputs(self.nodes.library);
            names.resize(takes, VALUE.to_owned());
            let fault = LoadFault::Arity { computation, takes: names, given };
            self.nodes.problem(&open.place, "inputs", 0, fault);
        }
        let is_complete = arguments.len() == open.nodes.len();
        let outputs = open.slice.clone().filter(|_| is_complete)?;
        let inputs = arguments.into();
        let node = match operation {
            NodeOperation::Computation(Computations { named, ids }) => {
                let node = Node::Computation { computation: named.clone(), inputs, outputs };
                let node = self.nodes.intern(node);
                ids.iter().for_each(|id| self.nodes.request(node, *id, open));
                return Some(node);
            }
            NodeOperation::Tree(name) => {
                let source = &mut *self.nodes.library.source;
                let tree =
                    self.nodes.trees.find(source, name.clone(), given == 0, self.nodes.findings);
                let tree = self.nodes.note(&open.place, "value", tree).flatten()?;
                Node::Tree { tree, inputs, outputs }
            }
            NodeOperation::Member(path) => Node::Member { path: path.clone(), inputs },
            NodeOperation::All => Node::All { inputs },
            NodeOperation::Sweep { .. } => return None,
        };
        Some(self.nodes.intern(node))
    }
}

#[cfg(test)]
mod tests;
