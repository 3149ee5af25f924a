//! Sweeps in workflows that are one text.

use super::TestTask;

/// Checks what each of these texts tells as the workflow of a task with the inputs `x` and `y`, from line 2 on.
#[track_caller]
fn tell(texts: &[(&str, &str)]) {
    for (text, told) in texts {
        TestTask::text(&format!("Inputs: x, y\n{text}\n")).tells(told);
    }
}

#[test]
fn a_factor_has_levels_in_quotes_or_numbers() {
    tell(&[
        (
            "SWEEP((add x n) :over n)",
            "workflow.ce:2: the factor has no levels\n\
             | SWEEP((add x n) :over n)\n\
             |                 ^\n\
             try: write them behind its name, as in 1 2 4",
        ),
        (
            "SWEEP((add x n) :over n one two)",
            "workflow.ce:2: \"one\" is not a level\n\
             | SWEEP((add x n) :over n one two)\n\
             |                         ^\n\
             try: write 'one' if it is a level",
        ),
        (
            "SWEEP(:over n 1 2 y)",
            "workflow.ce:2: \"y\" is not a level\n\
             | SWEEP(:over n 1 2 y)\n\
             |                   ^\n\
             try: write 'y' if it is a level, or :body y if it is an expression",
        ),
        (
            "SWEEP((add x n) :over n 1 2 y)",
            "workflow.ce:2: \"y\" is not a level\n\
             | SWEEP((add x n) :over n 1 2 y)\n\
             |                             ^\n\
             try: write 'y' if it is a level",
        ),
        (
            "SWEEP((add x n) over n 1 2)",
            "workflow.ce:2: a constant stands in quotes: 1\n\
             | SWEEP((add x n) over n 1 2)\n\
             |                        ^\n\
             try: write '1'",
        ),
    ]);
}

#[test]
fn a_level_is_a_line() {
    tell(&[
        (
            "SWEEP((add x n) :over n |''| 1)",
            "workflow.ce:2: \"''\" cannot be a line: in a list of levels, it is the empty text\n\
             | SWEEP((add x n) :over n |''| 1)\n\
             |                         ^\n\
             try: write a text of one line, without white space around it",
        ),
        ("SWEEP((add x n) :over n '' 1)", ""),
        (
            "SWEEP((add x n) :over n ' 1')",
            "workflow.ce:2: \" 1\" cannot be a line: it begins or ends with white space\n\
             | SWEEP((add x n) :over n ' 1')\n\
             |                         ^\n\
             try: write a text of one line, without white space around it",
        ),
        (
            "SWEEP((add x n) :over n |2\\xa;3|)",
            "workflow.ce:2: \"2\\n3\" cannot be a line: it has a line end\n\
             | SWEEP((add x n) :over n |2\\xa;3|)\n\
             |                         ^\n\
             try: write a text of one line, without white space around it",
        ),
    ]);
}

#[test]
fn a_level_that_looks_like_a_range_and_a_comment_that_looks_like_code_are_warned_of() {
    tell(&[
        (
            "SWEEP((add x n) :over n 1-3)",
            "warning: workflow.ce:2: \"1-3\" is one level, and no range\n\
             try: for a range, write 1..8 without quotes in a text, or each number in a line of a list",
        ),
        (
            "SWEEP((add x n) :over n 1 2 ; :replicates 3\n)",
            "warning: workflow.ce:2: what stands behind ; is a comment, and looks like a part of the workflow\n\
             try: remove the ; if it is to count",
        ),
        ("SWEEP((add x n) :over n 3-1 1-3)", ""),
    ]);
}

#[test]
fn levels_differ() {
    tell(&[
        (
            "SWEEP((add x n) :over n 1 2\n  3 2)",
            "workflow.ce:3: this is the same as at 2:27\n\
             |   3 2)\n\
             |     ^\n\
             try: remove one of them; replicates repeat points",
        ),
        (
            "SWEEP((add n m) :over ('n' 'm') (1 2) (1 2))",
            "workflow.ce:2: this is the same as at 2:33\n\
             | SWEEP((add n m) :over ('n' 'm') (1 2) (1 2))\n\
             |                                       ^\n\
             try: remove one of them; replicates repeat points",
        ),
    ]);
}

#[test]
fn rows_have_values_that_can_be_used() {
    tell(&[
        (
            "SWEEP((add x n) :over ('n' 'm') (1 2) y)",
            "workflow.ce:2: \"y\" is not a row\n\
             | SWEEP((add x n) :over ('n' 'm') (1 2) y)\n\
             |                                       ^\n\
             try: write ('y') if it is a row",
        ),
        (
            "SWEEP((add m n) :over ('n' 'm') (1 2) ('3\t4' 5))",
            "workflow.ce:2: column \"n\": the value cannot be used: it is not one line without control characters\n\
             | SWEEP((add m n) :over ('n' 'm') (1 2) ('3 4' 5))\n\
             |                                       ^\n\
             try: write one short line; the task can read a file with more, by its name",
        ),
        (
            "SWEEP((add x n) :over ('n') (1) (''))",
            "workflow.ce:2: the line is empty\n\
             | SWEEP((add x n) :over ('n') (1) (''))\n\
             |                                 ^\n\
             try: remove it",
        ),
    ]);
}

