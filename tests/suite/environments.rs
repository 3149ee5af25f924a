//! The examples of environments that are values, without the network: the wheel, the packages of Debian and the
//! places that they come from are made here.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::examples::{command, example, gives_what_is_expected, outputs, project};
use crate::isolation::{is_possible, roots};
use crate::lab::Lab;
use crate::needs;
use crate::program::Ran;

/// The examples, isolated. One computation may read `data` in addition. `None`, which is reported, where a program is missing or
/// nothing can be isolated.
fn lab(computation: &str, name: &str, probe: &[&str]) -> Option<Lab> {
    let status = Command::new(probe[0]).args(&probe[1..]).stdout(Stdio::null()).status();
    let is_there = status.is_ok_and(|status| status.success());
    if !is_there {
        needs::lacks(name);
    }
    if !is_possible() || !is_there {
        return None;
    }
    let lab = project().isolated();
    let access = lab.path("task/tasks-example").join(computation).join("access");
    let line = format!("read {}\n", lab.path("data").display());
    let lines = fs::read_to_string(&access).unwrap() + &line;
    fs::write(access, lines).unwrap();
    Some(lab.commit_again())
}

/// Runs the command of an example's README, with other files in place of its own.
fn run<'a>(lab: &'a Lab, name: &str, files: &[[&str; 2]], env: &[(&str, &str)]) -> Ran<'a> {
    let mut text = command(&example(lab, name));
    for [file, other] in files {
        assert!(text.contains(file), "{text}");
        text = text.replace(file, other);
    }
    let mut command = lab.command("ce-run");
    lab.finish(command.args(text.split(' ')).envs(env.iter().copied()))
}

/// Returns the access that an execution of this name was granted, as its record says.
fn access(lab: &Lab, name: &str) -> String {
    let names = lab.storage();
    let record = |it: &&String| it.starts_with(&format!("c_{name}/")) && it.contains("/record/");
    let record: serde_json::Value =
        serde_json::from_str(&lab.stored(names.iter().find(record).unwrap())).unwrap();
    record["origin"]["executed"]["access"].to_string()
}

/// Makes a wheel of `cowsay` with a program that says something else, and returns its lock.
const WHEEL: &str = r#"
import base64, hashlib, sys, zipfile
path = sys.argv[1] + "/cowsay-6.1-py3-none-any.whl"
info = "cowsay-6.1.dist-info/"
files = {
    "cowsay.py": "import sys\ndef main(): print('Moo.', *sys.argv[2:])\n",
    info + "METADATA": "Metadata-Version: 2.1\nName: cowsay\nVersion: 6.1\n",
    info + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    info + "entry_points.txt": "[console_scripts]\ncowsay = cowsay:main\n",
}
files[info + "RECORD"] = "".join(f"{name},,\n" for name in [*files, info + "RECORD"])
with zipfile.ZipFile(path, "w") as wheel:
    for name, text in files.items():
        wheel.writestr(zipfile.ZipInfo(name), text)
print("cowsay==6.1 --hash=sha256:" + hashlib.sha256(open(path, "rb").read()).hexdigest())
"#;

