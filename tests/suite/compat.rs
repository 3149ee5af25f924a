//! The output and the storage of the first implementation, byte for byte.
//!
//! `tests/compat` holds two tasks: their computations, workflows and data, and what the first
//! implementation made of them. `text` has a submodule for each computation, `arith` one for all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use compeval::digest::Digest;

use crate::golden;
use crate::lab::{Lab, files, settle, snapshot};
use crate::program::Ran;
use crate::repository::{self, Author};

/// The author of the tasks of the first implementation, and the time of their commits.
const AUTHOR: Author =
    Author { name: "compat", email: "compat@example.org", time: "1369080501 +0200" };

struct Fixture {
    lab: Lab,
    from: PathBuf,
}

impl Fixture {
    fn new(name: &str) -> Self {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat").join(name);
        let (mut lab, task) = (Lab::empty(), Path::new("task"));
        for (name, contents) in files(&from.join("data")) {
            lab = lab.data(&name, contents);
        }
        for line in fs::read_to_string(from.join("workflow.txt")).unwrap().lines() {
            let parts: Vec<&str> = line.split('|').collect();
            let (path, kind, value) = (parts[0], parts[1], parts[2]);
            lab = lab.file(&format!("{path}/kind"), format!("{kind}\n"));
            lab = lab.file(&format!("{path}/value"), format!("{value}\n"));
            if let Some(slice) = parts.get(3) {
                lab = lab.file(&format!("{path}/outputs"), slice.replace(',', "\n") + "\n");
            }
        }
        lab = lab.file("inputs", fs::read(from.join("inputs")).unwrap());
        for (name, contents) in
            files(&from.join("library")).into_iter().chain(files(&from.join("libraries")))
        {
            lab = lab.file(&format!("computations/{name}"), contents);
            if name.ends_with("/exec") {
                lab = lab.mode(&format!("computations/{name}"), 0o755);
            }
        }
        let fixture = Self { lab, from };
        fixture.commit(&fixture.lab.path("").join(task));
        fixture
    }

    fn commit(&self, task: &Path) {
        repository::init(task);
        let mut submodules = vec![("computations".to_owned(), "../library".to_owned())];
        if let Ok(libraries) = fs::read_dir(self.from.join("libraries")) {
            let name = |entry: std::io::Result<fs::DirEntry>| {
                entry.unwrap().file_name().into_string().unwrap()
            };
            let each =
                |name: String| (format!("computations/{name}"), format!("../libraries/{name}"));
            submodules = libraries.map(name).map(each).collect();
        }
        submodules.sort();
        for (name, url) in submodules {
            repository::commit(&task.join(&name), AUTHOR, "computations\n");
            repository::absorb(task, &name, &url);
        }
        let commit = repository::commit(task, AUTHOR, "task\n");
        golden::same("task-commit", &self.expected("task-commit"), &format!("{commit}\n"));
    }

    fn expected(&self, name: &str) -> String {
        fs::read_to_string(self.from.join("expected").join(name)).unwrap()
    }

    /// The names in the storage of the first implementation, and the SHA-1 of each file.
    fn original(&self) -> Vec<(String, String)> {
        let sums = self.expected("storage.sha1");
        let pair =
            |line: &str| line.split_once("  ").map(|(sum, name)| (name.to_owned(), sum.to_owned()));
        sums.lines().filter_map(pair).collect()
    }

    /// `ce-run` as the first implementation was run: the storage is called `STORAGE`.
    fn evaluation(&self, options: &[&str]) -> Command {
        let mut command = self.lab.command("ce-run");
        command
            .current_dir(self.lab.path(""))
            .args(["--task", "task"])
            .args(options)
            .arg("STORAGE");
        let inputs = fs::read_to_string(self.from.join("argv")).unwrap();
        command.args(inputs.split_whitespace().map(|name| format!("data/{name}")));
        command
    }

