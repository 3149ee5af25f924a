//! The files that a record promises: digests, stamps, and comparison with the files of the storage.
//!
//! Directories have one name only. So an output of a job, or one that was taken over from another commit, is a symbolic link
//! to the directory of the call that made it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};

use serde::{Deserialize, Serialize};

use super::{CallRecord, InputRecord, Record, TableRecord};
use crate::disk::{Result, Root, StorageError};
use crate::paths::{
    DIGITS, Entry, ResultName, archive_name, is_stage, is_users_file, linked, manifest,
    split_member, task_input, waiting,
};
use ce_files::manifest::{DirectoryArchive, Manifest};
use ce_model::digest::{Blake3, Digest};

/// A kind of damage, or of harmless oddity, in the storage.
#[derive(Debug, thiserror::Error)]
pub enum Defect {
    /// A recorded file does not exist.
    #[error("it is missing")]
    Missing,
    /// Something other than a file stands where a file belongs.
    #[error("it is not a file")]
    NotAFile,
    /// Something other than a directory stands where a directory belongs.
    #[error("it is not a directory")]
    NotADirectory,
    /// A file has grown or been cut.
    #[error("it has {found} bytes, and {recorded} are recorded")]
    Size {
        /// The size of the file, in bytes.
        found: u64,
        /// The recorded size, in bytes.
        recorded: u64,
    },
    /// Something in a directory is not as recorded.
    #[error("it is not the recorded directory: {0}")]
    Entries(String),
    /// A file has the right size and other contents.
    #[error("its contents are not the recorded ones")]
    Contents,
    /// A record cannot be parsed.
    #[error("the record cannot be understood")]
    Spoiled,
    /// A record does not fit its name.
    #[error("the record belongs to another name")]
    Misplaced,
    /// Outputs were adopted, and `--strict` refuses adopted outputs.
    #[error("it was adopted, and not executed")]
    Adopted,
    /// A tree was trusted, and `--strict` does not.
    #[error("it was taken over from another commit without isolation, and not executed")]
    TrustedTree,
    /// A symbolic link stands in the place of a directory. It is never followed.
    #[error("it is a symbolic link in the place of a directory")]
    Link,
    /// A file or record cannot be read.
    #[error("{}", with_cause(.0))]
    Unreadable(#[source] StorageError),
    /// A file of the ledger is not named by its contents.
    #[error("its name is not the hash of its contents, so it is not evidence")]
    Forged,
    /// The record of a suspended call cannot be understood. The next run continues it.
    #[error("the record of the suspended call cannot be understood; the next run writes it again")]
    SpoiledSuspension,
    /// A suspended call is not in the index of them.
    #[error("the index does not have this suspended call; --repair restores it")]
    Unindexed,
    /// A directory is in its archive only, as in a clone that no run has used: harmless.
    #[error("it is in its archive only; a run that needs it unpacks it (harmless)")]
    Archived,
    /// A recorded file is deliberately not here: no damage.
    #[error("it is away: known, and not here")]
    Away,
    /// A result without a record is marked as away: harmless.
    #[error("it marks outputs without a record as away (harmless)")]
    Marker,
    /// A file has no record: harmless.
    #[error("it has no record (harmless)")]
    Orphan,
    /// The private directory of a run that has ended: harmless.
    #[error("left behind by a run that is gone (harmless)")]
    Leftover,
    /// The lease of a run that has ended: harmless.
    #[error("a lease of a run that is gone (harmless)")]
    Lease,
}

impl Defect {
    /// Whether a result is damaged.
    pub const fn is_harm(&self) -> bool {
        !matches!(
            self,
            Self::Archived
                | Self::Away
                | Self::Marker
                | Self::Orphan
                | Self::Leftover
                | Self::Lease
        )
    }

    /// Whether moving the result to quarantine helps. An unreadable file may be intact.
    pub const fn is_repairable(&self) -> bool {
        self.is_harm() && !matches!(self, Self::Unreadable(_) | Self::Link)
    }

