//! The library of computations: `computations/NAME/{inputs,outputs,exec}`, each read once.

use std::collections::HashMap;
use std::path::Path;

use super::problem::{Fault, Findings};
use super::source::{Found, Source, Version};
use super::{access, nearest, text};
use crate::name::ComputationName;
use crate::workflow::{Computation, ComputationId, MOST};

/// Where computations are in a task.
pub(super) const DIRECTORY: &str = "computations";

/// The computations met so far.
pub(super) struct Library<'a> {
    pub(super) source: &'a mut dyn Source,
    found: Vec<Computation>,
    known: HashMap<ComputationName, Option<ComputationId>>,
}

impl<'a> Library<'a> {
    pub(super) fn new(source: &'a mut dyn Source) -> Self {
        Self { source, found: Vec::new(), known: HashMap::new() }
    }

    /// All computations that were asked for and are right.
    pub(super) fn into_computations(self) -> Vec<Computation> {
        self.found
    }

    pub(super) fn get(&self, id: ComputationId) -> &Computation {
        &self.found[id.index()]
    }

    /// Returns the computation of this name, or `None` if it is there and something is wrong with
    /// it, which is told once.
    ///
    /// # Errors
    ///
    /// Tells, each time it is asked for, that there is no such computation.
    pub(super) fn find(
        &mut self,
        name: &str,
        findings: &mut Findings,
    ) -> Result<Option<ComputationId>, Fault> {
        let name: ComputationName = name.parse().map_err(Fault::Name)?;
        if let Some(known) = self.known.get(&name) {
            return Ok(*known);
        }
        let dir = Path::new(DIRECTORY).join(name.as_str());
        let computation = match self.source.find(&dir) {
            Ok(Found::Directory { .. }) => self.read(&dir, name.clone(), findings),
            Ok(Found::File { .. }) | Err(Fault::Missing | Fault::NotADirectory) => {
                let nearest = nearest(name.as_str(), &self.names());
                return Err(Fault::NoComputation { name: name.into(), nearest });
            }
            Err(fault) => {
                findings.problem(&dir, fault);
                None
            }
        };
        let id = computation.map(|computation| {
            self.found.push(computation);
            ComputationId::at(self.found.len() - 1)
        });
        self.known.insert(name, id);
        Ok(id)
    }

    fn read(
        &mut self,
        dir: &Path,
        name: ComputationName,
        findings: &mut Findings,
    ) -> Option<Computation> {
        let inputs = self.list(&dir.join("inputs"), findings);
        let outputs = self.list(&dir.join("outputs"), findings);
        let exec = dir.join("exec");
        let executable = findings.note(&exec, executable(self.source.find(&exec)));
        let access = access::read(self.source, dir, findings);
        let version = findings.note(dir, self.source.version(dir))?;
        executable?;
        let Version { commit, tree, dirty, checked_out } = version;
        let (inputs, outputs, access) = (inputs?, outputs?, access?);
        Some(Computation { name, commit, tree, dirty, inputs, outputs, access, checked_out })
    }

    fn list(&mut self, path: &Path, findings: &mut Findings) -> Option<Vec<String>> {
        let lines = findings.note_lines(path, text::lines(self.source.read(path)))?;
        if lines.len() > MOST {
            findings.problem(path, Fault::TooMany(lines.len()));
            return None;
        }
        Some(lines)
    }

    fn is_dir(&mut self, path: &Path) -> bool {
        matches!(self.source.find(path), Ok(Found::Directory { .. }))
    }

    fn names(&mut self) -> Vec<String> {
        let library = Path::new(DIRECTORY);
        let names = self.source.list(library).unwrap_or_default().into_iter();
        let names = names.filter_map(|name| name.into_string().ok());
        names.filter(|name| self.is_dir(&library.join(name))).collect()
    }
}

fn executable(exec: Result<Found, Fault>) -> Result<(), Fault> {
    match exec? {
        Found::File { plain: true, executable: true } => Ok(()),
        Found::File { plain: true, executable: false } => Err(Fault::NotExecutable),
        Found::File { plain: false, .. } | Found::Directory { .. } => Err(Fault::NotAFile),
    }
}
