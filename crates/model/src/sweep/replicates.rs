//! The number of evaluations of points: a fixed one, or as many as it takes until the median of a column is known well enough.
//!
//! The number of replicates of a point is a function of their values alone. They are looked at in a few
//! [looks](Replicates::looks), and the first look decides at which the interval of the median is narrow. No rule asks
//! whether something is significant: repeated looks would find effects that do not exist.

use std::fmt;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::rules::SweepFault;
use super::{ColumnShape, TableColumn};
use crate::statistics::{Measurements, percent_up};

/// The numbers of replicates at which points are looked at, and these times powers of ten.
const LADDER: [u32; 6] = [10, 15, 20, 30, 45, 70];

/// The least number of values that have an interval of 95 %.
const LEAST: u32 = 6;

/// The number of evaluations of each point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Box<str>", into = "Box<str>")]
pub struct Replicates {
    /// The number of times, or the largest one.
    pub most: NonZeroU32,
    /// The condition under which they end before that.
    pub until: Option<Until>,
}

/// The condition under which a point has enough replicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Until {
    /// The least number of times.
    pub least: NonZeroU32,
    /// The column of the table that is looked at.
    pub column: Box<str>,
    /// The greatest share of the median that half of its interval may be.
    pub precision: Precision,
}

impl Until {
    /// Whether the median of these values is certain enough.
    pub fn is_met_by(&self, values: &Measurements) -> bool {
        values.relative_half_width().is_some_and(|share| self.precision.is_met_by(share))
    }

    /// The columns of a table that may be the examined column.
    pub fn columns(&self, columns: &[TableColumn]) -> Vec<TableColumn> {
        let mut known = columns.iter();
        match known.find(|it| matches!(&it.shape, ColumnShape::One(name) if *name == self.column)) {
            Some(column) => vec![column.clone()],
            None => columns.iter().filter(|it| it.shape.is_json()).cloned().collect(),
        }
    }
}

/// A share of a median, in thousandths of a percent: above zero, and at most 100 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precision(u32);

impl Precision {
    /// Reads a share that is written in percent, with at most three decimals and no sign.
    fn read(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let are_digits = [whole, decimals]
            .iter()
            .all(|part| part.bytes().all(|c| c.is_ascii_digit()) && (1..=3).contains(&part.len()));
        let thousandths: u32 = format!("{whole}{decimals:0<3}").parse().ok()?;
        (are_digits && (1..=100_000).contains(&thousandths)).then_some(Self(thousandths))
    }

    /// Whether a share is at most this one. Values that are decimals are not exact in a computer, and the ends of an interval are a
    /// few units of the last place off: an interval of exactly this share is narrow enough, regardless of the unit.
    fn is_met_by(self, share: f64) -> bool {
        share - f64::from(self.0) / 100_000.0 <= 8.0 * f64::EPSILON
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "±{}%", f64::from(self.0) / 1000.0)
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.column, self.precision)
    }
}

/// As it is written.
impl fmt::Display for Replicates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.until {
            None => write!(f, "{}", self.most),
            Some(until) => write!(f, "{}..{} until {until}", until.least, self.most),
        }
    }
}

impl From<NonZeroU32> for Replicates {
    fn from(most: NonZeroU32) -> Self {
        Self { most, until: None }
    }
}

impl From<Replicates> for Box<str> {
    fn from(replicates: Replicates) -> Self {
        replicates.to_string().into()
    }
}

impl TryFrom<Box<str>> for Replicates {
    type Error = SweepFault;

    fn try_from(text: Box<str>) -> Result<Self, SweepFault> {
        read_replicates(&text)
    }
}

