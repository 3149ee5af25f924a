//! Standard output, in order with the messages on standard error; text for terminals, and their width; lines in columns.
//!
//! Such text has no control characters, and no characters that mislead a reader. The Unicode standard calls most of the
//! latter default ignorable: they are invisible, or change the order of others.
//!
//! A long text goes to the pager, which is chosen as Git chooses its own.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::{env, mem, str};

use ce_executor::note_unwritten;
use ce_files::umask;
use ce_model::humanize::is_misleading;
use rustix::termios::tcgetwinsize;

/// Printed text that is not written yet. Nothing drops it, so text that could not be written is not tried again at the end.
static BUFFER: LazyLock<Mutex<Buffer>> = LazyLock::new(|| {
    let terminal = io::stdout().is_terminal().then(TerminalText::default);
    Mutex::new(Buffer { file: BufWriter::new(io::stdout()), terminal })
});

/// Moves a terminal's cursor to its top, and takes everything below away.
const CLEAR: &[u8] = b"\x1b[H\x1b[J";

/// The standard output of a program, which is written in large pieces. A [message](super::say) comes after all text that
/// was printed before it. Text for a terminal has no control sequences and no misleading characters; files and pipes get
/// each byte.
#[derive(Clone, Copy, Debug)]
pub struct Output;

struct Buffer {
    file: BufWriter<Stdout>,
    /// The state of the terminal's text, if the output is a terminal.
    terminal: Option<TerminalText>,
}

fn buffer() -> MutexGuard<'static, Buffer> {
    BUFFER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something with the buffer, and takes note of a terminal that is gone.
fn written<T>(write: impl FnOnce(&mut Buffer) -> io::Result<T>) -> io::Result<T> {
    write(&mut buffer()).inspect_err(|error| note_unwritten(io::stdout(), error))
}

/// Writes a text to standard error. If that cannot be written, the text is lost.
pub(super) fn write_error(text: &str) {
    if let Err(error) = io::stderr().write_all(text.as_bytes()) {
        note_unwritten(io::stderr(), &error);
    }
}

impl Output {
    /// Clears the screen, if it is a terminal.
    pub fn clear_screen(self) -> io::Result<()> {
        written(|Buffer { file, terminal }| match terminal {
            Some(_) => file.write_all(CLEAR),
            None => Ok(()),
        })
    }

    /// Writes the rest at the end of the program.
    pub fn end(self) -> io::Result<()> {
        written(|Buffer { file, terminal }| {
            if let Some(terminal) = terminal {
                file.write_all(terminal.end().as_bytes())?;
            }
            file.flush()
        })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        written(|Buffer { file, terminal }| match terminal {
            Some(terminal) => {
                file.write_all(terminal.shown(bytes).as_bytes()).map(|()| bytes.len())
            }
            None => file.write(bytes),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        written(|buffer| buffer.file.flush())
    }
}

/// Writes the printed text, unless another thread is printing. Who prints next has the error, if there is one.
pub(super) fn before_message() {
    if let Ok(mut buffer) = BUFFER.try_lock() {
        drop(buffer.file.flush());
    }
}

/// The replacement of a character.
const REPLACED: char = char::REPLACEMENT_CHARACTER;

/// The beginning of a sequence that sets a colour; numbers and `m` follow.
const ESCAPE: &[u8] = b"\x1b[";

/// The greatest length of such a sequence without its `m`.
const MAX_COLOUR: usize = 32;

/// Removes from a text for people the characters that could command a terminal or mislead a reader.
pub fn harmless(text: &str) -> Cow<'_, str> {
    replaced(text, |c, before| is_command(c) || is_misleading(c, before))
}

/// Takes the control characters out of a text, and nothing else: for lines that programs read.
pub(crate) fn without_controls(text: &str) -> Cow<'_, str> {
    replaced(text, |c, _| is_command(c))
}

/// The same for a text with colours and lines.
pub fn coloured(text: &str) -> String {
    let mut terminal = TerminalText::default();
    let shown = terminal.shown(text.as_bytes());
    shown + &terminal.end()
}

