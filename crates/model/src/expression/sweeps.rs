//! Sweeps in an expression: the files that are their rules, and the names that they bind, checked where they stand.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::iter;
use std::path::Path;
use std::rc::Rc;

use super::grammar::NodeKind;
use super::mistake::Fault;
use super::{Expression, ExpressionNode, Signatures, TextPlace, passed_names, width};
use crate::name::{ComputationName, InputName};
use crate::suggest::nearest;
use crate::sweep::{
    ALLOW_FAILED, COLUMNS, DIRECTORY, EXCLUDE, FACTORS, Factor, LevelName, NAMES, PRODUCT_FILES,
    REPLICATES, RuleProblem, SWEEP_FILES, SWEEP_OUTPUTS, ScopeId, Scopes, SheetProblem, SweepFault,
    SweepPoints, SweepRules, WHERE, WrittenColumn, column_problems, directory_problem,
    factor_label, factor_problems, input_problem, is_sheet, known_columns, read_column,
    read_condition, read_list, read_replicates, read_rows, table_columns, unread_problems,
};
use crate::task::NodeId;
use crate::template::Template;
use crate::text_file;

/// The longest name of a file.
const LONGEST_NAME: usize = 255;

/// A file beside the `kind` of a node. What it means does not depend on how it is spelled: it is laid out in one way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuleFile {
    /// Its path in the directory of the node, such as `factors/00-threads`.
    pub name: Box<str>,
    /// Its lines. That of a list is one text, that of a sheet has one for each column.
    pub rows: Vec<Vec<Box<str>>>,
}

impl RuleFile {
    fn list<T: Into<Box<str>>>(name: &str, lines: impl IntoIterator<Item = T>) -> Self {
        let rows = lines.into_iter().map(|line| vec![line.into()]).collect();
        Self { name: name.into(), rows }
    }

    fn sheet(name: String, points: &SweepPoints) -> Self {
        let header = points.names().iter().map(|name| name.as_str().into()).collect();
        let rows =
            points.iter().map(|point| point.values().map(|(_, text)| Box::from(&**text)).collect());
        Self { name: name.into(), rows: iter::once(header).chain(rows).collect() }
    }

    /// Its place among the files of its node.
    pub(super) fn rank(&self) -> (usize, &str) {
        let first = self.name.split('/').next();
        let order = PRODUCT_FILES.iter().chain(&SWEEP_FILES);
        (order.take_while(|name| Some(**name) != first).count(), &self.name)
    }

    /// Its name in `factors/`, if it is there.
    pub fn factor(&self) -> Option<&str> {
        self.name.strip_prefix(FACTORS)?.strip_prefix('/')
    }

    /// The contents that it gets.
    pub fn contents(&self) -> String {
        let size: usize = self.rows.iter().flatten().map(|cell| cell.len() + 1).sum();
        let mut contents = String::with_capacity(size + 3);
        // Readers ignore a byte order mark.
        if self.rows.first().is_some_and(|row| row.concat().starts_with('\u{feff}')) {
            contents.push('\u{feff}');
        }
        for row in &self.rows {
            for (at, cell) in row.iter().enumerate() {
                contents.push_str(if at == 0 { "" } else { "\t" });
                contents.push_str(cell);
            }
            contents.push('\n');
        }
        contents
    }
}

/// Returns the files that say these rules.
pub fn rule_files(rules: &SweepRules) -> Vec<RuleFile> {
    let mut files = Vec::new();
    for Factor { file, points } in &rules.product.factors {
        let name = format!("{FACTORS}/{file}");
        files.push(if is_sheet(file) {
            RuleFile::sheet(name, points)
        } else {
            RuleFile::list(&name, points.iter().map(|point| &**point.at(0)))
        });
    }
    if let Some(points) = &rules.product.exclude {
        files.push(RuleFile::sheet(EXCLUDE.to_owned(), points));
    }
    let condition = rules.product.condition.as_ref();
    files.extend(condition.map(|condition| RuleFile::list(WHERE, [condition.text()])));
    let count = rules.product.replicates.as_ref().map(ToString::to_string);
    files.extend(count.map(|count| RuleFile::list(REPLICATES, [count])));
    files.extend(rules.names.clone().map(|names| RuleFile::list(NAMES, names)));
    if let Some(columns) = &rules.columns {
        files.push(RuleFile::list(COLUMNS, columns.iter().map(WrittenColumn::text)));
    }
    if rules.allow_failed {
        files.push(RuleFile { name: ALLOW_FAILED.into(), rows: Vec::new() });
    }
    files
}

