"""Types of messages for type checkers, and the names of APIs and error codes."""

from __future__ import annotations

import ast
import copy
import doctest
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from made_messages import definition, structure
from magicbyte import Error, message
from magicbyte.message import (
    ApiKeys,
    Errors,
    apis,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    error_name,
)

ROOT = Path(__file__).parents[2]
BODIES = ROOT / "python" / "magicbyte" / "message" / "bodies.pyi"

# After `#`, the type that is revealed, or "refused".
SAMPLES = """
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from magicbyte.message import (
    ApiKeys, Errors, Message, apis, decode_request, decode_response, encode_request, encode_response,
)

if TYPE_CHECKING:
    from magicbyte.message.bodies import FetchResponse, MetadataRequest

frame = memoryview(b"")
fetch = decode_response(frame, "Fetch", 12)
partition = fetch.body["responses"][0]["partitions"][0]
reveal_type(partition["records"])  # bytes | None
reveal_type(partition["highWatermark"])  # int
reveal_type(fetch.body["responses"][0]["topicId"])  # str
reveal_type((partition["abortedTransactions"] or [])[0]["producerId"])  # int
fetch.body["response"]  # refused
reveal_type(decode_response(frame, ApiKeys.FETCH, 12).body["throttleTimeMs"])  # int
reveal_type(decode_response(frame, "FindCoordinator", 4).body["coordinators"][0]["host"])  # str
reveal_type(decode_response(frame, "DescribeQuorum", 0).body.get("errorMessage"))  # str | None
reveal_type(decode_response(frame, "Fetch", 12, secrets=False).body)  # Any
reveal_type(decode_response(frame, 1, 12).body)  # Any
reveal_type(decode_request(frame).body)  # dict[str, Any]
decode_response("text", "Fetch", 12)  # refused
typed: Message[FetchResponse] = fetch
untyped: Message = decode_request(frame)

encode_request("Metadata", 12, {})
encode_request("Metadata", 12, {"topics": None})
encode_request("Metadata", 12, {"topics": [{"name": "a"}], "allowAutoTopicCreation": False})
encode_request("Metadata", 12, {"topics": ({"topicId": ""},)}, header={"correlationId": 7})
encode_request("Metadata", 12, {"_unknownTaggedFields": {9: b""}})
encode_request("Metadata", 12, {"topic": None})  # refused
encode_request("Metadata", 12, {"topics": [{"nam": "a"}]})  # refused
encode_request("Metadata", 12, {"topics": [{"name": 5}]})  # refused
encode_request("Metadata", 12, {"allowAutoTopicCreation": None})  # refused
encode_request("Meta", 12, {})  # refused
encode_request("Produce", 9, {"topicData": [{"partitionData": [{"index": 0, "records": frame}]}]})
body: MetadataRequest = {"topics": []}
body["includeTopicAuthorizedOperations"] = True
encode_request("Metadata", 12, body)
wrong: MetadataRequest = {"topics": [], "topic": 1}  # refused
encode_response("ApiVersions", 3, {"errorCode": Errors.UNSUPPORTED_VERSION})
encode_response("ApiVersions", 3, {"errorcode": 0})  # refused
encode_response("Fetch", 12, fetch.body, header=fetch.header)

def dynamic(name: str, number: int, key: ApiKeys, given: Mapping[str, Any]) -> None:
    reveal_type(decode_response(frame, name, 12).body)  # Any
    encode_request(number, 12, given)
    encode_response(key, 12, given)
    encode_request(name, 12, given)  # refused

reveal_type(Errors(3).is_retriable)  # bool
reveal_type(Errors(2).name)  # str
reveal_type(apis()[0].min_flexible_version)  # int | None
"""


def test_examples() -> None:
    found = doctest.testmod(message)
    assert (found.failed, found.attempted) == (0, 5)


def test_generated_files_are_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "message_types.py"), "--check"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""


def test_a_type_checker_knows_bodies(tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text(SAMPLES, encoding="utf-8")
    options = ["--strict", "--cache-dir", str(tmp_path / "cache"), "--config-file", "pyproject.toml"]
    command = [sys.executable, "-m", "mypy", *options, str(sample)]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    shown: dict[int, str] = {}
    for number, kind, text in re.findall(r"sample\.py:(\d+): (error|note): (.*)", output):
        revealed = re.fullmatch(r'Revealed type is "(.*)"', text)
        if kind == "error" or revealed:
            shown[int(number)] = revealed[1].replace("builtins.", "") if revealed else "refused"
    lines = [(number, line.partition("  # ")) for number, line in enumerate(SAMPLES.splitlines(), 1)]
    assert shown == {number: wanted for number, (_, comment, wanted) in lines if comment}


class Bodies:
    """The types in `bodies.pyi`, and whether values are of them."""

    def __init__(self) -> None:
        module = ast.parse(BODIES.read_text(encoding="utf-8"))
        self.classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}

    def fields(self, name: str) -> Iterator[tuple[str, ast.expr, bool]]:
        """The fields of a type: name, type, and whether a value needs it."""
        node = self.classes[name]
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in self.classes:
                yield from self.fields(base.id)
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                ty, needed = field.annotation, not node.keywords
                if isinstance(ty, ast.Subscript) and ast.unparse(ty.value) in ("NotRequired", "ReadOnly"):
                    ty, needed = ty.slice, False
                yield field.target.id, ty, needed

    def check(self, value: Any, name: str) -> None:
        fields = {field: (ty, needed) for field, ty, needed in self.fields(name)}
        missing = {field for field, (_, needed) in fields.items() if needed} - value.keys()
        assert not missing, f"{name}: {missing}"
        for field, inner in value.items():
            assert field in fields, f"{name}: {field}"
            assert self.is_of(inner, fields[field][0]), f"{name}.{field}: {inner!r}"

    def is_of(self, value: Any, ty: ast.expr) -> bool:
        if isinstance(ty, ast.BinOp):
            return self.is_of(value, ty.left) or self.is_of(value, ty.right)
        if isinstance(ty, ast.Constant):
            return value is None
        if isinstance(ty, ast.Subscript):
            return isinstance(value, list) and all(self.is_of(one, ty.slice) for one in value)
        name = ast.unparse(ty)
        if name in self.classes and isinstance(value, dict):
            self.check(value, name)
            return True
        return type(value).__name__ == name.replace("Buffer", "bytes")


