//! `ce commits`: `git log` is the oracle.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, pipe};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Signal;

use crate::generator::{Random, seeds};
use crate::git_log::{git, history};
use crate::lab::Lab;
use crate::program::{Ran, Running};

const FORMAT: &str = r#"--format={"commit":"%H","date":"%cd","subject":"%s"}"#;
const DATES: &str = "--date=format-local:%Y-%m-%dT%H:%M:%SZ";

/// A laboratory with a repository in `data/lib`, made of what `git fast-import` reads.
fn lab(stream: &str) -> Lab {
    let lab = Lab::empty().data("lib/.keep", "");
    git(&lab.path("data/lib"), &["init", "-q"], "");
    git(&lab.path("data/lib"), &["fast-import", "--quiet", "--done"], stream);
    lab
}

/// A history of these commits, one after the other on `main`: the message and the date of each.
fn line(commits: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (message, date) in commits {
        write!(text, "commit refs/heads/main\ncommitter a <a@b> {date}\n").unwrap();
        writeln!(text, "data {}\n{message}", message.len()).unwrap();
    }
    text + "done\n"
}

fn expected(lab: &Lab, repository: &str, arguments: &[&str]) -> String {
    let options = ["--no-replace-objects", "-c", "core.quotePath=false", "log", FORMAT, DATES];
    git(&lab.path("data").join(repository), &[&options, arguments].concat(), "")
}

#[track_caller]
fn printed<'a>(lab: &'a Lab, repository: &str, arguments: &[&str]) -> Ran<'a> {
    let mut ce = lab.command("ce");
    ce.current_dir(lab.path("data")).args(["commits", repository]).args(arguments);
    lab.finish(&mut ce).exit(0)
}

#[test]
fn commits_and_their_order_agree_with_git_log() {
    for seed in seeds(4) {
        let mut random = Random::new(seed);
        let lab = lab(&history(&mut random, 40));
        git(&lab.path("data/lib"), &["symbolic-ref", "HEAD", "refs/heads/b40"], "");
        let data = lab.path("data");
        git(&data, &["clone", "-q", "--bare", "lib", "bare"], "");
        git(&data.join("bare"), &["commit-graph", "write", "--reachable"], "");
        git(&data.join("lib"), &["replace", "b39", "b3"], "");
        let url = format!("file://{}", data.join("lib").display());
        let shallow = ["clone", "-q", "--bare", "--depth", "4", "--no-single-branch", &url];
        git(&data, &[&shallow[..], &["shallow"]].concat(), "");
        let mut any = || format!("b{}", 1 + random.below(40));
        let ranges = [
            String::new(),
            any(),
            format!("{}..", any()),
            format!("..{}", any()),
            format!("{}..{}", any(), any()),
            format!("{}..{}", any(), any()),
        ];
        for range in &ranges {
            // At the end of a range that merges cross, Git depends on dates.
            let is_range = range.contains("..");
            let paths = ["", "lib/one", "lib/one/exec", "."];
            for path in &paths[..if is_range { 1 } else { paths.len() }] {
                let options = [&[][..], &["--first-parent"], &["-n", "3", "--reverse"], &["-n0"]];
                for options in options {
                    let mut arguments = options.to_vec();
                    arguments.extend(Some(range.as_str()).filter(|range| !range.is_empty()));
                    let path = Some(path).filter(|path| !path.is_empty());
                    arguments.extend(path.into_iter().flat_map(|path| ["--", path]));
                    let repository = random.one_of(&["lib", "bare", "shallow"]);
                    let ran = printed(&lab, repository, &arguments);
                    let told = expected(&lab, repository, &arguments);
                    assert_eq!(ran.stdout, told, "{seed} {repository} {arguments:?}");
                }
            }
        }
    }
}

#[test]
fn a_range_is_right_although_clocks_went_wrong() {
    // Of these histories a search that trusts dates lists too much.
    for seed in [5, 26] {
        let mut random = Random::new(seed);
        let stream = history(&mut random, 40);
        let mut number = 0;
        let mut skewed = |line: &str| {
            if !line.starts_with("committer ") {
                return format!("{line}\n");
            }
            number += 60;
            format!("committer a <a@b> {} +0000\n", 1_000_000_000 + number + random.below(400))
        };
        let lab = lab(&stream.lines().map(&mut skewed).collect::<String>());
        let all = expected(&lab, "lib", &["b40"]);
        for old in (1..40).map(|number| format!("b{number}")) {
            let known = expected(&lab, "lib", &[&old]);
            let known: HashSet<&str> = known.lines().collect();
            let ran = printed(&lab, "lib", &[&format!("{old}..b40")]);
            let told: HashSet<&str> = ran.stdout.lines().collect();
            let right = all.lines().filter(|line| !known.contains(line)).collect();
            assert_eq!(told, right, "{seed} {old}");
        }
    }
}