#[test]
fn a_range_of_levels_has_plain_numbers() {
    tell(&[
        (
            "SWEEP((add x n) :over n 001..003)",
            "workflow.ce:2: \"001..003\" is not a range of numbers\n\
             | SWEEP((add x n) :over n 001..003)\n\
             |                         ^\n\
             try: write 1..8, 0..100+25 or 1..64*2, without zeros at begin or end; or quotes around it if it is a text",
        ),
        (
            "SWEEP((add n m) :over ('n' 'm') (1..3 4))",
            "workflow.ce:2: \"1..3\" is a range of levels, and a row has one text for each column\n\
             | SWEEP((add n m) :over ('n' 'm') (1..3 4))\n\
             |                                  ^\n\
             try: write rows, or quotes around it if it is a text",
        ),
    ]);
}

#[test]
fn a_name_is_bound_by_one_factor() {
    tell(&[(
        "SWEEP((add x n) :over n 1 2 :over n 3)",
        "workflow.ce:2: the name \"n\" is also bound by another factor\n\
         | SWEEP((add x n) :over n 1 2 :over n 3)\n\
         |                             ^\n\
         try: rename one of them, or write rows if they vary together, as in ('host' 'cores') ('red' 8)",
    )]);
}

#[test]
fn a_sweep_has_the_parts_that_there_are() {
    tell(&[
        (
            "SWEEP((add x n) :over n 1 2 :column '00 sum')",
            "workflow.ce:2: SWEEP has no \"column\"\n\
             | SWEEP((add x n) :over n 1 2 :column '00 sum')\n\
             |                             ^\n\
             try: did you mean \"columns\"?",
        ),
        (
            "SWEEP((add x n) :factors/00-n/m 1)",
            "workflow.ce:2: no file can have the name \"00-n/m\": it holds a slash or a zero byte, or has more than 255 bytes\n\
             | SWEEP((add x n) :factors/00-n/m 1)\n\
             |                 ^\n\
             try: write another name",
        ),
        (
            "SWEEP((add x n) :over n 1 :replicates many)",
            "workflow.ce:2: expected a number, such as 10, found \"many\"\n\
             | SWEEP((add x n) :over n 1 :replicates many)\n\
             |                                       ^",
        ),
    ]);
}

#[test]
fn a_body_reads_only_bound_names() {
    tell(&[
        (
            "SWEEP((add x m) :over n 1 2)",
            "workflow.ce:2: the task has no input \"m\"\n\
             | SWEEP((add x m) :over n 1 2)\n\
             |              ^\n\
             try: name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points are computed); a text stands in quotes",
        ),
        (
            "SWEEP((add x y) :over n 1 2)",
            "workflow.ce:2: the body does not read n\n\
             | SWEEP((add x y) :over n 1 2)\n\
             |                 ^\n\
             try: read it by its name in the body, or in braces in a constant or a name there",
        ),
        (
            "SWEEP((add x n) y x)",
            "workflow.ce:2: the task has no input \"n\"\n\
             | SWEEP((add x n) y x)\n\
             |              ^\n\
             try: name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points are computed); a text stands in quotes",
        ),
        (
            "SWEEP((add x n) POINTS(:over n 1 2))",
            "workflow.ce:2: the task has no input \"n\"\n\
             | SWEEP((add x n) POINTS(:over n 1 2))\n\
             |              ^\n\
             try: name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points are computed); a text stands in quotes",
        ),
        (
            "SWEEP((add x n) :over n 1 2 :points y)",
            "workflow.ce:2: the body reads no column of the points\n\
             | SWEEP((add x n) :over n 1 2 :points y)\n\
             | ^\n\
             try: read it by its name in the body, or in braces in a constant or a name there",
        ),
    ]);
}

#[test]
fn a_sweep_has_points() {
    tell(&[(
        "SWEEP((add x n))",
        "workflow.ce:2: the sweep has no points: it has no factors, and no input computes them\n\
         | SWEEP((add x n))\n\
         | ^\n\
         try: write levels, as in :over threads 1 2 4",
    )]);
}

#[test]
fn points_that_are_excluded_have_columns_and_are_there() {
    tell(&[
        (
            "SWEEP((add x n) :over n 1 2 :exclude ('m') (1))",
            "workflow.ce:2: the points have no column \"m\"\n\
             | SWEEP((add x n) :over n 1 2 :exclude ('m') (1))\n\
             |                                      ^\n\
             try: the columns are \"n\"",
        ),
        (
            "SWEEP((add x n) :over n 1 2 :exclude ('n') (3))",
            "workflow.ce:2: no point is excluded by n=3\n\
             | EP((add x n) :over n 1 2 :exclude ('n') (3))\n\
             |                                         ^\n\
             try: spell the values as the levels are spelled; an empty cell matches anything",
        ),
    ]);
}

