//! The names of computations that depend on the factors of sweeps.
//!
//! Which computations a task has must be known when it is loaded: their inputs and outputs say what a node reads and passes
//! up. So such a name may depend on levels of factors only.

use super::fault::SweepFault;
use super::scope::{ScopeId, Scopes};
use super::{ProductFault, points};
use crate::expand::{FactorFault, REPLICATE, product};
use crate::task::name::{ComputationName, InputName, NameError};
use crate::task::points::{SweepPoint, SweepPoints};
use crate::task::sweep::{BoundId, Product};
use crate::task::template::Template;

/// What the name of a computation is with the texts of some points.
#[derive(Clone, Debug)]
pub struct LevelName {
    /// The names that it depends on and their texts, in words.
    pub texts: Vec<String>,
    /// The name with these texts.
    pub name: Result<ComputationName, NameError>,
}

impl Scopes {
    /// Returns what a name with free names is at the points of the sweeps around a scope, by their different texts.
    /// The numbers of its free names are those of `inputs`, the task's, and then of bound names.
    ///
    /// # Errors
    ///
    /// Fails if it depends on an input of the task or on texts that are computed, or if no point is left.
    pub fn level_names(
        &self,
        scope: ScopeId,
        name: &Template<ComputationName>,
        inputs: &[InputName],
    ) -> Result<Vec<LevelName>, SweepFault> {
        let mut bound = Vec::new();
        for number in name.names() {
            match number.checked_sub(inputs.len()) {
                Some(number) => bound.push(BoundId::at(number)),
                None => return Err(SweepFault::InputName(inputs[number].to_string())),
            }
        }
        let texts = self.texts(scope, &bound)?;
        let level_name = |point: SweepPoint<'_>| {
            let text = |number: usize| {
                let bound = BoundId::at(number.checked_sub(inputs.len())?);
                Some(&**point.value(self.text(bound))?)
            };
            LevelName {
                texts: point.values().map(|(name, text)| format!("{name} is {text:?}")).collect(),
                name: name.bind(text).map(|name| name.written().clone()),
            }
        };
        Ok(texts.iter().map(level_name).collect())
    }

    /// Returns the texts that names have together in a scope: each combination once, with a column for each name. The
    /// sweeps around the scope bind these names.
    ///
    /// # Errors
    ///
    /// Fails if texts of a name are computed, or if no point is left.
    fn texts(&self, scope: ScopeId, names: &[BoundId]) -> Result<SweepPoints, SweepFault> {
        let mut left: Vec<&str> = names.iter().map(|name| self.text(*name)).collect();
        let mut factors = Vec::new();
        for product in self.products(scope) {
            if let Some(texts) = texts_of(product, &left)? {
                left.retain(|name| texts.column(name).is_none());
                factors.push(texts);
            }
        }
        if let Some(name) = left.first() {
            return Err(SweepFault::ComputedName((*name).to_owned()));
        }
        if factors.iter().any(SweepPoints::is_empty) {
            return Err(SweepFault::NoLevels);
        }
        let texts = product(factors, None);
        texts.map_err(|faults| first_fault(faults.into_iter().map(ProductFault::Factor)))
    }
}

/// Returns the texts that those of some names have together that a product binds: each combination once, in the order of
/// its points. `None` if it binds none of them.
fn texts_of(rules: &Product, names: &[&str]) -> Result<Option<SweepPoints>, SweepFault> {
    let excluded = rules.exclude.as_ref().map(SweepPoints::names).unwrap_or_default();
    let is_named = |name: &str| names.contains(&name);
    // No other factor changes the combinations.
    let counts = |name: &str| is_named(name) || excluded.iter().any(|it| it == name);
    let mut factors = rules.factors.clone();
    factors.retain(|factor| factor.points.names().iter().any(|name| counts(name)));
    let replicates = rules.replicates.filter(|_| counts(REPLICATE));
    let all = factors.iter().flat_map(|factor| factor.points.names()).map(String::as_str);
    if !all.chain(replicates.map(|_| REPLICATE)).any(is_named) {
        return Ok(None);
    }
    let points = points(&Product { factors, exclude: rules.exclude.clone(), replicates });
    points.map(|points| Some(points.columns(is_named))).map_err(first_fault)
}

fn first_fault(faults: impl IntoIterator<Item = ProductFault>) -> SweepFault {
    let no_levels = ProductFault::Factor(FactorFault::NoFactors);
    SweepFault::Product(faults.into_iter().next().unwrap_or(no_levels))
}
