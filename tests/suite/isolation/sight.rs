//! The files and the system that an isolated computation sees, and its possible changes to them.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::{executed, is_possible, lab, task, uncommitted, without_namespaces};
use crate::golden;
use crate::lab::{Lab, Library};
use crate::repository::{self, LAB};

/// Runs as this user, and as nobody in place of root.
pub(super) fn as_each_user(lab: &Lab, act: impl Fn(Option<u32>)) {
    act(None);
    if rustix::process::getuid().is_root()
        && let Some(user) = lab.another_user()
    {
        act(Some(user));
    }
}

/// Evaluates anew as a user; returns the output of the computation.
pub(super) fn evaluate(lab: &Lab, user: Option<u32>) -> String {
    lab.finish(&mut anew(lab, user, &[])).exit(0);
    lab.output()
}

/// An evaluation as somebody, in a new storage.
pub(super) fn anew(lab: &Lab, user: Option<u32>, options: &[&str]) -> Command {
    drop(fs::remove_dir_all(lab.path("storage")));
    let mut chmod = Command::new("chmod");
    assert!(chmod.args(["-R", "a+rwX"]).arg(lab.path("")).status().unwrap().success());
    let mut command = lab.evaluation(options);
    user.map(|user| command.uid(user));
    command
}

#[test]
fn a_computation_sees_only_its_own_files() {
    let script = r#"exec >"$2" 2>&1
        echo "$0 $*"; pwd; ls -A; echo "home: $HOME $(ls -A "$HOME")"; hostname
        env | cut -d= -f1 | LC_ALL=C sort | tr '\n' ' '; echo
        for dir in / /inputs /outputs /computation; do echo "$dir:" $(ls "$dir"); done
        for path in LAB LAB/storage LAB/data/x /root /opt /var/lib /run; do ls "$path"; done
        cat "$1"; echo "process $$"
        readlink /proc/self/fd/0 /proc/self/fd/1"#;
    let Some(lab) = lab("", script) else { return };
    as_each_user(&lab, |user| {
        let seen = evaluate(&lab, user)
            .replace(lab.path("").to_str().unwrap().trim_end_matches('/'), "LAB");
        // The host may have any of these.
        let seen = seen.replace(" lib32", "").replace(" lib64", "").replace(" libx32", "");
        golden::check("isolation/sight.txt", &seen);
    });
}

#[test]
fn a_computation_does_not_see_files_shown_to_the_one_before() {
    if !is_possible() {
        return;
    }
    let text = "Inputs: 'x'\n(one (granted (two INPUT('x') INPUT('x'))[0])[0])[0]";
    let script = r#"for last; do :; done; { ls /inputs; ls -d /var/lib 2>&-; cat "$1"; } >"$last""#;
    let mut lab = Lab::task(text).isolated();
    for (name, inputs) in [("one", "a"), ("granted", "a"), ("two", "a b")] {
        lab = lab.computation(name, inputs, "out", script);
    }
    let lab = lab.file("computations/granted/access", "read /var/lib\n").commit();
    lab.ce_run(&["-j1"]).exit(0);
    assert_eq!(lab.output(), "00\n00\n/var/lib\n00\n01\n17\n");
}

#[test]
fn a_computation_can_write_only_its_outputs() {
    let script = r#"exec 2>"$2"
        echo new >"$1"; rm "$1"; chmod 777 "$1"
        echo new >/computation/exec; touch /computation/new /inputs/new /usr/new /etc/new /new
        echo 1 >/proc/sys/vm/drop_caches
        mknod /tmp/null c 1 3; hostname other; mount -t tmpfs tmpfs /tmp
        mount -o remount,rw /usr; umount /tmp
        unshare -Urm sh -c 'mount -o remount,bind,rw /usr && touch /usr/new'
        for place in /tmp "$HOME" /dev/shm /outputs; do echo mine >"$place/extra"; done
        sed -i 's/^[^ ]*: [0-9]*: //' "$2"; sleep 0 & echo done >>"$2""#;
    let Some(lab) = lab("", script) else { return };
    let exec = fs::read(lab.path("task/computations/look/exec")).unwrap();
    as_each_user(&lab, |user| {
        let refused = evaluate(&lab, user);
        assert!(refused.ends_with("done\n"), "{refused}");
        assert!(refused.lines().count() > 17, "each is refused\n{refused}");
        assert!(!refused.contains("extra"), "{refused}");
        assert_eq!(fs::read(lab.path("task/computations/look/exec")).unwrap(), exec);
        assert_eq!(fs::read_dir(lab.path("task/computations/look")).unwrap().count(), 3);
        assert_eq!(lab.results().len(), 3, "the input, the output, and the job's");
        assert!(lab.is_tidy());
    });
}

