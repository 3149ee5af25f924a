//! The directories that an expression becomes: `workflow/kind`, `workflow/inputs/00-text/kind`, ...

use super::mistake::{Fault, Mistake};
use super::sweeps::RuleFile;
use super::{Expression, Parsed, Signatures, TextPlace, default_label, places};
use crate::slice::{MAX_ARITY, WrittenSlice};
use crate::task::NodeId;

/// An expression as directories. Paths are relative to the directory `workflow`, which is the empty path; each directory stands
/// after the one that it is in.
#[derive(Debug, PartialEq, Eq)]
pub struct WorkflowDirectories {
    /// All directories and links.
    pub entries: Vec<WorkflowEntry>,
}

/// A directory or a link.
#[derive(Debug, PartialEq, Eq)]
pub struct WorkflowEntry {
    pub path: String,
    pub kind: WorkflowEntryKind,
}

/// The kind of the entry at a path.
#[derive(Debug, PartialEq, Eq)]
pub enum WorkflowEntryKind {
    /// The directory of a node.
    Node {
        /// The contents of the file `kind`.
        kind: &'static str,
        /// The contents of the file `value`; empty if there is none.
        value: Box<str>,
        files: Vec<RuleFile>,
        /// The contents of the file `outputs`, if there is one.
        outputs: Option<WrittenSlice>,
        /// Whether there is a directory `inputs`.
        inputs: bool,
    },
    /// A symbolic link to the directory of a node that is shared.
    Link(String),
}

/// The longest path that Git can record, and Linux can open.
const LONGEST_PATH: usize = 4095;

/// The longest name of a file.
const LONGEST_NAME: usize = 255;

impl WorkflowDirectories {
    /// Lays out an expression. Labels that are not written are the names of the inputs that they belong to, or else of the
    /// node that is read.
    ///
    /// # Errors
    ///
    /// Returns everything at once that directories cannot say: labels and paths that no file can have, and a number of
    /// values that is not known. The meaning of the workflow is not checked.
    pub fn new(parsed: &Parsed<'_>, signatures: &Signatures) -> Result<Self, Vec<Mistake>> {
        let mut layout = LayoutWalk::new(&parsed.text.expression, signatures);
        layout.walk();
        if layout.wrong.is_empty() {
            return Ok(Self { entries: layout.entries });
        }
        layout.wrong.sort_by_key(|(place, _)| parsed.byte(*place));
        layout.wrong.dedup();
        let wrong = layout.wrong.into_iter();
        Err(wrong.map(|(place, fault)| parsed.mistake_at(place, fault)).collect())
    }

    /// Lays out an expression that does not come from a text; `None` if it cannot be laid out.
    pub fn of_expression(expression: &Expression, signatures: &Signatures) -> Option<Self> {
        let mut layout = LayoutWalk::new(expression, signatures);
        layout.walk();
        layout.wrong.is_empty().then_some(Self { entries: layout.entries })
    }
}

struct LayoutWalk<'a> {
    expression: &'a Expression,
    signatures: &'a Signatures,
    /// The path of the directory of each node.
    paths: Vec<Option<String>>,
    entries: Vec<WorkflowEntry>,
    wrong: Vec<(TextPlace, Fault)>,
    /// The nodes around the place: which, how many of its inputs were read, and filled.
    stack: Vec<(NodeId, usize, usize)>,
}

impl<'a> LayoutWalk<'a> {
    fn new(expression: &'a Expression, signatures: &'a Signatures) -> Self {
        Self {
            expression,
            signatures,
            paths: vec![None; expression.nodes.len()],
            entries: Vec::new(),
            wrong: Vec::new(),
            stack: Vec::new(),
        }
    }

    fn walk(&mut self) {
        if let Some(root) = self.expression.root() {
            self.enter(root, String::new());
            while self.go_on() {}
        }
    }

    /// Makes the directory of a node, or a link to it.
    fn enter(&mut self, id: NodeId, path: String) {
        let longest = self.expression[id].files.iter().map(|file| file.name.len()).max();
        let longest = longest.unwrap_or_default().max("outputs".len());
        if path.len() + "workflow/".len() + longest > LONGEST_PATH {
            // A mistake below it would only be reported again.
            self.wrong(id, Fault::Deep);
            return;
        }
        if let Some(known) = &self.paths[id.index()] {
            let kind = WorkflowEntryKind::Link(relative(&path, known));
            self.entries.push(WorkflowEntry { path, kind });
            return;
        }
        let node = &self.expression[id];
        self.paths[id.index()] = Some(path.clone());
        self.entries.push(WorkflowEntry {
            path,
            kind: WorkflowEntryKind::Node {
                kind: node.kind.file(),
                value: node.value.clone(),
                files: node.files.clone(),
                outputs: node.outputs.clone(),
                inputs: !node.inputs.is_empty(),
            },
        });
        self.stack.push((id, 0, 0));
    }

