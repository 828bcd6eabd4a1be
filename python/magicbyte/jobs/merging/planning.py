"""Planning merges: copies are surveyed and read side by side, and repaired where none of them has a batch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import NamedTuple, TypeAlias, cast

from magicbyte import _core
from magicbyte.jobs.find.cluster import Cluster
from magicbyte.jobs.find.copies import PartitionCopies
from magicbyte.jobs.find.partitions import list_directory
from magicbyte.jobs.merging.cleaned import cleaned_until
from magicbyte.jobs.merging.log_ends import (
    LARGEST_STEP,
    KnownEnd,
    committed_end,
    ends_by_files,
    ends_by_refused_batches,
    ends_by_torn_bytes,
)
from magicbyte.jobs.run.engines import Engine, LocalEngine
from magicbyte.jobs.run.moving import ATTEMPTS, look_again
from magicbyte.jobs.run.plan import Planned, count_of, plan_partitions, size_of_chunk
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress, format_bytes
from magicbyte.model import Alignment, MergedRange, MergedSegment, MergePlan, PartitionListing

__all__ = ["Appended", "PlannedMerge", "Scratch", "plan_merges"]

_CHUNK_BYTES = 4 << 20

Scratch = Callable[[str], str]
"""Creates a directory for files that tasks need and that are not published."""


class Appended(NamedTuple):
    """A batch that no copy has."""

    batch: bytes
    records: int


@dataclass(frozen=True)
class PlannedMerge:
    """A partition, its copies, and the plan of the merged log."""

    partition: PartitionCopies
    copies: tuple[Planned, ...]
    """The copies in the order of `partition`, and then the repairs, if there are any."""
    cleaned_until: int | None
    """The end (exclusive) of the part that compaction may have cleaned in any copy."""
    alignment_text: str
    """The alignment as JSON text."""
    text: str
    """The plan as JSON text."""
    max_decompressed_bytes: int
    """The limit for one batch of it after decompression."""
    in_sync: frozenset[int] | None = None
    """The copies that were in sync; None if that is unknown, and all copies count."""
    position: KnownEnd | None = None
    """The last position of a group or another end that something outside of the copies proves."""
    cut_at: int | None = None
    """The end (exclusive) of a log that is cut: it has only the batches of `text`, whatever else is known."""
    appended: Appended | None = None
    """Records that follow the log's end."""

    @cached_property
    def alignment(self) -> Alignment:
        """The copies, read side by side."""
        return cast(Alignment, json.loads(self.alignment_text))

    @cached_property
    def plan(self) -> MergePlan:
        """The plan of the merged log."""
        return cast(MergePlan, json.loads(self.text))

    @cached_property
    def ends_by_files(self) -> list[list[KnownEnd]]:
        """The ends after the last good batch of each copy that its files tell."""
        return [
            [one for one in ends_by_files(planned) if one.offset > self.end_of(copy)]
            for copy, planned in enumerate(self.copies[: len(self.partition.listings)])
        ]

    def end_of(self, copy: int) -> int:
        """The end (exclusive) of a copy by its good batches and the names of its segments."""
        last = self.alignment["copies"][copy]["last"]
        bases = (one["base_offset"] for one in self.copies[copy].plan["segments"])
        return max([0 if last is None else last[1] + 1, *bases])

    @cached_property
    def _end(self) -> int:
        """The end by the batches of the merged log, and by an empty last segment of the copy that leads."""
        leader = self.plan["leader"]
        segments = self.copies[leader].plan["segments"]
        empty = [segments[-1]["base_offset"]] if segments and not segments[-1]["batches"] else []
        return max([self.plan["next_offset"], *empty])

    @cached_property
    def known_ends(self) -> list[KnownEnd]:
        """The ends after that of the merged log, the last one first. Only copies that it continues count, and
        those that were not in sync only tell what was committed.
        """
        if self.cut_at is not None:
            return []
        found = [] if self.position is None else [self.position]
        for copy in self.continued:
            if copy == self.plan["leader"] or self.in_sync is None or copy in self.in_sync:
                found += [*self.ends_by_files[copy], *self._torn_ends(copy), *self._empty_end(copy)]
            elif (committed := committed_end(self.copies[copy].listing)) is not None:
                found.append(committed)
        found = [one for one in found if one.offset > self._end]
        told = [one for one in found if not one.is_assumed]
        return sorted(told or found, key=lambda one: one.offset, reverse=True)

    def last(self, copy: int) -> tuple[int, int]:
        """The leader epoch and offset of the last good record of a copy; (-1, -1) if there is none."""
        epoch, offset = self.alignment["copies"][copy]["last"] or (-1, -1)
        return epoch, offset

    @property
    def continued(self) -> list[int]:
        """The copies that the merged log continues: a follower would truncate nothing of them."""
        strays = {one["copy"] for one in self.plan["left_out"] if one["reason"] != "cleaned"}
        strays.discard(self.plan["leader"])
        return [copy for copy, _ in enumerate(self.partition.listings) if copy not in strays]

    def _torn_ends(self, copy: int) -> Iterator[KnownEnd]:
        damages = [one for one in self.alignment["damages"] if one["copy"] == copy]
        yield from ends_by_torn_bytes(self.copies[copy], self.alignment["copies"][copy], damages)
        yield from ends_by_refused_batches(self.copies[copy], damages)

    def _empty_end(self, copy: int) -> Iterator[KnownEnd]:
        """The start of an empty last segment: retention has removed the log before it."""
        segments = self.copies[copy].plan["segments"]
        if segments and not segments[-1]["batches"]:
            yield KnownEnd(segments[-1]["base_offset"], segments[-1]["path"])

    @cached_property
    def log_end(self) -> int:
        """The offset (exclusive) at which the merged log has to end, so that no offset is assigned again. An
        end that no single lost segment explains is not believed.
        """
        if self.cut_at is not None:
            return self.cut_at
        known = (one.offset for one in self.known_ends if one.offset - self._end <= LARGEST_STEP)
        return max([self._end, *known])

    @cached_property
    def lost(self) -> list[tuple[int, int]]:
        """First and last offsets that no copy has, up to the end of the log."""
        end = self.plan["next_offset"]
        lost = [(first, last) for first, last in self.plan["holes"] if first < end]
        if self.log_end == self._end and not self._has_open_damage:
            return lost
        return [*lost, (end, self.log_end - 1)] if end < self.log_end else lost

    @property
    def _has_open_damage(self) -> bool:
        """True if no copy has anything good after damage at the end of the one that leads."""
        ends = (one["next_offset"] for one in self.alignment["damages"] if one["copy"] == self.plan["leader"])
        return None in ends

    @property
    def segments(self) -> list[MergedSegment]:
        """The segments that are written: a broker would delete those that end before the log's start."""
        start = self.plan["log_start_offset"]
        segments = self.plan["segments"]
        return [one for one in segments if start is None or _end_of_segment(one) > start]

    @property
    def ranges(self) -> list[MergedRange]:
        """The ranges of batches that are in the segments that are written."""
        first = min((one["base_offset"] for one in self.segments), default=self.plan["next_offset"])
        return [one for one in self.plan["ranges"] if one["last_offset"] >= first]

    def deleted_bytes(self, copy: int) -> int:
        """The bytes of a copy that would be in segments before the log's start."""
        used = sum(one["end"] - one["start"] for one in self.ranges if one["copy"] == copy)
        planned = sum(one["end"] - one["start"] for one in self.plan["ranges"] if one["copy"] == copy)
        return planned - used

    @property
    def has_repairs(self) -> bool:
        """True if repaired batches are the last of the copies."""
        return len(self.copies) > len(self.partition.listings)


