//! The entries of the directory of a node.

use std::ffi::OsString;

use super::nodes::NodeReader;
use super::problems::LoadFault;
use super::source::TaskSource;
use super::sweep_files::is_read;
use super::text;
use super::warnings::WarningKind;
use ce_model::task::expression::NodeKind;

/// The names in a workflow directory.
pub(super) struct NodeEntries(pub(super) Vec<OsString>);

impl NodeEntries {
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|entry| *entry == *name)
    }
}

impl<S: TaskSource> NodeReader<'_, '_, S> {
    pub(super) fn entries(&mut self, dir: &S::Dir) -> Option<NodeEntries> {
        let listed = self.library.source.list(dir);
        self.note(dir, "", listed).map(NodeEntries)
    }

    /// Warns of entries that are not read in the directory of a node of this kind.
    pub(super) fn warn_of_unread(
        &mut self,
        dir: &S::Dir,
        entries: &NodeEntries,
        kind: Option<NodeKind>,
    ) {
        for entry in &entries.0 {
            let is_read = match entry.as_encoded_bytes() {
                b"kind" | b"value" | [b'.', ..] => true,
                b"inputs" => kind.is_none_or(NodeKind::has_inputs),
                b"outputs" => kind.is_none_or(NodeKind::has_slice),
                b"resources" => matches!(kind, None | Some(NodeKind::Computation)),
                _ => kind.zip(entry.to_str()).is_some_and(|(kind, name)| is_read(kind, name)),
            };
            if !is_read {
                let path = self.library.source.place(dir).join(entry);
                self.findings.warning(&path, WarningKind::Unread);
            }
        }
    }

    pub(super) fn single(&mut self, dir: &S::Dir, name: &str, there: bool) -> Option<String> {
        if !there {
            self.problem(dir, name, LoadFault::Missing);
            return None;
        }
        let line = text::line(self.library.source.read(dir, name));
        let (line, more) = self.note(dir, name, line)?;
        if more {
            self.warning(dir, name, WarningKind::MoreLines);
        }
        Some(line)
    }
}
