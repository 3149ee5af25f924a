//! Failures of calls: what every report of one knows, its forms between processes, and the record of the last one.

use std::iter;

use serde::{Deserialize, Serialize};

use super::{Format, NOT_ISOLATED, Provenance, at_most_100};
use ce_model::digest::{Digest, ObjectId};
use ce_model::exit::{Exit, Explain};
use ce_model::name::ComputationName;
use ce_model::resources::LimitedAttempt;

/// The facts about a failure, wherever it happened: in answers of workers, in audits, and between processes and their
/// users.
///
/// It is written as audits have it: the storage is never to blame for a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureFacts {
    /// The reason, in words.
    pub reason: String,
    /// The causes of the reason, if any.
    pub cause: Option<String>,
    /// Advice for the user.
    pub hint: Option<String>,
    /// The name of its log in the storage, if it has printed anything.
    pub log: Option<String>,
    /// Whether the same would happen again.
    #[serde(skip)]
    pub recurs: bool,
    /// Whether a limit has ended it, and the next attempt has more.
    #[serde(skip)]
    pub continues: bool,
    /// Whether the storage is to blame, rather than the computation.
    #[serde(skip)]
    pub of_storage: bool,
}

impl FailureFacts {
    /// The facts about a failure with an error, which may pass.
    pub fn of_error(error: &impl Explain) -> Self {
        let causes = iter::successors(error.source(), |&error| error.source());
        let causes: Vec<String> = causes.map(ToString::to_string).collect();
        Self {
            reason: error.to_string(),
            cause: (!causes.is_empty()).then(|| causes.join(": ")),
            hint: error.hint(),
            log: None,
            recurs: false,
            continues: false,
            of_storage: error.exit() == Exit::Storage,
        }
    }

    /// A failure with only a known reason.
    pub fn of_reason(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..Self::default() }
    }

    /// The same failure, with its causes in the reason.
    #[must_use]
    pub fn in_full(self) -> Self {
        let Self { reason, cause, .. } = self;
        let reason = match cause {
            Some(cause) => format!("{reason}: {cause}"),
            None => reason,
        };
        Self { reason, cause: None, ..self }
    }
}

/// The form of a failure in the answer of a worker. Its reason is [in full](FailureFacts::in_full), and the run finds the log itself.
#[derive(Serialize, Deserialize)]
#[serde(remote = "FailureFacts")]
struct AnsweredFailure {
    reason: String,
    #[serde(skip)]
    cause: Option<String>,
    hint: Option<String>,
    #[serde(skip)]
    log: Option<String>,
    recurs: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    continues: bool,
    #[serde(rename = "storage")]
    of_storage: bool,
}

/// A call that failed at a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedCall {
    /// Its short name.
    pub name: String,
    #[serde(flatten, with = "AnsweredFailure")]
    pub failure: FailureFacts,
}

/// The failure of an execution, as its record has it.
///
/// An optional field is `null` if it is unknown: without the field, the record is spoiled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The isolation of the execution, if `exec` was started. Records of earlier versions of this program lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// The reason, in words.
    pub reason: String,
    /// Its exit status, if it ended by itself.
    #[serde(deserialize_with = "Option::deserialize")]
    pub exit_status: Option<i32>,
    /// The signal that killed it, if any.
    #[serde(deserialize_with = "Option::deserialize")]
    pub signal: Option<i32>,
    /// The exit statuses of its tasks, by their numbers, if a launcher has started it: null for a task that has noted
    /// no status.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub tasks: Box<[Option<u8>]>,
    /// The executions that a limit has ended, up to this one, which may have ended in another way.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub attempts: Box<[LimitedAttempt]>,
    /// The duration, in seconds.
    pub seconds: f64,
}

/// The record of a call that failed. It is never used as a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureRecord {
    /// The format of this record.
    pub format: Format,
    pub computation: ComputationName,
    /// The commit that holds it.
    pub commit: ObjectId,
    /// The Git tree of its directory. Records of earlier versions of this program lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<ObjectId>,
    /// Its inputs, in order.
    #[serde(deserialize_with = "at_most_100")]
    pub inputs: Vec<Digest>,
    #[serde(flatten)]
    pub failure: Failure,
    /// The user, host and time of recording.
    pub recorded: Provenance,
}

impl FailureRecord {
    /// Whether `exec` was started and could read nothing but its inputs and its computation.
    pub fn is_isolated(&self) -> bool {
        self.failure.isolation.as_ref().is_some_and(|isolation| isolation != NOT_ISOLATED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> FailureFacts {
        FailureFacts {
            reason: "exec cannot be started".to_owned(),
            cause: Some("permission denied".to_owned()),
            hint: None,
            log: Some("failed/c_x/1/2".to_owned()),
            recurs: true,
            continues: false,
            of_storage: false,
        }
    }

    #[test]
    fn a_failure_has_a_form_in_audits_and_one_in_answers() {
        let audited = r#"{"reason":"exec cannot be started","cause":"permission denied","hint":null,"log":"failed/c_x/1/2"}"#;
        assert_eq!(serde_json::to_string(&facts()).unwrap(), audited);
        let read: FailureFacts = serde_json::from_str(audited).unwrap();
        assert_eq!(read, FailureFacts { recurs: false, ..facts() });

        let call = FailedCall { name: "c_x/1/2".to_owned(), failure: facts().in_full() };
        let answered = r#"{"name":"c_x/1/2","reason":"exec cannot be started: permission denied","hint":null,"recurs":true,"storage":false}"#;
        assert_eq!(serde_json::to_string(&call).unwrap(), answered);
        let read: FailedCall = serde_json::from_str(answered).unwrap();
        assert_eq!(read.failure, FailureFacts { log: None, ..facts().in_full() });
    }

    #[test]
    fn forms_of_failures_refuse_fields_that_they_do_not_know_or_lack() {
        for text in [
            r#"{"name":"x","reason":"r","hint":null,"recurs":true,"storage":false,"log":null}"#,
            r#"{"name":"x","reason":"r","hint":null,"recurs":true}"#,
        ] {
            assert!(serde_json::from_str::<FailedCall>(text).is_err(), "{text}");
        }
        let known = r#"{"reason":"r","exit_status":1,"signal":null,"seconds":1}"#;
        let read: Failure = serde_json::from_str(known).unwrap();
        assert_eq!((read.exit_status, read.seconds), (Some(1), 1.0));
        assert!(serde_json::from_str::<Failure>(&known.replace(r#""signal":null,"#, "")).is_err());
    }

    #[test]
    fn the_record_of_a_failure_has_its_fields_in_one_line() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let recorded = serde_json::to_string(&Provenance::now()).unwrap();
        let text = format!(
            r#"{{"format":1,"computation":"x","commit":"{id}","tree":"{id}","inputs":[],"isolation":"none","reason":"it ended with exit status 3","exit_status":3,"signal":null,"tasks":[3,null],"seconds":0.25,"recorded":{recorded}}}"#
        );
        let record: FailureRecord = serde_json::from_str(&text).unwrap();
        assert_eq!(record.failure.tasks, [Some(3), None].into());
        assert_eq!(serde_json::to_string(&record).unwrap(), text);
        for field in [r#""exit_status":3,"#, r#""signal":null,"#, r#""seconds":0.25,"#] {
            assert!(serde_json::from_str::<FailureRecord>(&text.replace(field, "")).is_err());
        }
        let twice = text.replace(r#""signal":null"#, r#""signal":null,"signal":9"#);
        assert!(serde_json::from_str::<FailureRecord>(&twice).is_err());
    }
}
