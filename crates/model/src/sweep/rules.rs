//! The rules of a sweep: what its files say, and whether they fit together, its body and its points.
//!
//! The loader reads the files of a task, the parser of expressions the same from text. Both obey these rules.

use std::collections::HashSet;
use std::num::NonZeroU32;

use super::condition_mistake::MOST_COMBINATIONS;
use super::output_table::STATUS;
use super::points::SweepPoints;
use super::product::{
    ExclusionFault, FactorFault, ProductFault, REPLICATE, choices_without_points, points,
};
use super::sheet::SheetProblem;
use super::{
    Better, ColumnMeasure, ColumnShape, Condition, FileColumn, Product, Sweep, TableColumn,
    WrittenColumn,
};
use crate::exit::Explain;
use crate::name::stem;
use crate::slice::{SliceError, WrittenSlice};
use crate::suggest::UnknownName;

/// The directory of the factors.
pub const FACTORS: &str = "factors";

/// The points that are left out.
pub const EXCLUDE: &str = "exclude.tsv";

/// The condition that points are to fulfil.
pub const WHERE: &str = "where";

/// The number of times that each point is evaluated.
pub const REPLICATES: &str = "replicates";

/// The names of computed points that are bound.
pub const NAMES: &str = "names";

/// The columns of computed points whose cells are paths of files.
pub const FILES: &str = "files";

/// The columns of the table.
pub const COLUMNS: &str = "columns";

/// Its existence lets failed points become rows.
pub const ALLOW_FAILED: &str = "allow-failed";

/// The files of a node `points` beside its `kind`. A sweep has them, too.
pub const PRODUCT_FILES: [&str; 4] = [FACTORS, EXCLUDE, WHERE, REPLICATES];

/// The files that only a sweep has.
pub const SWEEP_FILES: [&str; 4] = [NAMES, FILES, COLUMNS, ALLOW_FAILED];

/// The rules of a node as its files say them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepRules {
    /// The factors, and how points are made of them.
    pub product: Product,
    /// The names of computed points that are bound.
    pub names: Option<Vec<Box<str>>>,
    /// The columns of computed points whose cells are paths of files.
    pub files: Vec<FileColumn>,
    /// The columns of the table, if they are written.
    pub columns: Option<Vec<WrittenColumn>>,
    /// Whether failed points become rows.
    pub allow_failed: bool,
}

/// Whether the file of this name is a sheet with a header, rather than a list of lines.
pub fn is_sheet(file: &str) -> bool {
    file.ends_with(SHEET_SUFFIX)
}

/// The end of the names of sheets beside a node.
pub const SHEET_SUFFIX: &str = ".tsv";

/// Returns the number and the label in the name `nn-LABEL` of a factor's file.
pub fn factor_label(file: &str) -> Option<(&str, &str)> {
    let (number, label) = file.split_once('-')?;
    let is_number = number.len() == 2 && number.bytes().all(|c| c.is_ascii_digit());
    (is_number && !label.is_empty()).then_some((number, label))
}

/// Returns the problems of the names of factors, which are sorted.
pub fn factor_problems<'a>(files: impl IntoIterator<Item = &'a str>) -> Vec<RuleProblem> {
    let (mut problems, mut before) = (Vec::new(), None::<(&str, &str)>);
    for file in files {
        let path = format!("{FACTORS}/{file}");
        match (factor_label(file), before) {
            (None, _) => {
                problems.push(RuleProblem::new(path, SweepFault::FactorPlace));
                continue;
            }
            (Some((number, _)), Some((first, other))) if number == first => {
                let fault = SweepFault::FactorNumber(other.to_owned());
                problems.push(RuleProblem::new(path, fault));
            }
            (Some(_), _) => {}
        }
        before = factor_label(file).map(|(number, _)| (number, file));
    }
    problems
}

/// Returns the condition that is written in the file `where`.
pub fn read_condition(line: &str) -> Result<Condition, SweepFault> {
    let condition = Condition::try_from(Box::from(line));
    condition.map_err(|fault| SweepFault::Product(ProductFault::Condition(fault)))
}

