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
    refused: [u32; 13],
    /// Both get flags as their first argument.
    forks: [u32; 2],
    /// `prlimit64`, which gets a process as its first argument; 0 is the calling one.
    limits: u32,
    /// `fcntl` and, where programs of 32 bits have it, `fcntl64`: the second argument is an operation.
    files: &'static [u32],
    /// `ioctl`, whose second argument is an operation.
    devices: u32,
    socket: u32,
    /// The call of older 32-bit programs for all operations on sockets.
    socketcall: Option<u32>,
    /// The calls that give a file its mode.
    modes: &'static [ModeCall],
}

/// A call that gives a file its mode.
struct ModeCall {
    number: u32,
    /// The place of the mode among the arguments.
    mode: u32,
    /// The place of flags without which no file is made, and the mode says nothing.
    flags: Option<u32>,
}

/// A call that makes or changes a file.
const fn sets(number: u32, mode: u32) -> ModeCall {
    ModeCall { number, mode, flags: None }
}

/// A call that opens a file, and may make it.
const fn opens(number: u32, flags: u32) -> ModeCall {
    ModeCall { number, mode: flags + 1, flags: Some(flags) }
}

/// Numbers that are the same everywhere: `io_uring_setup`, `io_uring_enter`, `io_uring_register`, `clone3`, whose flags
/// a filter cannot see, so that programs fall back to `clone`, and `pidfd_getfd`.
const COMMON: [u32; 5] = [425, 426, 427, 435, 438];

/// `openat2`, whose mode a filter cannot see.
const OPENAT2: u32 = 437;

/// The refused calls: the ones with a number on each architecture, and the common ones.
const fn refused(own: [u32; 8]) -> [u32; 13] {
    let [add_key, request_key, keyctl, syslog, bpf, perf_event_open, userfaultfd, kcmp] = own;
    let [setup, enter, register, clone3, pidfd_getfd] = COMMON;
    [
        add_key,
        request_key,
        keyctl,
        syslog,
        bpf,
        perf_event_open,
        userfaultfd,
        kcmp,
        setup,
        enter,
        register,
        clone3,
        pidfd_getfd,
    ]
}

/// `mknodat`, `fchmod`, `fchmodat`, `openat` and `fchmodat2` there.
const GENERIC_MODES: [ModeCall; 5] =
    [sets(33, 2), sets(52, 1), sets(53, 2), opens(56, 2), sets(452, 2)];

/// `open`, `creat`, `chmod`, `fchmod`, `mknod`, `openat`, `mknodat`, `fchmodat` and `fchmodat2` of 32 bits.
const fn modes_of_32_bits(openat: u32, mknodat: u32, fchmodat: u32) -> [ModeCall; 9] {
    [
        opens(5, 1),
        sets(8, 1),
        sets(15, 1),
        sets(94, 1),
        sets(14, 1),
        opens(openat, 2),
        sets(mknodat, 2),
        sets(fchmodat, 2),
        sets(452, 2),
    ]
}

const X86_MODES: [ModeCall; 9] = modes_of_32_bits(295, 297, 306);
const ARM_MODES: [ModeCall; 9] = modes_of_32_bits(322, 324, 333);

/// Numbers of architectures that came late: the generic table of the kernel.
const fn generic(architecture: u32) -> Calls {
    Calls {
        architecture,
        mask: u32::MAX,
        refused: refused([217, 218, 219, 116, 280, 241, 282, 272]),
        forks: [220, 97],
        limits: 261,
        files: &[25],
        devices: 29,
        socket: 198,
        socketcall: None,
        modes: &GENERIC_MODES,
    }
}

