//! URLs, as they are shown, and their targets.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A URL without the parts that may hold a password: a user, a query and a fragment.
pub(super) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let host = rest.split('/').next().unwrap_or(rest);
    match host.rsplit_once('@') {
        Some((user, _)) => format!("{scheme}://{}", &rest[user.len() + 1..]),
        None => format!("{scheme}://{rest}"),
    }
}

/// Whether a text names a repository that no program of its own is started for: a path, or an address of a well-known scheme.
pub(super) fn is_plain_repository(text: &str) -> bool {
    let schemes = ["https://", "http://", "ssh://", "git://", "file://"];
    schemes.iter().any(|scheme| text.starts_with(scheme))
        || !text.contains("::") && !text.contains("://")
}

/// The path that a URL means to `git`, if that is one on this host; it may be relative. Only URLs have percent signs
/// that mean other bytes, and the host of one that begins with `file://` is ignored.
pub(super) fn local_path(url: &str) -> Option<PathBuf> {
    if let Some(rest) = url.strip_prefix("file://") {
        return rest.find('/').map(|at| PathBuf::from(decoded(&rest[at..])));
    }
    let is_path = url.split_once(':').is_none_or(|(before, _)| before.contains('/'));
    (is_path && !url.is_empty()).then(|| PathBuf::from(url))
}

/// A text with the bytes that its percent signs mean.
fn decoded(text: &str) -> OsString {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, after @ ..] = rest {
        let digits =
            after.get(..2).filter(|_| *first == b'%').and_then(|it| str::from_utf8(it).ok());
        let digits = digits.filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()));
        let byte = digits.and_then(|it| u8::from_str_radix(it, 16).ok()).filter(|it| *it != 0);
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        assert_eq!(without_password("https://ada:hunter2@host/x@y.git"), "https://host/x@y.git");
        assert_eq!(without_password("https://host/x@y.git"), "https://host/x@y.git");
        assert_eq!(without_password("git@host:x.git"), "git@host:x.git");
        assert_eq!(without_password("https://host/x.git?token=abc#def"), "https://host/x.git");
    }

    #[test]
    fn an_address_that_starts_a_helper_is_refused() {
        for plain in
            ["https://host/x.git", "ssh://git@host/x", "git@host:x.git", "../x.git", "file:///x"]
        {
            assert!(is_plain_repository(plain), "{plain}");
        }
        for command in ["ext::touch /tmp/x", "fd::17", "ext::sh -c https://x", "s3://bucket/x"] {
            assert!(!is_plain_repository(command), "{command}");
        }
    }

    #[test]
    fn an_address_is_a_path_where_git_takes_it_for_one() {
        for (url, path) in [
            ("/a b%20c", "/a b%20c"),
            ("../x:y/pub", "../x:y/pub"),
            ("./x:y", "./x:y"),
            ("pub", "pub"),
            ("file:///a%20b/%c3%A9%zz%0", "/a b/\u{e9}%zz%0"),
            ("file://localhost/a/b", "/a/b"),
        ] {
            assert_eq!(local_path(url), Some(PathBuf::from(path)), "{url}");
        }
        for url in
            ["nas:pub", "nas:/pub", "https://host/pub", "ssh://host/pub", "ext::sh", "file://"]
        {
            assert_eq!(local_path(url), None, "{url}");
        }
    }
}
