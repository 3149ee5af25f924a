//! Symbolic links in a directory that had another path while it was made: an absolute link into it becomes a relative one.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::{io, iter};

use ce_files::beneath::allow;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, openat, readlinkat, renameat, statat, symlinkat,
};
use rustix::io::Errno;

use super::{Disk, Result};

impl Disk {
    /// Makes the absolute links relative that lead to a directory, or into it, which was at `place` while it was made. Other links stay.
    /// Does nothing if it is not a directory.
    pub(crate) fn make_links_relative(&self, directory: &Path, place: &Path) -> Result<()> {
        self.attempt("make links relative in", directory, || {
            self.at(directory, |above, name| match statat(above, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(about) if FileType::from_raw_mode(about.st_mode) == FileType::Directory => {
                    change_links(above, name, place)
                }
                // That is reported when it is sealed.
                _ => Ok(()),
            })
        })
    }
}

/// Changes the links below a directory, which may have removed its owner's rights.
fn change_links(above: &OwnedFd, top: &OsStr, place: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // There may be more of them than this process may have open files.
    let mut left = vec![(PathBuf::from(top), 0)];
    while let Some((path, depth)) = left.pop() {
        allow(above, path.as_os_str(), 0o700)?;
        let directory = openat(above, &path, flags, Mode::empty())?;
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let kind = match entry.file_type() {
                // Some file systems do not say so in a list.
                FileType::Unknown => {
                    let about = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(about.st_mode)
                }
                kind => kind,
            };
            match kind {
                FileType::Directory if name != "." && name != ".." => {
                    left.push((path.join(name), depth + 1));
                }
                FileType::Symlink => {
                    let target = readlinkat(&directory, name, Vec::new())?;
                    let target = Path::new(OsStr::from_bytes(target.as_bytes()));
                    if let Some(target) = relative(target, place, depth) {
                        replace_link(&directory, name, &target)?;
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Gives a link another target, by a link with a name that is free.
fn replace_link(directory: &OwnedFd, name: &OsStr, target: &Path) -> io::Result<()> {
    let mut number = 0;
    let free = loop {
        let free = format!(".link-{number}");
        match symlinkat(target, directory.as_fd(), &free) {
            Err(Errno::EXIST) => number += 1,
            made => break made.map(|()| free)?,
        }
    };
    Ok(renameat(directory, free, directory, name)?)
}

/// The target of a link that many directories below `place`; `None` if it leads elsewhere, or is relative.
fn relative(target: &Path, place: &Path, depth: usize) -> Option<PathBuf> {
    let inside = target.strip_prefix(place).ok()?;
    if inside.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    let up = iter::repeat_n(Component::ParentDir, depth);
    let path: PathBuf = up.chain(inside.components()).collect();
    Some(if path.as_os_str().is_empty() { ".".into() } else { path })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_links_into_the_directory_change_whatever_is_beside_them() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        fs::create_dir_all(top.join("ro/deep")).unwrap();
        fs::write(top.join(".link-0"), "kept").unwrap();
        let links = [("in", "/opt/env/ro"), ("out", "/etc"), ("ro/up", "/opt/env/in")];
        links.iter().for_each(|(name, to)| symlink(to, top.join(name)).unwrap());
        fs::set_permissions(top.join("ro"), Permissions::from_mode(0o555)).unwrap();
        let above: OwnedFd = File::open(dir.path()).unwrap().into();
        change_links(&above, OsStr::new("top"), Path::new("/opt/env")).unwrap();
        let targets = links.map(|(name, _)| fs::read_link(top.join(name)).unwrap());
        assert_eq!(targets, ["ro", "/etc", "../in"].map(PathBuf::from));
        assert_eq!(fs::read_to_string(top.join(".link-0")).unwrap(), "kept");
        assert_eq!(fs::read_dir(&top).unwrap().count(), 4);
    }

    #[test]
    fn a_link_into_the_directory_becomes_relative() {
        let place = Path::new("/opt/env");
        for (target, depth, expected) in [
            ("/opt/env/bin/python", 0, Some("bin/python")),
            ("/opt/env/bin/python", 2, Some("../../bin/python")),
            ("/opt/env", 0, Some(".")),
            ("/opt/env/", 1, Some("..")),
            ("/opt/env/../other", 0, None),
            ("/opt/environment", 0, None),
            ("/usr/bin/python3", 1, None),
            ("bin/python", 1, None),
        ] {
            let found = relative(Path::new(target), place, depth);
            assert_eq!(found.as_deref().and_then(Path::to_str), expected, "{target}");
        }
    }
}
