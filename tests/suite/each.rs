//! A task that is evaluated for each point over its own inputs: each point is an ordinary job.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Lab, files};
use crate::program::Ran;

const TASK: &str = "Inputs: 'n', 'm'\n(add (mul INPUT('n') INPUT('n'))[0] INPUT('m'))[0]";

fn lab() -> Lab {
    Lab::task(TASK).commit()
}

/// Runs with these arguments, and the storage.
fn each<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    lab.run("ce-run", &[&["--no-sync"], arguments, &["../storage"]].concat())
}

/// Returns the output of `ce-run -q`: the points, each with the contents of its outputs.
fn quiet(ran: &Ran<'_>, lab: &Lab) -> String {
    let line = |line: &str| {
        let (point, path) = line.split_once('\t').unwrap();
        format!("{point}: {}", lab.stored(path))
    };
    ran.stdout.lines().map(line).collect()
}

/// The records of jobs by their names, without what says when and where they were made.
fn jobs(lab: &Lab) -> Vec<(String, Value)> {
    let mut jobs = Vec::new();
    for (name, contents) in files(&lab.path("storage")) {
        if name.starts_with("t_") && name.contains("/record/") {
            let mut record: Value = serde_json::from_slice(&contents).unwrap();
            record.as_object_mut().unwrap().remove("recorded");
            jobs.push((name, record));
        }
    }
    jobs
}

#[test]
fn each_point_is_a_job_as_if_its_texts_were_given() {
    let (together, apart) = (lab(), lab());
    let ran = each(&together, &["--each", "n=3,4", "--each", "m=1,2"]).exit(0);
    ran.says("4 jobs, one for each point: 4 stored").says("6 calls: 6 computed");
    let called = together.called();
    assert_eq!(called.iter().filter(|name| *name == "mul").count(), 2, "{called:?}");
    for (n, m) in [(3, 1), (3, 2), (4, 1), (4, 2)] {
        let (n, m) = (format!("n={n}"), format!("m={m}"));
        each(&apart, &["-p", &n, "-p", &m]).exit(0);
    }
    assert_eq!(together.results(), apart.results());
    assert_eq!(jobs(&together), jobs(&apart));
    each(&together, &["-q", "-p", "n=3", "-p", "m=1"]).exit(0).called(vec![]);
    together.run("ce", &["verify", "../storage"]).exit(0);
}

#[test]
fn the_last_input_varies_fastest_and_the_outputs_have_their_points() {
    let lab = lab();
    let ran = each(&lab, &["--each", "m=1,2", "--each", "n=3, 4"]).exit(0);
    let (_, outputs) = ran.stdout.split_once("Task outputs are:\n").unwrap();
    let points = outputs.lines().map(|line| line.split_once(": ").unwrap().0.trim());
    assert_eq!(points.collect::<Vec<_>>(), ["m=1 n=3", "m=1 n=4", "m=2 n=3", "m=2 n=4"]);
    let ran = each(&lab, &["-q", "--each", "m=1,2", "--each", "n=3,4"]).exit(0);
    assert_eq!(quiet(&ran, &lab), "m=1 n=3: 10\nm=1 n=4: 17\nm=2 n=3: 11\nm=2 n=4: 18\n");
}

#[test]
fn an_input_that_is_not_ranged_over_is_given_as_ever_or_has_its_default() {
    let lab = lab();
    for given in [&["../storage", "../data/m"][..], &["../storage", "m=../data/m"]] {
        let ran = lab.run("ce-run", &[&["-q", "--each", "n=3,4"], given].concat()).exit(0);
        assert_eq!(quiet(&ran, &lab), "n=3: 14\nn=4: 21\n");
    }
    lab.git("task", &["config", "compeval.storage", "../storage"]);
    let ran = lab.run("ce-run", &["-q", "--each", "n=3,4", "../data/m"]).exit(0);
    assert_eq!(quiet(&ran, &lab), "n=3: 14\nn=4: 21\n");
    lab.run("ce-run", &["--each", "n=3"]).exit(2).says("takes 1 input (m), and 0 are given");
    let lab = lab.file("defaults/n", "5\n").commit_again();
    let ran = each(&lab, &["-q", "--each", "m=1,2"]).exit(0);
    assert_eq!(quiet(&ran, &lab), "m=1: 26\nm=2: 27\n");
    let ran = each(&lab, &["-q", "--each", "n=3,4", "-p", "m=1"]).exit(0);
    assert_eq!(quiet(&ran, &lab), "n=3: 10\nn=4: 17\n");
}

