//! The computations of a task, `computations/NAME/{inputs,outputs,exec,access}` or one file, each read once; and the files
//! `resources` beside a computation, beside a node, and in the root of the task.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use ce_files::walk::{GrantError, TrustedLinks, open_device, open_granted};
use ce_git::{Snapshot, TreePath};
use ce_model::access::{Access, Rule, RuleError};
use ce_model::declaration::{self, Declaration};
use ce_model::expression::parse as parse_expression;
use ce_model::name::{ComputationName, NameError, check_input, check_output};
use ce_model::resources::{Resource, Resources};
use ce_model::slice::MAX_ARITY;
use ce_model::task::{
    Computation, ComputationFile, ComputationId, LIBRARY, TextComputation, WORKFLOW_TEXT,
};
use rustix::fs::{FileType, fstat};

use super::nearest;
use super::problems::{Exposed, LoadFault, Problems, ResourceFault};
use super::source::{Located, SourceVersion, TaskSource, parse_lines, parse_text};

/// The computations found so far.
pub(super) struct Library<'a, S: TaskSource> {
    pub(super) source: &'a mut S,
    /// The computations that stand in the text of the workflow.
    texts: &'a [TextComputation],
    found: Vec<Computation>,
    /// The lines of the file `resources` of each.
    resources: Vec<Vec<WrittenLine>>,
    known: HashMap<ComputationName, Option<ComputationId>>,
    /// The names in the library, once they were listed.
    entries: Option<Vec<String>>,
}

/// The place of a computation.
pub(super) enum CodePlace<'a> {
    /// Its directory.
    Directory(TreePath),
    /// The library, and the name of its file there.
    File(TreePath, String),
    /// It stands in the text of the workflow.
    Text(&'a TextComputation),
}

/// The declarations of a computation: its inputs, outputs, access and resources. A part that has a problem is `None`.
#[derive(Default)]
pub(super) struct Description {
    /// The names of its inputs.
    pub(super) inputs: Option<Vec<String>>,
    /// The names of its outputs.
    pub(super) outputs: Option<Vec<String>>,
    pub(super) access: Option<Access>,
}

/// Lines, with their numbers in a file.
type NumberedLines = Vec<(usize, String)>;

impl<'a, S: TaskSource> Library<'a, S> {
    pub(super) fn new(source: &'a mut S, texts: &'a [TextComputation]) -> Self {
        Self {
            source,
            texts,
            found: Vec::new(),
            resources: Vec::new(),
            known: HashMap::new(),
            entries: None,
        }
    }

    /// All valid computations that were found.
    pub(super) fn into_computations(self) -> Vec<Computation> {
        self.found
    }

    pub(super) fn get(&self, id: ComputationId) -> &Computation {
        &self.found[id.index()]
    }

    /// The lines of the file `resources` of a computation.
    pub(super) fn resources(&self, id: ComputationId) -> &[WrittenLine] {
        &self.resources[id.index()]
    }

    /// Returns the computation of this name, or `None` if it has a problem, which is reported once.
    ///
    /// # Errors
    ///
    /// Fails, each time, if there is no such computation.
    pub(super) fn find(
        &mut self,
        name: &str,
        findings: &mut Problems,
    ) -> Result<Option<ComputationId>, LoadFault> {
        let name: ComputationName = name.parse().map_err(LoadFault::Name)?;
        if let Some(known) = self.known.get(&name) {
            return Ok(*known);
        }
        let found = locate(self.source, self.texts, &mut self.entries, name.as_str());
        let computation = match found {
            Ok(CodePlace::Directory(dir)) => self.read(&dir, name.clone(), findings),
            Ok(CodePlace::File(library, file)) => {
                self.read_file(&library, &file, name.clone(), findings)
            }
            Ok(CodePlace::Text(text)) => self.read_text(text, findings),
            Err(LoadFault::Missing | LoadFault::NotADirectory) => {
                let nearest = nearest(name.as_str(), &names(self.source, self.texts));
                return Err(LoadFault::NoComputation { name: name.into(), nearest });
            }
            Err(fault) => {
                findings.problem(&place(&name), fault);
                None
            }
        };
        let id = computation.map(|(computation, resources)| {
            self.found.push(computation);
            self.resources.push(resources);
            ComputationId::at(self.found.len() - 1)
        });
        self.known.insert(name, id);
        Ok(id)
    }

