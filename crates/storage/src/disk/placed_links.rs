//! Symbolic links in a directory that had another path while it was made: an absolute link into it becomes a relative one.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::{io, iter};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, openat, readlinkat, renameat, statat, symlinkat, unlinkat,
};

use super::{Disk, Result};

/// The name of a link before it takes the place of another one.
const NEW_LINK: &str = ".ce-new-link";

impl Disk {
    /// Makes the absolute links relative that lead to a directory, or into it, which was at `place` while it was made. Other links stay.
    pub(crate) fn make_links_relative(&self, directory: &Path, place: &Path) -> Result<()> {
        self.attempt("make links relative in", directory, || {
            self.at(directory, |above, name| {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let top = openat(above, name, flags, Mode::empty())?;
                change_links(top, place)
            })
        })
    }
}

/// Changes the links below a directory.
fn change_links(top: OwnedFd, place: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut left = vec![(top, 0)];
    while let Some((directory, depth)) = left.pop() {
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let kind = match entry.file_type() {
                // Some file systems do not say so in a list.
                FileType::Unknown => {
                    let about = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(about.st_mode)
                }
                kind => kind,
            };
            match kind {
                FileType::Directory if name != c"." && name != c".." => {
                    left.push((openat(&directory, name, flags, Mode::empty())?, depth + 1));
                }
                FileType::Symlink => {
                    let target = readlinkat(&directory, name, Vec::new())?;
                    let target = Path::new(OsStr::from_bytes(target.as_bytes()));
                    let Some(target) = relative(target, place, depth) else { continue };
                    let name = OsStr::from_bytes(name.to_bytes());
                    let _rest = unlinkat(&directory, NEW_LINK, AtFlags::empty());
                    symlinkat(&target, directory.as_fd(), NEW_LINK)?;
                    renameat(&directory, NEW_LINK, &directory, name)?;
                }
                _ => {}
            }
        }
    }
    Ok(())
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
    use super::*;

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
