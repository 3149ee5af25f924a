//! The kind, the value, the name and the slice of a node.

use std::path::Path;

use super::TestTask;

#[test]
fn a_kind_is_one_of_the_known_words() {
    TestTask::base()
        .file("workflow/inputs/00-mul/kind", "compuation")
        .file("workflow/inputs/01-x/kind", "Input")
        .tells(
            "workflow/inputs/00-mul/kind: \"compuation\" is not a kind of node\n\
             try: write computation, input, literal, file, text, tree, member, all, sweep or points\n\
             workflow/inputs/01-x/kind: \"Input\" is not a kind of node\n\
             try: write computation, input, literal, file, text, tree, member, all, sweep or points",
        );
}

#[test]
fn a_wrong_kind_does_not_hide_problems_below() {
    TestTask::base()
        .file("workflow/kind", "compuation\n")
        .file("workflow/inputs/01-x/value", "z\n")
        .tells(
            "workflow/inputs/01-x/value: the task has no input \"z\"\n\
             try: name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points are computed); a text stands in quotes\n\
             workflow/kind: \"compuation\" is not a kind of node\n\
             try: write computation, input, literal, file, text, tree, member, all, sweep or points",
        );
}

#[test]
fn oddities_are_reported_beside_faults() {
    let task = TestTask::base().file("workflow/kind", "compuation\nlines\n");
    task.file("workflow/notes", "").tells(
        "workflow/kind: \"compuation\" is not a kind of node\n\
         try: write computation, input, literal, file, text, tree, member, all, sweep or points\n\
         warning: workflow/kind: only the first line is read\n\
         try: remove the other lines\n\
         warning: workflow/notes: nothing reads this\n\
         try: remove it, or correct its name",
    );
}

#[test]
fn a_source_of_a_tree_is_a_submodule_or_the_task() {
    TestTask::base()
        .without("workflow/inputs/00-mul/inputs")
        .node("inputs/00-mul/", "tree", "lib:")
        .node("inputs/01-x/", "tree", "lib")
        .tells(
            "workflow/inputs/00-mul/value: \"lib:\" is not SOURCE or SOURCE:PATH; PATH is relative, without empty parts, . and ..\n\
             try: write the path of a submodule, or . for the task's repository, as in .:data\n\
             workflow/inputs/01-x/value: the task has no submodule \"lib\": no commit of it is recorded\n\
             try: name a commit: TREE('LIB' 'v1'), or inputs/00-revision",
        );
}

#[test]
fn a_tree_has_two_outputs() {
    TestTask::base()
        .node("inputs/01-x/", "tree", "lib")
        .node("inputs/01-x/inputs/00-revision/", "input", "x")
        .file("workflow/inputs/01-x/outputs", "2\n")
        .tells(
            "workflow/inputs/01-x/outputs:1: the tree lib has 2 outputs, so there is no 02\n\
             try: outputs are numbered from 00",
        );
}

#[test]
fn a_directory_that_a_tree_is_of_is_read() {
    let task = |tree: &str| {
        let task = TestTask::base().node("inputs/01-x/", "tree", tree);
        task.file("workflow/inputs/01-x/outputs", "0\n").file("workflow/data/a", "")
    };
    task(".:workflow/data").tells("");
    // A value of the whole repository says nothing of a file in it.
    task(".").tells(
        "warning: workflow/data: nothing reads this\n\
         try: remove it, or correct its name",
    );
}

#[test]
fn a_tree_takes_one_revision() {
    TestTask::base().node("inputs/00-mul/", "tree", "lib").tells(
        "workflow/inputs/00-mul/inputs: the tree lib takes 1 input, not 2\n\
         try: its inputs are revision",
    );
}

