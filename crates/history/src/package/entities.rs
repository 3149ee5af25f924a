//! Entities of JSON-LD, which refer to each other by `@id`, in the order in which they were made.
//!
//! [`CrateValues`] are the values of a crate, with their steps and actions, regardless of their makers.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use super::{Package, name_of_node};
use crate::History;
use ce_model::digest::Digest;
use ce_model::file_format::FileFormat;
use ce_model::name::{encoded, file_name};
use ce_model::task::{Node, NodeId, Task};
use jiff::Timestamp;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// A thing that metadata describe.
#[derive(Debug)]
pub(super) struct Entity {
    id: String,
    properties: Vec<(&'static str, Vec<PropertyText>)>,
}

impl Entity {
    /// Sets a property, if there is a value.
    pub(super) fn set<V: Into<PropertyText>>(
        &mut self,
        name: &'static str,
        values: impl IntoIterator<Item = V>,
    ) -> &mut Self {
        let values: Vec<PropertyText> = values.into_iter().map(V::into).collect();
        self.properties.retain(|(known, _)| *known != name);
        if !values.is_empty() {
            self.properties.push((name, values));
        }
        self
    }

    /// Sets a property to one value.
    pub(super) fn with(&mut self, name: &'static str, value: impl Into<PropertyText>) -> &mut Self {
        self.set(name, [value])
    }

    /// Adds a value to a property, once. It looks at all others.
    pub(super) fn add(&mut self, name: &'static str, value: PropertyText) {
        let known = self.properties.iter().find(|(known, _)| *known == name);
        if known.is_none_or(|(_, values)| !values.contains(&value)) {
            self.push(name, value);
        }
    }

    /// Adds a value to a property.
    pub(super) fn push(&mut self, name: &'static str, value: PropertyText) {
        match self.properties.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => self.properties.push((name, vec![value])),
        }
    }

    /// Whether a property is set.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.properties.iter().any(|(known, _)| *known == name)
    }
}

impl Serialize for Entity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.properties.len() + 1))?;
        object.serialize_entry("@id", &self.id)?;
        for (name, values) in &self.properties {
            match &values[..] {
                // A list of one value is written as the value: validators require it.
                [one] => object.serialize_entry(name, one)?,
                several => object.serialize_entry(name, several)?,
            }
        }
        object.end()
    }
}

/// A value of a property. A crate of many calls has many small references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PropertyText {
    /// The id of an entity.
    Reference(String),
    /// A text.
    Text(String),
}

impl Serialize for PropertyText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Reference(id) => serializer.collect_map([("@id", id)]),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl From<&str> for PropertyText {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for PropertyText {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// All entities of a crate.
#[derive(Debug, Default)]
pub(super) struct Entities {
    entities: Vec<Entity>,
    places: HashMap<String, usize>,
}

impl Entities {
    /// The entity with this id. It is made if it does not exist.
    pub(super) fn entity(&mut self, id: &str, types: &[&str]) -> &mut Entity {
        let place = self.places.get(id).copied().unwrap_or_else(|| {
            let mut entity = Entity { id: id.to_owned(), properties: Vec::new() };
            entity.set("@type", types.iter().copied());
            self.entities.push(entity);
            self.places.insert(id.to_owned(), self.entities.len() - 1);
            self.entities.len() - 1
        });
        &mut self.entities[place]
    }

    /// Whether there is an entity with this id.
    pub(super) fn has(&self, id: &str) -> bool {
        self.places.contains_key(id)
    }

    /// The document that holds them, with terms of these contexts, as a text.
    pub(super) fn document(&self, contexts: &[&str]) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            #[serde(rename = "@context")]
            context: &'a [&'a str],
            #[serde(rename = "@graph")]
            graph: &'a [Entity],
        }
        let document = Document { context: contexts, graph: &self.entities };
        // Texts and lists of them are always JSON.
        serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
    }
}

/// A reference to an entity.
pub(super) fn reference(id: impl AsRef<str>) -> PropertyText {
    PropertyText::Reference(id.as_ref().to_owned())
}

/// References to entities.
pub(super) fn references<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Vec<PropertyText> {
    ids.into_iter().map(reference).collect()
}

/// A URL whose other characters are escaped.
pub(super) fn valid_url(url: &str) -> String {
    let mut valid = String::with_capacity(url.len());
    let bytes = url.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let is_escape = || {
            let digits = bytes.get(at + 1..at + 3);
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        };
        match byte {
            b'%' if !is_escape() => valid.push_str("%25"),
            b'!' | b'#'..=b';' | b'=' | b'?'..=b'[' | b']' | b'_' | b'a'..=b'z' | b'~' => {
                valid.push(char::from(*byte));
            }
            byte => drop(write!(valid, "%{byte:02X}")),
        }
    }
    valid
}

/// Whether a text is the address of a page.
pub(super) fn is_web_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        !rest.is_empty() && !rest.contains(|c: char| c.is_whitespace() || c.is_control())
    })
}

/// CompEval itself.
pub(super) const ENGINE: &str = "#compeval";

