//! Timing: how long a flush takes, the resolution of time stamps, clocks of servers, and whether a dead run is noticed.

use std::fs::{File, FileTimes};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{ELSEWHERE, ProbeSite, refused};
use crate::disk::{Disk, IoContext, Result};
use crate::protocol::heartbeat::{CurrentRun, LEASE_TIMEOUT, LivenessChecks};
use ce_model::humanize::short_duration;
use ce_model::probe_diagnosis::Diagnosis;

/// The number of measurements of each flush.
const MEASUREMENTS: usize = 5;

/// The time after which no further measurement is made.
const MAX_TIME: Duration = Duration::from_secs(5);

/// The time that a call may wait for the disk before it is called slow.
const SLOW_CALL: Duration = Duration::from_millis(50);

/// The time that a flush of everything may take before it is called slow.
const SLOW_FLUSH: Duration = Duration::from_secs(1);

/// The median times of flushes.
#[derive(Clone, Copy, Debug)]
struct Flushed {
    file: Duration,
    directory: Duration,
    file_system: Duration,
}

/// Measures how long small calls wait for the disk.
pub(super) fn flushing(site: &ProbeSite) -> Diagnosis {
    match flush(site) {
        Ok(flushed) => diagnose_flushing(flushed),
        Err(error) => {
            let means = "results cannot be brought to the disk, and no run ends well";
            let hint = "use --no-sync, and results may be lost with the power; or another disk";
            refused("flushing", &error, means, hint)
        }
    }
}

fn flush(site: &ProbeSite) -> Result<Flushed> {
    let room = site.room()?;
    let mut times: [Vec<Duration>; 3] = Default::default();
    let begun = Instant::now();
    for number in 0..MEASUREMENTS {
        let file = room.join(number.to_string());
        site.disk().write(&file, b"a small result\n")?;
        times[0].push(timed(|| site.disk().sync(&file))?);
        times[1].push(timed(|| site.disk().sync(&room))?);
        site.disk().write(&room.join(format!("{number}.more")), b"a small result\n")?;
        times[2].push(timed(|| site.disk().sync_all())?);
        if begun.elapsed() > MAX_TIME {
            break;
        }
    }
    let [file, directory, file_system] = times.map(median);
    Ok(Flushed { file, directory, file_system })
}

