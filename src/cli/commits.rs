//! `ce commits`: the commits of a repository, to sweep over them.

use std::io::Write;
use std::path::{Component, Path, PathBuf};

use clap::Parser;
use clap::builder::{PathBufValueParser, TypedValueParser};

use super::diff::{RevisionRange, versions};
use super::{Tool, say};
use crate::report;
use ce_evaluate::session::{BeginError, Error, OutputError, Stop};
use ce_git::{CommitFilter, CommitHistory};
use ce_model::exit::Exit;
use ce_model::humanize::parse_number;

/// List the commits of a repository, the newest first, as values of an input
///
/// Prints a JSON object a line: the full id of a commit, its committer's date in UTC, and the first line of
/// its message. A task reads each commit by a node of kind tree, without a checkout. The order
/// is that of git log. No storage is needed.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub struct ListCommits {
    /// Only the first N
    #[arg(short = 'n', value_name = "N", value_parser = |text: &str| parse_number::<usize>(text, 0))]
    most: Option<usize>,

    /// List the same commits with the oldest first
    #[arg(long)]
    reverse: bool,

    /// Follow only the first parent of merges
    #[arg(long)]
    first_parent: bool,

    /// The repository: a work tree, a directory in one, or a bare repository
    #[arg(value_name = "REPO", value_hint = clap::ValueHint::DirPath)]
    repository: PathBuf,

    /// A revision, to list it and its ancestors; or REV1..REV2, to leave out REV1 and its ancestors. In a
    /// range, HEAD may be left out
    #[arg(value_parser = versions, default_value = "HEAD")]
    range: RevisionRange,

    /// Only commits that changed this file or directory, relative to the top of the repository
    #[arg(last = true, value_parser = path_within())]
    path: Option<PathBuf>,
}

const EXIT_CODES: &str = "\
Exit codes: 0 listed, even if there are none, 2 the arguments are wrong, or the repository cannot be read, \
5 the standard output could not be written, 130 interrupted (143: by SIGTERM).";

/// The path of an entry of commits.
fn path_within() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        let is_within =
            |part: &Component<'_>| matches!(part, Component::CurDir | Component::Normal(_));
        match path.components().all(|part| is_within(&part)) {
            true => Ok(path.components().filter(|it| *it != Component::CurDir).collect()),
            false => Err("write a path relative to the top of the repository, without .."),
        }
    })
}

impl Tool for ListCommits {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let stop = Stop::watch().map_err(BeginError::new)?;
        let (after, until) = match self.range.clone() {
            RevisionRange(after, Some(until)) => (Some(after), until),
            RevisionRange(until, None) => (None, until),
        };
        let (first_parent, path) = (self.first_parent, self.path.clone());
        let filter = CommitFilter { after, until, first_parent, path };
        let history = CommitHistory::open(&self.repository)?;
        let mut commits = history.commits(&filter, &stop.asked)?.peekable();
        let is_empty = commits.peek().is_none();
        let commits = commits.take(self.most.unwrap_or(usize::MAX));
        let mut print = |commit| report::commit(&commit, out).map_err(OutputError);
        if self.reverse {
            let listed = commits.collect::<Result<Vec<_>, _>>()?;
            // The oldest ones may be missing: then nothing is listed.
            if stop.caught().is_none() {
                listed.into_iter().rev().try_for_each(print)?;
            }
        } else {
            for commit in commits {
                print(commit?)?;
            }
        }
        if let Some(signal) = stop.caught() {
            say("ce", &"interrupted: commits are left out");
            return Ok(Exit::Interrupted(signal));
        }
        if let Some(path) = self.path.as_deref().filter(|_| is_empty) {
            let path = Some(path).filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
            say("ce", &format_args!("no commit of the range changed {}", path.display()));
        }
        Ok(Exit::Done)
    }
}
