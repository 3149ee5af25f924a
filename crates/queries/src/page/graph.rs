//! The workflow behind results, as their records have it: results that were computed in the same way from the same kinds of
//! inputs are one shape.
//!
//! Two calls are of one shape if they are of one computation, and their inputs come from the same outputs of the same shapes. So
//! the calls of a sweep are one shape, regardless of their number, and there are no circles. Versions of a computation do not
//! count.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::calls::{PageValue, ValueOrigin};
use super::{PageCall, PageOutput, PageShape, PageTable};

/// Shapes, and arrows from shapes to later ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ResultGraph {
    /// The shapes, each after the shapes that it was made from.
    pub shapes: Vec<ResultShape>,
    /// The arrows between shapes that were read and those that were made.
    pub arrows: Vec<ResultArrow>,
}

/// The kind of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultShapeKind {
    /// Task inputs of one name.
    Input,
    /// Other task inputs, or files without a record.
    File,
    /// Calls or tables.
    Made,
    /// The outputs of jobs of one task.
    Output,
}

/// Results that were made in the same way.
#[derive(Debug, PartialEq, Eq)]
pub struct ResultShape {
    pub kind: ResultShapeKind,
    /// Their name.
    pub label: String,
    /// The numbers of the calls among them.
    pub calls: Vec<usize>,
    /// The number of the results.
    pub all: usize,
    /// The number of present results.
    pub there: usize,
}

/// An arrow from a shape to a shape that was made from it.
#[derive(Debug, PartialEq, Eq)]
pub struct ResultArrow {
    /// The place of the shape that was read.
    pub from: usize,
    /// The place of the shape that was made; it is greater.
    pub to: usize,
    /// The names of its inputs.
    pub label: String,
}

/// The properties that are equal for results of one shape.
#[derive(PartialEq, Eq, Hash)]
enum ShapeKey {
    Leaf(ResultShapeKey),
    /// The computation, and for each input its shape and its number among the outputs of that.
    Call(String, Vec<(usize, usize)>),
    Table(BTreeSet<usize>),
    Output(String, BTreeSet<usize>),
}

#[derive(PartialEq, Eq, Hash)]
enum ResultShapeKey {
    Input(String),
    File(String),
}

/// Makes a graph.
struct GraphBuilder<'a> {
    calls: &'a [PageCall],
    tables: &'a [PageTable],
    places: HashMap<ShapeKey, usize>,
    /// The shapes of calls and tables that have one.
    known: HashMap<ValueOrigin, usize>,
    graph: ResultGraph,
}

impl ResultGraph {
    pub(super) fn new(calls: &[PageCall], tables: &[PageTable], outputs: &[PageOutput]) -> Self {
        let (places, known, graph) = Default::default();
        let mut builder = GraphBuilder { calls, tables, places, known, graph };
        // The oldest call comes first, so that the drawing does not depend on later calls.
        let all = (0..calls.len()).rev().map(ValueOrigin::Call);
        for origin in all.chain((0..tables.len()).rev().map(ValueOrigin::Table)) {
            builder.add_with_origins(origin);
        }
        builder.add_outputs(outputs);
        let mut graph = builder.graph;
        graph.shapes.iter_mut().for_each(ResultShape::count);
        graph
    }

    /// The shapes as they are on a page.
    pub(super) fn shapes(&self) -> Vec<PageShape> {
        let shapes = self.shapes.iter();
        shapes.map(|it| PageShape { label: it.label.clone(), calls: it.calls.clone() }).collect()
    }
}

impl ResultShape {
    /// Adds to the label how many they are.
    fn count(&mut self) {
        self.calls.sort_unstable();
        let Self { all, there, .. } = *self;
        if all > 1 {
            let count = if there < all { format!("{there} of {all}") } else { all.to_string() };
            self.label = format!("{}: {count}", self.label);
        }
    }
}

