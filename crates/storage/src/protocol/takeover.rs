//! The rule which results of any commit stand for a call. A run takes such results over, and a collection keeps the
//! results that a run would take over. Pure.

use ce_model::digest::{Digest, ObjectId};
use ce_model::name::ComputationName;

use crate::records::CallRecord;

/// The results of other versions of the same tree that are taken over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Takeover {
    /// Results of isolated executions, which depend on the tree and the inputs alone.
    #[default]
    Isolated,
    /// Also results that were executed in this storage without isolation: they are trusted to depend on nothing else.
    Tree,
}

/// A call of any version: the common properties of a result that is taken over and the call that it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VersionlessCall<'a> {
    pub computation: &'a ComputationName,
    /// Its tree, or the blob of its file.
    pub tree: &'a ObjectId,
    /// Its inputs, in order.
    pub inputs: &'a [Digest],
}

impl<'a> VersionlessCall<'a> {
    /// The call of a record.
    pub fn from_record(record: &'a CallRecord) -> Self {
        let CallRecord { computation, tree, inputs, .. } = record;
        Self { computation, tree, inputs }
    }
}

impl Takeover {
    /// The results that some run may take over: the user decides that, and another run may decide otherwise.
    pub const MOST: Self = Self::Tree;

    /// Whether a result serves all versions of its tree: its execution could not depend on anything else, or is trusted not to.
    pub fn serves_tree(self, record: &CallRecord) -> bool {
        record.origin.is_isolated() || self == Self::Tree && record.execution().is_some()
    }

    /// Whether a result stands for a call of any version of its tree.
    pub fn serves(self, record: &CallRecord, call: VersionlessCall<'_>) -> bool {
        self.serves_tree(record) && VersionlessCall::from_record(record) == call
    }
}

/// Chooses among results that stand for one call, the newest version first: the first one that is here, or else archived, or else away.
pub fn choose_result<T>(
    results: impl IntoIterator<Item = T>,
    location: impl Fn(&T) -> OutputLocation,
) -> Option<T> {
    let mut other: Option<T> = None;
    for result in results {
        if location(&result) == OutputLocation::Here {
            return Some(result);
        }
        if other.as_ref().is_none_or(|it| location(&result) < location(it)) {
            other = Some(result);
        }
    }
    other
}

/// The location of the outputs of a call that has a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum OutputLocation {
    /// All of them are here.
    Here,
    /// Some are archives, in a storage that is only read.
    Archived,
    /// Some are deliberately not here.
    Away,
}
