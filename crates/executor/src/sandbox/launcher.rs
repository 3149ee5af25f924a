//! The launcher: a process of one thread that prepares a sandbox once, and then forks executions in it,
//! one after the other, each in mount and IPC namespaces of its own (see `execution`).
//!
//! They share a process namespace in which, between two of them, there is only its first process (see
//! `namespace_init`). Numbers that the launcher has are those of the host.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, getegid, geteuid, pidfd_open, setsid,
    umask, waitid,
};
use rustix::thread::{CapabilitySet, UnshareFlags};

use super::mounts::{StepError, at};
use super::namespace_init::NamespaceInit;
use super::nobody::Nobody;
use super::process::{End, forked, reap, send, send_failed, unshare};
use super::root::Ready;
use super::spec::SandboxSpec;
use super::wire::{OWN_NETWORK, Reply};
use super::{execution, filter, loopback, system};

/// Runs the launcher until its standard input ends. The process must have one thread.
pub(super) fn launch(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let alone = arguments.next().is_some_and(|word| word == OWN_NETWORK);
    let devices: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    match prepare(alone, &devices).and_then(serve) {
        Ok(()) | Err(End::Over) => ExitCode::SUCCESS,
        Err(End::Failed(failed)) => {
            send_failed(failed);
            ExitCode::FAILURE
        }
    }
}

/// Prepares what all executions share.
fn prepare(alone: bool, devices: &[PathBuf]) -> Result<Ready, End> {
    // Files that were open when this program was started would be a way out.
    close_fds::set_fds_cloexec(3, &[]);
    // Ctrl-C is handled by the parent of the launcher, and executions have no terminal.
    setsid().map_err(at("leave the session", ""))?;
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let nobody = Nobody::make()?;
    let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWUTS;
    flags.set(UnshareFlags::NEWNET, alone);
    flags.set(UnshareFlags::NEWUSER, nobody.is_none());
    unshare(flags)?;
    if nobody.is_none() {
        let write = |file: &str, text: &str| fs::write(file, text).map_err(at("write", file));
        write("/proc/self/setgroups", "deny")?;
        write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
        write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
        // In a user namespace of its own a process would have all capabilities. Where /proc/sys cannot be
        // written, as in containers, the filter refuses them.
        let _filtered = fs::write("/proc/sys/user/max_user_namespaces", "0");
    }
    // The names of control groups identify the user. Older kernels have no namespaces for them.
    let _older_kernel = unshare(UnshareFlags::NEWCGROUP);
    rustix::system::sethostname(b"sandbox").map_err(at("change the name of the host", ""))?;
    if alone {
        loopback::start().map_err(at("start the loopback device", ""))?;
        // A port that one execution has used is free for the next.
        let _older_kernel = fs::write("/proc/sys/net/ipv4/tcp_max_tw_buckets", "0");
    }
    let mask = umask(execution::MASK);
    let ready = Ready::with(system::prepare(devices, nobody.is_some())?, nobody)?;
    umask(mask);
    // Without it more of the kernel can be reached, but no files. `ce doctor` reports that.
    let _older_kernel = filter::install(alone);
    Ok(ready)
}

fn serve(mut root: Ready) -> Result<(), End> {
    // It ends processes of another user then.
    let keeps = root.nobody.as_ref().map_or(CapabilitySet::empty(), |_| CapabilitySet::KILL);
    let mut init = NamespaceInit::start(keeps)?;
    send(&Reply::Ready);
    let mut input = io::stdin().lock();
    loop {
        init.live_until_readable(&io::stdin())?;
        let spec = SandboxSpec::read(&mut input).map_err(at("read", "standard input"))?;
        let Some(spec) = spec else { return Ok(()) };
        let mask = umask(execution::MASK);
        root.fit(&spec)?;
        umask(mask);
        let begun = match begin(&root, &spec) {
            // Nothing can be forked any more. The call is not to blame.
            Err(_) if init.has_ended() => return Err(End::Over),
            begun => begun?,
        };
        let Some(exec) = begun else {
            let _nobody = init.end_all()?;
            send(&Reply::Over);
            continue;
        };
        send(&Reply::Started(exec.as_raw_nonzero().get()));
        send(&Reply::Ended(follow(exec)?));
        input.read_exact(&mut [0]).map_err(at("read", "standard input"))?;
        // Reaped only after the last signal was sent, so that its number was not reused.
        let used = reap(exec)?;
        match init.end_all()? {
            None => send(&Reply::Used(used)),
            Some(others) => {
                send(&Reply::Last(used.and(others)));
                return Ok(());
            }
        }
    }
}

/// Forks a process that becomes `exec`. If that fails, it reports why and ends.
fn begin(root: &Ready, spec: &SandboxSpec) -> Result<Option<Pid>, End> {
    let (replies, sender) = pipe_with(PipeFlags::CLOEXEC).map_err(at("make", "a pipe"))?;
    let Some(exec) = forked()? else {
        drop(replies);
        let failed = execution::begin(root, spec);
        let _gone = rustix::io::write(&sender, &failed.reply().frame());
        return Err(End::Over);
    };
    drop(sender);
    // `exec` has the other end no more.
    let Ok(failed) = Reply::read(&mut File::from(replies)) else {
        return Ok(Some(exec));
    };
    send(&failed);
    reap(exec)?;
    Ok(None)
}

/// Waits for the end of a child, and leaves it a zombie. Returns its exit status, or minus a
/// signal. Ends this process if its parent has ended.
fn follow(child: Pid) -> Result<i32, StepError> {
    let ended = pidfd_open(child, PidfdFlags::empty()).map_err(at("watch a process", ""))?;
    let input = io::stdin();
    loop {
        let hung_up = PollFd::from_borrowed_fd(input.as_fd(), PollFlags::empty());
        let mut fds = [PollFd::new(&ended, PollFlags::IN), hung_up];
        match poll(&mut fds, None) {
            Ok(_) if fds[0].revents().contains(PollFlags::IN) => break,
            Ok(_) => return Err(at("read", "standard input")(Errno::PIPE)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(at("wait", "")(error)),
        }
    }
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(child), options).map_err(at("wait", ""))?;
    let signal = |status: &WaitIdStatus| status.terminating_signal().map(|signal| -signal);
    let ended = status.and_then(|status| status.exit_status().or_else(|| signal(&status)));
    ended.ok_or_else(|| at("wait", "")(Errno::CHILD))
}
