//! The points at which calls occur.

use std::collections::HashMap;

use super::{CallId, Plan, Planned, PlannedSweep, PlannedSweepId, PointOfSweep};
use crate::task::points::SweepPoints;
use crate::task::sweep::BoundId;
use crate::task::workflow::{NodeId, Task};

impl Plan {
    /// The names that sweeps bind and a call depends on, with their texts at the first point at which the call occurs. Those
    /// of outer sweeps come first, and those of a sweep in the order of its columns. Empty if it depends on no point.
    pub fn point<'a>(&'a self, task: &'a Task, call: CallId) -> Vec<(&'a str, &'a str)> {
        let Planned { node, point, .. } = self.call(call);
        let free = self.free.of(*node);
        let mut sweeps: Vec<PointOfSweep> = self.points_around(*point).collect();
        sweeps.reverse();
        let mut texts = Vec::with_capacity(free.len());
        for PointOfSweep { sweep, row } in sweeps {
            let planned = self.sweep(sweep);
            let binds = &task.sweeps[planned.sweep.index()].binds;
            let names: Vec<&str> = (binds.iter().filter(|name| free.contains(name)))
                .map(|name| task.bound[name.index()].as_str())
                .collect();
            let Some(rows) = planned.rows() else { continue };
            let row = rows.points.at(row as usize);
            let values = row.values().filter(|(name, _)| names.contains(name));
            texts.extend(values.map(|(name, text)| (name, &**text)));
        }
        texts
    }

    /// The outermost sweep of which a call depends on a point.
    pub fn outermost_sweep(&self, call: CallId) -> Option<PlannedSweepId> {
        self.points_around(self.call(call).point).last().map(|point| point.sweep)
    }

    /// The names that sweeps bind and a node depends on.
    pub fn free_names(&self, node: NodeId) -> &[BoundId] {
        self.free.of(node)
    }

    /// Whether each column tells the points of a sweep apart. The others are labels: what no node of the body reads. If
    /// points differ in labels only, or they are jobs, all columns count.
    pub fn key_columns(
        &self,
        task: &Task,
        sweep: &PlannedSweep,
        points: &SweepPoints,
    ) -> Vec<bool> {
        let rules = &task.sweeps[sweep.sweep.index()];
        let free = self.free.of(sweep.body);
        let is_read = |name: &str| {
            let mut binds = rules.binds.iter();
            binds.any(|id| free.contains(id) && task.bound[id.index()].as_str() == name)
        };
        let keys: Vec<bool> = points.names().iter().map(|name| is_read(name)).collect();
        let are_all = keys.iter().all(|is_key| *is_key);
        if are_all || !rules.has_table || points.columns(is_read).len() < points.len() {
            return vec![true; keys.len()];
        }
        keys
    }

    /// All sweeps. Each has a call that gathers it.
    pub fn sweeps(&self) -> impl ExactSizeIterator<Item = &PlannedSweep> {
        (0..self.sweeps.count()).map(|at| &self.sweeps[at])
    }

    /// The numbers of a point and those around it among the points of their sweeps, from the outermost one on.
    pub fn rows(&self, point: Option<PointOfSweep>) -> Vec<u32> {
        let mut rows: Vec<u32> = self.points_around(point).map(|point| point.row).collect();
        rows.reverse();
        rows
    }

    /// Puts sweeps that depend on the same names into the order of the points around them: those of outer sweeps decide first.
    ///
    /// The point of a planned sweep is the first one in the order of execution, and may not be the first in the table.
    pub fn in_table_order<'a, K>(&'a self, task: &Task, sweeps: &mut [(K, &'a PlannedSweep)]) {
        let mut first_rows = HashMap::new();
        sweeps.sort_by_cached_key(|(_, sweep)| {
            let mut rows: Vec<u32> = (self.points_around(sweep.point))
                .map(|point| self.first_row(task, sweep, point, &mut first_rows))
                .collect();
            rows.reverse();
            rows
        });
    }

    /// The first row that has the same texts as this one, of the names that a sweep in it depends on.
    fn first_row(
        &self,
        task: &Task,
        within: &PlannedSweep,
        PointOfSweep { sweep, row }: PointOfSweep,
        known: &mut HashMap<PlannedSweepId, HashMap<Vec<u32>, u32>>,
    ) -> u32 {
        let Some(rows) = self.sweep(sweep).rows() else { return row };
        let binds = &task.sweeps[self.sweep(sweep).sweep.index()].binds;
        let names = within.outer.iter().filter(|(name, _)| binds.contains(name));
        let columns: Vec<usize> = names
            .filter_map(|(name, _)| rows.points.column(task.bound[name.index()].as_str()))
            .collect();
        let texts = |row: &[u32]| columns.iter().map(|column| row[*column]).collect::<Vec<u32>>();
        let first_rows = known.entry(sweep).or_insert_with(|| {
            let mut first_rows = HashMap::new();
            for (row, number) in rows.points.rows().zip(0..) {
                first_rows.entry(texts(row)).or_insert(number);
            }
            first_rows
        });
        first_rows[&texts(rows.points.row(row as usize))]
    }

    /// A point, and those of the sweeps around its sweep, from the innermost one on.
    fn points_around(&self, point: Option<PointOfSweep>) -> impl Iterator<Item = PointOfSweep> {
        std::iter::successors(point, |point| self.sweep(point.sweep).point)
    }
}
