//! The short texts that calls read: which point of a sweep, or which values of a task's inputs, a call is for.
//!
//! A record names no point, since a call may be at many. But a call gets each text as an input.

use std::collections::{HashMap, HashSet};
use std::iter;

use ce_model::digest::Digest;
use ce_storage::records::{CallRecord, Origin};
use ce_storage::{Entry, Inputs, Record, ResultName, Storage, Survey, Suspension};
use rayon::iter::{IntoParallelRefIterator, ParallelExtend, ParallelIterator};
use serde::{Serialize, Serializer};

use crate::Subject;
use crate::input_roles::levels;

/// The inputs of a call that are short texts, each with its name: that of the computation's input, or its number if
/// that is not known any more. In the order of the inputs. Its JSON is an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputTexts(Vec<(String, String)>);

impl InputTexts {
    /// The names and texts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (&**name, &**text))
    }
}

impl Serialize for InputTexts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// The short texts that the call of a file reads; none if it is of no call.
pub fn texts(storage: &Storage, subject: Subject<'_>) -> InputTexts {
    match subject.record {
        Record::Call(call) => {
            let inputs = may_be_texts(call);
            let calls = iter::once((&*inputs, matches!(call.origin, Origin::Shared(_))));
            TextsOfCalls::read(storage, calls).of(storage, &subject.entry.short(), &inputs)
        }
        Record::Job(_) | Record::Table(_) | Record::TaskInput(_) => InputTexts::default(),
    }
}

/// The short texts that each of these suspended calls reads.
pub fn suspended_texts(storage: &Storage, calls: &[Suspension]) -> Vec<InputTexts> {
    let inputs: Vec<Vec<Option<Digest>>> = calls
        .iter()
        .map(|call| {
            call.record
                .inputs
                .iter()
                .map(|value| match Entry::of_file(&value.name) {
                    Some(Entry::TaskInput(_)) => Some(value.value.digest),
                    _ => None,
                })
                .collect()
        })
        .collect();
    let known = TextsOfCalls::read(storage, inputs.iter().map(|inputs| (&**inputs, false)));
    calls
        .iter()
        .zip(&inputs)
        .map(|(call, inputs)| {
            let named = call.record.input_names.iter().zip(inputs);
            InputTexts(
                named
                    .filter_map(|(name, input)| {
                        Some((name.clone(), known.texts.get(input.as_ref()?)?.clone()))
                    })
                    .collect(),
            )
        })
        .collect()
}

/// The inputs of a call that may be texts, each in its place: not those that are known as outputs of other calls, which
/// may have the contents of a text by accident.
pub(super) fn may_be_texts(call: &CallRecord) -> Vec<Option<Digest>> {
    let argv = call.execution().map(|execution| &*execution.argv).unwrap_or_default();
    let mut texts = Vec::with_capacity(call.inputs.len());
    for (at, input) in call.inputs.iter().enumerate() {
        let maker = argv.get(at + 1).and_then(|name| Entry::of_file(name));
        let is_made = maker.is_some_and(|entry| !matches!(entry, Entry::TaskInput(_)));
        texts.push((!is_made).then_some(*input));
    }
    texts
}

/// The texts of several calls. Each text, and the names of each version of a computation, are read once.
#[derive(Debug, Default)]
pub(super) struct TextsOfCalls {
    texts: HashMap<Digest, String>,
    /// The names of inputs, by the directory of the version.
    names: HashMap<String, Option<Vec<String>>>,
}

impl TextsOfCalls {
    /// Reads what may be a text of the inputs of calls. Each call comes with whether it is from another storage: its levels may
    /// be no task inputs here, and then a table may have their texts.
    pub(super) fn read<'a>(
        storage: &Storage,
        calls: impl Iterator<Item = (&'a [Option<Digest>], bool)>,
    ) -> Self {
        let mut different: HashMap<Digest, bool> = HashMap::new();
        for (inputs, is_shared) in calls {
            for digest in inputs.iter().flatten() {
                *different.entry(*digest).or_default() |= is_shared;
            }
        }
        let inputs = storage.inputs();
        let mut texts: HashMap<Digest, String> = different
            .par_iter()
            .filter_map(|(digest, _)| Some((*digest, inputs.short_text(digest)?)))
            .collect();
        // Those that may be levels.
        let mut unknown: HashSet<Digest> = HashSet::new();
        for (digest, is_shared) in different {
            if is_shared
                && !texts.contains_key(&digest)
                && !digest.is_directory()
                && digest.size <= Inputs::SHORT_TEXT
                && inputs.lacks(&digest)
            {
                unknown.insert(digest);
            }
        }
        if !unknown.is_empty() {
            let sizes = unknown.iter().map(|it| it.size).collect();
            let tables = Survey::new(storage).tables().unwrap_or_default();
            let levels = tables.par_iter().filter_map(|table| levels(storage, table, &sizes).ok());
            // A pulled recipe is untrusted: anybody who can push may have written it.
            let levels = levels
                .flatten_iter()
                .filter(|(_, text, digest)| unknown.contains(digest) && Inputs::is_line(text));
            texts.par_extend(levels.map(|(_, text, digest)| (digest, text)));
        }
        Self { texts, names: HashMap::new() }
    }

    /// The texts that a call reads, by its short name and [what may be texts](may_be_texts).
    pub(super) fn of(
        &mut self,
        storage: &Storage,
        call: &str,
        inputs: &[Option<Digest>],
    ) -> InputTexts {
        if !inputs.iter().flatten().any(|input| self.texts.contains_key(input)) {
            return InputTexts::default();
        }
        let directory = call.rsplit_once('/').map_or(call, |(directory, _)| directory);
        if !self.names.contains_key(directory) {
            let names =
                ResultName::of_short(call).and_then(|call| storage.calls().input_names(&call));
            self.names.insert(directory.to_owned(), names);
        }
        let names = self.names[directory].as_ref().filter(|names| names.len() == inputs.len());
        let mut texts = Vec::new();
        for (at, input) in inputs.iter().enumerate() {
            if let Some(text) = input.as_ref().and_then(|input| self.texts.get(input)) {
                let name = names.map_or_else(|| format!("{at:02}"), |names| names[at].clone());
                texts.push((name, text.clone()));
            }
        }
        InputTexts(texts)
    }
}
