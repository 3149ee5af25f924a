//! `ce convert`: a workflow as one text or as directories, which say the same.

use std::fs;

use compeval::edit::{Force, WorkflowForm, convert};

use super::one_text::{self, loaded, write_directories};
use crate::fifo::Never;
use crate::generator;
use crate::lab::{Lab, files};

fn text(lab: &Lab) -> String {
    fs::read_to_string(lab.path("task/workflow.ce")).unwrap()
}

/// A task whose workflow is this text, with a storage.
fn lab(text: &str) -> Lab {
    one_text::task(text).with_storage()
}

fn to<'a>(lab: &'a Lab, form: &str) -> crate::program::Ran<'a> {
    lab.run("ce", &["convert", "--to", form])
}

#[test]
fn random_workflows_survive_the_conversion_to_text_and_back() {
    let lab = generator::lab();
    let task = lab.path("task");
    for seed in generator::seeds(20) {
        write_directories(&lab, seed);
        let first = loaded(&lab);
        let mut texts = Vec::new();
        for form in [WorkflowForm::Text, WorkflowForm::Directories, WorkflowForm::Text] {
            convert(&task, form, Force::Replace).unwrap();
            let now = loaded(&lab);
            assert_eq!(now.workflow, first.workflow, "seed {seed}, labels and all");
            assert!(now.means_the_same(&first), "seed {seed}");
            texts.extend((form == WorkflowForm::Text).then(|| text(&lab)));
        }
        assert_eq!(texts[0], texts[1], "seed {seed}");
        convert(&task, WorkflowForm::Directories, Force::Replace).unwrap();
    }
}

/// A text as people write it: definitions, slices of them, other names of them, defaults, resources, rows, and long lines.
const WRITTEN: &str = "\
Inputs: x, |a b|, quality = '20', kept = OWN('data/kept')

plain = (add x kept)
again = plain
grid = POINTS(
  :over size 10 20 'x y'
  :over ('a' 'b') ('1' '2') ('3' '4')
  :exclude ('size' 'a') ('10' '1')
  :where 'a != 3 || size in (\"10\", \"20\")')
swept = SWEEP(
  (mul size (add a (add b replicate)) :resources 'cpus 2' 'memory 1G')
  grid
  :replicates '6..9 until product ±5%'
  :names 'size' 'a' 'b'
  :allow-failed)[00, 01]
both = (divmod x |a b|)
shared = (add
  (mul
    (add both[quotient] both[remainder])
    #1=(add
      (add x x)
      (add (add |a b| |a b|) (add (add x quality) (add x 'a rather long constant here')))))
  #1#)

(add
  (add
    (mul again (add SWEEP(:body 'text {n}' :over n 1 2) TEXT('two' 'lines' :unended)))
    (add swept[00] swept[01]))
  (add shared (mul FILE('tinputs/ad/48103e4fc7') again)))
";

#[test]
fn a_text_survives_the_conversion_to_directories_and_back() {
    let lab = lab(WRITTEN).file("data/kept", "7\n").commit();
    let first = loaded(&lab);
    to(&lab, "directories").exit(0).shows("wrote workflow (").shows("inputs, defaults");
    assert!(!files(&lab.path("task")).keys().any(|name| name.starts_with(".ce-")));
    let kept = fs::read_link(lab.path("task/defaults/kept")).unwrap();
    assert_eq!(kept.to_str(), Some("../data/kept"));
    assert_eq!(fs::read(lab.path("task/defaults/quality")).unwrap(), b"20\n");
    let lab = lab.commit_again();
    let now = loaded(&lab);
    // The files of defaults have other places.
    assert_eq!((&now.workflow, &now.sweeps), (&first.workflow, &first.sweeps));
    assert_eq!(now.definitions, first.definitions);
    to(&lab, "text").exit(0).shows("wrote workflow.ce");
    assert_eq!(text(&lab), WRITTEN);
    assert!(
        !["workflow", "inputs", "defaults"].iter().any(|it| lab.path("task").join(it).exists())
    );
    assert!(loaded(&lab).resources.lines().eq(first.resources.lines()));
    lab.unchanged(|| to(&lab, "text").exit(0).shows("has this form already"));
}

