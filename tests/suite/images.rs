//! The images of containers, from a registry that a test starts, and from archives.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::examples::{command, example, outputs, project};
use crate::isolation::{is_possible, roots};
use crate::lab::Lab;
use crate::needs::needs;
use crate::program::Ran;

/// A registry of images on this host, with all that it holds in a directory.
struct Registry {
    process: Child,
    address: String,
}

impl Registry {
    fn start(dir: &Path) -> Self {
        let configuration = format!(
            "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {0}}}}}\nhttp: {{addr: \"127.0.0.1:0\"}}\n",
            dir.display()
        );
        let file = dir.with_extension("yml");
        fs::write(&file, configuration).unwrap();
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(file).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let listens = lines.find_map(|line| {
            let line = line.unwrap();
            let (_, rest) = line.split_once("listening on 127.0.0.1:")?;
            Some(rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().to_owned())
        });
        // What it says later is read, and dropped.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address: format!("localhost:{}", listens.unwrap()) }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Two layers: what a directory can have, what it cannot, and the removal of a file. The arguments are a directory and where to write.
const LAYERS: &str = r#"
import io, sys, tarfile
def add(layer, name, data=b"", **fields):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o755
    for field, value in fields.items():
        setattr(entry, field, value)
    layer.addfile(entry, io.BytesIO(data))
def of_root(entry):
    entry.uid = entry.gid = 0
    return entry
capability = {"SCHILY.xattr.security.capability": "\1\0\0\2\0 " + 14 * "\0"}
with tarfile.open(sys.argv[2] + "/1.tar", "w", format=tarfile.PAX_FORMAT) as layer:
    layer.add(sys.argv[1], "", filter=of_root)
    add(layer, "usr/bin/su", b"su", mode=0o4755)
    add(layer, "usr/bin/ping", b"ping", pax_headers=capability)
    add(layer, "usr/bin/pong", type=tarfile.LNKTYPE, linkname="usr/bin/ping")
    add(layer, "etc/shadow", b"secret", mode=0)
    add(layer, "etc/locked", type=tarfile.DIRTYPE, mode=0)
    add(layer, "etc/locked/file", b"within", mode=0)
    add(layer, "srv/ada", type=tarfile.DIRTYPE, mode=0o700, uid=1000)
    add(layer, "srv/ada/text", b"hers", mode=0o600, uid=1000, gid=1000)
    add(layer, "dev/null", type=tarfile.CHRTYPE, devmajor=1, devminor=3)
    add(layer, "run/fifo", type=tarfile.FIFOTYPE)
    add(layer, "srv/absolute", type=tarfile.SYMTYPE, linkname="/etc/os-release")
    add(layer, "srv/above", type=tarfile.SYMTYPE, linkname="../../../etc/os-release")
    add(layer, "srv/removed", b"a layer removes it", uid=7)
with tarfile.open(sys.argv[2] + "/2.tar", "w", format=tarfile.PAX_FORMAT) as layer:
    add(layer, "srv/.wh.removed")
"#;

/// Runs a program, and returns what it prints.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// Makes an image in a layout of OCI, and returns its name for skopeo.
fn image(lab: &Lab) -> String {
    let system = lab.path("data/system");
    roots::install(&system, &["sh", "tr", "sort", "uniq", "head"]);
    fs::remove_file(system.join("bin")).unwrap();
    std::os::unix::fs::symlink("/usr/bin", system.join("bin")).unwrap();
    fs::create_dir(system.join("etc")).unwrap();
    fs::write(system.join("etc/os-release"), "PRETTY_NAME='Lab 1'\n").unwrap();
    let data = lab.path("data").display().to_string();
    said("/usr/bin/python3", &["-c", LAYERS, &system.display().to_string(), &data]);
    let (layout, image) = (format!("{data}/layout"), format!("{data}/layout:lab"));
    said("umoci", &["init", "--layout", &layout]);
    said("umoci", &["new", "--image", &image]);
    for layer in ["1.tar", "2.tar"] {
        said("umoci", &["raw", "add-layer", "--image", &image, &format!("{data}/{layer}")]);
    }
    said("umoci", &["config", "--image", &image, "--config.env", "GREETING=hello you"]);
    format!("oci:{image}")
}

fn run<'a>(lab: &'a Lab, image: &str) -> Ran<'a> {
    let text = command(&example(lab, "container")).replace("IMAGE", image);
    lab.finish(lab.command("ce-run").args(text.split(' ')))
}

