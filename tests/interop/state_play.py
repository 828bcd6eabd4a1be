"""A log and its producers, step by step: Kafka's `UnifiedLog` and our `ProducerStateManager` in parallel."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path
from random import Random

import magicbyte
import pytest
from magicbyte import RecordsBuilder, _core
from magicbyte.state import ProducerStateManager, VerificationGuard
from state_oracle import Refused, StateOracle

HOUR = 3_600_000
EXPIRATION = 2 * HOUR
STEPS = 250


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
    """The batch with the leader's epoch, which is 0 here."""
    return batch[:12] + bytes(4) + batch[16:]


def next_offset(batch: bytes) -> int:
    return one(batch).next_offset


class Ours:
    """A log as a list of batches with our state, and what a broker does around the state."""

    def __init__(self) -> None:
        self.log: list[bytes] = []
        self.segments = [0]
        self.start = 0
        self.end = 0
        self.state = ProducerStateManager(expiration_ms=EXPIRATION)
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
        self.state = ProducerStateManager(snapshots, expiration_ms=EXPIRATION)
        self.state.remove_stray_snapshots(self.segments)
        self.rebuild(now, clean=clean)

    def recover(self, now: int, snapshots: dict[int, bytes]) -> None:
        """`LogLoader.recoverLog`: a new state for each segment, from the snapshots so far; indexes are rebuilt."""
        self.aborted = []
        for base, until in pairwise([*self.segments, self.end]):
            self.state = ProducerStateManager(snapshots, expiration_ms=EXPIRATION)
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
                # A fetch begins with the batch that contains its offset.
                batches = map(one, self.log)
                again = (b for b in batches if start < b.next_offset and b.base_offset < until)
                state.apply_together(again)
        state.end_offset = end
        state.take_snapshot()

    def described(self) -> str:
        """The state in the form of StateOracle."""
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
    """One sequence of steps for both sides."""

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
        # A broker's high watermark stays where its log began until it is moved.
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
        return [
            (entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset)
            for entry in entries
        ]

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
        """Sends one of the last batches again: only the last five of a producer are recognized as duplicates."""
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
        """Appends to a leader, which assigns the offsets, so the batch is sent with offset 0."""
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
            # The answer was lost, so the coordinator sends the marker again.
            again = marker(self.ours.end, producer, epoch, coordinator, self.now, commit=commit)
            self.append(again, "COORDINATOR", version, None, "-")

    def follow(self) -> None:
        """Replicates a batch, possibly with a lower epoch or a sequence out of order."""
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
            # Truncation moves Kafka's high watermark down to the new end.
            self.kafka.ask("hw", target)
            self.ours.state.set_high_watermark(target)

    def restart(self) -> None:
        """Restarts after a clean shutdown; the newest snapshots may be gone, cut, flipped or beyond the log."""
        if self.ours.end == self.ours.segments[-1]:
            # Kafka writes no index for an empty segment, and so recovers the log when it does not find one.
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