/// Returns the column that a line of the file `columns` says.
///
/// # Errors
///
/// Fails unless it is the number or the name of an output, a blank and a name. A number has two digits. A unit in brackets may follow,
/// and `less` or `more`; behind `**`, `by` and the names of columns.
pub fn read_column(line: &str) -> Result<WrittenColumn, SweepFault> {
    let Some((output, rest)) = line.split_once(char::is_whitespace).filter(|(output, _)| {
        let is_number = output.bytes().all(|c| c.is_ascii_digit());
        !is_number || output.len() == 2
    }) else {
        return Err(SweepFault::Column(line.to_owned()));
    };
    if let Some((shape, keys)) = split_keys(rest.trim()) {
        let keys: Vec<Box<str>> = keys.split_whitespace().map(Into::into).collect();
        let has_twice = (1..keys.len()).any(|at| keys[..at].contains(&keys[at]));
        if shape != ColumnShape::Rows || keys.is_empty() || has_twice {
            return Err(SweepFault::RowKeys(line.to_owned()));
        }
        return Ok(WrittenColumn {
            output: output.into(),
            shape,
            measure: ColumnMeasure::default(),
            keys,
        });
    }
    let (rest, better) = split_better(rest.trim());
    let mut brackets = rest.match_indices('[').map(|(at, _)| rest.split_at(at));
    let unit = brackets.find(|(name, _)| name.is_empty() || name.ends_with(char::is_whitespace));
    let (name, unit) = match unit {
        None => (rest, None),
        Some((name, brackets)) => {
            let name = name.trim_end();
            let unit = brackets.strip_prefix('[').and_then(|unit| unit.strip_suffix(']'));
            let unit = unit.map(str::trim).filter(|unit| {
                let is_unit = !unit.is_empty() && !unit.contains(['[', ']']);
                is_unit && !name.is_empty() && split_better(name).1.is_none()
            });
            (name, Some(unit.ok_or_else(|| SweepFault::ColumnUnit(line.to_owned()))?))
        }
    };
    let shape = ColumnShape::from_text(name);
    let measure = ColumnMeasure { unit: unit.map(Into::into), better };
    if shape.is_json() && measure != ColumnMeasure::default() {
        return Err(SweepFault::FieldUnit(line.to_owned()));
    }
    Ok(WrittenColumn { output: output.into(), shape, measure, keys: Vec::new() })
}

/// Splits the fields of JSON, `*` or `**`, from the names behind `by`.
fn split_keys(text: &str) -> Option<(ColumnShape, &str)> {
    let (shape, rest) = text.split_once(char::is_whitespace)?;
    let shape = ColumnShape::from_text(shape);
    let names = rest.trim_start().strip_prefix("by")?;
    let is_word = names.is_empty() || names.starts_with(char::is_whitespace);
    (shape.is_json() && is_word).then_some((shape, names))
}

/// Takes `less` or `more` from the end of a text that has something before it.
fn split_better(text: &str) -> (&str, Option<Better>) {
    for better in [Better::Less, Better::More] {
        if let Some(rest) = text.strip_suffix(better.word())
            && rest.ends_with(char::is_whitespace)
        {
            return (rest.trim_end(), Some(better));
        }
    }
    (text, None)
}

/// A problem of the rules of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleProblem {
    /// The file, relative to the directory of the node; empty for the node as a whole.
    pub file: String,
    /// The line, counted from one; zero for the whole file.
    pub line: usize,
    pub fault: SweepFault,
}

impl RuleProblem {
    /// A problem of a file as a whole.
    pub fn new(file: impl Into<String>, fault: SweepFault) -> Self {
        Self { file: file.into(), line: 0, fault }
    }
}

impl From<&Sweep> for SweepRules {
    fn from(sweep: &Sweep) -> Self {
        Self {
            product: sweep.product.clone(),
            names: sweep.names.clone(),
            files: sweep.files.clone(),
            columns: sweep.written.clone(),
            allow_failed: sweep.allow_failed,
        }
    }
}

impl SweepRules {
    /// The names that the files bind or use as columns, and the file of each.
    pub fn named(&self) -> impl Iterator<Item = (String, String)> {
        let factors = self.product.factors.iter().flat_map(|factor| {
            let path = format!("{FACTORS}/{}", factor.file);
            factor.points.names().iter().map(move |name| (name.clone(), path.clone()))
        });
        let names = self.names.iter().flatten().map(|name| (name.to_string(), NAMES.to_owned()));
        let files = self.files.iter().map(|it| (it.name.to_string(), FILES.to_owned()));
        let replicates = self.product.replicates.as_ref();
        let replicate = replicates.map(|_| (REPLICATE.to_owned(), REPLICATES.to_owned()));
        factors.chain(names).chain(files).chain(replicate)
    }

