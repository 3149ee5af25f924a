//! Options that name points over a task's own inputs.

use std::path::PathBuf;

use clap::Args;

use super::given::PathArgs;
use super::say;
use ce_evaluate::session::{Error, for_each, read_points};
use ce_model::sweep::{self, Factor, Likeness, Lookalike};
use ce_model::task::{RangedInputs, Task};
use ce_model::template;

/// The points for which a task is evaluated.
#[derive(Clone, Debug, Args)]
pub(super) struct PointArgs {
    /// Evaluate the task for each of these texts of an input, as -p would give them; with several of
    /// these, for all combinations: the last one varies fastest
    ///
    /// White space around a text does not count. Texts with commas need --points.
    #[arg(long, value_name = "NAME=TEXT,...", value_parser = levels)]
    each: Vec<Factor>,

    /// Evaluate the task for each row of a sheet, NDJSON or TSV or CSV with a header, whose columns
    /// are inputs; - is the standard input
    ///
    /// With --each, each row is combined with all of its texts.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    points: Option<PathBuf>,
}

/// Reads the texts of an input: `n=8,16,32`.
pub(super) fn levels(text: &str) -> Result<Factor, String> {
    let wrong = || "write NAME=TEXT,TEXT,...".to_owned();
    let (name, texts) =
        text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
    let texts: Vec<&str> = texts.split(',').map(str::trim).collect();
    for (at, text) in texts.iter().enumerate() {
        let number = at + 1;
        if text.is_empty() {
            return Err(format!(
                "text {number} is empty; write one, or give empty texts in a sheet by --points"
            ));
        }
        if let Err(fault) = template::text(text.as_bytes()) {
            return Err(format!(
                "text {number} cannot be used: {fault}; write one line of at most {} bytes",
                template::MAX_TEXT
            ));
        }
        if texts[..at].contains(text) {
            return Err(format!("{text:?} is there twice; write it once"));
        }
    }
    let points = sweep::read_levels(name, texts.join("\n").as_bytes());
    let points = points.map_err(|problems| {
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    })?;
    Ok(Factor { file: name.into(), points })
}

/// Writes a factor as [`levels`] reads it.
pub(super) fn typed(factor: &Factor) -> String {
    format!("{}={}", factor.points.names()[0], factor.points.levels(0).join(","))
}

impl PointArgs {
    /// Whether a sheet is read.
    pub(super) const fn has_sheet(&self) -> bool {
        self.points.is_some()
    }

    /// The arguments that name the same points, beside those of a sheet.
    pub(super) fn frozen(&self) -> Vec<String> {
        self.each.iter().map(|factor| format!("--each={}", typed(factor))).collect()
    }

    /// Whether there are no points: the task is evaluated once.
    pub(super) const fn is_nothing(&self) -> bool {
        self.each.is_empty() && self.points.is_none()
    }

    /// Reads the factors of the points; there are none without these options. Warns of texts that are probably meant to be one.
    pub(super) fn factors(&self, program: &str) -> Result<Vec<Factor>, Error> {
        let sheet = self.points.as_deref().map(read_points).transpose()?;
        let factors: Vec<Factor> = sheet.into_iter().chain(self.each.iter().cloned()).collect();
        for like in factors.iter().flat_map(|factor| factor.points.lookalikes()) {
            let Lookalike { column, first, second, likeness } = like;
            match likeness {
                Likeness::Number => say(
                    program,
                    &format_args!(
                        "warning: {column}: {first} and {second} are one number, and two points\n  try: spell them alike if one point is meant"
                    ),
                ),
                Likeness::Words => say(
                    program,
                    &format_args!(
                        "warning: {column}: {first} and {second} differ in white space only, and are two points\n  try: spell them alike if one point is meant"
                    ),
                ),
            }
        }
        Ok(factors)
    }
}

/// Returns the task that is evaluated for each point of these factors, and the inputs of its jobs; without factors, the
/// task itself. None of these inputs may be given in another way.
pub(super) fn ranged(
    task: Task,
    factors: Vec<Factor>,
    typed: &PathArgs,
) -> Result<(Task, Option<RangedInputs>), Error> {
    if factors.is_empty() {
        return Ok((task, None));
    }
    let (task, inputs) = for_each(task, factors)?;
    typed.check_unranged(&inputs)?;
    Ok((task, Some(inputs)))
}