/// All that are known. A program may be of another architecture than the launcher: 32-bit ones are.
const CALLS: [Calls; 5] = [
    // x86-64
    Calls {
        architecture: 0xc000_003e,
        mask: !0x4000_0000,
        refused: refused([248, 249, 250, 103, 321, 298, 323, 312]),
        forks: [56, 272],
        limits: 302,
        files: &[72],
        // The x32 variant has a number of its own.
        devices: 16,
        socket: 41,
        socketcall: None,
        // open, creat, chmod, fchmod, mknod, openat, mknodat, fchmodat, fchmodat2
        modes: &[
            opens(2, 1),
            sets(85, 1),
            sets(90, 1),
            sets(91, 1),
            sets(133, 1),
            opens(257, 2),
            sets(259, 2),
            sets(268, 2),
            sets(452, 2),
        ],
    },
    // x86
    Calls {
        architecture: 0x4000_0003,
        mask: u32::MAX,
        refused: refused([286, 287, 288, 103, 357, 336, 374, 349]),
        forks: [120, 310],
        limits: 340,
        files: &[55, 221],
        devices: 54,
        socket: 359,
        socketcall: Some(102),
        modes: &X86_MODES,
    },
    // AArch64
    generic(0xc000_00b7),
    // Arm
    Calls {
        architecture: 0x4000_0028,
        mask: u32::MAX,
        refused: refused([309, 310, 311, 103, 386, 364, 388, 378]),
        forks: [120, 337],
        limits: 369,
        files: &[55, 221],
        devices: 54,
        socket: 281,
        socketcall: None,
        modes: &ARM_MODES,
    },
    // RISC-V, 64 bits
    generic(0xc000_00f3),
];

/// `ioctl` of the x32 variant.
const X32_IOCTL: u32 = 514;

/// Operations of `fcntl` by which a process holds up all others that open a file: `F_SETLEASE` and `F_SETDELEG`.
const LEASES: [u32; 2] = [1024, 1040];

/// Operations of `ioctl` by which a process types into its terminal: `TIOCSTI` and `TIOCLINUX`.
const TYPING: [u32; 2] = [0x5412, 0x541c];

/// The protocol of netlink by which the kernel reports events of all devices.
const KERNEL_EVENTS: u32 = 15;

/// The bits of a mode that let others execute a file as its owner or group: `S_ISUID` and `S_ISGID`.
const SET_ID: u32 = 0o6000;

/// The flags with which a file is made: `O_CREAT`, and the one that is `O_TMPFILE`'s alone.
const MAKES: u32 = 0o100 | 0o20_000_000;

/// The families of sockets that a network namespace keeps apart, and that a loopback device is used by.
const FAMILIES: [AddressFamily; 4] =
    [AddressFamily::UNIX, AddressFamily::INET, AddressFamily::INET6, AddressFamily::NETLINK];

/// The first argument of `socketcall` that makes a socket.
const SYS_SOCKET: u32 = 1;

/// The offsets of the data for a filter: the number and the architecture.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

/// The offset of the lower half of an argument.
const fn argument(place: u32) -> u32 {
    16 + 8 * place
}

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const IF_EQUAL: u16 = 0x15;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const REFUSE: u32 = 0x0005_0000;

/// The properties of an execution that determine which calls the filter refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallFilter {
    /// Whether it has a network of its own. Sockets are free to reach out if the network of the host is granted.
    pub(super) alone: bool,
    /// Whether it may write files of the host, where a program that is executed as its owner would stay.
    pub(super) writes: bool,
}

/// Installs the filter for this process and all that it forks or executes.
///
/// # Errors
///
/// Fails if the kernel does not support filters. Then nothing is refused.
#[cfg(target_endian = "little")]
pub(super) fn install(filter: CallFilter) -> io::Result<()> {
    use seccompiler::Error::{Prctl, Seccomp};
    seccompiler::apply_filter(&program(filter)).map_err(|error| match error {
        Prctl(error) | Seccomp(error) => error,
        error => io::Error::other(error),
    })
}

