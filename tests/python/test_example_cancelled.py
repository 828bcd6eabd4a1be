"""The end of a transaction in the example client, whose caller is cancelled again and again."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "examples"))

from asyncio_client.producer import _uninterrupted


@pytest.mark.parametrize("cancels", [0, 1, 2, 5])
def test_work_that_is_not_interrupted(cancels: int) -> None:
    async def run() -> list[str]:
        done: list[str] = []
        begun = asyncio.Event()

        async def work() -> None:
            begun.set()
            for _ in range(20):
                await asyncio.sleep(0)
            done.append("ended")

        caller = asyncio.create_task(_uninterrupted(work()))
        await begun.wait()
        for _ in range(cancels):
            caller.cancel()
            await asyncio.sleep(0)
        try:
            await caller
        except asyncio.CancelledError:
            done.append("cancelled")
        return done

    assert asyncio.run(run()) == ["ended", *(["cancelled"] if cancels else [])]
