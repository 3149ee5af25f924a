//! The storage, the inputs and the points of a task, as they are typed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::Args;

use super::options::{Strict, TaskDir, warn};
use super::storage_args::{PlaceError, check_known, configured_storage, known_storage};
use ce_evaluate::Evaluation;
use ce_evaluate::session::{self, Error, Given, InputError, PointsFile, RangeError, for_each};
use ce_git::Config;
use ce_model::name::InputName;
use ce_model::suggest::UnknownName;
use ce_model::sweep::{self, Factor, Likeness, Lookalike};
use ce_model::task::{RangedInput, RangedInputs, Task};
use ce_model::template;
use ce_report::say;
use ce_storage::InputSource;
use ce_task::load::{Warning, WarningKind};

/// The storage, and the inputs of the task, as they were typed.
#[derive(Clone, Debug, Args)]
pub(super) struct PathArgs {
    /// The directory that keeps all results [default: compeval.storage in Git's configuration]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: Option<PathBuf>,

    /// A file for each input of the task: NAME=FILE, or the files of all inputs that are not given by
    /// name, in the order of the task's inputs
    #[arg(value_hint = clap::ValueHint::FilePath)]
    inputs: Vec<PathBuf>,

    /// Give an input as a text: the file that `echo TEXT` would make
    #[arg(short, long = "param", value_name = "NAME=TEXT", value_parser = named_text)]
    params: Vec<(String, String)>,

    /// Read the repository that the task calls SOURCE from here: a work tree, or a bare repository
    #[arg(short, long = "repository", value_name = "SOURCE=REPO", value_parser = named_repository, value_hint = clap::ValueHint::DirPath)]
    pub(super) repositories: Vec<(String, PathBuf)>,
}

/// The options of a task where the paths are also others.
#[derive(Clone, Debug, Args)]
pub(super) struct TaskInputs {
    /// Give an input as a text: the file that `echo TEXT` would make
    #[arg(short, long = "param", value_name = "NAME=TEXT", value_parser = named_text, requires = "task")]
    params: Vec<(String, String)>,

    /// Read the repository that the task calls SOURCE from here: a work tree, or a bare repository
    #[arg(short, long = "repository", value_name = "SOURCE=REPO", value_parser = named_repository, value_hint = clap::ValueHint::DirPath, requires = "task")]
    repositories: Vec<(String, PathBuf)>,
}

/// A possible reading of the arguments: a storage and inputs.
#[derive(Debug)]
pub(super) struct PathsCandidate {
    pub(super) storage: PathBuf,
    /// Whether the configuration names the storage.
    pub(super) is_configured: bool,
    pub(super) inputs: Vec<InputSource>,
}

fn named_text(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, text)) if !name.is_empty() => Ok((name.to_owned(), text.to_owned())),
        _ => Err("write NAME=TEXT".to_owned()),
    }
}

fn named_repository(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.to_owned(), path.into()))
        }
        _ => Err("write SOURCE=REPO".to_owned()),
    }
}

impl PathArgs {
    /// These paths and options, as if they had been typed for a task.
    pub(super) fn of_task(typed: Vec<PathBuf>, options: &TaskInputs) -> Self {
        let mut inputs = typed.into_iter();
        let (params, repositories) = (options.params.clone(), options.repositories.clone());
        Self { storage: inputs.next(), inputs: inputs.collect(), params, repositories }
    }

    /// Whether nothing was typed.
    pub(super) const fn is_nothing(&self) -> bool {
        self.storage.is_none() && self.params.is_empty() && self.repositories.is_empty()
    }

    /// Whether something was typed beside paths.
    pub(super) const fn has_options(&self) -> bool {
        !self.params.is_empty() || !self.repositories.is_empty()
    }

    /// The storage, or else the configured one, and the other arguments as names.
    pub(super) fn storage_and_names(&self) -> Result<(PathBuf, &[PathBuf]), Error> {
        match &self.storage {
            Some(storage) => Ok((storage.clone(), &self.inputs)),
            None => Ok((known_storage(configured_storage()?)?, &self.inputs)),
        }
    }

