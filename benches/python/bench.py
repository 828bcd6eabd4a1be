"""What every part of `make bench` gets: the sets, the number of turns, and the collected figures."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from figures import Figure
from programs import Absent, Program, damaged_copies, must_refuse
from sets import Manifest, Set


@dataclass
class Bench:
    manifest: Manifest
    sets: list[Set]
    turns: int
    figures: list[Figure] = field(default_factory=list)
    # Whole sections of the page, by title.
    sections: dict[str, str] = field(default_factory=dict)
    # Failures, and what this machine lacks; neither stops the run.
    problems: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)

    def chosen(self, *names: str) -> list[Set]:
        """Those of the named sets that were chosen for this run."""
        return [of for of in self.sets if of.name in names]

    def add(self, figure: Figure) -> None:
        self.figures.append(figure)
        what = ", ".join(filter(None, (figure.part, figure.work, figure.on)))
        print(f"{what}: {figure} x {figure.peer}", flush=True)

    def refusing(self, programs: list[Program], of: Set) -> list[Program]:
        """The programs, reduced to the readers that refuse damage."""
        working = []
        with damaged_copies(of) as copies:
            for program in programs:
                names = []
                for name in program.names:
                    with self.guarded(f"{name} on {of.name}"):
                        must_refuse(program.only(name), of, copies)
                        names.append(name)
                if names:
                    working.append(program.only(*names))
        return working

    @contextmanager
    def guarded(self, what: str) -> Iterator[None]:
        """Reports a failure and continues."""
        try:
            yield
        except (Absent, ImportError) as error:
            self.absent.append(f"{what}: {error}")
            print(f"left out: {self.absent[-1]}", flush=True)
        except (RuntimeError, ValueError, OSError, subprocess.SubprocessError) as error:
            self.problems.append(f"{what}: {error}")
            print(f"FAILED {self.problems[-1]}", flush=True)
