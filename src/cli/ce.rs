//! `ce`: all programs in one.

use std::io::Write;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::audit::AuditCalls;
use super::compare::CompareMedians;
use super::exchange::{Pull, Push};
use super::explain::ExplainRuns;
use super::export::{CiteResult, ExportResults};
use super::gc::{Gc, Pin};
use super::report::WriteReport;
use super::revisions::{Bisect, Diff, ListCommits};
use super::run::Run;
use super::show::{InspectCall, Log, Show};
use super::status::{Cancel, ShowStatus};
use super::table::ShowTable;
use super::task::{Check, Convert, Init, Sym};
use super::verify::{Doctor, Verify};
use super::viz::Viz;
use super::worker::Serve;
use super::{Tool, complete, help};
use ce_evaluate::session::{Error, OutputError, WriteError};
use ce_model::exit::Exit;

/// Evaluate workflows of expensive computations, kept in Git, and never compute anything twice
#[derive(Debug, Parser)]
#[command(name = "ce", version, help_template = help::template(false), disable_help_subcommand = true)]
pub struct Ce {
    #[command(subcommand)]
    command: Command,
}

/// The options of a command are made when it is the one that is called.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    Run(Run),
    Sym(Sym),
    Viz(Viz),
    Check(Check),
    Init(Init),
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
        match &self.command {
            Command::Run(run) => run.run(out),
            Command::Sym(sym) => sym.run(out),
            Command::Viz(viz) => viz.run(out),
            Command::Check(check) => check.run(out),
            Command::Init(init) => init.run(out),
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
