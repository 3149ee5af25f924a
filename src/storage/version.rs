//! Versions of computations, and which directory holds the results of which.
//!
//! Names show twelve digits of a commit. Two computations of one name may have the same commit, in two
//! tasks of one repository, and two commits the same digits. So a directory belongs to one version,
//! the first that came: its file `version.json` says which. Every other version has a longer name.

use std::sync::Arc;
#[cfg(test)]
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::find::Read;
use super::record::{CallRecord, Format, Provenance};
use super::scheme::RECORDS;
use super::{Result, Storage, StorageError, lock};
use crate::digest::ObjectId;
use crate::name::ComputationName;

/// A version of a computation: everything but its inputs that a result depends on.
#[derive(Clone, Copy, Debug)]
pub struct ComputationVersion<'a> {
    /// The name of the computation.
    pub computation: &'a ComputationName,
    /// The commit that holds it, or that it was changed from.
    pub commit: &'a ObjectId,
    /// The Git tree of its directory.
    pub tree: &'a ObjectId,
    /// The tree is not the commit's.
    pub dirty: bool,
}

impl PartialEq for ComputationVersion<'_> {
    /// What is not committed is known by its tree alone.
    fn eq(&self, other: &Self) -> bool {
        self.computation == other.computation
            && self.dirty == other.dirty
            && self.tree == other.tree
            && (self.dirty || self.commit == other.commit)
    }
}

/// What says which version a directory belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VersionRecord {
    /// How to read this record.
    pub format: Format,
    /// The computation.
    pub computation: ComputationName,
    /// The commit that holds it.
    pub commit: ObjectId,
    /// The Git tree of its directory.
    pub tree: ObjectId,
    /// The tree is not the commit's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dirty: bool,
    /// Who came first.
    pub recorded: Provenance,
}

/// Whatever says which version it is of.
pub(super) trait OfVersion {
    /// The version.
    fn version(&self) -> ComputationVersion<'_>;
}

macro_rules! of_version {
    ($($record:ident)+) => {$(
        impl OfVersion for $record {
            fn version(&self) -> ComputationVersion<'_> {
                let Self { computation, commit, tree, dirty, .. } = self;
                ComputationVersion { computation, commit, tree, dirty: *dirty }
            }
        }
    )+};
}

of_version! { CallRecord VersionRecord }

/// How often a directory is looked for that others take.
const MAX_ATTEMPTS: usize = 10;

/// How many records are read that do not tell whose directory they are in.
const MAX_RECORDS_READ: usize = 100;

/// The file that says which version a directory belongs to.
const OWNER: &str = "version.json";

impl ComputationVersion<'_> {
    /// The directories that may hold its results, in the order in which they are tried. The first is
    /// the specification's.
    pub fn directories(self) -> Vec<String> {
        let Self { computation, commit, tree, dirty } = self;
        let names = if dirty {
            vec![format!("dirty-{}", tree.short()), format!("dirty-{}", tree.full())]
        } else {
            vec![
                commit.short().to_owned(),
                format!("{}-{}", commit.short(), tree.short()),
                format!("{}-{}", commit.full(), tree.full()),
            ]
        };
        names.into_iter().map(|name| format!("c_{computation}/{name}")).collect()
    }

    /// Whether a directory of this name may hold its results.
    pub(super) fn may_be_in(self, directory: &str) -> bool {
        self.directories().iter().any(|it| it == directory)
    }

    /// The record that a directory belongs to it.
    fn record(self, recorded: Provenance) -> VersionRecord {
        VersionRecord {
            format: Format,
            computation: self.computation.clone(),
            commit: self.commit.clone(),
            tree: self.tree.clone(),
            dirty: self.dirty,
            recorded,
        }
    }

    /// What it is known by within a run.
    fn key(self) -> String {
        let Self { computation, commit, tree, dirty } = self;
        let commit = if dirty { "dirty" } else { commit.full() };
        [computation.as_str(), commit, tree.full()].join("/")
    }
}

