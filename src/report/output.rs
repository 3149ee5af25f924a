//! Standard output, in order with the messages on standard error.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// What was printed and not written yet. Nothing drops it, so what could not be written is not tried again at the end.
static BUFFER: LazyLock<Mutex<BufWriter<Stdout>>> =
    LazyLock::new(|| Mutex::new(BufWriter::new(io::stdout())));

/// The standard output of a program, which is written in large pieces. A [message](super::say) comes after what was
/// printed before it.
#[derive(Clone, Copy, Debug)]
pub struct Output;

fn buffer() -> MutexGuard<'static, BufWriter<Stdout>> {
    BUFFER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        buffer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        buffer().flush()
    }
}

/// Writes what was printed, unless another thread is printing. Who prints next has the error, if there is one.
pub(super) fn before_message() {
    if let Ok(mut buffer) = BUFFER.try_lock() {
        drop(buffer.flush());
    }
}
