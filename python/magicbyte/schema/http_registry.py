"""A live schema registry, over HTTP: the Confluent API, which Karapace, Apicurio and Redpanda have too."""

from __future__ import annotations

from typing import Any

from magicbyte.errors import InvalidRecordError
from magicbyte.schema.absent_schemas import AbsentSchemas
from magicbyte.schema.compatibility.check import (
    CHECKED_TYPES,
    IncompatibleSchemaError,
    check,
    refuse_incompatible,
)
from magicbyte.schema.http_client import DEFAULT_SETTINGS, HttpClient, HttpSettings, RegistryError
from magicbyte.schema.registry import (
    DEFAULT_CONTEXT,
    LATEST,
    CompatibilityRules,
    Registry,
    Schema,
    SchemaNotFoundError,
    SchemaReferenceError,
    StoredRegistry,
    SubjectVersion,
    context_of,
    qualified,
    shown,
)
from magicbyte.schema.schemas_topic import Document, apply_config, parsed_schema

__all__ = ["HttpRegistry", "is_registry_url"]

_SHOWN_REASONS = 1000


def is_registry_url(source: str) -> bool:
    """True if a source is the address of a registry, and not a path.

    >>> is_registry_url("https://registry:8081"), is_registry_url("backup/_schemas-0")
    (True, False)
    """
    return source.lower().startswith(("http://", "https://"))


