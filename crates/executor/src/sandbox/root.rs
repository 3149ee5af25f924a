//! The root file system of an execution, which has only its mounts.
//!
//! The launcher prepares one with everything that all executions share. An execution with further
//! grants builds its own, since its mount points must not be visible to others.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags, mount_bind_recursive, unmount};
use rustix::process::{chdir, pivot_root};
use rustix::thread::CapabilitySet;

use super::mounts::{
    self, NEW, OLD, QUIET, SYSTEM, StepError, VERIFY, at, below, bind_read_only, directory,
    exchanged, memory, opened, restrict,
};
use super::nobody::{MEMORY, Nobody};
use super::spec::{self, Bind, COMPUTATION, HOME, INPUTS, Mode, OUTPUTS, SandboxSpec, TMP};
use super::system::{Part, hide_secrets};
use super::{image, privileges};
use crate::files::open_verified;

/// The directories that every execution has, beside parts of the system.
const OWN: [&str; 5] = [COMPUTATION, INPUTS, OUTPUTS, TMP, HOME];

/// The root that is ready, in the launcher's own mount namespace.
#[derive(Debug)]
pub(super) struct Ready {
    parts: Vec<Part>,
    /// The inputs with mount points: whether each is a directory.
    inputs: Vec<bool>,
    /// The user that executions are outside, if that is another one.
    pub(super) nobody: Option<Nobody>,
}

/// Who an execution is to the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) enum SandboxUser<'a> {
    /// The user of the launcher.
    Own,
    /// Nobody: what it is given is shown as nobody's.
    Nobody(&'a Nobody),
    /// Root, without any privilege: the file system of the storage cannot show anything as another user's.
    Root(&'a Nobody),
}

impl<'a> SandboxUser<'a> {
    /// Returns who is to be executed, and the directory of its log as that user has it.
    pub(super) fn find(root: &'a Ready, stage: OwnedFd) -> (Self, OwnedFd) {
        let Some(nobody) = &root.nobody else { return (Self::Own, stage) };
        match exchanged(&opened(&stage), &nobody.namespace) {
            Ok(stage) => (Self::Nobody(nobody), stage),
            Err(_) => (Self::Root(nobody), stage),
        }
    }

    /// The user namespace by which the owners of files that it was given are exchanged.
    const fn owners(self) -> Option<&'a OwnedFd> {
        match self {
            Self::Nobody(nobody) => Some(&nobody.namespace),
            Self::Own | Self::Root(_) => None,
        }
    }

    /// Makes this process that user, without any privilege.
    pub(super) fn assume(self) -> Result<(), StepError> {
        match self {
            Self::Own => Ok(()),
            Self::Nobody(nobody) => nobody.become_nobody(),
            Self::Root(nobody) => nobody.become_root(),
        }?;
        privileges::give_up(CapabilitySet::empty())
    }
}

impl Ready {
    /// Makes the mount points of what each execution has, beside parts of the system.
    pub(super) fn with(parts: Vec<Part>, nobody: Option<Nobody>) -> Result<Self, StepError> {
        furnish(SYSTEM, parts.iter())?;
        Ok(Self { parts, inputs: Vec::new(), nobody })
    }

    /// Makes mount points for the inputs that an execution has, and no more.
    pub(super) fn fit(&mut self, spec: &SandboxSpec) -> Result<(), StepError> {
        let input = |number| below(SYSTEM, &spec::name(INPUTS, number));
        while !spec.inputs.starts_with(&self.inputs)
            && let Some(is_dir) = self.inputs.pop()
        {
            let point = input(self.inputs.len());
            let removed = if is_dir { fs::remove_dir(&point) } else { fs::remove_file(&point) };
            removed.map_err(at("remove", point))?;
        }
        for &is_dir in &spec.inputs[self.inputs.len()..] {
            let point = input(self.inputs.len());
            let made = match is_dir {
                true => fs::create_dir(&point),
                false => File::create_new(&point).map(drop),
            };
            made.map_err(at("make", point))?;
            self.inputs.push(is_dir);
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
            furnish(NEW, parts())?;
            for name in mounted(parts()) {
                let (source, target) = (below(SYSTEM, name), below(NEW, name));
                mount_bind_recursive(source, &target).map_err(at("bind", target))?;
            }
            if has_root {
                let own = OWN.into_iter().map(Path::new).chain(parts().map(Part::name));
                image::show(spec, own, owners)?;
            }
            NEW
        };
        memory(below(root, Path::new("/dev/shm")), c"mode=1777")?;
        let home = if owners.is_some() { MEMORY } else { c"mode=0700" };
        memory(below(root, Path::new(HOME)), home)?;
        if matches!(identity, SandboxUser::Root(_)) && spec.root.is_none() {
            hide_secrets(&below(root, Path::new("/etc")))?;
        }
        spec.binds.iter().try_for_each(|it| bind(root, it, owners))?;
        Ok(root)
    }
}

/// Makes the links of a root, and the directories where something is mounted.
fn furnish<'a>(root: &str, parts: impl Iterator<Item = &'a Part> + Clone) -> Result<(), StepError> {
    for name in OWN.into_iter().map(Path::new).chain(mounted(parts.clone())) {
        directory(root, name)?;
    }
    for part in parts {
        if let Part::Link { name, to } = part {
            directory(root, name.parent().unwrap_or(name))?;
            let link = below(root, name);
            symlink(to, &link).map_err(at("link", link))?;
        }
    }
    Ok(())
}

fn mounted<'a>(parts: impl Iterator<Item = &'a Part>) -> impl Iterator<Item = &'a Path> {
    parts.filter_map(|part| match part {
        Part::Mounted(name) => Some(name.as_path()),
        Part::Link { .. } => None,
    })
}

/// Shows a path of the host.
fn bind(root: &str, bind: &Bind, owners: Option<&OwnedFd>) -> Result<(), StepError> {
    let (path, target) = (below(OLD, &bind.source), below(root, &bind.target));
    let verified = bind.id.map(|id| open_verified(&path, id)).transpose();
    let verified = verified.map_err(at(VERIFY, &bind.source))?;
    let source = verified.as_ref().map_or_else(|| path.clone(), opened);
    if fs::symlink_metadata(&target).is_err() {
        let about = source.metadata().map_err(at("find", &bind.source))?;
        if about.is_dir() {
            directory(root, &bind.target)?;
        } else {
            directory(root, bind.target.parent().unwrap_or(&bind.target))?;
            File::create_new(&target).map_err(at("make", &bind.target))?;
        }
    }
    match bind.mode {
        Mode::Read => bind_read_only(&source, &target, QUIET, owners),
        Mode::Write => {
            mounts::bind(&source, &target, true, owners).map_err(at("bind", &bind.source))?;
            restrict(&target, QUIET)
        }
    }
}

/// Makes a path the root, read-only, lets go of everything else, and goes to a directory.
pub(super) fn enter(root: &str, directory: &str) -> Result<(), StepError> {
    restrict(Path::new(root), MountFlags::RDONLY | QUIET)?;
    chdir(root).map_err(at("enter", root))?;
    pivot_root(".", ".").map_err(at("take as root", root))?;
    unmount(".", UnmountFlags::DETACH).map_err(at("let go of", OLD))?;
    chdir(directory).map_err(at("enter", directory))
}
