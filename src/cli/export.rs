//! Results for people without the storage: `ce export` makes a directory of them, `ce cite` prints citations for a paper.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, Parser, ValueEnum};

use super::Tool;
use super::input_args::{PathArgs, TaskInputs};
use super::options::{Strict, TaskDir, task_around, warn_of_links};
use super::outputs::write_outputs;
use super::storage_args::{StorageFile, configured_storage, storage_and_results};
use ce_evaluate::session::{
    BeginError, Error, OutputError, ResultPathError, Stop, outputs_to_write,
};
use ce_exchange::{Attestations, ExchangeProgress, FetchedFiles, Secrets, fetch_files};
use ce_history::output_directory::{
    OtherOutputs, OutputsError, WrittenContents, check_output_directory,
};
use ce_history::package::{
    Attribution, AttributionFault, Citation, Contributor, CrateError, CrateFacts, LicenceName,
    Package, PackageError, PackageKind, Packer, README, RunCrate, crate_texts, job_of,
    own_directory, vacant,
};
use ce_history::{History, Subject};
use ce_model::exit::Exit;
use ce_model::humanize::{counted, size};
use ce_report::{
    CitationFormat, ReadmeFor, citation, exchanging, harmless, package_json, package_readme, say,
};
use ce_storage::records::CallRecord;
use ce_storage::{Defect, Maintenance, Record, Storage};
use ce_task::load::Uncommitted;

/// Make a directory with the files of results under readable names
///
/// The outputs of a job have the names that they have in the computation that made them; a sweep has a directory for each
/// of its points. README.md tells the origin of each file. Nothing is computed. In a clone of a results repository, large
/// outputs that are away are fetched.
///
/// With --crate, the directory is a Provenance Run Crate: an RO-Crate, which archives such as Zenodo and other programs
/// understand. It tells the origin of each file, with commits, and names neither hosts nor users nor paths of this machine.
#[derive(Debug, Parser)]
#[command(
    version,
    override_usage = USAGE,
    after_help = EXPORT_EXIT_CODES,
    mut_arg("strict", |arg| arg.requires("task"))
)]
pub(super) struct ExportResults {
    /// Export the outputs of all calls of a job, too: in intermediate/COMPUTATION/INPUTS/
    #[arg(long)]
    all: bool,

    /// Make symbolic links to the storage in place of copies
    #[arg(long)]
    link: bool,

    /// Update DIR, as ce run --out does: it gets the outputs of a job under names that stay, and loses what is no output any more. Files change only
    /// if their bytes do
    #[arg(long, conflicts_with_all = ["all", "link", "wanted", "json"])]
    update: bool,

    /// Take the outputs of the task in this directory, or in one around it, with the inputs that are given in place of results. Nothing is
    /// computed
    #[arg(long, value_name = "TASK", requires = "update", value_hint = clap::ValueHint::DirPath)]
    task: Option<PathBuf>,

    /// Take the task as it was at a commit, from the repository's objects: nothing is checked out
    #[arg(long, value_name = "REV", requires = "task")]
    at: Option<String>,

    #[command(flatten)]
    given: TaskInputs,

    #[command(flatten)]
    strict: Strict,

    #[command(flatten)]
    run_crate: CrateArgs,

    /// Print one JSON document
    #[arg(long)]
    json: bool,

    /// The directory to be made or updated, last; a new one may exist if it is empty. With --crate, a name that ends in .zip is a ZIP archive.
    /// Before it, each RESULT is a job, call or table: the path of any output of it, or its short name, such as t_NAME/TCID/INPUTS. With --task,
    /// each INPUT is a file for an input of the task: NAME=FILE, or the files in the order of the inputs. First may stand the STORAGE, the
    /// directory that keeps all results [default: the one in the path of the first result, else compeval.storage in Git's configuration]
    #[arg(value_name = "DIR", required = true, value_hint = clap::ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
}

/// Whether a package is a crate, and what that says beyond records.
#[derive(Debug, Args)]
struct CrateArgs {
    /// Make a crate of a job: with its workflow, and metadata of how it was made
    #[arg(long = "crate", conflicts_with = "link")]
    wanted: bool,

