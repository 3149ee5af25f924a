//! Repositories that are shallow or partial clones: nothing is fetched for them, and no `git` starts another one without end.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::trust::{change, people, push_as};
use super::{cloned, evaluate, lab, pull, push};
use crate::lab::Lab;
use crate::program::Ran;

/// More than this number of processes of `git` is a storm: no command here needs half of it.
const MOST: usize = 40;

/// The advice at the end of a fetch from a clone of depth 1.
const UNSHALLOW: &str = "try: git fetch --unshallow in it, or clone it again without --depth\n";

/// The advice at the end of a fetch from a partial clone.
const REFETCH: &str =
    "try: git fetch --refetch --no-filter in it, or clone it again without --filter\n";

/// A `git` that counts its processes, also those that it starts itself, and refuses to be started more often than [`MOST`] times.
struct CountingGit {
    dir: PathBuf,
}

impl CountingGit {
    /// Makes one. An old one does not know `GIT_NO_LAZY_FETCH`.
    fn new(lab: &Lab, name: &str, is_old: bool) -> Self {
        let dir = lab.path(name);
        fs::create_dir(&dir).unwrap();
        let real = |name: &str| {
            let places = std::env::var_os("PATH").unwrap();
            let mut places = std::env::split_paths(&places).map(|place| place.join(name));
            places.find(|place| place.is_file()).unwrap()
        };
        let git = real("git");
        let programs = Command::new(&git).arg("--exec-path").output().unwrap().stdout;
        let programs = String::from_utf8(programs).unwrap();
        for program in Path::new(programs.trim()).read_dir().unwrap() {
            let program = program.unwrap();
            if program.file_name() != "git" {
                symlink(program.path(), dir.join(program.file_name())).unwrap();
            }
        }
        let forget = if is_old { "unset GIT_NO_LAZY_FETCH" } else { ":" };
        let script = format!(
            "#!/bin/sh\necho \"$*\" >>'{log}'\n[ \"$(wc -l <'{log}')\" -le {MOST} ] || exit 99\n{forget}\nexec '{git}' \"$@\"\n",
            log = dir.join("log").display(),
            git = git.display(),
        );
        fs::write(dir.join("git"), script).unwrap();
        fs::set_permissions(dir.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir }
    }

    /// Runs a program with it, and checks that there was no storm.
    #[track_caller]
    fn run<'a>(&self, lab: &'a Lab, program: &str, arguments: &[&str]) -> Ran<'a> {
        drop(fs::remove_file(self.dir.join("log")));
        let path = std::env::var("PATH").unwrap();
        let mut command = lab.command(program);
        command.args(arguments).env("PATH", format!("{}:{path}", self.dir.display()));
        let ran = lab.finish(command.env("GIT_EXEC_PATH", &self.dir));
        let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        assert!(log.lines().count() <= MOST / 2, "{arguments:?}: {}\n{log}", ran.stderr);
        ran
    }
}

/// A `git` as it is, and one as it was.
fn gits(lab: &Lab) -> [CountingGit; 2] {
    [CountingGit::new(lab, "new-git", false), CountingGit::new(lab, "old-git", true)]
}

/// Results of two pushes in results.git, and a third one that only its storage has.
fn results() -> Lab {
    let lab = lab();
    for text in ["x", "y", "z"] {
        fs::write(lab.path("data/x"), text).unwrap();
        evaluate(&lab, "storage").exit(0);
        if text != "z" {
            push(&lab, &[], "storage", "results.git").exit(0);
        }
    }
    lab
}

/// A clone of results.git that is a repository for results, too.
fn clone(lab: &Lab, name: &str, option: &str) {
    let url = format!("file://{}", lab.path("results.git").display());
    let fixed = ["clone", "--quiet", "--no-checkout", "--branch", "results", option];
    lab.git(".", &[&fixed[..], &[&url, name]].concat());
    lab.git(name, &["config", "uploadpack.allowFilter", "true"]);
}

/// Commands that exchange results with a repository.
fn exchanges(repository: &str) -> Vec<Vec<String>> {
    [
        "pull ../mine",
        "pull -n ../mine",
        "push ../storage",
        "push -n ../storage",
        "gc ../storage --published",
    ]
    .map(|words| words.split(' ').chain([repository]).map(str::to_owned).collect())
    .to_vec()
}

