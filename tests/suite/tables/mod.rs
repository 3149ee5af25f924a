//! Tables of sweeps: published, found, damaged and collected, through the library.

mod collect;
mod damage;
mod faults;
mod publish;
mod show;

use std::path::{Path, PathBuf};

use compeval::digest::Digest;
use compeval::storage::{
    Durability, FoundTable, LongText, RecipeHeader, RecipeWriter, ResultName, Storage,
    StorageError, Stored, TableDirectory, Unrecorded,
};
use serde_json::Value;

use crate::lab::Lab;

/// The levels of the sweep.
const LEVELS: [&str; 2] = ["1", "2"];

/// Makes a file, which is executable at one level, and a directory.
const MAKE: &str = r#"echo $(($(cat "$1") * 10)) >"$2"; mkdir "$3/d" "$3/none"; cp "$1" "$3/d/x"
ln -s d/x "$3/link"; [ "$(cat "$1")" = 1 ] || chmod +x "$2" "$3/d/x""#;

/// The results of a sweep.
struct Sweep {
    recipe: LongText<'static>,
    table: Vec<u8>,
    directory: TableDirectory,
}

/// A laboratory in which a call was executed for each level.
fn lab() -> Lab {
    let mut lab = Lab::task("Inputs: 'x'\n(make INPUT('x'))[0, 1]")
        .computation("make", "x", "tenfold plots/", MAKE)
        .commit();
    for level in LEVELS {
        lab = lab.data("x", format!("{level}\n"));
        lab.ce_run(&[]).exit(0);
    }
    lab
}

fn open(lab: &Lab) -> Storage {
    Storage::open(&lab.path("storage"), Unrecorded::Refuse, Durability::Unsynced).unwrap()
}

/// An output of the call at a level.
fn output(lab: &Lab, storage: &Storage, level: &str, number: usize) -> Stored {
    output_in(&lab.path("storage"), storage, level, number).unwrap()
}

/// The same, by the path of the storage.
fn output_in(
    place: &Path,
    storage: &Storage,
    level: &str,
    number: usize,
) -> Result<Stored, StorageError> {
    let input = Digest::hash_bytes(format!("{level}\n").as_bytes()).sha1.short();
    let versions = place.join("c_make").read_dir().unwrap();
    let mut versions = versions.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let version = versions.find(|name| name != "commits").unwrap();
    let name = format!("c_make/{version}/{number:02}/{input}");
    storage.inputs().literal(&name).map(Option::unwrap)
}

fn header() -> RecipeHeader {
    RecipeHeader {
        columns: vec!["00 tenfold".to_owned()],
        allow_failed: true,
        names: vec!["x".to_owned()],
        outputs: vec!["tenfold".to_owned(), "plots/".to_owned()],
        ..RecipeHeader::default()
    }
}

/// The sweep over all levels, and one more that failed.
fn sweep(lab: &Lab, storage: &Storage) -> Sweep {
    sweep_in(&lab.path("storage"), storage).unwrap()
}

/// The same, by the path of the storage.
fn sweep_in(place: &Path, storage: &Storage) -> Result<Sweep, StorageError> {
    let mut recipe = RecipeWriter::begin(Vec::new(), &header()).unwrap();
    let (mut table, mut points, mut members) = (Vec::new(), Vec::new(), Vec::new());
    for level in LEVELS {
        let output = |number| output_in(place, storage, level, number);
        let outputs = [output(0)?, output(1)?];
        let files = outputs.iter().map(|it| (it.name.as_str(), &it.digest));
        recipe.row([level], files).unwrap();
        table.extend(format!("{{\"x\":{level},\"tenfold\":{level}0,\"status\":\"ok\"}}\n").bytes());
        points.extend(format!("{{\"x\":\"{level}\"}}\n").bytes());
        for (output, name) in outputs.into_iter().zip(["tenfold", "plots"]) {
            members.push((format!("x={level}/{name}"), output));
        }
    }
    recipe.failed_row(["3"]).unwrap();
    table.extend(b"{\"x\":3,\"tenfold\":null,\"status\":\"failed\"}\n");
    let directory = TableDirectory { points, members };
    Ok(Sweep { recipe: LongText::of_bytes(recipe.finish()), table, directory })
}

impl Sweep {
    /// The text of the table.
    fn text(&self) -> LongText<'_> {
        LongText::of_bytes(&self.table)
    }

    /// Publishes the table, and the directory if it is wanted.
    fn publish(&self, storage: &Storage, with_directory: bool) -> ResultName {
        let directory = Some(&self.directory).filter(|_| with_directory);
        let outputs = storage.tables().publish(&self.recipe, &self.text(), directory).unwrap();
        storage.flush().unwrap();
        assert_eq!(outputs.files.len(), 1 + usize::from(with_directory));
        let found = storage.tables().find(&self.recipe, with_directory).unwrap();
        assert_eq!(found, FoundTable::Hit(outputs.clone()));
        outputs.name
    }

    /// Returns the reason why the table is not found; empty if nothing is damaged.
    fn damage(&self, storage: &Storage, with_directory: bool) -> String {
        match storage.tables().find(&self.recipe, with_directory).unwrap() {
            FoundTable::Absent { damage: Some(damage), .. } => {
                format!("{}: {}", damage.file, damage.what)
            }
            FoundTable::Absent { damage: None, .. } => String::new(),
            FoundTable::Hit(outputs) => panic!("{outputs:?}"),
        }
    }
}

/// A path below the storage.
fn stored(lab: &Lab, name: &str) -> PathBuf {
    lab.path("storage").join(name)
}

fn record(lab: &Lab, name: &ResultName) -> Value {
    let place = name.short().replacen("tables", "tables/record", 1);
    serde_json::from_str(&lab.stored(&format!("{place}.json"))).unwrap()
}

/// Returns the names in quarantine.
fn aside(lab: &Lab) -> Vec<String> {
    let names = lab.storage().into_iter().filter(|name| name.contains("aside/"));
    names.map(|name| name.rsplit('/').next().unwrap().to_owned()).collect()
}
