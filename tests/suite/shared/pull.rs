//! `ce pull`: results from a repository are checked, and local results stay.

use std::fs;

use super::{evaluate, lab, listed, pull, push, repository, salt};
use crate::lab::{Lab, files};

/// A laboratory whose results were pushed, and whose storage is gone.
pub(super) fn pushed() -> Lab {
    let lab = lab();
    lab.ce_run(&[]).exit(0).called(vec!["once", "twice"]);
    push(&lab, &[], "storage", "results.git").exit(0);
    fs::remove_dir_all(lab.path("storage")).unwrap();
    lab
}

/// Changes a file of the results as somebody might who can push.
fn forge(lab: &Lab, [owner, room]: [&str; 2], change: impl Fn(&str) -> String) {
    let (parent, clone) = ("forger", "clone");
    fs::create_dir_all(lab.path(parent)).unwrap();
    lab.git(parent, &["clone", "--quiet", "--branch", "results", "../results.git", clone]);
    let dir = format!("{parent}/{clone}");
    let files = lab.git(&dir, &["ls-files"]);
    let name = files.lines().find(|name| name.starts_with(owner) && name.contains(room)).unwrap();
    let place = lab.path(&dir).join(name);
    fs::write(&place, change(&fs::read_to_string(&place).unwrap())).unwrap();
    lab.git(&dir, &["commit", "--quiet", "--all", "--message", "forged"]);
    lab.git(&dir, &["push", "--quiet"]);
    fs::remove_dir_all(lab.path(&dir)).unwrap();
}

#[test]
fn pulled_results_are_reused() {
    let lab = pushed();
    pull(&lab, &["-n"], "storage", "results.git").exit(3).shows("would pull 2 calls, 1 job (12 B)");
    assert!(!lab.path("storage").exists(), "a dry run makes no storage");
    pull(&lab, &[], "storage", "results.git")
        .exit(0)
        .shows("pulled 2 calls, 1 job (12 B) from ")
        .says("no signatures were checked");
    lab.unchanged(|| pull(&lab, &[], "storage", "results.git").exit(0).shows("nothing is new in "));
    // A plain repository sends everything.
    lab.git("results.git", &["config", "uploadpack.allowFilter", "false"]);
    fs::remove_dir_all(lab.path("cache")).unwrap();
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 2 calls, 1 job (12 B) from ");
    lab.ce_run(&[]).exit(0).called(vec![]);
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
    assert!(lab.is_tidy(), "nothing is left in tmp");
    // They are results like all others: pushed again, they are the same.
    push(&lab, &[], "storage", "results.git").exit(0).shows("nothing is new");
    repository(&lab, "others.git");
    push(&lab, &[], "storage", "others.git").exit(0);
    assert_eq!(listed(&lab, "results.git"), listed(&lab, "others.git"));
}

#[test]
fn an_empty_repository_has_no_results() {
    let lab = lab();
    pull(&lab, &[], "storage", "results.git").exit(0).shows("has no results");
    pull(&lab, &[], "storage", "nowhere").exit(2).says("there is no repository");
}

#[test]
fn a_file_or_a_record_that_does_not_belong_to_its_name_is_not_taken() {
    let lab = pushed();
    forge(&lab, ["c_once/", "/00/"], |_| "z\nz\n".to_owned());
    let told = pull(&lab, &[], "storage", "results.git").exit(1);
    told.shows("was not taken: a file of it is not what the record says").shows("pulled 1 call");
    lab.ce_run(&[]).exit(0).called(vec!["once"]);
    lab.run("ce", &["verify", "../storage"]).exit(0);
    let other = |text: &str| text.replace("\"once\"", "\"twice\"");
    forge(&lab, ["c_once/", "/record/"], other);
    let told = pull(&lab, &[], "other", "results.git").exit(1);
    told.shows("its record cannot be understood, or does not belong to its name");
    forge(&lab, ["c_twice/", "/record/"], |_| "{".to_owned());
    pull(&lab, &[], "third", "results.git").exit(1).shows("c_twice/");
    evaluate(&lab, "third").exit(0).called(vec!["once", "twice"]);
}

#[test]
fn pull_does_not_replace_differing_local_results() {
    let lab = pushed();
    salt(&lab, "salt\n");
    evaluate(&lab, "storage").exit(0);
    let before = lab.results();
    let told = pull(&lab, &[], "storage", "results.git").exit(1);
    told.shows("it has other outputs here, and they stay");
    assert!(lab.results() == before, "nothing was changed");
}

#[test]
fn links_and_programs_in_a_repository_are_not_followed() {
    let lab = pushed();
    fs::create_dir_all(lab.path("forger")).unwrap();
    lab.git("forger", &["clone", "--quiet", "--branch", "results", "../results.git", "."]);
    fs::write(lab.path("data/secret"), "x\nx\n").unwrap();
    let files = lab.git("forger", &["ls-files"]);
    let name = files.lines().find(|name| name.starts_with("c_once/") && name.contains("/00/"));
    let place = lab.path("forger").join(name.unwrap());
    fs::remove_file(&place).unwrap();
    std::os::unix::fs::symlink(lab.path("data/secret"), &place).unwrap();
    lab.git("forger", &["add", "--all"]);
    lab.git("forger", &["commit", "--quiet", "--message", "a link"]);
    lab.git("forger", &["push", "--quiet"]);
    pull(&lab, &[], "storage", "results.git")
        .exit(1)
        .shows("was not taken: a file of it is not in the repository");
    lab.ce_run(&[]).exit(0).called(vec!["once"]);
}

