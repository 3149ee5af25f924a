//! Starting the user's `git` in a mirror.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::thread;

use super::{Mirror, MirrorError, REMOTE};
use crate::git::GitResult;

/// The variable that has the URL of the remote.
const URL: &str = "CE_RESULTS_URL";

/// Settings of the user's `git` in a mirror: no hooks, no collection on the way, and nothing malformed is fetched.
const SETTINGS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.useReplaceRefs=false",
    "fetch.fsckObjects=true",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.version=2",
    "remote.origin.promisor=true",
    "remote.origin.partialCloneFilter=blob:none",
];

/// How lines begin that `git` prints beside causes: warnings, advice, and that the whole has failed.
const BESIDE_CAUSES: [&str; 6] = [
    "warning: ",
    "To add an exception for this directory",
    "git config --global --add safe.directory",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
    "error: failed to push some refs",
];

/// Variables that lead `git` to another repository.
const VARIABLES: [&str; 7] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_WORK_TREE",
];

impl Mirror {
    pub(super) fn git(
        &self,
        what: &'static str,
        args: &[&str],
        input: &[u8],
    ) -> Result<Output, MirrorError> {
        let output = self.run(args, input).map_err(|source| self.own(source))?;
        match output.status.success() {
            true => Ok(output),
            false => Err(self.failed(what, &output, "")),
        }
    }

    pub(super) fn failed(&self, what: &'static str, output: &Output, why: &str) -> MirrorError {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().map(|line| line.trim_start_matches("fatal: ").trim());
        let is_cause = |line: &&str| !BESIDE_CAUSES.iter().any(|it| line.starts_with(it));
        let lines = said.filter(is_cause).chain([why]).filter(|line| !line.is_empty());
        let why = lines.collect::<Vec<_>>().join("; ");
        let why = if why.is_empty() { output.status.to_string() } else { why };
        MirrorError::Git { what, url: self.url.clone(), why }
    }

    pub(super) fn run(&self, args: &[&str], input: &[u8]) -> GitResult<Output> {
        let mut command = Command::new("git");
        for name in VARIABLES {
            command.env_remove(name);
        }
        command.arg("--git-dir").arg(&self.dir);
        // Others on this host can read arguments, and not the environment.
        command.arg(format!("--config-env=remote.{REMOTE}.url={URL}")).env(URL, &self.secret);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        thread::scope(|scope| {
            // A `git` that ends early does not read everything.
            scope.spawn(move || stdin.map(|mut stdin| drop(stdin.write_all(input))));
            Ok(child.wait_with_output()?)
        })
    }
}
