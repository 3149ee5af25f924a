//! Inputs with choices: the text of an input chooses a computation, or the points of a sweep.

use std::fs;

use crate::lab::{Lab, files};

/// Two programs, one of them for a run, and one that reads what it wrote.
const PROGRAMS: &str = "align-bwa: reads -> bam\n    echo bwa $(cat $in_reads) > $out_bam\n\n\
     align-star: reads -> bam\n    echo star $(cat $in_reads) > $out_bam\n\n\
     count: bam -> n\n    cat $in_bam > $out_n\n\n";

fn lab(inputs: &str, workflow: &str) -> Lab {
    Lab::empty().one_text(&format!("Inputs: reads, {inputs}\n\n{PROGRAMS}{workflow}\n")).commit()
}

#[track_caller]
fn value(lab: &Lab, options: &[&str]) -> String {
    let all = [&["--no-sync", "-q", "-p", "reads=r"][..], options, &["../storage"]].concat();
    let ran = lab.run("ce-run", &all).exit(0);
    lab.stored(ran.stdout.trim_end())
}

#[track_caller]
fn executed(lab: &Lab, aligners: &[&str]) {
    let stored = files(&lab.path("storage"));
    for aligner in ["bwa", "star"] {
        let is_there = stored.keys().any(|path| path.starts_with(&format!("c_align-{aligner}/")));
        assert_eq!(is_there, aligners.contains(&aligner), "{aligner}");
    }
}

#[test]
fn an_input_chooses_the_computation_and_only_that_one_is_executed() {
    let lab = lab("aligner = 'bwa' or 'star'", "(count (align-{aligner} reads))");
    assert_eq!(value(&lab, &["-p", "aligner=star"]), "star r\n");
    executed(&lab, &["star"]);
    assert_eq!(value(&lab, &[]), "bwa r\n");
    executed(&lab, &["bwa", "star"]);
    let all = ["--no-sync", "--each", "aligner=bwa,star", "-p", "reads=r", "../storage"];
    lab.run("ce-run", &all).exit(0).says("2 jobs, one for each point").says("4 calls: 4 reused");
    // What is not the default belongs to the task, too.
    lab.run("ce", &["gc", "../storage"]).exit(0);
    executed(&lab, &["bwa", "star"]);
    lab.run("ce", &["check"]).exit(0).shows("2 inputs, 2 calls, 3 computations");
    lab.run("ce", &["viz"]).exit(0).shows("align-{aligner}");
    let explain = ["explain", "-p", "reads=q", "-p", "aligner=star", "../storage"];
    let explained = lab.run("ce", &explain).shows("align-star").stdout.clone();
    assert!(!explained.contains("align-bwa"), "{explained}");
}

#[test]
fn another_text_is_an_error_with_the_choices() {
    let lab = lab("aligner = 'bwa' or 'star'", "(count (align-{aligner} reads))");
    let told = "the input aligner cannot be \"stor\"";
    let choices = "did you mean \"star\"? the choices are \"bwa\", \"star\"";
    for given in [["-p", "aligner=stor"], ["--each", "aligner=bwa,stor"]] {
        let all = [&["--no-sync", "-p", "reads=r"][..], &given, &["../storage"]].concat();
        lab.run("ce-run", &all).exit(2).says(told).says(choices);
    }
    let points = lab.file("s.csv", "aligner,reads\nstor,r\n");
    let ran = points.run("ce-run", &["--no-sync", "--points", "s.csv", "../storage"]);
    ran.exit(2).says(told);
    fs::write(points.path("data/binary"), b"\xff\n").unwrap();
    let given = ["--no-sync", "../storage", "-p", "reads=r", "aligner=../data/binary"];
    points.run("ce-run", &given).exit(2).says("the input aligner cannot be");
}

#[test]
fn a_condition_reads_the_choice() {
    let sweep =
        "SWEEP((count (align-{tool} reads)) :over tool 'bwa' 'star' :where 'tool == aligner')";
    let lab = lab("aligner = 'bwa' or 'star'", sweep);
    assert_eq!(value(&lab, &["-p", "aligner=star"]), "{\"tool\":\"star\",\"n\":\"star r\"}\n");
    executed(&lab, &["star"]);
    assert_eq!(value(&lab, &[]), "{\"tool\":\"bwa\",\"n\":\"bwa r\"}\n");
    let each = ["--no-sync", "--each", "aligner=bwa,star", "-p", "reads=r", "../storage"];
    lab.run("ce-run", &each).exit(2).says("a condition (:where) reads it").says("-p aligner=VALUE");
    let other = super::choices::lab("aligner = 'bwa'", sweep);
    let told = "\"aligner\" is an input of the task: a condition can read those that have choices";
    other.run("ce", &["check"]).exit(2).says(told).says("Inputs: aligner = 'a' or 'b'");
}

