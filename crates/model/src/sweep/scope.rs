//! The names that values of nodes may have, and where.
//!
//! The names of the task's inputs are known everywhere, those that a sweep binds only in its body. A name is
//! never bound twice on a way.
//!
//! The name of a computation may depend on levels of factors only: which computations a task has must be known when it is
//! loaded, since their inputs and outputs say what a node reads and passes up.

use std::collections::{BTreeMap, HashMap};

use super::condition_mistake::MOST_COMBINATIONS;
use super::points::SweepPoints;
use super::product::{FactorFault, ProductFault, REPLICATE, points, product};
use super::rules::{
    FILES, MAX_SWEEPS, NAMES, RuleProblem, SweepFault, SweepRules, product_problems,
};
use super::{BoundId, Product};
use crate::name::{ComputationName, InputName, NameError};
use crate::template::Template;

/// The names that are bound at a place of the workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The names that sweeps around it bind, sorted.
    pub bound: Vec<BoundId>,
    /// Those that are bound to files, and so have no text. Sorted.
    files: Vec<BoundId>,
    /// It is in the body of a sweep that binds every name that is free in it.
    pub is_open: bool,
    /// The number of sweeps around it.
    pub depth: usize,
    /// The numbers of the products of the sweeps whose points are not computed.
    products: Vec<usize>,
}

/// A scope of a workflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScopeId(usize);

/// The names that sweeps bind, and all scopes. The first one is the scope of the root.
#[derive(Debug)]
pub struct Scopes {
    bound: Vec<InputName>,
    known: HashMap<InputName, BoundId>,
    scopes: Vec<Scope>,
    /// The different products of sweeps.
    products: Vec<Product>,
    ids: HashMap<Scope, ScopeId>,
}

impl Default for Scopes {
    fn default() -> Self {
        let root = Scope::default();
        let ids = HashMap::from([(root.clone(), ScopeId::default())]);
        Self {
            bound: Vec::new(),
            known: HashMap::new(),
            scopes: vec![root],
            products: Vec::new(),
            ids,
        }
    }
}

impl Scopes {
    /// The products of the sweeps around a scope whose points are not computed, from the outermost one on.
    pub(super) fn products(&self, id: ScopeId) -> impl Iterator<Item = &Product> {
        self.get(id).products.iter().map(|number| &self.products[*number])
    }

    /// The names that are bound in a scope, and whether it is open.
    pub fn get(&self, id: ScopeId) -> &Scope {
        &self.scopes[id.0]
    }

    /// Returns the id of a scope.
    fn enter(&mut self, scope: Scope) -> ScopeId {
        let next = ScopeId(self.scopes.len());
        let id = *self.ids.entry(scope.clone()).or_insert(next);
        if id == next {
            self.scopes.push(scope);
        }
        id
    }

    /// Returns the name as one that is bound, whether it is known in a scope or not.
    fn name(&mut self, name: InputName) -> BoundId {
        let next = BoundId::at(self.bound.len());
        let id = *self.known.entry(name.clone()).or_insert(next);
        if id == next {
            self.bound.push(name);
        }
        id
    }

    /// Returns a name that is bound in a scope. In an open one, every name is.
    pub fn find(&mut self, scope: ScopeId, name: &str) -> Option<BoundId> {
        let Scope { bound, is_open, .. } = self.get(scope);
        match name.parse().ok().and_then(|name: InputName| self.known.get(&name)) {
            Some(id) if bound.contains(id) => Some(*id),
            _ if *is_open => Some(self.name(name.parse().ok()?)),
            _ => None,
        }
    }

    /// Returns the number of a name that is known in a scope: the task's inputs come first, then bound
    /// names.
    pub fn number(&mut self, scope: ScopeId, inputs: &[InputName], name: &str) -> Option<usize> {
        let input = inputs.iter().position(|known| known.as_str() == name);
        input.or_else(|| Some(inputs.len() + self.find(scope, name)?.index()))
    }

