"""`magicbyte stats`"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import click

import magicbyte
from magicbyte.cli import overview, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flags
from magicbyte.cli.overview import View
from magicbyte.cli.terminal import print_line
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.options.read import StatsOptions

if TYPE_CHECKING:
    from magicbyte.jobs.stats import Group, Stats, StatsReport

__all__ = ["stats"]


@click.command(short_help="Count batches, records and bytes by codec, magic, producer, size.")
@partition_choice.sources_or_clusters
@partition_choice.choice()
@click.option(
    "--fields", is_flag=True, help="Show what the bytes are for instead, field by field and format by format."
)
@flags(EngineChoice, "engine")
@flags(View, "view")
@flags(StatsOptions, "given")
def stats(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    fields: bool,
    view: View,
    engine: EngineChoice,
    given: StatsOptions,
) -> int:
    """Count the batches, records and bytes of each partition at and below SRC.

    SRC may be a running cluster, or a topic or partition of it: kafka://HOST:PORT/TOPIC/PARTITION.

    For each partition or topic and in total: batches, records, sizes on disk and after decompression, codecs,
    magics (0 and 1: Kafka before 0.11), ranges of offsets and times. Then, for all partitions together, the
    share of each codec, magic, producer and batch size. The ratio is that of the bytes of records after
    decompression to the bytes of batches on disk. --json has all of this for each partition and each topic,
    with the 1000 largest producers.

    With --fields, the first table has the bytes of each field, with records decompressed, as they are in the
    log and as the same batches would have them in each format: magic 0 and 1 (messages; headers are lost
    there), magic 2, and KIP-931, a discarded draft of magic 3 (records without attributes, varints in batch
    headers). The second table has each topic's share of bytes other than keys, values and headers. The bytes
    are exact, but do not show how well a format would compress. A message of magic 0 or 1 that is not
    compressed counts as its own batch in magic 2, as `convert` writes it without --rebatch.

    \b
    magicbyte stats /backup/kafka-logs
    magicbyte stats --json /backup/kafka-logs | jq .total.codecs
    magicbyte stats --json /backup/kafka-logs/orders-0 | jq '.total.producers | keys'
    magicbyte stats kafka://broker:9092/orders
    magicbyte stats --fields --topic 'clicks-*' /backup/kafka-logs
    magicbyte stats --fields --json logs/ | jq '.topics[] | .decompressed.records.header_keys'
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    if fields and replace(view, as_json=False) != View():
        raise click.UsageError("--by, --sort and --top order the table that --fields replaces")
    from magicbyte.cli import reports
    from magicbyte.cli.field_costs import print_field_costs
    from magicbyte.jobs.run.progress import terminal_progress

    with engine.open("magicbyte stats") as runner:
        if fields:
            costs = magicbyte.field_costs(
                sources,
                choice=choice,
                engine=runner,
                progress=terminal_progress(),
                max_decompressed_bytes=given.max_decompressed_bytes,
            )
            reports.print_report(costs, print_field_costs, as_json=view.as_json)
            return exit_code(costs["account"]["problems"], balanced=costs["balanced"])
        report = magicbyte.stats(
            sources, choice=choice, engine=runner, progress=terminal_progress(), **vars(given)
        )
    reports.print_report(report, partial(_print, view=view), as_json=view.as_json)
    return exit_code(report["total"]["problems"], balanced=report["balanced"])


_GROUPS_SHOWN = 20
_BAR = 20
_COLUMNS = (
    "segments",
    "bytes",
    "uncompressed",
    "ratio",
    "batches",
    "records",
    "control",
    "codecs",
    "magics",
    "first time",
    "last time",
    "problems",
)


def _print(report: StatsReport, view: View) -> None:
    from magicbyte.cli.inputs import print_skipped

    _print_overview(report, view)
    print_skipped(report["skipped"])
    _print_groups("codec", report["total"]["codecs"])
    _print_groups("magic", report["total"]["magics"])
    producers = dict(report["total"]["producers"])
    if report["total"]["other_producers"]["batches"]:
        producers["others"] = report["total"]["other_producers"]
    _print_groups("producer", producers)
    _print_groups("batches of bytes up to", report["total"]["batch_sizes"])


def _print_overview(report: StatsReport, view: View) -> None:
    """Prints a row for each partition or topic; on a terminal the columns that fit."""
    from magicbyte.cli.tables import fitting_table, labels_of

    by = overview.rows_by(view, len(report["partitions"]))
    rows: list[dict[str, Any]]
    if by == "topic":
        rows = [{**topic, "name": topic["topic"]} for topic in report["topics"]]
    else:
        labels = labels_of(report["partitions"])
        rows = [{**one, "name": name} for name, one in zip(labels, report["partitions"], strict=True)]
    ordered = [{**one, "rows": one["records"], "balanced": True} for one in rows]
    shown = overview.first_rows(ordered, view)
    total = ["total", *_cells(report["total"])]
    names, cells = [by, *_COLUMNS], [[one["name"], *_cells(cast("Stats", one))] for one in shown]
    if by == "partition":
        names += ["first offset", "last offset"]
        cells = [
            [*row, one["first_offset"], one["last_offset"]] for row, one in zip(cells, shown, strict=True)
        ]
        total += [None, None]
    fitting_table(names, [*cells, total])
    overview.print_left_out(by, len(rows) - len(shown))


def _cells(one: Stats) -> list[Any]:
    from magicbyte.cli.times import time_text

    return [
        one["segments"],
        one["size"],
        one["uncompressed_size"],
        "-" if one["ratio"] is None else f"{one['ratio']:.2f}",
        one["batches"],
        one["records"],
        one["control_records"],
        _counts(one["codecs"]),
        _counts(one["magics"]),
        time_text(one["min_timestamp"]),
        time_text(one["max_timestamp"]),
        one["problems"],
    ]


def _counts(groups: dict[str, Group]) -> str:
    return " ".join(f"{name}:{one['batches']:,}" for name, one in groups.items()) or "-"


def _print_groups(title: str, groups: dict[str, Group]) -> None:
    """Prints a line and a bar per group; of many groups only the largest."""
    from magicbyte.cli.tables import print_table

    shown = sorted(groups, key=lambda name: groups[name]["size"], reverse=True)[:_GROUPS_SHOWN]
    whole = sum(group["size"] for group in groups.values()) or 1
    rows = [
        [
            name,
            one["batches"],
            one["records"],
            one["size"],
            one["uncompressed_size"],
            "-" if one["ratio"] is None else f"{one['ratio']:.2f}",
            "#" * round(_BAR * one["size"] / whole),
        ]
        for name, one in groups.items()
        if name in shown
    ]
    print_line()
    print_table([title, "batches", "records", "bytes", "uncompressed", "ratio", "share of bytes"], rows)
    if len(groups) > len(shown):
        print_line(f"... and {len(groups) - len(shown):,} more (--json has all)")
