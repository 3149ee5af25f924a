//! Why calls would run, for humans: how many would, the few causes behind that, and then the calls with their reasons.

use std::collections::HashMap;
use std::io::{self, Write};

use super::cause::{cause, reason};
use super::columns::aligned;
use super::explained_groups::{ExplainedGroup, SharedReason, groups, groups_in_short, points};
use super::{harmless, title, title_at_any_point};
use ce_evaluate::{Evaluation, Outcome};
use ce_git::{ChangeLog, FileChange, LineCounts};
use ce_model::exit::Exit;
use ce_model::humanize::{counted, duration};
use ce_queries::explain::{Cause, Causes, Change, Explained, Explanation, Why};

/// The greatest number of files of a change that are listed.
const FILES: usize = 20;

/// The greatest number of reasons in a line.
const REASONS: usize = 2;

/// The greatest width of the bar of a file's lines.
const BAR: u32 = 30;

/// Prints how many calls would run, the causes behind that, and the calls with their reasons: a line for those of a
/// computation that have the same, or each call with everything that is known of it.
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
    verbose: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Explanation { calls, causes, .. } = explanation;
    if calls.is_empty() {
        let text = match evaluation.exit() {
            Exit::Done => "nothing would run: all results are there",
            Exit::Malformed => "what would run is not known, since points cannot be used",
            Exit::Failed | Exit::Storage => "what would run is not known, since a call has failed",
            _ => "nothing would run",
        };
        return writeln!(out, "{text}");
    }
    writeln!(out, "{}\n", ahead(explanation))?;
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
    writeln!(out)?;
    if verbose {
        return groups(evaluation, explanation)
            .iter()
            .try_for_each(|it| group(evaluation, it, out));
    }
    let groups = groups_in_short(evaluation, explanation);
    groups.iter().try_for_each(|it| writeln!(out, "{}", in_short(evaluation, it, numbers)))
}

/// Why calls would run: a line for those of a computation that have the same reasons.
pub fn reasons<'a>(
    evaluation: &'a Evaluation,
    explanation: &'a Explanation,
) -> impl Iterator<Item = String> + 'a {
    let groups = groups_in_short(evaluation, explanation).into_iter();
    groups.map(|group| in_short(evaluation, &group, |_| String::new()))
}

/// A group in a line: `align, 12 calls: never computed [1], about 3m`.
fn in_short(
    evaluation: &Evaluation,
    group: &ExplainedGroup<'_>,
    numbers: impl Fn(&Causes) -> String,
) -> String {
    let (first, calls) = (group.calls[0], group.calls.len());
    let mut titles = group.calls.iter().map(|it| title_at_any_point(evaluation, it.call));
    let any_point = title_at_any_point(evaluation, first.call);
    let title = match evaluation.computation(first.call) {
        _ if calls == 1 => title(evaluation, first.call),
        Some(computation) if titles.any(|it| it != any_point) => {
            format!("{}, {}", computation.name, counted(calls, "call"))
        }
        _ => format!("{any_point}, {}", counted(calls, "point")),
    };
    let own = |why| reason(evaluation, first.call, why);
    let reasons = group.reasons.iter().map(|SharedReason { text, why, causes }| {
        let text = if calls == 1 { own(why) } else { text.clone() };
        text + &numbers(causes)
    });
    let mut reasons: Vec<String> = reasons.collect();
    if reasons.len() > REASONS {
        let more = reasons.split_off(REASONS).len();
        reasons.push(counted(more, "more reason"));
    }
    let points = if calls > 1 { points(evaluation, &group.calls) } else { String::new() };
    let points = if points.is_empty() { points } else { format!(", at {points}") };
    format!("{title}: {}{}{points}", reasons.join("; "), cost(group))
}

/// How long the execution of all calls of a group takes, in words after a comma, if that is known.
fn cost(group: &ExplainedGroup<'_>) -> String {
    let seconds: Option<f64> = group.calls.iter().map(|it| it.seconds).sum();
    seconds.map_or_else(String::new, |it| format!(", about {}", duration(it)))
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
    let title = title_at_any_point(evaluation, first.call);
    writeln!(out, "{title}, {}{}", counted(group.calls.len(), "point"), cost(group))?;
    for SharedReason { text, causes, .. } in &group.reasons {
        writeln!(out, "    {text}{}", numbers(causes))?;
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
    writeln!(out, "{}: {name}{seconds}", title(evaluation, *call))?;
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
