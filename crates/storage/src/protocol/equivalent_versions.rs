//! Versions of computations, the directories of their results, and equivalent results and failures of other commits.
//!
//! Names have twelve digits of a commit. Two computations of one name may have the same commit, in
//! two tasks of one repository, and two commits may share these digits. So a directory belongs to
//! one version, the first that used it, which its file `version.json` names. Every other version
//! has a longer name.
//!
//! A commit that does not touch a computation costs nothing. Each version of a computation is
//! listed under the tree of its directory, so equivalents are found without a search of the
//! storage. Isolated executions are taken over, since they could read nothing else; others if the
//! user trusts the tree.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::SystemTime;

use ce_files::cache::FileStat;
use ce_model::digest::Digest;
use ce_model::shared_text::SharedText;

use super::call_lookup::{Call, CallState, Outputs};
use super::stage::{Sealed, Stage};
use super::takeover::{OutputLocation, Takeover, VersionlessCall, choose_result};
use super::{Storage, Unrecorded};
use crate::disk::{Result, Root, StorageError, lock};
use crate::paths::{
    ComputationVersion, DIGITS, FAILED, OWNER, RECORDS, ResultName, link_to, note, notes, waiting,
};
use crate::records::{
    CallRecord, FailureRecord, Published, RecordState, Records, Stamp, VersionRecord,
};

/// The number of attempts to find a directory while others take them.
const MAX_ATTEMPTS: usize = 10;

/// The greatest number of records that are read to find the owner of a directory.
const MAX_RECORDS_READ: usize = 100;

/// The number of other versions, the newest, in which each call is looked for by its name. All names in older versions are
/// read once.
const NEWEST: usize = 16;

/// The directories of versions that this run has found.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// The directory of each version, by its key.
    directories: Mutex<HashMap<String, SharedText>>,
    /// The versions with results of a tree, by the directory that lists them.
    of_trees: Mutex<HashMap<String, ListedVersions>>,
}

/// The versions with results of a tree.
#[derive(Debug)]
struct ListedVersions {
    versions: Arc<TreeVersions>,
    /// The stat of the directory, and when it was taken.
    listed: (Option<FileStat>, SystemTime),
}

/// The directories of the versions with results of a tree, the newest first.
#[derive(Debug, Default)]
pub(super) struct TreeVersions {
    directories: Vec<String>,
    /// The records of results in the older ones, once one was looked for.
    results: OnceLock<OlderRecords>,
    /// The same for failures.
    failures: OnceLock<OlderRecords>,
}

/// The numbers of the directories that have a record, by the name of its file.
type OlderRecords = HashMap<Box<str>, Vec<u32>>;

impl TreeVersions {
    /// The results that a call may have, the newest version first. Results in `own` are left out.
    fn results<'v>(
        &'v self,
        root: &'v Root,
        inputs: &'v [Digest],
        own: &'v str,
    ) -> impl Iterator<Item = ResultName> + 'v {
        self.names([RECORDS, own], inputs, move || {
            self.results.get_or_init(|| self.older(root, RECORDS))
        })
    }

    /// The failures that it may have, in the same order.
    fn failures<'v>(
        &'v self,
        root: &'v Root,
        inputs: &'v [Digest],
        own: &'v str,
    ) -> impl Iterator<Item = ResultName> + 'v {
        self.names([FAILED, own], inputs, move || {
            self.failures.get_or_init(|| self.older(root, FAILED))
        })
    }

    /// The names that a call may have in the newest directories, and the names that it has in older ones.
    fn names<'v>(
        &'v self,
        [room, own]: [&'v str; 2],
        inputs: &'v [Digest],
        older: impl FnOnce() -> &'v OlderRecords + 'v,
    ) -> impl Iterator<Item = ResultName> + 'v {
        let newest = self.directories.iter().take(NEWEST).flat_map(move |directory| {
            DIGITS.map(|digits| ResultName::new(directory.as_str(), inputs, digits))
        });
        let older = (self.directories.len() > NEWEST).then_some(older);
        let older = older.into_iter().flat_map(move |older| {
            let older = older();
            let mut names = Vec::new();
            for digits in DIGITS {
                let file = ResultName::new("", inputs, digits).record_in(room);
                let file = file.rsplit('/').next().unwrap_or_default();
                let places = older.get(file).into_iter().flatten();
                names.extend(places.map(|at| (*at, digits)));
            }
            // Each version has a call under one name.
            names.sort_unstable_by_key(|(at, _)| *at);
            names.into_iter().map(move |(at, digits)| {
                ResultName::new(self.directories[at as usize].as_str(), inputs, digits)
            })
        });
        newest.chain(older).filter(move |name| name.directory() != own)
    }

    /// Reads the names of all records in a room of the older directories. A directory that cannot be read has none.
    fn older(&self, root: &Root, room: &str) -> OlderRecords {
        let mut records = OlderRecords::new();
        for (at, directory) in (0..).zip(&self.directories).skip(NEWEST) {
            for name in root.own_names(&format!("{directory}/{room}")).unwrap_or_default() {
                records.entry(name.into()).or_default().push(at);
            }
        }
        records
    }
}

