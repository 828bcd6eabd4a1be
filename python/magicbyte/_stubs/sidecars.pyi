"""The files beside a segment: used by `magicbyte dump`."""

from os import PathLike

def read_sidecar(path: str | PathLike[str]) -> bytes:
    """The content of an index, snapshot or checkpoint file.

    Raises OSError if it cannot be read, is not a regular file, or is larger than 64 MiB.
    """

def offset_index(data: bytes, base_offset: int, *, check: bool = True) -> list[tuple[int, int]]:
    """The entries of an `.index`, (offset, position), without the zeros at its end.

    Raises Error if the size or the order is wrong; without `check` returns whatever is there.
    """

def time_index(data: bytes, base_offset: int, *, check: bool = True) -> list[tuple[int, int]]:
    """The entries of a `.timeindex`, (timestamp in ms, offset); otherwise like `offset_index`."""

def transaction_index(data: bytes) -> list[tuple[int, int, int, int, int]]:
    """The entries of a `.txnindex`: version, producer id, first, last (inclusive), last stable offset."""

def collect_aborted_transactions(
    data: bytes, start: int, end: int
) -> tuple[list[tuple[int, int, int, int, int]], bool]:
    """The entries of a `.txnindex` relevant to a fetch of offsets from `start` to `end` (exclusive).

    And whether no later segment can have more (`TransactionIndex.collectAbortedTxns`).
    """

def producer_snapshot(data: bytes) -> list[tuple[int, int, int, int, int, int, int, int | None]]:
    """The producers of a `.snapshot`.

    Producer id, epoch, last sequence, last offset, offset delta, timestamp (ms), coordinator epoch,
    first offset of the open transaction. Raises Error or, for a wrong CRC, CorruptRecordError.
    """

def leader_epoch_checkpoint(text: str) -> list[tuple[int, int]]:
    """The lines of a `leader-epoch-checkpoint`: epoch, start offset."""

def partition_metadata(text: str) -> tuple[int, str]:
    """The content of a `partition.metadata`: version, topic id."""
