//! Hints: the advice after a computation has failed, and none where the failure is its own.

use std::fs;
use std::os::unix::fs::symlink;

use crate::isolation::is_possible;
use crate::lab::Lab;
use crate::needs;
use crate::program::Ran;

/// A task of one computation with an input and an output, which begins with these lines.
fn task(script: &str) -> Lab {
    Lab::task("Inputs: 'x'\n(make INPUT('x'))[0]").computation("make", "a", "words", script)
}

/// The hint of a failure, if any. The laboratory is `LAB` in it.
#[track_caller]
fn hint(lab: &Lab) -> Option<String> {
    hint_of(lab, &lab.ce_run(&[]).exit(1))
}

fn hint_of(lab: &Lab, ran: &Ran<'_>) -> Option<String> {
    let lab = lab.path("").display().to_string();
    let hints = ran.stderr.lines().filter_map(|line| line.strip_prefix("  try: "));
    let hints: Vec<String> = hints.map(|it| it.replace(lab.trim_end_matches('/'), "LAB")).collect();
    assert!(hints.len() < 2, "{hints:?}");
    hints.into_iter().next()
}

/// Hints with and without isolation. The first is the hint of an unisolated computation where nothing
/// can be isolated.
#[track_caller]
fn both(make: impl Fn() -> Lab) -> [Option<String>; 2] {
    let open = hint(&make().commit());
    let inside = if is_possible() { hint(&make().isolated().commit()) } else { open.clone() };
    [inside, open]
}

/// The hint is this one with and without isolation.
#[track_caller]
fn same(make: impl Fn() -> Lab, expected: &str) {
    assert_eq!(both(make), [Some(expected.to_owned()), Some(expected.to_owned())]);
}

/// These are the hints with and without isolation.
#[track_caller]
fn differ(make: impl Fn() -> Lab, isolated: &str, open: Option<&str>) {
    let [inside, outside] = both(make);
    assert_eq!(outside.as_deref(), open);
    if is_possible() {
        assert_eq!(inside.as_deref(), Some(isolated));
    }
}

/// A script that prints a line to standard error and fails.
fn complaint(line: &str) -> String {
    format!("cat >&2 <<'END'\n{line}\nEND\nexit 1")
}

#[test]
fn a_carriage_return_in_the_first_line_has_a_hint() {
    let exec = |text: &str| task("").file("computations/make/exec", text);
    for text in ["#!/bin/sh\r\ncp \"$1\" \"$2\"\r\n", "#!/usr/bin/env sh\r\n", "#!/bin/sh -e\r\n"] {
        same(
            || exec(text),
            "the first line of exec ends in a carriage return (CRLF); remove it with \
             \"sed -i 's/\\r$//' computations/make/exec\", and keep Git from adding it with the line \
             \"exec text eol=lf\" in .gitattributes",
        );
    }
    let script = r"printf '#!/usr/bin/env sh\r\n' >helper; chmod +x helper; ./helper";
    same(
        || task(script),
        "the first line of a script that exec runs ends in a carriage return (CRLF); remove it with \
         \"sed -i 's/\\r$//' SCRIPT\"",
    );
}

#[test]
fn a_missing_interpreter_has_a_hint() {
    same(
        || task("").file("computations/make/exec", "#!/no/such/python -u\n"),
        "the first line of exec names /no/such/python, which is not installed here",
    );
    let stale = || {
        let lab = task("");
        let python = lab.path("data/venv/bin/python");
        fs::create_dir_all(python.parent().unwrap()).unwrap();
        symlink("../../gone/bin/python3", &python).unwrap();
        lab.file("computations/make/exec", format!("#!{}\n", python.display()))
    };
    same(
        stale,
        "the first line of exec names LAB/data/venv/bin/python, a link to LAB/data/gone/bin/python3, which \
         does not exist; if it belongs to a virtual environment, make that again",
    );
}

#[test]
fn an_interpreter_in_a_virtual_environment_has_a_hint() {
    let lab = task("").isolated();
    let at = |name: &str| lab.path("data").join(name);
    for dir in ["venv/bin", "venv/lib", "base/bin", "base/lib"] {
        fs::create_dir_all(at(dir)).unwrap();
    }
    symlink("python3", at("venv/bin/python")).unwrap();
    symlink(at("base/bin/python3"), at("venv/bin/python3")).unwrap();
    symlink("/bin/sh", at("base/bin/python3")).unwrap();
    let exec = format!("#!{}\ncp \"$1\" \"$2\"\n", at("venv/bin/python").display());
    let lines = ["venv", "base"].map(|dir| format!("read {}\n", at(dir).display()));
    let lab = lab.file("computations/make/exec", exec).commit();
    if is_possible() {
        let expected = "its sandbox does not show these; if it needs them, commit the lines \
                        \"read LAB/data/venv\", \"read LAB/data/base\" in the computation's file access";
        assert_eq!(hint(&lab).as_deref(), Some(expected));
        let lab = lab.file("computations/make/access", &lines[0]).commit_again();
        let expected = "its sandbox does not show that; if it needs it, commit the line \
                        \"read LAB/data/base\" in the computation's file access";
        assert_eq!(hint(&lab).as_deref(), Some(expected));
        lab.file("computations/make/access", lines.concat()).commit_again().ce_run(&[]).exit(0);
    }
}

