//! Directories in results repositories: each is one file there, its archive.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use compeval::digest::Digest;

use super::{cloned, evaluate, lab, listed, pull, push, repository};
use crate::lab::Lab;

/// Makes a directory with everything that a value can have.
pub(crate) const MAKE: &str = r#"set -e; cp "$1" "$2/top"; cd "$2"
    mkdir -p a/b none/deep; echo 1 >a/b/one; printf 'no\n\nend' >a.b; : >a/empty
    printf '#!/bin/sh\n' >run; chmod 755 run
    ln -s ../a.b a/up; ln -s nowhere dangling
    echo 2 >"$(printf '\377 \n')""#;

const TASK: &str = "Inputs: 'x'\n(both (make INPUT('x'))[0] (again INPUT('x'))[0])[0, 1]";

/// Two calls make equal directories, and a third one reads both and makes another.
pub(crate) fn directories() -> Lab {
    let mut lab = Lab::task(TASK)
        .computation("make", "a", "tree/", MAKE)
        .computation("again", "a", "tree/", MAKE)
        .computation("both", "one other", "all/ list", r#"cp -a "$1" "$3/in"; ls "$2" >"$4""#)
        .data("x", "x\n");
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    repository(&lab, "results.git");
    lab
}

/// A change of an archive.
type Forgery = fn(&mut Vec<u8>);

/// The archives that a repository has.
fn archives(lab: &Lab, repository: &str) -> Vec<String> {
    let archives = listed(lab, repository).into_iter();
    archives.filter(|line| line.contains("\tdirectories/")).collect()
}

/// The manifest of the directory that a call has made.
pub(crate) fn manifest(lab: &Lab, storage: &str, owner: &str) -> String {
    let value = value(lab, storage, owner).unwrap();
    lab.run("ce", &["show", "--manifest", value.to_str().unwrap()]).exit(0).stdout
}

/// The path of the first output of a call, if that is there.
pub(crate) fn value(lab: &Lab, storage: &str, owner: &str) -> Option<PathBuf> {
    let versions = fs::read_dir(lab.path(storage).join(owner)).ok()?;
    let rooms = versions.map(|version| version.unwrap().path().join("00"));
    let room = rooms.into_iter().find(|room| room.is_dir())?;
    Some(fs::read_dir(room).ok()?.next()?.unwrap().path())
}

/// Changes the results as somebody might who can push.
fn forge(lab: &Lab, change: impl Fn(&Path)) {
    cloned(lab, "results.git", "forger", &[]);
    change(&lab.path("forger"));
    lab.git("forger", &["add", "--all", "--force"]);
    lab.git("forger", &["commit", "--quiet", "--message", "forged"]);
    lab.git("forger", &["push", "--quiet"]);
    fs::remove_dir_all(lab.path("forger")).unwrap();
}

/// The first file below a directory whose path contains a text.
fn find(dir: &Path, text: &str) -> PathBuf {
    let files = walkdir::WalkDir::new(dir).sort_by_file_name().into_iter().map(Result::unwrap);
    let mut files = files.filter(|it| it.file_type().is_file()).map(|it| it.path().to_owned());
    files.find(|path| path.to_str().is_some_and(|it| it.contains(text))).unwrap()
}

#[test]
fn pulled_directories_are_reused() {
    let lab = directories();
    lab.ce_run(&[]).exit(0).called(vec!["again", "both", "make"]);
    push(&lab, &["-n"], "storage", "results.git").exit(3).shows("would push 3 calls, 1 job");
    push(&lab, &[], "storage", "results.git").exit(0).shows("pushed 3 calls, 1 job");
    assert_eq!(archives(&lab, "results.git").len(), 2, "equal directories are there once");
    lab.git("results.git", &["fsck", "--strict"]);
    lab.unchanged(|| push(&lab, &[], "storage", "results.git").exit(0).shows("nothing is new to "));
    pull(&lab, &["-n"], "other", "results.git").exit(3).shows("would pull 3 calls, 1 job");
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 3 calls, 1 job");
    for owner in ["c_make", "c_again", "c_both"] {
        let [here, there] = ["storage", "other"].map(|storage| manifest(&lab, storage, owner));
        assert!(here == there && here.contains("a/up\n"), "{here}{there}");
    }
    assert!(
        fs::metadata(value(&lab, "other", "c_make").unwrap()).unwrap().permissions().readonly()
    );
    assert!(value(&lab, "other", "t_task").unwrap().is_symlink());
    lab.run("ce", &["verify", "../other"]).exit(0).says("0 wrong, 0 odd");
    evaluate(&lab, "other").exit(0).called(vec![]);
    pull(&lab, &[], "other", "results.git").exit(0).shows("nothing is new in ");
    assert!(lab.path("other/tmp").read_dir().unwrap().next().is_none(), "nothing is left");
    // They are results like all others: pushed again, they are the same.
    repository(&lab, "others.git");
    push(&lab, &[], "other", "others.git").exit(0);
    assert_eq!(listed(&lab, "results.git"), listed(&lab, "others.git"));
}

#[test]
fn equal_directories_are_pushed_as_equal_objects() {
    let lab = directories();
    repository(&lab, "others.git");
    for (storage, repository) in [("storage", "results.git"), ("other", "others.git")] {
        evaluate(&lab, storage).exit(0).called(vec!["again", "both", "make"]);
        push(&lab, &[], storage, repository).exit(0);
    }
    assert_eq!(listed(&lab, "results.git"), listed(&lab, "others.git"));
    push(&lab, &[], "other", "results.git").exit(0).shows("pushed 1 ledger file to ");
    push(&lab, &[], "other", "results.git").exit(0).shows("nothing is new");
}

#[test]
fn a_forged_archive_is_refused_and_leaves_nothing() {
    let lab = directories();
    lab.ce_run(&[]).exit(0);
    lab.called();
    let all = manifest(&lab, "storage", "c_make").into_bytes();
    push(&lab, &[], "storage", "results.git").exit(0);
    let true_results = lab.git("results.git", &["rev-parse", "results"]);
    let forgeries: [(&str, Forgery); 6] = [
        ("another byte", |archive| *archive.last_mut().unwrap() ^= 1),
        ("one byte more", |archive| archive.push(b'\n')),
        ("one byte less", |archive| archive.truncate(archive.len() - 1)),
        ("another path", |archive| {
            let at = archive.windows(7).position(|it| it == b"a/b/one").unwrap();
            archive[at..at + 7].copy_from_slice(b"../../o");
        }),
        ("another directory", |archive| *archive = b"compeval directory 1\n\n".to_vec()),
        ("nothing", Vec::clear),
    ];
    for (number, (what, change)) in forgeries.into_iter().enumerate() {
        let other = &format!("other-{number}");
        forge(&lab, |results| {
            // The one of `make` and `again`, and not that which `both` has made of it.
            for entry in walkdir::WalkDir::new(results.join("directories")) {
                let path = entry.unwrap().path().to_owned();
                if path.is_file() && fs::read(&path).unwrap().starts_with(&all) {
                    let mut archive = fs::read(&path).unwrap();
                    change(&mut archive);
                    fs::write(path, archive).unwrap();
                }
            }
        });
        // Each time, the history was replaced by another one.
        let told = pull(&lab, &["--rewritten"], other, "results.git").exit(1);
        assert_eq!(told.stdout.matches("a file of it is not what the record says").count(), 2);
        told.shows("pulled 1 call, 1 job");
        assert!(value(&lab, other, "c_make").is_none(), "{what}");
        assert!(lab.path(other).join("tmp").read_dir().unwrap().next().is_none(), "{what}");
        lab.run("ce", &["verify", &format!("../{other}")]).exit(0).says("0 wrong, 0 odd");
        // Only the two are executed again.
        evaluate(&lab, other).exit(0).called(vec!["again", "make"]);
        lab.git("results.git", &["update-ref", "refs/heads/results", &true_results]);
    }
}

#[test]
fn a_record_of_a_directory_that_no_file_system_has_is_refused() {
    let lab = directories();
    lab.ce_run(&[]).exit(0);
    push(&lab, &[], "storage", "results.git").exit(0);
    let file = Digest::hash_bytes(b"evil\n");
    let (sha1, blake3) = (file.sha1.full(), file.blake3.full());
    for lines in [
        format!("file 5 {sha1} {blake3} ../evil\n"),
        format!("file 5 {sha1} {blake3} /evil\n"),
        format!("link ..\ta\nfile 5 {sha1} {blake3} a/evil\n"),
        format!("link b\ta\nfile 5 {sha1} {blake3} a/evil\n"),
        // It is a manifest, and cannot be unpacked.
        format!("file 5 {sha1} {blake3} a/evil\ndir {}\n", "a".repeat(300)),
    ] {
        let text = format!("compeval directory 1\n{lines}");
        let digest = Digest::hash_bytes(text.as_bytes());
        forge(&lab, |results| {
            let record = find(results, "/record/");
            let mut json: serde_json::Value =
                serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
            json["outputs"] = serde_json::json!([{
                "sha1": digest.sha1.full(), "blake3": digest.blake3.full(),
                "size": text.len(), "bytes": 5,
            }]);
            fs::write(record, json.to_string()).unwrap();
            let name = digest.sha1.short();
            let place = results.join("directories").join(&name[..2]).join(&name[2..]);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, format!("{text}\nevil\n")).unwrap();
        });
        let told = pull(&lab, &[], "other", "results.git").exit(1);
        told.shows("a file of it is not what the record says");
        let all = walkdir::WalkDir::new(lab.path("")).into_iter().map(Result::unwrap);
        assert_eq!(all.filter(|it| it.file_name() == "evil").count(), 0, "{lines}");
        assert!(lab.path("other/tmp").read_dir().unwrap().next().is_none(), "nothing is left");
    }
}

