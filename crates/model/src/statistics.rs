//! Statistics of repeated measurements: medians, their confidence intervals, and what became of them.
//!
//! [`Measurements`] are the values of one column for the replicates of one point, in the unit of the column; `n` is how many there are.
//! Values that rest on one call are one measurement, and must be given once. Nothing here assumes a distribution, and nothing is random:
//! equal samples have equal statistics on all hosts. An interval of one median consists of values ([`Measurements::interval`]). Two medians
//! are compared by their ratio ([`compare`]), whose interval interpolates between values (Hettmansperger and Sheather 1986) and joins those
//! of both sides (MOVER: method of variance estimates recovery).
//!
//! [`series_steps`] finds the steps of a series of medians, such as one median for each commit of a history.

mod steps;

use std::fmt;

pub use self::steps::{LEAST_SERIES, SeriesStep, series_steps};

/// The usual confidence of an interval.
pub const CONFIDENCE: f64 = 0.95;

/// The smallest change that matters, as a share: 1 %.
pub const THRESHOLD: f64 = 0.01;

/// The distance of an outlier from the median, in median absolute deviations: 10 standard deviations of a normal distribution.
const OUTLIER: f64 = 14.8;

/// The probability that two medians at 95 % show no change when nothing has changed.
const NO_FALSE_CHANGE: f64 = 0.973;

/// The largest number of replicates that is recommended.
const MOST_NEEDED: f64 = 1000.0;

/// Values of one distribution, at least one, in order. Some may be infinite, and each is a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurements(Vec<f64>);

/// A number and the ends of its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self { value: of(self.value), low: of(self.low), high: of(self.high) }
    }
}