    /// Whether they bind all columns of computed points that the body reads: none are listed.
    pub const fn are_open(&self) -> bool {
        self.names.is_none() && self.files.is_empty()
    }

    /// The problems of names that are listed twice.
    pub(super) fn same_names(&self) -> Vec<RuleProblem> {
        let is_factor = |name: &str| {
            self.product.factors.iter().any(|factor| factor.points.column(name).is_some())
        };
        let listed = |names: Vec<&Box<str>>, file: &str| {
            let placed = (1..).zip(names).map(|(line, name)| (file.to_owned(), line, name.clone()));
            placed.collect::<Vec<_>>()
        };
        let names = listed(self.names.iter().flatten().collect(), NAMES);
        let files = listed(self.files.iter().map(|it| &it.name).collect(), FILES);
        let mut seen = HashSet::new();
        let all = names.into_iter().chain(files);
        all.filter(|(.., name)| is_factor(name) || !seen.insert(name.clone()))
            .map(|(file, line, name)| {
                let fault = SweepFault::SameName(name.into());
                RuleProblem { file, line, fault }
            })
            .collect()
    }

    /// The problems of conditions and exclusions that read the text of a file.
    pub(super) fn files_as_texts(&self) -> Vec<RuleProblem> {
        let Product { exclude, condition, .. } = &self.product;
        let condition = condition.iter().flat_map(Condition::names).map(|name| (WHERE, name));
        let excluded = exclude.iter().flat_map(SweepPoints::names).map(|name| (EXCLUDE, &**name));
        let text = self.named().find(|(_, file)| file != FILES && file != REPLICATES);
        let text = text.map(|(name, _)| name);
        let is_file = |name: &str| self.files.iter().any(|it| *it.name == *name);
        let read = condition.chain(excluded).filter(|(_, name)| is_file(name));
        read.map(|(file, name)| {
            let fault = SweepFault::FileAsText { name: name.to_owned(), text: text.clone() };
            RuleProblem { file: file.to_owned(), line: 1, fault }
        })
        .collect()
    }

    /// The problems of a node `points`.
    pub fn points_problems(&self) -> Vec<RuleProblem> {
        if self.product.replicates.as_ref().is_some_and(|it| it.until.is_some()) {
            vec![RuleProblem::new(REPLICATES, SweepFault::UntilOfPoints)]
        } else if self.product.factors.is_empty() {
            vec![RuleProblem::new(FACTORS, SweepFault::NoFactors)]
        } else {
            product_problems(&self.product)
        }
    }
}

/// The problems of a product that makes points by itself.
pub(super) fn product_problems(product: &Product) -> Vec<RuleProblem> {
    let faults = points(product).err().or_else(|| choices_without_points(product).err());
    faults
        .unwrap_or_default()
        .into_iter()
        .map(|fault| {
            let (file, line) = place(product, &fault);
            RuleProblem { file, line, fault: SweepFault::Product(fault) }
        })
        .collect()
}

/// The file and line that a fault is in; line zero is the whole file.
fn place(product: &Product, fault: &ProductFault) -> (String, usize) {
    match fault {
        ProductFault::Factor(
            FactorFault::NoLevels { factor: number } | FactorFault::SameName { factor: number, .. },
        ) => match product.factors.get(*number) {
            Some(factor) => (format!("{FACTORS}/{}", factor.file), 0),
            None => (REPLICATES.to_owned(), 0),
        },
        ProductFault::Factor(_) => (FACTORS.to_owned(), 0),
        ProductFault::Exclusion(ExclusionFault::NoColumn(_)) => (EXCLUDE.to_owned(), 1),
        ProductFault::Condition(_) => (WHERE.to_owned(), 1),
        ProductFault::Exclusion(ExclusionFault::NoMatch { row, .. }) => {
            (EXCLUDE.to_owned(), row + 1)
        }
    }
}

/// The directory of the body and the points.
const INPUTS: &str = "inputs";

/// The directory of the points.
const POINTS: &str = "inputs/01-points";

