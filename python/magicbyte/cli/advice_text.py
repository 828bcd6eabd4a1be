"""The advice of `magicbyte advise` about a topic in words and figures, and the tables that it prints."""

from __future__ import annotations

from magicbyte.cli.tables import print_table
from magicbyte.cli.terminal import print_line
from magicbyte.jobs.advise import AdviseReport, LayoutCost, TopicAdvice

__all__ = [
    "change_text",
    "columns_of",
    "figures_of",
    "goals_of",
    "largest_of",
    "layout_name",
    "print_advice",
    "remarks_of",
    "shown_layouts",
    "summary_of",
]

_BAR = 20
Figure = str | int | None


def print_advice(report: AdviseReport, *, show_all: bool) -> None:
    """Prints the layouts of each topic, the recommendations, and further remarks."""
    for number, topic in enumerate(report["topics"]):
        if number:
            print_line()
        _print_topic(topic, show_all=show_all)
    if report["not_sampled"]:
        print_line()
        print_line(f"not sampled, small or empty: {', '.join(report['not_sampled'])}")


def _print_topic(topic: TopicAdvice, *, show_all: bool) -> None:
    print_line(f"{topic['topic']}: {summary_of(topic)}")
    largest, goals = largest_of(topic), goals_of(topic)
    rows = [
        [*figures_of(cost), "#" * round(_BAR * cost["size"] / largest), " ".join(goals.get(number, []))]
        for number, cost in shown_layouts(topic, show_all=show_all)
    ]
    print_table([*columns_of(topic), "size", "best for"], rows)
    for one in topic["advice"]:
        cost = topic["layouts"][one["layout"]]
        print_line(f"for {one['goal']}: {layout_name(cost)}, {change_text(cost)}: {one['reason']}")
    for line in remarks_of(topic):
        print_line(line)


def summary_of(topic: TopicAdvice) -> str:
    """A description of the topic and of the data that was read."""
    return (
        f"{topic['stored']:,} bytes in {topic['partitions']:,} partitions, "
        f"{topic['records_per_batch']:,.1f} records per batch, {topic['record_size']:,.1f} bytes per record; "
        f"batches of {topic['smallest_batch']:,} to {topic['largest_batch']:,} bytes, "
        f"{topic['batch_size']:,.0f} on average; "
        f"sampled {topic['sampled']:,} bytes in {topic['windows']:,} windows"
    )


def goals_of(topic: TopicAdvice) -> dict[int, list[str]]:
    """The goals that a layout is recommended for, by its number."""
    goals: dict[int, list[str]] = {}
    for one in topic["advice"]:
        goals.setdefault(one["layout"], []).append(one["goal"])
    return goals


def shown_layouts(topic: TopicAdvice, *, show_all: bool) -> list[tuple[int, LayoutCost]]:
    """The unbeaten and the recommended layouts, or all layouts, with their numbers; by size."""
    goals = goals_of(topic)
    shown = [
        (number, cost)
        for number, cost in enumerate(topic["layouts"])
        if show_all or cost["is_pareto"] or number in goals
    ]
    return sorted(shown, key=lambda one: one[1]["size"])


def largest_of(topic: TopicAdvice) -> float:
    """The maximum of the topic's size today and in its layouts: the scale of the bars."""
    return max(topic["stored"], *(layout["size"] for layout in topic["layouts"]))


def columns_of(topic: TopicAdvice) -> list[str]:
    """The names of `figures_of`."""
    names = ["codec", "level", "batch", "bytes", "+-", "savings", "ratio", "ratio per batch", "batch on disk"]
    priced = any(layout["price_per_month"] is not None for layout in topic["layouts"])
    return [*names, "write MB/s", "write s", "read MB/s", *(["per month"] if priced else [])]


