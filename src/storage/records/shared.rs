//! Records as a results repository holds them.
//!
//! They say what was made from what, and how it was isolated: nothing of who, where and when. So equal results have
//! equal bytes, whoever executed them.

use super::{
    CallRecord, Format, JobRecord, Origin, Published, Record, SharedOrigin, Stamp, TableRecord,
};

impl CallRecord {
    /// The record for a results repository. `None` for what has no place there: adopted outputs, whose making nobody
    /// knows, and those of uncommitted changes.
    pub fn shared(&self) -> Option<Self> {
        let isolation = self.origin.isolation().filter(|_| !self.dirty)?.to_owned();
        let access = self.origin.access().to_vec();
        Some(Self {
            format: Format::SHARED,
            outputs: self.outputs.iter().map(unstamped).collect(),
            origin: Origin::Shared(SharedOrigin { stage: None, isolation, access }),
            recorded: None,
            ..self.clone()
        })
    }
}

impl JobRecord {
    /// The record for a results repository.
    pub fn shared(&self) -> Self {
        Self { format: Format::SHARED, recorded: None, ..self.clone() }
    }
}

impl TableRecord {
    /// The record for a results repository: of the table alone. The directory beside it is made again where it is needed.
    pub fn shared(&self) -> Self {
        Self {
            format: Format::SHARED,
            recipe: unstamped(&self.recipe),
            outputs: self.outputs.iter().take(1).map(unstamped).collect(),
            recorded: None,
        }
    }
}

impl Record {
    /// The text of the record in a results repository. `None` for what has no place there.
    pub fn shared(&self) -> Option<Vec<u8>> {
        let text = match self {
            Self::Call(record) => super::files::text(&record.shared()?),
            Self::Job(record) => super::files::text(&record.shared()),
            Self::Table(record) => super::files::text(&record.shared()),
            Self::TaskInput(_) => return None,
        };
        text.ok()
    }
}

fn unstamped(value: &Published) -> Published {
    Published { digest: value.digest, stamp: Stamp::Unknown }
}
