//! A page as a directory: `index.html`, and beside it the outputs that have no room on it.
//!
//! The directory may be another's: somebody has cloned it, or keeps files there. So names of outputs are never paths,
//! nothing leads through a symbolic link, and only files of the last page are replaced or removed. A list in the directory
//! says what that was, with digests. Files of an older version are known by equal contents only.
//!
//! No file of a result is opened by a browser as a document: what could hold scripts lies there as a text, and an SVG is shown as a picture on a
//! page of its own.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process;

use ce_evaluate::session::WriteError;
use ce_exchange::Secrets;
use ce_files::beneath::ForeignEntry;
use ce_files::directory_writer::DirectoryWriter;
use ce_files::umask;
use ce_git::link_out_of_repository;
use ce_model::digest::Digest;
use ce_model::exit::Explain;
use ce_model::file_format::is_executed;
use ce_model::name::{file_name, file_name_of_bytes};
use ce_queries::page::{CopyBeside, FileFormat, MEMBERS, NotHeld, PageMember, PageOutput};
use maud::{DOCTYPE, html};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::{PAGE_MARK, text};

/// The page in a directory.
const INDEX: &str = "index.html";

/// The directory beside it that has outputs.
const FILES: &str = "files";

/// The directory beside it with pages that show pictures.
const PICTURES: &str = "pictures";

/// The list of the files that were made in these directories.
const LIST: &str = ".ce-report.json";

/// The greatest size of the list, in bytes.
const LIST_SIZE: u64 = 16 << 20;

/// The format of the list.
const FORMAT: u32 = 1;

/// The number of bytes at the beginning of a file that are searched for markup.
const BEGINNING: u64 = 64 << 10;

/// The size of the largest SVG that is shown, in bytes.
const PICTURE: u64 = 16 << 20;

/// The directory of a page.
#[derive(Debug)]
pub struct PageDirectory {
    path: PathBuf,
    writer: DirectoryWriter,
    /// The files that the last page has made.
    made: Vec<MadeEntry>,
}

/// The list.
#[derive(Debug, Serialize, Deserialize)]
struct MadeList {
    format: u32,
    made: Vec<MadeEntry>,
}

/// A file or directory that a page has made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct MadeEntry {
    path: String,
    contents: Digest,
}

/// The reason why a page is not written. Nothing was replaced or removed then.
#[derive(Debug, thiserror::Error, Explain)]
pub enum PageError {
    /// The page would replace something else.
    #[error("{0} exists and is not a page of ce report")]
    #[hint("name another file with -o; --force replaces a plain file")]
    NotAPage(String),
    /// A file or directory beside the page would replace something else.
    #[error("{0} is there, and is not as ce report has made it")]
    #[hint("move it away, or name another directory with -o")]
    NotMade(String),
    /// An output has entries that no value has.
    #[error("{0} is damaged, and is not copied")]
    #[exit(Storage)]
    #[hint("ce verify --repair finds what is damaged, and ce run makes it again")]
    Damaged(String),
    /// Something cannot be read or written.
    #[error(transparent)]
    #[exit(Storage)]
    #[hint(_0.hint())]
    Write(#[from] WriteError),
}

impl PageDirectory {
    /// Makes the directory of a page, or opens it. It must be empty, or have a page; with `force`, any file may be in the page's place.
    ///
    /// # Errors
    ///
    /// Fails if it has other things, or cannot be made.
    pub fn new(path: &Path, force: bool) -> Result<Self, PageError> {
        refuse_links(path)?;
        let opened = umask::create_dir_all(path).and_then(|()| DirectoryWriter::open(path));
        let writer = opened.map_err(|error| not_written(path, error))?;
        let mut it = Self { path: path.to_owned(), writer, made: Vec::new() };
        let is_page = match it.writer.kind(INDEX).map_err(|error| it.not_written(INDEX, error))? {
            None if it.writer.is_empty().map_err(|error| not_written(path, error))? => true,
            None => return Err(PageError::NotAPage(path.display().to_string())),
            Some(FileType::RegularFile) => {
                force || it.is_page().map_err(|error| it.not_written(INDEX, error))?
            }
            Some(_) => false,
        };
        if !is_page {
            return Err(PageError::NotAPage(it.shown(INDEX)));
        }
        it.made = it.read_list()?;
        Ok(it)
    }

