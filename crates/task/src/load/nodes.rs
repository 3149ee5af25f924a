//! The nodes of a workflow that is loaded: their entries, their values, and the computations, files and resources that they refer to.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ce_model::expression::{DEFINITION, NodeKind};
use ce_model::name::{ComputationName, InputName, MemberPath, NameError, TreeName};
use ce_model::resources::{ResourceLine, ResourceLines, Resources};
use ce_model::slice::Slice;
use ce_model::sweep::{BoundId, LevelName, SWEEP_INPUTS, SWEEP_OUTPUTS, ScopeId, Scopes, Sweep};
use ce_model::task::{
    Builder, ComputationId, FreeNames, InputId, MEMBER_INPUTS, NamedComputation, Node, NodeId,
    ROOT_LABEL, TREE_INPUTS, TREE_OUTPUTS, TaskParts, TaskResources, VALUE,
};
use ce_model::template::Template;
use ce_model::text_file::TextError;

use super::computations::{Library, SharedLines, WrittenLine};
use super::nearest;
use super::problems::{LoadFault, Problems, ResourceFault, WarningKind};
use super::source::{Identity, Located, TaskSource, parse_line, parse_lines, parse_text};
use super::sweep_files::{SweepFiles, is_read};
use super::values::{TaskFiles, TaskTrees};

/// Makes nodes of the files of directories.
pub(super) struct NodeReader<'a, 'b, S: TaskSource> {
    pub(super) inputs: Option<&'a [InputName]>,
    pub(super) files: &'a mut TaskFiles,
    pub(super) trees: &'a mut TaskTrees,
    pub(super) library: &'a mut Library<'b, S>,
    pub(super) findings: &'a mut Problems,
    pub(super) builder: Builder,
    /// The free names of the nodes.
    pub(super) free: FreeNames,
    pub(super) scopes: Scopes,
    pub(super) sweeps: Vec<Sweep>,
    /// The inputs of each of these: sweeps of the same rules and inputs are one, regardless of their labels.
    pub(super) sweep_inputs: Vec<Vec<NodeId>>,
    /// The lines of `resources` that are for several nodes.
    pub(super) shared: SharedLines,
    pub(super) resources: TaskResources,
}

/// A node whose inputs are being read.
pub(super) struct OpenNode<D> {
    pub(super) dir: D,
    /// The directory of the branches.
    pub(super) inputs: Option<D>,
    pub(super) id: Identity,
    pub(super) scope: ScopeId,
    /// The scope of its first input: the body of a sweep has its own.
    pub(super) first_scope: ScopeId,
    pub(super) maker: Option<NodeOperation>,
    pub(super) slice: Option<Slice>,
    /// The lines of its file `resources`.
    pub(super) resources: Vec<WrittenLine>,
    pub(super) branches: Vec<Branch>,
    /// The labels that are written, if the order of the branches says which inputs they fill.
    pub(super) labels: Option<Vec<Option<String>>>,
    pub(super) nodes: Vec<Option<NodeId>>,
}

impl<'a, 'b, S: TaskSource> NodeReader<'a, 'b, S> {
    pub(super) fn new(
        inputs: Option<&'a [InputName]>,
        (files, trees, shared): (&'a mut TaskFiles, &'a mut TaskTrees, SharedLines),
        library: &'a mut Library<'b, S>,
        findings: &'a mut Problems,
    ) -> Self {
        Self {
            inputs,
            files,
            trees,
            library,
            findings,
            builder: Builder::default(),
            free: FreeNames::default(),
            scopes: Scopes::default(),
            sweeps: Vec::new(),
            sweep_inputs: Vec::new(),
            shared,
            resources: TaskResources::default(),
        }
    }

    /// The path of an entry in a directory, relative to the task.
    pub(super) fn path(&self, dir: &S::Dir, name: &str) -> PathBuf {
        let place = self.library.source.place(dir);
        if name.is_empty() { place } else { place.join(name) }
    }

    pub(super) fn problem(&mut self, dir: &S::Dir, name: &str, fault: impl Into<LoadFault>) {
        let path = self.path(dir, name);
        self.findings.problem(&path, fault);
    }

