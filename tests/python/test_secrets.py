"""Passwords, keys and tokens in messages and records are hidden, whoever shows them, unless asked for."""

from __future__ import annotations

import base64
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow.parquet as pq
import pytest
from conftest import Cli
from magicbyte.message import apis, decode_request, decode_response, encode_request, encode_response
from magicbyte.wire import Exchanges

SECRET = b"SECRET-OF-KAFKA!"
TEXT = SECRET.decode()
FORMS = (TEXT, base64.b64encode(SECRET).decode(), SECRET.hex())
VERSIONS = {api.name: range(api.min_version, api.max_version + 1) for api in apis()}
SECRET_CONFIGS = (
    "listener.name.internal.ssl.key.password",
    "sasl.jaas.config",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
    "password.encoder.old.secret",
    "delegation.token.secret.key",
    "rsm.config.storage.aws.secret.access.key",
    "some.plugin.API_TOKEN",
)


def configs(**more: Any) -> list[dict[str, Any]]:
    public = [{"name": "retention.ms", "value": "12345", **more}, {"name": "x", "value": None, **more}]
    return [*({"name": name, "value": TEXT, **more} for name in SECRET_CONFIGS), *public]


def metadata_batch() -> bytes:
    builder = magicbyte.RecordsBuilder()
    for offset, value in enumerate(RECORDS):
        builder.append(offset, 0, None, value)
    return builder.build()


def compact(data: bytes) -> bytes:
    return bytes([len(data) + 1]) + data


SCRAM = b"\1\x0b\0" + compact(b"alice") + b"\1" + 3 * compact(SECRET) + b"\0\0\x10\0\0"
CONFIG = b"\1\4\0\4" + compact(b"1") + compact(b"ssl.key.password") + compact(SECRET) + b"\0"
PUBLIC = b"\1\4\0\2" + compact(b"topic-with-a-token") + compact(b"retention.ms") + compact(b"12345") + b"\0"
LATER = b"\1\x0b\x09" + SECRET
RECORDS = (SCRAM, CONFIG, PUBLIC)
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"

# By API: a request and its response.
MESSAGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "SaslAuthenticate": ({"authBytes": SECRET}, {"authBytes": SECRET}),
    "AlterUserScramCredentials": (
        {
            "deletions": [],
            "upsertions": [
                {"name": "a", "mechanism": 1, "iterations": 1, "salt": SECRET, "saltedPassword": SECRET}
            ],
        },
        {},
    ),
    "CreateDelegationToken": ({}, {"tokenId": "t", "hmac": SECRET}),
    "RenewDelegationToken": ({"hmac": SECRET}, {}),
    "ExpireDelegationToken": ({"hmac": SECRET}, {}),
    "DescribeDelegationToken": ({}, {"tokens": [{"tokenId": "t", "hmac": SECRET}]}),
    "Envelope": (
        {"requestData": SECRET, "clientHostAddress": b"\x7f\0\0\1"},
        {"responseData": SECRET},
    ),
    "CreateTopics": ({"topics": [{"name": "a-token", "configs": configs()}]}, {}),
    "AlterConfigs": ({"resources": [{"resourceType": 4, "resourceName": "1", "configs": configs()}]}, {}),
    "IncrementalAlterConfigs": (
        {"resources": [{"resourceType": 4, "resourceName": "1", "configs": configs(configOperation=0)}]},
        {},
    ),
    "DescribeConfigs": (
        {"resources": []},
        {
            "results": [
                {
                    "resourceType": 4,
                    "resourceName": "1",
                    "configs": [
                        *configs(),
                        {"name": "of a plugin", "value": TEXT, "isSensitive": True},
                    ],
                }
            ]
        },
    ),
    "Fetch": (
        {"topics": []},
        {"responses": [{"partitions": [{"partitionIndex": 0, "records": SECRET}]}]},
    ),
    "FetchSnapshot": (
        {"topics": []},
        {"topics": [{"name": "__cluster_metadata", "partitions": [{"unalignedRecords": SECRET}]}]},
    ),
}


def frames(api: str, version: int) -> tuple[bytes, bytes]:
    request, response = MESSAGES[api]
    if api == "Fetch":
        topic = {"topicId": TOPIC_ID} if version > 12 else {"topic": "__cluster_metadata"}
        response = {"responses": [{**response["responses"][0], **topic}]}
    header = {"correlationId": 1}
    return (
        encode_request(api, version, request, header={**header, "clientId": "c"}),
        encode_response(api, version, response, header=header),
    )


def hides(shown: str) -> bool:
    return not any(form in shown for form in FORMS)


@pytest.mark.parametrize("api", MESSAGES)
def test_every_version_hides_them(api: str) -> None:
    for version in VERSIONS[api]:
        request, response = frames(api, version)
        assert SECRET in request + response
        shown = str(decode_request(request, secrets=False)) + str(
            decode_response(response, api, version, secrets=False)
        )
        assert hides(shown), (version, shown)
        if "configs" in shown:
            assert "'12345'" in shown
        # The codec is lossless.
        read = decode_request(request)
        assert encode_request(api, version, read.body, header=read.header) == request
        answer = decode_response(response, api, version)
        assert encode_response(api, version, answer.body, header=answer.header) == response


