"""Rates of two that ran in turn, and the ratios of each turn."""

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


def millions(rates: list[float]) -> str:
    return f"{median(rates) / 1e6:.3g}"
