"""The output of `magicbyte stats --fields`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from magicbyte.cli.inputs import print_skipped
from magicbyte.cli.reports import print_problems
from magicbyte.cli.tables import print_table
from magicbyte.cli.terminal import print_line

if TYPE_CHECKING:
    from magicbyte.jobs.field_costs import FieldCosts
    from magicbyte.lab import Cost, CostReport, FieldBytes, Format

__all__ = ["print_field_costs"]


def print_field_costs(report: FieldCosts) -> None:
    """Prints a table of the fields, and one of the topics."""
    total = report["total"]
    print_table(["field", "bytes", "share", "per record", *_FORMATS.values()], _rows(total))
    print_line()
    rows = [_topic_row(topic, one) for topic, one in report["topics"].items()]
    print_table(["topic", *_TOPIC_COLUMNS], [*rows, _topic_row("total", total)])
    print_problems(report["problems"], report["problems_left_out"])
    print_skipped(report["skipped"])


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
    rows = [_row("batch headers", [_total(cost["batches"]) for cost in costs], report)]
    for name in costs[0]["records"]:
        values = [cost["records"][name] for cost in costs]  # type: ignore[literal-required]
        if any(values):
            rows.append(_row(name.replace("_", " "), values, report))
    sums = [_total(cost["batches"]) + _total(cost["records"]) for cost in costs]
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
