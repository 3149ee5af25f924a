//! Why calls would run, for humans: each call with its reasons, then the few causes behind them.

use std::collections::HashMap;
use std::io::{self, Write};

use super::cause::{cause, reason};
use super::columns::aligned;
use super::explained_points::{ExplainedGroup, groups, points};
use super::harmless;
use crate::evaluate::Evaluation;
use crate::evaluate::Outcome;
use crate::exit::Exit;
use crate::git::{ChangeLog, FileChange, LineCounts};
use crate::questions::explain::{Cause, Causes, Change, Explained, Explanation, Why};
use crate::words::{counted, duration};

/// The greatest number of files of a change that are listed.
const FILES: usize = 20;

/// The greatest width of the bar of a file's lines.
const BAR: u32 = 30;

/// Prints the calls that would run with their reasons, the causes behind these, and totals.
///
/// `changes` has the Git history of causes, by their indices.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn explanation(
    evaluation: &Evaluation,
    explanation: &Explanation,
    changes: &HashMap<usize, Change>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Explanation { calls, causes, .. } = explanation;
    if calls.is_empty() {
        let there = if evaluation.exit() == Exit::Done { ": all results are there" } else { "" };
        return writeln!(out, "nothing would run{there}");
    }
    groups(evaluation, explanation).iter().try_for_each(|it| group(evaluation, it, out))?;
    writeln!(out)?;
    for (at, first) in causes.iter().enumerate() {
        let calls = counted(first.calls, "call");
        writeln!(out, "[{}] {}: {calls}", at + 1, cause(evaluation, first))?;
        let Some(git) = changes.get(&at) else { continue };
        change(git, out)?;
        let old = matches!(first.cause, Cause::Computation(..) | Cause::Uncommitted(_, Some(_)));
        if old && git.came.is_none() {
            writeln!(out, "    the repository does not have the commits between")?;
        }
    }
    writeln!(out, "\n{}", ahead(explanation))
}

/// The reasons of each missing call in a line, or of many at points of a sweep.
pub fn reasons<'a>(
    evaluation: &'a Evaluation,
    explanation: &'a Explanation,
) -> impl Iterator<Item = String> + 'a {
    groups(evaluation, explanation).into_iter().filter_map(move |group| {
        let Explained { call, whys, seconds, .. } = group.calls.first()?;
        if let Some(reason) = group.reasons.first() {
            let title = evaluation.title_at_any_point(*call);
            let count = counted(group.calls.len(), "point");
            return Some(format!(
                "{count}: {title}: {reason}: {}",
                points(evaluation, &group.calls)
            ));
        }
        let (why, _) = whys.first()?;
        // It is known what its execution gives: all that it takes is time.
        let cost = seconds.filter(|_| matches!(why, Why::Away));
        let cost = cost.map(|it| format!(", about {}", duration(it))).unwrap_or_default();
        Some(format!("{}: {}{cost}", evaluation.title(*call), reason(evaluation, *call, why)))
    })
}

fn change(change: &Change, out: &mut dyn Write) -> io::Result<()> {
    log(change.came.as_ref(), "", out)?;
    log(change.went.as_ref(), "without ", out)?;
    for path in &change.uncommitted {
        writeln!(out, "    not committed: {}", harmless(&path.to_string_lossy()))?;
    }
    match &change.files {
        Some(files) if !files.is_empty() => stat(files, out),
        Some(_) | None => Ok(()),
    }
}

/// Prints the commits of a list, with a word before each.
pub(super) fn log(log: Option<&ChangeLog>, word: &str, out: &mut dyn Write) -> io::Result<()> {
    let Some(ChangeLog { commits, more }) = log else { return Ok(()) };
    for commit in commits {
        writeln!(out, "    {word}{} {}", commit.id.short(), harmless(&commit.title))?;
    }
    match more {
        0 => Ok(()),
        more => writeln!(out, "    {word}and {}", counted(*more, "more commit")),
    }
}

