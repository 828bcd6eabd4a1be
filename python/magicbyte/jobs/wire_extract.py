"""`magicbyte wire --extract`: the record sets of a capture as partition directories.

Batches are written as they were fetched, each once, in offset order. Batches that a
producer sent and a broker acknowledged fill the gaps that nobody fetched. They get the offsets of the
broker's response, but no leader epoch, which no message names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple, TypedDict

from magicbyte import _core
from magicbyte.errors import Error
from magicbyte.internal_topics.names import is_topic
from magicbyte.jobs.publish.local_partitions import PartitionsOutput
from magicbyte.jobs.publish.outputs import partitions_output
from magicbyte.wire import Exchange, Exchanges, RecordSet, WireSummary

__all__ = ["ExtractReport", "ExtractedPartition", "extract"]

_FETCHES = frozenset({"Fetch", "ShareFetch"})


class ExtractedPartition(TypedDict):
    """A partition that was written."""

    topic: str
    """Its name; its id if the capture does not name it."""
    partition: int
    segments: int
    size: int
    """Bytes of all segments."""
    batches: int
    first_offset: int
    end_offset: int
    """The offset after the last one."""
    produced: int
    """Batches that nobody fetched: they are as the producer sent them."""
    gaps: list[tuple[int, int]]
    """First and last offset of each gap: a range inside that no batch has. Lists only the first gaps."""
    gaps_left_out: int
    """The number of gaps that are not listed."""


class ExtractReport(TypedDict):
    """The report that `extract` returns, and writes as `wire.json`."""

    written: list[ExtractedPartition]
    duplicates: int
    """Batches that were fetched again."""
    incomplete: int
    """Record sets whose last batch was cut, as a broker does at a fetch's limit."""
    unacknowledged: int
    """Produced record sets without an offset: with `acks` 0, refused, or not answered in the capture."""
    connections: int
    tls_connections: int
    other_connections: int
    lost_bytes: int
    skipped_bytes: int
    problems: list[str]
    problems_left_out: int


class _Batch(NamedTuple):
    base_offset: int
    last_offset: int
    crc: int
    fetched: bool
    position: int
    """The position in the spool."""
    size: int


_Partition = tuple[str | None, str | None, int]
"""The topic, the topic's id, and the number of a partition."""


class _Found:
    """The batches of a capture: their bytes are in a file without a name, and their metadata is in memory."""

    def __init__(self, spool: IO[bytes]) -> None:
        self._spool = spool
        self._end = 0
        self.partitions: dict[_Partition, dict[int, _Batch]] = {}
        self.duplicates = self.incomplete = self.unacknowledged = self.problems_left_out = 0
        self.problems: list[str] = []

    def problem(self, text: str) -> None:
        if len(self.problems) < _core.LISTED:
            self.problems.append(text)
        else:
            self.problems_left_out += 1

    def add(self, one: Exchange) -> None:
        if one.api not in _FETCHES and one.api != "Produce":
            return
        try:
            for record_set in one.record_sets():
                self._add_set(one, record_set)
        except Error as error:
            self.problem(f"connection {one.connection}, {one.api} version {one.api_version}: {error}")

    def _add_set(self, one: Exchange, record_set: RecordSet) -> None:
        where = (record_set.topic, record_set.topic_id, record_set.partition)
        fetched = one.api in _FETCHES
        if fetched:
            batches = _core.read_batches(record_set.data, allow_partial=True)
        else:
            data = _as_appended(one, record_set)
            if data is None:
                self.unacknowledged += 1
                return
            batches = _core.read_batches(data)
        for batch in batches:
            if not batch.is_valid():
                self.problem(f"{_name(where)}: the batch at offset {batch.base_offset} has a wrong CRC")
                continue

            known = self.partitions.setdefault(where, {})
            place = (batch.base_offset, batch.last_offset, batch.crc, fetched, self._end)
            if self._keep(known, _Batch(*place, batch.size_in_bytes), _name(where)):
                self._end += self._spool.write(batch.to_bytes())
        self.incomplete += bool(batches.remaining)

    def _keep(self, known: dict[int, _Batch], batch: _Batch, name: str) -> bool:
        """Adds a batch to those that are known; returns whether it is to be kept."""
        old = known.get(batch.base_offset)
        if old is None or (batch.fetched and not old.fetched):
            known[batch.base_offset] = batch
            return True
        self.duplicates += 1
        same = (old.last_offset, old.crc, old.size) == (batch.last_offset, batch.crc, batch.size)
        if old.fetched == batch.fetched and not same:
            self.problem(f"{name}: another batch at offset {batch.base_offset}; the first one counts")
        return False

    def named(self, topic_ids: dict[str, str]) -> Iterator[tuple[str, str | None, int, list[_Batch]]]:
        """The batches of each partition: with its topic's name, and its id if one is known."""
        ids = {topic: topic_id for topic_id, topic in topic_ids.items()}
        joined: dict[tuple[str, int], tuple[str | None, dict[int, _Batch]]] = {}
        for (topic, topic_id, partition), of_one in self.partitions.items():
            name = topic or topic_ids.get(topic_id or "", topic_id or "")
            _, known = joined.setdefault((name, partition), (topic_id or ids.get(name), {}))
            for batch in of_one.values():
                self._keep(known, batch, f"{name}-{partition}")
        for (name, partition), (topic_id, known) in sorted(joined.items()):
            if is_topic(name) and partition >= 0:
                yield name, topic_id, partition, [known[base] for base in sorted(known)]
            else:
                self.problem(f"{name!r}, partition {partition}: no name that Kafka allows; it is not written")

    def read(self, batch: _Batch) -> bytes:
        self._spool.seek(batch.position)
        return self._spool.read(batch.size)


