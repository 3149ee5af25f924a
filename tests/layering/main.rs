//! The rules of the house: who may import whom, who owns which outside crate, how long a file is.
//!
//! They are read from the text of the sources, and kept by looking at them one by one.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod advice;
mod causes;
mod circles;
mod house;
mod messages;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use house::{GROUPS, INNER, LAYERS, OWNERS, ROOMS};

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

/// The text without comments.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.fold(String::new(), |code, line| code + line + "\n")
}

/// What follows `prefix::` wherever that begins a path.
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

/// The modules whose paths follow `prefix::`; of a group, its part.
fn modules(code: &str, prefix: &str) -> Vec<String> {
    let mut modules = followers(code, prefix);
    modules.retain(|module| !GROUPS.contains(module));
    let parts = GROUPS.map(|group| (group, followers(code, &format!("{prefix}::{group}"))));
    let parts = parts
        .iter()
        .flat_map(|(group, parts)| parts.iter().map(move |part| format!("{group}::{part}")));
    modules.into_iter().map(str::to_owned).chain(parts).collect()
}

/// The module that a file belongs to: one of `lib.rs`, or a part of a group.
fn module(file: &str) -> String {
    let mut names = file.trim_end_matches("/mod.rs").trim_end_matches(".rs").split('/');
    let module = names.next().unwrap_or_default();
    match names.next() {
        Some(part) if GROUPS.contains(&module) => format!("{module}::{part}"),
        _ => module.to_owned(),
    }
}

/// How far from the ground a module is.
fn height(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Tells which imports of a file are against the rules.
fn wrong_imports(file: &str, text: &str) -> Vec<String> {
    let (code, own) = (code(text), module(file));
    let Some(height_of_own) = height(&own) else {
        return vec![format!("{file} is in no layer")];
    };
    // At the top, `super` is the crate or a group; below, `super::super` may be.
    let group = own.split_once("::").map(|(group, _)| format!("{group}::")).unwrap_or_default();
    let is_top = file.matches('/').count() == usize::from(!group.is_empty());
    let outside = if is_top || file.ends_with("/mod.rs") { "super" } else { "super::super" };
    let beside = followers(&code, outside).into_iter().map(|name| format!("{group}{name}"));
    let imports = ["crate", "compeval"].map(|prefix| modules(&code, prefix));
    let imports: BTreeSet<String> =
        imports.into_iter().flatten().chain(beside.filter(|it| !it.ends_with('*'))).collect();
    let wrong = |name: &String| match height(name) {
        _ if *name == own => false,
        Some(height) => height >= height_of_own,
        // Braces hide names from this test. What is in a group and no part of it has no layer.
        None => name.ends_with('{') || name.contains("::"),
    };
    let mut wrong: Vec<String> =
        imports.into_iter().filter(wrong).map(|name| format!("{file} imports {name}")).collect();
    for inner in INNER {
        let outside = own != "doctor" && !inner.contains(&format!("::{own}::"));
        if outside && !followers(&code, inner).is_empty() {
            wrong.push(format!("{file} imports {inner}"));
        }
    }
    for (name, owners) in OWNERS {
        let owned = owners.iter().any(|owner| {
            file == *owner || owner.is_empty() || (owner.ends_with('/') && file.starts_with(owner))
        });
        if !owned && !followers(&code, name).is_empty() {
            wrong.push(format!("{file} names {name}"));
        }
    }
    wrong
}

/// Tells which imports of a file of the storage are against the order of its rooms.
fn wrong_rooms(file: &str, text: &str) -> Vec<String> {
    let place = |room: &str| ROOMS.iter().position(|it| *it == room);
    let [_, room, rest @ ..] = &file.split('/').collect::<Vec<_>>()[..] else { return Vec::new() };
    let Some(own) = place(room).filter(|_| rest.last() != Some(&"tests.rs")) else {
        return Vec::new();
    };
    let code = code(text);
    let code = code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let outside = if rest == ["mod.rs"] { "super" } else { "super::super" };
    let imports = ["crate::storage", outside].map(|prefix| followers(code, prefix));
    let imports: BTreeSet<&str> = imports.into_iter().flatten().collect();
    let wrong = imports.into_iter().filter(|name| place(name).is_none_or(|room| room > own));
    wrong.map(|name| format!("{file} imports {name}")).collect()
}

#[test]
fn a_room_of_the_storage_imports_only_those_below_it() {
    let files = sources("src/storage");
    let wrong = files.iter().flat_map(|(file, text)| wrong_rooms(&format!("storage/{file}"), text));
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<String>::new());
    for (file, text, wrong) in [
        ("storage/disk/files.rs", "use crate::storage::layout::Entry;", "layout"),
        ("storage/records/mod.rs", "use super::store::Storage;", "store"),
        ("storage/store/find.rs", "use crate::storage::{Storage, Survey};", "{"),
        ("storage/store/find.rs", "use crate::storage::Survey;", "Survey"),
        ("storage/store/find.rs", "use super::super::maintenance::Survey;", "maintenance"),
    ] {
        assert_eq!(wrong_rooms(file, text), [format!("{file} imports {wrong}")], "{text}");
    }
    let right = "use super::Storage;\nuse crate::storage::disk::Root;\n#[cfg(test)]\nmod tests {";
    assert_eq!(wrong_rooms("storage/store/find.rs", right), Vec::<String>::new());
}

