//! What Git records: the only folder that names gix.
//!
//! Reads repositories and changes nothing in them. Knows nothing of tasks and the storage, but for
//! where a task's repository keeps the names that its workflows read.

mod head;
mod reach;

use std::error::Error;

pub use self::head::{Head, HeadError, Heads, top};
pub use self::reach::{Reach, ReachError};
use crate::digest::ObjectId;

type GitResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn object_id(id: gix::ObjectId) -> GitResult<ObjectId> {
    Ok(id.to_string().parse()?)
}