/// A fault in a file of a node, with the numbers of the file and its line; line zero is the whole file.
pub(super) type FileFault = ((usize, usize), Fault);

/// Reads the files of a node, which are in their order.
pub(super) fn rules(files: &[RuleFile]) -> (SweepRules, Vec<FileFault>) {
    let (mut rules, mut faults) = (SweepRules::default(), Vec::new());
    for problem in factor_problems(files.iter().filter_map(RuleFile::factor)) {
        let number = files.iter().position(|file| *file.name == *problem.file);
        faults.push(((number.unwrap_or_default(), problem.line), problem.fault.into()));
    }
    for (number, file) in files.iter().enumerate() {
        let before = faults.len();
        check_file(number, file, &mut faults);
        if faults.len() == before {
            read_file(number, file, &mut rules, &mut faults);
        }
    }
    (rules, faults)
}

/// Returns the faults of the files of a node, of which one would be read as something else than it is written.
pub(super) fn unreadable(files: &[RuleFile]) -> Vec<FileFault> {
    if files.iter().all(is_readable) { Vec::new() } else { rules(files).1 }
}

/// Whether a file is the same if it is written and read again.
fn is_readable(file: &RuleFile) -> bool {
    if file.factor().is_some_and(|name| !is_file_name(name)) {
        return false;
    }
    let mut rows = file.rows.iter();
    if is_sheet(&file.name) {
        rows.all(|row| {
            let is_empty = row.iter().all(|cell| cell.is_empty()) && row.len() == 1;
            !is_empty && !row.iter().any(|cell| cell.contains(char::is_control))
        })
    } else {
        rows.flatten().all(|line| is_kept(line))
    }
}

/// Whether a text is the same if it is read as a line of a file. The file begins with a byte order mark if the text does.
fn is_kept(text: &str) -> bool {
    text_file::line(format!("\u{feff}{text}\n").as_bytes()) == Ok((text, false))
}

fn is_file_name(name: &str) -> bool {
    !name.contains(['/', '\0']) && name.len() <= LONGEST_NAME
}

/// Adds the faults of contents that no file could have, regardless of their meaning.
fn check_file(number: usize, file: &RuleFile, faults: &mut Vec<FileFault>) {
    if let Some(name) = file.factor().filter(|name| !is_file_name(name)) {
        faults.push(((number, 0), Fault::FileName(name.to_owned())));
    }
    let size: usize = file.rows.iter().flatten().map(|cell| cell.len() + 1).sum();
    let has_points = file.factor().is_some() || is_sheet(&file.name);
    let most = if has_points { text_file::MAX_POINTS_FILE } else { text_file::MAX_FILE };
    if size > most {
        faults.push(((number, 0), Fault::LargeFile(most >> 20)));
    }
    if is_sheet(&file.name) {
        return;
    }
    for (line, row) in (1..).zip(&file.rows) {
        let Some(written) = row.first() else { continue };
        if !is_kept(written) {
            faults.push(((number, line), Fault::Line(written.to_string())));
        }
    }
}

/// Reads the points of a sheet.
fn read_sheet(file: &RuleFile) -> Result<SweepPoints, Vec<SheetProblem>> {
    let rows: Vec<Vec<&str>> =
        file.rows.iter().map(|row| row.iter().map(|cell| &**cell).collect()).collect();
    read_rows(&rows)
}

