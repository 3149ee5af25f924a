//! The storage of a command: as it is typed, configured, or told by a file in it.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use ce_evaluate::session::{Error, KnownStorages, ResultPathError};
use ce_git::{Config, unignored};
use ce_model::exit::Explain;
use ce_model::suggest::is_slip;
use ce_report::say;
use ce_storage::{Site, Storage};

/// Neither the user nor Git's configuration says where something is.
#[derive(Debug, thiserror::Error, Explain)]
pub(super) enum PlaceError {
    /// No storage was named.
    #[error("no storage is given, and Git's configuration has no compeval.storage")]
    #[hint("give it as the first argument, or git config compeval.storage DIR")]
    NoStorage,
    /// No results repository was named.
    #[error("no repository is given, and Git's configuration has no compeval.results")]
    #[hint("give its path or URL, or git config compeval.results REPOSITORY")]
    NoResults,
    /// The storage is the user's, and the repository belongs to the task's authors.
    #[error("the storage {} is yours, and the file {file} of the task names the results {results}", storage.display())]
    #[hint("give the storage, if these results belong there")]
    Mixed {
        /// The storage of the configuration.
        storage: PathBuf,
        /// The file of the authors.
        file: &'static str,
        /// The repository that it names.
        results: String,
    },
}

/// The storage of a command that names nothing in it.
#[derive(Debug, Args)]
pub(super) struct StorageDir {
    /// The directory that keeps all results [default: compeval.storage in Git's configuration]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: Option<PathBuf>,
}

impl StorageDir {
    /// Returns the storage that was named, or else the configured one.
    pub(super) fn find(&self) -> Result<PathBuf, Error> {
        self.storage.clone().map_or_else(|| known_storage(configured_storage()?), Ok)
    }

    /// Returns the storage that was named, or else the configured one; `None` if there is neither.
    pub(super) fn if_any(&self) -> Result<Option<PathBuf>, Error> {
        self.storage.clone().map_or_else(configured_storage, |named| Ok(Some(named)))
    }
}

/// The storage, and one file in it. The command needs `allow_missing_positional`.
#[derive(Debug, Args)]
pub(super) struct StorageFile {
    /// The directory that keeps all results [default: the one in the path of the file, else compeval.storage in Git's
    /// configuration]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: Option<PathBuf>,

    /// An output or task input: its path, with or without the storage's, or the first four or
    /// more digits of its SHA-1
    #[arg(required = true, value_hint = clap::ValueHint::FilePath)]
    pub(super) file: String,
}

impl StorageFile {
    /// Returns the named storage, the storage that holds the file, or else the configured one.
    pub(super) fn find(&self) -> Result<PathBuf, Error> {
        self.storage.clone().map_or_else(|| storage_around(Path::new(&self.file)), Ok)
    }
}

/// The storage that a path leads through, or else the configured one. A path that is a storage itself is refused, and one
/// that leads to another place in a storage: they name no result.
pub(super) fn storage_around(path: &Path) -> Result<PathBuf, Error> {
    if let Some(storage) = Site::around(path) {
        return Ok(storage);
    }
    let mut around = path.ancestors().filter(|it| !it.as_os_str().is_empty());
    match around.find(|it| is_storage(it)) {
        Some(storage) if storage == path => Err(ResultPathError::Storage(path.into()).into()),
        Some(storage) => {
            let (path, storage) = (path.to_owned(), storage.to_owned());
            Err(ResultPathError::Elsewhere { path, storage }.into())
        }
        None => match configured_storage()? {
            Some(storage) => known_storage(Some(storage)),
            None if is_name(path) => Err(PlaceError::NoStorage.into()),
            None => Err(ResultPathError::Nowhere(path.into()).into()),
        },
    }
}

/// Whether a path leads to a storage.
pub(super) fn is_storage(path: &Path) -> bool {
    matches!(Site::inspect(path), Ok(Site::Storage))
}

/// A path where there is no storage yet.
#[derive(Debug)]
pub(super) struct AbsentStorage {
    path: PathBuf,
    /// A storage whose path was probably meant.
    similar: Option<PathBuf>,
}

impl AbsentStorage {
    /// Describes the place of a storage that was opened for reading; `None` if the storage was there.
    pub(super) fn detect(storage: &Storage) -> Option<Self> {
        if storage.availability().was_there() {
            return None;
        }
        let path = storage.shown_place().to_owned();
        let similar = Site::similar(&path, is_slip);
        Some(Self { path, similar })
    }

    /// Removes the directories that were made there, unless they have entries. Returns whether nothing is left.
    pub(super) fn unmake(&self) -> bool {
        let rooms = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let rooms: Vec<PathBuf> = rooms.map(|it| it.path()).collect();
        // A directory with entries is a storage that has results, or that others use by now.
        if rooms.iter().all(|room| fs::read_dir(room).is_ok_and(|mut it| it.next().is_none())) {
            for directory in rooms.iter().chain([&self.path]) {
                drop(fs::remove_dir(directory));
            }
        }
        self.path.symlink_metadata().is_err()
    }

