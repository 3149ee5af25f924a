//! The queue of a run: tickets that workers claim, and their answers.
//!
//! A queue is in the private directory of its run, and is served while that lives. A claim is a rename, so one worker has a
//! ticket. A claim reserves nothing but the ticket: the call has a lease of its own when it is executed. Answers are lines of
//! one file for each worker, which only that worker appends to.
//!
//! Other users may write all these files. So tickets, answers and the directories of claims carry a code made with the
//! user's key, over their contents and the run that they belong to. Nothing else is executed or believed.
//!
//! [`Activity`] lists the runs, queues and workers of a storage. It reads only private directories of runs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::Storage;
use super::heartbeat::Holder;
use crate::disk::{Result, Root};
use crate::paths::{
    RUN_LOGS, RUNS, RunName, log_of_run, state_of_run, submission_of_run, ticket_in,
};
use crate::records::{
    RunState, SubmittedRun, TICKET_FORMAT, Ticket, TicketAnswer, TicketEnd, WorkerAbilities,
    WorkerRecord, signed, split_signed,
};
use ce_files::cache::FileStat;
use ce_files::state::SecretKey;
use ce_model::digest::Blake3;

/// The most bytes of answers that are read of a worker at once.
const MAX_ANSWERS: u64 = 16 << 20;

/// The name of a run that works for others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkerName(RunName);

/// A ticket that a worker has, or had when it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub worker: WorkerName,
    /// The number of the ticket.
    pub ticket: u64,
}

/// The queue of this run.
#[derive(Debug)]
pub struct Queue<'a> {
    root: &'a Root,
    storage: &'a Storage,
    run: &'a RunName,
}

/// The kinds of messages that carry a code.
const TICKET: &[u8] = b"compeval ticket 2";
const ANSWER: &[u8] = b"compeval answer 2";
const CLAIMS: &[u8] = b"compeval claims 2";

/// The file of the codes in the directory of the claims of a worker.
const CODES: &str = "codes";

/// How long a ticket holds. Its run writes it again long before.
const VALIDITY: Duration = Duration::from_secs(30 * 24 * 3600);

/// The messages of workers that were read so far.
#[derive(Debug)]
pub struct AnswersRead {
    key: SecretKey,
    /// The position up to which the answers of each worker were read.
    positions: HashMap<RunName, u64>,
    /// The codes of all answers: a code that occurs twice belongs to a copy.
    codes: HashSet<Blake3>,
    /// Workers whose claims are signed.
    workers: HashSet<RunName>,
    /// A worker whose answer has a code of another key, until it is taken.
    stranger: Option<WorkerName>,
}

impl AnswersRead {
    /// Nothing was read yet. Only messages by owners of this key count.
    pub fn new(key: SecretKey) -> Self {
        let (positions, codes, workers, stranger) = Default::default();
        Self { key, positions, codes, workers, stranger }
    }

    /// Returns a worker whose answer was ignored, since its key is another one.
    pub fn take_stranger(&mut self) -> Option<WorkerName> {
        self.stranger.take()
    }
}

