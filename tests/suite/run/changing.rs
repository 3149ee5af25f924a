//! A work tree that changes while its task is loaded: a job has the outputs of the commit in its name, or there is none.
//!
//! The oracle is a fresh clone of that commit, evaluated in a storage of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::generator::{Random, seeds};
use crate::lab::Lab;

/// The numbers of the commits, which have another number in each file.
const VERSIONS: usize = 3;

const ATTRIBUTES: [&str; 6] = [
    "",
    "* text=auto\n",
    "own/* text eol=crlf\nworkflow/** text eol=crlf\n",
    "own/* ident\nexec ident\n",
    "own/data filter=number\nworkflow/where filter=number\nworkflow.ce filter=number\n",
    "own/data working-tree-encoding=ISO-8859-1 text\n",
];

/// A task whose files depend on a version, with settings of Git that are made up.
struct Study {
    lab: Lab,
    /// The directory of the task, whose last part is `task`.
    task: PathBuf,
    commits: Vec<String>,
    is_text: bool,
}

/// Runs git in a directory of a laboratory, where it may fail.
fn git(lab: &Lab, dir: &Path, arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    git.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    git.env("HOME", lab.path("home")).env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{who}_NAME"), "Lab").env(format!("GIT_{who}_EMAIL"), "lab@lab");
    }
    let output = git.current_dir(dir).args(["-c", "protocol.file.allow=always"]).args(arguments);
    let output = output.output().unwrap();
    let is_done = output.status.success();
    is_done.then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    // A checkout may remove the directory at any time.
    drop(fs::create_dir_all(path.parent().unwrap()));
    drop(fs::write(path, text));
}

/// Writes the files of a version.
fn write_version(dir: &Path, is_text: bool, version: usize) {
    write(dir, "own/data", &format!("data {version} \u{e9}\nline\n$Id$\n"));
    write(dir, "own/x", &format!("default {version}\n"));
    if is_text {
        let levels = format!("1 2 {version}0");
        let text = format!(
            "Inputs: x = OWN('own/x')\nSWEEP((join k x OWN('own/data')) :over k {levels} :where 'k > 1')\n"
        );
        write(dir, "workflow.ce", &text);
    } else {
        let nodes = [("00-k", "input", "k"), ("01-x", "input", "x"), ("02-d", "file", "own/data")];
        for (node, kind, value) in nodes {
            write(dir, &format!("workflow/inputs/00-join/inputs/{node}/kind"), kind);
            write(dir, &format!("workflow/inputs/00-join/inputs/{node}/value"), value);
        }
        write(dir, "workflow/kind", "sweep\n");
        write(dir, "workflow/inputs/00-join/kind", "computation\n");
        write(dir, "workflow/inputs/00-join/value", "join\n");
        write(dir, "workflow/factors/00-k", &format!("1\n2\n{version}0\n"));
        write(dir, "workflow/where", "k > 1\n");
        write(dir, "inputs", "x\n");
        write(dir, "defaults/x", &format!("default {version}\n"));
    }
}

/// Writes the computation of a version.
fn write_computation(library: &Path, version: usize) {
    for (name, text) in [("inputs", "k\nx\nd\n"), ("outputs", "all\n")] {
        write(library, &format!("join/{name}"), text);
    }
    let exec = format!(
        "#!/bin/sh\n# {version} $Id$\n(cat \"$1\" \"$2\" \"$3\"; echo code {version}) >\"$4\"\n"
    );
    write(library, "join/exec", &exec);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(library.join("join/exec"), mode).unwrap();
}

