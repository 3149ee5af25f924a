//! `ce shell`: a look into the sandbox of a call.

use std::fs;

use rustix::process::Signal;

use crate::lab::Lab;
use crate::program::{Ran, Running};
use crate::terminal::{Shown, Terminal};

/// A call that has failed, and one that has succeeded.
fn lab() -> Lab {
    let task =
        "Inputs: 'x', 'y'\n(add (bad INPUT('x') INPUT('y'))[0] (mul INPUT('x') INPUT('y'))[0])[0]";
    let lab = Lab::task(task)
        .computation("bad", "a b", "none some/", "echo no luck; exit 3")
        .rename("workflow/inputs/00-bad", "00-left")
        .isolated()
        .commit();
    lab.ce_run(&["--no-sync"]).exit(1);
    lab
}

/// The short name of the call of a computation.
fn call(lab: &Lab, computation: &str) -> String {
    let prefix = format!("c_{computation}/");
    let name = lab.storage().into_iter().find(|name| name.starts_with(&prefix)).unwrap();
    format!("{prefix}{}/ad48103e4fc7_5d9474c0309b", name.split('/').nth(1).unwrap())
}

fn look<'a>(lab: &'a Lab, call: &str, command: &[&str]) -> Ran<'a> {
    lab.run("ce", &[&["shell", "../storage", call, "--"], command].concat())
}

#[test]
fn a_command_sees_the_files_of_exec_and_leaves_nothing() {
    let lab = lab();
    let before = lab.storage();
    let name = call(&lab, "bad");
    let script = "pwd; cat /inputs/00; ls /inputs /outputs; echo $HOME; touch /inputs/x || echo read-only; echo 1 >/outputs/00; echo 2 >/tmp/file; exit 9";
    let ran = look(&lab, &name, &["sh", "-c", script]).exit(9);
    let lines = ran.lines();
    assert_eq!(
        lines[..7],
        ["/tmp", "17", "/inputs:", "00", "01", "", "/outputs:"],
        "{}",
        ran.stdout
    );
    assert!(lines.contains(&"01") && lines.contains(&"read-only") && ran.stderr.is_empty());
    // The program itself repeats its actions, and a call that has succeeded is opened like one that has failed.
    let exec = ["/computation/exec", "/inputs/00", "/inputs/01", "/outputs/00", "/outputs/01"];
    assert_eq!(look(&lab, &name, &exec).exit(3).stdout, "no luck\n");
    let script = "/computation/exec /inputs/00 /inputs/01 /outputs/00; cat /outputs/00; kill -9 $$";
    let ran = look(&lab, &call(&lab, "mul"), &["sh", "-c", script]).exit(137);
    assert_eq!(ran.stdout, "85\n");
    assert!(lab.is_tidy() && lab.storage() == before);
}

#[test]
fn a_shell_that_cannot_start_is_one_error() {
    let lab = lab();
    look(&lab, &call(&lab, "bad"), &["no-such-program"]).exit(1).says("no-such-program");
    look(&lab, "ad48", &["true"]).exit(2).says("the inputs of 2 calls begin with ad48");
    look(&lab, "c_bad/000000000000/00", &["true"])
        .exit(2)
        .says("does not name a call that has ended");
    let ran = lab.run("ce", &["shell", "../storage", &call(&lab, "bad")]).exit(2);
    let ran = ran.says("a shell needs a terminal").says("ce shell CALL -- ls -l /inputs");
    assert!(!ran.stderr.contains("in the sandbox of"), "{}", ran.stderr);
    // A storage that cannot be written, and one without an input.
    let tmp = lab.path("storage/tmp");
    fs::remove_dir_all(&tmp).unwrap();
    fs::write(&tmp, "").unwrap();
    look(&lab, &call(&lab, "bad"), &["true"]).exit(5).says("storage/tmp");
    fs::remove_file(&tmp).unwrap();
    fs::create_dir(&tmp).unwrap();
    fs::remove_dir_all(lab.path("storage/tinputs/ad")).unwrap();
    look(&lab, &call(&lab, "bad"), &["true"]).exit(3).says("input 00 of c_bad/");
}

