//! The expression in forms for other eyes: as LISP.
//!
//! Only tells; reads and writes no storage.

pub mod sym;
