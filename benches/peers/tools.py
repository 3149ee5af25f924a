"""The tools that are compared: what each of them is told to do, in a directory of its own."""

import dataclasses
import os
import pathlib
import shutil
import subprocess

import generate

ENVIRONMENT = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


@dataclasses.dataclass
class Step:
    """A command to be timed; the files that its calls write are directly in `outputs`, a pattern."""

    who: str
    command: list
    directory: pathlib.Path
    outputs: str

    def run(self):
        done = subprocess.run(self.command, cwd=self.directory, env=ENVIRONMENT, text=True,
                              stdout=subprocess.PIPE if "-q" in self.command else subprocess.DEVNULL,
                              stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise SystemExit(f"peers: {self.who} ended with {done.returncode}\n{done.stderr}")
        return done

    def newer(self, than):
        """How many outputs were written since a time, in nanoseconds."""
        files = (entry for place in self.directory.glob(self.outputs) for entry in os.scandir(place))
        return sum(entry.stat().st_mtime_ns >= than for entry in files)


class Tool:
    """Each has the inputs, and the program of the calls, in its directory."""

    def __init__(self, name, work, jobs, scratch):
        self.name, self.work, self.jobs = name, work, str(jobs)
        self.programs = scratch
        self.directory = scratch / str(len(work.calls)) / name
        self.directory.mkdir(parents=True)
        shutil.copy(scratch / "join", self.directory)
        generate.inputs(work, self.directory / "in")
        self.afresh = 0

    def change_leaf(self, version):
        (self.directory / "in" / generate.LEAF).write_text(f"{version:05}!")

    def first(self):
        """What makes everything that the steps of `nothing` find."""
        yield next(self.cold())

    def aside(self, name):
        """Moves the outputs aside: removing them would slow down the next measurement."""
        made = self.directory / name
        self.afresh += 1
        if made.exists():
            made.rename(f"{made}-{self.afresh}")


class Builder(Tool):
    """Makes files in `out/`: make, ninja, and the floor."""

    def __init__(self, name, work, jobs, scratch):
        super().__init__(name, work, jobs, scratch)
        (self.directory / "out").mkdir()
        self.describe()

    def step(self, command, who=None):
        return Step(who or self.name, command, self.directory, "out")

    def cold(self):
        self.aside("out")
        self.aside(".ninja_log")
        (self.directory / "out").mkdir()
        yield self.step(self.command())

    def nothing(self):
        yield self.step(self.command())

    def leaf(self):
        yield self.step(self.command())

    def take_over(self, other):
        """Takes what another one made, in place of doing the same again. Ninja keeps a log of its own."""
        shutil.copytree(other.directory / "out", self.directory / "out", copy_function=os.link,
                        dirs_exist_ok=True)

    def result(self):
        return (self.directory / "out/0").read_bytes()


class Make(Builder):
    def describe(self):
        generate.make(self.work, self.directory / "Makefile")

    def command(self):
        return ["make", "--silent", "--no-builtin-rules", f"-j{self.jobs}", "out/0"]


class Ninja(Builder):
    def describe(self):
        generate.ninja(self.work, self.directory / "build.ninja")

    def command(self):
        return ["ninja", "--quiet", f"-j{self.jobs}"]


class Floor(Builder):
    def describe(self):
        everything = range(len(self.work.calls))
        generate.floor(self.work, everything, self.directory / "graph")
        generate.floor(self.work, self.work.chain(), self.directory / "chain")
        names = [f"in/{name}" for name in self.work.inputs] + [f"out/{call}" for call in everything]
        (self.directory / "files").write_text("\n".join(names) + "\n")

    def command(self, graph="graph"):
        return [self.programs / "floor", "run", "./join", self.jobs, graph]

    def nothing(self):
        yield self.step([self.programs / "floor", "stat", "files"])
        workflow = self.directory.parent / "ce-run/task/workflow"
        if workflow.exists():
            yield self.step([self.programs / "floor", "walk", workflow], "floor that reads workflow/")

    def leaf(self):
        yield self.step(self.command("chain"))


class CeRun(Tool):
    """Evaluates a task repository. Its peers neither isolate nor wait for the disk."""

    program = None
    bare = ("--no-isolate", "--no-sync")

    def __init__(self, name, work, jobs, scratch):
        super().__init__(name, work, jobs, scratch)
        generate.task(work, self.directory / "join", self.directory / "task")
        text = self.directory / "text/task"
        shutil.copytree(self.directory / "task", text)
        for command in [[self.program.with_name("ce"), "convert", "--to", "text"], ["git", "add", "-A"],
                        ["git", "-c", "user.name=peers", "-c", "user.email=", "commit", "-qm", "text"]]:
            subprocess.run(command, cwd=text, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=True)

    def step(self, who, *options, storage="storage", task="task"):
        inputs = [f"in/{name}" for name in self.work.inputs]
        command = [self.program, "-j", self.jobs, "--task", task, *options, storage, *inputs]
        return Step(who, command, self.directory, f"{storage}/c_join/*/00")

    def cold(self):
        variants = {"ce-run": self.bare, "ce-run, isolated": ("--no-sync",),
                    "ce-run, synced": ("--no-isolate",), "ce-run, isolated, synced": ()}
        for at, (who, options) in enumerate(variants.items()):
            storage = f"storage-{at}" if at else "storage"
            self.aside(storage)
            yield self.step(who, *options, storage=storage)
        self.aside("text/storage")
        yield self.text()

    def first(self):
        yield from [next(self.cold()), self.text()]

    def nothing(self):
        for options in [(), ("-q",), ("--at", "HEAD"), ("--at", "HEAD", "-q")]:
            yield self.step(" ".join(("ce-run", *options)), *self.bare, *options)
        yield from [self.text(), self.text("-q")]

    def leaf(self):
        yield self.step("ce-run", *self.bare)
        yield self.text()

    def text(self, *options):
        """The same task as one text, with a storage of its own."""
        who = " ".join(("ce-run", *options)) + ", one text"
        return self.step(who, *self.bare, *options, storage="text/storage", task="text/task")

    def result(self):
        path = self.step("ce-run", *self.bare, "-q").run().stdout.strip()
        return (self.directory / path).read_bytes()


TOOLS = {"ce-run": CeRun, "make": Make, "ninja": Ninja, "floor": Floor}