/// Replaces characters, depending on the character itself and the text before it.
fn replaced(text: &str, is_bad: impl Fn(char, Option<char>) -> bool) -> Cow<'_, str> {
    // Most texts are names without misleading characters.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.into();
    }
    let before = [None].into_iter().chain(text.chars().map(Some));
    let chars = text.chars().zip(before);
    if !chars.clone().any(|(c, before)| is_bad(c, before)) {
        return text.into();
    }
    chars.map(|(c, before)| if is_bad(c, before) { REPLACED } else { c }).collect()
}

fn is_command(c: char) -> bool {
    c.is_control() && c != '\t'
}

/// The text that a program prints on a terminal, in pieces that may end within a character. Lines, tabs and colours stay. A
/// carriage return begins a line, since the text that it would overwrite could not be read.
#[derive(Debug, Default)]
struct TerminalText {
    /// The beginning of a character or colour that may go on in the next piece.
    rest: Vec<u8>,
    before: Option<char>,
}

impl TerminalText {
    /// Returns the text that is shown for the next piece.
    fn shown(&mut self, piece: &[u8]) -> String {
        let mut bytes = mem::take(&mut self.rest);
        bytes.extend_from_slice(piece);
        self.rest = bytes.split_off(bytes.len() - unfinished(&bytes));
        let text = String::from_utf8_lossy(&bytes);
        let (mut left, mut shown) = (&*text, String::with_capacity(text.len()));
        while let Some(c) = left.chars().next() {
            let length = colour(left);
            match length {
                Some(length) => shown.push_str(&left[..length]),
                None => self.put(c, &mut shown),
            }
            left = &left[length.unwrap_or(c.len_utf8())..];
        }
        shown
    }

    /// Returns the text that is shown in place of a character or colour that does not go on.
    fn end(&mut self) -> String {
        let rest = mem::take(&mut self.rest);
        harmless(&String::from_utf8_lossy(&rest)).into_owned()
    }

    fn put(&mut self, c: char, shown: &mut String) {
        match c {
            '\n' if self.before == Some('\r') => {}
            '\n' | '\r' => shown.push('\n'),
            _ if is_command(c) || is_misleading(c, self.before) => shown.push(REPLACED),
            _ => shown.push(c),
        }
        self.before = Some(c);
    }
}

/// The length of the end of a text that is the beginning of a character or of a colour.
fn unfinished(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(MAX_COLOUR)..];
    let escape = last.iter().rposition(|byte| *byte == ESCAPE[0]).map(|at| &last[at..]);
    if let Some(colour) = escape {
        let goes_on = match colour.strip_prefix(ESCAPE) {
            Some(numbers) => numbers.iter().all(is_of_colour),
            None => colour.len() == 1,
        };
        if goes_on {
            return colour.len();
        }
    }
    for length in (1..=bytes.len().min(3)).rev() {
        let end = str::from_utf8(&bytes[bytes.len() - length..]);
        if end.is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none()) {
            return length;
        }
    }
    0
}

/// The length of the sequence that sets a colour, with which a text begins.
fn colour(text: &str) -> Option<usize> {
    let numbers = text.as_bytes().strip_prefix(ESCAPE)?;
    let end =
        numbers.iter().take(MAX_COLOUR - ESCAPE.len() + 1).position(|byte| !is_of_colour(byte))?;
    (numbers[end] == b'm').then_some(ESCAPE.len() + end + 1)
}

fn is_of_colour(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b';' | b':')
}

/// The replacement of text that is cut off.
const CUT: char = '…';

/// The least width of a column that is made narrower.
const NARROWEST: usize = 8;

/// The style in which a column is printed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ColumnStyle {
    /// Its texts end at the same place.
    pub(super) is_number: bool,
    /// Its texts may be cut if lines do not fit.
    pub(super) may_be_cut: bool,
    /// The width to which they are cut at most, if that is more than `NARROWEST`.
    pub(super) narrowest: usize,
    /// It may be left out if lines do not fit.
    pub(super) may_be_left_out: bool,
}

