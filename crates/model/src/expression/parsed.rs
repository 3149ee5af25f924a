//! A text that was read, and where in it each part stands.

use std::collections::HashMap;

use super::definitions::FilePlaces;
use super::mistake::{Fault, Mistake, Position};
use super::sweeps::{file_number, unreadable};
use super::{Text, TextPlace};
use crate::task::NodeId;

/// A text, and where its nodes stand.
#[derive(Debug)]
pub struct Parsed<'a> {
    /// The result of parsing.
    pub text: Text,
    /// The names of all files in the storage that the text holds, whether or not the workflow needs them.
    pub literals: Vec<Box<str>>,
    pub(super) source: &'a str,
    /// The byte at which each line ends.
    pub(super) line_ends: Vec<usize>,
    /// The byte at which each input of the task is named.
    pub(super) inputs: Vec<usize>,
    /// The byte at which each definition begins.
    pub(super) definitions: Vec<usize>,
    /// The byte at which each node begins.
    pub(super) places: Vec<usize>,
    /// The positions of the files of nodes.
    pub(super) files: HashMap<NodeId, Vec<FilePlaces>>,
}

impl Parsed<'_> {
    /// The mistake of a file of a node, or of a line in it, which is counted from one; zero is the whole file.
    pub fn mistake_of_file(&self, node: NodeId, file: &str, line: usize, fault: Fault) -> Mistake {
        let number = file_number(&self.text.expression[node].files, file);
        self.mistake_at(TextPlace { node, file: number.map(|number| (number, line)) }, fault)
    }

    /// The mistake of a place in a node.
    pub(super) fn mistake_at(&self, place: TextPlace, fault: Fault) -> Mistake {
        // The lines of a file have other numbers in the text.
        let fault = match fault.same_line() {
            Some(line) => {
                let same = TextPlace { file: place.file.map(|(file, _)| (file, line)), ..place };
                Fault::SameRow(Position::of(self.source, self.byte(same)))
            }
            None => fault,
        };
        Mistake::at(self.source, self.byte(place), fault)
    }

    /// The mistakes of all that would not be read as it is written, since it has a line of a file: names, outputs, levels and rows.
    pub fn unreadable(&self) -> Vec<Mistake> {
        let mut wrong = Vec::new();
        for (at, node) in self.text.expression.nodes().iter().enumerate() {
            let place = TextPlace::of(NodeId::at(at));
            wrong.extend(node.odd_lines().into_iter().map(|line| (place, Fault::Line(line))));
            let files = unreadable(&node.files).into_iter();
            wrong.extend(
                files.map(|(file, fault)| (TextPlace { file: Some(file), ..place }, fault)),
            );
        }
        wrong.sort_by_key(|(place, _)| self.byte(*place));
        wrong.into_iter().map(|(place, fault)| self.mistake_at(place, fault)).collect()
    }

    /// Returns the position at which a node begins.
    pub fn position(&self, node: NodeId) -> Position {
        let byte = self.byte(TextPlace::of(node));
        let line = self.line_of(byte);
        let start = line.checked_sub(2).and_then(|before| self.line_ends.get(before));
        let start = start.map_or(0, |end| end + 1);
        Position { line, column: 1 + self.source[start..byte].chars().count() }
    }

    /// Returns the positions at which nodes begin, in the order of the nodes. Takes one pass over the text, however long its lines
    /// are.
    pub fn positions(&self) -> Vec<Position> {
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_unstable_by_key(|node| self.places[*node]);
        let mut positions = vec![Position { line: 1, column: 1 }; order.len()];
        let (mut at, mut position) = (0, Position { line: 1, column: 1 });
        for node in order {
            let before = &self.source[at..self.places[node]];
            at = self.places[node];
            if let Some(newline) = before.rfind('\n') {
                position.line += before.matches('\n').count();
                position.column = 1 + before[newline + 1..].chars().count();
            } else {
                position.column += before.chars().count();
            }
            positions[node] = position;
        }
        positions
    }

    /// The line of a file of a node, or of a line in it, which is counted from one; zero is the whole file.
    pub fn line_of_file(&self, node: NodeId, file: &str, line: usize) -> usize {
        let files = &self.text.expression[node].files;
        let number = files.iter().position(|it| *it.name == *file);
        let file = number.map(|number| (number, line));
        self.line_of(self.byte(TextPlace { node, file }))
    }

    /// The line in which an input of the task is named, by its number.
    pub fn line_of_input(&self, number: usize) -> usize {
        self.line_of(self.inputs.get(number).copied().unwrap_or_default())
    }

    /// The line in which a definition begins, by its number.
    pub fn line_of_definition(&self, number: usize) -> usize {
        self.line_of(self.definitions.get(number).copied().unwrap_or_default())
    }

    fn line_of(&self, byte: usize) -> usize {
        1 + self.line_ends.partition_point(|end| *end < byte)
    }

    /// The byte at which a place begins.
    pub(super) fn byte(&self, place: TextPlace) -> usize {
        let node = self.places.get(place.node.index()).copied().unwrap_or_default();
        let Some((file, line)) = place.file else { return node };
        let file = self.files.get(&place.node).and_then(|files| files.get(file));
        let Some(file) = file else { return node };
        let line = line.checked_sub(1).and_then(|line| file.lines.get(line));
        line.copied().unwrap_or(file.name)
    }
}