#[test]
fn a_range_and_a_path_select_the_commits_of_git_log() {
    let mut random = Random::new(3);
    let merges = history(&mut random, 40);
    let stream: Vec<&str> = merges.lines().filter(|line| !line.starts_with("merge ")).collect();
    let lab = lab(&(stream.join("\n") + "\n"));
    for path in ["lib", "lib/one/exec", "lib/one/deep/more", "other"] {
        for number in 1..8 {
            let range = format!("b{}..b{}", number * 3, 40 - number);
            let arguments = [&range, "--", path];
            let expected = expected(&lab, "lib", &arguments);
            assert_eq!(printed(&lab, "lib", &arguments).stdout, expected, "{arguments:?}");
        }
    }
}

#[test]
fn the_oldest_commit_of_a_shallow_clone_has_all_its_files_anew() {
    let mut stream = String::new();
    for (number, path) in ["lib/a", "b", "c"].iter().enumerate() {
        let commit = "commit refs/heads/main\ncommitter a <a@b> 1000000000 +0000\n";
        write!(stream, "{commit}data 1\n{number}\nM 644 inline {path}\ndata 1\nx\n").unwrap();
    }
    let lab = lab(&(stream + "done\n"));
    let url = format!("file://{}", lab.path("data/lib").display());
    let clone = ["clone", "-q", "--bare", "--depth", "2", "--branch", "main", &url, "shallow"];
    git(&lab.path("data"), &clone, "");
    for (arguments, lines) in [(&["main"][..], 2), (&["main", "--", "lib"], 1)] {
        let ran = printed(&lab, "shallow", arguments);
        assert_eq!(ran.stdout, expected(&lab, "shallow", arguments));
        assert_eq!(ran.lines().len(), lines);
    }
}

#[test]
fn a_change_of_a_mode_or_a_kind_counts() {
    let mut stream = String::new();
    for (number, mode) in ["100644", "100755", "100755", "120000"].iter().enumerate() {
        let commit = "commit refs/heads/main\ncommitter a <a@b> 1000000000 +0000\n";
        write!(stream, "{commit}data 1\n{number}\nM {mode} inline a/b\ndata 1\nx\n").unwrap();
    }
    let lab = lab(&(stream + "done\n"));
    for path in ["a/b", "a", "./a//b", "a/"] {
        let arguments = ["main", "--", path];
        let ran = printed(&lab, "lib", &arguments);
        assert_eq!(ran.stdout, expected(&lab, "lib", &arguments));
        assert_eq!(ran.lines().len(), 3);
    }
    // A path starts at the top of the repository, wherever in it the repository is named.
    fs::create_dir_all(lab.path("data/lib/a/deep")).unwrap();
    let ran = printed(&lab, "lib/a/deep", &["main", "--", "a/b"]);
    assert_eq!(ran.lines().len(), 3);
    let mut ce = lab.command("ce");
    ce.current_dir(lab.path("data/lib/a")).args(["commits", ".", "main"]);
    assert_eq!(lab.finish(&mut ce).exit(0).lines().len(), 4);
}

#[test]
fn a_line_is_an_object_whose_subject_is_harmless() {
    let commits = [
        ("plain", "-3600 -0130"),
        ("a \"b\"\\\nand more\n\nbody", "1000000000 +0200"),
        ("red \u{1b}[31m\ttab \u{9b}é", "99999999999999 +0000"),
    ];
    let lab = lab(&line(&commits));
    let ran = printed(&lab, "lib", &["main"]);
    let told: Vec<(String, String)> = ran
        .lines()
        .into_iter()
        .map(|line| {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(object.as_object().unwrap().len(), 3);
            assert_eq!(object["commit"].as_str().unwrap().len(), 40);
            let text = |name: &str| object[name].as_str().unwrap().to_owned();
            (text("date"), text("subject"))
        })
        .collect();
    let text = |date: &str, subject: &str| (date.to_owned(), subject.to_owned());
    assert_eq!(
        told,
        [
            text("9999-12-30T22:00:00Z", "red \u{fffd}[31m tab \u{fffd}é"),
            text("2001-09-09T01:46:40Z", "a \"b\"\\ and more"),
            text("1969-12-31T23:00:00Z", "plain"),
        ]
    );
}