/// Reads the line of the file `replicates`: a number, or `LEAST..MOST until COLUMN ±P%`, where `+-` stands for `±`.
pub fn read_replicates(line: &str) -> Result<Replicates, SweepFault> {
    let wrong = || SweepFault::Replicates(line.to_owned());
    let number = |text: &str| text.trim().parse::<NonZeroU32>().map_err(|_| wrong());
    let Some((range, rest)) = line.split_once("..") else { return Ok(number(line)?.into()) };
    let (most, rest) = rest.trim_start().split_once(char::is_whitespace).ok_or_else(wrong)?;
    let (least, most) = (number(range)?, number(most)?);
    let rest = rest.trim_start().strip_prefix("until").ok_or_else(wrong)?;
    let signs = ["±", "+-"].iter().filter_map(|sign| Some((rest.rfind(sign)?, sign.len())));
    let (at, length) = signs.max().ok_or_else(wrong)?;
    let (column, share) = (rest[..at].trim(), rest[at + length..].trim());
    if column.is_empty() || !rest.starts_with(char::is_whitespace) {
        return Err(wrong());
    }
    if least > most {
        return Err(SweepFault::LeastReplicates { least, most });
    }
    if least.get() < LEAST {
        return Err(SweepFault::FewReplicates(least));
    }
    let precision = share.strip_suffix('%').and_then(|share| Precision::read(share.trim_end()));
    let precision = precision.ok_or_else(|| SweepFault::Precision(share.to_owned()))?;
    Ok(Replicates { most, until: Some(Until { least, column: column.into(), precision }) })
}

/// The value of a replicate in the column that is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplicateValue {
    /// The number of the replicate.
    pub replicate: u32,
    /// The value; `None` if it failed.
    pub value: Option<f64>,
}

/// The reason why a point has no more replicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The interval is narrow enough.
    Narrow,
    /// The largest number is reached.
    Most,
    /// The median is zero: no width is a share of zero.
    ZeroMedian,
    /// Half of them have failed.
    HalfFailed,
}

/// The end of the replicates of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplicatesEnd {
    /// The number of replicates.
    pub replicates: u32,
    pub reason: EndReason,
    /// Half the width of the interval as a share of the median, if there are both.
    pub reached: Option<f64>,
}

impl ReplicatesEnd {
    /// Whether the largest number had too few values for an interval: others failed, or rest on one call.
    pub fn has_no_interval(&self) -> bool {
        self.reason == EndReason::Most && self.reached.is_none()
    }

    /// Returns the reason why the interval is not narrow enough, in words; `None` if it is.
    pub fn shortfall(&self) -> Option<String> {
        let reached = self.reached.map(|share| format!("±{}%", percent_up(share)));
        Some(match (self.reason, reached) {
            (EndReason::Narrow, _) => return None,
            (EndReason::Most, Some(reached)) => reached,
            (EndReason::Most, None) => "no interval".to_owned(),
            (EndReason::ZeroMedian, _) => "the median is 0, and nothing is a share of 0".to_owned(),
            (EndReason::HalfFailed, _) => "half of the replicates have failed".to_owned(),
        })
    }
}

/// The result of a look at the replicates of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplicateLook {
    /// More are needed: this number in all.
    More(u32),
    /// There are enough, or no more are possible.
    Ended(ReplicatesEnd),
}

impl Replicates {
    /// The number of replicates that a point has in any case.
    pub fn least(&self) -> u32 {
        self.until.as_ref().map_or(self.most, |until| until.least).get()
    }

    /// The numbers of replicates at which a point is examined: the least, a ladder in between, and the largest.
    pub fn looks(&self) -> Vec<u32> {
        let (least, most) = (self.least(), self.most.get());
        let powers = std::iter::successors(Some(1_u32), |power| power.checked_mul(10));
        let between = powers.flat_map(|power| LADDER.map(|step| step.saturating_mul(power)));
        let between = between.filter(|look| least < *look && *look < most);
        let mut looks: Vec<u32> = [least].into_iter().chain(between).chain([most]).collect();
        looks.dedup();
        looks
    }