    /// Put the inputs of the job into the crate, too: the files that it was given
    #[arg(long, requires = "wanted")]
    inputs: bool,

    /// Say in the crate when calls were executed
    #[arg(long, requires = "wanted")]
    times: bool,

    /// Say in the crate on which machines they were: processors, memory, kernel
    #[arg(long, requires = "times")]
    machine: bool,

    /// How the crate calls you, who have executed the calls: `NAME` or `NAME <URL>` [default: it names nobody]
    #[arg(long, value_name = "NAME", requires = "wanted", value_parser = person)]
    by: Option<Contributor>,

    /// The licence of the crate: an expression of SPDX, such as CC-BY-4.0 or 'MIT OR Apache-2.0', or a URL [default: the one in CITATION.cff of the
    /// task's repository]
    #[arg(long, value_name = "LICENCE", requires = "wanted", value_parser = LicenceName::parse)]
    license: Option<LicenceName>,

    /// An author of the crate: `NAME`, `NAME <URL>` or `NAME <ORCID>`. May be given several times [default: the authors in
    /// CITATION.cff]
    #[arg(long, value_name = "NAME", requires = "wanted", value_parser = person)]
    author: Vec<Contributor>,

    /// The organization that publishes the crate: `NAME` or `NAME <URL>`
    #[arg(long, value_name = "NAME", requires = "wanted", value_parser = organization)]
    publisher: Option<Contributor>,

    /// Export files that seem to hold keys, tokens, or the values of variables with secrets, too
    #[arg(long, requires = "wanted")]
    allow_secrets: bool,
}

fn person(text: &str) -> Result<Contributor, AttributionFault> {
    Contributor::parse(text, false)
}

fn organization(text: &str) -> Result<Contributor, AttributionFault> {
    Contributor::parse(text, true)
}

impl CrateArgs {
    /// The crate of a job, if one is wanted.
    fn find_crate<'a>(
        &self,
        storage: &'a Storage,
        history: &'a History,
        result: Subject<'a>,
    ) -> Result<Option<RunCrate<'a>>, CrateError> {
        if !self.wanted {
            return Ok(None);
        }
        let facts = CrateFacts { times: self.times, machine: self.machine, by: self.by.clone() };
        let attribution = Attribution {
            licences: self.license.iter().cloned().collect(),
            authors: self.author.clone(),
            publisher: self.publisher.clone(),
        };
        RunCrate::from_job(storage, history, result, facts, attribution).map(Some)
    }
}

const USAGE: &str = "\
ce export [OPTIONS] [STORAGE] <RESULT>... <DIR>
       ce export --update --task TASK [OPTIONS] [STORAGE] [INPUT]... <DIR>";

const EXPORT_EXIT_CODES: &str = "\
Exit codes: 0 exported, 1 files seem to hold secrets, 2 the arguments are wrong, or a result has no record, 3 outputs of --task are missing, 5 files are damaged, or away and not to be had, \
or the storage could not be read or the directory not be written, 130 interrupted (143: by SIGTERM).";

impl Tool for ExportResults {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        if let Some(task) = &self.task {
            return self.update_from_task(task);
        }
        let typed = self.before_dir();
        let first = typed.first().map(PathBuf::as_path);
        let rest = typed.get(1..).unwrap_or_default();
        let (path, results) = storage_and_results(first, rest, configured_storage()?)?;
        let storage = &Storage::existing(&path)?;
        if results.is_empty() {
            return Err(ResultPathError::Storage(path).into());
        }
        if self.run_crate.wanted && results.len() > 1 {
            return Err(CrateError::Several(results.len()).into());
        }
        if self.update {
            return self.update(storage, &results);
        }
        vacant(storage, self.dir(), self.kind())?;
        warn_of_links(storage)?;
        let stop = Stop::watch().map_err(BeginError::new)?;
        let package = match self.export(storage, &results, &stop.asked) {
            Err(error)
                if let Some(PackageError::Stopped) = error.downcast_ref()
                    && let Some(signal) = stop.caught() =>
            {
                say("ce", &PackageError::Stopped);
                return Ok(Exit::Interrupted(signal));
            }
            package => package?,
        };
        if self.json {
            package_json(&package, self.dir(), out).map_err(OutputError)?;
            return Ok(Exit::Done);
        }
        for file in &package.files {
            let path = self.dir().join(&file.path);
            writeln!(out, "{}", path.display()).map_err(OutputError)?;
        }
        let files = counted(package.files.len(), "file");
        say(
            "ce",
            &format_args!(
                "{files} in {}; README.md says what each was made from",
                self.dir().display()
            ),
        );
        Ok(Exit::Done)
    }
}

