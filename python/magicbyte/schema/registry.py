"""Schemas and their names: ids, GUIDs, and the versions of subjects, as a schema registry keeps them.

`Registry` is the interface. Its sources are a `_schemas` topic (`schemas_topic.py`) and a directory of files
(`directory.py`), which both fill a `StoredRegistry`, and a live registry (`http_registry.py`).
`magicbyte.jobs.schemas.open_registry` opens any of them.
"""

from __future__ import annotations

import hashlib
import heapq
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from magicbyte.errors import Error

__all__ = [
    "DEFAULT_CONTEXT",
    "LATEST",
    "LENIENT",
    "LOGICAL",
    "STRICT",
    "CompatibilityRules",
    "Reference",
    "Registry",
    "Schema",
    "SchemaNotFoundError",
    "SchemaReferenceError",
    "StoredRegistry",
    "SubjectVersion",
    "context_of",
    "qualified",
    "shown",
]

DEFAULT_CONTEXT = "."
LATEST = -1
"""The version number that means the latest version."""
STRICT, LENIENT, LOGICAL = "STRICT", "LENIENT", "LOGICAL"
"""The policies that compatibility is checked by. `LENIENT` is for JSON Schemas. `LOGICAL` is `STRICT`, and a
registry then also checks the tables that Flink and Iceberg would make of the schemas, which is not done here.
"""
_DEFAULT_COMPATIBILITY = "BACKWARD"
_DEFAULT_MODE = "READWRITE"
_SHOWN = 200
_MAX_USED = 10_000
"""The maximum number of schemas that a schema may use, directly or not: each may take a request."""


class SchemaNotFoundError(Error):
    """No schema has this id or GUID, or no subject has this name or version."""

    def __init__(self, message: str, kind: str = "schema_not_found", *place: Any) -> None:
        super().__init__(message, kind, *place)


class SchemaReferenceError(Error):
    """The references of a schema lead to itself, or nowhere."""

    def __init__(self, message: str, kind: str = "schema_reference", *place: Any) -> None:
        super().__init__(message, kind, *place)


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another schema uses."""

    name: str
    """The name in the other schema: an Avro name, a Protobuf import, a JSON Schema `$ref`."""
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as it was registered."""

    schema_type: str
    """`AVRO`, `PROTOBUF` or `JSON`; a registry's plug-in may add others."""
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = field(default=None, hash=False)
    rule_set: Mapping[str, Any] | None = field(default=None, hash=False)
    guid: str | None = None
    """The hash that names it in every registry, as the text of a UUID. None if it is unknown."""

    def with_guid(self) -> Schema:
        """The schema with its GUID, computed as a registry does; unchanged if it has rules."""
        return replace(self, guid=_guid(self)) if self.guid is None and self.rule_set is None else self


@dataclass(frozen=True, slots=True)
class SubjectVersion:
    """A version of a subject."""

    subject: str
    """The subject, with its context unless that is the default context: `:.context:name`."""
    version: int
    id: int | None
    """The schema's id in the subject's context; None in a directory that does not set it."""
    schema: Schema
    deleted: bool = False
    """True after a soft delete: the version is found by id and by number, but is never the latest."""

    @property
    def context(self) -> str:
        """The context of the subject."""
        return context_of(self.subject)


class CompatibilityRules(NamedTuple):
    """The demands on the next version of a subject, as its registry is configured (Confluent's `Config`)."""

    level: str
    """The compatibility level, such as `BACKWARD`."""
    policy: str = STRICT
    """`STRICT`, `LENIENT` or `LOGICAL`."""
    group: str | None = None
    """The name of a property in the metadata of schemas: only versions with one value of it are compared."""


