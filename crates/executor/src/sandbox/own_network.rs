//! The network namespace of the executions of a launcher: it has a loopback device, and shows whether anything was ever sent there.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto,
    socket_with,
};
use rustix::thread::UnshareFlags;

use super::launcher_processes::{OLD, StepError, at, below, unshare};

/// The counters of a namespace, and the state that stays there without a socket. Every use of a socket to reach something, even a failed
/// one, changes one of them.
const COUNTERS: [&str; 4] = ["dev", "snmp", "snmp6", "ip6_flowlabel"];

/// The largest text of counters that is compared.
const MAX_TEXT: usize = 64 << 10;

/// The namespace that a launcher has entered, with its counters as they were then.
#[derive(Debug)]
pub(super) struct OwnNetwork {
    counters: Vec<(File, Vec<u8>)>,
}

impl OwnNetwork {
    /// Makes a namespace, and moves this process there.
    pub(super) fn start() -> Result<Self, StepError> {
        unshare(UnshareFlags::NEWNET)?;
        start_loopback().map_err(at("start the loopback device", ""))?;
        // A port that one execution has used is free for the next.
        let recent = below(OLD, Path::new("/proc/sys/net/ipv4/tcp_max_tw_buckets"));
        let _older_kernel = fs::write(recent, "0");
        let mut counters = Vec::new();
        for name in COUNTERS {
            let path = below(OLD, &Path::new("/proc/self/net").join(name));
            // A kernel without IPv6 has no counters of it.
            let Ok(file) = File::open(path) else { continue };
            let text = read(&file);
            counters.push((file, text));
        }
        Ok(Self { counters })
    }

    /// Whether the network is unused: no counter has changed.
    pub(super) fn is_unused(&self) -> bool {
        self.counters.iter().all(|(file, text)| !text.is_empty() && read(file) == *text)
    }
}

/// Reads counters anew; nothing if they cannot be read.
fn read(file: &File) -> Vec<u8> {
    let mut text = vec![0; MAX_TEXT];
    let size = file.read_at(&mut text, 0).unwrap_or_default();
    text.truncate(size);
    text
}

/// Starts the loopback device: a message RTM_NEWLINK for interface 1, with the flag IFF_UP.
fn start_loopback() -> Result<(), Errno> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut message = [0_u8; 32];
    // The header: length, type, and the flags "request" and "acknowledge".
    message[0..4].copy_from_slice(&32_u32.to_ne_bytes());
    message[4..6].copy_from_slice(&16_u16.to_ne_bytes());
    message[6..8].copy_from_slice(&5_u16.to_ne_bytes());
    // The interface, its flags, and which of them are to be changed.
    message[20..24].copy_from_slice(&1_u32.to_ne_bytes());
    message[24..28].copy_from_slice(&1_u32.to_ne_bytes());
    message[28..32].copy_from_slice(&1_u32.to_ne_bytes());
    let kernel = netlink::SocketAddrNetlink::new(0, 0);
    sendto(&socket, &message, SendFlags::empty(), &kernel)?;
    let mut answer = [0_u8; 128];
    let (size, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    let code = answer.get(16..20).filter(|_| size >= 20).and_then(|code| code.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(Errno::from_raw_os_error(-code)),
        None => Err(Errno::IO),
    }
}