#[test]
fn a_call_may_be_named_as_in_only() {
    let lab = lab();
    let by_name = |name: &str| look(&lab, name, &["cat", "/inputs/01"]);
    for name in ["mul", "bad", "left"] {
        assert_eq!(by_name(name).exit(0).stdout, "5\n", "{name}");
    }
    by_name("add").exit(2).says("add does not name a call that has ended");
    by_name("none").exit(2).says("none does not name a call that has ended");
    lab.run("ce-run", &["../storage", "../data/y", "../data/x"]).exit(1);
    let ran = by_name("mul").exit(2).says("2 calls are named mul: c_mul/").says(" a=17 b=5");
    for call in [
        call(&lab, "mul"),
        call(&lab, "mul").replace("ad48103e4fc7_5d9474c0309b", "5d9474c0309b_ad48103e4fc7"),
    ] {
        assert!(ran.stderr.contains(&call), "{call}: {}", ran.stderr);
    }
    // Without the task, a computation is one of any version.
    let outside = |name: &str| {
        let mut command = lab.command("ce");
        command.current_dir(lab.path("data")).args(["shell", "../storage", name, "--", "true"]);
        lab.finish(&mut command)
    };
    outside("mul").exit(2).says("2 calls are named mul");
    outside("left").exit(2).says("left does not name a call that has ended");
}

#[test]
fn a_label_opens_no_call_of_another_one() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(add (half INPUT('x'))[0] (half INPUT('y'))[0])[0]")
        .computation("half", "a", "b", r#"echo $(($(cat "$1") / 2)) >"$2""#)
        .rename("workflow/inputs/00-half", "00-left")
        .rename("workflow/inputs/01-half", "01-right")
        .isolated()
        .commit();
    lab.ce_run(&["--no-sync", "--only", "right"]).exit(0);
    let by_name = |name: &str| look(&lab, name, &["cat", "/inputs/00"]);
    by_name("left").exit(2).says("1 call of half, the computation of left: c_half/").says(" a=5");
    assert_eq!(by_name("half").exit(0).stdout, "5\n");
    lab.ce_run(&["--no-sync"]).exit(0);
    by_name("left").exit(2).says("2 calls of half, the computation of left: c_half/").says(" a=17");
    by_name("half").exit(2).says("2 calls are named half: c_half/");
    assert_eq!(by_name("add").exit(0).stdout, "8\n");
}

#[test]
fn a_call_of_an_earlier_version_is_found_by_its_name() {
    let lab = lab().computation("bad", "a b", "none some/", "exit 0").commit_again();
    for name in ["bad", "left"] {
        assert_eq!(look(&lab, name, &["cat", "/inputs/01"]).exit(0).stdout, "5\n", "{name}");
    }
    // One of this version is meant before one of another.
    lab.run("ce-run", &["../storage", "../data/y", "../data/x"]).exit(1);
    assert_eq!(look(&lab, "left", &["cat", "/inputs/01"]).exit(0).stdout, "17\n");
}

#[test]
fn the_storage_comes_from_the_path_or_the_configuration() {
    let lab = lab();
    let name = call(&lab, "mul");
    let script = ["--", "cat", "/inputs/01"];
    let run = |arguments: &[&str]| lab.run("ce", &[&["shell"], arguments, &script].concat());
    for path in
        [format!("../storage/{name}"), format!("../storage/{}", name.replace("/ad", "/00/ad"))]
    {
        assert_eq!(run(&[&path]).exit(0).stdout, "5\n", "{path}");
    }
    run(&[&name]).exit(2).says("no storage is given");
    lab.git("task", &["config", "compeval.storage", "../storage"]);
    assert_eq!(run(&[&name]).exit(0).stdout, "5\n");
    assert_eq!(run(&["ad48103e4fc7_5d9474c0309b"]).exit(2).stdout, "");
    run(&["../storage"])
        .exit(2)
        .says("../storage is a storage, and no call in it is given\n")
        .says("  try: give a call after it; ce log ../storage lists calls\n");
    let nothing = lab.run("ce", &["shell", "../storage", &name, "--", "./nothing"]).exit(1);
    nothing.says("  because: ./nothing cannot be started\n").says("  try: give a program that the");
    run(&[]).exit(2).says("no call is given");
}

