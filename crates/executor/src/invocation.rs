//! One execution, as an executor is asked for it: its program, its files, which must still be the verified ones, and
//! its log.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ce_files::{open_leased, umask};
use ce_model::access::Access;
use ce_model::digest::{Digest, ObjectId};
use ce_model::resources::{Resources, TaskLauncher};
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, lstat, open, openat};
use rustix::io::Errno;
use rustix::path::Arg;

/// One execution, as an executor is asked for it. All paths are in the storage, except paths that `access` grants.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The name of the call, and of its lease.
    pub call: String,
    /// The directory of the storage.
    pub storage: PathBuf,
    /// The directory of the computation.
    pub tree: VerifiedPath,
    /// The file that is executed.
    pub program: CallProgram,
    /// The Git tree that this directory is an export of.
    pub tree_id: ObjectId,
    /// The values that it reads, in order.
    pub inputs: Vec<InputFile>,
    /// The files and directories that it makes, in order. The directories exist, and are empty.
    pub outputs: Vec<OutputFile>,
    /// The directory that it works in, which is empty.
    pub work: VerifiedPath,
    /// Another empty one, where a sandbox lets it write its outputs.
    pub outbox: VerifiedPath,
    /// A directory of the call, which it finds by [`DIRECTORY`] and may write, and which stays.
    pub directory: Option<VerifiedPath>,
    /// The directory in which the log is made.
    pub stage: VerifiedPath,
    /// The name of the log file, which is empty or does not exist.
    pub log: String,
    /// Further access, in a sandbox.
    pub access: Access,
    /// Whether it is executed in a sandbox. An executor without a sandbox refuses it then.
    pub isolate: bool,
    /// Its time limit.
    pub limit: Option<Duration>,
    /// The memory that its processes may have together, in bytes, if it is limited.
    pub memory_limit: Option<u64>,
    /// The names of the graphics processors that its turn lets it use.
    pub visible_gpus: Vec<String>,
    /// The numbers of the processors that it is bound to, if it is.
    pub processors: Vec<usize>,
    /// What it asks for, as variables of the environment: names, and values if it asks.
    pub requested: Vec<(&'static str, Option<String>)>,
    /// Whether nothing else may be executed on the host meanwhile.
    pub exclusive: bool,
    /// A command in place of the program, with which a user looks into the sandbox.
    pub inspection: Option<Inspection>,
    /// Its request to an allocation, which it has to itself. It is not isolated then.
    pub span: Option<Span>,
}

/// A command with which a user looks into a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The terminal that it has, as a path of the host. Without one it prints to the log, and has no input.
    pub terminal: Option<PathBuf>,
}

/// The hosts, tasks and processors that an execution requests of an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The number of hosts, if it matters.
    pub nodes: Option<NonZeroU32>,
    /// The number of tasks.
    pub tasks: NonZeroU32,
    /// The number of processors of each task.
    pub cpus: NonZeroU32,
    /// The program that starts `exec` on every task. Without one, `exec` is executed once.
    pub launcher: Option<TaskLauncher>,
}

impl Span {
    /// Returns the request of a call to an allocation, if it needs one.
    pub fn from_resources(resources: &Resources) -> Option<Self> {
        let (nodes, launcher) = (resources.nodes, resources.launcher.clone());
        let cpus = resources.cpus.unwrap_or(NonZeroU32::MIN);
        let tasks = resources.task_count();
        resources.spans().then_some(Self { nodes, tasks, cpus, launcher })
    }
}

/// A program of a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallProgram {
    /// Makes its outputs.
    Exec,
    /// Reports the state of the things that it has started elsewhere.
    Status,
    /// Ends the processes that it has started elsewhere.
    Cancel,
}

impl CallProgram {
    /// The name of the file, in the directory of the computation.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Status => "status",
            Self::Cancel => "cancel",
        }
    }
}

/// A file or directory that an execution reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// The file or directory.
    pub file: VerifiedPath,
    /// Its digest, which shows whether it is a directory.
    pub digest: Digest,
    /// Its name in a sandbox: its number, and its suffix if it has one.
    pub name: String,
    /// A symbolic link to it, whose name has its suffix, for an execution without a sandbox.
    pub link: Option<PathBuf>,
    /// A path of its own in a sandbox.
    pub at: Option<PathBuf>,
    /// The name by which its variables of the environment end, unless another input has the same.
    pub variable: Option<String>,
    /// Its contents, if they are one short line.
    pub text: Option<Arc<str>>,
}

