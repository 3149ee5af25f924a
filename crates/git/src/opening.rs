//! Opening a repository as Git does, but so that nothing of its configuration starts a program or
//! hides a change of the work tree.
//!
//! External filters are programs that the configuration names, and attributes give to files. They are never started
//! here: without its filter, the blob that Git would record of a file is unknown, and its own contents are used.

use std::error::Error;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use gix::Repository;
use gix::bstr::{BString, ByteSlice};
use gix::config::source::Kind;
use gix::index::State;
use gix::open::Options;
use gix::sec::identity::is_path_owned_by_current_user;

use crate::GitResult;

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

/// A directory that is not a repository.
#[derive(Debug, thiserror::Error)]
#[error("{} is not in a Git repository", .0.display())]
pub(super) struct NoRepository(pub(super) PathBuf);

/// Something in a repository that cannot be read here, though Git may.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unsupported {
    /// A `.git` is there, and Git's data is not in it.
    #[error("{} has no HEAD", .0.display())]
    NoHead(PathBuf),
    /// References are kept in another format.
    #[error("it keeps its references in the format reftable")]
    Reftable,
    /// The file `.gitmodules` has a mistake.
    #[error("its file .gitmodules cannot be parsed")]
    Modules,
    /// An encoding of files is not known.
    #[error("{file:?} has the attribute working-tree-encoding={encoding}, which is not known here")]
    Encoding {
        /// The file, relative to the top of its work tree.
        file: PathBuf,
        encoding: String,
    },
}

impl Unsupported {
    /// What to try.
    pub(super) const fn hint(&self) -> &'static str {
        match self {
            Self::NoHead(_) => "git init there makes it a repository; or remove it",
            Self::Reftable => "git refs migrate --ref-format=files",
            Self::Modules => "git config --file .gitmodules --list says in which line",
            Self::Encoding { .. } => {
                "take working-tree-encoding of it out of .gitattributes, or name another encoding, such as UTF-16LE or ISO-8859-1"
            }
        }
    }
}

/// Opens a repository, given by the top of its work tree or by its own directory.
///
/// It is opened with the user's configuration, but not if it belongs to another user and
/// `safe.directory` does not name it. The work tree is the directory with `.git`, regardless of
/// `core.worktree`. Filters are known by name, and cannot be started.
pub(super) fn open(path: &Path) -> GitResult<Repository> {
    open_trusting(path, false)
}

/// Opens a submodule of an open repository. It is trusted like that repository.
pub(super) fn open_submodule(path: &Path) -> GitResult<Repository> {
    open_trusting(path, true)
}

fn open_trusting(path: &Path, is_trusted: bool) -> GitResult<Repository> {
    if !path.join(".git").exists() && !path.join("HEAD").exists() {
        return Err(NoRepository(path.to_owned()).into());
    }
    let options = Options::default().config_overrides(SETTINGS).cli_overrides(parameters()?);
    let mut repository = gix::open_opts(path, options.clone()).map_err(|error| {
        let git = path.join(".git");
        let is_empty = git.is_dir() && git.join("HEAD").symlink_metadata().is_err();
        if is_empty {
            Unsupported::NoHead(git).into()
        } else {
            Box::<dyn Error + Send + Sync>::from(error)
        }
    })?;
    if !is_own(path, &repository) {
        if !is_trusted && !is_safe(path, &repository) {
            return Err(Untrusted(path.to_owned()).into());
        }
        // gix ignores the environment: it would not read the configuration.
        repository = gix::open_opts(path, options.filter_config_section(|_| true))?;
    }
    if path.join(".git").symlink_metadata().is_ok() {
        repository.set_workdir(path.to_owned())?;
    }
    disarm(&mut repository)?;
    Ok(repository)
}

/// The path of the index of a repository, regardless of the environment.
pub(super) fn index_path(repository: &Repository) -> PathBuf {
    repository.git_dir().join("index")
}

/// Reads the index into a private copy, which may be large.
pub(super) fn own_index(repository: &Repository) -> GitResult<gix::index::File> {
    let (path, hash) = (index_path(repository), repository.object_hash());
    if path.exists() {
        return Ok(gix::index::File::at(path, hash, false, Default::default())?);
    }
    Ok(gix::index::File::from_state(State::new(hash), path))
}

/// Whether a directory is the top of a work tree.
pub(super) fn is_repository(dir: &Path) -> bool {
    dir.join(".git").symlink_metadata().is_ok()
}

