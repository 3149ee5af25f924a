//! Devices whose file systems are images, such as squashfs.
//!
//! The maker of an image determines the stat of a file in it, also its time of change. Another image in its place may have
//! a file with the same device, inode, size and times, and other contents. So the cache ignores the stat of its files.
//!
//! The stat of the file behind a loop device does not help either: `/sys` has no more than a path of it, as whoever set up
//! the device sees it. In another mount namespace, such as in a container, the path may lead to another file. Only a
//! privileged `ioctl` returns device and inode.

use std::collections::HashMap;
use std::fs;
use std::sync::{Mutex, PoisonError};

use rustix::fs::makedev;

/// The kinds of file systems that are images, as mounts have them.
const KINDS: [&str; 6] = ["squashfs", "erofs", "iso9660", "udf", "cramfs", "romfs"];

/// Whether each device that was asked for is an image. A device with a mount of another kind stays one while a program runs.
static KNOWN: Mutex<Option<HashMap<u64, bool>>> = Mutex::new(None);

/// Whether a device holds an image. Returns false if mounts cannot be read.
pub(super) fn is_image(device: u64) -> bool {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(known) = known.get(&device) {
        return *known;
    }
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    known.extend(devices(&String::from_utf8_lossy(&mounts)));
    // An example is a subvolume of btrfs, which no mount has.
    *known.entry(device).or_insert(false)
}

/// The devices of mounts as `/proc/self/mountinfo` has them, and whether each is an image.
fn devices(mounts: &str) -> impl Iterator<Item = (u64, bool)> {
    mounts.lines().filter_map(|line| {
        let (place, of_device) = line.split_once(" - ")?;
        let (major, minor) = place.split(' ').nth(2)?.split_once(':')?;
        let device = makedev(major.parse().ok()?, minor.parse().ok()?);
        Some((device, KINDS.contains(&of_device.split(' ').next()?)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_the_kinds_of_their_mounts() {
        let mounts = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 7:0 / /data ro,nodev - squashfs /dev/loop0 ro
41 22 7:1 / /a\\040b ro shared:2 master:1 - iso9660 /dev/loop1 ro
42 22 0:31 /sub /c rw - erofs file ro
43 22 0:32 / /d rw - fuse.squashfuse squashfuse ro
a line of another form
";
        let devices: Vec<_> = devices(mounts).collect();
        let device = |major, minor, is_image| (makedev(major, minor), is_image);
        let expected = [(254, 0, false), (7, 0, true), (7, 1, true), (0, 31, true), (0, 32, false)];
        assert_eq!(
            devices,
            expected.map(|(major, minor, is_image)| device(major, minor, is_image))
        );
    }

    #[test]
    fn the_device_of_a_file_is_looked_for_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let device = super::super::FileStat::read(file.path()).unwrap().device;
        assert!(!is_image(device));
        assert!(KNOWN.lock().unwrap().as_ref().unwrap().contains_key(&device));
    }
}
