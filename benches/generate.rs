//! Generates a task of any number of calls, in a repository of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A task that was generated.
pub(crate) struct Generated {
    /// The directory that holds it.
    pub(crate) task: PathBuf,
    /// The files to be given as its inputs.
    pub(crate) inputs: Vec<PathBuf>,
}

/// Makes a task with this number of calls, one at least, in a new directory below this one.
pub(crate) fn task(dir: &Path, calls: usize) -> Generated {
    let task = dir.join("task");
    let computation = task.join("computations/join");
    fs::create_dir_all(&computation).unwrap();
    write(&computation.join("inputs"), "a\nb\n");
    write(&computation.join("outputs"), "joined\n");
    let exec = "#!/bin/sh\nread -r a <\"$1\"\nread -r b <\"$2\"\necho \"$a$b\" >\"$3\"\n";
    write(&computation.join("exec"), exec);
    fs::set_permissions(computation.join("exec"), fs::Permissions::from_mode(0o755)).unwrap();

    // As many pairs of inputs as there may be calls that read two.
    let count = calls.isqrt() + 1;
    let names: Vec<String> = (0..count).map(|at| format!("x{at}")).collect();
    write(&task.join("inputs"), &(names.join("\n") + "\n"));
    let inputs: Vec<PathBuf> = names.iter().map(|name| dir.join(name)).collect();
    for (at, input) in inputs.iter().enumerate() {
        // Of one length, so that no two calls make the same.
        write(input, &format!("{at:06}\n"));
    }
    let mut pairs = (0..count).flat_map(|a| (0..count).map(move |b| [a, b]));
    tree(&task.join("workflow"), calls, &mut pairs);

    git(&task, &["init", "--quiet"]);
    git(&task, &["add", "--all"]);
    git(&task, &["-c", "user.name=b", "-c", "user.email=b@example.org", "commit", "-qm", "task"]);
    Generated { task, inputs }
}

/// Writes an expression with this number of calls: a binary tree of joins, with two task inputs at its ends.
fn tree(dir: &Path, calls: usize, pairs: &mut impl Iterator<Item = [usize; 2]>) {
    node(dir, "computation", "join");
    write(&dir.join("outputs"), "0\n");
    let below = calls - 1;
    let halves = [below.div_ceil(2), below / 2];
    let pair = if halves.contains(&0) { pairs.next().unwrap() } else { [0, 0] };
    for (at, half) in halves.into_iter().enumerate() {
        let branch = dir.join(format!("inputs/{at:02}-{}", ["left", "right"][at]));
        match half {
            0 => node(&branch, "input", &format!("x{}", pair[at])),
            _ => tree(&branch, half, pairs),
        }
    }
}

fn node(dir: &Path, kind: &str, value: &str) {
    fs::create_dir_all(dir).unwrap();
    write(&dir.join("kind"), &format!("{kind}\n"));
    write(&dir.join("value"), &format!("{value}\n"));
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

fn git(dir: &Path, args: &[&str]) {
    assert!(Command::new("git").arg("-C").arg(dir).args(args).status().unwrap().success());
}
