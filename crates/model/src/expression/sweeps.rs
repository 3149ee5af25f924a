//! Sweeps in an expression: the files that are their rules, and the names that they bind, checked where they stand.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use super::grammar::NodeKind;
use super::mistake::{Fault, Wrong};
use super::{InputDefault, Text};
use crate::resources::Resource;
use crate::sweep::{
    ALLOW_FAILED, COLUMNS, EMPTY_LEVEL, EXCLUDE, FACTORS, FILES, Factor, FileColumn,
    MOST_COMBINATIONS, NAMES, PRODUCT_FILES, REPLICATES, SWEEP_FILES, SheetProblem, SweepFault,
    SweepPoints, SweepRules, WHERE, WrittenColumn, factor_label, factor_problems, is_sheet,
    level_line, read_column, read_condition, read_list, read_replicates, read_rows,
};
use crate::text_file;

/// The longest name of a file.
const LONGEST_NAME: usize = 255;

/// A file beside the `kind` of a node. Its meaning does not depend on its spelling: it is laid out in one way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuleFile {
    /// Its path in the directory of the node, such as `factors/00-threads`.
    pub name: Box<str>,
    /// Its lines. A line of a list is one text; a line of a sheet has one text for each column.
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
        let is_list = self.factor().is_some_and(|name| !is_sheet(name));
        for row in &self.rows {
            for (at, cell) in row.iter().enumerate() {
                contents.push_str(if at == 0 { "" } else { "\t" });
                contents.push_str(if is_list { level_line(cell) } else { cell });
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
    if !rules.files.is_empty() {
        files.push(RuleFile::list(FILES, rules.files.iter().map(FileColumn::text)));
    }
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

/// Returns the faults of the files of a node if one of them would not be read back as it is written.
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
    } else if file.factor().is_some() {
        rows.flatten().all(|line| is_kept_level(line))
    } else {
        rows.flatten().all(|line| is_kept(line))
    }
}

/// Whether a text is the same if it is read as a line of a file. The file begins with a byte order mark if the text does.
fn is_kept(text: &str) -> bool {
    text_file::line(format!("\u{feff}{text}\n").as_bytes()) == Ok((text, false))
}

/// Whether a level is the same if it is read as a line of a list of levels.
pub(super) fn is_kept_level(text: &str) -> bool {
    text.is_empty() || text != EMPTY_LEVEL && is_kept(text)
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
        let is_right = if file.factor().is_some() { is_kept_level } else { is_kept };
        if !is_right(written) {
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
        FILES => rules.files = lines.into_iter().map(FileColumn::read).collect(),
        COLUMNS => {
            let columns = lines.iter().enumerate().filter_map(|(at, line)| {
                read_column(line).map_err(|wrong| fault(at + 1, wrong)).ok()
            });
            rules.columns = Some(columns.collect());
        }
        _ => rules.allow_failed = true,
    }
}

/// Returns the names of the computations that a workflow may call, by the written names: several for a name with factors or inputs
/// in braces. Each level of a factor with such a name counts, whether or not its sweep is around the call, and each choice of an input.
pub fn computation_names(workflow: &Text) -> BTreeMap<&str, BTreeSet<String>> {
    let mut levels = BTreeMap::<String, BTreeSet<String>>::new();
    for (input, default) in workflow.inputs.iter().flatten().zip(&workflow.defaults) {
        if let Some(InputDefault::Choices(choices)) = default {
            let texts = choices.levels(0).iter().map(ToString::to_string);
            levels.entry(input.to_string()).or_default().extend(texts);
        }
    }
    for node in workflow.expression.nodes.iter().filter(|node| node.kind.has_files()) {
        for factor in rules(&node.files).0.product.factors {
            for point in factor.points.iter() {
                for (name, level) in point.values() {
                    levels.entry(name.to_string()).or_default().insert(level.to_string());
                }
            }
        }
    }
    let nodes = workflow.expression.nodes.iter();
    let calls = nodes.filter(|node| node.kind == NodeKind::Computation);
    calls.map(|node| (&*node.value, names_of_levels(&node.value, &levels))).collect()
}

fn names_of_levels(written: &str, levels: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut names = BTreeSet::from([written.to_owned()]);
    for (name, levels) in levels {
        let braces = format!("{{{name}}}");
        if written.contains(&braces) && names.len() * levels.len() <= MOST_COMBINATIONS {
            let of_level =
                levels.iter().map(|level| names.iter().map(|it| it.replace(&braces, level)));
            names = of_level.flatten().collect();
        }
    }
    names
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

/// Checks that no line of resources is only its word, with the amount as the next line. The lines begin at these bytes.
pub(super) fn check_resources(rows: &[Vec<Box<str>>], places: &[usize]) -> Result<(), Wrong> {
    for (pair, at) in rows.windows(2).zip(places) {
        let ([word], [amount]) = (&*pair[0], &*pair[1]) else { continue };
        let needs_amount = Resource::of_word(word).is_some_and(|it| !it.is_flag());
        let next = amount.split(' ').next().unwrap_or_default();
        if needs_amount && Resource::of_word(next).is_none() {
            return Err((*at, Fault::UnquotedResource(format!("{word} {amount}"))));
        }
    }
    Ok(())
}
