//! Tables: the outputs of sweeps, named by their recipes.
//!
//! The bytes of a table depend on its recipe only, so no lease is needed: two runs at once publish the same. The file
//! with the recipe comes first, and claims the name. Then come the table and the directory, each whole under its name,
//! and the record last. The next run uses the files of a killed one if they are right, and else moves them to
//! quarantine.
//!
//! The directory of a table has the outputs that it was made from, under the names of their points, as hard links to the
//! originals. It depends on the contents of the outputs only: an output that is a file is not executable in it.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use super::call_lookup::{Damage, Outputs};
use super::{Storage, Stored};
use crate::disk::{EarlierDirectory, Result, Root, StorageError, ValueMetadata};
use crate::paths::{COLLECTED, DIGITS, Digits, Entry, ResultName};
use crate::records::{
    Defect, LongText, Published, RecipeError, RecipeHeader, RecipeReader, RecipeRow, RecordState,
    Stamp, TableRecord,
};
use ce_files::manifest::{EntryKind, Manifest, ManifestEntry};
use ce_model::digest::Digest;

/// The number of attempts to put a file in its place while others change it.
const MAX_ATTEMPTS: usize = 10;

/// The result of looking up a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundTable {
    /// All requested parts of it.
    Hit(Outputs),
    /// It is missing or incomplete.
    Absent {
        /// The name under which it will be published, unless another table takes it first.
        name: ResultName,
        /// Unusable remains, if there are any.
        damage: Option<Damage>,
    },
}

/// The state of the files under the name of a table.
enum TableState {
    /// The table with this recipe, complete.
    Hit(Outputs),
    /// Another table, whose recipe has the same digits.
    Collision,
    /// No table that can be used as it is.
    Vacant(Option<Damage>),
}

/// The files of a table in a private directory, which is removed with them.
struct TableStage<'a> {
    root: &'a Root,
    room: PathBuf,
    recipe: Published,
    outputs: Vec<Published>,
}

/// The tables of a storage.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    pub(super) storage: &'a Storage,
}

