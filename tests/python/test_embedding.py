"""The page about clients: its excerpts are in the sources, its tests run, and its broker tests more."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from asyncio_client import Client, KafkaError, Producer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8")
EXPLANATION, TESTING = PAGE.split('<a id="testing"></a>')


def blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_excerpts_are_in_the_sources() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "examples/asyncio_client").glob("*.py")]
    excerpts = blocks(EXPLANATION)
    assert len(excerpts) > 5
    for excerpt in excerpts:
        assert any(excerpt in source for source in sources), excerpt


def test_the_tests_for_clients_run(tmp_path: Path) -> None:
    file = tmp_path / "test_own_client.py"
    file.write_text("\n\n".join(blocks(TESTING)), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", str(file)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "examples")}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr


@pytest.fixture
def flaky_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class `FlakyBroker` of the page."""
    (tmp_path / "page.py").write_text("\n\n".join(blocks(TESTING)), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "page", raising=False)
    import page  # type: ignore[import-not-found]

    return page.FlakyBroker


def produce(broker: Any, sent: list[bytes]) -> None:
    async def run() -> None:
        server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
        broker.port = server.sockets[0].getsockname()[1]
        client = Client(f"127.0.0.1:{broker.port}")
        async with server, client, Producer(client, batch_size=500, linger=0) as producer:
            for value in sent:
                await producer.send("orders", 0, value)

    asyncio.run(run())


def stored(broker: Any) -> list[magicbyte.RecordBatch]:
    return list(magicbyte.read_batches(broker.partition.fetch(0, 1 << 20).records))


SENT = [b"record %d" % number for number in range(600)]


def test_a_leader_that_lost_its_end(flaky_broker: Any) -> None:
    """Its last sequence is too low for the next batch, which therefore begins a new epoch (KIP-360)."""

    class Forgetful(flaky_broker):  # type: ignore[misc]
        def Produce(self, body: dict[str, Any]) -> dict[str, Any]:
            if self.produced == 7:
                self.partition.truncate(30)
            return super().Produce(body)  # type: ignore[no-any-return]

    broker = Forgetful()
    produce(broker, SENT)
    found = [record.value_bytes or b"" for batch in stored(broker) for record in batch]
    end = next(index for index, value in enumerate(found) if value != SENT[index])
    assert 0 < end <= 30
    assert found[end:] == SENT[600 - len(found) + end :], "the order is kept"
    assert [batch.producer_epoch for batch in stored(broker)] == sorted(
        batch.producer_epoch for batch in stored(broker)
    )
    assert stored(broker)[-1].producer_epoch == 1


def test_errors_that_pass_and_those_that_do_not(flaky_broker: Any) -> None:
    class Busy(flaky_broker):  # type: ignore[misc]
        def Produce(self, body: dict[str, Any]) -> dict[str, Any]:
            if self.produced % 4 == 1:
                self.produced += 1
                answer = {"index": 0, "errorCode": self.code, "errorMessage": "busy"}
                return {"responses": [{"name": "orders", "partitionResponses": [answer]}]}
            return super().Produce(body)  # type: ignore[no-any-return]

    broker = Busy()
    broker.code = 6  # NOT_LEADER_OR_FOLLOWER
    produce(broker, SENT)
    assert [record.value_bytes for batch in stored(broker) for record in batch] == SENT

    broker = Busy()
    broker.code = 29  # TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(KafkaError, match=r"orders-0: TOPIC_AUTHORIZATION_FAILED \(busy\)"):
        produce(broker, SENT)


def produce_in_parts(broker: Any, sent: list[bytes], retry_timeout: float) -> list[KafkaError | OSError]:
    """Produces with a flush now and then; returns the errors that it raised."""
    errors: list[KafkaError | OSError] = []

    async def run() -> None:
        server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
        broker.port = server.sockets[0].getsockname()[1]
        client = Client(f"127.0.0.1:{broker.port}", retry_timeout=retry_timeout)
        async with server, client, Producer(client, batch_size=200, linger=0) as producer:
            for start in range(0, len(sent), 60):
                try:
                    for value in sent[start : start + 60]:
                        await producer.send("orders", 0, value)
                    await producer.flush()
                except (KafkaError, OSError) as error:
                    errors.append(error)

    asyncio.run(run())
    return errors


def answered(code: int) -> dict[str, Any]:
    return {"responses": [{"name": "orders", "partitionResponses": [{"index": 0, "errorCode": code}]}]}


LOST, REQUEST_TIMED_OUT, MESSAGE_TOO_LARGE, NOT_ENOUGH_REPLICAS_AFTER_APPEND = None, 7, 10, 20


@pytest.mark.parametrize("code", [LOST, REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND])
@pytest.mark.parametrize("refuses", [False, True])
def test_what_may_be_written_is_not_written_twice(flaky_broker: Any, code: int | None, refuses: bool) -> None:
    """A leader writes batches without confirming them, until attempts take too long or it refuses one."""

    class Unsure(flaky_broker):  # type: ignore[misc]
        requests = 0

        def Produce(self, body: dict[str, Any]) -> dict[str, Any]:
            self.requests += 1
            self.produced = 1  # so that the connection stays open
            if refuses and self.requests == 9:
                return answered(MESSAGE_TOO_LARGE)
            response: dict[str, Any] = super().Produce(body)
            if not 4 <= self.requests < (9 if refuses else 14):
                return response
            if code is LOST:
                self.produced = 0  # so that it is closed
            return response if code is LOST else answered(code)

    broker = Unsure()
    errors = produce_in_parts(broker, SENT, retry_timeout=10 if refuses else 0.05)
    assert errors
    found = [record.value_bytes for batch in stored(broker) for record in batch]
    assert found == [value for value in SENT if value in {*found}], "each once, in order"
    assert len(found) > 300, "the later ones are there"
