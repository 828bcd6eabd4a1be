"""The rows of a partition for which a Polars predicate can be true.

Nothing depends on the result being tight: Polars evaluates the whole predicate for every row that is read. So
an expression that is not understood here is one that can be true everywhere.
"""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import polars as pl

from magicbyte.open_partition import LOG_END
from magicbyte.table_options import EVERYTHING, Ranges

__all__ = ["Predicate"]

_FLIPPED = {"Gt": "Lt", "GtEq": "LtEq", "Lt": "Gt", "LtEq": "GtEq", "Eq": "Eq"}
_ROW_BY_ROW = {
    "IsBetween",
    "IsIn",
    "IsNotNull",
    "IsNull",
    "Not",
    "Contains",
    "EndsWith",
    "StartsWith",
    "Strptime",
}
"""Functions whose result for a row depends on nothing else. Others may be random, or aggregate."""
_OF_PARTITION = {"topic", "partition"}

Span = tuple[int | None, int | None]
"""A first value and an end (exclusive)."""


class Predicate:
    """A predicate over the columns of a log.

    Args:
        expression: as Polars gives it to a source.

    """

    def __init__(self, expression: pl.Expr) -> None:
        try:
            self._tree = json.loads(expression.meta.serialize(format="json"))
        except RecursionError:
            self._tree = None

    def ranges(self, topic: str, partition: int) -> Ranges | None:
        """The ranges outside of which no row of the partition is selected; None if none is selected."""
        row = pl.DataFrame(
            {"topic": [topic], "partition": [partition]}, schema_overrides={"partition": pl.Int32}
        )
        try:
            return _ranges(self._tree, row)
        except RecursionError:
            return EVERYTHING


def _ranges(node: Any, row: pl.DataFrame) -> Ranges | None:
    columns = _columns(node)
    if columns is not None and columns <= _OF_PARTITION:
        selected = _evaluated(node, row)
        return EVERYTHING if selected is None or len(selected) != 1 or selected.item() else None
    match node:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            return _both(_ranges(left, row), _ranges(right, row))
        case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
            return _either(_ranges(left, row), _ranges(right, row))
        case {"Ternary": {"truthy": truthy, "falsy": falsy}}:
            return _either(_ranges(truthy, row), _ranges(falsy, row))
        case {"BinaryExpr": {"left": left, "op": op, "right": right}} if op in _FLIPPED:
            if _columns(left) == set():
                left, op, right = right, _FLIPPED[op], left
            return _compared(_column(left), op, right)
        case {"Function": {"input": [column, low, high], "function": {"Boolean": {"IsBetween": options}}}}:
            above = "GtEq" if options["closed"] in ("Both", "Left") else "Gt"
            below = "LtEq" if options["closed"] in ("Both", "Right") else "Lt"
            of = _column(column)
            return _both(_compared(of, above, low), _compared(of, below, high))
        case {"Function": {"input": [{"Column": "offset"}, values], "function": {"Boolean": {"IsIn": _}}}}:
            return _among(values)
    return EVERYTHING


def _columns(node: Any) -> set[str] | None:
    """The columns of an expression that can be evaluated for each row alone; None of any other."""
    match node:
        case {"Column": str(name)}:
            return {name}
        case {"Literal": _}:
            return set()
        case {"Cast": {"expr": inner}}:
            return _columns(inner)
        case {"Ternary": {"predicate": condition, "truthy": truthy, "falsy": falsy}}:
            return _union([condition, truthy, falsy])
        case {"BinaryExpr": {"left": left, "right": right}}:
            return _union([left, right])
        case {"Function": {"input": list(inputs), "function": dict(function)}} if (
            _name(function) in _ROW_BY_ROW
        ):
            return _union(inputs)
    return None


def _union(nodes: list[Any]) -> set[str] | None:
    together: set[str] = set()
    for node in nodes:
        columns = _columns(node)
        if columns is None:
            return None
        together |= columns
    return together


def _name(function: dict[str, Any]) -> str | None:
    """The name of a function: `{"Boolean": "Not"}`, or `{"Boolean": {"IsIn": {...}}}` with options."""
    match list(function.values()):
        case [str(name)]:
            return name
        case [dict(options)] if len(options) == 1:
            return str(next(iter(options)))
    return None


