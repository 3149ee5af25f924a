//! Permissions: whether files can be read-only and executable, and whether several users can share the storage.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, getxattr};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid, getgroups};

use super::{ELSEWHERE, ProbeSite, refused};
use crate::disk::{IoContext, Result};
use ce_files::umask;
use ce_model::probe_diagnosis::Diagnosis;

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
    let mode = fs::metadata(&file).context("look at", &file)?.permissions().mode() & 0o777;
    let open = OpenOptions::new().append(true).open(&file).is_ok();
    Ok(WriteRights { mode, open, root: geteuid().is_root() })
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
    match can_execute(site) {
        Ok(executable) => diagnose_programs(executable),
        Err(error) => refused("programs", &error, "files cannot be made executable", ELSEWHERE),
    }
}

/// Whether a file may be executed whose mode says so.
fn can_execute(site: &ProbeSite) -> Result<bool> {
    let file = site.file()?;
    fs::set_permissions(&file, Permissions::from_mode(0o755)).context("change", &file)?;
    match access(&file, Access::EXEC_OK) {
        Ok(()) => Ok(true),
        Err(Errno::ACCESS) => Ok(false),
        Err(error) => Err(std::io::Error::from(error)).context("look at", &file),
    }
}

fn diagnose_programs(executable: bool) -> Diagnosis {
    let probe = "programs";
    if executable {
        return Diagnosis::ok(probe, "an output that is a program can be started");
    }
    Diagnosis::ok(probe, "no program can be started from there (noexec)")
        .broken("no isolated computation can be executed: its exec is started from the storage")
        .hint("mount the file system without noexec, or give a storage elsewhere")
}

