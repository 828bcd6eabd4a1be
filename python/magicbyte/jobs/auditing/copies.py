"""Batches of different topics that are copies of one batch.

A broker that appends a batch changes its base offset and leader epoch, which its CRC does not cover. It
computes another CRC if the topic has `message.timestamp.type=LogAppendTime`, and compresses the records
again if the topic's `compression.type` is not that of the producer. So a copy has the CRC, or fields that the
broker leaves as they are: producer id, epoch and sequences, and mostly sizes or times. Headers only make
candidates: the records decide.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import NamedTuple

import pyarrow as pa

from magicbyte import _core
from magicbyte.jobs.auditing.headers import HeaderTable
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress

__all__ = ["RULES", "find_copies"]

_WINDOW_MS = 5 * 60_000
"""The time within which a batch and its misrouted copy are appended: more than twice the default of
`delivery.timeout.ms`, after which the batch expires whose buffer is used again."""
_MOST_COPIES = 16
"""If more batches have the same records, these recur, such as heartbeats, and say nothing."""
_POSITIONS = 1 << 12
"""The batches that a task reads at most."""

_CODEC = "(attributes & 7)"
_LOG_APPEND_TIME = "(attributes & 8) <> 0"
_PRODUCER = "producerId, producerEpoch, baseSequence, nextSequence, count"


class _Rule(NamedTuple):
    """A rule by which the headers of a batch and its copy are alike."""

    key: str
    """The columns that are equal."""
    rows: str
    """The rows that can be such copies."""
    groups: str
    """The groups of rows with an equal key in which there can be a copy, besides that of several topics."""


RULES = {
    # A CRC covers all of these, but two among millions are equal by accident.
    "same_crc": _Rule(f"crc, size, attributes, baseTimestamp, maxTimestamp, {_PRODUCER}", "true", "true"),
    "recompressed": _Rule(
        f"{_PRODUCER}, baseTimestamp, maxTimestamp", f"NOT {_LOG_APPEND_TIME}", "min(crc) <> max(crc)"
    ),
    "log_append_time": _Rule(
        f"{_PRODUCER}, {_CODEC}, size, baseTimestamp",
        "true",
        f"min(crc) <> max(crc) AND bool_or({_LOG_APPEND_TIME})",
    ),
    "same_sequence": _Rule(
        _PRODUCER, "producerId >= 0", f"bool_or({_LOG_APPEND_TIME}) AND max({_CODEC}) > 0"
    ),
    "same_time": _Rule(
        f"count, maxTimestamp // {_WINDOW_MS}",
        "producerId < 0",
        f"bool_or({_LOG_APPEND_TIME}) AND max({_CODEC}) > 0",
    ),
    "same_time_shifted": _Rule(
        f"count, (maxTimestamp + {_WINDOW_MS // 2}) // {_WINDOW_MS}",
        "producerId < 0",
        f"bool_or({_LOG_APPEND_TIME}) AND max({_CODEC}) > 0",
    ),
}
"""The rules, the strongest first. The last two are for batches without a producer id that a broker has both
recompressed and given its time: their headers have nothing in common but the number of records."""
_ONLY_WITH_APPEND_TIME = ("log_append_time", "same_sequence", "same_time", "same_time_shifted")

_COPIES = f"""
CREATE TABLE copies AS
SELECT hits.*, digests.digest, dense_rank() OVER (ORDER BY rule, key, digest) AS original
FROM hits JOIN digests USING (segment, position)
WINDOW same AS (PARTITION BY rule, key, digest)
QUALIFY min(topic) OVER same <> max(topic) OVER same AND count(*) OVER same <= {_MOST_COPIES}
"""


def find_copies(
    headers: HeaderTable,
    engine: LocalEngine,
    max_decompressed_bytes: int,
    progress: Progress = NO_PROGRESS,
) -> int:
    """Creates the table `copies`: the batches whose records are those of a batch of another topic.

    It has the columns of `headers`, the number of the `rule` in the order of strength, and the number of the
    `original`, which copies of a batch share. The table `unread` gets the places of batches whose records
    cannot be read. Returns the number of batches whose records were compared.
    """
    database = headers.database
    database.execute("CREATE TABLE hits AS SELECT 0 AS rule, 0::UBIGINT AS key, * FROM headers LIMIT 0")
    database.execute("CREATE TABLE digests (segment INTEGER, position BIGINT, digest BLOB)")
    database.execute("CREATE TABLE unread (segment INTEGER, position BIGINT)")
    has_append_time = database.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM headers WHERE {_LOG_APPEND_TIME} LIMIT 1)"
    ).fetchone() != (0,)
    for number, (name, rule) in enumerate(RULES.items()):
        if has_append_time or name not in _ONLY_WITH_APPEND_TIME:
            _add_hits(headers, number, rule)
    _digest(headers, engine, max_decompressed_bytes, progress)
    (read,) = database.execute("SELECT count(*) FROM digests").fetchone() or (0,)
    database.execute(_COPIES)
    database.execute("DROP TABLE hits")
    return int(read)


def _add_hits(headers: HeaderTable, number: int, rule: _Rule) -> None:
    """Adds the rows whose key a row of another topic has, too."""
    key = f"hash({rule.key})"
    headers.database.execute(
        f"""
        INSERT INTO hits
        SELECT {number}, {key}, headers.* FROM headers
        WHERE {rule.rows} AND {key} IN (
            SELECT {key} FROM headers WHERE {rule.rows}
            GROUP BY ALL HAVING min(topic) <> max(topic) AND {rule.groups}
        )
        """
    )


class _Positions(NamedTuple):
    """Batches of a segment to read."""

    segment: int
    positions: list[int]
    size: int


def _digest(
    headers: HeaderTable, engine: LocalEngine, max_decompressed_bytes: int, progress: Progress
) -> None:
    """Fills the table `digests` with those of the batches in `hits`, in one pass over each segment."""
    (size,) = headers.database.execute(
        "SELECT sum(size) FROM (SELECT DISTINCT segment, position, size FROM hits)"
    ).fetchone() or (None,)

    def read(task: _Positions) -> None:
        found = _core.digest_contents(
            json.dumps(headers.segments[task.segment]),
            task.positions,
            max_decompressed_bytes=max_decompressed_bytes,
        )
        places = list(zip(task.positions, found, strict=True))
        known = [(at, one) for at, one in places if one is not None]
        unread = [[task.segment, at] for at, one in places if one is None]
        rows = pa.table(
            {
                "segment": pa.repeat(pa.scalar(task.segment, pa.int32()), len(known)),
                "position": pa.array([at for at, _ in known], pa.int64()),
                "digest": pa.array([one.to_bytes(16, "big") for _, one in known], pa.binary()),
            }
        )
        with headers.database.cursor() as cursor:
            cursor.register("found", rows)
            cursor.execute("INSERT INTO digests SELECT * FROM found")
            if unread:
                cursor.executemany("INSERT INTO unread VALUES (?, ?)", unread)

    engine.map_arriving(
        read,
        _tasks(headers),
        name="magicbyte compare records",
        size=int(size or 0),
        size_of=lambda task: task.size,
        progress=progress,
    )


def _tasks(headers: HeaderTable) -> Generator[_Positions]:
    with headers.database.cursor() as cursor:
        cursor.execute("SELECT DISTINCT segment, position, size FROM hits ORDER BY segment, position")
        task = _Positions(-1, [], 0)
        while rows := cursor.fetchmany(_POSITIONS):
            for segment, position, size in rows:
                if task.positions and (segment != task.segment or len(task.positions) == _POSITIONS):
                    yield task
                    task = _Positions(segment, [], 0)
                task.positions.append(position)
                task = _Positions(segment, task.positions, task.size + size)
        if task.positions:
            yield task