def _end_of_segment(segment: MergedSegment) -> int:
    return max((one["next_offset"] or 0 for one in segment["chunks"]), default=0)


def plan_merges(
    partitions: Sequence[PartitionCopies],
    cluster: Cluster,
    engine: Engine,
    scratch: Scratch,
    *,
    max_decompressed_bytes: int,
    progress: Progress = NO_PROGRESS,
) -> list[PlannedMerge]:
    """Reads all copies of the partitions, and plans the logs that they add up to.

    Partitions whose files change are read again, as by every job (`jobs.moving`). Repaired batches become
    segments in directories of `scratch`.
    """
    reader = _Reader(cluster, engine, max_decompressed_bytes, progress)
    merges, alignments = reader.read([partition.listings for partition in partitions])
    for _ in range(ATTEMPTS):
        changed = {
            number: now
            for number, ((own, _), text) in enumerate(zip(merges, alignments, strict=True))
            if (now := _listed_again(own, json.loads(text))) != [one.listing for one in own]
        }
        if not changed:
            break
        for number, merge, text in zip(changed, *reader.read(list(changed.values())), strict=True):
            merges[number], alignments[number] = merge, text
    return [
        _with_repairs(_planned(partition, own, cleaned, text, max_decompressed_bytes), scratch)
        for partition, (own, cleaned), text in zip(partitions, merges, alignments, strict=True)
    ]