#[test]
fn a_condition_is_checked_for_each_choice() {
    let sweep = "SWEEP((count '{s}') :over s '1' '2' :where 's / m > 0')";
    let zero = lab("m = '1' or '0'", sweep);
    for command in [&["check"][..], &["run", "--no-sync", "-p", "reads=r", "../storage"]] {
        zero.run("ce", command).exit(2).says("a division by zero, at s=1");
    }
    let columns = "SWEEP((count s) OWN('p.csv') :names 's' :where 'm == 5')";
    let columns = lab("m = '2' or '1'", columns).file("p.csv", "s,m\n1,5\n2,2\n").commit_again();
    let told = "the points have a column \"m\", and the task has an input of this name";
    let ran = columns.run("ce-run", &["--no-sync", "-p", "reads=r", "../storage"]);
    assert!(ran.status.code() != Some(0));
    ran.says(told);
    let empty =
        lab("tool = 'bwa' or 'no'", "SWEEP((count '{s}') :over s 'bwa' 'star' :where 's == tool')");
    empty.run("ce", &["check"]).exit(0).says("with tool=no, no point is left: the table is empty");
    let many: Vec<String> = (0..40).map(|number| format!("'{number}'")).collect();
    let many = format!("a = {0}, b = {0}", many.join(" or "));
    let many = lab(&many, "SWEEP((count '{s}') :over s '1' '2' :where 's < a + b')");
    many.run("ce", &["check"]).exit(2).says("1600 combinations of choices, and 1000 are the most");
}

#[test]
fn a_call_is_asked_for_by_the_name_of_the_chosen_computation() {
    let lab = lab("aligner = 'bwa' or 'star'", "(count (align-{aligner} reads))");
    let only = |name: &str| {
        let all =
            ["--no-sync", "--only", name, "-p", "aligner=star", "-p", "reads=r", "../storage"];
        lab.run("ce-run", &all)
    };
    only("align-star").exit(0);
    executed(&lab, &["star"]);
    only("align-bwa").exit(2).says("no call \"align-bwa\"").says("did you mean align-star?");
    only("align-{aligner}").exit(2).says("there are TASK, align-bwa, align-star");
    let printed = lab.run("ce-sym", &[]).exit(0).stdout.clone();
    assert!(printed.starts_with("Inputs: 'reads', 'aligner' = 'bwa' or 'star'\n"), "{printed}");
}

#[test]
fn files_of_all_choices_are_checked() {
    let lab =
        lab("kind = 'a' or 'b'", "(count OWN('{kind}.tsv'))").file("a.tsv", "1\n").commit_again();
    lab.run("ce", &["check"]).exit(2).says("b.tsv");
}

#[test]
fn choices_that_are_numbers_are_compared_as_numbers() {
    let sweep = "SWEEP((count '{size}') :over size '1' '5' '10' :where 'size <= most')";
    let lab = lab("most = '5' or '10' or '1'", sweep);
    let rows = |options: &[&str]| value(&lab, options).lines().count();
    assert_eq!([rows(&[]), rows(&["-p", "most=10"]), rows(&["-p", "most=1"])], [2, 3, 1]);
}

#[test]
fn every_choice_must_lead_to_a_computation_with_the_same_inputs_and_outputs() {
    let bad = lab("aligner = 'bwa' or 'sta'", "(count (align-{aligner} reads))");
    let told = "align-sta";
    bad.run("ce", &["check"])
        .exit(2)
        .says(told)
        .says("did you mean \"align-star\"? else make it, or remove what leads to it: a choice");
    let text = format!(
        "Inputs: reads, a = 'bwa' or 'star' or 'odd'\n\n{PROGRAMS}align-odd: x -> y\n    cat $in_x > $out_y\n\n(count (align-{{a}} reads))\n"
    );
    Lab::empty().one_text(&text).commit().run("ce", &["check"]).exit(2).says("align-odd");
    let many: Vec<String> = (0..40).map(|number| format!("'{number}'")).collect();
    let many = format!("a = {0}, b = {0}", many.join(" or "));
    let many = lab(&many, "(count (align-{a}-{b} reads))");
    many.run("ce", &["check"]).exit(2).says("has 1600 choices, and 1000 are the most");
    let bound =
        lab("tool = 'bwa' or 'star'", "SWEEP((align-{tool} reads) :over tool 'bwa' 'star')");
    bound.run("ce", &["check"]).exit(2).says("\"tool\" is an input of the task");
}

#[test]
fn choices_have_a_directory_form_and_an_empty_text() {
    let lab =
        lab("aligner = 'bwa' or 'star', note = '' or 'x y'", "(count (align-{aligner} reads))");
    lab.to_directories().exit(0);
    let file = |name: &str| fs::read_to_string(lab.path(name)).unwrap();
    assert_eq!(file("task/choices/aligner"), "bwa\nstar\n");
    assert_eq!(file("task/choices/note"), "''\nx y\n");
    assert!(!lab.path("task/defaults").exists());
    let lab = lab.commit_again();
    assert_eq!(value(&lab, &["-p", "aligner=star"]), "star r\n");
    lab.run("ce", &["convert", "--to", "text"]).exit(0);
    let text = fs::read_to_string(lab.path("task/workflow.ce")).unwrap();
    let line = "Inputs: reads, aligner = 'bwa' or 'star', note = '' or 'x y'\n";
    assert!(text.starts_with(line), "{text}");
    assert!(!lab.path("task/choices").exists());
}
