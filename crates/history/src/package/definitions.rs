//! The names that the workflow of a job defines: of its outputs, and of the calls and tables that they were made from.
//!
//! Records do not have them. The workflow is that of the job's commit, in the repository of the current directory. Which call a node
//! made is found by following records from the outputs on, beside the workflow.

use std::collections::hash_map::Entry as Place;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use ce_model::task::{Node, NodeId, Task, origins};
use ce_storage::records::JobRecord;
use ce_storage::{Entry, RecipeRow, Record, Storage, StorageError, split_member};
use ce_task::load;

use crate::{History, Subject};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    /// The task, if it defines names.
    task: Option<Task>,
    /// The names of results, by what is the same at each commit.
    results: HashMap<String, String>,
    /// The names of computations that each node with them has.
    computations: HashMap<String, Option<String>>,
}

impl Definitions {
    /// Those of outputs: there are none unless the repository of the current directory has the commit of the job.
    pub(super) fn of_outputs(job: &JobRecord) -> Self {
        let task = job.place.as_ref().and_then(|place| {
            let top = ce_git::top(&Path::new(".").canonicalize().ok()?)?;
            Some(load::task_at(&top.join(place), job.commit.full(), None).ok()?.task)
        });
        let task = task.filter(|task| !task.definitions.is_empty());
        Self { task, ..Self::default() }
    }

    /// Those of outputs, calls and tables.
    pub(super) fn of(
        storage: &Storage,
        history: &History,
        job: &JobRecord,
    ) -> Result<Self, StorageError> {
        let mut definitions = Self::of_outputs(job);
        let Some(task) = definitions.task.take() else { return Ok(definitions) };
        for (id, node) in task.workflow.nodes() {
            let Node::Computation { computation, .. } = node else { continue };
            let own = name(&task, id).map(str::to_owned);
            match definitions.computations.entry(computation.written(&task).to_owned()) {
                Place::Vacant(place) => drop(place.insert(own)),
                Place::Occupied(mut place) if *place.get() != own => drop(place.insert(None)),
                Place::Occupied(_) => {}
            }
        }
        for (node, subject) in producers(&task, (storage, history), job)? {
            if let Some(name) = name(&task, node) {
                definitions.results.entry(key(subject.entry)).or_insert_with(|| name.to_owned());
            }
        }
        definitions.task = Some(task);
        Ok(definitions)
    }

    /// The name of what makes an output of the job.
    pub(super) fn output(&self, number: usize) -> Option<&str> {
        let task = self.task.as_ref()?;
        name(task, output_node(task, number)?)
    }

    /// The name of a call or table of the job.
    pub(super) fn result(&self, result: Subject<'_>) -> Option<&str> {
        let found = self.results.get(&key(result.entry)).or_else(|| match result.record {
            Record::Call(call) => self.computations.get(call.computation.as_str())?.as_ref(),
            Record::Job(_) | Record::Table(_) | Record::TaskInput(_) => None,
        });
        found.map(String::as_str)
    }
}

/// Returns the nodes of a job's workflow with the calls and tables that each has made, as far as records lead from the outputs.
pub(super) fn producers<'a>(
    task: &Task,
    (storage, history): (&Storage, &'a History),
    job: &JobRecord,
) -> Result<Vec<(NodeId, Subject<'a>)>, StorageError> {
    let mut made: Vec<(NodeId, Subject<'a>)> = Vec::new();
    for (number, output) in job.outputs.iter().enumerate() {
        let node = output_node(task, number);
        let subject = history.subject(split_member(&output.file).0);
        made.extend(node.zip(subject));
    }
    let (mut seen, mut producers) = (HashSet::new(), Vec::new());
    while let Some((node, subject)) = made.pop() {
        let node = holder(task, node);
        if seen.insert((node, subject.entry)) && fits(task, node, subject) {
            producers.push((node, subject));
            made.extend(made_from(task, node, (storage, history), subject)?);
        }
    }
    Ok(producers)
}

/// The name of a node.
pub(super) fn name(task: &Task, node: NodeId) -> Option<&str> {
    task.definitions.get(&node)?.first().map(|name| &**name)
}

/// The node that makes an output. The points of a range of inputs have the same outputs each.
fn output_node(task: &Task, number: usize) -> Option<NodeId> {
    let origins: Vec<NodeId> =
        origins(&task.workflow, task.workflow.root()).map(|(node, _)| node).collect();
    origins.get(number.checked_rem(origins.len())?).copied()
}

/// The node whose directory a member is of, or the node itself.
fn holder(task: &Task, mut node: NodeId) -> NodeId {
    while let Node::Member { inputs, .. } = &task.workflow[node]
        && let Some((holder, _)) = origins(&task.workflow, inputs[0].node).next()
    {
        node = holder;
    }
    node
}

/// Whether a node may have made a result: equal contents may lead to another one.
fn fits(task: &Task, node: NodeId, result: Subject<'_>) -> bool {
    match (&task.workflow[node], result.record) {
        (Node::Computation { computation, .. }, Record::Call(call)) => {
            computation.open.is_some() || computation.written(task) == call.computation.as_str()
        }
        (Node::Sweep { .. }, Record::Table(_)) => true,
        _ => false,
    }
}

/// Returns the results that a result was made from, each with the node that made it.
fn made_from<'a>(
    task: &Task,
    node: NodeId,
    (storage, history): (&Storage, &'a History),
    result: Subject<'a>,
) -> Result<Vec<(NodeId, Subject<'a>)>, StorageError> {
    let inputs = task.workflow[node].inputs();
    let Entry::Table(table) = result.entry else {
        let nodes = inputs.iter().flat_map(|input| origins(&task.workflow, input.node));
        let parents = history.parents(storage, result)?;
        let made = nodes.zip(parents);
        return Ok(made.filter_map(|((node, _), it)| Some((node, it.subject?))).collect());
    };
    let body: Vec<NodeId> = inputs
        .first()
        .map(|body| origins(&task.workflow, body.node).map(|(node, _)| node).collect())
        .unwrap_or_default();
    let mut made = Vec::new();
    storage.tables().read_recipe(table, |RecipeRow { outputs, .. }| {
        for (node, output) in body.iter().zip(outputs.into_iter().flatten()) {
            made.extend(history.recorded(&output.file, &output.digest).map(|it| (*node, it)));
        }
    })?;
    Ok(made)
}

/// The part of the name of a result that is the same at each commit.
fn key(entry: &Entry) -> String {
    match entry {
        Entry::Call(call) => call.short().replacen(&format!("/{}/", call.version()), "/", 1),
        _ => entry.short(),
    }
}
