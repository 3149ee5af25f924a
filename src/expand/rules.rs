//! The points of a sweep, by its rules.

use super::factors::{ExclusionFault, FactorFault, product};
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

impl ProductFault {
    /// A hint for the user.
    pub fn hint(&self) -> String {
        match self {
            Self::Factor(fault) => fault.hint().to_owned(),
            Self::Exclusion(fault) => fault.hint(),
        }
    }
}

/// Returns the points that rules make: the product of their factors, or these computed points, without those that are
/// excluded, each as often as it is replicated.
///
/// # Errors
///
/// Fails with all faults. Rows that exclude none of the computed points are no fault.
pub fn points(
    rules: &Product,
    computed: Option<SweepPoints>,
) -> Result<SweepPoints, Vec<ProductFault>> {
    let is_computed = computed.is_some();
    let factors = rules.factors.iter().map(|factor| factor.points.clone());
    let factors: Vec<SweepPoints> = computed.into_iter().chain(factors).collect();
    if is_computed && factors.iter().any(SweepPoints::is_empty) {
        return Ok(SweepPoints::default());
    }
    let product = product(factors, rules.replicates);
    let mut points =
        product.map_err(|it| it.into_iter().map(ProductFault::Factor).collect::<Vec<_>>())?;
    if let Some(exclusion) = &rules.exclude {
        let mut faults = points.exclude(exclusion);
        faults.retain(|it| !is_computed || matches!(it, ExclusionFault::NoColumn { .. }));
        if !faults.is_empty() {
            return Err(faults.into_iter().map(ProductFault::Exclusion).collect());
        }
    }
    Ok(points)
}
