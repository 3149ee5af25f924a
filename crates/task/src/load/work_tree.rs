//! A task as it is checked out, and which of its files have uncommitted changes.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ce_files::open_leased;
use ce_git::{Changes, Filtered, Head, HeadError, Heads, RepoState};
use ce_model::digest::ObjectId;
use ce_model::name::TreeName;
use ce_model::task::{FileContents, RecordedTree};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, SeekFrom, Stat, fstat, openat, seek,
    stat as stat_of, statat,
};
use rustix::io::Errno;

use super::computations::LISTS;
use super::problems::LoadFault;
use super::source::{Identity, Located, SourceVersion, TaskSource};
use super::{OWN, Uncommitted};

/// A task that is checked out.
#[derive(Debug)]
pub(super) struct WorkTree {
    task: PathBuf,
    place: Rc<DirHandle>,
    repository: PathBuf,
    heads: Heads,
    uncommitted: Uncommitted,
    /// Files with uncommitted changes that matter, relative to the task.
    changed: Vec<PathBuf>,
    /// Ignored files that an `exec` could read, relative to the task.
    ignored: Vec<PathBuf>,
    /// Links, and their targets in the repository: real paths.
    linked: BTreeSet<PathBuf>,
}

impl WorkTree {
    /// The task in a directory, given by its real path.
    pub(super) fn new(task: &Path, uncommitted: Uncommitted) -> Self {
        Self {
            task: task.to_owned(),
            place: DirHandle::new(task.to_owned(), 0),
            repository: ce_git::top(task).unwrap_or_else(|| task.to_owned()),
            heads: Heads::default(),
            uncommitted,
            changed: Vec::new(),
            ignored: Vec::new(),
            linked: BTreeSet::new(),
        }
    }

    /// The states of all repositories that were read.
    pub(super) fn standings(&self) -> Option<Vec<RepoState>> {
        self.heads.repository_states()
    }
}

impl TaskSource for WorkTree {
    type Dir = Rc<DirHandle>;

    fn commit(&mut self) -> Result<ObjectId, LoadFault> {
        // A task that was never committed has no tree in the commit.
        match self.uncommitted {
            Uncommitted::Evaluate => Ok(self.heads.commit(&self.task)?),
            _ => Ok(self.heads.of(&self.task)?.commit),
        }
    }

    fn task(&mut self) -> Result<Rc<DirHandle>, LoadFault> {
        Ok(Rc::clone(&self.place))
    }

    fn place(&self, dir: &Rc<DirHandle>) -> PathBuf {
        self.inside(&dir.path)
    }

