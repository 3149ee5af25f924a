//! Hashes in text: as hexadecimal digits in text formats, as bytes in others.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Reads the digits of a hash, in either case. Returns `None` if they are not that.
pub(super) fn from_digits<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (digits.len() == 2 * N && faster_hex::hex_decode(digits, &mut bytes).is_ok()).then_some(bytes)
}

/// Reads the digits of so many bytes.
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
