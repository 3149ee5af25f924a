//! Commands that need a task and no storage: `ce init` makes one, `ce check` finds its mistakes, `ce-sym` prints its workflow as text,
//! and `ce convert` gives it its other form.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Parser;

use super::Tool;
use super::options::{TaskDir, task_dir, warn};
use ce_evaluate::session::{
    Error, OutputError, check_point_values, check_sheets_of_files, check_trees, expand_own_sheets,
};
use ce_git::Trees;
use ce_model::exit::{Exit, Explain};
use ce_model::expression::{Labels, Sharing, Style, Text, written_alone};
use ce_model::humanize::{counted, quoted_path};
use ce_model::name::{ComputationName, variables};
use ce_model::plan::Plan;
use ce_model::suggest::nearest;
use ce_model::sweep::Lookalike;
use ce_model::task::Task;
use ce_report::{self as report, say};
use ce_task::edit::{self, Force, WorkflowForm};
use ce_task::load::{Uncommitted, Warning, WarningKind};
use ce_task::programs::{CheckedPrograms, check_programs};

/// Make a task: a Git repository with a workflow and, if wanted, a first computation
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Nothing is overwritten, and nothing is committed.\n\n\
                                 Exit codes: 0 made, 2 there is a task already, 5 it cannot be written."
)]
pub(super) struct Init {
    /// The directory of the task, which is made if it does not exist; its name is the task's
    #[arg(value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,

    /// Keep the workflow as directories, rather than as one text: it is one input then, and calls nothing
    #[arg(long)]
    directories: bool,

    /// Call this computation in the workflow, and make it unless it is in computations/
    #[arg(long, value_name = "NAME", requires = "directories")]
    computation: Option<ComputationName>,
}

impl Tool for Init {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let (made, steps) = if self.directories {
            let made = edit::init_directories(&self.dir, self.computation.as_ref())?;
            (made, steps_with_directories(&self.dir, self.computation.as_ref()))
        } else {
            let steps = ["git add . && git commit -m 'a new task'", "ce run ../results"];
            (edit::init(&self.dir)?, steps.map(str::to_owned).into())
        };
        let files: Vec<String> = made.files.iter().map(|path| path.display().to_string()).collect();
        let place = if made.in_repository { "in this repository" } else { "in a new repository" };
        let is_elsewhere = self.dir.as_os_str() != ".";
        let enter = is_elsewhere.then(|| format!("cd {}", quoted_path(&self.dir)));
        let steps = enter.into_iter().chain(steps).map(|step| format!("  {step}\n"));
        let text = format!("made {} {place}\nnext:\n", files.join(", "));
        let text: String = std::iter::once(text).chain(steps).collect();
        out.write_all(text.as_bytes()).map_err(OutputError)?;
        Ok(Exit::Done)
    }
}

/// Returns the steps that remain to be done with a new task whose workflow is in directories.
fn steps_with_directories(dir: &Path, computation: Option<&ComputationName>) -> Vec<String> {
    let mut next = Vec::new();
    match computation {
        Some(name) if edit::is_file(dir, name) => {}
        Some(name) => next.push(format!("write computations/{name}/exec")),
        None => {
            let make =
                "make computations: directories computations/NAME with inputs, outputs and exec";
            next.push(make.to_owned());
            next.push("call them in workflow/: kind, value and inputs/ of each node".to_owned());
        }
    }
    next.push("git add . && git commit".to_owned());
    next.push("ce check; ce run STORAGE and a file for each input".to_owned());
    next
}

/// Load a task and report every problem, without evaluating anything
#[derive(Debug, Parser)]
#[command(version, after_help = "Exit codes: 0 the task is valid, 2 it is wrong.")]
pub(super) struct Check {
    /// Print only errors and warnings
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,

    /// Print the numbers as one JSON object
    #[arg(long)]
    json: bool,

    /// Let bash, sh and python read the programs of the computations, which are not executed
    #[arg(long, conflicts_with = "json")]
    programs: bool,

    #[command(flatten)]
    task: TaskDir,
}