/// A share in percent with two digits, rounded up: half the width of an interval is at most that. An infinite one is `∞`.
pub fn percent_up(share: f64) -> String {
    let percent = share * 100.0;
    if percent <= 0.0 {
        return "0".to_owned();
    } else if percent.is_infinite() {
        return "\u{221e}".to_owned();
    }
    let unit = 10_f64.powf(percent.log10().floor() - 1.0);
    // A share of two digits stays as it is, although floating-point arithmetic may make it a little more.
    let percent = (percent / unit - 1e-9).ceil() * unit;
    format!("{percent:.6}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Measurements {
    /// Returns the sample of these values, unless there are none, or one of them is not a number.
    pub fn new(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        (!values.is_empty() && !values.iter().any(|it| it.is_nan())).then_some(Self(values))
    }

    /// The number of values.
    pub fn n(&self) -> usize {
        self.0.len()
    }

    /// The least and the largest value.
    pub fn range(&self) -> [f64; 2] {
        [self.0[0], self.0[self.n() - 1]]
    }

    /// The median. For an even number of values it is the mean of the middle two as decimal numbers: 0.15 for 0.1 and 0.2. It is not a number
    /// if these are infinite with different signs.
    pub fn median(&self) -> f64 {
        decimal_mean(self.0[(self.n() - 1) / 2], self.0[self.n() / 2])
    }

    /// The number of values that are more than 14.8 median absolute deviations from the median. The deviation is at least
    /// `least`.
    pub fn outliers(&self, least: f64) -> usize {
        let median = self.median();
        let distance = |value: &f64| if *value == median { 0.0 } else { (value - median).abs() };
        let distances: Vec<f64> = self.0.iter().map(distance).collect();
        let deviation = Self::new(distances.clone()).map_or(0.0, |it| it.median()).max(least);
        distances.iter().filter(|distance| **distance > OUTLIER * deviation).count()
    }

    /// The 95 % confidence interval of the median by order statistics: its ends are values. `None` for fewer than 6.
    pub fn interval(&self) -> Option<[f64; 2]> {
        interval_places(self.n()).map(|ends| ends.map(|at| self.0[at]))
    }

    /// Half the width of [the interval](Self::interval) as a share of the median; zero if the width is, and infinite if an end is. `None` without an
    /// interval, or if the median is zero and the width is not.
    pub fn relative_half_width(&self) -> Option<f64> {
        let [low, high] = self.interval()?;
        let (half, median) = (high / 2.0 - low / 2.0, self.median().abs());
        match (low == high || half == 0.0, half.is_infinite()) {
            (true, _) => Some(0.0),
            (false, true) => Some(half),
            (false, false) => (median > 0.0).then(|| half / median),
        }
    }

    /// The median and its interpolated interval. For 5 values the interval is their range, at 95 %. `None` for fewer values than that,
    /// or than the confidence needs (8 for 99 %).
    pub fn interpolated(&self, confidence: f64) -> Option<Estimate> {
        self.scaled(confidence, |value| value)
    }

    /// As [`Self::interpolated`], with the median and all values on another scale, which keeps their order.
    fn scaled(&self, confidence: f64, scale: impl Fn(f64) -> f64) -> Option<Estimate> {
        let (n, value) = (self.n(), scale(self.median()));
        let (rank, share) = match rank(n, confidence) {
            (0, _) if n == 5 && confidence <= CONFIDENCE => (1, 0.0),
            (0, _) => return None,
            found => found,
        };
        let ends = [[rank, (rank + 1).min(n)], [n + 1 - rank, (n - rank).max(1)]];
        let [low, high] = ends.map(|end| {
            let [outer, inner] = end.map(|at| scale(self.0[at - 1]));
            match share {
                0.0 => outer,
                _ => (1.0 - share) * outer + share * inner,
            }
        });
        Some(Estimate { value, low, high })
    }
}

/// The mean of two numbers as they are spelled.
fn decimal_mean(low: f64, high: f64) -> f64 {
    if low == high { low } else { exact_mean(low, high).unwrap_or(low / 2.0 + high / 2.0) }
}

/// The mean of two numbers as they are spelled, rounded once. `None` if one is not finite, or if their last digits are more than 20
/// places apart.
fn exact_mean(low: f64, high: f64) -> Option<f64> {
    let ((a, a_exponent), (b, b_exponent)) = (decimal_parts(low)?, decimal_parts(high)?);
    let exponent = a_exponent.min(b_exponent);
    let sum = shifted(a, a_exponent - exponent)? + shifted(b, b_exponent - exponent)?;
    format!("{}e{}", sum * 5, exponent - 1).parse().ok()
}

/// The digits of a number as a whole number, and the exponent of their last one.
fn decimal_parts(number: f64) -> Option<(i128, i32)> {
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e')?;
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
    let digits: i128 = digits.replace('.', "").parse().ok()?;
    Some((digits, exponent.parse::<i32>().ok()? - decimals))
}

/// Digits followed by this number of zeros, if it is at most 20.
fn shifted(digits: i128, zeros: i32) -> Option<i128> {
    // A number has 17 digits, an i128 more than 38.
    let zeros = u32::try_from(zeros).ok().filter(|zeros| *zeros <= 20)?;
    Some(digits * 10_i128.pow(zeros))
}

/// Returns the largest rank k for which the values of rank k and n + 1 - k enclose the median with this confidence, or 0, and how
/// far between rank k and k + 1 the interval has exactly that confidence.
fn rank(n: usize, confidence: f64) -> (usize, f64) {
    let tail = (1.0 - confidence) / 2.0;
    // The median is below the value of rank k with probability (C(n, 0) + ... + C(n, k - 1)) / 2^n. Terms are divided by 2^512 where
    // they become large, and `power` is what remains of n.
    let (mut term, mut sum, mut power) = (1.0_f64, 1.0_f64, n as i32);
    let (mut rank, mut below) = (0, 0.0);
    loop {
        let with_next = sum * 2_f64.powi(-power);
        if with_next > tail || rank == n {
            let share = (tail - below) / (with_next - below);
            let (n, k) = (n as f64, rank as f64);
            return (rank, (n - k) * share / (k + (n - 2.0 * k) * share));
        }
        (rank, below) = (rank + 1, with_next);
        term *= (n + 1 - rank) as f64 / rank as f64;
        sum += term;
        if term > 2_f64.powi(512) {
            (term, sum, power) = (term * 2_f64.powi(-512), sum * 2_f64.powi(-512), power - 512);
        }
    }
}

/// The places of the ends of the 95 % confidence interval of the median among this many sorted values. `None` for fewer than 6.
pub fn interval_places(n: usize) -> Option<[usize; 2]> {
    let (rank, _) = rank(n, CONFIDENCE);
    (rank > 0).then(|| [rank - 1, n - rank])
}

/// The least number of values that an interval of this confidence needs, on each side of a comparison: 5 for 95 %.
pub fn least_values(confidence: f64) -> usize {
    let usual = if confidence <= CONFIDENCE { 5 } else { 6 };
    (usual..).find(|n| *n == 5 || rank(*n, confidence).0 > 0).unwrap_or(usual)
}

/// The probability that a table of this many comparisons at 95 % shows a change when nothing has changed.
pub fn false_change(comparisons: usize) -> f64 {
    1.0 - NO_FALSE_CHANGE.powi(i32::try_from(comparisons).unwrap_or(i32::MAX))
}

/// Half a unit of the last decimal place that any of these numbers is spelled with: how far rounding may have moved a value.
pub fn resolution<'a>(spelled: impl IntoIterator<Item = &'a str>) -> f64 {
    let decimals = spelled.into_iter().map(|text| {
        let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
        decimals.saturating_sub(exponent.parse().unwrap_or_default())
    });
    let half =
        decimals.max().map(|decimals| format!("5e{}", decimals.saturating_neg().saturating_sub(1)));
    half.and_then(|half| half.parse().ok()).unwrap_or_default()
}