/// A computation that says something to a port of this host.
fn calling(access: &str) -> Option<(TcpListener, Lab)> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("bash -c 'echo hello >/dev/tcp/127.0.0.1/{port}' && cp \"$1\" \"$2\"");
    Some((listener, lab(access, &script)?))
}

#[test]
fn an_isolated_call_has_no_network() {
    let Some((_listener, lab)) = calling("") else { return };
    lab.ce_run(&[]).exit(1).says("Connection refused");
}

#[test]
fn the_network_can_be_granted() {
    let Some((listener, lab)) = calling("network\n") else { return };
    lab.ce_run(&[]).exit(0);
    let mut heard = String::new();
    listener.accept().unwrap().0.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "hello\n");
    assert_eq!(executed(&lab)["access"].to_string(), r#"["network"]"#);
}

#[test]
fn a_call_finds_no_files_of_the_one_before() {
    let script = r#"ls -A /tmp "$HOME" /dev/shm /outputs >"$2"
        for place in /tmp "$HOME" /dev/shm /outputs; do echo mine >"$place/extra"; done; cat "$1" >>"$2""#;
    let Some(lab) = lab("", script) else { return };
    lab.ce_run(&["-j1"]).exit(0);
    let first = lab.output();
    fs::write(lab.path("data/x"), "another\n").unwrap();
    lab.ce_run(&["-j1"]).exit(0);
    assert_eq!(lab.output(), first.replace("17", "another"));
    assert!(lab.is_tidy());
}

#[test]
fn a_call_finds_no_files_of_the_one_before_in_the_same_run() {
    let script = r#"cat "$1" >"$2"; ls -A /tmp /outputs >>"$2"
        mkdir /tmp/left /outputs/left; echo mine >/tmp/extra; echo mine >/outputs/extra"#;
    let text = "Inputs: 'x'\n(look (look INPUT('x'))[0])[0]";
    let Some(_) = lab("", "") else { return };
    let lab = Lab::task(text).computation("look", "a", "b", script).isolated().commit();
    lab.ce_run(&["-j1"]).exit(0);
    assert_eq!(executed(&lab)["isolation"], "namespaces");
    let seen = "/outputs:\n00\n\n/tmp:\n";
    assert_eq!(lab.output(), format!("17\n{seen}{seen}"));
}

#[test]
fn the_record_says_that_isolation_was_turned_off() {
    let lab = task("", r#"pwd >"$2""#);
    lab.ce_run(&["--no-isolate"]).exit(0);
    assert_ne!(lab.output(), "/tmp\n");
    let executed = executed(&lab);
    assert_eq!(executed["isolation"], "none");
    assert!(executed.get("access").is_none());
}

#[test]
fn a_host_that_cannot_isolate_is_reported_once() {
    let Some(_) = lab("", "") else { return };
    let text = "Inputs: 'x', 'y'\n(add (look INPUT('x'))[0] (mul INPUT('x') INPUT('y'))[0])[0]";
    let lab = Lab::task(text).computation("look", "a", "b", r#"cp "$1" "$2""#).isolated().commit();
    let mut command = without_namespaces(&lab);
    let ran = lab.finish(&mut command).exit(0);
    assert_eq!(ran.stderr.matches("not isolated").count(), 1, "{}", ran.stderr);
    ran.says("warning: computations are not isolated here: cannot create namespaces: No space")
        .says("\n  try: sysctl user.max_user_namespaces is 0");
    assert_eq!(executed(&lab)["isolation"], "none");
}

#[test]
fn a_commit_without_changes_of_the_computation_costs_no_execution() {
    let Some(lab) = lab("", r#"cp "$1" "$2""#) else { return };
    lab.ce_run(&[]).exit(0).says("1 call: 1 computed");
    let lab = lab.file("README", "").commit_again();
    lab.ce_run(&["-n"]).exit(0).says("1 call: 1 taken over");
    lab.ce_run(&[]).exit(0).says("1 call: 1 taken over");
}

#[test]
fn files_that_git_does_not_record_are_hidden() {
    let Some(lab) = lab("", r#"ls /computation >"$2""#) else { return };
    let lab = lab.file(".gitignore", "*.tmp\n").commit_again();
    let lab = lab.file("computations/look/old.tmp", "");
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.output(), "exec\ninputs\noutputs\n");
}

#[test]
fn a_computation_is_visible_from_any_repository() {
    let script = r#"cp "$1" "$2""#;
    for library in [Library::Submodule, Library::Submodules] {
        if lab("", script).is_none() {
            return;
        }
        uncommitted("", script).commit_with(library).ce_run(&[]).exit(0);
    }
    // One of its own; the task's repository knows only its commit.
    let lab = uncommitted("", script);
    repository::commit(&lab.path("task/computations"), LAB, "computations\n");
    lab.commit().ce_run(&[]).exit(0);
}
