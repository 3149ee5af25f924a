#!/usr/bin/env python3
"""Measures messages between two ranks of MPI on one host, isolated and not, in turns.

A private Slurm with one node is started for it; it needs Debian's packages slurmctld, slurmd, slurm-client, munge,
openmpi-bin and libopenmpi-dev. Prints the medians of the bytes a second, and their ratio. Settings are in the
environment; CE_PEERS_RUNS, _CE_RUN and TMPDIR as for run.py, and:

    CE_PEERS_BYTES   the size of a message (4194304)
    CE_PEERS_ROUNDS  how many each rank sends (500)
"""

import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from generate import commit
from run import HERE, number, setting
from table import machine
from workers import DOWN, slurm

WORKFLOW = """Inputs: 'round'

(ring round :resources 'nodes 1' 'tasks 2' 'launcher srun --mpi=pmix')
"""


def main():
    program = pathlib.Path(setting("CE_RUN", HERE / "../../target/release/ce-run")).resolve()
    size, rounds, runs = number("BYTES", 1 << 22), number("ROUNDS", 500), number("RUNS", 5)
    with tempfile.TemporaryDirectory(prefix="ce-peers-") as scratch:
        scratch = pathlib.Path(scratch)
        subprocess.run(["mpicc", "-O2", "-rdynamic", "-o", scratch / "ring", HERE / "ring.c"], check=True)
        script = f'#!/bin/sh\nexec "$(dirname "$0")/ring" "$2" "$3" {size} {rounds}\n'
        files = [("644", "workflow.ce", WORKFLOW.encode()), ("644", "computations/ring/inputs", b"round\n"),
                 ("644", "computations/ring/outputs", b"told\nspeed\n"),
                 ("755", "computations/ring/exec", script.encode()),
                 ("755", "computations/ring/ring", (scratch / "ring").read_bytes())]
        commit(scratch / "task", files)
        cluster, environment = slurm()
        speeds = {"isolated": [], "not isolated": []}
        try:
            for run in range(runs):
                for who, options in zip(speeds, [[], ["--no-isolate"]]):
                    storage = scratch / who.replace(" ", "-")
                    storage.mkdir(exist_ok=True)
                    command = [program, "-q", "--no-sync", "--on", "slurm", *options, "-p", f"round={run}", "--task", "task", storage]
                    subprocess.run(command, cwd=scratch, env=environment, check=True, stdout=subprocess.DEVNULL)
                    [told], [speed] = ([*storage.glob(f"c_ring/*/{output}/*")] for output in ["00", "01"])
                    if not told.read_text().endswith("copied once\n"):
                        raise SystemExit(f"peers: messages were copied twice: {told.read_text()}")
                    speeds[who].append(float(speed.read_text()))
                    shutil.rmtree(storage)
            print(machine(scratch, [], 2, runs))
        finally:
            subprocess.run([DOWN, cluster, "--purge"], check=True, stdout=subprocess.DEVNULL)
    medians = [statistics.median(all) for all in speeds.values()]
    for who, median in zip(speeds, medians):
        print(f"{who}: {median / 1e9:.2f} GB/s")
    print(f"ratio: {medians[0] / medians[1]:.2f}")


main()
