//! The records that runs leave are what `doc/schema/record.json` says, and program and schema refuse
//! the same.

use std::collections::BTreeSet;
use std::fs;

use compeval::storage::{
    Durability, KnownRepositories, LongText, RecipeHeader, RecipeWriter, RecordState, Storage,
    StorageIdentity, Survey, TableDirectory, Unrecorded, VersionRecord,
};
use jsonschema::Validator;
use serde_json::{Value, json};

use crate::lab::{Lab, files};

/// The kinds of records, as the schema names them, and where they are in a storage.
const KINDS: [(&str, &str, &str); 16] = [
    ("suspension", "c_", "/state.json"),
    ("collected", "c_", "/collected/"),
    ("collected", "t_", "/collected/"),
    ("collected", "tables/", "/collected/"),
    ("version", "c_", "/version.json"),
    ("pin", "c_", "/pinned/"),
    ("pin", "tables/", "/pinned/"),
    ("pin", "tinputs/", "/pinned/"),
    ("call", "c_", "/record/"),
    ("failure", "c_", "/failed/"),
    ("job", "t_", "/record/"),
    ("table", "tables/", "/record/"),
    ("task_input", "tinputs/", "/record/"),
    ("commit_tree", "tinputs/", "/commits/"),
    ("storage", "repositories/", "/repositories/storage"),
    ("repository", "repositories/", "/repositories/"),
];

/// A record: its kind, its name in the storage, and its contents.
struct Found {
    kind: &'static str,
    name: String,
    record: Value,
}

fn found(lab: &Lab) -> Vec<Found> {
    let files = files(&lab.path("storage")).into_iter();
    let is_record = |name: &str| name.ends_with(".json") || name == "repositories/storage";
    let records = files.filter(|(name, _)| is_record(name) && !name.contains("/aside/"));
    let found = records.map(|(name, text)| {
        let place = |(_, begin, room): &&(_, &str, &str)| {
            name.starts_with(begin) && format!("/{name}").contains(room)
        };
        let Some((kind, ..)) = KINDS.iter().find(place) else { panic!("no kind of {name}") };
        Found { kind, record: serde_json::from_slice(&text).unwrap(), name }
    });
    found.collect()
}

/// Returns the documented schema of one kind of records, or of any.
pub(crate) fn schema(kind: Option<&str>) -> Validator {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/doc/schema/record.json");
    let mut schema: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert!(jsonschema::meta::is_valid(&schema), "it is a schema");
    if let Some(kind) = kind {
        assert!(schema["$defs"][kind].is_object(), "{kind} is described");
        schema.as_object_mut().unwrap().remove("anyOf");
        schema["$ref"] = format!("#/$defs/{kind}").into();
    }
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}

