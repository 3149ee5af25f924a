//! Definitions: names that stand for expressions, and their nodes. A name is the node itself, which is shared.

use std::collections::HashMap;

use super::grammar::{NodeKind, RESOURCES};
use super::mistake::{Fault, Wrong};
use super::sweeps::RuleFile;
use super::{Expression, ExpressionInput, ExpressionNode};
use crate::name::InputName;
use crate::resources::Resource;
use crate::slice::WrittenSlice;
use crate::sweep::{FILES, NAMES, factor_label, is_sheet};
use crate::task::NodeId;

/// The positions of a file of a node, in bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct FilePlaces {
    pub(super) name: usize,
    pub(super) lines: Vec<usize>,
}

/// The number of a [`RawNode`].
pub(super) type RawNodeId = usize;

/// An input of a node: its label, if one is written, and the node that is read.
pub(super) type RawInput = (Option<Box<str>>, RawNodeId);

/// A node as it was read, before it is known what names stand for.
#[derive(Debug)]
pub(super) struct RawNode {
    /// The byte at which it begins.
    pub(super) at: usize,
    pub(super) kind: RawKind,
}

#[derive(Debug)]
pub(super) enum RawKind {
    Node {
        kind: NodeKind,
        value: Box<str>,
        files: Vec<(RuleFile, FilePlaces)>,
        inputs: Vec<RawInput>,
        outputs: Option<WrittenSlice>,
    },
    /// A name, and the outputs of its expression that it passes up.
    Name { name: Box<str>, outputs: Option<WrittenSlice> },
}

impl RawKind {
    /// A node that reads nothing.
    pub(super) const fn leaf(kind: NodeKind, value: Box<str>) -> Self {
        Self::Node { kind, value, files: Vec::new(), inputs: Vec::new(), outputs: None }
    }
}

impl RawNode {
    /// The mistake that a number stands at a byte where an input of a call is expected: its label and the inputs before it are these.
    /// A line of resources without quotes begins like an input with this label.
    pub(super) fn unquoted(
        at: usize,
        number: String,
        label: Option<&str>,
        inputs: &[RawInput],
        raw: &[Self],
    ) -> Wrong {
        let Some((Some(last), node)) = inputs.last().filter(|_| label.is_none()) else {
            let is_line = label == Some(RESOURCES);
            let fault = if is_line { Fault::UnquotedResource } else { Fault::Unquoted };
            return (at, fault(number));
        };
        match &raw[*node] {
            Self { at, kind: RawKind::Name { name, outputs: None } }
                if **last == *RESOURCES && Resource::of_word(name).is_some() =>
            {
                (*at, Fault::UnquotedResource(format!("{name} {number}")))
            }
            _ => (at, Fault::Unquoted(number)),
        }
    }
}

/// An expression with a name, as it was read.
#[derive(Debug)]
pub(super) struct DefinedExpression {
    pub(super) name: Box<str>,
    /// The byte at which it begins.
    pub(super) at: usize,
    pub(super) root: RawNodeId,
}

/// A name that stands for an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub name: Box<str>,
    /// The nodes of the definition: one for each slice with which it is named. There are none if nothing needs it.
    pub nodes: Vec<NodeId>,
    /// The ones that are named with a slice of it.
    pub parts: Vec<NodeId>,
}

impl Definition {
    /// A name of these nodes, each of which is whole.
    pub const fn new(name: Box<str>, nodes: Vec<NodeId>) -> Self {
        Self { name, nodes, parts: Vec::new() }
    }
}

/// The expression of a text, with its names resolved.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    pub(super) expression: Expression,
    pub(super) definitions: Vec<Definition>,
    /// The byte at which each node begins.
    pub(super) places: Vec<usize>,
    /// The positions of the files of nodes.
    pub(super) files: HashMap<NodeId, Vec<FilePlaces>>,
}