    fn is_page(&self) -> io::Result<bool> {
        begins_as_page(self.writer.file(INDEX)?)
    }

    /// The path of the page.
    pub fn page(&self) -> PathBuf {
        self.path.join(INDEX)
    }

    fn shown(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    fn not_written(&self, name: &str, source: io::Error) -> PageError {
        not_written(&self.path.join(name), source).into()
    }

    /// Reads the list of files that the last page has made.
    fn read_list(&self) -> Result<Vec<MadeEntry>, PageError> {
        if self.writer.kind(LIST).map_err(|error| self.not_written(LIST, error))?.is_none() {
            return Ok(Vec::new());
        }
        let mut contents = Vec::new();
        let read =
            self.writer.file(LIST).and_then(|file| file.take(LIST_SIZE).read_to_end(&mut contents));
        let list = read.ok().and_then(|_| serde_json::from_slice::<MadeList>(&contents).ok());
        match list.filter(|list| list.format == FORMAT && list.made.iter().all(MadeEntry::is_own)) {
            Some(list) => Ok(list.made),
            None => Err(PageError::NotMade(self.shown(LIST))),
        }
    }

    fn write_list(&self, made: Vec<MadeEntry>) -> Result<(), PageError> {
        let list = MadeList { format: FORMAT, made };
        let written = serde_json::to_vec_pretty(&list).map_err(io::Error::from);
        let written = written.and_then(|list| self.writer.replace(LIST, &list));
        written.map_err(|error| self.not_written(LIST, error))
    }

    /// Copies outputs that have no room on a page into the directory, and notes where they are. What seems to hold a secret is left out.
    /// Files that the last page has made and this one has not are removed.
    ///
    /// # Errors
    ///
    /// Fails if anything else is in the place of a copy, or it cannot be written.
    pub fn add_outputs(&mut self, outputs: &mut [PageOutput]) -> Result<(), PageError> {
        let aside = format!(".ce-report.{}.part", process::id());
        self.writer.make_dir(&aside).map_err(|error| self.not_written(&aside, error))?;
        let copied = self.copy_outputs(&aside, outputs).and_then(|new| self.publish(&aside, new));
        drop(self.writer.remove(&aside));
        self.made = copied?;
        Ok(())
    }

    /// Copies outputs aside. Returns the files and directories that are there.
    fn copy_outputs(
        &self,
        aside: &str,
        outputs: &mut [PageOutput],
    ) -> Result<BTreeMap<String, PathBuf>, PageError> {
        let secrets = Secrets::of_environment();
        let mut made: BTreeMap<String, PathBuf> = BTreeMap::new();
        let mut copy = |from: &Path, to: &str, name: &str| {
            let copied = self.copy_file(aside, from, to, name, &secrets)?;
            let page = copied.as_ref().ok().and_then(|copy| copy.shown_on.as_deref());
            for path in [copied.as_ref().ok().map(|copy| &*copy.path), page].into_iter().flatten() {
                made.insert(path.split('/').take(2).collect::<Vec<_>>().join("/"), from.to_owned());
            }
            Ok::<_, PageError>(copied)
        };
        let mut names: HashSet<String> = HashSet::new();
        for output in outputs {
            let (Some(source), Some(contents)) = (&output.source, &mut output.contents) else {
                continue;
            };
            let own = output.output.trim_end_matches('/');
            // Outputs of several results may have one name.
            let free = (1..).map(|turn| copy_name(&output.value.name, turn, own));
            let Some(name) = { free }.find(|name| !names.contains(name)) else { continue };
            match contents.held {
                Err(NotHeld::TooLarge) => {
                    let saved_as = output.outer_name.clone().unwrap_or_else(|| file_name(own));
                    match copy(source, &name, &saved_as)? {
                        Ok(copied) => output.beside = Some(copied),
                        Err(why) => contents.held = Err(why),
                    }
                }
                Err(NotHeld::Directory) => {
                    let members = output.members.iter_mut().take(MEMBERS);
                    let members: Vec<&mut PageMember> =
                        members.filter(|it| it.is_copied()).collect();
                    let dirs = members.iter().flat_map(|it| dirs_around(&copied_path(&it.path)));
                    let mut taken: HashSet<String> = dirs.collect();
                    for member in members {
                        let from = member.source(source);
                        let mut to = copied_path(&member.path);
                        // The page of a picture must not have the name of a directory.
                        while taken.contains(&format!("{to}.html"))
                            || !taken.insert(inert(&to, &from))
                        {
                            to.push_str(".txt");
                        }
                        let saved_as =
                            member.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                        let saved_as = String::from_utf8_lossy(saved_as);
                        match copy(&from, &format!("{name}/{to}"), &saved_as)? {
                            Ok(copied) => member.beside = Some(copied),
                            Err(why) => member.leave_out(why),
                        }
                    }
                }
                _ => continue,
            }
            names.insert(name);
        }
        Ok(made)
    }

    /// Copies a file aside, with a page that shows it if it is an SVG. Returns what is there, or why it is left out.
    fn copy_file(
        &self,
        aside: &str,
        from: &Path,
        name: &str,
        saved_as: &str,
        secrets: &Secrets,
    ) -> Result<Result<CopyBeside, NotHeld>, PageError> {
        let read = |error| WriteError { path: from.display().to_string(), source: error };
        let Ok(file) = File::open(from) else { return Ok(Err(NotHeld::Absent)) };
        if let Some(what) = secrets.find_in_file(file).map_err(read)? {
            return Ok(Err(NotHeld::Secret(what)));
        }
        let path = format!("{FILES}/{}", inert(name, from));
        let copied = self.writer.copy(from, &format!("{aside}/{path}"));
        copied.map_err(|error| self.not_written(&path, error))?;
        let shown_on = picture_page(saved_as, from)
            .map(|page| {
                let path = format!("{PICTURES}/{name}.html");
                let written = self.writer.write(&format!("{aside}/{path}"), page);
                written.map_err(|error| self.not_written(&path, error)).map(|()| path)
            })
            .transpose()?;
        Ok(Ok(CopyBeside { path, saved_as: saved_as.to_owned(), shown_on }))
    }

    /// Moves the files that were made aside to their places, and returns the files that are there now.
    fn publish(
        &self,
        aside: &str,
        new: BTreeMap<String, PathBuf>,
    ) -> Result<Vec<MadeEntry>, PageError> {
        let mut made: Vec<MadeEntry> = Vec::with_capacity(new.len());
        let mut moved: Vec<(String, bool)> = Vec::new();
        for (path, source) in new {
            let Some(contents) = self.writer.digest(&format!("{aside}/{path}")) else {
                return Err(PageError::Damaged(source.display().to_string()));
            };
            let is_there =
                self.writer.kind(&path).map_err(|error| self.not_written(&path, error))?.is_some();
            let there = self.writer.digest(&path).filter(|_| is_there);
            if is_there && there != Some(contents) {
                if !self.has_made(&path, there) {
                    return Err(PageError::NotMade(self.shown(&path)));
                }
                moved.push((path.clone(), true));
            } else if !is_there {
                moved.push((path.clone(), false));
            }
            made.push(MadeEntry { path, contents });
        }
        if made.is_empty() && self.made.is_empty() {
            return Ok(made);
        }
        // If this ends here, the next page knows both the old and the new files.
        self.write_list([&self.made[..], &made].concat())?;
        for (path, replaces) in moved {
            let removed = if replaces { self.writer.remove(&path) } else { Ok(()) };
            let placed =
                removed.and_then(|()| self.writer.rename(&format!("{aside}/{path}"), &path));
            placed.map_err(|error| self.not_written(&path, error))?;
        }
        for old in self.made.iter().filter(|old| !made.iter().any(|it| it.path == old.path)) {
            if self.has_made(&old.path, self.writer.digest(&old.path)) {
                self.writer
                    .remove(&old.path)
                    .map_err(|error| self.not_written(&old.path, error))?;
            }
        }
        self.write_list(made.clone())?;
        Ok(made)
    }

    /// Whether the last page has made the file at a path.
    fn has_made(&self, path: &str, contents: Option<Digest>) -> bool {
        self.made.iter().any(|it| it.path == path && Some(it.contents) == contents)
    }

    /// Writes the page, or nothing.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn write(&self, page: &[u8]) -> Result<(), PageError> {
        self.writer.replace(INDEX, page).map_err(|error| self.not_written(INDEX, error))
    }
}

impl MadeEntry {
    /// Whether a page can have made it: a list may be another's.
    fn is_own(&self) -> bool {
        let parts: Vec<&str> = self.path.split('/').collect();
        matches!(parts[..], [FILES | PICTURES, name] if !name.is_empty() && !name.starts_with('.'))
    }
}

/// Refuses a path that leads where a repository says.
///
/// # Errors
///
/// Fails if it does.
pub fn refuse_links(path: &Path) -> Result<(), WriteError> {
    let link = link_out_of_repository(path);
    link.map_or(Ok(()), |link| Err(not_written(&link, ForeignEntry::Link.into())))
}

/// Whether a file begins like a page.
///
/// # Errors
///
/// Fails if it cannot be read.
pub fn begins_as_page(file: File) -> io::Result<bool> {
    let mut begin = Vec::new();
    file.take(1024).read_to_end(&mut begin)?;
    Ok(begin.windows(PAGE_MARK.len()).any(|part| part == PAGE_MARK.as_bytes()))
}

fn not_written(path: &Path, source: io::Error) -> WriteError {
    WriteError { path: path.display().to_string(), source }
}

/// The name of the copy of an output with this number. Other copies may have the same name.
fn copy_name(number: &str, turn: usize, output: &str) -> String {
    let turn = if turn == 1 { String::new() } else { format!("{turn}-") };
    format!("{number}-{turn}{}", file_name(output))
}

/// The name under which a file lies beside a page: one that a browser does not execute.
fn inert(name: &str, source: &Path) -> String {
    let mut beginning = Vec::new();
    let read = File::open(source).and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning));
    let last = name.rsplit('/').next().unwrap_or_default();
    if read.is_err() || is_executed(last, &beginning) {
        format!("{name}.txt")
    } else {
        name.to_owned()
    }
}

