//! Every console block of the documentation is executed, and prints the shown output.
//!
//! The blocks of a document are typed one after the other into one shell, in a copy of the examples that is a repository of
//! its own. A block `console` has prompts, and what is printed; a block `bash` is there to be copied, and a block `text`
//! that follows it has what it prints. `cargo run --` stands for the program; what else begins with `cargo` is what
//! `.ci/run` executes. In the output, `...` stands for any lines, or in a line for any text, `[exit 3]` for a status other
//! than zero, and one commit for another.
//!
//! A command that needs a program that is not there is left out. What is different after it may be so because of that, and counts as
//! left out, too.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rayon::prelude::*;

use crate::examples::programs_of;
use crate::lab::{copy, place};
use crate::needs::{self, Lack};
use crate::program::NO_HOST;

/// A command of a console block, and its output.
struct Step {
    command: String,
    expected: Vec<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns all documents, relative to the root.
fn documents() -> Vec<PathBuf> {
    let names = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
    let mut documents = Vec::from(names.map(PathBuf::from));
    for dir in ["doc", "computations-example", "tasks-example"] {
        for entry in walkdir::WalkDir::new(root().join(dir)).sort_by_file_name() {
            let path = entry.unwrap().into_path();
            if path.extension().is_some_and(|extension| extension == "md") {
                documents.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    documents
}

/// Returns the steps of a document's blocks.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = text.lines();
    let mut last = "";
    while let Some(fence) = lines.by_ref().find(|line| line.starts_with("```")) {
        let block: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        match fence {
            "```console" => steps.extend(console(&block)),
            "```bash" => {
                steps.push(Step { command: block.join("\n"), expected: vec!["...".to_owned()] });
            }
            "```text" if last == "```bash" => {
                let step = steps.last_mut().unwrap();
                step.expected = block.into_iter().map(str::to_owned).collect();
            }
            _ => {}
        }
        last = fence;
    }
    steps
}

/// The steps of a block with prompts.
fn console(block: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in block {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), expected: Vec::new() });
            continue;
        }
        let step = steps.last_mut().unwrap();
        match line.strip_prefix("> ").or((*line == ">").then_some("")) {
            Some(more) if step.expected.is_empty() => step.command.extend(["\n", more]),
            _ => step.expected.push((*line).to_owned()),
        }
    }
    steps
}

/// Types the commands into one shell; returns what each of them printed.
fn type_in(dir: &Path, bin: &Path, commands: &[String]) -> Vec<Vec<String>> {
    let mut script = "exec 2>&1\n".to_owned();
    for command in commands {
        script.extend([command, "\nstatus=$?; printf '\\001%s\\001' $status\n"]);
    }
    fs::write(dir.join("../script"), script).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let shell = Command::new("bash")
        .arg("../script")
        .current_dir(dir)
        .env_clear()
        .envs([("PATH", path.as_str()), ("LC_ALL", "C"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .env("HOME", dir.parent().unwrap())
        .envs([NO_HOST])
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "reader")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "reader@example.org")))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(shell.stdout).unwrap();
    let mut pieces = text.split('\u{1}');
    let mut printed = Vec::new();
    while let (Some(text), Some(status)) = (pieces.next(), pieces.next()) {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if status != "0" {
            lines.push(format!("[exit {status}]"));
        }
        printed.push(lines);
    }
    assert_eq!(printed.len(), commands.len(), "the shell came to the end: {text}");
    printed
}

/// Replaces twelve digits that are a commit by a word: commits differ, contents do not.
fn without_commits(line: &str) -> String {
    let mut parts: Vec<&str> = line.split('/').collect();
    for at in 1..parts.len() {
        let owner = parts[at - 1].rsplit(['"', ' ']).next().unwrap_or_default();
        if (owner.starts_with("c_") || owner.starts_with("t_")) && is_short_id(parts[at]) {
            parts[at] = "COMMIT";
        }
    }
    let line = parts.join("/");
    match line.split_once(" at ").map(|(name, rest)| (name, rest.split_once(": "))) {
        Some((name, Some((id, rest)))) if is_short_id(id) => format!("{name} at COMMIT: {rest}"),
        _ => line,
    }
}

fn is_short_id(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|c| c.is_ascii_hexdigit())
}

/// Whether the lines are the expected ones, where `...` stands for any lines.
fn agree(expected: &[String], printed: &[String]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((dots, rest)) if dots == "..." => {
            (0..=printed.len()).any(|skipped| agree(rest, &printed[skipped..]))
        }
        Some((line, rest)) => printed.split_first().is_some_and(|(other, others)| {
            fits(&without_commits(line), &without_commits(other)) && agree(rest, others)
        }),
    }
}

