"""The expression of `magicbyte redact --where`: SQL over a record, answered by the standard library's SQLite.

A record is a row of `offset`, `timestamp` (ms; -1 for none), `key`, `value` and `headers`. Keys and values
that are UTF-8 without zero bytes are text, others blobs, absent ones NULL. `headers` is a JSON array of
[name, value] pairs; `header(headers, name)` is the value of the last header of that name. LIKE and GLOB
look through blobs and behind zero bytes, where SQLite's own would stop. The expression sees nothing else:
no files, no other table, no setting can be reached from it.
"""

from __future__ import annotations

import fnmatch
import json
import re
import sqlite3
from collections.abc import Iterator
from functools import lru_cache
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

        `result` is what the pass found that decides what is written: nothing may be written that was not
        seen here. More may be seen: a marker that no broker could replay is not written.
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
            if seen[name] < result[name]:
                raise JobError(f"{result['path']}: changed while it was read")
        return found


def _database() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute(_TABLE)
    database.create_function("header", 2, _header, deterministic=True)
    database.create_function("like", 2, _like, deterministic=True)
    database.create_function("like", 3, _like, deterministic=True)
    database.create_function("glob", 2, _glob, deterministic=True)
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
    """Bytes as text where they are; SQLite's text ends at a zero byte."""
    if data is None or 0 in data:
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _like(pattern: Any, value: Any, escape: str | None = None) -> bool | None:
    if pattern is None or value is None:
        return None
    return _of_like(_searched(pattern), escape).fullmatch(_searched(value)) is not None


def _glob(pattern: Any, value: Any) -> bool | None:
    if pattern is None or value is None:
        return None
    return _of_glob(_searched(pattern)).fullmatch(_searched(value)) is not None


@lru_cache
def _of_like(pattern: str, escape: str | None) -> re.Pattern[str]:
    """`%` is any text, `_` a character; ASCII letters in upper and lower case are the same."""
    out, characters = "", iter(pattern)
    for one in characters:
        if one == escape:
            out += re.escape(next(characters, ""))
        else:
            out += {"%": ".*", "_": "."}.get(one) or re.escape(one)
    return re.compile(out, re.DOTALL | re.IGNORECASE | (re.ASCII if pattern.isascii() else re.NOFLAG))


@lru_cache
def _of_glob(pattern: str) -> re.Pattern[str]:
    # SQLite negates a set by ^, the shell by !.
    return re.compile(fnmatch.translate(pattern.replace("[^", "[!")))


def _searched(value: Any) -> str:
    """As text in which any bytes can be found."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _shown(data: bytes | None) -> str | None:
    """As text for JSON, which has no blobs: what is no UTF-8 in hex."""
    text = _text(data)
    return text.hex() if isinstance(text, bytes) else text


def _header(headers: str, name: str) -> str | None:
    values = [value for key, value in json.loads(headers) if key == name]
    return values[-1] if values else None
