//! Metadata of a file or directory, without its contents.

use std::fs::File;
use std::io;

use rustix::fs::{FileType, Stat, fstat};
use rustix::process::geteuid;

use ce_files::cache::FileStat;
use ce_files::manifest::Scan;

/// The identity of a file, regardless of its name: device and inode.
pub type FileId = (u64, u64);

/// The metadata of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metadata {
    stat: FileStat,
    mode: u32,
    links: u64,
    owner: u32,
}

impl From<&Stat> for Metadata {
    fn from(stat: &Stat) -> Self {
        Self {
            stat: FileStat::from(stat),
            mode: stat.st_mode,
            links: stat.st_nlink,
            owner: stat.st_uid,
        }
    }
}

impl Metadata {
    /// Reads the metadata of an open file.
    pub(crate) fn read(file: &File) -> io::Result<Self> {
        Ok(Self::from(&fstat(file)?))
    }

    /// The stat of the file, which differs after a change of the file.
    pub(crate) const fn stat(&self) -> FileStat {
        self.stat
    }

    /// The device and inode of the file.
    pub(crate) const fn id(&self) -> FileId {
        self.stat.id()
    }

    /// The size in bytes.
    pub(crate) const fn len(&self) -> u64 {
        self.stat.size
    }

    /// The time of the last write, in nanoseconds since 1970.
    pub(crate) const fn modified_ns(&self) -> i64 {
        self.stat.modified_ns
    }

    /// The permission bits.
    pub(crate) const fn mode(&self) -> u32 {
        self.mode & 0o7777
    }

    /// The number of hard links.
    pub(crate) const fn links(&self) -> u64 {
        self.links
    }

    /// The user id of its owner.
    pub(crate) const fn owner(&self) -> u32 {
        self.owner
    }

    /// The owner of a directory, if it is another user: the directory may be closed to this user, who is not root.
    pub(crate) fn another_owner(&self) -> Option<u32> {
        let user = geteuid();
        (self.is_dir() && !user.is_root() && self.owner != user.as_raw()).then_some(self.owner)
    }

    /// The type of the file.
    pub(super) const fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// Whether it is a plain file.
    pub(crate) fn is_file(&self) -> bool {
        self.kind() == FileType::RegularFile
    }

    /// Whether it is a symbolic link.
    pub(crate) fn is_link(&self) -> bool {
        self.kind() == FileType::Symlink
    }

    /// Whether it is a directory.
    pub(crate) fn is_dir(&self) -> bool {
        self.kind() == FileType::Directory
    }
}

/// A file or directory that was looked at, and not read.
#[derive(Debug)]
pub(crate) enum ValueMetadata {
    /// A plain file.
    File(Metadata),
    /// A directory, with everything in it.
    Directory(Scan, Metadata),
    /// Something else, which is not a value.
    Other,
}
