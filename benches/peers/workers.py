#!/usr/bin/env python3
"""Measures calls that workers execute, beside the same calls without workers, and by Parsl.

A private Slurm with one node is started for it; it needs Debian's packages slurmctld, slurmd, slurm-client and munge. Each
call is one call of join, with workers of one processor each. Prints a table for doc/performance.md. Settings are
in the environment; CE_PEERS_RUNS, _CE_RUN and TMPDIR as for run.py, and:

    CE_PEERS_WORKERS number of workers (2), which may be more than the processors
    CE_PEERS_POINTS  number of calls (10000, which is the most)
    CE_PEERS_TOOLS   which of "ce-run parsl" (all)
    CE_PEERS_INSTALL no, if Parsl is to be left out, not installed from PyPI into a directory that is removed in the
                     end (yes)
    CE_PEERS_LIMIT   seconds after which a run has failed (900)
"""

import functools
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from generate import commit
from run import HERE, cpu_seconds, number, setting, tell
from sweep import WIDTH, factors, from_pypi, prepare, shared
from table import load, machine, seconds_text
from tools import ENVIRONMENT

WORKERS = number("WORKERS", 2)
UP, DOWN = (HERE / f"../../tests/slurm/slurm-{name}" for name in ["up", "down"])


def slurm():
    """Starts a private Slurm. Returns its directory and its environment."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="ce-slurm-", dir="/tmp"))
    up = subprocess.run([UP, directory, "--cpus", str(WORKERS)], capture_output=True, text=True)
    if up.returncode != 0:
        raise SystemExit(f"peers: Slurm cannot be started\n{up.stderr}")
    return directory, ENVIRONMENT | {"SLURM_CONF": str(directory / "slurm.conf")}


def timed(who, command, directory, environment, beside=lambda child: []):
    """Executes a command, and what `beside` starts for it. Returns its seconds, its CPU time, and what it printed."""
    begin, busy = time.perf_counter(), cpu_seconds()
    child = subprocess.Popen(command, cwd=directory, env=environment, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, start_new_session=True)
    others = beside(child)
    try:
        printed, said = child.communicate(timeout=number("LIMIT", 900))
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        printed, said = child.communicate()
    times = time.perf_counter() - begin, cpu_seconds() - busy
    for other in others:
        other.wait()
    if child.returncode != 0:
        raise SystemExit(f"peers: {who} ended with {child.returncode}\n{said}")
    return *times, printed


def complete(who, files, count):
    made = sum(1 for _ in files)
    if made != count:
        raise SystemExit(f"peers: {who} made {made} outputs of {count}")


def ce_run(scratch, count, environment):
    """The variants of ce-run: each measures a run of that number."""
    program = pathlib.Path(setting("CE_RUN", HERE / "../../target/release/ce-run")).resolve()
    if not program.exists():
        raise SystemExit(f"peers: {program} is not there: build it with cargo build --release")

    def measure(who, run, *options, workers=0):
        directory = prepare(scratch, f"ce{''.join(options)}-{run}")
        commit(directory / "task", [*shared((scratch / "join").read_bytes()), *factors(count)])
        subprocess.run(["git", "-C", directory / "task", "config", "compeval.slurm.workers", str(WORKERS)], check=True)
        bare = ["-q", "--no-isolate", "--no-sync"]

        def start_workers(child):
            while workers and child.poll() is None and not (directory / "storage/tmp").exists():
                time.sleep(0.005)
            worker = [program.with_name("ce"), "worker", "-j1", *bare, directory / "storage"]
            return [subprocess.Popen(worker, env=environment) for _ in range(workers)]

        command = [program, *bare, *options, "--task", "task", "storage"]
        seconds, busy, _ = timed(who, command, directory, environment, start_workers)
        complete(who, (directory / "storage").glob("c_join/*/00/*"), count)
        return seconds, busy, None

    alone, waits, submits = f"ce-run -j{WORKERS}, no workers", "ce-run --on workers", "ce-run --on slurm"
    yield alone, lambda run: measure(alone, run, f"-j{WORKERS}")
    yield waits, lambda run: measure(waits, run, "--on", "workers", workers=WORKERS)
    yield submits, lambda run: measure(submits, run, "--on", "slurm")


def parsl(scratch, count, environment):
    """The variants of Parsl, with the seconds that all calls but the first take once workers are there."""
    if from_pypi(scratch, "parsl", "process_worker_pool.py") is None:
        tell("Parsl is not installed, and left out")
        return
    python = scratch / "venv/bin/python"
    version = subprocess.run([python, "-c", "import parsl; print(parsl.__version__)"], capture_output=True, text=True)

    def measure(who, place, app, run):
        directory = prepare(scratch, f"parsl-{place}-{app}-{run}")
        (directory / "out").mkdir()
        command = [python, HERE / "parsl_calls.py", place, str(count), str(WORKERS), app]
        seconds, busy, printed = timed(who, command, directory, environment)
        complete(who, (directory / "out").iterdir(), count)
        return seconds, busy, float(printed)

    for place, provider in [("local", "LocalProvider"), ("slurm", "SlurmProvider")]:
        for app in ["bash", "python"]:
            who = f"Parsl {version.stdout.strip()}, {provider}, {app} app"
            yield who, functools.partial(measure, who, place, app)


def row(who, measured, count):
    """The median of each column, and the range of the seconds."""
    seconds, busy, calls = zip(*measured)
    median = statistics.median(seconds)
    alone = "" if None in calls else f"{(count - 1) / statistics.median(calls):,.0f}"
    cells = [who, seconds_text(median), f"{seconds_text(min(seconds))}–{seconds_text(max(seconds))}",
             f"{count / median:,.0f}", alone, seconds_text(statistics.median(busy))]
    return f"| {' | '.join(cells)} |"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    count, runs = number("POINTS", WIDTH * WIDTH), number("RUNS", 3)
    if not 1 < count <= WIDTH * WIDTH:
        raise SystemExit(f"peers: CE_PEERS_POINTS is {count}, not from 2 to {WIDTH * WIDTH}")
    kinds = {"ce-run": ce_run, "parsl": parsl}
    names = setting("TOOLS", " ".join(kinds)).split()
    if not names or not kinds.keys() >= set(names):
        raise SystemExit(f"peers: CE_PEERS_TOOLS is {' '.join(names)!r}, not some of {' '.join(kinds)}")
    with tempfile.TemporaryDirectory(prefix="ce-peers-") as scratch:
        scratch = pathlib.Path(scratch)
        subprocess.run(["cc", "-O2", "-static", "-o", scratch / "join", HERE / "join.c"], check=True)
        cluster, environment = slurm()
        try:
            variants = [variant for name in names for variant in kinds[name](scratch, count, environment)]
            print(machine(scratch, [], WORKERS, runs))
            print("| | median | range | calls/s | calls/s once workers are there | CPU seconds of the run |")
            print("|---|--:|--:|--:|--:|--:|", flush=True)
            told = {who: [] for who, _ in variants}
            for run in range(runs):
                for who, measure in variants:
                    told[who].append(measure(run))
                    tell(f"{who}, run {run + 1} of {runs}: {told[who][-1][0]:.2f} s")
            print("\n".join([*(row(who, measured, count) for who, measured in told.items()), load()]), flush=True)
        finally:
            subprocess.run([DOWN, cluster, "--purge"], check=True, stdout=sys.stderr)


if __name__ == "__main__":
    main()
