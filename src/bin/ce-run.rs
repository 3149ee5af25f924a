//! `ce-run`: evaluates the current task.

fn main() -> std::process::ExitCode {
    compeval::cli::main::<compeval::cli::Run>()
}
