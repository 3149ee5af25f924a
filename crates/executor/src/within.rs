//! Runs that a call starts: how they know of the calls around them.

use std::env;
use std::ffi::OsString;

/// The variable that executions without a sandbox have: a line for each call around, the outermost first.
const WITHIN: &str = "COMPEVAL_WITHIN";

/// Whether this process is part of an execution.
pub(super) fn is_within_call() -> bool {
    env::var_os(WITHIN).is_some()
}

/// The variable of an execution of a call by this process, and its value.
pub(super) fn variable(call: &str) -> (&'static str, OsString) {
    let mut calls = env::var_os(WITHIN).unwrap_or_default();
    calls.push(format!("{} {call}\n", std::process::id()));
    (WITHIN, calls)
}

/// Whether this process is part of the execution of a call, or of that call at any version, by another process of this host.
pub fn is_within(process: u32, call: &str, any_version: bool) -> bool {
    let is_same = |line: &str| {
        line.split_once(' ').is_some_and(|(other, line)| {
            let is_call = line == call || any_version && unversioned(line) == unversioned(call);
            other == process.to_string() && is_call
        })
    };
    env::var(WITHIN).is_ok_and(|calls| calls.lines().any(is_same))
}

/// The computation of a call and the digits of its inputs: `c_NAME` and `INPUTS` of `c_NAME/CCID/INPUTS`.
fn unversioned(call: &str) -> Option<(&str, &str)> {
    let (computation, rest) = call.split_once('/')?;
    Some((computation, rest.split_once('/')?.1))
}
