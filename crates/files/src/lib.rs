//! Values of the file system: [`manifest`] reads directories as values, [`attributes`] are not part of them, [`cache`]
//! has digests that take long to compute. [`state`] has the user's private files, [`umask`] says which modes new files
//! get. All written files are reached [`beneath`] an open directory; [`walk`] follows paths that computations may have
//! changed. [`open_leased`] waits for files that other programs hold leases on. [`child_pipes`] reads the output of
//! programs.

pub mod attributes;
pub mod beneath;
pub mod cache;
pub mod child_pipes;
pub mod directory_writer;
pub mod manifest;
mod open_file;
pub mod state;
pub mod umask;
pub mod walk;

pub use self::open_file::{is_leased, open_leased};