impl ExportResults {
    /// The directory that is made or updated: the last path.
    fn dir(&self) -> &Path {
        self.paths.last().map_or(Path::new("."), PathBuf::as_path)
    }

    /// The paths before it.
    fn before_dir(&self) -> &[PathBuf] {
        self.paths.split_last().map_or(&[], |(_, before)| before)
    }

    fn kind(&self) -> PackageKind {
        let is_archive = self.dir().extension().is_some_and(|it| it.eq_ignore_ascii_case("zip"));
        match self.link {
            true => PackageKind::Links,
            false if is_archive && self.run_crate.wanted => PackageKind::Archive,
            false => PackageKind::Copies,
        }
    }

    /// Updates the directory with the outputs of a task, as far as they are there.
    fn update_from_task(&self, task: &Path) -> Result<Exit, Error> {
        let dir = TaskDir { task: task_around(task.to_owned()), at: self.at.clone() };
        let task = dir.load("ce", Uncommitted::Refuse)?;
        let names = task.output_names()?;
        let typed = PathArgs::of_task(self.before_dir().to_vec(), &self.given);
        let evaluation = &typed.look_up(&dir, task, &self.strict)?;
        let storage = &*evaluation.storage;
        check_output_directory(&storage.path(""), self.dir())?;
        warn_of_links(storage)?;
        let stop = Stop::watch().map_err(BeginError::new)?;
        let outputs = outputs_to_write(evaluation, &names)?;
        let missing =
            outputs.iter().filter(|it| matches!(it.contents, WrittenContents::Failed)).count();
        let others = OtherOutputs::Remove;
        if let Some(end) = write_outputs("ce", storage, self.dir(), outputs, others, &stop, false)?
        {
            return Ok(end);
        }
        if missing == 0 {
            return Ok(Exit::Done);
        }
        let why =
            if missing == 1 { "is missing, or has failed" } else { "are missing, or have failed" };
        let missing = counted(missing, "output");
        say(
            "ce",
            &format_args!(
                "{missing} {why}\n  try: ce run computes what is missing, and says what has failed"
            ),
        );
        Ok(Exit::Missing)
    }

    /// Updates the directory with the outputs of a job.
    fn update(&self, storage: &Storage, results: &[PathBuf]) -> Result<Exit, Error> {
        let [result] = results else { return Err(OutputsError::Several(results.len()).into()) };
        check_output_directory(&storage.path(""), self.dir())?;
        warn_of_links(storage)?;
        let stop = Stop::watch().map_err(BeginError::new)?;
        let history = History::read(storage)?;
        let mut packer = Packer::new(storage, &history, &|_| None);
        let subject = job_of(&history, packer.find(&result.display().to_string())?);
        let Record::Job(job) = subject.record else {
            return Err(OutputsError::NoJob(subject.entry.short()).into());
        };
        packer.add_outputs(subject.entry, job)?;
        let _fetched = self.fetch(storage, &packer, &stop.asked)?;
        let outputs = packer.outputs_to_write(subject.entry, job)?;
        Ok(write_outputs("ce", storage, self.dir(), outputs, OtherOutputs::Remove, &stop, false)?
            .unwrap_or(Exit::Done))
    }

