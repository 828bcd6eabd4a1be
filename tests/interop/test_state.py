"""Producer state, transactions, leader epochs and the consumer's filter against Kafka's own classes.

Sequences of appends, markers, rolls, truncations and restarts are made from fixed seeds. Each goes to a
`UnifiedLog` of Kafka 4.3 and to ours: verdicts, state, snapshots and transaction indexes are the same.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import magicbyte
import pytest
from kafka_broker import Broker
from magicbyte import RecordsBuilder, _core
from magicbyte.jobs.engines import LocalEngine
from magicbyte.jobs.explain import explain
from magicbyte.state import LeaderEpochs, ProducerState, VerificationGuard, read_committed
from state_oracle import Refused, StateOracle

pytestmark = pytest.mark.interop

HOUR = 3_600_000
EXPIRATION = 2 * HOUR
SEEDS = 16
STEPS = 250


@pytest.fixture(scope="module")
def kafka_log() -> Iterator[StateOracle]:
    process = StateOracle()
    yield process
    process.close()


def data(
    offset: int, producer: int, epoch: int, sequence: int, count: int, time: int, *, transactional: bool
) -> bytes:
    builder = RecordsBuilder(
        producer_id=producer, producer_epoch=epoch, base_sequence=sequence, is_transactional=transactional
    )
    for at in range(count):
        builder.append(offset + at, time, b"k", b"v")
    return builder.build()


def marker(offset: int, producer: int, epoch: int, coordinator: int, time: int, *, commit: bool) -> bytes:
    builder = RecordsBuilder(
        producer_id=producer, producer_epoch=epoch, is_transactional=True, is_control=True
    )
    builder.append(offset, time, struct.pack(">hh", 0, commit), struct.pack(">hi", 0, coordinator))
    return builder.build()


def one(batch: bytes) -> magicbyte.RecordBatch | magicbyte.LegacyBatch:
    (parsed,) = magicbyte.read_batches(batch)
    return parsed


def stamped(batch: bytes) -> bytes:
    """With the leader's epoch, which is 0 here."""
    return batch[:12] + bytes(4) + batch[16:]


def next_offset(batch: bytes) -> int:
    return one(batch).next_offset


