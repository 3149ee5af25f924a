//! Results that an evaluation has used, and that somebody has revoked.

use std::collections::BTreeSet;

use super::harmless;
use crate::evaluate::{Evaluation, Outcome};
use crate::storage::StorageError;

/// The greatest number of results that are named.
const NAMED: usize = 20;

/// Returns a line for each result that was reused and is revoked, with the reason.
///
/// # Errors
///
/// Fails if the storage cannot be read.
pub fn revoked_results(evaluation: &Evaluation) -> Result<Vec<String>, StorageError> {
    let storage = &evaluation.storage;
    let revoked = storage.revocations().index()?.revoked_in(storage)?;
    if revoked.is_empty() {
        return Ok(Vec::new());
    }
    let used = evaluation.outcomes().filter(|it| !matches!(it, Outcome::Executed(_)));
    let used: BTreeSet<String> =
        used.filter(|it| it.known().is_some()).map(|it| it.name().short()).collect();
    let used = used.into_iter().filter_map(|name| Some((revoked.get(&name)?, name)));
    let line = |(reason, name): (&String, String)| {
        let (name, reason) = (harmless(&name), harmless(reason));
        format!("warning: the result {name} is revoked: {reason}\n  try: ce run --force {name}")
    };
    let mut lines: Vec<String> = used.map(line).collect();
    let more = lines.len().saturating_sub(NAMED);
    lines.truncate(NAMED);
    if more > 0 {
        lines.push(format!(
            "warning: {more} more results are revoked\n  try: ce run --force CALL computes one again"
        ));
    }
    Ok(lines)
}
