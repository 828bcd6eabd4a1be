"""What redact promises: nothing of a redacted record is in the output, wherever it was."""

from __future__ import annotations

import gzip
import json
import os
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import Cli
from magicbyte import RecordsBuilder, _core
from magicbyte.errors import JobError
from magicbyte.jobs import redact as job
from magicbyte.jobs.clean import CleanReport
from magicbyte.jobs.redact import redact_partitions
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.options.redact import RedactOptions
from wire import batch, message, record, sealed

SECRET = b"user-4711-secret"
NOW = 1_700_000_000_000
SEGMENT = f"{0:020}.log"


def partition(directory: Path, data: bytes, name: str = "t-0") -> Path:
    path = directory / name / SEGMENT
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return directory


def redacted(source: Path, out: Path, **options: Any) -> CleanReport:
    return redact_partitions(
        [str(source)], str(out), LocalEngine(2), RedactOptions(**{"keys": [SECRET], **options})
    )


def every_byte(directory: Path) -> Iterator[tuple[str, bytes]]:
    """All names and files, and what each batch of a segment decompresses to."""
    for path in sorted(directory.rglob("*")):
        yield "name", os.fsencode(path.relative_to(directory))
        if path.is_file():
            data = path.read_bytes()
            yield str(path), data
            if path.suffix == ".log":
                for one in magicbyte.read_batches(data):
                    yield f"{path} at {one.position}", content_of(one)


def content_of(one: Any) -> bytes:
    raw = one.to_bytes()
    if one.magic == 2:
        if one.compression == 0 or one.record_count == 0:
            return b""
        return bytes(_core.decompress(int(one.compression), 2, raw[61:]))
    if one.compression == 0:
        return b""
    at = 18 if one.magic == 0 else 26
    key = max(0, int.from_bytes(raw[at : at + 4], "big", signed=True))
    return bytes(_core.decompress(int(one.compression), one.magic, raw[at + 8 + key :]))


def is_in(secret: bytes, directory: Path) -> list[str]:
    return [place for place, data in every_byte(directory) if secret in data]


def kept(directory: Path) -> list[tuple[int, bytes | None, bytes | None]]:
    log = magicbyte.PartitionLog(directory / "t-0", mode="PERMISSIVE")
    return [(r.offset, r.key_bytes, r.value_bytes) for r in log.records(isolation_level="read_uncommitted")]


# --- where no reader looks ----------------------------------------------------------------------

PAIRS = [(b"a", b"b" * 40), (b"c", b"d" * 40)]
RECORDS = [record(n, *pair) for n, pair in enumerate(PAIRS)]
SHORT = SECRET[:8]
"""For places that have no space for more."""


def inner(magic: int, *more: bytes) -> bytes:
    return b"".join([*(message(n, magic, *pair) for n, pair in enumerate(PAIRS)), *more])


def wrapper(magic: int, content: bytes, key: bytes | None = None, tail: bytes = b"") -> bytes:
    return message(1, magic, key, gzip.compress(content, mtime=0), attributes=1, timestamp=NOW, tail=tail)


def stream(codec: int, change: Callable[[bytes], bytes], magic: int = 2) -> bytes:
    """A batch with a manipulated compressed stream; its content and checksum are valid."""
    builder = RecordsBuilder(magic, codec)
    for number, pair in enumerate(PAIRS):
        builder.append(number, NOW, *pair)
    raw = builder.build()
    start = 61 if magic == 2 else 26 if magic == 0 else 34
    payload = change(raw[start:])
    if magic != 2:
        raw = raw[: start - 4] + struct.pack(">i", len(payload)) + raw[start:]
    raw = raw[:start] + payload
    return sealed(raw[:8] + struct.pack(">i", len(raw) - 12) + raw[12:])


def control(*records: bytes, **fields: int) -> bytes:
    return batch(records, base_offset=0, attributes=0x30, **{"producer_id": 1, "producer_epoch": 0, **fields})


def marker(key: bytes = b"", value: bytes = b"", headers: Any = ()) -> bytes:
    return record(0, struct.pack(">hh", 0, 1) + key, struct.pack(">hi", 0, 5) + value, headers)


