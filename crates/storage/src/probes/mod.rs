//! Probes of the abilities of the file system and of the host that the storage needs.
//!
//! Each file has one topic: a measurement, by the operations of `disk` where there is one, and a
//! pure function that says what the result means. So broken file systems can be tested without
//! having any. Probes leave no files.

mod flushing;
mod kind;
mod liveness;
mod modes;
mod mounts;
mod moving;
mod names;
mod sharing;
mod site;
mod space;
mod taking;
mod times;

use std::error::Error;
use std::path::Path;

use self::site::ProbeSite;
use crate::StorageError;
use ce_model::diagnosis::Diagnosis;

/// The hint if a file system lacks an ability.
const ELSEWHERE: &str = "put the storage on another file system: a local one of Linux, or NFS";

type Probe = fn(&ProbeSite) -> Diagnosis;

/// Probes of any directory.
const ANYWHERE: [Probe; 5] =
    [site::writing, kind::kind, space::space, liveness::processes, sharing::sharing];

/// Probes of a writable directory. The last one removes the files of all.
const WRITABLE: [Probe; 15] = [
    mounts::mounts,
    taking::exclusive_files,
    taking::hard_links,
    moving::replacing,
    moving::moving,
    flushing::flushing,
    names::long_names,
    names::case,
    names::characters,
    times::time_stamps,
    times::clock,
    modes::read_only,
    modes::programs,
    modes::copying,
    site::removing,
];

/// Probes of a storage, performed one at a time.
///
/// They work in a private directory in `tmp/`. A missing storage is created as a run would create
/// it, and removed again.
#[derive(Debug)]
pub struct Probes {
    site: ProbeSite,
    next: usize,
}

impl Probes {
    /// Prepares to probe the file system under a storage.
    pub fn new(storage: &Path) -> Self {
        Self { site: ProbeSite::new(storage), next: 0 }
    }
}

impl Iterator for Probes {
    type Item = Diagnosis;

    fn next(&mut self) -> Option<Diagnosis> {
        let rest = if self.site.is_writable() { &WRITABLE[..] } else { &[] };
        let probe = ANYWHERE.iter().chain(rest).nth(self.next)?;
        self.next += 1;
        let mut diagnosis = probe(&self.site);
        self.site.tidy();
        diagnosis.found = self.site.shown(&diagnosis.found);
        Some(diagnosis)
    }
}

/// The diagnosis for an error: its consequences and a hint, unless the disk is full.
fn refused(probe: &'static str, error: &StorageError, means: &str, hint: &str) -> Diagnosis {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let found = Diagnosis::ok(probe, format!("{error}{cause}"));
    if error.is_full() {
        let means = "there is not even room for a probe, so nothing can be told of this";
        return found.broken(means).hint("make room, then probe again");
    }
    found.broken(means).hint(hint)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use ce_model::diagnosis::Grade;

    /// An error as the operating system gives it.
    pub(super) fn error(kind: io::ErrorKind) -> StorageError {
        StorageError::Io { doing: "link to", path: "a".into(), source: kind.into() }
    }

    /// The severity, and the words of a diagnosis.
    pub(super) fn summary(diagnosis: &Diagnosis) -> (Option<Grade>, String) {
        let trouble = diagnosis.trouble.as_ref();
        let means = trouble.map_or("", |trouble| &trouble.means);
        (diagnosis.grade(), format!("{}; {means}", diagnosis.found))
    }

    #[test]
    fn a_full_disk_is_not_taken_for_a_missing_ability() {
        let (grade, text) =
            summary(&refused("a", &error(io::ErrorKind::Unsupported), "no links", "b"));
        assert_eq!(grade, Some(Grade::Broken));
        assert_eq!(text, "cannot link to a: unsupported; no links");
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            let (grade, text) = summary(&refused("a", &error(kind), "no links", "b"));
            assert_eq!(grade, Some(Grade::Broken));
            assert!(text.contains("; there is not even room for a probe"), "{text}");
        }
    }

    #[test]
    fn probing_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let storage = dir.path().join("a/b/storage");
        let probes = Probes::new(&storage).collect::<Vec<_>>();
        assert_eq!(probes.len(), ANYWHERE.len() + WRITABLE.len());
        assert!(!dir.path().join("a").exists());
        let mut names: Vec<&str> = probes.iter().map(|probe| probe.probe).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), probes.len(), "each has a name of its own");
    }
}
