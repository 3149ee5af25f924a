//! Results that are numbers, and that JSON does not have: infinite ones, and ones that are not a number.

use std::fs;

use compeval::storage::{Durability, LongText, Storage, Unrecorded};

use crate::lab::Lab;
use crate::program::Ran;

/// A training that diverges at rate 9 with one replicate in three.
const TRAINING: &str = "train: rate replicate -> loss metrics.json
    loss=$(( 10 * $(cat $in_rate) + $(cat $in_replicate) ))
    [ $(cat $in_rate) != 9 ] || [ $(( $(cat $in_replicate) % 3 )) != 0 ] || loss=SPECIAL
    echo $loss > $out_loss
    echo \"{\\\"loss\\\": $loss, \\\"said\\\": \\\"NaN\\\"}\" > $out_metrics_json

SWEEP((train rate replicate)[OUTPUT] :over rate 1 9 :replicates 6 COLUMNS)
";

fn lab(special: &str, output: &str, columns: &str) -> Lab {
    let text = TRAINING.replace("SPECIAL", special).replace("OUTPUT", output);
    Lab::empty().one_text(&text.replace("COLUMNS", columns)).commit()
}

fn run<'a>(lab: &'a Lab) -> Ran<'a> {
    lab.run("ce-run", &["--no-sync", "-q", "../storage"]).exit(0)
}

/// The lines of the table that a run has made.
fn table(lab: &Lab) -> Vec<String> {
    let path = run(lab).stdout.trim_end().to_owned();
    lab.stored(&path).lines().map(str::to_owned).collect()
}

const NAN: &[(&str, &str, &str)] =
    &[("nan", "loss", ""), ("NaN", "loss", ""), ("NaN", "metrics.json", ":columns '00 *'")];

#[test]
fn a_result_that_is_not_a_number_counts_as_a_row_that_is_not_there() {
    for (special, output, columns) in NAN {
        let lab = lab(special, output, columns);
        let table = table(&lab);
        assert!(table[0].starts_with(r#"{"rate":1,"replicate":1,"loss":11"#), "{table:?}");
        assert!(table[8].starts_with(r#"{"rate":9,"replicate":3,"loss":null"#), "{table:?}");
        let said = columns.is_empty() || table[8].ends_with(r#","said":"NaN"}"#);
        assert!(said, "a string stays one: {table:?}");

        let ran = lab.run("ce", &["table", "--summary", "--csv", "../storage"]).exit(3);
        let lines = ran.lines().into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines[1..], ["1,6,13.5,11,16,0", "9,4,93,91,95,2"]);
        let ran = lab.run("ce", &["table", "../storage"]).exit(3);
        ran.shows("NaN")
            .says("not a number: loss in 2 rows; such a row counts as one that is not ok");
        let compared = ["compare", "--task", ".", "--by", "rate=1,9", "../storage"];
        let ran = lab.run("ce", &compared).exit(3);
        ran.shows("not ok: 2");
    }
}

#[test]
fn infinite_results_take_part_in_the_order_and_decide_nothing() {
    for (special, output, columns) in
        [("inf", "loss", ""), ("Infinity", "metrics.json", ":columns '00 *'")]
    {
        let lab = lab(special, output, columns);
        let table = table(&lab);
        assert!(table[8].starts_with(r#"{"rate":9,"replicate":3,"loss":"Infinity""#), "{table:?}");
        let ran = lab.run("ce", &["table", "--summary", "--csv", "../storage"]).exit(0);
        let lines = ran.lines().into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines[1..], ["1,6,13.5,11,16,0", "9,6,94.5,91,Infinity,0"]);
        let compared = ["compare", "--task", ".", "--by", "rate=1,9", "../storage"];
        lab.run("ce", &compared).exit(0).shows("unclear (infinite)");
        // A file of the table has the same summary.
        let path = run(&lab).stdout.trim_end().to_owned();
        fs::copy(lab.path("task").join(&path), lab.path("table.ndjson")).unwrap();
        let files = ["compare", "../table.ndjson", "../table.ndjson"];
        lab.run("ce", &files).exit(0).shows("unclear (infinite)");
    }
}

#[test]
fn replicates_that_are_not_a_number_have_failed() {
    let until = TRAINING.replace("SPECIAL", "nan").replace("[OUTPUT]", "[loss]");
    let until = until.replace("% 3 )) != 0", "% 3 )) = 0").replace(" COLUMNS", "");
    let until = until.replace(":replicates 6", ":replicates '6..60 until loss ±50%'");
    let lab = Lab::empty().one_text(&until).commit();
    let ran = lab.run("ce-run", &["--no-sync", "../storage"]).exit(0);
    ran.says("half of the replicates have failed after 6 replicates at rate=9");
}

/// Puts the table of a task into its storage as an earlier version has made it, with other lines.
fn as_before(lab: &Lab, line: impl Fn(&str) -> String) {
    let path = run(lab).stdout.trim_end().to_owned();
    let recipe = lab.stored(&path.replace("/00", "/recipe"));
    let recipe = recipe.replacen(r#""recipe":4"#, r#""recipe":1"#, 1);
    let table = lab.stored(&path).lines().map(|it| line(it) + "\n").collect::<String>();
    for gone in ["tables", "t_task"] {
        fs::remove_dir_all(lab.path("storage").join(gone)).unwrap();
    }
    let storage =
        Storage::open(&lab.path("storage"), Unrecorded::Refuse, Durability::Unsynced).unwrap();
    let [recipe, table] = [recipe, table].map(|it| LongText::of_bytes(it.into_bytes()));
    storage.tables().publish(&recipe, &table, None).unwrap();
}

#[test]
fn a_table_of_an_earlier_version_is_used_where_it_is_the_same() {
    let same = lab("7", "loss", "");
    as_before(&same, str::to_owned);
    let ran = same.run("ce-run", &["--no-sync", "../storage"]).exit(0);
    ran.says("12 calls: 12 reused; 1 table: 1 reused");

    // A column with such numbers was one of texts.
    let other = lab("nan", "loss", "");
    let before = table(&other);
    as_before(&other, |line| {
        let (point, loss) = line.split_once("\"loss\":").unwrap();
        let loss = loss.trim_end_matches('}').replace("null", "nan");
        format!("{point}\"loss\":\"{loss}\"}}")
    });
    let ran = other.run("ce-run", &["--no-sync", "../storage"]).exit(0);
    ran.says("12 calls: 12 reused; 1 table: 1 made");
    assert_eq!(table(&other), before);
}
