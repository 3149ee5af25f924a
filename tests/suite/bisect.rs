//! `ce bisect`: the first commit that changed an output, and `git bisect run` as its oracle.

use std::fmt::Write;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use rustix::process::Signal;

use crate::fifo::{Fifo, Never};
use crate::generator::Random;
use crate::lab::{Lab, Library, snapshot};
use crate::program::{Ran, Running};
use crate::repository::{self, LAB};

const TASK: &str = "Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]";
const FILES: [&str; 3] = ["../storage", "../data/x", "../data/y"];

/// The places of `mul`: the kind of library, the repository, and the directory in that.
const PLACES: [(Library, &str, &str); 3] = [
    (Library::Plain, "task", "computations/mul/"),
    (Library::Submodule, "task/computations", "mul/"),
    (Library::Submodules, "task/computations/mul", ""),
];

/// The state of `mul` at a commit of a made-up history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Good,
    Bad,
    /// The call fails.
    Fails,
    /// The task has no such computation.
    Broken,
}

/// A made-up history: the parents of each commit, and what each has.
type History = Vec<(Vec<usize>, Kind)>;

/// Gives a repository this history, on branches `c0`, `c1`, ...; the work tree stays as it is.
fn import(lab: &Lab, dir: &str, mul: &str, history: &History) {
    lab.git(dir, &["branch", "-M", "main"]);
    let mut text = String::new();
    for (number, (parents, kind)) in history.iter().enumerate() {
        let sum = match kind {
            Kind::Good => "echo 1 >\"$3\"",
            Kind::Bad => "echo 2 >\"$3\"",
            Kind::Fails | Kind::Broken => "exit 3",
        };
        // Clocks go wrong.
        let time = 1_000_000_000 + number * 7919 % 1000;
        let script = format!(
            "#!/bin/sh\n# {number}: {kind:?}\n[ -z \"${{LAB_LOG-}}\" ] || echo mul >>\"$LAB_LOG\"\n{sum}\n"
        );
        writeln!(text, "commit refs/heads/c{number}\nmark :{}", number + 1).unwrap();
        writeln!(text, "committer Lab <lab@lab> {time} +0000\ndata <<END\nnumber {number}\nEND")
            .unwrap();
        if parents.is_empty() {
            text += "from refs/heads/main^0\n";
        }
        for (at, parent) in parents.iter().enumerate() {
            writeln!(text, "{} :{}", if at == 0 { "from" } else { "merge" }, parent + 1).unwrap();
        }
        if *kind == Kind::Broken {
            writeln!(text, "D {mul}inputs").unwrap();
        } else {
            writeln!(text, "M 100644 inline {mul}inputs\ndata <<END\na\nb\nEND").unwrap();
        }
        writeln!(text, "M 100755 inline {mul}exec\ndata <<END\n{script}END").unwrap();
    }
    fs::write(lab.path("stream"), text).unwrap();
    let mut git = Command::new("git");
    git.args(["fast-import", "--quiet"]).current_dir(lab.path(dir));
    let done = git.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    assert!(done.stdin(File::open(lab.path("stream")).unwrap()).status().unwrap().success());
}

fn lab_with(history: &History) -> Lab {
    let lab = Lab::task(TASK).commit().with_storage();
    import(&lab, "task", "computations/mul/", history);
    lab
}

/// A history without end points that are known: the last commit is bad, the first is good, and
/// what reaches the culprit is bad. Returns the culprit, too.
fn made_up(random: &mut Random, skipped: bool) -> (History, usize) {
    let count = 4 + random.below(16);
    let mut history: History = vec![(Vec::new(), Kind::Good)];
    for number in 1..count {
        let near = |random: &mut Random| number - 1 - random.below(number.min(4));
        let mut parents = vec![near(random)];
        let other = near(random);
        if random.below(3) == 0 && !parents.contains(&other) {
            parents.push(other);
        }
        history.push((parents, Kind::Good));
    }
    let above = ancestors(&history, count - 1);
    let culprits: Vec<usize> = (1..count).filter(|at| above[*at]).collect();
    let culprit = culprits[random.below(culprits.len())];
    for number in 1..count {
        let kind = match random.below(4) {
            0 if skipped && ![culprit, count - 1].contains(&number) => {
                [Kind::Fails, Kind::Broken][random.below(2)]
            }
            _ if ancestors(&history, number)[culprit] => Kind::Bad,
            _ => Kind::Good,
        };
        history[number].1 = kind;
    }
    (history, culprit)
}