/// The origin of the values of two compared sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ComparedSides {
    /// Both rest on the same calls.
    SameCalls,
    /// Their values are not measurements: sizes, counts.
    Exact,
    /// Their values are measurements.
    Measured {
        /// The confidence of the interval, such as [`CONFIDENCE`].
        confidence: f64,
        /// The largest distance by which rounding may have moved a value: see [`resolution`].
        resolution: f64,
    },
}

impl ComparedSides {
    /// Measurements whose values were not rounded.
    pub const fn measured(confidence: f64) -> Self {
        Self::Measured { confidence, resolution: 0.0 }
    }

    /// The same sides, with values of this [`resolution`].
    #[must_use]
    pub const fn with_resolution(self, resolution: f64) -> Self {
        match self {
            Self::Measured { confidence, .. } => Self::Measured { confidence, resolution },
            Self::SameCalls | Self::Exact => self,
        }
    }
}

/// The comparison of the medians of a new side and an old one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianChange {
    /// New by old; or new less old, if a value is not above zero.
    pub estimate: Estimate,
    /// Whether it is a ratio.
    pub is_ratio: bool,
}

/// The verdict on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeVerdict {
    /// No value was measured anew.
    SameCall,
    /// A side has too few values for an interval.
    TooFew,
    /// A median, or an end of its interval, is infinite.
    Infinite,
    /// The interval is within the threshold.
    Same,
    /// The new median is larger, and by at least the threshold.
    More,
    /// The new median is smaller, and by at least the threshold.
    Less,
    /// The interval has room for several of these.
    Unclear {
        /// About how many replicates would decide, with one digit and more than there are; `None` for more than 1000.
        needed: Option<u32>,
    },
}

impl ChangeVerdict {
    /// Whether it is not known which verdict would be right.
    pub const fn is_unclear(self) -> bool {
        matches!(self, Self::Unclear { .. } | Self::Infinite)
    }
}

impl fmt::Display for ChangeVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SameCall => "same call",
            Self::TooFew => "too few",
            Self::Same => "same",
            Self::More => "more",
            Self::Less => "less",
            Self::Unclear { .. } | Self::Infinite => "unclear",
        })
    }
}

