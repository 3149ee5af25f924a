#!/usr/bin/env python3
"""Measures how commands grow with the number of calls that a storage has.

For each size, a sweep of this number of points, one call of join each, is evaluated into a storage. Up to 100,000 calls have an input of
their own each; more share them. Then each command is run on it. Prints a table for doc/performance.md: seconds, and the peak memory of the largest process by call. Settings are in the
environment; CE_PEERS_CE_RUN and TMPDIR as for run.py, and:

    CE_PEERS_SIZES   numbers of calls (1000 10000 100000); a million calls need 25 GB in TMPDIR
    CE_PEERS_ONLY    which commands, by their names (all)
    CE_PEERS_KEEP    a directory that keeps the storages for the next measurement (none)
"""

import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from generate import commit
from run import HERE, setting, tell
from table import load, machine, seconds_text
from tools import ENVIRONMENT

WORKFLOW = "SWEEP((join x y) :over x {few} :over y {levels})\n"

# The most levels that a range has.
LEVELS = 100_000

# Each is run in the directory of its size. OUTPUT is a result of the sweep, its table.
COMMANDS = {
    "run": "ce run -q --no-isolate --no-sync --task task storage",
    "run --at HEAD": "ce run -q --no-isolate --no-sync --at HEAD --task task storage",
    "run -n": "ce run -q -n --no-isolate --no-sync --task task storage",
    "table": "ce table --task task storage",
    "status": "ce status storage",
    "log": "ce log storage",
    "show": "ce show storage OUTPUT",
    "verify": "ce verify storage",
    "gc -n": "ce gc -n --no-keep --older 0s storage",
    "report": "ce report -o page.html --force --task task storage",
    "push": "ce push storage results.git",
    "push, again": "ce push storage results.git",
    "pull": "ce pull pulled results.git",
}


def measured(program, command, directory):
    """Runs a command. Returns its seconds, its CPU time, and its peak memory in bytes."""
    words = [str(program) if word == "ce" else word for word in shlex.split(command)]
    with open(directory / "stderr", "w+") as said:
        begin = time.perf_counter()
        child = subprocess.Popen(words, cwd=directory, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            said.seek(0)
            raise SystemExit(f"peers: {command} ended with {child.returncode}\n{said.read()}")
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def generate(program, directory, join, size):
    """Evaluates a sweep of this number of points into a storage. Returns the result of `measured`."""
    directory.mkdir(parents=True)
    few = size // LEVELS or 1
    if size > LEVELS and size % LEVELS:
        raise SystemExit(f"peers: {size} calls are no multiple of {LEVELS}")
    commit(directory / "task", [
        ("100644", "workflow.ce", WORKFLOW.format(few=f"1..{few}", levels=f"1..{size // few}").encode()),
        ("100644", "computations/join/inputs", b"a\nb\n"),
        ("100644", "computations/join/outputs", b"joined\n"),
        ("100755", "computations/join/exec", join),
    ])
    return measured(program, COMMANDS["run"], directory)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    program = pathlib.Path(setting("CE_RUN", HERE / "../../target/release/ce-run")).resolve().with_name("ce")
    sizes = [int(size) for size in setting("SIZES", "1000 10000 100000").split()]
    names = [name.strip() for name in setting("ONLY", ";".join(COMMANDS)).split(";")]
    if not set(names) <= set(COMMANDS):
        raise SystemExit(f"peers: CE_PEERS_ONLY has names beside {'; '.join(COMMANDS)}")
    with tempfile.TemporaryDirectory(prefix="ce-peers-") as scratch:
        scratch = pathlib.Path(scratch)
        kept = pathlib.Path(setting("KEEP", scratch)).resolve()
        ENVIRONMENT["XDG_CACHE_HOME"] = str(kept / "cache")
        subprocess.run(["cc", "-O2", "-static", "-o", scratch / "join", HERE / "join.c"], check=True)
        told = {name: [] for name in ["cold", *names]}
        for size in sizes:
            directory = kept / f"scale-{size}"
            if not directory.exists():
                tell(f"makes a storage of {size:,} calls")
                told["cold"].append(generate(program, directory, (scratch / "join").read_bytes(), size))
            output = next((directory / "storage/tables").glob("[0-9a-f]*/*/00")).relative_to(directory)
            for made in ["results.git", "pulled"]:
                subprocess.run(["rm", "-rf", directory / made], check=True)
            subprocess.run(["git", "init", "--bare", "-q", directory / "results.git"], env=ENVIRONMENT, check=True)
            (directory / "pulled").mkdir()
            for name in names:
                told[name].append(measured(program, COMMANDS[name].replace("OUTPUT", str(output)), directory))
                seconds, busy, peak = told[name][-1]
                tell(f"{size:,} calls, {name}: {seconds:.2f} s, CPU {busy:.2f} s, {peak / size:,.0f} bytes a call")
        print(machine(kept, [], 2, 1))
        print("\n".join(rows(told, sizes)) + "\n" + load(), flush=True)


def rows(told, sizes):
    """The seconds and the CPU time for each size, and the memory by call of the last one."""
    yield "| | " + " | ".join(f"{size:,} calls" for size in sizes) + " | MB | bytes a call |"
    yield "|---" + "|--:" * (len(sizes) + 2) + "|"
    for name, values in told.items():
        if len(values) == len(sizes):
            peak = values[-1][-1]
            cells = [name, *(f"{seconds_text(seconds)} ({seconds_text(busy)})" for seconds, busy, _ in values), f"{peak / 1e6:,.0f}",
                     f"{peak / sizes[-1]:,.0f}"]
            yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
