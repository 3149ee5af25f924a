//! The names that values of nodes may have, and where.
//!
//! The names of the task's inputs are known everywhere, those that a sweep binds only in its body. A name is
//! never bound twice on a way.

use std::collections::HashMap;

use crate::task::name::InputName;
use crate::task::sweep::BoundId;

/// The names that are bound at a place of the workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    /// The names that sweeps around it bind, sorted.
    pub(super) bound: Vec<BoundId>,
    /// It is in the body of a sweep that binds whatever name is free in it.
    pub(super) is_open: bool,
    /// The number of sweeps around it.
    pub(super) depth: usize,
}

/// A scope of the workflow that is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ScopeId(usize);

/// The names that sweeps bind, and all scopes. The first one is that of the root.
pub(super) struct Scopes {
    bound: Vec<InputName>,
    known: HashMap<InputName, BoundId>,
    scopes: Vec<Scope>,
    ids: HashMap<Scope, ScopeId>,
}

impl Scopes {
    pub(super) fn new() -> Self {
        let root = Scope::default();
        let ids = HashMap::from([(root.clone(), ScopeId::default())]);
        Self { bound: Vec::new(), known: HashMap::new(), scopes: vec![root], ids }
    }

    pub(super) fn get(&self, id: ScopeId) -> &Scope {
        &self.scopes[id.0]
    }

    /// Returns the id of a scope.
    pub(super) fn enter(&mut self, scope: Scope) -> ScopeId {
        let next = ScopeId(self.scopes.len());
        let id = *self.ids.entry(scope.clone()).or_insert(next);
        if id == next {
            self.scopes.push(scope);
        }
        id
    }

    /// Returns the name as one that is bound, whether it is known in a scope or not.
    pub(super) fn name(&mut self, name: InputName) -> BoundId {
        let next = BoundId::at(self.bound.len());
        let id = *self.known.entry(name.clone()).or_insert(next);
        if id == next {
            self.bound.push(name);
        }
        id
    }

    /// Returns a name that is bound in a scope. In an open one, every name is.
    pub(super) fn find(&mut self, scope: ScopeId, name: &str) -> Option<BoundId> {
        let Scope { bound, is_open, .. } = self.get(scope);
        match name.parse().ok().and_then(|name: InputName| self.known.get(&name)) {
            Some(id) if bound.contains(id) => Some(*id),
            _ if *is_open => Some(self.name(name.parse().ok()?)),
            _ => None,
        }
    }

    /// The names that are bound in a scope.
    pub(super) fn names(&self, scope: ScopeId) -> impl Iterator<Item = String> {
        self.get(scope).bound.iter().map(|id| self.text(*id).to_owned())
    }

    /// The text of a name.
    pub(super) fn text(&self, id: BoundId) -> &str {
        self.bound[id.index()].as_str()
    }

    pub(super) fn into_bound(self) -> Vec<InputName> {
        self.bound
    }
}
