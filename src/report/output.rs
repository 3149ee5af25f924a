//! Standard output, in order with the messages on standard error.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::terminal_text::TerminalText;

/// What was printed and not written yet. Nothing drops it, so what could not be written is not tried again at the end.
static BUFFER: LazyLock<Mutex<Buffer>> = LazyLock::new(|| {
    let terminal = io::stdout().is_terminal().then(TerminalText::default);
    Mutex::new(Buffer { file: BufWriter::new(io::stdout()), terminal })
});

/// Moves a terminal's cursor to its top, and takes everything below away.
const CLEAR: &[u8] = b"\x1b[H\x1b[J";

/// The standard output of a program, which is written in large pieces. A [message](super::say) comes after what was
/// printed before it. What a terminal gets commands and misleads nobody; everything else gets each byte.
#[derive(Clone, Copy, Debug)]
pub struct Output;

struct Buffer {
    file: BufWriter<Stdout>,
    /// What is shown, if that is a terminal.
    terminal: Option<TerminalText>,
}

fn buffer() -> MutexGuard<'static, Buffer> {
    BUFFER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Output {
    /// Clears the screen, if it is a terminal.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn clear_screen(self) -> io::Result<()> {
        let Buffer { file, terminal } = &mut *buffer();
        if terminal.is_some() { file.write_all(CLEAR) } else { Ok(()) }
    }

    /// Writes what is left at the end of the program.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn end(self) -> io::Result<()> {
        let Buffer { file, terminal } = &mut *buffer();
        if let Some(terminal) = terminal {
            file.write_all(terminal.end().as_bytes())?;
        }
        file.flush()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Buffer { file, terminal } = &mut *buffer();
        match terminal {
            Some(terminal) => {
                file.write_all(terminal.shown(bytes).as_bytes()).map(|()| bytes.len())
            }
            None => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        buffer().file.flush()
    }
}

/// Writes what was printed, unless another thread is printing. Who prints next has the error, if there is one.
pub(super) fn before_message() {
    if let Ok(mut buffer) = BUFFER.try_lock() {
        drop(buffer.file.flush());
    }
}
