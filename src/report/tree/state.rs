//! The states of calls and files in the tree: the marks of the specification, or words for people.

use std::time::Duration;

use anstyle::{AnsiColor, Style};

use super::Evaluation;
use ce_evaluate::{How, Outcome};
use ce_model::humanize::{duration, short_duration};
use ce_model::plan::{CallId, Source};

/// How the tree tells the state of a call or file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeStyle {
    /// By the marks of the specification: `ok`, `MISSING` and `computing...`, which say what was there before the run.
    Original,
    /// In words that say what came of a call: `computed 1.3 s`, `reused`; with colours or without.
    Words {
        /// Whether the terminal shows colours.
        colours: bool,
    },
}

const GOOD: Style = AnsiColor::Green.on_default();
const NEW: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const OLD: Style = Style::new().dimmed();

/// The style of words about calls that ended like this.
const fn colour(how: How) -> Style {
    match how {
        How::Executed => GOOD,
        How::Missing | How::Suspended => NEW,
        How::Failed => BAD,
        How::Reused | How::TakenOver | How::Away | How::Archived => OLD,
        How::Blocked
        | How::Waiting
        | How::Unfinished
        | How::NotStarted
        | How::Interrupted
        | How::LeftOut => Style::new(),
    }
}

impl TreeStyle {
    /// What comes after a file or directory that no call made.
    pub(super) fn of_file(self, source: Source, is_there: bool) -> String {
        match (self, is_there) {
            (Self::Original, true) => " ok".to_owned(),
            (Self::Original, false) => " MISSING!!!".to_owned(),
            (Self::Words { .. }, true) => String::new(),
            (Self::Words { .. }, false) if matches!(source, Source::Input(_) | Source::File(_)) => {
                self.painted(NEW, "  to be stored")
            }
            (Self::Words { .. }, false) => self.painted(BAD, "  missing"),
        }
    }

    /// What comes after a call that is over, in words.
    pub(super) fn of_call(self, evaluation: &Evaluation, call: CallId) -> String {
        let Some(outcome) = evaluation.outcome(call) else { return String::new() };
        let [made, to_make] = match evaluation.computation(call) {
            Some(_) => ["computed", "to be computed"],
            None => ["made", "to be made"],
        };
        let text = match outcome.how() {
            How::TakenOver => "reused from another commit".to_owned(),
            How::Executed => format!("{made}{}", time_of(evaluation, outcome)),
            How::Missing => to_make.to_owned(),
            how @ (How::Reused | How::Away | How::Archived) => how.word().to_owned(),
            _ => return String::new(),
        };
        self.painted(colour(outcome.how()), &format!("  {text}"))
    }

    /// The line of a call that has no outputs, or of a table of which points failed.
    pub(super) fn of_trouble(self, outcome: &Outcome, text: &str) -> String {
        let style = match outcome {
            Outcome::Absent(..) => colour(outcome.how()),
            _ => Style::new(),
        };
        self.painted(style, text)
    }

    /// What comes after an output of the task that is not in its place.
    pub(super) fn of_absent_output(self, is_archived: bool) -> String {
        match (self, is_archived) {
            (Self::Original, true) => " ARCHIVED".to_owned(),
            (Self::Original, false) => " MISSING".to_owned(),
            (Self::Words { .. }, true) => self.painted(OLD, "  archived"),
            (Self::Words { .. }, false) => self.painted(BAD, "  missing"),
        }
    }

    fn painted(self, style: Style, text: &str) -> String {
        match self {
            Self::Words { colours: true } => format!("{style}{text}{style:#}"),
            _ => text.to_owned(),
        }
    }
}

/// How long an execution took, by its record.
fn time_of(evaluation: &Evaluation, outcome: &Outcome) -> String {
    let seconds = evaluation.executed_record(outcome).and_then(|call| call.seconds());
    let text = seconds.map(|seconds| match Duration::try_from_secs_f64(seconds) {
        Ok(time) if seconds < 1.0 => short_duration(time),
        _ => duration(seconds),
    });
    text.map(|text| format!(" {text}")).unwrap_or_default()
}
