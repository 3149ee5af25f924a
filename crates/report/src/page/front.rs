//! The facts that a reader decides from: title and question, how well all is known, results, measurements, comparisons, how to
//! repeat it, and failures.
//!
//! It is HTML without scripts. Every text of a study stays text: only [`maud`] and the drawing of plots write markup.
//!
//! It also has the tables further below about the making of the results: the executions of each computation, with times and
//! durations.

use std::collections::{BTreeMap, HashSet};

use super::gallery::{address, gallery};
use super::measurements::{self, LevelComparison, ShownTable};
use super::{capitalised, different, in_utc, lines, moment, text};
use ce_git::LastChange;
use ce_model::humanize::{counted, duration, size};
use ce_model::name::{encoded, file_name};
use ce_model::statistics::Measurements;
use ce_model::sweep::{CellValue, read_cells};
use ce_queries::frame::{FrameRow, RowStatus};
use ce_queries::page::{
    CopyBeside, FileFormat, GivenInput, GivenValue, MEMBERS, NotHeld, OutputContents, PageCall,
    PageCallState, PageData, PageMember, PageOutput, PageStudy,
};
use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The number of digits of a commit, or of another SHA-1, that are shown.
const SHORT_HASH: usize = 12;

/// The largest number of rows shown of a table of a result.
const ROWS: usize = 20;

/// The largest number of bytes shown of a text.
const TEXT: usize = 4096;

/// The largest number of failures shown.
const FAILURES: usize = 5;

