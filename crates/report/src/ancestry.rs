//! The provenance of a file: for humans, and as one JSON document.

use std::collections::HashMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use super::calls::{result_title, text_in_words, texts_in_words};
use super::harmless;
use ce_exchange::Attested;
use ce_history::{
    Ancestor, InputRoles, InputTexts, PointTexts, PointsInTable, PublishedExecution, RolesOfInputs,
    Subject, TableSummary, TakenOver,
};
use ce_model::digest::{Digest, ObjectId};
use ce_model::humanize::{self, counted};
use ce_model::resources::LimitedAttempt;
use ce_storage::records::{
    CallRecord, Execution, JobRecord, JobRevision, Origin, Provenance, TableRecord,
};
use ce_storage::{Defect, LogTail, Record, RevocationRecord, Storage};

/// The greatest number of tables that are named.
const TABLES: usize = 3;

/// The greatest number of published executions that are printed.
const EXECUTIONS: usize = 3;

/// The number of lines that are printed unless all are asked for.
const SCREEN: usize = 24;

/// The least number of lines for the origin of a file, also where the others leave no room.
const LEAST: usize = 6;

/// The number of inputs of a job, and of lines of a log, that are printed unless all are asked for.
const FEW: usize = 5;

/// The provenance of a file.
#[derive(Debug)]
pub struct Ancestry<'a> {
    pub storage: &'a Storage,
    /// The file.
    pub subject: Subject<'a>,
    /// The damage found in it, if any.
    pub fault: Option<Defect>,
    /// Whether it would be fetched, if it is away.
    pub is_fetched: bool,
    /// The source of the outputs, if they were taken over.
    pub taken_over: Option<Box<TakenOver>>,
    /// The log of its call, unless that is empty.
    pub log: Option<LogTail>,
    /// The recipe in short, if it is a table with one that can be read.
    pub summary: Option<TableSummary>,
    /// The points of tables at which its call is, the newest table first.
    pub points: Vec<PointsInTable>,
    /// The short texts that its call read.
    pub texts: InputTexts,
    /// The revocations of its result.
    pub revoked: Vec<RevocationRecord>,
    /// The attesters of its call, by the ledger.
    pub attested: Option<Attested>,
    /// The executions with the same outputs whose end the ledger records.
    pub published: Vec<PublishedExecution>,
    /// The files that it was made from, in the order of the tree.
    pub ancestors: Vec<Ancestor<'a>>,
    /// The short texts of those that are calls of the rows of a table, by their places.
    pub texts_of_rows: HashMap<usize, InputTexts>,
    /// The roles of the task inputs among all these.
    pub roles: RolesOfInputs,
}

