"""`magicbyte merge`: replicas of a partition become one log."""

from __future__ import annotations

import json
import random
import shutil
import struct
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import KAFKA, Cli
from magicbyte import RefusedError
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.merging import planning
from magicbyte.log_dir import format_offset_checkpoint, read_offset_checkpoint
from replicas import batch, batches, content, copy, flip, log_of, offsets_of, replica, replicas

SEGMENTS = {first: batches(first, first + 500) for first in range(0, 2000, 500)}
"""200 batches of 10 records in four segments."""
FRAMES = dict(
    zip(range(0, 2000, 10), (data for segment in SEGMENTS.values() for data in segment), strict=True)
)
"""The batches by base offset."""
WHOLE = b"".join(FRAMES.values())


def merged(tmp_path: Path, *sources: Path, **options: Any) -> dict[str, Any]:
    """Merges into `tmp_path/out`; returns the report of the only partition."""
    report = magicbyte.merge(sources, out=tmp_path / "out", **options)
    assert report["balanced"]
    assert json.loads((tmp_path / "out" / "reconciliation.json").read_text()) == json.loads(
        json.dumps(report)
    )
    (partition,) = report["partitions"]
    return dict(partition)


def test_equal_replicas_become_one_of_them(tmp_path: Path) -> None:
    sources = replicas(tmp_path, SEGMENTS)
    before = [content(source) for source in sources]
    partition = merged(tmp_path, *sources)
    assert log_of(tmp_path / "out") == WHOLE
    assert sorted(path.name for path in (tmp_path / "out" / "orders-0").glob("*.log")) == [
        f"{base:020}.log" for base in SEGMENTS
    ]
    assert partition["lost"] == partition["left_out"] == []
    assert [one["used_bytes"] for one in partition["copies"]] == [len(WHOLE), 0, 0]
    assert [one["same_bytes"] for one in partition["copies"]] == [0, len(WHOLE), len(WHOLE)]
    assert [content(source) for source in sources] == before
    files = {path.name for path in (tmp_path / "out" / "orders-0").iterdir()}
    assert {
        "partition.metadata",
        "leader-epoch-checkpoint",
        f"{0:020}.index",
        f"{2000:020}.snapshot",
    } <= files


@pytest.mark.parametrize("seed", range(3))
def test_disjoint_damage_loses_nothing(tmp_path: Path, seed: int) -> None:
    sources = replicas(tmp_path, SEGMENTS)
    numbers = random.Random(seed).sample(range(200), 150)
    for at, source in enumerate(sources):
        flip(source, numbers[at::3], seed=seed)
    partition = merged(tmp_path, *sources)
    assert log_of(tmp_path / "out") == WHOLE
    assert partition["lost_offsets"] == 0
    assert {one["damaged_bytes"] > 0 for one in partition["copies"]} == {True}
    assert sum(one["used_bytes"] for one in partition["copies"]) == len(WHOLE)


def test_the_same_damage_everywhere_loses_exactly_its_offsets(tmp_path: Path) -> None:
    sources = replicas(tmp_path, SEGMENTS)
    for source in sources:
        flip(source, [0, 7, 8, 50, 133, 199], seed=1)
    partition = merged(tmp_path, *sources)
    # The header of the last batch shows how far the log went.
    lost = [(0, 9), (70, 89), (500, 509), (1330, 1339), (1990, 1999)]
    assert partition["lost"] == lost
    assert (partition["next_offset"], partition["log_end_offset"]) == (1990, 2000)
    gone = {offset for first, last in lost for offset in range(first, last + 1)}
    assert offsets_of(tmp_path / "out") == [offset for offset in range(1990) if offset not in gone]


def test_a_flipped_bit_is_repaired_only_where_no_replica_has_the_batch(tmp_path: Path) -> None:
    sources = replicas(tmp_path, SEGMENTS)
    for seed, source in enumerate(sources):
        flip(source, [20], bits=1 if seed == 2 else 3, seed=seed)
        flip(source, [30], bits=3, seed=seed)
        flip(source, [40 + seed], bits=1, seed=seed)
    partition = merged(tmp_path, *sources)
    assert partition["repaired_batches"] == 1
    assert partition["lost"] == [(300, 309)]
    repaired = [one for one in partition["ranges"] if one["path"] is None]
    assert [(one["first_offset"], one["last_offset"]) for one in repaired] == [(200, 209)]
    kept = [data for number, data in enumerate(d for s in SEGMENTS.values() for d in s) if number != 30]
    assert log_of(tmp_path / "out") == b"".join(kept)


def test_an_unclean_election_leaves_out_the_lost_branch(tmp_path: Path) -> None:
    common = batches(0, 200)
    lost = [*common, *batches(200, 300, epoch=3, value="lost")]
    settled = [*common, *batches(200, 260, epoch=5, value="settled")]
    sources = [replica(tmp_path / "b1", {0: lost}), replica(tmp_path / "b2", {0: settled})]
    partition = merged(tmp_path, *sources)
    assert log_of(tmp_path / "out") == b"".join(settled)
    assert partition["leader"] == str(tmp_path / "b2" / "orders-0")
    (left_out,) = partition["left_out"]
    assert (left_out["first_offset"], left_out["last_offset"], left_out["reason"]) == (200, 299, "diverged")
    assert [one["diverged_at"] for one in partition["copies"]] == [200, None]


