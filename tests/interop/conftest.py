"""The Java processes, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from oracle import Builder, Oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    process = Oracle()
    yield process
    process.close()


@pytest.fixture(scope="session")
def builder() -> Iterator[Builder]:
    process = Builder()
    yield process
    process.close()
