"""The expression of `magicbyte redact --where`: SQL over a record, evaluated by Python's own SQLite.

A record is a row of `offset`, `timestamp` (ms; -1 for none), `key`, `value` and `headers`. Keys and values
are text if they are UTF-8 without zero bytes, and blobs otherwise; absent ones are NULL. `headers` is a JSON
array of [name, value] pairs; `header(headers, name)` is the value of the last header with that name. LIKE
and GLOB also search blobs and past zero bytes, where SQLite's own would stop (`jobs/wildcards.py`). The
expression has no access to anything else: other records, files, other tables or settings.

Its resources are limited: no string may be larger than a few times the record, and a record that takes more
than `SECONDS` ends the job with an error that names it. The time is checked between function calls only: a
single call, for example of `replace` or `instr`, is not interrupted.
"""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from itertools import count
from typing import Any

from magicbyte import _core
from magicbyte.jobs.failure import JobError, RefusedError
from magicbyte.jobs.wildcards import glob, like

__all__ = ["MAX_DECOMPRESSED_BYTES", "Selected", "Where"]

MAX_DECOMPRESSED_BYTES = (1 << 30) - 1
"""The largest limit for a batch that still lets every record be passed to an expression: half of what Arrow's
arrays hold."""
SECONDS = 60.0
"""How long one record may take."""
_STEPS = 10
"""Instructions of SQLite's virtual machine between two looks at the clock."""
_TABLE = "CREATE TABLE records (offset INTEGER, timestamp INTEGER, key, value, headers TEXT)"
_COLUMNS = ["offset", "timestampMillis", "key", "value", "headers"]
_ROOM = 1 << 20
"""Bytes that a string may have in addition to twice the size of the largest field."""

Selected = list[tuple[int, list[tuple[int, int]]]]
"""The position of each batch with selected records, and the runs of selected records in it: the first and the
last index, from 0. Both in order."""
_Row = tuple[int, int, str | bytes | None, str | bytes | None, str]


class Where:
    """A valid expression: it parses, and uses nothing but its row.

    Raises:
        RefusedError: if it is not valid.

    """

    def __init__(self, expression: str) -> None:
        self._query = f"SELECT rowid FROM records WHERE ({expression}\n)"
        # An expression that closes the parenthesis itself does not parse inside two.
        in_two_parentheses = f"SELECT rowid FROM records WHERE (({expression}\n))"
        try:
            for query in (self._query, in_two_parentheses):
                with closing(_database([])) as database:
                    database.execute(query)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            raise RefusedError(f"--where: {error}") from None

    def selected(self, chunk: str, indexed: dict[str, Any], max_decompressed_bytes: int) -> Selected:
        """Selects the records of a chunk for which the expression is true.

        `indexed` is the result of the first pass, which decides what is written: everything that may be
        written must be seen here. More may be seen, such as markers that no broker could replay.
        """
        decoder = _core.ChunkDecoder(
            chunk,
            columns=[*_COLUMNS, "position"],
            batches_table=False,
            max_decompressed_bytes=max_decompressed_bytes,
        )
        selected: Selected = []
        result, position, index = indexed["result"], -1, 0
        for batch in decoder:
            rows, positions = _rows(batch)
            hits = self._hits(rows, result["path"])
            for row, batch_position in enumerate(positions):
                index = index + 1 if batch_position == position else 0
                position = batch_position
                if row in hits:
                    if not selected or selected[-1][0] != position:
                        selected.append((position, []))
                    runs = selected[-1][1]
                    if runs and runs[-1][1] == index - 1:
                        runs[-1] = (runs[-1][0], index)
                    else:
                        runs.append((index, index))
        seen = json.loads(decoder.result())
        if decoder.checksum != indexed["checksum"] or any(
            seen[name] < result[name] for name in ("good_bytes", "announced")
        ):
            raise JobError(f"{result['path']}: changed while it was read")
        return selected

    def _hits(self, rows: list[_Row], path: str) -> set[int]:
        """The indexes of the rows for which it is true."""
        try:
            return self._query_all(rows)
        except (sqlite3.Error, OverflowError):
            # One row failed. Evaluated one by one, each has its own time limit, and the error names the row.
            return {index for index, row in enumerate(rows) if self._is_hit(row, path)}

    def _is_hit(self, row: _Row, path: str) -> bool:
        try:
            return bool(self._query_all([row]))
        except (sqlite3.Error, OverflowError) as error:
            why = f"took longer than {SECONDS:.0f} s" if str(error) == "interrupted" else str(error)
            raise JobError(f"--where: {path}, the record with offset {row[0]}: {why}") from None

    def _query_all(self, rows: list[_Row]) -> set[int]:
        with closing(_database(rows)) as database:
            return {rowid - 1 for (rowid,) in database.execute(self._query)}


def _database(rows: list[_Row]) -> sqlite3.Connection:
    """A database of these rows, without access to anything else."""
    database = sqlite3.connect(":memory:")
    try:
        database.execute(_TABLE)
        database.create_function("header", 2, _header, deterministic=True)
        database.create_function("like", 2, like, deterministic=True)
        database.create_function("like", 3, like, deterministic=True)
        database.create_function("glob", 2, glob, deterministic=True)
        database.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", rows)
        largest = max((_size(field) for row in rows for field in row[2:]), default=0)
        limit = min(2 * largest + _ROOM, database.getlimit(sqlite3.SQLITE_LIMIT_LENGTH))
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limit)
        _guard(database)
    except BaseException:
        database.close()
        raise
    return database


def _size(field: str | bytes | int | None) -> int:
    """An upper bound of the field's bytes."""
    if isinstance(field, str):
        return len(field) if field.isascii() else 4 * len(field)
    return len(field) if isinstance(field, bytes) else 0


def _guard(database: sqlite3.Connection) -> None:
    def authorize(action: int, *names: str | None) -> int:
        # The first SELECT is the query itself; a second one would be a subquery.
        harmless = (
            (action == sqlite3.SQLITE_SELECT and next(selects) == 0)
            or (action == sqlite3.SQLITE_READ and names[0] == "records")
            or (action == sqlite3.SQLITE_FUNCTION and names[1] != "load_extension")
        )
        return sqlite3.SQLITE_OK if harmless else sqlite3.SQLITE_DENY

    selects = count()
    deadline = time.monotonic() + SECONDS
    database.set_authorizer(authorize)
    database.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)


def _rows(batch: object) -> tuple[list[_Row], list[int]]:
    """The records as rows, and the position of each record's batch."""
    import pyarrow as pa

    columns = pa.record_batch(batch).to_pydict()
    rows = []
    for offset, timestamp, key, value, headers in zip(*(columns[name] for name in _COLUMNS), strict=True):
        pairs = [[header["key"], _json_text(header["value"])] for header in headers or ()]
        rows.append((offset, timestamp, _text(key), _text(value), json.dumps(pairs, ensure_ascii=False)))
    return rows, columns["position"]


def _text(data: bytes | None) -> str | bytes | None:
    """Bytes as text if they are UTF-8 without zero bytes, at which SQLite's text would end."""
    if data is None or 0 in data:
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _json_text(data: bytes | None) -> str | None:
    """Bytes as text for JSON, which has no blobs: hexadecimal if they are not text."""
    text = _text(data)
    return text.hex() if isinstance(text, bytes) else text


def _header(headers: str, name: str) -> str | None:
    values = [value for key, value in json.loads(headers) if key == name]
    return values[-1] if values else None
