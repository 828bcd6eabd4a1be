"""A producer: batches by size and time, several under way, each once and in order, and transactions."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Any, NamedTuple, Self

import magicbyte
from magicbyte.conversion import set_producer_state
from magicbyte.message import error_name

from .cluster import Backoff, Client
from .connection import Connection
from .errors import Body, KafkaError, check, is_retriable, only_partition

Headers = Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]]

# The newest versions in a cluster whose feature `transaction.version` is below 2 (KIP-890).
BEFORE_TRANSACTION_VERSION_2 = {"Produce": 11, "EndTxn": 4}
# The leader expects another sequence number than the producer's next one.
LOST_TRACK = "OUT_OF_ORDER_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID"
MAX_EPOCH = 32767
# Batches of a partition under way at once: a leader recognises the last five if they are sent again.
IN_FLIGHT = 5
# Batches of a partition that wait or are under way, before `send` waits.
QUEUED = 16


class Identity(NamedTuple):
    """Names a producer to the brokers. A higher epoch fences lower ones."""

    producer_id: int
    epoch: int


class Stage(Enum):
    """The stage of a producer's transaction. Without transactions it is always OPEN."""

    NONE = auto()
    OPEN = auto()
    ENDING = auto()


@dataclass(eq=False)
class Queue:
    """The records of one partition: an open batch, and sealed batches with their record counts."""

    topic: str
    partition: int
    identity: Identity
    builder: magicbyte.RecordsBuilder
    is_transactional: bool
    batches: deque[tuple[bytes, int]] = field(default_factory=deque)
    has_room: asyncio.Event = field(default_factory=asyncio.Event)
    is_due: asyncio.Event = field(default_factory=asyncio.Event)
    delivery: asyncio.Task[None] | None = None
    # The batches at the front that an earlier attempt may have written.
    unsure: int = 0
    # A batch was given up, so the leader refuses the sequences behind it.
    has_gap: bool = False

    @property
    def has_records(self) -> bool:
        """True unless all records are confirmed or given up."""
        return bool(self.batches or self.builder.record_count)

    def seal(self) -> None:
        """Ends the open batch."""
        if count := self.builder.record_count:
            self.batches.append((self.builder.build(), count))
            self.is_due.set()
            if len(self.batches) >= QUEUED:
                self.has_room.clear()

    def remove_first(self) -> None:
        """Removes the first batch, which is confirmed or given up."""
        self.batches.popleft()
        self.unsure = max(0, self.unsure - 1)
        self.has_room.set()

    def give_up(self, *, all_batches: bool) -> None:
        """Drops the first batch and those that may be written already, or all batches."""
        self.seal()
        count = len(self.batches) if all_batches else max(1, self.unsure)
        for _ in range(min(count, len(self.batches))):
            self.remove_first()

    def restart(self, identity: Identity) -> None:
        """Counts sequences from 0 with another identity, also in the batches that wait."""
        self.seal()
        self.identity, self.unsure, self.has_gap, sequence = identity, 0, False, 0
        for index, (batch, count) in enumerate(self.batches):
            batch = set_producer_state(batch, *identity, sequence, is_transactional=self.is_transactional)
            self.batches[index] = batch, count
            sequence += count
        self.builder.set_producer_state(*identity, sequence, is_transactional=self.is_transactional)


