//! The history of results: what each commit adds, who has signed it, and whose signatures count.
//!
//! A commit vouches for its additions to the join of its parents. So one that only joins others needs no signature:
//! each side vouches for its own. A commit does not vouch for removals or replacements of present files, except by
//! joining.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use ce_git::{
    CommitSignature, Mirror, MirrorCommit, MirrorEntry, MirrorError, MirrorKind, SignatureKind,
};
use ce_model::digest::{Blake3, ObjectId};
use serde::{Deserialize, Serialize};

use crate::ResultsError;
use crate::join::{Conflict, RecordComparison, join, settled};
use crate::repository::{LEDGER, MAX_PATH, REVOKED, is_log, is_record, may_hold_records};

/// The name of a mirror's note with the judged commits.
const NOTE: &str = "history";

/// The version of the rules: commits that were judged by other rules are judged again.
const RULES: u32 = 3;

/// Git's name of the setting for the file of revoked ssh keys.
const REVOCATIONS: &str = "gpg.ssh.revocationFile";

/// The files that decide whose signatures count.
#[derive(Debug)]
pub(super) struct Signers {
    /// The absolute path of the file of allowed signers.
    pub(super) file: PathBuf,
    /// The hash of all that decides.
    pub(super) keys: Blake3,
}

impl Signers {
    /// Reads the file of allowed signers, and the file of revoked keys, if `git` has one.
    pub(super) fn read(mirror: &Mirror, file: &Path) -> Result<Self, ResultsError> {
        let (real, mut keys) = located(file)
            .map_err(|source| ResultsError::Signers { path: file.to_owned(), source })?;
        if let Some(revoked) = mirror.users_path(REVOCATIONS)?.map(PathBuf::from) {
            let (place, revoked) = located(&revoked)
                .map_err(|source| ResultsError::RevokedKeys { path: revoked.clone(), source })?;
            keys.push(0);
            keys.extend(place.as_os_str().as_encoded_bytes());
            keys.push(0);
            keys.extend(revoked);
        }
        Ok(Self { file: real, keys: Blake3::hash_bytes(&keys) })
    }
}

/// The real path of a file, and its contents.
fn located(file: &Path) -> io::Result<(PathBuf, Vec<u8>)> {
    Ok((file.canonicalize()?, fs::read(file)?))
}

/// A commit, and its changes to the join of its parents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JudgedCommit {
    pub(super) commit: ObjectId,
    pub(super) signature: CommitSignature,
    parents: Vec<ObjectId>,
    /// The records, logs, files of the ledger and revocations that it adds, with the ids of their contents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    added: Vec<(String, ObjectId)>,
    /// The files of the commit that replace others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    replaced: Vec<(String, ObjectId)>,
    /// The files that it removes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    removed: Vec<String>,
}

/// The first line of the note.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct HistoryHeader {
    rules: u32,
    /// The hash of all that decides about signatures.
    keys: Blake3,
}

/// A commit that adds a file, or replaces another file by it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Introduction<'a> {
    pub(super) commit: &'a JudgedCommit,
    pub(super) is_replacement: bool,
}

/// All commits that lead to the results of a repository.
#[derive(Debug, Default)]
pub(super) struct SignedHistory {
    commits: Vec<JudgedCommit>,
    /// The commits that introduce a file with these contents, and whether it replaces another file.
    of_file: HashMap<(String, ObjectId), Vec<(usize, bool)>>,
}

