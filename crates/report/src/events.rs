//! One JSON object a line for everything that happens. doc/events.md describes the fields.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::calls::output_names;
use super::printer::{is_zero, totals};
use super::{Reporter, Tally, Totals, json_line};
use ce_evaluate::{Absence, Evaluation, Event, How, Outcome, TreeValues};
use ce_model::digest::Digest;
use ce_model::exit::Exit;
use ce_model::name::InputName;
use ce_model::plan::{CallId, Plan, PlannedSweep, Source};
use ce_model::shared_text::SharedText;
use ce_model::sweep::{Replicates, SweepPoint};
use ce_model::task::{Node, ROOT_LABEL, SweepId, TREE_OUTPUTS, Task};
use ce_storage::{Holder, Input, PriorAttempt, ResultName, Stored};

/// Prints events.
pub struct Json<'a>(&'a Evaluation);

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum EventLine<'a> {
    Run {
        task: &'a str,
        commit: &'a str,
        storage: String,
        inputs: Vec<JsonFile<'a>>,
        literals: Vec<JsonFile<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        files: Vec<JsonFile<'a>>,
        calls: usize,
        #[serde(skip_serializing_if = "is_zero")]
        tables: usize,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        at_least: bool,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        sweeps: Vec<JsonSweep<'a>>,
    },
    Queued {
        #[serde(flatten)]
        of: JsonCall<'a>,
    },
    Started {
        #[serde(flatten)]
        of: JsonCall<'a>,
        outputs: Vec<JsonFile<'a>>,
        #[serde(flatten)]
        remembered: JsonAttempt<'a>,
    },
    Retried {
        #[serde(flatten)]
        of: JsonCall<'a>,
        reason: String,
    },
    Waiting {
        #[serde(flatten)]
        of: JsonCall<'a>,
        host: &'a str,
        process: u32,
    },
    Expanded {
        #[serde(flatten)]
        of: JsonCall<'a>,
        points: usize,
        calls: usize,
        #[serde(skip_serializing_if = "is_zero")]
        tables: usize,
    },
    Suspended {
        #[serde(flatten)]
        of: JsonCall<'a>,
        outputs: Vec<JsonFile<'a>>,
        reason: String,
    },
    Unsettled {
        #[serde(flatten)]
        of: JsonCall<'a>,
        outputs: Vec<JsonFile<'a>>,
    },
    Demanded {
        #[serde(flatten)]
        of: JsonCall<'a>,
    },
    Ended {
        #[serde(flatten)]
        of: JsonCall<'a>,
        outcome: How,
        outputs: Vec<JsonFile<'a>>,
        #[serde(flatten)]
        made: JsonMade,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        log: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<&'a str>,
        #[serde(flatten)]
        remembered: JsonAttempt<'a>,
    },
    End {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        trees: Vec<JsonTree<'a>>,
        outputs: Vec<JsonFile<'a>>,
        job: Option<Vec<String>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        points: Option<Vec<JsonJob<'a>>>,
        tally: Tally,
        #[serde(skip_serializing_if = "Option::is_none")]
        tables: Option<Tally>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        at_least: bool,
        exit: u8,
    },
}

/// A point that is a job.
#[derive(Serialize)]
struct JsonJob<'a> {
    point: SweepPoint<'a>,
    outputs: Vec<JsonFile<'a>>,
    job: Option<Vec<String>>,
}

/// A Git tree that is a value.
#[derive(Serialize)]
struct JsonTree<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'a str>,
    version: &'a str,
    files: Vec<JsonFile<'a>>,
}

/// The prior attempt at a missing call.
#[derive(Default, Serialize)]
struct JsonAttempt<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collected: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    away: bool,
}

impl<'a> From<&'a Option<Box<PriorAttempt>>> for JsonAttempt<'a> {
    fn from(prior: &'a Option<Box<PriorAttempt>>) -> Self {
        let Some(PriorAttempt { failure, collected, damage, away, .. }) = prior.as_deref() else {
            return Self::default();
        };
        Self {
            last_failure: failure.as_ref().map(|record| record.failure.reason.as_str()),
            collected: collected.as_ref().map(|it| it.collected.at),
            damaged: damage.as_ref().map(|damage| damage.file.as_str()),
            damage: damage.as_ref().map(|damage| damage.what.as_str()),
            away: *away,
        }
    }
}

