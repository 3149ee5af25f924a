//! The problems of files `resources`.

use std::fmt;
use std::path::{Path, PathBuf};

use ce_model::exit::Explain;
use ce_model::task::resources::{AmountError, Resource};

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceFault {
    /// It begins with another word.
    #[error("{word:?} is no resource")]
    Word {
        /// The word.
        word: String,
        /// The most similar word.
        nearest: Option<String>,
    },
    /// It does not say how much.
    #[error("the line does not say how much")]
    NoAmount(Resource),
    /// It says so, and nobody understands it.
    #[error(transparent)]
    Amount(#[from] AmountError),
    /// It says so, where there is nothing to say.
    #[error("nothing may follow the word exclusive")]
    Rest,
    /// Another line asks for the same.
    #[error("line {0} asks for the same resource")]
    Twice(usize),
    /// A line of the task begins with no name of a computation.
    #[error("the line does not say which computation it is for")]
    NoComputation(Resource),
    /// A name in braces is not known.
    #[error("{{{name}}} is neither an input of the task nor bound by a sweep around {node}", node = NodePlace(node))]
    NoName {
        /// The name.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
        /// The node, relative to the task.
        node: PathBuf,
    },
}

/// A node in messages.
struct NodePlace<'a>(&'a Path);

impl fmt::Display for NodePlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the node {}", self.0.display())
    }
}

impl Explain for ResourceFault {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Word { nearest: Some(name), .. } | Self::NoName { nearest: Some(name), .. } => {
                format!("did you mean {name:?}?")
            }
            Self::Word { nearest: None, .. } => {
                let examples: Vec<&str> = Resource::ALL.map(Resource::example).into();
                format!("write a line such as {}", examples.join(", "))
            }
            Self::Amount(error) => return error.hint(),
            Self::NoAmount(resource) => {
                format!("write a line such as {}", resource.example())
            }
            Self::Rest => "write the word exclusive alone".to_owned(),
            Self::Twice(_) => "keep one of them".to_owned(),
            Self::NoComputation(resource) => {
                format!("write NAME {}, with the name of a computation", resource.example())
            }
            Self::NoName { nearest: None, .. } => {
                "name an input of the task or a factor, or write a number".to_owned()
            }
        })
    }
}
