//! A workflow that is one text, `workflow.ce`, as a source of a task: its nodes look like the directories that they would be, but
//! nothing is read more than once. Everything else of the task is where it is for any workflow.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ce_git::Changes;
use ce_model::digest::ObjectId;
use ce_model::expression::{
    DEFINITION, ExpressionInput, ExpressionNode, NodeKind, Parsed, Position, RuleFile, parse,
};
use ce_model::name::{InputName, TreeName};
use ce_model::slice::WrittenSlice;
use ce_model::sweep::{FACTORS, NAMES, Sweep};
use ce_model::task::{FileContents, NodeId, RecordedTree, WORKFLOW_TEXT};

use super::problems::{LoadFault, Problem, Problems, Warning, WarningKind};
use super::source::{Identity, Located, SourceVersion, TaskSource, parse_text};
use super::{DEFAULTS, INPUTS, WORKFLOW};

/// The name of the root of a text, which no file can have.
const ROOT: &str = "/";

/// Reads the text of a task's workflow; `None` if it has none. One that cannot be read is a problem.
pub(super) fn contents(
    source: &mut impl TaskSource,
    findings: &mut Problems,
) -> Option<Option<String>> {
    let task = source.task().ok()?;
    if matches!(source.find(&task, WORKFLOW_TEXT), Err(LoadFault::Missing)) {
        // A link may lead to nothing.
        let has_directories = !matches!(source.find(&task, WORKFLOW), Err(LoadFault::Missing));
        let names =
            if has_directories { Vec::new() } else { source.list(&task).unwrap_or_default() };
        if !names.iter().any(|name| *name == *WORKFLOW_TEXT) {
            return None;
        }
    }
    let path = Path::new(WORKFLOW_TEXT);
    for other in [WORKFLOW, INPUTS, DEFAULTS] {
        if !matches!(source.find(&task, other), Err(LoadFault::Missing)) {
            findings.problem(path, LoadFault::TwoForms(other));
        }
    }
    Some(findings.note(path, parse_text(source.read_points(&task, WORKFLOW_TEXT))))
}

/// Parses the text of a task's workflow, or adds what is wrong with it.
pub(super) fn parsed<'a>(text: &'a str, findings: &mut Problems) -> Option<Parsed<'a>> {
    let (parsed, mistakes) = match parse(text) {
        Ok(parsed) => {
            let mistakes = parsed.unreadable();
            (Some(parsed).filter(|_| mistakes.is_empty()), mistakes)
        }
        Err(mistake) => (None, vec![mistake]),
    };
    findings.mistakes(mistakes);
    parsed
}

/// The names of the task's inputs, as the text has them.
pub(super) fn inputs(parsed: &Parsed<'_>) -> Vec<InputName> {
    parsed.text.inputs.clone().unwrap_or_default()
}

/// A task of which the workflow is a text.
pub(super) struct TextSource<'a, S: TaskSource> {
    source: &'a mut S,
    parsed: &'a Parsed<'a>,
    /// The names of definitions, by the nodes that they are.
    definitions: HashMap<NodeId, Vec<&'a str>>,
}

/// A directory, or what would be one.
#[derive(Clone)]
pub(super) enum TextDir<D> {
    Real(D),
    Node(NodeId),
    /// The inputs of a node.
    Inputs(NodeId),
    /// The factors of a node.
    Factors(NodeId),
}

impl<'a, S: TaskSource> TextSource<'a, S> {
    pub(super) fn new(source: &'a mut S, parsed: &'a Parsed<'a>) -> Self {
        let mut definitions: HashMap<NodeId, Vec<&str>> = HashMap::new();
        for definition in &parsed.text.definitions {
            for node in &definition.nodes {
                definitions.entry(*node).or_default().push(&definition.name);
            }
        }
        Self { source, parsed, definitions }
    }

