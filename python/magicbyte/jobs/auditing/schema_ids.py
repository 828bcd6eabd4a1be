"""Batches whose values name schemas of another topic: by a registry's subjects, or by their shares."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import cast
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte import _core
from magicbyte.jobs.auditing.headers import HeaderTable
from magicbyte.jobs.auditing.verdicts import LIKELY, POSSIBLE
from magicbyte.jobs.orphans.named_schemas import NamedSchemas, SchemaName
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.plan import Planned, Task, task_name, tasks_of
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.run.reading import ReadOptions, Rows, read_chunk
from magicbyte.model import Problem
from magicbyte.schema.registry import StoredRegistry

__all__ = ["find_foreign_schemas"]

_RARE = 0.01
"""The part of a topic's values that may name a schema of another topic."""
_COMMON = 0.1
"""The part of the other topic's values that name it."""
_MINORITY = 0.1
"""The part of a topic's values that may name schemas without a subject of the topic. A topic with more of
them keeps them on purpose, as one for retries does."""
_COLUMNS = ("value", "headers", "position")
_SUFFIX = "-value"
"""The end of a subject of values (`io.confluent.kafka.serializers.subject.TopicNameStrategy`)."""

_FOREIGN = f"""
INSERT INTO findings
WITH counts AS (
    SELECT topic, name, sum(rows) AS values FROM schema_uses GROUP BY topic, name
), of_topic AS (
    SELECT topic, name, values / sum(values) OVER (PARTITION BY topic) AS share FROM counts
), foreign_names AS (
    SELECT own.topic, own.name, {POSSIBLE} AS strength FROM of_topic own JOIN of_topic other USING (name)
    WHERE own.topic <> other.topic AND own.share <= {_RARE} AND other.share >= {_COMMON}
    UNION ALL
    SELECT topic, name, {LIKELY} FROM of_topic JOIN foreign_subjects USING (topic, name)
    QUALIFY sum(share) OVER (PARTITION BY topic) <= {_MINORITY}
)
SELECT found.strength, -1, 'schema_of_other_topic', topic, log, segment, position, size, baseOffset,
    lastOffset, count, maxTimestamp, producerId, producerEpoch, baseSequence,
    NULL, NULL, NULL, NULL, NULL, NULL
FROM headers JOIN (
    SELECT segment, position, min(strength) AS strength FROM schema_uses
    JOIN foreign_names USING (topic, name) GROUP BY segment, position
) found USING (segment, position)
"""


def find_foreign_schemas(
    headers: HeaderTable,
    plans: Sequence[Planned],
    engine: LocalEngine,
    max_decompressed_bytes: int,
    registry: StoredRegistry | None = None,
    progress: Progress = NO_PROGRESS,
) -> list[Problem]:
    """Decodes all records, and adds the batches with such values to `findings`; returns the problems of
    records that do not decode.

    They are likely misrouted where the subjects of a registry say so, and else possibly.
    """
    headers.database.execute(
        "CREATE TABLE schema_uses"
        " (topic INTEGER, segment INTEGER, position BIGINT, name VARCHAR, rows BIGINT)"
    )
    segments = {segment["path"]: number for number, segment in enumerate(headers.segments)}
    topics = {topic: number for number, topic in enumerate(headers.topics)}
    options = ReadOptions(
        _COLUMNS, max_decompressed_bytes=min(max_decompressed_bytes, _core.MAX_COLUMN_PAYLOAD)
    )

    def count(task: Task) -> list[Problem]:
        problems: list[Problem] = []
        for text in task.chunks:
            chunk = json.loads(text)
            place = topics[chunk["topic"]], segments[chunk["path"]]
            for item in read_chunk(text, options):
                if isinstance(item, Rows) and item.table == "records":
                    _add_uses(headers, place, item.batch)
                elif isinstance(item, Rows) and item.table == "problems":
                    problems += cast(list[Problem], item.batch.to_pylist())
        return problems

    tasks = tasks_of(plans, engine.parallelism)
    found = engine.map(
        count,
        tasks,
        name=task_name("schemas", tasks),
        sizes=[task.size for task in tasks],
        progress=progress,
    )
    _find_foreign_subjects(headers, registry)
    headers.database.execute(_FOREIGN)
    return [problem for problems in found for problem in problems]


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


def _find_foreign_subjects(headers: HeaderTable, registry: StoredRegistry | None) -> None:
    """Creates the table `foreign_subjects`: the schemas that a topic's values name, and that have subjects of
    other topics' values, but none of the topic, which has a subject of its own.
    """
    headers.database.execute("CREATE TABLE foreign_subjects (topic INTEGER, name VARCHAR)")
    if registry is None:
        return
    by_subject = _names_by_subject(registry)
    own = [_own_names(by_subject, topic) for topic in headers.topics]
    of_values = set().union(*own, *(by_subject[one] for one in by_subject if one.endswith(_SUFFIX)))
    used = headers.database.execute("SELECT DISTINCT topic, name FROM schema_uses").fetchall()
    for topic, name in used:
        if own[topic] and name in of_values and name not in own[topic]:
            headers.database.execute("INSERT INTO foreign_subjects VALUES (?, ?)", [topic, name])


def _names_by_subject(registry: StoredRegistry) -> Mapping[str, Set[str]]:
    """The names that values give schemas, as `_text` writes them, by subject without its context."""
    by_subject: dict[str, set[str]] = defaultdict(set)
    for version in registry.all_versions():
        names = by_subject[_bare(version.subject)]
        names.add(str(version.id))
        if version.schema.guid is not None:
            names.add(UUID(version.schema.guid).hex)
    for alias, subject in registry.aliases.items():
        by_subject[_bare(alias)] |= by_subject[_bare(subject)]
    return by_subject


def _own_names(by_subject: Mapping[str, Set[str]], topic: str) -> Set[str]:
    """The schemas of a topic's values, also those that `TopicRecordNameStrategy` names."""
    own = (
        names
        for subject, names in by_subject.items()
        if subject.startswith(f"{topic}-") and subject != f"{topic}-key"
    )
    return {name for names in own for name in names}


def _bare(subject: str) -> str:
    """A subject without its context."""
    return subject.rpartition(":")[2]
