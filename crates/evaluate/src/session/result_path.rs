//! Why no result is found by the path that was given, and what to try.

use std::path::PathBuf;

use ce_model::exit::Explain;

/// The reason why a path names no result.
#[derive(Debug, thiserror::Error)]
pub enum ResultPathError {
    /// It is a storage.
    #[error("{} is a storage, and no result in it is given", .0.display())]
    Storage(PathBuf),
    /// It leads into a storage, to a place where no results are.
    #[error("{} is in the storage {}, and not where results are", path.display(), storage.display())]
    Elsewhere {
        /// The path.
        path: PathBuf,
        /// The storage.
        storage: PathBuf,
    },
    /// It leads through no storage.
    #[error("{} is in no storage, and Git's configuration has no compeval.storage", .0.display())]
    Nowhere(PathBuf),
}

/// What to try if no result is named.
pub fn naming_results() -> String {
    "give a file of each result, after the storage".to_owned()
}

impl Explain for ResultPathError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Storage(_) => return Some(naming_results()),
            Self::Elsewhere { .. } => {
                "give a file in c_NAME/CCID/NN/, t_NAME/CCID/NN/ or tinputs/ of the storage; ce log lists calls"
            }
            Self::Nowhere(_) => {
                "give the path of a file in a storage, or give the storage before the name of the file"
            }
        };
        Some(hint.to_owned())
    }
}
