//! Choosing one of the sweeps of a task by its name.

use ce_evaluate::Evaluation;
use ce_model::exit::Explain;
use ce_model::hints::nearest;
use ce_model::plan::{CallId, Operation, PlannedSweep};
use ce_model::task::{Node, NodeId, SweepId, Task};

/// A sweep of a task: its rules and its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepChoice {
    sweep: SweepId,
    body: NodeId,
}

/// Why no sweep is chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SweepChoiceError {
    /// There is none.
    #[error("the task {0} has no sweep")]
    None(String),
    /// There is none, and one is named.
    #[error("the task {task} has no sweep, so none is called {name}")]
    NoneNamed {
        /// The name of the task.
        task: String,
        /// The name that was given.
        name: String,
    },
    /// Several could be meant; their names.
    #[error("the task has several sweeps: {}", .0.join(", "))]
    Several(Vec<String>),
    /// None has this name.
    #[error("the task has no sweep {name}; there are {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
        /// The names that there are.
        known: Vec<String>,
    },
}

impl Explain for SweepChoiceError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::None(_) => "give --each or --points to see the jobs of these points".to_owned(),
            Self::NoneNamed { .. } => {
                "leave out --sweep: --each and --points alone show the jobs of their points"
                    .to_owned()
            }
            Self::Several(_) => "choose one with --sweep, by its label or its directory".to_owned(),
            Self::Unknown { nearest: Some(name), .. } => format!("did you mean {name}?"),
            Self::Unknown { nearest: None, .. } => {
                "give --sweep a label, a directory, or the computation of a body".to_owned()
            }
        };
        Some(hint)
    }
}

/// Chooses the sweep of a task with this label, directory, or computation of its body; without a name, the only one. The
/// one over the task's own inputs comes first.
///
/// # Errors
///
/// Fails if there is none, or more than one.
pub fn choose_sweep(task: &Task, name: Option<&str>) -> Result<SweepChoice, SweepChoiceError> {
    let mut sweeps = all_sweeps(task);
    let over_inputs = sweeps.iter().find(|it| !task.sweeps[it.sweep.index()].has_table).copied();
    let Some(name) = name else {
        return match (over_inputs, &sweeps[..]) {
            (Some(jobs), _) => Ok(jobs),
            (None, [only]) => Ok(*only),
            (None, []) => Err(SweepChoiceError::None(task.name.to_string())),
            (None, several) => Err(SweepChoiceError::Several(titles(task, several))),
        };
    };
    sweeps.retain(|it| Some(*it) != over_inputs);
    let directory = name.trim_end_matches('/');
    let found: Vec<SweepChoice> = sweeps
        .iter()
        .filter(|it| it.names(task).iter().any(|known| known == name || known == directory))
        .copied()
        .collect();
    match &found[..] {
        [only] => Ok(*only),
        [] if sweeps.is_empty() => {
            Err(SweepChoiceError::NoneNamed { task: task.name.to_string(), name: name.to_owned() })
        }
        [] => {
            let all: Vec<String> = sweeps.iter().flat_map(|it| it.names(task)).collect();
            let (nearest, known) = (nearest(name, &all), titles(task, &sweeps));
            Err(SweepChoiceError::Unknown { name: name.to_owned(), nearest, known })
        }
        several => Err(SweepChoiceError::Several(titles(task, several))),
    }
}

/// All sweeps of a task, in the order of its workflow.
pub fn all_sweeps(task: &Task) -> Vec<SweepChoice> {
    let mut sweeps: Vec<SweepChoice> = Vec::new();
    for (_, node) in task.workflow.nodes() {
        if let Node::Sweep { sweep, inputs, .. } = node {
            let choice = SweepChoice { sweep: *sweep, body: inputs[0].node };
            if !sweeps.contains(&choice) {
                sweeps.push(choice);
            }
        }
    }
    sweeps
}

fn titles(task: &Task, sweeps: &[SweepChoice]) -> Vec<String> {
    let mut titles = Vec::with_capacity(sweeps.len());
    for sweep in sweeps {
        titles.push(match sweep.names(task).split_first() {
            Some((first, [])) => first.clone(),
            Some((first, others)) => format!("{first} (or {})", others.join(", ")),
            None => String::new(),
        });
    }
    titles
}

impl SweepChoice {
    /// Its first name: its label if it has one. That of a task's own inputs may have none, which is an empty text.
    pub fn title(self, task: &Task) -> String {
        self.names(task).into_iter().next().unwrap_or_default()
    }

    /// The short names of its tables in the storage, which need not be there.
    pub fn tables(self, evaluation: &Evaluation) -> Vec<String> {
        let outcomes = self.planned(evaluation).into_iter();
        let outcomes = outcomes.filter_map(|(call, _)| evaluation.outcome(call));
        outcomes.map(|outcome| outcome.name().short()).collect()
    }

    /// Its label, its directory, and the computation of its body, each once.
    pub fn names(self, task: &Task) -> Vec<String> {
        let rules = &task.sweeps[self.sweep.index()];
        let body = match &task.workflow[self.body] {
            Node::Computation { computation, .. } => computation.written(task).to_owned(),
            _ => String::new(),
        };
        let place = rules.place.display().to_string();
        let names = [rules.label.to_string(), place, body];
        let mut different: Vec<String> = Vec::with_capacity(names.len());
        for name in names {
            if !name.is_empty() && !different.contains(&name) {
                different.push(name);
            }
        }
        different
    }

    /// The calls that gather it, one for each point of the sweeps around it that it depends on, in the order of these.
    pub(super) fn planned(self, evaluation: &Evaluation) -> Vec<(CallId, &PlannedSweep)> {
        let calls = evaluation.plan.calls().filter_map(|(call, planned)| {
            let Operation::Sweep(id) = planned.operation else { return None };
            let sweep = evaluation.plan.sweep(id);
            (sweep.sweep == self.sweep && sweep.body == self.body).then_some((call, sweep))
        });
        let mut calls: Vec<_> = calls.collect();
        evaluation.plan.in_table_order(&evaluation.task, &mut calls);
        calls
    }

    /// Whether it may be planned more often than it is: the points of a sweep around it are not known.
    pub(super) fn is_unplanned(self, evaluation: &Evaluation) -> bool {
        evaluation.plan.grows() && self.planned(evaluation).is_empty()
    }
}
