//! A private GlusterFS: a server and clients, without the daemon that manages volumes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::host::{Host, LEASHED, needs_mounts};
use crate::lab::Lab;
use crate::program::PATIENCE;

/// The server: its disk, and the layers that clients expect between that and the network. A file has at most twelve links,
/// and as it is shipped a hundred.
const BRICK: &str = "
volume posix
    type storage/posix
    option directory PLACE/brick
    option max-hardlinks 12
end-volume
volume access
    type features/access-control
    subvolumes posix
end-volume
volume locks
    type features/locks
    subvolumes access
end-volume
volume upcall
    type features/upcall
    subvolumes locks
end-volume
volume brick
    type performance/io-threads
    subvolumes upcall
end-volume
volume server
    type protocol/server
    option transport-type socket
    option transport.address-family unix
    option transport.socket.listen-path PLACE/socket
    option auth.addr.brick.allow *
    option auth-path brick
    subvolumes brick
end-volume
";

/// A client. As it is shipped, it has [`CACHES`].
const CLIENT: &str = "
volume client
    type protocol/client
    option transport-type socket
    option transport.address-family unix
    option transport.socket.connect-path PLACE/socket
    option remote-host localhost
    option remote-subvolume brick
end-volume
volume dht
    type cluster/distribute
    subvolumes client
end-volume
volume utime
    type features/utime
    option noatime on
    subvolumes dht
end-volume
CACHESvolume shared
    type performance/io-threads
    subvolumes LAST
end-volume
";

/// The caches of a client as it is shipped. If two hosts make a directory at once, a client may remember an identity that the
/// server drops, for minutes: on a machine that is busy, one of two runs on a new storage ends with 5 in some rounds of a hundred.
/// So tests are without them, unless `CE_CACHES` is set.
const CACHES: &str = "volume write-behind
    type performance/write-behind
    subvolumes utime
end-volume
volume open-behind
    type performance/open-behind
    subvolumes write-behind
end-volume
volume quick-read
    type performance/quick-read
    subvolumes open-behind
end-volume
volume md-cache
    type performance/md-cache
    subvolumes quick-read
end-volume
";

/// A file system with one server.
pub(super) struct Gluster<'a> {
    pub(super) lab: &'a Lab,
    /// The directory of the server, where names of sockets are short.
    place: tempfile::TempDir,
    server: Child,
}

impl<'a> Gluster<'a> {
    /// Starts one. Skips the test where that is not possible.
    #[track_caller]
    pub(super) fn start(lab: &'a Lab) -> Self {
        needs_mounts(&["glusterfsd"]);
        let place = tempfile::Builder::new().prefix("ce-gluster-").tempdir_in("/tmp").unwrap();
        fs::create_dir(place.path().join("brick")).unwrap();
        fs::create_dir(lab.path("shared")).unwrap();
        let (caches, last) = if has_caches() { (CACHES, "md-cache") } else { ("", "utime") };
        let client = CLIENT.replace("CACHES", caches).replace("LAST", last);
        for (name, text) in [("brick.vol", BRICK), ("client.vol", &client)] {
            let text = text.replace("PLACE", place.path().to_str().unwrap());
            fs::write(place.path().join(name), text).unwrap();
        }
        let server = serve(place.path());
        Self { lab, place, server }
    }

    /// Mounts it on a host.
    pub(super) fn host(&self, name: &'static str) -> Host<'a> {
        let (place, log) = (self.place.path(), format!("{name}.log"));
        let seconds = if has_caches() { "1" } else { "0" };
        let mount = r#"
            exec glusterfs --no-daemon --entry-timeout="$3" --attribute-timeout="$3" \
                -f "$1/client.vol" -l "$1/$2" "$4""#;
        let arguments = [mount, "mount", place.to_str().unwrap(), &log, seconds];
        Host::start(self.lab, name, place, &arguments)
    }

    /// Ends the server.
    pub(super) fn kill_server(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }

    /// Starts it again.
    pub(super) fn restart_server(&mut self) {
        self.server = serve(self.place.path());
    }

    /// The path of a file on the server's disk, which no host has cached.
    pub(super) fn on_server(&self, name: &str) -> PathBuf {
        self.place.path().join("brick").join(name)
    }
}

impl Drop for Gluster<'_> {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

/// Whether clients have the caches that they have as they are shipped.
fn has_caches() -> bool {
    std::env::var_os("CE_CACHES").is_some()
}

/// Starts a server, and waits until it serves.
fn serve(place: &Path) -> Child {
    let socket = place.join("socket");
    drop(fs::remove_file(&socket));
    let mut server = Command::new(LEASHED[0]);
    server.args(&LEASHED[1..]).args(["glusterfsd", "--no-daemon", "-f"]);
    server.arg(place.join("brick.vol")).arg("-l").arg(place.join("server.log"));
    let mut server =
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while !socket.exists() {
        let log = || fs::read_to_string(place.join("server.log")).unwrap_or_default();
        assert!(server.try_wait().unwrap().is_none(), "the server has ended: {}", log());
        assert!(began.elapsed() < PATIENCE, "the server does not serve: {}", log());
        thread::sleep(Duration::from_millis(10));
    }
    server
}
