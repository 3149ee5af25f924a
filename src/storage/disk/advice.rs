//! What to try when the operating system refuses to do something with the storage.

use std::io::{self, ErrorKind};

use rustix::io::Errno;

use super::NotOwn;

/// Says what the user can do about an error, if that is not plain; `doing` is what was tried.
pub fn advice(doing: &str, source: &io::Error) -> Option<&'static str> {
    match NotOwn::of(source) {
        Some(NotOwn::Link) => {
            return Some(
                "put what the link leads to in its place, or mount it there; only the storage as a \
                 whole may be a link",
            );
        }
        Some(NotOwn::Kind(_) | NotOwn::TooLarge | NotOwn::Outside) => {
            return Some("see who has put it there, and remove it");
        }
        None => {}
    }
    let reading = ["read", "look at", "list", "open the storage"].contains(&doing);
    Some(match source.kind() {
        ErrorKind::PermissionDenied if reading => {
            "see who may read it, and whether you should be one"
        }
        ErrorKind::PermissionDenied => "see who may write there; ce-run -n writes nothing",
        ErrorKind::ReadOnlyFilesystem => "mount it for writing; ce-run -n writes nothing",
        ErrorKind::StorageFull => {
            "make room (df and df -i tell), then run the same command again: what is done is kept"
        }
        ErrorKind::QuotaExceeded => {
            "make room, or have your quota raised, then run the same command again: what is done \
             is kept"
        }
        ErrorKind::InvalidFilename => {
            "give the storage a shorter path, on a file system that takes names of 255 bytes"
        }
        ErrorKind::StaleNetworkFileHandle | ErrorKind::NotConnected => {
            "see whether its file system is still mounted, then run the same command again: what \
             is done is kept"
        }
        _ if source.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
            "see what the system says of the disk (dmesg), then run the same command again: what \
             is done is kept"
        }
        _ => return None,
    })
}
