//! Wrong arguments: each gets one error in plain words, which says what is wrong and what to write.

use crate::lab::Lab;

/// What is typed after `ce`, and what the error says.
const MISTAKES: [(&[&str], &str); 12] = [
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
];

/// What libraries say, and nobody else understands.
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
fn a_wrong_argument_is_told_in_plain_words() {
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
fn who_closes_standard_output_does_not_change_the_exit_code() {
    let lab =
        Lab::task("Inputs: 'x'\n(fail INPUT('x'))[0]").computation("fail", "a", "b", "exit 7");
    let lab = lab.data("x", "x").commit();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut run = lab.command("ce-run");
    lab.finish(run.args(["../storage", "../data/x"]).stdout(writer)).exit(1).says("1 failed");
}
