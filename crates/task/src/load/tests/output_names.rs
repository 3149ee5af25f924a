//! The names under which outputs leave the storage.

use ce_model::task::OutputName;

use super::TestTask;

/// The library of these tests: a plot with a suffix, and computations with several outputs, with a directory and with names that need care.
fn task(text: &str) -> TestTask {
    TestTask::text(&format!("Inputs: x, Größe.csv, y\n{text}\n"))
        .computation("plot", "a", "image.svg")
        .computation("align", "a", "reads.bam stats.txt")
        .computation("split", "a", "parts/ list.d/")
        .computation("odd", "a", ".hidden")
        .computation("csv", "a", "runs.CSV")
        .file("data/table.tsv", "")
}

/// The names of a workflow's outputs, or why they have none.
#[track_caller]
fn names(text: &str) -> String {
    let names = task(text).load().unwrap().task.output_names();
    match names {
        Ok(names) => names.iter().flat_map(OutputName::files).collect::<Vec<_>>().join(" "),
        Err(same) => same.to_string(),
    }
}

#[test]
fn an_output_has_the_name_that_the_workflow_defines_or_declares() {
    for (text, expected) in [
        // Of a computation.
        ("(add x y)", "sum"),
        ("(plot x)", "image.svg"),
        ("(align x)", "reads.bam stats.txt"),
        ("(align x)[stats.txt]", "stats.txt"),
        ("(split x)[parts]", "parts"),
        ("figure = (plot x)\nfigure", "figure.svg"),
        ("figure = (plot x)\n(plot x)", "image.svg"),
        ("stats = (align x)[stats.txt]\nstats", "stats.txt"),
        ("aligned = (align x)\naligned", "aligned-reads.bam aligned-stats.txt"),
        ("aligned = (align x)\naligned[stats.txt]", "aligned-stats.txt"),
        (
            "aligned = (align x)\nALL(aligned[stats.txt] (add aligned[reads.bam] x))",
            "aligned-stats.txt sum",
        ),
        ("made = (split x)[parts]\nmade", "made"),
        ("made = (split x)[list.d]\nmade", "made.d"),
        ("made = (split x)\nmade", "made-parts made-list.d"),
        ("(odd x)", "%2Ehidden"),
        // Of several expressions: the innermost definition counts.
        ("ALL((plot x) (add x y))", "image.svg sum"),
        ("figure = (plot x)\nALL(figure (plot y))", "figure.svg image.svg"),
        ("figure = (plot x)\nall = ALL(figure (add x y))\nall", "figure.svg all-sum"),
        ("a = (plot x)\nALL(ALL(a (add x y)) ALL(ALL((align x)[0])))", "a.svg sum reads.bam"),
        ("figure = (plot x)\nALL(figure figure)", "figure.svg figure.svg"),
        // Of inputs, files and trees.
        ("INPUT('Größe.csv')", "Größe.csv"),
        ("size = INPUT('Größe.csv')\nsize", "size.csv"),
        ("OWN('data/table.tsv')", "table.tsv"),
        ("MEMBER('a/b.c' x)", "b.c"),
        ("TREE('.:data')", "directory"),
        ("data = TREE('.:data')\ndata", "data"),
        ("'text'", "text"),
        // Of sweeps.
        ("SWEEP((add x n) :over n 1..3)", "table.ndjson table.csv"),
        ("sums = SWEEP((add x n) :over n 1..3)\nsums", "sums.ndjson sums.csv"),
        ("sums = SWEEP((add x n) :over n 1..3)\nsums[01]", "sums-directory"),
        ("sums = SWEEP((add x n) :over n 1..3)[01]\nsums", "sums"),
        ("SWEEP((add x n) :over n 1..3)[table, directory]", "table.ndjson table.csv directory"),
        ("ALL(:sums SWEEP((add x n) :over n 1..3))", "sums.ndjson sums.csv"),
        (
            "ALL(SWEEP((add x n) :over n 1..3)[table, directory] 'text')",
            "table.ndjson table.csv directory text",
        ),
        // Equal names.
        (
            "table = (plot x)\nALL((csv x) :runs SWEEP((add x n) :over n 1..3))",
            "the outputs 00 and 01 would both be called runs.csv",
        ),
        ("ALL((plot x) (plot y))", "the outputs 00 and 01 would both be called image.svg"),
        ("Sum = (mul x y)\nALL((add x y) Sum)", "the outputs 00 and 01 would both be called Sum"),
        ("s = SWEEP((add x n) :over n 1..3)\nALL(s s[01])", "s.ndjson s.csv s-directory"),
    ] {
        assert_eq!(names(text), expected, "{text}");
    }
}