    fn export(
        &self,
        storage: &Storage,
        results: &[PathBuf],
        stop: &Arc<AtomicBool>,
    ) -> Result<Package, Error> {
        let history = History::read(storage)?;
        let attestations = Attestations::read(storage)?;
        let published = |record: &CallRecord| attestations.first_published(record);
        let mut packer = Packer::new(storage, &history, &published);
        let (mut added, mut run_crate) = (Vec::new(), None);
        for result in results {
            let subject = packer.find(&result.display().to_string())?;
            let subject = if self.run_crate.wanted { job_of(&history, subject) } else { subject };
            run_crate = self.run_crate.find_crate(storage, &history, subject)?;
            if run_crate.is_some() {
                packer.add_inputs(subject, self.run_crate.inputs)?;
            }
            if !added.contains(&subject.entry) {
                added.push(subject.entry);
                let dir = match results.len() {
                    1 => String::new(),
                    _ => own_directory(subject.entry),
                };
                packer.add(&dir, subject, self.all)?;
            }
        }
        let _fetched = self.fetch(storage, &packer, stop)?;
        let package = Package::check(packer, storage, &history, stop)?;
        let place = storage.path("");
        let place = place.canonicalize().unwrap_or(place);
        let readers = match run_crate {
            Some(_) => ReadmeFor::Everybody { times: self.run_crate.times },
            None => ReadmeFor::Colleagues(&place),
        };
        let readme = package_readme(&package, readers);
        let texts = match &run_crate {
            Some(run_crate) => crate_texts(run_crate, &package, readme)?,
            None => vec![(README, readme)],
        };
        if run_crate.is_some() && !self.run_crate.allow_secrets {
            let secrets = Secrets::of_environment();
            let found = secrets.find_in_package(storage, &history, &package, &texts, stop)?;
            if !found.is_empty() && !stop.load(Ordering::Relaxed) {
                return Err(PackageError::Secret(found).into());
            }
        }
        package.write(storage, self.dir(), self.kind(), &texts, stop)?;
        Ok(package)
    }

    /// Brings files that are not here and can be obtained without executing anything, and says so.
    fn fetch(
        &self,
        storage: &Storage,
        packer: &Packer<'_>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<FetchedFiles>, Error> {
        let (absent, progress) = (packer.absent()?, ExchangeProgress::default());
        let fetched = exchanging(&progress, || fetch_files(storage, &absent, stop, &progress));
        if stop.load(Ordering::Relaxed) {
            return Err(PackageError::Stopped.into());
        }
        let fetched = fetched?;
        if let Some(FetchedFiles { objects, bytes, .. }) =
            fetched.as_ref().filter(|it| it.objects > 0)
        {
            let outputs = counted(*objects, "large output");
            say("ce", &format_args!("fetched {outputs} ({}) into the storage", size(*bytes)));
        }
        Ok(fetched)
    }
}

/// Print a citation of a result for a paper
///
/// The task and the output, the full commit and the repository that has it, the inputs and the file with
/// their hashes, the version of CompEval, and the day of the execution.
#[derive(Debug, Parser)]
#[command(version, allow_missing_positional = true, after_help = CITE_EXIT_CODES)]
pub(super) struct CiteResult {
    /// The form of the citation
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: FormatName,

    #[command(flatten)]
    place: StorageFile,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatName {
    Text,
    Bibtex,
    CslJson,
}

const CITE_EXIT_CODES: &str = "\
Exit codes: 0 printed, 2 the arguments are wrong or the file has no record, 5 the storage could not be read, \
or the file differs from its record.";

impl Tool for CiteResult {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let storage = &Storage::existing(&self.place.find()?)?;
        warn_of_links(storage)?;
        let history = History::read(storage)?;
        let subject = history.find(storage, &self.place.file)?;
        let fault = Maintenance::new(storage).check(&subject.promise());
        let fault = fault.filter(Defect::is_harm);
        let attestations = Attestations::read(storage)?;
        let published = |record: &CallRecord| attestations.first_published(record);
        let cited = Citation::describe(storage, &history, &published, subject)?;
        let cited = cited.with_repository(Path::new("."))?;
        let format = match self.format {
            FormatName::Text => CitationFormat::Text,
            FormatName::Bibtex => CitationFormat::Bibtex,
            FormatName::CslJson => CitationFormat::CslJson,
        };
        citation(&cited, format, out).map_err(OutputError)?;
        let Some(fault) = fault else { return Ok(Exit::Done) };
        say(
            "ce",
            &format_args!(
                "warning: {} is not as cited: {fault}\n  try: ce verify --repair, and run the task again",
                harmless(&subject.file())
            ),
        );
        Ok(Exit::Storage)
    }
}