#[test]
fn a_file_of_the_task_is_in_the_task() {
    for (path, told) in [
        (
            "../data/x",
            "workflow/inputs/01-x/value: \"../data/x\" is not a plain relative path: no part of it may be empty, . or ..\n\
             try: write a path such as data/table.csv",
        ),
        (
            "/etc/passwd",
            "workflow/inputs/01-x/value: \"/etc/passwd\" is not a plain relative path: no part of it may be empty, . or ..\n\
             try: write a path such as data/table.csv",
        ),
        (
            "computations/none",
            "workflow/inputs/01-x/value: the task has no file \"computations/none\"\n\
             try: correct the path, which is relative to the task, or commit the file",
        ),
        (
            "computations/add/exec/file",
            "workflow/inputs/01-x/value: the task has no file \"computations/add/exec/file\"\n\
             try: correct the path, which is relative to the task, or commit the file",
        ),
        (
            "computations",
            "computations: is a directory, not a file of the task\n\
             try: read it as a tree: TREE('.:PATH'), with its path from the top of the repository",
        ),
        (
            "out",
            "out: leads out of the repository, to /etc/passwd\n\
             try: link only to what is committed with the task",
        ),
    ] {
        let task = TestTask::base().link("out", "/etc/passwd");
        task.node("inputs/01-x/", "file", path).tells(told);
    }
}

#[test]
fn a_member_has_a_plain_relative_path() {
    for (path, told) in [
        (
            "/a",
            "workflow/inputs/01-x/value: \"/a\" is not a plain relative path: no part of it may be empty, . or ..\n\
             try: write a path such as data/table.csv",
        ),
        (
            "../a",
            "workflow/inputs/01-x/value: \"../a\" is not a plain relative path: no part of it may be empty, . or ..\n\
             try: write a path such as data/table.csv",
        ),
        (
            "a//b",
            "workflow/inputs/01-x/value: \"a//b\" is not a plain relative path: no part of it may be empty, . or ..\n\
             try: write a path such as data/table.csv",
        ),
        (
            "a/",
            "workflow/inputs/01-x/value: \"a/\" is not a plain relative path: no part of it may be empty, . or ..\n\
             try: write a path such as data/table.csv",
        ),
        (
            "./a",
            "workflow/inputs/01-x/value: \"./a\" is not a plain relative path: no part of it may be empty, . or ..\n\
             try: write a path such as data/table.csv",
        ),
        (
            "",
            "workflow/inputs/01-x/value: has an empty first line\n\
             try: write its text into the first line",
        ),
    ] {
        TestTask::base()
            .node("inputs/01-x/", "member", path)
            .file("workflow/inputs/01-x/value", path)
            .node("inputs/01-x/inputs/00-dir/", "input", "x")
            .tells(told);
    }
}

#[test]
fn a_member_is_of_one_directory() {
    TestTask::base()
        .without("workflow/inputs/00-mul")
        .node("inputs/00-mul/", "member", "all/a")
        .node("inputs/00-mul/inputs/00-dir/", "input", "x")
        .node("inputs/00-mul/inputs/01-more/", "input", "x")
        .tells(
            "workflow/inputs/00-mul/inputs: the member all/a takes 1 input, not 2\n\
             try: its inputs are directory",
        );
}

#[test]
fn a_literal_has_a_name_in_the_storage() {
    for (name, told) in [
        (
            "/etc/x",
            "workflow/inputs/01-x/value: \"/etc/x\" is absolute; names are relative to the storage\n\
             try: give the name of a file in the storage, such as tinputs/ad/48103e4fc7",
        ),
        (
            "a/../../b",
            "workflow/inputs/01-x/value: \"a/../../b\" leads out of the storage\n\
             try: give the name of a file in the storage, such as tinputs/ad/48103e4fc7",
        ),
        (
            "./a",
            "workflow/inputs/01-x/value: \"./a\" is not a name\n\
             try: write a name without slashes and control characters, as in sort-2",
        ),
        (
            "a\tb",
            "workflow/inputs/01-x/value: \"a\\tb\" holds a slash or a control character\n\
             try: write a name without slashes and control characters, as in sort-2",
        ),
    ] {
        TestTask::base().node("inputs/01-x/", "literal", name).tells(told);
    }
}

#[test]
fn the_value_of_a_computation_is_a_name() {
    TestTask::base()
        .file("workflow/value", "../add")
        .file("workflow/inputs/00-mul/value", "..")
        .tells(
            "workflow/inputs/00-mul/value: \"..\" is not a name\n\
             try: write a name without slashes and control characters, as in sort-2\n\
             workflow/value: \"../add\" holds a slash or a control character\n\
             try: write a name without slashes and control characters, as in sort-2",
        );
}

#[test]
fn a_computation_is_in_the_library() {
    TestTask::base()
        .file("workflow/value", "ad")
        .file("workflow/inputs/00-mul/value", "exponential")
        .tells(
            "workflow/inputs/00-mul/value: there is no computation \"exponential\"\n\
             try: if computations/ is a submodule: git submodule update --init --recursive; if a link, check where it leads\n\
             workflow/value: there is no computation \"ad\"\n\
             try: did you mean \"add\"?",
        );
}

