"""The intended differences from Kafka, by name; docs/conformance.md has the same names.

There must be no others: a difference that none of these covers is a bug, or needs a name and a reason.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import magicbyte
from magicbyte import _core
from reading import FACTS, Difference, read
from wire import sealed

ZSTD = 4
# The first bytes of zstd frames: one magic for data, sixteen for frames to skip.
FRAMES = [struct.pack("<I", magic) for magic in (0xFD2FB528, *range(0x184D2A50, 0x184D2A60))]
HEADER = 61


@dataclass(frozen=True)
class Intended:
    """One intended difference."""

    why: str
    kafka: str | None
    """A part of Kafka's error; None where Kafka accepts."""
    ours: str | None
    """A part of magicbyte's error; None where magicbyte accepts."""
    where: Callable[[Difference, dict[str, Any]], bool] = lambda difference, header: True
    """Whether this is the cause; takes the difference and the fields of the batch's header."""

    def covers(self, difference: Difference) -> bool:
        def like(error: str | None, part: str | None) -> bool:
            return error is None if part is None else error is not None and part in error

        if "header" not in difference.ours:
            return False
        header = dict(zip(FACTS, difference.ours["header"], strict=True))
        return (
            like(difference.kafka["error"], self.kafka)
            and like(difference.ours["error"], self.ours)
            and self.where(difference, header)
        )


def _empty_with_a_damaged_payload(difference: Difference, header: dict[str, Any]) -> bool:
    if header["count"] != 0 or header["compression"] == 0:
        return False
    try:
        _core.decompress(header["compression"], header["magic"], difference.ours["bytes"][HEADER:])
    except magicbyte.Error:
        return True
    return False


def _reads_as_kafka_did(data: bytes, difference: Difference) -> bool:
    (batch,) = read(sealed(data))["batches"]
    return batch["error"] is None and batch["records"] == difference.kafka["records"]


def _intact_up_to_a_later_frame(difference: Difference, header: dict[str, Any]) -> bool:
    """Whether the zstd frames before some later one hold exactly what Kafka read."""
    if header["magic"] != 2 or header["compression"] != ZSTD:
        return False
    data = difference.ours["bytes"]
    for end in range(HEADER + 1, len(data)):
        start = data[end : end + 4]
        if any(magic.startswith(start) for magic in FRAMES):
            ahead = data[:8] + struct.pack(">i", end - 12) + data[12:end]
            if _reads_as_kafka_did(ahead, difference):
                return True
    return False


def _intact_with_an_empty_raw_block(difference: Difference, header: dict[str, Any]) -> bool:
    """Whether Kafka's records are there once an empty zstd block is marked as raw instead of compressed."""
    if header["magic"] != 2 or header["compression"] != ZSTD:
        return False
    data = difference.ours["bytes"]
    for at in range(HEADER, len(data) - 2):
        block = data[at : at + 3]
        if block in (b"\4\0\0", b"\5\0\0"):
            raw = data[:at] + bytes([block[0] & 1]) + data[at + 1 :]
            if _reads_as_kafka_did(raw, difference):
                return True
    return False


INTENDED = {
    "empty-batch-keeps-its-codec": Intended(
        "A batch without records has a payload that nothing needs: Kafka's iterator() ignores it, too, and only "
        "the streaming iterator opens it. Some writers keep the codec bits of such batches.",
        # Kafka's error for a codec; for records it would be an InvalidRecordException.
        kafka="KafkaException: ",
        ours=None,
        where=_empty_with_a_damaged_payload,
    ),
    "cut-later-zstd-frame": Intended(
        "Kafka stops reading once the records are complete, and does not notice that a further frame is cut before "
        "its data. No writer makes such bytes; they are a sign of damage.",
        kafka=None,
        ours="zstd: ",
        where=_intact_up_to_a_later_frame,
    ),
    "empty-compressed-zstd-block": Intended(
        "An empty block that is marked as compressed is not valid zstd. libzstd refuses it in a single call, but "
        "skips it when it decompresses in parts, as Kafka does.",
        kafka=None,
        ours="zstd: ",
        where=_intact_with_an_empty_raw_block,
    ),
    "damaged-later-xerial-header": Intended(
        "Java drops such a header and continues somewhere after it; its buffers decide what is lost.",
        kafka=None,
        ours="concatenated header",
    ),
    "zstd-window": Intended(
        "Kafka's decoder refuses windows above 128 MB. Here the output is limited, and the window needs no memory.",
        kafka="too much memory",
        ours=None,
        where=lambda difference, header: header["compression"] == ZSTD,
    ),
    "inner-magic": Intended(
        "Kafka reads an inner message of any magic as if it were 1. Only 0 and 1 have a layout, and no broker "
        "appends any other.",
        kafka=None,
        ours="unsupported_magic",
    ),
    "memory": Intended(
        "Kafka allocates what a record declares before it reads it. Here nothing is allocated because of a number "
        "in the input; and a cut last message in a wrapper is dropped, as in a Kafka with a larger heap.",
        kafka="OutOfMemoryError",
        ours=None,
    ),
    "limit": Intended(
        "The size that a batch may decompress to is limited (256 MiB by default).",
        kafka=None,
        ours="limit_exceeded",
    ),
}


def intended(difference: Difference) -> str | None:
    """The name of the intended difference that covers this one, or None."""
    return next((name for name, known in INTENDED.items() if known.covers(difference)), None)
