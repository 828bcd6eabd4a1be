"""The rows of a partition for which a Polars predicate can be true.

Nothing depends on the result being tight: Polars evaluates the whole predicate for every row that is read. So
an expression that is not understood here is one that can be true everywhere.
"""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import polars as pl

from magicbyte.table import LOG_END
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
    if columns is not None and columns and columns <= _OF_PARTITION:
        chosen = _evaluated(node, row)
        return EVERYTHING if chosen is None or chosen.item() else None
    match node:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            return _both(_ranges(left, row), _ranges(right, row))
        case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
            return _either(_ranges(left, row), _ranges(right, row))
        case {"BinaryExpr": {"left": {"Column": name}, "op": op, "right": value}} if op in _FLIPPED:
            return _of_column(name, _compared(op, _number(name, value)))
        case {"BinaryExpr": {"left": value, "op": op, "right": {"Column": name}}} if op in _FLIPPED:
            return _of_column(name, _compared(_FLIPPED[op], _number(name, value)))
        case {
            "Function": {
                "input": [{"Column": name}, low, high],
                "function": {"Boolean": {"IsBetween": {"closed": closed}}},
            }
        }:
            above = "GtEq" if closed in ("Both", "Left") else "Gt"
            below = "LtEq" if closed in ("Both", "Right") else "Lt"
            return _both(
                _of_column(name, _compared(above, _number(name, low))),
                _of_column(name, _compared(below, _number(name, high))),
            )
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
    """The value of an expression for a row, by Polars itself; None if there is not one value."""
    try:
        expression = pl.Expr.deserialize(BytesIO(json.dumps(node).encode()), format="json")
        values = row.select(expression).to_series()
    except pl.exceptions.PolarsError:
        return None
    return values if len(values) == 1 else None


def _number(name: str, node: Any) -> int | None:
    """The number that a column of a log is compared with: an offset, or milliseconds."""
    if _columns(node) != set():
        return None
    value = _evaluated(node, pl.DataFrame({"": [0]}))
    if value is None or value.item() is None:
        return None
    if name == "timestamp":
        return int(value.to_physical().item()) if _is_in_ms(value.dtype) else None
    return int(value.item()) if value.dtype.is_integer() else None


def _is_in_ms(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.Datetime) and dtype.time_unit == "ms"


def _compared(op: str, value: int | None) -> Span:
    if value is None:
        return None, None
    start = {"Gt": value + 1, "GtEq": value, "Eq": value}.get(op)
    end = {"Lt": value, "LtEq": value + 1, "Eq": value + 1}.get(op)
    return start, end


def _of_column(name: str, span: Span) -> Ranges | None:
    start, end = span
    # The core takes numbers of 64 bits.
    if start is not None and start > LOG_END:
        return None
    end = None if end is not None and end > LOG_END else end
    if name == "offset":
        return Ranges(start_offset=start, end_offset=end)
    if name in ("timestamp", "timestampMillis"):
        return Ranges(start_timestamp=start, end_timestamp=end)
    return EVERYTHING


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
