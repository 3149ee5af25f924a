//! The example `benmet`: steps of benmet, as they are, in workspaces that have its layout.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::examples::copy;
use crate::lab::{Lab, files};
use crate::needs::needs;
use crate::program::{Ran, Running};
use crate::repository::{self, LAB};

/// A step in one piece: its inputs, and what `start` does. It tells of itself where no sandbox lets it.
fn step(name: &str, inputs: &str, start: &str) -> (String, String) {
    stages(name, inputs, &format!("log start; {start}"), "")
}

/// A step with more commands than `start`. `value NAME` is the value of a parameter.
fn stages(name: &str, inputs: &str, start: &str, more: &str) -> (String, String) {
    let more = match more {
        "" => "status) if [ -e output_params.txt ]; then echo finished; else echo startable; fi ;;",
        more => more,
    };
    let script = format!(
        r#"#!/bin/sh
set -e
log() {{ [ -z "${{LAB_LOG-}}" ] || echo "{name} $1" >> "$LAB_LOG"; }}
value() {{ sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/" input_params.txt; }}
case $1 in
inputs) echo '{inputs}' ;;
start) {start} ;;
{more}
*) echo "no command $1"; exit 1 ;;
esac
"#
    );
    (format!("steps/{name}/run.sh"), script)
}

/// A step that waits for a file `result` in the directory of its run.
fn queued(more_of_start: &str, more_of_continue: &str) -> (String, String) {
    let more = format!(
        r#"status)
    if [ -e output_params.txt ]; then echo finished
    elif [ -e lost ]; then echo error: the job is lost
    elif [ -e result ]; then echo continuable
    elif [ -e job ]; then echo pending
    else echo startable; fi ;;
continue) echo "{{\"sum\": \"$(cat result)\"}}" > output_params.txt; log continue; {more_of_continue} ;;
cancel) log cancel; rm job; rm -f lost ;;"#
    );
    let start = format!("echo > job; log start; {more_of_start}");
    stages("queued", r#"{"built": "", "RUN-id": ""}"#, &start, &more)
}

/// Executes the chain in `task/` with these arguments, and returns its output.
fn chain(lab: &Lab, arguments: &[&str], path: Option<&str>) -> Output {
    let mut chain = Command::new(lab.path("task/chain"));
    chain.args(arguments).current_dir(lab.path("task")).env("HOME", lab.path("home"));
    path.iter().for_each(|path| _ = chain.env("PATH", path));
    chain.output().unwrap()
}

/// A workspace whose steps are in the index, with what the example adds to it.
fn workspace(index: &str, steps: &[(String, String)]) -> Lab {
    needs(&["python3"]);
    let mut lab = Lab::empty().file("steps/index.txt", index);
    for (name, script) in steps {
        lab = lab.file(name, script).mode(name, 0o755);
    }
    let example = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tasks-example/benmet");
    copy(&example.join("computations"), &lab.path("task/computations"));
    fs::copy(example.join("chain"), lab.path("task/chain")).unwrap();
    lab.commit()
}

/// The workspace as a task that leads to a step.
fn towards(lab: Lab, arguments: &[&str]) -> Lab {
    let chain = chain(&lab, arguments, None);
    assert!(chain.status.success(), "{}", String::from_utf8_lossy(&chain.stderr));
    lab.file("workflow.ce", chain.stdout).commit_again()
}

fn run<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    lab.run("ce-run", &[&["--no-sync"], arguments, &["../storage"]].concat())
}

/// Returns the output of the step to which the run leads.
fn put_out(ran: &Ran<'_>) -> Value {
    let (_, outputs) = ran.stdout.split_once("Task outputs are:\n").unwrap();
    serde_json::from_str(&ran.lab.stored(outputs.lines().next().unwrap().trim())).unwrap()
}

