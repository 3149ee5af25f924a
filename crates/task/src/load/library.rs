//! The library of computations: `computations/NAME/{inputs,outputs,exec}`, each read once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ce_model::access::Access;
use ce_model::name::ComputationName;
use ce_model::slice::MAX_ARITY;
use ce_model::task::{Computation, ComputationId, LIBRARY};

use super::problems::{LoadFault, Problems};
use super::resources::WrittenLine;
use super::source::{DirectoryVersion, Located, TaskSource, parse_lines};
use super::{access, nearest, resources};

/// The files of a computation that are read.
pub(super) const LISTS: [&str; 4] = ["inputs", "outputs", access::FILE, resources::FILE];

/// The computations found so far.
pub(super) struct Library<'a, S: TaskSource> {
    pub(super) source: &'a mut S,
    found: Vec<Computation>,
    /// The lines of the file `resources` of each.
    resources: Vec<Vec<WrittenLine>>,
    known: HashMap<ComputationName, Option<ComputationId>>,
}

impl<'a, S: TaskSource> Library<'a, S> {
    pub(super) fn new(source: &'a mut S) -> Self {
        Self { source, found: Vec::new(), resources: Vec::new(), known: HashMap::new() }
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
        let library = self.source.task().and_then(|task| self.source.enter(&task, LIBRARY));
        let found = library.and_then(|library| self.source.find(&library, name.as_str()));
        let computation = match found {
            Ok(Located::Directory { dir, .. }) => self.read(&dir, name.clone(), findings),
            Ok(Located::File { .. }) | Err(LoadFault::Missing | LoadFault::NotADirectory) => {
                let nearest = nearest(name.as_str(), &names(self.source));
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
        dir: &S::Dir,
        name: ComputationName,
        findings: &mut Problems,
    ) -> Option<(Computation, Vec<WrittenLine>)> {
        let place = place(&name);
        let (inputs, outputs, access) = signature(self.source, dir, &place, findings);
        let executable = findings.note(&place.join(EXEC), executable(self.source, dir));
        let resources = match self.source.find(dir, resources::FILE) {
            Err(LoadFault::Missing) => Vec::new(),
            _ => resources::read(self.source, dir, findings),
        };
        let version = findings.note(&place, self.source.version(dir))?;
        executable?;
        let DirectoryVersion { commit, tree, dirty, checked_out } = version;
        let computation = Computation {
            name,
            commit,
            tree,
            dirty,
            inputs: inputs?,
            outputs: outputs?,
            access: access?,
            checked_out,
        };
        Some((computation, resources))
    }
}

/// Reads the names of the inputs and outputs of a computation, and what it may access; `None` of what has a problem.
pub(super) fn signature<S: TaskSource>(
    source: &mut S,
    dir: &S::Dir,
    place: &Path,
    findings: &mut Problems,
) -> (Option<Vec<String>>, Option<Vec<String>>, Option<Access>) {
    let mut list = |file: &str| {
        let lines = parse_lines(source.read(dir, file));
        list_of(&place.join(file), lines, findings)
    };
    let (inputs, outputs) = (list("inputs"), list("outputs"));
    let access = access::read(source, dir, place, inputs.as_deref(), findings);
    (inputs, outputs, access)
}

/// The names of all computations, as far as they can be read.
pub(super) fn names<S: TaskSource>(source: &mut S) -> Vec<String> {
    let library = source.task().and_then(|task| source.enter(&task, LIBRARY));
    let Ok(library) = library else { return Vec::new() };
    let names = source.list(&library).unwrap_or_default();
    names
        .into_iter()
        .filter_map(|name| name.into_string().ok())
        .filter(|name| source.enter(&library, name).is_ok())
        .collect()
}

/// The path of a computation in a task.
fn place(name: &ComputationName) -> PathBuf {
    Path::new(LIBRARY).join(name.as_str())
}

fn list_of(
    path: &Path,
    lines: Result<Vec<String>, Vec<(usize, LoadFault)>>,
    findings: &mut Problems,
) -> Option<Vec<String>> {
    let lines = findings.note_lines(path, lines)?;
    if lines.len() > MAX_ARITY {
        findings.problem(path, LoadFault::TooMany(lines.len()));
        return None;
    }
    Some(lines)
}

/// The name of the file that is executed.
const EXEC: &str = "exec";

/// Checks that `exec` can be executed from an export of its directory.
fn executable<S: TaskSource>(source: &mut S, dir: &S::Dir) -> Result<(), LoadFault> {
    match source.find(dir, EXEC)? {
        _ if !source.holds(dir, EXEC)? => Err(LoadFault::Elsewhere),
        Located::File { plain: true, executable: true } => Ok(()),
        Located::File { plain: true, executable: false } => Err(LoadFault::NotExecutable),
        Located::File { plain: false, .. } | Located::Directory { .. } => Err(LoadFault::NotAFile),
    }
}
