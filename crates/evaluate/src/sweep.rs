//! Sweeps: the points of one are read from a sheet, if they are computed; its table is made when each point has ended, and kept under
//! the name that its recipe decides.
//!
//! [`CallNumbers`] identify the values of one measurement: one call makes them, wherever they stand.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::evaluator::CallStep;
use crate::recorded_rows::{RecordedRows, recipe_columns};
use crate::{Absence, CallError, Evaluation, Evaluator, Event, Outcome, PointsError, Unavailable};
use ce_model::digest::Digest;
use ce_model::name::file_name;
use ce_model::plan::{CallId, Derivation, Operation, PlanGrowth, PlannedSweep, Source, SweepRows};
use ce_model::sweep::{
    self, GatheredTable, PointOutput, PointOutputs, REPLICATE, ReplicateLook, ReplicateValue,
    Replicates, SheetFormat, Sweep, TableColumn, Until, read_cells,
};
use ce_storage::records::{LongText, OutputSource, Published, RecipeHeader, RecipeWriter, Stamp};
use ce_storage::{FoundTable, Outputs, PriorAttempt, ResultName, Stored, TableDirectory};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

/// The state of a point that has ended.
enum PointState {
    /// Its outputs are known.
    Ok,
    /// It failed in a way that would come again.
    Failed,
}

/// The gathering of a sweep whose points have all ended.
struct Gathering<'e, 'a> {
    evaluator: &'e Evaluator<'a>,
    id: CallId,
    sweep: &'e PlannedSweep,
    rules: &'e Sweep,
    rows: &'e SweepRows,
}

/// Gathers a sweep whose points have ended, or learns its points.
pub(super) fn gather<'a>(
    evaluator: &Evaluator<'a>,
    id: CallId,
    sweep: &PlannedSweep,
) -> CallStep<'a> {
    let Some(rows) = sweep.rows() else { return read_points(evaluator, id) };
    let rules = &evaluator.evaluation.task.sweeps[sweep.sweep.index()];
    let left_out = Outcome::Absent(ResultName::unknown_table(), Absence::LeftOut);
    let has_ended = |sources: &[Source]| {
        let evaluation = evaluator.evaluation;
        sources.iter().all(|it| evaluation.digest(*it).is_some())
            || rules.allow_failed && evaluation.behind(sources).have_failed()
    };
    // More replicates may be calls that are asked for.
    let looks = sweep.grows() && rows.iter().all(|(_, sources)| has_ended(sources));
    if !sweep.is_asked && !looks {
        return CallStep::Ended(left_out);
    }
    if let Some(step) = evaluator.demand_derived(&rows.sources) {
        return step;
    }
    let gathering = Gathering { evaluator, id, sweep, rules, rows };
    let states = match gathering.states() {
        Ok(states) => states,
        Err(outcome) => return CallStep::Ended(outcome),
    };
    if let Some(replicates) = rules.product.replicates.as_ref().filter(|_| sweep.grows())
        && let Some(until) = &replicates.until
    {
        match gathering.look(&states, replicates, until) {
            Ok(None) => {}
            Ok(Some(step)) => return step,
            Err(error) => {
                return CallStep::Ended(Outcome::failed(ResultName::unknown_table(), error));
            }
        }
    }
    if !sweep.is_asked || !rules.has_table || rows.is_partial() {
        return CallStep::Ended(left_out);
    }
    gathering.table(&states)
}