/// Resolves each name to a definition, or else to an input of the task or of a sweep. Nodes that the root does not need are left
/// out.
///
/// # Errors
///
/// Fails if a definition contains itself, has the name of something else, or passes up less than a slice asks for.
pub(super) fn resolve(
    raw: Vec<RawNode>,
    definitions: &[DefinedExpression],
    defined: &HashMap<Box<str>, usize>,
    inputs: &[InputName],
    root: RawNodeId,
) -> Result<Resolved, Wrong> {
    if let Some(it) =
        definitions.iter().find(|it| inputs.iter().any(|name| name.as_str() == &*it.name))
    {
        return Err((it.at, Fault::DefinedInput(it.name.to_string())));
    }
    let unneeded = definitions.iter().map(|it| Definition::new(it.name.clone(), Vec::new()));
    let mut resolver = Resolver {
        done: vec![None; raw.len()],
        raw,
        definitions,
        defined,
        sliced: HashMap::new(),
        resolved: Resolved { definitions: unneeded.collect(), ..Resolved::default() },
    };
    resolver.walk(root)?;
    Ok(resolver.resolved)
}

struct Resolver<'a> {
    raw: Vec<RawNode>,
    definitions: &'a [DefinedExpression],
    /// The number of the definition of each name.
    defined: &'a HashMap<Box<str>, usize>,
    /// The node that each raw node has become.
    done: Vec<Option<NodeId>>,
    /// The nodes of names with slices.
    sliced: HashMap<(NodeId, String), NodeId>,
    resolved: Resolved,
}

