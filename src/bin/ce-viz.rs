//! `ce-viz`: draws the workflow of the current task.

fn main() {}
