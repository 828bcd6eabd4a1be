"""A page in a headless browser that tests look at and use, by Chrome's DevTools protocol over pipes."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from browser import OPTIONS, program

# The browser reads commands at 3 and writes answers to 4.
_STARTED = 'exec 3<&"$0" 4>&"$1"; shift; exec "$@"'

_SECONDS = 120
"""A browser that is silent for so long has failed."""

_MIDDLE = """(element) => {
    element.scrollIntoView({ block: "center" });
    const box = element.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
}"""


class Tab:
    """One page, with everything that it reported or requested since it was opened."""

    def __init__(self, profile: Path) -> None:
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        command = [
            program(),
            *OPTIONS,
            f"--user-data-dir={profile}",
            "--remote-debugging-pipe",
            "about:blank",
        ]
        self._browser = subprocess.Popen(
            ["bash", "-c", _STARTED, str(commands), str(answers), *command],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.problems: list[str] = []
        """Uncaught exceptions, errors of the console, and files that were not found."""
        self.requests: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._browser.kill()
        self._browser.wait()
        os.close(self._commands)
        os.close(self._answers)

    def send(self, method: str, **parameters: Any) -> Any:
        """Sends a command; returns its result."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self._receive()
            if message.get("id") == self._number:
                assert "error" not in message, message["error"]
                return message["result"]
            self._note(message)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            readable, _, _ = select.select([self._answers], [], [], _SECONDS)
            assert readable, f"the browser has not answered for {_SECONDS} seconds"
            data = os.read(self._answers, 1 << 16)
            assert data, "the browser ended"
            self._rest += data
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)  # type: ignore[no-any-return]

    def _note(self, message: dict[str, Any]) -> None:
        given = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                details = given["exceptionDetails"]
                self.problems.append(details.get("exception", {}).get("description", details["text"]))
            case "Runtime.consoleAPICalled" if given["type"] in ("error", "warning", "assert"):
                self.problems.append(str([value.get("value") for value in given["args"]]))
            case "Log.entryAdded" if given["entry"]["level"] == "error":
                self.problems.append(f"{given['entry']['text']} {given['entry'].get('url', '')}")
            case "Network.requestWillBeSent":
                self.requests.append(given["request"]["url"])

    def open(self, address: str) -> None:
        """Opens a page and waits until it is loaded."""
        self.problems.clear()
        self.requests.clear()
        self.send("Page.navigate", url=address)
        self.wait(
            lambda: self.evaluate("location.href !== 'about:blank' && document.readyState === 'complete'")
        )

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: Callable[[], Any], seconds: float = 120) -> Any:
        """Waits until a condition holds; returns its value."""
        end = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < end, self.evaluate("document.body.innerText")[:2000]
            time.sleep(0.01)
        return value

    def until(self, expression: str, seconds: float = 120) -> None:
        """Waits until an expression in the page holds."""
        self.wait(lambda: self.evaluate(f"Boolean({expression})"), seconds)

    def choose(self, selector: str, files: Sequence[Path]) -> None:
        """Gives files to an input for files, as a person would who chooses them."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(file) for file in files])

    def point(self, selector: str) -> None:
        """Moves the pointer over the middle of an element."""
        x, y = self.evaluate(f"({_MIDDLE})(document.querySelector({selector!r}))")
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
