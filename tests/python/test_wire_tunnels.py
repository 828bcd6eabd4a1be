"""Captures of mirrored traffic: tunnels, fragments, cut packets and compressed files are read, or named."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Cli
from magicbyte.message import encode_request

CLIENT, SERVER = 40_001, 9092


def frame(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


REQUEST = frame(encode_request("ApiVersions", 0, {}, header={"correlationId": 1, "clientId": "client" * 20}))
RESPONSE = frame(struct.pack(">ihi", 1, 0, 1) + struct.pack(">hhh", 18, 0, 4))


def ipv4(client: bool, protocol: int, data: bytes, fragment: int = 0, size: int | None = None) -> bytes:
    size = 20 + len(data) if size is None else size
    header = struct.pack(">BBHHHBBH", 0x45, 0, size, 1, fragment, 64, protocol, 0)
    ends = (b"\x0a\0\0\1", b"\x0a\0\0\2")
    return header + b"".join(ends if client else ends[::-1]) + data


def ipv6(client: bool, protocol: int, data: bytes) -> bytes:
    ends = (bytes(15) + b"\1", bytes(15) + b"\2")
    head = struct.pack(">IHBB", 6 << 28, len(data), protocol, 64)
    return head + b"".join(ends if client else ends[::-1]) + data


def tcp(client: bool, sequence: int, acknowledged: int, data: bytes = b"", flags: int = 0x18) -> bytes:
    ports = (CLIENT, SERVER) if client else (SERVER, CLIENT)
    return struct.pack(">HHIIBBHHH", *ports, sequence, acknowledged, 0x50, flags, 65535, 0, 0) + data


FLOW = [
    (True, tcp(True, 1000, 0, flags=2)),
    (False, tcp(False, 5000, 1001, flags=0x12)),
    (True, tcp(True, 1001, 5001, REQUEST)),
    (False, tcp(False, 5001, 1001 + len(REQUEST), RESPONSE)),
]
PACKETS = [ipv4(client, 6, segment) for client, segment in FLOW]
PACKETS_6 = [ipv6(client, 6, segment) for client, segment in FLOW]


def ethernet(data: bytes, kind: int = 0x800) -> bytes:
    return bytes([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]) + struct.pack(">H", kind) + data


def udp(port: int, data: bytes) -> bytes:
    return ethernet(ipv4(True, 17, struct.pack(">HHHH", 50_000, port, 8 + len(data), 0) + data))


def gre(head: bytes, data: bytes) -> bytes:
    return ethernet(ipv4(True, 47, head + data))


def pcap(packets: list[bytes], link: int = 1, snap: int = 1 << 18) -> bytes:
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap, link)
    for index, packet in enumerate(packets):
        data = packet[:snap]
        out += struct.pack("<IIII", 1_700_000_000 + index, 5, len(data), len(packet)) + data
    return out


VXLAN = b"\x08\0\0\0\0\0\1\0"
TUNNELS: dict[str, Callable[[bytes], bytes]] = {
    "VXLAN": lambda packet: udp(4789, VXLAN + ethernet(packet)),
    "VXLAN of Linux": lambda packet: udp(8472, VXLAN + ethernet(packet)),
    "VXLAN-GPE": lambda packet: udp(4790, b"\x0c\0\0\1\0\0\1\0" + packet),
    "VXLAN with a VLAN": lambda packet: udp(
        4789, VXLAN + ethernet(struct.pack(">HH", 5, 0x800) + packet, 0x8100)
    ),
    "Geneve": lambda packet: udp(6081, b"\0\0\x65\x58\0\0\1\0" + ethernet(packet)),
    "Geneve with options": lambda packet: udp(6081, b"\2\0\x08\0\0\0\1\0" + bytes(8) + packet),
    "IP in IP": lambda packet: ethernet(ipv4(True, 4, packet)),
    "IP in IPv6": lambda packet: ethernet(ipv6(True, 4, packet), 0x86DD),
    "GRE": lambda packet: gre(b"\0\0\x08\0", packet),
    "GRE with all fields": lambda packet: gre(b"\xb0\0\x08\0" + bytes(12), packet),
    "GRE with Ethernet": lambda packet: gre(b"\x20\0\x65\x58\0\0\0\1", ethernet(packet)),
    "ERSPAN I": lambda packet: gre(b"\0\0\x88\xbe", ethernet(packet)),
    "ERSPAN II": lambda packet: gre(b"\x10\0\x88\xbe\0\0\0\1" + bytes(8), ethernet(packet)),
    "ERSPAN III": lambda packet: gre(b"\x10\0\x22\xeb\0\0\0\1" + bytes(12), ethernet(packet)),
    "ERSPAN III, longer": lambda packet: gre(
        b"\x10\0\x22\xeb\0\0\0\1" + bytes(11) + b"\1" + bytes(8), ethernet(packet)
    ),
    "MPLS": lambda packet: ethernet(struct.pack(">I", 100 << 12 | 1 << 8 | 64) + packet, 0x8847),
    "MPLS, two labels": lambda packet: ethernet(
        struct.pack(">II", 100 << 12 | 64, 101 << 12 | 1 << 8 | 64) + packet, 0x8847
    ),
    "MPLS, a pseudowire": lambda packet: ethernet(
        struct.pack(">II", 100 << 12 | 1 << 8 | 64, 0) + ethernet(packet), 0x8847
    ),
    "PPPoE": lambda packet: ethernet(
        struct.pack(">BBHHH", 0x11, 0, 1, len(packet) + 2, 0x21) + packet, 0x8864
    ),
    "GRE in VXLAN": lambda packet: udp(4789, VXLAN + gre(b"\0\0\x08\0", packet)),
}


def read(cli: Cli, path: Path, data: bytes, code: int) -> list[str]:
    path.write_bytes(data)
    return [json.loads(line)["api"] for line in cli("wire", "--json", path, code=code).splitlines()]


@pytest.mark.parametrize("name", TUNNELS)
def test_tunnels_that_are_read(name: str, cli: Cli, tmp_path: Path) -> None:
    packets = [TUNNELS[name](packet) for packet in PACKETS]
    assert read(cli, tmp_path / "x.pcap", pcap(packets), 0) == ["ApiVersions"], cli.error


def test_ipv6_in_ipv4(cli: Cli, tmp_path: Path) -> None:
    packets = [ethernet(ipv4(True, 41, packet)) for packet in PACKETS_6]
    assert read(cli, tmp_path / "x.pcap", pcap(packets), 0) == ["ApiVersions"]


@pytest.mark.parametrize(
    ("packet", "says"),
    [
        (ethernet(ipv4(True, 50, bytes(40))), "IPsec (ESP)"),
        (udp(4500, bytes(40)), "IPsec (ESP)"),
        (udp(1701, bytes(40)), "L2TP"),
        (udp(2152, bytes(40)), "GTP"),
        (udp(51_820, bytes(40)), "WireGuard"),
        (gre(b"\0\1\x88\x0b", bytes(40)), "PPTP"),
        (ethernet(struct.pack(">BBHHH", 0x11, 0, 1, 42, 0xFD) + bytes(40), 0x8864), "PPPoE"),
    ],
)
def test_tunnels_that_are_named(packet: bytes, says: str, cli: Cli, tmp_path: Path) -> None:
    assert read(cli, tmp_path / "x.pcap", pcap([packet] * 3), 1) == []
    assert "3 packets in tunnels that are not read" in cli.error
    assert says in cli.error


def test_tunnels_without_end(cli: Cli, tmp_path: Path) -> None:
    packet = PACKETS[2]
    for _ in range(40):
        packet = ipv4(True, 4, packet)
    assert read(cli, tmp_path / "x.pcap", pcap([packet], link=101), 1) == []
    assert "more than 8" in cli.error


def test_other_packets_are_no_problem(cli: Cli, tmp_path: Path) -> None:
    others = [ethernet(bytes(28), 0x806), udp(53, bytes(40)), ethernet(ipv4(True, 1, bytes(40))), b"\0"]
    # Fragments of a datagram for another service.
    others.append(ethernet(ipv4(True, 17, struct.pack(">HHHH", 1, 53, 2000, 0) + bytes(24), 0x2000)))
    assert read(cli, tmp_path / "x.pcap", pcap(others + [ethernet(one) for one in PACKETS]), 0) == [
        "ApiVersions"
    ]


def test_a_link_type_that_is_not_read(cli: Cli, tmp_path: Path) -> None:
    assert read(cli, tmp_path / "x.pcap", pcap(PACKETS, link=127), 1) == []
    assert "4 packets of link type 127" in cli.error


def fragments(data: bytes, size: int) -> list[bytes]:
    """An IPv4 packet's payload in fragments of a multiple of eight bytes."""
    return [
        ethernet(ipv4(True, 6, data[at : at + size], (0x2000 if at + size < len(data) else 0) | at // 8))
        for at in range(0, len(data), size)
    ]


@pytest.mark.parametrize("size", [8, 24, 64])
def test_fragments(size: int, cli: Cli, tmp_path: Path) -> None:
    ends = [ethernet(packet) for packet in PACKETS]
    parts = fragments(FLOW[2][1], size)
    assert len(parts) > 2
    for order in (parts, parts[::-1], parts[1:] + parts, [*parts[2:], *parts[:2]]):
        packets = [*ends[:2], *order, ends[3]]
        path = tmp_path / "x.pcap"
        assert read(cli, path, pcap(packets), int(order == parts[1:] + parts)) == ["ApiVersions"]
    assert read(cli, tmp_path / "x.pcap", pcap([*ends[:2], *parts[1:], ends[3]]), 1) == []
    assert f"{len(parts) - 1} packets split by IP" in cli.error


def test_fragments_of_ipv6(cli: Cli, tmp_path: Path) -> None:
    ends = [ethernet(packet, 0x86DD) for packet in PACKETS_6]
    data = FLOW[2][1]
    parts = [
        ethernet(ipv6(True, 44, struct.pack(">BBHI", 6, 0, at | more, 7) + data[at : at + 32]), 0x86DD)
        for at in range(0, len(data), 32)
        for more in [int(at + 32 < len(data))]
    ]
    assert read(cli, tmp_path / "x.pcap", pcap([*ends[:2], *parts, ends[3]]), 0) == ["ApiVersions"]


def test_fragments_of_a_tunnel(cli: Cli, tmp_path: Path) -> None:
    data = struct.pack(">HHHH", 50_000, 4789, 8 + 8 + len(ethernet(PACKETS[2])), 0)
    data += VXLAN + ethernet(PACKETS[2])
    parts = [
        ethernet(ipv4(True, 17, data[at : at + 48], (0x2000 if at + 48 < len(data) else 0) | at // 8))
        for at in range(0, len(data), 48)
    ]
    ends = [TUNNELS["VXLAN"](packet) for packet in PACKETS]
    assert read(cli, tmp_path / "x.pcap", pcap([*ends[:2], *parts, ends[3]]), 0) == ["ApiVersions"]
    read(cli, tmp_path / "x.pcap", pcap([*ends[:2], *parts[:-1], ends[3]]), 1)
    assert "split by IP" in cli.error


def test_cut_packets(cli: Cli, tmp_path: Path) -> None:
    for snap in (68, 50):
        read(cli, tmp_path / "x.pcap", pcap([ethernet(packet) for packet in PACKETS], snap=snap), 1)
        assert "packets" in cli.error
        assert "cut" in cli.error


def test_compressed_captures(cli: Cli, tmp_path: Path) -> None:
    data = pcap([ethernet(packet) for packet in PACKETS])
    assert read(cli, tmp_path / "x.pcap.gz", gzip.compress(data), 0) == ["ApiVersions"]
    # Several members, and a name that says nothing.
    parts = gzip.compress(data[:100]) + gzip.compress(data[100:])
    assert read(cli, tmp_path / "x", parts, 0) == ["ApiVersions"]
    many = gzip.compress(pcap([ethernet(packet) for packet in PACKETS] * 1000), 0)
    assert read(cli, tmp_path / "x", many[:-2000], 1)[:1] == ["ApiVersions"]
    assert "it cannot be read" in cli.error
    (tmp_path / "x").write_bytes(gzip.compress(data)[:-20])
    cli("wire", tmp_path / "x", code=3)
    assert "it cannot be read" in cli.error
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("x.pcap", data)
    for compressed, name in (
        (bz2.compress(data), "bzip2"),
        (lzma.compress(data), "xz"),
        (b"\x28\xb5\x2f\xfd" + bytes(40), "zstd"),
        (b"\x04\x22\x4d\x18" + bytes(40), "lz4"),
        ((tmp_path / "x.zip").read_bytes(), "zip"),
        (gzip.compress(bz2.compress(data)), "bzip2"),
    ):
        (tmp_path / "y").write_bytes(compressed)
        cli("wire", tmp_path / "y", code=3)
        assert f"compressed with {name}" in cli.error
    for nothing in (b"", b"x", gzip.compress(b""), gzip.compress(b"text")):
        (tmp_path / "z").write_bytes(nothing)
        cli("wire", tmp_path / "z", code=3)
        assert "neither a pcap nor a pcapng" in cli.error
