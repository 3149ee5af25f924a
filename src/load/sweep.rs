//! Reading the nodes of sweeps: which names they bind, and whether their rules fit their bodies.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::entries::NodeEntries;
use super::nodes::{NodeReader, OpenNode};
use super::scope::{Scope, ScopeId};
use super::source::TaskSource;
use super::sweep_fault::{MAX_SWEEPS, SweepFault};
use super::sweep_files::{COLUMNS, EXCLUDE, FACTORS, NAMES, REPLICATES, SweepFiles, sweep_files};
use crate::expand::{self, ExclusionFault, FactorFault, ProductFault, REPLICATE};
use crate::task::name::InputName;
use crate::task::sweep::{BoundId, ColumnShape, Product, SWEEP_OUTPUTS, Sweep, TableColumn};
use crate::task::workflow::{Argument, Node, SweepId, TREE_OUTPUTS};

impl<S: TaskSource> NodeReader<'_, '_, S> {
    /// Reads the files of a sweep or a node `points`.
    pub(super) fn sweep_files(
        &mut self,
        dir: &S::Dir,
        entries: &NodeEntries,
        label: &str,
    ) -> SweepFiles {
        let files = sweep_files(self.library.source, dir, &entries.0, self.findings);
        SweepFiles { label: label.into(), ..files }
    }

    /// Reads a node `points`.
    pub(super) fn points(
        &mut self,
        dir: &S::Dir,
        entries: &NodeEntries,
        label: &str,
    ) -> Option<Node> {
        let files = self.sweep_files(dir, entries, label);
        if files.is_wrong {
            return None;
        }
        if files.product.factors.is_empty() {
            self.problem(dir, FACTORS, SweepFault::NoFactors);
            return None;
        }
        if !self.check_product(dir, &files.product) {
            return None;
        }
        let place = self.library.source.place(dir);
        Some(Node::Points(self.add_sweep(Sweep::new(files.label, place, files.product))))
    }

    /// Returns the scope of the body of a sweep, which binds the names of its points. `None` if there are problems without
    /// which the body cannot be read.
    pub(super) fn body_scope(
        &mut self,
        dir: &S::Dir,
        scope: ScopeId,
        files: &SweepFiles,
        is_computed: bool,
    ) -> Option<ScopeId> {
        let Scope { mut bound, is_open, depth } = self.scopes.get(scope).clone();
        if depth == MAX_SWEEPS {
            self.problem(dir, "", SweepFault::TooDeep);
            return None;
        }
        if files.is_wrong {
            return None;
        }
        let opens = is_computed && files.names.is_none();
        let has_factors = !files.product.factors.is_empty();
        let wrong = match () {
            () if is_computed && has_factors => Some((FACTORS, SweepFault::TwoKinds)),
            () if !is_computed && !has_factors && files.product.replicates.is_none() => {
                Some(("", SweepFault::NoPoints))
            }
            () if !is_computed && files.names.is_some() => Some((NAMES, SweepFault::Names)),
            () if opens && is_open => Some(("", SweepFault::Ambiguous)),
            () if !is_computed && !self.check_product(dir, &files.product) => return None,
            () => None,
        };
        if let Some((file, fault)) = wrong {
            self.problem(dir, file, fault);
            return None;
        }
        let mut is_wrong = false;
        for (name, file) in named(files) {
            match self.bind(scope, &name) {
                Ok(name) => bound.push(name),
                Err(fault) => {
                    is_wrong = true;
                    self.findings.problem(&self.library.source.place(dir).join(file), fault);
                }
            }
        }
        bound.sort_unstable();
        bound.dedup();
        let body = Scope { bound, is_open: is_open || opens, depth: depth + 1 };
        (!is_wrong).then(|| self.scopes.enter(body))
    }

    /// Returns a name that a sweep in this scope may bind.
    fn bind(&mut self, scope: ScopeId, name: &str) -> Result<BoundId, SweepFault> {
        let shadow = || SweepFault::Shadow(name.to_owned());
        let parsed: InputName = name.parse().map_err(|_| SweepFault::NoName(name.to_owned()))?;
        if self.inputs.unwrap_or_default().contains(&parsed) {
            return Err(shadow());
        }
        let id = self.scopes.name(parsed);
        if self.scopes.get(scope).bound.contains(&id) { Err(shadow()) } else { Ok(id) }
    }

