//! Completions: the answers of a program to a shell, and their use by the script for Bash.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::lab::{Lab, files};
use crate::needs::needs;
use crate::only::{SWEEP, sum_of_product_and_count};
use crate::program::{Ran, command};

const SUM: &str = "Inputs: 'x', 'stop words'\n(add INPUT('x') INPUT('stop words'))[0]";

fn lab() -> Lab {
    let lab = Lab::task(SUM).file("deep/down/note", "").file("my file", "").commit();
    lab.git("task", &["branch", "feature/one"]);
    lab.git("task", &["tag", "v1"]);
    lab
}

/// The answer of `ce` to a shell, in a directory of the laboratory: the paths, what comes before them, and
/// each candidate without its description.
#[track_caller]
fn answer(lab: &Lab, dir: &str, words: &[&str]) -> Vec<String> {
    let mut ce = lab.command("ce");
    ce.current_dir(lab.path(dir)).args(["--complete-word", "zsh"]).args(words);
    lines(&lab.finish(&mut ce))
}

#[track_caller]
fn lines(ran: &Ran<'_>) -> Vec<String> {
    assert_eq!((ran.status.code(), &*ran.stderr), (Some(0), ""));
    let lines = ran.stdout.lines().map(|line| line.split('\t').next().unwrap().to_owned());
    lines.collect()
}

const REVISIONS: [&str; 6] = ["", "", "HEAD", "feature/one", "main", "v1"];
const INPUTS: [&str; 4] = ["files", "", "x=", "stop words="];

#[test]
fn revisions_of_the_tasks_repository_are_completed() {
    let lab = lab();
    for words in [
        &["run", "--at", ""][..],
        &["viz", "--at", ""],
        &["check", "--at", ""],
        &["diff", ""],
        &["bisect", "--good", "v1", "--bad", ""],
    ] {
        assert_eq!(answer(&lab, "task", words), REVISIONS, "{words:?}");
    }
    assert_eq!(answer(&lab, "task/deep/down", &["run", "--at", ""]), REVISIONS);
    assert_eq!(answer(&lab, "data", &["run", "--task", "../task/deep", "--at", ""]), REVISIONS);
    assert_eq!(answer(&lab, "data", &["run", "--task=../task", "--at", ""]), REVISIONS);
    assert_eq!(answer(&lab, "task", &["run", "--at=v"])[1..3], ["--at=", "--at=HEAD"]);
    assert_eq!(
        answer(&lab, "task", &["diff", "v1..f"])[1..4],
        ["v1..", "v1..HEAD", "v1..feature/one"]
    );
    assert_eq!(answer(&lab, "data", &["commits", "../task", ""]), REVISIONS);
    assert_eq!(answer(&lab, "data", &["commits", "../task", "v1..m"])[3], "v1..feature/one");
    assert_eq!(answer(&lab, "data", &["commits", "-n", "3", ""]), ["directories", ""]);
    let second = ["directories", "", "x=", "stop words=", "HEAD", "feature/one", "main", "v1"];
    assert_eq!(answer(&lab, "task", &["diff", "v1", ""]), second);
    assert_eq!(answer(&lab, "task", &["diff", "v1..main", ""]), second[..4]);
}

#[test]
fn inputs_of_the_task_are_completed_before_files() {
    let lab = lab();
    assert_eq!(answer(&lab, "task", &["run", "../storage", ""]), INPUTS);
    assert_eq!(answer(&lab, "task/deep", &["explain", "../storage", ""]), INPUTS);
    assert_eq!(answer(&lab, "task", &["run", "../storage", "x=../data/x", ""])[2..], INPUTS[3..]);
    assert_eq!(answer(&lab, "task", &["run", "-px=5", "--", "../storage", ""])[2..], INPUTS[3..]);
    assert_eq!(
        answer(&lab, "task", &["run", "-n", "../storage", "stop words=../d"]),
        ["files", "stop words="]
    );
    assert_eq!(answer(&lab, "task", &["run", "-p", ""]), ["", "", "x=", "stop words="]);
    assert_eq!(answer(&lab, "task", &["run", "-px=1"]), ["", "-p"]);
    assert_eq!(answer(&lab, "task", &["run", "--each", ""]), ["", "", "x=", "stop words="]);
    let more = ["table", "--each", "x=1,2", "--each", ""];
    assert_eq!(answer(&lab, "task", &more), ["", "", "stop words="]);
    // The first one is the storage, unless that is configured.
    assert_eq!(answer(&lab, "task", &["run", ""])[0], "directories");
    lab.git("task", &["config", "compeval.storage", "../storage"]);
    assert_eq!(answer(&lab, "task", &["run", ""]), INPUTS);
    let lab = lab.file("inputs", "y\n").commit_again();
    assert_eq!(answer(&lab, "task", &["run", "../storage", ""])[2..], ["y="]);
    assert_eq!(answer(&lab, "task", &["run", "--at", "v1", "../storage", ""]), INPUTS);
}

