//! `ce bisect`: the commit that changed an output.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::Parser;

use super::options::{TaskDir, Typed};
use super::workshop::{Evaluated, How, Workshop, same_inputs};
use super::{Tool, say};
use crate::bisect::{BisectError, Bisection, Commit, Judgement};
use crate::count::counted;
use crate::digest::{Digest, ObjectId};
use crate::error::Error;
use crate::evaluate::Files;
use crate::executor::Status;
use crate::exit::Exit;
use crate::git::Range;
use crate::load::{self, LoadError};
use crate::plan::Plan;
use crate::report::{harmless, labels};
use crate::storage::{Input, Storage};
use crate::workflow::Task;

/// Find the first commit after which an output differs, or a test of it fails
///
/// Evaluates the task at commits between a good and a bad one, halving what is left, straight from
/// the repository's objects: no checkout is changed. Results that are there are used.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub struct Bisect {
    /// A commit at which the outputs are right
    #[arg(long, value_name = "REV")]
    good: String,

    /// A commit at which they are not
    #[arg(long, value_name = "REV")]
    bad: String,

    /// Only this output of the task counts, numbered from 0 [default: all]
    #[arg(long, value_name = "NN")]
    output: Option<usize>,

    /// Search the submodule that holds this, such as computations/NAME; else the task is as at HEAD
    #[arg(long = "in", value_name = "PATH")]
    within: Option<PathBuf>,

    #[command(flatten)]
    how: How,

    /// The directory that holds the task
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    task: PathBuf,

    #[command(flatten)]
    typed: Typed,

    /// A command that gets the files of the outputs as further arguments, and ends with 0 if they
    /// are good, 125 if it cannot tell, another status to 127 if they are bad, or a higher one to
    /// give up
    #[arg(last = true)]
    test: Vec<OsString>,
}

const EXIT_CODES: &str = "\
Exit codes: 0 found, 1 it cannot be told, 2 the arguments or the task are wrong, 5 the storage \
could not be read or written, 130 interrupted (143: by SIGTERM).";

/// What a commit turns out to be; why, if nobody can tell.
type Verdict = (Judgement, Option<String>);

/// What judges commits.
struct Judge<'a> {
    bisect: &'a Bisect,
    submodule: Option<PathBuf>,
    workshop: Workshop,
    /// The task as it is at the bad commit, and what it is given.
    task: Task,
    inputs: Vec<Input>,
    /// The outputs at the good commit, if there is no test.
    right: Option<Vec<Digest>>,
    /// Tasks that were judged: whatever means the same is the same.
    known: Vec<(Task, Verdict)>,
}

impl Tool for Bisect {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let range = Range::find(&self.task, self.within.as_deref(), [&self.good, &self.bad])?;
        let (good, bad) = (self.good.clone(), self.bad.clone());
        let nothing = || BisectError::Nothing { good, bad };
        let mut bisection =
            Bisection::new(range.commits.clone(), &range.bad).ok_or_else(nothing)?;
        let task = self.load(range.submodule.as_ref(), &range.bad)?;
        let config = TaskDir { task: self.task.clone(), at: None }.config()?;
        let given = self.typed.resolve(&task, &config)?;
        Storage::existing(&given.storage)?;
        let workshop = self.how.workshop(false, &config, &self.task, &given.storage)?;
        let plan = Plan::new(&task.workflow);
        let files = workshop.files(&task, &plan, &given.inputs, true)?;
        let (submodule, inputs) = (range.submodule.clone(), files.inputs);
        let (right, known) = (None, Vec::new());
        let mut judge = Judge { bisect: self, submodule, workshop, task, inputs, right, known };
        match judge.search(&range, &mut bisection) {
            _ if let Some(signal) = judge.workshop.caught() => Ok(Exit::Interrupted(signal)),
            result => {
                result?;
                tell(&bisection.suspects(), out)
            }
        }
    }
}

impl Bisect {
    fn load(&self, submodule: Option<&PathBuf>, commit: &ObjectId) -> Result<Task, Error> {
        let loaded = match submodule {
            Some(place) => load::task_with(&self.task, place, commit)?,
            None => load::task_at(&self.task, commit.full(), None)?,
        };
        let config = TaskDir { task: self.task.clone(), at: None }.config()?;
        self.how.check(&config, &self.task, &loaded.task)?;
        Ok(loaded.task)
    }
}