/// Returns the problem of a sweep with this number of inputs, whose points pass up this number of files.
pub fn input_problem(count: usize, points: Option<usize>) -> Option<RuleProblem> {
    let fault = match (count, points) {
        (0 | 3.., _) => SweepFault::Inputs(count),
        (_, Some(width)) if width != 1 => SweepFault::PointsWidth(width),
        _ => return None,
    };
    Some(RuleProblem::new(INPUTS, fault))
}

/// Returns the problems of names that the body must read. `is_free` says of a name whether it is free in the body, `is_asked`
/// whether only resources in it have the name, and `free` are the names of computed points that are bound nowhere else.
///
/// A column that only resources have is all right beside one that is read. Alone it would make all points one call.
pub fn unread_problems<'a>(
    rules: &SweepRules,
    is_free: impl Fn(&str) -> bool,
    is_asked: impl Fn(&str) -> bool,
    free: Option<impl IntoIterator<Item = &'a str>>,
) -> Vec<RuleProblem> {
    let mut problems = Vec::new();
    let mut unread = |file: String, names: Vec<String>| {
        problems.push(RuleProblem::new(file, SweepFault::Unread(names)));
    };
    for factor in &rules.product.factors {
        let names = factor.points.names();
        if !names.iter().any(|name| is_free(name)) {
            unread(format!("{FACTORS}/{}", factor.file), names.to_vec());
        }
    }
    if rules.product.replicates.is_some() && !is_free(REPLICATE) {
        unread(REPLICATES.to_owned(), vec![REPLICATE.to_owned()]);
    }
    for name in rules.names.iter().flatten().filter(|name| !is_free(name) && !is_asked(name)) {
        unread(NAMES.to_owned(), vec![name.to_string()]);
    }
    for FileColumn { name, .. } in rules.files.iter().filter(|it| !is_free(&it.name)) {
        unread(FILES.to_owned(), vec![name.to_string()]);
    }
    let factors = &rules.product.factors;
    let is_factor = |name: &str| {
        name == REPLICATE || factors.iter().any(|factor| factor.points.column(name).is_some())
    };
    if let Some(free) = free
        && problems.is_empty()
        && free.into_iter().all(is_factor)
    {
        problems.push(RuleProblem::new(INPUTS, SweepFault::ReadsNothing));
    }
    problems
}

/// Returns the problems of points that are this product: a column has the name of an input of the task that the body reads.
pub fn same_name_problems(points: &Product, inputs: &[Box<str>]) -> Vec<RuleProblem> {
    let factors = points.factors.iter().flat_map(|factor| factor.points.names());
    let replicate = points.replicates.as_ref().map(|_| REPLICATE);
    let columns = factors.map(String::as_str).chain(replicate);
    columns
        .filter(|column| inputs.iter().any(|name| **name == **column))
        .map(|column| RuleProblem::new(POINTS, SweepFault::InputColumn(column.to_owned())))
        .collect()
}

/// Returns the columns of a table for which none are written: one for each output of the body, with its name, without the suffix
/// unless only that tells two of them apart.
fn default_columns(names: Vec<String>) -> Vec<TableColumn> {
    let stems: Vec<String> = names.iter().map(|name| stem(name)).collect();
    let are_different = stems.iter().collect::<HashSet<_>>().len() == stems.len();
    let columns = if are_different { stems } else { names };
    (0..)
        .zip(columns)
        .map(|(output, name)| TableColumn {
            output,
            shape: ColumnShape::One(name.into_boxed_str()),
        })
        .collect()
}

/// Returns the columns of a table: those that are written, or else the default ones. These are the names
/// of the outputs that the body passes up.
pub fn table_columns(
    rules: &SweepRules,
    names: Vec<String>,
) -> Result<Vec<TableColumn>, Vec<RuleProblem>> {
    let Some(written) = &rules.columns else { return Ok(default_columns(names)) };
    let (mut columns, mut problems) = (Vec::new(), Vec::new());
    for (line, column) in (1..).zip(written) {
        match resolve(column, &names) {
            Ok(column) => columns.push(column),
            Err(error) => {
                let fault = SweepFault::OutputName(error);
                problems.push(RuleProblem { file: COLUMNS.to_owned(), line, fault });
            }
        }
    }
    if problems.is_empty() { Ok(columns) } else { Err(problems) }
}

