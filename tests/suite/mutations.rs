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

#[path = "../../fuzz/src/texts.rs"]
mod texts;

/// The texts that are put into files, beside noise: paths that lead out, and numbers that are too great.
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
fn a_corrupt_task_is_loaded_or_refused() {
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
fn a_corrupt_storage_never_gives_a_wrong_result() {
    let lab = lab();
    lab.ce_run(&[]).exit(0);
    let outside = || {
        let mut task = files(&lab.path("task"));
        // It names the storage by its id. One that is spoiled is replaced.
        task.remove(".git/compeval/storages");
        (files(&lab.path("data")), task)
    };
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

/// Texts of workflows that have all of the grammar, beside the examples.
const WORKFLOWS: [&str; 3] = [
    "Inputs: x, |y z| = '20',\n  data = OWN('data/x') # why\nsum = (add x |y z|)[total, 01]\n(f :a sum[00] #1=(g 'it's' TEXT('a' :unended)) #1#)",
    "SWEEP('s' :over n 1..4 '5' :over ('a' 'b') (1 'x') (2 |y|) :exclude ('n') (3) :where 'n > 1 || a == \"x\"' :replicates 3 :columns '00 *' :allow-failed\n\
     (f n {a} :resources 'cpus 4' FILE('tinputs/ab/x')))[table]",
    "r = TREE('.:a' 'main')\nSWEEP(:names 'p' :body MEMBER('a/b' r[directory]) :|points| POINTS(:factors/00-p '1' :replicates '2'))",
];

/// Files with declarations.
const DECLARATIONS: [&str; 3] = [
    "#!/bin/sh\n\n# counts\n#CE inputs words 'stop words' it's\r\n#CE outputs kinds/ total\n#CE access env  HOME\n#CE nondeterministic\n\
     code\n  #CE access network\n",
    "\u{feff}--\n--CE\toutputs a\n%CE resources memory 2G\n\"CE access read /x\n",
    "/* counts */\n//CE inputs a b\n//CE outputs 'c, d'\n;CE nondeterministic It rolls dice.\nint main() {}\n",
];

/// Checks texts as they are, and spoiled.
fn check_each(texts: &[Vec<u8>], check: impl Fn(&[u8])) {
    texts.iter().for_each(|text| check(text));
    for seed in 0..rounds(4000) {
        let mut random = Random::new(seed);
        let mut text = texts[random.below(texts.len())].clone();
        mutate(&mut text, &mut random);
        check(&text);
    }
}

#[test]
fn a_corrupt_workflow_is_read_as_printed_or_refused_with_its_place() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tasks-example");
    let examples = fs::read_dir(examples).unwrap().map(|example| example.unwrap().path());
    let examples = examples.filter_map(|example| fs::read(example.join("workflow.ce")).ok());
    let texts: Vec<_> =
        WORKFLOWS.map(|text| text.as_bytes().to_vec()).into_iter().chain(examples).collect();
    check_each(&texts, |text| texts::check_workflow(&String::from_utf8_lossy(text)));
}

#[test]
fn a_corrupt_declaration_is_read_as_printed_or_refused_with_its_line() {
    check_each(&DECLARATIONS.map(|text| text.as_bytes().to_vec()), texts::check_declaration);
}
