//! The owners of files that an isolated computation can read and makes, if root starts it: the kernel decides, at each access.
//!
//! Decoys are in a mount namespace of their own.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::sight::{as_each_user, evaluate};
use super::{is_possible, lab};
use crate::fifo;
use crate::lab::Lab;
use crate::needs::{self, ROOT};
use crate::program::through;

/// Whether this is root, who may mount. Else the test is skipped.
pub(crate) fn is_root() -> bool {
    let mut probe = Command::new("unshare");
    let is_root = rustix::process::getuid().is_root()
        && probe.args(["-m", "true"]).status().is_ok_and(|status| status.success());
    if !is_root {
        needs::lacks(ROOT);
    }
    is_root
}

/// Whether the user that executes is who is promised: for root, the file system of the laboratory must have mounts that map
/// owners. Else the test is skipped.
fn has_own_user(lab: &Lab) -> bool {
    if !rustix::process::getuid().is_root() {
        return true;
    }
    let mut doctor = lab.command("ce");
    let doctor = doctor.args(["doctor", "--json"]).env("TMPDIR", lab.path(""));
    let doctor = lab.finish(doctor).exit(0);
    let probes =
        doctor.lines().into_iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let probe = { probes }.find(|probe| probe["probe"] == "files of root").unwrap();
    let is_mapped = probe["hint"].is_null();
    if !is_mapped {
        needs::lacks("mounts that map owners");
    }
    is_mapped
}

/// A directory that every sandbox shows, and that no program needs.
fn visible() -> Option<&'static str> {
    ["/etc/opt", "/usr/games", "/usr/local/games", "/usr/src", "/etc/skel"]
        .into_iter()
        .find(|path| Path::new(path).is_dir())
}

/// Ways in which a file that only root may read appears while a computation runs; and one that everybody may read.
const APPEARS: &str = r#"
    umask 077
    echo secret >created
    echo secret >away/one; mv away/one renamed
    echo secret >away/two; mv -f away/two replaced
    echo secret >away/three; ln away/three linked
    echo secret >bound; mount --bind LAB/data/secret bound
    chmod 600 restricted
    mkdir room; echo secret >room/file; chmod 644 room/file
    echo secret >group; chmod 640 group
    ln -s away/three link
    chmod 700 closed
    echo secret >late; chmod 444 late; chmod 400 late
    umask 022
    echo everybody >open"#;

#[test]
fn files_that_only_root_may_read_stay_unreadable() {
    let Some(place) = visible().filter(|_| is_possible() && is_root()) else { return };
    let script = format!(
        r#"echo ready >LAB/ready; read go <LAB/go
        for file in {place}/* {place}/*/*; do cat "$file"; done >"$2" 2>/dev/null
        cat "$1" >>"$2""#
    );
    let lab = lab("write LAB/ready\nwrite LAB/go\n", &script);
    let Some(lab) = lab.filter(has_own_user) else { return };
    let lab = lab.data("secret", "secret\n");
    fs::set_permissions(lab.path("data/secret"), fs::Permissions::from_mode(0o600)).unwrap();
    for name in ["ready", "go"] {
        fifo::make(&lab.path(name));
    }
    let appears = APPEARS.replace("LAB/", lab.path("").to_str().unwrap());
    let (ready, go) = (lab.path("ready"), lab.path("go"));
    let starter = format!(
        r#"mount -t tmpfs -o mode=0755 tmpfs {place} && cd {place} || exit 99
        mkdir -m 700 away; mkdir closed; echo secret >closed/file
        echo replaced >replaced; echo restricted >restricted
        echo secret >before; chmod 600 before
        (cd "$OLDPWD" && exec "$@") & run=$!
        read ready <{}
        {appears}
        echo go >{}
        wait $run"#,
        ready.display(),
        go.display()
    );
    let command = through(&["unshare", "-m", "sh", "-c", &starter, "sh"], &lab.evaluation(&[]));
    lab.finish(&mut { command }).exit(0);
    assert_eq!(lab.output(), "everybody\n17\n");
}

/// Reads and writes all that an execution has, and opens its log again.
const ALL: &str = r#"set -e
    cat "$1/file" "$1/deep/file" "$(dirname "$0")/helper" >"$2"
    mkdir "$3/deep"; cp "$2" "$3/deep/file"; ln -s deep/file "$3/link"
    echo told >/dev/stderr; echo told >>/proc/self/fd/1
    for place in "$HOME" /tmp /dev/shm; do echo mine >"$place/new"; cat "$place/new"; done >>"$2"
    stat -c '%U %a' "$2" >>"$2"; id -u >>"$2""#;

