"""Says what a run waits for."""

from __future__ import annotations

import logging
import time

__all__ = ["Waits"]

_LOGGER = logging.getLogger("magicbyte.jobs")
_PATIENCE_S = 2.0
"""Elections and moved leaders take less."""
_REPEATED_S = 10.0


class Waits:
    """Writes to the logger `magicbyte.jobs` why nothing comes, with pauses in between."""

    def __init__(self) -> None:
        self._succeeded = time.monotonic()
        self._last: tuple[str, float] = "", 0.0

    def succeeded(self) -> None:
        """Notes that something has come."""
        self._succeeded = time.monotonic()

    def failed(self, why: str) -> None:
        """Notes that an attempt failed and will be repeated."""
        now = time.monotonic()
        text, said = self._last
        if now - self._succeeded >= _PATIENCE_S and (why != text or now - said >= _REPEATED_S):
            self._last = why, now
            _LOGGER.warning("waiting for the cluster since %.0f s: %s", now - self._succeeded, why)
