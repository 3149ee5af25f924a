//! The plan of the house: its layers, and the owners of outside crates.

/// Modules whose parts have layers of their own, and name each other as everybody does.
pub(crate) const GROUPS: [&str; 2] = ["task", "questions"];

/// The modules from the ground up. A module imports what stands in lines before its own.
pub(crate) const LAYERS: [&[&str]; 14] = [
    &["exit"],
    &[
        "task::access",
        "task::ids",
        "task::name",
        "task::points",
        "task::template",
        "task::text",
        "digest",
        "words",
    ],
    &["task::resources", "task::slice", "task::sweep", "advice"],
    &["task", "task::workflow", "cache", "expand"],
    &["git", "manifest", "task::expression"],
    &["load", "plan", "storage", "executor"],
    &["evaluate", "questions::history", "doctor", "edit"],
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

/// The rooms of the storage from the ground up. A room imports those before its own.
pub(crate) const ROOMS: [&str; 5] = ["disk", "layout", "records", "store", "maintenance"];

/// Parts of a module that another one may name only to test them.
pub(crate) const INNER: [&str; 4] = [
    "crate::storage::disk",
    "crate::storage::layout",
    "crate::storage::store",
    "crate::executor::sandbox",
];

/// Which files or folders may name an outside crate.
pub(crate) const OWNERS: [(&str, &[&str]); 29] = [
    ("anstream", &["cli/style.rs", "cli/tips.rs"]),
    ("anstyle", &["report/"]),
    ("blake3", &["digest.rs"]),
    ("boxcar", &["plan/", "evaluate/"]),
    ("clap", &["cli/"]),
    ("clap_complete", &["cli/"]),
    ("clap_mangen", &["cli/"]),
    ("close_fds", &["executor/sandbox/"]),
    ("composefs_ioctls", &["executor/sandbox/mounts.rs"]),
    ("faster_hex", &["digest/digits.rs", "digest.rs"]),
    ("fork", &["executor/detach.rs", "executor/sandbox/"]),
    ("gix", &["git/"]),
    ("gix_imara_diff", &["questions/compare/"]),
    ("gix_pack", &["git/pack.rs"]),
    ("indicatif", &["report/"]),
    ("jiff", &["storage/", "executor/", "questions/", "report/", "cli/", "words.rs"]),
    ("linux_keyutils", &["doctor/isolation/"]),
    ("nix", &["executor/signals.rs"]),
    ("postcard", &["cache/table.rs"]),
    (
        "rayon",
        &[
            "storage/maintenance/verify.rs",
            "cache/fingerprint.rs",
            "manifest/",
            "evaluate/",
            "questions/",
            "results/",
        ],
    ),
    (
        "rustix",
        &["cache/", "edit/", "manifest/", "load/", "storage/", "executor/", "doctor/", "report/"],
    ),
    ("seccompiler", &["executor/sandbox/filter.rs"]),
    ("serde", &[""]),
    ("serde_json", &["expand/", "questions/", "report/", "results/", "storage/", "task/points.rs"]),
    ("sha1", &["digest.rs"]),
    ("signal_hook", &["edit/", "session/interrupt.rs", "executor/sandbox/", "executor/signals.rs"]),
    ("strsim", &["task/name.rs"]),
    ("thiserror", &[""]),
    ("wait4", &["executor/local/", "executor/sandbox/"]),
];
