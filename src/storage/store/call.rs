//! Calls: what is looked for, and what is found.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::digest::Digest;
use crate::storage::disk::{FileId, lock};
use crate::storage::layout::{ComputationVersion, ResultName};
use crate::storage::records::{CallRecord, Format, Origin, Provenance, Published};

/// A call to be found: a version of a computation and what its inputs contain.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The version of its computation.
    pub version: ComputationVersion<'a>,
    /// Its inputs, in order.
    pub inputs: &'a [Digest],
    /// How many outputs it has.
    pub outputs: usize,
}

/// The outputs of a call, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// The name that they share.
    pub name: ResultName,
    /// What they contain, and their time stamps.
    pub files: Box<[Published]>,
}

/// Whether a call is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// All of it.
    Hit(Outputs),
    /// Not all of it.
    Absent {
        /// The name that it gets if it is executed.
        name: ResultName,
        /// What is there and cannot be used.
        damage: Option<Damage>,
    },
    /// Outputs without a record, which somebody may still be writing.
    Unsettled(ResultName),
}

/// Something that stands under the name of a result and cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, relative to the storage.
    pub file: String,
    /// What is wrong with it.
    pub what: String,
}

/// What stands under a name.
pub(in crate::storage) enum CallState {
    /// The call that was asked for, complete.
    Hit(Outputs),
    /// Another call, of which the name is the same in as many digits as are shown.
    Collision,
    /// Parts of the call, of no use, and the record among them if there is one.
    Incomplete(Option<FileId>, Option<Damage>),
    /// Outputs without a record, which somebody may still be writing.
    Unsettled,
    /// Nothing at all.
    Vacant,
}

impl CallState {
    pub(in crate::storage) fn hit(name: &ResultName, outputs: &[Published]) -> Self {
        Self::Hit(Outputs { name: name.clone(), files: outputs.into() })
    }
}

/// Names that calls of this run have reserved and that are not yet taken: two calls that collide may
/// be met together.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<HashMap<ResultName, Box<[Digest]>>>);

impl Claims {
    /// Reserves a name for a call with these inputs. Returns false if it is another call's.
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

    /// Gives up the reservation of a name that now has a record, which keeps others from it.
    pub(super) fn release(&self, name: &ResultName) {
        let mut claims = lock(&self.0);
        if !claims.is_empty() {
            claims.remove(name);
        }
    }

    /// How many names are reserved.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        lock(&self.0).len()
    }
}

impl Call<'_> {
    /// The record of the call, made now.
    pub(super) fn record(&self, outputs: Vec<Published>, origin: Origin) -> CallRecord {
        let ComputationVersion { computation, commit, tree, dirty } = self.version;
        CallRecord {
            format: Format,
            computation: computation.clone(),
            commit: commit.clone(),
            tree: tree.clone(),
            dirty,
            inputs: self.inputs.to_vec(),
            outputs,
            origin,
            recorded: Provenance::now(),
        }
    }
}
