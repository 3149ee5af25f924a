//! The introduction to a task on a page, for somebody who has never heard of it: its question, its version, its inputs, and how to
//! repeat it.

use std::fs;
use std::path::Path;

use ce_evaluate::Evaluation;
use ce_git::{Config, LastChange, Snapshot, Trees};
use ce_model::digest::ObjectId;
use ce_model::humanize::{quoted, quoted_path};
use ce_model::plan::Source;
use ce_model::task::{InputId, LoadedFrom, Task, WORKFLOW_TEXT};

/// The introduction to a task on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageStudy {
    /// The title, if its README has one.
    pub title: Option<String>,
    /// The first comment of its text, or else the first paragraph of its README.
    pub question: Option<String>,
    /// The commit at which it was evaluated.
    pub commit: ObjectId,
    /// The last commit that changed it.
    pub last_change: Option<LastChange>,
    /// Whether its work tree has changes that are not committed.
    pub is_changed: bool,
    /// The values given for its inputs.
    pub given: Vec<GivenInput>,
    /// The names of the repositories that were given, and their addresses if they say one.
    pub repositories: Vec<(String, Option<String>)>,
    /// The commands that repeat it.
    pub commands: Vec<String>,
}

/// The value given for an input of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenInput {
    /// The name of the input.
    pub name: String,
    pub value: GivenValue,
    /// Whether it is the default of the task.
    pub is_default: bool,
}

/// A given value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenValue {
    /// A line of text.
    Text(String),
    /// A file or directory: its size in bytes, and the digits of its SHA-1.
    File(u64, String),
    /// Nothing, since nothing reads it.
    Nothing,
}

/// The largest number of bytes of a text that is shown.
const LONGEST_TEXT: usize = 200;

impl PageStudy {
    /// Describes a task in a directory, as it was evaluated.
    pub(super) fn describe(dir: &Path, evaluation: &Evaluation) -> Self {
        let task = &evaluation.task;
        let is_work_tree = matches!(task.loaded_from, LoadedFrom::WorkTree(_));
        let snapshot =
            if is_work_tree { None } else { Snapshot::open(dir, task.commit.full()).ok() };
        let read = |name: &str| {
            let contents = if is_work_tree {
                fs::read(dir.join(name)).ok()?
            } else {
                let snapshot = snapshot.as_ref()?;
                // Its paths are relative to the task.
                snapshot.read(&snapshot.find(Path::new(name)).ok()?).ok()?
            };
            String::from_utf8(contents).ok()
        };
        let (title, paragraph) = read("README.md").map(|it| beginning(&it)).unwrap_or_default();
        let question = read(WORKFLOW_TEXT).and_then(|it| first_comment(&it));
        let last_change =
            Trees::new(dir).last_change(Path::new(&task.place), &task.commit).ok().flatten();
        let given: Vec<GivenInput> =
            (0..task.inputs.len()).map(|at| given(evaluation, InputId::at(at))).collect();
        let repositories = evaluation.named_repositories().iter();
        let repositories: Vec<(String, Option<String>)> =
            repositories.map(|(name, path)| (name.clone(), address(path))).collect();
        let commands = commands(task, address(dir).as_deref(), &given, &repositories);
        Self {
            title,
            question: question.or(paragraph),
            commit: task.commit.clone(),
            last_change,
            is_changed: !task.changed.is_empty(),
            given,
            repositories,
            commands,
        }
    }
}

/// The address that the repository of a directory was cloned from. A path is of this host, and none.
fn address(dir: &Path) -> Option<String> {
    let origin = Config::read(dir).ok()?.origin()?;
    let is_address =
        origin.contains("://") || origin.contains('@') && !origin.starts_with(['/', '.']);
    is_address.then_some(origin)
}

