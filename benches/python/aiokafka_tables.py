"""A log as a pyarrow table, built with aiokafka's loop."""

import pyarrow as pa
from aiokafka_loops import batches

NAME = "aiokafka into pyarrow"


def all_columns(data: bytes) -> pa.Table:
    """The columns that every reader of a log can give."""
    offsets, timestamps, keys, values = [], [], [], []
    for batch in batches(data):
        for record in batch:
            offsets.append(record.offset)
            timestamps.append(record.timestamp)
            keys.append(record.key)
            values.append(record.value)
    columns = [pa.array(offsets), pa.array(timestamps), pa.array(keys), pa.array(values)]
    return pa.table(columns, names=["offset", "timestamp", "key", "value"])


def values_only(data: bytes) -> pa.Table:
    """Only the column that the query needs, as one would write it by hand."""
    return pa.table({"value": pa.array([record.value for batch in batches(data) for record in batch])})
