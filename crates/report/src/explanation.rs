//! The reasons why calls would run: the number of those that would, the few causes behind that, and then the calls with their
//! reasons; for a terminal, and as JSON. doc/schema/output.json describes the fields.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::calls::{
    derived_title, point_of_call, text_in_words, title, title_at_any_point, told_apart,
    tree_version,
};
use super::terminal::aligned;
use super::{harmless, json_line};
use ce_evaluate::{Evaluation, Outcome};
use ce_git::{ChangeLog, FileChange, LineCounts};
use ce_model::digest::Digest;
use ce_model::exit::Exit;
use ce_model::humanize::{counted, duration};
use ce_model::plan::{CallId, Derivation, DerivedId, LiteralId, Source};
use ce_model::task::{Computation, ComputationId, Node};
use ce_queries::explain::{
    Cause, Causes, Change, CodeVersion, Explained, Explanation, FirstCause, Why,
};
use ce_storage::records::{FailureRecord, Provenance};

use ce_storage::ResultName;

/// The greatest number of files of a change that are listed.
const FILES: usize = 20;

/// The greatest number of reasons in a line.
const REASONS: usize = 2;

/// The greatest width of the bar of a file's lines.
const BAR_WIDTH: u32 = 30;

/// Prints how many calls would run, the causes behind that, and the calls with their reasons: a line for the calls of a
/// computation that have the same, or each call with everything that is known of it.
///
/// `changes` has the Git history of causes, by their indices.
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
    writeln!(out, "{}\n", ahead(evaluation, explanation))?;
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

