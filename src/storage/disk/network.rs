//! File systems that several hosts may write to.

use std::os::fd::AsFd;

use rustix::fs::fstatfs;

/// The numbers of their types, as `statfs(2)` and `linux/magic.h` have them.
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

/// Whether an open directory is on a file system that may show late what other hosts have written.
pub(super) fn is_on_network(directory: impl AsFd) -> bool {
    // The numbers have 32 bits; the type that holds them differs between machines.
    fstatfs(directory).is_ok_and(|stat| KINDS.contains(&(stat.f_type as u32)))
}
