//! Calls are listed by time, and failures marked.

use crate::arith::Arith;

#[test]
fn calls_are_listed_and_filtered() {
    let arith = Arith::evaluated();
    assert_eq!(arith.evaluate_with("0\n").code, 1);
    let log = |options: &[&str]| {
        let listed = arith.ce(&[&["log"], options, &["results"]].concat());
        assert_eq!((listed.code, listed.err.as_str()), (0, ""));
        listed.out
    };
    let all = log(&[]);
    assert_eq!(all.lines().count(), 6, "{all}");
    assert!(all.lines().is_sorted_by_key(|line| line.split(' ').next()), "{all}");
    let failed = log(&["--failed"]);
    assert!(failed.contains("  FAILED: it ended with exit status 1\n"), "{failed}");
    assert!(failed.contains("  ad48103e4fc7_09d2af8dd222  "), "{failed}");
    assert_eq!(failed.lines().count(), 1, "{failed}");
    assert_eq!(log(&["--computation", "add"]).lines().count(), 2);
    // Columns are as wide as what they show.
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let last: Vec<_> = log(&["-n", "2"]).lines().map(words).collect();
    assert_eq!(last, all.lines().skip(4).map(words).collect::<Vec<_>>());
    assert_eq!(log(&["--slow", "3600"]), "");
    let commit = arith.name("c_add/COMMIT/");
    let commit = commit.trim_start_matches("c_add/").trim_end_matches('/');
    assert_eq!(log(&["--commit", &commit[..7]]), all);
    assert_eq!(log(&["--commit", "none"]), "");
    assert_eq!(arith.ce(&["log", "nowhere"]).code, 5);
}
