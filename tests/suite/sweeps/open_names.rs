//! Names of computations that depend on factors: `{tool}` is another computation for each level.

use std::num::NonZeroU32;

use crate::inside::World;
use crate::lab::{Lab, Library};

/// A sweep over computations, as text. `add` and `mul` have the same inputs and outputs.
fn over(sweep: &str) -> Lab {
    let multiply = r#"echo $(($(cat "$1") * $(cat "$2"))) >"$3""#;
    let lab = Lab::task(&format!("Inputs: 'x', 'y'\n{sweep}"));
    lab.computation("mul", "a b", "sum", multiply)
}

/// Addition and multiplication of the inputs.
const BOTH: &str = "SWEEP(:factors/00-op 'add' 'mul' :columns '00 value'
    :body ({op} INPUT('x') INPUT('y'))[00])";

#[test]
fn each_level_calls_its_computation() {
    let lab = over(BOTH)
        .computation("max", "a b", "sum", r#"sort -n "$1" "$2" | tail -1 >"$3""#)
        .commit_with(Library::Submodule);
    lab.ce_run(&[]).exit(0).called(vec!["add", "mul"]);
    assert_eq!(lab.table(), "{\"op\":\"add\",\"value\":22}\n{\"op\":\"mul\",\"value\":85}\n");
    // A level more executes its call, and nothing else.
    let lab = lab.file("workflow/factors/00-op", "max\nmul\nadd\n").commit_again();
    lab.ce_run(&["-n"]).exit(3).says("op=max: max (body): never computed");
    lab.ce_run(&[]).exit(0).called(vec!["max"]);
    assert!(lab.table().starts_with("{\"op\":\"max\",\"value\":17}\n"), "{}", lab.table());
    // The calls are the same as of the computations without a sweep.
    let mut lab = lab.without("workflow").call("", "mul", &["x", "y"]).commit_again();
    lab.inputs = vec!["x".to_owned(), "y".to_owned()];
    lab.ce_run(&[]).exit(0).called(vec![]);
}

#[test]
fn the_node_is_printed_once_with_the_name_as_it_is_written() {
    let lab = over(BOTH).commit();
    let tree = lab.ce_run(&[]).exit(0).stdout;
    assert!(tree.contains("    {op} (body): 2 calls: 2 computed\n"), "{tree}");
    let text = lab.run("ce-sym", &[]).exit(0).stdout;
    assert!(text.contains(":body ({op} INPUT('x')"), "{text}");
    let drawing = lab.run("ce-viz", &[]).exit(0).stdout;
    assert!(drawing.contains("label=\"{op}: 2 calls\""), "{drawing}");
    lab.run("ce", &["table", "../storage", "../data/x", "../data/y", "--sweep", "{op}"]).exit(0);
    lab.run("ce", &["check"]).exit(0).shows("2 calls, 1 table, 2 computations");
}

/// An exclusion by a factor that is not in the name, and replicates, which are.
#[test]
fn names_of_several_factors_cover_only_their_points() {
    let lab = over(
        "SWEEP(:factors/00-op 'add' 'no' :factors/01-n '1' '2' :replicates '2'
         :exclude.tsv ('op' 'n') ('no' '1') ('no' '2')
         :columns '00 value' :body ({op}-{replicate} INPUT('n') INPUT('y'))[00])",
    );
    let lab = lab
        .computation("add-1", "a b", "c", r#"echo 1 >"$3""#)
        .computation("add-2", "a b", "c", r#"echo 2 >"$3""#)
        .commit();
    lab.ce_run(&[]).exit(0);
    let mut called = lab.called();
    called.sort_unstable();
    assert_eq!(called, ["add-1", "add-1", "add-2", "add-2"]);
}

#[test]
fn each_computation_asks_for_its_own_resources() {
    let lab = over(
        "SWEEP(:factors/00-op 'add' 'mul' :factors/01-n '1' '2' :columns '00 value'
           :body ({op} INPUT('n') INPUT('y'))[00])",
    )
    .file("computations/add/resources", "cpus {n}\n")
    .file("computations/mul/resources", "memory 1M\n")
    .file("resources", "mul cpus 3\n")
    .commit();
    let World { task, plan, .. } = World::load(&lab);
    let asked = plan.calls().filter_map(|(call, _)| {
        let name = &task.computations[plan.computation(call)?.index()].name;
        let asked = plan.resources(call).unwrap().unwrap();
        Some((name.to_string(), asked.cpus.map(NonZeroU32::get), asked.memory))
    });
    let mut asked: Vec<_> = asked.collect();
    asked.sort_unstable();
    let mega = Some(1 << 20);
    let row = |name: &str, cpus, memory| (name.to_owned(), cpus, memory);
    assert_eq!(
        asked,
        [
            row("add", Some(1), None),
            row("add", Some(2), None),
            row("mul", Some(3), mega),
            row("mul", Some(3), mega)
        ]
    );
}

#[test]
fn a_node_has_the_labels_that_its_computations_have_in_common() {
    let sweep = |levels: &str, body: &str| {
        format!("Inputs: x, y\nSWEEP(:factors/00-op {levels} :columns '00 value' :body {body})")
    };
    // One output and two inputs are known without a slice, since all levels have the same.
    let lab = over(BOTH).one_text(&sweep("'add' 'mul'", "({op} x y)")).commit();
    lab.to_directories().exit(0);
    assert!(lab.path("task/workflow/inputs/00-body/inputs/01-b").is_dir());
    let sym = |lab: &Lab| lab.run("ce-sym", &["--labels"]).exit(0).stdout;
    let text = sym(&lab);
    assert!(text.contains(":body ({op} :a INPUT('x')"), "{text}");
    // With the slices that are printed, it stays as it is.
    let lab = lab.one_text(&text);
    lab.to_directories().exit(0).shows("wrote workflow (4 directories)");
    assert_eq!(sym(&lab), text);
    // A text is converted although one of them does not exist yet.
    lab.one_text(&sweep("'add' 'no'", "({op} x y)[00]")).to_directories().exit(0);
}
