//! The interpreters that scripts name: where their links lead to, and where they are installed.

use std::env;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// How many symbolic links are followed from an interpreter.
const MAX_LINKS: usize = 16;

/// Returns the interpreter that the first line of a script names.
pub fn interpreter(script: &[u8]) -> Option<PathBuf> {
    let line = script.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.split_whitespace().next().map(PathBuf::from)
}

/// Returns what has to be granted for a program to work: the directory that it is installed in, with its libraries,
/// or else only the program. That is `/opt/venv` for `/opt/venv/bin/python`.
pub fn installation(program: &Path) -> &Path {
    let home = env::var_os("HOME").map(PathBuf::from);
    let bin = program.parent().filter(|dir| dir.ends_with("bin"));
    let prefix = bin.and_then(Path::parent).filter(|dir| dir.parent().is_some());
    let prefix = prefix.filter(|dir| home.as_deref() != Some(*dir) && dir.join("lib").is_dir());
    prefix.unwrap_or(program)
}

/// Returns a path, where it leads to if that is a symbolic link, and so on; the last one may not exist.
pub fn links(path: &Path) -> Vec<PathBuf> {
    let mut paths = vec![path.to_owned()];
    while let Some(last) = paths.last()
        && let Ok(target) = fs::read_link(last)
        && paths.len() <= MAX_LINKS
    {
        let mut next = PathBuf::new();
        for part in last.parent().unwrap_or(last).join(target).components() {
            match part {
                Component::ParentDir => drop(next.pop()),
                part => next.push(part),
            }
        }
        paths.push(next);
    }
    paths
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_script_names_its_interpreter() {
        assert_eq!(interpreter(b"#! /opt/py -u\nx"), Some("/opt/py".into()));
        assert_eq!(interpreter(b"\x7fELF"), None);
    }

    #[test]
    fn a_program_is_installed_with_its_libraries() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("bin/tool");
        assert_eq!(installation(&program), program);
        fs::create_dir(dir.path().join("lib")).unwrap();
        assert_eq!(installation(&program), dir.path());
        assert_eq!(installation(Path::new("/bin/sh")), Path::new("/bin/sh"));
    }

    #[test]
    fn links_are_followed_until_they_end_or_lead_round() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("bin")).unwrap();
        symlink("python3", at("bin/python")).unwrap();
        symlink("../base/python3", at("bin/python3")).unwrap();
        let found = links(&at("bin/python"));
        assert_eq!(found, ["bin/python", "bin/python3", "base/python3"].map(at));
        symlink("round", at("round")).unwrap();
        assert_eq!(links(&at("round")).len(), MAX_LINKS + 1);
    }
}
