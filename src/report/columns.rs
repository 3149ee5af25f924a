//! Lines in columns, and the width of a terminal.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

/// What takes the place of text that is cut off.
const CUT: char = '…';

/// The least width of a column that is made narrower.
const NARROWEST: usize = 8;

/// Returns a line for each row, each column as wide as its widest text.
pub(super) fn aligned<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.to_vec()).collect();
    fitted(&rows, &[], None)
}

/// The number of columns of the terminal that an output is, if it is one.
pub(super) fn terminal_width(out: &(impl AsFd + IsTerminal)) -> Option<usize> {
    let size = out.is_terminal().then(|| tcgetwinsize(out).ok()).flatten()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// Returns a line for each row. Columns of numbers end at the same place. With a width, the widest columns are cut
/// until the lines fit; of lines that cannot, the end is.
pub(super) fn fitted(rows: &[Vec<String>], numbers: &[bool], most: Option<usize>) -> Vec<String> {
    let mut widths = vec![0; rows.iter().map(Vec::len).max().unwrap_or_default()];
    for row in rows {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = text.chars().count().max(*width);
        }
    }
    if let Some(most) = most {
        let mut surplus = (widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1))
            .saturating_sub(most);
        while surplus > 0
            && let Some(widest) = widths.iter_mut().max()
            && *widest > NARROWEST
        {
            *widest -= 1;
            surplus -= 1;
        }
    }
    let line = |row: &Vec<String>| {
        let columns = row.iter().zip(&widths).enumerate().map(|(at, (text, &width))| {
            let text = cut(text, width);
            match numbers.get(at) {
                Some(true) => format!("{text:>width$}"),
                _ => format!("{text:width$}"),
            }
        });
        let line = columns.collect::<Vec<_>>().join("  ").trim_end().to_owned();
        most.map_or(line.clone(), |most| cut(&line, most))
    };
    rows.iter().map(line).collect()
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
        assert_eq!(fitted(&rows, &[false, true], None), ["n  seconds", "8    10.25"]);
    }

    #[test]
    fn the_widest_columns_are_cut_until_lines_fit() {
        let rows = rows(&[&["name", "what became of it", "x"], &["a", "a reason with words", "y"]]);
        let lines = fitted(&rows, &[], Some(20));
        assert_eq!(lines, ["name  what becam…  x", "a     a reason w…  y"]);
        assert!(lines.iter().all(|line| line.chars().count() <= 20));
        let lines = fitted(&rows, &[], Some(9));
        assert_eq!(lines, ["name  wh…", "a     a …"]);
    }

    #[test]
    fn lines_without_a_width_are_whole() {
        let rows = rows(&[&["a", &"b".repeat(500)]]);
        assert_eq!(fitted(&rows, &[], None)[0].len(), 503);
    }
}
