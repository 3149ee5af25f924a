//! A host whose processes, memory or open files are used up: computations are isolated or not executed. So are they where isolation is required.

use std::process::Command;

use crate::lab::Lab;
use crate::program::{Ran, through};

use super::{executed, is_possible, lab, none_for, without_namespaces};

/// A run with a limit, such as `-n 20`. It does not wait for more.
fn limited<'a>(lab: &'a Lab, limit: &str, options: &[&str]) -> Ran<'a> {
    let run = lab.evaluation(options);
    let script = format!("ulimit {limit} && exec \"$@\"");
    let mut command = through(&["sh", "-c", &script, "sh"], &run);
    lab.finish(command.env("CE_HASTE", "200"))
}

#[test]
fn exhausted_resources_never_turn_isolation_off() {
    let exposed = r#"[ -e /computation/exec ] || echo "$0" >>LAB/exposed; cp "$1" "$2""#;
    let Some(lab) = lab("", exposed) else { return };
    let files = (4..40).step_by(3).map(|files| format!("-n {files}"));
    let memory = [8_000, 12_000, 16_000, 24_000, 32_000].map(|size| format!("-d {size}"));
    let mut ends = Vec::new();
    for limit in files.chain(memory) {
        let ran = limited(&lab, &limit, &["--no-sync", "--force=look", "-j1"]);
        assert!(!lab.path("exposed").exists(), "{limit}: not isolated\n{}", ran.stderr);
        assert!(!ran.stderr.contains("not isolated"), "{limit}\n{}", ran.stderr);
        assert!(!ran.stderr.contains("it cannot be isolated"), "{limit}\n{}", ran.stderr);
        ends.push((limit, ran.status.code()));
    }
    assert!(ends.iter().any(|(_, code)| *code == Some(0)), "{ends:?}");
    assert!(ends.iter().any(|(_, code)| *code != Some(0)), "{ends:?}");
    lab.ce_run(&["--no-sync"]).exit(0);
}

#[test]
fn required_isolation_that_is_impossible_executes_nothing() {
    let Some(lab) = lab("", r#"cp "$1" "$2""#) else { return };
    let refused = |command: &mut Command| {
        let ran = lab.finish(command).exit(3).says(
            "isolation is required, and is not possible here: cannot create namespaces: No space",
        );
        let ran = ran.says("\n  try: sysctl user.max_user_namespaces is 0");
        assert!(!lab.storage().iter().any(|name| name.contains("/record/")), "{}", ran.stderr);
    };
    refused(without_namespaces(&lab).arg("--isolate"));
    lab.git("task", &["config", "compeval.isolate", "true"]);
    refused(&mut without_namespaces(&lab));
    lab.finish(without_namespaces(&lab).arg("-n")).exit(3).says("1 missing");
    lab.git("task", &["config", "--unset", "compeval.isolate"]);
    let ran = lab.finish(&mut without_namespaces(&lab)).exit(0);
    ran.says("computations are not isolated here");
    assert_eq!(executed(&lab)["isolation"], "none");
    let audit = |options: &[&str]| {
        let mut audit = lab.command("ce");
        audit.arg("audit").args(options).arg("../storage");
        lab.finish(&mut none_for(&lab, &audit))
    };
    audit(&[]).exit(0).says("1 call was not isolated").says("1 call audited: 1 agree");
    audit(&["--isolate"]).exit(3).says("isolation is required, and is not possible here");
}

#[test]
fn open_files_are_raised_for_many_calls_and_computations_have_the_limit_of_the_user() {
    let names: Vec<String> = (0..40).map(|number| format!("part{number}")).collect();
    let parts: String = names.iter().map(|name| format!(" ({name} INPUT('x'))[0]")).collect();
    let inputs: String = (0..40).map(|number| format!("i{number} ")).collect();
    let lab = Lab::task(&format!("Inputs: 'x'\n(all{parts})[0]"));
    let part = |lab: Lab, name: &String| {
        lab.computation(name, "a", "b", &format!("{{ echo {name}; ulimit -Sn; }} >\"$2\""))
    };
    let lab = names.iter().fold(lab, part);
    let all = r#"for last; do :; done; ulimit -Sn >"$last""#;
    let lab = lab.computation("all", &inputs, "all", all).commit();
    let isolated = if is_possible() { "--isolate" } else { "--no-isolate" };
    let soft = limited(&lab, "-Sn 80", &["--no-sync", "-j60", isolated]).exit(0);
    assert!(!soft.stderr.contains("at once"), "{}", soft.stderr);
    assert_eq!(lab.output(), "80\n");
    std::fs::remove_dir_all(lab.path("storage")).unwrap();
    let hard = limited(&lab, "-n 110", &["--no-sync", "-j60", isolated]).exit(0);
    hard.says("warning: 3 computations run at once, and not 60: the limit of open files");
    assert_eq!(lab.output(), "110\n");
}

#[test]
fn at_a_limit_of_threads_every_command_ends_by_itself_and_a_run_goes_on_later() {
    let Some(lab) = lab("", r#"cp "$1" "$2""#) else { return };
    crate::needs::needs(&["prlimit", "setpriv"]);
    // Limits of root are not obeyed. Of anybody else, they count all processes: that user has no others.
    let user = match lab.another_user() {
        Some(_) if rustix::process::getuid().is_root() => 60_000 + std::process::id() % 5000,
        _ => return crate::needs::lacks("root, who can become a user without processes"),
    };
    let user = format!("{user}");
    let mut give = Command::new("chown");
    assert!(give.args(["-R", &user]).arg(lab.path("")).status().unwrap().success());
    let run = |limit: u32, command: &Command| {
        let limited = format!("--nproc={limit}");
        let switch = ["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"];
        let words = [&switch[..], &["prlimit", &limited]].concat();
        let ran = lab.finish(through(&words, command).env("CE_HASTE", "200"));
        assert!(!ran.stderr.contains("panicked"), "{limit}\n{}", ran.stderr);
        assert!(!ran.stderr.contains("not isolated"), "{limit}\n{}", ran.stderr);
        ran.status.code()
    };
    let evaluation = lab.evaluation(&["--no-sync", "--force=look", "-j4"]);
    let mut shell = lab.command("ce");
    shell.args(["shell", "../storage", "look", "--", "true"]);
    let mut verify = lab.command("ce");
    verify.args(["verify", "../storage"]);
    let ends: Vec<_> = (1..20).map(|limit| run(limit, &evaluation)).collect();
    assert_eq!(run(500, &evaluation), Some(0), "{ends:?}");
    assert!(ends.contains(&Some(3)) || ends.contains(&Some(5)), "{ends:?}");
    for limit in 1..12 {
        run(limit, &shell);
        run(limit, &verify);
    }
}
