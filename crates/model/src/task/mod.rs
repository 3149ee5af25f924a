//! A task: its [`Workflow`], and everything that its nodes refer to: computations, files, Git trees, sweeps and resources.

mod output_names;
mod text_computation;
mod workflow;

pub use self::output_names::{OutputName, SameOutputName};
pub use self::text_computation::{ARROW, ComputationFile, TextComputation, interpreter};
pub use self::workflow::origins;
pub use self::workflow::{
    Argument, Builder, ComputationId, FreeNames, InputId, LIBRARY, LabelPaths, NONDETERMINISTIC,
    NewValues, Node, NodeId, ROOT_LABEL, SweepId, TaskFileId, TaskParts, TaskTreeId, WORKFLOW_TEXT,
    Workflow,
};

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::digest::{DIRTY, ObjectId, shown_version};
use crate::name::{ComputationName, InputName, NameError, TaskName, TaskPath, TreeName};
use crate::resources::{ResourceLine, ResourceLines};
use crate::slice::Slice;
use crate::sweep::{
    self, BoundId, Condition, FileColumn, MOST_COMBINATIONS, Product, Sweep, SweepPoints,
};
use crate::template::Template;

/// A whole program: a workflow and the inputs that all of it may read.
#[derive(Debug, Serialize, Deserialize)]
pub struct Task {
    /// The name of the directory that holds the task.
    pub name: TaskName,
    /// The commit of the task's repository.
    pub commit: ObjectId,
    /// The path of the task in its repository; empty if the task is the whole repository.
    pub place: String,
    /// The version that it was loaded from.
    pub loaded_from: LoadedFrom,
    /// Its files with uncommitted changes, relative to the task.
    pub changed: Vec<PathBuf>,
    /// The symbolic names of the task's inputs, in the order in which they are given.
    pub inputs: Vec<InputName>,
    /// The default of each input, if it has one.
    pub defaults: Vec<Option<TaskFileId>>,
    /// The texts that each input may have, as levels of one column; `None` if it may have any contents. The first one is its default.
    pub choices: Vec<Option<SweepPoints>>,
    /// The files of the task that are values: nodes and defaults of inputs.
    pub files: Vec<TaskFile>,
    /// The Git trees that are values.
    pub trees: Vec<TaskTree>,
    /// The names that sweeps bind. In a value, their numbers follow the numbers of the inputs.
    pub bound: Vec<InputName>,
    /// The rules of sweeps, and of nodes `points`.
    pub sweeps: Vec<Sweep>,
    /// The computations that the workflow uses.
    pub computations: Vec<Computation>,
    /// All computations that stand in its text.
    pub text_computations: Vec<TextComputation>,
    /// The resources that nodes of computations ask for.
    pub resources: TaskResources,
    /// The expression.
    pub workflow: Workflow,
    /// The names that its text defines for nodes.
    pub definitions: BTreeMap<NodeId, Vec<Box<str>>>,
    /// The ones that are named with a slice of a definition, `d[sum]`: they pass up a part of it.
    pub parts: BTreeSet<NodeId>,
}

/// The version of its repository that a task is loaded from. The commit is [`Task::commit`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoadedFrom {
    /// The work tree, whose commit is HEAD.
    WorkTree(Uncommitted),
    /// The commit; with a submodule at another commit than it records, given by its place, if there is one.
    Commit(Option<(PathBuf, ObjectId)>),
}

/// The treatment of uncommitted changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Uncommitted {
    /// A changed computation is an error: the commit in the names of its results would be wrong.
    Refuse,
    /// A changed computation is identified by its current tree instead of a commit.
    Evaluate,
    /// They are reported.
    Warn,
    /// They are not looked for: only the expression matters.
    Ignore,
}

impl Task {
    /// Whether it measures: it repeats calls, or wants some to be alone, or to have processors of their own.
    pub fn measures(&self) -> bool {
        self.sweeps.iter().any(|sweep| sweep.product.replicates.is_some())
            || self.resources.lines().any(|line| line.resource.is_flag())
    }

    /// Whether it was read from the draft of the next commit.
    pub fn is_draft(&self) -> bool {
        match self.loaded_from {
            LoadedFrom::WorkTree(Uncommitted::Refuse) => !self.changed.is_empty(),
            LoadedFrom::WorkTree(
                Uncommitted::Evaluate | Uncommitted::Warn | Uncommitted::Ignore,
            ) => true,
            LoadedFrom::Commit(_) => false,
        }
    }