    /// Checks that a computation has the same inputs and outputs as another one.
    pub(super) fn compare(&self, id: ComputationId, first: ComputationId) -> Result<(), LoadFault> {
        let [it, first] = [id, first].map(|id| self.get(id));
        let what = match () {
            () if it.inputs != first.inputs => "inputs",
            () if it.outputs != first.outputs => "outputs",
            () => return Ok(()),
        };
        let has = |it: &Computation| {
            let names = if what == "inputs" { &it.inputs } else { &it.outputs };
            (it.name.to_string(), names.clone())
        };
        Err(LoadFault::OtherSignature { what, computations: Box::new([has(it), has(first)]) })
    }

    fn read(
        &mut self,
        dir: &TreePath,
        name: ComputationName,
        findings: &mut Problems,
    ) -> Option<(Computation, Vec<WrittenLine>)> {
        let place = place(&name);
        let description = describe(self.source, dir, &place, findings);
        let executable = findings.note(&place.join(EXEC), executable(self.source, dir));
        let resources = match self.source.find(dir, RESOURCES_FILE) {
            Err(LoadFault::Missing) => Vec::new(),
            _ => read_resources(self.source, dir, findings),
        };
        let version = findings.note(&place, self.source.version(dir))?;
        executable?;
        Some((computation(name, version, description, None)?, resources))
    }

    fn read_file(
        &mut self,
        library: &TreePath,
        file: &str,
        name: ComputationName,
        findings: &mut Problems,
    ) -> Option<(Computation, Vec<WrittenLine>)> {
        let place = Path::new(LIBRARY).join(file);
        if !is_executable(self.source, library, file) {
            findings.problem(&place, LoadFault::NotExecutable);
            return None;
        }
        let contents = self.source.read(library, file);
        let declared = declaration(contents, &place, findings).map(|it| {
            let lines = it.file(RESOURCES_FILE).unwrap_or_default();
            (declared(&it, &place, findings), parse_resources(&place, lines, findings))
        });
        let version = findings.note(&place, self.source.file_version(library, file))?;
        let (description, resources) = declared?;
        Some((computation(name, version, description, Some(place))?, resources))
    }

    fn read_text(
        &mut self,
        text: &TextComputation,
        findings: &mut Problems,
    ) -> Option<(Computation, Vec<WrittenLine>)> {
        let (file, place) = (text.file(), PathBuf::from(WORKFLOW_TEXT));
        let declared = text_declaration(&file, findings).map(|it| {
            let lines = it.file(RESOURCES_FILE).unwrap_or_default();
            (declared(&it, &place, findings), parse_resources(&place, lines, findings))
        });
        let version = self.source.text_version(text.name.as_str(), &file.contents);
        let version = version.map_err(|fault| {
            findings.problem_in_line(&place, text.head_line, fault);
        });
        let (description, resources) = declared?;
        let name = text.name.clone();
        Some((computation(name, version.ok()?, description, Some(place))?, resources))
    }
}

/// A computation, unless something of it has a problem.
fn computation(
    name: ComputationName,
    version: SourceVersion,
    description: Description,
    file: Option<PathBuf>,
) -> Option<Computation> {
    let SourceVersion { commit, tree, dirty, checked_out } = version;
    let Description { inputs, outputs, access } = description;
    let (inputs, outputs, access) = (inputs?, outputs?, access?);
    Some(Computation { name, commit, tree, dirty, inputs, outputs, access, checked_out, file })
}

/// Finds the computation with this name, in the text of a workflow or in the library. [`LoadFault::Missing`] if there is none. `known` has
/// the names in the library, once they were listed.
fn locate<'a, S: TaskSource>(
    source: &mut S,
    texts: &'a [TextComputation],
    known: &mut Option<Vec<String>>,
    name: &str,
) -> Result<CodePlace<'a>, LoadFault> {
    let text = texts.iter().find(|text| text.name.as_str() == name);
    let library = source.task().and_then(|task| source.enter(&task, LIBRARY));
    let found = library.and_then(|library| {
        let entries = known.get_or_insert_with(|| entries(source, &library));
        locate_in_library(source, &library, entries, name)
    });
    let (text, place) = match (text, found) {
        (None, found) => return found,
        (Some(text), Err(LoadFault::Missing | LoadFault::NotADirectory)) => {
            return Ok(CodePlace::Text(text));
        }
        // A file that may not be executed is no computation.
        (Some(text), Ok(CodePlace::File(library, file)))
            if !is_executable(source, &library, &file) =>
        {
            return Ok(CodePlace::Text(text));
        }
        (Some(_), Err(fault)) => return Err(fault),
        (Some(text), Ok(place)) => (text, place),
    };
    let other = match place {
        CodePlace::File(_, file) => file,
        CodePlace::Directory(_) | CodePlace::Text(_) => format!("{name}/"),
    };
    let places = vec![format!("{LIBRARY}/{other}"), format!("{WORKFLOW_TEXT}:{}", text.head_line)];
    Err(LoadFault::SeveralComputations { name: name.to_owned(), files: places })
}