#[test]
fn an_empty_list_is_not_an_error() {
    let lab = lab(&line(&[("one", "1000000000 +0000"), ("two", "1000000001 +0000")]));
    for arguments in [&["main..main"][..], &["main..main~1"], &["-n", "0", "main"]] {
        let ran = printed(&lab, "lib", arguments);
        assert_eq!((&*ran.stdout, &*ran.stderr), ("", ""), "{arguments:?}");
    }
    let ran = printed(&lab, "lib", &["main", "--", "src"]);
    assert_eq!(ran.stdout, "");
    assert_eq!(ran.stderr, "ce: no commit of the range changed src\n");
}

#[test]
fn a_wrong_repository_revision_or_path_is_reported() {
    let lab = lab(&line(&[("one", "1000000000 +0000"), ("two", "1000000001 +0000")]));
    let told = |arguments: &[&str]| {
        let mut ce = lab.command("ce");
        let ran = lab.finish(ce.current_dir(lab.path("data")).arg("commits").args(arguments));
        let ran = ran.exit(2);
        assert_eq!(ran.stdout, "");
        ran.stderr
    };
    assert_eq!(
        told(&["."]),
        "ce: . is not in a Git repository\n  try: give the path of a work tree or of a bare repository\n"
    );
    assert!(told(&["nothing"]).starts_with("ce: cannot read the repository nothing\n  because: "));
    let (fetch, ancestors) = ("fetch --tags", "rev-list main lists the existing ancestors");
    for (arguments, rev, hint) in [
        (&["lib", "v1"][..], "v1", fetch),
        (&["lib", "v2..main"], "v2", fetch),
        (&["lib", "main~2"], "main~2", ancestors),
        (&["lib", "main^{tree}"], "main^{tree}", fetch),
    ] {
        let text = told(arguments);
        assert!(
            text.starts_with(&format!("ce: the repository lib has no commit {rev}\n")),
            "{text}"
        );
        assert!(text.ends_with(&format!("  try: git -C lib {hint}\n")), "{text}");
    }
    assert!(told(&["lib", "v1...main"]).contains("write REV1..REV2"));
    for path in ["../lib", "/lib", "a/../b"] {
        assert!(told(&["lib", "main", "--", path]).contains("relative to the top"), "{path}");
    }
    let first = git(&lab.path("data/lib"), &["rev-parse", "main~1"], "");
    let (room, name) = first.trim().split_at(2);
    fs::remove_file(lab.path("data/lib/.git/objects").join(room).join(name)).unwrap();
    assert!(
        told(&["lib", "main"]).starts_with("ce: the repository lib cannot be read\n  because: ")
    );
    fs::remove_dir_all(lab.path("data/lib/.git/objects")).unwrap();
    fs::create_dir(lab.path("data/lib/.git/objects")).unwrap();
    assert!(told(&["lib", "main"]).starts_with("ce: the repository lib has no commit main\n"));
}

#[test]
fn a_head_without_a_commit_is_reported_without_advice_to_fetch() {
    let lab = lab(&line(&[("one", "1000000000 +0000")]));
    let head = |contents: &str| fs::write(lab.path("data/lib/.git/HEAD"), contents).unwrap();
    let missing = "1".repeat(40);
    for (contents, because) in [
        ("ref: refs/heads/trunk\n", "HEAD is refs/heads/trunk, which has no commit"),
        (
            &*missing,
            "An object with id 1111111111111111111111111111111111111111 could not be found",
        ),
        ("nonsense\n", "HEAD cannot be read: "),
    ] {
        head(contents);
        for range in [&[][..], &["HEAD~1"], &["main.."]] {
            let mut ce = lab.command("ce");
            ce.current_dir(lab.path("data")).args(["commits", "lib"]).args(range);
            let ran = lab.finish(&mut ce).exit(2).says("the repository lib has no commit HEAD");
            let ran = ran.says(&format!("  because: {because}"));
            assert!(
                ran.stderr.ends_with("  try: name a branch, tag or commit in place of HEAD\n"),
                "{}",
                ran.stderr
            );
        }
        printed(&lab, "lib", &["main"]);
    }
    head("ref: refs/heads/main\n");
    let ran = lab.run("ce", &["commits", "../data/lib", "HEAD~1"]).exit(2);
    ran.says(
        "HEAD is there, and has no such ancestor\n  try: git -C ../data/lib rev-list HEAD lists",
    );
}

