//! Reads the directories below `workflow/` as they are written: with their labels, and with their links as sharing.
//!
//! The walk keeps its own stack, so the tree may have any depth. A directory that is reached again through a link, or that is equal to
//! another one, is not read again.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ce_git::{Snapshot, TreePath};
use ce_model::expression::{
    DEFINITION, Definition, ExpressionInput, ExpressionNode, NodeKind, RESOURCES, RuleFile, Text,
    rule_files,
};
use ce_model::slice::{MAX_ARITY, WrittenSlice};
use ce_model::sweep::{FACTORS, SweepRules};
use ce_model::task::NodeId;
use ce_model::text_file::TextError;

use super::problems::{LoadFault, Problems, WarningKind};
use super::source::{Identity, Located, TaskSource, parse_line, parse_lines, parse_text};
use super::sweep_files::sweep_files;
use super::{INPUTS, LoadError, WORKFLOW, inputs, real};

/// A workflow as its directories say it.
#[derive(Debug, Default)]
pub struct WrittenDirectories {
    /// Its expression with all labels. [`written`] has the rules of sweeps and the definitions in it, too.
    pub text: Text,
    /// The nodes with a part that could not be read, which was reported. They stand for the nodes that they read.
    pub(super) unreadable: HashSet<NodeId>,
    /// The directory of each node.
    pub(super) folders: Vec<Folder>,
    /// Files that nothing reads, and that no text says: paths relative to the task.
    pub unread: Vec<PathBuf>,
}

/// The directory of a node.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) dir: TreePath,
    /// The directories of its inputs, in order.
    pub(super) branches: Vec<ReadBranch>,
    /// The rules of a sweep, unless something is wrong with them.
    pub(super) rules: Option<Rc<SweepRules>>,
    /// The names that definitions give to the node.
    pub(super) names: Vec<Box<str>>,
}

/// The directory of an input.
#[derive(Debug)]
pub(super) struct ReadBranch {
    pub(super) branch: Branch,
    /// The directory, unless there is none.
    pub(super) dir: Option<TreePath>,
    /// It is equal to another directory, from which the node was read.
    pub(super) is_copy: bool,
}

/// Reads the workflow of a task from its directories, as they are checked out, with the names of the task's inputs. Nothing needs to be
/// committed, and computations need not exist.
///
/// # Errors
///
/// Returns everything at once that is wrong with them.
pub fn written(dir: &Path) -> Result<WrittenDirectories, LoadError> {
    let real = real(dir)?;
    if !real.join(WORKFLOW).is_dir() {
        return Err(LoadError::NoTask(dir.to_owned()));
    }
    let mut source = Snapshot::of_files(&real);
    let mut findings = Problems::default();
    let inputs = match real.join(INPUTS).symlink_metadata() {
        Ok(_) => inputs(&mut source, &mut findings),
        Err(_) => None,
    };
    let mut written = read(&mut source, &mut findings);
    findings.end(dir)?;
    written.text.inputs = inputs;
    written.complete_text();
    Ok(written)
}

impl WrittenDirectories {
    /// Adds to the text what its directories know: the rules of its nodes, and the definitions.
    fn complete_text(&mut self) {
        let Text { expression, definitions, .. } = &mut self.text;
        for (at, folder) in self.folders.iter().enumerate() {
            let node = NodeId::at(at);
            if let Some(rules) = &folder.rules {
                expression.nodes_mut()[at].files = rule_files(rules);
            }
            for name in &folder.names {
                match definitions.iter_mut().find(|known| known.name == *name) {
                    Some(known) if known.nodes.contains(&node) => {}
                    Some(known) => known.nodes.push(node),
                    None => definitions.push(Definition::new(name.clone(), vec![node])),
                }
            }
        }
    }
}