    pub(super) fn warning(&mut self, dir: &S::Dir, name: &str, oddity: WarningKind) {
        let path = self.path(dir, name);
        self.findings.warning(&path, oddity);
    }

    /// Returns the value of a result, or adds its problem.
    pub(super) fn note<T>(
        &mut self,
        dir: &S::Dir,
        name: &str,
        result: Result<T, LoadFault>,
    ) -> Option<T> {
        result.map_err(|fault| self.problem(dir, name, fault)).ok()
    }

    /// Returns the node equal to this one.
    pub(super) fn intern(&mut self, node: Node) -> NodeId {
        let id = self.builder.intern(node);
        if id.index() == self.free.len() {
            let inputs = self.inputs.unwrap_or_default().len();
            let (files, trees) = (self.files.all(), self.trees.all());
            let parts = TaskParts { inputs, files, trees, sweeps: &self.sweeps };
            self.free.add(&self.builder[id], parts);
        }
        id
    }
}

/// The computations of a node: one, or those of all points of the sweeps around it.
#[derive(Clone)]
pub(super) struct Computations {
    pub(super) named: NamedComputation,
    /// All of them, each once.
    pub(super) ids: Vec<ComputationId>,
}

/// The part of a node with inputs that makes its values.
#[derive(Clone)]
pub(super) enum NodeOperation {
    Computation(Computations),
    Tree(Template<TreeName>),
    Member(Template<MemberPath>),
    All,
    Sweep(Box<SweepFiles>),
}

impl NodeOperation {
    /// The number of inputs that it takes if so many are given.
    pub(super) fn takes<S: TaskSource>(&self, library: &Library<'_, S>, given: usize) -> usize {
        match self {
            Self::Computation(it) => library.get(it.named.first).inputs.len(),
            Self::Tree(_) => TREE_INPUTS.len().min(given),
            Self::Member(_) => MEMBER_INPUTS.len(),
            Self::All => given.max(1),
            Self::Sweep(_) => given.clamp(1, SWEEP_INPUTS.len()),
        }
    }

    /// The names of its inputs, if so many are given.
    pub(super) fn inputs<S: TaskSource>(&self, library: &Library<'_, S>) -> Vec<String> {
        match self {
            Self::Computation(it) => library.get(it.named.first).inputs.clone(),
            Self::Tree(_) => TREE_INPUTS.map(str::to_owned).into(),
            Self::Member(_) => MEMBER_INPUTS.map(str::to_owned).into(),
            Self::All => Vec::new(),
            Self::Sweep(_) => SWEEP_INPUTS.map(str::to_owned).into(),
        }
    }

    /// The names of its outputs.
    pub(super) fn outputs<S: TaskSource>(&self, library: &Library<'_, S>) -> Vec<String> {
        match self {
            Self::Computation(it) => library.get(it.named.first).outputs.clone(),
            Self::Tree(_) => TREE_OUTPUTS.map(str::to_owned).into(),
            Self::Member(_) | Self::All => vec![VALUE.to_owned()],
            Self::Sweep(_) => SWEEP_OUTPUTS.map(str::to_owned).into(),
        }
    }

    /// Returns the slice of a node that says none.
    pub(super) fn slice<S: TaskSource>(&self, library: &Library<'_, S>) -> Slice {
        match self {
            Self::Computation(_) => Slice::all(self.outputs(library).len()),
            Self::Tree(_) | Self::Member(_) | Self::All | Self::Sweep(_) => Slice::all(1),
        }
    }

    /// Its name in messages.
    pub(super) fn title<S: TaskSource>(&self, library: &Library<'_, S>) -> String {
        match self {
            Self::Computation(Computations { named, .. }) => match &named.open {
                Some(name) => name.to_string(),
                None => library.get(named.first).name.to_string(),
            },
            Self::Tree(name) => format!("the tree {name}"),
            Self::Member(path) => format!("the member {path}"),
            Self::All => "ALL".to_owned(),
            Self::Sweep(_) => "a sweep".to_owned(),
        }
    }
}

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
                b"kind" | b"definition" | [b'.', ..] => true,
                b"value" => kind.is_none_or(NodeKind::has_value),
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
        let line = parse_line(self.library.source.read(dir, name));
        let (line, more) = self.note(dir, name, line)?;
        if more {
            self.warning(dir, name, WarningKind::MoreLines);
        }
        Some(line)
    }
}

