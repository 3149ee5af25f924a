//! A drawing as a layered graph: every edge leads from one layer to the next, and each layer has an order with few crossings.
//!
//! Shapes stand in even layers, as late as their readers allow; the label of an arrow stands in
//! the odd layer before the reader, so nothing is ever written over anything else. The arrows of a
//! shape run together, in its trunk, until they part: a chain of n calls that all read the same
//! input needs n bends, not n².
//!
//! The initial order is the order of the expression, in which a tree has no crossings, and sweeps go to and
//! fro as long as crossings become fewer. Nothing is hashed and nothing recurses: the same graph
//! always has the same order, and no graph is too deep. Knows no sizes and no positions.

use std::cmp::Ordering;
use std::ops::Range;

use crate::drawing::Drawing;

/// More bends than this are not made: then no shape has a trunk, and long arrows may run through
/// boxes.
const MOST_BENDS: usize = 200_000;

/// A layered graph. Its vertices are the shapes, then the labels, then the bends of trunks.
#[derive(Debug)]
pub(super) struct Layers {
    /// The layer of every vertex.
    pub(super) layers: Vec<usize>,
    /// The number of the first label, which is the number of shapes.
    pub(super) labels: usize,
    /// The number of the first bend.
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
            // The number of bends that the arrow follows.
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
    // Readers stand after the nodes that they read, so a shape is final before it is read from.
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
    let mut trunks = Vec::with_capacity(lengths.len());
    for length in lengths {
        trunks.push(next..next + length);
        next += length;
    }
    trunks
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
    pub(super) fn list_for(&self, vertex: usize) -> &[usize] {
        &self.all[self.begins[vertex]..self.begins[vertex + 1]]
    }
}

/// The number of sweeps without an improvement after which the order is good enough.
const PATIENCE: usize = 8;
/// No order is swept more often than this.
const MOST_SWEEPS: usize = 40;
/// The largest number of times that a sweep looks for neighbours to swap.
const MOST_SWAPS: usize = 8;

/// The vertices of every layer in order.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// The layers.
    pub(super) rows: Vec<Vec<usize>>,
    /// The place of every vertex in its layer.
    pub(super) at: Vec<usize>,
}

impl Order {
    /// Finds an order with few crossings.
    pub(super) fn new(layers: &Layers) -> Self {
        let mut order = Self::first(layers);
        order.swap(layers);
        let mut best = order.clone();
        let (mut fewest, mut patience) = (best.crossings(layers), PATIENCE);
        for sweep in 0..MOST_SWEEPS {
            if fewest == 0 || patience == 0 {
                break;
            }
            order.sweep(layers, sweep % 2 == 0, sweep % 4 >= 2);
            order.swap(layers);
            let crossings = order.crossings(layers);
            patience -= 1;
            if crossings < fewest {
                best = order.clone();
                (fewest, patience) = (crossings, PATIENCE);
            }
        }
        best.turn(layers);
        best.sort_twins(layers);
        best
    }

    /// Puts labels that stand between the same two vertices in the order of their arrows.
    fn sort_twins(&mut self, layers: &Layers) {
        let is_label = layers.labels..layers.bends;
        for row in &mut self.rows {
            let ends =
                |label: usize| (layers.joins[label - layers.labels], layers.behind.list_for(label));
            let mut labels: Vec<usize> =
                row.iter().filter(|vertex| is_label.contains(vertex)).copied().collect();
            labels.sort_by_key(|label| (ends(*label), self.at[*label]));
            let mut places = Vec::new();
            for twins in labels.chunk_by_mut(|one, other| ends(*one) == ends(*other)) {
                places.clear();
                places.extend(twins.iter().map(|label| self.at[*label]));
                twins.sort_unstable();
                for (place, label) in places.iter().zip(twins) {
                    row[*place] = *label;
                    self.at[*label] = *place;
                }
            }
        }
    }

    /// Turns everything upside down if most readers then have their inputs in order.
    fn turn(&mut self, layers: &Layers) {
        let inputs = (0..layers.labels).map(|reader| layers.before.list_for(reader));
        let pairs = inputs.flat_map(|inputs| inputs.windows(2));
        let (mut right, mut wrong) = (0_usize, 0_usize);
        for pair in pairs {
            match self.at[pair[0]].cmp(&self.at[pair[1]]) {
                Ordering::Less => right += 1,
                Ordering::Equal | Ordering::Greater => wrong += 1,
            }
        }
        if wrong > right {
            for row in &mut self.rows {
                row.reverse();
                for (at, vertex) in row.iter().enumerate() {
                    self.at[*vertex] = at;
                }
            }
        }
    }

