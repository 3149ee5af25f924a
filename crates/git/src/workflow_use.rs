//! What workflows may read, as far as that decides which results they may use: computations, texts, files of the storage.
//!
//! It is a superset: conditions, excluded points and slices do not count, and a name in braces stands for any text. Pure.

use std::collections::{HashMap, HashSet};

use ce_model::expression::{ExpressionNode, NodeKind, Parsed};
use ce_model::sweep::{FACTORS, REPLICATES, read_replicates};
use ce_model::template::may_be;

/// The largest number of replicates whose numbers are known as texts.
const MAX_REPLICATES: u32 = 1_000_000;

/// Where the inputs of a computation may come from, beside texts, files of the task and results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenInputs {
    /// From the user, or from values that only an evaluation knows: inputs of the task, computed points, Git trees.
    pub given: bool,
    /// From files of the storage that the workflow names.
    pub literals: bool,
}

impl OpenInputs {
    fn add(&mut self, other: Self) {
        self.given |= other.given;
        self.literals |= other.literals;
    }
}

/// The part of a workflow that decides together which results it may use.
#[derive(Debug, Default)]
pub(crate) struct WorkflowUse {
    computations: HashSet<Box<str>>,
    open: OpenInputs,
}

impl WorkflowUse {
    /// Notes that inputs may come from values that only an evaluation knows.
    pub(crate) const fn set_given(&mut self, given: bool) {
        self.open.given |= given;
    }
}

/// What all workflows of some commits may read.
#[derive(Debug, Default)]
pub(crate) struct WorkflowUses {
    /// The computations that are called, as they are written, and where their inputs may come from.
    computations: HashMap<Box<str>, OpenInputs>,
    /// The contents of texts and levels; texts with braces are patterns.
    texts: HashSet<Box<str>>,
    text_patterns: HashSet<Box<str>>,
    members: HashSet<Box<str>>,
    literals: HashSet<Box<str>>,
}

impl WorkflowUses {
    /// Adds the text of a workflow.
    pub(crate) fn add_parsed(&mut self, parsed: &Parsed<'_>) {
        let mut workflow = WorkflowUse::default();
        workflow.set_given(parsed.text.inputs.as_ref().is_some_and(|inputs| !inputs.is_empty()));
        for node in parsed.text.expression.nodes() {
            self.add_node(&mut workflow, node);
        }
        self.literals.extend(parsed.literals.iter().cloned());
        self.add_workflow(workflow);
    }

    fn add_node(&mut self, workflow: &mut WorkflowUse, node: &ExpressionNode) {
        self.add_value(workflow, node.kind, &node.value);
        match node.kind {
            NodeKind::Sweep if node.inputs.len() > 1 => workflow.open.given = true,
            _ => {}
        }
        for file in &node.files {
            if *file.name == *REPLICATES {
                file.rows.iter().flatten().for_each(|line| self.add_replicates(line));
            } else if file.factor().is_some() {
                file.rows.iter().flatten().for_each(|level| self.add_level(level));
            }
        }
    }

    /// Adds the value of a node, unless it cannot be one. The place of a text is its contents.
    pub(crate) fn add_value(&mut self, workflow: &mut WorkflowUse, kind: NodeKind, value: &str) {
        let Ok(value) = kind.value(value) else { return };
        match kind {
            NodeKind::Computation => drop(workflow.computations.insert(value)),
            NodeKind::Text if value.contains('{') => {
                self.text_patterns.insert(value);
            }
            NodeKind::Text => drop(self.texts.insert(value)),
            NodeKind::Member => drop(self.members.insert(value)),
            NodeKind::Literal => {
                workflow.open.literals = true;
                self.literals.insert(value);
            }
            NodeKind::Points | NodeKind::Tree => workflow.open.given = true,
            // Blobs of reachable commits are known by their ids, levels by the files of a sweep, and inputs by the list of their names: others
            // are bound.
            NodeKind::File | NodeKind::Input | NodeKind::All | NodeKind::Sweep => {}
        }
    }

    /// Adds a level of a factor: an input that is bound to it is a file with this line.
    pub(crate) fn add_level(&mut self, level: &str) {
        if !self.texts.contains(&*format!("{level}\n")) {
            self.texts.insert(format!("{level}\n").into());
        }
    }

    /// Adds the numbers of replicates.
    pub(crate) fn add_replicates(&mut self, line: &str) {
        let most = read_replicates(line.trim()).map_or(0, |replicates| replicates.most.get());
        (1..=most.min(MAX_REPLICATES)).for_each(|number| self.add_level(&number.to_string()));
    }

