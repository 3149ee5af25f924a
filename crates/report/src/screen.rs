//! The terminal that progress is drawn on: standard error. Nothing fails there, since indicatif would panic when the terminal is gone.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};
use std::{env, mem};

use super::terminal::{terminal_width, write_error};
use indicatif::{ProgressDrawTarget, TermLike};
use rustix::termios::tcgetwinsize;

/// The width of a terminal that does not tell its own.
pub(super) const COLUMNS: usize = 80;

/// The greatest number of times that a display is drawn in a second.
const RATE: u8 = 20;

/// The height of a terminal that does not tell its own.
const ROWS: u16 = 24;

/// Where a display is drawn: standard error, if it is `visible` and a terminal that can move its cursor.
pub(super) fn draw_target(visible: bool) -> ProgressDrawTarget {
    let is_dumb = env::var_os("TERM").is_none_or(|it| it.is_empty() || it == "dumb");
    if visible && !is_dumb && io::stderr().is_terminal() {
        ProgressDrawTarget::term_like_with_hz(Box::new(Screen::default()), RATE)
    } else {
        ProgressDrawTarget::hidden()
    }
}

/// Standard error as a terminal.
#[derive(Debug, Default)]
struct Screen {
    /// The bytes that are not written yet.
    text: Mutex<String>,
}

impl Screen {
    fn put(&self, text: impl Display) -> io::Result<()> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text.to_string());
        Ok(())
    }

    /// Moves the cursor by this number of places: up, down, right or left, by `A` to `D`.
    fn move_cursor(&self, count: usize, direction: char) -> io::Result<()> {
        if count > 0 { self.put(format_args!("\x1b[{count}{direction}")) } else { Ok(()) }
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        let columns = terminal_width(&io::stderr()).unwrap_or(COLUMNS);
        u16::try_from(columns).unwrap_or(u16::MAX)
    }

    fn height(&self) -> u16 {
        let rows = tcgetwinsize(io::stderr()).map_or(ROWS, |size| size.ws_row);
        if rows > 0 { rows } else { ROWS }
    }

    fn move_cursor_up(&self, count: usize) -> io::Result<()> {
        self.move_cursor(count, 'A')
    }

    fn move_cursor_down(&self, count: usize) -> io::Result<()> {
        self.move_cursor(count, 'B')
    }

    fn move_cursor_right(&self, count: usize) -> io::Result<()> {
        self.move_cursor(count, 'C')
    }

    fn move_cursor_left(&self, count: usize) -> io::Result<()> {
        self.move_cursor(count, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.put(format_args!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.put(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.put("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        write_error(&mem::take(&mut *self.text.lock().unwrap_or_else(PoisonError::into_inner)));
        Ok(())
    }
}
