//! `ce shell`: a shell in the sandbox of a call.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Parser;

use super::Tool;
use super::options::task_dir;
use super::place::{around, is_storage};
use crate::report::{Sight, say};
use ce_evaluate::session::{Error, InspectionError, InspectionSession, OutputError};
use ce_executor::Status;
use ce_model::exit::Exit;

/// Look into the sandbox of a call, executed or not: with a shell, or with a command
///
/// It has what exec has had: the computation in /computation and the inputs in /inputs, read-only, and empty /outputs and /tmp,
/// the same environment, and what the file access grants. Nothing is published, and what it makes is thrown away unless it is to be kept. Without a terminal, a
/// command has no input, and what it prints is printed when it has ended.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Exit codes: that of the shell or command, 128 and the signal that has killed it, 1 it could not be started, 2 the arguments are wrong or \
the call is not known, 3 nothing can be isolated on this host, 5 the storage could not be read or written, 130 interrupted."
)]
pub struct InspectCall {
    /// Keep what is made in /outputs and /tmp, in a directory among your temporary files, and say where
    #[arg(long)]
    keep: bool,

    /// The directory of the task, from which the computation is taken if the storage does not have it
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = task_dir(), value_hint = clap::ValueHint::DirPath)]
    task: PathBuf,

    /// The directory that keeps all results [default: the one that the path of the call leads through, else what Git's
    /// configuration has for compeval.storage]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: Option<PathBuf>,

    /// The call: its name c_NAME/CCID/INPUTS or a file of it, with or without the storage's path, or the first four or more
    /// digits of INPUTS; or, if it is the only one, the name of its computation or the labels that lead to it
    #[arg(value_hint = clap::ValueHint::FilePath)]
    call: Option<PathBuf>,

    /// The command to be executed in place of a shell
    #[arg(last = true, value_hint = clap::ValueHint::Other)]
    command: Vec<OsString>,
}

impl Tool for InspectCall {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let (storage, call) = match (&self.storage, &self.call) {
            (Some(storage), Some(call)) => (storage.clone(), call),
            (Some(storage), None) if is_storage(storage) => {
                return Err(InspectionError::NoCallIn(storage.clone()).into());
            }
            (Some(call), None) => (around(call)?, call),
            (None, _) => return Err(InspectionError::NoCallGiven.into()),
        };
        InspectionSession::check_terminal(&self.command)?;
        let session = InspectionSession::open(&self.task, &storage)?;
        let call = session.find(&call.to_string_lossy(), self.keep)?;
        if self.command.is_empty() {
            say("ce", &Sight(&call));
        }
        out.flush().map_err(OutputError)?;
        let ended = session.execute(&call, &self.command, &mut io::stdout());
        if let Some(kept) = &call.kept {
            say("ce", &format_args!("kept: {}", kept.path.display()));
        }
        if let Some(signal) = session.interrupted_by() {
            return Ok(Exit::Interrupted(signal));
        }
        let status = ended?;
        Ok(Exit::Ended(match status {
            Status::Exited(code) => u8::try_from(code).unwrap_or(u8::MAX),
            Status::Killed(signal) | Status::TimedOut(signal, _) => {
                128_u8.saturating_add(u8::try_from(signal).unwrap_or_default())
            }
        }))
    }
}
