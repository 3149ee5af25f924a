//! Kinds of file systems and their known properties, for runs, collections and probes.

use std::env;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, fstatfs, open};

/// The known kinds of file systems, by the numbers that `statfs(2)` and `linux/magic.h` have for them. Properties of all
/// other kinds are unknown.
const KINDS: [(u32, &str, FileSystemKind, Option<Caveat>); 43] = [
    (0xef53, "ext2, ext3 or ext4", LOCAL, None),
    (0x5846_5342, "xfs", LOCAL, None),
    (0x9123_683e, "btrfs", LOCAL, None),
    (0x2fc1_2fc1, "zfs", LOCAL, None),
    (0xf2f5_2010, "f2fs", LOCAL, None),
    (0xca45_1a4e, "bcachefs", LOCAL, None),
    (0x0102_1994, "tmpfs", LOCAL, Some(Caveat::Memory)),
    (0x8584_58f6, "ramfs", LOCAL, Some(Caveat::Memory)),
    (0x794c_7630, "overlay", LOCAL, Some(Caveat::Container)),
    (0xf15f, "ecryptfs", LOCAL, None),
    (0x5265_4973, "reiserfs", UNTRIED, None),
    (0x3153_464a, "jfs", UNTRIED, None),
    (0x3434, "nilfs2", UNTRIED, None),
    (0x482b, "hfsplus", UNTRIED, None),
    (0x4858, "hfsplus", UNTRIED, None),
    (0x2405_1905, "ubifs", UNTRIED, None),
    (0x72b6, "jffs2", UNTRIED, None),
    (0x137f, "minix", UNTRIED, None),
    (0x138f, "minix", UNTRIED, None),
    (0x2468, "minix", UNTRIED, None),
    (0x2478, "minix", UNTRIED, None),
    (0x4d5a, "minix", UNTRIED, None),
    (0x1501_3346, "udf", UNTRIED, None),
    (0x0001_1954, "ufs", UNTRIED, None),
    (0x4d44, "vfat", UNTRIED, None),
    (0x2011_bab0, "exfat", UNTRIED, None),
    (0x5346_544e, "ntfs", UNTRIED, None),
    (0x7366_746e, "ntfs3", UNTRIED, None),
    (0x7371_7368, "squashfs", UNTRIED, None),
    (0xe0f5_e1e2, "erofs", UNTRIED, None),
    (0x9660, "iso9660", UNTRIED, None),
    (0x6969, "nfs", NETWORK, Some(Caveat::Late)),
    (0x0bd0_0bd0, "lustre", NETWORK, None),
    (0x4750_4653, "gpfs", NETWORK, None),
    (0x00c3_6400, "ceph", NETWORK, None),
    (0x1983_0326, "beegfs", NETWORK, None),
    (0x5346_414f, "afs", NETWORK, Some(Caveat::Server)),
    (0x6b41_4653, "afs", NETWORK, Some(Caveat::Server)),
    (0xff53_4d42, "cifs", UNRELIABLE, Some(Caveat::Server)),
    (0xfe53_4d42, "smb2", UNRELIABLE, Some(Caveat::Server)),
    (0x517b, "smb", UNRELIABLE, Some(Caveat::Server)),
    (0x0102_1997, "9p", UNRELIABLE, Some(Caveat::Server)),
    (0x6573_5546, "fuse", UNRELIABLE, Some(Caveat::Server)),
];

/// A caveat for users who keep results on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caveat {
    /// It is memory.
    Memory,
    /// Writes of another host are seen late.
    Late,
    /// Its behaviour is up to a server that is not known.
    Server,
    /// It is often the inside of a container.
    Container,
}

/// The name of the kind of a file system with this number, and its caveat, if the kind is known.
pub(crate) fn known(number: u32) -> Option<(&'static str, Option<Caveat>)> {
    KINDS.iter().find(|kind| kind.0 == number).map(|(_, name, _, caveat)| (*name, *caveat))
}

/// One of this host, with hard links that refuse a name that is taken, as records and leases need.
const LOCAL: FileSystemKind =
    FileSystemKind { is_on_network: false, may_show_late: false, may_lack_links: false };

/// A file system of this host that may lack such hard links.
const UNTRIED: FileSystemKind = FileSystemKind { may_lack_links: true, ..LOCAL };

/// A file system that several hosts may write to, with such hard links.
pub(super) const NETWORK: FileSystemKind =
    FileSystemKind { is_on_network: true, may_show_late: true, may_lack_links: false };

/// A file system that several hosts may write to, and that may lack such hard links.
const UNRELIABLE: FileSystemKind = FileSystemKind { may_lack_links: true, ..NETWORK };

/// An unknown one.
pub(super) const UNKNOWN: FileSystemKind = FileSystemKind { is_on_network: false, ..UNRELIABLE };

/// The properties of the file system of a directory that are known by its kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileSystemKind {
    /// Several hosts may write to it.
    pub(super) is_on_network: bool,
    /// Writes of other hosts may be seen late. Where that is not known, collections and runs assume it.
    pub(super) may_show_late: bool,
    /// Its hard links may lack properties that leases need. Only a trial shows it.
    pub(super) may_lack_links: bool,
}

impl FileSystemKind {
    /// The kind of the file system of a directory. If the directory does not exist, the nearest one above it counts.
    pub(super) fn of_nearest(path: &Path) -> Self {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let nearest = path.ancestors().find_map(|dir| open(dir, flags, Mode::empty()).ok());
        nearest.map(Self::detect).unwrap_or_default()
    }

    /// The kind of the file system of an open directory. A build with debug assertions obeys `CE_FILE_SYSTEM`, the number of one.
    pub(super) fn detect(directory: impl AsFd) -> Self {
        // The numbers have 32 bits; the type that holds them differs between machines.
        let number = fstatfs(directory).ok().map(|stat| stat.f_type as u32);
        let told = if cfg!(debug_assertions) { env::var("CE_FILE_SYSTEM").ok() } else { None };
        let told = told.and_then(|text| u32::from_str_radix(&text, 16).ok());
        let Some(number) = told.or(number) else { return Self::default() };
        KINDS.iter().find(|kind| kind.0 == number).map_or(UNKNOWN, |kind| kind.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_file_system_is_listed_once() {
        let mut numbers: Vec<u32> = KINDS.iter().map(|kind| kind.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), KINDS.len());
        let shared = KINDS.iter().filter(|kind| kind.2.is_on_network).count();
        let linking = KINDS.iter().filter(|kind| !kind.2.may_lack_links).count();
        assert_eq!((shared, linking), (12, 17));
        let late = KINDS.iter().filter(|kind| kind.2.may_show_late).count();
        assert!(late == shared && UNKNOWN.may_show_late && !UNKNOWN.is_on_network);
    }
}
