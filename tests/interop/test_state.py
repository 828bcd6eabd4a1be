"""Producer state, transactions, leader epochs and the consumer's filter against Kafka's own classes.

Sequences of appends, markers, rolls, truncations and restarts are generated from fixed seeds. Each is played
on a `UnifiedLog` of Kafka 4.3 and on ours: verdicts, state, snapshots and transaction indexes must be equal.
"""

from __future__ import annotations

import subprocess
import time
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from random import Random

import magicbyte
import pytest
from kafka_broker import Broker, java
from kafka_versions import JUDGES
from magicbyte import _core
from magicbyte.jobs.explain import explain
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.options.read import ExplainOptions
from magicbyte.state import LeaderEpochs, read_committed
from state_oracle import StateOracle
from state_play import EXPIRATION, STEPS, Play, data, marker, one

pytestmark = pytest.mark.interop

SEEDS = 16


@pytest.fixture(scope="module", params=JUDGES)
def kafka_log(request: pytest.FixtureRequest) -> Iterator[StateOracle]:
    process = StateOracle(request.param)
    yield process
    process.close()


class Crashes(Play):
    """Deletions at the start, and crashes after which snapshots are missing, damaged or left over."""

    def run(self) -> None:
        steps = {
            self.data: 60,
            self.end_transaction: 22,
            self.roll: 6,
            self.wait: 3,
            self.delete: 4,
            self.truncate: 2,
            self.crash: 4,
        }
        for _ in range(STEPS):
            step = self.random.choices(list(steps), list(steps.values()))[0]
            step()
            assert self.kafka.ask("state") == self.ours.described(), step
        self.kafka.ask("close")

    def delete(self) -> None:
        """Like DeleteRecords: moves the log start offset, possibly into a transaction."""
        self.kafka.ask("hw", self.ours.end)
        self.ours.state.set_high_watermark(self.ours.end)
        target = self.random.randint(self.ours.start, self.ours.end)
        moves = self.kafka.ask("start", target) == "true"
        assert moves == (target > self.ours.start)
        if moves:
            self.ours.start = target
            self.ours.state.set_log_start_offset(target)
        self.counts["deleted"] = self.counts.get("deleted", 0) + moves

    def crash(self) -> None:
        if self.ours.end == self.ours.segments[-1]:
            return
        self.kafka.ask("close")
        files = sorted(self.directory.glob("*.snapshot"))
        damage = self.random.choice(["none", "gone", "all gone", "older", "newer", "cut"])
        for file in files if damage == "all gone" else files[-self.random.randint(1, 2) :]:
            content = file.read_bytes()
            if "gone" in damage:
                file.unlink()
            elif damage == "older":
                file.write_bytes(files[0].read_bytes())
            elif damage == "newer":
                (file.parent / f"{self.ours.end + 7:020}.snapshot").write_bytes(content)
            elif damage == "cut":
                file.write_bytes(content[:-3])
        found = self.snapshots()
        assert self.kafka.open(self.directory, EXPIRATION, clean=False, verify=self.verify) == self.ours.end
        # The log start offset is in a checkpoint of the broker, not in the log's directory.
        self.ours.start = 0
        self.ours.recover(self.now, found)
        self.guards.clear()
        self.sent.clear()
        assert self.snapshots() == self.ours.state.snapshots, damage
        assert self.transaction_index() == self.ours.aborted
        self.counts[damage] = self.counts.get(damage, 0) + 1


@pytest.mark.parametrize("group", range(2))
def test_deletions_and_crashes(kafka_log: StateOracle, tmp_path: Path, group: int) -> None:
    """State, snapshots and transaction indexes after `maybeIncrementLogStartOffset` and `recoverLog`."""
    counts: dict[str, int] = {}
    for seed in range(3000 + group, 3012, 2):
        play = Crashes(kafka_log, tmp_path, seed)
        play.run()
        for name, count in play.counts.items():
            counts[name] = counts.get(name, 0) + count
    for name in ("deleted", "none", "gone", "all gone", "older", "newer", "cut"):
        assert counts[name] > 1, counts