fn timed(act: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let begun = Instant::now();
    act().map(|()| begun.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn diagnose_flushing(flushed: Flushed) -> Diagnosis {
    let Flushed { file, directory, file_system } = flushed;
    // The output and the record; the directories of the stage, of both of these, and of the job's
    // file.
    let call = file * 2 + directory * 3;
    let found = format!(
        "a file {}, a directory {}, the file system {}: a call alone waits {} for the disk",
        short_duration(file),
        short_duration(directory),
        short_duration(file_system),
        short_duration(call)
    );
    let found = Diagnosis::ok("flushing", found);
    let hint = "use --no-sync where results may be lost with the power, or a faster disk";
    if call > SLOW_CALL {
        let means = "small calls wait longer for the disk than they compute; many at once share \
                     one flush";
        found.slow(means).hint(hint)
    } else if file_system > SLOW_FLUSH {
        let means = "many small calls share a flush of the whole file system, which waits for \
                     what others write there, too";
        found.slow(means).hint(hint)
    } else {
        found
    }
}

/// Resolutions of time stamps, in nanoseconds.
const GRAINS: [i64; 7] = [1, 100, 1_000, 1_000_000, 10_000_000, SECOND, 2 * SECOND];

const SECOND: i64 = 1_000_000_000;

/// A time that every resolution above a nanosecond rounds.
const UNEVEN: i64 = 1_700_000_001 * SECOND + 123_456_789;

/// The time for which the clock of the file system is watched.
const WATCHED: Duration = Duration::from_millis(50);

/// The measured properties of time stamps.
#[derive(Clone, Copy, Debug)]
struct Stamps {
    /// The unit to which they are rounded, in nanoseconds; `None` if another time is stored.
    grain: Option<i64>,
    /// The step by which they advance; `None` if it took too long to measure.
    tick: Option<Duration>,
}

/// Probes whether a change is visible in the time stamp.
pub(super) fn time_stamps(site: &ProbeSite) -> Diagnosis {
    match stamps(site) {
        Ok(stamps) => diagnose_stamps(stamps),
        Err(error) => {
            refused("time stamps", &error, "a changed file cannot be told by its time", ELSEWHERE)
        }
    }
}

fn stamps(site: &ProbeSite) -> Result<Stamps> {
    let file = site.file()?;
    let uneven = UNIX_EPOCH + Duration::from_nanos(UNEVEN.unsigned_abs());
    // Both times, as copying tools set them: some file systems in user space ignore one alone.
    let times = FileTimes::new().set_accessed(uneven).set_modified(uneven);
    File::open(&file).and_then(|file| file.set_times(times)).context("set the time of", &file)?;
    let grain = grain(modified(site.disk(), &file)?);
    Ok(Stamps { grain, tick: tick(site)? })
}

/// The time of a file's last write, in nanoseconds since 1970.
fn modified(disk: &Disk, path: &Path) -> Result<i64> {
    Ok(disk.metadata(path)?.map_or(0, |metadata| metadata.modified_ns()))
}

/// The unit to which the uneven time was rounded, up or down.
fn grain(kept: i64) -> Option<i64> {
    GRAINS.into_iter().find(|grain| kept % grain == 0 && (kept - UNEVEN).abs() < *grain)
}

/// Measures the step between time stamps of files created in sequence.
fn tick(site: &ProbeSite) -> Result<Option<Duration>> {
    let begun = Instant::now();
    let first = modified(site.disk(), &site.file()?)?;
    while begun.elapsed() < WATCHED {
        let file = site.file()?;
        let step = modified(site.disk(), &file)? - first;
        site.disk().remove(&file)?;
        if step > 0 {
            return Ok(Some(Duration::from_nanos(step.unsigned_abs())));
        }
    }
    Ok(None)
}

fn diagnose_stamps(Stamps { grain, tick }: Stamps) -> Diagnosis {
    let probe = "time stamps";
    let Some(grain) = grain else {
        return Diagnosis::ok(probe, "a time stamp that was set is not kept").note(
            "in a copy of the storage every file is read again at its next use; that takes time, \
             and harms nothing",
        );
    };
    let fine = match grain {
        1 => "1 ns".to_owned(),
        _ => short_duration(Duration::from_nanos(grain.unsigned_abs())),
    };
    let tick = tick.unwrap_or(WATCHED).max(Duration::from_nanos(grain.unsigned_abs()));
    let found =
        format!("rounded to {fine}; a change is seen {} after another", short_duration(tick));
    let found = Diagnosis::ok(probe, found);
    if grain < SECOND {
        return found;
    }
    let means = format!(
        "a published file that another program changes within {fine}, to as many bytes, is taken \
         for unchanged; files that are copied there from elsewhere are read again at their next use"
    );
    found.note(means).hint("write no published files; ce verify reads all of them")
}

/// Compares the clock of the file system with this host's. Nothing depends on it.
pub(super) fn clock(site: &ProbeSite) -> Diagnosis {
    let ahead = || {
        let host = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let stamped = modified(site.disk(), &site.file()?)?;
        Ok(stamped - i64::try_from(host.as_nanos()).unwrap_or(i64::MAX))
    };
    match ahead() {
        Ok(ahead) => diagnose_clock(ahead),
        Err(error) => refused("clock", &error, "files cannot be made", ELSEWHERE),
    }
}

fn diagnose_clock(ahead: i64) -> Diagnosis {
    let off = Duration::from_nanos(ahead.unsigned_abs());
    let found = match ahead {
        _ if off < Duration::from_millis(100) => {
            "the clocks of the files and of this host agree".into()
        }
        0.. => {
            format!(
                "the clock of the files is {} ahead of this host's; it does not matter",
                short_duration(off)
            )
        }
        _ => format!(
            "the clock of the files is {} behind this host's; it does not matter",
            short_duration(off)
        ),
    };
    Diagnosis::ok("clock", found)
}

/// Default names of hosts.
const NAMELESS: [&str; 4] = ["", "(none)", "localhost", "localhost.localdomain"];

/// Probes whether runs on this host can detect that another one has died.
pub(super) fn processes(_: &ProbeSite) -> Diagnosis {
    diagnose_liveness(&CurrentRun::new().checks())
}

fn diagnose_liveness(checks: &LivenessChecks) -> Diagnosis {
    let probe = "processes";
    let host = &checks.host;
    if !checks.boot || !checks.namespace {
        let missing = if checks.boot { "process namespace" } else { "boot id" };
        let found = Diagnosis::ok(probe, format!("the {missing} of {host} cannot be read"));
        let silence = LEASE_TIMEOUT.as_secs();
        return found
            .note(format!(
                "leases of a run that died here are taken over after {silence} seconds, not at once, \
                 and no run removes its leftovers in tmp/"
            ))
            .hint("mount /proc");
    }
    if !checks.finds_live_processes || !checks.notices_dead_processes {
        let found = Diagnosis::ok(probe, "it is not known whether a process is alive");
        let silence = LEASE_TIMEOUT.as_secs();
        return found.note(format!(
            "leases of a dead run are taken over after {silence} seconds, not at once"
        ));
    }
    if NAMELESS.contains(&host.as_str()) {
        let found = Diagnosis::ok(probe, format!("the name of this host is \"{host}\""));
        return found
            .note(
                "a run that waits shows this name, and another host that shares \
                 the storage may have it, too",
            )
            .hint("give each host that shares the storage a name of its own");
    }
    Diagnosis::ok(probe, format!("leases of a run that dies on {host} are taken over at once"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::summary;
    use super::*;
    use ce_model::probe_diagnosis::Grade;

    #[test]
    fn a_slow_disk_is_reported() {
        let [fast, slow] = [2, 11].map(Duration::from_millis);
        let disk = Flushed { file: fast, directory: fast, file_system: fast };
        let text = "a file 2.0 ms, a directory 2.0 ms, the file system 2.0 ms: a call alone waits \
                10.0 ms for the disk; ";
        assert_eq!(summary(&diagnose_flushing(disk)), (None, text.to_owned()));
        let (grade, text) =
            summary(&diagnose_flushing(Flushed { file: slow, directory: slow, ..disk }));
        assert_eq!(grade, Some(Grade::Slow));
        assert!(text.contains("waits 55.0 ms for the disk; small calls"), "{text}");
        let busy = Flushed { file_system: Duration::from_secs(3), ..disk };
        let (grade, text) = summary(&diagnose_flushing(busy));
        assert_eq!(grade, Some(Grade::Slow));
        assert!(text.contains("what others write"), "{text}");
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let times = |times: &[u64]| times.iter().copied().map(Duration::from_secs).collect();
        assert_eq!(median(times(&[9, 1, 2])), Duration::from_secs(2));
        assert_eq!(median(times(&[])), Duration::ZERO);
    }

    #[test]
    fn coarse_time_stamps_are_found_and_reported() {
        let tick = Some(Duration::from_millis(4));
        assert_eq!(grain(UNEVEN), Some(1));
        assert_eq!(grain(UNEVEN / 1000 * 1000), Some(1000));
        assert_eq!(grain(UNEVEN / SECOND * SECOND), Some(SECOND));
        assert_eq!(grain((UNEVEN / SECOND + 1) * SECOND), Some(SECOND));
        assert_eq!(grain(1_700_000_000 * SECOND), Some(2 * SECOND));
        assert_eq!(grain(0), None);
        let fine = Stamps { grain: Some(1), tick };
        let text = "rounded to 1 ns; a change is seen 4.0 ms after another; ";
        assert_eq!(summary(&diagnose_stamps(fine)), (None, text.to_owned()));
        let (grade, text) = summary(&diagnose_stamps(Stamps { grain: Some(2 * SECOND), tick }));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.starts_with("rounded to 2.0 s; a change is seen 2.0 s after"), "{text}");
        assert!(text.contains("within 2.0 s, to as many bytes"), "{text}");
        let lost = diagnose_stamps(Stamps { grain: None, tick });
        assert_eq!(lost.grade(), Some(Grade::Note));
    }

    #[test]
    fn a_clock_that_differs_is_only_told() {
        let seconds = |seconds: i64| summary(&diagnose_clock(seconds * SECOND));
        assert_eq!(
            seconds(0),
            (None, "the clocks of the files and of this host agree; ".to_owned())
        );
        assert!(seconds(90).1.contains("90.0 s ahead"));
        assert!(seconds(-90).1.contains("90.0 s behind"));
        assert_eq!(seconds(-90).0, None);
    }

    fn checks() -> LivenessChecks {
        let host = "anna".to_owned();
        LivenessChecks {
            host,
            boot: true,
            namespace: true,
            finds_live_processes: true,
            notices_dead_processes: true,
        }
    }

    #[test]
    fn runs_that_cannot_see_each_other_are_reported() {
        assert_eq!(diagnose_liveness(&checks()).grade(), None);
        for blind in [
            LivenessChecks { boot: false, ..checks() },
            LivenessChecks { namespace: false, ..checks() },
        ] {
            let (grade, text) = summary(&diagnose_liveness(&blind));
            assert_eq!(grade, Some(Grade::Note));
            assert!(text.contains("no run removes its leftovers"), "{text}");
        }
        let (grade, text) = summary(&diagnose_liveness(&LivenessChecks {
            notices_dead_processes: false,
            ..checks()
        }));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.contains("after 60 seconds"), "{text}");
        let (grade, text) = summary(&diagnose_liveness(&LivenessChecks {
            host: "localhost".to_owned(),
            ..checks()
        }));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.contains("may have it, too"), "{text}");
    }
}