/// Returns a line for each row, each column as wide as its widest text.
pub(super) fn aligned<const N: usize>(rows: &[[String; N]]) -> impl Iterator<Item = String> {
    fitted(rows, &[])
}

/// The number of columns of the terminal that an output is, if it is one.
pub(super) fn terminal_width(out: &(impl AsFd + IsTerminal)) -> Option<usize> {
    let size = out.is_terminal().then(|| tcgetwinsize(out).ok()).flatten()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// Returns a line for each row. Columns of numbers end at the same place.
pub(super) fn fitted<'r, R: AsRef<[T]>, T: AsRef<str>>(
    rows: &'r [R],
    numbers: &[bool],
) -> impl Iterator<Item = String> + use<'r, R, T> {
    let columns = 0..rows.iter().map(|row| row.as_ref().len()).max().unwrap_or_default();
    let styles = columns.map(|at| ColumnStyle {
        is_number: numbers.get(at).copied().unwrap_or_default(),
        ..ColumnStyle::default()
    });
    fitted_within(rows, &styles.collect::<Vec<_>>(), None).0
}

/// Returns a line for each row, and the columns that are left out. With a width, the widest texts are cut until the lines
/// fit, and then columns left out, the last first. Other columns are not cut, so lines may still be too long.
pub(super) fn fitted_within<'r, R: AsRef<[T]>, T: AsRef<str>>(
    rows: &'r [R],
    columns: &[ColumnStyle],
    most: Option<usize>,
) -> (impl Iterator<Item = String> + use<'r, R, T>, Vec<usize>) {
    let most = most.unwrap_or(usize::MAX);
    let widths = (0..columns.len())
        .map(|at| rows.iter().map(|row| row.as_ref()[at].as_ref().chars().count()).max());
    let whole: Vec<usize> = widths.map(Option::unwrap_or_default).collect();
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let mut left_out = Vec::new();
    let least = |at: usize| match columns[at].may_be_cut {
        true => whole[at].min(columns[at].narrowest.max(NARROWEST)),
        false => whole[at],
    };
    while line_width(&shown, least) > most
        && let Some(last) = shown.iter().rposition(|at| columns[*at].may_be_left_out)
    {
        left_out.insert(0, shown.remove(last));
    }
    let mut widths = whole.clone();
    let mut surplus = line_width(&shown, |at| whole[at]).saturating_sub(most);
    while surplus > 0
        && let Some(widest) =
            shown.iter().filter(|at| widths[**at] > least(**at)).max_by_key(|at| widths[**at])
    {
        widths[*widest] -= 1;
        surplus -= 1;
    }
    let shown = shown.into_iter().map(|at| (at, widths[at], columns[at].is_number));
    let shown: Vec<(usize, usize, bool)> = shown.collect();
    let lines = rows.iter().map(move |row| {
        let texts = shown.iter().map(|&(at, width, is_number)| {
            let text = cut(row.as_ref()[at].as_ref(), width);
            match is_number {
                true => format!("{text:>width$}"),
                false => format!("{text:width$}"),
            }
        });
        texts.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    (lines, left_out)
}

/// The width of a line of these columns, with two blanks between them.
fn line_width(columns: &[usize], width: impl Fn(usize) -> usize) -> usize {
    columns.iter().map(|at| width(*at)).sum::<usize>() + 2 * columns.len().saturating_sub(1)
}

/// Returns a text of at most this many characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most.saturating_sub(1)).chain([CUT]).take(most).collect(),
        false => text.to_owned(),
    }
}

/// The pager of those who have chosen none. It ends at once if the text fits the screen, and leaves it there.
const DEFAULT_PAGER: &str = "if command -v less >/dev/null; then exec less; else exec cat; fi";

/// The options of `less`, unless its user has chosen some.
const LESS_OPTIONS: &str = "FRX";

/// The exit code of a shell that has not found a command.
const COMMAND_NOT_FOUND: i32 = 127;

