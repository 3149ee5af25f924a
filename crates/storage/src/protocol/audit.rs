//! Audits: the outputs of an execution are compared with the recorded ones. Nothing that is published changes.
//!
//! Outputs that differ go to quarantine, so that the user can compare them.
//!
//! The outputs of a result that is away were deliberately evicted: its record has their digests, and a new execution is
//! compared with these. An empty file beside the record marks such a result. Without the marker, a missing output is
//! one that the user has deleted. A marker beside outputs that are all here is ignored.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::call_lookup::{Call, Outputs};
use super::{DeviatingOutput, Deviation, Precedence, PublishError, Sealed, Stage, Storage};
use crate::disk::Result;
use crate::paths::{Entry, LOG, ResultName};
use crate::records::{
    ExpectedFile, FirstDifference, LineDifference, OutputDifference, Published, differences,
};
use ce_files::manifest::{EntryDifference, EntryKind, shown};
use ce_model::digest::Digest;

/// The number of bytes of a line that are shown before the first one that differs, and after it.
const AROUND: u64 = 40;

/// The place at which a file begins to differ from another one.
struct FirstByte {
    /// The number of equal bytes before.
    offset: u64,
    /// The number of whole lines before, and the byte at which the line begins.
    line: (u64, u64),
}

impl Sealed<'_> {
    /// The digests of the outputs, in order.
    pub fn digests(&self) -> Vec<Digest> {
        self.files.iter().map(|it| it.digest).collect()
    }

    /// Compares the outputs with recorded ones. Outputs that differ are moved to quarantine, with the log; the others
    /// are discarded.
    pub fn compare(self, recorded: &Outputs) -> Result<Vec<OutputDifference>> {
        let storage = self.stage.storage;
        let mut differing = Vec::new();
        let room = storage.root.quarantine_room(&recorded.name.quarantine());
        for (number, (old, new)) in recorded.files.iter().zip(&self.files).enumerate() {
            if old.digest == new.digest {
                continue;
            }
            let aside = format!("{room}/{number:02}");
            let place = storage.root.place(&aside)?;
            storage.root.disk.rename(&self.stage.output(number), &place)?;
            if new.digest.is_directory() {
                storage.root.disk.seal_top(&place)?;
            }
            storage.root.unsynced.note_entry(&place);
            let first = first_difference(storage, &recorded.name.output(number), old, &aside, new);
            let (recorded, found) = (old.digest, new.digest);
            differing.push(OutputDifference { number, recorded, found, aside, first });
        }
        if !differing.is_empty() {
            self.stage.set_log_aside(&room)?;
        }
        Ok(differing)
    }
}

impl Stage<'_> {
    /// Moves the log of a failed audit to quarantine, and discards the rest. Returns the name of the log, if anything was
    /// printed.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written, or this run's directory in it was moved.
    pub fn fail_audit(self, name: &ResultName) -> Result<Option<String>> {
        self.storage.root.displaced().map_or(Ok(()), Err)?;
        let stage = self.doubtless()?.unwrap_or(self);
        stage.set_log_aside(&stage.storage.root.quarantine_room(&name.quarantine()))
    }

    fn set_log_aside(&self, room: &str) -> Result<Option<String>> {
        let root = &self.storage.root;
        let log = self.log();
        let is_log = root.disk.metadata(&log)?.is_some_and(|it| it.is_file() && it.len() > 0);
        if !is_log {
            return Ok(None);
        }
        let kept = format!("{room}/{LOG}");
        self.seal_log()?;
        root.disk.rename(&log, &root.place(&kept)?)?;
        Ok(Some(kept))
    }
}

/// Returns the first difference of two values; `None` if one cannot be read.
fn first_difference(
    storage: &Storage,
    name: &str,
    old: &Published,
    aside: &str,
    new: &Published,
) -> Option<FirstDifference> {
    if !new.digest.is_directory() {
        return difference_of_files(storage, [&storage.path(name), &storage.path(aside)]);
    }
    let recorded = storage.root.value(name, &old.digest).ok()?;
    let old = storage.values().manifest(name, &old.digest).ok()??;
    let new = storage.root.manifest(&new.digest).ok()??;
    let differences = old.differences(&new);
    let first = differences.first()?;
    let path = Path::new(std::str::from_utf8(first.path).unwrap_or_default());
    let files = match first.entries {
        [
            Some(EntryKind::File { contents: one, .. }),
            Some(EntryKind::File { contents: other, .. }),
        ] if one != other && !path.as_os_str().is_empty() => {
            difference_of_files(storage, [&recorded.join(path), &storage.path(aside).join(path)])
        }
        _ => None,
    };
    let what = files.is_none().then(|| what(first).to_owned());
    let files =
        files.unwrap_or(FirstDifference { member: None, what: None, byte: None, line: None });
    Some(FirstDifference { member: Some(shown(first.path)), what, ..files })
}

