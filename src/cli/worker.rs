//! `ce worker`: executes the calls of other runs.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::Parser;

use super::Tool;
use super::storage_args::StorageDir;
use ce_evaluate::session::{
    Error, IsolationPolicy, RunOptions, WorkerOptions, WorkerSession, scheduler_job, time_left,
};
use ce_executor::scheduler::ArrayTask;
use ce_files::umask;
use ce_model::exit::Exit;
use ce_model::humanize::{counted, duration, parse_count, parse_duration};
use ce_model::resources::parse_size;
use ce_report::{self as report, WorkerReport, say};
use ce_storage::{Durability, Unrecorded};

/// Execute calls that runs with --on workers have queued in a storage
///
/// Any number of workers may serve a storage, on any hosts that share its file system, and may be started and ended at any
/// time. Each takes calls that fit its resources, from all runs of the same user. Its results are published like the
/// results of any run. As the script of an allocation of Slurm it takes calls of several nodes or tasks, too. Ctrl-C ends
/// its calls, which other workers then execute.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub(super) struct Serve {
    /// How many cpus its calls use at the same time [default: the number of cores]
    #[arg(short, long, value_name = "N", value_parser = parse_count)]
    jobs: Option<NonZeroUsize>,

    /// How much memory its calls use at the same time, such as 8G [default: the memory of the host, or of the control group
    /// that it is in]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,

    /// End when no run has had a call for it for this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "2s")]
    idle: Duration,

    /// End after this time: a call begins only if the time that it asks for is left, or in the first half if it
    /// asks for none
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    deadline: Option<Duration>,

    /// Execute calls of these users, too, by their names or user ids. The worker then runs any program that they choose
    #[arg(long = "for", value_name = "USER", value_parser = user_id, value_hint = clap::ValueHint::Username)]
    users: Vec<u32>,

    /// The file of a key that runs and their workers share, instead of the user's own, which is in the home
    /// directory. It is made if it does not exist, and is for its owner alone. Again: another one, for --for
    #[arg(long = "key", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    keys: Vec<PathBuf>,

    /// Do not isolate calls, and refuse calls that require isolation
    #[arg(long)]
    no_isolate: bool,

    /// Do not wait until results are on the disk. Calls of runs without --no-sync are refused
    #[arg(long)]
    no_sync: bool,

    /// Print only errors
    #[arg(short, long)]
    quiet: bool,

    /// The number of this worker in its submission, for the run that has started it
    #[arg(long, value_name = "NAME", hide = true)]
    task: Option<ArrayTask>,

    #[command(flatten)]
    storage: StorageDir,
}

const EXIT_CODES: &str = "\
Exit codes: 0 nothing to do any more, or its time is over, even if calls failed; 2 the arguments are wrong, 5 the \
storage could not be read or written, 130 interrupted (143: by SIGTERM).";

impl Tool for Serve {
    fn run(&self, _: &mut dyn Write) -> Result<Exit, Error> {
        let default = RunOptions::default();
        let run = RunOptions {
            jobs: self.jobs.unwrap_or(default.jobs),
            durability: if self.no_sync { Durability::Unsynced } else { Durability::Synced },
            isolation: if self.no_isolate { IsolationPolicy::Off } else { default.isolation },
            unrecorded: Unrecorded::Adopt,
            quiet: self.quiet,
            frontend: report::terminal(),
            ..default
        };
        let options = WorkerOptions {
            run,
            memory: self.memory,
            users: self.users.clone(),
            keys: self.keys.clone(),
            idle: self.idle,
            life: self.deadline.or_else(time_left),
            job: scheduler_job(),
            task: self.task.clone(),
        };
        let life = options.life;
        let session = WorkerSession::open(&self.storage.find()?, options)?;
        let report = WorkerReport::default();
        session.work(&|event| report.record(&event, self.quiet))?;
        let signal = session.interrupted_by();
        if !self.quiet {
            let why = match signal {
                Some(_) => "interrupted".to_owned(),
                None if life.is_some_and(|it| session.lived() >= it) => {
                    "its time is over".to_owned()
                }
                None => format!("no call for {}", duration(self.idle.as_secs_f64())),
            };
            say("ce", &format_args!("the worker ends ({why}): {}", report.summary()));
        }
        let is_broken = report.broken() > 0;
        if is_broken {
            let calls = counted(report.broken(), "call");
            say("ce", &format_args!("{calls} failed: the storage could not be read or written"));
        }
        let end = if is_broken { Exit::Storage } else { Exit::Done };
        Ok(signal.map_or(end, Exit::Interrupted))
    }
}

/// Reads a user id, or asks the system for the id of a name, wherever it keeps its users.
fn user_id(text: &str) -> Result<u32, String> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let mut id = Command::new("id");
    id.args(["-u", "--", text]);
    id.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let asked = umask::as_user(|| id.spawn()).and_then(Child::wait_with_output);
    let output = asked
        .map_err(|error| format!("cannot run id -u: {error}; write the number of the user"))?;
    let id = String::from_utf8_lossy(&output.stdout).trim().parse();
    id.map_err(|_| "this host knows no such user; try: the number that id -u prints".to_owned())
}
