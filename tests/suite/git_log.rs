//! Commits and trees are reported as Git reports them: its own answers are the oracle.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use compeval::digest::ObjectId;
use compeval::git::{Code, LineCounts, Trees};

use crate::generator::Random;

pub(crate) fn git(dir: &Path, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(arguments).env_clear();
    command.env("PATH", std::env::var("PATH").unwrap()).env("HOME", dir);
    let mut git = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    git.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = git.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn id(text: &str) -> ObjectId {
    text.trim().parse().unwrap()
}

/// A history whose commits have up to two parents, as `git fast-import` reads it.
pub(crate) fn history(random: &mut Random, commits: u32) -> String {
    let mut text = String::new();
    for number in 1..=commits {
        let message = format!("commit {number}\n\nmore of it");
        let time = 1_000_000_000 + number * 60;
        write!(text, "commit refs/heads/b{number}\nmark :{number}\n").unwrap();
        writeln!(text, "committer a <a@b> {time} +0000").unwrap();
        write!(text, "data {}\n{message}\n", message.len()).unwrap();
        let near =
            |random: &mut Random| number - 1 - random.below(4.min(number as usize - 1)) as u32;
        if number > 1 {
            let first = near(random);
            writeln!(text, "from :{first}").unwrap();
            let second = near(random);
            if second != first && random.below(3) == 0 {
                writeln!(text, "merge :{second}").unwrap();
            }
        }
        // Half of them touch the directory; some of those restore an earlier state.
        let (place, lines) = match random.below(4) {
            0 => ("lib/one/exec", random.below(3)),
            1 => ("lib/one/deep/more", random.below(2)),
            _ => ("other", number as usize),
        };
        let contents = "line\n".repeat(lines);
        write!(text, "M 644 inline {place}\ndata {}\n{contents}\n", contents.len()).unwrap();
    }
    text + "done\n"
}

#[test]
fn changed_commits_agree_with_git() {
    for seed in 0..8 {
        let (dir, mut random) = (tempfile::tempdir().unwrap(), Random::new(seed));
        git(dir.path(), &["init", "-q"], "");
        git(dir.path(), &["fast-import", "--quiet", "--done"], &history(&mut random, 40));
        let names: Vec<String> = (1..=40).map(|number| format!("b{number}")).collect();
        let arguments: Vec<&str> =
            ["rev-parse"].into_iter().chain(names.iter().map(String::as_str)).collect();
        let commits: Vec<ObjectId> = git(dir.path(), &arguments, "").lines().map(id).collect();
        let trees = Trees::new(dir.path());
        for path in ["lib/one", "", "lib/one/exec", "nothing"] {
            for _ in 0..8 {
                let [old, new] = [(); 2].map(|()| &commits[random.below(40)]);
                let range = format!("{}..{}", old.full(), new.full());
                let place = if path.is_empty() { "." } else { path };
                let arguments = ["log", "--format=%H %s", &range, "--", place];
                let expected = git(dir.path(), &arguments, "");
                let log = trees.log(Path::new(path), [old, new], 5).unwrap().unwrap();
                let lines = log.commits.iter().map(|it| format!("{} {}", it.id.full(), it.title));
                let lines: Vec<String> = lines.collect();
                let all: Vec<&str> = expected.lines().collect();
                assert_eq!(lines, all[..all.len().min(5)], "{seed} {path} {range}");
                assert_eq!(log.commits.len() + log.more, all.len());
            }
        }
    }
}

#[test]
fn a_commit_that_is_not_there_has_no_log() {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q"], "");
    git(dir.path(), &["fast-import", "--quiet", "--done"], &history(&mut Random::new(1), 2));
    let there = id(&git(dir.path(), &["rev-parse", "b2"], ""));
    let gone = id(&"ab".repeat(20));
    let trees = Trees::new(dir.path());
    assert_eq!(trees.log(Path::new(""), [&gone, &there], 5).unwrap(), None);
    assert_eq!(trees.log(Path::new(""), [&there, &gone], 5).unwrap(), None);
    let codes = [&there, &gone].map(|tree| Code { commit: &there, tree });
    assert_eq!(trees.diff(codes).unwrap(), None);
}

#[test]
fn changed_files_agree_with_git() {
    let (dir, mut random) = (tempfile::tempdir().unwrap(), Random::new(7));
    git(dir.path(), &["init", "-q"], "");
    let mut tree = || {
        let mut text = String::new();
        for name in ["a", "b", "c/d", "c/e", "f"] {
            if random.below(4) > 0 {
                let mut contents: String =
                    (0..random.below(12)).map(|_| format!("{}\n", random.below(4))).collect();
                if name == "f" {
                    contents.push('\0');
                }
                let mode = if random.below(2) == 0 { "100644" } else { "100755" };
                let blob = git(dir.path(), &["hash-object", "-w", "--stdin"], &contents);
                writeln!(text, "{mode} {}\t{name}", blob.trim()).unwrap();
            }
        }
        git(dir.path(), &["read-tree", "--empty"], "");
        git(dir.path(), &["update-index", "--index-info"], &text);
        id(&git(dir.path(), &["write-tree"], ""))
    };
    let made: Vec<ObjectId> = (0..12).map(|_| tree()).collect();
    let trees = Trees::new(dir.path());
    for pair in made.windows(2) {
        let options = ["diff", "--numstat", "--no-renames", "--minimal"];
        let arguments = [&options[..], &[pair[0].full(), pair[1].full()]].concat();
        let expected = git(dir.path(), &arguments, "");
        let codes = [&pair[0], &pair[1]].map(|tree| Code { commit: tree, tree });
        let changes = trees.diff(codes).unwrap().unwrap();
        let line = |it: &compeval::git::FileChange| match it.lines {
            Some(LineCounts { inserted, deleted }) => {
                format!("{inserted}\t{deleted}\t{}\n", it.path.display())
            }
            None => format!("-\t-\t{}\n", it.path.display()),
        };
        assert_eq!(changes.iter().map(line).collect::<String>(), expected);
    }
}