def test_damage_at_a_divergence_is_not_filled_from_the_lost_branch(tmp_path: Path) -> None:
    common = batches(0, 200)
    lost = [*common, *batches(200, 300, epoch=3, value="lost")]
    settled = [*common, *batches(200, 260, epoch=5, value="settled")]
    sources = [
        replica(tmp_path / "b1", {0: lost}),
        replica(tmp_path / "b2", {0: settled}, epochs=[(0, 0), (5, 200)]),
    ]
    flip(sources[1], [3, 20])
    partition = merged(tmp_path, *sources)
    assert partition["lost"] == [(200, 209)]
    assert log_of(tmp_path / "out") == b"".join([*common, *settled[21:]])


def test_the_preferred_copy_leads(tmp_path: Path) -> None:
    common = batches(0, 200)
    sources = [
        replica(tmp_path / "b1", {0: [*common, *batches(200, 300, epoch=3, value="kept")]}),
        replica(tmp_path / "b2", {0: [*common, *batches(200, 260, epoch=5, value="settled")]}),
        replica(tmp_path / "b3", {0: [*common, *batches(200, 320, epoch=3, value="kept")]}),
    ]
    flip(sources[0], [4, 22])
    choice = PartitionChoice(prefer=(str(sources[0]),))
    partition = merged(tmp_path, *sources, choice=choice)
    assert log_of(tmp_path / "out") == b"".join([*common, *batches(200, 300, epoch=3, value="kept")])
    assert {(one["path"][-11:-9], one["reason"]) for one in partition["left_out"]} == {
        ("b2", "diverged"),
        ("b3", "past_the_end"),
    }


def test_a_truncated_follower_adds_what_it_has(tmp_path: Path) -> None:
    whole = batches(0, 500)
    sources = [replica(tmp_path / "b1", {0: whole}), replica(tmp_path / "b2", {0: whole[:20]})]
    log = sources[1] / "orders-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes()[:-30])
    flip(sources[0], [10, 40])
    partition = merged(tmp_path, *sources)
    assert partition["lost"] == [(400, 409)]
    assert log_of(tmp_path / "out") == b"".join(whole[:40] + whole[41:])


def test_an_epoch_without_batches_is_no_lineage(tmp_path: Path) -> None:
    whole = batches(0, 300, epoch=3)
    sources = [
        replica(tmp_path / "b1", {0: whole[:20]}, epochs=[(3, 0), (7, 200)]),
        replica(tmp_path / "b2", {0: whole}, epochs=[(3, 0), (4, 300)]),
    ]
    partition = merged(tmp_path, *sources)
    assert partition["leader"].endswith("b2/orders-0")
    assert log_of(tmp_path / "out") == b"".join(whole)
    assert partition["left_out"] == []


def test_epochs_of_which_the_leading_copy_lost_all_batches(tmp_path: Path) -> None:
    """The other replica has later batches in common: everything before them is the same log."""
    whole = [*batches(0, 100), *batches(100, 110, epoch=1), *batches(110, 200, epoch=2)]
    sources = replicas(tmp_path, {0: whole}, 2)
    flip(sources[0], [10])
    flip(sources[1], [12])
    assert merged(tmp_path, *sources)["lost"] == []
    assert log_of(tmp_path / "out") == b"".join(whole)


def test_missing_and_swapped_segments(tmp_path: Path) -> None:
    sources = replicas(tmp_path, SEGMENTS)
    (sources[0] / "orders-0" / f"{500:020}.log").unlink()
    (sources[1] / "orders-0" / f"{0:020}.log").unlink()
    one, other = (sources[2] / "orders-0" / f"{base:020}.log" for base in (1000, 1500))
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    partition = merged(tmp_path, *sources)
    assert log_of(tmp_path / "out") == WHOLE
    assert partition["lost"] == []


def test_transactions_survive_whole(tmp_path: Path) -> None:
    sources = [copy(KAFKA / "v2_txn", tmp_path / name / "v2_txn") for name in ("b1", "b2", "b3")]
    logs = [next(iter(sorted(source.glob("*.log")))) for source in sources]
    original = logs[0].read_bytes()
    frames = list(magicbyte.read_batches(original))
    for number, log in enumerate(logs):
        data = bytearray(original)
        for frame in frames[number::3]:
            data[frame.position + frame.size_in_bytes - 1] ^= 0x55
        log.write_bytes(data)
    partition = merged(tmp_path, *(source.parent for source in sources))
    assert partition["lost"] == []
    out = tmp_path / "out" / "v2_txn-0"
    assert (out / logs[0].name).read_bytes() == original
    for isolation in ("read_committed", "read_uncommitted"):
        rows = [
            [(r.offset, r.value_bytes) for r in magicbyte.PartitionLog(d).records(isolation_level=isolation)]
            for d in (out, KAFKA / "v2_txn")
        ]
        assert rows[0] == rows[1]


