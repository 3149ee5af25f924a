#!/usr/bin/env python3
"""Compares a sweep of ce-run with the same calls without one, and with Snakemake.

Each point of x and y, 100 texts each, is one call of join. Prints a table for doc/performance.md, which says what is
measured. Settings are in the environment; CE_PEERS_RUNS, _JOBS, _CE_RUN and TMPDIR as for run.py, and:

    CE_PEERS_POINTS  number of points (10000, which is the most)
    CE_PEERS_TOOLS   which of "ce-run snakemake-greedy snakemake" (all)
    CE_PEERS_LIMIT   seconds after which a run is ended, and told as not finished (3600)
    CE_PEERS_INSTALL no, if Snakemake is to be left out where it is missing, not installed from PyPI into a
                     directory that is removed in the end (yes)
"""

import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from generate import commit
from run import HERE, cpu_seconds, number, setting, tell
from table import load, machine, seconds_text
from tools import ENVIRONMENT

WIDTH = 100
COLLECT = b'#!/bin/bash\nexec cat "${@:1:$#-1}" >"${!#}"\n'
SNAKEFILE = """\
POINTS = {points}
rule all:
    input: [f"out/{{x}}-{{y}}" for x, y in POINTS]
rule join:
    input: "in/{{x}}", "in/{{y}}"
    output: "out/{{x}}-{{y}}"
    shell: "./join {{input}} {{output}}"
"""


