//! The start of `ce`, which holds all programs, by the short forms `ce-run`, `ce-sym` and `ce-viz`: so that the same code is not
//! linked four times.

use std::env;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The exit code that shells return for a program that cannot be started.
const CANNOT_START: u8 = 127;

/// Replaces this process by the `ce` in the same directory, which learns from its name which program it is. Returns only if
/// there is none.
pub(crate) fn start_ce_as(name: &str) -> ExitCode {
    // Without /proc, who has started this knows where it is, or it is in a directory of PATH.
    let own = env::current_exe();
    let own = own.unwrap_or_else(|_| env::args_os().next().unwrap_or_default().into());
    let ce = own.with_file_name("ce");
    let error = Command::new(&ce).arg0(name).args(env::args_os().skip(1)).exec();
    let text = format!(
        "{name}: ce cannot be started\n  because: {}: {error}\n  try: install ce and {name} in the same directory",
        ce.display()
    );
    drop(writeln!(io::stderr(), "{text}"));
    CANNOT_START.into()
}
