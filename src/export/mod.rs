//! The workflow as a picture.
//!
//! A [`Drawing`] is made from a task and its plan, and every format is written from the same
//! drawing, so they never tell different stories. The same drawing is the same text, byte for
//! byte. Reads and computes nothing: what is there and what is missing, it is told.

mod bodies;
mod dot;
mod drawing;
mod layout;
mod of_results;
mod paint;
mod state;
mod svg;
mod text;

pub use self::bodies::{BodyFrame, ShapeCount};
pub use self::drawing::{Arrow, Drawing, Shape, ShapeKind};
pub use self::state::ShapeState;
