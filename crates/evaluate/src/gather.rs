//! Gathering a sweep: its table is made when each point has ended, and kept under the name that its recipe decides.

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use super::step::CallStep;
use super::{Absence, CallError, Evaluation, Evaluator, Event, How, Outcome, Unavailable};
use ce_model::digest::Digest;
use ce_model::plan::{CallId, Derivation, PlannedSweep, Source, SweepRows};
use ce_model::sweep::{self, GatheredTable, PointOutput, PointOutputs, Sweep, TableColumn};
use ce_storage::records::{LongText, OutputSource, Published, RecipeHeader, RecipeWriter, Stamp};
use ce_storage::{
    FoundTable, InputSource, Outputs, PriorAttempt, ResultName, StorageError, Stored,
    TableDirectory,
};

/// The state of a point that has ended.
enum PointState {
    /// Its outputs are known.
    Ok,
    /// It failed in a way that would come again.
    Failed,
}

impl<'a> Evaluator<'a> {
    /// Gathers a sweep whose points have ended, or learns its points.
    pub(super) fn gather(&self, id: CallId, sweep: &PlannedSweep) -> CallStep<'a> {
        let Some(rows) = sweep.rows() else { return self.points(id) };
        let rules = &self.evaluation.task.sweeps[sweep.sweep.index()];
        if !sweep.is_asked {
            return CallStep::Ended(Outcome::Absent(ResultName::unknown_table(), Absence::LeftOut));
        }
        if let Some(step) = self.demand_derived(&rows.sources) {
            return step;
        }
        let states = match self.states(rules, rows) {
            Ok(states) => states,
            Err(outcome) => return CallStep::Ended(outcome),
        };
        if !rules.has_table || rows.is_partial() {
            return CallStep::Ended(Outcome::Absent(ResultName::unknown_table(), Absence::LeftOut));
        }
        let made = self.table(id, (sweep, rules), (rows, &states));
        made.unwrap_or_else(|(name, error)| CallStep::Ended(Outcome::failed(name, error)))
    }

    /// The state of each point, or the outcome of the sweep if one is not over, or failed.
    fn states(&self, rules: &Sweep, rows: &SweepRows) -> Result<Vec<PointState>, Outcome> {
        let evaluation = self.evaluation;
        let mut states = Vec::with_capacity(rows.points.len());
        let (mut first, mut is_left_out) = (None, false);
        let mut errors = Vec::new();
        for (_, sources) in rows.iter() {
            let derived = evaluation.derive(sources.iter().copied(), self.execution.is_some());
            if let Err(error) = &derived
                && error.is_interrupted()
            {
                return Err(self.not_started(ResultName::unknown_table()));
            }
            let is_known = sources.iter().all(|it| evaluation.digest(*it).is_some());
            match is_known {
                true => states.push(PointState::Ok),
                false if rules.allow_failed && evaluation.has_failed(sources) => {
                    states.push(PointState::Failed);
                }
                false if derived.is_ok() && evaluation.are_left_out(sources) => is_left_out = true,
                false => {
                    first.get_or_insert(sources);
                    errors.extend(derived.err());
                }
            }
        }
        let name = ResultName::unknown_table();
        let sources = match first {
            Some(first) => first,
            None if is_left_out => return Err(Outcome::Absent(name, Absence::LeftOut)),
            None => return Ok(states),
        };
        Err(match (self.execution, errors.into_iter()) {
            (None, errors) if errors.len() == 0 => Outcome::Absent(name, Absence::Missing(None)),
            (_, mut errors) => match errors.next() {
                Some(first) => Outcome::failed(name, CallError::of_points(first, errors.len())),
                None if evaluation.await_suspended(sources) => {
                    Outcome::Absent(name, Absence::Waiting)
                }
                None if evaluation.await_not_started(&rows.sources) => self.not_started(name),
                None => Outcome::Absent(name, Absence::Blocked),
            },
        })
    }

    /// Finds the table of a sweep, or makes it.
    fn table(
        &self,
        id: CallId,
        (sweep, rules): (&PlannedSweep, &Sweep),
        (rows, states): (&SweepRows, &[PointState]),
    ) -> Result<CallStep<'a>, (ResultName, CallError)> {
        let tables = self.evaluation.storage.tables();
        let recipe = self.recipe(sweep, rules, (rows, states));
        let unknown = ResultName::unknown_table;
        let name = match tables.find(&recipe, sweep.with_directory) {
            Ok(FoundTable::Hit(outputs)) => {
                return Ok(CallStep::Ended(Outcome::Present(outputs, OutputSource::Reused)));
            }
            Ok(FoundTable::Absent { name, .. })
                if let Some(step) = self.demand_points(&name, (sweep, rules), (rows, states)) =>
            {
                return Ok(step);
            }
            Ok(FoundTable::Absent { name, damage: None }) => name,
            Ok(FoundTable::Absent { name, damage }) => {
                let prior = PriorAttempt { damage, ..PriorAttempt::default() };
                (self.observe)(Event::Started(id, name.clone(), Some(Box::new(prior))));
                name
            }
            Err(error) => return Err((unknown(), error.into())),
        };
        let failed = |error: CallError| (name.clone(), error);
        let outputs = states.par_iter().enumerate().map(|(number, state)| match state {
            PointState::Ok => self.evaluation.point_outputs(&rules.columns, rows.row(number)),
            PointState::Failed => Ok(None),
        });
        let outputs = outputs.collect::<Result<Vec<_>, CallError>>().map_err(failed)?;
        let table = GatheredTable::new(&rows.points, &outputs, &rules.columns, rules.allow_failed);
        let table = table.map_err(|fault| failed(fault.into()))?;
        let table = LongText::of(|out| table.write(out));
        let directory = sweep.with_directory.then(|| self.directory(sweep, rows, states));
        let foreseen = || -> Result<Outcome, StorageError> {
            let directory = directory.as_ref().map(|it| tables.directory_digest(it)).transpose()?;
            let published = |digest| Published { digest, stamp: Stamp::Unknown };
            let files = [*table.digest()].into_iter().chain(directory).map(published);
            Ok(Outcome::Known(
                Outputs { name: name.clone(), files: files.collect() },
                Unavailable::Foreseen,
            ))
        };
        let made = match self.execution {
            None => foreseen(),
            Some(_) => match tables.publish(&recipe, &table, directory.as_ref()) {
                Err(error) if error.is_read_only() => foreseen(),
                published => {
                    published.map(|outputs| Outcome::Present(outputs, OutputSource::Executed))
                }
            },
        };
        made.map(CallStep::Ended).map_err(|error| failed(error.into()))
    }

    /// Demands the calls whose outputs are away and needed to make a table. If they are not to be had, it is not made.
    fn demand_points(
        &self,
        name: &ResultName,
        (sweep, rules): (&PlannedSweep, &Sweep),
        (rows, states): (&SweepRows, &[PointState]),
    ) -> Option<CallStep<'a>> {
        let has_result = |state: &PointState| matches!(state, PointState::Ok);
        let points = rows.iter().zip(states).filter(|(_, state)| has_result(state));
        let sources = points.flat_map(|((_, sources), _)| sources.iter().copied().enumerate());
        let is_needed = |(number, source): &(usize, Source)| {
            let call = self.evaluation.plan.awaited(*source);
            call.is_some_and(|call| self.evaluation.was_away(call))
                && (sweep.with_directory
                    || self.evaluation.is_read(&rules.columns, *number, *source))
        };
        let needed: Vec<Source> = sources.filter(is_needed).map(|(_, source)| source).collect();
        self.demand(&needed, name).or_else(|| {
            let is_lacking = needed.iter().any(|source| self.evaluation.lacks_outputs(*source));
            is_lacking
                .then(|| CallStep::Ended(Outcome::Absent(name.clone(), Absence::Missing(None))))
        })
    }

    /// What the table is made of: the same recipe makes the same table.
    fn recipe<'b>(
        &'b self,
        sweep: &PlannedSweep,
        rules: &Sweep,
        (rows, states): (&'b SweepRows, &'b [PointState]),
    ) -> LongText<'b> {
        let evaluation = self.evaluation;
        let line = |it: &TableColumn| format!("{:02} {}", it.output, it.shape.text());
        let header = RecipeHeader {
            columns: rules.columns.iter().map(line).collect(),
            keeps_types: rules.columns.iter().any(|it| it.shape.is_json()),
            allow_failed: rules.allow_failed,
            names: rows.points.names().to_vec(),
            outputs: evaluation.body_outputs(sweep),
        };
        LongText::of(move |out| {
            let mut recipe = RecipeWriter::begin(out, &header)?;
            for ((point, sources), state) in rows.iter().zip(states) {
                let texts = point.values().map(|(_, text)| text.as_ref());
                match state {
                    PointState::Ok => {
                        let values = evaluation.values(sources);
                        recipe
                            .row(texts, values.iter().map(|it| (it.name.as_str(), &it.digest)))?;
                    }
                    PointState::Failed => recipe.failed_row(texts)?,
                }
            }
            Ok(())
        })
    }

    /// The directory of all outputs: `KEY=VALUE/KEY=VALUE/OUTPUT`.
    fn directory(
        &self,
        sweep: &PlannedSweep,
        rows: &SweepRows,
        states: &[PointState],
    ) -> TableDirectory {
        let names = self.evaluation.body_outputs(sweep);
        let mut members = Vec::new();
        for ((point, sources), state) in rows.iter().zip(states) {
            let PointState::Ok = state else { continue };
            let place = sweep::point_path(point.values());
            for (name, value) in names.iter().zip(self.evaluation.values(sources)) {
                members.push((format!("{place}/{}", sweep::path_part(name)), value));
            }
        }
        let mut points = Vec::new();
        // Writing to memory never fails.
        drop(rows.points.write_ndjson(&mut points));
        TableDirectory { points, members }
    }
}

