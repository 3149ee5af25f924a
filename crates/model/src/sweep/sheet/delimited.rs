//! The records of TSV, which has no quotes, and of CSV as RFC 4180 has it.
//!
//! The known libraries read quotes leniently: an unterminated quote would silently swallow the rest of a sheet.
//! A sheet decides what is executed, so that is an error here.

use std::borrow::Cow;
use std::mem;

use crate::sweep::sheet::{MAX_COLUMNS, SheetFault};

/// The records of a sheet, one after the other.
pub(super) struct SheetRecords<'a> {
    rest: &'a [u8],
    separator: u8,
    line: usize,
    faults: Vec<(usize, SheetFault)>,
}

/// A record.
#[derive(Default)]
pub(super) struct SheetRecord<'a> {
    /// The line in which it begins, counted from one.
    pub(super) line: usize,
    /// Its values, at most one more than [`MAX_COLUMNS`].
    pub(super) values: Vec<Cow<'a, [u8]>>,
    /// The number of its values.
    pub(super) width: usize,
    /// Faults of its quotes, with the numbers of the values.
    pub(super) faults: Vec<(usize, SheetFault)>,
    /// Whether it is an empty line.
    pub(super) is_empty: bool,
}

impl<'a> SheetRecords<'a> {
    /// The records of a sheet that does not end in newlines. The separator is a comma or a tab.
    pub(super) const fn new(contents: &'a [u8], separator: u8) -> Self {
        Self { rest: contents, separator, line: 1, faults: Vec::new() }
    }

    /// Reads the next record into the place of another. Returns false at the end.
    pub(super) fn read(&mut self, record: &mut SheetRecord<'a>) -> bool {
        if self.rest.is_empty() {
            return false;
        }
        record.line = self.line;
        record.is_empty = self.rest.starts_with(b"\n") || self.rest.starts_with(b"\r\n");
        record.values.clear();
        record.width = 0;
        let mut is_last = false;
        while !is_last {
            let value;
            (value, is_last) = if self.separator == b',' && self.rest.starts_with(b"\"") {
                self.quoted(record.width)
            } else {
                self.plain(record.width)
            };
            record.width += 1;
            if record.values.len() <= MAX_COLUMNS {
                record.values.push(value);
            }
        }
        record.faults = mem::take(&mut self.faults);
        true
    }

    /// Reads a value without quotes. Returns it, and whether it is the last one of its record.
    fn plain(&mut self, number: usize) -> (Cow<'a, [u8]>, bool) {
        let (value, is_last) = self.up_to_separator();
        if self.separator == b',' && value.contains(&b'"') {
            self.fault(number, SheetFault::QuoteInside);
        }
        (Cow::Borrowed(value), is_last)
    }

    /// Reads a value in quotes. Returns it, and whether it is the last one of its record.
    fn quoted(&mut self, number: usize) -> (Cow<'a, [u8]>, bool) {
        let (mut from, mut has_quotes) = (1, false);
        let end = loop {
            let Some(at) = self.rest[from..].iter().position(|byte| *byte == b'"') else {
                self.fault(number, SheetFault::Unterminated);
                self.rest = &[];
                return (Cow::default(), true);
            };
            let end = from + at;
            if self.rest.get(end + 1) != Some(&b'"') {
                break end;
            }
            (from, has_quotes) = (end + 2, true);
        };
        let value = &self.rest[1..end];
        self.line += value.iter().filter(|byte| **byte == b'\n').count();
        self.rest = &self.rest[end + 1..];
        let (after, is_last) = self.up_to_separator();
        if !after.is_empty() {
            self.fault(number, SheetFault::AfterQuote);
        }
        (if has_quotes { Cow::Owned(unescaped(value)) } else { Cow::Borrowed(value) }, is_last)
    }

    /// Takes everything up to the next separator or the end of the line, and that, too.
    fn up_to_separator(&mut self) -> (&'a [u8], bool) {
        let end = self
            .rest
            .iter()
            .position(|byte| *byte == self.separator || *byte == b'\n')
            .unwrap_or(self.rest.len());
        let value = &self.rest[..end];
        let is_last = self.rest.get(end) != Some(&self.separator);
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        if !is_last {
            return (value, false);
        }
        self.line += 1;
        (value.strip_suffix(b"\r").unwrap_or(value), true)
    }

    /// Notes a fault of a value, the first ones of a record only.
    fn fault(&mut self, number: usize, fault: SheetFault) {
        if number <= MAX_COLUMNS {
            self.faults.push((number, fault));
        }
    }
}

/// The contents of a quoted value, in which quotes are written twice.
fn unescaped(value: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(value.len());
    let mut bytes = value.iter();
    while let Some(byte) = bytes.next() {
        text.push(*byte);
        if *byte == b'"' {
            bytes.next();
        }
    }
    text
}