/// Texts whose names, labels and files would lead out if they were paths.
#[test]
fn no_name_in_a_text_leads_out() {
    let texts = [
        "Inputs: x\n(add :|../../victim| x x)\n",
        "Inputs: x\n(add :|/../../../victim| x x)\n",
        "Inputs: x\n(add :|..| x :|.git| x)\n",
        "Inputs: |../../victim| = '1'\n(add |../../victim| |../../victim|)\n",
        "Inputs: |..| = '1'\n(add |..| |..|)\n",
        "Inputs: |../../victim|\n(add |../../victim| |../../victim|)\n",
        "Inputs: x = OWN('../victim')\n(add x x)\n",
        "Inputs: x\n\n|../../victim| = (add x x)\n\n(add |../../victim| |../../victim|)\n",
        "Inputs: x\n(add '../../victim' x)\n",
        "Inputs: x\n(add FILE('../../victim') x)\n",
        "Inputs: x\n(add OWN('../../victim') TREE('../../../victim'))\n",
        "Inputs: x\n(|../../victim| x)\n",
        "Inputs: x\nSWEEP('../../s' :factors/../../../victim '1' :body (add INPUT('n') x))\n",
        "Inputs: x\nSWEEP('s' :|factors/../../../../victim| '1' :body (add INPUT('n') x))\n",
        "Inputs: x\nSWEEP('s' :factors/00-n '1' '2' :|../../../victim| (add INPUT('n') x))\n",
        "Inputs: x\nSWEEP((add |../../victim| x) :over |../../victim| 1 2)\n",
        "Inputs: x\nSWEEP((add n x) :over n '../../victim' 2 :names '../../victim')\n",
    ];
    let mut written = 0;
    for source in texts {
        let lab = lab(source).commit();
        fs::write(lab.path("victim"), "precious").unwrap();
        let others = || {
            let mut all = files(&lab.path(""));
            let own = ["workflow/", "workflow.ce", "inputs", "defaults/"];
            all.retain(|name, _| !own.iter().any(|it| name.starts_with(&format!("task/{it}"))));
            all.retain(|name, _| !name.starts_with("cache/"));
            all
        };
        let (before, text_before) = (others(), text(&lab));
        let ran = to(&lab, "directories");
        let is_written = ran.status.success();
        assert!(is_written || ran.status.code() == Some(2), "{source}{}", ran.stderr);
        assert!(others() == before, "{source}{}", ran.stderr);
        if is_written {
            written += 1;
        } else {
            assert_eq!(text(&lab), text_before, "{}", ran.stderr);
            assert!(!lab.path("task/workflow").exists(), "{source}");
        }
    }
    assert!(written > 0, "some of them are plain contents of files");
}

/// Names and constants that fit in no line, and inputs that fill two.
#[test]
fn long_lines_survive_the_conversion_to_directories_and_back() {
    let (name, constant) = ("n".repeat(90), "long ".repeat(30));
    let inputs: Vec<String> = (10..40).map(|number| format!("input-{number}")).collect();
    let lines: Vec<String> = inputs.chunks(9).map(|inputs| inputs.join(", ")).collect();
    let written = format!(
        "Inputs: {}\n\n{name} = (add\n  input-10\n  input-11)\n\n(add\n  (mul\n    {name}\n    {name})\n  SWEEP(\n    \
         :body '{constant}{{n}}'\n    :over n 1 2))\n",
        lines.join(",\n  ")
    );
    let lab = lab(&written).commit();
    to(&lab, "directories").exit(0);
    let lab = lab.commit_again();
    to(&lab, "text").exit(0);
    assert_eq!(text(&lab), written);
}

