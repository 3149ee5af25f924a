//! Pages that describe fields name those of the schema; all others link to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{DEFINITIONS, file};

/// The pages that describe fields.
const DESCRIBING: [&str; 5] = [
    "events.md",
    "programs/ce.md",
    "programs/ce-log.md",
    "programs/ce-show.md",
    "programs/ce-table.md",
];

/// Words in backticks that are neither fields nor values of them.
const OTHER_WORDS: [&str; 4] = ["exec", "here", "status", "unsigned"];

/// The page about the output of a command.
fn page(command: &str) -> String {
    match command {
        "run" => "events.md".to_owned(),
        "check" => "programs/ce.md".to_owned(),
        _ => format!("programs/ce-{command}.md"),
    }
}

/// What the definitions for a page lead to.
struct Words<'a> {
    output: &'a Value,
    record: &'a Value,
    /// The names of fields, which the page has.
    fields: BTreeSet<&'a str>,
    /// What else it may have: values of fields, and the names of fields of records.
    others: BTreeSet<&'a str>,
    followed: BTreeSet<&'a str>,
}

impl<'a> Words<'a> {
    fn add(&mut self, schema: &'a Value) {
        let Some(fields) = schema.as_object() else {
            return schema.as_array().into_iter().flatten().for_each(|item| self.add(item));
        };
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    self.fields.extend(properties.keys().map(String::as_str));
                    properties.values().for_each(|field| self.add(field));
                }
                ("$ref", Value::String(name)) => self.follow(name),
                ("const", value) => self.others.extend(value.as_str()),
                ("enum", Value::Array(values)) => {
                    self.others.extend(values.iter().filter_map(Value::as_str));
                }
                _ => self.add(value),
            }
        }
    }

    fn follow(&mut self, name: &'a str) {
        let Some((file, pointer)) = name.split_once('#') else { return };
        if !file.is_empty() {
            let properties = self.record.pointer(pointer).unwrap()["properties"].as_object();
            self.others.extend(properties.into_iter().flatten().map(|(name, _)| name.as_str()));
            return;
        }
        if self.followed.insert(name) {
            self.add(self.output.pointer(pointer).unwrap());
        }
    }
}

/// The part of a page about JSON: sections with that title, tables of fields, and paragraphs and rows that name the option.
fn part(page: &str, text: &str) -> String {
    // Between fences are examples.
    let text: String = text.split("```").step_by(2).collect();
    if page == "events.md" {
        return text;
    }
    let mut part = Vec::new();
    for section in text.split("\n## ") {
        let is_whole = section.starts_with("With --json\n");
        for block in section.split("\n\n").filter(|block| !block.starts_with("    ")) {
            let is_row = block.starts_with('|') && !block.starts_with("| field");
            let pieces = if is_row { block.lines().collect() } else { vec![block] };
            let is_told =
                |it: &&str| is_whole || it.starts_with("| field") || it.contains("`--json`");
            part.extend(pieces.into_iter().filter(is_told));
        }
    }
    part.join("\n")
}

#[test]
fn pages_and_schema_name_the_same_fields() {
    let [output, record] = ["output.json", "record.json"].map(file);
    let mut wrong = Vec::new();
    for page in DEFINITIONS.iter().map(|(command, ..)| page(command)).collect::<BTreeSet<_>>() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("doc").join(&page);
        let text = fs::read_to_string(path).unwrap();
        if !DESCRIBING.contains(&page.as_str()) {
            if !text.contains("(../formats.md#output-as-json)") {
                wrong.push(format!("{page} does not link to the schema"));
            }
            continue;
        }
        let (fields, others, followed) = Default::default();
        let mut words = Words { output: &output, record: &record, fields, others, followed };
        let commands = DEFINITIONS.iter().filter(|(command, ..)| self::page(command) == page);
        commands.for_each(|(.., definition)| words.add(&output["$defs"][definition]));
        let text = part(&page, &text);
        let lacking = words.fields.iter().filter(|it| !text.contains(&format!("`{it}`")));
        wrong.extend(lacking.map(|field| format!("{page} lacks {field}")));
        let is_word = |it: &&str| it.bytes().all(|c| c.is_ascii_lowercase() || c == b'_');
        for word in text.split('`').skip(1).step_by(2).filter(is_word) {
            let known = [&words.fields, &words.others];
            if !known.iter().any(|it| it.contains(word)) && !OTHER_WORDS.contains(&word) {
                wrong.push(format!("{page} has {word}, and the schema has not"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
