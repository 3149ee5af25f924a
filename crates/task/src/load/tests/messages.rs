//! Each message about a task has a test.

/// The problems and their tests.
const PROBLEMS: &str = include_str!("../problems.rs");
const TESTS: [&str; 10] = [
    include_str!("accepted.rs"),
    include_str!("library.rs"),
    include_str!("nodes.rs"),
    include_str!("places.rs"),
    include_str!("sweep_names.rs"),
    include_str!("sweeps.rs"),
    include_str!("text_sweeps.rs"),
    include_str!("texts.rs"),
    include_str!("unreadable.rs"),
    include_str!("../written_directories.rs"),
];

/// Parts of messages that take a repository, a host, or the contents of inputs and sheets. The suite tests them, in the directories
/// isolation, load and run, and in `levels.rs`.
const ELSEWHERE: [&str; 14] = [
    "the program cannot be read:",
    "has uncommitted changes",
    "cannot have the text of the input",
    "in the work tree",
    "has uncommitted changes:",
    "may have uncommitted changes: only the filter",
    "has other contents in the work tree than in the commit: the filter",
    ", which Git LFS keeps elsewhere: exec would read its pointer",
    ", in which computations stand, does not end in .ce",
    "does not exist on this host",
    "takes isolation,",
    "is ignored by Git: no commit records it, and no exec sees it",
    "has uncommitted changes:",
    "empty cells only, and",
];

/// The longest part of a message that is not filled in.
fn longest_part(message: &str) -> Option<&str> {
    let (text, _) = message.trim_start().strip_prefix('"')?.split_once('"')?;
    let parts = text.split('{').map(|part| part.rsplit_once('}').map_or(part, |(_, part)| part));
    let parts = parts.flat_map(|part| part.split(['\\', '\n'])).map(str::trim);
    parts.max_by_key(|part| part.len()).filter(|part| part.len() > 4)
}

#[test]
fn each_message_is_checked_by_a_test() {
    let parts = PROBLEMS.split("#[error(").skip(1).filter_map(longest_part);
    let untold = parts.filter(|part| !TESTS.iter().any(|test| test.contains(part)));
    assert_eq!(untold.collect::<Vec<_>>(), ELSEWHERE);
}