_Copies: TypeAlias = tuple[tuple[Planned, ...], int | None]
"""The copies of a partition, and the end of the part that compaction may have cleaned."""


@dataclass(frozen=True)
class _Reader:
    cluster: Cluster
    engine: Engine
    max_decompressed_bytes: int
    progress: Progress

    def read(self, partitions: Sequence[Sequence[PartitionListing]]) -> tuple[list[_Copies], list[str]]:
        """Surveys the copies of each partition, and aligns them: the copies, and alignments as JSON."""
        listings = [listing for copies in partitions for listing in copies]
        planned = iter(
            plan_partitions(listings, self.engine, chunk_bytes=_CHUNK_BYTES, progress=self.progress)
        )
        copies = [tuple(islice(planned, len(own))) for own in partitions]
        merges = [(own, cleaned_until(own, self.cluster)) for own in copies]
        alignments = self._align(merges)
        for number, (own, cleaned) in enumerate(merges):
            # Only the batches show that a log is compacted whose policy is unknown.
            seen = cleaned_until(own, self.cluster, json.loads(alignments[number]))
            if seen != cleaned:
                merges[number] = own, seen
                (alignments[number],) = self._align([merges[number]])
        return merges, alignments

    def _align(self, merges: Sequence[_Copies]) -> list[str]:
        sizes = [
            sum(size_of_chunk(chunk) for one in own for chunk in one.plan["chunks"]) for own, _ in merges
        ]
        return self.engine.map(
            partial(_align, max_decompressed_bytes=self.max_decompressed_bytes),
            merges,
            name=f"magicbyte align: {count_of(len(merges), 'partition')}, {format_bytes(sum(sizes))}",
            sizes=sizes,
            progress=self.progress,
        )


def _listed_again(copies: Sequence[Planned], alignment: Alignment) -> list[PartitionListing]:
    """The listings of copies, later ones of those whose damaged files have changed since."""
    doubted: list[set[str | None]] = [set() for _ in copies]
    for damage in alignment["damages"]:
        doubted[damage["copy"]].add(copies[damage["copy"]].plan["segments"][damage["segment"]]["file"])
    for files, planned, account in zip(doubted, copies, alignment["copies"], strict=True):
        files.update(problem["segment"] for problem in account["problems"])
        if account["tail_bytes"]:
            files.add(planned.plan["segments"][-1]["file"])
    return [look_again(one.listing, files) for one, files in zip(copies, doubted, strict=True)]


def _align(merge: _Copies, max_decompressed_bytes: int) -> str:
    copies, cleaned = merge
    return _core.align_copies(
        [json.dumps(one.listing) for one in copies],
        [one.text for one in copies],
        max_decompressed_bytes=max_decompressed_bytes,
        **_until(cleaned),
    )


def _until(cleaned: int | None) -> dict[str, int]:
    return {} if cleaned is None else {"cleaned_until": cleaned}


def _planned(
    partition: PartitionCopies,
    copies: tuple[Planned, ...],
    cleaned: int | None,
    alignment: str,
    max_decompressed_bytes: int,
) -> PlannedMerge:
    text = _core.plan_merge(
        alignment,
        [json.dumps(one.listing) for one in copies[: len(partition.listings)]],
        [one.text for one in copies],
        leader=partition.preferred,
        **_until(cleaned),
    )
    return PlannedMerge(partition, copies, cleaned, alignment, text, max_decompressed_bytes)


def _with_repairs(merge: PlannedMerge, scratch: Scratch) -> PlannedMerge:
    if not (merge.plan["holes"] and merge.alignment["damages"]):
        return merge
    partition = merge.partition
    # Named like a partition, so that it is listed as one.
    directory = os.path.join(
        scratch(f"repairs-of-{partition.name[:48]}"), f"{partition.topic}-{partition.partition}"
    )
    os.mkdir(directory)
    repaired = _core.repair_holes(
        merge.alignment_text,
        merge.text,
        [one.text for one in merge.copies],
        directory,
        max_decompressed_bytes=merge.max_decompressed_bytes,
    )
    if not repaired:
        return merge
    (repairs,) = plan_partitions([list_directory(directory)], LocalEngine(1), chunk_bytes=_CHUNK_BYTES)
    limit = merge.max_decompressed_bytes
    aligned = _align(((repairs,), None), limit)
    joined = _core.join_alignments(merge.alignment_text, aligned)
    return _planned(partition, (*merge.copies, repairs), merge.cleaned_until, joined, limit)
