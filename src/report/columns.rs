//! Lines in columns.

/// Returns a line for each row, each column as wide as its widest text.
pub(super) fn aligned<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let mut widths = [0; N];
    for row in rows {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = text.chars().count().max(*width);
        }
    }
    let line = |row: &[String; N]| {
        let columns = row.iter().zip(widths).map(|(text, width)| format!("{text:width$}"));
        columns.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
