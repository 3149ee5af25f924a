//! Links, FIFOs, sockets and directories in every place of the layout: nothing behind them is touched,
//! and no program waits for them.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::faults::stride;
use crate::fifo;
use crate::lab::{Lab, settle, snapshot};

const TASK: &str = "Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]";

/// A laboratory with a result and everything else that a storage may hold, beside a decoy.
fn furnished() -> Lab {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let output = lab.ce_run(&["-n", "-q"]).exit(0).lines()[0].to_owned();
    lab.run("ce", &["pin", "../storage", &output]).exit(0);
    fs::create_dir_all(lab.path("decoy/below")).unwrap();
    fs::write(lab.path("decoy/file"), "decoy").unwrap();
    fs::write(lab.path("decoy/below/file"), "decoy").unwrap();
    lab
}

/// An entry that is put in a place: its name, and how it is made.
type Kind = (&'static str, fn(&Lab, &Path));

const KINDS: [Kind; 6] = [
    ("a link to a directory", |lab, place| symlink(lab.path("decoy"), place).unwrap()),
    ("a link to a file", |lab, place| symlink(lab.path("decoy/file"), place).unwrap()),
    ("a link to nothing", |lab, place| symlink(lab.path("decoy/none"), place).unwrap()),
    ("a FIFO", |_, place| fifo::make(place)),
    ("a socket", |_, place| drop(UnixListener::bind(place))),
    // It never ends; a user who may not make one leaves the place empty.
    ("a device", |_, place| {
        let zero = rustix::fs::makedev(1, 5);
        let mode = Mode::from_raw_mode(0o600);
        let _refused = mknodat(CWD, place, FileType::CharacterDevice, mode, zero);
    }),
];

/// The places of the layout that the laboratory has, and some that it has not yet.
fn places(lab: &Lab) -> Vec<PathBuf> {
    let storage = lab.path("storage");
    let entries = walkdir::WalkDir::new(&storage).min_depth(1).sort_by_file_name();
    let inside = |path: &Path| path.strip_prefix(&storage).unwrap().to_owned();
    let mut places: Vec<PathBuf> =
        entries.into_iter().map(|entry| inside(entry.unwrap().path())).collect();
    let output =
        places.iter().find(|path| path.starts_with("c_mul") && path.ends_with(NAME)).cloned();
    let version = output.unwrap().ancestors().nth(2).unwrap().to_owned();
    for absent in ["failed", "running", "collected", "aside", "log"] {
        places.push(version.join(absent));
        places.push(version.join(absent).join(NAME));
        places.push(version.join(absent).join(format!("{NAME}.json")));
    }
    places.push("tmp/a-b-c-1-e".into());
    places.push("tmp/a-b-c-1-e/beat".into());
    places.push("tmp/a-b-c-1-e/uses".into());
    places.push("trees".into());
    places
}

const NAME: &str = "ad48103e4fc7_5d9474c0309b";

/// Evaluates, looks and collects; each may fail, none may hang, and the decoy stays as it is.
fn attack(lab: &Lab, place: &Path, kind: &str, put: fn(&Lab, &Path)) {
    let path = lab.path("storage").join(place);
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&path).unwrap(),
        Ok(_) => fs::remove_file(&path).unwrap(),
        Err(_) => fs::create_dir_all(path.parent().unwrap()).unwrap(),
    }
    put(lab, &path);
    // A young output without a record may be of a run that is alive, and is waited for.
    settle(&lab.path("storage"));
    let decoy = snapshot(&lab.path("decoy"));
    let what = format!("{kind} at {}", place.display());
    let file = format!("../storage/{}", place.display());
    for command in [
        &["ce", "verify", "../storage"][..],
        &["ce", "log", "../storage"],
        &["ce", "show", "../storage", &file],
        &["ce", "pin", "../storage", &file],
        &["ce", "gc", "../storage", "--keep", "."],
    ] {
        lab.run(command[0], &command[1..]);
        assert_eq!(snapshot(&lab.path("decoy")), decoy, "{command:?}: {what}");
    }
    for options in [&["-n"][..], &["--no-sync"], &["-q"]] {
        let ran = lab.ce_run(options);
        let code = ran.status.code();
        assert!(matches!(code, Some(0 | 1 | 3 | 5)), "{what}: {code:?}\n{}", ran.stderr);
        assert!(code != Some(5) || ran.stderr.contains("  try: "), "{what}: {}", ran.stderr);
        if code == Some(0) && !options.contains(&"-n") {
            let output = ran.stdout.lines().last().unwrap().trim();
            assert_eq!(lab.stored(output), "85\n", "{what}");
        }
        assert_eq!(snapshot(&lab.path("decoy")), decoy, "{options:?}: {what}");
    }
    lab.run("ce", &["verify", "--repair", "../storage"]);
    assert_eq!(snapshot(&lab.path("decoy")), decoy, "verify --repair: {what}");
}