impl<'a> Gathering<'_, 'a> {
    /// The state of each point, or the outcome of the sweep if one is not over, or failed.
    fn states(&self) -> Result<Vec<PointState>, Outcome> {
        let Evaluator { evaluation, execution, .. } = *self.evaluator;
        let mut states = Vec::with_capacity(self.rows.points.len());
        let (mut first, mut is_left_out) = (None, false);
        let mut errors = Vec::new();
        for (_, sources) in self.rows.iter() {
            let derived = evaluation.derive(sources.iter().copied(), execution.is_some());
            if let Err(error) = &derived
                && error.is_interrupted()
            {
                return Err(self.evaluator.not_started(ResultName::unknown_table()));
            }
            let behind = evaluation.behind(sources);
            if sources.iter().all(|it| evaluation.digest(*it).is_some()) {
                states.push(PointState::Ok);
            } else if self.rules.allow_failed && behind.have_failed() {
                states.push(PointState::Failed);
            } else if derived.is_ok() && behind.are_left_out() {
                is_left_out = true;
            } else {
                first.get_or_insert(sources);
                errors.extend(derived.err());
            }
        }
        let name = ResultName::unknown_table();
        let sources = match first {
            Some(first) => first,
            None if is_left_out => return Err(Outcome::Absent(name, Absence::LeftOut)),
            None => return Ok(states),
        };
        let mut errors = errors.into_iter();
        if let Some(first) = errors.next() {
            return Err(Outcome::failed(name, CallError::of_points(first, errors.len())));
        }
        if execution.is_none() {
            return Err(Outcome::Absent(name, Absence::Missing(None)));
        }
        if evaluation.behind(sources).are_suspended() {
            return Err(Outcome::Absent(name, Absence::Waiting));
        }
        if evaluation.behind(&self.rows.sources).are_not_over() {
            return Err(self.evaluator.not_started(name));
        }
        Err(Outcome::Absent(name, Absence::Blocked))
    }

    /// Looks at the replicates of all points, and continues points whose results are not known well enough. Without
    /// such points, their ends are noted.
    fn look(
        &self,
        states: &[PointState],
        replicates: &Replicates,
        until: &Until,
    ) -> Result<Option<CallStep<'a>>, CallError> {
        let Self { evaluator, rows, .. } = self;
        let evaluation = evaluator.evaluation;
        let columns = until.columns(&self.rules.columns);
        let mut outputs = self.outputs(states, &columns)?;
        let (mut recorded, mut lacking) = (None, Vec::new());
        let mut known = vec![None; outputs.len()];
        for (number, of_point) in outputs.iter_mut().enumerate() {
            let Some(sources) = self.unread(number, of_point, &columns) else { continue };
            let recorded = match &mut recorded {
                Some(recorded) => recorded,
                none => none.insert(RecordedRows::read(evaluation, self.sweep)?),
            };
            known[number] =
                recorded.find_point(&self.digests(number)).and_then(|it| it.number(&until.column));
            match known[number] {
                Some(_) => *of_point = None,
                None => lacking.extend(sources),
            }
        }
        if !lacking.is_empty() {
            let name = ResultName::unknown_table();
            let step = self.evaluator.demand(&lacking, &name);
            // Even if it is known which outputs a call would make, their contents are not.
            let missing = || CallStep::Ended(Outcome::Absent(name.clone(), Absence::Missing(None)));
            return Ok(Some(step.unwrap_or_else(missing)));
        }
        let table = GatheredTable::new(&rows.points, &outputs, &columns, false)?;
        let numbers = table.numbers(&until.column)?.into_iter().zip(known);
        let numbers: Vec<Option<f64>> = numbers.map(|(read, known)| read.or(known)).collect();
        // If only recorded tables have a column, its output is unknown where there are several.
        let result = table.results().find(|(name, _)| ***name == *until.column);
        let looked: Vec<u8> = match result {
            Some((_, column)) => vec![column.output],
            None => columns.iter().map(|it| it.output).collect(),
        };
        let mut calls = CallNumbers::new(evaluation);
        let mut looked = |number: usize| {
            let outputs = looked.iter().map(|output| rows.row(number)[usize::from(*output)]);
            outputs.map(|it| calls.of_output(it)).collect::<Vec<_>>()
        };
        let (mut ends, mut wanted, mut goes_on) = (Vec::new(), Vec::new(), false);
        for of_point in &rows.replicated {
            let (mut values, mut seen) = (Vec::new(), HashSet::new());
            // A point that failed elsewhere does not stand for points with a value of the same call.
            let (failed, ok): (Vec<usize>, Vec<usize>) =
                of_point.rows.clone().partition(|number| numbers[*number].is_none());
            for number in ok.into_iter().chain(failed).filter(|it| seen.insert(looked(*it))) {
                let replicate = rows.points.at(number).value(REPLICATE);
                let replicate = replicate.and_then(|it| it.parse().ok()).unwrap_or_default();
                values.push(ReplicateValue { replicate, value: numbers[number] });
            }
            match replicates.look(of_point.replicates, &values) {
                ReplicateLook::Ended(end) => {
                    wanted.push(of_point.replicates);
                    ends.push(end);
                }
                ReplicateLook::More(more) => {
                    wanted.push(more);
                    goes_on = true;
                }
            }
        }
        if goes_on {
            return Ok(Some(CallStep::Expand(PlanGrowth::Replicates(wanted))));
        }
        self.sweep.end(ends);
        Ok(None)
    }

    /// The outputs of a point that these columns are made of, if one of them is known but unreadable.
    fn unread(
        &self,
        number: usize,
        outputs: &PointOutputs,
        columns: &[TableColumn],
    ) -> Option<Vec<Source>> {
        let outputs = outputs.as_ref()?;
        let read = self
            .rows
            .row(number)
            .iter()
            .zip(0..)
            .filter(|(source, at)| is_read(self.evaluator.evaluation, columns, *at, **source));
        let read: Vec<(&Source, usize)> = read.collect();
        let is_unread = read.iter().any(|(_, at)| outputs[*at].contents.is_none());
        is_unread.then(|| read.into_iter().map(|(source, _)| *source).collect())
    }

    /// Returns the digests of the outputs of a point.
    fn digests(&self, number: usize) -> Vec<Digest> {
        let evaluation = self.evaluator.evaluation;
        self.rows.row(number).iter().filter_map(|source| evaluation.digest(*source)).collect()
    }

    /// Reads the outputs of all points that these columns are made of. Skips points that failed.
    fn outputs(
        &self,
        states: &[PointState],
        columns: &[TableColumn],
    ) -> Result<Vec<PointOutputs>, CallError> {
        let outputs = states.par_iter().enumerate().map(|(number, state)| match state {
            PointState::Ok => {
                point_outputs(self.evaluator.evaluation, columns, self.rows.row(number))
            }
            PointState::Failed => Ok(None),
        });
        outputs.collect()
    }

    /// Finds the table of a sweep, or makes it.
    fn table(&self, states: &[PointState]) -> CallStep<'a> {
        let header = self.header();
        let recipe = self.recipe(&header, states);
        let tables = self.evaluator.evaluation.storage.tables();
        let (name, damage) = match tables.find(&recipe, self.sweep.with_directory) {
            Ok(FoundTable::Hit(outputs)) => {
                return CallStep::Ended(Outcome::Present(outputs, OutputSource::Reused));
            }
            Ok(FoundTable::Absent { name, damage }) => (name, damage),
            Err(error) => {
                return CallStep::Ended(Outcome::failed(ResultName::unknown_table(), error));
            }
        };
        match self.earlier_table(&header, states) {
            Ok(Some(outputs)) if damage.is_none() => {
                return CallStep::Ended(Outcome::Present(outputs, OutputSource::Reused));
            }
            Ok(_) => {}
            Err(error) => return CallStep::Ended(Outcome::failed(name, error)),
        }
        if let Some(step) = self.demand_points(&name, states) {
            return step;
        }
        if damage.is_some() {
            let prior = PriorAttempt { damage, ..PriorAttempt::default() };
            (self.evaluator.observe)(Event::Started(self.id, name.clone(), Some(Box::new(prior))));
        }
        let made = self.make_table(&name, &recipe, states);
        CallStep::Ended(made.unwrap_or_else(|error| Outcome::failed(name, error)))
    }

    /// Finds a table that an earlier version of this program has made, if it would be the same now.
    fn earlier_table(
        &self,
        header: &RecipeHeader,
        states: &[PointState],
    ) -> Result<Option<Outputs>, CallError> {
        let Self { evaluator, sweep, rules, .. } = self;
        if sweep.with_directory && !header.labels.is_empty() {
            return Ok(None);
        }
        let has_fields = rules.columns.iter().any(|it| it.shape.is_json());
        let header = header.before_version_4(has_fields);
        let tables = evaluator.evaluation.storage.tables();
        let found = tables.find(&self.recipe(&header, states), sweep.with_directory)?;
        let FoundTable::Hit(outputs) = found else { return Ok(None) };
        let mut table = Vec::new();
        tables.read_lines(&outputs.name, |line| table.extend([line, b"\n"].concat()))?;
        let is_same = read_cells(&table).is_ok_and(|it| !it.has_texts_of_numbers(&rules.columns));
        Ok(is_same.then_some(outputs))
    }

    /// The columns of points that are labels: they do not tell points apart.
    fn labels(&self) -> Vec<String> {
        let (evaluation, points) = (self.evaluator.evaluation, &self.rows.points);
        let is_key = evaluation.plan.key_columns(&evaluation.task, self.sweep, points);
        let names = points.names().iter().zip(is_key);
        names.filter(|(_, is_key)| !is_key).map(|(name, _)| name.clone()).collect()
    }

    /// Makes the table, and publishes it if something may be written.
    fn make_table(
        &self,
        name: &ResultName,
        recipe: &LongText<'_>,
        states: &[PointState],
    ) -> Result<Outcome, CallError> {
        let Self { evaluator, sweep, rules, rows, .. } = self;
        let tables = evaluator.evaluation.storage.tables();
        let outputs = self.outputs(states, &rules.columns)?;
        let table = GatheredTable::new(&rows.points, &outputs, &rules.columns, rules.allow_failed)?;
        let table = LongText::from_writer(|out| table.write(out));
        let directory = sweep.with_directory.then(|| self.directory(states));
        if evaluator.execution.is_some() {
            match tables.publish(recipe, &table, directory.as_ref()) {
                Err(error) if error.is_read_only() => {}
                published => return Ok(Outcome::Present(published?, OutputSource::Executed)),
            }
        }
        let directory = directory.as_ref().map(|it| tables.directory_digest(it)).transpose()?;
        let digests = [*table.digest()].into_iter().chain(directory);
        let files = digests.map(|digest| Published { digest, stamp: Stamp::Unknown }).collect();
        Ok(Outcome::Known(Outputs { name: name.clone(), files }, Unavailable::Foreseen))
    }

    /// Demands the calls whose outputs are away and needed to make a table. If they are not available, it is not made.
    fn demand_points(&self, name: &ResultName, states: &[PointState]) -> Option<CallStep<'a>> {
        let evaluation = self.evaluator.evaluation;
        let mut needed = Vec::new();
        for ((_, sources), state) in self.rows.iter().zip(states) {
            let PointState::Ok = state else { continue };
            for (number, source) in sources.iter().enumerate() {
                let call = evaluation.plan.awaited(*source);
                if call.is_some_and(|call| evaluation.was_away(call))
                    && (self.sweep.with_directory
                        || is_read(evaluation, &self.rules.columns, number, *source))
                {
                    needed.push(*source);
                }
            }
        }
        self.evaluator.demand(&needed, name).or_else(|| {
            let lack = evaluation.behind(&needed).lack_outputs();
            lack.then(|| CallStep::Ended(Outcome::Absent(name.clone(), Absence::Missing(None))))
        })
    }

    /// Returns the recipe of the table: the same recipe makes the same table.
    fn recipe<'b>(&'b self, header: &'b RecipeHeader, states: &'b [PointState]) -> LongText<'b> {
        let Self { evaluator, rows, .. } = self;
        LongText::from_writer(move |out| {
            let mut recipe = RecipeWriter::begin(out, header)?;
            for ((point, sources), state) in rows.iter().zip(states) {
                let texts = point.values().map(|(_, text)| text.as_ref());
                match state {
                    PointState::Ok => {
                        let values = values(evaluator.evaluation, sources);
                        recipe
                            .row(texts, values.iter().map(|it| (it.name.as_str(), &it.digest)))?;
                    }
                    PointState::Failed => recipe.failed_row(texts)?,
                }
            }
            Ok(())
        })
    }

    /// The rules of the table.
    fn header(&self) -> RecipeHeader {
        let Self { rules, rows, .. } = self;
        let replicates = rules.product.replicates.as_ref().filter(|it| it.until.is_some());
        RecipeHeader {
            columns: recipe_columns(rules),
            allow_failed: rules.allow_failed,
            replicates: replicates.map(ToString::to_string),
            names: rows.points.names().to_vec(),
            labels: self.labels(),
            outputs: self.body_outputs(),
            ..RecipeHeader::default()
        }
    }

    /// The directory of all outputs: `KEY=VALUE/KEY=VALUE/OUTPUT`.
    fn directory(&self, states: &[PointState]) -> TableDirectory {
        let (names, labels) = (self.body_outputs(), self.labels());
        let mut members = Vec::new();
        for ((point, sources), state) in self.rows.iter().zip(states) {
            let PointState::Ok = state else { continue };
            let keys = point.values().filter(|(name, _)| !labels.iter().any(|it| it == name));
            let place = sweep::point_path(keys);
            for (name, value) in names.iter().zip(values(self.evaluator.evaluation, sources)) {
                members.push((format!("{place}/{}", file_name(name)), value));
            }
        }
        let mut points = Vec::new();
        // Writing to memory never fails.
        drop(self.rows.points.write_ndjson(&mut points));
        TableDirectory { points, members }
    }

    /// The names of the outputs that the body passes up.
    fn body_outputs(&self) -> Vec<String> {
        self.evaluator.evaluation.task.passed_names(self.sweep.body)
    }
}

