//! The names of revocations: below that of the record of the result, by their contents.

use super::Entry;
use ce_model::digest::Blake3;

/// The directory of revocations: what somebody says is wrong.
pub(crate) const REVOKED: &str = "revoked";

/// The directory of the revocations of a result.
pub fn revocations(entry: &Entry) -> String {
    format!("{REVOKED}/{}", entry.record().trim_end_matches(".json"))
}

/// The name of the revocation of a result with these contents.
pub(crate) fn revocation(entry: &Entry, contents: &Blake3) -> String {
    format!("{}/{}.json", revocations(entry), contents.full())
}

/// The result that a revocation of this name is about, and the contents that it must have; `None` if it is no such name.
pub fn of_revocation(name: &str) -> Option<(Entry, Blake3)> {
    let (record, contents) = name.strip_prefix(REVOKED)?.strip_prefix('/')?.rsplit_once('/')?;
    let entry = Entry::of_record(&format!("{record}.json"))?;
    let contents = Blake3::from_digits(contents.strip_suffix(".json")?.as_bytes())?;
    (revocation(&entry, &contents) == name).then_some((entry, contents))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revocation_is_named_by_its_result_and_contents() {
        let entry = Entry::of_short("c_x/0123456789ab/0123456789ab").unwrap();
        let contents = Blake3::of(b"wrong");
        let name = revocation(&entry, &contents);
        assert!(name.starts_with("revoked/c_x/0123456789ab/record/0123456789ab/"), "{name}");
        assert_eq!(of_revocation(&name), Some((entry, contents)));
        for other in [
            name.replacen("revoked/", "", 1),
            name.replacen("revoked/", "revoked/../", 1),
            name.replace("/record/", "/00/"),
            name.replace(".json", ""),
            name.to_ascii_uppercase(),
        ] {
            assert_eq!(of_revocation(&other), None, "{other}");
        }
    }
}
