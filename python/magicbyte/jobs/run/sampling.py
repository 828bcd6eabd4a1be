"""Sampling a log: the windows to read, and estimates for the whole log from their figures."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from magicbyte.model import Chunk

__all__ = ["Estimate", "WindowPlace", "estimate", "windows_of"]

_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12)
"""Student's t for an error that 19 of 20 samples stay within, by degrees of freedom from 1 on."""

_WHOLE_CHUNK = 64 << 20


def _student(freedom: int) -> float:
    # Beyond the table, within one percent.
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else 1.96 + 2.4 / freedom


class WindowPlace(NamedTuple):
    """The place where a window begins."""

    chunks: tuple[int, ...]
    """The numbers of the chunk that it begins in and of those that follow in the same partition."""
    position: int
    """The first byte in the first chunk's segment at which the window may begin."""
    window_bytes: int
    """The bytes to read, after decompression."""


class Estimate(NamedTuple):
    """A sum over a log, judged by a sample."""

    value: float
    error: float
    """Half the width of the interval that contains the true sum in 19 of 20 samples."""


def windows_of(
    chunks: Sequence[Chunk], count: int, window_bytes: int, seed: int, *, following: int = 16
) -> list[WindowPlace]:
    """Spreads `count` windows over adjacent chunks: one begins at a random byte of each equal share of
    their bytes.

    If the chunks have no more than `count * window_bytes` bytes, each chunk is a window. The whole log is
    then read, unless it is so compressed that a chunk has more than 64 MiB.
    """
    total = sum(chunk["end"] - chunk["start"] for chunk in chunks)
    if total <= count * window_bytes:
        whole = max(window_bytes, _WHOLE_CHUNK)
        return [WindowPlace((number,), chunk["start"], whole) for number, chunk in enumerate(chunks)]
    chance = random.Random(seed)
    share = total / count
    places = []
    number, before = 0, 0
    for index in range(count):
        at = int((index + chance.random()) * share)
        while before + chunks[number]["end"] - chunks[number]["start"] <= at:
            before += chunks[number]["end"] - chunks[number]["start"]
            number += 1
        own = [number]
        # A window may be longer than what is left of its chunk.
        for later in range(number + 1, min(number + 1 + following, len(chunks))):
            same = all(chunks[later][name] == chunks[number][name] for name in ("topic", "partition"))
            if not same:
                break
            own.append(later)
        places.append(WindowPlace(tuple(own), chunks[number]["start"] + at - before, window_bytes))
    return places


def estimate(sums: Sequence[tuple[float, int]], total: int) -> Estimate:
    """Estimates a sum over a log of `total` stored bytes from each window's own sum and stored bytes, in
    the order of the log.

    The variance is that of neighboring windows: slow changes from the beginning of a log to its end do not
    make the estimate less certain.
    """
    count = len(sums)
    sampled = sum(stored for _, stored in sums) / total
    if sampled >= 1:
        return Estimate(math.fsum(value for value, _ in sums), 0.0)
    ratios = [value / stored for value, stored in sums]
    mean = math.fsum(ratios) / count
    if count < 2:
        return Estimate(mean * total, math.inf)
    differences = math.fsum((after - before) ** 2 for before, after in pairwise(ratios))
    variance = differences / (2 * count * (count - 1))
    # Each of them is in two differences: these are worth a third less.
    freedom = max(1, 2 * (count - 1) // 3)
    return Estimate(mean * total, _student(freedom) * math.sqrt(variance * (1 - sampled)) * total)
