//! What went wrong with a call, for the user to read: on standard error.

use std::error::Error;
use std::fmt::Write;

use super::View;
use crate::evaluate::{Event, Outcome};

/// How many lines of a log are shown.
const LINES: usize = 12;

/// Says in words which call failed and why, and what it printed last; `None` if it did not fail.
pub fn trouble(view: View<'_>, event: &Event) -> Option<String> {
    let Event::Ended(call) = event else {
        return None;
    };
    let Outcome::Failed { name, error, log } = view.evaluation.outcome(*call)? else {
        return None;
    };
    let mut text = format!("{} failed: {error}\n", view.title(*call));
    let mut cause = error.source();
    while let Some(error) = cause {
        line(&mut text, "because", &error.to_string());
        cause = error.source();
    }
    line(&mut text, "call", &name.short());
    if let Some(log) = log {
        line(&mut text, "log", &view.shown(&log.name));
        let lines: Vec<&str> = log.tail.lines().collect();
        for printed in &lines[lines.len().saturating_sub(LINES)..] {
            line(&mut text, "   |", &harmless(printed));
        }
    }
    if let Some(hint) = error.hint() {
        line(&mut text, "try", hint);
    }
    Some(text)
}

fn line(text: &mut String, word: &str, rest: &str) {
    let colon = if word.ends_with('|') { "" } else { ":" };
    // Writing to a string cannot fail.
    let _written = writeln!(text, "  {word}{colon} {rest}");
}

/// Takes the control characters out of a text, which could else command the terminal.
fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\t' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}
