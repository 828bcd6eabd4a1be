"""`magicbyte advise`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from magicbyte.cli import engines, options, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.terminal import print_line
from magicbyte.jobs.choice import PartitionChoice

if TYPE_CHECKING:
    from magicbyte.jobs.advise import LayoutCost, TopicAdvice

__all__ = ["advise"]


@click.command(short_help="Recommend a codec, a level and a batch size for each topic.")
@partition_choice.sources
@partition_choice.options()
@click.option(
    "--windows",
    type=options.Number(1, 10_000),
    default=32,
    show_default=True,
    help="How many places of the logs to sample, together.",
)
@click.option(
    "--window-bytes",
    type=options.BYTES,
    default="4m",
    show_default=True,
    help="How much to read at each place, after decompression.",
)
@click.option("--seed", type=options.COUNT, default=0, show_default=True, help="Of the sample.")
@click.option("--thorough", is_flag=True, help="Try slow levels, too: lz4 12, gzip 9, zstd 12 and 19.")
@click.option(
    "--price-per-tb-month",
    type=click.FloatRange(min=0),
    help="Show each layout's monthly price, per replica.",
)
@click.option("--every-layout", "show_all", is_flag=True, help="Show every layout.")
@engines.options
@options.max_decompressed_bytes
@options.as_json
def advise(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    windows: int,
    window_bytes: int,
    seed: int,
    thorough: bool,
    price_per_tb_month: float | None,
    show_all: bool,
    engine: EngineChoice,
    max_decompressed_bytes: int,
    as_json: bool,
) -> int:
    """Recommend a codec, a level and a batch size for the topics at and below SRC.

    Takes a sample from all over each topic's log, writes it with each codec, level and batch size, reads it
    again, and estimates what all of the topic would be: its size, with an interval that has the true size in
    19 of 20 samples, and the speed on one core of this machine, before compression.

    The table has the layouts that no other one beats in size and in both speeds (--every-layout: all of
    them), and what to choose for the least storage, for the least CPU, and for quick fetches. "as is" keeps
    the batches of the log: that is what a broker or `magicbyte convert --compression` can do. Other sizes are
    those of batches before compression: a producer's batch.size, or `convert --rebatch`, which leaves alone
    the batches of idempotent producers.

    \b
    magicbyte advise /backup/kafka-logs
    magicbyte advise --topic clicks --thorough --price-per-tb-month 20 /backup/kafka-logs
    magicbyte advise --json /backup/kafka-logs | jq '.topics[] | {topic, advice}'
    magicbyte advise --engine spark --windows 500 /backup/kafka-logs
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import inputs, reports
    from magicbyte.jobs.advise import LAYOUTS, THOROUGH
    from magicbyte.jobs.advise import advise as advise_job
    from magicbyte.jobs.progress import terminal_progress

    with engine.open("magicbyte advise") as runner:
        report = advise_job(
            sources,
            runner,
            layouts=THOROUGH if thorough else LAYOUTS,
            windows=windows,
            window_bytes=window_bytes,
            price_per_tb_month=price_per_tb_month,
            seed=seed,
            max_decompressed_bytes=max_decompressed_bytes,
            choice=choice,
            progress=terminal_progress(),
        )
    if as_json:
        reports.print_json(report)
    else:
        for number, topic in enumerate(report["topics"]):
            if number:
                print_line()
            _print_topic(topic, show_all=show_all)
        if report["not_sampled"]:
            print_line()
            print_line(f"not sampled, small or empty: {', '.join(report['not_sampled'])}")
        reports.print_problems(report["problems"], report["problems_left_out"])
        inputs.print_skipped(report["skipped"])
    return PROBLEMS if report["problems"] or report["problems_left_out"] else CLEAN


_BAR = 20


def _print_topic(topic: TopicAdvice, *, show_all: bool) -> None:
    from magicbyte.cli.tables import print_table

    print_line(
        f"{topic['topic']}: {topic['stored']:,} bytes in {topic['partitions']:,} partitions, "
        f"{topic['records_per_batch']:,.1f} records per batch, {topic['record_size']:,.1f} bytes per record; "
        f"sampled {topic['sampled']:,} bytes in {topic['windows']:,} windows"
    )
    costs = topic["layouts"]
    chosen: dict[int, list[str]] = {}
    for one in topic["advice"]:
        chosen.setdefault(one["layout"], []).append(one["goal"])
    shown = [
        number for number in range(len(costs)) if show_all or costs[number]["is_pareto"] or number in chosen
    ]
    shown.sort(key=lambda number: costs[number]["size"])
    priced = any(one["price_per_month"] is not None for one in costs)
    names = ["codec", "level", "batch", "bytes", "+-", "savings", "ratio", "ratio per batch", "batch on disk"]
    names += ["write MB/s", "read MB/s", *(["per month"] if priced else []), "size", "best for"]
    largest = max(max(one["size"] for one in costs), topic["stored"])
    rows = [
        [*_cells(costs[number], largest, priced=priced), " ".join(chosen.get(number, []))] for number in shown
    ]
    print_table(names, rows)
    for one in topic["advice"]:
        cost = costs[one["layout"]]
        print_line(f"for {one['goal']}: {_name(cost)}, {_savings(cost)}: {one['reason']}")
    for line in _remarks(topic):
        print_line(line)


def _cells(cost: LayoutCost, largest: float, *, priced: bool) -> list[Any]:
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
        round(cost["decode_bytes_per_second"] / 1e6),
        *([f"{price:,.2f}"] if priced and price is not None else []),
        "#" * round(_BAR * cost["size"] / largest) if largest else "",
    ]


def _batch(cost: LayoutCost) -> str:
    return "as is" if cost["batch_bytes"] is None else f"{cost['batch_bytes'] >> 10} KiB"


def _name(cost: LayoutCost) -> str:
    level = "" if cost["level"] is None else f" level {cost['level']}"
    batches = "batches as they are" if cost["batch_bytes"] is None else f"batches of {_batch(cost)}"
    return f"{cost['compression']}{level}, {batches}"


def _savings(cost: LayoutCost) -> str:
    change = "saves" if cost["savings"] >= 0 else "adds"
    return f"{change} {100 * abs(cost['savings']):.1f}%"


def _remarks(topic: TopicAdvice) -> list[str]:
    """What else is worth knowing before something is changed."""
    remarks = []
    if topic["legacy"]:
        remarks.append(
            f"{100 * topic['legacy']:.0f}% of the bytes are messages of magic 0 or 1; all layouts are magic 2"
        )
    if topic["produced"]:
        remarks.append(
            f"{100 * topic['produced']:.0f}% of the batches are of idempotent producers: `convert --rebatch` "
            "keeps them as they are, a larger batch.size helps"
        )
    if topic["damaged"]:
        remarks.append(f"{topic['damaged']:,} bytes in the windows are damaged and not in the figures")
    for one in topic["header_keys"]:
        remarks.append(
            f"header {one['key']!r}: {one['bytes']:,.0f} bytes before compression, "
            f"{one['name_bytes']:,.0f} of them for its name"
        )
    return remarks
