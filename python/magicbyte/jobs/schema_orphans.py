"""Ids in a log that no schema of the registry has, for `magicbyte schemas lint --logs`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from magicbyte.errors import Error
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.find.sample import first_records
from magicbyte.model.listings import PartitionListing, Problem
from magicbyte.schema import decode, framing
from magicbyte.schema.decoding import SCHEMA_TYPES
from magicbyte.schema.lint import LintFinding
from magicbyte.schema.registry import DEFAULT_CONTEXT, StoredRegistry
from magicbyte.schema.subject_names import subject_name

__all__ = ["orphaned_ids"]

_SAMPLE = 10_000
"""Records of a topic that are looked at."""
_MAX_IDS = 100
"""Ids of a topic that are reported: bytes that are no framing may name any."""
_TRIED = 200
"""Payloads of an id that other schemas are tried on."""
_CANDIDATES = 50
"""Schemas that are tried: those of the subject, and those with the nearest ids."""
_FORMATS = {schema_type: name for name, schema_type in SCHEMA_TYPES.items()}


@dataclass
class _Orphan:
    """An id without a schema."""

    count: int = 0
    payloads: list[bytes] = field(default_factory=list)


def orphaned_ids(
    registry: StoredRegistry,
    sources: Sequence[str],
    problems: list[Problem],
    choice: PartitionChoice = EVERYTHING,
) -> Iterator[LintFinding]:
    """The ids that keys and values name, and no schema has; with the schemas that can read all of a sample.

    The first 10,000 records of each topic are looked at. What cannot be read is added to `problems`.

    Raises:
        RefusedError: if there is no partition.
        OSError: if a source cannot be read.

    """
    topics: dict[str, list[PartitionListing]] = defaultdict(list)
    for listing in find_inputs(sources, choice).listings:
        topics[listing["topic"]].append(listing)
    for topic, listings in sorted(topics.items()):
        orphans = _orphans(registry, listings, problems)
        for (is_key, schema_id), orphan in sorted(orphans.items()):
            subject = subject_name("TopicNameStrategy", topic, is_key=is_key)
            yield _finding(
                subject, schema_id, orphan, _readers(registry, subject, schema_id, orphan.payloads)
            )


def _orphans(
    registry: StoredRegistry, listings: Sequence[PartitionListing], problems: list[Problem]
) -> dict[tuple[bool, int], _Orphan]:
    known = {schema_id for _, schema_id in registry.schemas}
    found: dict[tuple[bool, int], _Orphan] = {}
    for record in first_records(listings, _SAMPLE, problems):
        for is_key, data in ((True, record.key_bytes), (False, record.value_bytes)):
            framed = framing.parse(data, framing="confluent")
            if framed is None or framed.id is None or framed.id in known:
                continue
            place = (is_key, framed.id)
            if place not in found and len(found) == _MAX_IDS:
                continue
            orphan = found.setdefault(place, _Orphan())
            orphan.count += 1
            if len(orphan.payloads) < _TRIED:
                orphan.payloads.append(framed.payload)
    return found


def _readers(registry: StoredRegistry, subject: str, schema_id: int, payloads: list[bytes]) -> list[int]:
    """The ids of schemas that read all payloads: first those of the subject, then the nearest ones."""
    own = {version.id for version in registry.versions(subject, deleted=True)}
    ids = (number for context, number in registry.schemas if context == DEFAULT_CONTEXT)
    nearest = sorted(ids, key=lambda number: (number not in own, abs(number - schema_id), number))
    return [number for number in nearest[:_CANDIDATES] if _reads_all(registry, number, payloads)]


def _reads_all(registry: StoredRegistry, schema_id: int, payloads: list[bytes]) -> bool:
    schema = registry.by_id(schema_id)
    if (name := _FORMATS.get(schema.schema_type)) is None:
        return False
    head = framing.write(schema_id)
    values = [head + payload for payload in payloads]
    try:
        # Any JSON is JSON: only validation tells schemas apart.
        rows = decode(values, registry, name, as_text=True, framing="confluent", validate=name == "json")
    except (Error, ValueError):
        return False
    return bool(rows.field("_error").null_count == len(payloads))


def _finding(subject: str, schema_id: int, orphan: _Orphan, readers: list[int]) -> LintFinding:
    remedy = "find the schema in a backup of the registry, or at its writers"
    if readers:
        ids = ", ".join(map(str, readers[:5]))
        remedy += f"; these read all of a sample of {len(orphan.payloads)}, the likeliest first: {ids}"
    return LintFinding(
        rule="ORPHANED_ID",
        subject=subject,
        version=None,
        message=f"no schema has the id {schema_id}, which {orphan.count:,} records name",
        remedy=remedy,
    )
