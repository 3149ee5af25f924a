//! Finding a call that need not have a result: it may have failed, or be executed now.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Error;
use ce_history::{Filter, HistoryError, MIN_DIGITS, Past, log};
use ce_model::exit::Explain;
use ce_model::plan::computations_named;
use ce_model::task::{Computation, Task};
use ce_storage::{ResultName, Storage};

/// Why a text names no call or job.
#[derive(Debug, thiserror::Error)]
pub enum CallNameError {
    /// A text names no call.
    #[error("{0} is not a call of the storage")]
    NoCall(String),
    /// A text names no job.
    #[error("{0} is not a job of the storage")]
    NoJob(String),
}

impl Explain for CallNameError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoJob(_) => "give one of its files in t_NAME/CCID/NN/, or t_NAME/CCID/INPUTS",
            Self::NoCall(_) => {
                "give a file in c_NAME/CCID/NN/, or c_NAME/CCID/INPUTS; ce show prints what made a file"
            }
        };
        Some(hint.to_owned())
    }
}

/// Returns the call that is named by its short name, the path or name of one of its files, or the first digits of its inputs in that
/// name, if it is known or executed now.
///
/// # Errors
///
/// Fails if there is none, there are several, or the storage cannot be read.
pub fn find_call(storage: &Storage, text: &str) -> Result<ResultName, Error> {
    find_call_and_log(storage, text, &mut None)
}

/// Finds a call as [`find_call`] does. If it reads the log for that, it leaves it to the caller.
pub(super) fn find_call_and_log(
    storage: &Storage,
    text: &str,
    read: &mut Option<Vec<Past>>,
) -> Result<ResultName, Error> {
    for name in named(storage, text) {
        // In this order: a call that ends between the two looks is known at the second.
        if storage.leases().holder(&name).is_some() || storage.logs().is_known(&name)? {
            return Ok(name);
        }
    }
    let unknown = || HistoryError::NoCall(text.to_owned());
    let digits = text.to_ascii_lowercase();
    let is_digit = |digit: u8| digit.is_ascii_hexdigit() || digit == b'_';
    if digits.is_empty() || !digits.bytes().all(is_digit) {
        return Err(unknown().into());
    }
    if digits.len() < MIN_DIGITS {
        return Err(HistoryError::TooShort(digits).into());
    }
    let executed = storage.logs().executed_calls()?;
    let log = read.insert(log(storage, &Filter::default())?);
    let known = log.iter().map(|past| past.name.clone());
    let all = known.chain(executed);
    let has_digits =
        |name: &String| name.rsplit('/').next().is_some_and(|it| it.starts_with(&digits));
    let mut found: Vec<String> = all.filter(has_digits).collect();
    found.sort_unstable();
    found.dedup();
    match &found[..] {
        [name] => ResultName::of_short(name).ok_or_else(|| unknown().into()),
        [] => Err(unknown().into()),
        _ => Err(HistoryError::Calls { digits, found }.into()),
    }
}

/// Returns the only known call with a name by which `ce run --only` asks for it: that of a computation, or the labels that lead to a
/// call. The task says which computations are meant. Calls of the task's versions come first, and then those of any version, as for
/// a computation that the task does not have. `None` if there is no such computation. Reads the log unless that was `read`.
///
/// # Errors
///
/// Fails if several calls have it, or may be another call than the labels lead to, or none does and the task has the computation, or
/// the storage cannot be read.
pub(super) fn find_call_of(
    storage: &Storage,
    task: Option<&Task>,
    text: &str,
    read: Option<Vec<Past>>,
) -> Result<Option<ResultName>, Error> {
    let named = task.map(|task| computations_named(task, text));
    let (computations, is_shared) = named.unwrap_or_default();
    let with_texts = |past: Past| {
        let texts = past.texts.iter().map(|(name, text)| format!(" {name}={text}"));
        (past.name, texts.collect())
    };
    let log = read.map_or_else(|| log(storage, &Filter::default()), Ok)?;
    let known = log.into_iter().map(with_texts);
    let executed = storage.logs().executed_calls()?.into_iter().map(|name| (name, String::new()));
    let all: BTreeMap<String, String> = executed.chain(known).collect();
    let with_prefixes = |prefixes: Vec<String>| {
        let has_name = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        all.iter().filter(|(name, _)| has_name(name)).collect::<Vec<_>>()
    };
    let at_version = |it: &&Computation| format!("c_{}/{}/", it.name, it.version());
    let mut found = with_prefixes(computations.iter().map(at_version).collect());
    if found.is_empty() {
        let any_version = |it: &&Computation| format!("c_{}/", it.name);
        let names = match computations.is_empty() {
            true => vec![format!("c_{text}/")],
            false => computations.iter().map(any_version).collect(),
        };
        found = with_prefixes(names);
    }
    let text = text.to_owned();
    match &found[..] {
        [] if computations.is_empty() => return Ok(None),
        [] => return Err(HistoryError::NoCall(text).into()),
        [(name, _)] if !is_shared => return Ok(ResultName::of_short(name)),
        _ => {}
    }
    let found = found.into_iter().map(|(name, texts)| format!("{name}{texts}")).collect();
    if !is_shared {
        return Err(HistoryError::CallsOf { text, found }.into());
    }
    let computations: Vec<&str> = computations.iter().map(|it| it.name.as_str()).collect();
    let computation = computations.join(", ");
    Err(HistoryError::SharedComputation { label: text, computation, found }.into())
}

/// The calls that a text may be the name of, or the path or name of a file of.
pub(super) fn named(storage: &Storage, text: &str) -> impl Iterator<Item = ResultName> {
    let plain: PathBuf = Path::new(text).components().collect();
    let names = [storage.name_of(Path::new(text)), plain.to_str().map(str::to_owned)];
    names.into_iter().flatten().filter_map(|name| ResultName::of_call_file(&name))
}
