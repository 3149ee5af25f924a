//! A package as one file, a ZIP archive. The same package is the same bytes: no entry has a time of its own.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use zip::write::SimpleFileOptions;
use zip::{DateTime, ZipWriter};

/// The size from which on a file needs the fields of ZIP64, with room for what compression may add.
const LARGE: u64 = 0xf000_0000;

/// The size of a piece that is read at a time.
const PIECE: usize = 1 << 16;

/// An archive that is being written.
pub(super) struct ArchiveWriter {
    zip: ZipWriter<ArchiveFile>,
    has_failed: Rc<Cell<bool>>,
}

impl ArchiveWriter {
    /// An archive in a new file.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let has_failed = Rc::new(Cell::new(false));
        let file = BufWriter::new(File::create_new(path)?);
        let output = ArchiveFile { file, at: 0, has_failed: Rc::clone(&has_failed) };
        Ok(Self { zip: ZipWriter::new(output), has_failed })
    }

    /// Adds a file or directory.
    pub(super) fn add(&mut self, from: &Path, to: &str, stop: &AtomicBool) -> io::Result<()> {
        let metadata = fs::metadata(from)?;
        if !metadata.is_dir() {
            let is_program = metadata.permissions().mode() & 0o111 != 0;
            let options = options(if is_program { 0o755 } else { 0o644 });
            let options = options.large_file(metadata.len() >= LARGE);
            self.zip.start_file(to, options)?;
            return self.copy(&mut File::open(from)?, stop);
        }
        self.zip.add_directory(to, options(0o755))?;
        let entries: io::Result<Vec<fs::DirEntry>> = fs::read_dir(from)?.collect();
        let mut entries = entries?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                return Err(io::Error::other(format!(
                    "{name:?} is not UTF-8, as names in a ZIP archive are"
                )));
            };
            let to = format!("{to}/{name}");
            // Links of a value stay within it.
            if entry.file_type()?.is_symlink() {
                let target = fs::read_link(entry.path())?;
                self.zip.add_symlink(to, target.to_string_lossy(), options(0o777))?;
            } else {
                self.add(&entry.path(), &to, stop)?;
            }
        }
        Ok(())
    }

    fn copy(&mut self, file: &mut File, stop: &AtomicBool) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        while !stop.load(Ordering::Relaxed) {
            match file.read(&mut piece)? {
                0 => break,
                size => self.zip.write_all(&piece[..size])?,
            }
        }
        Ok(())
    }

    /// Adds a text.
    pub(super) fn text(&mut self, to: &str, text: &str) -> io::Result<()> {
        self.zip.start_file(to, options(0o644))?;
        self.zip.write_all(text.as_bytes())
    }

    /// Completes the archive.
    pub(super) fn finish(self) -> io::Result<()> {
        let mut output = self.zip.finish()?;
        output.flush()?;
        debug_assert!(!self.has_failed.get(), "an error of the file is one of the archive");
        Ok(())
    }
}

fn options(mode: u32) -> SimpleFileOptions {
    SimpleFileOptions::default().unix_permissions(mode).last_modified_time(DateTime::DEFAULT)
}

/// A file that takes everything once it could not be written. A `ZipWriter` that is dropped completes its archive, and prints that this fails.
struct ArchiveFile {
    file: BufWriter<File>,
    at: u64,
    has_failed: Rc<Cell<bool>>,
}

impl ArchiveFile {
    fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::Interrupted
        {
            self.has_failed.set(true);
        }
        result
    }
}

impl Write for ArchiveFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = if self.has_failed.get() { Ok(bytes.len()) } else { self.file.write(bytes) };
        let written = self.noted(written)?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = if self.has_failed.get() { Ok(()) } else { self.file.flush() };
        self.noted(flushed)
    }
}

impl Seek for ArchiveFile {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        let at = match place {
            SeekFrom::Start(at) if self.has_failed.get() => Ok(at),
            _ if self.has_failed.get() => Ok(self.at),
            SeekFrom::Current(0) => Ok(self.at),
            place => self.file.seek(place),
        };
        self.at = self.noted(at)?;
        Ok(self.at)
    }
}