#[derive(Serialize)]
struct JsonFile<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha1: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    directory: bool,
    there: bool,
}

impl<'a> JsonFile<'a> {
    /// A file that the user or the task gives.
    fn of_input(name: &'a str, input: &Input) -> Self {
        let Stored { name: file, digest, .. } = &input.file;
        Self::new(Some(name), file.clone(), Some(*digest), input.there)
    }

    fn new(name: Option<&'a str>, file: String, digest: Option<Digest>, there: bool) -> Self {
        let directory = digest.is_some_and(|digest| digest.is_directory());
        Self { name, file, sha1: digest.map(|digest| digest.sha1.full()), directory, there }
    }
}

impl<'a> Json<'a> {
    /// Prints the first line: the task that is evaluated.
    pub fn begin(evaluation: &'a Evaluation, out: &mut dyn Write) -> io::Result<Self> {
        let Evaluation { task, plan, files, .. } = evaluation;
        let (json, totals) = (Self(evaluation), totals(evaluation));
        let inputs = task.inputs.iter().map(InputName::as_str).zip(&files.inputs);
        let inputs = inputs.filter_map(|(name, it)| Some(JsonFile::of_input(name, it.as_ref()?)));
        let own = task.files.iter().map(|file| file.path.as_str()).zip(&files.own);
        let own = own.filter_map(|(path, it)| Some(JsonFile::of_input(path, it.as_ref()?)));
        let literals = plan.literals().iter().zip(&files.literals).map(|(name, file)| {
            let digest = file.as_ref().map(|file| file.digest);
            JsonFile::new(None, name.to_string(), digest, file.is_some())
        });
        let line = EventLine::Run {
            task: task.name.as_str(),
            commit: task.commit.full(),
            storage: evaluation.shown(""),
            inputs: inputs.collect(),
            literals: literals.collect(),
            files: own.collect(),
            calls: totals.calls.calls,
            tables: totals.tables.calls,
            at_least: totals.at_least,
            sweeps: json_sweeps(evaluation),
        };
        json_line(&line, out)?;
        Ok(json)
    }

    /// Returns the identity of a call.
    fn identify(&self, call: CallId) -> JsonCall<'a> {
        JsonCall::new(self.0, call)
    }

    /// The outputs of a call under the name that they have.
    fn call(&self, call: CallId, name: &ResultName) -> Vec<JsonFile<'a>> {
        let outputs = output_names(self.0, call).enumerate().map(|(number, symbolic)| {
            let source = Source::Output { call, number: number as u8 };
            self.file(Some(symbolic), name.output(number), source)
        });
        outputs.collect()
    }

    /// The Git trees whose commits are known.
    fn trees(&self) -> impl Iterator<Item = JsonTree<'a>> {
        let Self(evaluation) = *self;
        evaluation.plan.derived().filter_map(|(value, _)| {
            let tree = evaluation.plan.tree(value)?;
            let TreeValues { version, revision, .. } = evaluation.tree_values(value)?.ok()?;
            let name = evaluation.task.trees[tree.index()].name.as_str();
            let files = TREE_OUTPUTS.iter().zip(0..).filter_map(|(name, number)| {
                let source = Source::Derived { value, number };
                Some(self.file(Some(name), evaluation.name(source)?, source))
            });
            let files = files.collect();
            Some(JsonTree { name, revision: revision.as_deref(), version, files })
        })
    }

    /// The files that are known among these outputs of the workflow.
    fn outputs(&self, sources: &[Source]) -> Vec<JsonFile<'a>> {
        let files = sources.iter();
        files.filter_map(|it| Some(self.file(None, self.0.name(*it)?, *it))).collect()
    }

    fn file(&self, name: Option<&'a str>, file: String, source: Source) -> JsonFile<'a> {
        JsonFile::new(name, file, self.0.digest(source), self.0.is_there(source))
    }

    /// Prints that a call is over.
    fn ended(&self, call: CallId, out: &mut dyn Write) -> io::Result<()> {
        let Some(ended) = self.0.outcome(call) else {
            return Ok(());
        };
        let (of, outputs) = (self.identify(call), self.call(call, ended.name()));
        let (outcome, reason) = (ended.how(), ended.reason());
        let failure = ended.failure();
        let log = failure.and_then(|it| it.log.as_ref()).map(|log| log.name.as_str());
        let hint = failure.and_then(|it| it.hint.as_deref());
        let remembered = match ended {
            Outcome::Absent(_, Absence::Missing(prior)) => prior.into(),
            _ => JsonAttempt::default(),
        };
        let made = JsonMade::new(self.0, call, ended);
        json_line(
            &EventLine::Ended { of, outcome, outputs, made, reason, log, hint, remembered },
            out,
        )
    }
}

