//! `ce explain`: why calls would run.

use std::io::Write;
use std::num::NonZeroUsize;

use clap::Parser;

use super::options::{Dirty, Strict, TaskDir, Typed};
use super::{Tool, say};
use crate::cache::Cache;
use crate::count::counted;
use crate::error::Error;
use crate::evaluate::{Account, Evaluation, Evaluator, Event, Exports, Files};
use crate::exit::Exit;
use crate::explain::{self, Explanation};
use crate::git::Trees;
use crate::plan::Plan;
use crate::report::{self, Troubles, View, labels};
use crate::storage::Storage;

/// Explain why calls would run: what was changed since the nearest result that is there
///
/// Tells of every call that would run what differs from the nearest earlier one; then the causes
/// behind that, with the commits and files that changed a computation; then how much computing is
/// ahead, going by earlier calls. Computes nothing and writes nothing.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Exit codes: 0 nothing would run, 2 the arguments or the task are wrong, 3 something is missing, \
5 the storage could not be read."
)]
pub struct Explain {
    /// Print causes, calls and the sum as JSON, one a line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    strict: Strict,

    #[command(flatten)]
    dirty: Dirty,

    #[command(flatten)]
    task: TaskDir,

    #[command(flatten)]
    typed: Typed,
}

impl Tool for Explain {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let task = &self.task.load("ce", self.dirty.uncommitted())?;
        let given = self.typed.resolve(task, &self.task.config()?)?;
        let plan = &Plan::new(&task.workflow);
        let storage = Storage::inspect(&given.storage, self.strict.unrecorded())?;
        let storage = &storage.remembering(Cache::of_user());
        let files = &Files::new(task, plan, &given.inputs, storage, false)?;
        let evaluation = &Evaluation::new(plan);
        let (observe, trees) = (&|_| {}, Trees::new(&self.task.task));
        let exports = &Exports::new(storage, &trees);
        Evaluator { task, plan, files, storage, exports, executor: None, retries: 0, observe }
            .evaluate(evaluation, NonZeroUsize::MIN)?;
        let labels = &labels(task, plan);
        let account = Account { task, plan, files, evaluation, storage };
        let view = View { account, labels };
        complain(view);
        let explanation = Explanation::new(account);
        if explanation.unread > 0 {
            let unread = counted(explanation.unread, "record");
            say("ce", &format_args!("warning: {unread} cannot be read; ce verify tells which"));
        }
        let changes = explain::changes(&self.task.task, task, &explanation);
        if self.json {
            report::explanation_json(view, &explanation, &changes, out)
        } else {
            report::explanation(view, &explanation, &changes, out)
        }
        .map_err(Error::Output)?;
        Ok(view.exit())
    }
}

/// Says of which calls the storage could not be read.
fn complain(view: View<'_>) {
    let mut troubles = Troubles::default();
    for (call, _) in view.plan.calls() {
        if let Some(text) = troubles.tell(view, &Event::Ended(call)) {
            say("ce", &text.trim_end());
        }
    }
    troubles.rest().for_each(|text| say("ce", &text));
}