#[test]
fn a_directory_without_its_archive_is_not_taken() {
    let lab = directories();
    lab.ce_run(&[]).exit(0);
    push(&lab, &[], "storage", "results.git").exit(0);
    forge(&lab, |results| fs::remove_dir_all(results.join("directories")).unwrap());
    let told = pull(&lab, &[], "other", "results.git").exit(1);
    told.shows("a file of it is not in the repository");
}

#[test]
fn directories_with_secrets_are_not_pushed() {
    let lab = directories().data("x", format!("token={}{}\n", "ghp_", "a".repeat(36)));
    lab.ce_run(&[]).exit(0);
    let told = push(&lab, &[], "storage", "results.git").exit(1);
    let told = told.shows("/top seems to hold a token of GitHub").shows("/in/top seems to hold");
    assert_eq!(told.stdout.matches("seems to hold a token").count(), 4, "three calls and the job");
    assert_eq!(lab.git("results.git", &["for-each-ref"]), "");
    push(&lab, &["--allow-secrets"], "storage", "results.git")
        .exit(0)
        .shows("pushed 3 calls, 1 job");
}

#[test]
fn the_limit_holds_for_archives() {
    let lab = directories().data("x", "x".repeat(3000));
    lab.ce_run(&[]).exit(0).called(vec!["again", "both", "make"]);
    let told = push(&lab, &["--limit", "3K"], "storage", "results.git").exit(0);
    told.shows("pushed 3 calls, 1 job").shows("3 calls are away: known");
    assert!(archives(&lab, "results.git").is_empty());
    push(&lab, &[], "storage", "results.git").exit(0).shows("pushed 3 calls (");
    let told = pull(&lab, &["--limit", "3K"], "other", "results.git").exit(0);
    told.shows("pulled 3 calls, 1 job").shows("3 calls are away: known");
    evaluate(&lab, "other").exit(0).called(vec!["again", "both", "make"]);
    lab.run("ce", &["verify", "../other"]).exit(0).says("0 wrong, 0 odd and harmless\n");
}

