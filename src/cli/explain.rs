//! `ce explain`: why calls would run.

use std::io::Write;

use clap::Parser;

use super::Tool;
use super::input_args::PathArgs;
use super::options::{Dirty, Strict, TaskDir};
use ce_evaluate::session::{Error, OutputError, check_own_sheets};
use ce_evaluate::{Evaluation, Event};
use ce_model::exit::Exit;
use ce_model::humanize::counted;
use ce_queries::explain::{self, Explanation};
use ce_report::{self as report, Failures, say};

/// Explain why calls would run: the changes since the nearest existing result
///
/// Prints how many calls would run and how much computing that is, estimated from earlier calls; then the root causes, with
/// the commits and files that changed a computation; then the calls, with one line for all calls of a computation with the
/// same reasons. A reason says how a call differs from the nearest earlier one. Computes nothing and writes nothing.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Exit codes: 0 nothing would run, 1 a call cannot run, 2 the arguments or the task are wrong, 3 something is missing, \
4 a call is suspended, 5 the storage could not be read."
)]
pub(super) struct ExplainRuns {
    /// Print causes, calls and the sum as JSON, one object a line
    #[arg(long)]
    json: bool,

    /// Print each call with all its reasons, the name of its result, and the earlier call that it is compared with
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,

    #[command(flatten)]
    strict: Strict,

    #[command(flatten)]
    dirty: Dirty,

    #[command(flatten)]
    task: TaskDir,

    #[command(flatten)]
    typed: PathArgs,
}

impl Tool for ExplainRuns {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let task = self.task.load("ce", self.dirty.uncommitted())?;
        let evaluation = &self.typed.look_up(&self.task, task, &self.strict)?;
        if matches!(evaluation.exit(), Exit::Failed | Exit::Malformed) {
            check_own_sheets(&self.task.task, &evaluation.task)?;
        }
        print_failures(evaluation);
        let explanation = Explanation::new(evaluation);
        if explanation.unread > 0 {
            let unread = counted(explanation.unread, "record");
            say(
                "ce",
                &format_args!(
                    "warning: {unread} cannot be read\n  try: ce verify, which lists them"
                ),
            );
        }
        let changes = explain::changes(&self.task.task, &evaluation.task, &explanation);
        if self.json {
            report::explanation_json(evaluation, &explanation, &changes, out)
        } else {
            report::explanation(evaluation, &explanation, &changes, self.verbose, out)
        }
        .map_err(OutputError)?;
        Ok(evaluation.exit())
    }
}

/// Prints the calls whose state could not be read from the storage.
fn print_failures(evaluation: &Evaluation) {
    let mut failures = Failures::default();
    for (call, _) in evaluation.plan.calls() {
        if let Some(text) = failures.message(evaluation, &Event::Ended(call)) {
            say("ce", &text.trim_end());
        }
    }
    failures.unreported().for_each(|text| say("ce", &text));
    report::remembered_points(evaluation).iter().for_each(|line| say("ce", line));
}
