//! Bisection: finding the commit that introduced a change. Candidates are the commits that are
//! reachable from a bad commit and from no good one.
//!
//! Pure: chooses the next commit from the judgements of others, and reads no repository.

use std::collections::HashMap;
use std::fmt;

use ce_git::Commit;
use ce_model::digest::ObjectId;
use ce_model::exit::{Exit, Explain};
use ce_model::slice::SliceError;

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
#[derive(Debug, thiserror::Error)]
pub enum BisectError {
    /// There is no commit between.
    #[error("the bad commit {bad} is reachable from the good commit {good}")]
    Nothing {
        /// The good revision.
        good: String,
        /// The bad revision.
        bad: String,
    },
    /// A commit has the opposite judgement of the one that was given.
    #[error("{rev} is {found}, and should be {expected}")]
    Contradiction {
        /// The revision.
        rev: String,
        /// Its judgement.
        found: Judgement,
        /// The given judgement.
        expected: Judgement,
    },
    /// The task at the bad commit has no output that counts.
    #[error("--output, of the task at {rev}: {why}")]
    Output {
        /// The bad revision.
        rev: String,
        /// What is wrong with the output.
        why: WrongOutput,
    },
    /// One of the ends cannot be judged.
    #[error("{rev} cannot be judged: {reason}")]
    Unjudged {
        /// The revision.
        rev: String,
        /// The reason.
        reason: String,
    },
    /// Results could not be read or written.
    #[error("the storage failed at {0}")]
    Storage(String),
    /// The test aborted the bisection.
    #[error("the test gave up at {rev}: {reason}")]
    Aborted {
        /// The revision.
        rev: String,
        /// The end of the test.
        reason: String,
    },
}

/// Why an output is none of a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongOutput {
    /// It is not called so.
    #[error(transparent)]
    Name(#[from] SliceError),
    /// There are fewer outputs.
    #[error("there is no output {number}: {}", numbered(names))]
    None {
        /// The number, as it is shown.
        number: String,
        /// The names of all outputs.
        names: Vec<String>,
    },
}

impl Explain for WrongOutput {
    fn hint(&self) -> Option<String> {
        let other = "give one of these, or leave it out: then all count";
        match self {
            Self::Name(error) => error.hint().or_else(|| Some(other.to_owned())),
            Self::None { .. } => Some(other.to_owned()),
        }
    }
}

fn numbered(names: &[String]) -> String {
    let names = names.iter().enumerate().map(|(number, name)| format!("{number:02} is {name}"));
    names.collect::<Vec<_>>().join(", ")
}

impl Explain for BisectError {
    fn exit(&self) -> Exit {
        match self {
            Self::Nothing { .. } | Self::Contradiction { .. } | Self::Output { .. } => {
                Exit::Malformed
            }
            Self::Storage(_) => Exit::Storage,
            Self::Unjudged { .. } | Self::Aborted { .. } => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Nothing { .. } => {
                Some("give a bad commit that comes later in the history".to_owned())
            }
            Self::Output { why, .. } => why.hint(),
            Self::Contradiction { .. } => Some(
                "give another commit for it; exchange --good and --bad if the change went the other way"
                    .to_owned(),
            ),
            Self::Unjudged { .. } => {
                Some("give another commit near it, at which the reason does not apply".to_owned())
            }
            Self::Storage(_) => Some(
                "ce doctor checks the storage; then run the same command again: finished calls are kept"
                    .to_owned(),
            ),
            Self::Aborted { .. } => Some(
                "let the test end with 0 for good, 125 for unknown, or another number up to 127 for bad"
                    .to_owned(),
            ),
        }
    }
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

    /// Returns the candidates, one of which is the first bad commit, each after its parents.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> ObjectId {
        format!("{number:040x}").parse().unwrap()
    }

    /// Commits of these parents, in the order of their numbers.
    fn history(parents: &[&[usize]]) -> Vec<Commit> {
        let commit = |(number, parents): (usize, &&[usize])| Commit {
            id: id(number),
            parents: parents.iter().copied().map(id).collect(),
            subject: String::new(),
        };
        parents.iter().enumerate().map(commit).collect()
    }

    fn number(commit: &Commit) -> usize {
        usize::from_str_radix(commit.id.full(), 16).unwrap()
    }

    #[test]
    fn each_step_halves_what_is_left() {
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
    fn what_is_skipped_stays_under_suspicion() {
        let mut bisection = Bisection::new(history(&[&[9], &[0], &[1], &[2]]), &id(3)).unwrap();
        bisection.judge(&id(1), Judgement::Skipped);
        bisection.judge(&id(2), Judgement::Bad);
        bisection.judge(&id(0), Judgement::Good);
        assert_eq!(bisection.next(), None);
        assert_eq!(bisection.suspects().into_iter().map(number).collect::<Vec<_>>(), [1, 2]);
        assert!(Bisection::new(Vec::new(), &id(0)).is_none());
    }
}