/// The directory of the only run that is suspended.
fn suspended(lab: &Lab) -> PathBuf {
    let file = |name: &String| name.ends_with("/steps/queued/runs/run/input_params.txt");
    let mut files = lab.storage().into_iter().filter(|it| it.contains("/suspended/")).filter(file);
    let file = lab.path("storage").join(files.next().unwrap());
    assert_eq!(files.next(), None);
    file.parent().unwrap().to_owned()
}

#[test]
fn parameters_pass_from_step_to_step_as_in_benmet() {
    for isolated in [false, true] {
        let index = "a/run.sh:\nb/run.sh: \n# not a step\nc/run.sh: a\nc/run.sh: b\n";
        let steps = [
            step(
                "a",
                r#"{"size": 1, "shared": "a", "33": 33}"#,
                r#"cp input_params.txt "$PWD/kept"; echo "{\"where\": \"$PWD/kept\", \"from\": \"a\"}" > output_params.txt"#,
            ),
            // The other pair of names, and lines.
            step(
                "b",
                r#"{"from": "", "other": "it\u0027s 7|\u2028=8"}"#,
                "cp params_in.txt got; printf 'from=b\\nline=x=y\\n' > params_out.txt",
            ),
            step(
                "c",
                r#"{"where": "", "from": "", "shared": "c", "line": "", "RUN-all-params": ""}"#,
                r#"mkdir -p ../../../../metrics; cat params_in_all.txt > ../../../../metrics/all; cat ../../../b/runs/run/got > seen
                printf '{"a": %s, "c": %s}' "$(cat "$(value where)")" "$(cat input_params.txt)" > output_params.txt"#,
            ),
        ];
        let lab = workspace(index, &steps);
        let lab = towards(if isolated { lab.isolated() } else { lab }, &["c"]);
        let ran = run(&lab, &["-p", "size=20"]).exit(0).says("6 calls: 6 computed");
        let mut out = put_out(&ran);
        let place = out["c"]["where"].take();
        assert!(place.as_str().unwrap().ends_with("/steps/a/runs/run/kept"), "{place}");
        let expected = json!({"a": {"shared": "a", "size": 20, "33": 33}, "c": {"from": "b", "line": "x=y", "shared": "a", "where": null}});
        assert_eq!(out, expected);

        // Each result has the files that the step wrote, in their places in the workspace, and nothing else.
        let last = lab
            .storage()
            .into_iter()
            .filter(|it| it.starts_with("c_start/") && it.contains("/01/"));
        let last: Vec<String> =
            last.filter(|it| it.contains("/steps/c/") || it.contains("/metrics/")).collect();
        let names: Vec<&str> = last.iter().map(|it| it.splitn(5, '/').nth(4).unwrap()).collect();
        let files =
            ["input_params.txt", "output_params.txt", "params_in.txt", "params_in_all.txt", "seen"];
        let files = files.map(|name| format!("steps/c/runs/run/{name}"));
        assert_eq!(names, [&["metrics/all".to_owned()], &files[..]].concat());
        let all = lab.stored(&last[0]);
        let (head, rest) = all.split_once("where=").unwrap();
        assert_eq!(
            head,
            "============\n33=33\nfrom=b\nline=x=y\nother=it's 7|\u{2028}=8\nshared=a\nsize=20\n"
        );
        assert!(rest.ends_with("/kept\n\n"), "{all}");
        let own = lab.stored(&last[4]);
        assert!(own.contains("where={workspace}/steps/a/runs/run/kept\n"), "{own}");

        // `b` does not depend on `a`, and `a` not on what only `b` reads.
        run(&lab, &["-p", "size=21"]).exit(0).says("6 calls: 1 reused, 5 computed");
        run(&lab, &["-p", "size=20", "-p", "other=8"])
            .exit(0)
            .says("6 calls: 1 reused, 5 computed");
        run(&lab, &["-p", "size=20"]).exit(0).says("6 calls: 6 reused");
        if !isolated {
            assert_eq!(
                lab.called(),
                ["a start", "b start", "c start", "a start", "c start", "b start", "c start"]
            );
        }
    }
}

