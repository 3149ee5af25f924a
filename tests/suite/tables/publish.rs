//! Tables are published and found, with and without the directory of their outputs.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::thread;

use compeval::manifest::{Manifest, Scan};
use compeval::storage::{
    FoundTable, LongText, RecipeHeader, RecipeWriter, ResultName, StorageError,
};

use super::{aside, lab, open, output, record, stored, sweep};

#[test]
fn a_table_is_found_after_it_was_published() {
    let lab = lab();
    let storage = open(&lab);
    let sweep = sweep(&lab, &storage);
    let FoundTable::Absent { name, damage: None } =
        storage.tables().find(&sweep.recipe, false).unwrap()
    else {
        panic!("it was found");
    };
    let digits = sweep.recipe.digest().sha1.short();
    assert_eq!(name.short(), format!("tables/{}/{}", &digits[..2], &digits[2..]));
    assert_eq!(sweep.publish(&storage, false), name);
    assert_eq!(fs::read(stored(&lab, &name.output(0))).unwrap(), sweep.table);
    let mut recipe = Vec::new();
    sweep.recipe.write(&mut recipe).unwrap();
    assert_eq!(fs::read(stored(&lab, &name.recipe())).unwrap(), recipe);
    for file in [name.output(0), name.recipe()] {
        let mode = fs::metadata(stored(&lab, &file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o222, 0, "{file}");
    }
    let record = record(&lab, &name);
    assert_eq!(
        (record["format"].as_u64(), record["outputs"].as_array().unwrap().len()),
        (Some(1), 1)
    );
    assert_eq!(record["recipe"]["sha1"], sweep.recipe.digest().sha1.full());
    drop(storage);
    let storage = open(&lab);
    let before = fs::metadata(stored(&lab, &name.output(0))).unwrap().ino();
    assert_eq!(sweep.publish(&storage, false), name);
    assert_eq!(fs::metadata(stored(&lab, &name.output(0))).unwrap().ino(), before);
    drop(storage);
    assert!(lab.is_tidy());
}

#[test]
fn a_directory_is_added_when_it_is_wanted() {
    let lab = lab();
    let storage = open(&lab);
    let sweep = sweep(&lab, &storage);
    let name = sweep.publish(&storage, false);
    assert_eq!(sweep.damage(&storage, true), "");
    let digest = storage.tables().directory_digest(&sweep.directory).unwrap();
    assert!(!stored(&lab, &name.output(1)).exists());
    let table = fs::metadata(stored(&lab, &name.output(0))).unwrap().ino();
    assert_eq!(sweep.publish(&storage, true), name);
    assert_eq!(fs::metadata(stored(&lab, &name.output(0))).unwrap().ino(), table);
    let record = record(&lab, &name);
    assert_eq!(record["format"], 2);
    assert_eq!(record["outputs"][1]["sha1"], digest.sha1.full());
    // A table alone is enough for one who wants no more.
    assert!(matches!(
        storage.tables().find(&sweep.recipe, false).unwrap(),
        FoundTable::Hit(outputs) if outputs.files.len() == 1
    ));
    drop(storage);
    assert!(lab.is_tidy());
}

#[test]
fn a_directory_has_the_outputs_under_the_names_of_their_points() {
    let lab = lab();
    let storage = open(&lab);
    let sweep = sweep(&lab, &storage);
    let name = sweep.publish(&storage, true);
    let directory = stored(&lab, &name.output(1));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let read: Manifest = Scan::at(&directory, &stop)
        .and_then(|scan| scan.read(&stop, &std::sync::atomic::AtomicU64::new(0)))
        .unwrap();
    assert_eq!(read.digest(), storage.tables().directory_digest(&sweep.directory).unwrap());
    let mut lines = Vec::new();
    read.write(&mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let lines: Vec<String> = lines
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            format!("{} {}", words[0], words[words.len() - 1])
        })
        .collect();
    let expected = [
        "compeval 1",
        "file points.ndjson",
        "file x=1/plots/d/x",
        "link d/x\tx=1/plots/link",
        "dir x=1/plots/none",
        "file x=1/tenfold",
        "exec x=2/plots/d/x",
        "link d/x\tx=2/plots/link",
        "dir x=2/plots/none",
        // An output that is a file is never executable here.
        "file x=2/tenfold",
    ];
    assert_eq!(lines, expected);
    // Files that can be shared are shared.
    for (member, level, number, path, shared) in [
        ("x=1/tenfold", "1", 0, "", true),
        ("x=2/tenfold", "2", 0, "", false),
        ("x=1/plots/d/x", "1", 1, "/d/x", true),
        ("x=2/plots/d/x", "2", 1, "/d/x", true),
    ] {
        let original = output(&lab, &storage, level, number).name + path;
        let inode = |path| fs::metadata(path).unwrap().ino();
        let is_shared = inode(directory.join(member)) == inode(stored(&lab, &original));
        assert_eq!(is_shared, shared, "{member}");
    }
    for entry in walkdir::WalkDir::new(&directory) {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().mode();
        assert!(entry.path_is_symlink() || mode & 0o222 == 0, "{mode:o} {entry:?}");
    }
}

