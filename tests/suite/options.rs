//! Options that many commands have mean the same in each.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::Lab;
use crate::program::{self, Ran};
use crate::shared;

const SUM: &str = "Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))[0]";

/// A task that was evaluated into the configured storage; and its output, seen from a directory in the task.
fn configured() -> (Lab, String) {
    let lab = Lab::task(SUM).file("notes/today", "").commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    lab.git("task", &["config", "compeval.storage", "../storage"]);
    let outputs = lab.storage().into_iter().filter(|name| name.starts_with("c_add/"));
    let output = outputs.filter(|name| name.contains("/00/")).collect();
    (lab, output)
}

/// Runs `ce` in a directory of the laboratory.
fn ce<'a>(lab: &'a Lab, dir: &str, arguments: &[&str]) -> Ran<'a> {
    lab.finish(lab.command("ce").current_dir(lab.path(dir)).args(arguments))
}

#[test]
fn the_configured_storage_is_found_from_a_subdirectory() {
    let (lab, output) = configured();
    let call = output.replace("/00/", "/");
    for (arguments, shown) in [
        (&["log"][..], "  add  "),
        (&["verify"], ""),
        (&["gc"], ""),
        (&["status"], ""),
        (&["gc", "--repositories"], "LAB/task"),
        (&["worker", "--idle", "0s", "-q"], ""),
        (&["pin", "--note", "figure 3", &output], ""),
        (&["pin"], "figure 3"),
        (&["cite", &output], "of task task, version"),
        (&["show", &output], "computation  add, output 00"),
        (&["show", "--log", &call], ""),
        (&["export", &output, "../../one"], "../../one/sum"),
        (&["export", "--json", &call, &output, "../../two"], "\"directory\": \"../../two\""),
        (&["cancel", "--all"], ""),
        (&["audit", "-n", "--task", ".", &call], "c_add/"),
    ] {
        ce(&lab, "task/notes", arguments).exit(0).shows(shown);
    }
    // A laboratory may be in memory, which breaks a promise.
    let doctor = lab.finish(lab.command("ce").current_dir(lab.path("task/notes")).arg("doctor"));
    assert!(doctor.stdout.contains("ok      exclusive files"), "{}", doctor.stdout);
    ce(&lab, "task/notes", &["pin", "../../storag"]).exit(5).says("did you mean");
    ce(&lab, "task/notes", &["cancel", "--forget", &call]).exit(2).says("is not suspended");
    ce(&lab, "task/notes", &["cancel"]).exit(2).says("no call is given").says("try: give names");
    ce(&lab, "task/notes", &["cancel", "--all", &call])
        .exit(2)
        .says("leave out the call, or the options");
    ce(&lab, "task/notes", &["pin", "--remove"]).exit(2).says("--remove needs a file");
}

#[test]
fn the_path_of_a_file_determines_the_storage() {
    let (lab, output) = configured();
    lab.git("task", &["config", "compeval.storage", "../other"]);
    let path = format!("../storage/{output}");
    for dir in ["task", "data"] {
        ce(&lab, dir, &["cite", &path]).exit(0).shows("of task task, version");
        ce(&lab, dir, &["show", &path]).exit(0).shows("computation  add, output 00");
        let made = format!("../from-{dir}");
        ce(&lab, dir, &["export", &path, &made]).exit(0).shows(&format!("{made}/"));
        ce(&lab, dir, &["pin", &path]).exit(0);
        ce(&lab, dir, &["cancel", "--forget", &path]).exit(2).says("is not suspended");
    }
    assert!(!Path::new(&lab.path("other")).exists());
    ce(&lab, "storage", &["cite", &output]).exit(0).shows("of task task, version");
    ce(&lab, "storage", &["pin", "--remove", &output]).exit(0);
    ce(&lab, "task", &["pin", "../storage"]).exit(0).shows("");
}

#[test]
fn without_a_setting_a_storage_must_be_named() {
    let (lab, _) = configured();
    for arguments in [
        &["log"][..],
        &["verify"],
        &["gc"],
        &["pin"],
        &["pin", "5d94"],
        &["pin", "--note", "figure 3", "c_add/5efbc68dc50d/00/ad48_5d94"],
        &["cite", "5d94"],
        &["show", "5d94"],
        &["export", "5d94", "../out"],
    ] {
        let ran = ce(&lab, "data", arguments).exit(2);
        ran.says("no storage is given").says("try: give it as the first argument");
    }
    for arguments in [&["log", "../storag"][..], &["pin", "../storag"], &["verify", "../storag"]] {
        ce(&lab, "data", arguments).exit(5).says("did you mean ../storage?");
    }
}

