//! Exclusive creation: one of several rivals gets a name, by creating a file and by linking to one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use super::{ELSEWHERE, ProbeSite, refused};
use crate::disk::Disk;
use crate::disk::{Result, StorageError};
use ce_model::diagnosis::Diagnosis;

/// The number of threads that try to take the same name at the same time.
const RIVALS: usize = 4;

/// The number of names that they try to take.
const ROUNDS: usize = 50;

/// The result of taking names.
#[derive(Clone, Copy, Debug)]
struct Taken {
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

fn exclusive(site: &ProbeSite) -> Result<Taken> {
    let refused = !create(site.disk(), &site.file()?)?;
    Ok(Taken { refused, same: true, unfair: race(site, |_, name| create(site.disk(), name))? })
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

fn linked(site: &ProbeSite) -> Result<Taken> {
    let (first, second) = (site.file()?, site.file()?);
    // Records and leases are linked from other directories, too.
    let name = site.room()?.join("link");
    site.disk().link(&first, &name)?;
    let same =
        site.disk().id(&name)?.is_some() && site.disk().id(&name)? == site.disk().id(&first)?;
    let refused =
        !site.disk().link(&second, &name)? && site.disk().id(&name)? == site.disk().id(&first)?;
    Ok(Taken { refused, same, unfair: race(site, |own, name| site.disk().link(own, name))? })
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

fn diagnose(probe: &'static str, taken: Taken, means: &str) -> Diagnosis {
    let found = match taken {
        Taken { refused: false, .. } => "a name that is taken is not refused".to_owned(),
        Taken { same: false, .. } => "a link is not the same file under another name".to_owned(),
        Taken { unfair: 0, .. } => {
            let found = format!("of {RIVALS} that take a name at once, one gets it");
            return Diagnosis::ok(probe, found);
        }
        Taken { unfair, .. } => {
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
    fn a_name_that_goes_to_two_is_told() {
        let fair = Taken { refused: true, same: true, unfair: 0 };
        assert_eq!(diagnose("a", fair, "b").grade(), None);
        for (taken, what) in [
            (Taken { refused: false, ..fair }, "a name that is taken is not refused; b"),
            (Taken { same: false, ..fair }, "a link is not the same file under another name; b"),
            (Taken { unfair: 3, ..fair }, "3 of 50 names did not go to one of 4 that took them; b"),
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
