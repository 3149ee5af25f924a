//! The repository and work tree of a directory; the answers of Git about a directory there; and new repositories.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::errors::SnapshotError;
use super::{GitResult, open};
use ce_files::umask;

/// Returns the top of the work tree that a directory is in.
pub fn top(dir: &Path) -> Option<PathBuf> {
    dir.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok()).map(Path::to_owned)
}

/// Returns a symbolic link on a path that comes from a repository, and leads out of its work tree: the repository, not
/// the user, would choose where files are written.
pub fn link_out_of_repository(path: &Path) -> Option<PathBuf> {
    // A slash at the end would follow the link.
    let path: PathBuf = path.components().collect();
    let mut links = path.ancestors().filter(|it| it.is_symlink());
    links.find(|link| leads_out(link).unwrap_or(false)).map(Path::to_owned)
}

/// Whether a link is in the commit at HEAD, and leads out of the work tree or into its Git directory.
fn leads_out(link: &Path) -> GitResult<bool> {
    let above = link.parent().filter(|it| !it.as_os_str().is_empty());
    let above = above.unwrap_or_else(|| Path::new(".")).canonicalize()?;
    let (Some(top), Some(name)) = (top(&above), link.file_name()) else { return Ok(false) };
    let inside = above.strip_prefix(&top)?.join(name);
    let repository = open(&top)?;
    let tree = repository.head_tree_id_or_empty()?.object()?.into_tree();
    let is_link = tree.lookup_entry_by_path(inside)?.is_some_and(|entry| entry.mode().is_link());
    let target = link.canonicalize().ok();
    let target = target.as_deref().and_then(|target| target.strip_prefix(&top).ok());
    Ok(is_link
        && target.is_none_or(|inside| inside.components().any(|it| it.as_os_str() == ".git")))
}

/// Returns the nearest directory that fits, of one and the directories around it in the same work tree. `None` if no
/// directory fits.
pub fn around(dir: &Path, fits: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    if fits(dir) || !dir.is_dir() {
        return Some(dir.to_owned());
    }
    let real = dir.canonicalize().ok()?;
    let top = top(&real)?;
    let mut around = if dir == Path::new(".") { PathBuf::new() } else { dir.to_owned() };
    for real in real.ancestors().skip(1).take_while(|it| it.starts_with(&top)) {
        around.push("..");
        if fits(real) {
            return Some(around);
        }
    }
    None
}

/// Returns the top of the work tree that a directory is in, or the bare repository that it is.
pub(super) fn find_repository(dir: &Path) -> io::Result<Option<PathBuf>> {
    let real = dir.canonicalize()?;
    let is_bare = real.join("HEAD").is_file() && real.join("objects").is_dir();
    Ok(if is_bare { Some(real) } else { top(&real) })
}

/// Returns the directory of Git that all work trees of a repository share, for a directory that is in one, or is the repository.
/// `None` in no repository.
pub fn common_directory(dir: &Path) -> GitResult<Option<PathBuf>> {
    let Some(repository) = find_repository(dir)? else { return Ok(None) };
    let git = repository.join(".git");
    Ok(Some(match (git.is_dir(), git.is_file()) {
        (true, _) => git,
        // It leads to the Git directory of a submodule, or of a linked work tree.
        (false, true) => open(&repository)?.common_dir().canonicalize()?,
        (false, false) => repository,
    }))
}

/// The location of a repository, and its identity there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The real path of its main work tree, or of the repository itself if it is bare.
    pub path: PathBuf,
    /// The inode of its Git directory.
    pub inode: u64,
}

impl Home {
    /// Finds the repository that a directory is in, or is.
    pub fn find(dir: &Path) -> Result<Self, SnapshotError> {
        find_home(dir).map_err(SnapshotError::Git)
    }
}

fn find_home(dir: &Path) -> GitResult<Home> {
    let real = dir.canonicalize()?;
    let work_tree = top(&real).unwrap_or(real);
    // A file leads to the Git directory of a submodule, or of a linked work tree.
    let is_linked = work_tree.join(".git").is_file();
    let main = if is_linked { main_work_tree(&work_tree)? } else { None };
    let path = main.unwrap_or(work_tree);
    let git = path.join(".git");
    let is_bare = path.join("HEAD").is_file() && !git.exists();
    let inode = fs::metadata(if is_bare { &path } else { &git })?.ino();
    Ok(Home { path, inode })
}

/// The main work tree of a linked one, or the repository if that is bare.
fn main_work_tree(linked: &Path) -> GitResult<Option<PathBuf>> {
    let repository = open(linked)?;
    let common = repository.common_dir().canonicalize()?;
    if common == repository.git_dir().canonicalize()? {
        return Ok(None);
    }
    let main = common.parent().filter(|_| common.ends_with(".git")).unwrap_or(&common).to_owned();
    // The Git directory of a submodule is within another repository.
    Ok(Some(main).filter(|main| top(main).is_none_or(|top| top == *main)))
}

/// Makes an empty repository in a directory that may hold files.
pub fn create(dir: &Path) -> GitResult<()> {
    umask::as_user(|| gix::init(dir))?;
    Ok(())
}
