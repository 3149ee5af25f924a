//! URLs, as they are shown.

/// A URL without what may be a password.
pub(super) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let host = rest.split('/').next().unwrap_or(rest);
    match host.rsplit_once('@') {
        Some((user, _)) => format!("{scheme}://{}", &rest[user.len() + 1..]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        assert_eq!(without_password("https://ada:hunter2@host/x@y.git"), "https://host/x@y.git");
        assert_eq!(without_password("https://host/x@y.git"), "https://host/x@y.git");
        assert_eq!(without_password("git@host:x.git"), "git@host:x.git");
    }
}
