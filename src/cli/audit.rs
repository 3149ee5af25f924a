//! `ce audit`: whether recorded calls still make the recorded outputs.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use super::Tool;
use super::options::{PlaceName, isolation, jobs, slurm, task_dir, warn_of_links};
use super::storage_args::storage_and_results;
use ce_evaluate::session::{Error, OutputError, RunOptions, Session, named_call, named_job};
use ce_evaluate::{AuditedEnd, Policy};
use ce_git::Config;
use ce_model::exit::{Exit, Explain};
use ce_model::humanize::{counted, parse_count, parse_duration, parse_number};
use ce_queries::audit::{
    AuditChoice, AuditEnds, AuditPlan, AuditSample, AuditTerms, audit, plan_audit,
};
use ce_report::{self as report, Bar, harmless, say};
use ce_storage::{Durability, Storage};

/// Two options say differently which calls are audited.
#[derive(Debug, thiserror::Error, Explain)]
#[error("{0} and {1} both choose the calls to audit")]
#[hint("leave out one of them")]
struct AuditedTwice(&'static str, String);

/// Execute recorded calls again, and compare their outputs with the recorded ones
///
/// Each call is executed in a place of its own, isolated as its computation says. No published result changes. The findings
/// are evidence: the ledger of the storage says who has executed a call and with which outputs, and ce push shares it.
/// Without further arguments, all calls of all jobs whose commits are in the repository are audited, beginning with the
/// calls that the fewest have executed.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub(super) struct AuditCalls {
    /// Execute nothing; print which calls would be audited, who has executed each so far, and how long it took
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Audit a part of them, by chance: a share such as 10% or 0.1, or a number of calls
    #[arg(long, value_name = "PART", value_parser = sample, conflicts_with_all = ["job", "calls"])]
    sample: Option<AuditSample>,

    /// Choose the same sample as the run that has printed this number
    #[arg(long, value_name = "NUMBER", requires = "sample", value_parser = |text: &str| parse_number::<u64>(text, 0))]
    seed: Option<u64>,

    /// Audit the calls of this job: its name t_TASK/COMMIT/INPUTS, or one of its files
    #[arg(long, value_name = "JOB|FILE", conflicts_with = "calls", value_hint = clap::ValueHint::FilePath)]
    job: Option<PathBuf>,

    /// Take no longer than this, such as 2h: begin no call that took longer than the rest of this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    budget: Option<Duration>,

    /// How the ledger of executions calls you [default: it names nobody]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// Print only which calls do not agree, and how
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,

    /// Print a JSON object for each call, and one at the end
    #[arg(long)]
    json: bool,

    /// How many computations run at the same time, or how many cpus they use if they ask for several [default:
    /// compeval.jobs in Git's configuration, else the number of cores]
    #[arg(short, long, value_name = "N", value_parser = parse_count)]
    jobs: Option<NonZeroUsize>,

    /// Where calls are executed: here, by workers that others start with ce worker, by workers that are submitted
    /// to Slurm, or by workers that the commands compeval.scheduler.* start
    #[arg(long, value_name = "PLACE", default_value = "here")]
    on: PlaceName,

    /// The file of a key that this run and its workers share, instead of the user's own, which is in the home
    /// directory. It is made if it does not exist, and is for its owner alone
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    key: Option<PathBuf>,

    /// End a computation that takes longer, such as 90s, 10min or 1h30min
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,

    /// Isolate computations from the rest of the system, or execute nothing [default: isolate unless the host has no
    /// namespaces]
    #[arg(long, overrides_with = "no_isolate")]
    isolate: bool,

    /// Do not isolate computations from the rest of the system [default: compeval.isolate in Git's configuration]
    #[arg(long, overrides_with = "isolate")]
    no_isolate: bool,

    /// A directory in the repository that has the tasks
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = task_dir(), value_hint = clap::ValueHint::DirPath)]
    task: PathBuf,

    /// The directory that keeps all results [default: the one in the path of the first call, else compeval.storage in Git's
    /// configuration]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: Option<PathBuf>,

    /// Audit these calls, also if their computations are declared as nondeterministic: one of their files, or the name
    /// c_NAME/CCID/INPUTS
    #[arg(value_name = "CALL|FILE", value_hint = clap::ValueHint::FilePath)]
    calls: Vec<PathBuf>,
}

const EXIT_CODES: &str = "\
Exit codes: 0 all that were executed agree, 1 one differs, failed or could not be executed, 2 the arguments are wrong, \
3 isolation is required and not possible, 5 the storage could not be read or written, 130 interrupted (143: by SIGTERM); what was found until then is kept.";

/// Reads a share such as `10%` or `0.1`, or a number of calls.
fn sample(text: &str) -> Result<AuditSample, String> {
    if let Some(percent) = text.strip_suffix('%') {
        return share(percent, 100.0);
    }
    match text.parse() {
        Ok(0) => Err("write a number of calls from 1".to_owned()),
        Ok(calls) => Ok(AuditSample::Number(calls)),
        Err(_) => share(text, 1.0),
    }
}

/// Reads a share of this whole.
fn share(text: &str, whole: f64) -> Result<AuditSample, String> {
    match text.parse::<f64>().map(|part| part / whole) {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(AuditSample::Share(share)),
        Ok(_) => Err("write a share above 0 and up to 1, or up to 100%".to_owned()),
        Err(_) => Err("write a share such as 10% or 0.1, or a number of calls".to_owned()),
    }
}

