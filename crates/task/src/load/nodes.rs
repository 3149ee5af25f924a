//! The nodes of a workflow that is checked: their values, and the computations, files and resources that they refer to.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;
use std::str::FromStr;

use ce_model::expression::{NodeKind, RESOURCES};
use ce_model::name::{ComputationName, InputName, MemberPath, NameError, TreeName};
use ce_model::resources::{ResourceLine, ResourceLines, Resources};
use ce_model::slice::Slice;
use ce_model::sweep::{
    BoundId, FileColumn, LevelName, ScopeId, Scopes, Sweep, SweepPoints, SweepRules,
};
use ce_model::task::{
    Builder, ComputationId, FreeNames, InputId, NamedComputation, Node, NodeId, TaskParts,
    TaskResources,
};
use ce_model::template::{self, Template};

use super::computations::{Library, SharedLines, WrittenLine, parse_resources};
use super::nearest;
use super::problems::{LoadFault, Problems, ResourceFault};
use super::source::TaskSource;
use super::values::{TaskFiles, TaskTrees};
use super::written::{NodePlace, WrittenWorkflow};

/// Makes nodes of their source.
pub(super) struct NodeMaker<'a, 'b, S: TaskSource> {
    pub(super) written: WrittenWorkflow<'a>,
    pub(super) inputs: Option<&'a [InputName]>,
    /// The texts that each of these may have, if they are known.
    pub(super) choices: &'a [Option<SweepPoints>],
    input_numbers: HashMap<&'a str, usize>,
    pub(super) files: &'a mut TaskFiles,
    pub(super) trees: &'a mut TaskTrees,
    pub(super) library: &'a mut Library<'b, S>,
    pub(super) findings: &'a mut Problems,
    pub(super) builder: Builder,
    /// The free names of the nodes.
    pub(super) free: FreeNames,
    pub(super) scopes: Scopes,
    pub(super) sweeps: Vec<Sweep>,
    /// The inputs of each of these: sweeps of the same rules and inputs are one, regardless of their labels.
    pub(super) sweep_inputs: Vec<Vec<NodeId>>,
    /// What sweeps bind the names of columns of sheets to.
    pub(super) sheet_columns: HashMap<(NodeId, Box<str>), ColumnUse>,
    /// The lines of `resources` that are for several nodes.
    pub(super) shared: SharedLines,
    pub(super) resources: TaskResources,
}

/// What a sweep reads a column of a sheet as: the same for all sweeps over the sheet.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum ColumnUse {
    Text,
    Files(FileColumn),
}

/// A node whose inputs are being checked.
pub(super) struct OpenNode<'a> {
    /// The written node.
    pub(super) id: NodeId,
    pub(super) place: NodePlace<'a>,
    pub(super) scope: ScopeId,
    /// The scope of its first input: the body of a sweep has its own.
    pub(super) first_scope: ScopeId,
    pub(super) operation: Option<NodeOperation>,
    pub(super) slice: Option<Slice>,
    /// The lines of its file `resources`.
    pub(super) resources: Vec<WrittenLine>,
    /// The nodes of its inputs, as far as they are checked; `None` for an input with a problem.
    pub(super) nodes: Vec<Option<NodeId>>,
}

impl<'a, 'b, S: TaskSource> NodeMaker<'a, 'b, S> {
    pub(super) fn new(
        written: WrittenWorkflow<'a>,
        inputs: Option<&'a [InputName]>,
        files: &'a mut TaskFiles,
        trees: &'a mut TaskTrees,
        shared: SharedLines,
        library: &'a mut Library<'b, S>,
        findings: &'a mut Problems,
    ) -> Self {
        let names = inputs.unwrap_or_default().iter().map(InputName::as_str);
        let input_numbers = names.enumerate().map(|(number, name)| (name, number)).collect();
        Self {
            written,
            inputs,
            choices: &[],
            input_numbers,
            files,
            trees,
            library,
            findings,
            builder: Builder::default(),
            free: FreeNames::default(),
            scopes: Scopes::default(),
            sweeps: Vec::new(),
            sweep_inputs: Vec::new(),
            sheet_columns: HashMap::new(),
            shared,
            resources: TaskResources::default(),
        }
    }

    /// Adds a problem of a line of a file of a node. Line zero is the whole file.
    pub(super) fn problem(
        &mut self,
        place: &NodePlace<'a>,
        file: &str,
        line: usize,
        fault: impl Into<LoadFault>,
    ) {
        self.findings.add(place.problem(file, line, fault.into()));
    }

