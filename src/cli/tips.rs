//! Errors in arguments, and their tips.

use std::io::{self, Write};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::report::coloured;

/// Leaves out the tip to pass an option as a value: that is hardly ever meant. Tells where the command of `ce shell` begins
/// if an option stands behind a word there. `words` are all arguments of the program.
pub(super) fn put_right(error: &mut clap::Error, program: &str, words: &[String]) {
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let mut tips = match error.remove(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips,
        _ => Vec::new(),
    };
    tips.retain(|tip| !tip.to_string().starts_with("to pass "));
    if is_in_command(error, program, words) {
        tips.push(StyledStr::from("write -- before the command"));
    }
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
}

/// Whether what is wrong is in a command of `ce shell`: it is behind a word, and like no option of `ce shell`.
fn is_in_command(error: &clap::Error, program: &str, words: &[String]) -> bool {
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else {
        return false;
    };
    let ("ce", [command, words @ ..]) = (program, words) else { return false };
    let before = words.iter().take_while(|word| !word.starts_with(wrong.as_str()));
    command == "shell"
        && error.get(ContextKind::SuggestedArg).is_none()
        && before.into_iter().any(|word| !word.starts_with('-'))
}

/// Prints help, or what is wrong with the arguments. What these name commands no terminal.
pub(super) fn print(error: &clap::Error) -> io::Result<()> {
    let text = coloured(&error.render().ansi().to_string());
    match error.use_stderr() {
        true => anstream::stderr().write_all(text.as_bytes()),
        false => anstream::stdout().write_all(text.as_bytes()),
    }
}