impl Tool for AuditCalls {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let config = Config::read(&self.task)?;
        let (path, calls) =
            storage_and_results(self.storage.as_deref(), &self.calls, config.storage()?)?;
        let storage = Storage::existing(&path)?;
        warn_of_links(&storage)?;
        let choice = self.choice(&storage, &calls)?;
        let options = self.options(&config)?;
        let session = if self.dry_run {
            Session::inspect(&self.task, storage, &options)
        } else {
            Session::start(&self.task, storage, &options)?
        };
        let seed = self.sample.map(|_| self.seed.unwrap_or_else(random));
        let plan = plan_audit(&session, &self.task, &choice, seed.unwrap_or_default())?;
        if let Some(seed) = seed {
            say("ce", &format_args!("the sample is drawn with --seed {seed}"));
        }
        if self.dry_run {
            report::planned_audits(&plan, self.json, out).map_err(OutputError)?;
            self.conclude(&plan, &report::audit_size(&plan));
            return Ok(Exit::Done);
        }
        self.audit(&session, &plan, seed, out)
    }
}

impl AuditCalls {
    fn audit(
        &self,
        session: &Session,
        plan: &AuditPlan,
        seed: Option<u64>,
        out: &mut dyn Write,
    ) -> Result<Exit, Error> {
        let terms = AuditTerms { budget: self.budget, by: self.by.clone() };
        let bar = Bar::of_calls(io::stderr().is_terminal() && !self.quiet, plan.calls.len());
        let mut ends = AuditEnds::new(plan);
        let mut told = Ok(());
        // The number of further calls that were not executed for each reason.
        let mut more: BTreeMap<String, usize> = BTreeMap::new();
        let audited = audit(session, plan, &terms, &mut |at, end| {
            bar.advance(1);
            let is_repeated = match &end {
                AuditedEnd::NotAudited(why) => {
                    let count = more.get_mut(&why.reason).map(|count| *count += 1);
                    count.is_some() || more.insert(why.reason.clone(), 0).is_some()
                }
                AuditedEnd::Report(_) | AuditedEnd::OverBudget => false,
            };
            let is_quiet = self.quiet && end.agrees() || is_repeated && !self.json;
            if told.is_ok() && !is_quiet {
                told = bar.print_above(|| {
                    report::audited(&plan.calls[at], &end, self.json, out)?;
                    out.flush()
                });
            }
            ends.record(at, end);
        });
        bar.clear();
        for (why, count) in more.iter().filter(|(_, count)| **count > 0) {
            let calls = counted(*count, "more call");
            say("ce", &format_args!("{calls} not audited for the same reason: {}", harmless(why)));
        }
        audited?;
        if told.is_ok() {
            told = if self.json {
                report::not_audited_json(plan, out)
                    .and_then(|()| report::audit_end_json(&ends, seed, out))
            } else {
                report::audit_findings(session.storage(), &ends, out)
            };
        }
        let counts = ends.counts();
        if counts.not_isolated > 0 && !self.quiet {
            let calls = counted(counts.not_isolated, "call");
            let were = if counts.not_isolated == 1 { "was" } else { "were" };
            say(
                "ce",
                &format_args!(
                    "{calls} {were} not isolated, and could see more than what is recorded"
                ),
            );
        }
        self.conclude(plan, &report::audit_summary(&counts));
        match told {
            // The reader has closed the pipe; the audit went on all the same.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(OutputError(error).into())
            }
            _ => Ok(match session.interrupted_by() {
                Some(signal) => Exit::Interrupted(signal),
                None if counts.broken > 0 => Exit::Storage,
                None if counts.differ + counts.failed + counts.not_executed > 0 => Exit::Failed,
                None => Exit::Done,
            }),
        }
    }

    /// Reports the calls that cannot be audited, and the outcome of the rest.
    fn conclude(&self, plan: &AuditPlan, summary: &str) {
        if self.quiet {
            return;
        }
        for line in report::not_audited(plan) {
            say("ce", &line);
        }
        say("ce", &summary);
    }

    fn choice(&self, storage: &Storage, calls: &[PathBuf]) -> Result<AuditChoice, Error> {
        let conflicts = [("--sample", self.sample.is_some()), ("--job", self.job.is_some())];
        if let Some((option, _)) = conflicts.into_iter().find(|(_, is_given)| *is_given)
            && let Some(call) = calls.first()
        {
            return Err(AuditedTwice(option, call.display().to_string()).into());
        }
        Ok(match (self.sample, &self.job, calls) {
            (Some(sample), _, _) => AuditChoice::Sample(sample),
            (None, Some(job), _) => AuditChoice::Job(named_job(storage, job)?),
            (None, None, []) => AuditChoice::All,
            (None, None, calls) => {
                let names = calls.iter().map(|call| named_call(storage, call));
                AuditChoice::Calls(names.collect::<Result<_, _>>()?)
            }
        })
    }

    fn options(&self, config: &Config) -> Result<RunOptions, Error> {
        Ok(RunOptions {
            jobs: jobs(self.jobs, config)?,
            policy: Policy { timeout: self.timeout, ..Policy::default() },
            durability: Durability::Synced,
            isolation: isolation(self.isolate, self.no_isolate, config)?,
            place: self.on.place(config)?,
            key: self.key.clone(),
            slurm: slurm(config)?,
            frontend: report::terminal(),
            ..RunOptions::default()
        })
    }
}

fn random() -> u64 {
    // Short enough to be typed.
    RandomState::new().build_hasher().finish() % 1_000_000
}
