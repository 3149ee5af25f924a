//! The memory that a run needs for each point of a sweep.
//!
//! Two sizes of the same sweep are evaluated, and the difference of the peaks is divided by the difference of their points, so that
//! what a run needs anyway does not count. Two calls make all points, which differ in their labels: what calls
//! need is not measured here.

use std::fmt::Write as _;
use std::process::Stdio;

use wait4::Wait4;

use super::sweep;
use crate::lab::Library;

/// The numbers of points.
const SIZES: [usize; 2] = [2_000, 42_000];

/// The most bytes for each point: its outputs once, and its part of the table. It takes 312. With the rows of the table and its
/// recipe in memory it took 1560.
const BUDGET: u64 = 700;

/// Evaluates a sweep of this number of points. Returns the greatest number of bytes that the run had in memory.
fn peak(points: usize) -> u64 {
    let mut levels = "a\tlabel\n".to_owned();
    for point in 0..points {
        writeln!(levels, "{}\t{point}", point % 2).unwrap();
    }
    let lab = sweep("", &[("factors/00-a.tsv", &levels)])
        .call("inputs/00-body/", "mul", &["a", "a"])
        .commit_with(Library::Submodule);
    let mut run = lab.evaluation(&[]);
    let run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let used = run.wait4().unwrap();
    assert!(used.status.success());
    assert_eq!(lab.table().lines().count(), points);
    used.rusage.maxrss
}

#[test]
fn gathering_keeps_little_of_each_point() {
    let [few, many] = SIZES.map(peak);
    let each = many.saturating_sub(few) / (SIZES[1] - SIZES[0]) as u64;
    assert!(
        each <= BUDGET,
        "{each} bytes a point: {few} for {}, {many} for {}",
        SIZES[0],
        SIZES[1]
    );
}
