//! Names of computations that depend on factors: `{op}` is another computation for each level.

use super::TestTask;

/// A sweep over computations, whose body reads two inputs of the task.
fn over(levels: &str) -> TestTask {
    TestTask::sweep("x y", &[("factors/00-op", levels), ("columns", "00 value\n")])
        .computation("max", "a b", "sum")
        .call("inputs/00-body/", "{op}", &["x", "y"])
}

#[test]
fn all_levels_are_computations() {
    over("add\nmax\n").tells("");
    over("add\ndivmodd\n").tells(
        "workflow/inputs/00-body/value: \"{op}\" where op is \"divmodd\": there is no computation \"divmodd\"\n\
         try: did you mean \"divmod\"? else make it, or remove what leads to it: a choice of an input, or points, by :exclude (exclude.tsv)",
    );
    over("add\na/b\n").tells(
        "workflow/inputs/00-body/value: \"{op}\" where op is \"a/b\": \"a/b\" holds a slash or a control character\n\
         try: write a name without slashes and control characters, as in sort-2",
    );
}

#[test]
fn all_computations_have_the_same_inputs() {
    for (inputs, told) in [
        (
            "a b c",
            "workflow/inputs/00-body/value: \"{op}\" where op is \"other\": other has the inputs a, b, c; add has the inputs a, b\n\
             try: give all computations that the name leads to the same inputs, or remove what leads to one: a choice of an input, or points, by :exclude (exclude.tsv)",
        ),
        (
            "a c",
            "workflow/inputs/00-body/value: \"{op}\" where op is \"other\": other has the inputs a, c; add has the inputs a, b\n\
             try: give all computations that the name leads to the same inputs, or remove what leads to one: a choice of an input, or points, by :exclude (exclude.tsv)",
        ),
        (
            "",
            "workflow/inputs/00-body/value: \"{op}\" where op is \"other\": other has no inputs; add has the inputs a, b\n\
             try: give all computations that the name leads to the same inputs, or remove what leads to one: a choice of an input, or points, by :exclude (exclude.tsv)",
        ),
    ] {
        over("add\nother\n").computation("other", inputs, "sum").tells(told);
    }
}

#[test]
fn all_computations_have_the_same_outputs() {
    for (outputs, told) in [
        (
            "sum/",
            "workflow/inputs/00-body/value: \"{op}\" where op is \"other\": other has the outputs sum/; add has the outputs sum\n\
             try: give all computations that the name leads to the same outputs, or remove what leads to one: a choice of an input, or points, by :exclude (exclude.tsv)",
        ),
        (
            "sum b",
            "workflow/inputs/00-body/value: \"{op}\" where op is \"other\": other has the outputs sum, b; add has the outputs sum\n\
             try: give all computations that the name leads to the same outputs, or remove what leads to one: a choice of an input, or points, by :exclude (exclude.tsv)",
        ),
    ] {
        over("add\nother\n").computation("other", "a b", outputs).tells(told);
    }
}

#[test]
fn a_computation_with_a_problem_is_reported_once() {
    over("add\nmax\n").mode("computations/max/exec", 0o644).tells(
        "computations/max/exec: is not executable\n\
         try: chmod +x, and commit the change of mode",
    );
}

#[test]
fn at_least_one_point_is_left() {
    over("add\n").file("workflow/exclude.tsv", "op\nadd\n").tells(
        "workflow/inputs/00-body/value: all points are excluded, so the name stands for no computation\n\
         try: leave out fewer points in exclude.tsv and where",
    );
}

#[test]
fn a_factor_with_a_similar_name_is_suggested() {
    over("add\nmax\n").file("workflow/inputs/00-body/value", "{opp}").tells(
        "workflow/inputs/00-body/value: there is no computation \"{opp}\"\n\
         try: did you mean \"{op}\"?",
    );
}

#[test]
fn an_input_of_the_task_names_no_computation() {
    let task = over("add\nmax\n").file("workflow/inputs/00-body/value", "{x}");
    task.tells(
        "workflow/inputs/00-body/value: the name of a computation cannot depend on \"x\", an input of the task\n\
         try: give the input its choices, as in Inputs: x = 'a' or 'b', or make it a factor of a sweep: all computations are known when the task is loaded",
    );
    task.file("defaults/x", "add\n").tells(
        "workflow/inputs/00-body/value: the name of a computation cannot depend on \"x\", an input of the task\n\
         try: give the input its choices, as in Inputs: x = 'a' or 'b', or make it a factor of a sweep: all computations are known when the task is loaded",
    );
}

#[test]
fn computed_points_name_no_computation() {
    let task = over("add\n").without("workflow/factors").node("inputs/01-points/", "input", "x");
    task.tells(
        "workflow/inputs/00-body/value: the name of a computation cannot depend on \"op\": its texts are computed\n\
         try: make it a factor of a sweep, so that all computations are known when the task is loaded",
    );
    task.file("workflow/names", "op\n").tells(
        "workflow/inputs/00-body/value: the name of a computation cannot depend on \"op\": its texts are computed\n\
         try: make it a factor of a sweep, so that all computations are known when the task is loaded",
    );
}

#[test]
fn names_of_several_factors_are_those_of_their_points() {
    let task = || {
        over("add\nmax\n")
            .file("workflow/factors/01-size", "big\nsmall\n")
            .file("workflow/inputs/00-body/value", "{op}-{size}")
            .computation("add-big", "a b", "c")
            .computation("add-small", "a b", "c")
            .computation("max-small", "a b", "c")
    };
    task().tells(
        "workflow/inputs/00-body/value: \"{op}-{size}\" where op is \"max\", size is \"big\": there is no computation \"max-big\"\n\
         try: make it, or remove what leads to it: a choice of an input, or points, by :exclude (exclude.tsv)",
    );
    // Computations of points that are left out need not exist.
    task().file("workflow/exclude.tsv", "size\top\nbig\tmax\n").tells("");
    task().file("workflow/where", "op != 'max' || size == 'small'").tells("");
    let together = "size\top\nbig\tadd\nsmall\tmax\n";
    task().without("workflow/factors").file("workflow/factors/00-both.tsv", together).tells("");
}

