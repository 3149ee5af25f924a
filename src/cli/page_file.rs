//! The file of a page: written aside, and renamed when it is complete. What is no such page is not replaced.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::report::PAGE_MARK;
use ce_evaluate::session::{Error, WriteError};
use ce_model::exit::Explain;

/// A page would replace something else.
#[derive(Debug, thiserror::Error)]
#[error("{0} is there, and is no page of ce report")]
struct NotAPage(String);

impl Explain for NotAPage {
    fn hint(&self) -> Option<String> {
        Some("name another file with -o; --force replaces a plain file".to_owned())
    }
}

/// Where a page is to be written.
#[derive(Debug)]
pub(super) struct PageFile<'a> {
    path: &'a Path,
}

impl<'a> PageFile<'a> {
    /// Checks that a page may be written there: with `force`, over any file, and else over such pages only.
    ///
    /// # Errors
    ///
    /// Fails if something else is there.
    pub(super) fn new(path: &'a Path, force: bool) -> Result<Self, Error> {
        let other = || NotAPage(path.display().to_string()).into();
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self { path }),
            Err(error) => Err(failed(path)(error).into()),
            Ok(metadata) if !metadata.is_file() => Err(other()),
            Ok(_) if force || is_page(path).map_err(failed(path))? => Ok(Self { path }),
            Ok(_) => Err(other()),
        }
    }

    /// Writes the page, or nothing.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub(super) fn write(&self, page: &[u8]) -> Result<(), WriteError> {
        let aside = self.aside();
        let write = || {
            let mut file = File::options().write(true).create_new(true).open(&aside)?;
            file.write_all(page)?;
            file.sync_all()?;
            fs::rename(&aside, self.path)
        };
        write().map_err(|error| {
            if error.kind() != io::ErrorKind::AlreadyExists {
                drop(fs::remove_file(&aside));
            }
            failed(self.path)(error)
        })
    }

    /// A name beside it that is not taken.
    fn aside(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(format!(".{name}.{}.part", std::process::id()))
    }
}

/// Whether a file begins like a page.
fn is_page(path: &Path) -> io::Result<bool> {
    let mut begin = Vec::new();
    File::open(path)?.take(1024).read_to_end(&mut begin)?;
    Ok(begin.windows(PAGE_MARK.len()).any(|part| part == PAGE_MARK.as_bytes()))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.display().to_string();
    |source| WriteError { path, source }
}
