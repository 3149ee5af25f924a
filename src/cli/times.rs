//! Times in the past as users write them: of all options that take a time or an age.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// A time in the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PastTime {
    pub(super) time: Timestamp,
    /// It is an age of zero.
    is_now: bool,
}

impl PastTime {
    /// The time before which something is old; `None` if all is, even what a clock that is ahead has recorded.
    pub(super) fn limit(self) -> Option<Timestamp> {
        (!self.is_now).then_some(self.time)
    }
}

/// Reads a time in the past: a date, which begins at midnight UTC, a date with a time, which is in UTC unless it has
/// a zone, or an age.
///
/// # Errors
///
/// Says how times are written, or that it is in the future.
pub(super) fn time(text: &str) -> Result<PastTime, String> {
    let now = Timestamp::now();
    let utc = |time: DateTime| Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp());
    let age = |age: Span| Some(now.to_zoned(TimeZone::UTC).checked_sub(age).ok()?.timestamp());
    let time = text.parse().ok();
    let time = time.or_else(|| utc(text.parse().ok()?)).or_else(|| age(text.parse().ok()?));
    match time {
        Some(time) if time <= now => Ok(PastTime { time, is_now: time == now }),
        Some(_) => Err(format!("it is in the future; write a time before {now:.0}")),
        None => {
            Err("write a date, a time such as 2026-07-31T12:00:00Z, or an age such as 90m, 36h, \
                     3d or 2w"
                .to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_a_time_or_an_age() {
        assert_eq!(time("2026-07-31"), time("2026-07-31T00:00:00Z"));
        assert_eq!(time("2026-07-31T02:00:00+02:00"), time("2026-07-31 00:00"));
        let ages =
            ["1y", "11mo", "3w", "20d", "36h", "90m", "60s", "0s"].map(|age| time(age).unwrap());
        assert!(ages.is_sorted(), "{ages:?}");
        assert!(ages.iter().all(|age| age.limit().is_some() == (age.time < ages[7].time)));
        assert!(time("yesterday").unwrap_err().contains("an age such as 90m"));
        for future in ["2100-01-01", "2100-01-01T00:00:00Z", "-1d"] {
            assert!(
                time(future).unwrap_err().starts_with("it is in the future; write a time before 2"),
                "{future}"
            );
        }
    }
}
