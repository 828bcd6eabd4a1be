"""Captures of real clients: decoded without a problem, or an assertion fails."""

from __future__ import annotations

from pathlib import Path

from magicbyte.wire import Exchange, Exchanges
from wire_recorder import WireRecorder


def bootstrap_of(recorder: WireRecorder) -> str:
    """The address that clients connect to."""
    host, port = recorder.address
    return f"{host}:{port}"


def decoded(capture: Path) -> list[Exchange]:
    """Every request of a capture; each was answered unless its client or the broker left before."""
    exchanges = Exchanges([capture])
    found = list(exchanges)
    assert exchanges.summary.problems == []
    assert (exchanges.summary.lost_bytes, exchanges.summary.skipped_bytes) == (0, 0)
    left: set[int] = set()
    for one in found:
        assert one.request is not None
        assert one.response is None or one.connection not in left
        if one.response is None:
            left.add(one.connection)
    return found
