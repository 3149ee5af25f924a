#!/usr/bin/env python3
"""Measures calls that workers on Slurm execute, beside the same calls without workers.

A private Slurm with one node is started for it; it needs Debian's packages slurmctld, slurmd, slurm-client and munge. Each
call is one call of join, with two workers of one processor each. Prints a table for doc/performance.md. Settings are
in the environment; CE_PEERS_RUNS, _CE_RUN and TMPDIR as for run.py, and:

    CE_PEERS_POINTS  number of calls (10000, which is the most)
"""

import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from generate import commit
from run import HERE, cpu_seconds, number, setting
from sweep import factors, prepare, shared
from table import load, seconds_text
from tools import ENVIRONMENT

WORKERS = 2
UP, DOWN = (HERE / f"../../tests/slurm/slurm-{name}" for name in ["up", "down"])


def slurm(scratch):
    """Starts a private Slurm. Returns its environment."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="ce-slurm-", dir="/tmp"))
    up = subprocess.run([UP, directory, "--cpus", str(WORKERS)], capture_output=True, text=True)
    if up.returncode != 0:
        raise SystemExit(f"peers: Slurm cannot be started\n{up.stderr}")
    return directory, ENVIRONMENT | {"SLURM_CONF": str(directory / "slurm.conf")}


def ce(scratch, count, environment, run, *options):
    """Evaluates a sweep. Returns the seconds, and the CPU time of all processes."""
    program = pathlib.Path(setting("CE_RUN", HERE / "../../target/release/ce-run")).resolve()
    if not program.exists():
        raise SystemExit(f"peers: {program} is not there: build it with cargo build --release")
    directory = prepare(scratch, f"ce{''.join(options)}-{run}")
    commit(directory / "task", [*shared((scratch / "join").read_bytes()), *factors(count)])
    subprocess.run(["git", "-C", directory / "task", "config", "compeval.slurm.workers", str(WORKERS)], check=True)
    command = [program, "-q", "--no-isolate", "--no-sync", *options, "--task", "task", "storage"]
    begin, busy = time.perf_counter(), cpu_seconds()
    done = subprocess.run(command, cwd=directory, env=environment, text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"peers: ce-run ended with {done.returncode}\n{done.stderr}")
    seconds = time.perf_counter() - begin
    made = sum(1 for _ in (directory / "storage").glob("c_join/*/00/*"))
    if made != count:
        raise SystemExit(f"peers: ce-run made {made} outputs of {count}")
    return seconds, cpu_seconds() - busy


def main():
    count, runs = number("POINTS", 10000), number("RUNS", 3)
    with tempfile.TemporaryDirectory(prefix="ce-peers-") as scratch:
        scratch = pathlib.Path(scratch)
        join = scratch / "join"
        subprocess.run(["cc", "-O2", "-static", "-o", join, HERE / "join.c"], check=True)
        cluster, environment = slurm(scratch)
        variants = {
            f"ce-run -j{WORKERS}, no workers": lambda run: ce(scratch, count, environment, run, f"-j{WORKERS}"),
            "ce-run --on slurm": lambda run: ce(scratch, count, environment, run, "--on", "slurm"),
        }
        print(f"{count} calls, {WORKERS} workers, the least of {runs} runs; {load()}\n")
        print("| | seconds | calls/s | CPU seconds of the run |\n|---|---|---|---|")
        try:
            for who, measure in variants.items():
                seconds, busy = min(measure(run) for run in range(runs))
                print(f"| {who} | {seconds_text(seconds)} | {count / seconds:.0f} | {seconds_text(busy)} |", flush=True)
        finally:
            subprocess.run([DOWN, cluster, "--purge"], check=True, stdout=sys.stderr)


if __name__ == "__main__":
    main()