fn ancestors(history: &History, of: usize) -> Vec<bool> {
    let mut reached = vec![false; history.len()];
    reached[of] = true;
    for number in (0..=of).rev().filter(|at| *at <= of) {
        if reached[number] {
            history[number].0.iter().for_each(|parent| reached[*parent] = true);
        }
    }
    reached
}

fn bisect<'a>(lab: &'a Lab, good: &str, bad: &str, more: &[&str]) -> Ran<'a> {
    let arguments = [&["bisect", "--good", good, "--bad", bad, "--no-sync"], &FILES[..], more];
    lab.run("ce", &arguments.concat())
}

/// The numbers of the commits that `ce bisect` tells.
fn told(ran: &Ran<'_>) -> Vec<usize> {
    let number = |line: &&str| line.split_once(" number ").unwrap().1.parse().unwrap();
    ran.lines().iter().map(number).collect()
}

/// Returns the findings of `git bisect run` in a clone, where the last line of `mul` is the state of a commit.
fn oracle(lab: &Lab, dir: &str, mul: &str, last: usize) -> Vec<usize> {
    lab.git("", &["clone", "--quiet", dir, "oracle"]);
    let [bad, good] = [last, 0].map(|number| lab.git(dir, &["rev-parse", &format!("c{number}")]));
    lab.git("oracle", &["bisect", "start", &bad, &good]);
    let test = format!("case $(sed -n 2p {mul}exec) in *Good) ;; *Bad) exit 1;; *) exit 125; esac");
    let mut git = Command::new("git");
    git.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    git.env("HOME", lab.path("home")).current_dir(lab.path("oracle"));
    let Output { stdout, .. } = git.args(["bisect", "run", "sh", "-c", &test]).output().unwrap();
    let text = String::from_utf8(stdout).unwrap();
    let mut lines = text.lines().skip_while(|line| !line.contains("first bad commit"));
    let first = lines.next().unwrap();
    let ids: Vec<&str> = match first.strip_suffix(" is the first bad commit") {
        Some(id) => vec![id],
        None => lines.take_while(|line| line.len() == 40).collect(),
    };
    let subject = |id| lab.git(dir, &["log", "-1", "--format=%s", id]);
    let number = |id| subject(id).trim_start_matches("number ").parse().unwrap();
    let mut numbers: Vec<usize> = ids.into_iter().map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// The repository of the task, without its list of storages.
fn files_of_task(lab: &Lab) -> Vec<String> {
    let text = snapshot(&lab.path("task"));
    let is_memory = |line: &str| line.ends_with(" .git") || line.contains(" .git/compeval");
    text.lines().filter(|line| !is_memory(line)).map(str::to_owned).collect()
}

#[test]
fn bisection_agrees_with_git_bisect_in_histories_with_merges() {
    for seed in 0..12 {
        let (history, culprit) = made_up(&mut Random::new(seed), false);
        let last = history.len() - 1;
        let (library, dir, mul) = PLACES[seed as usize % 3];
        let lab = Lab::task(TASK).commit_with(library).with_storage();
        import(&lab, dir, mul, &history);
        let before = files_of_task(&lab);
        // The task itself has seen none of a submodule's commits.
        let within = if dir == "task" { &[][..] } else { &["--in", "computations/mul"] };
        let ran = bisect(&lab, "c0", &format!("c{last}"), within).exit(0);
        assert_eq!(told(&ran), [culprit], "{seed}: {history:?}\n{}", ran.stderr);
        assert_eq!(files_of_task(&lab), before, "nothing is checked out");
        assert!(lab.is_tidy());
        assert!(lab.storage().iter().all(|name| !name.starts_with("t_")), "no job is kept");
        assert_eq!(oracle(&lab, dir, mul, last), [culprit], "{seed}: git");
    }
}

#[test]
fn commits_that_cannot_be_evaluated_are_skipped_as_by_git() {
    let mut open = 0;
    for seed in 0..12 {
        let (history, culprit) = made_up(&mut Random::new(seed), true);
        let last = history.len() - 1;
        let lab = lab_with(&history);
        let ran = bisect(&lab, "c0", &format!("c{last}"), &[]);
        let numbers = told(&ran);
        let git = oracle(&lab, "task", "computations/mul/", last);
        // The commits that are looked at on the way decide which of the skipped ones are seen to be good.
        let is_skipped = |number: &usize| ![Kind::Good, Kind::Bad].contains(&history[*number].1);
        for numbers in [&numbers, &git] {
            let (skipped, judged): (Vec<_>, Vec<_>) = numbers.iter().copied().partition(is_skipped);
            assert_eq!(judged, [culprit], "{seed}: {history:?}\n{}", ran.stderr);
            assert!(skipped.iter().all(|at| ancestors(&history, culprit)[*at]), "{seed}");
        }
        let ran = ran.exit(i32::from(numbers.len() > 1));
        if numbers.len() > 1 {
            ran.says("ce: the first bad commit is one of these: all but the last were skipped\n");
            open += 1;
        }
    }
    assert!((1..12).contains(&open), "both ends are seen: {open}");
}

/// A line of commits of these kinds.
fn line(kinds: &[Kind]) -> History {
    let parents = |at: usize| at.checked_sub(1).into_iter().collect();
    kinds.iter().enumerate().map(|(at, kind)| (parents(at), *kind)).collect()
}

#[test]
fn a_test_judges_by_its_exit_code_and_gets_the_files() {
    let lab = lab_with(&line(&[Kind::Good, Kind::Good, Kind::Good, Kind::Bad, Kind::Bad]));
    let test = |script: &'static str| bisect(&lab, "c0", "c4", &["--", "sh", "-c", script, "test"]);
    let ran = test("echo $#; cat \"$1\"; grep -q 1 \"$1\"").exit(0).says("1\n2\n");
    assert_eq!(told(&ran), [3]);
    assert_eq!(told(&test("grep -q 1 \"$1\" || exit 127").exit(0)), [3]);
    assert_eq!(told(&test("grep -q 1 \"$1\" && exit 0; exit 126").exit(0)), [3]);
    test("exit 125").exit(1).says("ce: c0 cannot be judged: the test cannot tell\n");
    test("exit 128").exit(1).says("gave up at").says("it ended with exit status 128\n");
    test("kill -9 $$").exit(1).says("it was killed by signal 9\n");
    test("exit 1").exit(2).says("ce: c0 is bad, and should be good\n");
    test("exit 0").exit(2).says("ce: c4 is good, and should be bad\n");
    let ran = bisect(&lab, "c0", "c4", &["--", "./nothing"]).exit(2);
    ran.says("ce: the test ./nothing cannot be run\n  because: ./nothing cannot be started\n");
    let skips = r#"n=$(cat ../tests 2>/dev/null || echo 0); echo $((n + 1)) >../tests
        [ $n -lt 2 ] || exit 125; grep -q 1 "$1""#;
    assert_eq!(told(&test(skips).exit(1)), [1, 2, 3, 4]);
}

#[test]
fn stored_results_are_used_and_equal_trees_skip_steps() {
    let lab = lab_with(&line(&[Kind::Good, Kind::Good, Kind::Bad, Kind::Bad]));
    let bisect = |bad| bisect(&lab, "c0", bad, &["--no-isolate"]).exit(0);
    bisect("c3").called(vec!["mul"; 4]);
    bisect("c3").called(vec![]);
    lab.git("task", &["checkout", "-q", "-b", "more", "c0"]);
    for _ in 0..8 {
        lab.git("task", &["commit", "-q", "--allow-empty", "-m", "number 0"]);
    }
    lab.git("task", &["merge", "-q", "-X", "theirs", "-m", "number 9", "c3"]);
    assert_eq!(told(&bisect("more").called(vec!["mul"])), [2]);
}

#[test]
fn bisection_can_compare_one_output() {
    let task = "Inputs: 'x', 'y'\n(divmod INPUT('x') INPUT('y'))[0, 1]";
    let script = |a, b| format!("echo {a} >\"$3\"; echo {b} >\"$4\"");
    let mut lab = Lab::task(task).commit().with_storage();
    for (a, b) in [(1, 1), (1, 2), (2, 2)] {
        lab = lab.computation("divmod", "a b", "q r", &script(a, b)).commit_again();
    }
    let first = |more| bisect(&lab, "HEAD~2", "HEAD", more).exit(0).stdout;
    let id = |rev| lab.git("task", &["rev-parse", rev]) + " task\n";
    assert_eq!(first(&["--output", "0"]), id("HEAD"));
    assert_eq!(first(&["--output", "01"]), id("HEAD~1"));
    assert_eq!(first(&["--output", "q"]), id("HEAD"));
    assert_eq!(first(&["--output", "r"]), id("HEAD~1"));
    assert_eq!(first(&[]), id("HEAD~1"));
    let test = ["--output", "1", "--", "sh", "-c", "[ $# = 1 ] && grep -q 1 $1", "test"];
    assert_eq!(first(&test), id("HEAD~1"));
    // An output that the task lacks is reported before anything is executed.
    let lab = lab.computation("divmod", "a b", "q r", &script(3, 3)).commit_again();
    let refused = |output, why: &str| {
        let ran = bisect(&lab, "HEAD~2", "HEAD", &["--output", output]).exit(2).called(vec![]);
        ran.says(&format!("ce: --output, of the task at HEAD: {why}"));
    };
    lab.called();
    refused("2", "there is no output 02: 00 is q, 01 is r\n  try: give one of these");
    refused("p", "\"p\" is not an output: there are q, r");
    refused("100", "there is no output 100: 00 is q, 01 is r");
    // An output that only an earlier commit lacks makes that commit unknown.
    let lab = lab.computation("divmod", "a b", "q rest", &script(3, 3));
    let lab = lab.file("workflow/outputs", "q\nrest\n").commit_again();
    let ran = bisect(&lab, "HEAD~2", "HEAD", &["--output", "rest"]).exit(1);
    ran.says("ce: HEAD~2 cannot be judged: \"rest\" is not an output: there are q, r\n");
    let ran = bisect(&lab, "HEAD~2", "HEAD", &["--output", "res"]).exit(2);
    ran.says("  try: did you mean rest?\n");
}

#[test]
fn commits_are_printed_as_json_without_steps() {
    let lab = lab_with(&line(&[Kind::Good, Kind::Good, Kind::Bad]));
    let ran = bisect(&lab, "c0", "c2", &["--json", "-q"]).exit(0);
    let commit = lab.git("task", &["rev-parse", "c2"]);
    let expected =
        format!("{{\"commit\":\"{commit}\",\"subject\":\"number 2\",\"certain\":true}}\n");
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), (expected.as_str(), ""));
}

