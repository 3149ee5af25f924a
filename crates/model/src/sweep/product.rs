//! The product of factors, without the points that are left out.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use super::Product;
use super::condition_mistake::ConditionFault;
use super::points::SweepPoints;
use crate::exit::Explain;
use crate::suggest::UnknownName;

/// The greatest number of points of a product, before any are excluded.
pub const MAX_POINTS: usize = 10_000_000;

/// The name of the innermost factor, if points are replicated.
pub const REPLICATE: &str = "replicate";

/// The reason why factors have no product.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum FactorFault {
    /// There is no factor.
    #[error("there are no factors")]
    #[hint("write levels into a file such as factors/00-threads, one a line")]
    NoFactors,
    /// A factor has no levels.
    #[error("the factor has no levels")]
    #[hint("write levels into it, one a line, or remove it")]
    NoLevels {
        /// The number of the factor, counted from zero.
        factor: usize,
    },
    /// Two factors bind one name.
    #[error("the name {name:?} is also bound by another factor")]
    #[hint("rename one of them, or put both into one .tsv file if they vary together")]
    SameName {
        name: String,
        /// The number of the later factor, counted from zero; for replicates, the number of the other factors.
        factor: usize,
        /// The number of the earlier one.
        first: usize,
    },
    /// The product is too large.
    #[error("there are more than {MAX_POINTS} points")]
    #[hint("use fewer levels, or name the points in a sheet")]
    TooMany,
}

/// The reason why rows exclude nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum ExclusionFault {
    /// The points do not have a column.
    #[error("the points have no column {0}")]
    #[hint(Some(_0.suggestion("columns")))]
    NoColumn(UnknownName),
    /// A row matches no point.
    #[error("no point is excluded by {pattern}")]
    #[hint("spell the values as the levels are spelled; an empty cell matches anything")]
    NoMatch {
        /// The number of the row, counted from one, without the header.
        row: usize,
        /// The row without its empty cells, as in `threads=8 size=10`.
        pattern: String,
    },
}

/// Returns the cartesian product of factors. The last one varies fastest.
///
/// A factor of one column is a list of levels; columns of one factor vary together. With replicates, each point is
/// there so often: they are a last factor [`REPLICATE`] with the levels `1` to `replicates`.
///
/// # Errors
///
/// Fails with all faults of the factors, or if there are more than [`MAX_POINTS`] points.
pub fn product(
    mut factors: Vec<SweepPoints>,
    replicates: Option<NonZeroU32>,
) -> Result<SweepPoints, Vec<FactorFault>> {
    if factors.is_empty() && replicates.is_none() {
        return Err(vec![FactorFault::NoFactors]);
    }
    let mut faults = Vec::new();
    let replicates = replicates.map_or(0, NonZeroU32::get);
    let sizes = factors.iter().map(SweepPoints::len).chain([replicates.max(1) as usize]);
    let size = sizes.into_iter().try_fold(1, usize::checked_mul);
    let size = size.filter(|size| *size <= MAX_POINTS);
    if size.is_none() && factors.iter().all(|factor| !factor.is_empty()) {
        faults.push(FactorFault::TooMany);
    } else if replicates > 0 {
        factors.push(replicate_factor(replicates));
    }
    let mut seen = HashMap::new();
    for (number, factor) in factors.iter().enumerate() {
        if factor.is_empty() {
            faults.push(FactorFault::NoLevels { factor: number });
        }
        for name in factor.names().iter().chain(factor.files()) {
            let first = *seen.entry(name).or_insert(number);
            if first != number {
                let name = name.clone();
                faults.push(FactorFault::SameName { name, factor: number, first });
            }
        }
    }
    match size {
        Some(size) if faults.is_empty() => Ok(multiplied(factors, size)),
        _ => Err(faults),
    }
}

fn replicate_factor(count: u32) -> SweepPoints {
    SweepPoints {
        names: vec![REPLICATE.to_owned()],
        levels: vec![(1..=count).map(|number| Arc::from(number.to_string())).collect()],
        rows: (0..count).collect(),
        ..SweepPoints::default()
    }
}

