//! Workflows that are one text: calls, names, definitions and resources.

use super::TestTask;

/// Checks what each of these texts tells as the workflow of a task with the inputs `x` and `y`, from line 2 on.
#[track_caller]
fn tell(texts: &[(&str, &str)]) {
    for (text, told) in texts {
        TestTask::text(&format!("Inputs: x, y\n{text}\n")).tells(told);
    }
}

#[test]
fn a_bracket_is_closed_once() {
    tell(&[
        (
            "(add x y",
            "workflow.ce:2: the expression that begins at 2:1 is not closed\n\
             | (add x y\n\
             | ^\n\
             try: write the `)` that is missing",
        ),
        (
            "(add x (mul x y)",
            "workflow.ce:2: the expression that begins at 2:1 is not closed\n\
             | (add x (mul x y)\n\
             | ^\n\
             try: write the `)` that is missing",
        ),
        (
            "sum = (add x y\nproduct = (mul x y)\n(add sum product)",
            "workflow.ce:3: \"product\" is defined within the expression that begins at 2:7, which is not closed\n\
             | product = (mul x y)\n\
             | ^\n\
             try: write the `)` that is missing before it; a label of an input is written :NAME",
        ),
        (
            "(add x y))",
            "workflow.ce:2: the expression before this is the workflow, and nothing may follow it\n\
             | (add x y))\n\
             |          ^\n\
             try: remove the `)`",
        ),
        (
            "(add x y)[sum",
            "workflow.ce:3: expected `,` or `]`, found the end\n\
             | \n\
             | ^",
        ),
    ]);
}

#[test]
fn a_call_is_in_brackets_and_has_no_commas() {
    tell(&[
        (
            "(add x, y)",
            "workflow.ce:2: there is a comma between arguments\n\
             | (add x, y)\n\
             |       ^\n\
             try: separate them by spaces",
        ),
        (
            "add(x, y)",
            "workflow.ce:2: \"add\" is not a kind of node\n\
             | add(x, y)\n\
             | ^\n\
             try: write (add ...) if it is a computation: the bracket comes first",
        ),
        (
            "add x y",
            "workflow.ce:2: the expression before this is the workflow, and nothing may follow it\n\
             | add x y\n\
             |     ^\n\
             try: write a call in brackets, as in (add x y); NAME = before what others name; and the line Inputs: first",
        ),
    ]);
}

#[test]
fn a_constant_is_in_plain_quotes() {
    tell(&[
        (
            "(add ‘x’ y)",
            "workflow.ce:2: '‘' cannot begin a text\n\
             | (add ‘x’ y)\n\
             |      ^\n\
             try: write texts in plain quotes, as in 'x'",
        ),
        (
            "(add \"5\" y)",
            "workflow.ce:2: '\"' cannot begin a text\n\
             | (add \"5\" y)\n\
             |      ^\n\
             try: write texts in plain quotes, as in 'x'",
        ),
        (
            "(add x 5)",
            "workflow.ce:2: a constant stands in quotes: 5\n\
             | (add x 5)\n\
             |        ^\n\
             try: write '5'",
        ),
        (
            "(add x :b 8)",
            "workflow.ce:2: a constant stands in quotes: 8\n\
             | (add x :b 8)\n\
             |           ^\n\
             try: write '8'",
        ),
        (
            "(add 'a\u{1b}b' x)",
            "workflow.ce:2: the control character '\\u{1b}' cannot stand in quotes\n\
             | (add 'a�b' x)\n\
             |        ^\n\
             try: write it in bars, by its number, as in |a\\x1b;b|",
        ),
    ]);
}

#[test]
fn a_text_ends_with_one_workflow() {
    tell(&[
        (
            "sum := (add x y)\nsum",
            "workflow.ce:2: the expression before this is the workflow, and nothing may follow it\n\
             | sum := (add x y)\n\
             |     ^\n\
             try: write a call in brackets, as in (add x y); NAME = before what others name; and the line Inputs: first",
        ),
        (
            "sum = (add x y)",
            "workflow.ce:2: the text ends with the definition of \"sum\", and has no workflow\n\
             | sum = (add x y)\n\
             | ^\n\
             try: write the expression that the task is; it may be sum alone",
        ),
        (
            "sum = (add x y)\n(mul sum sum)\n(add sum sum)",
            "workflow.ce:4: the expression before this is the workflow, and nothing may follow it\n\
             | (add sum sum)\n\
             | ^\n\
             try: write a call in brackets, as in (add x y); NAME = before what others name; and the line Inputs: first",
        ),
    ]);
}

