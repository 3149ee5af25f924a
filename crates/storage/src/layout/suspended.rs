//! Names of suspended calls: the place of each, and the index of all.
//!
//! ```text
//! c_NAME/CCID/suspended/INPUTS/     the place of a call: `work/`, `log`, `state.json`
//! suspended/KEY                     the short name of the call with this computation, tree and inputs
//! suspended/KEY-COMMIT              the same for one that is not isolated: other commits do not continue it
//! ```

use super::result::shown;
use super::{ComputationVersion, Digits, LOG, ResultName, SUSPENDED, WORK};
use ce_model::digest::{DIRTY, Digest};

/// The key of a call in the index: the same for all commits with the computation's tree.
pub(crate) fn suspension_key(version: ComputationVersion<'_>, inputs: &[Digest]) -> String {
    let ComputationVersion { computation, tree, .. } = version;
    let inputs: Vec<String> = inputs.iter().map(|input| shown(input, Digits::Full)).collect();
    let text = format!("{computation}\n{}\n{}", tree.full(), inputs.join("\n"));
    Digest::of(text.as_bytes()).sha1.full()
}

/// The name of a call's file in the index.
pub(crate) fn suspension_index(
    version: ComputationVersion<'_>,
    inputs: &[Digest],
    isolated: bool,
) -> String {
    let key = suspension_key(version, inputs);
    match (isolated, version.dirty) {
        (true, _) => format!("{SUSPENDED}/{key}"),
        (false, true) => format!("{SUSPENDED}/{key}-{}", DIRTY.trim_end_matches('-')),
        (false, false) => format!("{SUSPENDED}/{key}-{}", version.commit.full()),
    }
}

impl ResultName {
    /// The place of the call while it is suspended, relative to the storage.
    pub fn suspended_place(&self) -> String {
        self.room(SUSPENDED)
    }

    /// The directory that a suspended call finds again.
    pub(crate) fn suspended_work(&self) -> String {
        format!("{}/{WORK}", self.suspended_place())
    }

    /// What a suspended call has printed.
    pub(crate) fn suspended_log(&self) -> String {
        format!("{}/{LOG}", self.suspended_place())
    }

    /// The record of a suspended call.
    pub(crate) fn suspended_state(&self) -> String {
        format!("{}/state.json", self.suspended_place())
    }

    /// Parses the name of a suspended call's place, or of something in it.
    pub fn of_suspended(name: &str) -> Option<Self> {
        let (directory, rest) = name.split_once(&format!("/{SUSPENDED}/"))?;
        directory.starts_with("c_").then_some(())?;
        let mut end = 0;
        for part in rest.split('/') {
            end += part.len();
            // The name goes on in directories that end in an underscore.
            if part == "_" || !part.ends_with('_') {
                break;
            }
            end += 1;
        }
        Some(Self { directory: directory.into(), file: rest.get(..end)?.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_and_all_in_it_lead_to_the_call() {
        for file in ["_", "ad48103e4fc7", "a_b_/c"] {
            let name = ResultName { directory: "c_add/567526d1f10f".into(), file: file.into() };
            for place in [name.suspended_place(), name.suspended_work(), name.suspended_state()] {
                assert_eq!(ResultName::of_suspended(&place), Some(name.clone()), "{place}");
            }
        }
        assert_eq!(ResultName::of_suspended("c_add/567526d1f10f/00/_"), None);
    }

    #[test]
    fn only_a_call_that_is_not_isolated_is_one_of_its_commit() {
        let version = ComputationVersion::example();
        let inputs = [Digest::of(b"1")];
        let commit = "2".repeat(40).parse().unwrap();
        let other = ComputationVersion { commit: &commit, ..version };
        let index = |version, isolated| suspension_index(version, &inputs, isolated);
        assert_eq!(index(version, true), index(other, true));
        assert_ne!(index(version, false), index(other, false));
        assert!(index(version, false).starts_with(&index(version, true)));
        assert_ne!(index(version, true), suspension_index(version, &[], true));
    }
}
