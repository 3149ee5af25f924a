//! `ce cite`: citations of results for a paper.

use compeval::digest::Digest;
use serde_json::Value;

use crate::lab::Lab;

/// A task with names that TeX would read, evaluated in a repository with a remote one.
fn lab() -> Lab {
    let lab = Lab::task("Inputs: 'x_{1}', 'y%'\n(add INPUT('x_{1}') INPUT('y%'))[0]").commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    lab.git("task", &["remote", "add", "origin", "https://ada:hunter2@host/a_b.git"]);
    lab.git("task", &["config", "compeval.results", "https://ada:hunter2@host/results.git"]);
    lab
}

/// The name of the only output of a call.
fn output(lab: &Lab) -> String {
    lab.results().into_keys().find(|name| name.starts_with("c_")).unwrap()
}

fn csl(lab: &Lab, dir: &str, file: &str) -> Value {
    let mut command = lab.command("ce");
    command.current_dir(lab.path(dir)).args(["cite", "--format=csl-json", "../storage", file]);
    let ran = lab.finish(&mut command).exit(0);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_call_is_cited_as_the_job_that_it_is_an_output_of() {
    let lab = lab();
    let commit = lab.git("task", &["rev-parse", "HEAD"]);
    let ran = lab.unchanged(|| lab.run("ce", &["cite", "../storage", &output(&lab)]).exit(0));
    let digest = Digest::hash_bytes(b"22\n");
    for fact in [
        "Output sum of task task, version ",
        &commit,
        " of https://host/a_b.git, of 20",
        &format!("SHA-1 {}, BLAKE3 {}.", digest.sha1.full(), digest.blake3.full()),
        &format!("Input x_{{1}}: SHA-1 {}", Digest::hash_bytes(b"17\n").sha1.full()),
        "Results are in the repository https://host/results.git.",
        &format!("Made with CompEval {}.", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(ran.stdout.contains(fact), "{fact}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("hunter2") && ran.stdout.lines().count() == 1);
}

#[test]
fn bibtex_is_escaped() {
    let lab = lab();
    let ran = lab.run("ce", &["cite", "--format=bibtex", "../storage", &output(&lab)]).exit(0);
    let key = &Digest::hash_bytes(b"22\n").sha1.full()[..12];
    assert!(ran.stdout.starts_with(&format!("@misc{{compeval-{key},\n")), "{}", ran.stdout);
    for field in [
        "  title = {{Output sum of task task}},\n",
        "  url = {https://host/a_b.git},\n",
        " Input x\\_\\textbraceleft{}1\\textbraceright{}: SHA-1 ",
        " Input y\\%: SHA-1 ",
    ] {
        assert!(ran.stdout.contains(field), "{field}: {}", ran.stdout);
    }
    let count = |brace: char| ran.stdout.matches(brace).count();
    assert_eq!(count('{'), count('}'));
    assert!(ran.stdout.ends_with(".},\n}\n") && !ran.stdout.contains("hunter2"));
}

#[test]
fn csl_json_is_a_list_of_a_dataset() {
    let lab = lab();
    let commit = lab.git("task", &["rev-parse", "HEAD"]);
    let list = csl(&lab, "task", &output(&lab));
    let item = &list[0];
    assert_eq!((list.as_array().unwrap().len(), &item["type"]), (1, &"dataset".into()));
    assert_eq!(item["title"], "Output sum of task task");
    assert_eq!((&item["version"], &item["URL"]), (&commit.into(), &"https://host/a_b.git".into()));
    assert_eq!(item["archive"], "https://host/results.git");
    let date = item["issued"]["date-parts"][0].as_array().unwrap();
    assert!(date.len() == 3 && date.iter().all(Value::is_i64), "{date:?}");
}

#[test]
fn a_repository_without_the_commit_is_not_cited() {
    let lab = lab();
    let file = output(&lab);
    assert_eq!(csl(&lab, "data", &file)[0].get("URL"), None);
    lab.git("data", &["init", "--quiet"]);
    lab.git("data", &["remote", "add", "origin", "https://host/other.git"]);
    let elsewhere = csl(&lab, "data", &file);
    assert_eq!(elsewhere[0].get("URL"), None, "it does not have the commit");
    assert_eq!(elsewhere[0].get("archive"), None);
    let input = lab.results().into_keys().find(|name| name.starts_with("tinputs/")).unwrap();
    let input = csl(&lab, "task", &input);
    assert_eq!((&input[0]["title"], input[0].get("version")), (&"A task input".into(), None));
    lab.run("ce", &["cite", "../storage", "c_none/x"]).exit(2).says("has no record");
}

#[test]
fn a_file_that_is_not_as_recorded_is_cited_with_a_warning() {
    let lab = lab();
    let output = output(&lab);
    let place = lab.path("storage").join(&output);
    let whole = lab.run("ce", &["cite", "../storage", &output]).exit(0);
    assert_eq!(whole.stderr, "");
    std::fs::remove_file(&place).unwrap();
    for contents in [None, Some("23\n")] {
        if let Some(contents) = contents {
            std::fs::write(&place, contents).unwrap();
        }
        let told = lab.run("ce", &["cite", "../storage", &output]).exit(5);
        assert_eq!(told.stdout, whole.stdout);
        let warning = format!("ce: warning: {output} is not as cited: it");
        told.says(&warning).says("\n  try: ce verify --repair, and run the task again\n");
    }
}
