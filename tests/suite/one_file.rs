//! Computations in one file do what directories do.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use crate::lab::{Lab, Library, files};
use crate::program::{Ran, Running};

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0]";

/// The declarations of `mul`.
const DECLARED: &str = "#CE inputs a 'b c'\n#CE outputs product\n";

const PRODUCT: &str = r#"echo $(($(cat "$1") * $(cat "$2"))) >"$3""#;

/// A script with a declaration.
fn script(declared: &str, code: &str) -> String {
    let log = r#"[ -z "${LAB_LOG-}" ] || echo mul >>"$LAB_LOG""#;
    format!("#!/bin/sh\n# multiplies\n\n{declared}\n{log}\n{code}\n")
}

/// A laboratory in which `mul` is one file.
fn with(text: &str) -> Lab {
    let lab = Lab::task(TASK).without("computations/mul");
    lab.file("computations/mul.sh", text).mode("computations/mul.sh", 0o755)
}

fn lab() -> Lab {
    with(&script(DECLARED, PRODUCT))
}

/// The directory of results of `mul` whose name begins so.
fn directory(lab: &Lab, begin: &str) -> String {
    let begin = format!("c_mul/{begin}");
    let name = lab.results().into_keys().find(|name| name.starts_with(&begin)).unwrap();
    name.split('/').take(2).collect::<Vec<_>>().join("/")
}

/// The short name of the only call of `mul`.
fn call(lab: &Lab) -> String {
    format!("{}/ad48103e4fc7_5d9474c0309b", directory(lab, ""))
}

fn blob(lab: &Lab) -> String {
    lab.git("task", &["hash-object", "computations/mul.sh"])
}

fn check(lab: &Lab) -> Ran<'_> {
    lab.run("ce", &["check"])
}

#[test]
fn a_file_is_executed_like_a_directory() {
    for isolated in [false, true] {
        let lab = lab();
        let lab = if isolated { lab.isolated() } else { lab }.commit();
        check(&lab).exit(0);
        let ran = lab.ce_run(&["--no-sync"]).exit(0).shows("product: ../storage/c_mul/");
        ran.called(if isolated { vec![] } else { vec!["add", "mul"] });
        assert_eq!(lab.output(), "102\n");
        let commit = lab.git("task", &["rev-parse", "--short=12", "HEAD"]);
        assert_eq!(directory(&lab, ""), format!("c_mul/{commit}"));
        let export = lab.path("storage/trees").join(blob(&lab));
        if isolated {
            let text = fs::read(lab.path("task/computations/mul.sh")).unwrap();
            assert_eq!(files(&export), [("exec".to_owned(), text)].into());
        } else {
            assert!(!export.exists());
        }
        // The same from the commit, and without the file in the work tree.
        fs::remove_file(lab.path("task/computations/mul.sh")).unwrap();
        lab.ce_run(&["--no-sync", "--at", "HEAD"]).exit(0).called(vec![]);
        let forced = ["--no-sync", "--at", "HEAD", "--force", &call(&lab)];
        lab.ce_run(&forced).exit(0).shows("product: ../storage/c_mul/");
        check(&lab).exit(2).says("there is no computation \"mul\"");
    }
}

#[test]
fn a_name_without_suffix_and_a_link_are_files_too() {
    let lab = lab().rename("computations/mul.sh", "mul").commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let commit = lab.git("task", &["rev-parse", "HEAD"]);
    let linked = self::lab()
        .rename("computations/mul.sh", "product")
        .link("scripts", "computations")
        .link("computations/mul.sh", "../scripts/product")
        .commit();
    linked.ce_run(&["--no-sync"]).exit(0);
    linked.ce_run(&["--no-sync", "--at", "HEAD", "--force", &call(&linked)]).exit(0);
    let record = |lab: &Lab| {
        let is_record = |it: &String| it.starts_with("c_mul/") && it.contains("/record/");
        lab.stored(&lab.storage().into_iter().find(is_record).unwrap())
    };
    assert!(record(&lab).contains(&commit));
    let blob = lab.git("task", &["hash-object", "computations/mul"]);
    for lab in [&lab, &linked] {
        assert!(record(lab).contains(&format!("\"tree\": \"{blob}\"")), "{}", record(lab));
    }
}

