//! Reading the files of a node `sweep` or `points`, beside its `kind`.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use super::problems::{LoadFault, Problems};
use super::source::TaskSource;
use super::sweep_fault::SweepFault;
use super::text;
use super::warnings::WarningKind;
use crate::expand::{SheetFormat, SheetProblem, read, read_levels};
use crate::task::expression::NodeKind;
use crate::task::points::SweepPoints;
use crate::task::sweep::{ColumnShape, Factor, Product, TableColumn};

/// The directory of the factors.
pub(super) const FACTORS: &str = "factors";

/// The points that are left out.
pub(super) const EXCLUDE: &str = "exclude.tsv";

/// The number of times that each point is evaluated.
pub(super) const REPLICATES: &str = "replicates";

/// The names of computed points that are bound.
pub(super) const NAMES: &str = "names";

/// The columns of the table.
pub(super) const COLUMNS: &str = "columns";

/// Its existence lets failed points become rows.
const ALLOW_FAILED: &str = "allow-failed";

/// The files of a node `sweep` or `points`, as far as they can be read.
#[derive(Clone)]
pub(super) struct SweepFiles {
    /// The label, for humans.
    pub(super) label: Box<str>,
    pub(super) product: Product,
    /// The names of computed points that are bound.
    pub(super) names: Option<Vec<Box<str>>>,
    pub(super) columns: Option<Vec<TableColumn>>,
    pub(super) allow_failed: bool,
    /// Whether something is wrong with a file. It was reported.
    pub(super) is_wrong: bool,
}

/// Whether the entry of a directory of this kind is read here.
pub(super) fn is_read(kind: NodeKind, entry: &str) -> bool {
    match kind {
        NodeKind::Sweep => {
            is_read(NodeKind::Points, entry) || [NAMES, COLUMNS, ALLOW_FAILED].contains(&entry)
        }
        NodeKind::Points => [FACTORS, EXCLUDE, REPLICATES].contains(&entry),
        _ => false,
    }
}

/// Reads the files of a node, of which these are the entries.
pub(super) fn sweep_files<S: TaskSource>(
    source: &mut S,
    dir: &S::Dir,
    entries: &[OsString],
    findings: &mut Problems,
) -> SweepFiles {
    let before = findings.problems.len();
    let has = |name: &str| entries.iter().any(|entry| *entry == *name);
    let mut reader = FileReader { source, dir, findings };
    let names = if has(NAMES) { reader.lines(NAMES) } else { None };
    let files = SweepFiles {
        label: Box::default(),
        product: Product {
            factors: if has(FACTORS) { reader.factors() } else { Vec::new() },
            exclude: if has(EXCLUDE) { reader.sheet(EXCLUDE) } else { None },
            replicates: if has(REPLICATES) { reader.replicates() } else { None },
        },
        names: names.map(|names| names.into_iter().map(String::into_boxed_str).collect()),
        columns: if has(COLUMNS) { reader.columns() } else { None },
        allow_failed: has(ALLOW_FAILED),
        is_wrong: false,
    };
    SweepFiles { is_wrong: findings.problems.len() > before, ..files }
}

struct FileReader<'a, S: TaskSource> {
    source: &'a mut S,
    dir: &'a S::Dir,
    findings: &'a mut Problems,
}

impl<S: TaskSource> FileReader<'_, S> {
    fn path(&self, name: &str) -> PathBuf {
        self.source.place(self.dir).join(name)
    }

    /// Reads a list.
    fn lines(&mut self, name: &str) -> Option<Vec<String>> {
        let lines = text::lines(self.source.read(self.dir, name));
        let path = self.path(name);
        self.findings.note_lines(&path, lines)
    }

    /// Returns the points of a sheet, or adds its problems.
    fn note(
        &mut self,
        path: &Path,
        sheet: Result<SweepPoints, Vec<SheetProblem>>,
    ) -> Option<SweepPoints> {
        let points = sheet.map_err(|problems| {
            for problem in problems {
                let line = problem.line.unwrap_or_default();
                self.findings.problem_in_line(path, line, SweepFault::Sheet(problem));
            }
        });
        let points = points.ok()?;
        for lookalike in points.lookalikes() {
            self.findings.warning(path, WarningKind::Lookalike(lookalike));
        }
        Some(points)
    }

    /// Reads a sheet with a header.
    fn sheet(&mut self, name: &str) -> Option<SweepPoints> {
        let path = self.path(name);
        let contents = self.source.read(self.dir, name);
        let contents = self.findings.note(&path, contents)?;
        self.note(&path, read(SheetFormat::Tsv, &contents))
    }

    fn replicates(&mut self) -> Option<NonZeroU32> {
        let path = self.path(REPLICATES);
        let line = text::line(self.source.read(self.dir, REPLICATES));
        let (line, more) = self.findings.note(&path, line)?;
        if more {
            self.findings.warning(&path, WarningKind::MoreLines);
        }
        let count = line.parse().map_err(|_| SweepFault::Replicates(line).into());
        self.findings.note(&path, count)
    }

    fn columns(&mut self) -> Option<Vec<TableColumn>> {
        let path = self.path(COLUMNS);
        let lines = self.lines(COLUMNS)?;
        let mut columns = Vec::with_capacity(lines.len());
        for (at, line) in lines.iter().enumerate() {
            let column = line.split_once(char::is_whitespace).and_then(|(output, shape)| {
                let is_number = output.len() == 2 && output.bytes().all(|c| c.is_ascii_digit());
                let output = output.parse().ok().filter(|_| is_number)?;
                Some(TableColumn { output, shape: ColumnShape::of(shape.trim()) })
            });
            match column {
                Some(column) => columns.push(column),
                None => {
                    let fault = SweepFault::Column(line.clone());
                    self.findings.problem_in_line(&path, at + 1, fault);
                }
            }
        }
        Some(columns)
    }

    /// Reads the directory of factors, in the order of their numbers.
    fn factors(&mut self) -> Vec<Factor> {
        let path = self.path(FACTORS);
        let around = self.dir;
        let dir = self.source.enter(around, FACTORS);
        let Some(dir) = self.findings.note(&path, dir) else { return Vec::new() };
        let listed = self.source.list(&dir);
        let mut names = self.findings.note(&path, listed).unwrap_or_default();
        names.retain(|name| !name.as_encoded_bytes().starts_with(b"."));
        names.sort_unstable();
        let (mut factors, mut before) = (Vec::new(), String::new());
        for name in names {
            let place = path.join(&name);
            let Some((name, number, label)) = name.to_str().and_then(|name| {
                let (number, label) = name.split_once('-')?;
                let is_number = number.len() == 2 && number.bytes().all(|c| c.is_ascii_digit());
                (is_number && !label.is_empty()).then_some((name, number, label))
            }) else {
                self.findings.problem(&place, SweepFault::FactorPlace);
                continue;
            };
            if before.starts_with(number) {
                self.findings.problem(&place, SweepFault::FactorNumber(before.clone()));
            }
            name.clone_into(&mut before);
            let contents = self.source.read(&dir, name);
            let Some(contents) = self.findings.note(&place, contents) else { continue };
            let points = match label.ends_with(".tsv") {
                true => read(SheetFormat::Tsv, &contents),
                false => read_levels(label, &contents),
            };
            if let Some(points) = self.note(&place, points) {
                factors.push(Factor { file: name.into(), points });
            }
        }
        factors
    }
}

impl From<SweepFault> for LoadFault {
    fn from(fault: SweepFault) -> Self {
        Self::Sweep(Box::new(fault))
    }
}
