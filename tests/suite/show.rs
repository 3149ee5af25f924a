//! The maker of a file is shown, with all that it was made from.

use std::fs;

use compeval::storage::records::machine;

use crate::arith::Arith;
use crate::lab::Lab;

const RESULT: &str = "c_add/COMMIT/00/e9277bc504d7_5d9474c0309b";

/// The lines after `made from:`, with one commit for another.
fn tree(arith: &Arith, text: &str) -> Vec<String> {
    let id = arith.name("c_add/COMMIT/");
    let id = id.trim_start_matches("c_add/").trim_end_matches('/');
    let (_, tree) = text.split_once("made from:\n").unwrap();
    tree.lines().map(|line| line.replace(id, "COMMIT")).collect()
}

#[test]
fn a_result_is_shown_with_its_ancestors_each_once() {
    let arith = Arith::evaluated();
    let shown = arith.ce(&["show", "results", &arith.name(RESULT)]);
    assert_eq!((shown.err.as_str(), shown.code), ("", 0));
    let call = "ad48103e4fc7_5d9474c0309b";
    let expected = [
        format!("    00: results/c_mul/COMMIT/00/{call} (mul, output 00)"),
        "        00: results/tinputs/ad/48103e4fc7 (task input)".into(),
        "        01: results/tinputs/5d/9474c0309b (task input)".into(),
        "    01: results/c_add/COMMIT/00/a3db5c13ff90_7448d8798a43 (add, output 00)".into(),
        format!("        00: results/c_divmod/COMMIT/00/{call} (divmod, output 00)"),
        "            00: results/tinputs/ad/48103e4fc7 (task input)".into(),
        "            01: results/tinputs/5d/9474c0309b (task input)".into(),
        format!("        01: results/c_divmod/COMMIT/01/{call} (divmod, output 01, see above)"),
    ];
    assert_eq!(tree(&arith, &shown.out), expected);
    let machine = format!("  machine      {}\n", machine());
    let facts =
        ["state        as recorded", "computation  add, output 00", "by tester on ", &machine];
    assert!(facts.iter().all(|fact| shown.out.contains(fact)), "{}", shown.out);
}

#[test]
fn a_file_is_found_by_any_path_and_by_digits() {
    let arith = Arith::evaluated();
    let name = arith.name("c_mul/COMMIT/00/ad48103e4fc7_5d9474c0309b");
    let expected = arith.ce(&["show", "results", &name]).out;
    let absolute = arith.path(&name).display().to_string();
    let beside = format!("results/{name}");
    let call = name.replace("/00/", "/");
    for file in [&beside, &format!("./{beside}"), &absolute, "e9277bc504d7", "E9277", &call] {
        assert_eq!(arith.ce(&["show", "results", file]).out, expected, "{file}");
    }
}

#[test]
fn a_job_a_task_input_and_what_is_unknown_or_too_short() {
    let arith = Arith::evaluated();
    let job = arith.name("t_arith/COMMIT/00/ad48103e4fc7_5d9474c0309b");
    let job = arith.ce(&["show", "results", &job]);
    assert!(job.out.contains("task         arith, output 00"), "{job:?}");
    assert_eq!(tree(&arith, &job.out).len(), 9);
    let input = arith.ce(&["show", "results", "tinputs/ad/48103e4fc7"]);
    assert!(input.out.contains("  task input   x of task arith\n"), "{input:?}");
    assert!(!input.out.contains("made from"));
    for unknown in ["c_add/none", "zzzz", "00000000"] {
        let shown = arith.ce(&["show", "results", unknown]);
        assert_eq!(shown.code, 2);
        assert!(shown.err.contains(&format!("{unknown} has no record")), "{shown:?}");
    }
    for command in [&["show"][..], &["show", "--log"], &["cite"]] {
        let shown = arith.ce(&[command, &["results", "a4"]].concat());
        assert_eq!(shown.code, 2);
        let says = "ce: a4 is too short: 4 or more digits of a SHA-1 name a result\n  try: ";
        assert!(shown.err.starts_with(says), "{shown:?}");
    }
}