    /// Returns the value of a result, or adds its problem.
    pub(super) fn note<T>(
        &mut self,
        place: &NodePlace<'a>,
        file: &str,
        result: Result<T, LoadFault>,
    ) -> Option<T> {
        result.map_err(|fault| self.problem(place, file, 0, fault)).ok()
    }

    /// Returns the node equal to this one.
    pub(super) fn intern(&mut self, node: Node) -> NodeId {
        let id = self.builder.intern(node);
        if id.index() == self.free.len() {
            let inputs = self.inputs.unwrap_or_default().len();
            let (files, trees) = (self.files.all(), self.trees.all());
            let parts = TaskParts { inputs, files, trees, sweeps: &self.sweeps };
            self.free.add(&self.builder[id], parts);
        }
        id
    }
}

/// The computations of a node: one, or one for each point of the sweeps around it.
#[derive(Clone)]
pub(super) struct Computations {
    pub(super) named: NamedComputation,
    /// All of them, each once.
    pub(super) ids: Vec<ComputationId>,
}

/// The part of a node with inputs that makes its values.
#[derive(Clone)]
pub(super) enum NodeOperation {
    Computation(Computations),
    Tree(Template<TreeName>),
    Member(Template<MemberPath>),
    All,
    Sweep { label: Box<str>, rules: Rc<SweepRules> },
}

impl NodeOperation {
    const fn kind(&self) -> NodeKind {
        match self {
            Self::Computation(_) => NodeKind::Computation,
            Self::Tree(_) => NodeKind::Tree,
            Self::Member(_) => NodeKind::Member,
            Self::All => NodeKind::All,
            Self::Sweep { .. } => NodeKind::Sweep,
        }
    }

    /// The number of inputs that it takes if this number is given.
    pub(super) fn takes<S: TaskSource>(&self, library: &Library<'_, S>, given: usize) -> usize {
        let most = self.inputs(library).len();
        match self {
            Self::Computation(_) | Self::Member(_) => most,
            Self::Tree(_) => given.min(most),
            Self::All => given.max(1),
            Self::Sweep { .. } => given.clamp(1, most),
        }
    }

    /// The names of its inputs; `ALL` has none.
    pub(super) fn inputs<S: TaskSource>(&self, library: &Library<'_, S>) -> Vec<String> {
        if let Self::Computation(it) = self {
            return library.get(it.named.first).inputs.clone();
        }
        self.kind().inputs().iter().copied().map(str::to_owned).collect()
    }

    /// The names of its outputs.
    pub(super) fn outputs<S: TaskSource>(&self, library: &Library<'_, S>) -> Vec<String> {
        if let Self::Computation(it) = self {
            return library.get(it.named.first).outputs.clone();
        }
        self.kind().outputs().iter().copied().map(str::to_owned).collect()
    }

    /// Returns the slice of a node that says none.
    pub(super) fn slice<S: TaskSource>(&self, library: &Library<'_, S>) -> Slice {
        let is_computation = matches!(self, Self::Computation(_));
        Slice::all(if is_computation { self.outputs(library).len() } else { 1 })
    }

    /// Its name in messages.
    pub(super) fn title<S: TaskSource>(&self, library: &Library<'_, S>) -> String {
        match self {
            Self::Computation(Computations { named, .. }) => match &named.open {
                Some(name) => name.to_string(),
                None => library.get(named.first).name.to_string(),
            },
            Self::Tree(name) => format!("the tree {name}"),
            Self::Member(path) => format!("the member {path}"),
            Self::All => "ALL".to_owned(),
            Self::Sweep { .. } => "a sweep".to_owned(),
        }
    }
}