    fn find(
        &mut self,
        dir: &Rc<DirHandle>,
        name: &str,
    ) -> Result<Located<Rc<DirHandle>>, LoadFault> {
        let stat = dir.look(name)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            return Ok(found(&stat, false, || dir.within(name)));
        }
        let (real, outside) = self.follow(dir, name)?;
        let stat = stat_of(&real).map_err(|error| LoadFault::read(error.into()))?;
        Ok(found(&stat, outside, || dir.linked(real)))
    }

    fn holds(&mut self, dir: &Rc<DirHandle>, name: &str) -> Result<bool, LoadFault> {
        if FileType::from_raw_mode(dir.look(name)?.st_mode) != FileType::Symlink {
            return Ok(true);
        }
        let real = dir.path.join(name).canonicalize().map_err(LoadFault::read)?;
        Ok(real.starts_with(dir.path.canonicalize().map_err(LoadFault::read)?))
    }

    fn list(&mut self, dir: &Rc<DirHandle>) -> Result<Vec<OsString>, LoadFault> {
        dir.list()
    }

    fn read_at_most(
        &mut self,
        dir: &Rc<DirHandle>,
        name: &str,
        most: u64,
    ) -> Result<Vec<u8>, LoadFault> {
        if let Some(contents) = dir.read(name, most)? {
            return Ok(contents);
        }
        match self.follow(dir, name)? {
            (real, true) => Err(LoadFault::Outside(self.inside(&real))),
            (real, false) => read_directory(&real, most),
        }
    }

    fn version(&mut self, dir: &Rc<DirHandle>) -> Result<SourceVersion, LoadFault> {
        let real = dir.path.canonicalize().map_err(LoadFault::read)?;
        self.version_of(real, Heads::of)
    }

    fn file_version(
        &mut self,
        dir: &Rc<DirHandle>,
        name: &str,
    ) -> Result<SourceVersion, LoadFault> {
        let real = dir.path.join(name).canonicalize().map_err(LoadFault::read)?;
        self.version_of(real, Heads::of_file)
    }

    fn contents(&mut self, dir: &Rc<DirHandle>, name: &str) -> Result<FileContents, LoadFault> {
        let (real, outside) = self.follow(dir, name)?;
        if outside {
            return Err(LoadFault::Outside(self.inside(&real)));
        }
        let mut is_changed = false;
        // Another target of a link is a change, too.
        for path in [dir.path.join(name), real.clone()] {
            let scope = path.parent().unwrap_or(&path);
            if self.uncommitted != Uncommitted::Ignore
                && self.heads.changes(&path, scope)?.changed.contains(&path)
            {
                is_changed = true;
                self.changed.push(path);
            }
        }
        if is_changed {
            match self.uncommitted {
                Uncommitted::Refuse => return Err(LoadFault::UncommittedFile),
                Uncommitted::Evaluate | Uncommitted::Warn => {
                    return Ok(FileContents::Uncommitted(real));
                }
                Uncommitted::Ignore => {}
            }
        }
        Ok(FileContents::Blob(self.heads.of_file(&real)?.object))
    }

    fn recorded(&mut self, name: &TreeName) -> Result<RecordedTree, LoadFault> {
        let place = match name.source() {
            "." => self.repository.clone(),
            source => {
                let place = place(&self.task, source);
                let inside = place.filter(|place| place.starts_with(&self.repository));
                inside.ok_or(LoadFault::Missing)?
            }
        };
        let recorded = match name.source() {
            "." => self.heads.commit(&place)?,
            _ => self.heads.submodule(&place)?.ok_or(LoadFault::Missing)?,
        };
        let is_there = ce_git::top(&place).as_ref() == Some(&place);
        if self.uncommitted == Uncommitted::Ignore || !is_there {
            return Ok(RecordedTree { commit: recorded, uncommitted: None });
        }
        let (dir, commit) = (place.join(name.path()), self.heads.commit(&place)?);
        let changes = self.heads.changes(&dir, &dir)?;
        let moved = (commit != recorded).then(|| place.clone());
        self.changed.extend(moved.iter().chain(&changes.changed).cloned());
        match self.uncommitted {
            Uncommitted::Refuse if moved.is_some() => {
                Err(LoadFault::Uncommitted(vec![self.inside(&place)]))
            }
            Uncommitted::Refuse => {
                refuse(&place, &changes)?;
                Ok(RecordedTree { commit, uncommitted: None })
            }
            Uncommitted::Evaluate if !changes.changed.is_empty() => {
                let tree = self.heads.as_it_stands(&dir, &changes)?;
                Ok(RecordedTree { commit, uncommitted: Some((dir, tree)) })
            }
            Uncommitted::Evaluate => Ok(RecordedTree { commit, uncommitted: None }),
            Uncommitted::Warn | Uncommitted::Ignore => {
                Ok(RecordedTree { commit: recorded, uncommitted: None })
            }
        }
    }

    fn changes(&mut self) -> Result<Changes, LoadFault> {
        if self.uncommitted != Uncommitted::Ignore {
            for part in OWN {
                let part = self.task.join(part);
                // It need not be there; but somebody may have removed it.
                if part.symlink_metadata().is_err() && !self.heads.has(&part)? {
                    continue;
                }
                let changes = self.heads.changes(&part, &part)?;
                let filtered = changes.filtered.into_iter().map(|it| it.path);
                let read = changes.ignored.into_iter().chain(filtered).filter(|path| is_read(path));
                self.changed.extend(changes.changed.into_iter().chain(read));
            }
            self.note_changes_behind_links()?;
        }
        let sorted = |paths: &[PathBuf]| {
            let paths: BTreeSet<PathBuf> = paths.iter().map(|path| self.inside(path)).collect();
            paths.into_iter().collect()
        };
        Ok(Changes {
            changed: sorted(&self.changed),
            ignored: sorted(&self.ignored),
            ..Changes::default()
        })
    }
}

