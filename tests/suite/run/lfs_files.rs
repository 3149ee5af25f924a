//! Files of the task that Git LFS keeps elsewhere: the commit has pointers, and a value is the object.

use std::collections::BTreeSet;
use std::fs;

use crate::lab::Lab;

const LARGE: &str = "a\nlarge\nfile\n";

/// The SHA-256 of [`LARGE`].
const OID: &str = "30c75b5d2700d5baaeda7046893a8a6842837e8bb381c55d066b0700dfcca832";

fn pointer() -> String {
    let size = LARGE.len();
    format!("version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize {size}\n")
}

/// A task whose commit has the pointer at `data/in.csv`.
fn lab(text: &str) -> Lab {
    let show = r#"(cd "$1" 2>/dev/null && cat in.csv || cat "$1") >"$2""#;
    let lab = Lab::empty().computation("show", "x", "y", show).one_text(text);
    let lab = lab.file(".gitattributes", "*.csv filter=lfs diff=lfs merge=lfs -text\n");
    lab.file("data/in.csv", pointer()).file("data/other", "other\n").commit()
}

/// Puts the object where `git lfs fetch` does.
fn fetch(lab: &Lab, contents: &str) {
    let objects = lab.path("task/.git/lfs/objects").join(&OID[..2]).join(&OID[2..4]);
    fs::create_dir_all(&objects).unwrap();
    fs::write(objects.join(OID), contents).unwrap();
}

const VALUES: [&str; 3] = [
    "(show OWN('data/in.csv'))",
    "(show TREE('.:data'))",
    "(show MEMBER('in.csv' TREE('.:data')))",
];

#[test]
fn the_value_of_a_pointer_is_its_object() {
    for text in VALUES {
        let lab = lab(text);
        let missing = lab.ce_run(&[]).exit(2);
        missing.says("data/in.csv is kept by Git LFS").says("git lfs pull --include");
        assert!(!lab.path("called").exists(), "{text}: nothing was executed");
        // Other bytes of the same size are not the object.
        fetch(&lab, &LARGE.replace('a', "b"));
        lab.ce_run(&[]).says("data/in.csv is kept by Git LFS");
        fetch(&lab, LARGE);
        for options in [&["-n"][..], &[], &["--at=HEAD"]] {
            lab.ce_run(options).exit(if options == ["-n"] { 3 } else { 0 });
        }
        assert_eq!(lab.output(), LARGE, "{text}");
        // The same as a file that is committed as it is.
        let plain = lab.file("data/in.csv", LARGE).without(".gitattributes").commit_again();
        plain.ce_run(&[]).exit(0);
        let results = plain.results().into_keys().filter(|name| name.starts_with("c_show/"));
        let inputs: BTreeSet<_> =
            results.map(|name| name.rsplit('/').next().unwrap().to_owned()).collect();
        assert_eq!(inputs.len(), 1, "{text}: {inputs:?}");
    }
}

#[test]
fn ce_check_names_the_pointers_whose_objects_are_not_here() {
    for text in VALUES {
        let lab = lab(text).file("data/more.csv", pointer()).commit_again();
        let ran = lab.run("ce", &["check"]).exit(2).says("data/in.csv").says("git lfs pull");
        if text.contains("TREE") {
            ran.says(
                "the objects that Git LFS keeps of 2 files are not in this clone: data/in.csv, data/more.csv",
            );
        }
        fetch(&lab, LARGE);
        lab.run("ce", &["check"]).exit(0);
    }
}

#[test]
fn a_checked_out_object_is_the_value_and_unchanged() {
    for text in VALUES {
        let lab = lab(text).file("data/in.csv", LARGE);
        lab.ce_run(&[]).exit(0).says("job output 00");
        assert_eq!(lab.output(), LARGE, "{text}");
        let lab = lab.file("data/in.csv", "edited\n");
        lab.ce_run(&[]).exit(2).says("uncommitted changes");
    }
}

