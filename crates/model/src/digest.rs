//! Digests of file contents and ids of Git objects, which names are made of.
//!
//! Twelve hexadecimal digits of a SHA-1 make a file name; the whole [`Digest`] decides whether two
//! contents are the same. Knows nothing of files.

use std::panic::resume_unwind;
use std::str::FromStr;
use std::sync::mpsc;
use std::{fmt, thread};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha1::Digest as _;

use self::digits::from_digits;
use crate::shared_text::SharedText;

/// The number of hexadecimal digits of a digest or commit id in a file name.
pub const SHORT: usize = 12;

/// The SHA-1 of a file's contents, as in storage names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sha1(#[serde(with = "digits")] [u8; 20]);

/// The BLAKE3 of a file's contents: SHA-1 collisions can be made on purpose, its cannot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Blake3(#[serde(with = "digits")] [u8; 32]);

/// The identity of a value: of the contents of a file, or of a directory by its manifest.
///
/// A directory differs from a file that holds the text of its manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest {
    /// The SHA-1 of the contents or the manifest.
    pub sha1: Sha1,
    /// The BLAKE3 of the contents or the manifest.
    pub blake3: Blake3,
    /// The size of the contents or the manifest, in bytes.
    pub size: u64,
    /// The size of all files of a directory together, in bytes; `None` for a file.
    pub bytes: Option<u64>,
}

/// A digest in text formats: the record of a file has no field for directories.
#[derive(Serialize, Deserialize)]
struct DigestFields {
    sha1: Sha1,
    blake3: Blake3,
    size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { sha1, blake3, size, bytes } = *self;
        if serializer.is_human_readable() {
            DigestFields { sha1, blake3, size, bytes }.serialize(serializer)
        } else {
            // Without names of fields, none can be left out.
            (sha1, blake3, size, bytes).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (sha1, blake3, size, bytes) = if deserializer.is_human_readable() {
            let DigestFields { sha1, blake3, size, bytes } =
                DigestFields::deserialize(deserializer)?;
            (sha1, blake3, size, bytes)
        } else {
            Deserialize::deserialize(deserializer)?
        };
        Ok(Self { sha1, blake3, size, bytes })
    }
}

impl Sha1 {
    /// Its bytes.
    pub const fn bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// All forty digits.
    pub fn full(&self) -> String {
        faster_hex::hex_string(&self.0)
    }

    /// The first twelve digits, as storage names show them.
    pub fn short(&self) -> String {
        faster_hex::hex_string(&self.0[..SHORT / 2])
    }

    /// Reads all forty digits, in either case. Returns `None` if they are not that.
    pub fn from_digits(digits: &[u8]) -> Option<Self> {
        from_digits(digits).map(Self)
    }
}

impl Blake3 {
    /// The length in bytes.
    pub const BYTES: usize = blake3::OUT_LEN;

    /// Returns the hash of contents that are at hand.
    pub fn hash_bytes(contents: &[u8]) -> Self {
        Self(*blake3::hash(contents).as_bytes())
    }

    /// Returns the hash of a message with a key, by which who has the key knows that another one has written it. No other parts have
    /// the same hash, not even with the same bytes.
    pub fn keyed(key: &[u8; Self::BYTES], parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new_keyed(key);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// Whether two hashes are the same, in a time that does not say where they differ.
    pub fn is_same(&self, other: &Self) -> bool {
        blake3::Hash::from(self.0) == blake3::Hash::from(other.0)
    }

    /// Its bytes.
    pub const fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// All sixty-four digits.
    pub fn full(&self) -> String {
        faster_hex::hex_string(&self.0)
    }

    /// Reads all sixty-four digits, in either case. Returns `None` if they are not that.
    pub fn from_digits(digits: &[u8]) -> Option<Self> {
        from_digits(digits).map(Self)
    }
}

impl fmt::Debug for Sha1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full())
    }
}

impl fmt::Debug for Blake3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full())
    }
}

impl Digest {
    /// Returns the digest of contents that are at hand.
    pub fn hash_bytes(contents: &[u8]) -> Self {
        let mut hasher = Hasher::default();
        hasher.update(contents);
        hasher.finish()
    }

    /// Whether it is a directory's.
    pub const fn is_directory(&self) -> bool {
        self.bytes.is_some()
    }