impl<'a> Queue<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { root: &storage.root, storage, run: storage.run.name() }
    }

    /// Opens the queue to workers.
    pub fn open(&self) -> Result<()> {
        self.storage.run.appear(self.root)?;
        let rooms = [self.run.queue(), self.run.claims(), self.run.answers()];
        rooms.iter().try_for_each(|room| self.root.disk.make_dirs(&self.root.path(room)))
    }

    /// Adds a ticket, which becomes visible whole.
    pub fn put(&self, number: u64, ticket: &Ticket, key: &SecretKey) -> Result<()> {
        let until = Timestamp::now().checked_add(VALIDITY).unwrap_or(Timestamp::MAX);
        // Writing to memory cannot fail.
        let json = serde_json::to_string(ticket).unwrap_or_default();
        let text = format!("{} {json}", until.as_nanosecond());
        let code =
            key.sign(&ticket_parts(self.run.to_string().as_bytes(), &number.to_le_bytes(), &text));
        write_whole(self.root, &self.waiting(number, ticket), signed(&code, &text).as_bytes())
    }

    /// Takes a ticket back. Returns whether it was still waiting.
    pub fn withdraw(&self, number: u64, ticket: &Ticket) -> Result<bool> {
        let private = self.root.private_path()?;
        let waiting = self.root.path(&self.waiting(number, ticket));
        let was_there = self.root.disk.rename(&waiting, &private)?;
        self.root.disk.remove(&private)?;
        Ok(was_there)
    }

    /// Returns the numbers of the tickets that wait.
    pub fn waiting_tickets(&self) -> Result<HashSet<u64>> {
        Ok(tickets(self.root, self.run)?.into_values().flatten().collect())
    }

    fn waiting(&self, number: u64, ticket: &Ticket) -> String {
        ticket_in(&self.run.class(&ticket.resources.class()), number)
    }

    /// Returns the answers that were not read yet.
    pub fn answers(&self, read: &mut AnswersRead) -> Result<Vec<(WorkerName, TicketAnswer)>> {
        let mut answers = Vec::new();
        for worker in runs(self.root, &self.run.answers())? {
            let path = self.root.path(&self.run.answers_of(&worker));
            let from = read.positions.entry(worker.clone()).or_default();
            let text = self.root.disk.read_from(&path, *from, MAX_ANSWERS)?;
            // The last line may still be written.
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            *from += whole as u64;
            let lines = String::from_utf8_lossy(&text[..whole]);
            let names = [self.run.to_string(), worker.to_string()];
            for (answer, code, text) in lines.lines().filter_map(TicketAnswer::parse) {
                let worker = WorkerName(worker.clone());
                if !read.key.has_signed(&answer_parts(&names, text), &code) {
                    read.stranger = Some(worker);
                } else if read.codes.insert(code) {
                    answers.push((worker, answer));
                }
            }
        }
        Ok(answers)
    }

    /// Returns the tickets that workers with the key have.
    pub fn claims(&self, read: &mut AnswersRead) -> Result<Vec<Claim>> {
        let mut claims = Vec::new();
        for worker in runs(self.root, &self.run.claims())? {
            if !read.workers.contains(&worker) {
                let codes = self.root.path(&codes_of(self.run, &worker));
                let codes = self.root.disk.read(&codes)?.unwrap_or_default();
                let parts = [CLAIMS, &names(self.run, &worker)];
                let is_signed = |line: &[u8]| {
                    Blake3::from_digits(line).is_some_and(|code| read.key.has_signed(&parts, &code))
                };
                if !codes.split(|byte| *byte == b'\n').any(is_signed) {
                    continue;
                }
                read.workers.insert(worker.clone());
            }
            let numbers = numbers(self.root, &self.run.claims_of(&worker))?;
            let worker = WorkerName(worker);
            claims.extend(numbers.map(|ticket| Claim { worker: worker.clone(), ticket }));
        }
        Ok(claims)
    }

    /// Forgets a claim of a worker that has ended, or of a ticket that was answered.
    pub fn drop_claim(&self, claim: &Claim) -> Result<()> {
        let claims = self.run.claims_of(&claim.worker.0);
        self.root.disk.remove(&self.root.path(&ticket_in(&claims, claim.ticket)))
    }
}

/// The runs that work on a storage: their queues, workers and states.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    storage: &'a Storage,
}

