//! The root file system of executions: the host's programs and libraries, read-only, and mounts.
//!
//! A launcher has its own file system in memory: `/old` is the host's, `/system` is the common part
//! of the root of executions, and `/new` is for other mounts. An execution with further
//! grants builds its own root, since its mount points must not be visible to others.
//!
//! A root that is an input takes the place of the host's programs. The mount points of the sandbox take precedence over its
//! entries of the same name. No link of it is followed here: in the launcher, it might lead out of the root.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ce_files::walk::{GrantError, open_below, open_device};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, mkdirat, mknodat, openat, readlinkat, stat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, unmount,
};
use rustix::process::{chdir, geteuid, pivot_root, umask};

use super::launcher_processes::{OLD, StepError, at, below};
use super::mounts::{
    MOUNTINFO, Mount, NEW, QUIET, SYSTEM, Shown, VERIFY, directory, make_private, memory,
    mounts_below, open_place, open_source, opened, read_mounts, restrict, show,
};
use super::spec::{BindMode, COMPUTATION, HOME, INPUTS, InputPoint, OUTPUTS, SandboxSpec, TMP};
use super::system_files::RequiredLine;
use super::user::{MEMORY, Nobody, SandboxUser};
use crate::invocation::open_verified;

/// Memory that processes of an execution share.
const SHM: &str = "/dev/shm";

/// Pseudoterminals of an execution. Nobody else can open them.
const PTS: &str = "/dev/pts";

/// The directories that every execution has, beside parts of the system.
const OWN: [&str; 5] = [COMPUTATION, INPUTS, OUTPUTS, TMP, HOME];

/// The permissions that others do not have on the mount points of an execution.
pub(super) const MASK: Mode = Mode::WGRP.union(Mode::WOTH);

/// The root that is ready, in the launcher's own mount namespace.
#[derive(Debug)]
pub(super) struct PreparedRoot {
    parts: Vec<SystemPart>,
    /// The directory of the mount points of inputs, and the existing ones.
    points: OwnedFd,
    inputs: RefCell<Vec<InputPoint>>,
    /// The user that executions run as outside, if it differs.
    pub(super) nobody: Option<Nobody>,
}

impl PreparedRoot {
    /// Makes the mount points that each execution has, beside parts of the system.
    pub(super) fn new(parts: Vec<SystemPart>, nobody: Option<Nobody>) -> Result<Self, StepError> {
        make_mount_points(SYSTEM, parts.iter())?;
        let points = File::open(below(SYSTEM, Path::new(INPUTS))).map_err(at("open", INPUTS))?;
        Ok(Self { parts, points: points.into(), inputs: RefCell::default(), nobody })
    }

    /// Makes mount points for the inputs that an execution has, and no more.
    pub(super) fn match_inputs(&self, spec: &SandboxSpec) -> Result<(), StepError> {
        let mask = umask(MASK);
        let matched = self.match_points(&spec.inputs);
        umask(mask);
        matched
    }