/// The place with this path relative to a directory. Only words count: it need not exist.
fn place(dir: &Path, path: &str) -> Option<PathBuf> {
    let mut place = dir.to_owned();
    for part in path.split('/') {
        if part == ".." {
            place.pop().then_some(())?;
        } else {
            place.push(part);
        }
    }
    Some(place)
}

/// The files of a computation that are read and have an external filter, so that they may differ
/// from the recorded ones.
fn read_filtered<'a>(place: &'a Path, changes: &'a Changes) -> impl Iterator<Item = &'a Filtered> {
    let files = LISTS.map(|name| place.join(name));
    changes.filtered.iter().filter(move |it| it.path == place || files.contains(&it.path))
}

/// Refuses a computation that differs from its commit.
fn refuse(place: &Path, changes: &Changes) -> Result<(), LoadFault> {
    // A file is reported with its name.
    let dir = if place.is_file() { place.parent().unwrap_or(place) } else { place };
    let filter = |path: &PathBuf| changes.filtered.iter().find(|it| it.path == *path);
    let changed: Vec<PathBuf> = changes
        .changed
        .iter()
        .filter_map(|path| path.strip_prefix(dir).ok().map(Path::to_owned))
        .collect();
    if !changed.is_empty() {
        let mut filters = changes.changed.iter().map(|path| filter(path).map(|it| &it.filter));
        return Err(match filters.next().flatten() {
            Some(filter) if filters.all(|it| it.is_some()) => {
                LoadFault::Filtered { files: changed, filter: filter.clone() }
            }
            _ => LoadFault::Uncommitted(changed),
        });
    }
    match read_filtered(place, changes).next() {
        Some(Filtered { path, filter }) => Err(LoadFault::Converted {
            file: path.strip_prefix(dir).unwrap_or(path).to_owned(),
            filter: filter.clone(),
        }),
        None => Ok(()),
    }
}

/// Whether a file in a workflow is read, by its name, even if Git ignores it.
fn is_read(path: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(|name| name.as_encoded_bytes().to_owned());
    let in_inputs = path.parent().and_then(name).as_deref() == Some(b"inputs");
    match name(path).as_deref() {
        Some(b"workflow" | b"workflow.ce" | b"kind" | b"value" | b"inputs" | b"outputs") => true,
        Some([b'.', ..]) | None => false,
        Some(_) => in_inputs,
    }
}

fn found(
    stat: &Stat,
    outside: bool,
    dir: impl FnOnce() -> Rc<DirHandle>,
) -> Located<Rc<DirHandle>> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {
            let identity = Identity::Inode(stat.st_dev, stat.st_ino);
            Located::Directory { dir: dir(), identity, outside }
        }
        kind => {
            let executable = stat.st_mode & 0o111 != 0;
            Located::File { plain: kind == FileType::RegularFile, executable }
        }
    }
}

