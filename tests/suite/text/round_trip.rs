//! Text -> directories -> text, and directories -> text -> directories: nothing is lost.

use std::fs;
use std::path::Path;

use compeval::edit::{Force, WorkflowForm, convert};
use compeval::expression::{Expression, Labels, NodeKind, Sharing, Style, Text};
use compeval::load;
use compeval::load::Uncommitted;
use compeval::task::Workflow;

use super::{tree, write};
use crate::examples::project;
use crate::generator::{self, Random, relabel};
use crate::inside::World;
use crate::lisp::{self, shown};

const ALL: Style = Style { sharing: Sharing::Label, labels: Labels::Show };

/// Labels that are awkward in some way, and may be in a file's name.
const LABELS: [&str; 12] = [
    "left",
    "",
    "a b",
    "-",
    "\"quoted\"",
    "ünïcode",
    "it's",
    "a|b\\c",
    ":a",
    "#1#",
    "(a) ; b",
    "line\nline\t\u{1b}",
];

/// Gives every input of an expression a label.
pub(super) fn label(expression: &mut Expression, random: &mut Random) {
    for argument in expression.nodes_mut().iter_mut().flat_map(|node| &mut node.inputs) {
        argument.label = Some(random.one_of(&LABELS).into());
    }
}

#[test]
fn a_text_with_labels_is_written_and_read_back_byte_for_byte() {
    let lab = generator::lab();
    let inputs: Vec<_> = lab.inputs.iter().map(|name| name.parse().unwrap()).collect();
    for seed in generator::seeds(20) {
        let mut random = Random::new(seed);
        let mut expression = generator::workflow(&mut random);
        label(&mut expression, &mut random);
        let text =
            shown(&Text { inputs: Some(inputs.clone()), expression, ..Text::default() }, ALL);
        assert_eq!(shown(&lisp::text(&text), ALL), text, "seed {seed}: parsed and printed");
        write(&lab.path("task"), &text);
        let read = load::written(&lab.path("task")).unwrap();
        assert_eq!(shown(&read.text, ALL), text, "seed {seed}: written and read");
        assert!(read.unread.is_empty());
    }
}

#[test]
fn directories_survive_the_conversion_to_text_and_back() {
    let lab = generator::lab();
    let task = lab.path("task");
    for seed in generator::seeds(20) {
        let mut random = Random::new(seed);
        let expression = generator::workflow(&mut random);
        drop(fs::remove_dir_all(task.join("workflow")));
        lisp::write(&task, &Text { expression, ..Text::default() });
        fs::write(task.join("inputs"), "x\ny\nstop words\n").unwrap();
        relabel(&lab, &mut random);
        let (before, first) = (tree(&task.join("workflow")), World::load(&lab));
        let text = shown(&load::written(&task).unwrap().text, ALL);
        write(&task, &text);
        assert_eq!(tree(&task.join("workflow")), before, "seed {seed}\n{text}");
        for sharing in [Sharing::Label, Sharing::Repeat] {
            write(&task, &shown(&Text::from(&*first.task), Style { sharing, ..ALL }));
            let second = World::load(&lab);
            assert_eq!(second.task.workflow, first.task.workflow, "seed {seed}, labels and all");
        }
    }
}

/// The workflow of a task with its labels, as it is loaded.
fn loaded(task: &Path) -> Workflow {
    load::task(task, Uncommitted::Ignore, None).unwrap().task.workflow
}

const EXAMPLES: [&str; 2] = ["arith", "nile"];

#[test]
fn the_examples_survive_the_conversion_to_text_and_back() {
    let lab = project();
    for name in EXAMPLES {
        let task = lab.path("task/tasks-example").join(name);
        let before = loaded(&task);
        let text = shown(&load::written(&task).unwrap().text, ALL);
        write(&task, &text);
        assert_eq!(loaded(&task), before, "{name}");
        // A shared node is now a directory where it stands first in the text.
        let (again, files) = (load::written(&task).unwrap().text, tree(&task));
        assert_eq!(shown(&again, ALL), text, "{name}");
        write(&task, &text);
        assert_eq!(tree(&task), files, "{name}");
    }
}

#[test]
fn twenty_thousand_levels_are_parsed_and_printed() {
    const LEVELS: usize = 20_000;
    let text = format!("{}INPUT('x'){}\n", "(f ".repeat(LEVELS), ")[00]".repeat(LEVELS));
    let parsed = lisp::text(&text);
    assert_eq!(parsed.expression.nodes().len(), LEVELS + 1);
    assert_eq!(shown(&parsed, ALL), text);
    let lab = generator::lab();
    fs::write(lab.path("task/workflow.ce"), format!("Inputs: x\n{text}")).unwrap();
    let refused = convert(&lab.path("task"), WorkflowForm::Directories, Force::Replace);
    assert!(format!("{:?}", refused.unwrap_err()).contains("Deep"));
    let long = format!("(f{})[00]", " INPUT('x')".repeat(LEVELS));
    assert_eq!(lisp::text(&long).expression.nodes().len(), LEVELS + 1);
}

#[test]
fn names_of_any_characters_are_read_back() {
    let mut random = Random::new(7);
    let characters = ['a', '\'', '|', '\\', ' ', ')', '(', ',', ';', ':', '#', '[', 'ü', '\u{a0}'];
    for _ in 0..2000 {
        let length = 1 + random.below(6);
        let name: String = (0..length).map(|_| random.one_of(&characters)).collect();
        for kind in [
            NodeKind::Computation,
            NodeKind::Input,
            NodeKind::Literal,
            NodeKind::File,
            NodeKind::Tree,
        ] {
            // A colon has a meaning in the name of a tree.
            if kind == NodeKind::Tree && kind.value(&name).is_err() {
                continue;
            }
            let mut expression = Expression::default();
            let value = name.clone().into();
            let (inputs, outputs) = (Vec::new(), None);
            expression.push(compeval::expression::ExpressionNode {
                kind,
                value,
                files: Vec::new(),
                inputs,
                outputs,
            });
            let inputs = Some(vec![name.parse().unwrap()]);
            let text = Text { inputs, expression, ..Text::default() };
            let read = lisp::text(&shown(&text, ALL));
            assert_eq!(read.expression.nodes(), text.expression.nodes(), "{name:?}");
            assert_eq!(read.inputs, text.inputs);
        }
    }
}
