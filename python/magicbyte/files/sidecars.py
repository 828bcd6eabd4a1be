"""The entries of the files beside segments, with the field names of Kafka's DumpLogSegments."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from magicbyte import _core
from magicbyte.errors import Error
from magicbyte.log_dir import (
    CLEAN_SHUTDOWN,
    META_PROPERTIES,
    OFFSET_CHECKPOINTS,
    parse_clean_shutdown,
    parse_meta_properties,
    parse_offset_checkpoint,
)
from magicbyte.partition_files import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA

__all__ = ["Entry", "base_offset", "is_sidecar", "kind_of", "read_sidecar"]

Entry = dict[str, Any]


def is_sidecar(path: str) -> bool:
    """True if the name is that of an index, a snapshot or a checkpoint of a partition, or of a file that a
    broker keeps beside its partitions.
    """
    return kind_of(path) in _READERS


def base_offset(path: str) -> int:
    """The offset in the name of a segment's file; 0 for any other name."""
    digits = re.match(r"\d{20}", os.path.basename(path))
    return int(digits[0]) if digits else 0


def kind_of(path: str) -> str:
    """The extension of a file beside segments, or its name if that is fixed."""
    name = os.path.basename(path)
    return name if name in _READERS else os.path.splitext(name)[1]


def read_sidecar(path: str) -> tuple[list[Entry], Error | OSError | None]:
    """Reads all entries up to the first error; returns them, and the error if there is one."""
    entries: list[Entry] = []
    try:
        entries.extend(_READERS[kind_of(path)](_core.read_sidecar(path), base_offset(path)))
    except (Error, OSError) as error:
        return entries, error
    return entries, None


def _offset_index(data: bytes, base: int) -> Iterator[Entry]:
    for entry in _core.offset_index(data, base, check=False):
        yield {"offset": entry.offset, "position": entry.position}
    _core.offset_index(data, base)


def _time_index(data: bytes, base: int) -> Iterator[Entry]:
    for entry in _core.time_index(data, base, check=False):
        yield {"timestamp": entry.timestamp, "offset": entry.offset}
    _core.time_index(data, base)


def _transaction_index(data: bytes, _: int) -> Iterator[Entry]:
    for entry in _core.transaction_index(data):
        yield {
            "version": entry.version,
            "producerId": entry.producer_id,
            "firstOffset": entry.first_offset,
            "lastOffset": entry.last_offset,
            "lastStableOffset": entry.last_stable_offset,
        }


def _producer_snapshot(data: bytes, _: int) -> Iterator[Entry]:
    for producer in _core.producer_snapshot(data):
        entry: Entry = {
            "producerId": producer.producer_id,
            "producerEpoch": producer.producer_epoch,
            "coordinatorEpoch": producer.coordinator_epoch,
            "currentTxnFirstOffset": producer.current_txn_first_offset,
            "lastTimestamp": producer.last_timestamp,
        }
        for batch in producer.batches:
            entry |= {"firstSequence": batch.first_sequence, "lastSequence": batch.last_sequence}
            entry |= {"lastOffset": batch.last_offset, "offsetDelta": batch.offset_delta}
            entry |= {"timestamp": producer.last_timestamp}
        yield entry


def _leader_epoch_checkpoint(data: bytes, _: int) -> Iterator[Entry]:
    for epoch, start in _core.leader_epoch_checkpoint(data.decode(errors="replace")):
        yield {"epoch": epoch, "startOffset": start}


def _partition_metadata(data: bytes, _: int) -> Iterator[Entry]:
    metadata = _core.partition_metadata(data.decode(errors="replace"))
    yield {"version": metadata.version, "topicId": metadata.topic_id}


def _offset_checkpoint(data: bytes, _: int) -> Iterator[Entry]:
    for (topic, partition), offset in parse_offset_checkpoint(data).items():
        yield {"topic": topic, "partition": partition, "offset": offset}


def _meta_properties(data: bytes, _: int) -> Iterator[Entry]:
    yield dict(parse_meta_properties(data))


def _clean_shutdown(data: bytes, _: int) -> Iterator[Entry]:
    yield {"brokerEpoch": parse_clean_shutdown(data)}


_READERS = {
    ".index": _offset_index,
    ".timeindex": _time_index,
    ".txnindex": _transaction_index,
    ".snapshot": _producer_snapshot,
    LEADER_EPOCH_CHECKPOINT: _leader_epoch_checkpoint,
    PARTITION_METADATA: _partition_metadata,
    **dict.fromkeys(OFFSET_CHECKPOINTS, _offset_checkpoint),
    META_PROPERTIES: _meta_properties,
    CLEAN_SHUTDOWN: _clean_shutdown,
}
