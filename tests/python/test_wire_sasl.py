"""Connections that authenticate as clients from 0.10 to 2.0 do: SaslHandshake version 0, then raw tokens."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from conftest import Cli
from magicbyte.message import encode_request, encode_response

PASSWORD = b"\0alice\0PASS-OF-ALICE"
TOKEN = "(SASL token)"


def request(api: str, version: int, correlation_id: int, **body: object) -> bytes:
    return encode_request(api, version, body, header={"correlationId": correlation_id, "clientId": "old"})


def response(api: str, version: int, correlation_id: int, **body: object) -> bytes:
    return encode_response(api, version, body, header={"correlationId": correlation_id})


def conversation(first: int, *, versions_first: bool, tokens: int) -> list[tuple[bytes, bytes]]:
    """Requests with their responses; `first` is the first correlation id."""
    pairs, number = [], first
    if versions_first:
        pairs.append((request("ApiVersions", 0, number), response("ApiVersions", 0, number)))
        number += 1
    pairs.append(
        (
            request("SaslHandshake", 0, number, mechanism="PLAIN"),
            response("SaslHandshake", 0, number, mechanisms=["PLAIN"]),
        )
    )
    # A token may be empty; the last answer of PLAIN is.
    pairs += [(PASSWORD, b"n,,server") for _ in range(tokens - 1)]
    pairs.append((PASSWORD, b""))
    for later in range(2):
        metadata = request("Metadata", 1, later, topics=[{"name": "orders"}])
        pairs.append((metadata, response("Metadata", 1, later)))
    return pairs


def streams(tmp_path: Path, pairs: list[tuple[bytes, bytes]]) -> list[object]:
    options: list[object] = []
    for name, side in zip(("requests", "responses"), zip(*pairs, strict=True), strict=True):
        (tmp_path / name).write_bytes(b"".join(struct.pack(">i", len(one)) + one for one in side))
        options += [f"--{name}", tmp_path / name]
    return options


def capture(pairs: list[tuple[bytes, bytes]]) -> bytes:
    """One connection, each frame in a packet of its own."""
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 101)
    sequences = [100, 200]

    def packet(side: int, flags: int, data: bytes = b"") -> None:
        nonlocal out
        ports = (5000, 9092) if side == 0 else (9092, 5000)
        acknowledged = sequences[1 - side] if flags & 16 else 0
        tcp = struct.pack(">HHIIBBHHH", *ports, sequences[side], acknowledged, 0x50, flags, 65535, 0, 0)
        head = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(data), 1, 0, 64, 6, 0) + b"\x7f\0\0\1" * 2
        sequences[side] += len(data) + (flags & 2 > 0)
        size = len(head + tcp + data)
        out += struct.pack("<IIII", 1_700_000_000, 0, size, size) + head + tcp + data

    packet(0, 2)
    packet(1, 18)
    for pair in pairs:
        for side, one in enumerate(pair):
            packet(side, 24, struct.pack(">i", len(one)) + one)
    return out


@pytest.mark.parametrize("first", [-1, 0, 1])
@pytest.mark.parametrize("versions_first", [True, False])
@pytest.mark.parametrize("tokens", [1, 3])
def test_old_clients(first: int, versions_first: bool, tokens: int, cli: Cli, tmp_path: Path) -> None:
    pairs = conversation(first, versions_first=versions_first, tokens=tokens)
    (tmp_path / "x.pcap").write_bytes(capture(pairs))
    for source in ([tmp_path / "x.pcap"], streams(tmp_path, pairs)):
        printed = cli("wire", *source)
        assert b"PASS-OF-ALICE".decode() not in printed
        lines = printed.splitlines()[1:]
        assert len(lines) == len(pairs)
        assert sum(TOKEN in line for line in lines) == tokens
        documents = [json.loads(line) for line in cli("wire", "--json", *source).splitlines()]
        apis = ["ApiVersions"] * versions_first + ["SaslHandshake"] + [None] * tokens + ["Metadata"] * 2
        assert [one["api"] for one in documents] == apis
        assert not any(one["problems"] for one in documents)
        assert all(one["response_bytes"] is not None for one in documents)
        assert "PASS-OF-ALICE" not in json.dumps(documents)


def test_a_refused_mechanism(cli: Cli, tmp_path: Path) -> None:
    """No tokens follow."""
    pairs = [
        (
            request("SaslHandshake", 0, -1, mechanism="X"),
            response("SaslHandshake", 0, -1, errorCode=33, mechanisms=["PLAIN"]),
        ),
        (request("Metadata", 1, 0, topics=None), response("Metadata", 1, 0)),
    ]
    (tmp_path / "x.pcap").write_bytes(capture(pairs))
    printed = cli("wire", tmp_path / "x.pcap")
    assert TOKEN not in printed
    assert "UNSUPPORTED_SASL_MECHANISM" in printed
    assert "Metadata" in printed
