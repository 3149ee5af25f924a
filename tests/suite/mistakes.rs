//! Wrong arguments: each gets one error in plain words, with the mistake and the correct form.

use crate::lab::Lab;
use crate::program::{self, Ran};

/// The arguments after `ce`, and the text of the error.
const MISTAKES: [(&[&str], &str); 16] = [
    (&["run", "-j", "0"], "'--jobs <N>': write a whole number from 1"),
    (&["run", "-j", "many"], "'--jobs <N>': write a whole number from 1"),
    (&["run", "--retry", "1.5"], "'--retry <N>': write a whole number from 0"),
    (&["run", "--timeout", "5x"], "write a number and its unit, such as 90s, 10min or 1h30min"),
    (&["run", "--at", "nope"], "because: no branch, tag or commit is called nope\n"),
    (&["run", "--at", "HEAD~9"], "because: HEAD is there, and has no such ancestor\n"),
    (
        &["run", "--at", "00000000"],
        "because: 00000000 is the beginning of no commit, or of several",
    ),
    (&["worker", "--idle", "soon", "../storage"], "write a number and its unit"),
    (&["log", "-n", "few", "../storage"], "write a whole number from 0"),
    (&["log", "--slow", "very", "../storage"], "write a number of seconds, or one with its unit"),
    (&["verify", "--sample", "all", "../storage"], "write a number above 0 and up to 100"),
    (&["push", "--limit", "1Q", "../storage"], "is not a size with its unit K, M, G or T"),
    (&["manifest", "../data"], "tip: it is ce show --manifest now\n"),
    (&["write", "../data"], "tip: it is ce convert --to directories now\n"),
    (&["forget", "../storage", "c_add/0123/_"], "tip: it is ce cancel --forget now\n"),
    (&["show", "--manifest", "../storage", "../data"], "'--manifest' cannot be used with"),
];

/// Words of libraries that nobody else understands.
const FOREIGN: [&str; 7] = [
    "non-zero type",
    "invalid digit",
    "friendly",
    "delegate.",
    "couldn't parse",
    "invalid float",
    "NotFound",
];

#[test]
fn a_wrong_argument_is_reported_in_plain_words() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))[0]").commit();
    for (arguments, told) in MISTAKES {
        let inputs: &[&str] = match arguments[0] {
            "run" => &["../storage", "../data/x", "../data/y"],
            _ => &[],
        };
        let ran = lab.run("ce", &[arguments, inputs].concat()).exit(2).says(told);
        for foreign in FOREIGN {
            assert!(!ran.stderr.contains(foreign), "{arguments:?}: {}", ran.stderr);
        }
    }
    assert!(!lab.path("storage").exists(), "a mistake makes no storage");
}

#[test]
fn in_a_directory_that_was_deleted_every_error_says_so() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))[0]").commit();
    lab.ce_run(&[]).exit(0);
    lab.git(".", &["init", "--quiet", "--bare", "results.git"]);
    let place = |name: &str| lab.path(name).display().to_string();
    let [storage, task, results] = ["storage", "task", "results.git"].map(place);
    // In a directory that is there, the mirror is made.
    lab.run("ce", &["push", &storage, &results]).exit(0);
    let commands: [&[&str]; 10] = [
        &["check"],
        &["check", "--task", &task],
        &["run", &storage],
        &["run", "../storage", "../data/x", "../data/y"],
        &["commits", "."],
        &["init"],
        &["status"],
        &["pull", &place("mine"), &results],
        &["push", &storage, &results],
        &["gc", &storage],
    ];
    for command in commands {
        let ran = from_nowhere(&lab, command);
        assert!(!ran.status.success(), "{command:?}: {}", ran.stderr);
        let hint = "  try: cd to a directory that exists: the current one was deleted\n";
        assert!(ran.stderr.ends_with(hint), "{command:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches("try: ").count(), 1, "{command:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("damaged"), "{command:?}: {}", ran.stderr);
    }
    // Commands that need no directory of that kind work as ever, and nothing was lost.
    from_nowhere(&lab, &["log", &storage]).exit(0).shows("add");
    lab.run("ce", &["push", &storage, &results]).exit(0).shows("nothing is new");
}

/// Runs `ce` in a directory that does not exist any more.
fn from_nowhere<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    let mut shell = program::through(
        &["sh", "-c", "mkdir ../gone && cd ../gone && rmdir ../gone && exec \"$@\"", "sh"],
        lab.command("ce").args(arguments),
    );
    lab.finish(&mut shell)
}