/// The product of factors whose names differ; `size` is the number of its points.
fn multiplied(factors: Vec<SweepPoints>, size: usize) -> SweepPoints {
    let width = factors.iter().map(|factor| factor.levels.len()).sum::<usize>();
    let (mut rows, mut files) = (Vec::with_capacity(size * width), Vec::new());
    for number in 0..size {
        // The number of points that follow each other with the same row of a factor.
        let mut stride = size;
        for factor in &factors {
            stride /= factor.len();
            let row = factor.row(number / stride % factor.len());
            let (texts, of_files) = row.split_at(factor.names.len());
            rows.extend_from_slice(texts);
            files.extend_from_slice(of_files);
        }
        rows.append(&mut files);
    }
    let mut product = SweepPoints { rows, ..SweepPoints::default() };
    let mut levels = Vec::new();
    for mut factor in factors {
        levels.extend(factor.levels.split_off(factor.names.len()));
        product.blank_rows += factor.blank_rows;
        product.names.extend(factor.names);
        product.files.extend(factor.files);
        product.levels.extend(factor.levels);
    }
    product.levels.append(&mut levels);
    product
}

impl SweepPoints {
    /// Returns where the replicates of each point are, which follow each other: a product has them as its last factor.
    pub(crate) fn replicated(&self) -> Vec<Range<usize>> {
        let replicate = self.column(REPLICATE);
        let (mut groups, mut before): (Vec<Range<usize>>, _) = (Vec::new(), None);
        for (number, row) in self.rows().enumerate() {
            let at = replicate.unwrap_or(row.len());
            let point = (&row[..at], row.get(at + 1..));
            match groups.last_mut().filter(|_| before == Some(point)) {
                Some(group) => group.end += 1,
                None => groups.push(number..number + 1),
            }
            before = Some(point);
        }
        groups
    }

    /// The number of points whose replicate has at most this number.
    pub(crate) fn up_to_replicate(&self, points: Range<usize>, most: u32) -> usize {
        let Some(column) = self.column(REPLICATE) else { return points.len() };
        // The levels are 1, 2, ...
        points.filter(|number| self.row(*number)[column] < most).count()
    }
}

/// Rows of an exclusion whose cells are empty in the same columns.
type Patterns = HashMap<Vec<u32>, usize>;

impl SweepPoints {
    /// Removes the points that match a row of an exclusion. An empty cell of a row matches any text.
    ///
    /// The time is linear in points, for each set of columns that some row has no empty cells in.
    /// Returns the faults of the exclusion: rows that match nothing, or columns that are not there; then no point is removed.
    pub fn exclude(&mut self, exclusion: &Self) -> Vec<ExclusionFault> {
        let (mut columns, mut faults) = (Vec::new(), Vec::new());
        for name in exclusion.names() {
            match self.column(name) {
                Some(column) => columns.push(column),
                None => faults.push(ExclusionFault::NoColumn(UnknownName::new(name, self.names()))),
            }
        }
        if !faults.is_empty() {
            return faults;
        }
        let groups = self.patterns(exclusion, &columns);
        let mut has_match = vec![false; exclusion.len()];
        let (mut rows, mut key) = (Vec::with_capacity(self.rows.len()), Vec::new());
        for row in self.rows() {
            let mut is_excluded = false;
            for (columns, patterns) in &groups {
                key.clear();
                key.extend(columns.iter().map(|column| row[*column]));
                if let Some(number) = patterns.get(&key) {
                    is_excluded = true;
                    has_match[*number] = true;
                }
            }
            if !is_excluded {
                rows.extend_from_slice(row);
            }
        }
        self.rows = rows;
        let unmatched = (1..).zip(exclusion.iter()).zip(has_match).filter(|(_, it)| !it);
        unmatched
            .map(|((row, point), _)| {
                let cells = point.values().filter(|(_, text)| !text.is_empty());
                let cells: Vec<_> = cells.map(|(name, text)| format!("{name}={text}")).collect();
                ExclusionFault::NoMatch { row, pattern: cells.join(" ") }
            })
            .collect()
    }

    /// The rows of an exclusion as numbers of this one's levels, by the columns in which they are not empty. Rows with a text
    /// that no point has are left out. `columns` are the numbers of the exclusion's columns in this one.
    fn patterns(&self, exclusion: &Self, columns: &[usize]) -> BTreeMap<Vec<usize>, Patterns> {
        let numbers: Vec<HashMap<&Arc<str>, u32>> =
            columns.iter().map(|column| self.levels(*column).iter().zip(0..).collect()).collect();
        let mut groups = BTreeMap::<_, Patterns>::new();
        for (number, point) in exclusion.iter().enumerate() {
            let texts = point.values().map(|(_, text)| text).enumerate();
            let cells = texts.filter(|(_, text)| !text.is_empty());
            let cells: Option<Vec<_>> =
                cells.map(|(at, text)| Some((columns[at], *numbers[at].get(text)?))).collect();
            if let Some(cells) = cells {
                let (columns, key) = cells.into_iter().unzip();
                groups.entry(columns).or_default().insert(key, number);
            }
        }
        groups
    }
}

