//! Outputs of a job that no call has made: texts, files and trees of the task, points, directories of sweeps, and members. A clone of the
//! results has them, and a pull takes the job or leaves it to a run.

use std::path::Path;

use super::{cloned, evaluate, pull, push, repository};
use crate::lab::{Lab, files};

const MAKE: &str = r#"mkdir "$2/s" "$2/e"; cat "$1" >"$2/s/f"; ln -s s/f "$2/l"; cat "$1" >"$3""#;

/// The workflows, and whether a pull takes the job.
const KINDS: [(&str, bool); 16] = [
    ("(copy 'x')", true),
    ("'x'", true),
    ("OWN('own/a')", true),
    ("Inputs: x\nx", true),
    ("(make 'x')", true),
    ("MEMBER('s/f' (make 'x')[o])", true),
    ("MEMBER('l' (make 'x')[o])", true),
    ("MEMBER('s' (make 'x')[o])", true),
    ("MEMBER('e' (make 'x')[o])", true),
    ("TREE('.:own')", true),
    ("TREE('.:own')[commit]", true),
    ("POINTS(:over k 1 2)", true),
    ("SWEEP((make k) :over k 1 2)[directory]", false),
    ("SWEEP((make k) :over k 1 2)[table, directory]", false),
    ("MEMBER('k=1/r.txt' SWEEP((make k) :over k 1 2)[directory])", false),
    ("ALL('a' (copy 'x') OWN('own/a') POINTS(:over k 1))", true),
];

#[test]
fn outputs_of_each_kind_are_in_a_clone_and_a_pull_ends_well() {
    for (text, is_pulled) in KINDS {
        let mut lab = Lab::task("'x'")
            .computation("copy", "p", "q", r#"cat "$1" >"$2""#)
            .computation("make", "p", "o/ r.txt", MAKE)
            .file("own/a", "own\n")
            .one_text(text)
            .data("x", "x\n");
        lab.inputs = text.starts_with("Inputs").then(|| "x".to_owned()).into_iter().collect();
        let lab = lab.commit();
        repository(&lab, "results.git");
        evaluate(&lab, "storage").exit(0);
        let job = job(&lab.path("storage"));
        push(&lab, &[], "storage", "results.git").exit(0);
        cloned(&lab, "results.git", "clone", &[]);
        let outside = |arguments: &[&str]| lab.run("ce", arguments).exit(0).stdout;
        outside(&["verify", "../clone"]);
        if text.ends_with("[table, directory]") {
            lab.run("ce", &["run", "-n", "../clone"]).exit(3);
        }
        outside(&["export", "../storage", &job, "../of-storage"]);
        outside(&["export", "../clone", &job, "../of-clone"]);
        let [of_storage, of_clone] = ["of-storage", "of-clone"].map(|dir| {
            let mut files = files(&lab.path(dir));
            files.remove("README.md");
            files
        });
        assert_eq!(of_clone, of_storage, "{text}");
        outside(&["show", "../clone", &job]);
        evaluate(&lab, "clone").exit(0);
        outside(&["verify", "../clone"]);
        let pulled = pull(&lab, &[], "pulled", "results.git").exit(0);
        let dry = pull(&lab, &["-n"], "other", "results.git").exit(3);
        for ran in [&pulled, &dry] {
            assert_eq!(ran.stdout.contains("1 job"), is_pulled, "{text}: {}", ran.stdout);
        }
        outside(&["verify", "../pulled"]);
        evaluate(&lab, "pulled").exit(0);
    }
}

/// The short name of the first output of the only job.
fn job(storage: &Path) -> String {
    let is_output = |name: &&String| name.starts_with("t_task/") && name.contains("/record/");
    let record = files(storage).into_keys().find(|name| is_output(&name)).unwrap();
    record.replace("/record/", "/").trim_end_matches(".json").to_owned()
}
