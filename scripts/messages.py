"""Writes messages.json, the messages of Kafka's protocol and the records of its internal topics, from the
definitions inside its jars, and error_names.rs, errors.py and api_keys.py from its enums `Errors` and
`ApiKeys`. Needs jshell, which comes with every JDK.

    python scripts/messages.py [--check] kafka-clients-4.4.0.jar kafka-clients-3.9.1.jar records/*.jar

The first jar has the newest definitions, the second those of APIs and versions that were removed since. A
removed version is read by the newest definition if that still describes it as the old one did, and else by a
definition of its own. The other jars define the records of one internal topic each; a release describes
every version that an earlier one may have stored. Error codes are never removed. With --check nothing is
written, and a file that differs is an error.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from message_types import write_or_check

CRATES = Path(__file__).parents[1] / "crates"
MESSAGES = CRATES / "magicbyte-protocol" / "src" / "message" / "messages.json"
ERROR_NAMES = CRATES / "magicbyte-broker" / "src" / "error_names.rs"
PYTHON = CRATES.parent / "python" / "magicbyte" / "message"
# A constant of each enum in a line. Retriable errors are known by their exceptions.
ENUMS = """
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.*;
for (var api : ApiKeys.values()) System.out.println("api " + api.id + " " + api.name());
for (var error : Errors.values()) {
    var retriable = error.exception() instanceof RetriableException;
    System.out.println("error " + error.code() + " " + error.name() + " " + retriable);
}
/exit
"""
KINDS = ("header", "request", "response")
RECORD_KINDS = ("coordinator-key", "coordinator-value", "metadata")
TOPICS = {
    "kafka-group-coordinator": "__consumer_offsets",
    "kafka-transaction-coordinator": "__transaction_state",
    "kafka-share-coordinator": "__share_group_state",
    "kafka-metadata": "__cluster_metadata",
    "kafka-storage": "__remote_log_metadata",
}
# What is inside other records: what the members of a group tell each other, and control records.
DATA = (
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "VotersRecord",
)
# Kafka's definitions do not say which fields are secret: see `secrets.rs` beside it.
SECRETS = {
    "SaslAuthenticateRequest": {"authBytes": "always"},
    "SaslAuthenticateResponse": {"authBytes": "always"},
    "CreateDelegationTokenResponse": {"hmac": "always"},
    "RenewDelegationTokenRequest": {"hmac": "always"},
    "ExpireDelegationTokenRequest": {"hmac": "always"},
    "DescribeDelegationTokenResponse": {"tokens.hmac": "always"},
    "AlterUserScramCredentialsRequest": {"upsertions.salt": "always", "upsertions.saltedPassword": "always"},
    # A request or response of any API.
    "EnvelopeRequest": {"requestData": "always"},
    "EnvelopeResponse": {"responseData": "always"},
    "CreateTopicsRequest": {"topics.configs.value": "config"},
    "CreateTopicsResponse": {"topics.configs.value": "config"},
    "AlterConfigsRequest": {"resources.configs.value": "config"},
    "IncrementalAlterConfigsRequest": {"resources.configs.value": "config"},
    "DescribeConfigsResponse": {
        "results.configs.value": "config",
        "results.configs.synonyms.value": "config",
    },
    "FetchResponse": {"responses.partitions.records": "cluster-metadata"},
    "FetchSnapshotResponse": {"topics.partitions.unalignedRecords": "cluster-metadata"},
    "UserScramCredentialRecord": {"salt": "always", "storedKey": "always", "serverKey": "always"},
    "ConfigRecord": {"value": "config"},
}
INTEGERS = ("int8", "int16", "uint16", "int32", "uint32", "int64")
SCALARS = (*INTEGERS, "bool", "float64", "string", "bytes", "records", "uuid")
MAX = 32767
Json = dict[str, Any]


def main() -> int:
    """Writes or checks the file; returns the exit code."""
    arguments = [one for one in sys.argv[1:] if one != "--check"]
    if len(arguments) != 2 + len(TOPICS):
        print(__doc__, file=sys.stderr)
        return 2
    newest, removed, *topics = map(Path, arguments)
    requests = merged(by_key(newest), by_key(removed))
    keys, codes = enums(newest)
    files = {
        MESSAGES: written([*requests, *records(topics), *data(newest)]),
        ERROR_NAMES: error_names(codes),
        PYTHON / "api_keys.py": api_keys(keys),
        PYTHON / "errors.py": errors_enum(codes),
    }
    return write_or_check(files, "the jars: run scripts/messages.py")


def enums(jar: Path) -> tuple[list[list[str]], list[list[str]]]:
    """The constants of `ApiKeys`, number and name, and of `Errors`, also with "true" for a retriable one."""
    home = os.environ.get("JAVA_HOME")
    jshell = os.path.join(home, "bin", "jshell") if home else "jshell"
    # The enums log by slf4j, whose jar is beside Kafka's.
    command = [jshell, "--class-path", f"{jar.parent}/*", "-s", "-"]
    shown = subprocess.run(command, input=ENUMS, check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in shown.splitlines()]
    keys = [row for kind, *row in lines if kind == "api"]
    codes = sorted((row for kind, *row in lines if kind == "error"), key=lambda row: int(row[0]))
    if [int(code) for code, *_ in codes] != [*range(-1, len(codes) - 1)] or not codes:
        raise SystemExit(f"Errors: {len(codes)} constants, whose codes are not a sequence\n{shown}")
    return keys, codes


def error_names(codes: list[list[str]]) -> str:
    """The names of error codes as a table in Rust."""
    rows = "".join(f'    ({code}, "{name}"),\n' for code, name, _ in codes)
    return f"""\
