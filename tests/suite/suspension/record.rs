//! The record of a suspended call: the fields of the schema, and the fields that the program reads.

use std::fs;

use compeval::storage::Storage;
use serde_json::{Value, json};

use crate::lab::Lab;
use crate::records::{places, schema, with, without};

#[test]
fn the_record_of_a_suspended_call_agrees_with_the_schema() {
    let lab = Lab::task("Inputs: 'x'\n(wait INPUT('x'))[0]")
        .computation("wait", "x", "y", "exit 75")
        .file("computations/wait/access", "suspend\nread /usr\n")
        .commit();
    lab.ce_run(&[]).exit(4);
    let (place, record) = lab.one_suspended();
    let record = &record;
    let (schema, any) = (schema(Some("suspension")), schema(None));
    let errors: Vec<String> = schema.iter_errors(record).map(|e| e.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new(), "{record:#}");
    assert!(any.is_valid(record));
    assert_eq!(record["access"], json!(["suspend", "read /usr"]));
    let path = place.join("state.json");
    let is_understood = |record: &Value| {
        fs::write(&path, record.to_string()).unwrap();
        let storage = Storage::existing(&lab.path("storage")).unwrap();
        !storage.suspensions().all().unwrap().is_empty()
    };
    assert!(is_understood(record));
    for place in places(record) {
        let other = with(record, &place, |value| *value = json!([true]));
        // A value from elsewhere has no time: it is read. A user without a home has no key.
        let may_lack = place.ends_with("/modified_ns") || place == "/code";
        for spoiled in without(record, &place).filter(|_| !may_lack).into_iter().chain([other]) {
            assert!(!schema.is_valid(&spoiled), "the schema accepts {place}: {spoiled:#}");
            assert!(!is_understood(&spoiled), "the program accepts {place}: {spoiled:#}");
        }
    }
}