impl Ancestry<'_> {
    /// Prints it for humans: all of it, or at most a screen.
    pub fn text(&self, all: bool, out: &mut dyn Write) -> io::Result<()> {
        let mut facts = Vec::new();
        self.facts(all, &mut facts)?;
        out.write_all(&facts)?;
        if self.ancestors.is_empty() {
            return Ok(());
        }
        writeln!(out, "made from:")?;
        let above = 1 + facts.iter().filter(|byte| **byte == b'\n').count();
        let room = if all { usize::MAX } else { SCREEN.saturating_sub(above).max(LEAST) };
        let shown = self.first_ancestors(room);
        for at in &shown {
            self.line(*at, &shown, out)?;
        }
        match self.ancestors.len() - shown.len() {
            0 => {}
            more => writeln!(out, "    and {}: --all prints them", counted(more, "more line"))?,
        }
        match self.summary.as_ref().map_or(0, |it| it.files - it.first.len()) {
            0 => Ok(()),
            more => writeln!(out, "and from {more} more: see the recipe"),
        }
    }

    /// The ancestors for which there is room: all, or the first levels and a line for the number of others.
    fn first_ancestors(&self, room: usize) -> Vec<usize> {
        if self.ancestors.len() <= room {
            return (0..self.ancestors.len()).collect();
        }
        let within = |depth: usize| {
            let all = self.ancestors.iter().enumerate();
            all.filter(move |(_, it)| it.depth <= depth).map(|(at, _)| at)
        };
        let deepest = (2..).take_while(|depth| within(*depth).count() < room).last().unwrap_or(1);
        within(deepest).take(room - 1).collect()
    }

    /// Prints the facts about the file itself.
    fn facts(&self, all: bool, out: &mut dyn Write) -> io::Result<()> {
        let Subject { digest, record, number, .. } = self.subject;
        writeln!(out, "{}", self.shown(&self.subject.file()))?;
        let Digest { sha1, size, bytes, .. } = digest;
        field(out, "SHA-1", &sha1.full())?;
        match bytes {
            Some(bytes) => {
                field(
                    out,
                    "directory",
                    "the SHA-1 is the hash of its manifest: see ce show --manifest",
                )?;
                field(out, "size", &format!("{bytes} bytes in all files"))?;
            }
            None => field(out, "size", &format!("{size} bytes"))?,
        }
        let how = match self.fault {
            Some(Defect::Away) if self.is_fetched => "; ce export and ce run fetch it",
            Some(Defect::Away) => {
                "; ce pull brings it if a repository has it, else ce run makes it again"
            }
            _ => "",
        };
        field(out, "state", &(self.state() + how))?;
        for RevocationRecord { reason, .. } in &self.revoked {
            field(out, "revoked", &harmless(reason))?;
        }
        match record {
            Record::Call(call) => self.call(call, number, all, out),
            Record::Job(job) => self.job(job, number, all, out),
            Record::Table(table) => self.table(table, number, out),
            Record::TaskInput(input) => {
                self.roles(out)?;
                stamp(Some(&input.recorded), out)
            }
        }
    }

    fn call(
        &self,
        call: &CallRecord,
        number: usize,
        all: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        field(out, "computation", &format!("{}, output {number:02}", call.computation))?;
        match self.subject.entry.version() {
            Some(version) if call.dirty => {
                let changes = "uncommitted changes on top of";
                let none = format!("none: {version} has {changes} {}", call.commit.full());
                field(out, "commit", &none)?;
            }
            _ => self.commit(&call.commit, out)?,
        }
        // Otherwise the names of the files that it was made from have their first digits.
        for (number, input) in call.inputs.iter().enumerate().filter(|_| all) {
            field(out, &format!("input {number:02}"), &input.sha1.full())?;
        }
        if self.texts.iter().next().is_some() {
            field(out, "texts", &texts_in_words(&self.texts.iter().collect::<Vec<_>>()))?;
        }
        self.points(out)?;
        if let Some(TakenOver { from, host, trusted_tree, .. }) = self.taken_over.as_deref() {
            let trusted = if *trusted_tree { ", not isolated: its tree was trusted" } else { "" };
            field(out, "taken over", &format!("from {from}{trusted}; when that was executed:"))?;
            let unknown = "not known: its record is gone";
            field(out, "where", host.as_deref().unwrap_or(unknown))?;
        }
        match &call.origin {
            Origin::Executed { execution, .. } => executed(execution, out)?,
            Origin::Adopted => field(out, "adopted", "found without a record, and trusted")?,
            Origin::Shared(shared) => {
                if let Some(from) = &shared.taken_over {
                    field(out, "taken over", &format!("from {}", harmless(from)))?;
                }
                let how = if call.origin.is_isolated() { "isolated" } else { "not isolated" };
                field(out, "executed", &format!("in another storage, {how}"))?;
            }
        }
        stamp(call.recorded.as_ref(), out)?;
        if let Some(attested) = &self.attested {
            let Attested { by, host_kinds } = attested;
            let who = match by.all() {
                0 => "by nobody".to_owned(),
                _ => format!("{by} ({})", harmless(&by.names())),
            };
            field(out, "attested", &who)?;
            if host_kinds.all() > 0 {
                field(out, "host kinds", &format!("{host_kinds} ({})", host_kinds.names()))?;
            }
        }
        self.published(out)?;
        let Some(log) = &self.log else {
            return field(out, "log", "nothing was printed");
        };
        field(out, "log", &self.shown(&log.name))?;
        let skipped = if all { 0 } else { log.tail.lines().count().saturating_sub(FEW) };
        let mut lines = log.tail.lines().skip(skipped);
        lines.try_for_each(|line| writeln!(out, "     | {}", harmless(line)))
    }

    /// Prints when and where its call was executed, by the ledger.
    fn published(&self, out: &mut dyn Write) -> io::Result<()> {
        for PublishedExecution { end, by, machine, .. } in self.published.iter().take(EXECUTIONS) {
            let machine = machine.as_ref().map(|it| format!(" on {it}")).unwrap_or_default();
            field(out, "published", &harmless(&format!("{end} by {by}{machine}")))?;
        }
        match self.published.len().saturating_sub(EXECUTIONS) {
            0 => Ok(()),
            more => field(out, "", &format!("and {}", counted(more, "more execution"))),
        }
    }

    /// Prints the points of tables at which the call is. Only the newest of several equal tables is named.
    fn points(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut printed: Vec<&PointsInTable> = Vec::new();
        for points in &self.points {
            let mut alike =
                printed.iter().filter(|it| it.first == points.first && it.task == points.task);
            if printed.len() == TABLES || alike.next().is_some() {
                continue;
            }
            printed.push(points);
            for texts in &points.first {
                field(out, "point", &point_texts(texts))?;
            }
            let PointsInTable { table, task, count, of, common, first } = points;
            if *count > first.len() {
                let all = if common.0.is_empty() { "" } else { ", all with " };
                let more = counted(count - first.len(), "more point");
                field(out, "", &format!("and {more}{all}{}", point_texts(common)))?;
            }
            let task = task.as_ref().map(|task| format!(" of task {task}")).unwrap_or_default();
            let of = counted(*of, "point");
            field(out, "in table", &format!("{}{task}, which has {of}", self.shown(table)))?;
        }
        match self.points.len() - printed.len() {
            0 => Ok(()),
            more => field(out, "", &format!("and in {}", counted(more, "other table"))),
        }
    }

    fn job(
        &self,
        job: &JobRecord,
        number: usize,
        all: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        field(out, "task", &format!("{}, output {number:02}", job.task))?;
        self.commit(&job.commit, out)?;
        let shown = if all { job.inputs.len() } else { job.inputs.len().min(FEW) };
        for input in &job.inputs[..shown] {
            field(out, "input", &format!("{} {}", input.digest.sha1.full(), input.name))?;
        }
        let more = job.inputs.len() - shown;
        if more > 0 {
            field(out, "", &format!("and {}: --all prints them", counted(more, "more input")))?;
        }
        for JobRevision { repository, revision, commit } in &job.revisions {
            let revision = harmless(revision);
            field(out, "revision", &format!("{revision} in {repository}: {}", commit.full()))?;
        }
        stamp(job.recorded.as_ref(), out)
    }

    fn table(&self, table: &TableRecord, number: usize, out: &mut dyn Write) -> io::Result<()> {
        let recipe = "the recipe".to_owned();
        let parts = table.outputs.len();
        field(out, "table", &if number < parts { format!("output {number:02}") } else { recipe })?;
        field(out, "recipe", &self.shown(&format!("{}/recipe", self.subject.entry.short())))?;
        match &self.summary {
            Some(TableSummary { header, points, failed, .. }) => {
                field(out, "columns", &harmless(&header.columns.join(", ")))?;
                let names = harmless(&header.names.join(", ")).into_owned();
                let of = if names.is_empty() { "" } else { " of " };
                field(out, "points", &format!("{points}{of}{names}"))?;
                if header.allow_failed {
                    field(out, "failed", &format!("{failed} of them"))?;
                }
                field(out, "outputs", &harmless(&header.outputs.join(", ")))?;
            }
            None => field(out, "", "it is missing or damaged")?,
        }
        stamp(table.recorded.as_ref(), out)
    }

    /// Prints the uses of a task input.
    fn roles(&self, out: &mut dyn Write) -> io::Result<()> {
        let InputRoles { inputs, levels, text } = self.roles.find(self.subject.digest);
        for (input, task) in inputs.iter().take(TABLES) {
            field(out, "task input", &format!("{input} of task {task}"))?;
        }
        for (name, text) in levels.iter().take(TABLES) {
            field(out, "level", &texts_in_words(&[(name, text)]))?;
        }
        if let Some(text) = text {
            field(out, "text", &text_in_words(text))?;
        }
        match inputs.is_empty() && levels.is_empty() {
            true => field(out, "origin", "given by a user, or taken from a Git repository"),
            false => Ok(()),
        }
    }

    /// Prints a commit, and the version if the name shows more than twelve digits of it.
    fn commit(&self, commit: &ObjectId, out: &mut dyn Write) -> io::Result<()> {
        field(out, "commit", commit.full())?;
        match self.subject.entry.version() {
            Some(version) if version != commit.short() => field(out, "version", version),
            _ => Ok(()),
        }
    }

    /// Prints an ancestor, indented more than the result that it is an input of. `shown` are all printed ones.
    fn line(&self, at: usize, shown: &[usize], out: &mut dyn Write) -> io::Result<()> {
        let Ancestor { depth, number, digest, subject, member, again, omitted } =
            &self.ancestors[at];
        super::tree::indent(*depth, out)?;
        write!(out, "{number:02}: ")?;
        let Some(file) = subject else {
            return writeln!(out, "{} (no record of its origin)", digest.sha1.full());
        };
        let Subject { record, number, .. } = file;
        let mut path = self.shown(&file.file());
        if let Some(member) = member {
            path = format!("{path}/{}", harmless(member));
        }
        let is_above = |other: &usize| {
            let other = &self.ancestors[*other];
            !other.again && other.subject.is_some_and(|it| it.file() == file.file())
        };
        let again = if *again && (shown.len() == self.ancestors.len() || shown.iter().any(is_above))
        {
            ", see above"
        } else {
            ""
        };
        match record {
            Record::Call(call) => {
                let title = match self.texts_of_rows.get(&at) {
                    Some(texts) => result_title(record, texts),
                    None => call.computation.to_string(),
                };
                writeln!(out, "{path} ({title}, output {number:02}{again})")
            }
            Record::Job(job) => {
                writeln!(out, "{path} (task {}, output {number:02}{again})", job.task)
            }
            Record::Table(_) => {
                let more = match omitted {
                    0 => String::new(),
                    more => format!(", {more} of its inputs are not listed"),
                };
                writeln!(out, "{path} (table, output {number:02}{again}{more})")
            }
            Record::TaskInput(_) => writeln!(out, "{path} ({})", role(self.roles.of_ancestor(at))),
        }
    }

    /// Prints it as one JSON document: doc/programs/ce-show.md describes the fields.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut ancestors = Vec::with_capacity(self.ancestors.len());
        for (at, it) in self.ancestors.iter().enumerate() {
            let mut line = json!({
                "depth": it.depth,
                "input": it.number,
                "contents": it.digest,
                "file": it.subject.map(|subject| subject.file()),
                "again": it.again,
            });
            if let Some(member) = &it.member {
                line["member"] = member.as_str().into();
            }
            if it.subject.is_some_and(|it| matches!(it.record, Record::TaskInput(_))) {
                line["roles"] = serde_json::to_value(self.roles.of_ancestor(at))?;
            }
            if it.omitted > 0 {
                line["omitted"] = it.omitted.into();
            }
            if let (Some(subject), false) = (it.subject, it.again) {
                line["record"] = value(subject)?;
            }
            ancestors.push(line);
        }
        let mut document = json!({
            "file": self.subject.file(),
            "contents": self.subject.digest,
            "state": self.state(),
            "revoked": self.revoked.iter().map(|it| &*it.reason).collect::<Vec<_>>(),
            "taken_over": self.taken_over,
            "points": self.points,
            "texts": self.texts,
            "attested": self.attested,
            "log": self.log.as_ref().map(|log| &log.name),
            "table": self.summary.as_ref().map(|it| json!({
                "rules": it.header,
                "points": it.points,
                "failed": it.failed,
                "files": it.files,
            })),
            "record": value(self.subject)?,
            "ancestors": ancestors,
        });
        if !self.published.is_empty() {
            document["published"] = serde_json::to_value(&self.published)?;
        }
        serde_json::to_writer_pretty(&mut *out, &document)?;
        writeln!(out)
    }

    fn state(&self) -> String {
        self.fault.as_ref().map_or_else(|| "as recorded".to_owned(), ToString::to_string)
    }

    fn shown(&self, name: &str) -> String {
        self.storage.shown(name).display().to_string()
    }
}