/// Compares the medians of two samples. A change below the threshold, a share such as [`THRESHOLD`], does not matter; where the change is a
/// difference, it is a share of the old median. There is no change where there are too few values, or infinite ones count.
pub fn compare(
    old: &Measurements,
    new: &Measurements,
    sides: ComparedSides,
    threshold: f64,
) -> (Option<MedianChange>, ChangeVerdict) {
    let is_ratio = old.range()[0] > 0.0 && new.range()[0] > 0.0;
    let scale = |value: f64| if is_ratio { value.ln() } else { value };
    let medians = [old.median(), new.median()];
    let value = scale(medians[1]) - scale(medians[0]);
    if !value.is_finite() && sides != ComparedSides::SameCalls {
        return (None, ChangeVerdict::Infinite);
    }
    let mut on_scale = Estimate { value, low: value, high: value };
    match sides {
        ComparedSides::SameCalls | ComparedSides::Exact => {}
        ComparedSides::Measured { confidence, resolution } => {
            let estimates = [old, new].map(|side| side.scaled(confidence, scale));
            let [Some(a), Some(b)] = estimates else { return (None, ChangeVerdict::TooFew) };
            on_scale.low -= (b.value - b.low).hypot(a.high - a.value);
            on_scale.high += (b.high - b.value).hypot(a.value - a.low);
            if !(on_scale.low.is_finite() && on_scale.high.is_finite()) {
                return (None, ChangeVerdict::Infinite);
            }
            // The distance by which the medians may have been moved, down and up.
            let moved = |median: f64, by: f64| match is_ratio {
                true => (1.0 + by / median).max(0.0).ln(),
                false => by,
            };
            let [a, b] = medians;
            on_scale.low += moved(b, -resolution) - moved(a, resolution);
            on_scale.high += moved(b, resolution) - moved(a, -resolution);
        }
    }
    let verdict = match sides {
        ComparedSides::SameCalls => ChangeVerdict::SameCall,
        _ => {
            let matters = if is_ratio { threshold.ln_1p() } else { threshold * medians[0].abs() };
            verdict(on_scale, matters, old.n().max(new.n()))
        }
    };
    let mut estimate = if is_ratio { on_scale.map(f64::exp) } else { on_scale };
    if is_ratio {
        // Without the error of the logarithm.
        estimate.value = medians[1] / medians[0];
    }
    (Some(MedianChange { estimate, is_ratio }), verdict)
}

/// Returns the verdict on a change, on a scale where no change is zero. `n` is the larger number of values of a side.
fn verdict(change: Estimate, matters: f64, n: usize) -> ChangeVerdict {
    let Estimate { value, low, high } = change;
    if -matters <= low && high <= matters {
        ChangeVerdict::Same
    } else if low > 0.0 && value >= matters {
        ChangeVerdict::More
    } else if high < 0.0 && value <= -matters {
        ChangeVerdict::Less
    } else {
        let half = (high - low) / 2.0;
        let needed = n as f64 * (half / value.abs().max(matters)).powi(2);
        let needed = needed.max(n as f64 + 1.0);
        let unit = 10_f64.powf(needed.log10().floor());
        let needed = (needed / unit).ceil() * unit;
        let is_told = needed <= MOST_NEEDED;
        ChangeVerdict::Unclear { needed: is_told.then_some(needed.round() as u32) }
    }
}

