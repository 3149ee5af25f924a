//! Attacks on what a storage promises: results under names that are not theirs, files that are not the
//! storage's own, records that lie. Whatever could be harmed is a decoy in the laboratory.

mod adoption;
mod kinds;
mod names;
mod places;
mod records;
mod sources;
mod swaps;
pub(crate) mod users;

use std::fs;
use std::path::Path;

use crate::lab::Lab;

/// A copy of a directory, with modes and times.
pub(crate) fn copy(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(status.success(), "cp -a {} {}", from.display(), to.display());
}

/// The only directory below one in the storage whose name begins so.
#[track_caller]
fn version(lab: &Lab, owner: &str) -> String {
    let names = fs::read_dir(lab.path("storage").join(owner)).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.filter(|name| name != "commits").collect();
    let [name] = &names[..] else { panic!("{names:?}") };
    name.clone()
}
