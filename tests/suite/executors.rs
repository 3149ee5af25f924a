//! Executors that behave as clusters do: they complete later, in any order, or not at all.

use std::collections::VecDeque;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::symlink;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use compeval::evaluate::How;
use compeval::executor::{Completion, Ended, ExecuteError, Executor, Invocation, Local, Usage};
use compeval::session::Exit;
use compeval::storage::{Durability, Storage, Survey, Unrecorded};
use jiff::Timestamp;

use crate::inside::{Evaluated, World, execute};
use crate::lab::Lab;

/// The time that a test waits for something that never comes, before it fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// The number of calls that are ready at the same time.
const WIDE: usize = 1000;

/// The end of an execution.
type End = Result<Ended, ExecuteError>;

/// An executor that holds submitted calls until another thread completes them, the latest first.
struct Later {
    capacity: usize,
    held: Mutex<Held>,
    changed: Condvar,
}

#[derive(Default)]
struct Held {
    submitted: Vec<(Invocation, Completion)>,
    /// The most that were held at once.
    most: usize,
    cancelled: bool,
    over: bool,
}

impl Later {
    fn new(capacity: usize) -> Self {
        Self { capacity, held: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap()
    }

    /// Evaluates with two workers. Meanwhile one other thread waits for this number of submissions, and then
    /// for at least one, and completes the latest.
    fn evaluate(
        &self,
        world: &World,
        waits: impl IntoIterator<Item = usize>,
        mut act: impl FnMut(&Invocation) -> End + Send,
    ) -> Evaluated {
        let waits: VecDeque<usize> = waits.into_iter().collect();
        thread::scope(|scope| {
            scope.spawn(move || {
                for count in waits.into_iter().chain(std::iter::repeat(1)) {
                    let short = |held: &mut Held| held.submitted.len() < count && !held.over;
                    let waited = self.changed.wait_timeout_while(self.lock(), PATIENCE, short);
                    let (mut held, timeout) = waited.unwrap();
                    let Some((invocation, completion)) = held.submitted.pop() else { return };
                    drop(held);
                    let end = act(&invocation);
                    let late = "fewer calls were submitted than wait".to_owned();
                    completion.deliver(if timeout.timed_out() {
                        Ok(Ended::Lost(late))
                    } else {
                        end
                    });
                }
            });
            let evaluated = world.evaluate(Some(self), 2, 0);
            self.lock().over = true;
            self.changed.notify_all();
            evaluated
        })
    }
}

impl Executor for Later {
    fn submit(&self, invocation: Invocation, completion: Completion) {
        let mut held = self.lock();
        if held.cancelled {
            drop(held);
            return completion.deliver(Err(ExecuteError::Interrupted));
        }
        held.submitted.push((invocation, completion));
        held.most = held.most.max(held.submitted.len());
        drop(held);
        self.changed.notify_all();
    }

    fn capacity(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.capacity).unwrap()
    }

    fn cancel(&self) {
        self.lock().cancelled = true;
    }

    fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }
}

/// An executor that ends each execution in a way of its own, in the thread that submits.
struct Ends<F>(F);

impl<F: Fn(&Invocation) -> End + Send + Sync> Executor for Ends<F> {
    fn submit(&self, invocation: Invocation, completion: Completion) {
        completion.deliver((self.0)(&invocation));
    }

    fn capacity(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }
}

fn done() -> End {
    Ok(Ended::Done(Usage::since(Timestamp::now())))
}

/// Writes a node of a workflow, which reads others.
fn node(lab: &Lab, name: &str, kind: [&str; 2], outputs: &str, inputs: &[String]) {
    let dir = lab.path("task/nodes").join(name);
    fs::create_dir_all(dir.join("inputs")).unwrap();
    fs::write(dir.join("kind"), kind[0]).unwrap();
    fs::write(dir.join("value"), kind[1]).unwrap();
    fs::write(dir.join("outputs"), outputs).unwrap();
    for (number, input) in inputs.iter().enumerate() {
        let name = dir.join(format!("inputs/{number:02}-{number}"));
        symlink(format!("../../{input}"), name).unwrap();
    }
}