#[test]
fn a_computation_is_called_with_all_its_inputs() {
    TestTask::empty()
        .file("inputs", "x\n")
        .computation("take3", "a b c", "one two")
        .computation("take7", "a b c d e f g", "one two")
        .call("", "take3", &["x", "x", "x"])
        .node("inputs/03-take7/", "computation", "take7")
        .file("workflow/inputs/03-take7/outputs", "0\n")
        .tells(
            "workflow/inputs: take3 takes 3 inputs, not 4\n\
             try: its inputs are a, b, c\n\
             workflow/inputs/03-take7/inputs: take7 takes 7 inputs, not 0\n\
             try: its inputs are a, b, c, d, e, f, g",
        );
}

/// A task that calls a computation with the outputs `one` and `two`.
fn sliced(outputs: &str) -> TestTask {
    let task = TestTask::empty().file("inputs", "x\n").computation("take1", "a", "one two");
    task.call("", "take1", &["x"]).file("workflow/outputs", outputs)
}

#[test]
fn a_line_of_a_slice_is_a_number_or_a_name() {
    sliced("0\n1st\n-1\n+1\n100\n99999\n01\n").tells(
        "workflow/outputs:2: \"1st\" is not an output: there are one, two\n\
         workflow/outputs:3: \"-1\" is not an output: there are one, two\n\
         workflow/outputs:4: \"+1\" is not an output: there are one, two\n\
         workflow/outputs:5: \"100\" is not the number of an output (0 to 99)\n\
         try: write a number up to 99, or the name of an output\n\
         workflow/outputs:6: \"99999\" is not the number of an output (0 to 99)\n\
         try: write a number up to 99, or the name of an output",
    );
}

#[test]
fn a_slice_has_outputs_that_there_are() {
    sliced("0\n2\n01\n99\n").tells(
        "workflow/outputs:2: take1 has 2 outputs, so there is no 02\n\
         try: outputs are numbered from 00\n\
         workflow/outputs:4: take1 has 2 outputs, so there is no 99\n\
         try: outputs are numbered from 00",
    );
}

#[test]
fn a_slice_chooses_something() {
    sliced("\n").tells(
        "workflow/outputs: chooses no output\n\
         try: leave out the slice to pass up all outputs",
    );
}

#[test]
fn a_wrong_line_of_a_slice_does_not_hide_problems_of_other_lines() {
    sliced("uno\n02\n").tells(
        "workflow/outputs:1: \"uno\" is not an output: there are one, two\n\
         workflow/outputs:2: take1 has 2 outputs, so there is no 02\n\
         try: outputs are numbered from 00",
    );
}

#[test]
fn a_slice_has_at_most_100_outputs() {
    sliced(&"0\n".repeat(101)).tells(
        "workflow/outputs: lists more than 100 entries\n\
         try: put them into a directory, which is one value",
    );
}

#[test]
fn an_unknown_name_of_an_output_is_reported_with_the_existing_names() {
    let task = TestTask::empty().file("inputs", "x\n");
    task.call("", "divmod", &["x", "x"]).file("workflow/outputs", "quotent\n").tells(
        "workflow/outputs:1: \"quotent\" is not an output: there are quotient, remainder\n\
         try: did you mean quotient?",
    );
}

#[test]
fn a_name_of_several_outputs_chooses_none() {
    let task = TestTask::empty().file("inputs", "x\n").computation("twins", "x", "a a");
    task.call("", "twins", &["x"]).file("workflow/outputs", "a\n").tells(
        "workflow/outputs:1: \"a\" is the name of several outputs\n\
         try: write its number",
    );
}

#[test]
fn a_wrong_name_of_an_output_is_reported_once_below_a_sweep() {
    TestTask::sweep("", &[("factors/00-a", "1\n"), ("outputs", "rows\n")])
        .call("inputs/00-body/", "divmod", &["a", "a"])
        .file("workflow/inputs/00-body/outputs", "rest\nnone\n")
        .tells(
            "workflow/inputs/00-body/outputs:1: \"rest\" is not an output: there are quotient, remainder\n\
             workflow/inputs/00-body/outputs:2: \"none\" is not an output: there are quotient, remainder\n\
             workflow/outputs:1: \"rows\" is not an output: there are table, directory",
        );
}

