//! `ce`: all programs in one. Started as `ce-run`, `ce-sym` or `ce-viz`, it is that program.

fn main() -> std::process::ExitCode {
    compeval::cli::main()
}