    fn match_points(&self, wanted: &[InputPoint]) -> Result<(), StepError> {
        let mut inputs = self.inputs.borrow_mut();
        while !wanted.starts_with(&inputs)
            && let Some(point) = inputs.pop()
        {
            let kind = if point.is_dir { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            unlinkat(&self.points, &point.name, kind).map_err(at("remove", point.path()))?;
        }
        for point in &wanted[inputs.len()..] {
            let made = if point.is_dir {
                mkdirat(&self.points, &point.name, Mode::from_raw_mode(0o777))
            } else {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                openat(&self.points, &point.name, flags, Mode::from_raw_mode(0o666)).map(drop)
            };
            made.map_err(at("make", point.path()))?;
            inputs.push(point.clone());
        }
        Ok(())
    }

    /// Completes the root, or builds another, and returns it. This process has a mount namespace of
    /// its own.
    pub(super) fn complete(
        &self,
        spec: &SandboxSpec,
        identity: SandboxUser<'_>,
    ) -> Result<&'static str, StepError> {
        let owners = identity.owners();
        let root = if spec.is_plain() {
            SYSTEM
        } else {
            memory(NEW, c"mode=0755")?;
            let has_root = spec.root.is_some();
            let parts = || self.parts.iter().filter(|part| !has_root || !part.is_program());
            make_mount_points(NEW, parts())?;
            // Nothing is looked up in the processes of an execution: their files lead anywhere.
            for name in mounted(parts()).filter(|name| *name != Path::new(PROC)) {
                let (source, target) = (below(SYSTEM, name), below(NEW, name));
                mount_bind_recursive(source, &target).map_err(at("bind", target))?;
            }
            if has_root {
                let own = OWN.into_iter().map(Path::new).chain(parts().map(SystemPart::name));
                show_image(spec, own, owners)?;
            }
            NEW
        };
        mount_memory(root, owners)?;
        if matches!(identity, SandboxUser::Root(_)) && spec.root.is_none() {
            hide_secrets(&below(root, Path::new("/etc")))?;
        }
        for bind in &spec.binds {
            let source = open_source(bind)?;
            let flags = match bind.mode {
                BindMode::Read => QUIET | MountFlags::RDONLY,
                BindMode::Write | BindMode::Own => QUIET,
            };
            let recursive = bind.id.is_none();
            let owners = identity.prepare(bind, &source)?;
            show(root, Shown { source: &source, target: &bind.target, recursive, flags, owners })?;
        }
        if root == NEW {
            let (source, target) = (below(SYSTEM, Path::new(PROC)), below(NEW, Path::new(PROC)));
            mount_bind_recursive(source, &target).map_err(at("bind", target))?;
        }
        Ok(root)
    }
}

/// The mount points at which an execution has memory, and pseudoterminals, of its own.
pub(super) const MEMORY_POINTS: [&str; 3] = [SHM, HOME, PTS];

/// Mounts empty memory at these, and new pseudoterminals, if the kernel has any.
pub(super) fn mount_memory(root: &str, owners: Option<&OwnedFd>) -> Result<(), StepError> {
    let home = if owners.is_some() { MEMORY } else { c"mode=0700" };
    memory(below(root, Path::new(SHM)), c"mode=1777")?;
    memory(below(root, Path::new(HOME)), home)?;
    let terminals = below(root, Path::new(PTS));
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("devpts", &terminals, "devpts", flags, c"newinstance,ptmxmode=0666,mode=0620")
        .or_else(|_| memory(&terminals, c"mode=0555"))
}

/// Makes the links of a root, and the directories where something is mounted.
fn make_mount_points<'a>(
    root: &str,
    parts: impl Iterator<Item = &'a SystemPart> + Clone,
) -> Result<(), StepError> {
    for name in OWN.into_iter().map(Path::new).chain(mounted(parts.clone())) {
        directory(root, name)?;
    }
    for part in parts {
        if let SystemPart::Link { name, to } = part {
            directory(root, name.parent().unwrap_or(name))?;
            let link = below(root, name);
            symlink(to, &link).map_err(at("link", link))?;
        }
    }
    Ok(())
}

fn mounted<'a>(parts: impl Iterator<Item = &'a SystemPart>) -> impl Iterator<Item = &'a Path> {
    parts.filter_map(|part| match part {
        SystemPart::Mounted(name) => Some(name.as_path()),
        SystemPart::Link { .. } => None,
    })
}

/// Makes a path the root, read-only, lets go of everything else, and goes to a directory.
pub(super) fn enter(root: &str, directory: &str) -> Result<(), StepError> {
    restrict(Path::new(root), MountFlags::RDONLY | QUIET)?;
    chdir(root).map_err(at("enter", root))?;
    pivot_root(".", ".").map_err(at("take as root", root))?;
    unmount(".", UnmountFlags::DETACH).map_err(at("let go of", OLD))?;
    chdir(directory).map_err(at("enter", directory))
}

