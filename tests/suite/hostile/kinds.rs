//! Every kind of thing in every place of the layout is what `ce verify` expects, or is named; and a run that cannot go on
//! says what to try.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use compeval::storage::Storage;
use compeval::storage::maintenance::verify::{Request, VerifyError, VerifyEvent, verify};
use rayon::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::faults::is_taken;
use crate::fifo;
use crate::lab::{Lab, settle};

const TASK: &str = "Inputs: 'x', 'y'
(add (mul INPUT('x') INPUT('y'))[0] (count SWEEP(:factors/00-op 'one' 'two' :columns '00 value'
    :body (|{op}| INPUT('x'))[0])[0])[0])[0]";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    LinkToDirectory,
    LinkToFile,
    LinkToNothing,
    Fifo,
    Socket,
    Device,
}

use Kind::{Device, Directory, Fifo, File, LinkToDirectory, LinkToFile, LinkToNothing, Socket};

const KINDS: [Kind; 8] =
    [File, Directory, LinkToDirectory, LinkToFile, LinkToNothing, Fifo, Socket, Device];

impl Kind {
    /// Puts something of this kind into a place. A device is not made by who may not.
    fn put(self, lab: &Lab, place: &Path) {
        match self {
            File => fs::write(place, "x\n").unwrap(),
            Directory => fs::create_dir(place).unwrap(),
            LinkToDirectory => symlink(lab.path("decoy"), place).unwrap(),
            LinkToFile => symlink(lab.path("decoy/file"), place).unwrap(),
            LinkToNothing => symlink(lab.path("decoy/none"), place).unwrap(),
            Fifo => fifo::make(place),
            Socket => drop(UnixListener::bind(place).unwrap()),
            Device => {
                let zero = rustix::fs::makedev(1, 5);
                let mode = Mode::from_raw_mode(0o600);
                let _refused = mknodat(CWD, place, FileType::CharacterDevice, mode, zero);
            }
        }
    }

    /// Returns the kind of the entry in a place.
    fn from_path(path: &Path) -> Option<Self> {
        let kind = path.symlink_metadata().ok()?.file_type();
        Some(match () {
            () if kind.is_file() => File,
            () if kind.is_dir() => Directory,
            () if kind.is_symlink() => LinkToFile,
            () if kind.is_fifo() => Fifo,
            () if kind.is_socket() => Socket,
            () => Device,
        })
    }
}

