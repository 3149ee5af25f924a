//! Bisection: finding the commit that introduced a change. Candidates are the commits that are
//! reachable from a bad commit and from no good one.
//!
//! A [`Bisection`] is pure: it chooses the next commit from the judgements of others, and reads no repository. A [`Judge`] evaluates the
//! task as it was at a commit, and compares or tests its outputs.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use ce_evaluate::Evaluation;
use ce_evaluate::session::{InputError, RunOptions, Session};
use ce_executor::{ExecuteError, Status};
use ce_git::{Commit, Range};
use ce_model::digest::{Digest, ObjectId};
use ce_model::exit::{Error, Exit, Explain};
use ce_model::slice::{SliceError, WrittenSlice};
use ce_model::task::Task;
use ce_task::load::{self, LoadError};

/// The judgement of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The change is not in it, nor in its ancestors.
    Good,
    /// The change is in it.
    Bad,
    /// It is unknown.
    Skipped,
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Skipped => "skipped",
        })
    }
}

/// The reason why a bisection cannot begin or continue.
#[derive(Debug, thiserror::Error, Explain)]
pub enum BisectError {
    /// There is no commit between.
    #[error("the bad commit {bad} is reachable from the good commit {good}")]
    #[hint("give a bad commit that comes later in the history")]
    Nothing {
        /// The good revision.
        good: String,
        /// The bad revision.
        bad: String,
    },
    /// A commit has the opposite judgement of the one that was given.
    #[error("{rev} is {found}, and should be {expected}")]
    #[hint(
        "give another commit for it; exchange --good and --bad if the change went the other way"
    )]
    Contradiction {
        /// The revision.
        rev: String,
        found: Judgement,
        /// The given judgement.
        expected: Judgement,
    },
    /// The task at the bad commit has no output that counts.
    #[error("--output, of the task at {rev}: {why}")]
    #[hint(why.hint())]
    Output {
        /// The bad revision.
        rev: String,
        /// The fault of the output.
        why: WrongOutput,
    },
    /// One of the ends cannot be judged.
    #[error("{rev} cannot be judged: {reason}")]
    #[exit(Failed)]
    #[hint("give another commit near it, at which the reason does not apply")]
    Unjudged {
        /// The revision.
        rev: String,
        reason: String,
    },
    /// Results could not be read or written.
    #[error("the storage failed at {0}")]
    #[exit(Storage)]
    #[hint(
        "ce doctor checks the storage; then run the same command again: finished calls are kept"
    )]
    Storage(String),
    /// The test aborted the bisection.
    #[error("the test gave up at {rev}: {reason}")]
    #[exit(Failed)]
    #[hint(
        "let the test end with 0 for good, 125 for unknown, or another number up to 127 for bad"
    )]
    Aborted {
        /// The revision.
        rev: String,
        /// The end of the test.
        reason: String,
    },
}

/// The reason why a task does not have an output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum WrongOutput {
    /// It is not called so.
    #[error(transparent)]
    #[hint(_0.hint().or_else(|| Some(another_output())))]
    Name(#[from] SliceError),
    /// There are fewer outputs.
    #[error("there is no output {number}: {}", numbered(names))]
    #[hint(Some(another_output()))]
    None {
        /// The number, as it is shown.
        number: String,
        /// The names of all outputs.
        names: Vec<String>,
    },
}

fn another_output() -> String {
    "give one of these, or leave it out: then all count".to_owned()
}

fn numbered(names: &[String]) -> String {
    let names = names.iter().enumerate().map(|(number, name)| format!("{number:02} is {name}"));
    names.collect::<Vec<_>>().join(", ")
}

/// The search for the first bad commit.
#[derive(Debug)]
pub struct Bisection {
    /// The candidates at the beginning, each after its parents.
    commits: Vec<Commit>,
    /// The parents of each, as far as they are candidates.
    parents: Vec<Vec<usize>>,
    /// Whether each is still a candidate.
    left: Vec<bool>,
    skipped: Vec<bool>,
    /// The bad commit without known bad ancestors.
    bad: usize,
}

impl Bisection {
    /// Begins with all candidates, in any order, and a bad one from which all of them are
    /// reachable. Returns `None` if that is not among them.
    pub fn new(commits: Vec<Commit>, bad: &ObjectId) -> Option<Self> {
        let commits = sorted(commits, bad);
        let parents = parents(&commits);
        let count = commits.len();
        let bad = count.checked_sub(1)?;
        Some(Self { commits, parents, left: vec![true; count], skipped: vec![false; count], bad })
    }

