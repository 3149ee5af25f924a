//! Judging commits: a task is evaluated as it was at each, and its outputs are compared or tested.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::bisect::{BisectError, Bisection, Judgement, WrongOutput};
use ce_evaluate::Evaluation;
use ce_evaluate::session::{InputError, RunOptions, Session};
use ce_executor::{ExecuteError, Status};
use ce_git::{Commit, Range};
use ce_model::digest::{Digest, ObjectId};
use ce_model::exit::{Error, Exit, Explain};
use ce_model::slice::{SliceError, WrittenSlice};
use ce_model::task::Task;
use ce_task::load::{self, LoadError};

/// The user's test does not run.
#[derive(Debug, thiserror::Error)]
#[error("the test {program} cannot be run")]
struct TestError {
    /// Its first word.
    program: String,
    /// Why.
    source: ExecuteError,
}

impl Explain for TestError {
    fn hint(&self) -> Option<String> {
        Some(
            "give a program on PATH, or its path as in ./test; chmod +x makes it executable"
                .to_owned(),
        )
    }
}

/// The criterion by which commits are judged.
#[derive(Clone, Debug)]
pub struct Criterion<'a> {
    /// The directory of the task.
    pub dir: &'a Path,
    /// The submodule whose commits are judged; else those of the task are.
    pub submodule: Option<&'a Path>,
    /// The revisions that the user calls good and bad.
    pub ends: [&'a str; 2],
    /// The only output that counts, by its number or its name; else all do.
    pub output: Option<&'a str>,
    /// A command that gets the paths of the outputs; without it, outputs like the good commit's are
    /// good.
    pub test: &'a [OsString],
    /// How the task is evaluated.
    pub options: &'a RunOptions,
    /// Evaluates, and tells the user what they should know meanwhile.
    pub evaluate: fn(&Session, &Evaluation) -> Result<(), Error>,
}

/// A step of a search.
#[derive(Clone, Copy, Debug)]
pub enum BisectStep<'a> {
    /// A commit has the judgement that the user gave.
    Confirmed(&'a ObjectId, &'a str, Judgement),
    /// A commit was judged, with the reason if it was skipped; this many are left.
    Judged(&'a Commit, Judgement, Option<&'a str>, usize),
}

/// A judgement, and the reason if it is unknown.
type CommitVerdict = (Judgement, Option<String>);

/// The judge of commits.
pub struct Judge<'a> {
    session: &'a Session,
    criterion: Criterion<'a>,
    /// The task as it is at the bad commit, with the inputs that it gets.
    bad: Evaluation,
    /// The outputs at the good commit, if there is no test.
    right: Option<Vec<Digest>>,
    /// Tasks that were judged: a task that means the same is not judged again.
    known: Vec<(Arc<Task>, CommitVerdict)>,
}

impl Criterion<'_> {
    /// Loads the task as it is at a commit of its repository, or of the submodule.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or if it is wrong.
    pub fn load(&self, commit: &ObjectId) -> Result<Task, Error> {
        let loaded = match self.submodule {
            Some(place) => load::task_with(self.dir, place, commit)?,
            None => load::task_at(self.dir, commit.full(), None)?,
        };
        self.options.check_access(self.dir, &loaded.task)?;
        Ok(loaded.task)
    }

    /// Loads the task as it is at the bad commit, whose outputs are asked for.
    ///
    /// # Errors
    ///
    /// Fails as [`load`](Self::load) does, and if it has no such output.
    pub fn load_bad(&self, commit: &ObjectId) -> Result<Task, Error> {
        let task = self.load(commit)?;
        if let Some(output) = self.output {
            let names = task.passed_names(task.workflow.root());
            number_of(output, &names).map_err(|why| {
                let rev = self.ends[1].to_owned();
                BisectError::Output { rev, why }
            })?;
        }
        Ok(task)
    }
}

impl<'a> Judge<'a> {
    /// Judges by the inputs that the task at the bad commit gets.
    pub const fn new(session: &'a Session, criterion: Criterion<'a>, bad: Evaluation) -> Self {
        Self { session, criterion, bad, right: None, known: Vec::new() }
    }

