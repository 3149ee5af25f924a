//! Making and changing tasks in a work tree.

mod directories;

pub use self::directories::make;