#[test]
fn a_pull_while_runs_go_on_shows_whole_results_only() {
    let lab = pushed();
    let pulls = std::thread::scope(|scope| {
        let pulls = [(); 3]
            .map(|()| scope.spawn(|| pull(&lab, &["--no-sync"], "storage", "results.git").status));
        let runs = [(); 2].map(|()| scope.spawn(|| lab.ce_run(&[]).status));
        let ended = runs.map(|run| run.join().unwrap().code());
        assert_eq!(ended, [Some(0); 2]);
        pulls.map(|pull| pull.join().unwrap().code())
    });
    assert_eq!(pulls, [Some(0); 3]);
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong");
}

#[test]
fn literals_of_a_job_are_pulled_with_it() {
    let mut lab = Lab::task("Inputs: 'x'\n(both INPUT('x') FILE('data/table'))[0]")
        .computation("both", "a\nb", "c", r#"cat "$1" "$2" >"$3""#)
        .data("x", "x\n")
        .with_storage();
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    repository(&lab, "results.git");
    fs::create_dir(lab.path("storage/tinputs")).unwrap();
    let place = lab.path("storage/data/table");
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(&place, "a table\n").unwrap();
    lab.ce_run(&[]).exit(0).called(vec!["both"]);
    push(&lab, &[], "storage", "results.git").exit(0);
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 1 call, 1 job");
    assert_eq!(fs::read_to_string(lab.path("other/data/table")).unwrap(), "a table\n");
    evaluate(&lab, "other").exit(0).called(vec![]);
    // Another file that is there stays, and is reported for the job that needs the one in the repository.
    fs::create_dir_all(lab.path("third/data")).unwrap();
    fs::write(lab.path("third/data/table"), "mine\n").unwrap();
    fs::create_dir(lab.path("third/tinputs")).unwrap();
    for options in [&["-n"][..], &[]] {
        let told = pull(&lab, options, "third", "results.git").exit(1);
        let told = told.shows("it names data/table, which has other contents here, and they stay");
        assert!(!told.stdout.contains("1 job"), "{}", told.stdout);
    }
    lab.unchanged(|| pull(&lab, &["-n"], "third", "results.git").exit(1).shows("nothing is new"));
    assert_eq!(fs::read_to_string(lab.path("third/data/table")).unwrap(), "mine\n");
}

#[test]
fn a_job_is_taken_without_the_files_and_trees_of_its_repository() {
    let reading = |text: &str| {
        Lab::task(text)
            .computation(
                "copy",
                "a",
                "b",
                r#"if [ -d "$1" ]; then ls "$1"; else cat "$1"; fi >"$2""#,
            )
            .file("own", "x\n1\n2\n")
            .commit()
    };
    for text in [
        "Inputs:\n(copy OWN('own'))[0]",
        "Inputs:\n(copy TREE('.')[directory])[0]",
        "Inputs:\nSWEEP(:body (copy INPUT('x')) :points OWN('own'))[0]",
    ] {
        let lab = reading(text);
        repository(&lab, "results.git");
        evaluate(&lab, "storage").exit(0);
        lab.called();
        push(&lab, &[], "storage", "results.git").exit(0);
        lab.unchanged(|| pull(&lab, &["-n"], "other", "results.git").exit(3).shows("1 job"));
        pull(&lab, &[], "other", "results.git").exit(0).shows("1 job");
        for options in [&["-n"][..], &[]] {
            pull(&lab, options, "other", "results.git").exit(0).shows("nothing is new");
        }
        lab.run("ce", &["verify", "../other"]).exit(0).says("0 wrong, 0 odd");
        evaluate(&lab, "other").exit(0).called(vec![]);
        push(&lab, &[], "other", "results.git").exit(0).shows("nothing is new");
    }
}

#[test]
fn a_dry_pull_promises_no_job_whose_outputs_differ_here() {
    let lab = pushed();
    salt(&lab, "salt\n");
    evaluate(&lab, "storage").exit(0);
    fs::remove_dir_all(lab.path("storage/t_task")).unwrap();
    for options in [&["-n"][..], &[]] {
        let told = pull(&lab, options, "storage", "results.git").exit(1);
        let told = told.shows("which has other contents here, and they stay");
        assert!(!told.stdout.contains("1 job"), "{}", told.stdout);
    }
}

#[test]
fn tables_of_sweeps_go_with_all_points_behind_them() {
    let text = "Inputs:\nSWEEP('s' :factors/00-n '1' '2' '3' :body (copy INPUT('n'))[0])[0]";
    let lab = Lab::task(text).computation("copy", "a", "b", r#"cat "$1" >"$2""#).commit();
    repository(&lab, "results.git");
    evaluate(&lab, "storage").exit(0).called(vec!["copy"; 3]);
    push(&lab, &[], "storage", "results.git").exit(0).shows("pushed 3 calls, 1 job, 1 table");
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 3 calls, 1 job, 1 table");
    evaluate(&lab, "other").exit(0).called(vec![]);
    lab.run("ce", &["verify", "../other"]).exit(0).says("0 wrong");
    lab.run("ce", &["table", "../other"]).exit(0).shows("ok");
}

#[test]
fn a_table_that_is_too_large_to_be_pushed_is_made_again() {
    let levels = ["1", "2", "3"].map(|it| format!("'{}'", it.repeat(500))).join(" ");
    let text = format!("Inputs:\nSWEEP('s' :factors/00-n {levels} :body (copy INPUT('n'))[0])[0]");
    let lab = Lab::task(&text).computation("copy", "a", "b", r#"cat "$1" >"$2""#).commit();
    repository(&lab, "results.git");
    evaluate(&lab, "storage").exit(0).called(vec!["copy"; 3]);
    let told = push(&lab, &["--limit", "1K"], "storage", "results.git").exit(0);
    told.shows("pushed 3 calls, 1 job").shows("and the limit is 1.0 KiB");
    let told = pull(&lab, &[], "other", "results.git").exit(0);
    let told = told.shows("pulled 3 calls").shows("which the repository does not have");
    told.shows("a run makes both from the calls");
    evaluate(&lab, "other").exit(0).called(vec![]).says("1 table: 1 made");
}

#[test]
fn levels_of_points_are_read_from_the_table() {
    let lab = Lab::task("(twice INPUT('size'))[0]")
        .computation("twice", "a", "b", r#"cat "$1" "$1" >"$2""#)
        .file("inputs", "")
        .without("workflow")
        .node("", "sweep", "SIZES")
        .file("workflow/factors/00-size", "12\nlarge\n")
        .call("inputs/00-body/", "twice", &["size"])
        .commit();
    repository(&lab, "results.git");
    lab.ce_run(&["--no-sync"]).exit(0);
    push(&lab, &[], "storage", "results.git").exit(0);
    pull(&lab, &[], "other", "results.git").exit(0);
    let log = lab.run("ce", &["log", "../other"]).exit(0);
    for text in ["  00=12  ", "  00=large  "] {
        assert!(log.stdout.contains(text), "{text}: {}", log.stdout);
    }
    let large = log.lines().into_iter().find(|it| it.contains("large")).unwrap();
    let digits = large.split_whitespace().last().unwrap();
    let call = lab.run("ce", &["log", "--json", "../other"]).exit(0);
    let call = call.lines().into_iter().find(|it| it.contains(digits)).unwrap().to_owned();
    assert!(call.contains(r#""texts":{"00":"large"}"#), "{call}");
}

#[test]
fn control_characters_of_a_forged_recipe_do_not_reach_the_terminal() {
    let lab = Lab::task("Inputs: 'x'\n(twice INPUT('x'))[0]")
        .computation("both", "a b", "c", r#"cat "$1" "$2" >"$3""#)
        .computation("twice", "a", "b", r#"cat "$1" "$1" >"$2""#)
        .without("workflow")
        .node("", "computation", "both")
        .call("inputs/00-own/", "twice", &["x"])
        .node("inputs/01-table/", "sweep", "SIZES")
        .file("workflow/inputs/01-table/factors/00-size", "12\nlarge\n")
        .call("inputs/01-table/inputs/00-body/", "twice", &["size"])
        .data("x", "\x1b[31mRED\x1b[2J\n")
        .isolated()
        .commit();
    repository(&lab, "results.git");
    lab.ce_run(&["--no-sync"]).exit(0);
    push(&lab, &[], "storage", "results.git").exit(0);
    pull(&lab, &[], "other", "results.git").exit(0);
    let forge = |storage: &str, [from, to]: [&str; 2]| {
        let tables = lab.path(storage).join("tables");
        let names = files(&tables);
        let recipe = tables.join(names.keys().find(|name| name.ends_with("/recipe")).unwrap());
        let forged = fs::read_to_string(&recipe).unwrap().replace(from, to);
        fs::remove_file(&recipe).unwrap();
        fs::write(&recipe, forged).unwrap();
    };
    forge("other", ["large", r"\u001b[31mRED\u001b[2J"]);
    let ran = lab.run("ce", &["shell", "../other", "twice", "--", "true"]).exit(2);
    let ran = ran.says("3 calls are named twice: c_twice/").says(" 00=12");
    assert!(!ran.stderr.contains('\x1b'), "{:?}", ran.stderr);
    forge("storage", [r#"["size"]"#, r#"["\u001b[2J"]"#]);
    let ran = lab.run("ce", &["show", "../storage/tinputs/ad/552e6dc057"]).exit(0);
    assert!(ran.stdout.contains("[2J=12") && !ran.stdout.contains('\x1b'), "{:?}", ran.stdout);
}
