//! Systems that are values: `root` and `path` in the file `access`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::{executed, is_possible, without_namespaces};
use crate::golden;
use crate::lab::Lab;

/// Copies programs of this host into a directory, with the libraries that they need, as a root of merged `/usr`.
pub(crate) fn install(root: &Path, programs: &[&str]) {
    let mut files = BTreeSet::new();
    for program in programs {
        let paths = ["/usr/bin", "/bin"].map(|dir| Path::new(dir).join(program));
        let path = paths.iter().find(|path| path.exists()).unwrap();
        let output = Command::new("ldd").arg(path).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let words = text.split_whitespace().filter(|word| word.starts_with('/'));
        files.extend(words.map(str::to_owned));
        copy(path, &root.join("usr/bin").join(program));
    }
    for name in &files {
        let inside = name.trim_start_matches("/usr").trim_start_matches('/');
        copy(Path::new(name), &root.join("usr").join(inside));
    }
    for name in ["bin", "sbin", "lib", "lib32", "lib64"] {
        symlink(format!("usr/{name}"), root.join(name)).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(from, to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A task of one computation, with the inputs `x` and `system`, a directory that is its root.
pub(super) fn lab(access: &str, script: &str) -> Option<Lab> {
    if !is_possible() {
        return super::lab("", "");
    }
    let lab = Lab::task("Inputs: 'x', 'system'\n(look INPUT('x') INPUT('system'))[0]").isolated();
    fs::remove_file(lab.path("data/system")).unwrap();
    install(&lab.path("data/system"), &["sh", "ls", "cat", "chmod", "rm"]);
    let place = lab.path("").display().to_string();
    let here = |text: &str| text.replace("LAB", place.trim_end_matches('/'));
    let lab = lab.computation("look", "x system", "b", &here(script));
    Some(lab.file("computations/look/access", format!("root system\n{}", here(access))))
}

#[test]
fn a_root_replaces_the_system_of_the_host() {
    let script = r#"exec >"$3" 2>&1
        for dir in / /usr /etc /home /home/ada /inputs /opt /outputs /var /var/tmp /tmp /srv; do
            echo "$dir:" $(ls -A "$dir"); done
        ls -d /usr/share /usr/lib/git-core /usr/bin/env /nix
        cat /etc/passwd /etc/motd /etc/link /VERSION
        ls /dev/null /proc/self/status
        : >/dev/null && echo "$PATH""#;
    let Some(lab) = lab("", script) else { return };
    for (name, text) in [
        ("etc/passwd", "root:x:0:0::/:\n"),
        ("etc/motd", "hello\n"),
        ("VERSION", "1\n"),
        ("home/ada/x", ""),
        ("home/compeval/x", ""),
        ("inputs/99", ""),
        ("computation/exec", ""),
        ("outputs/x", ""),
        ("tmp/x", ""),
        ("proc/x", ""),
        ("dev/null", "not a device\n"),
        ("var/tmp/x", ""),
        ("var/lib/x", ""),
        ("opt/a b", ""),
    ] {
        let path = lab.path("data/system").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    symlink("../VERSION", lab.path("data/system/etc/link")).unwrap();
    symlink("var/../home/ada", lab.path("data/system/srv")).unwrap();
    let lab = lab.commit();
    super::sight::as_each_user(&lab, |user| {
        let seen = super::sight::evaluate(&lab, user);
        // Of a user that the image does not know.
        let is_own = |line: &&str| line.starts_with("/usr:") || line.starts_with("compeval:");
        let lines = seen.lines().filter(|line| !is_own(line));
        let seen: String = lines.map(|line| format!("{line}\n")).collect();
        let seen = seen.replace(" lib32", "").replace(" libx32", "");
        golden::check("isolation/root.txt", &seen);
        assert_eq!(executed(&lab)["access"].to_string(), r#"["root system"]"#);
    });
}

#[test]
fn a_root_is_read_only() {
    let script = r#"exec >"$3" 2>&1
        for path in /new /etc/new /etc/passwd /usr/bin/sh /usr/new /home/new /home/ada/x /var/new /var/lib/new; do
            echo x >"$path"; done
        chmod -R 777 /etc /usr /var /home/ada; rm /etc/passwd
        for path in /tmp/x "$HOME/x" /dev/shm/x; do echo x >"$path" && echo wrote; done"#;
    let Some(lab) = lab("", script) else { return };
    for name in ["etc/passwd", "home/ada/x", "var/lib/x"] {
        let path = lab.path("data/system").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        // Neither is a part of a value.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o6777)).unwrap();
    }
    let lab = lab.commit();
    super::sight::as_each_user(&lab, |user| {
        let said = super::sight::evaluate(&lab, user);
        let [created, changed, removed, wrote] =
            ["cannot create", "chmod: changing", "rm: cannot remove", "wrote"]
                .map(|it| said.matches(it).count());
        assert_eq!((created, removed, wrote), (9, 1, 3), "{said}");
        assert!(changed > 9 && !said.contains("denied"), "{said}");
    });
}

#[test]
fn a_root_is_shown_to_no_other_call_of_a_launcher() {
    let text = "Inputs: 'x', 'system'\n\
        (plain (rooted (plain (rooted INPUT('x') INPUT('system'))[0])[0] INPUT('system'))[0])[0]";
    if !is_possible() {
        return;
    }
    let lab = Lab::task(text).isolated();
    fs::remove_file(lab.path("data/system")).unwrap();
    install(&lab.path("data/system"), &["sh", "ls", "cat"]);
    fs::write(lab.path("data/system/MINE"), "").unwrap();
    let script = r#"for last; do :; done; { cat "$1"; ls -d /MINE /etc/passwd 2>&-; } >"$last"; :"#;
    let lab = lab
        .computation("plain", "x", "b", script)
        .computation("rooted", "x system", "b", script)
        .file("computations/rooted/access", "root system\n")
        .commit();
    lab.ce_run(&["-j1"]).exit(0);
    assert_eq!(lab.output(), "17\n/MINE\n/etc/passwd\n/MINE\n/etc/passwd\n");
}

/// Writes a file of the root.
fn put(lab: &Lab, name: &str, text: &str) {
    let path = lab.path("data/system").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_root_can_be_granted_more() {
    let access = "read /usr/share\nread /etc/passwd\nwrite LAB/data/out\nenv GIVEN\nnetwork\n";
    let script = r#"exec >"$3" 2>&1; echo told >LAB/data/out/new; echo "$GIVEN"
        cat /etc/motd; ls /etc /usr/libexec; read line </etc/passwd; echo "$line"
        [ -e /usr/share/hidden ]; set -- $? /usr/share/*; echo "$1 $#""#;
    let Some(lab) = lab(access, script) else { return };
    fs::create_dir(lab.path("data/out")).unwrap();
    // The root has directories on the way to the granted path, and an entry in its place.
    for name in ["etc/motd", "etc/passwd", "usr/libexec/beside", "usr/share/hidden"] {
        put(&lab, name, "the root's\n");
    }
    let lab = lab.commit();
    let mut command = lab.evaluation(&[]);
    lab.finish(command.env("GIVEN", "given")).exit(0);
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let shared = fs::read_dir("/usr/share").unwrap().flatten();
    let shared = shared.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    let etc = "/etc:\ngroup\nhosts\nmotd\npasswd\nresolv.conf\n\n/usr/libexec:\nbeside\n";
    let first = passwd.lines().next().unwrap();
    let expected = format!("given\nthe root's\n{etc}{first}\n1 {}\n", shared.count() + 1);
    assert_eq!(lab.output(), expected);
    assert_eq!(fs::read_to_string(lab.path("data/out/new")).unwrap(), "told\n");
}

#[test]
fn a_link_of_a_root_stays_within_the_root() {
    // Word by word these links stay within the directory; `up/../..` leads two directories above it.
    let script = r#"exec >"$3" 2>&1; ls -d /a /trap; ls /trap/etc /trap; :"#;
    let Some(lab) = lab("", script) else { return };
    let root = lab.path("data/system");
    fs::create_dir_all(root.join("a/b")).unwrap();
    symlink("..", root.join("a/up")).unwrap();
    symlink("a/up/../../old", root.join("trap")).unwrap();
    symlink("a/up/../../old", root.join("var")).unwrap();
    symlink("a/up/../../old", root.join("home")).unwrap();
    let lab = lab.commit();
    lab.ce_run(&[]).exit(0);
    assert!(!lab.output().contains("passwd"), "{}", lab.output());
    // The mount point would be made in the host's file system.
    let lab = lab.file("computations/look/access", "root system\nread /var/lib\n").commit_again();
    let ran = lab.ce_run(&[]).exit(1);
    ran.says("because: cannot show what access grants below a link or file of the root: /var\n");
}

#[test]
fn a_root_may_come_from_the_same_workflow() {
    if !is_possible() {
        return;
    }
    let install = r#"mkdir -p "$2/usr/bin" && cd "$2" && ln -s usr/bin bin
        for lib in lib lib64; do mkdir usr/$lib && ln -s usr/$lib $lib; done
        cp /bin/sh usr/bin && for file in $(ldd /bin/sh | grep -o '/[^ ]*'); do mkdir -p ".${file%/*}"; cp "$file" ".$file"; done"#;
    let text = "Inputs: 'x'\n(look INPUT('x') (install INPUT('x'))[0])[0]";
    let lab = Lab::task(text)
        .isolated()
        .computation("install", "x", "system/", install)
        .computation("look", "x system", "b", r#"for name in /usr/*; do echo "$name"; done >"$3""#)
        .file("computations/look/access", "root system\n")
        .commit();
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.output(), "/usr/bin\n/usr/lib\n/usr/lib64\n");
    lab.ce_run(&[]).exit(0).says("2 calls: 2 reused");
}

#[test]
fn without_isolation_a_root_is_an_error_before_anything_runs() {
    let text = "Inputs: 'x', 'system'\n(look (mul INPUT('x') INPUT('x'))[0] INPUT('system'))[0]";
    let lab = Lab::task(text).isolated().computation("look", "x system", "b", "");
    let lab = lab.file("computations/look/access", "root system\nread /nowhere\n").commit();
    let ran = lab.ce_run(&["--no-isolate"]).exit(2);
    ran.says(
        "computations/look/access: the line \"root system\" takes isolation, which is turned off\n    \
         try: leave out --no-isolate",
    );
    lab.ce_run(&["-n", "--no-isolate"]).exit(3);
    let mut command = without_namespaces(&lab);
    if is_possible() {
        lab.finish(&mut command)
            .exit(2)
            .says("which is not possible here: cannot create namespaces: No space")
            .says("try: sysctl user.max_user_namespaces is 0");
    }
    assert!(lab.called().is_empty() && !lab.path("storage").exists());
}

#[test]
fn a_file_cannot_be_a_root() {
    for isolated in [true, false] {
        let text = "Inputs: 'x'\n(look INPUT('x') INPUT('x'))[0]";
        let lab = Lab::task(text).computation("look", "a b", "c", "");
        let lab = if isolated && is_possible() { lab.isolated() } else { lab };
        let line = if isolated && is_possible() { "root b" } else { "path b" };
        let lab = lab.file("computations/look/access", line).commit();
        lab.ce_run(&[]).exit(1).says(&format!(
            "failed: its input b is a file, and the line \"{line}\" of its access takes a directory"
        ));
        lab.called();
    }
}

#[test]
fn the_first_line_of_path_has_priority() {
    for isolated in [true, false] {
        let text = "Inputs: 'x', 'one', 'two'\n(look INPUT('x') INPUT('one') INPUT('two'))[0]";
        let lab = Lab::task(text)
            .computation("look", "x one two", "b", r#"{ tool; other; echo "$PATH"; } >"$4""#)
            .file("computations/look/access", "path two\npath one\n");
        let lab = if isolated && is_possible() { lab.isolated() } else { lab };
        for (name, tool) in [("one", "tool"), ("one", "other"), ("two", "tool")] {
            drop(fs::remove_file(lab.path("data").join(name)));
            let path = lab.path("data").join(name).join("bin").join(tool);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("#!/bin/sh\necho {tool} of {name}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let lab = lab.commit();
        lab.ce_run(&[]).exit(0);
        let seen = lab.output();
        let path = seen.lines().last().unwrap();
        assert!(seen.starts_with("tool of two\nother of one\n"), "{seen}");
        if isolated && is_possible() {
            assert_eq!(path, "/inputs/02/bin:/inputs/01/bin:/usr/local/bin:/usr/bin:/bin");
        } else {
            let storage = lab.path("storage").display().to_string();
            assert_eq!(path.matches(&storage).count(), 2, "{path}");
        }
        assert_eq!(executed(&lab)["access"].to_string(), r#"["path two","path one"]"#);
    }
}

#[test]
fn a_root_without_a_needed_program_is_reported() {
    let Some(lab) = lab("", "tool") else { return };
    let script = |lab: Lab, text: &str| {
        lab.file("computations/look/exec", text)
            .mode("computations/look/exec", 0o755)
            .commit_again()
    };
    let lab = lab.commit();
    lab.ce_run(&[]).exit(1).says("try: its root, the input system, has no tool in PATH");
    let lab = script(lab, "#!/usr/bin/python3\n");
    lab.ce_run(&[]).exit(1).says(
        "try: its root, the input system, has no /usr/bin/python3, which the first line of exec names",
    );
    // A path of the host does not matter to it.
    let lab = script(lab, "#!/bin/sh\ncat /usr/share/doc /var/lib /etc/passwd; echo >/etc/new\n");
    put(&lab, "var/lib/x", "");
    put(&lab, "etc/x", "");
    assert!(!lab.ce_run(&[]).exit(1).stderr.contains("try:"));
    for file in walkdir::WalkDir::new(lab.path("data/system/usr")).into_iter().flatten() {
        if file.file_name().to_string_lossy().starts_with("ld-") {
            fs::remove_file(file.path()).unwrap();
        }
    }
    lab.ce_run(&[]).exit(1).says("try: its root, the input system, lacks the loader of /bin/sh");
}
