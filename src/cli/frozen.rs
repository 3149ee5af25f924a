//! A run as arguments that mean the same later: its commit, and its inputs in the storage.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::background::NotInJob;
use super::given::PathArgs;
use super::options::{RunArgs, TaskDir};
use super::points::{PointArgs, typed};
use ce_evaluate::Evaluation;
use ce_evaluate::session::{BeginError, Error, RunOptions};
use ce_model::sweep::Factor;

/// The arguments of a run.
#[derive(Clone, Copy)]
pub(super) struct FrozenRun<'a> {
    /// The names of options without a value, and whether they are given.
    pub(super) flags: &'a [(&'static str, bool)],
    pub(super) how: &'a RunArgs,
    pub(super) dir: &'a TaskDir,
    pub(super) points: &'a PointArgs,
    /// What `--where` says.
    pub(super) wanted: &'a [Factor],
    /// The values of `--only`.
    pub(super) only: &'a [String],
    pub(super) paths: &'a PathArgs,
}

impl FrozenRun<'_> {
    /// The arguments of `ce run` for the same evaluation at any time, as long as the repository is where it is.
    ///
    /// # Errors
    ///
    /// Fails if no commit has the task.
    pub(super) fn arguments(
        &self,
        evaluation: &Evaluation,
        options: &RunOptions,
    ) -> Result<Vec<OsString>, Error> {
        let (task, storage) = (&evaluation.task, &evaluation.storage);
        if !task.changed.is_empty() {
            return Err(NotInJob("what is not committed").into());
        }
        let flags = self.flags.iter().filter(|(_, is_given)| *is_given);
        let mut arguments: Vec<OsString> = flags.map(|(flag, _)| (*flag).into()).collect();
        arguments.extend(self.how.frozen(options).into_iter().map(OsString::from));
        arguments.push(joined("--task=", &absolute(&self.dir.task)?));
        arguments.push(format!("--at={}", task.commit.full()).into());
        arguments.extend(self.points.frozen().into_iter().map(OsString::from));
        let wanted = self.wanted.iter().map(|factor| format!("--where={}", typed(factor)));
        arguments.extend(wanted.map(OsString::from));
        arguments.extend(self.only.iter().map(|name| format!("--only={name}").into()));
        for (name, repository) in &self.paths.repositories {
            arguments.push(joined(&format!("--repository={name}="), &absolute(repository)?));
        }
        arguments.extend(["--".into(), storage.path("").into()]);
        for (name, input) in task.inputs.iter().zip(&evaluation.files.inputs) {
            let Some(input) = input else { continue };
            arguments.push(joined(&format!("{name}="), &storage.path(&input.file.name)));
        }
        Ok(arguments)
    }
}

/// An argument that begins like this, and ends with a path.
fn joined(begin: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(begin);
    argument.push(path);
    argument
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    Ok(std::path::absolute(path).map_err(BeginError::new)?)
}
