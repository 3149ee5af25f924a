//! The files of a sweep, its points, its columns and its body.

use super::TestTask;

/// The factors of [`product`], unless a test has others.
const FACTORS: [(&str, &str); 2] = [("factors/00-a", "1\n2\n"), ("factors/01-b", "3\n5\n7\n")];

/// A sweep that multiplies two factors.
fn product(files: &[(&str, &str)]) -> TestTask {
    TestTask::sweep("", files).call("inputs/00-body/", "mul", &["a", "b"])
}

/// Checks what a file of a sweep with [`FACTORS`] tells, for each text.
#[track_caller]
fn tell(file: &str, texts: &[(&str, &str)]) {
    for (text, told) in texts {
        product(&FACTORS).file(&format!("workflow/{file}"), text).tells(told);
    }
}

#[test]
fn levels_are_lines_that_differ() {
    tell(
        "factors/00-a",
        &[
            (
                "1\n\n2\n",
                "workflow/factors/00-a:2: the line is empty\n\
                 try: remove it; a line '' is the empty text",
            ),
            (
                "1\n2\n1\n",
                "workflow/factors/00-a:3: the row repeats line 1\n\
                 try: remove one of them; replicates repeat points",
            ),
            (
                "",
                "workflow/factors/00-a: the factor has no levels\n\
                 try: write levels into it, one a line, or remove it",
            ),
        ],
    );
}

#[test]
fn a_factor_has_a_number_and_a_name_of_its_own() {
    tell(
        "factors/a",
        &[(
            "1",
            "workflow/factors/a: the name does not say in which order the factor stands\n\
             try: call it nn-NAME, or nn-TEXT.tsv, as in 00-threads",
        )],
    );
    tell(
        "factors/00-c",
        &[(
            "1",
            "workflow/factors/00-c: 00-a has the same number\n\
             try: give each factor a number of its own",
        )],
    );
    tell(
        "factors/02-b.tsv",
        &[(
            "b\n3\n",
            "workflow/factors/02-b.tsv: the name \"b\" is also bound by another factor\n\
             try: rename one of them, or put both into one .tsv file if they vary together",
        )],
    );
}

#[test]
fn the_body_reads_each_factor() {
    tell(
        "factors/02-c",
        &[(
            "1\n",
            "workflow/factors/02-c: the body does not read c\n\
             try: read it with a node of kind input, or in braces in the value of a node",
        )],
    );
}

#[test]
fn replicates_are_a_number_that_the_body_reads() {
    tell(
        "replicates",
        &[
            (
                "0",
                "workflow/replicates: \"0\" is not a number of replicates\n\
                 try: write a number such as 10, or 10..100 until seconds ±5%",
            ),
            (
                "2",
                "workflow/replicates: the body does not read replicate\n\
                 try: read it with a node of kind input, or in braces in the value of a node",
            ),
        ],
    );
}

/// A sweep with replicates until something is known.
fn measured(columns: &str, rule: &str) -> TestTask {
    TestTask::sweep("", &[("factors/00-n", "1\n"), ("columns", columns), ("replicates", rule)])
        .call("inputs/00-body/", "mul", &["n", "replicate"])
}

#[test]
fn replicates_end_by_a_column_of_results() {
    measured("00 seconds\n", "6..9 until seconds ±5%").tells("");
    measured("00 seconds\n", "5..9 until seconds ±5%").tells(
        "workflow/replicates: 5 replicates have no interval\n\
         try: begin with 6 or more: an interval of 95 % needs 6 values",
    );
    measured("00 seconds\n", "6..9 until second ±5%").tells(
        "workflow/replicates: the table has no column of results \"second\"\n\
         try: did you mean \"seconds\"? the columns are \"seconds\"",
    );
    measured("00 seconds\n", "6..9 until n ±5%").tells(
        "workflow/replicates: the table has no column of results \"n\"\n\
         try: the columns are \"seconds\"",
    );
    measured("00 **\n", "6..9 until seconds ±5%").tells(
        "workflow/replicates: replicates cannot end by a column of many rows: \"seconds\"\n\
         try: take a column of one value, such as 00 seconds or 00 *",
    );
    TestTask::sweep("", &[])
        .call("inputs/00-body/", "add", &["n", "n"])
        .node("inputs/01-points/", "points", "")
        .file("workflow/inputs/01-points/factors/00-n", "1\n")
        .file("workflow/inputs/01-points/replicates", "6..9 until sum ±5%")
        .tells(
            "workflow/inputs/01-points/replicates: points have no results, so their replicates cannot end by one\n\
             try: write a number, or write it in the sweep that takes the points",
        );
}

