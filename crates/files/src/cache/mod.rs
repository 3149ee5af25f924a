//! The user's cache: tables of values that take long to compute, each with the state it depends on.
//!
//! An entry is a hit while that state is current, and stale from then on. Losing the cache at any
//! time, as a whole or in part, costs time and nothing else. So no operation reports an error: an
//! entry that cannot be read is a miss, and one that cannot be written is not kept.

pub mod digests;
mod fingerprint;
mod table;

use std::path::PathBuf;

use ce_model::digest::Digest;

pub use self::fingerprint::{FileStat, Fingerprint};
pub use self::table::{Lookup, Table};

/// The directory that holds the tables. It is created when the first entry is inserted.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Returns the cache of the user, `$XDG_CACHE_HOME/compeval` or `$HOME/.cache/compeval`, or `None`
    /// if there is no such place. A home that does not exist is not created.
    pub fn of_user() -> Option<Self> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let given = variable("XDG_CACHE_HOME").filter(|dir| dir.is_absolute());
        let home = || variable("HOME").filter(|dir| dir.is_absolute() && dir.is_dir());
        let dir = given.or_else(|| Some(home()?.join(".cache")))?;
        Some(Self::at(dir.join("compeval")))
    }

    /// The directory of the files that the user's processes on this host lock, which need not exist.
    pub fn locks_of_host(&self) -> PathBuf {
        let host = rustix::system::uname().nodename().to_string_lossy().replace('/', "_");
        self.root.join("hosts").join(host)
    }

    /// The directory of the mirror of a repository, which need not exist.
    pub fn mirror(&self, url: &str) -> PathBuf {
        let digits = Digest::of(url.as_bytes()).sha1.short();
        self.root.join("mirrors").join(digits)
    }

    /// Returns the cache in this directory, which need not exist.
    pub const fn at(root: PathBuf) -> Self {
        Self { root }
    }
}