#[test]
fn a_storage_alone_and_a_path_elsewhere_name_no_result() {
    let (lab, _) = configured();
    let hint = "try: give a file of each result, after the storage";
    for dir in ["task", "data"] {
        for arguments in [
            &["cite", "../storage"][..],
            &["show", "../storage"],
            &["export", "../storage", "../out"],
        ] {
            let ran = ce(&lab, dir, arguments).exit(2);
            ran.says("../storage is a storage, and no result in it is given").says(hint);
        }
        let pinned = ce(&lab, dir, &["pin", "--note", "figure 3", "../storage"]).exit(2);
        pinned.says("--note needs a file").says(hint);
    }
    assert!(!lab.path("out").exists());
    for command in ["show", "cite", "shell"] {
        let tell =
            |path| ce(&lab, "data", &[command, path, "--"][..2 + usize::from(command == "shell")]);
        tell("absent").exit(2).says("absent is in no storage, and Git's configuration has no");
        tell("../storage/absent")
            .exit(2)
            .says("../storage/absent is in the storage ../storage, and");
    }
}

#[test]
fn both_ends_of_an_exchange_may_come_from_the_configuration() {
    let (lab, _) = configured();
    lab.git("data", &["init", "-q", "--bare", "../results.git"]);
    let push = |arguments: &[&str]| ce(&lab, "task/notes", &[&["push", "-n"], arguments].concat());
    push(&[]).exit(2).says("no repository is given");
    push(&["../../results.git"]).exit(3).shows("1 call");
    lab.git("task", &["config", "compeval.results", "../results.git"]);
    push(&[]).exit(3).shows("1 call");
    push(&["../../storage"]).exit(3).shows("1 call");
    push(&["../../storage", "../../results.git"]).exit(3).shows("1 call");
    ce(&lab, "task/notes", &["push"]).exit(0);
    lab.git("task", &["config", "compeval.storage", "../pulled"]);
    ce(&lab, "task/notes", &["pull"]).exit(0);
    ce(&lab, "task/notes", &["log"]).exit(0).shows("  add  ");
}

