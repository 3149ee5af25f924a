//! `ce-sym`: prints the workflow of the current task as LISP. It is `ce sym` under a name of its own.

mod start_ce;

fn main() -> std::process::ExitCode {
    start_ce::start_ce_as("ce-sym")
}