/// Attacks every place, each time in the same storage: with one kind after the other, or with each if `CE_KILLS` is set.
fn attack_all(kinds: &[Kind]) {
    let places = places(&furnished());
    let each = stride(kinds.len());
    let attacks: Vec<_> = (places.iter().enumerate())
        .flat_map(|(at, place)| {
            kinds.iter().skip(at % each).step_by(each).map(move |kind| (place, kind))
        })
        .collect();
    attacks.par_iter().for_each_init(stocked, |lab, (place, (kind, put))| {
        restock(lab);
        attack(lab, place, kind, *put);
    });
}

/// A furnished laboratory with a copy of its storage.
fn stocked() -> Lab {
    let lab = furnished();
    lab.copy("storage", "stock");
    lab
}

/// Makes the storage anew from its copy, as for a user who has seen neither.
fn restock(lab: &Lab) {
    drop(fs::remove_dir_all(lab.path("cache")));
    lab.copy("stock", "storage");
}

#[test]
fn a_link_in_the_place_of_a_directory_is_reported_with_advice() {
    let lab = furnished();
    fs::rename(lab.path("storage/c_mul"), lab.path("elsewhere")).unwrap();
    symlink(lab.path("elsewhere"), lab.path("storage/c_mul")).unwrap();
    let ran = lab.ce_run(&["--no-sync"]).exit(5).says("c_mul");
    ran.says("because: it is a symbolic link, or behind one")
        .says("try: replace the link by its target");
}

/// The links that are put into a storage, with the records of another storage behind them.
const FOREIGN: [&str; 5] = ["c_x", "t_y", "c_mul/0123456789ab", "tinputs/ff", "trees"];

#[test]
fn a_foreign_link_is_reported_and_the_rest_is_looked_at() {
    for place in FOREIGN {
        let lab = furnished();
        let listed = |options: &[&str]| lab.run("ce", options).exit(0).stdout;
        let gc = ["gc", "--no-keep", "--older=0s", "../storage"];
        let looks = [&["log", "../storage"][..], &gc, &["pin", "../storage"]];
        let (log, before) = (listed(looks[0]), looks.map(listed));
        let other = furnished();
        let target = other.path("storage").join(if place.len() > 5 { "c_mul" } else { "" });
        symlink(&target, lab.path("storage").join(place)).unwrap();
        let behind = snapshot(&other.path("storage"));
        let told = format!("../storage/{place}: it is a symbolic link in the place of a directory");
        let warned = told.replacen(": ", " is left out: ", 1);
        for options in [&[][..], &["--repair"], &["--since", "1h"], &["--sample", "100"]] {
            let arguments = [&["verify"], options, &["../storage"]].concat();
            let ran = lab.run("ce", &arguments).exit(5).says("1 wrong");
            assert_eq!(ran.lines(), [told.as_str()]);
        }
        for (look, before) in looks.iter().zip(&before) {
            let ran = lab.run("ce", look).exit(0).says(&format!("warning: {warned}"));
            assert_eq!(ran.stdout, *before, "{place}: {look:?}");
        }
        // Results behind the link may have been made from what would go.
        lab.unchanged(|| {
            let ran = lab.run("ce", &[&gc[..], &["--delete"]].concat()).exit(5);
            ran.says("cannot delete anything beside").says("try: replace the link by its target");
        });
        assert_eq!(snapshot(&other.path("storage")), behind, "{place}");
        assert_eq!(lab.run("ce", looks[0]).exit(0).stdout, log, "{place}");
        assert!(lab.path("storage").join(place).is_symlink());
    }
}

