//! Giving files other names: linking and moving.
//!
//! Each of these may be done on the server of a network file system and reported as failed. What was done is recognised by
//! device and inode, and not done again.

use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, RenameFlags, linkat, renameat, renameat_with, symlinkat};
use rustix::io::Errno;

use super::files::{allow, set_mode};
use super::{Disk, FileId, Metadata, Result, StorageError, found, stat};

/// The result of giving a file a second name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linked {
    /// The name was free.
    New,
    /// It leads to that file already. Over a network, the link may have been made and reported as failed.
    Same,
    /// It leads to something else.
    Taken,
}

impl Disk {
    /// Gives a file a second name; returns whether it has that now. A link is not followed.
    pub(crate) fn link(&self, from: &Path, to: &Path) -> Result<bool> {
        Ok(self.link_as(from, to)? != Linked::Taken)
    }

    /// Gives a file a second name. A local file system is not asked whether a name that is taken leads to the same file.
    pub(crate) fn link_as(&self, from: &Path, to: &Path) -> Result<Linked> {
        let link = || {
            let (from, to) = (self.spot(from)?, self.spot(to)?);
            let flags = AtFlags::empty();
            Ok(linkat(&from.directory, from.name, &to.directory, to.name, flags)?)
        };
        self.attempt_again("link to", to, |again| match self.again(&[from, to], link) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_same = (again || self.is_on_network())
                    && self
                        .id_now(to)?
                        .is_some_and(|id| Some(id) == self.id_now(from).ok().flatten());
                Ok(if is_same { Linked::Same } else { Linked::Taken })
            }
            linked => linked.map(|()| Linked::New),
        })
    }

    /// Tries whether a hard link is the same file under another name, and is refused if the name is taken: one file gets it, and
    /// another one tries to.
    pub(crate) fn links_refuse(&self, [one, other]: [&Path; 2], name: &Path) -> bool {
        let is_one = || Ok::<_, StorageError>(self.id(name)? == self.id(one)?);
        let refuse = || {
            Ok::<_, StorageError>(self.link(one, name)? && !self.link(other, name)? && is_one()?)
        };
        // Where nothing can be linked, there are no leases.
        let refuse = refuse().unwrap_or(false);
        drop(self.remove(name));
        refuse
    }

    /// The device and inode of a file, if it exists.
    fn id_now(&self, path: &Path) -> io::Result<Option<FileId>> {
        Ok(found(self.at(path, stat))?.map(|stat| (stat.st_dev, stat.st_ino)))
    }

    /// The device and inode of a file that is going to be moved on a network file system.
    fn id_to_move(&self, path: &Path) -> Option<FileId> {
        if self.is_on_network() { self.id_now(path).ok().flatten() } else { None }
    }

    /// Links to a file, or copies it where the system refuses to link to a file of another user
    /// (`fs.protected_hardlinks`). Returns whether the new name was free.
    pub(crate) fn link_or_copy(&self, from: &Path, to: &Path) -> Result<bool> {
        match self.link(from, to) {
            Err(error) if error.may_not_write() => self.copy(from, to).map(|_| true),
            linked => linked,
        }
    }

    /// Gives an entry that is going to be replaced another name. A directory is moved, since it has
    /// only one name.
    pub(crate) fn quarantine(&self, from: &Path, to: &Path) -> Result<()> {
        match self.metadata(from)? {
            Some(metadata) if metadata.is_dir() => self.rename(from, to).map(drop),
            _ => self.link_or_copy(from, to).map(drop),
        }
    }

    /// Moves a file; replaces any file at the new path. Returns whether there was a file to move.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<bool> {
        let rename = || {
            let (from, to) = (self.spot(from)?, self.spot(to)?);
            Ok(renameat(&from.directory, from.name, &to.directory, to.name)?)
        };
        let before = self.id_to_move(from);
        let moved = self.attempt_again("move to", to, |again| {
            self.or_gone(from, self.moving(from, to, rename).map(|()| true), || {
                self.was_moved(again, before, to)
            })
        });
        self.close_moved(&[from]);
        moved
    }

    /// Moves a file unless something has the new name. Returns whether the name was free.
    ///
    /// A file that does not exist is not moved; that returns true.
    pub(crate) fn rename_new(&self, from: &Path, to: &Path) -> Result<bool> {
        let exists = |path: &Path| Ok::<_, io::Error>(self.id_now(path)?.is_some());
        let rename = || {
            let (old, new) = (self.spot(from)?, self.spot(to)?);
            let flags = RenameFlags::NOREPLACE;
            match renameat_with(&old.directory, old.name, &new.directory, new.name, flags) {
                // Network file systems do not support the flag.
                Err(Errno::INVAL) if exists(to)? => return Ok(!exists(from)?),
                Err(Errno::INVAL) => {
                    match renameat(&old.directory, old.name, &new.directory, new.name) {
                        // A directory has got the name since, or was not visible.
                        Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(!exists(from)?),
                        moved => moved?,
                    }
                }
                Err(Errno::EXIST | Errno::NOTEMPTY) => return Ok(!exists(from)?),
                moved => moved?,
            }
            Ok(true)
        };
        let moved = self.attempt("move to", to, || {
            self.or_gone(from, self.moving(from, to, rename), || Ok(true))
        });
        self.close_moved(&[from]);
        moved
    }

    /// What to return if there was no file to move. On a network file system, a file that does exist was not visible, or
    /// the directory that it is moved to.
    fn or_gone<T>(
        &self,
        from: &Path,
        moved: io::Result<T>,
        gone: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        match moved {
            Err(error) if super::is_absent(&error) => {
                if self.is_on_network() {
                    self.close_removed(&[from]);
                    if self.id_now(from)?.is_some() {
                        return Err(error);
                    }
                }
                gone()
            }
            moved => moved,
        }
    }

    /// Whether an earlier attempt has moved a file, and was reported as failed.
    pub(super) fn was_moved(
        &self,
        again: bool,
        before: Option<FileId>,
        to: &Path,
    ) -> io::Result<bool> {
        Ok(again && before.is_some() && self.id_now(to)? == before)
    }

    /// Moves something. A read-only directory is made writable for that, since its entry for the
    /// directory above it changes.
    fn moving<T>(&self, from: &Path, to: &Path, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match self.again(&[from, to], &act) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let mode = Metadata::from(&self.at(from, stat)?);
                if !mode.is_dir() || mode.mode() & 0o200 != 0 {
                    return Err(error);
                }
                self.at(from, |dir, name| allow(dir, name, 0o200))?;
                let moved = act();
                let now = if moved.is_ok() { to } else { from };
                self.at(now, |dir, name| set_mode(dir, name, |_| mode.mode()))?;
                moved
            }
            moved => moved,
        }
    }

    /// Exchanges two files or directories. Returns false if one does not exist, or the file system
    /// cannot exchange.
    pub(crate) fn exchange(&self, one: &Path, other: &Path) -> Result<bool> {
        let before = self.id_to_move(one);
        let exchanged = self.attempt_again("move to", other, |again| {
            if self.was_moved(again, before, other)? {
                return Ok(true);
            }
            let (here, there) = (self.spot(one)?, self.spot(other)?);
            let flags = RenameFlags::EXCHANGE;
            match renameat_with(&here.directory, here.name, &there.directory, there.name, flags) {
                Err(Errno::INVAL | Errno::NOENT) => Ok(false),
                exchanged => Ok(exchanged.map(|()| true)?),
            }
        });
        self.close_moved(&[one, other]);
        exchanged
    }

    /// Creates a symbolic link.
    pub(crate) fn symbolic_link(&self, target: &Path, path: &Path) -> Result<()> {
        let make = || self.at(path, |dir, name| Ok(symlinkat(target, dir, name)?));
        self.attempt_again("make the link", path, |again| match make() {
            Err(error) if again && error.kind() == io::ErrorKind::AlreadyExists => {
                if self.target_now(path).is_ok_and(|made| made == target) {
                    Ok(())
                } else {
                    Err(error)
                }
            }
            made => made,
        })
    }
}
