//! The namespaces that successive executions of a launcher share, one at a time: of mounts, and of IPC.
//!
//! The root, with programs, devices and `/proc`, stays as it is: it is read-only, and an execution has no privilege to mount. What an
//! execution was given, and its private memory, is replaced before the next one begins, while no process is there. The IPC namespace
//! is replaced if anything was ever made in it.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Stat, fstat};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::thread::UnshareFlags;

use super::mounts::{NEW, OLD, QUIET, SYSTEM, attach, below, detached, join, opened, restrict};
use super::process::{StepError, at, unshare};
use super::root::{MEMORY_POINTS, PreparedRoot, enter, mount_memory};
use super::spawner::Spawner;
use super::spec::{Bind, BindMode, INPUTS, SandboxSpec};
use super::user::SandboxUser;
use crate::invocation::open_verified;

/// The namespaces, as their launcher has them. Anything that cannot be done in them is done in namespaces of an execution's own.
#[derive(Debug)]
pub(super) struct SharedNamespaces {
    /// The mount namespace of the launcher.
    own: OwnedFd,
    mounts: OwnedFd,
    /// The mounts of the last execution.
    shown: Vec<Bind>,
    has_memory: bool,
    ipc: Option<IpcNamespace>,
    /// The process that starts executions there, as long as the IPC namespace is the one that it has.
    pub(super) spawner: Option<Spawner>,
}

/// A path that an execution is shown, and its mount, which is in no place yet, unless the last execution was shown the same.
type PreparedMount<'a> = (&'a Bind, Option<OwnedFd>);

impl SharedNamespaces {
    /// Makes them, if the kernel can do that. The launcher has entered the IPC namespace, in which the spawner was forked; `init` is the
    /// first process of the process namespace.
    pub(super) fn new(
        ipc: Option<IpcNamespace>,
        spawner: Option<Spawner>,
        init: &OwnedFd,
    ) -> Result<Option<Self>, StepError> {
        let path = below(OLD, Path::new("/proc/self/ns/mnt"));
        let open = || File::open(&path).map(OwnedFd::from);
        let Ok(own) = open() else { return Ok(None) };
        if unshare(UnshareFlags::NEWNS).is_err() {
            return Ok(None);
        }
        let mounts = open();
        let entered = enter(SYSTEM, "/");
        join(&own)?;
        let (Ok(mounts), Ok(())) = (mounts, entered) else { return Ok(None) };
        let spawner =
            spawner.and_then(|mut spawner| spawner.enter(init, &mounts).is_ok().then_some(spawner));
        Ok(Some(Self { own, mounts, shown: Vec::new(), has_memory: false, ipc, spawner }))
    }

