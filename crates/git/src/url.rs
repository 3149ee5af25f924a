//! URLs, as they are shown.

/// A URL without what may be a password: a user, a query and a fragment.
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
    fn a_repository_whose_address_is_a_command_is_not_plain() {
        for plain in
            ["https://host/x.git", "ssh://git@host/x", "git@host:x.git", "../x.git", "file:///x"]
        {
            assert!(is_plain_repository(plain), "{plain}");
        }
        for command in ["ext::touch /tmp/x", "fd::17", "ext::sh -c https://x", "s3://bucket/x"] {
            assert!(!is_plain_repository(command), "{command}");
        }
    }
}
