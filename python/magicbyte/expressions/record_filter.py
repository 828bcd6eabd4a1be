"""An expression that selects records, evaluated by DuckDB for an Arrow batch at a time."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

import pyarrow as pa

from magicbyte.expressions.columns import COLUMNS, columns_for, empty_rows, record_columns
from magicbyte.expressions.database import connect
from magicbyte.expressions.errors import EvaluationError, ExpressionError
from magicbyte.expressions.grammar import accept

if TYPE_CHECKING:
    import duckdb

__all__ = ["SECONDS", "RecordFilter"]

SECONDS = 60.0
"""The time limit for the records of one Arrow batch."""
_AGAIN = 0.05
_MOST_SHOWN = 300


class RecordFilter:
    """The records for which an expression is true.

    It can be pickled, and used by several threads: each thread has its own database.

    Args:
        expression: SQL over the columns that `magicbyte.expressions.columns` describes.

    Raises:
        ExpressionError: if the expression is not valid.
        ModuleNotFoundError: if duckdb is missing.

    """

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._local = threading.local()
        self._query, used = accept(expression, tuple(COLUMNS), self._database())
        self.columns = record_columns(used)
        """The columns of `records` that `mask` needs."""
        # An expression without columns still needs as many rows as there are records.
        self._names = used or ("offset",)
        import duckdb

        try:
            self._evaluate(empty_rows(self._names))
        except duckdb.Error as error:
            raise ExpressionError(_message(error)) from None

    def __reduce__(self) -> tuple[type[RecordFilter], tuple[str]]:
        return RecordFilter, (self._expression,)

    def __repr__(self) -> str:
        # Without the expression, which may be confidential.
        return f"<RecordFilter over {', '.join(self.columns)}>"

    def mask(self, batch: pa.RecordBatch, place: str) -> pa.BooleanArray:
        """Booleans that say for which records the expression is true; NULL counts as false.

        Args:
            batch: rows of the table `records`, with at least `columns`.
            place: the partition, for errors.

        Raises:
            EvaluationError: if it fails for a record, or takes longer than `SECONDS`.

        """
        import duckdb

        rows = columns_for(batch, self._names)
        try:
            return self._evaluate(rows)
        except duckdb.InterruptException:
            first, last = batch.column("offset")[0], batch.column("offset")[-1]
            why = f"took longer than {SECONDS:.0f} s"
            raise EvaluationError(f"{place}, the records with offsets {first} to {last}: {why}") from None
        except duckdb.Error as error:
            row, error = self._first_failure(rows, error)
            at = f"{place}, the record with offset {batch.column('offset')[row]}"
            raise EvaluationError(f"{at}: {_without_content(error)}") from None

    def _first_failure(self, rows: pa.RecordBatch, error: duckdb.Error) -> tuple[int, duckdb.Error]:
        """The first row that fails, given that there is one, and its error."""
        import duckdb

        start = 0
        while rows.num_rows > 1:
            half = rows.slice(0, rows.num_rows // 2)
            try:
                self._evaluate(half)
            except duckdb.Error as earlier:
                rows, error = half, earlier
            else:
                start += half.num_rows
                rows = rows.slice(half.num_rows)
        return start, error

    def _evaluate(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        database = self._database()
        done = threading.Event()
        clock = threading.Thread(target=_interrupt, args=(database, done), daemon=True)
        clock.start()
        try:
            database.register("records", rows)
            selected = database.sql(self._query).to_arrow_table().column(0).combine_chunks()
        finally:
            done.set()
            clock.join()
            database.unregister("records")
        return selected

    def _database(self) -> duckdb.DuckDBPyConnection:
        if not hasattr(self._local, "database"):
            self._local.database = connect()
        database: duckdb.DuckDBPyConnection = self._local.database
        return database


def _interrupt(database: duckdb.DuckDBPyConnection, done: threading.Event) -> None:
    """Interrupts a slow query repeatedly, because DuckDB forgets an interrupt that comes before a query."""
    if not done.wait(SECONDS):
        database.interrupt()
        while not done.wait(_AGAIN):
            database.interrupt()


def _message(error: duckdb.Error) -> str:
    """DuckDB's message without an excerpt of the query, and without similar functions."""
    return str(error).partition("\n")[0]


def _without_content(error: duckdb.Error) -> str:
    """DuckDB's message up to what it quotes, which can be a whole record, and without numbers."""
    text, quote, _ = re.split(r"(['\"])", f"{error}'", maxsplit=1)[:3]
    text = re.sub(r"\b\d[\d.]*\b", "...", text.partition("\n")[0][:_MOST_SHOWN])
    return text + "..." if quote in str(error) else text
