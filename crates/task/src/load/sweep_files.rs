//! Reading the files of a node `sweep` or `points`, beside its `kind`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ce_git::TreePath;
use ce_model::sweep::{
    ALLOW_FAILED, COLUMNS, Condition, EXCLUDE, FACTORS, FILES, Factor, FileColumn, NAMES, Product,
    REPLICATES, Replicates, SheetProblem, SweepFault, SweepPoints, SweepRules, WHERE,
    WrittenColumn, factor_label, factor_problems, is_sheet, read_column, read_condition,
    read_factor, read_levels, read_replicates,
};

use super::problems::{LoadFault, Problems, WarningKind};
use super::source::{TaskSource, parse_line, parse_lines};

/// Reads the rules of a node with these entries. `None` if something is wrong with them, which is reported.
pub(super) fn sweep_files<S: TaskSource>(
    source: &mut S,
    dir: &TreePath,
    entries: &[OsString],
    findings: &mut Problems,
) -> Option<SweepRules> {
    let before = findings.problems.len();
    let has = |name: &str| entries.iter().any(|entry| *entry == *name);
    let mut reader = FileReader { source, dir, findings };
    let names = if has(NAMES) { reader.lines(NAMES) } else { None };
    let files = if has(FILES) { reader.lines(FILES) } else { None };
    let rules = SweepRules {
        product: Product {
            factors: if has(FACTORS) { reader.factors() } else { Vec::new() },
            exclude: if has(EXCLUDE) { reader.sheet(EXCLUDE) } else { None },
            condition: if has(WHERE) { reader.condition() } else { None },
            replicates: if has(REPLICATES) { reader.replicates() } else { None },
        },
        names: names.map(|names| names.into_iter().map(String::into_boxed_str).collect()),
        files: files.into_iter().flatten().map(|line| FileColumn::read(&line)).collect(),
        columns: if has(COLUMNS) { reader.columns() } else { None },
        allow_failed: has(ALLOW_FAILED) && reader.allow_failed(),
    };
    (findings.problems.len() == before).then_some(rules)
}

struct FileReader<'a, S: TaskSource> {
    source: &'a mut S,
    dir: &'a TreePath,
    findings: &'a mut Problems,
}

impl<S: TaskSource> FileReader<'_, S> {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.place().join(name)
    }

    /// Reads a list.
    fn lines(&mut self, name: &str) -> Option<Vec<String>> {
        let lines = parse_lines(self.source.read(self.dir, name));
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
        points.ok()
    }

    /// Reads a sheet with a header.
    fn sheet(&mut self, name: &str) -> Option<SweepPoints> {
        let path = self.path(name);
        let contents = self.source.read_points(self.dir, name);
        let contents = self.findings.note(&path, contents)?;
        self.note(&path, read_factor(&contents))
    }

    fn condition(&mut self) -> Option<Condition> {
        let path = self.path(WHERE);
        let line = parse_line(self.source.read(self.dir, WHERE));
        let (line, more) = self.findings.note(&path, line)?;
        if more {
            self.findings.problem(&path, SweepFault::Conditions);
            return None;
        }
        match read_condition(&line) {
            Ok(condition) => Some(condition),
            Err(fault) => {
                self.findings.problem_in_line(&path, 1, fault);
                None
            }
        }
    }

    fn replicates(&mut self) -> Option<Replicates> {
        let path = self.path(REPLICATES);
        let line = parse_line(self.source.read(self.dir, REPLICATES));
        let (line, more) = self.findings.note(&path, line)?;
        if more {
            self.findings.warning(&path, WarningKind::MoreLines);
        }
        self.findings.note(&path, read_replicates(&line).map_err(Into::into))
    }

    /// Whether the file that lets points fail is there and empty. A text in it may say that they may not fail.
    fn allow_failed(&mut self) -> bool {
        match self.lines(ALLOW_FAILED) {
            Some(lines) if !lines.is_empty() => {
                let path = self.path(ALLOW_FAILED);
                self.findings.problem(&path, SweepFault::AllowFailed);
                false
            }
            lines => lines.is_some(),
        }
    }

    fn columns(&mut self) -> Option<Vec<WrittenColumn>> {
        let path = self.path(COLUMNS);
        let lines = self.lines(COLUMNS)?;
        let mut columns = Vec::with_capacity(lines.len());
        for (at, line) in lines.iter().enumerate() {
            match read_column(line) {
                Ok(column) => columns.push(column),
                Err(fault) => self.findings.problem_in_line(&path, at + 1, fault),
            }
        }
        Some(columns)
    }

    /// Reads the directory of factors, in the order of their numbers.
    fn factors(&mut self) -> Vec<Factor> {
        let (path, around_path) = (self.path(FACTORS), self.path(""));
        let dir = self.source.enter(self.dir, FACTORS);
        let Some(dir) = self.findings.note(&path, dir) else { return Vec::new() };
        let listed = self.source.list(&dir);
        let mut names = self.findings.note(&path, listed).unwrap_or_default();
        names.retain(|name| !name.as_encoded_bytes().starts_with(b"."));
        names.sort_unstable();
        for name in names.iter().filter(|name| name.to_str().is_none()) {
            self.findings.problem(&path.join(name), SweepFault::FactorPlace);
        }
        let names: Vec<&str> = names.iter().filter_map(|name| name.to_str()).collect();
        for problem in factor_problems(names.iter().copied()) {
            self.findings.problem(&around_path.join(problem.file), problem.fault);
        }
        let mut factors = Vec::with_capacity(names.len());
        for name in names {
            let (place, Some((_, label))) = (path.join(name), factor_label(name)) else { continue };
            let contents = self.source.read_points(&dir, name);
            let Some(contents) = self.findings.note(&place, contents) else { continue };
            let points = if is_sheet(label) {
                read_factor(&contents)
            } else {
                read_levels(label, &contents)
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