impl Study {
    fn new(random: &mut Random) -> Self {
        let lab = Lab::empty();
        let mut task = lab.path("task");
        let is_text = random.below(2) == 0;
        let must = |dir: &Path, arguments: &[&str]| {
            git(&lab, dir, arguments).unwrap_or_else(|| panic!("{arguments:?}"))
        };
        let has_submodule = random.below(3) == 0;
        let library = lab.path("library");
        must(&task, &["init", "-q"]);
        for (key, program) in [("clean", "sed s/9/0/"), ("smudge", "sed s/0/9/")] {
            must(&task, &["config", "--global", &format!("filter.number.{key}"), program]);
        }
        must(&task, &["config", "--global", "protocol.file.allow", "always"]);
        if random.below(4) == 0 {
            must(&task, &["config", "core.autocrlf", random.one_of(&["true", "input"])]);
        }
        write(&task, ".gitattributes", random.one_of(&ATTRIBUTES));
        write(&task, ".gitignore", "*.o\n/exclude.tsv\nlocal\nworkflow/exclude.tsv\naccess\n");
        if has_submodule {
            fs::create_dir(&library).unwrap();
            must(&library, &["init", "-q"]);
        }
        let mut commits = Vec::new();
        for version in 1..=VERSIONS {
            if has_submodule {
                write_computation(&library, version);
                must(&library, &["add", "-A"]);
                must(&library, &["commit", "-q", "-m", "code"]);
                if version == 1 {
                    let url = library.to_str().unwrap();
                    must(&task, &["submodule", "--quiet", "add", url, "computations"]);
                } else {
                    must(&task.join("computations"), &["pull", "-q", "origin", "HEAD"]);
                }
            } else {
                write_computation(&task.join("computations"), version);
            }
            write_version(&task, is_text, version);
            must(&task, &["add", "-A"]);
            must(&task, &["commit", "-q", "-m", "version"]);
            commits.push(must(&task, &["rev-parse", "HEAD"]));
        }
        if random.below(4) == 0 && !has_submodule {
            let other = lab.path("linked/task");
            must(&task, &["worktree", "add", "-q", "--detach", other.to_str().unwrap()]);
            task = other;
        }
        // As a checkout makes them, which converts them.
        for name in ["own", "workflow", "workflow.ce"] {
            let path = task.join(name);
            drop(if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) });
        }
        must(&task, &["checkout", "-q", "--", "."]);
        // Ignored files that would be read if they were committed.
        write(&task, "workflow/exclude.tsv", "k\n2\n");
        if !has_submodule {
            write(&task, "computations/join/x.o", "");
            write(&task, "computations/join/access", "network\n");
        }
        match random.below(6) {
            0 => drop(git(&lab, &task, &["sparse-checkout", "set", "workflow", "computations"])),
            1 => drop(git(&lab, &task, &["update-index", "--assume-unchanged", "own/data"])),
            2 => drop(git(&lab, &task, &["update-index", "--skip-worktree", "own/data"])),
            3 => drop(git(&lab, &task, &["config", "core.fileMode", "false"])),
            _ => {}
        }
        // Files that are as young as the index would have to be read, and only the filter could tell what of.
        thread::sleep(Duration::from_millis(20));
        git(&lab, &task, &["status"]).unwrap();
        Self { lab, task, commits, is_text }
    }

    /// Does something to the work tree. Returns the commit that it may have put at HEAD.
    fn change(&self, random: &mut Random) -> Option<String> {
        let (lab, task) = (&self.lab, &self.task);
        let target = random.below(VERSIONS);
        let commit = self.commits[target].clone();
        match random.below(9) {
            0 | 1 => {
                drop(git(lab, task, &["checkout", "-q", "--force", "--detach", &commit]));
                drop(git(lab, task, &["submodule", "--quiet", "update", "--force"]));
                return Some(commit);
            }
            2 => write(task, "own/data", "edited\n"),
            3 => write(task, "computations/join/exec", "#!/bin/sh\necho edited >\"$4\"\n"),
            4 => write_version(task, self.is_text, target + 7),
            5 => drop(git(lab, task, &["checkout", "-q", "--", "."])),
            6 => drop(git(lab, task, &["add", "-A"])),
            7 => {
                drop(git(lab, task, &["reset", "-q", "--hard", &commit]));
                return Some(commit);
            }
            _ => drop(git(lab, task, &["stash", "-q"])),
        }
        None
    }

    /// The jobs in a storage: the names and contents of their outputs.
    fn jobs(&self, storage: &str) -> BTreeMap<String, Vec<u8>> {
        let jobs = self.lab.path(storage).join("t_task");
        let mut files = crate::lab::files(&jobs);
        files.retain(|name, _| !name.contains("/record/"));
        files
    }

    /// The job of a fresh clone at a commit.
    fn job_of_clone(&self, commit: &str) -> BTreeMap<String, Vec<u8>> {
        let place = self.lab.path("clones").join(commit);
        fs::create_dir_all(&place).unwrap();
        let source = self.lab.path("task");
        let clone = ["clone", "-q", "--no-checkout", source.to_str().unwrap(), "task"];
        git(&self.lab, &place, &clone).unwrap();
        let task = place.join("task");
        git(&self.lab, &task, &["checkout", "-q", "--detach", commit]).unwrap();
        git(&self.lab, &task, &["submodule", "--quiet", "update", "--init"]).unwrap();
        let storage = format!("clones/{commit}/storage");
        let mut run = self.lab.command("ce-run");
        run.current_dir(&task).arg(self.lab.path(&storage));
        self.lab.finish(&mut run).exit(0);
        self.jobs(&storage)
    }
}

/// Runs the task in storages of their own while it changes, and compares.
fn check(seed: u64) -> (usize, usize) {
    let mut random = Random::new(seed);
    let study = Study::new(&mut random);
    let (lab, mut expected) = (&study.lab, BTreeMap::new());
    let (mut stored, mut refused) = (0, 0);
    for round in 0..4 {
        let storage = format!("storage{round}");
        let before = git(lab, &study.task, &["rev-parse", "HEAD"]).unwrap();
        let (heads, is_over) = (Mutex::new(BTreeSet::from([before])), AtomicBool::new(false));
        let mut changes = Random::new(seed * 100 + round);
        let ran = thread::scope(|scope| {
            if round > 0 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        heads.lock().unwrap().extend(study.change(&mut changes));
                        thread::sleep(Duration::from_millis(changes.below(12) as u64));
                    }
                });
            }
            let mut run = lab.command("ce-run");
            run.current_dir(&study.task).arg(lab.path(&storage));
            let ran = lab.finish(&mut run);
            is_over.store(true, Ordering::Relaxed);
            ran
        });
        let (jobs, status) = (study.jobs(&storage), ran.status.code());
        let context = format!("CE_SEED={seed} round {round}: {}", ran.stderr);
        assert!(matches!(status, Some(0 | 2)), "{context}");
        if jobs.is_empty() {
            assert!(round > 0, "{context}");
            refused += 1;
            continue;
        }
        assert_eq!(status, Some(0), "{context}");
        let digits = jobs.keys().next().unwrap().split('/').next().unwrap().to_owned();
        let heads = heads.into_inner().unwrap();
        let commit = heads.iter().find(|commit| commit.starts_with(&digits));
        let commit = commit.unwrap_or_else(|| panic!("HEAD was never {digits}: {context}"));
        let right = expected.entry(commit.clone()).or_insert_with(|| study.job_of_clone(commit));
        assert_eq!(&jobs, right, "{context}");
        stored += 1;
    }
    (stored, refused)
}

#[test]
fn the_job_of_a_changing_work_tree_belongs_to_a_commit() {
    let counts: Vec<_> = seeds(4).map(check).collect();
    let stored: usize = counts.iter().map(|(stored, _)| stored).sum();
    assert!(stored > 0 || counts.len() == 1, "{counts:?}");
}