    /// Prepares the mounts of an execution; `None` if it needs namespaces of its own.
    fn prepare<'a>(
        &self,
        spec: &'a SandboxSpec,
        user: SandboxUser<'_>,
    ) -> Option<Vec<PreparedMount<'a>>> {
        if !spec.is_plain() || spec.terminal.is_some() || matches!(user, SandboxUser::Root(_)) {
            return None;
        }
        let prepare = |bind: &'a Bind| {
            let directory = open_verified(&below(OLD, &bind.source), bind.id?).ok()?;
            let mount = if self.shown.contains(bind) && !bind.target.starts_with(INPUTS) {
                None
            } else {
                Some(
                    detached(&opened(&directory), bind.mode == BindMode::Write, user.owners())
                        .ok()?,
                )
            };
            Some((bind, mount))
        };
        spec.binds.iter().map(prepare).collect()
    }

    /// Moves the launcher there, and shows an execution the paths that it may see, in place of those of the last one. `false` if it
    /// needs namespaces of its own.
    pub(super) fn show(
        &mut self,
        root: &PreparedRoot,
        spec: &SandboxSpec,
        user: SandboxUser<'_>,
    ) -> Result<bool, StepError> {
        let Some(mounts) = self.prepare(spec, user) else {
            join(&self.mounts)?;
            self.clear(&[])?;
            return Ok(false);
        };
        if self.ipc.as_ref().is_some_and(|ipc| !ipc.is_untouched()) {
            self.spawner = None;
            self.ipc = IpcNamespace::new();
        }
        join(&self.mounts)?;
        self.clear(&mounts)?;
        root.match_inputs(spec)?;
        for (bind, mount) in mounts {
            let Some(mount) = mount else { continue };
            attach(&mount, &bind.target).map_err(at("bind", &bind.source))?;
            self.shown.push(bind.clone());
            let read_only = match bind.mode {
                BindMode::Read => MountFlags::RDONLY,
                BindMode::Write => MountFlags::empty(),
            };
            restrict(&bind.target, QUIET | read_only)?;
        }
        self.has_memory = true;
        mount_memory("/", user.owners())?;
        Ok(true)
    }

    /// Moves the launcher back.
    pub(super) fn leave(&self) -> Result<(), StepError> {
        join(&self.own)
    }

    /// Starts an execution by the spawner. `false` if there is none.
    pub(super) fn spawn(&mut self, spec: &SandboxSpec, log: &File) -> bool {
        // One that somebody has killed takes nothing.
        self.spawner =
            self.spawner.take().and_then(|mut it| it.start(spec, log).is_ok().then_some(it));
        self.spawner.is_some()
    }

    /// Whether executions share the IPC namespace.
    pub(super) const fn has_ipc(&self) -> bool {
        self.ipc.is_some()
    }

    /// Unmounts all but what stays.
    fn clear(&mut self, stays: &[PreparedMount<'_>]) -> Result<(), StepError> {
        let stays = |bind: &Bind| stays.iter().any(|(it, mount)| *it == bind && mount.is_none());
        let gone = self.shown.extract_if(.., |bind| !stays(bind)).map(|bind| bind.target);
        let memory = MEMORY_POINTS.iter().filter(|_| self.has_memory).map(Into::into);
        for target in gone.chain(memory) {
            unmount(&target, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
                .map_err(at("let go of", target))?;
        }
        self.has_memory = false;
        Ok(())
    }
}

/// The settings of the kernel for the number of the next object of a kind: -1, or one that was set, for one time.
const NEXT: [&str; 3] = ["msg_next_id", "sem_next_id", "shm_next_id"];

/// The number that the first object of a namespace has.
const FIRST: &[u8] = b"0\n";

/// An IPC namespace of this process that shows whether anything was ever made in it: even what was removed changes the numbers
/// of what is made next.
#[derive(Debug)]
pub(super) struct IpcNamespace {
    next: [File; 3],
    /// The directory of message queues that have names.
    queues: OwnedFd,
    /// The directory when it was empty.
    empty: Stat,
}

impl IpcNamespace {
    /// Makes a new one; `None` if the kernel cannot do that, or would not show what is made.
    pub(super) fn new() -> Option<Self> {
        unshare(UnshareFlags::NEWIPC).ok()?;
        let open = |name| {
            let path = below(OLD, &Path::new("/proc/sys/kernel").join(name));
            let next = File::options().read(true).write(true).open(path).ok()?;
            next.write_all_at(FIRST, 0).ok()?;
            Some(next)
        };
        let [messages, semaphores, memory] = NEXT.map(open);
        let flags = QUIET | MountFlags::NOEXEC;
        mount("mqueue", NEW, "mqueue", flags, None).ok()?;
        let queues = File::open(NEW).map(OwnedFd::from);
        unmount(NEW, UnmountFlags::DETACH).ok()?;
        let queues = queues.ok()?;
        let empty = fstat(&queues).ok()?;
        let made = Self { next: [messages?, semaphores?, memory?], queues, empty };
        made.is_untouched().then_some(made)
    }

    fn is_untouched(&self) -> bool {
        let is_first = |next: &File| {
            let mut text = [0; 8];
            next.read_at(&mut text, 0).is_ok_and(|size| text.get(..size) == Some(FIRST))
        };
        let is_empty = |queues: &Stat| {
            let all = [queues, &self.empty].map(|it| {
                (it.st_size, it.st_mtime, it.st_mtime_nsec, it.st_ctime, it.st_ctime_nsec)
            });
            all[0] == all[1]
        };
        self.next.iter().all(is_first) && fstat(&self.queues).is_ok_and(|it| is_empty(&it))
    }
}