#[test]
fn results_are_not_pushed_to_a_repository_that_a_task_names() {
    let (lab, _) = configured();
    lab.git("data", &["init", "-q", "--bare", "../results.git"]);
    ce(&lab, "task", &["push", "../results.git"]).exit(0);
    let settings = |text: &str| fs::write(lab.path("task/.compeval"), text).unwrap();
    lab.git("task", &["config", "--unset", "compeval.storage"]);
    // Its hooks come with it, too.
    lab.git("task", &["init", "-q", "--bare", "in/evil.git"]);
    let hook = lab.path("task/in/evil.git/hooks/post-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\ntouch \"$LAB_LOG.pwned\"\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("in", lab.path("task/way")).unwrap();
    ce(&lab, "task", &["pull", "results", "../results.git"]).exit(0);
    let url = format!("file://{}", lab.path("task/in/evil.git").display());
    for inside in ["./in/evil.git", "./in/evil", "in/evil.git", "./way/evil.git", &url, "./new"] {
        settings(&format!("[compeval]\nstorage = results\nresults = {inside}\n"));
        for command in ["push", "pull"] {
            let refused = ce(&lab, "task", &[command]).exit(2);
            refused.says("which is not a URL or path of a repository outside of the work tree");
        }
        assert!(!lab.path("called.pwned").exists(), "{inside}");
    }
}

#[test]
fn a_task_may_name_its_storage_and_its_results() {
    let (lab, _) = configured();
    lab.git("data", &["init", "-q", "--bare", "../results.git"]);
    lab.git("task", &["config", "compeval.results", "../results.git"]);
    ce(&lab, "task", &["push"]).exit(0);
    // As its authors have it, and nobody's configuration.
    let settings = |text: &str| fs::write(lab.path("task/.compeval"), text).unwrap();
    settings("[compeval]\n\tstorage = in/results\n\tresults = ../results.git\n");
    lab.git("task", &["config", "--unset", "compeval.storage"]);
    lab.git("task", &["config", "--unset", "compeval.results"]);
    fs::create_dir_all(lab.path("task/in")).unwrap();
    let pulled = ce(&lab, "task/notes", &["pull"]).exit(0);
    pulled.says("made a new storage at ../in/results").says("the file .compeval of the task names");
    ce(&lab, "task/notes", &["log"]).exit(0).shows("  add  ");
    ce(&lab, "task/notes", &["pull", "../typed", "../../results.git"]).exit(0).says("you named");
    // The user's own storage, with results of many tasks, takes results of this one only if it is typed.
    lab.git("task", &["config", "compeval.storage", "../mine"]);
    for command in ["pull", "push"] {
        let mixed = ce(&lab, "task", &[command]).exit(2);
        mixed.says("the storage ../mine is yours, and the file .compeval of the task names");
    }
    settings(
        "[compeval]\n\tstorage = in/results\n\tresults = https://ada:hunter2@host/x?token=abc\n",
    );
    let secret = ce(&lab, "task", &["pull"]).exit(2).says("names the results https://host/x");
    assert!(
        !secret.stderr.contains("hunter2") && !secret.stderr.contains("abc"),
        "{}",
        secret.stderr
    );
    settings("[compeval]\n\tstorage = in/results\n\tresults = ../results.git\n");
    ce(&lab, "task", &["pull", "../mine"]).exit(0).says("made a new storage at ../mine");
    lab.git("task", &["config", "--unset", "compeval.storage"]);
    // A user who clones a task does not let its authors choose any place, or anything else.
    symlink("..", lab.path("task/out")).unwrap();
    symlink(".git", lab.path("task/git")).unwrap();
    for outside in [
        "../elsewhere",
        "/tmp/elsewhere",
        "~/elsewhere",
        ".git/results",
        "a/../../b",
        "out",
        "out/new",
        "git/new",
    ] {
        settings(&format!("[compeval]\nstorage = {outside}\nresults = ../results.git\n"));
        let refused = ce(&lab, "task", &["pull"]).exit(2);
        refused.says("which is not a path of a directory in the work tree").says(".compeval");
    }
    for foreign in ["signers = keys", "isolate = false", "[compeval \"slurm\"]\nworkers = 2"] {
        settings(&format!("[compeval]\nstorage = results\n{foreign}\n"));
        let refused = ce(&lab, "task", &["log"]).exit(2);
        refused.says("and may have only storage and results").says("each user decides that");
    }
    for command in ["ext::touch pwned", "fd::17", "s3://bucket"] {
        settings(&format!("[compeval]\nstorage = results\nresults = {command}\n"));
        ce(&lab, "task", &["pull"])
            .exit(2)
            .says("which is not a URL or path of a repository outside of the work tree");
    }
    settings("[compeval\n");
    ce(&lab, "task", &["log"]).exit(2).says(".compeval cannot be read").says("git config --list");
    fs::remove_file(lab.path("task/.compeval")).unwrap();
    symlink("workflow", lab.path("task/.compeval")).unwrap();
    ce(&lab, "task", &["log"]).exit(2).says("no storage is given");
}

/// The lines of standard output, each a JSON object.
fn objects(ran: &Ran<'_>) -> Vec<Value> {
    ran.lines().into_iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_verification_prints_json() {
    let (lab, output) = configured();
    let lines = objects(&ce(&lab, "task", &["verify", "--json"]).exit(0));
    let [end] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(
        (&end["event"], &end["wrong"], &end["stopped"]),
        (&json!("end"), &json!(0), &json!(null))
    );
    fs::remove_file(lab.path("storage").join(&output)).unwrap();
    let lines = objects(&ce(&lab, "task", &["verify", "--repair", "--json"]).exit(5));
    let found = lines.iter().find(|line| line["file"] == json!(output)).unwrap();
    assert_eq!(found["event"], "found");
    assert_eq!(found["path"], json!(format!("../storage/{output}")));
    assert_eq!((&found["wrong"], &found["defect"]), (&json!(true), &json!("it is missing")));
    assert!(lines.iter().any(|line| line["event"] == "quarantined"), "{lines:?}");
    let end = lines.last().unwrap();
    assert_eq!((&end["event"], &end["quarantined"]), (&json!("end"), &json!(1)), "{end}");
    let ran = ce(&lab, "task", &["verify", "-q"]).exit(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
}

#[test]
fn collections_pins_and_checks_print_json() {
    let (lab, output) = configured();
    let repositories = objects(&ce(&lab, "task", &["gc", "--repositories", "--json"]).exit(0));
    let [repository] = &repositories[..] else { panic!("{repositories:?}") };
    assert_eq!((&repository["path"], &repository["here"]), (&json!("LAB/task"), &json!(true)));
    let ran = ce(&lab, "task", &["gc", "--json", "--no-keep", "--older", "0s"]).exit(0);
    assert_eq!(ran.stderr, "");
    let lines = objects(&ran);
    let call = lines.iter().find(|it| it["path"] == json!(format!("../storage/{output}"))).unwrap();
    assert_eq!((&call["event"], &call["tasks"]), (&json!("result"), &json!(["task"])));
    assert_eq!((&call["bytes"], call["at"].is_string()), (&json!(3), true));
    let end = lines.last().unwrap();
    assert_eq!((&end["event"], &end["deleted"]), (&json!("end"), &json!(false)));
    assert_eq!(end["results"], json!(lines.len() - 1));
    ce(&lab, "task", &["pin", "--note", "figure 3", &output]).exit(0);
    let pins = objects(&ce(&lab, "task", &["pin", "--json"]).exit(0));
    assert_eq!((pins.len(), &pins[0]["note"]), (1, &json!("figure 3")));
    let lines = objects(&ce(&lab, "task/notes", &["check", "--json"]).exit(0));
    let commit = lab.git("task", &["rev-parse", "HEAD"]);
    let expected = json!({
        "task": "task", "commit": commit, "inputs": ["x", "y"], "calls": 1, "at_least": false,
        "tables": 0, "computations": 1, "outputs": 1,
    });
    assert_eq!(lines, [expected]);
}

#[test]
fn outside_of_a_repository_each_command_says_so() {
    let (lab, _) = configured();
    for arguments in [
        &["audit", "../storage"][..],
        &["diff", "HEAD", "../storage"],
        &["bisect", "--good=HEAD~1", "--bad=HEAD", "../storage"],
        &["run", "--at=HEAD", "../storage"],
        &["commits", "."],
        &["gc", "--keep=.", "../storage"],
    ] {
        ce(&lab, "data", arguments).exit(2).says(" is not in a Git repository\n  try: ");
    }
    ce(&lab, "data", &["report"]).exit(2).says("no storage is given");
    let ran = ce(&lab, "data", &["audit", "--task=../nowhere", "../storage"]).exit(2);
    ran.says("ce: cannot read the repository ../nowhere\n");
}

#[test]
fn quiet_commands_print_only_problems() {
    let lab = shared::lab();
    shared::evaluate(&lab, "storage").exit(0);
    let silent = |ran: Ran<'_>| {
        let ran = ran.exit(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    };
    let run = |arguments: &[&str]| lab.run("ce", arguments);
    silent(run(&["check", "-q"]));
    silent(run(&["audit", "-q", "--no-isolate", "../storage"]));
    shared::salt(&lab, "salt\n");
    let ran = run(&["audit", "-q", "--no-isolate", "../storage"]).exit(1).shows("differs");
    assert!(!ran.stdout.contains("agrees") && ran.stderr.is_empty(), "{}", ran.stdout);
    silent(shared::push(&lab, &["-q"], "storage", "results.git"));
    shared::evaluate(&lab, "salted").exit(0);
    let ran = shared::push(&lab, &["-q"], "salted", "results.git").exit(1);
    assert!(ran.stdout.starts_with("c_twice/") && ran.stderr.is_empty(), "{}", ran.stdout);
    let ran = shared::pull(&lab, &["-q"], "other", "results.git").exit(0);
    assert_eq!((&*ran.stdout, &*ran.stderr), ("", "ce: made a new storage at ../other\n"));
    silent(shared::pull(&lab, &["-q"], "other", "results.git"));
    silent(run(&["gc", "--delete", "-q", "--no-keep", "--older=0s", "../other"]));
    run(&["gc", "--no-keep", "--older=0s", "../other"]).exit(0).says("would collect 0 results");
    run(&["gc", "-q", "../other"]).exit(2);
    for command in ["push", "pull", "audit", "check"] {
        run(&[command, "-q", "--json"]).exit(2);
    }
}

#[test]
fn a_short_form_is_the_ce_in_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["ce-run", "ce-sym", "ce-viz"] {
        let copy = dir.path().join(name);
        // A process of its own writes it: else a program that another test starts meanwhile might have it open for writing, and it
        // could not be executed.
        let copied =
            Command::new("cp").arg(program::command(name).get_program()).arg(&copy).status();
        assert!(copied.unwrap().success());
        let alone = Command::new(&copy).arg("--version").output().unwrap();
        let text = String::from_utf8(alone.stderr).unwrap();
        let ce = dir.path().join("ce");
        let expected = format!(
            "{name}: ce cannot be started\n  because: {}: No such file or directory (os error 2)\n  try: install ce and \
             {name} in the same directory\n",
            ce.display()
        );
        assert_eq!((alone.status.code(), text), (Some(127), expected));
        // The program that it starts has its name and its arguments; a link to `ce` is found as its target.
        symlink(program::command("ce").get_program(), &ce).unwrap();
        let beside = Command::new(&copy).arg("--version").output().unwrap();
        assert!(beside.stdout.starts_with(format!("{name} ").as_bytes()), "{beside:?}");
        fs::remove_file(&ce).unwrap();
        let link = dir.path().join("links").join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(program::command("ce").get_program(), &link).unwrap();
        let linked = Command::new(&link).arg("--version").output().unwrap();
        assert!(linked.stdout.starts_with(format!("{name} ").as_bytes()), "{linked:?}");
    }
}
