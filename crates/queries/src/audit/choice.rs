//! The choice of the calls that are audited.

use ce_model::digest::Blake3;
use ce_storage::ResultName;

/// The calls that are audited.
#[derive(Clone, Debug, PartialEq)]
pub enum AuditChoice {
    /// All that can be.
    All,
    /// A part of them, by chance.
    Sample(AuditSample),
    /// Those of a job.
    Job(ResultName),
    /// These.
    Calls(Vec<ResultName>),
}

/// The size of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AuditSample {
    /// A share of all, above 0 and up to 1.
    Share(f64),
    /// A number of calls.
    Number(usize),
}

impl AuditSample {
    /// The number of calls, of so many.
    fn of(self, all: usize) -> usize {
        match self {
            Self::Share(share) => (share * all as f64).ceil() as usize,
            Self::Number(number) => number,
        }
    }

    /// Returns which of these names are in the sample: the same each time for a seed, in whichever order they are.
    pub(super) fn chosen(self, names: &[String], seed: u64) -> Vec<bool> {
        let rank = |name: &String| Blake3::of(format!("{seed} {name}").as_bytes());
        let mut ranked: Vec<(Blake3, usize)> =
            names.iter().enumerate().map(|(at, name)| (rank(name), at)).collect();
        ranked.sort_unstable_by_key(|(rank, at)| (rank.full(), *at));
        let mut chosen = vec![false; names.len()];
        for (_, at) in ranked.into_iter().take(self.of(names.len())) {
            chosen[at] = true;
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(sample: AuditSample, seed: u64, names: &[String]) -> Vec<String> {
        let chosen = sample.chosen(names, seed);
        let mut names: Vec<String> =
            names.iter().zip(chosen).filter(|(_, it)| *it).map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_sample_is_as_large_as_asked_for_and_the_same_for_a_seed() {
        let names: Vec<String> = (0..1000).map(|n| format!("c_add/{n}")).collect();
        let reversed: Vec<String> = names.iter().rev().cloned().collect();
        let tenth = AuditSample::Share(0.1);
        let one = chosen(tenth, 1, &names);
        assert_eq!(one.len(), 100);
        assert_eq!(one, chosen(tenth, 1, &reversed));
        assert_ne!(one, chosen(tenth, 2, &names));
        let number = |number| chosen(AuditSample::Number(number), 1, &names);
        assert_eq!([number(1).len(), number(0).len(), number(5000).len()], [1, 0, 1000]);
        assert!(number(7).iter().all(|name| one.contains(name)), "a larger one has a smaller one");
        assert_eq!(chosen(AuditSample::Share(0.001), 1, &names[..3]).len(), 1);
        assert_eq!(chosen(AuditSample::Share(1.0), 1, &names).len(), 1000);
    }
}
