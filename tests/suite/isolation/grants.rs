//! Granted paths lead nowhere else: not through a link that a computation could have made, and not to processes of the host.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;

use super::owners::is_root;
use super::sight::as_each_user;
use super::{is_possible, lab, task};
use crate::lab::Lab;
use crate::program::{Ran, through};

/// Evaluates as somebody, in a new storage.
fn run(lab: &Lab, user: Option<u32>) -> Ran<'_> {
    drop(fs::remove_dir_all(lab.path("storage")));
    let mut command = lab.evaluation(&[]);
    user.map(|user| command.uid(user));
    lab.finish(&mut command)
}

/// Gives a directory of the laboratory to somebody, with this mode.
fn give(lab: &Lab, name: &str, user: Option<u32>, mode: u32) {
    let path = lab.path(name);
    std::os::unix::fs::lchown(&path, user, user).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn grants_of_kernel_file_systems_are_refused_before_any_call_runs() {
    let lines = [
        "read /proc",
        "read /proc/self/root",
        "write /proc/self/cwd",
        "read /proc/1/root/etc",
        "read //proc/./sys",
        "write /sys",
        "write /sys/kernel",
    ];
    for line in lines {
        let Some(lab) = lab(&format!("{line}\n"), r#"cp "$1" "$2""#) else { return };
        lab.ce_run(&[]).exit(2).says(" cannot be granted: it reaches beyond files");
        assert!(!lab.path("storage").exists(), "{line}");
        // Without isolation the line has no effect.
        lab.ce_run(&["--no-isolate"]).exit(0);
    }
}

/// Links that lead to the secret or elsewhere, by their names in `data`.
const LINKS: [(&str, &str); 8] = [
    ("absolute", "LAB/secret"),
    ("relative", "../secret"),
    ("chained", "relative"),
    ("file", "../secret/key"),
    ("climbing", "../../../../../../../../../../LAB/secret"),
    ("root", "/"),
    ("processes", "/proc/self/root"),
    ("ring", "ring"),
];

/// Each kind of grant, through each kind of link, in a directory of each kind in which a computation may make links.
#[test]
fn a_link_that_a_computation_could_have_made_is_not_followed() {
    if !is_possible() {
        return;
    }
    for word in ["read", "write"] {
        for (name, _) in LINKS {
            // Places that root's computations may write count for root, and places that others may write count for all.
            let script = r#"ls LAB/data >"$2""#;
            let lab = task(&format!("write LAB/data\n{word} LAB/data/{name}\n"), script);
            fs::create_dir(lab.path("secret")).unwrap();
            fs::write(lab.path("secret/key"), "secret").unwrap();
            let place = lab.path("").display().to_string();
            for (link, to) in LINKS {
                let to = to.replace("/LAB", &place).replace("LAB", place.trim_end_matches('/'));
                symlink(to, lab.path("data").join(link)).unwrap();
            }
            as_each_user(&lab, |user| {
                for mode in [0o755, 0o775, 0o1777] {
                    give(&lab, "", user, 0o755);
                    give(&lab, "data", user, mode);
                    let ran = run(&lab, user).exit(2);
                    let file = if name == "file" { "secret/key" } else { "secret" };
                    match name {
                        "root" | "processes" => drop(ran.says("cannot be granted")),
                        "ring" => drop(ran.says("Too many levels of symbolic links")),
                        _ => drop(
                            ran.says("is a symbolic link that a computation could have made")
                                .says(&format!("grant the path that it leads to, LAB/{file}")),
                        ),
                    }
                    assert!(!lab.path("storage").exists(), "{word} {name}");
                }
            });
        }
    }
}

#[test]
fn a_link_of_the_host_is_followed() {
    let Some(lab) = lab("read LAB/data/here\n", r#"cat LAB/data/here/key >"$2""#) else { return };
    fs::create_dir(lab.path("secret")).unwrap();
    fs::write(lab.path("secret/key"), "told\n").unwrap();
    symlink(lab.path("secret"), lab.path("data/here")).unwrap();
    // A link in a directory that only somebody else may write: root's, for all others; as root, the same.
    if rustix::process::getuid().is_root() {
        give(&lab, "data", None, 0o755);
        run(&lab, None).exit(0);
        assert_eq!(lab.output(), "told\n");
    } else {
        run(&lab, None).exit(2);
    }
}

/// A computation replaces a granted directory by a link, while the next one waits for it.
#[test]
fn a_link_that_a_computation_put_there_meanwhile_is_not_followed() {
    if !is_possible() {
        return;
    }
    let lab = Lab::task("Inputs: 'x'\n(take (put INPUT('x'))[0])[0]").isolated();
    let place = lab.path("").display().to_string();
    let here = |text: &str| text.replace("LAB", place.trim_end_matches('/'));
    let put = here(r#"rmdir LAB/data/ref; ln -s LAB/secret LAB/data/ref; cp "$1" "$2""#);
    let take = here(r#"cat LAB/data/ref/key >"$2"; echo x >LAB/data/ref/new"#);
    let lab = lab
        .computation("put", "a", "b", &put)
        .file("computations/put/access", here("write LAB/data\n"))
        .computation("take", "a", "b", &take)
        .file("computations/take/access", here("write LAB/data/ref\n"))
        .commit();
    fs::create_dir(lab.path("secret")).unwrap();
    fs::write(lab.path("secret/key"), "secret").unwrap();
    as_each_user(&lab, |user| {
        drop(fs::remove_file(lab.path("data/ref")));
        fs::create_dir(lab.path("data/ref")).unwrap();
        for name in ["", "data", "data/ref", "secret"] {
            give(&lab, name, user, 0o755);
        }
        let ran = run(&lab, user).exit(1);
        ran.says("which a computation could have made, to").says("grant that path itself");
        assert!(!lab.path("secret/new").exists());
    });
}

#[test]
fn a_setuid_bit_cannot_be_set_in_a_granted_directory() {
    let script = r#"cd LAB/data; exec 2>/dev/null
        cp /bin/true new; mkdir dir
        for mode in 4755 2755 6755; do chmod $mode new && echo "chmod $mode"; done
        chmod 2755 dir && echo "a directory"; install -m 4755 /bin/true other && echo install
        chmod 1755 new && echo sticky; cp "$1" "$2"; exit 0"#;
    let Some(lab) = lab("write LAB/data\n", script) else { return };
    as_each_user(&lab, |user| {
        give(&lab, "data", user, 0o755);
        give(&lab, "", user, 0o755);
        run(&lab, user).exit(0);
        for entry in fs::read_dir(lab.path("data")).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o6000, 0, "{}", entry.path().display());
            if entry.file_name() != "x" && entry.file_name() != "y" {
                drop(fs::remove_file(entry.path()).or_else(|_| fs::remove_dir(entry.path())));
            }
        }
        let log = lab.storage().into_iter().find(|name| name.contains("/log/"));
        assert_eq!(log.map(|log| lab.stored(&log)), Some("sticky\n".to_owned()));
    });
}

/// Below a granted directory are a `/proc`, the kernel's objects, and two mounts at one place. They are mounts of a namespace of the test's own.
#[test]
fn mounts_below_a_granted_directory_cannot_change_the_kernel() {
    let script = r#"cd LAB/data/chroot; { ls proc; cat both/file; ls -d sys/kernel; } >"$2" 2>&1
        for file in proc/sysrq-trigger sys/power/state sys/kernel/profiling sys; do [ ! -w $file ] || echo "$file" >>"$2"; done"#;
    let Some(lab) = lab("write LAB/data\n", script) else { return };
    if !is_root() {
        return;
    }
    let mounts = "cd ../data && mkdir chroot chroot/proc chroot/sys chroot/both &&
        mount -t proc proc chroot/proc && mount -t sysfs sys chroot/sys && mount -t tmpfs one chroot/both &&
        mount -t tmpfs two chroot/both && echo upper >chroot/both/file && cd - >/dev/null && exec \"$@\"";
    let run = lab.evaluation(&[]);
    let mut command =
        through(&["unshare", "-m", "--propagation", "private", "sh", "-c", mounts, "sh"], &run);
    lab.finish(&mut command).exit(0);
    assert_eq!(lab.output(), "upper\nsys/kernel\n");
}