/// Looks around in the root that was entered: nothing leads out of it. Fails if something does, which would be a mistake of the launcher.
pub(super) fn look_around(spec: &SandboxSpec) -> Result<(), StepError> {
    let leak =
        |path: &Path| at("trust the sandbox: it has something of the host at", path)(Errno::PERM);
    let above = stat("/..").map_err(at("look at", "/.."))?;
    let top = stat("/").map_err(at("look at", "/"))?;
    if (above.st_dev, above.st_ino) != (top.st_dev, top.st_ino) {
        return Err(leak(Path::new("/..")));
    }
    let mounts = read_mounts(Path::new(MOUNTINFO))?;
    if mounts.iter().filter(|it| it.name == Path::new("/")).count() != 1 {
        return Err(leak(Path::new("/")));
    }
    let own = OWN.into_iter().chain(["/dev", "/proc"]).chain(PROGRAMS).chain(HARDWARE);
    let own: Vec<&Path> = own.map(Path::new).collect();
    let targets = || spec.binds.iter().map(|bind| bind.target.as_path());
    let is_known = |it: &Mount| {
        // With a root of its own, each entry of that is mounted.
        spec.root.is_some()
            || it.name == Path::new("/")
            || own.iter().copied().chain(targets()).any(|known| it.name.starts_with(known))
    };
    let is_closed = |it: &Mount| {
        let writable = [OUTPUTS, TMP, HOME, SHM, PTS].map(Path::new);
        let written = spec.binds.iter().filter(|bind| bind.mode != BindMode::Read);
        let written = written.map(|bind| bind.target.as_path());
        it.is_read_only
            || writable.into_iter().chain(written).any(|known| it.name.starts_with(known))
    };
    match mounts.iter().find(|it| !is_known(it) || !is_closed(it)) {
        Some(unknown) => Err(leak(&unknown.name)),
        None => Ok(()),
    }
}

/// The mount points of a sandbox.
struct MountPoints<'a> {
    /// The mount points that every execution has.
    own: Vec<&'a Path>,
    /// The mount points of its inputs, and of paths that `access` grants.
    bound: Vec<&'a Path>,
}

impl MountPoints<'_> {
    /// Whether an entry of this name is not to be shown.
    fn cover(&self, name: &Path) -> bool {
        self.own.contains(&name) || self.bound.contains(&name)
    }

    /// Whether one of the names is below this one.
    fn are_below(&self, name: &Path) -> bool {
        self.own.iter().chain(&self.bound).any(|point| point.starts_with(name))
    }
}

/// Shows the entries of the root that an execution has, read-only. `own` are the mount points that every
/// execution has.
///
/// A directory that has a mount point below it is made in memory, and its entries are shown in it.
fn show_image<'a>(
    spec: &'a SandboxSpec,
    own: impl Iterator<Item = &'a Path>,
    owners: Option<&OwnedFd>,
) -> Result<(), StepError> {
    let Some((root, id)) = spec.root().and_then(|root| Some((root, root.id?))) else {
        return Err(at("find", "the root")(Errno::NOENT));
    };
    let top = open_verified(&below(OLD, &root.source), id).map_err(at(VERIFY, &root.source))?;
    let completed = completed_image_files(&top);
    let own: Vec<&'a Path> = own.collect();
    let covered = completed.iter().map(|(name, _)| name.as_path());
    let points = MountPoints {
        own: covered.chain(own.iter().copied()).collect(),
        bound: spec.binds.iter().map(|bind| bind.target.as_path()).collect(),
    };
    let mut left = vec![(top, PathBuf::from("/"))];
    while let Some((place, name)) = left.pop() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let entries = openat(&place, ".", flags, Mode::empty()).and_then(Dir::new);
        for entry in entries.map_err(at("list", &name))? {
            let entry = entry.map_err(at("list", &name))?;
            let word = OsStr::from_bytes(entry.file_name().to_bytes());
            let name = name.join(word);
            if word == "." || word == ".." || points.cover(&name) {
                continue;
            }
            if let Some(deeper) = show_entry(&place, &name, &points, owners)? {
                left.push((deeper, name));
            }
        }
    }
    let is_granted = |name: &Path| points.bound.iter().any(|point| name.starts_with(point));
    for (name, contents) in completed.iter().filter(|(name, _)| !is_granted(name)) {
        fs::write(below(NEW, name), contents).map_err(at("write", name))?;
    }
    Ok(())
}