    /// Reads a value to its end. Returns its damage, if any.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read, or if `stop` was set meanwhile.
    pub(crate) fn of_value(
        root: &Root,
        name: &str,
        digest: &Digest,
        stop: &AtomicBool,
    ) -> Result<Option<Self>> {
        if digest.is_directory() {
            Self::of_directory(root, name, digest, stop)
        } else {
            Self::of_file(root, name, digest, stop)
        }
    }

    fn of_file(
        root: &Root,
        name: &str,
        digest: &Digest,
        stop: &AtomicBool,
    ) -> Result<Option<Self>> {
        let path = root.path(name);
        let Some(metadata) = root.disk.look_anew(&path, || root.disk.metadata(&path))? else {
            return Ok(Some(Self::Missing));
        };
        if !metadata.is_file() {
            return Ok(Some(Self::NotAFile));
        }
        let (found, recorded) = (metadata.len(), digest.size);
        if found != recorded {
            return Ok(Some(Self::Size { found, recorded }));
        }
        let found = root.disk.read_whole(|| root.disk.reading_until(&path, stop)?.digest())?;
        Ok((found != *digest).then_some(Self::Contents))
    }

    fn of_directory(
        root: &Root,
        name: &str,
        digest: &Digest,
        stop: &AtomicBool,
    ) -> Result<Option<Self>> {
        let path = root.value(name, digest)?;
        match root.disk.look_anew(&path, || root.disk.metadata(&path))? {
            Some(metadata) if metadata.is_dir() => {}
            Some(_) => return Ok(Some(Self::NotADirectory)),
            None => {
                let is_archived = root.archive(digest)?.is_some();
                return Ok(Some(if is_archived { Self::Archived } else { Self::Missing }));
            }
        }
        let found = match root.read_manifest(name, stop) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(Some(Self::Missing)),
            Err(StorageError::Directory { source, .. }) => {
                return Ok(Some(Self::Entries(source.to_string())));
            }
            Err(error) => return Err(error),
        };
        if found.digest() == *digest {
            return Ok(None);
        }
        let recorded = root.manifest(digest)?;
        Ok(Some(recorded.map_or(Self::Contents, |it| Self::Entries(differences(&it, &found)))))
    }
}

fn with_cause(error: &StorageError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// The check was stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckStopped;

/// An entry in the storage, and its damage.
#[derive(Debug)]
pub struct Finding {
    /// The name, relative to the storage.
    pub name: String,
    /// The damage.
    pub defect: Defect,
}

/// A file that a record promises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedFile {
    /// Its name, relative to the storage.
    pub name: String,
    pub digest: Digest,
    /// Its name in the stage, from where it may not have been moved yet.
    pub(crate) waiting: Option<String>,
}

impl ExpectedFile {
    /// The same contents under another name.
    #[must_use]
    pub fn named(&self, name: String) -> Self {
        Self { name, digest: self.digest, waiting: None }
    }
}

impl Record {
    /// The contents of its file of this number, if it promises one. The recipe of a table follows its outputs.
    pub fn digest(&self, number: usize) -> Option<&Digest> {
        match self {
            Self::Call(call) => call.outputs.get(number).map(|output| &output.digest),
            Self::Job(job) => job.outputs.get(number).map(|output| &output.digest),
            Self::Table(table) => {
                table.outputs.iter().chain([&table.recipe]).nth(number).map(|file| &file.digest)
            }
            Self::TaskInput(input) => Some(&input.file.digest).filter(|_| number == 0),
        }
    }

    /// The contents of all files that it promises, in order.
    pub fn digests(&self) -> impl Iterator<Item = &Digest> {
        (0..).map_while(|number| self.digest(number))
    }

    /// The same as a list.
    pub fn outputs(&self) -> Vec<Digest> {
        self.digests().copied().collect()
    }

    /// The literals that a job reads, and that users keep in the storage for themselves: files and directories that are
    /// not results.
    pub fn literals(&self) -> Vec<ExpectedFile> {
        let Self::Job(job) = self else { return Vec::new() };
        let literals = job.literals.iter().flatten();
        let own = literals.filter(|it| is_users_file(&it.file));
        own.map(|it| ExpectedFile { name: it.file.clone(), digest: it.digest, waiting: None })
            .collect()
    }
}

