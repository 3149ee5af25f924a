//! Large outputs need not be here if a results repository has their objects.

use std::fs;

use super::large::{LFS, large, objects, overwrite};
use super::large_servers::{requests, url};
use super::transport::{VARIABLES, serve};
use super::{evaluate, large_servers, pull, push};
use crate::lab::Lab;
use crate::needs::needs;
use crate::program::Ran;

/// `ce gc --published` of a repository.
fn gc<'a>(lab: &'a Lab, options: &[&str], repository: &str) -> Ran<'a> {
    let mut command = lab.command("ce");
    command.args(["gc", "--published", repository]).args(options).arg("../storage");
    lab.finish(command.envs(VARIABLES))
}

#[test]
fn only_outputs_that_the_store_really_has_are_evicted() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    let [object] = &objects(&lab, "results.git/lfs")[..] else { panic!("one object") };
    gc(&lab, &[], "../results.git").exit(0).says("would make away 2 results: ");
    overwrite(object, "y".repeat(1600).as_bytes());
    gc(&lab, &[], "../results.git").exit(0).says("would make away 1 result: ");
    fs::remove_file(object).unwrap();
    gc(&lab, &[], "../results.git").exit(0).says("would make away 1 result: ");
    // Somebody says so.
    gc(&lab, &["--believe"], "../results.git").exit(0).says("would make away 2 results: ");
    fs::write(object, "x".repeat(1600)).unwrap();
    gc(&lab, &["--delete"], "../results.git").exit(0).says("made away 2 results: ");
    pull(&lab, &[], "storage", "results.git").exit(0).shows("pulled 2 calls");
    evaluate(&lab, "storage").exit(0).called(vec![]).says("2 calls: 2 reused");
}

#[test]
fn objects_of_a_server_are_fetched_before_they_are_made_away() {
    needs(&["git-lfs"]);
    let lab = large();
    let url = url(serve(&lab));
    large_servers::push(&lab, &url).exit(0);
    requests(&lab);
    gc(&lab, &[], &url).exit(0).says("would make away 2 results: ");
    assert_eq!(requests(&lab).iter().filter(|it| it.starts_with("GET ")).count(), 1);
    let [object] = &objects(&lab, "objects")[..] else { panic!("one object") };
    overwrite(object, "y".repeat(1600).as_bytes());
    gc(&lab, &[], &url).exit(0).says("would make away 1 result: ");
    requests(&lab);
    gc(&lab, &["--believe"], &url).exit(0).says("would make away 2 results: ");
    assert_eq!(requests(&lab), [""; 0]);
}
