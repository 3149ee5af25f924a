//! The texts of small files that this run has read: calls are told the texts of their inputs, and most were just made.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::lock;
use ce_model::digest::Digest;
use ce_model::template::{self, MAX_TEXT};

/// The greatest size of a file that may be a text: one with a final newline.
pub(crate) const MAX_TEXT_FILE: u64 = MAX_TEXT as u64 + 1;

/// The greatest number of bytes that are kept. Beyond, all are forgotten.
const MAX_KEPT: usize = 16 << 20;

/// The bytes that are counted for each file beside its text.
const OVERHEAD: usize = 128;

/// The texts of files, by their digests. Of files that are no text, this is known.
#[derive(Debug, Default)]
pub(crate) struct KnownTexts(Mutex<KeptTexts>);

#[derive(Debug, Default)]
struct KeptTexts {
    texts: HashMap<Digest, Option<Arc<str>>>,
    bytes: usize,
}

impl KnownTexts {
    /// Notes the contents of a file, which has at most [`MAX_TEXT_FILE`] bytes. Returns its text, if it is one.
    pub(crate) fn note(&self, digest: Digest, contents: &[u8]) -> Option<Arc<str>> {
        let text: Option<Arc<str>> = template::text(contents).ok().map(Into::into);
        let mut kept = lock(&self.0);
        let size = OVERHEAD + text.as_ref().map_or(0, |text| text.len());
        if kept.bytes + size > MAX_KEPT {
            *kept = KeptTexts::default();
        }
        if kept.texts.insert(digest, text.clone()).is_none() {
            kept.bytes += size;
        }
        text
    }

    /// What is known of a file: its text, or that it is no text.
    pub(crate) fn get(&self, digest: &Digest) -> Option<Option<Arc<str>>> {
        lock(&self.0).texts.get(digest).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_known_until_too_many_are() {
        let known = KnownTexts::default();
        let digest = |text: &str| Digest::hash_bytes(text.as_bytes());
        assert_eq!(known.note(digest("a b\n"), b"a b\n").as_deref(), Some("a b"));
        assert_eq!(known.note(digest("a\nb\n"), b"a\nb\n"), None);
        assert_eq!(known.note(digest(""), b"").as_deref(), Some(""));
        assert_eq!(known.get(&digest("a b\n")).unwrap().as_deref(), Some("a b"));
        assert_eq!(known.get(&digest("a\nb\n")), Some(None));
        assert_eq!(known.get(&digest("c")), None);
        let long = "x".repeat(MAX_TEXT);
        for number in 0..=MAX_KEPT / MAX_TEXT {
            known.note(digest(&number.to_string()), long.as_bytes());
        }
        assert_eq!(known.get(&digest("a b\n")), None);
        assert!(lock(&known.0).bytes <= MAX_KEPT);
    }
}
