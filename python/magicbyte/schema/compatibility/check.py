"""The verdict on a schema that is to follow others in a subject.

The rules of Confluent's `CompatibilityChecker`: the versions to compare, and the directions.

>>> from magicbyte.schema.compatibility.check import compare
>>> from magicbyte.schema.registry import Schema
>>> old, new = Schema("AVRO", '"int"'), Schema("AVRO", '"long"')
>>> compare(new, old, "BACKWARD")
[]
>>> [one.rule for one in compare(new, old, "FORWARD")]
['TYPE_MISMATCH']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from magicbyte.errors import Error
from magicbyte.schema.compatibility import avro, json_schema, json_schema_rules, protobuf
from magicbyte.schema.compatibility.avro_defaults import refuse_invalid_defaults
from magicbyte.schema.compatibility.avro_schema import parse_avro
from magicbyte.schema.compatibility.incompatibility import (
    BACKWARD,
    FORWARD,
    Incompatibility,
    Remedies,
)
from magicbyte.schema.compatibility.json_schema_model import parse_json_schema
from magicbyte.schema.compatibility.json_schema_validity import refuse_invalid_schema
from magicbyte.schema.compatibility.protobuf_schema import parse_protobuf
from magicbyte.schema.invalid_schema import InvalidSchemaError
from magicbyte.schema.registry import (
    LENIENT,
    Registry,
    Schema,
    SchemaReferenceError,
    StoredRegistry,
    SubjectVersion,
    context_of,
    shown,
)

__all__ = [
    "CHECKED_TYPES",
    "LEVELS",
    "IncompatibleSchemaError",
    "Verdict",
    "check",
    "check_history",
    "compare",
    "refuse_incompatible",
    "remedy",
]

LEVELS = {
    "NONE": (),
    "BACKWARD": (BACKWARD,),
    "FORWARD": (FORWARD,),
    "FULL": (BACKWARD, FORWARD),
    "BACKWARD_TRANSITIVE": (BACKWARD,),
    "FORWARD_TRANSITIVE": (FORWARD,),
    "FULL_TRANSITIVE": (BACKWARD, FORWARD),
}
"""The compatibility levels, with the directions that each demands."""

_CHANGED_TYPE = "SCHEMA_TYPE_CHANGED"
_CHANGED_TYPE_REMEDY = "use another subject for another type of schema"


class _Format(NamedTuple):
    parse: Callable[[str, Sequence[tuple[str, str]]], Any]
    """Parses the text, given the names and texts of its references, each after its own references."""
    incompatibilities: Callable[[Any, Any], list[Incompatibility]]
    """The reasons why a reader does not read all data of a writer."""
    remedies: Remedies
    refuse_invalid: Callable[[str, Any], None] = lambda *_: None
    """Raises InvalidSchemaError for what a new schema may not have, though older ones may, given its text and
    what that was parsed to."""


_FORMATS = {
    "AVRO": _Format(
        parse_avro,
        avro.incompatibilities,
        avro.REMEDIES,
        lambda _, parsed: refuse_invalid_defaults(parsed),
    ),
    "JSON": _Format(
        parse_json_schema, json_schema.incompatibilities, json_schema_rules.REMEDIES, refuse_invalid_schema
    ),
    "PROTOBUF": _Format(parse_protobuf, protobuf.incompatibilities, protobuf.REMEDIES),
}
_LENIENT_FORMATS = _FORMATS | {
    "JSON": _FORMATS["JSON"]._replace(incompatibilities=partial(json_schema.incompatibilities, lenient=True))
}

CHECKED_TYPES = frozenset(_FORMATS)
"""The types of schemas that can be checked here."""


class IncompatibleSchemaError(Error):
    """A schema may not follow the others in its subject; the message says why."""

    def __init__(self, message: str, kind: str = "incompatible_schema", *place: Any) -> None:
        super().__init__(message, kind, *place)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The compatibility of a new schema with a version of its subject in one direction."""

    version: SubjectVersion
    direction: str
    """`BACKWARD`: the new schema reads what the version wrote. `FORWARD`: the other way."""
    incompatibilities: list[Incompatibility]
    """The reasons against it; empty if they are compatible."""
    error: str | None = None
    """The reason why they cannot be compared: one of them is not a schema of its type."""

    @property
    def compatible(self) -> bool:
        """True if there is neither an incompatibility nor an error."""
        return not self.incompatibilities and self.error is None

    def reasons(self) -> list[str]:
        """A sentence for each incompatibility, with rule and remedy; or the error."""
        if self.error is not None:
            return [self.error]
        return [
            f"{incompatibility.rule} at {incompatibility.path or '/'}: {incompatibility.message}."
            f" Remedy: {remedy(self.version.schema.schema_type, incompatibility.rule, self.direction)}"
            for incompatibility in self.incompatibilities
        ]


def check(
    registry: Registry,
    subject: str,
    schema: Schema,
    level: str | None = None,
    *,
    lenient: bool | None = None,
) -> list[Verdict]:
    """The verdicts on a schema that is to become the next version of a subject, newest version first.

    The schema is compared with the live versions: the latest, or all of them if the level is transitive. If
    the subject has a compatibility group, only versions with the group's value in their metadata count.

    Args:
        registry: where the subject and the references are.
        subject: the subject; a new subject has no verdicts.
        schema: the new schema.
        level: a level of `LEVELS`; by default the subject's level in the registry.
        lenient: compare JSON Schemas by the policy `LENIENT`, or by `STRICT`; by default by the subject's.

    Raises:
        ValueError: if the level is unknown.
        InvalidSchemaError: if the new schema is not valid for its type, or its type cannot be checked.
        SchemaReferenceError: if its references lead to itself, or nowhere.

    """
    rules = registry.rules(subject)
    level = _known(rules.level if level is None else level)
    schemas = _Parsed(registry, rules.policy == LENIENT if lenient is None else lenient)
    schemas.refuse_invalid(schema, context_of(subject))
    new, versions = SubjectVersion(subject, 0, None, schema), registry.versions(subject)
    # A registry gives a schema without metadata those of the latest version.
    of_metadata = versions[-1].schema if schema.metadata is None and versions else schema
    return _verdicts(new, _of_group(of_metadata, versions, rules.group), level, schemas)