class Ours:
    """A log as a list of batches, with our state beside it: what a broker does around the state."""

    def __init__(self) -> None:
        self.log: list[bytes] = []
        self.segments = [0]
        self.start = 0
        self.end = 0
        self.state = ProducerState(expiration_ms=EXPIRATION)
        self.aborted: list[tuple[int, int, int, int]] = []

    def take(self, batch: bytes) -> None:
        self.apply(one(batch))
        self.log.append(batch)
        self.end = self.state.end_offset

    def apply(self, batch: magicbyte.RecordBatch | magicbyte.LegacyBatch) -> None:
        ended = self.state.apply(batch)
        if ended and not ended.committed:
            entry = (ended.producer_id, ended.first_offset, ended.last_offset, ended.last_stable_offset)
            self.aborted.append(entry)
        self.state.end_offset = batch.next_offset

    def roll(self) -> None:
        self.segments.append(self.end)
        self.state.end_offset = self.end
        self.state.take_snapshot()

    def truncate(self, target: int, now: int) -> None:
        self.log = [batch for batch in self.log if one(batch).next_offset <= target]
        self.segments = [base for base in self.segments if base <= target]
        self.aborted = [entry for entry in self.aborted if entry[2] < target]
        self.end = target
        self.rebuild(now)

    def restart(self, now: int, snapshots: dict[int, bytes], *, clean: bool) -> None:
        self.state = ProducerState(snapshots, expiration_ms=EXPIRATION)
        self.state.remove_stray_snapshots(self.segments)
        self.rebuild(now, clean=clean)

    def recover(self, now: int, snapshots: dict[int, bytes]) -> None:
        """`LogLoader.recoverLog`: a state of its own for each segment, from the snapshots so far; indexes anew."""
        self.aborted = []
        for base, until in pairwise([*self.segments, self.end]):
            self.state = ProducerState(snapshots, expiration_ms=EXPIRATION)
            self.rebuild(now, end=base)
            for batch in map(one, self.log):
                if base <= batch.base_offset < until:
                    self.apply(batch)
            self.state.take_snapshot()
            snapshots = self.state.snapshots
        self.restart(now, snapshots, clean=False)

    def rebuild(self, now: int, *, clean: bool = False, end: int | None = None) -> None:
        """`UnifiedLog.rebuildProducerState`, up to an offset."""
        state = self.state
        end = self.end if end is None else end
        snapshot_at = {*self.segments[-2:], end}
        if clean and not state.snapshots:
            for offset in sorted(snapshot_at):
                state.end_offset = offset
                state.take_snapshot()
            return
        nothing = not state.producers and state.first_unstable_offset is None and state.end_offset >= end
        state.truncate_and_reload(self.start, end, now)
        if end > state.end_offset and not nothing:
            known = state.end_offset
            floor = max(base for base in self.segments if base <= known)
            for base in (base for base in self.segments if floor <= base < end):
                state.end_offset = start = max(base, state.end_offset)
                if base in snapshot_at:
                    state.take_snapshot()
                until = min((other for other in self.segments if other > base), default=end)
                until = min(until, end)
                # A fetch begins with the batch that holds its offset.
                batches = map(one, self.log)
                again = (b for b in batches if start < b.next_offset and b.base_offset < until)
                state.apply_together(again)
        state.end_offset = end
        state.take_snapshot()

    def described(self) -> str:
        """As StateOracle says it."""
        lines = sorted(
            " ".join(
                map(
                    str,
                    [
                        known.producer_id,
                        known.producer_epoch,
                        known.coordinator_epoch,
                        known.last_timestamp,
                        -1 if known.current_txn_first_offset is None else known.current_txn_first_offset,
                        *(f"[{' '.join(map(str, batch))}]" for batch in known.batches),
                    ],
                )
            )
            for known in self.state.producers
        )
        unstable, undecided = self.state.first_unstable_offset, self.state.first_undecided_offset
        head = (-1 if unstable is None else unstable, -1 if undecided is None else undecided)
        return f"{head[0]} {head[1]} {self.state.end_offset};" + ";".join(lines)