    fn run(&self, options: &[&str]) -> Ran<'_> {
        self.lab.finish(&mut self.evaluation(options))
    }

    #[track_caller]
    fn printed(&self, ran: &Ran<'_>, expected: &str) {
        golden::same(expected, &self.expected(expected), &ran.stdout);
    }

    fn storage(&self) -> PathBuf {
        self.lab.path("STORAGE")
    }

    /// Leaves in the storage only files that the first implementation would have made: results without records.
    fn forget_records(&self) {
        let storage = self.storage();
        let original: Vec<_> = self.original().into_iter().map(|(name, _)| name).collect();
        let contents = original.iter().map(|name| fs::read(storage.join(name)).unwrap());
        let contents: Vec<_> = contents.collect();
        fs::remove_dir_all(&storage).unwrap();
        for (name, contents) in original.iter().zip(contents) {
            fs::create_dir_all(storage.join(name).parent().unwrap()).unwrap();
            fs::write(storage.join(name), contents).unwrap();
        }
        settle(&storage);
    }

    /// All records of calls in the storage.
    fn records(&self) -> Vec<serde_json::Value> {
        let records = files(&self.storage())
            .into_iter()
            .filter(|(name, _)| name.starts_with("c_") && name.contains("/record/"));
        records.map(|(_, text)| serde_json::from_slice(&text).unwrap()).collect()
    }
}

const FIXTURES: [&str; 2] = ["arith", "text"];

#[test]
fn the_expression_prints_as_the_original_printed_it() {
    for fixture in FIXTURES.map(Fixture::new) {
        let ran = fixture.lab.run("ce-sym", &[]).exit(0);
        fixture.printed(&ran, "ce-sym.txt");
        assert_eq!(ran.stderr, "");
    }
}

#[test]
fn an_evaluation_prints_and_stores_the_same_as_the_first_implementation() {
    for fixture in FIXTURES.map(Fixture::new) {
        let ran = fixture.run(&[]).exit(0);
        fixture.printed(&ran, "ce-run.txt");
        for (name, sum) in fixture.original() {
            let contents = fs::read(fixture.storage().join(&name)).unwrap();
            assert_eq!(Digest::hash_bytes(&contents).sha1.full(), sum, "{name}");
        }
        fixture.printed(&fixture.run(&[]).exit(0), "ce-run-again.txt");
        fixture.printed(&fixture.run(&["-n"]).exit(0), "ce-run-again.txt");
    }
}

#[test]
fn results_of_the_first_implementation_are_used_and_not_computed_again() {
    for fixture in FIXTURES.map(Fixture::new) {
        fixture.run(&[]).exit(0);
        fixture.forget_records();
        // No computation would find its tools.
        let ran = fixture.lab.finish(fixture.evaluation(&[]).env("PATH", "/nowhere")).exit(0);
        fixture.printed(&ran, "ce-run-again.txt");
        let records = fixture.records();
        assert!(!records.is_empty() && records.iter().all(|record| record["origin"] == "adopted"));
    }
}

#[test]
fn strict_runs_compute_unrecorded_results_again() {
    for fixture in FIXTURES.map(Fixture::new) {
        fixture.run(&[]).exit(0);
        let before = fixture.records().len();
        fixture.forget_records();
        let ran =
            fixture.run(&["--strict"]).exit(0).says(&format!("{before} calls: {before} computed"));
        fixture.printed(&ran, "ce-run.txt");
        assert!(fixture.records().iter().all(|record| record["origin"]["executed"].is_object()));
        fixture.printed(&fixture.run(&["--strict"]).exit(0), "ce-run-again.txt");
    }
}

#[test]
fn a_dry_run_does_not_change_a_storage_of_the_first_implementation() {
    for fixture in FIXTURES.map(Fixture::new) {
        fixture.run(&[]).exit(0);
        fixture.forget_records();
        let before = snapshot(&fixture.storage());
        fixture.printed(&fixture.run(&["-n"]).exit(0), "ce-run-again.txt");
        golden::same("the storage", &before, &snapshot(&fixture.storage()));
        fixture.run(&["-n", "--strict"]).exit(3);
        golden::same("the storage", &before, &snapshot(&fixture.storage()));
    }
}

#[test]
fn a_dry_run_without_a_storage_creates_none_and_names_known_files() {
    for name in FIXTURES {
        let fixture = Fixture::new(name);
        fixture.run(&["-n"]).exit(3).prints(&format!("compat/{name}-nothing-there.txt"));
        assert!(!fixture.storage().exists());
    }
}