    /// Judges the ends, and then the commits that halve the rest, until one is left or the session is
    /// interrupted.
    ///
    /// # Errors
    ///
    /// Fails if an end does not have the given judgement, or cannot be judged; and if the storage
    /// fails.
    pub fn search(
        &mut self,
        range: &Range,
        bisection: &mut Bisection,
        observe: &mut dyn FnMut(BisectStep<'_>),
    ) -> Result<(), Error> {
        let [good, bad] = self.criterion.ends;
        self.confirm(good, &range.good, Judgement::Good, observe)?;
        self.confirm(bad, &range.bad, Judgement::Bad, observe)?;
        for base in &range.bases {
            let title = format!("the merge base {}", base.short());
            self.confirm(&title, base, Judgement::Good, observe)?;
        }
        while let Some(commit) = bisection.next().cloned() {
            let (judgement, reason) = self.judge(&commit.id)?;
            if self.session.interrupted_by().is_some() {
                break;
            }
            bisection.judge(&commit.id, judgement);
            let left = bisection.suspects().len();
            observe(BisectStep::Judged(&commit, judgement, reason.as_deref(), left));
        }
        Ok(())
    }

    /// Judges a commit whose judgement was given.
    fn confirm(
        &mut self,
        rev: &str,
        commit: &ObjectId,
        expected: Judgement,
        observe: &mut dyn FnMut(BisectStep<'_>),
    ) -> Result<(), Error> {
        self.criterion.load(commit)?;
        let (found, reason) = self.judge(commit)?;
        match reason {
            Some(reason) => Err(BisectError::Unjudged { rev: rev.to_owned(), reason }.into()),
            None if found == expected => {
                observe(BisectStep::Confirmed(commit, rev, found));
                Ok(())
            }
            None => Err(BisectError::Contradiction { rev: rev.to_owned(), found, expected }.into()),
        }
    }

    /// Judges a commit.
    fn judge(&mut self, commit: &ObjectId) -> Result<CommitVerdict, Error> {
        let titles = [commit.short(), self.criterion.ends[1]];
        let task = self.criterion.load(commit);
        let task = match task.and_then(|task| self.session.bind_like(task, &self.bad, titles)) {
            Err(error) if is_no_task(&error) || lacks_input(&error) => {
                return Ok((Judgement::Skipped, Some(error.to_string())));
            }
            task => task?,
        };
        let known = self.known.iter().find(|(known, _)| task.means_the_same(known));
        if let Some((_, verdict)) = known {
            return Ok(verdict.clone());
        }
        let evaluation = match self.session.prepare_like(task, &self.bad, titles) {
            Err(error) if lacks_input(&error) => {
                return Ok((Judgement::Skipped, Some(error.to_string())));
            }
            evaluation => evaluation?,
        };
        (self.criterion.evaluate)(self.session, &evaluation)?;
        let verdict = self.compare(commit, &evaluation)?;
        self.known.push((evaluation.task, verdict.clone()));
        Ok(verdict)
    }

    /// Judges the outputs at a commit.
    fn compare(
        &mut self,
        commit: &ObjectId,
        evaluation: &Evaluation,
    ) -> Result<CommitVerdict, Error> {
        let skipped = |reason: &str| Ok((Judgement::Skipped, Some(reason.to_owned())));
        match evaluation.exit() {
            Exit::Done => {}
            Exit::Storage => return Err(BisectError::Storage(commit.short().to_owned()).into()),
            Exit::Failed => return skipped("a call failed"),
            Exit::Malformed => return skipped("the points of a sweep cannot be used"),
            _ => return skipped("a file is missing"),
        }
        let Some(mut outputs) = evaluation.outputs() else { return skipped("a file is missing") };
        if let Some(output) = self.criterion.output {
            let names = evaluation.task.passed_names(evaluation.task.workflow.root());
            match number_of(output, &names) {
                Ok(number) => outputs = vec![outputs.swap_remove(number)],
                Err(error) => return skipped(&error.to_string()),
            }
        }
        if let Some((program, arguments)) = self.criterion.test.split_first() {
            let paths = outputs.iter().map(|output| self.session.storage().path(&output.name));
            let mut command = Command::new(program);
            let status = self.session.run_command(command.args(arguments).args(paths));
            let program = program.display().to_string();
            return judgement(commit, status.map_err(|source| TestError { program, source })?);
        }
        let outputs: Vec<Digest> = outputs.iter().map(|output| output.digest).collect();
        let right = self.right.get_or_insert_with(|| outputs.clone());
        let judgement = if *right == outputs { Judgement::Good } else { Judgement::Bad };
        Ok((judgement, None))
    }
}

/// The number of an output that is given by its number or its name, among those that are passed up.
fn number_of(output: &str, names: &[String]) -> Result<usize, WrongOutput> {
    let (slice, wrong) = WrittenSlice::parse([output]).resolve(names);
    if let Some((_, error)) = wrong.into_iter().next() {
        return Err(match error {
            SliceError::Number(number) => WrongOutput::None { number, names: names.to_vec() },
            error => error.into(),
        });
    }
    let number = usize::from(slice.numbers().next().unwrap_or_default());
    if number < names.len() {
        return Ok(number);
    }
    Err(WrongOutput::None { number: format!("{number:02}"), names: names.to_vec() })
}

/// The judgement by the exit status of a test, as in `git bisect run`.
fn judgement(commit: &ObjectId, status: Status) -> Result<CommitVerdict, Error> {
    match status {
        Status::Exited(0) => Ok((Judgement::Good, None)),
        Status::Exited(125) => Ok((Judgement::Skipped, Some("the test cannot tell".to_owned()))),
        Status::Exited(1..128) => Ok((Judgement::Bad, None)),
        status => {
            let (rev, reason) = (commit.short().to_owned(), status.to_string());
            Err(BisectError::Aborted { rev, reason }.into())
        }
    }
}

/// Whether there is no task at a commit that could be evaluated.
fn is_no_task(error: &Error) -> bool {
    matches!(error.of(), Some(LoadError::Problems { .. } | LoadError::NoTaskAt { .. }))
}

/// Whether the task of a commit takes other inputs.
fn lacks_input(error: &Error) -> bool {
    matches!(error.of(), Some(InputError::NoInput { .. }))
}
