//! Licences: names in the list of SPDX, expressions of these, and addresses of texts.

use std::collections::BTreeMap;

use ce_model::name::encoded;
use ce_model::suggest::nearest;
use spdx::error::{ParseError, Reason};
use spdx::flags::IS_DEPRECATED;
use spdx::identifiers::{EXCEPTIONS, LICENSES};
use spdx::{AdditionItem, Expression, LicenseItem, ParseMode};

use super::entities::{Entities, is_web_address, references, valid_url};

/// The address of the list of SPDX.
const LIST: &str = "https://spdx.org/licenses/";

/// Expressions as SPDX defines them. The list has names that it advises against, such as GPL-3.0, and some repositories use them.
const MODE: ParseMode =
    ParseMode { allow_deprecated: true, allow_postfix_plus_on_gpl: true, ..ParseMode::STRICT };

/// Names in the list that are not licences.
const NO_LICENCE: [&str; 2] = ["NOASSERTION", "NONE"];

/// A licence: an expression of SPDX, such as an identifier, or the address of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LicenceName {
    /// It, as it was given.
    text: String,
    /// Its names in the list of SPDX; empty for an address.
    listed: Vec<&'static str>,
    /// It is a single name of the list.
    is_listed: bool,
    /// The names in it of licences that are not in the list, with their texts.
    pub(super) own: BTreeMap<String, String>,
}

impl LicenceName {
    /// Reads a licence.
    ///
    /// # Errors
    ///
    /// Fails if it is neither.
    pub fn parse(text: &str) -> Result<Self, LicenceFault> {
        let text = text.trim();
        if is_web_address(text) {
            let (text, listed, own) = (text.to_owned(), Vec::new(), BTreeMap::new());
            return Ok(Self { text, listed, is_listed: false, own });
        }
        let parsed = Expression::parse_mode(text, MODE).map_err(|error| fault(&error))?;
        let (mut listed, mut is_listed, mut own) = (Vec::new(), true, BTreeMap::new());
        for requirement in parsed.requirements() {
            match &requirement.req.license {
                LicenseItem::Spdx { id, or_later } => {
                    listed.push(id.name);
                    is_listed &= !or_later;
                }
                LicenseItem::Other(licence) => drop(own.insert(licence.to_string(), String::new())),
            }
            match &requirement.req.addition {
                Some(AdditionItem::Spdx(exception)) => listed.push(exception.name),
                Some(AdditionItem::Other(terms)) => {
                    drop(own.insert(terms.to_string(), String::new()));
                }
                None => {}
            }
        }
        if let Some(none) = listed.iter().find(|name| NO_LICENCE.contains(name)) {
            return Err(LicenceFault::Unlisted { name: (*none).to_owned(), nearest: None });
        }
        is_listed &= listed.len() == 1 && own.is_empty();
        Ok(Self { text: text.to_owned(), listed, is_listed, own })
    }

    /// Describes it in a crate. Returns its id.
    pub(super) fn describe(&self, graph: &mut Entities) -> String {
        match self.listed[..] {
            [name] if self.is_listed => listed(name, graph),
            _ if is_web_address(&self.text) => addressed(&self.text, &self.text, graph),
            _ => {
                let parts = self.listed.iter().map(|name| listed(name, graph));
                let mut parts: Vec<String> = parts.collect();
                for (name, text) in &self.own {
                    let part = format!("#licence/{}", encoded(name));
                    let entity = graph.entity(&part, &["CreativeWork"]).with("name", &**name);
                    entity.with("description", &**text);
                    parts.push(part);
                }
                let id = format!("#licence/{}", encoded(&self.text));
                if parts == [&*id] {
                    return id;
                }
                let entity = graph.entity(&id, &["CreativeWork"]).with("name", &*self.text);
                entity.with("identifier", &*self.text);
                entity.with("description", "A licence expression of SPDX");
                entity.set("isBasedOn", references(parts));
                id
            }
        }
    }
}

/// Describes an entry of the list of SPDX.
fn listed(name: &str, graph: &mut Entities) -> String {
    addressed(name, &format!("{LIST}{name}"), graph)
}

fn addressed(name: &str, address: &str, graph: &mut Entities) -> String {
    let address = valid_url(address);
    let entity = graph.entity(&address, &["CreativeWork"]).with("name", name);
    entity.with("url", address.as_str());
    address
}

/// A fault of a licence.
#[derive(Debug, thiserror::Error)]
pub enum LicenceFault {
    /// The list of SPDX does not have a name.
    #[error(
        "{name:?} is not in the list of SPDX, {}",
        nearest.as_ref().map_or(format!("which is at {LIST}"), |it| format!("which has {it}"))
    )]
    Unlisted {
        name: String,
        /// The name that may be meant.
        nearest: Option<String>,
    },
    /// It is not written as an expression is.
    #[error(
        "{0:?} is neither an expression of SPDX, such as CC-BY-4.0 or MIT OR Apache-2.0, nor the address of a licence"
    )]
    Syntax(String),
}

/// Returns the fault of an expression, with the name that may be meant.
fn fault(error: &ParseError) -> LicenceFault {
    let text = &*error.original;
    let is_unknown = matches!(
        error.reason,
        Reason::UnknownTerm | Reason::UnknownLicense | Reason::UnknownException
    );
    if !is_unknown || text.contains("://") {
        return LicenceFault::Syntax(text.to_owned());
    }
    let part = text.get(error.span.clone()).unwrap_or(text);
    let (name, nearest) = match written_otherwise(text) {
        Some(meant) => (text, Some(meant)),
        None => (part, written_otherwise(part).or_else(|| mistyped(part))),
    };
    LicenceFault::Unlisted { name: name.to_owned(), nearest }
}