    /// Returns the commit to judge next: of those without a judgement, the one that halves the
    /// candidates best. `None` if the search is over.
    pub fn next(&self) -> Option<&Commit> {
        let weights = self.weights();
        let all = self.left.iter().filter(|left| **left).count();
        let best = (0..self.commits.len())
            .rev()
            .filter(|&at| self.left[at] && !self.skipped[at] && at != self.bad)
            .max_by_key(|&at| weights[at].min(all - weights[at]))?;
        Some(&self.commits[best])
    }

    /// Records the judgement of a commit.
    pub fn judge(&mut self, id: &ObjectId, judgement: Judgement) {
        let Some(at) = self.commits.iter().position(|commit| commit.id == *id) else { return };
        let reached = self.reached(at);
        match judgement {
            Judgement::Good => {
                self.left.iter_mut().zip(reached).for_each(|(left, reached)| *left &= !reached);
            }
            Judgement::Bad => {
                self.left.iter_mut().zip(reached).for_each(|(left, reached)| *left &= reached);
                self.bad = at;
            }
            Judgement::Skipped => self.skipped[at] = true,
        }
    }

    /// Returns the candidates for the first bad commit, each after its parents.
    pub fn suspects(&self) -> Vec<&Commit> {
        let left = self.commits.iter().zip(&self.left).filter(|(_, left)| **left);
        left.map(|(commit, _)| commit).collect()
    }

    /// The number of candidates that each reaches, including itself.
    fn weights(&self) -> Vec<usize> {
        let mut weights = vec![0; self.commits.len()];
        for at in (0..self.commits.len()).filter(|at| self.left[*at]) {
            let mut parents = self.parents[at].iter().filter(|parent| self.left[**parent]);
            weights[at] = match (parents.next(), parents.next()) {
                (None, _) => 1,
                (Some(&parent), None) => weights[parent] + 1,
                _ => self.reached(at).into_iter().filter(|reached| *reached).count(),
            };
        }
        weights
    }

    /// Whether each candidate is reachable from a commit, which reaches itself.
    fn reached(&self, from: usize) -> Vec<bool> {
        let mut reached = vec![false; self.commits.len()];
        let mut stack = vec![from];
        while let Some(at) = stack.pop() {
            if self.left[at] && !reached[at] {
                reached[at] = true;
                stack.extend(&self.parents[at]);
            }
        }
        reached
    }
}

/// Returns the commits reachable from one, each after its parents, that one last.
fn sorted(commits: Vec<Commit>, last: &ObjectId) -> Vec<Commit> {
    let mut unplaced: HashMap<ObjectId, Commit> =
        commits.into_iter().map(|commit| (commit.id.clone(), commit)).collect();
    let mut sorted = Vec::with_capacity(unplaced.len());
    // The commits on the path, each with its parents that were not visited yet.
    let mut way: Vec<(Commit, Vec<ObjectId>)> = Vec::new();
    let mut next = unplaced.remove(last);
    loop {
        if let Some(commit) = next.take() {
            let parents = commit.parents.iter().rev().cloned().collect();
            way.push((commit, parents));
        }
        let Some((_, unseen)) = way.last_mut() else { return sorted };
        match unseen.pop() {
            Some(parent) => next = unplaced.remove(&parent),
            None => sorted.extend(way.pop().map(|(commit, _)| commit)),
        }
    }
}

fn parents(commits: &[Commit]) -> Vec<Vec<usize>> {
    let places: HashMap<&ObjectId, usize> =
        commits.iter().enumerate().map(|(at, commit)| (&commit.id, at)).collect();
    let parents = commits.iter().map(|commit| commit.parents.iter());
    parents.map(|parents| parents.filter_map(|it| places.get(it).copied()).collect()).collect()
}

/// The user's test does not run.
#[derive(Debug, thiserror::Error, Explain)]
#[error("the test {program} cannot be run")]
#[hint("give a program on PATH, or its path as in ./test; chmod +x makes it executable")]
struct TestError {
    /// Its first word.
    program: String,
    /// The cause.
    source: ExecuteError,
}

