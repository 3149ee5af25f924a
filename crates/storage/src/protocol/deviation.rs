//! New outputs of a call whose result is recorded: which of them stay, and how they differ.

use std::fmt;

use ce_model::digest::Digest;

/// The rule for a result that is in the place of a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// It stays. If its outputs are away, the new ones must be equal to them.
    Recorded,
    /// It stays, unless its outputs are away: then the new ones replace it.
    NewOfAway,
    /// The new one replaces it.
    New,
}

/// An execution of a call that is away has made other outputs than are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// The outputs that differ.
    pub outputs: Vec<DeviatingOutput>,
    /// The directory of the new outputs, relative to the storage.
    pub aside: String,
    /// The number of recorded calls that were made from recorded outputs that differ.
    pub readers: usize,
}

/// An output that differs from the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviatingOutput {
    pub number: usize,
    pub recorded: Digest,
    /// Its digest now.
    pub found: Digest,
    /// The differences within a directory, in words, if the storage knows its former contents.
    pub members: Option<String>,
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { outputs, aside, readers } = self;
        write!(f, "its outputs are away, and executed again it made others than are recorded: ")?;
        for (at, output) in outputs.iter().enumerate() {
            let DeviatingOutput { number, recorded, found, members } = output;
            let separator = if at == 0 { "" } else { ", " };
            let (was, is) = (recorded.sha1.full(), found.sha1.full());
            write!(f, "{separator}output {number:02} was {was}, is {is}")?;
            if let Some(members) = members {
                write!(f, " ({members})")?;
            }
        }
        match readers {
            0 => {}
            1 => write!(f, "; 1 recorded call was made from what is recorded")?,
            readers => write!(f, "; {readers} recorded calls were made from what is recorded")?,
        }
        write!(f, "; the new outputs are in {aside}")
    }
}