#[test]
fn a_second_run_finds_the_jobs_and_looks_at_no_calls() {
    let lab = lab();
    let first = each(&lab, &["-q", "--each", "n=3,4", "-p", "m=1"]).exit(0);
    let results = lab.results();
    let between = results.keys().filter(|name| name.starts_with("c_mul/"));
    between.for_each(|name| fs::remove_file(lab.path("storage").join(name)).unwrap());
    lab.called();
    let again = each(&lab, &["-q", "--each", "n=3,4", "-p", "m=1"]).exit(0).called(vec![]);
    assert_eq!(again.stdout, first.stdout);
    each(&lab, &["-q", "--each", "n=3,4,5", "-p", "m=1"])
        .exit(0)
        .called(vec!["mul", "mul", "mul", "add"]);
}

#[test]
fn a_point_that_fails_blocks_no_other_one() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(divmod INPUT('x') INPUT('y'))[0, 1]").commit();
    let ran = each(&lab, &["-p", "x=7", "--each", "y=2,0,5"]).exit(1);
    let ran = ran.says("3 jobs, one for each point: 2 stored");
    assert_eq!(ran.stdout.matches(" MISSING\n").count(), 2, "{}", ran.stdout);
    let ran = each(&lab, &["-q", "-p", "x=7", "--each", "y=2,0,5"]).exit(1);
    assert_eq!(quiet(&ran, &lab), "y=2: 3\ny=2: 1\ny=5: 1\ny=5: 2\n");
    // The last event has the outputs and the job of each point.
    let ran = each(&lab, &["--json", "-p", "x=7", "--each", "y=2,0"]).exit(1);
    let end: Value = serde_json::from_str(ran.lines().last().unwrap()).unwrap();
    assert_eq!((&end["outputs"], &end["job"]), (&json!([]), &Value::Null));
    let points = end["points"].as_array().unwrap();
    assert_eq!(points[0]["point"], json!({"y": "2"}));
    assert_eq!(points[0]["outputs"][0]["there"], true);
    let job = points[0]["job"][0].as_str().unwrap();
    assert_eq!(lab.stored(job), "3\n");
    let [there, job] = [&points[1]["outputs"][0]["there"], &points[1]["job"]];
    assert_eq!((there, job), (&json!(false), &Value::Null));
}

#[test]
fn a_dry_run_writes_nothing() {
    let lab = lab();
    each(&lab, &["--each", "n=3", "-p", "m=1"]).exit(0);
    let ran = lab.unchanged(|| each(&lab, &["-n", "--each", "n=3,4", "-p", "m=1"]).exit(3));
    assert!(ran.stdout.contains("    n=3: ../storage/c_add/"), "{}", ran.stdout);
    ran.says("4 calls: 2 reused, 2 missing").called(vec!["mul", "add"]);
    lab.unchanged(|| each(&lab, &["-n", "--each", "n=3", "-p", "m=1"]).exit(0));
}

#[test]
fn names_in_values_stand_for_texts_of_the_point() {
    let lab =
        Lab::task("Inputs: 'm', 'n'\n(add OWN('data/{n}') (mul INPUT('m') INPUT('n'))[0])[0]")
            .file("data/3", "30\n")
            .file("data/4", "40\n")
            .commit();
    let ran = each(&lab, &["-q", "--each", "n=3,4", "-p", "m=2"]).exit(0);
    assert_eq!(quiet(&ran, &lab), "n=3: 36\nn=4: 48\n");
    // The other input has another number than before.
    let ran = each(&lab, &["-q", "--each", "m=1,2", "-p", "n=4"]).exit(0);
    assert_eq!(quiet(&ran, &lab), "m=1: 44\nm=2: 48\n");
    let ran = each(&lab, &["--each", "n=3,5", "-p", "m=2"]).exit(1);
    ran.says("data/5");
    let jobs = jobs(&lab);
    let apart =
        Lab::task("Inputs: 'm', 'n'\n(add OWN('data/{n}') (mul INPUT('m') INPUT('n'))[0])[0]")
            .file("data/3", "30\n")
            .file("data/4", "40\n")
            .commit();
    for (n, m) in [("n=3", "m=2"), ("n=4", "m=2"), ("n=4", "m=1")] {
        each(&apart, &["-p", n, "-p", m]).exit(0);
    }
    assert_eq!(jobs, self::jobs(&apart));
}

