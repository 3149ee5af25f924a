//! The programs: their arguments, and their results. No algorithm lives here.
//!
//! This is the only place that prints errors and decides about the end of a process.
//!
//! [`Ce`] is `ce`: all programs in one.

mod add;
mod audit;
mod compare;
mod complete;
mod exchange;
mod explain;
mod export;
mod gc;
mod help;
mod input_args;
mod options;
mod outputs;
mod report;
mod revisions;
mod run;
mod show;
mod status;
mod storage_args;
mod table;
mod task;
mod typed_arguments;
mod verify;
mod viz;
mod worker;

use std::env;
use std::error::Error as _;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};

use self::add::Add;
use self::audit::AuditCalls;
use self::compare::CompareMedians;
use self::exchange::{Pull, Push};
use self::explain::ExplainRuns;
use self::export::{CiteResult, ExportResults};
use self::gc::{Gc, Pin};
use self::report::WriteReport;
use self::revisions::{Bisect, Diff, ListCommits};
use self::run::Run;
use self::show::{InspectCall, Log, Show};
use self::status::{Cancel, ShowStatus};
use self::table::ShowTable;
use self::task::{Check, Convert, Init, Sym};
use self::verify::{Doctor, Verify};
use self::viz::Viz;
use self::worker::Serve;
use ce_evaluate::session::{Error, OutputError, WriteError, start_pool};
use ce_files::umask;
use ce_git::REPOSITORY_VARIABLES;
use ce_model::exit::{Exit, Explain};
use ce_report::{Output, say};
use ce_task::edit::EditError;
use ce_task::load::LoadError;
use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

/// A program: its parsed arguments, and its action.
trait Tool: Parser {
    /// Performs the action, and writes its output to `out`.
    ///
    /// # Errors
    ///
    /// Fails with the error that ends the program early.
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error>;
}

/// Parses the arguments, runs the program, tells its error: the whole of `ce`, which is the program by whose name it is
/// started.
pub fn main() -> ExitCode {
    if let Some(code) = forget_repository() {
        return code;
    }
    ce_executor::reset_signals();
    let name = env::args_os().next().unwrap_or_default();
    match Path::new(&name).file_name().and_then(OsStr::to_str) {
        Some("ce-run") => run_tool::<Run>(),
        Some("ce-sym") => run_tool::<Sym>(),
        Some("ce-viz") => run_tool::<Viz>(),
        _ => run_tool::<Ce>(),
    }
}

/// The number of SIGHUP.
const HANG_UP: u8 = 1;

/// Executes this program again without the variables by which Git tells a hook of its repository. gix and programs that are
/// started would obey them in other repositories, too, such as submodules. Returns if there are no such variables, or the
/// restart fails.
fn forget_repository() -> Option<ExitCode> {
    let set = REPOSITORY_VARIABLES.into_iter().filter(|name| env::var_os(name).is_some());
    let set: Vec<&str> = set.collect();
    if set.is_empty() {
        return None;
    }
    let mut words = env::args_os();
    let mut again = process::Command::new("/proc/self/exe");
    again.arg0(words.next().unwrap_or_default()).args(words);
    for name in &set {
        again.env_remove(name);
    }
    let error = again.exec();
    let names = set.join(" ");
    let text = format!("cannot be executed again without {names}: {error}\n  try: unset {names}");
    say("ce", &text);
    Some(Exit::Malformed.into())
}