impl SignedHistory {
    /// Judges the commits that lead to a tip. The mirror remembers commits that were judged before with the same keys.
    pub(super) fn judge(
        mirror: &Mirror,
        tip: &ObjectId,
        signers: &Signers,
    ) -> Result<Self, MirrorError> {
        let header = HistoryHeader { rules: RULES, keys: signers.keys };
        let mut commits = match remembered(mirror, &header)? {
            Some(commits) => commits,
            None => {
                mirror.put_note(NOTE, &line(&header))?;
                Vec::new()
            }
        };
        let known: HashSet<ObjectId> = commits.iter().map(|it| it.commit.clone()).collect();
        let new = new_commits(mirror, tip, &known)?;
        let signed = new.iter().filter(|(_, commit)| commit.signature == SignatureKind::Ssh);
        let signed: Vec<ObjectId> = signed.map(|(id, _)| id.clone()).collect();
        let signatures = mirror.signatures(&signed, &signers.file)?;
        let (mut text, mut is_remembered) = (Vec::new(), true);
        for (id, commit) in new {
            let signature = match commit.signature {
                SignatureKind::None => CommitSignature::None,
                SignatureKind::Other => CommitSignature::Other,
                SignatureKind::Ssh => signatures.get(&id).cloned().unwrap_or(CommitSignature::Bad),
            };
            let mut judged = JudgedCommit::of_nothing(id, signature, &commit.parents);
            match judged.judge(mirror, &commit) {
                Ok(()) => {}
                // A commit that this program has not made cannot be joined, and its signature vouches for nothing.
                Err(MirrorError::Own { .. }) => {
                    let JudgedCommit { commit: id, signature, parents, .. } = judged;
                    judged = JudgedCommit::of_nothing(id, signature, &parents);
                    judged.removed = missing(mirror, &commit)?;
                    is_remembered = false;
                }
                Err(error) => return Err(error),
            }
            if is_remembered {
                text.extend(line(&judged));
            }
            commits.push(judged);
        }
        if !text.is_empty() {
            mirror.add_to_note(NOTE, &text)?;
        }
        let commits = leading_to(tip, commits);
        let mut of_file = HashMap::<_, Vec<_>>::new();
        for (number, commit) in commits.iter().enumerate() {
            let added = commit.added.iter().map(|file| (file, false));
            for (file, replaced) in added.chain(commit.replaced.iter().map(|file| (file, true))) {
                of_file.entry(file.clone()).or_default().push((number, replaced));
            }
        }
        Ok(Self { commits, of_file })
    }

    /// The commits that introduce a file with these contents.
    pub(super) fn introductions(
        &self,
        path: &str,
        id: &ObjectId,
    ) -> impl Iterator<Item = Introduction<'_>> {
        let numbers = self.of_file.get(&(path.to_owned(), id.clone()));
        let numbers = numbers.map(Vec::as_slice).unwrap_or_default();
        numbers.iter().map(|&(number, is_replacement)| Introduction {
            commit: &self.commits[number],
            is_replacement,
        })
    }

    /// The files that commits take away, each with the commit.
    pub(super) fn removed(&self) -> impl Iterator<Item = (&str, &ObjectId)> {
        self.commits
            .iter()
            .flat_map(|judged| judged.removed.iter().map(|path| (path.as_str(), &judged.commit)))
    }
}

/// The commits that lead to a tip: a commit that others have left out since vouches for nothing.
fn leading_to(tip: &ObjectId, commits: Vec<JudgedCommit>) -> Vec<JudgedCommit> {
    let mut leading = HashSet::from([tip.clone()]);
    // Each commit comes after its parents.
    for commit in commits.iter().rev() {
        if leading.contains(&commit.commit) {
            leading.extend(commit.parents.iter().cloned());
        }
    }
    commits.into_iter().filter(|it| leading.contains(&it.commit)).collect()
}

/// Reads the commits that were judged with the same keys, up to an incomplete line. `None` if there are none.
fn remembered(
    mirror: &Mirror,
    header: &HistoryHeader,
) -> Result<Option<Vec<JudgedCommit>>, MirrorError> {
    let Some(text) = mirror.note(NOTE)? else { return Ok(None) };
    let mut lines = text.split_inclusive(|c| *c == b'\n');
    if lines.next() != Some(&line(header)) {
        return Ok(None);
    }
    let mut commits = Vec::new();
    for line in lines {
        // Nothing may be appended to a line that has no end.
        let Ok(commit) = serde_json::from_slice(line) else { return Ok(None) };
        if !line.ends_with(b"\n") {
            return Ok(None);
        }
        commits.push(commit);
    }
    Ok(Some(commits))
}

