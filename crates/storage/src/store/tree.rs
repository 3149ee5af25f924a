//! Exported trees of computations, for execution: `trees/TREE/`, created once, read-only.
//!
//! The name of a tree determines its contents. This module does not verify them.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::disk::{FileId, Result, Root};
use crate::layout::{QUARANTINE, TREES};
use ce_model::digest::ObjectId;

/// A directory that is being filled with the files of a tree, and becomes visible when it is
/// complete.
#[derive(Debug)]
pub struct NewTree<'a> {
    root: &'a Root,
    room: PathBuf,
    /// It will be published, so its files must be flushed.
    shared: bool,
}

/// The kind of entry under the name of a tree.
#[derive(Debug)]
pub enum FoundTree {
    /// A directory with unverified contents.
    Directory(OpenTree),
    /// Something else.
    Other,
}

/// A directory that is open for reading.
#[derive(Debug)]
pub struct OpenTree {
    directory: OwnedFd,
    /// Its device and inode.
    pub id: FileId,
}

impl OpenTree {
    /// A path that leads to this directory while it is open, even if another one has its name now.
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

    /// The directory of a tree, which need not exist.
    pub fn path(&self, tree: &ObjectId) -> PathBuf {
        self.root.path(&self.name(tree))
    }

    /// Returns the entry under the name of a tree, if there is one.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read, or the entry is behind a link.
    pub fn find(&self, tree: &ObjectId) -> Result<Option<FoundTree>> {
        let (path, disk) = (self.path(tree), &self.root.disk);
        // A collection may just have taken it away.
        let found = disk.look_anew(&path, || disk.metadata(&path))?;
        let Some(metadata) = found else { return Ok(None) };
        if !metadata.is_dir() {
            return Ok(Some(FoundTree::Other));
        }
        Ok(self.open(&path)?.map(FoundTree::Directory))
    }

    /// Opens the directory of a tree, or a private one; `None` if it is not there.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read, or something else is there.
    pub fn open(&self, path: &Path) -> Result<Option<OpenTree>> {
        let opened = self.root.disk.open_directory(path)?;
        Ok(opened.map(|(directory, id)| OpenTree { directory, id }))
    }

    /// Creates an empty directory for a tree.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn create(&self) -> Result<NewTree<'a>> {
        self.create_in(&self.root.private_name(), true)
    }

    /// Creates an empty directory of this name for a tree that only this run uses. It is removed at
    /// the end of the run.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn create_private(&self, name: &str) -> Result<NewTree<'a>> {
        self.create_in(&format!("{}/{name}", self.root.private_name()), false)
    }

    /// Removes a private directory that is not used any more.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn remove_private(&self, path: &Path) -> Result<()> {
        self.root.disk.remove_tree(path.parent().unwrap_or(path))
    }

    fn create_in(&self, room: &str, shared: bool) -> Result<NewTree<'a>> {
        let room = self.root.place(room)?;
        self.root.disk.make_dir(&room)?;
        Ok(NewTree { root: self.root, room, shared })
    }
}

impl<'a> NewTree<'a> {
    /// A private directory that exists and is empty.
    pub(super) fn private(root: &'a Root, room: &Path) -> Self {
        Self { root, room: room.to_owned(), shared: false }
    }

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

    /// The path of the directory until it is published.
    pub fn path(&self) -> &Path {
        &self.room
    }

    /// Makes the directory visible, unless there is one already. Returns whether it did.
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

    /// Makes the directory visible in place of one with wrong contents, which is moved to
    /// quarantine. Others may be using that, so there is a directory at any moment if the file
    /// system can exchange two. Returns false if another run was faster.
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