#[test]
fn definitions_of_directories_name_calls() {
    let sweep = "SWEEP((add x n) :over n 1 2)";
    let text = format!("Inputs: x, y\n\nsum = (add x y)\n\nALL((mul sum sum) {sweep})\n");
    let lab = lab(&text).commit();
    to(&lab, "directories").exit(0);
    let lab = lab.commit_again();
    lab.ce_run(&["--only", "sum"]).exit(0).says("1 computed, ");
    // A definition cannot have the name of an input, a name that a sweep binds, or an empty name.
    let place = "workflow/inputs/00-product/inputs/00-a/definition";
    for (name, says) in [
        ("x\n", "\"x\" is an input of the task, and cannot be defined\n    try: rename it"),
        ("n\n", "\"n\" is bound by a sweep, and cannot be defined\n    try: rename it"),
        ("TASK\n", "\"TASK\" cannot be the name of a definition"),
    ] {
        fs::write(lab.path("task").join(place), name).unwrap();
        lab.run("ce", &["check"]).exit(2).says(&format!("{place}:1: {says}"));
    }
}

#[test]
fn convert_refuses_to_delete_files_that_git_cannot_restore() {
    let directories = || Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))").with_storage();
    let refuses = |lab: &Lab, form: &str, says: &str| {
        lab.unchanged(|| to(lab, form).exit(2).says(says));
    };
    let changed = directories().commit().file("workflow/value", "mul\n");
    refuses(&changed, "text", "these have uncommitted changes: workflow/value");
    let ignored =
        directories().file(".gitignore", "value\n").commit().file("workflow/value", "mul");
    refuses(&ignored, "text", "these have uncommitted changes: workflow/value");
    refuses(&directories(), "text", "these have uncommitted changes: inputs, workflow");
    to_forced(&changed, "text");
    assert_eq!(text(&changed), "Inputs: x, y\n\n(mul :x x :y y)\n");
    let noted = directories().file("workflow/notes", "").commit();
    refuses(&noted, "text", "the text form has no place for workflow/notes");
    let large = directories().file("defaults/x", "1\n2\n").commit();
    refuses(&large, "text", "defaults/x is neither one line of text without '");
    let more = directories().file("defaults/notes", "").commit();
    refuses(&more, "text", "the text form has no place for defaults/notes");
    let unnamed = directories().without("inputs").commit();
    refuses(&unnamed, "text", "task/inputs");
    let both = directories().file("workflow.ce", "x").commit();
    refuses(&both, "text", "workflow.ce: the task has workflow, too");
    let beside = lab("Inputs: x, y\n\n(add x y)\n").commit().file("inputs", "precious\n");
    refuses(&beside, "directories", "workflow.ce: the task has inputs, too");
    for name in ["../../victim", "/tmp/victim", ".x", "a/b"] {
        let lab = lab(&format!("Inputs: x, |{name}| = '3'\n\n(add x |{name}|)\n")).commit();
        refuses(
            &lab,
            "directories",
            "no file in defaults/ or choices/ can have the name of the input",
        );
    }
    let wrong = lab("Inputs: x\n(add x").commit();
    refuses(
        &wrong,
        "directories",
        "workflow.ce:2: the expression that begins at 2:1 is not closed",
    );
    let unlabelled = lab("Inputs: x, y\n(add x nothing)").commit();
    refuses(&unlabelled, "directories", "workflow.ce:2: the task has no input \"nothing\"");
    let open =
        Lab::task("Inputs: 'x', 'y'\nSWEEP(:body (add INPUT('i') INPUT('x')) :points INPUT('y'))");
    refuses(&open.with_storage().commit(), "text", "has no file names");
    let none = Lab::empty().file("computations/note", "").with_storage().commit();
    refuses(&none, "text", "holds no task");
    let named_twice =
        Lab::task("Inputs: 'x'\n(add (mul INPUT('x') INPUT('x')) (add INPUT('x') INPUT('x')))");
    let named_twice = named_twice
        .file("workflow/inputs/00-mul/definition", "twice\n")
        .file("workflow/inputs/01-add/definition", "twice\n")
        .with_storage()
        .commit();
    refuses(&named_twice, "text", "give the name \"twice\" to different nodes");
    to_forced(&named_twice, "text");
    assert_eq!(
        text(&named_twice),
        "Inputs: x\n\ntwice = (mul :x x :x x)\n\n(add :mul twice :add (add :x x :x x))\n"
    );
    let uncommitted =
        lab("Inputs: x, y\n\n(add x y)\n").commit().file("workflow.ce", "Inputs: x\n\n(add x x)\n");
    refuses(&uncommitted, "directories", "these have uncommitted changes: workflow.ce");
    to_forced(&uncommitted, "directories");
    assert_eq!(files(&uncommitted.path("task/workflow")).len(), 6);
}