    /// A computation as it stands in the text, if it does.
    pub fn text_computation(&self, computation: &Computation) -> Option<&TextComputation> {
        let is_in_text = computation.file.as_deref() == Some(Path::new(WORKFLOW_TEXT));
        self.text_computations.iter().find(|it| is_in_text && it.name == computation.name)
    }

    /// The names of all values that a node makes, by number: see [`Node::made`].
    pub fn made(&self, node: NodeId) -> Vec<&str> {
        self.workflow[node].made(|id| &self.computations[id.index()].outputs)
    }

    /// The names of the outputs that a node passes up, in order.
    pub fn passed_names(&self, node: NodeId) -> Vec<String> {
        let origins = origins(&self.workflow, node);
        origins
            .map(|(node, number)| {
                self.made(node)[usize::from(number)].trim_end_matches('/').to_owned()
            })
            .collect()
    }

    /// The nodes that are sheets with columns of files, and these columns. All sweeps over a sheet have the same ones.
    pub fn sheets_of_files(&self) -> BTreeMap<NodeId, Vec<FileColumn>> {
        let mut sheets = BTreeMap::<_, Vec<FileColumn>>::new();
        for (_, node) in self.workflow.nodes() {
            let Node::Sweep { sweep, inputs, .. } = node else { continue };
            let [_, sheet] = &inputs[..] else { continue };
            for column in &self.sweeps[sweep.index()].files {
                let known = sheets.entry(sheet.node).or_default();
                if !known.contains(column) {
                    known.push(column.clone());
                }
            }
        }
        sheets
    }

    /// Returns the inputs whose texts values or resources of nodes depend on, as often as they do.
    pub fn free_names(&self) -> impl Iterator<Item = InputId> {
        let nodes = self.workflow.nodes().map(|(_, node)| node);
        let with_values = nodes.filter(|node| !matches!(node, Node::Input(_)));
        let names = with_values.flat_map(|node| self.parts().names(node));
        // Defaults of inputs are files without a node.
        let names = names.chain(self.files.iter().flat_map(|file| file.path.names()));
        let names = names.chain(self.resources.lines().flat_map(|line| line.amount.names()));
        let conditions = self.sweeps.iter().filter_map(|sweep| sweep.product.condition.as_ref());
        let open = conditions.filter(|it| it.is_open()).flat_map(Condition::inputs);
        let number = |name: &str| self.inputs.iter().position(|input| input.as_str() == name);
        let names = names.chain(open.filter_map(number));
        names.filter(|number| *number < self.inputs.len()).map(InputId::at)
    }

    /// Returns what a value may be with the choices of the inputs that it names. `None` if it depends on anything else, or on too many
    /// choices.
    pub fn chosen<T>(&self, value: &Template<T>) -> Option<Vec<T>>
    where
        T: AsRef<str> + FromStr<Err = NameError> + Clone,
    {
        let choices = |number: usize| Some((number, self.choices.get(number)?.clone()?));
        let choices: BTreeMap<usize, SweepPoints> =
            value.names().map(choices).collect::<Option<_>>()?;
        let count = choices.values().map(SweepPoints::len).fold(1, usize::saturating_mul);
        if choices.is_empty() || count > MOST_COMBINATIONS {
            return None;
        }
        let numbers: Vec<usize> = choices.keys().copied().collect();
        let texts = sweep::product(choices.into_values().collect(), None).ok()?;
        let chosen = texts.iter().filter_map(|point| {
            let text = |number| Some(&**point.at(numbers.iter().position(|it| *it == number)?));
            Some(value.bind(text).ok()?.written().clone())
        });
        Some(chosen.collect())
    }

    /// Returns the names in braces that are not names of inputs, and the nodes with these values. They stay as they are, so
    /// such braces in the path of an existing file are fine.
    pub fn unknown_names(&self) -> impl Iterator<Item = (NodeId, String)> {
        let nodes = self.workflow.nodes();
        nodes.flat_map(|(id, node)| {
            self.parts().unknown_names(node).into_iter().map(move |name| (id, name))
        })
    }

