//! `--at` gives the same as a checkout.

use std::fs;

use crate::generator::{Random, seeds};
use crate::lab::{Lab, Library};
use crate::repository::{self, LAB};

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0]";

/// Commits changes of a task and of the repositories of its computations; returns the commits.
fn history(lab: &Lab, library: Library, random: &mut Random) -> Vec<String> {
    let task = lab.path("task");
    for number in 0..5 {
        let name = random.one_of(&["add", "mul"]);
        let dir = task.join("computations").join(name);
        match random.below(4) {
            0 if !dir.join("real").exists() => {
                fs::rename(dir.join("exec"), dir.join("real")).unwrap();
                std::os::unix::fs::symlink("real", dir.join("exec")).unwrap();
            }
            1 => fs::write(dir.join("notes"), format!("{number}\n")).unwrap(),
            2 => fs::write(task.join("workflow/inputs/01-x/value"), random.one_of(&["x\n", "y\n"]))
                .unwrap(),
            _ => {
                let exec = fs::read_to_string(dir.join("exec")).unwrap();
                let more = format!("n=$(cat \"$3\"); echo $((n + {number} + 1)) >\"$3\"\n");
                fs::write(dir.join("exec"), exec + &more).unwrap();
            }
        }
        let submodule = match library {
            Library::Plain => None,
            Library::Submodule => Some(task.join("computations")),
            Library::Submodules => Some(dir),
        };
        submodule.iter().for_each(|dir| drop(repository::commit(dir, LAB, "more\n")));
        repository::commit(&task, LAB, &format!("number {number}\n"));
    }
    lab.git("task", &["log", "--format=%H"]).lines().map(str::to_owned).collect()
}

#[test]
fn a_task_at_a_commit_equals_its_checkout() {
    let libraries = [Library::Plain, Library::Submodule, Library::Submodules];
    for (seed, library) in seeds(3).zip(libraries.into_iter().cycle()) {
        let lab = Lab::task(TASK).commit_with(library);
        let commits = history(&lab, library, &mut Random::new(seed));
        let storage = lab.path("storage");
        for commit in &commits {
            let at = lab.ce_run(&["--no-sync", "--at", commit]).exit(0).stdout;
            let results = lab.results();
            fs::remove_dir_all(&storage).unwrap();
            lab.git("task", &["checkout", "-q", "--force", commit]);
            lab.git(
                "task",
                &["submodule", "--quiet", "update", "--init", "--force", "--recursive"],
            );
            let checkout = lab.ce_run(&["--no-sync"]).exit(0).stdout;
            assert_eq!(at, checkout, "CE_SEED={seed}: {commit}");
            assert_eq!(results, lab.results(), "CE_SEED={seed}: {commit}");
            fs::remove_dir_all(&storage).unwrap();
        }
    }
}
