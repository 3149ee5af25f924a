//! The task's own files that are values: constants, sample sheets, defaults of inputs. Only their
//! paths and versions are read here, not their contents.

use std::collections::HashMap;

use super::problems::{LoadFault, Problems};
use super::source::{Located, TaskSource};
use super::{DEFAULTS, nearest};
use ce_model::task::name::{InputName, TaskPath};
use ce_model::task::template::Template;
use ce_model::task::workflow::{FileContents, TaskFile, TaskFileId};

/// The files found so far.
#[derive(Default)]
pub(super) struct OwnFiles {
    found: Vec<TaskFile>,
    known: HashMap<Template<TaskPath>, Option<TaskFileId>>,
}

impl OwnFiles {
    pub(super) fn into_files(self) -> Vec<TaskFile> {
        self.found
    }

    pub(super) fn all(&self) -> &[TaskFile] {
        &self.found
    }

    /// Adds a file that was found before, unless it is there.
    pub(super) fn add(&mut self, file: &TaskFile) -> Option<TaskFileId> {
        let found = &mut self.found;
        let add = || {
            found.push(file.clone());
            Some(TaskFileId::at(found.len() - 1))
        };
        *self.known.entry(file.path.clone()).or_insert_with(add)
    }

    /// Returns the file with this path in the task, or `None` if it has a problem, which is
    /// reported once. If the path has free names, the file is yet to be found.
    ///
    /// # Errors
    ///
    /// Fails, each time, if there is no such file.
    pub(super) fn find(
        &mut self,
        source: &mut impl TaskSource,
        path: Template<TaskPath>,
        findings: &mut Problems,
    ) -> Result<Option<TaskFileId>, LoadFault> {
        if let Some(known) = self.known.get(&path) {
            return Ok(*known);
        }
        let name = path.as_str();
        let contents = match path.is_open() {
            true => Some(FileContents::Unbound),
            false => match contents(source, name) {
                Err(LoadFault::Missing | LoadFault::NotADirectory) => {
                    return Err(LoadFault::NoFile(name.to_owned()));
                }
                contents => findings.note(name.as_ref(), contents),
            },
        };
        Ok(match contents {
            Some(contents) => self.add(&TaskFile { path, contents }),
            None => *self.known.entry(path).or_insert(None),
        })
    }

    /// Returns the default of each input: the file with its name in `defaults/`.
    pub(super) fn defaults(
        &mut self,
        source: &mut impl TaskSource,
        inputs: &[InputName],
        findings: &mut Problems,
    ) -> Vec<Option<TaskFileId>> {
        let mut defaults = vec![None; inputs.len()];
        let dir = match source.task().and_then(|task| source.enter(&task, DEFAULTS)) {
            Err(LoadFault::Missing) => return defaults,
            dir => findings.note(DEFAULTS.as_ref(), dir),
        };
        let listed = dir.and_then(|dir| findings.note(DEFAULTS.as_ref(), source.list(&dir)));
        let mut listed = listed.unwrap_or_default();
        listed.sort_unstable();
        for entry in listed {
            let path = format!("{DEFAULTS}/{}", entry.display());
            let name = entry.to_string_lossy();
            if name.starts_with('.') {
                continue;
            }
            let default = match inputs.iter().position(|input| input.as_str() == name) {
                Some(at) => path
                    .parse::<TaskPath>()
                    .map_err(LoadFault::Name)
                    .and_then(|path| self.find(source, path.into(), findings))
                    .map(|file| defaults[at] = file),
                None => {
                    let names: Vec<String> = inputs.iter().map(ToString::to_string).collect();
                    let nearest = nearest(&name, &names);
                    Err(LoadFault::NoInput { name: name.into_owned(), nearest })
                }
            };
            findings.note(path.as_ref(), default);
        }
        defaults
    }
}

/// Finds the contents of the file with this path in the task.
fn contents(source: &mut impl TaskSource, path: &str) -> Result<FileContents, LoadFault> {
    let mut dir = source.task()?;
    let (around, name) = path.rsplit_once('/').unwrap_or(("", path));
    for part in around.split('/').filter(|part| !part.is_empty()) {
        dir = source.enter(&dir, part)?;
    }
    match source.find(&dir, name)? {
        Located::File { plain: true, .. } => source.contents(&dir, name),
        Located::Directory { .. } => Err(LoadFault::OwnDirectory),
        Located::File { .. } => Err(LoadFault::NotAFile),
    }
}
