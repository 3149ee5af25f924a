//! Entities of JSON-LD, which refer to each other by `@id`, in the order in which they were made.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

/// A thing that metadata describe.
#[derive(Debug)]
pub(super) struct Entity {
    id: String,
    properties: Vec<(&'static str, Vec<Value>)>,
}

impl Entity {
    /// Sets a property, unless there is no value.
    pub(super) fn set<V: Into<Value>>(
        &mut self,
        name: &'static str,
        values: impl IntoIterator<Item = V>,
    ) -> &mut Self {
        let values: Vec<Value> = values.into_iter().map(V::into).collect();
        self.properties.retain(|(known, _)| *known != name);
        if !values.is_empty() {
            self.properties.push((name, values));
        }
        self
    }

    /// Sets a property to one value.
    pub(super) fn with(&mut self, name: &'static str, value: impl Into<Value>) -> &mut Self {
        self.set(name, [value])
    }

    /// Adds a value to a property, once. It looks at all others.
    pub(super) fn add(&mut self, name: &'static str, value: Value) {
        let known = self.properties.iter().find(|(known, _)| *known == name);
        if known.is_none_or(|(_, values)| !values.contains(&value)) {
            self.push(name, value);
        }
    }

    /// Adds a value to a property.
    pub(super) fn push(&mut self, name: &'static str, value: Value) {
        match self.properties.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => self.properties.push((name, vec![value])),
        }
    }

    /// Whether a property is set.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.properties.iter().any(|(known, _)| *known == name)
    }

    fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("@id".to_owned(), self.id.as_str().into());
        for (name, values) in &self.properties {
            // A list of one is written as that one: validators ask for it.
            let value = match &values[..] {
                [one] => one.clone(),
                several => several.into(),
            };
            object.insert((*name).to_owned(), value);
        }
        Value::Object(object)
    }
}

/// All entities of a crate.
#[derive(Debug, Default)]
pub(super) struct Entities {
    entities: Vec<Entity>,
    places: HashMap<String, usize>,
}

impl Entities {
    /// The entity with this id, which is made if there is none.
    pub(super) fn of(&mut self, id: &str, types: &[&str]) -> &mut Entity {
        let place = self.places.get(id).copied().unwrap_or_else(|| {
            let mut entity = Entity { id: id.to_owned(), properties: Vec::new() };
            entity.set("@type", types.iter().copied());
            self.entities.push(entity);
            self.places.insert(id.to_owned(), self.entities.len() - 1);
            self.entities.len() - 1
        });
        &mut self.entities[place]
    }

    /// Whether there is an entity with this id.
    pub(super) fn has(&self, id: &str) -> bool {
        self.places.contains_key(id)
    }

    /// The document that holds them, with terms of these contexts.
    pub(super) fn document(&self, contexts: &[&str]) -> Value {
        let graph: Vec<Value> = self.entities.iter().map(Entity::json).collect();
        json!({ "@context": contexts, "@graph": graph })
    }
}

/// A reference to an entity.
pub(super) fn reference(id: impl AsRef<str>) -> Value {
    json!({ "@id": id.as_ref() })
}

/// References to entities.
pub(super) fn references<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Vec<Value> {
    ids.into_iter().map(reference).collect()
}

/// A path as a part of a URL: all but slashes, letters, digits and `-._~` as `%XX`.
pub(super) fn encoded(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(char::from(byte));
            }
            byte => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

/// A URL in which nothing but what may stand there does.
pub(super) fn valid_url(url: &str) -> String {
    let mut valid = String::with_capacity(url.len());
    let bytes = url.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let is_escape = || {
            let digits = bytes.get(at + 1..at + 3);
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        };
        match byte {
            b'%' if !is_escape() => valid.push_str("%25"),
            b'!' | b'#'..=b';' | b'=' | b'?'..=b'[' | b']' | b'_' | b'a'..=b'z' | b'~' => {
                valid.push(char::from(*byte));
            }
            byte => drop(write!(valid, "%{byte:02X}")),
        }
    }
    valid
}

/// Whether a text is the address of a page.
pub(super) fn is_web_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        !rest.is_empty() && !rest.contains(|c: char| c.is_whitespace() || c.is_control())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_is_made_once_and_a_list_of_one_is_that_one() {
        let mut entities = Entities::default();
        entities.of("a", &["File"]).with("name", "x").add("about", reference("b"));
        entities.of("a", &["Other"]).add("about", reference("b"));
        let document = entities.document(&["c", "d"]);
        assert_eq!(
            document["@graph"],
            json!([{ "@id": "a", "@type": "File", "name": "x", "about": { "@id": "b" } }])
        );
        entities.of("a", &[]).push("about", reference("b"));
        entities.of("a", &[]).set("name", Vec::<String>::new());
        let a = &entities.document(&[])["@graph"][0];
        assert_eq!((a["about"].as_array().map(Vec::len), a.get("name")), (Some(2), None));
    }

    #[test]
    fn paths_and_urls_are_escaped() {
        assert_eq!(encoded("points/k=1/a%20b ü#"), "points/k%3D1/a%2520b%20%C3%BC%23");
        assert_eq!(valid_url("https://h/a_50%.git?x=%20#y"), "https://h/a_50%25.git?x=%20#y");
        assert_eq!(
            valid_url("https://h/a b<ü>|\"\\^`{}"),
            "https://h/a%20b%3C%C3%BC%3E%7C%22%5C%5E%60%7B%7D"
        );
    }
}
