//! Reading the nodes of sweeps: their files, which names they bind, and whether their rules fit their bodies.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use ce_model::name::InputName;
use ce_model::resources::ResourceLines;
use ce_model::sweep::{
    self, BoundId, Condition, DIRECTORY, EXCLUDE, FACTORS, FILES, Factor, Product, RuleProblem,
    ScopeId, Sweep, SweepFault, SweepPoints, SweepRules,
};
use ce_model::task::{Argument, Node, NodeId, SweepId, TaskParts, origins};

use super::nodes::{ColumnUse, NodeMaker, OpenNode};
use super::problems::WarningKind;
use super::source::TaskSource;
use super::written::NodePlace;

/// Whether a text is two whole numbers, the larger one last, with a hyphen or dots between them.
fn is_like_range(text: &str) -> bool {
    let ends = text.split_once("..").or_else(|| text.split_once('-'));
    let ends = ends.map(|(from, to)| [from, to].map(str::parse::<u32>));
    matches!(ends, Some([Ok(from), Ok(to)]) if from < to)
}

impl<'a, S: TaskSource> NodeMaker<'a, '_, S> {
    /// Makes a node `points`.
    pub(super) fn points(
        &mut self,
        place: &NodePlace<'a>,
        label: &str,
        rules: &SweepRules,
    ) -> Option<Node> {
        self.are_right(place, rules.points_problems()).then_some(())?;
        self.warn_of_no_points(place, &rules.product);
        let sweep = Sweep::new(label.into(), place.path(), rules.product.clone());
        Some(Node::Points(self.add_sweep(sweep, &[])))
    }

    /// Returns the scope of the body of a sweep, which binds the names of its points. `None` if there are problems without
    /// which the body cannot be checked.
    pub(super) fn body_scope(
        &mut self,
        place: &NodePlace<'a>,
        scope: ScopeId,
        rules: &SweepRules,
        is_computed: bool,
    ) -> Option<ScopeId> {
        match self.scopes.body(scope, rules, is_computed, self.inputs.unwrap_or_default()) {
            Ok(scope) => Some(scope),
            Err(problems) => {
                self.are_right(place, problems);
                None
            }
        }
    }

    /// Returns rules whose condition reads the inputs of the task that it names. `None` if one has no choices, which is a problem unless
    /// points that are computed may have the name.
    pub(super) fn read_inputs(
        &mut self,
        id: NodeId,
        place: &NodePlace<'a>,
        mut rules: Rc<SweepRules>,
    ) -> Option<Rc<SweepRules>> {
        let inputs = self.inputs.unwrap_or_default().iter().map(InputName::as_str);
        let choices = inputs.zip(self.choices.iter().map(Option::as_ref));
        if rules.product.condition.is_some()
            && let Some(condition) = &mut Rc::make_mut(&mut rules).product.condition
            && let Err(name) = condition.read_inputs(choices)
            && self.written.expression()[id].inputs.len() < 2
        {
            let fault = SweepFault::ConditionInput(name.to_owned());
            self.problem(place, sweep::WHERE, 1, fault);
            return None;
        }
        Some(rules)
    }

    /// Warns of levels that look alike, and are different texts, and of levels that look like ranges.
    pub(super) fn warn_of_levels(&mut self, place: &NodePlace<'a>, product: &Product) {
        for Factor { file, points } in &product.factors {
            if let [only] = points.levels(0)
                && points.names().len() == 1
                && is_like_range(only)
            {
                let file = format!("{FACTORS}/{file}");
                place.warn(&file, WarningKind::NoRange(only.to_string()), self.findings);
            }
        }
        let factors = product.factors.iter();
        let factors = factors.map(|it| (format!("{FACTORS}/{}", it.file), &it.points));
        let excluded = product.exclude.iter().map(|points| (EXCLUDE.to_owned(), points));
        for (file, points) in factors.chain(excluded) {
            for lookalike in points.lookalikes() {
                place.warn(&file, WarningKind::Lookalike(lookalike), self.findings);
            }
        }
    }

    /// Warns if rules leave out all points.
    fn warn_of_no_points(&mut self, place: &NodePlace<'a>, product: &Product) {
        let file = if product.condition.is_some() { sweep::WHERE } else { EXCLUDE };
        let is_open = product.condition.as_ref().is_some_and(Condition::is_open);
        if is_open {
            for chosen in sweep::choices_without_points(product).unwrap_or_default() {
                place.warn(file, WarningKind::NoPointsOf(chosen), self.findings);
            }
        } else if product.leaves_out() && sweep::points(product).is_ok_and(|it| it.is_empty()) {
            place.warn(file, WarningKind::NoPoints, self.findings);
        }
    }

    /// Adds problems of the rules of a node. Returns true if there are none.
    fn are_right(&mut self, place: &NodePlace<'a>, problems: Vec<RuleProblem>) -> bool {
        let is_right = problems.is_empty();
        for RuleProblem { file, line, fault } in problems {
            self.problem(place, &file, line, fault);
        }
        is_right
    }

    /// Makes the rules of a sweep whose inputs were read.
    pub(super) fn sweep(
        &mut self,
        open: &OpenNode<'a>,
        label: &str,
        rules: &SweepRules,
        inputs: Box<[Argument]>,
    ) -> Option<(SweepId, Box<[Argument]>)> {
        let place = &open.place;
        let written = self.written.expression()[open.id].inputs.len();
        let (body, points) = (inputs.first(), inputs.get(1));
        let points_width = points.map(|points| self.builder[points.node].width());
        let problem = sweep::input_problem(written, points_width);
        self.are_right(place, problem.into_iter().collect()).then_some(())?;
        // An input that has a problem is missing.
        (inputs.len() == written).then_some(())?;
        let body = body?;
        let (binds, asked) = self.binds(open, rules, body, points.is_some())?;
        if let Some(points) = points {
            let names = [&*binds, &*asked].concat();
            self.use_sheet(points.node, place, rules, &names).then_some(())?;
        }
        let names = self.passed_names(body.node);
        let has_directory = open.slice.as_ref().is_some_and(|slice| slice.has(DIRECTORY));
        let problem = sweep::directory_problem(&names).filter(|_| has_directory);
        self.are_right(place, problem.into_iter().collect()).then_some(())?;
        let columns = match sweep::table_columns(rules, names) {
            Ok(columns) => columns,
            Err(problems) => {
                self.are_right(place, problems);
                return None;
            }
        };
        if points.is_none() {
            self.warn_of_no_points(place, &rules.product);
        }
        let read = points.map(|_| self.inputs_of(body.node)).unwrap_or_default();
        if let Some(Node::Points(points)) = points.map(|points| &self.builder[points.node]) {
            let product = &self.sweeps[points.index()].product;
            let problems = sweep::same_name_problems(product, &read);
            self.are_right(place, problems).then_some(())?;
        }
        let width = self.builder[body.node].width();
        let problems = sweep::column_problems(rules, &columns, Some(width), |output| {
            self.nested_columns(body, output)
        });
        self.are_right(place, problems).then_some(())?;
        let sweep = Sweep {
            names: rules.names.clone(),
            files: rules.files.clone(),
            binds,
            asked,
            inputs: read,
            columns,
            written: rules.columns.clone(),
            allow_failed: rules.allow_failed,
            ..Sweep::new(label.into(), place.path(), rules.product.clone())
        };
        Some((self.add_sweep(sweep, &inputs), inputs))
    }

    /// Notes what a sweep reads the columns of a sheet as. Returns false, and reports it, if another sweep over the sheet reads one
    /// otherwise.
    fn use_sheet(
        &mut self,
        sheet: NodeId,
        place: &NodePlace<'a>,
        rules: &SweepRules,
        names: &[BoundId],
    ) -> bool {
        if !matches!(self.builder[sheet], Node::Input(_) | Node::File(_)) {
            let is_right = rules.files.is_empty();
            if !is_right {
                self.problem(place, FILES, 0, SweepFault::FilesOfResult);
            }
            return is_right;
        }
        let Product { exclude, condition, .. } = &rules.product;
        let bound = names.iter().map(|id| self.scopes.text(*id));
        let read = condition.iter().flat_map(Condition::names);
        let excluded = exclude.iter().flat_map(SweepPoints::names).map(String::as_str);
        let is_text = |name: &&str| !rules.files.iter().any(|it| *it.name == **name);
        let texts = bound.chain(read).chain(excluded).filter(is_text);
        let uses = texts.map(|name| (Box::from(name), ColumnUse::Text));
        let files = rules.files.iter().map(|it| (it.name.clone(), ColumnUse::Files(it.clone())));
        let uses: Vec<(Box<str>, ColumnUse)> = uses.chain(files).collect();
        let mut is_right = true;
        for (name, own) in uses {
            let known = self.sheet_columns.entry((sheet, name.clone())).or_insert(own.clone());
            if *known != own {
                self.problem(place, "", 0, SweepFault::OtherColumn(name.into()));
                is_right = false;
            }
        }
        is_right
    }

    /// Returns the names that a sweep binds, and the others that only resources have. Each factor must be read.
    fn binds(
        &mut self,
        open: &OpenNode<'a>,
        rules: &SweepRules,
        body: &Argument,
        is_computed: bool,
    ) -> Option<(Vec<BoundId>, Vec<BoundId>)> {
        let free: Vec<BoundId> = self.free.names_in(body.node).to_vec();
        let outside = &self.scopes.get(open.scope).bound;
        let opens = is_computed && rules.are_open();
        let listed: HashSet<String> = rules.named().map(|(name, _)| name).collect();
        let is_own = |id: &BoundId| {
            if opens { !outside.contains(id) } else { listed.contains(self.scopes.text(*id)) }
        };
        let binds: Vec<BoundId> = free.iter().copied().filter(is_own).collect();
        let mut asked = self.asked_names(body.node);
        asked.retain(|name| is_own(name) && !free.contains(name));
        let [read, resources] = [&free, &asked]
            .map(|ids| ids.iter().map(|id| self.scopes.text(*id)).collect::<HashSet<&str>>());
        let own = binds.iter().map(|id| self.scopes.text(*id));
        let problems = sweep::unread_problems(
            rules,
            |name| read.contains(name),
            |name| resources.contains(name),
            is_computed.then_some(own),
        );
        self.are_right(&open.place, problems).then_some((binds, asked))
    }

    /// The names of the task's inputs that the body of a sweep reads.
    fn inputs_of(&self, body: NodeId) -> Vec<Box<str>> {
        let inputs = self.inputs.unwrap_or_default();
        let (files, trees) = (self.files.all(), self.trees.all());
        let parts = TaskParts { inputs: inputs.len(), files, trees, sweeps: &self.sweeps };
        let mut numbers = BTreeSet::new();
        let (mut seen, mut stack) = (HashSet::from([body]), vec![body]);
        while let Some(id) = stack.pop() {
            let node = &self.builder[id];
            let lines = self.resources.lines_for(id).flat_map(ResourceLines::iter);
            numbers.extend(parts.names(node));
            numbers.extend(lines.flat_map(|line| line.amount.names()));
            let read = node.inputs().iter().map(|argument| argument.node);
            stack.extend(read.filter(|node| seen.insert(*node)));
        }
        numbers.into_iter().filter_map(|number| Some(inputs.get(number)?.as_str().into())).collect()
    }

    /// The names of the outputs that a node passes up.
    pub(super) fn passed_names(&self, node: NodeId) -> Vec<String> {
        let made = origins(&self.builder, node).filter_map(|(node, number)| {
            let made = self.builder[node].made(|id| &self.library.get(id).outputs);
            // A wrong slice may have a number without an output.
            made.get(usize::from(number)).copied()
        });
        made.map(|name| name.trim_end_matches('/').to_owned()).collect()
    }

    /// The names of the columns of an output of a sweep's body that is the table of another sweep, as far as they are known.
    fn nested_columns(&self, body: &Argument, output: u8) -> Vec<String> {
        let mut origins = origins(&self.builder, body.node);
        let Some((node, number)) = origins.nth(output.into()) else { return Vec::new() };
        match &self.builder[node] {
            Node::Sweep { sweep, .. } if number == 0 => {
                let sweep = &self.sweeps[sweep.index()];
                sweep::known_columns(&sweep.into(), &sweep.columns)
            }
            _ => Vec::new(),
        }
    }

    fn add_sweep(&mut self, sweep: Sweep, inputs: &[Argument]) -> SweepId {
        let inputs: Vec<NodeId> = inputs.iter().map(|input| input.node).collect();
        let mut known = self.sweeps.iter().zip(&self.sweep_inputs);
        let known = known.position(|known| known == (&sweep, &inputs));
        SweepId::at(known.unwrap_or_else(|| {
            self.sweeps.push(sweep);
            self.sweep_inputs.push(inputs);
            self.sweeps.len() - 1
        }))
    }
}
