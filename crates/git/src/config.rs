//! The section `compeval` of Git's configuration, from all files that Git reads.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gix::bstr::{BString, ByteSlice};

use super::errors::{UnreadableRepository, hint_for_unreadable};
use super::url::{is_plain_repository, local_path, without_password};
use super::{GitResult, open, top};
use ce_model::exit::Explain;
use ce_model::name::StorageName;

/// The section of the configuration.
const SECTION: &str = "compeval";

/// The file at the top of a work tree in which its authors say where its results are: see [`Config::results`].
const AUTHORS: &str = ".compeval";

/// The keys that may stand there. Only the user decides what a run may do.
const OF_AUTHORS: [&str; 2] = ["storage", "results"];

/// Git's configuration of a repository: the system's, the user's, its own, its work tree's, and the environment's. The
/// last value counts. If they do not say where results are, the file `.compeval` may.
#[derive(Debug)]
pub struct Config {
    repository: gix::Repository,
    /// The settings of the file `.compeval`, if there is one.
    authors: Option<gix::config::File>,
    /// The base of relative paths: the top of the work tree, relative to the current directory.
    top: PathBuf,
}

/// The reason why a setting is unknown.
#[derive(Debug, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum ConfigError {
    /// A value is not of its kind.
    #[error("compeval.{key} in {file} is {value:?}, which is not a {kind}")]
    #[hint("give it a {kind}: git config compeval.{key} VALUE; or remove it there")]
    Value {
        /// The key, without its section.
        key: &'static str,
        value: String,
        /// The file that has the setting, or another source of it.
        file: String,
        /// The kind of value that it should have.
        kind: &'static str,
    },
    /// A key may not stand in the file of the authors.
    #[error("{} has compeval.{key}, and may have only storage and results", file.display())]
    #[hint("each user decides that: git config compeval.{key} VALUE")]
    OfUser {
        /// The key, without its section.
        key: String,
        file: PathBuf,
    },
    /// The file of the authors cannot be read.
    #[error("{} cannot be read", file.display())]
    #[hint("correct it: git config --list --file {} says where", file.display())]
    OfAuthors {
        file: PathBuf,
        /// The error of gix.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The repository cannot be read.
    #[error(transparent)]
    #[hint(_0.hint_for_task())]
    Repository(#[from] UnreadableRepository),
    /// One of the files of the configuration cannot be read.
    #[error("Git's configuration for {} cannot be read", path.display())]
    #[hint("{}", hint_for_unreadable(&**source))]
    Git {
        /// The directory whose configuration was wanted.
        path: PathBuf,
        /// The error of gix.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A text of a subsection, such as the value of `compeval.slurm.partition`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// The key after the subsection, in lower case.
    pub key: String,
    /// The text; empty without `=`.
    pub value: String,
    /// The file that has the setting, or another source of it.
    pub file: String,
}

/// A value, and its file. Without `=`, it has no text.
struct Value {
    text: Option<BString>,
    file: String,
}

impl Value {
    fn wrong(self, key: &'static str, kind: &'static str) -> ConfigError {
        let value = self.text.unwrap_or_default().to_str_lossy().into_owned();
        ConfigError::Value { key, value, file: self.file, kind }
    }
}

impl Config {
    /// Reads the configuration of the repository that a directory is in, or is.
    pub fn read(dir: &Path) -> Result<Self, ConfigError> {
        let real = dir.canonicalize();
        let real = real.map_err(|error| UnreadableRepository::of_directory(dir, error))?;
        let read = Self::open(dir, &real);
        let mut config = read.map_err(|error| match UnreadableRepository::new(dir, error) {
            UnreadableRepository::Git { path, source } => ConfigError::Git { path, source },
            error => error.into(),
        })?;
        if let Some(top) = top(&real) {
            config.authors = authors(&top.join(AUTHORS))?;
        }
        Ok(config)
    }

    fn open(dir: &Path, real: &Path) -> GitResult<Self> {
        let (root, inside) = match top(real) {
            Some(top) => (top.clone(), real.strip_prefix(top)?.to_owned()),
            None => (real.to_owned(), PathBuf::new()),
        };
        let here = if dir == Path::new(".") { Path::new("") } else { dir };
        let up: PathBuf = inside.components().map(|_| "..").collect();
        Ok(Self { repository: open(&root)?, authors: None, top: here.join(up) })
    }

    /// Reads the configuration of the repository that a directory is in, or is, unless it is in none.
    pub fn of_any(dir: &Path) -> Result<Option<Self>, ConfigError> {
        match dir.canonicalize() {
            Ok(real) if !is_repository(&real) => Ok(None),
            _ => Self::read(dir).map(Some),
        }
    }

    /// Reads the configuration of the repository that a directory is in, or is. In a directory outside of any
    /// repository, that is the system's, the user's, and the environment's: as for `other`, a repository without
    /// settings of its own.
    pub fn around(dir: &Path, other: &Path) -> Result<Self, ConfigError> {
        match dir.canonicalize() {
            Ok(real) if !is_repository(&real) => {
                Ok(Self { top: dir.to_owned(), authors: None, ..Self::read(other)? })
            }
            _ => Self::read(dir),
        }
    }

    /// The directory that keeps all results: `compeval.storage`. A relative path begins at the top
    /// of the work tree, `~/` at the user's home. The authors can only name one in the work tree.
    pub fn storage(&self) -> Result<Option<PathBuf>, ConfigError> {
        let Some(value) = self.value("storage") else {
            let Some(value) = self.authors_value("storage") else { return Ok(None) };
            let path = value.text.as_ref().and_then(|text| text.to_str().ok());
            return match path.map(str::parse::<StorageName>) {
                Some(Ok(path)) if self.is_in_work_tree(path.as_str()) => {
                    Ok(Some(self.top.join(path.as_str())))
                }
                _ => Err(value.wrong("storage", "path of a directory in the work tree")),
            };
        };
        let path = self.repository.config_snapshot().trusted_path("compeval.storage");
        match path {
            Ok(Some(path)) if !path.as_os_str().is_empty() => Ok(Some(self.top.join(path))),
            _ => Err(value.wrong("storage", "path of a directory")),
        }
    }

    /// The repository that results are pushed to and pulled from: `compeval.results`, a URL or a path. A relative path
    /// begins at the top of the work tree.
    pub fn results(&self) -> Result<Option<String>, ConfigError> {
        let is_of_authors = self.of_authors("results").is_some();
        let value = self.value("results").or_else(|| self.authors_value("results"));
        let Some(value) = value else { return Ok(None) };
        let text = value.text.as_ref().map(|text| text.to_str_lossy().into_owned());
        let is_allowed = |text: &str| is_plain_repository(text) && !self.is_repository_inside(text);
        let text = text.filter(|text| !is_of_authors || is_allowed(text));
        match text.filter(|text| !text.is_empty()) {
            Some(text) if text.starts_with('.') => {
                Ok(Some(self.top.join(text).to_string_lossy().into_owned()))
            }
            Some(text) => Ok(Some(text)),
            None if is_of_authors => {
                Err(value.wrong("results", "URL or path of a repository outside of the work tree"))
            }
            None => Err(value.wrong("results", "URL or path of a repository")),
        }
    }

    /// The file of the authors, if it has a key that no configuration has.
    pub fn of_authors(&self, key: &str) -> Option<&'static str> {
        (self.value(key).is_none() && self.authors_value(key).is_some()).then_some(AUTHORS)
    }

    /// Whether a path that the authors have written is one in the work tree once all links on its way are resolved.
    fn is_in_work_tree(&self, path: &str) -> bool {
        let top = if self.top.as_os_str().is_empty() { Path::new(".") } else { &self.top };
        let place = top.join(path);
        let known = place.ancestors().find(|it| it.symlink_metadata().is_ok());
        let [top, known] = [Some(top), known].map(|it| it.and_then(|it| it.canonicalize().ok()));
        let inside = known
            .zip(top)
            .and_then(|(known, top)| known.strip_prefix(top).ok().map(Path::to_owned));
        !path.starts_with(['.', '~']) && inside.is_some_and(|inside| !inside.starts_with(".git"))
    }

    /// Whether a text names a repository inside the work tree, but not the work tree's own. `git push` starts the hooks
    /// of such a repository, which come with a clone.
    fn is_repository_inside(&self, text: &str) -> bool {
        let Some(path) = local_path(text) else { return false };
        let top = if self.top.as_os_str().is_empty() { Path::new(".") } else { &self.top };
        let Ok(real) = top.canonicalize() else { return true };
        // Any other relative path begins in the current directory.
        let path = if text.starts_with('.') { top.join(path) } else { Path::new(".").join(path) };
        let is_top = path.canonicalize().is_ok_and(|path| path == real);
        // A path that does not exist may exist with `.git` at its end.
        let found = path.ancestors().find_map(|it| it.canonicalize().ok());
        !is_top && found.is_none_or(|found| found.starts_with(&real))
    }

    /// The same without a password, to be shown.
    pub fn shown_results(&self) -> Result<Option<String>, ConfigError> {
        Ok(self.results()?.map(|text| without_password(&text)))
    }

    /// The URL of the remote repository `origin`, without a password, if there is one.
    pub fn origin(&self) -> Option<String> {
        let value = self.repository.config_snapshot().string("remote.origin.url")?;
        Some(without_password(&value.to_str_lossy())).filter(|url| !url.is_empty())
    }

    /// The number of computations that run at the same time: `compeval.jobs`.
    pub fn jobs(&self) -> Result<Option<NonZeroUsize>, ConfigError> {
        self.number("jobs")
    }

    /// Whether computations are held apart from the rest of the system: `compeval.isolate`.
    pub fn isolate(&self) -> Result<Option<bool>, ConfigError> {
        let Some(value) = self.value("isolate") else { return Ok(None) };
        match self.repository.config_snapshot().try_boolean("compeval.isolate") {
            Ok(Some(isolate)) => Ok(Some(isolate)),
            _ => Err(value.wrong("isolate", "boolean: write true or false")),
        }
    }

    /// Whether results that were not isolated are taken over by commits with the same tree: `compeval.takeover` is `tree`, and not `isolated`.
    pub fn trusts_trees(&self) -> Result<Option<bool>, ConfigError> {
        self.choice("takeover", ["tree", "isolated"], "rule: write isolated or tree")
    }

    /// Whether the tree shows states in words: `compeval.style` is `words`, and else `original`.
    pub fn prints_words(&self) -> Result<Option<bool>, ConfigError> {
        self.choice("style", ["words", "original"], "style: write original or words")
    }

    /// Whether a setting is the first of two texts.
    fn choice(
        &self,
        key: &'static str,
        [yes, no]: [&str; 2],
        kind: &'static str,
    ) -> Result<Option<bool>, ConfigError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        match value.text.as_ref().map(|text| text.as_slice()) {
            Some(text) if text == yes.as_bytes() => Ok(Some(true)),
            Some(text) if text == no.as_bytes() => Ok(Some(false)),
            _ => Err(value.wrong(key, kind)),
        }
    }

    /// Whether pushed results are signed: `compeval.sign`.
    pub fn sign(&self) -> Result<Option<bool>, ConfigError> {
        let Some(value) = self.value("sign") else { return Ok(None) };
        match self.repository.config_snapshot().try_boolean("compeval.sign") {
            Ok(Some(sign)) => Ok(Some(sign)),
            _ => Err(value.wrong("sign", "boolean: write true or false")),
        }
    }

    /// The file of the signers whose results are taken, as ssh has it: `compeval.signers`. A relative path begins at the
    /// top of the work tree, `~/` at the user's home.
    pub fn signers(&self) -> Result<Option<PathBuf>, ConfigError> {
        let Some(value) = self.value("signers") else { return Ok(None) };
        match self.repository.config_snapshot().trusted_path("compeval.signers") {
            Ok(Some(path)) if !path.as_os_str().is_empty() => Ok(Some(self.top.join(path))),
            _ => Err(value.wrong("signers", "path of a file")),
        }
    }

    /// The results for which each signer is trusted: all lines `compeval.trust`, each a name and patterns.
    pub fn trust(&self) -> Result<Vec<String>, ConfigError> {
        let snapshot = self.repository.config_snapshot();
        let sections = snapshot.plumbing().sections_by_name(SECTION).into_iter().flatten();
        let mut lines = Vec::new();
        for section in sections.filter(|it| it.header().subsection_name().is_none()) {
            for value in section.values("trust") {
                let text = value.to_str_lossy().trim().to_owned();
                if text.is_empty() {
                    let value = Value { text: None, file: file(&section) };
                    return Err(value.wrong("trust", "name of a signer with patterns"));
                }
                lines.push(text);
            }
        }
        Ok(lines)
    }

    /// The number of attesters that a call needs to be taken: `compeval.require`.
    pub fn require(&self) -> Result<Option<NonZeroUsize>, ConfigError> {
        self.number("require")
    }

    /// All texts of a subsection. Texts of one key are in the order in which Git reads them.
    pub fn subsection(&self, name: &str) -> Vec<ConfigEntry> {
        let snapshot = self.repository.config_snapshot();
        let sections = snapshot.plumbing().sections_by_name(SECTION).into_iter().flatten();
        let mut entries = Vec::new();
        for section in sections {
            if section.header().subsection_name().is_none_or(|it| it != name) {
                continue;
            }
            let keys = section.value_names().map(|key| key.to_string().to_ascii_lowercase());
            for key in keys.collect::<BTreeSet<_>>() {
                for value in section.values(&key) {
                    let (key, value) = (key.clone(), value.to_str_lossy().into_owned());
                    entries.push(ConfigEntry { key, value, file: file(&section) });
                }
            }
        }
        entries
    }

    /// A number from 1.
    fn number(&self, key: &'static str) -> Result<Option<NonZeroUsize>, ConfigError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let number = self.repository.config_snapshot().try_integer(&format!("{SECTION}.{key}"));
        match number
            .map(|number| number.and_then(|number| NonZeroUsize::new(number.try_into().ok()?)))
        {
            Ok(Some(number)) => Ok(Some(number)),
            _ => Err(value.wrong(key, "number from 1")),
        }
    }

    /// The value that counts, as it is written.
    fn value(&self, key: &str) -> Option<Value> {
        value_in(self.repository.config_snapshot().plumbing(), key)
    }

    /// The value that the authors have written.
    fn authors_value(&self, key: &str) -> Option<Value> {
        value_in(self.authors.as_ref()?, key)
    }
}

