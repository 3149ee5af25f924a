//! Results repositories whose names and records lie: a pull takes valid results, and no name leads out of the storage.

use std::collections::BTreeMap;
use std::fs;

use gix::objs::tree::{Entry, EntryKind};

use super::pull::pushed;
use crate::lab::{Lab, files};

/// All files that are neither the storage's nor the mirror's, with a decoy among them.
fn others(lab: &Lab) -> BTreeMap<String, Vec<u8>> {
    let mut all = files(&lab.path(""));
    let own = ["other/", "results.git/", "cache/", "task/.git/compeval/"];
    all.retain(|name, _| !own.iter().any(|own| name.starts_with(own)));
    all
}

/// Pulls into a new storage with a new mirror. Returns the exit status and the output.
fn pulled(lab: &Lab, options: &[&str]) -> (i32, String) {
    for dir in ["other", "cache"] {
        if lab.path(dir).exists() {
            fs::remove_dir_all(lab.path(dir)).unwrap();
        }
    }
    let ran = super::pull(lab, options, "other", "results.git");
    (ran.status.code().unwrap(), ran.stdout.clone() + &ran.stderr)
}

/// Puts a commit on top of the results that has one more entry, at a path of any names.
fn plant(lab: &Lab, tip: &str, path: &[&str], kind: EntryKind, text: &str) {
    let options = gix::open::Options::isolated();
    let repository = gix::open_opts(lab.path("results.git"), options).unwrap();
    let tree = lab.git("results.git", &["rev-parse", &format!("{tip}^{{tree}}")]);
    let tree = gix::ObjectId::from_hex(tree.as_bytes()).unwrap();
    let mut entry = (kind, repository.write_blob(text).unwrap().detach());
    for (depth, name) in path.iter().enumerate().rev() {
        let mut entries = Vec::new();
        if depth == 0 {
            let top = repository.find_tree(tree).unwrap();
            entries.extend(top.iter().map(|it| Entry::from(it.unwrap().inner)));
            entries.retain(|entry| entry.filename != *name);
        }
        entries.push(Entry { mode: entry.0.into(), filename: (*name).into(), oid: entry.1 });
        entries.sort();
        let tree = repository.write_object(gix::objs::Tree { entries }).unwrap();
        entry = (EntryKind::Tree, tree.detach());
    }
    let tree = entry.1.to_string();
    let commit = lab.git("results.git", &["commit-tree", &tree, "-p", tip, "-m", "planted"]);
    lab.git("results.git", &["update-ref", "refs/heads/results", &commit]);
}

#[test]
fn no_name_in_a_tree_of_a_results_repository_leads_out() {
    let lab = pushed();
    fs::write(lab.path("victim"), "precious").unwrap();
    let tip = lab.git("results.git", &["rev-parse", "results"]);
    let before = others(&lab);
    let up = "../../../../victim";
    // Git refuses these before anything of them is looked at.
    for path in [
        &["c_x", "y", "record", "..", "..", "..", "..", "victim.json"][..],
        &["c_x", "y", "record", "../../../../victim.json"],
        &["c_x/../..", "y", "record", "victim.json"],
        &["tables", "record", up],
        &["ledger", "..", "..", "victim"],
        &["large", "ab", up],
        &["revoked", ".git", "x"],
    ] {
        plant(&lab, &tip, path, EntryKind::Blob, "");
        let (code, said) = pulled(&lab, &[]);
        assert!(code == 5 && said.contains("fsck error"), "{path:?}: {code} {said}");
    }
    // The others are no names of results, or no files.
    let (blob, link, commit) = (EntryKind::Blob, EntryKind::Link, EntryKind::Commit);
    let refused = "its record cannot be understood, or does not belong to its name";
    for (path, kind, said) in [
        (&["c_x", "y", "record", ".json"][..], blob, refused),
        (&["c_x", "y", "record", "\x1b[2J\n\\.json"], blob, refused),
        (&["C_once", "y", "record", "_.json"], blob, ""),
        (&["c_x", "y", "record", "_.json"], link, ""),
        (&["c_x", "y", "record", "_.json"], commit, ""),
        (&["c_x", "y"], commit, ""),
        (&["ledger", "ab", "\x1b.ndjson"], blob, "its name is not the hash of its contents"),
        (&["ledger", "ab"], link, ""),
        (&["revoked"], link, ""),
        (&["large", "ab", "cd"], link, ""),
        (&["directories"], commit, ""),
    ] {
        plant(&lab, &tip, path, kind, "../../victim");
        for options in [&["-n"][..], &[]] {
            let (code, told) = pulled(&lab, options);
            assert!(told.contains("2 calls, 1 job (12 B)"), "{path:?}: {code} {told}");
            assert!(told.contains(said) && !told.contains('\x1b'), "{path:?}: {code} {told:?}");
            let whole = if options.is_empty() { 0 } else { 3 };
            assert_eq!(code, if said.is_empty() { whole } else { 1 }, "{path:?}: {told}");
        }
    }
    assert!(others(&lab) == before);
}