/// Reads a file into the rules.
fn read_file(number: usize, file: &RuleFile, rules: &mut SweepRules, faults: &mut Vec<FileFault>) {
    let lines: Vec<&str> = file.rows.iter().filter_map(|row| Some(&**row.first()?)).collect();
    let mut fault = |line, fault: SweepFault| faults.push(((number, line), fault.into()));
    let mut note = |points: Result<SweepPoints, Vec<SheetProblem>>| {
        points.map_err(|problems| {
            for problem in problems {
                fault(problem.line.unwrap_or_default(), SweepFault::Sheet(problem));
            }
        })
    };
    if let Some(name) = file.factor() {
        let Some((_, label)) = factor_label(name) else { return };
        let points = if is_sheet(name) { read_sheet(file) } else { read_list(label, &lines) };
        if let Ok(points) = note(points) {
            rules.product.factors.push(Factor { file: name.into(), points });
        }
        return;
    }
    match &*file.name {
        EXCLUDE => rules.product.exclude = note(read_sheet(file)).ok(),
        WHERE => match read_condition(lines.first().unwrap_or(&"")) {
            Ok(condition) => rules.product.condition = Some(condition),
            Err(wrong) => fault(1, wrong),
        },
        REPLICATES => match read_replicates(lines.first().unwrap_or(&"")) {
            Ok(count) => rules.product.replicates = Some(count),
            Err(wrong) => fault(1, wrong),
        },
        NAMES => rules.names = Some(lines.into_iter().map(Into::into).collect()),
        COLUMNS => {
            let columns = lines.iter().enumerate().filter_map(|(at, line)| {
                read_column(line).map_err(|wrong| fault(at + 1, wrong)).ok()
            });
            rules.columns = Some(columns.collect());
        }
        _ => rules.allow_failed = true,
    }
}

/// The result of checking the names in an expression at their places.
pub(super) struct ScopeCheck {
    /// Unknown names and faults of sweeps, in no order.
    pub(super) wrong: Vec<(TextPlace, Fault)>,
    /// The computations of nodes whose names depend on factors.
    level_names: HashMap<NodeId, BTreeSet<String>>,
}

/// Returns the names of the computations that an expression calls, by what is written for them: several where that depends
/// on factors of sweeps.
pub fn computation_names<'a>(
    expression: &'a Expression,
    inputs: &[InputName],
) -> BTreeMap<&'a str, BTreeSet<String>> {
    let mut names = BTreeMap::<_, BTreeSet<String>>::new();
    let level_names = check_scopes(expression, inputs, &Signatures::default()).level_names;
    for (at, node) in expression.nodes.iter().enumerate() {
        if node.kind == NodeKind::Computation {
            let written = names.entry(&*node.value).or_default();
            match level_names.get(&NodeId::at(at)) {
                Some(names) => written.extend(names.iter().cloned()),
                None => written.extend([node.value.to_string()]),
            }
        }
    }
    names
}

/// Checks the names in an expression at their places, and its sweeps.
pub(super) fn check_scopes(
    expression: &Expression,
    inputs: &[InputName],
    signatures: &Signatures,
) -> ScopeCheck {
    let mut wrong = Vec::new();
    let mut all = HashMap::new();
    let nodes = expression.nodes.iter().enumerate().map(|(at, node)| (NodeId::at(at), node));
    for (id, node) in nodes.filter(|(_, node)| node.kind.has_files()) {
        let (rules, faults) = rules(&node.files);
        if faults.is_empty() {
            all.insert(id, rules);
        }
        wrong.extend(
            faults
                .into_iter()
                .map(|(file, fault)| (TextPlace { node: id, file: Some(file) }, fault)),
        );
    }
    let names: HashSet<&str> = inputs.iter().map(InputName::as_str).collect();
    let reads = if all.is_empty() { None } else { Some(ReadNames::new(expression, &names)) };
    let mut walk = ScopeWalk {
        expression,
        signatures,
        inputs,
        names,
        rules: &all,
        reads: reads.as_ref(),
        scopes: Scopes::default(),
        check: ScopeCheck { wrong, level_names: HashMap::new() },
        seen: HashSet::new(),
        stack: Vec::new(),
    };
    if let Some(root) = expression.root() {
        walk.enter(root, ScopeId::default());
    }
    while let Some((node, scope)) = walk.stack.pop() {
        walk.visit(node, scope);
    }
    walk.check
}

/// A walk through all nodes, each in every scope that it stands in.
struct ScopeWalk<'a> {
    expression: &'a Expression,
    signatures: &'a Signatures,
    inputs: &'a [InputName],
    names: HashSet<&'a str>,
    /// The rules of nodes that have no faults in their files.
    rules: &'a HashMap<NodeId, SweepRules>,
    reads: Option<&'a ReadNames>,
    scopes: Scopes,
    check: ScopeCheck,
    seen: HashSet<(NodeId, ScopeId)>,
    stack: Vec<(NodeId, ScopeId)>,
}