impl Versions {
    /// Returns the directory for the results of a version. In a writable storage it belongs to that
    /// version from now on.
    pub(super) fn directory(
        &self,
        root: &Root,
        version: ComputationVersion<'_>,
    ) -> Result<SharedText> {
        let key = version.key();
        if let Some(known) = lock(&self.directories).get(&key) {
            return Ok(known.clone());
        }
        for _ in 0..MAX_ATTEMPTS {
            let Some(directory) = Self::find_directory(root, version)? else { continue };
            let directory: SharedText = directory.into();
            lock(&self.directories).insert(key, directory.clone());
            return Ok(directory);
        }
        // Full names collide only if SHA-1 does in all its digits.
        let last = version.directories().pop().unwrap_or_default();
        Err(StorageError::Collision(root.path(&last)))
    }

    /// Returns the directory of a version: its own, or else a free one, which is taken. `None` if another run was
    /// faster, or no directory is free.
    fn find_directory(root: &Root, version: ComputationVersion<'_>) -> Result<Option<String>> {
        let mut free = None;
        for (at, directory) in version.directories().into_iter().enumerate() {
            match Self::owns(root, &directory, version)? {
                Some(true) => return Ok(Some(directory)),
                Some(false) => {}
                // A longer name contains the tree, so an existing directory is the version's even
                // without an owner.
                None if at > 0 && root.disk.exists(&root.path(&directory))? => {
                    free = Some(directory);
                    break;
                }
                None => free = free.or(Some(directory)),
            }
        }
        let Some(directory) = free else { return Ok(None) };
        Ok(Self::take_directory(root, &directory, version)?.then_some(directory))
    }

    /// Whether a directory belongs to a version; `None` if it is free.
    fn owns(root: &Root, directory: &str, version: ComputationVersion<'_>) -> Result<Option<bool>> {
        let owner: RecordState<VersionRecord> =
            Records::new(root).read(&format!("{directory}/{OWNER}"))?;
        match owner.ok().filter(|owner| owner.version().may_be_in(directory)) {
            Some(owner) => Ok(Some(owner.version() == version)),
            None => Self::recorded_calls_are_of(root, directory, version),
        }
    }

    /// Takes a free directory for a version, if the storage is writable. Returns false if another
    /// run was faster.
    fn take_directory(
        root: &Root,
        directory: &str,
        version: ComputationVersion<'_>,
    ) -> Result<bool> {
        if !root.writable {
            return Ok(true);
        }
        let place = format!("{directory}/{OWNER}");
        let record = VersionRecord::now(version);
        // A spoiled owner, or one of another directory, is replaced.
        let taken = match Records::new(root).read::<VersionRecord>(&place)? {
            RecordState::Absent => Records::new(root).put_new(&place, &record),
            RecordState::Valid(owner) if owner.version().may_be_in(directory) => return Ok(false),
            RecordState::Valid(_) | RecordState::Spoiled => {
                Records::new(root).put(&place, &record).map(|()| true)
            }
        };
        // If this cannot be written, nothing else can, and that is reported then.
        Ok(taken.unwrap_or(true))
    }

    /// Whether the results in a directory are of a version; `None` if there are no results. Storages of earlier
    /// versions of this program have no `version.json`.
    fn recorded_calls_are_of(
        root: &Root,
        directory: &str,
        version: ComputationVersion<'_>,
    ) -> Result<Option<bool>> {
        let mut owns = None;
        let mut seen = 0;
        root.disk.visit_files(&root.path(&format!("{directory}/{RECORDS}")), |path| {
            // Skips unreadable records, and records of newer versions of this program.
            let text = root.disk.read(path).ok().flatten().unwrap_or_default();
            owns = serde_json::from_slice::<CallRecord>(&text)
                .ok()
                .filter(|record| record.version().may_be_in(directory))
                .map(|record| record.version() == version);
            seen += 1;
            owns.is_some() || seen == MAX_RECORDS_READ
        })?;
        // If the owner remains unknown, each record is checked by itself.
        Ok(owns.or((seen > 0).then_some(true)))
    }