/// Finds the output of a column among those with these names. A number is not compared with how many there are.
fn resolve(column: &WrittenColumn, names: &[String]) -> Result<TableColumn, SliceError> {
    let (slice, wrong) = WrittenSlice::parse([&*column.output]).resolve(names);
    match wrong.into_iter().next() {
        Some((_, error)) => Err(error),
        None => {
            let output = slice.numbers().next().unwrap_or_default();
            Ok(TableColumn { output, shape: column.shape.clone() })
        }
    }
}

/// Returns the names of the columns that the table of a sweep certainly has. The columns of the table, as far as they are
/// known.
pub fn known_columns(rules: &SweepRules, columns: &[TableColumn]) -> Vec<String> {
    let of_points = rules.named().filter(|(_, file)| file != FILES).map(|(name, _)| name);
    let of_outputs = columns.iter().filter_map(|column| match &column.shape {
        ColumnShape::One(name) => Some(name.to_string()),
        ColumnShape::Fields | ColumnShape::Rows => None,
    });
    let status = rules.allow_failed.then(|| STATUS.to_owned());
    of_points.chain(of_outputs).chain(status).collect()
}

/// Returns the problem of the directory of a sweep whose body passes up outputs with these names: each is a member for each point.
pub fn directory_problem(names: &[String]) -> Option<RuleProblem> {
    let mut seen = HashSet::new();
    let same = names.iter().find(|name| !seen.insert(*name))?;
    Some(RuleProblem::new("", SweepFault::SameOutput(same.clone())))
}

/// Returns the problems of the columns of a table, as far as they are known. The body passes up this many files, if that is
/// known. `columns` are the written columns, or else the default ones. `nested` has the names of the columns of an output
/// that is the table of another sweep.
pub fn column_problems(
    rules: &SweepRules,
    columns: &[TableColumn],
    width: Option<usize>,
    nested: impl Fn(u8) -> Vec<String>,
) -> Vec<RuleProblem> {
    let named = rules.named().filter(|(_, file)| file != FILES);
    let mut seen: HashSet<String> = named.map(|(name, _)| name).collect();
    if rules.allow_failed {
        seen.insert(STATUS.to_owned());
    }
    let mut problems = Vec::new();
    let mut problem = |line, fault| match rules.columns {
        Some(_) => problems.push(RuleProblem { file: COLUMNS.to_owned(), line, fault }),
        None => problems.push(RuleProblem::new("", fault)),
    };
    if rules.columns.as_ref().is_some_and(Vec::is_empty) {
        problem(0, SweepFault::NoColumns);
    }
    let mut has_rows = false;
    for (line, TableColumn { output, shape }) in (1..).zip(columns) {
        if let Some(width) = width
            && usize::from(*output) >= width
        {
            problem(line, SweepFault::NoOutput { count: width, number: *output });
        }
        match shape {
            ColumnShape::One(name) if !seen.insert(name.to_string()) => {
                problem(line, SweepFault::SameColumn(name.to_string()));
            }
            ColumnShape::Rows if has_rows => problem(line, SweepFault::TwoRows),
            ColumnShape::Rows => {
                has_rows = true;
                for name in nested(*output) {
                    if !seen.insert(name.clone()) {
                        problem(line, SweepFault::NestedColumn(name));
                    }
                }
            }
            ColumnShape::One(_) | ColumnShape::Fields => {}
        }
    }
    problems.extend(until_fault(rules, columns).map(|it| RuleProblem::new(REPLICATES, it)));
    problems
}

/// Returns the fault of the column by which replicates end, if any. The fields of JSON are unknown until it is there.
fn until_fault(rules: &SweepRules, columns: &[TableColumn]) -> Option<SweepFault> {
    let name = &*rules.product.replicates.as_ref()?.until.as_ref()?.column;
    let (mut known, mut has_rows) = (Vec::new(), false);
    for TableColumn { shape, .. } in columns {
        match shape {
            ColumnShape::One(column) => known.push(column.to_string()),
            ColumnShape::Fields => return None,
            ColumnShape::Rows => has_rows = true,
        }
    }
    if known.iter().any(|column| column == name) {
        return None;
    }
    Some(match has_rows {
        true => SweepFault::UntilRows(name.to_owned()),
        false => SweepFault::NoUntilColumn(UnknownName::new(name, known)),
    })
}

/// The greatest number of sweeps around a node.
pub const MAX_SWEEPS: usize = 32;

