//! The rules of the house that the compiler does not keep: who imports whom within a crate, how long a file is, what messages say.
//!
//! They are read from the text of the sources, and kept by looking at them one by one.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod advice;
mod causes;
mod circles;
mod docs;
mod messages;
mod modes;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The rooms of the storage from the ground up. A room imports those before its own. The compiler keeps the order of the crates.
const ROOMS: [&str; 5] = ["disk", "paths", "records", "protocol", "maintenance"];

/// The greatest number of lines of a file.
const LONGEST: usize = 900;

/// All Rust files below a directory of the project, by their names relative to it.
fn sources(dir: &str) -> BTreeMap<String, String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(dir);
    let files = walkdir::WalkDir::new(&dir).into_iter().map(Result::unwrap);
    let files = files.filter(|file| file.path().extension().is_some_and(|end| end == "rs"));
    let name = |path: &Path| path.strip_prefix(&dir).unwrap().to_str().unwrap().to_owned();
    files.map(|file| (name(file.path()), fs::read_to_string(file.path()).unwrap())).collect()
}

/// The directories of the crates' sources; the package at the root comes first.
fn crate_directories() -> Vec<String> {
    let crates = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("crates")).unwrap();
    let names = crates.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.map(|name| format!("crates/{name}/src")).collect();
    names.sort();
    names.insert(0, "src".to_owned());
    names
}

/// All Rust files of the programs except tests: files of the package at the root by their names below `src`, files of a
/// crate below its name.
fn program() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for dir in crate_directories() {
        let name = dir.strip_prefix("crates/").and_then(|dir| dir.strip_suffix("src"));
        let of_crate = sources(&dir).into_iter().filter(|(file, _)| !is_of_tests(file));
        files.extend(
            of_crate.map(|(file, text)| (name.unwrap_or_default().to_owned() + &file, text)),
        );
    }
    files
}

/// Whether a file has nothing but tests.
fn is_of_tests(file: &str) -> bool {
    file.ends_with("tests.rs") || file.contains("/tests/")
}

/// The text of a file before its unit tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

/// The text without comments.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.fold(String::new(), |code, line| code + line + "\n")
}

/// Returns the words that follow `prefix::` wherever that begins a path.
fn followers<'a>(code: &'a str, prefix: &str) -> Vec<&'a str> {
    let prefix = format!("{prefix}::");
    let begins =
        |at: &usize| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || "_:".contains(c));
    let places = code.match_indices(&prefix).map(|(at, _)| at).filter(begins);
    places.map(|at| word(&code[at + prefix.len()..])).collect()
}

/// The word that a text begins with, or the character if it begins with none.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end.max(1)]
}

/// Returns the imports of a file of the storage that are against the order of its rooms.
fn wrong_rooms(file: &str, text: &str) -> Vec<String> {
    let place = |room: &str| ROOMS.iter().position(|it| *it == room);
    let [_, room, rest @ ..] = &file.split('/').collect::<Vec<_>>()[..] else { return Vec::new() };
    let Some(own) = place(room).filter(|_| !is_of_tests(file)) else { return Vec::new() };
    let code = code(text);
    let code = without_tests(&code);
    let outside = if rest == ["mod.rs"] { "super" } else { "super::super" };
    let imports = ["crate", outside].map(|prefix| followers(code, prefix));
    let imports: BTreeSet<&str> = imports.into_iter().flatten().collect();
    let wrong = imports.into_iter().filter(|name| place(name).is_none_or(|room| room > own));
    wrong.map(|name| format!("{file} imports {name}")).collect()
}

#[test]
fn a_layer_of_the_storage_imports_only_lower_layers() {
    let files = sources("crates/storage/src");
    let wrong = files.iter().flat_map(|(file, text)| wrong_rooms(&format!("storage/{file}"), text));
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<String>::new());
    for (file, text, wrong) in [
        ("storage/disk/files.rs", "use crate::paths::Entry;", "paths"),
        ("storage/records/mod.rs", "use super::protocol::Storage;", "protocol"),
        ("storage/protocol/call_lookup.rs", "use crate::{Storage, Survey};", "{"),
        ("storage/protocol/call_lookup.rs", "use crate::Survey;", "Survey"),
        (
            "storage/protocol/call_lookup.rs",
            "use super::super::maintenance::Survey;",
            "maintenance",
        ),
    ] {
        assert_eq!(wrong_rooms(file, text), [format!("{file} imports {wrong}")], "{text}");
    }
    let right = "use super::Storage;\nuse crate::disk::Root;\n#[cfg(test)]\nmod tests {";
    assert_eq!(wrong_rooms("storage/protocol/call_lookup.rs", right), Vec::<String>::new());
}