/// Whether a line is the expected one, in which `...` stands for any text.
fn fits(expected: &str, printed: &str) -> bool {
    match expected.split_once("...") {
        None => expected == printed,
        Some((begin, rest)) => printed.strip_prefix(begin).is_some_and(|printed| {
            let ends = printed.char_indices().map(|(at, _)| at).chain([printed.len()]);
            ends.into_iter().any(|at| fits(rest, &printed[at..]))
        }),
    }
}

/// Makes a repository of the files that the documents use, and a directory with the programs.
fn prepare(dir: &Path) {
    let (repository, bin) = (dir.join("compeval"), dir.join("bin"));
    fs::create_dir(&repository).unwrap();
    fs::create_dir(&bin).unwrap();
    let programs = [
        env!("CARGO_BIN_EXE_ce"),
        env!("CARGO_BIN_EXE_ce-run"),
        env!("CARGO_BIN_EXE_ce-sym"),
        env!("CARGO_BIN_EXE_ce-viz"),
    ];
    for program in programs {
        let name = Path::new(program).file_name().unwrap();
        std::os::unix::fs::symlink(program, bin.join(name)).unwrap();
    }
    for name in ["computations-example", "tasks-example"] {
        copy(&root().join(name), &repository.join(name));
    }
    git(&repository, &["init", "-q"]);
    git(&repository, &["add", "-A"]);
    git(&repository, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "copy"]);
    git(&repository, &["repack", "-adq"]);
}

fn git(dir: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(dir).env_clear().env("HOME", dir.parent().unwrap());
    let status = git.env("PATH", std::env::var("PATH").unwrap()).status();
    assert!(status.unwrap().success(), "git {arguments:?}");
}

/// The outcome of the commands of a document.
#[derive(Default)]
struct Outcome {
    /// The differences.
    wrong: Vec<String>,
    /// The missing requirements that made steps be left out.
    lacks: BTreeSet<Lack>,
    left_out: Option<String>,
}

/// Removes the steps that need something that is missing, and all that follow one of them that changes the directory. Returns the
/// missing requirements, and the number of steps before the first that was removed.
fn leave_out(
    steps: &mut Vec<Step>,
    lacks: impl Fn(&str) -> BTreeSet<Lack>,
) -> (BTreeSet<Lack>, Option<usize>) {
    let (mut all, mut first, mut is_lost) = (BTreeSet::new(), None, false);
    let mut at = 0;
    steps.retain(|step| {
        let lacks = lacks(&step.command);
        let is_out = is_lost || !lacks.is_empty();
        if is_out {
            first.get_or_insert(at);
            is_lost |= step.command.split_whitespace().any(|word| word == "cd");
        } else {
            at += 1;
        }
        all.extend(lacks);
        !is_out
    });
    (all, first)
}

/// Executes the blocks of a document, in a copy of the prepared files.
fn execute(document: &Path, prepared: &Path, ci: &str) -> Outcome {
    let mut wrong = Vec::new();
    let mut steps = steps(&fs::read_to_string(root().join(document)).unwrap());
    steps.retain_mut(|step| {
        if step.command.starts_with("cargo ") && !ci.contains(&step.command) {
            wrong.push(format!("{document:?}: .ci/run does not have {:?}", step.command));
        }
        step.command = step.command.replace("cargo run --", "ce");
        !step.command.starts_with("cargo ")
    });
    let all = steps.len();
    let (lacks, first) = leave_out(&mut steps, |command| needs::lacking(&programs_of(command)));
    let mut count = all - steps.len();
    let commands: Vec<String> = steps.iter().map(|step| step.command.clone()).collect();
    let mut printed = Vec::new();
    if !commands.is_empty() {
        let dir = tempfile::tempdir_in(place()).unwrap();
        let place = dir.path().join("place");
        copy(prepared, &place);
        let repository = place.join("compeval");
        // These files are other ones than the index knows.
        git(&repository, &["update-index", "-q", "--refresh"]);
        printed = type_in(&repository, &place.join("bin"), &commands);
    }
    for (at, (step, printed)) in steps.iter().zip(printed).enumerate() {
        if agree(&step.expected, &printed) {
            continue;
        }
        if first.is_some_and(|first| at >= first) {
            count += 1;
        } else {
            let (command, expected) = (&step.command, step.expected.join("\n"));
            let printed = printed.join("\n");
            wrong
                .push(format!("{document:?}\n$ {command}\n{expected}\n-- printed --\n{printed}\n"));
        }
    }
    let part = || format!("{count} of {all} commands of {}", document.display());
    Outcome { wrong, lacks, left_out: (count > 0).then(part) }
}