/// The head of a page: its question, and how complete its results are.
pub(super) fn head(
    data: &PageData,
    tables: &[ShownTable<'_>],
    comparisons: &[LevelComparison<'_>],
    omissions: &[String],
) -> Markup {
    let study = data.study.as_ref();
    html! {
        h1 { (text(&title(data))) }
        @if let Some(question) = study.and_then(|study| study.question.as_ref()) {
            p.question { (text(question)) }
        }
        div.summary {
            (completeness(data))
            @for missed in measurements::missed_goals(tables) { span.answer.bad { (text(&missed)) } }
            @for verdict in comparisons.iter().flat_map(LevelComparison::in_words) { span.answer { (text(&verdict)) } }
            @if let Some(known) = measurements::known(tables) { span { (known) } }
            @if let Some(disturbed) = measurements::disturbed(data) { span { (disturbed) } }
            @if let Some(when) = when(&data.calls) {
                span { (if tables.iter().any(|it| it.measured.has_replicates) { "Measured " } else { "Computed " }) (when) }
            }
            @if let Some(machine) = machine_summary(data) { span { (machine) } }
        }
        p.hint {
            @if let Some(study) = study {
                (given(study)) " " (version(study)) " "
            } @else {
                @for (name, fact) in &data.facts { (name) " " (text(fact)) ". " }
            }
            "Made by CompEval " (env!("CARGO_PKG_VERSION")) "."
        }
        @if !omissions.is_empty() {
            ul.note #omissions { @for omission in omissions { li { "Note: " (text(omission)) "." } } }
        }
    }
}

/// The title of a page.
pub(super) fn title(data: &PageData) -> String {
    match data.study.as_ref().and_then(|study| study.title.as_ref()) {
        Some(title) => title.clone(),
        None => data.title.clone(),
    }
}

fn completeness(data: &PageData) -> Markup {
    let states = [PageCallState::Failed, PageCallState::Missing, PageCallState::Suspended];
    let [failed, missing, suspended] =
        states.map(|state| data.calls.iter().filter(|call| call.state == state).count());
    let lacking = counted_lack(failed, missing, suspended);
    let rows: Vec<&FrameRow> =
        data.tables.iter().flat_map(|table| table.frame.included()).collect();
    let points = rows.iter().filter(|row| row.status == RowStatus::Ok).count();
    html! {
        @if lacking.is_empty() {
            span { b { "Complete" } ": "
                @if data.study.is_some() && !rows.is_empty() && points == rows.len() {
                    (counted(points, "row")) ", "
                }
                (counted(data.calls_in_all, "call")) ", none failed"
            }
        } @else {
            span.bad { b { "Not complete" } ": of " (counted(data.calls_in_all, "call")) ", " (lacking)
                @if failed > 0 { " (" a href="#failures" { "why" } ")" }
            }
        }
    }
}

fn counted_lack(failed: usize, missing: usize, suspended: usize) -> String {
    let parts = [(failed, "failed"), (missing, "missing"), (suspended, "suspended")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    parts.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// The calls that stand for an execution each: not those whose outputs were taken over from another one on the page.
fn executions(calls: &[PageCall]) -> impl Iterator<Item = &PageCall> + Clone {
    let names: HashSet<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    calls.iter().filter(move |call| {
        call.taken_over.as_ref().is_none_or(|source| !names.contains(source.from.as_str()))
    })
}

/// When calls were executed, and how long that took, as far as it is known.
fn when(calls: &[PageCall]) -> Option<String> {
    let timed = executions(calls).filter_map(|call| Some((call.end?, call.seconds.unwrap_or(0.0))));
    let begin = timed.clone().map(|(end, seconds)| end - (seconds * 1000.0) as i64).min();
    let end = timed.map(|(end, _)| end).max();
    let took: f64 = executions(calls).filter_map(|call| call.seconds).sum();
    let Some((begin, end)) = begin.zip(end) else {
        return (took > 0.0).then(|| format!("elsewhere in {}", duration(took)));
    };
    let took =
        if took > 0.0 { format!(", {} of computing", duration(took)) } else { String::new() };
    let [day, last] = [begin, end].map(|time| in_utc(time, "%-d %B %Y"));
    let [first_clock, last_clock] = [begin, end].map(|time| in_utc(time, "%H:%M"));
    Some(match (day == last, first_clock == last_clock) {
        (true, true) => format!("on {day}, {first_clock} UTC{took}"),
        (true, false) => {
            format!("on {day}, {first_clock} to {last_clock} UTC{took}")
        }
        (false, _) => {
            format!("from {day}, {first_clock} to {last}, {last_clock} UTC{took}")
        }
    })
}

/// The machine as it was given, and the hosts and machines as they were recorded, as far as they are known: they may differ.
fn machine_summary(data: &PageData) -> Option<String> {
    let hosts = different(data.calls.iter().filter_map(|call| call.host.as_deref()));
    let machines = different(data.calls.iter().filter_map(|call| call.machine.as_deref()));
    let mut said = match &hosts[..] {
        [] => String::new(),
        [host] => format!("host {host}"),
        hosts => format!("{}: {}", counted(hosts.len(), "host"), hosts.join(", ")),
    };
    match &machines[..] {
        [] => {}
        [machine] if said.is_empty() => said = format!("machine {machine}"),
        [machine] => said = format!("{said} ({machine})"),
        machines if said.is_empty() => said = counted(machines.len(), "machine"),
        machines => said = format!("{said}, {}", counted(machines.len(), "different machine")),
    }
    let given = data.study.iter().flat_map(|study| &study.given);
    let machine = given.filter(|it| it.name == "machine").find_map(|it| match &it.value {
        GivenValue::Text(text) => Some(text),
        _ => None,
    });
    match machine {
        Some(machine) if said.is_empty() => Some(text(&format!("Machine {machine} (as given)"))),
        Some(machine) => Some(text(&format!("Machine {machine} (as given), {said}"))),
        None if said.is_empty() => None,
        None => Some(text(&capitalised(&said))),
    }
}

/// Lists the values given for the inputs of a task.
fn given(study: &PageStudy) -> Markup {
    let shown: Vec<String> = study.given.iter().filter_map(given_input).collect();
    html! { @if !shown.is_empty() { "Given: " (text(&shown.join(", "))) "." } }
}

fn given_input(input: &GivenInput) -> Option<String> {
    let GivenInput { name, value, is_default } = input;
    let default = if *is_default { " (default)" } else { "" };
    match value {
        GivenValue::Text(text) => Some(format!("{name} = {text}{default}")),
        GivenValue::File(bytes, sha1) => Some(format!(
            "{name} = a file of {}, SHA-1 {}{default}",
            size(*bytes),
            &sha1[..SHORT_HASH]
        )),
        GivenValue::Nothing => None,
    }
}

/// The version of a study, and whom to ask.
fn version(study: &PageStudy) -> Markup {
    html! {
        "Version of the study: " (study.commit.short())
        @if study.is_changed { ", with changes that are not committed" }
        @if let Some(LastChange { commit, author, email }) = &study.last_change {
            @if commit.id != study.commit { ", last changed by " (commit.id.short()) }
            " of " (moment(commit.time * 1000)[..10]) ", “" (text(&commit.title)) "”. "
            "Questions to: " (text(author)) " <" (text(email)) ">, who changed it."
        }
    }
}

/// The outputs, each with its kind, its maker, and a link that saves it.
pub(super) fn results(outputs: &[PageOutput]) -> Markup {
    // The tables of sweeps are measurements.
    let outputs: Vec<&PageOutput> = outputs.iter().filter(|it| !it.is_table).collect();
    let is_one = outputs.len() == 1;
    html! {
        @if !outputs.is_empty() {
            section #results {
                h2 { @if is_one { "Result: " (text(&name(outputs[0]))) } @else { "Results" } }
                @for output in &outputs {
                    figure.result {
                        @if !is_one { h3 { (text(&name(output))) } }
                        (result(output))
                        figcaption { (caption(output)) }
                    }
                }
            }
        }
    }
}

/// The name of an output: the name of its definition, or its name in the computation that made it.
fn name(output: &PageOutput) -> String {
    let own = own_name(output);
    match &output.defined {
        Some(defined) if own.is_empty() || own == *defined => defined.clone(),
        Some(defined) => format!("{defined}: {own}"),
        None if own.is_empty() => output.value.file.clone().unwrap_or_default(),
        None => own.to_owned(),
    }
}

/// The name of the output in its maker, without the suffix of a file.
fn own_name(output: &PageOutput) -> &str {
    let name = output.output.trim_end_matches('/');
    name.split_once('.').map_or(name, |(name, _)| name)
}

fn result(output: &PageOutput) -> Markup {
    let Some(contents) = &output.contents else {
        return html! { p.absent { @if output.value.sha1.is_empty() { "It is missing." } @else { "It is not on this page." } } };
    };
    let bytes = match &contents.held {
        Ok(bytes) => bytes,
        Err(NotHeld::Directory) if !output.members.is_empty() => {
            return directory(output, contents.size);
        }
        Err(_) if output.beside.is_some() => {
            return html! { p { "A file of " (size(contents.size)) ", beside this page." } };
        }
        Err(why) => return html! { p.absent { (not_held(why, contents.size)) } },
    };
    let shown = String::from_utf8_lossy(bytes);
    match contents.format {
        FileFormat::Picture(_) => html! {
            img alt=(text(&format!("{}, a picture", name(output)))) src=(address(contents, bytes));
        },
        FileFormat::Table(_) => rows(bytes),
        FileFormat::Markdown => html! { div.markdown { (markdown(&shown)) } },
        FileFormat::Json | FileFormat::JsonLines | FileFormat::Text => {
            let end = (0..=TEXT.min(shown.len())).rev().find(|at| shown.is_char_boundary(*at));
            let (begin, rest) = shown.split_at(end.unwrap_or_default());
            html! {
                pre { (lines(begin)) }
                @if !rest.is_empty() { p.hint { "The first " (size(TEXT as u64)) " of " (size(contents.size)) "." } }
            }
        }
        FileFormat::Other => html! { p { "A file of " (size(contents.size)) "." } },
    }
}

/// The files of a directory: pictures in a grid, the first table, and a list of all.
fn directory(output: &PageOutput, bytes: u64) -> Markup {
    let members = &output.members;
    let is_picture = |it: &OutputContents| matches!(it.format, FileFormat::Picture(_));
    let shown = members.iter().filter_map(|it| Some((it.shown(), it.contents.as_ref()?)));
    let shown: Vec<(String, &OutputContents)> = shown.collect();
    let pictures = shown.iter().filter(|(_, it)| is_picture(it));
    let tables = shown.iter().filter(|(_, it)| !is_picture(it));
    let files = members.iter().filter(|it| it.target.is_none()).count();
    let too_large = shown.iter().filter(|(_, it)| it.held == Err(NotHeld::TooLarge)).count();
    html! {
        p { "A directory with " (counted(files, "file")) " of " (size(bytes)) "." }
        (gallery(pictures.map(|(path, contents)| (&**path, *contents))))
        @if too_large > 0 { p.hint { (counted(too_large, "picture")) " without room on this page: see the list." } }
        @for (path, contents) in tables {
            @if let Ok(bytes) = &contents.held {
                p { (text(path)) ":" }
                (rows(bytes))
            }
        }
        details open[members.len() <= ROWS && !shown.iter().any(|(_, it)| is_picture(it))] {
            summary { "All files" }
            ul.files { @for member in members.iter().take(MEMBERS) { li { (member_line(member)) } } }
            @if members.len() > MEMBERS { p.hint { "The first " (MEMBERS) " of " (members.len()) ": ce export has all." } }
        }
    }
}

/// A file of a directory in a list, with links to its copy.
fn member_line(member: &PageMember) -> Markup {
    let path = member.shown();
    let why = member.contents.as_ref().and_then(|it| it.held.as_ref().err());
    html! {
        @if let Some(CopyBeside { path: copy, saved_as, shown_on }) = &member.beside {
            @let is_renamed = !copy.ends_with(&format!("/{saved_as}"));
            a href=(encoded(copy)) download=[is_renamed.then_some(saved_as)] { (text(&path)) }
            @if let Some(page) = shown_on { ", " a href=(encoded(page)) { "shown" } }
        } @else { (text(&path)) }
        @if let Some(target) = &member.target { " → " (text(&String::from_utf8_lossy(target))) }
        @else if let Some(NotHeld::Secret(what)) = why { " (left out: it seems to hold " (text(what)) ")" }
        @else if why == Some(&NotHeld::Absent) { " (not in the storage)" }
        @else { " (" (size(member.size)) ")" }
    }
}

fn not_held(why: &NotHeld, bytes: u64) -> String {
    match why {
        NotHeld::Absent => "Its contents are not in the storage.".to_owned(),
        NotHeld::Away => {
            "Its contents are in a results repository, and not in the storage: ce export or ce run fetches \
             them."
                .to_owned()
        }
        NotHeld::Directory if bytes == 0 => "An empty directory.".to_owned(),
        NotHeld::Directory => format!("A directory with files of {}.", size(bytes)),
        NotHeld::TooLarge => format!("A file of {}, which has no room on this page.", size(bytes)),
        NotHeld::Secret(what) => format!("It is left out: it seems to hold {what}."),
    }
}

/// A table: TSV or CSV.
fn rows(contents: &[u8]) -> Markup {
    let table = read_cells(contents).unwrap_or_default();
    let is_number = |at: usize| {
        let mut cells = table.rows.iter().map(|row| &row[at]);
        cells.all(|cell| !matches!(cell, CellValue::Text(_)))
    };
    let is_number: Vec<bool> = (0..table.names.len()).map(is_number).collect();
    html! {
        div.scroll { table {
            thead { tr { @for (name, is_number) in table.names.iter().zip(&is_number) {
                th.number[*is_number] scope="col" { (text(name)) }
            } } }
            tbody { @for row in table.rows.iter().take(ROWS) { tr { @for (cell, is_number) in row.iter().zip(&is_number) {
                td.number[*is_number] { (text(cell.text())) }
            } } } }
        } }
        @if table.rows.len() > ROWS { p.hint { "The first " (ROWS) " of " (counted(table.rows.len(), "row")) "." } }
    }
}

/// Markdown without raw HTML, without pictures, and with links to the web and by mail only. Its titles are below the titles of the page.
fn markdown(source: &str) -> Markup {
    let source = lines(source);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut is_link_kept = Vec::new();
    let events = Parser::new_ext(&source, options).filter_map(|event| match event {
        Event::Html(html) | Event::InlineHtml(html) => Some(Event::Text(html)),
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
        Event::Start(Tag::Link { ref dest_url, .. }) => {
            let is_kept =
                ["https://", "http://", "mailto:"].iter().any(|it| dest_url.starts_with(it));
            is_link_kept.push(is_kept);
            is_kept.then_some(event)
        }
        Event::End(TagEnd::Link) => is_link_kept.pop().unwrap_or(false).then_some(event),
        Event::Start(Tag::Heading { level, id, classes, attrs }) => {
            Some(Event::Start(Tag::Heading { level: below(level), id, classes, attrs }))
        }
        Event::End(TagEnd::Heading(level)) => Some(Event::End(TagEnd::Heading(below(level)))),
        event => Some(event),
    });
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, events);
    PreEscaped(html)
}

/// The level of a title of a document within the page.
fn below(level: pulldown_cmark::HeadingLevel) -> pulldown_cmark::HeadingLevel {
    use pulldown_cmark::HeadingLevel;
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

/// Describes the maker of an output and its sources, with a link that saves the output.
fn caption(output: &PageOutput) -> Markup {
    let made_from = output.made_from.iter().map(|name| text(name)).collect::<Vec<_>>().join(", ");
    html! {
        @if !output.maker.is_empty() {
            "Made by " (text(&output.maker))
            @if !made_from.is_empty() { " from " (made_from) }
            ". "
        }
        @if !output.task.is_empty() && output.defined.is_none() && output.maker.is_empty() {
            "Output " (text(&output.value.name)) " of " (text(&output.task)) ". "
        }
        @if let Some(CopyBeside { path, saved_as, shown_on }) = &output.beside {
            @if let Some(page) = shown_on { a href=(encoded(page)) { "Show it" } ", or save " }
            a href=(encoded(path)) download=(saved_as) { (text(path)) }
        }
        @if let Some((contents, bytes)) = output.contents.as_ref().and_then(|it| Some((it, it.held.as_ref().ok()?))) {
            @let file = saved_name(output, contents.format);
            a download=(file) href=(address(contents, bytes)) { "Save " (file) } " (" (size(contents.size)) ")"
        }
    }
}

/// The name of the file that an output is saved as: of an output of a task, the one that `ce run --out` gives it.
fn saved_name(output: &PageOutput, format: FileFormat) -> String {
    if let Some(name) = &output.outer_name {
        return name.clone();
    }
    let name = output.output.trim_end_matches('/');
    let name = match format.suffix() {
        suffix if suffix.is_empty() || name.contains('.') => name.to_owned(),
        suffix => format!("{name}.{suffix}"),
    };
    file_name(&name)
}

/// The commands that repeat a study.
pub(super) fn repeat(study: &PageStudy, calls: &[PageCall]) -> Markup {
    let took: f64 = executions(calls).filter_map(|call| call.seconds).sum();
    html! {
        section #repeat {
            h2 { "Repeat it" }
            pre { (lines(&study.commands.join("\n"))) }
            @if study.commands.first().is_some_and(|it| it.contains("REPOSITORY")) {
                p.hint { "REPOSITORY is the address of the repository with the study; this copy of it names none." }
            }
            @for input in study.given.iter().filter(|it| !it.is_default) {
                @if let GivenValue::File(bytes, sha1) = &input.value {
                    p.hint { (text(&input.name)) "=FILE: a file of " (size(*bytes)) " with SHA-1 " (sha1) }
                }
            }
            @for (name, address) in &study.repositories {
                p.hint { (text(name)) "=REPO: "
                    @if let Some(address) = address { "a clone of " (text(address)) }
                    @else { "the repository that the study calls so" }
                }
            }
            p.hint {
                "ce is the program of CompEval, which made this page. "
                @if took > 0.0 { "To compute all of it took " (duration(took)) ", if one call follows the other." }
            }
            @if study.is_changed {
                p.hint { "The study has changes that are not committed: a clone does not have them." }
            }
        }
    }
}

/// Calls that failed, by computation and reason, with their points and the log of the first.
pub(super) fn failures(calls: &[PageCall], without_values: &[String]) -> Markup {
    let mut groups: Vec<(&str, &str, Vec<&PageCall>)> = Vec::new();
    for call in calls.iter().filter(|it| it.state == PageCallState::Failed) {
        let reason = call.reason.as_deref().unwrap_or("it failed");
        match groups.iter_mut().find(|(name, why, _)| *name == call.computation && *why == reason) {
            Some((_, _, calls)) => calls.push(call),
            None => groups.push((&call.computation, reason, vec![call])),
        }
    }
    html! {
        @if !groups.is_empty() {
            section #failures {
                h2 { "Failures" }
                @for (computation, reason, calls) in groups.iter().take(FAILURES) {
                    div.failure {
                        p { b { (text(computation)) ", " (counted(calls.len(), "call")) } ": " (text(reason)) }
                        p.hint { (text(&points(calls))) }
                        @if let Some(log) = calls.iter().find_map(|call| call.log.as_ref()?.tail.as_ref()) {
                            details open[groups.len() == 1] {
                                summary { "The end of a log" }
                                pre { (lines(log)) }
                            }
                        }
                    }
                }
                @if !without_values.is_empty() {
                    p { "Points without values: " (text(&shortened(without_values))) "." }
                }
                p.hint { "When the computation or its input is mended, the same command executes what has failed or was changed, and what needs it." }
                @if groups.len() > FAILURES {
                    p.hint { "And " (groups.len() - FAILURES) " more computations or reasons." }
                }
            }
        }
    }
}

/// The points of some calls: the short texts that they read.
fn points(calls: &[&PageCall]) -> String {
    let points = calls.iter().map(|call| {
        let texts = call.texts.iter().map(|(name, text)| format!("{name}={}", text.trim_end()));
        texts.collect::<Vec<_>>().join(" ")
    });
    let mut points: Vec<String> = points.filter(|it| !it.is_empty()).collect();
    points.sort_unstable();
    points.dedup();
    shortened(&points)
}

/// The first few of a list, and how many more there are.
fn shortened(list: &[String]) -> String {
    let shown = list[..list.len().min(FAILURES)].join("; ");
    match list.len().saturating_sub(FAILURES) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

/// The calls of a computation.
#[derive(Default)]
struct ComputationCalls<'a> {
    calls: usize,
    failed: usize,
    missing: usize,
    seconds: Vec<f64>,
    cpu: Vec<f64>,
    peak: Option<u64>,
    ends: Vec<i64>,
    commits: Vec<&'a str>,
}

impl<'a> ComputationCalls<'a> {
    fn add(&mut self, call: &'a PageCall) {
        self.calls += 1;
        self.failed += usize::from(call.state == PageCallState::Failed);
        self.missing += usize::from(call.state == PageCallState::Missing);
        self.ends.extend(call.end);
        // The version that was executed.
        let origin = call.taken_over.as_ref().and_then(|from| from.from.split('/').nth(1));
        let commit = origin.unwrap_or(&call.commit);
        let commit = commit.get(..SHORT_HASH).unwrap_or(commit);
        if !commit.is_empty() && !self.commits.contains(&commit) {
            self.commits.push(commit);
        }
    }

    fn add_execution(&mut self, call: &PageCall) {
        self.seconds.extend(call.seconds);
        self.cpu.extend(call.cpu_seconds);
        self.peak = self.peak.max(call.peak_bytes);
    }

    fn executed(&self) -> String {
        let (Some(first), Some(last)) = (self.ends.iter().min(), self.ends.iter().max()) else {
            return "–".to_owned();
        };
        let [first, last] = [first, last].map(|time| moment(*time));
        if first == last { first } else { format!("{first} to {last}") }
    }
}

/// The table of the computations, the one that took longest first.
pub(super) fn computations(data: &PageData) -> Markup {
    let mut groups: BTreeMap<&str, ComputationCalls<'_>> = BTreeMap::new();
    for call in &data.calls {
        groups.entry(&call.computation).or_default().add(call);
    }
    for call in executions(&data.calls) {
        groups.entry(&call.computation).or_default().add_execution(call);
    }
    let mut groups: Vec<(&str, ComputationCalls<'_>)> = groups.into_iter().collect();
    let total = |group: &ComputationCalls<'_>| group.seconds.iter().sum::<f64>();
    groups.sort_by(|(_, a), (_, b)| total(b).total_cmp(&total(a)));
    let some = |of: fn(&ComputationCalls<'_>) -> bool| groups.iter().any(|(_, group)| of(group));
    let [has_failed, has_missing] = [some(|it| it.failed > 0), some(|it| it.missing > 0)];
    let [has_cpu, has_peak] = [some(|it| !it.cpu.is_empty()), some(|it| it.peak.is_some())];
    let [has_ends, has_seconds] =
        [some(|it| !it.ends.is_empty()), some(|it| !it.seconds.is_empty())];
    html! {
        @if !groups.is_empty() {
            h3 { "Computations" }
            div.scroll { table #computations {
                thead { tr {
                    th scope="col" { "computation" }
                    th.number scope="col" { "calls" }
                    @if has_failed { th.number scope="col" { "failed" } }
                    @if has_missing { th.number scope="col" { "missing" } }
                    @if has_ends { th scope="col" { "executed (UTC)" } }
                    @if has_seconds {
                        th.number scope="col" { "total" }
                        th.number scope="col" { "median" }
                        th.number scope="col" { "longest" }
                    }
                    @if has_cpu { th.number scope="col" { "CPU time" } }
                    @if has_peak { th.number scope="col" { "peak memory" } }
                    th scope="col" { "version" }
                } }
                tbody { @for (name, group) in &groups { tr {
                    @let sample = Measurements::new(group.seconds.clone());
                    td { (text(name)) }
                    td.number { (group.calls) }
                    @if has_failed { td.number { (group.failed) } }
                    @if has_missing { td.number { (group.missing) } }
                    @if has_ends { td { (group.executed()) } }
                    @if let Some(sample) = &sample {
                        td.number { (seconds(total(group))) }
                        td.number { (seconds(sample.median())) }
                        td.number { (seconds(sample.range()[1])) }
                    } @else if has_seconds { td.number { "–" } td.number { "–" } td.number { "–" } }
                    @if has_cpu { td.number { @if group.cpu.is_empty() { "–" } @else { (seconds(group.cpu.iter().sum())) } } }
                    @if has_peak { td.number { @if let Some(peak) = group.peak { (size(peak)) } @else { "–" } } }
                    td.mono { @for (at, commit) in group.commits.iter().enumerate() {
                        @if at > 0 { ", " } (commit)
                    } }
                } } }
            } }
        }
    }
}

/// The machines of executions, if they are known.
pub(super) fn machines(data: &PageData) -> Markup {
    let mut machines: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for call in &data.calls {
        if let Some(machine) = &call.machine {
            *machines.entry((call.host.as_deref().unwrap_or("–"), machine)).or_default() += 1;
        }
    }
    html! {
        @if !machines.is_empty() {
            h3 { "Machines" }
            div.scroll { table.measured {
                thead { tr { th scope="col" { "host" } th scope="col" { "machine" } th.number scope="col" { "calls" } } }
                tbody { @for ((host, machine), calls) in &machines { tr {
                    td { (text(host)) } td { (text(machine)) } td.number { (calls) }
                } } }
            } }
        }
    }
}

/// A duration, exact enough for short ones.
fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.3} s") } else { duration(seconds) }
}
