//! The expression as text: read, written, converted, and from nothing.

mod all;
mod convert;
mod init;
mod mistakes;
mod one_text;
mod round_trip;
mod sweeps;
mod write;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// All files below a directory, and where links lead, by their names relative to it. What Git keeps for
/// itself is left out.
fn tree(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries =
        walkdir::WalkDir::new(dir).into_iter().filter_entry(|it| it.file_name() != ".git");
    let entries = entries.map(Result::unwrap).filter(|entry| !entry.file_type().is_dir());
    let contents = |path: &Path| match fs::read_link(path) {
        Ok(target) => format!("-> {}", target.display()).into_bytes(),
        Err(_) => fs::read(path).unwrap(),
    };
    let name = |path: &Path| path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
    entries.map(|entry| (name(entry.path()), contents(entry.path()))).collect()
}
