"""Mutated input gives the same records or the same `magicbyte.Error` at every entry point: no panic,
no crash, no memory beyond a bound (see hostile.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import magicbyte
import pyarrow as pa
import pytest
from conftest import KAFKA
from corpus import cases
from hostile import read_as_bytes

ROUNDS = 200
FUZZ_CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"


@pytest.mark.skipif(sys.platform != "linux", reason="bounds the memory of a process as Linux does")
@pytest.mark.parametrize("first", [0, 1_000_000])
def test_mutated_input(tmp_path: Path, first: int) -> None:
    program = Path(__file__).with_name("hostile.py")
    arguments = [str(program), str(KAFKA), str(tmp_path), str(first), str(first + ROUNDS)]
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-6000:]
    assert "panicked" not in done.stderr


def test_every_door_agrees_on_the_corpora() -> None:
    """Objects, lists and both Arrow flavours: the same records, or the same error at the same position."""
    inputs = [bytes.fromhex(case["hex"]) for case in cases()]
    inputs += [path.read_bytes() for path in sorted(FUZZ_CORPUS.rglob("*")) if path.is_file()]
    assert len(inputs) > 500
    for data in inputs:
        for check_crcs in (True, False):
            read_as_bytes(data, check_crcs=check_crcs)


def test_a_flipped_bit_does_not_make_records_control_records() -> None:
    data = bytearray((KAFKA / "v2_nulls" / "00000000000000000000.log").read_bytes())
    data[22] ^= 0x20
    assert next(magicbyte.read_batches(data)).is_control
    with pytest.raises(pa.ArrowInvalid, match="CRC mismatch"):
        pa.table(magicbyte.read_batches(data))
