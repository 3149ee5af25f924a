//! `GIT_CONFIG_PARAMETERS`: the settings of `git -c KEY=VALUE`, for programs that Git starts.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use gix::bstr::BString;

use super::GitResult;

const VARIABLE: &str = "GIT_CONFIG_PARAMETERS";

/// The settings that were passed on, each as `KEY=VALUE`, or as a key alone.
pub(super) fn given() -> GitResult<Vec<BString>> {
    let text = std::env::var_os(VARIABLE).map(OsString::into_vec).unwrap_or_default();
    parse(&text).ok_or_else(|| format!("{VARIABLE} is not as Git writes it").into())
}

/// Reads `'KEY'='VALUE'`, `'KEY=VALUE'` and `'KEY'`, with spaces between them.
fn parse(text: &[u8]) -> Option<Vec<BString>> {
    let mut settings = Vec::new();
    let mut rest = text.trim_ascii();
    while !rest.is_empty() {
        let (mut setting, after) = word(rest)?;
        rest = after;
        if let Some(value) = rest.strip_prefix(b"=") {
            setting.push(b'=');
            // An empty value has no quotes.
            if value.first() == Some(&b'\'') {
                let (value, after) = word(value)?;
                setting.extend_from_slice(&value);
                rest = after;
            } else {
                rest = value;
            }
        }
        if !rest.is_empty() && !rest[0].is_ascii_whitespace() {
            return None;
        }
        rest = rest.trim_ascii_start();
        settings.push(setting.into());
    }
    Some(settings)
}

/// Reads a word as a shell would: in quotes, but for `\'` and `\!` between two pairs of them.
fn word(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    let mut rest = text.strip_prefix(b"'")?;
    loop {
        let end = rest.iter().position(|byte| *byte == b'\'')?;
        word.extend_from_slice(&rest[..end]);
        rest = &rest[end + 1..];
        match rest {
            [b'\\', escaped @ (b'\'' | b'!'), b'\'', after @ ..] => {
                word.push(*escaped);
                rest = after;
            }
            _ => return Some((word, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_git_writes_them() {
        let read = |text: &str| {
            let settings = parse(text.as_bytes())?;
            Some(settings.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(read("").unwrap(), [""; 0]);
        assert_eq!(read("'a.b'='c d' 'e.f=g' 'h.i'").unwrap(), ["a.b=c d", "e.f=g", "h.i"]);
        assert_eq!(read(" 'a.b'= 'c.d'='' ").unwrap(), ["a.b=", "c.d="]);
        assert_eq!(read(r"'a.b'='it'\''s so'\!''").unwrap(), ["a.b=it's so!"]);
        for wrong in ["a.b", "'a.b", "'a.b'x", "'a.b'='c", r"'a'\x'b'"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
