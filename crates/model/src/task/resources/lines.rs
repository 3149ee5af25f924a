//! Lines of files `resources`, whose amounts may depend on the texts of names.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{AmountError, Resource, Resources};
use crate::task::template::Template;

/// A line of a file `resources`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceLine {
    /// What it asks for.
    pub resource: Resource,
    /// How much; empty for [`Resource::Exclusive`].
    pub amount: Template<String>,
    /// The file, relative to the task.
    pub path: PathBuf,
    /// The number of the line, counted from one.
    pub line: usize,
}

impl ResourceLine {
    /// The line as it is written.
    pub fn written(&self) -> String {
        format!("{} {}", self.resource.word(), self.amount.as_str()).trim_end().to_owned()
    }
}

impl IntoIterator for ResourceLines {
    type Item = ResourceLine;
    type IntoIter = std::vec::IntoIter<ResourceLine>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_vec().into_iter()
    }
}

/// A line that asks for nothing with the texts of its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}:{line}: {error}", path.display())]
pub struct WrongAmount {
    /// The file, relative to the task.
    pub path: PathBuf,
    /// The number of the line, counted from one.
    pub line: usize,
    /// What is wrong.
    pub error: AmountError,
}

/// The lines that count for a node: at most one for each resource, in the order of the resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceLines(Box<[ResourceLine]>);

impl ResourceLines {
    /// Merges lines: of two for one resource, the first one counts.
    pub fn new(lines: impl IntoIterator<Item = ResourceLine>) -> Self {
        let mut first = BTreeMap::new();
        for line in lines {
            first.entry(line.resource).or_insert(line);
        }
        Self(first.into_values().collect())
    }

    /// The lines.
    pub fn iter(&self) -> impl Iterator<Item = &ResourceLine> {
        self.0.iter()
    }

    /// Returns what they ask for with the texts of the names in them. A line with a name that has no text counts for other
    /// nodes.
    ///
    /// # Errors
    ///
    /// Fails with the first line that asks for nothing then.
    pub fn amounts<'a>(
        &self,
        text: impl Fn(usize) -> Option<&'a str>,
    ) -> Result<Resources, WrongAmount> {
        let mut resources = Resources::default();
        for ResourceLine { resource, amount, path, line } in self.iter() {
            if amount.names().any(|name| text(name).is_none()) {
                continue;
            }
            let Ok(amount) = amount.bind(&text);
            let set = resources.set(*resource, amount.as_str().trim());
            set.map_err(|error| WrongAmount { path: path.clone(), line: *line, error })?;
        }
        Ok(resources)
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the same with texts of names.
    #[must_use]
    pub fn bind<'a>(&self, text: impl Fn(usize) -> Option<&'a str>) -> Self {
        let bind = |line: &ResourceLine| {
            let Ok(amount) = line.amount.bind(&text);
            ResourceLine { amount, ..line.clone() }
        };
        Self(self.iter().map(bind).collect())
    }
}
