//! Finding a call that need not have a result: it may have failed, or be executed now.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Error;
use crate::plan::computations_named;
use crate::questions::history::{Filter, HistoryError, MIN_DIGITS, Past, log};
use crate::storage::{ResultName, Storage};
use crate::task::workflow::Task;

/// Returns the call that is named by its short name, the path or name of one of its files, or the first digits of its inputs in that
/// name, if it is known or executed now.
///
/// # Errors
///
/// Fails if there is none, there are several, or the storage cannot be read.
pub fn find_call(storage: &Storage, text: &str) -> Result<ResultName, Error> {
    for name in named(storage, text) {
        if storage.is_known(&name)? || storage.leases().holder(&name).is_some() {
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
    let known = log(storage, &Filter::default())?.into_iter().map(|past| past.name);
    let all = known.chain(storage.executed_calls()?);
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
/// call. The task says which computations are meant; those that it does not have are meant at any version. `None` if there is no
/// such computation.
///
/// # Errors
///
/// Fails if several calls have it, or none does and the task has the computation, or the storage cannot be read.
pub(super) fn find_call_of(
    storage: &Storage,
    task: Option<&Task>,
    text: &str,
) -> Result<Option<ResultName>, Error> {
    let computations = task.map(|task| computations_named(task, text)).unwrap_or_default();
    let mut prefixes: Vec<String> =
        computations.iter().map(|it| format!("c_{}/{}/", it.name, it.version())).collect();
    if prefixes.is_empty() {
        prefixes.push(format!("c_{text}/"));
    }
    let with_texts = |past: Past| {
        let texts = past.texts.iter().map(|(name, text)| format!(" {name}={text}"));
        (past.name, texts.collect())
    };
    let known = log(storage, &Filter::default())?.into_iter().map(with_texts);
    let executed = storage.executed_calls()?.into_iter().map(|name| (name, String::new()));
    let has_name = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let found: BTreeMap<String, String> =
        executed.chain(known).filter(|(name, _)| has_name(name)).collect();
    if let (1, Some(name)) = (found.len(), found.keys().next()) {
        return Ok(ResultName::of_short(name));
    }
    let text = text.to_owned();
    match (found.is_empty(), computations.is_empty()) {
        (true, true) => Ok(None),
        (true, false) => Err(HistoryError::NoCall(text).into()),
        (false, _) => {
            let found = found.into_iter().map(|(name, texts)| name + &texts).collect();
            Err(HistoryError::CallsOf { text, found }.into())
        }
    }
}

/// The calls that a text may be the name of, or the path or name of a file of.
pub(super) fn named(storage: &Storage, text: &str) -> impl Iterator<Item = ResultName> {
    let plain: PathBuf = Path::new(text).components().collect();
    let names = [storage.name_of(Path::new(text)), plain.to_str().map(str::to_owned)];
    names.into_iter().flatten().filter_map(|name| ResultName::of_call_file(&name))
}
