#!/usr/bin/env python3
"""Measures how the work of many workers grows with their number: while they are idle, and while they execute calls.

Prints a table for doc/performance.md. Settings are in the environment; CE_PEERS_CE_RUN and TMPDIR as for run.py, and:

    CE_PEERS_WORKERS numbers of workers (50 200 1000), each of which has 13 MB of memory
    CE_PEERS_POINTS  number of calls, which are shell scripts (10000)
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from generate import commit
from run import HERE, number, setting, tell
from table import load, machine
from tools import ENVIRONMENT

SCRIPT = b'#!/bin/sh\n#CE inputs x\n#CE outputs y\ncp "$1" "$2"\n'
BARE = ["-q", "--no-isolate", "--no-sync"]
IDLE = 10


def cpu_seconds(processes):
    """The processor seconds that these processes have used by themselves, without their calls."""
    ticks = 0
    for process in processes:
        words = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(words[11]) + int(words[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(program, directory, workers, calls):
    """Starts this number of workers, and then a run. Returns the row of the table."""
    directory.mkdir()
    commit(directory / "task", [
        ("100644", "workflow.ce", f"SWEEP((copy x) :over x 1..{calls})\n".encode()),
        ("100755", "computations/copy.sh", SCRIPT),
    ])
    (directory / "storage/tinputs").mkdir(parents=True)
    command = [program, "worker", "-j1", "--idle", "1h", *BARE, directory / "storage"]
    crowd = [subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL) for _ in range(workers)]
    try:
        told = directory / "storage/tmp"
        while not told.exists() or sum((run / "worker.json").exists() for run in told.iterdir()) < workers:
            time.sleep(0.1)
        time.sleep(IDLE / 2)  # Until nothing of the starts is looked at any more.
        busy = cpu_seconds(crowd)
        time.sleep(IDLE)
        idle = (cpu_seconds(crowd) - busy) / IDLE
        begin, busy = time.perf_counter(), cpu_seconds(crowd)
        command = [program, "run", "--on", "workers", "--task", directory / "task", *BARE, directory / "storage"]
        run = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(run.pid, 0)
        seconds = time.perf_counter() - begin
        if status != 0:
            raise SystemExit(f"peers: the run with {workers} workers ended with {os.waitstatus_to_exitcode(status)}")
        return idle, (cpu_seconds(crowd) - busy) / calls, (used.ru_utime + used.ru_stime) / calls, seconds
    finally:
        for worker in crowd:
            worker.send_signal(signal.SIGTERM)
        for worker in crowd:
            worker.wait()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    program = pathlib.Path(setting("CE_RUN", HERE / "../../target/release/ce-run")).resolve().with_name("ce")
    calls = number("POINTS", 10_000)
    with tempfile.TemporaryDirectory(prefix="ce-peers-") as scratch:
        scratch = pathlib.Path(scratch)
        ENVIRONMENT["XDG_CACHE_HOME"] = str(scratch / "cache")
        print(machine(scratch, [], 1, 1))
        print("| workers | all, idle | all, a call | the run, a call | seconds |\n|--:|--:|--:|--:|--:|", flush=True)
        for workers in setting("WORKERS", "50 200 1000").split():
            tell(f"{workers} workers")
            idle, each, run, seconds = measure(program, scratch / workers, int(workers), calls)
            print(f"| {int(workers):,} | {idle:.3f} processors | {each * 1e3:.2f} ms | {run * 1e3:.2f} ms | {seconds:.1f} |", flush=True)
        print(load())


if __name__ == "__main__":
    main()
