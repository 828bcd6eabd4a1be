"""A cycle through compiled objects that hold Python objects is freed by the garbage collector."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from magicbyte import _core, read_batches
from magicbyte.broker import AppendConfig, AppendValidator, FetchResponse, PartitionSimulator
from magicbyte.damage import Repair, Rescued, Suspect
from magicbyte.state import ProducerStateEntry, Truncation
from test_generous import built


class Bytes(bytes):
    """Bytes with attributes."""

    owner: Any


class Config(AppendConfig):
    """A configuration with attributes."""

    owner: Any


class Witness:
    """An object of Python in a cycle."""


def through_a_list(make: Callable[[list[Any]], Any]) -> Any:
    held: list[Any] = []
    held.append(make(held))
    return held


def through_bytes(make: Callable[[Bytes], Any]) -> Any:
    held = Bytes(built())
    held.owner = make(held)
    return held


def through_a_config(make: Callable[[Config], Any]) -> Any:
    held = Config()
    object.__setattr__(held, "owner", make(held))
    return held


CYCLES: dict[str, Callable[[], Any]] = {
    "FetchResponse": lambda: through_a_list(lambda held: FetchResponse(b"", 0, 0, 1, held)),
    "Truncation": lambda: through_a_list(lambda held: Truncation(None, held)),
    "Suspect": lambda: through_a_list(lambda held: Suspect(0, 1, None, None, held)),
    "Suspect's key": lambda: through_bytes(lambda held: Suspect(0, 1, held, None, [])),
    "Rescued": lambda: through_a_list(lambda held: Rescued("0.log", 0, "garbage", "", b"", None, held)),
    "Rescued and Repair": lambda: through_bytes(
        lambda held: Rescued("0.log", 0, "garbage", "", b"", Repair(held, 0, "bit 1", 0.1, True), [])
    ),
    "ProducerStateEntry": lambda: through_a_list(
        lambda held: ProducerStateEntry(1, 0, 1, 1, 9, -1, None, (held,))  # type: ignore[arg-type]
    ),
    "BatchField": lambda: through_bytes(
        lambda held: _core.BatchField(False, 0, held, "magic", "magic", "2", None, None, 2, None)
    ),
    "AppendInfo": lambda: through_bytes(lambda held: _core.AppendInfo(held, 0, 0, 1, 1, None, 0, 0)),
    "AppendValidator": lambda: through_a_config(AppendValidator),
    "PartitionSimulator": lambda: through_a_config(PartitionSimulator),
    "Batches": lambda: through_bytes(read_batches),
    "RecordBatch": lambda: through_bytes(lambda held: next(read_batches(held))),
    "Record": lambda: through_bytes(lambda held: next(iter(next(read_batches(held))))),
    "ArrowStream": lambda: through_bytes(lambda held: read_batches(held).to_arrow()),
}


@pytest.mark.parametrize("name", CYCLES)
def test_a_cycle_is_freed(name: str) -> None:
    cycle = CYCLES[name]()
    witness = Witness()
    freed = weakref.ref(witness)
    if isinstance(cycle, list):
        cycle.append(witness)
    else:
        object.__setattr__(cycle, "witness", witness)
    gc.collect()
    assert freed() is witness
    del cycle, witness
    gc.collect()
    assert freed() is None


def test_bytes_are_shared() -> None:
    """Those of a subclass are copied, since it may have attributes."""
    for data, shared in ((built(), True), (Bytes(built()), False)):
        before = sys.getrefcount(data)
        batches = read_batches(data)
        assert (sys.getrefcount(data) > before) == shared
        assert next(batches).to_bytes() == data


ONE_DATACLASS = """
import dataclasses
from magicbyte.state import Truncation

made = []
make = dataclasses.make_dataclass
dataclasses.make_dataclass = lambda *arguments, **options: made.append(1) or make(*arguments, **options)
result = Truncation(None, [])
assert [field.name for field in dataclasses.fields(result)] == ["offset", "questions"]
assert dataclasses.replace(result, offset=1) == Truncation(1, [])
assert Truncation.__dataclass_params__.frozen is False
assert made == [1]
"""


def test_a_result_makes_its_dataclass_once() -> None:
    subprocess.run([sys.executable, "-c", ONE_DATACLASS], check=True)
