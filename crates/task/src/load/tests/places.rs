//! The numbers of inputs in the names of their directories.

use super::TestTask;

fn task() -> TestTask {
    let task = TestTask::empty().file("inputs", "x\n").computation("take1", "a", "one two");
    task.computation("take3", "a b c", "one").computation("take7", "a b c d e f g", "one")
}

#[test]
fn each_directory_says_which_inputs_it_fills() {
    task()
        .call("", "take7", &["x", "x"])
        .link("workflow/inputs/00_1-short", "00-x")
        .link("workflow/inputs/none", "00-x")
        .link("workflow/inputs/01-again", "00-x")
        .link("workflow/inputs/04_03-backwards", "00-x")
        .link("workflow/inputs/06-after-a-gap", "00-x")
        .tells(
            "workflow/inputs: take7 takes 7 inputs, not 4\n\
             try: its inputs are a, b, c, d, e, f, g\n\
             workflow/inputs/00_1-short: the name does not say which inputs it fills\n\
             try: call it nn-text or nn_mm-text, as in 00-left or 01_02-both\n\
             workflow/inputs/01-x: input 01 is filled already\n\
             try: number the inputs from 00, without gap\n\
             workflow/inputs/04_03-backwards: the range ends before it begins\n\
             try: write the smaller number first, as in 01_02-both\n\
             workflow/inputs/04_03-backwards: passes up 1 file for 0 inputs\n\
             try: change the range in the name, or the file outputs of the sub-workflow\n\
             workflow/inputs/06-after-a-gap: nothing fills inputs 02 to 05\n\
             try: number the inputs from 00, without gap\n\
             workflow/inputs/none: the name does not say which inputs it fills\n\
             try: call it nn-text or nn_mm-text, as in 00-left or 01_02-both",
        );
}

#[test]
fn a_range_is_as_wide_as_the_outputs_that_fill_it() {
    task()
        .node("", "computation", "take3")
        .call("inputs/00_02-take1/", "take1", &["x"])
        .file("workflow/inputs/00_02-take1/outputs", "0\n1\n")
        .tells(
            "workflow/inputs/00_02-take1: passes up 2 files for 3 inputs\n\
             try: change the range in the name, or the file outputs of the sub-workflow",
        );
}

#[test]
fn a_label_has_any_characters() {
    task()
        .node("", "computation", "add")
        .node("inputs/00-it's a \"label\" - with $HOME, ü and 数/", "input", "x")
        .node("inputs/01-/", "input", "x")
        .tells("");
}
