//! Files and directories of a task that are missing, cannot be read, or are links that lead nowhere.

use super::TestTask;

#[test]
fn a_valid_task_has_no_problems() {
    TestTask::base().tells("");
}

#[test]
fn missing_files_are_reported_at_once() {
    let task = TestTask::base().without("inputs").without("workflow/inputs/01-x/kind");
    task.without("workflow/inputs/01-x/value").tells(
        "inputs: does not exist\n\
         try: make it, or git restore it if it was removed by mistake\n\
         workflow/inputs/01-x/kind: does not exist\n\
         try: make it, or git restore it if it was removed by mistake\n\
         workflow/inputs/01-x/value: does not exist\n\
         try: make it, or git restore it if it was removed by mistake",
    );
    let task = TestTask::base().without("workflow/value");
    task.without("workflow/inputs/00-mul/kind").tells(
        "workflow/inputs/00-mul/kind: does not exist\n\
         try: make it, or git restore it if it was removed by mistake\n\
         workflow/value: does not exist\n\
         try: make it, or git restore it if it was removed by mistake",
    );
}

#[test]
fn missing_files_of_computations_are_reported_at_once() {
    let task = TestTask::base().without("computations/add/inputs");
    let task = task.without("computations/add/outputs").without("computations/mul/exec");
    task.tells(
        "computations/add/inputs: does not exist\n\
         try: make it, or git restore it if it was removed by mistake\n\
         computations/add/outputs: does not exist\n\
         try: make it, or git restore it if it was removed by mistake\n\
         computations/mul/exec: does not exist\n\
         try: make it, or git restore it if it was removed by mistake",
    );
}

#[test]
fn a_directory_is_not_a_file() {
    TestTask::base()
        .without("workflow/inputs/00-mul/value")
        .file("workflow/inputs/00-mul/value/file", "")
        .without("computations/add/exec")
        .file("computations/add/exec/file", "")
        .tells(
            "computations/add/exec: is not a file\n\
             try: replace it by a file\n\
             workflow/inputs/00-mul/value: is not a file\n\
             try: replace it by a file",
        );
}

#[test]
fn a_file_is_not_a_directory() {
    TestTask::base().without("workflow/inputs").file("workflow/inputs", "").tells(
        "workflow/inputs: is not a directory\n\
         try: replace it by a directory",
    );
}

#[test]
fn a_link_to_a_file_is_not_a_node() {
    TestTask::base().without("workflow/inputs/01-x").link("workflow/inputs/01-x", "../kind").tells(
        "workflow/inputs/01-x: is not a directory\n\
         try: replace it by a directory",
    );
}

#[test]
fn a_link_may_not_lead_to_nothing_or_to_itself_or_out() {
    for (target, told) in [
        (
            "nothing",
            "workflow/inputs/01-x: does not exist\n\
             try: make it, or git restore it if it was removed by mistake",
        ),
        (
            "01-x",
            "workflow/inputs/01-x: has too many levels of links\n\
             try: correct the links: they lead to each other",
        ),
        (
            "/usr",
            "workflow/inputs/01-x: leads out of the repository, to /usr\n\
             try: link only to what is committed with the task",
        ),
    ] {
        let task = TestTask::base().without("workflow/inputs/01-x");
        task.link("workflow/inputs/01-x", target).tells(told);
    }
}

#[test]
fn a_link_may_not_lead_to_a_directory_around_it() {
    TestTask::base()
        .without("workflow/inputs/00-mul/inputs/00-x")
        .link("workflow/inputs/00-mul/inputs/00-all", "../../..")
        .without("workflow/inputs/01-x")
        .link("workflow/inputs/01-x", "..")
        .tells(
            "workflow/inputs/00-mul/inputs/00-all: leads back to workflow, which contains it\n\
             try: remove the link\n\
             workflow/inputs/01-x: leads back to workflow, which contains it\n\
             try: remove the link",
        );
}

#[test]
fn a_line_of_a_list_may_not_be_empty() {
    TestTask::base().file("inputs", "x\n\nstop words\n").tells(
        "inputs:2: the line is empty\n\
         try: remove the line",
    );
    TestTask::base().file("computations/add/outputs", "sum\n\nrest\n").tells(
        "computations/add/outputs:2: the line is empty\n\
         try: remove the line",
    );
}

#[test]
fn a_file_without_text_has_no_value() {
    TestTask::base()
        .file("workflow/value", "")
        .file("workflow/outputs", "0\n\n0\n")
        .file("workflow/inputs/00-mul/value", "\n\nadd\n")
        .tells(
            "workflow/inputs/00-mul/value: has an empty first line\n\
             try: write its text into the first line\n\
             workflow/outputs:2: the line is empty\n\
             try: remove the line\n\
             workflow/value: has an empty first line\n\
             try: write its text into the first line",
        );
}

#[test]
fn a_file_is_utf_8() {
    TestTask::base().file("workflow/inputs/01-x/kind", b"\xfe\xff").tells(
        "workflow/inputs/01-x/kind: is not UTF-8 text\n\
         try: save the file as UTF-8",
    );
    TestTask::text("").file("workflow.ce", b"Inputs: x\n(add x '\xff')").tells(
        "workflow.ce: is not UTF-8 text\n\
         try: save the file as UTF-8",
    );
}

#[test]
fn a_file_has_at_most_a_mebibyte() {
    TestTask::base().file("workflow/value", "x".repeat((1 << 20) + 1)).tells(
        "workflow/value: cannot be read: more than 1 MiB\n\
         try: ls -l shows what it is, and who may read it",
    );
}

#[test]
fn a_text_that_is_a_link_to_nothing_does_not_exist() {
    TestTask::empty().link("workflow.ce", "gone").tells(
        "workflow.ce: does not exist\n\
         try: make it, or git restore it if it was removed by mistake",
    );
}

#[test]
fn a_task_has_one_form() {
    TestTask::base().file("workflow.ce", "Inputs: x\n(add x x)").tells(
        "workflow.ce: the task has workflow, too: its workflow is one text, or directories\n\
         try: remove one of the two\n\
         workflow.ce: the task has inputs, too: its workflow is one text, or directories\n\
         try: remove one of the two",
    );
    TestTask::text("Inputs: x\n(add x x)").file("defaults/x", "1\n").tells(
        "workflow.ce: the task has defaults, too: its workflow is one text, or directories\n\
         try: remove one of the two",
    );
}