#[test]
fn rows_that_are_excluded_have_columns_and_are_there() {
    tell(
        "exclude.tsv",
        &[
            (
                "c\n1\n",
                "workflow/exclude.tsv:1: the points have no column \"c\"\n\
                 try: the columns are \"a\", \"b\"",
            ),
            (
                "a\n1\n8\n",
                "workflow/exclude.tsv:3: no point is excluded by a=8\n\
                 try: spell the values as the levels are spelled; an empty cell matches anything",
            ),
        ],
    );
}

#[test]
fn a_column_is_an_output_and_a_name() {
    tell(
        "columns",
        &[
            (
                "product\n",
                "workflow/columns:1: \"product\" is not the number or the name of an output, a blank and a name\n\
                 try: write a line such as 00 seconds, 00 * or 00 **",
            ),
            (
                "01 x\n",
                "workflow/columns:1: the body passes up 1, so there is no 01\n\
                 try: outputs are numbered from 00",
            ),
            (
                "00 a\n",
                "workflow/columns:1: the table has two columns \"a\"\n\
                 try: name the columns in the file columns",
            ),
            (
                "",
                "workflow/columns: there are no columns\n\
                 try: write a line for each, such as 00 seconds, or remove the file: then each output is a column",
            ),
        ],
    );
}

#[test]
fn a_unit_of_a_column_is_closed_and_of_one_column() {
    tell(
        "columns",
        &[
            (
                "00 a [s",
                "workflow/columns:1: \"00 a [s\" is not an output, a name, and at most a unit in brackets and less or more\n\
                 try: write a line such as 00 seconds [s] less, or 00 accuracy more",
            ),
            (
                "00 * [s]",
                "workflow/columns:1: \"00 * [s]\" has a unit or a direction, and stands for fields of JSON\n\
                 try: leave it out: the fields have units of their own, which their names may have",
            ),
        ],
    );
}

#[test]
fn a_file_of_a_sweep_has_at_most_a_mebibyte_without_levels() {
    let blank = " ".repeat((1 << 20) + 1);
    product(&FACTORS).file("workflow/columns", blank).tells(
        "workflow/columns: cannot be read: more than 1 MiB\n\
         try: ls -l shows what it is, and who may read it",
    );
}

#[test]
fn levels_have_more_than_a_mebibyte() {
    let levels: String = (0..10_000).map(|level| format!("{level:0150}\n")).collect();
    let task = product(&[("factors/00-a", &levels), ("factors/01-b", "1\n")]);
    assert_eq!(task.load().unwrap().task.sweeps.len(), 1);
    let factor = task.path("workflow/factors/00-a");
    std::fs::File::create(factor).unwrap().set_len((64 << 20) + 1).unwrap();
    task.tells(
        "workflow/factors/00-a: cannot be read: more than 64 MiB\n\
         try: ls -l shows what it is, and who may read it",
    );
}

#[test]
fn failures_are_allowed_by_an_empty_file() {
    tell(
        "allow-failed",
        &[(
            "no\n",
            "workflow/allow-failed: it has text, and only its existence counts\n\
             try: empty it if failed points are to become rows, or else remove it",
        )],
    );
}

#[test]
fn names_are_listed_of_points_that_are_computed() {
    tell(
        "names",
        &[(
            "a\n",
            "workflow/names: names are listed only of points that are computed\n\
             try: remove the file names: the factors are bound",
        )],
    );
}

#[test]
fn a_name_is_listed_once() {
    TestTask::sweep("s", &[("names", "x\ny\nx\n")])
        .node("inputs/01-points/", "input", "s")
        .call("inputs/00-body/", "mul", &["x", "y"])
        .tells(
            "workflow/names:3: the name \"x\" occurs twice\n\
             try: remove the line",
        );
}

#[test]
fn columns_of_a_text_are_not_empty() {
    TestTask::text("Inputs: s\nSWEEP((mul x y) s :columns :names 'x' 'y')").tells(
        "workflow.ce:2: there are no columns\n\
         | SWEEP((mul x y) s :columns :names 'x' 'y')\n\
         |                   ^\n\
         try: write a text for each, such as '00 seconds', or remove :columns: then each output is a column",
    );
}

