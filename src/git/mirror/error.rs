//! Why another repository is not to be had.

use std::error::Error;
use std::path::PathBuf;

use crate::git::advice::trusting;

/// The reason why another repository is not to be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MirrorError {
    /// The mirror itself cannot be read or written.
    #[error("the mirror of {url} in {} cannot be used", dir.display())]
    Own {
        /// The directory of the mirror.
        dir: PathBuf,
        /// The other repository.
        url: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// `git` has failed.
    #[error("git {what} of {url} failed: {why}")]
    Git {
        /// The command of `git`.
        what: &'static str,
        /// The other repository.
        url: String,
        /// What `git` says.
        why: String,
    },
}

impl MirrorError {
    /// What to try.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::Own { dir, .. } => Some(format!(
                "if it is damaged, remove it: it is made anew; rm -rf {}",
                dir.display()
            )),
            Self::Git { url, why, .. } if why.contains("dubious ownership") => {
                Some(trusting(url))
            }
            Self::Git { what: "ls-remote" | "fetch", .. } => Some(
                "make git ls-remote work with it, and git fsck where it is: access and proxies are those of git"
                    .to_owned(),
            ),
            Self::Git { what: "push", .. } => Some("check whether you may write there".to_owned()),
            Self::Git { .. } => None,
        }
    }
}
