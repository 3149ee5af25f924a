//! The names of evidence: files of the ledger, which are named by their contents, and notes of who vouches for them.

use ce_model::digest::Blake3;

/// The directory of the evidence of executions.
pub(crate) const LEDGER: &str = "ledger";

/// The directory of the notes of who vouches for files of the ledger. They never leave the storage.
pub(crate) const SIGNERS: &str = "signers";

/// The ending of the names of files of the ledger.
const LINES: &str = ".ndjson";

/// The name of the file of the ledger with these contents.
pub fn ledger_file(contents: &Blake3) -> String {
    place(LEDGER, contents, LINES)
}

/// The contents that a file of this name in the ledger must have; `None` if it is no name of such a file.
pub fn of_ledger_file(name: &str) -> Option<Blake3> {
    let (shard, rest) = name.strip_prefix(LEDGER)?.strip_prefix('/')?.split_once('/')?;
    let digits = [shard, rest.strip_suffix(LINES)?].concat();
    let contents = Blake3::from_digits(digits.as_bytes())?;
    (ledger_file(&contents) == name).then_some(contents)
}

/// The name of the note of who vouches for a file of the ledger.
pub(crate) fn signer_note(contents: &Blake3) -> String {
    place(SIGNERS, contents, ".json")
}

fn place(directory: &str, contents: &Blake3, ending: &str) -> String {
    let digits = contents.full();
    let (shard, rest) = digits.split_at(2);
    format!("{directory}/{shard}/{rest}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_ledger_is_named_by_its_contents() {
        let contents = Blake3::of(b"evidence");
        let name = ledger_file(&contents);
        assert_eq!(of_ledger_file(&name), Some(contents));
        let short = name.replace(".ndjson", "");
        let upper =
            name.to_ascii_uppercase().replace("LEDGER", "ledger").replace("NDJSON", "ndjson");
        let deeper = name.replacen("ledger/", "ledger/x/", 1);
        for other in
            [short, upper, deeper, "ledger/ab/cd.ndjson".to_owned(), signer_note(&contents)]
        {
            assert_eq!(of_ledger_file(&other), None, "{other}");
        }
    }
}
