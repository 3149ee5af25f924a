//! Properties of manifests of made-up directories, and of texts that are almost manifests.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use compeval::digest::Digest;
use compeval::manifest::{Manifest, shown};

use super::{directory, put, read, scan, text};
use crate::generator::{Random, seeds};

/// The parts of names, so that many are neighbours in one order and not in another.
const LETTERS: [&[u8]; 12] =
    [b"a", b"b", b"A", b".", b"-", b"0", b" ", b"\\", b"\n", b"\xff", "é".as_bytes(), b"\xe2\x82"];

fn name(random: &mut Random) -> Vec<u8> {
    let name: Vec<u8> =
        (0..=random.below(3)).flat_map(|_| random.one_of(&LETTERS)).copied().collect();
    if [&b"."[..], b".."].contains(&&*name) { b"x".to_vec() } else { name }
}

/// Fills a directory.
fn grow(dir: &Path, random: &mut Random, depth: usize) {
    for _ in 0..random.below(6) {
        let path = dir.join(OsStr::from_bytes(&name(random)));
        if path.symlink_metadata().is_ok() {
            continue;
        }
        match random.below(6) {
            0 | 1 if depth > 0 => {
                fs::create_dir(&path).unwrap();
                grow(&path, random, depth - 1);
            }
            2 => symlink(OsStr::from_bytes(&[b"./", &*name(random)].concat()), &path).unwrap(),
            kind => {
                put(&path, name(random).repeat(random.one_of(&[0, 1, 50_000])));
                let mode = if kind == 3 { 0o755 } else { 0o611 };
                fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            }
        }
    }
}

/// The manifest of a directory, by the words of doc/formats.md and as simple as can be.
fn reference(dir: &Path) -> Vec<u8> {
    let mut lines = BTreeMap::new();
    for entry in walkdir::WalkDir::new(dir).min_depth(1).into_iter().map(Result::unwrap) {
        let path = entry.path().strip_prefix(dir).unwrap().as_os_str().as_bytes();
        let metadata = entry.metadata().unwrap();
        let line = if metadata.is_symlink() {
            let target = fs::read_link(entry.path()).unwrap();
            format!("link {}\t", spelled(target.as_os_str().as_bytes()))
        } else if metadata.is_file() {
            let Digest { size, sha1, blake3, .. } =
                Digest::hash_bytes(&fs::read(entry.path()).unwrap());
            let word = if metadata.permissions().mode() & 0o100 == 0 { "file" } else { "exec" };
            format!("{word} {size} {sha1:?} {blake3:?} ")
        } else if fs::read_dir(entry.path()).unwrap().next().is_none() {
            "dir ".to_owned()
        } else {
            continue;
        };
        lines.insert(path.to_vec(), format!("{line}{}\n", spelled(path)));
    }
    let lines: String = lines.into_values().collect();
    format!("compeval directory 1\n{lines}").into_bytes()
}

/// A path or target, byte by byte: a byte that belongs to a character is one of at most four that are
/// UTF-8 together.
fn spelled(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    while let Some(first) = bytes.first() {
        let lengths = 1..=bytes.len().min(4);
        let mut characters = lengths.filter_map(|length| str::from_utf8(&bytes[..length]).ok());
        let length = match characters.next() {
            Some(c) if c > " " && c != "\\" && c != "\x7f" => {
                text.push_str(c);
                c.len()
            }
            _ => {
                write!(text, "\\x{first:02x}").unwrap();
                1
            }
        };
        bytes = &bytes[length..];
    }
    text
}

#[test]
fn the_manifest_of_a_directory_agrees_with_the_documentation() {
    for seed in seeds(60) {
        let mut random = Random::new(seed);
        let dir = directory();
        grow(dir.path(), &mut random, 4);
        let manifest = read(&scan(dir.path()).unwrap()).unwrap();
        let text = text(&manifest);
        let expected = reference(dir.path());
        assert_eq!(shown(&text), shown(&expected), "seed {seed}");
        let bytes = Some(manifest.bytes());
        assert_eq!(
            manifest.digest(),
            Digest { bytes, ..Digest::hash_bytes(&expected) },
            "seed {seed}"
        );
        assert_eq!(Manifest::parse(&text), Ok(manifest), "seed {seed}");
    }
}

#[test]
fn an_accepted_manifest_is_written_again_byte_for_byte() {
    let mut accepted = 0;
    for seed in seeds(20) {
        let mut random = Random::new(seed);
        let dir = directory();
        grow(dir.path(), &mut random, 3);
        let whole = reference(dir.path());
        for _ in 0..200 {
            let mut changed = whole.clone();
            for _ in 0..=random.below(2) {
                let at = random.below(changed.len());
                match random.below(4) {
                    0 => drop(changed.remove(at)),
                    1 => changed[at] = random.one_of(b"0aA/\\x \n\t.\xff\0"),
                    2 => changed.insert(at, random.one_of(b"0aA/\\x \n\t.\xff\0")),
                    _ => {
                        let mut lines: Vec<&[u8]> =
                            whole.split_inclusive(|it| *it == b'\n').collect();
                        let (one, other) = (random.below(lines.len()), random.below(lines.len()));
                        lines.swap(one, other);
                        changed = lines.concat();
                    }
                }
            }
            if let Ok(manifest) = Manifest::parse(&changed) {
                accepted += 1;
                assert_eq!(shown(&text(&manifest)), shown(&changed), "seed {seed}");
                assert_eq!(Manifest::new(manifest.entries().to_vec()), Ok(manifest), "seed {seed}");
            }
        }
    }
    assert!(accepted > 0);
}
