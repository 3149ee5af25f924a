//! Computations as a commit records them, for running them: `trees/TREE/`, made once, read-only.
//!
//! What a tree must contain, its name says; whether it does is not known here.

use std::collections::HashSet;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use super::{FileId, Result, Storage};
use crate::digest::ObjectId;

/// Where trees are.
pub(super) const TREES: &str = "trees";

/// Where those are that were changed.
const ASIDE: &str = "aside";

/// A directory that is filled with the files of a tree, and seen by nobody else until it is whole.
#[derive(Debug)]
pub struct NewTree<'a> {
    storage: &'a Storage,
    room: PathBuf,
    /// It is to be published, so its files are to be flushed.
    shared: bool,
}

/// The kind of entry in the place of a tree.
#[derive(Debug)]
pub enum FoundTree {
    /// A directory, which may contain anything.
    Directory(OpenTree),
    /// Something else.
    Other,
}

/// A directory that was opened to be read.
#[derive(Debug)]
pub struct OpenTree {
    directory: OwnedFd,
    /// Its device and inode.
    pub id: FileId,
}

impl OpenTree {
    /// A path that leads to this directory, whatever has its name by now, as long as this is there.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.directory.as_raw_fd()).into()
    }
}

impl Storage {
    /// The name of the directory of a tree.
    pub fn tree_name(&self, tree: &ObjectId) -> String {
        format!("{TREES}/{}", tree.full())
    }

    /// Where the files of a tree are, or would be.
    pub fn tree(&self, tree: &ObjectId) -> PathBuf {
        self.path(&self.tree_name(tree))
    }

    /// Returns what is in the place of a tree, if anything is.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read, or the place is behind a link.
    pub fn find_tree(&self, tree: &ObjectId) -> Result<Option<FoundTree>> {
        let path = self.tree(tree);
        let Some(metadata) = self.disk.metadata(&path)? else { return Ok(None) };
        if !metadata.is_dir() {
            return Ok(Some(FoundTree::Other));
        }
        let opened = self.disk.open_directory(&path)?;
        Ok(opened.map(|(directory, id)| FoundTree::Directory(OpenTree { directory, id })))
    }

    /// Begins to make the directory of a tree.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn new_tree(&self) -> Result<NewTree<'_>> {
        self.tree_in(&self.private_name(), true)
    }

    /// Begins to make a directory of this name with the files of a tree, which nobody but this run
    /// uses. It goes with the run.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn private_tree(&self, name: &str) -> Result<NewTree<'_>> {
        self.tree_in(&format!("{}/{name}", self.private_name()), false)
    }

    fn tree_in(&self, room: &str, shared: bool) -> Result<NewTree<'_>> {
        let room = self.place(room)?;
        self.disk.make_dir(&room)?;
        Ok(NewTree { storage: self, room, shared })
    }
}

impl Storage {
    /// Removes the directories of trees that nobody uses now, but for those that are to be kept.
    /// Whoever needs one makes it again.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read or written.
    pub fn collect_trees(&self, keep: &HashSet<&str>) -> Result<()> {
        let trees = self.own(TREES)?.into_iter();
        for tree in trees.filter(|tree| tree != ASIDE && !keep.contains(tree.as_str())) {
            let name = format!("{TREES}/{tree}");
            if self.gc_roots()?.has_file(&name) {
                continue;
            }
            let aside = self.place(&self.private_name())?;
            if self.disk.rename(&self.path(&name), &aside)? {
                // A run that looks now makes it again; one that has looked before has announced that.
                if self.gc_roots()?.has_file(&name) {
                    self.disk.rename_new(&aside, &self.path(&name))?;
                }
                self.disk.remove_tree(&aside)?;
            }
        }
        Ok(())
    }
}

impl NewTree<'_> {
    /// Adds a file.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn file(&self, path: &Path, contents: &[u8], executable: bool) -> Result<()> {
        let path = self.place(path)?;
        self.storage.disk.write_sealed(&path, contents, if executable { 0o555 } else { 0o444 })?;
        if self.shared {
            self.storage.unsynced.note(&path);
        }
        Ok(())
    }

    /// Adds a symbolic link.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be made.
    pub fn link(&self, path: &Path, target: &Path) -> Result<()> {
        self.storage.disk.symbolic_link(target, &self.place(path)?)
    }

    fn place(&self, path: &Path) -> Result<PathBuf> {
        let path = self.room.join(path);
        let dir = path.parent().unwrap_or(&self.room);
        self.storage.disk.make_dirs(dir)?;
        if self.shared {
            self.storage.unsynced.note(dir);
        }
        Ok(path)
    }

    /// Returns the device and inode of the directory.
    ///
    /// # Errors
    ///
    /// Fails if it is gone.
    pub fn id(&self) -> Result<FileId> {
        self.storage.id_of(&self.room)
    }

    /// Where the directory is until it is published.
    pub fn path(&self) -> &Path {
        &self.room
    }

    /// Makes the directory visible, unless somebody else was faster. Returns whether nobody was.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn publish(self, tree: &ObjectId) -> Result<bool> {
        self.storage.flush()?;
        let place = self.storage.place(&self.storage.tree_name(tree))?;
        let first = self.storage.disk.rename_new(&self.room, &place)?;
        if first {
            self.storage.unsynced.note_entry(&place);
        } else {
            self.storage.disk.remove_tree(&self.room)?;
        }
        Ok(first)
    }

    /// Makes the directory visible in place of one that does not contain what its name says, and sets
    /// that aside. Others may be using it: there is one at any moment, if the file system can exchange
    /// two. Returns false if somebody else was faster.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn replace(self, tree: &ObjectId) -> Result<bool> {
        self.storage.flush()?;
        let place = self.storage.tree(tree);
        let aside = self.storage.aside_room(&format!("{TREES}/{ASIDE}/{}", tree.full()));
        let aside = self.storage.place(&aside)?;
        if self.storage.disk.exchange(&self.room, &place)? {
            self.storage.unsynced.note_entry(&place);
            self.storage.disk.rename(&self.room, &aside)?;
            return Ok(true);
        }
        self.storage.disk.rename(&place, &aside)?;
        self.publish(tree)
    }
}
