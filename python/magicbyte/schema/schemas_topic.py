"""The topic `_schemas`, in which a schema registry keeps everything it knows.

Keys and values are JSON. A registry reads the whole topic when it starts, and later records replace earlier
ones with the same key (Confluent's `KafkaStore` and `KafkaStoreMessageHandler`; Karapace's reader agrees).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from magicbyte import bounded_json
from magicbyte.errors import InvalidRecordError
from magicbyte.schema.registry import (
    Reference,
    Schema,
    SchemaReferenceError,
    StoredRegistry,
    SubjectVersion,
    shown,
)

__all__ = ["Document", "apply", "apply_config", "parsed_references", "parsed_schema"]

_MAX_VERSION = 2**31 - 1

Document = Mapping[str, Any]
"""A JSON object."""


def apply(registry: StoredRegistry, key: bytes | None, value: bytes | None) -> None:
    """Applies a record to what the records before it add up to.

    Raises:
        InvalidRecordError: if the record is not one of a registry's, or its key has an unknown `keytype`;
            nothing has changed then.

    """
    if key is None:
        raise InvalidRecordError("a record without a key")
    of = _document(key, "key")
    kind = _text(of, "keytype", "key")
    if kind in _IGNORED:
        return
    if (handler := _HANDLERS.get(kind)) is None:
        known = ", ".join([*_HANDLERS, *_IGNORED])
        raise InvalidRecordError(f"keytype {shown(kind)!r} is unknown: expected one of {known}")
    handler(registry, of, None if value is None else _document(value, "value"))
    _note_form(registry, json.dumps(of, sort_keys=True), key, is_tombstone=value is None)


def _note_form(registry: StoredRegistry, meaning: str, key: bytes, *, is_tombstone: bool) -> None:
    """Keeps the keys of a meaning that matter once the topic is compacted."""
    forms = registry.key_forms.setdefault(meaning, {})
    forms[key] = is_tombstone
    if not is_tombstone:
        # Nothing of tombstones before a value is needed: it replaces what they deleted.
        registry.key_forms[meaning] = {form: False for form, is_deleted in forms.items() if not is_deleted}
    elif all(forms.values()):
        del registry.key_forms[meaning]


def _schema(registry: StoredRegistry, key: Document, value: Document | None) -> None:
    subject, number = _text(key, "subject", "key"), _number(key, "version", "key")
    if value is None:
        registry.remove(subject, number)
        return
    schema = parsed_schema(value, _stored_guid(value))
    deleted = value.get("deleted") is True
    version = SubjectVersion(subject, number, _number(value, "id", "value"), schema, deleted)
    try:
        registry.put(version)
    except SchemaReferenceError as error:
        raise InvalidRecordError(str(error)) from None


def _delete_subject(registry: StoredRegistry, _key: Document, value: Document | None) -> None:
    if value is not None:
        registry.delete(_text(value, "subject", "value"), _number(value, "version", "value"))


def _clear_subject(registry: StoredRegistry, key: Document, value: Document | None) -> None:
    if value is not None:
        registry.clear(_text(key, "subject", "key"))


def _config(registry: StoredRegistry, key: Document, value: Document | None) -> None:
    subject = _optional_text(key, "subject", "key") or ""
    apply_config(registry, subject, {} if value is None else value)


def apply_config(registry: StoredRegistry, subject: str, config: Document) -> None:
    """Sets what a registry's JSON says of a subject, a context or, by an empty name, the registry; what it
    does not say is not set. Raises InvalidRecordError, and sets nothing then.
    """
    names = ("compatibilityLevel", "compatibilityPolicy", "compatibilityGroup", "alias")
    level, policy, group, alias = (_optional_text(config, name, "value") for name in names)
    _set(registry.compatibility_levels, subject, level)
    _set(registry.compatibility_policies, subject, None if policy is None else policy.upper())
    _set(registry.compatibility_groups, subject, group)
    _set(registry.aliases, subject, alias)


def _mode(registry: StoredRegistry, key: Document, value: Document | None) -> None:
    mode = None if value is None else _text(value, "mode", "value")
    _set(registry.modes, _optional_text(key, "subject", "key") or "", mode)


def _set(settings: dict[str, str], subject: str, value: str | None) -> None:
    if value:
        settings[subject] = value
    else:
        settings.pop(subject, None)


_HANDLERS: dict[str, Callable[[StoredRegistry, Document, Document | None], None]] = {
    "SCHEMA": _schema,
    "DELETE_SUBJECT": _delete_subject,
    "CLEAR_SUBJECT": _clear_subject,
    "CONFIG": _config,
    "MODE": _mode,
}
_IGNORED = ("NOOP", "CONTEXT", "SUBJECT", "ASSOCIATION")
"""A context is one because subjects have it; the others say nothing about schemas."""


def parsed_schema(value: Document, guid: str | None) -> Schema:
    """A schema in a registry's JSON. Raises InvalidRecordError.

    `guid` is what the registry says about it. It is used if it cannot be computed: the hash over rules
    depends on a registry's classes.
    """
    rules = _optional_object(value, "ruleSet")
    return Schema(
        schema_type=_optional_text(value, "schemaType", "value") or "AVRO",
        text=_text(value, "schema", "value"),
        references=parsed_references(value.get("references")),
        metadata=_optional_object(value, "metadata"),
        rule_set=rules,
        guid=guid if rules is not None else None,
    ).with_guid()


def parsed_references(value: object) -> tuple[Reference, ...]:
    """The references of a schema in a registry's JSON. Raises InvalidRecordError."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidRecordError("references: expected a list")
    found = []
    for one in value:
        if not isinstance(one, dict):
            raise InvalidRecordError("references: expected objects with name, subject and version")
        name, subject = _text(one, "name", "references"), _text(one, "subject", "references")
        found.append(Reference(name, subject, _number(one, "version", "references", -1)))
    return tuple(found)


def _document(data: bytes, what: str) -> Document:
    try:
        document = bounded_json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidRecordError(f"the {what} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise InvalidRecordError(f"the {what} is not a JSON object")
    return document


def _text(document: Document, name: str, what: str) -> str:
    value = document.get(name)
    if not isinstance(value, str):
        raise InvalidRecordError(f"{what}: {name}: expected text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidRecordError(f"{what}: {name}: half a surrogate pair is not text") from None
    return value


def _optional_text(document: Document, name: str, what: str) -> str | None:
    return None if document.get(name) is None else _text(document, name, what)


def _optional_object(document: Document, name: str) -> Document | None:
    value = document.get(name)
    if value is not None and not isinstance(value, dict):
        raise InvalidRecordError(f"value: {name}: expected an object")
    return value


def _number(document: Document, name: str, what: str, lowest: int = 0) -> int:
    value = document.get(name)
    if type(value) is not int or not lowest <= value <= _MAX_VERSION:
        raise InvalidRecordError(f"{what}: {name}: expected a number from {lowest} to {_MAX_VERSION}")
    return value


def _stored_guid(value: Document) -> str | None:
    md5 = value.get("md5")
    try:
        return str(UUID(bytes=base64.b64decode(md5, validate=True))) if isinstance(md5, str) else None
    except ValueError:
        return None
