"""Planning merges: copies are surveyed and read side by side, and repaired where none of them has a batch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import TypeAlias, cast

from magicbyte import _core
from magicbyte.jobs.find.cluster import Cluster
from magicbyte.jobs.find.copies import PartitionCopies
from magicbyte.jobs.find.partitions import list_directory
from magicbyte.jobs.merging.cleaned import cleaned_until
from magicbyte.jobs.run.engines import Engine, LocalEngine
from magicbyte.jobs.run.moving import ATTEMPTS, look_again
from magicbyte.jobs.run.plan import Planned, count_of, plan_partitions, size_of_chunk
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress, format_bytes
from magicbyte.model import Alignment, MergePlan, PartitionListing

__all__ = ["PlannedMerge", "Scratch", "plan_merges"]

_CHUNK_BYTES = 4 << 20

Scratch = Callable[[str], str]
"""Creates a directory for files that tasks need and that are not published."""


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

    @cached_property
    def alignment(self) -> Alignment:
        """The copies, read side by side."""
        return cast(Alignment, json.loads(self.alignment_text))

    @cached_property
    def plan(self) -> MergePlan:
        """The plan of the merged log."""
        return cast(MergePlan, json.loads(self.text))

    @property
    def has_repairs(self) -> bool:
        """True if repaired batches are the last of the copies."""
        return len(self.copies) > len(self.partition.listings)


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
        _with_repairs(_planned(partition, own, cleaned, text), scratch, max_decompressed_bytes)
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
    partition: PartitionCopies, copies: tuple[Planned, ...], cleaned: int | None, alignment: str
) -> PlannedMerge:
    text = _core.plan_merge(
        alignment,
        [json.dumps(one.listing) for one in copies[: len(partition.listings)]],
        [one.text for one in copies],
        leader=partition.preferred,
        **_until(cleaned),
    )
    return PlannedMerge(partition, copies, cleaned, alignment, text)


def _with_repairs(merge: PlannedMerge, scratch: Scratch, max_decompressed_bytes: int) -> PlannedMerge:
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
        max_decompressed_bytes=max_decompressed_bytes,
    )
    if not repaired:
        return merge
    (repairs,) = plan_partitions([list_directory(directory)], LocalEngine(1), chunk_bytes=_CHUNK_BYTES)
    aligned = _align(((repairs,), None), max_decompressed_bytes)
    joined = _core.join_alignments(merge.alignment_text, aligned)
    return _planned(partition, (*merge.copies, repairs), merge.cleaned_until, joined)
