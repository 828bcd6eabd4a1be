"""`magicbyte find`: batches in files that have lost their names, and the partitions they are of."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import KAFKA, Cli
from magicbyte.errors import RefusedError
from magicbyte.jobs.unnamed import find as job

Record = tuple[int, bytes | None]
SECTOR = 4096


def segment(
    first: int,
    batches: int,
    *,
    producer: int = -1,
    epoch: int = 0,
    sequence: int | None = None,
    per_batch: int = 5,
    magic: int = 2,
    text: str = "",
) -> bytes:
    """Batches of `per_batch` records from an offset on; sequences follow the offsets unless given."""
    data = b""
    for base in range(first, first + batches * per_batch, per_batch):
        given: dict[str, Any] = {}
        if producer >= 0:
            start = base if sequence is None else sequence + base - first
            given = {"producer_id": producer, "producer_epoch": 0, "base_sequence": start}
        if magic == 2:
            given["partition_leader_epoch"] = epoch
        builder = magicbyte.RecordsBuilder(magic, magicbyte.Compression.GZIP, **given)
        for offset in range(base, base + per_batch):
            builder.append(offset, 1_700_000_000_000 + offset, b"key", b"%s %d" % (text.encode(), offset))
        data += builder.build()
    return data


def save(directory: Path, contents: Iterable[bytes]) -> list[Path]:
    """Files as photorec names them, in random order."""
    directory.mkdir(parents=True, exist_ok=True)
    contents = list(contents)
    random.Random(len(contents)).shuffle(contents)
    files = [directory / f"f{number:07}" for number in range(len(contents))]
    for path, content in zip(files, contents, strict=True):
        path.write_bytes(content)
    return files


def records(partition: Path) -> list[Record]:
    with magicbyte.PartitionLog(partition) as log:
        return [(record.offset, record.value and bytes(record.value)) for record in log.records()]


def values(text: str, offsets: Iterable[int]) -> list[Record]:
    return [(offset, b"%s %d" % (text.encode(), offset)) for offset in offsets]


def found(out: Path) -> dict[str, list[Record]]:
    return {path.name: records(path) for path in sorted(out.iterdir()) if path.is_dir()}


def test_segments_without_names_are_partitions_again(tmp_path: Path) -> None:
    parts = {
        name: [segment(at, 20, producer=producer, text=name) for at in range(start, start + 300, 100)]
        for producer, (name, start) in enumerate({"orders": 0, "clicks": 0, "users": 1000}.items())
    }
    save(tmp_path / "saved", [content for contents in parts.values() for content in contents])
    report = magicbyte.find(tmp_path / "saved", out=tmp_path / "out")
    assert [one["is_named"] for one in report["partitions"]] == [False] * 3
    assert sorted(found(tmp_path / "out").values()) == sorted(
        values(name, range(start, start + 300))
        for name, start in (("orders", 0), ("clicks", 0), ("users", 1000))
    )
    assert magicbyte.verify(tmp_path / "out")["total"]["problems"] == 0
    assert report["unread"] == report["problems"] == []


def test_a_replica_and_its_neighbours_give_the_names(tmp_path: Path) -> None:
    """The replica has lost its middle segments; of one partition it has another tail."""
    for name in ("orders-0", "clicks-3"):
        for at in (0, 200):
            target = tmp_path / "replica" / name / f"{at:020}.log"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(segment(at, 20, producer=ord(name[0]), text=name))
    lost = [segment(100, 20, producer=ord(name[0]), text=name) for name in ("orders-0", "clicks-3")]
    copies = [segment(0, 20, producer=ord(name[0]), text=name)[:2000] for name in ("orders-0", "clicks-3")]
    save(tmp_path / "saved", [*lost, *copies, segment(0, 3, text="other")])
    report = magicbyte.find(tmp_path / "saved", out=tmp_path / "out", like=[str(tmp_path / "replica")])
    out = found(tmp_path / "out")
    assert set(out) == {"orders-0", "clicks-3", "unknown-0"}
    assert [offset for offset, _ in out["orders-0"]][-100:] == list(range(100, 200))
    assert {value.split()[0] for _, value in out["clicks-3"] if value} == {b"clicks-3"}
    assert "equal batches" in report["partitions"][0]["reasons"]
    assert report["options"] == {"like": [str(tmp_path / "replica")]}


def test_a_disk_image(tmp_path: Path) -> None:
    """Files at sectors, one in two pieces that are cut inside of a batch, between other bytes."""
    noise = random.Random(7)
    orders, clicks = segment(0, 100, producer=1, text="orders"), segment(0, 101, producer=2, text="clicks")
    cut = len(orders) // 2 // SECTOR * SECTOR
    pieces = [noise.randbytes(SECTOR), orders[:cut], clicks, noise.randbytes(3 * SECTOR), orders[cut:], b"x"]
    image = b"".join(piece + bytes(-len(piece) % SECTOR) for piece in pieces)
    (tmp_path / "sdb.img").write_bytes(image)
    report = magicbyte.find(tmp_path / "sdb.img", out=tmp_path / "out")
    out = found(tmp_path / "out")
    assert sorted(out) == ["unknown-0", "unknown-1"]
    assert out["unknown-0"] == values("clicks", range(505))
    kept = [offset for offset, _ in out["unknown-1"]]
    # Both ends of the cut batch are there, but it is not whole.
    assert report["partitions"][1]["missing"] == [(o := next(i for i in range(500) if i not in kept), o + 4)]
    assert kept == [offset for offset in range(500) if not o <= offset < o + 5]


def test_a_damaged_batch_does_not_end_a_file(tmp_path: Path) -> None:
    data = bytearray(segment(0, 40, text="orders"))
    data[len(data) // 2] ^= 1
    save(tmp_path / "saved", [bytes(data)])
    (partition,) = magicbyte.find(tmp_path / "saved")["partitions"]
    assert partition["reasons"] == ["the same file"]
    assert len(partition["missing"]) == 1
    assert len(partition["runs"]) == 2


def test_evidence_for_two_places_joins_nothing(tmp_path: Path) -> None:
    ends = [segment(0, 20, text="a"), segment(0, 20, text="b")]
    save(tmp_path / "saved", [*ends, segment(100, 20, text="a"), segment(100, 20, text="b")])
    partitions = magicbyte.find(tmp_path / "saved")["partitions"]
    assert len(partitions) == 4
    save(tmp_path / "one", [ends[0], segment(100, 20, text="a")])
    (partition,) = magicbyte.find(tmp_path / "one")["partitions"]
    assert partition["reasons"] == ["the offsets go on"]


def test_what_contradicts_is_not_joined(tmp_path: Path) -> None:
    first = segment(0, 20, producer=9, epoch=5)
    for other in (
        segment(100, 20, producer=9, epoch=4),
        segment(100, 20, producer=9, epoch=5, sequence=50),
        segment(99, 20, producer=9, epoch=5),
    ):
        shutil.rmtree(tmp_path / "saved", ignore_errors=True)
        save(tmp_path / "saved", [first, other])
        assert len(magicbyte.find(tmp_path / "saved")["partitions"]) == 2


def test_a_producer_leads_over_what_is_lost(tmp_path: Path) -> None:
    contents = [segment(at, 20, producer=producer, text="x") for producer in (1, 2) for at in (0, 200, 400)]
    save(tmp_path / "saved", contents)
    partitions = magicbyte.find(tmp_path / "saved")["partitions"]
    assert [one["missing"] for one in partitions] == [[(100, 199), (300, 399)]] * 2
    assert partitions[0]["reasons"] == ["a producer's sequence goes on"]


def test_copies_are_written_once(tmp_path: Path) -> None:
    data = segment(0, 60, text="orders")
    size = len(data) // 60
    # Each begins and ends in other batches.
    parts = [data, data[: 30 * size], data[10 * size : 50 * size + 7], data[20 * size + 3 :]]
    save(tmp_path / "saved", parts)
    report = magicbyte.find(tmp_path / "saved", out=tmp_path / "out")
    assert found(tmp_path / "out") == {"unknown-0": values("orders", range(300))}
    assert sum(run["is_copy"] for run in report["partitions"][0]["runs"]) == 3


def test_overlapping_parts_make_a_whole(tmp_path: Path) -> None:
    data = segment(0, 60, text="orders")
    batches = [batch.to_bytes() for batch in magicbyte.read_batches(data)]
    save(tmp_path / "saved", [b"".join(batches[:40]), b"".join(batches[20:])])
    report = magicbyte.find(tmp_path / "saved", out=tmp_path / "out")
    assert found(tmp_path / "out") == {"unknown-0": values("orders", range(300))}
    assert report["problems"] == []


def test_batches_inside_of_values_are_no_partition(tmp_path: Path) -> None:
    inner = segment(500, 30, text="inner")
    builder = magicbyte.RecordsBuilder(2)
    builder.append(0, 1, b"key", inner)
    outer = bytearray(builder.build())
    (tmp_path / "whole").write_bytes(outer)
    (one,) = magicbyte.find(tmp_path / "whole")["partitions"]
    assert (one["first_offset"], one["last_offset"]) == (0, 0)
    outer[17] ^= 1  # the CRC
    (tmp_path / "damaged").write_bytes(outer + segment(1, 2))
    report = magicbyte.find(tmp_path / "damaged")
    assert [one["first_offset"] for one in report["partitions"]] == [1]
    assert report["files"][0]["values"] == 1


@pytest.mark.parametrize("magic", [0, 1])
def test_legacy_messages(tmp_path: Path, magic: int) -> None:
    save(tmp_path / "saved", [segment(at, 10, magic=magic, text="old") for at in (0, 50)])
    magicbyte.find(tmp_path / "saved", out=tmp_path / "out")
    assert found(tmp_path / "out") == {"unknown-0": values("old", range(100))}


def test_segments_of_brokers(tmp_path: Path) -> None:
    """Segments of every broker from 0.9 on, named by their partitions."""
    partitions = [path for path in sorted(KAFKA.iterdir()) if any(path.glob("0*.log"))]
    saved = tmp_path / "saved"
    saved.mkdir()
    for number, partition in enumerate(partitions):
        like = tmp_path / "like" / f"{partition.name}-0"
        like.mkdir(parents=True)
        for file in partition.glob("0*.log"):
            shutil.copyfile(file, like / file.name)
            shutil.copyfile(file, saved / f"{number}-{file.name[:20]}.bin")
    report = magicbyte.find(saved, like=[str(tmp_path / "like")])
    of_file = {
        (run["file"], one["topic"]) for one in report["partitions"] if one["is_named"] for run in one["runs"]
    }
    names = {number: partition.name for number, partition in enumerate(partitions)}
    # Some fixtures are copies of others: their batches are in several places.
    right = [names[int(os.path.basename(file).split("-")[0])] == topic for file, topic in of_file]
    assert sum(right) > 0.7 * len(right)
    assert all(one["is_named"] for one in report["partitions"])
    whole = [magicbyte.stats(partition)["total"]["batches"] for partition in (tmp_path / "like").iterdir()]
    assert sum(file["batches"] for file in report["files"]) == sum(whole)


def test_files_of_every_kind(tmp_path: Path, cli: Cli) -> None:
    saved = tmp_path / "lost+found"
    save(saved / "deep" / "er", [segment(0, 5)])
    (saved / "empty").touch()
    (saved / "text").write_text("no batch\n" * 1000)
    (saved / "noise").write_bytes(random.Random(1).randbytes(100_000))
    (saved / "loop").symlink_to(saved)
    os.mkfifo(saved / "fifo")
    shown = cli("find", saved, code=1)
    assert "unknown-0" in shown
    assert "2 other files" in shown
    assert "fifo: it is not a regular file" in shown
    assert "nothing was written" in shown
    report = cli.json("find", saved, code=1)
    assert report["partitions"][0]["last_offset"] == 24


def test_errors(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "text").write_text("no batch")
    cli("find", tmp_path / "text", code=2)
    assert "no whole batch in 1 file of" in cli.error
    cli("find", tmp_path / "missing", code=2)
    save(tmp_path / "saved", [segment(0, 5)])
    cli("find", tmp_path / "saved", "--like", tmp_path / "text", code=2)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    cli("find", tmp_path / "saved", "--out", tmp_path / "full", code=2)
    cli("find", tmp_path / "saved", "--out", tmp_path / "saved" / "in", code=2)
    with pytest.raises(ValueError, match="one text"):
        magicbyte.find(tmp_path / "saved", like=str(tmp_path))


def test_too_many_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "saved", [b"x".join(segment(at, 1) for at in range(1000, 0, -10))])
    assert len(magicbyte.find(tmp_path / "saved")["partitions"]) == 100
    monkeypatch.setattr(job, "MAX_RUNS", 50)
    with pytest.raises(RefusedError, match="more than 50 runs"):
        magicbyte.find(tmp_path / "saved")


def test_headers_that_claim_much_cost_little(tmp_path: Path) -> None:
    """Every few bytes a header that claims the rest of the file."""
    size = 4 << 20
    header = bytearray(segment(0, 1)[:61])
    header[8:12] = (size // 2).to_bytes(4, "big")
    (tmp_path / "hostile").write_bytes(segment(0, 2) + bytes(header) * (size // len(header)))
    start = time.perf_counter()
    (partition,) = magicbyte.find(tmp_path / "hostile")["partitions"]
    assert partition["last_offset"] == 9
    assert time.perf_counter() - start < 60


def transactions(text: str, times: Iterable[int]) -> bytes:
    """Transactions of one record, whose markers have these times."""
    data = b""
    for number, time_of_marker in enumerate(times):
        common: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
        common["partition_leader_epoch"] = 0
        record = magicbyte.RecordsBuilder(base_sequence=number, **common)
        record.append(2 * number, 1, b"key", text.encode())
        marker = magicbyte.RecordsBuilder(is_control=True, base_offset=2 * number + 1, **common)
        marker.append(2 * number + 1, time_of_marker, b"\0\0\0\1", b"\0\0\0\0\0\0")
        data += record.build() + marker.build()
    return data


def test_equal_markers_are_no_copies(tmp_path: Path) -> None:
    """A coordinator writes the markers of a transaction in one millisecond into several partitions."""
    save(tmp_path / "saved", [transactions("alpha", range(10)), transactions("beta", range(10))])
    report = magicbyte.find(tmp_path / "saved", out=tmp_path / "out")
    assert len(report["partitions"]) == 2
    assert {value for records in found(tmp_path / "out").values() for _, value in records} == {
        b"alpha",
        b"beta",
    }


def branch(text: str, count: int, *, epoch: int = 0, common: int = 8) -> bytes:
    """A log whose first batches are those of the other branches."""
    return segment(0, common) + segment(5 * common, count, epoch=epoch, text=text)


def values_of(records: Iterable[Record]) -> set[bytes]:
    return {bytes(value or b"").split()[0] for _, value in records if not (value or b" ").startswith(b" ")}


@pytest.mark.parametrize(("old", "new"), [(20, 12), (12, 20), (12, 12)])
@pytest.mark.parametrize("epochs", [(0, 2), (0, 0), (1, 1)])
def test_branches_are_partitions_of_their_own(
    tmp_path: Path, cli: Cli, old: int, new: int, epochs: tuple[int, int]
) -> None:
    """They have a common beginning, as before an unclean election. No batch is left out as a copy."""
    first, second = branch("old", old, epoch=epochs[0]), branch("new", new, epoch=epochs[1])
    save(tmp_path / "saved", [first, second, first, segment(0, 4)])
    report = magicbyte.find(tmp_path / "saved", out=tmp_path / "out")
    written = found(tmp_path / "out")
    assert sorted(sorted(values_of(records)) for records in written.values()) == [[b"new"], [b"old"]]
    assert sorted(map(len, written.values())) == sorted([40 + 5 * old, 40 + 5 * new])
    main, other = sorted(report["partitions"], key=lambda one: one["branch_of"] is not None)
    assert (main["branch_of"], other["branch_of"]) == (None, f"{main['topic']}-{main['partition']}")
    if epochs == (0, 2):
        of_main = written[f"{main['topic']}-{main['partition']}"]
        assert values_of(of_main) == {b"new"}
    text = cli("find", tmp_path / "saved")
    assert f"has other batches than {other['branch_of']} at the same offsets" in text


def test_topics_with_the_same_records_are_no_copies(tmp_path: Path) -> None:
    """A program writes the same to three topics: only their first and last batches are equal."""
    first, last = segment(0, 1), segment(495, 1)
    middles = [segment(5, 98, per_batch=5), segment(5, 49, per_batch=10), segment(5, 245, per_batch=2)]
    save(tmp_path / "saved", [first + middle + last for middle in middles])
    report = magicbyte.find(tmp_path / "saved", out=tmp_path / "out")
    assert [len(records) for records in found(tmp_path / "out").values()] == [500] * 3
    assert sum(one["branch_of"] is not None for one in report["partitions"]) == 2


def test_many_branches(tmp_path: Path) -> None:
    texts = [f"b{number}" for number in range(12)]
    save(tmp_path / "saved", [branch(text, 6 + number) for number, text in enumerate(texts)])
    magicbyte.find(tmp_path / "saved", out=tmp_path / "out")
    written = found(tmp_path / "out")
    assert set().union(*map(values_of, written.values())) == {text.encode() for text in texts}
    assert all(len(values_of(records)) == 1 for records in written.values())


def test_copies_that_end_elsewhere_are_copies(tmp_path: Path) -> None:
    """Their last batch is in the other copy, though in none of its marks."""
    whole = branch("one", 40)
    ends = [one.position + one.size_in_bytes for one in magicbyte.read_batches(whole)]
    save(tmp_path / "saved", [whole, whole[: ends[30]], whole[ends[3] : ends[20]], whole[ends[25] :]])
    report = magicbyte.find(tmp_path / "saved", out=tmp_path / "out")
    (partition,) = report["partitions"]
    assert (partition["first_offset"], partition["last_offset"], partition["branch_of"]) == (0, 239, None)
    assert sum(not run["is_copy"] for run in partition["runs"]) == 1


def test_directories_that_are_not_searched_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "saved", [segment(0, 4)])
    save(tmp_path / "elsewhere", [segment(20, 4)])
    (tmp_path / "saved" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "saved" / "locked").mkdir()
    listed = os.scandir

    def scandir(path: str) -> Any:
        if os.path.basename(path) == "locked":
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    report = magicbyte.find(tmp_path / "saved")
    assert {(os.path.basename(one["file"]), one["reason"]) for one in report["unread"]} == {
        ("link", "it is not a regular file; copy a device into one"),
        ("locked", "Permission denied"),
    }