    /// The first argument, and the others as if they had been typed without it.
    pub(super) fn split_first(&self) -> Option<(&Path, Self)> {
        let mut inputs = self.inputs.clone().into_iter();
        let storage = inputs.next();
        Some((self.storage.as_deref()?, Self { storage, inputs: inputs.collect(), ..self.clone() }))
    }

    /// All paths, in their order.
    pub(super) fn typed(&self) -> impl Iterator<Item = &Path> {
        self.storage.iter().chain(&self.inputs).map(PathBuf::as_path)
    }

    /// Returns the storage, and the inputs of a task that is not loaded, in each way in which they may be
    /// told apart. There is none if inputs may be given by name: then the task is needed.
    pub(super) fn candidates(&self, config: &Config) -> Result<Vec<PathsCandidate>, Error> {
        if !self.params.is_empty()
            || self.typed().any(|path| path.as_os_str().as_bytes().contains(&b'='))
        {
            return Ok(Vec::new());
        }
        let typed: Vec<&Path> = self.typed().collect();
        let mut candidates = Vec::new();
        if let Some(storage) = config.storage()? {
            let inputs = as_sources(&typed);
            candidates.push(PathsCandidate { storage, is_configured: true, inputs });
        }
        if let Some((storage, files)) = typed.split_first() {
            let (storage, inputs) = (storage.to_path_buf(), as_sources(files));
            candidates.push(PathsCandidate { storage, is_configured: false, inputs });
        }
        Ok(candidates)
    }

    /// Checks that no input is given by name that the points have texts for.
    fn check_unranged(&self, inputs: &RangedInputs) -> Result<(), Error> {
        for RangedInput { name, .. } in inputs.iter().filter(|input| input.given.is_none()) {
            if self.params.iter().any(|(it, _)| *it == name.as_str())
                || self.typed().any(|path| file_named(path, name).is_some())
            {
                return Err(RangeError::GivenAndRanged(name.to_string()).into());
            }
        }
        Ok(())
    }

    /// Looks for all results of a task in the storage. Computes and writes nothing.
    pub(super) fn look_up(
        &self,
        dir: &TaskDir,
        task: Task,
        strict: &Strict,
    ) -> Result<Evaluation, Error> {
        let config = dir.config()?;
        let given = self.resolve(&dir.task, &task, &config)?;
        session::look_up(&dir.task, task, &given, &strict.to_look(&config)?)
    }

    /// Separates the storage from the inputs, and assigns each of these to an input: `NAME=FILE` is the input of
    /// that name, if the task has one. Of the other arguments the storage comes first, unless the
    /// configuration has one and there are just as many as inputs that are not given by name.
    ///
    /// An input with a default is given by name only. A configured storage must be the one that the repository of the task has used.
    pub(super) fn resolve(&self, dir: &Path, task: &Task, config: &Config) -> Result<Given, Error> {
        let given = self.resolve_read(task, config, &vec![true; task.inputs.len()])?;
        if given.is_configured {
            check_known(dir, &given.storage)?;
        }
        Ok(given)
    }