#[test]
fn uncommitted_points_are_not_stored_as_jobs_and_one_warning_says_so() {
    let lab = lab().file("computations/mul/more", "");
    each(&lab, &["--each", "n=3,4", "-p", "m=1"]).exit(2).says("uncommitted");
    let ran = each(&lab, &["--dirty", "--each", "n=3,4", "-p", "m=1"]).exit(0);
    let ran = ran.says("2 jobs, one for each point: 0 stored");
    assert_eq!(
        ran.stderr.matches("the job's outputs were not stored").count(),
        1,
        "{}",
        ran.stderr
    );
    assert!(jobs(&lab).is_empty());
}

#[test]
fn faults_of_points_are_reported() {
    let lab = lab();
    let wrong = |arguments: &[&str], what: &str| {
        each(&lab, arguments).exit(2).says(what);
    };
    wrong(
        &["--each", "nn=1", "-p", "m=1"],
        "the task task takes no input nn\n  try: did you mean n?",
    );
    wrong(&["--each", "n=1", "-p", "n=1", "-p", "m=1"], "the input n is given, and --each");
    wrong(&["--each", "n=1", "n=../data/n", "-p", "m=1"], "the input n is given, and --each");
    wrong(&["--each", "n=1", "--each", "n=2", "-p", "m=1"], "the points have the input n twice");
    wrong(&["--each", "n"], "write NAME=TEXT,TEXT,...");
    wrong(&["--each", "n=1,,2"], "text 2 is empty; write one, or '' in quotes for the empty text");
    wrong(&["--each", "n=1,2, 1"], "\"1\" occurs twice; write it once");
    wrong(&["--each", "n=1\n2"], "text 1 cannot be used: it is not one line");
    wrong(&["--points", "../data/none"], "cannot read the points in ../data/none");
    let sheet = |text: &str| fs::write(lab.path("data/points"), text).unwrap();
    sheet("n,m\n");
    wrong(&["--points", "../data/points"], "there are no points in ../data/points");
    sheet("n,m\n1\n");
    wrong(&["--points", "../data/points"], "line 2: the row has 1 value, and the header 2");
    sheet("n,k\n1,2\n");
    wrong(&["--points", "../data/points", "-p", "m=1"], "takes no input k");
    sheet("{\"n\": 3, \"m\": []}\n{\"n\": null, \"M\": 1}\n");
    wrong(
        &["--points", "../data/points"],
        "ce-run: the points in ../data/points cannot be used: object 1: key \"m\": the list is empty; \
         object 2: key \"n\": the value is null; object 2: key \"M\": the task has no such input\n  \
         try: write a value, or leave the key out: then the input has its default\n",
    );
    sheet("[{\"n\": 3, \"m\": 1}\n{\"n\": 3 \"m\": 1}]\n");
    wrong(
        &["--points", "../data/points"],
        "object 2: line 2: expected `,` or `}`\n  try: write objects such as {\"size\": [1, 2]}, \
         all in one array or one after the other\n",
    );
    let many: Vec<String> = (0..4000).map(|number| number.to_string()).collect();
    let many = many.join(",");
    wrong(
        &["--each", &format!("n={many}"), "--each", &format!("m={many}")],
        "more than 10000000 points",
    );
    assert!(!lab.path("storage").exists(), "nothing was evaluated");
    each(&lab, &["--each", "n=1,1.0", "-p", "m=1"]).says("warning: n: 1 and 1.0 are one number");
}

#[test]
fn a_sweep_of_the_task_is_evaluated_for_each_point() {
    let lab = Lab::task("Inputs: 'n'\n(add INPUT('n') INPUT('n'))[0]")
        .without("workflow")
        .node("", "sweep", "")
        .file("workflow/factors/00-k", "2\n3\n")
        .call("inputs/00-body/", "mul", &["n", "k"])
        .commit();
    let ran = each(&lab, &["-q", "--each", "n=5,7"]).exit(0);
    let table = |n, products: [u32; 2]| {
        format!(
            "n={n}: {{\"k\":2,\"product\":{}}}\n{{\"k\":3,\"product\":{}}}\n",
            products[0], products[1]
        )
    };
    assert_eq!(quiet(&ran, &lab), table(5, [10, 15]) + &table(7, [14, 21]));
    lab.called();
    each(&lab, &["-p", "n=7"]).exit(0).called(vec![]);
    each(&lab, &["--each", "k=7", "-p", "n=1"]).exit(2).says("takes no input k");
}

