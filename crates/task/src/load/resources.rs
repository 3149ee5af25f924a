//! Reading files `resources`: beside a node, in the root of the task, and beside a computation. Their names are not looked up here.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ce_model::name::ComputationName;
use ce_model::resources::{Resource, Resources};

use super::nearest;
use super::problems::{LoadFault, Problems, ResourceFault};
use super::source::{TaskSource, parse_lines};

/// The name of the file.
pub(super) const FILE: &str = "resources";

/// A line whose names are not looked up yet.
#[derive(Clone, Debug)]
pub(super) struct WrittenLine {
    pub(super) resource: Resource,
    pub(super) amount: String,
    pub(super) path: PathBuf,
    pub(super) line: usize,
}

/// The lines of files that are for several nodes, and what was reported of them.
#[derive(Default)]
pub(super) struct SharedLines {
    pub(super) task: Vec<(ComputationName, WrittenLine)>,
    pub(super) reported: HashSet<(PathBuf, usize)>,
}

/// Reads the file in the directory of a node or computation, which exists.
pub(super) fn read<S: TaskSource>(
    source: &mut S,
    dir: &S::Dir,
    findings: &mut Problems,
) -> Vec<WrittenLine> {
    let path = source.place(dir).join(FILE);
    let mut found: Vec<WrittenLine> = Vec::new();
    for (line, text) in lines(source, dir, &path, findings) {
        let first = |resource| found.iter().find(|it| it.resource == resource).map(|it| it.line);
        match parse(&text).and_then(|(resource, amount)| match first(resource) {
            Some(first) => Err(ResourceFault::Twice(first)),
            None => Ok((resource, amount)),
        }) {
            Ok((resource, amount)) => {
                found.push(WrittenLine { resource, amount, path: path.clone(), line });
            }
            Err(fault) => findings.problem_in_line(&path, line, fault),
        }
    }
    found
}

impl SharedLines {
    /// Reads the file in the root of a task, if it exists. `names` lists the computations of the task.
    pub(super) fn of_task<S: TaskSource>(
        source: &mut S,
        names: impl FnOnce(&mut S) -> Vec<String>,
        findings: &mut Problems,
    ) -> Self {
        let mut shared = Self::default();
        let Ok(task) = source.task() else { return shared };
        if matches!(source.find(&task, FILE), Err(LoadFault::Missing)) {
            return shared;
        }
        let path = PathBuf::from(FILE);
        let lines = lines(source, &task, &path, findings);
        let names = names(source);
        for (line, text) in lines {
            match shared.parse(&text, &names) {
                Ok((name, resource, amount)) => {
                    let path = path.clone();
                    shared.task.push((name, WrittenLine { resource, amount, path, line }));
                }
                Err(fault) => findings.problem_in_line(&path, line, fault),
            }
        }
        shared
    }

    fn parse(
        &self,
        text: &str,
        names: &[String],
    ) -> Result<(ComputationName, Resource, String), LoadFault> {
        let (name, rest) = split(text);
        if !names.iter().any(|known| known == name) {
            return Err(match Resource::of_word(name) {
                Some(resource) if Resource::of_word(split(rest).0).is_none() => {
                    ResourceFault::NoComputation(resource).into()
                }
                _ => {
                    let nearest = nearest(name, names);
                    LoadFault::NoComputation { name: name.to_owned(), nearest }
                }
            });
        }
        let name: ComputationName = name.parse().map_err(LoadFault::Name)?;
        let (resource, amount) = parse(rest)?;
        let mut others = self.task.iter().filter(|(other, _)| *other == name);
        match others.find(|(_, it)| it.resource == resource) {
            Some((_, other)) => Err(ResourceFault::Twice(other.line).into()),
            None => Ok((name, resource, amount)),
        }
    }
}

/// The lines of a file with their numbers, but for comments.
fn lines<S: TaskSource>(
    source: &mut S,
    dir: &S::Dir,
    path: &Path,
    findings: &mut Problems,
) -> Vec<(usize, String)> {
    let lines = findings.note_lines(path, parse_lines(source.read(dir, FILE)));
    let lines = (1..).zip(lines.unwrap_or_default());
    lines.filter(|(_, text)| !text.starts_with('#')).collect()
}

fn split(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    (word, rest.trim())
}

/// Parses a line. Names in braces are left as they are.
fn parse(text: &str) -> Result<(Resource, String), ResourceFault> {
    let (word, amount) = split(text);
    let resource = Resource::of_word(word).ok_or_else(|| {
        let words = Resource::ALL.map(|it| it.word().to_owned());
        ResourceFault::Word { word: word.to_owned(), nearest: nearest(word, &words) }
    })?;
    match (resource, amount) {
        (Resource::Exclusive, "") => {}
        (Resource::Exclusive, _) => return Err(ResourceFault::Rest),
        (_, "") => return Err(ResourceFault::NoAmount(resource)),
        (_, amount) if amount.contains('{') => {}
        (_, amount) => Resources::default().set(resource, amount)?,
    }
    Ok((resource, amount.to_owned()))
}

impl From<ResourceFault> for LoadFault {
    fn from(fault: ResourceFault) -> Self {
        Self::Resource(Box::new(fault))
    }
}
