//! Short texts among the inputs of calls, and the names of these inputs: what tells calls of one computation apart.
//!
//! They are only displayed, so what cannot be read is not known.

use super::{Inputs, Storage};
use crate::layout::{DIGITS, OWNER, ResultName, task_input};
use crate::records::VersionRecord;
use ce_model::digest::Digest;
use ce_model::task::text;

impl Inputs<'_> {
    /// The greatest size of a short text, in bytes.
    pub const SHORT_TEXT: u64 = 256;

    /// Returns the text of a task input that is one short line, without its newline. `None` if the contents are
    /// something else, or are no task input here.
    pub fn short_text(&self, digest: &Digest) -> Option<String> {
        if digest.is_directory() || digest.size > Self::SHORT_TEXT {
            return None;
        }
        let root = &self.storage.root;
        // The longer name is taken only where another file has the shorter one.
        let mut contents = DIGITS.into_iter().map_while(|digits| {
            let path = root.path(&task_input(digest, digits));
            root.disk.read_from(&path, 0, Self::SHORT_TEXT + 1).ok().filter(|it| !it.is_empty())
        });
        let contents = contents.find(|it| Digest::of(it) == *digest)?;
        let text = String::from_utf8(contents).ok()?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        Self::is_line(line).then(|| line.to_owned())
    }

    /// Whether these contents are no task input here: no file has the shortest name that they can have.
    pub fn lacks(&self, digest: &Digest) -> bool {
        let root = &self.storage.root;
        matches!(root.disk.exists(&root.path(&task_input(digest, DIGITS[0]))), Ok(false))
    }

    /// Whether a text can be printed as a part of a line. Control characters could command a terminal.
    pub fn is_line(text: &str) -> bool {
        !text.contains(char::is_control)
    }
}

impl Storage {
    /// Returns the names of the inputs of a call's computation, if the storage has an export of that.
    pub fn input_names(&self, call: &ResultName) -> Option<Vec<String>> {
        self.names(call, "inputs")
    }

    /// Returns the names of the outputs of a call's computation, if the storage has an export of that. Those of
    /// directories end in a slash.
    pub fn output_names(&self, call: &ResultName) -> Option<Vec<String>> {
        self.names(call, "outputs")
    }

    /// The lines of a file of a call's computation.
    fn names(&self, call: &ResultName, list: &str) -> Option<Vec<String>> {
        let owner = self.records().read::<VersionRecord>(&format!("{}/{OWNER}", call.directory()));
        let tree = owner.ok()?.ok()?.tree;
        let list = format!("{}/{list}", self.trees().name(&tree));
        let contents = self.root.disk.read(&self.path(&list)).ok()??;
        let names = text::lines(&contents).ok()?;
        let all_are_lines = names.iter().all(|name| Inputs::is_line(name));
        all_are_lines.then(|| names.into_iter().map(str::to_owned).collect())
    }
}