#[test]
fn a_point_without_its_member_fails_and_others_are_stored() {
    let lab = Lab::task("Inputs: 'n'\nMEMBER('{n}' (parts)[0])")
        .computation("parts", "", "all/", "echo 1 >\"$1/a\"")
        .commit();
    let ran = each(&lab, &["--each", "n=a,b"]).exit(1);
    let ran = ran.says("b").says("2 jobs, one for each point: 1 stored");
    assert!(ran.stdout.contains("    n=a: ../storage/c_parts/"), "{}", ran.stdout);
}

#[test]
fn points_come_from_files_of_any_format_and_from_the_standard_input() {
    let lab = lab()
        .data("n.json", "{\"n\": [3, 4]}")
        .data("array.json", "[\n{\"n\": \"3\", \"m\": 1}\n{\"n\": [4, 5], \"m\": [1, 2]},\n]\n")
        .data("m.csv", "m\n1\n2\n")
        .data("both.tsv", "n\tm\n3\t1\n4\t2\n")
        .data("more.csv", "m,n\n2,3\n1,3\n");
    for (given, points) in [
        (
            // Files with the same columns are a union.
            &["--points", "../data/array.json", "--points", "../data/more.csv"][..],
            "n=3 m=1: 10\nn=4 m=1: 17\nn=4 m=2: 18\nn=5 m=1: 26\nn=5 m=2: 27\nn=3 m=2: 11\n",
        ),
        (&["--points", "../data/both.tsv"][..], "n=3 m=1: 10\nn=4 m=2: 18\n"),
        (
            &["--points", "../data/array.json"],
            "n=3 m=1: 10\nn=4 m=1: 17\nn=4 m=2: 18\nn=5 m=1: 26\nn=5 m=2: 27\n",
        ),
        (
            &["--points", "../data/n.json", "--points", "../data/m.csv"],
            "n=3 m=1: 10\nn=3 m=2: 11\nn=4 m=1: 17\nn=4 m=2: 18\n",
        ),
        (
            &["--each", "n=3,4", "--points", "../data/m.csv"],
            "m=1 n=3: 10\nm=1 n=4: 17\nm=2 n=3: 11\nm=2 n=4: 18\n",
        ),
    ] {
        let ran = each(&lab, &[&["-q"], given].concat()).exit(0);
        assert_eq!(quiet(&ran, &lab), points, "{given:?}");
    }
    let mut command = lab.command("ce-run");
    command.args(["--no-sync", "-q", "--points", "-", "../storage"]);
    command.stdin(fs::File::open(lab.path("data/both.tsv")).unwrap());
    let ran = lab.finish(&mut command).exit(0);
    assert_eq!(quiet(&ran, &lab), "n=3 m=1: 10\nn=4 m=2: 18\n");
    let table = ["table", "--csv", "--points", "../data/n.json", "--each", "m=2", "../storage"];
    let table = lab.run("ce", &table).exit(0);
    assert!(table.stdout.contains("\n3,2,") && table.stdout.contains("\n4,2,"), "{}", table.stdout);
    let twice = ["--points", "../data/n.json", "--points", "../data/both.tsv"];
    each(&lab, &twice).exit(2).says("the points have the input n twice");
}

#[test]
fn a_key_that_is_missing_is_the_default_of_its_input() {
    const TASK: &str =
        "Inputs: n, m = '2', whole = OWN('data/lines')\n\n(add (mul n n) (add m whole))\n";
    let lab = Lab::task("Inputs: 'n'\n(add INPUT('n') INPUT('n'))[0]")
        .without("workflow")
        .without("inputs")
        .file("workflow.ce", TASK)
        .file("data/lines", "1\n")
        .data("points.json", "[{\"n\": 3} {\"n\": 4, \"m\": 7, \"whole\": 5}]")
        .commit();
    let ran = each(&lab, &["-q", "--points", "../data/points.json"]).exit(0);
    assert_eq!(quiet(&ran, &lab), "n=3 m=2 whole=1: 12\nn=4 m=7 whole=5: 28\n");
    // It is the job of the default itself.
    lab.called();
    each(&lab, &["-p", "n=3"]).exit(0).called(vec![]);
    let lab = lab.file("data/lines", "1\n2\n").commit_again();
    each(&lab, &["--points", "../data/points.json"]).exit(2).called(vec![]).says(
        "ce-run: the points in ../data/points.json cannot be used: object 1: key \"whole\": the key is missing, \
         and the default of the input is not one line of text\n  try: write the key into this object, too\n",
    );
}
