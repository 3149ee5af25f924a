//! The plan of the house: what the modules of a crate may import. The compiler keeps the order of the crates.

/// The modules of the package at the root from the ground up. A module imports what stands in lines before its own.
pub(crate) const LAYERS: [&[&str]; 4] = [&["report", "draw"], &["cli"], &["lib"], &["bin"]];

/// The rooms of the storage from the ground up. A room imports those before its own.
pub(crate) const ROOMS: [&str; 5] = ["disk", "paths", "records", "protocol", "maintenance"];