/// The path of the copy of a file in a directory. Hidden files, such as `.htaccess`, could be settings of a server.
fn copied_path(path: &[u8]) -> String {
    let names: Vec<String> = path.split(|byte| *byte == b'/').map(file_name_of_bytes).collect();
    names.join("/")
}

/// The directories in which a path is.
fn dirs_around(path: &str) -> Vec<String> {
    path.match_indices('/').map(|(at, _)| path[..at].to_owned()).collect()
}

/// A page that shows a file as a picture, if it is an SVG. Nothing in it is executed then.
fn picture_page(name: &str, source: &Path) -> Option<String> {
    let size = fs::metadata(source).ok()?.len();
    let contents = fs::read(source).ok().filter(|_| size <= PICTURE)?;
    let FileFormat::Picture(kind @ "image/svg+xml") = FileFormat::detect(name, &contents) else {
        return None;
    };
    let title = text(name);
    let address = format!("data:{kind};base64,{}", data_encoding::BASE64.encode(&contents));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'";
                title { (title) }
            }
            body { img alt=(title) src=(address); }
        }
    };
    Some(page.into_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_an_output_leads_out_of_its_directory() {
        for (output, name) in [
            ("figure.svg", "00-figure.svg"),
            ("x/../../../victim", "00-x%2F..%2F..%2F..%2Fvictim"),
            ("..", "00-%2E."),
            ("", "00-%"),
        ] {
            assert_eq!(copy_name("00", 1, output), name);
        }
        assert_eq!(copy_name("00", 2, "sum"), "00-2-sum");
        assert_eq!(copied_path(b".git/x\xe9\\y/.a b"), "%2Egit/x%E9%5Cy/%2Ea b");
    }

    #[test]
    fn a_foreign_list_can_name_only_copies() {
        let is_own = |path: &str| {
            MadeEntry { path: path.to_owned(), contents: Digest::hash_bytes(b"") }.is_own()
        };
        assert!(is_own("files/00-a") && is_own("pictures/00-a.html"));
        for other in
            ["", "index.html", "files", "files/", "files/a/b", "files/..", "../files/a", "/files/a"]
        {
            assert!(!is_own(other), "{other}");
        }
    }
}