/// Reads the directories of a task's workflow, and reports everything at once that is wrong with them.
pub(super) fn read(source: &mut impl TaskSource, findings: &mut Problems) -> WrittenDirectories {
    let mut reader = Reader {
        source,
        findings,
        written: WrittenDirectories::default(),
        visited: HashMap::new(),
        stack: Vec::new(),
    };
    reader.read();
    reader.written
}

struct Reader<'a, S: TaskSource> {
    source: &'a mut S,
    findings: &'a mut Problems,
    written: WrittenDirectories,
    visited: HashMap<Identity, Seen>,
    /// The nodes around the place.
    stack: Vec<OpenDirectory>,
}

/// The known facts of a directory.
#[derive(Clone, Copy)]
enum Seen {
    Open,
    /// It was read.
    Done(NodeId),
}

/// A node whose inputs are being read.
struct OpenDirectory {
    id: Identity,
    node: ExpressionNode,
    is_unreadable: bool,
    /// Its `kind` says that it is a sweep.
    is_sweep: bool,
    folder: Folder,
    /// The directory of the branches.
    inputs: Option<TreePath>,
}

impl<S: TaskSource> Reader<'_, S> {
    fn read(&mut self) {
        let task = self.source.task();
        let Some(task) = self.findings.note(Path::new(""), task) else { return };
        let root = self.find(&task, WORKFLOW);
        let Some((dir, id)) = root else { return };
        self.open(&dir, id);
        while let Some(open) = self.stack.last() {
            let branch = open.folder.branches.get(open.node.inputs.len());
            let Some((inputs, branch)) = open.inputs.clone().zip(branch) else {
                self.end();
                continue;
            };
            let name = branch.branch.name.clone();
            self.enter(&inputs, &name);
        }
    }

    /// Ends a node whose inputs were all read.
    fn end(&mut self) {
        let Some(open) = self.stack.pop() else { return };
        let OpenDirectory { id, mut node, is_unreadable, is_sweep, folder, .. } = open;
        if is_unreadable && is_sweep {
            // The meaning of the names in its body is not known.
            node.inputs.clear();
        }
        let node = self.add(node, folder);
        if is_unreadable {
            self.written.unreadable.insert(node);
        }
        self.visited.insert(id, Seen::Done(node));
        self.read_input(node);
    }

    fn add(&mut self, node: ExpressionNode, folder: Folder) -> NodeId {
        self.written.folders.push(folder);
        self.written.text.expression.push(node)
    }

    /// Adds an input to the node around the place.
    fn read_input(&mut self, node: NodeId) {
        let Some(open) = self.stack.last_mut() else { return };
        let branch = open.folder.branches.get(open.node.inputs.len());
        let label = branch.map(|read| read.branch.label.as_str().into());
        open.node.inputs.push(ExpressionInput { label, node });
    }

    /// Finds a directory, or reports that there is none.
    fn find(&mut self, around: &TreePath, name: &str) -> Option<(TreePath, Identity)> {
        let fault = match self.source.find(around, name) {
            Ok(Located::Directory { dir, identity }) => return Some((dir, identity)),
            Ok(Located::File { .. }) => LoadFault::NotADirectory,
            Err(fault) => fault,
        };
        self.findings.problem(&around.place().join(name), fault);
        None
    }

    /// Reads the directory of an input, unless it was read before.
    fn enter(&mut self, around: &TreePath, name: &str) {
        let found = self.find(around, name);
        let known = found.as_ref().and_then(|(_, id)| self.visited.get(id)).copied();
        if let Some(open) = self.stack.last_mut() {
            let branch = &mut open.folder.branches[open.node.inputs.len()];
            branch.dir = found.as_ref().map(|(dir, _)| dir.clone());
            branch.is_copy = known.is_some();
        }
        match (found, known) {
            (Some((dir, id)), None) => self.open(&dir, id),
            (Some(_), Some(Seen::Done(node))) => self.read_input(node),
            (Some((dir, _)), Some(Seen::Open)) => {
                let fault = LoadFault::Cycle(dir.place());
                self.findings.problem(&around.place().join(name), fault);
                self.unreadable_input(dir);
            }
            (None, _) => self.unreadable_input(around.clone()),
        }
    }

    /// Adds an input that could not be read.
    fn unreadable_input(&mut self, dir: TreePath) {
        let node = self.add(unreadable(), Folder::new(dir));
        self.written.unreadable.insert(node);
        self.read_input(node);
    }

    /// Reads the files of a node.
    fn open(&mut self, dir: &TreePath, id: Identity) {
        self.visited.insert(id.clone(), Seen::Open);
        let (node, folder) = (unreadable(), Folder::new(dir.clone()));
        let mut open =
            OpenDirectory { id, node, is_unreadable: true, is_sweep: false, folder, inputs: None };
        let listed = self.source.list(dir);
        if let Some(entries) = self.note(dir, "", listed) {
            self.read_node(dir, &entries, &mut open);
        }
        self.stack.push(open);
    }

    fn read_node(&mut self, dir: &TreePath, entries: &[OsString], open: &mut OpenDirectory) {
        let problems = self.findings.problems.len();
        let has = |name: &str| entries.iter().any(|entry| entry == name);
        let kind = self.line(dir, "kind").and_then(|text| {
            let kind = NodeKind::of_file(&text).ok_or(LoadFault::Kind(text));
            self.note(dir, "kind", kind)
        });
        open.is_sweep = kind == Some(NodeKind::Sweep);
        let has_files = kind.is_some_and(NodeKind::has_files);
        let value = match kind {
            Some(NodeKind::Text) => self.whole(dir, "value"),
            Some(kind) if !kind.has_value() => Some(String::new()),
            // It is a label, which may be left out.
            Some(_) if has_files && !has("value") => Some(String::new()),
            Some(_) | None => self.line(dir, "value"),
        };
        let value = kind.zip(value).and_then(|(kind, value)| {
            let value = kind.value(&value).map_err(LoadFault::Name);
            self.note(dir, "value", value)
        });
        let mut outputs = None;
        let mut files = Vec::new();
        let mut is_unreadable = self.findings.problems.len() > problems;
        for name in entries {
            match name.as_encoded_bytes() {
                b"kind" => {}
                b"value" if kind.is_none_or(NodeKind::has_value) => {}
                b"definition" => {
                    open.folder.names = self.lines(dir, DEFINITION).unwrap_or_default();
                }
                b"resources" if matches!(kind, None | Some(NodeKind::Computation)) => {
                    let lines = self.lines(dir, RESOURCES).into_iter().flatten();
                    let rows = lines.map(|line| vec![line]).collect();
                    files.push(RuleFile { name: RESOURCES.into(), rows });
                }
                b"outputs" if kind.is_none_or(NodeKind::has_slice) => {
                    outputs = self.slice(dir);
                    is_unreadable |= outputs.is_none();
                }
                b"inputs" if kind.is_none_or(NodeKind::has_inputs) => {
                    let inputs = self.source.enter(dir, "inputs");
                    open.inputs = self.note(dir, "inputs", inputs);
                    is_unreadable |= open.inputs.is_none();
                }
                _ if kind.zip(name.to_str()).is_some_and(|(kind, name)| kind.has_file(name)) => {}
                bytes => {
                    let path = dir.place().join(name);
                    if !bytes.starts_with(b".") {
                        self.findings.warning(&path, WarningKind::Unread);
                    }
                    self.written.unread.push(path);
                }
            }
        }
        if has_files {
            open.folder.rules = self.rules(dir, entries).map(Rc::new);
        }
        if let Some(inputs) = &open.inputs {
            let branches = self.branches(inputs).into_iter();
            let read = |branch| ReadBranch { branch, dir: None, is_copy: false };
            open.folder.branches = branches.map(read).collect();
        }
        if let Some((kind, value)) = kind.zip(value).filter(|_| !is_unreadable) {
            let inputs = Vec::with_capacity(open.folder.branches.len());
            open.node = ExpressionNode { kind, value, files, inputs, outputs };
            open.is_unreadable = false;
        }
    }

    /// Reads the files with the rules of a node, and notes other contents of them.
    fn rules(&mut self, dir: &TreePath, entries: &[OsString]) -> Option<SweepRules> {
        let warnings = self.findings.warnings.len();
        let files = sweep_files(self.source, dir, entries, self.findings);
        let more = self.findings.warnings[warnings..].iter();
        let more = more.filter(|it| matches!(it.oddity, WarningKind::MoreLines));
        self.written.unread.extend(more.map(|warning| warning.path.clone()));
        if entries.iter().any(|entry| entry == FACTORS)
            && let Ok(factors) = self.source.enter(dir, FACTORS)
        {
            let names = self.source.list(&factors).unwrap_or_default();
            let unread = names.into_iter().filter(|it| it.as_encoded_bytes().starts_with(b"."));
            let unread = unread.map(|name| dir.place().join(FACTORS).join(name));
            self.written.unread.extend(unread);
        }
        files
    }

    /// Returns the branches in a directory `inputs`, in the order of their numbers. Reports problems of the numbering, and
    /// notes other entries.
    fn branches(&mut self, inputs: &TreePath) -> Vec<Branch> {
        let listed = self.source.list(inputs);
        let mut branches = Vec::new();
        for entry in self.note(inputs, "", listed).unwrap_or_default() {
            if let Some(branch) = entry.to_str().and_then(Branch::parse) {
                branches.push(branch);
                continue;
            }
            let path = inputs.place().join(&entry);
            match entry.to_str() {
                None => self.findings.problem(&path, LoadFault::Text(TextError::NotText)),
                Some(name) if name.starts_with('.') => {}
                // A plain file with another name is the user's note.
                Some(name)
                    if matches!(self.source.find(inputs, name), Ok(Located::File { .. })) =>
                {
                    self.findings.warning(&path, WarningKind::Unread);
                }
                Some(_) => self.findings.problem(&path, LoadFault::Place),
            }
            self.written.unread.push(path);
        }
        branches.sort_by(|a, b| (a.first, a.last, &a.name).cmp(&(b.first, b.last, &b.name)));
        check(&|| inputs.place(), &branches, self.findings);
        branches
    }

    /// Returns the value of a result, or adds its problem. No path is built for a valid node: it is as long as the workflow
    /// is deep.
    fn note<T>(&mut self, dir: &TreePath, name: &str, result: Result<T, LoadFault>) -> Option<T> {
        let path = || if name.is_empty() { dir.place() } else { dir.place().join(name) };
        result.map_err(|fault| self.findings.problem(&path(), fault)).ok()
    }

    /// Reads a file of lines.
    fn lines(&mut self, dir: &TreePath, name: &str) -> Option<Vec<Box<str>>> {
        match parse_lines(self.source.read(dir, name)) {
            Ok(lines) => Some(lines.into_iter().map(String::into_boxed_str).collect()),
            wrong => {
                self.findings.note_lines(&dir.place().join(name), wrong);
                None
            }
        }
    }

    /// Reads a file that is any text.
    fn whole(&mut self, dir: &TreePath, name: &str) -> Option<String> {
        let text = parse_text(self.source.read_points(dir, name));
        self.note(dir, name, text)
    }

    /// Reads a file of one line.
    fn line(&mut self, dir: &TreePath, name: &str) -> Option<String> {
        let line = parse_line(self.source.read(dir, name));
        let (line, more) = self.note(dir, name, line)?;
        if more {
            let path = dir.place().join(name);
            self.findings.warning(&path, WarningKind::MoreLines);
            self.written.unread.push(path);
        }
        Some(line)
    }

    fn slice(&mut self, dir: &TreePath) -> Option<WrittenSlice> {
        let path = || dir.place().join("outputs");
        let lines = self.lines(dir, "outputs")?;
        if lines.is_empty() {
            self.findings.problem(&path(), LoadFault::NoOutput);
        } else if lines.len() > MAX_ARITY {
            self.findings.problem(&path(), LoadFault::TooMany);
        }
        let slice = WrittenSlice::parse(lines.iter().map(|line| &**line));
        for (at, error) in slice.wrong() {
            self.findings.problem_in_line(&path(), at + 1, LoadFault::Slice(error));
        }
        Some(slice)
    }
}