#[test]
fn a_file_that_changed_meanwhile_is_not_gathered() {
    for number in [0, 1] {
        let lab = lab();
        let storage = open(&lab);
        let sweep = sweep(&lab, &storage);
        let changed = output(&lab, &storage, "1", number).name;
        let file = stored(&lab, &changed).join(if number == 0 { "" } else { "d/x" });
        let file: std::path::PathBuf = file.components().collect();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&file, "another").unwrap();
        let published =
            storage.tables().publish(&sweep.recipe, &sweep.text(), Some(&sweep.directory));
        assert!(matches!(published, Err(StorageError::Changed(_))), "{published:?}");
        assert_eq!(sweep.damage(&storage, false), "");
        // The table itself needs no files.
        sweep.publish(&storage, false);
        drop(storage);
        assert!(lab.is_tidy());
    }
}

#[test]
fn outputs_that_do_not_fit_into_one_directory_are_refused() {
    let lab = lab();
    let storage = open(&lab);
    for path in ["points.ndjson", "x=1/tenfold", "x=1/tenfold/a", "../a", "/a", ""] {
        let mut sweep = sweep(&lab, &storage);
        let member = output(&lab, &storage, "2", 0);
        sweep.directory.members.push((path.to_owned(), member));
        let published =
            storage.tables().publish(&sweep.recipe, &sweep.text(), Some(&sweep.directory));
        assert!(matches!(published, Err(StorageError::Gathered(_))), "{path}: {published:?}");
        assert!(storage.tables().directory_digest(&sweep.directory).is_err());
    }
    drop(storage);
    assert!(lab.is_tidy() && !lab.storage().iter().any(|name| name.starts_with("tables/")));
}

/// The entries in the place of a part of a table, or of its record.
#[test]
fn entries_in_the_place_of_a_table_go_to_quarantine() {
    for part in ["00", "01", "recipe", "record.json"] {
        for way in ["other", "directory", "link", "nothing"] {
            let lab = lab();
            let storage = open(&lab);
            let sweep = sweep(&lab, &storage);
            let name = sweep.publish(&storage, true);
            let place = match part {
                "record.json" => name.short().replacen("tables", "tables/record", 1) + ".json",
                part => format!("{}/{part}", name.short()),
            };
            let place = stored(&lab, &place);
            fs::rename(&place, lab.path("away")).unwrap();
            match way {
                "other" => fs::write(&place, "other").unwrap(),
                "directory" => fs::create_dir(&place).unwrap(),
                "link" => std::os::unix::fs::symlink(lab.path("away"), &place).unwrap(),
                _ => {}
            }
            let damage = sweep.damage(&storage, true);
            assert_eq!(damage.is_empty(), way == "nothing", "{part} {way}: {damage}");
            assert_eq!(sweep.publish(&storage, true), name, "{part} {way}");
            let expected = if way == "nothing" { vec![] } else { vec![part] };
            // An empty directory holds no file.
            let expected = if way == "directory" { vec![] } else { expected };
            assert_eq!(aside(&lab), expected, "{part} {way}");
            drop(storage);
            assert!(lab.is_tidy());
        }
    }
}

