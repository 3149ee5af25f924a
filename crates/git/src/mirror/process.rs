//! Starting the user's `git` in a mirror.

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};
use std::thread;

use super::directory::MirrorFiles;
use super::error::left_out;
use super::{Mirror, MirrorError, REMOTE};
use crate::GitResult;
use crate::command::{GitReach, Prompts, git, silence_ssh};

/// The variable that has the URL of the remote.
const URL: &str = "CE_RESULTS_URL";

/// Settings of the user's `git` in a mirror: nothing malformed is fetched.
const SETTINGS: [&str; 3] =
    ["fetch.fsckObjects=true", "fetch.writeCommitGraph=false", "protocol.version=2"];

/// Settings in a mirror that may lack files.
const PARTIAL: [&str; 2] =
    ["remote.origin.promisor=true", "remote.origin.partialCloneFilter=blob:none"];

/// The setting for a `git` that cannot be kept from fetching, where the other repository is on this host: the process there that
/// serves it cannot connect to a third one.
const ALONE: &str = "remote.origin.uploadpack=GIT_ALLOW_PROTOCOL=none git-upload-pack";

/// How lines begin that `git` prints beside causes: warnings, advice, and that the whole has failed.
const BESIDE_CAUSES: [&str; 6] = [
    "warning: ",
    "To add an exception for this directory",
    "git config --global --add safe.directory",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
    "error: failed to push some refs",
];

impl Mirror {
    pub(super) fn git(
        &self,
        (what, reach): (&'static str, GitReach),
        args: &[&str],
        input: &[u8],
    ) -> Result<Output, MirrorError> {
        let output = self.run(reach, args, input).map_err(|source| self.own(source))?;
        match output.status.success() {
            true => Ok(output),
            false => Err(self.failed(what, &output, "")),
        }
    }

    pub(super) fn failed(&self, what: &'static str, output: &Output, why: &str) -> MirrorError {
        let said = String::from_utf8_lossy(&output.stderr);
        if let Some(object) = left_out(&said, self.place()) {
            return MirrorError::Partial { url: self.url.clone(), object: object.to_owned() };
        }
        let said = said.lines().map(|line| line.trim_start_matches("fatal: ").trim());
        let is_cause = |line: &&str| !BESIDE_CAUSES.iter().any(|it| line.starts_with(it));
        let lines = said.filter(is_cause).chain([why]).filter(|line| !line.is_empty());
        let why = lines.collect::<Vec<_>>().join("; ");
        let why = if why.is_empty() { output.status.to_string() } else { why };
        MirrorError::Git { what, url: self.url.clone(), why }
    }

    /// The path of the other repository, if it is on this host.
    fn place(&self) -> Option<&Path> {
        let place = self.secret.strip_prefix("file://").unwrap_or(&self.secret);
        Some(Path::new(place)).filter(|place| place.is_absolute())
    }

    pub(super) fn run(&self, reach: GitReach, args: &[&str], input: &[u8]) -> GitResult<Output> {
        let mut command = git(reach, self.prompts);
        if self.prompts == Prompts::Off {
            let ssh = self.repository.config_snapshot().string("core.sshCommand");
            silence_ssh(&mut command, ssh.as_ref().map(ToString::to_string).as_deref());
        }
        command.arg("--git-dir").arg(&self.dir);
        // Others on this host can read arguments, and not the environment.
        command.arg(format!("--config-env=remote.{REMOTE}.url={URL}")).env(URL, &self.secret);
        let is_here = self.place().is_some();
        let more = match self.files {
            MirrorFiles::Asked => &PARTIAL[..],
            MirrorFiles::All if is_here => &[ALONE],
            MirrorFiles::All => &[],
        };
        for setting in SETTINGS.iter().chain(more) {
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