def figures_of(cost: LayoutCost) -> list[Figure]:
    """A layout and its costs."""
    price = cost["price_per_month"]
    return [
        cost["compression"],
        cost["level"],
        _batch(cost),
        round(cost["size"]),
        None if cost["error"] is None else f"{100 * cost['error'] / (cost['size'] or 1):.1f}%",
        f"{100 * cost['savings']:.1f}%",
        f"{cost['ratio']:.2f}",
        f"{cost['batch_ratio']:.2f}",
        round(cost["batch_size"]),
        round(cost["encode_bytes_per_second"] / 1e6),
        f"{cost['encode_seconds']:,.1f}",
        round(cost["decode_bytes_per_second"] / 1e6),
        *([] if price is None else [f"{price:,.2f}"]),
    ]


def _batch(cost: LayoutCost) -> str:
    return "as is" if cost["batch_bytes"] is None else f"{cost['batch_bytes'] >> 10} KiB"


def layout_name(cost: LayoutCost) -> str:
    """The layout in words."""
    level = "" if cost["level"] is None else f" level {cost['level']}"
    batches = "batches as they are" if cost["batch_bytes"] is None else f"batches of {_batch(cost)}"
    return f"{cost['compression']}{level}, {batches}"


def change_text(cost: LayoutCost) -> str:
    """The change in size, in words."""
    change = "saves" if cost["savings"] >= 0 else "adds"
    return f"{change} {100 * abs(cost['savings']):.1f}%"


def remarks_of(topic: TopicAdvice) -> list[str]:
    """Remarks that are worth knowing before a change."""
    remarks = []
    if topic["legacy"]:
        messages, batches = topic["legacy_messages"], topic["legacy_as_batches"]
        change = "less" if batches <= messages else "more"
        remarks.append(
            f"{100 * topic['legacy']:.0f}% of the bytes are messages of magic 0 or 1; all layouts are magic 2"
        )
        remarks.append(
            f"  before compression, they take {messages:,.0f} bytes, and {batches:,.0f} in magic 2 with "
            f"batches of 16 KiB: {100 * abs(1 - batches / messages):.1f}% {change}"
        )
    remarks += [*_on_compaction(topic), *_on_recompression(topic)]
    if topic["produced"]:
        remarks.append(
            f"{100 * topic['produced']:.0f}% of the batches are of idempotent producers: `convert --rebatch` "
            "keeps them as they are, a larger batch.size helps"
        )
    if topic["damaged"]:
        remarks.append(f"{topic['damaged']:,} bytes in the windows are damaged and not in the figures")
    if trial := topic["dictionary"]:
        saved = 1 - trial["with_it"] / trial["without_it"]
        remarks.append(
            "for information: with a dictionary trained on other batches, zstd batches as they are would be "
            f"{100 * abs(saved):.1f}% {'smaller' if saved >= 0 else 'larger'}; not Kafka-compatible, no "
            "client could read them"
        )
    for key in topic["header_keys"]:
        remarks.append(
            f"header {key['key']!r}: {key['bytes']:,.0f} bytes before compression, "
            f"{key['name_bytes']:,.0f} of them for its name"
        )
    return remarks


def _on_compaction(topic: TopicAdvice) -> list[str]:
    """The effect of the cleaner on a layout (`MemoryRecords.buildRetainedRecordsInto`; KIP-390)."""
    policy = topic["cleanup_policy"]
    if policy is None or "compact" not in policy:
        return []
    remark = (
        f"cleanup.policy={policy}: the cleaner keeps each batch's codec, writes batches that lose records at "
        "the codec's default level, and joins none"
    )
    costs = topic["layouts"]
    (storage,) = (costs[one["layout"]] for one in topic["advice"] if one["goal"] == "storage")
    if storage["level"] is None:
        return [remark]
    cleaned = [
        cost
        for cost in costs
        if (cost["compression"], cost["level"], cost["batch_bytes"])
        == (storage["compression"], None, storage["batch_bytes"])
    ]
    return [remark, *(f"  after that: {layout_name(one)}, {change_text(one)}, at best" for one in cleaned)]


def _on_recompression(topic: TopicAdvice) -> list[str]:
    """The effect of a leader on a producer's batches (`LogValidator`)."""
    codec = topic["compression_type"]
    if codec in (None, "producer"):
        return []
    return [
        f"compression.type={codec}: the leader writes batches of other codecs again, at the topic's level; "
        "batches of this codec keep the producer's level"
    ]
