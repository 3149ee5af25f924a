//! The contents of the storage, and the fate of a storage that somebody touched.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use compeval::digest::Digest;
use serde_json::Value;

use crate::lab::{Lab, files};

const TASK: &str = "Inputs: 'x', 'y'
(add (divmod INPUT('x') INPUT('y'))[1, 0])[0]";

/// A laboratory in which the task was evaluated.
fn evaluated() -> Lab {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&[]).exit(0).called(vec!["add", "divmod"]);
    lab
}

/// The file whose name begins and ends like this.
fn the_one(lab: &Lab, begin: &str, part: &str) -> String {
    let names = lab.storage();
    let found: Vec<_> =
        names.iter().filter(|name| name.starts_with(begin) && name.contains(part)).collect();
    let [name] = found[..] else { panic!("{begin}...{part}: {found:?}") };
    name.clone()
}

/// Replaces a file, which may be read-only, and keeps its time stamp.
fn put(path: &Path, contents: &str) {
    let modified = path.metadata().unwrap().modified().unwrap();
    fs::remove_file(path).unwrap();
    fs::write(path, contents).unwrap();
    fs::File::options().append(true).open(path).unwrap().set_modified(modified).unwrap();
}

#[test]
fn a_run_leaves_these_files() {
    let lab = evaluated();
    // The name of the record of a repository tells where that is.
    let names = lab.storage().into_iter();
    let (repositories, names): (Vec<_>, Vec<_>) =
        names.partition(|name| name.starts_with("repositories/"));
    assert!(repositories.contains(&"repositories/storage".to_owned()), "{repositories:?}");
    assert_eq!(repositories.len(), 2);
    let names: String = names.into_iter().map(|name| name + "\n").collect();
    crate::golden::check("run/storage.txt", &names);
    assert!(lab.is_tidy());
}

#[test]
fn a_dry_run_lists_missing_calls_before_and_none_after() {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&["-n"]).exit(3);
    assert!(!lab.path("storage").exists());
    lab.ce_run(&[]).exit(0);
    lab.unchanged(|| lab.ce_run(&["-n"]).exit(0));
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(values) => values.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn inputs_and_outputs_have_the_same_mode() {
    let lab = evaluated();
    let mode = |name: &String| lab.path("storage").join(name).metadata().unwrap().mode();
    let modes = lab.results().into_keys().map(|name| (format!("{:o}", mode(&name)), name));
    let modes: Vec<_> = modes.collect();
    assert!(modes.iter().all(|(mode, _)| *mode == modes[0].0), "{modes:?}");
}

#[test]
fn records_match_their_files() {
    let lab = evaluated();
    let storage = files(&lab.path("storage"));
    let records =
        storage.iter().filter(|(name, _)| name.starts_with("c_") && name.contains("/record/"));
    let mut seen = 0;
    for (name, text) in records {
        let record: Value = serde_json::from_slice(text).unwrap();
        for (number, output) in record["outputs"].as_array().unwrap().iter().enumerate() {
            let file = name.replace("/record/", &format!("/{number:02}/")).replace(".json", "");
            let digest = serde_json::to_value(Digest::hash_bytes(&storage[&file])).unwrap();
            for key in ["sha1", "blake3", "size"] {
                assert_eq!(output[key], digest[key], "{key} of {file}");
            }
            seen += 1;
        }
        let argv = &record["origin"]["executed"]["argv"];
        let argv: Vec<&str> =
            argv.as_array().unwrap()[1..].iter().map(|it| it.as_str().unwrap()).collect();
        assert!(argv.iter().all(|file| storage.contains_key(*file)), "{argv:?}");
        assert_eq!(record["commit"].as_str().unwrap().len(), 40);
    }
    assert_eq!(seen, 3);
}

#[test]
fn records_of_results_and_failures_hold_no_absolute_path() {
    let lab = evaluated();
    let is_result = |name: &str| name.ends_with(".json") && !name.starts_with("repositories/");
    let mut files = files(&lab.path("storage"));
    files.retain(|name, _| is_result(name));
    assert!(files.len() > 3, "three calls and a job have records");
    for (name, text) in files {
        let record: Value = serde_json::from_slice(&text).unwrap();
        assert!(
            texts(&record).iter().all(|text| !text.contains(lab.path("").to_str().unwrap())),
            "{name}: {record}"
        );
    }
    let lab = Lab::task("Inputs: 'x'\n(bad INPUT('x'))[0]").computation("bad", "a", "none", "");
    let lab = lab.file("computations/bad/exec", "#!/no/such/interpreter\n").commit();
    lab.ce_run(&[]).exit(1);
    let failure = lab.stored(&the_one(&lab, "c_bad/", "/failed/"));
    let record: Value = serde_json::from_str(&failure).unwrap();
    let reason = record["reason"].as_str().unwrap();
    assert!(!reason.contains(lab.path("").to_str().unwrap()), "{record}");
}

