//! Resources that calls ask for: the lines of files `resources`.
//!
//! They are never part of an identity: the same call with other resources has the same result. An amount may depend on
//! the texts of names, so it is known only when the call is planned.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::exit::Explain;
use crate::humanize;
use crate::template::Template;

/// Something that a call may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Resource {
    /// The number of processors.
    Cpus,
    /// The memory, in bytes.
    Memory,
    /// At most this time.
    Time,
    /// The number of graphics processors.
    Gpus,
    /// The number of hosts.
    Nodes,
    /// The number of processes that a cluster starts.
    Tasks,
    /// A start of `exec` by this program on every task.
    Launcher,
    /// Whether no other execution runs on the host meanwhile.
    Exclusive,
    /// Whether it is bound to processors of its own.
    Pin,
}

impl Resource {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Cpus,
        Self::Memory,
        Self::Time,
        Self::Gpus,
        Self::Nodes,
        Self::Tasks,
        Self::Launcher,
        Self::Exclusive,
        Self::Pin,
    ];

    /// Whether it is asked for without an amount.
    pub const fn is_flag(self) -> bool {
        matches!(self, Self::Exclusive | Self::Pin)
    }

    /// The word that its line begins with.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cpus => "cpus",
            Self::Memory => "memory",
            Self::Time => "time",
            Self::Gpus => "gpus",
            Self::Nodes => "nodes",
            Self::Tasks => "tasks",
            Self::Launcher => "launcher",
            Self::Exclusive => "exclusive",
            Self::Pin => "pin",
        }
    }

    /// The resource of a line that begins with a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }

    /// A line that asks for it.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Cpus => "cpus 4",
            Self::Memory => "memory 8G",
            Self::Time => "time 2h",
            Self::Gpus => "gpus 1",
            Self::Nodes => "nodes 2",
            Self::Tasks => "tasks 64",
            Self::Launcher => "launcher srun",
            Self::Exclusive => "exclusive",
            Self::Pin => "pin",
        }
    }

    /// Returns the description of an amount of it, in words.
    const fn amount(self) -> &'static str {
        match self {
            Self::Cpus => "a number of cpus",
            Self::Memory => "a size with its unit K, M, G or T",
            Self::Time => "a time with its unit",
            Self::Gpus => "a number of gpus",
            Self::Nodes => "a number of nodes",
            Self::Tasks => "a number of tasks",
            Self::Launcher => "a launcher: srun is the only one, with options that begin with -",
            Self::Exclusive => "an amount: the word exclusive has none",
            Self::Pin => "an amount: the word pin has none; cpus says how many",
        }
    }
}

/// A text that is not an amount of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error, Explain)]
#[error("{text:?} is not {}", self.amount())]
#[hint("write a line such as {}", self.example())]
pub struct AmountError {
    pub resource: Resource,
    pub text: String,
}

impl AmountError {
    /// The resource, if the text was to be a range of it.
    fn range(&self) -> Option<Resource> {
        let has_ranges = matches!(self.resource, Resource::Memory | Resource::Time);
        (has_ranges && self.text.contains("..")).then_some(self.resource)
    }

    /// Returns the description of what it should be, in words.
    fn amount(&self) -> &'static str {
        match self.range() {
            Some(_) => "a range whose end is at least its beginning, and at most 16 times as much",
            None => self.resource.amount(),
        }
    }

    /// A line that is right.
    fn example(&self) -> &'static str {
        match self.range() {
            Some(Resource::Time) => "time 1h..8h",
            Some(_) => "memory 4G..32G",
            None => self.resource.example(),
        }
    }
}

/// A program that starts `exec` on every task of an allocation, with its options, such as Slurm's: `srun --mpi=pmix`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Box<str>", into = "Box<str>")]
pub struct TaskLauncher(Box<str>);

impl TaskLauncher {
    /// The program and its options, separated by blanks.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The options.
    pub fn options(&self) -> impl Iterator<Item = &str> {
        self.0.split(' ').skip(1)
    }
}

impl TryFrom<Box<str>> for TaskLauncher {
    type Error = AmountError;

    fn try_from(text: Box<str>) -> Result<Self, AmountError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match &words[..] {
            ["srun", options @ ..] if options.iter().all(|it| it.starts_with('-')) => {
                Ok(Self(words.join(" ").into()))
            }
            _ => Err(AmountError { resource: Resource::Launcher, text: text.into() }),
        }
    }
}

