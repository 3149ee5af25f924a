#!/usr/bin/python3 -BEs
# container-image: IMAGE -> ROOT
#
# Unpacks the image of a container, as a value: a computation that has it as its input SYSTEM runs in it with
# the line `#CE access root SYSTEM`. IMAGE is a text with a reference by digest, docker.io/library/debian@sha256:...,
# or an archive that skopeo, podman or docker has saved. Of an image for several kinds of processor, that of this
# host is taken. ROOT has the image's files: links that are absolute in the image are relative, and all can be read.
# A directory has no owners, set-id bits, devices, FIFOs and extended attributes: they are left out, and counted. What the
# image sets in the environment is printed, as lines to copy. It takes skopeo and umoci of the host, and the network.
#CE inputs image
#CE outputs root/
#CE access network

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tarfile

KINDS = ["owners", "set-id bits", "devices and FIFOs", "extended attributes"]
image, root = sys.argv[1:]


def end(message):
    sys.exit(f"container-image: {message}")


def run(*command):
    if not shutil.which(command[0]):
        end(f"{command[0]} is not there: it has to be installed, as the package {command[0]}")
    if subprocess.run(command, stdin=subprocess.DEVNULL).returncode:
        end(f"{command[0]} failed")


def source():
    """The image as skopeo names it, and options for its registry."""
    if tarfile.is_tarfile(image):
        # A colon in the path would end it.
        os.symlink(os.path.abspath(image), "archive")
        with tarfile.open(image) as archive:
            kind = "oci-archive" if "oci-layout" in archive.getnames() else "docker-archive"
        return f"{kind}:archive", []
    with open(image, errors="replace") as file:
        reference = file.read(4096).strip().removeprefix("docker://")
    form = re.fullmatch(r"([^\s@]+?)(:[\w.-]+)?@(sha256:[0-9a-f]{64})", reference)
    if not form:
        end(f"this is no archive of an image, and no reference by digest: {reference[:100]!r}\n"
            "  try: skopeo inspect --format '{{.Name}}@{{.Digest}}' docker://REFERENCE")
    # The digest says which image it is, so nothing can be exchanged on the way. This host is asked without encryption, as docker does.
    host = reference.split("/")[0].split(":")[0]
    insecure = host == "localhost" or host.startswith("127.")
    return f"docker://{form[1]}@{form[3]}", ["--src-tls-verify=false"] if insecure else []


def blob(descriptor):
    return os.path.join("image/blobs", *descriptor["digest"].split(":"))


def read(descriptor):
    with open(blob(descriptor)) as file:
        return json.load(file)


def entries_of(layer):
    try:
        entries = tarfile.open(blob(layer), "r:*")
    except tarfile.ReadError as error:
        end(f"a layer cannot be read, {layer.get('mediaType')}: {error}")
    with entries:
        try:
            yield from entries
        except tarfile.ReadError:
            # "umoci insert" leaves out the end of an archive, after its last entry. umoci has read all of it, so nothing is missing.
            pass


def left_out(layers):
    """What a directory cannot have, by path: the kinds, from the headers of all layers."""
    found, directories = {}, set()

    def remove(directory):
        if directory not in directories:
            return
        for path in [path for path in found if path.startswith(f"{directory}/")]:
            del found[path]

    for layer in layers:
        for entry in entries_of(layer):
            path = os.path.normpath(entry.name.lstrip("/"))
            place, name = os.path.split(path)
            if name == ".wh..wh..opq":
                remove(place)
                continue
            is_removed = name.startswith(".wh.")
            if is_removed:
                path = os.path.join(place, name.removeprefix(".wh."))
            if entry.isdir():
                directories.add(path)
            else:
                remove(path)
            found.pop(path, None)
            has = [
                entry.uid != 0 or entry.gid != 0,
                entry.mode & (stat.S_ISUID | stat.S_ISGID) and not entry.issym(),
                entry.ischr() or entry.isblk() or entry.isfifo(),
                any(key.startswith("SCHILY.xattr.") for key in entry.pax_headers),
            ]
            if any(has) and not is_removed:
                found[path] = [kind for kind, there in zip(KINDS, has) if there]
    return found


def within(target, depth):
    """The target of a link that is in `depth` directories, relative and within the root: `..` of the root is the root."""
    names = [".."] * depth if target.startswith("/") else []
    level = 0 if target.startswith("/") else depth
    for name in target.split("/"):
        if name in ("", ".") or name == ".." and level == 0:
            continue
        level += -1 if name == ".." else 1
        names.append(name)
    return "/".join(names) or "."


def make_value(found):
    """Makes of what was unpacked what a directory can be."""
    os.chmod(root, 0o755)
    for place, directories, files in os.walk(root):
        depth = 0 if place == root else os.path.relpath(place, root).count("/") + 1
        for path in (os.path.join(place, name) for name in directories + files):
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                target = os.readlink(path)
                if within(target, depth) != target:
                    os.unlink(path)
                    os.symlink(within(target, depth), path)
            elif stat.S_ISDIR(mode):
                os.chmod(path, 0o755)
            elif not stat.S_ISREG(mode) or KINDS[2] in found.get(os.path.relpath(path, root), []):
                # umoci makes an empty file in place of a device.
                os.unlink(path)
            else:
                os.chmod(path, 0o755 if mode & 0o111 else 0o644)


where, options = source()
run("skopeo", "--insecure-policy", "--tmpdir", ".", "copy", "--quiet", *options, where, "oci:image:root")
run("umoci", "--log=error", "raw", "unpack", "--rootless", "--image", "image:root", root)
with open("image/index.json") as file:
    manifest = read(json.load(file)["manifests"][0])
found = left_out(manifest["layers"])
make_value(found)
counts = [sum(kind in kinds for kinds in found.values()) for kind in KINDS]
print("left out:", ", ".join(f"{count} {kind}" for count, kind in zip(counts, KINDS)))
for variable in read(manifest["config"]).get("config", {}).get("Env") or []:
    name, _, value = variable.partition("=")
    print(f"export {name}={shlex.quote(value)}")