class Producer:
    """An idempotent producer: records of a partition arrive once and in order. It is used with `async with`.

    A batch that fails is dropped, and the next `send` or `flush` raises its error. Such a `send` takes no
    record. Without transactions, the batches after it are sent nevertheless, unless it failed because
    attempts took too long: then nobody knows whether brokers have written them, and all of its partition's
    batches are dropped.

    Whoever waits for a producer may be cancelled. A cancelled `send` takes no record, and what `flush` waited
    for is sent nevertheless. An exception that leaves the `async with` drops what is not confirmed.

    Args:
        client: the cluster.
        transactional_id: the name of a transactional producer, which fences older producers of the name.
        compression: "none", "gzip", "snappy", "lz4" or "zstd".
        batch_size: the estimated size (bytes) up to which batches grow.
        linger: seconds that the first record waits for others; later ones wait while batches are under way.

    """

    def __init__(
        self,
        client: Client,
        *,
        transactional_id: str | None = None,
        compression: str = "none",
        batch_size: int = 16384,
        linger: float = 0.005,
    ) -> None:
        self._client, self._transactional_id, self._linger = client, transactional_id, linger
        self._new_builder = partial(
            magicbyte.RecordsBuilder, compression=compression, max_size_in_bytes=batch_size
        )
        self._queues: dict[tuple[str, int], Queue] = {}
        self._failure: Exception | None = None
        self._newest: dict[str, int] = {}
        self._stage = Stage.OPEN if transactional_id is None else Stage.NONE
        self._joined: set[Queue] = set()

    async def __aenter__(self) -> Self:
        self._identity = await self._client.retry(partial(self._identify, Identity(-1, -1)))
        return self

    async def __aexit__(self, error: type[BaseException] | None, *_: object) -> None:
        try:
            if error is None:
                await self.flush()
        finally:
            deliveries = self._deliveries()
            for delivery in deliveries:
                delivery.cancel()
            await asyncio.gather(*deliveries, return_exceptions=True)

    async def send(
        self,
        topic: str,
        partition: int,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Adds a record to its partition's open batch; waits while many batches are under way."""
        queue = self._queue(topic, partition)
        now = time.time_ns() // 1_000_000 if timestamp is None else timestamp
        while not queue.builder.try_append(None, now, key, value, headers):
            queue.seal()
            await queue.has_room.wait()
            self._check_stage()
        self._start_delivery(queue)

    async def send_batch(
        self, topic: str, partition: int, records: Iterable[tuple[None, int, bytes | None, bytes | None]]
    ) -> None:
        """Sends one batch of tuples (None, timestamp, key, value), which costs less than `send`.

        If a record is refused, none of them is taken.
        """
        queue = self._queue(topic, partition)
        queue.seal()
        while not queue.has_room.is_set():
            await queue.has_room.wait()
            self._check_stage()
            queue.seal()
        sequence = queue.builder.base_sequence
        try:
            queue.builder.append_many(records)
        except BaseException:
            # The builder keeps the records before the refused one.
            queue.builder = self._new_builder()
            queue.builder.set_producer_state(
                *queue.identity, sequence, is_transactional=queue.is_transactional
            )
            raise
        queue.seal()
        self._start_delivery(queue)

    async def flush(self) -> None:
        """Waits until all records are confirmed."""
        await self._delivered()
        self._raise_failure()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """A transaction, committed at the end of the block, or aborted if the block or a batch fails.

        A block that is cancelled is aborted too; its end, once begun, is not interrupted. An error of the end
        itself leaves open how it ended: another producer of the same `transactional_id` settles that.
        """
        if self._stage is not Stage.NONE:
            raise RuntimeError("a transaction needs a transactional_id, and the end of the one before")
        self._stage, committed = Stage.OPEN, False
        try:
            yield
            # What other tasks sent from now on could miss the transaction's end.
            self._stage = Stage.ENDING
            await self.flush()
            committed = True
        finally:
            self._stage = Stage.ENDING
            await _uninterrupted(self._end_transaction(committed))

    def _queue(self, topic: str, partition: int) -> Queue:
        self._check_stage()
        queue = self._queues.get((topic, partition))
        if queue is None:
            transactional = self._transactional_id is not None
            queue = Queue(topic, partition, self._identity, self._new_builder(), transactional)
            queue.restart(self._identity)
            queue.has_room.set()
            self._queues[topic, partition] = queue
        return queue

    def _check_stage(self) -> None:
        self._raise_failure()
        if self._stage is not Stage.OPEN:
            raise RuntimeError("this producer sends within transaction()")

    def _raise_failure(self) -> None:
        if failure := self._failure:
            if self._transactional_id is None:  # otherwise it lasts until the transaction ends
                self._failure = None
            raise failure

    def _start_delivery(self, queue: Queue) -> None:
        if queue.delivery is None:
            queue.delivery = asyncio.create_task(self._deliver(queue))

    def _deliveries(self) -> list[asyncio.Task[None]]:
        return [queue.delivery for queue in self._queues.values() if queue.delivery]

    async def _delivered(self) -> None:
        """Waits until all records are confirmed or given up."""
        for queue in self._queues.values():
            if queue.has_records:
                self._start_delivery(queue)
                queue.is_due.set()
        if deliveries := self._deliveries():
            # Unlike `gather`, this does not cancel the deliveries together with their caller.
            await asyncio.wait(deliveries)

    async def _deliver(self, queue: Queue) -> None:
        """Sends a partition's records until all of them are confirmed or given up."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._linger):
                    await queue.is_due.wait()
            backoff = self._client.backoff()
            while queue.has_records:
                try:
                    await self._send_window(queue, backoff)
                except Exception as error:
                    # Also a topic that cannot be encoded: no record may get lost without an error.
                    await self._recover(queue, error, backoff)
        finally:
            queue.is_due.clear()
            queue.delivery = None

    async def _send_window(self, queue: Queue, backoff: Backoff) -> None:
        """Keeps several batches under way, in order; raises the error of the first that is not confirmed."""
        leader = await self._client.leader(queue.topic, queue.partition)
        if queue.has_gap:
            await self._close_gap(queue)
        await self._join_transaction(queue)
        in_flight: deque[asyncio.Future[Body]] = deque()
        # A leader takes any sequence from a producer that it does not know, so the first goes alone.
        window = 1
        try:
            while True:
                if not queue.batches:
                    queue.seal()
                for batch, _ in itertools.islice(queue.batches, len(in_flight), window):
                    in_flight.append(self._produce(leader, queue, batch))
                if not in_flight:
                    return
                self._check_produced(queue, await in_flight[0])
                in_flight.popleft()
                queue.remove_first()
                window = IN_FLIGHT
                backoff.succeeded()
        except Exception as error:
            # What is sent again must not overtake what is still under way.
            await asyncio.gather(*in_flight, return_exceptions=True)
            if is_retriable(error):
                queue.unsure = max(queue.unsure, len(in_flight))
            raise

    def _produce(self, leader: Connection, queue: Queue, batch: bytes) -> asyncio.Future[Body]:
        partitions = [{"index": queue.partition, "records": batch}]
        body = {
            "transactionalId": self._transactional_id,
            "acks": -1,
            "timeoutMs": 30_000,
            "topicData": [{"name": queue.topic, "partitionData": partitions}],
        }
        return leader.send("Produce", body, self._newest.get("Produce"))

    def _check_produced(self, queue: Queue, response: Body) -> None:
        name = f"{queue.topic}-{queue.partition}"
        produced = only_partition(response["responses"], "partitionResponses", name)
        if error_name(produced["errorCode"]) != "DUPLICATE_SEQUENCE_NUMBER":
            check(produced["errorCode"], name, produced.get("errorMessage"))

    async def _recover(self, queue: Queue, error: Exception, backoff: Backoff) -> None:
        """Prepares that the first batch of a partition is sent again, or gives it up."""
        lost_track = isinstance(error, KafkaError) and error.name in LOST_TRACK and not queue.is_transactional
        again = (lost_track or is_retriable(error)) and await backoff.pause()
        self._client.forget()
        if not again:
            self._failure = self._failure or error
            # Of a batch that the leader refused, those behind it are not written.
            refused = isinstance(error, KafkaError) and not is_retriable(error)
            queue.give_up(all_batches=queue.is_transactional or not refused)
        if lost_track or not again:
            queue.has_gap = not queue.is_transactional

    async def _close_gap(self, queue: Queue) -> None:
        """Begins an epoch for a partition: a leader takes a gap in the sequence only there (KIP-360)."""
        identity = Identity(queue.identity.producer_id, queue.identity.epoch + 1)
        if identity.epoch > MAX_EPOCH:
            identity = await self._identify(Identity(-1, -1))
        queue.restart(identity)

    async def _identify(self, before: Identity) -> Identity:
        """Asks for an identity; for a transactional producer, the next epoch of the one before."""
        broker = await self._client.coordinator(self._transactional_id)
        if self._transactional_id and broker.features.get("transaction.version", 0) < 2:
            self._newest = BEFORE_TRANSACTION_VERSION_2
        body = {"transactionalId": self._transactional_id, "transactionTimeoutMs": 60_000}
        body |= {"producerId": before.producer_id, "producerEpoch": before.epoch}
        response = await broker.send("InitProducerId", body)
        check(response["errorCode"], f"InitProducerId of {self._transactional_id}")
        return Identity(response["producerId"], response["producerEpoch"])

    async def _join_transaction(self, queue: Queue) -> None:
        """Adds a partition to the transaction; with transaction version 2, its leader does so."""
        if not queue.is_transactional or queue in self._joined:
            return
        if self._newest:
            body = {
                "v3AndBelowTransactionalId": self._transactional_id,
                "v3AndBelowProducerId": self._identity.producer_id,
                "v3AndBelowProducerEpoch": self._identity.epoch,
                "v3AndBelowTopics": [{"name": queue.topic, "partitions": [queue.partition]}],
            }
            coordinator = await self._client.coordinator(self._transactional_id)
            response = await coordinator.send("AddPartitionsToTxn", body)
            context = f"AddPartitionsToTxn of {self._transactional_id}"
            added = only_partition(response["resultsByTopicV3AndBelow"], "resultsByPartition", context)
            check(added["partitionErrorCode"], context)
        self._joined.add(queue)

    async def _end_transaction(self, committed: bool) -> None:
        await self._delivered()
        before, failure = self._identity, self._failure
        if self._joined:
            self._identity = await self._client.retry(partial(self._send_end, committed))
        if failure and self._identity == before:
            self._identity = await self._client.retry(partial(self._identify, before))
        if self._identity != before:
            for queue in self._queues.values():
                queue.restart(self._identity)
        self._joined.clear()
        self._failure, self._stage = None, Stage.NONE

    async def _send_end(self, committed: bool) -> Identity:
        """Ends the transaction. In transaction version 2, the next one has another epoch."""
        body: Body = {"transactionalId": self._transactional_id, "committed": committed}
        body |= {"producerId": self._identity.producer_id, "producerEpoch": self._identity.epoch}
        coordinator = await self._client.coordinator(self._transactional_id)
        response = await coordinator.send("EndTxn", body, self._newest.get("EndTxn"))
        check(response["errorCode"], f"EndTxn of {self._transactional_id}")
        return self._identity if self._newest else Identity(response["producerId"], response["producerEpoch"])


async def _uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Does work to its end, however often its caller is cancelled meanwhile."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
