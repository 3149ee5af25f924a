//! Files in `workflow/` that are no part of a node, and that the task reads as values.

use super::warnings::{Warning, WarningKind};
use ce_model::task::template::Template;
use ce_model::task::workflow::{TaskFile, TaskTree};

/// The directory of the nodes, as the beginning of paths.
const WORKFLOW: &str = "workflow/";

/// A file or directory that is a value: its path relative to the task, up to the first name that a point replaces.
struct ReadPath<'a> {
    begin: &'a str,
    is_whole: bool,
}

impl<'a> ReadPath<'a> {
    fn new<T: AsRef<str>>(template: &Template<T>, path: &'a str) -> Self {
        match path.find('{').filter(|_| template.is_open()) {
            Some(at) => Self { begin: &path[..at], is_whole: false },
            None => Self { begin: path, is_whole: true },
        }
    }

    /// Whether it may be, hold, or be in a file or directory with this path.
    fn may_touch(&self, path: &str) -> bool {
        let Self { begin, is_whole } = self;
        let is_below = |path: &str, above: &str| {
            path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        is_below(begin, path)
            || if *is_whole { is_below(path, begin) } else { path.starts_with(begin) }
    }
}

/// Takes back that nothing reads the files and directories that a task reads as values. `place` is the path of the task in its
/// repository.
pub(super) fn retain_unread(
    warnings: &mut Vec<Warning>,
    (files, trees): (&[TaskFile], &[TaskTree]),
    place: &str,
) {
    let files = files.iter().map(|file| ReadPath::new(&file.path, file.path.as_str()));
    let trees = trees.iter().filter_map(|tree| {
        let written = tree.name.written();
        let path = match (written.source(), place) {
            (".", "") => written.path(),
            (".", place) => written.path().strip_prefix(place)?.strip_prefix('/')?,
            (submodule, _) => submodule,
        };
        Some(ReadPath::new(&tree.name, path))
    });
    // A tree around all nodes, such as the whole repository, does not say that they are read.
    let is_within = |it: &ReadPath<'_>| it.begin.starts_with(WORKFLOW);
    let read: Vec<ReadPath<'_>> = files.chain(trees).filter(is_within).collect();
    warnings.retain(|Warning { path, oddity }| {
        let is_value = path.to_str().is_some_and(|path| read.iter().any(|it| it.may_touch(path)));
        *oddity != WarningKind::Unread || !is_value
    });
}
