//! `ce manifest`: the text that identifies a directory.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Parser;

use super::{Tool, say};
use crate::report;
use ce_evaluate::session::{BeginError, Error, OutputError, Stop};
use ce_files::manifest::{DirectoryError, Manifest, Scan};
use ce_model::exit::{Exit, Explain};
use ce_model::hints;

/// A directory cannot be a value, or not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot take the directory {path} as a value")]
struct NotAValue {
    /// The directory.
    path: String,
    /// Why.
    source: DirectoryError,
}

impl Explain for NotAValue {
    fn hint(&self) -> Option<String> {
        match &self.source {
            DirectoryError::Io { path: entry, source } => {
                let entry = Some(OsStr::from_bytes(entry)).filter(|entry| !entry.is_empty());
                let path = Path::new(&self.path);
                hints::for_directory(&entry.map_or(path.into(), |it| path.join(it)), source)
            }
            error => error.hint(),
        }
    }
}

/// Print the manifest of a directory: the text whose hashes identify the directory as a value
///
/// It has a line for each file, symbolic link and empty directory, sorted by the bytes of their paths. Each
/// file is read once. Nothing is printed unless the whole directory could be read. Links that lead
/// out of the directory, .git, devices, sockets and FIFOs are refused.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub struct PrintManifest {
    /// Print only the SHA-1 and the BLAKE3 of the manifest
    #[arg(long)]
    digest: bool,

    /// The directory
    #[arg(value_hint = clap::ValueHint::DirPath)]
    directory: PathBuf,
}

const EXIT_CODES: &str = "\
Exit codes: 0 printed, 2 the arguments are wrong, or the directory cannot be read or be a value, 5 the \
standard output could not be written, 130 interrupted (143: by SIGTERM).";

impl Tool for PrintManifest {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let stop = Stop::watch().map_err(BeginError::new)?;
        let manifest = match (self.read(&stop), stop.caught()) {
            (Err(DirectoryError::Interrupted), Some(signal)) => {
                say("ce", &"interrupted: nothing was printed");
                return Ok(Exit::Interrupted(signal));
            }
            (read, _) => read.map_err(|source| NotAValue {
                path: self.directory.display().to_string(),
                source,
            })?,
        };
        let printed = if self.digest {
            let digest = manifest.digest();
            writeln!(out, "sha1 {}\nblake3 {}", digest.sha1.full(), digest.blake3.full())
        } else {
            manifest.write(out)
        };
        printed.map_err(OutputError)?;
        Ok(Exit::Done)
    }
}

impl PrintManifest {
    fn read(&self, stop: &Stop) -> Result<Manifest, DirectoryError> {
        let scan = Scan::at(&self.directory, &stop.asked)?;
        let (bytes, done) = (scan.bytes(), AtomicU64::new(0));
        let progress = || (done.load(Ordering::Relaxed), bytes);
        let mut read = Err(DirectoryError::Interrupted);
        report::while_reading(&progress, &mut || read = scan.read(&stop.asked, &done));
        read
    }
}
