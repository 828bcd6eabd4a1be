"""The floors that magicbyte's speeds were promised to hold, from benches/floors.toml, and the figure that
decides each.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from figures import Figure, Figures, Key
from limits import BARE
from sets import PROJECT

FILE = PROJECT / "benches" / "floors.toml"
BEST_PEER = "the best peer"
# Output sizes within this fraction count as equal.
EQUAL_SIZE = 0.02


@dataclass(frozen=True)
class Floor:
    """`issue` is the issue that asks for it, `version` the one since which it holds."""

    version: str
    issue: int
    part: str
    work: str
    on: str
    peer: str
    floor: float
    goal: float | None = None

    @property
    def key(self) -> Key:
        return (self.part, self.work, self.on, self.peer)


def history(text: str) -> dict[str, dict[Key, Floor]]:
    """All floors that hold in each version, the oldest version first.

    Raises `ValueError` if one falls without a sentence, if an entry names a comparison twice in a version, or
    if a goal has no floor or is below it.
    """
    versions: dict[str, dict[Key, Floor]] = {}
    holding: dict[Key, Floor] = {}
    for version, entries in tomllib.loads(text).items():
        named: set[Key] = set()
        for entry in entries:
            for floor in floors_of(version, entry):
                before = holding.get(floor.key)
                if floor.key in named:
                    raise ValueError(f"{version}: {floor.key} has two floors")
                if before and floor.floor < before.floor and not entry.get("why"):
                    raise ValueError(
                        f"{version}: the floor of {floor.key} falls from {before.floor} to {floor.floor} "
                        "without a sentence (`why`)"
                    )
                named.add(floor.key)
                holding[floor.key] = floor
        versions[version] = dict(holding)
    return versions


def floors_of(version: str, entry: dict[str, Any]) -> Iterator[Floor]:
    floors, goals = entry["floors"], entry.get("goals", {})
    for on, floor in floors.items():
        goal = goals.get(on)
        if goal is not None and goal < floor:
            raise ValueError(f"{version}: the goal {goal} for {on} is below its floor {floor}")
        yield Floor(
            version, entry["issue"], entry["part"], entry.get("work", ""), on, entry["peer"], floor, goal
        )
    if unknown := goals.keys() - floors.keys():
        raise ValueError(f"{version}: goals without a floor: {', '.join(sorted(unknown))}")


# Those of the newest version, which is the next one to be released.
VERSION, FLOORS = next(
    (version, list(floors.values())) for version, floors in reversed(history(FILE.read_text()).items())
)


def judged(floor: Floor, figures: Figures) -> Figure | None:
    """The figure that decides; for the best peer, the one that is hardest to beat."""
    if floor.peer != BEST_PEER:
        return figures.figures.get(floor.key)
    peers = [
        one
        for one in figures.of(floor.part)
        if (one.work, one.on) == (floor.work, floor.on)
        and one.peer not in BARE
        and (one.size is None or abs(one.size - 1) <= EQUAL_SIZE)
    ]
    return min(peers, key=lambda one: one.ratio, default=None)
