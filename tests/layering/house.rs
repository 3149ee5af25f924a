//! The plan of the house: what the modules of a crate may import. The compiler keeps the order of the crates.

/// The modules of the package at the root from the ground up. A module imports what stands in lines before its own. The parts of
/// `questions` have layers of their own, and name each other as everybody does.
pub(crate) const LAYERS: [&[&str]; 8] = [
    &["evaluate", "questions::history", "doctor"],
    &[
        "questions::bisect",
        "questions::collect",
        "questions::compare",
        "questions::explain",
        "questions::package",
        "questions::status",
        "questions::table",
        "results",
    ],
    &["questions::page"],
    &["report", "export", "questions"],
    &["session"],
    &["cli"],
    &["lib"],
    &["bin"],
];

/// The module whose parts have layers of their own.
pub(crate) const GROUP: &str = "questions";

/// The rooms of the storage from the ground up. A room imports those before its own.
pub(crate) const ROOMS: [&str; 5] = ["disk", "paths", "records", "protocol", "maintenance"];
