//! What calls have asked for beside what they have used: in columns, or as JSON.

use std::io::{self, Write};
use std::time::Duration;

use super::columns::fitted;
use ce_history::ResourceUsage;
use ce_model::humanize::{duration, short_duration, size};
use ce_model::resources::Resource;

/// The columns; each of the amounts is asked for and used.
const HEADER: [&str; 9] =
    ["computation", "calls", "cpus", "used", "memory", "used", "time", "used", "also asked for"];

/// The columns that are numbers.
const NUMBERS: [bool; 9] = [false, true, true, true, true, true, true, true, false];

/// Prints a header, and a line for each computation and request.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn resource_usage(usage: &[ResourceUsage], out: &mut dyn Write) -> io::Result<()> {
    let header = HEADER.map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(usage.iter().map(row)).collect();
    for line in fitted(&rows, &NUMBERS) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Prints a JSON object for each computation and request: doc/programs/ce-log.md describes the fields.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn resource_usage_json(usage: &[ResourceUsage], out: &mut dyn Write) -> io::Result<()> {
    for usage in usage {
        serde_json::to_writer(&mut *out, usage)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn row(usage: &ResourceUsage) -> Vec<String> {
    let ResourceUsage { computation, resources, calls, cpus, peak_bytes, seconds } = usage;
    let words = |line: &String| {
        let (word, amount) = line.split_once(' ').unwrap_or((line, ""));
        (Resource::of_word(word), amount.to_owned())
    };
    let asked = |resource| {
        let mut amounts = resources.iter().map(words).filter(|(word, _)| *word == Some(resource));
        amounts.next().map_or_else(|| "-".to_owned(), |(_, amount)| amount)
    };
    let is_compared = |line: &&String| {
        let (word, _) = words(line);
        matches!(word, Some(Resource::Cpus | Resource::Memory | Resource::Time))
    };
    let others: Vec<&str> =
        resources.iter().filter(|line| !is_compared(line)).map(String::as_str).collect();
    vec![
        computation.clone(),
        calls.to_string(),
        asked(Resource::Cpus),
        cpus.map_or_else(|| "-".to_owned(), |cpus| format!("{cpus:.1}")),
        asked(Resource::Memory),
        size(*peak_bytes),
        asked(Resource::Time),
        time(*seconds),
        others.join(", "),
    ]
}

/// A time in the unit that suits it.
fn time(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds) {
        Ok(short) if seconds < 1.0 => short_duration(short),
        _ => duration(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asked_and_used_are_beside_each_other() {
        let usage = |computation: &str, lines: &[&str], cpus| ResourceUsage {
            computation: computation.to_owned(),
            resources: lines.iter().map(|line| (*line).to_owned()).collect(),
            calls: 12,
            cpus,
            peak_bytes: 3 << 29,
            seconds: if cpus.is_some() { 545.2 } else { 0.0125 },
        };
        let lines = ["cpus 16", "memory 8G", "time 2h", "gpus 1", "exclusive"];
        let mut out = Vec::new();
        resource_usage(&[usage("align", &lines, Some(1.25)), usage("x", &[], None)], &mut out)
            .unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\
computation  calls  cpus  used  memory     used  time     used  also asked for
align           12    16   1.2      8G  1.5 GiB    2h    9m 5s  gpus 1, exclusive
x               12     -     -       -  1.5 GiB     -  12.5 ms
"
        );
    }
}
