//! Tasks that are wrong, each in a way or two.

use std::fs;

use crate::lab::{Lab, Library};
use crate::repository;

const BASE: &str = "(add (mul INPUT('x') INPUT('stop words'))[0] INPUT('x'))[0]";

/// The name of a golden file, a workflow, and what is changed in its task: `- PATH` removes,
/// `PATH = TEXT` writes, `PATH -> TARGET` links, `PATH => NAME` renames.
const CHANGES: &[(&str, &str, &[&str])] = &[
    ("missing", BASE, &["- inputs", "- workflow/inputs/01-x/kind", "- workflow/inputs/01-x/value"]),
    ("missing-value", BASE, &["- workflow/value", "- workflow/inputs/00-mul/kind"]),
    (
        "missing-in-the-library",
        BASE,
        &["- computations/add/inputs", "- computations/add/outputs", "- computations/mul/exec"],
    ),
    (
        "not-a-file",
        BASE,
        &[
            "- workflow/inputs/00-mul/value",
            "workflow/inputs/00-mul/value/file = ",
            "- computations/add/exec",
            "computations/add/exec/file = ",
            "computations/add/outputs = sum\n\nrest\n",
        ],
    ),
    (
        "access",
        BASE,
        &["computations/add/access = # all of it is wrong\nnet\nread opt/tool\n\
           write /a/../b\nenv 1\nnetwork of the host\ndevice /etc/passwd\n"],
    ),
    (
        "resources",
        BASE,
        &["resources = mul speed 3\n", "workflow/resources = cpu 4\nexclusive please\n"],
    ),
    (
        "access-of-inputs",
        BASE,
        &[
            "computations/add/inputs = system\ntools\n",
            "computations/add/access = root sytem\nroot system\n# another one\nroot tools\n\
             path tools\npath nothing\npath\n",
            "computations/mul/inputs = a\na\n",
            "computations/mul/access = path a\n",
        ],
    ),
    ("exec-elsewhere", BASE, &["- computations/add/exec", "computations/add/exec -> ../mul/exec"]),
    ("not-a-directory", BASE, &["- workflow/inputs", "workflow/inputs = "]),
    ("link-to-a-file", BASE, &["- workflow/inputs/01-x", "workflow/inputs/01-x -> ../kind"]),
    (
        "empty",
        BASE,
        &[
            "workflow/value = ",
            "workflow/outputs = 0\n\n0\n",
            "workflow/inputs/00-mul/value = \n\nadd\n",
        ],
    ),
    (
        "kind",
        BASE,
        &["workflow/inputs/00-mul/kind = compuation", "workflow/inputs/01-x/kind = Input"],
    ),
    (
        "tree",
        BASE,
        &[
            "workflow/inputs/00-mul/kind = tree",
            "workflow/inputs/00-mul/value = lib:",
            "workflow/inputs/01-x/kind = tree",
            "workflow/inputs/01-x/value = lib",
            "workflow/inputs/01-x/outputs = 0\n2\n",
        ],
    ),
    (
        "tree-without-commit",
        BASE,
        &["workflow/inputs/01-x/kind = tree", "workflow/inputs/01-x/value = lib"],
    ),
    (
        "revisions",
        BASE,
        &["workflow/inputs/00-mul/kind = tree", "workflow/inputs/00-mul/value = lib"],
    ),
    (
        "file",
        BASE,
        &[
            "workflow/inputs/00-mul/inputs/00-x/kind = file",
            "workflow/inputs/00-mul/inputs/00-x/value = ../x",
            "workflow/inputs/01-x/kind = file",
            "workflow/inputs/01-x/value = computations/none",
        ],
    ),
    (
        "name-of-a-computation",
        BASE,
        &["workflow/value = ../add", "workflow/inputs/00-mul/value = .."],
    ),
    ("empty-line-in-the-inputs", BASE, &["inputs = x\n\nstop words\n"]),
    (
        "names-of-outputs",
        BASE,
        &[
            "computations/add/inputs = a\tb\nc/d\n",
            "computations/add/outputs = x/../../../victim\n../\nright/\n",
            "computations/mul/outputs = ./\n/product\n",
        ],
    ),
    ("inputs-of-the-same-name", BASE, &["inputs = x\nstop words\nx\n"]),
    ("names-of-definitions", BASE, &["workflow/definition = right\nx\nTASK\n"]),
    (
        "definition-that-a-sweep-binds",
        BASE,
        &[
            "workflow/definition = n\n",
            "- workflow/inputs/01-x/value",
            "workflow/inputs/01-x/kind = sweep\n",
            "workflow/inputs/01-x/factors/00-n = 1\n2\n",
            "workflow/inputs/01-x/inputs/00-body/kind = input\n",
            "workflow/inputs/01-x/inputs/00-body/value = n\n",
        ],
    ),
    ("control-character-in-an-input", BASE, &["inputs = x\nstop\twords\n"]),
    (
        "name-of-a-literal",
        "(add FILE('a') (add FILE('a') (add FILE('a') FILE('a'))[0])[0])[0]",
        &[
            "workflow/inputs/00-file/value = /etc/x",
            "workflow/inputs/01-add/inputs/00-file/value = a/../../b",
            "workflow/inputs/01-add/inputs/01-add/inputs/00-file/value = ./a",
            "workflow/inputs/01-add/inputs/01-add/inputs/01-file/value = a\tb",
        ],
    ),
    (
        "no-computation",
        BASE,
        &["workflow/value = ad", "workflow/inputs/00-mul/value = exponential"],
    ),
    ("no-input", BASE, &["inputs = z\nstop word\n"]),
    ("no-input-at-all", BASE, &["inputs = ", "workflow/inputs/01-x/value = something else"]),
    (
        "places",
        "(take7 INPUT('x') INPUT('x'))[0]",
        &[
            "workflow/inputs/00_1-short -> 00-x",
            "workflow/inputs/none -> 00-x",
            "workflow/inputs/01-again -> 00-x",
            "workflow/inputs/04_03-backwards -> 00-x",
            "workflow/inputs/06-after-a-gap -> 00-x",
        ],
    ),
    (
        "width",
        "(take3 (take1 INPUT('x'))[0, 1])[0]",
        &["workflow/inputs/00_01-take1 => 00_02-take1"],
    ),
    ("arity", "(take3 INPUT('x') INPUT('x') INPUT('x') (take7)[0])[0]", &[]),
    ("slice", "(take1 INPUT('x'))[0]", &["workflow/outputs = 0\n1st\n-1\n+1\n100\n99999\n01\n"]),
    ("out-of-slice", "(take1 (take1 INPUT('x'))[2])[0, 2, 01, 99]", &[]),
    ("slice-of-nothing", "(take1 INPUT('x'))[0]", &["workflow/outputs = \n"]),
    (
        "cycle",
        BASE,
        &[
            "- workflow/inputs/00-mul/inputs/00-x",
            "workflow/inputs/00-mul/inputs/00-all -> ../../..",
            "- workflow/inputs/01-x",
            "workflow/inputs/01-x -> ..",
        ],
    ),
    ("outside", BASE, &["- workflow/inputs/01-x", "workflow/inputs/01-x -> /usr"]),
    ("link-to-nothing", BASE, &["- workflow/inputs/01-x", "workflow/inputs/01-x -> nothing"]),
    ("link-to-itself", BASE, &["- workflow/inputs/01-x", "workflow/inputs/01-x -> 01-x"]),
];

