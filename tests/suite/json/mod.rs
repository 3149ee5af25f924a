//! The JSON output of programs follows `doc/schema/output.json`: every output of every test is compared with it.

mod pages;
mod schema;
mod states;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Registry, ValidationError, Validator};
use serde_json::{Deserializer, Value, json};

/// The JSON output that a program was asked for: a definition of the schema.
#[derive(Debug)]
pub(crate) struct Asked {
    definition: &'static str,
    command: String,
}

/// The definitions of what commands print: the command, an option that asks for another definition, and that.
const DEFINITIONS: [(&str, &[&str], &str); 24] = [
    ("audit", &["-n", "--dry-run"], "audit_dry_run"),
    ("audit", &[], "audit"),
    ("bisect", &[], "bisect"),
    ("check", &[], "check"),
    ("commits", &[], "commits"),
    ("compare", &[], "compare"),
    ("diff", &[], "diff"),
    ("doctor", &[], "doctor"),
    ("explain", &[], "explain"),
    ("export", &[], "export"),
    ("gc", &["--repositories"], "gc_repositories"),
    ("gc", &[], "gc"),
    ("log", &["--resources"], "log_resources"),
    ("log", &[], "log"),
    ("pin", &[], "pin"),
    ("pull", &[], "pull"),
    ("push", &[], "push"),
    ("run", &[], "run"),
    ("show", &[], "show"),
    ("status", &[], "status"),
    ("table", &["--at", "--at"], "table_versions"),
    ("table", &["--summary"], "table_summary"),
    ("table", &[], "table"),
    ("verify", &[], "verify"),
];

/// The only command that prints JSON without `--json`.
const ALWAYS: &str = "commits";

/// The commands that print one document when they succeed, and not any number of lines.
const DOCUMENTS: [&str; 6] = ["check", "export", "pull", "push", "show", "status"];

impl Asked {
    /// Returns the output that a command asks one of the programs for, also by way of another program that starts it.
    pub(crate) fn from_command(command: &Command) -> Option<Self> {
        let words = [command.get_program()].into_iter().chain(command.get_args());
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        let programs = [env!("CARGO_BIN_EXE_ce"), env!("CARGO_BIN_EXE_ce-run")];
        let at = words.iter().position(|word| programs.contains(&word.as_str()))?;
        let rest = words[at + 1..].split(|word| word == "--").next()?;
        let (name, options) = match words[at] == programs[0] {
            true => rest.split_first()?,
            false => (&"run".to_owned(), rest),
        };
        let count =
            |option: &str| options.iter().filter(|it| it.split('=').next() == Some(option)).count();
        let asks = |asked: &[&str]| match asked {
            [one, other] if one == other => count(one) == 2,
            _ => asked.is_empty() || asked.iter().any(|option| count(option) > 0),
        };
        let (.., definition) =
            DEFINITIONS.iter().find(|(it, asked, _)| it == name && asks(asked))?;
        let has = |option: &str| options.iter().any(|it| it == option);
        let is_asked = (name == ALWAYS || has("--json")) && !has("--help");
        is_asked.then(|| Self { definition, command: words[at..].join(" ") })
    }

    /// Compares the output with the schema. One that was killed may have printed a part of a line.
    #[track_caller]
    pub(crate) fn check(&self, output: &Output) {
        let Self { definition, command } = self;
        let told = |why: String| {
            let text = String::from_utf8_lossy(&output.stdout);
            panic!("{command}: {why}\n{text}\n{}", String::from_utf8_lossy(&output.stderr))
        };
        let mut count = 0;
        for value in Deserializer::from_slice(&output.stdout).into_iter::<Value>() {
            match value {
                Ok(value) => {
                    let faults = faults(definition, &value);
                    if !faults.is_empty() {
                        told(format!("{definition} is not {value:#}\n{}", faults.join("\n")));
                    }
                }
                Err(error) if error.is_eof() && output.status.code().is_none() => {}
                Err(error) => told(format!("no JSON: {error}")),
            }
            count += 1;
        }
        if DOCUMENTS.contains(definition) && output.status.success() && count != 1 {
            told(format!("{count} documents"));
        }
    }
}

/// Compares an event of `ce-run --json` with the schema, for a test that reads them as they come.
#[track_caller]
pub(crate) fn check_event(line: &str) {
    let event = serde_json::from_str(line).unwrap();
    assert_eq!(faults("run", &event), [""; 0], "{line}");
}

/// A file of `doc/schema`.
fn file(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("doc/schema").join(name);
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Returns the faults of a value that is to be one of a definition.
fn faults(definition: &str, value: &Value) -> Vec<String> {
    static VALIDATORS: OnceLock<BTreeMap<&str, Validator>> = OnceLock::new();
    let validators = VALIDATORS.get_or_init(|| {
        let registry = Registry::new().add("json-schema:///record.json", file("record.json"));
        let registry = registry.unwrap().prepare().unwrap();
        let validator = |(_, _, definition): &(_, _, &'static str)| {
            let mut schema = file("output.json");
            schema["$ref"] = json!(format!("#/$defs/{definition}"));
            let options = jsonschema::options().should_validate_formats(true);
            (*definition, options.with_registry(&registry).build(&schema).unwrap())
        };
        DEFINITIONS.iter().map(validator).collect()
    });
    validators[definition].iter_errors(value).map(|error| reason(&error)).collect()
}

/// Returns the reason why a value is not valid: of alternatives, the fault of the one that fits best.
fn reason(error: &ValidationError<'_>) -> String {
    let best = match error.kind() {
        ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } => {
            context.iter().min_by_key(|errors| errors.len())
        }
        _ => None,
    };
    match best {
        Some(errors) => errors.iter().map(reason).collect::<Vec<_>>().join("\n"),
        None => format!("at {:?}: {error}", error.instance_path().as_str()),
    }
}