#[test]
fn what_is_gone_or_has_no_whole_record_is_computed_again() {
    let lab = evaluated();
    let is_computed_again = || {
        lab.ce_run(&["-n"]).exit(3);
        lab.ce_run(&[]).exit(0).called(vec!["divmod"]);
        lab.ce_run(&[]).exit(0).called(vec![]);
        assert_eq!(lab.output(), "5\n");
    };
    for part in ["/00/", "/01/"] {
        fs::remove_file(lab.path("storage").join(the_one(&lab, "c_divmod/", part))).unwrap();
        is_computed_again();
    }
    let name = the_one(&lab, "c_divmod/", "/record/");
    let record: Value = serde_json::from_str(&lab.stored(&name)).unwrap();
    // Records of another number of outputs.
    let of_outputs = [0, 1, 3, 100, 101].map(|count| {
        let mut record = record.clone();
        record["outputs"] = vec![record["outputs"][0].clone(); count].into();
        record.to_string()
    });
    let spoiled = ["", "{\"format\": 1", "{\"format\": 1}", "words\n"].map(str::to_owned);
    for text in of_outputs.into_iter().chain(spoiled) {
        put(&lab.path("storage").join(&name), &text);
        is_computed_again();
    }
}

#[test]
fn what_is_damaged_is_made_again_and_an_output_kept_aside() {
    let lab = evaluated();
    let name = the_one(&lab, "c_divmod/", "/01/");
    put(&lab.path("storage").join(&name), "damaged\n");
    lab.ce_run(&["-n"]).exit(3);
    lab.ce_run(&[]).exit(0).called(vec!["divmod"]);
    assert_eq!(lab.stored(&name), "2\n");
    let aside = lab.storage().into_iter().filter(|name| name.contains("/aside/"));
    assert!(aside.map(|name| lab.stored(&name)).any(|contents| contents == "damaged\n"));
    // A task input is stored again, and a job kept again.
    let input = the_one(&lab, "tinputs/ad/", "48103e4fc7");
    let job = the_one(&lab, "t_task/", "/00/");
    put(&lab.path("storage").join(&input), "damaged, at length\n");
    put(&lab.path("storage").join(&job), "?\n");
    lab.ce_run(&["-n"]).shows(&format!("{input} MISSING!!!"));
    lab.ce_run(&[]).exit(0).called(vec![]);
    assert_eq!((lab.stored(&input).as_str(), lab.stored(&job).as_str()), ("17\n", "5\n"));
}

#[test]
fn a_copied_or_touched_storage_is_used() {
    let lab = evaluated();
    for (name, contents) in files(&lab.path("storage")) {
        let copy = lab.path("copy").join(name);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(&copy, contents).unwrap();
        let later = SystemTime::now() + Duration::from_secs(1000);
        fs::File::options().append(true).open(copy).unwrap().set_modified(later).unwrap();
    }
    fs::rename(lab.path("storage"), lab.path("away")).unwrap();
    fs::rename(lab.path("copy"), lab.path("storage")).unwrap();
    lab.ce_run(&["-n"]).exit(0);
    lab.ce_run(&["--strict"]).exit(0).called(vec![]);
}

#[test]
fn a_record_of_a_newer_version_is_left_alone() {
    let lab = evaluated();
    let record = the_one(&lab, "c_add/", "/record/");
    put(&lab.path("storage").join(&record), "{\"format\": 5, \"everything\": \"else\"}\n");
    let before = lab.results();
    lab.ce_run(&[]).exit(5).called(vec![]).complains("run/newer-record.err");
    assert_eq!(lab.results(), before);
    assert!(lab.stored(&record).contains("everything"));
}

#[test]
fn outputs_without_a_record_are_used_only_if_all_are_there() {
    let lab = evaluated();
    lab.settle();
    fs::remove_file(lab.path("storage").join(the_one(&lab, "c_divmod/", "/record/"))).unwrap();
    lab.ce_run(&[]).exit(0).called(vec![]);
    fs::remove_file(lab.path("storage").join(the_one(&lab, "c_divmod/", "/record/"))).unwrap();
    fs::remove_file(lab.path("storage").join(the_one(&lab, "c_divmod/", "/01/"))).unwrap();
    lab.ce_run(&["-n"]).exit(3);
    lab.ce_run(&[]).exit(0).called(vec!["divmod"]);
    assert_eq!(lab.output(), "5\n");
}
