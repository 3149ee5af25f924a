//! The files of a sweep or a node `points`, as somebody wrote them.

use super::mistake::Fault;
use crate::sweep::{
    ALLOW_FAILED, COLUMNS, EXCLUDE, FACTORS, Factor, NAMES, PRODUCT_FILES, REPLICATES, SWEEP_FILES,
    SheetProblem, SweepFault, SweepPoints, SweepRules, WrittenColumn, factor_label,
    factor_problems, is_sheet, read_column, read_list, read_replicates, read_rows,
};
use crate::text_file;

/// The longest name of a file.
const LONGEST_NAME: usize = 255;

/// A file beside the `kind` of a node. What it means does not depend on how it is spelled: it is laid out in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        Self { name: name.into(), rows: std::iter::once(header).chain(rows).collect() }
    }

    /// Its place among the files of its node.
    pub(super) fn rank(&self) -> (usize, &str) {
        let first = self.name.split('/').next();
        let order = PRODUCT_FILES.iter().chain(&SWEEP_FILES);
        (order.take_while(|name| Some(**name) != first).count(), &self.name)
    }

    /// Its name in `factors/`, if it is there.
    pub(super) fn factor(&self) -> Option<&str> {
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
    let count = rules.product.replicates.map(|count| count.to_string());
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
    let number = |name: &str| files.iter().position(|file| *file.name == *name);
    for problem in factor_problems(files.iter().filter_map(RuleFile::factor)) {
        let place = (number(&problem.file).unwrap_or_default(), problem.line);
        faults.push((place, problem.fault.into()));
    }
    for (number, file) in files.iter().enumerate() {
        let before = faults.len();
        check(number, file, &mut faults);
        if faults.len() == before {
            read(number, file, &mut rules, &mut faults);
        }
    }
    (rules, faults)
}

/// Adds what no file could have, whatever it means.
fn check(number: usize, file: &RuleFile, faults: &mut Vec<FileFault>) {
    if let Some(name) = file.factor()
        && (name.contains(['/', '\0']) || name.len() > LONGEST_NAME)
    {
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
        if text_file::line(format!("\u{feff}{written}\n").as_bytes()) != Ok((written, false)) {
            faults.push(((number, line), Fault::Line(written.to_string())));
        }
    }
}

/// Reads a file into the rules.
fn read(number: usize, file: &RuleFile, rules: &mut SweepRules, faults: &mut Vec<FileFault>) {
    let lines: Vec<&str> = file.rows.iter().filter_map(|row| Some(&**row.first()?)).collect();
    let mut fault = |line, fault: SweepFault| faults.push(((number, line), fault.into()));
    let sheet = || {
        let rows: Vec<Vec<&str>> =
            file.rows.iter().map(|row| row.iter().map(|cell| &**cell).collect()).collect();
        read_rows(&rows)
    };
    let mut note = |points: Result<SweepPoints, Vec<SheetProblem>>| {
        points.map_err(|problems| {
            for problem in problems {
                fault(problem.line.unwrap_or_default(), SweepFault::Sheet(problem));
            }
        })
    };
    if let Some(name) = file.factor() {
        let Some((_, label)) = factor_label(name) else { return };
        let points = if is_sheet(name) { sheet() } else { read_list(label, &lines) };
        if let Ok(points) = note(points) {
            rules.product.factors.push(Factor { file: name.into(), points });
        }
        return;
    }
    match &*file.name {
        EXCLUDE => rules.product.exclude = note(sheet()).ok(),
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
