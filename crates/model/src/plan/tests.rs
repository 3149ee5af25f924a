//! Tests of planning.

use super::*;
use crate::name::TreeName;
use crate::slice::WrittenSlice;
use crate::task::{Argument, Builder, LoadedFrom, Node, TaskTree, TreeCommit};

fn call(builder: &mut Builder, computation: usize, inputs: &[NodeId], slice: &[&str]) -> NodeId {
    let mut next = 0;
    let argument = |node: &NodeId| {
        let first = next;
        next += builder[*node].width() as u8;
        Argument { label: "".into(), first, last: next - 1, node: *node }
    };
    let inputs = inputs.iter().map(argument).collect();
    let outputs = WrittenSlice::parse(slice.iter().copied()).resolve(&[]).0;
    let computation = ComputationId::at(computation).into();
    builder.intern(Node::Computation { computation, inputs, outputs })
}

#[test]
fn equal_sources_are_one_call_whatever_the_slice() {
    let mut builder = Builder::default();
    let x = builder.intern(Node::Input(InputId::at(0)));
    let one = call(&mut builder, 0, &[x, x], &["0"]);
    let other = call(&mut builder, 0, &[x, x], &["01", "00"]);
    let root = call(&mut builder, 1, &[one, other], &["0", "1"]);
    let plan = planned(builder.finish(root));
    assert_eq!(plan.calls().len(), 2);
    let divmod = CallId::at(0);
    let numbers = [0, 1, 0].map(|number| Source::Output { call: divmod, number });
    assert_eq!(*plan.call(CallId::at(1)).inputs, numbers);
    assert_eq!(awaited(&plan, CallId::at(1)), [Some(divmod); 3]);
    assert_eq!(awaited(&plan, divmod), [None; 2]);
    let outputs = [0, 1].map(|number| Source::Output { call: CallId::at(1), number });
    assert_eq!(plan.outputs(), outputs);
}

#[test]
fn a_tree_of_2_to_the_60_paths_is_60_calls() {
    let mut builder = Builder::default();
    let mut node = builder.intern(Node::Input(InputId::at(0)));
    for _ in 0..60 {
        node = call(&mut builder, 0, &[node, node], &["0"]);
    }
    let plan = planned(builder.finish(node));
    assert_eq!(plan.calls().len(), 60);
}

#[test]
fn a_call_waits_for_the_revisions_of_its_trees() {
    let mut builder = Builder::default();
    let x = builder.intern(Node::Input(InputId::at(0)));
    let revision = call(&mut builder, 0, &[x], &["0"]);
    let mut tree = |revision: NodeId, slice| {
        let inputs = [Argument { label: "".into(), first: 0, last: 0, node: revision }].into();
        let outputs = WrittenSlice::parse([slice]).resolve(&[]).0;
        builder.intern(Node::Tree { tree: TaskTreeId::at(0), inputs, outputs })
    };
    let commit = tree(revision, "01");
    let trees = [tree(revision, "00"), tree(commit, "00"), tree(x, "00")];
    let root = call(&mut builder, 1, &trees, &["0"]);
    let plan = planned(builder.finish(root));
    assert_eq!(plan.derived().len(), 3, "one for each revision");
    let [first, root] = [0, 1].map(CallId::at);
    assert_eq!(awaited(&plan, root), [Some(first), Some(first), None]);
}

#[test]
fn a_workflow_may_be_a_single_leaf() {
    let mut builder = Builder::default();
    let name: StorageName = "tinputs/ad/48103e4fc7".parse().unwrap();
    let root = builder.intern(Node::Literal(name.clone().into()));
    let plan = planned(builder.finish(root));
    assert_eq!(plan.literals(), [name]);
    assert_eq!(plan.outputs(), [Source::Literal(LiteralId::at(0))]);
}

/// The call that each input of a call waits for.
fn awaited(plan: &Plan, call: CallId) -> Vec<Option<CallId>> {
    plan.inputs(call).iter().map(|source| plan.awaited(*source)).collect()
}

/// Plans a workflow whose computations do not matter.
fn planned(workflow: Workflow) -> Plan {
    let name: TreeName = "lib".parse().unwrap();
    let tree = TaskTree { name: name.into(), commit: TreeCommit::OfRevision };
    Plan::new(&Task {
        name: "t".parse().unwrap(),
        commit: "0123456789012345678901234567890123456789".parse().unwrap(),
        place: String::new(),
        loaded_from: LoadedFrom::Commit(None),
        changed: Vec::new(),
        inputs: vec!["x".parse().unwrap()],
        defaults: Vec::new(),
        files: Vec::new(),
        trees: vec![tree],
        bound: Vec::new(),
        sweeps: Vec::new(),
        resources: Default::default(),
        computations: Vec::new(),
        workflow,
    })
}
