//! The example task `arith`, evaluated once into a storage of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::lab::{copy, place};
use crate::repository::{self, LAB};

/// The example in a repository, and a storage with its results.
pub(crate) struct Arith {
    dir: tempfile::TempDir,
}

/// The arguments for evaluating the example.
pub(crate) const RUN: [&str; 6] = [
    "run",
    "--task",
    "copy/tasks-example/arith",
    "results",
    "copy/tasks-example/arith/data/x",
    "y",
];

/// The output of a program, and its exit code.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: i32,
}

impl Arith {
    /// Copies the example and its computations into a new repository and evaluates it.
    pub(crate) fn evaluated() -> Self {
        let arith = Self { dir: tempfile::tempdir_in(place()).unwrap() };
        let repository = arith.dir.path().join("copy");
        let computations = ["add", "divmod", "mul"].map(|it| format!("computations-example/{it}"));
        for part in computations.iter().map(String::as_str).chain(["tasks-example/arith"]) {
            fs::create_dir_all(repository.join(part).parent().unwrap()).unwrap();
            copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(part), &repository.join(part));
        }
        repository::init(&repository);
        repository::commit(&repository, LAB, "copy\n");
        assert_eq!(arith.evaluate().code, 0);
        arith
    }

    /// Evaluates the example; says on standard error how many calls were executed.
    pub(crate) fn evaluate(&self) -> Printed {
        self.evaluate_with("5\n")
    }

    /// Evaluates the example with another second input.
    pub(crate) fn evaluate_with(&self, y: &str) -> Printed {
        fs::write(self.dir.path().join("y"), y).unwrap();
        self.ce(&RUN)
    }

    /// Runs `ce` and kills it at an operation on the storage; tells whether it came so far.
    pub(crate) fn is_killed_at(&self, operation: usize, arguments: &[&str]) -> bool {
        let fault = format!("{operation}:KILL");
        self.command(arguments).env("CE_FAULT", fault).output().unwrap().status.code().is_none()
    }

    /// `ce` with these arguments, beside the storage.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ce"));
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env_clear()
            .envs([("PATH", std::env::var("PATH").unwrap()), ("USER", "tester".to_owned())])
            .stdin(Stdio::null());
        command
    }

    /// Runs `ce` beside the storage, which is called `results`.
    pub(crate) fn ce(&self, arguments: &[&str]) -> Printed {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap();
        Printed { out: text(output.stdout), err: text(output.stderr), code }
    }

    /// The only file that a pattern with `COMMIT` in it names, relative to the storage.
    pub(crate) fn name(&self, pattern: &str) -> String {
        let Some((owner, rest)) = pattern.split_once("/COMMIT/") else {
            return pattern.to_owned();
        };
        let entries = fs::read_dir(self.path(owner)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        // Beside it is the index of the commits.
        let commit: Vec<String> = names.filter(|name| name != "commits").collect();
        format!("{owner}/{}/{rest}", commit.concat())
    }

    /// Returns the path of a file of the storage.
    pub(crate) fn path(&self, pattern: &str) -> PathBuf {
        let storage = self.dir.path().join("results");
        if pattern.contains("/COMMIT/") {
            storage.join(self.name(pattern))
        } else {
            storage.join(pattern)
        }
    }

    /// Replaces the contents of a file in place, even if it is read-only, with its old time stamp.
    pub(crate) fn overwrite(&self, path: &Path, contents: &str) {
        let modified = fs::metadata(path).unwrap().modified().unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(path, contents).unwrap();
        fs::File::open(path).unwrap().set_modified(modified).unwrap();
    }
}
