//! The allocation of Slurm that a process is in: its shape, starting `exec` on all its tasks, and the end of its steps.
//!
//! Slurm starts and ends the processes of a step, on all nodes. A step that outlives the call which has started it is ended here.
//! `srun` ends its step when it gets TERM, so it is started by a guard: this program, which becomes `srun` and is asked to end when
//! the worker dies, in any way.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use ce_model::resources::TaskLauncher;

use super::client::{Slurm, SlurmError};
use crate::executor::AllocationShape;
use crate::invocation::Span;
use crate::scheduler::JobToken;

/// The number of the step that a shell of `salloc` is, which has the whole allocation.
const INTERACTIVE: &str = "4294967290";
/// The time that a program of Slurm has to answer.
const ANSWER: Duration = Duration::from_secs(20);
/// The time within which a step that was killed is over. Slurm notices late that an `srun` was killed.
const OVER: Duration = Duration::from_secs(60);
/// The interval at which it is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// The shell script of each task: it executes, and notes the exit status in a file of its own, and whether it got TERM.
///
/// TERM, which ends all tasks when one fails or the step is ended, is left to the executed program. A signal to all
/// processes of a step reaches them one after the other. So an exit status that looks like the death by one is noted
/// only after the signal has come here, too.
const TASK: &str = r#"trap 'asked=" asked"' TERM; "$@"; status=$?
case $status in 129 | 130 | 137 | 143) sleep 1 ;; esac
echo "$status$asked" >"$0$SLURM_PROCID"; exit $status"#;

/// An allocation that this process has to itself: it is the job's script, or a shell of `salloc`, and no step.
#[derive(Debug)]
pub struct Allocation {
    /// `SLURM_JOB_ID`.
    number: String,
    shape: AllocationShape,
    slurm: Slurm,
    /// The job, as Slurm described it before the first call.
    known: OnceLock<KnownJob>,
}

/// The job of an allocation, as Slurm knows it.
#[derive(Debug)]
struct KnownJob {
    /// The id of the job for programs of Slurm.
    id: String,
    /// The steps that were there before the first call.
    before: HashSet<String>,
    /// Whether Slurm ends all that a step has started.
    ends_all: bool,
}

/// The exit statuses of tasks, each in a file that its task writes.
#[derive(Debug)]
pub(crate) struct StatusFiles {
    directory: PathBuf,
    prefix: String,
    tasks: u32,
}

impl Allocation {
    /// Returns the allocation by the variables that Slurm sets, or `None` outside of one and in a step.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let job = variable("SLURM_JOB_ID").filter(|number| !number.is_empty())?;
        if variable("SLURM_STEP_ID").is_some_and(|step| step != INTERACTIVE) {
            return None;
        }
        let number = |name: &str| variable(name)?.parse::<NonZeroU32>().ok();
        let nodes = number("SLURM_NNODES").or_else(|| number("SLURM_JOB_NUM_NODES"))?;
        // Not SLURM_TASKS_PER_NODE: without any number of tasks asked for, it may be the number of cores.
        let per_node = number("SLURM_NTASKS_PER_NODE").and_then(|it| it.checked_mul(nodes));
        let tasks = number("SLURM_NTASKS").or(per_node).unwrap_or(nodes);
        let slurm = Slurm::default().with_limit(ANSWER);
        let shape = AllocationShape { nodes, tasks };
        Some(Self { number: job, shape, slurm, known: OnceLock::new() })
    }

    /// Its nodes and tasks.
    pub const fn shape(&self) -> AllocationShape {
        self.shape
    }

    /// Records the existing steps, before the first call begins. If Slurm does not list them, no step is ended: it may
    /// be another program's.
    pub(crate) fn prepare(&self) {
        if self.known.get().is_none()
            && let Ok(known) = self.ask()
        {
            // Calls that span hosts or tasks begin one after the other.
            let _known_meanwhile = self.known.set(known);
        }
    }

    fn ask(&self) -> Result<KnownJob, SlurmError> {
        let id = self.slurm.job_id(&self.number)?;
        let before = self.slurm.steps(&id)?.into_iter().collect();
        Ok(KnownJob { id, before, ends_all: self.slurm.ends_all_processes() })
    }

    /// The program that executes the words after it on every task, and ends with this process; with the files in which tasks are to note
    /// their exit statuses. `token` names the step and the files.
    pub(crate) fn launcher(
        &self,
        span: &Span,
        work: &Path,
        directory: &Path,
        token: &JobToken,
    ) -> (Vec<OsString>, StatusFiles) {
        let prefix = format!("{token}.");
        let files =
            StatusFiles { directory: directory.to_owned(), prefix, tasks: span.tasks.get() };
        let mut chdir = OsString::from("--chdir=");
        chdir.push(work);
        let mut words: Vec<OsString> = guard_words().into();
        // An isolated call has another PATH.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut programs = std::env::split_paths(&path).map(|it| it.join("srun"));
        words.push(programs.find(|it| it.is_file()).unwrap_or_else(|| "srun".into()).into());
        let nodes = span.nodes.map(|nodes| format!("--nodes={nodes}"));
        let options = [
            format!("--ntasks={}", span.tasks),
            format!("--cpus-per-task={}", span.cpus),
            format!("--job-name={token}"),
            // A failed task ends the others; a task that ends well does not.
            "--kill-on-bad-exit=1".to_owned(),
            "--wait=0".to_owned(),
            "--export=ALL".to_owned(),
            "--input=none".to_owned(),
            "--label".to_owned(),
        ];
        // The options of the call come first: CompEval's later ones override them.
        let own = span.launcher.iter().flat_map(TaskLauncher::options).map(str::to_owned);
        words.extend(own.chain(nodes).chain(options).map(OsString::from));
        words.push(chdir);
        (words, files)
    }

    /// Ends all steps that a call has started. Returns false if a process of one may be left.
    ///
    /// Waits until Slurm says that they are over, unless it does not answer or `is_hurried`.
    pub(crate) fn end_steps(&self, is_hurried: impl Fn() -> bool) -> bool {
        let Some(KnownJob { id, before, ends_all }) = self.known.get() else { return false };
        let began = Instant::now();
        for look in 0.. {
            match self.slurm.steps(id) {
                Err(_) => return false,
                Ok(mut steps) => {
                    steps.retain(|step| !before.contains(step));
                    if steps.is_empty() {
                        return *ends_all;
                    }
                    // Steps that are ending by themselves need a moment.
                    let (is_hurried, is_late) = (is_hurried(), began.elapsed() > OVER);
                    let is_killed = look == 0 && !is_hurried
                        || steps.iter().all(|step| self.slurm.kill_step(step).is_ok());
                    if !is_killed || is_hurried || is_late {
                        return false;
                    }
                }
            }
            thread::sleep(LOOK);
        }
        false
    }
}

