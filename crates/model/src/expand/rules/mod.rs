//! The rules of a sweep: what its files say, whether they fit together and fit the body, and which points they make.
//!
//! The loader reads the files of a task, the parser of expressions the same from text. Both obey these rules.

mod body;
mod fault;
mod files;
mod open_name;
mod scope;

pub use body::{
    column_problems, input_problem, known_columns, same_name_problems, table_columns,
    unread_problems,
};
pub use fault::{MAX_SWEEPS, SweepFault};
pub use files::{
    ALLOW_FAILED, COLUMNS, EXCLUDE, FACTORS, NAMES, PRODUCT_FILES, REPLICATES, RuleProblem,
    SWEEP_FILES, SweepRules, factor_label, factor_problems, is_sheet, read_column, read_replicates,
};
pub use open_name::LevelName;
pub use scope::{Scope, ScopeId, Scopes};

use super::factors::{ExclusionFault, FactorFault, product};
use crate::exit::Explain;
use crate::task::points::SweepPoints;
use crate::task::sweep::Product;

/// Why rules make no points.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProductFault {
    /// A factor is wrong, or they do not fit together.
    #[error(transparent)]
    Factor(FactorFault),
    /// A row of the exclusion is wrong.
    #[error(transparent)]
    Exclusion(ExclusionFault),
}

impl Explain for ProductFault {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Factor(fault) => fault.hint(),
            Self::Exclusion(fault) => fault.hint(),
        }
    }
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

/// Returns computed points without those that are excluded, each as often as it is replicated; and the rows of the
/// exclusion that match none of them, which is no fault.
///
/// # Errors
///
/// Fails with all faults.
pub fn computed_points(
    rules: &Product,
    computed: SweepPoints,
) -> Result<(SweepPoints, Vec<ExclusionFault>), Vec<ProductFault>> {
    if computed.is_empty() {
        return Ok(Default::default());
    }
    excluding(rules, vec![computed])
}

/// Returns the points that rules make, or these computed points, with those that are excluded; none if there are faults.
pub fn all_points(rules: &Product, computed: Option<SweepPoints>) -> SweepPoints {
    let factors = rules.factors.iter().map(|factor| factor.points.clone());
    product(computed.into_iter().chain(factors).collect(), rules.replicates).unwrap_or_default()
}

/// The product of factors without what is excluded, and the rows of the exclusion that match nothing.
fn excluding(
    rules: &Product,
    factors: Vec<SweepPoints>,
) -> Result<(SweepPoints, Vec<ExclusionFault>), Vec<ProductFault>> {
    let product = product(factors, rules.replicates);
    let mut points =
        product.map_err(|it| it.into_iter().map(ProductFault::Factor).collect::<Vec<_>>())?;
    let faults = rules.exclude.as_ref().map(|exclusion| points.exclude(exclusion));
    let (wrong, unmatched): (Vec<_>, Vec<_>) = faults
        .unwrap_or_default()
        .into_iter()
        .partition(|it| matches!(it, ExclusionFault::NoColumn { .. }));
    match wrong.is_empty() {
        true => Ok((points, unmatched)),
        false => Err(wrong.into_iter().map(ProductFault::Exclusion).collect()),
    }
}