class Play:
    """One sequence of steps for both."""

    def __init__(self, kafka_log: StateOracle, directory: Path, seed: int) -> None:
        self.kafka = kafka_log
        self.directory = directory / f"t{seed}-0"
        self.random = Random(seed)
        self.verify = seed % 3 == 0
        self.ours = Ours()
        self.now = 1_700_000_000_000
        self.sent: list[tuple[int, int, int, int, bool]] = []
        self.guards: dict[int, VerificationGuard] = {}
        self.counts: dict[str, int] = {}
        # A broker's watermark stands where its log began until somebody moves it.
        self.kafka.ask("time", self.now)
        assert self.kafka.open(self.directory, EXPIRATION, clean=True, verify=self.verify) == 0

    def run(self) -> None:
        steps = {
            self.data: 60,
            self.resend: 12,
            self.end_transaction: 22,
            self.follow: 4,
            self.roll: 5,
            self.watermark: 6,
            self.wait: 4,
            self.truncate: 2,
            self.restart: 3,
        }
        for _ in range(STEPS):
            self.random.choices(list(steps), list(steps.values()))[0]()
            assert self.kafka.ask("state") == self.ours.described()
        self.kafka.ask("close")
        self.ours.state.take_snapshot()
        assert self.snapshots() == self.ours.state.snapshots

    def snapshots(self) -> dict[int, bytes]:
        files = self.directory.glob("*.snapshot")
        return {int(file.stem): file.read_bytes() for file in files}

    def transaction_index(self) -> list[tuple[int, int, int, int]]:
        files = sorted(self.directory.glob("*.txnindex"))
        entries = (entry for file in files for entry in _core.transaction_index(file.read_bytes()))
        return [entry[1:] for entry in entries]

    def _known(self, producer: int) -> tuple[int, int, int | None]:
        for known in self.ours.state.producers:
            if known.producer_id == producer:
                last = known.batches[-1].last_sequence if known.batches else -1
                return known.producer_epoch, last, known.current_txn_first_offset
        return -1, -1, None

    def data(self) -> None:
        random = self.random
        producer = random.randrange(6)
        epoch, last, _ = self._known(producer)
        epoch = max(0, epoch)
        sequence = (last + 1) % 2**31
        if random.random() < 0.12:
            epoch, sequence = epoch + 1, 0
        if random.random() < 0.05:
            epoch -= random.choice([1, 1, -1])
        if random.random() < 0.07:
            sequence = (sequence + random.choice([1, 2, 7, -1])) % 2**31
        if last < 0 and random.random() < 0.3:
            sequence = 2**31 - 1 - random.randrange(6)
        transactional = producer >= 3 if random.random() < 0.95 else producer < 3
        origin = "CLIENT" if random.random() < 0.9 else "COORDINATOR"
        self.send(producer, max(0, epoch), sequence, random.randint(1, 4), transactional, origin)

    def resend(self) -> None:
        """One of the last batches again: the sixth-old is no duplicate any more."""
        if self.sent:
            self.send(*self.random.choice(self.sent[-12:]), "CLIENT")

    def send(
        self, producer: int, epoch: int, sequence: int, count: int, transactional: bool, origin: str
    ) -> None:
        time = self.now - self.random.randrange(1000)
        guard, word = None, "-"
        if self.verify:
            if transactional and self.random.random() < 0.85:
                self.start_verification(producer, sequence, epoch)
            guard = self.guards.get(producer, VerificationGuard())
            word = str(producer) if producer in self.guards else "-"
        stored = data(self.ours.end, producer, epoch, sequence, count, time, transactional=transactional)
        if self.append(stored, origin, 0, guard, word) == "append":
            self.sent.append((producer, epoch, sequence, count, transactional))

    def start_verification(self, producer: int, sequence: int, epoch: int) -> None:
        bump = self.random.random() < 0.5
        try:
            self.kafka.ask("verify", producer, sequence, epoch, "bump" if bump else "-")
        except Refused as refused:
            with pytest.raises(ValueError, match=refused.args[0]):
                self.ours.state.start_verification(
                    producer, sequence, epoch, supports_epoch_bump=bump, now=self.now
                )
            return
        self.guards[producer] = self.ours.state.start_verification(
            producer, sequence, epoch, supports_epoch_bump=bump, now=self.now
        )

    def append(
        self,
        stored: bytes,
        origin: str,
        transaction_version: int,
        guard: VerificationGuard | None,
        word: str,
    ) -> str:
        """To a leader: it gives the offsets, so it gets the batch with offset 0."""
        check = self.ours.state.check(
            one(stored), origin=origin.lower(), transaction_version=transaction_version, guard=guard
        )
        sent = bytes(8) + stored[8:]
        try:
            theirs = self.kafka.ask("append", origin, transaction_version, word, sent.hex())
        except Refused as refused:
            theirs = refused.args[0]
        if check.verdict == "append":
            parsed = one(stored)
            self.ours.take(stamped(stored))
            assert theirs == f"append {parsed.base_offset} {parsed.last_offset}", check
        elif check.duplicate_of is not None:
            before = check.duplicate_of
            expected = f"duplicate {before.first_offset} {before.last_offset} {before.timestamp}"
            assert theirs == expected
        else:
            assert theirs == check.verdict, check
        self.counts[check.verdict] = self.counts.get(check.verdict, 0) + 1
        return check.verdict

    def end_transaction(self) -> None:
        random = self.random
        producer = random.randrange(3, 6) if random.random() < 0.9 else random.randrange(7)
        epoch, _, _ = self._known(producer)
        version = random.choice([0, 2])
        epoch = max(0, epoch + random.choices([0, 1, -1], [5, 5, 1])[0])
        coordinator = random.choices([5, 6, 4], [6, 2, 1])[0]
        commit = random.random() < 0.5
        stored = marker(self.ours.end, producer, epoch, coordinator, self.now, commit=commit)
        if self.append(stored, "COORDINATOR", version, None, "-") == "append" and random.random() < 0.2:
            # Its answer was lost: the coordinator sends it once more.
            again = marker(self.ours.end, producer, epoch, coordinator, self.now, commit=commit)
            self.append(again, "COORDINATOR", version, None, "-")

    def follow(self) -> None:
        """From another replica, epochs that go back and sequences out of order among them."""
        random = self.random
        producer = random.randrange(6)
        epoch, _, _ = self._known(producer)
        stored = data(
            self.ours.end,
            producer,
            max(0, epoch + random.choice([0, 0, 1, -1])),
            random.randrange(100),
            random.randint(1, 3),
            self.now,
            transactional=random.random() < 0.5,
        )
        stored = stamped(stored)
        check = self.ours.state.check(one(stored), origin="replication")
        if check.verdict == "append":
            self.kafka.ask("follow", stored.hex())
            self.ours.take(stored)
        else:
            with pytest.raises(Refused, match=check.verdict):
                self.kafka.ask("follow", stored.hex())

    def roll(self) -> None:
        if self.ours.end > self.ours.segments[-1]:
            assert self.kafka.ask("roll") == str(self.ours.end)
            self.ours.roll()
            assert self.snapshots() == self.ours.state.snapshots

    def watermark(self) -> None:
        offset = self.random.choice([self.ours.end, self.random.randint(0, self.ours.end)])
        self.kafka.ask("hw", offset)
        self.ours.state.set_high_watermark(offset)

    def wait(self) -> None:
        self.now += self.random.choice([1000, HOUR, HOUR, EXPIRATION])
        self.kafka.ask("time", self.now)
        self.kafka.ask("expire")
        self.ours.state.remove_expired_producers(self.now)

    def truncate(self) -> None:
        ends = [end for end in map(next_offset, self.ours.log[-20:]) if end >= self.ours.start]
        target = self.random.choice(ends) if ends else 0
        if target < self.ours.end:
            self.kafka.ask("truncate", target)
            self.ours.truncate(target, self.now)
            self.sent.clear()
            assert self.snapshots() == self.ours.state.snapshots
            # Kafka moves the watermark down to the new end.
            self.kafka.ask("hw", target)
            self.ours.state.set_high_watermark(target)

    def restart(self) -> None:
        """A clean stop; then the newest snapshots may be gone, cut, or from beyond the log."""
        if self.ours.end == self.ours.segments[-1]:
            # Kafka makes no index for an empty segment, misses it, and recovers the log.
            return
        self.kafka.ask("close")
        self.ours.state.take_snapshot()
        assert self.snapshots() == self.ours.state.snapshots
        assert self.transaction_index() == self.ours.aborted
        files = sorted(self.directory.glob("*.snapshot"))
        damage = self.random.choice(["none", "gone", "cut", "flipped", "newer"])
        for file in files[-self.random.randint(1, 2) :]:
            content = bytearray(file.read_bytes())
            if damage == "gone":
                file.unlink()
            elif damage == "cut":
                file.write_bytes(content[:-3])
            elif damage == "flipped":
                content[self.random.randrange(len(content))] ^= 0x40
                file.write_bytes(content)
            elif damage == "newer":
                (file.parent / f"{self.ours.end + 7:020}.snapshot").write_bytes(content)
        found = self.snapshots()
        end = self.kafka.open(self.directory, EXPIRATION, clean=True, verify=self.verify)
        assert end == self.ours.end
        self.ours.restart(self.now, found, clean=True)
        self.guards.clear()
        self.sent.clear()
        assert self.snapshots() == self.ours.state.snapshots


