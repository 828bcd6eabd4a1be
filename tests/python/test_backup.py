"""`backup`, with `serve` as the cluster: what is new, what was killed, lost, set aside or damaged."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import KAFKA, Cli
from magicbyte.broker import PartitionSimulator
from magicbyte.errors import RefusedError
from magicbyte.jobs.backup import _Backup
from magicbyte.jobs.describing.cluster import describe_cluster
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.message.api_keys import ApiKeys

TOPICS = ("v2_lz4", "v2_txn", "v1_gzip", "v2_compacted_txn", "mixed_012", "v0_none", "v2_epochs")
ID, OTHER_ID = "AAAAAAAAAAAAAAAAAAAAEQ", "AAAAAAAAAAAAAAAAAAAAIg"
VALUES = (b"first", b"second", b"third", b"fourth", b"fifth", b"sixth")
NO_PROBLEMS = PartitionChoice(exclude=("__magicbyte_problems",))


def batch(offset: int, *values: bytes, epoch: int = 0, timestamp: int | None = None) -> bytes:
    builder = magicbyte.RecordsBuilder(base_offset=offset, partition_leader_epoch=epoch)
    for place, value in enumerate(values):
        time = 1000 * (offset + place) if timestamp is None else timestamp
        builder.append(offset + place, time, b"key", value)
    return builder.build()


def write_log(root: Path, batches: Sequence[bytes], topic_id: str = ID, name: str = "orders-0") -> Path:
    """A partition's directory with one segment, in the place of the one that was there."""
    directory = root / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    base = next(iter(magicbyte.read_batches(batches[0]))).base_offset if batches else 0
    (directory / f"{base:020}.log").write_bytes(b"".join(batches))
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    return directory


@contextmanager
def cluster(*sources: Path) -> Iterator[str]:
    with magicbyte.serve(sources, listen="127.0.0.1:0") as server:
        yield f"kafka://{server.bootstrap_servers}"


def backup(out: Path, *sources: Path, **options: Any) -> Any:
    """Backs up a cluster with these partitions."""
    with cluster(*sources) as url:
        return magicbyte.backup(url, out, choice=options.pop("choice", NO_PROBLEMS), **options)


def content(directory: Path) -> bytes:
    """The bytes of all segments."""
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def findings(report: Any) -> list[tuple[Any, ...]]:
    return [(one["found"], one["first_offset"], one["last_offset"]) for one in report["findings"]]