#[test]
fn pins_behind_a_link_prevent_a_collection() {
    let lab = furnished();
    let pins = lab.path("storage/c_mul").join(super::version(&lab, "c_mul")).join("pinned");
    fs::rename(&pins, lab.path("elsewhere")).unwrap();
    symlink(lab.path("elsewhere"), &pins).unwrap();
    let gc = ["gc", "--delete", "--no-keep", "--older=0s", "../storage"];
    lab.unchanged(|| lab.run("ce", &gc).exit(5).says("pinned"));
}

#[test]
fn a_link_in_any_place_is_not_followed() {
    attack_all(&KINDS[..3]);
}

#[test]
fn a_special_file_in_any_place_does_not_block_a_run() {
    attack_all(&KINDS[3..]);
}

/// Returns a laboratory whose computation does this to the storage while it is executed without isolation.
fn betrayed(script: &str) -> Lab {
    let script =
        format!(r#"slot=$(dirname "$3"); decoy=$(cat ../../../../../../decoy-path); {script}"#);
    let lab = Lab::task(TASK).computation("mul", "a b", "product", &script).commit();
    fs::create_dir_all(lab.path("decoy/below")).unwrap();
    fs::write(lab.path("decoy/file"), "decoy").unwrap();
    fs::write(lab.path("decoy-path"), lab.path("decoy").to_str().unwrap()).unwrap();
    lab
}

#[test]
fn a_stage_that_becomes_a_link_during_a_call_is_not_followed() {
    for script in [
        // The directory that it works in, its own directory, its stage, the run's directory, and the directory of all runs.
        r#"rm -rf "$slot/work"; ln -s "$decoy" "$slot/work"; echo 1 >"$3""#,
        r#"rm -rf "$slot/out"; ln -s "$decoy" "$slot/out"; echo 1 >"$3""#,
        r#"mv "$slot" "$slot.old"; ln -s "$decoy" "$slot""#,
        r#"stage=$(dirname "$slot"); mv "$stage" "$stage.old"; ln -s "$decoy" "$stage""#,
        r#"run=$(dirname "$(dirname "$slot")"); mv "$run" "$run.old"; ln -s "$decoy" "$run""#,
        r#"tmp=${3%/tmp/*}/tmp; mv "$tmp" "$tmp.old"; ln -s "$decoy" "$tmp""#,
        // Its output and its log.
        r#"ln -s "$decoy/file" "$3""#,
        r#"rm -f "$slot/log"; ln -s "$decoy/file" "$slot/log"; echo 1 >"$3""#,
        r#"rm -f "$slot/log"; ln "$decoy/file" "$slot/log"; echo 1 >"$3""#,
        r#"rm -f "$slot/log"; mkfifo "$slot/log"; echo 1 >"$3""#,
        r#"mkfifo "$3""#,
        // The directory for its results.
        r#"c=${3%/tmp/*}/c_mul; mv "$c" "$c.old"; ln -s "$decoy" "$c"; echo 1 >"$3""#,
    ] {
        let lab = betrayed(script);
        let decoy = |lab: &Lab| {
            let files = walkdir::WalkDir::new(lab.path("decoy")).sort_by_file_name();
            let path = |entry: walkdir::DirEntry| entry.path().to_owned();
            let paths: Vec<PathBuf> = files.into_iter().map(|entry| path(entry.unwrap())).collect();
            (paths, fs::read_to_string(lab.path("decoy/file")).unwrap())
        };
        let before = decoy(&lab);
        for options in [&["--no-sync"][..], &["--no-sync", "--retry", "1"], &[]] {
            let ran = lab.ce_run(options);
            assert!(matches!(ran.status.code(), Some(0 | 1 | 5)), "{script}\n{}", ran.stderr);
            assert_eq!(decoy(&lab), before, "{script}\n{}", ran.stderr);
        }
    }
}

#[test]
fn a_directory_that_is_moved_away_while_it_is_used_is_reported() {
    let script = r#"s=${3%/tmp/*}; mv "$s/c_add" "$s/../away"; echo 1 >"$3""#;
    let task =
        "Inputs: 'x', 'y'\n(add (mul (add INPUT('x') INPUT('y'))[0] INPUT('y'))[0] INPUT('y'))[0]";
    let lab = Lab::task(task).computation("mul", "a b", "product", script).commit();
    let ran = lab.ce_run(&["--no-sync", "-j1"]).exit(5);
    ran.says("c_add").says("was moved or removed while it was used").says("try: move it back");
}

#[test]
fn a_directory_in_the_place_of_a_file_goes_aside() {
    let lab = furnished();
    let version =
        fs::read_dir(lab.path("storage/c_mul")).unwrap().map(|entry| entry.unwrap().path());
    let version = version.into_iter().find(|path| !path.ends_with("commits")).unwrap();
    for place in [format!("00/{NAME}"), format!("record/{NAME}.json")] {
        lab.called();
        let path = version.join(&place);
        fs::remove_file(&path).unwrap();
        fs::create_dir_all(path.join("below")).unwrap();
        lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]);
        lab.ce_run(&["--no-sync"]).exit(0).called(vec![]);
        assert_eq!(lab.output(), "85\n", "{place}");
    }
}

