//! Atomic operations: moving a file with and without replacing another one, and exclusive creation by `O_EXCL` and by links.

use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{ELSEWHERE, ProbeSite, refused};
use crate::disk::{Disk, IoContext, Result, StorageError};
use ce_model::diagnosis::Diagnosis;

/// The number of times that a file is replaced while another thread watches it.
const MOVES: usize = 300;

/// The time after which no further file is replaced.
const MAX_TIME: Duration = Duration::from_secs(2);

/// The result of replacing a file.
#[derive(Clone, Copy, Debug)]
struct ReplaceResult {
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

fn replace(site: &ProbeSite) -> Result<ReplaceResult> {
    let (file, place) = (site.file()?, site.room()?.join("place"));
    site.disk().write(&place, b"")?;
    let (id, text) = (site.disk().id(&file)?, site.disk().read(&file)?);
    site.disk().rename(&file, &place)?;
    let same = id.is_some() && site.disk().id(&place)? == id && site.disk().read(&place)? == text;
    let (moves, gaps) = watch(site.disk(), &place, || {
        let file = site.file()?;
        site.disk().rename(&file, &place).map(drop)
    })?;
    Ok(ReplaceResult { same, moves, gaps })
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

fn diagnose_replacing(replaced: ReplaceResult) -> Diagnosis {
    let probe = "replacing";
    match replaced {
        ReplaceResult { same: false, .. } => {
            Diagnosis::ok(probe, "a moved file is not the same file")
                .broken(
                    "a result may be taken for another execution's: files are told apart by inode",
                )
                .hint(ELSEWHERE)
        }
        ReplaceResult { moves, gaps: 0, .. } => {
            let found =
                format!("a name was never seen free while its file was replaced {moves} times");
            Diagnosis::ok(probe, found)
        }
        ReplaceResult { moves, gaps, .. } => {
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
struct MoveResult {
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

fn move_new(site: &ProbeSite) -> Result<MoveResult> {
    let (file, taken, free) = (site.file()?, site.file()?, site.room()?.join("free"));
    let native = is_native(&file, &taken)?;
    let ids = (site.disk().id(&file)?, site.disk().id(&taken)?);
    let refused = !site.disk().rename_new(&file, &taken)?
        && (site.disk().id(&file)?, site.disk().id(&taken)?) == ids;
    let moved = site.disk().rename_new(&file, &free)? && site.disk().id(&free)? == ids.0;
    Ok(MoveResult { native, refused, moved: moved && site.disk().id(&file)?.is_none() })
}

/// Whether the file system can move without replacing. Moves nothing if it cannot.
fn is_native(from: &Path, taken: &Path) -> Result<bool> {
    let moved = renameat_with(CWD, from, CWD, taken, RenameFlags::NOREPLACE);
    match moved.map_err(io::Error::from) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(false),
        other => other.map(|()| true).context("move to", taken),
    }
}

fn diagnose_moving(moved: MoveResult) -> Diagnosis {
    let probe = "moving";
    match moved {
        MoveResult { refused: false, .. } => Diagnosis::ok(probe, "an existing file is replaced")
            .broken("an output that was put there by hand may be overwritten")
            .hint(ELSEWHERE),
        MoveResult { moved: false, .. } => {
            Diagnosis::ok(probe, "a moved file is not in its new place")
                .broken("outputs do not get to their places")
                .hint(ELSEWHERE)
        }
        MoveResult { native: false, .. } => {
            let found = "the file system cannot refuse to replace: the place is looked at first";
            Diagnosis::ok(probe, found).note(
                "a file that another program puts in the place of an output in that very moment is \
                 overwritten; runs never do",
            )
        }
        MoveResult { .. } => Diagnosis::ok(probe, "an existing file is not replaced"),
    }
}

/// The number of threads that try to take the same name at the same time.
const RIVALS: usize = 4;

/// The number of names that they try to take.
const ROUNDS: usize = 50;

/// The result of taking names.
#[derive(Clone, Copy, Debug)]
struct ExclusiveCreation {
    /// A name that is taken is refused.
    refused: bool,
    /// A link is the same file.
    same: bool,
    /// The number of names that were not taken by exactly one rival.
    unfair: usize,
}

/// Probes whether a file can be created exclusively.
pub(super) fn exclusive_files(site: &ProbeSite) -> Diagnosis {
    let probe = "exclusive files";
    match exclusive(site) {
        Ok(taken) => diagnose(probe, taken, "files of different calls may be mixed"),
        Err(error) => {
            refused(probe, &error, "nothing can be computed into this storage", ELSEWHERE)
        }
    }
}

/// Probes whether a file can have a second name, if that is free.
pub(super) fn hard_links(site: &ProbeSite) -> Diagnosis {
    let probe = "hard links";
    match linked(site) {
        Ok(taken) => {
            let means = "a result may be replaced by another execution's, and two runs may compute \
                         the same call: records and leases are hard links";
            diagnose(probe, taken, means)
        }
        Err(error) => {
            let means = "nothing can be published, and two runs compute the same call: records \
                         and leases are hard links";
            refused(probe, &error, means, ELSEWHERE)
        }
    }
}

fn exclusive(site: &ProbeSite) -> Result<ExclusiveCreation> {
    let refused = !create(site.disk(), &site.file()?)?;
    Ok(ExclusiveCreation {
        refused,
        same: true,
        unfair: race(site, |_, name| create(site.disk(), name))?,
    })
}

/// Creates a file. Returns whether the name was free.
fn create(disk: &Disk, path: &Path) -> Result<bool> {
    match disk.write(path, b"") {
        Ok(()) => Ok(true),
        Err(StorageError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn linked(site: &ProbeSite) -> Result<ExclusiveCreation> {
    let (first, second) = (site.file()?, site.file()?);
    // Records and leases are linked from other directories, too.
    let name = site.room()?.join("link");
    site.disk().link(&first, &name)?;
    let same =
        site.disk().id(&name)?.is_some() && site.disk().id(&name)? == site.disk().id(&first)?;
    let refused =
        !site.disk().link(&second, &name)? && site.disk().id(&name)? == site.disk().id(&first)?;
    Ok(ExclusiveCreation {
        refused,
        same,
        unfair: race(site, |own, name| site.disk().link(own, name))?,
    })
}

/// Lets rivals, each with its own file, take names. Returns the number of names that were not taken
/// by exactly one.
fn race(site: &ProbeSite, take: impl Fn(&Path, &Path) -> Result<bool> + Sync) -> Result<usize> {
    let own = (0..RIVALS).map(|_| site.file()).collect::<Result<Vec<PathBuf>>>()?;
    let room = &site.room()?;
    let start = &Barrier::new(RIVALS);
    let mut taken: Vec<Vec<Result<bool>>> = own.iter().map(|_| Vec::new()).collect();
    thread::scope(|scope| {
        for (own, taken) in own.iter().zip(&mut taken) {
            let take = &take;
            scope.spawn(move || {
                let rounds = (0..ROUNDS).map(|round| {
                    start.wait();
                    take(own, &room.join(round.to_string()))
                });
                *taken = rounds.collect();
            });
        }
    });
    let mut winners = [0; ROUNDS];
    for rival in taken {
        for (winners, won) in winners.iter_mut().zip(rival) {
            *winners += usize::from(won?);
        }
    }
    Ok(winners.iter().filter(|winners| **winners != 1).count())
}

fn diagnose(probe: &'static str, taken: ExclusiveCreation, means: &str) -> Diagnosis {
    let found = match taken {
        ExclusiveCreation { refused: false, .. } => {
            "a name that is taken is not refused".to_owned()
        }
        ExclusiveCreation { same: false, .. } => {
            "a link is not the same file under another name".to_owned()
        }
        ExclusiveCreation { unfair: 0, .. } => {
            let found = format!("of {RIVALS} that take a name at once, one gets it");
            return Diagnosis::ok(probe, found);
        }
        ExclusiveCreation { unfair, .. } => {
            format!("{unfair} of {ROUNDS} names did not go to one of {RIVALS} that took them")
        }
    };
    Diagnosis::ok(probe, found).broken(means).hint(ELSEWHERE)
}

#[cfg(test)]
mod tests {
    use super::super::tests::summary;
    use super::*;
    use ce_model::diagnosis::Grade;

    #[test]
    fn a_name_that_is_free_for_a_moment_is_told() {
        let fine = ReplaceResult { same: true, moves: 300, gaps: 0 };
        assert_eq!(diagnose_replacing(fine).grade(), None);
        let (grade, text) = summary(&diagnose_replacing(ReplaceResult { gaps: 2, ..fine }));
        assert_eq!(grade, Some(Grade::Broken));
        assert!(text.starts_with("a name was seen free 2 times"), "{text}");
        let other = diagnose_replacing(ReplaceResult { same: false, ..fine });
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
        let fine = MoveResult { native: true, refused: true, moved: true };
        assert_eq!(diagnose_moving(fine).grade(), None);
        let (grade, text) = summary(&diagnose_moving(MoveResult { native: false, ..fine }));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.contains("looked at first"), "{text}");
        for broken in [MoveResult { refused: false, ..fine }, MoveResult { moved: false, ..fine }] {
            assert_eq!(diagnose_moving(broken).grade(), Some(Grade::Broken));
        }
    }

    #[test]
    fn a_name_that_goes_to_two_is_told() {
        let fair = ExclusiveCreation { refused: true, same: true, unfair: 0 };
        assert_eq!(diagnose("a", fair, "b").grade(), None);
        for (taken, what) in [
            (
                ExclusiveCreation { refused: false, ..fair },
                "a name that is taken is not refused; b",
            ),
            (
                ExclusiveCreation { same: false, ..fair },
                "a link is not the same file under another name; b",
            ),
            (
                ExclusiveCreation { unfair: 3, ..fair },
                "3 of 50 names did not go to one of 4 that took them; b",
            ),
        ] {
            let broken = (Some(Grade::Broken), what.to_owned());
            assert_eq!(summary(&diagnose("a", taken, "b")), broken);
        }
    }

    #[test]
    fn a_race_counts_names_that_went_to_several_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let site = ProbeSite::new(dir.path());
        assert_eq!(race(&site, |_, name| create(site.disk(), name)).unwrap(), 0);
        assert_eq!(race(&site, |_, _| Ok(true)).unwrap(), ROUNDS);
        assert_eq!(race(&site, |_, _| Ok(false)).unwrap(), ROUNDS);
        let even = |name: &Path| name.to_str().unwrap().ends_with(['0', '2', '4', '6', '8']);
        assert_eq!(
            race(&site, |_, name| Ok(create(site.disk(), name)? || even(name))).unwrap(),
            ROUNDS / 2
        );
        assert!(race(&site, |own, _| create(site.disk(), &own.join("below"))).is_err());
    }
}