#[test]
fn a_call_that_is_missing_is_opened_before_it_is_executed() {
    let lab = lab().file("computations/mul/notes", "new\n").commit_again();
    let commit = lab.git("task", &["rev-parse", "HEAD"])[..12].to_owned();
    let name = format!("c_mul/{commit}/ad48103e4fc7_5d9474c0309b");
    lab.ce_run(&["-n"]).shows(&name.replace("/ad", "/00/ad"));
    let before = lab.storage();
    let script = "cat /computation/notes /inputs/*; /computation/exec /inputs/00 /inputs/01 /outputs/00; cat /outputs/00";
    assert_eq!(look(&lab, &name, &["sh", "-c", script]).exit(0).stdout, "new\n17\n5\n85\n");
    let trees = |it: &String| !it.starts_with("trees/");
    assert!(lab.storage().into_iter().filter(trees).eq(before.into_iter().filter(trees)));
    // An input that is to be made first is not there, and nor is one that nobody has given.
    let waits = format!("c_add/{commit}/???_85");
    look(&lab, &waits, &["true"]).exit(3).says("input 00 of c_add/").says("run the task again");
    let other = format!("c_mul/{commit}/000000000000_5d9474c0309b");
    look(&lab, &other, &["true"]).exit(3).says("no file has SHA-1 000000000000");
    look(&lab, &format!("c_mul/{commit}/5d9474c0309b"), &["true"])
        .exit(2)
        .says("does not name a call");
}

#[test]
fn members_of_directories_are_found_by_their_contents() {
    let task = "Inputs: 'd'\n(look MEMBER('sub/deep/f' INPUT('d')) MEMBER('sub' INPUT('d')))";
    let mut lab =
        Lab::task(task).computation("look", "a b", "c", "echo no luck; exit 3").isolated();
    fs::remove_file(lab.path("data/d")).unwrap();
    fs::create_dir_all(lab.path("data/d/sub/deep")).unwrap();
    fs::write(lab.path("data/d/sub/deep/f"), "inner\n").unwrap();
    fs::write(lab.path("data/d/sub/g"), "other\n").unwrap();
    lab.inputs = vec!["d".to_owned()];
    let lab = lab.commit();
    let told = lab.ce_run(&["--no-sync"]).exit(1).stderr;
    let path = told.lines().find_map(|line| line.strip_prefix("  to look inside: ce shell "));
    let script = ["--", "cat", "/inputs/00", "/inputs/01/g", "/inputs/01/deep/f"];
    let ran = lab.run("ce", &[&["shell", path.unwrap()][..], &script].concat()).exit(0);
    assert_eq!(ran.stdout, "inner\nother\ninner\n");
}

