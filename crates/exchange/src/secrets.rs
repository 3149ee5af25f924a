//! A scan for secrets, since a push cannot be taken back.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use ce_files::manifest::{DirectoryArchive, EntryKind, ValuePiece, shown};
use ce_history::History;
use ce_history::package::{BadFile, Package, PackagedValue};
use ce_model::digest::{Digest, PIECE};
use ce_storage::{Storage, StorageError};
use memchr::memmem;
use rayon::prelude::*;

/// The beginnings of tokens, and how many letters, digits, `-` and `_` follow at least.
const TOKENS: [(&str, usize, &str); 12] = [
    ("ghp_", 36, "a token of GitHub"),
    ("gho_", 36, "a token of GitHub"),
    ("ghs_", 36, "a token of GitHub"),
    ("github_pat_", 50, "a token of GitHub"),
    ("glpat-", 20, "a token of GitLab"),
    ("AKIA", 16, "a key of AWS"),
    ("ASIA", 16, "a key of AWS"),
    ("xoxb-", 24, "a token of Slack"),
    ("xoxp-", 24, "a token of Slack"),
    ("sk-ant-", 40, "a key of Anthropic"),
    ("hf_", 34, "a token of Hugging Face"),
    ("pypi-AgEIcHlwaS5vcmc", 40, "a token of PyPI"),
];

/// Headers of private keys, after five dashes and `BEGIN `.
const KEYS: [&str; 6] = ["", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED "];

/// Parts of the names of variables whose values are secret.
const NAMES: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "CREDENTIAL"];

/// The least length of a value of a variable that is looked for: a shorter one is found everywhere.
const MIN_VALUE: usize = 8;

/// The secrets that are searched for.
#[derive(Debug)]
pub struct Secrets {
    /// The values of variables of the environment, and their names.
    values: BTreeMap<Vec<u8>, String>,
    headers: Vec<Vec<u8>>,
}

impl Secrets {
    /// Collects the secrets in the environment of this process.
    pub fn of_environment() -> Self {
        Self::new(
            std::env::vars_os().map(|(name, value)| {
                (name.to_string_lossy().into_owned(), value.into_encoded_bytes())
            }),
        )
    }

    /// Collects the secrets among variables of the environment.
    fn new(variables: impl Iterator<Item = (String, Vec<u8>)>) -> Self {
        let secret = variables.filter(|(name, value)| {
            let name = name.to_ascii_uppercase();
            value.len() >= MIN_VALUE && NAMES.iter().any(|it| name.contains(it))
        });
        let values = secret.map(|(name, value)| (value, name)).collect();
        let headers =
            KEYS.iter().map(|kind| format!("-----BEGIN {kind}PRIVATE KEY-----").into_bytes());
        Self { values, headers: headers.collect() }
    }

    /// Finds a secret in a value with this digest. Returns the path of the file of a directory, with a slash before it, or nothing;
    /// and a description of the secret.
    pub(super) fn find_in(&self, contents: &[u8], digest: &Digest) -> Option<(String, String)> {
        if !digest.is_directory() {
            return Some((String::new(), self.find(contents)?));
        }
        DirectoryArchive::parse(contents, digest)?.entries().find_map(|(entry, contents)| {
            let contents = match &entry.kind {
                EntryKind::Link { target } => target,
                EntryKind::File { .. } | EntryKind::Empty => contents,
            };
            let found = self.find(contents).or_else(|| self.find(&entry.path));
            found.map(|what| (format!("/{}", shown(&entry.path)), what))
        })
    }

    /// Describes the secret that a file seems to hold; `None` if nothing is known to be secret.
    pub fn find(&self, contents: &[u8]) -> Option<String> {
        if self.headers.iter().any(|header| has(contents, header)) {
            return Some("a private key".to_owned());
        }
        let token = TOKENS.iter().find(|(prefix, rest, _)| has_token(contents, prefix, *rest));
        if let Some((_, _, what)) = token {
            return Some((*what).to_owned());
        }
        let (_, name) = self.values.iter().find(|(value, _)| has(contents, value))?;
        Some(format!("the value of the variable {name}"))
    }

