//! The file of a computation: whatever stands in it, its declaration is refused at a line, or says the same when it is written again.
#![no_main]

use compeval_fuzz::texts::check_declaration;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|contents: &[u8]| check_declaration(contents));
