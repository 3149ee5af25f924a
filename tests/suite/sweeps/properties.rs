//! Properties of every sweep, tried on many that are made up.
//!
//! A sweep is compared with plain tasks: its body with literals in place of names, for one point after the other. Only
//! plans are compared, so nothing is executed. The cases cover one or two factors, some of them zipped, up to three levels,
//! patterns that are left out, replicates, up to two sweeps in the body that read names of those around them, columns that
//! are written or not, and names in values, in inputs and in names of computations. `CE_SEED` and `CE_TIMES` choose
//! others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

use compeval::load;
use compeval::load::Uncommitted;
use compeval::plan::{Derivation, Operation, Plan, PlannedSweepId, Source};
use compeval::task::Task;

use super::made_up::{Body, LEVELS, MadeUp, Point, lab, made_up};
use crate::generator::{Random, seeds};
use crate::lab::Lab;
use crate::lisp;
use crate::properties::Case;

/// The calls that a task would execute, and the outputs that it passes up: as expressions of inputs and literals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Planned {
    calls: BTreeSet<String>,
    outputs: Vec<String>,
}

/// Plans tasks, each text once.
struct Planner {
    lab: Lab,
    known: HashMap<String, Planned>,
    /// The tables for which literals stand in plain tasks.
    tables: Vec<String>,
}

impl Planner {
    fn new() -> Self {
        Self { lab: lab(), known: HashMap::new(), tables: Vec::new() }
    }

    /// Plans an expression.
    fn plan(&mut self, text: &str) -> Planned {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        drop(fs::remove_dir_all(self.lab.path("task/workflow")));
        lisp::write(&self.lab.path("task"), &lisp::text(&format!("Inputs: 'x'\n{text}")));
        let task = load::task(&self.lab.path("task"), Uncommitted::Ignore, None);
        let task = task.unwrap_or_else(|error| panic!("{error:?} in\n{text}")).task;
        let plan = Plan::new(&task);
        let symbols = Symbols { task: &task, plan: &plan, tables: &self.tables };
        let calls = plan.calls().filter(|(call, _)| plan.computation(*call).is_some());
        let calls: Vec<String> =
            calls.map(|(call, _)| symbols.symbol_for(Source::Output { call, number: 0 })).collect();
        let outputs = plan.outputs().iter().map(|source| symbols.symbol_for(*source)).collect();
        let planned = Planned { calls: calls.iter().cloned().collect(), outputs };
        assert_eq!(planned.calls.len(), calls.len(), "each call is planned once\n{text}");
        self.known.insert(text.to_owned(), planned.clone());
        planned
    }

    /// Plans the body of a sweep at one point, without any sweep.
    fn plain(&mut self, body: &Body, texts: &Point) -> Planned {
        let mut inner = BTreeSet::new();
        let text = body.text_with(&mut |leaf| match leaf {
            Body::Name(name) => format!("FILE('by hand/text {}')", texts[name]),
            Body::Sweep(sweep) => {
                let Planned { calls, outputs } = self.point_by_point(sweep, texts);
                inner.extend(calls);
                self.tables.extend(outputs);
                format!("FILE('by hand/table {}')", self.tables.len() - 1)
            }
            other => other.text(),
        });
        let braces =
            |text: String, (name, to): (&String, &String)| text.replace(&format!("{{{name}}}"), to);
        let mut planned = self.plan(&texts.iter().fold(text, braces));
        planned.calls.extend(inner);
        planned
    }

    /// Plans a sweep point by point, within others that bind these texts.
    fn point_by_point(&mut self, sweep: &MadeUp, around: &Point) -> Planned {
        self.at_points(sweep, around, &sweep.points())
    }

    fn at_points(&mut self, sweep: &MadeUp, around: &Point, points: &[Point]) -> Planned {
        let (mut calls, mut rows) = (BTreeSet::new(), Vec::new());
        for point in points {
            let texts = around.clone().into_iter().chain(point.clone()).collect();
            let plain = self.plain(&sweep.body, &texts);
            calls.extend(plain.calls);
            rows.push(row(point, &sweep.columns(), &plain.outputs));
        }
        Planned { calls, outputs: vec![rows.join("\n")] }
    }
}

/// A row of a table.
fn row(point: &Point, columns: &[String], outputs: &[String]) -> String {
    let cells = columns.iter().zip(outputs).collect::<Vec<_>>();
    format!("{point:?} {cells:?}")
}

/// Writes sources as expressions.
struct Symbols<'a> {
    task: &'a Task,
    plan: &'a Plan,
    tables: &'a [String],
}

