//! Kinds of file systems: whether several hosts may write to one, and whether it has hard links.

use std::env;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, fstatfs, open};

/// What is known of the kinds of file systems, by the numbers that `statfs(2)` and `linux/magic.h` have for them. Of all others
/// nothing is known.
const KINDS: [(u32, FileSystemKind); 21] = [
    (0xef53, LOCAL),           // ext2, ext3, ext4
    (0x5846_5342, LOCAL),      // xfs
    (0x9123_683e, LOCAL),      // btrfs
    (0x2fc1_2fc1, LOCAL),      // zfs
    (0xf2f5_2010, LOCAL),      // f2fs
    (0xca45_1a4e, LOCAL),      // bcachefs
    (0x0102_1994, LOCAL),      // tmpfs
    (0x8584_58f6, LOCAL),      // ramfs
    (0x794c_7630, LOCAL),      // overlay
    (0xf15f, LOCAL),           // ecryptfs
    (0x6969, NETWORK),         // nfs
    (0x0bd0_0bd0, NETWORK),    // lustre
    (0x4750_4653, NETWORK),    // gpfs
    (0x00c3_6400, NETWORK),    // ceph
    (0x1983_0326, NETWORK),    // beegfs
    (0x5346_414f, NETWORK),    // afs
    (0x6b41_4653, NETWORK),    // afs
    (0xff53_4d42, UNRELIABLE), // cifs
    (0xfe53_4d42, UNRELIABLE), // smb2
    (0x0102_1997, UNRELIABLE), // 9p
    (0x6573_5546, UNRELIABLE), // fuse
];

/// One of this host, with hard links that refuse a name that is taken, as records and leases need.
const LOCAL: FileSystemKind = FileSystemKind { is_on_network: false, may_lack_links: false };

/// One that several hosts may write to, with such hard links.
const NETWORK: FileSystemKind = FileSystemKind { is_on_network: true, may_lack_links: false };

/// One that several hosts may write to, and that may lack such hard links.
const UNRELIABLE: FileSystemKind = FileSystemKind { is_on_network: true, may_lack_links: true };

/// One of which nothing is known.
const UNKNOWN: FileSystemKind = FileSystemKind { is_on_network: false, may_lack_links: true };

/// What is known of the file system of a directory by its kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileSystemKind {
    /// It may show late what other hosts have written.
    pub(super) is_on_network: bool,
    /// Whether its hard links are what leases need can only be tried.
    pub(super) may_lack_links: bool,
}

impl FileSystemKind {
    /// The kind of the file system of a directory that need not exist: that of the nearest one above it.
    pub(super) fn of_nearest(path: &Path) -> Self {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let nearest = path.ancestors().find_map(|dir| open(dir, flags, Mode::empty()).ok());
        nearest.map(Self::of).unwrap_or_default()
    }

    /// The kind of the file system of an open directory. A build with debug assertions obeys `CE_FILE_SYSTEM`, the number of one.
    pub(super) fn of(directory: impl AsFd) -> Self {
        // The numbers have 32 bits; the type that holds them differs between machines.
        let number = fstatfs(directory).ok().map(|stat| stat.f_type as u32);
        let told = if cfg!(debug_assertions) { env::var("CE_FILE_SYSTEM").ok() } else { None };
        let told = told.and_then(|text| u32::from_str_radix(&text, 16).ok());
        let Some(number) = told.or(number) else { return Self::default() };
        KINDS.iter().find(|(known, _)| *known == number).map_or(UNKNOWN, |(_, kind)| *kind)
    }
}

#[cfg(test)]
impl super::Disk {
    /// Takes its file system for one of several hosts.
    pub(crate) const fn put_on_network(&mut self) {
        self.kind = NETWORK;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_kind_one_thing_is_known() {
        let mut numbers: Vec<u32> = KINDS.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), KINDS.len());
        let shared = KINDS.iter().filter(|(_, kind)| kind.is_on_network).count();
        let linking = KINDS.iter().filter(|(_, kind)| !kind.may_lack_links).count();
        assert_eq!((shared, linking), (11, 17));
    }
}