/// Returns the reasons why calls would run: a line for the calls of a computation with the same reasons.
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
    let reasons = group.reasons.iter().map(|SharedReason { text, why, causes }| {
        let text = if calls == 1 { reason(evaluation, first.call, why) } else { text.clone() };
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

/// Returns the time that the execution of all calls of a group takes, in words after a comma, if that is known.
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
    let counts = files.iter().filter_map(|it| it.lines);
    let widest = counts.clone().map(|it| it.inserted + it.deleted).max().unwrap_or_default();
    let mut rows = Vec::new();
    for file in files.iter().take(FILES) {
        let (count, bar) = match file.lines {
            Some(LineCounts { inserted, deleted }) => {
                let signs = [("+", inserted), ("-", deleted)].map(|(sign, mut lines)| {
                    if widest > BAR_WIDTH {
                        lines = (lines * BAR_WIDTH).div_ceil(widest);
                    }
                    sign.repeat(lines as usize)
                });
                (format!("{:>3}", inserted + deleted), signs.concat())
            }
            None => ("Bin".to_owned(), String::new()),
        };
        let path = harmless(&file.path.to_string_lossy()).into_owned();
        rows.push([path, format!("| {count} {bar}")]);
    }
    aligned(&rows).try_for_each(|line| writeln!(out, "    {line}"))?;
    if files.len() > FILES {
        writeln!(out, "    and {}", counted(files.len() - FILES, "more file"))?;
    }
    let inserted: u32 = counts.clone().map(|it| it.inserted).sum();
    let deleted: u32 = counts.map(|it| it.deleted).sum();
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

/// Whether a call has no reason of its own: it waits for others.
fn only_waits(explained: &Explained) -> bool {
    explained.whys.iter().all(|(why, _)| matches!(why, Why::Waits { .. }))
}

/// The estimated duration of all calls, in words.
fn ahead(evaluation: &Evaluation, explanation: &Explanation) -> String {
    let calls = &explanation.calls;
    let waiting = calls.iter().filter(|it| only_waits(it)).count();
    let unknown = calls.iter().filter(|it| it.seconds.is_none()).count();
    let at_least = if evaluation.plan.grows() { "at least " } else { "" };
    let would = format!("{at_least}{} would run", counted(calls.len(), "call"));
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

/// The number of an input of a call, and what its computation calls it.
pub(super) fn input_of(evaluation: &Evaluation, call: CallId, at: usize) -> String {
    evaluation.computation(call).map(|computation| input(computation, at)).unwrap_or_default()
}

/// The reason why a call would run, in words.
pub(super) fn reason(evaluation: &Evaluation, call: CallId, why: &Why) -> String {
    let Some(computation) = evaluation.plan.computation(call) else { return String::new() };
    let named = |at: usize| input(&evaluation.task.computations[computation.index()], at);
    match why {
        Why::NeverComputed => "never computed".to_owned(),
        Why::ComputationChanged { old } => changed(evaluation, computation, old),
        Why::Uncommitted { old } => uncommitted(evaluation, computation, old.as_ref()),
        Why::InputDiffers { at, old, new, members } => {
            let members = match &**members {
                [] => String::new(),
                members => format!(" ({})", harmless(&members.join(", "))),
            };
            format!("{} differs: {}{members}", named(*at), from(old, new))
        }
        Why::NewAtPoint { at, .. } => format!("{} is new", named(*at)),
        Why::OtherSource { at } => format!("{} has another source than before", named(*at)),
        Why::Waits { at, call } => format!("{} waits for {}", named(*at), title(evaluation, *call)),
        Why::NoLiteral { at, literal } => {
            format!("{}: {} is not in the storage", named(*at), literal_name(evaluation, *literal))
        }
        Why::FailedLast { failure: FailureRecord { failure, recorded, .. }, log } => {
            let log = log.as_ref().map(|log| format!(", log: {}", evaluation.shown(log)));
            let reason = &failure.reason;
            format!("failed last; {reason}, at {:.0}{}", recorded.at, log.unwrap_or_default())
        }
        Why::Collected { collected: Provenance { host, user, at, .. } } => {
            format!("its result was collected at {at:.0} by {user} on {host}")
        }
        Why::Away => "its outputs are away, and needed".to_owned(),
        Why::Damaged { defect: None } => {
            "its outputs are gone, or are not what was recorded".to_owned()
        }
        Why::Damaged { defect: Some(defect) } => format!("its result is not used: {defect}"),
    }
}

/// The name that has the text of a point where a call reads it, if this is such a text.
pub(super) fn text_name(evaluation: &Evaluation, id: DerivedId) -> Option<&str> {
    let Evaluation { plan, task, .. } = evaluation;
    let Derivation::Text { contents, is_of_point: true } = &plan.value(id).how else { return None };
    let text = contents.strip_suffix('\n')?;
    for (call, planned) in plan.calls() {
        let mut inputs = planned.inputs.iter();
        if !inputs.any(|it| matches!(it, Source::Derived { value, .. } if *value == id)) {
            continue;
        }
        let mut point = plan.point(task, call).into_iter();
        if let Some((name, _)) = point.find(|(_, known)| *known == text) {
            return Some(name);
        }
    }
    None
}

/// The file of the task that has the points of a table.
pub(super) fn sheet_of(evaluation: &Evaluation, table: CallId) -> Option<&str> {
    let Evaluation { plan, task, .. } = evaluation;
    let Node::Sweep { inputs, .. } = &task.workflow[plan.call(table).node] else { return None };
    match &task.workflow[inputs.get(1)?.node] {
        Node::File(file) => Some(task.files[file.index()].path.as_str()),
        _ => None,
    }
}

/// A first cause, in words.
pub(super) fn cause(evaluation: &Evaluation, first: &FirstCause) -> String {
    let name = |id: ComputationId| evaluation.task.computations[id.index()].name.as_str();
    match &first.cause {
        Cause::NeverComputed(id) => format!("{} was never computed", name(*id)),
        Cause::Computation(id, old) => changed(evaluation, *id, old),
        Cause::Uncommitted(id, old) => uncommitted(evaluation, *id, old.as_ref()),
        Cause::Input(id, old) => {
            let new = evaluation.digest(Source::Input(*id));
            let change = new.map(|new| format!(": {}", text_change(evaluation, old, &new)));
            let digests = change.unwrap_or_default();
            format!("the task input {} differs{digests}", evaluation.task.inputs[id.index()])
        }
        Cause::File(id, old) => {
            let path = harmless(evaluation.task.files[id.index()].path.as_str());
            let new = evaluation.digest(Source::File(*id));
            let digests = new.map_or_else(String::new, |new| format!(": {}", from(old, &new)));
            format!("the task's file {path} differs{digests}")
        }
        Cause::Tree(id, old) => {
            let title = derived_title(evaluation, *id, 0);
            let new = evaluation.digest(Source::Derived { value: *id, number: 0 });
            let digests = new.map_or_else(String::new, |new| format!(": {}", from(old, &new)));
            match evaluation.plan.tree(*id) {
                Some(_) => {
                    format!("{title} differs, now {}{digests}", tree_version(evaluation, *id))
                }
                None => format!("{title} differs{digests}"),
            }
        }
        Cause::Table(call) => table(evaluation, *call),
        Cause::NewAtPoint(id) => {
            let title = derived_title(evaluation, *id, 0);
            match text_name(evaluation, *id) {
                Some(name) => format!("{}={title} of a point is new", harmless(name)),
                None if evaluation.plan.tree(*id).is_some() => {
                    format!("{title} of a point is new: {}", tree_version(evaluation, *id))
                }
                None => format!("{title} of a point is new"),
            }
        }
        Cause::Member(id, old) => {
            let new = evaluation.digest(Source::Derived { value: *id, number: 0 });
            let digests = new.map_or_else(String::new, |new| format!(": {}", from(old, &new)));
            let of = evaluation.plan.whole(Source::Derived { value: *id, number: 0 }).0;
            let of = evaluation
                .name(of)
                .map_or_else(String::new, |it| format!(" of {}", evaluation.shown(&it)));
            format!("{}{of} differs{digests}", derived_title(evaluation, *id, 0))
        }
        Cause::Literal(id, old) => match &evaluation.files.literals[id.index()] {
            Some(new) => {
                let literal = literal_name(evaluation, *id);
                format!("the literal {literal} differs: {}", from(old, &new.digest))
            }
            None => no_literal(evaluation, *id),
        },
        Cause::NoLiteral(id) => no_literal(evaluation, *id),
        Cause::OtherSource(id, at) => {
            let input = input(&evaluation.task.computations[id.index()], *at);
            format!("{input} of {} has another source than before", name(*id))
        }
        Cause::OtherOutputs(id) => {
            format!("{} gave other outputs for the same inputs", name(*id))
        }
        Cause::Unrecorded(id) => {
            format!("{} gave other outputs, and their provenance is not recorded", name(*id))
        }
        Cause::FailedLast(id) => format!("{} failed last", name(*id)),
        Cause::Collected(id) => format!("results of {} were collected", name(*id)),
        Cause::Away(id) => format!("outputs of {} are away, and needed", name(*id)),
        Cause::Damaged(id) => {
            format!("results of {} are gone, or are not used", name(*id))
        }
    }
}

fn table(evaluation: &Evaluation, call: CallId) -> String {
    let sheet = sheet_of(evaluation, call).map(harmless);
    let points = sheet.map_or_else(String::new, |it| format!(", and its points come from {it}"));
    format!("{} has other rows or columns{points}", title(evaluation, call))
}

fn no_literal(evaluation: &Evaluation, id: LiteralId) -> String {
    format!("the literal {} is not in the storage", literal_name(evaluation, id))
}

fn changed(evaluation: &Evaluation, id: ComputationId, old: &CodeVersion) -> String {
    let computation = &evaluation.task.computations[id.index()];
    let (name, from, to) = (&computation.name, old.short(), computation.version());
    if old.tree == computation.tree {
        format!("{name} is at another commit, and did not run isolated: was {from}, is {to}")
    } else {
        format!("{name} changed: was {from}, is {to}")
    }
}

fn uncommitted(evaluation: &Evaluation, id: ComputationId, old: Option<&CodeVersion>) -> String {
    let computation = &evaluation.task.computations[id.index()];
    let was = old.map_or_else(String::new, |old| format!(": was {}", old.short()));
    let comma = if old.is_some() { "," } else { ":" };
    format!("{} has uncommitted changes{was}{comma} is {}", computation.name, computation.version())
}

/// The change of a task input, in words: its texts, if both are short, or else its digests.
fn text_change(evaluation: &Evaluation, old: &Digest, new: &Digest) -> String {
    match [old, new].map(|digest| evaluation.short_text(digest)) {
        [Some(was), Some(is)] => format!("was {}, is {}", text_in_words(&was), text_in_words(&is)),
        _ => from(old, new),
    }
}

/// The change of a digest, in words.
fn from(old: &Digest, new: &Digest) -> String {
    let [was, is] = told_apart(old, new);
    format!("was {was}, is {is}")
}

/// The number of an input, and what its computation calls it.
fn input(computation: &Computation, at: usize) -> String {
    match computation.inputs.get(at) {
        Some(name) => format!("input {at:02} ({})", harmless(name)),
        None => format!("input {at:02}"),
    }
}

fn literal_name(evaluation: &Evaluation, id: LiteralId) -> String {
    evaluation.plan.literals()[id.index()].to_string()
}

/// Up to this number of points each has its own entry.
const ALONE: usize = 3;

/// The largest number of points that are named.
const NAMED: usize = 3;

/// Calls that are explained together: one, or several at points of a sweep.
pub(super) struct ExplainedGroup<'a> {
    /// In the order of the explanation; never empty.
    pub(super) calls: Vec<&'a Explained>,
    pub(super) reasons: Vec<SharedReason<'a>>,
}

/// A reason that calls have in common.
pub(super) struct SharedReason<'a> {
    /// The reason, in words, without details that differ from call to call.
    pub(super) text: String,
    /// The reason of the first call.
    pub(super) why: &'a Why,
    /// The causes behind it.
    pub(super) causes: &'a Causes,
}

/// The common title of calls, and their reasons, each with its causes.
type GroupKey = (String, Vec<(String, Vec<usize>)>);

/// The calls of each computation that would run for the same reasons, in the order of the first of each group. The text
/// that a call waits for others is left out if it has a reason of its own.
pub(super) fn groups_in_short<'a>(
    evaluation: &Evaluation,
    explanation: &'a Explanation,
) -> Vec<ExplainedGroup<'a>> {
    grouped(
        evaluation,
        explanation,
        |_| true,
        |of, why| !matches!(why, Why::Waits { .. }) || only_waits(of),
        |call| computation(evaluation, call),
    )
}