def named(gz: bytes) -> bytes:
    return gz[:3] + b"\x08" + gz[4:10] + SECRET + b"\0" + gz[10:]


def skippable() -> bytes:
    return struct.pack("<II", 0x184D2A50, len(SECRET)) + SECRET


def lz4_size(frame: bytes) -> bytes:
    """A content size that is the secret's first bytes; only magic 0 tolerates a wrong header checksum."""
    return frame[:4] + bytes([frame[4] | 8]) + frame[5:6] + SHORT + frame[6:]


EMPTY_MEMBER = b"\x1f\x8b\x08\x08" + bytes(5) + b"\xff" + SECRET + b"\0\x03\0" + bytes(8)
XERIAL = b"\x82SNAPPY\0"
HIDDEN = {
    "a wrapper's key, magic 1": wrapper(1, inner(1), SECRET),
    "a wrapper's key, magic 0": wrapper(0, inner(0), SECRET),
    "after a wrapper's value": wrapper(1, inner(1), tail=SECRET),
    "after a message's value, magic 1": message(1, 1, *PAIRS[0], tail=SECRET),
    "after a message's value, magic 0": message(1, 0, *PAIRS[0], tail=SECRET),
    "after the value of a message inside": wrapper(1, message(0, 1, *PAIRS[0]) + message(1, 1, tail=SECRET)),
    "a last message that is cut, magic 1": wrapper(1, inner(1, message(2, 1, SECRET, b"v" * 40)[:-8])),
    "a last message that is cut, magic 0": wrapper(0, inner(0, message(2, 0, SECRET, b"v" * 40)[:-8])),
    "a last message without its beginning": wrapper(1, inner(1, SECRET[:11])),
    "the second record of a marker's batch": control(marker(), record(1, SECRET, SECRET)),
    "a marker's headers": control(marker(headers=[(SECRET, SECRET)])),
    "a marker's key": control(marker(key=SECRET)),
    "a marker's value": control(marker(value=SECRET)),
    "headers of an unknown control record": control(
        record(0, struct.pack(">hh", 0, 77), b"x", [(b"h", SECRET)]), producer_id=-1
    ),
    "the key of an unknown control record": control(
        record(0, struct.pack(">hh", 0, 77) + SECRET, b"x"), producer_id=-1
    ),
    "the value of an unknown control record": control(
        record(0, struct.pack(">hh", 0, 77), SECRET), producer_id=-1
    ),
    "a record that only looks like a control record": batch(
        [record(0, SECRET, SECRET)], base_offset=0, attributes=0x20
    ),
    "after the value of a control record": control(
        record(0, struct.pack(">hh", 0, 2), struct.pack(">hi", 0, 5) + b"\x01\x01\0" + SECRET), producer_id=-1
    ),
    "a control record's value that says nothing": control(
        record(0, struct.pack(">hh", 0, 4), SECRET[:1]),
        record(1, struct.pack(">hh", 0, 6), SECRET),
        producer_id=-1,
    ),
    "a control record without a type": control(
        record(0, struct.pack(">hh", 0, 2), b"x"), record(1, None, SECRET), producer_id=-1
    ),
    "after the header of a batch without records": batch(
        [SECRET], base_offset=0, count=0, last_offset_delta=0
    ),
    "gzip: a file name": stream(1, named),
    "gzip: after the member": stream(1, lambda gz: gz + SECRET),
    "gzip: after the member, ended like it": stream(1, lambda gz: gz + SECRET + gz[-8:]),
    "gzip: the name of an empty member": stream(1, lambda gz: EMPTY_MEMBER + gz),
    "gzip: the name of an empty member at the end": stream(1, lambda gz: gz + EMPTY_MEMBER),
    "gzip: a file name, magic 1": stream(1, named, magic=1),
    "snappy: versions": stream(2, lambda raw: raw[:8] + SHORT + raw[16:]),
    "snappy: another header": stream(2, lambda raw: raw + XERIAL + SHORT),
    "lz4: after the end mark": stream(3, lambda frame: frame + SECRET),
    "lz4: after the end mark, magic 0": stream(3, lambda frame: frame + SECRET, magic=0),
    "lz4: the content's size": stream(3, lz4_size, magic=0),
    "zstd: a skippable frame before": stream(4, lambda frame: skippable() + frame),
    "zstd: a skippable frame after": stream(4, lambda frame: frame + skippable()),
}


