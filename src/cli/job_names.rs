//! What became of the jobs of a run, as it is told.

use super::background::PROGRAM;
use super::say;
use crate::report::harmless;
use ce_evaluate::Evaluation;
use ce_evaluate::session::Kept;
use ce_model::humanize::counted;
use ce_storage::ResultName;
use ce_task::load::listed;

/// The beginning of the messages about jobs that are not kept.
const NOT_STORED: &str = "the job's outputs were not stored";

/// The names of the jobs whose outputs were stored: one, or one for each point.
pub(super) struct JobNames(pub(super) Vec<Option<ResultName>>);

impl JobNames {
    /// Says, once for each reason, why outputs were not stored.
    pub(super) fn new(evaluation: &Evaluation, jobs: Vec<Kept>) -> Self {
        let mut told: Vec<Kept> = Vec::new();
        let mut names = Vec::with_capacity(jobs.len());
        for job in jobs {
            names.push(match job {
                Kept::As(name) => Some(name),
                other => {
                    if !told.contains(&other) {
                        say_not_stored(evaluation, &other);
                        told.push(other);
                    }
                    None
                }
            });
        }
        Self(names)
    }

    /// Says where the outputs of the job are, or how many jobs there are.
    pub(super) fn summarise(&self, evaluation: &Evaluation) {
        match &self.0[..] {
            [] => {}
            jobs if evaluation.plan.jobs().is_some() => {
                let stored = jobs.iter().flatten().count();
                let jobs = counted(jobs.len(), "job");
                say(PROGRAM, &format_args!("{jobs}, one for each point: {stored} stored"));
            }
            [Some(job)] => {
                for number in 0..evaluation.plan.outputs().len() {
                    let path = evaluation.shown(&job.output(number));
                    say(PROGRAM, &format_args!("job output {number:02}: {path}"));
                }
            }
            _ => {}
        }
    }
}

/// Says why the outputs of a job were not stored, unless one is missing.
fn say_not_stored(evaluation: &Evaluation, why: &Kept) {
    match why {
        Kept::As(_) | Kept::Incomplete => {}
        Kept::Replaced => {
            let why = "recorded outputs were replaced by others; run it again, with what is new";
            say(PROGRAM, &format_args!("{NOT_STORED}: {why}"));
        }
        Kept::FailedPoints => {
            say(PROGRAM, &format_args!("{NOT_STORED}: points of a sweep have failed"));
        }
        Kept::Uncommitted => {
            let changed = &evaluation.task.changed;
            let have = if changed.len() == 1 { "has" } else { "have" };
            let changed = match &changed[..] {
                [] => "files of the task".to_owned(),
                changed => listed(changed),
            };
            say(PROGRAM, &format_args!("{NOT_STORED}: {changed} {have} uncommitted changes"));
        }
        Kept::Revisions(revisions) => {
            for (name, revision) in revisions {
                let why = "may name another commit later: it is no full commit id";
                let (name, revision) = (name.as_str(), harmless(revision));
                say(
                    PROGRAM,
                    &format_args!("{NOT_STORED}: the revision {revision} of {name} {why}"),
                );
            }
        }
        Kept::Denied(why) => {
            say(
                PROGRAM,
                &format_args!(
                    "warning: {NOT_STORED}: {why}\n  try: check who may write there, if the job is to have a name"
                ),
            );
        }
        Kept::ReadOnly => {
            say(
                PROGRAM,
                &format_args!(
                    "warning: {NOT_STORED}: the storage is read-only\n  try: mount it for writing, if the job is to have a name"
                ),
            );
        }
    }
}