    /// The size of the file, or of all files of the directory, in bytes.
    pub fn total(&self) -> u64 {
        self.bytes.unwrap_or(self.size)
    }
}

/// Takes contents piece by piece and ends in their [`Digest`].
///
/// Pieces of about 64 KiB are the fastest: the second hash then finds its data in the cache.
#[derive(Default)]
pub struct Hasher {
    sha1: sha1::Sha1,
    blake3: blake3::Hasher,
    size: u64,
}

impl Hasher {
    /// Takes the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.sha1.update(piece);
        self.blake3.update(piece);
        self.size += piece.len() as u64;
    }

    /// Returns the digest of all pieces together.
    pub fn finish(self) -> Digest {
        Digest {
            sha1: Sha1(self.sha1.finalize().into()),
            blake3: Blake3(*self.blake3.finalize().as_bytes()),
            size: self.size,
            bytes: None,
        }
    }
}

/// The least size of a file that two threads hash faster than one, in bytes.
pub const LARGE: u64 = 8 << 20;

/// The size of a buffer that one thread reads and hashes, in bytes: large enough to be cheap, small enough for
/// the CPU's cache.
pub const PIECE: usize = 64 << 10;

/// The size of a buffer that is passed between threads, which takes some time, in bytes.
const LARGE_PIECE: usize = 512 << 10;

/// The number of such buffers.
const PIECES: usize = 4;

/// Hashes contents in two threads: another one computes the SHA-1, which is by far the slowest step and cannot
/// be divided. `fill` reads the next piece into a buffer, and returns its size, or 0 at the end. `None` if no
/// thread can be started; then nothing was read.
pub fn hash_in_two_threads<E>(
    mut fill: impl FnMut(&mut [u8]) -> Result<usize, E>,
) -> Result<Option<Digest>, E> {
    let Hasher { mut sha1, mut blake3, mut size } = Hasher::default();
    let (full, filled) = mpsc::channel::<(Vec<u8>, usize)>();
    let (empty, free) = mpsc::channel();
    let sha1 = thread::scope(|scope| {
        let spawned = thread::Builder::new().name("sha1".to_owned()).spawn_scoped(scope, || {
            // The other thread may have failed, so a send may fail.
            let (filled, empty) = (filled, empty);
            (0..PIECES).for_each(|_| drop(empty.send(vec![0; LARGE_PIECE])));
            for (piece, count) in filled {
                sha1.update(&piece[..count]);
                drop(empty.send(piece));
            }
            sha1
        });
        let Ok(other) = spawned else { return Ok(None) };
        let full = full;
        while let Ok(mut piece) = free.recv() {
            let count = fill(&mut piece)?;
            if count == 0 {
                break;
            }
            blake3.update(&piece[..count]);
            size += count as u64;
            drop(full.send((piece, count)));
        }
        drop(full);
        Ok(Some(other.join().unwrap_or_else(|panic| resume_unwind(panic))))
    })?;
    Ok(sha1.map(|sha1| Hasher { sha1, blake3, size }.finish()))
}

/// Hashes in text: as hexadecimal digits in text formats, as bytes in others.
mod digits {
    use std::fmt;

    use serde::de::{Error, Unexpected, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Reads the digits of a hash, in either case. Returns `None` if they are not that.
    pub(super) fn from_digits<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        (digits.len() == 2 * N && faster_hex::hex_decode(digits, &mut bytes).is_ok())
            .then_some(bytes)
    }

    /// Reads the digits of this number of bytes.
    struct HexDigits<const N: usize>;