fn locate_in_library<'a, S: TaskSource>(
    source: &mut S,
    library: &TreePath,
    entries: &[String],
    name: &str,
) -> Result<CodePlace<'a>, LoadFault> {
    let directory = match source.find(library, name) {
        Ok(Located::Directory { dir, .. }) => Some(dir),
        Ok(Located::File { .. }) | Err(LoadFault::Missing | LoadFault::NotADirectory) => None,
        Err(fault) => return Err(fault),
    };
    let named = || entries.iter().filter(|entry| name_of_file(entry) == Some(name));
    let mut files: Vec<String> =
        named().filter(|entry| is_executable(source, library, entry)).cloned().collect();
    if directory.is_none() && files.is_empty() {
        // Somebody has forgotten to make it executable.
        files.extend(named().find(|entry| is_declared(source, library, entry)).cloned());
    }
    match (directory, files.len()) {
        (Some(dir), 0) => Ok(CodePlace::Directory(dir)),
        (None, 1) => Ok(CodePlace::File(library.clone(), files.remove(0))),
        (None, 0) => Err(LoadFault::Missing),
        (directory, _) => {
            let files = directory.map(|_| format!("{name}/")).into_iter().chain(files).collect();
            Err(LoadFault::SeveralComputations { name: name.to_owned(), files })
        }
    }
}

/// The name of the computation that a file in the library may be.
pub(super) fn name_of_file(file: &str) -> Option<&str> {
    // Editors leave copies of this name.
    if file.ends_with('~') { None } else { Path::new(file).file_stem()?.to_str() }
}

fn is_declared<S: TaskSource>(source: &mut S, dir: &TreePath, name: &str) -> bool {
    source.read(dir, name).is_ok_and(|contents| declaration::sign(&contents).is_some())
}

fn is_executable<S: TaskSource>(source: &mut S, dir: &TreePath, name: &str) -> bool {
    matches!(source.find(dir, name), Ok(Located::File { executable: true }))
}

