//! The outputs of the task and nothing else: one path a line, for scripts.

use std::io::{self, Write};
use std::path::Path;

use super::{Reporter, ShownOutput, shown_outputs, without_controls};
use ce_evaluate::{Evaluation, Event};
use ce_model::exit::Exit;
use ce_model::sweep::{SweepPoint, point_title};
use ce_storage::ResultName;

/// Prints a line for each output of a point that is a job: the point and the path, with a tab between.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn paths_of_point(
    point: SweepPoint<'_>,
    outputs: &[String],
    storage: &Path,
    out: &mut dyn Write,
) -> io::Result<()> {
    let title = point_title(point.values());
    for name in outputs {
        writeln!(out, "{}\t{}", without_controls(&title), storage.join(name).display())?;
    }
    Ok(())
}

/// Says which literals are not in the storage, which the tree would show.
pub fn missing_literals(evaluation: &Evaluation) -> impl Iterator<Item = String> {
    let found = evaluation.plan.literals().iter().zip(&evaluation.files.literals);
    found.filter(|(_, file)| file.is_none()).map(|(name, _)| {
        let path = evaluation.shown(name.as_ref());
        format!("the literal {name} is not in the storage; put it at {path}")
    })
}

/// Prints the paths of the outputs at the end.
pub struct Quiet<'a>(pub &'a Evaluation);

impl Reporter for Quiet<'_> {
    fn event(&mut self, _: &Event, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &[Option<ResultName>], _: Exit, out: &mut dyn Write) -> io::Result<()> {
        for ShownOutput { point, path, is_there, .. } in shown_outputs(self.0) {
            match point {
                _ if !is_there => {}
                Some(point) => writeln!(out, "{point}\t{path}")?,
                None => writeln!(out, "{path}")?,
            }
        }
        Ok(())
    }
}

/// Prints nothing.
pub struct Silent;

impl Reporter for Silent {
    fn event(&mut self, _: &Event, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &[Option<ResultName>], _: Exit, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