    /// Checks that rules without computed points make some. Adds their problems otherwise.
    fn check_product(&mut self, dir: &S::Dir, product: &Product) -> bool {
        let place = self.library.source.place(dir);
        let faults = expand::points(product).err().unwrap_or_default();
        for fault in &faults {
            let (path, line) = file_of(&place, product, fault);
            self.findings.problem_in_line(&path, line, SweepFault::Product(fault.clone()));
        }
        faults.is_empty()
    }

    /// Makes the rules of a sweep of which the inputs were read.
    pub(super) fn sweep(
        &mut self,
        open: &OpenNode<S::Dir>,
        files: &SweepFiles,
        inputs: Box<[Argument]>,
    ) -> Option<(SweepId, Box<[Argument]>)> {
        let [body, points @ ..] = &inputs[..] else {
            self.problem(&open.dir, "inputs", SweepFault::Inputs(inputs.len()));
            return None;
        };
        if points.len() > 1 {
            self.problem(&open.dir, "inputs", SweepFault::Inputs(inputs.len()));
            return None;
        }
        let (width, is_computed) = (self.builder[body.node].width(), !points.is_empty());
        if let [points] = points
            && self.builder[points.node].width() != 1
        {
            let fault = SweepFault::PointsWidth(self.builder[points.node].width());
            self.problem(&open.dir, "inputs", fault);
            return None;
        }
        let binds = self.binds(open, files, body, is_computed)?;
        let columns = match &files.columns {
            Some(columns) => columns.clone(),
            None => self.default_columns(body),
        };
        self.check_columns(open, files, &columns, width).then_some(())?;
        let place = self.library.source.place(&open.dir);
        let sweep = Sweep {
            names: files.names.clone(),
            binds,
            columns,
            has_columns: files.columns.is_some(),
            allow_failed: files.allow_failed,
            ..Sweep::new(files.label.clone(), place, files.product.clone())
        };
        Some((self.add_sweep(sweep), inputs))
    }

    /// Returns the names that a sweep binds. Each factor must be read.
    fn binds(
        &mut self,
        open: &OpenNode<S::Dir>,
        files: &SweepFiles,
        body: &Argument,
        is_computed: bool,
    ) -> Option<Vec<BoundId>> {
        let free: Vec<BoundId> = self.free.of(body.node).to_vec();
        let outside = self.scopes.get(open.scope).bound.clone();
        let is_free = |name: &str| free.iter().any(|id| self.scopes.text(*id) == name);
        let mut unread: Vec<(PathBuf, Vec<String>)> = Vec::new();
        for factor in &files.product.factors {
            let names = factor.points.names();
            if !names.iter().any(|name| is_free(name)) {
                let path = PathBuf::from(FACTORS).join(&*factor.file);
                unread.push((path, names.to_vec()));
            }
        }
        if files.product.replicates.is_some() && !is_free(REPLICATE) {
            unread.push((REPLICATES.into(), vec![REPLICATE.to_owned()]));
        }
        for name in files.names.iter().flatten().filter(|name| !is_free(name)) {
            unread.push((NAMES.into(), vec![name.to_string()]));
        }
        let place = self.library.source.place(&open.dir);
        let is_wrong = !unread.is_empty();
        for (path, names) in unread {
            self.findings.problem(&place.join(path), SweepFault::Unread(names));
        }
        let opens = is_computed && files.names.is_none();
        let listed: HashSet<String> = named(files).map(|(name, _)| name).collect();
        let is_own = |id: &BoundId| match opens {
            true => !outside.contains(id),
            false => listed.contains(self.scopes.text(*id)),
        };
        let binds: Vec<BoundId> = free.iter().copied().filter(is_own).collect();
        let only_replicate = binds.iter().all(|id| self.scopes.text(*id) == REPLICATE);
        if is_computed && only_replicate && !is_wrong {
            self.problem(&open.dir, "inputs", SweepFault::ReadsNothing);
            return None;
        }
        (!is_wrong).then_some(binds)
    }

