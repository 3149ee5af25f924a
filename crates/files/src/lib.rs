//! Values of the file system: [`manifest`] reads directories as values, [`cache`] remembers what takes long to compute.

pub mod cache;
pub mod manifest;
