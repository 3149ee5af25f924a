//! `ce`: all programs in one.

fn main() -> std::process::ExitCode {
    compeval::cli::main::<compeval::cli::Ce>()
}
