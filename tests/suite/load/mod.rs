//! Tasks as they are read: errors, warnings, and accepted forms.

mod accepted;
mod broken;
mod faults;
mod git;
mod given;
mod links;
mod literals;
