//! The user that executions run as, seen from outside, and the privileges that they give up. Root starts them as the
//! user nobody.
//!
//! So the kernel decides at each access which files of the system they may read. All executions of a launcher share a user
//! namespace that maps nobody to root, and root to nobody. Mounts with the same map show an execution what it was given:
//! root's files appear as nobody's, and files that nobody makes there are root's on the disk. Its own files and its outputs
//! are nobody's on the disk, until they are sealed.
//!
//! The launcher itself stays root outside of that namespace. It must never write the host's files in `/proc/sys`.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, chownat, openat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, LinkNameSpaceType, UnshareFlags,
    move_into_link_name_space, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use super::host_answer::is_refusal;
use super::launcher_processes::{
    KeptFiles, ProcessEnd, StepError, at, fork_process, hide, pipe, reap, unshare,
};
use super::mounts::exchanged;
use super::spec::Bind;

/// The number of the user nobody outside, and of root inside.
const NOBODY: u32 = 65534;

/// The numbers inside and outside, and how many follow: root and nobody are exchanged.
const EXCHANGED: &str = "0 65534 1\n1 1 65533\n65534 0 1\n65535 65535 4294901760\n";

/// The options of private memory of executions.
pub(super) const MEMORY: &CStr = c"mode=0700,uid=65534,gid=65534";

/// The message of the helper if the kernel refuses something.
const REFUSED: &[u8] = b"r";

/// The user namespace in which executions are root, and nobody outside.
#[derive(Debug)]
pub(super) struct Nobody {
    pub(super) namespace: OwnedFd,
}

impl Nobody {
    /// Makes the namespace, if this process is root and may do that: `None` otherwise. From now on this process has
    /// mounts of its own, and cannot take apart the host's.
    pub(super) fn make() -> Result<Option<Self>, ProcessEnd> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        let ((asked, asks), (told, tells)) = (pipe()?, pipe()?);
        let (asked, mut tells) = (File::from(asked), File::from(tells));
        let helper = fork_process(KeptFiles::AllBut(&[asks.as_fd(), told.as_fd()]), || {
            // Without an answer, the launcher ends: memory or processes that are used up do not decide who executions are.
            if leave(&asked, &mut tells).is_err_and(|error| is_refusal(&error)) {
                drop(tells.write_all(REFUSED));
            }
            0
        })?;
        drop((asked, tells));
        let made = enter_mounts(helper.as_raw_nonzero().get(), asks.into(), told.into());
        reap(helper)?;
        match made {
            Ok(nobody) => Ok(Some(nobody)),
            // A process that ends the helper does not decide how executions are isolated: the launcher ends, too.
            Err(error) if has_ended(&error) => Err(ProcessEnd::Over),
            Err(error) if is_refused(&error) => Ok(None),
            Err(error) => Err(at("make", "the namespace of users")(error).into()),
        }
    }

    /// Enters the namespace. Leaves all groups, which cannot be done there.
    fn enter(&self) -> Result<(), StepError> {
        set_thread_groups(&[]).map_err(at("leave all groups", ""))?;
        let kind = Some(LinkNameSpaceType::User);
        move_into_link_name_space(self.namespace.as_fd(), kind)
            .map_err(at("enter the namespace of users", ""))
    }

    /// Makes nobody the owner of a file or directory, on the disk.
    pub(super) fn give(&self, file: &impl AsFd, path: &Path) -> Result<(), StepError> {
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        chownat(file, "", Some(user), Some(group), AtFlags::EMPTY_PATH)
            .map_err(at("give away", path))
    }

    /// Makes nobody the owner of a directory, and of the directories that were made in it for outputs.
    pub(super) fn give_directory(&self, directory: &OwnedFd, path: &Path) -> Result<(), StepError> {
        self.give(directory, path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let entries = openat(directory, ".", flags, Mode::empty()).and_then(Dir::new);
        for entry in entries.map_err(at("list", path))? {
            let entry = entry.map_err(at("list", path))?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let entry = openat(directory, name, flags, Mode::empty());
                self.give(&entry.map_err(at("find", path))?, path)?;
            }
        }
        Ok(())
    }
}

/// Makes the namespaces, as a process of its own, which ends when they are known to the launcher.
fn leave(mut asked: &File, tells: &mut File) -> io::Result<()> {
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS).map_err(|failed| failed.error)?;
    tells.write_all(b"n")?;
    asked.read_exact(&mut [0])?;
    // In a user namespace of its own a process would have all capabilities.
    let _filtered = fs::write("/proc/sys/user/max_user_namespaces", "0");
    tells.write_all(b"l")?;
    asked.read(&mut [0]).map(drop)
}

/// Maps the users of the namespace of the helper, and enters its mounts: the kernel does not let them be taken apart.
fn enter_mounts(helper: i32, mut asks: File, mut told: File) -> io::Result<Nobody> {
    let process = Path::new("/proc").join(helper.to_string());
    let mut hear = || -> io::Result<()> {
        let mut word = [0];
        told.read_exact(&mut word)?;
        if word == REFUSED { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
    };
    hear()?;
    fs::write(process.join("setgroups"), "deny")?;
    fs::write(process.join("gid_map"), EXCHANGED)?;
    fs::write(process.join("uid_map"), EXCHANGED)?;
    asks.write_all(b"m")?;
    hear()?;
    let namespace = File::open(process.join("ns/user"))?.into();
    let mounts = OwnedFd::from(File::open(process.join("ns/mnt"))?);
    move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
    Ok(Nobody { namespace })
}

/// Whether the helper had ended: it reports refusals of the kernel.
fn has_ended(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, NotFound, UnexpectedEof};
    let is_gone = error.raw_os_error() == Some(Errno::SRCH.raw_os_error());
    is_gone || matches!(error.kind(), BrokenPipe | NotFound | UnexpectedEof)
}

