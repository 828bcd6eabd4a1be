"""The differences between two sides of a comparison. Ranges whose digests differ are read again.

Nothing counts as equal that was not compared: digests that differ have to be explained by records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypedDict

from magicbyte import _core
from magicbyte.jobs.comparing.digest_cache import DIGEST_MODULUS, RANGE_OFFSETS, Digests
from magicbyte.model import Place

__all__ = [
    "Bounds",
    "DifferingRange",
    "PartitionDiff",
    "Records",
    "RemovedRange",
    "Unproven",
    "compare_partition",
    "only_in",
]


Difference: TypeAlias = Literal["only_in_a", "only_in_b", "differs"]
"""A record, or a partition, that only one side has, or that is another one on each side."""

Unproven: TypeAlias = Literal["unread", "changed", "nothing_in_common", "no_timestamps"]
"""Why a partition is not known to be equal. `unread`: a side has bytes that could not be read. `changed`: the
digests of a range differed, and when its records were read again, they were not those that had been digested.
`nothing_in_common`: both sides have records, but none of the offsets that both should have.
`no_timestamps`: see `PartitionDiff.unproven_records`."""

_RANGES_AT_ONCE = 32
"""The ranges whose records are compared together: memory has a number for each record of them."""


class DifferingRange(TypedDict):
    """Adjacent records that differ in the same way."""

    first_offset: int
    last_offset: int
    records: int
    difference: Difference


class RemovedRange(TypedDict):
    """Offsets before the start of the log on one side, of which the other side still has records."""

    side: Literal["a", "b"]
    """The side whose log starts after them."""
    last_offset: int
    """The offset before its start."""
    records: int
    """The records there that the other side has."""
    stated: bool
    """True if a broker says that the log starts there: retention or a user has removed what was before. False
    if only the first segment begins there, so that segments before it may also be lost."""


class PartitionDiff(TypedDict):
    """A partition that is on one of the sides, or on both."""

    topic: str
    partition: int
    result: Literal["equal", "differs", "starts_later", "unproven", "only_in_a", "only_in_b"]
    """`starts_later`: equal from the first segment of one side on, and no broker says that its log starts
    there. `unproven`: no difference was found, but not everything could be compared."""
    unproven: list[Unproven]
    """Why differences may have been missed, whatever the result is."""
    records_a: int | None
    """The number of records, control records included; None if it is only on the other side."""
    records_b: int | None
    differing_records: int
    ranges: list[DifferingRange]
    """The first `LISTED` ranges."""
    ranges_left_out: int
    removed: RemovedRange | None
    """The records that only one side still has, because the other side's log starts later."""
    end_offset: int | None
    """The end of the comparison (exclusive): the cut of a backup or a table. None if both logs are compared
    to their ends."""
    records_after_end: int
    """The records from there on that only one side has, or that differ. Of a range of `RANGE_OFFSETS` offsets
    there, all count if one does."""
    unproven_records: int
    """Records that cannot be compared: their timestamps are out of a table's range."""


