//! `ce show --manifest`.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;

use compeval::digest::Digest;
use rustix::process::Signal;

use super::fifo;
use crate::lab::Lab;
use crate::program::{Ran, Running};

fn lab() -> Lab {
    let lab = Lab::empty().data("values/a b", "a\n").data("values/sub/run", "#!/bin/sh\n");
    fs::set_permissions(lab.path("data/values/sub/run"), Permissions::from_mode(0o700)).unwrap();
    fs::create_dir(lab.path("data/values/none")).unwrap();
    symlink("../a b", lab.path("data/values/sub/link")).unwrap();
    lab
}

#[test]
fn the_manifest_is_printed_or_its_hashes() {
    let lab = lab();
    let text = lab
        .run("ce", &["show", "--manifest", "../data/values"])
        .exit(0)
        .prints("manifest.txt")
        .stdout;
    let Digest { sha1, blake3, .. } = Digest::hash_bytes(text.as_bytes());
    let ran = lab.run("ce", &["show", "--manifest", "--digest", "../data/values/"]).exit(0);
    assert_eq!(ran.stdout, format!("sha1 {}\nblake3 {}\n", sha1.full(), blake3.full()));
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_directory_that_cannot_be_a_value_is_refused_and_nothing_is_printed() {
    let refused = |lab: &Lab| {
        let ran = lab.run("ce", &["show", "--manifest", "../data/values"]).exit(2);
        assert_eq!(ran.stdout, "");
        ran.stderr
    };
    let lab = lab();
    symlink("../../c\n", lab.path("data/values/sub/out")).unwrap();
    let told = "ce: cannot take the directory ../data/values as a value\n  \
        because: sub/out is a symbolic link to ../../c\\x0a, which is outside of the directory\n  \
        try: make links relative and keep them within the directory, or copy what they lead to\n";
    assert_eq!(refused(&lab), told);
    (0..12).for_each(|number| fifo(&lab.path(&format!("data/values/fifo{number:02}"))));
    let told = refused(&lab);
    assert!(told.contains("because: 13 entries cannot be part of a value:\n    fifo00 is a FIFO"));
    assert!(
        told.contains("fifo09 is a FIFO, which cannot be part of a value\n    and 3 more\n"),
        "{told}"
    );
    for (path, cause) in [("none", "No such file or directory"), ("values/a b", "Not a directory")]
    {
        lab.run("ce", &["show", "--manifest", &format!("../data/{path}")])
            .exit(2)
            .says("because: cannot read the directory itself\n")
            .says(cause);
    }
}

#[test]
fn an_unreadable_file_is_reported() {
    let lab = lab();
    let Some(user) = lab.plain_user() else { return };
    let as_user = || {
        let mut command = lab.command("ce");
        lab.finish(command.args(["show", "--manifest", "../data/values"]).uid(user))
    };
    for dir in ["", "data", "data/values", "data/values/sub"] {
        fs::set_permissions(lab.path(dir), Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(lab.path("data/values/sub/run"), Permissions::from_mode(0o0)).unwrap();
    as_user().exit(2).says("because: cannot read sub/run\n  because: Permission denied");
    fs::set_permissions(lab.path("data/values/sub"), Permissions::from_mode(0o0)).unwrap();
    as_user().exit(2).says("because: cannot read sub\n  because: Permission denied");
    fs::set_permissions(lab.path("data/values/sub"), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_signal_ends_it_and_nothing_is_printed() {
    let lab = lab();
    // A hole that takes hours to read.
    File::create(lab.path("data/values/hole")).unwrap().set_len(1 << 42).unwrap();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let running =
            Running::start(lab.command("ce").args(["show", "--manifest", "../data/values"]));
        running.wait_until_it_catches(signal);
        running.signal(signal);
        let ran = Ran::new(&lab, running.output()).exit(code).says("interrupted");
        assert_eq!(ran.stdout, "");
    }
}