    /// The parts that its nodes refer to.
    pub fn parts(&self) -> TaskParts<'_> {
        let Self { inputs, files, trees, sweeps, .. } = self;
        TaskParts { inputs: inputs.len(), files, trees, sweeps }
    }

    /// Whether no value depends on the text of an input, so that the task can be evaluated.
    pub fn is_bound(&self) -> bool {
        self.free_names().next().is_none()
    }

    /// Returns the inputs that no node of the workflow reads.
    pub fn unused_inputs(&self) -> impl Iterator<Item = &InputName> {
        let mut used = vec![false; self.inputs.len()];
        for (_, node) in self.workflow.nodes() {
            if let Node::Input(id) = node {
                used[id.index()] = true;
            }
        }
        self.free_names().for_each(|id| used[id.index()] = true);
        self.inputs.iter().zip(used).filter_map(|(name, used)| (!used).then_some(name))
    }

    /// Whether another version of the task has the same expression, and the same trees of all
    /// computations: from the same inputs it makes the same outputs.
    pub fn means_the_same(&self, other: &Self) -> bool {
        let [files, other_files] = [self, other]
            .map(|task| task.files.iter().map(|it| (&it.path, &it.contents)).collect::<Vec<_>>());
        let [trees, other_trees] = [self, other].map(|task| {
            task.computations.iter().map(|it| (&it.name, &it.tree)).collect::<Vec<_>>()
        });
        self.inputs == other.inputs
            && self.bound == other.bound
            && self.sweeps == other.sweeps
            && files == other_files
            && self.trees == other.trees
            && self.workflow == other.workflow
            && trees == other_trees
    }
}

/// A file in the repository of a task, at the commit of the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFile {
    /// Its path, relative to the task.
    pub path: Template<TaskPath>,
    pub contents: FileContents,
}

/// The location of the contents of a task's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileContents {
    /// In the commit. Changes by filters in a work tree do not count.
    Blob(ObjectId),
    /// In a file that Git LFS keeps: the commit has a pointer to it.
    Large(PathBuf),
    /// In the work tree: the file has changes that are not committed.
    Uncommitted(PathBuf),
    /// In the text of the workflow, which holds them.
    Written(Box<str>),
    /// Unknown, since the path has free names.
    Unbound,
}

/// A Git repository, or a directory in it, that the task reads at some commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTree {
    /// The repository, and the path in it.
    pub name: Template<TreeName>,
    pub commit: TreeCommit,
}

/// The commit of a repository that a task reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeCommit {
    /// The one that the commit of the task records.
    Recorded(RecordedTree),
    /// The recorded one, which is not known as long as the name of the tree is open.
    Unbound,
    /// The one that a value names: the revision.
    OfRevision,
}

/// The commit of a repository that the commit of a task records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedTree {
    pub commit: ObjectId,
    /// The directory in the work tree, and its Git tree, if it has uncommitted changes.
    pub uncommitted: Option<(PathBuf, ObjectId)>,
}

impl RecordedTree {
    /// Its version in full: the commit, or the tree of uncommitted changes.
    pub fn version(&self) -> String {
        match &self.uncommitted {
            Some((_, tree)) => format!("{DIRTY}{}", tree.full()),
            None => self.commit.full().to_owned(),
        }
    }
}

/// The outputs of a Git tree: the directory, and the id of its commit.
pub const TREE_OUTPUTS: [&str; 2] = ["directory", "commit"];

/// The symbolic name of the value that a node passes up, if it is a single one, such as an input or a member.
pub const VALUE: &str = "value";

/// The inputs of a member.
pub const MEMBER_INPUTS: [&str; 1] = ["directory"];

/// The inputs of a Git tree, unless it is at the recorded commit.
pub const TREE_INPUTS: [&str; 1] = ["revision"];

/// The computation of a node, as its name is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NamedComputation {
    /// The computation. If the name has free names, the computation at the first point: all others have the same inputs and
    /// outputs.
    pub first: ComputationId,
    /// The name, if it has free names. Sweeps bind them, or they are inputs with choices, and the task has a computation for each of these
    /// texts.
    pub open: Option<Box<Template<ComputationName>>>,
}

impl NamedComputation {
    /// Its name as it is written.
    pub fn written<'a>(&'a self, task: &'a Task) -> &'a str {
        match &self.open {
            Some(name) => name.as_str(),
            None => task.computations[self.first.index()].name.as_str(),
        }
    }

    /// The numbers of the names that it depends on.
    pub fn names(&self) -> impl Iterator<Item = usize> {
        self.open.iter().flat_map(|name| name.names())
    }
}

impl From<ComputationId> for NamedComputation {
    fn from(first: ComputationId) -> Self {
        Self { first, open: None }
    }
}

/// A named executable that turns inputs into outputs, at one commit.
#[derive(Debug, Serialize, Deserialize)]
pub struct Computation {
    /// Its name in the library.
    pub name: ComputationName,
    /// The commit of the repository that holds it.
    pub commit: ObjectId,
    /// The Git tree of its directory, or the blob of its file.
    pub tree: ObjectId,
    /// The tree is not the commit's: the directory has changes that are not committed.
    pub dirty: bool,
    /// The symbolic names of its inputs.
    pub inputs: Vec<String>,
    /// The symbolic names of its outputs.
    pub outputs: Vec<String>,
    /// Its grants of access beyond its own tree.
    pub access: Access,
    /// The directory or file in the work tree, if it is dirty or in a repository that the commit may not record.
    pub checked_out: Option<PathBuf>,
    /// The file that it is, or the text that it stands in, relative to the task; `None` for a directory.
    pub file: Option<PathBuf>,
}