#[test]
fn a_shallow_clone_is_refused_with_its_border_and_no_git_starts_others_without_end() {
    let lab = results();
    clone(&lab, "shallow", "--depth=1");
    let border = lab.git("shallow", &["rev-parse", "--short=12", "HEAD"]);
    let before = lab.git("results.git", &["for-each-ref"]);
    for git in gits(&lab) {
        for command in exchanges("../shallow") {
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            let ran = git.run(&lab, "ce", &command).exit(5);
            let ran = ran.says("/shallow is a shallow clone: its history ends at the commit ");
            let ran = ran.says(&border).says(UNSHALLOW);
            assert!(!ran.stderr.contains("damaged"), "{}", ran.stderr);
        }
        assert_eq!(lab.git("shallow", &["for-each-ref", "refs/heads"]).lines().count(), 1);
    }
    // Nothing of it was taken, and the advice that was printed helps.
    assert!(!lab.path("mine").exists());
    lab.git("shallow", &["fetch", "--quiet", "--unshallow"]);
    for git in gits_again(&lab) {
        let storage = format!("{}-storage", git.dir.display());
        git.run(&lab, "ce", &["pull", &storage, "../shallow"])
            .exit(0)
            .shows("pulled 4 calls, 2 jobs");
    }
    assert_eq!(lab.git("results.git", &["for-each-ref"]), before);
}

/// Both, with new counts.
fn gits_again(lab: &Lab) -> [CountingGit; 2] {
    ["new-git", "old-git"].map(|name| CountingGit { dir: lab.path(name) })
}

#[test]
fn a_partial_clone_without_directories_is_refused_with_its_gaps() {
    let lab = results();
    clone(&lab, "partial", "--filter=tree:0");
    let objects = || lab.git("partial", &["rev-list", "--objects", "--missing=print", "HEAD"]);
    let before = objects();
    assert!(before.contains("\n?"), "{before}");
    for git in gits(&lab) {
        for command in exchanges("../partial") {
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            let ran = git.run(&lab, "ce", &command).exit(5);
            let ran = ran.says("/partial is a partial clone: the object ").says(REFETCH);
            assert!(!ran.stderr.contains("damaged"), "{}", ran.stderr);
        }
    }
    // The clone has got nothing: nobody has fetched for it.
    assert_eq!(objects(), before);
    if !refetched(&lab) {
        return;
    }
    for git in gits_again(&lab) {
        let storage = format!("{}-storage", git.dir.display());
        git.run(&lab, "ce", &["pull", &storage, "../partial"])
            .exit(0)
            .shows("pulled 4 calls, 2 jobs");
    }
}

/// Completes the partial clone as an error advises. Returns false if this version of Git cannot.
fn refetched(lab: &Lab) -> bool {
    let mut git = Command::new("git");
    git.current_dir(lab.path("partial")).env("HOME", lab.path("home"));
    let status = git.args(["fetch", "--quiet", "--refetch", "--no-filter"]).status().unwrap();
    // 129: there is no such option before 2.36.
    assert!(status.success() || status.code() == Some(129), "{status}");
    status.success()
}

#[test]
fn a_partial_clone_without_files_is_pulled_from_only_once_it_has_them() {
    let lab = results();
    clone(&lab, "partial", "--filter=blob:none");
    for git in gits(&lab) {
        for command in
            [["pull", "../mine", "../partial"], ["gc", "--published=../partial", "../storage"]]
        {
            let ran = git.run(&lab, "ce", &command).exit(5);
            let ran = ran.says("/partial is a partial clone: the object ").says(REFETCH);
            assert!(!ran.stderr.contains("damaged"), "{}", ran.stderr);
        }
    }
    if !refetched(&lab) {
        return;
    }
    pull(&lab, &[], "mine", "partial").exit(0).shows("pulled 4 calls, 2 jobs");
}

#[test]
fn an_old_git_mirrors_all_files_and_a_new_one_only_requested_files() {
    let lab = results();
    let [new, old] = gits(&lab);
    // The mirror of the pushes has the pushed files.
    fs::remove_dir_all(lab.path("cache")).unwrap();
    // Each goes on with the mirror that the other one has left.
    for (at, git) in [&new, &old, &new, &old].into_iter().enumerate() {
        let storage = format!("../storage-{at}");
        git.run(&lab, "ce", &["pull", "-n", &storage, "../results.git"]).exit(3);
        let has_files = holds_files(&lab);
        let is_old = at > 0 || !knows_the_variable(&lab);
        assert_eq!(has_files, is_old, "only an old git fetches them to look at records");
        let ran = git.run(&lab, "ce", &["pull", &storage, "../results.git"]).exit(0);
        ran.shows("pulled 4 calls, 2 jobs");
        git.run(&lab, "ce", &["push", "-n", "../storage", "../results.git"]).exit(3);
    }
    new.run(&lab, "ce", &["push", "../storage", "../results.git"]).exit(0).shows("pushed 2 calls");
    for git in [&new, &old] {
        git.run(&lab, "ce", &["push", "../storage", "../results.git"])
            .exit(0)
            .shows("nothing is new");
        git.run(&lab, "ce", &["gc", "--published", "../results.git", "../storage"]).exit(0);
    }
}