/// The last value of a key, as it is written.
fn value_in(config: &gix::config::File, key: &str) -> Option<Value> {
    let sections = config.sections_by_name(SECTION)?;
    let plain = sections.filter(|section| section.header().subsection_name().is_none());
    let values = plain.filter_map(|section| {
        Some(Value { text: section.value_implicit(key)?, file: file(&section) })
    });
    values.last()
}

/// Reads the file of the authors, unless it is not there, or no file. It includes no others.
fn authors(path: &Path) -> Result<Option<gix::config::File>, ConfigError> {
    if !path.symlink_metadata().is_ok_and(|it| it.is_file()) {
        return Ok(None);
    }
    let source = gix::config::Source::Worktree;
    let read = gix::config::File::from_path_no_includes(path.to_owned(), source);
    let config = read.map_err(|error| {
        let (file, source) = (path.to_owned(), error.into());
        ConfigError::OfAuthors { file, source }
    })?;
    for section in config.sections_by_name(SECTION).into_iter().flatten() {
        let is_plain = section.header().subsection_name().is_none();
        for key in section.value_names().map(|key| key.to_string().to_ascii_lowercase()) {
            if !is_plain || !OF_AUTHORS.contains(&&*key) {
                return Err(ConfigError::OfUser { key, file: path.to_owned() });
            }
        }
    }
    Ok(Some(config))
}

/// The file that a section is in.
fn file(section: &gix::config::file::SectionRef<'_>) -> String {
    let path = section.meta().path.as_ref().map(|path| path.display().to_string());
    path.unwrap_or_else(|| "the environment".to_owned())
}

/// Whether a directory is in a work tree, or is a bare repository.
fn is_repository(dir: &Path) -> bool {
    top(dir).is_some() || dir.join("HEAD").exists()
}
