//! The status of a storage, for people and as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::{JsonActivities, harmless, point};
use ce_evaluate::SuspensionAnswer;
use ce_executor::{SUSPENDED, Status};
use ce_history::InputTexts;
use ce_history::SuspendedFact;
use ce_model::humanize::counted;
use ce_storage::records::{SubmittedRun, SuspensionState, WaitingJob};
use ce_storage::{Activity, Storage};

/// What a suspended call has said of itself, or why it could not.
pub type Said = Result<Option<SuspensionAnswer>, String>;

/// Prints the calls that are suspended, each with what it has said if it was asked.
///
/// # Errors
///
/// Returns the error of `out`.
pub fn suspended_calls(
    storage: &Storage,
    calls: &[(SuspendedFact, Option<Said>)],
    out: &mut dyn Write,
) -> io::Result<()> {
    match calls.len() {
        0 => {}
        count => writeln!(out, "{}:", counted(count, "suspended call"))?,
    }
    for (fact, said) in calls {
        let record = &fact.suspension.record;
        let attempts = counted(record.attempts as usize, "attempt");
        writeln!(out, "  {}", fact.suspension.name.short())?;
        writeln!(out, "    {} since {:.0}, {attempts}", state(fact), record.since)?;
        let texts: Vec<_> = fact.texts.iter().collect();
        if !texts.is_empty() {
            writeln!(out, "    texts: {}", point::words(&texts))?;
        }
        let is_text = |name: &str| texts.iter().any(|(text, _)| *text == name);
        let named = record.inputs.iter().zip(&record.input_names);
        for (input, name) in named.filter(|(_, name)| !is_text(name)) {
            let path = storage.shown(&input.name);
            writeln!(out, "    input {}: {}", harmless(name), path.display())?;
        }
        writeln!(out, "    for {}", waiting_jobs(&record.jobs))?;
        if let Some(said) = said {
            writeln!(out, "    status: {}", harmless(&words(said)))?;
        }
    }
    Ok(())
}

/// How a call stands, in words.
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
    let job = |job: &WaitingJob| format!("{} at {}", job.task, job.commit.short());
    jobs.iter().map(job).collect::<Vec<_>>().join(", ")
}

fn words(said: &Said) -> String {
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

#[derive(Serialize)]
struct JsonStatus<'a> {
    #[serde(flatten)]
    activities: JsonActivities<'a>,
    suspended: Vec<JsonSuspended<'a>>,
}

/// Prints that, and what runs and workers do, as a JSON object.
///
/// # Errors
///
/// Returns the error of `out`.
pub fn status_json(
    storage: &Storage,
    (activities, submitted): (&[Activity], &[SubmittedRun]),
    calls: &[(SuspendedFact, Option<Said>)],
    out: &mut dyn Write,
) -> io::Result<()> {
    let suspended = calls.iter().map(|(fact, said)| {
        let (name, record) = (&fact.suspension.name, &fact.suspension.record);
        JsonSuspended {
            name: name.short(),
            state: match (&fact.holder, record.state) {
                (Some(_), _) => "executing",
                (None, SuspensionState::Executing) => "interrupted",
                (None, SuspensionState::Suspended) => "suspended",
                (None, SuspensionState::Failed) => "failed",
            },
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
    let activities = JsonActivities::new(activities, submitted);
    let status = JsonStatus { activities, suspended: suspended.collect() };
    serde_json::to_writer(&mut *out, &status)?;
    out.write_all(b"\n")
}

fn json_answer(said: &Said) -> JsonAnswer<'_> {
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
