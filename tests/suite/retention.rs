//! What a collection keeps: on random histories, everything that `ce run -n` would use at any reachable commit; and nothing that only
//! deleted branches could use.
//!
//! `CE_SEED=17 cargo test retention` tries the history of one seed only, `CE_TIMES=60` sixty times as many: 300 of them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::generator::{self, Random};
use crate::isolation;
use crate::lab::{Lab, files};
use crate::program::Ran;
use crate::properties::Case;

/// The number of histories that are tried in the everyday suite.
const HISTORIES: u64 = 5;

/// The values of the only input that a task may have.
const GIVEN: [&str; 2] = ["given-0\n", "given-1\n"];

/// Computations that only tasks with an input call.
const OPEN: [&str; 2] = ["g", "h"];

/// A repository whose history is being made, with a task in a directory that may get another name.
struct Study {
    lab: Lab,
    random: Random,
    /// The directory of the task.
    task: String,
    /// The number of texts that were made up.
    texts: usize,
    branches: usize,
    /// The steps so far, to be printed when a test fails.
    steps: Vec<String>,
    isolates: bool,
}

/// The results of one storage, as its records say.
#[derive(Default)]
struct Remaining {
    /// The calls, by their short names.
    calls: BTreeMap<String, Value>,
    /// The digests of the rows of tables, and of their outputs.
    tables: Vec<[HashSet<String>; 2]>,
}