class HttpRegistry(Registry):
    """A registry at an address; needs httpx (`pip install 'magicbyte[registry]'`).

    The meaning of an id, a GUID or a version never changes, so it is requested once. The latest version, the
    deleted versions, and all settings are requested at every call. An id or a GUID that the registry does not
    have is requested again after `settings.absent_seconds`, and only `settings.max_absent` of them are
    requested in that time.

    Every method raises RegistryError if there is no answer in time, or if the answer is not a registry's.
    """

    def __init__(self, url: str, settings: HttpSettings = DEFAULT_SETTINGS) -> None:
        """Connects to nothing yet.

        Args:
            url: the address; its user and password, if it has them, are used as `settings.user_info` is.
            settings: credentials, certificates and limits.

        """
        super().__init__()
        self._client = HttpClient(url, settings)
        self._schemas: dict[tuple[str, int], Schema] = {}
        self._guids: dict[str, Schema] = {}
        self._versions: dict[tuple[str, int], SubjectVersion] = {}
        self._absent = AbsentSchemas(settings.max_absent, settings.absent_seconds)

    def __repr__(self) -> str:
        return f"HttpRegistry({self.url!r})"

    @property
    def url(self) -> str:
        """The address without credentials."""
        return self._client.url

    def close(self) -> None:
        """Closes the connections; a later call opens new ones."""
        self._client.close()

    def by_id(self, schema_id: int, context: str = DEFAULT_CONTEXT) -> Schema:  # noqa: D102 (as in Registry)
        if (known := self._schemas.get((context, schema_id))) is not None:
            return known
        query = None if context == DEFAULT_CONTEXT else {"subject": qualified("", context)}
        place = "" if query is None else f" in the context {context}"
        missing, key = f"no schema has the id {schema_id}{place}", (context, schema_id)
        self._absent.check(key, missing)
        try:
            document = self._found(missing, "schemas", "ids", str(schema_id), query=query)
        except SchemaNotFoundError:
            self._absent.add(key)
            raise
        return self._remember(context, schema_id, self._schema(document, f"id {schema_id}"))

    def by_guid(self, guid: str) -> Schema:  # noqa: D102 (as in Registry)
        guid = guid.lower()
        if (known := self._guids.get(guid)) is not None:
            return known
        missing = f"no schema has the GUID {guid}"
        self._absent.check(guid, missing)
        try:
            document = self._found(missing, "schemas", "guids", guid)
        except SchemaNotFoundError:
            self._absent.add(guid)
            raise
        except RegistryError as error:
            if error.status != 404:
                raise
            self._absent.add(guid)
            raise SchemaNotFoundError(f"{missing}, or the registry knows no GUIDs: {error}") from None
        schema = self._schema({"guid": guid, **document}, f"GUID {guid}")
        if schema.guid != guid:
            raise RegistryError(f"{self.url}: the answer for the GUID {guid} has the GUID {schema.guid}")
        self._guids[guid] = schema
        return schema

    def version(self, subject: str, version: int) -> SubjectVersion:  # noqa: D102 (as in Registry)
        missing = f"the subject {shown(subject)} has no version {'latest' if version == LATEST else version}"
        try:
            return self._version(subject, version, missing)
        except SchemaNotFoundError:
            if version == LATEST:
                raise
        return self._version(subject, version, missing, deleted=True)

    def versions(self, subject: str, *, deleted: bool = False) -> list[SubjectVersion]:  # noqa: D102
        live = self._numbers(subject)
        listed = self._numbers(subject, deleted=True) if deleted else live
        return [self._listed(subject, number, deleted=number not in live) for number in listed]

    def subjects(self, *, deleted: bool = False) -> list[str]:  # noqa: D102 (as in Registry)
        return self._names("subjects", query={"deleted": "true"} if deleted else None)

    def contexts(self) -> list[str]:
        """The contexts, sorted; `.` is the default one."""
        # Confluent calls the default context `.`, Apicurio `:.:`.
        return sorted({name.strip(":") or DEFAULT_CONTEXT for name in self._names("contexts")})

    def rules(self, subject: str) -> CompatibilityRules:  # noqa: D102 (as in Registry)
        found, what = self._in_force("config", subject), f"config of {shown(subject)}"
        self._text(found, "compatibilityLevel", what)
        in_force = StoredRegistry()
        self._configure(in_force, subject, found)
        return in_force.rules(subject)

    def mode(self, subject: str) -> str:  # noqa: D102 (as in Registry)
        found = self._in_force("mode", subject)
        return self._text(found, "mode", f"mode of {shown(subject)}")

    def find(self, subject: str, schema: Schema) -> SubjectVersion | None:
        """The version of a subject that has this schema, or None."""
        try:
            document = self._found("", "subjects", subject, body=_body(schema))
        except SchemaNotFoundError:
            return None
        return self._kept(document, subject, None)

    def register(self, subject: str, schema: Schema) -> int:
        """Makes a schema the next version of a subject, unless it already is a version; returns its id.

        Its compatibility is checked here, where the reasons are named, and then by the registry. A type that
        cannot be checked here is left to the registry.

        Raises:
            IncompatibleSchemaError: if either check refuses it; nothing is registered.
            InvalidSchemaError: if it is not a schema of its type.
            RegistryError: if the registry refuses it for another reason, such as its mode.

        """
        if (known := self.find(subject, schema)) is not None and known.id is not None:
            return known.id
        if schema.schema_type in CHECKED_TYPES:
            refuse_incompatible(subject, check(self, subject, schema))
        path = ("compatibility", "subjects", subject, "versions")
        try:
            verdict = self._found("", *path, query={"verbose": "true"}, body=_body(schema))
        except SchemaNotFoundError:
            # There is no such subject yet.
            verdict = {"is_compatible": True}
        if not isinstance(verdict, dict) or verdict.get("is_compatible") is not True:
            messages = verdict.get("messages") if isinstance(verdict, dict) else None
            reasons = "; ".join(map(str, messages)) if isinstance(messages, list) else ""
            raise IncompatibleSchemaError(
                f"{self.url}: the registry calls the schema incompatible with the subject {shown(subject)}"
                f"{': ' if reasons else ''}{reasons[:_SHOWN_REASONS]}"
            )
        try:
            answer = self._client.request("POST", "subjects", subject, "versions", body=_body(schema))
        except RegistryError as error:
            if error.status == 409:
                raise IncompatibleSchemaError(str(error)) from None
            raise
        return self._number(answer, "id", f"registering in {shown(subject)}")

    def snapshot(self) -> StoredRegistry:
        """The whole content of the registry, in memory: two requests for a version, and three for a subject.

        A deleted version that is listed, but cannot be read, is named in `problems`.
        """
        stored = self.all_schemas()
        scopes = ["", *(qualified("", context) for context in self.contexts() if context != DEFAULT_CONTEXT)]
        for scope in [*scopes, *stored.subjects(deleted=True)]:
            self._configure(stored, scope, self._setting("config", scope))
            if mode := self._setting("mode", scope).get("mode"):
                stored.modes[scope] = str(mode)
        return stored

    def all_schemas(self) -> StoredRegistry:
        """A snapshot without settings: two requests for a subject, and one or two for each new version."""
        stored = StoredRegistry()
        for subject in self.subjects(deleted=True):
            live = self._numbers(subject)
            for number in self._numbers(subject, deleted=True):
                try:
                    stored.put(self._listed(subject, number, deleted=number not in live))
                except (SchemaNotFoundError, SchemaReferenceError) as error:
                    stored.problems.append(f"{self.url}: {error}")
        return stored

    def _in_force(self, kind: str, subject: str) -> Any:
        try:
            return self._found("", kind, subject, query={"defaultToGlobal": "true"})
        except SchemaNotFoundError:
            # Apicurio, of a subject without versions.
            return self._client.request("GET", kind)

    def _configure(self, stored: StoredRegistry, scope: str, config: Document) -> None:
        try:
            apply_config(stored, scope, config)
        except InvalidRecordError as error:
            raise RegistryError(f"{self.url}: config of {shown(scope)}: {error}") from None

    def _setting(self, kind: str, scope: str) -> Document:
        try:
            found = self._client.request("GET", kind, *([scope] if scope else []))
        except RegistryError as error:
            if error.status == 404:
                return {}
            raise
        return found if isinstance(found, dict) else {}

    def _listed(self, subject: str, number: int, *, deleted: bool) -> SubjectVersion:
        missing = f"the subject {shown(subject)} lists the version {number}, but it cannot be read"
        return self._version(subject, number, missing, deleted=deleted)

    def _version(self, subject: str, version: int, missing: str, *, deleted: bool = False) -> SubjectVersion:
        known = self._versions.get((subject, version))
        if known is not None and known.deleted == deleted:
            return known
        number = "latest" if version == LATEST else str(version)
        query = {"deleted": "true"} if deleted else None
        document = self._found(missing, "subjects", subject, "versions", number, query=query)
        return self._kept(document, subject, None if version == LATEST else version, deleted=deleted)

    def _kept(
        self, document: Document, subject: str, version: int | None, *, deleted: bool = False
    ) -> SubjectVersion:
        """A version from an answer, which may not match the request."""
        what = f"{shown(subject)} version {'?' if version is None else version}"
        number, schema_id = self._number(document, "version", what), self._number(document, "id", what)
        if version is not None and number != version:
            raise RegistryError(f"{self.url}: {what}: the answer is version {number}")
        # An alias is answered with the subject that it means.
        name = document.get("subject")
        name = name if isinstance(name, str) and name else subject
        schema = self._remember(context_of(name), schema_id, self._schema(document, what))
        found = SubjectVersion(name, number, schema_id, schema, deleted)
        self._versions[subject, number] = found
        return found

    def _remember(self, context: str, schema_id: int, schema: Schema) -> Schema:
        known = self._schemas.setdefault((context, schema_id), schema)
        if known.text != schema.text:
            raise RegistryError(f"{self.url}: id {schema_id} is another schema than in an earlier answer")
        if schema.guid is not None:
            self._guids.setdefault(schema.guid, schema)
        return schema

    def _schema(self, document: object, what: str) -> Schema:
        try:
            if not isinstance(document, dict):
                raise InvalidRecordError("expected an object")
            guid = document.get("guid")
            return parsed_schema(document, guid.lower() if isinstance(guid, str) else None)
        except InvalidRecordError as error:
            raise RegistryError(f"{self.url}: {what}: {error}") from None

    def _numbers(self, subject: str, *, deleted: bool = False) -> dict[int, None]:
        """The numbers of a subject's versions, in order."""
        query = {"deleted": "true"} if deleted else None
        try:
            found = self._found("", "subjects", subject, "versions", query=query)
        except SchemaNotFoundError:
            return {}
        if not isinstance(found, list) or not all(type(one) is int and one > 0 for one in found):
            raise RegistryError(f"{self.url}: versions of {shown(subject)}: expected a list of numbers")
        return dict.fromkeys(sorted(found))

    def _names(self, kind: str, query: dict[str, str] | None = None) -> list[str]:
        found = self._client.request("GET", kind, query=query)
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise RegistryError(f"{self.url}: {kind}: expected a list of names")
        return sorted(set(found))

    def _number(self, document: object, name: str, what: str) -> int:
        value = document.get(name) if isinstance(document, dict) else None
        if type(value) is not int or not 0 <= value < 2**31:
            raise RegistryError(f"{self.url}: {what}: {name}: expected a number")
        return value

    def _text(self, document: object, name: str, what: str) -> str:
        value = document.get(name) if isinstance(document, dict) else None
        if not isinstance(value, str):
            raise RegistryError(f"{self.url}: {what}: {name}: expected text")
        return value

    def _found(
        self,
        missing: str,
        *path: str,
        query: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
    ) -> Any:
        """An answer, or SchemaNotFoundError if the registry says that there is none."""
        try:
            return self._client.request("GET" if body is None else "POST", *path, query=query, body=body)
        except RegistryError as error:
            # With another error code, or none, the 404 does not come from the registry.
            if error.status == 404 and error.error_code is not None:
                raise SchemaNotFoundError(missing or str(error)) from None
            raise


def _body(schema: Schema) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema.text, "schemaType": schema.schema_type}
    if schema.references:
        body["references"] = [
            {"name": reference.name, "subject": reference.subject, "version": reference.version}
            for reference in schema.references
        ]
    for name, value in (("metadata", schema.metadata), ("ruleSet", schema.rule_set)):
        if value is not None:
            body[name] = value
    return body
