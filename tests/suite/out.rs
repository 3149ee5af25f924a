//! Outputs in a directory of the user, under names that stay: `ce run --out` and `ce export --update`.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::lab::{Lab, files};
use crate::program::Ran;

/// A task with a figure, a directory and a table.
const STUDY: &str = "Inputs: colour = 'red', count = '3'

figure: colour -> image.svg
    [ $text_colour != grey ] || exit 3
    echo \"<svg>$text_colour</svg>\" > $out_image_svg

split: colour -> parts/
    for i in $(seq 10); do echo $text_colour $i > $out_parts/$i; done

double: n -> m
    echo $((text_n * 2)) > $out_m

plot = (figure colour)
ALL(plot (split colour) :runs SWEEP((double n) :over n 1..3))
";

fn study() -> Lab {
    Lab::empty().one_text(STUDY).commit()
}

fn run<'a>(lab: &'a Lab, options: &[&str]) -> Ran<'a> {
    lab.run("ce-run", &[&["--no-sync"], options, &["../storage"]].concat())
}

/// The files in a directory beside the task, without the list of them, by their paths.
fn written(lab: &Lab, dir: &str) -> BTreeMap<String, String> {
    let mut files = files(&lab.path(dir));
    files.remove(".ce-out.json");
    let texts = files.into_iter().map(|(path, text)| (path, String::from_utf8(text).unwrap()));
    texts.collect()
}

#[test]
fn outputs_are_written_under_the_names_of_the_workflow() {
    let lab = study();
    run(&lab, &["--out", "../out"]).exit(0).says("outputs in ../out: 13 files written");
    let out = written(&lab, "out");
    let names: Vec<&str> = out.keys().map(String::as_str).filter(|it| !it.contains("/")).collect();
    assert_eq!(names, ["plot.svg", "runs.csv", "runs.ndjson"]);
    assert_eq!(out["parts/10"], "red 10\n");
    assert_eq!(out["runs.csv"], "n,m\n1,2\n2,4\n3,6\n");

    run(&lab, &["--out", "../out"]).exit(0).says("outputs in ../out: 13 unchanged");
    let ran = run(&lab, &["-q", "--out", "../out", "-p", "colour=blue"]).exit(0);
    assert_eq!(ran.stderr, "");
    assert_eq!(written(&lab, "out")["plot.svg"], "<svg>blue</svg>\n");
    let shown = lab
        .run("ce", &["show", "../storage", "../out/plot.svg"])
        .exit(0)
        .shows("figure, output 00");
    shown.shows("=blue");
    lab.run("ce", &["show", "../storage", "../out/parts/7"]).exit(0).shows("split, output 00");

    // A job that was finished before is not looked at again, and its outputs are there.
    fs::remove_file(lab.path("out/plot.svg")).unwrap();
    run(&lab, &["-q", "--out", "../out", "-p", "colour=blue"]).exit(0);
    assert_eq!(written(&lab, "out")["plot.svg"], "<svg>blue</svg>\n");

    // The page of the task calls its files likewise.
    lab.run("ce", &["report", "--task", ".", "-o", "../page.html", "../storage"]).exit(0);
    let page = fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(page.contains("Save plot.svg"));

    // In a clone with the outputs of a commit, nothing changes.
    let list = fs::read(lab.path("out/.ce-out.json")).unwrap();
    lab.copy("out", "clone");
    run(&lab, &["--out", "../clone", "-p", "colour=blue"]).exit(0).says("13 unchanged");
    assert_eq!(fs::read(lab.path("clone/.ce-out.json")).unwrap(), list);
}