#[test]
fn an_input_that_is_read_is_listed() {
    TestTask::base().file("inputs", "z\nstop word\n").tells(
        "workflow/inputs/00-mul/inputs/00-x/value: the task has no input \"x\"\n\
         try: name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points are computed); a text stands in quotes\n\
         workflow/inputs/00-mul/inputs/01-stop words/value: the task has no input \"stop words\"\n\
         try: did you mean \"stop word\"?\n\
         workflow/inputs/01-x/value: the task has no input \"x\"\n\
         try: name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points are computed); a text stands in quotes",
    );
    TestTask::base().file("inputs", "").tells(
        "workflow/inputs/00-mul/inputs/00-x/value: the task has no input \"x\"\n\
         try: name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points are computed); a text stands in quotes\n\
         workflow/inputs/00-mul/inputs/01-stop words/value: the task has no input \"stop words\"\n\
         try: name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points are computed); a text stands in quotes\n\
         workflow/inputs/01-x/value: the task has no input \"x\"\n\
         try: name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points are computed); a text stands in quotes",
    );
}

#[test]
fn an_input_is_listed_once() {
    TestTask::base().file("inputs", "x\nstop words\nx\n").tells(
        "inputs:3: the input \"x\" is also in line 1\n\
         try: rename it",
    );
}

#[test]
fn the_name_of_an_input_has_no_control_character() {
    TestTask::base().file("inputs", "x\nstop\twords\n").tells(
        "inputs:2: \"stop\\twords\" holds a slash or a control character\n\
         try: write a name without slashes and control characters, as in sort-2\n\
         workflow/inputs/00-mul/inputs/01-stop words/value: the task has no input \"stop words\"\n\
         try: name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points are computed); a text stands in quotes",
    );
}

#[test]
fn a_default_is_that_of_an_input() {
    TestTask::base().file("defaults/x", "1\n").file("defaults/y", "").tells(
        "defaults/y: the task has no input \"y\"\n\
         try: name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points are computed); a text stands in quotes",
    );
}

#[test]
fn a_definition_has_a_name_of_its_own() {
    TestTask::base().file("workflow/definition", "right\nx\nTASK\n").tells(
        "workflow/definition:2: \"x\" is an input of the task, and cannot be defined\n\
         try: rename it\n\
         workflow/definition:3: \"TASK\" cannot be the name of a definition\n\
         try: rename it",
    );
}

#[test]
fn a_definition_has_no_name_that_a_sweep_binds() {
    TestTask::base()
        .file("workflow/definition", "n\n")
        .without("workflow/inputs/01-x")
        .node("inputs/01-x/", "sweep", "")
        .file("workflow/inputs/01-x/factors/00-n", "1\n2\n")
        .node("inputs/01-x/inputs/00-body/", "input", "n")
        .tells(
            "workflow/definition:1: \"n\" is bound by a sweep, and cannot be defined\n\
             try: rename it",
        );
}

#[test]
fn the_directory_of_a_task_has_a_name_of_a_task() {
    let fault = crate::load::name(Path::new("/somewhere/ta\tsk")).unwrap_err();
    assert_eq!(fault.to_string(), "\"ta\\tsk\" holds a slash or a control character");
}

#[test]
fn choices_of_an_input_are_levels_and_its_first_one_is_its_default() {
    let task = || TestTask::base().file("choices/x", "1\n\n2\n");
    task().tells(
        "choices/x:2: the line is empty\n\
         try: remove it; a line '' is the empty text",
    );
    TestTask::base().file("choices/x", "1\n").tells(
        "choices/x: there are fewer than two choices\n\
         try: write the texts that the input may have, one a line, the default first; a file in defaults/ is a default alone",
    );
    TestTask::base().file("choices/x", "1\n1\n").tells(
        "choices/x:2: the row repeats line 1\n\
         try: remove one of them; replicates repeat points",
    );
    TestTask::base().file("choices/x", "1\n2\n").file("defaults/x", "1\n").tells(
        "choices/x: the input has a file in defaults, too\n\
         try: remove that: the first choice is the default",
    );
    TestTask::base().file("choices/y", "1\n2\n").tells(
        "choices/y: the task has no input \"y\"\n\
         try: name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points \
         are computed); a text stands in quotes",
    );
}
