//! What comparisons of two levels say, in a plain sentence for who decides.

use ce_model::humanize::{counted, duration};
use ce_model::statistics::{ChangeVerdict, Estimate, THRESHOLD};
use ce_model::sweep::Better;
use ce_queries::compared_medians::{ComparedMedians, is_better, mean_ratio};

use crate::digits::significant;

/// Two levels of a factor, compared in a column once for each combination of the other factors.
pub(super) struct ComparedLevels<'a> {
    /// The name of the column.
    pub(super) name: &'a str,
    pub(super) better: Option<Better>,
    /// The old level and the new one, as people read them.
    pub(super) levels: [&'a str; 2],
    /// The comparisons, each with the number of measurements of both sides.
    pub(super) rows: Vec<(ComparedMedians, usize)>,
    /// How long a measurement takes, in seconds, if that is known.
    pub(super) seconds: Option<f64>,
}

impl ComparedLevels<'_> {
    /// Says which level has less or more of the column and by how much, how sure that is, and what it costs to be surer. `None` unless all
    /// comparisons have a ratio.
    pub(super) fn sentence(&self) -> Option<String> {
        let Self { name, levels: [old, new], rows, .. } = self;
        let mean = mean_ratio(rows.iter().map(|(row, _)| row))?;
        if rows.iter().all(|(row, _)| row.verdict == ChangeVerdict::SameCall) {
            return None;
        }
        let all = rows.len();
        let count = |is_meant: &dyn Fn(ChangeVerdict) -> bool| {
            rows.iter().filter(|(row, _)| is_meant(row.verdict)).count()
        };
        let [less, more, same] = [ChangeVerdict::Less, ChangeVerdict::More, ChangeVerdict::Same]
            .map(|verdict| count(&|it| it == verdict));
        let in_all = if all > 1 { format!(", in all {all} comparisons") } else { String::new() };
        let change = change(mean, [old, new]);
        let cost = self.cost().map(|cost| format!("; {cost}")).unwrap_or_default();
        Some(if less == all || more == all {
            let verdict = if less == all { ChangeVerdict::Less } else { ChangeVerdict::More };
            let good = match is_better(verdict, self.better) {
                Some(true) => "better, ",
                Some(false) => "worse, ",
                None => "",
            };
            format!("{name}: {change}{in_all}: {good}95 % sure")
        } else if same == all {
            let least = significant(THRESHOLD * 100.0, 2);
            format!(
                "{name}: no difference of {least} % or more between {old} and {new}{in_all}: 95 % sure"
            )
        } else if less + more + same == 0 {
            let [low, high] = [mean.low, mean.high].map(signed);
            format!(
                "{name}: no difference between {old} and {new} is shown{in_all}; {new} has between {low} and {high}{cost}"
            )
        } else {
            let parts = [
                (less, self.word(ChangeVerdict::Less)),
                (more, self.word(ChangeVerdict::More)),
                (same, "no difference"),
                (all - less - more - same, "not decided"),
            ];
            let parts = parts.iter().filter(|(count, _)| *count > 0);
            let parts: Vec<String> =
                parts.map(|(count, word)| format!("{word} in {count}")).collect();
            let all = counted(all, "comparison");
            format!("{name}: {change} on average: {} of {all}{cost}", parts.join(", "))
        })
    }

    /// What a change to less or more is.
    fn word(&self, verdict: ChangeVerdict) -> &'static str {
        match is_better(verdict, self.better) {
            Some(true) => "better",
            Some(false) => "worse",
            None if verdict == ChangeVerdict::Less => "less",
            None => "more",
        }
    }

    /// How many measurements would decide what is not decided, and how long they take.
    fn cost(&self) -> Option<String> {
        let unclear = self.rows.iter().filter_map(|(row, there)| match row.verdict {
            ChangeVerdict::Unclear { needed } if !row.is_rounded => Some((needed, there)),
            _ => None,
        });
        let needed: Vec<(Option<u32>, &usize)> = unclear.collect();
        let most = needed.iter().map(|(needed, _)| needed.unwrap_or(u32::MAX)).max()?;
        if most == u32::MAX {
            return Some(
                "more than 1000 measurements of each would be needed to decide".to_owned(),
            );
        }
        let lacking = needed.iter().map(|(needed, there)| {
            (2 * needed.unwrap_or_default() as usize).saturating_sub(**there)
        });
        let lacking: usize = lacking.sum();
        let time = self.seconds.map(|seconds| duration(lacking as f64 * seconds));
        let time = time.map(|time| format!(", {time} of computing")).unwrap_or_default();
        let all = counted(lacking, "more measurement");
        Some(format!("about {most} measurements of each would decide ({all}{time})"))
    }
}

