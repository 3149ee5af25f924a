//! Tasks as they are read: what is wrong with them, what is odd, and what is fine.

mod accepted;
mod broken;
mod faults;
mod git;
mod given;
mod links;
mod literals;