/// The names in a directory, in order.
pub(super) fn entries<S: TaskSource>(source: &mut S, dir: &TreePath) -> Vec<String> {
    let names = source.list(dir).unwrap_or_default().into_iter();
    let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// Reads the names of the inputs and outputs of a computation in a directory, and what it may access.
fn describe<S: TaskSource>(
    source: &mut S,
    dir: &TreePath,
    place: &Path,
    findings: &mut Problems,
) -> Description {
    let mut list = |file: &str| {
        let path = &place.join(file);
        list_of(file, path, file_lines(source, dir, file, path, findings)?, findings)
    };
    let (inputs, outputs) = (list("inputs"), list("outputs"));
    let access = read_access(
        source,
        dir,
        place,
        FileNames { inputs: inputs.as_deref(), outputs: outputs.as_deref() },
        findings,
    );
    Description { inputs, outputs, access }
}

/// Reads the declarations of the computation with this name. A computation that is not there has no declarations.
pub(super) fn described(
    source: &mut impl TaskSource,
    texts: &[TextComputation],
    name: &str,
    findings: &mut Problems,
) -> Description {
    match locate(source, texts, &mut None, name) {
        Ok(CodePlace::Directory(dir)) => describe(source, &dir, Path::new(""), findings),
        Ok(CodePlace::Text(text)) => {
            let declaration = text_declaration(&text.file(), findings);
            let place = Path::new(WORKFLOW_TEXT);
            declaration.map_or_else(Description::default, |it| declared(&it, place, findings))
        }
        Ok(CodePlace::File(library, file)) => {
            let (contents, place) = (source.read(&library, &file), Path::new(&file));
            let declaration = declaration(contents, place, findings);
            declaration.map_or_else(Description::default, |it| declared(&it, place, findings))
        }
        Err(_) => Description::default(),
    }
}

/// The same for an exported computation, which may be one file.
pub(super) fn exported<S: TaskSource>(
    source: &mut S,
    dir: &TreePath,
    findings: &mut Problems,
) -> Description {
    if ["inputs", "outputs"].iter().any(|file| source.find(dir, file).is_ok()) {
        return describe(source, dir, Path::new(""), findings);
    }
    let place = Path::new(EXEC);
    let contents = source.read(dir, EXEC);
    let declaration = declaration(contents, place, findings);
    declaration.map_or_else(Description::default, |it| declared(&it, place, findings))
}

/// Reads the declarations of a computation in one file.
fn declaration(
    contents: Result<Vec<u8>, LoadFault>,
    place: &Path,
    findings: &mut Problems,
) -> Option<Declaration> {
    let errors = match Declaration::parse(&findings.note(place, contents)?) {
        Ok(declaration) => return Some(declaration),
        Err(errors) => errors,
    };
    errors.into_iter().for_each(|(line, error)| findings.problem_in_line(place, line, error));
    None
}

/// Reads the declaration of a computation in a text, with its lines there.
fn text_declaration(file: &ComputationFile, findings: &mut Problems) -> Option<Declaration> {
    let contents = file.contents.clone().into_bytes();
    let declaration = declaration(Ok(contents), Path::new(WORKFLOW_TEXT), findings)?;
    Some(declaration.with_lines(|line| file.lines[line - 1]))
}

/// The names of the declared inputs and outputs, and the granted access.
fn declared(declaration: &Declaration, place: &Path, findings: &mut Problems) -> Description {
    let mut list =
        |file| list_of(file, place, declaration.file(file).unwrap_or_default(), findings);
    let (inputs, outputs) = (list("inputs"), list("outputs"));
    let lines = declaration.file(ACCESS_FILE).unwrap_or_default();
    let access = parse_access(
        place,
        &lines,
        FileNames { inputs: inputs.as_deref(), outputs: outputs.as_deref() },
        findings,
    );
    Description { inputs, outputs, access }
}

/// The names of all computations, as far as they can be read.
pub(super) fn names<S: TaskSource>(source: &mut S, texts: &[TextComputation]) -> Vec<String> {
    listed(source, texts).into_iter().map(|(name, _)| name).collect()
}

/// The same, each with its directory or file, or the text that it stands in, relative to the task.
pub(super) fn listed<S: TaskSource>(
    source: &mut S,
    texts: &[TextComputation],
) -> Vec<(String, PathBuf)> {
    let in_text = |text: &TextComputation| (text.name.to_string(), WORKFLOW_TEXT.into());
    let mut listed: Vec<(String, PathBuf)> = texts.iter().map(in_text).collect();
    let library = source.task().and_then(|task| source.enter(&task, LIBRARY));
    let Ok(library) = library else { return listed };
    for entry in entries(source, &library) {
        let place = Path::new(LIBRARY).join(&entry);
        if source.enter(&library, &entry).is_ok() {
            listed.push((entry, place));
        } else if let Some(name) = name_of_file(&entry)
            && is_executable(source, &library, &entry)
        {
            listed.push((name.to_owned(), place));
        }
    }
    listed
}

/// The computations that stand in the text of a workflow. There are none if it cannot be read.
pub(super) fn text_computations(source: &mut impl TaskSource) -> Vec<TextComputation> {
    let task = source.task();
    let text = task.and_then(|task| parse_text(source.read_points(&task, WORKFLOW_TEXT)));
    let parsed = text.as_ref().ok().and_then(|text| parse_expression(text).ok());
    parsed.map(|parsed| parsed.text.computations).unwrap_or_default()
}

/// The version of the computation with this name at a commit, wherever it stands there. `texts` are the computations in the text.
pub(super) fn version_of(
    commit: &mut Snapshot,
    texts: &[TextComputation],
    name: &str,
) -> Option<SourceVersion> {
    let version = match locate(commit, texts, &mut None, name).ok()? {
        CodePlace::Directory(dir) => commit.version(&dir),
        CodePlace::File(library, file) => commit.file_version(&library, &file),
        CodePlace::Text(text) => commit.text_version(name, &text.file().contents),
    };
    version.ok()
}

/// The path of a computation in a task.
fn place(name: &ComputationName) -> PathBuf {
    Path::new(LIBRARY).join(name.as_str())
}

/// The lines of a file, which exists.
fn file_lines<S: TaskSource>(
    source: &mut S,
    dir: &TreePath,
    file: &str,
    path: &Path,
    findings: &mut Problems,
) -> Option<NumberedLines> {
    let lines = findings.note_lines(path, parse_lines(source.read(dir, file)))?;
    Some((1..).zip(lines).collect())
}

/// Checks the names that `inputs` or `outputs` lists.
fn list_of(
    file: &str,
    path: &Path,
    lines: NumberedLines,
    findings: &mut Problems,
) -> Option<Vec<String>> {
    if lines.len() > MAX_ARITY {
        findings.problem(path, LoadFault::TooMany);
        return None;
    }
    let check = if file == "outputs" { check_output } else { check_input };
    let faults = lines.iter().filter_map(|(number, name)| Some((*number, check(name).err()?)));
    let faults: Vec<(usize, NameError)> = faults.collect();
    if faults.is_empty() {
        return Some(lines.into_iter().map(|(_, name)| name).collect());
    }
    for (number, error) in faults {
        findings.problem_in_line(path, number, LoadFault::Name(error));
    }
    None
}

/// The name of the file that is executed.
const EXEC: &str = "exec";

/// Checks that `exec` can be executed from an export of its directory.
fn executable<S: TaskSource>(source: &mut S, dir: &TreePath) -> Result<(), LoadFault> {
    match source.find(dir, EXEC)? {
        _ if !source.holds(dir, EXEC)? => Err(LoadFault::Elsewhere),
        Located::File { executable: true } => Ok(()),
        Located::File { executable: false } => Err(LoadFault::NotExecutable),
        Located::Directory { .. } => Err(LoadFault::NotAFile),
    }
}

/// The name of the file.
pub(super) const ACCESS_FILE: &str = "access";

/// Reads the file `access`; without one, nothing is granted. `inputs` are the names of the computation's
/// inputs, if these are known.
fn read_access<S: TaskSource>(
    source: &mut S,
    dir: &TreePath,
    place: &Path,
    names: FileNames<'_>,
    findings: &mut Problems,
) -> Option<Access> {
    if matches!(source.find(dir, ACCESS_FILE), Err(LoadFault::Missing)) {
        return Some(Access::default());
    }
    let path = &place.join(ACCESS_FILE);
    let lines = file_lines(source, dir, ACCESS_FILE, path, findings)?;
    parse_access(path, &lines, names, findings)
}

/// The names of the inputs and outputs of a computation; `None` if their file has a problem, which is reported.
#[derive(Clone, Copy)]
struct FileNames<'a> {
    inputs: Option<&'a [String]>,
    outputs: Option<&'a [String]>,
}