impl Symbols<'_> {
    fn symbol_for(&self, source: Source) -> String {
        let Self { task, plan, .. } = self;
        match source {
            Source::Input(input) => task.inputs[input.index()].to_string(),
            Source::Literal(literal) => self.literal(plan.literals()[literal.index()].as_str()),
            Source::Output { call, number } => match plan.call(call).operation {
                Operation::Computation(id) => {
                    let inputs = plan.inputs(call).iter().map(|source| self.symbol_for(*source));
                    let name = &task.computations[id.index()].name;
                    format!("{name}({})[{number}]", inputs.collect::<Vec<_>>().join(" "))
                }
                Operation::Sweep(sweep) => self.table(sweep),
            },
            Source::Derived { value, .. } => match &plan.value(value).how {
                Derivation::Text { contents, .. } => {
                    self.literal(&format!("by hand/text {}", contents.trim_end()))
                }
                Derivation::Literal(name) => self.literal(name.as_str()),
                other => panic!("{other:?}"),
            },
            Source::File(_) => panic!("no file of the task is read"),
        }
    }

    fn literal(&self, name: &str) -> String {
        match name.strip_prefix("by hand/table ") {
            Some(number) => self.tables[number.parse::<usize>().unwrap()].clone(),
            None => name.to_owned(),
        }
    }

    fn table(&self, id: PlannedSweepId) -> String {
        let sweep = self.plan.sweep(id);
        let columns = self.task.sweeps[sweep.sweep.index()].columns.iter();
        let columns: Vec<String> = columns.map(|it| it.shape.text().to_owned()).collect();
        let rows = sweep.rows().unwrap().iter().map(|(point, sources)| {
            let texts = point.values().map(|(name, text)| (name.to_owned(), text.to_string()));
            let outputs: Vec<String> =
                sources.iter().map(|source| self.symbol_for(*source)).collect();
            row(&texts.collect(), &columns, &outputs)
        });
        rows.collect::<Vec<_>>().join("\n")
    }
}

/// Tries something on this number of sweeps.
fn try_on(count: u64, property: impl Fn(&mut Planner, &MadeUp, &mut Random)) {
    let mut planner = Planner::new();
    for seed in seeds(count) {
        let mut random = Random::new(seed);
        let sweep = made_up(&mut random);
        let _case = Case(seed, sweep.text());
        property(&mut planner, &sweep, &mut random);
    }
}

#[test]
fn a_sweep_is_its_body_point_by_point() {
    try_on(12, |planner, sweep, _| {
        let expected = planner.point_by_point(sweep, &Point::new());
        assert_eq!(planner.plan(&sweep.text()), expected);
    });
}

#[test]
fn other_orders_of_levels_and_factors_change_no_call_and_no_row() {
    try_on(12, |planner, sweep, random| {
        let mut other = sweep.clone();
        shuffle(&mut other.factors, random);
        other.factors.iter_mut().for_each(|factor| shuffle(&mut factor.rows, random));
        let [one, other] = [sweep, &other].map(|sweep| planner.plan(&sweep.text()));
        assert_eq!(one.calls, other.calls);
        let rows = |planned: &Planned| {
            let mut rows: Vec<String> = planned.outputs[0].lines().map(str::to_owned).collect();
            rows.sort_unstable();
            rows
        };
        assert_eq!(rows(&one), rows(&other));
    });
}

fn shuffle<T>(all: &mut [T], random: &mut Random) {
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
}

#[test]
fn a_growing_sweep_keeps_its_calls_and_adds_calls_of_new_points() {
    try_on(12, |planner, sweep, random| {
        let mut grown = sweep.clone();
        match &mut grown.replicates {
            Some(replicates) if random.below(2) == 0 => *replicates += 1,
            _ => {
                let at = random.below(grown.factors.len());
                let factor = &mut grown.factors[at];
                let mut row = factor.rows[0].clone();
                LEVELS[LEVELS.len() - 1].clone_into(&mut row[0]);
                factor.rows.insert(random.below(factor.rows.len() + 1), row);
            }
        }
        let before = sweep.points();
        let new: Vec<Point> =
            grown.points().into_iter().filter(|point| !before.contains(point)).collect();
        let expected = planner.at_points(sweep, &Point::new(), &new).calls;
        let [old, grown] = [sweep, &grown].map(|sweep| planner.plan(&sweep.text()).calls);
        assert!(old.is_subset(&grown), "no call is lost");
        let added: BTreeSet<&String> = grown.difference(&old).collect();
        assert_eq!(added, expected.difference(&old).collect());
    });
}

#[test]
fn a_sweep_of_one_point_is_its_body() {
    try_on(12, |planner, sweep, random| {
        let points = sweep.points();
        let point = points[random.below(points.len())].clone();
        let mut one = sweep.clone();
        one.exclude.clear();
        for factor in &mut one.factors {
            factor.rows = vec![factor.names.iter().map(|name| point[name].clone()).collect()];
        }
        one.replicates = one.replicates.map(|_| 1);
        let mut point: BTreeMap<_, _> = point;
        point.entry("replicate".to_owned()).and_modify(|number| "1".clone_into(number));
        let plain = planner.plain(&sweep.body, &point);
        let planned = planner.plan(&one.text());
        assert_eq!(planned.calls, plain.calls);
        assert_eq!(planned.outputs, [row(&point, &sweep.columns(), &plain.outputs)]);
    });
}
