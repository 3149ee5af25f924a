//! The system calls that are refused: a program in the kernel's filter language (seccomp).
//!
//! Namespaces do not separate everything. Keyrings, performance events, the kernel's log, and
//! sockets to the host of a virtual machine are shared by all, and some interfaces reach deep into
//! the kernel. To a computation, the kernel seems to be built without them. System calls that need
//! a capability, such as to mount, need no filter, since a computation has none.
//!
//! The launcher installs the filter once, and its children inherit it. The kernel allows all other
//! calls by a table, without running the program, except for the few whose arguments matter.

use std::io;

use rustix::io::Errno;
use rustix::net::AddressFamily;
use rustix::thread::UnshareFlags;
use seccompiler::sock_filter as Instruction;

/// The system calls of an architecture, by their numbers.
struct Calls {
    /// As in the kernel: `AUDIT_ARCH_*`.
    architecture: u32,
    /// The significant bits of a number. On x86-64, another bit marks the x32 variant.
    mask: u32,
    /// The calls that are not there.
    refused: [u32; 11],
    /// Both get flags as their first argument.
    forks: [u32; 2],
    /// `prlimit64`, which gets a process as its first argument; 0 is the calling one.
    limits: u32,
    socket: u32,
    /// The call of older 32-bit programs for all that is done with sockets.
    socketcall: Option<u32>,
}

/// Numbers that are the same everywhere: `io_uring_setup`, `io_uring_enter`, `io_uring_register`, and
/// `clone3`, whose flags a filter cannot see; programs go on with `clone`.
const COMMON: [u32; 4] = [425, 426, 427, 435];

/// The refused calls: those that have a number on each architecture, and the common ones.
const fn refused(own: [u32; 7]) -> [u32; 11] {
    let [add_key, request_key, keyctl, syslog, bpf, perf_event_open, userfaultfd] = own;
    let [setup, enter, register, clone3] = COMMON;
    [
        add_key,
        request_key,
        keyctl,
        syslog,
        bpf,
        perf_event_open,
        userfaultfd,
        setup,
        enter,
        register,
        clone3,
    ]
}

/// Numbers of architectures that came late: the generic table of the kernel.
const fn generic(architecture: u32) -> Calls {
    Calls {
        architecture,
        mask: u32::MAX,
        refused: refused([217, 218, 219, 116, 280, 241, 282]),
        forks: [220, 97],
        limits: 261,
        socket: 198,
        socketcall: None,
    }
}

/// All that are known. A program may be of another architecture than the launcher: 32-bit ones are.
const CALLS: [Calls; 5] = [
    // x86-64
    Calls {
        architecture: 0xc000_003e,
        mask: !0x4000_0000,
        refused: refused([248, 249, 250, 103, 321, 298, 323]),
        forks: [56, 272],
        limits: 302,
        socket: 41,
        socketcall: None,
    },
    // x86
    Calls {
        architecture: 0x4000_0003,
        mask: u32::MAX,
        refused: refused([286, 287, 288, 103, 357, 336, 374]),
        forks: [120, 310],
        limits: 340,
        socket: 359,
        socketcall: Some(102),
    },
    // AArch64
    generic(0xc000_00b7),
    // Arm
    Calls {
        architecture: 0x4000_0028,
        mask: u32::MAX,
        refused: refused([309, 310, 311, 103, 386, 364, 388]),
        forks: [120, 337],
        limits: 369,
        socket: 281,
        socketcall: None,
    },
    // RISC-V, 64 bits
    generic(0xc000_00f3),
];

/// The families of sockets that a network namespace keeps apart, and that a loopback device is used by.
const FAMILIES: [AddressFamily; 4] =
    [AddressFamily::UNIX, AddressFamily::INET, AddressFamily::INET6, AddressFamily::NETLINK];

/// The first argument of `socketcall` that makes a socket.
const SYS_SOCKET: u32 = 1;

/// The offsets of the data for a filter: the number, the architecture, and the first argument, its
/// lower half first.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENT: u32 = 16;

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const IF_EQUAL: u16 = 0x15;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const REFUSE: u32 = 0x0005_0000;

/// Installs the filter for this process and all that it forks or executes. Sockets are free to reach
/// out if the network of the host is granted.
///
/// # Errors
///
/// Fails if the kernel has no such filters. Then nothing is refused.
#[cfg(target_endian = "little")]
pub(super) fn install(alone: bool) -> io::Result<()> {
    use seccompiler::Error::{Prctl, Seccomp};
    seccompiler::apply_filter(&program(alone)).map_err(|error| match error {
        Prctl(error) | Seccomp(error) => error,
        error => io::Error::other(error),
    })
}

