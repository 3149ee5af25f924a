//! The parts of a results repository: its branch, the names that no storage has, and the search for files by their paths.

use std::collections::{BTreeMap, HashMap};

use ce_files::manifest::DirectoryArchive;
use ce_git::{Mirror, MirrorEntry, MirrorError, MirrorKind, RemoteRef};
use ce_model::digest::{Digest, ObjectId};
use ce_storage::{ExpectedFile, archive_name};

use crate::ResultsError;

/// The greatest size of a file in Git, in bytes: such files are held in memory.
pub(super) const MAX_LIMIT: u64 = 256 << 20;

/// The greatest size of a file unless the user says otherwise, in bytes: GitHub refuses files of more than 100 MB.
pub(super) const DEFAULT_LIMIT: u64 = 64 << 20;

/// The branch with the results of a repository that has nothing else.
const BRANCH: &str = "refs/heads/results";

/// The reference with the results in a repository of something else, such as the task: a plain clone does not fetch it.
const BESIDE: &str = "refs/compeval/results";

/// The greatest size of a record, in bytes: the record of a job names all its calls.
pub(super) const MAX_RECORD: u64 = 256 << 20;

/// The greatest length of the path of a directory that is looked into, in bytes, as in Linux.
pub(super) const MAX_PATH: usize = 4096;

/// The greatest number of inboxes that one push empties.
const INBOXES: usize = 100;

/// The directory of the evidence of executions.
pub(super) const LEDGER: &str = "ledger";

/// The directory of revocations.
pub(super) const REVOKED: &str = "revoked";

/// The directory of records that differ from the ones in their places.
const DIFFERS: &str = "differs";

/// Files are neither converted nor merged.
pub(super) const GIT_ATTRIBUTES: &str =
    "* -text -ident -filter -working-tree-encoding -merge -diff\n";

/// The files at the top of each results repository.
pub(super) const TOP: [(&str, &str); 4] = [
    (".gitattributes", GIT_ATTRIBUTES),
    (
        ".gitignore",
        "/tmp/\n/trees/\n/runs/\n/repositories/\n/signers/\n/manifests/\n/suspended/\n/tinputs/\nrunning/\naside/\nfailed/\n\
         collected/\npinned/\nversion.json\n",
    ),
    (
        "README.md",
        "Results of computations, and what they were made from. A clone of this repository is a storage of CompEval:\n\
         `ce run CLONE INPUT...` finds everything that is here, and executes nothing. `ce show CLONE FILE` says what a\n\
         file was made from.\n\nOnly `ce push` writes here. It adds, and replaces only what was revoked.\n",
    ),
    (FORMAT, VERSION),
];

/// The file that says that a repository has results, and in which format.
pub(super) const FORMAT: &str = "format";

/// The contents of that file.
const VERSION: &str = "compeval results 1\n";

/// The references of a repository that has results, or will have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultsBranch {
    /// The full name of the reference with the results.
    pub(super) name: &'static str,
    /// The results, if there are any.
    pub(super) tip: Option<RemoteRef>,
}

impl ResultsBranch {
    /// The patterns of the references that decide, and of inboxes.
    pub(super) const PATTERNS: [&'static str; 3] =
        ["refs/heads/*", BESIDE, "refs/compeval/inbox/*"];

    /// Finds the results of a repository.
    pub fn listed(mirror: &Mirror) -> Result<Self, MirrorError> {
        Ok(Self::choose(&mirror.list(&Self::PATTERNS)?))
    }

    /// Finds the results among the references of a repository: its branch `results`, which it gets if it is empty.
    pub(super) fn choose(refs: &[RemoteRef]) -> Self {
        let tip = |name: &str| refs.iter().find(|it| it.name == name).cloned();
        let is_empty = !refs.iter().any(|it| {
            it.name.starts_with("refs/heads/") && !it.name.starts_with("refs/heads/ce-inbox/")
        });
        let name = if is_empty || tip(BRANCH).is_some() { BRANCH } else { BESIDE };
        // Results that were pushed beside other contents stay there.
        let name = if tip(BRANCH).is_none() && tip(BESIDE).is_some() { BESIDE } else { name };
        Self { name, tip: tip(name) }
    }

    /// The tree of the results, which must have been fetched; `None` if the repository has no results.
    ///
    /// # Errors
    ///
    /// Fails if the reference has something else, or results in a format that this program does not know.
    pub(super) fn tree(&self, mirror: &Mirror) -> Result<Option<ObjectId>, ResultsError> {
        let Some(tip) = &self.tip else { return Ok(None) };
        let tree = mirror.tree_of(&tip.id)?;
        let entries = mirror.entries(&tree)?;
        let format = entries.iter().find(|it| it.name == FORMAT && it.kind == MirrorKind::Blob);
        let known = mirror.blob_hash().compute_id(VERSION.as_bytes());
        if entries.is_empty() || format.is_some_and(|it| Some(&it.id) == known.as_ref()) {
            return Ok(Some(tree));
        }
        let (url, name) = (mirror.url().to_owned(), self.name);
        Err(match format {
            None => ResultsError::NoResults { url, name },
            Some(_) => ResultsError::Format { url, name },
        })
    }

    /// Returns the prefix of the names of its inboxes, which are references that each push makes for itself.
    pub(super) fn inbox(&self) -> &'static str {
        match self.name {
            BRANCH => "refs/heads/ce-inbox/",
            _ => "refs/compeval/inbox/",
        }
    }

