"""The intended differences from Kafka's appends, by name; docs/conformance.md has the same names.

There must be no others, except that an exception that leaks out of Kafka's checks is a clear error here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from append_oracle import Case, same_batches
from magicbyte import Compression

Verdict = dict[str, Any]

# The kinds of errors in records and messages.
OF_RECORDS = {
    "invalid_count", "invalid_size", "invalid_varint", "record_size_mismatch", "records_remaining",
    "too_few_records", "unexpected_end",
}  # fmt: skip


def _names_offsets(kafka: Verdict, ours: Verdict, case: Case) -> bool:
    return ours["error"] == "UNKNOWN_SERVER_ERROR" and bool(kafka["error"])


def _has_nothing_to_append(kafka: Verdict, ours: Verdict, case: Case) -> bool:
    return ours["error"] is None and ours.get("bytes") == "" and "lastOffset" in kafka.get("text", "")


def _is_empty_with_a_codec(kafka: Verdict, ours: Verdict, case: Case) -> bool:
    # The record count of a magic 2 batch is zero.
    return ours["error"] is None and not kafka.get("typed", True) and case.records[57:61] == bytes(4)


def _skips_what_is_wrong(kafka: Verdict, ours: Verdict, case: Case) -> bool:
    passed = kafka["error"] is None or "recordErrors" in kafka
    return passed and ours["error"] == "INVALID_RECORD" and ours["kind"] in OF_RECORDS


def _reads_less(kafka: Verdict, ours: Verdict, case: Case) -> bool:
    return ours["error"] == "INVALID_RECORD" and ours["kind"] == "decompression"


def _checks_in_another_order(kafka: Verdict, ours: Verdict, case: Case) -> bool:
    if kafka["error"] is None:
        return False
    shorter_than_its_header = (ours["error"], ours.get("kind")) == ("CORRUPT_MESSAGE", "invalid_size")
    old = case.config.message_format < 2
    codec = old and case.config.compression == Compression.ZSTD
    return (
        shorter_than_its_header
        or (codec and ours["error"] == "UNSUPPORTED_COMPRESSION_TYPE")
        or (old and ours["error"] == "UNSUPPORTED_FOR_MESSAGE_FORMAT" and kafka["error"] == "INVALID_RECORD")
    )


def _counts_overlong_sizes(kafka: Verdict, ours: Verdict, case: Case) -> bool:
    if ours["error"] or kafka["error"]:
        return False
    return same_batches(kafka, ours) and 0 < ours["temporaryBytes"] - kafka["temporaryBytes"] < 20


def _has_no_memory(kafka: Verdict, ours: Verdict, case: Case) -> bool:
    return "OutOfMemoryError" in kafka.get("text", "")


INTENDED_APPENDS: dict[str, Callable[[Verdict, Verdict, Case], bool]] = {
    # Kafka reads the records to name their offsets in the error message, and fails in doing so.
    "offsets-in-a-message": _names_offsets,
    # With append time, Kafka asks for the last offset although there are no records.
    "nothing-to-append": _has_nothing_to_append,
    "empty-batch-keeps-its-codec": _is_empty_with_a_codec,
    # Kafka skips keys, values and headers that it does not need, and does not check their sizes.
    "sizes-while-skipping": _skips_what_is_wrong,
    # Here a payload is decompressed completely before its records are read.
    "damage-behind-records": _reads_less,
    # If several things are wrong, another one is reported: that a batch is shorter than its header, or that
    # zstd or producer ids cannot be stored with the topic's magic.
    "order-of-checks": _checks_in_another_order,
    # Kafka's statistics assume that the size field of a record is as short as possible.
    "overlong-sizes": _counts_overlong_sizes,
    "memory": _has_no_memory,
}


def intended_append(kafka: Verdict, ours: Verdict, case: Case) -> str | None:
    """The name of the intended difference that covers this one, or None."""
    return next((name for name, is_it in INTENDED_APPENDS.items() if is_it(kafka, ours, case)), None)
