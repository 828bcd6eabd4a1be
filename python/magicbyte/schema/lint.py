"""Likely problems with the subjects of a registry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from magicbyte import bounded_json
from magicbyte.schema.compatibility.avro_schema import avro_document
from magicbyte.schema.compatibility.check import CHECKED_TYPES, LEVELS, check_history
from magicbyte.schema.invalid_schema import InvalidSchemaError
from magicbyte.schema.registry import (
    Schema,
    SchemaNotFoundError,
    StoredRegistry,
    SubjectVersion,
    context_of,
    qualified,
    shown,
)

__all__ = ["LintFinding", "lint"]

_LISTED = 20


class LintFinding(TypedDict):
    """A likely problem."""

    rule: str
    """`LEVEL_NOT_SET`, `UNKNOWN_LEVEL`, `BREAKS_LEVEL`, `UNRELATED_TYPES`, `DELETED_BUT_REFERENCED`,
    `MISSING_REFERENCE`, `TWO_KEYS` or `ORPHANED_ID`."""
    subject: str
    version: int | None
    """The version concerned; None if the finding concerns the whole subject."""
    message: str
    remedy: str


def lint(registry: StoredRegistry) -> list[LintFinding]:
    """The likely problems, by subject.

    - No level was set for a subject, its context or the registry before the first write: the default,
      `BACKWARD`, decides, which nobody chose. A live registry always names its own level, so this is found
      only in its topic or in files.
    - A version is incompatible with earlier versions at the level of its subject.
    - The versions of a subject are unrelated types, as when several events share a topic.
    - A version that is in use refers to a version that is deleted or does not exist.
    - The registry's topic has keys that say the same with other bytes. Compaction keeps a record of each, so
      that what a later record deletes may be there again. Keys that were all deleted are none of these.
    """
    found: list[LintFinding] = []
    for subject in registry.subjects():
        found += _level(registry, subject)
        versions = registry.versions(subject)
        found += _unrelated(subject, versions)
        for version in versions:
            found += _references(registry, version)
    return found + list(_keys(registry))


def _level(registry: StoredRegistry, subject: str) -> Iterator[LintFinding]:
    levels = registry.compatibility_levels
    if not any(scope in levels for scope in (subject, qualified("", context_of(subject)), "")):
        yield LintFinding(
            rule="LEVEL_NOT_SET",
            subject=subject,
            version=None,
            message="no compatibility level is set, so that the default, BACKWARD, decides",
            remedy="set the level that the consumers need, before the next version",
        )
    level = registry.compatibility(subject)
    if level not in LEVELS:
        yield LintFinding(
            rule="UNKNOWN_LEVEL",
            subject=subject,
            version=None,
            message=f"the compatibility level {shown(level)!r} is unknown",
            remedy=f"set one of {', '.join(LEVELS)}",
        )
        return
    for version, verdicts in check_history(registry, subject):
        if version.schema.schema_type not in CHECKED_TYPES:
            continue
        for verdict in verdicts:
            if not verdict.compatible:
                yield LintFinding(
                    rule="BREAKS_LEVEL",
                    subject=subject,
                    version=version.version,
                    message=f"not {verdict.direction} compatible with version {verdict.version.version},"
                    f" though the level is {level}: {' '.join(verdict.reasons())}",
                    remedy="read older records with their own schemas, or move the rest to a new topic",
                )


def _unrelated(subject: str, versions: list[SubjectVersion]) -> Iterator[LintFinding]:
    names: dict[str, int] = {}
    for version in versions:
        if (name := _type_name(version.schema)) is not None:
            names.setdefault(name, version.version)
    if len(names) > 1:
        listed = ", ".join(f"{shown(name)} (version {number})" for name, number in [*names.items()][:_LISTED])
        yield LintFinding(
            rule="UNRELATED_TYPES",
            subject=subject,
            version=None,
            message=f"its versions are {len(names)} types: {listed}",
            remedy="give each type a subject (RecordNameStrategy, TopicRecordNameStrategy), or register one"
            " union of references to them",
        )


def _type_name(schema: Schema) -> str | None:
    """The name of what a schema describes, unless that is not a single type."""
    if schema.schema_type not in ("AVRO", "JSON"):
        return None
    try:
        document = (avro_document if schema.schema_type == "AVRO" else bounded_json.loads)(schema.text)
    except (InvalidSchemaError, ValueError, RecursionError):
        return None
    key = "name" if schema.schema_type == "AVRO" else "title"
    name = document.get(key) if isinstance(document, dict) else None
    return name if isinstance(name, str) else None


def _references(registry: StoredRegistry, version: SubjectVersion) -> Iterator[LintFinding]:
    for reference in version.schema.references:
        subject = qualified(reference.subject, version.context)
        what = f"refers to version {reference.version} of {shown(subject)}"
        try:
            if registry.version(subject, reference.version).deleted:
                yield LintFinding(
                    rule="DELETED_BUT_REFERENCED",
                    subject=version.subject,
                    version=version.version,
                    message=f"{what}, which is deleted",
                    remedy="refer to a version that is in use, and do not delete that one for good",
                )
        except SchemaNotFoundError as error:
            yield LintFinding(
                rule="MISSING_REFERENCE",
                subject=version.subject,
                version=version.version,
                message=f"{what}: {error}",
                remedy="register what is missing, or a version that does not refer to it",
            )


def _keys(registry: StoredRegistry) -> Iterator[LintFinding]:
    for meaning, forms in registry.key_forms.items():
        if len(forms) > 1:
            key = bounded_json.loads(meaning)
            first, second, *_ = (shown(form.decode(errors="replace")) for form in forms)
            yield LintFinding(
                rule="TWO_KEYS",
                subject=key.get("subject") or "",
                version=key.get("version"),
                message=f"its topic has {len(forms)} keys for it, and compaction keeps a record of each:"
                f" {first} and {second}",
                remedy="write a tombstone by each of them, and then its last state, if it has one, by one",
            )
