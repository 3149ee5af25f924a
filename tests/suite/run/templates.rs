//! Names in braces: values of nodes that depend on the texts of inputs.

use std::fs;
use std::thread;

use compeval::load;
use compeval::load::Uncommitted;

use crate::fifo;
use crate::lab::Lab;

/// A task that joins a literal and a file of its own, both found by the text of an input that has a default.
fn lab() -> Lab {
    let lab = lab_of("data/{sample}.fastq", "sheets/{sample}.tsv");
    lab.commit()
}

/// The same with other values, not yet committed.
fn lab_of(literal: &str, file: &str) -> Lab {
    let nodes = format!(":reads FILE('{literal}') :sheet OWN('{file}') :scale INPUT('scale')");
    let text = format!("Inputs: 'sample', 'scale'\n(join {nodes})[0]");
    let lab = Lab::task(&text)
        .computation("join", "reads sheet scale", "all", r#"cat "$1" "$2" "$3" >"$4""#)
        .file("sheets/a.tsv", "sheet of a\n")
        .file("sheets/b.tsv", "sheet of b\n")
        .file("defaults/sample", "a\n")
        .file("defaults/scale", "1\n");
    fs::create_dir_all(lab.path("storage/tinputs")).unwrap();
    fs::create_dir_all(lab.path("storage/data")).unwrap();
    for name in ["a", "b"] {
        fs::write(lab.path(&format!("storage/data/{name}.fastq")), format!("reads of {name}\n"))
            .unwrap();
    }
    lab
}

/// Returns the contents of the task's only output, after a run with these arguments.
#[track_caller]
fn output(lab: &Lab, arguments: &[&str]) -> String {
    let ran = lab.run("ce-run", &[&["-q", "../storage"], arguments].concat()).exit(0);
    fs::read_to_string(lab.path("task").join(ran.stdout.trim_end())).unwrap()
}

const OF_A: &str = "reads of a\nsheet of a\n1\n";
const OF_B: &str = "reads of b\nsheet of b\n1\n";

#[test]
fn a_value_has_the_text_of_an_input() {
    let lab = lab().data("b", "b");
    assert_eq!(output(&lab, &[]), OF_A);
    assert_eq!(output(&lab, &["-p", "sample=b"]), OF_B);
    lab.called();
    assert_eq!(output(&lab, &["sample=../data/b"]), OF_B);
    assert_eq!(lab.called(), [""; 0], "the text is the same without its newline");
    let jobs = lab.storage().into_iter().filter(|name| name.starts_with("t_task/"));
    let jobs = jobs.filter(|name| name.contains("/00/")).count();
    assert_eq!(jobs, 3, "jobs of other inputs are other jobs");
    let tree = lab.run("ce-run", &["-n", "../storage", "-psample=b"]).exit(0);
    tree.shows("reads: FILE('data/b.fastq') ../storage/data/b.fastq ok")
        .shows("OWN('sheets/b.tsv') ../storage/tinputs/");
    let json = lab.run("ce-run", &["-n", "--json", "../storage"]).exit(0);
    json.shows(r#""literals":[{"file":"data/a.fastq","sha1":""#).shows(r#""name":"sheets/a.tsv""#);
    let viz = lab.run("ce-viz", &["../storage", "-psample=b"]).exit(0);
    viz.shows("FILE data/b.fastq").shows("OWN sheets/b.tsv");
}

#[test]
fn without_inputs_a_value_is_as_written() {
    let lab = lab();
    let printed = lab.run("ce-sym", &["--labels"]).exit(0);
    let printed = printed.shows("FILE('data/{sample}.fastq')").shows("OWN('sheets/{sample}.tsv')");
    lab.run("ce-viz", &[])
        .exit(0)
        .shows("FILE data/{sample}.fastq")
        .shows("OWN sheets/{sample}.tsv");
    let checked = lab.run("ce", &["check"]).exit(0);
    assert_eq!(checked.stderr, "", "the input is used");
    let text = printed.stdout;
    let lab = lab.without("defaults").one_text(&text);
    lab.to_directories().exit(0);
    assert_eq!(lab.run("ce-sym", &["--labels"]).exit(0).stdout, text);
}

#[test]
fn braces_that_name_nothing_stay() {
    let lab = lab_of("data/{other}{}.fastq", "sheets/{{sample}}.tsv");
    fs::write(lab.path("storage/data/{other}{}.fastq"), "plain\n").unwrap();
    let lab = lab.file("sheets/{a}.tsv", "braces\n").commit();
    assert_eq!(output(&lab, &[]), "plain\nbraces\n1\n");
    let checked = lab.run("ce", &["check"]).exit(0);
    checked.says(
        "FILE('data/{other}{}.fastq'): {other} is not the name of an input, and stays as it is",
    );
}

#[test]
fn a_text_that_gives_no_value_is_refused() {
    let lab = lab();
    let node = "workflow/inputs/00-reads/value: ";
    let bad = r#""data/{sample}.fastq" cannot have the text of the input sample: "#;
    for (text, told) in [
        ("../x", r#""data/{sample}.fastq" where sample is "../x": "data/../x.fastq" leads out"#),
        ("b\nc", &format!("{bad}it is not one line")),
    ] {
        let ran = lab.run("ce-run", &["../storage", "-p", &format!("sample={text}")]).exit(2);
        let ran = ran.says(&format!("{node}{told}"));
        assert_eq!(ran.stderr.matches(told).count(), 1, "{}", ran.stderr);
    }
    fs::write(lab.path("data/sample"), b"\xff\n").unwrap();
    lab.run("ce-run", &["../storage", "sample=../data/sample"]).exit(2).says(bad);
    let ran = lab.run("ce-run", &["../storage", "-psample=none"]).exit(2);
    ran.says("workflow/inputs/01-sheet/value: ")
        .says(r#""sheets/{sample}.tsv" where sample is "none": the task has no file"#);
    lab.run("ce-run", &["../storage", "sample=../data"])
        .exit(2)
        .says("cannot read the input sample");
    assert!(!lab.path("storage/c_join").exists(), "nothing was executed");
}

#[test]
fn a_literal_that_is_missing_is_reported_with_its_text() {
    let lab = lab().file("sheets/c.tsv", "").commit_again();
    let ran = lab.run("ce-run", &["../storage", "-psample=c"]).exit(3);
    ran.shows("FILE('data/c.fastq') ../storage/data/c.fastq MISSING!!!");
    output(&lab, &[]);
    let explained = lab.run("ce", &["explain", "../storage", "-psample=c"]).exit(3);
    explained.shows("data/c.fastq is not in the storage");
}

#[test]
fn a_named_file_is_read_as_committed() {
    let lab = lab();
    assert_eq!(output(&lab, &[]), OF_A);
    let lab = lab.file("sheets/a.tsv", "changed\n").file("sheets/c.tsv", "new\n");
    let refused = lab.run("ce-run", &["-q", "../storage"]).exit(2);
    refused.says("sheets/a.tsv: has uncommitted changes").says("--dirty");
    assert_eq!(output(&lab, &["-psample=b"]), OF_B, "of another file only its own text counts");
    lab.run("ce-run", &["../storage", "-psample=c"])
        .exit(2)
        .says("where sample is \"c\": has uncommitted");
    let dirty = lab.run("ce-run", &["--dirty", "../storage"]).exit(0);
    dirty.says("the job's outputs were not stored: sheets/a.tsv has uncommitted changes");
    assert_eq!(output(&lab, &["--dirty"]), "reads of a\nchanged\n1\n");
    assert_eq!(output(&lab, &["--at", "HEAD"]), OF_A);
    let lab = lab.commit_again();
    assert_eq!(output(&lab, &[]), "reads of a\nchanged\n1\n");
    assert_eq!(output(&lab, &["--at", "HEAD~1", "-psample=b"]), OF_B);
    lab.run("ce-run", &["--at", "HEAD~1", "../storage", "-psample=c"]).exit(2).says("no file");
    let diff = lab.run("ce", &["diff", "HEAD~1", "HEAD", "../storage"]).exit(0);
    diff.shows("-sheet of a\n+changed");
}

#[test]
fn a_linked_file_is_found_in_the_repository_only() {
    let lab = lab().link("sheets/l.tsv", "b.tsv").link("sheets/o.tsv", "/etc/passwd");
    let lab = lab.file("data/l.fastq", "").commit_again();
    fs::write(lab.path("storage/data/l.fastq"), "").unwrap();
    assert_eq!(output(&lab, &["-psample=l"]), "sheet of b\n1\n");
    assert_eq!(output(&lab, &["--at", "HEAD", "-psample=l"]), "sheet of b\n1\n");
    for at in [&[][..], &["--at", "HEAD"]] {
        let ran = lab.run("ce-run", &[at, &["../storage", "-psample=o"]].concat()).exit(2);
        ran.says("leads out of the repository");
    }
}

#[test]
fn a_job_records_the_literals_that_were_read() {
    let lab = lab();
    output(&lab, &["-psample=b"]);
    let record =
        lab.storage().into_iter().find(|it| it.starts_with("t_task/") && it.ends_with("json"));
    let record = lab.stored(&record.unwrap());
    assert!(record.contains(r#""file": "data/b.fastq""#), "{record}");
    assert!(!record.contains("data/a.fastq") && !record.contains("{sample"), "{record}");
    fs::write(lab.path("storage/data/b.fastq"), "other\n").unwrap();
    assert_eq!(output(&lab, &["-psample=b"]), "other\nsheet of b\n1\n", "the job is not that one");
}

#[test]
fn versions_are_compared_with_the_same_texts() {
    let lab = lab();
    let lab = lab.file("defaults/sample", "b\n").commit_again();
    let diff = lab.run("ce", &["diff", "HEAD~1", "HEAD", "../storage"]).exit(0);
    diff.shows("FILE('data/a.fastq') -> FILE('data/b.fastq')").shows("+reads of b");
    let same = lab.run("ce", &["diff", "HEAD~1", "HEAD", "../storage", "-psample=a"]).exit(0);
    same.shows("output 00 all: the same");
    // The newer version does not name the input, so that nobody has read its text.
    let lab = lab.file("workflow/inputs/00-reads/value", "data/b.fastq");
    let lab = lab.file("workflow/inputs/01-sheet/value", "sheets/b.tsv").commit_again();
    let lab = lab.data("c", "a");
    let versions = ["diff", "HEAD~1", "HEAD", "../storage"];
    let diff = |arguments: &[&str]| lab.run("ce", &[&versions, arguments].concat());
    diff(&["-n", "sample=../data/c"]).exit(0).shows("-reads of a");
    fifo::make(&lab.path("pipe"));
    let write = || {
        let path = lab.path("pipe");
        thread::spawn(move || fs::write(path, "a").unwrap())
    };
    let writer = write();
    diff(&["-n", "sample=../pipe"]).exit(2).says("the input sample").says("only once");
    writer.join().unwrap();
    let writer = write();
    diff(&["sample=../pipe"]).exit(0).shows("-reads of a");
    writer.join().unwrap();
}

#[test]
fn the_commit_that_changed_a_named_file_is_found() {
    let lab = lab();
    let lab = lab.file("sheets/b.tsv", "nobody reads this\n").commit_again();
    let lab = lab.without("sheets/a.tsv").commit_again();
    let lab = lab.file("sheets/a.tsv", "changed\n").commit_again();
    let bad = lab.git("task", &["rev-parse", "HEAD"]);
    let lab = lab.file("note", "\n").commit_again();
    let bisect = ["bisect", "--good", "HEAD~4", "--bad", "HEAD", "../storage"];
    let ran = lab.run("ce", &bisect).exit(1);
    assert!(ran.stdout.contains(&bad) && ran.lines().len() == 2, "{}", ran.stdout);
    ran.says("skipped");
}

#[test]
fn results_that_a_reachable_workflow_may_name_are_kept() {
    let lab = Lab::task("Inputs: 'x'\n(id FILE('tinputs/{x}'))[0]")
        .computation("id", "a", "b", r#"cat "$1" >"$2""#)
        .commit()
        .data("y", "kept\n");
    lab.run("ce-run", &["../storage", "-px=none"]).exit(3);
    let lab = lab.one_text("Inputs: y\n(id y)").commit_again();
    lab.run("ce-run", &["../storage", "../data/y"]).exit(0);
    let name = lab
        .storage()
        .into_iter()
        .find(|name| name.starts_with("tinputs/") && lab.stored(name) == "kept\n");
    let name = name.unwrap();
    lab.git("task", &["reset", "--quiet", "--hard", "HEAD~1"]);
    fs::remove_dir_all(lab.path("task/.git/logs")).unwrap();
    lab.run("ce", &["gc", "--delete", "../storage"]).exit(0);
    assert!(lab.path("storage").join(&name).exists());
    let x = format!("-px={}", name.trim_start_matches("tinputs/"));
    assert_eq!(output(&lab, &[&x]), "kept\n");
}

#[test]
fn a_file_is_read_from_the_commit_of_the_task() {
    let lab = lab();
    let task = || load::task(&lab.path("task"), Uncommitted::Refuse, None).unwrap().task;
    let (loaded, texts) = (task(), [Some(b"a\n".to_vec()), None]);
    let bound = load::bind(&lab.path("task"), task(), &texts).unwrap();
    assert!(bound.is_bound() && !loaded.is_bound());
    lab.git("task", &["commit", "--quiet", "--allow-empty", "-mx"]);
    lab.git("task", &["rm", "--quiet", "-r", "sheets"]);
    lab.git("task", &["commit", "--quiet", "-mx"]);
    let later = load::bind(&lab.path("task"), loaded, &texts).unwrap();
    assert_eq!(format!("{later:?}"), format!("{bound:?}"));
}