impl Evaluation {
    /// The names of the outputs that the body of a sweep passes up.
    pub fn body_outputs(&self, sweep: &PlannedSweep) -> Vec<String> {
        self.task.passed_names(sweep.body)
    }

    /// Reads those outputs of a point that become columns; `None` if it is not known what one of them is.
    ///
    /// # Errors
    ///
    /// Fails if one cannot be read, or was changed.
    pub fn point_outputs(
        &self,
        columns: &[TableColumn],
        sources: &[Source],
    ) -> Result<PointOutputs, CallError> {
        let mut outputs = Vec::with_capacity(sources.len());
        for (number, source) in sources.iter().enumerate() {
            let Some(digest) = self.digest(*source) else { return Ok(None) };
            let is_read = self.is_read(columns, number, *source);
            let contents = if is_read { self.contents(*source)? } else { None };
            let contents = contents.map(Vec::into_boxed_slice);
            outputs.push(PointOutput { contents, hash: digest.sha1 });
        }
        Ok(Some(outputs.into()))
    }

    /// The values of sources of which all are known.
    fn values(&self, sources: &[Source]) -> Vec<Stored> {
        sources.iter().filter_map(|source| self.value(*source)).collect()
    }

    /// Whether the contents of an output of a point become a column.
    fn is_read(&self, columns: &[TableColumn], number: usize, source: Source) -> bool {
        let digest = self.digest(source).filter(|digest| !digest.is_directory());
        digest.is_some_and(|it| sweep::needs_contents(columns, number as u8, it.size))
    }

