"""Damage of every kind: what is valid is delivered exactly once, and nothing is invented.

Values of the bad batches hold whole batches (a mirror's or a backup's topic): none of them is the log's.
"""

import random
from pathlib import Path

import magicbyte
import pytest
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.verify import verify
from magicbyte.options.read import VerifyOptions

BASE = 100
PHANTOM = b"PHANTOM"


def build(magic: int, offset: int, values: list[bytes], codec: int = 0) -> bytes:
    builder = magicbyte.RecordsBuilder(magic, codec)
    for delta, value in enumerate(values):
        builder.append(offset + delta, 1000 + offset + delta, b"k", value)
    return builder.build()


def plain(magic: int, count: int, first: int = BASE, padding: int = 50) -> list[bytes]:
    """Batches of one record, whose value is its offset."""
    return [build(magic, first + i, [b"%d:" % (first + i) + bytes(padding)]) for i in range(count)]


def holding(magic: int, offset: int, inner: int, count: int) -> bytes:
    """A batch whose value holds `count` batches from the offset `inner` on."""
    batches = b"".join(build(magic, max(0, inner) + i, [PHANTOM]) for i in range(count))
    return build(magic, offset, [b"before, " + batches + b" after" + bytes(40)])


class Read:
    """A segment as its readers see it; all of them agree."""

    def __init__(self, root: Path, data: bytes, base: int = BASE) -> None:
        directory = root / "t-0"
        directory.mkdir(exist_ok=True)
        (directory / f"{base:020}.log").write_bytes(data)
        log = magicbyte.PartitionLog(directory, mode="PERMISSIVE")
        records = log.records()
        self.rows = [(record.offset, record.value_bytes) for record in records]
        self.problems = records.problems
        sums = log.verify()
        assert sums.balanced
        assert sums.rows == len(self.rows)

    @property
    def offsets(self) -> list[int]:
        return [offset for offset, _ in self.rows]

    @property
    def phantoms(self) -> list[int]:
        return [offset for offset, value in self.rows if value is not None and value.startswith(PHANTOM)]


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("inner", [-1000, -1, 0, 1, 5, 1000, 1_000_000])
def test_a_torn_tail_is_a_tail_whatever_its_values_hold(tmp_path: Path, magic: int, inner: int) -> None:
    first = 10_000
    whole = b"".join(plain(magic, 5, first))
    for count in (1, 3):
        last = holding(magic, first + 5, first + 5 + inner, count)
        for cut in range(20, len(last), 9):
            read = Read(tmp_path, whole + last[:cut], first)
            assert read.offsets == list(range(first, first + 5)), (count, cut)
            assert [problem["kind"] for problem in read.problems] == ["partial_batch"], (count, cut)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_torn_tail_before_zeros_that_a_crash_left(tmp_path: Path, magic: int) -> None:
    whole = b"".join(plain(magic, 5))
    last = holding(magic, BASE + 5, BASE + 6, 3)
    for cut in range(70, len(last) - 10, 7):
        assert Read(tmp_path, whole + last[:cut] + bytes(20)).phantoms == [], cut


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("inner", [-1, 0, 1, 5])
def test_a_flipped_bit_costs_its_batch(tmp_path: Path, magic: int, inner: int) -> None:
    parts = plain(magic, 12)
    target = 5
    parts[target] = holding(magic, BASE + target, BASE + target + inner, 3)
    start, size = sum(map(len, parts[:target])), len(parts[target])
    expected = [offset for offset in range(BASE, BASE + 12) if offset != BASE + target]
    # From where the checksum's coverage begins; and the length, which no checksum covers.
    covered = list(range((21 if magic == 2 else 16) * 8, size * 8))
    for bit in random.Random(inner).sample(covered, 30) + list(range(64, 96)):
        data = bytearray(b"".join(parts))
        data[start + bit // 8] ^= 1 << bit % 8
        assert Read(tmp_path, bytes(data)).offsets == expected, bit


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_one_damaged_offset_does_not_outvote_its_neighbours(tmp_path: Path, magic: int) -> None:
    parts = plain(magic, 100)
    starts = [sum(map(len, parts[:i])) for i in range(101)]
    for bit in range(0, 40, 3):
        data = bytearray(b"".join(parts))
        data[starts[11] - 5] ^= 3
        data[starts[60] + 7 - bit // 8] ^= 1 << bit % 8
        read = Read(tmp_path, bytes(data))
        assert read.offsets == [o for o in range(BASE, BASE + 100) if o not in (BASE + 10, BASE + 60)], bit
        kinds = {problem["kind"] for problem in read.problems}
        assert kinds == {"crc_mismatch", "offset_out_of_order"}, bit


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_an_append_that_broke_off_and_was_repeated(tmp_path: Path, magic: int) -> None:
    parts = plain(magic, 12)
    for index in (0, 5, 11):
        for cut in range(1, len(parts[index]), 3):
            data = b"".join([*parts[:index], parts[index][:cut], *parts[index:]])
            assert Read(tmp_path, data).offsets == list(range(BASE, BASE + 12)), (index, cut)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("page", [512, 4096])
def test_a_page_that_is_there_twice(tmp_path: Path, magic: int, page: int) -> None:
    data = b"".join(plain(magic, 200))
    for start in range(0, len(data) - page, page):
        twice = data[: start + page] + data[start:]
        assert Read(tmp_path, twice).offsets == list(range(BASE, BASE + 200)), start


def test_the_offset_of_a_wrapper_agrees_with_its_neighbours(tmp_path: Path) -> None:
    parts = [build(1, 1000 + 10 * i, [b"%d" % (1000 + 10 * i + j) for j in range(10)], 3) for i in range(6)]
    for index in range(1, 5):
        for bit in range(8):
            data = bytearray(b"".join(parts))
            data[sum(map(len, parts[:index])) + 7] ^= 1 << bit
            read = Read(tmp_path, bytes(data), 1000)
            assert all(value == b"%d" % offset for offset, value in read.rows), (index, bit)
            assert len(read.rows) == 50, (index, bit)
            assert [problem["kind"] for problem in read.problems] == ["offset_out_of_order"], (index, bit)


def test_no_record_has_the_largest_offset(tmp_path: Path) -> None:
    data = (2**63 - 1).to_bytes(8) + build(2, 0, [b"v"])[8:]
    read = Read(tmp_path, data, 2**63 - 1)
    assert read.rows == []
    assert [problem["kind"] for problem in read.problems] == ["offset_out_of_order"]


@pytest.mark.parametrize("second", [range(61, 120), range(16, 17), range(8, 12)])
def test_neighbours_are_repaired_each_for_itself(tmp_path: Path, second: range) -> None:
    parts = plain(2, 10, padding=60)
    directory = tmp_path / "t-0"
    directory.mkdir()
    for seed in range(20):
        chance = random.Random(seed)
        data = bytearray(b"".join(parts))
        for index, place in ((4, range(61, 120)), (5, second)):
            data[sum(map(len, parts[:index])) + chance.choice(place)] ^= 1 << chance.randrange(8)
        (directory / f"{BASE:020}.log").write_bytes(data)
        found = magicbyte.PartitionLog(directory).rescue()
        assert sorted(one.repair.batch for one in found if one.repair) == sorted(parts[4:6]), seed


def test_a_repair_of_a_large_batch_is_a_guess(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    for size, proven in ((1000, True), (200_000, False)):
        batch = build(2, BASE, [random.Random(size).randbytes(size)])
        data = bytearray(batch)
        data[size // 2] ^= 4
        (directory / f"{BASE:020}.log").write_bytes(data)
        (one,) = magicbyte.PartitionLog(directory).rescue()
        assert one.repair is not None
        assert one.repair.batch == batch
        assert one.repair.is_proven is proven
        assert one.repair.chance == pytest.approx(8 * (len(batch) - 21) / 2**32)


SEGMENTS = {first: b"".join(plain(2, 10, first, 0)) for first in (0, 10, 20, 30)}
HALF = sum(map(len, plain(2, 5, 10, 0)))
LATE = SEGMENTS[10][:HALF]


@pytest.mark.parametrize(
    ("changed", "kind", "lost"),
    [
        pytest.param({10: None}, "missing_segment", (10, 19), id="no file"),
        pytest.param({10: LATE}, "missing_segment", (15, 19), id="cut between batches"),
        pytest.param({10: SEGMENTS[10][: HALF + 30]}, "partial_batch", (15, 19), id="torn"),
        pytest.param({10: LATE + bytes(300)}, "zeros", (15, 19), id="zeros at its end"),
        pytest.param({10: LATE + bytes(1 << 20)}, "zeros", (15, 19), id="preallocated"),
        pytest.param({10: bytes(700)}, "zeros", (10, 19), id="all zeros"),
        pytest.param({10: b""}, "missing_segment", (10, 19), id="emptied"),
        pytest.param({0: b""}, "missing_segment", (0, 9), id="the first emptied"),
        pytest.param({10: LATE + b"\xff" * 300}, "invalid_size", (15, 19), id="garbage at its end"),
    ],
)
def test_a_segment_in_the_middle_that_lost_records_names_them(
    tmp_path: Path, changed: dict[int, bytes | None], kind: str, lost: tuple[int, int]
) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    for first, data in {**SEGMENTS, **changed}.items():
        if data is not None:
            (directory / f"{first:020}.log").write_bytes(data)
    report = verify([str(directory)], LocalEngine(1), VerifyOptions(max_decompressed_bytes=1 << 20))
    assert report["balanced"]
    (problem,) = report["problems"]
    assert problem["kind"] == kind
    assert (problem["first_lost_offset"], problem["last_lost_offset"]) == lost


def test_a_byte_that_looks_like_a_length_hides_no_log(tmp_path: Path) -> None:
    """After damage, the byte before the next message is its size as a varint."""
    parts = [build(0, BASE + i, [b"v"]) for i in range(20)]
    size = len(parts[0])
    for way in range(2):
        data = bytearray(b"".join(parts))
        data[5 * size : 6 * size] = bytes([0xEE]) * size if way else random.Random(3).randbytes(size)
        data[6 * size - 1] = 2 * size  # zigzag
        assert Read(tmp_path, bytes(data)).offsets == [o for o in range(BASE, BASE + 20) if o != BASE + 5]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_damaged_offset_before_a_damaged_batch(tmp_path: Path, magic: int) -> None:
    """The neighbour that would contradict the offset is damaged, too, but later ones contradict it."""
    parts = plain(magic, 60)
    starts = [sum(map(len, parts[:i])) for i in range(61)]
    for bit in range(7, 30, 4):
        data = bytearray(b"".join(parts))
        data[starts[20] + 7 - bit // 8] ^= 1 << bit % 8
        data[starts[22] - 5] ^= 3
        read = Read(tmp_path, bytes(data))
        assert read.offsets == [o for o in range(BASE, BASE + 60) if o not in (BASE + 20, BASE + 21)], bit
