"""Random damage to random logs: intact batches are delivered once, and nothing is invented.

`docs/damage.md` lists what is lost, and how often: the bounds here are those of its table.
`python tests/python/test_random_damage.py SECONDS` measures them.
"""

import collections
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import magicbyte
import pytest

BASE = 100
PHANTOM = b"PHANTOM"
Row = tuple[int, bytes | None]


def build(magic: int, offset: int, values: list[bytes], codec: int = 0) -> bytes:
    builder = magicbyte.RecordsBuilder(magic, codec)
    for delta, value in enumerate(values):
        builder.append(offset + delta, 1000 + offset + delta, b"k", value)
    return builder.build()


class Log:
    """Forty batches; with `inner`, a third hold batches in their values; with `gaps`, offsets are missing."""

    def __init__(self, chance: random.Random, magic: int, codec: int, inner: bool, gaps: bool) -> None:
        self.batches: list[bytes] = []
        self.rows: list[list[Row]] = []
        offset = BASE
        for _ in range(40):
            records = chance.choice((1, 1, 3, 8)) if magic == 2 or codec else 1
            size = chance.choice((10, 60, 60, 300, 2000))
            values = [b"%d:" % (offset + i) + chance.randbytes(size) for i in range(records)]
            if inner and chance.random() < 0.3:
                values[chance.randrange(records)] = self._holding(chance, magic, offset)
            self.batches.append(build(magic, offset, values, codec))
            self.rows.append([(offset + i, value) for i, value in enumerate(values)])
            offset += records
            if gaps and chance.random() < 0.3:
                offset += chance.choice((1, 2, 10, 100))
        self.starts = [0]
        for batch in self.batches:
            self.starts.append(self.starts[-1] + len(batch))
        self.data = b"".join(self.batches)

    @staticmethod
    def _holding(chance: random.Random, magic: int, offset: int) -> bytes:
        inner_magic = chance.choice((magic, magic, 0, 1, 2))
        first = max(0, offset + chance.choice((-50, -1, 0, 1, 2, 5, 30, 1000)))
        codec = chance.choice((0, 0, 4 if inner_magic == 2 else 1))
        inner = [
            build(inner_magic, first + i, [PHANTOM + chance.randbytes(20)], codec)
            for i in range(chance.choice((1, 2, 5, 20)))
        ]
        before, after = chance.choice((b"", b"x", b"before it, ")), chance.choice((b"", b"\0", b" after it"))
        return before + b"".join(inner) + after

    def touched(self, start: int, end: int) -> set[int]:
        return {i for i in range(len(self.batches)) if self.starts[i] < end and self.starts[i + 1] > start}

    def changed(self, data: bytes) -> set[int]:
        """For data changed in place: the batches that differ."""
        places = zip(self.starts, self.starts[1:], self.batches, strict=False)
        return {i for i, (start, end, batch) in enumerate(places) if data[start:end] != batch}


