//! The computed points of a sweep: reading their sheet, and what is wrong with it.

use super::step::CallStep;
use super::{Absence, CallError, Evaluation, Evaluator, Outcome};
use ce_model::exit::Explain;
use ce_model::plan::{CallId, Derivation, PointsFault, Source};
use ce_model::sweep::{self, SheetFormat, SheetProblem};
use ce_storage::ResultName;

/// Why the computed points of a sweep cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PointsError {
    /// The sheet is wrong.
    #[error("{sheet}: the points cannot be used: {}", in_words(problems))]
    Sheet {
        /// Where it is from, in words: a path in the task, an input of it, or a call.
        sheet: String,
        /// Its problems.
        problems: Vec<SheetProblem>,
    },
    /// The points do not fit the sweep.
    #[error(transparent)]
    Fault(#[from] PointsFault),
    /// They are a directory.
    #[error("the points cannot be used: they are a directory")]
    Directory,
}

impl Explain for PointsError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Sheet { problems, .. } => problems.first()?.fault.hint(),
            Self::Fault(PointsFault::NoColumn { nearest, known, .. }) => {
                Some(sweep::column_hint(nearest.as_deref(), known))
            }
            Self::Fault(PointsFault::SameColumn(_)) => Some(
                "rename it in the sheet, or the output in the file columns of the sweep".to_owned(),
            ),
            Self::Fault(PointsFault::InputColumn(_)) => Some(
                "give the column another name: the table would show its texts, and calls would read others".to_owned(),
            ),
            Self::Fault(PointsFault::Product(faults)) => faults.first()?.hint(),
            Self::Directory => {
                Some("give it one file of it, with a node of kind member".to_owned())
            }
        }
    }
}

fn in_words(problems: &[SheetProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl<'a> Evaluator<'a> {
    /// Reads the computed points of a sweep.
    pub(super) fn points(&self, id: CallId) -> CallStep<'a> {
        let Evaluation { plan, .. } = self.evaluation;
        let sources = plan.inputs(id);
        if let Some(step) = self.demand(sources, &ResultName::unknown_table()) {
            return step;
        }
        let inputs = self.inputs(sources, ResultName::unknown_table);
        let source = match (inputs, sources) {
            (Err(outcome), _) => return CallStep::Ended(outcome),
            (Ok(_), [source]) => *source,
            (Ok(_), _) => {
                return CallStep::Ended(Outcome::Absent(
                    ResultName::unknown_table(),
                    Absence::Blocked,
                ));
            }
        };
        let failed =
            |error: CallError| CallStep::Ended(Outcome::failed(ResultName::unknown_table(), error));
        if self.evaluation.digest(source).is_some_and(|digest| digest.is_directory()) {
            return failed(PointsError::Directory.into());
        }
        let contents = match self.evaluation.contents(source) {
            Ok(Some(contents)) => contents,
            Ok(None) => {
                return CallStep::Ended(Outcome::Absent(
                    ResultName::unknown_table(),
                    Absence::Missing(None),
                ));
            }
            Err(error) => return failed(error),
        };
        match sweep::read(SheetFormat::of(&contents), &contents) {
            Ok(points) => CallStep::Expand(points),
            Err(problems) => {
                let sheet = self.evaluation.sheet_words(source);
                failed(PointsError::Sheet { sheet, problems }.into())
            }
        }
    }

    /// The outcome of a sweep whose points do not fit it.
    pub(super) fn no_points(&self, fault: PointsFault) -> Outcome {
        Outcome::failed(ResultName::unknown_table(), PointsError::from(fault))
    }
}

impl Evaluation {
    /// Says in words where computed points are from.
    fn sheet_words(&self, source: Source) -> String {
        let (whole, member) = self.plan.whole(source);
        let words = match whole {
            Source::Input(input) => format!("the input {}", self.task.inputs[input.index()]),
            Source::File(file) => self.task.files[file.index()].path.to_string(),
            Source::Literal(literal) => self.plan.literals()[literal.index()].to_string(),
            Source::Derived { value, .. } => match &self.plan.value(value).how {
                Derivation::File(path) => path.to_string(),
                Derivation::Literal(name) => name.to_string(),
                _ => "the sheet".to_owned(),
            },
            Source::Output { call, .. } => match self.computation(call) {
                Some(computation) => format!("the output of {}", computation.name),
                None => "the table of another sweep".to_owned(),
            },
        };
        member.map_or(words.clone(), |path| format!("{path} in {words}"))
    }
}
