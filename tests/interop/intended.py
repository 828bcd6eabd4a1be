"""Where magicbyte differs from Kafka on purpose, by name; docs/conformance.md has the same names.

Nothing else may differ: a difference that none of these recognises is a bug or needs a name and a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reading import FACTS, Difference

ZSTD = 4


@dataclass(frozen=True)
class Intended:
    """One intended difference."""

    why: str
    kafka: str | None
    """A part of Kafka's error; None where Kafka accepts."""
    ours: str | None
    """A part of magicbyte's error; None where magicbyte accepts."""
    where: Callable[[dict[str, object]], bool] = lambda header: True
    """Of which batches, by the facts of their header."""

    def covers(self, difference: Difference) -> bool:
        def like(error: str | None, part: str | None) -> bool:
            return error is None if part is None else error is not None and part in error

        if "header" not in difference.ours:
            return False
        header = dict(zip(FACTS, difference.ours["header"], strict=True))
        return (
            like(difference.kafka["error"], self.kafka)
            and like(difference.ours["error"], self.ours)
            and self.where(header)
        )


INTENDED = {
    "empty-batch-keeps-its-codec": Intended(
        "A batch without records has a payload that nobody needs: Kafka's iterator() does not look at it "
        "either, only the streaming one opens it. Writers exist that keep the codec bits.",
        kafka="",
        ours=None,
        where=lambda header: header["count"] == 0 and header["compression"] != 0,
    ),
    "cut-later-zstd-frame": Intended(
        "Kafka stops asking once the records are complete and never sees that a further frame is cut or "
        "damaged: bytes that no writer makes, and a sign of damage.",
        kafka=None,
        ours="zstd: ",
        where=lambda header: header["compression"] == ZSTD,
    ),
    "damaged-later-xerial-header": Intended(
        "Java drops such a header and goes on somewhere behind it; what is lost depends on its buffers.",
        kafka=None,
        ours="concatenated header",
    ),
    "zstd-window": Intended(
        "Kafka's decoder stops at windows of 128 MB. The output is capped here, the window needs no memory of its own.",
        kafka="too much memory",
        ours=None,
        where=lambda header: header["compression"] == ZSTD,
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
