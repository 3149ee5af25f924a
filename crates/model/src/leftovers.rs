//! Files that other programs leave in directories: caches, swap files, backups, and what file managers keep. They were not
//! added on purpose.

use std::path::Path;

/// Names of files and directories that are left.
const NAMES: [&str; 7] = [
    "__pycache__",
    ".DS_Store",
    "Thumbs.db",
    "desktop.ini",
    ".ipynb_checkpoints",
    ".pytest_cache",
    ".directory",
];

/// Whether a file is left by another program: by its name, or by the name of a directory around it.
pub fn is_leftover(path: &Path) -> bool {
    let is_left = |name: &str| {
        let is_swap = |end: &str| name.starts_with('.') && name.ends_with(end);
        NAMES.contains(&name)
            || [".swp", ".swo", ".swx"].into_iter().any(is_swap)
            || name.ends_with('~') && name.len() > 1
            || name.starts_with(".#")
            || name.starts_with("._")
            || name.ends_with(".pyc")
    };
    path.iter().filter_map(|name| name.to_str()).any(is_left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_caches_swap_files_and_backups_are_leftovers() {
        for name in [
            "computations/a/__pycache__/m.cpython-312.pyc",
            ".DS_Store",
            "a/.DS_Store",
            ".exec.swp",
            "exec~",
            "a/.#notes",
            "._x",
        ] {
            assert!(is_leftover(Path::new(name)), "{name}");
        }
        for name in ["exec", "a/data.swp", "~", "x~y", ".hidden", "pycache", "Thumbs.db.csv", "a.b"]
        {
            assert!(!is_leftover(Path::new(name)), "{name}");
        }
    }
}