impl GraphBuilder<'_> {
    /// Adds a call or table after all its origins. Keeps its own stack: the chain may be long.
    fn add_with_origins(&mut self, origin: ValueOrigin) {
        let mut stack = vec![(origin, false)];
        // A result that is reached again before it is added was made from itself, if records lie.
        let mut begun = HashSet::new();
        while let Some((origin, is_ready)) = stack.pop() {
            if is_ready {
                self.add(origin);
                continue;
            }
            if self.known.contains_key(&origin) || !begun.insert(origin) {
                continue;
            }
            stack.push((origin, true));
            let needed: Vec<ValueOrigin> = match origin {
                ValueOrigin::Call(call) => {
                    self.calls[call].inputs.iter().filter_map(|input| input.from).collect()
                }
                ValueOrigin::Table(table) => self.tables[table].made_from.iter().copied().collect(),
                ValueOrigin::Input(_) => Vec::new(),
            };
            let made = needed.into_iter().filter(|it| !matches!(it, ValueOrigin::Input(_)));
            stack.extend(made.map(|it| (it, false)));
        }
    }

    fn add(&mut self, origin: ValueOrigin) {
        match origin {
            ValueOrigin::Call(number) => {
                let call = &self.calls[number];
                let inputs: Vec<(usize, usize, &str)> = call
                    .inputs
                    .iter()
                    .map(|input| (self.shape_of(input), input.number, &*input.name))
                    .collect();
                let key = inputs.iter().map(|(shape, number, _)| (*shape, *number)).collect();
                let key = ShapeKey::Call(call.computation.clone(), key);
                let (place, is_new) =
                    self.place(key, ResultShapeKind::Made, || call.computation.clone());
                if is_new {
                    let mut labels: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
                    inputs.iter().for_each(|(shape, _, name)| {
                        labels.entry(*shape).or_default().push(name);
                    });
                    for (from, names) in labels {
                        let label = names.join(", ");
                        self.graph.arrows.push(ResultArrow { from, to: place, label });
                    }
                }
                let shape = &mut self.graph.shapes[place];
                shape.calls.push(number);
                shape.all += 1;
                shape.there += usize::from(call.is_there());
                self.known.insert(origin, place);
            }
            ValueOrigin::Table(number) => {
                let made_from = self.tables[number].made_from.clone();
                let from: BTreeSet<usize> =
                    made_from.into_iter().map(|it| self.shape_of_origin(it)).collect();
                let key = ShapeKey::Table(from.clone());
                let place = self.add_joined(key, from, ResultShapeKind::Made, "TABLE");
                self.known.insert(origin, place);
            }
            ValueOrigin::Input(_) => {}
        }
    }

    /// Adds the outputs of jobs. Outputs of a task with the same origins are one shape.
    fn add_outputs(&mut self, outputs: &[PageOutput]) {
        let mut jobs: BTreeMap<(&str, &str), Vec<&PageValue>> = BTreeMap::new();
        for output in outputs {
            jobs.entry((&output.task, &output.of)).or_default().push(&output.value);
        }
        for ((task, _), values) in jobs {
            let from: BTreeSet<usize> =
                values.into_iter().map(|value| self.shape_of(value)).collect();
            let label =
                if task.is_empty() { "OUTPUT".to_owned() } else { format!("OUTPUT {task}") };
            let key = ShapeKey::Output(task.to_owned(), from.clone());
            self.add_joined(key, from, ResultShapeKind::Output, &label);
        }
    }

    /// Adds a result that was made from many of a kind.
    fn add_joined(
        &mut self,
        key: ShapeKey,
        from: BTreeSet<usize>,
        kind: ResultShapeKind,
        label: &str,
    ) -> usize {
        let (place, is_new) = self.place(key, kind, || label.to_owned());
        if is_new {
            for from in from {
                self.graph.arrows.push(ResultArrow { from, to: place, label: String::new() });
            }
        }
        let shape = &mut self.graph.shapes[place];
        shape.all += 1;
        shape.there += 1;
        place
    }

    /// The shape of the file that was read.
    fn shape_of(&mut self, value: &PageValue) -> usize {
        match value.from.and_then(|origin| self.known.get(&origin)) {
            Some(place) => *place,
            None => self.leaf(match &value.role {
                Some(name) => ResultShapeKey::Input(name.clone()),
                None => ResultShapeKey::File(value.name.clone()),
            }),
        }
    }

    fn shape_of_origin(&mut self, origin: ValueOrigin) -> usize {
        let known = self.known.get(&origin).copied();
        known.unwrap_or_else(|| self.leaf(ResultShapeKey::File(String::new())))
    }

    fn leaf(&mut self, key: ResultShapeKey) -> usize {
        let (kind, label) = match &key {
            ResultShapeKey::Input(name) => (ResultShapeKind::Input, format!("INPUT {name}")),
            ResultShapeKey::File(name) => (ResultShapeKind::File, format!("FILE {name}")),
        };
        let (place, is_new) = self.place(ShapeKey::Leaf(key), kind, || label);
        if is_new {
            self.graph.shapes[place].all = 1;
            self.graph.shapes[place].there = 1;
        }
        place
    }

    /// The place of a shape, and whether that is new.
    fn place(
        &mut self,
        key: ShapeKey,
        kind: ResultShapeKind,
        label: impl FnOnce() -> String,
    ) -> (usize, bool) {
        if let Some(place) = self.places.get(&key) {
            return (*place, false);
        }
        let place = self.graph.shapes.len();
        self.places.insert(key, place);
        let (calls, all, there) = (Vec::new(), 0, 0);
        self.graph.shapes.push(ResultShape { kind, label: label(), calls, all, there });
        (place, true)
    }
}