/// A task with a thousand calls that are ready as soon as the first is over, and a tree of calls that
/// gathers what they make.
fn wide() -> (Lab, World) {
    let names = |count: usize| (0..count).map(|at| format!("n{at}")).collect::<Vec<_>>().join(" ");
    let mut lab = Lab::empty()
        .computation("seeds", "x", &names(32), "exit 1")
        .computation("pair", "a b", "c", "exit 1")
        .computation("gather", &names(10), "all", "exit 1")
        .file("inputs", "x\n")
        .data("x", "x")
        .commit();
    lab.inputs.push("x".to_owned());
    node(&lab, "x", ["input", "x"], "0", &[]);
    let seed = |at: usize| format!("seed{at}");
    for at in 0..32 {
        node(&lab, &seed(at), ["computation", "seeds"], &at.to_string(), &["x".to_owned()]);
    }
    let mut level: Vec<String> = (0..WIDE).map(|at| format!("pair{at}")).collect();
    for (at, name) in level.iter().enumerate() {
        node(&lab, name, ["computation", "pair"], "0", &[seed(at / 32), seed(at % 32)]);
    }
    while level.len() > 1 {
        level = level
            .chunks(10)
            .enumerate()
            .map(|(at, inputs)| {
                let name = format!("gather{}-{at}", level.len());
                node(&lab, &name, ["computation", "gather"], "0", inputs);
                name
            })
            .collect();
    }
    let lab = lab.link("workflow", &format!("nodes/{}", level[0]));
    let world = World::load(&lab);
    (lab, world)
}

/// A call, and another one that reads its output.
fn pair() -> (Lab, World) {
    let lab = Lab::task("Inputs: 'x'\n(add (mul INPUT('x') INPUT('x'))[0] INPUT('x'))[0]").commit();
    let world = World::load(&lab);
    (lab, world)
}

/// Whether a failure of any call is remembered.
fn remembers_failures(world: &World) -> bool {
    let storage = Storage::open(&world.storage, Unrecorded::Adopt, Durability::Unsynced);
    !Survey::new(&storage.unwrap()).failures().unwrap().is_empty()
}

#[test]
fn a_call_that_is_being_published_does_not_count_as_running() {
    let (_lab, world) = wide();
    let world = World { durability: Durability::Synced, ..world };
    let evaluated = world.run(1);
    assert_eq!((evaluated.exit, evaluated.most_running), (Exit::Done, 1));
}

#[test]
fn a_thousand_executions_at_once_hold_no_thread() {
    let (_lab, world) = wide();
    let later = Later::new(WIDE);
    let evaluated = later.evaluate(&world, [1, WIDE], |invocation| {
        execute(invocation);
        done()
    });
    assert_eq!(
        (evaluated.exit, evaluated.tally.count(How::Executed)),
        (Exit::Done, 1 + WIDE + 111)
    );
    assert_eq!(later.lock().most, WIDE, "all were submitted before the first was over");
    let outputs = evaluated.outputs;
    fs::remove_dir_all(&world.storage).unwrap();

    let few = Later::new(7);
    let evaluated = few.evaluate(&world, [1, 7], |invocation| {
        execute(invocation);
        done()
    });
    assert_eq!((evaluated.exit, evaluated.outputs), (Exit::Done, outputs));
    assert_eq!(few.lock().most, 7, "no more are submitted than fit");
}

#[test]
fn calls_held_by_a_cancelled_executor_are_interrupted() {
    let (_lab, world) = pair();
    let later = Later::new(1);
    let evaluated = later.evaluate(&world, [], |_| {
        later.cancel();
        Err(ExecuteError::Interrupted)
    });
    assert_eq!(evaluated.exit, Exit::Missing);
    assert_eq!(evaluated.tally.to_string(), "2 calls: 1 not started, 1 interrupted");
    assert!(!remembers_failures(&world));
}