#[test]
fn names_are_those_of_all_sweeps_around() {
    let task = |sizes: &str| {
        TestTask::sweep("x", &[("factors/00-op", "add\nmax\n"), ("columns", "00 *\n")])
            .node("inputs/00-body/", "sweep", "")
            .file("workflow/inputs/00-body/factors/00-size", sizes)
            .file("workflow/inputs/00-body/columns", "00 value\n")
            .call("inputs/00-body/inputs/00-body/", "{op}-{size}", &["x", "x"])
            .computation("add-big", "a b", "c")
            .computation("max-big", "a b", "c")
    };
    task("big\n").tells("");
    task("big\nhuge\n").tells(
        "workflow/inputs/00-body/inputs/00-body/value: \"{op}-{size}\" where op is \"add\", size is \"huge\": there is no computation \"add-huge\"\n\
         try: make it, or remove what leads to it: a choice of an input, or points, by :exclude (exclude.tsv)",
    );
}

#[test]
fn the_levels_of_each_sweep_that_shares_a_body_are_checked() {
    let task = |levels: &str| {
        let sweep =
            |levels: &str| format!("SWEEP(({{op}} x y)[00] :over op {levels} :columns '00 value')");
        let text = format!("Inputs: x, y\n(mul {}\n{})", sweep("'add'"), sweep(levels));
        TestTask::text(&text).computation("max", "a b", "sum")
    };
    task("'max' 'add'").tells("");
    task("'max' 'ad'").tells(
        "workflow.ce:3: \"{op}\" where op is \"ad\": there is no computation \"ad\"\n\
         | SWEEP(({op} x y)[00] :over op 'max' 'ad' :columns '00 value'))\n\
         |       ^\n\
         try: did you mean \"add\"? else make it, or remove what leads to it: a choice of an input, or points, by :exclude (exclude.tsv)",
    );
}

#[test]
fn braces_that_name_nothing_are_part_of_the_name() {
    let task = over("add\n").file("workflow/inputs/00-body/value", "{z}{op}");
    task.computation("{z}add", "a b", "c").tells("");
}

#[test]
fn a_node_of_a_text_has_the_signature_that_its_computations_share() {
    let sweep = |levels: &str, body: &str| {
        let text = format!("Inputs: x, y\nSWEEP({body} :over op {levels} :columns '00 value')");
        TestTask::text(&text).computation("max", "a b", "sum")
    };
    sweep("'add' 'max'", "({op} x y)").tells("");
    for (levels, body, told) in [
        (
            "'add' 'max'",
            "({op} x)",
            "workflow.ce:2: {op} takes 2 inputs, not 1\n\
             | SWEEP(({op} x) :over op 'add' 'max' :columns '00 value')\n\
             |       ^\n\
             try: its inputs are a, b",
        ),
        (
            "'add' 'max'",
            "({op} x y)[01]",
            "workflow.ce:2: {op} has 1 output, so there is no 01\n\
             | SWEEP(({op} x y)[01] :over op 'add' 'max' :columns '00 value')\n\
             |       ^\n\
             try: outputs are numbered from 00",
        ),
        (
            "'add' 'max'",
            "({x} op y)[00]",
            "workflow.ce:2: the name of a computation cannot depend on \"x\", an input of the task\n\
             | SWEEP(({x} op y)[00] :over op 'add' 'max' :columns '00 value')\n\
             |       ^\n\
             try: give the input its choices, as in Inputs: x = 'a' or 'b', or make it a factor of a sweep: all computations are known when the task is loaded",
        ),
        (
            "'add' 'a/b'",
            "({op} x y)[00]",
            "workflow.ce:2: \"{op}\" where op is \"a/b\": \"a/b\" holds a slash or a control character\n\
             | SWEEP(({op} x y)[00] :over op 'add' 'a/b' :columns '00 value')\n\
             |       ^\n\
             try: write a name without slashes and control characters, as in sort-2",
        ),
        (
            "'add' 'divmod'",
            "(add ({op} x y))",
            "workflow.ce:2: \"{op}\" where op is \"divmod\": divmod has the inputs dividend, divisor; add has the inputs a, b\n\
             | SWEEP((add ({op} x y)) :over op 'add' 'divmod' :columns '00 value')\n\
             |            ^\n\
             try: give all computations that the name leads to the same inputs, or remove what leads to one: a choice of an input, or points, by :exclude (exclude.tsv)",
        ),
        (
            "'add' 'no'",
            "({op} x y)[00]",
            "workflow.ce:2: \"{op}\" where op is \"no\": there is no computation \"no\"\n\
             | SWEEP(({op} x y)[00] :over op 'add' 'no' :columns '00 value')\n\
             |       ^\n\
             try: make it, or remove what leads to it: a choice of an input, or points, by :exclude (exclude.tsv)",
        ),
    ] {
        sweep(levels, body).tells(told);
    }
    TestTask::text("Inputs: x, y\nSWEEP(({op} x y)[00] x :names 'op')").tells(
        "workflow.ce:2: the name of a computation cannot depend on \"op\": its texts are computed\n\
         | SWEEP(({op} x y)[00] x :names 'op')\n\
         |       ^\n\
         try: make it a factor of a sweep, so that all computations are known when the task is loaded",
    );
}
