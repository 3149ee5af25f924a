//! Every file that is read from a repository or a storage, spoiled in every way: no panic, no hang,
//! nothing touched outside, and no wrong result.
//!
//! A longer form: `CE_MUTATIONS=10000 cargo test --test suite mutations`.

use std::fs;
use std::path::{Path, PathBuf};

use compeval::load;
use compeval::load::Uncommitted;
use compeval::plan::Plan;

use super::generator::Random;
use super::lab::{Lab, files};

/// What is put into files, beside noise: paths that lead out, and numbers that are too great.
const PIECES: [&str; 10] = [
    "../../data/x",
    "/etc/passwd",
    "..",
    "\0",
    "\n\n",
    "99999999999999999999",
    "-1",
    "\u{1b}[2J",
    "{\"a\":[",
    "ä",
];

fn rounds(short: u64) -> u64 {
    std::env::var("CE_MUTATIONS").map_or(short, |text| text.parse().unwrap())
}

/// Spoils a text somehow.
fn mutate(text: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(text.len() + 1);
        let end = (at + random.below(20)).min(text.len());
        match random.below(6) {
            0 if at < text.len() => text[at] ^= 1 << random.below(8),
            1 => text.truncate(at),
            2 => drop(text.drain(at..end)),
            3 => {
                let piece = text[at..end].to_vec();
                text.splice(at..at, piece);
            }
            4 => drop(text.splice(at..at, [random.below(256) as u8])),
            _ => {
                let piece = PIECES[random.below(PIECES.len())];
                text.splice(at..end, piece.bytes());
            }
        }
    }
}

/// The files below a directory that a program may read, in order.
fn readable(dir: &Path) -> Vec<PathBuf> {
    let names = files(dir).into_keys().filter(|name| !name.contains(".git/"));
    names.map(|name| dir.join(name)).collect()
}

fn lab() -> Lab {
    let text = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] \
                (add (divmod INPUT('x') INPUT('y'))[0, 01])[0])[0]";
    Lab::task(text).commit()
}

#[test]
fn a_task_that_is_spoiled_anywhere_is_loaded_or_refused() {
    let lab = lab();
    let task = lab.path("task");
    let names = readable(&task);
    for seed in 0..rounds(400) {
        let mut random = Random::new(seed);
        let path = &names[random.below(names.len())];
        let before = fs::read(path).unwrap();
        let mut text = before.clone();
        mutate(&mut text, &mut random);
        fs::write(path, text).unwrap();
        if let Ok(loaded) = load::task(&task, Uncommitted::Evaluate, None) {
            let plan = Plan::new(&loaded.task);
            assert!(plan.calls().len() <= 4);
        }
        fs::write(path, before).unwrap();
    }
}

#[test]
fn a_storage_that_is_spoiled_anywhere_gives_the_right_result_or_none() {
    let lab = lab();
    lab.ce_run(&[]).exit(0);
    let outside = || (files(&lab.path("data")), files(&lab.path("task")));
    let before = outside();
    for seed in 0..rounds(100) {
        let mut random = Random::new(seed);
        let names: Vec<PathBuf> = readable(&lab.path("storage"));
        let path = &names[random.below(names.len())];
        let kept = fs::read(path).unwrap();
        let mut text = kept.clone();
        mutate(&mut text, &mut random);
        fs::remove_file(path).unwrap();
        fs::write(path, text).unwrap();
        let ran = lab.ce_run(&["--no-sync", "-q"]);
        let told = format!("seed {seed}, {}\n{}{}", path.display(), ran.stdout, ran.stderr);
        match ran.status.code() {
            Some(0) => assert_eq!(lab.output(), "90\n", "{told}"),
            Some(5) => {
                fs::write(path, kept).unwrap();
                lab.ce_run(&["--no-sync"]).exit(0);
            }
            _ => panic!("{:?} {told}", ran.status),
        }
        assert!(outside() == before, "nothing outside is touched: {told}");
        assert!(lab.is_tidy(), "{told}");
    }
}