impl Computation {
    /// The name of the file that it is, or of the text that it stands in; `None` for a directory.
    pub fn file_name(&self) -> Option<&OsStr> {
        self.file.as_ref()?.file_name()
    }

    /// Its directory or file, or the text that it stands in, relative to the task.
    pub fn place(&self) -> PathBuf {
        let directory = || Path::new(LIBRARY).join(self.name.as_str());
        self.file.clone().unwrap_or_else(directory)
    }

    /// The file of its directory with this name, or else its place, relative to the task.
    pub fn place_of(&self, name: &str) -> PathBuf {
        if self.file.is_some() { self.place() } else { self.place().join(name) }
    }

    /// Its version as in names: the commit, or the tree of uncommitted changes.
    pub fn version(&self) -> String {
        shown_version(&self.commit, &self.tree, self.dirty)
    }
}

/// The resources that the nodes of a task request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResources {
    /// Each set of lines once.
    sets: Vec<ResourceLines>,
    /// The numbers of the sets of each node that has any, by its computations. Equal nodes that are written in different
    /// places may have several.
    nodes: BTreeMap<NodeId, BTreeMap<ComputationId, Vec<u32>>>,
}

impl TaskResources {
    /// Whether no node asks for anything.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Lets the calls of a computation at a node ask for something, unless there are no lines.
    pub fn add(&mut self, node: NodeId, computation: ComputationId, lines: ResourceLines) {
        if lines.is_empty() {
            return;
        }
        let known = self.sets.iter().position(|it| *it == lines);
        let set = known.unwrap_or_else(|| {
            self.sets.push(lines);
            self.sets.len() - 1
        });
        let sets = self.nodes.entry(node).or_default().entry(computation).or_default();
        if !sets.contains(&(set as u32)) {
            sets.push(set as u32);
        }
    }

    /// The sets of lines that count for a node with any of its computations.
    pub fn lines_for(&self, node: NodeId) -> impl Iterator<Item = &ResourceLines> {
        let sets = self.nodes.get(&node).into_iter().flat_map(BTreeMap::values).flatten();
        sets.map(|set| &self.sets[*set as usize])
    }

    /// The sets of lines that count for the calls of a computation at a node.
    pub fn of_calls(
        &self,
        node: NodeId,
        computation: ComputationId,
    ) -> impl Iterator<Item = &ResourceLines> {
        let sets = self.nodes.get(&node).and_then(|node| node.get(&computation));
        let sets = sets.into_iter().flatten();
        sets.map(|set| &self.sets[*set as usize])
    }

    /// All lines.
    pub fn lines(&self) -> impl Iterator<Item = &ResourceLine> {
        self.sets.iter().flat_map(ResourceLines::iter)
    }

    /// Returns the same with other numbers of names.
    #[must_use]
    pub fn renamed(self, amount: impl Fn(Template<String>) -> Template<String>) -> Self {
        Self {
            sets: self
                .sets
                .into_iter()
                .map(|set| {
                    ResourceLines::new(
                        set.into_iter().map(|it| ResourceLine { amount: amount(it.amount), ..it }),
                    )
                })
                .collect(),
            nodes: self.nodes,
        }
    }

    /// Returns the same with texts of names, of nodes that have become others.
    #[must_use]
    pub fn bind<'a>(
        &self,
        text: impl Fn(usize) -> Option<&'a str> + Copy,
        node: impl Fn(NodeId) -> Option<NodeId>,
    ) -> Self {
        let mut bound = Self::default();
        for (id, sets) in &self.nodes {
            let Some(id) = node(*id) else { continue };
            for (computation, set) in
                sets.iter().flat_map(|(it, sets)| sets.iter().map(move |set| (it, set)))
            {
                bound.add(id, *computation, self.sets[*set as usize].bind(text));
            }
        }
        bound
    }
}

/// The inputs of a task that is evaluated for each point, in order: those that its jobs have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangedInputs(Vec<RangedInput>);

/// An input of a task that is evaluated for each point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangedInput {
    pub name: InputName,
    /// The input of the transformed task that it is; `None` if the points have a text for it.
    pub given: Option<InputId>,
}

impl RangedInputs {
    /// All inputs, in the order in which the task names them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &RangedInput> {
        self.0.iter()
    }
}