@pytest.mark.parametrize("way", ["keys", "where"])
@pytest.mark.parametrize("where", HIDDEN)
def test_nothing_is_left_where_no_reader_looks(where: str, way: str, tmp_path: Path) -> None:
    """Such a batch is rewritten from its records, whatever is selected."""
    after = RecordsBuilder(2, 0)
    after.append(5, NOW, b"last", b"1")
    source = partition(tmp_path / "in", HIDDEN[where] + after.build())
    secret = SHORT if "versions" in where or "size" in where or "another" in where else SECRET[:11]
    assert is_in(secret, source)
    asked: dict[str, Any] = {"keys": [SECRET, SHORT]} if way == "keys" else {"keys": [], "where": "key = 'x'"}
    report = redacted(source, tmp_path / "out", **asked)
    assert report["balanced"]
    assert report["problems"] == []
    assert report["counts"]["stripped_batches"] + report["counts"]["redacted"] == 1
    assert is_in(secret, tmp_path / "out") == []
    log = magicbyte.PartitionLog(source / "t-0")
    before = [(r.offset, r.key_bytes, r.value_bytes) for r in log.records(isolation_level="read_uncommitted")]
    assert kept(tmp_path / "out") == before
    types = [
        [b.is_control for b in magicbyte.PartitionLog(p / "t-0").batches()][:1]
        for p in (source, tmp_path / "out")
    ]
    if "without records" not in where:
        assert types[0] == types[1]


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", range(5))
def test_what_writers_write_is_copied(magic: int, codec: int, tmp_path: Path) -> None:
    """Byte for byte: these batches hold nothing but their records."""
    if magic < 2 and codec == 4:
        pytest.skip("zstd needs magic 2")
    rng = random.Random(codec)
    data = b""
    for size in (1, 50, 3_000, 70_000, 300_000):
        for fill in (rng.randbytes, bytes, lambda n: b"text " * (n // 5)):
            # A batch without a leader epoch would get one.
            builder = RecordsBuilder(magic, codec, partition_leader_epoch=0 if magic == 2 else -1)
            base = len(data)
            for number in range(3):
                builder.append(base + number, NOW, b"k", fill(size))
            data += builder.build()
    source = partition(tmp_path / "in", data)
    report = redacted(source, tmp_path / "out")
    assert report["counts"]["rewritten_batches"] == 0
    assert (tmp_path / "out" / "t-0" / SEGMENT).read_bytes() == data


# --- the check ----------------------------------------------------------------------------------


def test_what_stays_in_a_control_record_stops_it(tmp_path: Path, cli: Cli) -> None:
    """Fields of later versions must not be cut: no output, but a message with the position."""
    later = struct.pack(">hi", 0, 5) + b"\x01\x01" + b"\x01\x07" + bytes([len(SECRET)]) + SECRET
    leader = control(record(0, struct.pack(">hh", 0, 2), later), producer_id=-1)
    source = partition(
        tmp_path / "in", batch(RECORDS, base_offset=0) + sealed(struct.pack(">q", 2) + leader[8:])
    )
    with pytest.raises(JobError, match=r"t-0/0{20}\.log: one of the keys in a control record .*offset 2"):
        redacted(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    cli("redact", "--engine", "local", "--key", SECRET.decode(), source, tmp_path / "out", code=3)
    assert "one of the keys in a control record" in cli.error
    assert SECRET.decode() not in cli.error
    assert sorted(os.listdir(tmp_path)) == ["in"]
    report = redacted(source, tmp_path / "out", check=False)
    assert report["check"] is None
    assert is_in(SECRET, tmp_path / "out")


def test_numbers_that_spell_a_key_stop_it(tmp_path: Path) -> None:
    """A timestamp is kept, whatever bytes it consists of."""
    first, second = struct.unpack(">qq", SECRET)
    data = batch(RECORDS, base_offset=0, base_timestamp=first, max_timestamp=second)
    source = partition(tmp_path / "in", data)
    with pytest.raises(JobError, match=r"one of the keys in a batch's header \(batch at byte 0, offset 0\)"):
        redacted(source, tmp_path / "out")


def test_small_numbers_as_keys_are_no_leak(tmp_path: Path) -> None:
    """The eight bytes of 1000 from a serializer also occur in headers and indexes."""
    key = struct.pack(">q", 1000)
    builder = RecordsBuilder(2, 0)
    builder.append(1000, 1000, key, b"v")
    builder.append(1001, 1000, b"other", b"v")
    source = partition(tmp_path / "in", builder.build())
    report = redacted(source, tmp_path / "out", keys=[key])
    assert report["counts"]["redacted"] == 1
    assert [offset for offset, _, _ in kept(tmp_path / "out")] == [1001]


def test_words_and_numbers_of_the_report_are_no_leak(tmp_path: Path, cli: Cli) -> None:
    """Keys that are also names of report fields, offsets, or the name of a segment."""
    builder = RecordsBuilder(2, 0, partition_leader_epoch=3)
    for number, key in enumerate((b"partition", b"12345678", b"kept", b"balanced", b"magicbyte")):
        builder.append(12345678 + number, NOW, key, b"v")
    path = tmp_path / "in" / "t-0" / f"{12345678:020}.log"
    path.parent.mkdir(parents=True)
    path.write_bytes(builder.build() + b"garbage")
    (path.parent / "leader-epoch-checkpoint").write_text("0\n1\n3 12345678\n")
    keys = [b"partition", b"12345678", b"balanced", b"magicbyte", b"the file ends inside a batch"]
    report = magicbyte.redact(tmp_path / "in", tmp_path / "out", keys=keys)
    assert (report["counts"]["redacted"], report["unmatched_keys"]) == (4, [(4, 4)])
    assert "12345678" in (tmp_path / "out" / "t-0" / "leader-epoch-checkpoint").read_text()
    (problem,) = report["problems"]
    assert problem["message"] == "(withheld: it holds one of the keys)"


def test_lengths_that_complete_a_key_are_no_leak(tmp_path: Path) -> None:
    """The key user-471 is followed by the length of a value of 25 bytes, which is the byte `2`."""
    source = partition(tmp_path / "in", batch([record(0, b"user-471", b"v" * 25)], base_offset=0))
    assert b"user-4712" in (source / "t-0" / SEGMENT).read_bytes()
    assert redacted(source, tmp_path / "out", keys=[b"user-4712"])["check"] is not None


def test_keys_in_other_records_are_reported(tmp_path: Path, cli: Cli) -> None:
    builder = RecordsBuilder(2, 4)
    builder.append(0, NOW, SECRET, b"gone")
    builder.append(1, NOW, b"a", b"about " + SECRET)
    builder.append(2, NOW, b"b", b"", [("h", SECRET), ("i", SECRET)])
    builder.append(3, NOW, SECRET + b"-2", SECRET)
    source = partition(tmp_path / SECRET.decode(), builder.build(), f"{SECRET.decode()}-0")
    (source / f"{SECRET.decode()}-0" / f"{SECRET.decode()}.txt").write_text("a foreign file")
    arguments = ("redact", "--engine", "local", "--key", SECRET.decode(), source)
    report = cli.json(*arguments, tmp_path / "out")
    check = report["check"]
    assert (check["in_keys"], check["in_values"], check["in_headers"], check["in_names"]) == (1, 2, 1, 3)
    assert check["records"] == 3
    assert ".txt" not in json.dumps(report)
    printed = cli(*arguments, tmp_path / "again")
    assert "none of the keys left" in printed
    assert "keys also occur in values of other records: 2" in printed


def test_the_check_finds_what_a_redaction_leaves_out(tmp_path: Path) -> None:
    """It reads the files, and does not rely on the earlier passes."""
    data = {
        "a record": batch([record(0, SECRET, b"v")]),
        "a tombstone with a value": batch([record(0, SECRET, b"v")]),
        "no batch": batch(RECORDS) + SECRET,
        "a bad checksum": batch([record(0, b"k", SECRET)], crc=1),
        **HIDDEN,
    }
    for number, (where, content) in enumerate(data.items()):
        path = tmp_path / f"{number:020}.log"
        path.write_bytes(content)
        keys = _core.KeySet([SECRET, SHORT])
        found = json.loads(_core.check_segment(path, keys, tombstones="tombstone" in where))
        assert found["leaks"] >= 1, where
        assert len(found["first_leaks"]) == min(found["leaks"], 20)
    path.write_bytes(batch([record(0, SECRET, None), *RECORDS]))
    assert json.loads(_core.check_segment(path, keys, tombstones=True))["leaks"] == 0
    assert json.loads(_core.check_segment(path, keys, tombstones=False))["leaks"] == 1


def test_damage_is_not_in_the_output(tmp_path: Path) -> None:
    """Quarantined bytes, a tail, sidecars and other files: unreadable bytes are not copied."""
    bad = bytearray(batch([record(0, SECRET, SECRET)], base_offset=2))
    bad[30] ^= 1
    after = batch([record(0, b"z", b"1")], base_offset=3)
    tail = batch([record(0, SECRET, SECRET)], base_offset=4)[:-3]
    source = partition(tmp_path / "in", batch(RECORDS, base_offset=0) + bad + after + tail)
    for name in (f"{0:020}.index", f"{0:020}.txnindex", f"{4:020}.snapshot", "partition.metadata", "notes"):
        (source / "t-0" / name).write_bytes(SECRET)
    report = redacted(source, tmp_path / "out")
    assert report["balanced"]
    assert report["total"]["quarantined_bytes"] > 0
    assert is_in(SECRET, tmp_path / "out") == []
    assert [offset for offset, _, _ in kept(tmp_path / "out")] == [0, 1, 3]


# --- sources that change ------------------------------------------------------------------------


def log_of(secret_at: int) -> bytes:
    builder = RecordsBuilder(2, 0)
    for offset in range(10):
        builder.append(offset, NOW, SECRET if offset == secret_at else b"another-1", b"value")
    return builder.build()


def swapped(path: Path) -> None:
    """Other content, the same size and time."""
    state = path.stat()
    path.write_bytes(log_of(5))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def replaced(path: Path) -> None:
    """Another file of the same content and time."""
    state, other = path.stat(), path.with_suffix(".new")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(state.st_atime_ns, state.st_mtime_ns))
    other.rename(path)


def touched(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def grown(path: Path) -> None:
    path.write_bytes(path.read_bytes() + log_of(5))


@pytest.mark.parametrize("change", [swapped, replaced, touched, grown])
@pytest.mark.parametrize("way", [{"where": f"key = '{SECRET.decode()}'", "keys": []}, {"keys": [SECRET]}])
def test_a_source_that_changes_between_the_passes(
    change: Callable[[Path], None], way: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = partition(tmp_path / "in", log_of(3))
    between = job._Redact.between

    def and_change(*arguments: Any) -> Any:
        change(source / "t-0" / SEGMENT)
        return between(*arguments)

    monkeypatch.setattr(job._Redact, "between", and_change)
    with pytest.raises(JobError, match=rf"{SEGMENT}: changed while it was read"):
        redacted(source, tmp_path / "out", **way)
    assert os.listdir(tmp_path) == ["in"]


def test_a_source_that_changes_before_the_expression_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts and sizes are the same; only the batches differ."""
    source = partition(tmp_path / "in", log_of(3))
    selected = job.select_in_chunk

    def after_a_change(*arguments: Any) -> Any:
        swapped(source / "t-0" / SEGMENT)
        return selected(*arguments)

    monkeypatch.setattr(job, "select_in_chunk", after_a_change)
    with pytest.raises(JobError, match="changed while it was read"):
        redacted(source, tmp_path / "out", where="offset = 1")


def test_a_log_changed_between_the_passes_is_not_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from magicbyte.jobs import compact as compacting

    source = partition(tmp_path / "in", log_of(3))
    between = compacting._Compact.between

    def and_change(*arguments: Any) -> Any:
        swapped(source / "t-0" / SEGMENT)
        return between(*arguments)

    monkeypatch.setattr(compacting._Compact, "between", and_change)
    with pytest.raises(JobError, match="changed while it was read"):
        magicbyte.compact(source, tmp_path / "out", all=True)


# --- all of it at once --------------------------------------------------------------------------


class Hider:
    """Writes logs with the secret in every place that a hostile writer could choose."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.offset = 0
        self.expected: list[tuple[int, bytes | None]] = []
        """Offset and key of the records that are kept, where nothing is damaged."""

    def some(self, data: bytes, chance: float = 0.3) -> bytes:
        return data if self.rng.random() < chance else b""

    def pairs(self) -> list[tuple[bytes | None, bytes | None]]:
        """Some records of the secret's owner, whose values may hold anything, and some of others."""
        found: list[tuple[bytes | None, bytes | None]] = []
        for _ in range(self.rng.randrange(1, 5)):
            if self.rng.random() < 0.4:
                hidden = batch([record(0, SECRET, SECRET)], base_offset=self.offset)
                found.append((SECRET, self.rng.choice([SECRET, None, hidden, hidden * 2, SECRET * 50])))
            else:
                key = self.rng.choice([None, b"", b"user-4711", b"other", SECRET[:-1]])
                found.append((key, self.rng.randbytes(self.rng.choice([0, 9, 200]))))
        return found

    def headers(self, key: bytes | None) -> list[tuple[bytes, bytes | None]]:
        return [(SECRET, SECRET), (b"h", None)] if key == SECRET else self.rng.choice([[], [(b"h", b"v")]])

    def data_batch(self) -> bytes:
        codec, pairs = self.rng.randrange(5), self.pairs()
        producer = self.rng.choice(
            [{}, {"producer_id": 7, "producer_epoch": 0, "base_sequence": self.offset}]
        )
        builder = RecordsBuilder(2, codec, **producer)
        for number, (key, value) in enumerate(pairs):
            builder.append(self.offset + number, NOW, key, value, self.headers(key))
        raw = builder.build()
        change = {
            1: lambda s: self.some(EMPTY_MEMBER) + s + self.some(SECRET),
            3: lambda s: s + self.some(SECRET),
        }
        change[4] = lambda s: self.some(skippable()) + s + self.some(skippable())
        payload = change.get(codec, lambda s: s)(raw[61:])
        raw = sealed(raw[:8] + struct.pack(">i", 49 + len(payload)) + raw[12:61] + payload)
        return self.kept(raw, pairs)

    def old_batch(self) -> bytes:
        magic, pairs = self.rng.randrange(2), self.pairs()
        if self.rng.random() < 0.4:
            raw = b"".join(
                message(self.offset + number, magic, *pair, tail=self.some(SECRET))
                for number, pair in enumerate(pairs)
            )
            return self.kept(raw, pairs)
        first = 0 if magic else self.offset
        inside = b"".join(
            message(first + n, magic, *pair, tail=self.some(SECRET, 0.1)) for n, pair in enumerate(pairs)
        )
        inside += self.some(message(first + len(pairs), magic, SECRET, SECRET)[:-5])
        stream = self.some(EMPTY_MEMBER) + gzip.compress(inside, mtime=0) + self.some(SECRET)
        last, key = self.offset + len(pairs) - 1, self.some(SECRET) or None
        return self.kept(message(last, magic, key, stream, attributes=1, tail=self.some(SECRET)), pairs)

    def kept(self, raw: bytes, pairs: list[tuple[bytes | None, bytes | None]]) -> bytes:
        for key, _ in pairs:
            if key != SECRET:
                self.expected.append((self.offset, key))
            self.offset += 1
        return raw

    def transaction(self) -> bytes:
        """Aborted or committed; its marker holds more than it should."""
        producer = {"producer_id": 9, "producer_epoch": 0}
        data = batch(
            [record(0, SECRET, SECRET, self.headers(SECRET)), record(1, b"other", b"v")],
            base_offset=self.offset,
            attributes=0x10 | self.rng.choice([0, 0x400]),
            base_sequence=self.offset,
            **producer,
        )
        kind = struct.pack(">hh", 0, self.rng.randrange(2)) + self.some(SECRET)
        ends = record(0, kind, struct.pack(">hi", 0, 5) + self.some(SECRET), self.headers(SECRET)[:1])
        more = [record(1, SECRET, SECRET)] if self.rng.random() < 0.3 else []
        control = batch([ends, *more], base_offset=self.offset + 2, attributes=0x30, **producer)
        self.expected.append((self.offset + 1, b"other"))
        self.offset += 3 + len(more)
        return data + control

    def empty_batch(self) -> bytes:
        self.offset += 1
        return batch([self.some(SECRET, 0.7)], base_offset=self.offset - 1, count=0, last_offset_delta=0)

    def unordered_batch(self) -> bytes:
        """Cannot be rewritten once one of its records has to go."""
        self.offset += 3
        records = [record(0, b"a", b"1"), record(2, SECRET, SECRET), record(1, b"c", b"1")]
        return batch(records, base_offset=self.offset - 3, last_offset_delta=2)

    def segment(self, *, damage: bool) -> bytes:
        out = b""
        makers = [self.data_batch, self.old_batch, self.transaction, self.empty_batch]
        for _ in range(self.rng.randrange(2, 8)):
            raw = bytearray(self.rng.choice([*makers, self.unordered_batch] if damage else makers)())
            if damage and self.rng.random() < 0.2:
                raw[self.rng.randrange(16, len(raw))] ^= 1 << self.rng.randrange(8)
            out += bytes(raw)
            if damage:
                out += self.some(self.rng.choice([SECRET * 9, bytes(40), SECRET + bytes(30)]), 0.1)
        if damage:
            out += self.some(batch([record(0, SECRET, SECRET)], base_offset=self.offset)[:-1], 0.3)
            out += self.some(SECRET * 3, 0.2)
        return out

    def write(self, directory: Path, *, damage: bool) -> None:
        directory.mkdir(parents=True)
        for _ in range(self.rng.randrange(1, 4)):
            base = self.offset
            (directory / f"{base:020}.log").write_bytes(self.segment(damage=damage))
            for ending in ("index", "timeindex", "txnindex", "snapshot"):
                if self.rng.random() < 0.5:
                    (directory / f"{base:020}.{ending}").write_bytes(SECRET * 4)
        (directory / "notes.log").write_bytes(SECRET)
        (directory / "leader-epoch-checkpoint").write_bytes(self.some(b"0\n1\n" + SECRET))


@pytest.mark.parametrize("damage", [False, True])
@pytest.mark.parametrize("block", range(4))
def test_a_plain_search_finds_nothing(block: int, damage: bool, tmp_path: Path) -> None:
    """No file, compressed or not, and no name contains the secret; all other records are there."""
    ways: list[dict[str, Any]] = [
        {"keys": [SECRET]},
        {"keys": [], "where": f"key = '{SECRET.decode()}'"},
        {"keys": [b"nobody", SECRET], "where": "offset = -1"},
    ]
    hidden = 0
    for seed in range(block * 15, block * 15 + 15):
        source, out, hider = tmp_path / f"in-{seed}", tmp_path / f"out-{seed}", Hider(seed)
        hider.write(source / "t-0", damage=damage)
        hidden += any(SECRET in path.read_bytes() for path in source.rglob("0*.log"))
        if ways[seed % 3]["keys"]:
            # An expression gives no key to search names for.
            (source / "t-0" / f"{SECRET.decode()}.log").write_bytes(SECRET)
        report = redacted(source, out, **ways[seed % 3])
        assert report["balanced"], seed
        assert is_in(SECRET, out) == [], seed
        if not damage:
            assert report["total"]["quarantined_bytes"] == 0, seed
            assert [(offset, key) for offset, key, _ in kept(out)] == hider.expected, seed
    assert hidden > 5