@pytest.mark.parametrize(
    "name",
    [
        "v0_none",
        "v0_gzip",
        "v1_none",
        "v1_lz4",
        "v1_compacted_codecs",
        "mixed_012",
        "v2_zstd",
        "v2_epochs_log",
    ],
)
def test_logs_of_all_magics(tmp_path: Path, name: str) -> None:
    sources = [copy(KAFKA / name, tmp_path / broker / name) for broker in ("b1", "b2")]
    for number, source in enumerate(sources):
        log = sorted(source.glob("*.log"))[0]
        data = bytearray(log.read_bytes())
        frames = list(magicbyte.read_batches(bytes(data)))
        for frame in frames[number : len(frames) - 1 : 2][:5]:
            data[frame.position + frame.size_in_bytes - 1] ^= 0x55
            data[frame.position + frame.size_in_bytes - 3] ^= 0x11
        log.write_bytes(data)
    config = tmp_path / "topics.json"
    config.write_text(json.dumps({name: {"cleanup.policy": "delete"}}))
    partition = merged(tmp_path, *(source.parent for source in sources), topic_config=config)
    expected = b"".join(path.read_bytes() for path in sorted((KAFKA / name).glob("*.log")))
    assert log_of(tmp_path / "out", f"{name}-0") == expected
    assert partition["lost"] == [] or name == "v1_compacted_codecs"


def compacted(first: int, end: int, keep: set[int]) -> list[bytes]:
    return [
        data
        for offset, data in zip(range(first, end, 10), batches(first, end), strict=True)
        if offset in keep
    ]