impl Tool for Check {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let task = self.task.load("ce", Uncommitted::Warn)?;
        check_trees(&self.task.task, &task)?;
        for name in task.unused_inputs() {
            say(
                "ce",
                &format_args!(
                    "warning: nothing reads the input {name} of the task\n  try: read it in the workflow, or remove it"
                ),
            );
        }
        for (node, name) in task.unknown_names().filter(|(_, name)| !name.is_empty()) {
            let inputs: Vec<String> = task.inputs.iter().map(ToString::to_string).collect();
            let value = written_alone(&task, node);
            let advice = match nearest(&name, &inputs) {
                Some(nearest) => format!("did you mean {{{nearest}}}?"),
                None => "add the name to the file inputs if a text is to stand there".to_owned(),
            };
            say(
                "ce",
                &format_args!(
                    "warning: {value}: {{{name}}} is not the name of an input, and stays as it is\n  try: {advice}"
                ),
            );
        }
        if let Err(same) = task.output_names() {
            let advice = same.hint().unwrap_or_default();
            say(
                "ce",
                &format_args!("warning: {same}, which ce run --out refuses\n  try: {advice}"),
            );
        }
        warn_of_lost_variables(&task);
        let programs = self.programs.then(|| check_programs(&self.task.task, &task)).transpose()?;
        let plan = Plan::new(&task);
        let told: BTreeSet<PathBuf> = empty_sweeps(&task, &plan).collect();
        let trees = Trees::new(&self.task.task);
        check_sheets_of_files(&trees, &task)?;
        expand_own_sheets(&trees, &task, &plan)?;
        check_point_values(&self.task.task, &task, &plan)?;
        warn_of_blank_rows(&task, &plan);
        let empty: BTreeSet<PathBuf> = empty_sweeps(&task, &plan).collect();
        for place in empty.difference(&told) {
            warn("ce", &Warning { path: place.clone(), oddity: WarningKind::NoPoints });
        }
        warn_of_lookalikes(&task, &plan);
        if self.json {
            report::checked_json(&task, &plan, out).map_err(OutputError)?;
            return Ok(Exit::Done);
        }
        if self.quiet {
            return Ok(Exit::Done);
        }
        let (name, commit) = (&task.name, task.commit.short());
        let tables = plan.sweeps().len();
        let at_least = if plan.grows() { "at least " } else { "" };
        let mut count = vec![
            counted(task.inputs.len(), "input"),
            format!("{at_least}{}", counted(plan.calls().len() - tables, "call")),
        ];
        count.extend((tables > 0).then(|| counted(tables, "table")));
        count.extend([
            counted(task.computations.len(), "computation"),
            counted(plan.outputs().len(), "output"),
        ]);
        writeln!(out, "{name} at {commit}: {}", count.join(", ")).map_err(OutputError)?;
        if let Some(CheckedPrograms { readable, untried }) = programs {
            let untried = match &untried[..] {
                [] => String::new(),
                names => format!("; not tried: {}", names.join(", ")),
            };
            let count = counted(readable, "program");
            writeln!(out, "{count} can be read{untried}").map_err(OutputError)?;
        }
        Ok(Exit::Done)
    }
}

/// Warns of inputs and outputs that no variable of the environment tells `exec`, since two would have one name.
fn warn_of_lost_variables(task: &Task) {
    for computation in &task.computations {
        for names in [&computation.inputs, &computation.outputs] {
            let lost =
                names.iter().zip(variables(names)).filter(|(_, variable)| variable.is_none());
            let lost: Vec<String> = lost.map(|(name, _)| format!("{name:?}")).collect();
            if !lost.is_empty() {
                let (place, names) = (computation.place(), lost.join(" and "));
                say(
                    "ce",
                    &format_args!(
                        "warning: {}: {names} would be one variable of the environment, and are none\n  try: rename all but one, or use their positions",
                        place.display()
                    ),
                );
            }
        }
    }
}

/// The places of sweeps without points.
fn empty_sweeps(task: &Task, plan: &Plan) -> impl Iterator<Item = PathBuf> {
    let empty =
        plan.sweeps().filter(|sweep| sweep.rows().is_some_and(|rows| rows.points.is_empty()));
    empty.map(|sweep| task.sweeps[sweep.sweep.index()].place.clone())
}

