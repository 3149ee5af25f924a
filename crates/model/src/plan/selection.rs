//! What is asked for, where that is not everything: points of sweeps, and calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::exit::Explain;
use crate::expand::REPLICATE;
use crate::task::name::nearest;
use crate::task::points::SweepPoints;
use crate::task::workflow::{Node, Task};

/// The number of texts that are listed when one of them is missed.
const MAX_LISTED: usize = 10;

/// The points that are asked for: those that have one of the texts of each name, in all sweeps with a column of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PointSelection {
    texts: BTreeMap<String, Vec<Arc<str>>>,
    /// The names of the calls that are asked for, if not all are.
    pub(super) targets: Vec<String>,
}

/// Why a selection cannot be met.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionFault {
    /// No points have a column of this name.
    #[error("no sweep has points with a name {name:?}")]
    NoName {
        /// The name.
        name: String,
        /// The most similar name of a column.
        nearest: Option<String>,
        /// The names of all columns.
        known: Vec<String>,
    },
    /// No call has this name.
    #[error("the task has no call {text:?}")]
    NoTarget {
        /// The name.
        text: String,
        /// Similar names of calls, the most similar first.
        near: Vec<String>,
        /// The names of all calls.
        known: Vec<String>,
    },
    /// No point has this text.
    #[error("no point has {name}={text}")]
    NoText {
        /// The name.
        name: String,
        /// The text.
        text: String,
        /// The texts that points have.
        known: Vec<String>,
    },
}

/// No points have what is asked for.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct SelectionError(pub Vec<SelectionFault>);

impl Explain for SelectionError {
    fn hint(&self) -> Option<String> {
        self.0.first()?.hint()
    }
}

impl Explain for SelectionFault {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoName { nearest: Some(name), .. } => format!("did you mean {name}?"),
            Self::NoName { known, .. } if known.is_empty() => "leave out --where".to_owned(),
            Self::NoName { known, .. } => format!("there are {}", listed(known)),
            Self::NoTarget { near, .. } if !near.is_empty() => {
                format!("did you mean {}?", listed(near))
            }
            Self::NoTarget { known, .. } => format!("there are {}", listed(known)),
            Self::NoText { known, .. } if known.is_empty() => "leave out --where".to_owned(),
            Self::NoText { name, text, known } if text.contains('=') => {
                let known = listed(known);
                format!(
                    "write --where once for each name, and texts of one name as in --where {name}=TEXT,TEXT; there are {name}={known}"
                )
            }
            Self::NoText { name, known, .. } => format!("there are {name}={}", listed(known)),
        };
        Some(hint)
    }
}

/// The first texts, and how many more there are.
fn listed(texts: &[String]) -> String {
    let first = texts[..texts.len().min(MAX_LISTED)].join(", ");
    match texts.len().saturating_sub(MAX_LISTED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The texts of each name that points have, in the order in which they were seen.
pub(super) type SeenTexts = BTreeMap<String, Vec<Arc<str>>>;

/// The names of all factors of sweeps, before any text was seen.
pub(super) fn factor_names(task: &Task) -> SeenTexts {
    let mut seen = SeenTexts::new();
    for (_, node) in task.workflow.nodes() {
        let Node::Sweep { sweep, .. } = node else { continue };
        let product = &task.sweeps[sweep.index()].product;
        let factors = product.factors.iter().flat_map(|factor| factor.points.names());
        seen.extend(factors.map(|name| (name.clone(), Vec::new())));
        seen.extend(product.replicates.map(|_| (REPLICATE.to_owned(), Vec::new())));
    }
    seen
}

/// Returns the texts of each name that points have, as far as they are not computed.
pub fn factor_texts(task: &Task) -> BTreeMap<String, BTreeSet<Arc<str>>> {
    let mut texts = BTreeMap::<_, BTreeSet<_>>::new();
    let factors = task.sweeps.iter().flat_map(|sweep| &sweep.product.factors);
    for points in factors.map(|factor| &factor.points) {
        for (column, name) in points.names().iter().enumerate() {
            texts.entry(name.clone()).or_default().extend(points.levels(column).iter().cloned());
        }
    }
    texts
}

impl PointSelection {
    /// The points with one of these texts of each name.
    pub fn new(wanted: impl IntoIterator<Item = (String, Vec<Arc<str>>)>) -> Self {
        let mut selection = Self::default();
        for (name, texts) in wanted {
            selection.texts.entry(name).or_default().extend(texts);
        }
        selection
    }

    /// The same points of those calls only that have these names, and of all that they need.
    #[must_use]
    pub fn only(self, targets: Vec<String>) -> Self {
        Self { targets, ..self }
    }

    /// Whether everything is asked for.
    pub fn is_everything(&self) -> bool {
        self.texts.is_empty() && self.targets.is_empty()
    }

    /// Returns the points that are asked for, if that are not all. Notes which texts there are.
    pub(super) fn select(&self, points: &SweepPoints, seen: &mut SeenTexts) -> Option<SweepPoints> {
        if self.texts.is_empty() {
            return None;
        }
        let mut wanted: Vec<(usize, Vec<bool>)> = Vec::new();
        for (column, name) in points.names().iter().enumerate() {
            let seen = seen.entry(name.clone()).or_default();
            let Some(texts) = self.texts.get(name) else { continue };
            // Texts of excluded points stay among the levels.
            let mut is_used = vec![false; points.levels(column).len()];
            points.rows().for_each(|row| is_used[row[column] as usize] = true);
            let levels = points.levels(column).iter().zip(is_used);
            for text in levels.filter(|(_, is_used)| *is_used).map(|(text, _)| text) {
                if !seen.contains(text) {
                    seen.push(Arc::clone(text));
                }
            }
            let is_wanted = points.levels(column).iter().map(|text| texts.contains(text));
            wanted.push((column, is_wanted.collect()));
        }
        if wanted.is_empty() {
            return None;
        }
        let is_wanted =
            |row: &[u32]| wanted.iter().all(|(column, levels)| levels[row[*column] as usize]);
        Some(points.filtered(is_wanted))
    }

    /// Whether a name is asked for that no points have had so far.
    pub(super) fn has_unseen(&self, seen: &SeenTexts) -> bool {
        self.texts.keys().any(|name| !seen.contains_key(name))
    }

    /// Returns what is asked for and no points have, when all of them were seen.
    pub(super) fn faults(&self, seen: &SeenTexts) -> Vec<SelectionFault> {
        let mut faults = Vec::new();
        for (name, texts) in &self.texts {
            let Some(there) = seen.get(name) else {
                let known: Vec<String> = seen.keys().cloned().collect();
                let (name, nearest) = (name.clone(), nearest(name, &known));
                faults.push(SelectionFault::NoName { name, nearest, known });
                continue;
            };
            for text in texts.iter().filter(|text| !there.contains(text)) {
                let known = there.iter().map(ToString::to_string).collect();
                let (name, text) = (name.clone(), text.to_string());
                faults.push(SelectionFault::NoText { name, text, known });
            }
        }
        faults
    }
}
