//! The status of a storage, for people and as JSON: what runs and workers do, and which calls are suspended.

use std::io::{self, Write};
use std::num::NonZeroU32;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::calls::texts_in_words;
use super::{harmless, json_line};
use ce_evaluate::SuspensionAnswer;
use ce_executor::{SUSPENDED, Status};
use ce_history::{InputTexts, SuspendedFact};
use ce_model::humanize::{clock, counted, size};
use ce_storage::records::{
    FailedTitle, RunState, RunningCall, SubmittedRun, SuspensionState, TicketValue, WaitingJob,
    WorkerRecord,
};
use ce_storage::{Activity, ClaimedCall, Holder, ResultName, Storage};

/// The answer of a suspended call about its state, or why it could not be asked.
pub type AskedStatus = Result<Option<SuspensionAnswer>, String>;

/// A suspended call, and its answer if it was asked.
pub struct SuspendedStatus {
    /// The call.
    pub fact: SuspendedFact,
    /// The answer; `None` if the call was not asked.
    pub said: Option<AskedStatus>,
}

/// Prints the suspended calls, each with the answer of its program `status` if it was run.
pub fn suspended_calls(
    storage: &Storage,
    calls: &[SuspendedStatus],
    out: &mut dyn Write,
) -> io::Result<()> {
    match calls.len() {
        0 => {}
        count => writeln!(out, "{}:", counted(count, "suspended call"))?,
    }
    for SuspendedStatus { fact, said } in calls {
        let record = &fact.suspension.record;
        let attempts = counted(record.attempts as usize, "attempt");
        writeln!(out, "  {}", suspended_title(fact))?;
        writeln!(out, "    call: {}", fact.suspension.name.short())?;
        writeln!(out, "    {} since {:.0}, {attempts}", state(fact), record.since)?;
        for (input, name) in record.inputs.iter().zip(&record.input_names) {
            if !fact.texts.iter().any(|(text, _)| text == name) {
                let source = source(storage, input);
                writeln!(out, "    input {}: {source}", harmless(name))?;
            }
        }
        writeln!(out, "    for {}", waiting_jobs(&record.jobs))?;
        if let Some(said) = said {
            writeln!(out, "    status: {}", harmless(&words(said)))?;
        }
    }
    Ok(())
}

/// A suspended call in words: its computation, and the texts that it reads.
pub fn suspended_title(fact: &SuspendedFact) -> String {
    let texts = texts_in_words(&fact.texts.iter().collect::<Vec<_>>());
    format!("{} {texts}", fact.suspension.record.computation).trim_end().to_owned()
}

/// Describes an input that is not a short text of the task: the output of a call, with its text if that is one short line,
/// or else its path.
fn source(storage: &Storage, TicketValue { name, value }: &TicketValue) -> String {
    let Some((_, computation, number)) = ResultName::maker(name) else {
        return storage.shown(name).display().to_string();
    };
    let text = storage.values().short_text(name, &value.digest);
    let line = text.map(|text| format!(": {}", harmless(&text))).unwrap_or_default();
    format!("output {number:02} of {computation}{line}")
}

/// Returns the state of a call, in words.
fn state(fact: &SuspendedFact) -> String {
    match (&fact.holder, fact.suspension.record.state) {
        (Some(holder), _) => format!("executed by {holder},"),
        (None, SuspensionState::Executing) => "interrupted; begun".to_owned(),
        (None, SuspensionState::Suspended) => "suspended".to_owned(),
        (None, SuspensionState::Failed) => "failed; begun".to_owned(),
    }
}

/// The jobs that wait for a suspended call, in words.
pub fn waiting_jobs(jobs: &[WaitingJob]) -> String {
    let jobs = jobs.iter().map(|job| format!("{} at {}", job.task, job.commit.short()));
    jobs.collect::<Vec<_>>().join(", ")
}