/// The reason why rules make no points.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[hint(_0.hint())]
pub enum ProductFault {
    /// A factor is wrong, or they do not fit together.
    #[error(transparent)]
    Factor(FactorFault),
    /// A row of the exclusion is wrong.
    #[error(transparent)]
    Exclusion(ExclusionFault),
    /// The condition does not fit the points.
    #[error(transparent)]
    Condition(ConditionFault),
}

/// Returns the points that rules make: the product of their factors without those that are excluded, each as often as it
/// is replicated.
///
/// # Errors
///
/// Fails with all faults. A row that excludes nothing is one.
pub fn points(rules: &Product) -> Result<SweepPoints, Vec<ProductFault>> {
    let factors = rules.factors.iter().map(|factor| factor.points.clone()).collect();
    match excluding(rules, factors)? {
        (points, unmatched) if unmatched.is_empty() => Ok(points),
        (_, unmatched) => Err(unmatched.into_iter().map(ProductFault::Exclusion).collect()),
    }
}

/// Returns the product of computed points and factors without the points that are excluded, each as often as it is
/// replicated; and the rows of the exclusion that match no point, which is allowed. The factors vary faster.
pub fn computed_points(
    rules: &Product,
    computed: SweepPoints,
) -> Result<(SweepPoints, Vec<ExclusionFault>), Vec<ProductFault>> {
    if computed.is_empty() {
        return Ok(Default::default());
    }
    let factors = rules.factors.iter().map(|factor| factor.points.clone());
    excluding(rules, std::iter::once(computed).chain(factors).collect())
}

/// Returns the points that rules make, also with these computed points, and including excluded ones; empty if there are
/// faults.
pub fn all_points(rules: &Product, computed: Option<SweepPoints>) -> SweepPoints {
    let factors = rules.factors.iter().map(|factor| factor.points.clone());
    product(computed.into_iter().chain(factors).collect(), rules.most_replicates())
        .unwrap_or_default()
}

/// The largest number of points that conditions are tried for with each choice of the inputs that they read: points times choices.
const MOST_TRIED: usize = 50_000_000;

/// Returns the choices of inputs with which the condition leaves out all points, in words. The points do not depend on computed ones.
///
/// # Errors
///
/// Fails with the fault of the first choice that has one.
pub fn choices_without_points(rules: &Product) -> Result<Vec<String>, Vec<ProductFault>> {
    let Some(condition) = rules.condition.as_ref().filter(|it| it.is_open()) else {
        return Ok(Vec::new());
    };
    let wrong = |fault| vec![ProductFault::Condition(fault)];
    let factors = rules.factors.iter().map(|factor| factor.points.clone()).collect();
    let (points, _) = unselected(rules, factors)?;
    let mut without = Vec::new();
    let conditions = condition.with_each_choice().map_err(wrong)?;
    for condition in conditions.into_iter().take((MOST_TRIED / points.len().max(1)).max(1)) {
        if condition.select(&points).map_err(wrong)?.is_empty() {
            without.push(condition.chosen());
        }
    }
    Ok(without)
}

/// The product of factors without the points that are excluded or do not fulfil the condition, and the rows of the
/// exclusion that match nothing. Inputs without a text have their defaults.
fn excluding(
    rules: &Product,
    factors: Vec<SweepPoints>,
) -> Result<(SweepPoints, Vec<ExclusionFault>), Vec<ProductFault>> {
    let (mut points, unmatched) = unselected(rules, factors)?;
    if let Some(condition) = &rules.condition {
        let selected = condition.with_defaults().select(&points);
        points = selected.map_err(|fault| vec![ProductFault::Condition(fault)])?;
    }
    Ok((points, unmatched))
}

/// The same without the condition.
fn unselected(
    rules: &Product,
    factors: Vec<SweepPoints>,
) -> Result<(SweepPoints, Vec<ExclusionFault>), Vec<ProductFault>> {
    let product = product(factors, rules.most_replicates());
    let mut points =
        product.map_err(|it| it.into_iter().map(ProductFault::Factor).collect::<Vec<_>>())?;
    let faults = rules.exclude.as_ref().map(|exclusion| points.exclude(exclusion));
    let (wrong, unmatched): (Vec<_>, Vec<_>) = faults
        .unwrap_or_default()
        .into_iter()
        .partition(|it| matches!(it, ExclusionFault::NoColumn(_)));
    if !wrong.is_empty() {
        return Err(wrong.into_iter().map(ProductFault::Exclusion).collect());
    }
    Ok((points, unmatched))
}