/// A node that stands for its inputs until more is known of it.
fn unreadable() -> ExpressionNode {
    ExpressionNode {
        kind: NodeKind::All,
        value: Box::default(),
        files: Vec::new(),
        inputs: Vec::new(),
        outputs: None,
    }
}

impl Folder {
    const fn new(dir: TreePath) -> Self {
        Self { dir, branches: Vec::new(), rules: None, names: Vec::new() }
    }
}

/// A directory that fills inputs of a computation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Branch {
    /// The name of the directory.
    pub(super) name: String,
    /// The first input that it fills.
    pub(super) first: u8,
    /// The last input that it fills.
    pub(super) last: u8,
    /// The label, for humans.
    pub(super) label: String,
}

impl Branch {
    /// The number of inputs that it fills.
    pub(super) fn places(&self) -> usize {
        usize::from(self.last + 1).saturating_sub(usize::from(self.first))
    }

    fn parse(name: &str) -> Option<Self> {
        let (first, rest) = number(name)?;
        let (last, rest) = match rest.strip_prefix('_') {
            Some(rest) => number(rest)?,
            None => (first, rest),
        };
        let label = rest.strip_prefix('-')?.to_owned();
        Some(Self { name: name.to_owned(), first, last, label })
    }
}

fn number(text: &str) -> Option<(u8, &str)> {
    let (digits, rest) = text.split_at_checked(2)?;
    let plain = digits.bytes().all(|c| c.is_ascii_digit());
    plain.then_some((digits.parse().ok()?, rest))
}