impl StatusFiles {
    /// Returns the beginning of their paths; the number of a task follows.
    pub(crate) fn prefix(&self) -> PathBuf {
        self.directory.join(&self.prefix)
    }

    /// The words before a program and its arguments that execute it, and note its exit status.
    pub(crate) fn noting(&self) -> impl Iterator<Item = OsString> {
        ["sh", "-c", TASK].map(OsString::from).into_iter().chain([self.prefix().into()])
    }

    /// Reads the exit status of each task, and removes the files. `None` for a task that has noted no status, or that
    /// was asked to end and has failed.
    pub(crate) fn take(&self) -> Box<[Option<u8>]> {
        (0..self.tasks).map(|rank| self.take_status(rank)).collect()
    }

    fn take_status(&self, rank: u32) -> Option<u8> {
        let file = self.directory.join(format!("{}{rank}", self.prefix));
        let text = fs::read_to_string(&file).ok()?;
        drop(fs::remove_file(file));
        let (status, asked) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        status.parse().ok().filter(|status| *status == 0 || asked.is_empty())
    }
}

/// Whether a variable is one of an allocation, which only calls have that ask for one.
pub(crate) fn is_of_allocation(name: &OsStr) -> bool {
    let kept = ["SLURM_CONF", "SLURM_CLUSTERS"];
    name.as_encoded_bytes().starts_with(b"SLURM") && kept.iter().all(|kept| name != *kept)
}

/// The hidden first argument that makes this program a guard.
const GUARD: &str = "--guard";

/// The status of a program that cannot be executed, as shells have it.
const NOT_EXECUTED: u8 = 127;

/// The words before a program and its arguments that make it end with this process: with the thread that starts it.
fn guard_words() -> [OsString; 3] {
    ["/proc/self/exe".into(), GUARD.into(), std::process::id().to_string().into()]
}

/// Becomes another program, if the first argument is the hidden one.
pub(crate) fn hidden(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != GUARD {
        return None;
    }
    let parent = arguments.next()?.to_str()?.parse::<i32>().ok()?;
    let mut command = Command::new(arguments.next()?);
    command.args(arguments);
    let followed = set_parent_process_death_signal(Some(Signal::TERM));
    // It may have died before.
    let is_alive = getppid().is_some_and(|pid| pid.as_raw_nonzero().get() == parent);
    if followed.is_err() || !is_alive {
        return Some(ExitCode::FAILURE);
    }
    let error = command.exec();
    let program = command.get_program().display();
    // It is the log of a call.
    drop(writeln!(io::stderr(), "{program} cannot be executed: {error}"));
    Some(NOT_EXECUTED.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(variables: &[(&str, &str)]) -> Option<(u32, u32)> {
        let allocation = Allocation::from_environment(|name| {
            let mut all = variables.iter().chain(&[("SLURM_JOB_ID", "7")]);
            all.find(|it| it.0 == name).map(|it| it.1.to_owned())
        });
        allocation.map(|it| (it.shape().nodes.get(), it.shape().tasks.get()))
    }

    #[test]
    fn the_allocation_has_the_requested_nodes_and_tasks() {
        let alone = [("SLURM_NNODES", "1"), ("SLURM_TASKS_PER_NODE", "64")];
        assert_eq!(shape(&alone), Some((1, 1)), "its cores are no tasks");
        assert_eq!(shape(&[("SLURM_NNODES", "2")]), Some((2, 2)));
        assert_eq!(shape(&[("SLURM_NNODES", "2"), ("SLURM_NTASKS_PER_NODE", "3")]), Some((2, 6)));
        assert_eq!(shape(&[("SLURM_NNODES", "2"), ("SLURM_NTASKS", "3")]), Some((2, 3)));
        let step = [("SLURM_NNODES", "2"), ("SLURM_STEP_ID", "0")];
        assert_eq!(shape(&step), None, "a step has not the whole allocation");
        assert_eq!(shape(&[]), None);
    }
}
