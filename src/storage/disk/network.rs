//! Kinds of file systems: those that several hosts may write to, and those that have hard links.

use std::env;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, fstatfs, open};

/// The numbers of the types of those that several hosts may write to, as `statfs(2)` and `linux/magic.h` have them.
const KINDS: [u32; 11] = [
    0x6969,      // nfs
    0x0bd0_0bd0, // lustre
    0x4750_4653, // gpfs
    0x00c3_6400, // ceph
    0x1983_0326, // beegfs
    0x5346_414f, // afs
    0x6b41_4653, // afs
    0xff53_4d42, // cifs
    0xfe53_4d42, // smb2
    0x0102_1997, // 9p
    0x6573_5546, // fuse
];

/// Those whose hard links are what records and leases need: a name that is taken is refused.
const LINKING: [u32; 17] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0x2fc1_2fc1, // zfs
    0xf2f5_2010, // f2fs
    0xca45_1a4e, // bcachefs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlay
    0xf15f,      // ecryptfs
    0x6969,      // nfs
    0x0bd0_0bd0, // lustre
    0x4750_4653, // gpfs
    0x00c3_6400, // ceph
    0x1983_0326, // beegfs
    0x5346_414f, // afs
    0x6b41_4653, // afs
];

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
        told.or(number).map_or(Self::default(), |number| Self {
            is_on_network: KINDS.contains(&number),
            may_lack_links: !LINKING.contains(&number),
        })
    }
}