/// The calls of an explanation, those at more than a few points of a sweep together.
pub(super) fn groups<'a>(
    evaluation: &Evaluation,
    explanation: &'a Explanation,
) -> Vec<ExplainedGroup<'a>> {
    let calls = explanation.calls.iter().enumerate();
    let places: HashMap<CallId, usize> = calls.map(|(place, it)| (it.call, place)).collect();
    // A few points are reported one by one, each in its place.
    let mut split: Vec<ExplainedGroup<'a>> = Vec::new();
    let groups = grouped(
        evaluation,
        explanation,
        |call| evaluation.plan.call(call).point.is_some(),
        |_, _| true,
        |call| title_at_any_point(evaluation, call),
    );
    for group in groups {
        if group.calls.len() > ALONE {
            split.push(group);
            continue;
        }
        for call in group.calls {
            split.push(ExplainedGroup { calls: vec![call], reasons: Vec::new() });
        }
    }
    split.sort_by_key(|group| places[&group.calls[0].call]);
    split
}

/// Puts calls with the same name and the same reasons together, if they may be. Some reasons are left out.
fn grouped<'a>(
    evaluation: &Evaluation,
    explanation: &'a Explanation,
    may_be: impl Fn(CallId) -> bool,
    is_told: impl Fn(&Explained, &Why) -> bool,
    name: impl Fn(CallId) -> String,
) -> Vec<ExplainedGroup<'a>> {
    let mut groups: Vec<ExplainedGroup<'a>> = Vec::new();
    let mut places: HashMap<GroupKey, usize> = HashMap::new();
    for explained in &explanation.calls {
        let call = explained.call;
        let whys = explained.whys.iter().filter(|(why, _)| is_told(explained, why));
        let reasons = whys.map(|(why, causes)| {
            let text = shared_reason(evaluation, call, why, &name);
            SharedReason { text, why, causes }
        });
        let reasons: Vec<SharedReason<'_>> = reasons.collect();
        let next = groups.len();
        let place = if may_be(call) {
            let key = reasons.iter().map(|it| (it.text.clone(), it.causes.iter().collect()));
            let key = (name(call), key.collect());
            *places.entry(key).or_insert(next)
        } else {
            next
        };
        if place == next {
            groups.push(ExplainedGroup { calls: Vec::new(), reasons });
        }
        groups[place].calls.push(explained);
    }
    groups
}

