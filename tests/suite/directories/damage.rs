//! Verification, repair and collection of directories.

use std::fs;

use super::{is_sound, made_by, output, values, within, write_over};
use crate::lab::Lab;

const SCRIPT: &str =
    r#"cd "$2"; mkdir d; for i in 1 2 3 4 5 6 7; do echo $i >d/$i; done; ln -s d/1 l"#;

fn evaluated() -> Lab {
    let lab = made_by(SCRIPT).commit();
    lab.ce_run(&[]).exit(0).called(vec!["make"]);
    lab
}

#[test]
fn verification_names_the_differing_entries() {
    let lab = evaluated();
    let dir = output(&lab);
    within(&dir, |dir| {
        write_over(&dir.join("d/1"), "x\n");
        fs::write(dir.join("new"), "").unwrap();
        within(&dir.join("d"), |inner| {
            fs::remove_file(inner.join("2")).unwrap();
            fs::write(inner.join("a\nb"), "").unwrap();
        });
        fs::remove_file(dir.join("l")).unwrap();
    });
    let differ = "it is not the recorded directory: d/1 was changed, d/2 is missing, \
                  d/a\\x0ab was added, l is missing, new was added\n";
    for options in [&["verify"][..], &["verify", "--sample=100"]] {
        lab.run("ce", &[options, &["../storage"]].concat()).exit(5).shows(differ);
    }
    let record =
        lab.storage().into_iter().find(|it| it.starts_with("c_") && it.contains("/record/"));
    let from = format!("--from={}", record.unwrap());
    lab.run("ce", &["verify", &from, "../storage"]).exit(5).shows(differ);
    lab.run("ce", &["verify", "--repair", "../storage"]).exit(5);
    assert_eq!(values(&lab, "c_"), [""; 0]);
    lab.ce_run(&[]).exit(0).called(vec!["make"]);
    is_sound(&lab);
    // What no value has is named.
    within(&dir, |dir| std::os::unix::fs::symlink("/etc", dir.join("out")).unwrap());
    let told = "it is not the recorded directory: out is a symbolic link to /etc, which is an absolute path";
    lab.run("ce", &["verify", "../storage"]).exit(5).shows(told);
    lab.run("ce", &["verify", "--repair", "../storage"]).exit(5);
    lab.ce_run(&[]).exit(0).called(vec!["make"]);
    is_sound(&lab);
    // Of many differences the first are named.
    (1..=7).for_each(|at| write_over(&dir.join("d").join(at.to_string()), "x\n"));
    let told = "d/4 was changed, d/5 was changed, and 2 more\n";
    lab.run("ce", &["verify", "../storage"]).exit(5).shows(told);
    // Without the manifest, nobody knows what differs.
    fs::remove_dir_all(lab.path("storage/manifests")).unwrap();
    lab.run("ce", &["verify", "../storage"])
        .exit(5)
        .shows("its contents are not the recorded ones");
}

#[test]
fn the_manifest_is_not_needed() {
    let lab = evaluated();
    fs::remove_dir_all(lab.path("storage/manifests")).unwrap();
    lab.ce_run(&[]).exit(0).called(vec![]);
    is_sound(&lab);
    // A spoiled one is not believed.
    let lab = evaluated();
    for entry in walkdir::WalkDir::new(lab.path("storage/manifests")) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            write_over(entry.path(), "spoiled");
        }
    }
    lab.ce_run(&[]).exit(0).called(vec![]);
    lab.run("ce", &["verify", "../storage"]);
}

#[test]
fn all_files_of_a_directory_are_collected() {
    let lab = Lab::task("Inputs: 'x'\n(make INPUT('x'))[0]").computation(
        "make",
        "a",
        "tree/",
        r#"cp -r "$1" "$2/in"; cp -r "$1" "$2/again""#,
    );
    let data = lab.path("data/x");
    fs::remove_file(&data).unwrap();
    fs::create_dir_all(data.join("d/e")).unwrap();
    fs::write(data.join("d/f"), "f\n").unwrap();
    let lab = lab.commit();
    lab.ce_run(&[]).exit(0).called(vec!["make"]);
    assert_eq!(values(&lab, "").len(), 3);
    let ran = lab.run("ce", &["gc", "--delete", "--older=0s", "--no-keep", "../storage"]);
    // Bytes of files, not of manifests.
    ran.exit(0).says("collected 3 results: 6 B");
    assert_eq!(values(&lab, ""), [""; 0]);
    is_sound(&lab);
    lab.ce_run(&[]).exit(0).called(vec!["make"]);
    is_sound(&lab);
}
