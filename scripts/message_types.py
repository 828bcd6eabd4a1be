"""Writes the types of messages for type checkers, from messages.json: `bodies.pyi` and `codec.pyi` in
`python/magicbyte/message`.

    python scripts/message_types.py [--check]

With --check nothing is written, and a file that differs is an error.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "crates" / "magicbyte-protocol" / "src" / "message" / "messages.json"
TARGET = ROOT / "python" / "magicbyte" / "message"
READ = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "uuid": "str",
    "bytes": "bytes",
    "records": "bytes",
    **dict.fromkeys(("int8", "int16", "uint16", "int32", "uint32", "int64"), "int"),
}
WRITTEN = {**READ, "bytes": "Buffer", "records": "Buffer"}
MAX = 32767
Json = dict[str, Any]

BODIES = '''\
"""The bodies of requests and responses, for type checkers. Written by `scripts/message_types.py`.

`encode_request` takes a `FetchRequest`, `decode_response` returns a `FetchResponse`, and `encode_response`
takes a `FetchResponseInput`, which a `FetchResponse` is, too. The name of a structure begins with that of its
message.

Any field can be left out of a body that is written. Its default is false, 0, empty, or the one in its
comment. An array is a list or a tuple. A body that was read has all fields of its version, and a tagged field
if the frame has it. A comment names the versions of a field that not all versions have.
"""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from typing_extensions import Buffer, ReadOnly

class _Flexible(TypedDict, total=False):
    _unknownTaggedFields: dict[int, bytes]

class _FlexibleInput(TypedDict, total=False):
    _unknownTaggedFields: ReadOnly[dict[int, bytes]]
'''
CODEC = '''\
"""The functions of `codec.py` by the names of APIs. Written by `scripts/message_types.py`."""

from collections.abc import Mapping
from typing import Any, Literal, overload

from typing_extensions import Buffer

from magicbyte.message import bodies
from magicbyte.message.api_keys import ApiKeys
from magicbyte.message.model import Message

def decode_request(frame: Buffer, *, secrets: bool = True) -> Message: ...
'''
DECODE = """\
@overload
def decode_response(
    frame: Buffer, api: {api}, api_version: int, *, secrets: {secrets} = True
) -> {result}: ...
"""
ENCODE = """\
@overload
def encode_{kind}(
    api: {api},
    api_version: int,
    body: {body},
    *,
    header: Mapping[str, Any] | None = None,
) -> bytes: ...
"""


def main() -> int:
    """Writes or checks the files; returns the exit code."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    messages = [Message(definitions) for definitions in by_name(table).values()]
    files = {TARGET / "bodies.pyi": bodies(messages), TARGET / "codec.pyi": codec(messages)}
    return write_or_check(files, f"{TABLE.name}: run scripts/message_types.py")


def write_or_check(files: dict[Path, str], source: str) -> int:
    """Writes the files or, with --check, compares them with what they would be; returns the exit code."""
    code = 0
    for file, text in files.items():
        if "--check" not in sys.argv[1:]:
            file.write_text(text, encoding="utf-8")
        elif file.read_text(encoding="utf-8") != text:
            print(f"{file} does not match {source}", file=sys.stderr)
            code = 1
    return code


def by_name(table: list[Json]) -> dict[str, list[Json]]:
    """The definitions of each request and response, oldest versions first."""
    found: dict[str, list[Json]] = {}
    for definition in table:
        if definition["type"] in ("request", "response"):
            found.setdefault(definition["name"], []).append(definition)
    return found


class Message:
    """A request or response, with the fields of its structures in all versions."""

    def __init__(self, definitions: list[Json]) -> None:
        """Collects the structures, the outermost first."""
        newest = definitions[-1]
        self.name: str = newest["name"]
        self.kind: str = newest["type"]
        self.api = self.name.removesuffix("Request").removesuffix("Response")
        self.structures: dict[str, Structure] = {}
        for definition in definitions:
            flexible = numbers(definition["flexibleVersions"])
            for version in numbers(definition["validVersions"]):
                self._visit(self.name, definition["fields"], version, version in flexible)

    def _visit(self, name: str, fields: list[Json], version: int, flexible: bool) -> None:
        structure = self.structures.setdefault(name, Structure())
        structure.visits.append(version)
        structure.flexible |= flexible
        for field in fields:
            if version not in numbers(field["versions"]):
                continue
            structure.fields.setdefault(field["name"], []).append((version, field))
            if "struct" in field:
                self._visit(self.name + field["struct"], field["fields"], version, flexible)


class Structure:
    """A structure in a message."""

    def __init__(self) -> None:
        """Has no fields yet."""
        self.visits: list[int] = []
        """The versions at each of the structure's places in the message."""
        self.flexible = False
        self.fields: dict[str, list[tuple[int, Json]]] = {}
        """The versions in which a field is, and its definition in each."""


