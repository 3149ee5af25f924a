//! Facts about repositories are the same as those from Git itself: it is the oracle.
//!
//! Histories and work trees are made up from seeds: `CE_SEED=17 cargo test --test suite git_oracle`
//! tries one of them, `CE_TIMES=100` a hundred times as many.

mod checkouts;
mod exports;
mod revisions;
mod statuses;
mod world;

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// `git` in a directory. Nobody's configuration is read.
fn command(dir: &Path) -> Command {
    let mut git = Command::new("git");
    git.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    git.envs([("HOME", "/nowhere"), ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_OPTIONAL_LOCKS", "0")]);
    for who in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{who}_NAME"), "Lab").env(format!("GIT_{who}_EMAIL"), "lab@lab");
        git.env(format!("GIT_{who}_DATE"), "1000000000 +0000");
    }
    git.args(["-c", "protocol.file.allow=always", "-c", "advice.addEmbeddedRepo=false"]);
    git.arg("-C").arg(dir);
    git
}

/// Returns the output of `git`, byte for byte; `None` if it refuses.
fn ask<S: AsRef<OsStr>>(dir: &Path, arguments: &[S]) -> Option<Vec<u8>> {
    let output = command(dir).args(arguments).output().unwrap();
    output.status.success().then_some(output.stdout)
}

/// Returns the output of `git`, which must not refuse.
#[track_caller]
fn git<S: AsRef<OsStr> + std::fmt::Debug>(dir: &Path, arguments: &[S]) -> Vec<u8> {
    ask(dir, arguments).unwrap_or_else(|| panic!("git {arguments:?} in {}", dir.display()))
}

/// The same as a line of text.
#[track_caller]
fn line(dir: &Path, arguments: &[&str]) -> String {
    String::from_utf8(git(dir, arguments)).unwrap().trim().to_owned()
}

/// Returns the texts between zero bytes.
fn items(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == 0).filter(|item| !item.is_empty())
}
