//! Arguments that users may type, and others that they may not.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

use crate::fifo;
use crate::lab::Lab;
use crate::program::{Ran, Running};

const SUM: &str = "Inputs: 'x', 'stop words'\n(add INPUT('x') INPUT('stop words'))[0]";

fn lab() -> Lab {
    Lab::task(SUM).commit()
}

#[test]
fn an_unknown_option_is_refused() {
    // An option before it would be told of, too.
    let lab = lab().isolated();
    lab.ce_run(&["--nonsense"]).exit(2).complains("run/arguments/option.err");
    lab.ce_run(&["-j0"]).exit(2).says("--jobs <N>");
    lab.ce_run(&["-q", "--json"]).exit(2).says("--json");
    lab.run("ce-run", &[]).exit(2).says("no storage is given");
    assert!(!lab.path("storage").exists());
}

#[test]
fn the_number_of_inputs_is_stated_in_singular_or_plural() {
    let lab = Lab::task("Inputs: 'x'\n(add INPUT('x') INPUT('x'))[0]").commit();
    let ran = lab.run("ce-run", &["../storage", "../data/x", "../data/x"]).exit(2);
    let ran = ran.says("the task task takes 1 input (x), and 2 are given\n");
    ran.says("try: give the storage first, and a file or -p x=TEXT for it\n");
    assert!(!lab.path("storage").exists());
    self::lab()
        .run("ce-run", &["../storage", "../data/x"])
        .exit(2)
        .complains("run/arguments/too-few.err");
    let lab = Lab::task("Inputs:\nFILE('some/file')").commit();
    let ran = lab.run("ce-run", &["../storage", "../storage"]).exit(2);
    ran.says("the task task takes no inputs, and 1 is given\n").says("try: give the storage and");
    let lab = Lab::task("Inputs: 'x'\n(add INPUT('x') INPUT('x'))[0]").file("defaults/x", "1\n");
    let lab = lab.commit();
    let ran = lab.run("ce-run", &["../storage", "../data/x"]).exit(2);
    ran.says("the task task takes no inputs beside those that have defaults, and 1 is given\n")
        .says(
            "try: give the storage and nothing more; to replace a default, x=FILE or -p x=TEXT\n",
        );
}

#[test]
fn help_describes_every_option_and_exit_code() {
    let lab = lab();
    let help = lab.run("ce-run", &["--help"]).exit(0).prints("run/arguments/help.txt").stdout;
    assert!(help.contains("Exit codes"));
}

#[test]
fn a_missing_input_is_refused() {
    let lab = lab();
    lab.run("ce-run", &["../storage", "../data/x", "../nowhere"])
        .exit(2)
        .complains("run/arguments/nowhere.err");
    lab.run("ce-run", &["../storage", "..", "../data/x"])
        .exit(2)
        .complains("run/arguments/directory.err");
    lab.run("ce-run", &["-n", "../storage", "../data/x/y", "../data/x"])
        .exit(2)
        .says("../data/x/y");
    assert!(!lab.path("storage").exists());
}

#[test]
fn an_input_may_come_through_a_pipe_or_the_standard_input() {
    let lab = lab();
    let pipe = lab.path("pipe");
    fifo::make(&pipe);
    let mut command = lab.command("ce-run");
    let running = Running::start(command.args(["../storage", "../pipe", "../data/x"]));
    let writer = thread::spawn(move || fs::write(pipe, "25\n").unwrap());
    Ran::new(&lab, running.output()).exit(0).called(vec!["add"]);
    writer.join().unwrap();
    let (reader, mut input) = std::io::pipe().unwrap();
    input.write_all(b"25\n").unwrap();
    drop(input);
    let mut command = lab.command("ce-run");
    command.args(["-q", "../storage", "/dev/stdin", "../data/x"]).stdin(reader);
    let ran = lab.finish(&mut command).exit(0).called(vec![]);
    assert_eq!(lab.stored(ran.lines()[0]), "42\n");
    drop(command);
}