class Crashes(Play):
    """Deletions at the start, and crashes in which snapshots are lost or left behind."""

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
        """As DeleteRecords: the log begins later, in the midst of a transaction perhaps."""
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
        # The start is in a checkpoint of the broker's, which is none of the log's.
        self.ours.start = 0
        self.ours.recover(self.now, found)
        self.guards.clear()
        self.sent.clear()
        assert self.snapshots() == self.ours.state.snapshots, damage
        assert self.transaction_index() == self.ours.aborted
        self.counts[damage] = self.counts.get(damage, 0) + 1


@pytest.mark.parametrize("group", range(2))
def test_deletions_and_crashes(kafka_log: StateOracle, tmp_path: Path, group: int) -> None:
    """State, snapshots and transaction indexes behind `maybeIncrementLogStartOffset` and `recoverLog`."""
    counts: dict[str, int] = {}
    for seed in range(3000 + group, 3012, 2):
        play = Crashes(kafka_log, tmp_path, seed)
        play.run()
        for name, count in play.counts.items():
            counts[name] = counts.get(name, 0) + count
    for name in ("deleted", "none", "gone", "all gone", "older", "newer", "cut"):
        assert counts[name] > 1, counts


def test_aborted_transactions_of_a_fetch(kafka_log: StateOracle, tmp_path: Path) -> None:
    """Over the indexes of all segments from the first offset's on, as `UnifiedLog.collectAbortedTransactions`.

    It leaves out only transactions that end before the log begins.
    """
    told = 0
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
                found += [" ".join(map(str, entry[1:])) for entry in entries]
                if is_complete:
                    break
            assert kafka_log.ask("aborted", start, end) == f"[{', '.join(found)}]"
            told += len(found)
        kafka_log.ask("close")
    assert told > 1000