/// Shows an entry of a directory. Returns the directory if its entries are to be shown instead.
fn show_entry(
    place: &OwnedFd,
    name: &Path,
    points: &MountPoints<'_>,
    owners: Option<&OwnedFd>,
) -> Result<Option<OwnedFd>, StepError> {
    let word = name.file_name().unwrap_or_default();
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let entry = openat(place, word, flags, Mode::empty()).map_err(at("find", name))?;
    let stat = fstat(&entry).map_err(at("look at", name))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if points.are_below(name) {
        return match kind {
            FileType::Directory => directory(NEW, name).map(|_| Some(entry)),
            _ if points.bound.iter().any(|point| point.starts_with(name)) => {
                Err(at("show what access grants below a link or file of the root:", name)(
                    Errno::LOOP,
                ))
            }
            _ => Ok(None),
        };
    }
    if kind == FileType::Symlink {
        let to = readlinkat(&entry, "", Vec::new()).map_err(at("read the link", name))?;
        symlink(OsStr::from_bytes(to.to_bytes()), below(NEW, name)).map_err(at("link", name))?;
        return Ok(None);
    }
    let flags = QUIET | MountFlags::RDONLY;
    show(NEW, Shown { source: &entry, target: name, recursive: false, flags, owners })?;
    Ok(None)
}

/// The `/proc` of the namespace's init.
pub(super) const PROC: &str = "/proc";

/// The directories of programs, libraries and their configuration. A link on the host is a link in
/// the sandbox. A root that `access` names takes their place.
pub(super) const PROGRAMS: [&str; 11] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
];

/// Directories that describe processors and memory.
pub(super) const HARDWARE: [&str; 2] = ["/sys/devices/system/cpu", "/sys/devices/system/node"];

/// The devices that do no harm.
pub(crate) const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// Files of `/proc` with data on all processes of the host, or on keyrings.
pub(crate) const TELLING: [&str; 4] = ["keys", "key-users", "sched_debug", "timer_list"];

/// A part of the system, by its name.
#[derive(Debug)]
pub(super) enum SystemPart {
    /// A symbolic link.
    Link {
        name: PathBuf,
        /// Its target, relative to that.
        to: PathBuf,
    },
    /// A mount in the launcher's root for executions.
    Mounted(PathBuf),
}

impl SystemPart {
    /// Its path.
    pub(super) fn name(&self) -> &Path {
        match self {
            Self::Link { name, .. } | Self::Mounted(name) => name,
        }
    }

    /// Whether it is of the host's programs and libraries.
    fn is_program(&self) -> bool {
        PROGRAMS.iter().any(|name| self.name() == Path::new(name))
    }
}

/// Moves a launcher, which has a mount namespace, into a file system of its own.
///
/// If executions run as the user nobody, the kernel hides what only root may read.
pub(super) fn prepare_shared(
    devices: &[PathBuf],
    nobody: bool,
) -> Result<Vec<SystemPart>, StepError> {
    // Later mounts of the host, such as those on demand, are found. Executions see no change.
    let follow = MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM;
    mount_change("/", follow).map_err(at("make private the mounts below", "/"))?;
    memory("/tmp", c"mode=0755")?;
    for directory in ["/tmp/old", "/tmp/system", "/tmp/new"] {
        fs::create_dir(directory).map_err(at("make", directory))?;
    }
    pivot_root("/tmp", "/tmp/old").map_err(at("take as root", "/tmp"))?;
    chdir("/").map_err(at("enter", "/"))?;
    memory(SYSTEM, c"mode=0755")?;
    let name = Path::new("/var/tmp");
    let mut parts =
        vec![SystemPart::Link { name: name.into(), to: relative(name, Path::new(TMP)) }];
    for name in PROGRAMS.iter().chain(&HARDWARE).map(Path::new) {
        let host = below(OLD, name);
        let Ok(about) = host.symlink_metadata() else {
            continue;
        };
        parts.push(if about.is_symlink() {
            let to = host.read_link().map_err(at("read the link", name))?;
            SystemPart::Link { name: name.into(), to: relative(name, &to) }
        } else {
            bind_host(name, nobody)?;
            SystemPart::Mounted(name.into())
        });
    }
    complete_system_files()?;
    let dev = Path::new(SYSTEM).join("dev");
    make_devices(&dev, devices, nobody)?;
    make_private(Path::new(SYSTEM)).map_err(at("make private the mounts below", SYSTEM))?;
    for mounted in mounts_below(Path::new(SYSTEM))? {
        // Mounts from /dev keep their device nodes.
        let flags = if mounted.name.starts_with(&dev) { MountFlags::NOSUID } else { QUIET };
        restrict(&mounted.name, MountFlags::RDONLY | flags)?;
    }
    parts.extend(["/dev", PROC].map(|name| SystemPart::Mounted(name.into())));
    Ok(parts)
}