/// Prints which files differ, as `git diff --stat` does.
fn stat(files: &[FileChange], out: &mut dyn Write) -> io::Result<()> {
    let sum =
        |of: fn(LineCounts) -> u32| files.iter().filter_map(|it| it.lines).map(of).sum::<u32>();
    let widest = files.iter().filter_map(|it| it.lines).map(|it| it.inserted + it.deleted).max();
    let scale = |lines: u32| match widest {
        Some(widest) if widest > BAR => (lines * BAR).div_ceil(widest),
        _ => lines,
    };
    let row = |file: &FileChange| {
        let (count, bar) = match file.lines {
            Some(LineCounts { inserted, deleted }) => {
                let signs = |sign: &str, lines| sign.repeat(scale(lines) as usize);
                let bar = signs("+", inserted) + &signs("-", deleted);
                (format!("{:>3}", inserted + deleted), bar)
            }
            None => ("Bin".to_owned(), String::new()),
        };
        [harmless(&file.path.to_string_lossy()).into_owned(), format!("| {count} {bar}")]
    };
    let rows: Vec<[String; 2]> = files.iter().take(FILES).map(row).collect();
    aligned(&rows).iter().try_for_each(|line| writeln!(out, "    {line}"))?;
    if files.len() > FILES {
        writeln!(out, "    and {}", counted(files.len() - FILES, "more file"))?;
    }
    let (inserted, deleted) = (sum(|it| it.inserted), sum(|it| it.deleted));
    let changed = counted(files.len(), "file");
    let inserted = counted(inserted as usize, "line");
    writeln!(out, "    {changed} changed, {inserted} inserted, {deleted} deleted")
}

/// Prints calls at points of a sweep with their common reasons, or a single call.
fn group(
    evaluation: &Evaluation,
    group: &ExplainedGroup<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let [first, _, ..] = &group.calls[..] else {
        return group.calls.iter().try_for_each(|it| call(evaluation, it, out));
    };
    let seconds: Option<f64> = group.calls.iter().map(|it| it.seconds).sum();
    let seconds = seconds.map_or_else(String::new, |it| format!(", about {}", duration(it)));
    let title = evaluation.title_at_any_point(first.call);
    writeln!(out, "{}: {title}{seconds}", counted(group.calls.len(), "point"))?;
    for (reason, (_, causes)) in group.reasons.iter().zip(&first.whys) {
        writeln!(out, "    {reason}{}", numbers(causes))?;
    }
    writeln!(out, "    at {}", points(evaluation, &group.calls))
}

/// The numbers of causes, after a blank: ` [1, 2]`.
fn numbers(causes: &Causes) -> String {
    let numbers: Vec<String> = causes.iter().map(|at| (at + 1).to_string()).collect();
    if numbers.is_empty() { String::new() } else { format!(" [{}]", numbers.join(", ")) }
}

/// Prints a call with its reasons, each with the numbers of the causes behind it.
fn call(evaluation: &Evaluation, explained: &Explained, out: &mut dyn Write) -> io::Result<()> {
    let Explained { call, whys, nearest, seconds } = explained;
    let name = evaluation.outcome(*call).map(Outcome::name);
    let name = name.map(|name| evaluation.shown(&name.short())).unwrap_or_default();
    let seconds = seconds.map_or_else(String::new, |it| format!(", about {}", duration(it)));
    writeln!(out, "{}: {name}{seconds}", evaluation.title(*call))?;
    for (why, causes) in whys {
        writeln!(out, "    {}{}", reason(evaluation, *call, why), numbers(causes))?;
    }
    match nearest {
        Some(nearest) => writeln!(out, "    compared with {}", evaluation.shown(&nearest.short())),
        None => Ok(()),
    }
}

/// The estimated duration of all calls, in words.
fn ahead(explanation: &Explanation) -> String {
    let calls = &explanation.calls;
    let waits = |it: &&Explained| it.whys.iter().all(|(why, _)| matches!(why, Why::Waits { .. }));
    let waiting = calls.iter().filter(waits).count();
    let unknown = calls.iter().filter(|it| it.seconds.is_none()).count();
    let would = format!("{} would run", counted(calls.len(), "call"));
    let waiting = match waiting {
        0 => String::new(),
        _ => format!(", {waiting} of them only if the outputs that they wait for change"),
    };
    let seconds: f64 = calls.iter().filter_map(|it| it.seconds).sum();
    let time = match unknown {
        0 => format!("about {} of computing", duration(seconds)),
        _ if unknown == calls.len() => "how long that takes is not known".to_owned(),
        _ => {
            let unknown = counted(unknown, "call");
            format!("about {} of computing, and {unknown} of unknown length", duration(seconds))
        }
    };
    format!("{would}{waiting}: {time}")
}
