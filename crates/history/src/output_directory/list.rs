//! The list of the files in a directory of outputs.

use std::collections::BTreeMap;

use ce_files::manifest::{EntryKind, HEADER, Manifest, ManifestEntry, ManifestError};
use ce_model::digest::Digest;
use serde::{Deserialize, Serialize};

/// The format of the list.
const FORMAT: u32 = 1;

/// The reason why a file is not a list of outputs.
#[derive(Debug, thiserror::Error)]
pub enum ListFault {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A later version has written it.
    #[error("it has the format {0}")]
    Format(u32),
    /// Its files cannot be in one directory.
    #[error(transparent)]
    Files(#[from] ManifestError),
    #[error("a path is not UTF-8")]
    Path,
}

/// The list, as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a list of outputs")]
struct OutputListFile {
    format: u32,
    /// The outputs by their paths.
    outputs: BTreeMap<String, ListedOutput>,
    /// The files that they are, as lines of a manifest.
    files: Vec<String>,
    /// The files that were there before. Only while the directory is being updated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListedOutput {
    /// Its name in the storage, without the commit of its computation.
    pub(super) from: String,
    /// A later run could not make it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) stale: bool,
}

/// The files of a directory by their paths.
pub(super) type Entries = BTreeMap<String, EntryKind<Digest>>;

/// The list of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OutputList {
    pub(super) outputs: BTreeMap<String, ListedOutput>,
    pub(super) files: Entries,
    pub(super) before: Entries,
}

impl OutputList {
    pub(super) fn parse(text: &[u8]) -> Result<Self, ListFault> {
        let written: OutputListFile = serde_json::from_slice(text)?;
        if written.format != FORMAT {
            return Err(ListFault::Format(written.format));
        }
        let (files, before) = (entries(&written.files)?, entries(&written.before)?);
        Ok(Self { outputs: written.outputs, files, before })
    }

    pub(super) fn text(&self) -> Result<String, ListFault> {
        let (files, before) = (lines(&self.files)?, lines(&self.before)?);
        let outputs = self.outputs.clone();
        let written = OutputListFile { format: FORMAT, outputs, files, before };
        Ok(serde_json::to_string_pretty(&written)? + "\n")
    }

    /// The digest of an output: a file, or a directory of all that is below its path.
    pub(super) fn value(&self, output: &str) -> Option<Digest> {
        if let Some(EntryKind::File { contents, .. }) = self.files.get(output) {
            return Some(*contents);
        }
        let below = format!("{output}/");
        let inside = self
            .files_of(output)
            .filter_map(|(path, kind)| Some((path.strip_prefix(&below)?.to_owned(), kind)));
        Some(manifest(&inside.collect()).ok()?.digest())
    }

    /// The files that an output is: itself, or all that is below its path.
    pub(super) fn files_of(
        &self,
        output: &str,
    ) -> impl Iterator<Item = (String, EntryKind<Digest>)> {
        let below = format!("{output}/");
        let inside = self.files.range(below.clone()..);
        let inside = inside.take_while(move |(path, _)| path.starts_with(&below));
        let files = self.files.get_key_value(output).into_iter().chain(inside);
        files.map(|(path, kind)| (path.clone(), kind.clone()))
    }

    /// Whether a run has written the entry at a path.
    pub(super) fn is_ours(&self, path: &str, found: &EntryKind<Digest>) -> bool {
        let mut known = [&self.files, &self.before].into_iter().filter_map(|it| it.get(path));
        known.any(|known| have_same_contents(known, found))
    }
}

/// Whether two entries are equal, whoever may execute them.
pub(super) fn have_same_contents(one: &EntryKind<Digest>, other: &EntryKind<Digest>) -> bool {
    match (one, other) {
        (EntryKind::File { contents: one, .. }, EntryKind::File { contents: other, .. }) => {
            one == other
        }
        _ => one == other,
    }
}

/// Reads the lines of a manifest. It has no path that leads out of a directory.
fn entries(lines: &[String]) -> Result<Entries, ListFault> {
    let mut text = format!("{HEADER}\n");
    lines.iter().for_each(|line| text.extend([line, "\n"]));
    let manifest = Manifest::parse(text.as_bytes())?;
    let entries = manifest.entries().iter().map(|entry| {
        let path = str::from_utf8(&entry.path).map_err(|_| ListFault::Path)?;
        Ok((path.to_owned(), entry.kind.clone()))
    });
    entries.collect()
}

fn lines(entries: &Entries) -> Result<Vec<String>, ListFault> {
    let mut text = Vec::new();
    manifest(entries)?.write(&mut text).map_err(serde_json::Error::io)?;
    Ok(String::from_utf8_lossy(&text).lines().skip(1).map(str::to_owned).collect())
}

/// The manifest of a directory with these entries.
///
/// # Errors
///
/// Fails if no directory has them.
pub(super) fn manifest(entries: &Entries) -> Result<Manifest, ManifestError> {
    let entries = entries
        .iter()
        .map(|(path, kind)| ManifestEntry { path: path.as_bytes().into(), kind: kind.clone() });
    Manifest::new(entries.collect())
}
