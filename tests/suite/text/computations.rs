//! Computations in the text of a workflow do what files and directories do.

use std::fs;

use rustix::process::Signal;

use crate::lab::{Lab, Library, files};
use crate::needs::needs;
use crate::program::Running;

/// The block of `mul`, without its indentation, if its code is this.
fn block(code: &str) -> String {
    let log = r#"[ -z "${LAB_LOG-}" ] || echo mul >>"$LAB_LOG""#;
    format!("#!/bin/sh\n# multiplies\n{log}\n\n{code}\n")
}

const PRODUCT: &str = r#"echo $(($(cat "$1") * $(cat "$2"))) >"$3""#;

/// The text of a task whose `mul` stands in it.
fn text(code: &str) -> String {
    let block: String = block(code).lines().map(|line| format!("    {line}\n")).collect();
    format!("Inputs: x, y\n\nmul: a 'b c' -> product # {}\n{block}\n(add (mul x y) x)\n", "why")
}

/// The file that `mul` is.
fn file(code: &str) -> String {
    block(code).replacen('\n', "\n#CE inputs a 'b c'\n#CE outputs product\n", 1)
}

fn lab() -> Lab {
    Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))")
        .without("computations/mul")
        .one_text(&text(PRODUCT))
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

/// The id that the blob of a file has.
fn blob(lab: &Lab, code: &str) -> String {
    fs::write(lab.path("data/file"), file(code)).unwrap();
    lab.git("task", &["hash-object", "../data/file"])
}

#[test]
fn a_block_is_executed_as_a_file_with_its_declaration() {
    for isolated in [false, true] {
        let lab = if isolated { lab().isolated() } else { lab() }.commit();
        lab.run("ce", &["check"]).exit(0).shows("2 calls, 2 computations");
        let ran = lab.ce_run(&["--no-sync"]).exit(0).shows("product: ../storage/c_mul/");
        ran.called(if isolated { vec![] } else { vec!["add", "mul"] });
        assert_eq!(lab.output(), "102\n");
        let commit = lab.git("task", &["rev-parse", "--short=12", "HEAD"]);
        assert_eq!(directory(&lab, ""), format!("c_mul/{commit}"));
        let export = lab.path("storage/trees").join(blob(&lab, PRODUCT));
        if isolated {
            assert_eq!(files(&export), [("exec".to_owned(), file(PRODUCT).into())].into());
        } else {
            assert!(!export.exists());
        }
        // The same from the commit, whatever is in the work tree.
        fs::write(lab.path("task/workflow.ce"), "x\n").unwrap();
        lab.ce_run(&["--no-sync", "--at", "HEAD"]).exit(0).called(vec![]);
        let forced = ["--no-sync", "--at", "HEAD", "--force", &call(&lab)];
        lab.ce_run(&forced).exit(0).shows("product: ../storage/c_mul/");
    }
}

#[test]
fn a_computation_moves_between_the_text_and_files_and_nothing_is_executed() {
    let lab = lab().isolated().commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let rest = "Inputs: x, y\n(add (mul x y) x)\n";
    let lab = lab.one_text(rest).file("computations/mul.sh", file(PRODUCT));
    let lab = lab.mode("computations/mul.sh", 0o755).commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).says("2 taken over");
    let lab = lab.without("computations/mul.sh").one_text(&text(PRODUCT)).commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).says("2 taken over");
    // Other parts of the text do not matter, nor how far its block is indented.
    let other = text(PRODUCT).replace("# why", "").replace("    ", "\t");
    let lab = lab.one_text(&format!("{other}; the end\n")).commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).says("2 taken over");
    lab.to_directories().exit(0).shows("computations/mul.sh");
    assert_eq!(fs::read_to_string(lab.path("task/computations/mul.sh")).unwrap(), file(PRODUCT));
    let lab = lab.commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).says("2 taken over");
    let lab = lab.without("workflow").without("inputs").without("computations/mul.sh");
    let lab = lab.one_text(&text("echo 7 >\"$3\"")).commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).says("2 computed");
}

