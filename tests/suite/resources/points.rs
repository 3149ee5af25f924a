//! Requests of resources by calls in sweeps: amounts that depend on the point.

use super::amounts::asked;
use crate::lab::Lab;

/// A sweep with these files whose body is a call that reads a name, and asks for something.
fn sweep(files: &[(&str, &str)], reads: &str, asks: &str) -> Lab {
    let lab = Lab::task("(add INPUT('x') INPUT('x'))")
        .without("workflow")
        .file("inputs", "")
        .computation("run", "n", "seconds", r#"cat "$1" >"$2""#)
        .node("", "sweep", "")
        .call("inputs/00-body/", "run", &[reads])
        .file("workflow/inputs/00-body/resources", asks);
    let mut lab = files.iter().fold(lab, |lab, (name, text)| lab.file(name, text));
    lab.inputs.clear();
    lab.commit()
}

#[test]
fn a_factor_is_the_number_of_cpus() {
    let lab = sweep(&[("workflow/factors/00-threads", "1\n2\n4\n")], "threads", "cpus {threads}\n");
    lab.ce_run(&["-j2"]).exit(2).says("run (body): it asks for 4 cpus, and only 2").called(vec![]);
    lab.ce_run(&["-j4"]).exit(0).says("3 calls: 3 computed");
    assert_eq!(asked(&lab)["run"], ["cpus 1", "cpus 2", "cpus 4"]);
}

#[test]
fn resources_of_left_out_points_need_not_fit() {
    let lab =
        sweep(&[("workflow/factors/00-threads", "64\n1\n2\n")], "threads", "cpus {threads}\n");
    lab.ce_run(&["-j2", "--where", "threads=2"]).exit(0).called(vec!["run"]);
    lab.ce_run(&["-j1", "--where", "threads=2"]).exit(0).called(vec![]);
    lab.ce_run(&["-j1", "--where", "threads=64"]).exit(2).says("it asks for 64 cpus");
    // A call that needs a table of all points is left out, too.
    let lab = lab
        .rename("workflow", "body")
        .computation("sum", "table", "sum", r#"cat "$1" >"$2""#)
        .node("", "computation", "sum")
        .file("resources", "sum cpus 3\n");
    std::fs::create_dir_all(lab.path("task/workflow/inputs")).unwrap();
    std::fs::rename(lab.path("task/body"), lab.path("task/workflow/inputs/00-table")).unwrap();
    let lab = lab.commit_again();
    lab.ce_run(&["-j2", "--where", "threads=1"]).exit(0).called(vec!["run"]);
    lab.ce_run(&["-j64"]).exit(0).called(vec!["run", "run", "sum"]);
    lab.ce_run(&["-j1"]).exit(0).called(vec![]);
}

#[test]
fn a_column_used_only_by_resources_does_not_change_calls() {
    let sheet = "n\tcpus\n1\t1\n2\t3\n2\t2\n";
    let computed = ("workflow/inputs/01-points/kind", "file\n");
    for files in [
        &[("workflow/factors/00-sheet.tsv", sheet)][..],
        &[("sheet.tsv", sheet), computed, ("workflow/inputs/01-points/value", "sheet.tsv\n")],
        &[
            ("sheet.tsv", sheet),
            computed,
            ("workflow/inputs/01-points/value", "sheet.tsv\n"),
            ("workflow/names", "n\ncpus\n"),
        ],
    ] {
        let lab = sweep(files, "n", "cpus {cpus}\n");
        lab.ce_run(&["-j4"]).exit(0).says("2 calls: 2 computed");
        // Two points are one call, which gets the maximum.
        assert_eq!(asked(&lab)["run"], ["cpus 1", "cpus 3"]);
        lab.called();
        let path = if files.len() == 1 { "workflow/factors/00-sheet.tsv" } else { "sheet.tsv" };
        let lab = lab.file(path, sheet.replace("\t3", "\t4")).file("computations/readme", "");
        lab.ce_run(&["-j4", "--dirty"]).exit(0).called(vec![]);
    }
}

#[test]
fn an_invalid_amount_is_an_error_of_its_call() {
    let sheet = "n\tcpus\n1\t1\n2\tmany\n3\t9\n";
    let computed = [
        ("sheet.tsv", sheet),
        ("workflow/inputs/01-points/kind", "file\n"),
        ("workflow/inputs/01-points/value", "sheet.tsv\n"),
    ];
    let lab = sweep(&computed, "n", "cpus {cpus}\n");
    let ran =
        lab.ce_run(&["-j4"]).exit(1).says("body/resources:1: \"many\" is not a number of cpus");
    // Amounts that are known only later cannot be reported before.
    ran.says("it asks for 9 cpus, and only 4 may be used").called(vec!["run"]);
    let lab = sweep(&computed, "n", "memory {memory}G\n");
    lab.ce_run(&[]).exit(2).says("the points have no column \"memory\"").called(vec![]);
}

#[test]
fn inputs_given_by_each_set_amounts_of_resources() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') (mul INPUT('x') INPUT('x'))[0])[0]")
        .file("resources", "add cpus {x}\nmul cpus {y}\n");
    let mut lab = lab.commit();
    lab.inputs.clear();
    let run = |jobs: &str| lab.ce_run(&[jobs, "--each", "x=1,2", "--each", "y=1,3"]);
    run("-j2").exit(2).says("mul").says("asks for 3 cpus").called(vec![]);
    run("-j3").exit(0).called(vec!["add", "add", "mul", "mul"]);
    let asked = asked(&lab);
    assert_eq!(
        (&asked["add"][..], &asked["mul"][..]),
        (
            &["cpus 1", "cpus 2"].map(str::to_owned)[..],
            &["cpus 3", "cpus 3"].map(str::to_owned)[..]
        )
    );
}

/// A task whose workflow is this text.
fn text(workflow: &str, sheet: &str) -> Lab {
    let lab = Lab::empty()
        .computation("run", "n", "seconds", r#"cat "$1" >"$2""#)
        .file("sheet.tsv", sheet)
        .file("workflow.ce", workflow);
    lab.commit()
}

#[test]
fn a_name_used_only_by_resources_of_a_text_does_not_change_calls() {
    let (own, rows) =
        ("OWN('sheet.tsv') :names 'n' 'cpus'", ":over ('n' 'cpus') (1 1) (2 3) (2 2)");
    for points in [own, rows] {
        let workflow = format!("SWEEP((run n :resources 'cpus {{cpus}}') {points})\n");
        let lab = text(&workflow, "n\tcpus\n1\t1\n2\t3\n2\t2\n");
        lab.ce_run(&["-j4"]).exit(0).says("2 calls: 2 computed").called(vec!["run", "run"]);
        assert_eq!(asked(&lab)["run"], ["cpus 1", "cpus 3"]);
        let lab = lab
            .file("sheet.tsv", "n\tcpus\n1\t1\n2\t4\n2\t2\n")
            .file("workflow.ce", workflow.replace("(2 3)", "(2 4)"));
        lab.ce_run(&["-j4", "--dirty"]).exit(0).called(vec![]);
    }
}