#[test]
fn a_definition_has_a_name_of_its_own() {
    tell(&[
        (
            "sum = (add x y)\nsum = (mul x y)\nsum",
            "workflow.ce:3: \"sum\" is defined twice: first at 2:1\n\
             | sum = (mul x y)\n\
             | ^\n\
             try: rename it",
        ),
        (
            "x = (add y y)\n(mul x x)",
            "workflow.ce:2: \"x\" is an input of the task, and cannot be defined\n\
             | x = (add y y)\n\
             | ^\n\
             try: rename it",
        ),
        (
            "TASK = (add x x)\nTASK",
            "workflow.ce:2: \"TASK\" is the name of the workflow itself\n\
             | TASK = (add x x)\n\
             | ^\n\
             try: give it another name",
        ),
    ]);
}

#[test]
fn a_definition_is_no_part_of_itself() {
    tell(&[
        (
            "sum = (add sum y)\nsum",
            "workflow.ce:2: \"sum\" is a part of what defines it\n\
             | sum = (add sum y)\n\
             |            ^\n\
             try: name another expression in it",
        ),
        (
            "a = (add b y)\nb = (add a y)\na",
            "workflow.ce:3: \"a\" is a part of what defines it\n\
             | b = (add a y)\n\
             |          ^\n\
             try: name another expression in it",
        ),
    ]);
}

#[test]
fn a_name_is_that_of_an_input_or_a_definition() {
    tell(&[
        (
            "(add\n  x z)",
            "workflow.ce:3: the task has no input \"z\"\n\
             |   x z)\n\
             |     ^\n\
             try: name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points are computed); a text stands in quotes",
        ),
        (
            "sum = (add x y)\n(mul smu x)",
            "workflow.ce:3: the task has no input \"smu\"\n\
             | (mul smu x)\n\
             |      ^\n\
             try: did you mean \"sum\"?\n\
             warning: workflow.ce:2: nothing needs \"sum\", which is defined here; the names in it are not checked\n\
             try: remove it, or name it in the workflow",
        ),
        (
            "sum = (add x y)\n(mul n sum)",
            "workflow.ce:3: the task has no input \"n\"\n\
             | (mul n sum)\n\
             |      ^\n\
             try: name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points are computed); a text stands in quotes",
        ),
    ]);
}

#[test]
fn a_computation_is_there_and_takes_its_inputs() {
    tell(&[
        (
            "(sum x y)",
            "workflow.ce:2: there is no computation \"sum\"\n\
             | (sum x y)\n\
             | ^\n\
             try: if computations/ is a submodule: git submodule update --init --recursive; if a link, check where it leads",
        ),
        (
            "(ad x y)",
            "workflow.ce:2: there is no computation \"ad\"\n\
             | (ad x y)\n\
             | ^\n\
             try: did you mean \"add\"?",
        ),
        (
            "(add x)",
            "workflow.ce:2: add takes 2 inputs, not 1\n\
             | (add x)\n\
             | ^\n\
             try: its inputs are a, b",
        ),
    ]);
}

#[test]
fn a_label_stands_before_its_input() {
    tell(&[
        (
            "(add :b x y)",
            "workflow.ce:2: the label \"b\" stands before the input \"a\"\n\
             | (add :b x y)\n\
             | ^\n\
             try: put the expressions into the order of the inputs",
        ),
        (
            "(add :b x :a y)",
            "workflow.ce:2: the label \"b\" stands before the input \"a\"\n\
             | (add :b x :a y)\n\
             | ^\n\
             try: put the expressions into the order of the inputs\n\
             workflow.ce:2: the label \"a\" stands before the input \"b\"\n\
             | (add :b x :a y)\n\
             | ^\n\
             try: put the expressions into the order of the inputs",
        ),
    ]);
}

#[test]
fn a_slice_has_outputs_that_there_are() {
    tell(&[
        (
            "(add x y)[02]",
            "workflow.ce:2: add has 1 output, so there is no 02\n\
             | (add x y)[02]\n\
             | ^\n\
             try: outputs are numbered from 00",
        ),
        (
            "sum = (add x y)\n(mul sum[01] x)",
            "workflow.ce:3: add has 1 output, so there is no 01\n\
             | (mul sum[01] x)\n\
             |      ^\n\
             try: outputs are numbered from 00",
        ),
        (
            "(add x[00] y)",
            "workflow.ce:2: \"x\" passes up one value: there is nothing to choose\n\
             | (add x[00] y)\n\
             |      ^\n\
             try: leave out the brackets",
        ),
        (
            "(add x x)[|sum\\xa;sum|]",
            "workflow.ce:2: \"sum\\nsum\" cannot be a line: it has a line end\n\
             | (add x x)[|sum\\xa;sum|]\n\
             | ^\n\
             try: write a text of one line, without white space around it",
        ),
    ]);
}

