//! The files that are values of points: outputs that are files and not short texts, so that their cells are hashes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ce_model::digest::Digest;
use ce_model::file_format::FileFormat;
use ce_model::humanize::size;
use ce_model::sweep::CellValue;
use ce_storage::records::CallRecord;
use ce_storage::{Record, Storage};

use super::calls::PageIndex;
use super::contents::{ContentsRoom, read_member};
use super::{OutputContents, PageTable};
use crate::frame::{ColumnRole, Frame, FrameColumn};

/// A picture that is a value of a point.
#[derive(Clone, Debug)]
pub struct PointPicture {
    /// Its column.
    pub column: String,
    /// The point, in words.
    pub point: String,
    pub contents: OutputContents,
}

/// The number of bytes at the beginning of a file that tell its format.
const BEGINNING: u64 = 4096;

impl PageTable {
    /// A cell as it is shown: a file is described, where the table has its hash.
    pub fn shown(&self, row: usize, column: usize) -> &CellValue {
        let described = self.described.get(&(row, column));
        described.unwrap_or_else(|| &self.frame.rows[row].cells[column])
    }

    /// Describes the files that are values of points, and takes pictures among them as far as there is room.
    pub(super) fn describe_files(
        &mut self,
        storage: &Storage,
        index: &PageIndex<'_>,
        room: &mut ContentsRoom,
    ) {
        let files = self.frame.places(|it| it.role == ColumnRole::Value && !it.is_field);
        let keys = telling_keys(&self.frame);
        for (number_of_row, row) in self.frame.rows.iter().enumerate() {
            let Some(origin) = &row.origin else { continue };
            let Some(subject) = index.subject(&origin.call) else { continue };
            let Record::Call(record) = subject.record else { continue };
            for at in &files {
                let CellValue::Text(cell) = &row.cells[*at] else { continue };
                let column = &self.frame.columns[*at];
                let Some(number) = output_of(record, column, cell) else { continue };
                let (digest, file) = (record.outputs[number].digest, subject.entry.file(number));
                let path = storage.path(&file);
                let format = format_of(column, &path, &digest);
                if let Some(FileFormat::Picture(_)) = format {
                    let contents =
                        room.contents(&column.name, digest, || read_member(&path, &digest));
                    let texts = keys.iter().map(|key| {
                        format!("{} = {}", self.frame.columns[*key].name, row.cells[*key].text())
                    });
                    let point = texts.collect::<Vec<_>>().join(", ");
                    let column = column.name.clone();
                    self.pictures.push(PointPicture { column, point, contents });
                }
                let kind = match format {
                    _ if digest.is_directory() => "directory".to_owned(),
                    Some(FileFormat::Picture(_) | FileFormat::Table(_)) | None => {
                        let suffix = format.map_or("", FileFormat::suffix).to_uppercase();
                        if suffix.is_empty() { "file".to_owned() } else { suffix }
                    }
                    Some(FileFormat::Other) => "file".to_owned(),
                    Some(_) => "text".to_owned(),
                };
                let shown = CellValue::Text(format!("{kind}, {}", size(digest.total())));
                self.described.insert((number_of_row, *at), shown);
            }
        }
    }
}

/// The number of the output whose hash a cell of a column is, or whose text, if that is a picture. The column's own output comes first: an output may be
/// the checksum of another one. Where the column is of several calls, its number says nothing about this one.
fn output_of(record: &CallRecord, column: &FrameColumn, cell: &str) -> Option<usize> {
    let texts = [cell.to_owned(), format!("{cell}\n")];
    let texts = texts.map(|text| Digest::hash_bytes(text.as_bytes()));
    let is_picture = matches!(FileFormat::detect("", cell.as_bytes()), FileFormat::Picture(_));
    let own = column.output.map(usize::from).into_iter();
    for number in own.chain(0..record.outputs.len()) {
        let Some(output) = record.outputs.get(number) else { continue };
        if texts.contains(&output.digest) {
            return is_picture.then_some(number);
        }
        if output.digest.sha1.full() == cell {
            return Some(number);
        }
    }
    None
}

/// The names of points that are not the same everywhere.
fn telling_keys(frame: &Frame) -> Vec<usize> {
    let mut keys = frame.places(|column| column.role == ColumnRole::Key);
    keys.retain(|at| {
        let mut cells = frame.rows.iter().map(|row| &row.cells[*at]);
        let first = cells.next();
        cells.any(|cell| Some(cell) != first)
    });
    keys
}

/// The format of a file by its name and its beginning. `None` if it is not here.
fn format_of(column: &FrameColumn, path: &Path, digest: &Digest) -> Option<FileFormat> {
    let mut beginning = Vec::new();
    let is_file = path.symlink_metadata().ok()?.is_file() && !digest.is_directory();
    is_file.then(|| File::open(path))?.ok()?.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    Some(FileFormat::detect(&column.name, &beginning))
}