/// Whether all that makes a repository is the user's own.
fn is_own(path: &Path, repository: &Repository) -> bool {
    let git = path.join(".git");
    let git = Some(git.as_path()).filter(|git| git.symlink_metadata().is_ok());
    let places = [Some(path), git, Some(repository.git_dir()), Some(repository.common_dir())];
    places.into_iter().flatten().all(|it| is_path_owned_by_current_user(it).unwrap_or(false))
}

/// Whether `safe.directory` names a repository. Its own configuration does not count for that.
fn is_safe(path: &Path, repository: &Repository) -> bool {
    let Ok(place) = path.canonicalize() else { return false };
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
                    Some(above) => above.canonicalize().is_ok_and(|above| place.starts_with(above)),
                    None => {
                        (named.is_absolute() || named == Path::new("."))
                            && named.canonicalize().is_ok_and(|named| named == place)
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

const VARIABLE: &str = "GIT_CONFIG_PARAMETERS";

/// The settings that were passed on, each as `KEY=VALUE`, or as a key alone.
fn parameters() -> GitResult<Vec<BString>> {
    let text = std::env::var_os(VARIABLE).map(OsString::into_vec).unwrap_or_default();
    parse_parameters(&text).ok_or_else(|| format!("{VARIABLE} is not as Git writes it").into())
}

/// Reads `'KEY'='VALUE'`, `'KEY=VALUE'` and `'KEY'`, with spaces between them.
fn parse_parameters(text: &[u8]) -> Option<Vec<BString>> {
    let mut settings = Vec::new();
    let mut rest = text.trim_ascii();
    while !rest.is_empty() {
        let (mut setting, after) = word(rest)?;
        rest = after;
        if let Some(value) = rest.strip_prefix(b"=") {
            setting.push(b'=');
            // An empty value has no quotes.
            if value.first() == Some(&b'\'') {
                let (value, after) = word(value)?;
                setting.extend_from_slice(&value);
                rest = after;
            } else {
                rest = value;
            }
        }
        if !rest.is_empty() && !rest[0].is_ascii_whitespace() {
            return None;
        }
        rest = rest.trim_ascii_start();
        settings.push(setting.into());
    }
    Some(settings)
}

/// Reads a word as a shell would: in quotes, except `\'` and `\!` between two pairs of them.
fn word(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    let mut rest = text.strip_prefix(b"'")?;
    loop {
        let end = rest.iter().position(|byte| *byte == b'\'')?;
        word.extend_from_slice(&rest[..end]);
        rest = &rest[end + 1..];
        match rest {
            [b'\\', escaped @ (b'\'' | b'!'), b'\'', after @ ..] => {
                word.push(*escaped);
                rest = after;
            }
            _ => return Some((word, rest)),
        }
    }
}

/// The section of the configuration about filters.
pub(super) const SECTION: &str = "filter";

/// The keys of a filter that name a program, or ask for one.
const KEYS: [&str; 4] = ["clean", "smudge", "process", "required"];

/// Takes all programs from the configuration of an open repository. The names of filters that had
/// any stay.
fn disarm(repository: &mut Repository) -> GitResult<()> {
    let config = repository.config_snapshot();
    let named = config.plumbing().sections_and_ids_by_name(SECTION);
    let sections: Vec<_> = named.into_iter().flatten().map(|(_, id)| id).collect();
    if sections.is_empty() {
        return Ok(());
    }
    let mut config = repository.config_snapshot_mut();
    for id in sections {
        let Some(mut section) = config.section_mut_by_id(id) else { continue };
        let mut programs = 0;
        for key in KEYS {
            while let Some(value) = section.remove(key) {
                programs += usize::from(key != "required" && !value.is_empty());
            }
        }
        if programs == 0 {
            config.remove_section_by_id(id);
        }
    }
    config.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_git_writes_them() {
        let read = |text: &str| {
            let settings = parse_parameters(text.as_bytes())?;
            Some(settings.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(read("").unwrap(), [""; 0]);
        assert_eq!(read("'a.b'='c d' 'e.f=g' 'h.i'").unwrap(), ["a.b=c d", "e.f=g", "h.i"]);
        assert_eq!(read(" 'a.b'= 'c.d'='' ").unwrap(), ["a.b=", "c.d="]);
        assert_eq!(read(r"'a.b'='it'\''s so'\!''").unwrap(), ["a.b=it's so!"]);
        for wrong in ["a.b", "'a.b", "'a.b'x", "'a.b'='c", r"'a'\x'b'"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
