//! The workflow as a picture.
//!
//! A [`Drawing`] is made from a task and its plan, and every format is written from the same
//! drawing, so they never tell different stories. The same drawing is the same text, byte for
//! byte. Reads and computes nothing: the evaluation says what is present and what is missing.

mod dot;
mod drawing;
mod layout;
mod style;
mod svg;

pub use self::drawing::{Arrow, BodyFrame, Drawing, Shape, ShapeCount, ShapeKind, ShapeState};
