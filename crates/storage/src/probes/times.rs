//! The resolution of time stamps: a file counts as unchanged if its size and time stamp are.

use std::fs::{File, FileTimes};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{ELSEWHERE, ProbeSite, refused};
use crate::disk::Result;
use crate::disk::{Disk, Doing};
use ce_model::diagnosis::Diagnosis;
use ce_model::words::short_duration;

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
    File::open(&file).and_then(|file| file.set_times(times)).doing("set the time of", &file)?;
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
        _ if off < Duration::from_millis(100) => "that of the files and of this host agree".into(),
        0.. => {
            format!(
                "that of the files is {} ahead of this host's; it does not matter",
                short_duration(off)
            )
        }
        _ => format!(
            "that of the files is {} behind this host's; it does not matter",
            short_duration(off)
        ),
    };
    Diagnosis::ok("clock", found)
}

#[cfg(test)]
mod tests {
    use super::super::tests::summary;
    use super::*;
    use ce_model::diagnosis::Grade;

    #[test]
    fn a_coarse_grain_is_found_and_told() {
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
        assert_eq!(seconds(0), (None, "that of the files and of this host agree; ".to_owned()));
        assert!(seconds(90).1.contains("90.0 s ahead"));
        assert!(seconds(-90).1.contains("90.0 s behind"));
        assert_eq!(seconds(-90).0, None);
    }
}