#[test]
fn other_arguments_are_completed_by_their_kind() {
    let lab = lab();
    let names = ["add", "divmod", "mul"];
    for words in [&["log", "--computation", ""][..], &["init", ".", "--computation", ""]] {
        assert_eq!(answer(&lab, "task", words)[2..], names, "{words:?}");
    }
    assert_eq!(
        answer(&lab, "task", &["bisect", "--in", ""])[..3],
        ["directories", "", "computations/add"]
    );
    assert_eq!(answer(&lab, "task", &["show", ""]), ["directories", ""]);
    assert_eq!(answer(&lab, "task", &["show", "../storage", ""]), ["files", ""]);
    assert_eq!(answer(&lab, "task", &["pin", "../storage", "file", ""]), ["files", ""]);
    assert_eq!(answer(&lab, "task", &["run", "--task", ""]), ["directories", ""]);
    assert_eq!(answer(&lab, "task", &["bisect", "--good", "v1", "--", ""]), ["files", ""]);
    assert_eq!(
        answer(&lab, "task", &["completions", "bash", ""])[2..],
        ["ce", "ce-run", "ce-sym", "ce-viz"]
    );
    let all = answer(&lab, "task", &[""]);
    assert!(all.contains(&"bisect".to_owned()) && !all.contains(&"--help".to_owned()), "{all:?}");
    let all = answer(&lab, "task", &["log", "--"]);
    assert!(all.contains(&"--slow".to_owned()) && all.contains(&"-n".to_owned()), "{all:?}");
}

#[test]
fn calls_sweeps_and_points_of_the_task_are_completed() {
    let lab = sum_of_product_and_count(&[("00-a", "1\n20\nb c\n"), ("01-alpha", "1,5\n")])
        .call(&format!("{SWEEP}/inputs/00-body/"), "mul", &["a", "alpha"])
        .commit();
    let calls = ["PRODUCTS", "TASK", "add", "body", "count", "left", "mul", "right", "right/table"];
    assert_eq!(answer(&lab, "task/workflow", &["run", "--only", ""])[2..], calls);
    assert_eq!(answer(&lab, "task", &["run", "--only=ri"])[1..3], ["--only=", "--only=PRODUCTS"]);
    let points = |text: &str| answer(&lab, "task", &["run", "--where", text]);
    assert_eq!(points(""), ["", "", "a=", "alpha="]);
    assert_eq!(points("a="), ["", "a=", "a=1", "a=20", "a=b c"]);
    assert_eq!(points("a=20,"), ["", "a=20,", "a=20,1", "a=20,b c"]);
    // A text with a comma cannot be typed.
    assert_eq!(points("alpha="), ["", "alpha="]);
    assert_eq!(points("no="), ["", "no="]);
    let sweeps = answer(&lab, "task", &["table", "--sweep", ""]);
    let directory = format!("workflow/{SWEEP}");
    assert_eq!(sweeps, ["", "", "PRODUCTS", &directory, "mul"]);
    let lab = lab.without("workflow/inputs").call("", "mul", &["x", "x"]).commit_again();
    assert_eq!(answer(&lab, "task", &["run", "--only", ""])[2..], ["TASK", "mul"]);
    let before = answer(&lab, "task", &["run", "--at", "HEAD~1", "--only", ""]);
    assert!(before.contains(&"PRODUCTS".to_owned()), "{before:?}");
}

#[test]
fn results_in_the_storage_are_completed() {
    let lab = lab();
    let run = ["-q", "--no-sync", "-px=1", "-pstop words=2", "../storage"];
    let path = lab.run("ce-run", &run).exit(0).stdout.trim().to_owned();
    let output = path.strip_prefix("../storage/").unwrap();
    let call = output.replace("/00/", "/");
    let version = call.rsplit_once('/').unwrap().0;
    // One computation at one commit: these parts have no alternative.
    for words in [
        &["audit", "../storage", ""][..],
        &["audit", "../storage", "c_a"],
        &["audit", "../storage", version],
        &["push", "../storage", "--revoke", "c_"],
        &["shell", "../storage", "c_"],
    ] {
        assert_eq!(answer(&lab, "task", words), ["files", "", &call], "{words:?}");
    }
    assert_eq!(answer(&lab, "task", &["show", "../storage", "c_"]), ["files", "", output]);
    assert_eq!(answer(&lab, "task", &["cite", "../storage", version]), ["files", "", output]);
    assert_eq!(answer(&lab, "task", &["pin", "../storage", ""])[2..], ["c_add/", "t_task/"]);
    let job = &answer(&lab, "task", &["audit", "../storage", "--job", ""])[2];
    assert!(job.starts_with("t_task/"), "{job}");
    let both = answer(&lab, "task", &["export", "../storage", ""]);
    assert_eq!(both[2..], [call.clone(), job.clone()]);
    for wrong in ["c_add/../", "../", "/etc/", "tinputs/", "d"] {
        let words = ["show", "../storage", wrong];
        assert_eq!(answer(&lab, "task", &words), ["files", ""], "{wrong}");
    }
    lab.git("task", &["config", "compeval.storage", "../storage"]);
    assert_eq!(
        answer(&lab, "task", &["run", "--force", ""]),
        ["files", "", &call, "add", "divmod", "mul"]
    );
    assert_eq!(answer(&lab, "task", &["report", "--calls", ""]), ["", ""]);
    assert_eq!(bash(&lab, "ce pin ../storage c_", "c_"), [output]);
    assert_eq!(bash(&lab, "ce pin ../storage ", "")[1..3], ["c_add/", "t_task/"]);
    assert_eq!(bash(&lab, "ce audit ../storage c_nothing", "c_nothing"), [""]);
}