class Registry(ABC):
    """A source of schemas by name."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        """The parts of the source that could not be read."""

    @abstractmethod
    def by_id(self, schema_id: int, context: str = DEFAULT_CONTEXT) -> Schema:
        """The schema with this id. Raises SchemaNotFoundError."""

    @abstractmethod
    def by_guid(self, guid: str) -> Schema:
        """The schema with this GUID, the text of a UUID. Raises SchemaNotFoundError."""

    def by_fingerprint(self, fingerprint: bytes) -> Schema:
        """The Avro schema with this fingerprint: 8 bytes, the most significant first.

        Only a registry in memory finds them. Raises SchemaNotFoundError.
        """
        raise SchemaNotFoundError(
            f"a live registry does not find the fingerprint {fingerprint.hex()}: use a copy of it"
        )

    @abstractmethod
    def version(self, subject: str, version: int) -> SubjectVersion:
        """A version of a subject, deleted or not; `LATEST` for the latest. Raises SchemaNotFoundError."""

    @abstractmethod
    def versions(self, subject: str, *, deleted: bool = False) -> list[SubjectVersion]:
        """The versions of a subject in order; `deleted` adds deleted versions. Empty if there are none."""

    @abstractmethod
    def subjects(self, *, deleted: bool = False) -> list[str]:
        """The subjects that have versions, sorted; with `deleted` also those with deleted versions only."""

    @abstractmethod
    def rules(self, subject: str) -> CompatibilityRules:
        """The compatibility rules of a subject: each is its own, its context's, or the registry's."""

    def compatibility(self, subject: str) -> str:
        """The compatibility level of a subject: its own, its context's, or the registry's."""
        return self.rules(subject).level

    @abstractmethod
    def mode(self, subject: str) -> str:
        """The mode of a subject: its own, its context's, or the registry's."""

    @abstractmethod
    def snapshot(self) -> StoredRegistry:
        """The whole content of the source, in memory."""

    def latest(self, subject: str) -> SubjectVersion:
        """The latest version of a subject that is not deleted. Raises SchemaNotFoundError."""
        return self.version(subject, LATEST)

    def resolve(self, schema: Schema, context: str = DEFAULT_CONTEXT) -> list[tuple[str, Schema]]:
        """All schemas that a schema uses, directly or through others, each after those that it uses itself.

        Each comes with the name by which it is referenced; a schema with several names occurs several times.
        `context` is that of the schema, where subjects without a context are looked up.

        Raises:
            SchemaReferenceError: if a schema leads to itself, a reference to nothing, or it uses more than
                10,000 schemas.

        """
        found: dict[tuple[str, str, int], tuple[str, Schema]] = {}
        open_: dict[tuple[str, str, int], None] = {}
        # An explicit stack: a chain of references may be longer than Python's stack.
        stack: list[tuple[tuple[str, str, int] | None, Schema, Iterator[Reference], str]] = [
            (None, schema, iter(schema.references), context)
        ]
        while stack:
            key, current, references, place = stack[-1]
            reference = next(references, None)
            if reference is None:
                stack.pop()
                if key is not None:
                    found[key] = (key[0], current)
                    del open_[key]
                continue
            subject = qualified(reference.subject, place)
            used = (reference.name, subject, reference.version)
            if used in found:
                continue
            if len(found) + len(open_) >= _MAX_USED:
                raise SchemaReferenceError(f"a schema uses more than {_MAX_USED} others")
            if used in open_:
                path = " -> ".join(name for name, _, _ in [*open_, used])
                raise SchemaReferenceError(f"the references of a schema lead to itself: {shown(path)}")
            try:
                version = self.version(subject, reference.version)
            except SchemaNotFoundError as error:
                raise SchemaReferenceError(f"reference {reference.name!r}: {error}") from None
            open_[used] = None
            stack.append((used, version.schema, iter(version.schema.references), context_of(subject)))
        return list(found.values())


class StoredRegistry(Registry):
    """A registry in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.compatibility_levels: dict[str, str] = {}
        """The levels as set, by subject; by `:.context:` for a context, by an empty name for the registry."""
        self.compatibility_policies: dict[str, str] = {}
        self.compatibility_groups: dict[str, str] = {}
        self.modes: dict[str, str] = {}
        """The modes as set: `READWRITE`, `READONLY`, `READONLY_OVERRIDE`, `IMPORT` and `FORWARD`."""
        self.aliases: dict[str, str] = {}
        """The subject that each alias stands for."""
        self.key_forms: dict[str, dict[bytes, bool]] = {}
        """The keys of the registry's topic by their meaning, as sorted JSON: those with a value, and those
        deleted after it (True)."""
        self._versions: dict[str, dict[int, SubjectVersion]] = {}
        self._schemas: dict[tuple[str, int], Schema] = {}
        self._guids: dict[str, Schema] = {}
        self.uuids: dict[str, Schema] = {}
        """Schemas by the UUIDs that others than a registry gave them, such as AWS Glue's schema versions."""
        self._fingerprints: dict[bytes, Schema] | None = None
        """Avro schemas by their fingerprints, once they are asked for."""
        self._uses: Counter[tuple[str, int]] = Counter()
        # Whatever a topic holds, a deleting record takes time only in proportion to the deleted data.
        self._live: dict[str, list[int]] = defaultdict(list)
        """By subject: a heap of its versions, with all live versions and possibly deleted ones."""
        self._deleted: dict[str, dict[str, set[int]]] = defaultdict(partial(defaultdict, set))
        """By context and subject: its deleted versions."""

    @property
    def schemas(self) -> Mapping[tuple[str, int], Schema]:
        """Every schema that has an id, by context and id, including schemas without a subject."""
        return self._schemas

    def by_id(self, schema_id: int, context: str = DEFAULT_CONTEXT) -> Schema:
        """See `Registry.by_id`. Also finds schemas after a hard delete, while their records are there."""
        if (schema := self._schemas.get((context, schema_id))) is None:
            place = "" if context == DEFAULT_CONTEXT else f" in the context {context}"
            raise SchemaNotFoundError(f"no schema has the id {schema_id}{place}")
        return schema

    def by_guid(self, guid: str) -> Schema:  # noqa: D102 (as in Registry)
        schema = self._guids.get(guid.lower()) or self.uuids.get(guid.lower())
        if schema is None:
            raise SchemaNotFoundError(f"no schema has the GUID {guid}")
        return schema

    def by_fingerprint(self, fingerprint: bytes) -> Schema:  # noqa: D102 (as in Registry)
        if self._fingerprints is None:
            self._fingerprints = self._all_fingerprints()
        if (schema := self._fingerprints.get(fingerprint)) is None:
            raise SchemaNotFoundError(f"no schema has the fingerprint {fingerprint.hex()}")
        return schema

    def _all_fingerprints(self) -> dict[bytes, Schema]:
        from magicbyte.schema.avro_fingerprint import fingerprint

        found: dict[bytes, Schema] = {}
        places = [(DEFAULT_CONTEXT, schema) for schema in self.uuids.values()]
        places += [(version.context, version.schema) for version in self.all_versions()]
        places += [(context, schema) for (context, _), schema in self._schemas.items()]
        for context, schema in places:
            if schema.schema_type == "AVRO":
                # A schema that is none names no values.
                with suppress(Error):
                    used = [(name, other.text) for name, other in self.resolve(schema, context)]
                    found.setdefault(fingerprint(schema.text, used), schema)
        return found

    def version(self, subject: str, version: int) -> SubjectVersion:  # noqa: D102 (as in Registry)
        found = self._versions.get(self._meant(subject))
        if not found:
            raise SchemaNotFoundError(f"no subject has the name {subject}")
        if version == LATEST:
            live = [number for number, one in found.items() if not one.deleted]
            if not live:
                raise SchemaNotFoundError(f"all versions of the subject {subject} are deleted")
            version = max(live)
        if version not in found:
            raise SchemaNotFoundError(
                f"the subject {subject} has no version {version}: they are {min(found)} to {max(found)}"
            )
        return found[version]

    def versions(self, subject: str, *, deleted: bool = False) -> list[SubjectVersion]:  # noqa: D102
        found = self._versions.get(self._meant(subject), {})
        return [one for _, one in sorted(found.items()) if deleted or not one.deleted]

    def subjects(self, *, deleted: bool = False) -> list[str]:  # noqa: D102 (as in Registry)
        return sorted(
            subject
            for subject, versions in self._versions.items()
            if any(deleted or not version.deleted for version in versions.values())
        )

    def all_versions(self) -> list[SubjectVersion]:
        """Every version of every subject, deleted ones too, in order."""
        return [
            one for subject in sorted(self._versions) for _, one in sorted(self._versions[subject].items())
        ]

    def rules(self, subject: str) -> CompatibilityRules:
        """The compatibility rules of a subject: each is its own, its context's, or the default."""
        return CompatibilityRules(
            _in_scope(self.compatibility_levels, subject) or _DEFAULT_COMPATIBILITY,
            _in_scope(self.compatibility_policies, subject) or STRICT,
            _in_scope(self.compatibility_groups, subject),
        )

    def settings(self) -> dict[str, dict[str, str]]:
        """All settings by what they set, as `schemas.json` calls it: the dicts themselves, by scope."""
        return {
            "compatibility": self.compatibility_levels,
            "policies": self.compatibility_policies,
            "groups": self.compatibility_groups,
            "modes": self.modes,
            "aliases": self.aliases,
        }

    def mode(self, subject: str) -> str:
        """The mode of a subject: its own, its context's, or `READWRITE`."""
        return _in_scope(self.modes, subject) or _DEFAULT_MODE

    def snapshot(self) -> StoredRegistry:
        """The registry itself."""
        return self

    def since(self, earlier: StoredRegistry) -> StoredRegistry:
        """The versions and schemas that are missing or different in `earlier`; no settings."""
        added = StoredRegistry()
        for version in self.all_versions():
            if earlier._versions.get(version.subject, {}).get(version.version) != version:
                added.put(version)
        for (context, schema_id), schema in self._schemas.items():
            if earlier._schemas.get((context, schema_id)) != schema:
                added.put_schema(schema_id, schema, context)
        for uuid, schema in self.uuids.items():
            if earlier.uuids.get(uuid) != schema:
                added.put_uuid(uuid, schema)
        return added

    def joined(self, later: StoredRegistry) -> StoredRegistry:
        """A copy with the versions and schemas of `later` as well. Raises SchemaReferenceError, as `put`."""
        joined = StoredRegistry()
        for mine, own in zip(joined.settings().values(), self.settings().values(), strict=True):
            mine |= own
        for registry in (self, later):
            joined.uuids |= registry.uuids
            for version in registry.all_versions():
                joined.put(version)
            for (context, schema_id), schema in registry._schemas.items():
                joined.put_schema(schema_id, schema, context)
        return joined

    def put(self, version: SubjectVersion) -> None:
        """Adds a version, or replaces it.

        Raises SchemaReferenceError, and changes nothing, if another schema in use has its id, as a registry
        does.
        """
        one = replace(version, schema=version.schema.with_guid())
        key = None if one.id is None else (context_of(one.subject), one.id)
        before = self._versions.get(one.subject, {}).get(one.version)
        if key is not None:
            others = self._uses[key] - (before is not None and before.id == one.id)
            if others and self._schemas[key].text != one.schema.text:
                raise SchemaReferenceError(f"id {one.id} of {shown(one.subject)} is that of another schema")
        self._fingerprints = None
        self.remove(one.subject, one.version)
        self._versions.setdefault(one.subject, {})[one.version] = one
        if one.deleted:
            self._deleted[one.context][one.subject].add(one.version)
        elif before is None or before.deleted:
            heapq.heappush(self._live[one.subject], one.version)
        if key is not None:
            self._uses[key] += 1
            self.put_schema(key[1], one.schema, key[0])

    def put_uuid(self, uuid: str, schema: Schema) -> None:
        """Adds a schema that values name by this UUID, such as the schema version of AWS Glue."""
        self.uuids[uuid.lower()] = schema
        self._fingerprints = None

    def put_schema(self, schema_id: int, schema: Schema, context: str = DEFAULT_CONTEXT) -> None:
        """Adds a schema, which needs no subject."""
        self._fingerprints = None
        schema = schema.with_guid()
        self._schemas[context, schema_id] = schema
        if schema.guid is not None:
            self._guids[schema.guid] = schema

    def remove(self, subject: str, version: int) -> None:
        """Removes a version, if it is there; its schema is still found by its id."""
        versions = self._versions.get(subject, {})
        if (one := versions.pop(version, None)) is None:
            return
        if not versions:
            del self._versions[subject]
        if one.deleted:
            self._deleted[one.context][subject].discard(version)
        if one.id is not None:
            self._uses[context_of(subject), one.id] -= 1

    def delete(self, subject: str, up_to: int) -> None:
        """Marks the versions of a subject up to this one as deleted."""
        live, versions = self._live.get(subject, []), self._versions.get(subject, {})
        while live and live[0] <= up_to:
            number = heapq.heappop(live)
            one = versions.get(number)
            if one is not None and not one.deleted:
                versions[number] = replace(one, deleted=True)
                self._deleted[one.context][subject].add(number)

    def clear(self, subject: str) -> None:
        """Removes the versions of a subject that are deleted; for `:.context:`, of all its subjects."""
        context = context_of(subject)
        of_context = self._deleted.get(context, {})
        if subject == qualified("", context):
            cleared = self._deleted.pop(context, {})
        else:
            cleared = {subject: of_context.pop(subject, set())}
        for name, numbers in cleared.items():
            for number in list(numbers):
                self.remove(name, number)

    def _meant(self, subject: str) -> str:
        # One step, as in a registry: an alias of an alias is the name of a subject.
        alias = self.aliases.get(subject)
        return subject if alias is None else qualified(alias, context_of(subject))


