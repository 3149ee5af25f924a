//! Names of job arrays and of the workers in them.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::str::FromStr;

/// What a token begins with, so that people see in a queue whose job it is.
const PREFIX: &str = "ce-";
/// The number of random bytes.
const RANDOM: usize = 8;

/// The name of a job array, which no other one has. It identifies the jobs, because Slurm may assign the number of a job
/// again after its controller has crashed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobToken(String);

impl JobToken {
    /// Makes a token from random bytes of the kernel.
    ///
    /// # Errors
    ///
    /// Fails if the kernel provides none.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; RANDOM];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(format!("{PREFIX}{:016x}", u64::from_le_bytes(bytes))))
    }

    /// The token as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for JobToken {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        let digits = text.strip_prefix(PREFIX).ok_or(NoToken)?;
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_token = digits.len() == 2 * RANDOM && digits.bytes().all(is_hex);
        if is_token { Ok(Self(text.to_owned())) } else { Err(NoToken) }
    }
}

/// A text that is not a [`JobToken`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not the name of a job of CompEval: \"ce-\" and 16 hexadecimal digits")]
pub struct NoToken;

/// One worker: a task of a job array.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrayTask {
    /// The name of the array.
    pub token: JobToken,
    /// The index of the task, counted from one.
    pub index: u32,
}

impl ArrayTask {
    /// Returns the task that this process is, from the variables that Slurm sets for it, or `None` outside of one.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let token = variable("SLURM_JOB_NAME")?.parse().ok()?;
        let index = variable("SLURM_ARRAY_TASK_ID")?.parse().ok().filter(|index| *index > 0)?;
        Some(Self { token, index })
    }

    /// Returns what programs of Slurm call its job: `12_3`. The number of one task of an array is that of the array, too.
    pub fn job_id(&self, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
        Some(format!("{}_{}", variable("SLURM_ARRAY_JOB_ID")?, self.index))
    }
}

impl fmt::Display for ArrayTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.token, self.index)
    }
}

impl FromStr for ArrayTask {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        let (token, index) = text.rsplit_once('_').ok_or(NoToken)?;
        let index = index.parse().ok().filter(|index| *index > 0).ok_or(NoToken)?;
        Ok(Self { token: token.parse()?, index })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_different_and_read_again() {
        let [one, two] = [(); 2].map(|()| JobToken::random().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.as_str().parse(), Ok(one.clone()));
        for wrong in
            ["", "ce-", "ce-00000000000000zz", "xx-0000000000000000", "ce-0000000000000000,ce"]
        {
            assert_eq!(wrong.parse::<JobToken>(), Err(NoToken), "{wrong}");
        }
    }

    #[test]
    fn a_worker_knows_which_task_it_is() {
        let task = |name: &str, index: &str| {
            let (name, index) = (name.to_owned(), index.to_owned());
            ArrayTask::from_environment(|variable| match variable {
                "SLURM_JOB_NAME" => Some(name.clone()),
                "SLURM_ARRAY_TASK_ID" => Some(index.clone()),
                _ => None,
            })
        };
        let known = task("ce-0123456789abcdef", "12").map(|task| task.to_string());
        assert_eq!(known.as_deref(), Some("ce-0123456789abcdef_12"));
        let task_of_ours = task("ce-0123456789abcdef", "12").unwrap();
        let array = |variable: &str| (variable == "SLURM_ARRAY_JOB_ID").then(|| "71".to_owned());
        assert_eq!(task_of_ours.job_id(array).as_deref(), Some("71_12"));
        assert_eq!(task("bash", "12"), None, "somebody else's job");
        assert_eq!(task("ce-0123456789abcdef", "0"), None);
        assert_eq!(ArrayTask::from_environment(|_| None), None);
    }
}