fn words(said: &AskedStatus) -> String {
    match said {
        Err(error) => format!("cannot be asked: {error}"),
        Ok(None) => "it has no file status; the next run continues it".to_owned(),
        Ok(Some(answer)) => {
            let line = answer.line.as_deref();
            match answer.status {
                Status::Exited(SUSPENDED) => line.unwrap_or("it goes on elsewhere").to_owned(),
                Status::Exited(0) => {
                    let line = line.map(|line| format!(": {line}")).unwrap_or_default();
                    format!("the next run continues it{line}")
                }
                status => {
                    let line = line.map(|line| format!(": {line}")).unwrap_or_default();
                    format!("{status}{line}")
                }
            }
        }
    }
}

#[derive(Serialize)]
struct JsonSuspended<'a> {
    name: String,
    state: &'static str,
    since: String,
    attempts: u32,
    isolated: bool,
    directory: String,
    inputs: Vec<&'a str>,
    texts: &'a InputTexts,
    jobs: &'a [WaitingJob],
    host: &'a str,
    user: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<JsonAnswer<'a>>,
}

#[derive(Serialize)]
struct JsonAnswer<'a> {
    answer: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<&'a str>,
}

/// A worker, as JSON.
#[derive(Serialize)]
struct JsonWorker<'a> {
    #[serde(flatten)]
    holder: &'a Holder,
    #[serde(flatten)]
    worker: &'a WorkerRecord,
}

#[derive(Serialize)]
struct JsonStatus<'a> {
    runs: Vec<&'a Activity>,
    submitted: &'a [SubmittedRun],
    workers: Vec<JsonWorker<'a>>,
    suspended: Vec<JsonSuspended<'a>>,
}

/// Prints what runs and workers do, and the calls that are suspended, as a JSON object.
pub fn status_json(
    storage: &Storage,
    activities: &[Activity],
    submitted: &[SubmittedRun],
    calls: &[SuspendedStatus],
    out: &mut dyn Write,
) -> io::Result<()> {
    let suspended = calls.iter().map(|SuspendedStatus { fact, said }| {
        let (name, record) = (&fact.suspension.name, &fact.suspension.record);
        JsonSuspended {
            name: name.short(),
            state: fact.state(),
            since: record.since.to_string(),
            attempts: record.attempts,
            isolated: record.isolated,
            directory: storage.shown(&name.suspended_place()).display().to_string(),
            inputs: record.inputs.iter().map(|input| input.name.as_str()).collect(),
            texts: &fact.texts,
            jobs: &record.jobs,
            host: &record.recorded.host,
            user: &record.recorded.user,
            status: said.as_ref().map(json_answer),
        }
    });
    let (mut runs, mut workers) = (Vec::new(), Vec::new());
    for activity in activities {
        match &activity.worker {
            Some(worker) => workers.push(JsonWorker { holder: &activity.holder, worker }),
            None => runs.push(activity),
        }
    }
    let suspended = suspended.collect();
    json_line(&JsonStatus { runs, submitted, workers, suspended }, out)
}

fn json_answer(said: &AskedStatus) -> JsonAnswer<'_> {
    let (answer, line) = match said {
        Err(error) => ("error", Some(error.as_str())),
        Ok(None) => ("none", None),
        Ok(Some(answer)) => {
            let word = match answer.status {
                Status::Exited(SUSPENDED) => "pending",
                Status::Exited(0) => "continuable",
                _ => "failed",
            };
            (word, answer.line.as_deref())
        }
    };
    JsonAnswer { answer, line }
}

/// The greatest number of calls at workers that are shown of a run.
const LINES: usize = 10;

/// Prints what runs and workers do. `now` is the time from which durations are counted.
pub fn activities(activities: &[Activity], now: Timestamp, out: &mut dyn Write) -> io::Result<()> {
    let (workers, runs): (Vec<_>, Vec<_>) = activities.iter().partition(|it| it.worker.is_some());
    if runs.is_empty() {
        writeln!(out, "no run is going on")?;
    }
    for run in runs {
        print_run(run, now, out)?;
    }
    for activity in workers {
        if let Some(worker) = &activity.worker {
            writeln!(out, "{}", worker_line(&activity.holder, worker, now))?;
        }
    }
    Ok(())
}

