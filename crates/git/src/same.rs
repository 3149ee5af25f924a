//! Identical directories of a commit: those at the same path, and those of the same tree if they
//! have no links.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::rc::Rc;

use gix::ObjectId;
use gix::objs::tree::EntryKind;

use super::snapshot_error::SnapshotError;
use super::tree_path::{PathStep, TreeEntries};

/// The known facts of the directories of a commit.
#[derive(Debug, Default)]
pub(super) struct SameDirectories {
    /// Whether trees hold links or submodules, themselves or anywhere below.
    linked: RefCell<gix::hashtable::HashMap<ObjectId, bool>>,
    /// The numbers of places, by that of the directory around and the name in it.
    places: RefCell<HashMap<(u32, OsString), u32>>,
}

impl SameDirectories {
    /// Whether a directory holds links or submodules, itself or anywhere below.
    pub(super) fn is_linked(
        &self,
        step: &PathStep,
        read_tree: impl Fn(ObjectId) -> Result<Rc<TreeEntries>, SnapshotError>,
    ) -> Result<bool, SnapshotError> {
        if !step.plain.get() {
            let first = self.linked.borrow().is_empty();
            step.plain.set(!self.look_for_links(step.id, read_tree)?);
            if first && step.plain.get() {
                // Directories below it are not visited any more: it is plain as well.
                self.linked.take();
            }
        }
        Ok(!step.plain.get())
    }

    fn look_for_links(
        &self,
        root: ObjectId,
        read_tree: impl Fn(ObjectId) -> Result<Rc<TreeEntries>, SnapshotError>,
    ) -> Result<bool, SnapshotError> {
        let mut stack = vec![root];
        while let Some(&id) = stack.last() {
            if self.linked.borrow().contains_key(&id) {
                stack.pop();
                continue;
            }
            let entries = read_tree(id)?;
            let (mut linked, mut open) = (false, false);
            for (_, kind, below) in entries.iter() {
                match kind {
                    EntryKind::Link | EntryKind::Commit => linked = true,
                    EntryKind::Tree => match self.linked.borrow().get(below) {
                        Some(known) => linked |= known,
                        None => {
                            stack.push(*below);
                            open = true;
                        }
                    },
                    EntryKind::Blob | EntryKind::BlobExecutable => {}
                }
            }
            if linked || !open {
                self.linked.borrow_mut().insert(id, linked);
            }
        }
        Ok(self.linked.borrow().get(&root).copied().unwrap_or(true))
    }

    /// The number of a directory's place: no other place has it.
    pub(super) fn number(&self, directory: &PathStep) -> u32 {
        let mut unknown = Vec::new();
        let mut number = 0;
        for step in directory.upwards().filter(|step| step.above.is_some()) {
            if let Some(known) = step.number.get() {
                number = known;
                break;
            }
            unknown.push(step);
        }
        let mut places = self.places.borrow_mut();
        for step in unknown.into_iter().rev() {
            let next = places.len() as u32 + 1;
            number = *places.entry((number, step.name.clone())).or_insert(next);
            step.number.set(Some(number));
        }
        number
    }
}
