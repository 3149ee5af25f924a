//! How the short forms `ce-run`, `ce-sym` and `ce-viz` start `ce`, which holds all programs: so that the same code is not linked
//! four times.

use std::env;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// What shells return for a program that cannot be started.
const CANNOT_START: u8 = 127;

/// Replaces this process by the `ce` in the same directory, which sees by its name what it is. Returns only if there is none.
pub(crate) fn start_ce_as(name: &str) -> ExitCode {
    let error = match env::current_exe() {
        Ok(own) => {
            let ce = own.with_file_name("ce");
            let source = Command::new(&ce).arg0(name).args(env::args_os().skip(1)).exec();
            io::Error::new(source.kind(), format!("{}: {source}", ce.display()))
        }
        Err(error) => error,
    };
    let text = format!(
        "{name}: ce cannot be started\n  because: {error}\n  try: install ce and {name} in the same directory"
    );
    drop(writeln!(io::stderr(), "{text}"));
    CANNOT_START.into()
}
