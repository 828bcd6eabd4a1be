"""Results of the compiled core: frozen objects that behave as their attributes in their order."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import pprint
from typing import Any

import pandas as pd
import pytest
from magicbyte.broker import AppendInfo, FetchResponse
from magicbyte.damage import Rescued, Suspect
from magicbyte.state import AbortedTransaction, BatchMetadata, ProducerStateEntry

BATCH = BatchMetadata(0, 10, 1, 11, 99)
PRODUCER = ProducerStateEntry(
    producer_id=7,
    producer_epoch=0,
    last_sequence=1,
    last_offset=11,
    last_timestamp=99,
    coordinator_epoch=-1,
    current_txn_first_offset=None,
    batches=(BATCH,),
)
RESULTS: list[Any] = [
    BATCH,
    PRODUCER,
    AppendInfo(b"batch", 0, 1, 99, 1, None, 61, 0),
    FetchResponse(b"batch", 2, 2, 0, [AbortedTransaction(7, 0, 1)]),
    Rescued("0.log", 3, "crc_mismatch", "wrong", b"abc", None, [Suspect(1, -1, None, b"", [("h", None)])]),
]


def test_shown_as_code() -> None:
    batch = "BatchMetadata(first_sequence=0, first_offset=10, last_sequence=1, last_offset=11, timestamp=99)"
    assert repr(BATCH) == batch
    assert repr(PRODUCER).endswith(f"current_txn_first_offset=None, batches=({batch},))")


@pytest.mark.parametrize("result", RESULTS, ids=[type(one).__name__ for one in RESULTS])
def test_copies_are_equal(result: Any) -> None:
    assert pickle.loads(pickle.dumps(result)) == copy.copy(result) == copy.deepcopy(result) == result
    assert type(result)(*result) == result
    assert result != tuple(result)


@pytest.mark.parametrize("result", RESULTS, ids=[type(one).__name__ for one in RESULTS])
def test_results_are_dataclasses(result: Any) -> None:
    names = [field.name for field in dataclasses.fields(result)]
    assert names == [*type(result).__match_args__] == [*dataclasses.asdict(result)]
    assert dataclasses.replace(result) == result
    # Python 3.13 calls it for `copy.replace`.
    assert result.__replace__() == result
    assert list(pd.DataFrame([result]).columns) == names
    # A line that is too short for it.
    assert pprint.pformat(result, width=10) == repr(result)


def test_parts_of_results_are_dataclasses() -> None:
    assert dataclasses.replace(BATCH, timestamp=98) == BatchMetadata(0, 10, 1, 11, 98)
    assert BATCH.__replace__(timestamp=98) == dataclasses.replace(BATCH, timestamp=98)
    with pytest.raises(TypeError, match="unexpected keyword argument 'wrong'"):
        BATCH.__replace__(wrong=1)
    assert dataclasses.asdict(PRODUCER)["batches"] == (dataclasses.asdict(BATCH),)


def test_equal_results_have_equal_hashes() -> None:
    assert len({BATCH, BatchMetadata(*BATCH), BatchMetadata(0, 10, 1, 11, 98)}) == 2
    assert hash(pickle.loads(pickle.dumps(PRODUCER))) == hash(PRODUCER)
    with pytest.raises(TypeError, match="unhashable"):
        hash(FetchResponse(b"", 0, 0, 0, []))


def test_patterns() -> None:
    match PRODUCER:
        case ProducerStateEntry(producer, 0, batches=(BatchMetadata(timestamp=timestamp),)):
            assert (producer, timestamp) == (7, 99)
        case _:
            pytest.fail("no match")


def test_attributes_cannot_be_set() -> None:
    with pytest.raises(AttributeError, match="not writable"):
        BATCH.timestamp = 1  # type: ignore[misc]


def test_the_end_of_a_rescued_range() -> None:
    assert Rescued("0.log", 3, "crc_mismatch", "wrong", b"abc", None, []).end == 6
    with pytest.raises(OverflowError, match="64 bits"):
        _ = Rescued("0.log", 2**64 - 2, "crc_mismatch", "wrong", b"abc", None, []).end


def test_the_offset_delta_that_a_broker_stored() -> None:
    assert BATCH.offset_delta == 1
    # As from a snapshot whose last offset is 2^63 - 1 and whose delta is -2^31.
    assert BatchMetadata(0, -(2**63) + 2**31 - 1, 0, 2**63 - 1, 0).offset_delta == -(2**31)
