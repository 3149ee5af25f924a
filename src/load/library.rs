//! The library of computations: `computations/NAME/{inputs,outputs,exec}`, each read once.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::problem::{Fault, Findings};
use super::{nearest, text};
use crate::git::Heads;
use crate::name::ComputationName;
use crate::workflow::{Computation, ComputationId, MOST};

/// The computations met so far.
pub(super) struct Library<'a> {
    task: &'a Path,
    heads: &'a mut Heads,
    found: Vec<Computation>,
    known: HashMap<ComputationName, Option<ComputationId>>,
}

impl<'a> Library<'a> {
    pub(super) fn new(task: &'a Path, heads: &'a mut Heads) -> Self {
        Self { task, heads, found: Vec::new(), known: HashMap::new() }
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
        let dir = Path::new("computations").join(name.as_str());
        if !self.task.join(&dir).is_dir() {
            let nearest = nearest(name.as_str(), &self.names());
            return Err(Fault::NoComputation { name: name.into(), nearest });
        }
        let id = self.read(&dir, name.clone(), findings).map(|computation| {
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
        let exec = findings.note(&dir.join("exec"), executable(&self.task.join(dir).join("exec")));
        let real = self.task.join(dir).canonicalize().map_err(Fault::read);
        let head = real.and_then(|real| Ok((self.heads.of(&real)?, real)));
        let (head, real) = findings.note(dir, head)?;
        exec?;
        Some(Computation {
            name,
            commit: head.commit,
            tree: head.tree,
            inputs: inputs?,
            outputs: outputs?,
            exec: real.join("exec"),
        })
    }

    fn list(&self, path: &Path, findings: &mut Findings) -> Option<Vec<String>> {
        let lines = findings.note_lines(path, text::lines(&self.task.join(path)))?;
        if lines.len() > MOST {
            findings.problem(path, Fault::TooMany(lines.len()));
            return None;
        }
        Some(lines)
    }

    fn names(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.task.join("computations")) else {
            return Vec::new();
        };
        let directory = |entry: fs::DirEntry| entry.path().is_dir().then(|| entry.file_name());
        entries.flatten().filter_map(directory).filter_map(|name| name.into_string().ok()).collect()
    }
}

fn executable(exec: &PathBuf) -> Result<(), Fault> {
    let metadata = fs::metadata(exec).map_err(Fault::read)?;
    match (metadata.is_file(), metadata.permissions().mode() & 0o111) {
        (false, _) => Err(Fault::NotAFile),
        (true, 0) => Err(Fault::NotExecutable),
        (true, _) => Ok(()),
    }
}
