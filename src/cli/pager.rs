//! The pager: the program that shows a long text on a terminal, chosen as Git chooses its own.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

use crate::report::coloured;

/// The pager of those who have chosen none. It ends at once if the text fits the screen, and leaves it there.
const LESS: &str = "if command -v less >/dev/null; then exec less; else exec cat; fi";

/// The options of `less`, unless its user has chosen some.
const OPTIONS: &str = "FRX";

/// The exit code of a shell that has not found a command.
const NOT_FOUND: i32 = 127;

/// Prints a text: by the pager, if there is one and standard output is a terminal that can show it.
pub(super) fn print(text: &[u8], out: &mut dyn Write) -> io::Result<()> {
    match chosen().filter(|_| !text.is_empty()) {
        Some(pager) if show(text, &pager) => Ok(()),
        _ => out.write_all(text),
    }
}

/// The pager, as a command line of the shell.
fn chosen() -> Option<OsString> {
    let is_dumb = env::var_os("TERM").is_none_or(|it| it.is_empty() || it == "dumb");
    if is_dumb || !io::stdout().is_terminal() {
        return None;
    }
    let set = env::var_os("CE_PAGER").or_else(|| env::var_os("PAGER"));
    let pager = set.unwrap_or_else(|| LESS.into());
    (!pager.is_empty() && pager != "cat").then_some(pager)
}

/// Lets the pager show a text, and waits until it has ended. Returns whether there was such a program.
fn show(text: &[u8], pager: &OsString) -> bool {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        command.env("LESS", OPTIONS);
    }
    // Ctrl-C is for the pager.
    ce_executor::outlive_typed_signals();
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        // One that was left early reads no more.
        let _written = stdin.write_all(coloured(&String::from_utf8_lossy(text)).as_bytes());
    }
    child.wait().is_ok_and(|status| status.code() != Some(NOT_FOUND))
}
