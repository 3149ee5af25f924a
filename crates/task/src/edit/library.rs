//! The library: computations that the programs carry, and that are copied into a task to be its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ce_model::suggest::nearest;
use ce_model::task::LIBRARY;

use super::init::{NewFile, make_files};
use super::{EditError, real};
use crate::load;

/// A computation of the library.
#[derive(Debug)]
pub struct LibraryComputation {
    pub name: &'static str,
    /// What it makes, in a line.
    pub help: &'static str,
    /// A call of it in a workflow.
    pub example: &'static str,
    /// Its file, or the files of its directory.
    files: &'static [NewFile<'static>],
}

/// A file of the library, given by the parts of its path in the task, and in the library.
macro_rules! text {
    ([$($path:literal),+], [$($from:literal),+], $is_program:literal) => {
        NewFile {
            path: concat!("computations/", $($path),+),
            contents: include_str!(concat!("../../../../computations-example/", $($from),+)),
            is_program: $is_program,
        }
    };
}

/// The file of a computation.
macro_rules! program {
    ($file:literal) => {
        &[text!([$file], [$file], true)]
    };
}

/// The files of a computation's directory. A module that several computations have stands in the library of one of them.
macro_rules! directory {
    ($name:literal $(, $module:literal from $owner:literal)*) => {
        &[
            text!([$name, "/inputs"], [$name, "/inputs"], false),
            text!([$name, "/outputs"], [$name, "/outputs"], false),
            text!([$name, "/exec"], [$name, "/exec"], true),
            $(text!([$name, "/", $module], [$owner, "/", $module], false),)*
        ]
    };
}

/// All of them, by their names.
pub const LIBRARY_COMPUTATIONS: [LibraryComputation; 12] = [
    LibraryComputation {
        name: "build-c",
        help: "a program from a directory of C files (by cc)",
        example: "(build-c OWN('data/source') '-O2')",
        files: directory!("build-c"),
    },
    LibraryComputation {
        name: "compile-c",
        help: "a program from a C file (by cc)",
        example: "(compile-c OWN('data/program.c'))",
        files: directory!("compile-c"),
    },
    LibraryComputation {
        name: "container-image",
        help: "the system of a container's image (by skopeo and umoci)",
        example: "(container-image OWN('data/image'))",
        files: program!("container-image.py"),
    },
    LibraryComputation {
        name: "derive-columns",
        help: "a table with more columns, computed from others",
        example: "(derive-columns table 'speed = size / seconds')",
        files: directory!("derive-columns", "tables.py" from "plot"),
    },
    LibraryComputation {
        name: "field",
        help: "a value of a file of JSON, TOML or YAML",
        example: "(field OWN('data/config.json') 'model/depth')",
        files: program!("field.py"),
    },
    LibraryComputation {
        name: "measure-run",
        help: "the seconds that a program says it took",
        example: "(measure-run program threads size '3' replicate 'red')",
        files: directory!("measure-run"),
    },
    LibraryComputation {
        name: "merge-tables",
        help: "one table of two",
        example: "(merge-tables old 'before' new 'after' 'version')",
        files: directory!("merge-tables", "tables.py" from "plot"),
    },
    LibraryComputation {
        name: "plot",
        help: "a figure of a table: groups, scatter or history (by gnuplot)",
        example: "(plot table 'groups' 'threads' 'seconds' 'size')",
        files: directory!(
            "plot",
            "tables.py" from "plot",
            "samples.py" from "plot",
            "figures.py" from "plot",
            "groups.py" from "plot",
            "history.py" from "plot",
            "points.py" from "plot",
            "scatter.py" from "plot",
            "steps.py" from "plot"
        ),
    },
    LibraryComputation {
        name: "python-packages",
        help: "Python packages from a lock file with hashes (by pip)",
        example: "(python-packages OWN('requirements.lock'))",
        files: program!("python-packages.sh"),
    },
    LibraryComputation {
        name: "read-benchmarks",
        help: "a table of what Go, hyperfine, pytest or Google Benchmark says",
        example: "(read-benchmarks OWN('data/results.json'))",
        files: program!("read-benchmarks.py"),
    },
    LibraryComputation {
        name: "summarise-table",
        help: "medians, means and their intervals for each group of rows",
        example: "(summarise-table table 'threads' 'seconds')",
        files: directory!("summarise-table", "tables.py" from "plot", "samples.py" from "plot"),
    },
    LibraryComputation {
        name: "time-program",
        help: "the processor time of a program",
        example: "(time-program program '1000' replicate 'red')",
        files: directory!("time-program"),
    },
];

