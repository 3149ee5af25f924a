"""The same work, written down for each tool: a binary tree of calls that concatenate two files.

Calls are numbered from the root, 0, downwards; each comes before the two that it reads. Half of them read
task inputs. The leftmost leaf alone reads the input `leaf`. Nothing here is random.
"""

import itertools
import math
import subprocess

LEAF = "leaf"


class Work:
    """So many calls. `calls[n]` are the two that call n reads: numbers of calls, or names of inputs."""

    def __init__(self, count):
        self.calls = []
        # At most that many calls read inputs. As few inputs as can be: their hashes are the job's name.
        readers = (2 * count + 2) // 3
        width = max(2, math.isqrt(readers - 1) + 1)
        self.inputs = [LEAF] + [f"x{at}" for at in range(width)]
        self._grow(count, itertools.product(self.inputs[1:], repeat=2))
        self.calls[self.chain()[-1]][0] = LEAF

    def _grow(self, count, pairs):
        """Adds a tree with this number of calls; returns the number of its root."""
        here = len(self.calls)
        self.calls.append([])
        halves = [count // 2, (count - 1) // 2]
        pair = next(pairs) if 0 in halves else None
        for side, half in enumerate(halves):
            self.calls[here].append(self._grow(half, pairs) if half else pair[side])
        return here

    def chain(self):
        """The calls that must run again when `leaf` changes, root first."""
        chain = [0]
        while isinstance(self.calls[chain[-1]][0], int):
            chain.append(self.calls[chain[-1]][0])
        return chain

    def files(self, call):
        """The three files of a call: two that it reads, one that it writes."""
        name = lambda it: f"out/{it}" if isinstance(it, int) else f"in/{it}"
        return [name(it) for it in [*self.calls[call], call]]


def inputs(work, directory):
    """Writes the inputs, six bytes each, so that no two calls write the same."""
    directory.mkdir()
    for at, name in enumerate(work.inputs):
        (directory / name).write_text(f"{at:06}")


def floor(work, calls, path):
    """Writes what `floor run` reads for these of the calls, given root first."""
    order = list(reversed(calls))
    line = {call: at for at, call in enumerate(order)}
    reader = {child: line[call] for call in order for child in work.calls[call]}
    with open(path, "w") as file:
        file.writelines(f"{reader.get(call, -1)} {' '.join(work.files(call))}\n" for call in order)


def make(work, path):
    with open(path, "w") as file:
        for call in range(len(work.calls)):
            a, b, out = work.files(call)
            file.write(f"{out}: {a} {b}\n\t./join {a} {b} {out}\n")


def ninja(work, path):
    with open(path, "w") as file:
        file.write("rule join\n  command = ./join $in $out\n")
        for call in range(len(work.calls)):
            a, b, out = work.files(call)
            file.write(f"build {out}: join {a} {b}\n")
        file.write("default out/0\n")


def task(work, program, directory):
    """Makes the task repository of a work."""
    commit(directory, _task_files(work, program.read_bytes()))


def commit(directory, files):
    """Makes a repository with one commit, as it is after `git clone`: its objects are in a pack."""
    git = ["git", "-C", str(directory)]
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(directory)], check=True)
    importing = subprocess.Popen([*git, "fast-import", "--quiet"], stdin=subprocess.PIPE)
    put = importing.stdin.write
    put(b"commit refs/heads/main\ncommitter peers <peers@example.org> 1000000000 +0000\ndata 4\ntask\n")
    for mode, path, data in files:
        put(f"M {mode} inline {path}\ndata {len(data)}\n".encode() + data + b"\n")
    importing.stdin.close()
    if importing.wait() != 0:
        raise SystemExit("peers: git fast-import failed")
    subprocess.run([*git, "reset", "--quiet", "--hard", "main"], check=True)


def _task_files(work, program):
    yield "100644", "inputs", "".join(f"{name}\n" for name in work.inputs).encode()
    yield "100644", "computations/join/inputs", b"a\nb\n"
    yield "100644", "computations/join/outputs", b"joined\n"
    yield "100755", "computations/join/exec", program
    nodes = [("workflow", 0)]
    while nodes:
        path, node = nodes.pop()
        is_call = isinstance(node, int)
        yield "100644", f"{path}/kind", b"computation\n" if is_call else b"input\n"
        yield "100644", f"{path}/value", b"join\n" if is_call else f"{node}\n".encode()
        if is_call:
            a, b = work.calls[node]
            nodes += [(f"{path}/inputs/01-b", b), (f"{path}/inputs/00-a", a)]