#[test]
fn only_a_change_of_the_block_is_an_uncommitted_computation() {
    for isolated in [false, true] {
        let lab = if isolated { lab().isolated() } else { lab() }.commit();
        lab.ce_run(&["--no-sync"]).exit(0);
        let changed = text(PRODUCT).replace("(add (mul x y) x)", "(add (mul x y) y)");
        let lab = lab.one_text(&changed);
        lab.ce_run(&["--no-sync"]).exit(0).says("1 reused, 1 computed");
        let code = r#"echo 7 >"$3""#;
        let lab = lab.one_text(&text(code));
        let words = "workflow.ce:3: has uncommitted changes: workflow.ce";
        lab.ce_run(&["--no-sync"]).exit(2).says(words).says("git add");
        lab.ce_run(&["--no-sync", "--dirty"]).exit(0);
        let name = format!("c_mul/dirty-{}", &blob(&lab, code)[..12]);
        assert_eq!(directory(&lab, "dirty-"), name);
        // What HEAD has as a file is no change in the text.
        let as_file = lab.one_text("Inputs: x, y\n(add (mul x y) x)\n");
        let as_file = as_file.file("computations/mul.sh", file(PRODUCT));
        let as_file = as_file.mode("computations/mul.sh", 0o755).commit_again();
        let lab = as_file.without("computations/mul.sh").one_text(&text(PRODUCT));
        lab.ce_run(&["--no-sync"]).exit(0);
        // One that no commit has ever had is like one that has changed.
        let new = Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))").commit();
        let new = if isolated { new.isolated() } else { new };
        let new = new.without("computations/mul").one_text(&text(PRODUCT));
        new.ce_run(&["--no-sync"]).exit(2).says("workflow.ce:3: is not in the commit");
        new.ce_run(&["--no-sync", "--dirty"]).exit(0);
        assert_eq!(directory(&new, ""), format!("c_mul/dirty-{}", &blob(&new, PRODUCT)[..12]));
    }
}

#[test]
fn a_name_stands_for_one_computation() {
    let lab = lab().file("computations/mul.py", file(PRODUCT)).mode("computations/mul.py", 0o755);
    let lab = lab.commit();
    let ran = lab.run("ce", &["check"]).exit(2);
    ran.says("mul is computations/mul.py and workflow.ce:3: a name stands for one computation");
    let lab =
        lab.without("computations/mul.py").one_text(&text(PRODUCT).replace("(mul x", "(mull x"));
    lab.run("ce", &["check"]).exit(2).says("did you mean \"mul\"?");
    let lab = lab.one_text(&text(PRODUCT).replace("-> product", "-> ../x"));
    lab.run("ce", &["check"]).exit(2).says("workflow.ce:3: ");
    let granted = text(PRODUCT).replace("    # multiplies", "    #CE access read /nowhere");
    let lab = lab.isolated().one_text(&granted).commit_again();
    lab.ce_run(&["--no-sync"]).exit(2).says("workflow.ce: /nowhere does not exist on this host");
}

#[test]
fn a_text_may_be_a_link_or_in_a_submodule() {
    let lab = lab().isolated().rename("workflow.ce", "words.ce").link("workflow.ce", "words.ce");
    let lab = lab.commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    lab.ce_run(&["--no-sync", "--at", "HEAD", "--force", &call(&lab)]).exit(0);
    let other = self::lab().rename("workflow.ce", "words.txt").link("workflow.ce", "words.txt");
    let ran = other.commit().run("ce", &["check"]).exit(2).stderr;
    assert!(ran.contains("the name of words.txt, in which computations stand"), "{ran}");
    // The commit of a computation is that of the repository that has its text.
    let nested = self::lab().isolated();
    fs::rename(nested.path("task/workflow.ce"), nested.path("task/computations/words.ce")).unwrap();
    let nested =
        nested.link("workflow.ce", "computations/words.ce").commit_with(Library::Submodule);
    let commit = nested.git("task/computations", &["rev-parse", "--short=12", "HEAD"]);
    nested.ce_run(&["--no-sync"]).exit(0);
    assert_eq!(directory(&nested, ""), format!("c_mul/{commit}"));
    nested.ce_run(&["--no-sync", "--at", "HEAD", "--force", &call(&nested)]).exit(0);
}

