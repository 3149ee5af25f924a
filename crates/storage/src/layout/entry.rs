//! Results that have records, whatever their kind.

use super::{FAILED, LEASES, LOG, RECORDS, ResultName, SUSPENDED, TASK_INPUTS, split_member};

/// A result that has a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// A call.
    Call(ResultName),
    /// A job.
    Job(ResultName),
    /// The table of a sweep.
    Table(ResultName),
    /// A task input, by its name below `tinputs/`.
    TaskInput(String),
}

impl Entry {
    /// The name of its record, relative to the storage.
    pub fn record(&self) -> String {
        self.room(RECORDS)
    }

    /// The name of its record in another room.
    pub(crate) fn room(&self, room: &str) -> String {
        match self {
            Self::Call(name) | Self::Job(name) | Self::Table(name) => name.record_in(room),
            Self::TaskInput(place) => format!("{TASK_INPUTS}/{room}/{place}.json"),
        }
    }

    /// The call or table with this short name, which has no room.
    pub fn of_short(short: &str) -> Option<Self> {
        let name = ResultName::of_short(short)?;
        Some(if name.is_table() { Self::Table(name) } else { Self::Call(name) })
    }

    /// The result whose record has this name; `None` of a task input.
    pub fn of_record(record: &str) -> Option<Self> {
        let name = ResultName::of_record_in(RECORDS, record)?;
        match record.get(..2)? {
            "c_" => Some(Self::Call(name)),
            "t_" => Some(Self::Job(name)),
            _ => name.is_table().then_some(Self::Table(name)),
        }
    }

    /// The result that a file of this name, or a member of one, belongs to.
    pub fn of_file(file: &str) -> Option<Self> {
        let (file, _member) = split_member(file);
        if let Some(place) = file.strip_prefix(TASK_INPUTS) {
            return Some(Self::TaskInput(place.strip_prefix('/')?.to_owned()));
        }
        let name = ResultName::of_output(file)?;
        match file.get(..2)? {
            _ if name.is_table() => Some(Self::Table(name)),
            "c_" => Some(Self::Call(name)),
            "t_" => Some(Self::Job(name)),
            _ => None,
        }
    }

    /// The version of its computation or task, as in its name; `None` for others.
    pub fn version(&self) -> Option<&str> {
        match self {
            Self::Call(name) | Self::Job(name) => Some(name.version()),
            Self::Table(_) | Self::TaskInput(_) => None,
        }
    }

    /// The name of the whole result: without a room, or that of the only file.
    pub fn short(&self) -> String {
        match self {
            Self::Call(name) | Self::Job(name) | Self::Table(name) => name.short(),
            Self::TaskInput(_) => self.file(0),
        }
    }

    /// The name of one of its files. A task input has only one.
    pub fn file(&self, number: usize) -> String {
        match self {
            Self::Call(name) | Self::Job(name) | Self::Table(name) => name.output(number),
            Self::TaskInput(place) => format!("{TASK_INPUTS}/{place}"),
        }
    }
}

impl ResultName {
    /// The rooms of a version's directory that have a file for a call, beside those of outputs.
    const ROOMS: [&str; 5] = [RECORDS, LOG, FAILED, LEASES, SUSPENDED];

    /// The call that a file of the storage belongs to: an output, a record, a log, or what is left of a failure.
    pub fn of_call_file(name: &str) -> Option<Self> {
        let [owner, version, room, file] = name.splitn(4, '/').collect::<Vec<_>>()[..] else {
            return Self::of_call(name);
        };
        if !owner.starts_with("c_") || !Self::ROOMS.contains(&room) {
            return Self::of_call(name);
        }
        let file = file.split('/').next().unwrap_or(file).trim_end_matches(".json");
        Self::of_short(&format!("{owner}/{version}/{file}"))
    }
}
