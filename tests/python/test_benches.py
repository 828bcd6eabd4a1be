"""The benches fail on a flipped byte and on a missing record. Needs none of the peers."""

import sys
from dataclasses import replace
from pathlib import Path

import limits
import loops
import magicbyte
import picture
import programs
import pytest
import python_write
import sets
from bench import Bench
from figures import Figures, Run, figure
from floors import BEST_PEER, FLOORS, Floor, judged
from loops import Loop
from magicbyte import Compression
from programs import Program
from ratios import Comparison, in_turn
from sets import Found, Manifest, Set

BATCHES, RECORDS = 4, 25
CODECS = [Compression.NONE, Compression.ZSTD]


def content(batch: int, index: int) -> tuple[bytes, bytes]:
    return b"key-%d-%d" % (batch, index), b"value %d of batch %d" % (index, batch) * 5


def written(codec: Compression, *, records_in_the_last: int = RECORDS) -> bytes:
    """Batches with valid checksums; the last has `records_in_the_last` records."""
    builder = magicbyte.RecordsBuilder(compression=codec)
    data = b""
    for batch in range(BATCHES):
        for index in range(records_in_the_last if batch == BATCHES - 1 else RECORDS):
            builder.append(batch * RECORDS + index, 1000 + index, *content(batch, index))
        data += builder.build()
    return data


@pytest.fixture(params=CODECS, ids=lambda codec: codec.name.lower())
def codec(request: pytest.FixtureRequest) -> Compression:
    return request.param


