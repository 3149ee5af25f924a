//! Tickets: serialised invocations, with everything that a process on another host needs to execute
//! them.
//!
//! Paths are names relative to the storage, which may be mounted elsewhere there, and inodes are
//! left out. So the reader of a ticket verifies everything again: a ticket is a claim, not a proof.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags, fstat, lstat, open};
use serde::{Deserialize, Serialize};

use super::ended::ExecuteError;
use super::invocation::{InputFile, Invocation};
use super::verified::VerifiedPath;
use crate::digest::{Digest, Hasher, ObjectId};
use crate::manifest::Scan;
use crate::task::access::Access;

/// The format of tickets that this program writes and reads.
const FORMAT: u32 = 1;

/// The number of bytes that are hashed at once.
const PIECE: usize = 64 << 10;

/// An invocation as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    format: u32,
    call: String,
    tree: String,
    tree_id: ObjectId,
    inputs: Vec<TicketInput>,
    outputs: Vec<String>,
    work: String,
    outbox: String,
    stage: String,
    log: String,
    access: Access,
    isolate: bool,
    limit: Option<Duration>,
    #[serde(default)]
    gpus: u32,
    #[serde(default)]
    exclusive: bool,
}

/// A value that an execution reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TicketInput {
    name: String,
    digest: Digest,
}

impl Ticket {
    /// Writes an invocation down.
    ///
    /// # Errors
    ///
    /// Returns a path that is not below the storage, or that is not UTF-8.
    pub fn of(invocation: &Invocation) -> Result<Self, PathBuf> {
        let name = |path: &Path| {
            let name = path.strip_prefix(&invocation.storage).ok().and_then(Path::to_str);
            name.map(str::to_owned).ok_or_else(|| path.to_owned())
        };
        let input = |input: &InputFile| {
            Ok(TicketInput { name: name(&input.file.path)?, digest: input.digest })
        };
        Ok(Self {
            format: FORMAT,
            call: invocation.call.clone(),
            tree: name(&invocation.tree.path)?,
            tree_id: invocation.tree_id.clone(),
            inputs: invocation.inputs.iter().map(input).collect::<Result<_, PathBuf>>()?,
            outputs: invocation.outputs.iter().map(|path| name(path)).collect::<Result<_, _>>()?,
            work: name(&invocation.work.path)?,
            outbox: name(&invocation.outbox.path)?,
            stage: name(&invocation.stage.path)?,
            log: invocation.log.clone(),
            access: invocation.access.clone(),
            isolate: invocation.isolate,
            limit: invocation.limit,
            gpus: invocation.gpus,
            exclusive: invocation.exclusive,
        })
    }

    /// Verifies everything that a ticket names in this storage, and returns the invocation.
    /// `is_tree` returns whether a directory has exactly the files of a Git tree.
    ///
    /// # Errors
    ///
    /// Refuses a ticket of another format, or with names that lead out of the storage. Fails if a
    /// file does not exist, is behind a symbolic link, or differs from the ticket.
    pub fn verify(
        &self,
        storage: &Path,
        is_tree: impl Fn(&Path, &ObjectId) -> bool,
    ) -> Result<Invocation, ExecuteError> {
        if self.format != FORMAT {
            return Err(ExecuteError::Refused(format!("its ticket has format {}", self.format)));
        }
        let storage = storage.canonicalize().map_err(|_| missing(storage))?;
        let directory = |name: &str| verify(&storage, name, FileType::Directory);
        let tree = directory(&self.tree)?;
        if !is_tree(&tree.path, &self.tree_id) {
            return Err(ExecuteError::Replaced(tree.path));
        }
        let input = |input: &TicketInput| {
            let is_dir = input.digest.is_directory();
            let kind = if is_dir { FileType::Directory } else { FileType::RegularFile };
            let file = verify(&storage, &input.name, kind)?;
            let found = if is_dir { directory_digest(&file) } else { digest(&file) };
            match found {
                Ok(digest) if digest == input.digest => Ok(InputFile { file, digest }),
                _ => Err(ExecuteError::Replaced(file.path)),
            }
        };
        plain(&self.log)?;
        Ok(Invocation {
            call: self.call.clone(),
            tree,
            tree_id: self.tree_id.clone(),
            inputs: self.inputs.iter().map(input).collect::<Result<_, _>>()?,
            outputs: self
                .outputs
                .iter()
                .map(|name| Ok(storage.join(plain(name)?)))
                .collect::<Result<_, ExecuteError>>()?,
            work: directory(&self.work)?,
            outbox: directory(&self.outbox)?,
            stage: directory(&self.stage)?,
            log: self.log.clone(),
            access: self.access.clone(),
            isolate: self.isolate,
            limit: self.limit,
            gpus: self.gpus,
            visible_gpus: Vec::new(),
            exclusive: self.exclusive,
            storage,
        })
    }
}

fn missing(path: &Path) -> ExecuteError {
    ExecuteError::Refused(format!("{} cannot be reached", path.display()))
}

/// Returns a name that leads to something below the directory that it is relative to.
fn plain(name: &str) -> Result<&Path, ExecuteError> {
    let path = Path::new(name);
    let leads_below = path.components().all(|part| matches!(part, Component::Normal(_)));
    if leads_below && !name.is_empty() {
        return Ok(path);
    }
    Err(ExecuteError::Refused(format!("its ticket names {name:?}, which is not in the storage")))
}

