//! Directories as values: the manifest of a directory, and how a directory is read.
//!
//! A directory is identified by its [`Manifest`]: a text with a line for each file, symbolic link and
//! empty directory in it. The SHA-1 and the BLAKE3 of that text are the directory's. Times, owners and
//! modes are no part of it, except whether the owner may execute a file.
//!
//! A [`Scan`] walks a directory and reads no file. It knows what of it cannot be part of a value, and how
//! many bytes there are, and its stamps tell whether anything has changed. [`Scan::read`] then reads
//! each file once, on all cores, and returns the manifest.
//!
//! Everything is reached from a descriptor of the directory, through no symbolic link. Nothing recurses,
//! so directories may be nested as deep as the file system allows. The module knows neither
//! workflows nor the storage.

mod archive;
mod error;
mod format;
mod member;
mod path;
mod read;
mod scan;
mod seal;

pub use self::archive::DirectoryArchive;
pub use self::error::{DirectoryError, Refusal, Refused};
pub use self::format::{EntryKind, HEADER, Manifest, ManifestEntry, ManifestError, ManifestFault};
pub use self::member::{EntryDifference, ManifestMember};
pub use self::path::{LinkFault, PathFault, check_link, check_path, shown};
pub use self::scan::Scan;
pub use self::seal::{seal, sealed_directory};
