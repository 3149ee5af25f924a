//! The test suite: tasks as users write them, through the programs that users run.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

// Its attribute `test` takes the place of the compiler's.
#[macro_use]
extern crate compeval_test_attribute;

mod arith;
mod audit;
mod benchmarks;
mod benmet;
mod beside;
mod bisect;
mod budget;
mod choices;
mod cite;
mod clones;
mod collect;
mod commits;
mod compare_command;
mod compat;
mod completions;
mod deep;
mod diff;
mod directories;
mod doctor;
mod documents;
mod each;
mod editors;
mod environments;
mod examples;
mod executors;
mod explain;
mod export;
mod faults;
mod fifo;
mod figures;
mod follow;
mod gate;
#[cfg(debug_assertions)]
mod gate_operations;
mod generator;
mod git_log;
mod git_oracle;
mod given_files;
mod golden;
mod harness;
#[cfg(debug_assertions)]
mod host_use;
mod hostile;
mod images;
mod inside;
mod isolation;
mod json;
mod known_storages;
mod lab;
mod levels;
mod lisp;
mod load;
mod log;
mod manifest;
mod misleading;
mod mistakes;
mod mistyped;
mod mount;
mod mutations;
mod needs;
mod network;
mod one_file;
mod only;
mod options;
mod out;
mod page;
mod program;
mod programs;
mod properties;
mod protocol;
mod records;
mod repositories;
mod repository;
mod resources;
mod retention;
mod run;
mod run_crate;
mod scheduler;
mod selection;
mod settings;
mod shared;
mod sheets_of_files;
mod shell;
mod show;
mod slurm;
mod special_numbers;
mod storages;
mod studies;
mod suffixes;
mod suspension;
mod sweep_telling;
mod sweeps;
mod table_command;
mod table_summary;
mod table_sweeps;
mod tables;
mod task_cache;
mod terminal;
mod text;
mod verify;
mod verify_on;
mod viz;
mod workers;

fn main() -> std::process::ExitCode {
    harness::main()
}
