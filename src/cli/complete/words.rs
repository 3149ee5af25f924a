//! The quoting of a shell, as far as a line that is being typed needs it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Splits the beginning of a command line into words, without their quotes. The last word is the one that is
/// being typed, and may be empty. Returns the quote that is open at its end, too.
pub(super) fn split(line: &[u8]) -> (Vec<OsString>, Option<u8>) {
    let (mut words, mut word, mut begun, mut quote) = (Vec::new(), Vec::new(), false, None);
    let mut rest = line.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (Some(b'"'), b'\\') => {
                word.push(rest.next_if(|it| b"\"\\$`".contains(it)).unwrap_or(b'\\'));
            }
            (None, b'\\') => word.extend(rest.next()),
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b' ' | b'\t' | b'\n') => {
                if begun {
                    words.push(OsString::from_vec(std::mem::take(&mut word)));
                }
                begun = false;
                continue;
            }
            _ => word.push(byte),
        }
        begun = true;
    }
    words.push(OsString::from_vec(word));
    (words, quote)
}

/// Removes the quotes of a word.
pub(super) fn unquoted(word: &[u8]) -> OsString {
    split(word).0.pop().unwrap_or_default()
}

/// Quotes a text that goes on after an open quote, which the shell closes.
pub(super) fn within(quote: Option<u8>, text: &str) -> String {
    match quote {
        Some(b'\'') => text.replace('\'', r"'\''"),
        Some(_) => {
            let quoted = |c| if r#""\$`"#.contains(c) { vec!['\\', c] } else { vec![c] };
            text.chars().flat_map(quoted).collect()
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_a_shell_does() {
        for (line, words, quote) in [
            ("", vec![""], None),
            ("a  b", vec!["a", "b"], None),
            ("a ", vec!["a", ""], None),
            (r"a\ b 'c d' '' e", vec!["a b", "c d", "", "e"], None),
            (r#"x="a \"b\$ \c"#, vec![r#"x=a "b$ \c"#], Some(b'"')),
            (r"'it\s", vec![r"it\s"], Some(b'\'')),
            (r"a\", vec!["a"], None),
        ] {
            assert_eq!(
                split(line.as_bytes()),
                (words.into_iter().map(Into::into).collect(), quote)
            );
        }
        assert_eq!(unquoted(br"my\ file"), "my file");
        assert_eq!(within(Some(b'"'), "a$b'"), r"a\$b'");
        assert_eq!(within(Some(b'\''), "a$b'"), r"a$b'\''");
    }
}
