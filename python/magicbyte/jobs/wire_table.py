"""The exchanges of a capture as a table."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from magicbyte.errors import Error, RefusedError
from magicbyte.jobs.find.outputs import UNFINISHED
from magicbyte.wire import Exchange, Exchanges

__all__ = ["SCHEMA", "write_parquet"]

_TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        pa.field("connection", pa.int64(), nullable=False),
        ("client", pa.string()),
        ("server", pa.string()),
        ("clientId", pa.string()),
        ("api", pa.string()),
        ("apiKey", pa.int16()),
        ("apiVersion", pa.int16()),
        ("correlationId", pa.int32()),
        pa.field("isSaslToken", pa.bool_(), nullable=False),
        ("requestTime", _TIME),
        ("responseTime", _TIME),
        ("latency", pa.duration("us")),
        ("requestBytes", pa.int64()),
        ("responseBytes", pa.int64()),
        ("topics", pa.list_(pa.string())),
        ("errors", pa.list_(pa.string())),
        ("problem", pa.string()),
    ]
)
"""A row for each exchange; topics and errors are null, and there is a problem, if it cannot be decoded."""

_ROWS = 10_000
_BYTES = 16 << 20
"""The limit for the bytes of frames whose rows are written together: these include the topics' names."""


def write_parquet(exchanges: Exchanges, path: str) -> int:
    """Writes the exchanges to a file, which appears when it is complete. Returns how many cannot be decoded.

    Memory: 10,000 rows, or the names in 16 MiB of frames.

    Raises:
        RefusedError: if the file exists.
        OSError: if it cannot be written.

    """
    if os.path.lexists(path):
        raise RefusedError(f"{path} exists")
    unfinished = path + UNFINISHED
    undecoded = 0
    try:
        with pq.ParquetWriter(unfinished, SCHEMA, compression="zstd") as writer:
            rows: list[dict[str, Any]] = []
            size = 0
            for exchange in exchanges:
                row = _row(exchange)
                undecoded += row["problem"] is not None
                rows.append(row)
                size += (row["requestBytes"] or 0) + (row["responseBytes"] or 0)
                if len(rows) == _ROWS or size > _BYTES:
                    writer.write_batch(pa.RecordBatch.from_pylist(rows, SCHEMA))
                    rows.clear()
                    size = 0
            writer.write_batch(pa.RecordBatch.from_pylist(rows, SCHEMA))
        os.replace(unfinished, path)
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
    return undecoded


def _row(one: Exchange) -> dict[str, Any]:
    decoded: dict[str, Any] = {"clientId": None, "topics": None, "errors": None, "problem": None}
    try:
        decoded["clientId"] = one.client_id
        decoded |= {"topics": one.topics, "errors": one.errors}
    except Error as error:
        decoded["problem"] = str(error)
    return {
        "connection": one.connection,
        "client": one.client,
        "server": one.server,
        "api": one.api,
        "apiKey": one.api_key,
        "apiVersion": one.api_version,
        "correlationId": one.correlation_id,
        "isSaslToken": one.is_sasl_token,
        "requestTime": one.request_time,
        "responseTime": one.response_time,
        "latency": one.latency,
        "requestBytes": None if one.request_frame is None else len(one.request_frame),
        "responseBytes": None if one.response_frame is None else len(one.response_frame),
        **{name: _text(value) for name, value in decoded.items()},
    }


def _text(value: Any) -> Any:
    """Replaces surrogate escapes, which stand for bytes that are not UTF-8: Arrow does not accept them."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return [_text(one) for one in value] if isinstance(value, list) else value
