//! Writes a task's `inputs` and `workflow/` from what `ce-sym` prints.
//!
//! The labels are not those that `ce convert` makes up: they do not depend on computations, and the ids
//! of commits in golden files depend on them. An expression without `[...]` gets no file `outputs`,
//! and fills one input of its reader.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use compeval::edit;
use compeval::expression::{
    Expression, Labels, NodeKind, Sharing, Signature, Signatures, Style, Text, WorkflowDirectories,
    parse,
};
use compeval::task::{NodeId, Task};

use crate::generator::output_name;

/// Reads what `ce-sym` prints, which must be right.
#[track_caller]
pub(crate) fn text(text: &str) -> Text {
    match parse(text) {
        Ok(parsed) => parsed.text,
        Err(mistake) => panic!("{mistake} in\n{text}"),
    }
}

/// The workflow of a task as `ce-sym` prints it, without labels.
pub(crate) fn printed(task: &Task, sharing: Sharing) -> String {
    shown(&Text::from(task), Style { sharing, labels: Labels::Hide })
}

/// Returns the printed text of an expression.
pub(crate) fn shown(text: &Text, style: Style) -> String {
    let mut printed = Vec::new();
    text.write(style, &mut printed).unwrap();
    String::from_utf8(printed).unwrap()
}

/// Writes the directory `workflow`, and the file `inputs` if the text names the inputs.
pub(crate) fn write(task: &Path, text: &Text) {
    let mut text = text.clone();
    label(&mut text.expression);
    let mut inputs = text.inputs.clone().unwrap_or_default();
    if text.inputs.is_some() {
        let lines: String = inputs.iter().map(|name| format!("{name}\n")).collect();
        fs::write(task.join("inputs"), lines).unwrap();
    }
    let nodes = text.expression.nodes();
    let names = nodes.iter().filter(|node| node.kind == NodeKind::Input);
    // A sweep binds names that are no inputs.
    if nodes.iter().all(|node| node.kind != NodeKind::Sweep) {
        inputs.extend(names.map(|node| node.value.parse().unwrap()));
    }
    let calls = nodes.iter().filter(|node| node.kind == NodeKind::Computation);
    let one = |name: &str| {
        (name.to_owned(), Signature { inputs: None, outputs: Some(vec![output_name(0)]) })
    };
    let computations: Signatures =
        calls.filter(|node| node.outputs.is_none()).map(|node| one(&node.value)).collect();
    let layout = WorkflowDirectories::of_expression(&text.expression, &computations).unwrap();
    edit::make(&task.join("workflow"), &layout).unwrap();
}

/// Gives each input a label with the name of the node that is read, and `again` where it was read before.
fn label(expression: &mut Expression) {
    let mut order = Vec::new();
    readings(expression, expression.root().unwrap(), &mut HashSet::new(), &mut order);
    for (reader, at, label) in order {
        expression.nodes_mut()[reader.index()].inputs[at].label.get_or_insert(label);
    }
}

/// Goes through all inputs in the order of the text: whose, which, and what would be its label.
fn readings(
    expression: &Expression,
    reader: NodeId,
    seen: &mut HashSet<NodeId>,
    order: &mut Vec<(NodeId, usize, Box<str>)>,
) {
    for (at, argument) in expression[reader].inputs.iter().enumerate() {
        let node = &expression[argument.node];
        let is_first = seen.insert(argument.node);
        let label = match node.kind {
            _ if !is_first => "again".into(),
            NodeKind::Literal => "file".into(),
            _ => node.value.replace('/', "-").into(),
        };
        order.push((reader, at, label));
        if is_first {
            readings(expression, argument.node, seen, order);
        }
    }
}
