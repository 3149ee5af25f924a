//! The nodes of a workflow that is loaded, and what they refer to.

use std::path::PathBuf;

use super::branch::Branch;
use super::library::Library;
use super::maker::Maker;
use super::own_files::OwnFiles;
use super::problems::{LoadFault, Problems};
use super::resources::{SharedLines, WrittenLine};
use super::source::{Identity, TaskSource};
use super::task_trees::TaskTrees;
use super::warnings::WarningKind;
use ce_model::expand::{ScopeId, Scopes};
use ce_model::task::name::InputName;
use ce_model::task::slice::Slice;
use ce_model::task::sweep::Sweep;
use ce_model::task::workflow::{Builder, FreeNames, Node, NodeId, TaskParts, TaskResources};

/// Makes nodes of the files of directories.
pub(super) struct NodeReader<'a, 'b, S: TaskSource> {
    pub(super) inputs: Option<&'a [InputName]>,
    pub(super) files: &'a mut OwnFiles,
    pub(super) trees: &'a mut TaskTrees,
    pub(super) library: &'a mut Library<'b, S>,
    pub(super) findings: &'a mut Problems,
    pub(super) builder: Builder,
    /// The free names of the nodes.
    pub(super) free: FreeNames,
    pub(super) scopes: Scopes,
    pub(super) sweeps: Vec<Sweep>,
    /// The inputs of each of these: sweeps of the same rules and inputs are one, whatever their labels.
    pub(super) sweep_inputs: Vec<Vec<NodeId>>,
    /// The lines of `resources` that are for several nodes.
    pub(super) shared: SharedLines,
    pub(super) resources: TaskResources,
}

/// A node whose inputs are being read.
pub(super) struct OpenNode<D> {
    pub(super) dir: D,
    /// The directory of the branches.
    pub(super) inputs: Option<D>,
    pub(super) id: Identity,
    pub(super) scope: ScopeId,
    /// The scope of its first input: the body of a sweep has its own.
    pub(super) first_scope: ScopeId,
    pub(super) maker: Option<Maker>,
    pub(super) slice: Option<Slice>,
    /// The lines of its file `resources`.
    pub(super) resources: Vec<WrittenLine>,
    pub(super) branches: Vec<Branch>,
    pub(super) nodes: Vec<Option<NodeId>>,
}

impl<'a, 'b, S: TaskSource> NodeReader<'a, 'b, S> {
    pub(super) fn new(
        inputs: Option<&'a [InputName]>,
        (files, trees, shared): (&'a mut OwnFiles, &'a mut TaskTrees, SharedLines),
        library: &'a mut Library<'b, S>,
        findings: &'a mut Problems,
    ) -> Self {
        Self {
            inputs,
            files,
            trees,
            library,
            findings,
            builder: Builder::default(),
            free: FreeNames::default(),
            scopes: Scopes::default(),
            sweeps: Vec::new(),
            sweep_inputs: Vec::new(),
            shared,
            resources: TaskResources::default(),
        }
    }

    /// The path of an entry in a directory, relative to the task.
    pub(super) fn path(&self, dir: &S::Dir, name: &str) -> PathBuf {
        let place = self.library.source.place(dir);
        if name.is_empty() { place } else { place.join(name) }
    }

    pub(super) fn problem(&mut self, dir: &S::Dir, name: &str, fault: impl Into<LoadFault>) {
        let path = self.path(dir, name);
        self.findings.problem(&path, fault);
    }

    pub(super) fn warning(&mut self, dir: &S::Dir, name: &str, oddity: WarningKind) {
        let path = self.path(dir, name);
        self.findings.warning(&path, oddity);
    }

    /// Returns the value of a result, or adds its problem.
    pub(super) fn note<T>(
        &mut self,
        dir: &S::Dir,
        name: &str,
        result: Result<T, LoadFault>,
    ) -> Option<T> {
        result.map_err(|fault| self.problem(dir, name, fault)).ok()
    }

    /// Returns the node equal to this one.
    pub(super) fn intern(&mut self, node: Node) -> NodeId {
        let id = self.builder.intern(node);
        if id.index() == self.free.len() {
            let inputs = self.inputs.unwrap_or_default().len();
            let (files, trees) = (self.files.all(), self.trees.all());
            let parts = TaskParts { inputs, files, trees, sweeps: &self.sweeps };
            self.free.add(&self.builder[id], parts);
        }
        id
    }
}