impl InputFile {
    /// The path by which a sandbox shows it, which has a directory of inputs.
    pub(super) fn inside(&self, inputs: &Path) -> PathBuf {
        self.at.clone().unwrap_or_else(|| inputs.join(&self.name))
    }

    /// The path by which an execution without a sandbox finds it.
    pub(super) fn outside(&self) -> &Path {
        self.link.as_ref().unwrap_or(&self.file.path)
    }
}

/// A file or directory that an execution makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// The path at which an execution without a sandbox makes it.
    pub path: PathBuf,
    /// Its name in the outbox, where a sandbox lets it be made: its number, and its suffix if it has one.
    pub name: String,
    /// A path of its own in a sandbox.
    pub at: Option<PathBuf>,
    /// The name by which its variable of the environment ends, unless another output has the same.
    pub variable: Option<String>,
}

impl OutputFile {
    /// The path at which it is made in a sandbox, which has a directory of outputs.
    pub(super) fn inside(&self, outputs: &Path) -> PathBuf {
        self.at.clone().unwrap_or_else(|| outputs.join(&self.name))
    }
}

/// The variable that names the directory of a call which stays as long as that is suspended.
pub const DIRECTORY: &str = "CE_DIRECTORY";

/// The variable that names the graphics processors of a process.
pub(super) const VISIBLE_GPUS: &str = "CUDA_VISIBLE_DEVICES";

impl Invocation {
    /// Returns the name of the executed program, in words.
    pub(super) fn program_words(&self) -> String {
        match &self.inspection {
            Some(_) => self.executable().display().to_string(),
            None => format!("its {}", self.program.file()),
        }
    }

    /// The variables of the environment that it must have, and those without a value that it must not have. In a sandbox, its inputs and
    /// outputs are in the given directories.
    pub(super) fn variables(
        &self,
        sandbox: Option<[&Path; 2]>,
    ) -> Vec<(OsString, Option<OsString>)> {
        let directory = self.directory.as_ref().map(|it| it.path.clone().into());
        let mut variables = vec![(DIRECTORY.into(), directory)];
        if !self.visible_gpus.is_empty() {
            variables.push((VISIBLE_GPUS.into(), Some(self.visible_gpus.join(",").into())));
        }
        let requested = self.requested.iter();
        variables
            .extend(requested.map(|(name, value)| ((*name).into(), value.clone().map(Into::into))));
        variables.extend(self.named_files(sandbox).map(|(name, value)| (name, Some(value))));
        variables
    }

    /// The paths and texts of its inputs and the paths of its outputs, by their names, and what `access` sets.
    fn named_files(
        &self,
        sandbox: Option<[&Path; 2]>,
    ) -> impl Iterator<Item = (OsString, OsString)> {
        let named = |begin: &str, end: &Option<String>, value: &OsStr| {
            Some((format!("{begin}_{}", end.as_ref()?).into(), value.to_owned()))
        };
        let place = move |input: &InputFile| match sandbox {
            Some([inputs, _]) => input.inside(inputs),
            None => input.outside().to_owned(),
        };
        let set = self.access.variables(|label| self.inputs.get(label.number).map(place));
        let set = set.into_iter().map(|(name, value)| (name.into(), value));
        let inputs = self.inputs.iter().flat_map(move |input| {
            let path = place(input);
            let text = input.text.as_ref();
            let text = text.and_then(|text| named("text", &input.variable, OsStr::new(&**text)));
            named("in", &input.variable, path.as_os_str()).into_iter().chain(text)
        });
        let outputs = self.outputs.iter().filter_map(move |output| {
            let path = match sandbox {
                Some([_, outputs]) => output.inside(outputs),
                None => output.path.clone(),
            };
            named("out", &output.variable, path.as_os_str())
        });
        inputs.chain(outputs).chain(set.collect::<Vec<_>>())
    }

    /// The file that is executed.
    pub(super) fn executable(&self) -> PathBuf {
        match self.inspection.as_ref().and_then(|it| it.command.first()) {
            Some(command) => command.into(),
            None => self.tree.path.join(self.program.file()),
        }
    }

    /// The path of the log.
    pub fn log(&self) -> PathBuf {
        self.stage.path.join(&self.log)
    }
}

/// An absolute path without symbolic links, and the file or directory that it leads to.
///
/// Any directory on the way may be replaced meanwhile, by a link or another directory. The user of
/// the path must check that the inode is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedPath {
    pub path: PathBuf,
    /// The device and inode of the file or directory.
    pub id: (u64, u64),
}