impl Storage {
    /// Returns the directory that holds, or is to hold, the results of a version. In a storage that
    /// can be written it belongs to that version from now on.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub(super) fn directory_of_version(&self, version: ComputationVersion<'_>) -> Result<Arc<str>> {
        let key = version.key();
        if let Some(known) = lock(&self.owned).get(&key) {
            return Ok(Arc::clone(known));
        }
        for _ in 0..MAX_ATTEMPTS {
            let Some(directory) = self.find_directory(version)? else { continue };
            let directory: Arc<str> = directory.into();
            lock(&self.owned).insert(key, Arc::clone(&directory));
            return Ok(directory);
        }
        // Full names collide only if SHA-1 does in all its digits.
        let last = version.directories().pop().unwrap_or_default();
        Err(StorageError::Collision(self.path(&last)))
    }

    /// Returns the directory of a version: its own, or else one that is nobody's, which is taken.
    /// `None` if somebody else was faster, or none is left.
    fn find_directory(&self, version: ComputationVersion<'_>) -> Result<Option<String>> {
        let mut free = None;
        for (at, directory) in version.directories().into_iter().enumerate() {
            match self.owns(&directory, version)? {
                Some(true) => return Ok(Some(directory)),
                Some(false) => {}
                // A longer name says which tree it is of, even if nothing else does.
                None if at > 0 && self.disk.exists(&self.path(&directory))? => {
                    free = Some(directory);
                    break;
                }
                None => free = free.or(Some(directory)),
            }
        }
        let Some(directory) = free else { return Ok(None) };
        Ok(self.take_directory(&directory, version)?.then_some(directory))
    }

    /// Whether a directory belongs to a version; `None` if it is nobody's.
    fn owns(&self, directory: &str, version: ComputationVersion<'_>) -> Result<Option<bool>> {
        let owner: Read<VersionRecord> = self.record(&format!("{directory}/{OWNER}"))?;
        match owner.ok().filter(|owner| owner.version().may_be_in(directory)) {
            Some(owner) => Ok(Some(owner.version() == version)),
            None => self.recorded_calls_are_of(directory, version),
        }
    }

    /// Makes a directory that is nobody's belong to a version, if anything can be written. Returns
    /// false if somebody else was faster.
    fn take_directory(&self, directory: &str, version: ComputationVersion<'_>) -> Result<bool> {
        if !self.writable {
            return Ok(true);
        }
        let (place, record) = (format!("{directory}/{OWNER}"), version.record(self.provenance()));
        // What says nothing, or tells of another directory, gives way.
        let taken = match self.record::<VersionRecord>(&place)? {
            Read::Absent => self.put_new_record(&place, &record),
            Read::Record(owner) if owner.version().may_be_in(directory) => return Ok(false),
            Read::Record(_) | Read::Spoiled => self.put_record(&place, &record).map(|()| true),
        };
        // Where this cannot be written, nothing else can, and that is told then.
        Ok(taken.unwrap_or(true))
    }

    /// Whether the results in a directory are of a version; `None` if there are none. Only that tells
    /// it in a storage of an earlier version of this program.
    fn recorded_calls_are_of(
        &self,
        directory: &str,
        version: ComputationVersion<'_>,
    ) -> Result<Option<bool>> {
        let (mut owns, mut seen) = (None, 0);
        self.disk.find_file(&self.path(&format!("{directory}/{RECORDS}")), |path| {
            // What cannot be read, or only by a newer version, tells nothing.
            let text = self.disk.read(path).ok().flatten().unwrap_or_default();
            let record: Option<CallRecord> = serde_json::from_slice(&text).ok();
            let record = record.filter(|record| record.version().may_be_in(directory));
            owns = record.map(|record| record.version() == version);
            seen += 1;
            owns.is_some() || seen == MAX_RECORDS_READ
        })?;
        // Where nothing can be told, each record is judged by itself.
        Ok(owns.or((seen > 0).then_some(true)))
    }
}

