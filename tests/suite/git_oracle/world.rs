//! A repository with a submodule that has a submodule; all change at random.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::git;
use crate::generator::Random;

/// The places of the submodule, which depend on the commit.
const PLACES: [&str; 3] = ["sub", "lib/sub", "a b/sub"];

/// Names of files; some are below each other.
const NAMES: [&[u8]; 14] = [
    b"a",
    b"b c",
    b"new\nline",
    b"\xff\xfe bytes",
    "\u{fc}n\u{ef}".as_bytes(),
    b"-dash",
    b"deep",
    b"deep/a",
    b"deep/er/file",
    b"deep/er/*",
    b"name.x",
    b":(top)magic",
    b"[ab]",
    b"\"quoted\\",
];

const CONTENTS: [&[u8]; 5] = [b"", b"line\n", b"two\r\nlines\r\n", b"$Id$ \0 bytes", b"no end"];

const TARGETS: [&[u8]; 5] = [b"a", b"nowhere/at all", b"/etc/hostname", b"../..", b"\xff bytes"];

/// `top/`, its submodule, and the submodule of that.
pub(super) struct World {
    root: TempDir,
    /// The current place of the submodule.
    place: &'static str,
}

impl World {
    /// Three repositories without commits. Those of the submodules are in the outermost one, and
    /// stay where they are if a submodule moves.
    pub(super) fn new() -> Self {
        let world = Self { root: tempfile::tempdir().unwrap(), place: PLACES[0] };
        let modules = world.top().join(".git/modules/sub");
        git(world.root.path(), &["init", "-q", "-b", "main", "top"]);
        for (git_dir, dir) in
            [(modules.clone(), world.sub()), (modules.join("modules/inner"), world.inner())]
        {
            fs::create_dir_all(git_dir.parent().unwrap()).unwrap();
            let [git_dir, dir] = [git_dir, dir].map(PathBuf::into_os_string);
            let init = ["init", "-q", "-b", "main", "--separate-git-dir"].map(Into::into);
            git(world.root.path(), &[&init[..], &[git_dir, dir]].concat());
        }
        for dir in world.repositories() {
            // No settings of a user count.
            for key in ["core.excludesFile", "core.attributesFile"] {
                git(&dir, &["config", key, "/dev/null"]);
            }
            git(&dir, &["config", "core.autocrlf", "false"]);
            git(&dir, &["config", "include.path", world.settings().to_str().unwrap()]);
        }
        world.tell_submodules();
        world
    }

    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(super) fn top(&self) -> PathBuf {
        self.root.path().join("top")
    }

    pub(super) fn sub(&self) -> PathBuf {
        self.top().join(self.place)
    }

    pub(super) fn inner(&self) -> PathBuf {
        self.sub().join("inner")
    }

    /// The work trees of the three, the innermost first.
    pub(super) fn repositories(&self) -> [PathBuf; 3] {
        [self.inner(), self.sub(), self.top()]
    }

    fn settings(&self) -> PathBuf {
        self.root().join("settings")
    }

    /// Adds settings to all three repositories, in place of the settings that were added before.
    pub(super) fn set(&self, settings: &str) {
        fs::write(self.settings(), settings).unwrap();
    }

    /// Moves the submodule to some place.
    pub(super) fn move_submodule(&mut self, random: &mut Random) {
        let (old, place) = (self.sub(), random.one_of(&PLACES));
        self.place = place;
        if self.sub() != old {
            let inside = fs::canonicalize(&old).unwrap();
            make_room(&self.top(), &self.sub());
            fs::rename(inside, self.sub()).unwrap();
        }
        self.tell_submodules();
    }

    fn tell_submodules(&self) {
        for (dir, name, place) in [(self.top(), "sub", self.place), (self.sub(), "inner", "inner")]
        {
            let text = format!("[submodule \"{name}\"]\n\tpath = \"{place}\"\n\turl = /nowhere\n");
            fs::write(dir.join(".gitmodules"), text).unwrap();
        }
    }
}

/// Changes something in the work tree of a repository.
pub(super) fn edit(dir: &Path, random: &mut Random) {
    let name = |random: &mut Random| dir.join(OsStr::from_bytes(random.one_of(&NAMES)));
    let (path, other) = (name(random), name(random));
    let metadata = path.symlink_metadata();
    match (random.below(6), metadata) {
        (0, Ok(metadata)) if !metadata.is_symlink() && !metadata.is_dir() => {
            let mode = metadata.permissions().mode() ^ 0o111;
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        (1, Ok(_)) => remove(&path),
        (2, Ok(_)) if !other.starts_with(&path) && !path.starts_with(&other) => {
            make_room(dir, &other);
            fs::rename(&path, &other).unwrap();
        }
        (3, _) => {
            make_room(dir, &path);
            symlink(OsStr::from_bytes(random.one_of(&TARGETS)), &path).unwrap();
        }
        _ => {
            make_room(dir, &path);
            fs::write(&path, random.one_of(&CONTENTS)).unwrap();
        }
    }
}

/// Removes the entry at a path, and entries on the way to it that are not directories.
fn make_room(top: &Path, path: &Path) {
    for above in path.ancestors().take_while(|above| *above != top) {
        if above == path || above.symlink_metadata().is_ok_and(|it| !it.is_dir()) {
            remove(above);
        }
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
}

fn remove(path: &Path) {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}
