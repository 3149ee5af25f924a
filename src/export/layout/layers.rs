//! A drawing as a layered graph: every edge leads from one layer to the next.
//!
//! Shapes stand in even layers, as late as their readers allow; the label of an arrow stands in
//! the odd layer before the reader, so nothing is ever written over anything else. The arrows of a
//! shape run together, in its trunk, until they part: a chain of n calls that all read the same
//! input needs n bends, not n². Knows no sizes and no places.

use std::ops::Range;

use crate::export::drawing::Drawing;

/// More bends than this are not made: then no shape has a trunk, and long arrows may run through
/// boxes.
const MOST_BENDS: usize = 200_000;

/// A layered graph. Its vertices are the shapes, then the labels, then the bends of trunks.
#[derive(Debug)]
pub(super) struct Layers {
    /// The layer of every vertex.
    pub(super) layers: Vec<usize>,
    /// Where the labels begin: how many shapes there are.
    pub(super) labels: usize,
    /// Where the bends begin.
    pub(super) bends: usize,
    /// For every vertex, the vertices in the layer before it that lead to it.
    pub(super) before: Neighbours,
    /// For every vertex, the vertices in the layer behind it that it leads to.
    pub(super) behind: Neighbours,
    /// For every shape, the bends of its trunk: one in each layer after its own.
    pub(super) trunks: Vec<Range<usize>>,
    /// For every arrow, the vertex at which it leaves the shape or its trunk.
    pub(super) joins: Vec<usize>,
}

impl Layers {
    /// Finds a layer for everything in a drawing, in time linear in what there is to place.
    pub(super) fn new(drawing: &Drawing) -> Self {
        let (shapes, arrows) = (drawing.shapes.len(), &drawing.arrows);
        let mut layers = shape_layers(drawing);
        for arrow in arrows {
            layers.push(layers[arrow.to] - 1);
        }
        let trunks = trunks(drawing, &layers);
        for (shape, trunk) in trunks.iter().enumerate() {
            let first = layers[shape] + 1;
            layers.extend(first..first + trunk.len());
        }
        let mut edges = Vec::with_capacity(layers.len() + arrows.len());
        for (shape, trunk) in trunks.iter().enumerate() {
            let before = std::iter::once(shape).chain(trunk.clone());
            edges.extend(before.zip(trunk.clone()));
        }
        let mut joins = Vec::with_capacity(arrows.len());
        for (at, arrow) in arrows.iter().enumerate() {
            let label = shapes + at;
            // How many bends the arrow follows.
            let along = (layers[label] - layers[arrow.from] - 1).min(trunks[arrow.from].len());
            let join = match along {
                0 => arrow.from,
                along => trunks[arrow.from].start + along - 1,
            };
            joins.push(join);
            if layers[join] + 1 == layers[label] {
                edges.push((join, label));
            }
            edges.push((label, arrow.to));
        }
        let count = layers.len();
        let edges = edges.iter().copied();
        Self {
            layers,
            labels: shapes,
            bends: shapes + arrows.len(),
            before: Neighbours::new(count, edges.clone().map(|(from, to)| (to, from))),
            behind: Neighbours::new(count, edges),
            trunks,
            joins,
        }
    }
}

/// The layer of every shape: as far from the last as its longest way to an end asks for.
fn shape_layers(drawing: &Drawing) -> Vec<usize> {
    let mut behind = vec![0_usize; drawing.shapes.len()];
    // Readers stand after what they read, so a shape is final before it is read from.
    for arrow in drawing.arrows.iter().rev() {
        behind[arrow.from] = behind[arrow.from].max(behind[arrow.to] + 1);
    }
    let most = behind.iter().max().copied().unwrap_or(0);
    behind.iter().map(|behind| 2 * (most - behind)).collect()
}

/// The bends of every shape's trunk: as many as its longest arrow needs.
fn trunks(drawing: &Drawing, layers: &[usize]) -> Vec<Range<usize>> {
    let mut lengths = vec![0; drawing.shapes.len()];
    for arrow in &drawing.arrows {
        let length = layers[arrow.to] - layers[arrow.from] - 2;
        lengths[arrow.from] = lengths[arrow.from].max(length);
    }
    if lengths.iter().sum::<usize>() > MOST_BENDS {
        lengths.fill(0);
    }
    let mut next = layers.len();
    let trunk = |length: &usize| {
        let first = next;
        next += length;
        first..next
    };
    lengths.iter().map(trunk).collect()
}

/// For every vertex what belongs to it: one list, and where each vertex's part begins.
#[derive(Debug)]
pub(super) struct Neighbours {
    begins: Vec<usize>,
    all: Vec<usize>,
}

impl Neighbours {
    /// Sorts pairs of a vertex and what belongs to it; the order of the latter is kept.
    pub(super) fn new(count: usize, pairs: impl Iterator<Item = (usize, usize)> + Clone) -> Self {
        let mut begins = vec![0; count + 1];
        for (vertex, _) in pairs.clone() {
            begins[vertex + 1] += 1;
        }
        for at in 1..begins.len() {
            begins[at] += begins[at - 1];
        }
        let mut next = begins.clone();
        let mut all = vec![0; begins[count]];
        for (vertex, neighbour) in pairs {
            all[next[vertex]] = neighbour;
            next[vertex] += 1;
        }
        Self { begins, all }
    }

    /// The facts of a vertex.
    pub(super) fn of(&self, vertex: usize) -> &[usize] {
        &self.all[self.begins[vertex]..self.begins[vertex + 1]]
    }
}