    /// The same if not all inputs are read: the others may be left out, all of them. The configured storage is not checked.
    pub(super) fn resolve_read(
        &self,
        task: &Task,
        config: &Config,
        is_read: &[bool],
    ) -> Result<Given, Error> {
        let mut named: Vec<Option<InputSource>> = vec![None; task.inputs.len()];
        let mut rest = Vec::new();
        for path in self.typed() {
            if let Some((at, file)) = split_name(task, path) {
                give(task, &mut named, at, file.into())?;
            } else if let Some(name) = missing_name(path) {
                return Err(InputError::unknown(task, name).into());
            } else {
                rest.push(path);
            }
        }
        for (input, text) in &self.params {
            let at = task.inputs.iter().position(|it| it.as_str() == input);
            let at = at.ok_or_else(|| InputError::unknown(task, input))?;
            give(task, &mut named, at, InputSource::Bytes(format!("{text}\n").into_bytes()))?;
        }
        let is_named = named.iter().any(Option::is_some);
        // The inputs that are given by position.
        let open: Vec<usize> = (0..named.len())
            .filter(|at| named[*at].is_none() && task.defaults[*at].is_none())
            .collect();
        let read: Vec<usize> = open.iter().copied().filter(|at| is_read[*at]).collect();
        let configured = config.storage()?;
        let ways = [&open, &read].into_iter();
        let mut told = ways.filter_map(|open| {
            Some((split_storage(configured.as_deref(), &rest, open.len())?, open))
        });
        let Some(((storage, files), open)) = told.next() else {
            if configured.is_none() && rest.is_empty() {
                return Err(PlaceError::NoStorage.into());
            }
            return Err(InputError::Inputs {
                task: task.name.to_string(),
                names: read.iter().map(|at| task.inputs[*at].to_string()).collect(),
                defaults: (0..named.len())
                    .filter(|at| named[*at].is_none() && task.defaults[*at].is_some())
                    .map(|at| task.inputs[at].to_string())
                    .collect(),
                given: rest.len() - usize::from(configured.is_none()),
                named: is_named,
                configured: configured.is_some(),
            }
            .into());
        };
        let mut inputs = named;
        for (at, file) in open.iter().zip(files) {
            inputs[*at] = Some(InputSource::from(*file));
        }
        check_inputs(task, &inputs, storage)?;
        check_repositories(task, &self.repositories)?;
        let (storage, is_configured) = (storage.to_owned(), files.len() == rest.len());
        Ok(Given { storage, is_configured, inputs, repositories: self.repositories.clone() })
    }
}

/// Gives an input by its name, once.
fn give(
    task: &Task,
    named: &mut [Option<InputSource>],
    at: usize,
    source: InputSource,
) -> Result<(), InputError> {
    match named[at].replace(source) {
        None => Ok(()),
        Some(_) => Err(InputError::InputTwice(task.inputs[at].to_string())),
    }
}

/// Separates the storage from a number of files. The configured one counts if there are just as many arguments.
fn split_storage<'a>(
    configured: Option<&'a Path>,
    arguments: &'a [&'a Path],
    files: usize,
) -> Option<(&'a Path, &'a [&'a Path])> {
    match (configured, arguments.split_first()) {
        (Some(storage), _) if arguments.len() == files => Some((storage, arguments)),
        (_, Some((storage, rest))) if rest.len() == files => Some((storage, rest)),
        _ => None,
    }
}

fn as_sources(files: &[&Path]) -> Vec<InputSource> {
    files.iter().map(|file| InputSource::from(*file)).collect()
}

/// The input that an argument names, and the file that it gives.
fn split_name<'a>(task: &Task, argument: &'a Path) -> Option<(usize, &'a Path)> {
    let mut inputs = task.inputs.iter().enumerate();
    inputs.find_map(|(at, name)| Some((at, file_named(argument, name)?)))
}

/// The file that an argument gives for the input of this name, as `NAME=FILE`.
fn file_named<'a>(argument: &'a Path, name: &InputName) -> Option<&'a Path> {
    let bytes = argument.as_os_str().as_bytes();
    let file = bytes.strip_prefix(name.as_str().as_bytes())?.strip_prefix(b"=")?;
    Some(Path::new(OsStr::from_bytes(file)))
}

/// The name before the `=` of an argument that is not an input, unless the whole of it is a file.
fn missing_name(argument: &Path) -> Option<&str> {
    let (name, _) = argument.to_str()?.split_once('=')?;
    (!name.is_empty() && !name.contains('/') && !argument.exists()).then_some(name)
}

/// Checks that the task reads each named repository, and that none is named twice.
fn check_repositories(task: &Task, named: &[(String, PathBuf)]) -> Result<(), Error> {
    // Texts of inputs may be parts of names.
    let is_open = task.trees.iter().any(|tree| tree.name.is_open());
    let known = task.trees.iter().map(|tree| tree.name.written().source().to_owned());
    let known: Vec<String> = known.collect();
    for (at, (name, _)) in named.iter().enumerate() {
        if named[..at].iter().any(|(other, _)| other == name) {
            return Err(InputError::RepositoryTwice(name.clone()).into());
        }
        if !is_open && !known.contains(name) {
            let (task, repository) = (task.name.to_string(), UnknownName::new(name, known));
            return Err(InputError::UnknownRepository { task, repository }.into());
        }
    }
    Ok(())
}

