//! The columns that say what became of a row, and which execution made it. They stand here once: `ce table` prints them behind the columns
//! of the table, in this order, and a file is read back by them.

use std::borrow::Cow;
use std::sync::Arc;

use ce_exchange::Attested;
use ce_history::PublishedExecution;
use ce_model::sweep::STATUS;
use ce_storage::Holder;
use jiff::Timestamp;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Frame, FrameRow, RowOrigin, RowStatus};

/// A column that says what became of a row, or which execution made it.
#[derive(Clone, Copy, Debug)]
pub struct RowColumn {
    /// Its name, also in JSON.
    pub name: &'static str,
    pub subject: RowSubject,
    /// Whether tables of earlier versions do not have it. JSON has it where it is known.
    pub is_later: bool,
    /// Whether it has numbers.
    pub is_number: bool,
    /// Whether its texts may be cut for a narrow terminal.
    pub may_be_cut: bool,
    /// The width to which they are cut at most.
    pub narrowest: usize,
    /// Whether a narrow terminal may leave it out.
    pub may_be_left_out: bool,
    /// Whether people see it. It has the same value in each row of other tables.
    pub is_shown: fn(&Frame) -> bool,
    /// Its fact about a row.
    pub fact: fn(&FrameRow) -> Option<RowFact<'_>>,
    /// Reads it from a file.
    pub(crate) read: fn(&mut FrameRow, &str),
}

/// The subject of a [`RowColumn`], in the order in which JSON has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowSubject {
    /// The point. JSON has it where it is known.
    Point,
    /// The execution that made the first output.
    Execution,
    /// The evidence for that execution, which only JSON has.
    Evidence,
    /// The users who have executed it, if they are asked for.
    Attesters,
}