impl<S: TaskSource> NodeReader<'_, '_, S> {
    pub(super) fn input(&mut self, scope: ScopeId, name: &str) -> Result<Option<Node>, LoadFault> {
        let Some(inputs) = self.inputs else {
            return Ok(None);
        };
        if let Some(at) = inputs.iter().position(|input| input.as_str() == name) {
            return Ok(Some(Node::Input(InputId::at(at))));
        }
        if let Some(bound) = self.scopes.find(scope, name) {
            return Ok(Some(Node::Bound(bound)));
        }
        let names = inputs.iter().map(ToString::to_string).chain(self.scopes.names(scope));
        let names = names.chain(self.library.source.defined());
        let nearest = nearest(name, &names.collect::<Vec<_>>());
        Err(LoadFault::NoInput { name: name.to_owned(), nearest })
    }

    /// The names that definitions give to a node. None is that of an input.
    pub(super) fn definitions(&mut self, dir: &S::Dir) -> Vec<Box<str>> {
        let path = self.path(dir, DEFINITION);
        let lines = parse_lines(self.library.source.read(dir, DEFINITION));
        let names = self.findings.note_lines(&path, lines).unwrap_or_default();
        let inputs = self.inputs.unwrap_or_default();
        for (line, name) in (1..).zip(&names) {
            let fault = if name.is_empty() || name == ROOT_LABEL {
                LoadFault::DefinitionName(name.clone())
            } else if inputs.iter().any(|input| input.as_str() == name) {
                LoadFault::DefinedName(name.clone(), "an input of the task")
            } else {
                continue;
            };
            self.findings.problem_in_line(&path, line, fault);
        }
        names.into_iter().map(String::into_boxed_str).collect()
    }

    /// A text that the workflow holds.
    pub(super) fn text(&mut self, dir: &S::Dir, scope: ScopeId) -> Result<Option<Node>, LoadFault> {
        let contents = parse_text(self.library.source.read_points(dir, "value"))?;
        Ok(self.template(dir, scope, &contents)?.map(Node::Text))
    }

    pub(super) fn file(
        &mut self,
        dir: &S::Dir,
        scope: ScopeId,
        path: &str,
    ) -> Result<Option<Node>, LoadFault> {
        let Some(path) = self.template(dir, scope, path)? else { return Ok(None) };
        let file = self.files.find(self.library.source, path, self.findings)?;
        Ok(file.map(Node::File))
    }

    /// Parses a value in which names stand for their texts: those of inputs, and those that are bound in the scope.
    /// Returns `None` if it may have some, and the task's inputs are not known.
    pub(super) fn template<T>(
        &mut self,
        dir: &S::Dir,
        scope: ScopeId,
        value: &str,
    ) -> Result<Option<Template<T>>, LoadFault>
    where
        T: AsRef<str> + FromStr<Err = NameError>,
    {
        let written: T = value.parse().map_err(LoadFault::Name)?;
        if !value.contains('{') {
            return Ok(Some(written.into()));
        }
        let Some(inputs) = self.inputs else { return Ok(None) };
        let place = self.library.source.shown_place(dir);
        let template =
            Template::new(written, |name| self.scopes.number(scope, inputs, name), &place);
        Ok(Some(template))
    }
}