def test_what_is_not_secret_stays() -> None:
    body = {"resources": [{"resourceType": 2, "resourceName": "t", "configs": configs()}]}
    shown = decode_request(encode_request("AlterConfigs", 2, body), secrets=False).body
    (resource,) = shown["resources"]
    values = {config["name"]: config["value"] for config in resource["configs"]}
    assert {values[name] for name in SECRET_CONFIGS} == {"[hidden]"}
    # Null is not secret: it deletes a config.
    assert (values["retention.ms"], values["x"]) == ("12345", None)
    records = {"topic": "orders", "partitions": [{"partitionIndex": 0, "records": b"records"}]}
    answer = decode_response(
        encode_response("Fetch", 12, {"responses": [records]}), "Fetch", 12, secrets=False
    )
    assert answer.body["responses"][0]["partitions"][0]["records"] == b"records"


@pytest.fixture
def streams(tmp_path: Path) -> list[str]:
    """The options of `magicbyte wire` for a connection with all messages."""
    sides: tuple[list[bytes], list[bytes]] = ([], [])
    for api in MESSAGES:
        for side, frame in zip(sides, frames(api, VERSIONS[api][-1]), strict=True):
            side.append(struct.pack(">i", len(frame)) + frame)
    options = []
    for name, side in zip(("requests", "responses"), sides, strict=True):
        (tmp_path / name).write_bytes(b"".join(side))
        options += [f"--{name}", str(tmp_path / name)]
    return options


def test_captures(streams: list[str], tmp_path: Path, cli: Cli) -> None:
    printed = cli("wire", "--json", *streams)
    assert [json.loads(line)["api"] for line in printed.splitlines()] == [*MESSAGES]
    assert hides(printed)
    assert '"[hidden]"' in printed
    assert "12345" in printed
    revealed = cli("wire", "--json", "--show-secrets", *streams)
    assert all(form in revealed for form in FORMS[:2])
    assert hides(cli("wire", *streams))
    cli("wire", "--parquet", tmp_path / "p.parquet", *streams)
    assert hides(str(pq.read_table(tmp_path / "p.parquet").to_pylist()))
    cli("wire", "--show-secrets", *streams, code=2)


def test_captures_in_python(streams: list[str]) -> None:
    _, requests, _, responses = streams
    hidden = [*Exchanges.of_streams(requests, responses)]
    assert hides("".join(f"{one} {one.request} {one.response}" for one in hidden))
    shown = [*Exchanges.of_streams(requests, responses, secrets=True)]
    assert TEXT in "".join(f"{one.request} {one.response}" for one in shown)


@pytest.fixture
def metadata(tmp_path: Path) -> Path:
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    (directory / "00000000000000000000.log").write_bytes(metadata_batch())
    return directory


@pytest.mark.parametrize("command", ["dump", "records"])
def test_records_of_the_cluster(metadata: Path, cli: Cli, command: str) -> None:
    printed = cli(command, metadata)
    assert "alice" in printed
    assert hides(printed)
    assert "[hidden]" in printed
    assert "12345" in printed
    revealed = cli(command, metadata, "--show-secrets")
    assert all(form in revealed for form in FORMS[:2])


@pytest.mark.parametrize("command", ["dump", "records"])
def test_records_of_a_later_version(tmp_path: Path, cli: Cli, command: str) -> None:
    """They do not decode, and are not shown as bytes either."""
    builder = magicbyte.RecordsBuilder()
    builder.append(0, 0, None, LATER)
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "__cluster_metadata-0" / "00000000000000000000.log").write_bytes(builder.build())
    assert hides(cli(command, tmp_path / "__cluster_metadata-0", code=1))
    revealed = cli(command, tmp_path / "__cluster_metadata-0", "--show-secrets", code=1)
    assert any(form in revealed for form in FORMS)


def test_topics_and_their_configs(metadata: Path, cli: Cli) -> None:
    topic_id = bytes(15) + b"M"
    topic = b"\1\2\0" + compact(b"orders") + topic_id + b"\0"
    replicas = b"\2" + bytes(4)
    partition = b"\1\3\0" + bytes(4) + topic_id + 2 * replicas + b"\1\1" + bytes(12) + b"\0"
    configs = [
        b"\1\4\0\2" + compact(b"orders") + compact(name) + compact(value) + b"\0"
        for name, value in ((b"plugin.secret", SECRET), (b"retention.ms", b"12345"))
    ]
    builder = magicbyte.RecordsBuilder()
    for offset, value in enumerate([topic, partition, *configs]):
        builder.append(offset, 0, None, value)
    (metadata / "00000000000000000000.log").write_bytes(builder.build())
    for options in ([], ["--json"]):
        printed = cli("topics", metadata.parent, *options)
        assert hides(printed)
        assert "12345" in printed
        assert "[hidden]" in printed


def test_help_names_the_option() -> None:
    for command in ("wire", "dump", "records"):
        done = subprocess.run(
            [sys.executable, "-m", "magicbyte", command, "--help"], capture_output=True, text=True, check=True
        )
        assert "--show-secrets" in done.stdout