def _evaluated(node: Any, row: pl.DataFrame) -> pl.Series | None:
    """The values of an expression for a row, by Polars itself; None if it has none."""
    try:
        expression = pl.Expr.deserialize(BytesIO(json.dumps(node).encode()), format="json")
        return row.select(expression).to_series()
    except pl.exceptions.PolarsError:
        return None


def _constant(node: Any) -> pl.Series | None:
    """The values of an expression without columns."""
    return _evaluated(node, pl.DataFrame({"": [0]})) if _columns(node) == set() else None


def _column(node: Any) -> tuple[str, pl.DataType] | None:
    """A column with a range, and the type in which it is compared: DuckDB's timestamps are microseconds."""
    match node:
        case {"Column": "offset" | "timestampMillis" as name}:
            return name, pl.Int64()
        case {"Column": "timestamp"}:
            return "timestamp", pl.Datetime("ms", "UTC")
        case {
            "Function": {
                "input": [{"Column": "timestamp"}],
                "function": {"TemporalExpr": {"CastTimeUnit": "Microseconds"}},
            }
        }:
            return "timestamp", pl.Datetime("us", "UTC")
    return None


def _compared(column: tuple[str, pl.DataType] | None, op: str, constant: Any) -> Ranges | None:
    """The range of a column that is compared with a constant of its type."""
    values = None if column is None else _constant(constant)
    if column is None or values is None or len(values) != 1 or values.null_count():
        return EVERYTHING
    name, type = column
    if not (values.dtype == type or (type == pl.Int64 and values.dtype.is_integer())):
        return EVERYTHING
    value = int(values.to_physical().item())
    start = {"Gt": value + 1, "GtEq": value, "Eq": value}.get(op)
    end = {"Lt": value, "LtEq": value + 1, "Eq": value + 1}.get(op)
    return _range(name, start, end, units=1000 if type == pl.Datetime("us", "UTC") else 1)


def _among(values: Any) -> Ranges | None:
    """The range of the offsets in a list."""
    offsets = _constant(values)
    if offsets is not None and offsets.dtype == pl.List:
        offsets = offsets.explode()
    if offsets is None or not offsets.dtype.is_integer() or offsets.count() == 0:
        return EVERYTHING
    return _range("offset", int(offsets.min()), int(offsets.max()) + 1)  # type: ignore[arg-type]


def _range(name: str, start: int | None, end: int | None, *, units: int = 1) -> Ranges | None:
    """The range of a column from `start` to `end` (exclusive); a unit of the column has `units` of theirs."""
    start, end = (None if limit is None else -(-limit // units) for limit in (start, end))
    # The core takes numbers of 64 bits.
    if start is not None and start > LOG_END:
        return None
    end = None if end is not None and end > LOG_END else end
    return Ranges(start, end) if name == "offset" else Ranges(None, None, start, end)


def _both(one: Ranges | None, other: Ranges | None) -> Ranges | None:
    if one is None or other is None:
        return None
    starts, ends = [], []
    for (start, end), (start_2, end_2) in zip(_spans(one), _spans(other), strict=True):
        starts.append(max((x for x in (start, start_2) if x is not None), default=None))
        ends.append(min((x for x in (end, end_2) if x is not None), default=None))
    if any(s is not None and e is not None and s >= e for s, e in zip(starts, ends, strict=True)):
        return None
    return Ranges(starts[0], ends[0], starts[1], ends[1])


def _either(one: Ranges | None, other: Ranges | None) -> Ranges | None:
    if one is None or other is None:
        return one or other
    starts, ends = [], []
    for (start, end), (start_2, end_2) in zip(_spans(one), _spans(other), strict=True):
        starts.append(None if start is None or start_2 is None else min(start, start_2))
        ends.append(None if end is None or end_2 is None else max(end, end_2))
    return Ranges(starts[0], ends[0], starts[1], ends[1])


def _spans(ranges: Ranges) -> list[Span]:
    return [(ranges[0], ranges[1]), (ranges[2], ranges[3])]  # type: ignore[list-item]