impl Task {
    /// Returns the task whose root is evaluated for each point of a product, and the inputs that each point is a job of.
    /// The names of the factors are inputs of the task, and each occurs once. The other inputs stay.
    ///
    /// The product has points.
    pub fn for_each(self, product: Product) -> (Self, RangedInputs) {
        let names: Vec<&String> =
            product.factors.iter().flat_map(|factor| factor.points.names()).collect();
        let (mut bound, mut kept, mut defaults) = (self.bound.clone(), Vec::new(), Vec::new());
        let mut choices = Vec::new();
        let (mut inputs, mut binds) = (Vec::new(), Vec::new());
        for ((name, default), texts) in self.inputs.iter().zip(&self.defaults).zip(&self.choices) {
            let given = if names.iter().any(|it| **it == name.as_str()) {
                binds.push(BoundId::at(bound.len()));
                bound.push(name.clone());
                None
            } else {
                kept.push(name.clone());
                defaults.push(*default);
                choices.push(texts.clone());
                Some(InputId::at(kept.len() - 1))
            };
            inputs.push(RangedInput { name: name.clone(), given });
        }
        let mut renaming = Renaming { inputs: &inputs, kept: kept.len(), bound: self.bound.len() };
        let files = self
            .files
            .into_iter()
            .map(|it| TaskFile { path: renaming.template(it.path), ..it })
            .collect();
        let trees = self
            .trees
            .into_iter()
            .map(|it| TaskTree { name: renaming.template(it.name), ..it })
            .collect();
        let mut sweeps = self.sweeps;
        let rules = Sweep::new(self.name.as_str().into(), PathBuf::new(), product);
        sweeps.push(Sweep { binds, has_table: false, ..rules });
        let sweep = SweepId::at(sweeps.len() - 1);
        let workflow = renaming.workflow(&self.workflow, sweep);
        let resources = self.resources.renamed(|amount| renaming.template(amount));
        let task = Self {
            inputs: kept,
            defaults,
            choices,
            files,
            trees,
            bound,
            sweeps,
            resources,
            workflow,
            ..self
        };
        (task, RangedInputs(inputs))
    }
}

/// The new numbers of names. Some of the names become bound.
struct Renaming<'a> {
    inputs: &'a [RangedInput],
    /// The number of inputs that stay.
    kept: usize,
    /// The number of names that were bound before.
    bound: usize,
}

impl Renaming<'_> {
    /// The name that an input becomes, unless it stays one.
    fn binding(&self, input: usize) -> Option<BoundId> {
        let RangedInput { given, .. } = &self.inputs[input];
        let before = self.inputs[..input].iter().filter(|it| it.given.is_none()).count();
        given.is_none().then(|| BoundId::at(self.bound + before))
    }

    /// A value with the new numbers of its names.
    fn template<T: AsRef<str>>(&self, value: Template<T>) -> Template<T> {
        value.renumbered(|number| match number.checked_sub(self.inputs.len()) {
            Some(bound) => self.kept + bound,
            None => match self.inputs[number].given {
                Some(input) => input.index(),
                None => self.kept + self.binding(number).map_or(0, BoundId::index),
            },
        })
    }

    /// The workflow, as the body of a sweep.
    fn workflow(&mut self, workflow: &Workflow, sweep: SweepId) -> Workflow {
        let mut builder = Builder::default();
        // Different nodes stay different, so each keeps its id.
        for (id, node) in workflow.nodes() {
            let Ok(node) = node.clone().with_values(self);
            let same = builder.intern(node);
            debug_assert_eq!(same, id, "a renamed node is as different as before");
        }
        let body = Argument { label: "TASK".into(), first: 0, last: 0, node: workflow.root() };
        let root = Node::Sweep { sweep, inputs: [body].into(), outputs: Slice::all(1) };
        let root = builder.intern(root);
        builder.finish(root)
    }
}

impl NewValues for Renaming<'_> {
    type Missing = Infallible;

    fn value<T>(&mut self, value: Template<T>) -> Result<Template<T>, Infallible>
    where
        T: AsRef<str> + FromStr<Err = NameError>,
    {
        Ok(self.template(value))
    }

    fn file(&mut self, file: TaskFileId) -> Result<TaskFileId, Infallible> {
        Ok(file)
    }

    fn tree(&mut self, tree: TaskTreeId) -> Result<TaskTreeId, Infallible> {
        Ok(tree)
    }

    fn input(&mut self, input: InputId) -> Node {
        match (self.inputs[input.index()].given, self.binding(input.index())) {
            (_, Some(name)) => Node::Bound(name),
            (given, None) => Node::Input(given.unwrap_or(input)),
        }
    }
}
