//! `ce-run`: evaluates the current task. It is `ce run` under a name of its own.

mod start_ce;

fn main() -> std::process::ExitCode {
    start_ce::start_ce_as("ce-run")
}