#[test]
fn a_name_is_bound_once_on_a_way() {
    TestTask::sweep("a", &FACTORS).call("inputs/00-body/", "mul", &["a", "b"]).tells(
        "workflow/factors/00-a: the name \"a\" is an input of the task, or bound by a sweep around this one\n\
         try: give it another name",
    );
    TestTask::sweep("", &FACTORS)
        .node("inputs/00-body/", "sweep", "")
        .file("workflow/inputs/00-body/factors/00-a", "1")
        .call("inputs/00-body/inputs/00-body/", "mul", &["a", "b"])
        .tells(
            "workflow/inputs/00-body/factors/00-a: the name \"a\" is an input of the task, or bound by a sweep around this one\n\
             try: give it another name",
        );
}

#[test]
fn an_unbound_name_is_reported_with_the_nearest_one() {
    TestTask::sweep("", &[("factors/00-threads", "1")])
        .call("inputs/00-body/", "mul", &["threads", "thread"])
        .tells(
            "workflow/inputs/00-body/inputs/01-thread/value: the task has no input \"thread\"\n\
             try: did you mean \"threads\"?",
        );
}

#[test]
fn the_names_of_a_sweep_are_unknown_outside() {
    TestTask::empty()
        .file("inputs", "")
        .node("", "computation", "add")
        .node("inputs/00-t/", "sweep", "")
        .file("workflow/inputs/00-t/factors/00-n", "1")
        .call("inputs/00-t/inputs/00-body/", "mul", &["n", "n"])
        .node("inputs/01-n/", "input", "n")
        .tells(
            "workflow/inputs/01-n/value: the task has no input \"n\"\n\
             try: name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points are computed); a text stands in quotes",
        );
}

#[test]
fn a_sweep_has_points() {
    TestTask::sweep("x", &[]).call("inputs/00-body/", "mul", &["x", "x"]).tells(
        "workflow: the sweep has no points: it has no factors, and no input computes them\n\
         try: write levels into a file such as factors/00-threads, one a line",
    );
}

#[test]
fn a_body_reads_a_column_of_computed_points() {
    product(&FACTORS).node("inputs/01-points/", "file", "computations/add/inputs").tells(
        "workflow/inputs: the body reads no column of the points\n\
         try: read it with a node of kind input, or in braces in the value of a node",
    );
    TestTask::sweep("x", &[])
        .call("inputs/00-body/", "mul", &["x", "x"])
        .node("inputs/01-points/", "input", "x")
        .tells(
            "workflow/inputs: the body reads no column of the points\n\
             try: read it with a node of kind input, or in braces in the value of a node",
        );
}

#[test]
fn nested_sweeps_with_computed_points_list_their_names() {
    let task = TestTask::sweep("s", &[])
        .node("inputs/01-points/", "input", "s")
        .node("inputs/00-body/", "sweep", "")
        .node("inputs/00-body/inputs/01-points/", "input", "s")
        .call("inputs/00-body/inputs/00-body/", "mul", &["x", "y"]);
    task.tells(
        "workflow/inputs/00-body: two sweeps with computed points are nested, and it is not clear which one binds a name\n\
         try: list the names that the inner one binds in its file names",
    );
    task.file("workflow/inputs/00-body/names", "y\n").tells("");
}

/// A sweep in a sweep, each with more files. The outer one has all columns of the inner one.
fn nested(inner: &[(&str, &str)], outer: &[(&str, &str)]) -> TestTask {
    let files = [&[("factors/00-a", "1\n2"), ("columns", "00 **")], outer].concat();
    let task = TestTask::sweep("", &files)
        .node("inputs/00-body/", "sweep", "")
        .file("workflow/inputs/00-body/factors/00-b", "3\n4")
        .call("inputs/00-body/inputs/00-body/", "mul", &["a", "b"]);
    inner.iter().fold(task, |task, (file, text)| {
        task.file(&format!("workflow/inputs/00-body/{file}"), text)
    })
}