/// Prints the runs that wait as jobs.
pub fn submitted_runs(
    submitted: &[SubmittedRun],
    now: Timestamp,
    out: &mut dyn Write,
) -> io::Result<()> {
    submitted.iter().try_for_each(|SubmittedRun { task, version, job, recorded }| {
        let (user, since) = (harmless(&recorded.user), clock(between(recorded.at, now)));
        let (task, version, job) = (harmless(task), harmless(version), harmless(job));
        writeln!(
            out,
            "run of {task} at {version} by {user}: waits as job {job} of Slurm, for {since}"
        )
    })
}

fn print_run(run: &Activity, now: Timestamp, out: &mut dyn Write) -> io::Result<()> {
    let since = run.holder.began.and_then(|it| Timestamp::from_nanosecond(it.into()).ok());
    let since = since.map(|since| format!(", for {}", clock(between(since, now))));
    let since = since.unwrap_or_default();
    match &run.state {
        None => writeln!(out, "run: {}{since}", run.holder)?,
        Some(state) => {
            let RunState { task, version, began, .. } = state;
            let user = harmless(&began.user);
            writeln!(out, "run of {task} at {version} by {user}: {}{since}", run.holder)?;
            writeln!(out, "  {}", progress(state))?;
            for RunningCall { title, seconds } in &state.longest {
                let age = Duration::try_from_secs_f64(*seconds).unwrap_or_default();
                let age = age + between(state.at, now);
                writeln!(out, "  running {:>8}  {}", clock(age), harmless(title))?;
            }
            for FailedTitle { title, reason } in &state.failures {
                writeln!(out, "  {}: {}", harmless(title), harmless(reason))?;
            }
            match state.failed.saturating_sub(state.failures.len()) {
                0 => {}
                more => writeln!(out, "  and {}", counted(more, "further failure"))?,
            }
        }
    }
    for (class, count) in &run.queued {
        let waits = if *count == 1 { "waits" } else { "wait" };
        // The name of a directory that others may have made.
        let class = harmless(class);
        writeln!(out, "  {} {waits} for a worker with {class}", counted(*count, "call"))?;
    }
    for ClaimedCall { worker, ticket, since } in run.claimed.iter().take(LINES) {
        let name = ticket.as_ref().map_or("a call", |ticket| ticket.computation.as_str());
        writeln!(out, "  at worker {:>6}  {name}: {worker}", clock(between(*since, now)))?;
    }
    match run.claimed.len().saturating_sub(LINES) {
        0 => Ok(()),
        more => writeln!(out, "  and {} at workers", counted(more, "further call")),
    }
}

/// Returns the progress of a run, in words.
fn progress(state: &RunState) -> String {
    let RunState { done, all, at_least, found, queued, running, failed, seconds_left, .. } = state;
    let of = if *at_least { "of at least" } else { "of" };
    let mut parts = vec![format!("{done} {of} {all} calls are over")];
    let counts = [(found, "reused"), (failed, "failed"), (running, "running"), (queued, "queued")];
    let counts = counts.into_iter().filter(|(count, _)| **count > 0);
    parts.extend(counts.map(|(count, what)| format!("{count} {what}")));
    parts.extend(seconds_left.filter(|_| done < all).map(|seconds| {
        let left = Duration::try_from_secs_f64(seconds.ceil()).unwrap_or_default();
        format!("{} to go", clock(left))
    }));
    parts.join(", ")
}

/// Describes a worker in words.
fn worker_line(holder: &Holder, worker: &WorkerRecord, now: Timestamp) -> String {
    let WorkerRecord { recorded, job, cpus, memory, nodes, tasks, isolates, deadline, .. } = worker;
    let mut parts = vec![holder.to_string()];
    parts.extend(job.as_ref().map(|job| format!("job {}", harmless(job))));
    parts.push(counted(*cpus, "cpu"));
    parts.extend(memory.map(size));
    for (number, what) in [(*nodes, "node"), (*tasks, "task")] {
        let several = number.map(NonZeroU32::get).filter(|number| *number > 1);
        parts.extend(several.map(|number| counted(number as usize, what)));
    }
    parts.extend((!isolates).then(|| "no isolation".to_owned()));
    parts.push(format!("for {}", clock(between(recorded.at, now))));
    parts.extend(deadline.map(|end| format!("{} left", clock(between(now, end)))));
    format!("worker: {}", parts.join(", "))
}

