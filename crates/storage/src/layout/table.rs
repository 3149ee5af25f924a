//! The names of tables: the outputs of sweeps, by the digest of the recipe.
//!
//! ```text
//! tables/HH/HHHHHHHHHH/00             the table
//! tables/HH/HHHHHHHHHH/01             the directory of the outputs that it was made from
//! tables/HH/HHHHHHHHHH/recipe         the recipe
//! tables/ROOM/HH/HHHHHHHHHH.json      its record etc., by room
//! ```
//!
//! The number of an output stands last, so that all of a table is in one directory.

use super::result::shown;
use super::{Digits, ResultName, TABLES};
use ce_model::digest::Digest;

/// The name of a table's recipe in its directory.
const RECIPE: &str = "recipe";

impl ResultName {
    /// The name of the table with this recipe.
    pub(crate) fn of_recipe(recipe: &Digest, digits: Digits) -> Self {
        let text = shown(recipe, digits);
        Self { directory: format!("{TABLES}/{}", &text[..2]).into(), file: text[2..].into() }
    }

    /// Whether it is a table's.
    pub fn is_table(&self) -> bool {
        self.table_digits().is_some()
    }

    /// The file with the recipe of a table.
    pub fn recipe(&self) -> String {
        format!("{}/{RECIPE}", self.short())
    }

    /// Parses the name of a table's record in a room, without `.json`.
    pub(super) fn of_table_record(room: &str, record: &str) -> Option<Self> {
        let place = record.strip_prefix(TABLES)?.strip_prefix('/')?.strip_prefix(room)?;
        Self::of_short(&format!("{TABLES}{place}")).filter(Self::is_table)
    }

    /// Parses the name of a file of a table.
    pub(super) fn of_table_file(file: &str) -> Option<Self> {
        let (table, _) = file.rsplit_once('/')?;
        Self::of_short(table).filter(Self::is_table)
    }

    /// The first two digits of a table's name; `None` for a call or job.
    pub(super) fn table_digits(&self) -> Option<&str> {
        let digits = self.directory.strip_prefix(TABLES)?.strip_prefix('/')?;
        (are_first(digits) && !self.file.contains('/')).then_some(digits)
    }
}

/// Whether these are the first digits of a name, and no room.
fn are_first(digits: &str) -> bool {
    digits.len() == 2 && digits.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Entry, PINS, QUARANTINE, RECORDS};

    #[test]
    fn a_table_is_named_by_its_recipe() {
        let recipe = Digest::of(
            b"17
",
        );
        let name = ResultName::of_recipe(&recipe, Digits::Short);
        assert_eq!(name.short(), "tables/ad/48103e4fc7");
        assert_eq!(name.output(1), "tables/ad/48103e4fc7/01");
        assert_eq!(name.recipe(), "tables/ad/48103e4fc7/recipe");
        assert_eq!(name.record(), "tables/record/ad/48103e4fc7.json");
        assert_eq!(name.record_in(PINS), "tables/pinned/ad/48103e4fc7.json");
        assert_eq!(name.room(QUARANTINE), "tables/aside/ad/48103e4fc7");
        assert_eq!(name.room_itself(RECORDS), "tables/record");
        let full = ResultName::of_recipe(&recipe, Digits::Full);
        assert_eq!(full.output(0), "tables/ad/48103e4fc71796e9708cafc43adeed0d1076b7/00");
        for name in [name, full] {
            assert!(name.is_table());
            let short = name.short();
            assert_eq!(ResultName::of_short(&short), Some(name.clone()));
            assert_eq!(Entry::of_short(&short), Some(Entry::Table(name.clone())));
            for room in [RECORDS, PINS] {
                let record = name.record_in(room);
                assert_eq!(ResultName::of_record_in(room, &record), Some(name.clone()));
            }
            for file in ["00", "01", "01/x=1/out", "recipe"] {
                let file = format!("{short}/{file}");
                assert_eq!(ResultName::of_output(&file), Some(name.clone()), "{file}");
                assert_eq!(Entry::of_file(&file), Some(Entry::Table(name.clone())), "{file}");
                assert_eq!(ResultName::maker(&file), None);
            }
        }
    }

    #[test]
    fn a_table_that_is_not_known_has_question_marks_for_its_digits() {
        assert_eq!(ResultName::unknown_table().output(0), "tables/???/00");
    }

    #[test]
    fn what_is_beside_tables_is_none() {
        for file in [
            "tables/record/ad/48103e4fc7.json",
            "tables/aside/ad/48103e4fc7/RUN/00",
            "tables/ad/48103e4fc7",
            "tables/AD/48103e4fc7/00",
            "tables/ad",
            "tables",
        ] {
            assert_eq!(Entry::of_file(file), None, "{file}");
        }
        assert_eq!(ResultName::of_record_in(RECORDS, "tables/pinned/ad/48103e4fc7.json"), None);
        assert!(!ResultName::of_short("tables/ad/a/b").unwrap().is_table());
        assert!(!ResultName::of_short("c_add/567526d1f10f/_").unwrap().is_table());
    }
}