/// Reads the computed points of a sweep.
fn read_points<'a>(evaluator: &Evaluator<'a>, id: CallId) -> CallStep<'a> {
    let evaluation = evaluator.evaluation;
    let sources = evaluation.plan.inputs(id);
    let unknown = ResultName::unknown_table;
    if let Some(step) = evaluator.demand(sources, &unknown()) {
        return step;
    }
    if let Err(outcome) = evaluator.inputs(sources, unknown) {
        return CallStep::Ended(outcome);
    }
    let [source] = *sources else {
        return CallStep::Ended(Outcome::Absent(unknown(), Absence::Blocked));
    };
    if evaluation.digest(source).is_some_and(|digest| digest.is_directory()) {
        return CallStep::Ended(Outcome::failed(unknown(), PointsError::Directory));
    }
    let contents = match evaluation.contents(source) {
        Ok(Some(contents)) => contents,
        Ok(None) => return CallStep::Ended(Outcome::Absent(unknown(), Absence::Missing(None))),
        Err(error) => return CallStep::Ended(Outcome::failed(unknown(), error)),
    };
    match sweep::read(SheetFormat::detect(&contents), &contents) {
        Ok(points) => CallStep::Expand(PlanGrowth::Points(points)),
        Err(problems) => {
            let sheet = sheet_words(evaluation, source);
            CallStep::Ended(Outcome::failed(unknown(), PointsError::Sheet { sheet, problems }))
        }
    }
}