/// Whether the kernel has refused something, to the helper or to this process.
fn is_refused(error: &io::Error) -> bool {
    let by_helper =
        error.raw_os_error().is_none() && error.kind() == io::ErrorKind::PermissionDenied;
    by_helper || is_refusal(error)
}

/// Gives up all capabilities except `but`, and hides this process. It and its children cannot get any others, not even
/// as root.
pub(super) fn give_up_privileges(but: CapabilitySet) -> Result<(), StepError> {
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    set_capabilities_secure_bits(bits).map_err(at("lock privileges", ""))?;
    let none = CapabilitySet::empty();
    let left = CapabilitySets { effective: but, permitted: but, inheritable: none };
    set_capabilities(None, left).map_err(at("give up capabilities", ""))?;
    set_no_new_privs(true).map_err(at("give up new privileges", ""))?;
    hide()
}

/// The user of an execution, as the kernel sees it.
#[derive(Clone, Copy, Debug)]
pub(super) enum SandboxUser<'a> {
    /// The user of the launcher.
    Own,
    /// The user nobody: what the execution is given is shown as nobody's.
    Nobody(&'a Nobody),
    /// Root, without any privilege: the file system of the storage cannot show anything as another user's.
    Root(&'a Nobody),
}

impl<'a> SandboxUser<'a> {
    /// Returns the user of an execution whose log is in this directory.
    pub(super) fn find(nobody: Option<&'a Nobody>, stage: &OwnedFd) -> Self {
        match nobody {
            None => Self::Own,
            Some(nobody) if exchanged(stage, &nobody.namespace).is_ok() => Self::Nobody(nobody),
            Some(nobody) => Self::Root(nobody),
        }
    }

    /// Prepares a directory that is shown to it: its own directories belong to it on the disk while it runs. Returns
    /// the user namespace that maps the owners of all other files.
    pub(super) fn prepare(
        self,
        bind: &Bind,
        place: &OwnedFd,
    ) -> Result<Option<&'a OwnedFd>, StepError> {
        match self {
            Self::Nobody(nobody) if bind.is_own() => {
                nobody.give_directory(place, &bind.source).map(|()| None)
            }
            _ => Ok(self.owners()),
        }
    }

    /// The user namespace by which the owners of files that it was given are exchanged.
    pub(super) const fn owners(self) -> Option<&'a OwnedFd> {
        match self {
            Self::Nobody(nobody) => Some(&nobody.namespace),
            Self::Own | Self::Root(_) => None,
        }
    }

    /// Returns that user as seen in the namespace of users.
    pub(super) const fn inside(self) -> InsideUser {
        match self {
            Self::Own => InsideUser::Same,
            Self::Nobody(_) => InsideUser::Nobody,
            Self::Root(_) => InsideUser::Root,
        }
    }

    /// Makes this process that user, without any privilege.
    pub(super) fn assume(self) -> Result<(), StepError> {
        if let Self::Nobody(nobody) | Self::Root(nobody) = self {
            nobody.enter()?;
        }
        self.inside().assume()?;
        give_up_privileges(CapabilitySet::empty())
    }
}

/// The user of an execution, for a process that is in the namespace of users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InsideUser {
    /// The user that the process is.
    Same,
    /// The user nobody outside.
    Nobody,
    /// Root outside, with rights over root's files only.
    Root,
}

impl InsideUser {
    /// Returns the byte that is sent for it.
    pub(super) const fn word(self) -> u8 {
        self as u8
    }

    /// Returns the user that was sent.
    pub(super) fn from_word(word: u8) -> Self {
        [Self::Nobody, Self::Root].into_iter().find(|it| it.word() == word).unwrap_or(Self::Same)
    }

    /// Makes this process that user.
    pub(super) fn assume(self) -> Result<(), StepError> {
        let number = match self {
            Self::Same => return Ok(()),
            Self::Nobody => 0,
            Self::Root => NOBODY,
        };
        let (user, group) = (Uid::from_raw(number), Gid::from_raw(number));
        set_thread_res_gid(group, group, group).map_err(at("change the group", ""))?;
        set_thread_res_uid(user, user, user).map_err(at("change the user", ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(word: &[u8], helper: i32) -> io::Error {
        let ((asked, asks), (told, tells)) = (pipe().unwrap(), pipe().unwrap());
        File::from(tells).write_all(word).unwrap();
        let error = enter_mounts(helper, asks.into(), told.into()).err().unwrap();
        drop(asked);
        error
    }

    #[test]
    fn a_killed_helper_is_not_a_refusal() {
        assert!(!has_ended(&entered(REFUSED, 0)) && is_refused(&entered(REFUSED, 0)));
        assert!(has_ended(&entered(b"", 0)), "before it said anything");
        assert!(has_ended(&entered(b"n", i32::MAX)), "afterwards");
    }

    #[test]
    fn exhausted_resources_are_not_a_refusal() {
        let is_refused = |error: Errno| is_refused(&error.into());
        assert!(
            [Errno::PERM, Errno::ACCESS, Errno::NOSYS, Errno::INVAL].into_iter().all(is_refused)
        );
        for error in [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::INTR] {
            assert!(!is_refused(error), "{error}");
        }
        assert!(!super::is_refused(&entered(b"", 0)), "a helper that was ended");
    }
}
