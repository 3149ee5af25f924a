//! Nodes of kind `member`: a file or directory within a directory.

use std::fs;

use crate::lab::Lab;
use crate::program::Ran;

/// A task that counts the lines of a member of a directory that a call makes: one file for each line of its
/// input, named by the line, and a link to the first one.
fn lab(member: &str) -> Lab {
    let text = format!("Inputs: 'x'\n(count MEMBER('{member}' (split INPUT('x'))))");
    let split = r#"i=0; mkdir "$2/all"; for l in $(cat "$1"); do echo "$l" >"$2/all/$l"; done; ln -s all/a "$2/first""#;
    Lab::task(&text)
        .computation("split", "text", "parts/", split)
        .computation("count", "file", "lines", r#"cat "$1"/* "$1" 2>/dev/null | wc -l >"$2""#)
        .data("x", "a\nb\n")
        .commit()
}

/// Returns the reason of the failure, without the storage's names.
fn complaint(ran: &Ran<'_>) -> String {
    let line = ran.stderr.lines().find(|line| line.contains(" failed: ")).unwrap();
    let (_, reason) = line.split_once(" failed: ").unwrap();
    reason.split(" ../storage").next().unwrap().to_owned()
}

#[test]
fn a_call_that_reads_a_member_is_reused_when_other_members_change() {
    let lab = lab("all/a");
    lab.ce_run(&[]).exit(0).called(vec!["split", "count"]);
    fs::write(lab.path("data/x"), "a\nc\nd\n").unwrap();
    let ran = lab.ce_run(&[]).exit(0).called(vec!["split"]);
    assert!(ran.stdout.contains("MEMBER('all/a') ../storage/c_split/"), "{}", ran.stdout);
    lab.run("ce", &["verify", "../storage"]).exit(0);
    // The quick path finds the job, and notices a member that was changed.
    lab.ce_run(&["-q"]).exit(0).called(vec![]);
}

#[test]
fn a_member_may_be_a_directory_or_behind_links_within() {
    let directory = lab("all");
    directory.ce_run(&[]).exit(0);
    assert_eq!(directory.output(), "2\n");
    let link = lab("first");
    let ran = link.ce_run(&[]).exit(0);
    assert!(ran.stdout.contains("/all/a ok"), "its own name: {}", ran.stdout);
    assert_eq!(link.output(), "1\n");
}

#[test]
fn a_member_that_is_not_there_is_an_error_of_the_call() {
    for member in ["all/z", "all/a/b", "first/x"] {
        let lab = lab(member);
        let ran = lab.ce_run(&[]).exit(1).called(vec!["split"]);
        assert_eq!(complaint(&ran), format!("there is no {member} in the directory"));
        assert!(ran.stderr.contains("try: "), "{}", ran.stderr);
        let ran = lab.ce_run(&["-n"]).exit(1).called(vec![]);
        assert_eq!(complaint(&ran), format!("there is no {member} in the directory"));
    }
    let lab = Lab::task("Inputs: 'x'\n(add MEMBER('a' INPUT('x')) INPUT('x'))").commit();
    let ran = lab.ce_run(&[]).exit(1).called(vec![]);
    assert_eq!(complaint(&ran), "there is no a in");
}

#[test]
fn members_of_inputs_and_literals_may_be_outputs_of_a_task() {
    let lab = Lab::task("Inputs: 'd'\nMEMBER('sub' INPUT('d'))").commit();
    fs::remove_file(lab.path("data/d")).unwrap();
    fs::create_dir_all(lab.path("data/d/sub")).unwrap();
    fs::write(lab.path("data/d/sub/file"), "text\n").unwrap();
    fs::write(lab.path("data/d/other"), "").unwrap();
    let ran = lab.ce_run(&["-n"]).exit(3);
    assert!(ran.stdout.contains("/sub MISSING!!!"), "its name is known: {}", ran.stdout);
    lab.ce_run(&[]).exit(0);
    let ran = lab.ce_run(&["-q"]).exit(0);
    assert_eq!(fs::read(lab.path("task").join(ran.stdout.trim()).join("file")).unwrap(), b"text\n");

    let lab = Lab::task("Inputs:\n(mul MEMBER('a/n' FILE('by hand')) MEMBER('n' FILE('by hand')))");
    let lab = lab.commit();
    for (name, number) in [("a/n", "6\n"), ("n", "7\n")] {
        let path = lab.path("storage/by hand").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, number).unwrap();
    }
    fs::create_dir_all(lab.path("storage/tinputs")).unwrap();
    lab.ce_run(&[]).exit(0).called(vec!["mul"]);
    assert_eq!(lab.output(), "42\n");
    fs::write(lab.path("storage/by hand/other"), "").unwrap();
    lab.ce_run(&[]).exit(0).called(vec![]);
    fs::write(lab.path("storage/by hand/n"), "8\n").unwrap();
    lab.ce_run(&[]).exit(0).called(vec!["mul"]);
    assert_eq!(lab.output(), "48\n");
}

#[test]
fn a_member_is_shown_with_its_directory_and_explained_by_it() {
    let lab = lab("all/a");
    lab.ce_run(&[]).exit(0);
    let output = lab.ce_run(&["-q"]).exit(0).stdout.trim().to_owned();
    let shown = lab.run("ce", &["show", "../storage", &output]).exit(0);
    assert!(shown.stdout.contains("/all/a (split, output 00)"), "{}", shown.stdout);
    fs::write(lab.path("data/x"), "a b\n").unwrap();
    let lab = lab.computation("split", "text", "parts/", r#"mkdir "$2/all"; cat "$1" >"$2/all/a""#);
    let lab = lab.commit_again();
    let explained = lab.run("ce", &["explain", "../storage", "../data/x"]).exit(3);
    assert!(explained.stdout.contains("count"), "{}", explained.stdout);
    lab.run("ce", &["show", "--json", "../storage", &output]).exit(0).shows(r#""member": "all/a""#);
}

#[test]
fn a_text_names_the_member() {
    let lab = lab("all/{x}");
    let lab = lab.file("inputs", "x\ny\n");
    let lab = lab.file("workflow/inputs/00-all-{x}/inputs/00-split/inputs/00-x/value", "y\n");
    let lab = lab.commit_again();
    let run =
        |text: &str| lab.run("ce-run", &["../storage", "-p", &format!("x={text}"), "y=../data/x"]);
    run("b").exit(0);
    run("c").exit(1);
}

#[test]
fn a_member_that_was_changed_since_its_directory_was_found_is_not_read() {
    // While the run goes on, one call overwrites the output of another one.
    let spoil = r#"S=${1%/tinputs/*}; f=$(echo "$S"/c_make/*/00/*/a); chmod u+w "$f"
        printf 'evil\n' >"$f"; echo >"$3""#;
    let lab =
        Lab::task("Inputs: 'x'\n(use MEMBER('a' #1=(make INPUT('x'))) (spoil INPUT('x') #1#))")
            .computation("make", "x", "parts/", r#"echo good >"$2/a""#)
            .computation("spoil", "x parts", "nothing", spoil)
            .computation("use", "a after", "text", r#"cp "$1" "$3""#)
            .commit();
    lab.ce_run(&[]).exit(5).called(vec!["make", "spoil"]).says("was changed or removed");
    lab.ce_run(&[]).exit(0).called(vec!["make", "use"]);
    assert_eq!(lab.output(), "good\n");
}
