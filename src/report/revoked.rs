//! Results that an evaluation has used, and that somebody has revoked.

use std::collections::BTreeMap;

use super::harmless;
use ce_evaluate::{Evaluation, How};
use ce_model::digest::Digest;
use ce_storage::Entry;

/// The greatest number of results that are named.
const NAMED: usize = 20;

/// Returns a line for each result that is revoked, with the reason, whether it was reused or executed again with the same outputs. A
/// revocation that cannot be read does not stop what has been evaluated.
pub fn revoked_results(evaluation: &Evaluation) -> Vec<String> {
    let revocations = evaluation.storage.revocations().index().unwrap_or_default();
    if revocations.is_empty() {
        return Vec::new();
    }
    let mut revoked = BTreeMap::new();
    for outcome in evaluation.outcomes() {
        let Some(outputs) = outcome.known() else { continue };
        let is_again = outcome.how() == How::Executed;
        let digests: Vec<Digest> = outputs.files.iter().map(|it| it.digest).collect();
        if let Some(reason) = revocations.reason(&Entry::Call(outputs.name.clone()), &digests) {
            revoked.insert(outputs.name.short(), (reason, is_again));
        }
    }
    let line = |(name, (reason, is_again)): (&String, &(&str, bool))| {
        let (name, reason) = (harmless(name), harmless(reason));
        if *is_again {
            return format!(
                "warning: {name} was executed again and has the outputs that are revoked: {reason}\n  \
                 try: correct the computation or its inputs, and commit that"
            );
        }
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