    /// The inboxes among the references of a repository, at most a hundred.
    pub(super) fn inboxes(&self, refs: &[RemoteRef]) -> Vec<RemoteRef> {
        let inboxes = refs.iter().filter(|it| it.name.starts_with(self.inbox()));
        inboxes.take(INBOXES).cloned().collect()
    }
}

/// The path of a value in a results repository. A directory is stored as an archive.
pub(super) fn place(file: &ExpectedFile) -> String {
    if file.digest.is_directory() { archive_name(&file.digest) } else { file.name.clone() }
}

/// The size of a value in a results repository, in bytes.
pub(super) const fn stored_size(digest: &Digest) -> u64 {
    if digest.is_directory() { DirectoryArchive::size(digest) } else { digest.size }
}

/// Whether a path in a results repository is the path of a record.
pub(super) fn is_record(path: &str) -> bool {
    let has_room = match path.split('/').collect::<Vec<_>>()[..] {
        [owner, _, "record", _, ..] => owner.starts_with("c_") || owner.starts_with("t_"),
        ["tables", "record", _, ..] => true,
        _ => false,
    };
    has_room && path.ends_with(".json")
}

/// Whether a path in a results repository is a call's log, or a directory of such logs.
pub(super) fn is_log(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], [owner, _, "log", ..] if owner.starts_with("c_"))
}

/// Whether a directory of a results repository may have records in it.
pub(super) fn may_hold_records(path: &str) -> bool {
    match path.split('/').collect::<Vec<_>>()[..] {
        [owner] | [owner, _] | [owner, _, "record", ..]
            if owner.starts_with("c_") || owner.starts_with("t_") =>
        {
            true
        }
        ["tables"] | ["tables", "record", ..] => true,
        _ => false,
    }
}

/// The directory of the other records of a result, beside the one in its place.
pub(super) fn differs(record: &str) -> String {
    format!("{DIFFERS}/{}", record.trim_end_matches(".json"))
}

/// A rule that decides whether a path counts.
type PathRule = fn(&str) -> bool;

/// Trees that were read, to find paths in them.
#[derive(Debug)]
pub(super) struct Finder<'a> {
    mirror: &'a Mirror,
    top: Option<ObjectId>,
    /// The entries of each directory, by name; `None` if it is not there.
    read: BTreeMap<String, Option<Vec<MirrorEntry>>>,
}

impl<'a> Finder<'a> {
    /// Finds paths below a tree. Finds nothing without a tree.
    pub(super) fn new(mirror: &'a Mirror, top: Option<ObjectId>) -> Self {
        Self { mirror, top, read: BTreeMap::new() }
    }

    /// The entry of this path.
    pub(super) fn find(&mut self, path: &str) -> Result<Option<MirrorEntry>, MirrorError> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let Some(entries) = self.directory(directory)? else { return Ok(None) };
        let at = entries.binary_search_by(|entry| entry.name.as_str().cmp(name));
        Ok(at.ok().map(|at| entries[at].clone()))
    }

    /// The plain file of this path.
    pub(super) fn file(&mut self, path: &str) -> Result<Option<ObjectId>, MirrorError> {
        let found = self.find(path)?;
        Ok(found.filter(|it| it.kind == MirrorKind::Blob).map(|it| it.id))
    }

    /// The paths and ids of all records, in the order of their paths.
    pub(super) fn records(&mut self) -> Result<Vec<(String, ObjectId)>, MirrorError> {
        self.files("", is_record, may_hold_records)
    }

    /// The paths and ids of all files below a directory, in the order of their paths.
    pub(super) fn files_in(
        &mut self,
        directory: &str,
    ) -> Result<Vec<(String, ObjectId)>, MirrorError> {
        self.files(directory, |_| true, |_| true)
    }

    /// The paths and ids of files below a directory.
    fn files(
        &mut self,
        top: &str,
        is_wanted: PathRule,
        is_entered: PathRule,
    ) -> Result<Vec<(String, ObjectId)>, MirrorError> {
        let mut records = Vec::new();
        let mut waiting = vec![top.to_owned()];
        while let Some(directory) = waiting.pop() {
            for entry in self.directory(&directory)?.into_iter().flatten() {
                let path = match &*directory {
                    "" => entry.name.clone(),
                    directory => format!("{directory}/{}", entry.name),
                };
                match entry.kind {
                    MirrorKind::Blob if is_wanted(&path) => records.push((path, entry.id.clone())),
                    MirrorKind::Tree if is_entered(&path) && path.len() <= MAX_PATH => {
                        waiting.push(path);
                    }
                    _ => {}
                }
            }
        }
        records.sort();
        Ok(records)
    }

    /// The entries of a directory.
    fn directory(&mut self, path: &str) -> Result<Option<&Vec<MirrorEntry>>, MirrorError> {
        if !self.read.contains_key(path) {
            let tree = match path {
                "" => self.top.clone(),
                path => self.find(path)?.filter(|it| it.kind == MirrorKind::Tree).map(|it| it.id),
            };
            let mut entries = tree.map(|tree| self.mirror.entries(&tree)).transpose()?;
            if let Some(entries) = &mut entries {
                // Git sorts directories otherwise.
                entries.sort_by(|one, other| one.name.cmp(&other.name));
            }
            self.read.insert(path.to_owned(), entries);
        }
        Ok(self.read[path].as_ref())
    }
}

