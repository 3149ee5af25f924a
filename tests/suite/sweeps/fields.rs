//! Fields of JSON in tables: they keep their types, and other cells have the types of their columns.

use serde_json::{Value, json};

use super::sweep;
use crate::lab::Lab;
use crate::page::data_in;

/// A sweep over `n` whose body writes the output of a script for it.
fn describe(columns: &str, script: &str) -> Lab {
    sweep("", &[("factors/00-n", "1\n2"), ("columns", columns)])
        .computation("describe", "n", "facts", script)
        .call("inputs/00-body/", "describe", &["n"])
        .commit()
}

/// Objects whose fields look like other types.
const DISGUISED: &str = r#"n=$(cat "$1")
    echo "{\"version\": \"$n.10\", \"commit\": \"1234${n}e8\", \"count\": $n.50, \"fast\": true, \"said\": \"true\", \"none\": null}" >"$2""#;

#[test]
fn every_reader_of_a_table_sees_the_types() {
    let lab = describe("00 *", DISGUISED);
    lab.ce_run(&[]).exit(0);
    let row = |n: u8| {
        format!(
            "{{\"n\":{n},\"version\":\"{n}.10\",\"commit\":\"1234{n}e8\",\"count\":{n}.50,\
             \"fast\":true,\"said\":\"true\",\"none\":null}}\n"
        )
    };
    assert_eq!(lab.table(), row(1) + &row(2));
    let table = |options: &[&str]| lab.run("ce", &[&["table"], options, &["../storage"]].concat());
    let shown = table(&["--json"]).exit(0);
    let first: Value = serde_json::from_str(shown.lines()[0]).unwrap();
    let row = json!({
        "n": 1, "version": "1.10", "commit": "12341e8", "count": 1.5, "fast": true, "said": "true", "none": null
    });
    assert_eq!(first["row"], row);
    assert!(shown.stdout.contains("\"count\":1.50,\"fast\":true"), "{}", shown.stdout);
    table(&["--csv"]).exit(0).shows("1,1.10,12341e8,1.50,true,true,,ok");
    let cells = json!([1, "1.10", "12341e8", 1.5, true, "true", null]);
    for scope in [&["--task", "."][..], &[]] {
        let report = ["report", "-q", "-o", "-"];
        let page =
            lab.run("ce", &[&report, scope, &["../storage"]].concat()).exit(0).stdout.clone();
        let data: Value = serde_json::from_str(&data_in(&page)).unwrap();
        assert_eq!(data["tables"][0]["rows"][0]["cells"], cells, "{scope:?}");
    }
}

#[test]
fn the_points_of_another_sweep_have_the_texts_of_fields() {
    let lab = sweep("", &[])
        .computation("describe", "n", "facts", DISGUISED)
        .computation("join", "version fast", "both", r#"echo "$(cat "$1") $(cat "$2")" >"$3""#)
        .call("inputs/00-body/", "join", &["version", "fast"])
        .node("inputs/01-points/", "sweep", "")
        .file("workflow/inputs/01-points/factors/00-n", "1\n2")
        .file("workflow/inputs/01-points/columns", "00 *")
        .call("inputs/01-points/inputs/00-body/", "describe", &["n"]);
    let lab = lab
        .computation("describe", "n", "facts", &DISGUISED.replace(r#", \"none\": null"#, ""))
        .commit();
    lab.ce_run(&[]).exit(0).says("4 calls: 4 computed");
    lab.called();
    let table = lab.table();
    let last = table.lines().last().unwrap();
    assert!(last.ends_with(r#""said":"true","both":"2.10 true"}"#), "{table}");
    lab.ce_run(&["--where", "version=1.10"]).exit(0).called(vec![]);
}

#[test]
fn a_recipe_has_the_columns_and_the_newest_version() {
    for columns in ["00 *", "00 **", "00 text"] {
        let lab = describe(columns, DISGUISED);
        lab.ce_run(&[]).exit(0);
        let recipe = lab.storage().into_iter().find(|name| name.ends_with("/recipe")).unwrap();
        let begin = format!("{{\"recipe\":4,\"columns\":[\"{columns}\"],");
        assert!(lab.stored(&recipe).starts_with(&begin), "{}", lab.stored(&recipe));
        lab.run("ce", &["show", "../storage", &recipe])
            .exit(0)
            .shows(&format!("columns      {columns}\n"));
        lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
    }
}

#[test]
fn a_column_of_two_versions_has_one_type_and_fields_have_their_own() {
    let script = |plain: &str, field: &str| {
        format!(
            "[ $(cat \"$1\") = 1 ] && echo 1 >\"$2\" || echo {plain} >\"$2\"; echo '{{\"v\":{field}}}' >\"$3\""
        )
    };
    let lab = sweep("", &[("factors/00-n", "1\n2"), ("columns", "00 plain\n01 *\n")])
        .computation("describe", "n", "plain facts", &script("2", "7"))
        .call("inputs/00-body/", "describe", &["n"])
        .commit();
    lab.ce_run(&[]).exit(0);
    let lab =
        lab.computation("describe", "n", "plain facts", &script("auto", "\"7\"")).commit_again();
    lab.ce_run(&[]).exit(0);
    let versions = ["table", "--json", "--at", "HEAD~1", "--at", "HEAD", "../storage"];
    let ran = lab.run("ce", &versions).exit(0);
    let rows = ran.lines().into_iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told: Vec<Value> =
        rows.map(|row| json!([row["old"], row["new"], row["changed"]])).collect();
    let (one, other) = (json!({"plain": "1", "v": 7}), json!({"plain": "1", "v": "7"}));
    assert_eq!(told[0], json!([one, other, ["v"]]));
    let (one, other) = (json!({"plain": "2", "v": 7}), json!({"plain": "auto", "v": "7"}));
    assert_eq!(told[1], json!([one, other, ["plain", "v"]]));
}