impl Reporter for Json<'_> {
    fn event(&mut self, event: &Event, out: &mut dyn Write) -> io::Result<()> {
        match event {
            Event::Queued(call, _) => {
                json_line(&EventLine::Queued { of: self.identify(*call) }, out)
            }
            Event::Started(call, name, prior) => {
                let (of, mut outputs) = (self.identify(*call), self.call(*call, name));
                for output in &mut outputs {
                    // The evaluation may be ahead of the reported events.
                    (output.sha1, output.there) = (None, false);
                }
                json_line(&EventLine::Started { of, outputs, remembered: prior.into() }, out)
            }
            Event::Retried(call, outcome) => {
                let reason = outcome.reason().unwrap_or_default();
                json_line(&EventLine::Retried { of: self.identify(*call), reason }, out)
            }
            Event::Held(call, _, Holder { host, process, .. }) => {
                let (of, process) = (self.identify(*call), *process);
                json_line(&EventLine::Waiting { of, host, process }, out)
            }
            Event::Suspended(call, name, suspended) => {
                let (of, outputs) = (self.identify(*call), self.call(*call, name));
                json_line(&EventLine::Suspended { of, outputs, reason: suspended.to_string() }, out)
            }
            Event::Unsettled(call, name) => {
                let (of, outputs) = (self.identify(*call), self.call(*call, name));
                json_line(&EventLine::Unsettled { of, outputs }, out)
            }
            Event::Expanded(call, _) => {
                let (all, tables) = (self.0.plan.calls().len(), self.0.plan.sweeps().len());
                let calls = all.saturating_sub(tables);
                let rows = self.0.plan.gathered(*call).and_then(PlannedSweep::rows);
                let points = rows.map_or(0, |rows| rows.points.len());
                json_line(
                    &EventLine::Expanded { of: self.identify(*call), points, calls, tables },
                    out,
                )
            }
            Event::Hashing(..) | Event::Sealed(_) => Ok(()),
            Event::Demanded(call) => {
                json_line(&EventLine::Demanded { of: self.identify(*call) }, out)
            }
            Event::Ended(call) => self.ended(*call, out),
        }
    }

    fn end(
        &mut self,
        jobs: &[Option<ResultName>],
        exit: Exit,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let plan = &self.0.plan;
        let points = plan.jobs().and_then(PlannedSweep::rows).map(|rows| {
            let points = rows.iter().enumerate().map(|(number, (point, sources))| JsonJob {
                point,
                outputs: self.outputs(sources),
                job: job_outputs(jobs.get(number), sources.len()),
            });
            points.collect()
        });
        let sources = if points.is_some() { Vec::new() } else { plan.asked_outputs(&self.0.task) };
        let job = job_outputs(jobs.first().filter(|_| points.is_none()), sources.len());
        let (outputs, trees) = (self.outputs(&sources), self.trees().collect());
        let (Totals { calls: tally, tables, at_least }, exit) = (totals(self.0), exit.code());
        let tables = (tables.calls > 0).then_some(tables);
        json_line(
            &EventLine::End { trees, outputs, job, points, tally, tables, at_least, exit },
            out,
        )
    }
}

/// The names of the outputs of a job, if they were stored.
fn job_outputs(job: Option<&Option<ResultName>>, count: usize) -> Option<Vec<String>> {
    let job = job?.as_ref()?;
    Some((0..count).map(|number| job.output(number)).collect())
}

/// The identity of a call.
#[derive(Serialize)]
pub(super) struct JsonCall<'a> {
    call: usize,
    /// `table`, unless it is a call of a computation.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    computation: Option<&'a str>,
    label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<usize>,
    #[serde(skip_serializing_if = "PointNames::is_empty")]
    point: PointNames<'a>,
}

/// The names that a call depends on, with their texts.
struct PointNames<'a>(Vec<(&'a str, &'a str)>);

