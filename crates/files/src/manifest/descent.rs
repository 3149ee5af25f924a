//! The way through nested directories, one level at a time.

use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, fstat, mkdirat, openat};
use rustix::io::Errno;

use super::error::DirectoryError;

/// How many of the directories around the current one stay open.
const NEAR: usize = 32;

/// An open directory below a top one. It moves to a directory in it, or back to the one around it.
///
/// No path is longer than a name, so the depth is not limited by the longest path of a system call, and a
/// move takes the same time everywhere. Few descriptors are open: of a directory farther up only device
/// and inode are remembered. The way back then leads through `..`, and must lead to that
/// directory: somebody may have moved this one meanwhile.
#[derive(Debug)]
pub(super) struct Descent {
    /// The path of the current directory, relative to the top; empty at the top.
    path: Vec<u8>,
    here: Arc<OwnedFd>,
    above: Vec<Above>,
}

/// A directory around the current one.
#[derive(Debug)]
struct Above {
    /// The length of its path.
    length: usize,
    handle: Handle,
}

#[derive(Debug)]
enum Handle {
    Open(Arc<OwnedFd>),
    /// It was closed, and has this device and inode.
    Closed((u64, u64)),
}

impl Descent {
    /// Begins at the top directory. It may have been opened as a place only (`O_PATH`).
    pub(super) fn new(top: impl AsFd) -> Result<Self, DirectoryError> {
        let here = open(top, b".");
        let here =
            here.map_err(|error| DirectoryError::Io { path: [].into(), source: error.into() })?;
        Ok(Self { path: Vec::new(), here: Arc::new(here), above: Vec::new() })
    }

    /// Visits the top directory and all below it, each before those in it. `visit` gets the descent in a
    /// directory, and returns the names of the directories in it that are visited next, in this order.
    pub(super) fn walk(
        top: impl AsFd,
        mut visit: impl FnMut(&Self) -> Result<Vec<Box<[u8]>>, DirectoryError>,
    ) -> Result<(), DirectoryError> {
        let mut descent = Self::new(top)?;
        // The directories that are still to be entered, at each level; the next one is the last.
        let mut pending = vec![visit(&descent)?];
        pending[0].reverse();
        while let Some(directories) = pending.last_mut() {
            if let Some(name) = directories.pop() {
                descent.enter(&name)?;
                let mut inner = visit(&descent)?;
                inner.reverse();
                pending.push(inner);
            } else {
                pending.pop();
                descent.leave()?;
            }
        }
        Ok(())
    }

    /// The current directory.
    pub(super) const fn directory(&self) -> &Arc<OwnedFd> {
        &self.here
    }