/// The names of the outputs of calls.
fn outputs(lab: &Lab) -> Vec<String> {
    let names = lab.results().into_keys();
    names
        .filter(|it| it.starts_with("c_") && it.contains("/00/") && !it.contains("/aside/"))
        .collect()
}

#[test]
fn a_computation_that_stands_elsewhere_at_head_keeps_its_commit() {
    let lab = lab().isolated().commit_with(Library::Submodule);
    lab.ce_run(&["--no-sync"]).exit(0);
    let before = outputs(&lab);
    fs::rename(lab.path("task/workflow.ce"), lab.path("task/computations/words.ce")).unwrap();
    let lab = lab.link("workflow.ce", "computations/words.ce");
    lab.ce_run(&["--no-sync"]).exit(0).says("2 calls: 2 reused");
    lab.ce_run(&["--no-sync", "--force", &call(&lab)]).exit(0);
    assert_eq!(outputs(&lab), before);
}

#[test]
fn only_a_file_that_may_be_executed_is_another_computation_of_the_name() {
    let lab = lab().commit().file("computations/mul.py", file(PRODUCT));
    lab.ce_run(&["--no-sync"]).exit(0);
    lab.run("ce", &["check"]).exit(0);
    let lab = lab.mode("computations/mul.py", 0o755);
    let ran = lab.ce_run(&["--no-sync"]).exit(2);
    ran.says("mul is computations/mul.py and workflow.ce:3");
}

#[test]
fn texts_that_are_not_there_are_not_needed() {
    let lab = lab().isolated().file("other/workflow.ce", "x\n").commit();
    let other = lab.git("task", &["rev-parse", "HEAD:other/workflow.ce"]);
    let object = format!("task/.git/objects/{}/{}", &other[..2], &other[2..]);
    fs::remove_file(lab.path(&object)).unwrap();
    lab.ce_run(&["--no-sync"]).exit(0);
}

#[test]
fn a_change_of_the_block_is_explained_compared_and_found() {
    let lab = lab().commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let code = r#"echo $(($(cat "$1") * $(cat "$2") + 1)) >"$3""#;
    let lab = lab.one_text(&text(code)).commit_again().file("note", "").commit_again();
    let inputs = ["../storage", "../data/x", "../data/y"];
    let ran = lab.run("ce", &[&["explain"][..], &inputs].concat()).exit(3);
    let first = lab.git("task", &["rev-parse", "--short=12", "HEAD~1"]);
    let ran = ran.shows("mul changed: was ").shows("    workflow.ce  |   2 +-\n");
    ran.shows(&format!("    {first} task\n"));
    let diff = [&["diff", "--no-isolate", "HEAD~2..HEAD"][..], &inputs].concat();
    lab.run("ce", &diff).exit(0).shows("  mul (a), output 00 product\n");
    let bisect = ["bisect", "--no-isolate", "--good", "HEAD~2", "--bad", "HEAD"];
    lab.run("ce", &[&bisect[..], &inputs].concat()).exit(0).shows(&first);
    let lab = lab.one_text(&text("echo 7 >\"$3\""));
    let dirty = [&["explain", "--dirty"][..], &inputs].concat();
    lab.run("ce", &dirty).exit(3).shows("    not committed: workflow.ce\n");
}

#[test]
fn workers_execute_a_block() {
    for isolated in [false, true] {
        let lab = if isolated { lab().isolated() } else { lab() }.commit().with_storage();
        let mut worker = lab.command("ce");
        worker.args(["worker", "--idle", "10h", "../storage"]);
        worker.args((!isolated).then_some("--no-isolate"));
        let worker = Running::start(&mut worker);
        worker.wait_until_it_catches(Signal::TERM);
        lab.ce_run(&["--no-sync", "--on", "workers"]).exit(0).says("2 computed");
        let lab = lab.one_text(&text("echo 7 >\"$3\""));
        lab.ce_run(&["--no-sync", "--on", "workers", "--dirty"]).exit(0).says("2 computed");
        worker.signal(Signal::TERM);
        worker.output();
    }
}

