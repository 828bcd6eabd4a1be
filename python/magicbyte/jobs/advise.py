"""The job of `magicbyte advise`: which codec, level and batch size a topic should have, judged by a
sample of its log.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypedDict, cast, get_args

from magicbyte import _core
from magicbyte.enums import Compression
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.cluster import Cluster, read_cluster
from magicbyte.jobs.find.partitions import Inputs, SkippedDirectory, find_inputs
from magicbyte.jobs.run.accounting import listed
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import Planned, plan_partitions
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.run.sampling import Estimate, WindowPlace, estimate, windows_of
from magicbyte.lab import DictionaryTrial, Window
from magicbyte.model import Problem
from magicbyte.options.read import AdviseOptions

__all__ = [
    "GOALS",
    "LAYOUTS",
    "THOROUGH",
    "Advice",
    "AdviseReport",
    "Goal",
    "HeaderKeyCost",
    "Layout",
    "LayoutCost",
    "TopicAdvice",
    "advise",
]

Goal = Literal["storage", "cpu", "latency"]
GOALS: tuple[Goal, ...] = get_args(Goal)


class Layout(NamedTuple):
    """A way to write a topic."""

    compression: str
    level: int | None
    """None for Kafka's default."""
    batch_bytes: int | None
    """The maximum bytes of a batch before compression, like a producer's `batch.size`; None keeps the
    batches."""