impl<'a> Runs<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// The queue of this run.
    pub const fn queue(&self) -> Queue<'a> {
        Queue::new(self.storage)
    }

    /// Returns the workers that are alive, as far as this host knows, with their records.
    pub fn workers(&self) -> Result<Vec<(WorkerName, WorkerRecord)>> {
        let mut workers = Vec::new();
        for run in runs(&self.storage.root, RUNS)? {
            if let Some(record) = self.read_small(&run.worker_record())?
                && self.lives(&run)
            {
                workers.push((WorkerName(run), record));
            }
        }
        Ok(workers)
    }

    /// The record of a worker, which may have ended; `None` if it is not there any more.
    pub fn worker(&self, worker: &WorkerName) -> Option<WorkerRecord> {
        self.read_small(&worker.0.worker_record()).ok().flatten()
    }

    /// Whether a worker is alive, as far as this host knows.
    pub fn is_alive(&self, worker: &WorkerName) -> bool {
        self.lives(&worker.0)
    }

    /// Whether a run is alive, as far as this host knows.
    pub(super) fn lives(&self, run: &RunName) -> bool {
        let directory = self.storage.root.path(&run.directory());
        run == self.storage.run.name()
            || self.storage.run.is_alive(run, &self.storage.root.disk, &directory)
    }

    /// Makes a directory with the names of the workers that this run has submitted, and with their logs. It is named by
    /// the word for their scheduler. Returns its path.
    pub fn submissions(&self, scheduler: &str) -> Result<PathBuf> {
        self.storage.run.appear(&self.storage.root)?;
        let place = self.storage.root.path(&self.storage.run.name().submissions(scheduler));
        self.storage.root.disk.make_dirs(&place)?;
        Ok(place)
    }

    /// Notes that workers are going to be submitted under a name.
    pub fn note_submission(&self, scheduler: &str, name: &str) -> Result<()> {
        let place = self.submissions(scheduler)?;
        self.storage.root.disk.write(&place.join(name), b"")
    }

    /// The user id of this process.
    pub fn own_user(&self) -> u32 {
        rustix::process::geteuid().as_raw()
    }

    /// Records that this run is a worker.
    pub fn become_worker(&self, abilities: WorkerAbilities) -> Result<()> {
        self.storage.run.appear(&self.storage.root)?;
        let record = abilities.record();
        let text = serde_json::to_vec_pretty(&record).unwrap_or_default();
        write_whole(&self.storage.root, &self.storage.run.name().worker_record(), &text)
    }

    /// Begins to look for queues of these users that use one of these keys.
    pub fn search_queues(&self, users: Vec<u32>, keys: Arc<[SecretKey]>) -> QueueSearch<'a> {
        QueueSearch {
            storage: self.storage,
            users,
            keys,
            listed: None,
            workers: BTreeSet::new(),
            others: BTreeSet::new(),
        }
    }
}

/// Looks for queues, again and again. There may be a thousand workers that do so: a look costs the same however many there are, unless
/// a run has begun or ended since.
#[derive(Debug)]
pub struct QueueSearch<'a> {
    storage: &'a Storage,
    users: Vec<u32>,
    keys: Arc<[SecretKey]>,
    /// The stat of the directory of runs when it was listed; `None` if it can change without another one.
    listed: Option<FileStat>,
    /// The runs that are workers and have no queue: these are not looked at again.
    workers: BTreeSet<RunName>,
    others: BTreeSet<RunName>,
}

impl<'a> QueueSearch<'a> {
    /// Returns the queues of other runs that live and that belong to one of the users.
    pub fn look(&mut self) -> Result<Vec<ServedQueue<'a>>> {
        self.list(SystemTime::now())?;
        let (storage, mut queues) = (self.storage, Vec::new());
        let root = &storage.root;
        for run in &self.others {
            let owner = owner(root, &root.path(&run.queue()))?;
            if owner.is_none() && root.disk.exists(&root.path(&run.worker_record()))? {
                self.workers.insert(run.clone());
            } else if owner.is_some_and(|owner| self.users.contains(&owner))
                && run != storage.run.name()
                && storage.runs().lives(run)
            {
                queues.push(ServedQueue {
                    storage,
                    run: run.clone(),
                    keys: Arc::clone(&self.keys),
                });
            }
        }
        self.others.retain(|run| !self.workers.contains(run));
        Ok(queues)
    }

    /// Lists the runs, if that may differ from the last time.
    fn list(&mut self, now: SystemTime) -> Result<()> {
        let root = &self.storage.root;
        let stat = root.disk.directory_stat(&root.path(RUNS))?;
        if stat.is_none() || stat != self.listed {
            let known = mem::take(&mut self.workers);
            (self.workers, self.others) = runs(root, RUNS)?.partition(|run| known.contains(run));
            self.listed = stat.filter(|stat| !stat.is_racy(now));
        }
        Ok(())
    }
}

/// The queue of another run, which this worker serves.
#[derive(Clone, Debug)]
pub struct ServedQueue<'a> {
    storage: &'a Storage,
    run: RunName,
    /// The keys of users whose tickets are accepted.
    keys: Arc<[SecretKey]>,
}

/// The contents of a claimed ticket.
#[derive(Debug)]
pub enum TicketContents {
    /// A ticket that is signed with a known key, and its code, which is unique.
    Signed(Box<Ticket>, Blake3),
    /// Another version of the program has written it.
    OtherFormat,
    /// Its code was made with an unknown key, or for another ticket.
    Forged,
    /// It was written too long ago.
    Expired,
}

