//! Tasks that are wrong, or are in a repository that is.

use std::fs;

use crate::lab::{Lab, Library};
use crate::repository;

const BASE: &str = "(add (mul INPUT('x') INPUT('stop words'))[0] INPUT('x'))[0]";

/// A task that is right. Its library has more than it needs.
pub(super) fn base() -> Lab {
    let lab = Lab::task(&format!("Inputs: 'x', 'stop words'\n{BASE}"));
    let unused = [("take1", "a"), ("take3", "a b c"), ("take7", "a b c d e f g")];
    unused
        .iter()
        .fold(lab, |lab, (name, inputs)| lab.computation(name, inputs, "one two", "exit 1"))
}

/// Tasks that are wrong, by the names of their golden files. What files may say is tested where they are loaded.
pub(super) fn tasks() -> Vec<(&'static str, Lab)> {
    let missing = base().without("inputs").without("workflow/inputs/01-x/kind");
    let missing = missing.without("workflow/inputs/01-x/value");
    let mut tasks = vec![("missing", missing.commit())];
    tasks.extend(with_a_wrong_repository());
    tasks
}

fn with_a_wrong_repository() -> [(&'static str, Lab); 6] {
    let unborn = base();
    repository::init(&unborn.path("task"));
    let spoiled = base().commit();
    fs::write(spoiled.path("task/.git/HEAD"), "nonsense\n").unwrap();
    let new = base().commit().computation("new", "a b", "c", "exit 1");
    let submodule = base().commit_with(Library::Submodules);
    fs::remove_file(submodule.path("task/computations/mul/.git")).unwrap();
    fs::remove_dir_all(submodule.path("task/.git/modules/computations/mul")).unwrap();
    let library = base().commit_with(Library::Submodule).without("computations");
    fs::create_dir(library.path("task/computations")).unwrap();
    fs::remove_dir_all(library.path("task/.git/modules")).unwrap();
    [
        ("no-repository", base()),
        ("unborn", unborn),
        ("spoiled-repository", spoiled),
        ("not-committed", new.file("workflow/value", "new")),
        ("submodule-not-checked-out", submodule),
        ("library-not-checked-out", library),
    ]
}
