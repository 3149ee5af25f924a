//! The files of a node `sweep` or `points`, beside its `kind`.

use std::num::NonZeroU32;

use super::fault::SweepFault;
use super::{ProductFault, points};
use crate::expand::{ExclusionFault, FactorFault, REPLICATE};
use crate::task::sweep::{ColumnShape, Product, Sweep, WrittenColumn};

/// The directory of the factors.
pub const FACTORS: &str = "factors";

/// The points that are left out.
pub const EXCLUDE: &str = "exclude.tsv";

/// The number of times that each point is evaluated.
pub const REPLICATES: &str = "replicates";

/// The names of computed points that are bound.
pub const NAMES: &str = "names";

/// The columns of the table.
pub const COLUMNS: &str = "columns";

/// Its existence lets failed points become rows.
pub const ALLOW_FAILED: &str = "allow-failed";

/// What a node `points` has beside its `kind`, and a sweep as well.
pub const PRODUCT_FILES: [&str; 3] = [FACTORS, EXCLUDE, REPLICATES];

/// What only a sweep has.
pub const SWEEP_FILES: [&str; 3] = [NAMES, COLUMNS, ALLOW_FAILED];

/// The rules of a node as its files say them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepRules {
    /// The factors, and what is made of them.
    pub product: Product,
    /// The names of computed points that are bound.
    pub names: Option<Vec<Box<str>>>,
    /// The columns of the table, if they are written.
    pub columns: Option<Vec<WrittenColumn>>,
    /// Whether failed points become rows.
    pub allow_failed: bool,
}

/// Whether the file of this name is a sheet with a header, rather than a list of lines.
pub fn is_sheet(file: &str) -> bool {
    file.ends_with(".tsv")
}

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

/// Returns the number that is written in the file `replicates`.
///
/// # Errors
///
/// Fails unless it is one, and positive.
pub fn read_replicates(line: &str) -> Result<NonZeroU32, SweepFault> {
    line.parse().map_err(|_| SweepFault::Replicates(line.to_owned()))
}

/// Returns the column that a line of the file `columns` says.
///
/// # Errors
///
/// Fails unless it is the number or the name of an output, a blank and a name. A number has two digits.
pub fn read_column(line: &str) -> Result<WrittenColumn, SweepFault> {
    let column = line.split_once(char::is_whitespace).and_then(|(output, shape)| {
        let is_number = output.bytes().all(|c| c.is_ascii_digit());
        let output = Some(output).filter(|output| !is_number || output.len() == 2)?;
        Some(WrittenColumn { output: output.into(), shape: ColumnShape::of(shape.trim()) })
    });
    column.ok_or_else(|| SweepFault::Column(line.to_owned()))
}

/// A problem of the rules of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleProblem {
    /// The file, relative to the directory of the node; empty for the node as a whole.
    pub file: String,
    /// The line, counted from one; zero for the whole file.
    pub line: usize,
    /// The fault.
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
        let replicates = self.product.replicates;
        let replicate = replicates.map(|_| (REPLICATE.to_owned(), REPLICATES.to_owned()));
        factors.chain(names).chain(replicate)
    }

    /// The problems of a node `points`.
    pub fn points_problems(&self) -> Vec<RuleProblem> {
        match self.product.factors.is_empty() {
            true => vec![RuleProblem::new(FACTORS, SweepFault::NoFactors)],
            false => self.product_problems(),
        }
    }

    /// The problems of rules that are to make points without computed ones.
    pub(super) fn product_problems(&self) -> Vec<RuleProblem> {
        let faults = points(&self.product).err().unwrap_or_default();
        let problem = |fault| {
            let (file, line) = place(&self.product, &fault);
            RuleProblem { file, line, fault: SweepFault::Product(fault) }
        };
        faults.into_iter().map(problem).collect()
    }
}

/// The file and line that a fault is in; line zero is the whole file.
fn place(product: &Product, fault: &ProductFault) -> (String, usize) {
    let factor = |number: usize| match product.factors.get(number) {
        Some(factor) => format!("{FACTORS}/{}", factor.file),
        None => REPLICATES.to_owned(),
    };
    match fault {
        ProductFault::Factor(
            FactorFault::NoLevels { factor: number } | FactorFault::SameName { factor: number, .. },
        ) => (factor(*number), 0),
        ProductFault::Factor(_) => (FACTORS.to_owned(), 0),
        ProductFault::Exclusion(ExclusionFault::NoColumn { .. }) => (EXCLUDE.to_owned(), 1),
        ProductFault::Exclusion(ExclusionFault::NoMatch { row, .. }) => {
            (EXCLUDE.to_owned(), row + 1)
        }
    }
}