    fn node(&self, id: NodeId) -> &'a ExpressionNode {
        &self.parsed.text.expression[id]
    }

    fn place_of(&self, id: NodeId) -> PathBuf {
        place(self.parsed.position(id)).into()
    }

    /// The contents of a file of a node.
    fn file(&self, id: NodeId, name: &str) -> Result<String, LoadFault> {
        let node = self.node(id);
        let lists_names = || node.files.iter().any(|file| *file.name == *NAMES);
        match name {
            "kind" => Ok(format!("{}\n", node.kind.file())),
            "value" if node.kind == NodeKind::Text => Ok(node.value.to_string()),
            "value" => Ok(format!("{}\n", node.value)),
            DEFINITION => {
                let names = self.definitions.get(&id).ok_or(LoadFault::Missing)?;
                Ok(names.iter().map(|name| format!("{name}\n")).collect())
            }
            "outputs" => node.outputs.as_ref().map(WrittenSlice::lines).ok_or(LoadFault::Missing),
            // In a text, a sweep binds what it lists.
            NAMES if is_computed(node) && !lists_names() => Ok(String::new()),
            name => {
                let file = node.files.iter().find(|file| *file.name == *name);
                file.map(RuleFile::contents).ok_or(LoadFault::Missing)
            }
        }
    }

    /// Lets problems and warnings say where in the text they are.
    pub(super) fn locate(&self, findings: &mut Problems) {
        let mut places: HashMap<String, NodeId> = HashMap::new();
        if !findings.problems.is_empty() || !findings.warnings.is_empty() {
            let positions = self.parsed.positions().into_iter().enumerate();
            places.extend(positions.map(|(at, position)| (place(position), NodeId::at(at))));
        }
        let find = |path: &Path| {
            let mut parts = path.components();
            let node = *places.get(parts.next()?.as_os_str().to_str()?)?;
            Some((node, parts.as_path().to_string_lossy().into_owned()))
        };
        for Problem { path, line, fault } in &mut findings.problems {
            let Some((node, file)) = find(path) else { continue };
            let in_file = line.unwrap_or_default();
            *line = Some(self.parsed.line_of_file(node, &file, in_file));
            *path = WORKFLOW_TEXT.into();
            // Faults in files of a sweep are reported in the words of the text.
            if let LoadFault::Sweep(wrong) = fault {
                let wrong = (**wrong).clone().into();
                let mistake = self.parsed.mistake_of_file(node, &file, in_file, wrong);
                *fault = LoadFault::Mistake(Box::new(mistake));
            }
        }
        for Warning { path, .. } in &mut findings.warnings {
            if let Some((node, file)) = find(path) {
                let line = self.parsed.line_of_file(node, &file, 0);
                *path = line_place(line);
            }
        }
        for (number, definition) in self.parsed.text.definitions.iter().enumerate() {
            if definition.nodes.is_empty() {
                let line = self.parsed.line_of_definition(number);
                let name = definition.name.to_string();
                findings.warning(&line_place(line), WarningKind::Unneeded(name));
            }
        }
    }
}

/// A place in the text, as the path of what would be a directory.
fn place(position: Position) -> String {
    format!("{WORKFLOW_TEXT}:{position}")
}

/// A line of the text as a place in messages.
fn line_place(line: usize) -> PathBuf {
    format!("{WORKFLOW_TEXT}:{line}").into()
}

/// Returns the path and the line of a place in messages; line zero is the whole of a file or directory.
pub(super) fn path_and_line(place: &Path) -> (PathBuf, usize) {
    let text =
        place.to_str().and_then(|place| place.strip_prefix(WORKFLOW_TEXT)?.strip_prefix(':'));
    match text.and_then(|line| line.parse().ok()) {
        Some(line) => (WORKFLOW_TEXT.into(), line),
        None => (place.to_owned(), 0),
    }
}

/// Lets each sweep say in which line of the text it is. Only where several begin in one line, their columns tell them apart.
pub(super) fn shorten_places(sweeps: &mut [Sweep]) {
    let shorter = |sweep: &Sweep| -> Option<PathBuf> {
        let place = sweep.place.to_str().filter(|place| place.starts_with(WORKFLOW_TEXT))?;
        Some(place.rsplit_once(':')?.0.into())
    };
    let places: Vec<_> = sweeps.iter().map(shorter).collect();
    let mut counts = HashMap::<PathBuf, usize>::new();
    places.iter().flatten().for_each(|place| *counts.entry(place.clone()).or_default() += 1);
    for (sweep, place) in sweeps.iter_mut().zip(places) {
        if let Some(place) = place.filter(|place| counts.get(place) == Some(&1)) {
            sweep.place = place;
        }
    }
}

/// Whether the points of a sweep are computed.
fn is_computed(node: &ExpressionNode) -> bool {
    node.kind == NodeKind::Sweep && node.inputs.len() > 1
}