impl<S: TaskSource> NodeReader<'_, '_, S> {
    /// Finds the computations of a node with this value. Returns `None` if the names that it may have are not known, or if a
    /// computation has a problem, which is reported once.
    pub(super) fn computations(
        &mut self,
        dir: &S::Dir,
        scope: ScopeId,
        value: &str,
    ) -> Result<Option<Computations>, LoadFault> {
        let name: Option<Template<ComputationName>> = self.template(dir, scope, value)?;
        let Some(name) = name else { return Ok(None) };
        if !name.is_open() {
            let found = self.library.find(value, self.findings);
            let found = found.map_err(|fault| self.mistyped(scope, &name, fault))?;
            return Ok(found.map(|id| Computations { named: id.into(), ids: vec![id] }));
        }
        let names = self.scopes.level_names(scope, &name, self.inputs.unwrap_or_default())?;
        let ids = self.of_levels(value, &names)?;
        Ok(ids.and_then(|ids| {
            let (first, open) = (*ids.first()?, Some(Box::new(name)));
            Some(Computations { named: NamedComputation { first, open }, ids })
        }))
    }

    /// Finds the computations that a value leads to.
    fn of_levels(
        &mut self,
        value: &str,
        names: &[LevelName],
    ) -> Result<Option<Vec<ComputationId>>, LoadFault> {
        let mut ids: Vec<ComputationId> = Vec::with_capacity(names.len());
        let mut is_complete = true;
        for LevelName { texts, name } in names {
            let found = match name {
                Ok(name) => self.library.find(name.as_str(), self.findings),
                Err(error) => Err(LoadFault::Name(error.clone())),
            };
            let found = found.and_then(|found| {
                let pair = found.zip(ids.first());
                pair.map_or(Ok(()), |(id, first)| self.library.compare(id, *first))?;
                Ok(found)
            });
            match found.map_err(|fault| bound(value, texts, other_than(names, fault)))? {
                Some(id) if ids.contains(&id) => {}
                Some(id) => ids.push(id),
                None => is_complete = false,
            }
        }
        Ok(is_complete.then_some(ids))
    }

    /// The fault of a value without names of factors, in which somebody may have mistyped one.
    fn mistyped(
        &self,
        scope: ScopeId,
        name: &Template<ComputationName>,
        fault: LoadFault,
    ) -> LoadFault {
        let LoadFault::NoComputation { name: value, nearest: None } = fault else { return fault };
        let known: Vec<String> = self.scopes.names(scope).collect();
        let meant = name.unknown().find_map(|unknown| {
            let meant = nearest(unknown, &known)?;
            Some(value.replace(&format!("{{{unknown}}}"), &format!("{{{meant}}}")))
        });
        LoadFault::NoComputation { name: value, nearest: meant }
    }
}

/// The fault of a value with texts of its names.
fn bound(value: &str, texts: &[String], fault: LoadFault) -> LoadFault {
    LoadFault::Bound { value: value.to_owned(), texts: texts.to_vec(), fault: Box::new(fault) }
}

/// The fault of one of these names, without the advice to take another one of them.
fn other_than(names: &[LevelName], fault: LoadFault) -> LoadFault {
    match fault {
        LoadFault::NoComputation { name, nearest } => {
            let mut known = names.iter().filter_map(|it| it.name.as_ref().ok());
            let nearest = nearest.filter(|nearest| known.all(|name| name.as_str() != nearest));
            LoadFault::NoComputation { name, nearest }
        }
        other => other,
    }
}

impl<S: TaskSource> NodeReader<'_, '_, S> {
    /// Lets a node of a computation ask for what its own lines say, then those of the task, then those of the
    /// computation.
    pub(super) fn request(
        &mut self,
        (node, computation): (NodeId, ComputationId),
        (dir, scope): (&S::Dir, ScopeId),
        own: &[WrittenLine],
    ) {
        let name = &self.library.get(computation).name;
        let task = self.shared.task.iter().filter(|(it, _)| it == name).map(|(_, line)| line);
        let lines = own.iter().chain(task).chain(self.library.resources(computation)).cloned();
        let lines: Vec<WrittenLine> = lines.collect();
        if lines.is_empty() {
            return;
        }
        let place = self.library.source.shown_place(dir);
        let mut right = Vec::with_capacity(lines.len());
        for line in lines {
            let is_known = right.iter().any(|it: &ResourceLine| it.resource == line.resource);
            if is_known {
                continue;
            }
            match self.look_up(&line, scope, &place) {
                Ok(line) => right.extend(line),
                Err(fault) => {
                    if self.shared.reported.insert((line.path.clone(), line.line)) {
                        self.findings.problem_in_line(&line.path, line.line, fault);
                    }
                }
            }
        }
        self.resources.add(node, computation, ResourceLines::new(right));
    }