/// Whether the `git` here knows `GIT_NO_LAZY_FETCH`.
fn knows_the_variable(lab: &Lab) -> bool {
    let mut git = Command::new("git");
    git.current_dir(lab.path("results.git")).env("HOME", lab.path("home"));
    git.envs([("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none"), ("GIT_TRACE", "1")]);
    let absent = "1".repeat(40);
    git.args(["-c", "remote.origin.promisor=true", "cat-file", "-e", &absent]);
    !String::from_utf8(git.output().unwrap().stderr).unwrap().contains("fetch")
}

/// Whether the mirror of results.git has the outputs of calls.
fn holds_files(lab: &Lab) -> bool {
    let mirrors = lab.path("cache/compeval/mirrors").read_dir().unwrap();
    let mut mirrors = mirrors.map(|it| it.unwrap().path()).filter(|it| it.is_dir());
    let mirror = mirrors.next().unwrap();
    let output = lab.git("results.git", &["ls-tree", "-r", "results"]);
    let output = output.lines().find(|line| line.contains("/00/")).unwrap();
    let id = output.split([' ', '\t']).nth(2).unwrap();
    let mut git = Command::new("git");
    git.env("GIT_NO_LAZY_FETCH", "1").arg("--git-dir").arg(mirror).args(["cat-file", "-e", id]);
    git.output().unwrap().status.success()
}

#[test]
fn a_border_commit_vouches_only_for_its_own_additions() {
    let lab = lab();
    people(&lab);
    // Mallory's results are not signed. Alice signs what she adds to them.
    evaluate(&lab, "mallory").exit(0);
    push(&lab, &[], "mallory", "results.git").exit(0);
    fs::write(lab.path("data/x"), "y\n").unwrap();
    evaluate(&lab, "alice").exit(0);
    push_as(&lab, "alice", &[], ["alice", "results.git"]).exit(0);
    clone(&lab, "shallow", "--depth=1");
    let fixed = ["pull", "--signers", "../signers", "../mine"];
    for git in gits(&lab) {
        for options in [&["-n"][..], &[], &["--rewritten"]] {
            let arguments = [&fixed[..], &["../shallow"], options].concat();
            git.run(&lab, "ce", &arguments).exit(5).says("is a shallow clone");
        }
    }
    // With its history, it is known who has added what.
    let told = lab.run("ce", &[&fixed[..], &["../results.git"]].concat()).exit(1);
    told.shows("pulled 2 calls, 1 job")
        .shows("3 results were not taken, each since it is not signed");
    lab.git("shallow", &["fetch", "--quiet", "--unshallow"]);
    let told = lab.run("ce", &[&fixed[..], &["../shallow"]].concat()).exit(1);
    told.shows("3 results were not taken, each since it is not signed");
    // Nor is a history believed that a server cuts off which has all of it.
    change(&lab, &[], |dir| fs::write(lab.path(dir).join("note"), "").unwrap());
    let tip = lab.git("results.git", &["rev-parse", "results"]);
    fs::write(lab.path("results.git/shallow"), format!("{tip}\n")).unwrap();
    let told = lab.run("ce", &[&fixed[..], &["../results.git"]].concat()).exit(5);
    told.says("is a shallow clone").says(&tip[..12]);
}

