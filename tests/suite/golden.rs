//! Golden files: the output of the programs, kept under `tests/golden`.
//!
//! `CE_BLESS=1 cargo test` accepts the current output; look at the difference before committing.

use std::fs;
use std::path::Path;

use similar::TextDiff;

/// Sees to it that a text is the one in the golden file of this name.
#[track_caller]
pub(crate) fn check(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("CE_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, actual).unwrap();
    }
    let expected = fs::read_to_string(&path);
    let expected = expected.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    same(name, &expected, actual);
}

/// Sees to it that two texts are the same, or shows where they differ.
#[track_caller]
pub(crate) fn same(what: &str, expected: &str, actual: &str) {
    if expected != actual {
        let diff = TextDiff::from_lines(expected, actual);
        panic!("{what}:\n{}", diff.unified_diff().header("expected", "actual"));
    }
}
