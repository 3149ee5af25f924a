//! Why another repository is not to be had.

use std::error::Error;
use std::path::{Path, PathBuf};

use gix::open::Options;

use crate::errors::hint_to_trust;
use ce_model::exit::Explain;

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
    /// The history of the other repository is cut off: nobody knows what the commits at its border have added.
    #[error(
        "{url} is a shallow clone: its history ends at the commit {border}, and what was before is not there"
    )]
    Shallow {
        /// The other repository.
        url: String,
        /// The first digits of the commits without their parents.
        border: String,
    },
    /// The other repository lacks objects, which it would get from a third one.
    #[error("{url} is a partial clone: the object {object} is not there")]
    Partial {
        /// The other repository.
        url: String,
        /// The id of one of the objects.
        object: String,
    },
}

impl Explain for MirrorError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Own { dir, .. } => Some(format!(
                "if it is damaged, remove it: it is made anew; rm -rf {}",
                dir.display()
            )),
            Self::Git { url, why, .. } if why.contains("dubious ownership") => {
                Some(hint_to_trust(url))
            }
            Self::Git { what: "ls-remote" | "fetch", .. } => Some(
                "make git ls-remote work with it, and git fsck where it is: access and proxies are those of git"
                    .to_owned(),
            ),
            Self::Git { what: "push", .. } => Some("check whether you may write there".to_owned()),
            Self::Git { .. } => None,
            Self::Shallow { .. } => {
                Some("git fetch --unshallow in it, or clone it again without --depth".to_owned())
            }
            Self::Partial { .. } => Some(
                "git fetch --refetch --no-filter in it, or clone it again without --filter"
                    .to_owned(),
            ),
        }
    }
}

/// The id of an object that another repository lacks as a partial clone, if `git` has failed for that. Versions say it in
/// different words: of a repository on this host, its configuration says whether it is one.
pub(super) fn left_out<'a>(said: &'a str, place: Option<&Path>) -> Option<&'a str> {
    let id = said.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| {
        [40, 64].contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    })?;
    let is_partial = match place {
        Some(place) => is_partial_clone(place),
        None => {
            let is_there =
                ["remote: ", "the remote end hung up"].iter().any(|it| said.contains(it));
            is_there && said.contains(" from promisor remote")
        }
    };
    is_partial.then_some(id)
}

/// Whether a repository lacks objects that it would get from another one.
fn is_partial_clone(place: &Path) -> bool {
    let Ok(repository) = gix::open_opts(place, Options::isolated()) else { return false };
    let config = repository.config_snapshot();
    let mut remotes = config.plumbing().sections_by_name("remote").into_iter().flatten();
    remotes.any(|remote| remote.contains_value_name("promisor"))
}
