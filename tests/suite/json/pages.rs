//! Each page about a program that prints JSON links to the schema, which alone describes the fields.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::DEFINITIONS;

/// The page about the output of a command.
fn page(command: &str) -> String {
    match command {
        "run" => "events.md".to_owned(),
        "check" => "programs/ce.md".to_owned(),
        _ => format!("programs/ce-{command}.md"),
    }
}

#[test]
fn each_page_about_json_links_to_the_schema() {
    for page in DEFINITIONS.iter().map(|(command, ..)| page(command)).collect::<BTreeSet<_>>() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("doc").join(&page);
        let text = fs::read_to_string(path).unwrap();
        let link = "formats.md#output-as-json)";
        assert!(text.contains(link), "{page} does not link to the schema");
    }
}
