//! Binding: the texts of a task's inputs take the place of their names in the values of its nodes.
//!
//! A file of the task that is named so is found like any other, in the version that the task was loaded
//! from. So it is refused if it has uncommitted changes, unless they are to be evaluated.

use std::mem;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ce_git::Snapshot;
use ce_model::name::{InputName, NameError};
use ce_model::resources::ResourceLine;
use ce_model::task::{
    Builder, Computation, ComputationId, InputId, LoadedFrom, NamedComputation, NewValues, Node,
    NodeId, Task, TaskFile, TaskFileId, TaskTree, TaskTreeId, TreeCommit,
};
use ce_model::template;
use ce_model::template::Template;

use super::checkout::Checkout;
use super::problems::{LoadFault, Problems};
use super::source::TaskSource;
use super::text_workflow::path_and_line;
use super::values::{TaskFiles, TaskTrees};
use super::{LoadError, real};

/// Returns a task in a directory without free names, given the contents of the inputs that its values name.
/// Expressions that become equal are one.
///
/// # Errors
///
/// Returns all problems at once: contents that are not texts, and values that are wrong with their texts.
pub fn bind(dir: &Path, task: Task, contents: &[Option<Vec<u8>>]) -> Result<Task, LoadError> {
    if task.is_bound() {
        return Ok(task);
    }
    let real = real(dir)?;
    let binder = Binder::new(&task, contents);
    let bound = match &task.loaded_from {
        LoadedFrom::WorkTree(uncommitted) => {
            let source = Checkout::of_task(&real, &task.commit, *uncommitted, task.is_draft());
            let mut source = source.map_err(|error| LoadError::of_head(dir, error))?;
            binder.bind(task, &mut source)
        }
        LoadedFrom::Commit(moved) => {
            let mut snapshot = Snapshot::open(&real, task.commit.full())?;
            if let Some((submodule, commit)) = moved {
                snapshot = snapshot.with(submodule, commit)?;
            }
            binder.bind(task, &mut snapshot)
        }
    };
    bound.map_err(|mut findings| {
        findings.sort();
        let Problems { problems, warnings } = findings;
        LoadError::Problems { path: dir.to_owned(), problems, warnings }
    })
}

/// Makes a computation the one that its name says, if no names are open in it.
fn choose(computation: &mut NamedComputation, all: &[Computation]) {
    let chosen = computation
        .open
        .as_ref()
        .filter(|name| !name.is_open())
        .and_then(|name| all.iter().position(|it| it.name == *name.written()));
    if let Some(chosen) = chosen {
        *computation = ComputationId::at(chosen).into();
    }
}

/// The texts of a task's inputs.
struct Binder {
    inputs: Vec<InputName>,
    /// `None` for an input that no value names, or whose contents are not a text.
    texts: Vec<Option<String>>,
    findings: Problems,
}

impl Binder {
    /// Takes the texts from the contents of inputs. Contents that are not text are a problem of the first
    /// value that names the input.
    fn new(task: &Task, contents: &[Option<Vec<u8>>]) -> Self {
        let inputs = task.inputs.clone();
        let texts = vec![None; inputs.len()];
        let mut binder = Self { inputs, texts, findings: Problems::default() };
        let mut contents = contents.to_vec();
        for (at, _) in task.choices.iter().enumerate().filter(|(_, it)| it.is_some()) {
            let text = contents.get(at).and_then(Option::as_deref).map(template::text);
            binder.texts[at] = text.and_then(Result::ok).map(str::to_owned);
        }
        for ResourceLine { amount, path, line, .. } in task.resources.lines() {
            binder.read(amount, path, *line, &mut contents);
        }
        for value in task.workflow.nodes().filter_map(|(_, node)| task.parts().value(node)) {
            let (path, line) = value_file(&value);
            binder.read(&value, &path, line, &mut contents);
        }
        binder
    }

    /// Takes the texts that a value in a line of a file names, if they were not taken before. Line zero is the whole file.
    fn read<T: AsRef<str>>(
        &mut self,
        value: &Template<T>,
        path: &Path,
        line: usize,
        contents: &mut [Option<Vec<u8>>],
    ) {
        for at in value.names() {
            let contents = contents.get_mut(at).and_then(Option::take);
            let Some(contents) = contents else { continue };
            match template::text(&contents) {
                Ok(text) => self.texts[at] = Some(text.to_owned()),
                Err(fault) => {
                    let (value, name) = (value.as_str().to_owned(), self.inputs[at].to_string());
                    let fault = LoadFault::InputText { value, name, fault };
                    self.findings.problem_in_line(path, line, fault);
                }
            }
        }
    }