/// The name of the computation of a call.
fn computation(evaluation: &Evaluation, call: CallId) -> String {
    let computation = evaluation.computation(call);
    computation.map_or_else(|| title_at_any_point(evaluation, call), |it| it.name.to_string())
}

/// The first points of calls: `threads=8 size=1, threads=8 size=2, ...`.
pub(super) fn points(evaluation: &Evaluation, calls: &[&Explained]) -> String {
    let named = calls.iter().take(NAMED).filter_map(|it| point_of_call(evaluation, it.call));
    let others = if calls.len() > NAMED { ", ..." } else { "" };
    format!("{}{others}", named.collect::<Vec<_>>().join(", "))
}

/// A reason without details that differ from point to point.
fn shared_reason(
    evaluation: &Evaluation,
    call: CallId,
    why: &Why,
    name: impl Fn(CallId) -> String,
) -> String {
    match why {
        Why::InputDiffers { at, .. } => format!("{} differs", input_of(evaluation, call, *at)),
        Why::NewAtPoint { at, .. } => format!("{} is new", input_of(evaluation, call, *at)),
        Why::Waits { at, call: awaited } => {
            format!("{} waits for {}", input_of(evaluation, call, *at), name(*awaited))
        }
        Why::FailedLast { failure: FailureRecord { failure, .. }, .. } => {
            format!("failed last; {}", failure.reason)
        }
        Why::Collected { .. } => "its result was collected".to_owned(),
        Why::NeverComputed
        | Why::ComputationChanged { .. }
        | Why::Uncommitted { .. }
        | Why::OtherSource { .. }
        | Why::NoLiteral { .. }
        | Why::Away
        | Why::Damaged { .. } => reason(evaluation, call, why),
    }
}

