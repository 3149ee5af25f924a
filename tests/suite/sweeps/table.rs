//! The contents of a table, regardless of the order of execution.

use super::{FACTORS, product, sweep};
use crate::lab::{Lab, Library};

#[test]
fn a_table_has_the_order_of_the_points_after_any_order_of_execution() {
    let lab = product(&FACTORS).commit();
    let rows = [(1, 3, 3), (1, 5, 5), (1, 7, 7), (2, 3, 6), (2, 5, 10), (2, 7, 14)];
    let row = |(a, b, product)| format!("{{\"a\":{a},\"b\":{b},\"product\":{product}}}\n");
    let table = rows.map(row).concat();
    for options in [&["-j1"][..], &["-j4", "--no-sync"]] {
        drop(std::fs::remove_dir_all(lab.path("storage")));
        lab.ce_run(options).exit(0).says("6 calls: 6 computed").called(vec!["mul"; 6]);
        assert_eq!(lab.table(), table);
    }
    lab.ce_run(&[]).exit(0).says("6 calls: 6 reused").called(vec![]);
}

#[test]
fn the_order_of_execution_is_replicate_by_replicate_and_the_same_each_time() {
    let order = || {
        let lab = sweep("", &[("factors/00-n", "1\n2\n3\n4\n5\n6\n7\n8"), ("replicates", "3")])
            .computation(
                "tell",
                "n replicate",
                "out",
                r#"echo "$(cat "$2") $(cat "$1")" >>"$LAB_LOG"; cp "$1" "$3""#,
            )
            .call("inputs/00-body/", "tell", &["n", "replicate"])
            .commit();
        lab.ce_run(&["-j1"]).exit(0);
        lab.called().into_iter().filter(|line| line != "tell").collect::<Vec<_>>()
    };
    let lines = order();
    let replicates: Vec<&str> = lines.iter().map(|line| &line[..1]).collect();
    assert_eq!(replicates, [["1"; 8], ["2"; 8], ["3"; 8]].concat());
    let levels =
        |block: usize| lines[8 * block..][..8].iter().map(|it| &it[2..]).collect::<Vec<_>>();
    assert_ne!(
        levels(0),
        ["1", "2", "3", "4", "5", "6", "7", "8"],
        "a drift would look like an effect"
    );
    assert_eq!(levels(0), levels(1));
    assert_eq!(order(), lines);
}

/// As if each point had a program of its own, which is built first.
#[test]
fn replicates_behind_different_calls_are_executed_in_order() {
    let tell = r#"echo "$(cat "$2")" >>"$LAB_LOG"; cp "$1" "$3""#;
    let lab = sweep("", &[("factors/00-n", "1\n2\n3\n4\n5\n"), ("replicates", "3")])
        .computation("build", "n", "built", r#"cp "$1" "$2""#)
        .computation("tell", "built replicate", "out", tell)
        .node("inputs/00-body/", "computation", "tell")
        .call("inputs/00-body/inputs/00-built/", "build", &["n"])
        .node("inputs/00-body/inputs/01-replicate/", "input", "replicate")
        .commit();
    lab.ce_run(&["--only", "build"]).exit(0).called(vec!["build"; 5]);
    lab.ce_run(&["-j1"]).exit(0);
    let mut order = lab.called();
    order.retain(|line| line.len() == 1);
    assert_eq!(order, [["1"; 5], ["2"; 5], ["3"; 5]].concat());
}

#[test]
fn zipped_factors_vary_together_and_other_columns_are_labels() {
    let lab =
        product(&[("factors/00-x.tsv", "a\tname\n1\tone\n2\t\"two\"\n"), ("factors/01-b", "3")])
            .commit_with(Library::Submodule);
    lab.ce_run(&[]).exit(0).called(vec!["mul"; 2]);
    assert_eq!(
        lab.table(),
        "{\"a\":1,\"name\":\"one\",\"b\":3,\"product\":3}\n\
         {\"a\":2,\"name\":\"\\\"two\\\"\",\"b\":3,\"product\":6}\n"
    );
    let lab = lab.file("workflow/factors/00-x.tsv", "a\tname\n1\tuno\n2\tdue\n").commit_again();
    lab.ce_run(&[]).exit(0).called(vec![]);
    assert!(lab.table().contains("\"name\":\"uno\""));
}

/// A sweep over `n` whose body writes JSON.
fn json(script: &str, columns: &str) -> Lab {
    sweep("", &[("factors/00-n", "1\n2"), ("columns", columns)])
        .computation("json", "n", "one two", script)
        .call("inputs/00-body/", "json", &["n"])
        .commit()
}

#[test]
fn fields_of_objects_are_columns() {
    let script = r#"
        case $(cat "$1") in
            1) echo '{"x": 1.50, "s": "a\"b"}' >"$2";;
            2) echo '{"y": true, "x": null, "l": [1, 2]}' >"$2";;
        esac
        echo "$(cat "$1")0" >"$3""#;
    let lab = json(script, "01 tens\n00 *\n");
    lab.ce_run(&[]).exit(0);
    assert_eq!(
        lab.table(),
        "{\"n\":1,\"tens\":10,\"x\":1.50,\"s\":\"a\\\"b\",\"y\":null,\"l\":null}\n\
         {\"n\":2,\"tens\":20,\"x\":null,\"s\":null,\"y\":true,\"l\":\"[1, 2]\"}\n"
    );
}

