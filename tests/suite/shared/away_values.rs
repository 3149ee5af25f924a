//! Outputs that are away where not a call, but a value is made of them: members of directories, tables, points.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::away::{away, room};
use super::salt;
use crate::lab::Lab;

/// Makes a directory, which depends on a file that nobody declares, if there is one.
const MAKE: &str = r#"cp "$1" "$2/one"; mkdir "$2/b"; echo two >"$2/b/two"
[ ! -e "$LAB_LOG.salt" ] || cat "$LAB_LOG.salt" >>"$2/b/two""#;

/// Three calls read a directory, a member of it, and their outputs. The directory is away.
fn members() -> Lab {
    let make = "(make INPUT('x'))[0]";
    let text = format!(
        "Inputs: 'x', 'y'\n(mix (list {make} INPUT('y'))[0] (copy MEMBER('one' {make}))[0])[0]"
    );
    let mut lab = Lab::task(&text)
        .computation("make", "a", "tree/", MAKE)
        .computation("list", "a\nb", "c", r#"ls "$1" "$2" >"$3""#)
        .computation("copy", "a", "b", r#"cat "$1" >"$2""#)
        .computation("mix", "a\nb", "c", r#"cat "$1" "$2" >"$3""#)
        .data("x", "x\n")
        .data("y", "y\n");
    lab.inputs = vec!["x".to_owned(), "y".to_owned()];
    let lab = lab.commit();
    lab.ce_run(&[]).exit(0).called(vec!["copy", "list", "make", "mix"]);
    let tree = trees(&lab).remove(0);
    let marker = PathBuf::from(tree.to_str().unwrap().replace("/00/", "/away/"));
    fs::create_dir_all(marker.parent().unwrap()).unwrap();
    fs::write(marker, "").unwrap();
    for directory in [&tree, &tree.join("b")] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::remove_dir_all(tree).unwrap();
    lab
}

/// The directories that `make` has made.
fn trees(lab: &Lab) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(lab.path("storage/c_make")).into_iter();
    let paths = entries.map(|entry| entry.unwrap().path().to_owned());
    let is_tree = |path: &PathBuf| path.parent().is_some_and(|parent| parent.ends_with("00"));
    paths.filter(is_tree).filter(|path| !path.to_str().unwrap().contains("/aside/")).collect()
}

#[test]
fn a_member_of_an_absent_directory_demands_the_directory() {
    let lab = members();
    // Only the directory identifies the member.
    lab.ce_run(&["-n"]).exit(3).says("make").says("its outputs are away, and needed");
    lab.ce_run(&[]).exit(0).called(vec!["make"]).says("4 calls: 3 reused, 1 computed");
    assert_eq!(trees(&lab).len(), 1);
    lab.ce_run(&["-n"]).exit(0).says("4 calls: 4 reused");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd and harmless\n");
}

#[test]
fn a_differing_directory_is_reported_with_its_first_differing_member() {
    let lab = members();
    salt(&lab, "salt\n");
    let told = lab.ce_run(&[]).exit(1).called(vec!["make"]);
    told.says("output 00 was ").says("b/two").says("; 1 recorded call was made from what");
    assert!(trees(&lab).is_empty());
    let aside = room(&lab, "storage", "c_make", "aside");
    assert!(aside.iter().any(|it| it.ends_with("/00/b/two")), "{aside:?}");
}

/// A sweep whose points a call makes.
fn points() -> Lab {
    let text = "Inputs: 'x'\nSWEEP(:columns '00 value' :body (copy INPUT('n'))[00] \
                :points (derive INPUT('x'))[00])[00]";
    let mut lab = Lab::task(text)
        .computation("derive", "a", "b", r#"for n in 1 2 3; do echo "{\"n\":$n}"; done >"$2""#)
        .computation("copy", "a", "b", r#"cat "$1" >"$2""#)
        .data("x", "x\n");
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    lab.ce_run(&[]).exit(0).called(vec!["copy", "copy", "copy", "derive"]);
    lab
}

#[test]
fn a_table_that_is_there_needs_no_outputs_and_one_that_is_made_demands_them() {
    let lab = points();
    away(&lab, "storage", "copy");
    lab.ce_run(&[]).exit(0).called(vec![]).says("4 calls: 1 reused, 3 away; 1 table: 1 reused");
    let table = fs::read_to_string(table(&lab)).unwrap();
    fs::remove_dir_all(lab.path("storage/tables")).unwrap();
    let told = lab.ce_run(&["-n"]).exit(3).called(vec![]);
    told.says("4 calls: 1 reused, 3 missing; 1 table: 1 missing");
    let told = lab.ce_run(&[]).exit(0).called(vec!["copy", "copy", "copy"]);
    told.says("4 calls: 1 reused, 3 computed; 1 table: 1 made");
    assert_eq!(fs::read_to_string(self::table(&lab)).unwrap(), table);
}

/// The table of the sweep.
fn table(lab: &Lab) -> PathBuf {
    let tables = walkdir::WalkDir::new(lab.path("storage/tables")).into_iter();
    let mut paths = tables.map(|entry| entry.unwrap().path().to_owned());
    paths.find(|path: &PathBuf| path.ends_with("00") && Path::is_file(path)).unwrap()
}

#[test]
fn points_that_are_away_are_demanded() {
    let lab = points();
    away(&lab, "storage", "derive");
    away(&lab, "storage", "copy");
    lab.ce_run(&["-n"]).exit(3).called(vec![]).says("at least 1 call: 1 missing");
    let told = lab.ce_run(&[]).exit(0).called(vec!["derive"]);
    told.says("4 calls: 3 away, 1 computed; 1 table: 1 reused");
}
