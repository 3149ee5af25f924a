//! Directories as values: their manifests, and entries that are refused or change while they are read.

mod program;
mod reading;
mod texts;

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use compeval::manifest::{DirectoryError, Manifest, Scan};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use tempfile::TempDir;

/// An empty directory, in memory where that is possible.
fn directory() -> TempDir {
    tempfile::tempdir_in(crate::lab::place()).unwrap()
}

/// Walks through a directory.
fn scan(dir: &Path) -> Result<Scan, DirectoryError> {
    Scan::at(dir, &AtomicBool::new(false))
}

/// Reads a directory that was scanned.
fn read(scan: &Scan) -> Result<Manifest, DirectoryError> {
    let done = AtomicU64::new(0);
    let manifest = scan.read(&AtomicBool::new(false), &done)?;
    assert_eq!((done.load(Ordering::Relaxed), manifest.bytes()), (scan.bytes(), scan.bytes()));
    Ok(manifest)
}

fn text(manifest: &Manifest) -> Vec<u8> {
    let mut text = Vec::new();
    manifest.write(&mut text).unwrap();
    text
}

fn put(path: &Path, contents: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

/// Directories that are all called `d`, each in the other, with a file `f` in every hundredth.
///
/// They are too deep for a path, and for a program that removes them recursively.
struct Nest {
    top: OwnedFd,
}

impl Nest {
    fn new(top: &Path, depth: usize) -> Self {
        fs::create_dir(top).unwrap();
        let top = OwnedFd::from(File::open(top).unwrap());
        let mut here = top.try_clone().unwrap();
        for level in 1..=depth {
            mkdirat(&here, "d", Mode::RWXU).unwrap();
            here = openat(&here, "d", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
            if level % 100 == 0 {
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
                drop(openat(&here, "f", flags, Mode::RUSR).unwrap());
            }
        }
        Self { top }
    }
}

impl Drop for Nest {
    /// Removes the outermost directory, again and again: its entries move up.
    fn drop(&mut self) {
        while renameat(&self.top, "d", &self.top, "outer").is_ok() {
            // Neither need be there.
            let _ = renameat(&self.top, "outer/d", &self.top, "d");
            let _ = unlinkat(&self.top, "outer/f", AtFlags::empty());
            if unlinkat(&self.top, "outer", AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
    }
}

/// A FIFO.
fn fifo(path: &Path) {
    crate::fifo::make(path);
}

/// A device, if this user may make one.
fn device(path: &Path) -> bool {
    use rustix::fs::{FileType, makedev, mknodat};
    mknodat(CWD, path, FileType::CharacterDevice, Mode::RUSR, makedev(1, 3)).is_ok()
}
