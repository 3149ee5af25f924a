//! Manifests: an accepted one stays inside its directory, and is written as it was read.
#![no_main]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use compeval::digest::Digest;
use compeval::manifest::{EntryKind, Manifest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let manifest = match Manifest::parse(text) {
        Ok(manifest) => manifest,
        Err(error) => {
            let lines = text.split(|byte| *byte == b'\n').count();
            assert!((1..=lines).contains(&error.line) && !error.to_string().is_empty());
            return;
        }
    };
    let mut written = Vec::new();
    manifest.write(&mut written).unwrap();
    assert_eq!(written, text);
    assert!(str::from_utf8(text).is_ok());
    assert_eq!(Digest { bytes: None, ..manifest.digest() }, Digest::hash_bytes(text));
    let entries = manifest.entries();
    assert_eq!(entries.len() + 1, text.split_inclusive(|byte| *byte == b'\n').count());
    assert!(entries.is_sorted_by(|one, other| one.path < other.path));
    let names: Vec<&Path> =
        entries.iter().map(|entry| Path::new(OsStr::from_bytes(&entry.path))).collect();
    for (entry, path) in entries.iter().zip(&names) {
        assert!(path.components().all(|part| matches!(part, Component::Normal(_))));
        if let EntryKind::Link { target } = &entry.kind {
            let mut depth = path.components().count() - 1;
            for part in Path::new(OsStr::from_bytes(target)).components() {
                match part {
                    Component::Normal(_) => depth += 1,
                    Component::ParentDir => depth = depth.checked_sub(1).unwrap(),
                    Component::CurDir => {}
                    Component::RootDir | Component::Prefix(_) => panic!("an absolute target"),
                }
            }
        }
    }
    for path in names.iter().take(100) {
        let mut around = path.ancestors().skip(1);
        assert!(!around.any(|around| names.contains(&around)), "{path:?} is in no directory");
    }
    assert_eq!(Manifest::new(entries.iter().rev().cloned().collect()), Ok(manifest));
});