    /// Returns the fault of a value, an amount or a name of a computation in a scope that has one of these names in braces, and a sweep binds that
    /// to a file.
    pub fn file_fault<'n>(
        &self,
        scope: ScopeId,
        names: impl Iterator<Item = &'n str>,
    ) -> Option<SweepFault> {
        let Scope { bound, files, .. } = self.get(scope);
        let is_file = |name: &&str| files.iter().any(|id| self.text(*id) == *name);
        let name = names.into_iter().find(is_file)?.to_owned();
        let text = bound.iter().find(|id| !files.contains(id)).map(|id| self.text(*id).to_owned());
        Some(SweepFault::FileAsText { name, text })
    }

    /// The names that are bound in a scope.
    pub fn names(&self, scope: ScopeId) -> impl Iterator<Item = String> {
        self.get(scope).bound.iter().map(|id| self.text(*id).to_owned())
    }

    /// The text of a name.
    pub fn text(&self, id: BoundId) -> &str {
        self.bound[id.index()].as_str()
    }

    /// All names that sweeps bind, in the order of their ids.
    pub fn into_bound(self) -> Vec<InputName> {
        self.bound
    }

    /// Returns the scope of the body of a sweep, which binds the names of its points. `inputs` are the task's inputs.
    ///
    /// # Errors
    ///
    /// Fails with the problems without which the body cannot be read.
    pub fn body(
        &mut self,
        scope: ScopeId,
        rules: &SweepRules,
        is_computed: bool,
        inputs: &[InputName],
    ) -> Result<ScopeId, Vec<RuleProblem>> {
        let Scope { mut bound, mut files, is_open, depth, mut products } = self.get(scope).clone();
        let opens = is_computed && rules.are_open();
        let has_factors = !rules.product.factors.is_empty();
        let wrong = match () {
            () if depth == MAX_SWEEPS => Some(("", SweepFault::TooDeep)),
            () if !is_computed && !has_factors && rules.product.replicates.is_none() => {
                Some(("", SweepFault::NoPoints))
            }
            () if !is_computed && rules.names.is_some() => Some((NAMES, SweepFault::Names)),
            () if !is_computed && !rules.files.is_empty() => Some((FILES, SweepFault::Files)),
            () if opens && is_open => Some(("", SweepFault::Ambiguous)),
            () => None,
        };
        if let Some((file, fault)) = wrong {
            return Err(vec![RuleProblem::new(file, fault)]);
        }
        let mut product =
            if is_computed { rules.product.beside_computed() } else { rules.product.clone() };
        let is_known = !is_computed || has_factors;
        let mut problems = if is_known { product_problems(&product) } else { Vec::new() };
        if !problems.is_empty() {
            return Err(problems);
        }
        // Which points are left depends on the choice; the body is right for each.
        product.condition.take_if(|condition| condition.is_open());
        problems.extend(rules.same_names());
        problems.extend(rules.files_as_texts());
        for (name, file) in rules.named() {
            match self.bind(scope, &name, inputs) {
                Ok(name) => {
                    bound.push(name);
                    files.extend((file == FILES).then_some(name));
                }
                Err(fault) => problems.push(RuleProblem::new(file, fault)),
            }
        }
        for names in [&mut bound, &mut files] {
            names.sort_unstable();
            names.dedup();
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        products.extend(is_known.then(|| self.product(&product)));
        let scope = Scope { bound, files, is_open: is_open || opens, depth: depth + 1, products };
        Ok(self.enter(scope))
    }

    /// Returns the number of a product.
    fn product(&mut self, product: &Product) -> usize {
        let known = self.products.iter().position(|it| it == product);
        known.unwrap_or_else(|| {
            self.products.push(product.clone());
            self.products.len() - 1
        })
    }

    /// Returns a name that a sweep in this scope may bind.
    fn bind(
        &mut self,
        scope: ScopeId,
        name: &str,
        inputs: &[InputName],
    ) -> Result<BoundId, SweepFault> {
        let shadow = SweepFault::Shadow(name.to_owned());
        let parsed: InputName = name.parse().map_err(|_| SweepFault::NoName(name.to_owned()))?;
        if inputs.contains(&parsed) {
            return Err(shadow);
        }
        let id = self.name(parsed);
        if self.get(scope).bound.contains(&id) { Err(shadow) } else { Ok(id) }
    }
}