#[test]
fn keep_saves_the_files_made_in_a_shell() {
    let lab = lab();
    fs::create_dir(lab.path("kept")).unwrap();
    let before = lab.storage();
    let script = "echo 1 >/outputs/01/file; echo 2 >/tmp/file; exit 9";
    let mut command = lab.command("ce");
    command.env("TMPDIR", lab.path("kept")).args(["shell", "--keep", "../storage"]);
    command.args([&call(&lab, "bad"), "--", "sh", "-c", script]);
    let ran = lab.finish(&mut command).exit(9);
    let kept = ran.stderr.trim_end().strip_prefix("ce: kept: ").unwrap();
    for (file, text) in [("outputs/01/file", "1\n"), ("tmp/file", "2\n")] {
        let path = kept.replacen("LAB", lab.path("").to_str().unwrap().trim_end_matches('/'), 1);
        assert_eq!(fs::read_to_string(format!("{path}/{file}")).unwrap(), text);
    }
    assert!(lab.is_tidy() && lab.storage() == before);
    let mut command = lab.command("ce");
    command.env("TMPDIR", lab.path("nowhere")).args(["shell", "--keep", "../storage"]);
    command.args([&call(&lab, "bad"), "--", "true"]);
    lab.finish(&mut command).exit(1).says("no directory can be made").says("set TMPDIR");
}

#[test]
fn an_interrupt_ends_a_command_without_a_complaint() {
    let lab = lab();
    let mut command = lab.command("ce");
    command.args(["shell", "../storage", &call(&lab, "bad"), "--", "sleep", "1000"]);
    let running = Running::start(&mut command);
    running.wait_until_it_catches(Signal::INT);
    running.signal(Signal::INT);
    assert_eq!(Ran::new(&lab, running.output()).exit(130).stderr, "");
    assert!(lab.is_tidy());
}

#[test]
fn a_run_names_the_command_to_look_into_its_first_failure() {
    let task =
        "Inputs: 'x', 'y'\n(add (bad INPUT('x') INPUT('y'))[0] (bad INPUT('y') INPUT('x'))[0])[0]";
    let lab = Lab::task(task).computation("bad", "a b", "c", "echo no luck; exit 3").commit();
    const LINE: &str = "  to look inside: ce shell ";
    let run = |options: &[&str]| lab.ce_run(&[&["--no-sync"], options].concat()).exit(1).stderr;
    assert!(!run(&[]).contains(LINE), "it was not executed in a sandbox");
    let told = run(&["--isolate"]);
    let lines: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix(LINE)).collect();
    let [path] = lines[..] else { panic!("once, for the first: {told}") };
    let ran = lab.run("ce", &["shell", path, "--", "cat", "/inputs/00"]).exit(0);
    assert!(["17\n", "5\n"].contains(&&*ran.stdout), "{}", ran.stdout);
}

#[test]
fn a_shell_has_a_terminal_and_ctrl_c_goes_to_what_it_runs() {
    let lab = lab();
    let mut command = lab.command("ce");
    command.args(["shell", "../storage", &call(&lab, "bad")]);
    let mut terminal = Terminal::start(&command, 80, Shown::Both);
    // The shell writes in two parts what is awaited, so that it is not the echo of what is typed. Who says that it has
    // begun is in the foreground, so that Ctrl-C reaches it.
    let begin = r#"[ -t 0 ] && [ -t 1 ] && echo ter''minal; sh -c "echo be''gun; exec sleep 1000""#;
    terminal.type_in(&format!("{begin}\n"));
    let text = terminal.await_text("begun");
    assert!(text.contains("to execute it: /computation/exec /inputs/00 /inputs/01 /outputs/00"));
    assert!(text.contains("terminal"), "{text}");
    terminal.type_in("\x03");
    terminal.await_text("^C");
    terminal.type_in("echo still he''re; exit 5\n");
    terminal.await_text("still here");
    assert_eq!(terminal.end().0.code(), Some(5));
    assert!(lab.is_tidy());
}

#[test]
fn a_shell_ends_with_its_terminal() {
    for starter in [&["setsid", "--ctty"][..], &["setsid"]] {
        let lab = lab();
        let mut command = lab.command("ce");
        command.args(["shell", "../storage", &call(&lab, "bad")]);
        let mut terminal = Terminal::start_through(starter, &command, 80, Shown::Both);
        terminal.type_in("echo be''gun\n");
        terminal.await_text("begun");
        assert_eq!(terminal.hang_up().end().code(), Some(129), "{starter:?}");
        assert!(lab.is_tidy());
    }
}