impl WorkTree {
    /// The path of a file, relative to the task if it is in it.
    fn inside(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.task).unwrap_or(path).to_owned()
    }

    /// Returns the target of a link, and whether that is outside of the task's repository.
    fn follow(&mut self, dir: &DirHandle, name: &str) -> Result<(PathBuf, bool), LoadFault> {
        let real = dir.path.join(name).canonicalize().map_err(LoadFault::read)?;
        let outside = !real.starts_with(&self.repository);
        if !outside {
            self.linked.extend([dir.path.join(name), real.clone()]);
        }
        Ok((real, outside))
    }

    /// Notes uncommitted changes of files that links lead to.
    fn note_changes_behind_links(&mut self) -> Result<(), HeadError> {
        // Targets in the same top directory are checked together.
        let scopes: BTreeSet<PathBuf> = self
            .linked
            .iter()
            .filter_map(|path| {
                let inside = path.strip_prefix(&self.repository).ok()?;
                Some(self.repository.join(inside.components().next()?))
            })
            .collect();
        for scope in scopes {
            let changes = self.heads.changes(&scope, &scope)?;
            let moved = self.heads.displaced_submodule(&scope, &self.task)?;
            let below = |path: &Path| path.ancestors().any(|above| self.linked.contains(above));
            let above = |path: &Path| {
                let mut after = self.linked.range(path.to_owned()..);
                after.next().is_some_and(|linked| linked.starts_with(path))
            };
            let filtered = changes.filtered.into_iter().map(|it| it.path);
            let unread = changes.ignored.into_iter().chain(filtered);
            self.changed.extend(
                (changes.changed.into_iter().chain(moved))
                    .filter(|path| below(path) || above(path))
                    .chain(unread.filter(|path| above(path) || below(path) && is_read(path))),
            );
        }
        Ok(())
    }

    /// Returns the version of a computation with this real path. `head` says how HEAD records it.
    fn version_of(
        &mut self,
        real: PathBuf,
        head: impl FnOnce(&mut Heads, &Path) -> Result<Head, HeadError>,
    ) -> Result<SourceVersion, LoadFault> {
        if self.uncommitted == Uncommitted::Evaluate {
            let changes = self.changes_in(&real)?;
            if !changes.changed.is_empty() || read_filtered(&real, &changes).next().is_some() {
                let commit = self.heads.commit(&real)?;
                let tree = self.heads.as_it_stands(&real, &changes)?;
                return Ok(SourceVersion { commit, tree, dirty: true, checked_out: Some(real) });
            }
        }
        let Head { commit, object: tree } = head(&mut self.heads, &real)?;
        match self.uncommitted {
            Uncommitted::Refuse => refuse(&real, &self.changes_in(&real)?)?,
            Uncommitted::Warn => drop(self.changes_in(&real)?),
            Uncommitted::Evaluate | Uncommitted::Ignore => {}
        }
        Ok(SourceVersion { commit, tree, dirty: false, checked_out: Some(real) })
    }

    /// Returns the uncommitted changes of a computation, and notes them.
    fn changes_in(&mut self, dir: &Path) -> Result<Changes, HeadError> {
        let changes = self.heads.changes(dir, dir.parent().unwrap_or(dir))?;
        self.changed.extend(self.heads.displaced_submodule(dir, &self.task)?);
        self.changed.extend_from_slice(&changes.changed);
        self.changed.extend(read_filtered(dir, &changes).map(|it| it.path.clone()));
        self.ignored.extend_from_slice(&changes.ignored);
        Ok(changes)
    }
}

/// A directory: its real path, and how it was reached.
#[derive(Debug)]
pub(super) struct DirHandle {
    /// The path, which is absolute and has no links.
    pub(super) path: PathBuf,
    /// The directory above, if it was reached from there.
    around: Option<Rc<Self>>,
    /// The number of directories on the way to it.
    depth: usize,
    /// The open directory, once an entry was accessed.
    handle: OnceCell<OwnedFd>,
    /// Whether it was listed.
    listed: Cell<bool>,
}

/// Deeper directories are not kept open, to limit the number of open files. Their entries are
/// accessed by absolute paths.
const MAX_DEPTH: usize = 100;

const FLAGS: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW);

impl DirHandle {
    /// A directory with this real path.
    pub(super) fn new(path: PathBuf, depth: usize) -> Rc<Self> {
        Rc::new(Self {
            path,
            around: None,
            depth,
            handle: OnceCell::new(),
            listed: Cell::new(false),
        })
    }

