//! The workflow of a task as somebody wrote it: with its labels, and with its links as sharing.
//!
//! Nothing needs to be committed, and computations need not exist: only the directories of the
//! workflow must be right.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ce_git::Snapshot;
use ce_model::expression::{
    DEFINITION, Definition, Expression, ExpressionInput, ExpressionNode, NodeKind, RESOURCES,
    RuleFile, Text, rule_files,
};
use ce_model::slice::WrittenSlice;
use ce_model::sweep::FACTORS;
use ce_model::task::NodeId;

use super::nodes::{Branch, list_numbered};
use super::problems::{LoadFault, Problems, WarningKind};
use super::source::{Identity, Located, TaskSource, parse_line, parse_lines, parse_text};
use super::sweep_files::{is_read, sweep_files};
use super::{LoadError, inputs, real, text_workflow};

/// A workflow as somebody wrote it.
#[derive(Debug)]
pub struct Written {
    /// The expression of its directories, with all labels.
    pub text: Text,
    /// Files in them that no text says: paths relative to the task.
    pub unread: Vec<PathBuf>,
}

/// Reads the workflow of a task from its directories, as they are checked out.
///
/// # Errors
///
/// Returns everything at once that is wrong with them.
pub fn written(dir: &Path) -> Result<Written, LoadError> {
    let real = real(dir)?;
    if !real.join("workflow").is_dir() {
        return Err(LoadError::NoTask(dir.to_owned()));
    }
    let mut source = Snapshot::of_files(&real);
    let mut findings = Problems::default();
    let inputs = match real.join("inputs").symlink_metadata() {
        Ok(_) => inputs(&mut source, &mut findings),
        Err(_) => None,
    };
    let mut reader = Reader {
        source: &mut source,
        findings,
        expression: Expression::default(),
        definitions: Vec::new(),
        visited: HashMap::new(),
        stack: Vec::new(),
        unread: Vec::new(),
    };
    reader.read();
    let Reader { findings, expression, definitions, unread, .. } = reader;
    findings.end(dir)?;
    Ok(Written { text: Text { inputs, definitions, expression, ..Text::default() }, unread })
}

/// Reads the text that is the workflow of a task, as it is checked out; `None` if it has none.
///
/// # Errors
///
/// Fails if it cannot be read, or if there are directories, too.
pub fn written_text(dir: &Path) -> Result<Option<String>, LoadError> {
    let mut source = Snapshot::of_files(&real(dir)?);
    let mut findings = Problems::default();
    let text = text_workflow::contents(&mut source, &mut findings);
    findings.end(dir)?;
    Ok(text.flatten())
}

struct Reader<'a, S: TaskSource> {
    source: &'a mut S,
    findings: Problems,
    expression: Expression,
    definitions: Vec<Definition>,
    visited: HashMap<Identity, Seen>,
    /// The nodes around the place.
    stack: Vec<OpenDirectory<S::Dir>>,
    unread: Vec<PathBuf>,
}

/// The known facts of a directory.
#[derive(Clone, Copy)]
enum Seen {
    Open,
    /// It was read, and is this node unless something is wrong with it.
    Done(Option<NodeId>),
}

/// A node of which the inputs are being read.
struct OpenDirectory<D> {
    id: Identity,
    node: Option<ExpressionNode>,
    /// The directory of the branches.
    inputs: Option<D>,
    branches: Vec<Branch>,
    next: usize,
    /// The names that definitions give it.
    definitions: Vec<Box<str>>,
}