def bodies(messages: list[Message]) -> str:
    """The content of `bodies.pyi`."""
    out = [BODIES]
    names: set[str] = set()
    for message in messages:
        for name, structure in message.structures.items():
            if name in names:
                raise SystemExit(f"{name}: the name of two structures")
            names.add(name)
            if message.kind == "request":
                out.append(type_of(message, name, structure, sent))
            else:
                out.append(type_of(message, name, structure, received))
                out.append(type_of(message, f"{name}Input", structure, sent_again))
    return "\n".join(out)


def type_of(message: Message, name: str, structure: Structure, line: Any) -> str:
    """A TypedDict, with a line for each field."""
    base = "TypedDict"
    if structure.flexible:
        base = "_FlexibleInput" if name.endswith("Input") else "_Flexible"
    total = "" if line is received else ", total=False"
    fields = [line(message.name, structure, field) for field in structure.fields]
    if not fields:
        return f"class {name}({base}{total}): ...\n"
    return "".join([f"class {name}({base}{total}):\n", *(f"    {field}\n" for field in fields)])


def sent(message: str, structure: Structure, field: str) -> str:
    """A field of a request."""
    definition = structure.fields[field][-1][1]
    notes = [versions_of(structure, field), default_of(definition)]
    element = message + definition["struct"] if "struct" in definition else WRITTEN
    return line(f"{field}: {type_text(structure, field, element, 'Sequence')}", notes)


def received(message: str, structure: Structure, field: str) -> str:
    """A field of a response that was read."""
    definition = structure.fields[field][-1][1]
    element = message + definition["struct"] if "struct" in definition else READ
    ty = type_text(structure, field, element, "list")
    notes = [versions_of(structure, field), "tagged" if is_tagged(structure, field) else ""]
    return line(f"{field}: {f'NotRequired[{ty}]' if any(notes) else ty}", notes)


def sent_again(message: str, structure: Structure, field: str) -> str:
    """A field of a response that is written. A response that was read has it, so it is not for writing."""
    definition = structure.fields[field][-1][1]
    element = f"{message}{definition['struct']}Input" if "struct" in definition else WRITTEN
    ty = type_text(structure, field, element, "Sequence")
    return line(f"{field}: ReadOnly[{ty}]", [default_of(definition)])


def line(declaration: str, notes: list[str]) -> str:
    """A declaration, with its notes as a comment."""
    comment = ", ".join(note for note in notes if note)
    return f"{declaration}  # {comment}" if comment else declaration


def type_text(structure: Structure, field: str, element: str | dict[str, str], array: str) -> str:
    """The type of a field over all versions."""
    found: dict[str, None] = {}
    for version, definition in structure.fields[field]:
        kind = definition["type"]
        ty = element if isinstance(element, str) else element[kind.removeprefix("[]")]
        found[f"{array}[{ty}]" if kind.startswith("[]") else ty] = None
        if version in numbers(definition.get("nullableVersions", "none")):
            found["None"] = None
    # None comes last.
    return " | ".join(sorted(found, key=lambda ty: ty == "None"))


def is_tagged(structure: Structure, field: str) -> bool:
    """Whether a frame need not have the field."""
    return any(
        version in numbers(definition.get("taggedVersions", "none"))
        for version, definition in structure.fields[field]
    )


def versions_of(structure: Structure, field: str) -> str:
    """The versions that have a field, as "versions 1-8"; empty if it is wherever its structure is."""
    here = [version for version, _ in structure.fields[field]]
    if sorted(here) == sorted(structure.visits):
        return ""
    first, last = min(here), max(here)
    if last == max(structure.visits):
        return f"versions {first}+"
    return f"version {first}" if first == last else f"versions {first}-{last}"


def default_of(definition: Json) -> str:
    """A default other than false, zero or empty."""
    default = definition.get("default")
    if default is None:
        return ""
    return f"default {'None' if default == 'null' else default}"


def codec(messages: list[Message]) -> str:
    """The content of `codec.pyi`. What no overload describes is plain data."""
    requests = [message for message in messages if message.kind == "request"]
    responses = [message for message in messages if message.kind == "response"]
    out = [CODEC]
    for one in responses:
        api = f'Literal["{one.api}", ApiKeys.{constant(one.api)}]'
        out.append(DECODE.format(api=api, secrets="Literal[True]", result=f"Message[bodies.{one.name}]"))
    out.append(DECODE.format(api="int | str", secrets="bool", result="Message[Any]"))
    for kind, messages_of_kind, suffix in (("request", requests, ""), ("response", responses, "Input")):
        for one in messages_of_kind:
            body = f"bodies.{one.name}{suffix}"
            out.append(ENCODE.format(kind=kind, api=f'Literal["{one.api}"]', body=body))
        out.append(ENCODE.format(kind=kind, api="int", body="Mapping[str, Any]"))
    return "".join(out)


def constant(api: str) -> str:
    """The name in Kafka's `ApiKeys`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", api).upper()


def numbers(text: str) -> range:
    """The versions of "none", "3", "0-2" or "4+"."""
    if text == "none":
        return range(0)
    first, dash, last = text.removesuffix("+").partition("-")
    return range(int(first), MAX + 1 if text.endswith("+") else int(last if dash else first) + 1)


if __name__ == "__main__":
    sys.exit(main())
