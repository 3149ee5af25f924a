//! The roles of task inputs: what a file that no call has made is for. A task input, the level of a sweep and a file of a
//! task's repository are all kept as task inputs, and their records say nothing else.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Ancestor, History, Subject};
use serde::Serialize;

use crate::digest::Digest;
use crate::storage::{Entry, ExpectedFile, Record, ResultName, Storage, StorageError};

/// What a task input is for, as far as records say. Its contents may have several roles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InputRoles {
    /// The inputs of recorded jobs: their names, and the tasks.
    pub inputs: BTreeSet<(String, String)>,
    /// The names and texts of points of tables, as calls get them.
    pub levels: BTreeSet<(String, String)>,
    /// The contents, if they are a short text.
    pub text: Option<String>,
}

/// The roles of some task inputs, by their contents.
#[derive(Clone, Debug, Default)]
pub struct RolesOfInputs(HashMap<Digest, InputRoles>);

impl RolesOfInputs {
    /// The roles of a file; none if they were not looked up.
    pub fn of(&self, file: &ExpectedFile) -> &InputRoles {
        const NONE: &InputRoles =
            &InputRoles { inputs: BTreeSet::new(), levels: BTreeSet::new(), text: None };
        self.0.get(&file.digest).unwrap_or(NONE)
    }
}

impl History {
    /// Returns the roles of the task inputs among a file and its ancestors.
    ///
    /// # Errors
    ///
    /// Fails if the recipe of a table cannot be read. Of a damaged one the points before the damage are known.
    pub fn roles(
        &self,
        storage: &Storage,
        subject: Subject<'_>,
        ancestors: &[Ancestor<'_>],
    ) -> Result<RolesOfInputs, StorageError> {
        let files = ancestors.iter().filter_map(|it| it.subject).chain([subject]);
        let files = files.filter(|it| matches!(it.entry, Entry::TaskInput(_)));
        let mut roles: HashMap<Digest, InputRoles> = HashMap::new();
        for digest in files.map(|file| file.promise.digest) {
            roles.entry(digest).or_insert_with(|| InputRoles {
                text: storage.inputs().short_text(&digest),
                ..InputRoles::default()
            });
        }
        if roles.is_empty() {
            return Ok(RolesOfInputs::default());
        }
        let sizes = roles.keys().map(|digest| digest.size).collect();
        for (entry, record) in &self.results {
            match (entry, record) {
                (_, Record::Job(job)) => {
                    for input in &job.inputs {
                        if let Some(roles) = roles.get_mut(&input.digest) {
                            roles.inputs.insert((input.name.to_string(), job.task.to_string()));
                        }
                    }
                }
                (Entry::Table(table), _) => {
                    for (name, text, digest) in levels(storage, table, &sizes)? {
                        if let Some(roles) = roles.get_mut(&digest) {
                            roles.levels.insert((name, text));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(RolesOfInputs(roles))
    }
}

/// Returns the different texts of a table's points whose contents have one of these sizes, each with its name and the digest of these
/// contents.
pub(super) fn levels(
    storage: &Storage,
    table: &ResultName,
    sizes: &HashSet<u64>,
) -> Result<Vec<(String, String, Digest)>, StorageError> {
    // A text is hashed once for each column, and only if it has the size of wanted contents.
    let mut seen: Vec<HashMap<String, Digest>> = Vec::new();
    let header = storage.tables().read_recipe(table, |row| {
        seen.resize_with(row.values.len().max(seen.len()), HashMap::new);
        for (seen, text) in seen.iter_mut().zip(row.values) {
            if sizes.contains(&(text.len() as u64 + 1)) && !seen.contains_key(&text) {
                let digest = Digest::of(format!("{text}\n").as_bytes());
                seen.insert(text, digest);
            }
        }
    })?;
    let names = header.map(|header| header.names).unwrap_or_default();
    let levels = names.into_iter().zip(seen).flat_map(|(name, texts)| {
        texts.into_iter().map(move |(text, digest)| (name.clone(), text, digest))
    });
    Ok(levels.collect())
}