def damage(chance: random.Random, log: Log, kind: str) -> tuple[bytes, set[int]]:
    """The log after the damage, and the batches that are no longer intact."""
    data = bytearray(log.data)
    size, sector = len(data), chance.randrange(len(data) // 512) * 512
    page = chance.choice((512, 4096))
    match kind:
        case "hole" | "rot":
            for _ in range(chance.choice((1, 1, 2, 4))):
                length = chance.choice((1, 16, 100, 512, 4096))
                start = chance.randrange(size)
                start -= start % 512 if length >= 512 else 0
                length = min(length, size - start)
                data[start : start + length] = bytes(length) if kind == "hole" else chance.randbytes(length)
            return bytes(data), log.changed(data)
        case "bits":
            for _ in range(chance.choice((1, 1, 2, 3, 8))):
                data[chance.randrange(size)] ^= 1 << chance.randrange(8)
            return bytes(data), log.changed(data)
        case "inserted page":
            data[sector:sector] = chance.choice((chance.randbytes(page), bytes(page)))
            bad = {i for i in range(len(log.batches)) if log.starts[i] < sector < log.starts[i + 1]}
            return bytes(data), bad
        case "lost page":
            del data[sector : sector + page]
            return bytes(data), log.touched(sector, min(size, sector + page))
        case "page twice":
            data[sector:sector] = data[sector : sector + page]
            inside = range(len(log.batches))
            return bytes(data), {
                i for i in inside if log.starts[i] < sector and log.starts[i + 1] > sector + page
            }
        case "torn":
            index = chance.randrange(len(log.batches))
            del data[log.starts[index] + chance.randrange(1, len(log.batches[index])) :]
            return bytes(data), set(range(index, len(log.batches)))
        case _:
            index = chance.randrange(len(log.batches))
            start, batch = log.starts[index], log.batches[index]
            data[start:start] = batch[: chance.randrange(1, len(batch))]
            return bytes(data), set()


KINDS = ("bits", "hole", "rot", "inserted page", "lost page", "page twice", "torn", "repeated append")


@dataclass
class Case:
    """A damaged log, and what its readers made of it."""

    kind: str
    inner: bool
    gaps: bool
    lost: int
    phantoms: int
    twice: int


def case(root: Path, seed: int) -> Case:
    chance = random.Random(seed)
    kind, magic = KINDS[seed % len(KINDS)], chance.choice((0, 1, 2))
    codec = chance.choice((0, 0, 0, 1, 2, 3, 4 if magic == 2 else 0))
    inner, gaps = chance.random() < 0.6, chance.random() < 0.25
    log = Log(chance, magic, codec, inner, gaps)
    data, bad = damage(chance, log, kind)
    directory = root / "t-0"
    directory.mkdir(exist_ok=True)
    (directory / f"{BASE:020}.log").write_bytes(data)
    opened = magicbyte.PartitionLog(directory, mode="PERMISSIVE")
    rows = collections.Counter((record.offset, record.value_bytes) for record in opened.records())
    sums = opened.verify()
    assert sums.balanced, seed
    assert sums.rows == rows.total(), seed
    whole = {row for index, rows_of in enumerate(log.rows) if index not in bad for row in rows_of}
    known = {row for rows_of in log.rows for row in rows_of}
    # Nothing protects the offset of a log's last batch, nor of one next to a gap.
    invented = {(offset, value) for offset, value in rows if (offset, value) not in known}
    phantoms = sum(1 for _, value in invented if value is not None and value.startswith(PHANTOM))
    if kind != "bits":
        assert phantoms == len(invented), seed
    twice = sum(1 for count in rows.values() if count > 1)
    return Case(kind, inner, gaps, len(whole - set(rows)), phantoms, twice)


@pytest.mark.parametrize("kind", KINDS)
def test_random_damage(tmp_path: Path, kind: str) -> None:
    cases = [case(tmp_path, seed) for seed in range(KINDS.index(kind), 90 * len(KINDS), len(KINDS))]
    assert not any(one.twice for one in cases)
    plain = [one for one in cases if not one.inner]
    assert not any(one.phantoms for one in plain)
    if kind in ("torn", "repeated append", "page twice"):
        assert not any(one.lost or one.phantoms for one in cases)
    elif kind == "lost page":
        assert sum(1 for one in cases if one.lost) <= 4
        assert sum(1 for one in cases if one.phantoms) <= 3
    else:
        assert not any(one.lost for one in plain)
        assert sum(1 for one in cases if one.lost or one.phantoms) <= 3


def measure(seconds: float) -> None:
    """Prints a row for each kind of damage: how many logs lost something valid or gained an invention."""
    sums: dict[tuple[str, bool, bool], collections.Counter[str]] = collections.defaultdict(
        collections.Counter
    )
    end, seed = time.monotonic() + seconds, 1_000_000
    with tempfile.TemporaryDirectory() as root:
        while time.monotonic() < end:
            seed += 1
            one = case(Path(root), seed)
            of = sums.setdefault((one.kind, one.inner, one.gaps), collections.Counter())
            of.update(logs=1, lost=one.lost > 0, phantoms=one.phantoms > 0, twice=one.twice > 0)
    for (kind, inner, gaps), of in sorted(sums.items()):
        print(f"{kind:16} inner={inner!s:5} gaps={gaps!s:5} {dict(of)}")


if __name__ == "__main__":
    measure(float(sys.argv[1]))
