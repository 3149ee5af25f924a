//! Everything that can be wrong with a task, and the exact words for it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::Path;

use compeval::load::{self, LoadError, Uncommitted};

use super::broken::{base, right, tasks};

#[test]
fn every_problem_is_told_at_once_and_in_the_order_of_the_files() {
    for (name, lab) in tasks() {
        let ran = lab.run("ce", &["check"]).complains(&format!("load/{name}.txt")).exit(2);
        assert_eq!(ran.stdout, "", "{name}");
    }
}

#[test]
fn a_wrong_kind_hides_nothing_of_what_is_wrong_below() {
    let lab = base()
        .file("workflow/kind", "compuation\n")
        .file("workflow/inputs/01-x/value", "z\n")
        .commit();
    let ran = lab.run("ce", &["check"]).exit(2).says("workflow/kind: \"compuation\"");
    ran.says("workflow/inputs/01-x/value: the task has no input \"z\"");
}

#[test]
fn a_wrong_line_of_a_slice_hides_nothing_of_what_is_wrong_in_others() {
    let lab = right("(take1 INPUT('x'))[0]").file("workflow/outputs", "uno\n02\n").commit();
    let ran = lab.run("ce", &["check"]).exit(2).says("workflow/outputs:1: \"uno\"");
    ran.says("workflow/outputs:2: take1 has 2 outputs");
}

#[test]
fn a_name_that_no_output_has_is_an_error_that_lists_the_names() {
    let lab = right("(divmod INPUT('x') INPUT('stop words'))[quotent]").commit();
    let ran = lab.run("ce", &["check"]).exit(2);
    ran.says("workflow/outputs:1: \"quotent\" is no output: there are quotient, remainder\n")
        .says("  try: did you mean quotient?\n");
    // One mistake is reported once, also below a sweep.
    let lab = right("(divmod INPUT('x') INPUT('x'))[0]")
        .node("", "sweep", "")
        .file("workflow/outputs", "rows\n")
        .file("workflow/factors/00-a", "1\n")
        .call("inputs/00-body/", "divmod", &["a", "a"])
        .file("workflow/inputs/00-body/outputs", "rest\nnone\n")
        .without("workflow/inputs/00-x")
        .without("workflow/inputs/01-x")
        .commit();
    let ran = lab.run("ce", &["check"]).exit(2).says("the task at . has 3 problems");
    ran.says("workflow/outputs:1: \"rows\" is no output: there are table, directory\n");
    let lab = right("(twins INPUT('x'))[a]").computation("twins", "x", "a a", "exit 1").commit();
    let ran = lab.run("ce", &["check"]).exit(2);
    ran.says("\"a\" is the name of several outputs").says("try: write its number");
}

#[test]
fn a_slice_of_more_outputs_than_can_be_numbered_is_refused() {
    let slice = "0\n".repeat(101);
    let lab = right("(divmod INPUT('x') INPUT('stop words'))[0]")
        .file("workflow/outputs", slice)
        .commit();
    lab.ce_run(&[]).exit(2).says("at most 100 can be numbered");
}

#[test]
fn every_program_refuses_a_task_that_is_wrong() {
    let lab = base().file("workflow/kind", "compuation\n").commit();
    lab.ce_run(&[]).exit(2).complains("load/ce-run.txt");
    lab.ce_run(&["-n", "--json"]).exit(2).says("compuation");
    lab.run("ce-sym", &[]).exit(2).complains("load/ce-sym.txt");
    assert!(!lab.path("storage").exists());
}

#[test]
fn what_is_odd_is_told_beside_what_is_wrong() {
    let lab =
        base().file("workflow/kind", "compuation\nlines\n").file("workflow/notes", "").commit();
    lab.run("ce", &["check"]).exit(2).complains("load/odd-and-wrong.txt");
}

