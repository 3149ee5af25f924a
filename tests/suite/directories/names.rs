//! Names that go on in directories, and calls without inputs: beside values that are directories.

use std::fs;

use super::{entries, is_sound, output, stored, values};
use crate::isolation;
use crate::lab::Lab;

const ALL: [&str; 5] = ["gc", "--delete", "--older=0s", "--no-keep", "../storage"];

/// Evaluates at two commits, damages, verifies and collects.
#[track_caller]
fn is_handled(lab: Lab, content: &str) {
    let lab = if isolation::is_possible() { lab.isolated() } else { lab };
    lab.ce_run(&[]).exit(0).says("1 computed");
    lab.called();
    let made = output(&lab);
    assert_eq!(entries(&made), [format!("file 444 f {content}")]);
    lab.ce_run(&[]).exit(0).says("1 reused");
    lab.ce_run(&["-q"]).exit(0);
    is_sound(&lab);
    let lab = lab.file("README", "").commit_again();
    if isolation::is_possible() {
        lab.ce_run(&[]).exit(0).says("1 taken over");
        lab.ce_run(&[]).exit(0).says("1 reused");
        assert!(output(&lab).is_symlink());
        is_sound(&lab);
    }
    super::write_over(&made.join("f"), "damaged");
    lab.run("ce", &["verify", "--repair", "../storage"]).exit(5);
    lab.run("ce", &["verify", "../storage"]).exit(0);
    lab.ce_run(&[]).exit(0).says("1 computed");
    lab.ce_run(&[]).exit(0).says("1 reused");
    is_sound(&lab);
    lab.run("ce", &ALL).exit(0);
    let left = lab.storage().into_iter().filter(|name| {
        (name.starts_with("c_") || name.starts_with("t_"))
            && name.ends_with("/f")
            && !name.contains("/aside/")
    });
    assert_eq!(left.collect::<Vec<_>>(), [""; 0]);
    lab.run("ce", &["verify", "../storage"]).exit(0);
}

#[test]
fn a_call_of_many_inputs_makes_a_directory() {
    let names: Vec<String> = (0..45).map(|at| format!("i{at}")).collect();
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    let inputs: Vec<String> = names.iter().map(|name| format!("INPUT('{name}')")).collect();
    let text = format!("Inputs: {}\n(make {})[0]", quoted.join(", "), inputs.join(" "));
    let script = r#"n=0; for i; do last=$i; n=$((n+1)); done; echo $n >"$last/f""#;
    let lab = Lab::task(&text).computation("make", &names.join(" "), "tree/", script).commit();
    is_handled(lab, "46\\n");
}

#[test]
fn a_job_without_inputs_makes_a_directory() {
    let lab = Lab::task("Inputs:\n(make)[0]")
        .computation("make", "", "tree/", r#"echo 1 >"$1/f""#)
        .commit();
    is_handled(lab, "1\\n");
}

/// Entries that look like names of the storage are just entries.
#[test]
fn entries_may_look_like_results() {
    let script = r#"cd "$2"; mkdir -p record aside 00/x_ tinputs/ab c_add/1/00 tmp .removed-0
        echo '{"format": 99}' >record/x.json; mkdir 00/x_/y.json; echo 1 >c_add/1/00/_; ln -s 00 01; mkdir x.json"#;
    let lab = super::made_by(script).commit();
    lab.ce_run(&[]).exit(0).called(vec!["make"]);
    lab.ce_run(&[]).exit(0).called(vec![]);
    is_sound(&lab);
    for command in [&["log", "../storage"][..], &["gc", "../storage", "--older=1d", "--no-keep"]] {
        lab.run("ce", command).exit(0);
    }
    let name = values(&lab, "c_make/").remove(0);
    lab.run("ce", &["show", "../storage", &name]).exit(0);
    super::within(&stored(&lab, &name), |dir| fs::create_dir(dir.join("02")).unwrap());
    lab.ce_run(&[]).exit(0).called(vec!["make"]);
    lab.run("ce", &ALL).exit(0);
    lab.run("ce", &["verify", "../storage"]).exit(0);
    assert_eq!(values(&lab, ""), [""; 0]);
}