#[test]
fn a_nested_table_has_no_column_that_the_table_has_itself() {
    let failing = [("allow-failed", "")];
    nested(&failing, &failing).tells(
        "workflow/columns:1: the table has two columns \"status\": the table that ** takes has one, too\n\
         try: remove the file allow-failed of one of both sweeps, or take the table under a name in place of **",
    );
    nested(&[("columns", "00 a")], &[]).tells(
        "workflow/columns:1: the table has two columns \"a\": the table that ** takes has one, too\n\
         try: give another name to one of them",
    );
    nested(&failing, &[]).tells("");
    nested(&[], &failing).tells("");
    let text = "SWEEP(:factors/00-a '1' :columns '00 **' :allow-failed\n\
                :body SWEEP(:factors/00-b '3' :allow-failed :body (mul INPUT('a') INPUT('b'))))";
    TestTask::text(text).tells(
        "workflow.ce:1: the table has two columns \"status\": the table that ** takes has one, too\n\
         | SWEEP(:factors/00-a '1' :columns '00 **' :allow-failed\n\
         |                                  ^\n\
         try: remove :allow-failed of one of both sweeps, or take the table under a name in place of **",
    );
}

#[test]
fn a_body_passes_up_outputs_that_there_are() {
    let file = "inputs/00-body/outputs";
    tell(
        file,
        &[(
            "07\n",
            "workflow/inputs/00-body/outputs:1: mul has 1 output, so there is no 07\n\
             try: outputs are numbered from 00",
        )],
    );
    let none = product(&FACTORS).file(&format!("workflow/{file}"), "00\n");
    none.file("computations/mul/outputs", "").tells(
        "workflow/inputs/00-body/outputs:1: mul has 0 outputs, so there is no 00\n\
         try: outputs are numbered from 00",
    );
}

#[test]
fn a_sweep_is_not_its_own_body() {
    product(&FACTORS)
        .without("workflow/inputs/00-body/inputs/01-b")
        .node("inputs/00-body/inputs/01-1/", "computation", "add")
        .link("workflow/inputs/00-body/inputs/01-1/inputs/00-up", "../../../../..")
        .tells(
            "workflow/inputs/00-body/inputs/01-1/inputs: add takes 2 inputs, not 1\n\
             try: its inputs are a, b\n\
             workflow/inputs/00-body/inputs/01-1/inputs/00-up: leads back to workflow, which contains it\n\
             try: remove the link",
        );
}

#[test]
fn outputs_of_one_name_do_not_fit_into_the_directory_of_a_sweep() {
    let sweep = "SWEEP(ALL((mul a a) (mul a '3')) :over a 1 2 :columns '00 x' '01 y')";
    TestTask::text(sweep).tells("");
    TestTask::text(&format!("{sweep}[directory]")).tells(
        "workflow.ce:1: the directory has two outputs \"product\" of each point\n\
         | SWEEP(ALL((mul a a) (mul a '3')) :over a 1 2 :columns '00 x' '01 y')[directory]\n\
         | ^\n\
         try: give one of them another name where it is declared, or pass up one",
    );
    TestTask::text(&format!("{sweep}[table, directory]")).tells(
        "workflow.ce:1: the directory has two outputs \"product\" of each point\n\
         | SWEEP(ALL((mul a a) (mul a '3')) :over a 1 2 :columns '00 x' '01 y')[table, dire\n\
         | ^\n\
         try: give one of them another name where it is declared, or pass up one",
    );
    TestTask::text(&format!("s = {sweep}\nMEMBER('a=1/product' s[directory])")).tells(
        "workflow.ce:2: the directory has two outputs \"product\" of each point\n\
         | MEMBER('a=1/product' s[directory])\n\
         |                      ^\n\
         try: give one of them another name where it is declared, or pass up one",
    );
    TestTask::sweep("", &[("factors/00-a", "1\n2"), ("columns", "00 x\n"), ("outputs", "1\n")])
        .node("inputs/00-body/", "all", "")
        .call("inputs/00-body/inputs/00-x/", "mul", &["a", "a"])
        .call("inputs/00-body/inputs/01-y/", "mul", &["a", "a"])
        .tells(
            "workflow: the directory has two outputs \"product\" of each point\n\
             try: give one of them another name where it is declared, or pass up one",
        );
}

