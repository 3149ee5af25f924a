//! The rules that a manifest must obey: only entries that a directory can have, in their order.

use super::entry::{EntryKind, HEADER, ManifestEntry};
use super::path::{LinkFault, PathFault, check_link, check_path, shown};

/// Why a text is not a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct ManifestError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The fault.
    pub fault: ManifestFault,
}

/// A fault of a line of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestFault {
    /// The text does not begin as a manifest.
    #[error("expected {HEADER:?}")]
    Header,
    /// The text ends within a line.
    #[error("the newline at its end is missing")]
    Cut,
    /// It is none of the lines of a manifest.
    #[error(
        "expected \"file SIZE SHA1 BLAKE3 PATH\", the same with exec, \"link TARGET<tab>PATH\" or \"dir PATH\""
    )]
    Form,
    /// A `\` is not followed by `xHH`.
    #[error("a \\ does not begin \\xHH")]
    Escape,
    /// The line could be understood, and is written in another way.
    #[error("not written as manifests are; expected {0:?}")]
    Spelling(String),
    /// No entry has such a path.
    #[error("the path {} {fault}", shown(path))]
    Path {
        /// The path.
        path: Box<[u8]>,
        /// The fault.
        fault: PathFault,
    },
    /// The link leads out of the directory.
    #[error("the link {} leads to {}, {fault}", shown(path), shown(target))]
    Link {
        /// Its path.
        path: Box<[u8]>,
        /// Its target.
        target: Box<[u8]>,
        /// The fault.
        fault: LinkFault,
    },
    /// The path is that of the line before.
    #[error("the path {} occurs twice", shown(.0))]
    Duplicate(Box<[u8]>),
    /// The path is less than that of the line before.
    #[error("the path {} must come before that of the previous line", shown(.0))]
    PathOrder(Box<[u8]>),
    /// A path that leads through an entry that is not a directory, or an empty one.
    #[error("the path {} leads through {}, an entry of its own", shown(path), shown(through))]
    Through {
        /// The path.
        path: Box<[u8]>,
        /// The path of the other entry.
        through: Box<[u8]>,
    },
}

/// Checks an entry for itself.
pub(super) fn check_entry<C>(entry: &ManifestEntry<C>) -> Result<(), ManifestFault> {
    let path = &entry.path;
    check_path(path).map_err(|fault| ManifestFault::Path { path: path.clone(), fault })?;
    if let EntryKind::Link { target } = &entry.kind {
        check_link(path, target).map_err(|fault| ManifestFault::Link {
            path: path.clone(),
            target: target.clone(),
            fault,
        })?;
    }
    Ok(())
}

/// Checks entries against those before them.
///
/// Between `a` and `a/b` there may be others, such as `a.c`. All of them begin with the bytes of `a`, so
/// it is enough to remember the entries whose paths the last path begins with.
#[derive(Debug, Default)]
pub(super) struct PathOrder {
    /// The numbers of these entries; the path of each begins with that of the one before.
    beginnings: Vec<usize>,
}

impl PathOrder {
    /// Checks the path of the entry that follows these.
    pub(super) fn check<C>(
        &mut self,
        before: &[ManifestEntry<C>],
        entry: &ManifestEntry<C>,
    ) -> Result<(), ManifestFault> {
        let path = &entry.path;
        match before.last().map(|last| last.path.cmp(path)) {
            None | Some(std::cmp::Ordering::Less) => {}
            Some(std::cmp::Ordering::Equal) => return Err(ManifestFault::Duplicate(path.clone())),
            Some(std::cmp::Ordering::Greater) => {
                return Err(ManifestFault::PathOrder(path.clone()));
            }
        }
        let begins = |at: &usize| path.starts_with(&before[*at].path);
        while self.beginnings.last().is_some_and(|at| !begins(at)) {
            self.beginnings.pop();
        }
        let is_through = |at: &&usize| path.get(before[**at].path.len()) == Some(&b'/');
        if let Some(at) = self.beginnings.iter().find(is_through) {
            let (path, through) = (path.clone(), before[*at].path.clone());
            return Err(ManifestFault::Through { path, through });
        }
        self.beginnings.push(before.len());
        Ok(())
    }
}