/// The criterion by which commits are judged.
#[derive(Clone, Debug)]
pub struct Criterion<'a> {
    /// The directory of the task.
    pub dir: &'a Path,
    /// The submodule whose commits are judged; else the task's commits are.
    pub submodule: Option<&'a Path>,
    /// The revisions that the user calls good and bad.
    pub ends: [&'a str; 2],
    /// The only output that counts, by its number or its name; else all do.
    pub output: Option<&'a str>,
    /// A command that gets the paths of the outputs; without it, outputs like the good commit's are
    /// good.
    pub test: &'a [OsString],
    /// The options for evaluating the task.
    pub options: &'a RunOptions,
    /// Evaluates, and prints messages for the user meanwhile.
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

/// The verdict of a commit that cannot be judged for this reason.
fn skipped(reason: &str) -> CommitVerdict {
    (Judgement::Skipped, Some(reason.to_owned()))
}

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
                return Ok(skipped(&error.to_string()));
            }
            task => task?,
        };
        let known = self.known.iter().find(|(known, _)| task.means_the_same(known));
        if let Some((_, verdict)) = known {
            return Ok(verdict.clone());
        }
        let evaluation = match self.session.prepare_like(task, &self.bad, titles) {
            Err(error) if lacks_input(&error) => {
                return Ok(skipped(&error.to_string()));
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
        match evaluation.exit() {
            Exit::Done => {}
            Exit::Storage => return Err(BisectError::Storage(commit.short().to_owned()).into()),
            Exit::Failed => return Ok(skipped("a call failed")),
            Exit::Malformed => return Ok(skipped("the points of a sweep cannot be used")),
            _ => return Ok(skipped("a file is missing")),
        }
        let Some(mut outputs) = evaluation.outputs() else {
            return Ok(skipped("a file is missing"));
        };
        if let Some(output) = self.criterion.output {
            let names = evaluation.task.passed_names(evaluation.task.workflow.root());
            match number_of(output, &names) {
                Ok(number) => outputs = vec![outputs.swap_remove(number)],
                Err(error) => return Ok(skipped(&error.to_string())),
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
        Status::Exited(125) => Ok(skipped("the test cannot tell")),
        Status::Exited(1..128) => Ok((Judgement::Bad, None)),
        status => {
            let (rev, reason) = (commit.short().to_owned(), status.to_string());
            Err(BisectError::Aborted { rev, reason }.into())
        }
    }
}

/// Whether there is no task at a commit that could be evaluated.
fn is_no_task(error: &Error) -> bool {
    matches!(error.downcast_ref(), Some(LoadError::Problems { .. } | LoadError::NoTaskAt { .. }))
}

/// Whether the task of a commit takes other inputs.
fn lacks_input(error: &Error) -> bool {
    matches!(error.downcast_ref(), Some(InputError::NoInput { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> ObjectId {
        format!("{number:040x}").parse().unwrap()
    }

    /// Commits of these parents, in the order of their numbers.
    fn history(parents: &[&[usize]]) -> Vec<Commit> {
        let commits = parents.iter().enumerate().map(|(number, parents)| Commit {
            id: id(number),
            parents: parents.iter().copied().map(id).collect(),
            subject: String::new(),
        });
        commits.collect()
    }

    fn number(commit: &Commit) -> usize {
        usize::from_str_radix(commit.id.full(), 16).unwrap()
    }

    #[test]
    fn each_step_halves_the_suspects() {
        let parents: Vec<Vec<usize>> = (0..1000_usize).map(|at| vec![at.wrapping_sub(1)]).collect();
        let parents: Vec<&[usize]> = parents.iter().map(Vec::as_slice).collect();
        for culprit in [0, 1, 499, 500, 998, 999] {
            let commits = history(&parents[..1]).into_iter().chain(history(&parents).split_off(1));
            let mut bisection = Bisection::new(commits.collect(), &id(999)).unwrap();
            let mut steps = 0;
            while let Some(commit) = bisection.next().cloned() {
                let bad = number(&commit) >= culprit;
                bisection.judge(&commit.id, if bad { Judgement::Bad } else { Judgement::Good });
                steps += 1;
            }
            assert_eq!(bisection.suspects().into_iter().map(number).collect::<Vec<_>>(), [culprit]);
            assert!(steps <= 10, "{steps}");
        }
    }

    #[test]
    fn a_merge_is_followed_on_both_sides() {
        //     0 - 1 - 2 - 5 - 6        a fork at 0, a merge at 5
        //       \ 3 - 4 /
        let merged = history(&[&[9], &[0], &[1], &[0], &[3], &[2, 4], &[5]]);
        let bisection = Bisection::new(merged, &id(6)).unwrap();
        assert!([2, 4].contains(&number(bisection.next().unwrap())), "3 of 7, and 4 of 7");
        let order: Vec<usize> = bisection.suspects().into_iter().map(number).collect();
        assert_eq!(order, [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_skipped_commit_stays_a_suspect() {
        let mut bisection = Bisection::new(history(&[&[9], &[0], &[1], &[2]]), &id(3)).unwrap();
        bisection.judge(&id(1), Judgement::Skipped);
        bisection.judge(&id(2), Judgement::Bad);
        bisection.judge(&id(0), Judgement::Good);
        assert_eq!(bisection.next(), None);
        assert_eq!(bisection.suspects().into_iter().map(number).collect::<Vec<_>>(), [1, 2]);
        assert!(Bisection::new(Vec::new(), &id(0)).is_none());
    }
}