impl<'a, S: TaskSource> NodeMaker<'a, '_, S> {
    pub(super) fn input(&mut self, scope: ScopeId, name: &str) -> Result<Option<Node>, LoadFault> {
        let Some(inputs) = self.inputs else {
            return Ok(None);
        };
        if let Some(number) = self.input_numbers.get(name) {
            return Ok(Some(Node::Input(InputId::at(*number))));
        }
        if let Some(bound) = self.scopes.find(scope, name) {
            return Ok(Some(Node::Bound(bound)));
        }
        let names = inputs.iter().map(ToString::to_string).chain(self.scopes.names(scope));
        let names = names.chain(self.written.defined());
        let nearest = nearest(name, &names.collect::<Vec<_>>());
        Err(LoadFault::NoInput { name: name.to_owned(), nearest })
    }

    pub(super) fn file(
        &mut self,
        place: &NodePlace<'a>,
        scope: ScopeId,
        path: &str,
    ) -> Result<Option<Node>, LoadFault> {
        let Some(path) = self.template(place, scope, path)? else { return Ok(None) };
        let file = self.files.find(self.library.source, path, self.findings)?;
        Ok(file.map(Node::File))
    }

    /// Parses a value in which names stand for their texts: names of inputs, and names that are bound in the scope.
    /// Returns `None` if it may have some, and the task's inputs are not known.
    pub(super) fn template<T>(
        &mut self,
        place: &NodePlace<'a>,
        scope: ScopeId,
        value: &str,
    ) -> Result<Option<Template<T>>, LoadFault>
    where
        T: AsRef<str> + FromStr<Err = NameError>,
    {
        let written: T = value.parse().map_err(LoadFault::Name)?;
        if !value.contains('{') {
            return Ok(Some(written.into()));
        }
        let Some(inputs) = self.inputs else { return Ok(None) };
        if let Some(fault) = self.scopes.file_fault(scope, template::names_in(value)) {
            return Err(fault.into());
        }
        let number = |name: &str| self.scopes.number(scope, inputs, name);
        Ok(Some(Template::new(written, number, &place.shown())))
    }
}

impl<'a, S: TaskSource> NodeMaker<'a, '_, S> {
    /// Finds the computations of a node with this value. Returns `None` if the names that it may have are not known, or if a
    /// computation has a problem, which is reported once.
    pub(super) fn computations(
        &mut self,
        place: &NodePlace<'a>,
        scope: ScopeId,
        value: &str,
    ) -> Result<Option<Computations>, LoadFault> {
        let name: Option<Template<ComputationName>> = self.template(place, scope, value)?;
        let Some(name) = name else { return Ok(None) };
        if !name.is_open() {
            let found = self.library.find(value, self.findings);
            let found = found.map_err(|fault| self.mistyped(scope, &name, fault))?;
            return Ok(found.map(|id| Computations { named: id.into(), ids: vec![id] }));
        }
        let names =
            self.scopes.level_names(scope, &name, self.inputs.unwrap_or_default(), self.choices)?;
        let ids = self.of_levels(value, &names)?;
        Ok(ids.and_then(|ids| {
            let (first, open) = (*ids.first()?, Some(Box::new(name)));
            Some(Computations { named: NamedComputation { first, open }, ids })
        }))
    }

    /// Finds the computations that a value leads to.
    fn of_levels(
        &mut self,
        value: &str,
        names: &[LevelName],
    ) -> Result<Option<Vec<ComputationId>>, LoadFault> {
        let mut ids: Vec<ComputationId> = Vec::with_capacity(names.len());
        let mut is_complete = true;
        for LevelName { texts, name } in names {
            let found = match name {
                Ok(name) => self.library.find(name.as_str(), self.findings),
                Err(error) => Err(LoadFault::Name(error.clone())),
            };
            let found = found.and_then(|found| {
                let pair = found.zip(ids.first());
                pair.map_or(Ok(()), |(id, first)| self.library.compare(id, *first))?;
                Ok(found)
            });
            match found.map_err(|fault| bound(value, texts, other_than(names, fault)))? {
                Some(id) if ids.contains(&id) => {}
                Some(id) => ids.push(id),
                None => is_complete = false,
            }
        }
        Ok(is_complete.then_some(ids))
    }

    /// The fault of a value without names of factors, in which somebody may have mistyped one.
    fn mistyped(
        &self,
        scope: ScopeId,
        name: &Template<ComputationName>,
        fault: LoadFault,
    ) -> LoadFault {
        let LoadFault::NoComputation { name: value, nearest: None } = fault else { return fault };
        let known: Vec<String> = self.scopes.names(scope).collect();
        let meant = name.unknown().find_map(|unknown| {
            let meant = nearest(unknown, &known)?;
            Some(value.replace(&format!("{{{unknown}}}"), &format!("{{{meant}}}")))
        });
        LoadFault::NoComputation { name: value, nearest: meant }
    }
}

/// The fault of a value with texts of its names.
fn bound(value: &str, texts: &[String], fault: LoadFault) -> LoadFault {
    LoadFault::Bound { value: value.to_owned(), texts: texts.to_vec(), fault: Box::new(fault) }
}

