//! Results in Git repositories.

mod attested;
pub(crate) mod away;
mod away_values;
mod clones;
mod commits;
mod deaths;
mod directories;
mod incomplete;
mod inputs;
mod join;
mod large;
mod large_clones;
mod large_exports;
mod large_gc;
mod large_places;
mod large_servers;
mod large_settings;
mod logs;
mod own_outputs;
mod prompts;
mod pull;
mod pulled_names;
mod push;
mod revoked;
mod room;
mod transport;
mod trust;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use compeval::storage::records::HostKind;

use crate::lab::{Lab, files};
use crate::program::Ran;

/// It depends on a file that nobody declares, if there is one.
const TWICE: &str = r#"echo doubled
cat "$1" "$1" >"$2"
[ ! -e "$LAB_LOG.salt" ] || cat "$LAB_LOG.salt" >>"$2""#;

/// Two calls, the second reads the first, and a repository for their results beside the storage.
pub(crate) fn lab() -> Lab {
    let mut lab = Lab::task("Inputs: 'x'\n(twice (once INPUT('x'))[0])[0]")
        .computation("once", "a", "b", r#"cat "$1" "$1" >"$2""#)
        .computation("twice", "a", "b", TWICE)
        .data("x", "x\n");
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    repository(&lab, "results.git");
    lab
}

/// Makes a host of another kind the host of the executions of a storage.
pub(crate) fn move_to(lab: &Lab, storage: &str, kind: &str) {
    let own = format!(r#""host_kind": "{}""#, HostKind::here());
    for (name, text) in files(&lab.path(storage)) {
        let Ok(text) = String::from_utf8(text) else { continue };
        if text.contains(&own) {
            let path = lab.path(storage).join(name);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            let moved = text.replace(&own, &format!(r#""host_kind": "{kind}""#));
            fs::write(&path, moved).unwrap();
        }
    }
}

/// From now on, `twice` has other outputs.
pub(crate) fn salt(lab: &Lab, salt: &str) {
    fs::write(lab.path("called.salt"), salt).unwrap();
}

/// Makes an empty repository, which sends commits without files if somebody wants that, as servers do.
pub(crate) fn repository(lab: &Lab, name: &str) {
    fs::create_dir(lab.path(name)).unwrap();
    lab.git(name, &["init", "--quiet", "--bare", "."]);
    lab.git(name, &["config", "uploadpack.allowFilter", "true"]);
}

/// Evaluates into another storage.
pub(crate) fn evaluate<'a>(lab: &'a Lab, storage: &str) -> Ran<'a> {
    let mut command = lab.command("ce-run");
    command.arg(format!("../{storage}"));
    command.args(lab.inputs.iter().map(|name| format!("../data/{name}")));
    lab.finish(&mut command)
}

/// `ce push` of a storage to a repository.
pub(crate) fn push<'a>(lab: &'a Lab, options: &[&str], storage: &str, repository: &str) -> Ran<'a> {
    let places = [storage, repository].map(|name| format!("../{name}"));
    let places = places.each_ref().map(String::as_str);
    lab.run("ce", &[&["push"], options, &places].concat())
}

/// `ce pull` from a repository into a storage.
pub(crate) fn pull<'a>(lab: &'a Lab, options: &[&str], storage: &str, repository: &str) -> Ran<'a> {
    let places = [storage, repository].map(|name| format!("../{name}"));
    let places = places.each_ref().map(String::as_str);
    lab.run("ce", &[&["pull"], options, &places].concat())
}

/// The names of all files of the results, and the ids of their contents, but for the ledger.
pub(crate) fn listed(lab: &Lab, repository: &str) -> Vec<String> {
    let all = lab.git(repository, &["ls-tree", "-r", "results"]);
    all.lines().filter(|line| !line.contains("\tledger/")).map(str::to_owned).collect()
}

/// A clone of a repository with results.
pub(crate) fn cloned(lab: &Lab, repository: &str, clone: &str, options: &[&str]) {
    let source = format!("../{repository}");
    fs::create_dir(lab.path(clone)).unwrap();
    let fixed = ["clone", "--quiet", "--branch", "results"];
    lab.git(clone, &[&fixed[..], options, &[&source, "."]].concat());
}

/// Whether any file below a directory, or object of a repository there, has a text in it.
pub(crate) fn holds(lab: &Lab, repository: &str, text: &str) -> bool {
    assert!(Path::new(&lab.path(repository)).is_dir());
    let objects =
        lab.git(repository, &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    objects.lines().any(|id| lab.git(repository, &["cat-file", "-p", id]).contains(text))
}
