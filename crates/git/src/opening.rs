//! Opening a repository as Git does, but so that nothing of its configuration starts a program or
//! hides a change of the work tree.

use std::path::{Path, PathBuf};

use gix::Repository;
use gix::bstr::{BString, ByteSlice};
use gix::config::source::Kind;
use gix::open::Options;
use gix::sec::identity::is_path_owned_by_current_user;

use super::{GitResult, drivers, parameters};

/// Settings that override the configuration: objects are not replaced by `git replace`, and all
/// metadata of files is trusted.
const SETTINGS: [&str; 4] = [
    "core.useReplaceRefs=false",
    "core.checkStat=default",
    "core.trustCtime=true",
    "gitoxide.objects.allocLimitIfReducedTrust=0",
];

/// A repository of another user that `safe.directory` does not name.
#[derive(Debug, thiserror::Error)]
#[error("{} belongs to another user", .0.display())]
pub(super) struct Untrusted(pub(super) PathBuf);

/// A directory that is no repository.
#[derive(Debug, thiserror::Error)]
#[error("{} is not in a Git repository", .0.display())]
pub(super) struct NoRepository(PathBuf);

/// Opens a repository, given by the top of its work tree or by its own directory.
///
/// It is opened with the user's configuration, but not if it belongs to another user and
/// `safe.directory` does not name it. The work tree is the directory with `.git`, regardless of
/// `core.worktree`. Filters are known by name, and cannot be started.
pub(super) fn open(path: &Path) -> GitResult<Repository> {
    opened(path, false)
}

/// Opens a submodule of an open repository, which is trusted like that.
pub(super) fn open_submodule(path: &Path) -> GitResult<Repository> {
    opened(path, true)
}

fn opened(path: &Path, is_trusted: bool) -> GitResult<Repository> {
    if !path.join(".git").exists() && !path.join("HEAD").exists() {
        return Err(NoRepository(path.to_owned()).into());
    }
    let options = Options::default().config_overrides(SETTINGS).cli_overrides(parameters::given()?);
    let mut repository = gix::open_opts(path, options.clone())?;
    if !is_own(path, &repository) {
        if !is_trusted && !is_safe(path, &repository) {
            return Err(Untrusted(path.to_owned()).into());
        }
        // gix knows nothing of what the environment says: it would not read the configuration.
        repository = gix::open_opts(path, options.filter_config_section(|_| true))?;
    }
    if path.join(".git").symlink_metadata().is_ok() {
        repository.set_workdir(path.to_owned())?;
    }
    drivers::disarm(&mut repository)?;
    Ok(repository)
}

/// The path of the index of a repository, regardless of the environment.
pub(super) fn index_path(repository: &Repository) -> PathBuf {
    repository.git_dir().join("index")
}

/// Whether all that makes a repository is the user's own.
fn is_own(path: &Path, repository: &Repository) -> bool {
    let git = path.join(".git");
    let git = Some(git.as_path()).filter(|git| git.symlink_metadata().is_ok());
    let places = [Some(path), git, Some(repository.git_dir()), Some(repository.common_dir())];
    let own = |place| is_path_owned_by_current_user(place).unwrap_or(false);
    places.into_iter().flatten().all(own)
}

/// Whether `safe.directory` names a repository. Of its own configuration that does not count.
fn is_safe(path: &Path, repository: &Repository) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    let Some(place) = real(path) else { return false };
    let config = repository.config_snapshot();
    let values = config
        .plumbing()
        .strings_filter("safe.directory", |it| it.source.kind() != Kind::Repository);
    let mut safe = false;
    for value in values.unwrap_or_default() {
        let value: BString = value;
        safe = match &**value {
            b"" => false,
            b"*" => true,
            _ if safe => true,
            _ => {
                let home = gix::path::env::home_dir();
                let context = gix::config::path::interpolate::Context {
                    home_dir: home.as_deref(),
                    ..Default::default()
                };
                let named = gix::config::Path::from(value.as_bstr()).interpolate(context);
                named.is_ok_and(|named| match named.strip_suffix_star() {
                    Some(above) => real(&above).is_some_and(|above| place.starts_with(above)),
                    None => {
                        (named.is_absolute() || named == Path::new("."))
                            && real(&named).as_ref() == Some(&place)
                    }
                })
            }
        };
    }
    safe
}

/// The pattern `PATH/*`: everything below `PATH`.
trait Star {
    fn strip_suffix_star(&self) -> Option<PathBuf>;
}

impl Star for PathBuf {
    fn strip_suffix_star(&self) -> Option<PathBuf> {
        let star = self.is_absolute() && self.file_name().is_some_and(|name| name == "*");
        star.then(|| self.parent().map(Path::to_owned)).flatten()
    }
}
