//! The output of `ce show` for tables, and for results that were made from them.

use compeval::digest::Digest;
use compeval::storage::{LongText, RecipeHeader, RecipeWriter};
use serde_json::Value;

use super::{lab, open, stored, sweep};
use crate::lab::Lab;

fn published(lab: &Lab) -> String {
    let storage = open(lab);
    sweep(lab, &storage).publish(&storage, true).short()
}

#[test]
fn a_table_is_shown_with_its_rules_and_origins() {
    let lab = lab();
    let name = published(&lab);
    for (part, is) in [("00", "output 00"), ("01", "output 01"), ("recipe", "the recipe")] {
        let ran = lab.run("ce", &["show", "../storage", &format!("{name}/{part}")]).exit(0);
        let ran = ran.shows("state        as recorded").shows(&format!("table        {is}\n"));
        let ran = ran.shows(&format!("recipe       ../storage/{name}/recipe\n"));
        let ran = ran.shows("columns      00 tenfold\n").shows("points       3 of x\n");
        let ran = ran.shows("failed       1 of them\n").shows("outputs      tenfold, plots/\n");
        let (_, tree) = ran.stdout.split_once("made from:\n").unwrap();
        let lines: Vec<&str> = tree.lines().collect();
        assert_eq!(lines.len(), 6, "{tree}");
        assert!(lines[0].contains("(make 00=1, output 00)"), "{tree}");
        assert!(lines[1].contains("(task input, level x=1)"), "{tree}");
        assert!(lines[2].contains("(make 00=1, output 01, see above)"), "{tree}");
    }
    let member = format!("{name}/01/x=1/tenfold");
    lab.run("ce", &["show", "../storage", &member]).exit(0).shows("table        output 01\n");
}

#[test]
fn json_has_the_rules_and_the_record() {
    let lab = lab();
    let name = published(&lab);
    let ran = lab.run("ce", &["show", "--json", "../storage", &format!("{name}/00")]).exit(0);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["record"]["kind"], "table");
    assert_eq!(document["record"]["name"], name);
    assert_eq!(document["record"]["table"]["outputs"].as_array().unwrap().len(), 2);
    let table = &document["table"];
    assert_eq!((table["points"].as_u64(), table["failed"].as_u64()), (Some(3), Some(1)));
    assert_eq!(table["files"], 4);
    assert_eq!(table["rules"]["columns"][0], "00 tenfold");
    assert_eq!(document["ancestors"].as_array().unwrap().len(), 6);
}

#[test]
fn a_table_is_shown_without_its_recipe() {
    let lab = lab();
    let name = published(&lab);
    let recipe = stored(&lab, &format!("{name}/recipe"));
    let whole = std::fs::read(&recipe).unwrap();
    std::fs::remove_file(&recipe).unwrap();
    for damaged in [None, Some(&whole[..whole.len() - 9]), Some(b"{}\n")] {
        if let Some(damaged) = damaged {
            drop(std::fs::remove_file(&recipe));
            std::fs::write(&recipe, damaged).unwrap();
        }
        let ran = lab.run("ce", &["show", "../storage", &format!("{name}/00")]).exit(0);
        let ran = ran.shows("it is missing or damaged");
        assert!(!ran.stdout.contains("made from"), "{}", ran.stdout);
        lab.run("ce", &["show", "../storage", &format!("{name}/recipe")]).exit(5);
    }
}

#[test]
fn only_the_first_of_many_outputs_are_listed() {
    let lab = lab();
    let storage = open(&lab);
    let mut recipe = RecipeWriter::begin(Vec::new(), &RecipeHeader::default()).unwrap();
    for number in 0..1002 {
        let digest = Digest::hash_bytes(&[number as u8, (number >> 8) as u8]);
        let name = format!("c_gone/0123456789ab/00/{number}");
        // Points that share a call count once.
        recipe.row([], [(&*name, &digest)]).unwrap();
        recipe.row([], [(&*name, &digest)]).unwrap();
    }
    let recipe = LongText::of_bytes(recipe.finish());
    let outputs = storage.tables().publish(&recipe, &LongText::of_bytes(b""), None).unwrap();
    drop(storage);
    let ran = lab.run("ce", &["show", "--all", "../storage", &outputs.name.output(0)]).exit(0);
    let ran = ran.shows("(no record of its origin)\n").shows("points       2004\n");
    assert!(ran.stdout.ends_with("and from 2 more: see the recipe\n"));
    assert!(ran.stdout.contains("\n    999: ") && !ran.stdout.contains("\n    1000: "));
    lab.run("ce", &["gc", "--older=0s", "--no-keep", "../storage"]).exit(0);
}
