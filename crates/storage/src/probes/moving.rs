//! Moving a file, with and without replacing another one.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{ELSEWHERE, ProbeSite, refused};
use crate::disk::Result;
use crate::disk::{Disk, Doing};
use ce_model::diagnosis::Diagnosis;

/// The number of times that a file is replaced while another thread watches it.
const MOVES: usize = 300;

/// The time after which no further file is replaced.
const MAX_TIME: Duration = Duration::from_secs(2);

/// The result of replacing a file.
#[derive(Clone, Copy, Debug)]
struct Replaced {
    /// The moved file is the one under the name now.
    same: bool,
    /// The number of replacements that were watched.
    moves: usize,
    /// The number of times that no file was seen under the name.
    gaps: usize,
}

/// Probes whether a file can be replaced atomically.
pub(super) fn replacing(site: &ProbeSite) -> Diagnosis {
    match replace(site) {
        Ok(replaced) => diagnose_replacing(replaced),
        Err(error) => {
            let means = "damaged results cannot be replaced, and runs cannot show that they live";
            refused("replacing", &error, means, ELSEWHERE)
        }
    }
}

fn replace(site: &ProbeSite) -> Result<Replaced> {
    let (file, place) = (site.file()?, site.room()?.join("place"));
    site.disk().write(&place, b"")?;
    let (id, text) = (site.disk().id(&file)?, site.disk().read(&file)?);
    site.disk().rename(&file, &place)?;
    let same = id.is_some() && site.disk().id(&place)? == id && site.disk().read(&place)? == text;
    let (moves, gaps) = watch(site.disk(), &place, || {
        let file = site.file()?;
        site.disk().rename(&file, &place).map(drop)
    })?;
    Ok(Replaced { same, moves, gaps })
}

/// Replaces a file many times. Returns the number of replacements, and the number of times that a
/// watching thread saw no file.
fn watch(disk: &Disk, place: &Path, replace: impl Fn() -> Result<()>) -> Result<(usize, usize)> {
    let over = &AtomicBool::new(false);
    let mut gaps = Ok(0);
    let moves = thread::scope(|scope| {
        scope.spawn(|| gaps = look(disk, place, over));
        let begun = Instant::now();
        let mut moves = 0;
        let mut moved = Ok(());
        while moved.is_ok() && moves < MOVES && begun.elapsed() < MAX_TIME {
            moved = replace();
            moves += 1;
        }
        over.store(true, Ordering::Relaxed);
        moved.map(|()| moves)
    })?;
    Ok((moves, gaps?))
}

/// Watches a file. Returns the number of times that there was none.
fn look(disk: &Disk, place: &Path, over: &AtomicBool) -> Result<usize> {
    let mut gaps = 0;
    loop {
        gaps += usize::from(!disk.exists(place)?);
        if over.load(Ordering::Relaxed) {
            return Ok(gaps);
        }
    }
}

fn diagnose_replacing(replaced: Replaced) -> Diagnosis {
    let probe = "replacing";
    match replaced {
        Replaced { same: false, .. } => Diagnosis::ok(probe, "a moved file is not the same file")
            .broken("a result may be taken for another execution's: files are told apart by inode")
            .hint(ELSEWHERE),
        Replaced { moves, gaps: 0, .. } => {
            let found =
                format!("a name was never seen free while its file was replaced {moves} times");
            Diagnosis::ok(probe, found)
        }
        Replaced { moves, gaps, .. } => {
            let found = format!(
                "a name was seen free {gaps} times while its file was replaced {moves} times"
            );
            Diagnosis::ok(probe, found)
                .broken(
                    "for a moment a result seems to be missing, or to have no record: it may be \
                     computed again, or adopted without one",
                )
                .hint(ELSEWHERE)
        }
    }
}

/// The result of moving files without replacing others.
#[derive(Clone, Copy, Debug)]
struct Moved {
    /// The file system itself refuses to replace.
    native: bool,
    /// An existing file is not replaced.
    refused: bool,
    /// A file is moved to a free name.
    moved: bool,
}