/// The texts of a point in words.
fn point_texts(texts: &PointTexts) -> String {
    let texts: Vec<(&str, &str)> = texts.0.iter().map(|(name, text)| (&**name, &**text)).collect();
    texts_in_words(&texts)
}

/// The record of a file's result, with its kind.
fn value(subject: Subject<'_>) -> io::Result<Value> {
    fn record_json(record: &impl Serialize) -> io::Result<Value> {
        Ok(serde_json::to_value(record)?)
    }
    let (kind, record) = match subject.record {
        Record::Call(call) => ("call", record_json(call)?),
        Record::Job(job) => ("job", record_json(job)?),
        Record::Table(table) => ("table", record_json(table)?),
        Record::TaskInput(input) => ("task_input", record_json(input)?),
    };
    let name = subject.entry.short();
    let (number, version) = (subject.number, subject.entry.version());
    Ok(json!({ "kind": kind, "name": name, "number": number, "version": version, kind: record }))
}

/// Returns the role of a task input, in words.
fn role(InputRoles { inputs, levels, text }: &InputRoles) -> String {
    let mut roles = Vec::new();
    if !inputs.is_empty() {
        roles.push("task input".to_owned());
    }
    if !levels.is_empty() {
        let words = levels.iter().map(|(name, text)| texts_in_words(&[(name, text)]));
        roles.push(format!("level {}", words.collect::<Vec<_>>().join(" or ")));
    }
    match (&roles[..], text) {
        ([], Some(text)) => format!("text {}", text_in_words(text)),
        ([], None) => "input or file of a task".to_owned(),
        _ => roles.join(", "),
    }
}