fn change(lab: Lab, change: &str) -> Lab {
    if let Some(path) = change.strip_prefix("- ") {
        lab.without(path)
    } else if let Some((path, target)) = change.split_once(" -> ") {
        lab.link(path, target)
    } else if let Some((path, name)) = change.split_once(" => ") {
        lab.rename(path, name)
    } else {
        let (path, text) = change.split_once(" = ").unwrap();
        lab.file(path, text)
    }
}

/// A task that is right, with computations `takeN` of so many inputs beside the usual ones.
pub(super) fn right(workflow: &str) -> Lab {
    let mut lab = Lab::task(&format!("Inputs: 'x', 'stop words'\n{workflow}"));
    for (name, inputs) in [("take1", "a"), ("take3", "a b c"), ("take7", "a b c d e f g")] {
        lab = lab.computation(name, inputs, "one two", "exit 1");
    }
    lab
}

pub(super) fn base() -> Lab {
    right(BASE)
}

/// All tasks that are wrong, by the names of their golden files.
pub(super) fn tasks() -> Vec<(&'static str, Lab)> {
    let changed = |(name, workflow, changes): &(&'static str, &str, &[&str])| {
        let lab = changes.iter().fold(right(workflow), |lab, line| change(lab, line));
        (*name, lab.commit())
    };
    let mut tasks: Vec<_> = CHANGES.iter().map(changed).collect();
    tasks.extend(unreadable());
    tasks.extend(with_a_wrong_repository());
    tasks
}

fn unreadable() -> [(&'static str, Lab); 3] {
    let hundred_and_one: String = (0..=100).map(|n| format!("{n}\n")).collect();
    let unreadable = base()
        .file("workflow/value", "x".repeat((1 << 20) + 1))
        .file("workflow/inputs/01-x/kind", b"\xfe\xff");
    let library = base()
        .file("computations/add/outputs", &hundred_and_one)
        .mode("computations/mul/exec", 0o644);
    let files = base()
        .file("computations/add.py", "#CE inputs a b\n")
        .mode("computations/add.py", 0o755)
        .without("computations/mul")
        .file("computations/mul.sh", "#!/bin/sh\n#CE inputs a b\n#CE output product\n")
        .mode("computations/mul.sh", 0o755);
    [
        ("unreadable", unreadable.commit()),
        ("library", library.commit()),
        ("library-of-files", files.commit()),
    ]
}

fn with_a_wrong_repository() -> [(&'static str, Lab); 6] {
    let unborn = base();
    repository::init(&unborn.path("task"));
    let spoiled = base().commit();
    fs::write(spoiled.path("task/.git/HEAD"), "nonsense\n").unwrap();
    let new = base().commit().computation("new", "a b", "c", "exit 1");
    let submodule = base().commit_with(Library::Submodules);
    fs::remove_file(submodule.path("task/computations/mul/.git")).unwrap();
    fs::remove_dir_all(submodule.path("task/.git/modules/computations/mul")).unwrap();
    let library = base().commit_with(Library::Submodule).without("computations");
    fs::create_dir(library.path("task/computations")).unwrap();
    fs::remove_dir_all(library.path("task/.git/modules")).unwrap();
    [
        ("no-repository", base()),
        ("unborn", unborn),
        ("spoiled-repository", spoiled),
        ("not-committed", new.file("workflow/value", "new")),
        ("submodule-not-checked-out", submodule),
        ("library-not-checked-out", library),
    ]
}