def is_proved(out: Path) -> bool:
    report = magicbyte.verify(out, certificate=out / "backup.json")
    assert report["certificate"] is not None
    return report["certificate"]["equal"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cluster"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "backup"


BATCHES = [batch(number, value, epoch=number // 2) for number, value in enumerate(VALUES)]


def test_every_batch_is_kept_as_it_is(cli: Cli, out: Path) -> None:
    """Of all magics, with transactions and holes; every command reads the backup."""
    with cluster(*(KAFKA / topic for topic in TOPICS)) as url:
        report = cli.json("backup", url, out)
        assert report["findings"] == []
        assert report["copied_bytes"] == sum(one["size"] for one in report["partitions"])
        verified = cli.json("verify", "--against", url.removeprefix("kafka://"), out)
        assert verified["cluster"]["equal"]
        assert verified["problems"] == []
    for topic in ("v2_lz4", "v2_txn", "v1_gzip", "mixed_012", "v0_none", "v2_epochs"):
        assert content(out / f"{topic}-0") == content(KAFKA / topic), topic
    assert is_proved(out)
    cli.json("verify", out)
    with magicbyte.PartitionLog(KAFKA / "v2_txn") as one, magicbyte.PartitionLog(out / "v2_txn-0") as other:
        committed = [
            [record.offset for record in log.records(isolation_level="read_committed")]
            for log in (one, other)
        ]
    assert committed[0] == committed[1] != []
    epochs = {one["topic"]: one["leader_epochs"] for one in report["partitions"]}
    assert len(epochs["v2_epochs"]) > 1
    text = (out / "v2_epochs-0" / "leader-epoch-checkpoint").read_text()
    assert text.splitlines()[2:] == [f"{epoch} {offset}" for epoch, offset in epochs["v2_epochs"]]


def test_a_second_run_adds_what_is_new(root: Path, out: Path) -> None:
    write_log(root, BATCHES[:3])
    assert backup(out, root)["copied_records"] == 3
    again = backup(out, root)
    assert (again["copied_bytes"], again["findings"]) == (0, [])
    write_log(root, BATCHES)
    report = backup(out, root)
    assert (report["copied_records"], report["copied_batches"]) == (3, 3)
    (partition,) = report["partitions"]
    assert (partition["records"], partition["next_offset"], partition["topic_id"]) == (6, 6, ID)
    assert [tuple(one) for one in partition["leader_epochs"]] == [(0, 0), (1, 2), (2, 4)]
    assert content(out / "orders-0") == b"".join(BATCHES)
    assert is_proved(out)


@pytest.mark.parametrize("segment_bytes", [1, 100, 150, 1 << 20])
def test_segments(root: Path, out: Path, segment_bytes: int) -> None:
    """Their names are the base offsets of their first batches; a run goes on in the last one."""
    for number in (2, 3, len(BATCHES)):
        write_log(root, BATCHES[:number])
        backup(out, root, segment_bytes=segment_bytes)
    names = []
    for path in sorted((out / "orders-0").glob("*.log")):
        batches = list(magicbyte.read_batches(path.read_bytes()))
        names.append(int(path.stem))
        assert batches[0].base_offset == names[-1]
        assert len(batches) == 1 or path.stat().st_size <= segment_bytes
    assert content(out / "orders-0") == b"".join(BATCHES)
    assert names[0] == 0
    assert (len(names) == 1) == (segment_bytes == 1 << 20)
    assert magicbyte.verify(out)["problems"] == []


def _cut(log: Path) -> None:
    os.truncate(log, log.stat().st_size - 7)


def _flip(log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)


def _zeros(log: Path) -> None:
    with log.open("ab") as file:
        file.write(bytes(4096))


def _another_segment(log: Path) -> None:
    """A file that was created last; the one before has no whole end."""
    _cut(log)
    log.with_name(f"{5:020}.log").write_bytes(BATCHES[5])


def _empty_segment(log: Path) -> None:
    log.with_name(f"{6:020}.log").touch()


def _no_segment(log: Path) -> None:
    log.unlink()


def _half_manifest(log: Path) -> None:
    (log.parents[1] / ".backup.tmp").write_text('{"cluster_id": "x')


KILLED = [_cut, _flip, _zeros, _another_segment, _empty_segment, _no_segment, _half_manifest]


@pytest.mark.parametrize("first_run", [True, False], ids=["first run", "second run"])
@pytest.mark.parametrize("killed", KILLED)
def test_a_killed_run_is_continued(
    root: Path, out: Path, killed: Callable[[Path], None], first_run: bool
) -> None:
    """The manifest is that of before the run: what it does not count is checked."""
    write_log(root, BATCHES[:0] if first_run else BATCHES[:2])
    backup(out, root)
    manifest = (out / "backup.json").read_bytes()
    write_log(root, BATCHES)
    backup(out, root)
    (out / "backup.json").write_bytes(manifest)
    (log,) = (out / "orders-0").glob("*.log")
    killed(log)
    report = backup(out, root)
    expected = [("incomplete", None, None)] if killed in (_no_segment, _another_segment) else []
    assert findings(report) == expected
    assert content(out / "orders-0") == b"".join(BATCHES)
    assert report["partitions"][0]["records"] == len(BATCHES)
    assert is_proved(out)
    assert magicbyte.verify(out)["problems"] == []


def test_a_run_that_was_killed_before_its_first_manifest(root: Path, out: Path) -> None:
    write_log(root, BATCHES)
    out.mkdir()
    for name in (".lock", ".backup.json.tmp"):
        (out / name).write_text("{")
    backup(out, root)
    assert is_proved(out)
    assert not list(out.rglob("*.tmp"))


def test_rot_in_a_segment_that_grows_is_not_certified(cli: Cli, root: Path, out: Path) -> None:
    """Neither by the run that reads it, nor by later ones."""
    write_log(root, BATCHES[:2])
    backup(out, root)
    segment = out / "orders-0" / f"{0:020}.log"
    data = bytearray(segment.read_bytes())
    data[len(BATCHES[0]) - 1] ^= 1
    segment.write_bytes(data)
    write_log(root, BATCHES)
    for _ in range(3):
        with cluster(root) as url:
            report = cli.json("backup", url, out, code=1)
        assert findings(report) == [("changed", None, None)]
        assert not is_proved(out)
        assert len(content(out / "orders-0")) == sum(map(len, BATCHES))
    with cluster(root) as url:
        cli("backup", "--full", url, out)
    assert is_proved(out)


@pytest.mark.parametrize("damage", [_cut, _no_segment])
def test_files_that_are_missing_are_copied_again(
    cli: Cli, root: Path, out: Path, damage: Callable[[Path], None]
) -> None:
    """The backup was whole, and somebody has taken a part of it."""
    write_log(root, BATCHES)
    backup(out, root, segment_bytes=150)
    first, second, *_ = sorted((out / "orders-0").glob("*.log"))
    damage(second)
    assert not is_proved(out)
    with cluster(root) as url:
        report = cli.json("backup", url, out, "--exclude", "__magicbyte_problems", code=1)
    assert findings(report) == [("incomplete", None, None)]
    assert content(out / "orders-0") == b"".join(BATCHES)
    assert first.exists()
    assert is_proved(out)


@pytest.mark.parametrize("options", [{}, {"full": True}], ids=["go on", "full"])
def test_a_directory_that_is_missing_is_named(root: Path, out: Path, options: dict[str, Any]) -> None:
    """The cluster may not have all of it any more."""
    write_log(root, BATCHES)
    backup(out, root)
    write_log(root, BATCHES[3:])
    shutil.rmtree(out / "orders-0")
    report = backup(out, root, **options)
    assert findings(report) == [("incomplete", None, None), ("lost", 0, 2)]
    assert "had 6 records: it is copied again from offset 3" in report["findings"][0]["message"]
    assert content(out / "orders-0") == b"".join(BATCHES[3:])
    assert is_proved(out)
    assert findings(backup(out, root)) == []


def test_an_empty_directory_that_is_missing_is_no_loss(root: Path, out: Path) -> None:
    write_log(root, [])
    backup(out, root)
    shutil.rmtree(out / "orders-0")
    assert findings(backup(out, root)) == []


def test_retention_that_overtakes_the_backup_is_named(cli: Cli, root: Path, out: Path) -> None:
    """The lost offsets stay in the manifest; a log that starts later is no loss to the first run."""
    write_log(root, BATCHES[1:3])
    report = backup(out, root)
    assert (report["findings"], report["partitions"][0]["first_offset"]) == ([], 1)
    write_log(root, BATCHES[5:])
    with cluster(root) as url:
        text = cli("backup", url, out, "--exclude", "__magicbyte_problems", code=1)
    assert "orders-0: lost: offsets 3 to 4" in text
    (partition,) = json.loads((out / "backup.json").read_text())["partitions"]
    assert partition["lost"] == [[3, 4]]
    assert (partition["log_start_offset"], partition["next_offset"]) == (5, 6)
    assert sorted(path.stem[-1] for path in (out / "orders-0").glob("*.log")) == ["1", "5"]
    # Consumers of the cluster do not see what it has deleted; the backup still has it, but for the loss.
    verified = magicbyte.verify(out)
    assert verified["total"]["rows"] == 1
    assert [one["first_lost_offset"] for one in verified["problems"]] == [3]
    everything = PartitionChoice(include_deleted_records=True)
    assert magicbyte.verify(out, choice=everything)["total"]["rows"] == 3
    assert backup(out, root)["findings"] == []
    (partition,) = json.loads((out / "backup.json").read_text())["partitions"]
    assert partition["lost"] == [[3, 4]]


def test_an_unclean_election_is_named(root: Path, out: Path) -> None:
    """What the new leader does not have is moved aside, over several epochs."""
    write_log(root, BATCHES)
    backup(out, root, segment_bytes=150)
    other = [*BATCHES[:3], batch(3, b"another", epoch=7), batch(4, b"and another", epoch=7)]
    write_log(root, other)
    report = backup(out, root, segment_bytes=150)
    assert {found for found, *_ in findings(report)} == {"diverged"}
    assert content(out / "orders-0") == b"".join(other)
    assert min(first for _, first, _ in findings(report)) == 3
    assert (report["partitions"][0]["batches"], report["partitions"][0]["records"]) == (5, 5)
    moved = {content(path) for path in out.glob("orders-0.*-stray")}
    assert sorted(b"".join(sorted(moved))) == sorted(b"".join(BATCHES[3:]))
    assert is_proved(out)
    stray = magicbyte.verify(out, choice=PartitionChoice(include_stray=True, prefer=(str(out / "orders-0"),)))
    assert stray["problems"] == []
    assert backup(out, root)["findings"] == []


def test_a_topic_that_was_created_again(root: Path, out: Path) -> None:
    write_log(root, BATCHES[:4])
    backup(out, root)
    write_log(root, [batch(0, b"other")], OTHER_ID)
    report = backup(out, root)
    assert findings(report) == [("recreated", None, None)]
    (aside,) = out.glob("orders-0.*-stray")
    assert report["findings"][0]["aside"] == aside.name
    assert content(aside) == b"".join(BATCHES[:4])
    assert content(out / "orders-0") == batch(0, b"other")
    assert report["partitions"][0]["topic_id"] == OTHER_ID
    assert is_proved(out)
    assert backup(out, root)["findings"] == []


def test_a_topic_that_is_not_shown(root: Path, out: Path) -> None:
    """It was deleted, or hidden for a while: then its log comes back."""
    write_log(root, BATCHES[:4])
    write_log(root, BATCHES[:1], OTHER_ID, "payments-0")
    backup(out, root)
    shutil.rmtree(root / "orders-0")
    report = backup(out, root)
    assert findings(report) == [("deleted", None, None)]
    assert [one["topic"] for one in report["partitions"]] == ["payments"]
    assert backup(out, root)["findings"] == []
    write_log(root, BATCHES)
    report = backup(out, root)
    assert content(out / "orders-0") == b"".join(BATCHES)
    assert report["copied_records"] == 2
    assert not list(out.glob("*-stray"))


def test_the_choice(root: Path, out: Path) -> None:
    """What is not chosen stays as it is."""
    write_log(root, BATCHES[:2])
    write_log(root, BATCHES[:2], OTHER_ID, "payments-0")
    backup(out, root)
    write_log(root, BATCHES)
    write_log(root, BATCHES, OTHER_ID, "payments-0")
    report = backup(out, root, choice=PartitionChoice(topics=("pay*",)))
    assert {one["topic"]: one["next_offset"] for one in report["partitions"]} == {"orders": 2, "payments": 6}
    assert is_proved(out)


def test_a_choice_of_nothing(cli: Cli, root: Path, out: Path) -> None:
    """It is refused, unless the backup has what the cluster has no more."""
    write_log(root, BATCHES[:2])
    write_log(root, BATCHES[:2], OTHER_ID, "payments-0")
    with cluster(root) as url:
        cli("backup", url, out, "--topic", "ordrs", code=2)
        assert "no partition is chosen; there are partitions of" in cli.error
        assert "orders, payments" in cli.error
        cli("backup", url, out)
    shutil.rmtree(root / "orders-0")
    report = backup(out, root, choice=PartitionChoice(topics=("orders",)))
    assert findings(report) == [("deleted", None, None)]


def test_a_broker_is_found_by_its_id(root: Path) -> None:
    """Before anything else has looked at the metadata, as in a cluster without topics."""
    write_log(root, BATCHES)
    asked = {"clientSoftwareName": "test", "clientSoftwareVersion": "1"}
    with cluster(root) as url:
        reader = magicbyte._core.ClusterReader(url.removeprefix("kafka://"))
        assert reader.describe(ApiKeys.API_VERSIONS, asked, 0)["errorCode"] == 0
        with pytest.raises(ConnectionError, match="the cluster has no broker 7"):
            reader.describe(ApiKeys.API_VERSIONS, asked, 7)


def test_a_cut_in_time(root: Path, out: Path, tmp_path: Path) -> None:
    """Records of the time or later are left out; batches stay whole, and a later cut goes on."""
    write_log(root, [*BATCHES[:3], batch(3, b"a", b"b", b"c"), batch(6, b"last")])
    for time, end in ((2999, 3), (3000, 3), (4500, 6), (10_000, 7)):
        report = backup(out, root, as_of=time)
        assert (report["partitions"][0]["next_offset"], report["as_of"]) == (end, time)
    assert magicbyte.verify(out)["total"]["rows"] == 7
    with pytest.raises(RefusedError, match="orders-0: the backup already goes on to offset 7"):
        backup(out, root, as_of=3000)
    # A killed run had no cut: what it has copied after this one is cut off.
    other = tmp_path / "other"
    backup(other, root, as_of=2000)
    manifest = (other / "backup.json").read_bytes()
    backup(other, root)
    (other / "backup.json").write_bytes(manifest)
    assert backup(other, root, as_of=3000)["partitions"][0]["next_offset"] == 3
    assert magicbyte.verify(other)["total"]["rows"] == 3


class Transactions:
    """A partition whose clock tells how many seconds have passed."""

    def __init__(self) -> None:
        self.partition = PartitionSimulator(clock=0)
        self._sequences: Counter[int] = Counter()

    def append(self, producer_id: int) -> None:
        """Appends a record of the next second."""
        builder = magicbyte.RecordsBuilder(
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=self._sequences[producer_id],
            is_transactional=producer_id >= 0,
        )
        builder.append(0, 1000 * self.partition.log_end_offset, b"key", b"value")
        self._sequences[producer_id] += 1
        self.partition.append(builder.build())
        self.partition.advance(1000)

    def end(self, producer_id: int) -> None:
        """Commits the transaction of a producer."""
        self.partition.end_transaction(producer_id, 0, committed=True)
        self.partition.advance(1000)


HISTORIES = {
    # Each letter is a record of a producer, a capital letter its commit; x has no transactions.
    # The cut is at the bar. Where the log ends, and the first offsets of transactions that are open there.
    "aA|bB": (2, []),
    "aAb|B": (2, []),
    "ab|AB": (0, []),
    "xab|ABx": (1, []),
    "xaAb|bB": (3, []),
    "xaAbxx|B": (3, []),
    "abA|B": (3, [1]),
    "abAcC|B": (5, [1]),
    "abBx|A": (0, []),
    "xxx|aA": (3, []),
}


@pytest.mark.parametrize("history", HISTORIES)
def test_transactions_that_were_open_at_the_cut(root: Path, out: Path, history: str) -> None:
    """They are cut off although they were committed later, unless an earlier one would lose its marker."""
    transactions = Transactions()
    time = 1000 * history.index("|")
    for letter in history.replace("|", ""):
        if letter.isupper():
            transactions.end(ord(letter.lower()))
        else:
            transactions.append(-1 if letter == "x" else ord(letter))
    records = transactions.partition.fetch(0, max_bytes=1 << 20).records
    batches = [
        records[one.position : one.position + one.size_in_bytes] for one in magicbyte.read_batches(records)
    ]
    write_log(root, batches)
    end, open_ = HISTORIES[history]
    for segment_bytes in (1, 1 << 20):
        shutil.rmtree(out, ignore_errors=True)
        report = backup(out, root, as_of=time, segment_bytes=segment_bytes)
        (partition,) = report["partitions"]
        assert partition["next_offset"] == end
        assert partition["records"] == end
        assert [one["first_offset"] for one in partition["open_transactions"]] == open_
        assert content(out / "orders-0") == b"".join(batches[:end])
        assert is_proved(out)
        # A later run goes on, also with the transactions that were open.
        report = backup(out, root, segment_bytes=segment_bytes)
        assert report["findings"] == []
        assert report["partitions"][0]["open_transactions"] == []
        assert content(out / "orders-0") == records
        assert is_proved(out)


def test_a_full_copy_replaces_the_old_one(root: Path, out: Path) -> None:
    """What the cluster has compacted is gone from the new copy."""
    write_log(root, BATCHES[:5])
    backup(out, root)
    compacted = [BATCHES[0], BATCHES[4], BATCHES[5]]
    write_log(root, compacted)
    assert backup(out, root)["partitions"][0]["records"] == 6
    report = backup(out, root, full=True)
    assert (report["partitions"][0]["records"], report["findings"]) == (3, [])
    assert content(out / "orders-0") == b"".join(compacted)
    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == ["orders-0"]
    assert is_proved(out)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("step", ["copying", "old renamed", "new renamed"])
def test_a_full_copy_that_was_killed(root: Path, out: Path, step: str, full: bool) -> None:
    """One of the copies is always whole. A run that does not go on with the new one removes it."""
    write_log(root, BATCHES[:4])
    backup(out, root)
    write_log(root, BATCHES)
    digits = f"{0x11:032x}"
    old, new = out / f"orders-0.{digits}-delete", out / f"orders-0.{digits}-future"
    shutil.copytree(root / "orders-0", new)
    if step == "copying":
        _cut(new / f"{0:020}.log")
    else:
        (out / "orders-0").rename(old)
    if step == "new renamed":
        new.rename(out / "orders-0")
    if step != "old renamed":
        assert magicbyte.verify(out)["total"]["rows"] == {"copying": 4, "new renamed": 6}[step]
    report = backup(out, root, full=full)
    assert report["findings"] == []
    assert content(out / "orders-0") == b"".join(BATCHES)
    assert not list(out.glob("orders-0.*"))
    assert is_proved(out)


@pytest.mark.parametrize("full", [False, True])
def test_a_full_copy_that_was_killed_before_its_manifest(
    root: Path, out: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """The old manifest has sizes of files with these names, but other bytes."""
    write_log(root, BATCHES[:5])
    backup(out, root)
    compacted = [BATCHES[0], BATCHES[4], BATCHES[5], batch(6, b"x" * 1000, epoch=3)]
    write_log(root, compacted)

    def killed(_job: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_Backup, "_write", killed)
    with pytest.raises(KeyboardInterrupt):
        backup(out, root, full=True)
    monkeypatch.undo()
    write_log(root, [*compacted, batch(7, b"seventh", epoch=3)])
    report = backup(out, root, full=full)
    assert report["findings"] == []
    assert report["partitions"][0]["records"] == 5
    assert content(out / "orders-0") == content(root / "orders-0")
    assert is_proved(out)


def test_an_empty_partition(root: Path, out: Path) -> None:
    """It has a directory and a segment, like that of a broker."""
    write_log(root, [])
    assert backup(out, root)["copied_batches"] == 0
    assert magicbyte.verify(out)["problems"] == []
    write_log(root, BATCHES[:2])
    backup(out, root)
    assert content(out / "orders-0") == b"".join(BATCHES[:2])
    assert is_proved(out)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("127.0.0.1:9092", "such as kafka://HOST:PORT"),
        ("http://127.0.0.1:9092", "such as kafka://HOST:PORT"),
        ("kafka://", "expected kafka://HOST:PORT"),
        ("kafka://127.0.0.1:0", "expected HOST:PORT"),
        ("kafka://127.0.0.1:x", "expected HOST:PORT"),
        ("kafka://127.0.0.1:9092/orders", "--topic chooses topics"),
        ("kafka://ann:hunter2@127.0.0.1:9092", "kafka://...@127.0.0.1:9092: a user and a password"),
        ("kafkas://hunter2@127.0.0.1", "--command-config"),
    ],
)
def test_urls(cli: Cli, out: Path, url: str, expected: str) -> None:
    cli("backup", url, out, code=2)
    assert expected in cli.error
    assert "hunter2" not in cli.error


def test_outputs_that_are_refused(cli: Cli, root: Path, out: Path, tmp_path: Path) -> None:
    write_log(root, BATCHES)
    with cluster(root) as url:
        cli("backup", url, "http://127.0.0.1:1/backup", code=2)
        assert "nothing can be written to a web server" in cli.error
        cli("backup", url, root, code=2)
        assert "not a backup" in cli.error
        file = tmp_path / "file"
        file.touch()
        cli("backup", url, file, code=2)
        assert "file is not a directory" in cli.error
        cli("backup", url, out)
        with (out / ".lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            cli("backup", url, out, code=2)
            assert "another backup" in cli.error
        manifest = json.loads((out / "backup.json").read_text())
        for changed, expected in (
            ({"cluster_id": "another"}, "is a backup of the cluster another"),
            ({"partitions": [{"topic": "orders"}]}, "not the manifest"),
            ({"partitions": [manifest["partitions"][0] | {"topic": "../x"}]}, "not the manifest"),
            ({"partitions": [manifest["partitions"][0] | {"topic_id": "../x"}]}, "not the manifest"),
            ({"partitions": [manifest["partitions"][0] | {"next_offset": None}]}, "not the manifest"),
            ({"outputs": {"../x": {"size": 1, "sha256": "0" * 64}}}, "no certificate"),
            ({"node_id": True}, "not the manifest"),
        ):
            (out / "backup.json").write_text(json.dumps(manifest | changed))
            cli("backup", url, out, code=2)
            assert expected in cli.error
        (out / "backup.json").write_text("{")
        cli("backup", url, out, code=2)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("full", [False, True])
def test_links_in_the_output_are_not_followed(root: Path, out: Path, tmp_path: Path, full: bool) -> None:
    write_log(root, BATCHES[:2])
    backup(out, root)
    elsewhere = (out / "orders-0").rename(tmp_path / "elsewhere")
    (out / "orders-0").symlink_to(elsewhere)
    write_log(root, BATCHES)
    with pytest.raises(RefusedError, match="orders-0 is a symbolic link"):
        backup(out, root, full=full)
    assert content(elsewhere) == b"".join(BATCHES[:2])


def test_clusters_that_do_not_answer(cli: Cli, root: Path, out: Path) -> None:
    """The output can be used as soon as there is one that does."""
    cli("backup", "kafka://127.0.0.1:1", out, code=3)
    assert "127.0.0.1:1" in cli.error
    write_log(root, BATCHES)
    with cluster(root) as url:
        cli("backup", url, out)
    assert is_proved(out)


def test_restore_needs_the_metadata_of_a_cluster(cli: Cli, root: Path, out: Path) -> None:
    """Serve has none, and neither has a cluster with ZooKeeper."""
    write_log(root, BATCHES)
    backup(out, root)
    cli("restore", out, "--out", out.parent / "restored", code=2)
    assert "__cluster_metadata-0" in cli.error


def test_changed_bytes_are_found(root: Path, out: Path) -> None:
    write_log(root, BATCHES)
    backup(out, root)
    _flip(next((out / "orders-0").glob("*.log")))
    assert not is_proved(out)


def test_damage_in_the_state_of_transactions(root: Path, out: Path) -> None:
    """It is read for the producers' ids; a backup that has it goes on."""
    write_log(root, BATCHES[:4], name="__transaction_state-0")
    backup(out, root)
    _flip(next((out / "__transaction_state-0").glob("*.log")))
    write_log(root, BATCHES, name="__transaction_state-0")
    assert backup(out, root)["copied_batches"] == 2
    assert magicbyte.verify(out)["problems"]


class HostileCluster:
    """A cluster that answers anything that is a valid message."""

    def __init__(self, name: str = "orders", cluster_id: str = "x", partition: int = 0) -> None:
        self._cluster_id = cluster_id
        index = {
            "partitionIndex": partition,
            "leaderId": 0,
            "leaderEpoch": 0,
            "replicaNodes": [0],
            "isrNodes": [0],
        }
        self._topic = {"errorCode": 0, "name": name, "partitions": [index]}

    def describe(self, api_key: int, _body: object, _node_id: object = None) -> dict[str, Any]:
        if api_key == ApiKeys.API_VERSIONS:
            return {}
        return {"clusterId": self._cluster_id, "brokers": [{"nodeId": 0}], "topics": [self._topic]}


@pytest.mark.parametrize(
    "hostile",
    [
        HostileCluster(name="../../orders"),
        HostileCluster(name=".."),
        HostileCluster(name=""),
        HostileCluster(name="/orders"),
        HostileCluster(name="a\0b"),
        HostileCluster(name="a" * 250),
        HostileCluster(partition=-1),
        HostileCluster(cluster_id="x\nnode.id=7"),
        HostileCluster(cluster_id="x" * 101),
    ],
)
def test_a_cluster_cannot_name_other_files(hostile: Any) -> None:
    """Names in its answers become those of directories, and its id a line of meta.properties."""
    with pytest.raises(ConnectionError, match="Metadata: "):
        describe_cluster(hostile)


def test_long_names_of_topics(root: Path, out: Path) -> None:
    """The names of directories have at most 255 characters, also of those that are set aside."""
    name = "a" * 249 + "-0"
    write_log(root, BATCHES[:2], name=name)
    backup(out, root)
    write_log(root, BATCHES[:1], OTHER_ID, name=name)
    assert findings(backup(out, root)) == [("recreated", None, None)]
    (aside,) = out.glob("*-stray")
    assert len(aside.name) == 255
    assert is_proved(out)
