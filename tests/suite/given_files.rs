//! Files that are given and cannot be read or written: each error says what to try.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::lab::Lab;
use crate::program::Ran;

const SUM: &str = "Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))[0]";

/// Commands that read a file or directory `@`.
const READERS: [&str; 13] = [
    "run ../storage @ ../data/y",
    "run ../storage x=@ ../data/y",
    "run --points @ ../storage",
    "run --task @ ../storage",
    "check --task @",
    "convert --to text --task @",
    "explain ../storage @ ../data/y",
    "viz ../storage @ ../data/y",
    "diff HEAD ../storage @ ../data/y",
    "table --points @ ../storage",
    "show --manifest @",
    "commits @",
    "gc --keep @ ../storage",
];

/// Commands that write a file or directory `@`.
const WRITERS: [&str; 5] = [
    "report ../storage -o @",
    "viz -o @.svg",
    "viz -o @.dot ../storage ../data/x ../data/y",
    "man @",
    "export ../storage RESULT @",
];

fn lab() -> Lab {
    let lab = Lab::task(SUM).commit();
    lab.ce_run(&[]).exit(0);
    lab
}

/// Runs a command with a path in place of `@`.
fn run<'a>(lab: &'a Lab, command: &str, path: &str) -> Ran<'a> {
    let result = lab.results().into_keys().find(|name| name.starts_with("c_")).unwrap();
    let command = command.replace("RESULT", &result).replace('@', path);
    let ran = lab.run("ce", &command.split(' ').collect::<Vec<_>>());
    let code = ran.status.code();
    assert!(matches!(code, Some(2 | 5)), "{command}: {code:?}: {}", ran.stderr);
    ran
}

#[test]
fn an_unreadable_file_has_advice() {
    let lab = lab();
    for command in READERS {
        let told = |path, advice: &str| {
            run(&lab, command, path).says(&format!("  try: {advice}\n"));
        };
        told("../data/absent", "ls ../data shows what is there");
        told("../dato", "did you mean ../data?");
        let advice = "correct the path: there is no ../absent; ls .. shows what is there";
        told("../absent/file", advice);
        told("../data/x/file", "correct the path: ../data/x is a file, not a directory");
    }
}

#[test]
fn a_path_of_the_wrong_kind_is_refused_with_advice() {
    let lab = lab();
    let text = "give a file; ls ../data shows those in the directory";
    run(&lab, "run --points @ ../storage", "../data").says(&format!("  try: {text}\n"));
    run(&lab, "show --manifest @", "../data/x")
        .says("  try: give a directory: ../data/x is not one\n");
    run(&lab, "viz -o @", "../data").says("  try: end the name in .dot, .svg, .png or .pdf\n");
    fs::create_dir(lab.path("data/d.svg")).unwrap();
    let text = "give the name of a file: ../data/d.svg is a directory";
    run(&lab, "viz -o @", "../data/d.svg").says(&format!("  try: {text}\n"));
    run(&lab, "init @", "../data/x").says("  try: give another name: ../data/x exists\n");
    run(&lab, "gc --keep @ ../storage", "../data")
        .says("  try: give the path of a work tree or of a bare repository\n");
}

#[test]
fn an_unwritable_file_has_advice() {
    let lab = lab();
    for command in WRITERS {
        let told = |path, advice: &str| {
            run(&lab, command, path).says(&format!("  try: {advice}\n"));
        };
        if !command.starts_with("man") {
            told("../absent/page", "mkdir -p ../absent makes its directory");
        }
        told("../data/x/page", "correct the path: ../data/x is a file, not a directory");
    }
    run(&lab, "init @", "../data/x/new").says("  try: correct the path: ../data/x is a file");
}

#[test]
fn the_advice_for_a_file_of_another_user_shows_its_permissions() {
    let lab = lab();
    let Some(user) = lab.plain_user() else { return };
    let mut chmod = Command::new("chmod");
    assert!(chmod.args(["-R", "a+rX"]).arg(lab.path("")).status().unwrap().success());
    fs::create_dir(lab.path("data/locked")).unwrap();
    fs::set_permissions(lab.path("data/locked"), fs::Permissions::from_mode(0o700)).unwrap();
    for (command, advice) in [
        ("show --manifest ../data/locked", "ls -ld ../data/locked shows who may read it"),
        ("commits ../data/locked/a", "ls -ld ../data/locked shows who may read it"),
        (
            "man ../data/locked",
            "give another place; ls -ld ../data/locked shows who may write there",
        ),
    ] {
        let mut ce = lab.command("ce");
        ce.args(command.split(' ')).uid(user);
        lab.finish(&mut ce).says(&format!("  try: {advice}\n"));
    }
}