/// The number of entries of a directory above which servers and pushes become slow. GitHub recommends at most 3,000.
const CROWDED: usize = 10_000;

/// A directory of a results repository with many entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrowdedDirectory {
    pub path: String,
    /// The number of its entries.
    pub entries: usize,
}

/// The largest of the directories that two trees do not share, if it has too many entries. Other directories are not looked at.
pub(super) fn crowded(
    mirror: &Mirror,
    base: Option<&ObjectId>,
    tree: &ObjectId,
) -> Result<Option<CrowdedDirectory>, MirrorError> {
    let mut largest: Option<CrowdedDirectory> = None;
    let mut waiting = vec![(String::new(), base.cloned(), tree.clone())];
    while let Some((path, base, tree)) = waiting.pop() {
        if base.as_ref() == Some(&tree) {
            continue;
        }
        let (entries, directories) = mirror.directories(&tree)?;
        if entries > largest.as_ref().map_or(CROWDED, |it| it.entries) {
            largest = Some(CrowdedDirectory { path: path.clone(), entries });
        }
        let before = base.map(|base| mirror.directories(&base)).transpose()?;
        let mut before: HashMap<String, ObjectId> =
            before.into_iter().flat_map(|(_, directories)| directories).collect();
        for (name, id) in directories {
            waiting.push((format!("{path}{name}/"), before.remove(&name), id));
        }
    }
    Ok(largest)
}

/// The sizes that decide where a file goes, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileSizes {
    /// The greatest one of a file in Git.
    pub(super) limit: u64,
    /// The size above which an output is a Git LFS object; `None` if no output is.
    pub(super) large: Option<u64>,
    /// The greatest size of such an object.
    pub(super) large_limit: u64,
}

impl FileSizes {
    /// The sizes for a limit that the user may have given.
    pub(super) fn with_limits(limit: Option<u64>, large: Option<u64>) -> Self {
        Self {
            limit: limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT),
            large,
            large_limit: limit.unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(names: &[&str]) -> ResultsBranch {
        let id: ObjectId = "0".repeat(40).parse().unwrap();
        let refs = names.iter().map(|name| RemoteRef { name: (*name).to_owned(), id: id.clone() });
        ResultsBranch::choose(&refs.collect::<Vec<_>>())
    }

    #[test]
    fn results_get_a_branch_beside_other_branches() {
        assert_eq!(at(&[]).name, BRANCH);
        assert_eq!(at(&["refs/heads/main"]).name, BESIDE);
        assert_eq!(at(&["refs/heads/main", BRANCH]).name, BRANCH);
        assert_eq!(at(&["refs/heads/main", BESIDE]).name, BESIDE);
        assert_eq!(at(&[BESIDE]).name, BESIDE, "nothing but results beside nothing");
        assert!(at(&["refs/heads/main"]).tip.is_none() && at(&[BRANCH]).tip.is_some());
    }

    #[test]
    fn a_record_is_known_by_its_path() {
        for record in
            ["c_x/0123456789ab/record/_.json", "tables/record/ab/c.json", "t_x/y/record/a_/b.json"]
        {
            assert!(is_record(record), "{record}");
        }
        for other in [
            "c_x/0123456789ab/00/_",
            "x/y/record/_.json",
            "c_x/y/record/_",
            "differs/c_x/y/record/a.json",
        ] {
            assert!(!is_record(other), "{other}");
        }
    }
}
