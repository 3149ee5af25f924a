//! `ce-sym`: prints the workflow of the current task as LISP.

fn main() -> std::process::ExitCode {
    compeval::cli::main::<compeval::cli::Sym>()
}
