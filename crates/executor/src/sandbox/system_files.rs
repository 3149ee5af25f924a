//! What files of `/etc` say of the user of executions, and of their host: programs ask for both.

use rustix::process::{getegid, geteuid};

use super::spec::HOME;

/// The name of the host in a sandbox.
pub(super) const HOST_NAME: &str = "sandbox";

/// The name of a user and of a group that the host's files do not know. It is the same for everybody.
const USER_NAME: &str = "compeval";

/// A line that a file of `/etc` must have, so that programs find who the user is, and where the host is.
pub(super) struct RequiredLine {
    /// The name of the file.
    pub(super) file: &'static str,
    line: String,
    /// A word that a line has which says it already, and where it is.
    word: String,
    has_word: fn(&str, &str) -> bool,
}

impl RequiredLine {
    /// The lines of the user that executions have.
    pub(super) fn all() -> [Self; 3] {
        Self::of_user(geteuid().as_raw(), getegid().as_raw())
    }

    fn of_user(user: u32, group: u32) -> [Self; 3] {
        let has_id = |line: &str, id: &str| line.split(':').nth(2) == Some(id);
        let has_name = |line: &str, name: &str| {
            let line = line.split('#').next().unwrap_or_default();
            line.split_whitespace().skip(1).any(|word| word == name)
        };
        let (user, group) = (user.to_string(), group.to_string());
        let user_line = format!("{USER_NAME}:x:{user}:{group}::{HOME}:/bin/sh");
        let (group_line, host_line) =
            (format!("{USER_NAME}:x:{group}:"), format!("127.0.0.1\t{HOST_NAME}"));
        [
            Self { file: "passwd", line: user_line, word: user, has_word: has_id },
            Self { file: "group", line: group_line, word: group, has_word: has_id },
            Self { file: "hosts", line: host_line, word: HOST_NAME.to_owned(), has_word: has_name },
        ]
    }

    /// A file with these contents and the line; `None` if a line of it says that already.
    pub(super) fn added_to(&self, contents: &[u8]) -> Option<Vec<u8>> {
        let text = String::from_utf8_lossy(contents);
        if text.lines().any(|line| (self.has_word)(line, &self.word)) {
            return None;
        }
        let end: &[u8] = if matches!(contents.last(), None | Some(b'\n')) { b"" } else { b"\n" };
        Some([contents, end, self.line.as_bytes(), b"\n"].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_added_unless_another_one_says_it() {
        let [user, group, host] = RequiredLine::of_user(54321, 20);
        let added = |required: &RequiredLine, text: &str| {
            required.added_to(text.as_bytes()).map(|it| String::from_utf8(it).unwrap())
        };
        let root = "root:x:0:0:root:/root:/bin/sh";
        let line = "compeval:x:54321:20::/home/compeval:/bin/sh\n";
        assert_eq!(added(&user, root).unwrap(), format!("{root}\n{line}"));
        assert_eq!(added(&user, &format!("{root}\n")).unwrap(), format!("{root}\n{line}"));
        assert_eq!(added(&user, "ann:x:54321:20::/home/ann:/bin/sh\n"), None);
        assert_eq!(added(&group, "dialout:x:20:ann\n"), None);
        assert_eq!(added(&group, "users:x:200:\n").unwrap(), "users:x:200:\ncompeval:x:20:\n");
        assert_eq!(added(&host, "127.0.0.1 localhost sandbox # x\n"), None);
        let other = "127.0.0.1 sandbox.local # sandbox\n";
        assert_eq!(added(&host, other).unwrap(), format!("{other}127.0.0.1\tsandbox\n"));
        assert_eq!(added(&host, "").unwrap(), "127.0.0.1\tsandbox\n");
    }
}