@pytest.mark.parametrize("group", range(4))
def test_a_log_and_its_producers(kafka_log: StateOracle, tmp_path: Path, group: int) -> None:
    """Verdict, state, snapshots and transaction indexes over thousands of steps."""
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
    """What a log of many transactions tells a fetch, and what a consumer makes of it."""
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
        # A compacted log may lack batches, the first of a transaction too.
        fetched = [
            batch for batch in magicbyte.read_batches(bytes.fromhex(text)) if play.random.random() < 0.8
        ]
        records = b"".join(batch.to_bytes() for batch in fetched)
        if not records:
            continue
        theirs = kafka_log.ask("fetch", records.hex(), *([words] if words else []))
        delivered = list(read_committed(magicbyte.read_batches(records), pairs))
        assert theirs == str([record.offset for batch in delivered for record in batch])
        # A broker that tells of all aborted transactions tells the same.
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
    """Some more leaders behind these; each writes a while."""
    epochs, epoch = list(epochs), epochs[-1][0] if epochs else 0
    for _ in range(random.randrange(5)):
        epoch += random.choice([1, 1, 2, 3])
        epochs.append((epoch, end))
        end += random.randrange(1, 30)
    return epochs, end


def test_where_copies_part(kafka_log: StateOracle, tmp_path: Path) -> None:
    """A follower and a leader with random histories: the follower cuts where Kafka's does."""
    random = Random(11)
    cuts: dict[str, int] = {}
    for _ in range(1500):
        common, end = history(random, [], random.randrange(10))
        copies = [history(random, common, random.randint(max(0, end - 10), end)) for _ in range(2)]
        if random.random() < 0.2:
            # Of an older format, or its oldest epochs are gone.
            copies[random.randrange(2)][0][: random.randrange(4)] = []
        words: list[object] = []
        caches = []
        for name, (entries, copy_end) in zip(("follower", "leader"), copies, strict=True):
            cache = LeaderEpochs()
            for entry in entries:
                cache.assign(*entry)
            caches.append((cache, copy_end))
            lines = [f"{epoch} {offset}" for epoch, offset in cache.entries]
            (tmp_path / name).write_text("\n".join(["0", str(len(lines)), *lines, ""]))
            words += [tmp_path / name, copy_end]
        (follower, own_end), (leader, leader_end) = caches
        found = follower.truncation(own_end, leader, leader_end).offset
        theirs = kafka_log.ask("diverge", *words)
        if not follower.entries:
            # It asks nothing: its watermark decides.
            theirs = "watermark"
        assert ("watermark" if found is None else str(found)) == theirs, copies
        kind = theirs if found is None else "kept" if found == own_end else "cut"
        cuts[kind] = cuts.get(kind, 0) + 1
    assert min(cuts["watermark"], cuts["kept"], cuts["cut"]) > 50, cuts


