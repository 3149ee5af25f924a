//! Starting the user's `git`: no other place does.
//!
//! By itself, `git` fetches objects that a partial clone lacks, runs hooks, starts a monitor of the work tree, takes locks,
//! and asks for passwords. Our commands do not, and start no further processes.

use ce_files::child_pipes::ChildPipes;
use ce_files::umask;
use std::env;
use std::io::{self, IsTerminal};
use std::mem;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use rustix::process::{Pid, Signal, kill_process};

/// Variables by which Git passes its repository to a hook, or another program that it starts: `git rev-parse
/// --local-env-vars`, and variables that affect how one is found or written. They must not lead to, or change, another
/// repository.
///
/// Settings of the environment, such as `GIT_CONFIG_COUNT`, count for all repositories, as Git lets them count for submodules.
pub const REPOSITORY_VARIABLES: [&str; 16] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Settings of every `git`: it starts no programs beside the requested work.
const SETTINGS: [&str; 5] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.useReplaceRefs=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// The environment of every `git`. Its messages are in the language in which they are looked for.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("LANGUAGE", "en"),
];

/// The environment of a `git` that never prompts.
const SILENCE: [(&str, &str); 4] = [
    ("GCM_INTERACTIVE", "never"),
    ("GIT_ASKPASS", ""),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("SSH_ASKPASS_REQUIRE", "never"),
];

/// The id of an object that no repository has.
const ABSENT: &str = "0000000000000000000000000000000000000001";

/// The messages in a trace about the command that was given, and about any that `git` starts.
const TRACED: [&str; 2] = ["trace: built-in: git cat-file", "trace: run_command:"];

/// The most bytes of messages that a `git` may print.
const MAX_MESSAGES: usize = 1 << 20;

/// The reach of a `git`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GitReach {
    /// It reads and writes one repository, and cannot connect to another one.
    Local,
    /// It exchanges objects with another repository.
    Remote,
}

/// Whether `git` and the programs that it starts may ask the user for passwords or other credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompts {
    /// They may not: a command that needs a password fails.
    Off,
    /// They may.
    On,
}

impl Prompts {
    /// They may ask if this process has a terminal.
    pub fn at_terminal() -> Self {
        if io::stdin().is_terminal() && io::stderr().is_terminal() { Self::On } else { Self::Off }
    }
}

/// The user's `git`, without arguments. It reads nothing from standard input unless it is given something.
pub(super) fn git(reach: GitReach, prompts: Prompts) -> Command {
    let mut git = Command::new("git");
    for name in REPOSITORY_VARIABLES {
        git.env_remove(name);
    }
    for setting in SETTINGS {
        git.args(["-c", setting]);
    }
    git.envs(ENVIRONMENT).stdin(Stdio::null());
    if prompts == Prompts::Off {
        git.envs(SILENCE).env_remove("SSH_ASKPASS").args(["-c", "credential.interactive=false"]);
    }
    if reach == GitReach::Local {
        // A `git` that does not know GIT_NO_LAZY_FETCH starts one process for an object that is missing, which cannot connect.
        git.env("GIT_ALLOW_PROTOCOL", "none");
    }
    git
}

/// Keeps the ssh that a `git` starts from asking. `configured` is the command that Git's configuration has for it. The
/// options of other programs than OpenSSH's are unknown.
pub(super) fn silence_ssh(git: &mut Command, configured: Option<&str>) {
    let given = env::var("GIT_SSH_COMMAND").ok();
    let ssh = match given.as_deref().or(configured) {
        Some(given) => given,
        None if env::var_os("GIT_SSH").is_some() => return,
        None => "ssh",
    };
    let program = ssh.split_whitespace().next().map(Path::new).and_then(Path::file_name);
    if program.is_some_and(|program| program == "ssh") {
        git.env("GIT_SSH_COMMAND", format!("{ssh} -o BatchMode=yes"));
    }
}

/// Whether the user's `git` can be kept from fetching objects by itself. Versions from 2.45.1 can, and versions from
/// 2.39.4 with the corrections of April 2024, which distributions have for older ones, too. So it is tried, in a bare
/// repository.
pub(super) fn can_stop_lazy_fetch(repository: &Path) -> io::Result<bool> {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(*known);
    }
    let mut git = git(GitReach::Local, Prompts::Off);
    git.arg("--git-dir").arg(repository).env("GIT_TRACE", "1");
    git.args(["-c", "remote.origin.promisor=true", "cat-file", "-e", ABSENT]);
    let trace = output_of(&mut git, &[])?.stderr;
    let trace = String::from_utf8_lossy(&trace);
    let [is_asked, is_fetching] = TRACED.map(|it| trace.contains(it));
    let obeys = is_asked && !is_fetching;
    Ok(*KNOWN.get_or_init(|| obeys))
}

/// Runs a command with this input, and returns its output.
pub(crate) fn output_of(command: &mut Command, input: &[u8]) -> io::Result<Output> {
    output_until(command, input, &|| false)
}

/// Runs a command likewise. Once `is_stopped` is true, asks a running `git` to end, which asks the programs that it has started. Also asks
/// a `git` that prints messages without end, and fails: a remote repository may send them.
pub(crate) fn output_until(
    command: &mut Command,
    input: &[u8],
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> io::Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = umask::as_user(|| command.spawn())?;
    let mut pipes = ChildPipes::new(&mut child, input, [usize::MAX, MAX_MESSAGES]);
    let mut is_asked = false;
    let read = loop {
        if (is_stopped() || pipes.is_flooded()) && !is_asked {
            // It may have ended.
            let _asked = kill_process(Pid::from_child(&child), Signal::TERM);
            is_asked = true;
        }
        match pipes.go_on() {
            Ok(()) if pipes.are_closed() || pipes.is_flooded() && is_asked => break Ok(()),
            Ok(()) => {}
            Err(error) => break Err(error),
        }
    };
    let is_flooded = pipes.is_flooded();
    let [stdout, stderr] = mem::take(&mut pipes.printed);
    // A process that still prints has no reader any more.
    drop(pipes);
    let status = child.wait()?;
    read?;
    if is_flooded {
        return Err(io::Error::other("it printed more than 1 MiB of messages"));
    }
    Ok(Output { status, stdout, stderr })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn large_input_and_output_pass_through_a_command() {
        let input = vec![b'x'; 3 << 20];
        let output = output_of(&mut shell("cat; echo why >&2; exit 3"), &input).unwrap();
        assert_eq!((output.status.code(), &*output.stderr), (Some(3), &b"why\n"[..]));
        assert!(output.stdout == input, "{}", output.stdout.len());
        assert!(output_of(&mut shell("exec <&-; echo ends"), &input).unwrap().status.success());
    }

    #[test]
    fn messages_without_end_are_an_error() {
        let error = output_of(&mut shell("exec yes >&2"), b"").unwrap_err();
        assert_eq!(error.to_string(), "it printed more than 1 MiB of messages");
        let deaf = output_of(&mut shell("trap '' TERM; yes >&2; echo end"), b"");
        assert!(deaf.is_err(), "nobody reads what it prints");
    }

    #[test]
    fn a_stopped_command_gets_sigterm() {
        let output = output_until(&mut shell("exec sleep 600"), b"", &|| true).unwrap();
        assert_eq!(output.status.signal(), Some(Signal::TERM.as_raw()));
    }
}
