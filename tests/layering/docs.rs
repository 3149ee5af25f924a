//! Every public item says what it is: a function, a type, a trait and its items, a constant. The lint `missing_docs` would ask the same of
//! fields and variants, where a comment often only repeats the name.

use super::{program, without_tests, word};

/// The words that begin a public item after `pub`, and may stand before its name.
const KINDS: [&str; 10] =
    ["async", "const", "enum", "extern", "fn", "static", "struct", "trait", "type", "unsafe"];

/// The public items of a file without a comment, by their lines from 1. Items of a public trait count as public. Modules have a `//!`.
fn undocumented(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut is_documented, mut is_in_trait, mut is_in_attribute) = (false, false, false);
    for (at, line) in without_tests(text).lines().enumerate() {
        let trimmed = line.trim_start();
        if is_in_attribute || trimmed.starts_with("#[") {
            is_documented |= trimmed.starts_with("#[doc");
            is_in_attribute = !line.ends_with(']');
            continue;
        }
        let item = match trimmed.strip_prefix("pub ") {
            Some(item) if KINDS.contains(&word(item)) => Some(item),
            None if is_in_trait && line.starts_with("    ") && !line.starts_with("     ") => {
                Some(trimmed).filter(|item| KINDS.contains(&word(item)))
            }
            _ => None,
        };
        if let Some(item) = item.filter(|_| !is_documented) {
            found.push(format!("{}: {}", at + 1, item.trim_end_matches(" {")));
        }
        is_in_trait = (is_in_trait && line != "}")
            || (trimmed.starts_with("pub trait ") && !line.ends_with('}'));
        // A macro passes the comment on.
        is_documented = trimmed.starts_with("///") || trimmed.starts_with("$(#[$doc])*");
    }
    found
}

#[test]
fn every_public_item_has_a_comment() {
    let files = program();
    let all = files.iter().flat_map(|(file, text)| {
        undocumented(text).into_iter().map(move |item| format!("{file}:{item}"))
    });
    assert_eq!(all.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn items_without_a_comment_are_found_and_fields_need_none() {
    let text = "pub struct Bare {\n    pub field: u8,\n}\n\
                /// A type.\n#[derive(\n    Clone,\n)]\npub enum Told {\n    Variant { field: u8 },\n}\n\
                impl Told {\n    pub const fn bare(&self) {}\n\n    /// Does it.\n    pub fn told(&self) {}\n}\n\
                /// A trait.\npub trait Contract {\n    fn bare();\n    /// Does it.\n    fn told() {\n        fn inner() {}\n    }\n}\n\
                $(#[$doc])*\npub struct $name(u32);\nfn private() {}\npub(crate) fn narrow() {}\npub use a::b;\npub mod inner;\n";
    let found = ["1: struct Bare", "12: const fn bare(&self) {}", "19: fn bare();"];
    assert_eq!(undocumented(text), found);
}