#[test]
fn packages_of_python_are_a_value() {
    let program = ["/usr/bin/python3", "-m", "pip", "--version"];
    let computation = "python/computations/install-packages";
    let Some(lab) = lab(computation, "pip", &program) else { return };
    let wheels = lab.path("data/wheels").display().to_string();
    fs::create_dir(&wheels).unwrap();
    let made = Command::new(program[0]).args(["-c", WHEEL, &wheels]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    fs::write(lab.path("data/lock"), &made.stdout).unwrap();
    let run = |lock: &str, text: &str| {
        let files =
            [["tasks-example/python/data/lock", lock], ["tasks-example/python/data/text", text]];
        run(&lab, "python", &files, &[("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", &wheels)])
    };
    let text = "tasks-example/python/data/text";
    let ran = run("../data/lock", text).exit(0).says("2 calls: 2 computed");
    assert_eq!(lab.stored(outputs(&ran)[0]), "Moo. Computed once, kept forever.\n");
    assert_eq!(access(&lab, "say"), r#"["path packages"]"#);
    fs::write(lab.path("data/text"), "Again.\n").unwrap();
    run("../data/lock", "../data/text").exit(0).says("1 reused, 1 computed");
    let lock = String::from_utf8(made.stdout).unwrap();
    fs::write(lab.path("data/lock2"), format!("# the same\n{lock}")).unwrap();
    run("../data/lock2", text).exit(0).says("1 reused, 1 computed");
    let wrong = lock.replace("sha256:", "sha256:0").trim_end()[..lock.len() - 1].to_owned();
    fs::write(lab.path("data/wrong"), wrong).unwrap();
    run("../data/wrong", text).exit(1).says("DO NOT MATCH THE HASHES");
}

/// Makes a package of Debian, and returns its line of a lock.
fn package(lab: &Lab, name: &str, fill: impl Fn(&Path)) -> String {
    let (dir, file) = (lab.path("data").join(name), lab.path("data").join(format!("{name}.deb")));
    fs::create_dir_all(dir.join("DEBIAN")).unwrap();
    let control = format!(
        "Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: lab <lab@lab>\nDescription: x\n"
    );
    fs::write(dir.join("DEBIAN/control"), control).unwrap();
    fill(&dir);
    let mut build = Command::new("dpkg-deb");
    build.args(["--build", "--root-owner-group", "-Znone"]).arg(dir).arg(&file);
    assert!(build.stdout(Stdio::null()).status().unwrap().success());
    let sum = Command::new("sha256sum").arg(&file).output().unwrap().stdout;
    let sum = String::from_utf8(sum).unwrap();
    format!("file://{} {}\n", file.display(), sum.split(' ').next().unwrap())
}

#[test]
fn a_system_of_debian_is_a_value() {
    let Some(lab) = lab("debian/computations/make-root", "dpkg-deb", &["dpkg-deb", "--version"])
    else {
        return;
    };
    let tools = package(&lab, "tools", |dir| {
        roots::install(dir, &["sh", "ls", "wc", "touch"]);
        // As before the merge of /usr: a shell in /bin, and links of the whole system.
        for name in ["bin", "sbin", "lib", "lib32", "lib64"] {
            fs::remove_file(dir.join(name)).unwrap();
        }
        fs::create_dir(dir.join("bin")).unwrap();
        fs::rename(dir.join("usr/bin/sh"), dir.join("bin/shell")).unwrap();
        symlink("/bin/shell", dir.join("usr/bin/sh")).unwrap();
    });
    let hello = package(&lab, "hello", |dir| {
        let path = dir.join("usr/bin/hello");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/sh\necho Hello, world!\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    });
    fs::write(lab.path("data/lock"), format!("{tools}{hello}")).unwrap();
    let ran = run(&lab, "debian", &[["LOCK", "../data/lock"]], &[]).exit(0);
    let said = "programs: 6\nno python3: the /usr of the host is not there\n\
        no /etc/hostname: nor is its /etc\nnothing can be written in /usr\nHello, world!\n";
    assert_eq!(lab.stored(outputs(&ran.says("2 calls: 2 computed"))[0]), said);
    assert_eq!(access(&lab, "look"), r#"["root root"]"#);
    fs::write(lab.path("data/wrong"), tools.replace("tools.deb", "hello.deb")).unwrap();
    run(&lab, "debian", &[["LOCK", "../data/wrong"]], &[]).exit(1).says("has the SHA-256");
}

#[test]
#[ignore = "takes the network"]
fn packages_of_pypi_give_the_expected_output() {
    let lab = project().isolated();
    let ran = run(&lab, "python", &[], &[]).exit(0);
    gives_what_is_expected(&lab, &example(&lab, "python"), &ran);
}
