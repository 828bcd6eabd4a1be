"""A cluster: connections to its brokers, leaders, coordinators, and attempts that are repeated."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Self, TypeVar

from .connection import Address, Connection
from .errors import (
    FAILURES,
    LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError,
    check,
    is_retriable,
)

T = TypeVar("T")


class Backoff:
    """Pauses between attempts at one thing, which grow until too much time has passed without success."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self.succeeded()

    def succeeded(self) -> None:
        """Begins again with the shortest pause and the full time."""
        self._deadline, self._pause = time.monotonic() + self._timeout, 0.02

    async def pause(self) -> bool:
        """Waits before the next attempt; False if it is too late for one."""
        if time.monotonic() + self._pause > self._deadline:
            return False
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, 1.0)
        return True


class Client:
    """A cluster: connections to its brokers, leaders of partitions, coordinators of transactions.

    Args:
        bootstrap_servers: brokers to begin with, as "host:port,host:port".
        request_timeout: seconds within which a broker has to answer.
        retry_timeout: seconds without success after which a retried error is raised.

    """

    def __init__(
        self, bootstrap_servers: str, *, request_timeout: float = 30, retry_timeout: float = 120
    ) -> None:
        servers = (server.strip().rpartition(":") for server in bootstrap_servers.split(","))
        self._bootstrap = [(host.strip("[]"), int(port)) for host, _, port in servers]
        self._request_timeout, self._retry_timeout = request_timeout, retry_timeout
        self._connections: dict[Address, Connection] = {}
        self._opening: defaultdict[Address, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._brokers: dict[int, Address] = {}
        self._leaders: dict[str, dict[int, int]] = {}
        self._coordinators: dict[str, Address] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()

    def backoff(self) -> Backoff:
        """The pauses of one thing that is retried."""
        return Backoff(self._retry_timeout)

    async def retry(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Makes attempts until one succeeds or fails for good."""
        backoff = self.backoff()
        while True:
            try:
                return await attempt()
            except FAILURES as error:
                if not is_retriable(error) or not await backoff.pause():
                    raise
                self.forget()

    def forget(self) -> None:
        """Has leaders and coordinators looked up again."""
        self._leaders.clear()
        self._coordinators.clear()

    async def partitions(self, topic: str) -> list[int]:
        """The partitions of a topic."""
        return sorted(await self.retry(partial(self._find_leaders, topic)))

    async def leader(self, topic: str, partition: int) -> Connection:
        """A connection to the leader of a partition."""
        leaders = self._leaders.get(topic) or await self._find_leaders(topic)
        if partition not in leaders:
            raise KafkaError(UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{partition}")
        if leaders[partition] not in self._brokers:
            raise KafkaError(LEADER_NOT_AVAILABLE, f"{topic}-{partition}")
        return await self._connection(self._brokers[leaders[partition]])

    async def coordinator(self, transactional_id: str | None) -> Connection:
        """A connection to the coordinator of transactions; to any broker without a `transactional_id`."""
        if transactional_id is None:
            return await self._any_broker()
        if transactional_id not in self._coordinators:
            broker = await self._any_broker()
            found = await broker.send("FindCoordinator", {"key": transactional_id, "keyType": 1})
            check(found["errorCode"], f"FindCoordinator of {transactional_id}", found["errorMessage"])
            self._coordinators[transactional_id] = found["host"], found["port"]
        return await self._connection(self._coordinators[transactional_id])

    async def _find_leaders(self, topic: str) -> dict[int, int]:
        broker = await self._any_broker()
        response = await broker.send(
            "Metadata", {"topics": [{"name": topic}], "allowAutoTopicCreation": False}
        )
        self._brokers = {node["nodeId"]: (node["host"], node["port"]) for node in response["brokers"]}
        for described in response["topics"]:
            check(described["errorCode"], f"Metadata of {topic}")
            leaders = {one["partitionIndex"]: one["leaderId"] for one in described["partitions"]}
            self._leaders[described["name"]] = leaders
        return self._leaders.get(topic, {})

    async def _any_broker(self) -> Connection:
        for address in (*self._brokers.values(), *self._bootstrap):
            try:
                return await self._connection(address)
            except OSError as error:
                failure = error
        raise failure

    async def _connection(self, address: Address) -> Connection:
        async with self._opening[address]:
            connection = self._connections.get(address)
            if connection is None or connection.failure:
                connection = await Connection.open(address, self._request_timeout)
                self._connections[address] = connection
            return connection