impl From<TaskLauncher> for Box<str> {
    fn from(launcher: TaskLauncher) -> Self {
        launcher.0
    }
}

/// How many times the beginning of a range its end may be: with twice as much each time, there are at most five attempts.
const MOST: u32 = 16;

/// The limit of an attempt that a range lets be made again with twice as much, as it is written: `memory 4G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AttemptLimit {
    /// In bytes.
    Memory(u64),
    Time(Duration),
}

impl AttemptLimit {
    /// A line with a range that begins there: `memory 4G..16G`.
    pub fn range(self) -> String {
        match self {
            Self::Memory(bytes) => {
                range_line(Resource::Memory, bytes, bytes.checked_mul(4), written_size)
            }
            Self::Time(time) => range_line(Resource::Time, time, time.checked_mul(4), written_time),
        }
    }
}

impl From<AttemptLimit> for String {
    fn from(limit: AttemptLimit) -> Self {
        limit.to_string()
    }
}

impl fmt::Display for AttemptLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Memory(bytes) => write!(f, "memory {}", written_size(bytes)),
            Self::Time(time) => write!(f, "time {}", written_time(time)),
        }
    }
}

impl TryFrom<String> for AttemptLimit {
    type Error = AmountError;

    fn try_from(line: String) -> Result<Self, AmountError> {
        let (word, text) = line.split_once(' ').unwrap_or((&line, ""));
        let resource = if word == "time" { Resource::Time } else { Resource::Memory };
        let limit = match resource {
            Resource::Time => time(text).map(Self::Time),
            _ => bytes(text).filter(|_| word == "memory").map(Self::Memory),
        };
        limit.ok_or(AmountError { resource, text: line })
    }
}

/// An execution that one of the call's limits has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitedAttempt {
    pub limit: AttemptLimit,
    /// The end of the limit's range.
    pub up_to: AttemptLimit,
    /// Whether the next attempt could have no more: the range ends there, or its host has no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
    /// Its duration, in seconds. `None` if it was ended with its worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Peak resident memory of its largest process, in bytes. `None` if it was ended with its worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
}

/// The resources that a call requests. A resource that is not requested is `None`: a call takes one cpu, and the others do not
/// matter to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// The number of processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<NonZeroU32>,
    /// The memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The memory of the last attempt, in bytes, at least `memory`. Then `memory` is a limit, and else a reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_memory: Option<u64>,
    /// The time limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
    /// The time limit of the last attempt, at least `time`. Without it there is one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_time: Option<Duration>,
    /// The number of graphics processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<NonZeroU32>,
    /// The number of hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NonZeroU32>,
    /// The number of processes that a cluster starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<NonZeroU32>,
    /// The program that starts `exec` on every task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launcher: Option<TaskLauncher>,
    /// Whether nothing else is executed on the host meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
    /// Whether it is bound to processors of its own, as many as it asks for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pin: bool,
}

/// Characters in options of launchers that a [class](Resources::class) has in another form, in the order of their replacement.
const SPECIAL: [(char, &str); 4] = [('%', "%25"), (',', "%2C"), (' ', "%20"), ('/', "%2F")];

/// The variables of the environment by which programs choose the number of their threads. `nproc` obeys the first one.
const THREADS: [&str; 7] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "JULIA_NUM_THREADS",
    "GOMAXPROCS",
];

impl Resources {
    /// The variables of the environment that tell a call what it asks for: names, and values as far as it asks. The numbers of threads are
    /// told only to one that asks for processors, unless `access` passes them on.
    pub fn variables(&self, access: &Access) -> Vec<(&'static str, Option<String>)> {
        let cpus = self.cpus.or_else(|| self.pinned()).map(|it| it.to_string());
        let mut variables = vec![
            ("CE_CPUS", cpus.clone()),
            ("CE_MEMORY", self.memory.map(|it| it.to_string())),
            ("CE_GPUS", self.gpus.map(|it| it.to_string())),
        ];
        if cpus.is_some() {
            let threads = THREADS.into_iter().filter(|name| !access.passes(OsStr::new(name)));
            variables.extend(threads.map(|name| (name, cpus.clone())));
        }
        variables
    }