@pytest.mark.parametrize("kind", ["request", "response"])
def test_values_of_every_version_are_of_the_types(kind: str) -> None:
    bodies, random = Bodies(), Random(7)
    for api in apis():
        for version in range(api.min_version, api.max_version + 1):
            fields = definition(kind, api.key, version)["fields"]
            for _ in range(4):
                made = structure(fields, version, random)
                if kind == "request":
                    bodies.check(made, f"{api.name}Request")
                    read = decode_request(encode_request(api.key, version, made))
                    bodies.check(read.body, f"{api.name}Request")
                else:
                    bodies.check(made, f"{api.name}ResponseInput")
                    read = decode_response(encode_response(api.key, version, made), api.key, version)
                    bodies.check(read.body, f"{api.name}Response")
                    bodies.check(read.body, f"{api.name}ResponseInput")


def test_every_field_can_be_left_out() -> None:
    for api in apis():
        for version in range(api.min_version, api.max_version + 1):
            request = decode_request(encode_request(api.key, version, {}))
            response = decode_response(encode_response(api.key, version, {}), api.key, version)
            assert (request.api_version, response.api_version) == (version, version)
    (partition,) = decode_request(
        encode_request("Fetch", 12, {"topics": [{"partitions": [{"partition": 3}]}]})
    ).body["topics"][0]["partitions"]
    assert (partition["currentLeaderEpoch"], partition["fetchOffset"]) == (-1, 0)


def test_api_keys() -> None:
    assert [key.value for key in ApiKeys] == [api.key for api in apis()]
    names = {api.key: api.name for api in apis()}
    assert {key.name.replace("_", "") for key in ApiKeys} == {name.upper() for name in names.values()}
    frames = {encode_request(api, 12, {}) for api in ("Metadata", 3, ApiKeys.METADATA)}
    assert len(frames) == 1
    assert decode_request(frames.pop()).api_key is not ApiKeys.METADATA == 3
    with pytest.raises(ValueError, match="999 is not a valid ApiKeys"):
        ApiKeys(999)


def test_versions_of_headers() -> None:
    by_name = {api.name: api for api in apis()}
    fetch = by_name["Fetch"]
    assert (fetch.min_flexible_version, by_name["SaslHandshake"].min_flexible_version) == (12, None)
    versions = [(fetch.request_header_version(n), fetch.response_header_version(n)) for n in (11, 12)]
    assert versions == [(1, 0), (2, 1)]
    assert by_name["ControlledShutdown"].request_header_version(0) == 0
    assert by_name["ApiVersions"].response_header_version(3) == 0
    for version in (-1, 19, 40_000 - (1 << 16)):
        with pytest.raises(Error, match=r"FetchRequest version .* is not known") as caught:
            fetch.request_header_version(version)
        assert caught.value.kind == "unsupported_version"
    # A body without fields is what comes after the header.
    for api in apis():
        for version in range(api.min_version, api.max_version + 1):
            size = {0: 8, 1: 10, 2: 11}[api.request_header_version(version)]
            frame = encode_request(api.key, version, {}, header={} if size == 8 else {"clientId": None})
            assert frame[8:10] == b"\xff\xff" or size == 8
            assert frame[10:11] == b"\0" or size < 11


def test_error_codes() -> None:
    assert Errors(6) is Errors.NOT_LEADER_OR_FOLLOWER
    assert [code.value for code in Errors] == list(range(-1, len(Errors) - 1))
    retriable = {code.name for code in Errors if code.is_retriable}
    assert {"NOT_LEADER_OR_FOLLOWER", "COORDINATOR_LOAD_IN_PROGRESS", "REQUEST_TIMED_OUT"} <= retriable
    assert not {"NONE", "UNKNOWN_SERVER_ERROR", "OFFSET_OUT_OF_RANGE", "INVALID_RECORD"} & retriable
    assert Errors.UNKNOWN_SERVER_ERROR == -1 < Errors.NONE == 0 == False
    assert not Errors.NONE
    assert all(error_name(code.value) == code.name for code in Errors)
    assert error_name(999) is None
    with pytest.raises(ValueError, match="32768 is not a valid Errors"):
        error_name(32_768)


@pytest.mark.parametrize("code", [999, 32_767, -2, -32_768])
def test_unknown_error_codes(code: int) -> None:
    unknown = Errors(code)
    assert (unknown.name, unknown.value, unknown.is_retriable) == (str(code), code, False)
    assert unknown == code
    assert {unknown: 1}[code] == 1  # type: ignore[index]
    assert repr(unknown) == f"<Errors.{code}: {code}>"
    assert f"{unknown}" == str(code)
    for same in (pickle.loads(pickle.dumps(unknown)), copy.deepcopy(unknown), Errors(unknown)):
        assert (same, same.name) == (unknown, str(code))
    assert len(Errors) == 138


@pytest.mark.parametrize("wrong", [32_768, -32_769, 1 << 70, "NONE", None, 6.5, (6, True)])
def test_what_is_no_error_code(wrong: object) -> None:
    with pytest.raises(ValueError, match="is not a valid Errors"):
        Errors(wrong)