/// A task of a computation whose files only their owner may read, with a directory as its input.
fn closed() -> Lab {
    let lab = Lab::task("Inputs: 'x'\n(look INPUT('x'))[0]").isolated();
    let lab = lab.computation("look", "a", "b c/", ALL);
    let lab = lab.file("computations/look/helper", "helper\n");
    let data = lab.path("data/x");
    fs::remove_file(&data).unwrap();
    fs::create_dir_all(data.join("deep")).unwrap();
    for file in ["file", "deep/file"] {
        fs::write(data.join(file), "17\n").unwrap();
        fs::set_permissions(data.join(file), fs::Permissions::from_mode(0o400)).unwrap();
    }
    lab.commit()
}

#[test]
fn files_given_to_a_computation_are_its_own_whatever_their_modes() {
    if !is_possible() {
        return;
    }
    let lab = closed();
    if !has_own_user(&lab) {
        return;
    }
    // Neither the storage, nor anything in it, is open to others; and it is below a directory that is not.
    let closed = "umask 077; chmod 700 ..; exec \"$@\"";
    let mut command = through(&["sh", "-c", closed, "sh"], &lab.evaluation(&[]));
    lab.finish(&mut command).exit(0);
    let output = lab.output();
    let user = rustix::process::getuid().as_raw();
    assert!(output.starts_with("17\n17\nhelper\nmine\nmine\nmine\n"), "{output}");
    assert!(output.ends_with(&format!(" 600\n{user}\n")), "{output}");
    let mut left = vec![lab.path("storage")];
    while let Some(path) = left.pop() {
        let about = fs::symlink_metadata(&path).unwrap();
        assert_eq!(about.uid(), user, "{}", path.display());
        assert_eq!(about.gid(), rustix::process::getgid().as_raw(), "{}", path.display());
        let is_open = !about.is_symlink() && about.permissions().mode() & 0o077 != 0;
        assert!(!is_open || about.permissions().mode() & 0o222 == 0, "{}", path.display());
        if about.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(lab.is_tidy());
}

#[test]
fn files_made_in_a_shared_storage_belong_to_its_group() {
    let Some(lab) = lab("", r#"cat "$1" >"$2""#) else { return };
    if !is_root() {
        return;
    }
    let lab = lab.with_storage();
    let group = 54_321;
    std::os::unix::fs::chown(lab.path("storage"), None, Some(group)).unwrap();
    fs::set_permissions(lab.path("storage"), fs::Permissions::from_mode(0o2775)).unwrap();
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.output(), "17\n");
    let (name, _) =
        lab.results().into_iter().find(|(name, _)| name.starts_with("c_look/")).unwrap();
    let about = fs::metadata(lab.path("storage").join(name)).unwrap();
    assert_eq!((about.uid(), about.gid()), (0, group));
}

#[test]
fn granted_paths_have_the_permissions_of_the_user() {
    let access = "read LAB/data/closed\nwrite LAB/data/open\n";
    let script = r#"cat LAB/data/closed/file >"$2"; echo new >LAB/data/open/new; cat "$1" >>"$2""#;
    let Some(lab) = lab(access, script).filter(has_own_user) else { return };
    fs::create_dir(lab.path("data/closed")).unwrap();
    fs::write(lab.path("data/closed/file"), "closed\n").unwrap();
    fs::create_dir(lab.path("data/open")).unwrap();
    fs::set_permissions(lab.path("data/closed"), fs::Permissions::from_mode(0o700)).unwrap();
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.output(), "closed\n17\n");
    let user = rustix::process::getuid().as_raw();
    assert_eq!(fs::metadata(lab.path("data/open/new")).unwrap().uid(), user);
}

#[test]
fn root_is_mapped_to_nobody_and_other_users_to_themselves() {
    let lab = lab("", r#"read in out count </proc/self/uid_map; echo "$(id -u) $out" >"$2""#);
    let Some(lab) = lab.filter(has_own_user) else { return };
    as_each_user(&lab, |user| {
        let user = user.unwrap_or_else(|| rustix::process::getuid().as_raw());
        let outside = if user == 0 { 65534 } else { user };
        assert_eq!(evaluate(&lab, Some(user).filter(|it| *it != 0)), format!("{user} {outside}\n"));
    });
}