/// A storage with calls, some of them adopted, with a job, two tables, and with names of forty digits.
fn successes() -> Lab {
    let text = "Inputs: 'one', 'other'
        (both (copy INPUT('one'))[0] (copy INPUT('other'))[0])[0]";
    let lab = Lab::task(text)
        .computation("copy", "a", "a", r#"cat "$1" >"$2""#)
        .computation("both", "a b", "both", r#"echo said; cat "$1" "$2" >"$3""#)
        .data("one", "input 11405692\n")
        .data("other", "input 27966124\n")
        .file("resources", "copy cpus 1\n")
        .commit();
    lab.ce_run(&[]).exit(0).called(vec!["both", "copy", "copy"]);
    let record = found(&lab)
        .into_iter()
        .find(|found| found.kind == "call" && found.name.starts_with("c_both/"));
    fs::remove_file(lab.path("storage").join(record.unwrap().name)).unwrap();
    lab.settle();
    lab.ce_run(&[]).exit(0).called(vec![]);
    publish_tables(&lab);
    lab
}

/// Publishes a table, and one with its directory.
fn publish_tables(lab: &Lab) {
    let path = lab.path("storage");
    let storage = Storage::open(&path, Unrecorded::Adopt, Durability::Unsynced).unwrap();
    let results = lab.results().into_keys();
    let copies = results.filter(|name| name.starts_with("c_copy/"));
    for (copy, with_directory) in copies.zip([false, true]) {
        let output = storage.inputs().literal(&copy).unwrap().unwrap();
        let mut recipe = RecipeWriter::begin(Vec::new(), &RecipeHeader::default()).unwrap();
        recipe.row([], [(&*output.name, &output.digest)]).unwrap();
        let members = vec![("copy".to_owned(), output)];
        let directory = TableDirectory { points: b"{}\n".to_vec(), members };
        let directory = Some(&directory).filter(|_| with_directory);
        let recipe = LongText::of_bytes(recipe.finish());
        storage.tables().publish(&recipe, &LongText::of_bytes(b"{}\n"), directory).unwrap();
    }
}

/// A storage with pins, and with the tombstones of a call and of the job.
fn collected() -> Lab {
    let lab = successes();
    let pin = |file: &str, note: &[&str]| {
        lab.run("ce", &[&["pin"], note, &["../storage", file]].concat()).exit(0);
    };
    let files = lab.results().into_keys().collect::<Vec<_>>();
    let file = |begin: &str| files.iter().find(|name| name.starts_with(begin)).unwrap();
    pin(file("c_copy/"), &["--note=figure 3"]);
    pin(file("tinputs/"), &[]);
    pin(file("tables/"), &["--note=figure 4"]);
    lab.run("ce", &["gc", "--delete", "--no-keep", "--older=0s", "../storage"]).exit(0);
    lab
}

/// A storage with a failure of each sort.
fn failures() -> Lab {
    let text = "Inputs: 'x'
        (all (status INPUT('x'))[0] (killed INPUT('x'))[0] (none INPUT('x'))[0])[0]";
    let lab = Lab::task(text)
        .computation("all", "a b c", "all", "")
        .computation("status", "a", "a", "exit 3")
        .computation("killed", "a", "a", "kill -9 $$")
        .computation("none", "a", "a", "")
        .file("computations/none/exec", "#!/no/such/interpreter\n")
        .commit();
    lab.ce_run(&[]).exit(1);
    lab
}

#[test]
fn every_record_agrees_with_the_schema() {
    let (good, bad) = (successes(), failures());
    let records: Vec<Found> = [&good, &bad].into_iter().flat_map(found).collect();
    let any = schema(None);
    for (kind, ..) in KINDS {
        let schema = schema(Some(kind));
        for Found { name, record, .. } in records.iter().filter(|found| found.kind == kind) {
            let errors: Vec<String> = schema.iter_errors(record).map(|e| e.to_string()).collect();
            assert_eq!(errors, Vec::<String>::new(), "{name}");
            assert!(any.is_valid(record), "{name}");
        }
    }
    let mut seen: Vec<&str> = records.iter().map(|found| found.kind).collect();
    seen.sort_unstable();
    let expected = [
        &["call"; 3][..],
        &["failure"; 3],
        &["job"],
        &["repository"; 2],
        &["storage"; 2],
        &["table"; 2],
        &["task_input"; 3],
        &["version"; 6],
    ];
    assert_eq!(seen, expected.concat());
    let of = |key: &'static str| records.iter().map(move |found| found.record[key].to_string());
    assert_eq!(of("origin").filter(|origin| origin == "\"adopted\"").count(), 1);
    let ends = of("exit_status").zip(of("signal")).collect::<BTreeSet<_>>();
    assert_eq!(ends.len(), 3, "by itself, by a signal, and neither: {ends:?}");
    let digits = |found: &Found| found.name.rsplit('/').next().unwrap().len() - ".json".len();
    let full =
        records.iter().filter(|found| found.kind == "call" && found.name.starts_with("c_copy/"));
    assert_eq!(full.map(digits).collect::<BTreeSet<_>>(), [12, 40].into());
}

/// Whether the program understands this in the place of a record.
fn is_understood(lab: &Lab, found: &Found, record: &Value) -> bool {
    let path = lab.path("storage").join(&found.name);
    let kept = fs::read(&path).unwrap();
    fs::write(&path, record.to_string()).unwrap();
    let storage = Storage::existing(&lab.path("storage")).unwrap();
    let understood = if found.kind == "version" {
        serde_json::from_value::<VersionRecord>(record.clone()).is_ok()
    } else if found.kind == "failure" {
        // Those that are not understood are left out.
        Survey::new(&storage).failures().unwrap().len() == 3
    } else if found.kind == "repository" {
        KnownRepositories::new(&storage).all().is_ok_and(|known| known[0].record.is_some())
    } else if found.kind == "storage" {
        StorageIdentity::new(&storage).read().is_ok_and(|id| id.is_some())
    } else {
        let entries = Survey::new(&storage).entries().unwrap();
        let entry = entries.iter().find(|entry| entry.record() == found.name).unwrap();
        matches!(storage.records().read_entry(entry), Ok(RecordState::Valid(_)))
    };
    fs::write(&path, kept).unwrap();
    understood
}

/// The places of all values within a record, as JSON pointers.
pub(crate) fn places(value: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    let below = |(key, value): (String, &Value)| {
        let places = places(value).into_iter();
        let places = places.map(|place| format!("/{key}{place}")).collect::<Vec<_>>();
        [vec![format!("/{key}")], places].concat()
    };
    children.into_iter().flat_map(below).collect()
}

/// The record with one value changed.
pub(crate) fn with(record: &Value, place: &str, change: impl Fn(&mut Value)) -> Value {
    let mut record = record.clone();
    change(record.pointer_mut(place).unwrap());
    record
}

/// The record without one field, unless the place is one of an array.
pub(crate) fn without(record: &Value, place: &str) -> Option<Value> {
    let (parent, key) = place.rsplit_once('/').unwrap();
    let mut record = record.clone();
    record.pointer_mut(parent).unwrap().as_object_mut()?.remove(key)?;
    Some(record)
}

#[test]
fn pins_and_tombstones_agree_with_the_schema() {
    let records = found(&collected());
    let mut seen = BTreeSet::new();
    for Found { kind, name, record } in &records {
        let valid = |record: &Value| schema(Some(kind)).is_valid(record);
        assert!(valid(record), "{name}: {record:#}");
        if let "pin" | "collected" = *kind {
            seen.insert((*kind, &name[..2], record["note"].as_str()));
            let of = if *kind == "pin" { "recorded" } else { "collected" };
            let spoiled = without(record, &format!("/{of}")).unwrap();
            assert!(!valid(&spoiled), "{name} without {of}");
        }
    }
    let expected = [
        ("collected", "c_", None),
        ("collected", "t_", None),
        ("collected", "ta", None),
        ("pin", "c_", Some("figure 3")),
        ("pin", "ta", Some("figure 4")),
        ("pin", "ti", None),
    ];
    assert_eq!(seen, expected.into());
}

#[test]
fn the_record_of_a_dirty_computation_agrees_with_the_schema() {
    let lab = successes().computation("copy", "a", "a", r#"cat "$1" - >"$2""#);
    lab.ce_run(&["--dirty"]).exit(0);
    let records = found(&lab)
        .into_iter()
        .filter(|found| found.kind == "call" && found.record["dirty"] == true);
    let records: Vec<Found> = records.collect();
    assert_eq!(records.len(), 2, "both calls of it");
    for Found { record, .. } in records {
        assert!(schema(Some("call")).is_valid(&record), "{record:#}");
        let spoiled = with(&record, "/dirty", |value| *value = json!("yes"));
        assert!(!schema(Some("call")).is_valid(&spoiled));
    }
}

#[test]
fn program_and_schema_refuse_records_without_a_field_or_with_another_type() {
    let mut refused = 0;
    for lab in [successes(), failures()] {
        for found in found(&lab) {
            let schema = schema(Some(found.kind));
            assert!(is_understood(&lab, &found, &found.record));
            for place in places(&found.record) {
                let other = with(&found.record, &place, |value| *value = json!([true]));
                // Earlier versions did not record these, and calls that ask for nothing have none.
                let is_optional = place.ends_with("/host_kind")
                    || place.ends_with("/machine")
                    || ["/place", "/literals", "/origin/executed/resources"].contains(&&*place)
                    || found.kind == "failure" && ["/tree", "/isolation"].contains(&&*place);
                // Records in a results repository have none of these.
                let is_unshared = ["/modified_ns", "/stamp"].iter().any(|it| place.ends_with(it))
                    || place == "/recorded" && ["call", "job", "table"].contains(&found.kind);
                let without = without(&found.record, &place).filter(|_| !is_optional);
                let spoiled = without.into_iter().map(|it| (it, is_unshared));
                for (spoiled, may_be_shared) in spoiled.chain([(other, false)]) {
                    let told = format!("{} at {place}: {spoiled:#}", found.name);
                    assert!(!schema.is_valid(&spoiled), "the schema accepts {told}");
                    assert!(
                        may_be_shared || !is_understood(&lab, &found, &spoiled),
                        "the program accepts {told}"
                    );
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 300, "{refused} spoiled records");
}

#[test]
fn program_and_schema_refuse_numbers_beyond_two_digits() {
    for lab in [successes(), failures()] {
        for found in found(&lab) {
            let schema = schema(Some(found.kind));
            for (list, count) in [("/inputs", 100), ("/inputs", 101), ("/outputs", 101)] {
                let Some(first) = found.record.pointer(list).map(|list| list[0].clone()) else {
                    continue;
                };
                // A task may have any number of inputs.
                let few = count == 100 || (found.kind == "job" && list == "/inputs");
                let many = with(&found.record, list, |it| *it = vec![first.clone(); count].into());
                assert_eq!(schema.is_valid(&many), few, "{} with {count} {list}", found.name);
                assert_eq!(
                    is_understood(&lab, &found, &many),
                    few,
                    "{} {count} {list}",
                    found.name
                );
            }
        }
    }
}

#[test]
fn program_and_schema_ignore_fields_that_they_do_not_know() {
    for lab in [successes(), failures()] {
        for found in found(&lab) {
            let schema = schema(Some(found.kind));
            for place in places(&found.record).into_iter().chain([String::new()]) {
                // An object that is either one thing or another has no room for more.
                if place == "/origin" || !found.record.pointer(&place).unwrap().is_object() {
                    continue;
                }
                let more = with(&found.record, &place, |value| value["later"] = json!({"a": []}));
                assert!(schema.is_valid(&more), "the schema refuses {more:#}");
                assert!(is_understood(&lab, &found, &more), "the program refuses {more:#}");
            }
        }
    }
}

#[test]
fn the_schema_refuses_records_that_no_program_writes() {
    let (good, bad) = (successes(), failures());
    let records: Vec<Found> = [&good, &bad].into_iter().flat_map(found).collect();
    let executed = "/origin/executed";
    let spoiled = [
        ("call", "/commit", json!("567526d1f10f")),
        ("call", "/computation", json!("..")),
        ("call", "/format", json!(4)),
        ("call", "/inputs/0/sha1", json!("AD48103E4FC71796E9708CAFC43ADEED0D1076B7")),
        ("call", "/inputs/0/size", json!(-1)),
        ("call", "/inputs/0/size", json!(1.5)),
        ("call", "/origin", json!("guessed")),
        ("call", executed, json!({})),
        ("call", "/origin/executed/stage", json!("../data/x")),
        ("call", "/origin/executed/stage", json!("tmp/../../x")),
        ("call", "/origin/executed/stage", json!("/etc/passwd")),
        ("call", "/origin/executed/exit_status", json!(1)),
        ("call", "/origin/executed/user_seconds", json!(-0.5)),
        ("call", "/origin/executed/resources", json!([])),
        ("call", "/origin/executed/resources", json!([4])),
        ("call", "/recorded/at", json!("2026-01-01T00:00:00+01:00")),
        ("call", "/recorded/at", json!("2026-13-01T00:00:00Z")),
        ("failure", "/seconds", json!(-1)),
        ("failure", "/reason", json!(null)),
        ("job", "/task", json!("a/b")),
        ("job", "/inputs/0/name", json!("a\nb")),
        ("job", "/outputs/0/file", json!("./a")),
        ("table", "/outputs", json!([])),
        ("table", "/recipe/size", json!(-1)),
        ("task_input", "/blake3", json!("00")),
        ("task_input", "/modified_ns", json!("1795259659933552455")),
    ];
    for (kind, place, value) in spoiled {
        let whole = |found: &&Found| found.kind == kind && found.record.pointer(place).is_some();
        let Found { record, .. } = records.iter().find(whole).unwrap();
        let spoiled = with(record, place, |it| *it = value.clone());
        assert!(!schema(Some(kind)).is_valid(&spoiled), "{kind} with {value} at {place}");
        assert!(!schema(None).is_valid(&spoiled), "any record with {value} at {place}");
    }
}