/// The comment that a text of a workflow begins with, as one paragraph.
fn first_comment(text: &str) -> Option<String> {
    let text = text.trim_start_matches('\u{feff}');
    let lines = text.lines().map(str::trim).skip_while(|line| line.is_empty());
    let lines = lines.map_while(|line| line.strip_prefix(['#', ';']));
    let lines: Vec<&str> = lines.map(|line| line.trim_start_matches(['#', ';']).trim()).collect();
    Some(lines.join(" ").trim().to_owned()).filter(|text| !text.is_empty())
}

/// The title and the first paragraph of a README.
fn beginning(text: &str) -> (Option<String>, Option<String>) {
    let mut lines = text.lines().map(str::trim).skip_while(|line| line.is_empty()).peekable();
    let title = lines.next_if(|line| line.starts_with("# "));
    let title = title.map(|line| line.trim_start_matches('#').trim().to_owned());
    let paragraph: Vec<&str> = lines
        .skip_while(|line| line.is_empty())
        .take_while(|line| !line.is_empty() && !line.starts_with(['#', '|', '`', '<', '!']))
        .collect();
    (title, Some(paragraph.join(" ")).filter(|text| !text.is_empty()))
}

fn given(evaluation: &Evaluation, input: InputId) -> GivenInput {
    let source = Source::Input(input);
    let name = evaluation.task.inputs[input.index()].to_string();
    let is_default = evaluation.files.as_given.get(input.index()).is_none_or(Option::is_none);
    let value = match evaluation.digest(source) {
        None => GivenValue::Nothing,
        Some(digest) => {
            let (size, sha1) = (digest.total(), digest.sha1.full());
            let is_short = size <= LONGEST_TEXT as u64 && !digest.is_directory();
            let contents = is_short.then(|| evaluation.contents(source).ok().flatten());
            let text = contents.flatten().and_then(|contents| String::from_utf8(contents).ok());
            match text.and_then(|text| text.strip_suffix('\n').map(str::to_owned)) {
                Some(line) if !line.contains(char::is_control) => GivenValue::Text(line),
                _ => GivenValue::File(size, sha1),
            }
        }
    };
    GivenInput { name, value, is_default }
}

/// The commands that repeat a task.
fn commands(
    task: &Task,
    origin: Option<&str>,
    given: &[GivenInput],
    repositories: &[(String, Option<String>)],
) -> Vec<String> {
    let repository = origin.map_or_else(|| "REPOSITORY".to_owned(), quoted);
    let mut run = vec!["ce run".to_owned()];
    if !task.place.is_empty() {
        run.push(format!("--task {}", quoted_path(Path::new(&task.place))));
    }
    run.push("../results".to_owned());
    for GivenInput { name, value, .. } in given.iter().filter(|it| !it.is_default) {
        run.extend(match value {
            GivenValue::Text(text) => Some(format!("-p {}", quoted(&format!("{name}={text}")))),
            GivenValue::File(..) => Some(quoted(&format!("{name}=FILE"))),
            GivenValue::Nothing => None,
        });
    }
    run.extend(
        repositories.iter().map(|(name, _)| format!("-r {}", quoted(&format!("{name}=REPO")))),
    );
    vec![
        format!("git clone {repository} study"),
        "cd study".to_owned(),
        format!("git checkout {}", task.commit.full()),
        run.join(" "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_is_the_first_comment() {
        let first = |text: &str| first_comment(text);
        assert_eq!(
            first("\n# Which one?\n# Or none?\nInputs: x\n").unwrap(),
            "Which one? Or none?"
        );
        assert_eq!(first("; which\n").unwrap(), "which");
        assert_eq!(first("Inputs: x\n# later\n"), None);
        assert_eq!(first("#\n\n# later\n"), None);
    }

    #[test]
    fn a_readme_has_a_title_and_a_paragraph() {
        let found = |text: &str| beginning(text);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            found("# A title\n\nOne\ntwo.\n\nThree.\n"),
            (some("A title"), some("One two."))
        );
        assert_eq!(found("Words\n"), (None, some("Words")));
        assert_eq!(found("# Title\n\n## Part\n"), (some("Title"), None));
        assert_eq!(found(""), (None, None));
    }
}