/// An output of a job that no call of it has made: a text, a file or a tree of the task, points, a member, the directory of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnOutput {
    /// The file of the job.
    pub file: ExpectedFile,
    /// The name under which the job has it, if it is a task input's: it identifies only the contents.
    pub input: Option<String>,
}

impl Entry {
    /// The outputs of a job that no call of it has made, and no table is.
    pub fn own_outputs(&self, record: &Record) -> Vec<OwnOutput> {
        let Record::Job(job) = record else { return Vec::new() };
        let own = job.outputs.iter().enumerate().filter(|(_, output)| {
            let whole = split_member(&output.file).1.is_none();
            match Self::of_file(&output.file) {
                Some(Self::Call(_)) => !whole,
                Some(entry @ Self::Table(_)) => output.file != entry.file(0),
                Some(Self::Job(_) | Self::TaskInput(_)) | None => true,
            }
        });
        own.map(|(number, output)| {
            let mut names = DIGITS.into_iter().map(|digits| task_input(&output.digest, digits));
            OwnOutput {
                file: self.expected_file(record, number, output.digest),
                input: names.find(|name| *name == output.file),
            }
        })
        .collect()
    }

    /// The files that its record promises.
    pub fn expected_files(&self, record: &Record) -> Vec<ExpectedFile> {
        let files = record.digests().enumerate();
        let files = files.map(|(number, digest)| self.expected_file(record, number, *digest));
        let mut files: Vec<ExpectedFile> = files.collect();
        // A verification keeps the files of millions of records.
        files.shrink_to_fit();
        files
    }

    /// The file of this number, which its record promises with this digest.
    pub fn expected_file(&self, record: &Record, number: usize, digest: Digest) -> ExpectedFile {
        let stage = match record {
            Record::Call(call) => call.origin.stage().filter(|stage| is_stage(stage)),
            Record::Job(_) | Record::Table(_) | Record::TaskInput(_) => None,
        };
        let waiting = stage.map(|stage| waiting(stage, number));
        ExpectedFile { name: self.name_of_file(record, number), digest, waiting }
    }

    /// The name of the file of this number. The recipe of a table follows its outputs.
    pub fn name_of_file(&self, record: &Record, number: usize) -> String {
        match (self, record) {
            (Self::Table(name), Record::Table(table)) if number == table.outputs.len() => {
                name.recipe()
            }
            _ => self.file(number),
        }
    }

    /// Whether a record belongs to this name.
    pub fn fits(&self, record: &Record) -> bool {
        match (self, record) {
            (Self::Call(_), Record::Call(call)) => self.fits_call(call),
            (Self::Job(name), Record::Job(job)) => {
                let inputs: Vec<Digest> = job.inputs.iter().map(|input| input.digest).collect();
                job.version().directories().iter().any(|it| name.is_of(it, &inputs))
            }
            (Self::Table(_), Record::Table(table)) => self.fits_table(table),
            (Self::TaskInput(_), Record::TaskInput(InputRecord { file, .. })) => {
                DIGITS.into_iter().any(|digits| self.file(0) == task_input(&file.digest, digits))
            }
            _ => false,
        }
    }

    /// Whether the record of a table belongs to this name.
    pub(crate) fn fits_table(&self, table: &TableRecord) -> bool {
        let Self::Table(name) = self else { return false };
        let recipe = &table.recipe.digest;
        DIGITS.into_iter().any(|digits| *name == ResultName::of_recipe(recipe, digits))
    }

    /// Whether the record of a call belongs to this name.
    pub fn fits_call(&self, call: &CallRecord) -> bool {
        let Self::Call(name) = self else { return false };
        call.version().directories().iter().any(|it| name.is_of(it, &call.inputs))
    }
}

/// A value that was published, and the stamp that it had.
///
/// A value with another stamp is read and hashed again before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PublishedFields", into = "PublishedFields")]
pub struct Published {
    pub digest: Digest,
    pub stamp: Stamp,
}

/// The state of a value that can be compared without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stamp {
    /// The time of the last write to a file, in nanoseconds since 1970.
    Modified(i64),
    /// The stamp of a directory: see [`Scan::stamp`](ce_files::manifest::Scan::stamp).
    Scanned(Blake3),
    /// The state is unknown, as of a value in a results repository: Git keeps no times.
    Unknown,
}

