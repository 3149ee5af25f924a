#!/usr/bin/env python3
"""Measures calls that workers on Slurm execute: by ce run --on slurm, by ce run -j beside it, and by Parsl.

A private Slurm with one node is started for it; it needs Debian's packages slurmctld, slurmd, slurm-client and munge. Each
call is one call of join, with two workers of one processor each. Prints a table for doc/performance.md. Settings are
in the environment; CE_PEERS_RUNS, _CE_RUN and TMPDIR as for run.py, and:

    CE_PEERS_POINTS  number of calls (10000, which is the most)
    CE_PEERS_INSTALL no, if Parsl is to be left out, not installed from PyPI into a directory that is removed
                     in the end (yes)
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from generate import commit
from run import HERE, cpu_seconds, number, setting, tell
from sweep import factors, points, prepare, shared
from table import load, machine, seconds_text
from tools import ENVIRONMENT

WORKERS = 2
UP, DOWN = (HERE / f"../../tests/slurm/slurm-{name}" for name in ["up", "down"])
PARSL = """\
import os, sys, time
import parsl
from parsl import python_app
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SimpleLauncher
from parsl.providers import SlurmProvider

provider = SlurmProvider(partition="main", nodes_per_block=1, cores_per_node={workers}, init_blocks=1, max_blocks=1,
                         exclusive=False, walltime="01:00:00", launcher=SimpleLauncher(),
                         worker_init="export PATH={bin}:$PATH")
executor = HighThroughputExecutor(label="join", address="127.0.0.1", loopback_address="127.0.0.1", cores_per_worker=1,
                                  max_workers_per_node={workers}, provider=provider, encrypted=False)
parsl.load(Config(executors=[executor], run_dir="runinfo", usage_tracking=0, strategy="none"))

@python_app
def join(a, b, out):
    import subprocess
    subprocess.run(["./join", a, b, out], check=True, cwd={directory!r})

os.mkdir("out")
begun = time.perf_counter()
calls = [join("in/%d" % x, "in/%d" % y, "out/%d-%d" % (x, y)) for x, y in {points}]
calls[0].result()
print(time.perf_counter() - begun)
for call in calls:
    call.result()
print(time.perf_counter() - begun, flush=True)
os._exit(0)
"""


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


def parsl(scratch, count, environment, run):
    """The same by Parsl: the seconds from the first call that is submitted, and the CPU time."""
    python = scratch / "venv/bin/python3"
    if not python.exists():
        tell("installs parsl from PyPI")
        subprocess.run([sys.executable, "-m", "venv", scratch / "venv"], check=True)
        subprocess.run([scratch / "venv/bin/pip", "install", "--quiet", "parsl"], check=True, stdout=sys.stderr)
    directory = prepare(scratch, f"parsl-{run}")
    text = PARSL.format(workers=WORKERS, bin=python.parent, directory=str(directory), points=points(count))
    (directory / "study.py").write_text(text)
    busy = cpu_seconds()
    done = subprocess.run([python, "study.py"], cwd=directory, env=environment, text=True, capture_output=True)
    subprocess.run(["scancel", "--me"], env=environment, check=True)
    made = sum(1 for _ in (directory / "out").iterdir())
    if done.returncode != 0 or made != count:
        raise SystemExit(f"peers: Parsl ended with {done.returncode}, and {made} outputs\n{done.stderr}")
    return float(done.stdout.split()[-1]), cpu_seconds() - busy


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
        if setting("INSTALL", "yes") != "no":
            variants["Parsl, HighThroughputExecutor"] = lambda run: parsl(scratch, count, environment, run)
        print(f"{count} calls, {WORKERS} workers, {machine()}, load {load()}\n")
        print("| | seconds | calls/s | CPU seconds |\n|---|---|---|---|")
        try:
            for who, measure in variants.items():
                seconds, busy = min(measure(run) for run in range(runs))
                print(f"| {who} | {seconds_text(seconds)} | {count / seconds:.0f} | {seconds_text(busy)} |", flush=True)
        finally:
            subprocess.run([DOWN, cluster, "--purge"], check=True, stdout=sys.stderr)


if __name__ == "__main__":
    main()