/// A computation of the library in a task.
#[derive(Debug)]
pub struct AddedComputation {
    pub computation: &'static LibraryComputation,
    /// Its file or directory, relative to the task.
    pub place: PathBuf,
    /// Its files that were there, with other contents: their paths relative to the task, what they have, and what the library has.
    pub changed: Vec<ChangedFile>,
    /// Whether something of it was not there.
    pub is_new: bool,
}

/// A file of a task that differs from the library's.
#[derive(Debug)]
pub struct ChangedFile {
    /// Its path, relative to the task.
    pub path: &'static str,
    pub own: String,
    pub library: &'static str,
}

impl LibraryComputation {
    /// The computation of this name.
    fn named(name: &str) -> Result<&'static Self, EditError> {
        let found = LIBRARY_COMPUTATIONS.iter().find(|it| it.name == name);
        found.ok_or_else(|| {
            let names = LIBRARY_COMPUTATIONS.map(|it| it.name.to_owned());
            EditError::NotInLibrary { name: name.to_owned(), nearest: nearest(name, &names) }
        })
    }

    /// Its file or directory, relative to the task.
    fn place(&self) -> PathBuf {
        match self.files {
            [file] => file.path.into(),
            _ => Path::new(LIBRARY).join(self.name),
        }
    }

    /// Looks what a task has of it.
    fn look(&'static self, task: &Path) -> Result<AddedComputation, EditError> {
        let (mut changed, mut is_new) = (Vec::new(), false);
        for file in self.files {
            let path = task.join(file.path);
            // What a link leads to is not the task's own.
            if path.symlink_metadata().is_ok_and(|about| !about.is_file()) {
                return Err(EditError::Exists(vec![file.path.into()]));
            }
            match fs::read(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => is_new = true,
                Err(source) => return Err(EditError::Read { path, source }),
                Ok(own) if own == file.contents.as_bytes() => {}
                Ok(own) => {
                    let own = String::from_utf8_lossy(&own).into_owned();
                    changed.push(ChangedFile { path: file.path, own, library: file.contents });
                }
            }
        }
        Ok(AddedComputation { computation: self, place: self.place(), changed, is_new })
    }
}

/// Looks what a task has of these computations of the library.
///
/// # Errors
///
/// Fails if the library has no computation of a name, or a file cannot be read.
pub fn compare(dir: &Path, names: &[String]) -> Result<Vec<AddedComputation>, EditError> {
    let task = real(dir)?;
    names.iter().map(|name| LibraryComputation::named(name)?.look(&task)).collect()
}

/// Copies computations of the library into a task, unless it has them.
///
/// # Errors
///
/// Fails if the task has something else of a name, or a file was changed there, or cannot be written. Nothing is overwritten.
pub fn add(dir: &Path, names: &[String]) -> Result<Vec<AddedComputation>, EditError> {
    let (task, found) = (real(dir)?, compare(dir, names)?);
    let all = load::computation_places(&task);
    for added in &found {
        let mut others = all.iter().filter(|(name, _)| name.as_str() == added.computation.name);
        if let Some((_, other)) = others.find(|(_, other)| *other != added.place) {
            return Err(EditError::Exists(vec![other.clone()]));
        }
    }
    let changed = found.iter().filter(|it| !it.changed.is_empty());
    let changed: Vec<String> = changed.map(|it| it.computation.name.to_owned()).collect();
    if !changed.is_empty() {
        return Err(EditError::ChangedHere(changed));
    }
    for added in found.iter().filter(|it| it.is_new) {
        let files = added.computation.files.iter();
        let missing = files.filter(|file| task.join(file.path).symlink_metadata().is_err());
        make_files(&task, missing)?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computations_are_sorted_and_what_several_have_is_the_same_everywhere() {
        assert!(LIBRARY_COMPUTATIONS.is_sorted_by_key(|it| it.name));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../computations-example");
        for computation in &LIBRARY_COMPUTATIONS {
            for file in computation.files {
                let inside = file.path.strip_prefix("computations/").unwrap();
                assert_eq!(
                    fs::read_to_string(source.join(inside)).unwrap(),
                    file.contents,
                    "{inside}"
                );
            }
            if let [_, _, ..] = computation.files {
                let count = fs::read_dir(source.join(computation.name)).unwrap().count();
                assert_eq!(count, computation.files.len(), "{}", computation.name);
            }
            assert!(computation.example.starts_with(&format!("({}", computation.name)));
        }
    }
}