def _name(where: _Partition) -> str:
    topic, topic_id, partition = where
    return f"{topic or topic_id}-{partition}"


def _as_appended(one: Exchange, record_set: RecordSet) -> bytes | None:
    """A produced record set with the offsets that the broker gave it; None without them.

    Only magic 2, of which a request has one batch for a partition.
    """
    for topic in (one.response.body["responses"] if one.response else None) or ():
        if record_set.topic_id != topic.get("topicId") or record_set.topic != topic.get(
            "name", record_set.topic
        ):
            continue
        for answer in topic["partitionResponses"]:
            if answer["index"] != record_set.partition or answer["errorCode"] or answer["baseOffset"] < 0:
                continue
            batches = list(_core.read_batches(record_set.data))
            if len(batches) != 1 or batches[0].magic != 2:
                return None
            (batch,) = batches
            # The offsets and the leader epoch are outside of what the CRC covers.
            last = answer["baseOffset"] + batch.last_offset - batch.base_offset
            data = _core.set_last_offset(record_set.data, last)
            time = answer.get("logAppendTimeMs", -1)
            return data if time == -1 else _core.set_max_timestamp(data, 1, time)
    return None


def extract(
    exchanges: Exchanges,
    out: str | os.PathLike[str],
    *,
    sources: Iterable[str | os.PathLike[str]] = (),
    segment_bytes: int = 128 << 20,
) -> ExtractReport:
    """Writes the record sets of a capture as partition directories into `out`.

    Memory: some hundred bytes for each batch, besides those of `exchanges`; the batches wait in a file next
    to `out`.

    Args:
        exchanges: the capture; it is read to its end.
        out: a directory that does not exist or is empty; it appears under its name when all is done.
        sources: the files of the capture, which `out` must not contain.
        segment_bytes: the maximum size of a segment.

    """
    with partitions_output(out, [os.fspath(source) for source in sources]) as output:
        with output.spool() as spool:
            found = _Found(spool)
            for exchange in exchanges:
                found.add(exchange)
            written = [
                partition
                for name, topic_id, number, batches in found.named(exchanges.topic_ids)
                if (partition := _write(output, found, name, topic_id, number, batches, segment_bytes))
            ]
        report = _report(exchanges.summary, found, written)
        output.commit(report, name="wire.json")
    return report


def _report(summary: WireSummary, found: _Found, written: list[ExtractedPartition]) -> ExtractReport:
    return {
        "written": written,
        "duplicates": found.duplicates,
        "incomplete": found.incomplete,
        "unacknowledged": found.unacknowledged,
        "connections": summary.connections,
        "tls_connections": summary.tls_connections,
        "other_connections": summary.other_connections,
        "lost_bytes": summary.lost_bytes,
        "skipped_bytes": summary.skipped_bytes,
        "problems": [*summary.problems, *found.problems],
        "problems_left_out": summary.problems_left_out + found.problems_left_out,
    }


def _write(
    output: PartitionsOutput,
    found: _Found,
    topic: str,
    topic_id: str | None,
    partition: int,
    batches: list[_Batch],
    segment_bytes: int,
) -> ExtractedPartition | None:
    """Writes a partition; None if it has no batch that can be written."""
    target = output.target({"topic": topic, "partition": partition})
    first = batches[0].base_offset
    if first < 0:
        found.problem(f"{topic}-{partition}: a batch at offset {first}; the partition is not written")
        return None
    writer = _core.PartitionWriter(_core.begin_partition(target), first, segment_bytes=segment_bytes)
    count = produced = size = gaps_left_out = 0
    gaps: list[tuple[int, int]] = []
    for batch in batches:
        end = writer.next_offset
        if batch.base_offset < end:
            # A produced batch that a broker repacked has also been fetched, in that form.
            if batch.fetched:
                found.problem(
                    f"{topic}-{partition}: the batch at offset {batch.base_offset} begins before {end}, the"
                    " end of another one; it is not written"
                )
            continue
        try:
            writer.append(found.read(batch))
        except Error as error:
            found.problem(f"{topic}-{partition}: the batch at offset {batch.base_offset}: {error}")
            continue
        if batch.base_offset > end:
            if len(gaps) < _core.LISTED:
                gaps.append((end, batch.base_offset - 1))
            else:
                gaps_left_out += 1
        count += 1
        produced += not batch.fetched
        size += batch.size
    end = writer.next_offset
    summaries = writer.finish()
    _core.finish_partition(target, summaries, topic_id=topic_id)
    return {
        "topic": topic,
        "partition": partition,
        "segments": len(summaries),
        "size": size,
        "batches": count,
        "first_offset": first,
        "end_offset": end,
        "produced": produced,
        "gaps": gaps,
        "gaps_left_out": gaps_left_out,
    }
