//! The loopback device of a new network namespace, which is all the network that it has.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto,
    socket_with,
};

/// Starts it: a message RTM_NEWLINK for interface 1, with the flag IFF_UP.
pub(super) fn start() -> Result<(), Errno> {
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
