"""Where appends differ from Kafka's on purpose, by name; docs/conformance.md has the same names.

Nothing else may differ, but that an exception that leaks out of Kafka's checks is a clear error here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from append_oracle import Case, same_batches
from magicbyte import Compression

Verdict = dict[str, Any]

# Kinds of errors inside of records and messages.
OF_RECORDS = {
    "invalid_count", "invalid_size", "invalid_varint", "record_size_mismatch", "records_remaining",
    "too_few_records", "unexpected_end",
}  # fmt: skip


def _names_offsets(kafka: Verdict, ours: Verdict, case: Case) -> bool:
    return ours["error"] == "UNKNOWN_SERVER_ERROR" and bool(kafka["error"])


def _has_nothing_to_append(kafka: Verdict, ours: Verdict, case: Case) -> bool:
    return ours["error"] is None and ours.get("bytes") == "" and "lastOffset" in kafka.get("text", "")


def _is_empty_with_a_codec(kafka: Verdict, ours: Verdict, case: Case) -> bool:
    # The count of a magic 2 batch.
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
    # Kafka reads the records to name their offsets in the message, and fails at that.
    "offsets-in-a-message": _names_offsets,
    # With append time Kafka asks for the last offset of no records.
    "nothing-to-append": _has_nothing_to_append,
    "empty-batch-keeps-its-codec": _is_empty_with_a_codec,
    # Unneeded keys, values and headers are skipped without checking the sizes around them.
    "sizes-while-skipping": _skips_what_is_wrong,
    # A payload is decompressed as a whole before its records are looked at.
    "damage-behind-records": _reads_less,
    # Of several things that are wrong, another is said: that a batch is shorter than its header, that zstd or
    # producer ids cannot be stored with the topic's magic.
    "order-of-checks": _checks_in_another_order,
    # Kafka's statistics count a record's size field as it should be written.
    "overlong-sizes": _counts_overlong_sizes,
    "memory": _has_no_memory,
}


def intended_append(kafka: Verdict, ours: Verdict, case: Case) -> str | None:
    """The name of the intended difference that this one is, or None."""
    return next((name for name, is_it in INTENDED_APPENDS.items() if is_it(kafka, ours, case)), None)
