//! Directories as values: outputs, task inputs and literals, through the programs.

mod adoption;
mod collect;
mod damage;
mod faults;
mod hits;
mod inputs;
mod names;
mod publish;
mod reading;
mod refused;
mod taken_over;
mod users;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::isolation;
use crate::lab::Lab;

/// A task of one computation whose only output is a directory.
const MAKE: &str = "Inputs: 'x'\n(make INPUT('x'))[0]";

/// A laboratory whose computation makes a directory, `$2`, by this script.
fn made_by(script: &str) -> Lab {
    Lab::task(MAKE).computation("make", "a", "tree/", script)
}

/// Does something without a sandbox, and in one where that is possible.
fn each_way(lab: impl Fn() -> Lab, test: impl Fn(Lab)) {
    test(lab());
    if isolation::is_possible() {
        test(lab().isolated());
    }
}

/// A line for each entry of a directory, sorted by name: type, mode, name, and contents.
fn entries(dir: &Path) -> Vec<String> {
    let entries = walkdir::WalkDir::new(dir).min_depth(1).sort_by_file_name();
    let line = |entry: walkdir::DirEntry| {
        let metadata = entry.metadata().unwrap();
        let name = entry.path().strip_prefix(dir).unwrap().as_os_str().as_encoded_bytes();
        let name = name.escape_ascii();
        let mode = metadata.mode() & 0o7777;
        match metadata {
            it if it.is_dir() => format!("dir {mode:o} {name}"),
            it if it.is_symlink() => {
                format!("link {name} -> {}", fs::read_link(entry.path()).unwrap().display())
            }
            _ => {
                let text = fs::read(entry.path()).unwrap();
                format!("file {mode:o} {name} {}", text.escape_ascii())
            }
        }
    };
    entries.into_iter().map(|entry| line(entry.unwrap())).collect()
}

/// The names of the values with this prefix that the storage has: outputs and task inputs.
fn values(lab: &Lab, prefix: &str) -> Vec<String> {
    let storage = lab.path("storage");
    let is_value = |name: &str| match name.split('/').collect::<Vec<_>>()[..] {
        ["tinputs", room, _] => room.len() == 2,
        [owner, _, room, _] => owner != "tmp" && owner != "tinputs" && room.len() == 2,
        _ => false,
    };
    let entries = walkdir::WalkDir::new(&storage).min_depth(3).max_depth(4).sort_by_file_name();
    let name = |entry: walkdir::DirEntry| {
        entry.path().strip_prefix(&storage).unwrap().to_str().map(str::to_owned)
    };
    let names = entries.into_iter().filter_map(|entry| name(entry.unwrap()));
    names.filter(|name| name.starts_with(prefix) && is_value(name)).collect()
}

/// The path of the only output of the task, where `ce-run -q` says it is.
#[track_caller]
fn output(lab: &Lab) -> PathBuf {
    let ran = lab.ce_run(&["-n", "-q"]).exit(0);
    let lines = ran.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let path = lab.path("task").join(lines[0].replace("LAB", lab.path("").to_str().unwrap()));
    // With the slash, `cp -r` copies the target of a link.
    assert_eq!(lines[0].ends_with('/'), path.is_dir());
    path.components().collect()
}

/// The records of the storage whose names begin so.
fn records(lab: &Lab, prefix: &str) -> Vec<Value> {
    let names = lab.storage().into_iter();
    let names = names.filter(|name| name.starts_with(prefix) && name.contains("/record/"));
    names.map(|name| serde_json::from_str(&lab.stored(&name)).unwrap()).collect()
}

/// Nothing is damaged, and nothing was left behind.
#[track_caller]
fn is_sound(lab: &Lab) {
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
    assert!(lab.is_tidy());
}

/// A path below the storage.
fn stored(lab: &Lab, name: &str) -> PathBuf {
    lab.path("storage").join(name)
}

/// Does something in a read-only directory of the storage, as its owner can, and restores its mode.
fn within<T>(dir: &Path, act: impl FnOnce(&Path) -> T) -> T {
    let modes = fs::metadata(dir).unwrap().permissions();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    let done = act(dir);
    fs::set_permissions(dir, modes).unwrap();
    done
}

/// Writes over a file of the storage, which is read-only.
fn write_over(path: &Path, contents: &str) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(path, contents).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
}