@pytest.fixture
def of(codec: Compression, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Set:
    monkeypatch.setattr(sets, "DATA", tmp_path)
    size = sum(len(part) for batch in range(BATCHES) for i in range(RECORDS) for part in content(batch, i))
    one = Set("s1-test", "a test's", codec.name.lower(), 2, 0, Found(BATCHES * RECORDS, size))
    one.path.write_bytes(written(codec))
    return one


def broken(of: Set, codec: Compression) -> dict[str, bytes]:
    """Files that a bench must refuse. The last is valid, but not what its writer reported."""
    without_a_record = written(codec, records_in_the_last=RECORDS - 1)
    return sets.damaged(of.path.read_bytes()) | {"a missing record": without_a_record}


@pytest.mark.parametrize("loop", loops.OURS, ids=lambda loop: loop.name)
def test_a_loop_fails_on_damage(loop: Loop, of: Set, codec: Compression) -> None:
    data = of.path.read_bytes()
    loops.check(loop, of, data)
    assert loops.rate(loop, of, data) > 0
    for bad in broken(of, codec).values():
        with pytest.raises((RuntimeError, ValueError)):
            loops.rate(loop, of, bad)


def test_a_loop_that_skips_checks_is_refused(of: Set, codec: Compression) -> None:
    def blind(data: bytes) -> int:
        return loops.touch_bytes(magicbyte.read_batches(data, check_crcs=False))

    # A flipped byte in a compressed payload also breaks the codec.
    if codec == Compression.NONE:
        careless = replace(loops.OURS[0], timed=blind)
        with pytest.raises(RuntimeError, match="did not notice a flipped byte"):
            loops.check(careless, of, of.path.read_bytes())
    forgetful = replace(loops.OURS[0], timed=lambda data: of.expected.records)
    with pytest.raises(RuntimeError, match="did not notice"):
        loops.check(forgetful, of, of.path.read_bytes())


@pytest.fixture(scope="module")
def ours() -> dict[str, Path]:
    return {name: programs.ours(name, profile="ci") for name in ("decode", "encode", "limits")}


@pytest.mark.parametrize("name", ["decode", "encode", "limits"])
def test_a_program_fails_on_damage(name: str, ours: dict[str, Path], of: Set, codec: Compression) -> None:
    arguments = {"decode": [], "encode": ["lz4"], "limits": ["read", "lz4"]}[name]
    program = Program(("magicbyte",), [str(ours[name]), *arguments], warm_up_seconds=0)
    assert all(rate > 0 for rate in program.rates(of).values())
    with programs.damaged_copies(of) as copies:
        programs.must_refuse(program, of, copies)
    for bad in broken(of, codec).values():
        of.path.write_bytes(bad)
        with pytest.raises(RuntimeError, match="magicbyte on s1-test"):
            program.rates(of)


def test_the_writing_program_writes_all_records(ours: dict[str, Path], of: Set, tmp_path: Path) -> None:
    program = Program(("magicbyte",), [str(ours["encode"]), "lz4"], warm_up_seconds=0)
    program.write(of, tmp_path / "out.log")
    batches = list(magicbyte.read_batches((tmp_path / "out.log").read_bytes()))
    assert {batch.compression for batch in batches} == {Compression.LZ4}
    read = [(r.offset, r.key_bytes, r.value_bytes) for batch in batches for r in batch]
    assert read == [(i, *content(*divmod(i, RECORDS))) for i in range(BATCHES * RECORDS)]
    assert program.sizes(of) == {"magicbyte": (tmp_path / "out.log").stat().st_size}


def test_every_part_of_a_limit_is_timed(
    ours: dict[str, Path], of: Set, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "built", lambda: str(ours["limits"]))
    for codec in ("none", "zstd"):
        for limit in (limits.MEMORY, limits.COLUMNS, limits.REWRITING):
            (rate,) = limit.program(of, codec).rates(of).values()
            assert rate > 0
    # More work takes more time.
    assert limits.REWRITING.way(of, "zstd")() < limits.READING.way(of)()
    with pytest.raises(RuntimeError, match="no limit named sleep"):
        limits.Limit(("sleep",)).program(of).rates(of)


def test_a_program_that_skips_checks_is_refused(of: Set) -> None:
    careless = Program(("careless",), [sys.executable, "-c", "print(1)"], warm_up_seconds=0)
    with programs.damaged_copies(of) as copies:
        with pytest.raises(RuntimeError, match="careless did not notice a flipped byte"):
            programs.must_refuse(careless, of, copies)
        with pytest.raises(RuntimeError, match="careless did not notice a missing batch"):
            programs.must_refuse(careless, of, {"a missing batch": copies["a missing batch"]})


def test_other_programs_run_when_one_is_refused(ours: dict[str, Path], of: Set) -> None:
    careless = Program(("careless",), [sys.executable, "-c", "print(1)"], warm_up_seconds=0)
    program = Program(("magicbyte",), [str(ours["decode"])], warm_up_seconds=0)
    bench = Bench(Manifest("a test", [of]), [of], turns=1)
    assert bench.refusing([program, careless], of) == [program]
    assert bench.problems == [f"careless on {of.name}: careless did not notice a flipped byte in {of.name}"]
    with bench.guarded("a peer"):
        raise programs.Absent("a tool is not installed here")
    assert bench.absent == ["a peer: a tool is not installed here"]


def test_a_builder_that_loses_a_record_is_refused(of: Set) -> None:
    rows = python_write.rows_of(of)

    def read(data: bytes) -> list[python_write.Row]:
        return python_write.rows_read(magicbyte.read_batches(data))

    ways = python_write.our_ways(rows)
    for build in ways.values():
        python_write.check(build, rows, read)
    with pytest.raises(RuntimeError, match="different records"):
        python_write.check(lambda batch: ways["append"](batch[:-1]), rows, read)
    of.path.write_bytes(of.path.read_bytes()[:-1])
    with pytest.raises(magicbyte.Error, match="ends early"):
        python_write.rows_of(of)


def test_ratios_compare_turn_by_turn() -> None:
    seen = []

    def way(name: str, rate: float) -> float:
        seen.append(name)
        return rate

    rates = in_turn({"ours": lambda: way("ours", 6), "its": lambda: way("its", 3)}, 2)
    assert seen == ["ours", "its", "ours", "its"]
    assert Comparison(rates["ours"], rates["its"]).ratios == [2, 2]


def test_the_best_peer_writes_as_many_bytes() -> None:
    peers = {"a": (3.0, 1.0), "b": (1.5, 1.01), "c": (0.5, 0.9)}
    found = [
        replace(figure("Write in Rust", "", "s1-lz4", peer, Comparison([ratio], [1.0])), size=size)
        for peer, (ratio, size) in peers.items()
    ]
    found.append(figure("Write in Rust", "", "s1-lz4", limits.LIMIT, Comparison([0.4], [1.0])))
    figures = Figures()
    figures.put(found, Run("a run"), [])
    best = judged(Floor("0.1.0", 5, "Write in Rust", "", "s1-lz4", BEST_PEER, 1), figures)
    assert best is not None
    assert best.peer == "b"


def test_the_picture_covers_every_floor() -> None:
    assert {floor.part for floor in FLOORS} == set(picture.PARTS)
    keys = [(floor.part, floor.work, floor.on, floor.peer) for floor in FLOORS]
    assert len(keys) == len(set(keys))