#[test]
fn a_condition_is_in_quotes() {
    tell(&[
        (
            "SWEEP((add x n) :over n 1 2 :where n)",
            "workflow.ce:2: expected a condition in quotes, such as 'size < 100', found \"n\"\n\
             | SWEEP((add x n) :over n 1 2 :where n)\n\
             |                                    ^",
        ),
        (
            "SWEEP((add x n) :over n 1 2 :where 'n >')",
            "workflow.ce:2: column 4: expected a name, a number or a text, and found the end\n\
             | SWEEP((add x n) :over n 1 2 :where 'n >')\n\
             |                                    ^\n\
             try: write it as in size <= 100 && host in ('red', 'blue'); a name with other characters than letters, digits, _ and . stands in braces, as in {first-size}",
        ),
    ]);
}

#[test]
fn a_condition_compares_columns_of_the_points() {
    tell(&[
        (
            "SWEEP((add x n) :over n 1 2 :where 'm > 1')",
            "workflow.ce:2: column 1: the points have no \"m\"\n\
             | SWEEP((add x n) :over n 1 2 :where 'm > 1')\n\
             |                                    ^\n\
             try: the columns are \"n\"; texts are in quotes",
        ),
        (
            "SWEEP((add x n) :over n 1 'two' :where 'n > 1')",
            "workflow.ce:2: column 1: n is a text, since \"two\" is not a number, and is compared with a number\n\
             | SWEEP((add x n) :over n 1 'two' :where 'n > 1')\n\
             |                                        ^\n\
             try: write the other side in quotes, as it is spelled",
        ),
    ]);
}

#[test]
fn names_are_texts_of_computed_points() {
    tell(&[
        (
            "SWEEP((add x n) :names 'n' y)",
            "workflow.ce:2: \"y\" is not a text in quotes\n\
             | SWEEP((add x n) :names 'n' y)\n\
             |                            ^\n\
             try: write 'y' if it is a text, or :points y if it is an expression",
        ),
        (
            "SWEEP((add x n) :over n 1 2 :names 'n')",
            "workflow.ce:2: names are listed only of points that are computed\n\
             | SWEEP((add x n) :over n 1 2 :names 'n')\n\
             |                             ^\n\
             try: remove :names: the factors are bound",
        ),
    ]);
}

#[test]
fn a_column_is_an_output_and_a_name() {
    tell(&[
        (
            "SWEEP((add x n) :over n 1 2 :columns 'n')",
            "workflow.ce:2: \"n\" is not the number or the name of an output, a blank and a name\n\
             | SWEEP((add x n) :over n 1 2 :columns 'n')\n\
             |                                      ^\n\
             try: write '00 seconds', '00 *' or '00 **'",
        ),
        (
            "SWEEP((add x n) :over n 1 2 :columns '00 n')",
            "workflow.ce:2: the table has two columns \"n\"\n\
             | SWEEP((add x n) :over n 1 2 :columns '00 n')\n\
             |                                      ^\n\
             try: name the columns, as in :columns '00 seconds'",
        ),
        (
            "SWEEP((add x n) :over n\n 1\n 2\n :columns '07 a')",
            "workflow.ce:5: the body passes up 1, so there is no 07\n\
             |  :columns '07 a')\n\
             |           ^\n\
             try: outputs are numbered from 00",
        ),
        (
            "SWEEP(ALL((add n y) (add y n)) :over n 1 2)",
            "workflow.ce:2: the table has two columns \"sum\"\n\
             | SWEEP(ALL((add n y) (add y n)) :over n 1 2)\n\
             | ^\n\
             try: name the columns, as in :columns '00 seconds'",
        ),
    ]);
}

#[test]
fn names_in_braces_are_listed() {
    tell(&[
        (
            "SWEEP((add x OWN('{n}')) x)",
            "workflow.ce:2: the task has no file \"{n}\"\n\
             | SWEEP((add x OWN('{n}')) x)\n\
             |              ^\n\
             try: in braces, only names of inputs of the task and of sweeps around the node stand for texts; list what computed points bind in :names",
        ),
        (
            "SWEEP((add x x :resources 'cpus {cores}') x)",
            "workflow.ce:2: {cores} is neither an input of the task nor bound by a sweep around the node workflow.ce:2\n\
             try: name an input of the task, a factor, or a column of computed points that :names lists; or write a number\n\
             workflow.ce:2: the body reads no column of the points\n\
             | SWEEP((add x x :resources 'cpus {cores}') x)\n\
             | ^\n\
             try: read it by its name in the body, or in braces in a constant or a name there",
        ),
    ]);
}