_SIZES = (None, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
_CODECS: tuple[tuple[str, int | None], ...] = (
    ("none", None), ("snappy", None), ("lz4", None), ("gzip", 1), ("gzip", None),
    ("zstd", 1), ("zstd", None), ("zstd", 6), ("zstd", 9),
)  # fmt: skip
_SLOW: tuple[tuple[str, int | None], ...] = (("lz4", 12), ("gzip", 9), ("zstd", 12), ("zstd", 19))
LAYOUTS = tuple(Layout(*codec, size) for codec in _CODECS for size in _SIZES)
"""Layouts to try: Kafka's codecs at quick levels, with the batches as they are and with four batch sizes."""
THOROUGH = tuple(Layout(*codec, size) for codec in _CODECS + _SLOW for size in _SIZES)
"""`LAYOUTS`, and layouts with slow levels, which save little for the time that they take."""

_MOST_TOPICS = 20
_FEWEST_WINDOWS = 6
_HEADER_KEYS = 5
_LINK_BYTES_PER_SECOND = 125_000_000
"""The link speed for the latency of a fetch: one gigabit per second."""
_LATENCY_BATCH_BYTES = 64 << 10
_EDGE = 0.02
"""The error from the first and last batch of a window, together, as a share of a batch. Logs of dissimilar
records show errors of this size."""
_NEARLY = 1.02
"""Sizes within two percent count as equal: the cheaper one is recommended."""


class LayoutCost(TypedDict):
    """The estimated cost of a topic in one layout."""

    compression: str
    level: int | None
    batch_bytes: int | None
    size: float
    """The estimated size of the topic in bytes."""
    error: float | None
    """Half the width of the interval with the true size in 19 of 20 samples; None with only one window."""
    savings: float
    """The share of the current bytes that the layout saves; negative if it needs more."""
    ratio: float
    """Bytes before compression divided by bytes."""
    batch_ratio: float
    """The mean ratio of a batch."""
    batches: float
    """The estimated number of batches."""
    batch_size: float
    """Mean bytes of a batch."""
    encode_bytes_per_second: float
    """Bytes before compression, on one core."""
    decode_bytes_per_second: float
    encode_seconds: float
    """The estimated time in seconds to write the whole topic on one core."""
    price_per_month: float | None
    is_pareto: bool
    """True if no other layout is smaller, and quicker to write and to read."""


class HeaderKeyCost(TypedDict):
    """The cost of a header key in a topic, before compression."""

    key: str
    bytes: float
    """The estimated bytes of keys, values and their lengths."""
    name_bytes: float
    """The bytes of the key alone; a one-byte name would save all of them except one byte per header."""
    count: float


class Advice(TypedDict):
    """The recommended layout for a goal."""

    goal: Goal
    layout: int
    """The index in `layouts`."""
    reason: str


class TopicAdvice(TypedDict):
    """The costs of the layouts for one topic."""

    topic: str
    partitions: int
    stored: int
    """Bytes of the topic's segments."""
    sampled: int
    """Bytes of the segments that were read."""
    windows: int
    damaged: int
    """Damaged bytes in the windows."""
    batch_size: float
    """Mean bytes of a batch as stored."""
    smallest_batch: int
    """The size in bytes of the smallest sampled batch."""
    largest_batch: int
    records_per_batch: float
    record_size: float
    """Mean bytes of a record, before compression."""
    key_size: float
    value_size: float
    legacy: float
    """The share of bytes in batches of magic 0 and 1."""
    legacy_messages: float
    """Bytes of these batches with their messages decompressed, estimated."""
    legacy_as_batches: float
    """Bytes of the same records in magic 2, uncompressed, in batches of about 16 KiB (a producer's default).
    """
    produced: float
    """The share of batches with a producer id, which `convert --rebatch` leaves as they are."""
    cleanup_policy: str | None
    """None if unknown: the sources have no `__cluster_metadata`, or several copies of it."""
    compression_type: str | None
    """The topic's or the brokers' `compression.type`; None if it is not set, or unknown."""
    layouts: list[LayoutCost]
    """One entry per layout, in the order in which the layouts were tried."""
    advice: list[Advice]
    header_keys: list[HeaderKeyCost]
    """The most expensive header keys."""
    dictionary: DictionaryTrial | None
    """The savings of a zstd dictionary, for information: Kafka cannot read batches compressed with one. These
    are sums over the windows that tried a dictionary; None if the windows are too small."""


class AdviseReport(TypedDict):
    """The advice for all topics."""

    topics: list[TopicAdvice]
    """The topics, the largest first."""
    not_sampled: list[str]
    """Topics that are too small to matter, or empty."""
    skipped: list[SkippedDirectory]
    problems: list[Problem]
    """The first `LISTED` problems known before decoding."""
    problems_left_out: int


@dataclass(frozen=True)
class _Try:
    """One window: its start, and the trials to make."""

    topic: str
    place: WindowPlace
    chunks: tuple[str, ...]
    start: int
    """The first byte of its first chunk."""
    tries_dictionary: bool


def advise(
    sources: Sequence[str],
    engine: Engine,
    options: AdviseOptions,
    *,
    layouts: Sequence[Layout] | None = None,
    dictionaries: int = 4,
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> AdviseReport:
    """Estimates what each topic at and below `sources` would be with each layout, from a sample of its log.

    Each topic's log is cut into equal shares, and a window is read at a random place of each; larger topics
    get more of the windows. The same seed takes the same sample. Training is slow, so a dictionary is tried
    in `dictionaries` windows of each topic only. `layouts` are tried instead of those that the options mean.

    Raises:
        RefusedError: if there is nothing to read.

    """
    layouts = layouts or (THOROUGH if options.thorough else LAYOUTS)
    inputs = find_inputs(sources, choice)
    cluster = _cluster_of(inputs)
    plans = plan_partitions(inputs.listings, engine, progress=progress)
    by_topic: dict[str, list[Planned]] = defaultdict(list)
    for planned in plans:
        by_topic[planned.plan["topic"]].append(planned)
    sizes = {topic: sum(_size(one) for one in own) for topic, own in by_topic.items()}
    largest = sorted((topic for topic in sizes if sizes[topic]), key=lambda topic: -sizes[topic])[
        :_MOST_TOPICS
    ]
    whole = sum(sizes[topic] for topic in largest)
    tries: list[_Try] = []
    for topic in largest:
        count = max(_FEWEST_WINDOWS, round(options.windows * sizes[topic] / whole))
        tries += _tries(topic, by_topic[topic], count, options.window_bytes, dictionaries, options.seed)
    done = engine.map(
        partial(_try_window, layouts=tuple(layouts), limit=options.max_decompressed_bytes),
        tries,
        name=f"try {len(layouts)} layouts on {len(tries)} windows",
        sizes=[options.window_bytes] * len(tries),
        progress=progress,
    )
    found: dict[str, list[Window]] = defaultdict(list)
    for one, window in zip(tries, done, strict=True):
        if window["batches"]:
            found[one.topic].append(window)
    topics = [
        _advice(
            topic, by_topic[topic], sizes[topic], found[topic], layouts, options.price_per_tb_month, cluster
        )
        for topic in largest
        if found[topic]
    ]
    sampled = {one["topic"] for one in topics}
    problems = [problem for planned in plans for problem in planned.plan["problems"]]
    return AdviseReport(
        topics=topics,
        not_sampled=sorted(topic for topic in sizes if topic not in sampled),
        skipped=inputs.skipped,
        **listed(problems),
    )


def _cluster_of(inputs: Inputs) -> Cluster:
    """The cluster's metadata. Several copies may differ, so none of them is trusted."""
    copies = [
        directory
        for directory in inputs.directories
        if directory["topic"] == CLUSTER_METADATA
        and directory["state"] == "current"
        and directory["segments"]
    ]
    return read_cluster(copies[0] if len(copies) == 1 else None)


def _try_window(one: _Try, layouts: tuple[Layout, ...], limit: int) -> Window:
    tried = [
        (Compression[layout.compression.upper()].value, layout.level, layout.batch_bytes)
        for layout in layouts
    ]
    # No batch follows the last one of a log: the window then begins with the chunk.
    for position in (one.place.position, one.start):
        text = _core.try_layouts(
            one.chunks,
            position,
            tried,
            window_bytes=one.place.window_bytes,
            max_decompressed_bytes=limit,
            dictionary=one.tries_dictionary,
        )
        window = cast(Window, json.loads(text))
        if window["batches"]:
            break
    return window


def _size(planned: Planned) -> int:
    return sum(chunk["end"] - chunk["start"] for chunk in planned.plan["chunks"])


def _tries(
    topic: str, plans: Iterable[Planned], count: int, window_bytes: int, dictionaries: int, seed: int
) -> list[_Try]:
    chunks = [chunk for planned in plans for chunk in planned.plan["chunks"]]
    texts = [json.dumps(chunk) for chunk in chunks]
    places = windows_of(chunks, count, window_bytes, seed)
    # Spread over the log.
    trained = {number * len(places) // dictionaries for number in range(dictionaries)}
    return [
        _Try(
            topic,
            place,
            tuple(texts[number] for number in place.chunks),
            chunks[place.chunks[0]]["start"],
            at in trained,
        )
        for at, place in enumerate(places)
    ]


def _advice(
    topic: str,
    plans: Sequence[Planned],
    stored: int,
    windows: Sequence[Window],
    layouts: Sequence[Layout],
    price: float | None,
    cluster: Cluster,
) -> TopicAdvice:
    sampled = sum(window["stored"] for window in windows)
    records = sum(window["records"] for window in windows) or 1
    decompressed = sum(window["decompressed"] for window in windows)
    costs = [_cost(number, layout, windows, stored, price) for number, layout in enumerate(layouts)]
    _mark_pareto(costs)
    batches = sum(window["batches"] for window in windows)
    return TopicAdvice(
        topic=topic,
        partitions=len(plans),
        stored=stored,
        sampled=sampled,
        windows=len(windows),
        damaged=sum(window["damaged"] for window in windows),
        batch_size=sampled / batches,
        smallest_batch=min(window["batch_sizes"][0] for window in windows),
        largest_batch=max(window["batch_sizes"][1] for window in windows),
        records_per_batch=records / batches,
        record_size=decompressed / records,
        key_size=sum(window["keys"] for window in windows) / records,
        value_size=sum(window["values"] for window in windows) / records,
        legacy=sum(window["legacy"] for window in windows) / sampled,
        legacy_messages=sum(window["legacy_messages"] for window in windows) * stored / sampled,
        legacy_as_batches=sum(window["legacy_as_batches"] for window in windows) * stored / sampled,
        produced=sum(window["produced"] for window in windows) / batches,
        cleanup_policy=cluster.policy(topic)[0],
        compression_type=cluster.config(topic, "compression.type"),
        layouts=costs,
        advice=[_recommended(goal, costs, stored) for goal in GOALS],
        header_keys=_header_keys(windows, stored / sampled),
        dictionary=_dictionary(
            [window["dictionary"] for window in windows if window["dictionary"] is not None]
        ),
    )


def _cost(
    number: int,
    layout: Layout,
    windows: Sequence[Window],
    stored: int,
    price: float | None,
) -> LayoutCost:
    tried = [(one, one["trials"][number]) for one in windows]

    def of_log(values: Iterable[float]) -> Estimate:
        # The part left out of a window is assumed to be like the rest of it.
        sums = [
            (value * (window["content"] or 1) / (trial["content"] or 1), window["stored"])
            for value, (window, trial) in zip(values, tried, strict=True)
        ]
        return estimate(sums, stored)

    size = of_log(trial["size"] for _, trial in tried)
    batches = sum(trial["batches"] for _, trial in tried)
    written = sum(trial["size"] for _, trial in tried)
    decompressed = sum(trial["decompressed"] for _, trial in tried)
    encode_rate = 1e9 * decompressed / (sum(trial["encode_ns"] for _, trial in tried) or 1)
    error = size.error
    if layout.batch_bytes is not None:
        # Batches at the start and end of a window are cut differently than in the log.
        error += _EDGE * size.value * len(windows) / batches
    return LayoutCost(
        compression=layout.compression,
        level=layout.level,
        batch_bytes=layout.batch_bytes,
        size=size.value,
        error=None if error == float("inf") else error,
        savings=1 - size.value / stored,
        ratio=decompressed / written,
        batch_ratio=sum(trial["batch_ratios"] for _, trial in tried) / batches,
        batches=of_log(trial["batches"] for _, trial in tried).value,
        batch_size=written / batches,
        encode_bytes_per_second=encode_rate,
        decode_bytes_per_second=1e9 * decompressed / (sum(trial["decode_ns"] for _, trial in tried) or 1),
        encode_seconds=of_log(trial["decompressed"] for _, trial in tried).value / encode_rate,
        price_per_month=None if price is None else size.value / 1e12 * price,
        is_pareto=False,
    )


def _mark_pareto(costs: Sequence[LayoutCost]) -> None:
    def beats(one: LayoutCost, other: LayoutCost) -> bool:
        pairs = (
            (one["size"], other["size"]),
            (-one["encode_bytes_per_second"], -other["encode_bytes_per_second"]),
            (-one["decode_bytes_per_second"], -other["decode_bytes_per_second"]),
        )
        return all(ours <= theirs for ours, theirs in pairs) and any(ours < theirs for ours, theirs in pairs)

    for one in costs:
        one["is_pareto"] = not any(beats(other, one) for other in costs)


def _recommended(goal: Goal, costs: Sequence[LayoutCost], stored: int) -> Advice:
    # Times are for a byte of records before compression.
    def seconds(one: LayoutCost) -> float:
        return 1 / one["encode_bytes_per_second"] + 1 / one["decode_bytes_per_second"]

    def fetch(one: LayoutCost) -> float:
        return 1 / one["ratio"] / _LINK_BYTES_PER_SECOND + 1 / one["decode_bytes_per_second"]

    numbers = range(len(costs))
    if goal == "storage":
        smallest = min(cost["size"] for cost in costs)
        nearly = [number for number in numbers if costs[number]["size"] <= _NEARLY * smallest]
        # No compression is the quickest, even if times that a busy machine measured say otherwise.
        best = min(
            nearly, key=lambda number: (costs[number]["compression"] != "none", seconds(costs[number]))
        )
        reason = "the quickest of those within 2% of the smallest"
    elif goal == "cpu":
        smaller = [number for number in numbers if costs[number]["size"] <= stored] or [
            min(numbers, key=lambda number: costs[number]["size"])
        ]
        best = min(smaller, key=lambda number: seconds(costs[number]))
        reason = "the least time to write and read once, of those no larger than today"
    else:
        small = [
            number
            for number in numbers
            if (costs[number]["batch_bytes"] or costs[number]["batch_size"] * costs[number]["ratio"])
            <= _LATENCY_BATCH_BYTES
        ] or list(numbers)
        best = min(small, key=lambda number: fetch(costs[number]))
        reason = "the least time to fetch (at 1 Gbit/s) and read a byte, in batches of at most 64 KiB"
    return Advice(goal=goal, layout=best, reason=reason)


def _dictionary(trials: Sequence[DictionaryTrial]) -> DictionaryTrial | None:
    if not trials:
        return None
    return DictionaryTrial(
        batches=sum(trial["batches"] for trial in trials),
        dictionary=sum(trial["dictionary"] for trial in trials),
        without_it=sum(trial["without_it"] for trial in trials),
        with_it=sum(trial["with_it"] for trial in trials),
    )


def _header_keys(windows: Sequence[Window], scale: float) -> list[HeaderKeyCost]:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for window in windows:
        for key, (count, size) in window["header_keys"].items():
            sums[key][0] += count
            sums[key][1] += size
    costs = [
        HeaderKeyCost(
            key=key,
            # Lengths of key and value: mostly a byte each.
            bytes=scale * (count * (len(key.encode()) + 2) + size),
            name_bytes=scale * count * len(key.encode()),
            count=scale * count,
        )
        for key, (count, size) in sums.items()
        if key
    ]
    return sorted(costs, key=lambda one: -one["bytes"])[:_HEADER_KEYS]