fn to_forced(lab: &Lab, form: &str) {
    lab.run("ce", &["convert", "--force", "--to", form]).exit(0);
}

#[test]
fn missing_computations_and_files_are_converted_and_reported() {
    let text = "Inputs: x, y\n(ad (later x)[00, 01]\n    (mul OWN('data/later') (later OWN('inputs'))[00]))[00]";
    let lab = lab(text).commit();
    lab.run("ce", &["check"]).exit(2).complains("text/not-yet.txt");
    to(&lab, "directories").exit(0);
    assert!(lab.path("task/workflow/inputs/00_01-later/inputs/00-x").exists());
    // A computation that cannot be read is not known.
    let lab = Lab::empty().file("computations/odd/outputs", b"\xff").commit();
    let pipe = Never::new(lab.path("task/computations/odd/inputs"));
    let lab = lab.one_text("Inputs: x\n(odd x)");
    to_forced(&lab, "directories");
    assert!(lab.path("task/workflow/inputs/00-x").exists());
    drop(pipe);
}

#[test]
fn a_text_that_is_not_a_plain_file_of_the_task_is_not_read() {
    let directories = || Lab::empty().file("computations/note", "").with_storage().commit();
    for (target, says) in [("/dev/zero", "leads out of the repository"), ("gone", "does not exist")]
    {
        let lab = directories().link("workflow.ce", target);
        to(&lab, "directories").exit(2).says(&format!("workflow.ce: {says}"));
    }
    let lab = directories();
    let pipe = Never::new(lab.path("task/workflow.ce"));
    to(&lab, "directories").exit(2).says("workflow.ce: is not a file");
    drop(pipe);
    let lab = lab.without("workflow.ce").file("workflow.ce", "");
    let text = fs::File::options().write(true).open(lab.path("task/workflow.ce")).unwrap();
    text.set_len((64 << 20) + 1).unwrap();
    to(&lab, "directories").exit(2).says("workflow.ce: cannot be read: more than 64 MiB");
}

#[test]
fn a_task_is_converted_from_within_it() {
    let lab = lab("Inputs: x\n(add OWN('data/constant') x)").file("data/constant", "3\n").commit();
    lab.run("ce", &["convert", "--to", "directories", "--task", "data"]).exit(0);
    let lab = lab.commit_again();
    // The link goes, and the target of it stays.
    fs::rename(lab.path("task/workflow"), lab.path("task/real")).unwrap();
    let lab = lab.link("workflow", "real").commit_again();
    lab.run("ce", &["convert", "--to", "text", "--task", "data"]).exit(0);
    assert!(lab.path("task/real/inputs/00-a/kind").exists());
    assert!(!lab.path("task/workflow").exists());
    // A task within a task is not the one around it.
    let lab = lab.file("sub/workflow.ce", "Inputs: x\n(f x)[00]").commit_again();
    lab.run("ce", &["convert", "--to", "directories", "--task", "sub"]).exit(0);
    assert!(lab.path("task/sub/workflow/kind").exists());
}