impl Study {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let isolates = random.below(3) == 0 && isolation::is_possible();
        let takeover = if isolates && random.below(2) == 0 { "isolated" } else { "tree" };
        let lab = Lab::empty();
        let lab = if isolates { lab.isolated() } else { lab };
        fs::write(
            lab.path("home/.gitconfig"),
            format!(
                "[safe]\n\tdirectory = *\n[compeval]\n\ttakeover = {takeover}\n[init]\n\tdefaultBranch = main\n"
            ),
        )
        .unwrap();
        let lab = GIVEN.iter().enumerate().fold(lab, |lab, (at, it)| lab.data(&at.to_string(), it));
        let task = "one".to_owned();
        let mut study =
            Self { lab, random, task, texts: 0, branches: 0, steps: Vec::new(), isolates };
        study.git(&["init", "-q"]);
        let computations = [
            ("a", "x", "y", "sed s/^/a/ \"$1\" > \"$2\""),
            ("b", "x", "y", "sed s/^/b/ \"$1\" > \"$2\""),
            ("c", "x z", "y", "find \"$1\" \"$2\" -type f -exec cat '{}' + > \"$3\""),
            ("d", "x", "y/", "cp \"$1\" \"$2/f\""),
            ("e", "x", "y", "wc -c < \"$1\" > \"$2\""),
            ("n", "x r", "y", "#CE nondeterministic\ncat /proc/sys/kernel/random/uuid > \"$3\""),
            ("g", "x", "y", "sed s/^/g/ \"$1\" > \"$2\""),
            ("h", "x z", "y", "cat \"$1\" \"$2\" > \"$3\""),
        ];
        for (name, inputs, outputs, script) in computations {
            let text = format!("#!/bin/sh\n#CE inputs {inputs}\n#CE outputs {outputs}\n{script}\n");
            let file = format!("one/computations/{name}.sh");
            study.lab = study.lab.file(&file, text).mode(&file, 0o755);
        }
        study.lab = study.lab.file("one/data", "own\n");
        study.workflow();
        study.commit("first");
        study
    }

    fn git(&mut self, arguments: &[&str]) -> bool {
        let mut git = std::process::Command::new("git");
        git.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        git.env("HOME", self.lab.path("home")).env("GIT_CONFIG_NOSYSTEM", "1");
        git.env("GIT_EDITOR", "true");
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "Lab").env(format!("GIT_{who}_EMAIL"), "lab@lab");
            git.env(
                format!("GIT_{who}_DATE"),
                format!("{} +0000", 1_000_000_000 + self.steps.len()),
            );
        }
        let ended = git.current_dir(self.lab.path("task")).args(arguments).output().unwrap();
        self.steps.push(format!("git {} {}", arguments.join(" "), ended.status.success()));
        ended.status.success()
    }

    fn asked(&self, arguments: &[&str]) -> Vec<String> {
        self.lab.git("task", arguments).lines().map(str::to_owned).collect()
    }

    fn commit(&mut self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
    }

    /// A text that others have, too, or a new one.
    fn text(&mut self) -> String {
        if self.random.below(3) > 0 {
            return format!("'t{}'", self.random.below(3));
        }
        self.texts += 1;
        format!("'m{}'", self.texts)
    }

    /// Changes the workflow.
    fn workflow(&mut self) {
        let s = self.text();
        let t = Some(self.text()).filter(|it| *it != s).unwrap_or_else(|| "'t9'".to_owned());
        let piece = |number: usize| match number {
            0 => format!("(a {s})"),
            1 => format!("(b (a {s}))"),
            2 => format!("(c (a {s}) OWN('data'))"),
            3 => format!("(b MEMBER('f' (d {s})))"),
            4 => format!("(e SWEEP((b (a x)) :over x {s} {t}))"),
            5 => format!("(e (n {s} {t}))"),
            6 => format!("SWEEP((n x replicate) :over x {s} :replicates 2)"),
            _ => format!("(c {s} (d {t}))"),
        };
        let text = if self.random.below(5) == 0 {
            format!("Inputs: in\nALL((g in) (h (g in) {s}))\n")
        } else {
            let pieces = [self.random.below(8), self.random.below(8)].map(piece);
            if pieces[0] == pieces[1] {
                pieces[0].clone()
            } else {
                format!("ALL({})\n", pieces.join(" "))
            }
        };
        self.write("workflow.ce", &text);
    }

    fn workflow_path(&self) -> PathBuf {
        self.lab.path("task").join(&self.task).join("workflow.ce")
    }

    fn write(&mut self, file: &str, text: &str) {
        fs::write(self.lab.path("task").join(&self.task).join(file), text).unwrap();
        self.steps.push(format!("{file}: {}", text.lines().last().unwrap_or_default()));
    }

    fn edit(&mut self) {
        match self.random.below(5) {
            0 => {
                let name = self.random.one_of(&["a", "b", "c", "d", "e", "n", "g", "h"]);
                let file = format!("computations/{name}.sh");
                let path = self.lab.path("task").join(&self.task).join(&file);
                let before = fs::read_to_string(path).unwrap();
                let text = format!("{before}# {}\n", self.random.below(3));
                self.write(&file, &text);
            }
            1 => {
                let text = format!("own {}\n", self.random.below(4));
                self.write("data", &text);
            }
            _ => self.workflow(),
        }
    }

    fn has_input(text: &str) -> bool {
        text.starts_with("Inputs:")
    }

    /// Evaluates the task as it is in a directory, with each value of its input.
    fn evaluate(&self, dir: &str, options: &[&str]) -> Vec<[String; 2]> {
        let place = self.lab.path(dir);
        let text = fs::read_to_string(place.join("workflow.ce")).unwrap();
        let given: &[&str] = if Self::has_input(&text) { &["0", "1"] } else { &[""] };
        let run = |given: &&str| {
            let mut command = self.lab.command("ce-run");
            command.current_dir(&place).arg("--no-sync").args(options);
            command.arg(self.lab.path("storage"));
            if !given.is_empty() {
                command.arg(self.lab.path("data").join(given));
            }
            let ran = self.lab.finish(&mut command);
            assert!(matches!(ran.status.code(), Some(0 | 3)), "{:?} {}", ran.status, ran.stderr);
            [ran.stdout, ran.stderr]
        };
        given.iter().map(run).collect()
    }

    fn run(&mut self, options: &[&str]) {
        let is_loose = self.isolates && self.random.below(4) == 0;
        let options = [options, if is_loose { &["--no-isolate"] } else { &[] }].concat();
        self.steps.push(format!(
            "run {options:?} at {:?}",
            self.asked(&["rev-parse", "--short", "HEAD"])
        ));
        let ended = self.evaluate(&format!("task/{}", self.task), &options);
        self.steps.extend(ended.into_iter().map(|[_, stderr]| stderr));
    }

    fn others(&self) -> Vec<String> {
        let here = self.asked(&["symbolic-ref", "--short", "HEAD"]);
        let mut branches = self.asked(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
        branches.retain(|branch| !here.contains(branch));
        branches
    }

    /// Looks where the task is after Git has changed the work tree.
    fn locate(&mut self) {
        for name in ["one", "two"] {
            if self.lab.path("task").join(name).join("workflow.ce").exists() {
                self.task = name.to_owned();
            }
        }
    }

    fn step(&mut self) {
        let others = self.others();
        let other = (!others.is_empty()).then(|| others[self.random.below(others.len())].clone());
        match (self.random.below(18), other) {
            (0..=3, _) => {
                self.edit();
                self.commit("edit");
                self.run(&[]);
            }
            (4, _) => {
                self.git(&["commit", "-q", "--allow-empty", "--amend", "-m", "amended"]);
            }
            (5, _) => {
                self.edit();
                self.git(&["commit", "-q", "-a", "--allow-empty", "--amend", "-m", "amended"]);
                if self.random.below(2) == 0 {
                    self.run(&[]);
                }
            }
            (6..=7, _) => {
                self.branches += 1;
                let name = format!("b{}", self.branches);
                self.git(&["checkout", "-q", "-b", &name]);
            }
            (8, Some(other)) => drop(self.git(&["checkout", "-q", &other])),
            (9, Some(other)) => {
                if self.git(&["merge", "-q", "--squash", "-X", "theirs", &other]) {
                    self.commit("squashed");
                } else {
                    self.git(&["reset", "-q", "--hard"]);
                }
                self.git(&["branch", "-q", "-D", &other]);
            }
            (10, Some(other)) => {
                if !self.git(&["merge", "-q", "--no-edit", "-X", "ours", &other]) {
                    self.git(&["merge", "--abort"]);
                    self.git(&["reset", "-q", "--hard"]);
                }
            }
            (11, Some(other)) => {
                if !self.git(&["rebase", "-q", "-X", "theirs", &other]) {
                    self.git(&["rebase", "--abort"]);
                }
            }
            (12..=13, Some(other)) => drop(self.git(&["branch", "-q", "-D", &other])),
            (14, _) => {
                self.branches += 1;
                let name = format!("b{}", self.branches);
                self.git(&["checkout", "-q", "--orphan", &name]);
                self.commit("orphan");
            }
            (15, _) => {
                let to = if self.task == "one" { "two" } else { "one" };
                let from = self.task.clone();
                drop(fs::remove_dir_all(self.lab.path("task").join(to)));
                self.git(&["mv", &from, to]);
                to.clone_into(&mut self.task);
                self.commit("renamed");
            }
            (16, _) => {
                self.edit();
                self.run(&["--dirty"]);
                self.git(&["reset", "-q", "--hard"]);
            }
            (_, _) => {
                if self.isolates && self.random.below(2) == 0 {
                    self.gc(&["--recomputable"]).exit(0);
                } else {
                    let text = fs::read_to_string(self.workflow_path()).unwrap();
                    let called = text.split('(').find(|it| it.as_bytes().get(1) == Some(&b' '));
                    self.run(&["--force", &called.unwrap()[..1]]);
                }
            }
        }
        self.locate();
    }

    fn gc(&self, options: &[&str]) -> Ran<'_> {
        let mut command = self.lab.command("ce");
        command.args(["gc", "--delete", "-q"]).args(options).arg(self.lab.path("storage"));
        self.lab.finish(&mut command)
    }

    /// Returns what `ce run -n` would use at each reachable commit: lines that name the commit, the call and its outputs.
    fn used(&self) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        drop(fs::remove_dir_all(self.lab.path("look")));
        self.lab.git("", &["clone", "-q", "--no-checkout", "task", "look"]);
        self.lab.git("look", &["fetch", "-q", "origin", "+refs/*:refs/there/*", "HEAD"]);
        for commit in self.asked(&["rev-list", "--all", "HEAD"]) {
            self.lab.git("look", &["checkout", "-q", "--force", "--detach", &commit]);
            for place in ["look/one", "look/two"] {
                if !self.lab.path(place).join("workflow.ce").exists() {
                    continue;
                }
                for (given, [told, _]) in self.evaluate(place, &["-n", "--json"]).iter().enumerate()
                {
                    for line in told.lines() {
                        let event: Value = serde_json::from_str(line).unwrap();
                        let outputs = event["outputs"].as_array().into_iter().flatten();
                        let known: Vec<_> = outputs.filter_map(|it| it["sha1"].as_str()).collect();
                        // Results that are away are known, too: where they are needed, they are made again.
                        if event["event"] == "ended" && !known.is_empty() {
                            used.insert(format!(
                                "{commit} {place} given {given}: call {} {} {known:?}",
                                event["call"], event["computation"]
                            ));
                        }
                    }
                }
            }
        }
        used
    }

    fn remaining(&self) -> Remaining {
        let mut remaining = Remaining::default();
        let stored = files(&self.lab.path("storage"));
        for (name, text) in &stored {
            let Some((owner, call)) = name.split_once("/record/") else { continue };
            let record = || serde_json::from_slice::<Value>(text).unwrap();
            if owner.starts_with("c_") {
                let call = call.trim_end_matches(".json");
                remaining.calls.insert(format!("{owner}/{call}"), record());
            } else if owner == "tables" {
                let recipe = format!("tables/{}/recipe", call.trim_end_matches(".json"));
                let recipe = String::from_utf8(stored[&recipe].clone()).unwrap();
                let rows =
                    recipe.lines().skip(1).map(|it| serde_json::from_str::<Value>(it).unwrap());
                let rows = rows.flat_map(|row| digests(&row["outputs"])).collect();
                remaining.tables.push([rows, digests(&record()["outputs"])]);
            }
        }
        remaining
    }

    /// Returns the calls that nobody needs: the rule once more, by other means.
    fn needless(&self, remaining: &Remaining) -> Vec<String> {
        let commits: HashSet<String> =
            self.asked(&["rev-list", "--all", "HEAD"]).into_iter().collect();
        let mut objects = HashSet::new();
        let mut supplied: HashSet<String> = (1..3).map(|it| sha1(&format!("{it}\n"))).collect();
        for line in self.asked(&["rev-list", "--objects", "--all", "HEAD"]) {
            let (id, path) = line.split_once(' ').unwrap_or((&line, ""));
            objects.insert(id.to_owned());
            if path.ends_with("/data") {
                supplied.insert(sha1(&(self.lab.git("task", &["cat-file", "blob", id]) + "\n")));
            } else if path.ends_with("/workflow.ce") {
                let text = self.lab.git("task", &["cat-file", "blob", id]);
                supplied
                    .extend(text.split('\'').skip(1).step_by(2).map(|it| sha1(&format!("{it}\n"))));
                // A text that stands alone has no newline of its own.
                supplied.extend(text.split('\'').skip(1).step_by(2).map(sha1));
            }
        }
        let is_kept = |call: &Value| commits.contains(call["commit"].as_str().unwrap());
        let mut needed = HashSet::new();
        loop {
            let before = needed.len() + supplied.len();
            for (name, call) in &remaining.calls {
                let is_open = OPEN.contains(&call["computation"].as_str().unwrap());
                let is_there = objects.contains(call["tree"].as_str().unwrap());
                let inputs = digests(&call["inputs"]);
                let is_usable = is_there && (is_open || inputs.is_subset(&supplied));
                if is_kept(call) || is_usable || needed.contains(name) {
                    needed.insert(name.clone());
                    supplied.extend(digests(&call["outputs"]));
                    supplied.extend(self.members(name));
                    needed.extend(
                        call["origin"]["executed"]["taken_over"].as_str().map(str::to_owned),
                    );
                    let makers = remaining.calls.iter();
                    let makers =
                        makers.filter(|(_, it)| !inputs.is_disjoint(&digests(&it["outputs"])));
                    needed.extend(makers.map(|(name, _)| name.clone()));
                }
            }
            for [rows, outputs] in &remaining.tables {
                if rows.is_subset(&supplied) {
                    supplied.extend(outputs.iter().cloned());
                }
            }
            if needed.len() + supplied.len() == before {
                break;
            }
        }
        remaining.calls.keys().filter(|name| !needed.contains(*name)).cloned().collect()
    }

    /// The digest of the file in the directory that a call has made, if it has.
    fn members(&self, call: &str) -> Option<String> {
        let (owner, name) = call.rsplit_once('/').unwrap();
        let file = self.lab.path("storage").join(owner).join("00").join(name).join("f");
        Some(sha1(&fs::read_to_string(file).ok()?))
    }
}

/// The SHA-1 of each of some values.
fn digests(values: &Value) -> HashSet<String> {
    let values = values.as_array().into_iter().flatten();
    values.map(|it| it["sha1"].as_str().unwrap().to_owned()).collect()
}

fn sha1(text: &str) -> String {
    compeval::digest::Digest::hash_bytes(text.as_bytes()).sha1.full()
}

#[test]
fn only_results_that_no_run_would_use_are_collected() {
    for seed in generator::seeds(HISTORIES) {
        let mut study = Study::new(seed);
        study.run(&[]);
        for _ in 0..10 {
            study.step();
        }
        let case = Case(seed, study.steps.join("\n"));
        let before = study.used();
        study.gc(&[]).exit(0);
        let after = study.used();
        let lost: Vec<_> = before.difference(&after).collect();
        assert!(lost.is_empty(), "seed {seed}: lost {lost:#?}");
        let needless = study.needless(&study.remaining());
        assert!(needless.is_empty(), "seed {seed}: kept {needless:#?}");
        study.gc(&[]).exit(0);
        assert_eq!(study.used(), after, "a second collection takes nothing away");
        drop(case);
    }
}
