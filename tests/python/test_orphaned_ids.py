"""`schemas lint --logs`: ids that no schema has, and the schemas that read the values."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from conftest import KAFKA, Cli
from magicbyte import RecordsBuilder
from magicbyte.errors import InvalidRecordError, RefusedError
from magicbyte.jobs.orphans.column_names import KnownSchemas
from magicbyte.jobs.orphans.named_schemas import NamedSchemas, SchemaName
from magicbyte.jobs.orphans.value_sample import SampledValue, ValueSample
from magicbyte.jobs.run.progress import Step
from magicbyte.jobs.schema_check import lint_schemas
from magicbyte.jobs.schemas import open_registry
from magicbyte.schema.avro_fingerprint import fingerprint
from magicbyte.schema.framing import parse
from magicbyte.schema.registry import Schema, StoredRegistry, SubjectVersion


def record(**fields: str) -> str:
    made = [{"name": name, "type": of} for name, of in fields.items()]
    return json.dumps({"type": "record", "name": "R", "fields": made})


def framed(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + struct.pack(">i", schema_id) + payload


Headers = list[tuple[str, bytes | None]]


def write(
    directory: Path,
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[Headers] | None = None,
    *,
    codec: str = "none",
    batch: int = 1000,
) -> None:
    """A partition with these records, some of them in each batch."""
    directory.mkdir(parents=True)
    with open(directory / f"{0:020d}.log", "wb") as file:
        for first in range(0, len(values), batch):
            builder = RecordsBuilder(compression=codec)
            for offset in range(first, min(first + batch, len(values))):
                key = None if keys is None else keys[offset]
                builder.append(offset, 1000, key, values[offset], [] if headers is None else headers[offset])
            file.write(builder.build())


def found(registry: StoredRegistry, logs: Path) -> dict[str, str]:
    """The messages of the findings, by subject; there is one for each."""
    findings = lint_schemas(registry, [str(logs)])["findings"]
    by_subject = {one["subject"]: one["message"] for one in findings}
    assert {one["rule"] for one in findings} <= {"ORPHANED_ID"}
    assert len(by_subject) == len(findings)
    return by_subject


@pytest.fixture
def registry() -> StoredRegistry:
    registry = StoredRegistry()
    registry.compatibility_levels[""] = "NONE"
    for number, (subject, schema) in enumerate(
        [
            ("other-value", Schema("AVRO", record(a="long", b="string"))),
            ("orders-value", Schema("AVRO", record(a="string"))),
            ("orders-value", Schema("AVRO", record(a="int", b="bytes"))),
            ("shape-value", Schema("JSON", '{"type": "object", "required": ["z"]}')),
            ("shape-value", Schema("JSON", '{"type": "object", "required": ["a"]}')),
        ],
        1,
    ):
        version = len(registry.versions(subject)) + 1
        registry.put(SubjectVersion(subject, version, number, schema))
    return registry


def test_schemas_that_read_all(registry: StoredRegistry, tmp_path: Path) -> None:
    # A long and a string; both of the first and the third schema read it.
    write(tmp_path / "orders-0", [framed(40, b"\x02\x04hi"), framed(2, b"\x02x"), None, b"?"])
    write(tmp_path / "orders-1", [framed(40, b"\x04\0")])
    report = lint_schemas(registry, [str(tmp_path)])
    (finding,) = report["findings"]
    assert (finding["rule"], finding["subject"]) == ("ORPHANED_ID", "orders-value")
    assert finding["message"] == "no schema has the id 40, which 2 records name"
    assert finding["remedy"].endswith("these read all of a sample of 2, the likeliest first: 3, 1")
    assert report["examined"] == {"orders": 5}
    assert report["notes"] == report["problems"] == []


def test_json_and_keys(registry: StoredRegistry, tmp_path: Path) -> None:
    registry.put(SubjectVersion("shape-key", 1, 6, Schema("AVRO", '"string"')))
    write(tmp_path / "shape-0", [framed(9, b'{"a": 1}')], [framed(8, b"\xff" * 30)])
    key, value = lint_schemas(registry, [str(tmp_path)])["findings"]
    assert (key["subject"], value["subject"]) == ("shape-key", "shape-value")
    assert key["remedy"] == "find the schema in a backup of the registry, or at its writers"
    assert value["remedy"].endswith("the likeliest first: 5")


def test_any_number_of_ids(registry: StoredRegistry, tmp_path: Path) -> None:
    # The most frequent ones are reported.
    values = [framed(100 + number, b"\xff") for number in range(150) for _ in range(1 + (number >= 50))]
    write(tmp_path / "orders-0", values)
    report = lint_schemas(registry, [str(tmp_path)])
    messages = [one["message"] for one in report["findings"]]
    assert messages == [f"no schema has the id {number}, which 2 records name" for number in range(150, 250)]
    assert report["notes"] == ["orders-value: 50 records name 50 other schemas that are missing"]


def test_more_ids_than_are_kept(registry: StoredRegistry, tmp_path: Path) -> None:
    write(tmp_path / "orders-0", [framed(100 + number, b"\xff") for number in range(10_050)])
    report = lint_schemas(registry, [str(tmp_path)])
    assert len(report["findings"]) == 100
    assert report["notes"] == [
        "orders-value: 9,900 records name 9,900 other schemas that are missing",
        "orders, values: 50 of 10,050 begin as if they named missing schemas, but of too many names",
    ]


# --- all records ------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 9_999, 10_000, 25_000, 49_999])
@pytest.mark.parametrize("partitions", [1, 3])
def test_one_record_among_many(registry: StoredRegistry, tmp_path: Path, place: int, partitions: int) -> None:
    for partition in range(partitions):
        values = [framed(2, b"\x02x")] * 50_000
        if partition == partitions - 1:
            values[place] = framed(7, b"\x02y")
        write(tmp_path / f"orders-{partition}", values, batch=10_000)
    report = lint_schemas(registry, [str(tmp_path)])
    (finding,) = report["findings"]
    assert finding["message"] == "no schema has the id 7, which 1 record names"
    assert finding["remedy"].endswith("read all of a sample of 1, the likeliest first: 2")
    assert report["examined"] == {"orders": 50_000 * partitions}


def test_counts_are_those_of_all_records(registry: StoredRegistry, tmp_path: Path) -> None:
    for partition in range(2):
        values = [framed(7 if number % 3 else 2, b"\x02y") for number in range(30_000)]
        write(tmp_path / f"orders-{partition}", values, batch=10_000)
    (finding,) = lint_schemas(registry, [str(tmp_path)])["findings"]
    assert finding["message"] == "no schema has the id 7, which 40,000 records name"
    assert "all of a sample of 200," in finding["remedy"]


def test_copies_of_a_partition_count_once(registry: StoredRegistry, tmp_path: Path) -> None:
    values = [framed(9, b"\x02x")] * 3
    for broker, count in (("a", 3), ("b", 2), ("c", 0)):
        (tmp_path / broker).mkdir()
        write(tmp_path / broker / "orders-0", values[:count])
        write(tmp_path / broker / "numbers-0", longs(2**34, 2**34 + 1)[:count])
    brokers = [str(tmp_path / broker) for broker in "abc"]
    for sources in (
        [str(tmp_path)],
        brokers,
        [*brokers, *brokers],
        brokers[::-1],
        [f"{brokers[0]}/orders-0", *brokers],
    ):
        report = lint_schemas(registry, sources)
        (finding,) = report["findings"]
        assert "no schema has the id 9, which 3 records name" in finding["message"]
        assert report["examined"] == {"numbers": 2, "orders": 3}
        assert "numbers, values: 2 of 2 begin" in report["notes"][1]
        assert report["notes"][0] == "not examined: 4 older copies of partitions"
    (note, *_) = lint_schemas(registry, [*brokers[:1], f"{brokers[1]}/orders-0"])["notes"]
    assert note == "not examined: 1 older copy of partitions"


def test_progress(registry: StoredRegistry, tmp_path: Path) -> None:
    for topic in ("a", "b"):
        for partition in range(2):
            directory = tmp_path / f"{topic}-{partition}"
            write(directory, [framed(2, b"\x02x" * 20)] * 40_000, batch=100)
            (directory / f"{40_000:020d}.log").write_bytes(b"")
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.log"))
    steps: list[tuple[str, int]] = []
    done: list[int] = []

    class Shown:
        visible = True

        @contextmanager
        def step(self, name: str, size: int) -> Iterator[Step]:
            steps.append((name, size))
            yield self

        def done(self, total_bytes: int) -> None:
            done.append(total_bytes)

    lint_schemas(registry, [str(tmp_path)], progress=Shown())
    assert [size for _, size in steps] == [size]
    assert steps[0][0].startswith("magicbyte schemas lint: 8 segments, ")
    assert done == sorted(done)
    assert done[-1] == size
    assert len(set(done)) > 20


# --- names in headers, and of other framings --------------------------------------------------------

UUID_4 = UUID("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63")
OTHER = UUID("12345678-9abc-4def-8123-456789abcdef")
AVRO = b"\x02\x02x"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ([("__value_schema_id", framed(40, b""))], "id 40"),
        ([("x", None), ("__value_schema_id", framed(40, b"")), ("y", b"")], "id 40"),
        ([("__value_schema_id", framed(2, b"")), ("__value_schema_id", framed(40, b""))], "id 40"),
        ([("__value_schema_id", b"\1" + UUID_4.bytes)], f"GUID {UUID_4}"),
        ([("apicurio.value.globalId", (40).to_bytes(8, "big"))], "id 40"),
        ([("apicurio.value.contentId", (2**40).to_bytes(8, "big"))], f"id {2**40}"),
        ([("apicurio.value.globalId", b"\0" * 7 + b"\2"), ("__value_schema_id", framed(40, b""))], "id 40"),
    ],
)
def test_headers(registry: StoredRegistry, tmp_path: Path, headers: Headers, message: str) -> None:
    # Headers count in a topic without a subject, too.
    write(tmp_path / "any-0", [AVRO, None, AVRO], headers=[headers] * 3)
    (finding,) = lint_schemas(registry, [str(tmp_path)])["findings"]
    assert finding["subject"] == "any-value"
    assert finding["message"] == f"no schema has the {message}, which 2 records name"
    assert finding["remedy"].endswith("the likeliest first: 1") or "first: 3, 1" in finding["remedy"]


@pytest.mark.parametrize(
    "headers",
    [
        [("__value_schema_id", framed(1, b""))],
        [("__value_schema_id", b"\1" + b"GUID")],
        [("__value_schema_id", b"?")],
        [("__value_schema_id", framed(0, b""))],
        [("__value_schema_id", framed(-1, b""))],
        [("apicurio.value.globalId", b"short")],
        [("apicurio.value.artifactId", b"name")],
        [("__key_schema_id", framed(40, b""))],
        [("apicurio.key.globalId", (40).to_bytes(8, "big"))],
    ],
)
def test_headers_that_name_no_missing_schema(
    registry: StoredRegistry, tmp_path: Path, headers: Headers
) -> None:
    write(tmp_path / "orders-0", [AVRO], [None], [headers])
    report = lint_schemas(registry, [str(tmp_path)])
    assert report["findings"] == report["notes"] == []


def test_headers_of_keys(registry: StoredRegistry, tmp_path: Path) -> None:
    headers: Headers = [("__key_schema_id", framed(40, b"")), ("__value_schema_id", framed(1, b""))]
    write(tmp_path / "any-0", [AVRO], [AVRO], [headers])
    assert found(registry, tmp_path) == {"any-key": "no schema has the id 40, which 1 record names"}


def test_a_header_that_only_belongs_to_a_framing(registry: StoredRegistry, tmp_path: Path) -> None:
    write(tmp_path / "orders-0", [framed(40, AVRO)], headers=[[("apicurio.value.encoding", b"BINARY")]])
    assert found(registry, tmp_path) == {"orders-value": "no schema has the id 40, which 1 record names"}


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (framed(40, b""), "id 40"),
        (framed(2**31 - 1, b""), f"id {2**31 - 1}"),
        (b"\1" + UUID_4.bytes, f"GUID {UUID_4}"),
        (b"\0" + (40).to_bytes(8, "big"), "id 40"),
        (b"\0" + (2**31).to_bytes(8, "big"), f"id {2**31}"),
        (b"\3\0" + UUID_4.bytes, f"GUID {UUID_4}"),
        (b"\3\5" + UUID_4.bytes, f"GUID {UUID_4}"),
        (b"\xc3\1" + UUID_4.bytes[:8], f"fingerprint {UUID_4.bytes[7::-1].hex()}"),
    ],
)
def test_framings(registry: StoredRegistry, tmp_path: Path, head: bytes, message: str) -> None:
    payload = zlib.compress(AVRO) if head[:2] == b"\3\5" else AVRO
    write(tmp_path / "orders-0", [head + payload] * 3)
    (finding,) = lint_schemas(registry, [str(tmp_path)])["findings"]
    assert finding["message"] == f"no schema has the {message}, which 3 records name"
    assert "these read all of a sample of 3, the likeliest first: 3, 1" in finding["remedy"]


def test_schemas_that_are_known_by_other_names(registry: StoredRegistry, tmp_path: Path) -> None:
    text = record(a="long", b="string")
    registry.put_uuid(str(UUID_4), Schema("AVRO", text))
    guid = registry.by_id(1).guid
    assert guid is not None
    heads = [
        b"\3\0" + UUID_4.bytes,
        b"\1" + UUID(guid).bytes,
        b"\xc3\1" + fingerprint(text)[::-1],
        b"\0" + (1).to_bytes(8, "big"),
    ]
    write(tmp_path / "orders-0", [head + AVRO for head in heads])
    report = lint_schemas(registry, [str(tmp_path)])
    assert report["findings"] == report["notes"] == []
    # One that is known shows the framing of the others.
    write(tmp_path / "any-0", [heads[0] + AVRO, b"\3\0" + OTHER.bytes + AVRO, *[b"text"] * 9])
    assert found(registry, tmp_path) == {"any-value": f"no schema has the GUID {OTHER}, which 1 record names"}


def test_schemas_without_ids(tmp_path: Path) -> None:
    registry = StoredRegistry()
    registry.compatibility_levels[""] = "NONE"
    registry.put(SubjectVersion("orders-value", 1, None, Schema("AVRO", record(a="long", b="string"))))
    registry.put_uuid(str(UUID_4), Schema("AVRO", record(b="long", c="bytes")))
    registry.put_uuid(str(OTHER), Schema("AVRO", '"null"'))
    write(tmp_path / "orders-0", [framed(7, AVRO)])
    (finding,) = lint_schemas(registry, [str(tmp_path)])["findings"]
    assert finding["remedy"].endswith(f"first: version 1 of orders-value, {UUID_4}")


def test_an_id_of_0_in_files(registry: StoredRegistry, tmp_path: Path) -> None:
    registry.put_schema(0, Schema("AVRO", '"long"'))
    write(tmp_path / "orders-0", [framed(0, b"\1\2\3\4\5")])
    report = lint_schemas(registry, [str(tmp_path)])
    assert report["findings"] == report["notes"] == []


def test_subjects_of_other_contexts(registry: StoredRegistry, tmp_path: Path) -> None:
    registry.put(SubjectVersion(":.east:carts-value", 1, 70, Schema("AVRO", '"int"')))
    write(tmp_path / "carts-0", [framed(70, b"\2"), framed(71, b"\2")])
    assert found(registry, tmp_path) == {"carts-value": "no schema has the id 71, which 1 record names"}


# --- what only looks like a name --------------------------------------------------------------------


def longs(*numbers: int) -> list[bytes]:
    return [struct.pack(">q", number) for number in numbers]


def times(count: int, payload: bytes) -> list[bytes]:
    """Values of a timestamped store of Kafka Streams, one an hour."""
    return [longs(1_700_000_000_000 + number * 3_600_000)[0] + payload for number in range(count)]


RANDOM = random.Random(5)
HEALTHY: dict[str, Sequence[bytes]] = {
    "small longs": longs(*range(2000)),
    "longs of 5 bytes": longs(*range(5_000_000_000, 5_000_000_060), *range(2**34, 2**34 + 60)),
    "longs of 8 bytes": longs(*(RANDOM.randrange(2**55) for _ in range(2000))),
    "ints": [struct.pack(">i", number) for number in range(2000)],
    "two ints": [struct.pack(">ii", number, 7) for number in range(2000)],
    "two longs": [struct.pack(">qq", number, number * 7) for number in range(2000)],
    "doubles": [struct.pack(">d", 0.0), struct.pack(">d", 1e-300)] * 50,
    "booleans": [b"\0", b"\1"] * 50,
    "times": longs(
        *range(1_700_000_000_000, 1_700_000_000_200), *range(1_600_000_000_000, 1_600_000_000_060)
    ),
    "random bytes": [RANDOM.randbytes(32) for _ in range(20_000)],
    "random bytes after 0": [b"\0" + RANDOM.randbytes(RANDOM.randrange(60)) for _ in range(5000)],
    "random bytes after 1": [b"\1" + RANDOM.randbytes(RANDOM.randrange(60)) for _ in range(5000)],
    "texts of Java": [b"\0\x04" + b"k%03d" % (number % 1000) for number in range(2000)],
    "messages of Kafka": [struct.pack(">hh5si", 0, 5, b"group", number % 50) for number in range(200)],
    "offsets of MirrorMaker": [struct.pack(">hqqh", 0, number << 20, number, 0) for number in range(200)],
    "versions": [b"\3\0" + struct.pack("<iq", number, 5) + b"payload" for number in range(200)],
    "gRPC": [b"\0" + struct.pack(">i", number % 90) + b"\x0a\x01a" * 30 for number in range(200)],
}


@pytest.mark.parametrize("kind", HEALTHY)
@pytest.mark.parametrize("column", ["key", "value"])
def test_healthy_columns(registry: StoredRegistry, tmp_path: Path, kind: str, column: str) -> None:
    # Schemas that read many bytes, with ids near and far; other topics are framed.
    for number, text in enumerate(
        ['"string"', '"bytes"', '"null"', '"int"', record(a="long", b="int"), record(a="long", b="bytes")],
        290,
    ):
        registry.put(SubjectVersion(f"near{number}-value", 1, number, Schema("AVRO", text)))
    registry.put(SubjectVersion("proto-value", 1, 400, Schema("PROTOBUF", 'syntax="proto3"; message M {}')))
    values = HEALTHY[kind]
    write(tmp_path / "any-0", values if column == "value" else [None] * len(values), values)
    report = lint_schemas(registry, [str(tmp_path)])
    assert report["findings"] == []
    assert report["examined"] == {"any": len(values)}
    # Nothing is passed over in silence.
    named = NamedSchemas(pa.record_batch({"value": pa.array(values, pa.binary())}), "value")
    missing = {name for name in named.counts if KnownSchemas(registry).find(name) is None}
    assert any(note.startswith(f"any, {column}s: ") for note in report["notes"]) == bool(missing)


def test_ids_of_garbage_that_are_known(registry: StoredRegistry, tmp_path: Path) -> None:
    # Confluent Cloud's ids, which begin at 100,000, and hours since 2022.
    for number in range(100_000, 105_000):
        registry.put_schema(number, Schema("AVRO", record(a="string", b="long")))
    write(tmp_path / "any-0", times(3000, b'{"a": 1}'))
    assert lint_schemas(registry, [str(tmp_path)])["findings"] == []


def test_garbage_that_known_schemas_read_at_times(registry: StoredRegistry, tmp_path: Path) -> None:
    for number in range(50, 60):
        registry.put_schema(number, Schema("AVRO", '"int"'))
    r = random.Random(1)
    write(
        tmp_path / "any-0", [framed(r.randrange(1, 256), r.randbytes(r.randrange(1, 5))) for _ in range(5000)]
    )
    assert lint_schemas(registry, [str(tmp_path)])["findings"] == []


def test_headers_show_nothing_of_bytes(registry: StoredRegistry, tmp_path: Path) -> None:
    headers: Headers = [("__value_schema_id", framed(2, b""))]
    write(tmp_path / "any-0", [b"\x02x"] * 9 + [framed(77, b"?")] * 2, headers=[headers] * 9 + [[]] * 2)
    report = lint_schemas(registry, [str(tmp_path)])
    assert report["findings"] == []
    assert report["notes"][0].startswith("any, values: 2 of 11 begin")


@pytest.mark.parametrize("payload", [framed(2, b"\x02x"), b"\x02x", b'{"a": 1}', b""])
def test_changelogs(registry: StoredRegistry, tmp_path: Path, payload: bytes) -> None:
    topic = "app-store-changelog"
    registry.put(SubjectVersion(f"{topic}-value", 1, 2, registry.by_id(2)))
    write(tmp_path / f"{topic}-0", times(100, payload))
    report = lint_schemas(registry, [str(tmp_path)])
    assert report["findings"] == []
    (note,) = report["notes"]
    assert note.startswith(f"{topic}, values: 100 of 100 begin as if they named missing schemas (id 1")
    assert note.endswith("but they begin with times, as values in changelogs of Kafka Streams do")


def test_changelogs_of_framed_values(registry: StoredRegistry, tmp_path: Path) -> None:
    # Of a store without times: ids count, as in other topics.
    topic = "app-store-changelog"
    registry.put(SubjectVersion(f"{topic}-value", 1, 2, registry.by_id(2)))
    write(tmp_path / f"{topic}-0", [framed(2, b"\x02x")] * 9 + [framed(102_162, b"\x02x")])
    assert found(registry, tmp_path) == {
        f"{topic}-value": "no schema has the id 102162, which 1 record names"
    }


def test_kafkas_own_topics(registry: StoredRegistry, tmp_path: Path) -> None:
    shutil.copytree(KAFKA / "consumer_offsets_0", tmp_path / "__consumer_offsets-0")
    shutil.copytree(KAFKA / "transaction_state_0", tmp_path / "__transaction_state-0")
    report = lint_schemas(registry, [str(tmp_path)])
    assert report["findings"] == []
    assert report["examined"] == {}
    assert report["notes"] == [
        "not examined, since they are Kafka's own: __consumer_offsets, __transaction_state"
    ]


def test_logs_of_brokers(tmp_path: Path) -> None:
    """Partitions that brokers wrote, whatever is in them, and the registry of some."""
    _, registry = open_registry([str(KAFKA / "schemas_topic")])
    report = lint_schemas(registry, [str(KAFKA)])
    assert [one for one in report["findings"] if one["rule"] == "ORPHANED_ID"] == []
    shutil.copytree(KAFKA / "sr_avro", tmp_path / "orders-0")
    report = lint_schemas(StoredRegistry(), [str(tmp_path)])
    (note,) = [one for one in report["notes"] if "orders, values" in one]
    assert "begin as if they named missing schemas (id " in note


def test_a_framing_that_known_schemas_show(registry: StoredRegistry, tmp_path: Path) -> None:
    # No subject: the subjects are those of records. Text and other bytes are between.
    values = [framed(2, b"\x02x"), framed(44, b"\x02x"), b"text", b"\0"]
    write(tmp_path / "any-0", values)
    assert found(registry, tmp_path) == {"any-value": "no schema has the id 44, which 1 record names"}


@pytest.mark.parametrize(("count", "is_found"), [(19, False), (20, True), (300, True)])
def test_a_sample_that_a_schema_reads(
    registry: StoredRegistry, tmp_path: Path, count: int, is_found: bool
) -> None:
    values = [framed(77, bytes([2 * len(text)]) + text) for n in range(count) for text in [b"%d" % n]]
    write(tmp_path / "any-0", values)
    report = lint_schemas(registry, [str(tmp_path)])
    assert len(report["findings"]) == is_found
    assert len(report["notes"]) == (not is_found)


# --- memory -----------------------------------------------------------------------------------------


def test_the_largest_values_make_room() -> None:
    name, other = SchemaName(1, "confluent", False), SchemaName(2, "confluent", False)
    sample = ValueSample(10_000)
    for size in (3000, 8000, 1000, 9000, 2000, 20_000):
        sample.add(name, SampledValue(b"x" * size, []))
    sample.add(other, SampledValue(b"y", [("header", b"z" * 1000)]))
    assert [len(value.data) for value in sample.by_name()[name]] == [3000, 1000, 2000]
    assert [value.data for value in sample.by_name()[other]] == [b"y"]
    assert sample.seen(name) == 6
    for number in range(100_000):
        sample.add(name, SampledValue(b"%d" % number, []))
    assert len(sample.by_name()[name]) < 50


def test_values_that_are_too_large_for_a_sample(registry: StoredRegistry, tmp_path: Path) -> None:
    write(tmp_path / "orders-0", [framed(40, b"\0" * (9 << 20))], codec="zstd")
    (finding,) = lint_schemas(registry, [str(tmp_path)])["findings"]
    assert finding["message"] == "no schema has the id 40, which 1 record names"
    assert "its values are too large for a sample" in finding["remedy"]


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_many_large_values(tmp_path: Path) -> None:
    # 2,000 values of 500 kB, and so many keys: 59 KB of zstd, and 1 GB without it.
    value = framed(40, b"\0" * 500_000)
    write(tmp_path / "logs" / "orders-0", [value] * 2000, [b"\0" + b"k" * 8] * 2000, codec="zstd", batch=10)
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "orders-value.avsc").write_text('"bytes"')
    code = """