def test_compacted_copies_are_not_united(tmp_path: Path) -> None:
    """Copy A has cleaned more than B: what only B has in the cleaned part would come back."""
    dirty = batches(600, 1000)
    a = compacted(0, 600, {100, 300, 500})
    b = compacted(0, 600, {0, 100, 200, 300, 400, 500})
    sources = [
        replica(tmp_path / "b1", {0: a, 600: dirty}),
        replica(tmp_path / "b2", {0: b, 600: dirty}),
    ]
    for source in sources:
        checkpoint = format_offset_checkpoint({("orders", 0): 600})
        (source / "cleaner-offset-checkpoint").write_text(checkpoint)
        (source / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    flip(sources[0], [10])  # the dirty part of A
    flip(sources[1], [3, 20])  # the cleaned and the dirty part of B
    partition = merged(tmp_path, *sources)
    assert log_of(tmp_path / "out") == b"".join([*a, *dirty])
    assert partition["cleaned_until"] == 600
    assert partition["cleaned_copy"].endswith("b1/orders-0")
    assert {one["reason"] for one in partition["left_out"]} == {"cleaned"}
    assert partition["lost"] == []


def test_equal_compacted_copies_leave_nothing_out(tmp_path: Path, cli: Cli) -> None:
    """Only what differs in the cleaned part is left out."""
    kept, dirty = compacted(0, 600, {100, 300, 500}), batches(600, 700)
    sources = replicas(tmp_path, {0: kept, 600: dirty}, 3)
    partition = merged(tmp_path, *sources)
    assert partition["cleaned_until"] == 600
    assert partition["left_out"] == []
    whole = sum(map(len, [*kept, *dirty]))
    assert [one["used_bytes"] + one["same_bytes"] for one in partition["copies"]] == [whole] * 3
    assert "left out" not in cli("merge", *sources).splitlines()[-1]
    other = replica(tmp_path / "b4", {0: [kept[0], kept[2]], 600: dirty})
    (tmp_path / "again").mkdir()
    partition = merged(tmp_path / "again", *sources, other)
    assert {one["path"] for one in partition["left_out"]} == {str(other / "orders-0")}


def test_damage_in_the_cleaned_part_of_every_copy_is_lost(tmp_path: Path) -> None:
    kept = compacted(0, 600, {100, 300, 500})
    sources = replicas(tmp_path, {0: kept, 600: batches(600, 700)}, 2)
    flip(sources[0], [1], bits=3)
    flip(sources[1], [1, 2], bits=3)
    partition = merged(tmp_path, *sources)
    assert partition["cleaned_copy"].endswith("b1/orders-0")
    assert partition["lost"] == [(110, 499)]
    assert log_of(tmp_path / "out") == b"".join([kept[0], kept[2], *batches(600, 700)])


def test_the_policy_of_the_topic_decides(tmp_path: Path) -> None:
    """Without a policy, a gap without damage is compaction; with `delete`, it is a loss."""
    whole = batches(0, 500)
    sources = [
        replica(tmp_path / "b1", {0: whole[:10] + whole[20:]}),
        replica(tmp_path / "b2", {0: whole[:40]}),
    ]
    report = magicbyte.merge(sources, out=tmp_path / "careful")
    assert report["partitions"][0]["cleaned_until"] == 500
    config = tmp_path / "topics.json"
    config.write_text(json.dumps({"orders": {"cleanup.policy": "delete"}}))
    merged(tmp_path, *sources, topic_config=config)
    assert log_of(tmp_path / "out") == b"".join(whole)


def test_deleted_records_stay_deleted(tmp_path: Path) -> None:
    sources = replicas(tmp_path, SEGMENTS, 2)
    (sources[1] / "log-start-offset-checkpoint").write_text(format_offset_checkpoint({("orders", 0): 505}))
    partition = merged(tmp_path, *sources)
    assert partition["log_start_offset"] == 505
    assert offsets_of(tmp_path / "out") == list(range(505, 2000))
    assert "orders 0 505" in (tmp_path / "out" / "log-start-offset-checkpoint").read_text()


def test_other_topics_and_clusters_are_refused(tmp_path: Path) -> None:
    sources = [
        replica(tmp_path / "b1", {0: batches(0, 100)}),
        replica(tmp_path / "b2", {0: batches(0, 100)}, topic_id="BBBBBBBBBBBBBBBBBBBBBQ"),
    ]
    with pytest.raises(
        RefusedError, match="of orders-0 belong to 2 topics, so they are not copies of each other"
    ):
        magicbyte.merge(sources, out=tmp_path / "out")
    for number, source in enumerate(sources):
        (source / "orders-0" / "partition.metadata").unlink()
        (source / "meta.properties").write_text(f"version=1\ncluster.id=cluster{number}\nnode.id=1\n")
    with pytest.raises(RefusedError, match="of orders-0 belong to 2 clusters"):
        magicbyte.merge(sources, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_one_partition_on_two_disks(tmp_path: Path) -> None:
    sources = [
        replica(tmp_path / "b1" / "d1", {0: batches(0, 300)}),
        replica(tmp_path / "b1" / "d2", {0: batches(0, 500)}),
        replica(tmp_path / "b1" / "d2", {0: batches(0, 300)}, name="orders-0.abc-future"),
    ]
    report = magicbyte.merge(tmp_path / "b1", out=tmp_path / "out")
    assert len(sources) == 3
    assert [len(one["copies"]) for one in report["partitions"]] == [2]
    assert [one["state"] for one in report["skipped"]] == ["future"]
    assert log_of(tmp_path / "out") == b"".join(batches(0, 500))


def test_empty_replicas(tmp_path: Path) -> None:
    sources = [replica(tmp_path / "b1", {700: []}), replica(tmp_path / "b2", {0: batches(0, 500)})]
    partition = merged(tmp_path, *sources)
    assert log_of(tmp_path / "out") == b"".join(batches(0, 500))
    assert [one["next_offset"] for one in partition["copies"]] == [None, 500]
    only = [replica(tmp_path / name, {700: []}, name="idle-0") for name in ("c1", "c2")]
    report = magicbyte.merge(only, out=tmp_path / "idle")
    assert report["balanced"]
    assert [path.name for path in (tmp_path / "idle" / "idle-0").glob("*.log")] == [f"{700:020}.log"]


def test_a_log_that_is_still_being_written_ends_with_its_last_whole_batch(tmp_path: Path) -> None:
    whole = batches(0, 500)
    sources = replicas(tmp_path, {0: whole}, 2)
    for source in sources:
        with (source / "orders-0" / f"{0:020}.log").open("ab") as log:
            log.write(batch(500)[:40])
    partition = merged(tmp_path, *sources)
    assert log_of(tmp_path / "out") == b"".join(whole)
    assert [one["tail_bytes"] for one in partition["copies"]] == [40, 40]


def test_a_wrong_leader_epoch_is_damage(tmp_path: Path) -> None:
    """No CRC covers the epoch. A wrong one would decide which copy leads, and where others diverge."""
    whole = [*batches(0, 200, epoch=2), *batches(200, 400, epoch=3)]
    sources = replicas(tmp_path, {0: whole}, 2)
    sources.append(replica(tmp_path / "b3", {0: whole[:30]}))

    def set_epoch(source: Path, number: int, epoch: int) -> None:
        path = source / "orders-0" / f"{0:020}.log"
        data = bytearray(path.read_bytes())
        at = sum(map(len, whole[:number])) + 12
        data[at : at + 4] = struct.pack(">i", epoch)
        path.write_bytes(data)

    set_epoch(sources[0], 5, 2 | 1 << 20)
    set_epoch(sources[0], 25, 1)
    set_epoch(sources[2], 29, 3 | 1 << 24)  # the last batch of the shortest copy
    for source in sources:
        set_epoch(source, 10, 6)  # no copy has the right one, but its neighbors do
    partition = merged(tmp_path, *sources)
    assert log_of(tmp_path / "out") == b"".join(whole)
    assert partition["leader"].endswith("b2/orders-0")
    assert partition["repaired_batches"] == 1


@pytest.mark.parametrize("number", [7, 19, 20, 39])
def test_any_bit_of_a_header_may_be_flipped(tmp_path: Path, number: int) -> None:
    """No CRC covers offset, length, epoch and magic: in the middle, and at the ends of segments."""
    segments = {0: batches(0, 200, epoch=2), 200: batches(200, 400, epoch=2)}
    whole = [data for segment in segments.values() for data in segment]
    sources = replicas(tmp_path, segments)
    log = sources[1] / "orders-0" / f"{number // 20 * 200:020}.log"
    intact = log.read_bytes()
    at = sum(map(len, whole[number // 20 * 20 : number]))
    for bit in range(3, 17 * 8, 5):
        data = bytearray(intact)
        data[at + bit // 8] ^= 1 << bit % 8
        log.write_bytes(data)
        merged(tmp_path, *sources)
        assert log_of(tmp_path / "out") == b"".join(whole), bit
        shutil.rmtree(tmp_path / "out")


COMMON = batches(0, 50)


@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize("lost", [(100, 200), (60, 70), (280, 290)])
def test_holes_are_not_filled_from_another_branch(tmp_path: Path, epoch: int, lost: tuple[int, int]) -> None:
    """Its epoch is that of the log that leads, but batches of both contradict each other (before KIP-101)."""
    leading = [*COMMON, *batches(50, 300, epoch=epoch, value="A")]
    other = [*COMMON, *batches(50, 280, epoch=epoch, value="B")]
    before, after = leading[: lost[0] // 10], leading[lost[1] // 10 :]
    sources = [
        replica(tmp_path / "a", {0: before, lost[1]: after}),
        replica(tmp_path / "b", {0: other}),
        replica(tmp_path / "c", {0: COMMON}),
    ]
    partition = merged(tmp_path, *sources)
    assert log_of(tmp_path / "out") == b"".join([*before, *after])
    assert partition["lost"] == [(lost[0], lost[1] - 1)]
    (left_out,) = partition["left_out"]
    assert (left_out["first_offset"], left_out["reason"]) == (50, "diverged")
    # A copy of the same branch does fill it.
    sources.append(replica(tmp_path / "d", {0: leading[:-1]}))
    shutil.rmtree(tmp_path / "out")
    assert merged(tmp_path, *sources)["lost"] == []
    assert log_of(tmp_path / "out") == b"".join(leading)


@pytest.mark.parametrize("magic", [0, 1])
def test_holes_of_old_messages_are_not_filled_from_another_branch(tmp_path: Path, magic: int) -> None:
    def messages(first: int, end: int, value: str) -> list[bytes]:
        return [batch(offset, 1, magic=magic, value=value) for offset in range(first, end)]

    leading, other = ([*messages(0, 20, "v"), *messages(20, 60, value)] for value in "AB")
    sources = [
        replica(tmp_path / "a", {0: leading[:30], 40: leading[40:]}),
        replica(tmp_path / "b", {0: other[:-5]}),
    ]
    assert merged(tmp_path, *sources)["lost"] == [(30, 39)]
    assert log_of(tmp_path / "out") == b"".join([*leading[:30], *leading[40:]])


def test_the_start_of_another_branch_is_not_that_of_the_log(tmp_path: Path) -> None:
    """Its leader has deleted records that are not those of the log on which the cluster settled."""
    leading = [*COMMON, *batches(50, 150, epoch=2, value="A")]
    other = [*COMMON, *batches(50, 140, epoch=1, value="B")]
    a, b = replica(tmp_path / "a", {0: leading}), replica(tmp_path / "b", {0: other})
    (b / "log-start-offset-checkpoint").write_text(format_offset_checkpoint({("orders", 0): 130}))
    partition = merged(tmp_path, a, b)
    assert offsets_of(tmp_path / "out") == [*range(150)]
    assert (partition["log_start_offset"], partition["lost"]) == (None, [])
    # That of a copy of the same branch is.
    c = replica(tmp_path / "c", {0: leading[:10]})
    (c / "log-start-offset-checkpoint").write_text(format_offset_checkpoint({("orders", 0): 80}))
    shutil.rmtree(tmp_path / "out")
    merged(tmp_path, a, b, c)
    assert offsets_of(tmp_path / "out") == [*range(80, 150)]


def test_what_differs_is_named(tmp_path: Path) -> None:
    whole = batches(0, 500)
    other = [*whole[:10], batch(100, value="w"), *whole[11:]]
    sources = [replica(tmp_path / "b1", {0: whole}), replica(tmp_path / "b2", {0: other})]
    (left_out,) = merged(tmp_path, *sources)["left_out"]
    assert (left_out["first_offset"], left_out["last_offset"], left_out["reason"]) == (100, 109, "differs")
    assert log_of(tmp_path / "out") == b"".join(whole)


def test_whole_directories_of_brokers(tmp_path: Path, cli: Cli) -> None:
    for broker in ("b1", "b2"):
        for name in ("orders-0", "orders-1", "clicks-0"):
            if (broker, name) != ("b2", "clicks-0"):
                replica(tmp_path / broker, {0: batches(0, 200)}, name=name)
    flip(tmp_path / "b1", [3], name="orders-1")
    report = cli.json("merge", tmp_path / "b1", tmp_path / "b2", "--out", tmp_path / "out", code=1)
    found = {f"{one['topic']}-{one['partition']}": len(one["copies"]) for one in report["partitions"]}
    assert found == {"orders-0": 2, "orders-1": 2, "clicks-0": 1}
    assert cli.json("verify", tmp_path / "out")["total"]["rows"] == 600
    text = cli("merge", tmp_path / "b1", tmp_path / "b2", code=1)
    assert "nothing was written: give --out to merge" in text
    cli("merge", tmp_path / "b1", tmp_path / "b2", "--out", tmp_path / "out", code=2)
    assert "is not empty" in cli.error
    cli("merge", tmp_path / "b1", tmp_path / "b2", "--out", tmp_path / "b2" / "out", code=2)


def test_a_dry_run_reports_the_same_and_writes_nothing(tmp_path: Path, cli: Cli) -> None:
    sources = replicas(tmp_path, SEGMENTS)
    for source in sources:
        flip(source, [3], bits=1)
        flip(source, [7], bits=3)
    before = content(tmp_path)
    planned = cli.json("merge", *sources, "--out", tmp_path / "out", "--dry-run", code=1)
    assert content(tmp_path) == before
    written = cli.json("merge", *sources, "--out", tmp_path / "out", code=1)
    assert planned["partitions"] == written["partitions"]
    assert planned["partitions"][0]["repaired_batches"] == 1
    text = cli("merge", "--dry-run", *sources, code=1)
    assert "lost: no copy has offsets 70 to 79" in text


def test_a_rerun_gives_the_same_bytes(tmp_path: Path) -> None:
    sources = replicas(tmp_path, SEGMENTS)
    for source in sources:
        flip(source, [3], bits=1)
    merged(tmp_path, *sources)
    first = content(tmp_path / "out")
    shutil.rmtree(tmp_path / "out")
    merged(tmp_path, *reversed(sources))
    assert content(tmp_path / "out") == first


@pytest.mark.parametrize("seed", range(20))
def test_random_damage_of_all_kinds(tmp_path: Path, seed: int) -> None:
    """Whatever happens to three replicas: only original batches are written, and losses are named."""
    chance = random.Random(seed)
    sources = replicas(tmp_path, SEGMENTS)
    for source in sources:
        for path in sorted((source / "orders-0").glob("*.log")):
            data = bytearray(path.read_bytes())
            for _ in range(4):
                at = chance.randrange(len(data) - 4096)
                kind = chance.randrange(4)
                if kind == 0:
                    data[at] ^= 1 << chance.randrange(8)
                elif kind == 1:
                    data[at : at + 512] = bytes(512)
                elif kind == 2:
                    del data[at : at + chance.randrange(1, 700)]
                else:
                    data[at : at + 64] = chance.randbytes(64)
            path.write_bytes(data)
    intact = [log_of(source) for source in sources]
    partition = merged(tmp_path, *sources)
    lost = {offset for first, last in partition["lost"] for offset in range(first, last + 1)}
    kept = [first for first in FRAMES if first not in lost and first < partition["next_offset"]]
    held = {first for first, data in FRAMES.items() if any(data in log for log in intact)}
    assert held <= {*kept}
    assert len({*kept} - held) == partition["repaired_batches"]
    assert log_of(tmp_path / "out") == b"".join(FRAMES[first] for first in kept)
    assert partition["cleaned_until"] is None


def test_many_ranges_are_counted(tmp_path: Path) -> None:
    many = [batch(offset, 1) for offset in range(5000)]
    sources = replicas(tmp_path, {0: many}, 2)
    flip(sources[0], range(0, 4999, 2))
    flip(sources[1], range(0, 4999, 4))
    partition = merged(tmp_path, *sources)
    assert len(partition["lost"]) == 1000
    assert partition["lost_left_out"] == 250
    assert partition["lost_offsets"] == 1250
    # The second copy leads, since it is less damaged, and has everything that the first one has.
    assert (len(partition["ranges"]), partition["ranges_left_out"]) == (1000, 250)
    assert offsets_of(tmp_path / "out") == [offset for offset in range(5000) if offset % 4 or offset == 4999]


def test_batches_of_a_lower_epoch_are_not_passed_over(tmp_path: Path, cli: Cli) -> None:
    sources = replicas(tmp_path, {0: [*batches(0, 100, epoch=5), *batches(100, 200, epoch=3)]})
    shown = cli("merge", *sources, "--out", tmp_path / "out", code=1)
    assert shown.count("are in no good batch of this log") == 3


@pytest.mark.parametrize(
    ("epochs", "refused"),
    [
        ((5, 3), range(10, 20)),
        ((5, 5), ()),
        ((3, 5), ()),
        ((3, 5, 4, 6), range(20, 30)),
        ((5, 3, 6), range(10, 20)),
        ((5, 3, 5), range(10, 20)),
        ((-1, 5), ()),
    ],
)
def test_batches_of_a_lower_epoch_are_named(tmp_path: Path, epochs: tuple[int, ...], refused: range) -> None:
    """They are whole, but a follower does not fetch past the first of them."""
    data = [one for n, epoch in enumerate(epochs) for one in batches(100 * n, 100 * n + 100, epoch=epoch)]
    report = magicbyte.merge(replicas(tmp_path, {0: data}, 2), out=tmp_path / "out")
    assert report["balanced"]
    found = [one for one in report["problems"] if one["kind"] == "leader_epoch_out_of_order"]
    assert [one["base_offset"] // 10 for one in found] == 2 * list(refused)
    assert all(one["last_lost_offset"] == one["first_lost_offset"] + 9 for one in found)
    kept = [n for n in range(len(data)) if n not in refused]
    # The log ends where it had ended, after a gap.
    records = magicbyte.PartitionLog(tmp_path / "out/orders-0", mode="PERMISSIVE").records()
    assert [one.offset for one in records] == [o for n in kept for o in range(10 * n, 10 * n + 10)]


@pytest.mark.parametrize(
    ("epochs", "lost"),
    [
        ((5, 3), [(100, 199)]),
        ((5, 4, 3), [(100, 299)]),
        ((5, 3, 6), [(100, 199)]),
        ((5, 6, 2), [(200, 299)]),
        ((5, 6), []),
    ],
)
def test_offsets_of_a_lower_epoch_are_lost_and_not_assigned_again(
    tmp_path: Path, epochs: tuple[int, ...], lost: list[tuple[int, int]]
) -> None:
    data = [one for n, epoch in enumerate(epochs) for one in batches(100 * n, 100 * n + 100, epoch=epoch)]
    report = magicbyte.merge([replica(tmp_path / "b1", {0: data})], out=tmp_path / "out")
    (merged,) = report["partitions"]
    end = 100 * len(epochs)
    assert (merged["lost"], merged["log_end_offset"]) == (lost, end)
    assert merged["lost_offsets"] == sum(last - first + 1 for first, last in lost)
    if lost and lost[-1][1] == end - 1:
        assert "b1/orders-0" in str(merged["known_from"])
        assert (tmp_path / "out/orders-0" / f"{end:020}.log").read_bytes() == b""


def test_a_lower_epoch_that_another_copy_has_rightly_loses_nothing(tmp_path: Path) -> None:
    """The epochs of one copy are damaged: no CRC covers them."""
    wrong = [*batches(0, 100, epoch=5), *batches(100, 200, epoch=2)]
    sources = [replica(tmp_path / "b1", {0: wrong}), replica(tmp_path / "b2", {0: batches(0, 200, epoch=5)})]
    (merged,) = magicbyte.merge(sources)["partitions"]
    assert (merged["lost"], merged["next_offset"], merged["log_end_offset"]) == ([], 200, 200)


def test_the_start_of_a_log_is_named_and_not_beyond_its_end(tmp_path: Path, cli: Cli) -> None:
    sources = replicas(tmp_path, {0: batches(0, 200)})
    checkpoint = sources[0] / "log-start-offset-checkpoint"
    checkpoint.write_text(format_offset_checkpoint({("orders", 0): 150}))
    shown = cli("merge", *sources, "--out", tmp_path / "out", code=1)
    assert "records before offset 150 are left out" in shown
    checkpoint.write_text(format_offset_checkpoint({("orders", 0): 999_999}))
    cli("merge", *sources, "--out", tmp_path / "whole", code=1)
    assert offsets_of(tmp_path / "whole") == list(range(200))


@pytest.mark.parametrize(
    ("start", "names"),
    [
        (80, [80, 100]),
        (70, [60, 80, 100]),
        (0, [0, 20, 40, 60, 80, 100]),
        (19, [0, 20, 40, 60, 80, 100]),
        (20, [20, 40, 60, 80, 100]),
        (119, [100]),
        (120, [120]),
    ],
)
def test_segments_before_the_start_of_a_log_are_not_written(
    tmp_path: Path, start: int, names: list[int]
) -> None:
    segments = {base: batches(base, base + 20) for base in range(0, 120, 20)}
    source = with_checkpoint(replica(tmp_path / "b1", segments), "log-start-offset-checkpoint", start)
    report = magicbyte.merge([source], out=tmp_path / "out")
    assert report["balanced"]
    (merged,) = report["partitions"]
    written = sorted((tmp_path / "out/orders-0").glob("*.log"))
    assert [int(path.stem) for path in written] == names
    (copy,) = merged["copies"]
    if not start % 20:  # else batches of the first segment are before the start
        assert copy["used_bytes"] == sum(path.stat().st_size for path in written)
    assert copy["used_bytes"] + copy["left_out_bytes"] == copy["size"]
    assert [one["first_offset"] for one in merged["ranges"]] == [name for name in names if name < 120]
    assert offsets_of(tmp_path / "out") == list(range(start, 120))


def with_checkpoint(source: Path, name: str, offset: int) -> Path:
    (source / name).write_text(format_offset_checkpoint({("orders", 0): offset}))
    return source


@pytest.mark.parametrize(
    ("starts", "lost"),
    [
        ((None, None), []),
        ((150, 150), []),
        ((150, None), [(0, 149)]),
        ((150, 100), [(100, 149)]),
        ((0, None), []),
        ((999_999, None), []),  # beyond the end, so that it is wrong, which is a problem of its own
    ],
)
def test_copies_that_begin_at_different_offsets(
    tmp_path: Path, starts: tuple[int | None, ...], lost: list[tuple[int, int]]
) -> None:
    sources = replicas(tmp_path, {0: batches(0, 200)}, 2)
    for source, start in zip(sources, starts, strict=True):
        if start is not None:
            with_checkpoint(source, "log-start-offset-checkpoint", start)
    report = magicbyte.merge(sources, out=tmp_path / "out")
    found = [
        (one["first_lost_offset"], one["last_lost_offset"])
        for one in report["problems"]
        if one["kind"] == "log_starts_differ"
    ]
    assert found == lost


def test_a_copy_that_retention_has_shortened_takes_nothing_from_the_others(tmp_path: Path, cli: Cli) -> None:
    """Brokers delete old segments at different times, and write no start for it."""
    segments = {0: batches(0, 100), 100: batches(100, 200)}
    sources = replicas(tmp_path, segments, 2)
    (sources[0] / "orders-0" / f"{0:020}.log").unlink()
    cli("merge", *sources, "--out", tmp_path / "out", code=0)
    assert offsets_of(tmp_path / "out") == list(range(200))


def test_records_before_the_cleaned_copy_count(tmp_path: Path, cli: Cli) -> None:
    cleaned = compacted(0, 600, {100, 300, 500})
    dirty = batches(600, 700)
    sources = [
        replica(tmp_path / "b1", {100: cleaned[1:], 600: dirty}),
        replica(tmp_path / "b2", {0: cleaned, 600: dirty}),
    ]
    for source in sources:
        with_checkpoint(source, "cleaner-offset-checkpoint", 600)
    flip(sources[1], [1, 2, 3], bits=3)
    report = cli.json("merge", *sources, "--out", tmp_path / "out", code=1)
    (partition,) = report["partitions"]
    assert partition["cleaned_copy"].endswith("b1/orders-0")
    (found,) = [one for one in report["problems"] if one["kind"] == "log_starts_differ"]
    assert (found["first_lost_offset"], found["last_lost_offset"]) == (0, 99)
    assert "b2/orders-0 begins at offset 0, but another copy at 100" in found["message"]


@pytest.mark.parametrize(
    ("checkpoints", "written"),
    [((600, 600), 600), ((300, 600), 300), ((600, None), 600), ((9999, 600), 700), ((None, None), None)],
)
def test_the_cleaner_goes_on_where_the_cleaned_copy_ends(
    tmp_path: Path, checkpoints: tuple[int | None, ...], written: int | None
) -> None:
    segments = {0: compacted(0, 600, {100, 300, 500}), 600: batches(600, 700)}
    sources = replicas(tmp_path, segments, 2)
    for source, offset in zip(sources, checkpoints, strict=True):
        if offset is not None:
            with_checkpoint(source, "cleaner-offset-checkpoint", offset)
    flip(sources[1], [1], bits=3)  # so that the first copy is taken
    merged(tmp_path, *sources)
    path = tmp_path / "out" / "cleaner-offset-checkpoint"
    if written is None:
        assert not path.exists()
    else:
        assert read_offset_checkpoint(path) == {("orders", 0): written}


def test_a_log_that_is_not_compacted_has_no_cleaner_checkpoint(tmp_path: Path) -> None:
    sources = [
        with_checkpoint(one, "cleaner-offset-checkpoint", 100) for one in replicas(tmp_path, SEGMENTS, 2)
    ]
    config = tmp_path / "topics.json"
    config.write_text(json.dumps({"orders": {"cleanup.policy": "delete"}}))
    merged(tmp_path, *sources, topic_config=config)
    assert not (tmp_path / "out" / "cleaner-offset-checkpoint").exists()


def test_copies_that_change_while_they_are_read_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that still runs deletes a segment, replaces it as the cleaner does, or appends to it."""

    def delete(partition: Path) -> None:
        (partition / f"{0:020}.log").unlink()

    def replace(partition: Path) -> None:
        other = partition / "other"
        other.write_bytes(b"".join(SEGMENTS[0]))
        other.replace(partition / f"{0:020}.log")

    def finish(partition: Path) -> None:
        log = partition / f"{max(SEGMENTS):020}.log"
        with log.open("ab") as file:
            file.write(batch(2000)[50:])

    align = planning._align
    for number, change in enumerate((delete, replace, finish)):
        root = tmp_path / str(number)
        sources = replicas(root, SEGMENTS, 2)
        if change is finish:
            for source in sources:
                with (source / "orders-0" / f"{max(SEGMENTS):020}.log").open("ab") as file:
                    file.write(batch(2000)[:50])

        def changed(*args: object, change=change, sources=sources, **options: object) -> str:  # type: ignore[no-untyped-def]
            monkeypatch.setattr(planning, "_align", align)
            for source in sources[: 2 if change is finish else 1]:
                change(source / "orders-0")
            return align(*args, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(planning, "_align", changed)
        report = magicbyte.merge(sources, out=root / "out")
        assert report["balanced"]
        assert report["problems"] == []
        assert offsets_of(root / "out") == list(range(2010 if change is finish else 2000))