    /// Prints what became of it: it may be mistyped, or at a place where Git would add it.
    pub(super) fn tell(self, program: &str, told: &str) {
        let Self { path, similar } = self;
        let similar = similar.map(|it| format!("; did you mean {}?", it.display()));
        let similar = similar.unwrap_or_default();
        say(program, &format_args!("{told} {}{similar}", path.display()));
        if let Some(exposed) = unignored(&path) {
            let exposed = exposed.display();
            say(
                program,
                &format_args!(
                    "warning: Git does not ignore the storage, which is in a work tree\n  try: add the line /{exposed}/ to .gitignore there, or use another place"
                ),
            );
        }
    }
}

/// A storage and a repository of results.
#[derive(Debug, Args)]
pub(super) struct Ends {
    /// The directory that keeps all results [default: compeval.storage in Git's configuration]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: Option<PathBuf>,

    /// The repository: a path or a URL [default: compeval.results in Git's configuration]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    repository: Option<String>,
}

/// The storage and the repository of an exchange, as they were found.
#[derive(Debug)]
pub(super) struct FoundEnds {
    pub(super) storage: PathBuf,
    pub(super) repository: String,
    /// Whether Git's configuration names the storage, and not the user.
    pub(super) is_configured: bool,
    /// The file of the task that names the repository, if the user has not.
    pub(super) named_by: Option<&'static str>,
}

impl Ends {
    /// Returns both. A single argument is the storage, unless the configuration has a storage and no repository.
    pub(super) fn find(&self) -> Result<FoundEnds, Error> {
        let Self { storage, repository } = self;
        if let (Some(storage), Some(repository)) = (storage.clone(), repository.clone()) {
            return Ok(FoundEnds { storage, repository, is_configured: false, named_by: None });
        }
        let config = Config::of_any(Path::new("."))?;
        let results = config.as_ref().map(Config::results).transpose()?.flatten();
        let configured = config.as_ref().map(Config::storage).transpose()?.flatten();
        let named_by = config.as_ref().and_then(|config| config.of_authors("results"));
        let (storage, repository, is_configured) = match (storage, configured, results) {
            (Some(only), Some(storage), None) => (storage, only.display().to_string(), true),
            (Some(storage), _, results) => {
                (storage.clone(), results.ok_or(PlaceError::NoResults)?, false)
            }
            (None, storage, results) => {
                let storage = storage.ok_or(PlaceError::NoStorage)?;
                let results = results.ok_or(PlaceError::NoResults)?;
                // A repository that a task names is not mixed with other tasks' results unless the user says so.
                if let (Some(config), Some(file)) = (&config, named_by)
                    && config.of_authors("storage").is_none()
                {
                    let results = config.shown_results()?.unwrap_or_default();
                    return Err(PlaceError::Mixed { storage, file, results }.into());
                }
                (storage, results, true)
            }
        };
        Ok(FoundEnds { storage, repository, is_configured, named_by })
    }
}

/// Separates the storage from the results that a command names after it. The first argument is the storage, unless it
/// is a path in a storage, or names a result of the configured one: by its name there, or by digits.
pub(super) fn storage_and_results(
    storage: Option<&Path>,
    results: &[PathBuf],
    configured: Option<PathBuf>,
) -> Result<(PathBuf, Vec<PathBuf>), Error> {
    let Some(first) = storage else {
        return Ok((known_storage(configured)?, results.to_vec()));
    };
    let storage = match (Site::around(first), configured) {
        (Some(around), _) => around,
        (None, Some(configured)) if !first.is_dir() && is_name(first) => {
            known_storage(Some(configured))?
        }
        (None, None) if results.is_empty() && !first.is_dir() && is_name(first) => {
            return Err(PlaceError::NoStorage.into());
        }
        _ => return Ok((first.to_owned(), results.to_vec())),
    };
    // The first argument names a result, too.
    Ok((storage, [first.to_owned()].into_iter().chain(results.iter().cloned()).collect()))
}

/// Whether a text is the name of a result in its storage, or digits of a SHA-1.
fn is_name(text: &Path) -> bool {
    let digits = text.as_os_str().as_encoded_bytes();
    Site::is_named_within(text) || digits.iter().all(u8::is_ascii_hexdigit)
}

/// Whether a storage may be made in the place of one that the repository has used.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct NewStorage {
    /// Use a new storage where the configured one is gone, or is not the one that this repository has used before: it has
    /// no results, so all are computed again
    #[arg(long)]
    new_storage: bool,
}

impl NewStorage {
    /// Whether the storage may be another one than the repository has used at its path. One that is named on the command line may.
    pub(super) const fn is_accepted(self, is_configured: bool) -> bool {
        self.new_storage || !is_configured
    }
}

/// Checks that the configured storage is there, and the one that the repository of a directory has used, if it has.
pub(super) fn check_known(dir: &Path, storage: &Path) -> Result<(), Error> {
    KnownStorages::read(dir)?.map_or(Ok(()), |known| known.check(storage))
}

/// The configured storage, if there is one, and if it is the one that the repository of the current directory has used.
pub(super) fn known_storage(configured: Option<PathBuf>) -> Result<PathBuf, Error> {
    let storage = configured.ok_or(PlaceError::NoStorage)?;
    check_known(Path::new("."), &storage)?;
    Ok(storage)
}

/// The storage that Git's configuration names, if the current directory is in a repository.
pub(super) fn configured_storage() -> Result<Option<PathBuf>, Error> {
    let config = Config::of_any(Path::new("."))?;
    Ok(config.map(|config| config.storage()).transpose()?.flatten())
}