#[test]
fn lines_of_an_output_are_rows() {
    let script = r#"for i in $(seq "$(cat "$1")"); do echo "{\"i\":$i}"; done >"$2"; echo x >"$3""#;
    let lab = json(script, "00 **\n01 text");
    lab.ce_run(&[]).exit(0);
    assert_eq!(
        lab.table(),
        "{\"n\":1,\"i\":1,\"text\":\"x\"}\n\
         {\"n\":2,\"i\":1,\"text\":\"x\"}\n\
         {\"n\":2,\"i\":2,\"text\":\"x\"}\n"
    );
}

#[test]
fn outputs_without_the_columns_fail_the_table_but_no_call() {
    for (script, columns, message) in [
        (r#"echo 1 >"$2"; echo 2 >"$3""#, "00 *", "output 00 at n=1: "),
        (r#"echo '{"n":1}' >"$2"; echo 2 >"$3""#, "00 *", "the table has two columns \"n\""),
        (r#"printf '{}\n{\n' >"$2"; echo 2 >"$3""#, "00 **", "output 00 at n=1: line 2: "),
    ] {
        let lab = json(script, columns);
        lab.ce_run(&[]).exit(1).says(message).says("  try: ").called(vec!["json"; 2]);
        lab.ce_run(&[]).exit(1).says(message).called(vec![]);
        assert!(lab.is_tidy());
    }
}

#[test]
fn the_directory_has_all_outputs_by_point() {
    let lab = product(&FACTORS[..1])
        .file("workflow/factors/01-b", "3\nx/y\n")
        .computation("mul", "a b", "product", r#"echo "$(cat "$1")*$(cat "$2")" >"$3""#)
        .file("workflow/outputs", "01")
        .commit();
    lab.ce_run(&[]).exit(0);
    let ran = lab.ce_run(&["-q"]).exit(0);
    let dir = lab.path("task").join(ran.lines()[0]);
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(read("a=1/b=3/product"), "1*3\n");
    assert_eq!(read("a=2/b=x%2Fy/product"), "2*x/y\n");
    assert_eq!(read("points.ndjson").lines().count(), 4);
}

#[test]
fn a_figure_is_a_call_that_reads_a_table() {
    let lab = sweep("", &[])
        .without("workflow")
        .computation("count", "table", "lines", r#"grep -c . "$1" >"$2""#)
        .node("", "computation", "count")
        .node("inputs/00-table/", "sweep", "results")
        .file("workflow/inputs/00-table/factors/00-n", "1\n2\n3")
        .call("inputs/00-table/inputs/00-body/", "mul", &["n", "n"])
        .commit();
    lab.ce_run(&[]).exit(0).called(vec!["mul", "mul", "mul", "count"]);
    assert_eq!(lab.output(), "3\n");
    // Drawing again runs nothing again.
    let lab = lab.isolated();
    std::fs::remove_dir_all(lab.path("storage")).unwrap();
    lab.ce_run(&[]).exit(0).says("4 computed");
    let lab = lab.computation("count", "table", "lines", r#"echo more >"$2""#).commit_again();
    lab.ce_run(&[]).exit(0).says("4 calls: 3 taken over, 1 computed");
}

#[test]
fn columns_take_outputs_by_their_numbers_or_their_names() {
    let columns = ("columns", "00 q\n01 r\n");
    let lab = sweep("", &[("factors/00-n", "7\n9\n"), columns])
        .call("inputs/00-body/", "divmod", &["n", "n"])
        .commit_with(Library::Submodule);
    lab.ce_run(&[]).exit(0).called(vec!["divmod", "divmod"]);
    let table = "{\"n\":7,\"q\":1,\"r\":0}\n{\"n\":9,\"q\":1,\"r\":0}\n";
    assert_eq!(lab.table(), table);
    // The table has the same name: the spelling of a column is not in the recipe.
    let lab = lab.file("workflow/columns", "quotient q\nremainder  r\n").commit_again();
    lab.ce_run(&[]).exit(0).says("1 table: 1 reused").called(vec![]);
    assert_eq!(lab.table(), table);
    lab.run("ce-sym", &[]).exit(0).shows(":columns 'quotient q' 'remainder r'");
    // Nor are units and directions, which both forms of a workflow keep.
    let lab =
        lab.file("workflow/columns", "quotient q [1]\nremainder  r [m/s] less\n").commit_again();
    lab.ce_run(&[]).exit(0).says("1 table: 1 reused").called(vec![]);
    let lines = ":columns 'quotient q [1]' 'remainder r [m/s] less'";
    lab.run("ce-sym", &[]).exit(0).shows(lines);
    lab.run("ce", &["convert", "--to", "text"]).exit(0);
    let text = std::fs::read_to_string(lab.path("task/workflow.ce")).unwrap();
    assert!(text.contains(lines), "{text}");
    lab.run("ce", &["convert", "--force", "--to", "directories"]).exit(0);
    let columns = std::fs::read_to_string(lab.path("task/workflow/columns")).unwrap();
    assert_eq!(columns, "quotient q [1]\nremainder r [m/s] less\n");
    // Names stand for the outputs that the body passes up.
    let lab = lab.file("workflow/inputs/00-body/outputs", "remainder\n");
    let ran = lab.run("ce", &["check"]).exit(2);
    ran.says("workflow/columns:1: \"quotient\" is not an output: there is remainder");
    let lab = lab.file("workflow/columns", "remaindr r\n");
    lab.run("ce", &["check"]).exit(2).says("try: did you mean remainder?");
    let lab = lab.file("workflow/columns", "remainder/ r\n").commit_again();
    lab.ce_run(&[]).exit(0).called(vec![]);
    assert_eq!(lab.table(), "{\"n\":7,\"r\":0}\n{\"n\":9,\"r\":0}\n");
    let lab = lab.file("workflow/columns", "0 r\n");
    lab.run("ce", &["check"]).exit(2).says("is not the number or the name of an output");
}
