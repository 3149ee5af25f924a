//! Values, steps and actions of a crate, regardless of what has made them.

use std::collections::{BTreeSet, HashMap};

use ce_model::digest::Digest;
use ce_model::output_format::OutputFormat;
use ce_model::task::{Node, NodeId, Task};
use jiff::Timestamp;

use super::Package;
use super::definitions::name;
use super::entities::{Entities, Entity, encoded, reference};
use crate::History;

/// CompEval itself.
pub(super) const ENGINE: &str = "#compeval";

/// The status of actions: all have ended, since no job is stored otherwise.
pub(super) const COMPLETED: &str = "http://schema.org/CompletedActionStatus";

/// A step of a workflow: a node, or a computation or sweep of which no node is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StepKey {
    /// A node.
    Node(NodeId),
    /// The name of a computation or table.
    Other(String),
}

impl StepKey {
    /// The id of the workflow that the body of a sweep is.
    pub(super) fn workflow(&self) -> String {
        match self {
            Self::Node(node) => format!("#sweep/{}", node.index()),
            Self::Other(name) => format!("#sweep/{}", encoded(name)),
        }
    }
}

/// The facts about a step.
#[derive(Debug, Default)]
pub(super) struct CrateStep {
    pub(super) name: String,
    /// The ids of what it executes.
    pub(super) tools: BTreeSet<String>,
    /// The ids of what it has executed.
    pub(super) actions: Vec<String>,
}

/// The name of a node for people: a definition, or what it is.
pub(super) fn step_name(task: &Task, node: NodeId) -> Option<String> {
    let own = name(task, node).map(str::to_owned);
    own.or_else(|| match &task.workflow[node] {
        Node::Computation { computation, .. } => Some(computation.written(task).to_owned()),
        Node::Sweep { sweep, .. } => {
            let label = &*task.sweeps[sweep.index()].label;
            Some(if label.is_empty() { "sweep" } else { label }.to_owned())
        }
        _ => None,
    })
}

/// CrateValues and their ids in a crate, by their names in the storage.
#[derive(Debug)]
pub(super) struct CrateValues {
    pub(super) graph: Entities,
    pub(super) ids: HashMap<String, String>,
}

impl CrateValues {
    /// The id of a value, which is described if it is new. One that is not in the crate has an id that is no path.
    pub(super) fn id(&mut self, name: Option<String>, shown: &str, contents: &Digest) -> String {
        let name = name.unwrap_or_else(|| contents.sha1.full());
        if let Some(id) = self.ids.get(&name) {
            return id.clone();
        }
        let id = format!("#value/{}", of_path(&name, contents));
        described(self.graph.of(&id, &[kind(contents)]), shown, contents);
        self.ids.insert(name, id.clone());
        id
    }

    /// The id of an input of the job.
    pub(super) fn input(
        &mut self,
        history: &History,
        package: &Package,
        (name, contents): (&str, &Digest),
    ) -> String {
        let path = input_path(name);
        if package.files.iter().any(|file| file.path == path) {
            return of_path(&path, contents);
        }
        let file = history.maker(contents, None).map(|subject| subject.file());
        self.id(file, name, contents)
    }

    /// Describes a parameter of a workflow or computation, and a value that it had.
    pub(super) fn parameter(&mut self, id: &str, name: &str, (value, contents): (&str, &Digest)) {
        let kind = kind(contents);
        self.graph.of(id, &["FormalParameter"]).with("name", name).with("additionalType", kind);
        self.graph.of(value, &[]).add("exampleOfWork", reference(id));
    }
}

/// The directory of a crate with the inputs of the job.
pub(super) const INPUTS: &str = "inputs";

/// The path of an input in a crate.
pub(super) fn input_path(name: &str) -> String {
    format!("{INPUTS}/{}", super::part(name))
}

/// The id of a path: that of a directory ends in a slash.
pub(super) fn of_path(path: &str, contents: &Digest) -> String {
    let end = if contents.is_directory() { "/" } else { "" };
    format!("{}{end}", encoded(path))
}

pub(super) fn kind(contents: &Digest) -> &'static str {
    if contents.is_directory() { "Dataset" } else { "File" }
}

/// Describes a value. Of a directory, the hash is that of its manifest, which only CompEval knows.
pub(super) fn described(entity: &mut Entity, name: &str, contents: &Digest) {
    entity.with("name", name);
    if contents.is_directory() {
        let sha1 = contents.sha1.full();
        entity.with("description", format!("A directory whose manifest has the SHA-1 {sha1}"));
    } else {
        entity.with("contentSize", contents.size.to_string());
        entity.with("sha1", contents.sha1.full());
        entity.with("encodingFormat", OutputFormat::media_type_of(name, || None));
    }
}

/// Sets the agent of an action, and its times, as far as they are known.
pub(super) fn performed(action: &mut Entity, agent: Option<&str>, span: Option<[Timestamp; 2]>) {
    action.set("agent", agent.map(reference));
    let moment = |time: Timestamp| time.strftime("%Y-%m-%dT%H:%M:%S%.3f+00:00").to_string();
    action.set("startTime", span.map(|[start, _]| moment(start)));
    action.set("endTime", span.map(|[_, end]| moment(end)));
}

/// The Software Heritage identifier of a commit.
pub(super) fn revision(commit: &str) -> Option<String> {
    (commit.len() == 40).then(|| format!("swh:1:rev:{commit}"))
}