    /// Describes the secret that a file seems to hold. The file is not held in memory.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub fn find_in_file(&self, mut file: impl Read) -> io::Result<Option<String>> {
        let (mut scan, mut piece) = (SecretScan::new(self), vec![0; PIECE]);
        while !scan.has_found() {
            match file.read(&mut piece)? {
                0 => break,
                read => scan.add(&piece[..read]),
            }
        }
        Ok(scan.finish().map(|(_, what)| what))
    }

    /// The files of a package that seem to hold something, and the texts that are beside them, until `stop` is set.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn find_in_package(
        &self,
        storage: &Storage,
        history: &History,
        package: &Package,
        texts: &[(&str, String)],
        stop: &AtomicBool,
    ) -> Result<Vec<BadFile>, StorageError> {
        let bad =
            |name: String, what: &str| BadFile { name, why: format!("it seems to hold {what}") };
        let values: Vec<PackagedValue<'_>> = package.values(history).collect();
        let scans = values.par_iter().with_max_len(1).map(|PackagedValue { value, member }| {
            let (mut scan, mut is_wanted) = (SecretScan::new(self), member.is_none());
            storage.values().pieces(value, &mut |piece| {
                match piece {
                    ValuePiece::File(path) => {
                        is_wanted = member.is_none_or(|member| is_within(path, member.as_bytes()));
                        if is_wanted {
                            scan.begin(path);
                        }
                    }
                    ValuePiece::Bytes(bytes) if is_wanted => scan.add(bytes),
                    ValuePiece::Bytes(_) => {}
                }
                match scan.has_found() || stop.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            })?;
            let found = scan.finish();
            Ok(found.map(|(member, what)| bad(value.name.clone() + &member, &what)))
        });
        let found: Vec<Option<BadFile>> = scans.collect::<Result<_, StorageError>>()?;
        let in_texts = texts
            .iter()
            .filter_map(|(name, text)| Some(bad((*name).to_owned(), &self.find(text.as_bytes())?)));
        Ok(found.into_iter().flatten().chain(in_texts).collect())
    }
}

/// Whether a path is this one, or below it.
fn is_within(path: &[u8], dir: &[u8]) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// The least size of a window that is looked at in a longer text, in bytes.
const WINDOW: usize = 1 << 20;

/// The greatest length of a token that is looked for in a longer text, in bytes, and of the header of a key.
const LONGEST: usize = 256;

/// A search in a value that comes piece by piece and is not held in memory.
#[derive(Debug)]
pub(super) struct SecretScan<'a> {
    secrets: &'a Secrets,
    /// The end of the scanned bytes, in which a secret may begin, and the bytes that are not scanned yet.
    window: Vec<u8>,
    /// Whether bytes came before the window: then its first byte is the last one of these.
    goes_on: bool,
    /// The file of a directory that it is in: a path with a slash before it, or nothing.
    member: String,
    found: Option<(String, String)>,
}

impl<'a> SecretScan<'a> {
    pub(super) fn new(secrets: &'a Secrets) -> Self {
        let (window, member) = (Vec::new(), String::new());
        Self { secrets, window, goes_on: false, member, found: None }
    }

    /// The file with this path in a directory begins.
    pub(super) fn begin(&mut self, path: &[u8]) {
        self.look();
        self.window.clear();
        self.goes_on = false;
        self.member = format!("/{}", shown(path));
        self.add(path);
        self.look();
        self.window.clear();
        self.goes_on = false;
    }

    /// The next bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.window.extend_from_slice(bytes);
        if self.window.len() >= WINDOW {
            self.look();
            let longest = self.secrets.values.keys().map(Vec::len).max().unwrap_or_default();
            // One more byte shows the character before a token.
            let kept = longest.max(LONGEST) + 1;
            self.window.drain(..self.window.len().saturating_sub(kept));
            self.goes_on = true;
        }
    }

    fn look(&mut self) {
        // A token that begins there was in the window before.
        if let Some(first) = self.window.first_mut().filter(|_| self.goes_on) {
            *first = b'0';
        }
        if self.found.is_none() {
            let what = self.secrets.find(&self.window);
            self.found = what.map(|what| (self.member.clone(), what));
        }
    }

    pub(super) const fn has_found(&self) -> bool {
        self.found.is_some()
    }

    /// Returns the file of a directory with the secret that was found, and a description of the secret.
    pub(super) fn finish(mut self) -> Option<(String, String)> {
        self.look();
        self.found
    }
}

/// The places of a text in another one.
fn places<'a>(contents: &'a [u8], text: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    memmem::find_iter(contents, text)
}