/// The status of actions: all have ended, since no job is stored otherwise.
pub(super) const COMPLETED: &str = "http://schema.org/CompletedActionStatus";

/// A step of a workflow: a node, or a computation or sweep without a known node.
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
    /// The ids of the programs that it executes.
    pub(super) tools: BTreeSet<String>,
    /// The ids of its executions.
    pub(super) actions: Vec<String>,
}

/// The name of a node for people: a definition, or its computation or sweep.
pub(super) fn step_name(task: &Task, node: NodeId) -> Option<String> {
    let own = name_of_node(task, node).map(str::to_owned);
    own.or_else(|| match &task.workflow[node] {
        Node::Computation { computation, .. } => Some(computation.written(task).to_owned()),
        Node::Sweep { sweep, .. } => {
            let label = &*task.sweeps[sweep.index()].label;
            Some(if label.is_empty() { "sweep" } else { label }.to_owned())
        }
        _ => None,
    })
}

/// Values and their ids in a crate, by their names in the storage.
#[derive(Debug)]
pub(super) struct CrateValues {
    pub(super) graph: Entities,
    pub(super) ids: HashMap<String, String>,
}

impl CrateValues {
    /// The id of a value, which is described if it is new. One that is not in the crate has an id that is not a path.
    pub(super) fn id(&mut self, name: Option<String>, shown: &str, contents: &Digest) -> String {
        let name = name.unwrap_or_else(|| contents.sha1.full());
        if let Some(id) = self.ids.get(&name) {
            return id.clone();
        }
        let id = format!("#value/{}", of_path(&name, contents));
        described(self.graph.entity(&id, &[kind(contents)]), shown, contents);
        self.ids.insert(name, id.clone());
        id
    }

    /// The id of an input of the job.
    pub(super) fn input(
        &mut self,
        history: &History,
        package: &Package,
        name: &str,
        contents: &Digest,
    ) -> String {
        let path = input_path(name);
        if package.files.iter().any(|file| file.path == path) {
            return of_path(&path, contents);
        }
        let file = history.maker(contents, None).map(|subject| subject.file());
        self.id(file, name, contents)
    }

    /// Describes a parameter of a workflow or computation, and a value that it had.
    pub(super) fn parameter(&mut self, id: &str, name: &str, value: &str, contents: &Digest) {
        let kind = kind(contents);
        self.graph.entity(id, &["FormalParameter"]).with("name", name).with("additionalType", kind);
        self.graph.entity(value, &[]).add("exampleOfWork", reference(id));
    }
}

/// The directory of a crate with the inputs of the job.
pub(super) const INPUTS: &str = "inputs";

/// The directory of the files that sheets among the inputs name, in a crate.
pub(super) const SHEET_FILES: &str = "files-of-sheets";

/// The path of an input in a crate.
pub(super) fn input_path(name: &str) -> String {
    format!("{INPUTS}/{}", file_name(name))
}

/// The id of a path. The id of a directory ends in a slash.
pub(super) fn of_path(path: &str, contents: &Digest) -> String {
    let end = if contents.is_directory() { "/" } else { "" };
    format!("{}{end}", encoded(path))
}

pub(super) fn kind(contents: &Digest) -> &'static str {
    if contents.is_directory() { "Dataset" } else { "File" }
}

/// Describes a value. The hash of a directory is the hash of its manifest, which only CompEval knows.
pub(super) fn described(entity: &mut Entity, name: &str, contents: &Digest) {
    entity.with("name", name);
    if contents.is_directory() {
        let sha1 = contents.sha1.full();
        entity.with("description", format!("A directory whose manifest has the SHA-1 {sha1}"));
    } else {
        entity.with("contentSize", contents.size.to_string());
        entity.with("sha1", contents.sha1.full());
        entity.with("encodingFormat", FileFormat::media_type_of(name, || None));
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn an_entity_is_written_once_and_a_single_value_without_a_list() {
        let mut entities = Entities::default();
        entities.entity("a", &["File"]).with("name", "x").add("about", reference("b"));
        entities.entity("a", &["Other"]).add("about", reference("b"));
        let parsed = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        let document = parsed(entities.document(&["c", "d"]));
        assert_eq!(
            document["@graph"],
            json!([{ "@id": "a", "@type": "File", "name": "x", "about": { "@id": "b" } }])
        );
        entities.entity("a", &[]).push("about", reference("b"));
        entities.entity("a", &[]).set("name", Vec::<String>::new());
        let a = &parsed(entities.document(&[]))["@graph"][0];
        assert_eq!((a["about"].as_array().map(Vec::len), a.get("name")), (Some(2), None));
    }

    #[test]
    fn urls_are_escaped() {
        assert_eq!(valid_url("https://h/a_50%.git?x=%20#y"), "https://h/a_50%25.git?x=%20#y");
        assert_eq!(
            valid_url("https://h/a b<ü>|\"\\^`{}"),
            "https://h/a%20b%3C%C3%BC%3E%7C%22%5C%5E%60%7B%7D"
        );
    }
}