impl ScopeWalk<'_> {
    fn enter(&mut self, node: NodeId, scope: ScopeId) {
        if self.seen.insert((node, scope)) {
            self.stack.push((node, scope));
        }
    }

    fn visit(&mut self, id: NodeId, scope: ScopeId) {
        let node = &self.expression[id];
        match node.kind {
            NodeKind::Input => self.check_input(id, node, scope),
            NodeKind::Computation => self.check_computation(id, node, scope),
            NodeKind::Sweep => return self.sweep(id, node, scope),
            NodeKind::Points => {
                let problems = self.rules.get(&id).map(SweepRules::points_problems);
                self.add(id, node, problems.unwrap_or_default());
            }
            NodeKind::Literal
            | NodeKind::File
            | NodeKind::Text
            | NodeKind::Tree
            | NodeKind::Member
            | NodeKind::All => {}
        }
        for input in &node.inputs {
            self.enter(input.node, scope);
        }
    }

    fn check_input(&mut self, id: NodeId, node: &ExpressionNode, scope: ScopeId) {
        if self.names.contains(&*node.value) || self.scopes.find(scope, &node.value).is_some() {
            return;
        }
        let names = self.inputs.iter().map(ToString::to_string).chain(self.scopes.names(scope));
        let nearest = nearest(&node.value, &names.collect::<Vec<_>>());
        let fault = Fault::NoInput { name: node.value.to_string(), nearest };
        self.check.wrong.push((TextPlace::of(id), fault));
    }

    fn check_computation(&mut self, id: NodeId, node: &ExpressionNode, scope: ScopeId) {
        let place = TextPlace::of(id);
        let Ok(name) = node.value.parse::<ComputationName>() else { return };
        let name =
            Template::new(name, |name| self.scopes.number(scope, self.inputs, name), Path::new(""));
        if !name.is_open() {
            return;
        }
        let names = match self.scopes.level_names(scope, &name, self.inputs) {
            Ok(names) => names,
            Err(fault) => return self.check.wrong.push((place, fault.into())),
        };
        for LevelName { name, .. } in names {
            match name {
                Ok(name) => {
                    self.check.level_names.entry(id).or_default().insert(name.to_string());
                }
                Err(error) => self.check.wrong.push((place, Fault::Name(error))),
            }
        }
    }

    fn sweep(&mut self, id: NodeId, node: &ExpressionNode, scope: ScopeId) {
        let (body, points) = (node.inputs.first(), node.inputs.get(1));
        for input in node.inputs.iter().skip(1) {
            self.enter(input.node, scope);
        }
        let points = points.map(|it| width(self.expression, it.node, self.signatures));
        let is_computed = points.is_some();
        let problem = input_problem(node.inputs.len(), points.flatten());
        self.add(id, node, problem);
        // Without its rules, the names in its body are not known.
        let (Some(body), Some(rules)) = (body, self.rules.get(&id)) else { return };
        let inner = match self.scopes.body(scope, rules, is_computed, self.inputs) {
            Ok(inner) => inner,
            Err(problems) => return self.add(id, node, problems),
        };
        self.enter(body.node, inner);
        let read: HashSet<&str> =
            self.reads.into_iter().flat_map(|reads| reads.of(body.node)).collect();
        let outside: HashSet<String> = self.scopes.names(scope).collect();
        let opens = rules.names.is_none();
        let listed: HashSet<String> = rules.named().map(|(name, _)| name).collect();
        let own: Vec<&str> = read
            .iter()
            .filter(|name| if opens { !outside.contains(**name) } else { listed.contains(**name) })
            .copied()
            .collect();
        let computed = is_computed.then_some(own);
        // Whether only resources read them is known when the task is loaded.
        let problems = unread_problems(rules, |name| read.contains(name), |_| false, computed);
        self.add(id, node, problems);
        let width = width(self.expression, body.node, self.signatures);
        let names = passed_names(self.expression, body.node, self.signatures);
        let slice = node.outputs.as_ref().map(|it| it.resolve(&SWEEP_OUTPUTS.map(str::to_owned)).0);
        let has_directory = slice.is_some_and(|slice| slice.has(DIRECTORY));
        let problem = names.as_deref().and_then(directory_problem).filter(|_| has_directory);
        self.add(id, node, problem);
        // Without these, a column may be any of them.
        let is_known = names.is_some();
        match table_columns(rules, names.unwrap_or_default()) {
            Ok(columns) => {
                let problems = column_problems(rules, &columns, width, |output| {
                    self.nested_columns(body.node, output)
                });
                self.add(id, node, problems);
            }
            Err(problems) => self.add(id, node, problems.into_iter().filter(|_| is_known)),
        }
    }

    /// The names of the columns of an output of a sweep's body that is the table of another sweep, as far as they are known.
    fn nested_columns(&self, body: NodeId, output: u8) -> Vec<String> {
        let (node, rules) = (&self.expression[body], self.rules.get(&body));
        let (NodeKind::Sweep, Some(rules)) = (node.kind, rules) else { return Vec::new() };
        let passed = passed_names(self.expression, body, self.signatures).unwrap_or_default();
        let is_table = passed.get(usize::from(output)).is_some_and(|name| name == SWEEP_OUTPUTS[0]);
        let inner = node.inputs.first().filter(|_| is_table);
        let names = inner.map(|inner| passed_names(self.expression, inner.node, self.signatures));
        let columns = table_columns(rules, names.flatten().unwrap_or_default());
        inner.map_or_else(Vec::new, |_| known_columns(rules, &columns.unwrap_or_default()))
    }

    /// Adds problems of a node where they stand in the text.
    fn add(
        &mut self,
        id: NodeId,
        node: &ExpressionNode,
        problems: impl IntoIterator<Item = RuleProblem>,
    ) {
        for RuleProblem { file, line, fault } in problems {
            let file = file_number(&node.files, &file).map(|number| (number, line));
            self.check.wrong.push((TextPlace { node: id, file }, fault.into()));
        }
    }
}