    /// Examines the values of a point with this many known replicates. Values from the same call are given once.
    pub fn look(&self, known: u32, values: &[ReplicateValue]) -> ReplicateLook {
        let most = self.most.get();
        for look in self.looks() {
            if look > known {
                return ReplicateLook::More(look);
            }
            let seen = values.iter().filter(|it| it.replicate <= look);
            let found: Vec<f64> = seen.clone().filter_map(|it| it.value).collect();
            let (all, ok) = (seen.count(), found.len());
            let measured = Measurements::new(found);
            let reached = measured.as_ref().and_then(Measurements::relative_half_width);
            let has_zero_median =
                measured.as_ref().is_some_and(|it| it.median() == 0.0 && it.interval().is_some());
            let reason = match (&self.until, reached) {
                _ if all > 0 && 2 * (all - ok) >= all => EndReason::HalfFailed,
                (Some(until), Some(share)) if until.precision.is_met_by(share) => EndReason::Narrow,
                (_, None) if has_zero_median => EndReason::ZeroMedian,
                _ if look == most => EndReason::Most,
                _ => continue,
            };
            return ReplicateLook::Ended(ReplicatesEnd { replicates: look, reason, reached });
        }
        ReplicateLook::Ended(ReplicatesEnd {
            replicates: most,
            reason: EndReason::Most,
            reached: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Explain;

    fn read(line: &str) -> Replicates {
        read_replicates(line).unwrap_or_else(|fault| panic!("{line}: {fault}"))
    }

    /// The values of replicates 1, 2, ...
    fn values(numbers: impl IntoIterator<Item = f64>) -> Vec<ReplicateValue> {
        let numbers = (1..).zip(numbers);
        numbers.map(|(replicate, it)| ReplicateValue { replicate, value: Some(it) }).collect()
    }

    /// Looks at a point until it ends; `all` are the values that it would have.
    fn ended(replicates: &Replicates, all: &[ReplicateValue]) -> ReplicatesEnd {
        let mut known = replicates.least();
        loop {
            let seen: Vec<_> = all.iter().filter(|it| it.replicate <= known).copied().collect();
            match replicates.look(known, &seen) {
                ReplicateLook::More(next) => known = next,
                ReplicateLook::Ended(end) => return end,
            }
        }
    }

    #[test]
    fn an_interval_of_exactly_the_limit_is_narrow_in_any_unit() {
        let rule = read("10..15 until s ±3%");
        let seconds = ["0.5", "0.97", "0.99", "0.99", "1", "1", "1.01", "1.01", "1.03", "2"];
        for unit in 0..12 {
            let numbers = seconds.map(|it| format!("{it}e{unit}").parse().unwrap());
            let ReplicateLook::Ended(end) = rule.look(10, &values(numbers)) else {
                panic!("goes on with unit {unit}");
            };
            assert_eq!((end.reason, end.shortfall()), (EndReason::Narrow, None));
        }
        let wider = ["0.5", "0.97", "0.99", "0.99", "1", "1", "1.01", "1.01", "1.0300000001", "2"];
        let wider = wider.map(|it| it.parse().unwrap());
        assert_eq!(rule.look(10, &values(wider)), ReplicateLook::More(15));
    }

    #[test]
    fn the_rule_is_written_in_one_line() {
        for (line, written) in [
            ("10", "10"),
            ("10..100 until seconds ±5%", "10..100 until seconds ±5%"),
            ("10 .. 100  until  wall time  +-  0.50 %", "10..100 until wall time ±0.5%"),
            ("6..6 until a+-b±100%", "6..6 until a+-b ±100%"),
            ("6..70 until ± +-0.001%", "6..70 until ± ±0.001%"),
        ] {
            assert_eq!(read(line).to_string(), written);
            assert_eq!(read(written), read(line));
        }
        for (line, fault) in [
            ("", "\"\" is not a number of replicates"),
            ("0", "\"0\" is not a number of replicates"),
            ("10..100", "\"10..100\" is not a number of replicates"),
            ("10..100 seconds ±5%", "\"10..100 seconds ±5%\" is not a number of replicates"),
            ("10..100 untilx ±5%", "\"10..100 untilx ±5%\" is not a number of replicates"),
            ("10..100 until ±5%", "\"10..100 until ±5%\" is not a number of replicates"),
            (
                "10..100 until seconds 5%",
                "\"10..100 until seconds 5%\" is not a number of replicates",
            ),
            ("100..10 until s ±5%", "the least number of replicates is 100, and the largest is 10"),
            ("5..10 until s ±5%", "5 replicates have no interval"),
            ("6..10 until s ±5", "\"5\" is not a share of the median in percent"),
            ("6..10 until s ±0%", "\"0%\" is not a share of the median in percent"),
            ("6..10 until s ±100.1%", "\"100.1%\" is not a share of the median in percent"),
            ("6..10 until s ±-5%", "\"-5%\" is not a share of the median in percent"),
            ("6..10 until s ±5.%", "\"5.%\" is not a share of the median in percent"),
            ("6..10 until s ±0.0001%", "\"0.0001%\" is not a share of the median in percent"),
        ] {
            let found = read_replicates(line).unwrap_err();
            assert_eq!(found.to_string(), fault);
            assert!(found.hint().is_some());
        }
    }

    #[test]
    fn looks_grow_geometrically() {
        for (line, looks) in [
            ("10", &[10][..]),
            ("6..6 until s ±5%", &[6]),
            ("10..100 until s ±5%", &[10, 15, 20, 30, 45, 70, 100]),
            ("6..16 until s ±5%", &[6, 10, 15, 16]),
            ("12..480 until s ±5%", &[12, 15, 20, 30, 45, 70, 100, 150, 200, 300, 450, 480]),
        ] {
            assert_eq!(read(line).looks(), looks);
        }
        assert_eq!(read("6..4294967295 until s ±5%").looks().last(), Some(&u32::MAX));
    }

    #[test]
    fn a_point_ends_at_the_first_look_at_which_it_is_narrow() {
        let all = values((1..=100).map(|i| 100.0 + f64::from(37 * i % 41) / 4.0));
        for (percent, replicates, reason, [median, low, high]) in [
            ("5", 10, EndReason::Narrow, [104.75, 101.25, 108.25]),
            ("3", 15, EndReason::Narrow, [106.25, 103.25, 108.25]),
            ("2", 30, EndReason::Narrow, [105.0, 103.25, 106.75]),
            ("1", 100, EndReason::Most, [105.125, 104.0, 106.25]),
        ] {
            let end = ended(&read(&format!("10..100 until s ±{percent}%")), &all);
            assert_eq!((end.replicates, end.reason), (replicates, reason));
            let reached = (high - low) / 2.0 / median;
            assert!((end.reached.unwrap() - reached).abs() < 1e-12, "{percent}");
        }
        let missed = ended(&read("10..100 until s ±1%"), &all);
        assert_eq!(missed.shortfall().as_deref(), Some("±1.1%"));
    }

    #[test]
    fn constant_values_and_zero_medians_end_replicates_at_once() {
        let rule = read("10..100 until s ±5%");
        for (number, reason) in [(3.0, EndReason::Narrow), (0.0, EndReason::Narrow)] {
            let end = ended(&rule, &values([number; 10]));
            assert_eq!(end, ReplicatesEnd { replicates: 10, reason, reached: Some(0.0) });
        }
        let zero = ended(&rule, &values((0..100).map(|i| f64::from(i % 3 - 1))));
        assert_eq!((zero.replicates, zero.reason), (10, EndReason::ZeroMedian));
        assert!(zero.shortfall().unwrap().contains("the median is 0"));
    }

    /// Draws of a distribution, the same at each run.
    struct Draws(u64);

    impl Draws {
        /// A number above 0 and at most 1.
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (((mixed ^ (mixed >> 31)) >> 11) as f64 + 1.0) / 2_f64.powi(53)
        }

        /// A log-normal number of median 1.
        fn log_normal(&mut self, deviation: f64) -> f64 {
            let length = (-2.0 * self.uniform().ln()).sqrt();
            (deviation * length * (std::f64::consts::TAU * self.uniform()).cos()).exp()
        }
    }

    /// The share of last intervals that hold the true median, and the mean number of replicates, must be as over many series:
    /// looking often must not cost more. `CE_SERIES=6000` tries many.
    #[test]
    fn repeated_looks_keep_the_coverage() {
        let series = std::env::var("CE_SERIES").map_or(300, |text| text.parse().unwrap());
        let normal = |draws: &mut Draws| draws.log_normal(0.02);
        let wide = |draws: &mut Draws| draws.log_normal(0.05);
        let tail = |draws: &mut Draws| 1.0 - 0.1 * draws.uniform().ln();
        // A tenth of the values is 1.5 to 3 times as large.
        let outliers = |draws: &mut Draws| match draws.uniform() < 0.1 {
            true => draws.log_normal(0.02) * (1.5 + 1.5 * draws.uniform()),
            false => draws.log_normal(0.02),
        };
        type Shape<'a> = &'a dyn Fn(&mut Draws) -> f64;
        for (draw, percent, median, coverage, mean) in [
            (&normal as Shape<'_>, 1, 1.0, 94.3, 34.0),
            (&wide, 2, 1.0, 93.2, 52.0),
            (&tail, 5, 1.0 + 0.1 * 2_f64.ln(), 95.5, 22.0),
            (&outliers, 2, 1.002_8, 96.3, 16.0),
        ] {
            let rule = read(&format!("10..100 until s ±{percent}%"));
            let (mut draws, mut covered, mut replicates) = (Draws(7), 0, 0);
            for _ in 0..series {
                let all = values((0..100).map(|_| draw(&mut draws)));
                let end = ended(&rule, &all);
                let seen = all[..end.replicates as usize].iter().filter_map(|it| it.value);
                let [low, high] = Measurements::new(seen.collect()).unwrap().interval().unwrap();
                covered += u32::from(low <= median && median <= high);
                replicates += end.replicates;
            }
            // Three standard deviations, and the difference between two ways to draw.
            let room = 70.0 / f64::from(series).sqrt() + 0.4;
            let [found, n] =
                [f64::from(covered) * 100.0, replicates.into()].map(|it| it / f64::from(series));
            assert!((found - coverage).abs() < room, "±{percent}%: {found} % of {series}");
            assert!((n - mean).abs() < 0.1 * mean, "±{percent}%: {n} replicates");
        }
    }

    #[test]
    fn failed_replicates_have_no_value() {
        let rule = read("6..20 until s ±5%");
        let with_failed = |failed: u32, of: u32| -> Vec<ReplicateValue> {
            let value = |replicate| (replicate > failed).then_some(7.0);
            (1..=of)
                .map(|replicate| ReplicateValue { replicate, value: value(replicate) })
                .collect()
        };
        // Five values have no interval.
        let end = ended(&rule, &with_failed(1, 20));
        assert_eq!((end.replicates, end.reason), (10, EndReason::Narrow));
        let end = ended(&rule, &with_failed(3, 20));
        assert_eq!((end.replicates, end.reason), (6, EndReason::HalfFailed));
        assert_eq!(rule.look(6, &with_failed(1, 6)), ReplicateLook::More(10));
        // If several replicates rest on one call, one value is left.
        let end = ended(&rule, &values([7.0]));
        assert_eq!((end.replicates, end.reason, end.reached), (20, EndReason::Most, None));
        assert_eq!(end.shortfall().as_deref(), Some("no interval"));
    }
}