#[test]
fn no_name_in_a_record_of_a_results_repository_leads_out() {
    let lab = pushed();
    fs::write(lab.path("victim"), "precious").unwrap();
    let tip = lab.git("results.git", &["rev-parse", "results"]);
    let names = lab.git("results.git", &["ls-tree", "-r", "--name-only", "results"]);
    let is_job = |name: &&str| name.starts_with("t_task/") && name.contains("/record/");
    let record = names.lines().find(is_job).unwrap();
    let path: Vec<&str> = record.split('/').collect();
    let job = lab.git("results.git", &["cat-file", "-p", &format!("results:{record}")]);
    let job: serde_json::Value = serde_json::from_str(&job).unwrap();
    let outside = lab.path("victim").display().to_string();
    let before = others(&lab);
    let digest = compeval::digest::Digest::hash_bytes(b"precious");
    let digest = format!(
        r#""size":{},"sha1":"{}","blake3":"{}""#,
        digest.size,
        digest.sha1.full(),
        digest.blake3.full()
    );
    let unread = "its record cannot be understood, or does not belong to its name";
    for (name, is_outside) in [
        ("../victim", true),
        (&*outside, true),
        ("c_once/x/00/../../../../victim", true),
        ("tinputs/ad/../../../victim", true),
        ("tables/ab/cd/../../../../victim", true),
        (".", true),
        ("", true),
        ("a\\u001b[2Jb", true),
        (".git/hooks/post-commit", false),
        ("tmp/x/00/y", false),
    ] {
        let file = format!(r#"{{"file":"{name}",{digest}}}"#);
        for (field, value) in [
            ("outputs", format!("[{file}]")),
            ("literals", format!("[{file}]")),
            ("calls", format!(r#"["{name}"]"#)),
            ("task", format!(r#""{name}""#)),
            ("place", format!(r#""{name}""#)),
        ] {
            // These two are compared, and are no paths: of a place, `JobRecord::task_in` makes one.
            if ["task", "place"].contains(&field) && name != "../victim" {
                continue;
            }
            let mut forged = job.clone();
            forged[field] = serde_json::from_str(&value).unwrap();
            plant(&lab, &tip, &path, EntryKind::Blob, &forged.to_string());
            for options in [&["-n"][..], &[]].into_iter().skip(usize::from(name != "../victim")) {
                let (code, told) = pulled(&lab, options);
                assert!(!told.contains('\x1b'), "{field} {name:?}: {told:?}");
                let is_taken = match field {
                    "place" => true,
                    "calls" => !is_outside,
                    _ => false,
                };
                assert_eq!(told.contains("1 job"), is_taken, "{field} {name:?}: {code} {told}");
                assert!(told.contains("2 calls"), "{field} {name:?}: {code} {told}");
                if is_outside && ["outputs", "literals"].contains(&field) {
                    assert!(code == 1 && told.contains(unread), "{field} {name:?}: {code} {told}");
                }
            }
        }
    }
    assert!(others(&lab) == before);
}
