"""Schemas that keys or values name and a registry does not have: which are certain, and which only look so.

Any bytes may look like a name. A name in the bytes counts only if its framing is shown in the column:

- schemas of the registry read most of the values that name them by this framing; or
- the registry has the column's subject, for the framings of Confluent and Apicurio; or
- most values are framed by AWS Glue, with random UUIDs, or as single objects: other bytes hardly begin so; or
- a schema of the registry reads all of a sample of values that name one missing schema, and these are 20
  different ones at least, not all of one length, as numbers are.

A name in a header always counts. The values in changelogs of Kafka Streams begin with times, which look like
ids from 56,426 to 244,524: there, a subject shows nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from uuid import UUID

from magicbyte.enums import Framing
from magicbyte.jobs.orphans.column_names import ColumnNames
from magicbyte.jobs.orphans.named_schemas import SchemaName
from magicbyte.jobs.orphans.sample_readers import sample_readers, values_read
from magicbyte.jobs.orphans.value_sample import SampledValue
from magicbyte.schema.lint import LintFinding
from magicbyte.schema.registry import context_of, qualified
from magicbyte.schema.subject_names import subject_name

__all__ = ["Orphans"]

_MAX_FINDINGS = 100
"""Missing names that are findings of their own, or are tried as evidence: the most frequent."""
_DIFFERENT = 20
"""Values that a schema does not read by chance."""
_TIMES_MS = range(946_684_800_000, 4_102_444_800_000)
"""The years 2000 to 2099."""


class Orphans:
    """The missing names of a topic's keys or values."""

    def __init__(self, topic: str, names: ColumnNames) -> None:
        self._topic, self._names = topic, names
        self._registry = names.schemas.registry
        self._subject = subject_name("TopicNameStrategy", topic, is_key=names.column == "key")
        self._samples = names.sample.by_name()
        shown = self._shown_framings()
        self._certain: Counter[int | bytes] = Counter()
        self._doubtful: Counter[SchemaName] = Counter()
        self._sampled: dict[int | bytes, list[SampledValue]] = {}
        for name, count in names.missing.items():
            if name.in_header or name.framing in shown:
                self._certain[name.schema] += count
                self._sampled.setdefault(name.schema, []).extend(self._samples.get(name, ()))
            else:
                self._doubtful[name] = count

    def findings(self) -> Iterator[LintFinding]:
        """The certain ones, with the schemas that read a sample of their values: the 100 most frequent."""
        for named, count in sorted(self._certain.most_common(_MAX_FINDINGS), key=_order):
            remedy = "find the schema in a backup of the registry, or at its writers"
            sample = self._sampled[named]
            if readers := sample_readers(self._registry, self._subject, named, sample, self._names.column):
                ids = ", ".join(readers[:5])
                remedy += f"; these read all of a sample of {len(sample)}, the likeliest first: {ids}"
            elif not sample:
                remedy += "; its values are too large for a sample that schemas are tried on"
            who = "1 record names" if count == 1 else f"{count:,} records name"
            yield LintFinding(
                rule="ORPHANED_ID",
                subject=self._subject,
                version=None,
                message=f"no schema has the {_text(named)}, which {who}",
                remedy=remedy,
            )

    def notes(self) -> Iterator[str]:
        """The other missing names, and why they are no findings."""
        rest = self._certain.most_common()[_MAX_FINDINGS:]
        if rest:
            records = sum(count for _, count in rest)
            yield f"{self._subject}: {records:,} records name {len(rest):,} other schemas that are missing"
        count = self._doubtful.total() + self._names.others
        if count:
            column = f"{self._topic}, {self._names.column}s"
            names = ", ".join(_text(name.schema) for name, _ in self._doubtful.most_common(3))
            looks = f"{column}: {count:,} of {self._names.values:,} begin as if they named missing schemas"
            why = "nothing else shows that they name any"
            if self._begin_with_times(self._doubtful):
                why = "they begin with times, as values in changelogs of Kafka Streams do"
            yield f"{looks} ({names}), but {why}" if names else f"{looks}, but of too many names"

    def _shown_framings(self) -> set[Framing]:
        by_framing: dict[Framing, list[SchemaName]] = defaultdict(list)
        for name, _ in self._names.missing.most_common():
            if not name.in_header:
                by_framing[name.framing].append(name)
        return {
            framing
            for framing, names in by_framing.items()
            if self._known_are_read(framing)
            or self._is_expected(framing, names)
            or any(map(self._is_read, names[:_MAX_FINDINGS]))
        }

    def _known_are_read(self, framing: Framing) -> bool:
        """True if most values that name known schemas by this framing are read by them."""
        total = read = 0
        for name, sample in self._names.known_sample.by_name().items():
            if name.framing != framing or name.in_header:
                continue
            total += len(sample)
            schema = self._names.schemas.find(name)
            if schema is not None:
                read += values_read(self._registry, schema, sample, self._names.column)
        return 2 * read > total

    def _is_expected(self, framing: Framing, names: list[SchemaName]) -> bool:
        """True if the subject of the column, or the first bytes of most of its values, tell the framing."""
        if framing in ("confluent", "apicurio"):
            return self._has_subject() and not self._begin_with_times(names)
        telling = [name for name in names if framing != "glue" or _is_random(name)]
        return 2 * sum(self._names.missing[name] for name in telling) > self._names.values

    def _has_subject(self) -> bool:
        if self._registry.versions(self._subject, deleted=True):
            return True
        subjects = self._registry.subjects(deleted=True)
        return any(subject == qualified(self._subject, context_of(subject)) for subject in subjects)

    def _begin_with_times(self, names: Iterable[SchemaName]) -> bool:
        if self._names.column == "key" or not self._topic.endswith("-changelog"):
            return False
        values = [value for name in names for value in self._samples.get(name, ())]
        return all(int.from_bytes(value.data[:8], "big") in _TIMES_MS for value in values)

    def _is_read(self, name: SchemaName) -> bool:
        """True if a schema of the registry reads all of many different values."""
        sample = self._samples.get(name, [])
        different = {value.data for value in sample}
        if len(different) < _DIFFERENT or len(set(map(len, different))) == 1:
            return False
        return bool(sample_readers(self._registry, self._subject, name.schema, sample, self._names.column))


def _is_random(name: SchemaName) -> bool:
    return isinstance(name.schema, bytes) and UUID(bytes=name.schema).version == 4


def _order(item: tuple[int | bytes, int]) -> tuple[bool, int | bytes]:
    return isinstance(item[0], bytes), item[0]


def _text(named: int | bytes) -> str:
    if isinstance(named, int):
        return f"id {named}"
    return f"GUID {UUID(bytes=named)}" if len(named) == 16 else f"fingerprint {named.hex()}"
