"""The expression of `magicbyte redact --where`: SQL over a record, answered by the standard library's SQLite.

A record is a row of `offset`, `timestamp` (ms; -1 for none), `key`, `value` and `headers`. Keys and values
that are UTF-8 are text, others blobs, absent ones NULL. `headers` is a JSON array of [name, value] pairs;
`header(headers, name)` is the value of the last header of that name. The expression sees nothing else: no
files, no other table, no setting can be reached from it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from magicbyte import _core
from magicbyte.jobs.failure import JobError, RefusedError

__all__ = ["Where"]

_TABLE = "CREATE TABLE records (offset INTEGER, timestamp INTEGER, key, value, headers TEXT)"
_COLUMNS = ["offset", "timestampMillis", "key", "value", "headers"]


class Where:
    """An expression that was tried: it parses, and stays inside its row.

    Raises:
        RefusedError: it does not.

    """

    def __init__(self, expression: str) -> None:
        self._query = f"SELECT offset FROM records WHERE ({expression}\n)"
        try:
            _guard(_database()).execute(self._query)
        except sqlite3.Error as error:
            raise RefusedError(f"--where: {error}") from None

    def offsets(self, chunk: str, result: dict[str, Any], max_decompressed_bytes: int) -> list[int]:
        """The offsets of a chunk's records for which the expression is true.

        `result` is what another pass found in the chunk: the records must be the same.
        """
        decoder = _core.ChunkDecoder(
            chunk,
            columns=_COLUMNS,
            batches_table=False,
            max_decompressed_bytes=max_decompressed_bytes,
        )
        found: list[int] = []
        for batch in decoder:
            database = _database()
            database.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", _rows(batch))
            try:
                found += [offset for (offset,) in _guard(database).execute(self._query)]
            except sqlite3.Error as error:
                raise JobError(f"--where: {error}") from None
            finally:
                database.close()
        seen = json.loads(decoder.result())
        for name in ("good_bytes", "announced"):
            if seen[name] != result[name]:
                raise JobError(f"{result['path']}: changed while it was read, or is read in two ways")
        return found


def _database() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute(_TABLE)
    database.create_function("header", 2, _header, deterministic=True)
    return database


def _guard(database: sqlite3.Connection) -> sqlite3.Connection:
    def authorize(action: int, *names: str | None) -> int:
        harmless = (
            action == sqlite3.SQLITE_SELECT
            or (action == sqlite3.SQLITE_READ and names[0] == "records")
            or (action == sqlite3.SQLITE_FUNCTION and names[1] != "load_extension")
        )
        return sqlite3.SQLITE_OK if harmless else sqlite3.SQLITE_DENY

    database.set_authorizer(authorize)
    return database


def _rows(batch: object) -> Iterator[tuple[int, int, str | bytes | None, str | bytes | None, str]]:
    import pyarrow as pa

    columns = pa.record_batch(batch).to_pydict()
    for offset, timestamp, key, value, headers in zip(*(columns[name] for name in _COLUMNS), strict=True):
        pairs = [[header["key"], _shown(header["value"])] for header in headers or ()]
        yield offset, timestamp, _text(key), _text(value), json.dumps(pairs, ensure_ascii=False)


def _text(data: bytes | None) -> str | bytes | None:
    """Bytes as text where they are."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _shown(data: bytes | None) -> str | None:
    """As text for JSON, which has no blobs: what is no UTF-8 in hex."""
    text = _text(data)
    return text.hex() if isinstance(text, bytes) else text


def _header(headers: str, name: str) -> str | None:
    values = [value for key, value in json.loads(headers) if key == name]
    return values[-1] if values else None