impl VerifiedPath {
    /// Verifies the file or directory at this path, which has no symbolic link.
    pub fn verify(path: PathBuf) -> io::Result<Self> {
        let stat = lstat(&path)?;
        Ok(Self { path, id: (stat.st_dev, stat.st_ino) })
    }

    /// Opens the file or directory: see [`open_verified`].
    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        open_verified(&self.path, self.id)
    }

    /// Checks that the path still leads to the same file or directory.
    ///
    /// # Errors
    ///
    /// Fails with `ESTALE` if it does not.
    pub(super) fn check(&self) -> io::Result<()> {
        compare(&lstat(&self.path)?, self.id)
    }
}

/// Opens a file or directory that was verified, wherever this process finds it. No rights are needed:
/// the descriptor is a place, and cannot be read.
///
/// # Errors
///
/// Fails with `ESTALE` if the path leads to another device and inode now.
pub(super) fn open_verified(path: &Path, id: (u64, u64)) -> io::Result<OwnedFd> {
    let place = open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    compare(&fstat(&place)?, id)?;
    Ok(place)
}

fn compare(found: &Stat, id: (u64, u64)) -> io::Result<()> {
    if (found.st_dev, found.st_ino) == id { Ok(()) } else { Err(Errno::STALE.into()) }
}

/// Whether an error says that a path leads elsewhere, or nowhere.
pub(super) fn is_replaced(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, StaleNetworkFileHandle};
    let is_link = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    is_link || matches!(error.kind(), NotADirectory | NotFound | StaleNetworkFileHandle)
}

/// The number of bytes at the end of a log that are searched for the reason of a failed execution.
pub const TAIL: u64 = 4000;

/// The number of bytes at the beginning of a script that are read: as many as the kernel reads of the line that names the
/// interpreter.
pub const HEAD: u64 = 256;

/// Opens the log of an execution. It is empty, or made if it does not exist.
///
/// Another execution without isolation may have put a link or a FIFO in its place: neither is used.
pub(super) fn open_log(stage: &OwnedFd, name: impl Arg) -> io::Result<File> {
    // To cut it would be a change of the file system, even where it is empty.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let log =
        openat(stage, name, flags | OFlags::CLOEXEC, Mode::from_raw_mode(umask::for_user(0o666)))?;
    match FileType::from_raw_mode(fstat(&log)?.st_mode) {
        FileType::RegularFile => Ok(log.into()),
        _ => Err(io::Error::other("it is not a plain file")),
    }
}

/// Returns the end of a plain file, at most this number of bytes.
///
/// # Errors
///
/// Fails if it cannot be read, or is something else, such as a link.
pub fn tail(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let (mut file, size) = open_plain(path, OFlags::NOFOLLOW)?;
    file.seek(SeekFrom::Start(size.saturating_sub(bytes)))?;
    read(file, bytes)
}

/// Returns the beginning of a plain file, or of the target of a link, at most this number of bytes.
///
/// # Errors
///
/// Fails if it cannot be read, or is something else.
pub fn head(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    read(open_plain(path, OFlags::empty())?.0, bytes)
}

/// Opens a plain file for reading; returns its size, too. A FIFO, for example, is refused.
fn open_plain(path: &Path, flags: OFlags) -> io::Result<(File, u64)> {
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open_leased(|| false, || open(path, flags, Mode::empty()))?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    Ok((file, metadata.len()))
}

fn read(file: File, bytes: u64) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    file.take(bytes).read_to_end(&mut read)?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_to_a_copy_is_not_the_directory_that_was_verified() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("room")).unwrap();
        fs::write(at("room/file"), "a").unwrap();
        let file = VerifiedPath::verify(at("room/file")).unwrap();
        file.check().unwrap();
        drop(file.open().unwrap());

        fs::rename(at("room"), at("away")).unwrap();
        assert_eq!(file.check().unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::create_dir(at("copy")).unwrap();
        fs::write(at("copy/file"), "a").unwrap();
        symlink(at("copy"), at("room")).unwrap();
        let stale = Some(Errno::STALE.raw_os_error());
        assert_eq!(file.check().unwrap_err().raw_os_error(), stale);
        assert_eq!(file.open().unwrap_err().raw_os_error(), stale);

        fs::remove_file(at("room")).unwrap();
        symlink(at("away"), at("room")).unwrap();
        file.check().unwrap();
    }
}