#[test]
fn a_storage_that_is_a_file_or_cannot_be_made_is_refused() {
    let lab = lab();
    fs::write(lab.path("storage"), "precious\n").unwrap();
    lab.ce_run(&[]).exit(5).complains("run/arguments/storage-is-a-file.err");
    lab.ce_run(&["-n"]).exit(5);
    assert_eq!(fs::read_to_string(lab.path("storage")).unwrap(), "precious\n");
    let ran = lab.run("ce-run", &["/proc/storage", "../data/x", "../data/x"]).exit(5);
    assert_eq!(ran.stdout, "");
    ran.says("ce-run: cannot make the directory /proc/storage\n  because: ");
}

#[test]
fn a_storage_may_have_any_path_and_is_shown_as_it_was_typed() {
    let lab = lab();
    fs::create_dir_all(lab.path("a/b")).unwrap();
    for (typed, shown) in [
        ("../storage", "../storage/"),
        ("../storage/", "../storage/"),
        (".././/storage//", "../storage/"),
        ("../depôt 'of' \"all\"\t$HOME", "../depôt 'of' \"all\"\t$HOME/"),
        ("../a/b/c", "../a/b/c/"),
    ] {
        drop(fs::remove_dir_all(lab.path("storage")));
        let arguments = ["-q", "--new-storage", typed, "../data/x", "../data/x"];
        let path = lab.run("ce-run", &arguments).exit(0).called(vec!["add"]).stdout;
        assert!(path.starts_with(&format!("{shown}c_add/")), "{typed}: {path}");
        let contents = fs::read_to_string(lab.path("task").join(path.trim_end_matches('\n')));
        assert_eq!(contents.unwrap(), "34\n");
        lab.run("ce-run", &arguments).exit(0).called(vec![]);
    }
    // It need not be text.
    let mut command = lab.command("ce-run");
    let path = OsStr::from_bytes(b"../stor\xffge");
    command.args(["-q", "--new-storage"]).arg(path).args(["../data/x", "../data/x"]);
    lab.finish(&mut command).exit(0);
    assert!(lab.path("").join(OsStr::from_bytes(b"stor\xffge/tinputs")).is_dir());
    // It may be where the program runs.
    let place = lab.path("elsewhere");
    fs::create_dir(&place).unwrap();
    let mut command = lab.command("ce-run");
    command.args(["-q", "--new-storage", "--task", "../task", ".", "../data/x", "../data/x"]);
    let path = lab.finish(command.current_dir(&place)).exit(0).stdout;
    assert_eq!(fs::read_to_string(place.join(path.trim())).unwrap(), "34\n");
}

#[test]
fn a_storage_that_may_not_be_written_can_be_looked_at() {
    let lab = lab();
    let mode = |mode: &str| {
        let mut chmod = Command::new("chmod");
        assert!(chmod.args(["-R", mode]).arg(lab.path("")).status().unwrap().success());
    };
    lab.ce_run(&[]).exit(0);
    mode("a+rX,a-w");
    if let Some(user) = lab.plain_user() {
        let other = ["-n", "../storage", "../data/x", "../data/x"];
        lab.unchanged(|| {
            lab.finish(lab.evaluation(&["-n"]).uid(user)).exit(0);
            let run =
                |arguments: &[&str]| lab.finish(lab.command("ce-run").args(arguments).uid(user));
            run(&other).exit(3);
            run(&other[1..]).exit(5).says("  try: check who may write there");
        });
    }
    mode("u+w");
}

#[test]
fn an_input_that_may_not_be_read_is_reported() {
    let lab = lab();
    if let Some(user) = lab.plain_user() {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(lab.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(lab.path("data/x"), fs::Permissions::from_mode(0o0)).unwrap();
        lab.finish(lab.evaluation(&["-n"]).uid(user))
            .exit(2)
            .says("cannot read the input x, ../data/x");
    }
}
