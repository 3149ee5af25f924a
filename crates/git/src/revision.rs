//! Revisions, which are what users call commits, and the names by which a repository knows its commits.

use std::error::Error;
use std::path::Path;

use gix::revision::plumbing::Spec;
use gix::{ObjectId, Repository};

use super::GitResult;
use super::command::{GitReach, Prompts, git, output_of};
use super::errors::{CutOff, SnapshotError, border};
use super::submodules::Repositories;

/// Finds a revision as Git does. What gix does not understand, or otherwise, Git itself is asked for.
pub(super) fn commit(repository: &Repository, dir: &Path, rev: &str) -> GitResult<ObjectId> {
    if is_plain(rev)
        && let Ok(commit) = parsed(repository, rev)
    {
        return Ok(commit);
    }
    let Some(id) = asked(dir, rev) else { return Err(why_none(repository, rev)) };
    Ok(repository.find_object(id)?.peel_to_commit()?.id)
}

/// Returns the reason why a revision means no commit.
fn why_none(repository: &Repository, rev: &str) -> Box<dyn Error + Send + Sync> {
    let base = rev.split(['~', '^']).next().unwrap_or(rev);
    if base == "HEAD"
        && let Some(reason) = why_no_head(repository)
    {
        return reason.into();
    }
    let is_digits = base.len() >= 4 && base.bytes().all(|byte| byte.is_ascii_hexdigit());
    let why = match parsed(repository, base) {
        Ok(_) if base != rev => format!("{base} is there, and has no such ancestor"),
        _ if is_digits => format!("{base} is the beginning of no commit, or of several"),
        _ => return format!("no branch, tag or commit is called {base}").into(),
    };
    match border(repository) {
        Ok(Some(border)) => CutOff { why, border }.into(),
        _ => why.into(),
    }
}

/// Returns the reason why HEAD leads to no commit, unless it leads to one.
fn why_no_head(repository: &Repository) -> Option<String> {
    match repository.head() {
        Ok(head) if head.is_unborn() => {
            let branch = head.referent_name().map(|name| name.as_bstr().to_string());
            Some(format!("HEAD is {}, which has no commit", branch.unwrap_or_default()))
        }
        Ok(head) => Some(repository.find_commit(head.id()?).err()?.to_string()),
        Err(error) => Some(format!("HEAD cannot be read: {error}")),
    }
}

/// Whether gix means by it what Git means: it looks for words in messages where Git looks for
/// patterns, and takes a day to begin at another time.
fn is_plain(rev: &str) -> bool {
    !rev.contains(":/") && !rev.contains("^{/") && rev.split("@{").skip(1).all(is_plain_suffix)
}

/// Whether the braces that a text begins in hold a number or the name of another branch.
fn is_plain_suffix(text: &str) -> bool {
    let inside = text.split('}').next().unwrap_or(text);
    let number = inside.strip_prefix('-').unwrap_or(inside);
    let is_number = number.len() < 8 && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number || ["u", "upstream", "push"].contains(&inside)
}

fn parsed(repository: &Repository, rev: &str) -> GitResult<ObjectId> {
    let commit = format!("{rev}^{{commit}}");
    match repository.rev_parse(commit.as_str())?.detach() {
        Spec::Include(id) => Ok(repository.find_commit(id)?.id),
        _ => Err("it is not one commit".into()),
    }
}

fn asked(dir: &Path, rev: &str) -> Option<ObjectId> {
    // The repository and all objects exist.
    let mut git = git(GitReach::Local, Prompts::Off);
    git.arg("-C").arg(dir).args(["rev-parse", "--verify", "--quiet", "--end-of-options", rev]);
    let output = output_of(&mut git, &[]).ok().filter(|output| output.status.success())?;
    ObjectId::from_hex(output.stdout.trim_ascii()).ok()
}

/// Returns HEAD and the branches and tags of the repository that a directory is in, or is: the short name of
/// each, and its kind. Names that cannot be typed or look like options are left out.
pub fn references(dir: &Path) -> Result<Vec<(String, &'static str)>, SnapshotError> {
    read(dir).map_err(SnapshotError::Git)
}

fn read(dir: &Path) -> GitResult<Vec<(String, &'static str)>> {
    let repository = Repositories::open(dir)?.task;
    let references = repository.references()?;
    let mut names = Vec::new();
    if !repository.head()?.is_unborn() {
        names.push(("HEAD".to_owned(), "checked out"));
    }
    for (found, kind) in [
        (references.local_branches()?, "branch"),
        (references.tags()?, "tag"),
        (references.remote_branches()?, "remote branch"),
    ] {
        // An unreadable reference does not hide others.
        let found = found.filter_map(Result::ok).map(|it| it.name().shorten().to_string());
        names.extend(found.filter(|name| !name.starts_with('-')).map(|name| (name, kind)));
    }
    names.retain(|(name, _)| {
        !name.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER)
    });
    Ok(names)
}