    impl<const N: usize> Visitor<'_> for HexDigits<N> {
        type Value = [u8; N];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{} hexadecimal digits", 2 * N)
        }

        fn visit_str<E: Error>(self, digits: &str) -> Result<Self::Value, E> {
            from_digits(digits.as_bytes())
                .ok_or_else(|| E::invalid_value(Unexpected::Str(digits), &self))
        }
    }

    pub(super) fn serialize<S: Serializer, const N: usize>(
        bytes: &[u8; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error>
    where
        [u8; N]: Serialize,
    {
        if serializer.is_human_readable() {
            serializer.serialize_str(&faster_hex::hex_string(bytes))
        } else {
            bytes.serialize(serializer)
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[u8; N], D::Error>
    where
        [u8; N]: Deserialize<'de>,
    {
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(HexDigits)
        } else {
            <[u8; N]>::deserialize(deserializer)
        }
    }
}

/// The id of a Git object, in hexadecimal: 40 digits, or 64 in a SHA-256 repository.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectId(SharedText);

/// A text that is not the id of a Git object.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not an object id of 40 or 64 hexadecimal digits")]
pub struct ObjectIdError(String);

impl ObjectId {
    /// The first twelve digits, as storage names show them.
    pub fn short(&self) -> &str {
        &self.0[..SHORT]
    }

    /// All digits.
    pub fn full(&self) -> &str {
        &self.0
    }
}

/// The prefix of the version of a computation with uncommitted changes.
pub const DIRTY: &str = "dirty-";

/// The version of a computation as in names: its commit, or its tree if that has uncommitted
/// changes.
pub fn shown_version(commit: &ObjectId, tree: &ObjectId, dirty: bool) -> String {
    if dirty { format!("{DIRTY}{}", tree.short()) } else { commit.short().to_owned() }
}

/// Whether a text is a whole id of a Git object, in letters of either case.
pub fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

impl FromStr for ObjectId {
    type Err = ObjectIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if matches!(text.len(), 40 | 64)
            && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        {
            Ok(Self(text.into()))
        } else {
            Err(ObjectIdError(text.to_owned()))
        }
    }
}

impl TryFrom<String> for ObjectId {
    type Error = ObjectIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ObjectId> for String {
    fn from(id: ObjectId) -> Self {
        id.0.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn digests_agree_with_published_test_vectors() {
        let digest = Digest::hash_bytes(b"abc");
        assert_eq!(digest.sha1.full(), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(digest.sha1.short(), "a9993e364706");
        assert_eq!(
            format!("{:?}", digest.blake3),
            "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
        );
        assert_eq!(digest.size, 3);
    }

    #[test]
    fn a_digest_is_read_from_all_its_digits_only() {
        let Digest { sha1, blake3, .. } = Digest::hash_bytes(b"abc");
        assert_eq!(Sha1::from_digits(sha1.full().as_bytes()), Some(sha1));
        assert_eq!(Blake3::from_digits(blake3.full().as_bytes()), Some(blake3));
        assert_eq!(Sha1::from_digits(blake3.full().as_bytes()), None);
        assert_eq!(Blake3::from_digits(&[b'g'; 64]), None);
    }

    #[test]
    fn hashing_in_pieces_gives_the_digest_of_the_whole() {
        let mut hasher = Hasher::default();
        hasher.update(b"a");
        hasher.update(b"bc");
        assert_eq!(hasher.finish(), Digest::hash_bytes(b"abc"));
    }

    #[test]
    fn two_threads_make_the_same_digest_as_one() {
        for size in [0, 1, LARGE_PIECE, 10 * LARGE_PIECE + 1] {
            let contents: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let mut rest = contents.as_slice();
            let digest = hash_in_two_threads(|piece| io::Read::read(&mut rest, piece)).unwrap();
            assert_eq!(digest, Some(Digest::hash_bytes(&contents)));
        }
    }

    #[test]
    fn an_error_of_one_thread_ends_both() {
        let mut left = 20;
        let read = hash_in_two_threads(|piece| {
            left -= 1;
            if left > 0 { Ok(piece.len()) } else { Err("no more") }
        });
        assert_eq!(read, Err("no more"));
    }

    #[test]
    fn two_inputs_share_twelve_digits_and_are_told_apart() {
        let (one, other) =
            (Digest::hash_bytes(b"input 11405692\n"), Digest::hash_bytes(b"input 27966124\n"));
        assert_eq!(one.sha1.short(), other.sha1.short());
        assert_ne!(one, other);
    }

    #[test]
    fn an_object_id_has_40_or_64_digits() {
        assert!("ab".repeat(20).parse::<ObjectId>().is_ok());
        assert!("ab".repeat(32).parse::<ObjectId>().is_ok());
        for wrong in ["", "abc", &"AB".repeat(20), &"zz".repeat(20), &"é".repeat(20)] {
            assert!(wrong.parse::<ObjectId>().is_err(), "{wrong}");
        }
    }
}
