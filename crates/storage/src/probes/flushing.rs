//! Whether files can be flushed to the disk, and how long that takes.

use std::time::{Duration, Instant};

use super::{ProbeSite, refused};
use crate::disk::Result;
use ce_model::diagnosis::Diagnosis;
use ce_model::words::short_duration;

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
        Ok(flushed) => diagnose(flushed),
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

fn diagnose(flushed: Flushed) -> Diagnosis {
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

#[cfg(test)]
mod tests {
    use super::super::tests::summary;
    use super::*;
    use ce_model::diagnosis::Grade;

    #[test]
    fn a_slow_disk_is_told() {
        let [fast, slow] = [2, 11].map(Duration::from_millis);
        let disk = Flushed { file: fast, directory: fast, file_system: fast };
        let text = "a file 2.0 ms, a directory 2.0 ms, the file system 2.0 ms: a call alone waits \
                    10.0 ms for the disk; ";
        assert_eq!(summary(&diagnose(disk)), (None, text.to_owned()));
        let (grade, text) = summary(&diagnose(Flushed { file: slow, directory: slow, ..disk }));
        assert_eq!(grade, Some(Grade::Slow));
        assert!(text.contains("waits 55.0 ms for the disk; small calls"), "{text}");
        let busy = Flushed { file_system: Duration::from_secs(3), ..disk };
        let (grade, text) = summary(&diagnose(busy));
        assert_eq!(grade, Some(Grade::Slow));
        assert!(text.contains("what others write"), "{text}");
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let times = |times: &[u64]| times.iter().copied().map(Duration::from_secs).collect();
        assert_eq!(median(times(&[9, 1, 2])), Duration::from_secs(2));
        assert_eq!(median(times(&[])), Duration::ZERO);
    }
}
