"""`--where`: the option, and the help that all commands with it share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["HELP", "where"]

F = TypeVar("F", bound=Callable[..., Any])

HELP = """
EXPR is a condition in DuckDB's SQL over the columns of one record at a time:

\b
offset, topic, partition
timestamp         UTC; NULL if there is none
timestampMillis   -1 if there is none
key, value        as text, with U+FFFD for bytes that are not UTF-8; NULL if absent
keyBytes, valueBytes
headers           a list of {key, value}; header(headers, 'name') is the last value of that name

\b
value LIKE '%bob@example.com%' OR headers::VARCHAR LIKE '%bob@example.com%'
TRY(value ->> '$.user.id') = '4711'
timestamp < TIMESTAMP '2024-05-01' AND header(headers, 'tenant') = 'x'
keyBytes = x'0aff'

LIKE is case-sensitive, ILIKE is not. An operation that fails for a record, such as ->> on a value that is
not JSON, ends the command with an error; TRY makes it NULL, which selects nothing. AND and OR evaluate both
sides. There are no subqueries, files or clocks, and no functions whose result could be far larger than its
arguments.
"""
"""The `epilog` of commands with `--where`."""


def where(help: str) -> Callable[[F], F]:
    """`--where EXPR`; the command gets the text as `where`."""
    return click.option("--where", metavar="EXPR", help=f"{help} See below for EXPR.")