#[test]
fn a_slice_of_a_definition_chooses_among_its_outputs() {
    tell(&[
        (
            "parts = (divmod x y)[00, 01]\n(add parts[quotient] x)",
            "workflow.ce:3: \"parts\" passes up the outputs 00, 01, chosen by number, and quotient is a name\n\
             | (add parts[quotient] x)\n\
             |      ^\n\
             try: choose by names where \"parts\" is defined, as in [quotient]; or count here: the first output that it passes up is parts[0]",
        ),
        (
            "parts = (divmod x y)[quotient]\n(add parts[remainder] x)",
            "workflow.ce:3: \"parts\" passes up quotient, and no remainder\n\
             | (add parts[remainder] x)\n\
             |      ^\n\
             try: name one of these, count them from 00, or choose more where it is defined",
        ),
    ]);
}

#[test]
fn a_line_of_resources_is_one_text_in_quotes() {
    tell(&[
        (
            "(add x y :resources 'cpus' 8)",
            "workflow.ce:2: a line of resources is one text in quotes: cpus 8\n\
             | (add x y :resources 'cpus' 8)\n\
             |                     ^\n\
             try: write :resources 'cpus 8'",
        ),
        (
            "(add x y :resources 'exclusive' 'memory' '2G')",
            "workflow.ce:2: a line of resources is one text in quotes: memory 2G\n\
             | (add x y :resources 'exclusive' 'memory' '2G')\n\
             |                                 ^\n\
             try: write :resources 'memory 2G'",
        ),
        (
            "(add x y :resources cpus 8)",
            "workflow.ce:2: a line of resources is one text in quotes: cpus 8\n\
             | (add x y :resources cpus 8)\n\
             |                     ^\n\
             try: write :resources 'cpus 8'",
        ),
        (
            "(add x y :resources 8)",
            "workflow.ce:2: a line of resources is one text in quotes: 8\n\
             | (add x y :resources 8)\n\
             |                     ^\n\
             try: write what it is, too, as in :resources 'cpus 4'",
        ),
        (
            "(add x y :resources exclusive)",
            "workflow.ce:2: the task has no input \"exclusive\"\n\
             | (add x y :resources exclusive)\n\
             |                     ^\n\
             try: if a call asks for it, write one text in quotes, as in :resources 'cpus 4' 'exclusive'; else name it among the inputs of the task, define it, or bind it in a sweep",
        ),
        (
            "(add x :resources y 8)",
            "workflow.ce:2: a constant stands in quotes: 8\n\
             | (add x :resources y 8)\n\
             |                     ^\n\
             try: write '8'",
        ),
        (
            "(add x x :resources |cpus 4\\xa;memory 2G|)",
            "workflow.ce:2: \"cpus 4\\nmemory 2G\" cannot be a line: it has a line end\n\
             | (add x x :resources |cpus 4\\xa;memory 2G|)\n\
             |                     ^\n\
             try: write a text of one line, without white space around it",
        ),
    ]);
}

#[test]
fn resources_have_known_words_and_names() {
    tell(&[
        (
            "(add x y :resources 'cpus=8')",
            "workflow.ce:2: \"cpus=8\" is not a resource\n\
             try: write cpus 8",
        ),
        (
            "(add x y :resources 'cpu 4')",
            "workflow.ce:2: \"cpu\" is not a resource\n\
             try: did you mean \"cpus\"?",
        ),
        (
            "(add x\n x :resources 'cpus {n}')",
            "workflow.ce:3: {n} is neither an input of the task nor bound by a sweep around the node workflow.ce:2\n\
             try: name an input of the task, a factor, or a column of computed points that :names lists; or write a number",
        ),
    ]);
}

#[test]
fn a_file_of_the_task_is_there() {
    tell(&[
        (
            "(add x OWN('workflow'))",
            "workflow.ce:2: the task has no file \"workflow\"\n\
             | (add x OWN('workflow'))\n\
             |        ^\n\
             try: did you mean \"workflow.ce\"?",
        ),
        (
            "(add x OWN('computations'))",
            "computations: is a directory, not a file of the task\n\
             try: read it as a tree: TREE('.:PATH'), with its path from the top of the repository",
        ),
    ]);
}

