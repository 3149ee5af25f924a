//! Computations as a commit records them, for running them: `trees/TREE/`, made once, read-only.
//!
//! What a tree must contain, its name says; whether it does is not known here.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::digest::ObjectId;
use crate::storage::disk::{FileId, Result, Root};
use crate::storage::layout::{QUARANTINE, TREES};

/// A directory that is filled with the files of a tree, and seen by nobody else until it is whole.
#[derive(Debug)]
pub struct NewTree<'a> {
    root: &'a Root,
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

/// The trees of computations in a storage.
#[derive(Clone, Copy, Debug)]
pub struct StoredTrees<'a> {
    root: &'a Root,
}

impl<'a> StoredTrees<'a> {
    pub(super) const fn new(root: &'a Root) -> Self {
        Self { root }
    }

    /// The name of the directory of a tree.
    pub fn name(&self, tree: &ObjectId) -> String {
        format!("{TREES}/{}", tree.full())
    }

    /// Where the files of a tree are, or would be.
    pub fn path(&self, tree: &ObjectId) -> PathBuf {
        self.root.path(&self.name(tree))
    }

    /// Returns what is in the place of a tree, if anything is.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read, or the place is behind a link.
    pub fn find(&self, tree: &ObjectId) -> Result<Option<FoundTree>> {
        let path = self.path(tree);
        let Some(metadata) = self.root.disk.metadata(&path)? else { return Ok(None) };
        if !metadata.is_dir() {
            return Ok(Some(FoundTree::Other));
        }
        let opened = self.root.disk.open_directory(&path)?;
        Ok(opened.map(|(directory, id)| FoundTree::Directory(OpenTree { directory, id })))
    }

    /// Begins to make the directory of a tree.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn create(&self) -> Result<NewTree<'a>> {
        self.create_in(&self.root.private_name(), true)
    }

    /// Begins to make a directory of this name with the files of a tree, which nobody but this run
    /// uses. It goes with the run.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn create_private(&self, name: &str) -> Result<NewTree<'a>> {
        self.create_in(&format!("{}/{name}", self.root.private_name()), false)
    }

    fn create_in(&self, room: &str, shared: bool) -> Result<NewTree<'a>> {
        let room = self.root.place(room)?;
        self.root.disk.make_dir(&room)?;
        Ok(NewTree { root: self.root, room, shared })
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
        self.root.disk.write_sealed(&path, contents, if executable { 0o555 } else { 0o444 })?;
        if self.shared {
            self.root.unsynced.note(&path);
        }
        Ok(())
    }

    /// Adds a symbolic link.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be made.
    pub fn link(&self, path: &Path, target: &Path) -> Result<()> {
        self.root.disk.symbolic_link(target, &self.place(path)?)
    }

    fn place(&self, path: &Path) -> Result<PathBuf> {
        let path = self.room.join(path);
        let dir = path.parent().unwrap_or(&self.room);
        self.root.disk.make_dirs(dir)?;
        if self.shared {
            self.root.unsynced.note(dir);
        }
        Ok(path)
    }

    /// Returns the device and inode of the directory.
    ///
    /// # Errors
    ///
    /// Fails if it is gone.
    pub fn id(&self) -> Result<FileId> {
        self.root.id_of(&self.room)
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
        self.root.flush()?;
        let place = self.root.place(&StoredTrees::new(self.root).name(tree))?;
        let first = self.root.disk.rename_new(&self.room, &place)?;
        if first {
            self.root.unsynced.note_entry(&place);
        } else {
            self.root.disk.remove_tree(&self.room)?;
        }
        Ok(first)
    }

    /// Makes the directory visible in place of one that does not contain what its name says, which is
    /// moved to quarantine. Others may be using it: there is one at any moment, if the file system can exchange
    /// two. Returns false if somebody else was faster.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn replace(self, tree: &ObjectId) -> Result<bool> {
        self.root.flush()?;
        let place = StoredTrees::new(self.root).path(tree);
        let room = self.root.quarantine_room(&format!("{TREES}/{QUARANTINE}/{}", tree.full()));
        let quarantine = self.root.place(&room)?;
        if self.root.disk.exchange(&self.room, &place)? {
            self.root.unsynced.note_entry(&place);
            self.root.disk.rename(&self.room, &quarantine)?;
            return Ok(true);
        }
        self.root.disk.rename(&place, &quarantine)?;
        self.publish(tree)
    }
}