#[test]
fn a_damaged_file_is_marked() {
    let arith = Arith::evaluated();
    arith.overwrite(&arith.path(RESULT), "91\n");
    let shown = arith.ce(&["show", "results", &arith.name(RESULT)]);
    assert!(shown.out.contains("state        its contents are not the recorded ones"));
    assert_eq!(shown.code, 5);
    fs::remove_file(arith.path(RESULT)).unwrap();
    let shown = arith.ce(&["show", "results", &arith.name(RESULT)]);
    assert!(shown.out.contains("state        it is missing"));
}

#[test]
fn json_is_one_document_with_the_records() {
    let arith = Arith::evaluated();
    let name = arith.name(RESULT);
    let shown = arith.ce(&["show", "--json", "results", &name]);
    let document: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(document["file"], name);
    assert_eq!(document["state"], "as recorded");
    assert_eq!(document["record"]["kind"], "call");
    assert_eq!(document["record"]["call"]["computation"], "add");
    let ancestors = document["ancestors"].as_array().unwrap();
    assert_eq!(ancestors.len(), 8);
    assert_eq!(ancestors[1]["record"]["kind"], "task_input");
    let roles = serde_json::json!({"inputs": [["x", "arith"]], "levels": [], "text": "17"});
    assert_eq!(ancestors[1]["roles"], roles);
    assert!(ancestors[0].get("roles").is_none());
    assert_eq!(ancestors[7]["again"], true);
    assert!(ancestors[7]["record"].is_null());
}

#[test]
fn a_long_provenance_is_a_screen_unless_all_is_asked_for() {
    // Each call reads the one before it and an input; the first reads two inputs.
    let chain =
        (0..29).fold("INPUT('x')".to_owned(), |inner, _| format!("(add {inner} INPUT('y'))[0]"));
    let lab = Lab::task(&format!("Inputs: 'x', 'y'\n{chain}")).commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let output = lab.ce_run(&["-q"]).exit(0).stdout;
    let show = |options: &[&str]| {
        lab.run("ce", &[&["show"], options, &["../storage", output.trim()]].concat()).exit(0).stdout
    };
    let (short, all) = (show(&[]), show(&["--all"]));
    let tree = |text: &str| -> Vec<String> {
        text.split_once("made from:\n").unwrap().1.lines().map(str::to_owned).collect()
    };
    let (first, whole) = (tree(&short), tree(&all));
    assert_eq!(whole.len(), 58, "{all}");
    assert!(short.lines().count() <= 24, "{short}");
    // The first levels, each of them whole.
    let (last, first) = first.split_last().unwrap();
    assert!(first.len() > 4 && first.len() % 2 == 0, "{short}");
    assert_eq!(*last, format!("    and {} more lines: --all prints them", 58 - first.len()));
    assert!(first.iter().all(|line| whole.contains(line)), "{short}");
    let sha1 = |text: &str| text.lines().filter(|line| line.starts_with("  input 0")).count();
    assert_eq!((sha1(&short), sha1(&all)), (0, 2));
    let json: serde_json::Value = serde_json::from_str(&show(&["--json"])).unwrap();
    assert_eq!(json["ancestors"].as_array().unwrap().len(), 58);
}

#[test]
fn the_end_of_a_long_log_is_shown() {
    let lab = Lab::task("Inputs: 'x'\n(count INPUT('x'))[0]")
        .computation("count", "a", "b", "for n in 1 2 3 4 5 6 7 8; do echo line $n; done; echo >$2")
        .data("x", "x")
        .commit();
    let output = lab.ce_run(&["-q", "--no-sync"]).exit(0).stdout;
    let show = |options: &[&str]| {
        lab.run("ce", &[&["show"], options, &["../storage", output.trim()]].concat()).exit(0).stdout
    };
    let logged = |text: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("     | "));
        lines.map(str::to_owned).collect()
    };
    let all = logged(&show(&["--all"]));
    assert_eq!((all.len(), logged(&show(&[]))), (8, all[3..].to_vec()));
}