    /// A source's value, as it is or would be in the storage.
    fn value(&self, source: Source) -> Option<Stored> {
        self.stored(source).or_else(|| {
            let (name, digest) = (self.name(source)?, self.digest(source)?);
            Some(Stored { name, digest, stamp: Stamp::Unknown })
        })
    }

    /// Reads the contents of a file; `None` if it is not there, and it is not known what it would be.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or was changed.
    pub fn contents(&self, source: Source) -> Result<Option<Vec<u8>>, CallError> {
        let read = |source: &InputSource| match source {
            InputSource::Bytes(contents) => Ok(contents.clone()),
            InputSource::File(path) => fs::read(path).map_err(|source| StorageError::Io {
                doing: "read",
                path: path.clone(),
                source,
            }),
        };
        let Some(file) = self.stored(source) else {
            let known = match source {
                Source::Input(id) => self.files.given[id.index()]
                    .as_ref()
                    .or_else(|| {
                        self.files.own_sources[self.task.defaults[id.index()]?.index()].as_ref()
                    })
                    .cloned(),
                Source::File(id) => self.files.own_sources[id.index()].clone(),
                Source::Derived { value, .. } => match &self.plan.value(value).how {
                    Derivation::Tree(..) | Derivation::Member(_) | Derivation::Literal(_) => None,
                    how => Some(self.written_source(how).map_err(Arc::new)?),
                },
                Source::Literal(_) | Source::Output { .. } => None,
            };
            return Ok(known.as_ref().map(read).transpose()?);
        };
        let path = self.storage.path(&file.name);
        let contents = read(&InputSource::File(path.clone()))?;
        match Digest::of(&contents) == file.digest {
            true => Ok(Some(contents)),
            false => Err(StorageError::Changed(path).into()),
        }
    }

