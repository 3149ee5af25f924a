//! The examples: what their READMEs say is what happens.
//!
//! They run in a copy, so that the state of the work tree does not matter and nothing is written
//! to it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::golden;
use crate::lab::{Lab, files};
use crate::needs::{self, needs};
use crate::program::Ran;
use crate::repository::{self, LAB};

/// Copies a directory with its links and modes.
pub(crate) fn copy(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.unwrap();
        let place = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.path_is_symlink() {
            symlink(fs::read_link(entry.path()).unwrap(), place).unwrap();
        } else if entry.file_type().is_dir() {
            fs::create_dir_all(place).unwrap();
        } else {
            fs::copy(entry.path(), place).unwrap();
        }
    }
}

/// The project's repository, as far as the examples go, at `task/`.
pub(crate) fn project() -> Lab {
    let (lab, project) = (Lab::empty(), Path::new(env!("CARGO_MANIFEST_DIR")));
    for name in ["tasks-example", "computations-example"] {
        copy(&project.join(name), &lab.path("task").join(name));
    }
    lab.commit()
}

/// The arguments of `ce-run` that the README of an example says.
pub(crate) fn command(example: &Path) -> String {
    let readme = fs::read_to_string(example.join("README.md")).unwrap();
    let command = readme.lines().find_map(|line| line.strip_prefix("ce-run "));
    command.unwrap().replace("STORAGE", "../storage")
}

/// The programs that a text needs: the ones that it names, and the needs of the examples and the computations that it names.
pub(crate) fn programs_of(text: &str) -> Vec<&'static str> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = text.to_owned();
    for example in names(&project.join("tasks-example")) {
        let dir = project.join("tasks-example").join(&example);
        if has_word(&text, &format!("tasks-example/{example}")) {
            for workflow in ["workflow", "workflow.ce"] {
                text += &code_in(&dir.join(workflow));
            }
            if !dir.join("computations").is_symlink() {
                text += &code_in(&dir.join("computations"));
            }
        }
    }
    let library = project.join("computations-example");
    let mut called = names(&library);
    called.retain(|name| has_word(&text, name));
    text.extend(called.iter().map(|name| code_in(&library.join(name))));
    let programs: BTreeSet<&str> = needs::named_in(&text).collect();
    programs.into_iter().collect()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap()).collect()
}

/// Whether a text has this between characters that names of computations do not have.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "-_".contains(c);
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    })
}

/// The contents of all files below a directory, without lines that are comments of scripts.
fn code_in(dir: &Path) -> String {
    let files = files(dir).into_values();
    let texts: String = files.filter_map(|bytes| String::from_utf8(bytes).ok()).collect();
    let lines = texts.lines().filter(|line| !line.trim_start().starts_with("# "));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Runs the command of an example's README, with something in place of a part of it.
fn as_the_readme_says<'a>(lab: &'a Lab, name: &str, from: &str, to: &str) -> Ran<'a> {
    needs(&programs_of(&format!("tasks-example/{name}")));
    let command = command(&example(lab, name));
    assert!(command.contains(from), "{command}");
    let command = command.replace(from, to);
    lab.run("ce-run", &command.split(' ').collect::<Vec<_>>()).exit(0)
}

pub(crate) fn example(lab: &Lab, name: &str) -> PathBuf {
    lab.path("task/tasks-example").join(name)
}

/// The paths that are named at the end.
pub(crate) fn outputs<'a>(ran: &'a Ran<'_>) -> Vec<&'a str> {
    let (_, outputs) = ran.stdout.split_once("Task outputs are:\n").unwrap();
    outputs.lines().map(str::trim).collect()
}

/// The files named at the end hold the expected outputs.
#[track_caller]
pub(crate) fn gives_what_is_expected(lab: &Lab, example: &Path, ran: &Ran<'_>) {
    let (expected, outputs) = (example.join("expected"), outputs(ran));
    assert_eq!(outputs.len(), fs::read_dir(&expected).unwrap().count());
    for (number, path) in outputs.iter().enumerate() {
        let expected = fs::read_to_string(expected.join(format!("{number:02}"))).unwrap();
        golden::same(&format!("output {number:02}"), &expected, &lab.stored(path));
    }
}

