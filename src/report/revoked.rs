//! Results that an evaluation has used, and that somebody has revoked.

use std::collections::BTreeMap;

use super::harmless;
use crate::digest::Digest;
use crate::evaluate::{Evaluation, Outcome};
use crate::storage::Entry;

/// The greatest number of results that are named.
const NAMED: usize = 20;

/// Returns a line for each result that was reused and is revoked, with the reason. A revocation that cannot be read does not stop
/// what has been evaluated.
pub fn revoked_results(evaluation: &Evaluation) -> Vec<String> {
    let revocations = evaluation.storage.revocations().index().unwrap_or_default();
    if revocations.is_empty() {
        return Vec::new();
    }
    let mut revoked = BTreeMap::new();
    for outcome in evaluation.outcomes().filter(|it| !matches!(it, Outcome::Executed(_))) {
        let Some(outputs) = outcome.known() else { continue };
        let digests: Vec<Digest> = outputs.files.iter().map(|it| it.digest).collect();
        if let Some(reason) = revocations.reason(&Entry::Call(outputs.name.clone()), &digests) {
            revoked.insert(outputs.name.short(), reason);
        }
    }
    let line = |(name, reason): (&String, &&str)| {
        let (name, reason) = (harmless(name), harmless(reason));
        format!("warning: the result {name} is revoked: {reason}\n  try: ce run --force {name}")
    };
    let mut lines: Vec<String> = revoked.iter().map(line).collect();
    let more = lines.len().saturating_sub(NAMED);
    lines.truncate(NAMED);
    if more > 0 {
        lines.push(format!(
            "warning: {more} more results are revoked\n  try: ce run --force CALL computes one again"
        ));
    }
    lines
}