/// A claimed ticket.
#[derive(Debug)]
pub struct ClaimedTicket<'a> {
    queue: ServedQueue<'a>,
    number: u64,
    class: String,
    /// The key of its run, or the worker's own.
    key: SecretKey,
    pub contents: TicketContents,
}

impl<'a> ServedQueue<'a> {
    /// Returns the id of one of its tickets, which no other ticket has.
    pub fn id(&self, number: u64) -> String {
        format!("{}/{number}", self.run)
    }

    /// Whether its run still lives.
    pub fn is_served(&self) -> bool {
        self.storage.runs().lives(&self.run)
    }

    /// Nothing can be written any more, or needs to be, if its run has ended.
    fn unless_gone(&self, written: Result<()>) -> Result<()> {
        if written.is_err() && !self.is_served() { Ok(()) } else { written }
    }

    /// Returns the waiting tickets, in order, by the resources that they ask for: see
    /// [`Resources::class`](ce_model::resources::Resources::class).
    pub fn tickets(&self) -> Result<BTreeMap<String, Vec<u64>>> {
        tickets(&self.storage.root, &self.run)
    }

    /// Claims a ticket, unless it is gone.
    pub fn claim(&self, class: &str, number: u64) -> Result<Option<ClaimedTicket<'a>>> {
        let root = &self.storage.root;
        let waiting = root.path(&ticket_in(&self.run.class(class), number));
        let claimed = root.path(&self.claimed(number));
        let codes = codes_of(&self.run, self.storage.run.name());
        if !root.disk.exists(&root.path(&codes))? {
            self.introduce(&codes)?;
        }
        // A rename over NFS may be carried out and reported as failed: then the ticket is there nevertheless.
        if !root.disk.rename(&waiting, &claimed)? && !root.disk.exists(&claimed)? {
            return Ok(None);
        }
        let text = root.disk.read(&claimed)?.unwrap_or_default();
        let (contents, key) = self.authenticated(number, &String::from_utf8_lossy(&text));
        let Some(key) = key.or_else(|| self.keys.first()).cloned() else { return Ok(None) };
        let (queue, class) = (self.clone(), class.to_owned());
        Ok(Some(ClaimedTicket { queue, number, class, key, contents }))
    }

    /// Writes the codes of this worker, which its claims need to be accepted, unless the run has ended: directories
    /// above them are not made, since they would be left.
    fn introduce(&self, codes: &str) -> Result<()> {
        let (root, worker) = (&self.storage.root, self.storage.run.name());
        let parts = [CLAIMS, &names(&self.run, worker)];
        let lines = self.keys.iter().map(|key| key.sign(&parts).full() + "\n");
        let text = lines.collect::<String>();
        let room = root.path(&self.run.claims_of(worker));
        let made = if root.disk.exists(&room)? { Ok(()) } else { root.disk.make_dir(&room) };
        match made.and_then(|()| move_whole(root, &root.path(codes), text.as_bytes())) {
            Err(_) if !root.disk.exists(&root.path(&self.run.claims()))? => Ok(()),
            written => written,
        }
    }

    /// Reads a ticket, and finds the key that it was written with.
    fn authenticated(&self, number: u64, message: &str) -> (TicketContents, Option<&SecretKey>) {
        let Some((code, text)) = split_signed(message) else {
            return (TicketContents::OtherFormat, None);
        };
        let (run, number) = (self.run.to_string(), number.to_le_bytes());
        let parts = ticket_parts(run.as_bytes(), &number, text);
        let Some(key) = self.keys.iter().find(|key| key.has_signed(&parts, &code)) else {
            return (TicketContents::Forged, None);
        };
        let (until, json) = text.split_once(' ').unwrap_or_default();
        let contents = match serde_json::from_str::<Ticket>(json) {
            Ok(ticket) if ticket.format == TICKET_FORMAT => {
                let is_over =
                    until.parse().is_ok_and(|until: i128| until < Timestamp::now().as_nanosecond());
                if is_over {
                    TicketContents::Expired
                } else {
                    TicketContents::Signed(Box::new(ticket), code)
                }
            }
            _ => TicketContents::OtherFormat,
        };
        (contents, Some(key))
    }

    fn claimed(&self, number: u64) -> String {
        ticket_in(&self.run.claims_of(self.storage.run.name()), number)
    }
}

