//! The difference between two trees by file, as in `git diff --stat`.

use std::path::PathBuf;

use gix::diff::blob::{Algorithm, Diff, InternedInput};

use super::trees::{FileEntry, Trees, blob, listing};
use super::{GitResult, from};
use ce_model::digest;

/// The number of bytes that are searched for zero bytes, as by Git.
const LOOKED_AT: usize = 8000;

/// A file that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its path in the trees.
    pub path: PathBuf,
    /// The numbers of inserted and deleted lines; `None` if it is not a text.
    pub lines: Option<LineCounts>,
}

/// The numbers of inserted and deleted lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Lines that only the new file has.
    pub inserted: u32,
    /// Lines that only the old file had.
    pub deleted: u32,
}

impl Trees {
    /// Returns the files that differ between an old tree and a new one, in the order of their
    /// paths; `None` if a tree is not there. A file under a new name is a new file.
    ///
    /// # Errors
    ///
    /// Fails if Git's data cannot be read.
    pub fn diff(&self, [old, new]: [&digest::ObjectId; 2]) -> GitResult<Option<Vec<FileChange>>> {
        self.with(|repositories| {
            for tree in [old, new] {
                if repositories.having(from(tree)?)?.is_none() {
                    return Ok(None);
                }
            }
            let read = |entry: Option<FileEntry>| match entry {
                Some((_, id)) => blob(repositories, id),
                None => Ok(Vec::new()),
            };
            let mut removed = listing(repositories, old)?;
            let mut changes = Vec::new();
            for (path, new) in listing(repositories, new)? {
                let old = removed.remove(&path);
                if old != Some(new) {
                    changes.push(FileChange { path, lines: lines(&read(old)?, &read(Some(new))?) });
                }
            }
            for (path, old) in removed {
                changes.push(FileChange { path, lines: lines(&read(Some(old))?, b"") });
            }
            changes.sort_unstable_by(|one, other| one.path.cmp(&other.path));
            Ok(Some(changes))
        })
    }
}

/// Counts the inserted and deleted lines between two texts; `None` if one is not a text.
fn lines(old: &[u8], new: &[u8]) -> Option<LineCounts> {
    let binary = |contents: &[u8]| contents.iter().take(LOOKED_AT).any(|byte| *byte == 0);
    if binary(old) || binary(new) {
        return None;
    }
    let diff = Diff::compute(Algorithm::MyersMinimal, &InternedInput::new(old, new));
    Some(LineCounts { inserted: diff.count_additions(), deleted: diff.count_removals() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_what_is_no_text_has_none() {
        let counted = |old: &str, new: &str| {
            lines(old.as_bytes(), new.as_bytes()).map(|it| (it.inserted, it.deleted))
        };
        assert_eq!(counted("a\nb\nc\n", "a\nB\nc\nd\n"), Some((2, 1)));
        assert_eq!(counted("", "a\n"), Some((1, 0)));
        assert_eq!(counted("a\n", "a"), Some((1, 1)));
        assert_eq!(counted("a\n", "a\0"), None);
    }
}
