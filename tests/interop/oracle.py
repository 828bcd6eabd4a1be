"""Kafka's own classes as a process: bytes in, verdicts out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from java_temporary import IN_TEMPORARY
from kafka_versions import BUILDS

BUILT = Path(__file__).parents[2] / "target" / "interop"


class Process:
    """A Java program that answers each line of input with a line of output."""

    def __init__(self, main: str, version: str, classes: str) -> None:
        if not (BUILT / classes).is_dir():
            raise FileNotFoundError(f"{BUILT / classes} is missing: make target/interop/built")
        path = f"{BUILT / classes}:{BUILT}/lib-{version}/*"
        # With a small heap, a record that declares two gigabytes is refused.
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", IN_TEMPORARY]
        command = ["java", *options, "-cp", path, main]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, lines: Sequence[str]) -> list[str]:
        """The answers, in order. Another thread writes, because otherwise both pipes could fill up."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def write() -> None:
            for line in lines:
                requests.write(line + "\n")
            requests.flush()

        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(write)
            answers_read: list[str] = []
            for line in lines:
                answer = answers.readline()
                if not answer:
                    raise RuntimeError(f"the Java process ended (code {process.wait()}) at {line[:200]}")
                answers_read.append(answer.rstrip("\n"))
            written.result()
        # All answers are read, so that a test that fails halfway does not leave both sides waiting.
        return answers_read

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Oracle(Process):
    """Reads like a consumer of this version of Kafka."""

    def __init__(self, version: str) -> None:
        super().__init__("Oracle", version, f"oracle-{version}")
        self.version = version

    def read(self, inputs: Iterable[bytes]) -> list[dict[str, Any]]:
        return [json.loads(answer) for answer in self.ask([data.hex() for data in inputs])]


class Builder(Process):
    """Builds batches of all magics, with the last Kafka version that can."""

    def __init__(self) -> None:
        super().__init__("Builder", BUILDS, "builder")

    def build(self, requests: Sequence[str]) -> list[bytes]:
        return [bytes.fromhex(answer) for answer in self.ask(requests)]

    def compress(self, codec: str, data: bytes, *, magic: int = 2, level: str = "-") -> bytes:
        return self.build([f"compress {magic} {codec} {level} {data.hex()}"])[0]