#[test]
fn a_directory_without_a_task_is_told_of() {
    let lab = base().commit();
    lab.run("ce", &["check", "--task", "../data"]).exit(2).complains("load/no-task.txt");
    lab.run("ce-sym", &["--task", "../nowhere"]).exit(2).complains("load/no-directory.txt");
    lab.run("ce-sym", &["--task", "inputs"]).exit(2).complains("load/task-is-a-file.txt");
}

#[test]
fn the_name_of_the_task_must_be_a_name() {
    let lab = base().commit();
    fs::rename(lab.path("task"), lab.path("ta\tsk")).unwrap();
    let mut command = lab.command("ce");
    lab.finish(command.current_dir(lab.path("ta\tsk")).arg("check"))
        .exit(2)
        .complains("load/name-of-the-task.txt");
}

/// The variant that a value is, and the one inside it.
fn variant(value: &dyn Debug) -> String {
    let text = format!("{value:?}").replace("Head(", "");
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned()
}

/// The variants of an enum, read from the source.
fn variants(file: &str, name: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = fs::read_to_string(path).unwrap();
    let (_, text) = text.split_once(&format!("pub enum {name} {{\n")).unwrap();
    let lines = text.lines().take_while(|line| *line != "}");
    let lines = lines.filter_map(|line| {
        line.strip_prefix("    ").filter(|line| line.starts_with(char::is_uppercase))
    });
    lines.map(|line| line.split([',', '(', ' ']).next().unwrap().to_owned()).collect()
}

#[test]
fn there_is_a_task_for_everything_that_can_be_wrong_or_odd() {
    let mut told = BTreeSet::new();
    let mut odd = BTreeSet::new();
    let with_oddities = base()
        .file("workflow/kind", "computation\nlines\n")
        .file("workflow/notes", "")
        .without("workflow/value");
    let changed = base().commit().file("computations/add/notes", "");
    for lab in tasks().into_iter().map(|(_, lab)| lab).chain([with_oddities, changed]) {
        let loaded = load::task(&lab.path("task"), Uncommitted::Refuse, None);
        let Err(LoadError::Problems { problems, warnings, .. }) = loaded else {
            panic!("{loaded:?}")
        };
        told.extend(problems.iter().map(|problem| variant(&problem.fault)));
        odd.extend(warnings.iter().map(|warning| variant(&warning.oddity)));
    }
    let mut all = variants("crates/task/src/load/problems.rs", "LoadFault");
    all.extend(variants("crates/git/src/head.rs", "HeadError"));
    assert!(all.remove("Head"));
    // These need another user, another revision, something to be executed, filters, and files that
    // are ignored or uncommitted, or texts of inputs: see run/uncommitted.rs, run/at.rs, isolation/access.rs,
    // isolation/grants.rs, isolation/roots.rs, run/looking.rs, run/own_files.rs, run/templates.rs, sweeps/refused.rs and
    // sweeps/open_names.rs.
    assert!(all.remove("Untrusted"));
    // A task that is a submodule.
    assert!(all.remove("NotCheckedOut"));
    assert!(all.remove("NotHere") && all.remove("Grant"));
    assert!(all.remove("Exposed"));
    assert!(all.remove("Filtered") && all.remove("Tree"));
    // See run/lfs_files.rs.
    assert!(all.remove("Converted") && all.remove("LargeFile") && all.remove("Pointer"));
    assert!(all.remove("OwnDirectory"));
    assert!(all.remove("UncommittedFile"));
    assert!(all.remove("Bound"));
    assert!(all.remove("OtherSignature"));
    assert!(all.remove("InputText"));
    assert!(all.remove("Sweep"));
    // These need a workflow that is a text: see text/one_text.rs.
    assert!(all.remove("TwoForms") && all.remove("Mistake") && all.remove("LabelPlace"));
    assert_eq!(told, all);
    odd.extend(["Ignored", "Lookalike", "NoPoints", "Uncommitted", "Unneeded"].map(str::to_owned));
    assert_eq!(odd, variants("crates/task/src/load/problems.rs", "WarningKind"));
}