#[test]
fn a_condition_compares_columns_with_numbers_or_texts() {
    let cases = [
        (
            "a < ",
            "workflow/where:1: column 4: expected a name, a number or a text, and found the end\n\
             try: write it as in size <= 100 && host in ('red', 'blue'); a name with other characters than letters, digits, _ and . stands in braces, as in {first-size}",
        ),
        (
            "a = 1",
            "workflow/where:1: column 3: expected an operator or the end, and found \"=\"\n\
             try: write == here, as in size == 100 && (host == 'red' || host == 'blue')",
        ),
        (
            "a == '1'",
            "workflow/where:1: column 6: \"1\" is a text, and is compared with a number\n\
             try: leave the quotes out: all texts of the other side are numbers",
        ),
        (
            "c == 1",
            "workflow/where:1: column 1: the points have no \"c\"\n\
             try: the columns are \"a\", \"b\"; texts are in quotes",
        ),
        (
            "a + b",
            "workflow/where:1: column 1: expected a comparison, and this is a value\n\
             try: compare it, as in size != 0",
        ),
        (
            "b / (a - 1) > 1",
            "workflow/where:1: column 3: a division by zero, at a=1 b=3\n\
             try: leave such points out before, as in size != 0 && 100 / size < 5",
        ),
    ];
    tell("where", &cases);
}

#[test]
fn a_condition_is_one_line() {
    tell(
        "where",
        &[(
            "a == 1\nb == 3",
            "workflow/where: it has several lines, and a condition is one\n\
             try: join them in one line, with &&",
        )],
    );
}

#[test]
fn a_column_with_two_spellings_of_a_number_has_texts() {
    TestTask::sweep("", &[("factors/00-a", "1.1\n1.10\n2\n"), ("where", "a == 1.10")])
        .call("inputs/00-body/", "mul", &["a", "a"])
        .tells(
            "workflow/where:1: column 1: a is a text, since \"1.1\" and \"1.10\" are one number, and is compared with a number\n\
             try: write the other side in quotes, as it is spelled\n\
             warning: workflow/factors/00-a: \"1.1\" and \"1.10\" of a are different texts, and so different levels\n\
             try: spell them alike if one level is meant",
        );
}

#[test]
fn a_condition_that_leaves_nothing_is_reported() {
    tell(
        "where",
        &[(
            "a > 9\n",
            "warning: workflow/where: no point is left: the table is empty\n\
             try: leave out fewer points, or add some, and spell texts as the levels: ce table shows what is excluded",
        )],
    );
    let text = "SWEEP((add v v) :over v 'a' 'b'\n  :where 'v == \"A\"')\n";
    TestTask::text(text).tells(
        "warning: workflow.ce:2: no point is left: the table is empty\n\
         try: leave out fewer points, or add some, and spell texts as the levels: ce table shows what is excluded",
    );
    let text = "Inputs: w = 'a' or 'c'\nSWEEP((add v v) :over v 'a' 'b'\n  :where 'v == w')\n";
    TestTask::text(text).tells(
        "warning: workflow.ce:3: with w=c, no point is left: the table is empty\n\
         try: remove the choice, or add a level for it",
    );
    let text = "SWEEP((add v v) POINTS(:over v 1 2 :exclude ('v') ('1') ('2')) :names 'v')\n";
    TestTask::text(text).tells(
        "warning: workflow.ce:1: no point is left: the table is empty\n\
         try: leave out fewer points, or add some, and spell texts as the levels: ce table shows what is excluded",
    );
}

#[test]
fn points_have_no_column_of_an_input_that_the_body_reads() {
    let task = || {
        TestTask::sweep("size", &[])
            .node("inputs/01-points/", "points", "")
            .file("workflow/inputs/01-points/factors/00-x", "1\n2\n")
            .file("workflow/inputs/01-points/factors/01-size", "7\n")
    };
    let told = "workflow/inputs/01-points: the points have a column \"size\", and the body reads the input \"size\" of the task\n\
         try: give the column another name: the table would show its texts, and calls would read others";
    task().call("inputs/00-body/", "add", &["x", "size"]).tells(told);
    // Braces and resources read it, too.
    task()
        .call("inputs/00-body/", "add", &["x"])
        .node("inputs/00-body/inputs/01-y/", "file", "data/{size}")
        .tells(told);
    task()
        .call("inputs/00-body/", "add", &["x", "x"])
        .file("workflow/inputs/00-body/resources", "cpus {size}\n")
        .tells(told);
}

#[test]
fn a_name_that_is_listed_is_not_an_input() {
    TestTask::sweep("s size", &[("names", "x\nsize\n")])
        .node("inputs/01-points/", "input", "s")
        .call("inputs/00-body/", "add", &["x", "size"])
        .tells(
            "workflow/names: the name \"size\" is an input of the task, or bound by a sweep around this one\n\
             try: give it another name",
        );
}

