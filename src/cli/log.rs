//! `ce log`: what was computed, and what failed.

use std::io::Write;

use clap::Parser;

use super::Tool;
use super::options::warn_of_links;
use super::place::StorageDir;
use crate::report;
use ce_evaluate::session::{Error, OutputError};
use ce_exchange::Attestations;
use ce_history::{Filter, Past};
use ce_model::digest::DIRTY;
use ce_model::exit::Exit;
use ce_model::humanize::{parse_number, parse_seconds};
use ce_storage::Storage;

/// List the calls of a storage by time, the newest last
///
/// A line has the time of the end, the computation, its version, the inputs, the duration, the peak
/// memory, the host, and the short texts among the inputs, such as the levels of a point. A call whose last attempt failed is marked, with the reason; so is one that
/// was taken over from another commit, one that is suspended, and one of an uncommitted computation.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Exit codes: 0 listed, 2 the arguments are wrong, 5 the storage could not be read."
)]
pub struct Log {
    /// Print a JSON object for each line
    #[arg(long)]
    json: bool,

    /// Print what calls have asked for, and the most that they have used, a line for each
    /// computation and request
    ///
    /// Only calls that succeeded and were executed count. The columns are the computation, the
    /// number of calls, and what was asked for and used: cpus, memory, time; then what else
    /// was asked for.
    #[arg(long)]
    resources: bool,

    /// Print how many of those who have executed each call have got the recorded outputs, by the ledger
    #[arg(long, conflicts_with = "resources")]
    attested: bool,

    /// Only calls of this computation
    #[arg(long, value_name = "NAME")]
    computation: Option<String>,

    /// Only calls at the commit that begins with these digits; dirty- for uncommitted computations
    #[arg(long, value_name = "ID", value_parser = beginning)]
    commit: Option<String>,

    /// Only calls that failed, and have not succeeded since
    #[arg(long)]
    failed: bool,

    /// Only calls that ran at least so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    slow: Option<f64>,

    /// Only the last N
    #[arg(short = 'n', value_name = "N", value_parser = |text: &str| parse_number::<usize>(text, 0))]
    most: Option<usize>,

    #[command(flatten)]
    storage: StorageDir,
}

/// Reads the beginning of a version: of a commit, or of `dirty-` and the digits of a tree.
fn beginning(text: &str) -> Result<String, String> {
    let text = text.to_ascii_lowercase();
    let digits = text.strip_prefix(DIRTY).unwrap_or(&text);
    let is_version = digits.bytes().all(|it| it.is_ascii_hexdigit() || it == b'-');
    match !text.is_empty() && (is_version || DIRTY.starts_with(&text)) {
        true => Ok(text),
        false => {
            Err("it is no beginning of a commit; write its first hexadecimal digits, or dirty-"
                .to_owned())
        }
    }
}

impl Tool for Log {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let filter = Filter {
            computation: self.computation.clone(),
            commit: self.commit.clone(),
            failed: self.failed,
            slow: self.slow,
            most: self.most,
        };
        let storage = Storage::existing(&self.storage.find()?)?;
        warn_of_links(&storage)?;
        let log = ce_history::log(&storage, &filter)?;
        if log.is_empty() && filter.is_selective() && self.most != Some(0) {
            let why = ce_history::why_none(&storage, &filter)?;
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            report::say("ce", &format_args!("no call matches{why}"));
        }
        let attested = match self.attested {
            true => {
                let all = Attestations::read(&storage)?;
                let of = |past: &Past| all.of_call(&storage, &past.name);
                Some(log.iter().map(of).collect::<Result<Vec<_>, _>>()?)
            }
            false => None,
        };
        let printed = match (self.resources, self.json) {
            (false, false) => report::log(&log, attested.as_deref(), out),
            (false, true) => report::log_json(&log, attested.as_deref(), out),
            (true, false) => report::resource_usage(&ce_history::resource_usage(&log), out),
            (true, true) => report::resource_usage_json(&ce_history::resource_usage(&log), out),
        };
        printed.map_err(OutputError)?;
        Ok(Exit::Done)
    }
}