/// Prints a line for each cause, a line for each call that would run, and a line with the totals.
///
/// `changes` has the Git history of causes, by their indices.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn explanation_json(
    evaluation: &Evaluation,
    explanation: &Explanation,
    changes: &HashMap<usize, Change>,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (at, first) in explanation.causes.iter().enumerate() {
        let mut told = json!({ "event": "cause", "number": at + 1, "calls": first.calls });
        merge(&mut told, cause_json(evaluation, &first.cause));
        if let Some(change) = changes.get(&at) {
            merge(&mut told, json!(change));
        }
        json_line(&told, out)?;
    }
    for explained in &explanation.calls {
        let Explained { call, whys, nearest, seconds } = explained;
        let computation = evaluation.computation(*call).map(|it| it.name.as_str());
        let mut reasons = Vec::with_capacity(whys.len());
        for (why, causes) in whys {
            let mut reason = json!(why);
            let causes: Vec<usize> = causes.iter().map(|at| at + 1).collect();
            merge(&mut reason, json!({ "causes": causes }));
            reasons.push(reason);
        }
        let point = evaluation.plan.point(&evaluation.task, *call);
        let mut told = json!({
            "event": "call",
            "call": call.index(),
            "computation": computation,
            "name": evaluation.outcome(*call).map(|it| it.name().short()),
            "why": reasons,
            "nearest": nearest.as_ref().map(ResultName::short),
            "seconds": seconds,
        });
        if !point.is_empty() {
            let point: Map<String, Value> =
                point.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect();
            merge(&mut told, json!({ "point": point }));
        }
        json_line(&told, out)?;
    }
    // The sum of no numbers is -0.0.
    let seconds = 0.0 + explanation.calls.iter().filter_map(|it| it.seconds).sum::<f64>();
    let mut end = json!({
        "event": "end",
        "calls": explanation.calls.len(),
        "seconds": seconds,
        "unknown": explanation.calls.iter().filter(|it| it.seconds.is_none()).count(),
        "unread": explanation.unread,
        "exit": evaluation.exit().code(),
    });
    if evaluation.plan.grows() {
        merge(&mut end, json!({ "at_least": true }));
    }
    json_line(&end, out)
}

