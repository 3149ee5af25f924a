//! Hosts that have mounted a network file system: processes with a name, a boot, numbers of processes and a mount of their own.
//! They need root and `/dev/fuse`.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::getuid;

use crate::lab::Lab;
use crate::needs::{self, needs};
use crate::program::through;

/// The script of a host: it mounts the file system with its arguments, says so, and ends with its standard input.
const HOST: &str = r#"
    set -e
    name=$1 place=$2 shared=$3; shift 3
    hostname "$name"
    cat /proc/sys/kernel/random/uuid >"$place/boot.$name"
    mount --bind "$place/boot.$name" /proc/sys/kernel/random/boot_id
    sh -c "$@" "$shared" >&2 </dev/null &
    until mountpoint -q "$shared" && ls "$shared" >/dev/null 2>&1; do kill -0 $! && sleep 0.02; done
    echo ready
    exec cat
"#;

/// The command in front of a process that is to end with the one that has started it.
pub(super) const LEASHED: [&str; 3] = ["setpriv", "--pdeathsig", "KILL"];

/// A host.
pub(super) struct Host<'a> {
    lab: &'a Lab,
    name: &'static str,
    keeper: Child,
    /// The number of its first process.
    pid: String,
}

/// Skips the test where no host can mount a file system that needs these programs.
#[track_caller]
pub(super) fn needs_mounts(programs: &[&str]) {
    needs(programs);
    let mut probe = Command::new("unshare");
    let probe = probe.args(["--mount", "--uts", "--pid", "--fork", "true"]).stderr(Stdio::null());
    let why = match () {
        () if !getuid().is_root() => needs::ROOT,
        () if fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").is_err() => {
            "/dev/fuse"
        }
        () if !probe.status().is_ok_and(|status| status.success()) => "namespaces of mounts",
        () => return,
    };
    needs::without(why);
}

impl<'a> Host<'a> {
    /// Starts a host that mounts something at `shared/` of the laboratory: a script of `sh` with its arguments; the last one
    /// will be that directory.
    pub(super) fn start(lab: &'a Lab, name: &'static str, place: &Path, mount: &[&str]) -> Self {
        let mut keeper = Command::new(LEASHED[0]);
        keeper.args(&LEASHED[1..]).args(["unshare", "--mount", "--uts", "--pid", "--fork"]);
        keeper.args(["--kill-child", "--mount-proc", "sh", "-c", HOST, "host", name]);
        keeper.arg(place).arg(lab.path("shared")).args(mount);
        let log = place.join(format!("{name}.err"));
        let error = fs::File::create(&log).unwrap();
        let keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(error);
        let mut keeper = keeper.spawn().unwrap();
        let mut ready = [0; 6];
        let is_ready = keeper.stdout.as_mut().unwrap().read_exact(&mut ready).is_ok();
        let said = fs::read_to_string(log).unwrap();
        assert!(is_ready, "{name} has not mounted it: {said}");
        let children = format!("/proc/{0}/task/{0}/children", keeper.id());
        let pid = fs::read_to_string(children).unwrap().trim().to_owned();
        Self { lab, name, keeper, pid }
    }

    /// A program there, with these arguments and a storage on the file system.
    pub(super) fn command(&self, program: &str, arguments: &[&str], storage: &str) -> Command {
        let mut command = self.lab.command(program);
        command.args(arguments).arg(self.lab.path("shared").join(storage));
        command.env("LAB_CALLS", self.lab.path(&format!("calls-{storage}")));
        command.env("XDG_CACHE_HOME", self.cache());
        let enter = ["nsenter", "--target", &self.pid, "--mount", "--uts", "--pid", "--"];
        through(&enter, &command)
    }

    /// The directory of the task, by the name that it has on each host.
    pub(super) fn task(&self) -> String {
        self.lab.path("task").to_str().unwrap().to_owned()
    }

    fn cache(&self) -> PathBuf {
        self.lab.path(&format!("cache-{}", self.name))
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        drop(self.keeper.wait());
    }
}
