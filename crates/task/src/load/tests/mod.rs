//! The rules of tasks: each file is loaded from a directory, without a repository and without a program.

mod accepted;
mod library;
mod messages;
mod nodes;
mod output_names;
mod places;
mod sweep_names;
mod sweeps;
mod text_sweeps;
mod texts;
mod unreadable;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use ce_git::{Changes, Snapshot, TreePath};
use ce_model::digest::ObjectId;
use ce_model::exit::Explain;
use ce_model::name::TreeName;
use ce_model::task::{FileContents, LoadedFrom, RecordedTree};
use tempfile::TempDir;

use super::problems::LoadFault;
use super::source::{Located, SourceVersion, TaskSource};
use super::{LoadError, Loaded, read};

/// The files of a directory, whose versions are all the same.
pub(super) struct TestFiles(pub(super) Snapshot);

fn id() -> ObjectId {
    "1234567890123456789012345678901234567890".parse().unwrap()
}

impl TaskSource for TestFiles {
    fn commit(&mut self) -> Result<ObjectId, LoadFault> {
        Ok(id())
    }

    fn task(&mut self) -> Result<TreePath, LoadFault> {
        self.0.task()
    }

    fn find(&mut self, dir: &TreePath, name: &str) -> Result<Located, LoadFault> {
        TaskSource::find(&mut self.0, dir, name)
    }

    fn holds(&mut self, dir: &TreePath, name: &str) -> Result<bool, LoadFault> {
        self.0.holds(dir, name)
    }

    fn list(&mut self, dir: &TreePath) -> Result<Vec<OsString>, LoadFault> {
        TaskSource::list(&mut self.0, dir)
    }

    fn read_at_most(
        &mut self,
        dir: &TreePath,
        name: &str,
        most: u64,
    ) -> Result<Vec<u8>, LoadFault> {
        self.0.read_at_most(dir, name, most)
    }

    fn version(&mut self, _: &TreePath) -> Result<SourceVersion, LoadFault> {
        Ok(SourceVersion { commit: id(), tree: id(), dirty: false, checked_out: None })
    }

    fn file_version(&mut self, dir: &TreePath, _: &str) -> Result<SourceVersion, LoadFault> {
        self.version(dir)
    }

    fn text_version(&mut self, _: &str, _: &str) -> Result<SourceVersion, LoadFault> {
        Ok(SourceVersion { commit: id(), tree: id(), dirty: false, checked_out: None })
    }

    fn contents(&mut self, _: &TreePath, _: &str) -> Result<FileContents, LoadFault> {
        Ok(FileContents::Blob(id()))
    }

    fn recorded(&mut self, name: &TreeName) -> Result<RecordedTree, LoadFault> {
        match name.source() {
            "." => Ok(RecordedTree { commit: id(), uncommitted: None }),
            _ => Err(LoadFault::Missing),
        }
    }

    fn changes(&mut self) -> Result<Changes, LoadFault> {
        Ok(Changes::default())
    }
}

/// The directory of a task, whose library has `add`, `mul` and `divmod`.
struct TestTask(TempDir);

impl TestTask {
    /// A task without a workflow.
    fn empty() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("task")).unwrap();
        Self(root)
            .computation("add", "a b", "sum")
            .computation("mul", "a b", "product")
            .computation("divmod", "dividend divisor", "quotient remainder")
    }

    /// A task whose workflow is this text.
    fn text(text: &str) -> Self {
        Self::empty().file("workflow.ce", text)
    }

    /// A task whose workflow is `(add (mul x 'stop words') x)`, in directories.
    fn base() -> Self {
        Self::empty()
            .file("inputs", "x\nstop words\n")
            .node("", "computation", "add")
            .call("inputs/00-mul/", "mul", &["x", "stop words"])
            .node("inputs/01-x/", "input", "x")
    }

    /// A task whose root is a sweep with these files. Its body is yet to be written.
    fn sweep(inputs: &str, files: &[(&str, &str)]) -> Self {
        let task = Self::empty().file("inputs", inputs.replace(' ', "\n")).node("", "sweep", "");
        files.iter().fold(task, |task, (name, text)| task.file(&format!("workflow/{name}"), text))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join("task").join(name)
    }

    fn file(self, name: &str, contents: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
        self
    }

    fn mode(self, name: &str, mode: u32) -> Self {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    /// Removes a file or directory.
    fn without(self, name: &str) -> Self {
        let path = self.path(name);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        self
    }

    fn link(self, name: &str, target: &str) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }

    fn rename(self, name: &str, new: &str) -> Self {
        fs::rename(self.path(name), self.path(name).with_file_name(new)).unwrap();
        self
    }

    /// Adds a computation in a directory.
    fn computation(self, name: &str, inputs: &str, outputs: &str) -> Self {
        let lines = |names: &str| names.replace(' ', "\n");
        let dir = format!("computations/{name}");
        self.file(&format!("{dir}/inputs"), lines(inputs))
            .file(&format!("{dir}/outputs"), lines(outputs))
            .file(&format!("{dir}/exec"), "#!/bin/sh\n")
            .mode(&format!("{dir}/exec"), 0o755)
    }

    /// Adds a computation in an executable file.
    fn script(self, name: &str, text: &str) -> Self {
        let file = format!("computations/{name}");
        self.file(&file, text).mode(&file, 0o755)
    }

    /// Writes a node of the workflow: its kind, and its value unless that is empty.
    fn node(self, place: &str, kind: &str, value: &str) -> Self {
        let task = self.file(&format!("workflow/{place}kind"), kind);
        if value.is_empty() { task } else { task.file(&format!("workflow/{place}value"), value) }
    }

    /// Writes a node of a computation that reads inputs of these names, in order. The names are the labels.
    fn call(self, place: &str, computation: &str, inputs: &[&str]) -> Self {
        let task = self.node(place, "computation", computation);
        inputs.iter().enumerate().fold(task, |task, (number, name)| {
            task.node(&format!("{place}inputs/{number:02}-{name}/"), "input", name)
        })
    }

    fn load(&self) -> Result<Loaded, LoadError> {
        let dir = self.path("").canonicalize().unwrap();
        let mut files = TestFiles(Snapshot::of_files(&dir));
        read(&dir, &dir, &mut files, LoadedFrom::Commit(None))
    }

    /// The problems and warnings of the task, as programs print them, but without indentation. Empty if there are none.
    fn told(&self) -> String {
        let (problems, warnings) = match self.load() {
            Ok(loaded) => (Vec::new(), loaded.warnings),
            Err(LoadError::Problems { problems, warnings, .. }) => (problems, warnings),
            Err(error) => panic!("{error}"),
        };
        let problems = problems.iter().map(|it| (it.to_string(), it.fault.hint()));
        let warnings = warnings.iter().map(|it| (format!("warning: {it}"), it.oddity.hint()));
        let texts = problems.chain(warnings).flat_map(|(message, hint)| {
            [Some(message), hint.map(|hint| format!("try: {hint}"))].into_iter().flatten()
        });
        let texts: Vec<String> = texts.collect();
        let lines: Vec<&str> =
            texts.iter().flat_map(|it| it.split('\n')).map(str::trim_start).collect();
        lines.join("\n")
    }

    /// Checks that the task has exactly these problems and warnings.
    #[track_caller]
    fn tells(&self, expected: &str) {
        assert_eq!(self.told(), expected);
    }
}
