//! Damaged tables are found by `ce verify`, repaired, and made again; foreign files do no harm.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use compeval::storage::LongText;

use super::{aside, lab, open, stored, sweep};

/// Writes over a file that is read-only, with its old time.
fn overwrite(path: &Path) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    let contents = fs::read(path).unwrap();
    fs::write(path, contents.iter().rev().copied().collect::<Vec<u8>>()).unwrap();
    fs::File::open(path).unwrap().set_modified(modified).unwrap();
}

#[test]
fn a_damaged_part_is_found_and_made_again() {
    for part in ["00", "01/points.ndjson", "recipe"] {
        let lab = lab();
        let storage = open(&lab);
        let sweep = sweep(&lab, &storage);
        let name = sweep.publish(&storage, true);
        drop(storage);
        lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
        overwrite(&stored(&lab, &format!("{}/{part}", name.short())));
        let value = part.split('/').next().unwrap();
        lab.run("ce", &["verify", "../storage"])
            .exit(5)
            .says("1 wrong, 0 odd")
            .shows(&format!("{}/{value}", name.short()));
        lab.run("ce", &["verify", "--repair", "../storage"]).exit(5).says("1 wrong");
        let kept = aside(&lab);
        assert!(kept.contains(&"record.json".to_owned()) && kept.contains(&"recipe".to_owned()));
        lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
        let storage = open(&lab);
        assert_eq!(sweep.damage(&storage, false), "");
        assert_eq!(sweep.publish(&storage, true), name);
        drop(storage);
        lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
    }
}

#[test]
fn a_record_under_another_name_is_damage() {
    let lab = lab();
    let storage = open(&lab);
    let sweep = sweep(&lab, &storage);
    let name = sweep.publish(&storage, false);
    drop(storage);
    let record = stored(&lab, &name.short().replacen("tables", "tables/record", 1));
    let record = record.with_extension("json");
    let text = fs::read_to_string(&record).unwrap();
    let digits = sweep.recipe.digest().sha1.full();
    fs::write(&record, text.replace(&digits, &"0".repeat(40))).unwrap();
    lab.run("ce", &["verify", "../storage"]).exit(5).shows("belongs to another name");
    let storage = open(&lab);
    assert!(sweep.damage(&storage, false).ends_with("the record belongs to another name"));
    // A newer program may know the entry.
    fs::write(&record, text.replace("\"format\": 1", "\"format\": 9")).unwrap();
    let found = storage.tables().find(&sweep.recipe, false).unwrap_err();
    assert!(found.to_string().contains("has format 9"), "{found}");
    assert!(storage.tables().publish(&sweep.recipe, &sweep.text(), None).is_err());
    assert!(fs::read_to_string(&record).unwrap().contains("\"format\": 9"));
}

#[test]
fn tables_without_a_record_and_foreign_files_are_harmless() {
    let lab = lab();
    let storage = open(&lab);
    let sweep = sweep(&lab, &storage);
    let name = sweep.publish(&storage, true);
    drop(storage);
    fs::write(stored(&lab, "tables/README"), "mine").unwrap();
    fs::create_dir_all(stored(&lab, "tables/ab/cd/ef")).unwrap();
    fs::write(stored(&lab, "tables/ab/file"), "mine").unwrap();
    fs::create_dir_all(stored(&lab, "tables/notes/of/mine")).unwrap();
    fs::create_dir_all(stored(&lab, "tables/record/ab/cd")).unwrap();
    fs::write(stored(&lab, "tables/record/ab/cd/ef.json"), "mine").unwrap();
    lab.run("ce", &["verify", "../storage"])
        .exit(0)
        .says("0 wrong, 1 odd")
        .shows("tables/ab/cd/ef: it has no record (harmless)");
    lab.run("ce", &["gc", "--older=0s", "--no-keep", "--delete", "../storage"]).exit(0);
    for mine in ["README", "ab/file", "record/ab/cd/ef.json"] {
        assert!(stored(&lab, &format!("tables/{mine}")).is_file(), "{mine}");
    }
    let lab = super::lab();
    let storage = open(&lab);
    assert_eq!(sweep.publish(&storage, true), name);
    drop(storage);
    let record = stored(&lab, &name.short().replacen("tables", "tables/record", 1));
    fs::remove_file(record.with_extension("json")).unwrap();
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 3 odd");
}

/// A link in the place of a directory is reported, and nothing behind it is read or written.
#[test]
fn a_link_in_the_place_of_a_directory_is_not_followed() {
    for part in ["tables", "tables/HH", "tables/HH/H10"] {
        let lab = lab();
        let storage = open(&lab);
        let sweep = sweep(&lab, &storage);
        let name = sweep.publish(&storage, false).short();
        drop(storage);
        let [_, first, rest] = name.split('/').collect::<Vec<_>>()[..] else { panic!("{name}") };
        let part = part.replace("H10", rest).replace("HH", first);
        fs::rename(stored(&lab, &part), lab.path("away")).unwrap();
        std::os::unix::fs::symlink(lab.path("away"), stored(&lab, &part)).unwrap();
        let before = crate::lab::snapshot(&lab.path("away"));
        let ran = lab.run("ce", &["verify", "../storage"]).exit(5);
        ran.shows(&format!("{part}: it is a symbolic link in the place of a directory"));
        let storage = open(&lab);
        assert!(
            storage.tables().publish(&sweep.recipe, &LongText::of_bytes("another"), None).is_err(),
            "{part}"
        );
        drop(storage);
        lab.run("ce", &["gc", "--older=0s", "--no-keep", "--delete", "../storage"]).exit(5);
        assert_eq!(crate::lab::snapshot(&lab.path("away")), before);
    }
}
