//! Faults at any operation of a run: the next one makes the same table.

use std::fs;

use super::sweep;
use crate::faults::stride;
use crate::lab::Lab;

/// A figure of a sweep with computed points; one of them fails.
fn lab() -> Lab {
    sweep("", &[])
        .without("workflow")
        .computation("lines", "table", "count", r#"grep -c . "$1" >"$2""#)
        .computation("derive", "", "points", r#"printf 'n\n1\n2\n3\n' >"$1""#)
        .computation("half", "n", "half", r#"[ "$(cat "$1")" != 3 ] || exit 1; cp "$1" "$2""#)
        .node("", "computation", "lines")
        .node("inputs/00-table/", "sweep", "")
        .file("workflow/inputs/00-table/allow-failed", "")
        .call("inputs/00-table/inputs/00-body/", "half", &["n"])
        .node("inputs/00-table/inputs/01-points/", "computation", "derive")
        .commit()
}

const TABLE: &[u8] = b"{\"n\":1,\"half\":1,\"status\":\"ok\"}\n\
    {\"n\":2,\"half\":2,\"status\":\"ok\"}\n\
    {\"n\":3,\"half\":null,\"status\":\"failed\"}\n";

#[test]
fn a_run_that_fails_or_dies_at_any_operation_leaves_no_other_table() {
    let lab = lab();
    let faults = [":KILL", ":ENOSPC", ":EIO"];
    for (at, fault) in (1..).step_by(stride(10)).zip(faults.iter().cycle()) {
        drop(fs::remove_dir_all(lab.path("storage")));
        let fault = format!("{at}{fault}");
        let ran = lab.finish(lab.evaluation(&["-j1"]).env("CE_FAULT", &fault));
        let tables = || {
            let results = lab.results().into_iter();
            let mut tables =
                results.filter(|(name, _)| name.starts_with("tables/") && name.ends_with("/00"));
            let table = tables.next().map(|(_, contents)| contents);
            assert!(tables.next().is_none(), "one table after {fault}");
            table
        };
        assert!(tables().is_none_or(|table| table == TABLE), "a half table after {fault}");
        if !ran.stderr.contains("fault at operation") && ran.status.code() == Some(0) {
            assert!(at > 50, "{at} operations were tried");
            return;
        }
        let next = lab.ce_run(&["-j2"]);
        assert_eq!(next.status.code(), Some(0), "after {fault}\n{}", next.stderr);
        assert_eq!(tables().as_deref(), Some(TABLE), "after {fault}");
        assert_eq!(lab.output(), "3\n");
        assert!(lab.is_tidy(), "after {fault}: {:?}", lab.storage());
    }
}