#[test]
fn a_damaged_directory_is_not_pushed() {
    let lab = directories();
    lab.ce_run(&[]).exit(0);
    let top = value(&lab, "storage", "c_make").unwrap().join("top");
    fs::set_permissions(&top, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&top, "y\n").unwrap();
    let told = push(&lab, &[], "storage", "results.git").exit(1);
    assert_eq!(told.stdout.matches("is not as recorded").count(), 1);
    told.shows("pushed 2 calls, 1 job");
}

#[test]
fn members_of_directories_are_pushed_with_them() {
    // A directory that the job has, and no call, is there for the job.
    for (node, output, count) in [
        ("(copy MEMBER('a/b' (make INPUT('x'))[0]))[0]", "all/", 2),
        ("MEMBER('a/b' (make INPUT('x'))[0])", "", 2),
        ("MEMBER('a/b/one' (make INPUT('x'))[0])", "", 1),
    ] {
        let mut lab = Lab::task(&format!("Inputs: 'x'\n{node}"))
            .computation("make", "a", "tree/", MAKE)
            .computation("copy", "a", "all/", r#"cp "$1/one" "$2""#)
            .data("x", "x\n");
        lab.inputs = vec!["x".to_owned()];
        let lab = lab.commit();
        repository(&lab, "results.git");
        let calls = if output.is_empty() { vec!["make"] } else { vec!["copy", "make"] };
        let pushed = format!("pushed {} call", calls.len());
        evaluate(&lab, "storage").exit(0).called(calls.clone());
        push(&lab, &[], "storage", "results.git").exit(0).shows(&pushed);
        assert_eq!(archives(&lab, "results.git").len(), count, "{node}");
        pull(&lab, &[], "other", "results.git").exit(0).shows(", 1 job ");
        evaluate(&lab, "other").exit(0).called(vec![]);
        lab.run("ce", &["verify", "../other"]).exit(0).says("0 wrong, 0 odd");
    }
}

#[test]
fn directory_literals_are_pushed_with_their_job() {
    let mut lab = Lab::task("Inputs: 'x'\n(both INPUT('x') FILE('data/tables'))[0]")
        .computation("both", "a b", "c", r#"cat "$1" "$2/deep/table" >"$3""#)
        .data("x", "x\n")
        .with_storage();
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    repository(&lab, "results.git");
    fs::create_dir(lab.path("storage/tinputs")).unwrap();
    fs::create_dir_all(lab.path("storage/data/tables/deep")).unwrap();
    fs::write(lab.path("storage/data/tables/deep/table"), "a table\n").unwrap();
    lab.ce_run(&[]).exit(0).called(vec!["both"]);
    push(&lab, &[], "storage", "results.git").exit(0).shows("pushed 1 call, 1 job");
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 1 call, 1 job");
    assert_eq!(fs::read_to_string(lab.path("other/data/tables/deep/table")).unwrap(), "a table\n");
    evaluate(&lab, "other").exit(0).called(vec![]);
    // Another directory that is there stays, and is reported for the job that needs the one in the repository.
    fs::create_dir_all(lab.path("third/data/tables")).unwrap();
    fs::create_dir(lab.path("third/tinputs")).unwrap();
    pull(&lab, &[], "third", "results.git").exit(1).shows("has other contents here");
    assert!(lab.path("third/data/tables").read_dir().unwrap().next().is_none());
    assert!(lab.path("third/tmp").read_dir().unwrap().next().is_none(), "nothing is left");
}

#[test]
fn an_inbox_may_have_directories() {
    let lab = lab();
    evaluate(&lab, "one").exit(0);
    push(&lab, &[], "one", "results.git").exit(0);
    let other = directories_in(&lab);
    lab.git("results.git", &["fetch", "--quiet", &other, "results:refs/heads/ce-inbox/1"]);
    push(&lab, &["--collect"], "one", "results.git").exit(0).shows("took 1 of 1 inbox");
    assert_eq!(archives(&lab, "results.git").len(), 2);
}

/// The path of a repository with directories, in another laboratory.
fn directories_in(lab: &Lab) -> String {
    let other = directories();
    other.ce_run(&[]).exit(0);
    push(&other, &[], "storage", "results.git").exit(0);
    let copy = lab.path("directories.git");
    lab.git(
        "",
        &[
            "clone",
            "--quiet",
            "--mirror",
            other.path("results.git").to_str().unwrap(),
            "directories.git",
        ],
    );
    copy.to_str().unwrap().to_owned()
}
