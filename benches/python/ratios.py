"""What ran in turn: rates turn by turn, and the ratios of each turn."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Comparison:
    """Records/s of ours and of a peer, turn by turn."""

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
    """The rates of every way, again and again one after the other: what else runs meets them all. Of several
    rounds in a turn the best counts: what else runs can only slow one down.
    """
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(turns):
        for name, way in ways.items():
            rates[name].append(max(way() for _ in range(rounds)))
    return rates


def millions(rates: list[float]) -> str:
    return f"{median(rates) / 1e6:.3g}"
