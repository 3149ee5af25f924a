#!/usr/bin/env python3
"""Executes points of a sweep by Parsl: each is one call of join. workers.py starts it, with Python from an environment that has Parsl.

    parsl_calls.py local|slurm COUNT WORKERS WITH

It is started in a directory that has the inputs and the program. WITH is "bash", which leaves each call to a bash app, as
Parsl's manual has it for programs, or "python", an app that starts the program itself, without a shell. The
first point is executed alone: then the workers are there. Prints the seconds that the others take.
"""

import os
import pathlib
import sys
import time

import parsl
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider, SlurmProvider

WIDTH = 100
PROGRAMS = pathlib.Path(sys.executable).parent


@parsl.bash_app
def by_bash(here, x, y):
    return f"cd {here} && ./join in/{x} in/{y} out/{x}-{y}"


@parsl.python_app
def by_python(here, x, y):
    import subprocess

    subprocess.run(["./join", f"in/{x}", f"in/{y}", f"out/{x}-{y}"], cwd=here, check=True)


def provider(kind, workers):
    """One block, which is there from the beginning to the end. Its programs are found in PATH only."""
    blocks = {"init_blocks": 1, "min_blocks": 1, "max_blocks": 1}
    init = f"export PATH={PROGRAMS}:$PATH"
    if kind == "local":
        return LocalProvider(worker_init=init, **blocks)
    return SlurmProvider(worker_init=init, cores_per_node=workers, walltime="01:00:00", **blocks)


def main():
    kind, count, workers, app = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    os.environ["PATH"] = f"{PROGRAMS}:{os.environ['PATH']}"
    # Other addresses of the host may not be reachable.
    executor = HighThroughputExecutor(address="127.0.0.1", max_workers_per_node=workers, cores_per_worker=1,
                                      provider=provider(kind, workers))
    here = os.getcwd()
    call = {"bash": by_bash, "python": by_python}[app]
    with parsl.load(parsl.Config(executors=[executor], strategy="none", usage_tracking=0)):
        call(here, 0, 0).result()
        begin = time.perf_counter()
        for future in [call(here, at // WIDTH, at % WIDTH) for at in range(1, count)]:
            future.result()
        print(time.perf_counter() - begin)


if __name__ == "__main__":
    main()