fn merge(line: &mut Value, more: Value) {
    if let (Value::Object(line), Value::Object(more)) = (line, more) {
        line.extend(more);
    }
}

/// The name of a computation, and its version.
fn named(evaluation: &Evaluation, id: ComputationId) -> (&str, CodeVersion) {
    let computation = &evaluation.task.computations[id.index()];
    (computation.name.as_str(), CodeVersion::from_computation(computation))
}

fn cause_json(evaluation: &Evaluation, cause: &Cause) -> Value {
    let of = |kind: &str, id: &ComputationId| json!({ "cause": kind, "computation": named(evaluation, *id).0 });
    match cause {
        Cause::NeverComputed(id) => of("never_computed", id),
        Cause::Computation(id, old) => {
            let (computation, new) = named(evaluation, *id);
            json!({ "cause": "computation", "computation": computation, "old": old, "new": new })
        }
        Cause::Uncommitted(id, old) => {
            let (computation, new) = named(evaluation, *id);
            json!({ "cause": "uncommitted", "computation": computation, "old": old, "new": new })
        }
        Cause::Input(id, old) => {
            let new = evaluation.digest(Source::Input(*id));
            let input = evaluation.task.inputs[id.index()].as_str();
            json!({ "cause": "input", "input": input, "old": old, "new": new })
        }
        Cause::File(id, old) => {
            let new = evaluation.digest(Source::File(*id));
            let file = evaluation.task.files[id.index()].path.as_str();
            json!({ "cause": "file", "file": file, "old": old, "new": new })
        }
        Cause::Tree(id, old) if evaluation.plan.tree(*id).is_none() => {
            let new = evaluation.digest(Source::Derived { value: *id, number: 0 });
            let value = derived_title(evaluation, *id, 0);
            json!({ "cause": "point", "name": null, "value": value, "old": old, "new": new })
        }
        Cause::Table(call) => {
            let (table, file) = (title(evaluation, *call), sheet_of(evaluation, *call));
            json!({ "cause": "table", "table": table, "file": file })
        }
        Cause::NewAtPoint(id) => {
            let new = evaluation.digest(Source::Derived { value: *id, number: 0 });
            let value = derived_title(evaluation, *id, 0);
            let name = text_name(evaluation, *id);
            json!({ "cause": "point", "name": name, "value": value, "new": new })
        }
        Cause::Tree(id, old) => {
            let new = evaluation.digest(Source::Derived { value: *id, number: 0 });
            let tree = evaluation.plan.tree(*id).map(|tree| &evaluation.task.trees[tree.index()]);
            let tree = tree.map(|tree| tree.name.as_str());
            let version = tree_version(evaluation, *id);
            json!({ "cause": "tree", "tree": tree, "version": version, "old": old, "new": new })
        }
        Cause::Member(id, old) => {
            let (of, path) = evaluation.plan.whole(Source::Derived { value: *id, number: 0 });
            let new = evaluation.digest(Source::Derived { value: *id, number: 0 });
            let of = evaluation.name(of);
            json!({ "cause": "member", "member": path, "directory": of, "old": old, "new": new })
        }
        Cause::Literal(id, old) => {
            let new = evaluation.files.literals[id.index()].as_ref().map(|it| it.digest);
            let literal = &evaluation.plan.literals()[id.index()];
            json!({ "cause": "literal", "literal": literal, "old": old, "new": new })
        }
        Cause::NoLiteral(id) => {
            json!({ "cause": "no_literal", "literal": evaluation.plan.literals()[id.index()] })
        }
        Cause::OtherSource(id, at) => {
            let mut line = of("other_source", id);
            line["input"] = json!(at);
            line
        }
        Cause::OtherOutputs(id) => of("other_outputs", id),
        Cause::Unrecorded(id) => of("unrecorded", id),
        Cause::FailedLast(id) => of("failed_last", id),
        Cause::Collected(id) => of("collected", id),
        Cause::Away(id) => of("away", id),
        Cause::Damaged(id) => of("damaged", id),
    }
}
