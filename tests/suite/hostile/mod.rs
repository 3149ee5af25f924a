//! Attacks on what a storage promises: results under names that are not theirs, files that are not the
//! storage's own, records that lie. Everything that could be harmed is a decoy in the laboratory.

mod adoption;
mod kinds;
mod names;
mod places;
mod records;
mod sources;
mod swaps;
mod umasks;
pub(crate) mod users;

use std::fs;

use crate::lab::Lab;

/// The only directory below one in the storage whose name begins so.
#[track_caller]
fn version(lab: &Lab, owner: &str) -> String {
    let names = fs::read_dir(lab.path("storage").join(owner)).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.filter(|name| name != "commits").collect();
    let [name] = &names[..] else { panic!("{names:?}") };
    name.clone()
}
