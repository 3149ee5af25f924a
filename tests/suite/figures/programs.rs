//! A C program that is compiled, run and timed.

use std::fs;

use super::{given, library, one_call, refuses, with_library};
use crate::lab::Lab;

const MEASURE: &str = "Inputs: 'threads', 'size', 'passes', 'replicate', 'machine'\n\
                       (measure-run (compile-c OWN('program.c')) INPUT('threads') INPUT('size') \
                       INPUT('passes') INPUT('replicate') INPUT('machine'))";

/// A task that measures a program.
fn measurement(source: &str) -> Lab {
    let lab = Lab::task(MEASURE).file("program.c", source);
    with_library(lab, &["compile-c", "measure-run"]).commit()
}

fn bandwidth() -> String {
    fs::read_to_string(library().join("../tasks-example/scaling/measure-bandwidth.c")).unwrap()
}

#[test]
fn a_program_is_compiled_once_and_measured_for_each_replicate() {
    let mut lab = measurement(&bandwidth()).isolated();
    for (replicate, calls) in
        [("1", "2 calls: 2 computed\n"), ("2", "2 calls: 1 reused, 1 computed\n")]
    {
        lab = given(lab, &["2", "1000", "10", replicate, "ada"]);
        lab.ce_run(&[]).exit(0).says(calls);
        let seconds: f64 = lab.output().trim_end().parse().unwrap();
        assert!(seconds > 0.0 && seconds < 1.0, "{seconds}");
    }
}

#[test]
fn a_compiled_program_has_no_path_in_it() {
    let programs = ["a", "b"].map(|_| {
        let lab =
            Lab::task("Inputs: \n(compile-c OWN('program.c'))").file("program.c", bandwidth());
        let lab = with_library(lab, &["compile-c"]).commit();
        let path = lab.ce_run(&["-q"]).exit(0).stdout;
        fs::read(lab.path("task").join(path.trim_end())).unwrap()
    });
    assert!(programs[0] == programs[1]);
}

#[test]
fn wrong_arguments_and_programs_are_refused() {
    let name = "measure-run";
    let mut lab = measurement(&bandwidth());
    for (texts, line) in [
        (["two", "10", "1", "1", "ada"], "threads is not a whole number: two"),
        (["2", "-1", "1", "1", "ada"], "size is not a whole number: -1"),
        (["2", "10", "1.5", "1", "ada"], "passes is not a whole number: 1.5"),
        (["2", "10", "1", "", "ada"], "replicate is empty, and no whole number"),
        (["2", "10", "1", "1", ""], "machine is empty"),
        (["0", "10", "1", "1", "ada"], "the program ended with status 1"),
    ] {
        lab = refuses(lab, name, &texts, line);
    }
    let source = "#include <stdio.h>\nint main(void) { puts(\"NaN\"); return 0; }\n";
    let line = "the program did not print the seconds as one number: NaN";
    refuses(measurement(source), name, &["1", "1", "1", "1", "ada"], line);
    let lab = given(measurement("int main(void) { return x; }\n"), &["1", "1", "1", "1", "ada"]);
    lab.ce_run(&[]).exit(1).says("compile-c: the source cannot be compiled\n").says("program.c:1:");
    let lab = given(one_call("compile-c"), &["#include <nothing-of-this-name.h>\n"]);
    lab.ce_run(&[]).exit(1).says("nothing-of-this-name.h");
}

const TIME: &str = "Inputs: 'dir', 'arguments', 'replicate', 'machine'\n\
                    (time-program (build-c INPUT('dir') TEXT('-O1 -DTIMED=1')) INPUT('arguments') INPUT('replicate') INPUT('machine'))";

/// A task that builds a program of several files and measures its time.
fn timed(files: &[(&str, &str)]) -> Lab {
    let lab = with_library(Lab::task(TIME), &["build-c", "time-program"]).commit();
    fs::remove_file(lab.path("data/dir")).unwrap();
    files.iter().fold(lab, |lab, (name, text)| lab.data(&format!("dir/{name}"), text))
}

/// Gives the inputs but the directory.
fn called(lab: Lab, texts: [&str; 3]) -> Lab {
    let names = ["arguments", "replicate", "machine"];
    names.iter().zip(texts).fold(lab, |lab, (name, text)| lab.data(name, text))
}

const MAIN: &str = "#if TIMED != 1\n#error no flags\n#endif\n#include \"more.h\"\n#include <stdlib.h>\n\
                    int main(int n, char **a) { return n == 3 ? more(atoi(a[2])) : 9; }\n";

#[test]
fn a_program_of_several_files_is_built_and_timed() {
    let files = [
        ("main.c", MAIN),
        ("more.h", "int more(int);\n"),
        ("more.c", "int more(int x) { return x; }\n"),
    ];
    let lab = called(timed(&files).isolated(), ["a 0\n", "1", "ada"]);
    lab.ce_run(&[]).exit(0).says("2 calls: 2 computed");
    let seconds: f64 = lab.output().trim_end().parse().unwrap();
    assert!((0.0..1.0).contains(&seconds), "{seconds}");
    let mut lab = lab;
    for (texts, line) in [
        (["a 7", "1", "ada"], "the program ended with status 7"),
        (["a\n0", "1", "ada"], "arguments is not one line"),
        (["a 0", "", "ada"], "replicate is empty"),
        (["a 0", "1", "\n"], "machine is empty"),
    ] {
        lab = called(lab, texts);
        lab.ce_run(&[]).exit(1).says(&format!("time-program: {line}\n"));
    }
}

#[test]
fn an_invalid_source_is_not_built() {
    let lab = called(timed(&[("main.cc", "")]), ["", "1", "ada"]);
    lab.ce_run(&[]).exit(1).says("build-c: the source has no file *.c\n");
    let lab = called(timed(&[("main.c", MAIN)]), ["", "1", "ada"]);
    lab.ce_run(&[]).exit(1).says("main.c:4:").says("build-c: the source cannot be built\n");
}
