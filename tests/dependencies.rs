//! The dependencies of this package: the sources of crates, their licences, and how often one is compiled.
//!
//! Reads `Cargo.lock`, and what `cargo tree` says of the crates that are compiled for this host. Knows nothing
//! of advisories: `CONTRIBUTING.md` says how to look for those.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The licences under which a crate may be used in a program that is given to others.
const LICENCES: [&str; 9] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates under other licences. MPL-2.0 asks for no more than to publish changes of the crate's own files.
const EXCEPTIONS: [(&str, &str); 1] = [("uluru", "MPL-2.0")];

/// The crates that are compiled in several versions, because others ask for them.
const SEVERAL: [&str; 3] = ["getrandom", "hashbrown", "syn"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A line of this format for each crate that `cargo tree` shows with these arguments.
fn tree(arguments: &[&str], format: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap());
    cargo.args(["tree", "--locked", "--offline", "--prefix=none", "--format", format]);
    let output = cargo.args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // A crate that was shown before is marked, and shown without its dependencies.
    let lines = text.lines().filter(|line| !line.is_empty() && !line.ends_with(" (*)"));
    lines.map(str::to_owned).collect()
}

/// The parts of an expression between the separators that are not in parentheses.
fn parts<'a>(expression: &'a str, separator: &str) -> Vec<&'a str> {
    let is_level = |text: &str| text.matches('(').count() == text.matches(')').count();
    let (mut parts, mut begin) = (Vec::new(), 0);
    for (at, _) in expression.match_indices(separator) {
        if is_level(&expression[..at]) {
            parts.push(&expression[begin..at]);
            begin = at + separator.len();
        }
    }
    parts.push(&expression[begin..]);
    parts
}

/// Whether an expression of SPDX, or one in the old form `A/B`, gives a choice of accepted licences.
fn is_accepted(expression: &str) -> bool {
    let expression = expression.replace(" / ", "/").replace('/', " OR ");
    let is_one = |text: &str| match text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
        Some(inner) => is_accepted(inner),
        None => LICENCES.contains(&text),
    };
    parts(&expression, " OR ").iter().any(|choice| parts(choice, " AND ").into_iter().all(is_one))
}

#[test]
fn every_crate_is_from_crates_io_and_has_a_checksum() {
    let lock = include_str!("../Cargo.lock");
    let registry =
        "source = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"";
    let wrong: Vec<&str> = lock
        .split("\n[[package]]\n")
        .skip(1)
        .filter(|package| !package.contains(registry))
        .collect();
    let names = wrong.iter().filter_map(|package| package.lines().next()?.split('"').nth(1));
    let own = |name: &&str| {
        let is_crate = |name| root().join("crates").join(name).join("Cargo.toml").is_file();
        ["compeval", "compeval-fuzz", "compeval-test-attribute"].contains(name)
            || name.strip_prefix("ce-").is_some_and(is_crate)
    };
    let foreign: Vec<&str> = names.filter(|name| !own(name)).collect();
    assert_eq!(foreign, [""; 0], "{wrong:#?}");
}

#[test]
fn every_licence_is_accepted() {
    let wrong = |line: &String| {
        let (name, licence) = line.split_once('\t').unwrap();
        let name = name.split(' ').next().unwrap();
        !is_accepted(licence) && !EXCEPTIONS.contains(&(name, licence))
    };
    let crates = tree(&["--edges=normal,build,dev"], "{p}\t{l}");
    assert!(crates.len() > 100, "{crates:?}");
    assert_eq!(crates.into_iter().filter(wrong).collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn a_licence_that_is_not_accepted_is_found() {
    for (expression, is_right) in [
        ("MIT", true),
        ("GPL-3.0-only", false),
        ("", false),
        ("GPL-3.0-only OR MIT", true),
        ("GPL-3.0-only/MIT", true),
        ("MIT AND GPL-3.0-only", false),
        ("(MIT OR GPL-3.0-only) AND Zlib", true),
        ("(MIT AND GPL-3.0-only) OR (LGPL-2.1-only AND Zlib)", false),
        ("GPL-3.0-only AND Zlib OR Apache-2.0 WITH LLVM-exception", true),
    ] {
        assert_eq!(is_accepted(expression), is_right, "{expression}");
    }
}

#[test]
fn no_other_crate_is_compiled_in_several_versions() {
    let lines = tree(&["--duplicates", "--depth=0", "--edges=normal,build"], "{p}");
    let names = lines.iter().filter_map(|line| line.split(' ').next());
    let several: BTreeSet<&str> = names.collect();
    let new: Vec<_> = several.iter().filter(|name| !SEVERAL.contains(name)).collect();
    assert!(new.is_empty(), "compiled more than once: {new:?}");
}

#[test]
fn gix_connects_to_no_other_repository() {
    let crates = tree(&["--edges=normal"], "{p} {f}");
    let crates: Vec<&String> = crates.iter().filter(|it| it.starts_with("gix-")).collect();
    assert!(crates.iter().any(|it| it.starts_with("gix-transport ")), "{crates:?}");
    let able: Vec<&&String> = crates.iter().filter(|it| it.contains("-client")).collect();
    assert_eq!(able, Vec::<&&String>::new(), "the user's git moves objects, and nothing else does");
}

/// The dependencies of a manifest that are there for their features only.
const FOR_FEATURES: [&str; 2] = ["regex-automata", "regex-syntax"];

/// Returns the names of the dependencies that a manifest has in this section.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let section = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let section = section.take_while(|line| !line.starts_with('['));
    section.filter_map(|line| line.split([' ', '.', '=']).next()).filter(|name| {
        name.starts_with(|c: char| c.is_ascii_lowercase()) && !FOR_FEATURES.contains(name)
    })
}

/// Whether any source below a directory has a word.
fn has_word(dir: &Path, word: &str) -> bool {
    let is_in_word = |c: char| c.is_alphanumeric() || c == '_';
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            return has_word(&path, word);
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        text.split(|c| !is_in_word(c)).any(|it| it == word)
    })
}

#[test]
fn every_crate_uses_what_it_depends_on() {
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    let crates = crates.map(|entry| entry.unwrap().path()).chain([root().to_owned()]);
    let mut unused = Vec::new();
    for dir in crates {
        let manifest = std::fs::read_to_string(dir.join("Cargo.toml")).unwrap();
        for name in dependencies(&manifest) {
            if !has_word(&dir.join("src"), &name.replace('-', "_")) {
                unused.push(format!("{}: {name}", dir.display()));
            }
        }
    }
    assert_eq!(unused, Vec::<String>::new());
}