@dataclasses.dataclass
class Variant:
    """A way to make all outputs: the command to run in a directory, and the place of the outputs."""

    who: str
    directory: pathlib.Path
    command: list
    outputs: str
    made: str
    slow: bool = False

    def measure(self, limit, *options):
        """Returns the seconds of a run, its CPU time, and how many calls it executed; ends it at the limit."""
        before = self.files()
        begin, busy = time.perf_counter(), cpu_seconds()
        child = subprocess.Popen([*self.command, *options], cwd=self.directory, env=ENVIRONMENT, text=True,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        try:
            _, said = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
        else:
            if child.returncode != 0:
                raise SystemExit(f"peers: {self.who} ended with {child.returncode}\n{said}")
        return time.perf_counter() - begin, cpu_seconds() - busy, len(self.files() - before)

    def files(self):
        return {(entry.path, entry.stat().st_mtime_ns)
                for place in self.directory.glob(self.outputs) for entry in os.scandir(place)}

    def contents(self):
        return sorted(pathlib.Path(path).read_bytes() for path, _ in self.files())

    def complete(self, count):
        """Makes all outputs in place of a run that was ended, and lets the tool take note of them."""
        self.afresh("ended")
        (self.directory / "out").mkdir()
        for x, y in points(count):
            (self.directory / f"out/{x}-{y}").write_text(f"{x}\n{y}\n")
        for option in ["--unlock", "--touch"]:
            subprocess.run([*self.command, "--scheduler", "greedy", option], cwd=self.directory, env=ENVIRONMENT,
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def afresh(self, run):
        """Moves the outputs aside: removing them would slow down the next measurement."""
        for name in self.made.split():
            if (self.directory / name).exists():
                (self.directory / name).rename(self.directory / f"{name}-{run}")


def points(count):
    return [(at // WIDTH, at % WIDTH) for at in range(count)]


def ce_run(scratch, count, jobs):
    """The variants of ce-run: with and without a sweep."""
    program = pathlib.Path(setting("CE_RUN", HERE / "../../target/release/ce-run")).resolve()
    if not program.exists():
        raise SystemExit(f"peers: {program} is not there: build it with cargo build --release")
    inputs = [f"in/{text}" for text in range(WIDTH)]
    kinds = {"points from factors": (factors, []), "computed points": (computed, []),
             "no sweep": (plain, inputs)}
    for who, (files, given) in kinds.items():
        directory = prepare(scratch, who.replace(" ", "-"))
        commit(directory / "task", [*shared((scratch / "join").read_bytes()), *files(count)])
        options = ["-j", str(jobs), "--no-isolate", "--no-sync", "--task", "task", "storage"]
        yield Variant(f"ce-run, {who}", directory, [program, *options, *given], "storage/c_join/*/00", "storage")


def snakemake(scratch, count, jobs, *options):
    """Snakemake as it is, or with options."""
    program = shutil.which("snakemake") or from_pypi(scratch, "snakemake", "snakemake")
    if program is None:
        tell("snakemake is not installed, and left out")
        return
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip()
    who = " ".join([f"Snakemake {version}", *options])
    directory = prepare(scratch, who.replace(" ", "-"))
    (directory / "Snakefile").write_text(SNAKEFILE.format(points=points(count)))
    command = [program, "--cores", str(jobs), "--quiet", "all", *options]
    yield Variant(who, directory, command, "out", "out .snakemake", slow=True)


def from_pypi(scratch, package, program):
    """Installs a package from PyPI into a directory of its own, if it may be. Returns a program of it, or None."""
    installed = scratch / "venv/bin" / program
    if not installed.exists() and setting("INSTALL", "yes") != "no":
        tell(f"installs {package} from PyPI")
        subprocess.run([sys.executable, "-m", "venv", scratch / "venv"], check=True)
        subprocess.run([scratch / "venv/bin/pip", "install", "--quiet", package], stdout=sys.stderr)
    return str(installed) if installed.exists() else None


def greedy(scratch, count, jobs):
    """Snakemake with its faster scheduler: by default it solves an integer program for each choice of jobs."""
    return snakemake(scratch, count, jobs, "--scheduler", "greedy")


def prepare(scratch, name):
    """A directory with the inputs and the program."""
    directory = scratch / name
    (directory / "in").mkdir(parents=True)
    for text in range(WIDTH):
        (directory / f"in/{text}").write_text(f"{text}\n")
    shutil.copy(scratch / "join", directory)
    return directory


def shared(join):
    """The computation of every call."""
    yield "100644", "computations/join/inputs", b"a\nb\n"
    yield "100644", "computations/join/outputs", b"joined\n"
    yield "100755", "computations/join/exec", join


def sweep():
    yield "100644", "inputs", b""
    yield "100644", "workflow/kind", b"sweep\n"
    yield from node("workflow/inputs/00-body", "computation", "join")
    yield from node("workflow/inputs/00-body/inputs/00-a", "input", "x")
    yield from node("workflow/inputs/00-body/inputs/01-b", "input", "y")


def factors(count):
    yield from sweep()
    for at, name in enumerate(["x", "y"]):
        levels = sorted({point[at] for point in points(count)})
        yield "100644", f"workflow/factors/0{at}-{name}", "".join(f"{level}\n" for level in levels).encode()
    if count % WIDTH and count > WIDTH:
        left_out = [(count // WIDTH, y) for y in range(count % WIDTH, WIDTH)]
        rows = "".join(f"{x}\t{y}\n" for x, y in left_out)
        yield "100644", "workflow/exclude.tsv", f"x\ty\n{rows}".encode()


def computed(count):
    yield from sweep()
    yield from node("workflow/inputs/01-points", "computation", "points")
    rows = "".join(f"{x}\t{y}\n" for x, y in points(count))
    yield "100644", "computations/points/outputs", b"sheet\n"
    yield "100644", "computations/points/inputs", b""
    yield "100644", "computations/points/sheet", f"x\ty\n{rows}".encode()
    yield "100755", "computations/points/exec", b'#!/bin/sh\nexec cp "${0%/*}/sheet" "$1"\n'


def plain(count):
    """A node for each call. A call has at most 100 inputs: so one for each 100, and one for all."""
    yield "100644", "inputs", "".join(f"v{text}\n" for text in range(WIDTH)).encode()
    of_row = lambda x: [y for x_of_point, y in points(count) if x_of_point == x]
    rows = [of_row(x) for x in range((count + WIDTH - 1) // WIDTH)]
    for length in {len(row) for row in rows} | {len(rows)}:
        yield "100644", f"computations/all{length}/inputs", "".join(f"i{at}\n" for at in range(length)).encode()
        yield "100644", f"computations/all{length}/outputs", b"all\n"
        yield "100755", f"computations/all{length}/exec", COLLECT
    yield from node("workflow", "computation", f"all{len(rows)}")
    for x, row in enumerate(rows):
        yield from node(f"workflow/inputs/{x:02}-{x}", "computation", f"all{len(row)}")
        for at, y in enumerate(row):
            place = f"workflow/inputs/{x:02}-{x}/inputs/{at:02}-{at}"
            yield from node(place, "computation", "join")
            yield from node(f"{place}/inputs/00-a", "input", f"v{x}")
            yield from node(f"{place}/inputs/01-b", "input", f"v{y}")


def node(place, kind, value):
    yield "100644", f"{place}/kind", f"{kind}\n".encode()
    yield "100644", f"{place}/value", f"{value}\n".encode()


def compare(variants, count, runs, limit):
    """Measures cold runs in turns, then those with nothing to do. A slow tool has one cold run, up to the limit."""
    told = {}
    for run in range(runs):
        for variant in variants:
            if run == 0 or not variant.slow:
                tell(f"{variant.who}, cold, run {run + 1} of {runs}")
                variant.afresh(run)
                note(told, "cold", variant, count, variant.measure(limit))
                if len(variant.files()) < count:
                    variant.complete(count)
    if len({tuple(variant.contents()) for variant in variants}) != 1:
        raise SystemExit("peers: the tools do not agree on the results")
    for _ in range(runs):
        for variant in variants:
            note(told, "nothing to do", variant, 0, variant.measure(limit))
    return told


def note(told, work, variant, expected, measured):
    seconds, cpu, ran = measured
    if ran > expected or (ran < expected and not variant.slow):
        raise SystemExit(f"peers: {variant.who}, {work}: {ran} calls ran, not {expected}")
    who = variant.who if ran == expected else f"{variant.who}, ended at the limit, after {ran} calls"
    told.setdefault((work, who), []).append((seconds, cpu))


def rows(told, count):
    """A table of the least times, with the ratio to the same calls without a sweep."""
    yield f"| {count:,} calls | least | CPU | runs | x no sweep | x no sweep, CPU |"
    yield "|---|--:|--:|--:|--:|--:|"
    for (work, who), times in told.items():
        least = [min(values) for values in zip(*times)]
        peer = told.get((work, "ce-run, no sweep"))
        ratios = [f"{mine / min(its):.2f}" for mine, its in zip(least, zip(*peer))] if peer else ["", ""]
        cells = [f"{work}: {who}", *map(seconds_text, least), str(len(times)), *ratios]
        yield f"| {' | '.join(cells)} |"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    count, runs = number("POINTS", WIDTH * WIDTH), number("RUNS", 3)
    jobs, limit = number("JOBS", len(os.sched_getaffinity(0))), number("LIMIT", 3600)
    if count > WIDTH * WIDTH:
        raise SystemExit(f"peers: CE_PEERS_POINTS is {count}, which is more than {WIDTH * WIDTH}")
    kinds = {"ce-run": ce_run, "snakemake-greedy": greedy, "snakemake": snakemake}
    names = setting("TOOLS", " ".join(kinds)).split()
    if not names or not kinds.keys() >= set(names):
        raise SystemExit(f"peers: CE_PEERS_TOOLS is {' '.join(names)!r}, not some of {' '.join(kinds)}")
    with tempfile.TemporaryDirectory(prefix="ce-peers-") as directory:
        scratch = pathlib.Path(directory)
        ENVIRONMENT["XDG_CACHE_HOME"] = str(scratch / "cache")
        subprocess.run(["cc", "-O2", "-static", "-o", scratch / "join", HERE / "join.c"], check=True)
        variants = [variant for name in names for variant in kinds[name](scratch, count, jobs)]
        if not variants:
            raise SystemExit("peers: there is no tool to compare")
        print(machine(scratch, [], jobs, runs), flush=True)
        print("\n".join(rows(compare(variants, count, runs, limit), count)) + "\n" + load(), flush=True)


if __name__ == "__main__":
    main()