fn parse_access(
    path: &Path,
    lines: &[(usize, String)],
    FileNames { inputs, outputs }: FileNames<'_>,
    findings: &mut Problems,
) -> Option<Access> {
    let (mut access, mut root, mut right) = (Access::default(), None, true);
    for (number, line) in lines.iter().filter(|(_, line)| !line.starts_with('#')) {
        let number = *number;
        let rule = Rule::parse(line, inputs.unwrap_or_default(), outputs.unwrap_or_default());
        let rule = match (rule, root) {
            (Ok(Rule::Root(_)), Some(line)) => Err(RuleError::TwoRoots(line)),
            (rule, _) => rule,
        };
        let rule = rule.and_then(|rule| {
            access.rules.push(rule);
            // A line that is in the way comes before or after.
            access.taken().map_or(Ok(()), |fault| {
                access.rules.pop();
                Err(fault)
            })
        });
        match rule {
            Ok(()) => {
                let is_root = access.rules.last().is_some_and(|it| matches!(it, Rule::Root(_)));
                root = root.or(is_root.then_some(number));
            }
            Err(error) => {
                right = false;
                match (error, inputs) {
                    (RuleError::NoInput(name), Some(inputs)) => {
                        let nearest = nearest(&name, inputs);
                        let fault = LoadFault::NoLabel { name, nearest };
                        findings.problem_in_line(path, number, fault);
                    }
                    // The file `inputs` has a problem, which is reported.
                    (RuleError::NoInput(_), None) => {}
                    (error, _) => findings.problem_in_line(path, number, error),
                }
            }
        }
    }
    right.then(|| Access::new(access.rules))
}