#[test]
fn a_suspended_call_waits_and_the_next_run_executes_it() {
    let (_lab, world) = pair();
    let suspended = Ends(|invocation: &Invocation| {
        execute(invocation);
        Ok(Ended::Suspended(Usage::since(Timestamp::now())))
    });
    let evaluated = world.evaluate(Some(&suspended), 2, 5);
    let tally = evaluated.tally;
    assert_eq!(
        (evaluated.exit, tally.count(How::Suspended), tally.count(How::Waiting)),
        (Exit::Suspended, 1, 1)
    );
    let why = "`* suspended: what it has started goes on elsewhere";
    assert!(evaluated.text.contains(why), "{}", evaluated.text);
    assert_eq!(tally.to_string(), "2 calls: 1 suspended, 1 waiting");
    let looked = world.look().tally;
    assert_eq!(
        (looked.count(How::Suspended), looked.count(How::Missing)),
        (1, 1),
        "nothing was published"
    );
    assert!(!remembers_failures(&world));
    assert_eq!(world.run(2).tally.count(How::Executed), 2);
}

#[test]
fn a_lost_execution_does_not_fail_and_is_tried_once_more_than_retries() {
    let (_lab, world) = pair();
    for (retries, tries) in [(0, 2), (3, 5)] {
        let count = Mutex::new(0);
        let lost = Ends(|_: &Invocation| {
            *count.lock().unwrap() += 1;
            Ok(Ended::Lost("node 7 went away".to_owned()))
        });
        let evaluated = world.evaluate(Some(&lost), 2, retries);
        assert_eq!((evaluated.exit, evaluated.tally.count(How::Unfinished)), (Exit::Missing, 1));
        assert_eq!(*count.lock().unwrap(), tries);
        let why = "`* not finished: it was lost: node 7 went away";
        assert!(evaluated.text.contains(why), "{}", evaluated.text);
        assert!(!remembers_failures(&world));
    }
    let first = Mutex::new(true);
    let once = Ends(|invocation: &Invocation| {
        if std::mem::take(&mut *first.lock().unwrap()) {
            return Ok(Ended::Lost("node 7 went away".to_owned()));
        }
        execute(invocation);
        done()
    });
    assert_eq!(world.evaluate(Some(&once), 2, 0).exit, Exit::Done);
}

#[test]
fn an_execution_refused_by_the_executor_does_not_fail() {
    let (_lab, world) = pair();
    let count = Mutex::new(0);
    let refusing = Ends(|_: &Invocation| {
        *count.lock().unwrap() += 1;
        Err(ExecuteError::Refused("/opt/tool is not there".to_owned()))
    });
    let evaluated = world.evaluate(Some(&refusing), 2, 3);
    assert_eq!((evaluated.exit, evaluated.tally.count(How::Unfinished)), (Exit::Missing, 1));
    assert_eq!(*count.lock().unwrap(), 1, "it would be refused again");
    assert!(evaluated.text.contains("it was refused: /opt/tool is not there"));
    assert!(!remembers_failures(&world));
}

#[test]
fn an_executor_that_isolates_nothing_refuses_a_root() {
    let lab = Lab::task("Inputs: 'x'\n(look INPUT('x'))[0]").computation("look", "x", "b", "");
    let lab = lab.file("computations/look/access", "root x\n").commit();
    fs::remove_file(lab.path("data/x")).unwrap();
    fs::create_dir(lab.path("data/x")).unwrap();
    let world = World::load(&lab);
    let evaluated = world.evaluate(Some(&Local::new(NonZeroUsize::MIN, None)), 1, 0);
    assert_eq!((evaluated.exit, evaluated.tally.count(How::Unfinished)), (Exit::Missing, 1));
    let why = r#"it was refused: the line "root x" of its access takes isolation, and it is not isolated"#;
    assert!(evaluated.text.contains(why), "{}", evaluated.text);
    assert!(lab.called().is_empty());
}
