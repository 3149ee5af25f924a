//! Small files beside a mirror: what is remembered of another repository.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use super::{Mirror, MirrorError};

impl Mirror {
    /// Reads what was remembered under a name. `None` if that is nothing.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn note(&self, name: &str) -> Result<Option<Vec<u8>>, MirrorError> {
        match fs::read(self.note_path(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.own(error.into())),
        }
    }

    /// Remembers something under a name, in place of what was there.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn put_note(&self, name: &str, text: &[u8]) -> Result<(), MirrorError> {
        let (place, new) = (self.note_path(name), self.note_path(&format!("{name}-new")));
        let write = || fs::write(&new, text).and_then(|()| fs::rename(&new, place));
        write().map_err(|error| self.own(error.into()))
    }

    /// Appends to what is remembered under a name.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn add_to_note(&self, name: &str, text: &[u8]) -> Result<(), MirrorError> {
        let path = self.note_path(name);
        let write = || File::options().create(true).append(true).open(path)?.write_all(text);
        write().map_err(|error| self.own(error.into()))
    }

    fn note_path(&self, name: &str) -> PathBuf {
        self.dir.with_extension(name)
    }
}