class Records(Protocol):
    """The records of one side, which can be read again."""

    unread: set[Place]
    """The partitions of which some bytes could not be read, once their digests were made."""

    def records(self, place: Place, ranges: Sequence[tuple[int, int]]) -> dict[int, int | None]:
        """The hashes of the records of increasing ranges of offsets, by offset; the ends are exclusive. None
        for a record that is not known well enough to be compared.
        """


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The offsets that a side should have."""

    start: int = 0
    """The start of its log."""
    start_is_stated: bool = False
    """See `RemovedRange.stated`."""
    cut: int | None = None
    """The offset up to which it was copied (exclusive); None if it ends where its log does."""


Compared: TypeAlias = tuple[Records, Place, Digests]
"""A side, the partition there, and the digests of its ranges of `RANGE_OFFSETS` offsets."""


def only_in(side: Literal["a", "b"], place: Place) -> PartitionDiff:
    """The report of a partition that the other side does not have."""
    report = _report(place)
    report["result"] = "only_in_a" if side == "a" else "only_in_b"
    return report


def compare_partition(
    a: Compared, b: Compared, bounds: tuple[Bounds, Bounds] = (Bounds(), Bounds())
) -> PartitionDiff:
    """Compares a partition with another one, from the later start to the earlier cut. It is reported under
    the name that it has in `a`.
    """
    (_, place, left), (_, _, right) = a, b
    report = _report(place)
    window = _Window(*bounds)
    report["records_a"] = sum(records for records, _ in left.values())
    report["records_b"] = sum(records for records, _ in right.values())
    for found in _joined(_differences(a, b, window)):
        report["result"] = "differs"
        report["differing_records"] += found["records"]
        if len(report["ranges"]) < _core.LISTED:
            report["ranges"].append(found)
        else:
            report["ranges_left_out"] += 1
    removed = window.removed
    if removed is not None and not removed["stated"] and report["result"] == "equal":
        report["result"] = "starts_later"
    report["removed"], report["end_offset"] = removed, window.end
    report["records_after_end"], report["unproven_records"] = window.after, window.unproven
    report["unproven"] = [*_unproven(a, b, window)]
    if report["unproven"] and report["result"] == "equal":
        report["result"] = "unproven"
    return report


def _unproven(a: Compared, b: Compared, window: _Window) -> Iterator[Unproven]:
    """The reasons for which equal records prove nothing."""
    (in_a, place_a, left), (in_b, place_b, right) = a, b
    if place_a in in_a.unread or place_b in in_b.unread:
        yield "unread"
    if window.changed:
        yield "changed"
    if window.is_empty and left and right and left != right:
        yield "nothing_in_common"
    if window.unproven:
        yield "no_timestamps"


def _report(place: Place) -> PartitionDiff:
    return PartitionDiff(
        topic=place[0],
        partition=place[1],
        result="equal",
        unproven=[],
        records_a=None,
        records_b=None,
        differing_records=0,
        ranges=[],
        ranges_left_out=0,
        removed=None,
        end_offset=None,
        records_after_end=0,
        unproven_records=0,
    )


class _Window:
    """The offsets that both sides should have, and the number of records outside of them."""

    def __init__(self, a: Bounds, b: Bounds) -> None:
        self.start = max(a.start, b.start)
        self.end = min((one.cut for one in (a, b) if one.cut is not None), default=None)
        self._later: Literal["a", "b"] = "a" if a.start > b.start else "b"
        self._stated = (a if self._later == "a" else b).start_is_stated
        self._removed = 0
        self.after = 0
        self.unproven = 0
        self.changed = False

    @property
    def is_empty(self) -> bool:
        """True if there is no offset that both sides should have."""
        return self.end is not None and self.end <= self.start

    @property
    def removed(self) -> RemovedRange | None:
        """The records before the later start, if there are any."""
        if not self._removed:
            return None
        return RemovedRange(
            side=self._later, last_offset=self.start - 1, records=self._removed, stated=self._stated
        )

    def leaves_out(self, first: int, end: int, records: int) -> bool:
        """True if all of these offsets are outside; then counts the records there."""
        if end <= self.start:
            self._removed += records
        elif self.end is not None and first >= self.end:
            self.after += records
        else:
            return False
        return True


def _differing(left: Digests, right: Digests, window: _Window) -> Iterator[int]:
    """The numbers of the ranges that differ, in order."""
    for number in sorted(n for n in left.keys() | right.keys() if left.get(n) != right.get(n)):
        ours, theirs = left.get(number, (0, 0))[0], right.get(number, (0, 0))[0]
        start = number * RANGE_OFFSETS
        # The same number of records may be other ones.
        if not window.leaves_out(start, start + RANGE_OFFSETS, max(ours, theirs)):
            yield number


def _differences(in_a: Compared, in_b: Compared, window: _Window) -> Iterator[tuple[int, Difference | None]]:
    """The offsets of the ranges that differ, each with the difference of its record; None for none."""
    (a, place_a, left), (b, place_b, right) = in_a, in_b
    differing = list(_differing(left, right, window))
    for at in range(0, len(differing), _RANGES_AT_ONCE):
        numbers = differing[at : at + _RANGES_AT_ONCE]
        ranges = _ranges(numbers)
        ours, theirs = a.records(place_a, ranges), b.records(place_b, ranges)
        window.changed |= not (_are_digested(ours, left, numbers) and _are_digested(theirs, right, numbers))
        before = differing[at - 1] if at else None
        # The range before each of these is equal, unless it was compared in the step before.
        equal = {start - 1 for start, _ in ranges if before is None or start != (before + 1) * RANGE_OFFSETS}
        for offset in sorted(ours.keys() | theirs.keys() | equal):
            if offset in equal or (ours.get(offset) == theirs.get(offset) is not None):
                yield offset, None
            elif window.leaves_out(offset, offset + 1, 1):
                continue
            elif offset in ours and offset in theirs and None in (ours[offset], theirs[offset]):
                window.unproven += 1
                yield offset, None
            elif offset not in theirs:
                yield offset, "only_in_a"
            elif offset not in ours:
                yield offset, "only_in_b"
            else:
                yield offset, "differs"


def _are_digested(records: Mapping[int, int | None], digests: Digests, numbers: Sequence[int]) -> bool:
    """True if these records of some ranges are those that were digested, as far as their hashes are known."""
    sums = dict.fromkeys(numbers, 0)
    unknown = set()
    for offset, digest in records.items():
        number = offset // RANGE_OFFSETS
        if digest is None:
            unknown.add(number)
        else:
            sums[number] += digest
    return all(
        number in unknown or total % DIGEST_MODULUS == digests.get(number, (0, 0))[1]
        for number, total in sums.items()
    )


def _ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """The offsets of ranges with increasing numbers, adjacent ones as one range; the ends are exclusive."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        start, end = number * RANGE_OFFSETS, (number + 1) * RANGE_OFFSETS
        if ranges and ranges[-1][1] == start:
            start, _ = ranges.pop()
        ranges.append((start, end))
    return ranges


def _joined(differences: Iterator[tuple[int, Difference | None]]) -> Iterator[DifferingRange]:
    """Joins neighbouring records with the same difference."""
    found: DifferingRange | None = None
    for offset, difference in differences:
        if found is not None and found["difference"] == difference:
            found["last_offset"] = offset
            found["records"] += 1
            continue
        if found is not None:
            yield found
        found = None
        if difference is not None:
            found = DifferingRange(first_offset=offset, last_offset=offset, records=1, difference=difference)
    if found is not None:
        yield found