    /// Asks for an amount of a resource.
    pub fn set(&mut self, resource: Resource, text: &str) -> Result<(), AmountError> {
        let wrong = || AmountError { resource, text: text.to_owned() };
        let number = || text.parse::<NonZeroU32>().map_err(|_| wrong());
        match resource {
            Resource::Cpus => self.cpus = Some(number()?),
            Resource::Memory => {
                let (first, last) = range(text, bytes, |first| first.saturating_mul(MOST.into()))
                    .ok_or_else(wrong)?;
                (self.memory, self.last_memory) = (Some(first), last);
            }
            Resource::Time => {
                let (first, last) =
                    range(text, time, |first| first.saturating_mul(MOST)).ok_or_else(wrong)?;
                (self.time, self.last_time) = (Some(first), last);
            }
            Resource::Gpus => self.gpus = Some(number()?),
            Resource::Nodes => self.nodes = Some(number()?),
            Resource::Tasks => self.tasks = Some(number()?),
            Resource::Launcher => self.launcher = Some(Box::<str>::from(text).try_into()?),
            Resource::Exclusive if text.is_empty() => self.exclusive = true,
            Resource::Pin if text.is_empty() => self.pin = true,
            Resource::Exclusive | Resource::Pin => return Err(wrong()),
        }
        Ok(())
    }

    /// Returns lines that ask for the same, in the order of the resources.
    pub fn lines(&self) -> Vec<String> {
        let lines = [
            number_line(Resource::Cpus, self.cpus),
            self.memory
                .map(|memory| range_line(Resource::Memory, memory, self.last_memory, written_size)),
            self.time.map(|time| range_line(Resource::Time, time, self.last_time, written_time)),
            number_line(Resource::Gpus, self.gpus),
            number_line(Resource::Nodes, self.nodes),
            number_line(Resource::Tasks, self.tasks),
            self.launcher.as_ref().map(|it| format!("{} {}", Resource::Launcher.word(), it.text())),
            self.exclusive.then(|| Resource::Exclusive.word().to_owned()),
            self.pin.then(|| Resource::Pin.word().to_owned()),
        ];
        lines.into_iter().flatten().collect()
    }

    /// The resources that a call is told to have asked for: see [`variables`](Self::variables).
    #[must_use]
    pub fn told(&self) -> Self {
        let Self { cpus, memory, gpus, pin, .. } = *self;
        Self { cpus, memory, gpus, pin, ..Self::default() }
    }

    /// The number of processors that it is bound to, if it wants that. The launcher of tasks binds them.
    pub fn pinned(&self) -> Option<NonZeroU32> {
        (self.pin && !self.spans()).then(|| self.cpus.unwrap_or(NonZeroU32::MIN))
    }

    /// The resources that these lines ask for, as [`lines`](Self::lines) writes them. Others are left out.
    pub fn of_lines(lines: &[String]) -> Self {
        let mut resources = Self::default();
        for line in lines {
            let (word, amount) = line.split_once(' ').unwrap_or((line, ""));
            if let Some(resource) = Resource::of_word(word) {
                drop(resources.set(resource, amount));
            }
        }
        resources
    }

    /// Whether it is executed in an allocation of its own shape: it asks for several hosts or processes, or for a launcher.
    pub fn spans(&self) -> bool {
        let one = Some(NonZeroU32::MIN);
        self.nodes > one || self.tasks > one || self.launcher.is_some()
    }

    /// Whether it can be isolated: it starts no tasks itself.
    pub fn can_be_isolated(&self) -> bool {
        !self.spans() || self.launcher.is_some()
    }

    /// The number of tasks: one for each host, unless it asks for a number.
    pub fn task_count(&self) -> NonZeroU32 {
        self.tasks.or(self.nodes).unwrap_or(NonZeroU32::MIN)
    }

    /// A name for all calls that ask for the same, as `cpus=4,memory=8G`. It is the name of a directory.
    pub fn class(&self) -> String {
        let one = self.cpus.is_none().then(|| "cpus=1".to_owned());
        let lines = self.lines().into_iter().map(|line| {
            let line = line.replacen(' ', "=", 1);
            SPECIAL.iter().fold(line, |text, (sign, code)| text.replace(*sign, code))
        });
        one.into_iter().chain(lines).collect::<Vec<_>>().join(",")
    }