impl<'a> Tables<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Looks for the table with this recipe, and on request for the directory of its outputs.
    ///
    /// Only the record is read: the recipe is compared by its digest.
    pub fn find(&self, recipe: &LongText<'_>, with_directory: bool) -> Result<FoundTable> {
        let digest = recipe.digest();
        let names = DIGITS.map(|digits| ResultName::of_recipe(digest, digits));
        self.storage.gc_roots().announce(names.iter().map(ResultName::short))?;
        let mut absent = None;
        for name in names {
            match self.state(&name, digest, with_directory)? {
                TableState::Hit(outputs) => return Ok(FoundTable::Hit(outputs)),
                TableState::Collision => {}
                // The table may have its long name although the other one with the short name is gone.
                TableState::Vacant(damage) => {
                    absent.get_or_insert(FoundTable::Absent { name, damage });
                }
            }
        }
        absent.ok_or_else(|| self.collision(digest))
    }

    /// Makes a table visible under the name of its recipe, with the directory of its outputs, if given. Returns the visible
    /// ones: another run may have been faster.
    ///
    /// They are durable after the next [`Storage::flush`].
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written, an output was changed meanwhile, or two members of the directory
    /// have one path.
    pub fn publish(
        &self,
        recipe: &LongText<'_>,
        table: &LongText<'_>,
        directory: Option<&TableDirectory>,
    ) -> Result<Outputs> {
        if let FoundTable::Hit(outputs) = self.find(recipe, directory.is_some())? {
            return Ok(outputs);
        }
        let stage = self.stage(recipe, table, directory)?;
        let _one_at_a_time = self.storage.hasher.publishing();
        for digits in DIGITS {
            let name = ResultName::of_recipe(recipe.digest(), digits);
            if let Some(recipe) = self.claim(&stage, &name, digits)? {
                let mut outputs = Vec::with_capacity(stage.outputs.len());
                for (number, output) in stage.outputs.iter().enumerate() {
                    outputs.push(self.reveal(&stage, &name, number, output)?);
                }
                return self.record(name, recipe, &outputs);
            }
        }
        Err(self.collision(recipe.digest()))
    }

    /// Reads the recipe of a table, and calls a function with each row. Returns the rules of the table; `None` if the
    /// recipe is missing or damaged, which may show after some rows.
    pub fn read_recipe(
        &self,
        name: &ResultName,
        mut each: impl FnMut(RecipeRow),
    ) -> Result<Option<RecipeHeader>> {
        let path = self.storage.path(&name.recipe());
        let Some(text) = self.storage.root.disk.lines(&path)? else { return Ok(None) };
        let read = RecipeReader::begin(text).and_then(|mut reader| {
            reader.try_for_each(|row| row.map(&mut each))?;
            Ok(reader.header().clone())
        });
        match read {
            Ok(header) => Ok(Some(header)),
            Err(RecipeError::Read(source)) => Err(StorageError::Io { doing: "read", path, source }),
            Err(RecipeError::Line { .. } | RecipeError::Version(_)) => Ok(None),
        }
    }

    /// Reads the rows of a table as they are there, line by line, without comparing them with the record. Returns
    /// whether the file exists.
    pub fn read_lines(&self, name: &ResultName, mut each: impl FnMut(&[u8])) -> Result<bool> {
        let path = self.storage.path(&name.output(0));
        let Some(text) = self.storage.root.disk.lines(&path)? else { return Ok(false) };
        for line in text.split(b'\n') {
            each(&line.map_err(|source| StorageError::Io {
                doing: "read",
                path: path.clone(),
                source,
            })?);
        }
        Ok(true)
    }

    fn collision(&self, recipe: &Digest) -> StorageError {
        let name = ResultName::of_recipe(recipe, Digits::Full);
        StorageError::Collision(self.storage.path(&name.record()))
    }

    fn state(
        &self,
        name: &ResultName,
        recipe: &Digest,
        with_directory: bool,
    ) -> Result<TableState> {
        let damage = |file: String, defect: Defect| {
            Ok(TableState::Vacant(Some(Damage { file, what: defect.to_string() })))
        };
        let record = match self.storage.records().read_at::<TableRecord>(&name.record())? {
            Some((_, Some(record))) => record,
            Some((_, None)) => return damage(name.record(), Defect::Spoiled),
            None => return Ok(TableState::Vacant(None)),
        };
        if record.recipe.digest != *recipe {
            return if Entry::Table(name.clone()).fits_table(&record) {
                Ok(TableState::Collision)
            } else {
                damage(name.record(), Defect::Misplaced)
            };
        }
        let wanted = 1 + usize::from(with_directory);
        let Some(outputs) = record.outputs.get(..wanted) else {
            return Ok(TableState::Vacant(None));
        };
        let files = outputs.iter().enumerate().map(|(number, file)| (name.output(number), file));
        for (file, published) in files.chain([(name.recipe(), &record.recipe)]) {
            if !self.storage.values().is_published(&file, published)? {
                let Storage { root, hasher, .. } = self.storage;
                let defect = Defect::of_value(root, &file, &published.digest, &hasher.stop)?;
                return match defect.unwrap_or(Defect::Contents) {
                    // A deleted file is not damage: the user wants it made again.
                    Defect::Missing | Defect::Archived => Ok(TableState::Vacant(None)),
                    defect => damage(file, defect),
                };
            }
        }
        Ok(TableState::Hit(Outputs { name: name.clone(), files: outputs.into() }))
    }

    /// Writes the files of a table into a private directory.
    fn stage(
        &self,
        recipe: &LongText<'_>,
        table: &LongText<'_>,
        directory: Option<&TableDirectory>,
    ) -> Result<TableStage<'a>> {
        let root = &self.storage.root;
        let room = root.private_path()?;
        let recipe_file = Published { digest: *recipe.digest(), stamp: Stamp::Unknown };
        let mut stage = TableStage { root, room, recipe: recipe_file, outputs: Vec::new() };
        root.disk.make_dir(&stage.room)?;
        stage.recipe = stage.text("recipe", recipe)?;
        let table = stage.text("00", table)?;
        stage.outputs.push(table);
        if let Some(directory) = directory {
            stage.outputs.push(self.gather(directory, &stage.path("01"))?);
            root.sync_all()?;
        }
        Ok(stage)
    }

    /// Puts the recipe in its place, and so claims the name. Returns the file that is there; `None` if
    /// the name belongs to another table.
    fn claim(
        &self,
        stage: &TableStage<'_>,
        name: &ResultName,
        digits: Digits,
    ) -> Result<Option<Published>> {
        let root = &self.storage.root;
        if let TableState::Collision = self.state(name, &stage.recipe.digest, false)? {
            return Ok(None);
        }
        for _ in 0..MAX_ATTEMPTS {
            let place = self.place(&name.recipe())?;
            if root.disk.rename_new(&stage.path("recipe"), &place)? {
                root.unsynced.note_entry(&place);
                return Ok(Some(stage.recipe));
            }
            match self.found(&place)? {
                Some(found) if found.digest == stage.recipe.digest => return Ok(Some(found)),
                Some(found) if *name == ResultName::of_recipe(&found.digest, digits) => {
                    return Ok(None);
                }
                _ => self.set_aside(name, &place, "recipe")?,
            }
        }
        Err(StorageError::Unsteady(root.path(&name.recipe())))
    }

    /// Moves an output to its place, unless the same is there already. Returns the existing entry.
    fn reveal(
        &self,
        stage: &TableStage<'_>,
        name: &ResultName,
        number: usize,
        staged: &Published,
    ) -> Result<Published> {
        let root = &self.storage.root;
        let part = format!("{number:02}");
        for _ in 0..MAX_ATTEMPTS {
            let place = self.place(&name.output(number))?;
            let moved = root.disk.rename_new(&stage.path(&part), &place)?;
            let found = if moved { Some(*staged) } else { self.found(&place)? };
            if let Some(found) = found.filter(|found| found.digest == staged.digest) {
                if found.digest.is_directory() {
                    root.disk.seal_top(&place)?;
                }
                root.unsynced.note_entry(&place);
                return Ok(found);
            }
            self.set_aside(name, &place, &part)?;
        }
        Err(StorageError::Unsteady(root.path(&name.output(number))))
    }

    /// Makes the directory for a file of a table, also if it was there before and was removed since. Returns the path of
    /// the file.
    fn place(&self, file: &str) -> Result<PathBuf> {
        let root = &self.storage.root;
        let place = root.place(file)?;
        root.disk.make_dirs(place.parent().unwrap_or(&place))?;
        Ok(place)
    }

    /// Returns the value at a path, read to its end; `None` if it does not exist.
    fn found(&self, place: &Path) -> Result<Option<Published>> {
        let Storage { root, hasher, .. } = self.storage;
        match root.disk.see(place, &hasher.stop) {
            Ok(None | Some(ValueMetadata::Other)) | Err(StorageError::Directory { .. }) => Ok(None),
            Ok(Some(seen)) => hasher.stored_value(&root.disk, place, &seen).map(Some),
            Err(error) => Err(error),
        }
    }

    /// Moves the entry in the place of a part of a table to quarantine.
    fn set_aside(&self, name: &ResultName, place: &Path, part: &str) -> Result<()> {
        let root = &self.storage.root;
        root.disk.rename(place, &root.quarantine_place(&name.quarantine(), part)?).map(drop)
    }

    /// Records a table whose files are in their places.
    fn record(
        &self,
        name: ResultName,
        recipe: Published,
        outputs: &[Published],
    ) -> Result<Outputs> {
        let root = &self.storage.root;
        let files = outputs.into();
        let read = self.storage.records().read::<TableRecord>(&name.record())?;
        // If there was no record, another run may have written the same record meanwhile.
        let is_wrong = match &read {
            RecordState::Valid(known) => known.recipe.digest != recipe.digest,
            RecordState::Spoiled => true,
            RecordState::Absent => false,
        };
        let known = read.ok().filter(|_| !is_wrong);
        let place = root.place(&name.record())?;
        if is_wrong {
            let kept = root.quarantine_place(&name.quarantine(), "record.json")?;
            root.disk.quarantine(&place, &kept)?;
        }
        // A directory that another run has recorded stays.
        let more = known.iter().flat_map(|known| known.outputs.iter().skip(outputs.len())).copied();
        let outputs: Vec<Published> = outputs.iter().copied().chain(more).collect();
        if known.is_none_or(|known| known.recipe != recipe || known.outputs != outputs) {
            self.storage.records().put(&name.record(), &TableRecord::now(recipe, outputs))?;
        }
        root.disk.remove(&root.path(&name.record_in(COLLECTED)))?;
        Ok(Outputs { name, files })
    }
}