/// Returns the name in the list with these letters and digits, regardless of the characters between them; the newest
/// version if the text has none.
fn written_otherwise(text: &str) -> Option<String> {
    let wanted = letters(text);
    let names = names().filter(|name| {
        let found = letters(name);
        let version = found.strip_prefix(&wanted);
        version.is_some_and(|version| version.bytes().all(|it| it.is_ascii_digit()))
    });
    let newest = names.filter(|_| !wanted.is_empty()).max_by_key(|it| (letters(it) == wanted, *it));
    newest.map(str::to_owned)
}

/// The letters and digits of a text, in lower case.
fn letters(text: &str) -> String {
    let letters = text.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

/// The name in the list that is like a text. Too many short texts are.
fn mistyped(text: &str) -> Option<String> {
    let names: Vec<String> = names().map(str::to_owned).collect();
    nearest(text, &names).filter(|_| text.len() > 4)
}

/// Returns the names in the list that are not advised against.
fn names() -> impl Iterator<Item = &'static str> {
    let licences = LICENSES.iter().filter(|it| it.flags & IS_DEPRECATED == 0).map(|it| it.name);
    let exceptions = EXCEPTIONS.iter().filter(|it| it.flags & IS_DEPRECATED == 0);
    licences.chain(exceptions.map(|it| it.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_is_an_expression_or_an_address() {
        for (text, ids) in [
            ("MIT", &["https://spdx.org/licenses/MIT"][..]),
            ("(MIT)", &["https://spdx.org/licenses/MIT"]),
            ("GPL-3.0", &["https://spdx.org/licenses/GPL-3.0"]),
            ("https://example.org/l?a b", &[]),
            ("https://example.org/l", &["https://example.org/l"]),
            (
                " MIT OR Apache-2.0 ",
                &[
                    "#licence/MIT%20OR%20Apache-2.0",
                    "https://spdx.org/licenses/Apache-2.0",
                    "https://spdx.org/licenses/MIT",
                ],
            ),
            ("LicenseRef-own", &["#licence/LicenseRef-own"]),
            ("Apache-2.0+", &["#licence/Apache-2.0%2B", "https://spdx.org/licenses/Apache-2.0"]),
            (
                "(GPL-2.0-only WITH Classpath-exception-2.0) AND LicenseRef-own",
                &[
                    "#licence/%28GPL-2.0-only%20WITH%20Classpath-exception-2.0%29%20AND%20LicenseRef-own",
                    "#licence/LicenseRef-own",
                    "https://spdx.org/licenses/Classpath-exception-2.0",
                    "https://spdx.org/licenses/GPL-2.0-only",
                ],
            ),
        ] {
            let Ok(licence) = LicenceName::parse(text) else {
                assert!(ids.is_empty(), "{text}");
                continue;
            };
            let mut graph = Entities::default();
            let id = licence.describe(&mut graph);
            assert_eq!(id, ids[0], "{text}");
            let document: serde_json::Value = serde_json::from_str(&graph.document(&[])).unwrap();
            let entities = document["@graph"].as_array().unwrap();
            let mut known: Vec<&str> =
                entities.iter().filter_map(|it| it["@id"].as_str()).collect();
            known.sort_unstable();
            assert_eq!(known, ids, "{text}");
        }
    }

    #[test]
    fn an_invalid_licence_is_refused_with_similar_names() {
        for (text, why) in [
            ("", "\"\" is neither an expression of SPDX"),
            ("mit", "\"mit\" is not in the list of SPDX, which has MIT"),
            ("MIT OR Apache2", "\"Apache2\" is not in the list of SPDX, which has Apache-2.0"),
            ("Apache 2.0", "\"Apache 2.0\" is not in the list of SPDX, which has Apache-2.0"),
            ("CC-BY", "\"CC-BY\" is not in the list of SPDX, which has CC-BY-4.0"),
            ("CC BY 4.0", "\"CC BY 4.0\" is not in the list of SPDX, which has CC-BY-4.0"),
            ("gpl", "\"gpl\" is not in the list of SPDX, which is at"),
            ("Apahce-2.0", "\"Apahce-2.0\" is not in the list of SPDX, which has Apache-2.0"),
            (
                "proprietary",
                "\"proprietary\" is not in the list of SPDX, which is at https://spdx.org",
            ),
            ("MIT WITH LLVM", "\"LLVM\" is not in the list of SPDX"),
            ("NOASSERTION", "\"NOASSERTION\" is not in the list of SPDX"),
            ("MIT OR", "is neither an expression of SPDX, such as CC-BY-4.0 or MIT OR Apache-2.0"),
            ("MIT Apache-2.0", "is neither an expression of SPDX"),
            ("(MIT", "is neither an expression of SPDX"),
            ("MIT/Apache-2.0", "is neither an expression of SPDX"),
            ("file:///x", "is neither an expression of SPDX"),
            ("ü", "is neither an expression of SPDX"),
            // The name of an own licence becomes the name of a file.
            ("LicenseRef-../../x", "is neither an expression of SPDX"),
            ("LicenseRef-a/b", "is neither an expression of SPDX"),
            ("DocumentRef-/x:LicenseRef-a", "is not in the list of SPDX"),
        ] {
            let error = LicenceName::parse(text).unwrap_err().to_string();
            let is_whole = !why.contains("which has ") || error.ends_with(why);
            assert!(error.contains(why) && is_whole, "{text}: {error}");
        }
    }
}