/// The fault of one of these names, without advice to use another of them.
fn other_than(names: &[LevelName], fault: LoadFault) -> LoadFault {
    match fault {
        LoadFault::NoComputation { name, nearest } => {
            let mut known = names.iter().filter_map(|it| it.name.as_ref().ok());
            let nearest = nearest.filter(|nearest| known.all(|name| name.as_str() != nearest));
            LoadFault::NoComputation { name, nearest }
        }
        other => other,
    }
}

impl<'a, S: TaskSource> NodeMaker<'a, '_, S> {
    /// Reads the lines of the file `resources` of a node.
    pub(super) fn read_resources(
        &mut self,
        place: &NodePlace<'a>,
        rows: &[Vec<Box<str>>],
    ) -> Vec<WrittenLine> {
        let (path, _) = place.line(RESOURCES, 0);
        let lines =
            (1..).zip(rows).map(|(line, row)| (place.line(RESOURCES, line).1, row.concat()));
        parse_resources(&path, lines.collect(), self.findings)
    }

    /// Lets a node of a computation ask for what its own lines say, then the task's, then the lines of the
    /// computation.
    pub(super) fn request(
        &mut self,
        node: NodeId,
        computation: ComputationId,
        open: &OpenNode<'a>,
    ) {
        let name = &self.library.get(computation).name;
        let task = self.shared.task.iter().filter(|(it, _)| it == name).map(|(_, line)| line);
        let lines =
            open.resources.iter().chain(task).chain(self.library.resources(computation)).cloned();
        let lines: Vec<WrittenLine> = lines.collect();
        if lines.is_empty() {
            return;
        }
        let place = open.place.shown();
        let mut right = Vec::with_capacity(lines.len());
        for line in lines {
            let is_known = right.iter().any(|it: &ResourceLine| it.resource == line.resource);
            if is_known {
                continue;
            }
            match self.look_up(&line, open.scope, &place) {
                Ok(line) => right.extend(line),
                Err(fault) => {
                    if self.shared.reported.insert((line.path.clone(), line.line)) {
                        self.findings.problem_in_line(&line.path, line.line, fault);
                    }
                }
            }
        }
        self.resources.add(node, computation, ResourceLines::new(right));
    }

    /// Looks up the names in a line. Returns `None` if it may have some, and the task's inputs are not known.
    fn look_up(
        &mut self,
        written: &WrittenLine,
        scope: ScopeId,
        place: &Path,
    ) -> Result<Option<ResourceLine>, ResourceFault> {
        let Some(inputs) = self.inputs else { return Ok(None) };
        let WrittenLine { resource, amount, path, line } = written.clone();
        if let Some(fault) = self.scopes.file_fault(scope, template::names_in(&amount)) {
            return Err(ResourceFault::File(Box::new(fault)));
        }
        let amount = Template::new(amount, |name| self.scopes.number(scope, inputs, name), place);
        if let Some(name) = amount.unknown().next() {
            let names = inputs.iter().map(ToString::to_string).chain(self.scopes.names(scope));
            let nearest = nearest(name, &names.collect::<Vec<_>>());
            let (name, node) = (name.to_owned(), place.to_owned());
            return Err(ResourceFault::NoName { name, nearest, node });
        }
        if !amount.is_open() {
            // Braces may name nothing.
            Resources::default().set(resource, amount.as_str())?;
        }
        Ok(Some(ResourceLine { resource, amount, path, line }))
    }

    /// The names in the resources of a node and of the nodes that it reads, without names that sweeps among these nodes
    /// bind.
    pub(super) fn asked_names(&self, node: NodeId) -> Vec<BoundId> {
        if self.resources.is_empty() {
            return Vec::new();
        }
        let inputs = self.inputs.unwrap_or_default().len();
        let (mut names, mut given) = (BTreeSet::new(), BTreeSet::new());
        let (mut seen, mut waiting) = (HashSet::from([node]), vec![node]);
        while let Some(node) = waiting.pop() {
            let lines = self.resources.lines_for(node).flat_map(ResourceLines::iter);
            let numbers = lines.flat_map(|line| line.amount.names());
            names.extend(numbers.filter_map(|at| at.checked_sub(inputs).map(BoundId::at)));
            if let Node::Sweep { sweep, .. } = &self.builder[node] {
                given.extend(self.sweeps[sweep.index()].gives());
            }
            let read = self.builder[node].inputs().iter().map(|argument| argument.node);
            waiting.extend(read.filter(|node| seen.insert(*node)));
        }
        names.difference(&given).copied().collect()
    }
}