/// The geometric mean of ratios, which are above zero, with its interval. They should be independent. `None` for no ratios.
pub fn geometric_mean(ratios: &[Estimate]) -> Option<Estimate> {
    let m = ratios.len() as f64;
    let logs: Vec<Estimate> = ratios.iter().map(|ratio| ratio.map(f64::ln)).collect();
    let value = logs.iter().map(|it| it.value).sum::<f64>() / m;
    let half = |of: fn(&Estimate) -> f64| {
        logs.iter().map(|it| (of(it) - it.value).powi(2)).sum::<f64>().sqrt() / m
    };
    let mean = Estimate { value, low: value - half(|it| it.low), high: value + half(|it| it.high) };
    (!ratios.is_empty()).then(|| mean.map(f64::exp))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURED: ComparedSides =
        ComparedSides::Measured { confidence: CONFIDENCE, resolution: 0.0 };

    fn sample(values: &[f64]) -> Measurements {
        Measurements::new(values.to_vec()).unwrap()
    }

    /// The numbers 1, 2, ..., n.
    fn up_to(n: u32) -> Measurements {
        Measurements::new((1..=n).map(f64::from).collect()).unwrap()
    }

    #[track_caller]
    fn assert_close(found: f64, expected: f64, digits: f64) {
        assert!((found - expected).abs() <= digits * expected.abs(), "{found} {expected}");
    }

    #[track_caller]
    fn assert_estimate(found: Estimate, expected: [f64; 3]) {
        let Estimate { value, low, high } = found;
        for (found, expected) in [value, low, high].into_iter().zip(expected) {
            assert_close(found, expected, 1e-9);
        }
    }

    #[test]
    fn a_median_is_rounded_as_a_decimal_number() {
        for (values, median) in [
            (&[3.0][..], 3.0),
            (&[5.0, 1.0, 3.0], 3.0),
            (&[0.1, 0.2], 0.15),
            (&[-0.1, 0.2], 0.05),
            (&[1e22, 1.0], 5e21),
            (&[1e300, 1e-300], 5e299),
            (&[f64::MAX, f64::MAX, f64::MIN, f64::MIN], 0.0),
            (&[0.041_234_567_890_123_4, 0.041_234_567_890_123_5], 0.041_234_567_890_123_45),
        ] {
            assert_eq!(sample(values).median(), median, "{values:?}");
        }
        assert_eq!(Measurements::new(vec![]), None);
        assert_eq!(Measurements::new(vec![1.0, f64::NAN]), None);
    }

    #[test]
    fn infinite_values_take_part_in_the_order_and_decide_nothing() {
        let inf = f64::INFINITY;
        let some = sample(&[3.0, inf, 1.0, 2.0, inf, 4.0, 5.0]);
        assert_eq!(
            (some.median(), some.interval(), some.outliers(0.0)),
            (4.0, Some([1.0, inf]), 2)
        );
        assert_eq!(some.relative_half_width(), Some(inf));
        assert_eq!(percent_up(inf), "∞");
        let all = sample(&[inf; 7]);
        assert_eq!(
            (all.median(), all.relative_half_width(), all.outliers(0.0)),
            (inf, Some(0.0), 0)
        );
        assert!(sample(&[-inf, inf]).median().is_nan());
        let finite = sample(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        let measured = ComparedSides::measured(CONFIDENCE);
        for (sides, [old, new]) in [
            (measured, [&finite, &some]),
            (measured, [&some, &finite]),
            (measured, [&all, &all]),
            (ComparedSides::Exact, [&finite, &all]),
        ] {
            let compared = compare(old, new, sides, THRESHOLD);
            assert_eq!(compared, (None, ChangeVerdict::Infinite));
            assert!(compared.1.is_unclear());
        }
        let same = compare(&all, &all, ComparedSides::SameCalls, THRESHOLD);
        assert_eq!(same.1, ChangeVerdict::SameCall);
    }

    #[test]
    fn the_interval_of_a_median_has_the_expected_ranks() {
        for (n, rank) in [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (30, 10)]
            .into_iter()
            .chain([(45, 16), (70, 27), (100, 40), (1000, 469), (5000, 2431)])
        {
            let ends = [rank, n + 1 - rank].map(f64::from);
            assert_eq!(up_to(n).interval(), Some(ends), "{n}");
        }
        assert_eq!(up_to(5).interval(), None);
    }

    #[test]
    fn an_interpolated_interval_has_its_confidence_exactly() {
        for (n, low) in [
            (5, 1.0),
            (6, 1.357142857),
            (7, 1.733333333),
            (8, 1.935643564),
            (10, 2.657657658),
            (20, 6.235234222),
            (30, 10.228711499),
            (100, 40.763200620),
            (1000, 469.533086600),
            (5000, 2431.212658280),
        ] {
            let found = up_to(n).interpolated(CONFIDENCE).unwrap();
            assert_close(found.low, low, 1e-9);
            assert_close(found.high, f64::from(n + 1) - low, 1e-9);
        }
        for (confidence, least) in [(0.95, 5), (0.99, 8), (0.9975, 10), (0.9995, 12)] {
            assert_eq!(up_to(least - 1).interpolated(confidence), None, "{confidence}");
            assert!(up_to(least).interpolated(confidence).is_some(), "{confidence}");
            assert_eq!(least_values(confidence), least as usize, "{confidence}");
        }
    }

    #[test]
    fn outliers_are_far_from_the_median_in_units_of_deviation() {
        assert_eq!(sample(&[1.0, 2.0, 3.0, 4.0, 17.7]).outliers(0.0), 0);
        assert_eq!(sample(&[-12.0, 1.0, 2.0, 3.0, 4.0, 5.0, 33.0]).outliers(0.0), 1);
        // Rounding makes values equal.
        let rounded = sample(&[0.05, 0.05, 0.05, 0.05, 0.06, 0.13]);
        assert_eq!([0.0, 0.005].map(|least| rounded.outliers(least)), [2, 1]);
        assert_eq!(
            [1, 20, 100].map(|rows| (false_change(rows) * 100.0).round()),
            [3.0, 42.0, 94.0]
        );
    }

    #[test]
    fn two_medians_are_compared_by_their_ratio() {
        let eight = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7];
        let from_11: Vec<f64> = (11..=30).map(f64::from).collect();
        let encode = [
            [1726, 1723, 1707, 1707, 1713, 1729, 1736, 1707, 1705, 1774],
            [1423, 1416, 1411, 1413, 1412, 1426, 1422, 1424, 1447, 1425],
            [3069, 3075, 3069, 3067, 3207, 3064, 3064, 3058, 3059, 3062],
            [3075, 3065, 3059, 3065, 3060, 3081, 3186, 3135, 3087, 3062],
        ]
        .map(|side| side.map(f64::from));
        let mut encoded = Vec::new();
        for (old, new, expected, verdict) in [
            (
                &encode[0][..],
                &encode[1][..],
                [0.827997671711, 0.819417276734, 0.833585869668],
                "less",
            ),
            (&encode[2], &encode[3], [1.001467949763, 0.998107019100, 1.012448671404], "unclear"),
            (&eight[..6], &eight, [1.08, 0.829949339112, 1.396266048764], "unclear"),
            (
                &[5.0, 7.0, 8.0, 9.0, 12.0, 15.0, 40.0],
                &from_11,
                [2.277777778, 1.016408213, 3.363682621],
                "more",
            ),
            (
                &[1.0, 2.0, 3.0, 4.0, 5.0],
                &[2.0, 4.0, 6.0, 8.0, 10.0],
                [2.0, 0.595461432620, 6.717479555981],
                "unclear",
            ),
        ] {
            let (old, new) = (sample(old), sample(new));
            let (change, found) = compare(&old, &new, MEASURED, THRESHOLD);
            let change = change.unwrap();
            assert!(change.is_ratio);
            assert_estimate(change.estimate, expected);
            assert_eq!(found.to_string(), verdict);
            encoded.push(change.estimate);
            // The sides in the other order give the inverse.
            let inverse = compare(&new, &old, MEASURED, THRESHOLD).0.unwrap().estimate;
            assert_estimate(inverse, [1.0 / expected[0], 1.0 / expected[2], 1.0 / expected[1]]);
        }
        let mean = geometric_mean(&encoded[..2]).unwrap();
        assert_estimate(mean, [0.910611404880, 0.905641295259, 0.916463769632]);
        assert_eq!(geometric_mean(&[]), None);
    }

    #[test]
    fn values_that_are_not_above_zero_are_compared_by_their_difference() {
        let (old, new) = (
            sample(&[-2.0, -1.0, 0.0, 1.0, 2.0, 3.0]),
            sample(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        );
        let (change, verdict) = compare(&old, &new, MEASURED, THRESHOLD);
        let change = change.unwrap();
        assert!(!change.is_ratio);
        assert_estimate(change.estimate, [2.5, -0.619233000670, 5.619233000670]);
        assert_eq!(verdict, ChangeVerdict::Unclear { needed: Some(20) });
        let coarse = ComparedSides::Measured { confidence: CONFIDENCE, resolution: 0.5 };
        let coarse = compare(&old, &new, coarse, THRESHOLD).0.unwrap().estimate;
        assert_estimate(coarse, [2.5, -1.619233000670, 6.619233000670]);
        let zeros = sample(&[0.0; 5]);
        assert_eq!(compare(&zeros, &zeros, MEASURED, THRESHOLD).1, ChangeVerdict::Same);
    }

    #[test]
    fn the_resolution_of_rounded_values_widens_comparisons() {
        let spelled = ["0.05", "1e-1", "7"];
        assert_eq!(resolution(spelled), 0.005);
        assert_eq!(["1.5e-3", "1", "2e3"].map(|it| resolution([it])), [0.000_05, 0.5, 500.0]);
        let sides = ComparedSides::Measured { confidence: CONFIDENCE, resolution: 0.005 };
        let [five, six, eight] = [0.05, 0.06, 0.08].map(|value| sample(&[value; 30]));
        let change = compare(&five, &six, sides, THRESHOLD).0.unwrap();
        assert_estimate(change.estimate, [1.2, 1.0, 1.2 * (13.0 / 12.0) / 0.9]);
        let coarser = ComparedSides::Measured { confidence: CONFIDENCE, resolution: 0.01 };
        let (_, verdict) = compare(&five, &six, coarser, THRESHOLD);
        assert!(matches!(verdict, ChangeVerdict::Unclear { .. }));
        assert_eq!(compare(&five, &six, MEASURED, THRESHOLD).1, ChangeVerdict::More);
        assert_eq!(compare(&five, &eight, sides, THRESHOLD).1, ChangeVerdict::More);
        // A median may have been any small number.
        let (rounded, large) = (sample(&[0.005; 6]), sample(&[0.08; 6]));
        let change = compare(&rounded, &large, sides, THRESHOLD).0.unwrap();
        assert_eq!(change.estimate.high, f64::INFINITY);
    }

    #[test]
    fn a_verdict_follows_from_values_and_their_number() {
        let (hundred, more) = (sample(&[100.0; 6]), sample(&[101.0; 6]));
        let verdict =
            |old: &Measurements, new: &Measurements, sides| compare(old, new, sides, THRESHOLD).1;
        assert_eq!(verdict(&hundred, &more, ComparedSides::SameCalls), ChangeVerdict::SameCall);
        let few = up_to(4);
        assert_eq!(compare(&few, &more, MEASURED, THRESHOLD), (None, ChangeVerdict::TooFew));
        assert_eq!(verdict(&few, &few, ComparedSides::Exact), ChangeVerdict::Same);
        assert_eq!(verdict(&more, &hundred, ComparedSides::Exact), ChangeVerdict::Same);
        assert_eq!(verdict(&hundred, &sample(&[102.0]), ComparedSides::Exact), ChangeVerdict::More);
        assert_eq!(verdict(&hundred, &sample(&[98.0]), ComparedSides::Exact), ChangeVerdict::Less);
        // Narrow, and not within the threshold: significant and too small.
        let above = sample(&[100.9, 100.9, 100.9, 100.9, 100.9, 101.5]);
        let ChangeVerdict::Unclear { needed } = verdict(&hundred, &above, MEASURED) else {
            panic!()
        };
        assert_eq!(needed, Some(7));
        let wide = sample(&[50.0, 60.0, 99.0, 101.0, 150.0, 200.0]);
        assert_eq!(verdict(&hundred, &wide, MEASURED), ChangeVerdict::Unclear { needed: None });
    }
}
