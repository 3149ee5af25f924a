//! Code that the targets share: a directory in memory, with a storage that is made anew each time and files beside it that
//! nobody may touch.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use compeval::digest::Digest;
use compeval::task::Computation;
use tempfile::TempDir;

#[path = "../../tests/suite/repository.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod repository;
pub mod texts;

/// The call whose files are all in the storage.
pub const CALL: &str = "c_divmod/5efbc68dc50d";
/// The inputs of that call, as names show them.
pub const INPUTS: &str = "ad48103e4fc7_5d9474c0309b";

/// Where a target works.
pub struct Ground {
    root: TempDir,
    storage: Files,
    outside: Files,
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A directory of the project.
fn project(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// All files and links below a directory with their contents, without these names.
fn files(dir: &Path, but: &[&str]) -> Files {
    let entries = walkdir::WalkDir::new(dir).into_iter();
    let entries = entries.filter_entry(|entry| !but.iter().any(|name| entry.file_name() == *name));
    let files = entries.map(Result::unwrap).filter(|entry| !entry.file_type().is_dir());
    let file = |entry: walkdir::DirEntry| {
        let name = entry.path().strip_prefix(dir).unwrap().to_owned();
        (name, fs::read(entry.path()).unwrap_or_default())
    };
    files.map(file).collect()
}

/// Writes a file, and makes the directories that it is in.
pub fn put(path: &Path, contents: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

impl Ground {
    /// A directory with the task of `tests/storages/format-1`, committed.
    pub fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let root = tempfile::Builder::new().prefix("ce-fuzz-").tempdir_in(place).unwrap();
        let from = project("tests/storages/format-1");
        for (name, contents) in files(&from.join("task"), &[]) {
            let path = root.path().join("task").join(name);
            put(&path, &contents);
            if path.ends_with("exec") {
                fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        repository::commit(&root.path().join("task"), repository::LAB, "task\n");
        for name in ["outside/x", "outside/x.00", "outside/x.01", "x.00", "outside/h-b-1-1-t/beat"]
        {
            put(&root.path().join(name), b"outside\n");
        }
        put(&root.path().join("outside/node/kind"), b"input\n");
        put(&root.path().join("outside/node/value"), b"x\n");
        let mut ground =
            Self { root, storage: files(&from.join("storage"), &[]), outside: Files::new() };
        ground.outside = ground.look();
        ground
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Makes the storage as it is in `tests/storages/format-1`; returns where it is.
    pub fn storage(&self) -> PathBuf {
        let storage = self.path("storage");
        drop(fs::remove_dir_all(&storage));
        for (name, contents) in &self.storage {
            put(&storage.join(name), contents);
        }
        storage
    }

    /// The files beside storage and task.
    fn look(&self) -> Files {
        files(self.root.path(), &["storage", "task"])
    }

    /// Nothing outside of storage and task was touched.
    pub fn check(&self) {
        assert_eq!(self.look(), self.outside, "what is outside");
    }
}

impl Default for Ground {
    fn default() -> Self {
        Self::new()
    }
}

/// The computation of the call that is in the storage.
pub fn computation() -> Computation {
    let record = fs::read(
        project("tests/storages/format-1/storage")
            .join(CALL)
            .join("record")
            .join(INPUTS.to_owned() + ".json"),
    );
    let record: serde_json::Value = serde_json::from_slice(&record.unwrap()).unwrap();
    let text = |key: &str| record[key].as_str().unwrap().to_owned();
    Computation {
        name: text("computation").parse().unwrap(),
        commit: text("commit").parse().unwrap(),
        tree: text("tree").parse().unwrap(),
        inputs: vec!["dividend".to_owned(), "divisor".to_owned()],
        outputs: vec!["quotient".to_owned(), "remainder".to_owned()],
        dirty: false,
        access: Default::default(),
        checked_out: None,
        file: None,
    }
}

/// The contents of the inputs of that call.
pub fn inputs() -> [Digest; 2] {
    [Digest::hash_bytes(b"17\n"), Digest::hash_bytes(b"5\n")]
}
