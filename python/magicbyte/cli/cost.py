"""`magicbyte cost`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from magicbyte.cli import engines, options, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.terminal import print_line
from magicbyte.jobs.choice import PartitionChoice

if TYPE_CHECKING:
    from magicbyte.lab import Cost, CostReport, FieldBytes, Format

__all__ = ["cost"]


@click.command(short_help="Show what the bytes are for, field by field and format by format.")
@partition_choice.sources
@partition_choice.options()
@engines.options
@options.max_decompressed_bytes
@options.as_json
def cost(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    engine: EngineChoice,
    max_decompressed_bytes: int,
    as_json: bool,
) -> int:
    """Show what the bytes of the partitions at and below SRC are for.

    The first table has the bytes of each field, with records decompressed, as they are in the log and as the
    same batches would have them in each format: magic 0 and 1 (messages; headers are lost there), magic 2,
    and KIP-931, a discarded draft of magic 3 (records without attributes, varints in batch headers). The
    second table has each topic's share of bytes other than keys, values and headers.

    The bytes are exact, but do not show how well a format would compress. A message of magic 0 or 1 that is
    not compressed counts as its own batch in magic 2, as `convert` writes it without --rebatch.

    \b
    magicbyte cost /backup/kafka-logs
    magicbyte cost --topic 'clicks-*' /backup/kafka-logs
    magicbyte cost --json /backup/kafka-logs | jq '.topics[] | .decompressed.records.header_keys'
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import inputs, reports, tables
    from magicbyte.jobs.cost import cost as cost_job
    from magicbyte.jobs.progress import terminal_progress

    with engine.open("magicbyte cost") as runner:
        report = cost_job(
            sources,
            runner,
            max_decompressed_bytes=max_decompressed_bytes,
            choice=choice,
            progress=terminal_progress(),
        )
    if as_json:
        reports.print_json(report)
    else:
        total = report["total"]
        tables.print_table(["field", "bytes", "share", "per record", *_FORMATS.values()], _rows(total))
        print_line()
        rows = [_topic_row(topic, one) for topic, one in report["topics"].items()]
        tables.print_table(["topic", *_TOPIC_COLUMNS], [*rows, _topic_row("total", total)])
        reports.print_problems(report["problems"], report["problems_left_out"])
        inputs.print_skipped(report["skipped"])
    return reports.exit_code(balanced=report["balanced"], problems=report["account"]["problems"])


_FORMATS: dict[Format, str] = {
    "magic_0": "magic 0",
    "magic_1": "magic 1",
    "magic_2": "magic 2",
    "kip_931": "KIP-931",
}
_TOPIC_COLUMNS = (
    "records",
    "batches",
    "records per batch",
    "stored",
    "decompressed",
    "overhead",
    "overhead per record",
)
_CONTENT = ("keys", "values", "header_keys", "header_values")


def _total(fields: FieldBytes) -> int:
    return sum(value for value in fields.values() if isinstance(value, int))


def _rows(report: CostReport) -> list[list[Any]]:
    """Batch headers in one row, then the fields of records, then all of it."""
    costs: list[Cost] = [report["decompressed"], *(report["formats"][name] for name in _FORMATS)]
    rows = [_row("batch headers", [_total(one["batches"]) for one in costs], report)]
    for name in costs[0]["records"]:
        values = [one["records"][name] for one in costs]  # type: ignore[literal-required]
        if any(values):
            rows.append(_row(name.replace("_", " "), values, report))
    sums = [_total(one["batches"]) + _total(one["records"]) for one in costs]
    return [*rows, _row("total", sums, report)]


def _row(name: str, values: list[int], report: CostReport) -> list[Any]:
    stored, *others = values
    whole = _total(report["decompressed"]["batches"]) + _total(report["decompressed"]["records"])
    share = f"{100 * stored / whole:.1f}%" if whole else "-"
    return [name, stored, share, _each(stored, report["records"]), *others]


def _topic_row(name: str, report: CostReport) -> list[Any]:
    cost = report["decompressed"]
    whole = _total(cost["batches"]) + _total(cost["records"])
    overhead = whole - sum(cost["records"][field] for field in _CONTENT)  # type: ignore[literal-required]
    return [
        name,
        report["records"],
        report["batches"],
        _each(report["records"], report["batches"]),
        report["stored"],
        whole,
        f"{100 * overhead / whole:.1f}%" if whole else "-",
        _each(overhead, report["records"]),
    ]


def _each(amount: int, count: int) -> str:
    return f"{amount / count:,.1f}" if count else "-"
