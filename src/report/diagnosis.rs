//! Findings of self-tests: a line each, and below it the consequences of any trouble.

use std::io::{self, Write};

use serde::Serialize;

use super::{harmless, json_line};
use ce_model::diagnosis::{Diagnosis, Grade, Trouble};

/// Prints a finding for humans.
pub fn diagnosis(diagnosis: &Diagnosis, out: &mut dyn Write) -> io::Result<()> {
    let Diagnosis { probe, found, trouble } = diagnosis;
    let word = match diagnosis.grade() {
        None => "ok",
        Some(Grade::Note) => "note",
        Some(Grade::Slow) => "slow",
        Some(Grade::Broken) => "BROKEN",
    };
    writeln!(out, "{word:6}  {probe:15}  {}", harmless(found))?;
    if let Some(Trouble { means, hint, .. }) = trouble {
        writeln!(out, "          means: {}", harmless(means))?;
        if let Some(hint) = hint {
            writeln!(out, "          try: {}", harmless(hint))?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct DiagnosisLine<'a> {
    probe: &'a str,
    grade: &'a str,
    found: &'a str,
    means: Option<&'a str>,
    hint: Option<&'a str>,
}

/// Prints a finding as one JSON object.
pub fn diagnosis_json(diagnosis: &Diagnosis, out: &mut dyn Write) -> io::Result<()> {
    let grade = match diagnosis.grade() {
        None => "ok",
        Some(Grade::Note) => "note",
        Some(Grade::Slow) => "slow",
        Some(Grade::Broken) => "broken",
    };
    let Diagnosis { probe, found, trouble } = diagnosis;
    let means = trouble.as_ref().map(|trouble| trouble.means.as_str());
    let hint = trouble.as_ref().and_then(|trouble| trouble.hint.as_deref());
    json_line(&DiagnosisLine { probe, grade, found, means, hint }, out)
}

/// The number of findings of each severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GradeCounts {
    /// All is well.
    pub ok: usize,
    /// Something is good to know.
    pub notes: usize,
    /// Something costs time.
    pub slow: usize,
    /// A promise cannot be kept.
    pub broken: usize,
}

impl GradeCounts {
    /// Counts one more.
    pub const fn add(&mut self, diagnosis: &Diagnosis) {
        match &diagnosis.trouble {
            None => self.ok += 1,
            Some(Trouble { grade: Grade::Note, .. }) => self.notes += 1,
            Some(Trouble { grade: Grade::Slow, .. }) => self.slow += 1,
            Some(Trouble { grade: Grade::Broken, .. }) => self.broken += 1,
        }
    }
}

impl std::fmt::Display for GradeCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { ok, notes, slow, broken } = self;
        let all = ok + notes + slow + broken;
        let notes = if *notes == 1 { "1 note".to_owned() } else { format!("{notes} notes") };
        write!(f, "{all} probes: {ok} ok, {notes}, {slow} slow, {broken} broken")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(print: impl Fn(&Diagnosis, &mut dyn Write) -> io::Result<()>) -> Vec<String> {
        let found = || Diagnosis::ok("hard links", "no\u{1b}ne");
        let all = [found(), found().note("m"), found().slow("m"), found().broken("m").hint("t")];
        let print = |one: &Diagnosis| {
            let mut text = Vec::new();
            print(one, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        all.iter().map(print).collect()
    }

    #[test]
    fn a_finding_is_a_line_and_what_it_means() {
        assert_eq!(
            printed(diagnosis),
            [
                "ok      hard links       no\u{fffd}ne\n",
                "note    hard links       no\u{fffd}ne\n          means: m\n",
                "slow    hard links       no\u{fffd}ne\n          means: m\n",
                "BROKEN  hard links       no\u{fffd}ne\n          means: m\n          try: t\n",
            ]
        );
    }

    #[test]
    fn a_finding_is_a_json_object() {
        let line = |grade: &str, means: &str, hint: &str| {
            format!(
                r#"{{"probe":"hard links","grade":"{grade}","found":"no\u001bne","means":{means},"hint":{hint}}}"#
            ) + "\n"
        };
        assert_eq!(
            printed(diagnosis_json),
            [
                line("ok", "null", "null"),
                line("note", r#""m""#, "null"),
                line("slow", r#""m""#, "null"),
                line("broken", r#""m""#, r#""t""#),
            ]
        );
    }

    #[test]
    fn findings_are_counted() {
        let mut findings = GradeCounts::default();
        let found = || Diagnosis::ok("a", "b");
        let all = [found(), found(), found().note("c"), found().slow("c"), found().broken("c")];
        all.iter().for_each(|one| findings.add(one));
        assert_eq!(findings.to_string(), "5 probes: 2 ok, 1 note, 1 slow, 1 broken");
    }
}