#[test]
fn a_pointer_without_the_lfs_attribute_is_a_plain_text() {
    for attributes in ["", "*.csv filter=lfs\ndata/*.csv -filter\n", "*.tsv filter=lfs\n"] {
        let lab = lab(VALUES[0]).file(".gitattributes", attributes).commit_again();
        lab.ce_run(&[]).exit(0);
        assert_eq!(lab.output(), pointer());
    }
}

#[test]
fn a_pointer_beside_exec_is_refused() {
    let lab = lab("(show 'x')").file("computations/show/table.csv", pointer()).commit_again();
    fetch(&lab, LARGE);
    for options in [&[][..], &["--at=HEAD"], &["--dirty"]] {
        lab.ce_run(options).exit(2).says("has the file table.csv, which Git LFS keeps elsewhere");
    }
}

#[test]
fn points_may_be_kept_by_lfs() {
    let lab = Lab::empty().computation("show", "k", "y", r#"cp "$1" "$2""#);
    let lab = lab.one_text("SWEEP((show k) :over k 1 2)");
    lab.to_directories().exit(0);
    let lab = lab.file(".gitattributes", "workflow/factors/* filter=lfs\n");
    let levels = lab.path("task/workflow/factors/00-k");
    assert!(levels.exists());
    fs::write(&levels, pointer()).unwrap();
    let lab = lab.commit();
    lab.ce_run(&[]).exit(2).says("is kept by Git LFS");
    fetch(&lab, LARGE);
    lab.ce_run(&[]).exit(0).says("3 computed");
}

#[test]
fn a_value_that_another_filter_has_converted_is_refused() {
    let lab = lab(VALUES[0]).file("data/in.csv", "stored\n");
    let lab = lab.file(".gitattributes", "*.csv filter=number\n").commit_again();
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.output(), "stored\n", "no filter has changed it");
    for (key, program) in [("clean", "sed s/worked/stored/"), ("smudge", "sed s/stored/worked/")] {
        lab.git("task", &["config", &format!("filter.number.{key}"), program]);
    }
    fs::remove_file(lab.path("task/data/in.csv")).unwrap();
    lab.git("task", &["checkout", "--", "."]);
    assert_eq!(fs::read_to_string(lab.path("task/data/in.csv")).unwrap(), "worked\n");
    lab.ce_run(&[]).exit(2).says("the filter \"number\" has converted it").says("-filter");
    lab.ce_run(&["--at=HEAD"]).exit(0);
}

#[test]
fn a_pointer_in_a_draft_stands_for_its_object() {
    for text in VALUES {
        let lab = lab(text).file("data/other", "edited\n");
        lab.ce_run(&["--dirty"]).exit(2).says("data/in.csv is kept by Git LFS");
        fetch(&lab, LARGE);
        assert_eq!(draft_output(&lab), LARGE, "{text}");
        // The pointer itself may be new, and so may be the rule.
        let lab = lab.file("data/in.csv", "stored\n").without(".gitattributes").commit_again();
        let lab = lab.file("data/in.csv", pointer()).file(".gitattributes", "*.csv filter=lfs\n");
        assert_eq!(draft_output(&lab), LARGE, "{text}");
    }
}

/// The output of a run with uncommitted changes.
#[track_caller]
fn draft_output(lab: &Lab) -> String {
    lab.ce_run(&["--dirty", "-q"]).exit(0).lines().into_iter().map(|it| lab.stored(it)).collect()
}

/// The commit has the same pointer, and another value.
#[test]
fn changed_lfs_attributes_are_an_uncommitted_change() {
    let lab = lab(VALUES[0]);
    fetch(&lab, LARGE);
    let lab = lab.file("data/.gitattributes", "*.csv !filter\n");
    assert_eq!(draft_output(&lab), pointer());
    let lab = lab.commit_again().file("data/.gitattributes", "*.csv filter=lfs\n");
    assert_eq!(draft_output(&lab), LARGE);
    assert!(lab.storage().iter().all(|name| !name.starts_with("t_")), "no job is stored");
}
