"""Kafka's own log, leader epochs and consumer's fetch as a process: each line of words gets one line of answer."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from kafka_broker import java

ERRORS = {
    "InvalidProducerEpochException": "INVALID_PRODUCER_EPOCH",
    "OutOfOrderSequenceException": "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "TransactionCoordinatorFencedException": "TRANSACTION_COORDINATOR_FENCED",
    "InvalidTxnStateException": "INVALID_TXN_STATE",
}


class Refused(Exception):
    """Kafka refused a request: has the protocol's name of the error, or the class of another exception."""


class StateOracle:
    """A broker's `UnifiedLog` with a settable clock, and what belongs to it."""

    def __init__(self, version: str) -> None:
        self._process = subprocess.Popen(
            java("org.apache.kafka.clients.consumer.internals.StateOracle", log_level="off", version=version),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *words: Any) -> str:
        """Returns the answer, or raises `Refused`."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\t".join(map(str, words)) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline().rstrip("\n")
        if not answer:
            raise RuntimeError(f"the Java process ended at {words[0]}")
        if answer.startswith("! "):
            name, _, message = answer[2:].partition(" ")
            raise Refused(ERRORS.get(name, name), message)
        return answer

    def open(self, directory: Path, expiration_ms: int, *, clean: bool, verify: bool = False) -> int:
        """Opens a log; returns its end offset."""
        how = "clean" if clean else "crashed", "verify" if verify else "-"
        return int(self.ask("open", directory, expiration_ms, *how))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
