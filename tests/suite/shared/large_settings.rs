//! The settings of a results repository with large results: who may change them, and which count.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::large::{LFS, large, paths, text};
use super::{cloned, evaluate, pull, push, repository};
use crate::lab::Lab;

/// Changes the settings in a clone, and pushes them.
fn set(lab: &Lab, change: impl FnOnce(&Path)) {
    cloned(lab, "results.git", "clone", &[]);
    let settings = lab.path("clone/settings");
    fs::remove_file(&settings).unwrap();
    change(&settings);
    lab.git("clone", &["add", "--all", "settings"]);
    lab.git("clone", &["commit", "--quiet", "--message", "settings"]);
    lab.git("clone", &["push", "--quiet"]);
    fs::remove_dir_all(lab.path("clone")).unwrap();
}

#[test]
fn settings_that_nobody_understands_are_an_error() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    for (text, why) in [
        ("lfs 10\n", "has the line \"lfs 10\", which is not lfs SIZE"),
        ("lfs\n", "has the line \"lfs\", which is not lfs SIZE"),
        ("lfs 1K\nlfs 2K\n", "has two lines lfs SIZE"),
    ] {
        set(&lab, |settings| fs::write(settings, text).unwrap());
        push(&lab, &[], "storage", "results.git").exit(5).says(why);
        let told = push(&lab, LFS, "storage", "results.git").exit(0);
        told.shows("outputs above 1.0 KiB become");
    }
    // A later version may have written others.
    set(&lab, |settings| fs::write(settings, "lfs 10\nzip 10M\n").unwrap());
    let told = push(&lab, LFS, "storage", "results.git").exit(5);
    told.says("has the line \"zip 10M\"").says("a later version of this program, which may have");
}

#[test]
fn settings_that_cannot_be_read_are_an_error() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    let is_refused = || {
        for options in [&[][..], LFS] {
            let told = push(&lab, options, "storage", "results.git").exit(5);
            told.says(" is not a plain file of at most 64 KiB");
        }
    };
    set(&lab, |settings| fs::write(settings, "\n".repeat(65 << 10)).unwrap());
    is_refused();
    set(&lab, |settings| symlink("format", settings).unwrap());
    is_refused();
    set(&lab, |settings| {
        fs::create_dir(settings).unwrap();
        fs::write(settings.join("lfs"), "1K\n").unwrap();
    });
    is_refused();
}

/// The commits of `results.git` as an inbox of another repository.
fn to_inbox(lab: &Lab, other: &str) {
    let other = lab.path(other).display().to_string();
    lab.git("results.git", &["push", "--quiet", &other, "results:refs/heads/ce-inbox/1"]);
}

#[test]
fn an_inbox_brings_results_and_no_settings() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    fs::write(lab.path("data/x"), "z").unwrap();
    evaluate(&lab, "small").exit(0);
    for (base, has_objects) in [("base.git", false), ("more.git", true)] {
        repository(&lab, base);
        push(&lab, &[], "small", base).exit(0);
        if has_objects {
            lab.copy("results.git/lfs", &format!("{base}/lfs"));
        }
        to_inbox(&lab, base);
        push(&lab, &["--collect"], "small", base).exit(0).shows("took 1 of 1 inbox");
        for name in ["settings", ".lfsconfig"] {
            assert_eq!(paths(&lab, base, name), [""; 0]);
        }
        assert!(!text(&lab, base, ".gitattributes").contains("lfs"));
        assert_eq!(paths(&lab, base, "large/").len(), usize::from(has_objects));
        let storage = format!("of-{base}");
        let told = pull(&lab, &[], &storage, base).exit(0).shows("pulled 4 calls, 2 jobs");
        assert_eq!(told.stdout.contains("1 call is away"), !has_objects, "{}", told.stdout);
    }
}

#[test]
fn nonsense_in_an_inbox_stops_nobody() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    repository(&lab, "base.git");
    push(&lab, &[], "storage", "base.git").exit(0);
    set(&lab, |settings| fs::write(settings, "nonsense\n").unwrap());
    to_inbox(&lab, "base.git");
    push(&lab, &["--collect"], "storage", "base.git").exit(0).shows("took 1 of 1 inbox");
    push(&lab, &[], "storage", "base.git").exit(0).shows("nothing is new to ");
}
