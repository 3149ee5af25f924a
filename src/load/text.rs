//! The text files of a task, read from a source: what is wrong with them are faults.

use super::problems::LoadFault;
use crate::task::text;

/// Returns the lines of a list, each trimmed.
///
/// # Errors
///
/// Tells that the file cannot be read, is no text, or that a line within the list is empty; each
/// with the number of the line counted from one, zero for the file as a whole.
pub(super) fn lines(
    file: Result<Vec<u8>, LoadFault>,
) -> Result<Vec<String>, Vec<(usize, LoadFault)>> {
    let contents = file.map_err(|fault| vec![(0, fault)])?;
    match text::lines(&contents) {
        Ok(lines) => Ok(lines.into_iter().map(str::to_owned).collect()),
        Err(errors) => Err(errors.into_iter().map(|(at, error)| (at, error.into())).collect()),
    }
}

/// Returns the first line, trimmed, and whether others follow that nothing reads.
///
/// # Errors
///
/// Tells that the file cannot be read, is no text, or is empty.
pub(super) fn line(file: Result<Vec<u8>, LoadFault>) -> Result<(String, bool), LoadFault> {
    let contents = file?;
    let (line, more) = text::line(&contents)?;
    Ok((line.to_owned(), more))
}
