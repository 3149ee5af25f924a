"""What was measured, as tables in Markdown."""

import os
import platform
import statistics
import subprocess
import time

FLOOR, NINJA, BARE = "floor", "ninja", "ce-run"
# How many times as long as ninja it may take to find that there is nothing to do.
NOTHING_GOALS = {"ce-run, one text": 1.5, "ce-run -q, one text": 1.5, "ce-run --at HEAD": 0.5, "ce-run --at HEAD -q": 0.2}


def machine(scratch, names, jobs, runs):
    """Says where and when it was measured."""
    cpu = _first(open("/proc/cpuinfo").read().splitlines(), "model name")
    system = _first(open("/etc/os-release").read().splitlines(), "PRETTY_NAME").strip('"')
    disk = subprocess.run(["df", "--output=fstype", scratch], capture_output=True, text=True)
    versions = [", ".join(_version(name) for name in names if name in ("make", "ninja"))]
    return "\n".join([
        f"- {os.cpu_count()} cores, {cpu}; Linux {platform.release()}; {system}; {disk.stdout.split()[-1]}",
        "; ".join([f"- {jobs} calls at a time", f"median and least of {runs} runs", *filter(None, versions)]),
        load(),
    ]) + "\n"


def load():
    """Says how busy the machine is."""
    return f"- load at {time.strftime('%H:%M')}: {os.getloadavg()[0]:.1f}"


def tables(told):
    """One table for each work, in the order of measurement."""
    works = list(dict.fromkeys(work for work, _ in told))
    return "\n".join(_table(work, told) for work in works)


def _table(work, told):
    kind, calls, ran = work
    here = {who: times for (other, who), times in told.items() if other == work}
    medians = {who: _median(times) for who, times in here.items()}
    title = f"{calls:,} calls, {kind}" + (f": {ran} must run" if 0 < ran < calls else "")
    lines = [f"| {title} | median | least | CPU | per call | x floor | x ninja | goal |",
             "|---|--:|--:|--:|--:|--:|--:|---|"]
    for who, times in here.items():
        median = medians[who]
        goal = _goal(kind, who, medians, told, calls)
        ratios = [f"{median / medians[peer]:.2f}" if peer in medians else "" for peer in (FLOOR, NINJA)]
        least, busy = min(times)[0], statistics.median(cpu for _, cpu in times)
        cells = [who, *map(seconds_text, [median, least, busy, median / calls]), *ratios, goal]
        lines.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return "\n".join(lines) + "\n"


def _goal(kind, who, medians, told, calls):
    """What ce-run is to reach here, and whether it does; nothing if it cannot be said."""
    limits = []
    if kind == "cold" and who == BARE:
        limits = [("ninja", medians.get(NINJA)), ("2 floor", _times(2, medians.get(FLOOR)))]
    elif kind == "nothing to do" and who.startswith(BARE):
        factor = NOTHING_GOALS.get(who, 2.5)
        limits = [(f"{factor} ninja", _times(factor, medians.get(NINJA)))]
    elif kind == "one leaf changed" and who == BARE:
        nothing = told.get((("nothing to do", calls, 0), BARE))
        floor = medians.get(FLOOR)
        both = _median(nothing) + floor if nothing and floor else None
        limits = [("2 (nothing to do + floor)", _times(2, both))]
    met = lambda limit: "met" if medians[who] <= limit else "missed"
    return ", ".join(f"{name}: {met(limit)}" for name, limit in limits if limit is not None)


def _median(times):
    return statistics.median(seconds for seconds, _ in times)


def _times(factor, seconds):
    return None if seconds is None else factor * seconds


def seconds_text(seconds):
    """A time in seconds, with its unit."""
    if seconds >= 10:
        return f"{seconds:.1f} s"
    if seconds >= 0.9995:
        return f"{seconds:.2f} s"
    if seconds >= 0.00995:
        return f"{seconds * 1e3:.0f} ms"
    if seconds >= 0.000995:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds * 1e6:.1f} us"


def _version(name):
    said = subprocess.run([name, "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    return said if said.lower().startswith(("gnu", name)) else f"{name} {said}"


def _first(lines, key):
    return next((line.split(":" if ":" in line else "=", 1)[1].strip() for line in lines
                 if line.startswith(key)), "unknown")