/// The name of a computation with the texts of some points.
#[derive(Clone, Debug)]
pub struct LevelName {
    /// The names that it depends on and their texts, in words.
    pub texts: Vec<String>,
    /// The name with these texts.
    pub name: Result<ComputationName, NameError>,
}

impl Scopes {
    /// Returns the names that a name with free names stands for at the points of the sweeps around a scope, by their different
    /// texts.
    /// Its free names have the numbers of `inputs`, the task's, and then of bound names.
    ///
    /// `choices` are the texts that each of the inputs may have, if they are known.
    ///
    /// # Errors
    ///
    /// Fails if it depends on an input of the task without choices or on texts that are computed, if no point is left, or if there are too
    /// many names.
    pub fn level_names(
        &self,
        scope: ScopeId,
        name: &Template<ComputationName>,
        inputs: &[InputName],
        choices: &[Option<SweepPoints>],
    ) -> Result<Vec<LevelName>, SweepFault> {
        let (mut bound, mut factors) = (Vec::new(), BTreeMap::new());
        for number in name.names() {
            match number.checked_sub(inputs.len()) {
                Some(number) => bound.push(BoundId::at(number)),
                None => match choices.get(number).and_then(Option::as_ref) {
                    None => return Err(SweepFault::InputName(inputs[number].to_string())),
                    Some(texts) => drop(factors.insert(number, texts.clone())),
                },
            }
        }
        let levels = if bound.is_empty() { None } else { Some(self.texts(scope, &bound)?) };
        let counts = levels.iter().chain(factors.values()).map(SweepPoints::len);
        let count = counts.fold(1, usize::saturating_mul);
        if count > MOST_COMBINATIONS && !factors.is_empty() {
            return Err(SweepFault::ManyChoices(count));
        }
        let texts = product(levels.into_iter().chain(factors.into_values()).collect(), None)
            .map_err(|faults| first_fault(faults.into_iter().map(ProductFault::Factor)))?;
        let text = |number: usize| match number.checked_sub(inputs.len()) {
            Some(number) => self.text(BoundId::at(number)),
            None => inputs[number].as_str(),
        };
        let mut names = Vec::with_capacity(texts.len());
        for point in texts.iter() {
            let bound = name.bind(|number| Some(&**point.value(text(number))?));
            names.push(LevelName {
                texts: point.values().map(|(name, text)| format!("{name} is {text:?}")).collect(),
                name: bound.map(|name| name.written().clone()),
            });
        }
        Ok(names)
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

/// Returns the texts of some names, as far as a product binds them: each combination once, in the order of its points.
/// `None` if it does not bind any of them.
fn texts_of(rules: &Product, names: &[&str]) -> Result<Option<SweepPoints>, SweepFault> {
    let excluded = rules.exclude.as_ref().map(SweepPoints::names).unwrap_or_default();
    let is_named = |name: &str| names.contains(&name);
    let is_in_condition =
        |name: &str| rules.condition.iter().any(|it| it.names().any(|it| it == name));
    // No other factor changes the combinations.
    let counts = |name: &str| {
        is_named(name) || is_in_condition(name) || excluded.iter().any(|it| it == name)
    };
    let mut factors = rules.factors.clone();
    factors.retain(|factor| factor.points.names().iter().any(|name| counts(name)));
    let replicates = rules.replicates.clone().filter(|_| counts(REPLICATE));
    let all = factors.iter().flat_map(|factor| factor.points.names()).map(String::as_str);
    if !all.chain(replicates.as_ref().map(|_| REPLICATE)).any(is_named) {
        return Ok(None);
    }
    let points = points(&Product { factors, replicates, ..rules.clone() });
    points.map(|points| Some(points.columns(is_named))).map_err(first_fault)
}

fn first_fault(faults: impl IntoIterator<Item = ProductFault>) -> SweepFault {
    let no_levels = ProductFault::Factor(FactorFault::NoFactors);
    SweepFault::Product(faults.into_iter().next().unwrap_or(no_levels))
}