impl Resolver<'_> {
    /// Makes all nodes that the root needs, each after the nodes that it reads.
    fn walk(&mut self, root: RawNodeId) -> Result<(), Wrong> {
        let mut is_open = vec![false; self.raw.len()];
        let mut stack = vec![(root, 0)];
        is_open[root] = true;
        while let Some((id, next)) = stack.last_mut() {
            let id = *id;
            let Some(child) = self.child(id, *next) else {
                let node = self.node(id)?;
                self.done[id] = Some(node);
                is_open[id] = false;
                stack.pop();
                continue;
            };
            *next += 1;
            if self.done[child].is_some() {
                continue;
            }
            if std::mem::replace(&mut is_open[child], true) {
                // Only a name leads back.
                let names = stack.iter().rev().filter_map(|(id, _)| self.definition(*id));
                let own = names.map(|number| &self.definitions[number]).find(|it| it.root == child);
                let name = own.map(|it| it.name.to_string()).unwrap_or_default();
                return Err((self.raw[id].at, Fault::DefinedByItself(name)));
            }
            stack.push((child, 0));
        }
        Ok(())
    }

    /// The definition that a name is.
    fn definition(&self, id: RawNodeId) -> Option<usize> {
        match &self.raw[id].kind {
            RawKind::Name { name, .. } => self.defined.get(&**name).copied(),
            RawKind::Node { .. } => None,
        }
    }

    /// Returns a child of a raw node: an input by its number, or the root of the definition that a name stands for.
    fn child(&self, id: RawNodeId, number: usize) -> Option<RawNodeId> {
        match &self.raw[id].kind {
            RawKind::Node { inputs, .. } => inputs.get(number).map(|(_, input)| *input),
            RawKind::Name { .. } if number > 0 => None,
            RawKind::Name { .. } => Some(self.definitions[self.definition(id)?].root),
        }
    }

    /// Makes a node whose inputs are all made.
    fn node(&mut self, id: RawNodeId) -> Result<NodeId, Wrong> {
        let definition = self.definition(id);
        let at = self.raw[id].at;
        let empty = RawKind::leaf(NodeKind::Input, Box::default());
        match std::mem::replace(&mut self.raw[id].kind, empty) {
            RawKind::Node { kind, value, files, inputs, outputs } => {
                let (files, places): (Vec<_>, Vec<FilePlaces>) = files.into_iter().unzip();
                self.check_bound(&files, &places)?;
                let inputs = inputs.into_iter().filter_map(|(label, input)| {
                    Some(ExpressionInput { label, node: self.done[input]? })
                });
                let inputs = inputs.collect();
                let node = ExpressionNode { kind, value, files, inputs, outputs };
                Ok(self.push(at, node, places))
            }
            RawKind::Name { name, outputs } => match definition {
                Some(number) => self.named(at, number, outputs),
                None if outputs.is_some() => Err((at, Fault::OnePassedUp(name.into()))),
                None => {
                    let value = NodeKind::Input.value(&name);
                    let value = value.map_err(|error| (at, Fault::Name(error)))?;
                    let (kind, files, inputs) = (NodeKind::Input, Vec::new(), Vec::new());
                    let node = ExpressionNode { kind, value, files, inputs, outputs };
                    Ok(self.push(at, node, Vec::new()))
                }
            },
        }
    }

    fn push(&mut self, at: usize, node: ExpressionNode, places: Vec<FilePlaces>) -> NodeId {
        let id = self.resolved.expression.push(node);
        self.resolved.places.push(at);
        if !places.is_empty() {
            self.resolved.files.insert(id, places);
        }
        id
    }

    /// Returns the node of a definition, or a node that passes up the outputs that a slice chooses of it.
    fn named(
        &mut self,
        at: usize,
        number: usize,
        outputs: Option<WrittenSlice>,
    ) -> Result<NodeId, Wrong> {
        let DefinedExpression { name, root, .. } = &self.definitions[number];
        let Some(whole) = self.done[*root] else {
            return Err((at, Fault::DefinedByItself(name.to_string())));
        };
        let node = match outputs {
            None => whole,
            Some(slice) => {
                let key = (whole, slice.lines());
                match self.sliced.get(&key) {
                    Some(known) => *known,
                    None => {
                        let node = self.slice(at, name, whole, &slice)?;
                        self.sliced.insert(key, node);
                        node
                    }
                }
            }
        };
        let Definition { nodes, parts, .. } = &mut self.resolved.definitions[number];
        if !nodes.contains(&node) {
            nodes.push(node);
            parts.extend((node != whole).then_some(node));
        }
        Ok(node)
    }

    /// Makes a node that passes up some outputs of another one. It counts these nodes, and not all nodes that are made.
    fn slice(
        &mut self,
        at: usize,
        name: &str,
        whole: NodeId,
        slice: &WrittenSlice,
    ) -> Result<NodeId, Wrong> {
        let node = &self.resolved.expression[whole];
        if node.kind == NodeKind::All {
            return Err((at, Fault::SlicedAll(name.to_owned())));
        }
        if !node.kind.has_slice() {
            return Err((at, Fault::OnePassedUp(name.to_owned())));
        }
        let outputs = match &node.outputs {
            None => slice.clone(),
            Some(passed) => {
                slice.chosen_from(passed).map_err(|output| {
                    let texts = passed.texts().collect::<Vec<_>>().join(", ");
                    let is_number = output.bytes().all(|it| it.is_ascii_digit());
                    // Only the computation says which output a name is.
                    let fault = if passed.is_of_numbers() && !is_number {
                        let (name, passed) = (name.into(), texts.into());
                        Fault::NamedOfNumbers { name, passed, output: output.into() }
                    } else {
                        Fault::NotPassedUp { name: name.to_owned(), passed: texts, output }
                    };
                    (at, fault)
                })?
            }
        };
        let node = ExpressionNode { outputs: Some(outputs), ..node.clone() };
        let places = self.resolved.files.get(&whole).cloned().unwrap_or_default();
        Ok(self.push(at, node, places))
    }

    /// Checks that a sweep binds no name of a definition.
    fn check_bound(&self, files: &[RuleFile], places: &[FilePlaces]) -> Result<(), Wrong> {
        for (file, place) in files.iter().zip(places) {
            let names: Vec<&str> = match file.factor() {
                Some(factor) if is_sheet(factor) => {
                    file.rows.first().into_iter().flatten().map(|name| &**name).collect()
                }
                Some(factor) => factor_label(factor).into_iter().map(|(_, label)| label).collect(),
                None if *file.name == *NAMES || *file.name == *FILES => {
                    let lines = file.rows.iter().filter_map(|row| row.first());
                    // A line of files may have words behind the name.
                    lines.filter_map(|line| line.split_whitespace().next()).collect()
                }
                None => Vec::new(),
            };
            if let Some(name) = names.into_iter().find(|name| self.defined.contains_key(*name)) {
                return Err((place.name, Fault::BoundDefinition(name.to_owned())));
            }
        }
        Ok(())
    }
}