    /// The order in which one meets everything who reads the expression from its end.
    fn first(layers: &Layers) -> Self {
        let count = layers.layers.len();
        let height = layers.layers.iter().max().map_or(0, |last| last + 1);
        let (mut rows, mut at) = (vec![Vec::new(); height], vec![0; count]);
        let mut met = vec![false; count];
        let ends = (0..count).filter(|vertex| layers.behind.list_for(*vertex).is_empty());
        let mut waiting: Vec<usize> = ends.collect();
        waiting.reverse();
        while let Some(vertex) = waiting.pop() {
            if !std::mem::replace(&mut met[vertex], true) {
                let row = &mut rows[layers.layers[vertex]];
                at[vertex] = row.len();
                row.push(vertex);
                waiting.extend(layers.before.list_for(vertex).iter().rev());
            }
        }
        Self { rows, at }
    }

    /// Sorts every layer by the mean place of its neighbours on one side. Vertices with the same mean keep their order, or
    /// all reverse it: either may be better.
    fn sweep(&mut self, layers: &Layers, forward: bool, reverse: bool) {
        let height = self.rows.len();
        for step in 1..height {
            let (row, near, side) = if forward {
                (step, step - 1, &layers.before)
            } else {
                (height - 1 - step, height - step, &layers.behind)
            };
            let scale = self.rows[near].len() as f64 / self.rows[row].len() as f64;
            let mean = |vertex: usize| match side.list_for(vertex) {
                [] => self.at[vertex] as f64 * scale,
                near => {
                    near.iter().map(|near| self.at[*near]).sum::<usize>() as f64 / near.len() as f64
                }
            };
            let mut means: Vec<(f64, usize)> =
                self.rows[row].iter().map(|vertex| (mean(*vertex), *vertex)).collect();
            if reverse {
                means.reverse();
            }
            means.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (at, (_, vertex)) in means.iter().enumerate() {
                self.rows[row][at] = *vertex;
                self.at[*vertex] = at;
            }
        }
    }

    /// Swaps neighbours in a layer as long as that saves crossings.
    fn swap(&mut self, layers: &Layers) {
        for _ in 0..MOST_SWAPS {
            let mut improved = false;
            for row in 0..self.rows.len() {
                improved |= self.swap_in(layers, row);
            }
            if !improved {
                break;
            }
        }
    }

    fn swap_in(&mut self, layers: &Layers, row: usize) -> bool {
        let places = |vertex: usize| {
            [&layers.before, &layers.behind].map(|side| {
                let mut places: Vec<usize> =
                    side.list_for(vertex).iter().map(|v| self.at[*v]).collect();
                places.sort_unstable();
                places
            })
        };
        let mut row_places: Vec<[Vec<usize>; 2]> =
            self.rows[row].iter().map(|vertex| places(*vertex)).collect();
        let mut improved = false;
        for at in 1..row_places.len() {
            let [one, other] = [&row_places[at - 1], &row_places[at]];
            let now: usize = one.iter().zip(other).map(|(one, other)| inversions(one, other)).sum();
            let then: usize =
                one.iter().zip(other).map(|(one, other)| inversions(other, one)).sum();
            if then < now {
                row_places.swap(at - 1, at);
                self.rows[row].swap(at - 1, at);
                let [one, other] = [self.rows[row][at - 1], self.rows[row][at]];
                (self.at[one], self.at[other]) = (at - 1, at);
                improved = true;
            }
        }
        improved
    }

    /// Returns the number of pairs of edges that cross.
    fn crossings(&self, layers: &Layers) -> usize {
        let pairs = self.rows.windows(2);
        pairs.map(|pair| self.crossings_between(layers, &pair[0], pair[1].len())).sum()
    }

    /// Returns the number of pairs of edges from this layer to the next that cross: an edge crosses those that begin before it and
    /// end behind it. They are counted in a tree of partial sums.
    fn crossings_between(&self, layers: &Layers, row: &[usize], next: usize) -> usize {
        let mut sums = vec![0_usize; next + 1];
        let (mut crossings, mut seen) = (0, 0);
        for vertex in row {
            let ends = || layers.behind.list_for(*vertex).iter().map(|end| self.at[*end] + 1);
            for end in ends() {
                let (mut place, mut not_behind) = (end, 0);
                while place > 0 {
                    not_behind += sums[place];
                    place &= place - 1;
                }
                crossings += seen - not_behind;
            }
            for end in ends() {
                let mut place = end;
                while place <= next {
                    sums[place] += 1;
                    place += place & place.wrapping_neg();
                }
                seen += 1;
            }
        }
        crossings
    }
}

/// Returns the number of pairs of a place here and a smaller place there; both lists are sorted.
fn inversions(here: &[usize], there: &[usize]) -> usize {
    let (mut count, mut smaller) = (0, 0);
    for place in here {
        while there.get(smaller).map(|there| there.cmp(place)) == Some(Ordering::Less) {
            smaller += 1;
        }
        count += smaller;
    }
    count
}