def test_aborted_transactions_of_a_fetch(kafka_log: StateOracle, tmp_path: Path) -> None:
    """Searches all segments' indexes from the first offset on, like `UnifiedLog.collectAbortedTransactions`.

    It leaves out only transactions that end before the log start offset.
    """
    total = 0
    for seed in range(4000, 4006):
        play = Play(kafka_log, tmp_path, seed)
        for _ in range(200):
            play.random.choice([play.data, play.end_transaction, play.end_transaction, play.roll])()
        kafka_log.ask("hw", play.ours.end)
        log_start = play.random.choice([0, play.ours.end // 3])
        kafka_log.ask("start", log_start)
        files = {base: play.directory / f"{base:020}.txnindex" for base in play.ours.segments}
        for _ in range(200):
            start = play.random.randint(log_start, play.ours.end)
            end = play.random.randint(start, play.ours.end + 5)
            found: list[str] = []
            for base in play.ours.segments[bisect_right(play.ours.segments, start) - 1 :]:
                data = files[base].read_bytes() if files[base].exists() else b""
                entries, is_complete = _core.collect_aborted_transactions(data, log_start, end)
                found += [" ".join(map(str, [*entry][1:])) for entry in entries]
                if is_complete:
                    break
            assert kafka_log.ask("aborted", start, end) == f"[{', '.join(found)}]"
            total += len(found)
        kafka_log.ask("close")
    assert total > 1000


@pytest.mark.parametrize("group", range(4))
def test_a_log_and_its_producers(kafka_log: StateOracle, tmp_path: Path, group: int) -> None:
    """Verdicts, state, snapshots and transaction indexes over thousands of steps."""
    counts: dict[str, int] = {}
    for seed in range(group, SEEDS, 4):
        play = Play(kafka_log, tmp_path, seed)
        play.run()
        for verdict, count in play.counts.items():
            counts[verdict] = counts.get(verdict, 0) + count
    for verdict in ("append", "duplicate", "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH"):
        assert counts[verdict] > 20, counts
    assert counts["TRANSACTION_COORDINATOR_FENCED"] > 5, counts
    assert counts["INVALID_TXN_STATE"] > 5, counts


def test_the_consumers_filter(kafka_log: StateOracle, tmp_path: Path) -> None:
    """Fetches of a log with many transactions, and the records that a consumer delivers."""
    plays = (Play(kafka_log, tmp_path, seed) for seed in range(1000, 1008))
    assert sum(delivered_batches(kafka_log, play) for play in plays) > 300


def delivered_batches(kafka_log: StateOracle, play: Play) -> int:
    for _ in range(120):
        play.random.choice([play.data, play.end_transaction, play.end_transaction])()
    kafka_log.ask("hw", play.ours.end)
    delivered_in_all = 0
    for _ in range(40):
        start = one(play.random.choice(play.ours.log)).base_offset
        text, _, words = kafka_log.ask("read", start, play.random.choice([300, 2000, 1 << 20])).partition(";")
        pairs = [
            (int(one), int(other)) for one, other in (pair.split(":") for pair in words.split(",") if pair)
        ]
        play.random.shuffle(pairs)
        # A compacted log may lack batches, including the first of a transaction.
        fetched = [
            batch for batch in magicbyte.read_batches(bytes.fromhex(text)) if play.random.random() < 0.8
        ]
        records = b"".join(batch.to_bytes() for batch in fetched)
        if not records:
            continue
        theirs = kafka_log.ask("fetch", records.hex(), *([words] if words else []))
        delivered = list(read_committed(magicbyte.read_batches(records), pairs))
        assert theirs == str([record.offset for batch in delivered for record in batch])
        # A broker that returns all aborted transactions gives the same result.
        everything = [(entry[0], entry[1]) for entry in play.ours.aborted if entry[2] >= start]
        again = read_committed(magicbyte.read_batches(records), everything)
        assert [batch.position for batch in again] == [batch.position for batch in delivered]
        delivered_in_all += len(delivered)
    kafka_log.ask("close")
    return delivered_in_all


def test_leader_epochs(kafka_log: StateOracle, tmp_path: Path) -> None:
    random = Random(7)
    for round_ in range(40):
        kafka_log.ask("epochs", "new", tmp_path / f"checkpoint{round_}")
        ours = LeaderEpochs()
        offset = 0
        for _ in range(40):
            offset += random.randrange(30)
            epoch = random.randrange(20)
            match random.randrange(6):
                case 0 | 1 | 2:
                    at = max(0, offset - random.choice([0, 0, 25]))
                    theirs = kafka_log.ask("epochs", "assign", epoch, at)
                    ours.assign(epoch, at)
                case 3:
                    cut = random.randrange(-2, offset + 5)
                    theirs = kafka_log.ask("epochs", "start", cut // 4)
                    ours.truncate_from_start(cut // 4)
                case 4:
                    cut = random.randrange(-2, offset + 5)
                    theirs = kafka_log.ask("epochs", "end", cut)
                    ours.truncate_from_end(cut)
                case _:
                    epoch -= 2
                    answer = kafka_log.ask("epochs", "ask", epoch, offset + 10, offset // 2).split()
                    end = ours.end_offset_for_epoch(epoch, offset + 10)
                    around = (
                        ours.previous_epoch(epoch),
                        ours.next_epoch(epoch),
                        ours.epoch_for_offset(offset // 2),
                    )
                    assert answer[:2] == list(map(str, end or (-1, -1)))
                    assert answer[2:] == ["-" if one is None else str(one) for one in around]
                    continue
            assert theirs == str([f"{epoch} {at}" for epoch, at in ours.entries]).replace("'", "")


def history(random: Random, epochs: list[tuple[int, int]], end: int) -> tuple[list[tuple[int, int]], int]:
    """Adds a few leaders, each of which writes for a while."""
    epochs, epoch = list(epochs), epochs[-1][0] if epochs else 0
    for _ in range(random.randrange(5)):
        epoch += random.choice([1, 1, 2, 3])
        epochs.append((epoch, end))
        end += random.randrange(1, 30)
    return epochs, end


def test_where_replicas_diverge(kafka_log: StateOracle, tmp_path: Path) -> None:
    """A follower and a leader with random histories: ours truncates where Kafka's does."""
    random = Random(11)
    cuts: dict[str, int] = {}
    for _ in range(1500):
        common, end = history(random, [], random.randrange(10))
        replicas = [history(random, common, random.randint(max(0, end - 10), end)) for _ in range(2)]
        if random.random() < 0.2:
            # A replica of an older format, or without its oldest epochs.
            replicas[random.randrange(2)][0][: random.randrange(4)] = []
        words: list[object] = []
        caches = []
        for name, (entries, replica_end) in zip(("follower", "leader"), replicas, strict=True):
            cache = LeaderEpochs()
            for entry in entries:
                cache.assign(*entry)
            caches.append((cache, replica_end))
            lines = [f"{epoch} {offset}" for epoch, offset in cache.entries]
            (tmp_path / name).write_text("\n".join(["0", str(len(lines)), *lines, ""]))
            words += [tmp_path / name, replica_end]
        (follower, own_end), (leader, leader_end) = caches
        found = follower.truncation(own_end, leader, leader_end).offset
        theirs = kafka_log.ask("diverge", *words)
        if not follower.entries:
            # Without epochs the follower asks nothing, and its high watermark decides.
            theirs = "watermark"
        assert ("watermark" if found is None else str(found)) == theirs, replicas
        kind = theirs if found is None else "kept" if found == own_end else "cut"
        cuts[kind] = cuts.get(kind, 0) + 1
    assert min(cuts["watermark"], cuts["kept"], cuts["cut"]) > 50, cuts


def test_explain_agrees_with_kafkas_state(kafka_log: StateOracle, tmp_path: Path) -> None:
    """The producers at the end of the history are the broker's; its aborted transactions are the indexes' entries."""
    for seed in range(2000, 2006):
        play = Play(kafka_log, tmp_path, seed)
        for _ in range(150):
            play.random.choice([play.data, play.end_transaction, play.follow, play.roll])()
        (report,) = explain([str(play.directory)], LocalEngine(), ExplainOptions(now=play.now))
        known = {(one.producer_id, one.producer_epoch): one for one in play.ours.state.producers}
        explained = {
            (one["producer_id"], one["producer_epoch"]): one
            for one in report["producers"]
            if one["is_current"]
        }
        # A producer that occurs only in a control batch is in both.
        assert explained.keys() == known.keys()
        for key, producer in known.items():
            assert explained[key]["current_txn_first_offset"] == producer.current_txn_first_offset
            assert explained[key]["coordinator_epoch"] == producer.coordinator_epoch
            if producer.batches:
                assert explained[key]["last_sequence"] == producer.batches[-1].last_sequence
        aborted = [
            (one["producer_id"], one["first_offset"], one["marker_offset"], one["last_stable_offset"])
            for one in report["transactions"]
            if one["outcome"] == "aborted" and one["first_offset"] is not None
        ]
        assert sorted(aborted) == sorted(play.ours.aborted) == sorted(play.transaction_index())
        undecided = play.ours.state.first_undecided_offset
        assert report["last_stable_offset"] == (report["next_offset"] if undecided is None else undecided)
        assert sum(one["batches"] for one in report["producers"]) + sum(
            one["batches"] for one in report["controls"]
        ) == len(play.ours.log)
        kafka_log.ask("close")


def test_a_real_producer_is_explained(broker: Broker) -> None:
    """With real clients and a real broker, the history ends with what `describeProducers` returns."""
    broker.open({}, clean=True)
    topic = broker.topics[0]
    broker.transact(topic)
    known = broker.producers(topic)
    assert len(known) == 3
    (report,) = explain(
        [str(broker.logs / f"{topic}-0")], LocalEngine(), ExplainOptions(now=max(one[3] for one in known))
    )
    explained = [one for one in report["producers"] if one["is_current"]]
    assert sorted(known) == sorted(
        (
            one["producer_id"],
            one["producer_epoch"],
            one["last_sequence"],
            one["last_timestamp"],
            one["coordinator_epoch"],
            -1 if one["current_txn_first_offset"] is None else one["current_txn_first_offset"],
        )
        for one in explained
    )
    outcomes = [(one["outcome"], one["records"]) for one in report["transactions"]]
    assert sorted(outcomes) == [
        ("aborted", 6),
        ("aborted", 8),
        ("committed", 5),
        ("committed", 7),
        ("open", 7),
    ]
    assert report["last_stable_offset"] == max(one[5] for one in known)
    assert report["anomalies"] == []
    assert sum(one["records"] for one in report["producers"]) == 5 + 6 + 7 + 8 + 4 * 3 + 7
    committed = broker.read(topic, "read_committed")
    # read_committed ends at the open transaction, and leaves out the aborted one before it.
    assert len(committed) < 5 + 6 + 7 + 3 * 3
    broker.kill()


def test_hanging_transactions_match_kafkas_tool(broker: Broker, tmp_path: Path) -> None:
    """Open transactions without a coordinator, young and old, as `kafka-transactions.sh` finds them."""
    now = round(time.time() * 1000)
    minute = 60_000
    log, offset = b"", 0
    for producer, age in ((1, 40), (2, 5), (3, 30), (4, 16), (5, 0), (6, 25)):
        log += data(offset, producer, 2, 0, 2, now - age * minute, transactional=True)
        offset += 2
    # One transaction has a recent batch, one has ended.
    log += data(offset, 1, 2, 2, 1, now - minute, transactional=True)
    log += marker(offset + 1, 3, 2, 0, now, commit=False)
    directory = tmp_path / "hanging-0"
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(log)
    topic = broker.open({"hanging": directory}, clean=False)["hanging"]
    find = ["find-hanging", "--topic", topic, "--partition", "0"]
    tool = java("org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", broker.bootstrap, *find)
    lines = subprocess.run(tool, text=True, check=True, stdout=subprocess.PIPE).stdout.splitlines()
    # Topic, partition, producer id and epoch, coordinator epoch, first offset, timestamp and age.
    rows = [line.split() for line in lines if line.startswith(topic)]
    (report,) = explain([str(directory)], LocalEngine(), ExplainOptions(now=now))
    explained = [one for one in report["transactions"] if one["hanging"]]
    assert sorted((int(row[2]), int(row[3]), int(row[5])) for row in rows) == sorted(
        (one["producer_id"], one["producer_epoch"], one["first_offset"]) for one in explained
    )
    assert [one["producer_id"] for one in explained] == [4, 6]
    broker.kill()