/// A published value in a record.
#[derive(Serialize, Deserialize)]
struct PublishedFields {
    #[serde(flatten)]
    digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modified_ns: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stamp: Option<Blake3>,
}

impl From<PublishedFields> for Published {
    fn from(PublishedFields { digest, modified_ns, stamp }: PublishedFields) -> Self {
        let scanned = stamp.map(Stamp::Scanned);
        let stamp = modified_ns.map(Stamp::Modified).or(scanned).unwrap_or(Stamp::Unknown);
        Self { digest, stamp }
    }
}

impl From<Published> for PublishedFields {
    fn from(Published { digest, stamp }: Published) -> Self {
        let (modified_ns, stamp) = match stamp {
            Stamp::Modified(modified_ns) => (Some(modified_ns), None),
            Stamp::Scanned(stamp) => (None, Some(stamp)),
            Stamp::Unknown => (None, None),
        };
        Self { digest, modified_ns, stamp }
    }
}

impl Root {
    /// Returns the name of the value itself: that which a link with this name leads to, or the name.
    pub(crate) fn maker(&self, name: &str) -> Result<String> {
        let target = self.disk.link_target(&self.path(name))?;
        let maker = target.as_ref().and_then(|it| linked(name, it.to_str()?));
        Ok(maker.unwrap_or(name).to_owned())
    }

    /// Returns the path of a value. It is not a link, unless another program has put one there.
    pub(crate) fn value(&self, name: &str, digest: &Digest) -> Result<PathBuf> {
        // Files are found by one look. They never are links.
        if digest.is_directory() { Ok(self.path(&self.maker(name)?)) } else { Ok(self.path(name)) }
    }

    /// Keeps the manifest of a directory, so that the directory need not be read for it.
    pub(crate) fn keep_manifest(&self, digest: &Digest, contents: &Manifest) -> Result<()> {
        let name = manifest(digest);
        if self.disk.exists(&self.path(&name))? {
            return Ok(());
        }
        let mut text = Vec::new();
        // Writing to memory cannot fail.
        drop(contents.write(&mut text));
        let private = self.private_path()?;
        self.disk.write_sealed(&private, &text, 0o444)?;
        let place = self.place(&name)?;
        self.disk.rename(&private, &place)?;
        self.unsynced.note_new(&place);
        Ok(())
    }

    /// Returns the manifest of a directory if the storage has it.
    pub(crate) fn manifest(&self, digest: &Digest) -> Result<Option<Manifest>> {
        let Some(text) = self.disk.read(&self.path(&manifest(digest)))? else { return Ok(None) };
        let parsed = Manifest::parse(&text).ok();
        Ok(parsed.filter(|manifest| manifest.digest() == *digest))
    }

    /// Reads the archive of a directory, if the storage is a clone of a results repository and has it.
    pub(crate) fn archive(&self, digest: &Digest) -> Result<Option<Vec<u8>>> {
        let path = self.path(&archive_name(digest));
        match self.disk.metadata(&path) {
            Ok(Some(metadata))
                if metadata.is_file() && metadata.len() == DirectoryArchive::size(digest) => {}
            Err(error) if !error.is_foreign() => return Err(error),
            _ => return Ok(None),
        }
        let archive = self.disk.read(&path)?;
        Ok(archive.filter(|archive| DirectoryArchive::parse(archive, digest).is_some()))
    }

    /// Reads a directory, and returns its manifest. `None` if there is no such directory.
    pub(crate) fn read_manifest(&self, name: &str, stop: &AtomicBool) -> Result<Option<Manifest>> {
        let path = self.path(&self.maker(name)?);
        let Some(scan) = self.disk.scan(&path, stop)? else { return Ok(None) };
        let read = scan.linked().read(stop, &AtomicU64::new(0));
        read.map(Some).map_err(|error| StorageError::of_directory(&path, error))
    }
}

/// The largest number of differences that are named.
const NAMED: usize = 5;

/// Lists the first few differences of a directory from its record.
pub(crate) fn differences(recorded: &Manifest, found: &Manifest) -> String {
    let all = recorded.differences(found);
    let named: Vec<String> = all.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match all.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    named.join(", ") + &more
}
