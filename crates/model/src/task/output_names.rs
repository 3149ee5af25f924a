//! The names under which the outputs of a task leave the storage. They depend on the workflow alone.

use super::workflow::passing_input;
use super::{InputId, Node, NodeId, ROOT_LABEL, Task, TaskFileId};
use crate::exit::Explain;
use crate::name::{is_directory, outer_file_name, suffix};
use crate::sweep::DIRECTORY;

/// The suffixes of a table: it leaves as rows of JSON and as a sheet.
const TABLE_SUFFIXES: [&str; 2] = [".ndjson", ".csv"];

/// The name of an output of a task for people and other programs. The same value has it wherever it stands among the outputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OutputName {
    /// The name of its file or directory, one component of a path; of a table without a suffix.
    pub name: String,
    /// Whether it is a table: rows that a sweep has gathered.
    pub is_table: bool,
}

/// Two outputs of a task that would have one name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[error("the outputs {:02} and {:02} would both be called {name}", .numbers[0], .numbers[1])]
#[hint("give one of them a definition in the workflow, as in other = (compute data)")]
pub struct SameOutputName {
    pub name: String,
    /// The numbers of the outputs.
    pub numbers: [usize; 2],
}

impl OutputName {
    /// The names of its files: one, or two of a table.
    pub fn files(&self) -> Vec<String> {
        match self.is_table {
            true => TABLE_SUFFIXES.map(|suffix| format!("{}{suffix}", self.name)).to_vec(),
            false => vec![self.name.clone()],
        }
    }
}

impl Task {
    /// Returns the names of the task's outputs, in order. If it is evaluated at points, each point has them.
    ///
    /// An output that a definition `d` passes up is `d` with the suffix of the output, or `d-OUTPUT` where it passes up several. Without a definition it has the name that
    /// its computation declares; a sweep has its label, or else `table`; an input or a file its own.
    ///
    /// # Errors
    ///
    /// Fails if two outputs that are not the same value have one name, also if only case differs.
    pub fn output_names(&self) -> Result<Vec<OutputName>, SameOutputName> {
        let mut root = self.workflow.root();
        if let Node::Sweep { sweep, inputs, .. } = &self.workflow[root]
            && !self.sweeps[sweep.index()].has_table
        {
            root = inputs[0].node;
        }
        let mut named: Vec<(PassedOutput<'_>, OutputName)> = Vec::new();
        for number in self.workflow[root].numbers() {
            let passed = self.passed_output(root, number);
            let name = self.output_name(&passed);
            let files = name.files();
            for (other, (_, known)) in named.iter().enumerate().filter(|(_, (other, _))| {
                (other.origin, other.number) != (passed.origin, passed.number)
            }) {
                let taken = known.files();
                let is_taken = |file: &&String| {
                    taken.iter().any(|taken| taken.to_lowercase() == file.to_lowercase())
                };
                if let Some(file) = files.iter().find(is_taken) {
                    let numbers = [other, named.len()];
                    return Err(SameOutputName { name: file.clone(), numbers });
                }
            }
            named.push((passed, name));
        }
        Ok(named.into_iter().map(|(_, name)| name).collect())
    }

    /// Follows a value that a node passes up to where it comes from.
    fn passed_output(&self, node: NodeId, number: u8) -> PassedOutput<'_> {
        let mut passed = PassedOutput { origin: node, number, label: None, definition: None };
        // A loop: texts may nest these nodes without limit.
        loop {
            if let Some(names) = self.definitions.get(&passed.origin) {
                let is_one_of_several =
                    self.workflow[passed.origin].width() > 1 || self.is_part(passed.origin);
                passed.definition = names.first().map(|name| (&**name, is_one_of_several));
            }
            let Some((input, number)) = passing_input(&self.workflow, passed.origin, passed.number)
            else {
                return passed;
            };
            (passed.origin, passed.number) = (input.node, number);
            // A label that the workflow does not write is made of the values.
            let made = self.passed_names(input.node).join("-");
            passed.label = Some(&*input.label).filter(|label| **label != *made);
        }
    }

    /// Whether a node passes up a part of what its definition does.
    fn is_part(&self, node: NodeId) -> bool {
        self.parts.contains(&node)
            || self.definitions.iter().any(|(other, names)| {
                *other != node
                    && names.first() == self.definitions[&node].first()
                    && self.workflow[*other].width() > self.workflow[node].width()
            })
    }

    fn output_name(&self, passed: &PassedOutput<'_>) -> OutputName {
        let node = &self.workflow[passed.origin];
        let is_table = matches!(node, Node::Sweep { .. }) && passed.number != DIRECTORY;
        let own = self.own_name(node, passed);
        let plain = own.strip_suffix('/').unwrap_or(&own);
        let name = match passed.definition {
            None => plain.to_owned(),
            Some((definition, true)) => format!("{definition}-{plain}"),
            // A table has suffixes of its own, and an input may be called like the definition.
            Some((definition, false))
                if is_table || is_directory(&own) && suffix(plain).is_empty() =>
            {
                definition.to_owned()
            }
            Some((definition, false)) => format!("{definition}{}", suffix(plain)),
        };
        OutputName { name: outer_file_name(&name), is_table }
    }

    /// The name that an output has without a definition.
    fn own_name(&self, node: &Node, passed: &PassedOutput<'_>) -> String {
        let last = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let label = || passed.label.filter(|label| !label.is_empty() && *label != ROOT_LABEL);
        let input = |id: &InputId| self.inputs[id.index()].to_string();
        let file = |id: &TaskFileId| last(self.files[id.index()].path.as_str());
        match node {
            Node::Input(id) => input(id),
            Node::File(id) => file(id),
            Node::Literal(name) => last(name.as_str()),
            Node::Member { path, .. } => last(path.as_str()),
            Node::Sweep { .. } if passed.number != DIRECTORY => {
                label().unwrap_or("table").to_owned()
            }
            Node::Text(_) | Node::Points(_) => label().unwrap_or("text").to_owned(),
            Node::Computation { .. } | Node::Tree { .. } | Node::Sweep { .. } => {
                self.made(passed.origin)[usize::from(passed.number)].to_owned()
            }
            Node::All { .. } | Node::Bound(_) => label().unwrap_or("value").to_owned(),
        }
    }
}

/// A value that the root passes up.
struct PassedOutput<'a> {
    /// The node that makes it.
    origin: NodeId,
    /// Its number there.
    number: u8,
    /// The label of its place among the outputs.
    label: Option<&'a str>,
    /// The innermost definition that passes it up, and whether that passes up others, too.
    definition: Option<(&'a str, bool)>,
}