/// Describes in words the origin of computed points.
fn sheet_words(evaluation: &Evaluation, source: Source) -> String {
    let (whole, member) = evaluation.plan.whole(source);
    let words = match whole {
        Source::Input(input) => format!("the input {}", evaluation.task.inputs[input.index()]),
        Source::File(file) => evaluation.task.files[file.index()].path.to_string(),
        Source::Literal(literal) => evaluation.plan.literals()[literal.index()].to_string(),
        Source::Derived { value, .. } => match &evaluation.plan.value(value).how {
            Derivation::File(path) => path.to_string(),
            Derivation::Literal(name) => name.to_string(),
            _ => "the sheet".to_owned(),
        },
        Source::Output { call, .. } => match evaluation.computation(call) {
            Some(computation) => format!("the output of {}", computation.name),
            None => "the table of another sweep".to_owned(),
        },
    };
    member.map_or(words.clone(), |path| format!("{path} in {words}"))
}

/// Reads the outputs of a point that become columns; `None` if one of them is not known.
pub fn point_outputs(
    evaluation: &Evaluation,
    columns: &[TableColumn],
    sources: &[Source],
) -> Result<PointOutputs, CallError> {
    let mut outputs = Vec::with_capacity(sources.len());
    for (number, source) in sources.iter().enumerate() {
        let Some(digest) = evaluation.digest(*source) else { return Ok(None) };
        let contents = match is_read(evaluation, columns, number, *source) {
            true => evaluation.contents(*source)?,
            false => None,
        };
        let is_json = |it: &TableColumn| usize::from(it.output) == number && it.shape.is_json();
        let marked = contents.as_deref().filter(|_| columns.iter().any(is_json));
        let marked = marked.and_then(|it| match sweep::mark_bare_numbers(it) {
            Cow::Owned(marked) => Some(marked),
            Cow::Borrowed(_) => None,
        });
        let contents = marked.or(contents).map(Vec::into_boxed_slice);
        outputs.push(PointOutput { contents, hash: digest.sha1 });
    }
    Ok(Some(outputs.into()))
}