/// The time from one moment to a later one; none if it is earlier.
fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use ce_storage::records::Provenance;

    fn holder(process: u32) -> Holder {
        let began = Some(0);
        Holder { host: "node1".to_owned(), process, began, own: false }
    }

    fn now() -> Timestamp {
        Timestamp::from_second(100).unwrap()
    }

    fn recorded(second: i64) -> Provenance {
        let at = Timestamp::from_second(second).unwrap();
        let [host, user, compeval] = ["node1", "ann\u{7}", "0"].map(Into::into);
        Provenance { host, user, at, compeval }
    }

    fn printed(list: &[Activity]) -> String {
        let mut out = Vec::new();
        activities(list, now(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_run_and_its_workers_are_reported() {
        let failure = FailedTitle { title: "n=3: bench".into(), reason: "failed: 3".into() };
        let state = RunState {
            task: "study".to_owned(),
            version: "0123456789ab".to_owned(),
            began: recorded(0),
            at: Timestamp::from_second(98).unwrap(),
            done: 12,
            all: 70,
            at_least: true,
            found: 3,
            queued: 30,
            running: 1,
            longest: vec![RunningCall { title: "n=8: bench (run)".to_owned(), seconds: 10.0 }],
            failed: 2,
            failures: vec![failure],
            seconds_left: Some(199.5),
        };
        let claim = ClaimedCall { worker: holder(77), ticket: None, since: recorded(90).at };
        let run = Activity {
            holder: holder(7),
            state: Some(state),
            worker: None,
            queued: BTreeMap::from([("cpus=4,memory=8G".to_owned(), 30)]),
            claimed: vec![claim],
        };
        let record = WorkerRecord {
            format: 1,
            recorded: recorded(40),
            job: Some("slurm 12".to_owned()),
            task: None,
            cpus: 4,
            memory: Some(8 << 30),
            nodes: NonZeroU32::new(2),
            tasks: NonZeroU32::new(16),
            isolates: false,
            deadline: Some(Timestamp::from_second(3700).unwrap()),
        };
        let (queued, claimed, state) = Default::default();
        let worker = Activity { holder: holder(77), state, worker: Some(record), queued, claimed };
        assert_eq!(
            printed(&[worker, run]),
            "run of study at 0123456789ab by ann\u{fffd}: process 7 on node1, for 1:40\n\
             \x20 12 of at least 70 calls are over, 3 reused, 2 failed, 1 running, 30 queued, 3:20 to go\n\
             \x20 running     0:12  n=8: bench (run)\n\
             \x20 n=3: bench: failed: 3\n\
             \x20 and 1 further failure\n\
             \x20 30 calls wait for a worker with cpus=4,memory=8G\n\
             \x20 at worker   0:10  a call: process 77 on node1\n\
             worker: process 77 on node1, job slurm 12, 4 cpus, 8.0 GiB, 2 nodes, 16 tasks, no isolation, for 1:00, 1:00:00 left\n"
        );
    }

    #[test]
    fn a_run_that_waits_is_reported() {
        let [task, version, job] = ["study", "0123456789ab", "ce-0"].map(str::to_owned);
        let mut out = Vec::new();
        let waits = SubmittedRun { task, version, job, recorded: recorded(40) };
        submitted_runs(&[waits], now(), &mut out).unwrap();
        let line =
            "run of study at 0123456789ab by ann\u{fffd}: waits as job ce-0 of Slurm, for 1:00\n";
        assert_eq!(String::from_utf8(out).unwrap(), line);
    }

    #[test]
    fn an_idle_storage_is_reported() {
        assert_eq!(printed(&[]), "no run is going on\n");
    }
}