/// Probes whether a file can be moved only to a free name.
pub(super) fn moving(site: &ProbeSite) -> Diagnosis {
    match move_new(site) {
        Ok(moved) => diagnose_moving(moved),
        Err(error) => refused("moving", &error, "outputs cannot be put in their places", ELSEWHERE),
    }
}

fn move_new(site: &ProbeSite) -> Result<Moved> {
    let (file, taken, free) = (site.file()?, site.file()?, site.room()?.join("free"));
    let native = is_native(&file, &taken)?;
    let ids = (site.disk().id(&file)?, site.disk().id(&taken)?);
    let refused = !site.disk().rename_new(&file, &taken)?
        && (site.disk().id(&file)?, site.disk().id(&taken)?) == ids;
    let moved = site.disk().rename_new(&file, &free)? && site.disk().id(&free)? == ids.0;
    Ok(Moved { native, refused, moved: moved && site.disk().id(&file)?.is_none() })
}

/// Whether the file system can move without replacing. Moves nothing if it cannot.
fn is_native(from: &Path, taken: &Path) -> Result<bool> {
    let moved = renameat_with(CWD, from, CWD, taken, RenameFlags::NOREPLACE);
    match moved.map_err(io::Error::from) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(false),
        other => other.map(|()| true).doing("move to", taken),
    }
}

fn diagnose_moving(moved: Moved) -> Diagnosis {
    let probe = "moving";
    match moved {
        Moved { refused: false, .. } => Diagnosis::ok(probe, "an existing file is replaced")
            .broken("an output that was put there by hand may be overwritten")
            .hint(ELSEWHERE),
        Moved { moved: false, .. } => Diagnosis::ok(probe, "a moved file is not in its new place")
            .broken("outputs do not get to their places")
            .hint(ELSEWHERE),
        Moved { native: false, .. } => {
            let found = "the file system cannot refuse to replace: the place is looked at first";
            Diagnosis::ok(probe, found).note(
                "a file that another program puts in the place of an output in that very moment is \
                 overwritten; runs never do",
            )
        }
        Moved { .. } => Diagnosis::ok(probe, "an existing file is not replaced"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::summary;
    use super::*;
    use ce_model::diagnosis::Grade;

    #[test]
    fn a_name_that_is_free_for_a_moment_is_told() {
        let fine = Replaced { same: true, moves: 300, gaps: 0 };
        assert_eq!(diagnose_replacing(fine).grade(), None);
        let (grade, text) = summary(&diagnose_replacing(Replaced { gaps: 2, ..fine }));
        assert_eq!(grade, Some(Grade::Broken));
        assert!(text.starts_with("a name was seen free 2 times"), "{text}");
        let other = diagnose_replacing(Replaced { same: false, ..fine });
        assert_eq!(other.grade(), Some(Grade::Broken));
    }

    #[test]
    fn a_gap_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let site = ProbeSite::new(dir.path());
        let place = site.fresh();
        let (moves, gaps) = watch(site.disk(), &place, || Ok(())).unwrap();
        assert_eq!(moves, MOVES);
        assert!(gaps > 0, "nothing is ever there");
        assert!(watch(site.disk(), &place, || site.disk().make_dir(&place.join("a"))).is_err());
    }

    #[test]
    fn a_file_system_that_always_replaces_is_told() {
        let fine = Moved { native: true, refused: true, moved: true };
        assert_eq!(diagnose_moving(fine).grade(), None);
        let (grade, text) = summary(&diagnose_moving(Moved { native: false, ..fine }));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.contains("looked at first"), "{text}");
        for broken in [Moved { refused: false, ..fine }, Moved { moved: false, ..fine }] {
            assert_eq!(diagnose_moving(broken).grade(), Some(Grade::Broken));
        }
    }
}
