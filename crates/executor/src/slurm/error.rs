//! What went wrong with a program of Slurm, and what follows from it.

use std::error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use ce_model::exit::Explain;

/// The reason why Slurm gave no answer, or not the one that was hoped for.
#[derive(Debug, thiserror::Error)]
pub enum SlurmError {
    /// A program could not be started.
    #[error("{program} cannot be started")]
    Start {
        /// The program.
        program: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The configuration of the cluster does not exist. Programs of Slurm would wait a minute for it.
    #[error("SLURM_CONF is {path:?}, and there is no such file")]
    NoConfiguration {
        /// What the variable says.
        path: PathBuf,
    },
    /// This process should be a run that is a job, and is not.
    #[error("SLURM_JOB_NAME is not the name of a run that is a job")]
    NoJob,
    /// A program could not be waited for.
    #[error("{program} cannot be waited for")]
    Wait {
        /// The program.
        program: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A program did not end in time.
    #[error("{program} did not answer for {} s", limit.as_secs_f64())]
    TimedOut {
        /// The program.
        program: &'static str,
        /// The time that it had.
        limit: Duration,
    },
    /// The caller did not want to wait any longer.
    #[error("{program} was interrupted")]
    Interrupted {
        /// The program.
        program: &'static str,
    },
    /// A program ended without success.
    #[error("{program} failed: {message}")]
    Failed {
        /// The program.
        program: &'static str,
        /// What it said, or else how it ended.
        message: String,
    },
    /// A program said something that it never says.
    #[error("{program} answered with an unknown text: {text:?}")]
    Answer {
        /// The program.
        program: &'static str,
        /// The text.
        text: String,
    },
}

/// What follows from a submission that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubmitFailure {
    /// Nothing was submitted, and the same will not be accepted later.
    Final,
    /// It may have been submitted. If not, it will be accepted once Slurm is less busy, or something has ended.
    Busy,
    /// It may have been submitted. If not, nobody knows whether it will ever be accepted.
    Unclear,
}

/// What Slurm says when it is too busy, or the user has too much in its queues. The last one is about the daemons of authentication.
const BUSY: [&str; 11] = [
    "timed out",
    "unable to contact",
    "temporarily",
    "try again",
    "connection refused",
    "connection reset",
    "submitjob",
    "submit limit",
    "required partition not available",
    "slurmctld",
    "authentication",
];

/// What it says when the job can never be executed.
const FINAL: [&str; 9] = [
    "configuration source",
    "invalid",
    "requested node configuration",
    "requested partition configuration",
    "specification can not be satisfied",
    "unrecognized option",
    "permission denied",
    "access/permission",
    "not permitted",
];

impl SlurmError {
    /// What follows from it if it is about a submission.
    pub(super) fn failure(&self) -> SubmitFailure {
        match self {
            Self::Start { .. } | Self::NoConfiguration { .. } | Self::NoJob => SubmitFailure::Final,
            Self::Failed { message, .. } => {
                let message = message.to_lowercase();
                if BUSY.iter().any(|text| message.contains(text)) {
                    SubmitFailure::Busy
                } else if FINAL.iter().any(|text| message.contains(text)) {
                    SubmitFailure::Final
                } else {
                    SubmitFailure::Unclear
                }
            }
            Self::Wait { .. } | Self::Answer { .. } => SubmitFailure::Unclear,
            Self::TimedOut { .. } | Self::Interrupted { .. } => SubmitFailure::Busy,
        }
    }

    /// It and its cause, in words.
    pub(super) fn text(&self) -> String {
        let cause = error::Error::source(self).map(|cause| format!(": {cause}"));
        format!("{self}{}", cause.unwrap_or_default())
    }
}

impl Explain for SlurmError {
    fn hint(&self) -> Option<String> {
        let message = match self {
            Self::Start { program, source } if source.kind() == io::ErrorKind::NotFound => {
                return Some(format!("a host of the cluster: there is no {program} on PATH here"));
            }
            Self::NoConfiguration { .. } => {
                return Some("the slurm.conf of the cluster, or unset SLURM_CONF".to_owned());
            }
            Self::NoJob => return Some("ce run --detach=job, which submits a run".to_owned()),
            Self::TimedOut { .. } => {
                return Some(
                    "scontrol ping, which says whether Slurm answers, and later this".to_owned(),
                );
            }
            Self::Answer { program, .. } | Self::Start { program, .. } => {
                return Some(format!(
                    "{program} --version, which must be that of the cluster's Slurm"
                ));
            }
            Self::Wait { .. } => return Some("the same command again".to_owned()),
            Self::Failed { message, .. } => message.to_lowercase(),
            Self::Interrupted { .. } => return None,
        };
        let advice = [
            (
                "configuration source",
                "a host of the cluster, or SLURM_CONF=FILE: Slurm has no configuration here",
            ),
            ("invalid account", "git config compeval.slurm.account NAME"),
            ("invalid qos", "git config compeval.slurm.qos NAME"),
            ("partition", "git config compeval.slurm.partition NAME; sinfo lists the partitions"),
            ("feature", "another compeval.slurm.constraint; sinfo -o '%N %f' lists the features"),
            ("time limit", "a shorter compeval.slurm.walltime"),
            ("(gres)", "a partition with such devices, or no gpus in the files resources"),
            ("memory specification", "less memory in the files resources"),
            (
                "node configuration",
                "less in the files resources, or another compeval.slurm.partition",
            ),
            (
                "unrecognized option",
                "compeval.slurm.options without it; sbatch --help lists options",
            ),
        ];
        let found = advice.into_iter().find(|(word, _)| message.contains(word));
        found.map(|(_, advice)| advice.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(message: &str) -> SlurmError {
        SlurmError::Failed { program: "sbatch", message: message.to_owned() }
    }

    #[test]
    fn only_what_is_certainly_not_submitted_is_final() {
        for (message, failure) in [
            ("Batch job submission failed: Invalid partition name specified", SubmitFailure::Final),
            (
                "Batch job submission failed: Requested node configuration is not available",
                SubmitFailure::Final,
            ),
            ("unrecognized option '--nonsense'", SubmitFailure::Final),
            ("Could not establish a configuration source", SubmitFailure::Final),
            (
                "Batch job submission failed: Socket timed out on send/recv operation",
                SubmitFailure::Busy,
            ),
            ("Unable to contact slurm controller (connect failure)", SubmitFailure::Busy),
            ("AssocMaxSubmitJobLimit\nJob violates accounting/QOS policy", SubmitFailure::Busy),
            ("Slurm temporarily unable to accept job, sleeping and retrying", SubmitFailure::Busy),
            ("Batch job submission failed: Protocol authentication error", SubmitFailure::Busy),
            ("Batch job submission failed: Unspecified error", SubmitFailure::Unclear),
        ] {
            assert_eq!(failed(message).failure(), failure, "{message}");
        }
        let source = io::ErrorKind::NotFound.into();
        let missing = SlurmError::Start { program: "sbatch", source };
        assert_eq!(missing.failure(), SubmitFailure::Final);
        assert!(missing.hint().unwrap().contains("no sbatch on PATH"));
        let late = SlurmError::TimedOut { program: "sbatch", limit: Duration::from_secs(60) };
        assert_eq!(late.failure(), SubmitFailure::Busy);
    }

    #[test]
    fn advice_names_the_setting() {
        let advice = failed("Batch job submission failed: Invalid partition name specified").hint();
        assert!(advice.unwrap().starts_with("git config compeval.slurm.partition NAME"));
        assert_eq!(failed("Unspecified error").hint(), None);
    }
}