/// Whether the contents of an output of a point become a column.
fn is_read(
    evaluation: &Evaluation,
    columns: &[TableColumn],
    number: usize,
    source: Source,
) -> bool {
    let digest = evaluation.digest(source).filter(|digest| !digest.is_directory());
    digest.is_some_and(|it| sweep::needs_contents(columns, number as u8, it.size))
}

/// The values of sources that are all known, as they are or would be in the storage.
fn values(evaluation: &Evaluation, sources: &[Source]) -> Vec<Stored> {
    let mut values = Vec::with_capacity(sources.len());
    for source in sources {
        if let Some(stored) = evaluation.stored(*source) {
            values.push(stored);
        } else if let (Some(name), Some(digest)) =
            (evaluation.name(*source), evaluation.digest(*source))
        {
            values.push(Stored { name, digest, stamp: Stamp::Unknown });
        }
    }
    values
}

/// The numbers of the calls that outputs rest on, from 1 in the order in which they are asked for.
#[derive(Debug)]
pub struct CallNumbers<'a> {
    evaluation: &'a Evaluation,
    /// The calls that differ, each with a number.
    distinct: HashMap<(Operation, Box<[ValueKey]>), usize>,
    /// The number of each call of the plan that was asked for.
    numbers: HashMap<CallId, usize>,
    outputs: HashMap<ValueKey, usize>,
}