#[test]
fn what_fails_keeps_its_old_file_and_what_is_foreign_stays() {
    let lab = study();
    run(&lab, &["--out", "../out"]).exit(0);
    let ran = run(&lab, &["--out", "../out", "-p", "colour=grey"]).exit(1);
    let ran =
        ran.says("warning: ../out/plot.svg is out of date: the output is missing or has failed");
    ran.says("10 files written (parts/1, ");
    let out = written(&lab, "out");
    assert_eq!((&*out["plot.svg"], &*out["parts/1"]), ("<svg>red</svg>\n", "grey 1\n"));
    fs::write(lab.path("out/plot.svg"), "mine").unwrap();
    let ran = run(&lab, &["--out", "../out", "-p", "colour=blue"]).exit(2);
    let ran = ran.says(
        "../out has files in the place of outputs that no run has written, or that have changed since: plot.svg",
    );
    ran.says("try: move them away, or give another directory");
    assert_eq!(written(&lab, "out")["parts/1"], "grey 1\n");
    drop(lab.unchanged(|| run(&lab, &["-n", "--out", "../out"]).exit(2)));
}

#[test]
fn committed_outputs_do_not_change_in_a_clone() {
    let lab = study();
    run(&lab, &["--out", "out"]).exit(0);
    let lab = lab.file("notes", "the outputs are in the repository").commit_again();
    lab.git("", &["clone", "--quiet", "task", "clone"]);
    for storage in ["storage", "another"] {
        let mut command = lab.command("ce-run");
        command.current_dir(lab.path("clone")).args(["--no-sync", "--out", "out"]);
        lab.finish(command.arg(format!("../{storage}"))).exit(0).says("13 unchanged");
        assert_eq!(lab.git("clone", &["status", "--porcelain"]), "");
    }
}

#[test]
fn a_directory_that_cannot_be_one_is_an_error_before_anything_is_executed() {
    let lab = study();
    for dir in ["../storage", "../storage/out", ".git/out", "workflow.ce"] {
        run(&lab, &["--out", dir]).exit(2);
        assert!(!lab.path("storage/c_figure").exists(), "{dir}");
    }
    fs::create_dir(lab.path("out")).unwrap();
    fs::write(lab.path("out/.ce-out.json"), "<<<<<<< ours\n").unwrap();
    let ran = run(&lab, &["--out", "../out"]).exit(2);
    ran.says(
        "../out/.ce-out.json is not a list of outputs that this version knows: expected value",
    );
    assert!(!lab.path("storage/c_figure").exists());
}

#[test]
fn two_outputs_of_one_name_are_refused_before_anything_is_executed() {
    let text = STUDY
        .replace("ALL(plot ", "ALL(plot Plot ")
        .replace("plot = ", "Plot = (figure 'x')\nplot = ");
    let lab = Lab::empty().one_text(&text).commit();
    let told = "the outputs 00 and 01 would both be called Plot.svg";
    lab.run("ce", &["check"]).exit(0).says(&format!("warning: {told}, which ce run --out refuses"));
    let ran = run(&lab, &["--out", "../out"]).exit(2).says(told);
    ran.says("try: give one of them a definition");
    assert!(!lab.path("storage").exists() && !lab.path("out").exists());
}

#[test]
fn each_point_has_a_directory_and_points_that_are_left_out_stay() {
    let lab = study();
    run(&lab, &["--out", "../out", "--each", "colour=red,grey,blue"]).exit(1);
    let out = written(&lab, "out");
    assert_eq!(out["colour=blue/plot.svg"], "<svg>blue</svg>\n");
    assert_eq!(out["colour=blue/runs.csv"], out["colour=red/runs.csv"]);
    assert!(!out.contains_key("colour=grey/plot.svg"));
    let time = || lab.path("out/.ce-out.json").metadata().unwrap().modified().unwrap();
    let before = time();
    let some = ["--out", "../out", "--each", "colour=red,grey,blue", "--where", "colour=blue"];
    run(&lab, &some).exit(0).says("outputs in ../out: 13 unchanged");
    assert_eq!((written(&lab, "out"), time()), (out, before));
    run(&lab, &["--out", "../out", "--each", "colour=red"]).exit(0).says("removed (");
    assert!(written(&lab, "out").keys().all(|path| path.starts_with("colour=red/")));
}