/// The files that no other file names with `mod`.
fn unreached(root: &str, files: &BTreeMap<String, String>) -> Vec<String> {
    let is_reached = |file: &&String| {
        let path = file.trim_end_matches("/mod.rs").trim_end_matches(".rs");
        let (dir, name) = path.rsplit_once('/').map_or(("", path), |(dir, name)| (dir, name));
        let parents = [format!("{dir}/mod.rs"), format!("{dir}.rs"), root.to_owned()];
        let parents = parents.iter().filter(|parent| dir.is_empty() == (*parent == root));
        let declared =
            |text: &String| code(text).lines().any(|line| line.ends_with(&format!("mod {name};")));
        file.as_str() == root
            || file.starts_with("bin/")
            || parents.filter_map(|parent| files.get(parent)).any(declared)
    };
    files.keys().filter(|file| !is_reached(file)).cloned().collect()
}

#[test]
fn every_file_is_named_by_a_module() {
    for dir in crate_directories() {
        assert_eq!(unreached("lib.rs", &sources(&dir)), Vec::<String>::new(), "{dir}");
    }
    assert_eq!(unreached("main.rs", &sources("tests/suite")), Vec::<String>::new());
}

#[test]
fn a_file_that_no_module_names_is_found() {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let files = [
        file("lib.rs", "pub mod load;\n// mod plan;\n"),
        file("load/mod.rs", "mod tree;\n"),
        file("load/tree.rs", ""),
        file("git/head.rs", ""),
        file("plan.rs", ""),
        file("bin/ce.rs", ""),
    ];
    assert_eq!(unreached("lib.rs", &files.into()), ["git/head.rs", "plan.rs"]);
}

#[test]
fn every_file_has_a_module_comment_and_a_limited_length() {
    let dirs = crate_directories().into_iter().chain(["tests".to_owned()]);
    for dir in dirs {
        for (name, text) in sources(&dir) {
            assert!(text.starts_with("//! "), "{dir}/{name} does not say what it is");
            let lines = text.lines().count();
            assert!(lines <= LONGEST, "{dir}/{name} has {lines} lines");
        }
    }
}

/// The types that a text declares, but for associated types and those in functions.
fn declared_types(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = match line.strip_prefix("pub") {
            Some(line) if line.starts_with('(') => line.split_once(") ")?.1,
            Some(line) => line.trim_start(),
            None => line,
        };
        let kinds = ["struct ", "enum ", "trait ", "type ", "union "];
        kinds.iter().find_map(|kind| line.strip_prefix(kind)).map(word)
    })
}

/// The types that are declared in more than one file.
fn ambiguous_types(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut owners = BTreeMap::<&str, Vec<&str>>::new();
    for (file, text) in files {
        declared_types(text).for_each(|name| owners.entry(name).or_default().push(file));
    }
    let ambiguous = owners.into_iter().filter(|(_, files)| files.len() > 1);
    ambiguous.map(|(name, files)| format!("{name}: {}", files.join(", "))).collect()
}

#[test]
fn each_type_has_a_name_of_its_own() {
    assert_eq!(ambiguous_types(&program()), Vec::<String>::new());
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let files = [
        file(
            "a.rs",
            "pub struct One;\npub(super) enum Two {\ntype Three<'a> = u8;\nstruct Four(u8);",
        ),
        file(
            "b.rs",
            "trait One {\n    type Four;\n}\npub(in crate::x) struct Three<'a> {\nenum Twofold {",
        ),
    ];
    assert_eq!(ambiguous_types(&files.into()), ["One: a.rs, b.rs", "Three: a.rs, b.rs"]);
}

#[test]
fn a_binary_has_at_most_seven_lines() {
    for (name, text) in sources("src/bin") {
        let most = if name == "start_ce.rs" { 40 } else { 7 };
        assert!(text.lines().count() <= most, "{name}");
    }
}

/// The only file that may start `git`: it keeps `git` from fetching, waiting and asking.
const STARTER: &str = "git/command.rs";

/// Whether a file starts `git` by itself: names the program, or a program of its own.
fn starts_git(file: &str, text: &str) -> bool {
    let code = code(text);
    let code = without_tests(&code);
    let is_named = ["\"git\"", "\"/usr/bin/git", "\"git ", "\"git-"]
        .iter()
        .any(|name| code.contains(&format!("Command::new({name}")));
    let is_passed = code.contains("\"git\"");
    let is_in_git = file.starts_with("git/") || file == "git.rs";
    file != STARTER && (is_named || is_passed || (is_in_git && code.contains("Command::new(")))
}

#[test]
fn git_is_started_in_one_place() {
    let files = program();
    assert!(files[STARTER].contains("Command::new(\"git\")"));
    let wrong: Vec<&String> =
        files.iter().filter(|(file, text)| starts_git(file, text)).map(|(file, _)| file).collect();
    assert_eq!(wrong, Vec::<&String>::new(), "git is started by git/command.rs only");
    for (file, text) in [
        ("cli/exchange.rs", "Command::new(\"git\").arg(\"push\")"),
        ("cli/exchange.rs", "let program = \"git\"; Command::new(program)"),
        ("results/push.rs", "start(\"git\", &[])"),
        ("git/mirror/process.rs", "Command::new(GIT)"),
    ] {
        assert!(starts_git(file, text), "{text}");
    }
    assert!(!starts_git(STARTER, "Command::new(\"git\")"));
    assert!(!starts_git("cli/viz.rs", "Command::new(\"rsvg-convert\") // \"git\""));
}