/// Probes whether a copy shares its blocks with the original.
pub(super) fn copying(site: &ProbeSite) -> Diagnosis {
    let shares = || {
        let (from, to) = (site.file()?, site.fresh());
        let original = File::open(&from).context("read", &from)?;
        let copy =
            umask::new_file().write(true).create_new(true).open(&to).context("write", &to)?;
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

/// 1 if links to read-only files of other users are refused.
const PROTECTED: &str = "/proc/sys/fs/protected_hardlinks";

/// The extended attribute with the access control list of a file.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// The depth to which directories are checked, as of `c_NAME/CCID/record`.
const MAX_DEPTH: usize = 3;

/// The greatest number of directories that are checked.
const MAX_DIRECTORIES: usize = 10_000;

/// The rights to a directory that every member of the group needs.
const GROUP_RIGHTS: u32 = 0o070;

const SET_GROUP_ID: u32 = 0o2000;

/// The owner and the mode of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rights {
    mode: u32,
    owner: u32,
    group: u32,
}

/// Facts about the rights of several users of a storage.
#[derive(Clone, Debug)]
struct SharingFacts {
    /// The storage, as the user named it.
    storage: PathBuf,
    top: Rights,
    may_read: bool,
    may_write: bool,
    /// Whether this user is in the group of the storage.
    is_member: bool,
    /// Whether an access control list has rights that the mode does not show.
    has_list: bool,
    /// Whether links to read-only files of other users are refused.
    protected: bool,
    /// The first directory without the rights that the group needs, and the number of such
    /// directories.
    lacking: Option<(PathBuf, Rights)>,
    count: usize,
}

/// Probes whether the storage is private or shared by a group, and which actions fail for others.
pub(super) fn sharing(site: &ProbeSite) -> Diagnosis {
    match facts(site) {
        Some(facts) => diagnose(&facts),
        None => Diagnosis::ok("sharing", "a group that may write the directory shares a storage"),
    }
}

/// Returns the facts, unless the storage exists only for the probes.
fn facts(site: &ProbeSite) -> Option<SharingFacts> {
    let storage = site.storage.clone();
    let metadata = fs::metadata(&storage).ok().filter(|it| it.is_dir() && !site.is_new())?;
    let top = Rights::from_metadata(&metadata);
    let may = |rights| access(&storage, rights | Access::EXEC_OK).is_ok();
    let groups = getgroups().unwrap_or_default();
    let is_member = groups.into_iter().chain([getegid()]).any(|group| group.as_raw() == top.group);
    let has_list = getxattr(&storage, ACCESS_LIST, &mut [0_u8; 0]).is_ok();
    let by_mode = top.is_shared() && !has_list;
    let mut lacking = if by_mode { lacking(&storage, top) } else { Vec::new() };
    // The directory of this probe gets the modes that its parent directory hands on.
    let own = storage.join(&site.run);
    lacking.retain(|(path, _)| !path.starts_with(&own));
    Some(SharingFacts {
        top,
        may_read: may(Access::READ_OK),
        may_write: may(Access::WRITE_OK),
        is_member: is_member || geteuid().is_root(),
        protected: fs::read_to_string(PROTECTED).is_ok_and(|text| text.trim() == "1"),
        has_list,
        count: lacking.len(),
        lacking: lacking.into_iter().min_by(|one, other| one.0.cmp(&other.0)),
        storage,
    })
}

impl Rights {
    fn from_metadata(metadata: &Metadata) -> Self {
        Self { mode: metadata.mode() & 0o7777, owner: metadata.uid(), group: metadata.gid() }
    }

    /// Whether the group may write.
    const fn is_shared(self) -> bool {
        self.mode & 0o020 != 0
    }

    /// Whether all users of a shared storage can use a directory in it.
    const fn fits(self, top: Self) -> bool {
        let needed = GROUP_RIGHTS | top.mode & SET_GROUP_ID;
        self.mode & needed == needed && self.group == top.group
    }
}

/// Returns the directories near the top that not all users can use.
fn lacking(storage: &Path, top: Rights) -> Vec<(PathBuf, Rights)> {
    let mut lacking = Vec::new();
    let mut here = vec![storage.to_owned()];
    let mut seen = 0;
    for _ in 0..MAX_DEPTH {
        let mut below = Vec::new();
        for entry in here.iter().filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten() {
            // Links are reported by another probe.
            let Ok(metadata) = entry.metadata() else { continue };
            if !metadata.is_dir() {
                continue;
            }
            seen += 1;
            if seen > MAX_DIRECTORIES {
                return lacking;
            }
            let rights = Rights::from_metadata(&metadata);
            if !rights.fits(top) {
                lacking.push((entry.path(), rights));
            }
            below.push(entry.path());
        }
        here = below;
    }
    lacking
}

fn diagnose(facts: &SharingFacts) -> Diagnosis {
    let found = Diagnosis::ok("sharing", found(facts));
    let (means, hints): (Vec<_>, Vec<_>) = troubles(facts).into_iter().unzip();
    if means.is_empty() {
        return found;
    }
    let found = found.note(means.join("; "));
    let hints: Vec<String> = hints.into_iter().flatten().collect();
    if hints.is_empty() { found } else { found.hint(hints.join("; ")) }
}

fn found(facts: &SharingFacts) -> String {
    let Rights { mode, owner, group } = facts.top;
    let mut found = if facts.has_list {
        format!("an access control list says who shares the storage (mode {mode:o})")
    } else if facts.top.is_shared() {
        format!("group {group} shares the storage (mode {mode:o})")
    } else {
        format!("the storage is private to user {owner} (mode {mode:o})")
    };
    if let Some((path, rights)) = &facts.lacking {
        let Rights { mode, group, .. } = rights;
        let more = match facts.count {
            1 => String::new(),
            count => format!(", the first of {count} such directories"),
        };
        let path = path.display();
        found = format!("{found}; {path} has mode {mode:o} and group {group}{more}");
    }
    if facts.top.is_shared() && facts.protected {
        found += "; a result of another user is taken over as a copy (fs.protected_hardlinks)";
    }
    found
}

/// Returns the troubles, each with a hint.
fn troubles(facts: &SharingFacts) -> Vec<(String, Option<String>)> {
    let Rights { mode, group, .. } = facts.top;
    let storage = facts.storage.display();
    let mut troubles = Vec::new();
    if !facts.may_write {
        let means = if facts.may_read {
            "you may only read: existing results are used, missing ones fail"
        } else {
            "you may not even read"
        };
        let hint = match (facts.top.is_shared(), facts.is_member) {
            (true, false) if !facts.has_list => {
                format!("be made a member of group {group}, and log in again")
            }
            _ => "have the storage shared by a group that you are in (doc/sharing.md)".to_owned(),
        };
        troubles.push((means.to_owned(), Some(hint)));
    }
    let repair = format!(
        "as the owner: chgrp -R {group} {storage}; chmod -R g+rX {storage}; find {storage} -type d \
         -exec chmod g+ws {{}} +"
    );
    let repair = facts.lacking.is_some().then_some(repair);
    if facts.top.is_shared() && !facts.has_list && mode & SET_GROUP_ID == 0 {
        let means = "new files get their maker's group, not the storage's";
        // The repair of all directories includes this.
        let hint = repair.is_none().then(|| format!("chmod g+s {storage}"));
        troubles.push((means.to_owned(), hint));
    }
    if repair.is_some() {
        troubles.push(("other members of the group may be refused there".to_owned(), repair));
    }
    if mode & 0o002 != 0 {
        let means = "everybody on this host may write, and so replace results";
        troubles.push((means.to_owned(), Some(format!("chmod o-w {storage}"))));
    }
    troubles
}

#[cfg(test)]
mod tests {

    use super::super::tests::summary;
    use super::*;
    use ce_model::probe_diagnosis::Grade;

    #[test]
    fn modes_without_effect_are_reported() {
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
    fn a_storage_that_forbids_programs_or_copies_is_reported() {
        assert_eq!(diagnose_programs(true).grade(), None);
        assert_eq!(diagnose_programs(false).grade(), Some(Grade::Broken));
        assert!(summary(&diagnose_copies(true, true)).1.contains("shares its blocks"));
        assert_eq!(diagnose_copies(false, true).grade(), None);
        assert_eq!(diagnose_copies(false, false).grade(), Some(Grade::Broken));
    }

    const OWN: Rights = Rights { mode: 0o755, owner: 1, group: 10 };

    fn facts(top: Rights) -> SharingFacts {
        SharingFacts {
            storage: "results".into(),
            top,
            may_read: true,
            may_write: true,
            is_member: true,
            has_list: false,
            protected: false,
            lacking: None,
            count: 0,
        }
    }

    fn hint(facts: &SharingFacts) -> String {
        diagnose(facts).trouble.and_then(|trouble| trouble.hint).unwrap_or_default()
    }

    #[test]
    fn private_and_shared_storages_are_well() {
        let private = summary(&diagnose(&facts(OWN)));
        assert_eq!(private, (None, "the storage is private to user 1 (mode 755); ".to_owned()));
        let shared = facts(Rights { mode: 0o2770, ..OWN });
        let text = "group 10 shares the storage (mode 2770)";
        assert_eq!(summary(&diagnose(&shared)), (None, format!("{text}; ")));
        let (grade, text) = summary(&diagnose(&SharingFacts { protected: true, ..shared }));
        assert!(grade.is_none() && text.contains("as a copy"), "{text}");
    }

    #[test]
    fn a_user_without_write_permission_is_told_what_works() {
        let stranger = SharingFacts { may_write: false, is_member: false, ..facts(OWN) };
        let (grade, text) = summary(&diagnose(&stranger));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.contains("existing results are used"), "{text}");
        assert!(hint(&stranger).contains("have the storage shared"));
        let top = Rights { mode: 0o2770, ..OWN };
        let outside = SharingFacts { top, may_read: false, ..stranger };
        assert!(summary(&diagnose(&outside)).1.contains("not even read"));
        assert_eq!(hint(&outside), "be made a member of group 10, and log in again");
    }

    #[test]
    fn modes_that_lock_out_others_are_reported_with_commands() {
        let plain = facts(Rights { mode: 0o775, ..OWN });
        assert!(summary(&diagnose(&plain)).1.contains("get their maker's group"));
        assert_eq!(hint(&plain), "chmod g+s results");
        let listed = SharingFacts { has_list: true, ..plain };
        assert_eq!(diagnose(&listed).grade(), None, "a list has its own way to hand on rights");
        let open = facts(Rights { mode: 0o2777, ..OWN });
        assert!(summary(&diagnose(&open)).1.contains("replace results"));
        let lacking = Some(("results/c_add".into(), Rights { group: 11, ..OWN }));
        let old = SharingFacts { lacking, count: 7, ..facts(Rights { mode: 0o2775, ..OWN }) };
        let (grade, text) = summary(&diagnose(&old));
        assert_eq!(grade, Some(Grade::Note));
        let first = "results/c_add has mode 755 and group 11, the first of 7 such directories";
        assert!(text.contains(first), "{text}");
        let repair = "as the owner: chgrp -R 10 results; chmod -R g+rX results; \
                  find results -type d -exec chmod g+ws {} +";
        assert_eq!(hint(&old), repair);
        let older = SharingFacts { top: Rights { mode: 0o775, ..OWN }, ..old };
        assert_eq!(hint(&older), repair);
    }

    #[test]
    fn directories_without_the_rights_of_the_group_are_found_near_the_top() {
        let dir = tempfile::tempdir().unwrap();
        let chmod = |path: &str, mode| {
            let path = dir.path().join(path);
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        fs::create_dir_all(dir.path().join("c_add/0123/00/deep")).unwrap();
        fs::create_dir(dir.path().join("tmp")).unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        for path in ["", "c_add", "c_add/0123", "tmp"] {
            chmod(path, 0o2775);
        }
        chmod("c_add/0123/00", 0o2755);
        chmod("c_add/0123/00/deep", 0o755);
        let lacking = || {
            let facts = super::facts(&ProbeSite::new(dir.path())).unwrap();
            (facts.lacking.map(|it| it.0), facts.count)
        };
        assert_eq!(lacking(), (Some(dir.path().join("c_add/0123/00")), 1));
        chmod("tmp", 0o775);
        assert_eq!(lacking(), (Some(dir.path().join("c_add/0123/00")), 2));
        chmod("", 0o755);
        assert_eq!(lacking(), (None, 0));
        assert!(super::facts(&ProbeSite::new(&dir.path().join("new"))).is_none());
    }
}
