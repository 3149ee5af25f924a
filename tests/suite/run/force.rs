//! Calls that are computed again although they are there.

use std::fs;

use crate::lab::Lab;

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('y'))[0]";

/// A laboratory whose `mul` counts how often it was executed.
fn lab() -> Lab {
    let script = r#"cat ../../../../../../count >"$3""#;
    let lab = Lab::task(TASK).computation("mul", "a b", "product", script).commit();
    fs::write(lab.path("count"), "1\n").unwrap();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["add", "mul"]);
    assert_eq!(lab.output(), "6\n");
    fs::write(lab.path("count"), "2\n").unwrap();
    lab
}

/// The only output of `mul`, as its name in the storage.
fn product(lab: &Lab) -> String {
    lab.results().into_keys().find(|name| name.starts_with("c_mul/")).unwrap()
}

#[test]
fn a_call_is_computed_again_and_its_old_outputs_go_aside() {
    let lab = lab();
    let product = product(&lab);
    let (_, inputs) = product.rsplit_once('/').unwrap();
    let short = product.replace("/00/", "/");
    for (number, name) in
        [format!("../storage/{product}"), product.clone(), short].iter().enumerate()
    {
        fs::write(lab.path("count"), format!("{}\n", number + 2)).unwrap();
        // The call that reads it is another one by now, and computed as well.
        lab.ce_run(&["--no-sync", "--force", name]).exit(0).called(vec!["add", "mul"]);
        assert_eq!(lab.stored(&product), format!("{}\n", number + 2));
        assert_eq!(lab.output(), format!("{}\n", number + 7));
    }
    let aside =
        lab.storage().into_iter().filter(|name| name.contains("/aside/") && name.contains(inputs));
    let mut aside: Vec<String> =
        aside.filter(|name| name.ends_with("/00")).map(|name| lab.stored(&name)).collect();
    aside.sort();
    assert_eq!(aside, ["1\n", "2\n", "3\n"]);
    lab.ce_run(&["--no-sync"]).exit(0).called(vec![]);
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
}

#[test]
fn a_failing_forced_call_leaves_the_old_outputs() {
    let lab = lab();
    let product = product(&lab);
    fs::remove_file(lab.path("count")).unwrap();
    lab.ce_run(&["--no-sync", "--force", &product]).exit(1);
    assert_eq!(lab.stored(&product), "1\n");
    lab.called();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec![]);
}

#[test]
fn all_calls_of_a_computation_are_computed_again() {
    let lab = Lab::task("Inputs: 'x'\n(add (mul INPUT('x') INPUT('x'))[0] INPUT('x'))[0]").commit();
    let each = ["--each", "x=3,4", "../storage"];
    let again = |options: &[&str]| lab.run("ce-run", &[options, &each].concat());
    again(&[]).exit(0).called(vec!["add", "add", "mul", "mul"]);
    again(&["--force", "mul"])
        .exit(0)
        .called(vec!["mul", "mul"])
        .says("4 calls: 2 reused, 2 computed");
    again(&["--force", "mul", "--where", "x=4"]).exit(0).called(vec!["mul"]);
    again(&["--force", "mul", "--force", "add", "-q"])
        .exit(0)
        .called(vec!["add", "add", "mul", "mul"]);
    again(&["--force", "add", "--only", "mul"])
        .exit(0)
        .called(vec![])
        .says("warning: --force had no effect: no call of add was executed");
    again(&[]).exit(0).called(vec![]);
}

#[test]
fn a_forced_call_is_neither_taken_over_nor_answered_by_the_job() {
    let lab = lab();
    let product = product(&lab);
    lab.ce_run(&["--no-sync", "-q", "--force", &product]).exit(0).called(vec!["add", "mul"]);
    assert_eq!(lab.output(), "7\n");
}

#[test]
fn an_unknown_call_is_refused_with_similar_names() {
    let lab = lab();
    let job = lab.results().into_keys().find(|name| name.starts_with("t_task/")).unwrap();
    for (name, hint) in [
        ("nonsense", "there are add, mul"),
        ("c_mul", "did you mean mul?"),
        ("mull", "did you mean mul?"),
    ] {
        let ran = lab.ce_run(&["--force", name]).exit(2).called(vec![]);
        ran.says(&format!("the task has no call {name:?}\n  try: {hint}"));
    }
    for name in [&job, "../data/x"] {
        lab.ce_run(&["--force", name])
            .exit(2)
            .called(vec![])
            .says("is not a call of the storage")
            .says("try: give");
    }
    let digits = "ad48103e4fc7_5d9474c0309b";
    for name in [
        "c_mul/2f/3".to_owned(),
        "c_mul/000000000000/3".to_owned(),
        "c_mul/000000000000/00/3".to_owned(),
        "c_mul/000000000000/".to_owned(),
        format!("c_mul/00000000000g/{digits}"),
        format!("c_mul/000000000000/{digits}_???"),
    ] {
        lab.ce_run(&["--force", &name]).exit(2).called(vec![]).says("is not a call of the storage");
    }
    let other = "c_mul/000000000000/ad48103e4fc7_5d9474c0309b";
    let ran = lab.ce_run(&["--no-sync", "--force", other]).exit(0).called(vec![]);
    ran.says(&format!("warning: --force had no effect: no call {other} was executed"));
    lab.run("ce-run", &["-n", "--force", other, "../storage"]).exit(2);
}