#[test]
fn a_module_imports_only_what_is_below_it_and_crates_that_it_owns() {
    let wrong = sources("src")
        .iter()
        .flat_map(|(file, text)| wrong_imports(file, text))
        .collect::<Vec<_>>();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_wrong_import_would_be_seen() {
    for (file, text, wrong) in [
        ("task/name.rs", "use crate::cli::Run;", "task/name.rs imports cli"),
        ("digest.rs", "fn f() { crate::task::name::f() }", "digest.rs imports task::name"),
        ("task/name.rs", "use crate::task::workflow::Task;", "task/name.rs imports task::workflow"),
        ("plan.rs", "use crate::task::{name, slice};", "plan.rs imports task::{"),
        ("plan.rs", "use crate::task::Task;", "plan.rs imports task::Task"),
        ("load/tree.rs", "use crate::storage::Storage;", "load/tree.rs imports storage"),
        (
            "questions/history/log.rs",
            "super::super::bisect::f()",
            "questions/history/log.rs imports questions::bisect",
        ),
        ("plan.rs", "use super::load;\nuse super::load::task;", "plan.rs imports load"),
        (
            "storage/find.rs",
            "use crate::task::workflow::Task;",
            "storage/find.rs imports task::workflow",
        ),
        ("evaluate/mod.rs", "use crate::{plan, cli};", "evaluate/mod.rs imports {"),
        ("report/tree.rs", "use crate::export::Drawing;", "report/tree.rs imports export"),
        ("session/error.rs", "use crate::cli;", "session/error.rs imports cli"),
        (
            "session/mod.rs",
            "use crate::storage::disk::Disk;",
            "session/mod.rs imports crate::storage::disk",
        ),
        ("load/mod.rs", "let it = gix::open(dir);", "load/mod.rs names gix"),
        (
            "storage/file.rs",
            "let it = faster_hex::hex_string(b);",
            "storage/file.rs names faster_hex",
        ),
        ("plan.rs", "#[derive(clap::Parser)]", "plan.rs names clap"),
        ("somewhere.rs", "", "somewhere.rs is in no layer"),
    ] {
        assert!(wrong_imports(file, text).contains(&wrong.to_owned()), "{file}: {text}");
    }
}

#[test]
fn a_right_import_is_fine() {
    for (file, text) in [
        (
            "task/name.rs",
            "// see crate::cli\n/// [`Task`](crate::cli)\nmod tests { use super::*; }",
        ),
        (
            "git/head.rs",
            "use gix::Repository;\nuse super::problem::Fault;\nuse crate::digest::ObjectId;",
        ),
        ("digest.rs", "let digest = self.sha1.update(piece); sha1::Sha1::new()"),
        ("bin/ce.rs", "compeval::cli::main::<compeval::cli::Ce>()"),
    ] {
        assert_eq!(wrong_imports(file, text), Vec::<String>::new(), "{file}: {text}");
    }
}

#[test]
fn every_outside_crate_has_an_owner() {
    let manifest =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let (_, dependencies) = manifest.split_once("\n[dependencies]\n").unwrap();
    let lines = dependencies.lines().take_while(|line| !line.starts_with('['));
    let names =
        lines.filter_map(|line| line.split_once(" =")).map(|(name, _)| name.replace('-', "_"));
    assert_eq!(names.collect::<BTreeSet<_>>(), OWNERS.map(|(name, _)| name.to_owned()).into());
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
fn no_file_is_forgotten() {
    assert_eq!(unreached("lib.rs", &sources("src")), Vec::<String>::new());
    assert_eq!(unreached("main.rs", &sources("tests/suite")), Vec::<String>::new());
}

#[test]
fn a_forgotten_file_would_be_seen() {
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
fn every_file_begins_with_what_it_is_and_can_be_read_in_one_sitting() {
    for dir in ["src", "tests"] {
        for (name, text) in sources(dir) {
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
fn a_name_is_the_name_of_one_type() {
    assert_eq!(ambiguous_types(&sources("src")), Vec::<String>::new());
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
fn a_binary_holds_nothing() {
    for (name, text) in sources("src/bin") {
        assert!(text.lines().count() <= 5, "{name}");
    }
}

/// The only file that may start `git`: it keeps what is started from fetching, waiting and asking.
const STARTER: &str = "git/command.rs";

/// Tells whether a file starts `git` by itself: names the program, or a program of its own.
fn starts_git(file: &str, text: &str) -> bool {
    let code = code(text);
    let code = code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let is_named = ["\"git\"", "\"/usr/bin/git", "\"git ", "\"git-"]
        .iter()
        .any(|name| code.contains(&format!("Command::new({name}")));
    let is_passed = code.contains("\"git\"");
    let is_in_git = file.starts_with("git/") || file == "git.rs";
    file != STARTER && (is_named || is_passed || (is_in_git && code.contains("Command::new(")))
}

#[test]
fn git_is_started_in_one_place() {
    let files = sources("src");
    assert!(files[STARTER].contains("Command::new(\"git\")"));
    let wrong: Vec<&String> =
        files.iter().filter(|(file, text)| starts_git(file, text)).map(|(file, _)| file).collect();
    assert_eq!(wrong, Vec::<&String>::new(), "git is started by git/command.rs only");
    for (file, text) in [
        ("cli/push.rs", "Command::new(\"git\").arg(\"push\")"),
        ("cli/push.rs", "let program = \"git\"; Command::new(program)"),
        ("results/push.rs", "start(\"git\", &[])"),
        ("git/mirror/process.rs", "Command::new(GIT)"),
    ] {
        assert!(starts_git(file, text), "{text}");
    }
    assert!(!starts_git(STARTER, "Command::new(\"git\")"));
    assert!(!starts_git("cli/viz.rs", "Command::new(\"rsvg-convert\") // \"git\""));
}