fn check(dir: &dyn Fn() -> PathBuf, branches: &[Branch], findings: &mut Problems) {
    let mut next = 0;
    for branch in branches {
        let (first, last) = (usize::from(branch.first), usize::from(branch.last));
        let mut wrong = |fault| findings.problem(&dir().join(&branch.name), fault);
        if last < first {
            wrong(LoadFault::Backwards);
            continue;
        }
        if first > next {
            wrong(LoadFault::Gap { first: next, last: first - 1 });
        }
        if first < next {
            wrong(LoadFault::Overlap { first, last: last.min(next - 1) });
        }
        next = next.max(last + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_which_inputs_it_fills() {
        let parse = |name: &str| {
            Branch::parse(name).map(|branch| (branch.first, branch.last, branch.label))
        };
        assert_eq!(parse("00-left"), Some((0, 0, "left".to_owned())));
        assert_eq!(parse("01_03-a-b \"c\" ü"), Some((1, 3, "a-b \"c\" ü".to_owned())));
        assert_eq!(parse("00-"), Some((0, 0, String::new())));
        for wrong in ["", "0-a", "00", "000-a", "00_1-a", "00_01", "a0-b", "+1-a", "0é-a"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn gaps_overlaps_and_backward_ranges_are_reported() {
        let names = ["00_02-a", "02_03-b", "03_01-c", "06-d"];
        let branches: Vec<_> = names.iter().filter_map(|name| Branch::parse(name)).collect();
        let mut findings = Problems::default();
        check(&|| "inputs".into(), &branches, &mut findings);
        let told: Vec<_> = findings.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "inputs/02_03-b: input 02 is filled already",
                "inputs/03_01-c: the range ends before it begins",
                "inputs/06-d: nothing fills inputs 04 to 05",
            ]
        );
    }
}
