//! What is known of a file without reading it.

use std::fs::File;
use std::io;

use rustix::fs::{FileType, Stat, fstat};

use crate::cache::FileStat;

/// What tells a file from every other one, whatever its name: device and inode.
pub type FileId = (u64, u64);

/// What is known of a file without reading it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metadata {
    stat: FileStat,
    mode: u32,
    links: u64,
}

impl From<&Stat> for Metadata {
    fn from(stat: &Stat) -> Self {
        Self { stat: FileStat::from(stat), mode: stat.st_mode, links: stat.st_nlink }
    }
}

impl Metadata {
    /// Asks for what is known of an open file.
    pub(in crate::storage) fn of(file: &File) -> io::Result<Self> {
        Ok(Self::from(&fstat(file)?))
    }

    /// What shows that the file was changed, if it was.
    pub(in crate::storage) const fn stat(&self) -> FileStat {
        self.stat
    }

    /// Which file it is.
    pub(crate) const fn id(&self) -> FileId {
        self.stat.id()
    }

    /// How many bytes it has.
    pub(in crate::storage) const fn len(&self) -> u64 {
        self.stat.size
    }

    /// When it was last written, in nanoseconds since 1970.
    pub(crate) const fn modified_ns(&self) -> i64 {
        self.stat.modified_ns
    }

    /// Who may do what with it.
    pub(in crate::storage) const fn mode(&self) -> u32 {
        self.mode & 0o7777
    }

    /// How many names it has.
    pub(in crate::storage) const fn links(&self) -> u64 {
        self.links
    }

    /// What it is.
    pub(super) const fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// Whether it is a plain file.
    pub(in crate::storage) fn is_file(&self) -> bool {
        self.kind() == FileType::RegularFile
    }

    /// Whether it is a symbolic link.
    pub(crate) fn is_link(&self) -> bool {
        self.kind() == FileType::Symlink
    }

    /// Whether it is a directory.
    pub(in crate::storage) fn is_dir(&self) -> bool {
        self.kind() == FileType::Directory
    }
}