#[test]
fn a_default_is_a_file_of_the_task() {
    TestTask::text("Inputs: x = OWN('no')\n(add x x)").tells(
        "workflow.ce:1: the task has no file \"no\"\n\
         try: correct the path, which is relative to the task, or commit the file",
    );
}

#[test]
fn several_expressions_are_written_and_have_no_slice() {
    tell(&[
        (
            "ALL()",
            "workflow.ce:2: expected an expression, found \")\"\n\
             | ALL()\n\
             |     ^",
        ),
        (
            "ALL(x y)[01]",
            "workflow.ce:2: the expression before this is the workflow, and nothing may follow it\n\
             | ALL(x y)[01]\n\
             |         ^\n\
             try: write a call in brackets, as in (add x y); NAME = before what others name; and the line Inputs: first",
        ),
        (
            "both = ALL(x y)\nboth[01]",
            "workflow.ce:3: \"both\" is several expressions, and has no slice of its own\n\
             | both[01]\n\
             | ^\n\
             try: define each of them, and name the one that is meant",
        ),
        (
            "(add ALL(x y x) y)",
            "workflow.ce:2: add takes 2 inputs, not 4\n\
             | (add ALL(x y x) y)\n\
             | ^\n\
             try: its inputs are a, b",
        ),
    ]);
}

#[test]
fn several_expressions_in_each_other_have_at_most_100_values() {
    let line = |n: u32| format!("a{n} = ALL(a{last} a{last})\n", last = n - 1);
    let lines: String = (1..=60).map(line).collect();
    TestTask::text(&format!("Inputs: x, y\na0 = ALL(x y)\n{lines}a60\n")).tells(
        "workflow.ce:8: lists more than 100 entries\n\
         | a6 = ALL(a5 a5)\n\
         |      ^\n\
         try: put them into a directory, which is one value",
    );
    // However long a chain of them is, each has one.
    let chain: String = (1..=2_000).map(|n| format!("a{n} = ALL(a{})\n", n - 1)).collect();
    TestTask::text(&format!("Inputs: x, y\na0 = (add x y)\n{chain}a2000\n")).tells("");
}

#[test]
fn an_unused_definition_is_reported() {
    tell(&[(
        "unused = (f z)\n(add x y)",
        "warning: workflow.ce:2: nothing needs \"unused\", which is defined here; the names in it are not checked\n\
         try: remove it, or name it in the workflow",
    )]);
}

#[test]
fn a_text_has_line_ends_of_another_system_and_comments() {
    for text in [
        "\u{feff}Inputs: x, y\r\n\r\nsum\t=\t(add x y)\r\nsum\r\n",
        "Inputs: x\n# \u{fffd}\n(add x x)",
    ] {
        TestTask::text(text).tells("");
    }
}

#[test]
fn a_text_has_any_number_of_lines() {
    let comments = "# comment\n".repeat(1 << 17);
    TestTask::text(&format!("Inputs: x, y\n{comments}(add x y")).tells(
        "workflow.ce:131074: the expression that begins at 131074:1 is not closed\n\
         | (add x y\n\
         | ^\n\
         try: write the `)` that is missing",
    );
}

#[test]
fn a_chain_of_definitions_has_any_length_and_paths_do_not_count() {
    let line = |n: u32| format!("a{n} = (add a{last} a{last})\n", last = n - 1);
    let lines: String = (1..10_000).map(line).collect();
    let task = TestTask::text(&format!("Inputs: x, y\na0 = (add x y)\n{lines}a9999"));
    let task = task.load().unwrap().task;
    assert_eq!(task.workflow.nodes().len(), 10_002);
    assert_eq!(task.definitions.len(), 10_000);
}

#[test]
fn a_line_has_any_length_and_brackets_any_depth() {
    let deep = 20_000;
    let task = |last: &str| {
        let (open, closed) = ("(add x ".repeat(deep), ")".repeat(deep));
        TestTask::text(&format!("Inputs: x, y\n{open}{last}{closed}"))
    };
    assert_eq!(task("y").load().unwrap().task.workflow.nodes().len(), deep + 2);
    let told = task("z").told();
    assert_eq!(told.lines().next(), Some("workflow.ce:2: the task has no input \"z\""));
}
