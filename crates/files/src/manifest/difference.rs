//! The difference of two directories, by their manifests.

use std::cmp::Ordering;
use std::fmt;

use super::entry::EntryKind;
use super::format::Manifest;
use super::path::shown;
use ce_model::digest::Digest;

/// A path with different entries in two directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryDifference<'a> {
    /// The path.
    pub path: &'a [u8],
    /// The entry in each directory, if there is one.
    pub entries: [Option<&'a EntryKind<Digest>>; 2],
}

impl Manifest {
    /// Returns the differences of another directory from this one, sorted by path.
    pub fn differences<'a>(&'a self, other: &'a Self) -> Vec<EntryDifference<'a>> {
        let (mut old, mut new) = (self.entries(), other.entries());
        let mut all = Vec::new();
        loop {
            let order = match (old.first(), new.first()) {
                (None, None) => return all,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(one), Some(other)) => one.path.cmp(&other.path),
            };
            let one = if order.is_le() { old.split_off_first() } else { None };
            let other = if order.is_ge() { new.split_off_first() } else { None };
            if one != other {
                let path = one.or(other).map(|entry| &*entry.path).unwrap_or_default();
                let entries = [one, other].map(|entry| entry.map(|entry| &entry.kind));
                all.push(EntryDifference { path, entries });
            }
        }
    }
}

impl fmt::Display for EntryDifference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.entries {
            [Some(_), None] => "is missing",
            [None, _] => "was added",
            [Some(_), Some(_)] => "was changed",
        };
        write!(f, "{} {what}", shown(self.path))
    }
}