#[test]
fn the_image_of_a_container_is_a_value() {
    needs(&["skopeo", "umoci", "docker-registry", "python3"]);
    if !is_possible() {
        return;
    }
    let lab = project().isolated();
    let data = lab.path("data");
    let image = image(&lab);
    let copy = |to: &str| {
        said(
            "skopeo",
            &["--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false", &image, to],
        )
    };
    let registry = Registry::start(&data.join("registry"));
    let tag = format!("docker://{}/lab:1", registry.address);
    copy(&tag);
    let form = "{{.Name}}@{{.Digest}}";
    let reference = said("skopeo", &["inspect", "--tls-verify=false", "--format", form, &tag]);
    fs::write(data.join("reference"), &reference).unwrap();

    let ran = run(&lab, "../data/reference").exit(0).says("2 calls: 2 computed");
    let expected =
        "      4 is\n      2 kept\n      1 What\n      1 and\n      1 by\ncounted by Lab 1\n";
    assert_eq!(lab.stored(outputs(&ran)[0]), expected);
    let names = lab.storage();
    let is_root = |name: &&String| name.starts_with("c_container-image/") && name.contains("/00/");
    let file = names.iter().find(is_root).unwrap();
    let root: Vec<&str> = file.split('/').take(4).collect();
    let root = format!("../storage/{}", root.join("/"));
    let shown = lab.run("ce", &["show", &root]).exit(0).stdout.clone();
    for line in [
        "left out: 2 owners, 1 set-id bits, 2 devices and FIFOs, 1 extended attributes",
        "export GREETING='hello you'",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let manifest = lab.run("ce", &["show", "--manifest", &root]).exit(0).stdout.clone();
    let is_of_a_link = |line: &&str| line.starts_with("link ") && line.contains("\tsrv/");
    let links: Vec<&str> = manifest.lines().filter(is_of_a_link).collect();
    assert_eq!(
        links,
        ["link ../etc/os-release\tsrv/above", "link ../etc/os-release\tsrv/absolute"]
    );
    for name in ["etc/locked/file", "etc/shadow", "srv/ada/text", "usr/bin/pong", "usr/bin/su"] {
        assert!(manifest.contains(&format!(" {name}\n")), "{name}: {manifest}");
    }
    for name in ["null", "fifo", "removed"] {
        assert!(!manifest.contains(name), "{name}: {manifest}");
    }

    // A tag before the digest is for people. Archives give the same value.
    fs::write(data.join("tagged"), reference.replace('@', ":1@")).unwrap();
    run(&lab, "../data/tagged").exit(0).says("1 reused, 1 computed");
    for kind in ["oci-archive", "docker-archive"] {
        let file = format!("{}/{kind}:tar", data.display());
        copy(&format!("{kind}:{file}:lab:1").replace(":tar:", ".tar:"));
        run(&lab, &format!("../data/{kind}.tar")).exit(0).says("1 reused, 1 computed");
    }
    let unknown = format!("{}@sha256:{}", reference.split('@').next().unwrap(), "4".repeat(64));
    for (name, text, says) in [
        ("tag", "debian:12", "no archive of an image, and no reference by digest: 'debian:12'"),
        ("unknown", &unknown, "container-image: skopeo failed"),
    ] {
        fs::write(data.join(name), text).unwrap();
        run(&lab, &format!("../data/{name}")).exit(1).says(says);
    }
}