    /// Clears the cached versions of a computation's tree: there is another one now.
    pub(super) fn forget(&self, version: ComputationVersion<'_>) {
        lock(&self.of_trees).remove(&notes(version.computation, version.tree));
    }

    /// Clears the cached versions of a computation's tree, unless it is certain that there is no new one.
    pub(super) fn refresh(&self, root: &Root, version: ComputationVersion<'_>) {
        let directory = notes(version.computation, version.tree);
        let Some((stat, taken)) = lock(&self.of_trees).get(&directory).map(|it| it.listed) else {
            return;
        };
        if stat.is_some_and(|stat| stat.is_racy(taken))
            || root.disk.directory_stat(&root.path(&directory)).ok() != Some(stat)
        {
            lock(&self.of_trees).remove(&directory);
        }
    }

    /// Returns the versions with results of a computation's tree, the newest first.
    pub(super) fn of_tree(
        &self,
        root: &Root,
        version: ComputationVersion<'_>,
    ) -> Result<Arc<TreeVersions>> {
        let directory = notes(version.computation, version.tree);
        if let Some(known) = lock(&self.of_trees).get(&directory) {
            return Ok(Arc::clone(&known.versions));
        }
        let taken = SystemTime::now();
        let stat = root.disk.directory_stat(&root.path(&directory))?;
        let mut versions = Vec::new();
        for path in root.disk.list(&root.path(&directory))? {
            let name = path.file_name().and_then(|name| name.to_str());
            // A version that was removed meanwhile has no results.
            if let (Some(name), Some(metadata)) = (name, root.disk.metadata(&path)?) {
                versions.push((Reverse(metadata.modified_ns()), name.to_owned()));
            }
        }
        versions.sort_unstable();
        let computation = version.computation;
        let directories = versions.into_iter().map(|(_, name)| format!("c_{computation}/{name}"));
        let versions =
            Arc::new(TreeVersions { directories: directories.collect(), ..Default::default() });
        let listed = ListedVersions { versions: Arc::clone(&versions), listed: (stat, taken) };
        lock(&self.of_trees).insert(directory, listed);
        Ok(versions)
    }
}

/// A result of the same call under another version.
#[derive(Debug)]
pub struct Equivalent {
    pub outputs: Outputs,
    /// The location of these. Only outputs that are here can be taken over. The digests of other inputs are known.
    pub whereabouts: OutputLocation,
    record: CallRecord,
}

impl Equivalent {
    /// Whether it can be taken over.
    pub fn is_here(&self) -> bool {
        self.whereabouts == OutputLocation::Here
    }

    /// Whether outputs of it are deliberately not here.
    pub fn is_away(&self) -> bool {
        self.whereabouts == OutputLocation::Away
    }
}

/// Results and failures of other commits that stand for a call's own.
#[derive(Clone, Copy, Debug)]
pub struct Equivalents<'a> {
    storage: &'a Storage,
}