    /// A directory in this one, which is not a link.
    pub(super) fn within(self: &Rc<Self>, name: &str) -> Rc<Self> {
        Rc::new(Self {
            path: self.path.join(name),
            around: Some(Rc::clone(self)),
            depth: self.depth + 1,
            handle: OnceCell::new(),
            listed: Cell::new(false),
        })
    }

    /// A directory that a link in this one leads to.
    pub(super) fn linked(&self, path: PathBuf) -> Rc<Self> {
        Self::new(path, self.depth + 1)
    }

    /// Returns the stat of an entry. Does not follow a link.
    pub(super) fn look(&self, name: &str) -> Result<Stat, LoadFault> {
        let stat = match self.handle() {
            Some(handle) => statat(handle, name, AtFlags::SYMLINK_NOFOLLOW),
            None => statat(CWD, self.path.join(name), AtFlags::SYMLINK_NOFOLLOW),
        };
        stat.map_err(fault)
    }

    /// Lists the names here, in any order.
    pub(super) fn list(&self) -> Result<Vec<OsString>, LoadFault> {
        let listed = match self.handle() {
            // A second listing starts at the beginning.
            Some(handle) if self.listed.replace(true) => {
                seek(handle, SeekFrom::Start(0)).and_then(|_| names(handle))
            }
            Some(handle) => names(handle),
            None => open(CWD, &self.path, OFlags::DIRECTORY).and_then(names),
        };
        listed.map_err(fault)
    }

    /// Returns the contents of a file here of at most so many bytes; `None` if it is a link.
    pub(super) fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, LoadFault> {
        let file = match self.handle() {
            Some(handle) => open(handle, Path::new(name), OFlags::empty()),
            None => open(CWD, &self.path.join(name), OFlags::empty()),
        };
        match file {
            Ok(file) => contents(file, most).map(Some),
            Err(Errno::LOOP) => Ok(None),
            // A socket, or a device without a driver.
            Err(Errno::NXIO) => Err(LoadFault::NotAFile),
            Err(error) => Err(fault(error)),
        }
    }

    /// The open directory. `None` if it is too deep or cannot be opened; access by its path reports
    /// the error.
    fn handle(&self) -> Option<BorrowedFd<'_>> {
        if self.depth > MAX_DEPTH {
            return None;
        }
        if self.handle.get().is_none() {
            let around = self.around.as_ref().and_then(|around| around.handle());
            let handle = match (around, self.path.file_name()) {
                (Some(around), Some(name)) => open(around, Path::new(name), OFlags::DIRECTORY),
                _ => open(CWD, &self.path, OFlags::DIRECTORY),
            };
            self.handle.set(handle.ok()?).ok()?;
        }
        self.handle.get().map(AsFd::as_fd)
    }
}

/// The names in an open directory.
fn names(directory: impl AsFd) -> Result<Vec<OsString>, Errno> {
    let mut room = [const { MaybeUninit::uninit() }; 4096];
    let mut entries = RawDir::new(directory, &mut room);
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        match entry?.file_name().to_bytes() {
            b"." | b".." => {}
            name => names.push(OsStr::from_bytes(name).to_owned()),
        }
    }
    Ok(names)
}

/// Reads a file of at most so many bytes with this real path.
fn read_directory(path: &Path, most: u64) -> Result<Vec<u8>, LoadFault> {
    contents(open(CWD, path, OFlags::empty()).map_err(fault)?, most)
}

fn contents(file: OwnedFd, most: u64) -> Result<Vec<u8>, LoadFault> {
    let stat = fstat(&file).map_err(fault)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(LoadFault::NotAFile);
    }
    let size = stat.st_size.unsigned_abs();
    if size > most {
        return Err(LoadFault::too_large(most));
    }
    let mut contents = vec![0; size as usize];
    File::from(file).read_exact(&mut contents).map_err(LoadFault::read)?;
    Ok(contents)
}

fn open(around: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    open_leased(|| false, || openat(&around, path, flags | FLAGS, Mode::empty()))
}

fn fault(error: Errno) -> LoadFault {
    LoadFault::read(error.into())
}