fn line(value: &impl Serialize) -> Vec<u8> {
    // Only a map with keys that are not texts could fail, and there are none here.
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The commits that lead to a tip and are not known, each after its parents.
fn new_commits(
    mirror: &Mirror,
    tip: &ObjectId,
    known: &HashSet<ObjectId>,
) -> Result<Vec<(ObjectId, MirrorCommit)>, MirrorError> {
    let mut seen = known.clone();
    let (mut ordered, mut waiting) = (Vec::new(), Vec::new());
    let mut enter = |id: &ObjectId, waiting: &mut Vec<_>| {
        if seen.insert(id.clone()) {
            let commit = mirror.commit(id)?;
            waiting.push((id.clone(), commit, 0));
        }
        Ok::<_, MirrorError>(())
    };
    enter(tip, &mut waiting)?;
    while let Some((_, commit, next)) = waiting.last_mut() {
        match commit.parents.get(*next).cloned() {
            Some(parent) => {
                *next += 1;
                enter(&parent, &mut waiting)?;
            }
            None => ordered.extend(waiting.pop().map(|(id, commit, _)| (id, commit))),
        }
    }
    Ok(ordered)
}

impl JudgedCommit {
    /// A commit that adds nothing.
    fn of_nothing(commit: ObjectId, signature: CommitSignature, parents: &[ObjectId]) -> Self {
        let (parents, added, replaced) = (parents.to_vec(), Vec::new(), Vec::new());
        Self { commit, signature, parents, added, replaced, removed: Vec::new() }
    }

    /// Finds its changes to the join of its parents.
    fn judge(
        &mut self,
        mirror: &Mirror,
        MirrorCommit { tree, parents, .. }: &MirrorCommit,
    ) -> Result<(), MirrorError> {
        let mut base = None;
        for parent in parents {
            let parent = mirror.tree_of(parent)?;
            base = Some(match base {
                None => parent,
                Some(base) => join(mirror, &base, &parent)?.tree,
            });
        }
        let changes = changes(mirror, base.as_ref(), tree)?;
        let conflicts = changes
            .iter()
            .filter_map(|(path, ids)| {
                let ids = [ids[0].clone()?, ids[1].clone()?];
                is_record(path).then(|| Conflict { path: path.clone(), ids })
            })
            .collect();
        let mut superseded = HashSet::new();
        for settled in settled(mirror, &[tree], conflicts)? {
            let rightful = [RecordComparison::Better, RecordComparison::Supersedes];
            if rightful.contains(&settled.comparison) {
                superseded.extend(settled.lost);
            }
        }
        for (path, ids) in changes {
            let is_right = superseded.contains(&path);
            match ids {
                [None, Some(new)] => self.added.push((path, new)),
                [Some(_), Some(new)] if is_right => self.added.push((path, new)),
                [Some(_), Some(new)] => self.replaced.push((path, new)),
                [_, None] if is_right => {}
                [_, None] => self.removed.push(path),
            }
        }
        Ok(())
    }
}

/// The vouched-for files of a commit's parents that the commit lacks.
fn missing(mirror: &Mirror, commit: &MirrorCommit) -> Result<Vec<String>, MirrorError> {
    let mut missing = BTreeSet::new();
    for parent in &commit.parents {
        let changes = changes(mirror, Some(&mirror.tree_of(parent)?), &commit.tree)?;
        let gone = changes.into_iter().filter(|(_, [_, new])| new.is_none());
        missing.extend(gone.map(|(path, _)| path));
    }
    Ok(missing.into_iter().collect())
}

/// The vouched-for files that differ in two trees, in the order of their paths: each with its ids there.
fn changes(
    mirror: &Mirror,
    old: Option<&ObjectId>,
    new: &ObjectId,
) -> Result<BTreeMap<String, [Option<ObjectId>; 2]>, MirrorError> {
    let mut changes = BTreeMap::new();
    let mut waiting = vec![(String::new(), [old.cloned(), Some(new.clone())])];
    while let Some((path, trees)) = waiting.pop() {
        let mut found = BTreeMap::<String, [Option<MirrorEntry>; 2]>::new();
        for (side, tree) in trees.into_iter().enumerate() {
            for entry in tree.map(|tree| mirror.entries(&tree)).transpose()?.unwrap_or_default() {
                let name = entry.name.clone();
                found.entry(name).or_default()[side] = Some(entry);
            }
        }
        for (name, entries) in found.into_iter().filter(|(_, [old, new])| old != new) {
            let path = format!("{path}{name}");
            let of_kind = |kind: MirrorKind| {
                entries.each_ref().map(|entry| {
                    entry.as_ref().filter(|it| it.kind == kind).map(|it| it.id.clone())
                })
            };
            let (files, trees) = (of_kind(MirrorKind::Blob), of_kind(MirrorKind::Tree));
            if trees[0] != trees[1] && may_hold(&path) {
                waiting.push((format!("{path}/"), trees));
            }
            if files[0] != files[1] && is_vouched_for(&path) {
                changes.insert(path, files);
            }
        }
    }
    Ok(changes)
}

/// Whether commits vouch for files of this name: records, logs and evidence.
fn is_vouched_for(path: &str) -> bool {
    is_record(path) || is_log(path) || is_evidence(path)
}

fn may_hold(directory: &str) -> bool {
    directory.len() <= MAX_PATH
        && (may_hold_records(directory) || is_log(directory) || is_evidence(directory))
}

/// Whether a path is a file or a directory of the ledger or of revocations.
fn is_evidence(path: &str) -> bool {
    [LEDGER, REVOKED].contains(&path.split('/').next().unwrap_or_default())
}
