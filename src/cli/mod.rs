//! The programs: what was typed, and what comes of it. No algorithm lives here.
//!
//! This is the only place that prints errors and decides about the end of a process.

mod audit;
mod background;
mod ce;
mod compare;
mod complete;
mod exchange;
mod explain;
mod export;
mod gc;
mod help;
mod input_args;
mod options;
mod pager;
mod report;
mod revisions;
mod run;
mod show;
mod status;
mod storage_args;
mod table;
mod task;
mod verify;
mod viz;
mod worker;

use std::env;
use std::error::Error as _;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;

pub use self::ce::Ce;
use self::run::Run;
use self::task::Sym;
use self::viz::Viz;
use crate::report::{Output, say};
use ce_evaluate::session::{Error, OutputError};
use ce_model::exit::{Exit, Explain};
use ce_task::edit::EditError;
use ce_task::load::LoadError;

/// A program: its parsed arguments, and what it does with them.
trait Tool: clap::Parser {
    /// Does what was asked for, and writes to `out` what was asked for.
    ///
    /// # Errors
    ///
    /// Fails with the error that ends the program early.
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error>;
}

/// Parses the arguments, runs the program, tells its error: the whole of `ce`, which is the program by whose name it is
/// started.
pub fn main() -> ExitCode {
    ce_executor::reset_signals();
    let name = env::args_os().next().unwrap_or_default();
    match Path::new(&name).file_name().and_then(OsStr::to_str) {
        Some("ce-run") => run_tool::<Run>(),
        Some("ce-sym") => run_tool::<Sym>(),
        Some("ce-viz") => run_tool::<Viz>(),
        _ => run_tool::<Ce>(),
    }
}

/// Runs a program, and tells its error.
fn run_tool<T: Tool>() -> ExitCode {
    let hidden = ce_executor::hidden(env::args_os().skip(1))
        .or_else(|| verify::hidden_break_out(env::args_os().skip(1)))
        .or_else(|| complete::hidden(&T::command, env::args_os().skip(1)));
    if let Some(code) = hidden {
        return code;
    }
    let tool = match T::try_parse() {
        Ok(tool) => tool,
        Err(mut error) => {
            if error.kind() == ErrorKind::DisplayHelp {
                let program = help::with_examples(T::command());
                error = program.try_get_matches().err().unwrap_or(error);
            }
            let words = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
            help::put_right(&mut error, T::command().get_name(), &words.collect::<Vec<_>>());
            // Help goes to standard output, complaints to standard error.
            return match help::print_clap(&error) {
                Err(source) if !error.use_stderr() => ended::<T>(Err(OutputError(source).into())),
                _ => u8::try_from(error.exit_code()).unwrap_or(2).into(),
            };
        }
    };
    let result = tool.run(&mut Output);
    let result = result.and_then(|exit| match Output.end() {
        // The tool has done its work: a reader that has closed the pipe does not change how it ended.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(OutputError(error).into()),
        _ => Ok(exit),
    });
    ended::<T>(result)
}

/// Reports the error of a program, if there is one. Returns its exit code.
fn ended<T: Tool>(result: Result<Exit, Error>) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        // The tool stopped at the closed pipe, as in `ce-sym | head`: its reader has enough.
        Err(error) if is_broken_pipe(&error) => Exit::Done.into(),
        Err(error) => {
            tell(T::command().get_name(), &error);
            error.exit().into()
        }
    }
}

/// Whether nobody reads the standard output any more.
fn is_broken_pipe(error: &Error) -> bool {
    error.of::<OutputError>().is_some_and(|error| error.0.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints an error, its causes, and what to try.
fn tell(program: &str, error: &Error) {
    let mut lines = vec![error.to_string()];
    // In a directory that does not exist any more, all other words about paths are misleading.
    let is_nowhere = env::current_dir().is_err_and(|it| it.kind() == io::ErrorKind::NotFound);
    let load = error.of::<LoadError>().or_else(|| match error.of::<EditError>()? {
        EditError::Load(error) => Some(error),
        _ => None,
    });
    if let Some(LoadError::Problems { problems, warnings, .. }) = load {
        for problem in problems {
            lines.push(format!("  {problem}"));
            let hint = problem.fault.hint().filter(|_| !is_nowhere);
            lines.extend(hint.map(|hint| format!("    try: {hint}")));
        }
        for warning in warnings {
            lines.push(format!("  warning: {warning}"));
            lines.extend(warning.oddity.hint().map(|hint| format!("    try: {hint}")));
        }
    }
    let causes = std::iter::successors(error.source(), |&error| error.source());
    lines.extend(causes.map(|cause| format!("  because: {cause}")));
    let hint = if is_nowhere {
        Some("cd to a directory that exists: the current one was deleted".to_owned())
    } else {
        error.hint()
    };
    lines.extend(hint.map(|hint| format!("  try: {hint}")));
    say(program, &lines.join("\n"));
}
