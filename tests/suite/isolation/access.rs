//! The grants of the file `access`, and the advice if it grants too little.

use std::fs;
use std::path::Path;

use super::sight::{as_each_user, evaluate};
use super::{executed, lab, task};
use crate::lab::Lab;

#[test]
fn paths_and_variables_are_granted_line_by_line() {
    let access = "# a tool and its licence\nread LAB/data\nwrite LAB/data/out\nenv GIVEN_*\n";
    let script = r#"cat LAB/data/x >"$2"; echo "$GIVEN_ONE$GIVEN_TWO$OTHER" >>"$2"
        echo told >LAB/data/out/new; ! echo x 2>&- >LAB/data/no; ls LAB >>"$2""#;
    let Some(lab) = lab(access, script) else { return };
    fs::create_dir(lab.path("data/out")).unwrap();
    let mut command = lab.evaluation(&[]);
    command.envs([("GIVEN_ONE", "1"), ("GIVEN_TWO", "2"), ("OTHER", "3")]);
    lab.finish(&mut command).exit(0);
    assert_eq!(lab.output(), "17\n12\ndata\n");
    assert_eq!(fs::read_to_string(lab.path("data/out/new")).unwrap(), "told\n");
    assert!(!lab.path("data/no").exists());
    let lines: Vec<String> = serde_json::from_value(executed(&lab)["access"].clone()).unwrap();
    let place = |line: &str| line.replace("LAB/", lab.path("").to_str().unwrap());
    assert_eq!(
        lines,
        [place("read LAB/data"), place("write LAB/data/out"), "env GIVEN_*".to_owned()]
    );
}

#[test]
fn a_device_is_granted() {
    let devices = ["/dev/tty", "/dev/ptmx", "/dev/kmsg", "/dev/fuse"];
    let Some(device) = devices.into_iter().find(|path| Path::new(path).exists()) else { return };
    let script = format!(r#"ls {device} >"$2""#);
    let Some(with) = lab(&format!("device {device}\n"), &script) else { return };
    with.ce_run(&[]).exit(0);
    assert_eq!(with.output(), format!("{device}\n"));
    let ran = task("", &script);
    let ran = ran.ce_run(&[]).exit(1);
    ran.says(&format!("commit the line \"device {device}\" in the computation's file access"));
}

#[test]
fn a_missing_path_is_reported_with_the_line_of_access_that_grants_it() {
    let Some(lab) = lab("", r#"cat LAB/data/x "$1" >"$2""#) else { return };
    lab.ce_run(&[]).exit(1).says(
        "try: its sandbox does not show that; if it needs it, commit the line \"read LAB/data/x\" in",
    );
    let write = task("", r#"echo 1 >/etc/new; cp "$1" "$2"; exit 2"#);
    write.ce_run(&[]).exit(1).says("commit the line \"write /etc\" in");
    let nothing = task("", "cat /nowhere/x; exit 1");
    let ran = nothing.ce_run(&[]).exit(1);
    assert!(!ran.stderr.contains("try:"), "{}", ran.stderr);
}

#[test]
fn a_missing_interpreter_is_reported_with_the_line_of_access_that_grants_it() {
    let Some(lab) = lab("", "") else { return };
    let shell = lab.path("data/shell");
    std::os::unix::fs::symlink("/bin/sh", &shell).unwrap();
    let exec = format!("#!{}\ncp \"$1\" \"$2\"\n", shell.display());
    let lab = lab.file("computations/look/exec", exec).commit_again();
    let ran = lab.ce_run(&[]).exit(1).says("its exec cannot be started");
    ran.says("commit the line \"read LAB/data/shell\" in the computation's file access");
    let line = format!("read {}\n", shell.display());
    let lab = lab.file("computations/look/access", line).commit_again();
    lab.ce_run(&[]).exit(0);
}

#[test]
fn mistakes_in_access_are_reported_before_any_call_runs() {
    let text = "Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))[0]";
    let lab = Lab::task(text).isolated();
    let lab = lab.file("computations/add/access", "read /nowhere/tool\n").commit();
    for at in [&[][..], &["--at", "HEAD"]] {
        let ran = lab.ce_run(at).exit(2);
        ran.says("computations/add/access: /nowhere/tool does not exist on this host");
    }
    lab.run("ce-sym", &[]).exit(0);
    lab.ce_run(&["-n"]).exit(3);
    lab.called();
    assert!(!lab.path("storage").exists());
}

#[test]
fn a_path_is_granted_with_the_mounts_below_it() {
    let script = r#"ls -d /sys/class /sys/devices/system/cpu >"$2"
        for file in /sys/kernel/uevent_seqnum /sys/devices/system/cpu/online; do cat $file >/dev/null || exit; done
        for place in /sys /sys/devices/system/cpu; do ! echo x 2>&- >$place/new || exit; done"#;
    let Some(lab) = lab("read /sys\n", script) else { return };
    as_each_user(&lab, |user| {
        assert_eq!(evaluate(&lab, user), "/sys/class\n/sys/devices/system/cpu\n");
    });
}

#[test]
fn files_of_dev_are_refused_before_anything_runs() {
    for line in ["read /dev", "write /dev", "read /dev/null", "write /dev/pts"] {
        let Some(lab) = lab(&format!("{line}\n"), r#"cp "$1" "$2""#) else { return };
        let path = line.split(' ').next_back().unwrap();
        lab.ce_run(&[]).exit(2).says(&format!(
            "computations/look/access: {path} is in /dev, and only devices of it can be granted"
        ));
        assert!(!lab.path("storage").exists());
        // Without isolation the line has no effect.
        lab.ce_run(&["--no-isolate"]).exit(0);
    }
    let Some(lab) = lab("write /dev/shm\n", r#"ls -d /dev/shm >"$2""#) else { return };
    lab.ce_run(&[]).exit(0);
}