    /// Returns the task with the texts, or all problems.
    fn bind(mut self, mut task: Task, source: &mut impl TaskSource) -> Result<Task, Problems> {
        let files = mem::take(&mut task.files);
        let mut own = TaskFiles::default();
        let ids: Vec<Option<TaskFileId>> =
            files.iter().map(|file| self.file(file, source, &mut own)).collect();
        let trees = mem::take(&mut task.trees);
        let mut own_trees = TaskTrees::default();
        let tree_ids: Vec<Option<TaskTreeId>> =
            trees.iter().map(|tree| self.tree(tree, source, &mut own_trees)).collect();
        if files.iter().any(|file| file.path.is_open())
            || trees.iter().any(|tree| tree.commit == TreeCommit::Unbound)
        {
            self.add_changes(&mut task, source);
        }
        for sweep in &mut task.sweeps {
            if let Some(condition) = &mut sweep.product.condition {
                let at = |name: &str| task.inputs.iter().position(|it| it.as_str() == name);
                condition.choose(|name| self.texts.get(at(name)?)?.as_deref());
            }
        }
        let (definitions, parts) = (mem::take(&mut task.definitions), mem::take(&mut task.parts));
        let mut builder = Builder::default();
        let mut nodes: Vec<Option<NodeId>> = Vec::with_capacity(task.workflow.nodes().len());
        let mut values = BoundValues { binder: &mut self, files: &ids, trees: &tree_ids };
        for (_, node) in task.workflow.nodes() {
            let node = node.clone().with_values(&mut values).ok().and_then(|mut node| {
                for input in node.inputs_mut() {
                    input.node = nodes[input.node.index()]?;
                }
                if let Node::Computation { computation, .. } = &mut node {
                    choose(computation, &task.computations);
                }
                Some(builder.intern(node))
            });
            nodes.push(node);
        }
        match nodes[task.workflow.root().index()] {
            Some(root) if self.findings.problems.is_empty() => {
                let defaults = task.defaults.iter().map(|file| ids[(*file)?.index()]).collect();
                let (files, trees) = (own.into_files(), own_trees.into_trees());
                let text = |at: usize| self.texts.get(at)?.as_deref();
                let resources = task.resources.bind(text, |node| nodes[node.index()]);
                let workflow = builder.finish(root);
                let definitions = definitions.into_iter();
                let definitions = definitions.filter_map(|(id, it)| Some((nodes[id.index()]?, it)));
                let definitions = definitions.collect();
                let parts = parts.into_iter().filter_map(|id| nodes[id.index()]).collect();
                Ok(Task { definitions, parts, files, trees, defaults, resources, workflow, ..task })
            }
            _ => Err(self.findings),
        }
    }

    /// Finds a file of the task.
    fn file(
        &mut self,
        file: &TaskFile,
        source: &mut impl TaskSource,
        own: &mut TaskFiles,
    ) -> Option<TaskFileId> {
        if !file.path.is_open() {
            return own.add(file);
        }
        let path = self.value(&file.path)?;
        let found = own.find(source, path, &mut self.findings);
        self.note(&file.path, found).flatten()
    }

    /// Finds the commit of a tree, if the task records it.
    fn tree(
        &mut self,
        tree: &TaskTree,
        source: &mut impl TaskSource,
        own: &mut TaskTrees,
    ) -> Option<TaskTreeId> {
        if !tree.name.is_open() {
            return own.add(tree);
        }
        let is_recorded = tree.commit != TreeCommit::OfRevision;
        let name = self.value(&tree.name)?;
        let found = own.find(source, name, is_recorded, &mut self.findings);
        self.note(&tree.name, found).flatten()
    }

    /// Adds the uncommitted changes of the files and trees that were found to the changes of the task.
    fn add_changes(&mut self, task: &mut Task, source: &mut impl TaskSource) {
        let changes = self.findings.note(Path::new(""), source.changes()).unwrap_or_default();
        task.changed.extend(changes.changed);
        task.changed.sort_unstable();
        task.changed.dedup();
    }

    /// Returns a value with the texts of its names, or adds the problem that it has with them. Names that sweeps bind
    /// stay free.
    fn value<T>(&mut self, value: &Template<T>) -> Option<Template<T>>
    where
        T: AsRef<str> + FromStr<Err = NameError>,
    {
        if value.names().any(|at| self.texts.get(at).is_some_and(Option::is_none)) {
            return None;
        }
        let bound = value.bind(|at| self.texts.get(at)?.as_deref());
        self.note(value, bound.map_err(LoadFault::Name))
    }

    /// Returns the value of a result, or adds the problem of a node's value with its texts.
    fn note<T, V: AsRef<str>>(
        &mut self,
        value: &Template<V>,
        result: Result<T, LoadFault>,
    ) -> Option<T> {
        let result = result.map_err(|fault| {
            let mut texts: Vec<String> = Vec::new();
            for at in value.names().filter(|at| *at < self.inputs.len()) {
                let text = self.texts[at].as_deref().unwrap_or_default();
                texts.push(format!("{} is {text:?}", self.inputs[at]));
            }
            texts.sort_unstable();
            texts.dedup();
            let (path, line) = value_file(value);
            let value = value.as_str().to_owned();
            let fault = LoadFault::Bound { value, texts, fault: Box::new(fault) };
            self.findings.problem_in_line(&path, line, fault);
        });
        result.ok()
    }
}

/// The values of nodes with the texts of inputs. A missing value is a problem that the binder reports.
struct BoundValues<'a> {
    binder: &'a mut Binder,
    files: &'a [Option<TaskFileId>],
    trees: &'a [Option<TaskTreeId>],
}

impl NewValues for BoundValues<'_> {
    type Missing = ();

    fn value<T>(&mut self, value: Template<T>) -> Result<Template<T>, ()>
    where
        T: AsRef<str> + FromStr<Err = NameError>,
    {
        self.binder.value(&value).ok_or(())
    }

    fn file(&mut self, file: TaskFileId) -> Result<TaskFileId, ()> {
        self.files[file.index()].ok_or(())
    }

    fn tree(&mut self, tree: TaskTreeId) -> Result<TaskTreeId, ()> {
        self.trees[tree.index()].ok_or(())
    }

    fn input(&mut self, input: InputId) -> Node {
        Node::Input(input)
    }
}

/// The file and the line that a value is written in; line zero is the whole file.
fn value_file<T: AsRef<str>>(value: &Template<T>) -> (PathBuf, usize) {
    match path_and_line(value.place()) {
        (place, 0) => (place.join("value"), 0),
        in_text => in_text,
    }
}
