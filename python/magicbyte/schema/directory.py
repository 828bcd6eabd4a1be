"""Schemas in files: a directory of schemas, or a JSON file that describes them.

- A directory without `schemas.json`: `7.avsc` is the schema with the id 7, `orders-value.avsc` version 1 of a
  subject, and a file named by a UUID the schema of what AWS Glue framed with it. `.avsc` is Avro, `.proto`
  Protobuf, `.json` JSON Schema; other files are ignored.
- A JSON map from ids, subjects and UUIDs to files:
  `{"7": "orders.avsc", "orders-value": "orders.avsc"}`. Instead of a path, there may be an object with
  `file`, and `schemaType` or `references` as a registry has them.
- `schemas.json` as `magicbyte schemas --out` writes it, with everything that a registry knows.

Paths are relative to the directory of the JSON file, and lead to files in it or below it: what others wrote
there shows no other files. A file may have at most 64 MiB.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from magicbyte import _core, bounded_json
from magicbyte.errors import Error, InvalidRecordError
from magicbyte.schema.registry import (
    DEFAULT_CONTEXT,
    Schema,
    SchemaReferenceError,
    StoredRegistry,
    SubjectVersion,
    shown,
)
from magicbyte.schema.schemas_topic import parsed_references
from magicbyte.storage.paths import is_url, local_path

__all__ = ["INDEX", "SchemaFileError", "files_of", "holds_schemas", "read_directory", "read_schema"]

INDEX = "schemas.json"
"""The file of a directory that describes the other files."""
_TYPES = {".avsc": "AVRO", ".proto": "PROTOBUF", ".json": "JSON"}
_EXTENSIONS = {schema_type: extension for extension, schema_type in _TYPES.items()}
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


class SchemaFileError(Error):
    """A file has invalid content; the message has its path."""

    def __init__(self, message: str, kind: str = "schema_file", *place: Any) -> None:
        super().__init__(message, kind, *place)


def holds_schemas(path: str) -> bool:
    """True if a directory has files that `read_directory` takes as schemas."""
    names = os.listdir(path)
    return INDEX in names or any(os.path.splitext(name)[1] in _TYPES for name in names)


def read_directory(path: str | os.PathLike[str]) -> StoredRegistry:
    """Reads a directory, or a JSON file, as the module describes.

    Raises:
        SchemaFileError: if the JSON is not as described, a schema is not UTF-8, or a file is outside of the
            directory.
        OSError: if a file cannot be read, or is larger than 64 MiB.

    """
    path = folder = local_path(path)
    try:
        if not os.path.isdir(path):
            return _read_json(os.path.dirname(path) or os.curdir, path)
        if os.path.exists(index := os.path.join(folder, INDEX)):
            path = index
            return _read_json(folder, _inside(folder, INDEX, INDEX))
        names = sorted(name for name in os.listdir(folder) if os.path.splitext(name)[1] in _TYPES)
        return _read_map(folder, {os.path.splitext(name)[0]: name for name in names})
    except InvalidRecordError as error:
        raise SchemaFileError(f"{path}: {error}") from None


def _inside(folder: str, file: str, where: str) -> str:
    """The path of a file that a directory names. Raises InvalidRecordError if it leads elsewhere."""
    path = os.path.join(folder, file)
    if is_url(folder):
        is_inside = not os.path.isabs(file) and os.path.normpath(file).split(os.sep)[0] != os.pardir
    else:
        root = os.path.realpath(folder)
        try:
            is_inside = os.path.commonpath((root, os.path.realpath(path))) == root
        except ValueError as error:
            raise InvalidRecordError(f"{where}: not the name of a file: {error}") from None
    if not is_inside:
        raise InvalidRecordError(f"{where}: {shown(file)} is outside of {folder}")
    return path


def _read_json(folder: str, path: str) -> StoredRegistry:
    try:
        document = bounded_json.loads(_core.read_sidecar(path))
    except (ValueError, RecursionError) as error:
        raise SchemaFileError(f"{path} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise SchemaFileError(f'{path}: expected an object such as {{"7": "orders.avsc"}}')
    if isinstance(document.get("schemas"), list):
        return _read_index(folder, document)
    return _read_map(folder, document)


def _read_map(folder: str, entries: Mapping[str, Any]) -> StoredRegistry:
    registry = StoredRegistry()
    by_file: dict[str, list[int]] = defaultdict(list)
    subjects: list[tuple[str, str, Schema]] = []
    for name, entry in entries.items():
        one = {"file": entry} if isinstance(entry, str) else entry
        if not isinstance(one, dict) or not isinstance(one.get("file"), str):
            raise InvalidRecordError(f"{name}: expected a path, or an object with file")
        path = _inside(folder, one["file"], name)
        schema, file = _schema(path, one), os.path.normpath(path)
        if name.isascii() and name.isdigit() and len(name) <= 19:
            by_file[file].append(int(name))
            registry.put_schema(int(name), schema)
        elif _UUID.fullmatch(name):
            registry.put_uuid(name, schema)
        else:
            subjects.append((name, file, schema))
    for name, file, schema in subjects:
        # A file that has an id and a subject is one schema.
        ids = by_file[file]
        registry.put(SubjectVersion(name, 1, ids[0] if len(ids) == 1 else None, schema))
    return registry


def _read_index(folder: str, document: Mapping[str, Any]) -> StoredRegistry:
    registry = StoredRegistry()
    for number, entry in enumerate(document["schemas"]):
        where = f"schemas[{number}]"
        if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
            raise InvalidRecordError(f"{where}: expected an object with file")
        schema_id, context = entry.get("id"), entry.get("context", DEFAULT_CONTEXT)
        versions = entry.get("versions", [])
        if not (schema_id is None or (type(schema_id) is int and schema_id >= 0)) or not isinstance(
            context, str
        ):
            raise InvalidRecordError(f"{where}: expected a number of at least 0 as id and text as context")
        if not isinstance(versions, list):
            raise InvalidRecordError(f"{where}: versions: expected a list")
        schema = _schema(_inside(folder, entry["file"], where), entry)
        if schema_id is not None:
            registry.put_schema(schema_id, schema, context)
        for uuid in _uuids(entry, where):
            registry.put_uuid(uuid, schema)
        for version in versions:
            if not isinstance(version, dict) or not isinstance(version.get("subject"), str):
                raise InvalidRecordError(f"{where}: versions: expected objects with subject and version")
            if type(version.get("version")) is not int:
                raise InvalidRecordError(f"{where}: versions: expected a number as version")
            deleted = version.get("deleted") is True
            try:
                registry.put(
                    SubjectVersion(version["subject"], version["version"], schema_id, schema, deleted)
                )
            except SchemaReferenceError as error:
                raise InvalidRecordError(f"{where}: {error}") from None
    for name, setting in registry.settings().items():
        given = document.get(name, {})
        if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
            raise InvalidRecordError(f"{name}: expected an object of texts")
        setting.update(given)
    return registry


def _uuids(entry: Mapping[str, Any], where: str) -> list[str]:
    uuids = entry.get("uuids", [])
    if not isinstance(uuids, list) or not all(isinstance(one, str) and _UUID.fullmatch(one) for one in uuids):
        raise InvalidRecordError(f"{where}: uuids: expected a list of UUIDs")
    return uuids


def read_schema(path: str | os.PathLike[str], references: Iterable[tuple[str, str, int]] = ()) -> Schema:
    """Reads one schema; its type follows from the name of the file.

    `references` are the name, subject and version of each schema that it uses.

    Raises:
        SchemaFileError: if the name says no type, or the file is not UTF-8.
        OSError: if the file cannot be read, or is larger than 64 MiB.

    """
    used = [{"name": name, "subject": subject, "version": one} for name, subject, one in references]
    return _schema(os.fspath(path), {"references": used})


def _schema(path: str, entry: Mapping[str, Any]) -> Schema:
    try:
        # Editors on Windows put a byte order mark before the text.
        text = _core.read_sidecar(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SchemaFileError(f"{path} is not UTF-8: {error}") from None
    schema_type = entry.get("schemaType", _TYPES.get(os.path.splitext(path)[1]))
    if not isinstance(schema_type, str):
        raise SchemaFileError(f"{path}: no schemaType, and the name ends with none of {', '.join(_TYPES)}")
    for name in ("metadata", "ruleSet"):
        if not isinstance(entry.get(name), dict | None):
            raise SchemaFileError(f"{path}: {name}: expected an object")
    guid = entry.get("guid")
    return Schema(
        schema_type=schema_type,
        text=text,
        references=parsed_references(entry.get("references")),
        metadata=entry.get("metadata"),
        rule_set=entry.get("ruleSet"),
        guid=guid if isinstance(guid, str) and entry.get("ruleSet") is not None else None,
    )


def files_of(registry: StoredRegistry) -> tuple[dict[str, Any], dict[str, str]]:
    """A registry as a directory: the content of `schemas.json`, and the text of each file by name."""
    schemas: dict[tuple[str, int | None, Schema], list[dict[str, Any]]] = {
        (*key, schema): [] for key, schema in registry.schemas.items()
    }
    for version in registry.all_versions():
        key = (version.context, version.id, version.schema)
        shown = {"subject": version.subject, "version": version.version, "deleted": version.deleted}
        schemas.setdefault(key, []).append(shown)
    uuids: dict[tuple[str, int | None, Schema], list[str]] = defaultdict(list)
    for uuid, schema in registry.uuids.items():
        schemas.setdefault((DEFAULT_CONTEXT, None, schema), [])
        uuids[DEFAULT_CONTEXT, None, schema].append(uuid)
    contexts = sorted({context for context, _, _ in schemas} - {DEFAULT_CONTEXT})
    numbers = {context: number for number, context in enumerate(contexts, 1)}
    entries, files = [], {}

    def order(item: tuple[tuple[str, int | None, Schema], object]) -> tuple[str, int, bool]:
        place, number, schema = item[0]
        # If several schemas share an id and differ in more than the text, the id finds the last of them.
        is_last = number is not None and registry.schemas[place, number] == schema
        return place, -1 if number is None else number, is_last

    ordered = sorted(schemas.items(), key=order)
    for number, ((context, schema_id, schema), versions) in enumerate(ordered):
        # A context may have characters that the name of a file cannot have.
        place = "" if context == DEFAULT_CONTEXT else f"context{numbers[context]}-"
        name = f"unnumbered{number}" if schema_id is None else f"{schema_id}"
        file = f"{place}{name}{_EXTENSIONS.get(schema.schema_type, '.txt')}"
        files[file] = schema.text
        entries.append(
            {
                "id": schema_id,
                "context": context,
                "guid": schema.guid,
                "schemaType": schema.schema_type,
                "file": file,
                "references": [
                    {"name": reference.name, "subject": reference.subject, "version": reference.version}
                    for reference in schema.references
                ],
                "metadata": schema.metadata,
                "ruleSet": schema.rule_set,
                "versions": versions,
                **({"uuids": named} if (named := uuids.get((context, schema_id, schema))) else {}),
            }
        )
    settings = {name: dict(setting) for name, setting in registry.settings().items()}
    return {"schemas": entries, **settings}, files
