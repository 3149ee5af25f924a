//! What a storage has to offer, and what it keeps to itself.

use std::fmt;

use super::layout::{place, stored_size};
use ce_git::BlobHash;
use ce_model::digest::ObjectId;
use ce_model::humanize::size;
use ce_storage::records::Origin;
use ce_storage::{Entry, ExpectedFile, Record, Storage};

/// A result that may be pushed.
#[derive(Debug)]
pub(super) struct SharedResult {
    /// The result.
    pub(super) entry: Entry,
    /// Its record.
    pub(super) record: Record,
    /// The text of its record in a results repository.
    pub(super) text: Vec<u8>,
    /// The id of that text there.
    pub(super) id: Option<ObjectId>,
    /// The values that this promises.
    pub(super) files: Vec<SharedFile>,
    /// An empty file that lists it under its tree, for other commits.
    pub(super) note: Option<String>,
    /// An empty file that says that outputs of it are away; none of results that are there whole or not at all.
    pub(super) marker: Option<String>,
}

/// A file or directory of a result.
#[derive(Debug)]
pub(super) struct SharedFile {
    /// What the record promises.
    pub(super) file: ExpectedFile,
    /// Its path in the repository; none if it is there by another result: a directory is not there for a job, too.
    pub(super) path: Option<String>,
    /// Whether it is too large. Then it stays here, and the result is there without it.
    pub(super) stays: bool,
}

/// A result that is not pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its short name.
    pub name: String,
    /// The reason.
    pub why: Withheld,
}

/// The reason why a result is not pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// Nobody knows how it was made.
    Adopted,
    /// No commit has its computation.
    Dirty,
    /// It was taken over because its tree was trusted.
    TrustedTree,
    /// A file is larger than the limit.
    Large {
        /// Its size in bytes.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A file is not the recorded one.
    Damaged {
        /// Its name.
        file: String,
    },
    /// It is the log of an execution that was not isolated.
    Log,
    /// Somebody has revoked it.
    Revoked {
        /// The reason.
        reason: String,
    },
    /// Somebody has revoked a call of the job.
    RevokedCall {
        /// Its short name.
        call: String,
        /// The reason.
        reason: String,
    },
    /// A file seems to hold a secret.
    Secret {
        /// Its name.
        file: String,
        /// What it seems to hold.
        what: String,
    },
}

impl Withheld {
    /// Whether somebody should look at it: the others are left out by rule.
    pub fn is_wrong(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Secret { .. } | Self::Revoked { .. })
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adopted => write!(f, "it was adopted, and nobody knows how it was made"),
            Self::Dirty => write!(f, "no commit has its computation: it had uncommitted changes"),
            Self::TrustedTree => {
                write!(f, "it was taken over from another commit, and was not isolated")
            }
            Self::Large { bytes, limit } => {
                write!(f, "a file has {}, and the limit is {}", size(*bytes), size(*limit))
            }
            Self::Damaged { file } => write!(f, "{file} is not as recorded: ce verify says more"),
            Self::Log => {
                write!(
                    f,
                    "it was not isolated, so it may have printed anything; --logs=all pushes it"
                )
            }
            Self::Revoked { reason } => {
                write!(f, "it is revoked: {reason}; ce run --force executes it again")
            }
            Self::RevokedCall { call, reason } => {
                write!(f, "its call {call} is revoked: {reason}")
            }
            Self::Secret { file, what } => {
                write!(f, "{file} seems to hold {what}; --allow-secrets pushes it all the same")
            }
        }
    }
}

/// Returns what a storage offers of a result, or why it keeps it to itself.
pub(super) fn shared_result(
    storage: &Storage,
    (entry, record): (Entry, Record),
    limit: u64,
    hash: BlobHash,
) -> Result<SharedResult, LeftOut> {
    let parts = offer(storage, &entry, &record, limit);
    let (text, files, note) = parts.map_err(|why| LeftOut { name: entry.short(), why })?;
    let (id, marker) = (hash.of(&text), marker(&entry));
    Ok(SharedResult { entry, record, text, id, files, note, marker })
}

/// The text of the record, the values, and the note.
type Offered = (Vec<u8>, Vec<SharedFile>, Option<String>);

fn offer(
    storage: &Storage,
    entry: &Entry,
    record: &Record,
    limit: u64,
) -> Result<Offered, Withheld> {
    let Some(shared) = record.shared() else {
        return Err(match record {
            Record::Call(call) if call.origin == Origin::Adopted => Withheld::Adopted,
            Record::Call(call) if call.has_trusted_tree() => Withheld::TrustedTree,
            _ => Withheld::Dirty,
        });
    };
    let literals = shared.literals();
    let is_elsewhere = |file: &ExpectedFile| {
        matches!(entry, Entry::Job(_)) && file.digest.is_directory() && !literals.contains(file)
    };
    let mut files = entry.expected_files(&shared);
    files.extend(literals.iter().cloned());
    let is_large = |file: &ExpectedFile| stored_size(&file.digest) > limit;
    // A table is there whole, and what a job reads, since nothing makes that again.
    let is_whole = |file: &&ExpectedFile| marker(entry).is_none() || literals.contains(file);
    if let Some(file) = files.iter().filter(is_whole).find(|file| is_large(file)) {
        return Err(Withheld::Large { bytes: stored_size(&file.digest), limit });
    }
    let note = match (entry, record) {
        (Entry::Call(name), Record::Call(call)) => Some(storage.equivalents().note_of(name, call)),
        _ => None,
    };
    let path = |file: &ExpectedFile| (!is_elsewhere(file)).then(|| place(file));
    let file = |file| SharedFile { path: path(&file), stays: is_large(&file), file };
    let files = files.into_iter().map(file).collect();
    Ok((shared.text(), files, note))
}

/// The name of the marker of a result whose outputs may be away.
pub(super) fn marker(entry: &Entry) -> Option<String> {
    match entry {
        Entry::Call(name) | Entry::Job(name) => Some(name.away()),
        Entry::Table(_) | Entry::TaskInput(_) => None,
    }
}
