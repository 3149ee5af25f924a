//! Tasks that look odd and are right.

use std::fs;

use super::TestTask;

/// A task with every text file changed.
fn changed(change: impl Fn(&str) -> String) -> TestTask {
    let task = TestTask::base();
    let files = [
        "inputs",
        "workflow/kind",
        "workflow/value",
        "workflow/inputs/00-mul/kind",
        "workflow/inputs/00-mul/value",
        "workflow/inputs/00-mul/inputs/00-x/value",
        "workflow/inputs/01-x/kind",
        "workflow/inputs/01-x/value",
        "computations/add/inputs",
        "computations/add/outputs",
    ];
    files.iter().fold(task.file("workflow/outputs", "0\n"), |task, file| {
        let text = fs::read_to_string(task.path(file)).unwrap();
        task.file(file, change(&text))
    })
}

/// Checks that the task means what [`TestTask::base`] means, and tells nothing.
#[track_caller]
fn is_plain(task: &TestTask) {
    task.tells("");
    let plain = changed(str::to_owned).load().unwrap().task;
    let task = task.load().unwrap().task;
    assert_eq!((task.workflow, task.inputs), (plain.workflow, plain.inputs));
}

#[test]
fn lines_end_as_in_another_system() {
    is_plain(&changed(|text| text.trim_end().replace('\n', "\r\n") + "\r\n"));
}

#[test]
fn the_last_line_has_no_end() {
    is_plain(&changed(|text| text.trim_end().to_owned()));
}

#[test]
fn a_text_begins_with_a_byte_order_mark() {
    is_plain(&changed(|text| format!("\u{feff}{text}")));
}

#[test]
fn blanks_are_around_lines_and_empty_lines_at_the_end() {
    is_plain(&changed(|text| format!(" {} \t\n  \n\n", text.trim_end().replace('\n', " \t\n "))));
}

#[test]
fn names_have_any_characters() {
    TestTask::empty()
        .file("inputs", "it's \"x\" - ü|数\nb\n")
        .computation("add-up.2_é", "a b", "Σ")
        .node("", "computation", "add-up.2_é")
        .node("inputs/00-x/", "input", "it's \"x\" - ü|数")
        .node("inputs/01-b/", "input", "b")
        .tells("");
}

#[test]
fn outputs_are_chosen_by_their_names_in_any_order() {
    let task = || {
        let task = TestTask::empty().file("inputs", "x\n").node("", "computation", "add");
        task.call("inputs/00_01-divmod/", "divmod", &["x", "x"])
    };
    let named = task().file("workflow/inputs/00_01-divmod/outputs", "remainder\n0\n");
    let named = named.file("workflow/outputs", "sum\n");
    named.tells("");
    let numbered = task().file("workflow/inputs/00_01-divmod/outputs", "1\nquotient\n");
    numbered.tells("");
}

#[test]
fn outputs_of_trees_and_sweeps_have_names_too() {
    TestTask::empty()
        .file("inputs", "x\n")
        .node("", "tree", "lib")
        .node("inputs/00-revision/", "input", "x")
        .file("workflow/outputs", "directory\n")
        .tells("");
    TestTask::sweep("", &[("outputs", "directory\ntable\n"), ("factors/00-a", "1\n2\n")])
        .call("inputs/00-body/", "add", &["a", "a"])
        .file("workflow/inputs/00-body/outputs", "sum\n")
        .tells("");
}

#[test]
fn a_name_of_a_directory_is_with_and_without_its_slash() {
    TestTask::empty()
        .file("inputs", "x\n")
        .computation("first", "x", "parts/ list")
        .call("", "first", &["x"])
        .file("workflow/outputs", "parts\nparts/\nlist\n")
        .tells("");
}

#[test]
fn a_computation_has_no_inputs() {
    TestTask::empty()
        .file("inputs", "")
        .computation("make", "", "a")
        .node("", "computation", "make")
        .tells("");
}

