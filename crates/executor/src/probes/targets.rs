//! Targets of attempts to break out, and functions that the attempts share.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The namespaces of a process, as `/proc` names them.
pub(super) const NAMESPACES: [&str; 6] = ["user", "mnt", "pid", "ipc", "uts", "net"];

/// Things outside of the sandbox that attempts try to reach. Written as one fact a line.
#[derive(Debug, PartialEq)]
pub(super) struct Targets {
    /// A file that the sandbox hides.
    pub(super) secret: PathBuf,
    /// The user's home.
    pub(super) home: PathBuf,
    /// This program, which is visible.
    pub(super) program: PathBuf,
    /// A process.
    pub(super) process: i32,
    /// A TCP port of the host.
    pub(super) port: u16,
    /// An abstract socket of the host.
    pub(super) socket: String,
    /// The argument by which a surviving process is recognised.
    pub(super) mark: String,
    /// The namespaces outside.
    pub(super) namespaces: String,
    /// A key that processes of the same user can read and write by its number; 0 if there is none.
    pub(super) key: i32,
}

impl Targets {
    pub(super) fn text(&self) -> String {
        let Self { secret, home, program, process, port, socket, mark, namespaces, key } = self;
        let paths = [secret, home, program].map(|path| path.display().to_string());
        format!("{}\n{process}\n{port}\n{socket}\n{mark}\n{namespaces}\n{key}\n", paths.join("\n"))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut line = || lines.next();
        Some(Self {
            secret: line()?.into(),
            home: line()?.into(),
            program: line()?.into(),
            process: line()?.parse().ok()?,
            port: line()?.parse().ok()?,
            socket: line()?.to_owned(),
            mark: line()?.to_owned(),
            namespaces: line()?.to_owned(),
            key: line()?.parse().ok()?,
        })
    }
}

/// The paths in a directory, as far as they can be listed.
pub(super) fn listed(dir: impl AsRef<Path>) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Whether a path in `/proc` is that of a process.
pub(super) fn is_process(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// The namespaces of this process.
pub(super) fn namespaces() -> String {
    let name = |kind| fs::read_link(format!("/proc/self/ns/{kind}")).unwrap_or_default();
    let names: Vec<String> = NAMESPACES.map(|kind| name(kind).display().to_string()).into();
    names.join(" ")
}

/// Returns `what` if an attempt succeeded.
pub(super) fn possible<T, E>(done: Result<T, E>, what: &str) -> Option<String> {
    done.ok().map(|_| what.to_owned())
}

/// Opens a file for writing, as an attempt to change it.
pub(super) fn open_to_write(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_arrive() {
        let targets = Targets {
            secret: "/a/b".into(),
            home: "/root".into(),
            program: "/bin/ce".into(),
            process: 17,
            port: 80,
            socket: "name".to_owned(),
            mark: "600.5".to_owned(),
            namespaces: namespaces(),
            key: 5,
        };
        assert_eq!(Targets::parse(&targets.text()), Some(targets));
        assert_eq!(Targets::parse("a\nb\n"), None);
    }
}