fn difference_of_files(storage: &Storage, paths: [&Path; 2]) -> Option<FirstDifference> {
    let [recorded, found] = paths.map(|path| storage.root.disk.lines(path).ok().flatten());
    let place = first_byte(recorded?, found?).ok()??;
    let (before, start) = place.line;
    let from = start.max(place.offset.saturating_sub(AROUND));
    let [recorded, found] =
        paths.map(|path| excerpt(&storage.root.disk.read_from(path, from, 3 * AROUND).ok()?));
    let line = recorded.zip(found);
    let line = line.map(|(recorded, found)| LineDifference { number: before + 1, recorded, found });
    Some(FirstDifference { member: None, what: None, byte: Some(place.offset + 1), line })
}

/// Finds the first byte in which two files differ; `None` if they are equal.
fn first_byte(
    mut one: BufReader<File>,
    mut other: BufReader<File>,
) -> io::Result<Option<FirstByte>> {
    let mut place = FirstByte { offset: 0, line: (0, 0) };
    loop {
        let (ours, theirs) = (one.fill_buf()?, other.fill_buf()?);
        let most = ours.len().min(theirs.len());
        let equal = ours.iter().zip(theirs).take_while(|(one, other)| one == other).count();
        for (at, _) in ours[..equal].iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            place.line = (place.line.0 + 1, place.offset + at as u64 + 1);
        }
        place.offset += equal as u64;
        if equal < most || most == 0 {
            let differ = equal < most || !ours.is_empty() || !theirs.is_empty();
            return Ok(differ.then_some(place));
        }
        one.consume(most);
        other.consume(most);
    }
}

/// The part of a line that some bytes begin with. `Some(None)` if there are no bytes, `None` if they are not text.
fn excerpt(bytes: &[u8]) -> Option<Option<String>> {
    if bytes.is_empty() {
        return Some(None);
    }
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    // The first and the last character may be cut.
    let begin = line.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    let text = match std::str::from_utf8(&line[begin..]) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&line[begin..begin + error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_text = !text.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\r'));
    is_text.then(|| Some(text.chars().take(2 * AROUND as usize).collect()))
}

/// Describes the difference of an entry, unless it is a file with other contents.
fn what(difference: &EntryDifference<'_>) -> &'static str {
    match difference.entries {
        [Some(_), None] => "was not made",
        [None, _] => "is not recorded",
        [
            Some(EntryKind::File { executable: false, contents: one }),
            Some(EntryKind::File { executable: true, contents: other }),
        ] if one == other => "has become executable",
        [
            Some(EntryKind::File { contents: one, .. }),
            Some(EntryKind::File { contents: other, .. }),
        ] if one == other => "is not executable any more",
        [Some(EntryKind::File { .. }), Some(EntryKind::File { .. })] => "has other contents",
        [Some(EntryKind::Link { .. }), Some(EntryKind::Link { .. })] => "leads elsewhere",
        [Some(_), Some(_)] => "is of another kind",
    }
}

/// Markers of results whose outputs are away.
#[derive(Clone, Copy, Debug)]
pub struct Evictions<'a> {
    storage: &'a Storage,
}

impl<'a> Evictions<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Whether a result is marked as one whose outputs are deliberately not here.
    pub fn is_marked_away(&self, name: &ResultName) -> Result<bool> {
        let (disk, path) = (&self.storage.root.disk, self.storage.path(&name.away()));
        match disk.look_anew(&path, || disk.metadata(&path)) {
            Err(error) if error.is_foreign() => Ok(false),
            marker => Ok(marker?.is_some_and(|it| it.is_file())),
        }
    }

    /// Whether a file of a result is deliberately not here.
    pub fn is_away(&self, entry: &Entry, file: &ExpectedFile) -> Result<bool> {
        let (Entry::Call(name) | Entry::Job(name)) = entry else { return Ok(false) };
        Ok(self.is_marked_away(name)? && !self.storage.has(&file.name)?)
    }

    /// Marks a result as one whose outputs are deliberately not here. It is durable after the next [`flush`](Storage::flush).
    pub(crate) fn mark_away(&self, name: &ResultName) -> Result<()> {
        if self.is_marked_away(name)? {
            return Ok(());
        }
        let private = self.storage.root.private_path()?;
        self.storage.root.disk.write(&private, b"")?;
        let place = self.storage.root.place(&name.away())?;
        self.storage.root.disk.rename(&private, &place)?;
        self.storage.root.unsynced.note_new(&place);
        Ok(())
    }

    /// Removes the mark of a result whose outputs are here.
    pub(crate) fn unmark_away(&self, name: &ResultName) -> Result<()> {
        self.storage.root.disk.remove(&self.storage.path(&name.away()))
    }
}