/// Executes the blocks of the documents that need a program that not every machine has, or all others.
fn execute_all(need_programs: bool) {
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    let is_chosen = |document: &PathBuf| {
        let steps = steps(&fs::read_to_string(root().join(document)).unwrap());
        steps.iter().any(|step| !programs_of(&step.command).is_empty()) == need_programs
    };
    let documents: Vec<PathBuf> = documents().into_iter().filter(is_chosen).collect();
    let prepared = tempfile::tempdir_in(place()).unwrap();
    prepare(prepared.path());
    let outcome = |document: &PathBuf| execute(document, prepared.path(), &ci);
    let outcomes: Vec<Outcome> = documents.par_iter().map(outcome).collect();
    let mut wrong = Vec::new();
    for outcome in outcomes {
        wrong.extend(outcome.wrong);
        if let Some(part) = outcome.left_out {
            needs::lacks_for(part, outcome.lacks);
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_console_block_prints_the_shown_output() {
    execute_all(false);
}

#[test]
fn every_console_block_that_needs_programs_prints_the_shown_output() {
    execute_all(true);
}

#[test]
fn steps_after_a_left_out_one_keep_their_directory() {
    let step = |command: &str| Step { command: command.to_owned(), expected: Vec::new() };
    let left = |commands: &[&str]| {
        let mut steps = commands.iter().map(|command| step(command)).collect();
        let lacks = |command: &str| {
            command.contains("gnuplot").then(|| Lack::from_name("gnuplot")).into_iter().collect()
        };
        let (lacks, first) = leave_out(&mut steps, lacks);
        let left: Vec<String> = steps.into_iter().map(|step| step.command).collect();
        (left.join("; "), lacks.len(), first)
    };
    let expected = |left: &str, lacks, first| (left.to_owned(), lacks, first);
    assert_eq!(left(&["a", "cd b"]), expected("a; cd b", 0, None));
    assert_eq!(left(&["a", "gnuplot", "b", "gnuplot", "c"]), expected("a; b; c", 1, Some(1)));
    assert_eq!(left(&["a", "cd b && gnuplot", "c"]), expected("a", 1, Some(1)));
}

/// Returns the anchors of a document's headings, as hosts of repositories and the built pages name them.
fn anchors(text: &str) -> Vec<String> {
    let mut in_block = false;
    let headings = text.lines().filter(|line| {
        in_block ^= line.starts_with("```");
        !in_block && line.starts_with('#')
    });
    let anchor = |heading: &str| {
        let title = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        title.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_of_the_documentation_leads_somewhere() {
    let mut wrong = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(root().join(&document)).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => root().join(&document),
                _ => root().join(document.parent().unwrap()).join(file),
            };
            let there = match anchor {
                "" => path.exists(),
                _ => fs::read_to_string(path)
                    .is_ok_and(|text| anchors(&text).contains(&anchor.to_owned())),
            };
            if !target.contains("://") && !there {
                wrong.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// The messages of the page on troubleshooting: in bold and in backticks, at the beginning of a line or after a comma.
#[test]
fn explained_messages_occur_in_the_sources() {
    let page = fs::read_to_string(root().join("doc/troubleshooting.md")).unwrap();
    let places = ["src", "crates"].map(|place| walkdir::WalkDir::new(root().join(place)));
    let sources: String = places
        .into_iter()
        .flatten()
        .map(Result::unwrap)
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "rs"))
        .map(|entry| fs::read_to_string(entry.path()).unwrap())
        .collect();
    let messages: Vec<&str> =
        page.split("**`").skip(1).filter_map(|rest| rest.split('`').next()).collect();
    assert!(messages.len() > 20, "{messages:?}");
    for message in messages {
        for part in message.split("...").map(str::trim) {
            assert!(sources.contains(part), "no source says {part:?}");
        }
    }
}

/// Their numbers are counted from one, and each is in the table of tests.
#[test]
fn every_promise_has_a_number_of_its_own_and_tests() {
    let page = fs::read_to_string(root().join("doc/guarantees.md")).unwrap();
    let (promises, rest) = page.split_once("## Assumptions").unwrap();
    let numbers = promises.lines().filter_map(|line| line.split_once(". **")?.0.parse().ok());
    let numbers: Vec<usize> = numbers.collect();
    assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>());
    let rows = rest.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
    let tested: Vec<usize> =
        rows.flat_map(|row| row.split(',')).filter_map(|it| it.trim().parse().ok()).collect();
    let untested = numbers.iter().filter(|number| !tested.contains(number));
    assert_eq!(untested.collect::<Vec<_>>(), [&0; 0]);
}
