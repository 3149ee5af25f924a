//! The outputs of the task and nothing else: one path a line, for scripts.

use std::io::{self, Write};

use super::Reporter;
use crate::evaluate::{Evaluation, Event};
use crate::exit::Exit;
use crate::storage::ResultName;

/// Prints the paths of the outputs at the end.
pub struct Quiet<'a>(pub &'a Evaluation);

impl Reporter for Quiet<'_> {
    fn event(&mut self, _: &Event, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: Option<&ResultName>, _: Exit, out: &mut dyn Write) -> io::Result<()> {
        for (path, there) in self.0.shown_outputs() {
            if there {
                writeln!(out, "{path}")?;
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

    fn end(&mut self, _: Option<&ResultName>, _: Exit, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