/// A fault of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum SweepFault {
    /// A list of levels or a sheet is wrong.
    #[error("{}{}", .0.column.as_ref().map(|name| format!("column {name:?}: ")).unwrap_or_default(), .0.fault)]
    #[hint(_0.fault.hint())]
    Sheet(SheetProblem),
    /// The factors do not fit together, or the exclusion does not fit them.
    #[error(transparent)]
    #[hint(_0.hint())]
    Product(ProductFault),
    /// A file in `factors/` has no number.
    #[error("the name does not say in which order the factor stands")]
    #[hint("call it nn-NAME, or nn-TEXT.tsv, as in 00-threads")]
    FactorPlace,
    /// Two files in `factors/` have one number.
    #[error("{0} has the same number")]
    #[hint("give each factor a number of its own")]
    FactorNumber(String),
    /// There are no points.
    #[error("the sweep has no points: it has no factors, and no input computes them")]
    #[hint("write levels into a file such as factors/00-threads, one a line")]
    NoPoints,
    /// A node `points` has no factors.
    #[error("there are no factors")]
    #[hint("write levels into a file such as factors/00-threads, one a line")]
    NoFactors,
    /// A sweep has other inputs than a body and points.
    #[error("a sweep takes a body, and perhaps points; this has {0} inputs")]
    #[hint("keep inputs/00-body, and inputs/01-points if the points are computed")]
    Inputs(usize),
    /// The points are passed up by a node with several outputs.
    #[error("the points are one file, and this passes up {0}")]
    #[hint("choose one output in its file outputs")]
    PointsWidth(usize),
    /// A column has a name that cannot be bound.
    #[error("{0:?} cannot be the name of an input")]
    #[hint("give it another name")]
    NoName(String),
    /// A name is bound already.
    #[error("the name {0:?} is an input of the task, or bound by a sweep around this one")]
    #[hint("give it another name")]
    Shadow(String),
    /// A column of the points has the name of an input that the body reads.
    #[error("the points have a column {0:?}, and the body reads the input {0:?} of the task")]
    #[hint(
        "give the column another name: the table would show its texts, and calls would read others"
    )]
    InputColumn(String),
    /// The name of a computation depends on an input of the task.
    #[error("the name of a computation cannot depend on {0:?}, an input of the task")]
    #[hint(
        "give the input its choices, as in Inputs: {_0} = 'a' or 'b', or make it a factor of a sweep: all computations are known when the task is loaded"
    )]
    InputName(String),
    /// A condition reads an input of the task that has no choices.
    #[error("{0:?} is an input of the task: a condition can read those that have choices")]
    #[hint("give the input its choices, as in Inputs: {_0} = 'a' or 'b'")]
    ConditionInput(String),
    /// The name of a computation has too many choices.
    #[error("the name of the computation has {0} choices, and {MOST_COMBINATIONS} are the most")]
    #[hint("take fewer texts of inputs and levels into one name")]
    ManyChoices(usize),
    /// The name of a computation depends on a name whose texts are computed.
    #[error("the name of a computation cannot depend on {0:?}: its texts are computed")]
    #[hint(
        "make it a factor of a sweep, so that all computations are known when the task is loaded"
    )]
    ComputedName(String),
    /// The name of a computation depends on factors without any remaining point.
    #[error("all points are excluded, so the name stands for no computation")]
    #[hint("leave out fewer points in exclude.tsv and where")]
    NoLevels,
    /// No node of the body reads a factor.
    #[error("the body does not read {}", .0.join(" or "))]
    #[hint("read it with a node of kind input, or in braces in the value of a node")]
    Unread(Vec<String>),
    /// No node of the body reads a column of the computed points.
    #[error("the body reads no column of the points")]
    #[hint("read it with a node of kind input, or in braces in the value of a node")]
    ReadsNothing,
    /// Only computed points have names to bind.
    #[error("names are listed only of points that are computed")]
    #[hint("remove the file names: the factors are bound")]
    Names,
    /// Only computed points have columns of files.
    #[error("files are listed only of points that a sheet has")]
    #[hint("give the sweep a sheet, an input or a file of the task; or remove the file files")]
    Files,
    /// The points with columns of files are no sheet of the user or of the task.
    #[error("the points have columns of files, and are neither an input nor a file of the task")]
    #[hint(
        "make the sheet an input of the task, or a file of it: what a call prints cannot say where files are"
    )]
    FilesOfResult,
    /// The text of a name is read, which is bound to a file.
    #[error("{name:?} is a file of each point, and has no text")]
    #[hint("use a column of texts{}", text.as_ref().map(|it| format!(", such as {it}")).unwrap_or_default())]
    FileAsText {
        name: String,
        /// A name with a text.
        text: Option<String>,
    },
    /// Another sweep over the same sheet reads a column otherwise.
    #[error(
        "another sweep over the same sheet reads the column {0:?} otherwise: as a file, as a text, or with other words for no file"
    )]
    #[hint("list it in the same way in files of both")]
    OtherColumn(String),
    /// It is not clear which sweep binds the free names.
    #[error(
        "two sweeps with computed points are nested, and it is not clear which one binds a name"
    )]
    #[hint("list the names that the inner one binds in its file names")]
    Ambiguous,
    /// Too many sweeps are nested.
    #[error("more than {MAX_SWEEPS} sweeps are nested")]
    #[hint("use more factors in fewer sweeps")]
    TooDeep,
    /// The file `where` has several lines.
    #[error("it has several lines, and a condition is one")]
    #[hint("join them in one line, with &&")]
    Conditions,
    /// The number of replicates is wrong.
    #[error("{0:?} is not a number of replicates")]
    #[hint("write a number such as 10, or 10..100 until seconds ±5%")]
    Replicates(String),
    /// The least number of replicates is larger than the largest.
    #[error("the least number of replicates is {least}, and the largest is {most}")]
    #[hint("write the smaller one first, as in 10..100")]
    LeastReplicates {
        least: NonZeroU32,
        /// The largest.
        most: NonZeroU32,
    },
    /// The least number of replicates has no interval.
    #[error("{0} replicates have no interval")]
    #[hint("begin with 6 or more: an interval of 95 % needs 6 values")]
    FewReplicates(NonZeroU32),
    /// The required precision is not a share of the median.
    #[error("{0:?} is not a share of the median in percent")]
    #[hint(
        "write a number above 0 and up to 100, with at most three decimals, such as ±5% or +-0.5%"
    )]
    Precision(String),
    /// The replicates of a node `points` end by results, but it has no results.
    #[error("points have no results, so their replicates cannot end by one")]
    #[hint("write a number, or write it in the sweep that takes the points")]
    UntilOfPoints,
    /// The table has no column of results by which the replicates could end.
    #[error("the table has no column of results {0}")]
    #[hint(Some(_0.suggestion("columns")))]
    NoUntilColumn(UnknownName),
    /// The column by which the replicates could end has many values for each of them.
    #[error("replicates cannot end by a column of many rows: {0:?}")]
    #[hint("take a column of one value, such as 00 seconds or 00 *")]
    UntilRows(String),
    /// A line of `columns` is wrong.
    #[error("{0:?} is not the number or the name of an output, a blank and a name")]
    #[hint("write a line such as 00 seconds, 00 * or 00 **")]
    Column(String),
    /// A line of `columns` has something else than a unit and a direction after the name.
    #[error("{0:?} is not an output, a name, and at most a unit in brackets and less or more")]
    #[hint("write a line such as 00 seconds [s] less, or 00 accuracy more")]
    ColumnUnit(String),
    /// A line of `columns` has a unit, and takes fields of JSON.
    #[error("{0:?} has a unit or a direction, and stands for fields of JSON")]
    #[hint("leave it out: the fields have units of their own, which their names may have")]
    FieldUnit(String),
    /// A line of `columns` says wrongly which columns tell rows apart.
    #[error("{0:?} does not name the columns that tell the rows of an output apart")]
    #[hint("write a line such as 00 ** by benchmark size, with each name once")]
    RowKeys(String),
    /// A line of `columns` has the name of no output that the body passes up.
    #[error(transparent)]
    #[hint(_0.hint())]
    OutputName(SliceError),
    /// A line of `columns` names an output that the body does not pass up.
    #[error("the body passes up {count}, so there is no {number:02}")]
    #[hint("outputs are numbered from 00")]
    NoOutput {
        /// The number of files that it passes up.
        count: usize,
        /// The number in the line.
        number: u8,
    },
    /// The file `columns` has no lines.
    #[error("there are no columns")]
    #[hint(
        "write a line for each, such as 00 seconds, or remove the file: then each output is a column"
    )]
    NoColumns,
    /// The file `names` has a name twice.
    #[error("the name {0:?} occurs twice")]
    #[hint("remove the line")]
    SameName(String),
    /// There is text in the file `allow-failed`.
    #[error("it has text, and only its existence counts")]
    #[hint("empty it if failed points are to become rows, or else remove it")]
    AllowFailed,
    /// Two columns of the table have one name.
    #[error("the table has two columns {0:?}")]
    #[hint("name the columns in the file columns")]
    SameColumn(String),
    /// A table that gives rows has a column of the table that takes them.
    #[error("the table has two columns {0:?}: the table that ** takes has one, too")]
    #[hint("{}", nested_column_hint(_0))]
    NestedColumn(String),
    /// Two outputs would give rows.
    #[error("only one output can give rows of its own")]
    #[hint("write ** for one output only")]
    TwoRows,
    /// Two outputs of a point would be one member of the directory.
    #[error("the directory has two outputs {0:?} of each point")]
    #[hint("give one of them another name where it is declared, or pass up one")]
    SameOutput(String),
}