#[test]
fn the_merge_base_of_good_and_bad_must_be_good() {
    let (good, bad) = (Kind::Good, Kind::Bad);
    let fork = |base| {
        vec![(vec![], base), (vec![0], good), (vec![0], base), (vec![2], bad), (vec![3], bad)]
    };
    let lab = lab_with(&fork(good));
    assert_eq!(told(&bisect(&lab, "c1", "c4", &[]).exit(0)), [3]);
    let lab = lab_with(&fork(bad));
    bisect(&lab, "c1", "c4", &[]).exit(2).says("ce: the merge base ").says("is bad, and should be");
}

#[test]
fn a_range_without_a_possible_culprit_is_refused() {
    let lab = lab_with(&line(&[Kind::Good, Kind::Good, Kind::Bad, Kind::Broken, Kind::Fails]));
    let wrong = |good, bad, more: &[&str]| bisect(&lab, good, bad, more);
    let nothing = "ce: the bad commit c0 is reachable from the good commit c2\n";
    wrong("c2", "c0", &[]).exit(2).says(nothing);
    wrong("c0", "c0", &[]).exit(2).says("is reachable from the good commit");
    wrong("c0", "nothing", &[]).exit(2).says("there is no commit nothing in");
    wrong("c0", "c2", &["--in", "computations/mul"]).exit(2).says(
        "ce: there is no submodule that holds computations/mul\n  because: it is the task's own",
    );
    wrong("c0", "c2", &["--in", "elsewhere"]).exit(2).says("  because: does not exist");
    assert!(lab.storage().is_empty(), "nothing was begun");
    wrong("c0", "c1", &[]).exit(2).says("ce: c1 is good, and should be bad\n");
    wrong("c0", "c3", &[]).exit(2).says("the task at . has ");
    wrong("c0", "c4", &[]).exit(1).says("ce: c4 cannot be judged: a call failed\n");
}

