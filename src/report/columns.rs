//! Lines in columns, and the width of a terminal.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

/// What takes the place of text that is cut off.
const CUT: char = '…';

/// The least width of a column that is made narrower.
const NARROWEST: usize = 8;

/// How a column is printed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ColumnStyle {
    /// Its texts end at the same place.
    pub(super) is_number: bool,
    /// Its texts may be cut if lines do not fit.
    pub(super) may_be_cut: bool,
    /// It may be left out if lines do not fit.
    pub(super) may_be_left_out: bool,
}

/// Returns a line for each row, each column as wide as its widest text.
pub(super) fn aligned<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.to_vec()).collect();
    fitted(&rows, &[])
}

/// The number of columns of the terminal that an output is, if it is one.
pub(super) fn terminal_width(out: &(impl AsFd + IsTerminal)) -> Option<usize> {
    let size = out.is_terminal().then(|| tcgetwinsize(out).ok()).flatten()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// Returns a line for each row. Columns of numbers end at the same place.
pub(super) fn fitted(rows: &[Vec<String>], numbers: &[bool]) -> Vec<String> {
    let columns = 0..rows.iter().map(Vec::len).max().unwrap_or_default();
    let styles = columns.map(|at| ColumnStyle {
        is_number: numbers.get(at).copied().unwrap_or_default(),
        ..ColumnStyle::default()
    });
    fitted_within(rows, &styles.collect::<Vec<_>>(), None).0
}

/// Returns a line for each row, and the columns that are left out. With a width, the widest texts are cut until the lines
/// fit, and then columns left out, the last first. Nothing else is: lines may be longer even so.
pub(super) fn fitted_within(
    rows: &[Vec<String>],
    columns: &[ColumnStyle],
    most: Option<usize>,
) -> (Vec<String>, Vec<usize>) {
    let most = most.unwrap_or(usize::MAX);
    let widths = (0..columns.len()).map(|at| rows.iter().map(|row| row[at].chars().count()).max());
    let whole: Vec<usize> = widths.map(Option::unwrap_or_default).collect();
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let mut left_out = Vec::new();
    let all = |shown: &[usize], width: &dyn Fn(usize) -> usize| {
        shown.iter().map(|at| width(*at)).sum::<usize>() + 2 * shown.len().saturating_sub(1)
    };
    let least = |at: usize| match columns[at].may_be_cut {
        true => whole[at].min(NARROWEST),
        false => whole[at],
    };
    while all(&shown, &least) > most
        && let Some(last) = shown.iter().rposition(|at| columns[*at].may_be_left_out)
    {
        left_out.insert(0, shown.remove(last));
    }
    let mut widths = whole.clone();
    let mut surplus = all(&shown, &|at| whole[at]).saturating_sub(most);
    while surplus > 0
        && let Some(widest) =
            shown.iter().filter(|at| widths[**at] > least(**at)).max_by_key(|at| widths[**at])
    {
        widths[*widest] -= 1;
        surplus -= 1;
    }
    let lines = rows.iter().map(|row| {
        let texts = shown.iter().map(|at| {
            let (text, width) = (cut(&row[*at], widths[*at]), widths[*at]);
            match columns[*at].is_number {
                true => format!("{text:>width$}"),
                false => format!("{text:width$}"),
            }
        });
        texts.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    (lines.collect(), left_out)
}

/// Returns a text of at most this many characters.
fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most.saturating_sub(1)).chain([CUT]).take(most).collect(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|text| (*text).to_owned()).collect()).collect()
    }

    #[test]
    fn numbers_end_at_the_same_place() {
        let rows = rows(&[&["n", "seconds"], &["8", "10.25"]]);
        assert_eq!(fitted(&rows, &[false, true]), ["n  seconds", "8    10.25"]);
    }

    const TEXT: ColumnStyle =
        ColumnStyle { is_number: false, may_be_cut: true, may_be_left_out: false };
    const NUMBER: ColumnStyle =
        ColumnStyle { is_number: true, may_be_cut: false, may_be_left_out: false };

    #[test]
    fn the_widest_texts_are_cut_until_lines_fit() {
        let rows = rows(&[&["name", "what became of it", "x"], &["a", "a reason with words", "y"]]);
        let (lines, left_out) = fitted_within(&rows, &[TEXT; 3], Some(20));
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
        let fitted = |most| fitted_within(&rows, &styles, Some(most));
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
        // What may not be left out is longer than the terminal is wide.
        let (lines, left_out) = fitted(10);
        assert_eq!(lines[1], "12345678.25         2.01  ok      a long …");
        assert_eq!(left_out, [3, 4]);
    }

    #[test]
    fn lines_without_a_width_are_whole() {
        let rows = rows(&[&["a", &"b".repeat(500)]]);
        assert_eq!(fitted(&rows, &[])[0].len(), 503);
    }
}
