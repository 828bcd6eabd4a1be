"""The figures of all benches, kept from run to run in docs/benchmarks.json.

A figure compares one kind of work on one set of data with one peer. A new figure replaces the
previous one for the same comparison. The others are kept, and each names its run.
"""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from commits import Commit
from ratios import Comparison
from sources import SOURCES

# Part, work, data and peer.
Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Figure:
    """Medians of rates (records/s, or None if only the ratio is meaningful), and of the turns' ratios."""

    part: str
    work: str
    on: str
    peer: str
    ours: float | None
    peers: float | None
    ratio: float
    low: float
    high: float
    turns: int
    # Our output size divided by the peer's, for writers.
    size: float | None = None
    run: str = ""
    # The commit that it was measured at, if that is known.
    commit: Commit | None = None

    @property
    def key(self) -> Key:
        return (self.part, self.work, self.on, self.peer)

    def __str__(self) -> str:
        return f"{self.ratio:.2f} ({self.low:.2f}..{self.high:.2f})"


def figure(
    part: str, work: str, on: str, peer: str, compared: Comparison, *, size: float | None = None
) -> Figure:
    """A figure for rates in records/s."""
    ours, peers = (float(f"{median(rates):.4g}") for rates in (compared.ours, compared.peers))
    return replace(only_ratio(part, work, on, peer, compared), ours=ours, peers=peers, size=size)


def only_ratio(part: str, work: str, on: str, peer: str, compared: Comparison) -> Figure:
    """A figure for rates in any other unit."""
    ratio, low, high = (
        round(value, 3) for value in (compared.ratio, min(compared.ratios), max(compared.ratios))
    )
    return Figure(part, work, on, peer, None, None, ratio, low, high, len(compared.ours))


def of_json(one: dict[str, Any]) -> Figure:
    commit = one.pop("commit", None)
    return Figure(**one, commit=Commit(**commit) if commit else None)


@dataclass(frozen=True)
class Run:
    """`name` is the minute at which it started, `commits` has the commit of then for each part."""

    name: str
    commits: dict[str, Commit | None] = field(default_factory=dict)


@dataclass
class Figures:
    """All figures, and for each run its machine, its versions, and what was left out."""

    figures: dict[Key, Figure] = field(default_factory=dict)
    runs: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> "Figures":
        if not path.exists():
            return cls()
        stored = json.loads(path.read_text())
        figures = [of_json(one) for one in stored["figures"]]
        return cls({one.key: one for one in figures}, stored["runs"])

    def put(self, figures: list[Figure], run: Run, facts: list[str]) -> None:
        for one in figures:
            self.figures[one.key] = replace(one, run=run.name, commit=run.commits.get(one.part))
        self.runs[run.name] = facts
        used = {one.run for one in self.figures.values()} | {run.name}
        self.runs = {name: self.runs[name] for name in sorted(used) if name in self.runs}

    def save(self, path: Path) -> None:
        # One figure per line, so that the diff of a new run is readable.
        lines = ",\n".join(f"  {json.dumps(asdict(one))}" for _, one in sorted(self.figures.items()))
        runs = json.dumps(self.runs, indent=1)
        parts = {one.part for one in self.figures.values()}
        sources = ",\n".join(f" {json.dumps(part)}: {json.dumps(SOURCES[part])}" for part in sorted(parts))
        path.write_text(f'{{"runs": {runs},\n"sources": {{\n{sources}\n}},\n"figures": [\n{lines}\n]}}\n')

    def of(self, part: str) -> list[Figure]:
        return [one for one in self.figures.values() if one.part == part]