#[test]
fn an_interruption_leaves_nothing_behind() {
    for test in [&["--", "sh", "-c", "echo here >$LAB_MEET; cat $LAB_WAIT", "test"][..], &[]] {
        let script = if test.is_empty() { "echo here >$LAB_MEET\ncat $LAB_WAIT\n" } else { "" };
        let lab = lab_with(&line(&[Kind::Good, Kind::Bad]));
        let lab = lab.computation("mul", "a b", "p", &format!("{script}echo 1 >$3"));
        repository::commit(&lab.path("task"), LAB, "task\n");
        let before = files_of_task(&lab);
        let (meet, never) = (lab.path("meet"), lab.path("never"));
        let (fifo, mut command) = (Fifo::new(&meet), lab.command("ce"));
        command.args(["bisect", "--good", "main~1", "--bad", "main", "--no-isolate"]);
        command.args(FILES).args(test);
        command.env("LAB_MEET", meet).env("LAB_WAIT", &never).process_group(0);
        let never = Never::new(never);
        let running = Running::start(&mut command);
        assert_eq!(fifo.line(), "here");
        running.signal(Signal::INT);
        Ran::new(&lab, running.output()).exit(130);
        drop(never);
        assert!(lab.is_tidy());
        assert_eq!(files_of_task(&lab), before);
    }
}