#[test]
fn a_program_outside_the_path_has_a_hint() {
    let exec = || task("").file("computations/make/exec", "#!/usr/bin/env no-tool\n");
    let isolated = "no-tool is not in the PATH of a sandbox, /usr/local/bin:/usr/bin:/bin; install it \
                    there, or name it by its path";
    let open = "no-tool is not in PATH; install it, or name it by its path";
    differ(exec, isolated, Some(open));
    differ(|| task(r#"no-tool "$1" >"$2""#), isolated, Some(open));
    let lab = task(r#"own-tool "$1" >"$2""#).isolated().commit();
    fs::create_dir_all(lab.path("data/tools/bin")).unwrap();
    fs::create_dir_all(lab.path("data/tools/lib")).unwrap();
    fs::write(lab.path("data/tools/bin/own-tool"), "").unwrap();
    let path = format!("{}:/usr/bin:/bin", lab.path("data/tools/bin").display());
    let ran = lab.finish(lab.evaluation(&[]).env("PATH", path)).exit(1);
    if is_possible() {
        let expected = "own-tool is not in the PATH of a sandbox; name it as LAB/data/tools/bin/own-tool, \
                        and commit the line \"read LAB/data/tools\" in the computation's file access";
        assert_eq!(hint_of(&lab, &ran).as_deref(), Some(expected));
    }
}

#[test]
fn a_missing_package_has_a_hint() {
    for (line, name, mend, grant) in [
        (
            "ModuleNotFoundError: No module named 'numpy'",
            "numpy",
            "let exec begin with #!/path/to/venv/bin/python",
            "read /path/to/venv",
        ),
        (
            "Error in library(ggplot2) : there is no package called ‘ggplot2’\nExecution halted",
            "ggplot2",
            "name the library with .libPaths(\"/path/to/library\")",
            "read /path/to/library",
        ),
        (
            "Can't locate JSON/XS.pm in @INC (you may need to install the JSON::XS module) (@INC \
             contains: /etc/perl) at exec line 2.\nBEGIN failed--compilation aborted at exec line 2.",
            "JSON::XS",
            "name its directory with use lib \"/path/to/lib\"",
            "read /path/to/lib",
        ),
    ] {
        let isolated = format!(
            "a sandbox shows the packages of the system only, and {name} is none of them; install it \
             there, or {mend}, and commit the line \"{grant}\" in the computation's file access"
        );
        let open = format!("{name} is not installed for this interpreter; install it, or {mend}");
        differ(|| task(&complaint(line)), &isolated, Some(&open));
    }
}

#[test]
fn messages_of_python_and_perl_are_recognised() {
    for (program, arguments, name) in [
        ("/usr/bin/python3", "-c 'import no_such.module'", "no_such"),
        ("/usr/bin/python3", "-m no_such", "no_such"),
        ("/usr/bin/perl", "-e 'use No::Such;'", "No::Such"),
    ] {
        if !needs::is_program(program.as_ref()) {
            needs::lacks(program.trim_start_matches("/usr/bin/"));
            continue;
        }
        for hint in both(|| task(&format!("{program} {arguments}"))) {
            assert!(hint.as_ref().is_some_and(|it| it.contains(name)), "{program}: {hint:?}");
        }
    }
}

#[test]
fn the_active_environment_is_named() {
    let lab = task(&complaint("ModuleNotFoundError: No module named 'numpy'")).commit();
    fs::create_dir_all(lab.path("data/venv/bin")).unwrap();
    fs::write(lab.path("data/venv/bin/python"), "").unwrap();
    let mut command = lab.evaluation(&[]);
    let ran = lab.finish(command.env("VIRTUAL_ENV", lab.path("data/venv"))).exit(1);
    let hint = hint_of(&lab, &ran).unwrap();
    assert!(hint.ends_with("let exec begin with #!LAB/data/venv/bin/python"), "{hint}");
}

#[test]
fn a_failed_download_without_network_has_a_hint() {
    let script = complaint("curl: (6) Could not resolve host: example.org");
    let expected = "its sandbox has no network; make what it fetches an input, or commit the line \
                    \"network\" in the computation's file access";
    differ(|| task(&script), expected, None);
    let lab = task(&script).file("computations/make/access", "network\n").isolated();
    assert_eq!(hint(&lab.commit()), None);
    if !needs::is_program("/usr/bin/python3".as_ref()) {
        needs::lacks("python3");
    } else if is_possible() {
        let script = "/usr/bin/python3 -c 'import socket; socket.getaddrinfo(\"example.org\", 80)'";
        assert_eq!(hint(&task(script).isolated().commit()).as_deref(), Some(expected));
    }
}

#[test]
fn a_link_out_of_the_computation_has_a_hint() {
    let script = r#"cat "$(dirname "$0")/lib/common.txt" >"$2""#;
    let out = || task(script).link("computations/make/lib/common.txt", "../../common.txt");
    same(
        || out().file("computations/common.txt", "common\n"),
        "computations/make/lib/common.txt is a symbolic link to ../../common.txt, which is out of the \
         computation's directory and not exported with it; put a copy there, or make it an input",
    );
    let lab = task(script).isolated();
    let table = lab.path("data/x").display().to_string();
    let lab = lab.link("computations/make/lib/common.txt", &table).commit();
    if is_possible() {
        let hint = hint(&lab).unwrap();
        assert!(
            hint.ends_with(", or commit the line \"read LAB/data/x\" in its file access"),
            "{hint}"
        );
        let line = format!("read {table}\n");
        lab.file("computations/make/access", line).commit_again().ce_run(&[]).exit(0);
    }
}

#[test]
fn an_output_written_elsewhere_has_a_hint() {
    let path = "the path of output 00 (words), which is argument 2 of exec";
    let left = |name: &str| {
        format!(
            "it left {name} in its working directory, which is not kept; let it write to {path}"
        )
    };
    same(|| task("echo a >words.txt; echo b >a.txt; echo b"), &left("words.txt"));
    same(|| task("echo a >.hidden; mktemp -p .; echo a >table.csv"), &left("table.csv"));
    let odd = r#"echo a >"$(printf 'a\033[31m\nb')""#;
    same(|| task(odd), &left("a\u{fffd}[31m\u{fffd}b"));
    same(
        || task(r#"echo a >"$2.npy""#),
        &format!(
            "it made a file of that name with .npy added; let it rename the file to {path}, or call the output \
             words.npy"
        ),
    );
    same(
        || task(r#"cat "$1""#),
        &format!("it printed 3 B, which is in its log only; let it write to {path}"),
    );
}

#[test]
fn an_undeclared_or_recreated_output_directory_has_a_hint() {
    same(
        || task(r#"mkdir "$2""#),
        "it is a directory; if it should be one, write \"words/\" in computations/make/outputs: it exists when \
         exec starts then",
    );
    same(
        || task(r#"mkdir "$2""#).file("computations/make/outputs", "words/\n"),
        "the directory of output 00 (words/) exists and is empty when exec starts; let it write into that, or \
         make it with mkdir -p",
    );
    let other = || task("mkdir a a").file("computations/make/outputs", "words/\n");
    assert_eq!(both(other), [None, None]);
}

#[test]
fn an_unrelated_failure_gets_no_hint() {
    for script in [
        "echo working; echo 'no luck' >&2; exit 3",
        "echo ValueError: not enough values >&2; exit 1",
        "echo 'key: tool: not found'; exit 1",
        "echo 'could not import json: No module named x; using another one' >&2; exit 1",
        "echo a >words; echo a; exit 1",
        "kill -9 $$",
        // Ended with success, and made no output.
        ":",
        "mktemp -p . >&2; echo 'error: nothing to do' >&2",
        "cat /no/such/file; true",
    ] {
        assert_eq!(both(|| task(script)), [None, None], "{script}");
    }
    let script = complaint("reading data.csv: bad line 3, No module for it");
    let inner = || task(&script).link("computations/make/data.csv", "table.csv");
    assert_eq!(both(inner), [None, None], "the link leads nowhere, but not out");
    let outer = || task("echo bad >&2; exit 1").link("computations/make/data.csv", "../t.csv");
    assert_eq!(both(outer), [None, None], "the link is not mentioned");
    let two = || task(r#"echo a; echo b >"$2""#).file("computations/make/outputs", "words\nrest\n");
    assert_eq!(both(two), [None, None], "it knows where outputs belong");
}

#[test]
fn events_have_the_hint() {
    let lab = task(r#"cat "$1""#).commit();
    let ran = lab.ce_run(&["--json"]).exit(1);
    let ended = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
    let ended: Vec<serde_json::Value> = ended.collect();
    let ended = ended.iter().find(|event| event["event"] == "ended").unwrap();
    assert!(ended["hint"].as_str().unwrap().starts_with("it printed 3 B"), "{ended}");
    let lab = task("echo bad; exit 1").commit();
    assert!(!lab.ce_run(&["--json"]).exit(1).stdout.contains("hint"));
}

#[test]
fn mistakes_of_a_beginner_have_hints() {
    let advice = "the task has data/stop, and a call sees only its inputs: give it as one, as in \
                  OWN('data/stop')";
    same(|| task(r#"cat data/stop >"$2""#).file("data/stop", "the\n"), advice);
    let elsewhere = || task("cat data/other >&2").file("data/stop", "the\n");
    assert_eq!(both(elsewhere), [None, None], "the task has no such file");
    // Root may write into it: the line is what another user is told.
    let copy = complaint("bash: copy: Permission denied");
    same(
        || task(&format!("cp \"$1\" copy; chmod a-w copy; {copy}")),
        "copy is read-only, as inputs and copies of them are: copy with cp --no-preserve=mode, or \
         chmod u+w the copy",
    );
    same(
        || task("grep -q nothing \"$1\""),
        "it printed nothing: a command ended it, such as a grep that found nothing; set -x at its \
         beginning prints each command",
    );
}