impl TableStage<'_> {
    fn path(&self, part: &str) -> PathBuf {
        self.room.join(part)
    }

    /// Writes a file, and makes it read-only and durable.
    fn text(&self, part: &str, text: &LongText<'_>) -> Result<Published> {
        let path = self.path(part);
        self.root.disk.write_by(&path, |out| text.write(out))?;
        let stamp = Stamp::Modified(self.root.disk.seal(&path)?);
        self.root.sync(&path)?;
        Ok(Published { digest: *text.digest(), stamp })
    }
}

impl Drop for TableStage<'_> {
    fn drop(&mut self) {
        // The private directory of the run is removed at its end.
        drop(self.root.disk.remove_tree(&self.room));
    }
}

/// A file of a directory, which is not executable.
fn file_entry(path: &str, contents: Digest) -> ManifestEntry<Digest> {
    let kind = EntryKind::File { contents, executable: false };
    ManifestEntry { path: path.as_bytes().into(), kind }
}

/// The file with the points.
const POINTS: &str = "points.ndjson";

/// The rights to write and to execute a file.
const CHANGING: u32 = 0o333;

/// The contents of the directory of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDirectory {
    /// The contents of its file `points.ndjson`.
    pub points: Vec<u8>,
    /// The outputs, each with its path in the directory. All paths are different, and none leads through
    /// another one.
    pub members: Vec<(String, Stored)>,
}

