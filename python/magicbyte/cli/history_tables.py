"""The tables of a history, for its text and its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from magicbyte.cli.times import time_text
from magicbyte.jobs.run.progress import format_bytes
from magicbyte.model import PartitionHistory, TransactionHistory

__all__ = ["HistoryTable", "HistoryValue", "Id", "Outcome", "Span", "history_tables", "transaction_count"]


class Id(NamedTuple):
    """An id or epoch, whose digits are not grouped."""

    number: int


class Span(NamedTuple):
    """A range of offsets or sequences, inclusive."""

    first: int
    last: int


class Outcome(NamedTuple):
    """The outcome of a transaction (`hanging`, `open`, `aborted` or `committed`), and its text."""

    name: str
    text: str


HistoryValue: TypeAlias = int | str | Id | Span | Outcome | None


@dataclass(frozen=True)
class HistoryTable:
    """A table of a history. Its rows are those that the history lists, of `count`."""

    title: str
    about: str
    names: Sequence[str]
    rows: Sequence[Sequence[HistoryValue]]
    count: int


def transaction_count(history: PartitionHistory) -> int:
    """The number of transactions, including transactions that are not listed."""
    counts = history["transaction_counts"]
    return counts["committed"] + counts["aborted"] + counts["open"]


def history_tables(history: PartitionHistory) -> Iterator[HistoryTable]:
    """Yields the tables of a history, with or without rows."""
    yield _transactions(history)
    yield _producers(history)
    yield _anomalies(history)
    yield HistoryTable(
        "Leader epochs",
        "where each leader started to write",
        ["epoch", "from offset"],
        [[Id(epoch["epoch"]), epoch["start_offset"]] for epoch in history["leader_epochs"]],
        history["leader_epoch_count"],
    )
    yield HistoryTable(
        "Missing offsets",
        "removed by compaction, or left out by a broker",
        ["offsets", "missing", "where"],
        [
            [
                Span(gap["first_offset"], gap["last_offset"]),
                gap["missing"],
                "in a batch" if gap["inside"] else "between batches",
            ]
            for gap in history["gaps"]
        ],
        history["gap_count"],
    )
    yield HistoryTable(
        "Steps back in time",
        "batches whose largest timestamp is smaller than an earlier one",
        ["offset", "time", "largest before"],
        [
            [step["offset"], time_text(step["timestamp"]), time_text(step["before"])]
            for step in history["steps_back"]
        ],
        history["step_back_count"],
    )
    yield HistoryTable(
        "Control batches",
        "by the type of their first record",
        ["type", "batches"],
        [[one["kind"], one["batches"]] for one in history["controls"]],
        len(history["controls"]),
    )
    yield HistoryTable(
        "Bytes in no batch",
        "damage, or a tail after the last batch",
        ["segment", "from", "to", "size", "where"],
        [
            [
                directory["segment"],
                directory["start"],
                directory["end"],
                format_bytes(directory["end"] - directory["start"]),
                "tail" if directory["is_tail"] else "between batches",
            ]
            for directory in history["skipped"]
        ],
        history["skipped_count"],
    )
    yield HistoryTable(
        "Problems",
        "of the directory and its sidecars",
        ["file", "kind", "what"],
        [[problem["segment"], problem["kind"], problem["message"]] for problem in history["problems"]],
        history["problem_count"],
    )


def _transactions(history: PartitionHistory) -> HistoryTable:
    names = "producer epoch outcome offsets marker records bytes"
    order = {"hanging": 0, "open": 1, "aborted": 2, "committed": 3}
    ordered = sorted(history["transactions"], key=lambda one: (order[_outcome(one).name], -one["bytes"]))
    return HistoryTable(
        "Transactions",
        "hanging and open ones first, then the largest",
        [*names.split(), "first batch", "last batch"],
        [
            [
                Id(one["producer_id"]),
                Id(one["producer_epoch"]),
                _outcome(one),
                _span(one["first_offset"], one["last_offset"]),
                one["marker_offset"],
                one["records"],
                one["bytes"],
                time_text(one["first_timestamp"]),
                time_text(one["marker_timestamp"] or one["last_timestamp"]),
            ]
            for one in ordered
        ],
        transaction_count(history),
    )


def _producers(history: PartitionHistory) -> HistoryTable:
    names = "producer epoch batches records bytes offsets sequences committed aborted anomalies"
    return HistoryTable(
        "Producers",
        "one row per epoch, the largest first",
        [*names.split(), "last batch"],
        [
            [
                Id(one["producer_id"]),
                Id(one["producer_epoch"]),
                one["batches"],
                one["records"],
                one["bytes"],
                Span(one["first_offset"], one["last_offset"]),
                _span(one["first_sequence"], one["last_sequence"]) if one["first_sequence"] >= 0 else None,
                one["committed"],
                one["aborted"],
                one["duplicates"] + one["refused"],
                time_text(one["last_timestamp"]),
            ]
            for one in sorted(history["producers"], key=lambda one: -one["bytes"])
        ],
        history["producer_count"],
    )


def _anomalies(history: PartitionHistory) -> HistoryTable:
    return HistoryTable(
        "Anomalies",
        "a leader would not have appended these batches from their producers",
        ["offset", "producer", "epoch", "sequence", "error", "why"],
        [
            [
                anomaly["offset"],
                Id(anomaly["producer_id"]),
                Id(anomaly["producer_epoch"]),
                anomaly["sequence"],
                anomaly["kind"],
                anomaly["message"] + (" (may be due to compaction)" if anomaly["compacted"] else ""),
            ]
            for anomaly in history["anomalies"]
        ],
        sum(history["anomaly_counts"].values()),
    )


def _span(first: int | None, last: int | None) -> Span | None:
    return None if first is None or last is None else Span(first, last)


def _outcome(transaction: TransactionHistory) -> Outcome:
    if transaction["hanging"]:
        return Outcome("hanging", "hanging")
    outcome = transaction["outcome"]
    if (name := transaction["transactional_id"]) is not None:
        state = transaction["coordinator_state"]
        return Outcome(outcome, f"{outcome}, known to the coordinator ({name}, {state})")
    return Outcome(outcome, outcome)