impl<S: TaskSource> TaskSource for TextSource<'_, S> {
    type Dir = TextDir<S::Dir>;

    fn commit(&mut self) -> Result<ObjectId, LoadFault> {
        self.source.commit()
    }

    fn task(&mut self) -> Result<Self::Dir, LoadFault> {
        Ok(TextDir::Real(self.source.task()?))
    }

    fn place(&self, dir: &Self::Dir) -> PathBuf {
        match dir {
            TextDir::Real(dir) => self.source.place(dir),
            TextDir::Node(id) | TextDir::Inputs(id) | TextDir::Factors(id) => self.place_of(*id),
        }
    }

    fn shown_place(&self, dir: &Self::Dir) -> PathBuf {
        match dir {
            TextDir::Real(dir) => self.source.shown_place(dir),
            TextDir::Node(id) | TextDir::Inputs(id) | TextDir::Factors(id) => {
                line_place(self.parsed.position(*id).line)
            }
        }
    }

    fn line(&self, dir: &Self::Dir, name: &str, line: usize) -> (PathBuf, usize) {
        match dir {
            TextDir::Real(dir) => self.source.line(dir, name, line),
            TextDir::Node(id) | TextDir::Inputs(id) | TextDir::Factors(id) => {
                (WORKFLOW_TEXT.into(), self.parsed.line_of_file(*id, name, line))
            }
        }
    }

    fn find(&mut self, dir: &Self::Dir, name: &str) -> Result<Located<Self::Dir>, LoadFault> {
        let in_text = |dir, id: NodeId| Located::Directory { dir, identity: Identity::Node(id) };
        match dir {
            TextDir::Real(_) if name == ROOT => {
                let root = self.parsed.text.expression.root().ok_or(LoadFault::Missing)?;
                Ok(in_text(TextDir::Node(root), root))
            }
            TextDir::Real(dir) => Ok(match self.source.find(dir, name)? {
                Located::Directory { dir, identity } => {
                    Located::Directory { dir: TextDir::Real(dir), identity }
                }
                Located::File { executable } => Located::File { executable },
            }),
            TextDir::Node(id) => match name {
                "inputs" => Ok(in_text(TextDir::Inputs(*id), *id)),
                FACTORS => Ok(in_text(TextDir::Factors(*id), *id)),
                name => self.file(*id, name).map(|_| Located::File { executable: false }),
            },
            TextDir::Inputs(id) => {
                let input = name.parse().ok().and_then(|at: usize| self.node(*id).inputs.get(at));
                let ExpressionInput { node, .. } = input.ok_or(LoadFault::Missing)?;
                Ok(in_text(TextDir::Node(*node), *node))
            }
            TextDir::Factors(_) => Ok(Located::File { executable: false }),
        }
    }

    fn holds(&mut self, dir: &Self::Dir, name: &str) -> Result<bool, LoadFault> {
        match dir {
            TextDir::Real(dir) => self.source.holds(dir, name),
            _ => Ok(true),
        }
    }

    fn list(&mut self, dir: &Self::Dir) -> Result<Vec<OsString>, LoadFault> {
        let names: Vec<&str> = match dir {
            TextDir::Real(dir) => return self.source.list(dir),
            TextDir::Node(id) => {
                let node = self.node(*id);
                let files = node.files.iter().filter_map(|file| file.name.split('/').next());
                let has_names = files.clone().any(|name| name == NAMES);
                let has_value = !node.value.is_empty() || node.kind == NodeKind::Text;
                let value = has_value.then_some("value");
                let mut names: Vec<&str> = ["kind"].into_iter().chain(value).chain(files).collect();
                names.extend((is_computed(node) && !has_names).then_some(NAMES));
                names.extend(node.outputs.is_some().then_some("outputs"));
                names.extend(self.definitions.contains_key(id).then_some(DEFINITION));
                names.extend((!node.inputs.is_empty()).then_some("inputs"));
                names.dedup();
                names
            }
            TextDir::Inputs(_) => Vec::new(),
            TextDir::Factors(id) => {
                self.node(*id).files.iter().filter_map(|file| file.factor()).collect()
            }
        };
        Ok(names.into_iter().map(OsString::from).collect())
    }

    fn arguments(&mut self, dir: &Self::Dir) -> Option<Vec<Option<String>>> {
        let TextDir::Inputs(id) = dir else { return None };
        let inputs = self.node(*id).inputs.iter();
        Some(inputs.map(|input| input.label.as_deref().map(str::to_owned)).collect())
    }

    fn read_at_most(
        &mut self,
        dir: &Self::Dir,
        name: &str,
        most: u64,
    ) -> Result<Vec<u8>, LoadFault> {
        let contents = match dir {
            TextDir::Real(dir) => return self.source.read_at_most(dir, name, most),
            TextDir::Node(id) => self.file(*id, name)?,
            TextDir::Factors(id) => self.file(*id, &format!("{FACTORS}/{name}"))?,
            TextDir::Inputs(_) => return Err(LoadFault::Missing),
        };
        if contents.len() as u64 > most {
            return Err(LoadFault::too_large(most));
        }
        Ok(contents.into_bytes())
    }

    fn version(&mut self, dir: &Self::Dir) -> Result<SourceVersion, LoadFault> {
        match dir {
            TextDir::Real(dir) => self.source.version(dir),
            _ => Err(LoadFault::NotADirectory),
        }
    }

    fn file_version(&mut self, dir: &Self::Dir, name: &str) -> Result<SourceVersion, LoadFault> {
        match dir {
            TextDir::Real(dir) => self.source.file_version(dir, name),
            _ => Err(LoadFault::NotADirectory),
        }
    }

    fn missing_file(&mut self, path: &str) -> LoadFault {
        self.source.missing_file(path)
    }

    fn contents(&mut self, dir: &Self::Dir, name: &str) -> Result<FileContents, LoadFault> {
        match dir {
            TextDir::Real(dir) => self.source.contents(dir, name),
            _ => Err(LoadFault::Missing),
        }
    }

    fn recorded(&mut self, name: &TreeName) -> Result<RecordedTree, LoadFault> {
        self.source.recorded(name)
    }

    fn changes(&mut self) -> Result<Changes, LoadFault> {
        self.source.changes()
    }

    fn root(&self) -> &'static str {
        ROOT
    }

    fn defined(&self) -> Vec<String> {
        self.parsed.text.definitions.iter().map(|it| it.name.to_string()).collect()
    }
}