fn field(out: &mut dyn Write, name: &str, value: &str) -> io::Result<()> {
    writeln!(out, "  {name:<12} {value}")
}

fn executed(execution: &Execution, out: &mut dyn Write) -> io::Result<()> {
    let Execution { start, end, user_seconds, system_seconds, peak_bytes, .. } = execution;
    let Execution { resources, attempts, tasks, machine, host_use, .. } = execution;
    let seconds = end.duration_since(*start).as_secs_f64();
    field(out, "when", &format!("{start:.3} to {end:.3}"))?;
    field(out, "duration", &format!("{seconds:.3} s"))?;
    match tasks.len() {
        0 => {
            let cpu = format!("{user_seconds:.3} s user, {system_seconds:.3} s system");
            field(out, "CPU time", &cpu)?;
            field(out, "peak memory", &humanize::size(*peak_bytes))?;
        }
        count => field(out, "tasks", &format!("{count}, each ended with exit status 0"))?,
    }
    if let Some(machine) = machine {
        field(out, "machine", &harmless(machine))?;
    }
    if let Some(host_use) = host_use {
        field(out, "meanwhile", &host_use.in_words())?;
    }
    if !resources.is_empty() {
        field(out, "asked for", &resources.join(", "))?;
    }
    for LimitedAttempt { limit, seconds, .. } in attempts {
        let after = seconds.map(|seconds| format!(" after {seconds:.3} s")).unwrap_or_default();
        field(out, "before", &format!("ended by its limit of {limit}{after}"))?;
    }
    Ok(())
}

fn stamp(stamp: Option<&Provenance>, out: &mut dyn Write) -> io::Result<()> {
    let Some(Provenance { host, user, at, compeval }) = stamp else { return Ok(()) };
    field(out, "recorded", &format!("{at:.0} by {user} on {host}, compeval {compeval}"))
}