import sys
from magicbyte.jobs.schema_check import lint_schemas
from magicbyte.schema.directory import read_directory
(finding,) = [one for one in lint_schemas(read_directory(sys.argv[1]), [sys.argv[2]])["findings"]
              if one["rule"] == "ORPHANED_ID"]
assert "which 2,000 records name" in finding["message"], finding
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) // 1024)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "schemas", tmp_path / "logs"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 400


# --- the names in a batch ---------------------------------------------------------------------------


def row_name(value: bytes | None, headers: Headers, *, is_key: bool) -> SchemaName | None:
    """The name in a row, without the columns."""
    try:
        framed = parse(value, headers, is_key=is_key)
        in_header = parse(b"", headers, is_key=is_key) is not None
    except InvalidRecordError:
        return None
    if framed is not None and framed.id == 0 and not in_header:
        framed = parse(value, framing="apicurio")
    if framed is None or (framed.id is not None and framed.id <= 0):
        return None
    named = framed.id or framed.fingerprint or UUID(framed.guid).bytes
    return SchemaName(named, framed.framing, in_header)


def test_names_are_those_of_each_row() -> None:
    r = random.Random(3)
    starts = [
        b"",
        b"\0",
        b"\0\0\0\0",
        b"\0\0\0\0\0",
        b"\0\0\0\0\7",
        b"\0\xff",
        b"\1",
        b"\2",
        b"\3\0",
        b"\3\5",
    ]
    starts += [b"\3\1", b"\xc3\1", b"\xc3", b"\0" * 9, b"\0" * 8 + b"\7", framed(2, b""), b"{}"]
    keys = ["__key_schema_id", "__value_schema_id", "apicurio.value.globalId", "apicurio.key.contentId"]
    keys += ["apicurio.value.artifactId", "apicurio.value.encoding", "x", "__value_schema_id2"]
    contents = [
        None,
        b"",
        framed(5, b""),
        framed(5, b"\2\4"),
        b"\1" + b"g" * 16,
        b"\0" * 7 + b"\5",
        b"?" * 40,
    ]

    def value() -> bytes | None:
        if r.random() < 0.1:
            return None
        return r.choice(starts) + bytes(r.choice([0, 0, 1, 200]) for _ in range(r.choice([0, 1, 4, 12, 30])))

    def headers() -> Headers | None:
        if r.random() < 0.5:
            return None
        return [(r.choice(keys), r.choice(contents)) for _ in range(r.randrange(4))]

    type_ = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    for _ in range(100):
        rows = [(value(), headers()) for _ in range(50)]
        for column in ("key", "value"):
            batch = pa.record_batch(
                {
                    column: pa.array([one for one, _ in rows], pa.binary()),
                    "headers": pa.array([h for _, h in rows], type_),
                }
            ).slice(3)
            expected = [row_name(one, own or [], is_key=column == "key") for one, own in rows[3:]]
            named = NamedSchemas(batch, column)
            assert named.counts == Counter(name for name in expected if name is not None)
            assert sorted((row, name) for name, row in named.rows(named.counts)) == [
                (row, name) for row, name in enumerate(expected) if name is not None
            ]
            assert named.values == sum(one is not None for one, _ in rows[3:])