/// The inputs, the duration and the host of a call: the rest is in its record.
#[derive(Default, Serialize)]
pub(super) struct JsonMade {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reads: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<SharedText>,
}

impl PointNames<'_> {
    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for PointNames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

impl<'a> JsonCall<'a> {
    pub(super) fn new(evaluation: &'a Evaluation, call: CallId) -> Self {
        let Evaluation { task, plan, .. } = evaluation;
        let gathered = plan.gathered(call);
        let around = plan.call(call).point.map(|point| plan.sweep(point.sweep));
        Self {
            call: call.index(),
            kind: gathered.map(|_| "table"),
            computation: evaluation.computation(call).map(|it| it.name.as_str()),
            label: evaluation.label_path(call).unwrap_or_else(|| ROOT_LABEL.to_owned()),
            sweep: gathered.or(around).map(|it| it.sweep.index()),
            point: PointNames(plan.point(task, call)),
        }
    }
}

impl JsonMade {
    /// Returns the facts about a call that is over. Its duration and its host are given only if this run has executed it.
    pub(super) fn new(evaluation: &Evaluation, call: CallId, outcome: &Outcome) -> Self {
        if evaluation.computation(call).is_none() {
            return Self::default();
        }
        let sources = evaluation.plan.inputs(call);
        let reads = sources.iter().filter_map(|source| evaluation.name(*source)).collect();
        let Some(record) = evaluation.executed_record(outcome) else {
            return Self { reads, ..Self::default() };
        };
        let (seconds, host) = (record.seconds(), record.recorded.map(|it| it.host));
        Self { reads, seconds, host }
    }
}

/// A sweep of a task.
#[derive(Serialize)]
pub(super) struct JsonSweep<'a> {
    sweep: usize,
    label: &'a str,
    place: &'a Path,
    factors: Vec<JsonFactor<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replicates: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    computed: bool,
    points: Option<usize>,
}

/// A factor of a sweep.
#[derive(Serialize)]
struct JsonFactor<'a> {
    names: &'a [String],
    levels: usize,
}

/// The sweeps of a task. The number of points is not known if they are computed.
pub(super) fn json_sweeps(evaluation: &Evaluation) -> Vec<JsonSweep<'_>> {
    let Evaluation { task, plan, .. } = evaluation;
    let points: HashMap<SweepId, usize> =
        plan.sweeps().filter_map(|it| Some((it.sweep, it.rows()?.points.len()))).collect();
    let mut sweeps: Vec<(SweepId, bool)> = (task.workflow.nodes())
        .filter_map(|(_, node)| match node {
            Node::Sweep { sweep, inputs, .. } => Some((*sweep, inputs.len() > 1)),
            _ => None,
        })
        .collect();
    sweeps.sort_unstable();
    sweeps.dedup();
    let sweeps = sweeps.into_iter().map(|(id, computed)| {
        let rules = &task.sweeps[id.index()];
        let factors = rules.product.factors.iter();
        let replicates = rules.product.replicates.as_ref();
        let until = replicates.filter(|it| it.until.is_some());
        let factors =
            factors.map(|it| JsonFactor { names: it.points.names(), levels: it.points.len() });
        JsonSweep {
            sweep: id.index(),
            label: &rules.label,
            place: &rules.place,
            factors: factors.collect(),
            replicates: replicates.map(Replicates::least),
            until: until.map(Replicates::to_string),
            computed,
            points: points.get(&id).copied().filter(|_| !computed),
        }
    });
    sweeps.collect()
}

#[derive(Serialize)]
struct TaskLine<'a> {
    task: &'a str,
    commit: &'a str,
    inputs: Vec<&'a str>,
    calls: usize,
    at_least: bool,
    tables: usize,
    computations: usize,
    outputs: usize,
}

/// Prints one object about a task: its name and commit, its inputs, and the numbers of the rest.
pub fn checked_json(task: &Task, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let tables = plan.sweeps().len();
    let line = TaskLine {
        task: task.name.as_str(),
        commit: task.commit.full(),
        inputs: task.inputs.iter().map(InputName::as_str).collect(),
        calls: plan.calls().len() - tables,
        at_least: plan.grows(),
        tables,
        computations: task.computations.len(),
        outputs: plan.outputs().len(),
    };
    json_line(&line, out)
}
