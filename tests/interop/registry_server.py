"""A real schema registry with the Confluent API: Apicurio, with its database in memory."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from glob import glob
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[2] / "target" / "registry" / "apicurio"
_NEEDED = 21
_SECONDS = 90
_TRIES = 3


def newer_java() -> str | None:
    """A Java that Apicurio runs on: the default one, or another one of the machine."""
    for java in filter(None, (shutil.which("java"), *sorted(glob("/usr/lib/jvm/*/bin/java"), reverse=True))):
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
        version = re.search(r'version "(\d+)', told)
        if version is not None and int(version[1]) >= _NEEDED:
            return java
    return None


class Apicurio:
    """The registry, listening on a free port."""

    def __init__(self, directory: Path, java: str, *options: str) -> None:
        self._log = directory / "log"
        http = ["-Dquarkus.http.host=127.0.0.1", "-Dquarkus.http.port=0"]
        http += ["-Dquarkus.management.host=127.0.0.1", "-Dquarkus.management.port=0"]
        command = [java, "-Xmx512m", "-XX:TieredStopAtLevel=1", *http, *options, "-jar", "quarkus-run.jar"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, cwd=HOME, stdout=log, stderr=subprocess.STDOUT)
        self.url = self._started()

    def _started(self) -> str:
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            listening = re.search(
                r"Listening on: http://[^:\s]+:(\d+)", self._log.read_text(errors="replace")
            )
            if listening is not None:
                url = f"http://127.0.0.1:{listening[1]}/apis/ccompat/v7"
                try:
                    urllib.request.urlopen(f"{url}/subjects", timeout=5).close()
                except urllib.error.HTTPError:
                    return url
                except OSError:
                    pass
                else:
                    return url
            time.sleep(0.1)
        self.kill()
        raise RuntimeError(self._log.read_text(errors="replace")[-4000:])

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def ask(method: str, url: str, body: Any = None) -> Any:
    """The answer to a request, parsed.

    Apicurio now and then closes a connection without an answer. What tests ask for can be asked twice.

    Raises:
        urllib.error.HTTPError: for a status other than 2xx.

    """
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    for _ in range(_TRIES - 1):
        try:
            return _answer(request)
        except ConnectionError:
            time.sleep(0.1)
    return _answer(request)


def _answer(request: urllib.request.Request) -> Any:
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null")