/// None of the known architectures is one of these.
#[cfg(not(target_endian = "little"))]
pub(super) fn install(_: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

const fn step(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

/// A test, and how many steps are skipped if it fails.
const fn unless(code: u16, k: u32, skipped: u8) -> Instruction {
    Instruction { code, jt: 0, jf: skipped, k }
}

fn refuse(error: Errno) -> Instruction {
    step(RETURN, REFUSE | error.raw_os_error().unsigned_abs())
}

fn program(alone: bool) -> Vec<Instruction> {
    let mut program = vec![step(LOAD, ARCHITECTURE)];
    for calls in &CALLS {
        let section = section(calls, alone);
        debug_assert!(u8::try_from(section.len()).is_ok(), "a jump is that long at most");
        program.push(unless(IF_EQUAL, calls.architecture, section.len() as u8));
        program.extend(section);
    }
    program.push(step(RETURN, ALLOW));
    program
}

/// The part of the program for calls of one architecture. It ends with a return.
fn section(calls: &Calls, alone: bool) -> Vec<Instruction> {
    let mut steps = vec![step(LOAD, NUMBER), step(AND, calls.mask)];
    for call in calls.refused {
        steps.extend([unless(IF_EQUAL, call, 1), refuse(Errno::NOSYS)]);
    }
    for call in calls.forks {
        steps.extend([
            unless(IF_EQUAL, call, 4),
            step(LOAD, ARGUMENT),
            unless(IF_ANY_BIT, UnshareFlags::NEWUSER.bits(), 1),
            refuse(Errno::PERM),
            step(RETURN, ALLOW),
        ]);
    }
    // Number one of the sandbox is of the same user.
    steps.extend([
        unless(IF_EQUAL, calls.limits, 4),
        step(LOAD, ARGUMENT),
        unless(IF_EQUAL, 0, 1),
        step(RETURN, ALLOW),
        refuse(Errno::PERM),
    ]);
    if alone {
        let known = FAMILIES.map(|family| u32::from(family.as_raw()));
        steps.extend([
            unless(IF_EQUAL, calls.socket, 2 + 2 * known.len() as u8),
            step(LOAD, ARGUMENT),
        ]);
        steps.extend(known.map(|it| [unless(IF_EQUAL, it, 1), step(RETURN, ALLOW)]).concat());
        steps.push(refuse(Errno::AFNOSUPPORT));
        if let Some(call) = calls.socketcall {
            steps.extend([
                unless(IF_EQUAL, call, 4),
                step(LOAD, ARGUMENT),
                unless(IF_EQUAL, SYS_SOCKET, 1),
                // Its family is out of sight. Newer programs have a call of its own for it.
                refuse(Errno::NOSYS),
                step(RETURN, ALLOW),
            ]);
        }
    }
    steps.push(step(RETURN, ALLOW));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86_64: u32 = 0xc000_003e;
    const X86: u32 = 0x4000_0003;

    /// Returns the kernel's answer to a call: 0 if it is allowed, or the number of an error.
    fn answer(program: &[Instruction], architecture: u32, number: u32, argument: u64) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let Instruction { code, jt, jf, k } = program[at];
            at += 1;
            match code {
                LOAD if k == NUMBER => value = number,
                LOAD if k == ARCHITECTURE => value = architecture,
                LOAD if k == ARGUMENT => value = argument as u32,
                AND => value &= k,
                IF_EQUAL => at += usize::from(if value == k { jt } else { jf }),
                IF_ANY_BIT => at += usize::from(if value & k != 0 { jt } else { jf }),
                RETURN if k == ALLOW => return 0,
                RETURN => return k & !REFUSE,
                _ => panic!("step {at} is unknown"),
            }
        }
    }

    #[test]
    fn what_is_refused_is_refused_on_each_architecture_and_all_else_is_allowed() {
        for alone in [true, false] {
            let program = program(alone);
            for calls in &CALLS {
                let ask = |number, argument| answer(&program, calls.architecture, number, argument);
                let refused: Vec<u32> = (0..500).filter(|number| ask(*number, 1) == 38).collect();
                let mut expected = Vec::from(calls.refused);
                expected.extend(calls.socketcall.filter(|_| alone));
                expected.sort_unstable();
                assert_eq!(refused, expected);
                for call in calls.forks {
                    assert_eq!(ask(call, 0x0002_0011), 0, "mounts, which need a capability");
                    assert_eq!(ask(call, 0x1000_0011), 1);
                    assert_eq!(ask(call, 0x7e02_0000), 1, "together with others");
                }
                assert_eq!(ask(calls.limits, 0), 0, "its own limits");
                for process in [1, 2, 0xffff_ffff] {
                    assert_eq!(ask(calls.limits, process), 1, "those of {process}");
                }
                let families = (0..50).filter(|family| ask(calls.socket, *family) == 0);
                assert_eq!(families.count(), if alone { 4 } else { 50 });
                assert_eq!(
                    ask(calls.socket, 40),
                    if alone { 97 } else { 0 },
                    "the host of this machine"
                );
            }
            assert_eq!(answer(&program, 0x1234, 250, 0), 0, "an unknown architecture");
        }
    }

    #[test]
    fn variants_of_an_architecture_are_no_way_round() {
        let program = program(true);
        assert_eq!(answer(&program, X86_64, 250 | 0x4000_0000, 0), 38, "x32");
        assert_eq!(answer(&program, X86_64, 0x4000_0000, 0), 0);
        assert_eq!(answer(&program, X86, 102, 3), 0, "socketcall connects");
        assert_eq!(answer(&program, X86, 102, 1), 38);
        // Of a 64-bit argument the kernel takes the lower half, and so do we.
        assert_eq!(answer(&program, X86_64, 272, 0xffff_ffff_0000_0000), 0);
        assert_eq!(answer(&program, X86_64, 41, 0x1_0000_0028), 97);
        assert_eq!(answer(&program, X86_64, 302, 0x1_0000_0000), 0);
    }
}