/// The target of a link, in a form that means the same below another root.
fn relative(name: &Path, to: &Path) -> PathBuf {
    let Ok(to) = to.strip_prefix("/") else {
        return to.to_owned();
    };
    // The root and the link itself do not count.
    let steps = name.components().count().saturating_sub(2);
    (0..steps).map(|_| Path::new("..")).chain([to]).collect()
}

/// Binds a part of the host's system.
fn bind_host(name: &Path, nobody: bool) -> Result<(), StepError> {
    let target = directory(SYSTEM, name)?;
    mount_bind_recursive(below(OLD, name), &target).map_err(at("bind", name))?;
    if name == Path::new("/etc") && geteuid().is_root() && !nobody {
        hide_secrets(&target)?;
    }
    Ok(())
}

/// Makes a /dev of the harmless devices, and of granted ones.
fn make_devices(dev: &Path, granted: &[PathBuf], nobody: bool) -> Result<(), StepError> {
    fs::create_dir(dev).map_err(at("make", dev))?;
    mount("tmpfs", dev, "tmpfs", MountFlags::NOSUID, c"mode=0755").map_err(at("mount", dev))?;
    let host = open_place(OLD)?;
    let usual = DEVICES.iter().map(|name| Path::new("/dev").join(name));
    for name in usual.chain(granted.iter().cloned()) {
        let found = open_device(host.as_fd(), &name).map_err(|error| match error {
            GrantError::Find { path, source } => at("find", path)(source),
            GrantError::Link { .. } | GrantError::Forbidden { .. } => {
                at("grant", &name)(io::Error::from(Errno::PERM))
            }
        })?;
        let source = opened(&found);
        let target = dev.join(name.strip_prefix("/dev").unwrap_or(&name));
        let parent = target.parent().unwrap_or(dev);
        fs::create_dir_all(parent).map_err(at("make", parent))?;
        if nobody && granted.contains(&name) && copy_devices(&source, &target).is_ok() {
            continue;
        }
        if source.is_dir() {
            fs::create_dir_all(&target).map_err(at("make", &target))?;
        } else {
            File::create(&target).map_err(at("make", &target))?;
        }
        mount_bind_recursive(&source, &target).map_err(at("bind", &name))?;
    }
    for (name, to) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        let link = dev.join(name);
        symlink(format!("/proc/self/fd{to}"), &link).map_err(at("link", link))?;
    }
    let terminals = dev.join("ptmx");
    symlink("pts/ptmx", &terminals).map_err(at("link", terminals))?;
    for directory in ["shm", "pts"].map(|name| dev.join(name)) {
        fs::create_dir(&directory).map_err(at("make", directory))?;
    }
    Ok(())
}

/// Covers files of the host's `/etc` that lack a line by copies that have it. A link is left alone.
fn complete_system_files() -> Result<(), StepError> {
    for required in RequiredLine::all() {
        let file = below(SYSTEM, Path::new("/etc")).join(required.file);
        if !file.symlink_metadata().is_ok_and(|about| about.is_file()) {
            continue;
        }
        let Ok(contents) = fs::read(&file) else { continue };
        if let Some(completed) = required.added_to(&contents) {
            let copy = Path::new("/").join(required.file);
            fs::write(&copy, completed).map_err(at("write", &copy))?;
            mount_bind(&copy, &file).map_err(at("bind", file))?;
        }
    }
    Ok(())
}