#[test]
fn recorded_calls_are_audited_and_looked_into_without_their_export() {
    let lab = lab().isolated().commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let name = call(&lab);
    let lab = lab.one_text("Inputs: x, y\n(add x y)\n").commit_again();
    let export = lab.path("storage/trees").join(blob(&lab, PRODUCT));
    let forget = || {
        fs::set_permissions(&export, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        fs::remove_dir_all(&export).unwrap();
    };
    forget();
    lab.run("ce", &["audit", "../storage"]).exit(0).says("2 agree");
    forget();
    let script = "/computation/exec /inputs/00 /inputs/01 /outputs/00; cat /outputs/00";
    let ran = lab.run("ce", &["shell", "../storage", &name, "--", "sh", "-c", script]).exit(0);
    assert_eq!(ran.stdout, "85\n");
}

#[test]
fn a_collection_keeps_what_a_text_of_any_commit_computes() {
    let lab = lab().isolated().commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let lab = lab.one_text("Inputs: x, y\n(add x y)\n").commit_again();
    let ran = lab.run("ce", &["gc", "../storage"]).exit(0);
    assert_eq!(ran.stdout, "");
    let ran = lab.run("ce", &["gc", "--recomputable", "../storage"]).exit(0);
    ran.shows("../storage/c_mul/");
    // A declaration of the block counts, wherever the text is.
    let dice = text(PRODUCT).replace("    # multiplies", "    #CE nondeterministic It rolls dice.");
    let lab = self::lab().isolated().one_text(&dice).commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let ran = lab.run("ce", &["gc", "--recomputable", "../storage"]).exit(0);
    assert!(!ran.stdout.contains("c_mul/"), "{}", ran.stdout);
    let ran = lab.run("ce", &["audit", "../storage"]).exit(0);
    ran.says("1 call cannot be audited: its computation is declared as nondeterministic");
}

#[test]
fn results_of_a_block_are_exported_pushed_and_pulled() {
    let lab = lab().commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    fs::create_dir(lab.path("results.git")).unwrap();
    lab.git("results.git", &["init", "--quiet", "--bare", "."]);
    lab.run("ce", &["push", "../storage", "../results.git"]).exit(0).shows("pushed 2 calls");
    fs::create_dir(lab.path("other")).unwrap();
    lab.run("ce", &["pull", "../other", "../results.git"]).exit(0).shows("2 calls");
    for storage in ["../storage", "../other"] {
        // A storage into which it was pulled does not know its declarations, and the repository does.
        let to = format!("../of-{}", &storage[3..]);
        lab.run("ce", &["export", storage, &call(&lab), &to])
            .exit(0)
            .shows(&format!("{to}/product\n"));
    }
}

#[test]
fn blocks_are_printed_as_they_stand() {
    let lab = lab().commit();
    let block: String = block(PRODUCT).lines().map(|line| format!("    {line}\n")).collect();
    let block = block.replace("    \n", "\n");
    lab.run("ce-sym", &[]).exit(0).shows(&format!("\nmul: a 'b c' -> product\n{block}\n(add "));
}

#[test]
fn a_program_that_cannot_be_read_is_found_before_it_is_executed() {
    needs(&["python3"]);
    let wrong = text("if true; then\necho 7 >\"$3\"").replace("#!/bin/sh", "#!/bin/bash");
    let python = "low: -> o\n    #!/usr/bin/env python3\n    import os\n\n    print(1\n";
    let lab = lab().one_text(
        &wrong.replace("\n(add (mul x y) x)", &format!("\n{python}\n(add (mul x y) (low))")),
    );
    let lab = lab.commit();
    lab.run("ce", &["check"]).exit(0);
    let ran = lab.run("ce", &["check", "--programs"]).exit(2);
    let ran = ran.says("workflow.ce:15: the program cannot be read: '(' was never closed");
    ran.says("workflow.ce:9: the program cannot be read: syntax error: unexpected end of file");
    let lab = lab.one_text(&text(PRODUCT)).commit_again();
    lab.run("ce", &["check", "--programs"]).exit(0).shows("2 programs can be read\n");
}