    /// Returns the resources that calls of a class request; `None` if it is not a class.
    pub fn of_class(class: &str) -> Option<Self> {
        let mut resources = Self::default();
        for part in class.split(',') {
            let back =
                |text: String, (sign, code): &(char, &str)| text.replace(code, &sign.to_string());
            let part = SPECIAL.iter().rev().fold(part.to_owned(), back);
            let (word, amount) = part.split_once('=').unwrap_or((&part, ""));
            resources.set(Resource::of_word(word)?, amount).ok()?;
        }
        Some(resources)
    }

    /// Returns the resources that the next attempt requests after these, which limits have ended: twice as much, up to the end of the range and of the memory that
    /// there is.
    #[must_use]
    pub fn after(mut self, attempts: &[LimitedAttempt], there: Option<u64>) -> Self {
        for attempt in attempts {
            match attempt.limit {
                AttemptLimit::Memory(bytes) if let Some(last) = self.last_memory => {
                    let most = there.map_or(last, |there| last.min(there));
                    self.memory = self.memory.max(Some(bytes.saturating_mul(2).min(most)));
                }
                AttemptLimit::Time(time) if let Some(last) = self.last_time => {
                    self.time = self.time.max(Some(time.saturating_mul(2).min(last)));
                }
                AttemptLimit::Memory(_) | AttemptLimit::Time(_) => {}
            }
        }
        self
    }

    /// The end of the range of a limit of this kind, if it is one.
    pub fn end_of_range(&self, limit: AttemptLimit) -> Option<AttemptLimit> {
        match limit {
            AttemptLimit::Memory(_) => self.last_memory.map(AttemptLimit::Memory),
            AttemptLimit::Time(_) => self.last_time.map(AttemptLimit::Time),
        }
    }

    /// Whether another attempt after these could have no more than the last one, where there is this memory. Without it, the attempt says
    /// whether its host had more.
    pub fn is_exhausted(&self, attempts: &[LimitedAttempt], there: Option<u64>) -> bool {
        let Some(last) = attempts.last() else { return false };
        self.end_of_range(last.limit).is_some_and(|end| match (last.limit, there) {
            (AttemptLimit::Memory(_), Some(there)) => {
                last.limit >= end.min(AttemptLimit::Memory(there))
            }
            _ => last.limit >= end || last.last && last.up_to >= end,
        })
    }

    /// The same with what the first attempt asks for, before these.
    #[must_use]
    pub fn before(mut self, attempts: &[LimitedAttempt]) -> Self {
        for attempt in attempts {
            match attempt.limit {
                AttemptLimit::Memory(bytes) => {
                    self.memory = self.memory.map(|memory| memory.min(bytes));
                }
                AttemptLimit::Time(limit) => self.time = self.time.map(|time| time.min(limit)),
            }
        }
        self
    }

    /// The maximum of each. A limit remains one.
    #[must_use]
    pub fn max(self, other: &Self) -> Self {
        let (memory, time) = (self.memory.max(other.memory), self.time.max(other.time));
        let last_memory = self.last_memory.max(other.last_memory);
        let last_time = self.last_time.max(other.last_time);
        Self {
            cpus: self.cpus.max(other.cpus),
            memory,
            last_memory: last_memory.and_then(|last| memory.map(|memory| last.max(memory))),
            time,
            last_time: last_time.and_then(|last| time.map(|time| last.max(time))),
            gpus: self.gpus.max(other.gpus),
            nodes: self.nodes.max(other.nodes),
            tasks: self.tasks.max(other.tasks),
            launcher: self.launcher.max(other.launcher.clone()),
            exclusive: self.exclusive || other.exclusive,
            pin: self.pin || other.pin,
        }
    }
}

/// The line that asks for a number of a resource, if one is asked for.
fn number_line(resource: Resource, number: Option<NonZeroU32>) -> Option<String> {
    number.map(|number| format!("{} {number}", resource.word()))
}

/// The line that asks for an amount, or for a range of it.
fn range_line<T>(resource: Resource, first: T, last: Option<T>, write: fn(T) -> String) -> String {
    let last = last.map(|last| format!("..{}", write(last))).unwrap_or_default();
    format!("{} {}{last}", resource.word(), write(first))
}

