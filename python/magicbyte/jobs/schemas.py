"""The job of `magicbyte schemas`: the content of a registry, from its topic's segments, files, or itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypedDict

from magicbyte import _core
from magicbyte._core import DEFAULT_MAX_DECOMPRESSED_BYTES, Record
from magicbyte.errors import RefusedError
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.find.replay import Batch, replay
from magicbyte.jobs.publish.outputs import partitions_output
from magicbyte.options.read import SCHEMAS_TOPIC
from magicbyte.schema.directory import INDEX, files_of, holds_schemas, read_directory
from magicbyte.schema.http_client import DEFAULT_SETTINGS, HttpSettings
from magicbyte.schema.http_registry import HttpRegistry, is_registry_url
from magicbyte.schema.registry import Registry, StoredRegistry
from magicbyte.schema.schemas_topic import apply

__all__ = ["SchemasReport", "Subject", "Version", "open_registry", "schemas", "schemas_of"]


class Version(TypedDict):
    """A version of a subject."""

    version: int
    id: int | None
    """The id; None if a directory gives the version no id."""
    guid: str | None
    """The GUID; None for a schema with rules if the registry did not name it."""
    schema_type: str
    deleted: bool
    """True if the version was deleted, but not permanently."""
    references: list[dict[str, Any]]
    """`name`, `subject` and `version` of each."""
    metadata: Any
    rule_set: Any
    schema: str
    """The text of the schema."""


class Subject(TypedDict):
    """A subject with all its versions."""

    subject: str
    context: str
    compatibility: str
    """The subject's own level, that of its context, or a registry's default, `BACKWARD`."""
    mode: str
    versions: list[Version]


class SchemasReport(TypedDict):
    """The output of `magicbyte schemas --json`."""

    source: str
    """The directory of the topic or of the files, or the address of the registry."""
    subjects: list[Subject]
    aliases: dict[str, str]
    """Subjects by their aliases."""
    without_subject: list[dict[str, Any]]
    """Schemas with only an id: permanently deleted, or from files that are named after ids."""
    by_uuid: list[dict[str, Any]]
    """Schemas that files name by UUIDs, such as AWS Glue's schema versions."""
    problems: list[str]
    """Parts of the topic that could not be read: damage, and records that are not a registry's."""


def open_registry(
    sources: Sequence[str],
    *,
    schemas_topic: str = SCHEMAS_TOPIC,
    choice: PartitionChoice = EVERYTHING,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    http: HttpSettings | None = None,
) -> tuple[str, Registry]:
    """Opens a registry of any kind. Returns the path or the address that was found, and the registry.

    `sources` are one of these:

    - the address of a live registry, `http://` or `https://`; `http` has its credentials and limits;
    - directories with the partition of `schemas_topic` at or below them, or that one partition;
    - one JSON file or directory of schemas, as `schemas/directory.py` describes them.

    All but a live registry are read into memory here. A live one is queried when it is used. If no
    network is wanted later, as in the tasks of a job, take its `snapshot()`, or look up the schemas first.

    Raises:
        RefusedError: if there is none of them, or the topic is found twice and `choice` prefers no copy.
        SchemaFileError: if the files are not as they should be.
        RegistryError: if an address is not one; a live registry may raise it later at any call.

    """
    (source, *others) = sources
    if any(map(is_registry_url, sources)):
        if others:
            raise RefusedError("the address of a registry is the only source")
        live = HttpRegistry(source, http or DEFAULT_SETTINGS)
        return live.url, live
    if not others and os.path.isfile(source) and not _core.is_segment_file(os.path.basename(source)):
        return source, read_directory(source)
    inputs = find_inputs(sources, choice, distinct=False, may_be_none=True, consult={schemas_topic})
    listing = inputs.consulted_partition(schemas_topic)
    if listing is None and len(inputs.directories) == 1:
        (only,) = inputs.directories
        listing = only if only["path"] in map(os.path.abspath, sources) else None
    if listing is None:
        if not others and not inputs.directories and os.path.isdir(source) and holds_schemas(source):
            return source, read_directory(source)
        raise RefusedError(
            f"no partition of {schemas_topic} below {', '.join(sources)}, where a schema registry keeps its"
            " schemas, and no files with schemas"
        )
    registry = StoredRegistry()

    def apply_record(batch: Batch, record: Record) -> None:
        if not batch.is_control:
            apply(registry, record.key_bytes, record.value_bytes)

    registry.problems = replay(listing["path"], apply_record, max_decompressed_bytes=max_decompressed_bytes)
    return listing["path"], registry


def schemas(
    sources: Sequence[str],
    out: str | None = None,
    *,
    schemas_topic: str = SCHEMAS_TOPIC,
    choice: PartitionChoice = EVERYTHING,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    http: HttpSettings | None = None,
) -> SchemasReport:
    """Lists the content of a registry, and with `out` also writes it as a directory that can be read again.

    Raises the errors of `open_registry`, and RefusedError if `out` is not empty or overlaps with a source.
    """
    source, opened = open_registry(
        sources,
        schemas_topic=schemas_topic,
        choice=choice,
        max_decompressed_bytes=max_decompressed_bytes,
        http=http,
    )
    registry = opened.snapshot()
    if out is not None:
        inputs = [] if is_registry_url(source) else [*sources, source]
        with partitions_output(out, inputs) as output:
            index, files = files_of(registry)
            output.commit(index, files, INDEX)
    return schemas_of(source, registry)


def schemas_of(source: str, registry: StoredRegistry) -> SchemasReport:
    """Describes a registry."""
    subjects: dict[str, Subject] = {}
    used: set[tuple[str, int | None]] = set()
    for version in registry.all_versions():
        used.add((version.context, version.id))
        subject = subjects.setdefault(
            version.subject,
            Subject(
                subject=version.subject,
                context=version.context,
                compatibility=registry.compatibility(version.subject),
                mode=registry.mode(version.subject),
                versions=[],
            ),
        )
        schema = version.schema
        subject["versions"].append(
            Version(
                version=version.version,
                id=version.id,
                guid=schema.guid,
                schema_type=schema.schema_type,
                deleted=version.deleted,
                references=[
                    {"name": other.name, "subject": other.subject, "version": other.version}
                    for other in schema.references
                ],
                metadata=schema.metadata,
                rule_set=schema.rule_set,
                schema=schema.text,
            )
        )
    left = sorted(key for key in registry.schemas if key not in used)
    return SchemasReport(
        source=source,
        subjects=list(subjects.values()),
        aliases=dict(registry.aliases),
        without_subject=[
            {
                "context": context,
                "id": number,
                "guid": schema.guid,
                "schema_type": schema.schema_type,
                "schema": schema.text,
            }
            for context, number in left
            for schema in [registry.schemas[context, number]]
        ],
        by_uuid=[
            {"uuid": uuid, "guid": schema.guid, "schema_type": schema.schema_type, "schema": schema.text}
            for uuid, schema in sorted(registry.uuids.items())
        ],
        problems=registry.problems,
    )