/// Sees to it that each input of the task that is a file can be read, and that the storage is in none.
fn check_inputs(task: &Task, sources: &[Option<InputSource>], storage: &Path) -> Result<(), Error> {
    for (name, source) in task.inputs.iter().zip(sources) {
        let Some(InputSource::File(path)) = source else { continue };
        readable(path, storage).map_err(|source| InputError::Input {
            name: name.to_string(),
            path: path.display().to_string(),
            source,
        })?;
    }
    Ok(())
}

fn readable(path: &Path, storage: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    let kind = metadata.file_type();
    let is_device = kind.is_block_device()
        || kind.is_char_device()
            && !fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == metadata.rdev());
    if is_device {
        return Err(io::Error::other("it is a device, which may have no end"));
    }
    if kind.is_socket() {
        return Err(io::Error::other("it is a socket"));
    }
    if metadata.is_dir() {
        // A storage that does not exist yet is in the directory that it will be in.
        let mut places = storage.ancestors();
        let place = places.find_map(|place| {
            let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
            place.canonicalize().ok()
        });
        if place.is_some_and(|place| path.canonicalize().is_ok_and(|it| place.starts_with(it))) {
            return Err(io::Error::other("the storage is, or would be, in that directory"));
        }
        return fs::read_dir(path).map(drop);
    }
    // Opening a pipe would wait for its writer.
    if metadata.is_file() { fs::File::open(path).map(drop) } else { Ok(()) }
}

/// The points for which a task is evaluated.
#[derive(Clone, Debug, Args)]
pub(super) struct PointArgs {
    /// Evaluate the task for each of these texts of an input, as -p would give them; with several of
    /// these, for all combinations: the last one varies fastest
    ///
    /// White space around a text does not count. A text with commas stands in quotes, as in 'NAME="a, b",c'.
    #[arg(long, value_name = "NAME=TEXT,...", value_parser = levels)]
    each: Vec<Factor>,

    /// Evaluate the task for each row of a sheet, TSV or CSV with a header, or each object of JSON,
    /// whose columns or keys are inputs; - is the standard input
    ///
    /// Objects are in an array or one after the other. A list in an object has several texts; all of them are combined with
    /// the texts of its other lists. An input that an object lacks has its default. With several files, and with --each,
    /// all points are combined.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    points: Vec<PathBuf>,
}

/// The number of texts of a column that are looked at: if some are paths, one of the first is.
const MOST_LOOKED_AT: usize = 16;

/// Reads the texts of an input: `n=8,16,32`.
pub(super) fn levels(text: &str) -> Result<Factor, String> {
    let named = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, texts) = named.ok_or("write NAME=TEXT,TEXT,...")?;
    let typed = split_texts(texts);
    let texts: Vec<&str> = typed.iter().map(|it| it.text).collect();
    for (at, TypedText { text, is_quoted }) in typed.iter().enumerate() {
        let number = at + 1;
        if text.is_empty() && !is_quoted {
            return Err(format!(
                "text {number} is empty; write one, or '' in quotes for the empty text"
            ));
        }
        if let Err(fault) = template::text(text.as_bytes()) {
            return Err(format!(
                "text {number} cannot be used: {fault}; write one line of at most {} bytes",
                template::MAX_TEXT
            ));
        }
        if texts[..at].contains(text) {
            return Err(format!("{text:?} occurs twice; write it once"));
        }
    }
    let points = sweep::read_list(name, &texts);
    let points = points.map_err(|problems| {
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    })?;
    Ok(Factor { file: name.into(), points })
}

/// A text on the command line.
pub(super) struct TypedText<'a> {
    /// Without quotes.
    pub(super) text: &'a str,
    is_quoted: bool,
}

/// The texts between commas, without white space around them. One in quotes, `'a, b'` or `"a, b"`, may have commas.
pub(super) fn split_texts(typed: &str) -> Vec<TypedText<'_>> {
    let (mut texts, mut rest) = (Vec::new(), Some(typed));
    while let Some(typed) = rest {
        let quoted = typed.trim_start();
        let end = quoted.chars().next().filter(|c| matches!(c, '\'' | '"')).and_then(|quote| {
            let (text, behind) = quoted[1..].split_once(quote)?;
            let behind = behind.trim_start();
            let next = behind.strip_prefix(',');
            (behind.is_empty() || next.is_some()).then_some((text, next))
        });
        let is_quoted = end.is_some();
        let (text, next) = end.unwrap_or_else(|| match typed.split_once(',') {
            Some((text, next)) => (text.trim(), Some(next)),
            None => (typed.trim(), None),
        });
        texts.push(TypedText { text, is_quoted });
        rest = next;
    }
    texts
}

