//! Plots: their texts, for any table; and that they are the same everywhere.

use std::fmt::Write;
use std::process::Command;

use super::{given, makes, one_call, refuses};
use crate::needs::needs;

/// The kinds of plots.
pub(super) const PLOTS: [&str; 3] = ["groups", "scatter", "history"];

/// The texts of a picture, which must be XML, a line for each.
#[track_caller]
pub(super) fn texts(svg: &str) -> Vec<String> {
    needs(&["python3"]);
    let script = "import sys, xml.etree.ElementTree as tree\n\
                  root = tree.fromstring(sys.argv[1])\n\
                  for text in root.iter('{http://www.w3.org/2000/svg}text'):\n\
                  \x20   print(''.join(text.itertext()).strip())";
    let mut python = Command::new("python3");
    python.args(["-c", script, svg]).env("PYTHONIOENCODING", "utf-8");
    let output = python.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The inputs of `plot`: of a table, x, y and group, it is this kind.
pub(super) fn of_kind<'a>(kind: &'a str, inputs: &[&'a str]) -> Vec<&'a str> {
    [&inputs[..1], &[kind], &inputs[1..]].concat()
}

/// A plot of this kind of a table, x, y and group.
#[track_caller]
pub(super) fn drawn(kind: &str, inputs: &[&str]) -> String {
    makes("plot", &of_kind(kind, inputs))
}

/// Returns the texts in a plot of a table.
#[track_caller]
pub(super) fn said(kind: &str, inputs: &[&str]) -> Vec<String> {
    texts(&drawn(kind, inputs))
}

#[track_caller]
pub(super) fn has(said: &[String], text: &str) {
    assert!(said.iter().any(|line| line == text), "no {text:?} in {said:#?}");
}

/// Its notes, which may take several lines, have this.
#[track_caller]
pub(super) fn notes(said: &[String], text: &str) {
    assert!(said.join(" ").contains(text), "no {text:?} in {said:#?}");
}

/// A raw table: this number of replicates of some sizes by some threads.
pub(super) fn measurements(replicates: u32) -> String {
    let mut rows = String::new();
    for (threads, replicate) in [1, 2, 4].iter().flat_map(|n| (0..replicates).map(move |r| (n, r)))
    {
        for size in [10, 1000] {
            let seconds =
                f64::from(size) * (1.0 + 0.1 * f64::from(replicate)) / f64::from(*threads);
            writeln!(rows, "{{\"threads\":{threads},\"size\":{size},\"seconds\":{seconds}}}")
                .unwrap();
        }
    }
    rows
}

#[test]
fn axes_and_groups_have_their_names() {
    for name in PLOTS {
        let y = "seconds\nlabel: time [s]\n";
        let said = said(name, &[&measurements(3), "threads\n", y, "size\n"]);
        for text in ["threads", "time [s]", "size", "10", "1000", "4"] {
            has(&said, text);
        }
    }
}

#[test]
fn a_plot_explains_its_error_bars() {
    for (replicates, note) in [
        (7, "Points: medians of 7 values. Bars: 95 % confidence intervals of the median."),
        (3, "Points: medians of 3 values. Bars: from smallest to largest value."),
    ] {
        notes(&said("groups", &[&measurements(replicates), "threads", "seconds", "size"]), note);
    }
    let said = said("groups", &[&measurements(1), "threads", "seconds", "size"]);
    assert!(!said.iter().any(|line| line.contains("ars:")), "{said:?}");
}

#[test]
fn a_summarised_table_has_the_bars_of_its_intervals() {
    let summary = makes("summarise-table", &[&measurements(7), "threads size", "seconds"]);
    let inputs = [summary.as_str(), "threads", "median", "size"];
    let note = "Bars: 95 % confidence intervals, median_ci95_low to median_ci95_high.";
    for name in PLOTS {
        notes(&said(name, &inputs), note);
    }
    let few = makes("summarise-table", &[&measurements(3), "threads size", "seconds"]);
    let said = said("groups", &[&few, "threads", "median", "size"]);
    notes(&said, "Points without bars: too few values for an interval.");
    let line = "line 2 of the table has the threads and the group of an earlier one; group must \
                name all columns by which the table was summarised";
    refuses(
        one_call("plot"),
        "plot",
        &of_kind("groups", &[&summary, "threads", "median", ""]),
        line,
    );
}

#[test]
fn empty_tables_single_rows_and_failed_rows_are_drawn() {
    let one = "{\"name\":\"only\",\"x\":3,\"y\":7}\n";
    let failed = "{\"name\":\"a\",\"x\":1,\"y\":null,\"status\":\"failed\"}\n";
    for name in PLOTS {
        has(&said(name, &["", "x", "y", "name"]), "no values");
        has(&said(name, &[one, "x", "y", "name"]), "only");
        let said = said(name, &[failed, "x", "y", "name"]);
        has(&said, "a (no values)");
        notes(&said, "1 row without a value is left out.");
    }
}

#[test]
fn values_of_several_types_have_places_and_groups_of_their_own() {
    let table = "{\"x\":1,\"y\":3}\n{\"x\":true,\"y\":4}\n{\"x\":\"1\",\"y\":5}\n{\"x\":\"true\",\"y\":6}\n";
    for name in PLOTS {
        let along = said(name, &[table, "x", "y", ""]);
        for text in ["1", "true"] {
            assert_eq!(along.iter().filter(|line| *line == text).count(), 2, "{name}: {along:#?}");
        }
        let groups = said(name, &[table, "y", "y", "x"]);
        assert_eq!(groups.iter().filter(|line| *line == "true").count(), 2, "{name}: {groups:#?}");
    }
}

#[test]
fn any_name_of_a_group_is_shown_unchanged() {
    let long = "x".repeat(200);
    let cut = format!("{}…{}", "x".repeat(58), "x".repeat(28));
    let names = [
        ("a \"b\" 'c'", "a \"b\" 'c'"),
        ("''", "''"),
        ("'", "'"),
        ("<b>&amp;</b>]]>", "<b>&amp;</b>]]>"),
        ("back\\slash\\n", "back\\slash\\n"),
        ("{e}_{f}^2 @g ~h", "{e}_{f}^2 @g ~h"),
        ("`touch x`17 $(touch x)", "`touch x`17 $(touch x)"),
        ("%s 100 %d%%", "%s 100 %d%%"),
        ("two\nlines\tand\u{7}", "two\\nlines\\tand\\u0007"),
        ("Größe 大小", "Größe 大小"),
        ("", "(empty)"),
        (&long, &cut),
    ];
    let quoted = |name: &str| serde_json::Value::from(name).to_string();
    let rows = names.iter().enumerate();
    let rows =
        rows.map(|(at, (name, _))| format!("{{\"name\":{},\"x\":1,\"y\":{at}}}\n", quoted(name)));
    let table: String = rows.collect();
    for name in PLOTS {
        let svg = drawn(name, &[&table, "x", "y", "name"]);
        let said = texts(&svg);
        for (_, shown) in names {
            has(&said, shown);
            let title = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            assert!(svg.contains(&format!("<title>{title}</title>")), "{shown}");
        }
    }
    // As texts at an axis, which gnuplot reads in another way.
    for (name, shown) in &names[..10] {
        let row = format!("{{\"name\":{},\"y\":1}}\n", quoted(name));
        has(&said("scatter", &[&row, "name", "y", ""]), shown);
    }
    let half = "{\"name\":\"half \\ud800\",\"x\":1,\"y\":1}\n";
    has(&said("groups", &[half, "x", "y", "name"]), "half \u{fffd}");
}

#[test]
fn a_picture_does_not_depend_on_settings_of_the_host() {
    for name in PLOTS {
        let measured = measurements(3);
        let inputs = of_kind(name, &[&measured, "threads", "seconds", "size"]);
        let expected = makes("plot", &inputs);
        let lab = given(one_call("plot"), &inputs);
        std::fs::write(lab.path("home/.gnuplot"), "set title 'mine'\nset decimalsign ','\n")
            .unwrap();
        let mut command = lab.evaluation(&["-q"]);
        command.envs([("LC_ALL", "de_DE.UTF-8"), ("LANG", "de_DE"), ("TZ", "Asia/Tokyo")]);
        command.envs([
            ("GNUTERM", "dumb"),
            ("PYTHONPATH", "/nowhere"),
            ("GNUPLOT_LIB", "/nowhere"),
        ]);
        lab.finish(&mut command).exit(0);
        assert_eq!(lab.output(), expected);
    }
}

#[test]
fn wrong_inputs_are_refused_with_one_line() {
    let table = "{\"x\":0,\"y\":1,\"name\":\"a\"}\n{\"x\":2,\"y\":\"?\",\"z\":1e301}\n";
    let many: String = (0..43).map(|n| format!("{{\"n\":{n},\"y\":1}}\n")).collect();
    let have = "it has \"x\", \"y\", \"name\", \"z\"";
    for name in PLOTS {
        let mut lab = one_call("plot");
        for (inputs, line) in [
            (
                [table, "t", "x", ""],
                format!("the table has no column \"t\", which x names; {have}"),
            ),
            (
                [table, "x", "t", ""],
                format!("the table has no column \"t\", which y names; {have}"),
            ),
            (
                [table, "x", "x", "t"],
                format!("the table has no column \"t\", which group names; {have}"),
            ),
            (
                [table, "x", "y", ""],
                "column \"y\" is not numeric: the table has \"?\" in line 2".to_owned(),
            ),
            ([table, "x", "", ""], "y is empty; it names a column".to_owned()),
            (
                [table, "x", "x\nunit: s", ""],
                "y has the line \"unit: s\"; expected \"label: TEXT\" or \"scale: SCALE\""
                    .to_owned(),
            ),
            (
                [table, "x", "x\nscale: ln", ""],
                "y has the scale \"ln\"; expected auto, linear or log".to_owned(),
            ),
            (
                [table, "x", "x\nscale: log", ""],
                "column \"x\" has values up to zero, which scale: log cannot show".to_owned(),
            ),
            (
                [table, "x", "z", ""],
                "column \"z\" has 1e+301, which is too large or too small to be drawn".to_owned(),
            ),
            ([&many, "y", "y", "n"], "n makes 43 groups; at most 42 can be told apart".to_owned()),
        ] {
            lab = refuses(lab, "plot", &of_kind(name, &inputs), &line);
        }
    }
    let line = "kind is \"bars\", and not one of groups, scatter, history";
    refuses(one_call("plot"), "plot", &of_kind("bars", &[table, "x", "y", ""]), line);
}