/// Runs a program, and tells its error.
fn run_tool<T: Tool>() -> ExitCode {
    let hidden = ce_executor::hidden(env::args_os().skip(1))
        .or_else(|| verify::hidden_break_out(env::args_os().skip(1)))
        .or_else(|| complete::hidden(&T::command, env::args_os().skip(1)));
    if let Some(code) = hidden {
        return code;
    }
    umask::take();
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
        // Its terminal is gone.
        Err(error)
            if error.downcast_ref::<OutputError>().is_some() && ce_executor::has_hung_up() =>
        {
            Exit::Interrupted(HANG_UP).into()
        }
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
    error
        .downcast_ref::<OutputError>()
        .is_some_and(|error| error.0.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints an error, its causes, and what to try.
fn tell(program: &str, error: &Error) {
    let mut lines = vec![error.to_string()];
    // In a directory that does not exist any more, all other words about paths are misleading.
    let is_nowhere = env::current_dir().is_err_and(|it| it.kind() == io::ErrorKind::NotFound);
    let load =
        error.downcast_ref::<LoadError>().or_else(|| match error.downcast_ref::<EditError>()? {
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

/// Evaluate workflows of expensive computations, kept in Git, and never compute anything twice
#[derive(Debug, Parser)]
#[command(name = "ce", version, help_template = help::template(false), disable_help_subcommand = true)]
pub struct Ce {
    #[command(subcommand)]
    command: Command,
}

/// The options of a command are built only when it is called.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    Run(Run),
    Sym(Sym),
    Viz(Viz),
    Check(Check),
    Init(Init),
    Add(Add),
    Convert(Convert),
    Compare(CompareMedians),
    Diff(Diff),
    Bisect(Bisect),
    Explain(ExplainRuns),
    Doctor(Doctor),
    Verify(Verify),
    Show(Show),
    Shell(InspectCall),
    Export(ExportResults),
    Cite(CiteResult),
    Log(Log),
    Gc(Gc),
    Pin(Pin),
    Push(Push),
    Pull(Pull),
    Audit(AuditCalls),
    Commits(ListCommits),
    Table(ShowTable),
    Report(WriteReport),
    Worker(Serve),
    Status(ShowStatus),
    Cancel(Cancel),
    /// Print the common commands, all of them, or the help of one
    #[command(version)]
    Help {
        /// List all commands
        #[arg(long, conflicts_with = "topic")]
        all: bool,
        /// The command
        #[arg(value_name = "COMMAND", value_parser = PossibleValuesParser::new(help::commands()), hide_possible_values = true)]
        topic: Option<String>,
    },
    /// Print the completions of a program for a shell
    Completions {
        /// The shell
        shell: Shell,
        /// The program to be completed
        #[arg(default_value = "ce")]
        program: Program,
    },
    /// Write the manual pages of all programs into a directory
    Man {
        /// The directory, which must be there
        #[arg(value_hint = clap::ValueHint::DirPath)]
        directory: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Program {
    Ce,
    CeRun,
    CeSym,
    CeViz,
}

impl Program {
    fn command(self) -> clap::Command {
        match self {
            Self::Ce => Ce::command(),
            Self::CeRun => Run::command(),
            Self::CeSym => Sym::command(),
            Self::CeViz => Viz::command(),
        }
    }
}

impl Tool for Ce {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        if !matches!(self.command, Command::Run(_)) {
            start_pool();
        }
        match &self.command {
            // It may split this process before.
            Command::Run(run) => run.run(out),
            Command::Sym(sym) => sym.run(out),
            Command::Viz(viz) => viz.run(out),
            Command::Check(check) => check.run(out),
            Command::Init(init) => init.run(out),
            Command::Add(add) => add.run(out),
            Command::Convert(convert) => convert.run(out),
            Command::Compare(compare) => compare.run(out),
            Command::Diff(diff) => diff.run(out),
            Command::Bisect(bisect) => bisect.run(out),
            Command::Explain(explain) => explain.run(out),
            Command::Doctor(doctor) => doctor.run(out),
            Command::Verify(verify) => verify.run(out),
            Command::Show(show) => show.run(out),
            Command::Shell(shell) => shell.run(out),
            Command::Export(export) => export.run(out),
            Command::Cite(cite) => cite.run(out),
            Command::Log(log) => log.run(out),
            Command::Gc(gc) => gc.run(out),
            Command::Pin(pin) => pin.run(out),
            Command::Push(push) => push.run(out),
            Command::Pull(pull) => pull.run(out),
            Command::Audit(audit) => audit.run(out),
            Command::Commits(commits) => commits.run(out),
            Command::Table(table) => table.run(out),
            Command::Report(report) => report.run(out),
            Command::Worker(worker) => worker.run(out),
            Command::Status(status) => status.run(out),
            Command::Cancel(cancel) => cancel.run(out),
            Command::Help { all, topic } => {
                help::print_help(Self::command(), *all, topic.as_deref()).map_err(OutputError)?;
                Ok(Exit::Done)
            }
            Command::Completions { shell, program } => {
                let text = complete::script(*shell, program.command());
                out.write_all(&text).map_err(OutputError)?;
                Ok(Exit::Done)
            }
            Command::Man { directory } => {
                help::write_pages(Self::command(), directory).map_err(|source| WriteError {
                    path: directory.display().to_string(),
                    source,
                })?;
                Ok(Exit::Done)
            }
        }
    }
}
