//! The inputs and outputs of nodes, and the labels that follow from them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::grammar::NodeKind;
use super::{Expression, ExpressionNode};
use crate::sweep::{SWEEP_INPUTS, SWEEP_OUTPUTS};
use crate::task::{MEMBER_INPUTS, NodeId, TREE_INPUTS, TREE_OUTPUTS, VALUE};

/// The inputs and outputs of a computation, as far as they are known.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// The names of its inputs.
    pub inputs: Option<Vec<String>>,
    /// The names of its outputs.
    pub outputs: Option<Vec<String>>,
}

/// The computations that are known, by their names.
pub type Signatures = BTreeMap<String, Signature>;

/// The longest label that is made up, in bytes.
const LONGEST_LABEL: usize = 100;

/// Takes all labels out of an expression that it would have without them.
pub fn drop_default_labels(expression: &mut Expression, signatures: &Signatures) {
    for id in (0..expression.nodes.len()).map(NodeId::at) {
        let mut filled = 0;
        for at in 0..expression[id].inputs.len() {
            let argument = &expression[id].inputs[at];
            let width = places(expression, id, argument.node, signatures).unwrap_or(1);
            let reader = signature(&expression[id], signatures);
            let label = default_label(&expression[argument.node], reader.as_deref(), filled, width);
            if argument.label.as_deref() == Some(&label) {
                expression.nodes[id.index()].inputs[at].label = None;
            }
            filled += width;
        }
    }
}

/// The names of the files that a node passes up; `None` if they are unknown.
pub(super) fn passed_names(node: &ExpressionNode, signatures: &Signatures) -> Option<Vec<String>> {
    let made = match node.kind {
        NodeKind::Computation => signature(node, signatures)?.outputs.clone()?,
        NodeKind::Tree => names(&TREE_OUTPUTS)?,
        NodeKind::Sweep => names(&SWEEP_OUTPUTS)?,
        _ => names(&[VALUE])?,
    };
    let numbers = match (&node.outputs, node.kind) {
        (Some(slice), _) => slice.resolve(&made).0.numbers().map(usize::from).collect(),
        (None, NodeKind::Computation) => Vec::from_iter(0..made.len()),
        (None, _) => vec![0],
    };
    numbers
        .into_iter()
        .map(|number| Some(made.get(number)?.trim_end_matches('/').to_owned()))
        .collect()
}

/// How many files a node passes up; `None` if that is unknown.
pub(super) fn width(expression: &Expression, id: NodeId, signatures: &Signatures) -> Option<usize> {
    let node = &expression[id];
    match &node.outputs {
        Some(outputs) => Some(outputs.len()),
        None if node.kind == NodeKind::Computation => {
            Some(signature(node, signatures)?.outputs.as_ref()?.len())
        }
        None => Some(1),
    }
}

/// How many inputs of its reader a node fills; `None` if that is unknown. A body may pass up any number of files.
pub(super) fn places(
    expression: &Expression,
    reader: NodeId,
    id: NodeId,
    signatures: &Signatures,
) -> Option<usize> {
    match expression[reader].kind {
        NodeKind::Sweep => Some(1),
        _ => width(expression, id, signatures),
    }
}

fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

/// Returns the known inputs and outputs of a node.
pub(super) fn signature<'a>(
    node: &ExpressionNode,
    signatures: &'a Signatures,
) -> Option<Cow<'a, Signature>> {
    match node.kind {
        NodeKind::Computation => signatures.get(&*node.value).map(Cow::Borrowed),
        NodeKind::Tree => {
            let inputs = TREE_INPUTS.iter().take(node.inputs.len());
            let inputs = Some(inputs.map(|name| (*name).to_owned()).collect());
            Some(Cow::Owned(Signature { inputs, outputs: names(&TREE_OUTPUTS) }))
        }
        NodeKind::Member => {
            let inputs = Some(MEMBER_INPUTS.map(str::to_owned).into());
            Some(Cow::Owned(Signature { inputs, outputs: names(&[VALUE]) }))
        }
        NodeKind::Sweep => {
            let inputs = SWEEP_INPUTS.iter().take(node.inputs.len());
            let inputs = Some(inputs.map(|name| (*name).to_owned()).collect());
            Some(Cow::Owned(Signature { inputs, outputs: names(&SWEEP_OUTPUTS) }))
        }
        NodeKind::Input | NodeKind::Literal | NodeKind::File | NodeKind::Points => None,
    }
}

/// The label that an input has if none is written: the names of the inputs that it fills.
pub(super) fn default_label(
    node: &ExpressionNode,
    reader: Option<&Signature>,
    first: usize,
    width: usize,
) -> String {
    let names = reader.and_then(|signature| signature.inputs.as_ref());
    let names = names.and_then(|names| names.get(first..first + width));
    let label = match (names, node.kind) {
        (Some(names), _) => names.join("-"),
        (None, NodeKind::Literal | NodeKind::File) => "file".to_owned(),
        (None, _) => node.value.to_string(),
    };
    let label = label.replace(|c: char| c == '/' || c.is_control(), "-");
    let end = (0..=LONGEST_LABEL.min(label.len())).rev().find(|at| label.is_char_boundary(*at));
    label[..end.unwrap_or_default()].to_owned()
}
