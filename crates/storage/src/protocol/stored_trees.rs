//! The trees of computations.
//!
//! A tree is exported for execution to `trees/TREE/`, once and read-only. Its name determines its contents, which are not verified
//! here.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use ce_model::digest::ObjectId;

use super::heartbeat::CurrentRun;
use super::private_exports::PrivateExports;
use crate::disk::hash_and_copy::Reading;
use crate::disk::{FileId, Result, Root};
use crate::paths::{QUARANTINE, TREES};

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
    /// The path by which it was opened.
    name: PathBuf,
    /// Its device and inode.
    pub id: FileId,
}

impl OpenTree {
    /// A path that leads to this directory while it is open, even if another directory has its name now. Without `/proc`,
    /// it is its name.
    pub fn path(&self) -> PathBuf {
        let open = PathBuf::from(format!("/proc/self/fd/{}", self.directory.as_raw_fd()));
        if open.exists() { open } else { self.name.clone() }
    }
}

/// The trees of computations in a storage.
#[derive(Clone, Copy, Debug)]
pub struct StoredTrees<'a> {
    root: &'a Root,
    run: &'a CurrentRun,
    private: &'a PrivateExports,
}

/// The name of the directory of a tree.
fn tree_name(tree: &ObjectId) -> String {
    format!("{TREES}/{}", tree.full())
}

impl<'a> StoredTrees<'a> {
    pub(super) const fn new(
        root: &'a Root,
        run: &'a CurrentRun,
        private: &'a PrivateExports,
    ) -> Self {
        Self { root, run, private }
    }

    /// The name of the directory of a tree.
    pub fn name(&self, tree: &ObjectId) -> String {
        tree_name(tree)
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
        let opened = self.root_of(path).disk.open_directory(path)?;
        Ok(opened.map(|(directory, id)| OpenTree { directory, name: path.to_owned(), id }))
    }

    /// The same of a directory that this run has made or found before.
    pub fn reopen(&self, path: &Path) -> Result<Option<OpenTree>> {
        self.root_of(path).disk.surely(|| self.root_of(path).disk.open_directory(path)).map(
            |opened| {
                opened.map(|(directory, id)| OpenTree { directory, name: path.to_owned(), id })
            },
        )
    }

    /// The storage, or the place outside with the private directories of this run.
    fn root_of(&self, path: &Path) -> &'a Root {
        let outside = self.private.known();
        outside.filter(|root| path.starts_with(root.disk.root())).unwrap_or(self.root)
    }

    /// Creates an empty directory for a tree.
    pub fn create(&self) -> Result<NewTree<'a>> {
        create_in(self.root, &self.root.private_name(), true)
    }

    /// Creates an empty directory of this name for a tree that only this run uses, where no other user can change it or lead its
    /// path elsewhere. It is removed at the end of the run.
    pub fn create_private(&self, name: &str) -> Result<NewTree<'a>> {
        let root = self.private.place(self.root, self.run)?;
        create_in(root, &format!("{}/{name}", root.private_name()), false)
    }

    /// Removes a private directory that is not used any more.
    pub fn remove_private(&self, path: &Path) -> Result<()> {
        self.root_of(path).disk.remove_tree(path.parent().unwrap_or(path))
    }
}

fn create_in<'a>(root: &'a Root, room: &str, shared: bool) -> Result<NewTree<'a>> {
    let room = root.place(room)?;
    root.disk.make_dir(&room)?;
    Ok(NewTree { root, room, shared })
}

impl<'a> NewTree<'a> {
    /// A private directory that exists and is empty.
    pub(super) fn private(root: &'a Root, room: &Path) -> Self {
        Self { root, room: room.to_owned(), shared: false }
    }

    /// Adds a file.
    pub fn file(&self, path: &Path, contents: &[u8], executable: bool) -> Result<()> {
        let path = self.place(path)?;
        self.root.disk.write_sealed(&path, contents, if executable { 0o555 } else { 0o444 })?;
        if self.shared {
            self.root.unsynced.note(&path);
        }
        Ok(())
    }

    /// Adds a file with the contents of a user's file. Fails when `stop` is set.
    pub fn copy(
        &self,
        path: &Path,
        from: &Path,
        executable: bool,
        stop: &AtomicBool,
    ) -> Result<()> {
        let path = self.place(path)?;
        let mode = if executable { 0o555 } else { 0o444 };
        Reading::open_unless(stop, from)?.copy_as(&self.root.disk, &path, mode)?;
        if self.shared {
            self.root.unsynced.note(&path);
        }
        Ok(())
    }

    /// Adds a symbolic link.
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
    pub fn id(&self) -> Result<FileId> {
        self.root.id_of(&self.room)
    }

    /// The path of the directory until it is published.
    pub fn path(&self) -> &Path {
        &self.room
    }

    /// Makes the directory visible, unless there is one already. Returns whether it did.
    pub fn publish(self, tree: &ObjectId) -> Result<bool> {
        self.root.flush()?;
        let place = self.root.place(&tree_name(tree))?;
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
    pub fn replace(self, tree: &ObjectId) -> Result<bool> {
        self.root.flush()?;
        let place = self.root.path(&tree_name(tree));
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