def test_a_record_of_many_headers() -> None:
    headers = [("__value_schema_id", framed(number % 7 + 1, b"x" * 100)) for number in range(200_000)]
    type_ = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    batch = pa.record_batch({"value": pa.array([b"v"], pa.binary()), "headers": pa.array([headers], type_)})
    began = time.monotonic()
    assert NamedSchemas(batch, "value").counts == {SchemaName(199_999 % 7 + 1, "confluent", True): 1}
    assert time.monotonic() - began < 5


# --- the command ------------------------------------------------------------------------------------


def test_what_cannot_be_read(registry: StoredRegistry, tmp_path: Path) -> None:
    write(tmp_path / "orders-0", [framed(2, b"\x02x")])
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1])
    (problem,) = lint_schemas(registry, [str(tmp_path)])["problems"]
    assert problem.startswith("orders-0: ")
    with pytest.raises(RefusedError):
        lint_schemas(registry, [str(tmp_path / "nothing")])


def test_the_command(tmp_path: Path, cli: Cli) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "2.avsc").write_text('"string"')
    logs = tmp_path / "logs"
    logs.mkdir()
    write(logs / "orders-0", [framed(7, b"\x02x"), framed(2, b"\x02x")])
    output = cli("schemas", "lint", "--logs", logs, schemas, code=1)
    assert "orders-value: ORPHANED_ID: no schema has the id 7, which 1 record names" in output
    assert "the likeliest first: 2" in output
    assert output.splitlines()[-1] == "0 subjects, 1 findings; 2 records of 1 topic examined"
    write(logs / "fine-0", [framed(2, b"\x02x")])
    last = cli("schemas", "lint", "--logs", logs / "fine-0", schemas)
    assert last == "0 subjects, 0 findings; 1 record of 1 topic examined\n"
    assert cli("schemas", "lint", schemas) == "0 subjects, 0 findings\n"
    # Notes do not change the exit code.
    write(logs / "longs-0", longs(*range(2**34, 2**34 + 99)))
    report = cli.json("schemas", "lint", "--logs", logs / "longs-0", "--logs", logs / "fine-0", schemas)
    assert report["examined"] == {"fine": 1, "longs": 99}
    (note,) = report["notes"]
    output = cli("schemas", "lint", "--logs", logs / "longs-0", schemas)
    assert output.splitlines()[0] == f"note: {note}"