#[test]
fn unread_files_are_reported() {
    TestTask::base()
        .file("workflow/notes", "")
        .file("workflow/inputs/README", "")
        .file("workflow/.hidden", "")
        .file("workflow/inputs/.hidden", "")
        .file("workflow/kind", "computation\n\nbecause\n")
        .file("workflow/inputs/00-mul/value", "mul\nmore\n")
        .file("workflow/inputs/00-mul/inputs/00-x/outputs", "0\n")
        .file("workflow/inputs/00-mul/inputs/01-stop words/inputs/00-x/kind", "nonsense\n")
        .file("computations/add/README", "")
        .tells(
            "warning: workflow/inputs/00-mul/inputs/00-x/outputs: nothing reads this\n\
             try: remove it, or correct its name\n\
             warning: workflow/inputs/00-mul/inputs/01-stop words/inputs: nothing reads this\n\
             try: remove it, or correct its name\n\
             warning: workflow/inputs/00-mul/value: only the first line is read\n\
             try: remove the other lines\n\
             warning: workflow/inputs/README: nothing reads this\n\
             try: remove it, or correct its name\n\
             warning: workflow/kind: only the first line is read\n\
             try: remove the other lines\n\
             warning: workflow/notes: nothing reads this\n\
             try: remove it, or correct its name",
        );
}

#[test]
fn a_file_that_is_a_value_is_read() {
    TestTask::base()
        .file("inputs", "x\nstop words\nn\n")
        .node("inputs/01-x/", "file", "workflow/notes")
        .node("inputs/00-mul/inputs/00-x/", "file", "workflow/data/deep/a")
        .node("inputs/00-mul/inputs/01-stop words/", "file", "workflow/inputs/number-{n}")
        .file("workflow/notes", "1\n")
        .file("workflow/data/deep/a", "2\n")
        .file("workflow/inputs/number-3", "3\n")
        .file("workflow/other", "4\n")
        .tells(
            "warning: workflow/other: nothing reads this\n\
             try: remove it, or correct its name",
        );
}

#[test]
fn links_lead_to_links_and_anywhere_in_the_task() {
    let task = TestTask::base()
        .without("workflow/inputs/01-x")
        .link("workflow/inputs/01-x", "../../other/link")
        .link("other/link", "another")
        .link("other/another", "../parts/x")
        .file("parts/x/kind", "input\n")
        .link("parts/x/value", "../name")
        .file("parts/name", "x\n")
        .file("workflow/outputs", "0\n");
    is_plain(&task);
}

#[test]
fn the_inputs_of_a_node_and_the_workflow_itself_are_links() {
    let task = TestTask::base().file("workflow/outputs", "0\n");
    let task = task.without("workflow/inputs/00-mul/inputs").rename("workflow", "real");
    let task = ["x", "stop words"].iter().enumerate().fold(task, |task, (number, name)| {
        let node = format!("inputs-of-mul/{number:02}-{name}");
        task.file(&format!("{node}/kind"), "input\n").file(&format!("{node}/value"), name)
    });
    let task = task.link("workflow", "real");
    is_plain(&task.link("real/inputs/00-mul/inputs", "../../../inputs-of-mul"));
}

#[test]
fn braces_that_name_nothing_are_part_of_the_name() {
    TestTask::base()
        .computation("{z}", "a b", "c")
        .file("workflow/inputs/00-mul/value", "{z}")
        .tells("");
}

#[test]
fn equal_directories_are_one_node() {
    let task = TestTask::empty().file("inputs", "x\ny\n").node("", "computation", "add");
    let task = task.call("inputs/00-one/", "mul", &["x", "y"]);
    let alone = task.call("inputs/01-other/", "mul", &["x", "y"]);
    // A link to it is that node, too.
    let nodes = |task: &TestTask| task.load().unwrap().task.workflow.nodes().len();
    assert_eq!(nodes(&alone), 4);
    let linked = alone.without("workflow/inputs/01-other");
    assert_eq!(nodes(&linked.link("workflow/inputs/01-other", "00-one")), 4);
}