impl ClaimedTicket<'_> {
    /// Writes the answer to it. If its run is gone, no answer is needed.
    pub fn answer(&self, end: TicketEnd) -> Result<()> {
        let root = &self.queue.storage.root;
        let (run, worker) = (&self.queue.run, self.queue.storage.run.name());
        let answers = root.path(&run.answers_of(worker));
        let answer = TicketAnswer { ticket: self.number, end };
        let names = [run.to_string(), worker.to_string()];
        let line = answer.line(|text| self.key.sign(&answer_parts(&names, text)));
        self.queue.unless_gone(root.disk.append(&answers, line.as_bytes()))
    }

    /// Gives up the claim of a ticket that was answered.
    pub fn close(self) -> Result<()> {
        let root = &self.queue.storage.root;
        self.queue.unless_gone(root.disk.remove(&root.path(&self.queue.claimed(self.number))))
    }

    /// Lets another worker have it.
    pub fn put_back(self) -> Result<()> {
        let root = &self.queue.storage.root;
        let class = self.queue.run.class(&self.class);
        let claimed = root.path(&self.queue.claimed(self.number));
        let waiting = root.path(&ticket_in(&class, self.number));
        self.queue.unless_gone(root.disk.rename(&claimed, &waiting).map(drop))
    }
}

/// The parts of a ticket that its code covers.
fn ticket_parts<'p>(run: &'p [u8], number: &'p [u8], text: &'p str) -> [&'p [u8]; 4] {
    [TICKET, run, number, text.as_bytes()]
}

/// The parts of an answer that its code covers, given the names of the run and of the worker.
fn answer_parts<'p>([run, worker]: &'p [String; 2], text: &'p str) -> [&'p [u8]; 4] {
    [ANSWER, run.as_bytes(), worker.as_bytes(), text.as_bytes()]
}

/// The names of a run and of a worker, as one text. Both are without blanks.
fn names(run: &RunName, worker: &RunName) -> Vec<u8> {
    format!("{run} {worker}").into_bytes()
}

/// The file of the codes of a worker's claims.
fn codes_of(run: &RunName, worker: &RunName) -> String {
    format!("{}/{CODES}", run.claims_of(worker))
}

impl WorkerName {
    /// Returns its host and process, for display.
    pub fn holder(&self) -> Holder {
        Holder::new(&self.0, false)
    }
}

/// The waiting tickets of a run, in order, by the resources that they ask for.
pub(super) fn tickets(root: &Root, run: &RunName) -> Result<BTreeMap<String, Vec<u64>>> {
    root.names(&run.queue())?
        .into_iter()
        .map(|class| {
            let numbers = numbers(root, &run.class(&class))?.collect();
            Ok((class, numbers))
        })
        .collect()
}

/// Writes a file, which replaces an old one of its name and becomes visible whole. It need not be on the disk: it is
/// removed with its run.
pub(super) fn write_whole(root: &Root, name: &str, text: &[u8]) -> Result<()> {
    move_whole(root, &root.place(name)?, text)
}

/// Does the same in a directory that exists.
fn move_whole(root: &Root, place: &Path, text: &[u8]) -> Result<()> {
    let private = root.private_path()?;
    root.disk.write(&private, text)?;
    root.disk.rename(&private, place).map(drop)
}

/// The runs that a directory has entries of.
pub(super) fn runs(root: &Root, directory: &str) -> Result<impl Iterator<Item = RunName>> {
    Ok(root.names(directory)?.into_iter().filter_map(|name| name.parse().ok()))
}

/// The tickets in a directory, in order.
fn numbers(root: &Root, directory: &str) -> Result<impl Iterator<Item = u64> + use<>> {
    Ok(root.names(directory)?.into_iter().filter_map(|name| name.parse().ok()))
}

/// The user id of the owner of a file or directory; `None` if it does not exist.
fn owner(root: &Root, path: &Path) -> Result<Option<u32>> {
    Ok(root.disk.metadata(path)?.map(|metadata| metadata.owner()))
}