#[test]
fn a_correct_table_of_a_dead_run_is_used() {
    let lab = lab();
    let storage = open(&lab);
    let sweep = sweep(&lab, &storage);
    let name = sweep.publish(&storage, true);
    let record = stored(&lab, &name.short().replacen("tables", "tables/record", 1));
    fs::remove_file(record.with_extension("json")).unwrap();
    let inode = |file: &str| fs::metadata(stored(&lab, file)).unwrap().ino();
    let files = [name.output(0), name.output(1), name.recipe()];
    let before = files.each_ref().map(|file| inode(file));
    assert_eq!(sweep.damage(&storage, false), "");
    assert_eq!(sweep.publish(&storage, true), name);
    assert_eq!(files.each_ref().map(|file| inode(file)), before);
    assert_eq!(aside(&lab), [""; 0]);
}

/// Recipes whose SHA-1s are the same in the digits that names show.
const COLLIDING: [&str; 2] = ["1716699", "17542600"];

#[test]
fn recipes_of_one_short_name_are_two_tables() {
    let lab = lab();
    let recipe = |column: &str| {
        let columns = vec![column.to_owned()];
        let header = RecipeHeader { columns, ..RecipeHeader::default() }.before_version_4(false);
        LongText::of_bytes(RecipeWriter::begin(Vec::new(), &header).unwrap().finish())
    };
    let [one, other] = COLLIDING.map(recipe);
    assert_eq!(one.digest().sha1.short(), other.digest().sha1.short());
    let storage = open(&lab);
    // Another run has looked before either was published.
    let beside = open(&lab);
    assert!(matches!(beside.tables().find(&other, false).unwrap(), FoundTable::Absent { .. }));
    let first = storage.tables().publish(&one, &LongText::of_bytes(b"one"), None).unwrap();
    let second = beside.tables().publish(&other, &LongText::of_bytes(b"other"), None).unwrap();
    let digits = other.digest().sha1.full();
    assert_eq!(second.name.short(), format!("tables/{}/{}", &digits[..2], &digits[2..]));
    for (recipe, outputs) in [(&one, &first), (&other, &second)] {
        let found = storage.tables().find(recipe, false).unwrap();
        assert_eq!(found, FoundTable::Hit(outputs.clone()));
    }
    // The one with the long name is found although the other one is gone.
    let record = |name: &ResultName| {
        let record = name.short().replacen("tables", "tables/record", 1);
        stored(&lab, &record).with_extension("json")
    };
    fs::remove_dir_all(stored(&lab, &first.name.short())).unwrap();
    fs::remove_file(record(&first.name)).unwrap();
    assert_eq!(storage.tables().find(&other, false).unwrap(), FoundTable::Hit(second.clone()));
    assert_eq!(
        storage.tables().publish(&one, &LongText::of_bytes(b"one"), None).unwrap().name,
        first.name
    );
    // A recipe keeps its name before it has a record.
    fs::remove_file(record(&first.name)).unwrap();
    fs::remove_dir_all(stored(&lab, &second.name.short())).unwrap();
    fs::remove_file(record(&second.name)).unwrap();
    assert_eq!(
        storage.tables().publish(&other, &LongText::of_bytes(b"other"), None).unwrap().name,
        second.name
    );
    assert_eq!(aside(&lab), [""; 0]);
}

#[test]
fn runs_at_once_end_with_the_same_table() {
    for with_directory in [false, true] {
        let lab = lab();
        let name = {
            let storage = open(&lab);
            let sweep = sweep(&lab, &storage);
            let runs: [_; 4] = std::array::from_fn(|_| open(&lab));
            let names: Vec<_> = thread::scope(|scope| {
                let sweep = &sweep;
                let publish = |storage| scope.spawn(move || sweep.publish(storage, with_directory));
                let runs: Vec<_> = runs.iter().map(publish).collect();
                runs.into_iter().map(|run| run.join().unwrap()).collect()
            });
            assert!(names.iter().all(|name| *name == names[0]));
            names[0].clone()
        };
        assert_eq!(
            record(&lab, &name)["outputs"].as_array().unwrap().len(),
            1 + usize::from(with_directory)
        );
        assert_eq!(aside(&lab), [""; 0]);
        assert!(lab.is_tidy());
    }
}