impl Tables<'_> {
    /// Returns the digest that the directory of a table would have. Does not read the files.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read, a directory in it is gone, or two members have one path.
    pub fn directory_digest(&self, directory: &TableDirectory) -> Result<Digest> {
        Ok(self.gathered(directory)?.digest())
    }

    /// Returns the manifest that the directory of a table would have.
    fn gathered(&self, directory: &TableDirectory) -> Result<Manifest> {
        let mut entries = vec![file_entry(POINTS, Digest::hash_bytes(&directory.points))];
        for (path, value) in &directory.members {
            if !value.digest.is_directory() {
                entries.push(file_entry(path, value.digest));
                continue;
            }
            let inner = self.manifest(value)?;
            if inner.entries().is_empty() {
                entries
                    .push(ManifestEntry { path: path.as_bytes().into(), kind: EntryKind::Empty });
            }
            entries.extend(inner.entries().iter().map(|entry| ManifestEntry {
                path: [path.as_bytes(), b"/", &entry.path].concat().into(),
                kind: entry.kind.clone(),
            }));
        }
        Manifest::new(entries).map_err(|source| StorageError::Gathered(Box::new(source)))
    }

    fn manifest(&self, value: &Stored) -> Result<Manifest> {
        let manifest = self.storage.values().manifest(&value.name, &value.digest)?;
        manifest.ok_or_else(|| self.changed(value))
    }

    fn changed(&self, value: &Stored) -> StorageError {
        StorageError::Changed(self.storage.path(&value.name))
    }

    /// Makes the directory of a table at a private path, all but its top read-only.
    pub(super) fn gather(&self, directory: &TableDirectory, to: &Path) -> Result<Published> {
        let Storage { root, hasher, .. } = self.storage;
        let manifest = self.gathered(directory)?;
        root.disk.make_dir(to)?;
        let points = to.join(POINTS);
        root.disk.write(&points, &directory.points)?;
        root.disk.seal(&points)?;
        for (path, value) in &directory.members {
            self.storage.inputs().go_on()?;
            let to = to.join(path);
            root.disk.make_dirs(to.parent().unwrap_or(&to))?;
            if value.digest.is_directory() {
                self.share_directory(value, &to)?;
            } else {
                self.share_file(value, &to)?;
            }
        }
        root.disk.seal_trusted(to)?;
        let scan = root.disk.surely(|| root.disk.scan(to, &hasher.stop))?;
        let scan = scan.ok_or_else(|| StorageError::Moved(to.to_owned()))?;
        let digest = manifest.digest();
        root.keep_manifest(&digest, &manifest)?;
        Ok(Published { digest, stamp: Stamp::Scanned(scan.stamp()) })
    }

    /// Gives a file of the storage another name. It is copied where that is not possible, or if it could be
    /// changed or executed through that name.
    fn share_file(&self, value: &Stored, to: &Path) -> Result<()> {
        let disk = &self.storage.root.disk;
        let (from, id) = self.storage.inputs().verify_unchanged(value)?;
        let metadata = disk.metadata(&from)?.ok_or_else(|| self.changed(value))?;
        let same = if metadata.mode() & CHANGING == 0 && disk.link(&from, to).unwrap_or(false) {
            disk.id(to)? == Some(id)
        } else {
            let copy =
                disk.reading_until(&from, &self.storage.hasher.stop)?.copy_as(disk, to, 0)?;
            disk.seal(to)?;
            copy == value.digest
        };
        if same { Ok(()) } else { Err(self.changed(value)) }
    }

    /// Copies a directory of the storage. Its files become links to files of the original where that is possible.
    fn share_directory(&self, value: &Stored, to: &Path) -> Result<()> {
        let Storage { root, hasher, .. } = self.storage;
        let (from, _) = self.storage.inputs().verify_unchanged(value)?;
        let scan = root.disk.surely(|| root.disk.scan(&from, &hasher.stop))?;
        let scan = scan.ok_or_else(|| self.changed(value))?.linked();
        let manifest = self.manifest(value)?;
        let earlier = EarlierDirectory { path: &from, manifest: &manifest };
        let (stop, done) = (&*hasher.stop, &AtomicU64::new(0));
        let copy = root.disk.copy_sharing(&scan, &manifest, earlier, to, stop, done)?;
        if copy.digest() == value.digest { Ok(()) } else { Err(self.changed(value)) }
    }
}