/// A process that works on a storage.
#[derive(Clone, Debug, Serialize)]
pub struct Activity {
    /// Its host and process, and the time of its start.
    #[serde(flatten)]
    pub holder: Holder,
    /// Its progress, if it is a run and has recorded its progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<RunState>,
    /// Its record, if it is a worker.
    #[serde(skip)]
    pub worker: Option<WorkerRecord>,
    /// The number of tickets that wait for workers, by the resources that they ask for.
    pub queued: BTreeMap<String, usize>,
    /// The calls that workers execute for it.
    #[serde(rename = "at_workers")]
    pub claimed: Vec<ClaimedCall>,
}

/// A call that a worker executes.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimedCall {
    /// The call, unless it has ended just now.
    #[serde(
        rename = "computation",
        serialize_with = "computation_of",
        skip_serializing_if = "Option::is_none"
    )]
    pub ticket: Option<Ticket>,
    #[serde(flatten)]
    pub worker: Holder,
    /// When the worker took it.
    pub since: Timestamp,
}

/// Reads a ticket for display, without a check of its code.
fn shown_ticket(message: &str) -> Option<Ticket> {
    serde_json::from_str(split_signed(message)?.1.split_once(' ')?.1).ok()
}

/// Serialises the name of a ticket's computation.
#[expect(clippy::ref_option, reason = "serde calls it like this")]
fn computation_of<S: Serializer>(
    ticket: &Option<Ticket>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    ticket.as_ref().map(|ticket| &ticket.computation).serialize(serializer)
}

impl<'a> Runs<'a> {
    /// Records the progress of this run.
    pub fn note_state(&self, state: &RunState) -> Result<()> {
        self.storage.run.appear(&self.storage.root)?;
        let text = serde_json::to_vec(state).unwrap_or_default();
        write_whole(&self.storage.root, &state_of_run(self.storage.run.name()), &text)
    }

    /// Creates the file that this run prints to when it has no terminal. Returns it with its name.
    pub fn create_run_log(&self) -> Result<(File, String)> {
        let name = log_of_run(self.storage.run.name());
        let file = self.storage.root.disk.create(&self.storage.root.place(&name)?, 0o666)?;
        Ok((file, name))
    }

    /// Notes that this run is submitted as a job, until [the job begins](Self::forget_waiting_run).
    pub fn note_waiting_run(&self, log: &str, run: &SubmittedRun) -> Result<()> {
        let text = serde_json::to_vec(run).unwrap_or_default();
        submission_of_log(log).map_or(Ok(()), |name| write_whole(&self.storage.root, &name, &text))
    }

    /// Removes the note that a run with this log is submitted.
    pub fn forget_waiting_run(&self, log: &str) -> Result<()> {
        let name = submission_of_log(log);
        name.map_or(Ok(()), |name| self.storage.root.disk.remove(&self.storage.root.path(&name)))
    }

    /// Returns the runs that were submitted as jobs, and have not begun since.
    pub fn submitted_runs(&self) -> Result<Vec<SubmittedRun>> {
        let notes = runs(&self.storage.root, RUN_LOGS)?
            .map(|run| self.read_small(&submission_of_run(&run)));
        let notes = notes.collect::<Result<Vec<Option<SubmittedRun>>>>()?;
        let mut submitted: Vec<SubmittedRun> = notes.into_iter().flatten().collect();
        submitted.sort_by_key(|run| run.recorded.at);
        Ok(submitted)
    }

    /// The number of this process.
    pub fn own_process(&self) -> u32 {
        self.storage.run.name().process
    }

    /// Returns the other processes that work on the storage, as far as this host knows.
    pub fn activities(&self) -> Result<Vec<Activity>> {
        let mut activities = Vec::new();
        for run in runs(&self.storage.root, RUNS)? {
            if run != *self.storage.run.name() && self.lives(&run) {
                activities.push(self.activity(&run)?);
            }
        }
        Ok(activities)
    }

