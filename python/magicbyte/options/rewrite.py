"""Options of the jobs that copy partitions: `convert` and `recover`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from magicbyte.errors import RefusedError
from magicbyte.options.declare import argument, option
from magicbyte.options.shared import Certified, Decoding, Epochs, Indexes, TopicIds
from magicbyte.options.values import LEVEL, SEGMENT_SIZE, SIZE, Codec, OneOf, words

__all__ = ["ConvertOptions", "CopyOptions", "RecoverOptions", "RecoveryMethod"]

RecoveryMethod = Literal["keep", "truncate"]
"""`keep` keeps all good batches, including those after damage; `truncate` keeps nothing from the first damage
on, as a broker does when it starts."""


_PACKED_BYTES = 1 << 20
"""The size of packed batches where none is given."""


@dataclass(frozen=True, kw_only=True)
class CopyOptions(Epochs, TopicIds, Indexes, Certified, Decoding):
    """Options of partitions that are written. They have the names of Kafka's topic configs."""

    # Less than a broker's 1 GiB, so that tasks can share a partition.
    segment_bytes: int = option(
        "Start a new segment at this size; each task writes at least one.",
        default=128 << 20,
        kind=SEGMENT_SIZE,
    )
    segment_ms: int | None = argument(
        "The maximum time (ms) that a segment may span; None for no limit.", default=None
    )


@dataclass(frozen=True, kw_only=True)
class ConvertOptions(CopyOptions):
    """Options of a conversion."""

    magic: int | None = option(
        "The format to write; without one, that of each batch. 1 and 0 have no headers, producers and"
        " transactions; losses are counted.",
        default=2,
        kind=OneOf({"2": 2, "1": 1, "0": 0, "keep": None}),
    )
    compression: int | str | None = option(
        "The codec to write.",
        default=None,
        default_text="each batch's own",
        kind=Codec(),
    )
    level: int | None = option(
        "The level of the codec that is written: gzip 1 to 9, lz4 1 to 17, zstd -131072 to 22.",
        default=None,
        default_text="Kafka's",
        kind=LEVEL,
    )
    rebatch: bool = option(
        "Pack the records of batches without a producer id into full batches.", default=False
    )
    batch_bytes: int | None = option(
        "With rebatch: the size of a packed batch, before compression.",
        default=None,
        default_text=SIZE.show(_PACKED_BYTES),
        kind=SIZE,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.rebatch, bool):
            raise TypeError("rebatch is True or False; the size of a batch is batch_bytes")
        if self.batch_bytes is not None and not self.rebatch:
            raise RefusedError("a batch size is for batches that are packed: choose rebatch, too")

    @property
    def packed_bytes(self) -> int | None:
        """The size of packed batches; None if batches stay as they are."""
        if not self.rebatch:
            return None
        return _PACKED_BYTES if self.batch_bytes is None else self.batch_bytes

    @property
    def codec(self) -> int | None:
        """The number of the codec; None keeps each batch's."""
        return cast("int | None", self.compression)


@dataclass(frozen=True, kw_only=True)
class RecoverOptions(CopyOptions):
    """Options of a recovery."""

    method: RecoveryMethod = option(
        "keep: all good batches, including those after damage. truncate: nothing from the first damage on,"
        " as a broker does when it starts after a crash.",
        default="keep",
        kind=words(RecoveryMethod),
    )