    /// Its path.
    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }

    /// The path of something in it.
    pub(super) fn join(&self, name: &[u8]) -> Box<[u8]> {
        let slash: &[u8] = if self.path.is_empty() { b"" } else { b"/" };
        [&self.path, slash, name].concat().into()
    }

    /// Moves to a directory in the current one, which is not a link.
    pub(super) fn enter(&mut self, name: &[u8]) -> Result<(), DirectoryError> {
        let inner = open(&self.here, name);
        let inner = inner.map_err(|error| DirectoryError::of(&self.join(name), error))?;
        let length = self.path.len();
        if length > 0 {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        let around = mem::replace(&mut self.here, Arc::new(inner));
        self.above.push(Above { length, handle: Handle::Open(around) });
        let far = self.above.len().checked_sub(NEAR + 1).and_then(|at| self.above.get_mut(at));
        if let Some(Above { length, handle }) = far
            && let Handle::Open(directory) = handle
        {
            let id =
                id(directory).map_err(|error| DirectoryError::of(&self.path[..*length], error))?;
            *handle = Handle::Closed(id);
        }
        Ok(())
    }

    /// Moves to the directory around the current one; stays at the top.
    pub(super) fn leave(&mut self) -> Result<(), DirectoryError> {
        let Some(Above { length, handle }) = self.above.pop() else { return Ok(()) };
        self.here = match handle {
            Handle::Open(around) => around,
            Handle::Closed(expected) => {
                let around = open(&self.here, b"..").and_then(|around| Ok((id(&around)?, around)));
                match around {
                    Ok((found, around)) if found == expected => Arc::new(around),
                    Ok(_) => return Err(DirectoryError::Changed(self.path.as_slice().into())),
                    Err(error) => return Err(DirectoryError::of(&self.path, error)),
                }
            }
        };
        self.path.truncate(length);
        Ok(())
    }

    /// Moves to the directory with this path.
    pub(super) fn go_to(&mut self, path: &[u8]) -> Result<(), DirectoryError> {
        while !is_within(path, &self.path) {
            self.leave()?;
        }
        let rest = path[self.path.len()..].split(|byte| *byte == b'/');
        rest.filter(|name| !name.is_empty()).try_for_each(|name| self.enter(name))
    }

    /// Moves to the directory with this path, and makes the directories on the way that do not exist.
    pub(super) fn make(&mut self, path: &[u8]) -> Result<(), DirectoryError> {
        while !is_within(path, &self.path) {
            self.leave()?;
        }
        let rest = path[self.path.len()..].split(|byte| *byte == b'/');
        for name in rest.filter(|name| !name.is_empty()) {
            match mkdirat(&self.here, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => self.enter(name)?,
                Err(error) => return Err(DirectoryError::of(&self.join(name), error)),
            }
        }
        Ok(())
    }
}

/// Whether a path is that of a directory, or of something below it.
fn is_within(path: &[u8], directory: &[u8]) -> bool {
    let rest = path.strip_prefix(directory);
    directory.is_empty() || rest.is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

/// Opens a directory so that it can be listed.
fn open(around: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(around, name, flags, Mode::empty())
}

fn id(directory: &OwnedFd) -> Result<(u64, u64), Errno> {
    fstat(directory).map(|stat| (stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn the_way_back_leads_to_the_same_directories() {
        let dir = tempfile::tempdir().unwrap();
        let deep = ["d"; NEAR + 10].join("/");
        fs::create_dir_all(dir.path().join(&deep)).unwrap();
        fs::create_dir_all(dir.path().join("dd/e")).unwrap();
        let mut descent = Descent::new(File::open(dir.path()).unwrap()).unwrap();
        for path in [&deep, "dd/e", "", "d/d", &deep, "d", "dd"] {
            descent.go_to(path.as_bytes()).unwrap();
            assert_eq!(descent.path(), path.as_bytes());
            let expected = File::open(dir.path().join(path)).unwrap().into();
            assert_eq!(id(descent.directory()).unwrap(), id(&expected).unwrap(), "{path}");
            let open = descent.above.iter().filter(|it| matches!(it.handle, Handle::Open(_)));
            assert!(open.count() <= NEAR);
        }
    }

    #[test]
    fn a_directory_that_was_moved_meanwhile_does_not_lead_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let deep = ["d"; NEAR + 10].join("/");
        fs::create_dir_all(dir.path().join("top").join(&deep)).unwrap();
        let mut descent = Descent::new(File::open(dir.path().join("top")).unwrap()).unwrap();
        descent.go_to(deep.as_bytes()).unwrap();
        fs::rename(dir.path().join("top/d/d/d"), dir.path().join("elsewhere")).unwrap();
        assert!(
            matches!(descent.go_to(b""), Err(DirectoryError::Changed(path)) if *path == *b"d/d/d")
        );
    }

    #[test]
    fn a_link_is_not_entered() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("link")).unwrap();
        let mut descent = Descent::new(File::open(dir.path()).unwrap()).unwrap();
        assert!(
            matches!(descent.enter(b"link"), Err(DirectoryError::Changed(path)) if *path == *b"link")
        );
    }
}