#[test]
fn only_suspended_calls_are_completed_for_cancel() {
    let lab = Lab::task("Inputs: 'x'\n(wait INPUT('x'))[0]");
    let lab = lab.computation("wait", "x", "y", "exit 75").commit();
    lab.run("ce-run", &["--no-sync", "-px=1", "../storage"]).exit(4);
    let names = answer(&lab, "task", &["cancel", "../storage", ""]);
    assert!(names.len() == 3 && names[2].starts_with("c_wait/"), "{names:?}");
    lab.run("ce", &["cancel", "../storage", &names[2]]).exit(0);
    assert_eq!(answer(&lab, "task", &["cancel", "--forget", "../storage", ""]), ["files", ""]);
}

/// Returns the completions that fish offers for a line, in the task's directory.
#[track_caller]
fn fish(lab: &Lab, line: &str) -> Vec<String> {
    let bin = command("ce");
    let bin = Path::new(bin.get_program()).parent().unwrap().to_owned();
    let path = [bin.into_os_string(), std::env::var_os("PATH").unwrap()].join(":".as_ref());
    let ce = lab.command("ce");
    let mut fish = Command::new("fish");
    let script = "ce completions fish | source; complete --do-complete $argv[1]";
    fish.args(["--no-config", "-c", script, line]).env_clear();
    fish.envs(ce.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("PATH", path);
    fish.current_dir(lab.path("task")).stdin(Stdio::null());
    fish.stdout(Stdio::piped()).stderr(Stdio::piped());
    lines(&lab.finish(&mut fish))
}

#[test]
fn fish_completes_the_same() {
    needs(&["fish"]);
    let lab = lab();
    assert_eq!(fish(&lab, "ce run --at f"), ["feature/one"]);
    assert_eq!(fish(&lab, "ce log --computation m"), ["mul"]);
    assert_eq!(fish(&lab, "ce run ../storage x"), ["x="]);
    let run = ["-q", "--no-sync", "-px=1", "-pstop words=2", "../storage"];
    let path = lab.run("ce-run", &run).exit(0).stdout.trim().to_owned();
    let output = path.strip_prefix("../storage/").unwrap();
    assert_eq!(fish(&lab, "ce show ../storage c_"), [output]);
}

#[test]
fn a_failing_completion_prints_and_leaves_nothing() {
    let questions: [&[&str]; 7] = [
        &["run", "--only", ""],
        &["run", "--where", ""],
        &["table", "--sweep", ""],
        &["run", "--at", ""],
        &["run", "-p", ""],
        &["log", "--computation", ""],
        &["run", "--at", "nothing", "-p", ""],
    ];
    let before = Lab::empty();
    let committed = lab();
    let broken = lab().file("inputs", b"\xff\n").file("workflow/kind", "").without("computations");
    fs::write(broken.path("task/.git/HEAD"), "nonsense").unwrap();
    for (lab, dir, questions) in [
        (&before, "task", &questions[..]),
        (&broken, "task", &questions[..]),
        (&committed, "task", &questions[6..]),
    ] {
        let seen = files(&lab.path(""));
        for words in questions {
            assert_eq!(answer(lab, dir, words), ["", ""], "{words:?}");
        }
        assert!(files(&lab.path("")) == seen);
    }
    assert!(
        answer(&before, "task", &["run", "--at", "x", "--task", "/nowhere", "../s", ""]).len() == 2
    );
    for arguments in [&[][..], &["bash", "ce"], &["tcsh", "ce", ""]] {
        let ran = before.run("ce", &[&["--complete-word"], arguments].concat());
        assert!(lines(&ran).is_empty(), "{arguments:?}");
    }
}

#[test]
fn somebody_elses_repository_completes_to_nothing() {
    let lab = lab();
    let Some(user) = lab.another_user() else { return };
    let mut chmod = Command::new("chmod");
    assert!(chmod.args(["-R", "a+rX"]).arg(lab.path("")).status().unwrap().success());
    for words in [["run", "--at", ""], ["run", "-p", ""], ["log", "--computation", ""]] {
        let mut ce = lab.command("ce");
        ce.args(["--complete-word", "zsh"]).args(words).uid(user);
        assert!(lines(&lab.finish(&mut ce)).len() > 2, "{words:?}");
        assert_eq!(lines(&lab.finish(ce.env("HOME", "/nowhere"))), ["", ""], "{words:?}");
    }
}

/// Returns the texts that Bash puts in the place of `part`, the end of the line, in the task's directory: each choice, and before
/// them the options that the script sets. Without a terminal, it takes quotes in paths as they are.
#[track_caller]
fn bash(lab: &Lab, line: &str, part: &str) -> Vec<String> {
    let bin = command("ce");
    let bin = Path::new(bin.get_program()).parent().unwrap().to_owned();
    let path = [bin.into_os_string(), std::env::var_os("PATH").unwrap()].join(":".as_ref());
    let script = r#"
        compopt() { printf '%s\n' "$*"; }
        source <(ce completions bash "$1")
        COMP_LINE=$2 COMP_POINT=${#2}
        read -ra COMP_WORDS <<<"$2"
        function=$(complete -p "$1" | sed 's/.*-F \([^ ]*\) .*/\1/')
        "$function" "$1" "$3" ""
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let program = line.split(' ').next().unwrap();
    let ce = lab.command("ce");
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script, "bash", program, line, part]).env_clear();
    bash.envs(ce.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("PATH", path);
    bash.current_dir(lab.path("task")).stdin(Stdio::null());
    bash.stdout(Stdio::piped()).stderr(Stdio::piped());
    lines(&lab.finish(&mut bash))
}

#[test]
fn bash_completes_words_with_equals_signs_colons_spaces_and_quotes() {
    let lab = lab().file("inputs", "x\nstop words\na:b\nit's $y\n").file("it", "");
    for (line, part, expected) in [
        ("ce-run --at f", "f", &["feature/one"][..]),
        ("ce run --at=f", "f", &["feature/one"]),
        ("ce diff v1..f", "v1..f", &["v1..feature/one"]),
        ("ce-run ../storage x", "x", &["-o nospace", "x="]),
        ("ce-run ../storage st", "st", &["-o nospace", r"stop\ words="]),
        ("ce-run ../storage \"st", "st", &["-o nospace", "stop words="]),
        ("ce-run ../storage x=m", "m", &["-o filenames", "my file"]),
        (r"ce-run ../storage stop\ words=m", "m", &["-o filenames", "my file"]),
        (
            "ce-run ../storage 'stop words=m",
            "stop words=m",
            &["-o filenames", "stop words=my file"],
        ),
        ("ce-run ../storage a:", "", &["-o nospace", "b="]),
        ("ce-run ../storage a:b=it", "it", &["-o filenames", "it"]),
        ("ce-run ../storage it", "it", &["-o filenames", "it's $y=", "it"]),
        ("ce-run -p it", "it", &["-o nospace", r"it\'s\ \$y="]),
        ("ce-run -p \"it", "it", &["-o nospace", r"it's \$y="]),
        ("ce-run --task=de", "de", &["-o filenames", "deep"]),
        ("ce-run dee", "dee", &["-o filenames", "deep"]),
        ("ce-run --at nothing", "nothing", &[""]),
        ("ce-run -p ../data/", "../data/", &[""]),
        ("ce log --computation m", "m", &["mul"]),
        ("ce-sym --lab", "--lab", &["--labels"]),
    ] {
        assert_eq!(bash(&lab, line, part), expected, "{line}");
    }
}

#[test]
fn the_choices_of_an_input_are_completed() {
    let text = "Inputs: x, mode = 'fast' or 'exact' or 'a,b'\n\n\
        join: a b -> c\n    cat $in_a $in_b > $out_c\n\n(join x '{mode}')\n";
    let lab = Lab::empty().one_text(text).commit();
    let completed = |words: &[&str]| answer(&lab, "task", words);
    assert_eq!(
        completed(&["run", "-p", "mode="]),
        ["", "mode=", "mode=fast", "mode=exact", "mode=a,b"]
    );
    assert_eq!(completed(&["run", "--each", "mode="]), ["", "mode=", "mode=fast", "mode=exact"]);
    assert_eq!(completed(&["run", "--each", "mode=fast,"])[2..], ["mode=fast,exact"]);
    assert_eq!(completed(&["run", "-p", "x="]), ["", ""]);
}
