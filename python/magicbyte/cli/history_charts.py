"""The charts of a history: inline SVG over offsets, with a few hundred shapes however long the log is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from magicbyte.cli.history_notes import time_steps
from magicbyte.cli.html_charts import LEFT, PLOT, Chart, label, line, rect, svg, text
from magicbyte.cli.times import time_text
from magicbyte.jobs.run.progress import format_bytes
from magicbyte.model import PartitionHistory, TransactionHistory

__all__ = ["charts"]

_TIME_STEPS = 120
_MOST_BARS = 240
"""Up to how many transactions each has a bar of its own."""
_MOST_LANES = 16
_OUTCOMES = ("committed", "aborted", "open", "hanging")
"""In the order of `transaction_steps`."""


@dataclass(frozen=True)
class _Offsets:
    """The horizontal axis."""

    first: int
    end: int

    def x(self, offset: int) -> float:
        span = max(1, self.end - self.first)
        return LEFT + PLOT * min(max((offset - self.first) / span, 0), 1)

    def axis(self, height: int) -> Iterator[str]:
        for at in range(5):
            offset = self.first + (self.end - self.first) * at // 4
            anchor = "start" if at == 0 else "end" if at == 4 else "middle"
            words = f"{'offset ' if at == 0 else ''}{offset:,}"
            yield text(self.x(offset), height - 4, words, anchor)


def charts(history: PartitionHistory) -> list[Chart]:
    """The charts that have something to show."""
    bins, first, end = history["bins"], history["first_offset"], history["next_offset"]
    if not bins or first is None or end is None:
        return []
    offsets = _Offsets(first, end)
    found = []
    if history["transaction_steps"]:
        found.append(_transactions(history, offsets))
    found += [*_over_time(history), *_sizes(history, offsets), _codecs(history, offsets)]
    if history["missing_offsets"]:
        found.append(_gaps(history, offsets))
    if len(history["leader_epochs"]) > 1:
        found.append(_epochs(history, offsets))
    return found


def _outcome(one: TransactionHistory) -> str:
    return "hanging" if one["hanging"] else one["outcome"]


def _transactions(history: PartitionHistory, offsets: _Offsets) -> Chart:
    steps = history["transaction_steps"]
    total = sum(map(sum, steps))
    outcomes = [name for name, counts in zip(_OUTCOMES, zip(*steps, strict=True), strict=True) if any(counts)]
    if total <= _MOST_BARS:
        svg = _bars(
            [
                transaction
                for transaction in history["transactions"]
                if transaction["first_offset"] is not None
            ],
            offsets,
        )
        about = "Each transaction from its first offset to its marker; overlapping ones are stacked."
    else:
        svg = _columns(steps, total, offsets)
        about = f"Where {total:,} transactions begin, by outcome."
    return Chart("Transactions", about, svg, outcomes)


def _bars(shown: list[TransactionHistory], offsets: _Offsets) -> str:
    lanes: list[float] = []
    placed = []
    for one in shown:
        first = offsets.x(one["first_offset"] or 0)
        last = one["marker_offset"]
        end = offsets.x(offsets.end if last is None else last + 1)
        free = (number for number, until in enumerate(lanes) if until <= first)
        lane = next(free, len(lanes) if len(lanes) < _MOST_LANES else len(lanes) - 1)
        lanes[lane : lane + 1] = [max(end, first + 2)]
        placed.append((one, lane, first, end))
    pitch = 20 if len(lanes) <= 6 else 13
    height = len(lanes) * pitch + 26

    def parts() -> Iterator[str]:
        for lane in range(len(lanes) + 1):
            yield line(lane * pitch + 2)
        for one, lane, first, end in placed:
            last = one["marker_offset"] if one["marker_offset"] is not None else one["last_offset"]
            title = (
                f"producer {one['producer_id']} epoch {one['producer_epoch']}: {_outcome(one)}, "
                f"offsets {one['first_offset']:,} to {last:,}, {one['records']:,} records"
            )
            yield rect(
                first + 0.5, lane * pitch + 4, end - first - 1, pitch - 4, _outcome(one), title, ' rx="3"'
            )
        yield from offsets.axis(height)

    return svg(height, f"Timeline of {len(shown)} transactions over offsets", parts())


def _columns(steps: list[list[int]], total: int, offsets: _Offsets) -> str:
    most = max(map(sum, steps))
    plot, height = 150, 180
    width = PLOT / len(steps)

    def parts() -> Iterator[str]:
        for part in (0, 0.5, 1):
            yield line(plot - part * (plot - 8)) + label(plot - part * (plot - 8), f"{most * part:,.0f}")
        for at, column in enumerate(steps):
            y = float(plot)
            for name, count in zip(_OUTCOMES, column, strict=True):
                tall = count / most * (plot - 8)
                y -= tall
                if count:
                    yield rect(LEFT + at * width, y, width - 1, tall, name, f"{count:,} {name}")
        yield from offsets.axis(height)

    return svg(height, f"Outcomes of {total} transactions over offsets", parts())


def _over_time(history: PartitionHistory) -> Iterator[Chart]:
    steps = time_steps(history["bins"], _TIME_STEPS)
    if steps is None or steps.start == steps.end:
        return
    plot, height, width = 120, 150, PLOT / _TIME_STEPS
    most = max(max(steps.bytes), 1)
    step_ms = (steps.end - steps.start + 1) / _TIME_STEPS

    def parts() -> Iterator[str]:
        for part in (0, 0.5, 1):
            y = plot - part * (plot - 8)
            yield line(y) + label(y, format_bytes(round(most * part)))
        for at, (size, records) in enumerate(zip(steps.bytes, steps.records, strict=True)):
            tall = size / most * (plot - 8)
            if tall:
                since = time_text(round(steps.start + at * step_ms))
                words = f"from {since}: {format_bytes(round(size))}, {records:,.0f} records"
                yield rect(LEFT + at * width, plot - tall, width - 1, tall, "accent", words)
        for time, x, anchor in ((steps.start, LEFT, "start"), (steps.end, LEFT + PLOT, "end")):
            yield text(x, height - 4, time_text(time) or "", anchor)

    about = "Bytes of data by the batches' largest timestamps."
    yield Chart("Over time", about, svg(height, "Bytes over time", parts()), [])


def _sizes(history: PartitionHistory, offsets: _Offsets) -> Iterator[Chart]:
    bins = [one for one in history["bins"] if one["batches"] > one["control_batches"]]
    if not bins:
        return
    low = math.log2(max(1, min(one["smallest"] for one in bins))) - 0.3
    high = math.log2(max(2, max(one["largest"] for one in bins))) + 0.3
    plot, height = 170, 200

    def y(size: float) -> float:
        return plot - (math.log2(max(size, 1)) - low) / (high - low) * (plot - 8)

    def parts() -> Iterator[str]:
        step = max(1, round((high - low) / 5))
        for power in range(math.ceil(low), math.floor(high) + 1, step):
            yield line(y(2**power)) + label(y(2**power), format_bytes(2**power))
        for one in bins:
            x, until = offsets.x(one["first_offset"]), offsets.x(one["last_offset"] + 1)
            batches = one["batches"] - one["control_batches"]
            mean = (one["bytes"] - one["control_bytes"]) / batches
            sizes = f"{one['smallest']:,} to {one['largest']:,} bytes, {mean:,.0f} on average"
            words = f"{batches:,} batches, {sizes}"
            top, bottom = y(one["largest"]), y(one["smallest"])
            yield rect(x, top, until - x, max(bottom - top, 2), "accent", words, ' opacity="0.3"')
            yield rect(x, y(mean) - 1.5, until - x, 3, "accent", words)
        yield from offsets.axis(height)

    smallest, largest = min(one["smallest"] for one in bins), max(one["largest"] for one in bins)
    data = sum(one["batches"] - one["control_batches"] for one in bins)
    about = (
        f"{data:,} batches of data from {format_bytes(smallest)} to {format_bytes(largest)}; "
        "bars span the smallest to the largest, lines are the average."
    )
    yield Chart("Sizes of batches", about, svg(height, "Sizes of batches over offsets", parts()), [])


def _codecs(history: PartitionHistory, offsets: _Offsets) -> Chart:
    names = history["bin_codecs"]
    bins = history["bins"]
    used = [at for at in range(len(names)) if any(one["codecs"][at] for one in bins)]
    plot, height = 92, 120

    def parts() -> Iterator[str]:
        for part in (0, 0.5, 1):
            yield line(plot - part * (plot - 8)) + label(plot - part * (plot - 8), f"{part:.0%}")
        for one in bins:
            x, until, y = offsets.x(one["first_offset"]), offsets.x(one["last_offset"] + 1), float(plot)
            for at in used:
                tall = one["codecs"][at] / max(1, one["bytes"]) * (plot - 8)
                y -= tall
                if tall:
                    yield rect(
                        x, y, until - x + 0.3, tall, names[at], f"{names[at]}: {one['codecs'][at]:,} bytes"
                    )
        yield from offsets.axis(height)

    bytes_of = {names[at]: sum(one["codecs"][at] for one in bins) for at in used}
    whole = max(1, sum(bytes_of.values()))
    about = ", ".join(
        f"{name} {history['codecs'].get(name, 0):,} batches, {size / whole:.1%} of the bytes"
        for name, size in bytes_of.items()
    )
    return Chart(
        "Codecs", about, svg(height, "Codecs by bytes over offsets", parts()), [names[at] for at in used]
    )


def _gaps(history: PartitionHistory, offsets: _Offsets) -> Chart:
    plot, height = 92, 120

    def parts() -> Iterator[str]:
        for part in (0, 0.5, 1):
            yield line(plot - part * (plot - 8)) + label(plot - part * (plot - 8), f"{part:.0%}")
        before = offsets.first
        for one in history["bins"]:
            # Offsets missing before a bin count for that bin.
            x, until = offsets.x(min(before, one["first_offset"])), offsets.x(one["last_offset"] + 1)
            span = max(1, one["last_offset"] + 1 - min(before, one["first_offset"]))
            tall = min(1, one["missing"] / span) * (plot - 8)
            if one["missing"]:
                yield rect(
                    x,
                    plot - tall,
                    until - x,
                    tall,
                    "aborted",
                    f"{one['missing']:,} of {span:,} offsets missing",
                )
            before = one["last_offset"] + 1
        yield from offsets.axis(height)

    whole = max(1, offsets.end - offsets.first)
    about = (
        f"{history['missing_offsets']:,} of {whole:,} offsets have no record "
        f"({history['missing_offsets'] / whole:.1%}), in {history['gap_count']:,} gaps."
    )
    return Chart("Missing offsets", about, svg(height, "Share of missing offsets over offsets", parts()), [])


def _epochs(history: PartitionHistory, offsets: _Offsets) -> Chart:
    epochs = history["leader_epochs"]
    height = 56
    ends = [*(epoch["start_offset"] for epoch in epochs[1:]), offsets.end]

    def parts() -> Iterator[str]:
        for at, (one, end) in enumerate(zip(epochs, ends, strict=True)):
            x, until = offsets.x(one["start_offset"]), offsets.x(end)
            title = f"epoch {one['epoch']} from offset {one['start_offset']:,}"
            yield rect(
                x, 6, until - x - 1, 24, "accent", title, f' rx="3" opacity="{0.75 if at % 2 else 0.45}"'
            )
            if until - x > 30:
                yield text((x + until) / 2, 22, str(one["epoch"]), "middle", "strong")
        yield from offsets.axis(height)

    return Chart(
        "Leader epochs",
        f"{history['leader_epoch_count']:,} leader epochs.",
        svg(height, "Leader epochs", parts()),
        [],
    )
