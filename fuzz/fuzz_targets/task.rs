//! The files of a task: for any contents, the task is refused or valid.
#![no_main]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use compeval::expression::{self, Labels, Sharing, Style};
use compeval::load::{self, LoadError, Uncommitted};
use compeval::plan::Plan;
use compeval::task::{Node, Task};
use compeval_fuzz::{Ground, put};
use libfuzzer_sys::fuzz_target;

static GROUND: LazyLock<Ground> = LazyLock::new(Ground::new);

/// What stands in a file.
#[derive(Arbitrary, Debug)]
enum Text<'a> {
    Lines(Vec<Word<'a>>),
    Bytes(&'a [u8]),
}

#[derive(Arbitrary, Debug)]
enum Word<'a> {
    Add,
    Divmod,
    Computation,
    Input,
    Literal,
    X,
    Y,
    Stored,
    Outside,
    Number(u8),
    Other(&'a str),
}

/// What stands in a place where a directory of the workflow belongs.
#[derive(Arbitrary, Debug)]
enum Place<'a> {
    Node(Branch<'a>),
    Call(Vec<(Range, Self)>, Vec<u8>),
    X,
    Y,
    File(Text<'a>),
    Root,
    First,
    Beside,
    Outside,
    Itself,
}

#[derive(Arbitrary, Debug)]
struct Branch<'a> {
    kind: Option<Text<'a>>,
    value: Option<Text<'a>>,
    outputs: Option<Text<'a>>,
    inputs: Vec<(Name<'a>, Place<'a>)>,
    more: Option<Name<'a>>,
}

#[derive(Arbitrary, Debug)]
struct Range {
    first: u8,
    last: Option<u8>,
}

#[derive(Arbitrary, Debug)]
enum Name<'a> {
    Range(Range, &'a str),
    Other(&'a str),
}

#[derive(Arbitrary, Debug)]
struct Spoiled<'a> {
    inputs: Option<Text<'a>>,
    computation: Option<[Text<'a>; 2]>,
    workflow: Place<'a>,
}

impl Text<'_> {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Lines(words) => {
                words.iter().map(|word| word.text() + "\n").collect::<String>().into()
            }
            Self::Bytes(bytes) => bytes.to_vec(),
        }
    }
}

impl Word<'_> {
    fn text(&self) -> String {
        match self {
            Self::Add => "add".to_owned(),
            Self::Divmod => "divmod".to_owned(),
            Self::Computation => "computation".to_owned(),
            Self::Input => "input".to_owned(),
            Self::Literal => "literal".to_owned(),
            Self::X => "x".to_owned(),
            Self::Y => "y".to_owned(),
            Self::Stored => "tinputs/ad/48103e4fc7".to_owned(),
            Self::Outside => "../outside/x".to_owned(),
            Self::Number(number) => number.to_string(),
            Self::Other(text) => (*text).to_owned(),
        }
    }
}

impl Range {
    fn text(&self) -> String {
        let last = self.last.map(|last| format!("_{last:02}")).unwrap_or_default();
        format!("{:02}{last}", self.first)
    }
}

impl Name<'_> {
    fn text(&self) -> Option<String> {
        let text = match self {
            Self::Range(range, text) => format!("{}-{text}", range.text()),
            Self::Other(text) => (*text).to_owned(),
        };
        let plain = !text.contains(['/', '\0']) && !matches!(&*text, "" | "." | "..");
        Some(text).filter(|text| plain && text.len() < 256)
    }
}

fn leaf(path: &Path, kind: &str, value: &str) {
    put(&path.join("kind"), kind.as_bytes());
    put(&path.join("value"), value.as_bytes());
}