#[test]
fn a_name_that_is_listed_is_not_a_factor() {
    TestTask::sweep("s", &[("factors/00-y", "5\n7\n"), ("names", "x\ny\n")])
        .node("inputs/01-points/", "input", "s")
        .call("inputs/00-body/", "add", &["x", "y"])
        .tells(
            "workflow/names:2: the name \"y\" occurs twice\n\
             try: remove the line",
        );
}

#[test]
fn levels_that_look_like_one_number_are_reported() {
    TestTask::sweep("", &[("factors/00-a", "1\n1.0\n2\n")])
        .call("inputs/00-body/", "add", &["a", "a"])
        .tells(
            "warning: workflow/factors/00-a: \"1\" and \"1.0\" of a are different texts, and so different levels\n\
             try: spell them alike if one level is meant",
        );
}

/// A sweep whose body asks for something.
fn asking(files: &[(&str, &str)], reads: &str, asks: &str) -> TestTask {
    let task = TestTask::sweep("", files).computation("run", "n", "seconds");
    task.call("inputs/00-body/", "run", &[reads]).file("workflow/inputs/00-body/resources", asks)
}

#[test]
fn using_a_factor_in_resources_does_not_count_as_reading_it() {
    let factors = [("factors/00-n", "1\n2\n"), ("factors/01-threads", "1\n2\n")];
    asking(&factors, "n", "cpus {threads}\n").tells(
        "workflow/factors/01-threads: the body does not read threads\n\
         try: read it with a node of kind input, or in braces in the value of a node",
    );
    asking(&factors[..1], "n", "cpus {thread}\n").tells(
        "workflow/inputs/00-body/resources:1: {thread} is neither an input of the task nor bound by a sweep around the node workflow/inputs/00-body\n\
         try: name an input of the task, a factor, or a column of computed points that :names lists; or write a number",
    );
    asking(&factors[1..], "threads", "cpus {threads}\n").tells("");
}

#[test]
fn a_text_reads_each_name_for_more_than_resources() {
    let call = "(run 'x' :resources 'cpus {cpus}' 'memory {memory}G')";
    for (points, told) in [
        (
            "OWN('sheet.tsv') :names 'cpus' 'memory'",
            "workflow.ce:1: the body reads no column of the points\n\
             | SWEEP((run 'x' :resources 'cpus {cpus}' 'memory {memory}G') OWN('sheet.tsv') :na\n\
             | ^\n\
             try: read it by its name in the body, or in braces in a constant or a name there",
        ),
        (
            ":over ('cpus' 'memory') (1 1) (3 2)",
            "workflow.ce:1: the body does not read cpus or memory\n\
             | urces 'cpus {cpus}' 'memory {memory}G') :over ('cpus' 'memory') (1 1) (3 2))\n\
             |                                         ^\n\
             try: read it by its name in the body, or in braces in a constant or a name there",
        ),
        (
            ":over cpus 1 3 :over memory 1 2",
            "workflow.ce:1: the body does not read cpus\n\
             | urces 'cpus {cpus}' 'memory {memory}G') :over cpus 1 3 :over memory 1 2)\n\
             |                                         ^\n\
             try: read it by its name in the body, or in braces in a constant or a name there\n\
             workflow.ce:1: the body does not read memory\n\
             | us}' 'memory {memory}G') :over cpus 1 3 :over memory 1 2)\n\
             |                                         ^\n\
             try: read it by its name in the body, or in braces in a constant or a name there",
        ),
    ] {
        let task = TestTask::text(&format!("SWEEP({call} {points})\n"));
        task.computation("run", "n", "s").file("sheet.tsv", "cpus\tmemory\n1\t1\n").tells(told);
    }
    let text = "SWEEP((run n :resources 'cpus 1') OWN('sheet.tsv') :names 'n' 'cpus')";
    let task = TestTask::text(text).computation("run", "n", "seconds");
    task.file("sheet.tsv", "n\tcpus\n").tells(
        "workflow.ce:1: the body does not read cpus\n\
         | n :resources 'cpus 1') OWN('sheet.tsv') :names 'n' 'cpus')\n\
         |                                         ^\n\
         try: read it by its name in the body, or in braces in a constant or a name there",
    );
}