/// The files of `/etc` of an image that lack a line, with it, and their paths. An image that has no such directory needs none, and what is
/// behind a link there is left alone.
fn completed_image_files(image: &OwnedFd) -> Vec<(PathBuf, Vec<u8>)> {
    if open_below(image.as_fd(), Path::new("etc")).is_err() {
        return Vec::new();
    }
    let read = |path: &Path| {
        let place = match open_below(image.as_fd(), path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(Vec::new()),
            place => place.ok()?,
        };
        let is_file = fstat(&place).ok().map(|it| FileType::from_raw_mode(it.st_mode))?;
        (is_file == FileType::RegularFile).then(|| fs::read(opened(&place)).ok())?
    };
    let files = RequiredLine::all().into_iter().filter_map(|required| {
        let path = Path::new("etc").join(required.file);
        let completed = required.added_to(&read(&path)?)?;
        Some((Path::new("/").join(path), completed))
    });
    files.collect()
}

/// Copies a device of the host, or the devices of a directory, with root's rights for the user nobody. Links in it stay
/// links. A file system of its own is left out.
fn copy_devices(source: &Path, target: &Path) -> io::Result<()> {
    let granted = fs::metadata(source)?;
    let device = granted.dev();
    let mut left = vec![(source.to_owned(), target.to_owned(), granted)];
    while let Some((source, target, about)) = left.pop() {
        let kind = FileType::from_raw_mode(about.mode());
        match kind {
            _ if about.dev() != device => return Err(io::ErrorKind::CrossesDevices.into()),
            FileType::CharacterDevice | FileType::BlockDevice => {
                mknodat(CWD, &target, kind, Mode::empty(), about.rdev())?;
                fs::set_permissions(&target, Permissions::from_mode(0o666))?;
            }
            FileType::Directory => {
                fs::create_dir_all(&target)?;
                for entry in fs::read_dir(&source)? {
                    let entry = entry?;
                    left.push((entry.path(), target.join(entry.file_name()), entry.metadata()?));
                }
            }
            FileType::Symlink => symlink(fs::read_link(&source)?, &target)?,
            _ => {}
        }
    }
    Ok(())
}

/// Covers files that only root may read: an ordinary user would not see them, either.
fn hide_secrets(etc: &Path) -> Result<(), StepError> {
    let mut left = vec![etc.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).map_err(at("list", &directory))? {
            let entry = entry.map_err(at("list", &directory))?;
            let about = entry.metadata().map_err(at("look at", entry.path()))?;
            let (path, mode) = (entry.path(), about.permissions().mode());
            if about.is_dir() && mode & 0o5 != 0o5 {
                memory(&path, c"mode=0555")?;
                restrict(&path, MountFlags::RDONLY | QUIET)?;
            } else if about.is_dir() {
                left.push(path);
            } else if about.is_file() && mode & 0o4 == 0 {
                cover(&path)?;
            }
        }
    }
    Ok(())
}

/// Covers files of `/proc` with data on others, and files that only root may read.
pub(super) fn cover_proc() -> Result<(), StepError> {
    let (telling, mut secret) =
        (TELLING.map(|name| below(SYSTEM, Path::new(PROC)).join(name)), Vec::new());
    if geteuid().is_root() {
        let shown = below(SYSTEM, Path::new(PROC));
        for entry in fs::read_dir(shown).map_err(at("list", PROC))? {
            let path = entry.map_err(at("list", PROC))?.path();
            // A process may have ended meanwhile.
            let about = fs::symlink_metadata(&path).ok();
            let is_secret =
                about.is_some_and(|it| it.is_file() && it.permissions().mode() & 0o4 == 0);
            secret.extend((is_secret && !telling.contains(&path)).then_some(path));
        }
    }
    let there = telling.iter().filter(|path| path.exists());
    there.chain(&secret).try_for_each(|path| cover(path))
}

/// Covers a file with an empty one. Where it is bound without devices, it cannot be opened either.
fn cover(path: &Path) -> Result<(), StepError> {
    mount_bind("/old/dev/null", path).map_err(at("cover", path))?;
    restrict(path, MountFlags::RDONLY | QUIET)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_the_same_place_below_another_root() {
        for (name, to, leads) in [
            ("/bin", "usr/bin", "usr/bin"),
            ("/bin", "/usr/bin", "usr/bin"),
            ("/run/current-system", "/nix/s", "../nix/s"),
        ] {
            assert_eq!(relative(Path::new(name), Path::new(to)), Path::new(leads));
        }
    }
}