/// Reads an amount, or the two ends of a range. The second one is not less than the first, nor more than `most` of it.
fn range<T: PartialOrd>(
    text: &str,
    read: fn(&str) -> Option<T>,
    most: fn(&T) -> T,
) -> Option<(T, Option<T>)> {
    let Some((first, last)) = text.split_once("..") else { return Some((read(text)?, None)) };
    let (first, last) = (read(first.trim_end())?, read(last.trim_start())?);
    (first <= last && last <= most(&first)).then_some((first, Some(last)))
}

/// Reads a time that is not zero.
fn time(text: &str) -> Option<Duration> {
    humanize::parse_duration(text).ok().filter(|time| !time.is_zero())
}

/// Writes a time in the largest unit that divides it.
fn written_time(time: Duration) -> String {
    let time = time.as_nanos();
    let units = [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000)];
    let small = [("ms", 1_000_000), ("us", 1_000)];
    let mut exact = units.into_iter().chain(small).filter(|(_, unit)| time.is_multiple_of(*unit));
    let (name, unit) = exact.next().unwrap_or(("ns", 1));
    format!("{}{name}", time / unit)
}

/// Writes a size in the largest unit that divides it.
fn written_size(bytes: u64) -> String {
    let units = "TGMK".chars().zip([40, 30, 20, 10]);
    let mut exact = units.filter(|(_, shift)| bytes.trailing_zeros() >= *shift);
    match exact.next() {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => format!("{}K", bytes.div_ceil(1024)),
    }
}

/// Reads a size: a number and its unit, which is a power of 1024.
fn bytes(text: &str) -> Option<u64> {
    let power = "KMGT".find(text.chars().next_back()?)? as u32 + 1;
    let number: u64 = text[..text.len() - 1].trim_end().parse().ok()?;
    number.checked_mul(1024_u64.pow(power)).filter(|bytes| *bytes > 0)
}

/// Reads an amount of memory, in bytes.
pub fn parse_size(text: &str) -> Result<u64, AmountError> {
    bytes(text).ok_or_else(|| AmountError { resource: Resource::Memory, text: text.to_owned() })
}

/// A line of a file `resources`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceLine {
    /// The requested resource.
    pub resource: Resource,
    /// The amount; empty for one that [has none](Resource::is_flag).
    pub amount: Template<String>,
    /// The file, relative to the task.
    pub path: PathBuf,
    /// The number of the line, counted from one.
    pub line: usize,
}

impl ResourceLine {
    /// The line as it is written.
    pub fn written(&self) -> String {
        format!("{} {}", self.resource.word(), self.amount.as_str()).trim_end().to_owned()
    }
}

impl IntoIterator for ResourceLines {
    type Item = ResourceLine;
    type IntoIter = std::vec::IntoIter<ResourceLine>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_vec().into_iter()
    }
}

/// A line that asks for nothing with the texts of its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}:{line}: {error}", path.display())]
pub struct WrongAmount {
    /// The file, relative to the task.
    pub path: PathBuf,
    /// The number of the line, counted from one.
    pub line: usize,
    /// The fault.
    pub error: AmountError,
}

/// The lines that count for a node: at most one for each resource, in the order of the resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceLines(Box<[ResourceLine]>);

impl ResourceLines {
    /// Merges lines: of two for one resource, the first one counts.
    pub fn new(lines: impl IntoIterator<Item = ResourceLine>) -> Self {
        let mut first = BTreeMap::new();
        for line in lines {
            first.entry(line.resource).or_insert(line);
        }
        Self(first.into_values().collect())
    }

    /// The lines.
    pub fn iter(&self) -> impl Iterator<Item = &ResourceLine> {
        self.0.iter()
    }

