//! Git trees as values: nodes of kind `tree`, and `-r`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::lab::{Lab, files};
use crate::repository::{self, LAB};

/// Prints the second input, and all files of the first.
const LIST: &str = r#"{ cat "$2"; cd "$1"; find . -type f | sort | xargs -r grep -H ''; } >"$3""#;

/// A task with a submodule `lib`, which has two commits and a tag of the first.
fn lab(text: &str) -> Lab {
    let lab = Lab::task(text)
        .computation("list", "dir text", "list", LIST)
        .computation("copy", "a", "b", r#"cat "$1" >"$2""#)
        .file("lib/top", "top\n")
        .file("lib/src/file", "one\n")
        .mode("lib/src/file", 0o755);
    let lib = lab.path("task/lib");
    repository::commit(&lib, LAB, "one\n");
    lab.git("task/lib", &["tag", "-a", "v1", "-m", "first"]);
    let lab = lab.file("lib/src/file", "two\n");
    repository::commit(&lib, LAB, "two\n");
    repository::init(&lab.path("task"));
    repository::absorb(&lab.path("task"), "lib", "../lib");
    lab.commit_again()
}

/// Returns the contents of the task's only output, after a run with these arguments.
#[track_caller]
fn output(lab: &Lab, arguments: &[&str]) -> String {
    let ran = lab.run("ce-run", &[&["-q", "../storage"], arguments].concat()).exit(0);
    fs::read_to_string(lab.path("task").join(ran.stdout.trim_end())).unwrap()
}

const AT_REVISION: &str = "Inputs: 'rev'\n(list TREE('lib' INPUT('rev'))[00, 01])[00]";

const RECORDED: &str = "Inputs:\n(list TREE('lib:src')[00, 01])[00]";

#[test]
fn a_submodule_is_at_its_recorded_commit() {
    let lab = lab(RECORDED);
    let head = lab.git("task/lib", &["rev-parse", "HEAD"]);
    assert_eq!(output(&lab, &[]), format!("{head}\n./file:two\n"));
    lab.run("ce-run", &["../storage"]).exit(0).says("job output 00").says("1 call: 1 reused");
    lab.run("ce-run", &["-n", "../storage"]).exit(0).prints("run/trees/recorded.txt");
    lab.run("ce-sym", &[]).exit(0).shows("(list TREE('lib:src')[00, 01])[00]");
    lab.run("ce-viz", &["../storage"]).exit(0).shows("TREE lib:src");
    lab.run("ce", &["check"]).exit(0);
    lab.run("ce", &["verify", "../storage"]).exit(0);
    // Another commit of the task is another version of the submodule.
    lab.git("task/lib", &["checkout", "-q", "v1"]);
    let refused = lab.run("ce-run", &["../storage"]).exit(2);
    refused.says("lib: has uncommitted changes: lib").says("--dirty");
    let lab = lab.commit_again();
    let v1 = lab.git("task/lib", &["rev-parse", "v1^{commit}"]);
    assert_eq!(output(&lab, &[]), format!("{v1}\n./file:one\n"));
    assert_eq!(output(&lab, &["--at", "HEAD~1"]), format!("{head}\n./file:two\n"));
}

#[test]
fn modes_and_links_that_git_records_are_kept() {
    let lab = lab(RECORDED).link("lib/src/link", "file").mode("lib/src/file", 0o755);
    repository::commit(&lab.path("task/lib"), LAB, "three\n");
    let lab = lab.commit_again();
    output(&lab, &[]);
    let ran = lab.run("ce-run", &["-n", "../storage"]).exit(0);
    let line = ran.stdout.lines().find(|line| line.contains("[00]")).unwrap();
    let directory = line.split(' ').find(|word| word.starts_with("../storage")).unwrap();
    let manifest = lab.run("ce", &["show", "--manifest", directory]).exit(0);
    manifest.shows("exec 4 ").shows("link file\tlink");
    // A second storage gets the same without reading the tree, or with it.
    for cache in ["cache", "none"] {
        let mut command = lab.command("ce-run");
        command.env("XDG_CACHE_HOME", lab.path(cache)).args(["-n", "../storage"]);
        lab.finish(&mut command).exit(0).shows(&format!("{line}\n"));
    }
}

#[test]
fn a_revision_is_any_expression_and_a_job_counts_while_it_names_the_same_commit() {
    let lab = lab(AT_REVISION);
    let v1 = lab.git("task/lib", &["rev-parse", "v1^{commit}"]);
    let expected = format!("{v1}\n./src/file:one\n./top:top\n");
    for revision in ["v1", "HEAD~1", "v1^{commit}", "main~1", &v1[..9]] {
        assert_eq!(output(&lab, &[&format!("-prev={revision}")]), expected, "{revision}");
        let again = lab.run("ce-run", &["../storage", "-p", &format!("rev={revision}")]).exit(0);
        again.says("job output 00: ../storage/t_task/").says("1 call: 1 reused");
    }
    let full = format!("-prev={v1}");
    lab.run("ce-run", &["../storage", &full]).exit(0).says("job output 00: ../storage/t_task/");
    assert_eq!(output(&lab, &[&full]), expected);
    assert_eq!(lab.called().len(), 1, "equal trees are one value");
    // A user who has the job needs no repository.
    fs::rename(lab.path("task/lib"), lab.path("away")).unwrap();
    assert_eq!(output(&lab, &[&full]), expected);
    fs::rename(lab.path("away"), lab.path("task/lib")).unwrap();
    let (record, job) = job_of(&lab, "v1");
    assert_eq!(job["format"], 4);
    let revision = json!([{"repository": "lib", "revision": "v1", "commit": v1}]);
    assert_eq!(job["revisions"], revision);
    let name = record.replace("/record/", "/00/").replace(".json", "");
    let shown = lab.run("ce", &["show", &format!("../storage/{name}")]).exit(0);
    shown.shows(&format!("revision     v1 in lib: {v1}"));
    assert_eq!(output(&lab, &["-prev=v1"]), expected);
    assert_eq!(lab.called(), [""; 0]);
    lab.run("ce", &["verify", "../storage"]).exit(0);
    // A tag that has moved is looked up again.
    lab.git("task/lib", &["tag", "-f", "v1", "HEAD"]);
    let moved = expected.replace("one", "two");
    let head = lab.git("task/lib", &["rev-parse", "HEAD"]);
    let moved = moved.replace(&v1, &head);
    assert_eq!(output(&lab, &["-prev=v1"]), moved);
    assert_eq!(lab.called(), ["list"]);
    let (same, job) = job_of(&lab, "v1");
    assert_eq!((same, job["revisions"][0]["commit"].as_str()), (record, Some(&*head)));
    assert_eq!(output(&lab, &["-prev=v1"]), moved);
    lab.git("task/lib", &["tag", "-f", "v1", &v1]);
    assert_eq!(output(&lab, &["-prev=v1"]), expected);
    lab.run("ce", &["verify", "../storage"]).exit(0);
}

/// The record of the job of a revision, and its name.
fn job_of(lab: &Lab, revision: &str) -> (String, Value) {
    let records = files(&lab.path("storage")).into_iter();
    let mut jobs =
        records.filter(|(name, _)| name.starts_with("t_task/") && name.ends_with(".json"));
    let jobs =
        jobs.by_ref().map(|(name, text)| (name, serde_json::from_slice::<Value>(&text).unwrap()));
    let is_of = |job: &Value| job["revisions"][0]["revision"] == revision;
    jobs.into_iter().find(|(_, job)| is_of(job)).unwrap()
}

#[test]
fn a_job_that_depends_on_a_tag_is_not_pushed() {
    let lab = lab(AT_REVISION).isolated();
    lab.run("ce-run", &["../storage", "-prev=v1"]).exit(0);
    lab.git("", &["init", "-q", "--bare", "results.git"]);
    let pushed = lab.run("ce", &["push", "../storage", "../results.git"]).exit(0);
    pushed.shows("it has read commits by tags or branches, which may name others elsewhere");
}

#[test]
fn a_revision_may_be_computed() {
    let text = "Inputs: 'rev'\n(list TREE('lib' (copy INPUT('rev'))[00])[00, 01])[00]";
    let lab = lab(text);
    let missing = lab.run("ce-run", &["-n", "../storage", "-prev=v1"]).exit(3);
    missing.prints("run/trees/computed-missing.txt");
    let ran = lab.run("ce-run", &["../storage", "-prev=v1"]).exit(0);
    ran.says("2 calls: 2 computed").prints("run/trees/computed.txt");
    let json = lab.run("ce-run", &["--json", "-n", "../storage", "-prev=v1"]).exit(0);
    json.shows(r#""trees":[{"name":"lib","revision":"v1","version":""#);
    lab.run("ce-run", &["../storage", "-prev=v1"]).exit(0).says("2 calls: 2 reused");
    let wrong = lab.run("ce-run", &["../storage", "-prev=v9"]).exit(1);
    wrong.says("has no commit v9").says("git -C ./lib fetch --tags").shows("MISSING!!!");
    let wrong = lab.run("ce-run", &["../storage", "-prev=two\nlines"]).exit(1);
    wrong.says("the revision of lib cannot be used: it is not one line");
    lab.run("ce", &["explain", "../storage", "-prev=main"]).exit(3).shows("(dir) waits for copy");
}

#[test]
fn texts_of_inputs_are_parts_of_names() {
    let lab = lab("Inputs: 'dir', 'repo'\n(list TREE('{repo}:{dir}')[00, 01])[00]");
    let head = lab.git("task/lib", &["rev-parse", "HEAD"]);
    let expected = format!("{head}\n./file:two\n");
    assert_eq!(output(&lab, &["-prepo=lib", "-pdir=src"]), expected);
    lab.run("ce-run", &["../storage", "-prepo=lib", "-pdir=src"]).exit(0).says("1 reused");
    let own = lab.git("task", &["rev-parse", "HEAD"]);
    assert_eq!(output(&lab, &["-prepo=.", "-pdir=lib/src"]), format!("{own}\n./file:two\n"));
    lab.run("ce-run", &["../storage", "-prepo=lib", "-pdir=none"]).exit(2).says("none does not");
    let refused = lab.run("ce-run", &["../storage", "-prepo=lib", "-pdir=../src"]).exit(2);
    refused.says(r#""{repo}:{dir}" where dir is "../src", repo is "lib": "#);
    let refused = lab.run("ce-run", &["../storage", "-prepo=bil", "-pdir=src"]).exit(2);
    refused.says("the task has no submodule \"bil\"");
    lab.run("ce", &["check"]).exit(0);
    let lab = lab.file("lib/src/file", "three\n");
    lab.run("ce-run", &["../storage", "-prepo=lib", "-pdir=src"]).exit(2).says("src/file");
    let dirty = output(&lab, &["--dirty", "-prepo=lib", "-pdir=src"]);
    assert!(dirty.starts_with("dirty-") && dirty.ends_with("\n./file:three\n"), "{dirty}");
    let ran = lab.run("ce-run", &["--dirty", "../storage", "-prepo=lib", "-pdir=src"]).exit(0);
    ran.says("lib/src/file has uncommitted changes");
}

#[test]
fn a_commit_may_be_a_revision_and_a_tree_an_output() {
    let text = "Inputs:\nTREE('lib:src' TREE('lib')[01])[00, 01]";
    let lab = lab(text);
    let ran = lab.run("ce-run", &["../storage"]).exit(0).prints("run/trees/only.txt");
    ran.says("0 calls").says("job output 01");
    let job = fs::read_dir(lab.path("storage/t_task")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_to_string(job.join("00/_/file")).unwrap(), "two\n");
    let head = lab.git("task/lib", &["rev-parse", "HEAD"]);
    assert_eq!(fs::read_to_string(job.join("01/_")).unwrap(), format!("{head}\n"));
    let text = "Inputs: 'rev'\nTREE('lib' (copy INPUT('rev'))[00])[00]";
    let lab = self::lab(text);
    lab.run("ce-run", &["../storage", "-prev=none"]).exit(1).says("has no commit none");
    lab.run("ce-run", &["../storage", "-prev=v1"]).exit(0).shows("ok").says("1 call: 1 computed");
}

#[test]
fn the_repository_of_the_task_is_read_like_a_submodule() {
    let lab = Lab::task("Inputs:\n(list TREE('.:data')[00, 01])[00]")
        .computation("list", "dir text", "list", LIST)
        .file("data/file", "one\n")
        .commit();
    let head = |lab: &Lab| lab.git("task", &["rev-parse", "HEAD"]);
    assert_eq!(output(&lab, &[]), format!("{}\n./file:one\n", head(&lab)));
    let lab = lab.file("README", "");
    assert_eq!(output(&lab, &[]), format!("{}\n./file:one\n", head(&lab)), "it is elsewhere");
    let lab = lab.file("data/file", "two\n").file("data/new", "new\n");
    let refused = lab.run("ce-run", &["../storage"]).exit(2);
    refused.says(".: has uncommitted changes: data/file, data/new").says("--dirty");
    let dirty = output(&lab, &["--dirty"]);
    let (version, files) = dirty.split_once('\n').unwrap();
    assert_eq!(files, "./file:two\n./new:new\n");
    assert!(version.starts_with("dirty-") && version.len() == 46, "{version}");
    let ran = lab.run("ce-run", &["--dirty", "../storage"]).exit(0).says("were not stored");
    ran.says("data/file, data/new have uncommitted changes");
    let old = head(&lab);
    let lab = lab.commit_again();
    assert_eq!(output(&lab, &["--at", &old]), format!("{old}\n./file:one\n"));
    assert_eq!(output(&lab, &[]), format!("{}\n./file:two\n./new:new\n", head(&lab)));
}

#[test]
fn a_dirty_submodule_is_taken_as_it_stands() {
    let lab = lab(RECORDED).file("lib/src/file", "three\n");
    let refused = lab.run("ce-run", &["../storage"]).exit(2);
    refused.says("lib: has uncommitted changes: src/file");
    assert!(output(&lab, &["--dirty"]).ends_with("\n./file:three\n"));
    // A change that is committed there is a commit.
    repository::commit(&lab.path("task/lib"), LAB, "three\n");
    lab.run("ce-run", &["../storage"]).exit(2).says("lib: has uncommitted changes: lib");
    let head = lab.git("task/lib", &["rev-parse", "HEAD"]);
    assert_eq!(output(&lab, &["--dirty"]), format!("{head}\n./file:three\n"));
    lab.run("ce-run", &["--dirty", "../storage"]).exit(0).says("lib has uncommitted changes");
}

#[test]
fn the_user_may_name_repositories() {
    let text = "Inputs: 'rev'\n(list TREE('upstream' INPUT('rev'))[00, 01])[00]";
    let lab = lab(text);
    let unknown = lab.run("ce-run", &["../storage", "-prev=v1"]).exit(2);
    unknown.complains("run/trees/unknown.err");
    lab.git("", &["clone", "-q", "--bare", "task/lib", "lib.git"]);
    let v1 = lab.git("lib.git", &["rev-parse", "v1^{commit}"]);
    for repository in ["../lib.git", "lib", "lib/src"] {
        let named = format!("-rupstream={repository}");
        let expected = format!("{v1}\n./src/file:one\n./top:top\n");
        assert_eq!(output(&lab, &[&named, "-prev=v1"]), expected, "{repository}");
    }
    let missing = "0123456789012345678901234567890123456789";
    let ran = lab
        .run("ce-run", &["../storage", "-rupstream=../lib.git", "-p", &format!("rev={missing}")]);
    ran.exit(2)
        .says(&format!("has no commit {missing}"))
        .says("try: git -C LAB/lib.git fetch --tags");
    for (named, told) in [
        ("upstream=../nowhere", "cannot read the repository upstream at ../nowhere"),
        ("upstream=../data", "../data is not in a Git repository"),
        ("upstrem=../lib.git", "did you mean upstream?"),
        ("upstream", "write SOURCE=REPO"),
    ] {
        lab.run("ce-run", &["../storage", "-prev=v1", "-r", named]).exit(2).says(told);
    }
    let twice = ["../storage", "-prev=v1", "-r", "upstream=a", "-r", "upstream=b"];
    lab.run("ce-run", &twice).exit(2).says("the repository upstream is given twice");
}

#[test]
fn a_named_repository_hides_a_submodule() {
    let lab = lab(RECORDED);
    let head = lab.git("task/lib", &["rev-parse", "HEAD"]);
    lab.git("", &["clone", "-q", "--bare", "task/lib", "lib.git"]);
    lab.git("task", &["submodule", "-q", "deinit", "-f", "lib"]);
    fs::remove_dir_all(lab.path("task/.git/modules")).unwrap();
    let absent = lab.run("ce-run", &["../storage"]).exit(2);
    absent.says("the submodule lib is not cloned").says("git submodule update --init lib");
    let expected = format!("{head}\n./file:two\n");
    assert_eq!(output(&lab, &["-rlib=../lib.git"]), expected);
    fs::remove_dir_all(lab.path("storage")).unwrap();
    fs::remove_dir_all(lab.path("lib.git")).unwrap();
    lab.git("", &["init", "-q", "--bare", "lib.git"]);
    let other = lab.run("ce-run", &["../storage", "-rlib=../lib.git"]).exit(2);
    other.says(&format!("has no commit {head}")).says("fetch");
}

#[test]
fn faults_of_a_tree_are_reported() {
    let mut lab = lab(RECORDED).link("lib/link", "src");
    repository::commit(&lab.path("task/lib"), LAB, "link\n");
    let node = fs::read_dir(lab.path("task/workflow/inputs")).unwrap().next().unwrap();
    let node = node.unwrap().file_name().into_string().unwrap();
    for (value, told) in [
        ("other", "the task has no submodule \"other\""),
        ("lib:none", "none does not exist in the"),
        ("lib:top", "top is a file in the"),
        ("lib:link/x", "link/x is a link, or behind one, in the"),
        (".:lib/none", "lib/none does not exist in the"),
    ] {
        lab = lab.file(&format!("workflow/inputs/{node}/value"), value).commit_again();
        lab.run("ce-run", &["../storage"]).exit(2).says(told);
        assert!(!lab.path("storage/c_list").exists());
    }
}

#[test]
fn a_tree_with_a_link_that_leads_out_is_refused() {
    let lab = lab(RECORDED).link("lib/src/out", "../top");
    repository::commit(&lab.path("task/lib"), LAB, "out\n");
    let lab = lab.commit_again();
    let refused = lab.run("ce-run", &["../storage"]).exit(2);
    refused.says("the link out leads to ../top, which is outside of the directory");
    assert!(lab.is_tidy());
}

#[test]
fn submodules_in_a_tree_are_directories() {
    let lab = lab(RECORDED).file("lib/src/inner/deep", "deep\n");
    let (lib, inner) = (lab.path("task/lib"), lab.path("task/lib/src/inner"));
    repository::commit(&inner, LAB, "inner\n");
    fs::create_dir_all(lab.path("task/.git/modules/lib/modules")).unwrap();
    fs::rename(inner.join(".git"), lab.path("task/.git/modules/lib/modules/inner")).unwrap();
    fs::write(inner.join(".git"), "gitdir: ../../../.git/modules/lib/modules/inner\n").unwrap();
    repository::commit(&lib, LAB, "with inner\n");
    let lab = lab.commit_again();
    let listed = output(&lab, &[]);
    assert!(listed.ends_with("\n./file:two\n./inner/deep:deep\n"), "{listed}");
    // The value is known, but a new storage needs the files.
    fs::remove_dir_all(lab.path("task/.git/modules/lib/modules")).unwrap();
    fs::remove_dir_all(inner).unwrap();
    fs::create_dir(lab.path("task/lib/src/inner")).unwrap();
    fs::remove_dir_all(lab.path("storage")).unwrap();
    let absent = lab.run("ce-run", &["../storage"]).exit(2);
    let absent = absent.says("the tree lib:src cannot be read");
    let absent = absent.says("because: inner is a submodule that is not cloned");
    absent.says("try: git submodule update --init --recursive in the repository lib");
}

#[test]
fn a_damaged_value_is_made_again() {
    let lab = lab(RECORDED);
    let listed = output(&lab, &[]);
    let values = fs::read_dir(lab.path("storage/tinputs")).unwrap().map(|it| it.unwrap().path());
    let values = values.flat_map(|it| fs::read_dir(it).unwrap()).map(|it| it.unwrap().path());
    let value = values.into_iter().find(|it| it.is_dir() && it.join("file").exists()).unwrap();
    fs::set_permissions(value.join("file"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(value.join("file"), "damaged\n").unwrap();
    lab.run("ce", &["verify", "../storage"]).exit(5);
    for result in fs::read_dir(lab.path("storage")).unwrap().map(|it| it.unwrap().path()) {
        if result.file_name().unwrap().to_str().unwrap().contains("_") {
            fs::remove_dir_all(result).unwrap();
        }
    }
    assert_eq!(output(&lab, &[]), listed);
    assert_eq!(fs::read_to_string(value.join("file")).unwrap(), "two\n");
    lab.run("ce", &["verify", "../storage"]).exit(0);
}

#[test]
fn a_commit_of_a_submodule_that_is_read_is_found_by_bisection() {
    let lab = lab("Inputs:\n(list TREE('lib:src')[00] OWN('inputs'))[00]");
    output(&lab, &[]);
    let bisect = ["bisect", "--good", "v1", "--bad", "main", "--in", "lib", "../storage"];
    let ran = lab.run("ce", &bisect).exit(0);
    ran.shows(&format!("{} two\n", lab.git("task/lib", &["rev-parse", "main"])));
}

#[test]
fn explanations_and_comparisons_name_commits() {
    let lab = lab(AT_REVISION);
    output(&lab, &["-prev=v1"]);
    let head = lab.git("task/lib", &["rev-parse", "HEAD"]);
    let explained = lab.run("ce", &["explain", "../storage", "-prev=HEAD"]).exit(3);
    explained.shows(&format!("TREE('lib')[00] differs, now HEAD at {head}: was"));
    let json = lab.run("ce", &["explain", "--json", "../storage", "-prev=HEAD"]).exit(3);
    let json = json.shows(r#""cause":"tree""#).shows(r#""tree":"lib""#);
    json.shows(&format!(r#""version":"HEAD at {head}""#));
    let lab = self::lab(RECORDED);
    output(&lab, &[]);
    lab.git("task/lib", &["checkout", "-q", "v1"]);
    let lab = lab.commit_again();
    let v1 = lab.git("task/lib", &["rev-parse", "HEAD"]);
    let compared = lab.run("ce", &["diff", "HEAD~1", "HEAD", "../storage"]).exit(0);
    compared.shows(&format!("  lib:src: {head} -> {v1}")).shows(" two\n");
    let json = lab.run("ce", &["diff", "--json", "HEAD~1", "HEAD", "../storage"]).exit(0);
    json.shows(r#""event":"tree""#).shows(r#""tree":"lib:src""#);
}
