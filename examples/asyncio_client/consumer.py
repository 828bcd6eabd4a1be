"""A consumer of given partitions, also of committed records only."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Literal, NamedTuple

import magicbyte
from magicbyte.message import error_name
from magicbyte.state import read_committed

from .cluster import Client
from .connection import Connection
from .errors import Body, ProtocolError, check, only_partition

Reset = Literal["earliest", "latest"]


class Fetched(NamedTuple):
    """Records of one partition: a batch, or the rest of one."""

    topic: str
    partition: int
    records: Iterable[magicbyte.Record]


class Consumer:
    """A consumer of given partitions.

    Args:
        client: the cluster.
        positions: for each partition the next offset, or "earliest" or "latest".
        isolation_level: "read_committed" leaves out aborted records, and ends where a transaction is open.
        auto_offset_reset: where to continue if a position is out of range; None raises OFFSET_OUT_OF_RANGE.
        max_wait: seconds that a broker may wait for records.
        max_partition_bytes: the limit for each partition in a response, which a single batch may exceed.

    """

    def __init__(
        self,
        client: Client,
        positions: Mapping[tuple[str, int], int | Reset],
        *,
        isolation_level: magicbyte.IsolationLevel = "read_uncommitted",
        auto_offset_reset: Reset | None = None,
        max_wait: float = 0.5,
        max_partition_bytes: int = 1 << 20,
    ) -> None:
        self.positions = dict(positions)
        self._client, self._auto_offset_reset = client, auto_offset_reset
        self._read_committed = isolation_level == "read_committed"
        self._max_wait_ms, self._max_partition_bytes = int(1000 * max_wait), max_partition_bytes

    async def poll(self) -> list[Fetched]:
        """Fetches once from each leader, and moves the positions; empty if there is nothing new.

        Damage raises `magicbyte.Error` when the records of its batch are read.
        """
        return await self._client.retry(self._poll)

    async def position(self, topic: str, partition: int) -> int:
        """The next offset of a partition."""
        return await self._client.retry(partial(self._position, topic, partition))

    async def offset_at(self, topic: str, partition: int, time: int | Reset) -> int:
        """The first offset with this timestamp (ms) or a later one, or -1; or the start or end of the log."""
        return await self._client.retry(partial(self._offset_at, topic, partition, time))

    async def _offset_at(self, topic: str, partition: int, time: int | Reset) -> int:
        timestamp = {"earliest": -2, "latest": -1}[time] if isinstance(time, str) else time
        partitions = [{"partitionIndex": partition, "timestamp": timestamp}]
        body: Body = {"replicaId": -1, "topics": [{"name": topic, "partitions": partitions}]}
        body["isolationLevel"] = int(self._read_committed)
        leader = await self._client.leader(topic, partition)
        response = await leader.send("ListOffsets", body)
        listed = only_partition(response["topics"], "partitions", f"{topic}-{partition}")
        check(listed["errorCode"], f"ListOffsets of {topic}-{partition}")
        return int(listed["offset"])

    async def _position(self, topic: str, partition: int) -> int:
        position = self.positions[topic, partition]
        if isinstance(position, str):
            position = self.positions[topic, partition] = await self._offset_at(topic, partition, position)
        return position

    async def _poll(self) -> list[Fetched]:
        by_leader: defaultdict[Connection, list[Body]] = defaultdict(list)
        for topic, partition in list(self.positions):
            position = await self._position(topic, partition)
            wanted = {
                "partition": partition,
                "fetchOffset": position,
                "partitionMaxBytes": self._max_partition_bytes,
            }
            leader = await self._client.leader(topic, partition)
            by_leader[leader].append({"topic": topic, "partitions": [wanted]})
        limits = {"maxWaitMs": self._max_wait_ms, "minBytes": 1, "isolationLevel": int(self._read_committed)}
        requests = [
            leader.send("Fetch", {**limits, "topics": topics}) for leader, topics in by_leader.items()
        ]
        fetched: list[Fetched] = []
        positions: dict[tuple[str, int], int | Reset] = {}
        for response in await asyncio.gather(*requests):
            check(response["errorCode"], "Fetch")
            for topic in response["responses"]:
                for answer in topic["partitions"]:
                    place = topic["topic"], answer["partitionIndex"]
                    positions[place] = self._take(place, answer, fetched)
        # Only now: after an error, all of it is fetched again.
        self.positions |= positions
        return fetched

    def _take(self, place: tuple[str, int], answer: Body, fetched: list[Fetched]) -> int | Reset:
        """Adds the records of a partition; returns its next position."""
        name = "{}-{}".format(*place)
        position = self.positions.get(place)
        if not isinstance(position, int):
            raise ProtocolError(f"{name}: a partition that was not fetched")
        if error_name(answer["errorCode"]) == "OFFSET_OUT_OF_RANGE" and self._auto_offset_reset:
            return self._auto_offset_reset
        check(answer["errorCode"], f"Fetch of {name} at offset {position}")
        if not answer["records"]:
            return position
        try:
            batches = list(magicbyte.read_batches(answer["records"], allow_partial=True))
        except magicbyte.Error as error:
            raise ProtocolError(f"{name}: {error}") from error
        if not batches or batches[-1].next_offset <= position:
            raise ProtocolError(
                f"{name}: {len(answer['records'])} bytes without a batch at offset {position}"
            )
        aborted = answer["abortedTransactions"] or []
        pairs = [(transaction["producerId"], transaction["firstOffset"]) for transaction in aborted]
        for batch in read_committed(batches, pairs) if self._read_committed else batches:
            if not batch.is_control:
                # The first batch may begin before the position.
                whole = batch.base_offset >= position
                records = batch if whole else [record for record in batch if record.offset >= position]
                fetched.append(Fetched(*place, records))
        return batches[-1].next_offset
