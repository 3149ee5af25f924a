//! Shared calls, labels, and what is known of files.

use std::num::NonZeroUsize;
use std::path::Path;

use super::*;
use ce_evaluate::{Evaluator, Files};
use ce_model::digest::Digest;
use ce_model::name::StorageName;
use ce_model::slice::WrittenSlice;
use ce_model::task::{
    Argument, Builder, Computation, ComputationId, InputId, LoadedFrom, Workflow,
};
use ce_storage::records::Stamp;
use ce_storage::{Input, Storage, Stored, Unrecorded};

fn task(workflow: Workflow) -> Task {
    let id = "ab".repeat(20);
    let computation = |name: &str, inputs: &[&str], outputs: &[&str]| Computation {
        name: name.parse().unwrap(),
        commit: id.parse().unwrap(),
        tree: id.parse().unwrap(),
        inputs: inputs.iter().copied().map(str::to_owned).collect(),
        outputs: outputs.iter().copied().map(str::to_owned).collect(),
        dirty: false,
        access: Default::default(),
        checked_out: None,
    };
    Task {
        name: "t".parse().unwrap(),
        place: String::new(),
        commit: id.parse().unwrap(),
        loaded_from: LoadedFrom::Commit(None),
        changed: vec![],
        inputs: vec!["n".parse().unwrap(), "unused".parse().unwrap()],
        defaults: vec![None, None],
        files: vec![],
        trees: Vec::new(),
        bound: Vec::new(),
        sweeps: Vec::new(),
        resources: Default::default(),
        computations: vec![
            computation("divmod", &["dividend", "divisor"], &["quotient", "remainder"]),
            computation("join", &["a", "b", "c", "d"], &["all", "log"]),
        ],
        workflow,
    }
}

fn call(builder: &mut Builder, at: usize, inputs: &[(&str, NodeId)], slice: &[&str]) -> NodeId {
    let mut next = 0;
    let argument = |(label, node): &(&str, NodeId)| {
        let first = next;
        next += builder[*node].width() as u8;
        Argument { label: (*label).into(), first, last: next - 1, node: *node }
    };
    let inputs = inputs.iter().map(argument).collect();
    builder.intern(Node::Computation {
        computation: ComputationId::at(at).into(),
        inputs,
        outputs: WrittenSlice::parse(slice.iter().copied()).resolve(&[]).0,
    })
}

/// Three slices of one call, and a literal.
fn shared() -> Task {
    let mut builder = Builder::default();
    let n = builder.intern(Node::Input(InputId::at(0)));
    let name: StorageName = "tinputs/ad/48103e4fc7".parse().unwrap();
    let d = builder.intern(Node::Literal(name.into()));
    let both = call(&mut builder, 0, &[("n", n), ("d", d)], &["01", "00"]);
    let one = call(&mut builder, 0, &[("x", n), ("y", d)], &["0"]);
    let inputs = [("both parts", both), ("", one), ("in", n)];
    let root = call(&mut builder, 1, &inputs, &["1", "0"]);
    task(builder.finish(root))
}

fn labels(drawing: &Drawing) -> Vec<&str> {
    drawing.shapes.iter().map(|shape| shape.label.as_str()).collect()
}

#[test]
fn a_call_is_drawn_once_whatever_the_slices() {
    let task = shared();
    let drawing = Drawing::new(&task, &Plan::new(&task), None);
    let shapes = ["INPUT n", "FILE tinputs/ad/48103e4fc7", "divmod", "join", "OUTPUT log, all"];
    assert_eq!(labels(&drawing), shapes);
    let arrows = drawing.arrows.iter().map(|arrow| (arrow.from, arrow.to, arrow.label.as_str()));
    let expected = [
        (0, 2, "dividend"),
        (1, 2, "divisor : d"),
        (2, 3, "a, b : both parts [remainder, quotient]"),
        (2, 3, "c [quotient]"),
        (0, 3, "d : in"),
        (3, 4, ""),
    ];
    assert_eq!(arrows.collect::<Vec<_>>(), expected);
    assert!(!drawing.has_states());
    assert!(drawing.shapes.iter().all(|shape| shape.files.is_empty()));
}

#[test]
fn the_root_may_be_an_input() {
    let mut builder = Builder::default();
    let root = builder.intern(Node::Input(InputId::at(0)));
    let task = task(builder.finish(root));
    let drawing = Drawing::new(&task, &Plan::new(&task), None);
    assert_eq!(labels(&drawing), ["INPUT n", "OUTPUT"]);
}

#[test]
fn files_have_the_names_that_the_user_sees() {
    let task = shared();
    let plan = Plan::new(&task);
    let name: StorageName = "tinputs/00/0123456789".parse().unwrap();
    let (name, digest) = (name.to_string(), Digest::of(b"17"));
    let file = Stored { name, digest, stamp: Stamp::Unknown };
    let files = Files {
        inputs: vec![Some(Input { file, there: true })],
        literals: vec![None],
        own: Vec::new(),
        own_sources: Vec::new(),
        given: vec![None],
    };
    let storage = Storage::inspect(Path::new("no/such/storage"), Unrecorded::Adopt).unwrap();
    let evaluation = Evaluation::new(task, plan, files, storage);
    Evaluator { evaluation: &evaluation, execution: None, observe: &|_| {} }
        .evaluate(NonZeroUsize::MIN)
        .unwrap();
    let drawing = Drawing::new(&evaluation.task, &evaluation.plan, Some(&evaluation));
    let there = drawing.shapes.iter().map(|shape| shape.state == Some(ShapeState::There));
    assert_eq!(there.collect::<Vec<_>>(), [true, false, false, false, false]);
    assert_eq!(drawing.shapes[0].files, ["no/such/storage/tinputs/00/0123456789"]);
    let [quotient, remainder] = &drawing.shapes[2].files[..] else {
        panic!("all outputs of a call are named");
    };
    assert!(quotient.starts_with("no/such/storage/c_divmod/abababababab/00/"), "{quotient}");
    assert!(remainder.starts_with("no/such/storage/c_divmod/abababababab/01/"), "{remainder}");
    let outputs = [&drawing.shapes[3].files[1], &drawing.shapes[3].files[0]];
    assert_eq!(drawing.shapes[4].files.iter().collect::<Vec<_>>(), outputs);
}
