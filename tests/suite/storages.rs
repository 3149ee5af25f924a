//! Storages of all formats that there ever were: newer programs find everything in them.
//!
//! `tests/storages` holds a storage of each format as it was written then, with the task and the
//! data that made it. They came through Git, which keeps neither time stamps nor who may write.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::lab::{Lab, files};
use crate::page::data_in;

const QUOTIENT: &str = "c_divmod/5efbc68dc50d/00/ad48103e4fc7_5d9474c0309b";
const RESULT: &str = "c_add/5efbc68dc50d/00/a3db5c13ff90_7448d8798a43";
const JOB: &str = "t_task/5efbc68dc50d/00/ad48103e4fc7_5d9474c0309b";

/// The task, the data and the storage of a format.
fn lab(format: &str) -> Lab {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/storages").join(format);
    let mut lab = Lab::empty();
    for (name, contents) in files(&from.join("task")) {
        lab = lab.file(&name, contents);
        if name.ends_with("/exec") {
            lab = lab.mode(&name, 0o755);
        }
    }
    let data = Some(from.join("data")).filter(|dir| dir.exists());
    for (name, contents) in data.iter().flat_map(|dir| files(dir)) {
        lab = lab.data(&name, contents);
    }
    for (name, contents) in files(&from.join("storage")) {
        let path = lab.path("storage").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
    let inputs = fs::read_to_string(from.join("task/inputs")).unwrap();
    lab.inputs = inputs.lines().map(str::to_owned).collect();
    lab.commit()
}

/// The files in the storage but those that tell which repositories use it.
fn results(lab: &Lab) -> BTreeMap<String, Vec<u8>> {
    let mut results = files(&lab.path("storage"));
    results.retain(|name, _| !name.starts_with("repositories/"));
    results
}

/// The records in the storage, by name.
fn records(lab: &Lab) -> Vec<(String, Value)> {
    let records = files(&lab.path("storage")).into_iter();
    let records = records.filter(|(name, _)| name.ends_with(".json"));
    records.map(|(name, text)| (name, serde_json::from_slice(&text).unwrap())).collect()
}

/// Whether no output has the time stamp that is recorded: each is read before it is believed.
fn has_other_time_stamps(lab: &Lab) -> bool {
    let recorded = records(lab).into_iter().filter(|(name, _)| name.starts_with("c_"));
    let recorded = recorded.filter_map(|(name, record)| {
        let output = record["outputs"].get(0)?["modified_ns"].as_i64()?;
        Some((name.replace("/record/", "/00/").replace(".json", ""), output))
    });
    let mut files = recorded.map(|(name, recorded)| {
        let metadata = fs::metadata(lab.path("storage").join(name)).unwrap();
        metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec() != recorded
    });
    files.all(|other| other)
}

#[test]
fn everything_in_a_storage_of_format_1_is_found_and_nothing_executed() {
    let lab = lab("format-1");
    assert!(has_other_time_stamps(&lab));
    let before = results(&lab);
    lab.unchanged(|| lab.ce_run(&["-n"]).exit(0).says("2 calls: 2 reused"));
    lab.ce_run(&["--strict"]).exit(0).called(vec![]).says("2 calls: 2 reused");
    assert_eq!(lab.output(), "5\n");
    // Not even a record is written again.
    assert_eq!(results(&lab), before);
    assert!(records(&lab).iter().all(|(_, record)| record["format"] == 1));
}

#[test]
fn a_storage_of_format_1_is_verified_and_listed() {
    let lab = lab("format-1");
    lab.unchanged(|| {
        let verified = lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
        assert_eq!(verified.stdout, "");
        let ce = |arguments: &[&str]| lab.run("ce", arguments).exit(0);
        ce(&["show", "../storage", RESULT])
            .shows("computation  add, output 00\n")
            .shows("by lab on lab")
            .shows(
                "c_divmod/5efbc68dc50d/01/ad48103e4fc7_5d9474c0309b (divmod, output 01, see above)",
            )
            .shows("../storage/tinputs/5d/9474c0309b (task input)\n");
        ce(&["show", "../storage", JOB]).shows("task         task, output 00\n");
        let log = ce(&["log", "../storage"]).shows("FAILED: it ended with exit status 3\n");
        assert_eq!(log.lines().len(), 4, "{}", log.stdout);
    });
}

#[test]
fn a_failure_in_a_storage_of_format_1_is_not_taken_for_a_result() {
    let mut lab = lab("format-1");
    lab.inputs[1] = "zero".to_owned();
    lab.unchanged(|| lab.ce_run(&["-n"]).exit(3));
    let ran = lab.ce_run(&["--json"]).exit(1).called(vec!["divmod"]);
    ran.shows("\"last_failure\":\"it ended with exit status 3\"");
}

#[test]
fn a_replaced_file_in_a_storage_of_format_1_is_noticed() {
    let lab = lab("format-1");
    fs::write(lab.path("storage").join(QUOTIENT), "4\n").unwrap();
    lab.run("ce", &["verify", "../storage"]).exit(5).shows("its contents are not the recorded");
    lab.ce_run(&[]).exit(0).called(vec!["divmod"]);
    assert_eq!(lab.stored(QUOTIENT), "3\n");
    lab.run("ce", &["verify", "../storage"]).exit(0);
}

#[test]
fn every_command_reports_a_record_of_a_newer_format_and_leaves_it_alone() {
    let lab = lab("format-1");
    let programs = ["run", "verify --repair", "show", "log"];
    for (name, record) in records(&lab) {
        let path = lab.path("storage").join(&name);
        let text = fs::read(&path).unwrap();
        let newer =
            json!({"format": 5, "every": {"thing": "else"}, "recorded": record["recorded"]});
        fs::write(&path, newer.to_string()).unwrap();
        let before = results(&lab);
        let told = programs.into_iter().filter(|program| {
            let ran = match *program {
                "run" => lab.ce_run(&[]),
                "verify --repair" => lab.run("ce", &["verify", "--repair", "../storage"]),
                "show" => lab.run("ce", &["show", "../storage", RESULT]),
                program => lab.run("ce", &[program, "../storage"]),
            };
            assert_eq!(lab.called(), Vec::<String>::new(), "{program} with {name}");
            assert!(results(&lab) == before, "{program} with {name}");
            let newer = format!("{name} has format 5, and this version reads up to 4");
            let code = ran.status.code().unwrap();
            let says = format!("{}{}", ran.stdout, ran.stderr).contains(&newer);
            assert_eq!(says, code == 5, "{program} with {name}: {code}\n{}", ran.stderr);
            code == 5
        });
        // Each reads its inputs.
        let expected: &[&str] = match name.split('/').collect::<Vec<_>>()[..] {
            [_, _, "failed", _] => &["log"],
            ["tinputs", "record", "09", _] => &["verify --repair", "show"],
            ["tinputs" | "t_task", ..] => &["run", "verify --repair", "show"],
            _ => &programs,
        };
        assert_eq!(told.collect::<Vec<_>>(), expected, "{name}");
        fs::write(&path, text).unwrap();
    }
}

/// The table of fields in the storage `recipe-1`, in which `"1.10"` is a number and true a text.
const OLDER_TABLE: &str = "tables/91/efcd0389f5";

#[test]
fn a_table_with_a_recipe_of_version_1_is_read_kept_and_exchanged() {
    let lab = lab("recipe-1");
    let before = results(&lab);
    let older = lab.stored(&format!("{OLDER_TABLE}/00"));
    assert!(older.contains("\"version\":1.10,\"commit\":12341e8,\"fast\":\"true\""), "{older}");
    let ce = |arguments: &[&str]| lab.run("ce", arguments).exit(0);
    lab.unchanged(|| {
        ce(&["verify", "../storage"]).says("0 wrong, 0 odd");
        let call = "c_describe/4beb1a804f89/00/e5fa44f2b31c";
        ce(&["show", "../storage", OLDER_TABLE]).shows("columns      00 *\n").shows(call);
        ce(&["show", "../storage", call]).shows("point        n=1\n").shows(OLDER_TABLE);
        let page = ce(&["report", "-q", "-o", "-", "../storage"]);
        assert!(data_in(&page.stdout).contains("[1,1.10,12341e8,\"true\",10]"));
    });
    // A run makes the table whose fields keep their types, from the calls that are there.
    lab.ce_run(&[]).exit(0).called(vec![]).says("2 calls: 2 reused; 1 table: 1 made");
    assert!(lab.output().contains("\"version\":\"1.10\",\"commit\":\"12341e8\",\"fast\":true"));
    let after = results(&lab);
    let kept = before.iter().filter(|(name, _)| !name.starts_with("t_task/"));
    assert!(kept.into_iter().all(|(name, contents)| after.get(name) == Some(contents)));
    // It keeps the calls that it was made from.
    ce(&["pin", "../storage", OLDER_TABLE]);
    lab.git("task", &["update-ref", "-d", "HEAD"]);
    ce(&["gc", "--delete", "../storage"]);
    assert_eq!(lab.stored(&format!("{OLDER_TABLE}/00")), older);
    assert!(lab.stored("c_describe/4beb1a804f89/00/e5fa44f2b31c").contains("\"1.10\""));
}

#[test]
fn a_table_with_a_recipe_of_version_3_is_found_with_its_rule() {
    let lab = lab("recipe-3");
    assert!(lab.stored("tables/50/00b331b1c2/recipe").contains("6..10 until seconds ±5%"));
    lab.unchanged(|| {
        lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
        lab.ce_run(&["-n"]).exit(0).says("calls: 16 reused; 1 table: 1 reused");
        // The rule ends where it ended, and says which median is less certain.
        let told = "less certain than ±5% at 1 point: ±";
        lab.run("ce", &["table", "--summary", "../storage"]).exit(0).shows("9  10");
        let page = lab.run("ce", &["report", "-q", "-o", "-", "../storage"]).exit(0);
        assert!(page.stdout.contains("until its median is known to ±5%"), "{}", page.stdout);
        assert!(lab.ce_run(&["-n"]).stderr.contains(told));
    });
    lab.ce_run(&[]).exit(0).called(vec![]).says("16 reused");
}