#[cfg(test)]
impl ComputationVersion<'static> {
    /// The version of a computation `copy`, for tests.
    pub(super) fn example() -> Self {
        static COPY: LazyLock<(ComputationName, [ObjectId; 2])> = LazyLock::new(|| {
            let ids = ["0", "1"].map(|digit| digit.repeat(40).parse().unwrap());
            ("copy".parse().unwrap(), ids)
        });
        let (computation, [commit, tree]) = &*COPY;
        Self { computation, commit, tree, dirty: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Durability, Unrecorded};

    /// An id of forty digits that begins and ends so.
    fn id(begin: &str, end: char) -> ObjectId {
        format!("{begin}{}", end.to_string().repeat(40 - begin.len())).parse().unwrap()
    }

    fn version<'a>(
        commit: &'a ObjectId,
        tree: &'a ObjectId,
        dirty: bool,
    ) -> ComputationVersion<'a> {
        ComputationVersion { commit, tree, dirty, ..ComputationVersion::example() }
    }

    /// The directory that a version has in a storage that is opened anew.
    fn directory(dir: &std::path::Path, version: ComputationVersion<'_>) -> String {
        let storage = Storage::open(dir, Unrecorded::Adopt, Durability::Unsynced).unwrap();
        storage.directory_of_version(version).unwrap().to_string()
    }

    #[test]
    fn versions_that_agree_in_twelve_digits_have_directories_of_their_own() {
        const TWELVE: &str = "0123456789ab";
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (id(TWELVE, '1'), id(TWELVE, '2'));
        let (tree, twin) = (id("aaaaaaaaaaaa", '1'), id("aaaaaaaaaaaa", '2'));
        let clean = [(&one, &tree), (&other, &tree), (&one, &twin), (&other, &twin)];
        let clean = clean.map(|(commit, tree)| version(commit, tree, false));
        let expected = [
            format!("c_copy/{TWELVE}"),
            format!("c_copy/{TWELVE}-aaaaaaaaaaaa"),
            format!("c_copy/{}-{}", one.full(), twin.full()),
            format!("c_copy/{}-{}", other.full(), twin.full()),
        ];
        // Whoever comes later, and in any order, finds what the first ones have left.
        for _ in 0..2 {
            for (&version, expected) in clean.iter().zip(&expected) {
                assert_eq!(directory(dir.path(), version), *expected);
            }
            for (&version, expected) in clean.iter().zip(&expected).rev() {
                assert_eq!(directory(dir.path(), version), *expected);
            }
        }
        let dirty = [(&one, &tree), (&other, &tree), (&one, &twin)];
        let dirty = dirty.map(|(commit, tree)| version(commit, tree, true));
        let names = dirty.map(|version| directory(dir.path(), version));
        let full = format!("c_copy/dirty-{}", twin.full());
        let short = "c_copy/dirty-aaaaaaaaaaaa".to_owned();
        assert_eq!(names, [short.clone(), short, full], "the commit does not count");
    }

    #[test]
    fn an_owner_that_does_not_fit_its_directory_gives_way() {
        let dir = tempfile::tempdir().unwrap();
        let (commit, tree) = (id("1", '1'), id("a", 'a'));
        let own = version(&commit, &tree, false);
        let other = id("2", '2');
        let elsewhere = version(&other, &tree, false);
        let name = directory(dir.path(), own);
        let theirs = directory(dir.path(), elsewhere);
        let owner = |directory: &str| dir.path().join(directory).join(OWNER);
        for spoiled in [std::fs::read(owner(&theirs)).unwrap(), b"{}".to_vec(), Vec::new()] {
            std::fs::write(owner(&name), spoiled).unwrap();
            assert_eq!(directory(dir.path(), own), name);
            let text = std::fs::read_to_string(owner(&name)).unwrap();
            assert!(text.contains(commit.full()), "{text}");
        }
    }

    #[test]
    fn looking_takes_no_directory() {
        let dir = tempfile::tempdir().unwrap();
        let (commit, tree) = (id("1", '1'), id("a", 'a'));
        let own = version(&commit, &tree, false);
        let storage = Storage::inspect(dir.path(), Unrecorded::Adopt).unwrap();
        let directory = storage.directory_of_version(own).unwrap();
        assert_eq!(&*directory, "c_copy/111111111111");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