    fn activity(&self, run: &RunName) -> Result<Activity> {
        let queued =
            tickets(&self.storage.root, run)?.into_iter().map(|(class, it)| (class, it.len()));
        let queued = queued.filter(|(_, count)| *count > 0).collect();
        let mut claimed = Vec::new();
        for worker in runs(&self.storage.root, &run.claims())? {
            for ticket in numbers(&self.storage.root, &run.claims_of(&worker))? {
                let place = self.storage.root.path(&ticket_in(&run.claims_of(&worker), ticket));
                let Some((stat, text)) = self.storage.root.disk.read_one(&place)? else { continue };
                claimed.push(ClaimedCall {
                    worker: Holder::new(&worker, false),
                    ticket: shown_ticket(&String::from_utf8_lossy(&text)),
                    since: Timestamp::from_nanosecond(stat.changed_ns.into()).unwrap_or_default(),
                });
            }
        }
        Ok(Activity {
            holder: Holder::new(run, false),
            state: self.read_small(&state_of_run(run))?,
            worker: self.read_small(&run.worker_record())?,
            queued,
            claimed,
        })
    }

    /// Reads a file of JSON; `None` if it does not exist, or another version has written it.
    pub(super) fn read_small<T: serde::de::DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Option<T>> {
        let text = self.storage.root.disk.read(&self.storage.root.path(name))?;
        Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
    }
}

/// The note that stands beside a log.
fn submission_of_log(log: &str) -> Option<String> {
    let run: RunName =
        log.strip_prefix(RUN_LOGS)?.strip_prefix('/')?.split('/').next()?.parse().ok()?;
    Some(submission_of_run(&run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Unrecorded};

    #[test]
    fn known_workers_are_not_looked_at_again() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Storage::open(dir.path(), Unrecorded::Adopt, Durability::Unsynced).unwrap();
        let (run, worker, other) = (open(), open(), open());
        let (job, task, memory, allocation, life) = Default::default();
        let (cpus, isolates) = (1, false);
        let abilities = WorkerAbilities { job, task, cpus, memory, allocation, isolates, life };
        worker.runs().become_worker(abilities).unwrap();
        run.runs().queue().open().unwrap();
        let search = || other.runs().search_queues(vec![other.runs().own_user()], [].into());
        let mut knowing = search();
        assert_eq!(knowing.look().unwrap().len(), 1);
        assert_eq!(knowing.workers, [worker.run.name().clone()].into());
        // Were it looked at, its queue would be seen. No worker has one.
        worker.runs().queue().open().unwrap();
        assert_eq!(knowing.look().unwrap().len(), 1);
        assert_eq!(search().look().unwrap().len(), 2);
        drop(worker);
        assert_eq!(knowing.look().unwrap().len(), 1);
        assert!(knowing.workers.is_empty(), "one that has ended is forgotten");
    }

    #[test]
    fn a_claim_in_a_queue_of_a_run_that_has_ended_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Storage::open(dir.path(), Unrecorded::Adopt, Durability::Unsynced).unwrap();
        let (run, worker) = (open(), open());
        run.runs().queue().open().unwrap();
        let secret = tempfile::tempdir().unwrap();
        let keys = [SecretKey::find(&secret.path().join("key")).unwrap()].into();
        let mut search = worker.runs().search_queues(vec![worker.runs().own_user()], keys);
        let queue = search.look().unwrap().pop().unwrap();
        assert!(queue.claim("class", 0).unwrap().is_none());
        let claims = dir.path().join(run.run.name().claims());
        assert!(claims.read_dir().unwrap().next().is_some(), "the worker has said who it is");
        drop(run);
        for _ in 0..2 {
            assert!(queue.claim("class", 0).unwrap().is_none());
            assert!(!claims.parent().unwrap().exists());
        }
    }

    #[test]
    fn runs_are_listed_again_only_after_one_has_begun_or_ended() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Storage::open(dir.path(), Unrecorded::Adopt, Durability::Unsynced).unwrap();
        let (run, other) = (open(), open());
        run.runs().queue().open().unwrap();
        let mut search = other.runs().search_queues(vec![other.runs().own_user()], [].into());
        search.look().unwrap();
        assert!(
            search.listed.is_none(),
            "the directory has just changed, and may change unnoticed"
        );

        let later = SystemTime::now() + Duration::from_secs(3600);
        search.list(later).unwrap();
        search.others.clear();
        assert_eq!(search.look().unwrap().len(), 0, "it is not listed again");
        let second = open();
        second.runs().queue().open().unwrap();
        assert_eq!(search.look().unwrap().len(), 2);
    }
}