/// A change from an old level to a new one, with its interval.
fn change(of: Estimate, [old, new]: [&str; 2]) -> String {
    let Estimate { value, low, high } = of;
    if value >= 2.0 {
        let [value, low, high] = [value, low, high].map(|it| significant(it, 3));
        return format!("{value} times as much with {new} as with {old} ({low} to {high} times)");
    }
    let is_less = value < 1.0;
    let word = if is_less { "less" } else { "more" };
    let interval = match (low < 1.0, high > 1.0) {
        (true, true) => format!("between {} and {}", signed(low), signed(high)),
        _ => {
            let mut ends = [low, high].map(|end| (end - 1.0).abs() * 100.0);
            ends.sort_by(f64::total_cmp);
            let [least, most] = ends.map(percent);
            format!("{least} to {most} %")
        }
    };
    let value = percent((value - 1.0).abs() * 100.0);
    format!("{value} % {word} with {new} than with {old} ({interval})")
}

/// A ratio as a change in percent.
fn signed(ratio: f64) -> String {
    let word = if ratio < 1.0 { "less" } else { "more" };
    format!("{} % {word}", percent((ratio - 1.0).abs() * 100.0))
}

/// A number of percent: whole if it is at least ten.
fn percent(percent: f64) -> String {
    if percent >= 9.95 { format!("{percent:.0}") } else { format!("{percent:.1}") }
}

#[cfg(test)]
mod tests {
    use ce_model::statistics::MedianChange;

    use super::*;

    fn row(ratio: [f64; 3], verdict: ChangeVerdict) -> (ComparedMedians, usize) {
        let [value, low, high] = ratio;
        let estimate = Estimate { value, low, high };
        let change = Some(MedianChange { estimate, is_ratio: true });
        (ComparedMedians { change, verdict, is_coarse: false, is_rounded: false }, 20)
    }

    #[track_caller]
    fn check(better: Option<Better>, rows: &[(ComparedMedians, usize)], expected: &str) {
        let (levels, rows) = (["merging", "buckets"], rows.to_vec());
        let compared = ComparedLevels { name: "seconds", better, levels, rows, seconds: Some(6.0) };
        assert_eq!(compared.sentence().unwrap(), expected);
    }

    #[test]
    fn a_decided_change_says_how_much_and_whether_it_is_good() {
        let less = row([0.77, 0.75, 0.79], ChangeVerdict::Less);
        check(
            Some(Better::Less),
            &[less],
            "seconds: 23 % less with buckets than with merging (21 to 25 %): better, 95 % sure",
        );
        let more = row([1.051, 1.02, 1.08], ChangeVerdict::More);
        check(
            Some(Better::Less),
            &[more],
            "seconds: 5.1 % more with buckets than with merging (2.0 to 8.0 %): worse, 95 % sure",
        );
        let times = row([3.0, 2.8, 3.2], ChangeVerdict::More);
        check(
            None,
            &[times],
            "seconds: 3 times as much with buckets as with merging (2.8 to 3.2 times): 95 % sure",
        );
        let all = "seconds: 23 % less with buckets than with merging (22 to 24 %), in all 2 comparisons: 95 % sure";
        check(None, &[less, less], all);
    }

    #[test]
    fn what_is_not_decided_says_what_it_costs() {
        let unclear = row([1.07, 0.98, 1.17], ChangeVerdict::Unclear { needed: Some(30) });
        check(
            Some(Better::Less),
            &[unclear],
            "seconds: no difference between merging and buckets is shown; buckets has between 2.0 % less and 17 % more; about 30 measurements of each would decide (40 more measurements, 4m of computing)",
        );
        let never = row([1.0001, 0.98, 1.02], ChangeVerdict::Unclear { needed: None });
        check(
            None,
            &[never],
            "seconds: no difference between merging and buckets is shown; buckets has between 2.0 % less and 2.0 % more; more than 1000 measurements of each would be needed to decide",
        );
        let same = row([1.0, 0.999, 1.001], ChangeVerdict::Same);
        check(
            None,
            &[same],
            "seconds: no difference of 1 % or more between merging and buckets: 95 % sure",
        );
    }

    #[test]
    fn comparisons_that_disagree_are_counted() {
        let less = row([0.8, 0.75, 0.85], ChangeVerdict::Less);
        let unclear = row([1.0, 0.9, 1.1], ChangeVerdict::Unclear { needed: Some(40) });
        check(
            Some(Better::Less),
            &[less, unclear],
            "seconds: 11 % less with buckets than with merging (5.4 to 16 %) on average: better in 1, not decided in 1 of 2 comparisons; about 40 measurements of each would decide (60 more measurements, 6m of computing)",
        );
        let (levels, rows) = (["a", "b"], vec![]);
        let none = ComparedLevels { name: "s", better: None, levels, rows, seconds: None };
        assert_eq!(none.sentence(), None);
    }
}