impl<S: TaskSource> Reader<'_, S> {
    fn read(&mut self) {
        let task = self.source.task();
        let Some(task) = self.findings.note(Path::new(""), task) else { return };
        self.enter(&task, "workflow");
        while let Some(open) = self.stack.last_mut() {
            let branch = open.branches.get(open.next).map(|branch| branch.name.clone());
            let Some((inputs, name)) = open.inputs.clone().zip(branch) else {
                self.end();
                continue;
            };
            open.next += 1;
            if let Some(Seen::Done(node)) = self.enter(&inputs, &name) {
                self.add(node);
            }
        }
    }

    /// Ends a node of which all inputs were read.
    fn end(&mut self) {
        let Some(open) = self.stack.pop() else { return };
        let node = open.node.map(|node| self.expression.push(node));
        for (name, node) in open.definitions.into_iter().zip(node.into_iter().cycle()) {
            match self.definitions.iter_mut().find(|known| known.name == name) {
                Some(known) if known.nodes.contains(&node) => {}
                Some(known) => known.nodes.push(node),
                None => self.definitions.push(Definition { name, nodes: vec![node] }),
            }
        }
        self.visited.insert(open.id, Seen::Done(node));
        self.add(node);
    }

    /// Adds an input to the node around the place.
    fn add(&mut self, input: Option<NodeId>) {
        let Some(open) = self.stack.last_mut() else { return };
        let branch = open.branches.get(open.next.saturating_sub(1));
        match (&mut open.node, input, branch) {
            (Some(node), Some(input), Some(branch)) => {
                let label = Some(branch.label.as_str().into());
                node.inputs.push(ExpressionInput { label, node: input });
            }
            // Something is wrong with the input, and reported.
            _ => open.node = None,
        }
    }

    /// Begins to read a directory; returns what is known of it if there is nothing more to read.
    fn enter(&mut self, around: &S::Dir, name: &str) -> Option<Seen> {
        let place = self.source.place(around).join(name);
        let wrong = Some(Seen::Done(None));
        let (dir, id) = match self.source.find(around, name) {
            Ok(Located::Directory { dir, identity }) => (dir, identity),
            Ok(Located::File { .. }) => {
                self.findings.problem(&place, LoadFault::NotADirectory);
                return wrong;
            }
            Err(fault) => {
                self.findings.problem(&place, fault);
                return wrong;
            }
        };
        match self.visited.get(&id) {
            Some(Seen::Open) => {
                let above = self.source.place(&dir);
                self.findings.problem(&place, LoadFault::Cycle(above));
                return wrong;
            }
            Some(known) => return Some(*known),
            None => {}
        }
        self.visited.insert(id.clone(), Seen::Open);
        let open = self.open(&dir, id);
        self.stack.push(open);
        None
    }

    /// Reads the files of a node.
    fn open(&mut self, dir: &S::Dir, id: Identity) -> OpenDirectory<S::Dir> {
        let mut open = OpenDirectory {
            id,
            node: None,
            inputs: None,
            branches: Vec::new(),
            next: 0,
            definitions: Vec::new(),
        };
        let place = self.source.place(dir);
        let listed = self.source.list(dir);
        let entries = self.findings.note(&place, listed).unwrap_or_default();
        let kind = self.line(dir, "kind");
        let kind = kind.and_then(|text| {
            let kind = NodeKind::of_file(&text).ok_or(LoadFault::Kind(text));
            self.findings.note(&place.join("kind"), kind)
        });
        let has_files = kind.is_some_and(NodeKind::has_files);
        let value = if kind == Some(NodeKind::Text) {
            self.whole(dir, "value")
        } else if kind.is_some_and(|kind| !kind.has_value()) {
            Some(String::new())
        } else if !has_files || entries.iter().any(|entry| entry == "value") {
            self.line(dir, "value")
        } else {
            Some(String::new())
        };
        let value = kind.zip(value).and_then(|(kind, value)| {
            let value = kind.value(&value).map_err(LoadFault::Name);
            self.findings.note(&place.join("value"), value)
        });
        let mut files = if has_files { self.files(dir, &entries) } else { Some(Vec::new()) };
        let mut outputs = None;
        for name in entries {
            let is_rule = kind.zip(name.to_str()).is_some_and(|(kind, name)| is_read(kind, name));
            match name.as_encoded_bytes() {
                b"kind" => {}
                b"value" if kind.is_none_or(NodeKind::has_value) => {}
                b"definition" => {
                    open.definitions = self.lines(dir, DEFINITION);
                }
                b"resources" if kind == Some(NodeKind::Computation) => {
                    let lines = self.lines(dir, RESOURCES).into_iter().map(|line| vec![line]);
                    let file = RuleFile { name: RESOURCES.into(), rows: lines.collect() };
                    files.iter_mut().for_each(|files| files.push(file.clone()));
                }
                b"outputs" if kind.is_some_and(NodeKind::has_slice) => outputs = self.slice(dir),
                b"inputs" if kind.is_some_and(NodeKind::has_inputs) => {
                    let inputs = self.source.enter(dir, "inputs");
                    open.inputs = self.findings.note(&place.join("inputs"), inputs);
                }
                _ if is_rule => {}
                _ => self.unread.push(place.join(name)),
            }
        }
        if let Some(inputs) = &open.inputs {
            open.branches = list_numbered(self.source, inputs, &mut self.findings);
            self.note_unread(inputs, &open.branches);
        }
        open.node = kind.zip(value).zip(files).map(|((kind, value), files)| ExpressionNode {
            kind,
            value,
            files,
            inputs: Vec::with_capacity(open.branches.len()),
            outputs,
        });
        open
    }

    /// Reads the files that are the rules of a node, and notes what they say beyond that.
    fn files(&mut self, dir: &S::Dir, entries: &[OsString]) -> Option<Vec<RuleFile>> {
        let warnings = self.findings.warnings.len();
        let files = sweep_files(self.source, dir, entries, &mut self.findings);
        let more = self.findings.warnings[warnings..].iter();
        let more = more.filter(|it| matches!(it.oddity, WarningKind::MoreLines));
        self.unread.extend(more.map(|warning| warning.path.clone()));
        let place = self.source.place(dir);
        if entries.iter().any(|entry| entry == FACTORS)
            && let Ok(factors) = self.source.enter(dir, FACTORS)
        {
            let names = self.source.list(&factors).unwrap_or_default();
            let unread = names.into_iter().filter(|it| it.as_encoded_bytes().starts_with(b"."));
            self.unread.extend(unread.map(|name| place.join(FACTORS).join(name)));
        }
        (!files.is_wrong).then(|| rule_files(&files.rules))
    }

    /// Notes what is in a directory `inputs` beside the branches.
    fn note_unread(&mut self, inputs: &S::Dir, branches: &[Branch]) {
        let place = self.source.place(inputs);
        for name in self.source.list(inputs).unwrap_or_default() {
            if !branches.iter().any(|branch| *branch.name == *name) {
                self.unread.push(place.join(name));
            }
        }
    }

    /// Reads a file of lines.
    fn lines(&mut self, dir: &S::Dir, name: &str) -> Vec<Box<str>> {
        let path = self.source.place(dir).join(name);
        let lines = parse_lines(self.source.read(dir, name));
        let lines = self.findings.note_lines(&path, lines).unwrap_or_default();
        lines.into_iter().map(String::into_boxed_str).collect()
    }

    /// Reads a file that is any text.
    fn whole(&mut self, dir: &S::Dir, name: &str) -> Option<String> {
        let text = parse_text(self.source.read(dir, name));
        self.findings.note(&self.source.place(dir).join(name), text)
    }

    /// Reads a file of one line.
    fn line(&mut self, dir: &S::Dir, name: &str) -> Option<String> {
        let path = self.source.place(dir).join(name);
        let line = parse_line(self.source.read(dir, name));
        let (line, more) = self.findings.note(&path, line)?;
        if more {
            self.findings.warning(&path, WarningKind::MoreLines);
            self.unread.push(path);
        }
        Some(line)
    }

    fn slice(&mut self, dir: &S::Dir) -> Option<WrittenSlice> {
        let path = self.source.place(dir).join("outputs");
        let lines = parse_lines(self.source.read(dir, "outputs"));
        let lines = self.findings.note_lines(&path, lines)?;
        let slice = WrittenSlice::parse(lines.iter().map(String::as_str));
        for (at, error) in slice.wrong() {
            self.findings.problem_in_line(&path, at + 1, LoadFault::Slice(error));
        }
        if lines.is_empty() {
            self.findings.problem(&path, LoadFault::NoOutput);
        }
        Some(slice)
    }
}
