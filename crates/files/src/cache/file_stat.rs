//! File stats: whether a file has changed, without reading it.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{Stat, lstat};
use serde::{Deserialize, Serialize};

/// The coarsest step of a file system's times.
const MAX_TIME_STEP: Duration = Duration::from_secs(2);

/// The identity, size and times of a file. A changed file has another stat, since no program can set all of
/// it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileStat {
    /// The number of its file system.
    pub device: u64,
    /// Its number on the file system.
    pub inode: u64,
    /// Its size, in bytes.
    pub size: u64,
    /// The time of its last modification, which users can set, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// The time of the last change of anything of it, in nanoseconds since 1970.
    pub changed_ns: i64,
}

impl From<&Stat> for FileStat {
    fn from(stat: &Stat) -> Self {
        let ns = |seconds: i64, rest: u64| {
            seconds.saturating_mul(1_000_000_000).saturating_add(rest.cast_signed())
        };
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size.unsigned_abs(),
            modified_ns: ns(stat.st_mtime, stat.st_mtime_nsec),
            changed_ns: ns(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

impl FileStat {
    /// Looks at a file. A link is not followed.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file or it may not be looked at.
    pub fn of(path: &Path) -> io::Result<Self> {
        Ok(Self::from(&lstat(path)?))
    }

    /// The device and inode, which no other file has.
    pub const fn id(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns whether the file may have changed after that time without another `FileStat`. Such a
    /// one must not be cached. It is what Git calls racy of an entry of its index.
    ///
    /// A file that has just changed can change again without another time, and one that was changed in
    /// the future shows that the clock cannot be trusted.
    pub fn is_racy(&self, taken: SystemTime) -> bool {
        let taken = taken.duration_since(UNIX_EPOCH).unwrap_or_default();
        match taken.checked_sub(MAX_TIME_STEP).map(|before| i64::try_from(before.as_nanos())) {
            Some(Ok(before)) => self.modified_ns.max(self.changed_ns) > before,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_racy_until_both_times_are_past() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let now = FileStat::of(file.path()).unwrap();
        let after = |ms: i64| {
            let ns = now.changed_ns.max(now.modified_ns) + ms * 1_000_000;
            UNIX_EPOCH + Duration::from_nanos(ns.try_into().unwrap())
        };
        assert!(now.is_racy(after(-5000)), "the future");
        assert!(now.is_racy(after(0)));
        assert!(now.is_racy(after(1999)));
        assert!(!now.is_racy(after(2000)));
        assert!(FileStat { modified_ns: now.modified_ns + 1, ..now }.is_racy(after(2000)));
        assert!(FileStat { changed_ns: now.changed_ns + 1, ..now }.is_racy(after(2000)));
        assert!(now.is_racy(UNIX_EPOCH), "a clock that stands at the beginning");
        assert!(!FileStat { modified_ns: -1, ..now }.is_racy(after(2000)), "an old archive");
    }
}
