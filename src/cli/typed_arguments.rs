//! The arguments of a program as they were typed, for another process with the same arguments.

use std::ffi::OsString;
use std::io;
use std::path::{Path, absolute};

use clap::builder::ValueHint;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

/// The arguments of a program as they were typed.
///
/// As a field, it must be the first one: the others take their values out of the matches.
#[derive(Clone, Debug)]
pub(super) struct TypedArguments(ArgMatches);

impl FromArgMatches for TypedArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

impl Args for TypedArguments {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl TypedArguments {
    /// Returns the options that were typed, but for some, in the order of their declaration. Relative paths become absolute, for
    /// a process in another directory.
    ///
    /// # Errors
    ///
    /// Fails if there is no current directory.
    pub(super) fn options(&self, program: &Command, but: &[&str]) -> io::Result<Vec<OsString>> {
        let mut options = Vec::new();
        for argument in program.get_arguments() {
            let id = argument.get_id().as_str();
            let is_typed = self.0.value_source(id) == Some(ValueSource::CommandLine);
            let Some(long) = argument.get_long().filter(|_| is_typed && !but.contains(&id)) else {
                continue;
            };
            if !argument.get_action().takes_values() {
                options.push(format!("--{long}").into());
                continue;
            }
            for value in self.0.get_raw(id).into_iter().flatten() {
                let mut option = OsString::from(format!("--{long}="));
                if is_path(argument) {
                    option.push(absolute(Path::new(value))?);
                } else {
                    option.push(value);
                }
                options.push(option);
            }
        }
        Ok(options)
    }
}

/// Whether the values of an option are paths.
fn is_path(option: &Arg) -> bool {
    matches!(
        option.get_value_hint(),
        ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath | ValueHint::ExecutablePath
    )
}