#[test]
fn the_programs_that_examples_call_are_known() {
    for (text, programs) in [
        ("ce run --task tasks-example/genomics ../results", &["bcftools", "bwa", "samtools"][..]),
        ("(plot (summarise-table SWEEP))", &["gnuplot", "python3"]),
        ("cd tasks-example/scaling\nce run", &["cc", "gnuplot", "python3"]),
        ("Rscript -e 1", &["Rscript"]),
        ("tasks-example/arith tasks-example/nile (replot my-gnuplot)", &[]),
    ] {
        assert_eq!(programs_of(text), programs, "{text}");
    }
}

#[test]
fn arith_gives_the_expected_outputs_with_four_calls() {
    let lab = project();
    let ran = as_the_readme_says(&lab, "arith", "", "");
    gives_what_is_expected(&lab, &example(&lab, "arith"), &ran.says("4 calls: 4 computed\n"));
    as_the_readme_says(&lab, "arith", "", "").says("4 calls: 4 reused\n");
    fs::write(lab.path("data/eighteen"), "18\n").unwrap();
    let x = "tasks-example/arith/data/x";
    as_the_readme_says(&lab, "arith", x, "../data/eighteen").says("4 calls: 4 computed\n");
}

#[test]
fn the_picture_in_the_readme_is_up_to_date() {
    let lab = project();
    let drawn = "../arith.svg";
    lab.run("ce-viz", &["--task", "tasks-example/arith", "-o", drawn]).exit(0);
    let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join("doc/pictures/arith.svg");
    let is_same = fs::read(lab.path("arith.svg")).unwrap() == fs::read(picture).unwrap();
    assert!(is_same, "ce viz --task tasks-example/arith -o doc/pictures/arith.svg makes it anew");
}

#[test]
fn nile_gives_the_expected_outputs_with_ten_calls() {
    let lab = project();
    let ran = as_the_readme_says(&lab, "nile", "", "");
    gives_what_is_expected(&lab, &example(&lab, "nile"), &ran.says("10 calls: 10 computed\n"));
    let data = |name: &str| {
        fs::read_to_string(lab.path("task/tasks-example/nile/data").join(name)).unwrap()
    };
    for (name, changed, calls) in [
        (
            "labels",
            data("labels").replacen("title: ", "title: Another ", 1),
            "8 reused, 2 computed",
        ),
        ("year", "1920\n".to_owned(), "2 reused, 8 computed"),
        ("flow.csv", data("flow.csv") + "# the end\n", "9 reused, 1 computed"),
    ] {
        assert_ne!(changed, data(name));
        fs::write(lab.path("data/changed"), changed).unwrap();
        let file = format!("tasks-example/nile/data/{name}");
        as_the_readme_says(&lab, "nile", &file, "../data/changed")
            .says(&format!("10 calls: {calls}\n"));
    }
}

/// The names of all outputs and records in a storage. They have the hashes of all that is read.
fn results(storage: &Path) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(storage).min_depth(4).max_depth(4).sort_by_file_name();
    let paths = entries.into_iter().map(|entry| entry.unwrap().into_path());
    let names = paths.map(|path| path.strip_prefix(storage).unwrap().to_owned());
    names.filter(|name| name.to_string_lossy().starts_with("c_")).collect()
}

#[test]
fn genomics_gives_the_expected_report() {
    let lab = project();
    let ran = as_the_readme_says(&lab, "genomics", "", "").says("12 calls: 12 computed");
    let (expected, outputs) = (example(&lab, "genomics").join("expected/00"), outputs(&ran));
    let expected = fs::read_to_string(expected).unwrap();
    golden::same("the report", &expected, &lab.stored(outputs[0]));
    assert!(lab.stored(outputs[1]).starts_with("<svg "));

    let samples = "tasks-example/genomics/data/samples.tsv";
    as_the_readme_says(&lab, "genomics", samples, &format!("-p quality=25 {samples}"))
        .says("12 calls: 11 reused, 1 computed");
    let text = fs::read_to_string(lab.path("task").join(samples)).unwrap();
    for (changed, calls) in [
        (text.replacen("cedar\t103", "cedar\t203", 1), "12 calls: 6 reused, 6 computed"),
        (format!("{text}dogwood\t104\t12\t30\n"), "14 calls: 8 reused, 6 computed"),
        (text.replacen("birch\t102\t15\t30\n", "", 1), "10 calls: 6 reused, 4 computed"),
    ] {
        assert_ne!(changed, text);
        fs::write(lab.path("data/changed"), changed).unwrap();
        let ran = as_the_readme_says(&lab, "genomics", samples, "../data/changed").says(calls);
        let report = lab.stored(self::outputs(&ran)[0]);
        assert!(report.contains("## Missed\n\nNone.\n\n## Wrong\n\nNone.\n"), "{report}");
    }
}

