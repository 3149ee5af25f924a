//! The schema of outputs: it has each command, describes each field, and allows no other.

use std::collections::BTreeSet;

use clap::CommandFactory;
use compeval::cli::Ce;
use serde_json::Value;

use super::{ALWAYS, DEFINITIONS, file};

/// The schemas of objects within a schema, by their places. Other requirements on an object are not schemas.
fn objects<'a>(schema: &'a Value, place: &str, found: &mut Vec<(String, &'a Value)>) {
    let Some(fields) = schema.as_object() else {
        let items = schema.as_array().into_iter().flatten().enumerate();
        return items.for_each(|(at, item)| objects(item, &format!("{place}/{at}"), found));
    };
    let has_fields = fields.contains_key("properties");
    if has_fields {
        found.push((place.to_owned(), schema));
    }
    for (key, value) in fields.iter().filter(|(key, _)| !(has_fields && *key == "oneOf")) {
        let place = format!("{place}/{key}");
        match key == "properties" || key == "$defs" {
            false => objects(value, &place, found),
            true => value
                .as_object()
                .unwrap()
                .iter()
                .for_each(|(name, value)| objects(value, &format!("{place}/{name}"), found)),
        }
    }
}

/// All references in a schema with this keyword around them.
fn references<'a>(schema: &'a Value, within: Option<&str>, found: &mut BTreeSet<&'a str>) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value.as_str()) {
                    ("$ref", Some(name)) if within.is_none() => drop(found.insert(name)),
                    _ if within == Some(key) => references(value, None, found),
                    _ => references(value, within, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, within, found)),
        _ => {}
    }
}

#[test]
fn each_command_that_prints_json_has_a_definition() {
    let mut program = Ce::command();
    program.build();
    let prints = |command: &&clap::Command| command.get_arguments().any(|it| it.get_id() == "json");
    let commands = program.get_subcommands().filter(prints).map(clap::Command::get_name);
    let commands: BTreeSet<&str> = commands.chain([ALWAYS]).collect();
    assert_eq!(commands, DEFINITIONS.iter().map(|(command, ..)| *command).collect());
    let schema = file("output.json");
    let titled = schema["$defs"].as_object().unwrap().iter();
    let titled = titled.filter(|(_, definition)| definition["title"].is_string());
    let titled: BTreeSet<&str> = titled.map(|(name, _)| name.as_str()).collect();
    assert_eq!(titled, DEFINITIONS.iter().map(|(.., definition)| *definition).collect());
}

#[test]
fn each_field_is_described_and_no_other_is_allowed() {
    let schema = file("output.json");
    assert!(jsonschema::meta::is_valid(&schema), "it is a schema");
    let (mut found, mut extended) = (Vec::new(), BTreeSet::new());
    objects(&schema, "#", &mut found);
    references(&schema, Some("allOf"), &mut extended);
    assert!(found.len() > 60, "{} objects", found.len());
    for (place, object) in found {
        let is_closed = ["additionalProperties", "unevaluatedProperties"].map(|key| &object[key]);
        let is_closed = is_closed.contains(&&Value::Bool(false));
        assert_ne!(is_closed, extended.contains(place.as_str()), "{place} allows other fields");
        let required = object["required"].as_array().into_iter().flatten();
        let required: BTreeSet<&str> = required.filter_map(Value::as_str).collect();
        for (name, field) in object["properties"].as_object().unwrap() {
            let referred = field["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
            let referred = referred.and_then(|pointer| schema.pointer(pointer));
            let texts = [Some(field), referred].into_iter().flatten();
            let text = texts.filter_map(|it| it["description"].as_str()).next();
            let text = text.unwrap_or_else(|| panic!("nothing describes {place}/{name}"));
            let may_be_absent = text.to_lowercase().contains("absent");
            assert_ne!(required.contains(name.as_str()), may_be_absent, "{place}/{name}: {text}");
        }
    }
}

#[test]
fn each_definition_is_used() {
    let schema = file("output.json");
    let mut used = BTreeSet::new();
    references(&schema, None, &mut used);
    for (name, _) in schema["$defs"].as_object().unwrap() {
        let is_printed = DEFINITIONS.iter().any(|(.., definition)| definition == name);
        assert_ne!(is_printed, used.contains(format!("#/$defs/{name}").as_str()), "{name}");
    }
}