/// Returns a fault for each line that this host cannot follow: see [`check_access`](super::check_access).
pub(super) fn access_faults(access: &Access, exposed: Option<&Exposed>) -> Vec<LoadFault> {
    let faults = access.rules.iter().filter_map(|rule| match (rule, exposed) {
        (Rule::Root(_) | Rule::At { .. }, Some(exposed)) => {
            Some(LoadFault::Exposed { line: rule.to_string(), exposed: exposed.clone() })
        }
        (_, Some(_)) => None,
        (_, None) => check_shown(rule, &access.written).err(),
    });
    faults.collect()
}

/// Whether a path is in `/dev`, but not in the shared memory there.
fn is_in_dev(path: &Path) -> bool {
    path.starts_with("/dev") && !path.starts_with("/dev/shm")
}

/// Whether a path leads to processes of the host, or, for writing, to what controls its kernel.
fn is_of_kernel(path: &Path, writes: bool) -> bool {
    path.starts_with("/proc") || writes && path.starts_with("/sys")
}

/// Checks that a granted path exists on this host, and can be shown. `written` are the paths that computations of the task may write.
fn check_shown(rule: &Rule, written: &[PathBuf]) -> Result<(), LoadFault> {
    let (Rule::Read(path) | Rule::Write(path) | Rule::Device(path)) = rule else {
        return Ok(());
    };
    let writes = !matches!(rule, Rule::Read(_));
    if !matches!(rule, Rule::Device(_)) && is_in_dev(path) {
        return Err(RuleError::InDev(path.clone()).into());
    }
    if is_of_kernel(path, writes) {
        return Err(RuleError::Kernel(path.clone()).into());
    }
    if matches!(rule, Rule::Device(_)) && path.starts_with("/dev/shm") {
        return Err(RuleError::NotADevice(path.clone()).into());
    }
    let root = File::open("/").map_err(LoadFault::Read)?;
    let found = if matches!(rule, Rule::Device(_)) {
        open_device(root.as_fd(), path)
    } else {
        let trusted = TrustedLinks::find(root.as_fd(), written);
        open_granted(root.as_fd(), path, writes, &trusted).map(|(found, _)| found)
    };
    let found = match found {
        Err(GrantError::Find { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(LoadFault::NotHere(path.clone()));
        }
        Err(GrantError::Find { source, .. }) => return Err(LoadFault::Read(source)),
        found => found?,
    };
    let kind = FileType::from_raw_mode(
        fstat(&found).map_err(|error| LoadFault::Read(error.into()))?.st_mode,
    );
    let is_device =
        matches!(kind, FileType::CharacterDevice | FileType::BlockDevice | FileType::Directory);
    if matches!(rule, Rule::Device(_)) && !is_device {
        return Err(RuleError::NotADevice(path.clone()).into());
    }
    Ok(())
}

/// The name of the file.
pub(super) const RESOURCES_FILE: &str = "resources";

/// A line whose names are not looked up yet.
#[derive(Clone, Debug)]
pub(super) struct WrittenLine {
    pub(super) resource: Resource,
    pub(super) amount: String,
    pub(super) path: PathBuf,
    pub(super) line: usize,
}

/// The lines of files that are for several nodes, and the problems reported in them.
#[derive(Default)]
pub(super) struct SharedLines {
    pub(super) task: Vec<(ComputationName, WrittenLine)>,
    pub(super) reported: HashSet<(PathBuf, usize)>,
}

/// Reads the file in the directory of a computation, which exists.
fn read_resources(
    source: &mut impl TaskSource,
    dir: &TreePath,
    findings: &mut Problems,
) -> Vec<WrittenLine> {
    let path = dir.place().join(RESOURCES_FILE);
    let lines = file_lines(source, dir, RESOURCES_FILE, &path, findings).unwrap_or_default();
    parse_resources(&path, lines, findings)
}

/// Reads the lines of a file `resources`.
pub(super) fn parse_resources(
    path: &Path,
    lines: NumberedLines,
    findings: &mut Problems,
) -> Vec<WrittenLine> {
    let mut found: Vec<WrittenLine> = Vec::new();
    for (line, text) in lines.into_iter().filter(|(_, text)| is_no_comment(text)) {
        let first = |resource| found.iter().find(|it| it.resource == resource).map(|it| it.line);
        match parse(&text).and_then(|(resource, amount)| match first(resource) {
            Some(first) => Err(ResourceFault::Twice(first)),
            None => Ok((resource, amount)),
        }) {
            Ok((resource, amount)) => {
                found.push(WrittenLine { resource, amount, path: path.to_owned(), line });
            }
            Err(fault) => findings.problem_in_line(path, line, fault),
        }
    }
    found
}

impl SharedLines {
    /// Reads the file in the root of a task, if it exists. `names` lists the computations of the task.
    pub(super) fn of_task<S: TaskSource>(
        source: &mut S,
        names: impl FnOnce(&mut S) -> Vec<String>,
        findings: &mut Problems,
    ) -> Self {
        let mut shared = Self::default();
        let Ok(task) = source.task() else { return shared };
        if matches!(source.find(&task, RESOURCES_FILE), Err(LoadFault::Missing)) {
            return shared;
        }
        let path = PathBuf::from(RESOURCES_FILE);
        let lines = file_lines(source, &task, RESOURCES_FILE, &path, findings);
        let names = names(source);
        for (line, text) in lines.into_iter().flatten().filter(|(_, text)| is_no_comment(text)) {
            match shared.parse(&text, &names) {
                Ok((name, resource, amount)) => {
                    let path = path.clone();
                    shared.task.push((name, WrittenLine { resource, amount, path, line }));
                }
                Err(fault) => findings.problem_in_line(&path, line, fault),
            }
        }
        shared
    }

    fn parse(
        &self,
        text: &str,
        names: &[String],
    ) -> Result<(ComputationName, Resource, String), LoadFault> {
        let (name, rest) = split(text);
        if !names.iter().any(|known| known == name) {
            return Err(match Resource::of_word(name) {
                Some(resource) if Resource::of_word(split(rest).0).is_none() => {
                    ResourceFault::NoComputation(resource).into()
                }
                _ => {
                    let nearest = nearest(name, names);
                    LoadFault::NoComputation { name: name.to_owned(), nearest }
                }
            });
        }
        let name: ComputationName = name.parse().map_err(LoadFault::Name)?;
        let (resource, amount) = parse(rest)?;
        let mut others = self.task.iter().filter(|(other, _)| *other == name);
        match others.find(|(_, it)| it.resource == resource) {
            Some((_, other)) => Err(ResourceFault::Twice(other.line).into()),
            None => Ok((name, resource, amount)),
        }
    }
}

fn is_no_comment(text: &str) -> bool {
    !text.starts_with('#')
}

fn split(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    (word, rest.trim())
}

/// Parses a line. Names in braces are left as they are.
fn parse(text: &str) -> Result<(Resource, String), ResourceFault> {
    let (word, amount) = split(text);
    let resource = Resource::of_word(word).ok_or_else(|| {
        let words = Resource::ALL.map(|it| it.word().to_owned());
        ResourceFault::Word { word: word.to_owned(), nearest: nearest(word, &words) }
    })?;
    match (resource, amount) {
        (flag, "") if flag.is_flag() => {}
        (flag, _) if flag.is_flag() => return Err(ResourceFault::Rest(flag)),
        (_, "") => return Err(ResourceFault::NoAmount(resource)),
        (_, amount) if amount.contains('{') => {}
        (_, amount) => Resources::default().set(resource, amount)?,
    }
    Ok((resource, amount.to_owned()))
}

impl From<ResourceFault> for LoadFault {
    fn from(fault: ResourceFault) -> Self {
        Self::Resource(Box::new(fault))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_granted_path_exists_on_this_host() {
        let fault = |line: &str| {
            check_shown(&Rule::parse(line, &[], &[]).unwrap(), &[])
                .err()
                .map(|fault| fault.to_string())
        };
        for line in
            ["network", "env NOT_SET", "read /etc/passwd", "device /dev/null", "read /dev/shm"]
        {
            assert_eq!(fault(line), None, "{line}");
        }
        assert_eq!(fault("write /nowhere").unwrap(), "/nowhere does not exist on this host");
        for line in ["read /dev", "read /dev/null", "write /dev"] {
            assert!(
                fault(line)
                    .unwrap()
                    .ends_with(" is in /dev, and only devices of it can be granted")
            );
        }
        let device = |path: &str| check_shown(&Rule::Device(path.into()), &[]).unwrap_err();
        assert_eq!(device("/dev/shm").to_string(), "/dev/shm is not a device");
        assert!(device("/etc/passwd").to_string().ends_with("which cannot be granted"));
    }
}