#[test]
fn genomics_refuses_an_invalid_row_and_computes_the_others() {
    needs(&programs_of("tasks-example/genomics"));
    let lab = project();
    let path = example(&lab, "genomics").join("data/samples.tsv");
    let text = fs::read_to_string(path).unwrap();
    for (from, to, line) in [
        (
            "cedar\t103",
            "ce/dar\t103",
            "the name of the sample is not made of letters, digits, _ and -: ce/dar",
        ),
        ("cedar\t103", "cedar\tx", "the seed is not a whole number from 1 to 9999999: x"),
        (
            "cedar\t103\t15",
            "cedar\t103\t0",
            "the number of variants is not a whole number from 1 to 9999999: 0",
        ),
        (
            "cedar\t103\t15",
            "cedar\t103\t100",
            "a genome of 20000 bases has no room for 100 variants",
        ),
    ] {
        fs::write(lab.path("data/changed"), text.replacen(from, to, 1)).unwrap();
        let arguments = ["--task", "tasks-example/genomics", "../storage", "../data/changed"];
        let ran = lab.run("ce-run", &arguments).exit(1).says(&format!("make-reads: {line}\n"));
        // The reads of the others are aligned.
        ran.says("1 failed, 5 blocked");
    }
}

#[test]
fn genomics_has_no_paths_in_its_results() {
    let [isolated, plain] = [project().isolated(), project()].map(|lab| {
        as_the_readme_says(&lab, "genomics", "", "").says("12 calls: 12 computed");
        results(&lab.path("storage"))
    });
    assert_eq!(isolated, plain);
}

/// Counts the primes of a range; the README's own takes a while.
fn primes(range: &str) -> String {
    let lab = project();
    fs::write(lab.path("data/range"), range).unwrap();
    let ran =
        as_the_readme_says(&lab, "primes", "tasks-example/primes/data/range", "../data/range");
    let ran = ran.says("16 calls: 16 computed\n");
    lab.stored(outputs(&ran)[0])
}

#[test]
fn primes_counts_the_primes_with_sixteen_calls() {
    assert_eq!(primes("1 100000\n"), "9592\n");
    assert_eq!(primes("1 1000\n"), "168\n");
}

#[test]
#[ignore = "slow: seventeen seconds of a processor"]
fn primes_gives_the_expected_outputs() {
    let lab = project();
    let ran = as_the_readme_says(&lab, "primes", "", "");
    gives_what_is_expected(&lab, &example(&lab, "primes"), &ran);
}

#[test]
fn the_examples_work_with_the_library_as_a_submodule() {
    for example in ["arith", "nile"] {
        let lab = project();
        let (project, task) = (lab.path("project"), lab.path("task"));
        fs::rename(&task, &project).unwrap();
        copy(&project.join("tasks-example").join(example), &task);
        fs::remove_file(task.join("computations")).unwrap();
        copy(&project.join("computations-example"), &task.join("computations"));
        repository::init(&task);
        repository::commit(&task.join("computations"), LAB, "computations\n");
        repository::absorb(&task, "computations", "../computations");
        repository::commit(&task, LAB, "task\n");
        let command = command(&task).replace(&format!("tasks-example/{example}"), ".");
        let ran = lab.run("ce-run", &command.split(' ').collect::<Vec<_>>()).exit(0);
        gives_what_is_expected(&lab, &task, &ran);
    }
}

#[test]
fn a_computation_can_be_called_by_hand() {
    let lab = project();
    let dir = lab.path("data");
    fs::write(dir.join("dividend"), "17\n").unwrap();
    fs::write(dir.join("divisor"), "5\n").unwrap();
    let exec = lab.path("task/computations-example/divmod/exec");
    let files = ["dividend", "divisor", "quotient", "remainder"];
    let status = std::process::Command::new(exec).args(files).current_dir(&dir).status();
    assert!(status.unwrap().success());
    let read = |name| fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!((read("quotient"), read("remainder")), ("3\n".to_owned(), "2\n".to_owned()));
}