/// Finds the file of a name, through directories only.
fn verify(storage: &Path, name: &str, kind: FileType) -> Result<VerifiedPath, ExecuteError> {
    let mut path = storage.to_owned();
    let mut parts = plain(name)?.components().peekable();
    while let Some(part) = parts.next() {
        path.push(part);
        let wanted = if parts.peek().is_some() { FileType::Directory } else { kind };
        let stat = lstat(&path).map_err(|_| missing(&path))?;
        if FileType::from_raw_mode(stat.st_mode) != wanted {
            return Err(ExecuteError::Replaced(path));
        }
    }
    VerifiedPath::of(path.clone()).map_err(|_| missing(&path))
}

/// Hashes a directory that was just found.
fn directory_digest(directory: &VerifiedPath) -> io::Result<Digest> {
    let opened = directory.open()?;
    let never = AtomicBool::new(false);
    let read = Scan::of(opened, &never).and_then(|scan| scan.read(&never, &AtomicU64::new(0)));
    Ok(read.map_err(io::Error::other)?.digest())
}

/// Hashes a file that was just found.
fn digest(file: &VerifiedPath) -> io::Result<Digest> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = open(&file.path, flags, Mode::empty())?;
    file.compare(&fstat(&opened)?)?;
    let (mut opened, mut hasher) = (File::from(opened), Hasher::default());
    let mut piece = vec![0; PIECE];
    loop {
        match opened.read(&mut piece) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(count) => hasher.update(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::task::access::Rule;

    fn invocation(storage: &Path) -> Invocation {
        for name in ["tree", "tmp/1/work", "tmp/1/out"] {
            fs::create_dir_all(storage.join(name)).unwrap();
        }
        fs::write(storage.join("input"), "text").unwrap();
        let at = |name: &str| VerifiedPath::of(storage.join(name)).unwrap();
        Invocation {
            call: "c_one/0123/x".to_owned(),
            storage: storage.to_owned(),
            tree: at("tree"),
            tree_id: "4b825dc642cb6eb9a060e54bf8d69288fbee4904".parse().unwrap(),
            inputs: vec![InputFile { file: at("input"), digest: Digest::of(b"text") }],
            outputs: vec![storage.join("tmp/1/7.00")],
            work: at("tmp/1/work"),
            outbox: at("tmp/1/out"),
            stage: at("tmp/1"),
            log: "log".to_owned(),
            access: Access { rules: vec![Rule::Network] },
            isolate: true,
            limit: Some(Duration::from_millis(1500)),
            gpus: 1,
            visible_gpus: Vec::new(),
            exclusive: true,
        }
    }

    #[test]
    fn a_ticket_is_verified_anew_where_the_storage_is_mounted_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let [here, there] = ["here", "there"].map(|name| dir.path().join(name));
        let written = invocation(&here);
        let ticket = Ticket::of(&written).unwrap();
        let text = serde_json::to_string(&ticket).unwrap();
        fs::rename(&here, &there).unwrap();
        let read: Ticket = serde_json::from_str(&text).unwrap();
        let there = there.canonicalize().unwrap();
        let found = read.verify(&there, |_, _| true).unwrap();
        assert_eq!(Ticket::of(&found).unwrap(), ticket);
        assert_eq!(found.inputs[0].file.path, there.join("input"));
        assert_eq!(found.outputs, [there.join("tmp/1/7.00")]);
        assert!(Ticket::of(&Invocation { storage: here, ..found }).is_err(), "not below it");
    }

    #[test]
    fn a_ticket_that_lies_is_not_executed() {
        let dir = tempfile::tempdir().unwrap();
        let storage = dir.path().canonicalize().unwrap();
        let ticket = Ticket::of(&invocation(&storage)).unwrap();
        let verify = |ticket: &Ticket| ticket.verify(&storage, |_, _| true);
        let refused = |changed: Ticket| matches!(verify(&changed), Err(ExecuteError::Refused(_)));
        assert!(refused(Ticket { format: 2, ..ticket.clone() }));
        assert!(refused(Ticket { tree: "../tree".to_owned(), ..ticket.clone() }));
        assert!(refused(Ticket { stage: "/tmp".to_owned(), ..ticket.clone() }));
        assert!(refused(Ticket { log: "../log".to_owned(), ..ticket.clone() }));
        assert!(refused(Ticket { outputs: vec![String::new()], ..ticket.clone() }));
        assert!(refused(Ticket { work: "gone".to_owned(), ..ticket.clone() }));
        let replaced = |ended| matches!(ended, Err(ExecuteError::Replaced(_)));
        assert!(replaced(ticket.verify(&storage, |_, _| false)), "another tree");
        fs::write(storage.join("input"), "tent").unwrap();
        assert!(replaced(verify(&ticket)), "other contents");
        fs::write(storage.join("other"), "text").unwrap();
        fs::remove_file(storage.join("input")).unwrap();
        symlink("other", storage.join("input")).unwrap();
        assert!(replaced(verify(&ticket)), "a link");
    }
}
