//! The names of results that begin with what a user has typed.

use super::Maintenance;
use crate::disk::Result;
use crate::layout::RECORDS;
use ce_model::digest::DIRTY;

/// What a name stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NameKind {
    /// A call with a record: `c_NAME/CCID/INPUTS`.
    Call,
    /// A job with a record: `t_NAME/TCID/INPUTS`.
    Job,
    /// An output of a call or of a job: `c_NAME/CCID/NN/INPUTS`.
    Output,
}

impl Maintenance<'_> {
    /// Returns the names that a text may become, sorted, each up to its next slash. A part without an alternative is
    /// passed.
    ///
    /// Reads one directory for each part, whatever the number of results.
    ///
    /// # Errors
    ///
    /// Fails if a directory cannot be read.
    pub fn names_from(&self, text: &str, kind: NameKind) -> Result<Vec<String>> {
        let mut text = text.to_owned();
        loop {
            let names = self.continued(&text, kind)?;
            match &names[..] {
                [only] if only.ends_with('/') => text.clone_from(only),
                _ => return Ok(names),
            }
        }
    }

    /// The names that a text may become, up to the next slash.
    fn continued(&self, text: &str, kind: NameKind) -> Result<Vec<String>> {
        let prefixes: &[&str] = match kind {
            NameKind::Call => &["c_"],
            NameKind::Job => &["t_"],
            NameKind::Output => &["c_", "t_"],
        };
        let is_named = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let directory = text.rsplit_once('/').map_or("", |(directory, _)| directory);
        let parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
        let is_within = parts.first().is_none_or(|first| is_named(first));
        if !is_within || parts.iter().any(|part| part.starts_with('.')) {
            return Ok(Vec::new());
        }
        let names = |directory: &str| self.storage.root.own_names(directory);
        let is_room = |name: &str| name.len() == 2 && name.bytes().all(|it| it.is_ascii_digit());
        let found: Vec<String> = match (parts.len(), kind) {
            (0, _) => {
                let names = names("")?.into_iter().filter(|name| is_named(name));
                names.map(|name| format!("{name}/")).collect()
            }
            (1, _) => {
                let versions = names(directory)?.into_iter().filter(|name| is_version(name));
                versions.map(|version| format!("{directory}/{version}/")).collect()
            }
            (2, NameKind::Output) => {
                let rooms = names(directory)?.into_iter().filter(|name| is_room(name));
                rooms.map(|room| format!("{directory}/{room}/")).collect()
            }
            (2, _) => {
                let records = names(&format!("{directory}/{RECORDS}"))?;
                let calls = records.iter().filter_map(|record| record.strip_suffix(".json"));
                calls.map(|call| format!("{directory}/{call}")).collect()
            }
            (3, NameKind::Output) if is_room(parts[2]) => {
                names(directory)?.iter().map(|name| format!("{directory}/{name}")).collect()
            }
            _ => Vec::new(),
        };
        Ok(found.into_iter().filter(|name| name.starts_with(text)).collect())
    }
}

/// Whether a directory is that of a version: of a commit and perhaps a tree, or of a tree that is not committed.
fn is_version(name: &str) -> bool {
    let digits = name.strip_prefix(DIRTY).unwrap_or(name);
    digits.bytes().all(|it| it.is_ascii_hexdigit() || it == b'-')
}
