//! Hints for errors of the operating system in a storage.

use std::io::{self, ErrorKind};

use rustix::io::Errno;

use super::NotOwn;

/// Returns a hint what the user can do about an error of an operation, if there is one.
pub fn advice(doing: &str, source: &io::Error) -> Option<&'static str> {
    match NotOwn::of(source) {
        Some(NotOwn::Link) => {
            return Some(
                "replace the link by its target, or mount the target there; only the storage as a \
                 whole may be a link",
            );
        }
        Some(NotOwn::Kind(_) | NotOwn::TooLarge | NotOwn::Outside) => {
            return Some("find out what put it there, and remove it");
        }
        None => {}
    }
    let reading = ["read", "look at", "list", "open the storage"].contains(&doing);
    Some(match source.kind() {
        ErrorKind::PermissionDenied if reading => "check who may read it",
        ErrorKind::PermissionDenied => "check who may write there, or use a storage of your own",
        ErrorKind::ReadOnlyFilesystem => "mount it for writing, or use a storage of your own",
        ErrorKind::StorageFull => {
            "make room (see df and df -i), then run the same command again: finished calls are kept"
        }
        ErrorKind::QuotaExceeded => {
            "make room, or have your quota raised, then run the same command again: finished \
             calls are kept"
        }
        ErrorKind::NotADirectory if doing == "open the storage" => {
            "give the directory that is the storage"
        }
        ErrorKind::IsADirectory => "find out what put a directory there, and remove it",
        ErrorKind::NotADirectory => {
            "remove what stands in the place of a directory: ce verify names it"
        }
        ErrorKind::InvalidFilename => {
            "give the storage a shorter path, on a file system that takes names of 255 bytes"
        }
        ErrorKind::StaleNetworkFileHandle | ErrorKind::NotConnected => {
            "check whether its file system is still mounted, then run the same command again: \
             finished calls are kept"
        }
        _ if source.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
            "look for errors of the disk (dmesg), then run the same command again: finished \
             calls are kept"
        }
        _ => return None,
    })
}