impl Judge<'_> {
    /// Judges the ends, and then what halves the rest, until one commit is left or the user asks
    /// to stop.
    fn search(&mut self, range: &Range, bisection: &mut Bisection) -> Result<(), Error> {
        let Bisect { good, bad, .. } = self.bisect;
        self.expect(good, &range.good, Judgement::Good)?;
        self.expect(bad, &range.bad, Judgement::Bad)?;
        for base in &range.bases {
            let title = format!("the merge base {}", base.short());
            self.expect(&title, base, Judgement::Good)?;
        }
        while let Some(Commit { id, subject, .. }) = bisection.next().cloned() {
            let (judgement, reason) = self.judge(&id)?;
            if self.workshop.caught().is_some() {
                break;
            }
            bisection.judge(&id, judgement);
            let left = counted(bisection.suspects().len(), "commit");
            let (id, subject) = (id.short(), harmless(&subject));
            let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            say("ce", &format_args!("{id} {judgement}{reason}: {subject}; {left} left"));
        }
        Ok(())
    }

    /// Judges a commit of which the user has said what it is.
    fn expect(&mut self, rev: &str, commit: &ObjectId, expected: Judgement) -> Result<(), Error> {
        self.bisect.load(self.submodule.as_ref(), commit)?;
        let (found, reason) = self.judge(commit)?;
        let rev = rev.to_owned();
        match reason {
            Some(reason) => Err(BisectError::Unjudged { rev, reason }.into()),
            None if found == expected => {
                say("ce", &format_args!("{} {found}: {rev}", commit.short()));
                Ok(())
            }
            None => Err(BisectError::Contradiction { rev, found, expected }.into()),
        }
    }

    /// Judges a commit.
    fn judge(&mut self, commit: &ObjectId) -> Result<Verdict, Error> {
        let task = match self.bisect.load(self.submodule.as_ref(), commit) {
            Err(Error::Load(error @ (LoadError::Problems { .. } | LoadError::NoTaskAt { .. }))) => {
                return Ok((Judgement::Skipped, Some(error.to_string())));
            }
            task => task?,
        };
        let known = self.known.iter().find(|(known, _)| task.means_the_same(known));
        if let Some((_, verdict)) = known {
            return Ok(verdict.clone());
        }
        let inputs = match same_inputs(
            [commit.short(), &self.bisect.bad],
            [&task, &self.task],
            &self.inputs,
        ) {
            Ok(inputs) => inputs,
            Err(error) => return Ok((Judgement::Skipped, Some(error.to_string()))),
        };
        let (workshop, plan) = (&self.workshop, Plan::new(&task.workflow));
        let files = Files::with_inputs(&task, &plan, inputs, &workshop.storage)?;
        let evaluated = workshop.quietly(task, plan, files)?;
        let verdict = self.compare(commit, &evaluated)?;
        self.known.push((evaluated.task, verdict.clone()));
        Ok(verdict)
    }

    /// Judges what a commit makes.
    fn compare(&mut self, commit: &ObjectId, evaluated: &Evaluated) -> Result<Verdict, Error> {
        let skipped = |reason: &str| Ok((Judgement::Skipped, Some(reason.to_owned())));
        let storage = &self.workshop.storage;
        let labels = labels(&evaluated.task, &evaluated.plan);
        match evaluated.view(storage, &labels).exit() {
            Exit::Done => {}
            Exit::Storage => return Err(BisectError::Storage(commit.short().to_owned()).into()),
            Exit::Failed => return skipped("a call failed"),
            _ => return skipped("a file is missing"),
        }
        let Evaluated { plan, files, evaluation, .. } = evaluated;
        let sources = plan.outputs();
        let sources = match self.bisect.output {
            None => sources,
            Some(number) => match sources.get(number) {
                Some(source) => std::slice::from_ref(source),
                None => return skipped(&format!("it has no output {number:02}")),
            },
        };
        if let Some((program, arguments)) = self.bisect.test.split_first() {
            let names = sources.iter().filter_map(|it| evaluation.name(files, plan, *it));
            let paths: Vec<PathBuf> = names.map(|name| storage.path(&name)).collect();
            return judgement(commit, self.workshop.test(program, arguments, &paths)?);
        }
        let outputs: Vec<Digest> =
            sources.iter().filter_map(|it| evaluation.digest(files, *it)).collect();
        let right = self.right.get_or_insert_with(|| outputs.clone());
        let judgement = if *right == outputs { Judgement::Good } else { Judgement::Bad };
        Ok((judgement, None))
    }
}

/// What the end of a test says of a commit, in the words of `git bisect run`.
fn judgement(commit: &ObjectId, status: Status) -> Result<Verdict, Error> {
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

/// Tells the commits of which one is the first bad one.
fn tell(suspects: &[&Commit], out: &mut dyn Write) -> Result<Exit, Error> {
    for Commit { id, subject, .. } in suspects {
        writeln!(out, "{} {}", id.full(), harmless(subject)).map_err(Error::Output)?;
    }
    if suspects.len() == 1 {
        return Ok(Exit::Done);
    }
    say("ce", &"the first bad commit is one of these: all but the last were skipped");
    Ok(Exit::Failed)
}