#[test]
fn somebody_elses_repository_is_not_read_unless_it_is_trusted() {
    let lab = lab(&line(&[("one", "1000000000 +0000")]));
    let Some(user) = lab.another_user() else { return };
    let mut chmod = Command::new("chmod");
    assert!(chmod.args(["-R", "a+rX"]).arg(lab.path("")).status().unwrap().success());
    let mut ce = lab.command("ce");
    ce.args(["commits", "../data/lib", "main"]).uid(user);
    assert_eq!(lab.finish(&mut ce).exit(0).lines().len(), 1);
    lab.finish(ce.env("HOME", "/nowhere"))
        .exit(2)
        .says("the repository at LAB/data/lib belongs to another user")
        .says("try: if you trust it: git config --global --add safe.directory LAB/data/lib");
}

#[test]
fn a_signal_ends_the_output_after_a_whole_line() {
    // More than a pipe and the buffer before it hold.
    let lab = lab(&line(&[("one of many", "1000000000 +0000")].repeat(2000)));
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (mut reader, writer) = pipe().unwrap();
        let mut ce = lab.command("ce");
        let running = Running::start(ce.args(["commits", "../data/lib", "main"]).stdout(writer));
        drop(ce);
        running.wait_until_it_catches(signal);
        running.signal(signal);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        Ran::new(&lab, running.output()).exit(code).says("interrupted: commits are left out");
        assert!(text.lines().count() < 2000);
        assert!(text.is_empty() || text.ends_with("\"}\n"), "{text}");
    }
}

#[test]
fn standard_input_names_commits_in_its_own_order() {
    let lab = lab(&history(&mut Random::new(7), 40));
    let named = |options: &[&str], input: String| {
        let mut ce = lab.command("ce");
        ce.current_dir(lab.path("data")).args(["commits", "lib", "--stdin"]).args(options);
        lab.finish(ce.stdin(given(&lab, &input)))
    };
    let listed = git(&lab.path("data/lib"), &["rev-list", "--topo-order", "b40"], "");
    let log = expected(&lab, "lib", &["--topo-order", "b40"]);
    assert_eq!(named(&[], listed.clone()).exit(0).stdout, log);
    let last: Vec<&str> = log.lines().take(3).collect();
    let ran = named(&["-n3", "--reverse"], listed).exit(0);
    assert_eq!(ran.stdout.lines().rev().collect::<Vec<_>>(), last);
    let ran = named(&[], " b2\n\nb40~1  \nb2\n".to_owned()).exit(0);
    let [b2, parent] = ["b2", "b40~1"].map(|rev| expected(&lab, "lib", &["-1", rev]));
    assert_eq!(ran.stdout, format!("{b2}{parent}{b2}"));
    assert_eq!(named(&[], String::new()).exit(0).stdout, "");
}

#[test]
fn invalid_revisions_on_standard_input_are_named_with_their_lines() {
    let lab = lab(&line(&[("one", "1000000000 +0000")]));
    let named = |input: &str| {
        let mut ce = lab.command("ce");
        ce.current_dir(lab.path("data")).args(["commits", "lib", "--stdin"]);
        lab.finish(ce.stdin(given(&lab, input))).exit(2)
    };
    named("main\n\nmain and more\n")
        .says("line 3 of the standard input is not a revision: \"main and more\"");
    named("main~1..main\n")
        .says("line 1 of the standard input is not a revision: \"main~1..main\"");
    named("main\nnext\n")
        .says("ce: line 2 of the standard input names no commit\n")
        .says("the repository lib has no commit next");
    named("main~100\n").says("line 1 of the standard").says("git -C lib rev-list main lists");
    let mut ce = lab.command("ce");
    ce.current_dir(lab.path("data")).args(["commits", "lib", "--stdin", "main"]);
    lab.finish(&mut ce).exit(2).says("cannot be used with");
}

/// A file with the input of a command.
fn given(lab: &Lab, input: &str) -> File {
    let path = lab.path("data/given");
    fs::write(&path, input).unwrap();
    File::open(path).unwrap()
}