/// A value, the same for equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ValueKey {
    /// Its contents are known.
    Known(Digest),
    /// It is an output of a distinct call.
    Output(usize, u8),
    /// It is not known, and no output of a call.
    Unknown(Source),
}

impl<'a> CallNumbers<'a> {
    /// No numbers yet.
    pub fn new(evaluation: &'a Evaluation) -> Self {
        Self {
            evaluation,
            distinct: HashMap::new(),
            numbers: HashMap::new(),
            outputs: HashMap::new(),
        }
    }

    /// The number of the call that makes an output of a point. All outputs of a call have one number. Each value that
    /// no call makes has its own.
    pub fn of_output(&mut self, output: Source) -> usize {
        let key = match self.evaluation.plan.origin(output) {
            Source::Output { call, .. } => ValueKey::Output(self.of_call(call), 0),
            _ => self.of_value(output),
        };
        let next = self.outputs.len() + 1;
        *self.outputs.entry(key).or_insert(next)
    }

    /// The number of a call. Missing calls that it depends on come first.
    fn of_call(&mut self, call: CallId) -> usize {
        let plan = &self.evaluation.plan;
        let mut waiting = vec![call];
        while let Some(call) = waiting.last().copied() {
            let inputs = &plan.call(call).inputs;
            let before = waiting.len();
            waiting.extend(inputs.iter().filter_map(|input| match input {
                Source::Output { call, .. } if self.evaluation.digest(*input).is_none() => {
                    Some(*call).filter(|call| !self.numbers.contains_key(call))
                }
                _ => None,
            }));
            if waiting.len() == before {
                let key = inputs.iter().map(|input| self.of_value(*input)).collect();
                let next = self.distinct.len();
                let number = *self.distinct.entry((plan.call(call).operation, key)).or_insert(next);
                self.numbers.insert(call, number);
                waiting.pop();
            }
        }
        self.numbers[&call]
    }

    /// The key of a value. If it is an output that is not there, its call has a number.
    fn of_value(&self, source: Source) -> ValueKey {
        match (self.evaluation.digest(source), source) {
            (Some(digest), _) => ValueKey::Known(digest),
            (None, Source::Output { call, number }) => {
                ValueKey::Output(self.numbers[&call], number)
            }
            (None, other) => ValueKey::Unknown(other),
        }
    }
}