    /// The columns of a sweep that writes none: one for each output of the body.
    fn default_columns(&self, body: &Argument) -> Vec<TableColumn> {
        let node = &self.builder[body.node];
        let name = |number: u8| match node {
            Node::Computation { computation, .. } => {
                let name = &self.library.get(*computation).outputs[usize::from(number)];
                name.trim_end_matches('/').to_owned()
            }
            Node::Sweep { .. } => SWEEP_OUTPUTS[usize::from(number)].to_owned(),
            Node::Tree { .. } => TREE_OUTPUTS[usize::from(number)].to_owned(),
            _ => "value".to_owned(),
        };
        let column = |(output, number)| TableColumn {
            output,
            shape: ColumnShape::One(name(number).into_boxed_str()),
        };
        (0..).zip(node.numbers()).map(column).collect()
    }

    /// Checks the columns of a table, as far as they are known. Adds their problems.
    fn check_columns(
        &mut self,
        open: &OpenNode<S::Dir>,
        files: &SweepFiles,
        columns: &[TableColumn],
        width: usize,
    ) -> bool {
        let mut seen: HashSet<String> = named(files).map(|(name, _)| name).collect();
        if files.allow_failed {
            seen.insert(expand::STATUS.to_owned());
        }
        let mut faults = Vec::new();
        let mut has_rows = false;
        for (line, TableColumn { output, shape }) in (1..).zip(columns) {
            if usize::from(*output) >= width {
                faults.push((line, SweepFault::NoOutput { count: width, number: *output }));
            }
            match shape {
                ColumnShape::One(name) if !seen.insert(name.to_string()) => {
                    faults.push((line, SweepFault::SameColumn(name.to_string())));
                }
                ColumnShape::Rows if has_rows => faults.push((line, SweepFault::TwoRows)),
                ColumnShape::Rows => has_rows = true,
                ColumnShape::One(_) | ColumnShape::Fields => {}
            }
        }
        let is_right = faults.is_empty();
        let place = self.library.source.place(&open.dir);
        for (line, fault) in faults {
            match files.columns {
                Some(_) => self.findings.problem_in_line(&place.join(COLUMNS), line, fault),
                None => self.findings.problem(&place, fault),
            }
        }
        is_right
    }

    fn add_sweep(&mut self, sweep: Sweep) -> SweepId {
        let known = self.sweeps.iter().position(|it| *it == sweep);
        SweepId::at(known.unwrap_or_else(|| {
            self.sweeps.push(sweep);
            self.sweeps.len() - 1
        }))
    }
}

/// The names that the files of a sweep bind or use as columns, and the file of each.
fn named(files: &SweepFiles) -> impl Iterator<Item = (String, PathBuf)> {
    let factors = files.product.factors.iter().flat_map(|factor| {
        let path = PathBuf::from(FACTORS).join(&*factor.file);
        factor.points.names().iter().map(move |name| (name.clone(), path.clone()))
    });
    let names = files.names.iter().flatten().map(|name| (name.to_string(), NAMES.into()));
    let replicate = files.product.replicates.map(|_| (REPLICATE.to_owned(), REPLICATES.into()));
    factors.chain(names).chain(replicate)
}

/// The file and line that a fault is in; line zero is the whole file.
fn file_of(place: &Path, product: &Product, fault: &ProductFault) -> (PathBuf, usize) {
    let factors = place.join(FACTORS);
    let factor = |number: usize| match product.factors.get(number) {
        Some(factor) => factors.join(&*factor.file),
        None => place.join(REPLICATES),
    };
    match fault {
        ProductFault::Factor(
            FactorFault::NoLevels { factor: number } | FactorFault::SameName { factor: number, .. },
        ) => (factor(*number), 0),
        ProductFault::Factor(_) => (factors, 0),
        ProductFault::Exclusion(ExclusionFault::NoColumn { .. }) => (place.join(EXCLUDE), 1),
        ProductFault::Exclusion(ExclusionFault::NoMatch { row, .. }) => {
            (place.join(EXCLUDE), row + 1)
        }
    }
}
