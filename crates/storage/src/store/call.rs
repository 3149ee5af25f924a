//! Calls as they are looked up, and the results of look-ups.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::disk::{FileId, lock};
use crate::layout::{ComputationVersion, ResultName};
use crate::records::{CallRecord, Format, Origin, Provenance, Published};
use ce_model::digest::Digest;
use ce_model::task::name::is_directory;

/// A call to look up: a version of a computation and the digests of its inputs.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The version of its computation.
    pub version: ComputationVersion<'a>,
    /// Its inputs, in order.
    pub inputs: &'a [Digest],
    /// The names of its outputs, in order: that of a directory ends in a slash.
    pub outputs: &'a [String],
}

/// The outputs of a call, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// The common part of their names.
    pub name: ResultName,
    /// Their digests and time stamps.
    pub files: Box<[Published]>,
}

impl Outputs {
    /// Returns the digests of the files, in their order.
    pub fn digests(&self) -> Vec<Digest> {
        self.files.iter().map(|file| file.digest).collect()
    }

    /// Whether others have the same contents.
    pub fn has_same(&self, others: &Self) -> bool {
        self.digests() == others.digests()
    }
}

/// The result of looking up a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The call is complete.
    Hit(Outputs),
    /// The call is known, and some of its outputs are deliberately not here.
    Away(Outputs),
    /// The call is complete, and some of its outputs are archives, which cannot be unpacked into a storage that is only read.
    Archived(Outputs),
    /// The call is missing or incomplete.
    Absent {
        /// The name under which it is published if it is executed.
        name: ResultName,
        /// Unusable remains, if there are any.
        damage: Option<Damage>,
    },
    /// There are outputs without a record, which may still be written to.
    Unsettled(ResultName),
}

/// An unusable file under the name of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, relative to the storage.
    pub file: String,
    /// The damage.
    pub what: String,
}

/// The state of the files under the name of a call.
pub(crate) enum CallState {
    /// The requested call, complete.
    Hit(Outputs),
    /// The requested call, of which some outputs are deliberately not here, with the inode of the record.
    Away(FileId, Outputs),
    /// The requested call, of which some outputs are archives, in a storage that is only read.
    Archived(Outputs),
    /// Another call, whose name has the same shortened digits.
    Collision,
    /// Unusable parts of the call, with the inode of the record if there is one.
    Incomplete(Option<FileId>, Option<Damage>),
    /// There are outputs without a record, which may still be written to.
    Unsettled,
    /// No files.
    Vacant,
}

impl CallState {
    pub(crate) fn hit(name: &ResultName, outputs: &[Published]) -> Self {
        Self::Hit(Outputs { name: name.clone(), files: outputs.into() })
    }
}

/// Names that calls of this run have reserved and that have no record yet: two colliding calls may
/// be evaluated at the same time.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<HashMap<ResultName, Box<[Digest]>>>);

impl Claims {
    /// Reserves a name for a call with these inputs. Returns false if it is reserved for another
    /// call.
    pub(super) fn reserve(&self, name: &ResultName, inputs: &[Digest]) -> bool {
        let mut claims = lock(&self.0);
        match claims.get(name) {
            Some(known) => **known == *inputs,
            None => {
                claims.insert(name.clone(), inputs.into());
                true
            }
        }
    }

    /// Releases a name that has a record now, which keeps other calls from it.
    pub(super) fn release(&self, name: &ResultName) {
        let mut claims = lock(&self.0);
        if !claims.is_empty() {
            claims.remove(name);
        }
    }

    /// The number of reserved names.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        lock(&self.0).len()
    }
}

impl Call<'_> {
    /// Whether recorded outputs are as many as the call's, and of the same kinds.
    pub(super) fn has(&self, recorded: &[Published]) -> bool {
        let kinds = self.outputs.iter().map(|name| is_directory(name));
        kinds.eq(recorded.iter().map(|output| output.digest.is_directory()))
    }

    /// The record of the call, made now.
    pub(super) fn record(&self, outputs: Vec<Published>, origin: Origin) -> CallRecord {
        let ComputationVersion { computation, commit, tree, dirty } = self.version;
        let digests = self.inputs.iter().chain(outputs.iter().map(|it| &it.digest));
        let format = match origin {
            Origin::Shared(_) => Format::SHARED,
            Origin::Executed { .. } | Origin::Adopted => Format::of(digests),
        };
        CallRecord {
            format,
            computation: computation.clone(),
            commit: commit.clone(),
            tree: tree.clone(),
            dirty,
            inputs: self.inputs.to_vec(),
            outputs,
            origin,
            recorded: Some(Provenance::now()),
        }
    }
}