    /// Returns the amounts that they ask for with the texts of the names in them. A line with a name that has no text counts for
    /// other nodes.
    ///
    /// # Errors
    ///
    /// Fails with the first line that asks for nothing then.
    pub fn amounts<'a>(
        &self,
        text: impl Fn(usize) -> Option<&'a str>,
    ) -> Result<Resources, WrongAmount> {
        let mut resources = Resources::default();
        for ResourceLine { resource, amount, path, line } in self.iter() {
            if amount.names().any(|name| text(name).is_none()) {
                continue;
            }
            let Ok(amount) = amount.bind(&text);
            let set = resources.set(*resource, amount.as_str().trim());
            set.map_err(|error| WrongAmount { path: path.clone(), line: *line, error })?;
        }
        Ok(resources)
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the same with texts of names.
    #[must_use]
    pub fn bind<'a>(&self, text: impl Fn(usize) -> Option<&'a str>) -> Self {
        Self(
            self.iter()
                .map(|line| {
                    let Ok(amount) = line.amount.bind(&text);
                    ResourceLine { amount, ..line.clone() }
                })
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Rule;

    fn set(resource: Resource, text: &str) -> Option<Resources> {
        let mut resources = Resources::default();
        resources.set(resource, text).ok().map(|()| resources)
    }

    #[test]
    fn a_call_is_told_what_it_asks_for() {
        let none = Resources::default().variables(&Access::default());
        assert_eq!(none, [("CE_CPUS", None), ("CE_MEMORY", None), ("CE_GPUS", None)]);
        let mut resources = set(Resource::Cpus, "3").unwrap();
        resources.set(Resource::Memory, "2G").unwrap();
        let granted = Access::new(vec![Rule::parse("env OMP_*", &[], &[]).unwrap()]);
        for (access, threads) in [(Access::default(), 7), (granted, 6)] {
            let all = resources.variables(&access);
            assert_eq!(all[1], ("CE_MEMORY", Some("2147483648".to_owned())));
            let cpus = all.iter().filter(|(_, value)| value.as_deref() == Some("3"));
            assert_eq!(cpus.count(), 1 + threads);
        }
    }

    #[test]
    fn amounts_have_the_units_of_their_resource() {
        let memory = |text| set(Resource::Memory, text).and_then(|it| it.memory);
        assert_eq!(memory("3K"), Some(3072));
        assert_eq!(memory("8G"), Some(8 << 30));
        assert_eq!(memory("1 T"), Some(1 << 40));
        for wrong in ["", "8", "G", "8g", "-8G", "1.5G", "0G", "8GB", "99999999999T"] {
            assert_eq!(memory(wrong), None, "{wrong}");
        }
        assert_eq!(set(Resource::Memory, "1G .. 16G").unwrap().lines(), ["memory 1G..16G"]);
        assert_eq!(set(Resource::Memory, "8G..8G").unwrap().lines(), ["memory 8G..8G"]);
        for wrong in ["8G..4G", "1G..17G", "..4G", "4G..", "4..8G", "1G..2G..4G"] {
            assert_eq!(memory(wrong), None, "{wrong}");
        }
        assert_eq!(set(Resource::Time, "30min..8h").unwrap().lines(), ["time 30m..8h"]);
        assert_eq!(set(Resource::Time, "1h..17h"), None);
        let time = |text| set(Resource::Time, text).and_then(|it| it.time);
        assert_eq!(time("1h30min"), Some(Duration::from_secs(5400)));
        for wrong in ["", "2", "-2h", "0s", "soon"] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
        for resource in [Resource::Cpus, Resource::Gpus, Resource::Nodes, Resource::Tasks] {
            assert!(set(resource, "4").is_some());
            for wrong in ["", "0", "-1", "four", "1.5", "99999999999"] {
                assert_eq!(set(resource, wrong), None, "{wrong}");
            }
        }
        for flag in [Resource::Exclusive, Resource::Pin] {
            assert!(set(flag, "").is_some());
            assert_eq!(set(flag, "no"), None);
        }
    }

    #[test]
    fn every_example_is_right() {
        for resource in Resource::ALL {
            let example = resource.example();
            let (word, amount) = example.split_once(' ').unwrap_or((example, ""));
            assert_eq!(amount.is_empty(), resource.is_flag());
            assert_eq!(Resource::of_word(word), Some(resource));
            assert!(set(resource, amount).is_some());
        }
    }

    #[test]
    fn printed_resource_lines_are_read_back() {
        let mut resources = Resources::default();
        assert!(resources.lines().is_empty());
        let lines = [
            "cpus 4",
            "memory 1536M",
            "time 90m",
            "gpus 1",
            "nodes 2",
            "tasks 64",
            "launcher srun --mpi=pmix --cpu-bind=verbose,map_cpu:0,1 --multi-prog=a%2Cb/c",
            "exclusive",
        ];
        for line in lines {
            let (word, amount) = line.split_once(' ').unwrap_or((line, ""));
            resources.set(Resource::of_word(word).unwrap(), amount).unwrap();
        }
        assert_eq!(resources.lines(), lines);
        assert_eq!(Resources::of_class(&resources.class()), Some(resources));
    }

    fn limited(limit: AttemptLimit, up_to: AttemptLimit, last: bool) -> LimitedAttempt {
        LimitedAttempt { limit, up_to, last, seconds: None, peak_bytes: None }
    }

    /// The memory of each attempt, if all are ended by their limits.
    fn attempts(range: &str, there: Option<u64>) -> Vec<String> {
        let asked = set(Resource::Memory, range).unwrap();
        let (mut ended, mut numbers) = (Vec::new(), Vec::new());
        while !asked.is_exhausted(&ended, there) {
            let now = asked.clone().after(&ended, there);
            assert_eq!(now.clone().before(&ended), asked);
            numbers.push(written_size(now.memory.unwrap()));
            let limit = AttemptLimit::Memory(now.memory.unwrap());
            let next = [&ended[..], &[limited(limit, limit, false)]].concat();
            let last = asked.clone().after(&next, there).memory == now.memory;
            ended.push(limited(limit, now.end_of_range(limit).unwrap(), last));
        }
        numbers
    }

    #[test]
    fn each_attempt_has_twice_as_much_up_to_the_end_of_the_range_and_of_the_host() {
        assert_eq!(attempts("1G..16G", None), ["1G", "2G", "4G", "8G", "16G"]);
        assert_eq!(attempts("3G..16G", None), ["3G", "6G", "12G", "16G"]);
        assert_eq!(attempts("4G..4G", None), ["4G"]);
        assert_eq!(attempts("4G..32G", Some(11 << 30)), ["4G", "8G", "11G"]);
        let wider = set(Resource::Memory, "4G..64G").unwrap();
        let [limit, up_to] = [4, 32].map(|it| AttemptLimit::Memory(it << 30));
        let ended = [limited(limit, up_to, true)];
        assert!(!wider.is_exhausted(&ended, None), "its range ended earlier");
        assert!(!Resources::default().is_exhausted(&ended, None), "it has no range any more");
        let same = set(Resource::Memory, "4G..32G").unwrap();
        assert!(same.is_exhausted(&ended, None), "its host had no more");
        assert!(!same.is_exhausted(&ended, Some(64 << 30)), "this host has more");
    }

    #[test]
    fn a_limit_is_read_as_it_is_written() {
        for line in ["memory 4G", "time 90m"] {
            assert_eq!(AttemptLimit::try_from(line.to_owned()).unwrap().to_string(), line);
        }
        for wrong in ["4G", "memory 1h", "time 4G", "cpus 4"] {
            assert!(AttemptLimit::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    fn spans(class: &str) -> (bool, u32) {
        let resources = Resources::of_class(class).unwrap();
        (resources.spans(), resources.task_count().get())
    }

    #[test]
    fn calls_with_several_tasks_or_a_launcher_span_an_allocation() {
        assert_eq!(spans("cpus=4,nodes=1,tasks=1,exclusive"), (false, 1));
        assert_eq!(spans("nodes=2"), (true, 2));
        assert_eq!(spans("nodes=2,tasks=8"), (true, 8));
        assert_eq!(spans("tasks=3"), (true, 3));
        assert_eq!(spans("launcher=srun"), (true, 1));
        assert_eq!(Resources::of_class("launcher=mpirun"), None);
        assert_eq!(Resources::of_class("launcher=srun%20hostname"), None);
    }

    #[test]
    fn nodes_that_are_one_call_get_the_maximum_of_each() {
        let one = Resources { cpus: NonZeroU32::new(4), exclusive: true, ..Resources::default() };
        let other = Resources { cpus: NonZeroU32::new(2), memory: Some(1), ..Resources::default() };
        let both = Resources { memory: Some(1), ..one.clone() };
        assert_eq!(one.clone().max(&other), both);
        assert_eq!(other.max(&one), both);
        let [range, wide, plain] =
            ["2G..8G", "1G..16G", "32G"].map(|it| set(Resource::Memory, it).unwrap());
        assert_eq!(range.clone().max(&wide).lines(), ["memory 2G..16G"]);
        assert_eq!(range.clone().max(&plain).lines(), ["memory 32G..32G"]);
        assert_eq!(plain.max(&range).lines(), ["memory 32G..32G"]);
    }
}
