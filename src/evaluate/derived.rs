//! Values that are derived without a call: Git trees, and members of directories. Each is made once, as soon as
//! that is known which it is derived from.

use std::sync::{Arc, PoisonError};

use super::{Evaluation, TreeValues, ValueError};
use crate::plan::{Derivation, Derived, DerivedId, Source};
use crate::storage::{Input, MemberError, OpenedValue, StorageError, Stored};
use crate::task::name::MemberPath;

/// A derived value.
#[derive(Debug)]
pub(super) enum DerivedValue {
    /// A Git tree and its commit.
    Tree(TreeValues),
    /// A file or directory within a directory.
    Member(Input),
}

impl Evaluation {
    /// Makes all derived values among these sources, as far as that is known which they are derived from. With
    /// `store`, they are stored.
    ///
    /// # Errors
    ///
    /// Fails, each time, with the first one that cannot be made.
    pub fn derive(
        &self,
        sources: impl Iterator<Item = Source>,
        store: bool,
    ) -> Result<(), Arc<ValueError>> {
        for source in sources {
            // A value may be derived from another derived one.
            let mut chain = Vec::new();
            let mut next = Some(source);
            while let Some(Source::Derived { value, .. }) = next {
                chain.push(value);
                next = self.plan.value(value).from;
            }
            for value in chain.into_iter().rev() {
                self.derive_one(value, store)?;
            }
        }
        Ok(())
    }

    /// A derived value, or why there is none. `None` as long as nothing wanted it.
    pub(super) fn derived_value(
        &self,
        value: DerivedId,
    ) -> Option<Result<&DerivedValue, &ValueError>> {
        Some(self.derived[value.index()].get()?.as_ref().map_err(|error| &**error))
    }

    /// The file or directory of a derived source.
    pub(super) fn derived_input(&self, value: DerivedId, number: u8) -> Option<&Input> {
        match self.derived_value(value)?.ok()? {
            DerivedValue::Tree(values) => values.files.get(usize::from(number)),
            DerivedValue::Member(input) => Some(input),
        }
    }

    /// Whether a derived value is known, or why it will never be.
    pub fn is_derived(&self, value: DerivedId) -> bool {
        self.derived[value.index()].get().is_some()
    }

    fn derive_one(&self, id: DerivedId, store: bool) -> Result<(), Arc<ValueError>> {
        let known = &self.derived[id.index()];
        if known.get().is_none() {
            let Derived { how, from } = self.plan.value(id);
            let made = match how {
                Derivation::Tree(tree) => {
                    let made = self.make_tree(*tree, *from, store);
                    made.map(|made| made.map(DerivedValue::Tree))
                }
                Derivation::Member(path) => {
                    let made = from.and_then(|from| self.member(from, path));
                    made.map(|made| made.map(DerivedValue::Member))
                }
            };
            // A source that is not known now may never be.
            let Some(made) = made else { return Ok(()) };
            known.get_or_init(|| made.map_err(Arc::new));
        }
        match known.get() {
            Some(Err(error)) => Err(Arc::clone(error)),
            _ => Ok(()),
        }
    }

    /// Finds a member of a directory; `None` if that is not known, and may never be.
    fn member(&self, from: Source, path: &MemberPath) -> Option<Result<Input, ValueError>> {
        let directory = match from {
            // In a dry run, an input is not stored.
            Source::Input(id) => self.files.inputs[id.index()].file.clone(),
            _ => self.stored(from)?,
        };
        let find = || {
            let opened = self.opened(from, directory)?;
            Ok(Input { file: self.storage.member(&opened, path)?, there: self.is_there(from) })
        };
        Some(find().map_err(|error| match error {
            MemberError::Storage(error) => ValueError::Storage(error),
            error => ValueError::Member(error),
        }))
    }

    /// Opens a directory of which members are read, once.
    fn opened(&self, from: Source, directory: Stored) -> Result<Arc<OpenedValue>, StorageError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = opened.get(&directory.name) {
            return Ok(Arc::clone(known));
        }
        let name = directory.name.clone();
        let value = match from {
            Source::Input(id) if !self.is_there(from) && directory.digest.is_directory() => {
                let source = self.files.given.get(id.index()).and_then(Option::as_ref);
                let manifest = source.map(|it| self.storage.inputs().manifest(it)).transpose()?;
                self.storage.open_future(directory, manifest.unwrap_or_default())
            }
            _ => self.storage.open_value(&directory)?,
        };
        let value = Arc::new(value);
        opened.insert(name, Arc::clone(&value));
        Ok(value)
    }
}
