#!/usr/bin/env python3
"""Compares two builds of the programs: a change that should change nothing is tried on thousands of tasks.

    benches/same.py OLD NEW      directories that hold ce, such as target/debug of two checkouts

Tasks are made up from a seed, in both forms, and as many again with one mutation each, beside those of tasks-example and of
tests/golden. Both programs do the same with each: check, sym, run -n, convert and, where that succeeds, run and table. What they
print, their exit codes, and the names and contents of all files of the storages must be equal; of a record, all but its times and
what the machine was. Prints each difference, and ends with 1 if there is one. Settings are in the environment:

    CE_SAME_TASKS  number of tasks that are made up (2000)
    CE_SAME_SEED   the first seed (0)
    CE_SAME_JOBS   how many tasks are tried at a time (the number of cores)
    TMPDIR         where a directory is made that is removed in the end
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent.parent
COMPUTATIONS = {"one": ("a", "o"), "two": ("a b", "o"), "pair": ("a b", "p q"), "none": ("", "o"),
                "parts": ("a", "dir/ n")}
EXEC = """#!/bin/sh
n=$(cat -- "$0" {inputs} | wc -c)
for f in {outputs}; do case $f in */) f=${{f%/}}; echo "$n" >"$f/a.txt"; echo b >"$f/b" ;; *) echo "$n" >"$f" ;; esac; done
"""
INPUTS = ["x", "y", "z w"]
TIMES = re.compile(rb'\d+(\.\d+)? (ms|s|min)\b|20\d\d-[-0-9T:. Z]+(,[0-9.]+)?|"duration":[0-9.e-]+')
TEXTS = ["'1'", "'20'", "'a b'", "TEXT('a' 'b')", "''", "'007'", "'1e3'", "'it's'", "'x|'"]
ODD_TEXTS = ["'it\\'s'", "|two\\nlines|", "-1", "3", "OWN('nothing')", "OWN('data/{s0}.txt')", "'{s1}'"]
LEVELS = ["1 2 3", "1..4", "'a b' 'c'", "10 1e3 007", "1..2", "9007199254740993 1"]
ODD_LEVELS = ["'' x", "1 1", "4..1", "a 'a'", "1 2 # note\n 3"]
WORDS = ["SWEEP", "OWN", "TEXT", ":over", ":where", ":names", ":exclude", ":columns", ":allow-failed", ":replicates", "(", ")",
         "[", "]", "[00]", "[q]", "[7]", "'", "=", ",", "#", "ALL", "POINTS", "MEMBER", "FILE", "TREE", "{s0}", "..", "x", "nope",
         "\t", "\0", "\r\n", "é", "'data/missing'", ":", "/"]


class Maker:
    """Makes up a workflow. Some are wrong, in ways that are seldom thought of."""

    def __init__(self, seed):
        self.random, self.names, self.definitions = random.Random(seed), 0, []

    def one(self, of, odd=()):
        return self.random.choice(odd if odd and self.random.random() < 0.03 else of)

    def text(self):
        inputs = self.random.sample(INPUTS, self.random.randint(0, 3))
        self.inputs = [f"'{name}'" for name in inputs]
        defaults = [name + (f" = {self.one(TEXTS, ODD_TEXTS)}" if self.random.random() < 0.4 else "") for name in self.inputs]
        lines = [f"Inputs: {', '.join(defaults)}"] if defaults else []
        if self.random.random() < 0.2:
            lines.append("# a comment")
        for at in range(self.random.randint(0, 2)):
            name = self.one(["d", "e", "sweep"], ["'a b'", "x"]) + str(at)
            lines.append(f"{name} = {self.node(2, [])}")
            self.definitions.append(name)
        root = self.sweep(2) if self.random.random() < 0.5 else self.call(3, [])
        return "\n".join([*lines, root]) + "\n"

    @staticmethod
    def quoted(name):
        return "'" + name.replace("'", "\\'") + "'"

    def node(self, depth, names):
        kinds = ["text", "input", "own", "name", "definition"] + (["call"] * 4 + ["all", "member", "sweep"] if depth else [])
        kind = self.one(kinds)
        if kind == "call":
            return self.call(depth, names)
        if kind == "all":
            return f"ALL({self.node(depth - 1, names)} {self.node(depth - 1, names)})"
        if kind == "member":
            return f"MEMBER('{self.one(['a.txt', 'b'], ['none'])}' (parts {self.node(depth - 1, names)})[dir/])"
        if kind == "sweep":
            return self.sweep(depth - 1)
        if kind == "own":
            return "OWN('data/own.txt')"
        if kind == "name" and names:
            return self.one(names)
        if kind == "definition" and self.definitions:
            return self.one(self.definitions)
        if kind == "input" and self.inputs:
            return self.one([f"INPUT({self.one(self.inputs)})", self.one(self.inputs)])
        return self.one(TEXTS, ODD_TEXTS)

    def call(self, depth, names):
        name = self.one(list(COMPUTATIONS))
        inputs = COMPUTATIONS[name][0].split()
        if self.random.random() < 0.03:
            inputs.append("more")
        read = [(f":{self.one(['left', 'a b', 'r'])} " if self.random.random() < 0.1 else "") + self.node(depth - 1, names)
                for _ in inputs]
        call = f"({' '.join([name, *read])})"
        outputs = COMPUTATIONS[name][1].split()
        slices = ["[00]", f"[{outputs[-1]}]", "[01]"] if len(outputs) > 1 else ["", "[00]"]
        return call + self.one(slices, ["[1]", "[none]", "[00, 00]"])

    def sweep(self, depth):
        names = [f"s{self.names + at}" for at in range(self.random.randint(1, 3))]
        self.names += len(names)
        body = self.node(max(depth, 1), names)
        for name in names[self.one([0], [1]):]:
            body = f"(two {body} {name})"
        rules = []
        for name in names:
            values = self.one(LEVELS, ODD_LEVELS)
            rules.append(f":over {name} {values}")
        if len(names) > 1 and self.random.random() < 0.3:
            rules[:2] = [f":over ('{names[0]}' '{names[1]}') ('1' 'p') ('2' 'q')"]
        if self.random.random() < 0.3:
            where = self.one(["<= 2", "!= 2", "< 3 || true"], ["= 2", "> nope", "== 1 &&", '!= "a b"'])
            rules.append(f":where '{names[0]} {where}'")
        if self.random.random() < 0.2:
            rules.append(f":exclude ('{names[0]}') ('{self.one(['1', '2'], ['none'])}')")
        if self.random.random() < 0.2:
            rules.append(self.one([":replicates 2", ":replicates 12", ":allow-failed"], [":replicates '2..4 until 00 ±5%'"]))
        if self.random.random() < 0.4:
            columns = ["'00 seconds [s] less'", "'00 count' '00 again'", "'o size'"]
            rules.append(":columns " + self.one(columns, ["'00 *'"]))
        sheet = self.random.random()
        if sheet < 0.1:
            return f"SWEEP({body} OWN('data/sheet.csv') :names {' '.join(self.quoted(name) for name in names)})"
        if sheet < 0.15:
            factors = " ".join(rule for rule in rules if rule.startswith(":over"))
            return f"SWEEP({body} POINTS({factors}) :names {' '.join(map(self.quoted, names))})"
        return f"SWEEP({body} {' '.join(rules)})"


def mutate(task, rng):
    """Spoils one file of a task."""
    files = sorted(path for path in task.rglob("*") if path.is_file() and "data" not in path.parts)
    files = [path for path in files if "computations" not in path.parts or rng.random() < 0.1]
    path = rng.choice(files)
    text, kind = path.read_text(errors="surrogateescape"), rng.randrange(8)
    at = rng.randint(0, len(text))
    if kind == 0:
        path.unlink()
        return
    if kind == 1 and path.parent != task:
        path = path.parent / rng.choice(["kind", "value", "outputs", "more", "where", "exclude", "columns", "names"])
        text, at = "", 0
    if kind in (2, 3):
        text = text[:at] + text[at + rng.randint(1, 4):]
    elif kind == 4:
        lines = text.splitlines(keepends=True)
        rng.shuffle(lines)
        text = "".join(lines)
    elif kind == 5:
        words = re.findall(r"\S+", text) or ["x"]
        text = text.replace(rng.choice(words), rng.choice(words), 1)
    else:
        text = text[:at] + rng.choice(WORDS) + text[at:]
    path.write_text(text, errors="surrogateescape")


def furnish(task):
    for name, (inputs, outputs) in COMPUTATIONS.items():
        place = task / "computations" / name
        place.mkdir(parents=True)
        (place / "inputs").write_text("".join(f"{it}\n" for it in inputs.split()))
        (place / "outputs").write_text("".join(f"{it}\n" for it in outputs.split()))
        count = len(inputs.split())
        words = [f'"${at + 1}"' for at in range(count + len(outputs.split()))]
        slashed = [word + ("/" if it.endswith("/") else "") for word, it in zip(words[count:], outputs.split())]
        (place / "exec").write_text(EXEC.format(inputs=" ".join(words[:count]), outputs=" ".join(slashed)))
        (place / "exec").chmod(0o755)
    (task / "data").mkdir()
    (task / "data/own.txt").write_text("own\n")
    (task / "data/1.txt").write_text("one\n")
    (task / "data/sheet.csv").write_text("s0,s1,other\n1,a,\n2,\"b c\",7\n")


def command(program, arguments, where):
    environment = {"PATH": os.environ["PATH"], "HOME": str(where), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C",
                   "XDG_CACHE_HOME": str(where / "cache")}
    done = subprocess.run([program / "ce", *arguments], cwd=where, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def corpus(old, place, count, seed):
    """Makes all tasks, in one repository. Returns their names."""
    for at in range(count):
        maker, rng = Maker(seed + at), random.Random(-1 - seed - at)
        text, made = maker.text(), place / f"{at:05}"
        furnish(made)
        (made / "workflow.ce").write_text(text)
        other = place / f"{at:05}-directories"
        shutil.copytree(made, other)
        code, _, _ = command(old, ["convert", "--force", "--to", "directories", "--task", other.name], place)
        if code != 0:
            shutil.rmtree(other)
        spoiled = place / f"{at:05}-spoiled"
        shutil.copytree(other if code == 0 and rng.random() < 0.5 else made, spoiled)
        mutate(spoiled, rng)
    golden = re.compile(r"\n\nce: |\n\n", re.M)
    for file in sorted((HERE / "tests/golden/text").glob("*.txt")):
        for number, piece in enumerate(golden.split(file.read_text())):
            task = place / f"golden-{file.stem}-{number:03}"
            furnish(task)
            (task / "workflow.ce").write_text(piece + "\n")
    shutil.copytree(HERE / "tasks-example", place / "tasks-example", symlinks=True, ignore=shutil.ignore_patterns("storage*"))
    git = ["git", "-C", place, "-c", "user.name=same", "-c", "user.email=same@example.org"]
    for words in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-qm", "tasks"]):
        subprocess.run([*git, *words], check=True, env=os.environ | {"GIT_AUTHOR_DATE": "1700000000 +0000",
                                                                     "GIT_COMMITTER_DATE": "1700000000 +0000"})
    workflows = [path for form in ("workflow", "workflow.ce") for path in place.glob(f"**/{form}")]
    return sorted({str(path.parent.relative_to(place)) for path in workflows})


def stored(storage):
    """The files of a storage. Of a record, all but what differs each time."""
    files = {}
    for path in sorted(storage.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        name, contents = str(path.relative_to(storage)), path.read_bytes()
        if name.split("/")[0] in ("ledger", "commits", "running", "repositories") or name.endswith("/log") or "/log/" in name:
            continue
        if name.endswith((".json", "record")) or "/record/" in name:
            try:
                record = json.loads(contents)
                contents = json.dumps(without_times(record)).encode()
            except ValueError:
                pass
        files[name] = hashlib.sha256(contents).hexdigest() if len(contents) > 10_000 else contents
    return files


def without_times(value):
    if isinstance(value, dict):
        # Which of several equal files a call has read depends on the order in which others ended.
        passing = ("argv", "stage", "start", "end", "user_seconds", "system_seconds", "peak_bytes", "modified_ns", "stamp", "recorded")
        return {key: without_times(it) for key, it in value.items() if key not in passing}
    return [without_times(it) for it in value] if isinstance(value, list) else value


def tried(program, place, task):
    """What a program does with a task: by command, its exit code and what it printed; and the files that it made."""
    storage = f"{place.name}-s-{task.replace('/', '-')}"
    given = [word for name in INPUTS for word in ("-p", f"{name}=5")]
    done = {}

    def run(name, *arguments):
        code, out, err = command(program, arguments, place)
        clean = [text.replace(str(place).encode(), b"PLACE").replace(storage.encode(), b"STORAGE") for text in (out, err)]
        clean = [TIMES.sub(b"TIME", text) for text in clean]
        done[name] = (code, *clean)
        return code

    run("check", "check", "--task", task)
    run("sym", "sym", "--task", task)
    read = [word for at, word in enumerate(given) if f"'{given[at | 1].split('=')[0]}'".encode() in names(place / task)]
    code = run("run -n", "run", "-n", "--task", task, f"../{storage}", *read)
    if code in (0, 3):
        run("run", "run", "--no-isolate", "--jobs", "1", "--task", task, f"../{storage}", *read)
        for form in ([], ["--csv"], ["--json"], ["--summary"]):
            run(f"table {form}", "table", "--task", task, *form, f"../{storage}", *read)
    form = "directories" if (place / task / "workflow.ce").exists() else "text"
    run("convert", "convert", "--force", "--to", form, "--task", task)
    made = place / task
    for path in sorted(made.rglob("*")):
        if "computations" not in path.parts:
            found = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b"/"
            done[str(path.relative_to(made))] = found
    storage = place.parent / storage
    if storage.exists():
        done |= {f"storage {name}": contents for name, contents in stored(storage).items()}
        subprocess.run(["chmod", "-R", "u+w", storage])
        shutil.rmtree(storage)
    return done


def names(task):
    """The text that names the inputs of a task."""
    files = [task / "workflow.ce", task / "inputs"]
    text = b"\n".join(path.read_bytes() for path in files if path.is_file())
    return text + b"\n" + b"\n".join(b"'" + line + b"'" for line in text.split(b"\n"))


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    old, new = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    count, seed = (int(os.environ.get(f"CE_SAME_{name}", default)) for name, default in (("TASKS", 2000), ("SEED", 0)))
    jobs = int(os.environ.get("CE_SAME_JOBS", os.cpu_count()))
    with tempfile.TemporaryDirectory() as scratch:
        places = [pathlib.Path(scratch) / name for name in ("a", "b")]
        places[0].mkdir()
        tasks = corpus(old, places[0], count, seed)
        shutil.copytree(places[0], places[1], symlinks=True)
        different, ended = 0, {}
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            both = lambda task: [tried(program, place, task) for program, place in zip((old, new), places)]
            for task, (one, other) in zip(tasks, pool.map(both, tasks)):
                for name in ("run -n", "run", "convert"):
                    code = one.get(name, (None,))[0]
                    ended[name, code] = ended.get((name, code), 0) + 1
                for name in sorted(one.keys() | other.keys()):
                    if one.get(name) != other.get(name):
                        different += 1
                        print(f"{task}: {name}\n  old: {one.get(name)}\n  new: {other.get(name)}", flush=True)
        print(f"{len(tasks)} tasks, {different} differences; ended: {sorted(ended.items(), key=str)}")
    raise SystemExit(different > 0)


if __name__ == "__main__":
    main()