/// A task with two commits, evaluated, and a clone of it.
fn task(option: &[&str]) -> Lab {
    let lab = lab().file("computations/once/note", "later\n").commit_again();
    lab.git("task", &["config", "uploadpack.allowFilter", "true"]);
    lab.git("task", &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let url = format!("file://{}", lab.path("task").display());
    lab.git(".", &[&["clone", "--quiet"][..], option, &[&url, "clone"]].concat());
    lab
}

#[test]
fn a_task_in_an_incomplete_clone_is_evaluated_as_far_as_possible() {
    for option in ["--depth=1", "--filter=tree:0", "--filter=blob:none"] {
        let lab = task(&[option]);
        let partial =
            |lab: &Lab| lab.git("clone", &["rev-list", "--objects", "--missing=print", "--all"]);
        let before = partial(&lab);
        for (at, git) in gits(&lab).iter().enumerate() {
            let storage = format!("../storage-{at}");
            let task = "--task=../clone";
            let run = [task, &storage, "../data/x"];
            git.run(&lab, "ce-run", &run).exit(0);
            git.run(&lab, "ce-run", &[&["-n"], &run[..]].concat()).exit(0);
            git.run(&lab, "ce", &["check", task]).exit(0);
            git.run(&lab, "ce", &["audit", task, &storage]).exit(0).says("2 agree");
            git.run(&lab, "ce", &["log", &storage]).exit(0);
            git.run(&lab, "ce", &["explain", task, &storage, "../data/x"]).exit(0);
            git.run(&lab, "ce", &["push", &storage, "../results.git"]).exit(0);
            // Missing commits and objects are reported as such.
            let (says, hint) = match option {
                "--depth=1" => (
                    "HEAD is there, and has no such ancestor: the repository is a shallow clone, whose history ends at the commit ",
                    "try: git fetch --unshallow\n",
                ),
                _ => (" is missing", "git fetch --refetch --no-filter"),
            };
            let commands: [&[&str]; 5] = [
                &["check", task, "--at=HEAD~1"],
                &["diff", task, "HEAD~1", &storage, "../data/x"],
                &["sym", task, "--at=HEAD~1"],
                &["run", "--no-isolate", task, "--at=HEAD~1", &storage, "../data/x"],
                &["gc", "--keep=../clone", &storage],
            ];
            for command in commands {
                let ran = git.run(&lab, "ce", command);
                let has_all_directories = option == "--filter=blob:none";
                if has_all_directories && ran.status.success() {
                    continue;
                }
                let ran = match command[0] {
                    "gc" if option == "--depth=1" => {
                        ran.says("is a shallow clone: its history ends at the commit ")
                    }
                    _ => ran.says(says).says(hint),
                };
                assert!(!ran.stderr.contains("damaged"), "{command:?}: {}", ran.stderr);
            }
        }
        assert_eq!(partial(&lab), before, "{option}: something was fetched");
    }
}

#[test]
fn no_git_setting_starts_hooks_or_monitors() {
    let lab = results();
    cloned(&lab, "results.git", "clone", &[]);
    let decoy = lab.path("decoy");
    let script = format!("#!/bin/sh\necho \"$0\" >>'{}.ran'\n", decoy.display());
    let hooks = lab.path("hooks");
    fs::create_dir(&hooks).unwrap();
    for name in ["pre-push", "post-checkout", "reference-transaction", "pre-auto-gc", "monitor"] {
        fs::write(hooks.join(name), &script).unwrap();
        fs::set_permissions(hooks.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let config = format!(
        "[safe]\n\tdirectory = *\n[core]\n\thooksPath = {0}\n\tfsmonitor = {0}/monitor\n\taskPass = {0}/monitor\n[gc]\n\tauto = 1\n[maintenance]\n\tauto = true\n",
        hooks.display()
    );
    fs::write(lab.path("home/.gitconfig"), config).unwrap();
    // The control: a plain push starts one.
    let mut git = Command::new("git");
    git.current_dir(lab.path("clone")).env("HOME", lab.path("home"));
    git.args(["push", "--quiet", "origin", "HEAD:refs/heads/other"]);
    assert!(git.status().unwrap().success());
    let ran = PathBuf::from(format!("{}.ran", decoy.display()));
    assert!(fs::read_to_string(&ran).unwrap().contains("pre-push"));
    fs::remove_file(&ran).unwrap();
    push(&lab, &[], "storage", "results.git").exit(0).shows("pushed 2 calls");
    pull(&lab, &[], "mine", "results.git").exit(0);
    lab.run("ce", &["check", "--at=HEAD@{0}"]);
    let told = fs::read_to_string(&ran).unwrap_or_default();
    // The repository on the other side runs its own hooks, as a server does.
    let own: Vec<&str> = told
        .lines()
        .filter(|it| !it.ends_with("reference-transaction") && !it.ends_with("pre-auto-gc"))
        .collect();
    assert_eq!(own, Vec::<&str>::new(), "{told}");
}
