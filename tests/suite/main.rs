//! The test suite: tasks as users write them, through the programs that users run.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

mod arith;
mod bisect;
mod budget;
mod collect;
mod compat;
mod deep;
mod diff;
mod doctor;
mod documents;
mod examples;
mod executors;
mod explain;
mod faults;
mod fifo;
mod generator;
mod git_log;
mod git_oracle;
mod golden;
mod hostile;
mod inside;
mod isolation;
mod lab;
mod lisp;
mod load;
mod log;
mod manifest;
mod mistyped;
mod mount;
mod mutations;
mod program;
mod programs;
mod properties;
mod protocol;
mod records;
mod repositories;
mod repository;
mod run;
mod settings;
mod show;
mod storages;
mod task_cache;
mod text;
mod verify;
mod verify_on;