/// Warns of sheets of the task that end in rows of empty cells.
fn warn_of_blank_rows(task: &Task, plan: &Plan) {
    let rows = plan.sweeps().filter_map(|sweep| {
        let place = task.sweeps[sweep.sweep.index()].place.clone();
        Some((place, sweep.rows()?.points.blank_rows())).filter(|(_, rows)| *rows > 0)
    });
    for (path, rows) in rows.collect::<BTreeMap<_, _>>() {
        warn("ce", &Warning { path, oddity: WarningKind::BlankRows(rows) });
    }
}

/// Warns of points in sheets of the task with texts that are probably meant to be one. Of factors, the loader does.
fn warn_of_lookalikes(task: &Task, plan: &Plan) {
    let mut warnings = BTreeSet::new();
    let factors = task.sweeps.iter().flat_map(|sweep| &sweep.product.factors);
    let told: BTreeSet<Lookalike> = factors.flat_map(|factor| factor.points.lookalikes()).collect();
    for sweep in plan.sweeps() {
        let rules = &task.sweeps[sweep.sweep.index()];
        let Some(rows) = sweep.rows() else { continue };
        let is_key = plan.key_columns(task, sweep, &rows.points);
        let names = rows.points.names().iter().zip(is_key);
        let keys: Vec<&String> =
            names.filter(|(_, is_key)| *is_key).map(|(name, _)| name).collect();
        for lookalike in rows.points.lookalikes() {
            let Lookalike { column, first, second, .. } = &lookalike;
            if keys.contains(&column) && !told.contains(&lookalike) {
                warnings.insert(format!(
                    "warning: {}: {first:?} and {second:?} of {column} are different texts, and so different points\n  try: spell them alike if one point is meant",
                    rules.place.display()
                ));
            }
        }
    }
    warnings.iter().for_each(|warning| say("ce", warning));
}

/// Print the workflow of a task as a LISP-like expression
#[derive(Debug, Parser)]
#[command(name = "ce-sym", version, after_help = "Exit codes: 0 printed, 2 the task is wrong.")]
pub(super) struct Sym {
    /// Print an expression that occurs more than once as #1=(...) the first time, as #1# after
    #[arg(long)]
    share: bool,

    /// Print the labels of the inputs: the text in the names nn-text of their directories
    #[arg(long)]
    labels: bool,

    #[command(flatten)]
    task: TaskDir,
}

impl Tool for Sym {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let task = self.task.load("ce-sym", Uncommitted::Ignore)?;
        let style = Style {
            sharing: if self.share { Sharing::Label } else { Sharing::Repeat },
            labels: if self.labels { Labels::Show } else { Labels::Hide },
        };
        Text::from(&task).write(style, out).map_err(OutputError)?;
        Ok(Exit::Done)
    }
}

/// Give the workflow of a task its other form: one text, or directories
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Both forms are the same task: nothing is computed again. Comments of a text are lost in directories.\n\n\
                  Exit codes: 0 converted, or it has this form already, 2 the workflow is wrong, or \
                  something would be lost, 5 the task cannot be written."
)]
pub(super) struct Convert {
    /// The form
    #[arg(long, value_name = "FORM")]
    to: FormName,

    /// The directory that holds the task, or one within it
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = task_dir(), value_hint = clap::ValueHint::DirPath)]
    task: PathBuf,

    /// Replace uncommitted files, and files in workflow/ that a text cannot express
    #[arg(long)]
    force: bool,
}

/// A form of a workflow, as options name it.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FormName {
    /// One text, workflow.ce
    Text,
    /// Directories below workflow/, with the files inputs and defaults/
    Directories,
}

impl Tool for Convert {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let form = match self.to {
            FormName::Text => WorkflowForm::Text,
            FormName::Directories => WorkflowForm::Directories,
        };
        let force = if self.force { Force::Replace } else { Force::Keep };
        let written = edit::convert(&self.task, form, force)?;
        let told = match &written[..] {
            [] => writeln!(out, "the workflow has this form already"),
            written => writeln!(out, "wrote {}", written.join(", ")),
        };
        told.map_err(OutputError)?;
        Ok(Exit::Done)
    }
}
