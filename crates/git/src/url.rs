//! URLs of repositories, as they are shown.

/// A URL without what may be a password.
pub(super) fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let host = rest.split('/').next().unwrap_or(rest);
    match host.rsplit_once('@') {
        Some((user, _)) => format!("{scheme}://{}", &rest[user.len() + 1..]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_password_is_not_shown() {
        assert_eq!(shown("https://ada:hunter2@host/x@y.git"), "https://host/x@y.git");
        assert_eq!(shown("https://host/x@y.git"), "https://host/x@y.git");
        assert_eq!(shown("git@host:x.git"), "git@host:x.git");
    }
}