#[test]
fn declared_access_and_resources_apply() {
    let lab = with(&script(
        "#CE inputs a b\n#CE outputs product\n#CE access read /nowhere\n#CE resources memory 2G",
        PRODUCT,
    ))
    .isolated()
    .commit();
    let ran = lab.ce_run(&["--no-sync"]).exit(2);
    ran.says("computations/mul.sh: /nowhere does not exist on this host");
    let lab = lab.file(
        "computations/mul.sh",
        script("#CE inputs a b\n#CE outputs product\n#CE resources memory 2P", PRODUCT),
    );
    let lab = lab.commit_again();
    lab.ce_run(&["--no-sync"]).exit(2).says("mul").says("memory");
}

#[test]
fn a_commit_that_does_not_touch_the_file_costs_nothing() {
    let lab = lab().isolated().commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let lab = lab.file("note", "").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).says("2 taken over");
    // So it is if only its name is another one, and not if its code is.
    let lab = lab.rename("computations/mul.sh", "mul.ash").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).says("2 taken over");
    let lab = lab.file("computations/mul.ash", script(DECLARED, PRODUCT) + "# x\n").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).says("1 taken over, 1 computed");
}

#[test]
fn uncommitted_results_are_named_by_the_blob() {
    for isolated in [false, true] {
        let changed = script(DECLARED, r#"echo 7 >"$3""#);
        let lab = lab();
        let lab = if isolated { lab.isolated() } else { lab };
        let lab = lab.commit().file("computations/mul.sh", changed);
        let words = "computations/mul.sh: has uncommitted changes: mul.sh";
        lab.ce_run(&["--no-sync"]).exit(2).says(words).says("git add");
        lab.ce_run(&["--no-sync", "--dirty"]).exit(0);
        let name = format!("c_mul/dirty-{}", &blob(&lab)[..12]);
        assert_eq!(directory(&lab, "dirty-"), name);
        let product = lab.results().into_iter().find(|(file, _)| file.starts_with(&name)).unwrap();
        assert_eq!(product.1, b"7\n");
        // One that no commit has ever had is like one that has changed, also in a new library.
        let new = |lab: Lab| if isolated { lab.isolated() } else { lab };
        let new = new(Lab::task(TASK).without("computations").commit());
        let code = r#"echo $(($(cat "$1") + $(cat "$2"))) >"$3""#;
        let new = new
            .file("computations/mul.sh", script(DECLARED, PRODUCT))
            .file("computations/add", script("#CE inputs a b\n#CE outputs sum", code))
            .mode("computations/mul.sh", 0o755)
            .mode("computations/add", 0o755);
        new.ce_run(&["--no-sync"]).exit(2).says("computations/add: is not in the commit");
        new.ce_run(&["--no-sync", "--dirty"]).exit(0);
        assert_eq!(directory(&new, ""), format!("c_mul/dirty-{}", &blob(&new)[..12]));
    }
}

#[test]
fn the_library_may_be_a_submodule_or_a_link() {
    let lab = lab().isolated().commit_with(Library::Submodule);
    let commit = lab.git("task/computations", &["rev-parse", "--short=12", "HEAD"]);
    lab.ce_run(&["--no-sync"]).exit(0);
    assert_eq!(directory(&lab, ""), format!("c_mul/{commit}"));
    lab.ce_run(&["--no-sync", "--at", "HEAD", "--force", &call(&lab)]).exit(0);
    let lab = lab.file("computations/mul.sh", script(DECLARED, r#"echo 7 >"$3""#));
    lab.ce_run(&["--no-sync"]).exit(2).says("computations/mul.sh: has uncommitted changes");
    lab.ce_run(&["--no-sync", "--dirty"]).exit(0);
    assert_eq!(directory(&lab, "dirty-"), format!("c_mul/dirty-{}", &blob(&lab)[..12]));
    // The submodule of a file is found.
    lab.git("task/computations", &["commit", "--quiet", "-amx"]);
    let bisect = ["bisect", "--no-isolate", "--in", "computations/mul.sh", "--good", &commit];
    let rest = ["--bad", "HEAD", "../storage", "../data/x", "../data/y"];
    let first = lab.git("task/computations", &["rev-parse", "--short=12", "HEAD"]);
    lab.run("ce", &[&bisect[..], &rest].concat()).exit(0).shows(&first);
    let lab = self::lab().rename("computations", "library").link("computations", "library");
    let lab = lab.isolated().commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    lab.ce_run(&["--no-sync", "--at", "HEAD", "--force", &call(&lab)]).exit(0);
}

/// A laboratory whose `mul` was executed at another commit than now, with another file.
fn changed() -> Lab {
    let lab = lab().commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    lab.file("computations/mul.sh", script(DECLARED, PRODUCT) + "echo more\n").commit_again()
}

#[test]
fn a_change_of_the_file_is_explained() {
    let lab = changed();
    let ran = lab.run("ce", &["explain", "../storage", "../data/x", "../data/y"]).exit(3);
    let ran = ran.shows("mul changed: was ").shows("    mul.sh  |   1 +\n");
    let commit = lab.git("task", &["rev-parse", "--short=12", "HEAD"]);
    ran.shows(&format!("    {commit} task\n"));
    let lab = lab.file("computations/mul.sh", script(DECLARED, PRODUCT) + "echo most\n");
    let dirty = ["explain", "--dirty", "../storage", "../data/x", "../data/y"];
    lab.run("ce", &dirty).exit(3).shows("    not committed: computations/mul.sh\n");
    // A computation that was a directory has lost its other files.
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let lab = lab.without("computations/mul");
    let lab = lab.file("computations/mul.sh", script(DECLARED, PRODUCT));
    let lab = lab.mode("computations/mul.sh", 0o755).commit_again();
    let ran = lab.run("ce", &["explain", "../storage", "../data/x", "../data/y"]).exit(3);
    ran.shows("    exec     |").shows("    inputs   |").shows("    outputs  |");
}

#[test]
fn versions_of_the_file_are_compared() {
    let code = r#"echo $(($(cat "$1") * $(cat "$2") + 1)) >"$3""#;
    let lab = lab().commit().file("computations/mul.sh", script(DECLARED, code)).commit_again();
    let lab = lab.file("note", "").commit_again();
    let files = ["../storage", "../data/x", "../data/y"];
    fs::create_dir(lab.path("storage")).unwrap();
    let diff = [&["diff", "--no-isolate", "HEAD~2..HEAD"][..], &files].concat();
    lab.run("ce", &diff).exit(0).shows("  mul (mul), output 00 product\n");
    let bisect =
        [&["bisect", "--no-isolate", "--good", "HEAD~2", "--bad", "HEAD"][..], &files].concat();
    let first = lab.git("task", &["rev-parse", "--short=12", "HEAD~1"]);
    lab.run("ce", &bisect).exit(0).shows(&first);
}

#[test]
fn workers_execute_a_single_file() {
    for isolated in [false, true] {
        let lab = lab();
        let lab = if isolated { lab.isolated() } else { lab }.commit().with_storage();
        let mut worker = lab.command("ce");
        worker.args(["worker", "--idle", "10h", "../storage"]);
        worker.args((!isolated).then_some("--no-isolate"));
        let worker = Running::start(&mut worker);
        worker.wait_until_it_catches(Signal::TERM);
        lab.ce_run(&["--no-sync", "--on", "workers"]).exit(0).says("2 computed");
        // Of what fails there, the hint names the file as well as a worker can.
        let lab = lab.file("computations/mul.sh", script(DECLARED, r#"mkdir "$3""#));
        let ran = lab.ce_run(&["--no-sync", "--on", "workers", "--dirty"]).exit(1);
        ran.says("write \"product/\" in computations/mul.*: it exists");
        worker.signal(Signal::TERM);
        worker.output();
        lab.ce_run(&["--no-sync", "--dirty"]).exit(1).says("in computations/mul.sh: it exists");
    }
}

#[test]
fn recorded_calls_are_audited_and_looked_into() {
    let lab = lab().isolated().commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    lab.run("ce", &["audit", "../storage"]).exit(0).says("2 agree");
    let name = call(&lab);
    let look = |lab: &Lab, dir: &str| {
        let script =
            "ls /computation; /computation/exec /inputs/00 /inputs/01 /outputs/00; cat /outputs/00";
        let mut command = lab.command("ce");
        let arguments = ["shell", "../storage", &name, "--", "sh", "-c", script];
        let ran = lab.finish(command.current_dir(lab.path(dir)).args(arguments)).exit(0);
        assert_eq!(ran.stdout, "exec\n85\n");
    };
    lab.run("ce", &["log", "../storage"]).exit(0).shows("a=17 b c=5");
    // The storage has the needed files, if not the repository, and both are checked.
    look(&lab, "task");
    look(&lab, "data");
    let export = lab.path("storage/trees").join(blob(&lab)).join("exec");
    fs::set_permissions(&export, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&export, "#!/bin/sh\n").unwrap();
    look(&lab, "task");
    let lab = with(&script(&format!("{DECLARED}#CE nondeterministic It rolls dice."), PRODUCT));
    let lab = lab.isolated().commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let ran = lab.run("ce", &["audit", "../storage"]).exit(0).says("1 agree");
    ran.says("1 call cannot be audited: its computation is declared as nondeterministic");
    // For the same reason, only the sum can be made again.
    let ran = lab.run("ce", &["gc", "--recomputable", "../storage"]).exit(0);
    ran.says("would make away 1 result").shows("../storage/c_add/");
}

#[test]
fn results_are_exported_pushed_and_pulled() {
    let lab = lab().commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    fs::create_dir(lab.path("results.git")).unwrap();
    lab.git("results.git", &["init", "--quiet", "--bare", "."]);
    lab.run("ce", &["push", "../storage", "../results.git"]).exit(0).shows("pushed 2 calls");
    fs::create_dir(lab.path("other")).unwrap();
    lab.run("ce", &["pull", "../other", "../results.git"]).exit(0).shows("2 calls");
    let name = call(&lab);
    for storage in ["../storage", "../other"] {
        // A storage into which it was pulled does not know its declarations, and the repository does.
        let to = format!("../of-{}", &storage[3..]);
        lab.run("ce", &["export", storage, &name, &to]).exit(0).shows(&format!("{to}/product\n"));
    }
    lab.run("ce", &["verify", "../storage"]).exit(0);
}

#[test]
fn texts_and_completions_know_its_name() {
    let lab = lab().one_text("Inputs: x, y\n(mull x y)\n").commit();
    check(&lab).exit(2).says("did you mean \"mul\"?");
    let lab = lab.one_text("Inputs: x, y\n(mul x y)\n");
    lab.to_directories().exit(0);
    // Labels are the declared names of the file.
    assert!(lab.path("task/workflow/inputs/01-b c").is_dir());
    let words = ["--complete-word", "zsh", "init", "--directories", "--computation", ""];
    let ran = lab.run("ce", &words).exit(0);
    let names: Vec<&str> =
        ran.stdout.lines().filter_map(|line| line.split('\t').next()).skip(2).collect();
    assert_eq!(names, ["add", "divmod", "mul"]);
    let words = ["--complete-word", "zsh", "bisect", "--in", "computations/m"];
    lab.run("ce", &words).exit(0).shows("computations/mul.sh\tcomputation");
    let lab = lab.without("workflow").without("inputs");
    let ran = lab.run("ce", &["init", "--directories", "--computation", "mul", "."]).exit(0);
    assert!(!ran.stdout.contains("computations/mul"), "{}", ran.stdout);
    lab.run("ce-sym", &[]).exit(0).shows("(mul INPUT('a')\n     INPUT('b c')\n");
}
