//! A sandbox looks like a host: programs find their user, the address of the host, and terminals.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::sight::{anew, as_each_user, evaluate};
use super::{is_possible, lab};
use crate::lab::Lab;
use crate::needs::needs;

/// A user that no file of the host knows, as on a cluster whose users a server knows.
const UNKNOWN: u32 = 54321;

/// What programs ask for, as Python does.
const ASK: &str = r#"exec >"$2" 2>&1
    /usr/bin/python3 -c 'import getpass, grp, os, pwd, socket
print(pwd.getpwuid(os.getuid()).pw_uid == os.getuid(), len(getpass.getuser()) > 0, grp.getgrgid(os.getgid()).gr_gid == os.getgid())
print(socket.gethostbyname(socket.gethostname()))
master, slave = os.openpty()
os.write(master, b"typed\n")
print(os.ttyname(slave), os.read(slave, 10), sorted(os.listdir("/dev/pts")))'"#;

const ANSWERS: &str = "True True True\n127.0.0.1\n/dev/pts/0 b'typed\\n' ['0', 'ptmx']\n";

#[test]
fn programs_find_their_user_the_host_and_terminals() {
    needs(&["python3"]);
    let Some(lab) = lab("", ASK) else { return };
    as_each_user(&lab, |user| assert_eq!(evaluate(&lab, user), ANSWERS, "{user:?}"));
    if rustix::process::getuid().is_root() {
        lab.finish(&mut anew(&lab, Some(UNKNOWN), &[])).exit(0);
        assert_eq!(lab.output(), ANSWERS);
    }
}

#[test]
fn no_execution_sees_the_terminals_of_another_one() {
    needs(&["python3"]);
    let script = r#"exec >"$2" 2>&1
        /usr/bin/python3 -c 'import os; os.openpty(); print(sorted(os.listdir("/dev/pts")))'; ls /dev/pts"#;
    if !is_possible() {
        return;
    }
    let text = "SWEEP((look n) :over n 1..4)";
    let lab = Lab::task("Inputs: 'x'\nINPUT('x')").isolated().computation("look", "n", "b", script);
    let mut lab = lab.one_text(text).commit();
    lab.inputs.clear();
    lab.ce_run(&["--no-sync", "-j1"]).exit(0);
    let seen = lab.results().into_iter().filter(|(name, _)| name.starts_with("c_look/"));
    let seen: Vec<String> =
        seen.map(|(_, contents)| String::from_utf8(contents).unwrap()).collect();
    assert_eq!(seen, vec!["['0', 'ptmx']\nptmx\n"; 4]);
}

#[test]
fn a_root_of_its_own_knows_the_user_too() {
    if !is_possible() || !rustix::process::getuid().is_root() {
        return;
    }
    let lab = Lab::task("Inputs: 'x', 'system'\n(look INPUT('x') INPUT('system'))[0]").isolated();
    fs::remove_file(lab.path("data/system")).unwrap();
    super::roots::install(&lab.path("data/system"), &["sh", "cat", "ls"]);
    fs::create_dir(lab.path("data/system/etc")).unwrap();
    fs::write(lab.path("data/system/etc/passwd"), "root:x:0:0::/:").unwrap();
    let script = r#"exec >"$3" 2>&1; cat /etc/passwd /etc/group /etc/hosts; ls /dev/pts"#;
    let lab = lab.computation("look", "x system", "b", script);
    let lab = lab.file("computations/look/access", "root system\n").commit();
    lab.finish(&mut anew(&lab, Some(UNKNOWN), &[])).exit(0);
    let group = rustix::process::getgid().as_raw();
    let user = format!("compeval:x:{UNKNOWN}:{group}::/home/compeval:/bin/sh");
    let expected =
        format!("root:x:0:0::/:\n{user}\ncompeval:x:{group}:\n127.0.0.1\tsandbox\nptmx\n");
    assert_eq!(lab.output(), expected);
}

/// Programs that have stopped for lack of these.
#[test]
fn ordinary_programs_run() {
    let has = |program: &str| {
        ["/usr/bin", "/bin"].iter().any(|dir| Path::new(dir).join(program).exists())
    };
    let can_import = |module: &str| {
        let ran =
            Command::new("/usr/bin/python3").args(["-c", &format!("import {module}")]).output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    let mut scripts = vec!["id -un >/dev/null || id -u"];
    for (is_there, script) in [
        (has("script"), "script -qec 'tty' /dev/null | grep -q /dev/pts/0"),
        (has("ssh-keygen"), "ssh-keygen -q -t ed25519 -N '' -f key"),
        (
            has("git"),
            "git init -q r && git -C r -c user.name=a -c user.email=b commit -q --allow-empty -m x",
        ),
        (
            has("mpirun"),
            "mpirun --allow-run-as-root --oversubscribe -np 2 hostname | grep -c sandbox | grep -qx 2",
        ),
        (has("java"), "java -version 2>/dev/null"),
        (
            can_import("pexpect"),
            "/usr/bin/python3 -c 'import pexpect; assert pexpect.run(\"echo hello\") == b\"hello\\r\\n\"'",
        ),
        (
            can_import("matplotlib"),
            "/usr/bin/python3 -c 'import matplotlib; matplotlib.use(\"svg\"); import matplotlib.pyplot as p; p.plot([1, 2]); p.savefig(\"f.svg\")' 2>/dev/null",
        ),
    ] {
        if is_there {
            scripts.push(script);
        }
    }
    let all: String = scripts
        .iter()
        .map(|script| format!("{script} || echo 'failed: {}'\n", script.replace('\'', "")))
        .collect();
    let Some(lab) = lab("", &format!("exec >\"$2\" 2>&1\n{all}echo done\n")) else { return };
    as_each_user(&lab, |user| {
        let said = evaluate(&lab, user);
        let failed: Vec<&str> = said.lines().filter(|line| line.starts_with("failed")).collect();
        assert!(failed.is_empty() && said.ends_with("done\n"), "{user:?}: {said}");
    });
}
