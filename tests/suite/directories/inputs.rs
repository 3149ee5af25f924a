//! Directories that a task is given, and that a workflow names.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::{entries, is_sound, records, stored, values, within, write_over};
use crate::lab::Lab;
use crate::program::Ran;

/// A computation that lists the contents of two inputs, files or directories.
const TELL: &str = r#"for i in "$1" "$2"; do
        [ -d "$i" ] && (cd "$i" && find . | LC_ALL=C sort && cat $(find . -type f | LC_ALL=C sort)) || cat "$i"
    done >"$3""#;

const TASK: &str = "Inputs: 'x', 'y'\n(tell INPUT('x') INPUT('y'))[0]";

fn lab() -> Lab {
    let lab = Lab::task(TASK).computation("tell", "a b", "all", TELL).commit();
    make_dir(&lab, "x");
    lab
}

fn make_dir(lab: &Lab, name: &str) {
    let dir = lab.path("data").join(name);
    drop(fs::remove_file(&dir));
    fs::create_dir_all(dir.join("d/empty")).unwrap();
    fs::write(dir.join("d/f"), "f\n").unwrap();
    fs::write(dir.join("run"), "r\n").unwrap();
    fs::set_permissions(dir.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("d/f", dir.join("l")).unwrap();
}

#[test]
fn a_directory_is_copied_and_found_again_by_any_path() {
    let lab = lab();
    lab.ce_run(&[]).exit(0).called(vec!["tell"]);
    assert_eq!(lab.output(), ".\n./d\n./d/empty\n./d/f\n./l\n./run\nf\nr\n5\n");
    lab.ce_run(&[]).exit(0).called(vec![]);
    lab.ce_run(&["-q"]).exit(0).called(vec![]);
    let dirs: Vec<_> =
        values(&lab, "tinputs/").into_iter().filter(|it| stored(&lab, it).is_dir()).collect();
    assert_eq!(dirs.len(), 1);
    let all =
        ["dir 555 d", "dir 555 d/empty", "file 444 d/f f\\n", "link l -> d/f", "file 555 run r\\n"];
    assert_eq!(entries(&stored(&lab, &dirs[0])), all);
    is_sound(&lab);
    // It is given by any path to it.
    symlink("x", lab.path("data/link")).unwrap();
    let y = "../data/y";
    for x in ["../data/x/", "../data/link", "../data/link/", "../data/x/d/..", "../data/x/."] {
        lab.run("ce-run", &["../storage", x, y]).exit(0).called(vec![]);
        lab.run("ce-run", &["../storage", &format!("x={x}"), y]).exit(0).called(vec![]);
    }
    // The user's stays as it was; what changes it makes another value.
    let dir = lab.path("data/x");
    fs::write(dir.join("d/f"), "g\n").unwrap();
    lab.ce_run(&["-q"]).exit(0).called(vec!["tell"]);
    fs::write(dir.join("d/f"), "f\n").unwrap();
    lab.ce_run(&["-q"]).exit(0).called(vec![]);
    fs::set_permissions(dir.join("run"), fs::Permissions::from_mode(0o644)).unwrap();
    lab.ce_run(&["-q"]).exit(0).called(vec!["tell"]);
    fs::remove_dir(dir.join("d/empty")).unwrap();
    lab.ce_run(&[]).exit(0).called(vec!["tell"]);
    is_sound(&lab);
}

#[test]
fn invalid_values_are_reported() {
    let lab = lab();
    let dir = lab.path("data/x");
    fs::create_dir(dir.join("d/.git")).unwrap();
    symlink("/etc", dir.join("out")).unwrap();
    let is_told = |ran: Ran<'_>| {
        let ran = ran.exit(2).says("the input x cannot be used");
        let ran = ran.says("../data/x cannot be a value").says("\n  try: ");
        assert!(!ran.stderr.contains("storage/tmp"), "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("d/.git belongs").count(), 1, "{}", ran.stderr);
    };
    is_told(lab.ce_run(&[]));
    assert!(!lab.path("storage").exists(), "no storage is made for it");
    fs::create_dir_all(lab.path("storage/tinputs")).unwrap();
    is_told(lab.ce_run(&[]));
    assert!(lab.is_tidy());
    assert_eq!(values(&lab, ""), [""; 0]);
    // A literal is reported alike.
    let lab = Lab::task("Inputs:\n(tell FILE('data/x') FILE('data/x'))[0]")
        .computation("tell", "a b", "all", TELL)
        .commit();
    fs::create_dir_all(lab.path("storage/tinputs")).unwrap();
    fs::create_dir_all(lab.path("storage/data/x/.git")).unwrap();
    for options in [&[][..], &["-n"]] {
        lab.ce_run(options).exit(2).says("data/x cannot be a value").says(".git belongs to a Git");
    }
}

/// A file with the text of a manifest, and the directory: two values of one SHA-1.
#[test]
fn a_directory_is_not_the_file_that_describes_it() {
    let lab = lab();
    let manifest = lab.run("ce", &["show", "--manifest", "../data/x"]).exit(0).stdout;
    let lab = lab.data("y", &manifest);
    lab.ce_run(&[]).exit(0).called(vec!["tell"]);
    let told = lab.output();
    assert!(told.contains("./d/f\n") && told.ends_with(&manifest), "{told}");
    assert_eq!(values(&lab, "tinputs/").len(), 2, "{:?}", values(&lab, "tinputs/"));
    // The other way round, the same twice, and each alone: four calls.
    for order in [["y", "x"], ["x", "x"], ["y", "y"], ["x", "y"]] {
        let paths = order.map(|name| format!("../data/{name}"));
        let ran = lab.run("ce-run", &["-q", "../storage", &paths[0], &paths[1]]).exit(0);
        let text = lab.stored(ran.lines()[0]);
        let expected = if order[0] == "x" { ".\n./d\n" } else { "compeval directory 1\n" };
        assert!(text.starts_with(expected), "{order:?} {text}");
    }
    assert_eq!(lab.called().len(), 3);
    assert_eq!(values(&lab, "c_").len(), 4);
    is_sound(&lab);
    // In a new storage, in the other order.
    fs::rename(lab.path("storage"), lab.path("old")).unwrap();
    lab.run("ce-run", &["-q", "../storage", "../data/y", "../data/x"]).exit(0).called(vec!["tell"]);
    lab.ce_run(&[]).exit(0).called(vec!["tell"]);
    assert_eq!(lab.output(), told);
    is_sound(&lab);
}

/// Their manifests have the same first twelve digits.
#[test]
fn directories_whose_names_collide_are_told_apart() {
    let lab =
        Lab::task(TASK).computation("tell", "a b", "tree/", r#"cp -r "$1/." "$2/." "$3""#).commit();
    for (name, inner) in [("x", "1435704"), ("y", "4858024")] {
        fs::remove_file(lab.path("data").join(name)).unwrap();
        fs::create_dir_all(lab.path("data").join(name).join(inner)).unwrap();
    }
    lab.ce_run(&[]).exit(0).called(vec!["tell"]);
    let names = values(&lab, "tinputs/");
    assert!(names[1].starts_with(&names[0]) && names[1].ends_with('d'), "{names:?}");
    for (order, all) in [(["y", "x"], 2), (["x", "x"], 1), (["y", "y"], 1)] {
        let [x, y] = order.map(|name| format!("../data/{name}"));
        let ran = lab.run("ce-run", &["-q", "../storage", &x, &y]).exit(0).called(vec!["tell"]);
        let made = entries(&stored(&lab, ran.lines()[0].trim_start_matches("../storage/")));
        assert_eq!(made.len(), all);
        let first = if order[0] == "x" { "1435704" } else { "4858024" };
        assert!(made.contains(&format!("dir 555 {first}")), "{order:?} {made:?}");
        lab.run("ce-run", &["../storage", &x, &y]).exit(0).called(vec![]);
    }
    lab.ce_run(&[]).exit(0).called(vec![]);
    is_sound(&lab);
}

/// An entry of another kind in its place in the storage is replaced.
#[test]
fn a_damaged_copy_is_made_again() {
    let ways: [fn(&Path); 4] = [
        |place| write_over(&place.join("d/f"), "x\n"),
        |place| fs::remove_dir_all(place).unwrap(),
        |place| {
            fs::remove_dir_all(place).unwrap();
            fs::write(place, "file").unwrap();
        },
        |place| within(place, |place| fs::create_dir(place.join(".git")).unwrap()),
    ];
    for (at, way) in ways.iter().enumerate() {
        let lab = lab();
        lab.ce_run(&[]).exit(0).called(vec!["tell"]);
        let place = values(&lab, "tinputs/")
            .into_iter()
            .map(|it| stored(&lab, &it))
            .find(|it| it.is_dir())
            .unwrap();
        let before = entries(&place);
        way(&place);
        lab.ce_run(&[]).exit(0);
        assert_eq!(entries(&place), before, "{at}");
        lab.called();
        is_sound(&lab);
    }
}

/// An output, the output of a job and a task input can each be named.
#[test]
fn a_literal_may_be_a_directory() {
    let task = "Inputs: 'x'\n(make INPUT('x'))[0]";
    let make = || {
        let lab = Lab::task(task)
            .computation("make", "a", "tree/", r#"cp "$1" "$2/f""#)
            .computation("tell", "a b", "all", TELL)
            .commit();
        lab.ce_run(&[]).exit(0).called(vec!["make"]);
        lab
    };
    for prefix in ["c_", "t_"] {
        let lab = make();
        let name = values(&lab, prefix).remove(0);
        let text = format!("Inputs: 'x'\n(tell FILE('{name}') INPUT('x'))[0]");
        fs::remove_dir_all(lab.path("task/workflow")).unwrap();
        crate::lisp::write(&lab.path("task"), &crate::lisp::text(&text));
        let lab = lab.commit_again();
        lab.ce_run(&[]).exit(0).called(vec!["tell"]);
        assert_eq!(lab.output(), ".\n./f\n17\n17\n");
        lab.ce_run(&[]).exit(0).called(vec![]);
        lab.ce_run(&["-q"]).exit(0).called(vec![]);
        let job =
            records(&lab, "t_").into_iter().find(|job| job["literals"][0].is_object()).unwrap();
        assert_eq!(job["format"], 2);
        is_sound(&lab);
        // A change is noticed by the quick look as well.
        let value = stored(&lab, &values(&lab, "c_make/")[0]);
        write_over(&value.join("f"), "71\n");
        lab.ce_run(&["-q"]).exit(0).called(vec!["tell"]);
    }
}