/// What to try if a table that gives rows has a column of this name, too.
fn nested_column_hint(name: &str) -> &'static str {
    if name == STATUS {
        "remove the file allow-failed of one of both sweeps, or take the table under a name in place of **"
    } else {
        "give another name to one of them"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_may_have_a_unit_and_a_direction() {
        for (line, name, unit, better, text) in [
            ("00 seconds", "seconds", None, None, "00 seconds"),
            ("00 seconds [s]", "seconds", Some("s"), None, "00 seconds [s]"),
            (
                "00 a b [ 10 m/s ] more",
                "a b",
                Some("10 m/s"),
                Some(Better::More),
                "00 a b [10 m/s] more",
            ),
            ("n \t x[0]\t[s]  less", "x[0]", Some("s"), Some(Better::Less), "n x[0] [s] less"),
            ("00 accuracy more", "accuracy", None, Some(Better::More), "00 accuracy more"),
            ("00 less", "less", None, None, "00 less"),
            ("00 more less", "more", None, Some(Better::Less), "00 more less"),
            ("00 endless", "endless", None, None, "00 endless"),
            ("00 a less b", "a less b", None, None, "00 a less b"),
            ("00 x]", "x]", None, None, "00 x]"),
        ] {
            let column = read_column(line).unwrap();
            assert_eq!(column.shape, ColumnShape::One(name.into()), "{line}");
            assert_eq!(column.measure, ColumnMeasure { unit: unit.map(Into::into), better });
            assert_eq!(column.text(), text);
            assert_eq!(read_column(text), Ok(column), "{line}");
        }
    }

    #[test]
    fn wrong_units_and_directions_are_refused() {
        for line in [
            "00 [s]",
            "00 a [s] fewer",
            "00 a [s",
            "00 a [] less",
            "00 a [ ]",
            "00 a [[s]]",
            "00 a less [s]",
            "00 a [s] [m]",
            "00 a [s]less",
            "00 a [s] less more",
        ] {
            assert_eq!(read_column(line), Err(SweepFault::ColumnUnit(line.to_owned())));
        }
        for line in ["00 * [s]", "00 ** less"] {
            assert_eq!(read_column(line), Err(SweepFault::FieldUnit(line.to_owned())));
        }
    }

    #[test]
    fn rows_may_have_the_names_of_their_keys() {
        for (line, names, text) in [
            ("00 ** by benchmark", &["benchmark"][..], "00 ** by benchmark"),
            ("rows  ** \tby  less  size", &["less", "size"], "rows ** by less size"),
        ] {
            let column = read_column(line).unwrap();
            assert_eq!((&column.shape, column.text().as_str()), (&ColumnShape::Rows, text));
            assert_eq!(column.keys.iter().map(|key| &**key).collect::<Vec<_>>(), names);
            assert_eq!(read_column(text), Ok(column));
        }
        for line in ["00 ** by", "00 * by a", "00 ** by a b a"] {
            assert_eq!(read_column(line), Err(SweepFault::RowKeys(line.to_owned())));
        }
        assert_eq!(read_column("00 ** bypass").unwrap().keys, []);
    }
}
