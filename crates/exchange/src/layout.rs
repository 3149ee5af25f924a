//! The names in a results repository that a storage has not.

use super::ResultsError;
use ce_files::manifest::DirectoryArchive;
use ce_git::{Mirror, MirrorError, MirrorKind, RemoteRef};
use ce_model::digest::{Digest, ObjectId};
use ce_storage::{ExpectedFile, archive_name};

/// The branch with the results of a repository that has nothing else.
const BRANCH: &str = "refs/heads/results";

/// The reference with the results of a repository of something else, such as that of the task: a plain clone does not fetch it.
const BESIDE: &str = "refs/compeval/results";

/// The greatest size of a record, in bytes: that of a job names all its calls.
pub(super) const MAX_RECORD: u64 = 256 << 20;

/// The greatest length of the path of a directory that is looked into, in bytes: that of Linux.
pub(super) const MAX_PATH: usize = 4096;

/// The greatest number of inboxes that one push empties.
const INBOXES: usize = 100;

/// The directory of the evidence of executions.
pub(super) const LEDGER: &str = "ledger";

/// The directory of revocations.
pub(super) const REVOKED: &str = "revoked";

/// The directory of records that differ from those in their places.
pub(super) const DIFFERS: &str = "differs";

/// The files at the top of each results repository.
pub(super) const TOP: [(&str, &str); 4] = [
    (".gitattributes", "* -text -ident -filter -working-tree-encoding -merge -diff\n"),
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

/// What it says.
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
    ///
    /// # Errors
    ///
    /// Fails if it cannot be reached.
    pub fn listed(mirror: &Mirror) -> Result<Self, MirrorError> {
        Ok(Self::of(&mirror.list(&Self::PATTERNS)?))
    }

    /// Finds the results among the references of a repository: its branch `results`, which it gets if it is empty.
    pub(super) fn of(refs: &[RemoteRef]) -> Self {
        let tip = |name: &str| refs.iter().find(|it| it.name == name).cloned();
        let is_other = |it: &&RemoteRef| {
            it.name.starts_with("refs/heads/") && !it.name.starts_with("refs/heads/ce-inbox/")
        };
        let is_empty = refs.iter().find(is_other).is_none();
        let name = if is_empty || tip(BRANCH).is_some() { BRANCH } else { BESIDE };
        // Results that were pushed beside something else stay there.
        let name = if tip(BRANCH).is_none() && tip(BESIDE).is_some() { BESIDE } else { name };
        Self { name, tip: tip(name) }
    }

    /// The tree of the results, which must have been fetched; `None` if there are none.
    ///
    /// # Errors
    ///
    /// Fails if the reference has something else, or results in a format that this program does not know.
    pub(super) fn tree(&self, mirror: &Mirror) -> Result<Option<ObjectId>, ResultsError> {
        let Some(tip) = &self.tip else { return Ok(None) };
        let tree = mirror.tree_of(&tip.id)?;
        let entries = mirror.entries(&tree)?;
        let format = entries.iter().find(|it| it.name == FORMAT && it.kind == MirrorKind::Blob);
        let known = mirror.blob_hash().of(VERSION.as_bytes());
        if entries.is_empty() || format.is_some_and(|it| Some(&it.id) == known.as_ref()) {
            return Ok(Some(tree));
        }
        let (url, name) = (mirror.url().to_owned(), self.name);
        Err(match format {
            None => ResultsError::NoResults { url, name },
            Some(_) => ResultsError::Format { url, name },
        })
    }

    /// What the names of its inboxes begin with: references that each one push makes for itself.
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

/// The path of a value in a results repository: of a directory, that of its archive.
pub(super) fn place(file: &ExpectedFile) -> String {
    match file.digest.is_directory() {
        true => archive_name(&file.digest),
        false => file.name.clone(),
    }
}

/// The size of a value in a results repository, in bytes.
pub(super) const fn stored_size(digest: &Digest) -> u64 {
    match digest.is_directory() {
        true => DirectoryArchive::size(digest),
        false => digest.size,
    }
}

/// Whether a path in a results repository is that of a record.
pub(super) fn is_record(path: &str) -> bool {
    let has_room = match path.split('/').collect::<Vec<_>>()[..] {
        [owner, _, "record", _, ..] => owner.starts_with("c_") || owner.starts_with("t_"),
        ["tables", "record", _, ..] => true,
        _ => false,
    };
    has_room && path.ends_with(".json")
}

/// Whether a path in a results repository is that of what a call has printed, or of a directory with such files.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(names: &[&str]) -> ResultsBranch {
        let id: ObjectId = "0".repeat(40).parse().unwrap();
        let refs = names.iter().map(|name| RemoteRef { name: (*name).to_owned(), id: id.clone() });
        ResultsBranch::of(&refs.collect::<Vec<_>>())
    }

    #[test]
    fn results_have_a_branch_or_stand_beside_what_a_repository_has() {
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