impl Sealed<'_> {
    /// Makes all outputs visible, or none, like [`publish`](Self::publish); but not if they differ from the recorded
    /// ones of the same call, which may have another name.
    ///
    /// # Errors
    ///
    /// Fails if the outputs differ, or if the storage cannot be written.
    pub fn publish_same(
        self,
        call: Call<'_>,
        name: &ResultName,
        recorded: Option<&Outputs>,
        precedence: Precedence,
    ) -> Result<Outputs, PublishError> {
        if let Some(recorded) = recorded
            && let Some(deviation) = self.deviation(recorded)?
        {
            return Err(PublishError::Deviates(Box::new(deviation)));
        }
        self.publish(call, name, precedence)
    }

    /// Compares the outputs with the outputs of a result that is away. If they differ, they are moved to quarantine.
    pub(super) fn deviation(&self, recorded: &Outputs) -> Result<Option<Deviation>> {
        let pairs = recorded.files.iter().zip(&self.files).enumerate();
        let mut outputs = Vec::new();
        for (number, (recorded, found)) in pairs {
            if recorded.digest != found.digest {
                outputs.push(self.deviating(number, &recorded.digest, &found.digest)?);
            }
        }
        if outputs.is_empty() {
            return Ok(None);
        }
        let aside = self.set_aside(&recorded.name)?;
        Ok(Some(Deviation { outputs, aside, readers: 0 }))
    }

    fn deviating(
        &self,
        number: usize,
        recorded: &Digest,
        found: &Digest,
    ) -> Result<DeviatingOutput> {
        let root = &self.stage.storage.root;
        let members = if recorded.is_directory() && found.is_directory() {
            root.manifest(recorded)?.zip(root.manifest(found)?)
        } else {
            None
        };
        let members = members.map(|(recorded, found)| differences(&recorded, &found));
        Ok(DeviatingOutput { number, recorded: *recorded, found: *found, members })
    }

    /// Moves everything that an execution has made to quarantine. Returns the directory.
    fn set_aside(&self, name: &ResultName) -> Result<String> {
        let (stage, root) = (&self.stage, &self.stage.storage.root);
        let room = root.quarantine_room(&name.quarantine());
        for (number, Published { digest, .. }) in self.files.iter().enumerate() {
            let place = root.place(&format!("{room}/{number:02}"))?;
            root.disk.rename(&stage.output(number), &place)?;
            if digest.is_directory() {
                root.disk.seal_top(&place)?;
            }
        }
        root.disk.rename(&stage.record(), &root.place(&format!("{room}/record.json"))?)?;
        if root.disk.metadata(&stage.log())?.is_some_and(|log| log.is_file() && log.len() > 0) {
            stage.seal_log()?;
            root.disk.copy(&stage.log(), &root.place(&format!("{room}/log"))?)?;
        }
        Ok(room)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Durability, Unrecorded};

    fn difference(one: &[u8], other: &[u8]) -> FirstDifference {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::open(dir.path(), Unrecorded::Adopt, Durability::Unsynced).unwrap();
        let paths = ["one", "other"].map(|name| dir.path().join(name));
        fs::write(&paths[0], one).unwrap();
        fs::write(&paths[1], other).unwrap();
        let paths = ["one", "other"].map(|name| storage.path(name));
        difference_of_files(&storage, [&paths[0], &paths[1]]).unwrap()
    }

    fn line(number: u64, recorded: Option<&str>, found: Option<&str>) -> Option<LineDifference> {
        let [recorded, found] = [recorded, found].map(|text| text.map(str::to_owned));
        Some(LineDifference { number, recorded, found })
    }

    #[test]
    fn a_difference_has_its_byte_and_in_texts_its_line() {
        let found = difference(b"a\nbcd\ne\n", b"a\nbxd\ne\n");
        assert_eq!((found.byte, found.line), (Some(4), line(2, Some("bcd"), Some("bxd"))));
        let longer = difference(b"a\n", b"a\nb\n");
        assert_eq!((longer.byte, longer.line), (Some(3), line(2, None, Some("b"))));
        let cut = difference(b"a", b"a\n");
        assert_eq!((cut.byte, cut.line), (Some(2), line(1, Some("a"), Some("a"))));
        let binary = difference(b"a\0b", b"a\0c");
        assert_eq!((binary.byte, binary.line), (Some(3), None));
        let empty = difference(b"", b"x");
        assert_eq!((empty.byte, empty.line), (Some(1), line(1, None, Some("x"))));
    }

    #[test]
    fn a_difference_far_into_a_large_file_is_found() {
        let mut one = "0123456789\n".repeat(20_000).into_bytes();
        one.extend("ä".repeat(1000).bytes());
        let mut other = one.clone();
        let at = other.len() - 100;
        other[at] = b'x';
        other[at + 1] = b'y';
        let found = difference(&one, &other);
        assert_eq!(found.byte, Some(at as u64 + 1));
        let line = found.line.unwrap();
        assert_eq!(line.number, 20_001);
        assert!(line.found.unwrap().starts_with(&format!("{}xy", "ä".repeat(20))));
        assert!(line.recorded.unwrap().chars().all(|c| c == 'ä'));
    }
}
