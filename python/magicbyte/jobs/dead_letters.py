"""The job of `magicbyte explain --dead-letters`: the records of dead-letter queues, and what they are of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypedDict

from magicbyte import _core
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import Task, plan_partitions, task_name, tasks_of
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.run.reading import ReadOptions, decoded_problems, read_chunk
from magicbyte.jobs.source_records import (
    LETTER_COLUMNS,
    STATES,
    Letter,
    SourceRecord,
    SourceRecords,
    letters_of,
)
from magicbyte.model import PartitionListing
from magicbyte.options.shared import Decoding

__all__ = ["DeadLetter", "DeadLettersReport", "dead_letters"]


class DeadLetter(TypedDict):
    """A record of a dead-letter queue; None for what its headers do not say."""

    topic: str
    """The queue."""
    partition: int
    offset: int
    timestamp: int
    """In ms."""
    group: str | None
    """The share group that could not process the source record."""
    delivery_count: int | None
    connector: str | None
    """The connector that could not."""
    stage: str | None
    """The stage of the connector, such as `VALUE_CONVERTER`."""
    message: str | None
    """The reason."""
    source: SourceRecord


class DeadLettersReport(TypedDict):
    """The dead letters of all partitions."""

    dead_letters: list[DeadLetter]
    """The first `LISTED`, by topic, partition and offset."""
    counts: dict[str, int]
    """All of them by the state of their source record."""
    different: int
    """Dead letters with another key or value than the source record, although it was copied."""
    problems: list[str]
    """The first `LISTED` problems: damaged batches of the queues are not read."""


@dataclass
class _Found:
    """The dead letters of a task."""

    letters: list[DeadLetter] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    different: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, topic: str, partition: int, letter: Letter, source: SourceRecord) -> None:
        self.counts[source["state"]] += 1
        self.different += "different" in (source["key"], source["value"])
        if len(self.letters) < _core.LISTED:
            self.letters.append(
                DeadLetter(
                    topic=topic,
                    partition=partition,
                    offset=letter.offset,
                    timestamp=letter.timestamp,
                    group=letter.text("group"),
                    delivery_count=letter.number("delivery.count"),
                    connector=letter.text("connector.name"),
                    stage=letter.text("stage"),
                    message=letter.text("message", "exception.message"),
                    source=source,
                )
            )


def dead_letters(
    sources: Sequence[str],
    engine: Engine,
    options: Decoding,
    *,
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> DeadLettersReport:
    """Finds the records with headers of a dead letter, and joins them to their source records.

    `choice` selects the queues: all their records are decoded. Source records are looked up in any partition
    at and below `sources`. Needs pyarrow.

    Raises:
        RefusedError: if there is nothing to read.

    """
    inputs = find_inputs(sources, choice)
    plans = plan_partitions(inputs.listings, engine, progress=progress)
    tasks = tasks_of(plans, engine.parallelism)
    listed = {one["path"]: one for one in (*inputs.directories, *inputs.listings)}
    found = engine.map(
        _Find(tuple(listed.values()), options.max_decompressed_bytes),
        tasks,
        name=task_name("dead letters", tasks),
        sizes=[task.size for task in tasks],
        progress=progress,
    )
    counts = sum((one.counts for one in found), Counter())
    problems = [problem["message"] for planned in plans for problem in planned.plan["problems"]]
    return DeadLettersReport(
        dead_letters=list(islice((letter for one in found for letter in one.letters), _core.LISTED)),
        counts={state: counts[state] for state in STATES},
        different=sum(one.different for one in found),
        problems=[*problems, *(problem for one in found for problem in one.problems)][: _core.LISTED],
    )


@dataclass(frozen=True)
class _Find:
    """Reads the chunks of a task."""

    listings: Sequence[PartitionListing]
    max_decompressed_bytes: int

    def __call__(self, task: Task) -> _Found:

        found = _Found()
        records = SourceRecords(self.listings, self.max_decompressed_bytes)
        limit = min(self.max_decompressed_bytes, _core.MAX_COLUMN_PAYLOAD)
        options = ReadOptions(LETTER_COLUMNS, max_decompressed_bytes=limit)
        for text in task.chunks:
            chunk = json.loads(text)
            for item in read_chunk(text, options):
                if isinstance(item, str):
                    continue
                if item.table == "problems":
                    found.problems += [one["message"] for one in decoded_problems(item.batch)]
                    continue
                letters = letters_of(item.batch)
                for letter, source in zip(letters, records.join(letters), strict=True):
                    found.add(chunk["topic"], chunk["partition"], letter, source)
        return found