    /// Adds a workflow after all its nodes.
    pub(crate) fn add_workflow(&mut self, workflow: WorkflowUse) {
        for computation in workflow.computations {
            self.computations.entry(computation).or_default().add(workflow.open);
        }
    }

    /// Where the inputs of a computation may come from; `None` if no workflow calls it.
    pub(crate) fn open_inputs(&self, computation: &str) -> Option<OpenInputs> {
        let mut open = self.computations.get(computation).copied();
        for (name, more) in &self.computations {
            if name.contains('{') && may_be(name, computation) {
                open.get_or_insert_default().add(*more);
            }
        }
        open
    }

    /// The contents of texts without a name in braces.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }

    /// Whether contents may come from a text with names in braces.
    pub(crate) fn may_be_text(&self, contents: &str) -> bool {
        self.text_patterns.iter().any(|pattern| may_be(pattern, contents))
    }

    /// Whether texts have names in braces.
    pub(crate) fn has_open_texts(&self) -> bool {
        !self.text_patterns.is_empty()
    }

    /// The paths of members that are read, as they are written.
    pub(crate) fn members(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|path| &**path)
    }

    /// The names in the storage that are read, as they are written.
    pub(crate) fn literals(&self) -> impl Iterator<Item = &str> {
        self.literals.iter().map(|name| &**name)
    }
}

/// The words of a text that cannot be parsed: the parts between white space, quotes, brackets and similar characters.
pub(crate) fn words(contents: &[u8]) -> impl Iterator<Item = &str> {
    let is_end = |byte: &u8| {
        byte.is_ascii_whitespace() || byte.is_ascii_control() || b"'\"`()[]<>,;=".contains(byte)
    };
    let words = contents.split(is_end).filter_map(|word| std::str::from_utf8(word).ok());
    words.filter(|word| word.contains('/'))
}

/// The levels in a file of factors in any form: its lines, and their cells.
pub(crate) fn levels(contents: &str) -> impl Iterator<Item = &str> {
    let lines = contents.trim_start_matches('\u{feff}').lines();
    let cells = lines.flat_map(|line| std::iter::once(line.trim()).chain(line.split('\t')));
    cells.filter(|cell| !cell.is_empty())
}

/// Whether a directory of this name has the factors of the node around it.
pub(crate) fn is_factors(name: &std::ffi::OsStr) -> bool {
    name == FACTORS
}

#[cfg(test)]
mod tests {
    use ce_model::expression::parse;

    use super::*;

    fn uses(texts: &[&str]) -> WorkflowUses {
        let mut uses = WorkflowUses::default();
        for text in texts {
            uses.add_parsed(&parse(text).unwrap());
        }
        uses
    }

    #[test]
    fn computations_have_open_inputs_where_workflows_pass_inputs_on() {
        let uses = uses(&[
            "Inputs: x\n(a (b x))",
            "(b (c 'text'))",
            "(d FILE('tinputs/5d/9474c0309b'))",
            "SWEEP((e-{n} n) :over n '1' '2')",
            "SWEEP((g n) OWN('sheet.tsv') :names 'n')",
        ]);
        let open = |name: &str| uses.open_inputs(name).map(|it| [it.given, it.literals]);
        assert_eq!(open("a"), Some([true, false]));
        assert_eq!(open("b"), Some([true, false]));
        assert_eq!(open("c"), Some([false, false]));
        assert_eq!(open("d"), Some([false, true]));
        assert_eq!(open("e-7"), Some([false, false]));
        assert_eq!(open("g"), Some([true, false]));
        assert_eq!(open("h"), None);
        assert_eq!(uses.literals().collect::<Vec<_>>(), ["tinputs/5d/9474c0309b"]);
    }

    #[test]
    fn texts_levels_and_replicate_numbers_may_be_contents_of_inputs() {
        let uses = uses(&[
            "SWEEP((a n m TEXT('x={n}') replicate 'const') :over n 1..3 :over m 'big' :replicates 2)",
        ]);
        let mut texts: Vec<&str> = uses.texts().collect();
        texts.sort_unstable();
        assert_eq!(texts, ["1\n", "2\n", "3\n", "big\n", "const\n"]);
        assert!(uses.may_be_text("x=3\n") && !uses.may_be_text("y=3\n"));
    }

    #[test]
    fn words_have_a_slash_and_end_at_punctuation() {
        let text = b"<<<<<<< HEAD\n(g FILE('c_g/{x}/00/_'))\n=\xff c_h/0/00/_, a/b";
        assert_eq!(words(text).collect::<Vec<_>>(), ["c_g/{x}/00/_", "c_h/0/00/_", "a/b"]);
    }
}
