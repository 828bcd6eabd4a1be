"""Records of `__cluster_metadata`, and logs and snapshots of them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import magicbyte

UNASSIGNED = bytes(16)


def varint(number: int) -> bytes:
    """An unsigned varint."""
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes([*data, number])


def text(value: str | None) -> bytes:
    """A compact string."""
    return varint(0) if value is None else varint(len(value.encode()) + 1) + value.encode()


def ints(values: Sequence[int]) -> bytes:
    """A compact array of 32-bit integers."""
    return varint(len(values) + 1) + b"".join(value.to_bytes(4, "big", signed=True) for value in values)


def uuids(values: Sequence[bytes]) -> bytes:
    """A compact array of UUIDs."""
    return varint(len(values) + 1) + b"".join(values)


def tagged(fields: dict[int, bytes]) -> bytes:
    """Tagged fields."""
    parts = [varint(tag) + varint(len(data)) + data for tag, data in sorted(fields.items())]
    return varint(len(parts)) + b"".join(parts)


def frame(kind: int, body: bytes, version: int = 0) -> bytes:
    """A record of a type, whose body ends with its tagged fields."""
    return b"\x01" + varint(kind) + varint(version) + body


def topic_id(number: int) -> bytes:
    """The UUID of a topic."""
    return number.to_bytes(16, "big")


def topic(name: str, number: int) -> bytes:
    """A `TopicRecord`."""
    return frame(2, text(name) + topic_id(number) + b"\0")


def remove_topic(number: int) -> bytes:
    """A `RemoveTopicRecord`."""
    return frame(9, topic_id(number) + b"\0")


def partition(
    number: int,
    partition_id: int,
    replicas: Sequence[int],
    directories: Sequence[bytes] = (),
    *,
    isr: Sequence[int] | None = None,
    elr: Sequence[int] = (),
    adding: Sequence[int] = (),
    leader: int | None = None,
    epoch: int = 3,
) -> bytes:
    """A `PartitionRecord` of version 2."""
    body = struct.pack(">i", partition_id) + topic_id(number) + ints(replicas)
    body += ints(replicas if isr is None else isr) + ints([]) + ints(adding)
    body += struct.pack(">iii", replicas[0] if leader is None else leader, epoch, 7)
    body += uuids(directories or [UNASSIGNED] * len(replicas))
    return frame(3, body + tagged({1: ints(elr)} if elr else {}), 2)


def partition_change(number: int, partition_id: int, fields: dict[int, bytes]) -> bytes:
    """A `PartitionChangeRecord` of version 2."""
    return frame(5, struct.pack(">i", partition_id) + topic_id(number) + tagged(fields), 2)


def config(resource_type: int, resource: str, name: str, value: str | None) -> bytes:
    """A `ConfigRecord`."""
    return frame(4, bytes([resource_type]) + text(resource) + text(name) + text(value) + b"\0")


def broker(broker_id: int, log_dirs: Sequence[bytes], *, fenced: bool = False) -> bytes:
    """A `RegisterBrokerRecord` of version 3 with one listener."""
    endpoint = text("PLAINTEXT") + text("kafka.example") + struct.pack(">Hh", 9092 + broker_id, 0) + b"\0"
    body = struct.pack(">i?", broker_id, False) + bytes(16) + struct.pack(">q", 5)
    body += varint(2) + endpoint + varint(1) + text(f"rack{broker_id}") + struct.pack(">??", fenced, False)
    return frame(0, body + tagged({0: uuids(log_dirs)} if log_dirs else {}), 3)


def broker_change(broker_id: int, fields: dict[int, bytes]) -> bytes:
    """A `BrokerRegistrationChangeRecord` of version 2."""
    return frame(17, struct.pack(">iq", broker_id, 5) + tagged(fields), 2)


def acl(number: int, principal: str, resource: str) -> bytes:
    """An `AccessControlEntryRecord`: a principal may read a prefix of topics from anywhere."""
    body = topic_id(number) + bytes([2]) + text(resource) + bytes([4]) + text(principal) + text("*")
    return frame(18, body + bytes([3, 3]) + b"\0")


def scram(user: str, mechanism: int = 2) -> bytes:
    """A `UserScramCredentialRecord` with the secret `s3cret`."""
    secret = varint(7) + b"s3cret"
    return frame(11, text(user) + bytes([mechanism]) + secret * 3 + struct.pack(">i", 4096) + b"\0")


def quota(entity: dict[str, str | None], key: str, value: float, *, remove: bool = False) -> bytes:
    """A `ClientQuotaRecord`."""
    body = varint(len(entity) + 1) + b"".join(
        text(kind) + text(name) + b"\0" for kind, name in entity.items()
    )
    return frame(14, body + text(key) + struct.pack(">d?", value, remove) + b"\0")


def feature(name: str, level: int) -> bytes:
    """A `FeatureLevelRecord`."""
    return frame(12, text(name) + struct.pack(">h", level) + b"\0")


def producer_ids(next_id: int) -> bytes:
    """A `ProducerIdsRecord`."""
    return frame(15, struct.pack(">iqq", 1, 5, next_id) + b"\0")


def token(token_id: str) -> bytes:
    """A `DelegationTokenRecord` of `User:ann`."""
    body = text("User:ann") + text("User:ann") + varint(2) + text("User:bob")
    return frame(10, body + struct.pack(">qqq", 1, 2, 3) + text(token_id) + b"\0")


def voters(ids: Iterable[int]) -> bytes:
    """The value of a `KRaftVoters` control record."""
    found = [
        struct.pack(">i", one)
        + topic_id(one)
        + varint(2)
        + (text("CONTROLLER") + text(f"node{one}") + struct.pack(">H", 9093) + b"\0")
        + struct.pack(">hh", 0, 1)
        + b"\0\0"
        for one in ids
    ]
    return bytes(2) + varint(len(found) + 1) + b"".join(found) + b"\0"


def control(kind: int, value: bytes, offset: int, epoch: int) -> bytes:
    """A batch with a control record."""
    builder = magicbyte.RecordsBuilder(is_control=True, base_offset=offset, partition_leader_epoch=epoch)
    builder.append(offset, 1, struct.pack(">hh", 0, kind), value)
    return bytes(builder.build())


def batches(records: Sequence[bytes], *, start: int = 0, epoch: int = 1, size: int = 1) -> list[bytes]:
    """Batches of `size` records."""
    built = []
    for at in range(0, len(records), size):
        base = start + at
        builder = magicbyte.RecordsBuilder(base_offset=base, partition_leader_epoch=epoch)
        for offset, value in enumerate(records[at : at + size], base):
            builder.append(offset, 1_700_000_000_000, None, value)
        built.append(bytes(builder.build()))
    return built


def write_log(log_dir: Path, data: Sequence[bytes], *, base: int = 0) -> Path:
    """Writes a copy of the metadata log, of one segment; returns the segment's path."""
    directory = log_dir / "__cluster_metadata-0"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{base:020}.log"
    path.write_bytes(b"".join(data))
    return path


def write_snapshot(log_dir: Path, records: Sequence[bytes], end: int, epoch: int = 1) -> Path:
    """Writes a snapshot with header, voters 1 to 3, records and footer; returns its path."""
    directory = log_dir / "__cluster_metadata-0"
    directory.mkdir(parents=True, exist_ok=True)
    header = control(3, bytes(11), 0, epoch) + control(5, struct.pack(">hh", 0, 1) + b"\0", 1, epoch)
    data = b"".join(batches(records, start=3, epoch=epoch, size=50))
    footer = control(4, bytes(3), 3 + len(records), epoch)
    path = directory / f"{end:020}-{epoch:010}.checkpoint"
    path.write_bytes(header + control(6, voters([1, 2, 3]), 2, epoch) + data + footer)
    return path


def write_meta(log_dir: Path, node: int, directory: str, cluster: str = "abc") -> None:
    """Writes the `meta.properties` of a log directory."""
    log_dir.mkdir(parents=True, exist_ok=True)
    text_ = f"#\nnode.id={node}\nversion=1\ncluster.id={cluster}\ndirectory.id={directory}\n"
    (log_dir / "meta.properties").write_text(text_)
