//! Records as a results repository holds them.
//!
//! They say what was made from what, and how it was isolated: nothing of who, where and when. So equal results have
//! equal bytes, whoever executed them.

use super::files::text;
use super::{
    CallRecord, Format, JobRecord, Origin, Published, Record, SharedOrigin, Stamp, TableRecord,
};
use crate::layout::Entry;

impl CallRecord {
    /// The record for a results repository. `None` for what has no place there: adopted outputs, whose making nobody
    /// knows, those of uncommitted changes, and those taken over because a tree was trusted.
    pub fn shared(&self) -> Option<Self> {
        let stays = self.dirty || self.has_trusted_tree();
        let isolation = self.origin.isolation().filter(|_| !stays)?.to_owned();
        let access = self.origin.access().to_vec();
        Some(Self {
            format: Format::SHARED,
            outputs: self.outputs.iter().map(unstamped).collect(),
            origin: Origin::Shared(SharedOrigin {
                stage: None,
                isolation,
                access,
                taken_over: None,
            }),
            recorded: None,
            ..self.clone()
        })
    }

    /// Reads the record of a call in a results repository. `None` if the text is none.
    pub fn of_shared(text: &[u8]) -> Option<Self> {
        let record: Self = serde_json::from_slice(text).ok()?;
        let is_shared = matches!(
            record.origin,
            Origin::Shared(SharedOrigin { stage: None, taken_over: None, .. })
        );
        (is_shared && !record.dirty).then_some(record)
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
    /// The record for a results repository. `None` for what has no place there.
    pub fn shared(&self) -> Option<Self> {
        match self {
            Self::Call(record) => record.shared().map(Self::Call),
            Self::Job(record) => Some(Self::Job(record.shared())),
            Self::Table(record) => Some(Self::Table(record.shared())),
            Self::TaskInput(_) => None,
        }
    }

    /// Reads the record of a result in a results repository. `None` if the text is none, or does not belong to the name.
    pub fn of_shared(entry: &Entry, text: &[u8]) -> Option<Self> {
        let record = match entry {
            Entry::Call(_) => CallRecord::of_shared(text).map(Self::Call),
            Entry::Job(_) => serde_json::from_slice(text).ok().map(Self::Job),
            Entry::Table(_) => serde_json::from_slice(text).ok().map(Self::Table),
            Entry::TaskInput(_) => None,
        };
        record.filter(|record| entry.fits(record))
    }

    /// The text of the file that holds it.
    pub fn text(&self) -> Vec<u8> {
        let text = match self {
            Self::Call(record) => text(record),
            Self::Job(record) => text(record),
            Self::Table(record) => text(record),
            Self::TaskInput(record) => text(record),
        };
        // Nothing in a record cannot be written as JSON: all names of fields are texts.
        text.unwrap_or_default()
    }
}

fn unstamped(value: &Published) -> Published {
    Published { digest: value.digest, stamp: Stamp::Unknown }
}