/// The known architectures are all little-endian.
#[cfg(not(target_endian = "little"))]
pub(super) fn install(_: CallFilter) -> io::Result<()> {
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

fn program(filter: CallFilter) -> Vec<Instruction> {
    let mut program = vec![step(LOAD, ARCHITECTURE)];
    for calls in &CALLS {
        let section = section(calls, filter);
        debug_assert!(u8::try_from(section.len()).is_ok(), "a jump is that long at most");
        program.push(unless(IF_EQUAL, calls.architecture, section.len() as u8));
        program.extend(section);
    }
    program.push(step(RETURN, ALLOW));
    program
}

/// Steps for one call. They end with a return.
fn for_call(number: u32, steps: Vec<Instruction>) -> Vec<Instruction> {
    [vec![unless(IF_EQUAL, number, steps.len() as u8)], steps].concat()
}

/// Steps that refuse a call if an argument has one of some values, and allow it otherwise.
fn refuse_values(place: u32, values: &[u32], error: Errno) -> Vec<Instruction> {
    let refused = values.iter().flat_map(|value| [unless(IF_EQUAL, *value, 1), refuse(error)]);
    [step(LOAD, argument(place))].into_iter().chain(refused).chain([step(RETURN, ALLOW)]).collect()
}

/// Steps that refuse a call if an argument has any of some bits, and allow it otherwise.
fn refuse_bits(place: u32, bits: u32, error: Errno) -> Vec<Instruction> {
    let refused = [unless(IF_ANY_BIT, bits, 1), refuse(error), step(RETURN, ALLOW)];
    [step(LOAD, argument(place))].into_iter().chain(refused).collect()
}

/// The part of the program for calls of one architecture. It ends with a return.
fn section(calls: &Calls, filter: CallFilter) -> Vec<Instruction> {
    let mut steps = vec![step(LOAD, NUMBER), step(AND, calls.mask)];
    for call in calls.refused.into_iter().chain(filter.writes.then_some(OPENAT2)) {
        steps.extend(for_call(call, vec![refuse(Errno::NOSYS)]));
    }
    for call in calls.forks {
        let new_users = UnshareFlags::NEWUSER.bits();
        steps.extend(for_call(call, refuse_bits(0, new_users, Errno::PERM)));
    }
    // Number one of the sandbox is of the same user.
    let own_limits = [unless(IF_EQUAL, 0, 1), step(RETURN, ALLOW), refuse(Errno::PERM)];
    let own_limits = [step(LOAD, argument(0))].into_iter().chain(own_limits);
    steps.extend(for_call(calls.limits, own_limits.collect()));
    for call in calls.files {
        steps.extend(for_call(*call, refuse_values(1, &LEASES, Errno::INVAL)));
    }
    let x32 = (calls.mask != u32::MAX).then_some(X32_IOCTL);
    for call in [calls.devices].into_iter().chain(x32) {
        steps.extend(for_call(call, refuse_values(1, &TYPING, Errno::PERM)));
    }
    if filter.writes {
        for call in calls.modes {
            let mut set = refuse_bits(call.mode, SET_ID, Errno::PERM);
            if let Some(flags) = call.flags {
                let rest = set.len() as u8 - 1;
                let made = [step(LOAD, argument(flags)), unless(IF_ANY_BIT, MAKES, rest)];
                set.splice(0..0, made);
            }
            steps.extend(for_call(call.number, set));
        }
    }
    steps.extend(for_call(calls.socket, refuse_sockets(filter.alone)));
    if let Some(call) = calls.socketcall.filter(|_| filter.alone) {
        // Its family is out of sight. Newer programs have a call of its own for it.
        steps.extend(for_call(call, refuse_values(0, &[SYS_SOCKET], Errno::NOSYS)));
    }
    steps.push(step(RETURN, ALLOW));
    steps
}

/// Steps that refuse sockets by their family, and by their protocol if that is netlink's.
fn refuse_sockets(alone: bool) -> Vec<Instruction> {
    let netlink = u32::from(AddressFamily::NETLINK.as_raw());
    let events = refuse_values(2, &[KERNEL_EVENTS], Errno::PROTONOSUPPORT);
    let mut steps = vec![step(LOAD, argument(0))];
    steps.extend(for_call(netlink, events));
    if alone {
        let known = FAMILIES.map(|family| u32::from(family.as_raw()));
        steps.extend(known.map(|it| [unless(IF_EQUAL, it, 1), step(RETURN, ALLOW)]).concat());
        steps.push(refuse(Errno::AFNOSUPPORT));
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
    fn answer(program: &[Instruction], architecture: u32, number: u32, arguments: &[u64]) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let Instruction { code, jt, jf, k } = program[at];
            at += 1;
            match code {
                LOAD if k == NUMBER => value = number,
                LOAD if k == ARCHITECTURE => value = architecture,
                LOAD => value = arguments.get((k as usize - 16) / 8).map_or(0, |it| *it as u32),
                AND => value &= k,
                IF_EQUAL => at += usize::from(if value == k { jt } else { jf }),
                IF_ANY_BIT => at += usize::from(if value & k != 0 { jt } else { jf }),
                RETURN if k == ALLOW => return 0,
                RETURN => return k & !REFUSE,
                _ => panic!("step {at} is unknown"),
            }
        }
    }

    /// All filters.
    fn filters() -> impl Iterator<Item = CallFilter> {
        let all = [(true, true), (true, false), (false, true), (false, false)];
        all.into_iter().map(|(alone, writes)| CallFilter { alone, writes })
    }

    #[test]
    fn only_listed_system_calls_are_refused_on_each_architecture() {
        for filter in filters() {
            let (alone, program) = (filter.alone, program(filter));
            for calls in &CALLS {
                let ask =
                    |number, argument| answer(&program, calls.architecture, number, &[argument]);
                let refused: Vec<u32> = (0..500).filter(|number| ask(*number, 1) == 38).collect();
                let mut expected = Vec::from(calls.refused);
                expected.extend(calls.socketcall.filter(|_| alone));
                expected.extend(filter.writes.then_some(OPENAT2));
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
            assert_eq!(answer(&program, 0x1234, 250, &[]), 0, "an unknown architecture");
        }
    }

    #[test]
    fn operations_that_reach_beyond_a_process_are_refused() {
        for filter in filters() {
            let program = program(filter);
            for calls in &CALLS {
                let ask = |number, arguments: &[u64]| {
                    answer(&program, calls.architecture, number, arguments)
                };
                for call in calls.files {
                    for (operation, expected) in [(1024, 22), (1040, 22), (1025, 0), (6, 0)] {
                        assert_eq!(ask(*call, &[3, operation]), expected, "{operation}");
                        assert_eq!(ask(*call, &[operation, 1]), 0, "a descriptor");
                    }
                    assert_eq!(ask(*call, &[3, 0x1_0000_0400]), 22, "the kernel takes 32 bits");
                }
                for (operation, expected) in [(0x5412, 1), (0x541c, 1), (0x5401, 0)] {
                    assert_eq!(ask(calls.devices, &[0, operation]), expected, "{operation:x}");
                }
                for (protocol, expected) in [(0, 0), (15, 93), (16, 0)] {
                    assert_eq!(ask(calls.socket, &[16, 3, protocol]), expected, "{protocol}");
                    assert_eq!(ask(calls.socket, &[2, 3, protocol]), 0, "another family");
                }
            }
        }
        let x32 = |operation| {
            let filter = CallFilter { alone: true, writes: false };
            answer(&program(filter), X86_64, 514 | 0x4000_0000, &[0, operation])
        };
        assert_eq!((x32(0x5412), x32(0x5401)), (1, 0));
    }

    #[test]
    fn set_user_id_bits_cannot_be_set() {
        for filter in filters() {
            let program = program(filter);
            for calls in &CALLS {
                for ModeCall { number, mode, flags } in calls.modes {
                    let ask = |bits: u64, flag: u64| {
                        let mut arguments = [0; 6];
                        arguments[*mode as usize] = bits;
                        if let Some(flags) = flags {
                            arguments[*flags as usize] = flag;
                        }
                        answer(&program, calls.architecture, *number, &arguments)
                    };
                    let refused = u32::from(filter.writes);
                    for bits in [0o4755, 0o2755, 0o6000, 0o10_4644] {
                        assert_eq!(ask(bits, 0o101), refused, "{number}: {bits:o}");
                        assert_eq!(ask(bits, 0o20_200_002), refused, "{number}: without a name");
                        let opened = if flags.is_some() { 0 } else { refused };
                        assert_eq!(ask(bits, 0o200_001), opened, "{number}: the file is there");
                    }
                    assert_eq!(ask(0o1777, 0o101), 0, "{number}: a mode of files");
                }
            }
        }
    }

    #[test]
    fn variants_of_an_architecture_do_not_bypass_the_filter() {
        let program = program(CallFilter { alone: true, writes: false });
        let ask = |architecture, number, first| answer(&program, architecture, number, &[first]);
        assert_eq!(ask(X86_64, 250 | 0x4000_0000, 0), 38, "x32");
        assert_eq!(ask(X86_64, 0x4000_0000, 0), 0);
        assert_eq!(ask(X86, 102, 3), 0, "socketcall connects");
        assert_eq!(ask(X86, 102, 1), 38);
        // The kernel takes the lower half of a 64-bit argument, and so do we.
        assert_eq!(ask(X86_64, 272, 0xffff_ffff_0000_0000), 0);
        assert_eq!(ask(X86_64, 41, 0x1_0000_0028), 97);
        assert_eq!(ask(X86_64, 302, 0x1_0000_0000), 0);
    }
}
