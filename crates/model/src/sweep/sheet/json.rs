//! The fields of a JSON object, with values as they are spelled.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{MAX_COLUMNS, SheetFault};

/// The names and values of an object, in the order in which they are written. At most one more than [`MAX_COLUMNS`] are kept.
struct Fields<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    if fields.len() <= MAX_COLUMNS {
                        fields.push(field);
                    }
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// A field of an object: its name, and its value as it is spelled.
pub(in crate::sweep) type Field<'a> = (Cow<'a, str>, &'a RawValue);

/// Reads the fields of an object: their names, and their values as they are spelled.
pub(in crate::sweep) fn fields(line: &[u8]) -> Result<Vec<Field<'_>>, SheetFault> {
    let fields: Fields<'_> = serde_json::from_slice(line).map_err(|error| {
        if error.is_eof() {
            SheetFault::OpenObject(reason(&error))
        } else {
            SheetFault::Json(reason(&error))
        }
    })?;
    fields.0.into_iter().map(|(name, value)| Ok((string(name)?, value))).collect()
}

/// Whether a sheet that begins with a bracket is an array of JSON, or the beginning of one: a header may begin so, too.
pub(in crate::sweep) fn is_array(sheet: &[u8]) -> bool {
    let first = sheet.trim_ascii_start().strip_prefix(b"[").unwrap_or_default().trim_ascii_start();
    matches!(first.first(), None | Some(b'{' | b'[' | b']'))
        || serde_json::from_slice::<IgnoredAny>(sheet).is_ok()
}

/// The text of a value: a string, or a number or boolean as it is spelled.
///
/// # Errors
///
/// Fails if it is null, an object or an array.
pub(in crate::sweep) fn text(value: &RawValue) -> Result<Cow<'_, str>, SheetFault> {
    match value.get().as_bytes().first() {
        Some(b'"') => string(value),
        Some(b'n') => Err(SheetFault::Null),
        Some(b'{' | b'[') => Err(SheetFault::Container),
        _ => Ok(Cow::Borrowed(value.get())),
    }
}

/// Returns the text of a string. Only one with escapes is copied.
fn string(value: &RawValue) -> Result<Cow<'_, str>, SheetFault> {
    let plain = value.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match plain.filter(|text| !text.contains('\\')) {
        Some(text) => Ok(Cow::Borrowed(text)),
        None => serde_json::from_str(value.get())
            .map(Cow::Owned)
            .map_err(|error| SheetFault::Escape(reason(&error))),
    }
}

/// The error without its line, which is always the first.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.replace(" at line 1 column 0", "").replace(" at line 1 column ", " at byte ")
}
