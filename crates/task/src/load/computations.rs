//! The computations of a node, by its value.
//!
//! Names of factors in it stand for their levels, so a node may have several computations. They have the same inputs and
//! outputs: a node reads and passes up the same at each point.

use super::maker::Computations;
use super::nearest;
use super::nodes::NodeReader;
use super::problems::LoadFault;
use super::source::TaskSource;
use ce_model::expand::{LevelName, ScopeId};
use ce_model::task::name::ComputationName;
use ce_model::task::template::Template;
use ce_model::task::workflow::{ComputationId, NamedComputation};

impl<S: TaskSource> NodeReader<'_, '_, S> {
    /// Finds the computations of a node with this value. Returns `None` if the names that it may have are not known, or if a
    /// computation has a problem, which is reported once.
    pub(super) fn computations(
        &mut self,
        dir: &S::Dir,
        scope: ScopeId,
        value: &str,
    ) -> Result<Option<Computations>, LoadFault> {
        let name: Option<Template<ComputationName>> = self.template(dir, scope, value)?;
        let Some(name) = name else { return Ok(None) };
        if !name.is_open() {
            let found = self.library.find(value, self.findings);
            let found = found.map_err(|fault| self.mistyped(scope, &name, fault))?;
            return Ok(found.map(|id| Computations { named: id.into(), ids: vec![id] }));
        }
        let names = self.scopes.level_names(scope, &name, self.inputs.unwrap_or_default())?;
        let ids = self.of_levels(value, &names)?;
        Ok(ids.and_then(|ids| {
            let (first, open) = (*ids.first()?, Some(Box::new(name)));
            Some(Computations { named: NamedComputation { first, open }, ids })
        }))
    }

    /// Finds the computations that a value leads to.
    fn of_levels(
        &mut self,
        value: &str,
        names: &[LevelName],
    ) -> Result<Option<Vec<ComputationId>>, LoadFault> {
        let mut ids: Vec<ComputationId> = Vec::with_capacity(names.len());
        let mut is_complete = true;
        for LevelName { texts, name } in names {
            let found = match name {
                Ok(name) => self.library.find(name.as_str(), self.findings),
                Err(error) => Err(LoadFault::Name(error.clone())),
            };
            let found = found.and_then(|found| {
                let pair = found.zip(ids.first());
                pair.map_or(Ok(()), |(id, first)| self.library.compare(id, *first))?;
                Ok(found)
            });
            match found.map_err(|fault| bound(value, texts, other_than(names, fault)))? {
                Some(id) if ids.contains(&id) => {}
                Some(id) => ids.push(id),
                None => is_complete = false,
            }
        }
        Ok(is_complete.then_some(ids))
    }

    /// The fault of a value without names of factors, in which somebody may have mistyped one.
    fn mistyped(
        &self,
        scope: ScopeId,
        name: &Template<ComputationName>,
        fault: LoadFault,
    ) -> LoadFault {
        let LoadFault::NoComputation { name: value, nearest: None } = fault else { return fault };
        let known: Vec<String> = self.scopes.names(scope).collect();
        let meant = name.unknown().find_map(|unknown| {
            let meant = nearest(unknown, &known)?;
            Some(value.replace(&format!("{{{unknown}}}"), &format!("{{{meant}}}")))
        });
        LoadFault::NoComputation { name: value, nearest: meant }
    }
}

/// The fault of a value with texts of its names.
fn bound(value: &str, texts: &[String], fault: LoadFault) -> LoadFault {
    LoadFault::Bound { value: value.to_owned(), texts: texts.to_vec(), fault: Box::new(fault) }
}

/// The fault of one of these names, without the advice to take another one of them.
fn other_than(names: &[LevelName], fault: LoadFault) -> LoadFault {
    match fault {
        LoadFault::NoComputation { name, nearest } => {
            let is =
                |it: &LevelName, name: &str| it.name.as_ref().is_ok_and(|it| it.as_str() == name);
            let nearest = nearest.filter(|nearest| !names.iter().any(|it| is(it, nearest)));
            LoadFault::NoComputation { name, nearest }
        }
        other => other,
    }
}
