"""Rates measured in turn, and the ratio of each turn."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Comparison:
    """Our records/s and a peer's, turn by turn."""

    ours: list[float]
    peers: list[float]

    @property
    def ratios(self) -> list[float]:
        return [ours / peers for ours, peers in zip(self.ours, self.peers, strict=True)]

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    def __str__(self) -> str:
        return f"{self.ratio:.2f} ({min(self.ratios):.2f}..{max(self.ratios):.2f})"


def in_turn(ways: dict[str, Callable[[], float]], turns: int, rounds: int = 1) -> dict[str, list[float]]:
    """The rates of all ways in turn, so that other load affects all of them alike. The best round of a turn
    counts, because other load can only slow a round down.
    """
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(turns):
        for name, way in ways.items():
            rates[name].append(max(way() for _ in range(rounds)))
    return rates


def millions(rates: list[float]) -> str:
    return f"{median(rates) / 1e6:.3g}"
