"""Batches whose values name schemas that are rare in their topic and common in another."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte import _core
from magicbyte.jobs.auditing.headers import HeaderTable
from magicbyte.jobs.orphans.named_schemas import NamedSchemas, SchemaName
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.plan import Planned, Task, task_name, tasks_of
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.run.reading import ReadOptions, Rows, read_chunk

__all__ = ["find_foreign_schemas"]

_RARE = 0.01
"""The part of a topic's values that may name a schema of another topic."""
_COMMON = 0.1
"""The part of the other topic's values that name it."""
_COLUMNS = ("value", "headers", "position")

_FOREIGN = f"""
INSERT INTO findings
WITH counts AS (
    SELECT topic, name, sum(rows) AS values FROM schema_uses GROUP BY topic, name
), of_topic AS (
    SELECT topic, name, values / sum(values) OVER (PARTITION BY topic) AS share FROM counts
), foreign_names AS (
    SELECT own.topic, own.name FROM of_topic own JOIN of_topic other USING (name)
    WHERE own.topic <> other.topic AND own.share <= {_RARE} AND other.share >= {_COMMON} GROUP BY ALL
)
SELECT 2, -1, 'schema_of_other_topic', topic, log, segment, position, size, baseOffset, lastOffset, count,
    maxTimestamp, producerId, producerEpoch, baseSequence, NULL, NULL, NULL, NULL, NULL, NULL
FROM headers JOIN (
    SELECT segment, position FROM schema_uses uses
    SEMI JOIN foreign_names USING (topic, name) GROUP BY ALL
) USING (segment, position)
"""


def find_foreign_schemas(
    headers: HeaderTable,
    plans: Sequence[Planned],
    engine: LocalEngine,
    max_decompressed_bytes: int,
    progress: Progress = NO_PROGRESS,
) -> None:
    """Decodes all records, and adds the batches with such values to `findings`, as possibly misrouted."""
    headers.database.execute(
        "CREATE TABLE schema_uses"
        " (topic INTEGER, segment INTEGER, position BIGINT, name VARCHAR, rows BIGINT)"
    )
    segments = {segment["path"]: number for number, segment in enumerate(headers.segments)}
    topics = {topic: number for number, topic in enumerate(headers.topics)}
    options = ReadOptions(
        _COLUMNS, max_decompressed_bytes=min(max_decompressed_bytes, _core.MAX_COLUMN_PAYLOAD)
    )

    def count(task: Task) -> None:
        for text in task.chunks:
            chunk = json.loads(text)
            place = topics[chunk["topic"]], segments[chunk["path"]]
            for item in read_chunk(text, options):
                if isinstance(item, Rows) and item.table == "records":
                    _add_uses(headers, place, item.batch)

    tasks = tasks_of(plans, engine.parallelism)
    engine.map(
        count,
        tasks,
        name=task_name("schemas", tasks),
        sizes=[task.size for task in tasks],
        progress=progress,
    )
    headers.database.execute(_FOREIGN)


def _add_uses(headers: HeaderTable, place: tuple[int, int], batch: pa.RecordBatch) -> None:
    """Adds the names of schemas in each batch of the log, of which this is one or several."""
    runs = pc.run_end_encode(batch.column("position"), run_end_type=pa.int64())
    uses: list[tuple[int, str, int]] = []
    start = 0
    for position, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        counts = NamedSchemas(batch.slice(start, end - start), "value").counts
        uses += [(position, _text(name), rows) for name, rows in counts.items()]
        start = end
    if not uses:
        return
    positions, names, rows = zip(*uses, strict=True)
    topic, segment = (pa.repeat(pa.scalar(number, pa.int32()), len(uses)) for number in place)
    table = pa.table(
        {
            "topic": topic,
            "segment": segment,
            "position": pa.array(positions, pa.int64()),
            "name": pa.array(names, pa.string()),
            "rows": pa.array(rows, pa.int64()),
        }
    )
    with headers.database.cursor() as cursor:
        cursor.register("found", table)
        cursor.execute("INSERT INTO schema_uses SELECT * FROM found")


def _text(name: SchemaName) -> str:
    return name.schema.hex() if isinstance(name.schema, bytes) else str(name.schema)
