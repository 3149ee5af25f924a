//! The tree in words, as terminals show it.

use std::fs;

use crate::lab::Lab;
use crate::program::Ran;

/// `ce-run --style words`; how long a call took, and where its outputs are, is left out.
fn words(lab: &Lab, arguments: &[&str]) -> String {
    let ran = lab.finish(&mut lab.evaluation(&[&["--style", "words"], arguments].concat()));
    let line = |line: &str| {
        let (line, time) = match line.split_once("  computed ") {
            Some((line, time)) => (line, Some(time)),
            None => (line, None),
        };
        if let Some(time) = time {
            assert!(time.ends_with(" s") || time.ends_with("ms") || time.ends_with("µs"), "{time}");
        }
        let words = line.split(' ').map(|word| if word.contains('/') { "PATH" } else { word });
        let line = words.collect::<Vec<_>>().join(" ");
        if time.is_some() { format!("{line}  computed TIME\n") } else { format!("{line}\n") }
    };
    ran.stdout.lines().map(line).collect()
}

fn lab() -> Lab {
    Lab::task("Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] FILE('four'))[0]").commit()
}

const TREE: &str = "        x: INPUT('x') PATH
        y: INPUT('y') PATH
    mul (mul)@mul
    `> product: PATH
    file: FILE('four') PATH
add (TASK)@add
`> sum: PATH

Task outputs are:
    PATH
";

/// The tree with the states of its two calls.
fn tree(mul: &str, add: &str) -> String {
    TREE.replace("@mul", mul).replace("@add", add)
}

#[test]
fn each_line_of_a_call_tells_its_outcome() {
    let lab = lab();
    fs::create_dir_all(lab.path("storage/tinputs")).unwrap();
    let foreseen = words(&lab, &["-n"]);
    assert!(foreseen.contains("x') PATH  to be stored\n"), "no alarm: {foreseen}");
    let missing = words(&lab, &[]);
    assert!(missing.contains("four') PATH  missing\n"), "{missing}");
    assert!(missing.contains("`* not computed: an input is missing"), "{missing}");
    fs::write(lab.path("storage/four"), "4\n").unwrap();
    assert_eq!(words(&lab, &[]), tree("  reused", "  computed TIME"));
    assert_eq!(words(&lab, &[]), tree("  reused", "  reused"));
    let lab = lab.computation("mul", "a b", "product", "exit 7").commit_again();
    let foreseen = words(&lab, &["-n"]);
    assert!(foreseen.contains("mul (mul)  to be computed\n"), "{foreseen}");
    let failed = words(&lab, &[]);
    assert!(failed.contains("mul (mul)\n"), "a failure has no other state: {failed}");
    assert!(failed.contains("`* FAILED: it ended with exit status 7\n"), "{failed}");
    assert!(failed.ends_with("    PATH  missing\n"), "{failed}");
}

#[test]
fn terminal_and_environment_decide_about_colours() {
    let lab = lab();
    let run = |variables: &[(&str, &str)]| -> Ran<'_> {
        let mut command = lab.evaluation(&["-n", "--style", "words"]);
        lab.finish(command.envs(variables.iter().copied()))
    };
    let escape = |ran: &Ran<'_>| ran.stdout.contains('\u{1b}');
    assert!(!escape(&run(&[])), "a pipe has no colours");
    assert!(escape(&run(&[("CLICOLOR_FORCE", "1")])));
    assert!(!escape(&run(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")])));
}

#[test]
fn the_style_is_a_setting_that_an_option_overrides() {
    let lab = lab();
    lab.git("task", &["config", "compeval.style", "words"]);
    lab.ce_run(&["-n"]).exit(3).shows("  to be computed\n");
    lab.ce_run(&["-n", "--style", "original"]).exit(3).shows(" MISSING\n");
    lab.git("task", &["config", "compeval.style", "loud"]);
    lab.ce_run(&["-n"]).exit(2).says("is \"loud\", which is not a style: write original or words");
}