impl Place<'_> {
    fn make(&self, path: &Path, task: &Path) {
        // Existing files keep the name.
        if path.symlink_metadata().is_ok() || path.as_os_str().len() > 2000 {
            return;
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match self {
            Self::Node(branch) => branch.make(path, task),
            Self::Call(inputs, outputs) => {
                leaf(path, "computation", if inputs.len() == 1 { "add" } else { "divmod" });
                let outputs = outputs.iter().map(|number| format!("{}\n", number % 3));
                put(&path.join("outputs"), outputs.collect::<String>().as_bytes());
                for (range, place) in inputs {
                    place.make(&path.join("inputs").join(range.text() + "-"), task);
                }
            }
            Self::X => leaf(path, "input", "x"),
            Self::Y => leaf(path, "input", "y"),
            Self::File(text) => put(path, &text.bytes()),
            Self::Root => symlink(task.join("workflow"), path).unwrap(),
            Self::First => symlink(task.join("workflow/inputs/00-"), path).unwrap(),
            Self::Beside => symlink("00-", path).unwrap(),
            Self::Outside => symlink(task.join("../outside/node"), path).unwrap(),
            Self::Itself => symlink(path, path).unwrap(),
        }
    }
}

impl Branch<'_> {
    fn make(&self, path: &Path, task: &Path) {
        fs::create_dir_all(path).unwrap();
        for (name, text) in
            [("kind", &self.kind), ("value", &self.value), ("outputs", &self.outputs)]
        {
            if let Some(text) = text {
                put(&path.join(name), &text.bytes());
            }
        }
        for (name, place) in &self.inputs {
            if let Some(name) = name.text() {
                place.make(&path.join("inputs").join(name), task);
            }
        }
        if let Some(name) = self.more.as_ref().and_then(Name::text)
            && path.join(&name).symlink_metadata().is_err()
        {
            put(&path.join(name), b"more\n");
        }
    }
}

/// What must be true of every task.
fn check(task: &Task) {
    for (id, node) in task.workflow.nodes() {
        let Node::Computation { computation, inputs, outputs } = node else { continue };
        let computation = &task.computations[computation.first.index()];
        let mut next = 0;
        for argument in inputs {
            assert!(argument.node < id, "a node stands before its readers");
            let places = usize::from(argument.last) + 1 - usize::from(argument.first);
            assert_eq!(
                (usize::from(argument.first), task.workflow[argument.node].width()),
                (next, places)
            );
            next += places;
        }
        assert_eq!(next, computation.inputs.len(), "each input is filled once");
        assert!(outputs.numbers().all(|number| usize::from(number) < computation.outputs.len()));
        assert!(!outputs.is_empty());
    }
    let plan = Plan::new(task);
    assert!(plan.calls().len() <= task.workflow.nodes().len());
    assert_eq!(plan.outputs().len(), task.workflow[task.workflow.root()].width());
    let style = Style { sharing: Sharing::Label, labels: Labels::Show };
    let text = expression::Text::from(task);
    text.write(style, &mut std::io::sink()).unwrap();
}

fuzz_target!(|spoiled: Spoiled<'_>| {
    let task = GROUND.path("task");
    drop(fs::remove_dir_all(task.join("workflow")));
    drop(fs::remove_file(task.join("workflow")));
    let inputs = spoiled.inputs.as_ref().map_or(b"x\ny\n".to_vec(), Text::bytes);
    put(&task.join("inputs"), &inputs);
    let lists = spoiled.computation.as_ref().map(|lists| lists.each_ref().map(Text::bytes));
    let [inputs, outputs] = lists.unwrap_or([b"a\nb\n".to_vec(), b"c\n".to_vec()]);
    put(&task.join("computations/add/inputs"), &inputs);
    put(&task.join("computations/add/outputs"), &outputs);
    spoiled.workflow.make(&task.join("workflow"), &task);
    match load::task(&task, Uncommitted::Ignore, None) {
        Ok(loaded) => {
            assert!(loaded.warnings.iter().all(|warning| !warning.to_string().contains('\n')));
            check(&loaded.task);
        }
        Err(LoadError::Problems { problems, .. }) => {
            assert!(!problems.is_empty());
            assert!(problems.iter().all(|problem| !problem.to_string().contains('\n')));
        }
        Err(LoadError::NoTask(_)) => {}
        Err(error) => panic!("{error}"),
    }
    GROUND.check();
});
