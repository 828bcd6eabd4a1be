"""The files beside a segment: used by `magicbyte dump`."""

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self, final

from magicbyte._stubs.state import ProducerStateEntry
from typing_extensions import Buffer

def read_sidecar(path: str | PathLike[str]) -> bytes:
    """The content of an index, snapshot or checkpoint file.

    Raises OSError if it cannot be read, is not a regular file, or is larger than 64 MiB.
    """

@final
@dataclass(frozen=True, init=False)
class OffsetIndexEntry:
    """An entry of an `.index`."""

    offset: int
    """An offset."""
    position: int
    """The position of its batch in the segment."""

    def __new__(cls, offset: int, position: int) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

def offset_index(data: Buffer, base_offset: int, *, check: bool = True) -> list[OffsetIndexEntry]:
    """The entries of an `.index`, without the zeros at its end.

    Raises Error if the size or the order is wrong; without `check` returns whatever is there.
    """

@final
@dataclass(frozen=True, init=False)
class TimeIndexEntry:
    """An entry of a `.timeindex`."""

    timestamp: int
    """The maximum timestamp (ms) so far."""
    offset: int
    """The offset of its record."""

    def __new__(cls, timestamp: int, offset: int) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

def time_index(data: Buffer, base_offset: int, *, check: bool = True) -> list[TimeIndexEntry]:
    """The entries of a `.timeindex`; otherwise like `offset_index`."""

@final
@dataclass(frozen=True, init=False)
class TransactionIndexEntry:
    """An entry of a `.txnindex`: an aborted transaction."""

    version: int
    """The version of the entry's format."""
    producer_id: int
    """The id of the transaction's producer."""
    first_offset: int
    """The offset of its first record."""
    last_offset: int
    """The offset of its marker (inclusive)."""
    last_stable_offset: int
    """The last stable offset when the marker was written."""

    def __new__(
        cls, version: int, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int
    ) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

def transaction_index(data: Buffer) -> list[TransactionIndexEntry]:
    """The entries of a `.txnindex`."""

def collect_aborted_transactions(
    data: Buffer, start: int, end: int
) -> tuple[list[TransactionIndexEntry], bool]:
    """The entries of a `.txnindex` relevant to a fetch of offsets from `start` to `end` (exclusive).

    The second value is True if no later segment can have more (`TransactionIndex.collectAbortedTxns`).
    """

def producer_snapshot(data: Buffer) -> list[ProducerStateEntry]:
    """The producers of a `.snapshot`, which has the last batch of each.

    Raises Error or, for a wrong CRC, CorruptRecordError.
    """

def leader_epoch_checkpoint(text: str) -> list[tuple[int, int]]:
    """The lines of a `leader-epoch-checkpoint`: epoch, start offset."""

@final
@dataclass(frozen=True, init=False)
class PartitionMetadata:
    """The content of a `partition.metadata`."""

    version: int
    """The version of the file's format."""
    topic_id: str
    """The id of the topic."""

    def __new__(cls, version: int, topic_id: str) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

def partition_metadata(text: str) -> PartitionMetadata:
    """The content of a `partition.metadata`."""