    /// Goes to the next input; returns false at the end.
    fn go_on(&mut self) -> bool {
        let Some((id, next, filled)) = self.stack.pop() else { return false };
        let node = &self.expression[id];
        let Some(argument) = node.inputs.get(next) else { return true };
        let width = places(self.expression, id, argument.node, self.signatures);
        if width.is_none() {
            let name = self.expression[argument.node].value.to_string();
            self.wrong(argument.node, Fault::Width(name));
        }
        let width = width.unwrap_or(1);
        let after = filled + width;
        self.stack.push((id, next + 1, after));
        if after > MAX_ARITY {
            self.wrong(id, Fault::TooMany);
            return true;
        }
        let label = match &argument.label {
            Some(label) => label.to_string(),
            None => {
                default_label(self.expression, id, argument.node, filled..after, self.signatures)
            }
        };
        let name = match width {
            1 => format!("{filled:02}-{label}"),
            _ => format!("{filled:02}_{:02}-{label}", after - 1),
        };
        if label.contains(['/', '\0']) {
            self.wrong(argument.node, Fault::Label(label));
        } else if name.len() > LONGEST_NAME {
            self.wrong(argument.node, Fault::LongLabel);
        } else {
            let path = self.paths[id.index()].as_deref().unwrap_or_default();
            let slash = if path.is_empty() { "" } else { "/" };
            self.enter(argument.node, format!("{path}{slash}inputs/{name}"));
        }
        true
    }

    fn wrong(&mut self, node: NodeId, fault: Fault) {
        self.wrong.push((TextPlace::from_node(node), fault));
    }
}

/// The target of a link at a path that leads to another path.
fn relative(from: &str, to: &str) -> String {
    let [from, to] =
        [from, to].map(|path| path.split('/').filter(|it| !it.is_empty()).collect::<Vec<_>>());
    let around = &from[..from.len().saturating_sub(1)];
    let common = around.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = vec![".."; around.len() - common];
    up.into_iter().chain(to[common..].iter().copied()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::{Signature, parse};

    /// The paths, and where links lead.
    fn laid_out(text: &str) -> Result<Vec<String>, Vec<String>> {
        let parsed = parse(text).unwrap();
        let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        let signature = |inputs: &[&str], outputs: &[&str]| Signature {
            inputs: names(inputs),
            outputs: names(outputs),
        };
        let signatures = Signatures::from([
            ("add".to_owned(), signature(&["left", "right"], &["sum"])),
            ("divmod".to_owned(), signature(&["n", "d/e"], &["q", "r"])),
        ]);
        let layout = WorkflowDirectories::new(&parsed, &signatures);
        let layout =
            layout.map_err(|wrong| wrong.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let entries = layout.entries.into_iter().map(|entry| match entry.kind {
            WorkflowEntryKind::Link(target) => format!("{} -> {target}", entry.path),
            WorkflowEntryKind::Node { .. } => entry.path,
        });
        Ok(entries.collect())
    }

    #[test]
    fn labels_are_the_names_of_inputs_unless_they_are_written() {
        let text = "(add (add :mine INPUT('x') INPUT('y')) (other INPUT('x') FILE('a'))[00])";
        let expected = [
            "",
            "inputs/00-left",
            "inputs/00-left/inputs/00-mine",
            "inputs/00-left/inputs/01-right",
            "inputs/01-right",
            "inputs/01-right/inputs/00-x",
            "inputs/01-right/inputs/01-file",
        ];
        assert_eq!(laid_out(text).unwrap(), expected);
    }

    #[test]
    fn a_slice_fills_a_range_and_shared_nodes_become_links() {
        let text = "(add (divmod #1=INPUT('x') #1#))";
        let expected = [
            "",
            "inputs/00_01-left-right",
            "inputs/00_01-left-right/inputs/00-n",
            "inputs/00_01-left-right/inputs/01-d-e -> 00-n",
        ];
        assert_eq!(laid_out(text).unwrap(), expected);
        let links = laid_out("(add (add #1=INPUT('x') INPUT('y')) (add INPUT('y') #1#))").unwrap();
        assert_eq!(
            links.last().unwrap(),
            "inputs/01-right/inputs/01-right -> ../../00-left/inputs/00-left"
        );
    }

    #[test]
    fn a_tree_may_read_a_revision_and_passes_up_its_directory() {
        let text = "(add TREE('.') (add TREE('a' INPUT('x'))[00, 01]))";
        let expected = [
            "",
            "inputs/00-left",
            "inputs/01-right",
            "inputs/01-right/inputs/00_01-left-right",
            "inputs/01-right/inputs/00_01-left-right/inputs/00-revision",
        ];
        assert_eq!(laid_out(text).unwrap(), expected);
    }

    #[test]
    fn all_parts_that_directories_cannot_express_are_reported() {
        let text = "(add :a/b (other)\n  (add INPUT('x') INPUT('z')))";
        let expected = [
            "1:11: other has no slice, and its outputs are unknown: it is not in computations/",
            "1:11: the label \"a/b\" holds a slash or a zero byte",
        ];
        assert_eq!(laid_out(text).unwrap_err(), expected);
        let deep = format!("{}INPUT('x'){}", "(f ".repeat(1000), ")[00]".repeat(1000));
        let wrong = laid_out(&deep).unwrap_err();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].ends_with("more than 4,095 bytes"), "{wrong:?}");
    }
}