impl<'a> Equivalents<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Looks for a result of the same call under another version of the same tree: one that is here, or else archived,
    /// or else away. An unreadable result is skipped, since the call can be executed.
    pub fn find_equivalent(&self, call: Call<'_>) -> Result<Option<Equivalent>> {
        let (own, versions) = self.versions(call)?;
        let names = versions.results(&self.storage.root, call.inputs, &own);
        let sources = names.filter_map(|name| self.source(&name, call).ok().flatten());
        Ok(choose_result(sources, |it| it.whereabouts))
    }

    /// Looks for a failure of the same call under another version of the same tree. Like a result it counts only if the
    /// execution was isolated. Returns it with its name. An unreadable one is skipped, since the call can be executed.
    pub fn find_equivalent_failure(
        &self,
        call: Call<'_>,
    ) -> Result<Option<(ResultName, FailureRecord)>> {
        let (own, versions) = self.versions(call)?;
        let mut names = versions.failures(&self.storage.root, call.inputs, &own);
        Ok(names.find_map(|name| {
            let failure =
                self.storage.records().read::<FailureRecord>(&name.record_in(FAILED)).ok()?.ok()?;
            let is_same = failure.computation == *call.version.computation
                && failure.tree.as_ref() == Some(call.version.tree)
                && failure.inputs == call.inputs;
            (failure.is_isolated() && is_same).then_some((name, failure))
        }))
    }

    /// Returns the directory of a call's version, and the versions with results of the same tree.
    fn versions(&self, call: Call<'_>) -> Result<(SharedText, Arc<TreeVersions>)> {
        let own = self.storage.versions.directory(&self.storage.root, call.version)?;
        let versions = self.storage.versions.of_tree(&self.storage.root, call.version);
        Ok((own, versions.unwrap_or_default()))
    }

    /// The directories of the versions with results of a computation's tree, the newest first, as they are looked through.
    pub fn directories(&self, version: ComputationVersion<'_>) -> Vec<String> {
        let versions = self.storage.versions.of_tree(&self.storage.root, version);
        versions.map_or_else(|_| Vec::new(), |it| it.directories.clone())
    }

    /// Looks for results of other versions anew, the next time.
    pub fn forget_versions(&self, version: ComputationVersion<'_>) {
        self.storage.versions.forget(version);
    }

    /// Looks for results of other versions that may have been published since the last look.
    pub fn refresh_versions(&self, version: ComputationVersion<'_>) {
        self.storage.versions.refresh(&self.storage.root, version);
    }

    /// Whether an execution serves all versions of its tree, isolated or not.
    pub fn trusts_trees(&self) -> bool {
        self.takeover() == Takeover::Tree
    }

    /// The results that this run takes over.
    fn takeover(&self) -> Takeover {
        match self.storage.unrecorded {
            Unrecorded::Adopt => self.storage.takeover,
            Unrecorded::Refuse => Takeover::Isolated,
        }
    }

    /// Returns a result under the name of another version, if it is equivalent to a call's.
    fn source(&self, name: &ResultName, call: Call<'_>) -> Result<Option<Equivalent>> {
        let Some(record) = self.storage.records().read::<CallRecord>(&name.record())?.ok() else {
            return Ok(None);
        };
        let theirs = Call { version: record.version(), ..call };
        let wanted = VersionlessCall {
            computation: call.version.computation,
            tree: call.version.tree,
            inputs: call.inputs,
        };
        if !self.takeover().serves(&record, wanted) || !theirs.version.may_be_in(name.directory()) {
            return Ok(None);
        }
        let (outputs, whereabouts) = match self.storage.calls().state(name, theirs)? {
            CallState::Hit(outputs) => (outputs, OutputLocation::Here),
            // Nothing would record that a tree was trusted.
            _ if !record.origin.is_isolated() => return Ok(None),
            CallState::Archived(outputs) => (outputs, OutputLocation::Archived),
            CallState::Away(_, outputs) => (outputs, OutputLocation::Away),
            _ => return Ok(None),
        };
        Ok(Some(Equivalent { outputs, whereabouts, record }))
    }

    /// Lists the version of a result under its tree. A failure only costs executions.
    pub(crate) fn note_version(&self, version: ComputationVersion<'_>, result: &ResultName) {
        let name = note(version.computation, version.tree, result);
        let path = self.storage.path(&name);
        if self.storage.root.first_made(&path) && self.storage.root.place(&name).is_ok() {
            drop(self.storage.root.disk.write(&path, b""));
        }
    }

    /// The name of the file that lists the version of a result under its tree.
    pub fn note_of(&self, result: &ResultName, record: &CallRecord) -> String {
        note(&record.computation, &record.tree, result)
    }

    /// Removes a version without results from the list under its tree.
    pub(crate) fn forget_version(&self, name: &ResultName, record: &CallRecord) -> Result<()> {
        if !self.storage.root.disk.is_empty(&self.storage.path(&name.room_itself(RECORDS)))? {
            return Ok(());
        }
        let note = note(&record.computation, &record.tree, name);
        match self.storage.root.disk.remove(&self.storage.path(&note)) {
            Err(error) if error.is_foreign() => Ok(()),
            removed => removed,
        }
    }

    /// Takes over a result for a call: makes links to its outputs, and a record that names it.
    ///
    /// Returns `None` if it does not exist any more, or cannot be read.
    pub fn take_over(&self, call: Call<'_>, source: &Equivalent) -> Result<Option<Sealed<'a>>> {
        match self.link_source(call, source) {
            Err(error) if error.is_about(&self.storage.path(source.outputs.name.directory())) => {
                Ok(None)
            }
            taken => taken,
        }
    }

    fn link_source(&self, call: Call<'_>, source: &Equivalent) -> Result<Option<Sealed<'a>>> {
        if !self.keeps(source)? {
            return Ok(None);
        }
        let stage = Stage::new(self.storage, source.record.outputs.len())?;
        let from = self.original(source)?;
        let Some(origin) = source.record.origin.of_take_over(&stage.name, from) else {
            return Ok(None);
        };
        let mut outputs = Vec::with_capacity(source.record.outputs.len());
        for (number, output) in source.record.outputs.iter().enumerate() {
            let from = source.outputs.name.output(number);
            let Some(output) =
                take_one(self.storage, &from, &waiting(&stage.name, number), output)?
            else {
                return Ok(None);
            };
            if !output.digest.is_directory() {
                self.storage.root.unsynced.note(&stage.output(number));
            }
            outputs.push(output);
        }
        // The log is not necessary.
        let log = self.storage.path(&source.outputs.name.log());
        if self.storage.root.disk.exists(&log).unwrap_or(false) {
            self.storage.root.disk.remove(&stage.log())?;
            match self.storage.root.disk.link_or_copy(&log, &stage.log()) {
                Err(error) if error.may_not_write() || error.is_about(&log) => {
                    self.storage.root.disk.remove(&stage.log())?;
                }
                linked => drop(linked?),
            }
        }
        stage.write_record(&call.record(outputs.clone(), origin))?;
        Ok(Some(Sealed { stage, files: outputs.into() }))
    }
}

impl<'a> Equivalents<'a> {
    /// Whether a result serves all versions of the same tree: its execution could not depend on anything else, or is trusted
    /// not to.
    pub fn serves_tree(&self, record: &CallRecord) -> bool {
        self.takeover().serves_tree(record)
    }

    /// Returns the short name of the result that was executed: the source, or the one that it was taken over from itself.
    fn original(&self, source: &Equivalent) -> Result<String> {
        if let Some(original) = source.record.origin.taken_over()
            && let Some(name) = ResultName::of_short(original)
            && let Some(record) = self.storage.records().read::<CallRecord>(&name.record())?.ok()
            && VersionlessCall::from_record(&record) == VersionlessCall::from_record(&source.record)
        {
            return Ok(original.to_owned());
        }
        Ok(source.outputs.name.short())
    }

    /// Announces the makers of directories, which become links to them. Returns whether they have
    /// records still: then no collection removes them.
    fn keeps(&self, source: &Equivalent) -> Result<bool> {
        let name = &source.outputs.name;
        for (number, output) in source.record.outputs.iter().enumerate() {
            if output.digest.is_directory() {
                let maker = self.storage.root.maker(&name.output(number))?;
                let Some((maker, ..)) = ResultName::maker(&maker) else { return Ok(false) };
                self.storage.gc_roots().announce([maker.short(), name.short()])?;
                for result in [&maker, name] {
                    if !self.storage.root.disk.exists_anew(&self.storage.path(&result.record()))? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }
}

/// Gives a published value another name. Returns `None` if it is not the published one any more.
///
/// A file is linked to, or copied. A directory gets a symbolic link, since it has only one name.
fn take_one(
    storage: &Storage,
    from: &str,
    to: &str,
    value: &Published,
) -> Result<Option<Published>> {
    let root = &storage.root;
    let (source, place) = (root.path(from), root.path(to));
    if value.digest.is_directory() {
        let target = link_to(to, &root.maker(from)?);
        root.disk.symbolic_link(Path::new(&target), &place)?;
        return Ok(storage.values().is_published(to, value)?.then_some(*value));
    }
    if root.disk.link(&source, &place).unwrap_or(false) {
        return Ok(storage.values().is_published(to, value)?.then_some(*value));
    }
    if root.disk.metadata(&source)?.is_none() {
        return Ok(None);
    }
    let digest = root.disk.copy(&source, &place)?;
    let stamp = Stamp::Modified(root.disk.seal(&place)?);
    Ok((digest == value.digest).then_some(Published { digest, stamp }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ce_model::digest::ObjectId;

    use crate::disk::Durability;

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
    fn directory(dir: &Path, version: ComputationVersion<'_>) -> String {
        let storage = Storage::open(dir, Unrecorded::Adopt, Durability::Unsynced).unwrap();
        storage.versions.directory(&storage.root, version).unwrap().to_string()
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
        // Later storages, in any order, find the directories that the first ones have left.
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
    fn a_wrong_owner_of_a_directory_is_replaced() {
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
    fn a_reader_claims_no_directory() {
        let dir = tempfile::tempdir().unwrap();
        let (commit, tree) = (id("1", '1'), id("a", 'a'));
        let own = version(&commit, &tree, false);
        let storage = Storage::inspect(dir.path(), Unrecorded::Adopt).unwrap();
        let directory = storage.versions.directory(&storage.root, own).unwrap();
        assert_eq!(&*directory, "c_copy/111111111111");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
