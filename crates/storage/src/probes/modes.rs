//! Modes of files: published ones are read-only, and some are executable.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::{ELSEWHERE, ProbeSite, refused};
use crate::disk::Doing;
use crate::disk::Result;
use ce_model::diagnosis::Diagnosis;

/// The rights to write a file after it was made read-only.
#[derive(Clone, Copy, Debug)]
struct WriteRights {
    /// The reported mode.
    mode: u32,
    /// Whether this user can still open the file for writing.
    open: bool,
    /// Whether this user is root.
    root: bool,
}

/// Probes whether published files are protected from being written.
pub(super) fn read_only(site: &ProbeSite) -> Diagnosis {
    match sealed(site) {
        Ok(sealed) => diagnose_seal(sealed),
        Err(error) => refused("read-only", &error, "results cannot be made read-only", ELSEWHERE),
    }
}

fn sealed(site: &ProbeSite) -> Result<WriteRights> {
    let file = site.file()?;
    site.disk().seal(&file)?;
    let mode = fs::metadata(&file).doing("look at", &file)?.permissions().mode() & 0o777;
    let open = OpenOptions::new().append(true).open(&file).is_ok();
    Ok(WriteRights { mode, open, root: rustix::process::geteuid().is_root() })
}

fn diagnose_seal(WriteRights { mode, open, root }: WriteRights) -> Diagnosis {
    let found = Diagnosis::ok("read-only", format!("the mode of a published file is {mode:03o}"));
    if mode & 0o222 != 0 {
        found
            .broken("results stay writable: a program that opens one by mistake can change it")
            .hint(ELSEWHERE)
    } else if open && root {
        found
            .note("you are root, and can write published files whatever their mode is")
            .hint("compute as another user")
    } else if open {
        found
            .broken("the mode is shown, but not enforced")
            .hint("mount the file system so that modes count, such as with default_permissions")
    } else {
        found
    }
}

/// Probes whether a file in the storage can be executed.
pub(super) fn programs(site: &ProbeSite) -> Diagnosis {
    let probe = || {
        let file = site.file()?;
        fs::set_permissions(&file, Permissions::from_mode(0o755)).doing("change", &file)?;
        match access(&file, Access::EXEC_OK) {
            Ok(()) => Ok(true),
            Err(Errno::ACCESS) => Ok(false),
            Err(error) => Err(std::io::Error::from(error)).doing("look at", &file),
        }
    };
    match probe() {
        Ok(executable) => diagnose_programs(executable),
        Err(error) => refused("programs", &error, "files cannot be made executable", ELSEWHERE),
    }
}

fn diagnose_programs(executable: bool) -> Diagnosis {
    let probe = "programs";
    if executable {
        return Diagnosis::ok(probe, "an output that is a program can be started");
    }
    Diagnosis::ok(probe, "no program can be started from there (noexec)")
        .note("a computation that starts an output of another one fails; all others work")
        .hint("let it copy the program before, or mount the file system without noexec")
}

/// Probes whether a copy shares its blocks with the original.
pub(super) fn copying(site: &ProbeSite) -> Diagnosis {
    let shares = || {
        let (from, to) = (site.file()?, site.fresh());
        let original = File::open(&from).doing("read", &from)?;
        let copy = File::create_new(&to).doing("write", &to)?;
        let shares = rustix::fs::ioctl_ficlone(&copy, &original).is_ok();
        drop(copy);
        site.disk().remove(&to)?;
        let is_right = site.disk().copy(&from, &to)? == site.disk().digest(&from)?;
        Ok((shares, is_right && site.disk().digest(&from)? == site.disk().digest(&to)?))
    };
    match shares() {
        Ok((shares, is_right)) => diagnose_copies(shares, is_right),
        Err(error) => {
            refused("copying", &error, "task inputs cannot be copied into the storage", ELSEWHERE)
        }
    }
}

fn diagnose_copies(shares: bool, is_right: bool) -> Diagnosis {
    let probe = "copying";
    if !is_right {
        return Diagnosis::ok(probe, "a copy differs from its original")
            .broken("data that is read differs from data that was written")
            .hint(ELSEWHERE);
    }
    let found = if shares {
        "a copy of a file there shares its blocks (reflink), and takes no time"
    } else {
        "a copy takes the room and time of its bytes (no reflinks)"
    };
    Diagnosis::ok(probe, found)
}

#[cfg(test)]
mod tests {
    use super::super::tests::summary;
    use super::*;
    use ce_model::diagnosis::Grade;

    #[test]
    fn modes_that_do_not_count_are_told() {
        let fine = WriteRights { mode: 0o444, open: false, root: false };
        let text = "the mode of a published file is 444; ".to_owned();
        assert_eq!(summary(&diagnose_seal(fine)), (None, text));
        let root = WriteRights { open: true, root: true, ..fine };
        assert_eq!(diagnose_seal(root).grade(), Some(Grade::Note));
        let (grade, text) = summary(&diagnose_seal(WriteRights { mode: 0o755, ..fine }));
        assert_eq!(grade, Some(Grade::Broken));
        assert!(text.contains("is 755; results stay writable"), "{text}");
        let shown = WriteRights { open: true, ..fine };
        assert_eq!(diagnose_seal(shown).grade(), Some(Grade::Broken));
    }

    #[test]
    fn what_cannot_be_started_or_copied_is_told() {
        assert_eq!(diagnose_programs(true).grade(), None);
        assert_eq!(diagnose_programs(false).grade(), Some(Grade::Note));
        assert!(summary(&diagnose_copies(true, true)).1.contains("shares its blocks"));
        assert_eq!(diagnose_copies(false, true).grade(), None);
        assert_eq!(diagnose_copies(false, false).grade(), Some(Grade::Broken));
    }
}
