//! `ce-viz`: draws the workflow of the current task.

fn main() -> std::process::ExitCode {
    compeval::cli::main::<compeval::cli::Viz>()
}