#[test]
fn a_step_that_suspends_is_cancelled_continued_and_never_executed_twice() {
    let build = step("build", r#"{"size": "2"}"#, r#"echo '{"built": "yes"}' > output_params.txt"#);
    let lab = workspace("build/run.sh:\nqueued/run.sh: build\n", &[build, queued("", "")]);
    let lab = towards(lab, &["queued", "1"]);
    run(&lab, &[]).exit(4).says("1 suspended");
    lab.run("ce", &["status", "--ask", "../storage"])
        .shows("status: pending {\"RUN-id\":\"1\",\"built\":\"yes\"}")
        .shows("input parameters: output 00 of inputs: {\"RUN-id\":\"1\",\"built\":\"yes\"}\n");
    run(&lab, &[]).exit(4);
    lab.run("ce", &["cancel", "--all", "../storage"]).exit(0);
    run(&lab, &[]).exit(4);
    fs::write(suspended(&lab).join("lost"), "").unwrap();
    run(&lab, &[]).exit(1).says("error: the job is lost");
    lab.run("ce", &["cancel", "--all", "../storage"]).exit(0);
    run(&lab, &[]).exit(4);
    fs::write(suspended(&lab).join("result"), "3").unwrap();
    let ran = run(&lab, &[]).exit(0);
    assert_eq!(put_out(&ran), json!({"replicate": 1, "sum": "3"}));
    run(&lab, &[]).exit(0).says("4 calls: 4 reused");
    let twice = ["queued start", "queued cancel"].repeat(2);
    assert_eq!(
        lab.called(),
        [&["build start"], &twice[..], &["queued start", "queued continue"]].concat()
    );

    // Another RUN-id is another replicate: all the rest is there.
    lab.git("task", &["config", "compeval.takeover", "tree"]);
    let written = chain(&lab, &["queued", "6..9 until built ±5%"], None).stdout;
    let written = String::from_utf8(written).unwrap();
    assert!(written.contains(":replicates '6..9 until built ±5%' "), "{written}");
    assert!(written.contains("by ./chain queued '6..9 until built ±5%'"), "{written}");
    let lab = towards(lab, &["queued", "2"]);
    run(&lab, &[]).exit(4).says("1 suspended");
    assert_eq!(lab.called(), ["queued start"]);
}

#[test]
fn files_of_an_interrupted_command_are_not_outputs() {
    let here = "[ ! -e \"$LAB_LOG.hang\" ] || sleep 100";
    let lab = workspace("queued/run.sh:\n", &[queued(here, here)]);
    let lab = towards(lab, &["queued"]);
    let (hang, called) = (lab.path("called.hang"), lab.path("called"));
    let interrupted = |lab: &Lab| {
        fs::write(&hang, "").unwrap();
        let running = Running::start(lab.command("ce-run").args(["--no-sync", "../storage"]));
        while !called.exists() {
            assert!(!running.has_ended(), "it ended before the step was executed");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        running.signal(Signal::TERM);
        assert_eq!(running.output().status.code(), Some(143));
        fs::remove_file(&hang).unwrap();
    };
    interrupted(&lab);
    run(&lab, &[]).exit(4);
    assert_eq!(lab.called(), ["queued start"], "the step says that its job waits");
    fs::write(suspended(&lab).join("result"), "3").unwrap();
    interrupted(&lab);
    assert!(suspended(&lab).join("output_params.txt").exists());
    assert_eq!(put_out(&run(&lab, &[]).exit(0))["sum"], "3");
    assert_eq!(lab.called(), ["queued continue", "queued continue"]);
}

#[test]
fn a_step_gets_a_repository_at_its_commit() {
    let start = r#"cd "$(value REPO-PATH-app)" && echo changed >> text && mv text ../.. && cd ../.. && echo "{\"seen\": \"$(value REPO-GITCOMMITHASH-app)\"}" > output_params.txt"#;
    let build = step("build", r#"{"REPO-PATH-app": "", "REPO-GITCOMMITHASH-app": "HEAD"}"#, start);
    let lab = towards(workspace("build/run.sh:\n", &[build]).isolated(), &["build"]);
    let commit = |text: &str| {
        fs::create_dir_all(lab.path("app")).unwrap();
        fs::write(lab.path("app/text"), text).unwrap();
        if !lab.path("app/.git").exists() {
            repository::init(&lab.path("app"));
        }
        repository::commit(&lab.path("app"), LAB, "app\n")
    };
    let first = commit("one\n");
    let with = |commit: &str| format!("REPO-GITCOMMITHASH-app={commit}");
    let ran = run(&lab, &["-r", "app=../app"]).exit(0);
    assert_eq!(put_out(&ran), json!({"REPO-GITCOMMITHASH-app": first, "seen": first}));
    let second = commit("two\n");
    let ran = run(&lab, &["-r", "app=../app"]).exit(0).says("2 calls: 1 reused, 1 computed");
    assert_eq!(put_out(&ran), json!({"REPO-GITCOMMITHASH-app": second, "seen": second}));
    run(&lab, &["-r", "app=../app", "-p", &with(&first)]).exit(0).says("2 calls: 2 reused");
    let texts = files(&lab.path("storage"))
        .into_iter()
        .filter(|(name, _)| name.ends_with("/runs/run/text"));
    let mut texts: Vec<String> = texts.map(|(_, text)| String::from_utf8(text).unwrap()).collect();
    texts.sort();
    assert_eq!(texts, ["one\nchanged\n", "two\nchanged\n"]);
}

#[test]
fn a_later_step_finds_the_repository_of_an_earlier_one() {
    let build = step("build", r#"{"REPO-PATH-app": ""}"#, "echo '{}' > output_params.txt");
    let start = r#"path=$(sed -n 's/^REPO-PATH-app=//p' params_in_all.txt)
        echo "{\"path\": \"$path\", \"text\": \"$(cat "$path/text")\"}" > output_params.txt"#;
    let read = step("read", r#"{"RUN-all-params": ""}"#, start);
    let lab = workspace("build/run.sh:\nread/run.sh: build\n", &[build, read]);
    fs::create_dir_all(lab.path("app")).unwrap();
    fs::write(lab.path("app/text"), "one").unwrap();
    repository::init(&lab.path("app"));
    repository::commit(&lab.path("app"), LAB, "app");
    let lab = towards(lab.isolated(), &["read"]);
    let path = "../../../build/runs/run/repos/app/";
    let ran = run(&lab, &["-r", "app=../app"]).exit(0);
    assert_eq!(put_out(&ran), json!({"path": path, "text": "one"}));
}

#[test]
fn a_run_id_that_is_given_holds_for_all_replicates() {
    let step = step("a", r#"{"RUN-id": "default"}"#, "cp input_params.txt output_params.txt");
    let lab = towards(workspace("a/run.sh:\n", &[step]), &["a", "2"]);
    let ids = |arguments: &[&str]| {
        let ran = run(&lab, arguments).exit(0);
        let (_, outputs) = ran.stdout.split_once("Task outputs are:\n").unwrap();
        let paths = outputs.lines().map(|line| line.rsplit(' ').next().unwrap());
        let rows: String = paths.map(|path| lab.stored(path)).collect();
        let rows = rows.lines().map(|row| serde_json::from_str::<Value>(row).unwrap());
        rows.map(|row| row["RUN-id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&[]), ["1", "2"]);
    assert_eq!(ids(&["-p", "RUN-id=mine"]), ["mine", "mine"]);
    fs::write(lab.path("points.json"), r#"{"RUN-id": ["x", "mine"]}"#).unwrap();
    assert_eq!(ids(&["--points", "../points.json"]), ["x", "x", "mine", "mine"]);
    assert_eq!(lab.called().len(), 4);
}

#[test]
fn scripts_of_lua_find_their_modules() {
    needs(&["lua5.4"]);
    let script = r#"local util = require "benmet.util"
if arg[1] == "inputs" then print('{"text": "?"}')
elseif arg[1] == "status" then print(util.exists("output_params.txt") and "finished" or "startable")
elseif arg[1] == "start" then util.write("output_params.txt", '{"lua": "' .. util.read("input_params.txt"):gsub('"', "'") .. '"}')
end"#;
    let module = r#"local util = {}
function util.read(path) local file = assert(io.open(path)); local text = file:read("a"); file:close(); return text end
function util.write(path, text) local file = assert(io.open(path, "w")); file:write(text); file:close() end
function util.exists(path) local file = io.open(path); return file and file:close() end
return util"#;
    let steps = [("steps/say/run.lua", script), ("lua/benmet/util.lua", module)];
    let steps = steps.map(|(name, text)| (name.to_owned(), text.to_owned()));
    for isolated in [false, true] {
        let lab = workspace("say/run.lua:\n", &steps);
        let lab = towards(if isolated { lab.isolated() } else { lab }, &["say"]);
        let ran = run(&lab, &["-p", "text=hello"]).exit(0);
        assert_eq!(put_out(&ran), json!({"lua": "{'text':'hello'}"}));
    }
}

#[test]
fn a_faulty_workspace_is_reported_before_a_workflow_is_written() {
    let lua = [("steps/a/run.lua".to_owned(), "print('{}')".to_owned())];
    let lab = workspace("a/run.lua:\n", &lua);
    fs::create_dir(lab.path("bin")).unwrap();
    let git = Command::new("sh").args(["-c", "command -v git"]).output().unwrap().stdout;
    std::os::unix::fs::symlink(String::from_utf8(git).unwrap().trim(), lab.path("bin/git"))
        .unwrap();
    let no_lua = chain(&lab, &["a"], lab.path("bin").to_str());
    let says = |output: Output, text: &str| {
        assert_eq!(output.status.code(), Some(1));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(text) && !error.contains("Traceback"), "{error}");
    };
    says(no_lua, "run.lua needs Lua, and there is none: install lua5.4");
    let of = |name: &str, inputs: &str| step(name, inputs, ":");
    for (index, inputs, text) in [
        ("a/run.sh: b\nb/run.sh: a\n", "{}", "a -> b -> a is a circle"),
        ("a/run.sh: x\n", "{}", "there is no step x"),
        ("a/run.sh:\na/other.sh:\n", "{}", "a/other.sh: not NAME/PROGRAM"),
        ("a:\n", "{}", "a: not NAME/PROGRAM"),
        ("a/other.sh:\n", "{}", "No such file"),
        ("a/run.sh:\n", "nothing", "neither an object of JSON"),
    ] {
        says(chain(&workspace(index, &[of("a", inputs), of("b", "{}")]), &["a"], None), text);
    }
    says(chain(&lab, &[], None), "chain STEP [REPLICATES]");
    let lab = lab.without("steps/index.txt");
    says(chain(&lab, &["a"], None), "No such file or directory: 'steps/index.txt'");
    fs::remove_dir_all(lab.path("task/.git")).unwrap();
    let lab = lab.file("steps/index.txt", "a/run.lua:");
    says(
        chain(&lab, &["a"], None),
        "the workspace is no Git repository yet: git init makes it one",
    );
}

#[test]
fn a_step_that_fails_is_begun_anew_by_the_next_run() {
    let start = r#"echo '{' > output_params.txt; [ -e "$LAB_LOG.mended" ] || exit 3; echo '{"x": 1}' > output_params.txt"#;
    let lab = towards(workspace("a/run.sh:\n", &[step("a", "{}", start)]), &["a"]);
    run(&lab, &[]).exit(1).says("a/run.sh start ended with status 3");
    fs::write(lab.path("called.mended"), "").unwrap();
    assert_eq!(put_out(&run(&lab, &[]).exit(0)), json!({"x": 1}));
    assert_eq!(lab.called(), ["a start", "a start"]);
    let lab =
        towards(workspace("a/run.sh:\n", &[step("a", "{}", "echo x > output_params.txt")]), &["a"]);
    run(&lab, &[]).exit(1).says("output_params.txt of a/run.sh: neither an object of JSON");
}

#[test]
fn a_job_reads_what_earlier_steps_built_wherever_it_is_executed() {
    // The path of what each step has built, and what that has.
    let build = |name: &str, before: &str, more: &str| {
        let inputs = format!(r#"{{"built-{before}": ""{more}}}"#);
        let start = format!(
            r#"cat "$(value built-{before})" repos/*/text > built 2>/dev/null || true; echo {name} >> built
            echo "{{\"built-{name}\": \"$PWD/built\"}}" > output_params.txt"#
        );
        step(name, &inputs, &start)
    };
    let two = r#", "REPO-GITCOMMITHASH-one": "HEAD", "REPO-PATH-two": """#;
    let start = r#"echo "cat $(value built-e)" > job"#;
    let queued = stages(
        "queued",
        r#"{"built-e": "", "RUN-id": ""}"#,
        start,
        r#"status) if [ -e result ]; then echo continuable; elif [ -e job ]; then echo pending; else echo startable; fi ;;
continue) echo "{\"read\": \"$(tr '\n' ' ' <result)\"}" > output_params.txt ;;"#,
    );
    let steps = [
        build("a", "", two),
        build("b", "a", ""),
        build("c", "b", ""),
        build("d", "c", ""),
        build("e", "d", ""),
        queued,
    ];
    let index = "a/run.sh:\nb/run.sh: a\nc/run.sh: b\nd/run.sh: c\ne/run.sh: d\nqueued/run.sh: e\n";
    for isolated in [false, true] {
        let lab = workspace(index, &steps);
        for name in ["one", "two"] {
            fs::create_dir_all(lab.path(name)).unwrap();
            fs::write(lab.path(name).join("text"), format!("{name}\n")).unwrap();
            repository::init(&lab.path(name));
            repository::commit(&lab.path(name), LAB, name);
        }
        let lab = towards(if isolated { lab.isolated() } else { lab }, &["queued"]);
        let repositories = ["-r", "one=../one", "-r", "two=../two"];
        run(&lab, &repositories).exit(4).says("12 calls: 11 computed, 1 suspended");
        // The queue is outside of the sandbox.
        let place = suspended(&lab);
        let job = Command::new("sh").arg("job").current_dir(&place).output().unwrap();
        assert!(job.status.success(), "{}", String::from_utf8_lossy(&job.stderr));
        fs::write(place.join("result"), job.stdout).unwrap();
        let ran = run(&lab, &repositories).exit(0);
        assert_eq!(put_out(&ran)["read"], "one two a b c d e ");
    }
}

#[test]
fn all_parameters_are_the_ones_of_this_and_earlier_steps() {
    let all = r#"echo "{\"all\": \"$(tr '\n' ' ' <params_in_all.txt)\"}" > output_params.txt"#;
    let first = step("a", r#"{"is": true, "not": null, "n": 7, "RUN-all-params": ""}"#, all);
    let later = step("b", r#"{"all": "", "later": "x"}"#, "cp input_params.txt output_params.txt");
    let lab = towards(workspace("a/run.sh:\nb/run.sh: a\n", &[first, later]), &["b"]);
    let ran = run(&lab, &[]).exit(0);
    assert_eq!(put_out(&ran), json!({"all": "============ is=true n=7  ", "later": "x"}));
    // `a` knows nothing of what only `b` declares.
    run(&lab, &["-p", "later=y"]).exit(0).says("4 calls: 1 reused, 3 computed");
}
