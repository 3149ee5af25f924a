//! Texts that many values have in common, such as the host of thousands of records.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The number of texts that a thread remembers before it forgets all of them.
const REMEMBERED: usize = 4096;

thread_local! {
    static KNOWN: RefCell<HashSet<Arc<str>>> = RefCell::default();
}

/// A text. Equal texts that a thread makes one after the other share their memory.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharedText(Arc<str>);

impl From<&str> for SharedText {
    fn from(text: &str) -> Self {
        KNOWN.with_borrow_mut(|known| {
            if let Some(known) = known.get(text) {
                return Self(Arc::clone(known));
            }
            if known.len() == REMEMBERED {
                known.clear();
            }
            let text: Arc<str> = text.into();
            known.insert(Arc::clone(&text));
            Self(text)
        })
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for SharedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for SharedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = SharedText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<SharedText, E> {
                Ok(text.into())
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_their_memory() {
        let texts: Vec<SharedText> = serde_json::from_str(r#"["a\n", "b", "a\n"]"#).unwrap();
        assert_eq!(texts.iter().map(|it| &**it).collect::<Vec<_>>(), ["a\n", "b", "a\n"]);
        assert!(Arc::ptr_eq(&texts[0].0, &texts[2].0));
        let many: Vec<SharedText> =
            (0..2 * REMEMBERED).map(|at| at.to_string().as_str().into()).collect();
        assert_eq!(&*many[REMEMBERED], REMEMBERED.to_string());
        assert!(KNOWN.with_borrow(HashSet::len) <= REMEMBERED);
    }
}
