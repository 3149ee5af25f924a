//! The names that `ce show` gives to the levels that a call has read, where several have the same text.

use serde_json::{Value, json};

use super::sweep;
use crate::lab::Lab;

/// The texts that a call of `list` has read, one line for each input.
const LIST: &str = r#"for name; do [ "$name" = "$4" ] || cat "$name"; done >"$4""#;

/// The calls of a computation: the first output, and the texts that were read. Their names are the numbers of the inputs, since a
/// storage of calls that are not isolated knows no others.
fn calls(lab: &Lab, computation: &str) -> Vec<(String, Vec<String>)> {
    let ran = lab.run("ce", &["log", "--json", "--computation", computation, "../storage"]).exit(0);
    let call = |line: &&str| {
        let past: Value = serde_json::from_str(line).unwrap();
        let (directory, inputs) = past["name"].as_str().unwrap().rsplit_once('/').unwrap();
        let texts = past["texts"].as_object().unwrap().values();
        let texts = texts.map(|text| text.as_str().unwrap().to_owned());
        (format!("{directory}/00/{inputs}"), texts.collect())
    };
    ran.lines().iter().map(call).collect()
}

/// Returns the remarks of `ce show` on the direct inputs of a call.
fn said(lab: &Lab, file: &str) -> Vec<String> {
    let ran = lab.run("ce", &["show", "../storage", file]).exit(0);
    let (_, tree) = ran.stdout.split_once("made from:\n").unwrap();
    let direct = tree.lines().filter(|line| !line.starts_with("     "));
    let words =
        direct.map(|line| line.rsplit_once(" (").unwrap().1.trim_end_matches(')').to_owned());
    words.collect()
}

/// A sweep whose body is one call of `list`, which reads these.
fn listed(inputs: &str, files: &[(&str, &str)], reads: [&str; 3]) -> Lab {
    sweep(inputs, files).computation("list", "one two three", "all", LIST).call(
        "inputs/00-body/",
        "list",
        &reads,
    )
}

#[test]
fn names_with_equal_texts_are_told_apart_by_the_other_points() {
    let files = [("factors/00-a", "1\n2\n"), ("factors/01-b", "1\n2\n"), ("replicates", "2")];
    let lab = listed("", &files, ["a", "b", "replicate"]).commit();
    lab.ce_run(&["--no-sync"]).exit(0).says("8 calls: 8 computed");
    let all = calls(&lab, "list");
    assert_eq!(all.len(), 8);
    for (file, texts) in all {
        let [one, two, three] = &texts[..] else { panic!("{texts:?}") };
        let expected = [
            format!("level a={one}"),
            format!("level b={two}"),
            format!("level replicate={three}"),
        ];
        assert_eq!(said(&lab, &file), expected);
        let ran = lab.run("ce", &["show", "--json", "../storage", &file]).exit(0);
        let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
        let roles = |at: usize| shown["ancestors"][at]["roles"].clone();
        assert_eq!(roles(1), json!({"inputs": [], "levels": [["b", two]], "text": two}));
    }
}

#[test]
fn an_ambiguous_level_is_named_with_all_candidates() {
    // All points have one text for both.
    let lab = listed("", &[("factors/00-a", "1"), ("factors/01-b", "1")], ["a", "b", "b"]).commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let (file, _) = &calls(&lab, "list")[0];
    assert_eq!(said(&lab, file), ["level a=1 or b=1"; 3]);
    // The computation is called at two places.
    let lab = sweep("", &[("factors/00-a", "1\n2\n"), ("factors/01-b", "1\n2\n")])
        .computation("list", "one two three", "all", LIST)
        .node("inputs/00-body/", "computation", "add")
        .call("inputs/00-body/inputs/00-one/", "list", &["a", "b", "b"])
        .call("inputs/00-body/inputs/01-two/", "list", &["b", "a", "a"])
        .computation("add", "a b", "sum", r#"cat "$1" "$2" >"$3""#)
        .commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    for (file, texts) in calls(&lab, "list") {
        let both = |text: &String| format!("level a={text} or b={text}");
        assert_eq!(said(&lab, &file), [&texts[0], &texts[1], &texts[2]].map(both), "{file}");
    }
}

#[test]
fn a_task_input_with_the_text_of_a_level_is_not_a_level() {
    let lab = listed("x", &[("factors/00-a", "1\n2\n")], ["a", "x", "x"]).data("x", "1\n").commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    for (file, texts) in calls(&lab, "list") {
        let level = format!("level a={}", texts[0]);
        assert_eq!(said(&lab, &file), [level.as_str(), "task input", "task input"]);
    }
    // Nor is it one of another table in the storage.
    let mut lab = lab
        .without("workflow")
        .computation("other", "one two three", "all", LIST)
        .call("", "other", &["x", "x", "x"])
        .commit_again();
    lab.inputs = vec!["x".to_owned()];
    lab.ce_run(&["--no-sync"]).exit(0);
    assert_eq!(said(&lab, &calls(&lab, "other")[0].0), ["task input"; 3]);
}

#[test]
fn a_sweep_in_a_sweep_leads_to_the_names_of_both() {
    let lab = sweep("", &[("factors/00-a", "1\n2\n"), ("columns", "00 rows")])
        .computation("list", "one two three", "all", LIST)
        .node("inputs/00-body/", "sweep", "")
        .file("workflow/inputs/00-body/factors/00-b", "1\n2\n")
        .call("inputs/00-body/inputs/00-body/", "list", &["a", "b", "a"])
        .commit();
    lab.ce_run(&["--no-sync"]).exit(0).says("4 calls: 4 computed");
    for (file, texts) in calls(&lab, "list") {
        let [one, two, three] = &texts[..] else { panic!("{texts:?}") };
        let expected =
            [format!("level a={one}"), format!("level b={two}"), format!("level a={three}")];
        assert_eq!(said(&lab, &file), expected);
    }
}
