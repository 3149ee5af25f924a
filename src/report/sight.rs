//! What there is in the sandbox of a call, for a user who looks into it.

use std::fmt;

use super::harmless;
use ce_evaluate::InspectedCall;
use ce_executor::{COMPUTATION, INPUTS, OUTPUTS};

/// What there is in the sandbox of a call.
pub struct Sight<'a>(pub &'a InspectedCall);

impl fmt::Display for Sight<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InspectedCall { name, computation, sources, .. } = self.0;
        writeln!(f, "in the sandbox of {}; nothing is published", name.short())?;
        let mut words = vec![format!("{COMPUTATION}/exec")];
        for (number, source) in sources.iter().enumerate() {
            let label = computation.inputs.get(number).map_or("", String::as_str);
            writeln!(f, "  {INPUTS}/{number:02}: {}, {}", harmless(label), source.name)?;
            words.push(format!("{INPUTS}/{number:02}"));
        }
        for (number, label) in computation.outputs.iter().enumerate() {
            writeln!(f, "  {OUTPUTS}/{number:02}: {}, to be made", harmless(label))?;
            words.push(format!("{OUTPUTS}/{number:02}"));
        }
        write!(f, "  to execute it: {}", words.join(" "))
    }
}