pub(super) fn has(contents: &[u8], text: &[u8]) -> bool {
    places(contents, text).next().is_some()
}

/// Whether a word is there, and not only as a part of a longer one. A text without any letter or digit is not a word.
pub(super) fn has_word(contents: &[u8], word: &str) -> bool {
    let is_part = |at: usize| contents.get(at).is_some_and(u8::is_ascii_alphanumeric);
    word.contains(char::is_alphanumeric)
        && places(contents, word.as_bytes())
            .any(|at| (at == 0 || !is_part(at - 1)) && !is_part(at + word.len()))
}

/// Whether there is a token with this prefix. The prefix must be the beginning of a word.
fn has_token(contents: &[u8], prefix: &str, rest: usize) -> bool {
    places(contents, prefix.as_bytes()).any(|at| {
        let begins = at == 0 || !contents[at - 1].is_ascii_alphanumeric();
        let token = contents[at + prefix.len()..].iter();
        let token =
            token.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        begins && token.count() >= rest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<String> {
        let variables =
            [("MY_TOKEN", "hunter2hunter2"), ("PIN_SECRET", "1234"), ("HOME", "/home/ada/x")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.into()));
        Secrets::new(variables.into_iter()).find(text.as_bytes())
    }

    #[test]
    fn keys_tokens_and_values_are_found() {
        let key = format!("x\n-----BEGIN {} KEY-----\nabc", "RSA PRIVATE");
        assert_eq!(found(&key).unwrap(), "a private key");
        let token = format!("url: https://{}{}@host", "ghp_", "a1".repeat(18));
        assert_eq!(found(&token).unwrap(), "a token of GitHub");
        assert_eq!(found("login hunter2hunter2\n").unwrap(), "the value of the variable MY_TOKEN");
    }

    #[test]
    fn a_word_is_not_found_inside_another_word() {
        for text in ["ada", "by ada, on lab", "/home/ada/x", "adage, ada"] {
            assert!(has_word(text.as_bytes(), "ada"), "{text}");
        }
        for text in ["", "adage", "canada", "ad a"] {
            assert!(!has_word(text.as_bytes(), "ada"), "{text}");
        }
        assert!(!has_word(b"nobody", ""));
    }

    #[test]
    fn a_secret_is_found_across_the_ends_of_pieces() {
        let variables = [("MY_TOKEN".to_owned(), "hunter2".repeat(100).into_bytes())];
        let secrets = Secrets::new(variables.into_iter());
        let found = |text: &[u8]| {
            let mut scan = SecretScan::new(&secrets);
            text.chunks(1000).for_each(|piece| scan.add(piece));
            scan.finish().map(|(_, what)| what)
        };
        let token = format!(" {}{} ", "ghp_", "a1".repeat(18));
        let joined = format!("x{}", token.trim_start());
        for at in (WINDOW - 1200..WINDOW + 300).step_by(7).chain([0, 3 * WINDOW]) {
            let text = |secret: &str| {
                [&vec![b'.'; at][..], secret.as_bytes(), &vec![b'.'; WINDOW]].concat()
            };
            assert_eq!(found(&text(&token)).as_deref(), Some("a token of GitHub"), "{at}");
            assert_eq!(found(&text(&joined)), None, "within a word at {at}");
            assert!(found(&text(&"hunter2".repeat(100))).is_some(), "{at}");
            let in_file = secrets.find_in_file(&*text(&token)).unwrap();
            assert_eq!(in_file.as_deref(), Some("a token of GitHub"), "{at}");
        }
        let mut scan = SecretScan::new(&secrets);
        scan.add(b"compeval directory 1\n...\n\n");
        scan.begin(b"a/b");
        scan.add(b"one");
        scan.begin(b"c d");
        scan.add(token.trim().as_bytes());
        let expected = ("/c\\x20d".to_owned(), "a token of GitHub".to_owned());
        assert_eq!(scan.finish(), Some(expected));
    }

    #[test]
    fn similar_texts_are_not_taken_for_secrets() {
        for text in ["", "ghp_short", "-----BEGIN PUBLIC KEY-----", "1234", "/home/ada/x", "AKIA"] {
            assert_eq!(found(text), None, "{text}");
        }
        assert_eq!(found(&format!("xAKIA{}", "A".repeat(16))), None, "within a word");
    }
}