def shown(name: str) -> str:
    """A name for a message; a long name is cut."""
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."


def context_of(subject: str) -> str:
    """The context of a subject (Confluent's `QualifiedSubject`): `.a` of `:.a:orders`, by default `.`."""
    if not subject.startswith(":."):
        return DEFAULT_CONTEXT
    return subject[1:].partition(":")[0]


def qualified(subject: str, context: str) -> str:
    """A subject's name in a context, unless it has a context of its own."""
    if context == DEFAULT_CONTEXT or subject.startswith(":."):
        return subject
    return f":{context}:{subject}"


def _in_scope(settings: Mapping[str, str], subject: str) -> str | None:
    return settings.get(subject) or settings.get(qualified("", context_of(subject)))


def _guid(schema: Schema) -> str | None:
    """The MD5 over text, references and metadata (`Schema.updateHash`); None for odd metadata."""
    digest = hashlib.md5(schema.text.encode(), usedforsecurity=False)
    for reference in schema.references:
        digest.update(f"{reference.name}{reference.subject}".encode())
        digest.update((reference.version & 0xFFFFFFFF).to_bytes(4, "big"))
    if schema.metadata is not None:
        digest.update(b"\1")
        try:
            for words in _metadata_words(schema.metadata):
                digest.update("".join(words).encode())
        except (AttributeError, TypeError, UnicodeEncodeError):
            return None
    return str(UUID(bytes=digest.digest()))


def _metadata_words(metadata: Mapping[str, Any]) -> Iterator[list[str]]:
    for key, values in _sorted_items(metadata.get("tags")):
        yield [key, *_sorted(values)]
    for key, value in _sorted_items(metadata.get("properties")):
        yield [key, value]
    yield _sorted(metadata.get("sensitive") or [])


def _sorted_items(mapping: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    return [(key, (mapping or {})[key]) for key in _sorted((mapping or {}).keys())]


def _sorted(words: Any) -> list[str]:
    # As Java compares strings.
    return sorted(set(words), key=lambda word: word.encode("utf-16-be"))