#[test]
fn a_job_that_was_stored_before_updates_the_same_directory() {
    let lab = study();
    run(&lab, &["--out", "../out"]).exit(0);
    run(&lab, &["-p", "colour=blue"]).exit(0);
    let out = written(&lab, "out");
    let job = |colour: &str| {
        let names = lab.storage();
        let files = names.iter().filter(|it| it.starts_with("t_") && it.contains("/00/"));
        let is_of = |it: &&String| lab.stored(it).contains(colour);
        format!("../storage/{}", files.into_iter().find(is_of).unwrap())
    };
    let update =
        |colour| lab.run("ce", &["export", "--update", "../storage", &job(colour), "../out"]);
    update("red").exit(0).says("outputs in ../out: 13 unchanged");
    update("blue").exit(0).says("11 files written");
    assert_eq!(written(&lab, "out")["plot.svg"], "<svg>blue</svg>\n");
    update("red").exit(0);
    assert_eq!(written(&lab, "out"), out);
    // What is there of a task leaves before the task is finished, too, and the rest is named.
    let update = |given: &[&str]| {
        lab.run(
            "ce",
            &[&["export", "--update", "--task", "."], given, &["../storage", "../out"]].concat(),
        )
    };
    update(&["-p", "colour=blue"]).exit(0).says("outputs in ../out: 11 files written");
    run(&lab, &["-p", "colour=grey"]).exit(1);
    let ran =
        update(&["-p", "colour=grey"]).exit(3).says("warning: ../out/plot.svg is out of date");
    ran.says("1 output is missing, or has failed\n  try: ce run computes what is missing");
    let written = written(&lab, "out");
    assert_eq!((&*written["plot.svg"], &*written["parts/1"]), ("<svg>blue</svg>\n", "grey 1\n"));
    lab.run("ce", &["export", "--update", "-p", "colour=red", "../storage", "../out"])
        .exit(2)
        .says("--task");
    lab.git("task", &["config", "compeval.storage", "../storage"]);
    lab.run("ce", &["export", "--update", "--task=.", "-p", "colour=red", "../out"]).exit(0);
    lab.run("ce", &["export", "../other"]).exit(2).says("no result");
    // Without the workflow, outputs have no names.
    let mut command = lab.command("ce");
    command.current_dir(lab.path("")).args(["export", "--update", "storage"]);
    let ran = lab.finish(command.args([&job("red")[3..], "out"])).exit(2);
    ran.says("is not here, which names its outputs");
}

#[test]
fn a_crash_leaves_each_file_old_or_new_and_ours() {
    let rounds = std::env::var("CE_TEST_ROUNDS").map_or(24, |text| text.parse().unwrap());
    let lab = study();
    let export = |colour: &str| {
        let mut command = lab.command("ce-run");
        command.args(["-q", "--no-sync", "--out", "../out", "-p", &format!("colour={colour}")]);
        command.arg("../storage");
        command
    };
    let mut expected = Vec::new();
    let mut longest = Duration::ZERO;
    for colour in ["red", "blue"] {
        lab.finish(&mut export(colour)).exit(0);
        let begin = Instant::now();
        lab.finish(&mut export(colour)).exit(0);
        longest = longest.max(begin.elapsed());
        expected.push(written(&lab, "out"));
    }
    let mut killed = 0;
    for round in 0..rounds {
        let new = round % 2;
        let mut running = export(["red", "blue"][new]).stdout(Stdio::null()).spawn().unwrap();
        thread::sleep(longest * u32::try_from(round + 1).unwrap() / rounds as u32);
        running.kill().unwrap();
        killed += i32::from(running.wait().unwrap().code().is_none());
        for (path, text) in written(&lab, "out") {
            let is_whole = expected.iter().any(|it| it.get(&path) == Some(&text));
            assert!(is_whole || path == ".ce-out.part", "round {round}, {path}: {text}");
        }
        lab.finish(&mut export(["red", "blue"][new])).exit(0);
        assert_eq!(written(&lab, "out"), expected[new], "round {round}");
    }
    assert!(killed > 0, "no run was killed");
}