/// A laboratory with calls, a table, a job and pins, and a decoy.
fn furnished() -> Lab {
    let copies = |lab: Lab, name| lab.computation(name, "a", "b", r#"cat "$1" >"$2""#);
    let lab = copies(copies(Lab::task(TASK), "one"), "two");
    let lab = lab.computation("count", "table", "n", r#"wc -l <"$1" >"$2""#).commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    for output in lab.results().into_keys().filter(|name| name.starts_with("c_")) {
        lab.run("ce", &["pin", "../storage", &output]).exit(0);
    }
    fs::create_dir(lab.path("decoy")).unwrap();
    fs::write(lab.path("decoy/file"), "decoy").unwrap();
    lab.copy("storage", "stock");
    lab
}

/// The name of a run of another host.
const RUN: &str = "a-b-c-1-e";

/// The places that the laboratory has, with the kinds of their entries, and some that it has not.
fn places(lab: &Lab) -> Vec<(PathBuf, Kind)> {
    let storage = lab.path("storage");
    let entries = walkdir::WalkDir::new(&storage).min_depth(1).sort_by_file_name();
    let known = entries.into_iter().map(|entry| entry.unwrap().into_path());
    let mut places: Vec<(PathBuf, Kind)> = known
        .map(|path| {
            (path.strip_prefix(&storage).unwrap().to_owned(), Kind::from_path(&path).unwrap())
        })
        .collect();
    let version = format!("c_mul/{}", super::version(lab, "c_mul"));
    let call = "0123456789ab_0123456789ab";
    for room in ["failed", "collected", "record", "pinned", "running", "away", "log"] {
        places.push((format!("{version}/{room}").into(), Directory));
        let ending = match room {
            "running" | "away" | "log" => "",
            _ => ".json",
        };
        // Nothing reads a record without outputs but by its name.
        places.push((format!("{version}/{room}/{call}{ending}").into(), File));
    }
    for (name, kind) in [
        ("c_none", Directory),
        ("c_none/0123456789ab", Directory),
        ("t_none", Directory),
        ("c_mul/commits/running", Directory),
        ("c_mul/commits/running/0123", File),
        ("tmp/collecting", File),
        ("trees", Directory),
        ("trees/0123", Directory),
        ("trees/aside", Directory),
        ("manifests", Directory),
        ("manifests/01", Directory),
        ("manifests/01/23456789ab", File),
        ("directories", Directory),
        ("ledger", Directory),
        ("ledger/01", Directory),
        ("ledger/01/23.ndjson", File),
        ("ledger/aside", Directory),
        ("signers", Directory),
        ("signers/01/23.json", File),
        ("revoked", Directory),
        ("revoked/c_mul", Directory),
        ("repositories/0123.json", File),
        ("suspended", Directory),
        ("suspended/0123", File),
        ("runs", Directory),
        (&format!("runs/{RUN}"), Directory),
        (&format!("runs/{RUN}/log"), File),
        (&format!("tmp/{RUN}"), Directory),
        (&format!("tmp/{RUN}/beat"), File),
        (&format!("tmp/{RUN}/uses"), File),
        (&format!("tmp/{RUN}/state.json"), File),
        (&format!("tmp/{RUN}/executing"), File),
        (&format!("tmp/{RUN}/queue"), Directory),
        (&format!("tmp/{RUN}/claims"), Directory),
        (&format!("tmp/{RUN}/answers"), Directory),
        ("tinputs/aside", Directory),
        ("tinputs/pinned", Directory),
        ("tinputs/pinned/01/23456789ab.json", File),
        ("tinputs/01", Directory),
        ("tables/collected", Directory),
        ("tables/aside", Directory),
        ("tables/01", Directory),
        (&format!("{version}/aside"), Directory),
        (&format!("{version}/suspended"), Directory),
        (&format!("{version}/suspended/{call}"), Directory),
        (&format!("{version}/suspended/{call}/work"), Directory),
        (&format!("{version}/suspended/{call}/log"), File),
        (&format!("{version}/suspended/{call}/state.json"), File),
    ] {
        places.push((name.into(), kind));
    }
    places
}

/// Puts something of a kind into a place of the storage, where nothing is. Returns false if that is not possible.
fn put(lab: &Lab, place: &Path, kind: Kind) -> bool {
    let path = lab.path("storage").join(place);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    kind.put(lab, &path);
    path.symlink_metadata().is_ok()
}

/// The names that a verification finds fault with.
fn named(storage: &Path) -> Vec<String> {
    let storage = Storage::existing(storage).unwrap();
    let mut names = Vec::new();
    let verified = verify(&storage, &Request::default(), &AtomicBool::new(false), &mut |event| {
        if let VerifyEvent::Found(finding) = event {
            names.push(finding.name.clone());
        }
    });
    // If results cannot be listed, the error names the place.
    if let Err(VerifyError::Storage(error)) = verified {
        names.push(error.to_string());
    }
    names
}

/// Returns the entries in one place that a verification does not name: of every third kind, or of all kinds if `CE_KILLS` is set.
fn unnamed(lab: &Lab, at: usize, (place, expected): &(PathBuf, Kind)) -> Vec<String> {
    let (path, kept) = (lab.path("storage").join(place), lab.path("kept"));
    let is_there = path.symlink_metadata().is_ok();
    if is_there {
        fs::rename(&path, &kept).unwrap();
    }
    let mut unnamed = Vec::new();
    let kinds = KINDS.into_iter().enumerate().filter(|(number, _)| is_taken(at, *number, 3));
    for kind in kinds.map(|(_, kind)| kind).filter(|kind| kind != expected) {
        if !put(lab, place, kind) {
            continue;
        }
        let found = named(&lab.path("storage"));
        let is_error =
            |text: &str| text.starts_with("cannot ") && text.ends_with(path.to_str().unwrap());
        if !found.iter().any(|name| Path::new(name) == place || is_error(name)) {
            unnamed.push(format!("{kind:?} at {}: {found:?}", place.display()));
        }
        if kind == Directory { fs::remove_dir(&path) } else { fs::remove_file(&path) }.unwrap();
    }
    if is_there {
        fs::rename(&kept, &path).unwrap();
    }
    unnamed
}

#[test]
fn verify_names_every_entry_of_a_wrong_kind() {
    let lab = furnished();
    assert_eq!(named(&lab.path("storage")), [""; 0]);
    let places = places(&lab);
    let unnamed = places.iter().enumerate().flat_map(|(at, place)| unnamed(&lab, at, place));
    let unnamed: Vec<String> = unnamed.collect();
    assert!(unnamed.is_empty(), "{} of them:\n{}", unnamed.len(), unnamed.join("\n"));
}

#[test]
fn a_run_continues_or_fails_with_advice() {
    let lab = furnished();
    let places = places(&lab);
    // Other kinds are in `places`.
    let wrong = places.iter().filter_map(|(place, kind)| match kind {
        File => Some((place, Directory)),
        Directory => Some((place, File)),
        _ => None,
    });
    let complaints: Vec<String> = wrong
        .collect::<Vec<_>>()
        .par_iter()
        .map_init(furnished, |lab, (place, kind)| {
            lab.copy("stock", "storage");
            drop(fs::remove_dir_all(lab.path("cache")));
            let path = lab.path("storage").join(place);
            match Kind::from_path(&path) {
                Some(Directory) => fs::remove_dir_all(&path).unwrap(),
                Some(_) => fs::remove_file(&path).unwrap(),
                None => {}
            }
            put(lab, place, *kind);
            // A young output without a record may be of a run that is alive, and is waited for.
            settle(&lab.path("storage"));
            let ran = lab.ce_run(&["--no-sync"]);
            match ran.status.code() {
                Some(0 | 1 | 3) => None,
                Some(5) if ran.stderr.contains("  try: ") => None,
                code => Some(format!("{kind:?} at {}: {code:?} {}", place.display(), ran.stderr)),
            }
        })
        .flatten()
        .collect();
    assert!(complaints.is_empty(), "{} of them:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn a_file_in_the_place_of_a_computation_is_named() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]").commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    fs::remove_dir_all(lab.path("storage/c_mul")).unwrap();
    fs::write(lab.path("storage/c_mul"), "").unwrap();
    let told = lab.run("ce", &["verify", "../storage"]).exit(5);
    told.shows("../storage/c_mul: it is not a directory\n");
    fs::write(lab.path("data/x"), "7\n").unwrap();
    let told = lab.ce_run(&["--no-sync"]).exit(5).says("storage/c_mul");
    told.says("try: remove what stands in the place of a directory: ce verify names it");
}