/// Prints a text: by the pager, if there is one and standard output is a terminal that can show it.
pub fn print_paged(text: &[u8], out: &mut dyn Write) -> io::Result<()> {
    match chosen_pager().filter(|_| !text.is_empty()) {
        Some(pager) if show_in_pager(text, &pager) => Ok(()),
        _ => out.write_all(text),
    }
}

/// The pager, as a command line of the shell.
fn chosen_pager() -> Option<OsString> {
    let is_dumb = env::var_os("TERM").is_none_or(|it| it.is_empty() || it == "dumb");
    if is_dumb || !io::stdout().is_terminal() {
        return None;
    }
    let set = env::var_os("CE_PAGER").or_else(|| env::var_os("PAGER"));
    let pager = set.unwrap_or_else(|| DEFAULT_PAGER.into());
    (!pager.is_empty() && pager != "cat").then_some(pager)
}

/// Lets the pager show a text, and waits until it has ended. Returns whether there was such a program.
fn show_in_pager(text: &[u8], pager: &OsString) -> bool {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        command.env("LESS", LESS_OPTIONS);
    }
    // Ctrl-C is for the pager.
    ce_executor::outlive_typed_signals();
    let Ok(mut child) = umask::as_user(|| command.spawn()) else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        // One that was left early reads no more.
        let _written = stdin.write_all(coloured(&String::from_utf8_lossy(text)).as_bytes());
    }
    child.wait().is_ok_and(|status| status.code() != Some(COMMAND_NOT_FOUND))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|text| (*text).to_owned()).collect()).collect()
    }

    #[test]
    fn numbers_are_aligned_right() {
        let rows = rows(&[&["n", "seconds"], &["8", "10.25"]]);
        assert_eq!(fitted(&rows, &[false, true]).collect::<Vec<_>>(), ["n  seconds", "8    10.25"]);
    }

    const TEXT: ColumnStyle =
        ColumnStyle { is_number: false, may_be_cut: true, narrowest: 0, may_be_left_out: false };
    const NUMBER: ColumnStyle =
        ColumnStyle { is_number: true, may_be_cut: false, narrowest: 0, may_be_left_out: false };

    #[test]
    fn the_widest_texts_are_cut_until_lines_fit() {
        let rows = rows(&[&["name", "what became of it", "x"], &["a", "a reason with words", "y"]]);
        let (lines, left_out) = fitted_within(&rows, &[TEXT; 3], Some(20));
        let lines: Vec<String> = lines.collect();
        assert_eq!(lines, ["name  what becam…  x", "a     a reason w…  y"]);
        assert!(lines.iter().all(|line| line.chars().count() <= 20) && left_out.is_empty());
    }

    #[test]
    fn columns_are_left_out_from_the_right_and_numbers_stay_whole() {
        let rows = rows(&[
            &["replicas", "measurement", "status", "host", "time", "note"],
            &["12345678.25", "2.01", "ok", "a-long-name", "2026-07-31T10:41:02Z", "a long note"],
        ]);
        let whole = ColumnStyle::default();
        let host = ColumnStyle { may_be_left_out: true, ..TEXT };
        let time = ColumnStyle { may_be_left_out: true, ..whole };
        let styles = [NUMBER, NUMBER, whole, host, time, TEXT];
        let fitted = |most| {
            let (lines, left_out) = fitted_within(&rows, &styles, Some(most));
            (lines.collect::<Vec<_>>(), left_out)
        };
        assert_eq!(fitted(200).1, [0; 0]);
        let (lines, left_out) = fitted(74);
        assert!(
            lines[1].ends_with("  ok      a-long-…  2026-07-31T10:41:02Z  a long …"),
            "{lines:?}"
        );
        assert!(left_out.is_empty());
        let (lines, left_out) = fitted(56);
        assert_eq!(lines[1], "12345678.25         2.01  ok      a-long-na…  a long no…");
        assert_eq!(left_out, [4]);
        // The columns that may not be left out are wider than the terminal.
        let (lines, left_out) = fitted(10);
        assert_eq!(lines[1], "12345678.25         2.01  ok      a long …");
        assert_eq!(left_out, [3, 4]);
    }

    #[test]
    fn lines_are_not_cut_without_a_width() {
        let rows = rows(&[&["a", &"b".repeat(500)]]);
        assert!(fitted(&rows, &[]).map(|line| line.len()).eq([503]));
    }

    /// Characters that change the direction of others.
    const DIRECTIONS: [char; 12] = [
        '\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}',
        '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
    ];

    /// Other characters that are invisible or begin a line.
    const INVISIBLE: [char; 14] = [
        '\u{ad}',
        '\u{34f}',
        '\u{115f}',
        '\u{180e}',
        '\u{200b}',
        '\u{2028}',
        '\u{2029}',
        '\u{2060}',
        '\u{2063}',
        '\u{206f}',
        '\u{2800}',
        '\u{3164}',
        '\u{feff}',
        '\u{e0041}',
    ];

    #[test]
    fn misleading_characters_are_replaced() {
        for c in DIRECTIONS.into_iter().chain(INVISIBLE) {
            assert_eq!(harmless(&format!("ä{c}b")), "ä\u{fffd}b", "{c:?}");
            assert_eq!(without_controls(&format!("ä{c}b")), format!("ä{c}b"));
            assert_eq!(TerminalText::default().shown(format!("ä{c}b").as_bytes()), "ä\u{fffd}b");
        }
        for text in [harmless("a\u{1b}[2J\nb\tc\u{9b}"), without_controls("a\u{1b}[2J\nb\tc\u{9b}")]
        {
            assert_eq!(text, "a\u{fffd}[2J\u{fffd}b\tc\u{fffd}");
        }
    }

    #[test]
    fn joiners_that_scripts_and_emoji_need_stay() {
        // Persian, Hindi, Hebrew, a family, and a heart.
        for text in
            ["می\u{200c}خواهم", "क\u{94d}\u{200d}ष", "שלום", "👩\u{200d}👧", "❤\u{fe0f}\u{200d}🔥"]
        {
            assert_eq!(harmless(text), text);
        }
        for text in ["a\u{200d}b", "\u{200c}a", "a\u{fe0f}", "1\u{e0100}"] {
            assert!(harmless(text).contains(REPLACED), "{text:?}");
        }
        assert_eq!(harmless("é\u{200c}\u{200c}b"), "é\u{200c}\u{fffd}b");
    }

    /// Returns the text that is shown if it comes in pieces of this size.
    fn in_pieces(text: &[u8], size: usize) -> String {
        let mut terminal = TerminalText::default();
        let mut shown: String = text.chunks(size).map(|piece| terminal.shown(piece)).collect();
        shown.push_str(&terminal.end());
        shown
    }

    #[test]
    fn a_terminal_gets_lines_and_colours_and_no_other_control_sequences() {
        for (text, expected) in [
            ("a\u{1b}[1;31mred\u{1b}[0m\tb\n", "a\u{1b}[1;31mred\u{1b}[0m\tb\n"),
            ("10%\r20%\r\nend\r", "10%\n20%\nend\n"),
            ("\u{1b}[2J\u{1b}]0;title\u{7}\u{1b}[H\u{1b}", "�[2J�]0;title��[H�"),
            ("\u{1b}[31", "�[31"),
            ("€\u{202e}ü😀\u{1b}\u{1b}[m", "€�ü😀�\u{1b}[m"),
        ] {
            for size in 1..=text.len() {
                assert_eq!(in_pieces(text.as_bytes(), size), expected, "in pieces of {size}");
            }
        }
        for size in 1..4 {
            assert_eq!(in_pieces(b"a\xffb\xe2\x82", size), "a�b�");
        }
        // Endless numbers are not a colour.
        let long = format!("\u{1b}[{}m", "1;".repeat(100));
        for size in [1, 7, 40, 1000] {
            assert_eq!(in_pieces(long.as_bytes(), size), long.replace('\u{1b}', "�"));
        }
    }
}
