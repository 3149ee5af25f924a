//! Reading the text files of a task from a source.

use super::problems::LoadFault;
use ce_model::task::text;

/// Returns the lines of a list, each trimmed.
///
/// # Errors
///
/// Fails if the file cannot be read, is not a text, or has an empty line within the list. Each
/// fault has the number of its line, counted from one; zero is the whole file.
pub(super) fn lines(
    file: Result<Vec<u8>, LoadFault>,
) -> Result<Vec<String>, Vec<(usize, LoadFault)>> {
    let contents = file.map_err(|fault| vec![(0, fault)])?;
    match text::lines(&contents) {
        Ok(lines) => Ok(lines.into_iter().map(str::to_owned).collect()),
        Err(errors) => Err(errors.into_iter().map(|(at, error)| (at, error.into())).collect()),
    }
}

/// Returns the first line, trimmed, and whether there are others.
///
/// # Errors
///
/// Fails if the file cannot be read, is not a text, or is empty.
pub(super) fn line(file: Result<Vec<u8>, LoadFault>) -> Result<(String, bool), LoadFault> {
    let contents = file?;
    let (line, more) = text::line(&contents)?;
    Ok((line.to_owned(), more))
}
