//! The type of the file system, and properties of that type that cannot be probed.

use rustix::fs::statfs;

use super::{ELSEWHERE, ProbeSite, refused};
use crate::disk::Doing;
use ce_model::diagnosis::{Diagnosis, Grade};

/// A known property of a type: its severity, its consequences, and a hint.
type Known = Option<(Grade, &'static str, &'static str)>;

const MEMORY: Known = Some((
    Grade::Broken,
    "it is memory: results are gone when the machine stops, flushed or not",
    "put the storage on a disk",
));

const NFS: Known = Some((
    Grade::Note,
    "what another host publishes may be seen up to a minute late: a call may be executed there and \
     here, with one result",
    "mount it with lookupcache=positive if that is too often",
));

const SERVER: Known = Some((
    Grade::Note,
    "what it does when two hosts write, and when power is lost, is up to its server and cannot be \
     seen from here",
    "probe from each kind of host; keep results that are dear on a disk or NFS",
));

const CONTAINER: Known = Some((
    Grade::Note,
    "it is often the inside of a container, which is thrown away with all its files",
    "if so, mount a directory of the host and put the storage there",
));

/// Names and numbers are those of `statfs(2)` and `linux/magic.h`.
const KINDS: [(u32, &str, Known); 26] = [
    (0xef53, "ext2, ext3 or ext4", None),
    (0x5846_5342, "xfs", None),
    (0x9123_683e, "btrfs", None),
    (0x2fc1_2fc1, "zfs", None),
    (0xf2f5_2010, "f2fs", None),
    (0xca45_1a4e, "bcachefs", None),
    (0x0102_1994, "tmpfs", MEMORY),
    (0x8584_58f6, "ramfs", MEMORY),
    (0x6969, "nfs", NFS),
    (0x0bd0_0bd0, "lustre", None),
    (0x4750_4653, "gpfs", None),
    (0x00c3_6400, "ceph", None),
    (0x1983_0326, "beegfs", None),
    (0x5346_414f, "afs", SERVER),
    (0x6b41_4653, "afs", SERVER),
    (0xff53_4d42, "cifs", SERVER),
    (0xfe53_4d42, "smb2", SERVER),
    (0x517b, "smb", SERVER),
    (0x0102_1997, "9p", SERVER),
    (0x6573_5546, "fuse", SERVER),
    (0x794c_7630, "overlay", CONTAINER),
    (0xf15f, "ecryptfs", None),
    (0x4d44, "vfat", None),
    (0x2011_bab0, "exfat", None),
    (0x7366_746e, "ntfs3", None),
    (0x7371_7368, "squashfs", None),
];

/// Finds out the type of the storage's file system.
pub(super) fn kind(site: &ProbeSite) -> Diagnosis {
    let place = site.nearest();
    match statfs(place).map_err(std::io::Error::from).doing("look at", place) {
        // The numbers have 32 bits; the type that holds them differs between machines.
        Ok(stat) => diagnose(stat.f_type as u32),
        Err(error) => refused("file system", &error, "its type is not known", ELSEWHERE),
    }
}

fn diagnose(number: u32) -> Diagnosis {
    let probe = "file system";
    let Some((_, name, known)) = KINDS.iter().find(|kind| kind.0 == number) else {
        let found = Diagnosis::ok(probe, format!("of an unknown type ({number:#x})"));
        return found.note("what it does when power is lost is not known").hint(ELSEWHERE);
    };
    let found = Diagnosis::ok(probe, *name);
    match known {
        None => found,
        Some((Grade::Note, means, hint)) => found.note(*means).hint(*hint),
        Some((Grade::Slow, means, hint)) => found.slow(*means).hint(*hint),
        Some((Grade::Broken, means, hint)) => found.broken(*means).hint(*hint),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::summary;
    use super::*;

    #[test]
    fn what_is_known_of_a_kind_is_told() {
        assert_eq!(summary(&diagnose(0xef53)), (None, "ext2, ext3 or ext4; ".to_owned()));
        let (grade, text) = summary(&diagnose(0x0102_1994));
        assert_eq!(grade, Some(Grade::Broken));
        assert!(text.contains("gone when the machine stops"), "{text}");
        let (grade, text) = summary(&diagnose(0x6969));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.starts_with("nfs; ") && text.contains("late"), "{text}");
        assert_eq!(summary(&diagnose(1)).0, Some(Grade::Note));
    }

    #[test]
    fn no_number_is_there_twice() {
        let mut numbers = KINDS.map(|kind| kind.0);
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
