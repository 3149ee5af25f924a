//! The names of files of a package.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;

use super::{POINTS, Subject};
use ce_git::{TreeFileKind, Trees};
use ce_model::digest::ObjectId;
use ce_model::sweep::SWEEP_OUTPUTS;
use ce_model::text_file;
use ce_storage::{Entry, Record, Storage};

/// The paths of a package that are taken.
#[derive(Debug, Default)]
pub(super) struct Places(HashSet<String>);

impl Places {
    /// Keeps a path free for something else.
    pub(super) fn reserve(&mut self, path: &str) {
        self.0.insert(path.to_owned());
    }

    /// Takes a path, or else the first free one of others.
    pub(super) fn take(&mut self, wanted: String, other: impl Fn(usize) -> String) -> String {
        let mut path = wanted;
        let mut turn = 0;
        while !self.0.insert(path.clone()) {
            path = other(turn);
            turn += 1;
        }
        path
    }
}

/// The names of outputs: as the computation has them, in the storage or in the repository of the current directory.
#[derive(Debug)]
pub(super) struct OutputNames<'a> {
    storage: &'a Storage,
    repository: Trees,
    known: HashMap<ObjectId, Option<Vec<String>>>,
}

impl<'a> OutputNames<'a> {
    pub(super) fn new(storage: &'a Storage) -> Self {
        Self { storage, repository: Trees::new(Path::new(".")), known: HashMap::new() }
    }

    /// The name of an output of a result, or its number if the name is not known.
    pub(super) fn of(&mut self, result: Subject<'_>, number: usize) -> String {
        let name = match (result.entry, result.record) {
            (Entry::Call(call), Record::Call(record)) => {
                let (storage, repository) = (self.storage, &self.repository);
                let names = self.known.entry(record.tree.clone()).or_insert_with(|| {
                    storage.output_names(call).or_else(|| names_in(repository, &record.tree))
                });
                let names = names.as_ref().filter(|it| it.len() == record.outputs.len());
                names.and_then(|names| names.get(number).cloned())
            }
            (Entry::Table(_), Record::Table(record)) => Some(match number {
                0 => format!("{}.ndjson", SWEEP_OUTPUTS[0]),
                1 if record.outputs.len() > 1 => POINTS.to_owned(),
                _ => "recipe.ndjson".to_owned(),
            }),
            _ => None,
        };
        name.unwrap_or_else(|| format!("{number:02}"))
    }
}

/// The names of outputs that a Git tree of a computation has, if the repository has the tree.
fn names_in(repository: &Trees, tree: &ObjectId) -> Option<Vec<String>> {
    let found = Mutex::new(None);
    let read = repository.files(tree, &|file| {
        if file.path == Path::new("outputs")
            && let TreeFileKind::Plain(contents) | TreeFileKind::Executable(contents) = file.kind
        {
            *found.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(contents);
        }
        Ok(())
    });
    read.ok()?;
    let contents = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?;
    Some(text_file::lines(&contents).ok()?.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_once() {
        let mut places = Places::default();
        places.reserve("README.md");
        let mut take = |name: &str| places.take(name.to_owned(), |turn| format!("{turn}-{name}"));
        assert_eq!(["a", "README.md", "a", "a"].map(&mut take), ["a", "0-README.md", "0-a", "1-a"]);
    }
}
