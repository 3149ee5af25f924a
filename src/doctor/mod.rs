//! Self-tests of this host: whether a storage keeps its promises here, and whether a sandbox holds.
//!
//! A probe measures one topic with the same operations that a run uses, and returns a [`Diagnosis`].
//! The crate of the storage probes the file system, and that of the executor lets a computation try to break out of its
//! sandbox.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use ce_executor::probes as isolation;
use ce_model::diagnosis::Diagnosis;
use ce_storage::probes::Probes;

/// Returns an iterator that performs all probes, one at a time: of a storage, if one is given, and of isolation.
pub fn examine(storage: Option<&Path>) -> impl Iterator<Item = Diagnosis> {
    storage.map(Probes::new).into_iter().flatten().chain(isolation::break_outs())
}

/// Tries to break out of a sandbox, if the first argument is the hidden one.
pub fn hidden(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    (arguments.next()? == isolation::BREAK_OUT).then(|| isolation::break_out(arguments))
}
