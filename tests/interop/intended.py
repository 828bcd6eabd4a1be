"""Where magicbyte differs from Kafka on purpose, by name; docs/conformance.md has the same names.

Nothing else may differ: a difference that none of these recognises is a bug or needs a name and a reason.
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
# How zstd's frames begin: one with data, sixteen that are skipped.
FRAMES = [struct.pack("<I", magic) for magic in (0xFD2FB528, *range(0x184D2A50, 0x184D2A60))]
HEADER = 61


@dataclass(frozen=True)
class Intended:
    """One intended difference."""

    why: str
    kafka: str | None
    """What Kafka's error has in it; None where Kafka accepts."""
    ours: str | None
    """What magicbyte's error has in it; None where magicbyte accepts."""
    where: Callable[[Difference, dict[str, Any]], bool] = lambda difference, header: True
    """What shows that this is the cause; given the facts of the batch's header, too."""

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


def _empty_and_not_to_be_decompressed(difference: Difference, header: dict[str, Any]) -> bool:
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


def _sound_up_to_a_later_frame(difference: Difference, header: dict[str, Any]) -> bool:
    """The zstd frames ahead of some later one hold just what Kafka read."""
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


def _sound_with_an_empty_raw_block(difference: Difference, header: dict[str, Any]) -> bool:
    """What Kafka read is there once a zstd block of no bytes is called raw instead of compressed."""
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
        "A batch without records has a payload that nobody needs: Kafka's iterator() does not look at it "
        "either, only the streaming one opens it. Writers exist that keep the codec bits.",
        # For a codec; where Kafka rejects records, it throws an InvalidRecordException.
        kafka="KafkaException: ",
        ours=None,
        where=_empty_and_not_to_be_decompressed,
    ),
    "cut-later-zstd-frame": Intended(
        "Kafka stops asking once the records are complete and never sees that a further frame is cut before "
        "its data: bytes that no writer makes, and a sign of damage.",
        kafka=None,
        ours="zstd: ",
        where=_sound_up_to_a_later_frame,
    ),
    "empty-compressed-zstd-block": Intended(
        "A block of no bytes that is called compressed: zstd's format has none, and libzstd in one call refuses "
        "it; in parts, as Kafka calls it, it passes over it.",
        kafka=None,
        ours="zstd: ",
        where=_sound_with_an_empty_raw_block,
    ),
    "damaged-later-xerial-header": Intended(
        "Java drops such a header and goes on somewhere after it; what is lost depends on its buffers.",
        kafka=None,
        ours="concatenated header",
    ),
    "zstd-window": Intended(
        "Kafka's decoder stops at windows of 128 MB. The output is capped here, the window needs no memory of its own.",
        kafka="too much memory",
        ours=None,
        where=lambda difference, header: header["compression"] == ZSTD,
    ),
    "inner-magic": Intended(
        "Kafka reads an inner message of any magic as if it were 1; only 0 and 1 have a layout, and no broker "
        "appends another.",
        kafka=None,
        ours="unsupported_magic",
    ),
    "memory": Intended(
        "Kafka makes room for what a record declares before it reads it; here nothing is reserved from a number "
        "in the input, and a cut last message inside a wrapper is dropped as in a Kafka with a larger heap.",
        kafka="OutOfMemoryError",
        ours=None,
    ),
    "limit": Intended(
        "What a batch may decompress to is capped (256 MiB unless told).",
        kafka=None,
        ours="limit_exceeded",
    ),
}


def intended(difference: Difference) -> str | None:
    """The name of the intended difference that this one is, or None."""
    return next((name for name, known in INTENDED.items() if known.covers(difference)), None)
