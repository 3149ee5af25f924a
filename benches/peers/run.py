#!/usr/bin/env python3
"""Compares ce-run with make, ninja and the operating system itself: the same calls, the same files.

Prints the tables of doc/performance.md, which says what is measured. Settings are in the environment:

    CE_PEERS_CALLS   number of calls of the work (10000)
    CE_PEERS_MANY    number of calls of a second work, with nothing to do (100000); 0 leaves it out
    CE_PEERS_RUNS    how often everything is measured (3)
    CE_PEERS_TOOLS   which of "ce-run make ninja floor" (all)
    CE_PEERS_JOBS    how many calls at a time (the number of cores)
    CE_PEERS_CE_RUN  the program (target/release/ce-run)
    CE_PEERS_INSTALL no, if make and ninja are to be left out where they are missing, not installed (yes)
    TMPDIR           where a directory is made and removed: on the disk that is to be measured. With the
                     default numbers it needs 6 GB and a million inodes
"""

import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from generate import Work
from table import load, machine, tables
from tools import ENVIRONMENT, TOOLS, Builder, CeRun

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = {"make": "make", "ninja": "ninja-build"}


def setting(name, default):
    return os.environ.get(f"CE_PEERS_{name}", default)


def number(name, default, least=1):
    text = setting(name, str(default))
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise SystemExit(f"peers: CE_PEERS_{name} is {text!r}, which is not a number from {least}")
    return int(text)


def tell(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


def wanted():
    """The tools that were asked for and are there, or can be installed."""
    names = setting("TOOLS", " ".join(TOOLS)).split()
    for name in names:
        if name not in TOOLS:
            raise SystemExit(f"peers: CE_PEERS_TOOLS has {name!r}, which is not one of {' '.join(TOOLS)}")
    missing = [name for name in names if name in PACKAGES and not shutil.which(name)]
    if missing and setting("INSTALL", "yes") != "no" and shutil.which("apt-get"):
        tell(f"installs {' and '.join(missing)}")
        packages = [PACKAGES[name] for name in missing]
        for command in [["update"], ["install", "-y", "--no-install-recommends", *packages]]:
            subprocess.run(["apt-get", "-qq", *command], stdout=sys.stderr, check=False)
    for name in [name for name in missing if not shutil.which(name)]:
        tell(f"{name} is not installed, and left out")
        names.remove(name)
    CeRun.program = pathlib.Path(setting("CE_RUN", HERE / "../../target/release/ce-run")).resolve()
    if "ce-run" in names and not CeRun.program.exists():
        raise SystemExit(f"peers: {CeRun.program} is not there: build it with cargo build --release")
    return names


def measure(told, work, step, must_run):
    """Times a step, and makes sure that it ran as many calls as it had to."""
    time.sleep(0.02)  # Times of files advance by some milliseconds.
    with tempfile.NamedTemporaryFile(dir=step.directory) as stamp:
        begin, busy = time.perf_counter(), cpu_seconds()
        step.run()
        times = time.perf_counter() - begin, cpu_seconds() - busy
        ran = step.newer(os.stat(stamp.name).st_mtime_ns)
    if ran != must_run:
        raise SystemExit(f"peers: {step.who}, {work}: {ran} calls ran, not {must_run}")
    told.setdefault((work, step.who), []).append(times)


def cpu_seconds():
    """What all processes that have ended so far used of all cores."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compare(told, count, names, jobs, runs, scratch):
    """Measures everything with a work of this number of calls."""
    tools = make_tools(count, names, jobs, scratch)
    chain = len(tools[0].work.chain())
    for run in range(runs):
        tell(f"{count} calls, run {run + 1} of {runs}")
        for tool in tools:
            for step in tool.cold():
                os.sync()
                measure(told, ("cold", count, count), step, count)
    agree(tools)
    os.sync()
    for run in range(runs):
        nothing(told, count, tools)
        for tool in tools:
            tool.change_leaf(run)
            for step in tool.leaf():
                measure(told, ("one leaf changed", count, chain), step, chain)
    agree(tools)


def compare_many(told, count, names, jobs, runs, scratch):
    """Measures what it takes to find out that nothing is to be done."""
    tools = make_tools(count, names, jobs, scratch)
    built = None
    for tool in sorted(tools, key=lambda tool: tool.name != "ninja"):
        if built and isinstance(tool, Builder):
            tool.take_over(built)
            continue
        tell(f"{count} calls, {tool.name} for the first time")
        for step in tool.first():
            step.run()
        built = tool if isinstance(tool, Builder) else built
    agree(tools)
    os.sync()
    for run in range(runs):
        tell(f"{count} calls, run {run + 1} of {runs}")
        nothing(told, count, tools)


def make_tools(count, names, jobs, scratch):
    tell(f"{count} calls, written for {', '.join(names)}")
    work = Work(count)
    return [TOOLS[name](name, work, jobs, scratch) for name in names]


def nothing(told, count, tools):
    for tool in tools:
        for step in tool.nothing():
            measure(told, ("nothing to do", count, 0), step, 0)


def agree(tools):
    if len({tool.result() for tool in tools}) != 1:
        raise SystemExit("peers: the tools do not agree on the result")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    calls, runs = number("CALLS", 10_000), number("RUNS", 3)
    many = number("MANY", 100_000, least=0)
    jobs = number("JOBS", len(os.sched_getaffinity(0)))
    names = wanted()
    if not names:
        raise SystemExit("peers: there is no tool to compare")
    told = {}
    with tempfile.TemporaryDirectory(prefix="ce-peers-") as directory:
        scratch = pathlib.Path(directory)
        ENVIRONMENT["XDG_CACHE_HOME"] = str(scratch / "cache")
        for program in ["join", "floor"]:
            source = HERE / f"{program}.c"
            subprocess.run(["cc", "-O2", "-static", "-o", scratch / program, source], check=True)
        print(machine(scratch, names, jobs, runs), flush=True)
        compare(told, calls, names, jobs, runs, scratch)
        print(tables(told), flush=True)
        if many:
            told = {}
            compare_many(told, many, names, jobs, runs, scratch)
            print(tables(told), flush=True)
        print(load(), flush=True)


if __name__ == "__main__":
    main()
