//! Durations and times as users write them.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// Reads a time in the past: a date, which begins at midnight UTC, a time with its zone, or how
/// long ago it was.
pub(super) fn time(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    if let Ok(date) = text.parse::<Date>() {
        let midnight = date.to_zoned(TimeZone::UTC).map_err(|error| error.to_string())?;
        return Ok(midnight.timestamp());
    }
    let span = text.parse::<Span>().and_then(|span| {
        let now = Timestamp::now().to_zoned(TimeZone::UTC);
        Ok(now.checked_sub(span)?.timestamp())
    });
    span.map_err(|_| "write a date, a time such as 2026-07-31T12:00:00Z, or 7d, 12h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_a_time_or_a_span() {
        assert_eq!(time("2026-07-31"), time("2026-07-31T00:00:00Z"));
        assert_eq!(time("2026-07-31T02:00:00+02:00"), time("2026-07-31T00:00:00Z"));
        assert!(time("7d").unwrap() < time("12h").unwrap());
        assert!(time("yesterday").is_err());
        assert!(time("1y").unwrap() < time("11mo").unwrap());
    }
}