//! Kafka's names of error codes (`Errors`). Written by `scripts/messages.py`.

/// Code and name, by code.
pub(crate) const ERROR_NAMES: [(i16, &str); {len(codes)}] = [
{rows}];
"""


def errors_enum(codes: list[list[str]]) -> str:
    """`Errors` in Python."""
    rows = "".join(
        f"    {name} = {code}, True\n" if retriable == "true" else f"    {name} = {code}\n"
        for code, name, retriable in codes
    )
    return f'''\
"""Kafka's error codes. Written by `scripts/messages.py`."""

from magicbyte.message.error_code import ErrorCode


class Errors(ErrorCode):
    """Kafka's error codes, those of retriable errors with True (`Errors`)."""

{rows}'''


def api_keys(keys: list[list[str]]) -> str:
    """`ApiKeys` in Python."""
    rows = "".join(f"    {name} = {key}\n" for key, name in keys)
    return f'''\
"""The numbers of Kafka's APIs. Written by `scripts/messages.py`."""

from enum import IntEnum


class ApiKeys(IntEnum):
    """The APIs of Kafka's protocol by their numbers (`ApiKeys`); `apis` has their versions."""

{rows}'''


def written(messages: list[Json]) -> str:
    """One definition per line, so that a new version of Kafka shows as a readable difference."""
    marked = {(message["name"], path) for message in messages for path in secret_paths(message["fields"])}
    listed = {(name, path) for name, paths in SECRETS.items() for path in paths}
    if marked != listed:
        raise SystemExit(f"secret fields that no definition has: {sorted(listed - marked)}")
    lines = (json.dumps(message, separators=(",", ":"), ensure_ascii=False) for message in messages)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def secret_paths(fields: list[Json], parent: str = "") -> list[str]:
    """The paths of the fields that are marked as secret."""
    found = []
    for field in fields:
        path = parent + field["name"]
        found += [path] if "secret" in field else []
        found += secret_paths(field.get("fields", []), f"{path}.")
    return found


def definitions(jar: Path) -> list[Json]:
    """All messages that a jar defines and that have a version, by name."""
    found = []
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.endswith(".json"):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                message = json.loads(text)
                if message["validVersions"] != "none":
                    found.append(message)
    return sorted(found, key=lambda message: message["name"])


def by_key(jar: Path) -> dict[tuple[str, int], Json]:
    """The messages of the protocol by kind and API key; headers have the key -1."""
    found = {}
    for message in definitions(jar):
        if message["type"] in KINDS:
            key = message.get("apiKey", -1)
            # The two headers share a kind.
            found[message["name"] if key < 0 else message["type"], key] = message
    return found


def records(jars: list[Path]) -> list[Json]:
    """The records of the internal topics, in the order of topic, type and kind."""
    rows = []
    for jar in jars:
        topic = TOPICS[re.sub(r"-\d.*", "", jar.name)]
        found = [message for message in definitions(jar) if message["type"] in RECORD_KINDS]
        if not found:
            raise SystemExit(f"{jar} defines no records")
        rows += [{"topic": topic, **compact(one, {*numbers(one["validVersions"])})} for one in found]
    return sorted(rows, key=lambda row: (row["topic"], row["apiKey"], row["type"]))


def data(jar: Path) -> list[Json]:
    """The messages that are parts of records."""
    found = [message for message in definitions(jar) if message["name"] in DATA]
    if len(found) != len(DATA):
        raise SystemExit(f"{jar} does not define all of {DATA}")
    return [compact(one, {*numbers(one["validVersions"])}) for one in found]


def merged(newest: dict[tuple[str, int], Json], removed: dict[tuple[str, int], Json]) -> list[Json]:
    """All definitions, in the order of kind, API key and version."""
    rows = []
    for one in sorted(newest.keys() | removed.keys(), key=lambda one: (one[1], one[0])):
        new, old = newest.get(one), removed.get(one)
        versions = set(numbers(new["validVersions"])) if new else set()
        gone = set(numbers(old["validVersions"])) - versions if old else set()
        if new and old:
            for version in sorted(gone, reverse=True):
                if version + 1 not in versions or at(new, version) != at(old, version):
                    break
                versions.add(version)
        if old and gone - versions:
            rows.append(compact(old, gone - versions))
        if new:
            rows.append(compact(new, versions))
    return rows


def numbers(text: str) -> range:
    """The versions of "none", "3", "0-2" or "4+"."""
    if text == "none":
        return range(0)
    first, dash, last = text.removesuffix("+").partition("-")
    if text.endswith("+"):
        return range(int(first), MAX + 1)
    return range(int(first), int(last if dash else first) + 1)


def at(message: Json, version: int) -> Any:
    """What a definition says about the bytes of one version."""
    flexible = version in numbers(message.get("flexibleVersions", "none"))
    return flexible, fields_at(compact(message, {version})["fields"], version)


def fields_at(fields: list[Json], version: int) -> list[Any]:
    """The fields that a version has."""
    rows = []
    for field in fields:
        if version in numbers(field["versions"]):
            tag = field["tag"] if version in numbers(field.get("taggedVersions", "none")) else None
            null = version in numbers(field.get("nullableVersions", "none"))
            inner = fields_at(field.get("fields", []), version)
            flexible = field.get("flexibleVersions")
            rows.append((field["name"], field["type"], tag, null, field.get("default"), flexible, inner))
    return rows


def compact(message: Json, versions: set[int]) -> Json:
    """A definition without texts and defaults that are zero, and with shared structures in their places."""
    first, last = min(versions), max(versions)
    if versions != set(range(first, last + 1)):
        raise SystemExit(f"{message['name']}: versions {sorted(versions)} are not one range")
    structs = {struct["name"]: struct["fields"] for struct in message.get("commonStructs", [])}
    row: Json = {key: message[key] for key in ("apiKey", "type", "name") if key in message}
    row["validVersions"] = f"{first}-{last}"
    row["flexibleVersions"] = message.get("flexibleVersions", "none")
    secrets = SECRETS.get(message["name"], {})
    row["fields"] = [compact_field(field, structs, secrets) for field in message["fields"]]
    return row


def compact_field(
    field: Json, structs: dict[str, list[Json]], secrets: dict[str, str], parent: str = ""
) -> Json:
    """A field, with those of its structure inside it. `secrets` has the paths of secret fields."""
    array, name = re.fullmatch(r"(\[\])?(\w+)", field["type"]).groups()  # type: ignore[union-attr]
    # As Kafka's classes and their JSON spell it.
    row: Json = {"name": field["name"][0].lower() + field["name"][1:]}
    row["type"] = (array or "") + (name if name in SCALARS else "struct")
    if name not in SCALARS:
        row["struct"] = name
    # As `FieldSpec`.
    row["versions"] = field.get("versions") or field["taggedVersions"]
    for key in ("nullableVersions", "tag", "taggedVersions", "flexibleVersions"):
        if key in field:
            row[key] = field[key]
    default = default_of(field)
    if default not in (False, 0, ""):
        row["default"] = default
    path = parent + row["name"]
    if path in secrets:
        row["secret"] = secrets[path]
    if name not in SCALARS:
        inner = field.get("fields") or structs[name]
        row["fields"] = [compact_field(one, structs, secrets, f"{path}.") for one in inner]
    return row


def default_of(field: Json) -> Any:
    """The default as JSON; "null" stands for null, of any type."""
    default = field.get("default")
    if default is None:
        # As if it were absent (`FieldSpec`).
        default = ""
    if field["type"] in INTEGERS and default != "":
        return int(str(default), 0)
    if field["type"] == "bool":
        return str(default) == "true" or default is True
    if default not in ("", "null"):
        raise SystemExit(f"{field['name']}: a default of {default!r} is not expected")
    return default


if __name__ == "__main__":
    sys.exit(main())
