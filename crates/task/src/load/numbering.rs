//! The numbered directories in a node's `inputs/`: `nn-text` and `nn_mm-text`.

use std::path::PathBuf;

use ce_model::text_file::TextError;

use super::problems::{LoadFault, Problems, WarningKind};
use super::source::{Located, TaskSource};

/// A directory that fills inputs of a computation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Branch {
    /// The name of the directory.
    pub(super) name: String,
    /// The first input that it fills.
    pub(super) first: u8,
    /// The last input that it fills.
    pub(super) last: u8,
    /// The label, for humans.
    pub(super) label: String,
}

impl Branch {
    /// The number of inputs that it fills.
    pub(super) fn places(&self) -> usize {
        usize::from(self.last + 1).saturating_sub(usize::from(self.first))
    }

    fn parse(name: &str) -> Option<Self> {
        let (first, rest) = number(name)?;
        let (last, rest) = match rest.strip_prefix('_') {
            Some(rest) => number(rest)?,
            None => (first, rest),
        };
        let label = rest.strip_prefix('-')?.to_owned();
        Some(Self { name: name.to_owned(), first, last, label })
    }
}

fn number(text: &str) -> Option<(u8, &str)> {
    let (digits, rest) = text.split_at_checked(2)?;
    let plain = digits.bytes().all(|c| c.is_ascii_digit());
    plain.then_some((digits.parse().ok()?, rest))
}

/// Returns the branches in a directory, in the order of their numbers, and reports problems of the
/// numbering.
pub(super) fn list<S: TaskSource>(
    source: &mut S,
    dir: &S::Dir,
    findings: &mut Problems,
) -> Vec<Branch> {
    let listed = source.list(dir);
    let listed = listed.map_err(|fault| findings.problem(&source.place(dir), fault));
    let mut branches = Vec::new();
    for entry in listed.unwrap_or_default() {
        let name = match entry.into_string() {
            Ok(name) => name,
            Err(entry) => {
                findings
                    .problem(&source.place(dir).join(entry), LoadFault::Text(TextError::NotText));
                continue;
            }
        };
        if name.starts_with('.') {
            continue;
        }
        match Branch::parse(&name) {
            Some(branch) => branches.push(branch),
            // A plain file with another name is the user's note.
            None if matches!(source.find(dir, &name), Ok(Located::File { plain: true, .. })) => {
                findings.warning(&source.place(dir).join(name), WarningKind::Unread);
            }
            None => findings.problem(&source.place(dir).join(name), LoadFault::Place),
        }
    }
    branches.sort_by(|a, b| (a.first, a.last, &a.name).cmp(&(b.first, b.last, &b.name)));
    check(&|| source.place(dir), &branches, findings);
    branches
}

fn check(dir: &dyn Fn() -> PathBuf, branches: &[Branch], findings: &mut Problems) {
    let mut next = 0;
    for branch in branches {
        let (first, last) = (usize::from(branch.first), usize::from(branch.last));
        let mut wrong = |fault| findings.problem(&dir().join(&branch.name), fault);
        if last < first {
            wrong(LoadFault::Backwards);
            continue;
        }
        if first > next {
            wrong(LoadFault::Gap { first: next, last: first - 1 });
        }
        if first < next {
            wrong(LoadFault::Overlap { first, last: last.min(next - 1) });
        }
        next = next.max(last + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_which_inputs_it_fills() {
        let parse = |name: &str| {
            Branch::parse(name).map(|branch| (branch.first, branch.last, branch.label))
        };
        assert_eq!(parse("00-left"), Some((0, 0, "left".to_owned())));
        assert_eq!(parse("01_03-a-b \"c\" ü"), Some((1, 3, "a-b \"c\" ü".to_owned())));
        assert_eq!(parse("00-"), Some((0, 0, String::new())));
        for wrong in ["", "0-a", "00", "000-a", "00_1-a", "00_01", "a0-b", "+1-a", "0é-a"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn gaps_overlaps_and_backward_ranges_are_told() {
        let names = ["00_02-a", "02_03-b", "03_01-c", "06-d"];
        let branches: Vec<_> = names.iter().filter_map(|name| Branch::parse(name)).collect();
        let mut findings = Problems::default();
        check(&|| "inputs".into(), &branches, &mut findings);
        let told: Vec<_> = findings.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "inputs/02_03-b: input 02 is filled already",
                "inputs/03_01-c: the range ends before it begins",
                "inputs/06-d: nothing fills inputs 04 to 05",
            ]
        );
    }
}