/// A fact about a row.
#[derive(Clone, Copy, Debug)]
pub enum RowFact<'a> {
    /// A text.
    Text(&'a str),
    /// A number.
    Number(usize),
    /// A duration in seconds.
    Seconds(f64),
    /// A share.
    Share(f64),
    /// A time.
    Time(Timestamp),
    /// Yes or no.
    Flag(bool),
    /// The run that executes a call.
    Running(&'a Holder),
    /// A published execution.
    Published(&'a PublishedExecution),
    /// The attesters of a call.
    Attested(&'a Attested),
}

/// A column of texts, which everybody sees.
const TEXTS: RowColumn = RowColumn {
    name: "",
    subject: RowSubject::Execution,
    is_later: false,
    is_number: false,
    may_be_cut: false,
    narrowest: 0,
    may_be_left_out: false,
    is_shown: |_| true,
    fact: |_| None,
    read: |_, _| {},
};

/// The narrowest column of reasons: `it ended with exit status 1` tells nothing if it is cut before the last word.
const REASON_WIDTH: usize = 30;

/// All of them, in the order in which they are printed.
pub const ROW_COLUMNS: [RowColumn; 12] = [
    RowColumn {
        name: STATUS,
        subject: RowSubject::Point,
        fact: |row| Some(RowFact::Text(row.status.word())),
        read: |row, text| row.status = RowStatus::of_word(text),
        ..TEXTS
    },
    RowColumn {
        name: "call",
        is_number: true,
        is_shown: Frame::is_shared,
        fact: |row| row.call.map(RowFact::Number),
        read: |row, text| row.call = text.parse().ok(),
        ..TEXTS
    },
    RowColumn {
        name: "host",
        may_be_cut: true,
        may_be_left_out: true,
        fact: |row| Some(RowFact::Text(row.origin.as_ref()?.host.as_ref()?)),
        read: |row, text| origin(row).host = Some(text.into()),
        ..TEXTS
    },
    RowColumn {
        name: "machine",
        is_later: true,
        may_be_cut: true,
        may_be_left_out: true,
        is_shown: Frame::has_several_machines,
        fact: |row| Some(RowFact::Text(row.origin.as_ref()?.machine.as_ref()?)),
        read: |row, text| origin(row).machine = Some(text.into()),
        ..TEXTS
    },
    RowColumn {
        name: "time",
        may_be_left_out: true,
        fact: |row| row.origin.as_ref()?.at.map(RowFact::Time),
        read: |row, text| origin(row).at = text.parse().ok(),
        ..TEXTS
    },
    RowColumn {
        name: "duration",
        is_number: true,
        fact: |row| row.origin.as_ref()?.seconds.map(RowFact::Seconds),
        read: |row, text| origin(row).seconds = text.parse().ok(),
        ..TEXTS
    },
    RowColumn {
        name: "exclusive",
        is_later: true,
        is_shown: |frame| frame.disturbed() > 0,
        fact: |row| row.origin.as_ref()?.exclusive.map(RowFact::Flag),
        read: |row, text| origin(row).exclusive = Some(text == "yes" || text == "true"),
        ..TEXTS
    },
    RowColumn {
        name: "others",
        is_later: true,
        is_number: true,
        is_shown: |frame| frame.measured_beside_others().disturbed > 0,
        fact: |row| row.origin.as_ref()?.others.map(RowFact::Share),
        read: |row, text| origin(row).others = text.parse().ok(),
        ..TEXTS
    },
    RowColumn {
        name: "reason",
        subject: RowSubject::Point,
        may_be_cut: true,
        narrowest: REASON_WIDTH,
        fact: |row| match &row.status {
            RowStatus::Failed { reason, .. } => Some(RowFact::Text(reason)),
            RowStatus::Running(holder) => Some(RowFact::Running(holder)),
            RowStatus::Ok => row.uncertain.as_deref().map(RowFact::Text),
            RowStatus::Suspended
            | RowStatus::Waiting
            | RowStatus::Missing
            | RowStatus::Excluded => None,
        },
        ..TEXTS
    },
    RowColumn {
        name: "log",
        subject: RowSubject::Point,
        may_be_left_out: true,
        fact: |row| match &row.status {
            RowStatus::Failed { log, .. } => log.as_deref().map(RowFact::Text),
            _ => None,
        },
        ..TEXTS
    },
    RowColumn {
        name: "published",
        subject: RowSubject::Evidence,
        is_later: true,
        fact: |row| row.origin.as_ref()?.published.as_deref().map(RowFact::Published),
        ..TEXTS
    },
    RowColumn {
        name: "attested",
        subject: RowSubject::Attesters,
        fact: |row| row.attested.as_deref().map(RowFact::Attested),
        ..TEXTS
    },
];

/// The execution that made a row, as far as it was read.
fn origin(row: &mut FrameRow) -> &mut RowOrigin {
    Arc::make_mut(row.origin.get_or_insert_default())
}

/// The name that a column is printed with behind these columns of a table: `status`, or, if one of them is called so, `status (of the
/// row)`.
pub fn row_column_name<S: AsRef<str>>(name: &str, columns: &[S]) -> String {
    let mut name = name.to_owned();
    while columns.iter().any(|column| column.as_ref() == name) {
        name.push_str(" (of the row)");
    }
    name
}

impl<'a> RowFact<'a> {
    /// Its text in columns and in CSV.
    pub fn text(&self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => (*text).into(),
            Self::Number(number) => number.to_string().into(),
            Self::Seconds(seconds) => format!("{seconds:.3}").into(),
            Self::Share(share) => format!("{share:.2}").into(),
            Self::Time(time) => format!("{time:.0}").into(),
            Self::Flag(true) => "yes".into(),
            Self::Flag(false) => "no".into(),
            Self::Running(holder) => run_in_words(holder).into(),
            Self::Published(_) => "".into(),
            Self::Attested(attested) => attested.to_string().into(),
        }
    }
}

/// The run that executes a call, in words.
pub fn run_in_words(holder: &Holder) -> String {
    let began = began(holder).map(|it| format!(", which began at {it:.0}")).unwrap_or_default();
    format!("by {holder}{began}")
}

fn began(holder: &Holder) -> Option<Timestamp> {
    Timestamp::from_nanosecond(holder.began?.into()).ok()
}

impl Serialize for RowFact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Number(number) => number.serialize(serializer),
            Self::Seconds(number) | Self::Share(number) => serializer.serialize_f64(*number),
            Self::Time(time) => time.serialize(serializer),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Running(holder) => {
                let mut map = serializer.serialize_map(Some(3))?;
                map.serialize_entry("host", &holder.host)?;
                map.serialize_entry("process", &holder.process)?;
                map.serialize_entry("began", &began(holder))?;
                map.end()
            }
            Self::Published(published) => published.serialize(serializer),
            Self::Attested(attested) => attested.serialize(serializer),
        }
    }
}

impl RowColumn {
    /// Whether a table has the column, as text or as CSV.
    pub fn is_printed(&self, frame: &Frame) -> bool {
        match self.subject {
            RowSubject::Point | RowSubject::Execution => true,
            RowSubject::Evidence => false,
            RowSubject::Attesters => frame.has_attesters,
        }
    }