def check_history(
    registry: Registry, subject: str, level: str | None = None
) -> Iterator[tuple[SubjectVersion, list[Verdict]]]:
    """The versions of a subject that are not deleted, in order, each with the verdicts when it came last.

    Raises ValueError if the level is unknown. A version that is not a schema of its type has an error in each
    of its verdicts.
    """
    rules = registry.rules(subject)
    level = _known(rules.level if level is None else level)
    schemas = _Parsed(registry, rules.policy == LENIENT)
    versions = registry.versions(subject)
    for number, version in enumerate(versions):
        older = _of_group(version.schema, versions[:number], rules.group)
        yield version, _verdicts(version, older, level, schemas)


def refuse_incompatible(subject: str, verdicts: Sequence[Verdict]) -> None:
    """Raises IncompatibleSchemaError unless every verdict is that the schemas are compatible."""
    refused = [verdict for verdict in verdicts if not verdict.compatible]
    if refused:
        first = refused[0]
        more = f" (and {len(refused) - 1} more verdicts)" if len(refused) > 1 else ""
        raise IncompatibleSchemaError(
            f"the schema is not {first.direction} compatible with version {first.version.version} of"
            f" {shown(subject)}: {' '.join(first.reasons())}{more}"
        )


def compare(new: Schema, old: Schema, direction: str) -> list[Incompatibility]:
    """The incompatibilities of two schemas without references in one direction; empty if there are none.

    Both count as registered: unlike `check`, it does not refuse what only a new schema may not have, such as
    an invalid default. Raises InvalidSchemaError.
    """
    one, other = SubjectVersion("", 2, None, new), SubjectVersion("", 1, None, old)
    (verdict,) = _verdicts(one, [other], direction, _Parsed(StoredRegistry()))
    if verdict.error is not None:
        raise InvalidSchemaError(verdict.error)
    return verdict.incompatibilities


def remedy(schema_type: str, rule: str, direction: str) -> str:
    """The remedy for an incompatibility with the new schema."""
    if rule == _CHANGED_TYPE:
        return _CHANGED_TYPE_REMEDY
    return _FORMATS[schema_type].remedies[rule][direction == FORWARD]


class _Parsed:
    """The parsed schemas of a subject, each parsed once, and the rules that they are compared by."""

    def __init__(self, registry: Registry, lenient: bool = False) -> None:
        self._registry = registry
        self._formats = _LENIENT_FORMATS if lenient else _FORMATS
        self._parsed: dict[tuple[Schema, str], Any] = {}

    def incompatibilities(
        self, reader: SubjectVersion, writer: SubjectVersion, schema_type: str
    ) -> list[Incompatibility]:
        parsed = [self.parse(one.schema, one.context) for one in (reader, writer)]
        return self._formats[schema_type].incompatibilities(*parsed)

    def refuse_invalid(self, schema: Schema, context: str) -> None:
        """Raises InvalidSchemaError if a new schema is not valid."""
        parsed = self.parse(schema, context)
        self._formats[schema.schema_type].refuse_invalid(schema.text, parsed)

    def parse(self, schema: Schema, context: str) -> Any:
        key = (schema, context)
        if key not in self._parsed:
            if (of := _FORMATS.get(schema.schema_type)) is None:
                text = f"{shown(schema.schema_type)} cannot be checked, only {', '.join(_FORMATS)}"
                raise InvalidSchemaError(text, "unknown_schema_type")
            used = [(name, one.text) for name, one in self._registry.resolve(schema, context)]
            self._parsed[key] = of.parse(schema.text, used)
        return self._parsed[key]


def _known(level: str) -> str:
    if level not in LEVELS:
        known = ", ".join(LEVELS)
        raise ValueError(f"the compatibility level {shown(level)!r} is unknown: expected one of {known}")
    return level


def _of_group(new: Schema, older: Sequence[SubjectVersion], group: str | None) -> Sequence[SubjectVersion]:
    """The versions that a new one is compared with; those without a value are a group, too."""
    if group is None:
        return older
    return [one for one in older if _property(one.schema, group) == _property(new, group)]


def _property(schema: Schema, name: str) -> Any:
    properties = (schema.metadata or {}).get("properties")
    return properties.get(name) if isinstance(properties, dict) else None


def _verdicts(
    new: SubjectVersion, older: Sequence[SubjectVersion], level: str, schemas: _Parsed
) -> list[Verdict]:
    compared = older[::-1] if level.endswith("_TRANSITIVE") else older[::-1][:1]
    return [_verdict(new, old, direction, schemas) for old in compared for direction in LEVELS[level]]


def _verdict(new: SubjectVersion, old: SubjectVersion, direction: str, schemas: _Parsed) -> Verdict:
    schema_type = new.schema.schema_type
    if old.schema.schema_type != schema_type:
        text = f"the type is {schema_type}, and was {old.schema.schema_type}"
        return Verdict(old, direction, [Incompatibility(_CHANGED_TYPE, "", text)])
    try:
        reader, writer = (old, new) if direction == FORWARD else (new, old)
        return Verdict(old, direction, schemas.incompatibilities(reader, writer, schema_type))
    except (InvalidSchemaError, SchemaReferenceError) as error:
        return Verdict(old, direction, [], str(error))
