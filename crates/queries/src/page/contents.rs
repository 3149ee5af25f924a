//! The contents of outputs on a page: which of them the page holds.
//!
//! A page holds what has room in it, and nothing that looks like a secret. Text of outputs is data: no markup is made of it.

use ce_exchange::Secrets;
use ce_model::digest::Digest;
use ce_model::output_format::OutputFormat;

/// The contents of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputContents {
    /// Their format.
    pub format: OutputFormat,
    /// The size in bytes.
    pub size: u64,
    /// The contents, or why they are not on the page.
    pub held: Result<Vec<u8>, NotHeld>,
}

impl OutputContents {
    /// Those of an output with this name that a clone of a results repository would fetch.
    pub(super) fn away(name: &str, digest: &Digest) -> Self {
        let (format, size) = (OutputFormat::of(name, b""), digest.total());
        Self { format, size, held: Err(NotHeld::Away) }
    }
}

/// The reason why contents are not on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotHeld {
    /// They are not in the storage.
    Absent,
    /// They are not in the storage, which is a clone of a results repository that can fetch them.
    Away,
    /// They are a directory.
    Directory,
    /// They have no room.
    TooLarge,
    /// They seem to hold a secret: what it is.
    Secret(String),
}

/// The room for contents on a page, and what must not be there.
#[derive(Debug)]
pub(super) struct ContentsRoom {
    left: u64,
    secrets: Secrets,
}

impl ContentsRoom {
    /// Room for so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        Self { left: bytes, secrets: Secrets::of_environment() }
    }

    /// Reads the contents of an output with this name, if there is room for them.
    pub(super) fn contents(
        &mut self,
        name: &str,
        digest: Digest,
        read: impl FnOnce() -> Option<Vec<u8>>,
    ) -> OutputContents {
        let (size, format) = (digest.total(), OutputFormat::of(name, b""));
        let not_held = |why| OutputContents { format, size, held: Err(why) };
        if digest.is_directory() {
            return not_held(NotHeld::Directory);
        }
        if size > self.left {
            return not_held(NotHeld::TooLarge);
        }
        let Some(contents) = read() else { return not_held(NotHeld::Absent) };
        if let Some(what) = self.secrets.find(&contents) {
            return not_held(NotHeld::Secret(what));
        }
        self.left -= size;
        OutputContents { format: OutputFormat::of(name, &contents), size, held: Ok(contents) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_takes_room_and_secrets_are_not_held() {
        let mut room = ContentsRoom::new(60);
        let mut held = |text: &str| {
            let contents = text.as_bytes().to_vec();
            room.contents("text", Digest::of(&contents), || Some(contents)).held
        };
        let token = format!("a ghp_{} b", "x".repeat(36));
        assert_eq!(held(&token), Err(NotHeld::Secret("a token of GitHub".to_owned())));
        assert_eq!(held(&"x".repeat(61)), Err(NotHeld::TooLarge));
        assert_eq!(held(&"x".repeat(60)), Ok(vec![b'x'; 60]));
        assert_eq!(held("x"), Err(NotHeld::TooLarge));
        let absent = ContentsRoom::new(9).contents("text", Digest::of(b"x"), || None);
        assert_eq!((absent.held, absent.size), (Err(NotHeld::Absent), 1));
    }
}