    /// Returns what JSON has for a row: the name and the fact. `None` if it has nothing; without a fact, `null`.
    pub fn json<'a>(
        &self,
        frame: &Frame,
        row: &'a FrameRow,
    ) -> Option<(&'static str, Option<RowFact<'a>>)> {
        let has_null = match self.subject {
            RowSubject::Point | RowSubject::Evidence => false,
            RowSubject::Execution => !self.is_later,
            RowSubject::Attesters => frame.has_attesters,
        };
        match (self.fact)(row) {
            Some(fact @ RowFact::Running(_)) => Some(("holder", Some(fact))),
            Some(fact) => Some((self.name, Some(fact))),
            None => has_null.then_some((self.name, None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::tests::frame;

    /// The facts about a row as JSON.
    fn json(frame: &Frame, row: &FrameRow) -> String {
        let mut columns = ROW_COLUMNS;
        columns.sort_by_key(|column| column.subject);
        let facts = columns.iter().filter_map(|column| column.json(frame, row));
        let facts =
            facts.map(|(name, fact)| format!("{name}={}", serde_json::to_string(&fact).unwrap()));
        facts.collect::<Vec<_>>().join(" ")
    }

    /// The facts about a row as CSV has them.
    fn csv(frame: &Frame, row: &FrameRow) -> String {
        let columns = ROW_COLUMNS.iter().filter(|column| column.is_printed(frame));
        let facts =
            columns.map(|column| (column.fact)(row).map(|it| it.text()).unwrap_or_default());
        facts.collect::<Vec<_>>().join(",")
    }

    #[test]
    fn all_columns_are_printed_in_order_and_unknown_facts_are_empty() {
        let mut frame = frame("n s@0\n 1 2 | 1\n 2 - | failed 2\n 3 - | excluded");
        let origin = RowOrigin {
            host: Some("red".into()),
            at: "2026-01-01T00:00:00.25Z".parse().ok(),
            seconds: Some(1.23456),
            exclusive: Some(true),
            ..RowOrigin::default()
        };
        frame.rows[0].origin = Some(Arc::new(origin));
        frame.rows[0].uncertain = Some("±9%".to_owned());
        let [ok, failed, excluded] = [0, 1, 2].map(|at| &frame.rows[at]);
        assert_eq!(csv(&frame, ok), "ok,1,red,,2026-01-01T00:00:00Z,1.235,yes,,±9%,");
        assert_eq!(csv(&frame, failed), "failed,2,,,,,,,it failed,");
        assert_eq!(csv(&frame, excluded), "excluded,,,,,,,,,");
        assert_eq!(
            json(&frame, ok),
            r#"status="ok" reason="±9%" call=1 host="red" time="2026-01-01T00:00:00.25Z" duration=1.23456 exclusive=true"#
        );
        let nothing = "host=null time=null duration=null";
        assert_eq!(
            json(&frame, failed),
            format!(r#"status="failed" reason="it failed" call=2 {nothing}"#)
        );
        assert_eq!(json(&frame, excluded), format!(r#"status="excluded" call=null {nothing}"#));
    }

    #[test]
    fn attesters_are_printed_on_request() {
        let mut frame = frame("n s@0\n 1 2 | 1");
        assert!(!json(&frame, &frame.rows[0]).contains("attested"));
        let columns = csv(&frame, &frame.rows[0]).split(',').count();
        frame.has_attesters = true;
        assert!(json(&frame, &frame.rows[0]).ends_with("attested=null"));
        assert_eq!(csv(&frame, &frame.rows[0]).split(',').count(), columns + 1);
    }

    #[test]
    fn a_run_that_executes_a_call_is_named() {
        let holder = Holder { host: "red".to_owned(), process: 7, began: Some(0), own: false };
        let row = FrameRow { status: RowStatus::Running(holder), ..FrameRow::default() };
        let (csv, json) = (csv(&Frame::default(), &row), json(&Frame::default(), &row));
        assert!(csv.ends_with(", which began at 1970-01-01T00:00:00Z,"), "{csv}");
        let holder = r#"holder={"host":"red","process":7,"began":"1970-01-01T00:00:00Z"}"#;
        assert!(json.starts_with(&format!(r#"status="running" {holder} call=null"#)), "{json}");
    }

    #[test]
    fn printed_row_columns_are_read_back() {
        let origin = RowOrigin {
            host: Some("red".into()),
            machine: Some("a CPU".into()),
            at: "2026-01-01T00:00:00Z".parse().ok(),
            seconds: Some(1.5),
            others: Some(0.25),
            exclusive: Some(false),
            ..RowOrigin::default()
        };
        let origin = Some(Arc::new(origin));
        let row = FrameRow { call: Some(3), origin, ..FrameRow::default() };
        let mut read = FrameRow::default();
        for column in &ROW_COLUMNS {
            if let Some(fact) = (column.fact)(&row) {
                (column.read)(&mut read, &fact.text());
            }
        }
        assert_eq!(read, row);
    }

    #[test]
    fn row_columns_avoid_the_names_of_a_table() {
        assert_eq!(row_column_name("call", &["n"]), "call");
        let names = ["call", "call (of the row)"];
        assert_eq!(row_column_name("call", &names), "call (of the row) (of the row)");
    }
}
