//! Attempts to reach kernel objects that all processes share, or that only capabilities guard.
//!
//! They change nothing but decoys.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use linux_keyutils::{Key, KeyPermissions, KeyRing, KeyRingIdentifier, KeySerialId};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::UnshareFlags;

use super::targets::{Targets, is_process, listed, open_to_write, possible};
use crate::sandbox::TELLING;

/// All rights to a key, for those who possess it and for its user.
const ANYTHING: u32 = 0x3f3f_0000;

/// Files that control the kernel.
const CONTROLS: [&str; 3] =
    ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/user/max_user_namespaces"];

/// Makes a key that ends with this process, and that processes of the same user can use by its
/// number; 0 if the kernel has no keyrings.
pub(super) fn decoy() -> i32 {
    let ring = KeyRing::from_special_id(KeyRingIdentifier::Process, true);
    ring.and_then(|ring| {
        let key = ring.add_key("ce-doctor", "secret")?;
        key.set_perms(KeyPermissions::from_u32(ANYTHING))?;
        Ok(key.get_id().as_raw_id())
    })
    .unwrap_or(0)
}

pub(super) fn keyrings(targets: &Targets) -> Option<String> {
    // Without a decoy, no other key is tried.
    if targets.key <= 0 {
        return None;
    }
    let key = Key::from_id(KeySerialId::new(targets.key));
    possible(key.read_to_vec(), "a key outside can be read")
        .or_else(|| possible(key.update(b"changed"), "a key outside can be changed"))
}

pub(super) fn files(_: &Targets) -> Option<String> {
    if let Some(path) = listed("/proc").find(|path| !is_process(path) && is_exposed(path)) {
        return Some(format!("{} can be read", path.display()));
    }
    let control = CONTROLS.iter().find(|path| open_to_write(Path::new(path)).is_ok())?;
    Some(format!("{control} can be written"))
}

/// Whether a file of `/proc` can be read that the sandbox should cover.
fn is_exposed(path: &Path) -> bool {
    let Ok(about) = fs::symlink_metadata(path) else { return false };
    let for_root = about.is_file() && about.permissions().mode() & 0o4 == 0;
    let telling = path.file_name().is_some_and(|name| TELLING.iter().any(|it| name == *it));
    (for_root || telling)
        && File::open(path).and_then(|mut file| file.read(&mut [0])).is_ok_and(|count| count > 0)
}

pub(super) fn shared_memory(_: &Targets) -> Option<String> {
    let lines = |name: &str| {
        let list = fs::read_to_string(Path::new("/proc/sysvipc").join(name)).unwrap_or_default();
        list.lines().count()
    };
    let other = ["shm", "sem", "msg"].into_iter().find(|name| lines(name) > 1);
    other
        .map(|name| format!("/proc/sysvipc/{name} is not empty"))
        .or_else(|| listed("/dev/shm").next().map(|_| "/dev/shm is not empty".to_owned()))
}

pub(super) fn control_groups(_: &Targets) -> Option<String> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let named = groups.lines().find(|line| !line.ends_with(":/"));
    named.map(|line| format!("their names can be seen: {line}"))
}

pub(super) fn socket_kinds(_: &Targets) -> Option<String> {
    let kinds = [(40, "the host of a virtual machine"), (38, "the kernel's cryptography")];
    kinds.into_iter().find_map(|(family, what)| {
        let types = [SocketType::STREAM, SocketType::SEQPACKET];
        let made = |of| socket(AddressFamily::from_raw(family), of, None).is_ok();
        types.into_iter().any(made).then(|| format!("sockets reach {what}"))
    })
}

/// Moves this process into a new namespace of this kind.
pub(super) fn leave(kind: UnshareFlags) -> Result<(), Errno> {
    #[expect(deprecated, reason = "only its flag FILES is unsafe, and not used here")]
    rustix::thread::unshare(kind)
}

pub(super) fn system_calls(_: &Targets) -> Option<String> {
    // Without a filter, the kernel would report too many user namespaces, or none. A single filter
    // refuses all these calls, and this one can be tried safely.
    (leave(UnshareFlags::NEWUSER) != Err(Errno::PERM)).then(|| "they are not filtered".to_owned())
}

pub(super) fn nesting(_: &Targets) -> Option<String> {
    let kinds = [
        (UnshareFlags::NEWUSER, "users"),
        (UnshareFlags::NEWNS, "mounts"),
        (UnshareFlags::NEWPID, "processes"),
        (UnshareFlags::NEWNET, "network"),
        (UnshareFlags::NEWIPC, "IPC"),
        (UnshareFlags::NEWUTS, "names"),
        (UnshareFlags::NEWCGROUP, "control groups"),
        (UnshareFlags::NEWTIME, "time"),
    ];
    let made = kinds.into_iter().find(|(kind, _)| leave(*kind).is_ok());
    made.map(|(_, of)| format!("a namespace of {of} can be made"))
}
