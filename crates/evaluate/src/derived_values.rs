//! Values that are derived without a call: Git trees, and members of directories. Each is made once, as soon as
//! that is known which it is derived from.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::{Evaluation, TreeValues, ValueError};
use ce_model::name::{MemberPath, TaskPath};
use ce_model::plan::{Derivation, Derived, DerivedId, Source};
use ce_model::sweep;
use ce_model::task::FileContents;
use ce_storage::{
    Input, InputSource, MemberError, OpenedValue, StorageError, Stored, split_member,
};

/// A derived value.
#[derive(Debug)]
pub(super) enum DerivedValue {
    /// A Git tree and its commit.
    Tree(TreeValues),
    /// A file or directory: within a directory, or one that is written, or of the task.
    File(Input),
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
        Some(self.derived.get(value.index())?.get()?.as_ref().map_err(|error| &**error))
    }

    /// The file or directory of a derived source.
    pub(super) fn derived_input(&self, value: DerivedId, number: u8) -> Option<&Input> {
        match self.derived_value(value)?.ok()? {
            DerivedValue::Tree(values) => values.files.get(usize::from(number)),
            DerivedValue::File(input) => Some(input),
        }
    }

    /// Whether a derived value is known, or why it will never be.
    pub fn is_derived(&self, value: DerivedId) -> bool {
        self.derived.get(value.index()).is_some_and(|value| value.get().is_some())
    }

    fn derive_one(&self, id: DerivedId, store: bool) -> Result<(), Arc<ValueError>> {
        let known = &self.derived[id.index()];
        if known.get().is_none() {
            let Derived { how, from } = self.plan.value(id);
            let made = match how {
                Derivation::Tree(tree, name) => {
                    let made = self.make_tree(*tree, name.as_ref(), (*from, store));
                    made.map(|made| made.map(DerivedValue::Tree))
                }
                Derivation::Member(path) => {
                    let made = from.and_then(|from| self.member(from, path));
                    made.map(|made| made.map(DerivedValue::File))
                }
                Derivation::Literal(name) => {
                    let file = split_member(name.as_str()).0.to_owned();
                    let announced = self.storage.announce_roots([file]);
                    let found =
                        announced.and_then(|()| self.storage.inputs().literal(name.as_str()));
                    let found = found.map_err(ValueError::from).and_then(|file| match file {
                        Some(file) => Ok(DerivedValue::File(Input { file, there: true })),
                        None => Err(ValueError::NoLiteral(name.to_string())),
                    });
                    Some(found)
                }
                Derivation::Text(_)
                | Derivation::Points(_)
                | Derivation::File(_)
                | Derivation::Wrong(_) => Some(self.written(how, store)),
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

    /// Stores or finds a file whose contents are known without any other value.
    fn written(&self, how: &Derivation, store: bool) -> Result<DerivedValue, ValueError> {
        let source = self.written_source(how)?;
        let inputs = self.storage.inputs();
        let input = if store { inputs.store(&source) } else { inputs.find(&source) };
        Ok(DerivedValue::File(input?))
    }

    /// The contents of a file that is derived from no other value.
    pub(super) fn written_source(&self, how: &Derivation) -> Result<InputSource, ValueError> {
        match how {
            Derivation::Text(text) => Ok(InputSource::Bytes(format!("{text}\n").into_bytes())),
            Derivation::Points(points) => {
                let product = &self.task.sweeps[points.index()].product;
                // Loading the task has checked that there are some.
                let points = sweep::points(product).unwrap_or_default();
                let mut contents = Vec::new();
                // Writing to memory never fails.
                drop(points.write_ndjson(&mut contents));
                Ok(InputSource::Bytes(contents))
            }
            Derivation::File(path) => self.later_file(path),
            Derivation::Wrong(wrong) => Err(ValueError::Wrong(wrong.clone())),
            Derivation::Tree(..) | Derivation::Member(_) | Derivation::Literal(_) => {
                debug_assert!(false, "it is derived from a value, or from the storage");
                Ok(InputSource::Bytes(Vec::new()))
            }
        }
    }

    /// Finds a file of the task whose path depends on a point.
    fn later_file(&self, path: &TaskPath) -> Result<InputSource, ValueError> {
        let contents = self.later.find(path);
        let error = |fault| ValueError::OwnFile { path: path.to_string(), fault };
        match contents.map_err(|fault| error(fault.into()))? {
            FileContents::Blob(id) => Ok(InputSource::Bytes(self.later.blob(&id).map_err(error)?)),
            FileContents::Uncommitted(path) => {
                self.is_changed.store(true, Ordering::Relaxed);
                Ok(InputSource::File(path))
            }
            FileContents::Unbound => Err(error("its path is not known".into())),
        }
    }

    /// Finds a member of a directory; `None` if that is not known, and may never be.
    fn member(&self, from: Source, path: &MemberPath) -> Option<Result<Input, ValueError>> {
        let directory = match from {
            // In a dry run, an input is not stored.
            Source::Input(id) => self.files.inputs[id.index()].as_ref()?.file.clone(),
            _ => self.stored(from).or_else(|| self.archived(from))?,
        };
        let find = || {
            let opened = self.opened(from, directory)?;
            Ok(Input {
                file: self.storage.values().member(&opened, path)?,
                there: self.is_there(from),
            })
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
                self.storage.values().open_future(directory, manifest.unwrap_or_default())
            }
            _ if self.is_archived(from) => self.storage.values().open_archived(directory)?,
            _ => self.storage.values().open_value(&directory)?,
        };
        let value = Arc::new(value);
        opened.insert(name, Arc::clone(&value));
        Ok(value)
    }
}