    /// Whether outputs are missing only because calls failed in a way that would come again: they ended with an exit
    /// status, or read a member that is not there.
    fn has_failed(&self, sources: &[Source]) -> bool {
        let mut waiting: Vec<Source> = sources.to_vec();
        let mut seen = HashSet::new();
        let mut has_failed = false;
        while let Some(source) = waiting.pop() {
            if self.digest(source).is_some() {
                continue;
            }
            match self.plan.awaited(source) {
                Some(call) if seen.insert(call) => match self.outcome(call) {
                    Some(Outcome::Absent(_, Absence::Failed(failure)))
                        if failure.error.would_recur() =>
                    {
                        has_failed = true;
                    }
                    Some(Outcome::Absent(_, Absence::Blocked | Absence::Missing(_)))
                        if self.lacks_inputs(call) =>
                    {
                        waiting.extend(self.plan.inputs(call));
                    }
                    // A derived value of known outputs, such as a member that is not there.
                    Some(outcome) if outcome.known().is_some() => has_failed = true,
                    _ => return false,
                },
                Some(_) => {}
                None => return false,
            }
        }
        has_failed
    }

    /// Whether all of these values that are not known are so because nobody asked for them.
    pub fn are_left_out(&self, sources: &[Source]) -> bool {
        let is_left_out = |source: &Source| {
            let call = self.plan.awaited(*source);
            call.and_then(|call| self.outcome(call)).map(Outcome::how) == Some(How::LeftOut)
        };
        let mut unknown =
            sources.iter().filter(|source| self.digest(**source).is_none()).peekable();
        unknown.peek().is_some() && unknown.all(is_left_out)
    }

    /// Whether it is not known what all inputs of a call are.
    fn lacks_inputs(&self, call: CallId) -> bool {
        self.plan.inputs(call).iter().any(|source| self.digest(*source).is_none())
    }

    /// Whether some of these calls are points of a sweep that have failed where that was no error.
    pub fn has_failed_points(&self, calls: &[CallId]) -> bool {
        calls.iter().any(|id| self.outcome(*id).is_some_and(|it| self.is_allowed(*id, it)))
    }

    /// Whether an outcome is a failure that makes a row of a table.
    pub fn is_allowed(&self, call: CallId, outcome: &Outcome) -> bool {
        outcome
            .failure()
            .is_some_and(|failure| self.plan.call(call).may_fail() && failure.error.would_recur())
    }

    /// Whether a file of the task that was found while it was evaluated has changes that no commit records.
    pub fn has_changed_files(&self) -> bool {
        self.is_changed.load(Ordering::Relaxed)
    }
}
