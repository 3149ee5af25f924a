//! Numbers, sizes and durations in words, and words for a shell.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

/// Writes how many there are of something: `1 call`, `2 calls`.
pub fn counted(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    }
}

/// Writes the count of each kind and leaves out zeros: `2 calls, 1 job`.
pub fn counted_all(counts: &[(usize, &str)]) -> String {
    let there = counts.iter().filter(|(count, _)| *count > 0);
    there.map(|(count, one)| counted(*count, one)).collect::<Vec<_>>().join(", ")
}

/// The number of texts that are listed after a name that does not exist.
const MAX_LISTED: usize = 10;

/// The first texts, and how many more there are.
pub fn listed<T: ToString>(texts: &[T]) -> String {
    let first = texts.iter().take(MAX_LISTED).map(ToString::to_string);
    let first = first.collect::<Vec<_>>().join(", ");
    match texts.len().saturating_sub(MAX_LISTED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Writes a number of bytes: `17 B`, `1.5 KiB`.
pub fn size(bytes: u64) -> String {
    let (mut size, mut unit) = (bytes as f64, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if size >= 1024.0 {
            (size, unit) = (size / 1024.0, larger);
        }
    }
    let digits = usize::from(unit != "B");
    format!("{size:.digits$} {unit}")
}

/// Writes how long something took, in seconds: `2.5 s`, `1h 2m`.
pub fn duration(seconds: f64) -> String {
    // The sum of no numbers is -0.
    let seconds = seconds + 0.0;
    if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else {
        // Whole seconds are exact enough from here on.
        format!("{:#}", jiff::SignedDuration::from_secs(seconds as i64))
    }
}

/// Reads a duration with its unit, such as `90s` or `1h30min`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration: Option<jiff::SignedDuration> = text.parse().ok();
    let duration = duration.and_then(|duration| Duration::try_from(duration).ok());
    duration.ok_or_else(|| "write a number and its unit, such as 90s, 10min or 1h30min".to_owned())
}

/// Reads a whole number from a smallest one on.
pub fn parse_number<T: TryFrom<u64>>(text: &str, least: u64) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| *number >= least);
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("write a whole number from {least}"))
}

/// Reads a number from 1 on.
pub fn parse_count(text: &str) -> Result<NonZeroUsize, String> {
    let count = parse_number(text, 1)?;
    NonZeroUsize::new(count).ok_or_else(|| "write a whole number from 1".to_owned())
}

/// Reads a number of seconds, or a duration with its unit.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if f64::is_finite(seconds) && seconds >= 0.0 => Ok(seconds),
        _ => match parse_duration(text) {
            Ok(duration) => Ok(duration.as_secs_f64()),
            Err(_) => {
                Err("write a number of seconds, or one with its unit, as in 10min".to_owned())
            }
        },
    }
}

/// Writes a short duration: `12 µs`, `1.2 ms`, `1.5 s`.
pub fn short_duration(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.1} s"),
        seconds if seconds >= 1e-3 => format!("{:.1} ms", seconds * 1e3),
        seconds => format!("{:.0} µs", seconds * 1e6),
    }
}

/// Writes a duration as a clock does: `0:07`, `12:34`, `1:02:03`.
pub fn clock(time: Duration) -> String {
    let (hours, minutes, seconds) =
        (time.as_secs() / 3600, time.as_secs() / 60 % 60, time.as_secs() % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// Writes a word so that a shell reads it as one.
pub fn quoted(word: &str) -> String {
    if !word.is_empty()
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=./:+%@,".contains(c))
    {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Writes a path so that a shell reads it as one word.
pub fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// Whether a character is invisible, or changes how others are shown. Characters that join letters, or choose a form of one, are
/// needed by some scripts and by pictures of several characters, and mislead only where they do nothing.
pub fn is_misleading(c: char, before: Option<char>) -> bool {
    match c {
        // Between letters: variation selectors, and the joiners.
        '\u{180b}'..='\u{180d}'
        | '\u{180f}'
        | '\u{200c}'
        | '\u{200d}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{e0100}'..='\u{e01ef}' => before.is_none_or(|it| it.is_ascii() || it == c),
        // Directions, and the separators of lines and paragraphs.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        // Characters without a width.
        '\u{ad}'
        | '\u{34f}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e00ff}'
        | '\u{e01f0}'..='\u{e0fff}' => true,
        // Letters and signs that look like spaces.
        '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_has_the_singular() {
        let counts = [0, 1, 2].map(|count| counted(count, "call"));
        assert_eq!(counts, ["0 calls", "1 call", "2 calls"]);
    }

    #[test]
    fn a_word_is_quoted_if_a_shell_would_not_read_it_as_one() {
        let quoted = ["../results", "it's mine", ""].map(quoted);
        assert_eq!(quoted, ["../results", r"'it'\''s mine'", "''"]);
        assert_eq!(quoted_path(Path::new("my results")), "'my results'");
    }

    #[test]
    fn sizes_and_durations_have_the_unit_that_suits_them() {
        let sizes = [1023, 1536, 5 << 40, 3 << 50].map(size);
        assert_eq!(sizes, ["1023 B", "1.5 KiB", "5.0 TiB", "3.0 PiB"]);
        let times = [12, 1250, 1_500_000].map(|us| short_duration(Duration::from_micros(us)));
        assert_eq!(times, ["12 µs", "1.2 ms", "1.5 s"]);
        assert_eq!([2.54, 3720.0].map(duration), ["2.5 s", "1h 2m"]);
        let clocks = [7, 754, 3723].map(|seconds| clock(Duration::from_secs(seconds)));
        assert_eq!(clocks, ["0:07", "12:34", "1:02:03"]);
    }
}