/// The number of a file, or of the first one in a directory.
pub(super) fn file_number(files: &[RuleFile], path: &str) -> Option<usize> {
    if path.is_empty() {
        return None;
    }
    files.iter().position(|file| {
        let rest = file.name.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// The names that nodes read, and sweeps around them must bind.
pub(super) struct ReadNames {
    names: Vec<String>,
    /// The numbers of the names of each node, sorted. Nodes that read the same share them.
    nodes: Vec<Rc<[usize]>>,
}

impl ReadNames {
    /// The names that the nodes of an expression read, but for those of the task's inputs.
    pub(super) fn new(expression: &Expression, inputs: &HashSet<&str>) -> Self {
        let mut reads = Self { names: Vec::new(), nodes: Vec::new() };
        let mut numbers = HashMap::new();
        for node in &expression.nodes {
            let mut own = Vec::new();
            for name in names_read(node).into_iter().filter(|name| !inputs.contains(&**name)) {
                let next = numbers.len();
                let number = *numbers.entry(name.clone()).or_insert(next);
                if number == next {
                    reads.names.push(name);
                }
                own.push(number);
            }
            let all = reads.with_inputs(node, own);
            reads.nodes.push(all);
        }
        reads
    }

    /// The names that a node or one below it reads. A name that a sweep below binds is among them: it is bound nowhere else.
    pub(super) fn of(&self, node: NodeId) -> impl Iterator<Item = &str> {
        self.nodes[node.index()].iter().map(|number| self.names[*number].as_str())
    }

    /// Returns the names of a node and of its inputs.
    fn with_inputs(&self, node: &ExpressionNode, mut own: Vec<usize>) -> Rc<[usize]> {
        let mut inputs = node.inputs.iter().map(|input| &self.nodes[input.node.index()]);
        own.extend(inputs.clone().flat_map(|names| names.iter().copied()));
        own.sort_unstable();
        own.dedup();
        inputs.find(|names| ***names == *own).map_or_else(|| own.as_slice().into(), Rc::clone)
    }
}

/// The names that a node reads itself.
fn names_read(node: &ExpressionNode) -> Vec<String> {
    match node.kind {
        NodeKind::Input => vec![node.value.to_string()],
        NodeKind::Computation => {
            let resources = node.files.iter().flat_map(|file| &file.rows).flatten();
            iter::once(&node.value)
                .chain(resources)
                .flat_map(|text| names_in_braces(text))
                .collect()
        }
        NodeKind::Literal | NodeKind::File | NodeKind::Text | NodeKind::Tree | NodeKind::Member => {
            names_in_braces(&node.value)
        }
        NodeKind::All | NodeKind::Sweep | NodeKind::Points => Vec::new(),
    }
}

/// The names in braces in a text.
fn names_in_braces(text: &str) -> Vec<String> {
    let text = Template::new(text, |_| None, Path::new(""));
    text.unknown().map(str::to_owned).collect()
}