    /// Looks up the names in a line. Returns `None` if it may have some, and the task's inputs are not known.
    fn look_up(
        &mut self,
        written: &WrittenLine,
        scope: ScopeId,
        place: &Path,
    ) -> Result<Option<ResourceLine>, ResourceFault> {
        let Some(inputs) = self.inputs else { return Ok(None) };
        let WrittenLine { resource, amount, path, line } = written.clone();
        let amount = Template::new(amount, |name| self.scopes.number(scope, inputs, name), place);
        if let Some(name) = amount.unknown().next() {
            let names = inputs.iter().map(ToString::to_string).chain(self.scopes.names(scope));
            let nearest = nearest(name, &names.collect::<Vec<_>>());
            let (name, node) = (name.to_owned(), place.to_owned());
            return Err(ResourceFault::NoName { name, nearest, node });
        }
        if !amount.is_open() {
            // Braces may name nothing.
            Resources::default().set(resource, amount.as_str())?;
        }
        Ok(Some(ResourceLine { resource, amount, path, line }))
    }

    /// The names in resources of a node and of those that it reads, but for those that sweeps give among these.
    pub(super) fn asked_names(&self, node: NodeId) -> Vec<BoundId> {
        if self.resources.is_empty() {
            return Vec::new();
        }
        let inputs = self.inputs.unwrap_or_default().len();
        let (mut names, mut given) = (BTreeSet::new(), BTreeSet::new());
        let (mut seen, mut waiting) = (HashSet::from([node]), vec![node]);
        while let Some(node) = waiting.pop() {
            let lines = self.resources.of(node).flat_map(ResourceLines::iter);
            let numbers = lines.flat_map(|line| line.amount.names());
            names.extend(numbers.filter_map(|at| at.checked_sub(inputs).map(BoundId::at)));
            if let Node::Sweep { sweep, .. } = &self.builder[node] {
                given.extend(self.sweeps[sweep.index()].gives());
            }
            let read = self.builder[node].inputs().iter().map(|argument| argument.node);
            waiting.extend(read.filter(|node| seen.insert(*node)));
        }
        names.difference(&given).copied().collect()
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

    /// The one with this number, where the order says which inputs it fills.
    pub(super) fn in_order(number: usize) -> Self {
        Self { name: number.to_string(), first: 0, last: 0, label: String::new() }
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

/// Returns the branches in a directory, in the order of their numbers, and reports problems of the
/// numbering.
pub(super) fn list_numbered<S: TaskSource>(
    source: &mut S,
    dir: &S::Dir,
    findings: &mut Problems,
) -> Vec<Branch> {
    let listed = source.list(dir);
    let listed = listed.map_err(|fault| findings.problem(&source.place(dir), fault));
    let mut branches = Vec::new();
    for entry in listed.unwrap_or_default() {
        let name = match entry.into_string() {
            Ok(name) => name,
            Err(entry) => {
                findings
                    .problem(&source.place(dir).join(entry), LoadFault::Text(TextError::NotText));
                continue;
            }
        };
        if name.starts_with('.') {
            continue;
        }
        match Branch::parse(&name) {
            Some(branch) => branches.push(branch),
            // A plain file with another name is the user's note.
            None if matches!(source.find(dir, &name), Ok(Located::File { .. })) => {
                findings.warning(&source.place(dir).join(name), WarningKind::Unread);
            }
            None => findings.problem(&source.place(dir).join(name), LoadFault::Place),
        }
    }
    branches.sort_by(|a, b| (a.first, a.last, &a.name).cmp(&(b.first, b.last, &b.name)));
    check(&|| source.place(dir), &branches, findings);
    branches
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
    fn gaps_overlaps_and_backward_ranges_are_told() {
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