impl PointArgs {
    /// Whether a sheet is read.
    pub(super) const fn has_sheet(&self) -> bool {
        !self.points.is_empty()
    }

    /// Whether there are no points: the task is evaluated once.
    pub(super) const fn is_nothing(&self) -> bool {
        self.each.is_empty() && self.points.is_empty()
    }

    /// Reads the files of points.
    pub(super) fn read(&self) -> Result<Vec<PointsFile>, Error> {
        self.points.iter().map(|path| PointsFile::read(path)).collect()
    }

    /// Returns the factors of the points of a task in a directory; there are none without these options. `files` come from
    /// [`Self::read`]; those with the same columns are one factor.
    pub(super) fn factors(
        &self,
        files: &[PointsFile],
        dir: &Path,
        task: &Task,
    ) -> Result<Vec<Factor>, Error> {
        let mut factors: Vec<Factor> = Vec::with_capacity(files.len() + self.each.len());
        for file in files {
            let more = file.points(dir, task)?;
            let union = factors
                .iter()
                .enumerate()
                .find_map(|(at, factor)| Some((at, sweep::united(&factor.points, &more.points)?)));
            match union {
                Some((at, points)) => factors[at].points = points,
                None => factors.push(more),
            }
        }
        factors.extend_from_slice(&self.each);
        Ok(factors)
    }
}

/// Warns of texts of factors that are probably meant to be one, of texts that are paths of files, and of rows that are left out.
pub(super) fn warn_of_texts(program: &str, factors: &[Factor]) {
    for factor in factors.iter().filter(|it| it.points.blank_rows() > 0) {
        let oddity = WarningKind::BlankRows(factor.points.blank_rows());
        warn(program, &Warning { path: PathBuf::from(&*factor.file), oddity });
    }
    for (name, text) in factors.iter().filter_map(path_among) {
        say(
            program,
            &format_args!(
                "warning: {name} is the text {text:?} at a point, not the file with this path\n  try: give the task the whole sheet as an input, for a sweep with :files '{name}', which reads the files"
            ),
        );
    }
    for like in factors.iter().flat_map(|factor| factor.points.lookalikes()) {
        let Lookalike { column, first, second, likeness } = like;
        match likeness {
            Likeness::Number => say(
                program,
                &format_args!(
                    "warning: {column}: {first} and {second} are one number, and two points\n  try: spell them alike if one point is meant"
                ),
            ),
            Likeness::Words => say(
                program,
                &format_args!(
                    "warning: {column}: {first:?} and {second:?} differ in white space or accents only, and are two points\n  try: spell them alike if one point is meant"
                ),
            ),
        }
    }
}

/// The first text of a factor that is the path of a file, here or beside the sheet, and its name.
fn path_among(factor: &Factor) -> Option<(&str, &str)> {
    let sheet = Path::new(&*factor.file).parent().unwrap_or(Path::new(""));
    let is_path = |text: &str| {
        text.contains(['/', '.']) && (Path::new(text).is_file() || sheet.join(text).is_file())
    };
    (factor.points.names().iter().enumerate()).find_map(|(column, name)| {
        let mut texts = factor.points.levels(column).iter().take(MOST_LOOKED_AT);
        Some((name.as_str(), &**texts.find(|text| is_path(text))?))
    })
}

/// Returns the task that is evaluated for each point of these factors, and the inputs of its jobs; without factors, the
/// task itself. None of these inputs may be given in another way.
pub(super) fn ranged(
    task: Task,
    factors: Vec<Factor>,
    typed: &PathArgs,
) -> Result<(Task, Option<RangedInputs>), Error> {
    if factors.is_empty() {
        return Ok((task, None));
    }
    let (task, inputs) = for_each(task, factors)?;
    typed.check_unranged(&inputs)?;
    Ok((task, Some(inputs)))
}
