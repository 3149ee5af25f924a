//! The names of results with many inputs, or with hashes that collide.

use std::fs;

use crate::lab::Lab;

/// Their SHA-1s are the same in the first twelve digits.
const ONE: &str = "input 11405692\n";
const OTHER: &str = "input 27966124\n";

/// The digits that the SHA-1s of "17\n" and "5\n" begin with.
const X: &str = "ad48103e4fc7";
const Y: &str = "5d9474c0309b";

/// A task that calls one computation with this number of inputs.
fn many(count: usize) -> Lab {
    let arguments = ["INPUT('x')", "INPUT('y')"].into_iter().cycle().take(count);
    let arguments: Vec<&str> = arguments.collect();
    let names: Vec<String> = (0..count).map(|n| format!("input-{n}")).collect();
    Lab::task(&format!("Inputs: 'x', 'y'\n(join {})[0]", arguments.join(" ")))
        .computation(
            "join",
            &names.join(" "),
            "all",
            r#"for path; do [ ! -e "$path" ] || cat "$path"; done >all; mv all "$path""#,
        )
        .commit()
}

#[test]
fn a_name_shows_all_inputs_and_goes_on_in_a_directory_after_the_19th() {
    let shown = [X, Y].repeat(20);
    for (count, places) in [
        (19, vec![shown[..19].join("_")]),
        (20, vec![shown[..19].join("_") + "_", shown[19..20].join("_")]),
        (
            39,
            vec![
                shown[..19].join("_") + "_",
                shown[19..38].join("_") + "_",
                shown[38..39].join("_"),
            ],
        ),
    ] {
        let lab = many(count);
        lab.ce_run(&[]).exit(0).called(vec!["join"]);
        lab.ce_run(&[]).exit(0).called(vec![]);
        let path = lab.ce_run(&["-n", "-q"]).exit(0).stdout;
        assert!(path.ends_with(&format!("/00/{}\n", places.join("/"))), "{path}");
        assert_eq!(
            lab.output(),
            ["17\n", "5\n"].into_iter().cycle().take(count).collect::<String>()
        );
    }
    // There can be a hundred.
    let lab = many(100);
    lab.ce_run(&[]).exit(0).called(vec!["join"]);
    lab.ce_run(&[]).exit(0).called(vec![]);
    assert_eq!(lab.output(), "17\n5\n".repeat(50));
}

/// A task whose inputs collide, and whose calls then do.
fn colliding() -> Lab {
    Lab::task("Inputs: 'one', 'other'\n(both (copy INPUT('one'))[0] (copy INPUT('other'))[0])[0]")
        .computation("copy", "a", "a", r#"cat "$1" >"$2""#)
        .computation("both", "a b", "both", r#"cat "$1" "$2" >"$3""#)
        .data("one", ONE)
        .data("other", OTHER)
        .commit()
}

#[test]
fn inputs_that_collide_are_told_apart() {
    for jobs in ["-j1", "-j2"] {
        let lab = colliding();
        lab.ce_run(&[jobs]).exit(0).called(vec!["both", "copy", "copy"]);
        assert_eq!(lab.output(), format!("{ONE}{OTHER}"));
        let before = lab.results();
        lab.ce_run(&[jobs]).exit(0).called(vec![]);
        assert_eq!(lab.results(), before);
        let copies: Vec<_> =
            before.iter().filter(|(name, _)| name.starts_with("c_copy/")).collect();
        let lengths: Vec<_> =
            copies.iter().map(|(name, _)| name.rsplit('/').next().unwrap().len()).collect();
        assert_eq!(lengths, [12, 40], "{copies:?}");
    }
}

#[test]
fn outputs_that_collide_are_told_apart() {
    for jobs in ["-j1", "-j2"] {
        let lab = Lab::task("Inputs: 'n', 'm'\n(both (copy (say INPUT('n'))[0])[0] (copy (say INPUT('m'))[0])[0])[0]")
            .computation("say", "n", "text", r#"echo "input $(cat "$1")" >"$2""#)
            .computation("copy", "a", "a", r#"cat "$1" >"$2""#)
            .computation("both", "a b", "both", r#"cat "$1" "$2" >"$3""#)
            .data("n", "11405692\n")
            .data("m", "27966124\n")
            .commit();
        lab.ce_run(&[jobs]).exit(0).called(vec!["both", "copy", "copy", "say", "say"]);
        lab.ce_run(&[jobs]).exit(0).called(vec![]);
        assert_eq!(lab.output(), format!("{ONE}{OTHER}"));
    }
}

#[test]
fn a_colliding_name_overwrites_nothing() {
    let lab = Lab::task("Inputs: 'a'\n(copy INPUT('a'))[0]")
        .computation("copy", "a", "a", r#"cat "$1" >"$2""#)
        .commit();
    for (contents, called) in
        [(ONE, vec!["copy"]), (OTHER, vec!["copy"]), (ONE, vec![]), (OTHER, vec![])]
    {
        fs::write(lab.path("data/a"), contents).unwrap();
        lab.ce_run(&[]).exit(0).called(called);
        assert_eq!(lab.output(), contents);
    }
    let jobs: Vec<_> =
        lab.results().into_iter().filter(|(name, _)| name.starts_with("t_")).collect();
    let contents: Vec<_> = jobs.iter().map(|(_, contents)| contents).collect();
    assert_eq!(contents, [ONE.as_bytes(), OTHER.as_bytes()], "{jobs:?}");
}

#[test]
fn the_number_of_jobs_changes_neither_output_nor_storage() {
    let text = "Inputs: 'x', 'y', 'z'
        (add (divmod (add (mul INPUT('x') INPUT('x'))[0] (mul INPUT('y') INPUT('z'))[0])[0]
                     (add INPUT('y') INPUT('z'))[0])[01, 00])[0]";
    let results = ["-j1", "-j2", "-j4"].map(|jobs| {
        let lab = Lab::task(text).commit();
        let printed = lab.ce_run(&[jobs]).exit(0).stdout;
        (lab.results(), printed)
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
    assert!(results[0].0.len() > 10);
}