def test_a_log_is_explained_as_kafka_knows_it(kafka_log: StateOracle, tmp_path: Path) -> None:
    """The end of the story is the broker's state; its aborted transactions are the indexes' entries."""
    for seed in range(2000, 2006):
        play = Play(kafka_log, tmp_path, seed)
        for _ in range(150):
            play.random.choice([play.data, play.end_transaction, play.follow, play.roll])()
        (story,) = explain([str(play.directory)], LocalEngine(), now=play.now)
        known = {(one.producer_id, one.producer_epoch): one for one in play.ours.state.producers}
        told = {
            (one["producer_id"], one["producer_epoch"]): one
            for one in story["producers"]
            if one["is_current"]
        }
        # Control batches that name a producer for the first time are known and told too.
        assert told.keys() == known.keys()
        for key, producer in known.items():
            assert told[key]["current_txn_first_offset"] == producer.current_txn_first_offset
            assert told[key]["coordinator_epoch"] == producer.coordinator_epoch
            if producer.batches:
                assert told[key]["last_sequence"] == producer.batches[-1].last_sequence
        aborted = [
            (one["producer_id"], one["first_offset"], one["marker_offset"], one["last_stable_offset"])
            for one in story["transactions"]
            if one["outcome"] == "aborted" and one["first_offset"] is not None
        ]
        assert sorted(aborted) == sorted(play.ours.aborted) == sorted(play.transaction_index())
        undecided = play.ours.state.first_undecided_offset
        assert story["last_stable_offset"] == (story["next_offset"] if undecided is None else undecided)
        assert sum(one["batches"] for one in story["producers"]) + sum(
            one["batches"] for one in story["controls"]
        ) == len(play.ours.log)
        kafka_log.ask("close")


def test_a_real_producer_is_explained(broker: Broker) -> None:
    """Real clients and a real broker: the story's end is what `describeProducers` says."""
    broker.open({}, clean=True)
    topic = broker.topics[0]
    broker.transact(topic)
    known = broker.producers(topic)
    assert len(known) == 3
    (story,) = explain([str(broker.logs / f"{topic}-0")], LocalEngine(), now=max(one[3] for one in known))
    told = [one for one in story["producers"] if one["is_current"]]
    assert sorted(known) == sorted(
        (
            one["producer_id"],
            one["producer_epoch"],
            one["last_sequence"],
            one["last_timestamp"],
            one["coordinator_epoch"],
            -1 if one["current_txn_first_offset"] is None else one["current_txn_first_offset"],
        )
        for one in told
    )
    outcomes = [(one["outcome"], one["records"]) for one in story["transactions"]]
    assert sorted(outcomes) == [
        ("aborted", 6),
        ("aborted", 8),
        ("committed", 5),
        ("committed", 7),
        ("open", 7),
    ]
    assert story["last_stable_offset"] == max(one[5] for one in known)
    assert story["anomalies"] == []
    assert sum(one["records"] for one in story["producers"]) == 5 + 6 + 7 + 8 + 4 * 3 + 7
    committed = broker.read(topic, "read_committed")
    # No more than up to the open transaction, and nothing of the aborted one before it.
    assert len(committed) < 5 + 6 + 7 + 3 * 3
    broker.kill()
