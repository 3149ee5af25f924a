//! The part of a node with inputs that makes its values, as far as it is read.

use super::library::Library;
use super::source::TaskSource;
use super::sweep_files::SweepFiles;
use ce_model::task::name::{MemberPath, TreeName};
use ce_model::task::slice::Slice;
use ce_model::task::sweep::{SWEEP_INPUTS, SWEEP_OUTPUTS};
use ce_model::task::template::Template;
use ce_model::task::workflow::{
    ComputationId, MEMBER_INPUTS, NamedComputation, TREE_INPUTS, TREE_OUTPUTS, VALUE,
};

/// The computations of a node: one, or those of all points of the sweeps around it.
#[derive(Clone)]
pub(super) struct Computations {
    pub(super) named: NamedComputation,
    /// All of them, each once.
    pub(super) ids: Vec<ComputationId>,
}

/// The part of a node with inputs that makes its values.
#[derive(Clone)]
pub(super) enum Maker {
    Computation(Computations),
    Tree(Template<TreeName>),
    Member(Template<MemberPath>),
    Sweep(Box<SweepFiles>),
}

impl Maker {
    /// The number of inputs that it takes if so many are given.
    pub(super) fn takes<S: TaskSource>(&self, library: &Library<'_, S>, given: usize) -> usize {
        match self {
            Self::Computation(it) => library.get(it.named.first).inputs.len(),
            Self::Tree(_) => TREE_INPUTS.len().min(given),
            Self::Member(_) => MEMBER_INPUTS.len(),
            Self::Sweep(_) => given.clamp(1, SWEEP_INPUTS.len()),
        }
    }

    /// The names of its outputs.
    pub(super) fn outputs<S: TaskSource>(&self, library: &Library<'_, S>) -> Vec<String> {
        match self {
            Self::Computation(it) => library.get(it.named.first).outputs.clone(),
            Self::Tree(_) => TREE_OUTPUTS.map(str::to_owned).into(),
            Self::Member(_) => vec![VALUE.to_owned()],
            Self::Sweep(_) => SWEEP_OUTPUTS.map(str::to_owned).into(),
        }
    }

    /// Returns the slice of a node that says none.
    pub(super) fn slice<S: TaskSource>(&self, library: &Library<'_, S>) -> Slice {
        match self {
            Self::Computation(_) => Slice::all(self.outputs(library).len()),
            Self::Tree(_) | Self::Member(_) | Self::Sweep(_) => Slice::all(1),
        }
    }

    /// Its name in messages.
    pub(super) fn title<S: TaskSource>(&self, library: &Library<'_, S>) -> String {
        match self {
            Self::Computation(Computations { named, .. }) => match &named.open {
                Some(name) => name.to_string(),
                None => library.get(named.first).name.to_string(),
            },
            Self::Tree(name) => format!("the tree {name}"),
            Self::Member(path) => format!("the member {path}"),
            Self::Sweep(_) => "a sweep".to_owned(),
        }
    }
}