#[test]
fn a_record_that_is_too_large_is_ignored() {
    let lab = furnished();
    for name in ["record", "version.json", "failed"] {
        lab.called();
        let files = walkdir::WalkDir::new(lab.path("storage/c_mul")).into_iter().flatten();
        let files = files.filter(|file| file.file_type().is_file());
        let files =
            files.filter(|file| file.path().to_str().unwrap().contains(&format!("/{name}")));
        for file in files {
            fs::remove_file(file.path()).unwrap();
            fs::File::create(file.path()).unwrap().set_len(1 << 40).unwrap();
        }
        lab.ce_run(&["--no-sync"]).exit(0);
        assert_eq!(lab.output(), "85\n", "{name}");
    }
}

#[test]
fn an_export_that_holds_a_fifo_or_is_a_link_is_made_again() {
    if !crate::isolation::is_possible() {
        return;
    }
    let lab = Lab::task(TASK).isolated().commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let trees =
        || fs::read_dir(lab.path("storage/trees")).unwrap().map(|entry| entry.unwrap().path());
    let tree = trees().find(|path| !path.ends_with("aside")).unwrap();
    let spoil: [&dyn Fn(); 4] = [
        &|| fifo::make(&tree.join("extra")),
        &|| {
            fs::remove_file(tree.join("exec")).unwrap();
            fifo::make(&tree.join("exec"));
        },
        &|| {
            fs::rename(&tree, lab.path("copy")).unwrap();
            symlink(lab.path("copy"), &tree).unwrap();
        },
        &|| {
            fs::remove_dir_all(&tree).unwrap();
            fifo::make(&tree);
        },
    ];
    for (number, spoil) in spoil.iter().enumerate() {
        fs::write(lab.path("data/x"), format!("{number}\n")).unwrap();
        spoil();
        lab.ce_run(&["--no-sync"]).exit(0).says("1 computed");
        assert!(tree.symlink_metadata().unwrap().is_dir() && !tree.join("extra").exists());
    }
}
