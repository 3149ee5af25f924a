//! Levels and rows that are easily mistaken: empty texts, cleared rows, ranges in quotes, and comments that look like code.

use std::fs;

use crate::lab::Lab;

fn lab(sweep: &str) -> Lab {
    let text = format!("join: a b -> y\n    echo $(cat $in_a)/$(cat $in_b) > $out_y\n\n{sweep}\n");
    Lab::empty().one_text(&text)
}

fn table(lab: &Lab) -> String {
    let ran = lab.run("ce-run", &["--no-sync", "-q", "../storage"]).exit(0);
    lab.stored(ran.stdout.trim_end())
}

#[test]
fn cleared_rows_at_the_end_of_a_sheet_are_left_out_with_a_warning() {
    let told = "2 rows at the end have empty cells only, and are left out";
    let lab = lab("SWEEP((join a b) OWN('s.csv') :names 'a' 'b')");
    let lab = lab.file("s.csv", "a,b\r\n007,L1\r\n,\r\n,\r\n").commit();
    lab.run("ce", &["check"]).exit(0).says(told).shows("1 call");
    lab.run("ce-run", &["--no-sync", "../storage"]).exit(0).says(told);
    assert_eq!(table(&lab), "{\"a\":\"007\",\"b\":\"L1\",\"y\":\"007/L1\"}\n");
    let one = "Inputs: a, b\n\njoin: a b -> y\n    cat $in_a $in_b > $out_y\n\n(join a b)\n";
    let lab = lab.one_text(one).commit_again();
    let ran = lab.run("ce-run", &["--no-sync", "--points", "s.csv", "../storage"]).exit(0);
    ran.says(told).says("1 job, one for each point");
}

#[test]
fn the_empty_text_is_a_level_in_a_text_a_list_a_sheet_and_an_option() {
    let expected = "{\"a\":\"\",\"y\":\"/x\"}\n{\"a\":\"b\",\"y\":\"b/x\"}\n";
    let written = lab("SWEEP((join a 'x') :over a '' 'b')").commit();
    assert_eq!(table(&written), expected);
    written.to_directories().exit(0);
    let list = fs::read_to_string(written.path("task/workflow/factors/00-a")).unwrap();
    assert_eq!(list, "''\nb\n");
    let written = written.commit_again();
    assert_eq!(table(&written), expected);
    written.run("ce", &["convert", "--to", "text"]).exit(0);
    let text = fs::read_to_string(written.path("task/workflow.ce")).unwrap();
    assert!(text.contains(":over a '' 'b'"), "{text}");

    let sheet = lab("SWEEP((join a 'x') OWN('s.csv') :names 'a')");
    assert_eq!(table(&sheet.file("s.csv", "a\n\"\"\nb\n").commit()), expected);
    let rows = lab("SWEEP((join a b) :over ('a' 'b') ('' 'b') ('' ''))").commit();
    rows.to_directories().exit(0);
    assert_eq!(table(&rows.commit_again()).lines().count(), 2);

    let one = "Inputs: a, b\n\njoin: a b -> y\n    cat $in_a $in_b > $out_y\n\n(join a b)\n";
    let lab = Lab::empty().one_text(one).commit();
    let each =
        |texts: &str| lab.run("ce-run", &["--no-sync", "--each", texts, "-p", "b=x", "../storage"]);
    each("a=1,''").exit(0).says("2 jobs, one for each point");
    each("a=1,").exit(2).says("text 2 is empty; write one, or '' in quotes for the empty text");
}

#[test]
fn ce_check_warns_of_levels_and_comments_that_look_like_something_else() {
    for (sweep, told) in [
        ("SWEEP((join a 'x') :over a 1-3)", "\"1-3\" is one level, and no range"),
        ("SWEEP((join a 'x') :over a '1..3')", "\"1..3\" is one level, and no range"),
        ("SWEEP((join a 'x') :over a 1 2 ; :replicates 3\n)", "what stands behind ; is a comment"),
        ("SWEEP((join a 'x') :over a 1 ;(join a a)\n)", "what stands behind ; is a comment"),
        ("SWEEP((join a 'x') :over a '\u{e9}' 'e\u{301}')", "\"\u{e9}\" and \"e\\u{301}\" of a"),
    ] {
        let lab = lab(sweep).commit();
        lab.run("ce", &["check"]).exit(0).says(told);
    }
    for sweep in [
        "SWEEP((join a 'x') :over a 1-3 4-6)",
        "SWEEP((join a 'x') :over a 2024-01)",
        "SWEEP((join a 'x') :over a 1..3)",
        "SWEEP((join a 'x') ; a and its x (for now)\n  :over a 1 2)",
        "; (join 'a' 'b')\n(join 'a' 'x')",
    ] {
        let ran = lab(sweep).commit().run("ce", &["check"]).exit(0).stderr.clone();
        assert_eq!(ran, "", "{sweep}");
    }
}
