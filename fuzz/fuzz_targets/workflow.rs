//! The text of a workflow: whatever stands in it, it is refused at a place in it, or is printed so that it is read as the same again.
#![no_main]

use compeval_fuzz::texts::check_workflow;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| check_workflow(source));
