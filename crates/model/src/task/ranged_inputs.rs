//! A task that is evaluated for each point over some of its own inputs.
//!
//! Its root becomes a sweep whose body is the old one, and these inputs become names that the sweep binds. So all
//! points are one evaluation, and a call that several of them need is one call. Nothing keeps a table of them.

use std::path::PathBuf;

use super::workflow::{Argument, Builder, InputId, Node, SweepId, Workflow};
use super::{NamedComputation, Task, TaskFile, TaskTree};
use crate::name::InputName;
use crate::slice::Slice;
use crate::sweep::{BoundId, Product, Sweep};
use crate::template::Template;

/// The inputs of a task that is evaluated for each point, in order: those that its jobs have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangedInputs(Vec<RangedInput>);

/// An input of a task that is evaluated for each point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangedInput {
    /// Its name.
    pub name: InputName,
    /// The input of the transformed task that it is; `None` if the points have a text for it.
    pub given: Option<InputId>,
}

impl RangedInputs {
    /// All inputs, in the order in which the task names them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &RangedInput> {
        self.0.iter()
    }
}

impl Task {
    /// Returns the task whose root is evaluated for each point of a product, and the inputs that each point is a job of.
    /// The names of the factors are inputs of the task, each of which occurs once; the others stay its inputs.
    ///
    /// The product has points.
    pub fn for_each(self, product: Product) -> (Self, RangedInputs) {
        let names: Vec<&String> =
            product.factors.iter().flat_map(|factor| factor.points.names()).collect();
        let (mut bound, mut kept, mut defaults) = (self.bound.clone(), Vec::new(), Vec::new());
        let (mut inputs, mut binds) = (Vec::new(), Vec::new());
        for (name, default) in self.inputs.iter().zip(&self.defaults) {
            let given = if names.iter().any(|it| **it == name.as_str()) {
                binds.push(BoundId::at(bound.len()));
                bound.push(name.clone());
                None
            } else {
                kept.push(name.clone());
                defaults.push(*default);
                Some(InputId::at(kept.len() - 1))
            };
            inputs.push(RangedInput { name: name.clone(), given });
        }
        let renaming = Renaming { inputs: &inputs, kept: kept.len(), bound: self.bound.len() };
        let files = self
            .files
            .into_iter()
            .map(|it| TaskFile { path: renaming.template(it.path), ..it })
            .collect();
        let trees = self
            .trees
            .into_iter()
            .map(|it| TaskTree { name: renaming.template(it.name), ..it })
            .collect();
        let mut sweeps = self.sweeps;
        let rules = Sweep::new(self.name.as_str().into(), PathBuf::new(), product);
        sweeps.push(Sweep { binds, has_table: false, ..rules });
        let sweep = SweepId::at(sweeps.len() - 1);
        let workflow = renaming.workflow(&self.workflow, sweep);
        let resources = self.resources.renamed(|amount| renaming.template(amount));
        let task = Self {
            inputs: kept,
            defaults,
            files,
            trees,
            bound,
            sweeps,
            resources,
            workflow,
            ..self
        };
        (task, RangedInputs(inputs))
    }
}

/// What becomes of the numbers of names.
struct Renaming<'a> {
    inputs: &'a [RangedInput],
    /// The number of inputs that stay.
    kept: usize,
    /// The number of names that were bound before.
    bound: usize,
}

impl Renaming<'_> {
    /// The name that an input becomes, unless it stays one.
    fn binding(&self, input: usize) -> Option<BoundId> {
        let RangedInput { given, .. } = &self.inputs[input];
        let before = self.inputs[..input].iter().filter(|it| it.given.is_none()).count();
        given.is_none().then(|| BoundId::at(self.bound + before))
    }

    /// A value with the new numbers of its names.
    fn template<T: AsRef<str>>(&self, value: Template<T>) -> Template<T> {
        value.renumbered(|number| match number.checked_sub(self.inputs.len()) {
            Some(bound) => self.kept + bound,
            None => match self.inputs[number].given {
                Some(input) => input.index(),
                None => self.kept + self.binding(number).map_or(0, BoundId::index),
            },
        })
    }

    /// The workflow, as the body of a sweep.
    fn workflow(&self, workflow: &Workflow, sweep: SweepId) -> Workflow {
        let mut builder = Builder::default();
        // Different nodes stay different, so each keeps its id.
        for (id, node) in workflow.nodes() {
            let node = match node.clone() {
                Node::Input(input) => {
                    match (self.binding(input.index()), &self.inputs[input.index()]) {
                        (Some(name), _) => Node::Bound(name),
                        (None, RangedInput { given, .. }) => Node::Input(given.unwrap_or(input)),
                    }
                }
                Node::Literal(name) => Node::Literal(self.template(name)),
                Node::Member { path, inputs } => Node::Member { path: self.template(path), inputs },
                Node::Computation { computation, inputs, outputs } => {
                    let open = computation.open.map(|name| Box::new(self.template(*name)));
                    let computation = NamedComputation { open, ..computation };
                    Node::Computation { computation, inputs, outputs }
                }
                other => other,
            };
            let same = builder.intern(node);
            debug_assert_eq!(same, id, "a renamed node is as different as before");
        }
        let body = Argument { label: "TASK".into(), first: 0, last: 0, node: workflow.root() };
        let root = Node::Sweep { sweep, inputs: [body].into(), outputs: Slice::all(1) };
        let root = builder.intern(root);
        builder.finish(root)
    }
}
